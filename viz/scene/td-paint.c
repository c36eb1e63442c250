/*
 * The one painter: a scene on any Cairo surface, culled, with less detail when there is much to
 * see.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "td-paint-text.h"
#include "td-scene-private.h"

typedef struct
{
  const TdScene *scene;
  const TdTheme *theme;
  cairo_t *cr;
  double scale;
  gboolean plain;      /* more than TD_LOD_NODES nodes are visible */
  const TdPrim *batch; /* style of the path being collected, plain mode only */
} Painter;

static void
set_color (Painter *t, TdColor c)
{
  cairo_set_source_rgba (t->cr, c.r, c.g, c.b, c.a);
}

static void
path_points (cairo_t *cr, const TdScenePoint *q, guint n)
{
  cairo_move_to (cr, q[0].x, q[0].y);
  for (guint i = 1; i < n; i++)
    cairo_line_to (cr, q[i].x, q[i].y);
}

static void
path_round (cairo_t *cr, const TdSceneRect *b, double r)
{
  r = MIN (r, MIN (b->width, b->height) / 2);
  cairo_new_sub_path (cr);
  cairo_arc (cr, b->x + b->width - r, b->y + r, r, -G_PI / 2, 0);
  cairo_arc (cr, b->x + b->width - r, b->y + b->height - r, r, 0, G_PI / 2);
  cairo_arc (cr, b->x + r, b->y + b->height - r, r, G_PI / 2, G_PI);
  cairo_arc (cr, b->x + r, b->y + r, r, G_PI, 3 * G_PI / 2);
  cairo_close_path (cr);
}

static void
path_cut (cairo_t *cr, const TdSceneRect *b, double c)
{
  c = MIN (c, MIN (b->width, b->height) / 2);
  const TdScenePoint q[8] = { { b->x + c, b->y },
                              { b->x + b->width - c, b->y },
                              { b->x + b->width, b->y + c },
                              { b->x + b->width, b->y + b->height - c },
                              { b->x + b->width - c, b->y + b->height },
                              { b->x + c, b->y + b->height },
                              { b->x, b->y + b->height - c },
                              { b->x, b->y + c } };
  path_points (cr, q, 8);
  cairo_close_path (cr);
}

static void
path_ellipse (cairo_t *cr, const TdSceneRect *b)
{
  cairo_save (cr);
  cairo_translate (cr, b->x + b->width / 2, b->y + b->height / 2);
  cairo_scale (cr, MAX (b->width, 1e-6) / 2, MAX (b->height, 1e-6) / 2);
  cairo_new_sub_path (cr);
  cairo_arc (cr, 0, 0, 1, 0, 2 * G_PI);
  cairo_close_path (cr);
  cairo_restore (cr);
}

/* Puts the primitive's outline into the current path. */
static void
path_of (Painter *t, const TdPrim *p)
{
  cairo_t *cr = t->cr;
  const TdSceneRect *b = &p->box;

  switch ((TdPrimKind)p->kind)
    {
    case TD_PRIM_ROUND:
      path_round (cr, b, p->radius);
      break;
    case TD_PRIM_CUT:
      path_cut (cr, b, p->radius);
      break;
    case TD_PRIM_OCTAGON:
      path_cut (cr, b, MIN (b->width, b->height) * 0.29);
      break;
    case TD_PRIM_ELLIPSE:
      path_ellipse (cr, b);
      break;
    case TD_PRIM_PLAYHEAD:
      cairo_move_to (cr, b->x, b->y);
      cairo_line_to (cr, b->x + b->width, b->y);
      cairo_line_to (cr, b->x + b->width / 2, b->y + b->height);
      cairo_close_path (cr);
      break;
    case TD_PRIM_CHEVRON_RIGHT:
      cairo_move_to (cr, b->x + b->width * 0.3, b->y);
      cairo_line_to (cr, b->x + b->width * 0.8, b->y + b->height / 2);
      cairo_line_to (cr, b->x + b->width * 0.3, b->y + b->height);
      break;
    case TD_PRIM_CHEVRON_DOWN:
      cairo_move_to (cr, b->x, b->y + b->height * 0.3);
      cairo_line_to (cr, b->x + b->width / 2, b->y + b->height * 0.8);
      cairo_line_to (cr, b->x + b->width, b->y + b->height * 0.3);
      break;
    case TD_PRIM_CROSS:
      cairo_move_to (cr, b->x, b->y);
      cairo_line_to (cr, b->x + b->width, b->y + b->height);
      cairo_move_to (cr, b->x + b->width, b->y);
      cairo_line_to (cr, b->x, b->y + b->height);
      break;
    case TD_PRIM_POLYLINE:
    case TD_PRIM_POLYGON:
      path_points (cr, td__scene_points (t->scene, p), p->n);
      if (p->kind == TD_PRIM_POLYGON)
        cairo_close_path (cr);
      break;
    case TD_PRIM_RECT:
    case TD_PRIM_TEXT:
    case TD_PRIM_HEAT:
      cairo_rectangle (cr, b->x, b->y, b->width, b->height);
      break;
    }
}

static void
set_dash (cairo_t *cr, guint8 dash, double width)
{
  static const struct
  {
    double on, off;
    cairo_line_cap_t cap;
  } dashes[] = {
    [TD_DASH_NONE] = { 0, 0, CAIRO_LINE_CAP_BUTT },
    [TD_DASH_DASHED] = { 4, 3, CAIRO_LINE_CAP_BUTT },
    [TD_DASH_DOTTED] = { 0.01, 5, CAIRO_LINE_CAP_ROUND },
    [TD_DASH_FINE] = { 1.2, 2.8, CAIRO_LINE_CAP_BUTT },
  };
  double pattern[2] = { dashes[dash].on, dashes[dash].off };

  cairo_set_line_cap (cr, dashes[dash].cap);
  cairo_set_dash (cr, pattern, dash == TD_DASH_NONE ? 0 : 2, 0);
  cairo_set_line_width (cr, width);
}

/* Draws the lines of a pattern inside the current clip, on a grid fixed to the scene. */
static void
pattern_lines (cairo_t *cr, guint8 pattern, const TdSceneRect *b)
{
  const double tile = TD_PATTERN_TILE;
  double x0 = floor (b->x / tile) * tile, x1 = b->x + b->width;
  double y0 = floor (b->y / tile) * tile, y1 = b->y + b->height;
  double h = y1 - y0;
  gboolean up = pattern == TD_PATTERN_HATCH_UP || pattern == TD_PATTERN_CROSS;
  gboolean down = pattern == TD_PATTERN_HATCH_DOWN || pattern == TD_PATTERN_CROSS;

  if (up)
    for (double x = floor ((x0 + y0) / tile) * tile; x < x1 + y1; x += tile)
      {
        cairo_move_to (cr, x - y0, y0);
        cairo_line_to (cr, x - y0 - h, y1);
      }
  if (down)
    for (double x = floor ((x0 - y1) / tile) * tile; x < x1 - y0; x += tile)
      {
        cairo_move_to (cr, x + y0, y0);
        cairo_line_to (cr, x + y0 + h, y1);
      }
  if (pattern == TD_PATTERN_HORIZONTAL)
    for (double y = y0; y < y1; y += tile / 1.5)
      {
        cairo_move_to (cr, x0, y + 1);
        cairo_line_to (cr, x1, y + 1);
      }
  if (pattern == TD_PATTERN_VERTICAL)
    for (double x = x0; x < x1; x += tile / 1.5)
      {
        cairo_move_to (cr, x + 1, y0);
        cairo_line_to (cr, x + 1, y1);
      }
}

static void
pattern_dots (cairo_t *cr, const TdSceneRect *b)
{
  const double tile = TD_PATTERN_TILE;

  cairo_set_line_cap (cr, CAIRO_LINE_CAP_ROUND);
  cairo_set_line_width (cr, 1.5);
  for (double y = floor (b->y / tile) * tile; y < b->y + b->height; y += tile)
    for (double x = floor (b->x / tile) * tile, k = fmod (y / tile, 2) != 0;
         x < b->x + b->width; x += tile)
      {
        cairo_move_to (cr, x + 1.5 + k * tile / 2, y + 3);
        cairo_line_to (cr, x + 1.51 + k * tile / 2, y + 3);
      }
}

static void
paint_pattern (Painter *t, const TdPrim *p)
{
  TdSceneRect b = p->box;
  double x0, y0, x1, y1;

  cairo_save (t->cr);
  cairo_clip (t->cr);
  cairo_clip_extents (t->cr, &x0, &y0, &x1, &y1); /* only what is visible gets lines */
  b = (TdSceneRect){ x0, y0, x1 - x0, y1 - y0 };
  set_dash (t->cr, TD_DASH_NONE, 1.2);
  set_color (t, t->theme->color[TD_ROLE_PATTERN]);
  if (p->pattern == TD_PATTERN_DOTS)
    pattern_dots (t->cr, &b);
  else
    pattern_lines (t->cr, p->pattern, &b);
  cairo_stroke (t->cr);
  cairo_restore (t->cr);
}

static void
paint_arrow (Painter *t, const TdScenePoint *from, const TdScenePoint *to, TdColor c,
             double width)
{
  TdScenePoint q[3];

  if (!td__arrow_head (from, to, 6 + width, q))
    return;
  path_points (t->cr, q, 3);
  cairo_close_path (t->cr);
  set_color (t, c);
  cairo_fill (t->cr);
}

static void
paint_stroke (Painter *t, const TdPrim *p)
{
  double width = td__stroke_width (t->theme, p);
  TdColor c = td__color (t->theme, p->stroke, p->stroke_alpha);

  set_dash (t->cr, p->dash, p->dash == TD_DASH_DOTTED ? width * 1.4 : width);
  if (p->kind == TD_PRIM_CHEVRON_RIGHT || p->kind == TD_PRIM_CHEVRON_DOWN)
    {
      cairo_set_line_cap (t->cr, CAIRO_LINE_CAP_ROUND);
      cairo_set_line_join (t->cr, CAIRO_LINE_JOIN_ROUND);
    }
  set_color (t, c);
  cairo_stroke (t->cr);
  cairo_set_line_join (t->cr, CAIRO_LINE_JOIN_MITER);
  if (p->kind == TD_PRIM_POLYLINE && !t->plain)
    {
      const TdScenePoint *q = td__scene_points (t->scene, p);

      if (p->flags & TD_PRIM_ARROW_END)
        paint_arrow (t, &q[p->n - 2], &q[p->n - 1], c, width);
      if (p->flags & TD_PRIM_ARROW_START)
        paint_arrow (t, &q[1], &q[0], c, width);
    }
}

static void
paint_shape (Painter *t, const TdPrim *p)
{
  gboolean fill = p->fill != TD_ROLE_NONE && p->kind < TD_PRIM_TEXT
                  && p->kind != TD_PRIM_CHEVRON_RIGHT && p->kind != TD_PRIM_CHEVRON_DOWN
                  && p->kind != TD_PRIM_CROSS && p->kind != TD_PRIM_POLYLINE;

  cairo_new_path (t->cr);
  path_of (t, p);
  if (fill)
    {
      set_color (t, td__color (t->theme, p->fill, td__fill_alpha (t->theme, p)));
      cairo_fill_preserve (t->cr);
    }
  if (p->pattern != TD_PATTERN_NONE && p->pattern != TD_PATTERN_OUTLINE && !t->plain)
    {
      paint_pattern (t, p);
      cairo_new_path (t->cr); /* the clip took the path */
      path_of (t, p);
    }
  if (p->stroke != TD_ROLE_NONE)
    paint_stroke (t, p);
  cairo_new_path (t->cr);
}

/* ---- heat maps ---- */

static void
paint_cell_mark (Painter *t, TdCell cell, double x, double y, double w, double h)
{
  cairo_t *cr = t->cr;
  double m = MIN (w, h);

  if (cell == TD_CELL_MISSING)
    {
      set_color (t, t->theme->color[TD_ROLE_FAINT]);
      cairo_rectangle (cr, x + w / 2 - 1, y + h / 2 - 1, 2, 2);
      cairo_fill (cr);
      return;
    }
  set_color (t, t->theme->color[TD_ROLE_ERROR]);
  if (cell == TD_CELL_NAN)
    {
      set_dash (cr, TD_DASH_NONE, MAX (1, m / 8));
      cairo_rectangle (cr, x + 0.5, y + 0.5, w - 1, h - 1);
      cairo_move_to (cr, x, y);
      cairo_line_to (cr, x + w, y + h);
      cairo_move_to (cr, x + w, y);
      cairo_line_to (cr, x, y + h);
      cairo_stroke (cr);
      return;
    }
  double up = cell == TD_CELL_PLUS_INF ? 1 : -1;
  cairo_move_to (cr, x + w / 2, y + h / 2 - up * h * 0.35);
  cairo_line_to (cr, x + w / 2 + m * 0.35, y + h / 2 + up * h * 0.35);
  cairo_line_to (cr, x + w / 2 - m * 0.35, y + h / 2 + up * h * 0.35);
  cairo_close_path (cr);
  cairo_fill (cr);
}

static void
paint_cells (Painter *t, const TdPrim *p, const TdSceneHeat *h)
{
  double cw = p->box.width / h->heat.cols, ch = p->box.height / h->heat.rows, gap = h->heat.gap;

  for (int r = 0; r < h->heat.rows; r++)
    for (int c = 0; c < h->heat.cols; c++)
      {
        TdCell cell = td__heat_cell (h, r, c);
        double x = p->box.x + c * cw, y = p->box.y + r * ch;

        if (cell == TD_CELL_VALUE)
          {
            set_color (t, td__heat_color (h, r, c));
            cairo_rectangle (t->cr, x, y, cw - gap, ch - gap);
            cairo_fill (t->cr);
          }
        else if (cell != TD_CELL_EMPTY)
          paint_cell_mark (t, cell, x, y, cw - gap, ch - gap);
      }
}

static guint32
pack (TdColor c)
{
  guint a = (guint)(c.a * 255 + 0.5);

  return a << 24 | (guint)(c.r * c.a * 255 + 0.5) << 16 | (guint)(c.g * c.a * 255 + 0.5) << 8
         | (guint)(c.b * c.a * 255 + 0.5);
}

/* Small cells: one image, stretched; what is not a value is a pixel of the error colour or
 * nothing. */
static void
paint_image (Painter *t, const TdPrim *p, const TdSceneHeat *h)
{
  cairo_surface_t *image
      = cairo_image_surface_create (CAIRO_FORMAT_ARGB32, h->heat.cols, h->heat.rows);
  guint8 *data = cairo_image_surface_get_data (image);
  int stride = cairo_image_surface_get_stride (image);

  if (cairo_surface_status (image) == CAIRO_STATUS_SUCCESS)
    {
      for (int r = 0; r < h->heat.rows; r++)
        for (int c = 0; c < h->heat.cols; c++)
          {
            TdCell cell = td__heat_cell (h, r, c);
            guint32 *out = (guint32 *)(data + (gsize)r * (gsize)stride) + c;

            if (cell == TD_CELL_VALUE)
              *out = pack (td__heat_color (h, r, c));
            else if (cell == TD_CELL_MISSING || cell == TD_CELL_EMPTY)
              *out = 0;
            else
              *out = pack (t->theme->color[TD_ROLE_ERROR]);
          }
      cairo_surface_mark_dirty (image);
      cairo_save (t->cr);
      cairo_translate (t->cr, p->box.x, p->box.y);
      cairo_scale (t->cr, p->box.width / h->heat.cols, p->box.height / h->heat.rows);
      cairo_set_source_surface (t->cr, image, 0, 0);
      cairo_pattern_set_filter (cairo_get_source (t->cr), CAIRO_FILTER_NEAREST);
      cairo_rectangle (t->cr, 0, 0, h->heat.cols, h->heat.rows);
      cairo_fill (t->cr);
      cairo_restore (t->cr);
    }
  cairo_surface_destroy (image);
}

static void
paint_heat (Painter *t, const TdPrim *p)
{
  const TdSceneHeat *h = &g_array_index (t->scene->heats, TdSceneHeat, p->first);
  double cell = MIN (p->box.width / h->heat.cols, p->box.height / h->heat.rows) * t->scale;

  if (cell >= 5 && (gsize)h->heat.rows * (gsize)h->heat.cols <= 20000)
    paint_cells (t, p, h);
  else
    paint_image (t, p, h);
}

/* ---- the frame ---- */

static void
flush (Painter *t)
{
  const TdPrim *p = t->batch;

  t->batch = NULL;
  if (!p)
    return;
  if (p->kind == TD_PRIM_POLYLINE)
    paint_stroke (t, p);
  else
    {
      set_color (t, td__color (t->theme, p->fill ? p->fill : p->stroke, p->fill_alpha));
      cairo_fill (t->cr);
    }
  cairo_new_path (t->cr);
}

static gboolean
same_style (const TdPrim *a, const TdPrim *b)
{
  return (a->kind == TD_PRIM_POLYLINE) == (b->kind == TD_PRIM_POLYLINE) && a->fill == b->fill
         && a->stroke == b->stroke && a->fill_alpha == b->fill_alpha
         && a->stroke_alpha == b->stroke_alpha && a->stroke_width == b->stroke_width
         && a->dash == b->dash;
}

/* Far out, nodes are rectangles without outlines and wires have no arrows, collected by style.
 */
static gboolean
batch (Painter *t, const TdPrim *p)
{
  if (!(p->flags & TD_PRIM_NODE) && p->kind != TD_PRIM_POLYLINE)
    return FALSE;
  if (t->batch && !same_style (t->batch, p))
    flush (t);
  if (p->kind == TD_PRIM_POLYLINE)
    path_points (t->cr, td__scene_points (t->scene, p), p->n);
  else
    cairo_rectangle (t->cr, p->box.x, p->box.y, p->box.width, p->box.height);
  t->batch = p;
  return TRUE;
}

static void
paint_prim (Painter *t, const TdPrim *p)
{
  if ((p->flags & TD_PRIM_TINT) && !t->theme->tints)
    return;
  if (t->plain && (p->flags & TD_PRIM_DETAIL))
    return;
  if (t->plain && batch (t, p))
    return;
  flush (t);
  if (p->kind == TD_PRIM_TEXT)
    td__paint_text (t->scene, p, t->cr, t->scale, t->theme);
  else if (p->kind == TD_PRIM_HEAT)
    paint_heat (t, p);
  else
    paint_shape (t, p);
}

void
td_scene_paint (const TdScene *scene, cairo_t *cr, const TdSceneRect *visible, double scale,
                const TdTheme *theme)
{
  TdSceneRect all = { 0, 0, scene->width, scene->height };
  Painter t = { .scene = scene, .theme = theme, .cr = cr, .scale = scale };
  guint n = scene->prims->len, nodes = 0;
  g_autofree guint8 *marks = g_malloc (MAX (n, 1));

  if (!visible)
    visible = &all;
  td__scene_query (scene, visible, marks);
  for (guint i = 0; i < n; i++)
    nodes += marks[i] && (td__scene_prim (scene, i)->flags & TD_PRIM_NODE)
             && td__rects_touch (&td__scene_prim (scene, i)->box, visible);
  t.plain = nodes > TD_LOD_NODES;

  cairo_save (cr);
  cairo_scale (cr, scale, scale);
  cairo_translate (cr, -visible->x, -visible->y);
  cairo_rectangle (cr, visible->x, visible->y, visible->width, visible->height);
  cairo_clip (cr);
  cairo_new_path (cr);
  td__paint_text_begin (cr, theme);
  for (guint i = 0; i < n; i++)
    if (marks[i])
      paint_prim (&t, td__scene_prim (scene, i));
  flush (&t);
  cairo_restore (cr);
}
