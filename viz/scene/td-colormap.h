/*
 * Colour scales of heat maps: cividis for magnitudes, blue-white-orange around zero.
 * Both are read alike by people with and without full colour vision.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-theme.h"

G_BEGIN_DECLS

typedef enum
{
  TD_COLORMAP_CIVIDIS,
  TD_COLORMAP_DIVERGING
} TdColormap;

/** Return the colour at t in 0..1 (clamped). */
TdColor td_colormap_at (TdColormap map, double t);

/** Return the name of a map. */
const char *td_colormap_name (TdColormap map);

G_END_DECLS
