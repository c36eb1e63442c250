/*
 * How a parameter and its gradient are spread, one iteration behind the other: a ridge of
 * histograms of the sizes of their elements, on a scale of powers of two.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-gradient.h"

G_BEGIN_DECLS

/** Draw the ridges of the parameter that is selected, else of the first, in the iterations that
 * columns of this range show, the newest in front. A press goes to an iteration. */
TdScene *td_gradient_scene_ridge (const TdGradientTable *table, const TdGradientRange *range,
                                  const TdPanelView *view);
/** Print one line for each iteration. format: "text", "csv" or "json". Owner: the caller. */
char *td_gradient_print_ridge (const TdGradientTable *table, const TdGradientRange *range,
                               guint row, const char *format);

G_END_DECLS
