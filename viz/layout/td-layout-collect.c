/* First step of a layout: which units stand in which box, in which order, and through which
 * boxes each edge goes.
 *
 * SPDX-License-Identifier: MIT */
#include "layout/td-layout-private.h"

#include <string.h>

/* ---- boxes and units ---- */

static gboolean
is_unit_leader (const TdVizView *view, const TdVizNode *node)
{
  if (node->user >= 0 || node->lane == TD_LANE_UPDATE)
    return FALSE;
  if (node->lane == TD_LANE_FORWARD)
    return TRUE;
  return node->twin < 0 || view->nodes[node->twin].parent != node->parent;
}

static void
make_boxes (TdLayoutBuild *b)
{
  const TdVizView *view = b->view;

  b->n_boxes = view->n_groups;
  b->boxes = g_new0 (TdBox, b->n_boxes + 1);
  for (guint i = 0; i < b->n_boxes; i++)
    {
      TdBox *box = &b->boxes[i];

      box->parent = view->groups[i].parent;
      box->unit = -1;
      box->depth = box->parent >= 0 ? b->boxes[box->parent].depth + 1 : 0;
    }
}

static void
make_units (TdLayoutBuild *b)
{
  const TdVizView *view = b->view;

  b->units = g_new0 (TdUnit, view->n_nodes + b->n_boxes + 1);
  b->unit_of = g_new (gint32, view->n_nodes + 1);
  for (guint i = 0; i < view->n_nodes; i++)
    {
      const TdVizNode *node = &view->nodes[i];

      b->unit_of[i] = -1;
      if (!is_unit_leader (view, node))
        continue;
      b->unit_of[i] = (gint32)b->n_units;
      b->units[b->n_units++] = (TdUnit){ .node = (gint32)i, .child = -1, .box = node->parent };
    }
  for (guint i = 1; i < b->n_boxes; i++)
    {
      b->boxes[i].unit = (gint32)b->n_units;
      b->units[b->n_units++]
          = (TdUnit){ .node = -1, .child = (gint32)i, .box = b->boxes[i].parent };
    }
}

static void
find_twins (TdLayoutBuild *b)
{
  const TdVizView *view = b->view;
  gint32 *next;
  gint32 total = 0;

  b->twins = g_new (gint32, view->n_nodes + 1);
  b->width = g_new0 (double, view->n_nodes + 1);
  b->height = g_new0 (double, view->n_nodes + 1);
  b->from_right = g_new0 (guint8, view->n_nodes + 1);
  b->cell_along = g_new0 (double, view->n_nodes + 1);
  b->cell_across = g_new0 (double, view->n_nodes + 1);
  for (guint i = 0; i < view->n_nodes; i++)
    if (b->unit_of[i] < 0 && view->nodes[i].lane == TD_LANE_BACKWARD)
      b->units[b->unit_of[view->nodes[i].twin]].n_twins++;
    else if (b->unit_of[i] >= 0 && view->nodes[i].lane == TD_LANE_BACKWARD)
      b->units[b->unit_of[i]].n_twins++; /* a backward node without a row of someone else */
  next = g_new (gint32, b->n_units + 1);
  for (guint u = 0; u < b->n_units; u++)
    {
      next[u] = b->units[u].first_twin = total;
      total += b->units[u].n_twins;
    }
  for (guint i = 0; i < view->n_nodes; i++)
    if (view->nodes[i].lane == TD_LANE_BACKWARD && view->nodes[i].user < 0)
      {
        if (b->unit_of[i] < 0)
          b->unit_of[i] = b->unit_of[view->nodes[i].twin];
        b->twins[next[b->unit_of[i]]++] = (gint32)i;
      }
  g_free (next);
}

static void
find_stubs (TdLayoutBuild *b)
{
  const TdVizView *view = b->view;

  b->stub_first = g_new0 (gint32, view->n_nodes + 2);
  b->stubs = g_new (gint32, view->n_nodes + 1);
  for (guint i = 0; i < view->n_nodes; i++)
    if (view->nodes[i].user >= 0)
      b->stub_first[view->nodes[i].user + 2]++;
  for (guint i = 1; i < view->n_nodes + 2; i++)
    b->stub_first[i] += b->stub_first[i - 1];
  for (guint i = 0; i < view->n_nodes; i++)
    if (view->nodes[i].user >= 0)
      b->stubs[b->stub_first[view->nodes[i].user + 1]++] = (gint32)i;
}

/* ---- order ---- */

/* Forward things stand as they ran. What is in backward only stands just above the lowest of
 * the rows that its gradients come from, later ones higher. */
static void
find_bases (TdLayoutBuild *b)
{
  const TdVizView *view = b->view;

  for (guint u = 0; u < b->n_units; u++)
    {
      TdUnit *unit = &b->units[u];
      const TdVizNode *node;

      unit->base = G_MAXINT32;
      if (unit->node < 0)
        continue;
      node = &view->nodes[unit->node];
      if (node->lane == TD_LANE_FORWARD)
        unit->base = node->kind == TD_VIZ_INPUT ? -1 : node->event;
      else
        unit->sub = -(gint64)node->event;
    }
  /* a box begins with its first forward node; parents have lower indices */
  for (guint i = b->n_boxes; i-- > 1;)
    b->units[b->boxes[i].unit].base = G_MAXINT32;
  for (guint u = 0; u < b->n_units; u++)
    if (b->units[u].node >= 0 && view->nodes[b->units[u].node].lane == TD_LANE_FORWARD)
      for (gint32 box = b->units[u].box; box > 0; box = b->boxes[box].parent)
        {
          TdUnit *outer = &b->units[b->boxes[box].unit];

          if (outer->base <= b->units[u].base)
            break;
          outer->base = b->units[u].base;
        }
  for (guint i = 0; i < view->n_edges; i++)
    {
      const TdVizEdge *e = &view->edges[i];
      TdUnit *to;
      gint32 from_unit;

      if (view->nodes[e->from].lane != TD_LANE_BACKWARD
          || view->nodes[e->to].lane != TD_LANE_BACKWARD)
        continue;
      to = &b->units[b->unit_of[e->to]];
      if (to->node < 0 || view->nodes[to->node].lane != TD_LANE_BACKWARD)
        continue;
      /* as seen from the box of the reader: the source's row, or the box around it there */
      from_unit = b->unit_of[e->from];
      while (from_unit >= 0 && b->units[from_unit].box != to->box)
        from_unit = b->boxes[b->units[from_unit].box].unit;
      if (from_unit >= 0)
        to->base = MIN (to->base, b->units[from_unit].base);
    }
}

static int
compare_units (gconstpointer pa, gconstpointer pb, gpointer data)
{
  const TdLayoutBuild *b = data;
  const TdUnit *x = &b->units[*(const gint32 *)pa], *y = &b->units[*(const gint32 *)pb];

  if (x->box != y->box)
    return x->box - y->box;
  if (x->base != y->base)
    return x->base < y->base ? -1 : 1;
  if (x->sub != y->sub)
    return x->sub < y->sub ? -1 : 1;
  return *(const gint32 *)pa - *(const gint32 *)pb;
}

static void
sort_units (TdLayoutBuild *b)
{
  gboolean in_order = TRUE;

  b->sorted_units = g_new (gint32, b->n_units + 1);
  for (guint u = 0; u < b->n_units; u++)
    {
      b->sorted_units[u] = (gint32)u;
      in_order
          = in_order
            && (u == 0 || compare_units (&b->sorted_units[u - 1], &b->sorted_units[u], b) < 0);
    }
  if (!in_order) /* one flat group is: its nodes come as they ran */
    g_qsort_with_data (b->sorted_units, (gint)b->n_units, sizeof (gint32), compare_units, b);
  for (guint i = 0; i < b->n_units; i++)
    {
      TdUnit *unit = &b->units[b->sorted_units[i]];
      TdBox *box = &b->boxes[unit->box];

      if (box->n_units == 0)
        box->first_unit = (gint32)i;
      unit->local = (gint32)i - box->first_unit;
      box->n_units++;
    }
}

static void
sort_updates (TdLayoutBuild *b)
{
  const TdVizView *view = b->view;
  gint32 total = 0;

  b->updates = g_new (gint32, view->n_nodes + 1);
  for (guint i = 0; i < view->n_nodes; i++)
    if (view->nodes[i].lane == TD_LANE_UPDATE)
      b->boxes[view->nodes[i].parent].n_updates++;
  for (guint i = 0; i < b->n_boxes; i++)
    {
      b->boxes[i].first_update = total;
      total += b->boxes[i].n_updates;
      b->boxes[i].n_updates = 0;
    }
  for (guint i = 0; i < view->n_nodes; i++)
    if (view->nodes[i].lane == TD_LANE_UPDATE)
      {
        TdBox *box = &b->boxes[view->nodes[i].parent];

        b->updates[box->first_update + box->n_updates++] = (gint32)i;
      }
}

/* ---- edges ---- */

static gboolean
is_before (const TdUnit *a, const TdUnit *b)
{
  return a->base < b->base || (a->base == b->base && a->sub < b->sub);
}

/* Cut one edge into its parts. Backward edges point down too: from the reader to the source, so
 * that the twins' ranks agree. */
static void
add_recs (TdLayoutBuild *b, GArray *recs, GArray *inner, guint edge)
{
  const TdVizEdge *e = &b->view->edges[edge];
  gboolean backward = b->view->nodes[e->from].lane == TD_LANE_BACKWARD;
  gint32 source = b->unit_of[e->from], target = b->unit_of[e->to];
  guint first = recs->len;

  g_array_set_size (inner, 0);
  while (b->units[source].box != b->units[target].box)
    {
      gint32 source_box = b->units[source].box, target_box = b->units[target].box;

      if (b->boxes[source_box].depth >= b->boxes[target_box].depth)
        {
          TdRec rec = { source_box, backward ? -1 : source, backward ? source : -1,
                        (gint32)edge, -1 };

          g_array_append_val (recs, rec);
          source = b->boxes[source_box].unit;
        }
      else
        {
          TdRec rec = { target_box, backward ? target : -1, backward ? -1 : target,
                        (gint32)edge, -1 };

          g_array_append_val (inner, rec);
          target = b->boxes[target_box].unit;
        }
    }
  if (source == target
      || !(backward ? is_before (&b->units[target], &b->units[source])
                    : is_before (&b->units[source], &b->units[target])))
    {
      g_array_set_size (recs, first); /* against the order: routed around, no say in ranks */
      return;
    }
  {
    TdRec rec = { b->units[source].box, backward ? target : source, backward ? source : target,
                  (gint32)edge, -1 };

    g_array_append_val (recs, rec);
  }
  for (guint i = inner->len; i-- > 0;)
    g_array_append_val (recs, g_array_index (inner, TdRec, i));
}

static void
cut_edges (TdLayoutBuild *b)
{
  const TdVizView *view = b->view;
  GArray *recs = g_array_new (FALSE, FALSE, sizeof (TdRec));
  GArray *inner = g_array_new (FALSE, FALSE, sizeof (TdRec));
  gint32 *next;
  gint32 total = 0;

  b->edge_first_rec = g_new0 (guint32, view->n_edges + 2);
  for (guint i = 0; i < view->n_edges; i++)
    {
      const TdVizEdge *e = &view->edges[i];
      TdLane lane = view->nodes[e->from].lane;

      b->edge_first_rec[i] = recs->len;
      if (e->kind == TD_EDGE_DATA && lane == view->nodes[e->to].lane && lane != TD_LANE_UPDATE)
        add_recs (b, recs, inner, i);
    }
  b->edge_first_rec[view->n_edges] = recs->len;
  b->n_recs = recs->len;
  b->recs = (TdRec *)(gpointer)g_array_free (recs, FALSE);
  g_array_free (inner, TRUE);

  b->box_recs = g_new (gint32, b->n_recs + 1);
  next = g_new (gint32, b->n_boxes + 1);
  for (guint i = 0; i < b->n_recs; i++)
    b->boxes[b->recs[i].box].n_recs++;
  for (guint i = 0; i < b->n_boxes; i++)
    {
      next[i] = b->boxes[i].first_rec = total;
      total += b->boxes[i].n_recs;
    }
  for (guint i = 0; i < b->n_recs; i++)
    b->box_recs[next[b->recs[i].box]++] = (gint32)i;
  g_free (next);
}

void
td__layout_collect (TdLayoutBuild *b)
{
  gint32 depth = 0;

  make_boxes (b);
  make_units (b);
  find_twins (b);
  find_stubs (b);
  find_bases (b);
  sort_units (b);
  sort_updates (b);
  cut_edges (b);
  for (guint i = 0; i < b->n_boxes; i++)
    depth = MAX (depth, b->boxes[i].depth);
  b->stub_gap = 23 + TD_INSET * CLAMP (depth - 1, 0, 6);
}

void
td__layout_build_clear (TdLayoutBuild *b)
{
  for (guint i = 0; i < b->n_boxes; i++)
    {
      if (b->boxes[i].layering)
        td__layering_free (b->boxes[i].layering);
      g_free (b->boxes[i].rank_start);
      g_free (b->boxes[i].rank_length);
      g_free (b->boxes[i].slot_across);
    }
  g_free (b->boxes);
  g_free (b->units);
  g_free (b->sorted_units);
  g_free (b->twins);
  g_free (b->unit_of);
  g_free (b->stub_first);
  g_free (b->stubs);
  g_free (b->updates);
  g_free (b->width);
  g_free (b->from_right);
  g_free (b->height);
  g_free (b->cell_along);
  g_free (b->cell_across);
  g_free (b->recs);
  g_free (b->box_recs);
  g_free (b->edge_first_rec);
}
