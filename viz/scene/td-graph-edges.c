/*
 * Wires, saved edges with their bytes, and the minimap of a graph's picture.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "td-graph-scene-private.h"

/* Saved for backward: accent while the operation at the playhead reads it, green while it is
 * needed later, grey when it was used and is still held. */
static TdRole
saved_role (const TdGraphPainter *g, const TdVizEdge *e)
{
  if (g->panel->event < 0)
    return TD_ROLE_SAVED;
  if (td__graph_is_at_playhead (g, e->to))
    return TD_ROLE_ACCENT;
  return e->event > g->panel->event ? TD_ROLE_SAVED : TD_ROLE_EDGE;
}

/* Of several that are selected, both ends are: a way from one to the other is drawn. */
static gboolean
is_on_path (const TdGraphPainter *g, const TdVizEdge *e)
{
  return g->panel->n_selected > 1 && td__graph_is_selected (g, e->from)
         && td__graph_is_selected (g, e->to);
}

static TdStyle
edge_style (const TdGraphPainter *g, const TdVizEdge *e)
{
  TdVizView *view = g->layout->view;
  gboolean run = td__graph_has_run (g, e->event);
  TdStyle s = { .stroke = TD_ROLE_EDGE, .stroke_width = 1.4, .flags = TD_PRIM_ARROW_END };

  if (e->kind == TD_EDGE_STUB)
    return (TdStyle){ .stroke = view->nodes[e->from].kind == TD_VIZ_INPUT ? TD_ROLE_INPUT
                                                                          : TD_ROLE_PARAMETER,
                      .stroke_width = 1.2,
                      .stroke_alpha = 0.8 };
  if (e->kind == TD_EDGE_SAVED)
    return (TdStyle){ .stroke = saved_role (g, e),
                      .stroke_width = 1.4,
                      .dash = TD_DASH_DOTTED,
                      .flags = TD_PRIM_ARROW_END };
  if (!run)
    s.dash = TD_DASH_DASHED;
  if ((run && td__graph_is_at_playhead (g, e->to)) || is_on_path (g, e))
    {
      s.stroke = TD_ROLE_ACCENT;
      s.stroke_width = 2;
    }
  return s;
}

/* One array that goes to several readers is named once. */
static gboolean
is_first_label (TdGraphPainter *g, guint i)
{
  const TdVizEdge *e = &g->layout->view->edges[i];

  if (!e->label || !*e->label)
    return FALSE;
  return g_hash_table_add (g->labels, g_strdup_printf ("%d %s", e->from, e->label));
}

/* Where a label would lie on a group's header it goes above the group. */
static double
label_y (const TdGraphPainter *g, const TdEdgeRoute *route)
{
  double y = route->label.y;

  for (guint i = 0; i < g->layout->view->n_groups; i++)
    for (int lane = 0; lane < TD_N_LANES && g->layout->view->groups[i].parent >= 0; lane++)
      {
        const TdRect *r = &g->layout->groups[i][lane];

        if (route->label.x >= r->x && route->label.x < r->x + r->width && y > r->y - 8
            && y < r->y + 30)
          y = r->y - 9;
      }
  return y;
}

/* How much of the segment from `a` to `b` was drawn already in this style: edges of one source
 * share their way, and lines drawn twice are darker and lose their dashes. Remembers it. */
static double
drawn_before (TdGraphPainter *g, TdScenePoint a, TdScenePoint b, const TdStyle *style)
{
  double length = hypot (b.x - a.x, b.y - a.y), before = 0, *known;
  int dx = (b.x > a.x) - (b.x < a.x), dy = (b.y > a.y) - (b.y < a.y);
  char key[96];

  if (dx && dy) /* only straight ways coincide */
    return 0;
  g_snprintf (key, sizeof key, "%d %d %.1f %.1f %d %d", style->stroke, style->dash, a.x, a.y,
              dx, dy);
  known = g_hash_table_lookup (g->drawn, key);
  if (known)
    {
      before = MIN (*known, length);
      *known = MAX (*known, length);
    }
  else
    {
      known = g_new (double, 1);
      *known = length;
      g_hash_table_insert (g->drawn, g_strdup (key), known);
    }
  return before;
}

/* Adds what is not yet there of a way: it may begin in the middle. */
static void
add_new_part (TdGraphPainter *g, TdScenePoint *q, guint n, const TdStyle *style)
{
  guint first = 0;

  while (first + 2 < n)
    {
      TdScenePoint *a = &q[first], *b = &q[first + 1];
      double length = hypot (b->x - a->x, b->y - a->y);
      double before = drawn_before (g, *a, *b, style);

      if (before < length - 0.05)
        {
          /* the rest of this segment is new, and so is what comes behind it */
          if (length > 0)
            *a = (TdScenePoint){ a->x + (b->x - a->x) * before / length,
                                 a->y + (b->y - a->y) * before / length };
          break;
        }
      first++;
    }
  for (guint k = first + 1; k + 1 < n; k++)
    drawn_before (g, q[k], q[k + 1], style);
  td_scene_add_line (g->b, q + first, (int)(n - first), style);
}

/* What goes over a wire, for the pointer. Owner: the caller. */
static char *
dup_load (const TdGraphPainter *g, const TdVizEdge *e)
{
  char bytes[TD_FORMAT_SIZE];

  td_format_bytes (bytes, e->bytes);
  if (e->var < 0)
    return NULL;
  if (e->n_vars > 1)
    return g_strdup_printf ("%u values · %s", e->n_vars, bytes);
  g_autofree char *shape = td_iteration_dup_shape (g->iteration, (guint)e->var, TRUE);
  const char *name = td_iteration_get_var_name (g->iteration, (guint)e->var);
  return g_strdup_printf ("%s%s%s · %s", name, *name ? " " : "", shape, bytes);
}

static void
add_edge (TdGraphPainter *g, guint i)
{
  const TdVizEdge *e = &g->layout->view->edges[i];
  const TdEdgeRoute *route = &g->layout->edges[i];
  TdStyle style = edge_style (g, e);
  g_autofree TdScenePoint *q = g_new (TdScenePoint, MAX (route->n_points, 1));
  guint64 key = 0;

  for (guint32 k = 0; k < route->n_points; k++)
    q[k] = (TdScenePoint){ g->layout->points[route->first_point + k].x + g->dx,
                           g->layout->points[route->first_point + k].y + g->dy };
  if (e->var >= 0)
    key = td_iteration_get_tape (g->iteration)->vars[e->var].key;
  g_autofree char *load = dup_load (g, e);
  td_scene_mark (g->b, TD_TAG_EDGE, key, e->event, load);
  add_new_part (g, q, route->n_points, &style);
  td_scene_unmark (g->b);
  if (is_first_label (g, i) && e->kind != TD_EDGE_SAVED && e->kind != TD_EDGE_STUB)
    {
      TdTextStyle text = {
        .role = TD_ROLE_DIM, .size = TD_TEXT_SMALL, .max_width = 130, .flags = TD_PRIM_DETAIL
      };

      td_scene_add_text (g->b, route->label.x + g->dx, label_y (g, route) + g->dy, e->label,
                         &text);
    }
}

void
td__graph_add_edges (TdGraphPainter *g)
{
  g->labels = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g->drawn = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  /* what the playhead reads comes last, so that nothing crosses over it */
  for (int accent = 0; accent < 2; accent++)
    for (guint i = 0; i < g->layout->view->n_edges; i++)
      if (td__graph_is_at_playhead (g, g->layout->view->edges[i].to) == accent)
        add_edge (g, i);
  g_clear_pointer (&g->labels, g_hash_table_unref);
  g_clear_pointer (&g->drawn, g_hash_table_unref);
}

void
td__graph_add_pills (TdGraphPainter *g)
{
  for (guint i = 0; i < g->layout->view->n_edges; i++)
    {
      const TdVizEdge *e = &g->layout->view->edges[i];
      TdSceneRect r = td__graph_rect (g, &g->layout->edges[i].pill);
      TdRole role = saved_role (g, e);
      TdStyle pill = {
        .fill = TD_ROLE_CARD, .stroke = role, .stroke_width = 1.2, .flags = TD_PRIM_DETAIL
      };
      TdTextStyle text = { .role = role == TD_ROLE_EDGE ? TD_ROLE_DIM : TD_ROLE_TEXT,
                           .size = TD_TEXT_SMALL,
                           .align = 0.5,
                           .flags = TD_PRIM_DETAIL };
      char bytes[TD_FORMAT_SIZE];
      g_autofree char *tooltip = NULL;

      if (e->kind != TD_EDGE_SAVED || r.width <= 0)
        continue;
      td_format_bytes (bytes, e->bytes);
      tooltip = g_strdup_printf ("%s saved for backward, %u array%s", bytes, e->n_vars,
                                 e->n_vars == 1 ? "" : "s");
      td_scene_mark (g->b, TD_TAG_PILL,
                     e->var >= 0 ? td_iteration_get_tape (g->iteration)->vars[e->var].key : 0,
                     e->event, tooltip);
      td_scene_add_shape (g->b, TD_PRIM_ROUND, r, r.height / 2, &pill);
      td_scene_unmark (g->b);
      td_scene_add_text (g->b, r.x + r.width / 2, r.y + r.height / 2, bytes, &text);
    }
}

/* ---- minimap ---- */

#define MAP_WIDTH 122.0
#define MAP_HEIGHT 66.0
#define MAP_INSET 7.0

typedef struct
{
  double scale, x, y; /* scene = layout * scale + (x, y) */
} MapFrame;

static MapFrame
map_frame (const TdLayout *layout)
{
  double w = MAX (layout->bounds.width, 1), h = MAX (layout->bounds.height, 1);
  MapFrame f
      = { .scale = MIN ((MAP_WIDTH - 2 * MAP_INSET) / w, (MAP_HEIGHT - 2 * MAP_INSET) / h) };

  f.x = (MAP_WIDTH - w * f.scale) / 2 - layout->bounds.x * f.scale;
  f.y = (MAP_HEIGHT - h * f.scale) / 2 - layout->bounds.y * f.scale;
  return f;
}

static TdSceneRect
map_rect (const MapFrame *f, const TdRect *r)
{
  return (TdSceneRect){ r->x * f->scale + f->x, r->y * f->scale + f->y,
                        MAX (r->width * f->scale, 1.5), MAX (r->height * f->scale, 1.2) };
}

TdScene *
td_graph_minimap_new (const TdLayout *layout, const TdPanelView *panel,
                      const TdSceneRect *visible)
{
  TdSceneBuilder *b = td_scene_builder_new (MAP_WIDTH, MAP_HEIGHT);
  MapFrame f = map_frame (layout);
  TdVizView *view = layout->view;
  gint playhead = panel->event >= 0 ? td_viz_view_find_event (view, panel->event) : -1;
  TdStyle card = { .fill = TD_ROLE_CARD, .stroke = TD_ROLE_BORDER };

  td_scene_mark (b, TD_TAG_MINIMAP, 0, 0, NULL);
  td_scene_add_shape (b, TD_PRIM_ROUND,
                      (TdSceneRect){ 0.5, 0.5, MAP_WIDTH - 1, MAP_HEIGHT - 1 }, 8, &card);
  for (guint i = 0; i < view->n_nodes; i++)
    {
      gboolean run
          = !panel->nothing_ran && (panel->event < 0 || view->nodes[i].event <= panel->event);
      gboolean at = (gint)i == playhead;
      TdStyle s = { .fill = at ? TD_ROLE_ACCENT : TD_ROLE_FAINT,
                    .fill_alpha = at    ? 1
                                  : run ? 0.6
                                        : 0.25 };

      if (view->nodes[i].kind == TD_VIZ_STUB || view->nodes[i].kind == TD_VIZ_INPUT)
        continue;
      td_scene_add_shape (b, TD_PRIM_RECT, map_rect (&f, &layout->nodes[i]), 0, &s);
    }
  if (visible)
    {
      TdRect v = { visible->x, visible->y, visible->width, visible->height };
      TdSceneRect r = map_rect (&f, &v);
      TdStyle frame = { .stroke = TD_ROLE_ACCENT, .stroke_width = 1.5 };
      double x0 = MAX (r.x, 3), y0 = MAX (r.y, 3);

      r.width = MIN (r.x + r.width, MAP_WIDTH - 3) - x0;
      r.height = MIN (r.y + r.height, MAP_HEIGHT - 3) - y0;
      r.x = x0;
      r.y = y0;
      if (r.width > 0 && r.height > 0)
        td_scene_add_shape (b, TD_PRIM_ROUND, r, 4, &frame);
    }
  td_scene_unmark (b);
  return td_scene_builder_end (b);
}

TdScenePoint
td_graph_minimap_point (const TdLayout *layout, double x, double y)
{
  MapFrame f = map_frame (layout);

  return (TdScenePoint){ (x - f.x) / f.scale, (y - f.y) / f.scale };
}
