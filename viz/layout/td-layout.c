/* Layouts: made step by step, counted, printed.
 *
 * SPDX-License-Identifier: MIT */
#include "layout/td-layout-private.h"

TdLayout *
td__layout_run (TdVizView *view, const TdLayoutOptions *options, TdLayout *previous,
                TdLayeringFunc func, gpointer data)
{
  TdLayout *self = g_new0 (TdLayout, 1);
  TdLayoutBuild b = { .view = view };

  b.orientation = options ? options->orientation : TD_ORIENTATION_TB;
  b.tb = b.orientation == TD_ORIENTATION_TB;
  self->ref_count = 1;
  self->view = td_viz_view_ref (view);
  self->orientation = b.orientation;
  self->nodes = g_new0 (TdRect, view->n_nodes + 1);
  self->groups = g_malloc0 (sizeof *self->groups * (view->n_groups + 1));
  self->edges = g_new0 (TdEdgeRoute, view->n_edges + 1);
  td__layout_collect (&b);
  td__layout_measure (&b, func, data);
  td__layout_place (&b, self);
  td__layout_route (&b, self);
  self->is_quick = !b.all_by_graphviz;
  td__layout_build_clear (&b);
  if (previous)
    td__layout_keep (self, previous);
  return self;
}

TdLayout *
td_layout_new_quick (TdVizView *view, const TdLayoutOptions *options, TdLayout *previous)
{
  return td__layout_run (view, options, previous, NULL, NULL);
}

gboolean
td_layout_fits (const TdLayout *self, const TdVizView *view, TdOrientation orientation)
{
  return self->orientation == orientation && self->view->content_hash == view->content_hash
         && self->view->n_nodes == view->n_nodes && self->view->n_groups == view->n_groups
         && self->view->n_edges == view->n_edges;
}

TdLayout *
td_layout_new_like (const TdLayout *self, TdVizView *view)
{
  TdLayout *like = g_memdup2 (self, sizeof *self);

  like->ref_count = 1;
  like->view = td_viz_view_ref (view);
  like->nodes = g_memdup2 (self->nodes, sizeof *self->nodes * (view->n_nodes + 1));
  like->groups = g_memdup2 (self->groups, sizeof *self->groups * (view->n_groups + 1));
  like->edges = g_memdup2 (self->edges, sizeof *self->edges * (view->n_edges + 1));
  like->points = g_memdup2 (self->points, sizeof *self->points * self->n_points);
  return like;
}

TdLayout *
td_layout_ref (TdLayout *self)
{
  g_atomic_int_inc (&self->ref_count);
  return self;
}

void
td_layout_unref (TdLayout *self)
{
  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  td_viz_view_unref (self->view);
  g_free (self->nodes);
  g_free (self->groups);
  g_free (self->edges);
  g_free (self->points);
  g_free (self);
}

static void
print_rect (GString *text, const TdRect *r)
{
  g_string_append_printf (text, " %g,%g %gx%g", r->x, r->y, r->width, r->height);
}

char *
td_layout_to_text (const TdLayout *self)
{
  static const char *const lanes[] = { "forward", "backward", "update" };
  const TdVizView *view = self->view;
  const TdVizGroup *groups;
  GString *text = g_string_new (NULL);
  guint n;

  groups = td_viz_graph_get_groups (view->graph, &n);
  for (guint lane = 0; lane < TD_N_LANES; lane++)
    if (self->lanes[lane].width > 0)
      {
        g_string_append_printf (text, "lane %s", lanes[lane]);
        print_rect (text, &self->lanes[lane]);
        g_string_append_c (text, '\n');
      }
  for (guint i = 1; i < view->n_groups; i++)
    for (guint lane = 0; lane < TD_N_LANES; lane++)
      if (self->groups[i][lane].width > 0)
        {
          g_string_append_printf (text, "group %s %s", groups[view->groups[i].group].name,
                                  lanes[lane]);
          print_rect (text, &self->groups[i][lane]);
          g_string_append_c (text, '\n');
        }
  for (guint i = 0; i < view->n_nodes; i++)
    {
      g_string_append_printf (text, "node %u", i);
      print_rect (text, &self->nodes[i]);
      g_string_append_printf (text, " %s\n", view->nodes[i].label);
    }
  for (guint i = 0; i < view->n_edges; i++)
    {
      const TdEdgeRoute *route = &self->edges[i];

      g_string_append_printf (text, "edge %d %d:", view->edges[i].from, view->edges[i].to);
      for (guint k = 0; k < route->n_points; k++)
        g_string_append_printf (text, " %g,%g", self->points[route->first_point + k].x,
                                self->points[route->first_point + k].y);
      if (route->pill.width > 0)
        {
          g_string_append (text, " pill");
          print_rect (text, &route->pill);
        }
      g_string_append_c (text, '\n');
    }
  return g_string_free (text, FALSE);
}
