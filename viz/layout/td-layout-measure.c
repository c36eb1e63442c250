/* Second step of a layout: sizes of units and boxes, from the inside out, and where each stands
 * in its box.
 *
 * SPDX-License-Identifier: MIT */
#include "layout/td-layout-private.h"

#include <string.h>

#define ROW_GAP 14 /* between rows of twins that feed one another, and between updates */
#define TRACK 6
#define MAX_ROWS 64 /* of twins of one operation */

double
td__layout_pad_along (const TdLayoutBuild *b)
{
  return b->tb ? TD_GROUP_HEADER : TD_INSET;
}

double
td__layout_pad_across (const TdLayoutBuild *b)
{
  return b->tb ? TD_INSET : TD_GROUP_HEADER;
}

static double
along_size (const TdLayoutBuild *b, gint node)
{
  return b->tb ? b->height[node] : b->width[node];
}

static double
across_size (const TdLayoutBuild *b, gint node)
{
  return b->tb ? b->width[node] : b->height[node];
}

static void
size_nodes (TdLayoutBuild *b)
{
  for (guint i = 0; i < b->view->n_nodes; i++)
    {
      const TdVizNode *node = &b->view->nodes[i];

      b->width[i] = node->user >= 0              ? TD_STUB_WIDTH
                    : node->kind == TD_VIZ_INPUT ? TD_INPUT_WIDTH
                                                 : TD_NODE_WIDTH;
      b->height[i] = node->user >= 0              ? TD_STUB_HEIGHT
                     : node->kind == TD_VIZ_INPUT ? TD_INPUT_HEIGHT
                     : node->detail               ? TD_NODE_HEIGHT_2
                                                  : TD_NODE_HEIGHT;
      if (node->n_fused > 1)
        b->height[i] += TD_FUSED_LINE * (MIN (node->n_fused, TD_FUSED_LINES) - 1);
    }
}

/* ---- units ---- */

static void
measure_forward (TdLayoutBuild *b, TdUnit *unit)
{
  gint32 n_stubs = b->stub_first[unit->node + 1] - b->stub_first[unit->node];
  double stack = n_stubs * ((b->tb ? TD_STUB_HEIGHT : TD_STUB_WIDTH) + 2.0) - 2;
  TdReach *reach = &unit->reach[TD_LANE_FORWARD];

  unit->in_lane[TD_LANE_FORWARD] = TRUE;
  reach->body_left = reach->body_right = reach->left = reach->right
      = across_size (b, unit->node) / 2;
  unit->length = along_size (b, unit->node);
  if (n_stubs == 0)
    return;
  reach->left += b->stub_gap + (b->tb ? TD_STUB_WIDTH : TD_STUB_HEIGHT);
  /* a little of it may hang into the gaps around the row */
  unit->length = MAX (unit->length, stack - TD_RANK_GAP / 2);
}

/* Rows of twins: what runs first stands lowest, since gradients flow up. Also which twins send
 * their gradient on, out of the row. */
static void
find_rows (const TdLayoutBuild *b, gint32 *row, guint8 *leaves)
{
  for (guint i = 0; i < b->view->n_edges; i++)
    {
      const TdVizEdge *e = &b->view->edges[i];

      if (e->kind == TD_EDGE_DATA && b->unit_of[e->from] != b->unit_of[e->to])
        leaves[e->from] = 1;

      if (b->view->nodes[e->from].lane == TD_LANE_BACKWARD
          && b->view->nodes[e->to].lane == TD_LANE_BACKWARD
          && b->unit_of[e->from] == b->unit_of[e->to] && e->from < e->to)
        row[e->to] = MIN (MAX (row[e->to], row[e->from] + 1), MAX_ROWS - 1);
    }
}

static void
measure_row (TdLayoutBuild *b, const gint32 *nodes, guint n, double centre, TdReach *reach)
{
  double first_half = 0, at = 0;

  for (guint i = 0; i < n; i++)
    {
      if (b->tb && n == 2)
        b->width[nodes[i]] = (TD_NODE_WIDTH - TD_TWIN_GAP) / 2;
      else if (b->tb && n > 2)
        b->width[nodes[i]] = TD_TWIN_WIDTH;
      if (i == 0)
        first_half = (b->tb ? TD_NODE_WIDTH : across_size (b, nodes[0])) / 2.0;
      /* rows begin at the same place, that of a single node around the anchor */
      b->cell_across[nodes[i]] = at - first_half + across_size (b, nodes[i]) / 2;
      b->cell_along[nodes[i]] = centre;
      b->from_right[nodes[i]] = (guint8)MIN (n - 1 - i, 255);
      at += across_size (b, nodes[i]) + TD_TWIN_GAP;
    }
  at -= TD_TWIN_GAP;
  reach->body_left = MAX (reach->body_left, first_half);
  reach->body_right = MAX (reach->body_right, at - first_half);
}

/* The way up from the first place would run through the title of the box: let another stand
 * there. */
static void
swap_first (GArray *members, const guint8 *leaves)
{
  gint32 *m = (gint32 *)(gpointer)members->data;

  if (members->len >= 2 && leaves[m[0]] && !leaves[m[1]])
    {
      gint32 first = m[0];

      m[0] = m[1];
      m[1] = first;
    }
}

static void
measure_backward (TdLayoutBuild *b, TdUnit *unit, const gint32 *row, const guint8 *leaves,
                  GArray *members)
{
  TdReach *reach = &unit->reach[TD_LANE_BACKWARD];
  gint32 n_rows = 0;
  double length = 0, at;

  if (unit->n_twins == 0)
    return;
  unit->in_lane[TD_LANE_BACKWARD] = TRUE;
  for (gint32 i = 0; i < unit->n_twins; i++)
    n_rows = MAX (n_rows, row[b->twins[unit->first_twin + i]] + 1);
  for (gint pass = 0; pass < 2; pass++) /* first the length, then the places */
    {
      at = length / 2;
      for (gint32 r = 0; r < n_rows; r++)
        {
          double height = 0;

          g_array_set_size (members, 0);
          for (gint32 i = 0; i < unit->n_twins; i++)
            if (row[b->twins[unit->first_twin + i]] == r)
              {
                gint32 node = b->twins[unit->first_twin + i];

                height = MAX (height, along_size (b, node));
                g_array_append_val (members, node);
              }
          if (members->len == 0)
            continue;
          swap_first (members, leaves);
          if (pass == 0)
            length += height + (length > 0 ? ROW_GAP : 0);
          else
            measure_row (b, (const gint32 *)(gpointer)members->data, members->len,
                         at - height / 2, reach);
          at -= height + ROW_GAP;
        }
    }
  reach->left = reach->body_left;
  reach->right = reach->body_right;
  unit->length = MAX (unit->length, length);
}

static void
measure_box_unit (TdLayoutBuild *b, TdUnit *unit)
{
  const TdBox *box = &b->boxes[unit->child];

  for (guint lane = 0; lane < 2; lane++)
    {
      unit->in_lane[lane] = box->in_lane[lane];
      unit->reach[lane] = box->reach[lane];
    }
  unit->length = box->length + td__layout_pad_along (b) + TD_INSET;
}

/* ---- boxes ---- */

static TdUnit *
unit_in_box (const TdLayoutBuild *b, const TdBox *box, gint32 local)
{
  return &b->units[b->sorted_units[box->first_unit + local]];
}

static void
order_box (TdLayoutBuild *b, gint index, TdLayeringFunc func, gpointer data, GArray *edges)
{
  TdBox *box = &b->boxes[index];
  TdLayerEdge *e;

  g_array_set_size (edges, (guint)box->n_recs);
  e = (TdLayerEdge *)(gpointer)edges->data;
  for (gint32 i = 0; i < box->n_recs; i++)
    {
      const TdRec *rec = &b->recs[b->box_recs[box->first_rec + i]];
      const TdVizEdge *edge = &b->view->edges[rec->edge];

      e[i] = (TdLayerEdge){ .from = rec->from >= 0 ? b->units[rec->from].local : -1,
                            .to = rec->to >= 0 ? b->units[rec->to].local : -1,
                            .lane = (guint8)b->view->nodes[edge->from].lane,
                            .source = edge->from };
    }
  if (func)
    box->layering = func (data, b, index, e, (guint)box->n_recs);
  if (!box->layering)
    {
      b->all_by_graphviz = FALSE;
      box->layering = td__layering_new ((guint)box->n_units, e, (guint)box->n_recs);
    }
  for (gint32 i = 0; i < box->n_recs; i++)
    b->recs[b->box_recs[box->first_rec + i]].trunk = e[i].trunk;
}

typedef struct
{
  guint8 *in_lane;
  double *left, *right, *across;
} LaneScratch;

static void
align_lane (TdLayoutBuild *b, TdBox *box, guint lane, LaneScratch *s)
{
  const TdLayering *l = box->layering;
  TdReach content = { 0, 0, 0, 0 };
  double zero = 0;
  gboolean any = FALSE;

  for (guint i = 0; i < l->n_slots; i++)
    {
      gboolean is_unit = i < l->n_things;
      const TdUnit *unit = is_unit ? unit_in_box (b, box, (gint32)i) : NULL;

      s->in_lane[i] = is_unit ? unit->in_lane[lane] : l->slot_lane[i - l->n_things] == lane;
      s->left[i] = is_unit ? unit->reach[lane].left : TD_PASS_WIDTH;
      s->right[i] = is_unit ? unit->reach[lane].right : TD_PASS_WIDTH;
      box->in_lane[lane] = box->in_lane[lane] || s->in_lane[i];
    }
  if (!box->in_lane[lane])
    return;
  td__layout_align (l, lane, s->in_lane, s->left, s->right, TD_ACROSS_GAP, s->across);
  /* zero is where the first unit stands: a chain runs straight through a box */
  for (guint i = 0; i < l->n_slots && !any; i++)
    if (s->in_lane[i])
      {
        zero = s->across[i];
        any = TRUE;
      }
  for (guint i = 0; i < l->n_slots; i++)
    {
      const TdUnit *unit = i < l->n_things ? unit_in_box (b, box, (gint32)i) : NULL;
      double x;

      if (!s->in_lane[i])
        continue;
      x = s->across[i] - zero;
      if (unit)
        unit_in_box (b, box, (gint32)i)->across[lane] = x;
      else
        box->slot_across[i] = x;
      content.left = MAX (content.left, s->left[i] - x);
      content.right = MAX (content.right, s->right[i] + x);
      content.body_left
          = MAX (content.body_left, (unit ? unit->reach[lane].body_left : TD_PASS_WIDTH) - x);
      content.body_right
          = MAX (content.body_right, (unit ? unit->reach[lane].body_right : TD_PASS_WIDTH) + x);
    }
  box->reach[lane] = content;
}

/* Room for the sideways parts of edges between two ranks: one track for each source that needs
 * one. */
static double
gap_below (const TdLayoutBuild *b, const TdBox *box, guint rank)
{
  const TdLayering *l = box->layering;
  guint tracks = 0;

  for (guint i = l->rank_first[rank]; i < l->rank_first[rank + 1] && tracks < TD_MAX_TRACKS;
       i++)
    {
      guint32 s = l->order[i];
      gboolean bends = FALSE;

      for (guint k = l->down_first[s]; k < l->down_first[s + 1] && !bends; k++)
        {
          guint lane = l->down_lane[k];
          guint32 t = l->down[k];
          double x = s < l->n_things ? unit_in_box (b, box, (gint32)s)->across[lane]
                                     : box->slot_across[s];
          double y = t < l->n_things ? unit_in_box (b, box, (gint32)t)->across[lane]
                                     : box->slot_across[t];

          bends = x != y;
        }
      tracks += bends;
    }
  return TD_RANK_GAP + (tracks > 1 ? (tracks - 1) * TRACK : 0);
}

static void
stack_ranks (TdLayoutBuild *b, TdBox *box)
{
  const TdLayering *l = box->layering;
  double at = 0;

  box->rank_start = g_new0 (double, l->n_ranks + 1);
  box->rank_length = g_new0 (double, l->n_ranks + 1);
  for (guint r = 0; r < l->n_ranks; r++)
    {
      for (guint i = l->rank_first[r]; i < l->rank_first[r + 1]; i++)
        if (l->order[i] < l->n_things)
          box->rank_length[r]
              = MAX (box->rank_length[r], unit_in_box (b, box, (gint32)l->order[i])->length);
      box->rank_start[r] = at;
      at += box->rank_length[r];
      box->length = at;
      if (r + 1 < l->n_ranks)
        at += gap_below (b, box, r);
    }
  for (gint32 i = 0; i < box->n_units; i++)
    {
      TdUnit *unit = unit_in_box (b, box, i);
      gint32 r = l->rank[i];
      double centre = box->rank_start[r] + box->rank_length[r] / 2;

      unit->along = unit->node >= 0 ? centre : centre - unit->length / 2;
    }
}

/* ---- the update lane ---- */

typedef struct
{
  double start, length;
  gint32 index;
} Span;

static int
compare_spans (const void *a, const void *b)
{
  const Span *x = a, *y = b;

  if (x->start != y->start)
    return x->start < y->start ? -1 : 1;
  return x->index - y->index;
}

/* Where an update wishes to be: beside the row that uses its parameter. */
static double
wish_of_update (const TdLayoutBuild *b, gint box, gint node)
{
  gint32 twin = b->view->nodes[node].twin;
  gint32 unit = twin >= 0 ? b->unit_of[twin] : -1;

  while (unit >= 0 && b->units[unit].box != box)
    unit = b->boxes[b->units[unit].box].unit;
  if (unit < 0)
    return b->boxes[box].length;
  return b->units[unit].node >= 0 ? b->units[unit].along
                                  : b->units[unit].along + b->units[unit].length / 2;
}

/* Child boxes keep their rows; where several are in a rank they stand side by side. */
static guint
place_update_boxes (TdLayoutBuild *b, TdBox *box, TdReach *reach, Span *obstacles)
{
  const TdLayering *l = box->layering;
  guint n = 0;

  for (guint r = 0; r < l->n_ranks; r++)
    {
      double right = 0;
      gboolean first = TRUE;

      for (guint i = l->rank_first[r]; i < l->rank_first[r + 1]; i++)
        {
          TdUnit *unit;
          TdBox *child;
          double x = 0;

          if (l->order[i] >= l->n_things)
            continue;
          unit = unit_in_box (b, box, (gint32)l->order[i]);
          if (unit->child < 0 || !b->boxes[unit->child].in_lane[TD_LANE_UPDATE])
            continue;
          child = &b->boxes[unit->child];
          if (!first)
            x = right + TD_ACROSS_GAP + child->reach[TD_LANE_UPDATE].left;
          first = FALSE;
          right = x + child->reach[TD_LANE_UPDATE].right;
          child->across[TD_LANE_UPDATE] = x; /* within the parent, until it is placed */
          reach->body_left = MAX (reach->body_left, child->reach[TD_LANE_UPDATE].body_left - x);
          reach->body_right = MAX (reach->body_right, right);
          obstacles[n++] = (Span){ unit->along, unit->length, 0 };
        }
    }
  return n;
}

static void
place_updates (TdLayoutBuild *b, gint index)
{
  TdBox *box = &b->boxes[index];
  Span *obstacles = g_new (Span, box->n_units + 1);
  Span *items = g_new (Span, box->n_updates + 1);
  TdReach reach = { 0, 0, 0, 0 };
  guint n_obstacles = place_update_boxes (b, box, &reach, obstacles), o = 0;
  double cursor = 0;

  qsort (obstacles, n_obstacles, sizeof (Span), compare_spans);
  for (gint32 i = 0; i < box->n_updates; i++)
    {
      gint32 node = b->updates[box->first_update + i];

      items[i] = (Span){ wish_of_update (b, index, node) - along_size (b, node) / 2,
                         along_size (b, node), node };
      reach.body_left = MAX (reach.body_left, across_size (b, node) / 2);
      reach.body_right = MAX (reach.body_right, across_size (b, node) / 2);
    }
  qsort (items, (gsize)box->n_updates, sizeof (Span), compare_spans);
  for (gint32 i = 0; i < box->n_updates; i++)
    {
      double start = MAX (items[i].start, cursor);

      for (; o < n_obstacles && obstacles[o].start - ROW_GAP < start + items[i].length; o++)
        if (obstacles[o].start + obstacles[o].length + ROW_GAP > start)
          start = obstacles[o].start + obstacles[o].length + ROW_GAP;
      b->cell_along[items[i].index] = start + items[i].length / 2;
      cursor = start + items[i].length + ROW_GAP;
      box->length = MAX (box->length, start + items[i].length);
    }
  reach.left = reach.body_left;
  reach.right = reach.body_right;
  box->in_lane[TD_LANE_UPDATE] = box->n_updates > 0 || n_obstacles > 0;
  box->reach[TD_LANE_UPDATE] = reach;
  g_free (obstacles);
  g_free (items);
}

static void
add_insets (const TdLayoutBuild *b, TdBox *box)
{
  for (guint lane = 0; lane < TD_N_LANES; lane++)
    {
      TdReach *reach = &box->reach[lane];

      if (!box->in_lane[lane])
        continue;
      reach->body_left += td__layout_pad_across (b);
      reach->body_right += TD_INSET;
      reach->left = MAX (reach->left, reach->body_left);
      reach->right = MAX (reach->right, reach->body_right);
    }
}

void
td__layout_measure (TdLayoutBuild *b, TdLayeringFunc func, gpointer data)
{
  gint32 *row = g_new0 (gint32, b->view->n_nodes + 1);
  guint8 *leaves = g_new0 (guint8, b->view->n_nodes + 1);
  GArray *members = g_array_new (FALSE, FALSE, sizeof (gint32));
  GArray *edges = g_array_new (FALSE, FALSE, sizeof (TdLayerEdge));
  LaneScratch s = { NULL, NULL, NULL, NULL };
  guint room = 0;

  b->all_by_graphviz = func != NULL;
  size_nodes (b);
  find_rows (b, row, leaves);
  for (guint i = b->n_boxes; i-- > 0;) /* inner boxes have higher indices */
    {
      TdBox *box = &b->boxes[i];

      for (gint32 u = 0; u < box->n_units; u++)
        {
          TdUnit *unit = unit_in_box (b, box, u);

          if (unit->child >= 0)
            measure_box_unit (b, unit);
          else if (b->view->nodes[unit->node].lane == TD_LANE_FORWARD)
            measure_forward (b, unit);
          if (unit->child < 0)
            measure_backward (b, unit, row, leaves, members);
        }
      order_box (b, (gint)i, func, data, edges);
      box->slot_across = g_new0 (double, box->layering->n_slots + 1);
      if (box->layering->n_slots + 1 > room)
        {
          room = box->layering->n_slots * 2 + 16;
          s.in_lane = g_renew (guint8, s.in_lane, room);
          s.left = g_renew (double, s.left, room);
          s.right = g_renew (double, s.right, room);
          s.across = g_renew (double, s.across, room);
        }
      for (guint lane = 0; lane < 2; lane++)
        align_lane (b, box, lane, &s);
      stack_ranks (b, box);
      place_updates (b, (gint)i);
      if (i > 0)
        add_insets (b, box);
    }
  g_free (row);
  g_free (leaves);
  g_array_free (members, TRUE);
  g_array_free (edges, TRUE);
  g_free (s.in_lane);
  g_free (s.left);
  g_free (s.right);
  g_free (s.across);
}
