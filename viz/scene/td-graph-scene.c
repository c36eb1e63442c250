/*
 * Lanes, groups and nodes of a graph's picture; wires and pills are in td-graph-edges.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "td-graph-scene-private.h"

static const struct
{
  const char *title;
  const char *group_suffix;
  TdRole tint;
  TdPrimKind shape;
  double radius;
} lanes[TD_N_LANES] = {
  [TD_LANE_FORWARD] = { "Forward", "", TD_ROLE_LANE_FORWARD, TD_PRIM_ROUND, 8 },
  [TD_LANE_BACKWARD] = { "Backward", "′", TD_ROLE_LANE_BACKWARD, TD_PRIM_CUT, 7 },
  [TD_LANE_UPDATE] = { "Update", " update", TD_ROLE_LANE_UPDATE, TD_PRIM_ROUND, 2 },
};

gboolean
td__graph_has_run (const TdGraphPainter *g, gint event)
{
  return !g->panel->nothing_ran
         && (g->panel->whole || g->panel->event < 0 || event <= g->panel->event);
}

/* What has run of a group's operations in a lane. */
static guint
count_run (const TdGraphPainter *g, guint group, TdLane lane, guint total)
{
  if (g->panel->nothing_ran)
    return 0;
  if (g->panel->whole || g->panel->event < 0)
    return total;
  return td_viz_graph_count_run (g->layout->view->graph, group, lane, g->panel->event);
}

TdSceneRect
td__graph_rect (const TdGraphPainter *g, const TdRect *r)
{
  return (TdSceneRect){ r->x + g->dx, r->y + g->dy, r->width, r->height };
}

static gboolean
shows_event (const TdVizNode *n, gint event)
{
  return event >= 0 && (n->kind == TD_VIZ_OP || n->kind == TD_VIZ_GROUP) && n->event <= event
         && event <= n->last_event;
}

gboolean
td__graph_is_at_playhead (const TdGraphPainter *g, gint node)
{
  return node >= 0 && node == g->playhead;
}

gboolean
td__graph_is_selected (const TdGraphPainter *g, gint node)
{
  const TdVizNode *n = &g->layout->view->nodes[node];

  return td_panel_is_selected (g->panel, n->select_key)
         || td_panel_is_selected (g->panel, n->key) || (g->linked && g->linked[node]);
}

/* ---- lanes and open groups ---- */

static void
add_lane (TdGraphPainter *g, TdLane lane)
{
  TdVizView *view = g->layout->view;
  TdSceneRect r = td__graph_rect (g, &g->layout->lanes[lane]);
  TdStyle style = { .fill = lanes[lane].tint, .flags = TD_PRIM_TINT };
  TdTextStyle title = { .role = TD_ROLE_TEXT, .size = TD_TEXT_LIST, .bold = TRUE };
  TdTextStyle count = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION, .align = 1 };
  guint n_groups, total;
  char text[64];

  if (r.width <= 0)
    return;
  total = td_viz_graph_get_groups (view->graph, &n_groups)[0].n_ops[lane];
  td_scene_mark (g->b, TD_TAG_LANE, 0, lane, NULL);
  td_scene_add_shape (g->b, TD_PRIM_ROUND, r, 12, &style);
  td_scene_unmark (g->b);
  td_scene_add_text (g->b, r.x + 14, r.y + 15, lanes[lane].title, &title);
  td__graph_add_replay_legend (g, lane, r);
  if (g->panel->whole)
    g_snprintf (text, sizeof text, "%u operation%s", total, total == 1 ? "" : "s");
  else
    g_snprintf (text, sizeof text, "%u of %u", count_run (g, 0, lane, total), total);
  td_scene_add_text (g->b, r.x + r.width - 14, r.y + 15, text, &count);
}

static void
add_group_header (TdGraphPainter *g, const TdVizGroup *group, TdLane lane, TdSceneRect r,
                  gboolean begun)
{
  double h = MIN (30, r.height), y = r.y + h / 2;
  TdStyle chevron = { .stroke = begun ? TD_ROLE_TEXT : TD_ROLE_DIM,
                      .stroke_width = 1.8,
                      .flags = TD_PRIM_DETAIL };
  TdStyle nothing = { .fill = TD_ROLE_NONE };
  TdTextStyle name = { .role = begun ? TD_ROLE_TEXT : TD_ROLE_DIM,
                       .size = TD_TEXT_NODE,
                       .bold = TRUE,
                       .max_width = MAX (20, r.width - 90) };
  TdTextStyle side
      = { .role = TD_ROLE_DIM, .size = TD_TEXT_SMALL, .align = 1, .flags = TD_PRIM_DETAIL };
  g_autofree char *title = g_strconcat (group->name, lanes[lane].group_suffix, NULL);
  guint index = (guint)td_viz_graph_find_group (g->layout->view->graph, group->key);
  char text[TD_FORMAT_SIZE] = "";

  td_scene_mark (g->b, TD_TAG_GROUP_TOGGLE, group->key, lane, group->path);
  td_scene_add_shape (g->b, TD_PRIM_RECT, (TdSceneRect){ r.x, r.y, r.width, h }, 0, &nothing);
  td_scene_unmark (g->b);
  td_scene_add_shape (g->b, TD_PRIM_CHEVRON_DOWN, (TdSceneRect){ r.x + 11, y - 5, 10, 10 }, 0,
                      &chevron);
  td_scene_add_text (g->b, r.x + 26, y, title, &name);
  if (lane == TD_LANE_FORWARD && group->saved_bytes > 0)
    td_format_bytes (text, group->saved_bytes);
  else if (lane == TD_LANE_BACKWARD)
    {
      guint total = group->n_ops[lane];

      if (g->panel->whole)
        g_snprintf (text, sizeof text, "%u", total);
      else
        g_snprintf (text, sizeof text, "%u of %u", count_run (g, index, lane, total), total);
    }
  if (*text && r.width > 120)
    td_scene_add_text (g->b, r.x + r.width - 12, y, text, &side);
}

static void
add_open_group (TdGraphPainter *g, guint i)
{
  TdVizView *view = g->layout->view;
  guint n_groups;
  const TdVizGroup *group
      = &td_viz_graph_get_groups (view->graph, &n_groups)[view->groups[i].group];

  for (int lane = 0; lane < TD_N_LANES; lane++)
    {
      TdSceneRect r = td__graph_rect (g, &g->layout->groups[i][lane]);
      TdStyle style = { .fill = TD_ROLE_GROUP, .stroke = TD_ROLE_NODE_STROKE };
      guint n;
      const gint32 *members;

      if (r.width <= 0)
        continue;
      members = td_viz_graph_get_members (view->graph, (guint)view->groups[i].group,
                                          (TdLane)lane, &n);
      gboolean begun = n == 0 || td__graph_has_run (g, members[0]);
      if (!begun)
        {
          style.dash = TD_DASH_DASHED;
          style.fill_alpha = 0.6;
        }
      gboolean selected = td_panel_is_selected (g->panel, group->key)
                          || td_panel_is_selected (g->panel, view->groups[i].facet_keys[lane]);
      if (selected)
        {
          style.stroke = TD_ROLE_ACCENT;
          style.stroke_width = 2;
        }
      td_scene_mark (g->b, TD_TAG_GROUP, group->key, lane, group->path);
      td_scene_add_shape (g->b, TD_PRIM_ROUND, r, 12, &style);
      td_scene_unmark (g->b);
      add_group_header (g, group, (TdLane)lane, r, begun);
    }
}

/* ---- nodes ---- */

static void
add_halo (TdGraphPainter *g, TdPrimKind shape, double radius, TdSceneRect r)
{
  TdStyle halo
      = { .fill = TD_ROLE_ACCENT, .fill_alpha = 0.16, .flags = TD_PRIM_TINT | TD_PRIM_DETAIL };

  td_scene_add_shape (g->b, shape,
                      (TdSceneRect){ r.x - 6, r.y - 6, r.width + 12, r.height + 12 },
                      radius + 4, &halo);
}

static char *
tooltip_of (TdGraphPainter *g, gint i)
{
  const TdVizNode *n = &g->layout->view->nodes[i];
  GString *s = g_string_new (n->label);
  char text[TD_FORMAT_SIZE];

  if (n->kind == TD_VIZ_OP)
    {
      g_autofree char *site = td_iteration_dup_site (g->iteration, (guint)n->event);
      const char *path = td_iteration_get_link_path (g->iteration, (guint)n->event);

      if (*path)
        g_string_append_printf (s, " · %s", path);
      if (*site)
        g_string_append_printf (s, " · %s", site);
      g_string_append_printf (s, " · event %d", n->event);
    }
  if (n->kind == TD_VIZ_GROUP && n->detail)
    g_string_append_printf (s, " · %s", n->detail);
  td__graph_append_replay (g, i, s);
  if (td__graph_life_of (g, i) != TD_LIFE_UNKNOWN)
    g_string_append_printf (s, " · %s", td__graph_life_words (td__graph_life_of (g, i)));
  if (n->time_ns > 0)
    g_string_append_printf (s, " · %s", td_format_ns (text, n->time_ns));
  if (n->bytes > 0)
    g_string_append_printf (s, " · %s", td_format_bytes (text, n->bytes));
  return g_string_free (s, FALSE);
}

static void
add_stub (TdGraphPainter *g, gint i)
{
  const TdVizNode *n = &g->layout->view->nodes[i];
  TdSceneRect r = td__graph_rect (g, &g->layout->nodes[i]);
  gboolean selected = td_panel_is_selected (g->panel, n->select_key);
  TdRole role = n->kind == TD_VIZ_STUB ? TD_ROLE_PARAMETER : TD_ROLE_INPUT;
  TdStyle style = { .fill = role,
                    .fill_alpha = 0.14,
                    .stroke = role,
                    .stroke_width = selected ? 2.5 : 1.2,
                    .flags = TD_PRIM_NODE };
  TdStyle ground = { .fill = TD_ROLE_VARIABLE, .flags = TD_PRIM_DETAIL };
  TdTextStyle text = { .role = TD_ROLE_NODE_TEXT,
                       .size = TD_TEXT_SMALL,
                       .align = 0.5,
                       .max_width = MAX (12, r.width - 8),
                       .flags = TD_PRIM_DETAIL };
  g_autofree char *shape
      = n->var >= 0 ? td_iteration_dup_shape (g->iteration, (guint)n->var, TRUE) : NULL;
  g_autofree char *tooltip = g_strdup_printf ("%s %s", n->label, shape ? shape : "");

  td_scene_mark (g->b, TD_TAG_STUB, n->select_key, n->event, tooltip);
  td_scene_add_shape (g->b, TD_PRIM_OCTAGON, r, 0, &ground);
  td_scene_add_shape (g->b, TD_PRIM_OCTAGON, r, 0, &style);
  td_scene_unmark (g->b);
  td_scene_add_text (g->b, r.x + r.width / 2, r.y + r.height / 2, n->label, &text);
  if (n->n_hidden > 0)
    {
      char more[24];
      TdTextStyle dim = {
        .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = 0.5, .flags = TD_PRIM_DETAIL
      };

      g_snprintf (more, sizeof more, "× %u", n->n_hidden + 1);
      td_scene_add_text (g->b, r.x + r.width / 2, r.y + r.height + 7, more, &dim);
    }
}

static void
add_node_text (TdGraphPainter *g, gint i, TdSceneRect r, gboolean run)
{
  const TdVizNode *n = &g->layout->view->nodes[i];
  gboolean at = td__graph_is_at_playhead (g, i);
  gboolean folded = n->kind == TD_VIZ_GROUP;
  gboolean two = n->detail && *n->detail && r.height >= 40;
  gboolean narrow = r.width < 120;
  double left = r.x + (folded ? 26 : narrow ? 9 : 12), middle = r.y + r.height / 2;
  double right = narrow ? 7 : 9;

  if (g->heat != TD_HEAT_OFF && !folded)
    left += narrow ? 5 : 2; /* the stripe stands there */
  char number[TD_FORMAT_SIZE] = "";
  TdRole role = run ? TD_ROLE_NODE_TEXT : TD_ROLE_DIM;

  if (!folded && n->kind == TD_VIZ_OP)
    g_snprintf (number, sizeof number, "%d", n->event);
  td__graph_format_heat (g, i, number);
  if (n->n_fused > 1)
    {
      TdTextStyle corner
          = { .role = TD_ROLE_DIM, .size = TD_TEXT_SMALL, .align = 1, .flags = TD_PRIM_DETAIL };

      td__graph_add_fused_text (g, i, r, run);
      td_scene_add_text (g->b, r.x + r.width - 8, r.y + r.height - 9, number, &corner);
      return;
    }
  double side = *number ? 6.4 * (double)g_utf8_strlen (number, -1) + right + 2 : right;
  /* beside its siblings a gradient node has room for its name, or for both */
  if (narrow && *number
      && td_text_width (n->label, TD_TEXT_NODE, at) > r.width - (left - r.x) - side)
    {
      *number = '\0';
      side = 4;
    }
  TdTextStyle title = { .role = role,
                        .size = TD_TEXT_NODE,
                        .bold = folded || two || at,
                        .max_width = MAX (16, r.width - (left - r.x) - (two ? 8 : side) - 2),
                        .flags = TD_PRIM_DETAIL };
  TdTextStyle second = { .role = TD_ROLE_DIM,
                         .size = TD_TEXT_SMALL,
                         .max_width = MAX (16, r.width - (left - r.x) - side - 4),
                         .flags = TD_PRIM_DETAIL };
  TdTextStyle event
      = { .role = TD_ROLE_DIM, .size = TD_TEXT_SMALL, .align = 1, .flags = TD_PRIM_DETAIL };

  td_scene_add_text (g->b, left, two ? middle - 7.5 : middle, n->label, &title);
  if (two)
    td_scene_add_text (g->b, left, middle + 8.5, n->detail, &second);
  if (*number)
    td_scene_add_text (g->b, r.x + r.width - right, two ? middle + 8.5 : middle, number,
                       &event);
  if (folded)
    {
      TdStyle chevron = { .stroke = role, .stroke_width = 1.8, .flags = TD_PRIM_DETAIL };
      guint n_groups;
      const TdVizGroup *group
          = &td_viz_graph_get_groups (g->layout->view->graph, &n_groups)[n->group];

      td_scene_mark (g->b, TD_TAG_GROUP_TOGGLE, group->key, n->lane, "expand");
      td_scene_add_shape (g->b, TD_PRIM_CHEVRON_RIGHT,
                          (TdSceneRect){ r.x + 9, middle - 5, 10, 10 }, 0, &chevron);
      td_scene_unmark (g->b);
    }
}

/* A pale node still hides the wires behind it: what is below it is painted again without them.
 */
static void
add_ground (TdGraphPainter *g, const TdVizNode *n, TdPrimKind shape, double radius,
            TdSceneRect r)
{
  TdStyle canvas = { .fill = TD_ROLE_CANVAS, .flags = TD_PRIM_DETAIL };
  TdStyle lane = { .fill = lanes[n->lane].tint, .flags = TD_PRIM_DETAIL | TD_PRIM_TINT };
  TdStyle group = { .fill = TD_ROLE_GROUP, .fill_alpha = 0.6, .flags = TD_PRIM_DETAIL };

  td_scene_add_shape (g->b, shape, r, radius, &canvas);
  td_scene_add_shape (g->b, shape, r, radius, &lane);
  if (n->parent > 0)
    td_scene_add_shape (g->b, shape, r, radius, &group);
}

static void
add_node (TdGraphPainter *g, gint i)
{
  const TdVizNode *n = &g->layout->view->nodes[i];
  TdSceneRect r = td__graph_rect (g, &g->layout->nodes[i]);
  gboolean run = td__graph_has_run (g, n->event);
  gboolean at = td__graph_is_at_playhead (g, i);
  gboolean selected = td__graph_is_selected (g, i);
  TdLife life = td__graph_life_of (g, i);
  gboolean replayed = td__graph_count_replayed (g, i) > 0;
  TdStyle style
      = { .fill = TD_ROLE_NODE, .stroke = TD_ROLE_NODE_STROKE, .flags = TD_PRIM_NODE };
  TdPrimKind shape = lanes[n->lane].shape;
  double radius = lanes[n->lane].radius;
  g_autofree char *tooltip = tooltip_of (g, i);

  if (replayed)
    {
      style.stroke = n->n_fused > 1 ? TD_ROLE_FUSED : TD_ROLE_STATIC;
      style.stroke_width = n->n_fused > 1 ? 2 : 1.4;
    }

  if (!run)
    {
      add_ground (g, n, shape, radius, r);
      style.dash = TD_DASH_DASHED;
      style.fill_alpha = 0.3;
    }
  else if (life == TD_LIFE_FREED) /* a ghost: the memory has gone */
    {
      add_ground (g, n, shape, radius, r);
      style.dash = TD_DASH_FINE;
      style.fill_alpha = 0.3;
    }
  if (n->failed)
    {
      TdStyle red = { .fill = TD_ROLE_NODE, .flags = TD_PRIM_DETAIL };

      td_scene_add_shape (g->b, shape, r, radius, &red);
      style = (TdStyle){ .fill = TD_ROLE_ERROR,
                         .fill_alpha = 0.28,
                         .pattern = TD_PATTERN_CROSS,
                         .stroke = TD_ROLE_ERROR,
                         .stroke_width = 2,
                         .flags = TD_PRIM_NODE };
    }
  TdMark mark = td__graph_mark_of (g, i);
  if (mark != TD_MARK_NONE && !n->failed)
    {
      style.stroke = td_mark_looks[mark].role;
      style.stroke_width = 2;
      style.dash = td_mark_looks[mark].dash;
    }
  if (at || selected)
    {
      add_halo (g, shape, radius, r);
      style.stroke = n->failed ? TD_ROLE_ERROR : TD_ROLE_ACCENT;
      style.stroke_width = 3;
      style.dash = TD_DASH_NONE;
    }
  td_scene_mark (g->b, TD_TAG_NODE, n->select_key, n->event, tooltip);
  td_scene_add_shape (g->b, shape, r, radius, &style);
  td_scene_unmark (g->b);
  td__graph_add_heat_stripe (g, i, r);
  add_node_text (g, i, r, run && life != TD_LIFE_FREED);
  if (replayed)
    td__graph_add_replay_sign (g, r.x + r.width - 15, r.y + 4, run);
  td__graph_add_marks (g, i, r);
}

/* The playhead's triangle and the program's dot lie over everything. */
static void
add_heads (TdGraphPainter *g)
{
  if (g->playhead >= 0 && g->panel->event >= 0)
    {
      TdSceneRect r = td__graph_rect (g, &g->layout->nodes[g->playhead]);
      TdStyle triangle = { .fill = TD_ROLE_ACCENT };

      /* beside the name of a group's header, not over it */
      double x = r.width < 120 ? r.x + r.width - 16 : r.x + r.width / 2 - 6;

      td_scene_mark (g->b, TD_TAG_PLAYHEAD, 0, g->panel->event, NULL);
      td_scene_add_shape (g->b, TD_PRIM_PLAYHEAD, (TdSceneRect){ x, r.y - 15, 12, 8 }, 0,
                          &triangle);
      td_scene_unmark (g->b);
    }
  if (g->panel->head >= 0)
    {
      gint i = td_viz_view_find_event (g->layout->view, g->panel->head);

      if (i >= 0)
        {
          TdSceneRect r = td__graph_rect (g, &g->layout->nodes[i]);
          td_panel_add_head (g->b, r.x + r.width - 1, r.y + 1);
        }
    }
}

/* ---- the picture ---- */

#define MARGIN 14

void
td_graph_scene_get_size (const TdLayout *layout, double *width, double *height)
{
  *width = layout->bounds.width + 2 * MARGIN;
  *height = layout->bounds.height + 2 * MARGIN;
}

TdScene *
td_graph_scene_new (const TdLayout *layout, const TdPanelView *panel, TdHeatBy heat)
{
  TdVizView *view = layout->view;
  TdGraphPainter g = { .layout = layout, .panel = panel, .heat = heat, .playhead = -1 };

  g.iteration = td_viz_graph_get_iteration (view->graph);
  g.dx = MARGIN - layout->bounds.x;
  g.dy = MARGIN - layout->bounds.y;
  double width, height;
  td_graph_scene_get_size (layout, &width, &height);
  g.b = td_scene_builder_new (width, height);
  td_scene_set_background (g.b, TD_ROLE_CANVAS);
  if (panel->event >= 0)
    g.playhead = td_viz_view_find_event (view, panel->event);
  if (g.playhead >= 0 && !shows_event (&view->nodes[g.playhead], panel->event))
    g.playhead = -1;
  td__graph_prepare_heat (&g);
  td__graph_find_lives (&g);
  td__graph_link_selection (&g);

  for (int lane = 0; lane < TD_N_LANES; lane++)
    if (view->has_lane[lane])
      add_lane (&g, (TdLane)lane);
  for (guint i = 0; i < view->n_groups; i++)
    if (view->groups[i].parent >= 0)
      add_open_group (&g, i);
  td__graph_add_edges (&g);
  for (guint i = 0; i < view->n_nodes; i++)
    if (view->nodes[i].kind == TD_VIZ_STUB || view->nodes[i].kind == TD_VIZ_INPUT)
      add_stub (&g, (gint)i);
    else
      add_node (&g, (gint)i);
  td__graph_add_pills (&g);
  add_heads (&g);
  g_free (g.heat_values);
  g_free (g.lives);
  g_free (g.linked);
  return td_scene_builder_end (g.b);
}
