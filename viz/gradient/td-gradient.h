/*
 * Gradient norms: parameters in forward order by iterations, as the optimizer saw them.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "scene/td-panel.h"

G_BEGIN_DECLS

typedef struct _TdGradientTable TdGradientTable;

/** What gradient clipping did in one iteration, from the statistics before and after its
 * operations. L2 norms are over all gradients that were clipped, together. */
typedef struct
{
  guint n_hooked;       /* gradients that passed a clipping hook; 0: there was none */
  gboolean known;       /* statistics of all of them are there */
  gboolean clipped;     /* one of them came out changed */
  TdCell before, after; /* what kind of numbers these are: */
  double l2_before, l2_after;
} TdGradientClip;

/** Make an empty table with the rows of the tape's parameters. Owner: the caller. */
TdGradientTable *td_gradient_table_new (TdTapeReader *reader);
void td_gradient_table_free (TdGradientTable *table);
/** Put an iteration's gradients in; replaces what was there for its number. */
void td_gradient_table_add (TdGradientTable *table, const TdIteration *iteration);

/* The iterations that the columns are of, by their numbers. When there are more than `n`, a
 * column stands for several: 2, 4, 8 ... in a row, of which it shows one. */
typedef struct
{
  gint64 first, last;
  guint n; /* columns at most */
} TdGradientRange;

/* As many columns as are worth loading an iteration each. */
#define TD_GRADIENT_COLUMNS 64

/** Return the whole run, from the first iteration to the last that ran or, if that is later,
 * `at`. */
TdGradientRange td_gradient_range_run (TdTapeReader *reader, gint64 at);
/** Return the newest `n` iterations up to `at`, a column each. */
TdGradientRange td_gradient_range_newest (TdTapeReader *reader, gint64 at, guint n);

/** Return what of it lies in a range of iterations; all of it where nothing does. */
TdGradientRange td_gradient_range_narrow (TdGradientRange range, TdRange to);

/** Load the iterations that columns of this range show, and `at`, unless they are in it; forget
 * what was thinned since. A column shows, of what is stored of its iterations, the first with a
 * NaN, else the first with an infinity, else the newest. */
void td_gradient_table_load (TdGradientTable *table, TdTapeReader *reader,
                             const TdGradientRange *range, gint64 at);
/** The same, of iterations not loaded before none after `until_us` of the monotonic clock but
 * for one. FALSE: some are missing, and another call goes on. */
gboolean td_gradient_table_load_until (TdGradientTable *table, TdTapeReader *reader,
                                       const TdGradientRange *range, gint64 at,
                                       gint64 until_us);

guint td_gradient_table_n_rows (const TdGradientTable *table);
const char *td_gradient_table_path (const TdGradientTable *table, guint row);
guint64 td_gradient_table_key (const TdGradientTable *table, guint row);
/** Return the L2 norm and what kind of number it is; TD_CELL_MISSING: not recorded. */
TdCell td_gradient_table_norm (const TdGradientTable *table, guint row, gint64 iteration,
                               double *norm);
/** Say why a parameter got no gradient in this iteration; NULL when it got one. Owner:
 * borrowed. */
const char *td_gradient_table_missing (const TdGradientTable *table, guint row,
                                       gint64 iteration);

/** Return what clipping did in an iteration; n_hooked is 0 when it did nothing, or when the
 * iteration is not in the table. */
TdGradientClip td_gradient_table_clip (const TdGradientTable *table, gint64 iteration);

/** Draw the heat map of log10 norms over iterations, linear in their numbers, with the column
 * of the view's iteration marked and its values beside. A hit's number is the iteration that
 * the column shows. */
TdScene *td_gradient_scene (const TdGradientTable *table, const TdIteration *current,
                            const TdGradientRange *range, const TdPanelView *view);
/** Draw the list of parameters without a gradient. */
TdScene *td_gradient_scene_missing (const TdGradientTable *table, const TdPanelView *view);
/** Print the iterations that columns of this range show, and what is missing at `at`. format:
 * "text", "csv" or "json". Owner: the caller. */
char *td_gradient_print (const TdGradientTable *table, const TdGradientRange *range, gint64 at,
                         const char *format);

G_END_DECLS
