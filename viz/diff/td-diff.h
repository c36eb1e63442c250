/*
 * The difference of two iterations: operations are matched by key, then by neighbourhood, so
 * that one inserted operation is one difference and not a shifted tail.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "tape/td-iteration.h"

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
  gint a, b;  /* events; -1 where there is none */
  char *what; /* CHANGED: one line, "y (64, 10) -> (32, 10)", "mean 0.1 -> 0.2" */
} TdDiffItem;

typedef struct
{
  TdIteration *a, *b;      /* owned */
  GArray *items;           /* TdDiffItem, in order of running */
  gint32 *b_of_a, *a_of_b; /* matched events, -1 */
  gint first_a, first_b;   /* where they part first; -1 */
  guint n_same;
  gboolean numbers; /* both sides had statistics */
} TdDiff;

/** Compare. Owner: the caller; keeps references on both. */
TdDiff *td_diff_new (TdIteration *a, TdIteration *b);
void td_diff_free (TdDiff *diff);
/** Say it in one sentence ("1 operation more in B: relu at model.c:12 ..."). Owner: the caller.
 */
char *td_diff_sentence (const TdDiff *diff);
/** format: "text" or "json". Owner: the caller. */
char *td_diff_print (const TdDiff *diff, const char *format);

G_END_DECLS
