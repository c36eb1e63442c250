/*
 * What a comparison found, in the graph's picture: a sign at each operation that differs, and
 * how many there are in each folded group.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-graph-scene-private.h"

#define PILL_HEIGHT 16.0

static TdMark
mark_at (const TdGraphPainter *g, gint event)
{
  if (!g->panel->marks || event < 0 || (guint)event >= g->panel->n_marks)
    return TD_MARK_NONE;
  return MIN (g->panel->marks[event], TD_N_MARKS - 1);
}

TdMark
td__graph_mark_of (const TdGraphPainter *g, gint node)
{
  const TdVizNode *n = &g->layout->view->nodes[node];

  return n->kind == TD_VIZ_OP ? mark_at (g, n->event) : TD_MARK_NONE;
}

/* A pill whose right end is at x; returns its width. */
static double
add_pill (TdGraphPainter *g, TdMark mark, guint count, double x, double y)
{
  const TdMarkLook *look = &td_mark_looks[mark];
  TdStyle pill = {
    .fill = TD_ROLE_CARD, .stroke = look->role, .stroke_width = 1.4, .flags = TD_PRIM_DETAIL
  };
  TdTextStyle style = { .role = look->role,
                        .size = TD_TEXT_SMALL,
                        .align = 0.5,
                        .bold = TRUE,
                        .flags = TD_PRIM_DETAIL };
  char text[32];
  double width;

  if (count > 0)
    g_snprintf (text, sizeof text, "%s %u", look->glyph, count);
  else
    g_strlcpy (text, look->glyph, sizeof text);
  width = MAX (20, td_text_width (text, TD_TEXT_SMALL, TRUE) + 12);
  td_scene_add_shape (g->b, TD_PRIM_ROUND,
                      (TdSceneRect){ x - width, y - PILL_HEIGHT / 2, width, PILL_HEIGHT },
                      PILL_HEIGHT / 2, &pill);
  td_scene_add_text (g->b, x - width / 2, y, text, &style);
  return width;
}

static void
add_counts (TdGraphPainter *g, const TdVizNode *n, TdSceneRect r)
{
  guint count[TD_N_MARKS] = { 0 }, n_members;
  const gint32 *members
      = td_viz_graph_get_members (g->layout->view->graph, (guint)n->group, n->lane, &n_members);
  double x = r.x + r.width - 6;

  for (guint i = 0; i < n_members; i++)
    count[mark_at (g, members[i])]++;
  for (int mark = TD_MARK_NONE + 1; mark < TD_N_MARKS; mark++)
    if (count[mark] > 0)
      x -= add_pill (g, (TdMark)mark, count[mark], x, r.y) + 3;
}

void
td__graph_add_marks (TdGraphPainter *g, gint node, TdSceneRect r)
{
  const TdVizNode *n = &g->layout->view->nodes[node];

  if (!g->panel->marks)
    return;
  if (n->kind == TD_VIZ_GROUP && n->group >= 0)
    add_counts (g, n, r);
  else if (td__graph_mark_of (g, node) != TD_MARK_NONE)
    add_pill (g, td__graph_mark_of (g, node), 0, r.x + r.width - 5, r.y);
}
