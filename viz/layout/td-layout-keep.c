/* Keeps what another iteration's picture has in common with this one where it was: an operation
 * more or less must not move all others. Things that are new take the place of what is gone, or
 * stand beside their neighbours; when too much is new, the fresh layout is the better picture.
 *
 * SPDX-License-Identifier: MIT */
#include "layout/td-layout-private.h"

#include <math.h>

#define GAP 4 /* at least, beside something new */

typedef struct
{
  TdLayout *self;
  const TdLayout *old;
  gboolean tb;
  gint32 *match;   /* per node: the node of the old view, -1 */
  guint8 *placed;  /* per node */
  GArray *vacated; /* gint32: old nodes that are gone */
  TdRect *fresh;   /* where the nodes would stand without an old picture */
} Keep;

/* ---- along and across ---- */

static double
along_of (const Keep *k, const TdRect *r)
{
  return k->tb ? r->y + r->height / 2 : r->x + r->width / 2;
}

static void
set_along (const Keep *k, TdRect *r, double centre)
{
  if (k->tb)
    r->y = centre - r->height / 2;
  else
    r->x = centre - r->width / 2;
}

static double
across_start (const Keep *k, const TdRect *r)
{
  return k->tb ? r->x : r->y;
}

static double
across_end (const Keep *k, const TdRect *r)
{
  return k->tb ? r->x + r->width : r->y + r->height;
}

static void
set_across (const Keep *k, TdRect *r, double start)
{
  if (k->tb)
    r->x = start;
  else
    r->y = start;
}

static void
include (TdRect *outer, const TdRect *r, double margin)
{
  double right = MAX (outer->x + outer->width, r->x + r->width + margin);
  double bottom = MAX (outer->y + outer->height, r->y + r->height + margin);

  outer->x = MIN (outer->x, r->x - margin);
  outer->y = MIN (outer->y, r->y - margin);
  outer->width = right - outer->x;
  outer->height = bottom - outer->y;
}

/* ---- what is known ---- */

static gint
find_old_group (const Keep *k, guint group)
{
  for (guint i = 0; i < k->old->view->n_groups; i++)
    if (k->old->view->groups[i].facet_keys[0] == k->self->view->groups[group].facet_keys[0])
      return (gint)i;
  return -1;
}

/* Match nodes by key. Returns FALSE if this is another picture altogether. */
static gboolean
match_nodes (Keep *k)
{
  const TdVizView *view = k->self->view, *old = k->old->view;
  guint8 *used = g_new0 (guint8, old->n_nodes + 1);
  guint n_new = 0;

  for (guint i = 0; i < view->n_nodes; i++)
    {
      gint m = td_viz_view_find (old, view->nodes[i].key);

      if (m >= 0
          && (old->nodes[m].key != view->nodes[i].key
              || old->nodes[m].lane != view->nodes[i].lane
              || (old->nodes[m].user < 0) != (view->nodes[i].user < 0) || used[m]))
        m = -1;
      k->match[i] = m;
      if (m >= 0)
        used[m] = 1;
      else
        n_new++;
    }
  for (gint32 m = 0; m < (gint32)old->n_nodes; m++)
    if (!used[m] && old->nodes[m].user < 0)
      g_array_append_val (k->vacated, m);
  g_free (used);
  if (n_new * 4 > view->n_nodes + 8)
    return FALSE;
  for (guint lane = 0; lane < TD_N_LANES; lane++)
    if (view->has_lane[lane] != old->has_lane[lane])
      return FALSE;
  for (guint g = 0; g < view->n_groups; g++)
    if (find_old_group (k, g) < 0)
      return FALSE;
  return view->n_groups == old->n_groups;
}

/* ---- places for what is new ---- */

/* Beside its twin, else between those that it is joined to, else where it would have stood. */
static double
wish_of (const Keep *k, guint node)
{
  const TdVizView *view = k->self->view;
  double sum = 0;
  guint n = 0;

  if (view->nodes[node].twin >= 0 && k->placed[view->nodes[node].twin])
    return along_of (k, &k->self->nodes[view->nodes[node].twin]);
  for (guint i = 0; i < view->n_edges; i++)
    {
      const TdVizEdge *e = &view->edges[i];
      gint other = e->from == (gint)node ? e->to : e->to == (gint)node ? e->from : -1;

      if (other < 0 || !k->placed[other] || view->nodes[other].lane != view->nodes[node].lane)
        continue;
      sum += along_of (k, &k->self->nodes[other]);
      n++;
    }
  return n ? sum / n : along_of (k, &k->fresh[node]);
}

static gboolean
take_vacated (Keep *k, guint node, double wish)
{
  TdRect *r = &k->self->nodes[node];
  gint best = -1;
  double nearest = 4 * TD_NODE_HEIGHT;

  for (guint i = 0; i < k->vacated->len; i++)
    {
      gint32 m = g_array_index (k->vacated, gint32, i);
      const TdRect *place = &k->old->nodes[m];
      double distance = fabs (along_of (k, place) - wish);

      if (k->old->view->nodes[m].lane != k->self->view->nodes[node].lane
          || k->old->view->nodes[m].parent
                 != find_old_group (k, (guint)k->self->view->nodes[node].parent)
          || place->width != r->width || place->height != r->height || distance >= nearest)
        continue;
      nearest = distance;
      best = (gint)i;
    }
  if (best < 0)
    return FALSE;
  *r = k->old->nodes[g_array_index (k->vacated, gint32, best)];
  g_array_remove_index (k->vacated, (guint)best);
  return TRUE;
}

/* How far what stands in the way of `r` reaches, on the side `direction` of it. FALSE: nothing
 * does. */
static gboolean
find_obstacle (const Keep *k, guint node, const TdRect *r, gint direction, double *edge)
{
  const TdVizView *view = k->self->view;
  TdRect wide = { r->x - GAP, r->y - GAP, r->width + 2 * GAP, r->height + 2 * GAP };
  gboolean found = FALSE;

  for (guint i = 0; i < view->n_nodes; i++)
    {
      const TdRect *other = &k->self->nodes[i];
      double end = direction > 0 ? across_end (k, other) : across_start (k, other);

      if (i == node || !k->placed[i] || view->nodes[i].lane != view->nodes[node].lane
          || other->x >= wide.x + wide.width || other->x + other->width <= wide.x
          || other->y >= wide.y + wide.height || other->y + other->height <= wide.y)
        continue;
      if (!found || (direction > 0 ? end > *edge : end < *edge))
        *edge = end;
      found = TRUE;
    }
  return found;
}

/* Move `r` sideways until nothing is in its way. */
static void
slide (const Keep *k, guint node, TdRect *r, gint direction)
{
  double edge = 0;

  for (guint i = 0; i <= k->self->view->n_nodes && find_obstacle (k, node, r, direction, &edge);
       i++)
    set_across (k, r,
                direction > 0 ? edge + GAP
                              : edge - GAP - (across_end (k, r) - across_start (k, r)));
}

/* Forward to the left, where nothing follows; backward in what its lane has left on the right;
 * updates as well. A lane that must grow to the right pushes the lanes behind it. */
static void
place_beside (Keep *k, guint node, double wish)
{
  TdRect *r = &k->self->nodes[node];
  TdLane lane = k->self->view->nodes[node].lane;
  double growth;

  set_along (k, r, floor (wish + 0.5));
  if (lane == TD_LANE_FORWARD)
    {
      slide (k, node, r, -1);
      return;
    }
  if (k->tb && lane == TD_LANE_BACKWARD)
    r->width = MIN (r->width, TD_TWIN_WIDTH);
  set_across (k, r, across_start (k, &k->self->lanes[lane]) + TD_LANE_PAD);
  slide (k, node, r, 1);
  growth = across_end (k, r) + TD_LANE_PAD - across_end (k, &k->self->lanes[lane]);
  if (growth <= 0 || lane == TD_LANE_UPDATE)
    return;
  for (guint i = 0; i < k->self->view->n_nodes; i++)
    if (k->self->view->nodes[i].lane == TD_LANE_UPDATE)
      set_across (k, &k->self->nodes[i], across_start (k, &k->self->nodes[i]) + growth);
  for (guint g = 1; g < k->self->view->n_groups; g++)
    set_across (k, &k->self->groups[g][TD_LANE_UPDATE],
                across_start (k, &k->self->groups[g][TD_LANE_UPDATE]) + growth);
  set_across (k, &k->self->lanes[TD_LANE_UPDATE],
              across_start (k, &k->self->lanes[TD_LANE_UPDATE]) + growth);
}

static void
place_new (Keep *k)
{
  const TdVizView *view = k->self->view;

  for (gint stubs = 0; stubs < 2; stubs++)
    for (guint i = 0; i < view->n_nodes; i++)
      {
        const TdVizNode *node = &view->nodes[i];

        if (k->placed[i] || (node->user >= 0) != (stubs == 1))
          continue;
        if (stubs)
          { /* as it would stand beside its user */
            k->self->nodes[i].x
                = k->self->nodes[node->user].x + k->fresh[i].x - k->fresh[node->user].x;
            k->self->nodes[i].y
                = k->self->nodes[node->user].y + k->fresh[i].y - k->fresh[node->user].y;
          }
        else
          {
            double wish = wish_of (k, i);

            if (!take_vacated (k, i, wish))
              place_beside (k, i, wish);
          }
        k->placed[i] = 1;
        if (!stubs)
          for (gint g = node->parent; g > 0; g = view->groups[g].parent)
            include (&k->self->groups[g][node->lane], &k->self->nodes[i], TD_INSET);
        include (&k->self->lanes[node->lane], &k->self->nodes[i], TD_LANE_PAD);
      }
  for (guint lane = 0; lane < TD_N_LANES; lane++)
    if (view->has_lane[lane])
      include (&k->self->bounds, &k->self->lanes[lane], 0);
}

/* What became one node of several takes, towards where they stood, the room of those that are
 * gone; where there is none it counts as new. Its edges end elsewhere: they are drawn anew. */
static void
place_resized (Keep *k)
{
  const TdVizView *view = k->self->view, *old = k->old->view;
  double edge;

  for (guint i = 0; i < view->n_nodes; i++)
    {
      TdRect *r = &k->self->nodes[i];
      gint m = k->match[i];

      if (m < 0 || view->nodes[i].n_fused == old->nodes[m].n_fused)
        continue;
      const TdRect was = *r;
      *r = (TdRect){ was.x, was.y + was.height - k->fresh[i].height, was.width,
                     k->fresh[i].height };
      if (find_obstacle (k, i, r, 1, &edge))
        r->y = was.y;
      if (find_obstacle (k, i, r, 1, &edge))
        k->placed[i] = 0;
      k->match[i] = -1;
    }
}

/* ---- edges ---- */

static void
add_point (const Keep *k, GArray *points, double along, double across)
{
  TdPoint p = k->tb ? (TdPoint){ across, along } : (TdPoint){ along, across };

  g_array_append_val (points, p);
}

/* A way of its own for an edge that the old picture has not. */
static void
route_new (const Keep *k, GArray *points, guint edge)
{
  const TdVizEdge *e = &k->self->view->edges[edge];
  const TdRect *a = &k->self->nodes[e->from], *b = &k->self->nodes[e->to];
  double half_a = (k->tb ? a->height : a->width) / 2,
         half_b = (k->tb ? b->height : b->width) / 2;
  double from = along_of (k, a), to = along_of (k, b);
  double x = (across_start (k, a) + across_end (k, a)) / 2;
  double y = (across_start (k, b) + across_end (k, b)) / 2;
  gboolean beside;

  beside = k->self->view->nodes[e->from].lane != k->self->view->nodes[e->to].lane
           || e->kind == TD_EDGE_STUB
           || (from + half_a > to - half_b && to + half_b > from - half_a);
  if (beside && across_end (k, a) <= across_start (k, b) - GAP)
    { /* side by side */
      double middle = (across_end (k, a) + across_start (k, b)) / 2;

      add_point (k, points, from, across_end (k, a));
      if (from != to)
        {
          add_point (k, points, from, middle);
          add_point (k, points, to, middle);
        }
      add_point (k, points, to, across_start (k, b));
      return;
    }
  {
    gint down = to >= from ? 1 : -1;
    double start = from + down * half_a, end = to - down * half_b, bend = (start + end) / 2;

    add_point (k, points, start, x);
    if (x != y)
      {
        add_point (k, points, bend, x);
        add_point (k, points, bend, y);
      }
    add_point (k, points, end, y);
  }
}

static gpointer
pair (gint32 from, gint32 to)
{
  return GSIZE_TO_POINTER ((gsize)(guint32)from << 32 | (guint32)to);
}

static gboolean
stands_still (const Keep *k, gint32 node)
{
  const TdRect *a = &k->self->nodes[node], *b;

  if (k->match[node] < 0)
    return FALSE;
  b = &k->old->nodes[k->match[node]];
  return a->x == b->x && a->y == b->y;
}

static void
route_all (Keep *k)
{
  const TdVizView *view = k->self->view, *old = k->old->view;
  GHashTable *known = g_hash_table_new (NULL, NULL); /* old from and to -> old edge + 1 */
  GArray *points = g_array_new (FALSE, FALSE, sizeof (TdPoint));

  for (guint i = 0; i < old->n_edges; i++)
    g_hash_table_insert (known, pair (old->edges[i].from, old->edges[i].to),
                         GUINT_TO_POINTER (i + 1));
  for (guint i = 0; i < view->n_edges; i++)
    {
      const TdVizEdge *e = &view->edges[i];
      TdEdgeRoute *route = &k->self->edges[i];
      guint before = points->len;
      guint m = 0;

      if (stands_still (k, e->from) && stands_still (k, e->to))
        m = GPOINTER_TO_UINT (
            g_hash_table_lookup (known, pair (k->match[e->from], k->match[e->to])));
      if (m)
        {
          *route = k->old->edges[m - 1];
          g_array_append_vals (points, k->old->points + route->first_point, route->n_points);
        }
      else
        {
          TdPoint tip;

          route_new (k, points, i);
          tip = g_array_index (points, TdPoint, points->len - 1);
          route->label = (TdPoint){ tip.x + 7, tip.y - 11 };
          if (e->kind == TD_EDGE_SAVED)
            {
              const TdPoint *a = &g_array_index (points, TdPoint, before);

              route->pill
                  = (TdRect){ (a->x + tip.x) / 2 - TD_PILL_WIDTH / 2.0,
                              (k->tb ? a->y : (a->y + tip.y) / 2) - TD_PILL_HEIGHT / 2.0,
                              TD_PILL_WIDTH, TD_PILL_HEIGHT };
            }
        }
      route->first_point = before;
      route->n_points = points->len - before;
    }
  g_hash_table_unref (known);
  g_free (k->self->points);
  k->self->n_points = points->len;
  k->self->points = (TdPoint *)(gpointer)g_array_free (points, FALSE);
}

void
td__layout_keep (TdLayout *self, const TdLayout *old)
{
  Keep k = { .self = self, .old = old, .tb = self->orientation == TD_ORIENTATION_TB };
  guint n = self->view->n_nodes;

  if (old->orientation != self->orientation || old->view->graph == self->view->graph
      || old->view->content_hash == self->view->content_hash)
    return;
  k.match = g_new (gint32, n + 1);
  k.placed = g_new0 (guint8, n + 1);
  k.vacated = g_array_new (FALSE, FALSE, sizeof (gint32));
  k.fresh = g_memdup2 (self->nodes, sizeof (TdRect) * n);
  if (match_nodes (&k))
    {
      for (guint i = 0; i < n; i++)
        if (k.match[i] >= 0)
          {
            self->nodes[i] = old->nodes[k.match[i]];
            k.placed[i] = 1;
          }
      for (guint g = 0; g < self->view->n_groups; g++)
        for (guint lane = 0; lane < TD_N_LANES; lane++)
          self->groups[g][lane] = old->groups[find_old_group (&k, g)][lane];
      for (guint lane = 0; lane < TD_N_LANES; lane++)
        self->lanes[lane] = old->lanes[lane];
      self->bounds = old->bounds;
      place_resized (&k);
      place_new (&k);
      for (guint lane = 0; lane < TD_N_LANES; lane++)
        self->groups[0][lane] = self->lanes[lane];
      route_all (&k);
    }
  g_free (k.match);
  g_free (k.placed);
  g_free (k.fresh);
  g_array_free (k.vacated, TRUE);
}
