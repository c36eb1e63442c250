/* Last step of a layout: the ways of edges, as orthogonal polylines. Within a lane an edge goes
 * from slot to slot and bends only between ranks; between lanes it uses the gap.
 *
 * SPDX-License-Identifier: MIT */
#include "layout/td-layout-private.h"

#include <math.h>

#define PORT_MARGIN 10 /* arrows keep this far from a node's corners */
#define TRACK 6
#define N_PILLS 32

typedef struct
{
  TdLayoutBuild *b;
  TdLayout *layout;
  GArray *points;        /* TdPoint */
  guint32 *track;        /* per view node: which track its edges bend on */
  double pills[N_PILLS]; /* along: where the last ones were put */
  guint n_pills;
} Router;

/* A point by (along, across). */
static void
add_point (Router *r, double along, double across)
{
  TdPoint p = r->b->tb ? (TdPoint){ across, along } : (TdPoint){ along, across };
  guint n = r->points->len;
  guint first = r->layout->n_points; /* of this edge, while it is being made */
  TdPoint *last = n > first ? &g_array_index (r->points, TdPoint, n - 1) : NULL;

  if (last && last->x == p.x && last->y == p.y)
    return;
  if (n > first + 1)
    {
      const TdPoint *before = &g_array_index (r->points, TdPoint, n - 2);

      /* straight on: the point between says nothing */
      if ((before->x == last->x && last->x == p.x) || (before->y == last->y && last->y == p.y))
        {
          *last = p;
          return;
        }
    }
  g_array_append_val (r->points, p);
}

typedef struct
{
  double start, end;  /* along */
  double left, right; /* across */
} Extent;

static Extent
extent_of (const Router *r, gint node)
{
  const TdRect *n = &r->layout->nodes[node];

  return r->b->tb ? (Extent){ n->y, n->y + n->height, n->x, n->x + n->width }
                  : (Extent){ n->x, n->x + n->width, n->y, n->y + n->height };
}

static double
middle (const Extent *e)
{
  return (e->left + e->right) / 2;
}

/* Go to across position `to`, bending at `bend`. */
static void
jog (Router *r, double bend, double from, double to)
{
  if (from == to)
    return;
  add_point (r, bend, from);
  add_point (r, bend, to);
}

/* Follow the slots of one rec, in the direction in which the data go. Returns the across
 * position at the end; `gap_side` is +1 when going down the ranks. */
static double
follow_rec (Router *r, const TdRec *rec, gint direction, double across, guint track)
{
  const TdBox *box = &r->b->boxes[rec->box];
  const TdLayering *l = box->layering;
  const TdTrunk *trunk = rec->trunk >= 0 ? &l->trunks[rec->trunk] : NULL;
  guint lane = trunk ? trunk->lane : 0;
  gint32 lo, hi;

  if (!trunk || trunk->lo > trunk->hi)
    return across;
  lo = rec->from >= 0 ? l->rank[r->b->units[rec->from].local] + 1 : 0;
  hi = rec->to >= 0 ? l->rank[r->b->units[rec->to].local] - 1 : (gint32)l->n_ranks - 1;
  lo = MAX (lo, trunk->lo);
  hi = MIN (hi, trunk->hi);
  for (gint32 i = 0; i <= hi - lo; i++)
    {
      gint32 rank = direction > 0 ? lo + i : hi - i;
      double x = box->across[lane]
                 + box->slot_across[trunk->first_slot + (guint32)(rank - trunk->lo)];
      double start = box->along + box->rank_start[rank];
      double end = start + box->rank_length[rank];
      double bend
          = direction > 0 ? start - 8 - TRACK * (double)track : end + 8 + TRACK * (double)track;

      jog (r, bend, across, x);
      across = x;
      add_point (r, direction > 0 ? end : start, x);
    }
  return across;
}

/* Where an edge that comes along `across` enters a node. */
static double
port (const Extent *e, double across)
{
  if (e->right - e->left <= 2 * PORT_MARGIN)
    return middle (e);
  return CLAMP (across, e->left + PORT_MARGIN, e->right - PORT_MARGIN);
}

/* From row to row of one lane. */
static void
route_in_lane (Router *r, guint edge, gint direction)
{
  const TdVizEdge *e = &r->b->view->edges[edge];
  Extent from = extent_of (r, e->from), to = extent_of (r, e->to);
  guint track = r->track[e->from] % TD_MAX_TRACKS;
  guint32 first = r->b->edge_first_rec[edge], n = r->b->edge_first_rec[edge + 1] - first;
  double across = middle (&from), end;
  double tip = direction > 0 ? to.start : to.end;
  double bend = direction > 0 ? to.start - 10 - TRACK * (double)track
                              : to.end + 10 + TRACK * (double)track;

  /* short of room: in the middle between the two */
  if (n <= 1 && fabs (tip - (direction > 0 ? from.end : from.start)) < 24)
    bend = (tip + (direction > 0 ? from.end : from.start)) / 2;
  add_point (r, direction > 0 ? from.end : from.start, across);
  for (guint32 i = 0; i < n; i++)
    across = follow_rec (r, &r->b->recs[first + i], direction, across, track);
  end = port (&to, across);
  jog (r, bend, across, end);
  add_point (r, tip, end);
}

/* A height for the bytes of a saved edge: its own, or the nearest one that is free. */
static double
take_pill (Router *r, double along)
{
  double length = (r->b->tb ? TD_PILL_HEIGHT : TD_PILL_WIDTH) + 2, found = along;

  for (guint attempt = 0; attempt < 8; attempt++)
    {
      gboolean is_free = TRUE;

      found = along + ((attempt + 1) / 2) * length * (attempt % 2 ? 1 : -1);
      for (guint i = 0; i < MIN (r->n_pills, N_PILLS) && is_free; i++)
        is_free = fabs (r->pills[i] - found) >= length;
      if (is_free)
        break;
    }
  r->pills[r->n_pills++ % N_PILLS] = found;
  return found;
}

/* The near side of the row that a twin stands in: what is kept is for all of them. */
static double
row_start (const Router *r, gint node)
{
  const TdUnit *unit = &r->b->units[r->b->unit_of[node]];
  double start = extent_of (r, node).left;

  for (gint32 i = 0; i < unit->n_twins; i++)
    {
      gint32 twin = r->b->twins[unit->first_twin + i];

      if (r->b->cell_along[twin] == r->b->cell_along[node])
        start = MIN (start, extent_of (r, twin).left);
    }
  return start;
}

/* What the forward pass keeps: out of its side, through the bytes, into the twin's side. */
static void
route_saved (Router *r, guint edge, TdEdgeRoute *route)
{
  const TdVizEdge *e = &r->b->view->edges[edge];
  Extent from = extent_of (r, e->from), to = extent_of (r, e->to);
  const TdRect *lane = &r->layout->lanes[TD_LANE_FORWARD];
  double border = r->b->tb ? lane->x + lane->width : lane->y + lane->height;
  double start = (from.start + from.end) / 2, end = (to.start + to.end) / 2;
  double along = take_pill (r, start);
  double breadth = r->b->tb ? TD_PILL_WIDTH : TD_PILL_HEIGHT;
  double centre = border + TD_SAVED_GAP / 2.0 - 4;

  if (fabs (start - end) < 1)
    end = start;
  add_point (r, start, from.right);
  if (along != start)
    {
      add_point (r, start, border + 6);
      add_point (r, along, border + 6);
    }
  if (along != end)
    {
      add_point (r, along, border + TD_SAVED_GAP - 12);
      add_point (r, end, border + TD_SAVED_GAP - 12);
    }
  add_point (r, end, row_start (r, e->to));
  route->pill = r->b->tb ? (TdRect){ centre - breadth / 2, along - TD_PILL_HEIGHT / 2.0,
                                     TD_PILL_WIDTH, TD_PILL_HEIGHT }
                         : (TdRect){ along - TD_PILL_WIDTH / 2.0, centre - breadth / 2,
                                     TD_PILL_WIDTH, TD_PILL_HEIGHT };
}

/* From lane to lane: out of the side (over the heads of those that stand beside it), along the
 * gap, into the side. */
static void
route_across (Router *r, guint edge)
{
  const TdVizEdge *e = &r->b->view->edges[edge];
  const TdVizNode *nodes = r->b->view->nodes;
  Extent from = extent_of (r, e->from), to = extent_of (r, e->to);
  gboolean onward = nodes[e->from].lane <= nodes[e->to].lane;
  const TdRect *lane = &r->layout->lanes[nodes[e->from].lane];
  double border = r->b->tb ? (onward ? lane->x + lane->width : lane->x)
                           : (onward ? lane->y + lane->height : lane->y);
  double start = (from.start + from.end) / 2, end = (to.start + to.end) / 2;
  guint beside = r->b->from_right[e->from];
  double gap = border + (onward ? 1 : -1) * (5 + 4.0 * MIN (beside, 4));

  /* the same row: straight, even if the one is a little taller than the other */
  if (fabs (start - end) < 1)
    end = start;
  if (onward && beside > 0)
    {
      add_point (r, from.start, middle (&from));
      start = from.start - 3 - 1.5 * MIN (beside, 4);
      add_point (r, start, middle (&from));
    }
  else
    add_point (r, start, onward ? from.right : from.left);
  if (start != end)
    {
      add_point (r, start, gap);
      add_point (r, end, gap);
    }
  add_point (r, end, onward ? to.left : to.right);
}

/* Against the order of the rows: around everything, at the lane's outer side. */
static void
route_around (Router *r, guint edge)
{
  const TdVizEdge *e = &r->b->view->edges[edge];
  Extent from = extent_of (r, e->from), to = extent_of (r, e->to);
  double side = MAX (from.right, to.right) + 8 + 3 * (double)(r->track[e->from] % 4);

  add_point (r, (from.start + from.end) / 2, from.right);
  add_point (r, (from.start + from.end) / 2, side);
  add_point (r, (to.start + to.end) / 2, side);
  add_point (r, (to.start + to.end) / 2, to.right);
}

/* Within one row of twins. */
static void
route_in_row (Router *r, guint edge)
{
  const TdVizEdge *e = &r->b->view->edges[edge];
  Extent from = extent_of (r, e->from), to = extent_of (r, e->to);

  if (to.end <= from.start)
    {
      double end = port (&to, middle (&from));

      add_point (r, from.start, middle (&from));
      jog (r, (from.start + to.end) / 2, middle (&from), end);
      add_point (r, to.end, end);
    }
  else
    route_around (r, edge);
}

static void
route_stub (Router *r, guint edge)
{
  const TdVizEdge *e = &r->b->view->edges[edge];
  Extent from = extent_of (r, e->from), to = extent_of (r, e->to);
  double start = (from.start + from.end) / 2, end = (to.start + to.end) / 2;
  double bend = from.right + 9;

  add_point (r, start, from.right);
  if (start != end)
    {
      add_point (r, start, bend);
      add_point (r, end, bend);
    }
  add_point (r, end, to.left);
}

static void
place_label (const Router *r, TdEdgeRoute *route)
{
  const TdPoint *p = &g_array_index (r->points, TdPoint, route->first_point);
  guint n = route->n_points;

  if (n < 2)
    return;
  /* beside the last segment, the one with the arrow */
  if (r->b->tb)
    route->label
        = (TdPoint){ p[n - 1].x + 7, p[n - 1].y + (p[n - 2].y < p[n - 1].y ? -11 : 11) };
  else
    route->label = (TdPoint){ p[n - 2].x + 4, p[n - 1].y - 8 };
}

static void
route_edge (Router *r, guint edge, TdEdgeRoute *route)
{
  const TdLayoutBuild *b = r->b;
  const TdVizEdge *e = &b->view->edges[edge];
  TdLane from = b->view->nodes[e->from].lane, to = b->view->nodes[e->to].lane;

  if (e->kind == TD_EDGE_STUB)
    route_stub (r, edge);
  else if (from == TD_LANE_FORWARD && to == TD_LANE_BACKWARD)
    route_saved (r, edge, route);
  else if (from != to)
    route_across (r, edge);
  else if (b->edge_first_rec[edge + 1] > b->edge_first_rec[edge])
    route_in_lane (r, edge, from == TD_LANE_BACKWARD ? -1 : 1);
  else if (from == TD_LANE_BACKWARD && b->unit_of[e->from] == b->unit_of[e->to])
    route_in_row (r, edge);
  else
    route_around (r, edge);
}

void
td__layout_route (TdLayoutBuild *b, TdLayout *layout)
{
  Router r = { .b = b, .layout = layout };
  guint n_edges = b->view->n_edges;

  r.points = g_array_sized_new (FALSE, FALSE, sizeof (TdPoint), n_edges * 4 + 4);
  r.track = g_new0 (guint32, b->view->n_nodes + 1);
  /* tracks are dealt out in order of sources, so that neighbours differ */
  for (guint i = 0; i < b->view->n_nodes; i++)
    r.track[i] = b->unit_of[i] >= 0 ? (guint32)b->units[b->unit_of[i]].local : 0;
  for (guint i = 0; i < n_edges; i++)
    {
      TdEdgeRoute *route = &layout->edges[i];

      layout->n_points = r.points->len;
      route_edge (&r, i, route);
      route->first_point = layout->n_points;
      route->n_points = r.points->len - layout->n_points;
      if (b->view->edges[i].label)
        place_label (&r, route);
    }
  layout->n_points = r.points->len;
  layout->points = (TdPoint *)(gpointer)g_array_free (r.points, FALSE);
  g_free (r.track);
}
