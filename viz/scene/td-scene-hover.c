/*
 * What stands for one key in a scene: where it is, and a ring around it. The scene itself stays
 * as it is, so that a highlight that follows the pointer costs one pass over the primitives.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-scene-private.h"

#define RING_GAP 2.0
#define RING_RADIUS 5.0

/* Edges are drawn thicker; a box around one would enclose what it passes. */
static gboolean
is_line (const TdPrim *p)
{
  return p->kind == TD_PRIM_POLYLINE && p->tag != TD_TAG_ROW && p->tag != TD_TAG_EVENT;
}

/* Whatever was added under one mark is one thing: the texts of a row, a node and its label. */
static gboolean
continues (const TdPrim *before, const TdPrim *p)
{
  return before && before->key == p->key && before->tag == p->tag && before->data == p->data
         && !is_line (before) && !is_line (p);
}

static TdSceneRect
join (const TdSceneRect *a, const TdSceneRect *b)
{
  double x = MIN (a->x, b->x), y = MIN (a->y, b->y);

  return (TdSceneRect){ x, y, MAX (a->x + a->width, b->x + b->width) - x,
                        MAX (a->y + a->height, b->y + b->height) - y };
}

static gboolean
stands_for (const TdPrim *p, guint64 key)
{
  return p->key == key && p->tag != TD_TAG_NONE && p->tag != TD_TAG_GROUP_TOGGLE;
}

guint
td_scene_list_boxes (const TdScene *scene, guint64 key, GArray *boxes)
{
  const TdPrim *before = NULL;
  guint n = boxes->len;

  for (guint i = 0; key != 0 && i < scene->prims->len; i++)
    {
      const TdPrim *p = td__scene_prim (scene, i);

      if (stands_for (p, key))
        {
          TdSceneRect *last = continues (before, p)
                                  ? &g_array_index (boxes, TdSceneRect, boxes->len - 1)
                                  : NULL;
          if (last)
            *last = join (last, &p->box);
          else
            g_array_append_val (boxes, p->box);
        }
      before = stands_for (p, key) ? p : before;
    }
  return boxes->len - n;
}

static void
trace_ring (cairo_t *cr, TdSceneRect box, double gap, double radius)
{
  double x0 = box.x - gap, y0 = box.y - gap, x1 = box.x + box.width + gap,
         y1 = box.y + box.height + gap;
  double r = MIN (radius, MIN (x1 - x0, y1 - y0) / 2);

  cairo_new_sub_path (cr);
  cairo_arc (cr, x1 - r, y0 + r, r, -G_PI_2, 0);
  cairo_arc (cr, x1 - r, y1 - r, r, 0, G_PI_2);
  cairo_arc (cr, x0 + r, y1 - r, r, G_PI_2, G_PI);
  cairo_arc (cr, x0 + r, y0 + r, r, G_PI, 3 * G_PI_2);
  cairo_close_path (cr);
}

static void
trace_lines (const TdScene *scene, cairo_t *cr, guint64 key)
{
  for (guint i = 0; i < scene->prims->len; i++)
    {
      const TdPrim *p = td__scene_prim (scene, i);
      const TdScenePoint *q = td__scene_points (scene, p);

      if (!stands_for (p, key) || !is_line (p))
        continue;
      cairo_new_sub_path (cr);
      for (guint k = 0; k < p->n; k++)
        cairo_line_to (cr, q[k].x, q[k].y);
    }
}

void
td_scene_paint_key (const TdScene *scene, cairo_t *cr, const TdSceneRect *visible, double scale,
                    const TdTheme *theme, guint64 key)
{
  g_autoptr (GArray) boxes = g_array_new (FALSE, FALSE, sizeof (TdSceneRect));
  TdColor ring = td__color (theme, TD_ROLE_ACCENT, 1),
          ground = td__color (theme, TD_ROLE_ACCENT, 0.14);
  const TdPrim *lines = NULL;

  if (key == 0)
    return;
  cairo_save (cr);
  cairo_scale (cr, scale, scale);
  if (visible)
    cairo_translate (cr, -visible->x, -visible->y);
  for (guint i = 0; i < scene->prims->len && !lines; i++)
    if (stands_for (td__scene_prim (scene, i), key) && is_line (td__scene_prim (scene, i)))
      lines = td__scene_prim (scene, i);
  cairo_set_line_join (cr, CAIRO_LINE_JOIN_ROUND);
  if (lines)
    {
      trace_lines (scene, cr, key);
      cairo_set_source_rgba (cr, ring.r, ring.g, ring.b, ring.a);
      cairo_set_line_width (cr, 3 / MIN (scale, 1));
      cairo_stroke (cr);
    }
  td_scene_list_boxes (scene, key, boxes);
  for (guint i = 0; i < boxes->len; i++)
    {
      TdSceneRect box = g_array_index (boxes, TdSceneRect, i);

      if (lines && td__rects_touch (&box, &lines->box) && box.width == lines->box.width
          && box.height == lines->box.height)
        continue;
      trace_ring (cr, box, RING_GAP, RING_RADIUS);
      cairo_set_source_rgba (cr, ground.r, ground.g, ground.b, ground.a);
      cairo_fill_preserve (cr);
      cairo_set_source_rgba (cr, ring.r, ring.g, ring.b, ring.a);
      cairo_set_line_width (cr, MAX (1.5, theme->min_stroke) / scale);
      cairo_stroke (cr);
    }
  cairo_restore (cr);
}
