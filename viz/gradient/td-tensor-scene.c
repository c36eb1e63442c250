/*
 * The picture of a tensor: its map with the scale, histogram, numbers, and what narrow floats
 * would lose.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "gradient/td-float-format.h"
#include "td-tensor-private.h"

#define EDGE 14.0
#define SCALE_WIDTH 50.0
#define N_BINS 61
#define MAX_LIMIT_SAMPLE 20000
/* Heights of what stands below the map. */
#define HISTOGRAM 80.0
#define NUMBERS 70.0
#define FLOAT_ROW 17.0
#define FLOATS (4 * FLOAT_ROW + 6)

typedef struct
{
  TdSceneBuilder *b;
  const TdTensor *tensor;
  const TdTensorView *how;
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

static void
add_floats (Picture *p, double y)
{
  static const char *const rows[] = { "overflow", "to zero", "subnormal" };
  TdTextStyle left = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION };
  TdTextStyle title = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION, .align = 1 };
  TdTextStyle right = { .role = TD_ROLE_TEXT, .size = TD_TEXT_CAPTION, .align = 1 };
  double side = (p->w - 2 * EDGE) * 0.28, each = (p->w - 2 * EDGE - side) / TD_N_FLOATS;

  td_scene_add_text (p->b, EDGE, y, "Share in", &left);
  for (int i = 0; i < 3; i++)
    td_scene_add_text (p->b, EDGE, y + (i + 1) * FLOAT_ROW, rows[i], &left);
  for (int f = 0; f < TD_N_FLOATS; f++)
    {
      TdFloatLoss loss = td_float_loss (f, p->tensor);
      const TdFloatShare shares[] = { loss.over, loss.zero, loss.subnormal };
      double x = EDGE + side + (f + 1) * each;

      td_scene_add_text (p->b, x, y, td_float_name (f), &title);
      for (int i = 0; i < 3; i++)
        {
          char text[TD_FORMAT_SIZE];

          td_format_share (text, shares[i].share, shares[i].honesty);
          right.role = i < 2 && shares[i].share > 0 ? TD_ROLE_WARNING : TD_ROLE_TEXT;
          right.bold = i < 2 && shares[i].share > 0;
          td_scene_add_text (p->b, x, y + (i + 1) * FLOAT_ROW, text, &right);
        }
    }
}

/* ---- where all that is ---- */

typedef struct
{
  gboolean has_map, has_histogram, has_floats, is_missing;
  double head, map; /* heights; 0: not there */
} Layout;

static gboolean
is_float (const TdTensor *t)
{
  return t->dtype <= TD_TAPE_BF16;
}

static Layout
lay_out (const TdTensor *t, const TdTensorView *how, const TdPanelView *view, double width)
{
  gboolean many = t->values && t->n_values > 1;
  Layout l = { .has_map = many,
               .has_histogram = many || t->has_stats,
               .has_floats = how->floats && is_float (t) && (t->values || t->has_stats),
               .is_missing = !t->values && !t->has_stats,
               .head = *t->title ? 44 : 0 }; /* else the reader's own heading says it */

  if (l.has_map)
    {
      double rest = l.head + 14 + (l.has_histogram ? HISTOGRAM : 0) + NUMBERS
                    + (l.has_floats ? FLOATS : 0);
      double most = view->height > 0 ? MAX (view->height - rest, 1) : 0;
      l.map = td__tensor_map_height (t, how, width - 2 * EDGE - SCALE_WIDTH, most);
    }
  return l;
}

static double
height_of (const Layout *l)
{
  return l->head + (l->has_map ? l->map + 14 : 0) + (l->has_histogram ? HISTOGRAM : 0)
         + (l->is_missing ? 30 : 0) + NUMBERS + (l->has_floats ? FLOATS : 0);
}

static const TdTensorView usual = TD_TENSOR_VIEW_DEFAULT;

double
td_tensor_scene_height (const TdTensor *tensor, const TdTensorView *how,
                        const TdPanelView *view)
{
  Layout l = lay_out (tensor, how ? how : &usual, view, view->width > 0 ? view->width : 360);
  return height_of (&l);
}

TdScene *
td_tensor_scene (const TdTensor *tensor, const TdTensorView *how, const TdPanelView *view)
{
  Picture p = { .tensor = tensor,
                .how = how ? how : &usual,
                .w = view->width > 0 ? view->width : 360 };
  TdTextStyle title = { .role = TD_ROLE_TEXT,
                        .size = TD_TEXT_BODY,
                        .bold = TRUE,
                        .middle = TRUE,
                        .max_width = p.w - 2 * EDGE };
  TdTextStyle dim
      = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION, .max_width = p.w - 2 * EDGE };
  Layout l = lay_out (tensor, p.how, view, p.w);
  double y = l.head;

  p.b = td_scene_builder_new (p.w, 0);
  td_scene_set_background (p.b, TD_ROLE_VIEW);
  if (l.head > 0)
    {
      td_scene_add_text (p.b, EDGE, 16, tensor->title, &title);
      td_scene_add_text (p.b, EDGE, 35, tensor->subtitle, &dim);
    }
  if (l.has_map)
    {
      p.limit = find_limit (tensor, p.how->percentile);
      TdSceneRect box = { EDGE, y + 8, p.w - 2 * EDGE - SCALE_WIDTH, l.map };
      add_scale (&p, td__tensor_add_map (p.b, tensor, p.how, box, p.limit));
      y += l.map + 14;
    }
  if (l.has_histogram)
    {
      add_histogram (&p, (TdSceneRect){ EDGE, y + 8, p.w - 2 * EDGE, 48 });
      y += HISTOGRAM;
    }
  if (l.is_missing)
    {
      td_scene_add_text (p.b, EDGE, y + 14, "Values not recorded at this moment.", &dim);
      y += 30;
    }
  add_numbers (&p, y + 12);
  if (l.has_floats)
    add_floats (&p, y + NUMBERS);
  td_scene_set_size (p.b, p.w, height_of (&l));
  return td_scene_builder_end (p.b);
}
