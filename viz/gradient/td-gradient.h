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
gboolean td_gradient_table_has (const TdGradientTable *table, gint64 iteration);
/** Load and add up to `n` stored iterations ending with `last` that are not in it yet. */
void td_gradient_table_load (TdGradientTable *table, TdTapeReader *reader, gint64 last,
                             guint n);

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
/** Count, among the last `n` columns up to `last`, the iterations that clipped; returns how
 * many it is known of. */
guint td_gradient_table_count_clipped (const TdGradientTable *table, gint64 last, guint n,
                                       guint *n_clipped);

/** Draw the heat map of log10 norms, up to the view's iteration in the last column, with the
 * value column. */
TdScene *td_gradient_scene (const TdGradientTable *table, const TdIteration *current,
                            const TdPanelView *view);
/** Draw the list of parameters without a gradient. */
TdScene *td_gradient_scene_missing (const TdGradientTable *table, const TdPanelView *view);
/** format: "text", "csv" or "json". Owner: the caller. */
char *td_gradient_print (const TdGradientTable *table, gint64 last, guint n_columns,
                         const char *format);

G_END_DECLS
