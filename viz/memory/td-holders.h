/*
 * What outlived its iteration and who keeps it: the marks of a tape (its sections HELD), the
 * holders over all marks, and which of them keep more and more.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "scene/td-panel.h"

G_BEGIN_DECLS

/* What was there at the end of one iteration. */
typedef struct
{
  gint64 iteration;
  guint n_rows;
  TdTapeHeld *rows; /* largest first; the last may be the sum of all others */
  guint64 bytes, n_objects;
} TdHoldersMark;

/* What is put together over the marks. */
typedef enum
{
  TD_HOLDERS_BY_HOLDER, /* what handles of one place keep */
  TD_HOLDERS_BY_SITE    /* what one place of the program made */
} TdHoldersBy;

/* Handles that were made at one place and are held at one place, over all marks; or by site,
 * the arrays of one category that one operation made at one place. */
typedef struct
{
  guint kind; /* TdTapeHolder */
  guint32 holder_site, held_site, held_opdef;
  guint32 name;                  /* of the handles, where all have the same one; else 0 */
  guint32 site, opdef, category; /* by site: what made the arrays; else 0 */
  gboolean others;               /* none of those: all that was not listed one by one */
  gboolean together;             /* none of those: the sum of all that do not grow one by one */
  guint64 *bytes;                /* by mark */
  guint *n_objects;              /* by mark */
  guint n_iterations; /* that made what it keeps at the last mark, at least; up to 64 */
  TdTapeHeld largest; /* group at the last mark */
  gboolean grows;
  gboolean may_grow; /* so far more at every look, and too few of them to say so */
  double bytes_per_iteration;
} TdHolder;

typedef struct
{
  TdTapeReader *reader; /* borrowed */
  TdHoldersBy by;
  guint n_marks, n_holders;
  TdHoldersMark *marks; /* by iteration */
  TdHolder *holders;    /* those that grow first, then by bytes at the last mark */
  TdHolder together;
} TdHolders;

/**
 * Read the marks up to iteration `last` (-1: all), by holder or by site: the newest 300, and
 * 300 before them, spread evenly.  A holder grows when what it keeps is of 8 or more
 * iterations, at the last mark has bytes, and became more from mark to mark in 7 of the last 8
 * steps (in all, where there are fewer than 8; at least 3), or from quarter to quarter of the
 * marks; in arrays, or in bytes.  Names are no difference between holders.
 * Owner: the caller. *Errors*: NULL when the tape has no marks.
 */
TdHolders *td_holders_new_by (TdTapeReader *reader, gint64 last, TdHoldersBy by);
/** The same of the marks of a range of iterations. */
TdHolders *td_holders_new_in (TdTapeReader *reader, TdRange range, TdHoldersBy by);
/** Find the one that is named "holder" or "site". FALSE: there is none such. */
gboolean td_holders_by_find (const char *name, TdHoldersBy *by);
void td_holders_free (TdHolders *holders);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdHolders, td_holders_free)

/** Count what grows: holders, and what all others keep together. */
guint td_holders_n_growing (const TdHolders *holders);
/** Return what grows, from 0 to below their number. */
const TdHolder *td_holders_get_growing (const TdHolders *holders, guint i);
/** Return the largest of those that may grow, where none does for sure, or all together; NULL:
 * there is none. */
const TdHolder *td_holders_find_young (const TdHolders *holders);
/** Say what to do about what such a holder keeps, itself or through a graph. */
const char *td_holder_advice (guint kind, gboolean in_graph);
/** Say in a sentence what grows, who keeps it, and what to do. Owner: the caller. */
char *td_holders_sentence (const TdHolders *holders, const TdHolder *holder);

/** The newest mark: one line per group. format: "text", "csv" or "json". Owner: the caller. */
char *td_holders_print (const TdHolders *holders, const char *format);
/** Bytes by holder over the marks. Owner: the caller. */
char *td_growth_print (const TdHolders *holders, const char *format);
/** The text or JSON of `tapedeck leaks`; retained may be NULL: the tape does not say what
 * refers to what. Owner: the caller. */
struct _TdRetained;
char *td_leaks_print (const TdHolders *holders, const struct _TdRetained *retained,
                      const char *format);

TdScene *td_holders_scene (const TdHolders *holders, const TdPanelView *view);

G_END_DECLS
