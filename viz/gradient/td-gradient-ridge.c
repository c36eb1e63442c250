/*
 * The ridge of histograms: drawn, and as text, CSV and JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-gradient-ridge.h"

#include <math.h>
#include <string.h>

#include "scene/td-json.h"
#include "td-gradient-private.h"

#define MARGIN 12.0
#define NUMBERS 44.0 /* of iterations, at the left */
#define SHARES 40.0  /* of zeros and of what is not finite, at the right */
#define TOP 38.0
#define BOTTOM 22.0
#define HIGH 3         /* steps that the highest bin takes */
#define LEAST_STEP 7.0 /* from one iteration to the next */
#define MOST_STEP 22.0

static const char *const of_names[TD_N_SPREADS]
    = { [TD_SPREAD_GRADIENT] = "gradient", [TD_SPREAD_WEIGHT] = "weight" };

static double
share (guint16 parts)
{
  return parts / 65535.0;
}

/* ---- to look at ---- */

typedef struct
{
  TdSceneBuilder *b;
  const TdGradientTable *table;
  const TdPanelView *view;
  const GArray *columns; /* gint64 */
  guint row, of;
  double x, width, step; /* of the plot of `of` */
  double peak;           /* the largest share of a bin that is drawn */
} Ridge;

static gint64
iteration_at (const Ridge *r, guint column)
{
  return g_array_index (r->columns, gint64, column);
}

static double
base_of (const Ridge *r, guint column)
{
  return TOP + (column + HIGH) * r->step;
}

static TdRole
role_of (const Ridge *r, gboolean here)
{
  return here                          ? TD_ROLE_ACCENT
         : r->of == TD_SPREAD_GRADIENT ? TD_ROLE_GRADIENT
                                       : TD_ROLE_PARAMETER;
}

static void
find_peak (Ridge *r)
{
  r->peak = 0;
  for (guint c = 0; c < r->columns->len; c++)
    {
      const TdSpread *s = td__gradient_spread (r->table, r->row, iteration_at (r, c), r->of);

      for (guint k = 0; s && k < TD_TAPE_STATS_BINS; k++)
        r->peak = MAX (r->peak, share (s->bin[k]));
    }
}

/* "iteration 12: 3.1 % zero, 0.2 % not finite, the most at 2^-9 (18 %)" */
static char *
tooltip_of (const TdSpread *s, gint64 iteration)
{
  GString *text = g_string_new (NULL);
  guint best = 0;

  g_string_append_printf (text, "iteration %" G_GINT64_FORMAT ":", iteration);
  for (guint k = 1; k < TD_TAPE_STATS_BINS; k++)
    if (s->bin[k] > s->bin[best])
      best = k;
  if (s->zero > 0)
    g_string_append_printf (text, " %.1f %% zero,", 100 * share (s->zero));
  if (s->bad > 0)
    g_string_append_printf (text, " %.1f %% not finite,", 100 * share (s->bad));
  if (s->bin[best] > 0)
    g_string_append_printf (
        text, " most between 2^%d and 2^%d (%.1f %%)", (int)best + TD_TAPE_STATS_MIN_EXPONENT,
        (int)best + TD_TAPE_STATS_MIN_EXPONENT + 1, 100 * share (s->bin[best]));
  if (text->str[text->len - 1] == ',')
    g_string_truncate (text, text->len - 1);
  return g_string_free (text, FALSE);
}

static void
add_outline (Ridge *r, const TdSpread *s, double base, gboolean here)
{
  TdScenePoint p[TD_TAPE_STATS_BINS + 2];
  const double bin = r->width / TD_TAPE_STATS_BINS, height = HIGH * r->step;
  TdStyle fill = { .fill = TD_ROLE_VIEW },
          area = { .fill = role_of (r, here), .flags = TD_PRIM_AREA },
          line = { .stroke = role_of (r, here), .stroke_width = here ? 2 : 1 };
  const int n = TD_TAPE_STATS_BINS + 2;

  p[0] = (TdScenePoint){ r->x, base };
  p[n - 1] = (TdScenePoint){ r->x + r->width, base };
  for (int k = 0; k < TD_TAPE_STATS_BINS; k++)
    p[k + 1]
        = (TdScenePoint){ r->x + (k + 0.5) * bin,
                          base - (r->peak > 0 ? share (s->bin[k]) / r->peak : 0) * height };
  td_scene_add_polygon (r->b, p, n, &fill); /* hides what is behind */
  td_scene_add_polygon (r->b, p, n, &area);
  td_scene_add_line (r->b, p, n, &line);
}

/* The share of zeros and of what is not finite, where there are any. */
static void
add_shares (Ridge *r, const TdSpread *s, double base)
{
  TdTextStyle style
      = { .role = s->bad > 0 ? TD_ROLE_ERROR : TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = 1 };
  guint16 parts = s->bad > 0 ? s->bad : s->zero;
  char text[24];

  if (parts == 0 || r->step < 9)
    return;
  g_snprintf (text, sizeof text, "%s%.0f %%", s->bad > 0 ? "∞ " : "0: ", 100 * share (parts));
  td_scene_add_text (r->b, r->x + r->width + SHARES, base - 4, text, &style);
}

static void
add_one (Ridge *r, guint column)
{
  gint64 iteration = iteration_at (r, column);
  const TdSpread *s = td__gradient_spread (r->table, r->row, iteration, r->of);
  double base = base_of (r, column);
  TdStyle none = { .stroke = TD_ROLE_HAIRLINE };
  const TdScenePoint line[] = { { r->x, base }, { r->x + r->width, base } };

  if (!s)
    {
      td_scene_add_line (r->b, line, 2, &none);
      return;
    }
  g_autofree char *tip = tooltip_of (s, iteration);
  td_scene_mark (r->b, TD_TAG_ITERATION, 0, iteration, tip);
  add_outline (r, s, base, iteration == r->view->iteration);
  td_scene_unmark (r->b);
  add_shares (r, s, base);
}

/* Powers of ten below the plot, by the powers of two that bins are of. */
static void
add_scale (Ridge *r, double y)
{
  TdTextStyle style = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = 0.5 };
  TdStyle grid = { .stroke = TD_ROLE_HAIRLINE };
  int every = r->width < 260 ? 3 : 2;

  for (int e = -7; e <= 2; e++)
    {
      double x
          = r->x
            + (e * M_LN10 / M_LN2 - TD_TAPE_STATS_MIN_EXPONENT) / TD_TAPE_STATS_BINS * r->width;
      const TdScenePoint line[] = { { x, TOP - 8 }, { x, y } };
      char text[16];

      if ((e + 9) % every != 0)
        continue;
      g_snprintf (text, sizeof text, e == 0 ? "1" : "1e%d", e);
      td_scene_add_line (r->b, line, 2, &grid);
      td_scene_add_text (r->b, x, y + 11, text, &style);
    }
}

static void
add_title (Ridge *r)
{
  TdTextStyle style = {
    .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION, .middle = TRUE, .max_width = r->width + SHARES
  };
  g_autofree char *text = g_strdup_printf ("size of the %s%s", of_names[r->of],
                                           r->peak > 0 ? "" : ": not recorded");

  td_scene_add_text (r->b, r->x, 30, text, &style);
}

static void
add_plot (Ridge *r, guint of, double x, double width)
{
  r->of = of;
  r->x = x;
  r->width = width;
  find_peak (r);
  add_title (r);
  add_scale (r, base_of (r, r->columns->len - 1));
  for (guint c = 0; c < r->columns->len; c++)
    add_one (r, c);
}

/* Numbers of iterations, as many as have room. */
static void
add_numbers (Ridge *r)
{
  guint every = (guint)ceil (td_text_pixels (TD_TEXT_AXIS) * 1.3 / r->step);

  for (guint c = 0; c < r->columns->len; c++)
    {
      gboolean here = iteration_at (r, c) == r->view->iteration;
      TdTextStyle style = { .role = here ? TD_ROLE_ACCENT : TD_ROLE_DIM,
                            .size = TD_TEXT_AXIS,
                            .align = 1,
                            .bold = here };
      char text[24];

      if (!here && (r->columns->len - 1 - c) % every != 0)
        continue;
      g_snprintf (text, sizeof text, "%" G_GINT64_FORMAT, iteration_at (r, c));
      td_scene_add_text (r->b, MARGIN + NUMBERS - 8, base_of (r, c) - 4, text, &style);
    }
}

static guint
selected_row (const TdGradientTable *table, const TdPanelView *view)
{
  for (guint row = 0; row < table->rows->len; row++)
    if (td_panel_is_selected (view, td_gradient_table_key (table, row)))
      return row;
  return 0;
}

TdScene *
td_gradient_scene_ridge (const TdGradientTable *table, const TdGradientRange *range,
                         const TdPanelView *view)
{
  double w = view->width > 0 ? view->width : 640, h = view->height > 0 ? view->height : 260,
         plot = (w - MARGIN - NUMBERS - 2 * SHARES - 2 * MARGIN) / 2;
  g_autoptr (TdGradientAxis) axis = td__gradient_axis_of (
      table, range, (guint)MAX (1, (h - TOP - BOTTOM) / LEAST_STEP - HIGH + 1));
  g_autoptr (GArray) columns = td__gradient_axis_list (axis);
  Ridge r = { .table = table, .view = view, .columns = columns };
  const char *title, *text;

  if (td__gradient_why_nothing (table, columns, &title, &text))
    return td_panel_message (view, title, text);
  if (!td__gradient_knows_norms (table, columns))
    return td_panel_message (view, "No statistics are recorded",
                             "Record with --level stats to see how values are spread.");
  r.row = selected_row (table, view);
  r.step = CLAMP ((h - TOP - BOTTOM) / (columns->len + HIGH - 1), LEAST_STEP, MOST_STEP);
  r.b = td_scene_builder_new (w, h);
  td_scene_set_background (r.b, TD_ROLE_VIEW);
  TdTextStyle name = { .role = TD_ROLE_TEXT,
                       .size = TD_TEXT_CAPTION,
                       .bold = TRUE,
                       .middle = TRUE,
                       .max_width = w - 2 * MARGIN };
  td_scene_add_text (r.b, MARGIN, 12, td_gradient_table_path (table, r.row), &name);
  add_plot (&r, TD_SPREAD_GRADIENT, MARGIN + NUMBERS, plot);
  add_plot (&r, TD_SPREAD_WEIGHT, MARGIN + NUMBERS + plot + SHARES + MARGIN, plot);
  add_numbers (&r);
  td_scene_set_size (r.b, w, MAX (h, base_of (&r, columns->len - 1) + BOTTOM));
  return td_scene_builder_end (r.b);
}

/* ---- in text ---- */

/* The bins as a line of eighths, each of the highest. */
static void
append_bars (GString *out, const TdSpread *s)
{
  static const char *const eighths[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
  guint16 peak = 1;

  for (guint k = 0; k < TD_TAPE_STATS_BINS; k++)
    peak = MAX (peak, s->bin[k]);
  for (guint k = 0; k < TD_TAPE_STATS_BINS; k++)
    g_string_append (out, eighths[(s->bin[k] * 8 + peak - 1) / peak]);
}

static void
print_text (const TdGradientTable *table, const GArray *columns, guint row, GString *out)
{
  g_string_append_printf (
      out, "%s: sizes of its elements, from 2^%d to 2^%d, the ends with what lies beyond\n",
      td_gradient_table_path (table, row), TD_TAPE_STATS_MIN_EXPONENT,
      TD_TAPE_STATS_MIN_EXPONENT + TD_TAPE_STATS_BINS);
  for (guint of = 0; of < TD_N_SPREADS; of++)
    for (guint c = 0; c < columns->len; c++)
      {
        gint64 iteration = g_array_index (columns, gint64, c);
        const TdSpread *s = td__gradient_spread (table, row, iteration, of);

        g_string_append_printf (out, "%-8s %6" G_GINT64_FORMAT "  ", of_names[of], iteration);
        if (s)
          append_bars (out, s);
        else
          g_string_append (out, "not recorded");
        if (s && s->zero > 0)
          g_string_append_printf (out, "  %.1f %% zero", 100 * share (s->zero));
        if (s && s->bad > 0)
          g_string_append_printf (out, "  %.1f %% not finite", 100 * share (s->bad));
        g_string_append_c (out, '\n');
      }
}

static void
print_csv (const TdGradientTable *table, const GArray *columns, guint row, GString *out)
{
  g_string_append (out, "parameter,of,iteration,zero,not_finite");
  for (int k = 0; k < TD_TAPE_STATS_BINS; k++)
    g_string_append_printf (out, ",2^%d", k + TD_TAPE_STATS_MIN_EXPONENT);
  g_string_append_c (out, '\n');
  for (guint of = 0; of < TD_N_SPREADS; of++)
    for (guint c = 0; c < columns->len; c++)
      {
        gint64 iteration = g_array_index (columns, gint64, c);
        const TdSpread *s = td__gradient_spread (table, row, iteration, of);

        if (!s)
          continue;
        td_csv_append (out, td_gradient_table_path (table, row));
        g_string_append_printf (out, ",%s,%" G_GINT64_FORMAT ",%.4f,%.4f", of_names[of],
                                iteration, share (s->zero), share (s->bad));
        for (guint k = 0; k < TD_TAPE_STATS_BINS; k++)
          g_string_append_printf (out, ",%.4f", share (s->bin[k]));
        g_string_append_c (out, '\n');
      }
}

static void
print_json (const TdGradientTable *table, const GArray *columns, guint row, GString *out)
{
  TdJson j;

  td_json_init (&j, out);
  td_json_begin_object (&j);
  td_json_member_string (&j, "path", td_gradient_table_path (table, row));
  td_json_member_int (&j, "least_exponent", TD_TAPE_STATS_MIN_EXPONENT);
  td_json_key (&j, "histograms");
  td_json_begin_array (&j);
  for (guint of = 0; of < TD_N_SPREADS; of++)
    for (guint c = 0; c < columns->len; c++)
      {
        gint64 iteration = g_array_index (columns, gint64, c);
        const TdSpread *s = td__gradient_spread (table, row, iteration, of);

        if (!s)
          continue;
        td_json_begin_object (&j);
        td_json_member_string (&j, "of", of_names[of]);
        td_json_member_int (&j, "iteration", iteration);
        td_json_member_double (&j, "zero", share (s->zero));
        td_json_member_double (&j, "not_finite", share (s->bad));
        td_json_key (&j, "shares");
        td_json_begin_array (&j);
        for (guint k = 0; k < TD_TAPE_STATS_BINS; k++)
          td_json_double (&j, share (s->bin[k]));
        td_json_end_array (&j);
        td_json_end_object (&j);
      }
  td_json_end_array (&j);
  td_json_end_object (&j);
}

char *
td_gradient_print_ridge (const TdGradientTable *table, const TdGradientRange *range, guint row,
                         const char *format)
{
  g_autoptr (TdGradientAxis) axis = td__gradient_axis_of (table, range, range->n);
  g_autoptr (GArray) columns = td__gradient_axis_list (axis);
  GString *out = g_string_new (NULL);

  if (g_str_equal (format, "json"))
    print_json (table, columns, row, out);
  else if (g_str_equal (format, "csv"))
    print_csv (table, columns, row, out);
  else
    print_text (table, columns, row, out);
  return g_string_free (out, FALSE);
}
