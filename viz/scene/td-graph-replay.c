/*
 * What a static schedule did, in the graph's picture: a sign at each operation that it
 * replayed, fused operations as one box with a line each.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-graph-scene-private.h"

#include <string.h>

#define SIGN_WIDTH 9.0
#define SIGN_LINES 3
#define FUSED_LINE 20.0
#define FUSED_LINES 6u

static gboolean
is_replayed (const TdGraphPainter *g, gint event)
{
  const TdTapeIteration *t = td_iteration_get_tape (g->iteration);

  return event >= 0 && (guint)event < t->n_events
         && (t->events[event].flags & TD_TAPE_EVENT_REPLAYED) != 0;
}

/* A group may have a million of them, and is counted for each picture. */
static guint
count_members (const TdGraphPainter *g, guint group, TdLane lane)
{
  guint n, count = 0;
  const gint32 *members;

  if (!td_iteration_any_replayed (g->iteration))
    return 0;
  members = td_viz_graph_get_members (g->layout->view->graph, group, lane, &n);
  for (guint i = 0; i < n; i++)
    count += is_replayed (g, members[i]);
  return count;
}

guint
td__graph_count_replayed (const TdGraphPainter *g, gint node)
{
  const TdVizNode *n = &g->layout->view->nodes[node];

  if (n->kind == TD_VIZ_OP)
    return is_replayed (g, n->event);
  return n->kind == TD_VIZ_GROUP && n->group >= 0 ? count_members (g, (guint)n->group, n->lane)
                                                  : 0;
}

double
td__graph_add_replay_sign (TdGraphPainter *g, double x, double y, gboolean run)
{
  TdStyle line = { .stroke = TD_ROLE_STATIC,
                   .stroke_alpha = run ? 1 : 0.5,
                   .stroke_width = 1.4,
                   .flags = TD_PRIM_DETAIL };

  for (int i = 0; i < SIGN_LINES; i++)
    {
      const TdScenePoint q[] = { { x, y + 2.6 * i }, { x + SIGN_WIDTH, y + 2.6 * i } };

      td_scene_add_line (g->b, q, 2, &line);
    }
  return SIGN_WIDTH;
}

void
td__graph_add_replay_legend (TdGraphPainter *g, TdLane lane, TdSceneRect r)
{
  static const double title_width[TD_N_LANES] = { 78, 86, 70 };
  guint n_replayed = count_members (g, 0, lane);
  TdTextStyle style = { .role = TD_ROLE_STATIC, .size = TD_TEXT_SMALL };
  double x = r.x + title_width[lane], room = r.width - title_width[lane] - 84;
  char text[32];

  g_snprintf (text, sizeof text, "%u replayed", n_replayed);
  if (n_replayed == 0 || room < SIGN_WIDTH + 5 + td_text_width (text, TD_TEXT_SMALL, FALSE))
    return;
  x += td__graph_add_replay_sign (g, x, r.y + 12, TRUE) + 5;
  td_scene_add_text (g->b, x, r.y + 15, text, &style);
}

void
td__graph_add_fused_text (TdGraphPainter *g, gint node, TdSceneRect r, gboolean run)
{
  const TdVizNode *n = &g->layout->view->nodes[node];
  g_auto (GStrv) parts = g_strsplit (n->label, "+", -1);
  guint n_parts = g_strv_length (parts), n_lines = MIN (n_parts, FUSED_LINES);
  TdStyle split = { .stroke = TD_ROLE_FUSED, .dash = TD_DASH_DOTTED, .flags = TD_PRIM_DETAIL };
  double y = r.y + (r.height - FUSED_LINE * n_lines) / 2;

  for (guint i = 0; i < n_lines; i++, y += FUSED_LINE)
    {
      const TdScenePoint q[] = { { r.x + 8, y }, { r.x + r.width - 8, y } };
      gboolean cut = i + 1 == n_lines && n_parts > n_lines;
      g_autofree char *rest
          = cut ? g_strdup_printf ("and %u more", n_parts - n_lines + 1) : NULL;
      TdTextStyle style = { .role = run && !cut ? TD_ROLE_NODE_TEXT : TD_ROLE_DIM,
                            .size = TD_TEXT_NODE,
                            .max_width = MAX (16, r.width - (i == 0 ? 48 : 24)),
                            .flags = TD_PRIM_DETAIL };

      if (i > 0)
        td_scene_add_line (g->b, q, 2, &split);
      td_scene_add_text (g->b, r.x + 12, y + FUSED_LINE / 2, rest ? rest : parts[i], &style);
    }
}

void
td__graph_append_replay (const TdGraphPainter *g, gint node, GString *text)
{
  const TdVizNode *n = &g->layout->view->nodes[node];
  const TdPanelStep *step
      = n->kind == TD_VIZ_OP && g->panel->steps && (guint)n->event < g->panel->n_steps
            ? &g->panel->steps[n->event]
            : NULL;
  guint count = td__graph_count_replayed (g, node);

  if (n->n_fused > 1)
    g_string_append_printf (text, " · %u operations fused", n->n_fused);
  if (count == 0)
    return;
  if (n->kind == TD_VIZ_GROUP)
    g_string_append_printf (text, " · %u replayed", count);
  else if (step && step->schedule > 0 && step->step == TD_PANEL_NO_STEP)
    g_string_append_printf (text, " · replayed from schedule %u", step->schedule);
  else if (step && step->schedule > 0)
    g_string_append_printf (text, " · replayed from schedule %u, step %u", step->schedule,
                            step->step);
  else
    g_string_append (text, " · replayed from a static schedule");
}

/* ---- selection ---- */

static gboolean
is_open (const TdVizView *view, gint group)
{
  for (guint i = 0; i < view->n_groups; i++)
    if (view->groups[i].group == group)
      return TRUE;
  return FALSE;
}

/* The event that stands for a key that no node has: of a variable what made it, of a group that
 * is folded away its first. */
static gint
event_behind (const TdGraphPainter *g, guint64 key)
{
  TdVizGraph *graph = g->layout->view->graph;
  gint event = td_iteration_find (g->iteration, key), group;
  guint n;

  if (event >= 0 || (group = td_viz_graph_find_group (graph, key)) < 0
      || is_open (g->layout->view, group))
    return event;
  for (int lane = 0; lane < TD_N_LANES; lane++)
    {
      const gint32 *members = td_viz_graph_get_members (graph, (guint)group, (TdLane)lane, &n);

      if (n > 0)
        return members[0];
    }
  return -1;
}

void
td__graph_link_selection (TdGraphPainter *g)
{
  TdVizView *view = g->layout->view;

  for (guint i = 0; i < g->panel->n_selected; i++)
    {
      guint64 key = g->panel->selected[i];
      gint event, node;

      if (td_viz_view_find (view, key) >= 0)
        continue;
      event = event_behind (g, key);
      node = event >= 0 ? td_viz_view_find_event (view, (guint)event) : -1;
      if (node < 0)
        continue;
      if (!g->linked)
        g->linked = g_malloc0 (view->n_nodes);
      g->linked[node] = 1;
    }
}
