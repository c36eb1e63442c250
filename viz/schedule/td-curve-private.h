/*
 * Drawing one curve, shared by the curves' panel and the deck.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-curve.h"

G_BEGIN_DECLS

/** Find the values of a curve whose iterations lie in [from, to]: indices [*first, *end). */
void td__curve_find (const TdCurves *curves, guint curve, gint64 from, gint64 to, guint *first,
                     guint *end);

/**
 * Draw a curve into `plot` (x: iterations from..to, y: lo..hi) as one line through the lowest
 * and highest value of each pixel column.
 */
void td__curve_add (TdSceneBuilder *b, const TdCurves *curves, guint curve,
                    const TdSceneRect *plot, gint64 from, gint64 to, double lo, double hi,
                    const TdStyle *style);

G_END_DECLS
