/*
 * The picture of a tensor: heat map of a slice with its scale, histogram, numbers.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "td-tensor-private.h"

#define EDGE 14.0
#define SCALE_WIDTH 50.0
#define N_BINS 61
#define MAX_LIMIT_SAMPLE 20000

typedef struct
{
  TdSceneBuilder *b;
  const TdTensor *tensor;
  const TdTensorSlice *slice;
  TdTensorMatrix m;
  double w, limit; /* the scale goes from -limit to limit */
} Picture;

static gint
by_value (gconstpointer a, gconstpointer b)
{
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

/* Half the width of the scale: the percentile of the magnitudes, so that one spike does not
 * make everything else white. */
static double
find_limit (const TdTensor *t, double percentile)
{
  guint64 step = MAX (1, t->n_values / MAX_LIMIT_SAMPLE);
  g_autoptr (GArray) magnitudes = g_array_new (FALSE, FALSE, sizeof (double));

  for (guint64 i = 0; i < t->n_values; i += step)
    if (isfinite (t->values[i]))
      {
        double v = fabs (t->values[i]);
        g_array_append_val (magnitudes, v);
      }
  if (magnitudes->len == 0)
    return 1;
  g_array_sort (magnitudes, by_value);
  guint i = (guint)((1 - percentile) * (magnitudes->len - 1) + 0.5);
  double limit = g_array_index (magnitudes, double, MIN (i, magnitudes->len - 1));
  if (limit <= 0) /* nearly all zero: then the largest */
    limit = g_array_index (magnitudes, double, magnitudes->len - 1);
  return limit > 0 ? limit : 1;
}

static double
scaled (const Picture *p, double v)
{
  if (!p->slice->log || !isfinite (v) || v == 0)
    return v;
  /* symmetric log over four decades below the limit */
  double t = 1 + log10 (fabs (v) / p->limit) / 4;
  return copysign (CLAMP (t, 0, 1) * p->limit, v);
}

/* Several elements share a cell: it shows the one of largest magnitude, and NaN before all. */
static void
pool_cell (const Picture *p, gint64 r0, gint64 r1, gint64 c0, gint64 c1, float *value,
           guint8 *cell)
{
  double best = 0;
  gboolean any = FALSE;

  for (gint64 r = r0; r < r1; r++)
    for (gint64 c = c0; c < c1; c++)
      {
        guint64 i = (guint64)(p->m.origin + r * p->m.row_stride + c * p->m.col_stride);
        double v;

        if (i >= p->tensor->n_values)
          continue;
        v = p->tensor->values[i];
        if (isnan (v))
          {
            *cell = TD_CELL_NAN;
            return;
          }
        if (!any || fabs (v) > fabs (best))
          best = v;
        any = TRUE;
      }
  *cell = !any            ? TD_CELL_MISSING
          : !isinf (best) ? TD_CELL_VALUE
          : best > 0      ? TD_CELL_PLUS_INF
                          : TD_CELL_MINUS_INF;
  *value = any && isfinite (best) ? (float)scaled (p, best) : 0;
}

static void
add_map (Picture *p, TdSceneRect box)
{
  gint64 rows = MIN (p->m.rows, (gint64)box.height), cols = MIN (p->m.cols, (gint64)box.width);
  gsize n = (gsize)MAX (rows, 0) * (gsize)MAX (cols, 0);
  g_autofree float *values = g_new0 (float, MAX (n, 1));
  g_autofree guint8 *cells = g_malloc0 (MAX (n, 1));
  TdStyle frame = { .stroke = TD_ROLE_HAIRLINE };

  for (gint64 r = 0; r < rows; r++)
    for (gint64 c = 0; c < cols; c++)
      pool_cell (p, r * p->m.rows / rows, (r + 1) * p->m.rows / rows, c * p->m.cols / cols,
                 (c + 1) * p->m.cols / cols, &values[r * cols + c], &cells[r * cols + c]);
  TdHeat heat = { .rows = (int)rows,
                  .cols = (int)cols,
                  .values = values,
                  .cells = cells,
                  .map = TD_COLORMAP_DIVERGING,
                  .lo = -p->limit,
                  .hi = p->limit };
  td_scene_mark (p->b, TD_TAG_CELL, 0, 0, NULL);
  td_scene_add_heat (p->b, box, &heat);
  td_scene_unmark (p->b);
  td_scene_add_shape (p->b, TD_PRIM_RECT, box, 0, &frame);
}

static void
add_scale (Picture *p, TdSceneRect map)
{
  float ramp[64];
  TdTextStyle text = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS };
  char label[TD_FORMAT_SIZE];
  double x = map.x + map.width + 8;

  for (int i = 0; i < 64; i++)
    ramp[i] = 1 - (float)i / 31.5f;
  TdHeat heat = {
    .rows = 64, .cols = 1, .values = ramp, .map = TD_COLORMAP_DIVERGING, .lo = -1, .hi = 1
  };
  td_scene_add_heat (p->b, (TdSceneRect){ x, map.y, 8, map.height }, &heat);
  td_scene_add_text (p->b, x + 12, map.y + 5, td_format_value (label, p->limit), &text);
  if (map.height > 40)
    td_scene_add_text (p->b, x + 12, map.y + map.height / 2, "0", &text);
  td_scene_add_text (p->b, x + 12, map.y + map.height - 5, td_format_value (label, -p->limit),
                     &text);
}

/* Counts into bins; returns the number of them. Exponent bins come from the recorder. */
static int
fill_bins (Picture *p, double *bins, double *lo, double *hi, gboolean *exponent)
{
  const TdTensor *t = p->tensor;

  *exponent = !t->values && t->has_stats;
  if (*exponent)
    {
      for (int k = 0; k < TD_TAPE_STATS_BINS; k++)
        bins[k] = t->stats.bins[k];
      *lo = TD_TAPE_STATS_MIN_EXPONENT;
      *hi = TD_TAPE_STATS_MIN_EXPONENT + TD_TAPE_STATS_BINS;
      return TD_TAPE_STATS_BINS;
    }
  *hi = find_limit (t, 0) * 1.02;
  *lo = -*hi;
  for (guint64 i = 0; i < t->n_values; i++)
    if (isfinite (t->values[i]))
      bins[CLAMP ((int)((t->values[i] - *lo) / (*hi - *lo) * N_BINS), 0, N_BINS - 1)]++;
  return N_BINS;
}

/* Writes 2 to the power of `exponent`, with raised digits. */
static void
format_power (char out[TD_FORMAT_SIZE], int exponent)
{
  static const char *const digits[] = { "⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹" };
  int n = ABS (exponent);

  g_snprintf (out, TD_FORMAT_SIZE, "2%s%s%s", exponent < 0 ? "⁻" : "",
              n >= 10 ? digits[n / 10 % 10] : "", digits[n % 10]);
}

static void
add_histogram (Picture *p, TdSceneRect box)
{
  double bins[N_BINS] = { 0 }, lo, hi, most = 1;
  gboolean exponent;
  int n = fill_bins (p, bins, &lo, &hi, &exponent);
  TdStyle bar = { .fill = TD_ROLE_FAINT };
  TdStyle line = { .stroke = TD_ROLE_BORDER };
  TdTextStyle text = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = 0.5 };
  TdTextStyle right = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = 1 };
  const TdScenePoint base[]
      = { { box.x, box.y + box.height }, { box.x + box.width, box.y + box.height } };
  char label[TD_FORMAT_SIZE], counts[96];

  for (int k = 0; k < n; k++)
    most = MAX (most, bins[k]);
  for (int k = 0; k < n; k++)
    {
      double w = box.width / n, h = box.height * bins[k] / most;

      if (bins[k] > 0)
        td_scene_add_shape (p->b, TD_PRIM_RECT,
                            (TdSceneRect){ box.x + k * w, box.y + box.height - MAX (h, 1),
                                           MAX (w - 1, 1), MAX (h, 1) },
                            0, &bar);
    }
  td_scene_add_line (p->b, base, 2, &line);
  for (int i = 0; i <= 4; i++)
    {
      double v = lo + (hi - lo) * i / 4;

      text.align = i / 4.0;
      if (exponent)
        format_power (label, (int)v);
      else
        td_format_value (label, fabs (v) < (hi - lo) * 1e-9 ? 0 : v);
      td_scene_add_text (p->b, box.x + box.width * i / 4, box.y + box.height + 9, label, &text);
    }
  guint64 sampled = p->tensor->values ? p->tensor->n_values : p->tensor->stats.n_sampled;
  char number[TD_FORMAT_SIZE];
  g_snprintf (counts, sizeof counts, "%s%s %s", sampled < p->tensor->n_total ? "≈ from " : "",
              td_format_count (number, (gint64)sampled),
              exponent ? td_plural (sampled, "magnitude", "magnitudes")
                       : td_plural (sampled, "value", "values"));
  td_scene_add_text (p->b, box.x + box.width, box.y - 2, counts, &right);
}

static void
add_number (Picture *p, int column, double y, const char *name, const char *value,
            gboolean alarm)
{
  double each = (p->w - 2 * EDGE) / 3, x = EDGE + column * each;
  TdTextStyle left = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION };
  TdTextStyle right = { .role = alarm ? TD_ROLE_ERROR : TD_ROLE_TEXT,
                        .size = TD_TEXT_CAPTION,
                        .align = 1,
                        .bold = alarm };

  td_scene_add_text (p->b, x, y, name, &left);
  td_scene_add_text (p->b, x + each - 16, y, value, &right);
}

static void
add_numbers (Picture *p, double y)
{
  TdTensorNumbers n = td__tensor_numbers (p->tensor);
  static const char *const names[] = { "min", "max", "mean", "σ", "‖·‖₂" };
  const double values[] = { n.min, n.max, n.mean, n.sigma, n.l2 };
  const struct
  {
    const char *name;
    guint64 count;
    gboolean alarm;
  } counts[] = { { "zero", n.zero, FALSE },
                 { "NaN", n.nan, n.nan > 0 },
                 { "±Inf", n.plus_inf + n.minus_inf, n.plus_inf + n.minus_inf > 0 } };
  char text[TD_FORMAT_SIZE];

  for (int i = 0; i < 5; i++)
    add_number (p, i % 3, y + (i / 3) * 19, names[i],
                td_format_honest (text, values[i], n.honesty), FALSE);
  for (int i = 0; i < 3; i++)
    {
      int at = i + 5;

      if (n.honesty == TD_HONEST_MISSING)
        strcpy (text, "—");
      else
        {
          char number[TD_FORMAT_SIZE];
          g_snprintf (text, sizeof text, "%s%s", n.honesty == TD_HONEST_SAMPLED ? "≈" : "",
                      td_format_count (number, (gint64)counts[i].count));
        }
      add_number (p, at % 3, y + (at / 3) * 19, counts[i].name, text, counts[i].alarm);
    }
  char number[TD_FORMAT_SIZE];
  add_number (p, 2, y + 38, "n", td_format_count (number, (gint64)p->tensor->n_total), FALSE);
}

TdScene *
td_tensor_scene (const TdTensor *tensor, const TdTensorSlice *slice, const TdPanelView *view)
{
  TdTensorSlice whole = TD_TENSOR_SLICE_DEFAULT;
  Picture p = { .tensor = tensor,
                .slice = slice ? slice : &whole,
                .w = view->width > 0 ? view->width : 360 };
  TdTextStyle title = { .role = TD_ROLE_TEXT,
                        .size = TD_TEXT_BODY,
                        .bold = TRUE,
                        .middle = TRUE,
                        .max_width = p.w - 2 * EDGE };
  TdTextStyle dim
      = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION, .max_width = p.w - 2 * EDGE };
  gboolean has_head = *tensor->title != '\0'; /* else the reader's own heading says it */
  double y = has_head ? 44 : 0;

  p.b = td_scene_builder_new (p.w, 0);
  td_scene_set_background (p.b, TD_ROLE_VIEW);
  if (has_head)
    {
      td_scene_add_text (p.b, EDGE, 16, tensor->title, &title);
      td_scene_add_text (p.b, EDGE, 35, tensor->subtitle, &dim);
    }
  if (tensor->values && tensor->n_values > 1)
    {
      p.m = td__tensor_matrix (tensor, p.slice);
      p.limit = find_limit (tensor, p.slice->percentile);
      /* square cells while there is room, but neither a thread nor a tower */
      double width = p.w - 2 * EDGE - SCALE_WIDTH;
      double height = width * (double)p.m.rows / (double)MAX (p.m.cols, 1);
      height = MAX (height, MIN ((double)p.m.rows * 6, 92));
      height = CLAMP (height, 28, p.m.rows * 2 > p.m.cols ? width : 92);
      TdSceneRect box = { EDGE, y + 8, width, height };

      if (p.m.rows > 0 && p.m.cols > 0)
        {
          add_map (&p, box);
          add_scale (&p, box);
        }
      y = box.y + box.height + 14;
    }
  if ((tensor->values && tensor->n_values > 1) || tensor->has_stats)
    {
      add_histogram (&p, (TdSceneRect){ EDGE, y + 8, p.w - 2 * EDGE, 48 });
      y += 8 + 48 + 24;
    }
  if (!tensor->values && !tensor->has_stats)
    {
      td_scene_add_text (p.b, EDGE, y + 14, "Values not recorded at this moment.", &dim);
      y += 30;
    }
  add_numbers (&p, y + 12);
  td_scene_set_size (p.b, p.w, y + 70);
  return td_scene_builder_end (p.b);
}
