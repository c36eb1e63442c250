/* Questions to a finished layout: what is here, what is in sight, what moved, where to walk. A
 * grid of cells over the nodes answers the first two without looking at everything.
 *
 * SPDX-License-Identifier: MIT */
#include "layout/td-layout-private.h"

#include <math.h>

#define CELL 256 /* points */
#define MIN_TARGET 24

struct TdLayoutIndex
{
  guint columns, rows;
  guint32 *first; /* per cell, columns * rows + 1 */
  guint32 *nodes;
};

static void
cells_of (const TdLayout *self, const struct TdLayoutIndex *index, const TdRect *r, guint *c0,
          guint *c1, guint *r0, guint *r1)
{
  double x = r->x - self->bounds.x, y = r->y - self->bounds.y;

  *c0 = (guint)CLAMP (floor (x / CELL), 0, index->columns - 1);
  *c1 = (guint)CLAMP (floor ((x + r->width) / CELL), 0, index->columns - 1);
  *r0 = (guint)CLAMP (floor (y / CELL), 0, index->rows - 1);
  *r1 = (guint)CLAMP (floor ((y + r->height) / CELL), 0, index->rows - 1);
}

/* What takes hits for a node: small things more than themselves. */
static TdRect
target_of (const TdRect *r)
{
  double dx = MAX (0, (MIN_TARGET - r->width) / 2), dy = MAX (0, (MIN_TARGET - r->height) / 2);

  return (TdRect){ r->x - dx, r->y - dy, r->width + 2 * dx, r->height + 2 * dy };
}

void
td__layout_index (TdLayout *self)
{
  struct TdLayoutIndex *index = g_new0 (struct TdLayoutIndex, 1);
  guint n_nodes = self->view->n_nodes;
  guint n_cells, c0, c1, r0, r1;

  index->columns = (guint)CLAMP (ceil (self->bounds.width / CELL), 1, 4096);
  index->rows = (guint)CLAMP (ceil (self->bounds.height / CELL), 1, 65536);
  if ((guint64)index->columns * index->rows > 4u * n_nodes + 1024)
    { /* a huge, thin picture: fewer and larger cells at its ends do no harm */
      index->columns = MIN (index->columns, 64);
      index->rows = MIN (index->rows, n_nodes / 16 + 16);
    }
  n_cells = index->columns * index->rows;
  index->first = g_new0 (guint32, n_cells + 2);
  for (gint pass = 0; pass < 2; pass++)
    {
      for (guint i = 0; i < n_nodes; i++)
        {
          TdRect r = target_of (&self->nodes[i]);

          cells_of (self, index, &r, &c0, &c1, &r0, &r1);
          for (guint row = r0; row <= r1; row++)
            for (guint column = c0; column <= c1; column++)
              if (pass == 0)
                index->first[row * index->columns + column + 2]++;
              else
                index->nodes[index->first[row * index->columns + column + 1]++] = i;
        }
      if (pass == 1)
        break;
      for (guint i = 1; i < n_cells + 2; i++)
        index->first[i] += index->first[i - 1];
      index->nodes = g_new (guint32, index->first[n_cells + 1] + 1);
    }
  self->index = index;
}

void
td__layout_index_free (struct TdLayoutIndex *index)
{
  g_free (index->first);
  g_free (index->nodes);
  g_free (index);
}

static gboolean
contains (const TdRect *r, double x, double y)
{
  return x >= r->x && x < r->x + r->width && y >= r->y && y < r->y + r->height;
}

static gint
hit_node (const TdLayout *self, double x, double y)
{
  TdRect point = { x, y, 0, 0 };
  guint c0, c1, r0, r1, cell;
  gint best = -1;
  double nearest = G_MAXDOUBLE;

  cells_of (self, self->index, &point, &c0, &c1, &r0, &r1);
  cell = r0 * self->index->columns + c0;
  for (guint i = self->index->first[cell]; i < self->index->first[cell + 1]; i++)
    {
      guint node = self->index->nodes[i];
      TdRect r = target_of (&self->nodes[node]);
      double distance;

      if (contains (&self->nodes[node], x, y))
        return (gint)node;
      if (!contains (&r, x, y))
        continue;
      distance = hypot (r.x + r.width / 2 - x, r.y + r.height / 2 - y);
      if (distance < nearest)
        {
          nearest = distance;
          best = (gint)node;
        }
    }
  return best;
}

TdHit
td_layout_hit (const TdLayout *self, double x, double y)
{
  gint node = hit_node (self, x, y);

  if (node >= 0)
    return (TdHit){ TD_HIT_NODE, node, self->view->nodes[node].lane };
  for (guint i = 0; i < self->view->n_edges; i++)
    if (self->edges[i].pill.width > 0)
      {
        TdRect r = target_of (&self->edges[i].pill);

        if (contains (&r, x, y))
          return (TdHit){ TD_HIT_EDGE, (gint)i, TD_LANE_FORWARD };
      }
  for (guint i = self->view->n_groups; i-- > 1;) /* inner groups come last */
    for (guint lane = 0; lane < TD_N_LANES; lane++)
      {
        TdRect header = self->groups[i][lane];

        if (header.width <= 0 || !contains (&header, x, y))
          continue;
        header.height = self->header_height;
        return (TdHit){ contains (&header, x, y) ? TD_HIT_HEADER : TD_HIT_GROUP, (gint)i,
                        lane };
      }
  return (TdHit){ TD_HIT_NOTHING, -1, TD_LANE_FORWARD };
}

static int
compare_indices (gconstpointer a, gconstpointer b)
{
  return *(const gint32 *)a - *(const gint32 *)b;
}

GArray *
td_layout_get_nodes_in (const TdLayout *self, const TdRect *rect)
{
  GArray *found = g_array_new (FALSE, FALSE, sizeof (gint32));
  guint c0, c1, r0, r1, kept = 0;

  cells_of (self, self->index, rect, &c0, &c1, &r0, &r1);
  for (guint row = r0; row <= r1; row++)
    for (guint column = c0; column <= c1; column++)
      {
        guint cell = row * self->index->columns + column;

        for (guint i = self->index->first[cell]; i < self->index->first[cell + 1]; i++)
          {
            gint32 node = (gint32)self->index->nodes[i];
            const TdRect *r = &self->nodes[node];

            if (r->x < rect->x + rect->width && r->x + r->width > rect->x
                && r->y < rect->y + rect->height && r->y + r->height > rect->y)
              g_array_append_val (found, node);
          }
      }
  g_array_sort (found, compare_indices);
  for (guint i = 0; i < found->len; i++) /* a node may be in several cells */
    if (i == 0 || g_array_index (found, gint32, i) != g_array_index (found, gint32, kept - 1))
      g_array_index (found, gint32, kept++) = g_array_index (found, gint32, i);
  g_array_set_size (found, kept);
  return found;
}

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
