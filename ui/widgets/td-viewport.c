/* The arithmetic of pan and zoom.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-viewport.h"

#include <glib.h>

/* Content smaller than the window is centred, larger content keeps a third of the window. */
static double
clamp_axis (double at, double window, double content)
{
  if (content <= window)
    return -(window - content) / 2;
  return CLAMP (at, -window / 3, content - window * 2 / 3);
}

static void
clamp_all (TdViewport *v)
{
  v->x = clamp_axis (v->x, v->width / v->scale, v->content_width);
  v->y = clamp_axis (v->y, v->height / v->scale, v->content_height);
}

void
td_viewport_fit (TdViewport *v)
{
  if (v->content_width <= 0 || v->content_height <= 0 || v->width <= 0 || v->height <= 0)
    {
      v->scale = 1;
      return;
    }
  double scale = MIN (v->width / v->content_width, v->height / v->content_height);
  v->scale = CLAMP (scale, TD_VIEWPORT_MIN_SCALE, 1.0);
  v->x = v->y = 0;
  clamp_all (v);
}

static double
fill_axis (double middle, double window, double content)
{
  return content <= window ? -(window - content) / 2
                           : CLAMP (middle - window / 2, 0, content - window);
}

void
td_viewport_fit_around (TdViewport *v, double scale, double x, double y)
{
  v->scale = CLAMP (scale, TD_VIEWPORT_MIN_SCALE, TD_VIEWPORT_MAX_SCALE);
  v->x = fill_axis (x, v->width / v->scale, v->content_width);
  v->y = fill_axis (y, v->height / v->scale, v->content_height);
}

void
td_viewport_zoom_at (TdViewport *v, double factor, double px, double py)
{
  double x, y;
  td_viewport_to_content (v, px, py, &x, &y);
  v->scale = CLAMP (v->scale * factor, TD_VIEWPORT_MIN_SCALE, TD_VIEWPORT_MAX_SCALE);
  v->x = x - px / v->scale;
  v->y = y - py / v->scale;
  clamp_all (v);
}

void
td_viewport_pan (TdViewport *v, double dx, double dy)
{
  v->x -= dx / v->scale;
  v->y -= dy / v->scale;
  clamp_all (v);
}

/* A box larger than the window shows its beginning. */
static double
shift_to_show (double at, double size, double from, double length)
{
  if (from < at || length > size)
    return from;
  if (from + length > at + size)
    return from + length - size;
  return at;
}

gboolean
td_viewport_show (TdViewport *v, const TdSceneRect *box, double margin)
{
  double m = margin / v->scale, x = v->x, y = v->y;
  v->x = shift_to_show (v->x, v->width / v->scale, box->x - m, box->width + 2 * m);
  v->y = shift_to_show (v->y, v->height / v->scale, box->y - m, box->height + 2 * m);
  clamp_all (v);
  return v->x != x || v->y != y;
}

TdSceneRect
td_viewport_visible (const TdViewport *v)
{
  return (TdSceneRect){ v->x, v->y, v->width / v->scale, v->height / v->scale };
}

void
td_viewport_to_content (const TdViewport *v, double px, double py, double *x, double *y)
{
  *x = v->x + px / v->scale;
  *y = v->y + py / v->scale;
}
