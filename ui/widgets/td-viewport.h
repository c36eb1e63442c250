/* Pan and zoom of a canvas as plain arithmetic, so that it can be tested without a display.
 * Content is in scene units, the window in pixels; (x, y) is the content at the window's
 * corner. SPDX-License-Identifier: MIT */
#pragma once

#include "scene/td-scene.h"

#define TD_VIEWPORT_MIN_SCALE 0.05
#define TD_VIEWPORT_MAX_SCALE 4.0

typedef struct
{
  double x, y;          /* content units */
  double scale;         /* pixels per unit */
  double width, height; /* pixels */
  double content_width, content_height;
} TdViewport;

/** Show all of the content, at most at 100 %, centred. */
void td_viewport_fit (TdViewport *v);

/** Show as much as there is room for at `scale`, with (x, y) of the content in the middle as
 * far as that leaves nothing empty. */
void td_viewport_fit_around (TdViewport *v, double scale, double x, double y);

/** Zoom by `factor`, keeping what is under the pixel (px, py) there. */
void td_viewport_zoom_at (TdViewport *v, double factor, double px, double py);

/** Move the content by pixels; at least a corner of it stays in sight. */
void td_viewport_pan (TdViewport *v, double dx, double dy);

/** Move as little as needed to show `box` (content units) with `margin` pixels around it.
 * Return TRUE if it moved. */
gboolean td_viewport_show (TdViewport *v, const TdSceneRect *box, double margin);

/** Return what is in sight, in content units. */
TdSceneRect td_viewport_visible (const TdViewport *v);

/** Turn pixels into content units. */
void td_viewport_to_content (const TdViewport *v, double px, double py, double *x, double *y);
