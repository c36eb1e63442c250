/* Line charts as SVG: axes with round numbers, lines, a legend.
 *
 * The engine links no drawing library; SVG is text.  Colours: Okabe and Ito's eight, which
 * people with any kind of colour vision can tell apart.
 * SPDX-License-Identifier: MIT */
#include "chart.h"

#include <math.h>
#include <string.h>

enum
{
  WIDTH = 640,
  PANEL_HEIGHT = 300,
  LEFT = 72,
  RIGHT = 16,
  TOP = 28,
  BOTTOM = 44,
  MARKERS_MOST = 60 /* points; more of them hide the line */
};

static const char *const palette[] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                       "#e69f00", "#56b4e9", "#8b7a00", "#000000" };
#define N_COLORS (int)(sizeof palette / sizeof palette[0])

typedef struct
{
  double low, high, tick;
} Axis;

/* 1, 2 or 5 times a power of ten, about a fifth of the range. */
static double
round_tick (double range)
{
  double power = pow (10, floor (log10 (range / 5))), part = range / 5 / power;

  return power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
}

static Axis
axis_of (const TdPanel *p, bool is_x)
{
  double low = INFINITY, high = -(double)INFINITY;
  Axis axis;

  for (int s = 0; s < p->n_series; s++)
    for (int64_t i = 0; i < p->series[s].n; i++)
      {
        double v = is_x ? p->series[s].x[i] : p->series[s].y[i];

        if (isfinite (v))
          {
            low = fmin (low, v);
            high = fmax (high, v);
          }
      }
  if (low > high)
    low = 0, high = 1;
  if (high - low < 1e-12 * fmax (fabs (low), fabs (high)) || high == low)
    {
      double margin = high != 0 ? fabs (high) * 0.1 : 0.5;

      low -= margin;
      high += margin;
    }
  axis.tick = round_tick (high - low);
  axis.low = is_x ? low : floor (low / axis.tick) * axis.tick;
  axis.high = is_x ? high : ceil (high / axis.tick) * axis.tick;
  return axis;
}

static double
place (const Axis *axis, double value, double from, double to)
{
  return from + (value - axis->low) / (axis->high - axis->low) * (to - from);
}

static void
draw_axes (TdText *svg, const TdPanel *p, const Axis *x, const Axis *y, double top)
{
  const double left = LEFT, right = WIDTH - RIGHT, low = top + PANEL_HEIGHT - BOTTOM;
  const char *line = p->grid ? "#dddddd" : "none";

  for (double v = ceil (x->low / x->tick - 1e-9) * x->tick; v <= x->high + 1e-9 * x->tick;
       v += x->tick)
    {
      double at = place (x, v, left, right);

      td__text_add (svg,
                    "<path d=\"M%.1f %.1fV%.1f\" stroke=\"%s\"/>"
                    "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g</text>\n",
                    at, top + TOP, low, line, at, low + 16, fabs (v) < 1e-9 * x->tick ? 0 : v);
    }
  for (double v = y->low; v <= y->high + 1e-9 * y->tick; v += y->tick)
    {
      double at = place (y, v, low, top + TOP);

      td__text_add (svg,
                    "<path d=\"M%.1f %.1fH%.1f\" stroke=\"%s\"/>"
                    "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                    left, at, right, line, left - 6, at + 4, fabs (v) < 1e-9 * y->tick ? 0 : v);
    }
  td__text_add (svg,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" "
                "stroke=\"#555555\"/>\n",
                left, top + TOP, right - left, low - top - TOP);
  if (p->x_label != NULL)
    {
      td__text_add (svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
                    (left + right) / 2, low + 34);
      td__text_add_xml (svg, p->x_label);
      td__text_add (svg, "</text>\n");
    }
  if (p->title != NULL)
    {
      td__text_add (svg, "<text x=\"%.1f\" y=\"%.1f\" font-weight=\"bold\">", left, top + 18);
      td__text_add_xml (svg, p->title);
      td__text_add (svg, "</text>\n");
    }
}

static void
draw_series (TdText *svg, const TdPanel *p, const TdSeries *s, const Axis *x, const Axis *y,
             double top)
{
  const double low = top + PANEL_HEIGHT - BOTTOM;
  const char *color = palette[s->color % N_COLORS];
  bool is_down = false;

  td__text_add (svg, "<g stroke=\"%s\" fill=\"none\" stroke-width=\"1.5\" opacity=\"%g\">",
                color, s->opacity > 0 ? s->opacity : 1.0);
  td__text_add (svg, "<path d=\"");
  for (int64_t i = 0; i < s->n; i++)
    {
      bool ok = isfinite (s->x[i]) && isfinite (s->y[i]);

      if (ok)
        td__text_add (svg, "%c%.1f %.1f", is_down ? 'L' : 'M',
                      place (x, s->x[i], LEFT, WIDTH - RIGHT),
                      place (y, s->y[i], low, top + TOP));
      is_down = ok;
    }
  td__text_add (svg, "\"/></g>\n");
  for (int64_t i = 0; i < s->n && p->marker && s->n <= MARKERS_MOST; i++)
    if (isfinite (s->x[i]) && isfinite (s->y[i]))
      td__text_add (svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\"/>\n",
                    place (x, s->x[i], LEFT, WIDTH - RIGHT), place (y, s->y[i], low, top + TOP),
                    color);
}

/* In the title's line, from the right; letters are taken to be 7 wide. */
static void
draw_legend (TdText *svg, const TdPanel *p, double top)
{
  double at = WIDTH - RIGHT;

  for (int s = p->n_series - 1; s >= 0; s--)
    if (p->series[s].name != NULL)
      {
        at -= 7.0 * (double)strlen (p->series[s].name);
        td__text_add (svg,
                      "<path d=\"M%.1f %.1fh18\" stroke=\"%s\" stroke-width=\"2\"/>"
                      "<text x=\"%.1f\" y=\"%.1f\">",
                      at - 24, top + 14, palette[p->series[s].color % N_COLORS], at, top + 18);
        td__text_add_xml (svg, p->series[s].name);
        td__text_add (svg, "</text>\n");
        at -= 36;
      }
}

void
td__chart_svg (TdText *svg, const TdPanel *panels, int n)
{
  td__text_add (svg,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
                "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
                WIDTH, n * PANEL_HEIGHT, WIDTH, n * PANEL_HEIGHT);
  for (int i = 0; i < n; i++)
    {
      const TdPanel *p = &panels[i];
      Axis x = axis_of (p, true), y = axis_of (p, false);
      double top = (double)i * PANEL_HEIGHT;

      draw_axes (svg, p, &x, &y, top);
      for (int s = 0; s < p->n_series; s++)
        draw_series (svg, p, &p->series[s], &x, &y, top);
      if (p->legend)
        draw_legend (svg, p, top);
    }
  td__text_add (svg, "</svg>\n");
}
