/*
 * What outlived its iteration, over the iterations: one band for each holder or site, those
 * that grow uppermost.  The rows below are its legend.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-growth-private.h"

#include <math.h>

#include "td-memory.h"

#define AXIS 58.0
#define FOOT 22.0
#define TOP 8.0

/* Holders of one category are told apart by what is drawn over their colour. */
static const TdPattern patterns[TD_GROWTH_BANDS]
    = { TD_PATTERN_NONE,  TD_PATTERN_HATCH_UP,   TD_PATTERN_DOTS,    TD_PATTERN_HATCH_DOWN,
        TD_PATTERN_CROSS, TD_PATTERN_HORIZONTAL, TD_PATTERN_VERTICAL };

TdStyle
td__growth_look (const TdHolders *self, const TdHolder *h, guint place)
{
  const guint category = self->by == TD_HOLDERS_BY_SITE ? h->category : h->largest.category;

  if (h->others || place >= TD_GROWTH_BANDS)
    return (TdStyle){ .fill = TD_ROLE_OTHER, .flags = TD_PRIM_AREA };
  return (TdStyle){ .fill = td_category_role (category),
                    .pattern = patterns[place],
                    .flags = TD_PRIM_AREA };
}

typedef struct
{
  TdSceneBuilder *b;
  const TdHolders *holders;
  TdSceneRect plot;
  double most;
} Curve;

static double
x_of (const Curve *c, guint mark)
{
  const TdHoldersMark *marks = c->holders->marks;
  const double first = (double)marks[0].iteration,
               last = (double)marks[c->holders->n_marks - 1].iteration;

  return c->plot.x
         + (last > first ? ((double)marks[mark].iteration - first) / (last - first) : 0)
               * c->plot.width;
}

static double
y_of (const Curve *c, double bytes)
{
  return c->plot.y + c->plot.height * (1 - bytes / c->most);
}

/* Add what these bytes are above `base`, which is then above them. */
static void
add_band (const Curve *c, const guint64 *bytes, double *base, const TdStyle *style)
{
  const guint n = c->holders->n_marks;
  g_autofree TdScenePoint *q = g_new (TdScenePoint, 2 * n);

  for (guint i = 0; i < n; i++)
    {
      q[2 * n - 1 - i] = (TdScenePoint){ x_of (c, i), y_of (c, base[i]) };
      base[i] += (double)bytes[i];
      q[i] = (TdScenePoint){ x_of (c, i), y_of (c, base[i]) };
    }
  td_scene_add_polygon (c->b, q, (int)(2 * n), style);
}

static void
add_edge (const Curve *c, const double *top, const TdStyle *style)
{
  const guint n = c->holders->n_marks;
  g_autofree TdScenePoint *q = g_new (TdScenePoint, n);

  for (guint i = 0; i < n; i++)
    q[i] = (TdScenePoint){ x_of (c, i), y_of (c, top[i]) };
  td_scene_add_line (c->b, q, (int)n, style);
}

static void
add_axes (const Curve *c)
{
  const TdHoldersMark *marks = c->holders->marks;
  const guint last = c->holders->n_marks - 1;
  const double step
      = td_format_byte_step (c->most / 1.05, (int)CLAMP (c->plot.height / 32, 2, 6));
  TdStyle line = { .stroke = TD_ROLE_HAIRLINE };
  TdTextStyle bytes = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = 1 };

  for (double v = 0; v <= c->most; v += step)
    {
      const double y = round (y_of (c, v)) + 0.5;
      const TdScenePoint q[] = { { c->plot.x, y }, { c->plot.x + c->plot.width, y } };
      char label[TD_FORMAT_SIZE];

      td_scene_add_line (c->b, q, 2, &line);
      td_scene_add_text (c->b, c->plot.x - 6, y, td_format_tick_bytes (label, (guint64)v),
                         &bytes);
    }
  for (guint i = 0; i <= 1; i++)
    {
      const guint mark = i * last;
      TdTextStyle text = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = i };
      char label[40];

      g_snprintf (label, sizeof label, "%s%" G_GINT64_FORMAT, i == 0 ? "iteration " : "",
                  marks[mark].iteration);
      td_scene_add_text (c->b, x_of (c, mark), c->plot.y + c->plot.height + 11, label, &text);
    }
}

/* The sum of all beyond the bands that have a row's look of their own. */
static guint64 *
sum_of_rest (const TdHolders *h, const guint *order)
{
  guint64 *sum = g_new0 (guint64, h->n_marks);

  for (guint k = TD_GROWTH_BANDS; k < h->n_holders; k++)
    for (guint i = 0; i < h->n_marks; i++)
      sum[i] += h->holders[order[k]].bytes[i];
  return sum;
}

void
td__growth_add_curve (TdSceneBuilder *b, const TdHolders *holders, const TdRetained *retained,
                      const guint *order, guint cursor, TdSceneRect place)
{
  const guint n = MIN (holders->n_holders, TD_GROWTH_BANDS);
  g_autofree double *base = g_new0 (double, holders->n_marks);
  g_autofree double *total = g_new0 (double, holders->n_marks);
  g_autofree guint64 *rest = sum_of_rest (holders, order);
  const TdStyle others = { .fill = TD_ROLE_OTHER, .flags = TD_PRIM_AREA };
  const TdStyle edge = { .stroke = TD_ROLE_TEXT, .stroke_width = 1.2 };
  const TdStyle chosen = { .stroke = TD_ROLE_ACCENT, .stroke_width = 2 };
  Curve c = { b,
              holders,
              { place.x + AXIS, place.y + TOP, place.width - AXIS, place.height - TOP - FOOT },
              1 };

  for (guint k = 0; k < holders->n_holders; k++)
    for (guint i = 0; i < holders->n_marks; i++)
      total[i] += (double)holders->holders[k].bytes[i];
  for (guint i = 0; i < holders->n_marks; i++)
    c.most = MAX (c.most, total[i] * 1.05);
  add_axes (&c);
  if (holders->n_holders > TD_GROWTH_BANDS)
    {
      td_scene_mark (b, TD_TAG_ROW, 0, TD_GROWTH_BANDS, "all rows further down");
      add_band (&c, rest, base, &others);
      td_scene_unmark (b);
    }
  /* what grows most, the first row, lies on top of all */
  for (guint k = n; k-- > 0;)
    {
      const TdHolder *h = &holders->holders[order[k]];
      const TdStyle look = td__growth_look (holders, h, k);
      g_autofree char *words = td_growth_describe (holders, retained, h);
      g_autofree double *floor = g_memdup2 (base, holders->n_marks * sizeof *base);

      td_scene_mark (b, TD_TAG_ROW, 0, k, words);
      add_band (&c, h->bytes, base, &look);
      td_scene_unmark (b);
      if (cursor == k + 1)
        {
          add_edge (&c, floor, &chosen);
          add_edge (&c, base, &chosen);
        }
    }
  add_edge (&c, total, &edge);
}
