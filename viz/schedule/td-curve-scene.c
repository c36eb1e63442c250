/*
 * Curves of reports over iterations.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "td-curve-private.h"

void
td__curve_find (const TdCurves *curves, guint curve, gint64 from, gint64 to, guint *first,
                guint *end)
{
  guint n = td_curves_length (curves, curve);
  gint64 limit[2] = { from, to + 1 };
  guint found[2];

  for (int k = 0; k < 2; k++)
    {
      guint lo = 0, hi = n;

      while (lo < hi)
        {
          guint mid = (lo + hi) / 2;
          gint64 iteration;
          double value;

          td_curves_get (curves, curve, mid, &iteration, &value);
          if (iteration < limit[k])
            lo = mid + 1;
          else
            hi = mid;
        }
      found[k] = lo;
    }
  *first = found[0];
  *end = found[1];
}

void
td__curve_add (TdSceneBuilder *b, const TdCurves *curves, guint curve, const TdSceneRect *plot,
               gint64 from, gint64 to, double lo, double hi, const TdStyle *style)
{
  guint first, end;

  td__curve_find (curves, curve, from, to, &first, &end);
  guint n = end - first, columns = MIN (n, (guint)MAX (plot->width, 1));
  g_autofree TdScenePoint *q = g_new (TdScenePoint, 2 * columns + 1);
  guint k = 0;
  gboolean down = FALSE;

  for (guint i = 0; i < columns; i++)
    {
      guint a = first + (guint)((guint64)i * n / columns),
            z = first + (guint)((guint64)(i + 1) * n / columns);
      gint64 iteration;
      double value, min, max;

      td_curves_get (curves, curve, a, &iteration, &value);
      td_curves_range (curves, curve, a, z, &min, &max);
      if (min > max)
        continue; /* nothing finite here */
      double x = plot->x
                 + plot->width * ((double)(iteration - from) + 0.5) / (double)(to - from + 1);
      double y_min = plot->y + plot->height * (1 - (min - lo) / (hi - lo));
      double y_max = plot->y + plot->height * (1 - (max - lo) / (hi - lo));
      /* in turn down and up, so that a column costs two points and no line crosses back */
      q[k++] = (TdScenePoint){ x, down ? y_max : y_min };
      if (z - a > 1)
        q[k++] = (TdScenePoint){ x, down ? y_min : y_max };
      down = !down;
    }
  if (k == 1)
    {
      TdStyle dot = { .fill = style->stroke };

      td_scene_add_shape (b, TD_PRIM_ELLIPSE, (TdSceneRect){ q[0].x - 2, q[0].y - 2, 4, 4 }, 0,
                          &dot);
    }
  else
    td_scene_add_line (b, q, (int)k, style);
}

/* Colours of curves in order: those of the categories, which were chosen to be told apart. */
static const TdRole roles[] = { TD_ROLE_PARAMETER, TD_ROLE_GRADIENT,  TD_ROLE_ACTIVATION,
                                TD_ROLE_OPTIMIZER, TD_ROLE_WORKSPACE, TD_ROLE_INPUT };
static const TdDash dashes[] = { TD_DASH_NONE, TD_DASH_DASHED, TD_DASH_FINE };

/* One plot for each curve: values of loss and accuracy share no scale. */
static void
add_curve_plot (TdSceneBuilder *b, const TdCurves *curves, guint curve, TdSceneRect box,
                gint64 from, gint64 to, const TdPanelView *view)
{
  TdSceneRect plot = { box.x + 52, box.y + 20, box.width - 66, box.height - 28 };
  TdTextStyle title = {
    .role = TD_ROLE_TEXT, .size = TD_TEXT_CAPTION, .bold = TRUE, .max_width = box.width * 0.6
  };
  TdTextStyle value = { .role = TD_ROLE_TEXT, .size = TD_TEXT_CAPTION };
  TdTextStyle axis = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = 1 };
  TdStyle grid = { .stroke = TD_ROLE_HAIRLINE };
  TdStyle line = { .stroke = roles[curve % G_N_ELEMENTS (roles)],
                   .stroke_width = 1.6,
                   .dash = dashes[(curve / G_N_ELEMENTS (roles)) % G_N_ELEMENTS (dashes)] };
  guint first, end, bad;
  double lo, hi;
  char text[TD_FORMAT_SIZE];

  td__curve_find (curves, curve, from, to, &first, &end);
  bad = td_curves_range (curves, curve, first, end, &lo, &hi);
  td_scene_add_text (b, plot.x, box.y + 8, td_curves_key (curves, curve), &title);
  if (lo > hi)
    lo = hi = 0;
  if (hi - lo < 1e-12)
    {
      lo -= 0.5;
      hi += 0.5;
    }
  double step = td_format_step (hi - lo, MAX (2, (int)(plot.height / 30)));
  for (double v = ceil (lo / step) * step; v <= hi + step * 1e-9; v += step)
    {
      double y = round (plot.y + plot.height * (1 - (v - lo) / (hi - lo))) + 0.5;
      const TdScenePoint q[] = { { plot.x, y }, { plot.x + plot.width, y } };

      td_scene_add_line (b, q, 2, &grid);
      td_scene_add_text (b, plot.x - 6, y,
                         td_format_value (text, fabs (v) < step * 1e-6 ? 0 : v), &axis);
    }
  td_scene_mark (b, TD_TAG_ROW, 0, curve, td_curves_key (curves, curve));
  td__curve_add (b, curves, curve, &plot, from, to, lo, hi, &line);
  td_scene_unmark (b);
  td__curve_find (curves, curve, from, MIN (view->iteration, to), &first, &end);
  if (end > first)
    {
      gint64 iteration;
      double v;

      td_curves_get (curves, curve, end - 1, &iteration, &v);
      if (!isfinite (v))
        value.role = TD_ROLE_ERROR;
      double after = td_text_width (td_curves_key (curves, curve), TD_TEXT_CAPTION, TRUE);
      td_scene_add_text (b, plot.x + MIN (after, box.width * 0.6) + 10, box.y + 8,
                         td_format_value (text, v), &value);
    }
  if (bad > 0)
    {
      TdTextStyle warn = { .role = TD_ROLE_ERROR, .size = TD_TEXT_AXIS, .align = 0.5 };
      char what[64];

      g_snprintf (what, sizeof what, "✕ %u %s not finite", bad,
                  td_plural (bad, "value is", "values are"));
      td_scene_add_text (b, plot.x + plot.width / 2, box.y + 8, what, &warn);
    }
}

TdScene *
td_curves_scene (const TdCurves *curves, const TdPanelView *view)
{
  guint n = td_curves_n (curves);
  double w = view->width > 0 ? view->width : 720,
         h = view->height > 0 ? view->height : 18 + 130.0 * n;
  gint64 from = G_MAXINT64, to = G_MININT64;

  for (guint i = 0; i < n; i++)
    if (td_curves_length (curves, i) > 0)
      {
        gint64 a, z;
        double v;

        td_curves_get (curves, i, 0, &a, &v);
        td_curves_get (curves, i, td_curves_length (curves, i) - 1, &z, &v);
        from = MIN (from, a);
        to = MAX (to, z);
      }
  if (from <= to && !td_range_is_all (view->range))
    {
      from = view->range.first;
      to = view->range.end - 1;
    }
  if (from > to)
    return td_panel_message (view, "Nothing reported",
                             "td_report (\"loss\", value) draws a curve here.");
  TdSceneBuilder *b = td_scene_builder_new (w, h);
  td_scene_set_background (b, TD_ROLE_VIEW);
  double each = (h - 18) / n;
  for (guint i = 0; i < n; i++)
    add_curve_plot (b, curves, i, (TdSceneRect){ 0, 4 + i * each, w, each }, from, to, view);
  TdSceneRect all = { 52, 10, w - 66, h - 28 };
  TdTextStyle axis = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = 0.5 };
  for (int i = 0; i <= 4; i++)
    {
      gint64 v = from + (to - from) * i / 4;
      char text[24];

      if (i > 0 && to - from < 4 && i < 4)
        continue;
      g_snprintf (text, sizeof text, "%" G_GINT64_FORMAT, v);
      td_scene_add_text (
          b, all.x + all.width * ((double)(v - from) + 0.5) / (double)(to - from + 1), h - 9,
          text, &axis);
    }
  if (view->iteration >= from && view->iteration <= to)
    td_panel_add_playhead (
        b,
        all.x + all.width * ((double)(view->iteration - from) + 0.5) / (double)(to - from + 1),
        6, h - 18);
  TdSceneAxes axes = { .box = all, .x0 = (double)from, .x1 = (double)to + 1 };
  td_scene_set_axes (b, &axes);
  return td_scene_builder_end (b);
}
