/*
 * The difference of two iterations. Operations are matched by what they are and where they
 * stand (key, then operation, layer and neighbours), so that one inserted operation is one
 * difference and not a shifted tail; what only follows from a difference is counted, not
 * listed.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "tape/td-iteration.h"
#include "td-tape-reader.h"

G_BEGIN_DECLS

typedef enum
{
  TD_DIFF_ONLY_A,
  TD_DIFF_ONLY_B,
  TD_DIFF_CHANGED
} TdDiffKind;

typedef struct
{
  TdDiffKind kind;
  gint a, b; /* events; -1 where there is none */
  gboolean
      structural; /* CHANGED: operation, attributes or shape differ; else only numbers do */
  char *what; /* CHANGED: one line, "relu -> sigmoid", "(64, 10) -> (32, 10)", "mean 0.1 -> 0.2"
               */
} TdDiffItem;

typedef struct
{
  TdIteration *a, *b;      /* owned */
  GArray *items;           /* TdDiffItem, in order of running in A, then B */
  gint32 *b_of_a, *a_of_b; /* matched events, -1 */
  gint first_a, first_b;   /* where they part first; -1 where that side has nothing */
  char **versions; /* key, value of A, value of B ... of versions that differ; or NULL */
  guint n_same;
  guint n_followers;    /* backward and update events, and readers, of what differs */
  gboolean has_numbers; /* both sides have statistics */
} TdDiff;

/** Compare. Owner: the caller; keeps references on both. */
TdDiff *td_diff_new (TdIteration *a, TdIteration *b);
/** Compare what the two runs depend on besides the model: it is printed first. */
void td_diff_add_versions (TdDiff *diff, const TdTapeReader *a, const TdTapeReader *b);
void td_diff_free (TdDiff *diff);
/** Say it in one sentence ("1 operation only in B: relu at model.c:12; 3 more follow from
 * it."). Owner: the caller. */
char *td_diff_sentence (const TdDiff *diff);
/** format: "text" or "json". Owner: the caller. */
char *td_diff_print (const TdDiff *diff, const char *format);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdDiff, td_diff_free)

G_END_DECLS
