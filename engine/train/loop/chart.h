/* Small line charts as SVG: panels one below the other.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "text.h"

#include <stdbool.h>
#include <stdint.h>

/** One line: y over x.  What is not finite interrupts it. */
typedef struct TdSeries
{
  const char *name;
  const double *x, *y;
  int64_t n;
  int color;      /**< index into the palette */
  double opacity; /**< 0: 1 */
} TdSeries;

typedef struct TdPanel
{
  const char *title, *x_label;
  const TdSeries *series;
  int n_series;
  bool marker, grid, legend;
} TdPanel;

/** Draw panels into an SVG document. */
void td__chart_svg (TdText *svg, const TdPanel *panels, int n_panels);
