/* Questions to a finished layout: what moved, where to walk. What is below a point is asked of
 * the scene.
 *
 * SPDX-License-Identifier: MIT */
#include "layout/td-layout-private.h"

#include <math.h>

/* Where the thing with this key stands: a node, or an open group by its facet or its own key.
 */
static const TdRect *
find_rect (const TdLayout *self, guint64 key)
{
  gint node = td_viz_view_find (self->view, key);
  guint n;
  const TdVizGroup *groups = td_viz_graph_get_groups (self->view->graph, &n);

  if (node >= 0)
    return &self->nodes[node];
  for (guint i = 1; i < self->view->n_groups; i++)
    for (guint lane = 0; lane < TD_N_LANES; lane++)
      if (self->groups[i][lane].width > 0
          && (self->view->groups[i].facet_keys[lane] == key
              || groups[self->view->groups[i].group].key == key))
        return &self->groups[i][lane];
  return NULL;
}

gboolean
td_layout_get_shift (const TdLayout *from, const TdLayout *to, guint64 key, double *dx,
                     double *dy)
{
  const TdRect *a = find_rect (from, key), *b = find_rect (to, key);

  if (!a || !b)
    return FALSE;
  *dx = b->x - a->x;
  *dy = b->y - a->y;
  return TRUE;
}

/* Nodes joined by an edge whose other end lies in the wanted direction are nearer than others.
 */
gint
td_layout_walk (const TdLayout *self, gint node, gint dx, gint dy)
{
  const TdRect *from = &self->nodes[node];
  double x = from->x + from->width / 2, y = from->y + from->height / 2;
  gboolean along_edges = self->orientation == TD_ORIENTATION_TB ? dy != 0 : dx != 0;
  double best = G_MAXDOUBLE;
  gint found = -1;

  for (guint i = 0; along_edges && i < self->view->n_edges; i++)
    {
      const TdVizEdge *e = &self->view->edges[i];
      gint other = e->from == node ? e->to : e->to == node ? e->from : -1;
      double ox, oy, distance;

      if (other < 0 || e->kind == TD_EDGE_STUB
          || self->view->nodes[other].lane != self->view->nodes[node].lane)
        continue;
      ox = self->nodes[other].x + self->nodes[other].width / 2 - x;
      oy = self->nodes[other].y + self->nodes[other].height / 2 - y;
      distance = hypot (ox, oy);
      if ((dx ? ox * dx : oy * dy) > 0 && distance < best)
        {
          best = distance;
          found = other;
        }
    }
  if (found >= 0)
    return found;
  /* within 45 degrees ahead; detours to the side cost twice */
  for (guint i = 0; i < self->view->n_nodes; i++)
    {
      double ox = self->nodes[i].x + self->nodes[i].width / 2 - x;
      double oy = self->nodes[i].y + self->nodes[i].height / 2 - y;
      double ahead = dx ? ox * dx : oy * dy, sideways = fabs (dx ? oy : ox);

      if ((gint)i == node || ahead <= 0 || sideways > ahead || ahead + 2 * sideways >= best)
        continue;
      best = ahead + 2 * sideways;
      found = (gint)i;
    }
  return found;
}
