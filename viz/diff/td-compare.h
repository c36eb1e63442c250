/*
 * A difference as a page shows it: every operation of both sides as one row, in order; what
 * each side costs; the marks that the two pictures carry.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "scene/td-panel.h"
#include "td-diff.h"

G_BEGIN_DECLS

typedef enum
{
  TD_SIDE_A = TD_DIFF_A,
  TD_SIDE_B = TD_DIFF_B,
  TD_N_SIDES
} TdSide;

/** A pair of the difference: one operation, or several that became one. */
typedef struct
{
  gint event[TD_N_SIDES]; /* the last of several; -1: no counterpart */
  gint item;              /* index into the difference's items; -1: it is none of them */
  TdMark mark;
  guint phase; /* TdTapePhase */
} TdCompareRow;

typedef struct
{
  TdDiff *diff;                /* owned */
  TdIteration *of[TD_N_SIDES]; /* borrowed from it */
  guint n_rows;                /* its pairs, in their order */
  TdCompareRow *rows;
  guint8 *marks[TD_N_SIDES];     /* TdMark by event; without those of numbers */
  guint8 *numbers[TD_N_SIDES];   /* the same, with them */
  guint n_structural, n_numeric; /* listed differences of either kind */
} TdCompare;

/** Compare two iterations, of one tape or of two; readers may be NULL and are not kept. Owner:
 * the caller. */
TdCompare *td_compare_new (TdIteration *a, TdIteration *b, TdTapeReader *reader_a,
                           TdTapeReader *reader_b);
/** The same in any thread: with readers of its own for these files, which keep no list of
 * iterations; an empty path has none. */
TdCompare *td_compare_new_of_files (TdIteration *a, const char *path_a, TdIteration *b,
                                    const char *path_b);
void td_compare_free (TdCompare *self);

/** Return the event of the other side that stands for `event` of `side`; -1: there is none. */
gint td_compare_counterpart (const TdCompare *self, TdSide side, gint event);

/** Return the row that an event is in; -1 beyond the end. */
gint td_compare_find_row (const TdCompare *self, TdSide side, gint event);

/** Return the name of a row's operation: "relu", or "relu → sigmoid". Owner: the caller. */
char *td_compare_row_name (const TdCompare *self, guint row);
/** Return where a row stands on both sides: "4 → 3", "4, 5 → 3", "7 → none". Owner: the caller.
 */
char *td_compare_row_events (const TdCompare *self, guint row);
/** Return layer, file:line, and how the row differs if that is more than its name says. Owner:
 * the caller. */
char *td_compare_row_detail (const TdCompare *self, guint row);
/** Time (td_diff_dup_times() says of what) and output bytes of a row on a side; 0 where it has
 * no counterpart. */
guint64 td_compare_row_ns (const TdCompare *self, guint row, TdSide side);
guint64 td_compare_row_bytes (const TdCompare *self, guint row, TdSide side);

/** Write a signed time or size with its sign ("−71 µs", "+1.2 kB", "0"). Returns `out`. */
const char *td_compare_format_ns (char out[TD_FORMAT_SIZE], guint64 a, guint64 b);
const char *td_compare_format_bytes (char out[TD_FORMAT_SIZE], guint64 a, guint64 b);

/** Say what the two sides cost: "35 → 25 operations in 3.20 ms → 2.95 ms (−8 %, median of 15),
 * peak 6.07 MB → 4.20 MB (−31 %)"; no share of times where a side has one. Owner: the caller.
 */
char *td_compare_cost (const TdCompare *self);

/** Write the rows as a table that can be pasted: "text" (aligned) or "csv"; only the listed
 * differences, or everything. Owner: the caller. */
char *td_compare_print (const TdCompare *self, const char *format, gboolean everything);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdCompare, td_compare_free)

G_END_DECLS
