/*
 * Building a scene, its grid, and answering where a point lies. Painting is in td-paint.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "td-scene-private.h"

/* Longer labels are cut: no picture shows more, and a hostile one of megabytes costs nothing.
 */
#define MAX_TEXT 240

struct _TdSceneBuilder
{
  TdScene *scene;
  TdSceneTag tag;
  guint64 key;
  gint64 data;
  guint32 tooltip;
};

TdSceneBuilder *
td_scene_builder_new (double width, double height)
{
  TdSceneBuilder *b = g_new0 (TdSceneBuilder, 1);

  b->scene = g_new0 (TdScene, 1);
  g_atomic_ref_count_init (&b->scene->refs);
  b->scene->width = width;
  b->scene->height = height;
  b->scene->prims = g_array_new (FALSE, TRUE, sizeof (TdPrim));
  b->scene->points = g_array_new (FALSE, FALSE, sizeof (TdScenePoint));
  b->scene->heats = g_array_new (FALSE, TRUE, sizeof (TdSceneHeat));
  b->scene->pool = g_string_new (NULL);
  g_string_append_c (b->scene->pool, '\0'); /* offset 0 is "no string" */
  return b;
}

/* Return text that a picture may hold: valid UTF-8, one line, no control characters, not
 * endless. */
static char *
clean_text (const char *text)
{
  g_autofree char *valid
      = g_utf8_make_valid (text ? text : "", text ? MIN (strlen (text), 4096) : 0);
  GString *s = g_string_new (NULL);
  int n = 0;

  for (const char *p = valid; *p; p = g_utf8_next_char (p), n++)
    {
      gunichar c = g_utf8_get_char (p);

      if (n == MAX_TEXT)
        {
          g_string_append (s, "…");
          break;
        }
      if (c == '\n' || c == '\r')
        c = 0x23ce; /* the return symbol */
      else if (c == '\t')
        c = ' ';
      else if (g_unichar_iscntrl (c))
        c = 0xfffd;
      /* overrides of the writing direction would reorder the rest of the label */
      else if ((c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069))
        c = 0xfffd;
      g_string_append_unichar (s, c);
    }
  return g_string_free (s, FALSE);
}

static guint32
pool_add (TdScene *scene, const char *text, guint32 *n)
{
  g_autofree char *clean = clean_text (text);
  guint32 offset = (guint32)scene->pool->len;

  *n = (guint32)strlen (clean);
  g_string_append_len (scene->pool, clean, (gssize)*n + 1);
  return offset;
}

void
td_scene_mark (TdSceneBuilder *b, TdSceneTag tag, guint64 key, gint64 data, const char *tooltip)
{
  guint32 n;

  b->tag = tag;
  b->key = key;
  b->data = data;
  b->tooltip = tooltip ? pool_add (b->scene, tooltip, &n) : 0;
}

void
td_scene_unmark (TdSceneBuilder *b)
{
  td_scene_mark (b, TD_TAG_NONE, 0, 0, NULL);
}

static TdPrim *
add (TdSceneBuilder *b, TdPrimKind kind, TdSceneRect box, const TdStyle *style)
{
  TdPrim p = { .kind = (guint8)kind,
               .box = box,
               .tag = (guint8)b->tag,
               .key = b->key,
               .data = b->data,
               .tooltip = b->tooltip };

  if (style)
    {
      p.fill = (guint8)style->fill;
      p.stroke = (guint8)style->stroke;
      p.pattern = (guint8)style->pattern;
      p.dash = (guint8)style->dash;
      p.flags = (guint8)style->flags;
      p.fill_alpha = (float)style->fill_alpha;
      p.stroke_alpha = (float)style->stroke_alpha;
      p.stroke_width = (float)style->stroke_width;
    }
  g_array_append_val (b->scene->prims, p);
  return &g_array_index (b->scene->prims, TdPrim, b->scene->prims->len - 1);
}

void
td_scene_add_shape (TdSceneBuilder *b, TdPrimKind kind, TdSceneRect box, double radius,
                    const TdStyle *style)
{
  g_return_if_fail (kind <= TD_PRIM_CROSS);
  add (b, kind, box, style)->radius = (float)radius;
}

static void
add_points (TdSceneBuilder *b, TdPrimKind kind, const TdScenePoint *points, int n,
            const TdStyle *style)
{
  TdSceneRect box;
  TdPrim *p;

  if (n < 2)
    return;
  double x0 = points[0].x, x1 = x0, y0 = points[0].y, y1 = y0;
  for (int i = 1; i < n; i++)
    {
      x0 = MIN (x0, points[i].x);
      x1 = MAX (x1, points[i].x);
      y0 = MIN (y0, points[i].y);
      y1 = MAX (y1, points[i].y);
    }
  box = (TdSceneRect){ x0, y0, x1 - x0, y1 - y0 };
  p = add (b, kind, box, style);
  p->first = b->scene->points->len;
  p->n = (guint32)n;
  g_array_append_vals (b->scene->points, points, (guint)n);
}

void
td_scene_add_line (TdSceneBuilder *b, const TdScenePoint *points, int n, const TdStyle *style)
{
  add_points (b, TD_PRIM_POLYLINE, points, n, style);
}

void
td_scene_add_polygon (TdSceneBuilder *b, const TdScenePoint *points, int n,
                      const TdStyle *style)
{
  add_points (b, TD_PRIM_POLYGON, points, n, style);
}

void
td_scene_add_text (TdSceneBuilder *b, double x, double y, const char *text,
                   const TdTextStyle *style)
{
  double pixels = td_text_pixels (style->size);
  guint32 n, first = pool_add (b->scene, text, &n);

  /* One em a character is more than any run of text takes; measuring here would cost a layout
   * each. */
  double width = pixels * g_utf8_strlen (b->scene->pool->str + first, n);
  if (style->max_width > 0)
    width = MIN (width, style->max_width);
  double height = pixels * 1.4;
  TdSceneRect box = { x - style->align * width, y - height / 2, width, height };
  if (style->upward)
    box = (TdSceneRect){ x - height / 2, y - (1 - style->align) * width, height, width };

  TdStyle as = { .fill = style->role, .fill_alpha = style->alpha, .flags = style->flags };
  TdPrim *p = add (b, TD_PRIM_TEXT, box, &as);
  p->first = first;
  p->n = n;
  p->size = (guint8)style->size;
  p->bold = style->bold != 0;
  p->middle = style->middle != 0;
  p->upward = style->upward != 0;
  p->align = (float)style->align;
  p->max_width = (float)style->max_width;
  p->text_x = (float)x;
  p->text_y = (float)y;
}

void
td_scene_add_heat (TdSceneBuilder *b, TdSceneRect box, const TdHeat *heat)
{
  gsize n = (gsize)MAX (heat->rows, 0) * (gsize)MAX (heat->cols, 0);
  TdSceneHeat h = { .heat = *heat };
  guint32 length;

  if (n == 0)
    return;
  h.values = g_memdup2 (heat->values, n * sizeof (float));
  h.cells = heat->cells ? g_memdup2 (heat->cells, n) : NULL;
  h.numbers
      = heat->numbers ? g_memdup2 (heat->numbers, (gsize)heat->cols * sizeof (gint64)) : NULL;
  h.heat.values = h.values;
  h.heat.cells = h.cells;
  h.heat.numbers = h.numbers;
  h.heat.tooltips = NULL;
  if (heat->tooltips)
    h.tooltips = g_new (guint32, heat->cols);
  for (int c = 0; heat->tooltips && c < heat->cols; c++)
    h.tooltips[c] = pool_add (b->scene, heat->tooltips[c], &length);
  TdPrim *p = add (b, TD_PRIM_HEAT, box, NULL);
  p->first = b->scene->heats->len;
  g_array_append_val (b->scene->heats, h);
}

void
td_scene_set_axes (TdSceneBuilder *b, const TdSceneAxes *axes)
{
  b->scene->axes = *axes;
  b->scene->has_axes = TRUE;
}

void
td_scene_set_size (TdSceneBuilder *b, double width, double height)
{
  b->scene->width = width;
  b->scene->height = height;
}

void
td_scene_set_background (TdSceneBuilder *b, TdRole role)
{
  b->scene->background = (guint8)role;
}

/* ---- the grid ---- */

typedef struct
{
  int c0, c1, r0, r1;
} CellRange;

static CellRange
cells_of (const TdScene *s, const TdSceneRect *r)
{
  double pad = 12; /* halos, arrows and wide strokes reach out of their boxes */
  CellRange c = { (int)floor ((r->x - pad) / s->grid_cell),
                  (int)floor ((r->x + r->width + pad) / s->grid_cell),
                  (int)floor ((r->y - pad) / s->grid_cell),
                  (int)floor ((r->y + r->height + pad) / s->grid_cell) };

  c.c0 = CLAMP (c.c0, 0, s->grid_cols - 1);
  c.c1 = CLAMP (c.c1, 0, s->grid_cols - 1);
  c.r0 = CLAMP (c.r0, 0, s->grid_rows - 1);
  c.r1 = CLAMP (c.r1, 0, s->grid_rows - 1);
  return c;
}

static void
grid_build (TdScene *s)
{
  double area = MAX (s->width, 1) * MAX (s->height, 1);
  double cell = MAX (64, sqrt (area / (s->prims->len / 8.0)));

  s->grid_cell = MAX (cell, MAX (s->width, s->height) / 1000);
  s->grid_cols = MAX (1, (int)ceil (s->width / s->grid_cell));
  s->grid_rows = MAX (1, (int)ceil (s->height / s->grid_cell));
  guint n_cells = (guint)s->grid_cols * (guint)s->grid_rows;
  s->grid_start = g_new0 (guint32, n_cells + 1);

  for (int pass = 0; pass < 2; pass++)
    {
      g_autofree guint32 *fill
          = pass ? g_memdup2 (s->grid_start, n_cells * sizeof (guint32)) : NULL;

      for (guint i = 0; i < s->prims->len; i++)
        {
          CellRange r = cells_of (s, &td__scene_prim (s, i)->box);

          for (int y = r.r0; y <= r.r1; y++)
            for (int x = r.c0; x <= r.c1; x++)
              {
                guint c = (guint)(y * s->grid_cols + x);

                if (pass == 0)
                  s->grid_start[c + 1]++;
                else
                  s->grid_items[fill[c]++] = i;
              }
        }
      if (pass == 0)
        {
          for (guint c = 0; c < n_cells; c++)
            s->grid_start[c + 1] += s->grid_start[c];
          s->grid_items = g_new (guint32, MAX (s->grid_start[n_cells], 1));
        }
    }
}

void
td__scene_query (const TdScene *s, const TdSceneRect *r, guint8 *marks)
{
  if (!s->grid_start)
    {
      TdSceneRect wide = { r->x - 12, r->y - 12, r->width + 24, r->height + 24 };

      for (guint i = 0; i < s->prims->len; i++)
        marks[i] = td__rects_touch (&td__scene_prim (s, i)->box, &wide);
      return;
    }
  memset (marks, 0, s->prims->len);
  CellRange c = cells_of (s, r);
  for (int y = c.r0; y <= c.r1; y++)
    for (int x = c.c0; x <= c.c1; x++)
      {
        guint cell = (guint)(y * s->grid_cols + x);

        for (guint32 k = s->grid_start[cell]; k < s->grid_start[cell + 1]; k++)
          marks[s->grid_items[k]] = 1;
      }
}

TdScene *
td_scene_builder_end (TdSceneBuilder *b)
{
  TdScene *scene = b->scene;

  if (scene->prims->len > TD_GRID_MIN)
    grid_build (scene);
  g_free (b);
  return scene;
}

/* ---- reading ---- */

TdScene *
td_scene_ref (TdScene *scene)
{
  g_atomic_ref_count_inc (&scene->refs);
  return scene;
}

void
td_scene_unref (TdScene *scene)
{
  if (!scene || !g_atomic_ref_count_dec (&scene->refs))
    return;
  for (guint i = 0; i < scene->heats->len; i++)
    {
      g_free (g_array_index (scene->heats, TdSceneHeat, i).values);
      g_free (g_array_index (scene->heats, TdSceneHeat, i).cells);
      g_free (g_array_index (scene->heats, TdSceneHeat, i).numbers);
      g_free (g_array_index (scene->heats, TdSceneHeat, i).tooltips);
    }
  g_array_unref (scene->prims);
  g_array_unref (scene->points);
  g_array_unref (scene->heats);
  g_string_free (scene->pool, TRUE);
  g_free (scene->grid_start);
  g_free (scene->grid_items);
  g_free (scene);
}

double
td_scene_width (const TdScene *scene)
{
  return scene->width;
}

double
td_scene_height (const TdScene *scene)
{
  return scene->height;
}

guint
td_scene_n_items (const TdScene *scene)
{
  return scene->prims->len;
}

const TdSceneAxes *
td_scene_axes (const TdScene *scene)
{
  return scene->has_axes ? &scene->axes : NULL;
}

double
td_scene_axis_value (const TdScene *scene, double x)
{
  const TdSceneAxes *a = &scene->axes;

  if (!scene->has_axes || a->box.width <= 0)
    return 0;
  double t = (x - a->box.x) / a->box.width;
  return a->x0 + CLAMP (t, 0.0, 1.0) * (a->x1 - a->x0);
}

gint64
td_scene_axis_place (const TdScene *scene, double x)
{
  const TdSceneAxes *a = &scene->axes;
  double last = MAX (a->x0, ceil (a->x1) - 1);

  return (gint64)CLAMP (floor (td_scene_axis_value (scene, x)), a->x0, last);
}

static double
segment_distance (TdScenePoint a, TdScenePoint b, double x, double y)
{
  double dx = b.x - a.x, dy = b.y - a.y, len = dx * dx + dy * dy;
  double t = len > 0 ? ((x - a.x) * dx + (y - a.y) * dy) / len : 0;

  t = CLAMP (t, 0.0, 1.0);
  return hypot (x - a.x - t * dx, y - a.y - t * dy);
}

/* Distance of a point to what a click may take: boxes for shapes and areas, the line itself for
 * wires. */
static double
prim_distance (const TdScene *scene, const TdPrim *p, double x, double y)
{
  if (p->kind == TD_PRIM_POLYLINE)
    {
      const TdScenePoint *q = td__scene_points (scene, p);
      double best = G_MAXDOUBLE;

      for (guint32 i = 0; i + 1 < p->n; i++)
        best = MIN (best, segment_distance (q[i], q[i + 1], x, y));
      return MAX (0, best - 3);
    }
  double dx = MAX (MAX (p->box.x - x, x - p->box.x - p->box.width), 0);
  double dy = MAX (MAX (p->box.y - y, y - p->box.y - p->box.height), 0);
  return hypot (dx, dy);
}

static void
fill_hit (const TdScene *scene, const TdPrim *p, double x, double y, TdSceneHit *hit)
{
  *hit = (TdSceneHit){ .key = p->key,
                       .data = p->data,
                       .tag = p->tag,
                       .row = -1,
                       .col = -1,
                       .number = -1,
                       .box = p->box,
                       .tooltip = p->tooltip ? scene->pool->str + p->tooltip : NULL };
  if (p->kind == TD_PRIM_HEAT)
    {
      const TdSceneHeat *heat = &g_array_index (scene->heats, TdSceneHeat, p->first);
      const TdHeat *h = &heat->heat;

      hit->row = CLAMP ((int)((y - p->box.y) / p->box.height * h->rows), 0, h->rows - 1);
      hit->col = CLAMP ((int)((x - p->box.x) / p->box.width * h->cols), 0, h->cols - 1);
      if (heat->numbers)
        hit->number = heat->numbers[hit->col];
      if (heat->tooltips)
        hit->tooltip = scene->pool->str + heat->tooltips[hit->col];
    }
}

gboolean
td_scene_hit (const TdScene *scene, double x, double y, double slack, TdSceneHit *hit)
{
  guint n = scene->prims->len;
  g_autofree guint8 *marks = g_malloc (MAX (n, 1));
  TdSceneRect around = { x - slack, y - slack, 2 * slack, 2 * slack };
  const TdPrim *best = NULL, *background = NULL;
  double best_distance = slack;

  td__scene_query (scene, &around, marks);
  for (guint i = n; i-- > 0;)
    {
      const TdPrim *p = td__scene_prim (scene, i);

      if (!marks[i] || p->tag == TD_TAG_NONE)
        continue;
      double d = prim_distance (scene, p, x, y);
      /* lanes and the insides of groups are ground: something small near the pointer wins */
      if (p->tag == TD_TAG_LANE || p->tag == TD_TAG_GROUP)
        {
          if (d == 0 && !background)
            background = p;
          continue;
        }
      if (d == 0)
        {
          fill_hit (scene, p, x, y, hit);
          return TRUE;
        }
      if (d < best_distance && p->kind != TD_PRIM_HEAT)
        {
          best = p;
          best_distance = d;
        }
    }
  if (!best)
    best = background;
  if (best)
    fill_hit (scene, best, x, y, hit);
  return best != NULL;
}

gboolean
td_scene_find_key (const TdScene *scene, guint64 key, TdSceneRect *box)
{
  for (guint i = 0; i < scene->prims->len; i++)
    if (td__scene_prim (scene, i)->key == key && td__scene_prim (scene, i)->tag != TD_TAG_NONE)
      {
        *box = td__scene_prim (scene, i)->box;
        return TRUE;
      }
  return FALSE;
}

TdCell
td__heat_cell (const TdSceneHeat *h, int row, int col)
{
  gsize i = (gsize)row * (gsize)h->heat.cols + (gsize)col;
  float v = h->values[i];

  if (h->cells && h->cells[i] != TD_CELL_VALUE)
    return h->cells[i];
  if (isnan (v))
    return TD_CELL_NAN;
  if (isinf (v))
    return v > 0 ? TD_CELL_PLUS_INF : TD_CELL_MINUS_INF;
  return TD_CELL_VALUE;
}

TdColor
td__heat_color (const TdSceneHeat *h, int row, int col)
{
  double span = h->heat.hi - h->heat.lo;
  double v = h->values[(gsize)row * (gsize)h->heat.cols + (gsize)col];

  return td_colormap_at (h->heat.map, span > 0 ? (v - h->heat.lo) / span : 0.5);
}

gboolean
td__arrow_head (const TdScenePoint *from, const TdScenePoint *to, double size,
                TdScenePoint out[3])
{
  double dx = to->x - from->x, dy = to->y - from->y, len = hypot (dx, dy);

  if (len < 1e-6)
    return FALSE;
  dx /= len;
  dy /= len;
  out[0] = *to;
  out[1] = (TdScenePoint){ to->x - dx * size - dy * size * 0.45,
                           to->y - dy * size + dx * size * 0.45 };
  out[2] = (TdScenePoint){ to->x - dx * size + dy * size * 0.45,
                           to->y - dy * size - dx * size * 0.45 };
  return TRUE;
}
