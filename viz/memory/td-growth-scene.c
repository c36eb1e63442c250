/*
 * The picture of the page Growth: the stack over the iterations, and one row for each holder or
 * site in it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-growth-private.h"
#include <math.h>

#include "td-memory.h"

#define MARGIN 12.0
#define HEAD 24.0
#define ROW 30.0
#define NUMBERS 76.0 /* width of a column of bytes */
#define SERIES 150.0
#define CURVE_MIN 120.0 /* less height says nothing */
#define CURVE_MAX 260.0
#define ROWS_MIN 4         /* that stay below it */
#define BESIDE_WIDTH 560.0 /* from which on it may be beside them */
#define BESIDE_SHARE 0.42

typedef struct
{
  TdSceneBuilder *b;
  const TdHolders *holders;
  const TdRetained *retained;
  const TdPanelView *view;
  double left, width, series_x, series_width, now_x, rate_x;
} Rows;

/* Bytes over the marks, filled down to the row's floor; the scale is the row's own. */
static void
add_series (const Rows *r, const TdHolder *h, guint place, double y)
{
  guint n = r->holders->n_marks;
  double top = y - ROW / 2 + 5, floor = y + ROW / 2 - 5;
  guint64 most = 1;
  gint64 first = r->holders->marks[0].iteration, last = r->holders->marks[n - 1].iteration;
  g_autofree TdScenePoint *q = g_new (TdScenePoint, n + 2);
  TdStyle area = td__growth_look (r->holders, h, place);
  TdStyle line = { .stroke = h->grows ? TD_ROLE_WARNING : TD_ROLE_DIM, .stroke_width = 1.5 };

  for (guint i = 0; i < n; i++)
    most = MAX (most, h->bytes[i]);
  for (guint i = 0; i < n; i++)
    {
      double share = last > first ? (double)(r->holders->marks[i].iteration - first)
                                        / (double)(last - first)
                                  : 0;

      q[i] = (TdScenePoint){ r->series_x + share * r->series_width,
                             floor - (floor - top) * (double)h->bytes[i] / (double)most };
    }
  q[n] = (TdScenePoint){ q[n - 1].x, floor };
  q[n + 1] = (TdScenePoint){ q[0].x, floor };
  if (n < 2 || r->series_width <= 0)
    return;
  td_scene_add_polygon (r->b, q, (int)n + 2, &area);
  td_scene_add_line (r->b, q, (int)n, &line);
}

static void
add_row (const Rows *r, const TdHolder *h, guint place, double y)
{
  g_autofree char *title = td_growth_dup_title (r->holders, r->retained, h);
  g_autofree char *words = td_growth_describe (r->holders, r->retained, h);
  gboolean chosen = r->view->cursor == place + 1;
  TdStyle row = { .fill = chosen ? TD_ROLE_SELECTED_ROW : TD_ROLE_NONE };
  TdStyle swatch = td__growth_look (r->holders, h, place);
  TdTextStyle sign = { .role = TD_ROLE_WARNING, .size = TD_TEXT_LIST, .align = 0.5 };
  TdTextStyle name = { .role = TD_ROLE_TEXT,
                       .size = TD_TEXT_CAPTION,
                       .bold = h->grows,
                       .middle = TRUE,
                       .max_width = r->series_x - r->left - MARGIN - 38 };
  TdTextStyle number = { .role = TD_ROLE_TEXT, .size = TD_TEXT_CAPTION, .align = 1 };
  TdTextStyle dim = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION, .align = 1 };
  char now[TD_FORMAT_SIZE], rate[TD_FORMAT_SIZE], grown[TD_FORMAT_SIZE + 2];
  gint64 bytes = td_growth_bytes (r->holders, h);

  td_scene_mark (r->b, TD_TAG_ROW, 0, place, words);
  td_scene_add_shape (
      r->b, TD_PRIM_ROUND,
      (TdSceneRect){ r->left + 4, y - ROW / 2 + 1, r->width - r->left - 8, ROW - 2 }, 6, &row);
  td_scene_unmark (r->b);
  if (h->grows)
    td_scene_add_text (r->b, r->left + MARGIN + 4, y, "⚠", &sign);
  td_scene_add_shape (r->b, TD_PRIM_ROUND,
                      (TdSceneRect){ r->left + MARGIN + 14, y - 5, 10, 10 }, 2, &swatch);
  td_scene_add_text (r->b, r->left + MARGIN + 30, y, title, &name);
  add_series (r, h, place, y);
  td_scene_add_text (r->b, r->now_x, y,
                     td_format_bytes (now, h->bytes[r->holders->n_marks - 1]), &number);
  g_snprintf (grown, sizeof grown, "%s%s", bytes < 0 ? "−" : "+",
              td_format_bytes (rate, (guint64)ABS (bytes)));
  td_scene_add_text (r->b, r->rate_x, y, grown, h->grows ? &number : &dim);
}

static void
add_head (const Rows *r, double y)
{
  TdTextStyle left = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION };
  TdTextStyle right = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION, .align = 1 };
  const TdHoldersMark *marks = r->holders->marks;
  char over[80];

  g_snprintf (over, sizeof over, "it. %" G_GINT64_FORMAT " – %" G_GINT64_FORMAT,
              marks[0].iteration, marks[r->holders->n_marks - 1].iteration);
  td_scene_add_text (r->b, r->left + MARGIN + 30, y,
                     r->holders->by == TD_HOLDERS_BY_SITE ? "Made at" : "Holder", &left);
  if (r->series_width > 0)
    td_scene_add_text (r->b, r->series_x, y, over, &left);
  td_scene_add_text (r->b, r->now_x, y, "Now", &right);
  td_scene_add_text (r->b, r->rate_x, y, "Grown", &right);
}

/* The rows come first: the curve gets what a few of them leave. */
static double
curve_height (const TdHolders *holders, double height)
{
  const double left = height - HEAD - ROW * MIN (holders->n_holders, ROWS_MIN);

  return holders->n_marks < 2 || left < CURVE_MIN ? 0 : MIN (left * 0.75, CURVE_MAX);
}

TdScene *
td_growth_rows_scene (const TdHolders *holders, const TdRetained *retained,
                      const TdPanelView *view)
{
  g_autofree guint *order = td_growth_order (holders);
  double width = view->width > 0 ? view->width : 640;
  double rows = HEAD + ROW * holders->n_holders + MARGIN;
  double curve = view->height > 0        ? curve_height (holders, view->height)
                 : holders->n_marks >= 2 ? CURVE_MAX
                                         : 0;
  double height = view->height > 0 ? view->height : curve + rows;
  gboolean beside
      = curve <= 0 && holders->n_marks >= 2 && height >= CURVE_MIN && width >= BESIDE_WIDTH;
  guint fit = (guint)MAX (1, (height - curve - HEAD) / ROW), from = 0;
  Rows r = { .holders = holders, .retained = retained, .view = view, .width = width };

  if (holders->n_holders == 0)
    return td_panel_message (view, "Nothing outlived its iteration",
                             "What is still there after an iteration appears here.");
  r.rate_x = width - MARGIN;
  r.now_x = r.rate_x - NUMBERS;
  r.left = beside ? floor (width * BESIDE_SHARE) : 0;
  r.series_width = beside ? 0 : MIN (SERIES, width / 4); /* the curve has them all */
  r.series_x = r.now_x - NUMBERS + 4 - r.series_width;
  r.b = td_scene_builder_new (width, height);
  td_scene_set_background (r.b, TD_ROLE_VIEW);
  if (curve > 0)
    td__growth_add_curve (r.b, holders, retained, order, view->cursor,
                          (TdSceneRect){ MARGIN, 0, width - 2 * MARGIN, curve });
  else if (beside)
    td__growth_add_curve (r.b, holders, retained, order, view->cursor,
                          (TdSceneRect){ 0, 0, r.left - 4, height });
  add_head (&r, curve + HEAD / 2);
  if (view->cursor > fit)
    from = view->cursor - fit;
  for (guint i = from; i < holders->n_holders && i < from + fit; i++)
    add_row (&r, &holders->holders[order[i]], i, curve + HEAD + ROW * (i - from + 0.5));
  return td_scene_builder_end (r.b);
}
