/*
 * Drawing a DOT graph: layers by the longest path, order by the layering of viz/layout, places
 * by pulling everything towards its neighbours.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "layout/td-layering.h"
#include "td-dot.h"

#define MARGIN 16.0
#define GAP 22.0 /* between neighbours of a rank */
#define RANK_GAP 34.0
#define SWEEPS 24

typedef struct
{
  const TdDotGraph *g;
  guint n;
  guint *place_of; /* node -> thing: an order in which edges go upwards */
  guint *node_at;  /* thing -> node */
  TdLayering *layering;
  TdLayerEdge *edges;
  double *width, *height; /* of nodes, as they are drawn */
  double *across, *size;  /* of slots, along their rank: middle and extent */
  double *along;          /* of ranks: middle */
  double total_across, total_along;
  gboolean sideways, reverse; /* LR or RL; BT or RL */
} Drawing;

#define NODE(d, i) (&g_array_index ((d)->g->nodes, TdDotNode, (i)))
#define EDGE(d, i) (&g_array_index ((d)->g->edges, TdDotEdge, (i)))

/* Puts nodes into an order in which every edge goes upwards; an edge of a cycle is turned. */
static void
sort_nodes (Drawing *d)
{
  g_autofree guint *degree = g_new0 (guint, MAX (d->n, 1));
  g_autofree gboolean *done = g_new0 (gboolean, MAX (d->n, 1));
  g_autoptr (GArray) ready = g_array_new (FALSE, FALSE, sizeof (guint));
  g_autofree guint *first = g_new0 (guint, d->n + 2),
                   *list = g_new0 (guint, MAX (d->g->edges->len, 1));
  guint next = 0, scan = 0;

  for (guint e = 0; e < d->g->edges->len; e++)
    {
      degree[EDGE (d, e)->to]++;
      first[EDGE (d, e)->from + 2]++;
    }
  for (guint i = 2; i < d->n + 2; i++)
    first[i] += first[i - 1];
  for (guint e = 0; e < d->g->edges->len; e++)
    list[first[EDGE (d, e)->from + 1]++] = EDGE (d, e)->to;
  for (guint i = d->n; i-- > 0;)
    if (degree[i] == 0)
      g_array_append_val (ready, i);
  while (next < d->n)
    {
      guint i;

      if (ready->len > 0)
        {
          i = g_array_index (ready, guint, ready->len - 1);
          g_array_set_size (ready, ready->len - 1);
        }
      else
        {
          for (; done[scan]; scan++) /* only cycles are left: go on with the oldest */
            ;
          i = scan;
        }
      if (done[i])
        continue;
      done[i] = TRUE;
      d->place_of[i] = next;
      d->node_at[next++] = i;
      for (guint k = first[i]; k < first[i + 1]; k++)
        if (--degree[list[k]] == 0 && !done[list[k]])
          g_array_append_val (ready, list[k]);
    }
}

static void
measure_nodes (Drawing *d)
{
  for (guint i = 0; i < d->n; i++)
    {
      g_auto (GStrv) lines = g_strsplit (NODE (d, i)->label, "\n", -1);
      double widest = 20;

      for (char **l = lines; *l; l++)
        widest = MAX (widest, td_text_width (*l, TD_TEXT_NODE, FALSE));
      d->width[i] = MIN (widest, 420) + (NODE (d, i)->octagon ? 30 : 22);
      d->height[i] = 16 + 16.0 * g_strv_length (lines);
    }
}

/* Gives every slot of a rank its place: as near as possible to where it wants to be, in order.
 */
static void
place_rank (Drawing *d, const guint32 *slots, guint n, double *wish)
{
  double edge = -G_MAXDOUBLE;
  g_autofree double *left = g_new (double, MAX (n, 1)), *right = g_new (double, MAX (n, 1));

  for (guint i = 0; i < n; i++)
    {
      left[i] = MAX (wish[i], edge + d->size[slots[i]] / 2);
      edge = left[i] + d->size[slots[i]] / 2 + GAP;
    }
  edge = G_MAXDOUBLE;
  for (guint i = n; i-- > 0;)
    {
      right[i] = MIN (wish[i], edge - d->size[slots[i]] / 2);
      edge = right[i] - d->size[slots[i]] / 2 - GAP;
    }
  /* the middle of the two keeps the order and the distances of both */
  for (guint i = 0; i < n; i++)
    d->across[slots[i]] = (left[i] + right[i]) / 2;
}

static double
wish_of (const Drawing *d, guint32 slot, gboolean from_above)
{
  const TdLayering *l = d->layering;
  const guint32 *first = from_above ? l->up_first : l->down_first,
                *list = from_above ? l->up : l->down;
  double sum = 0;
  guint n = first[slot + 1] - first[slot];

  for (guint k = first[slot]; k < first[slot + 1]; k++)
    sum += d->across[list[k]];
  return n > 0 ? sum / n : d->across[slot];
}

static void
place (Drawing *d)
{
  const TdLayering *l = d->layering;
  g_autofree double *wish = g_new (double, MAX (l->n_slots, 1));
  double lowest = G_MAXDOUBLE, highest = -G_MAXDOUBLE;

  for (guint r = 0; r < l->n_ranks; r++)
    {
      double x = 0;

      for (guint k = l->rank_first[r]; k < l->rank_first[r + 1]; k++)
        {
          d->across[l->order[k]] = x + d->size[l->order[k]] / 2;
          x += d->size[l->order[k]] + GAP;
        }
    }
  for (int sweep = 0; sweep < SWEEPS; sweep++)
    for (guint i = 0; i < l->n_ranks; i++)
      {
        gboolean down = sweep % 2 == 0;
        guint r = down ? i : l->n_ranks - 1 - i, first = l->rank_first[r],
              n = l->rank_first[r + 1] - first;

        for (guint k = 0; k < n; k++)
          wish[k] = wish_of (d, l->order[first + k], down);
        place_rank (d, &l->order[first], n, wish);
      }
  for (guint s = 0; s < l->n_slots; s++)
    {
      lowest = MIN (lowest, d->across[s] - d->size[s] / 2);
      highest = MAX (highest, d->across[s] + d->size[s] / 2);
    }
  for (guint s = 0; s < l->n_slots; s++)
    d->across[s] += MARGIN - lowest;
  d->total_across = (l->n_slots > 0 ? highest - lowest : 0) + 2 * MARGIN;
}

static void
place_ranks (Drawing *d)
{
  const TdLayering *l = d->layering;
  double at = MARGIN;

  for (guint r = 0; r < l->n_ranks; r++)
    {
      double thick = 0;

      for (guint k = l->rank_first[r]; k < l->rank_first[r + 1]; k++)
        if (l->order[k] < d->n)
          {
            guint node = d->node_at[l->order[k]];
            thick = MAX (thick, d->sideways ? d->width[node] : d->height[node]);
          }
      d->along[r] = at + thick / 2;
      at += thick + RANK_GAP;
    }
  d->total_along = at - (l->n_ranks > 0 ? RANK_GAP : 0) + MARGIN;
}

static TdScenePoint
point (const Drawing *d, double across, double along)
{
  if (d->reverse)
    along = d->total_along - along;
  return d->sideways ? (TdScenePoint){ along, across } : (TdScenePoint){ across, along };
}

static void
add_edge (Drawing *d, TdSceneBuilder *b, guint e)
{
  const TdLayering *l = d->layering;
  const TdLayerEdge *edge = &d->edges[e];
  g_autoptr (GArray) q = g_array_new (FALSE, FALSE, sizeof (TdScenePoint));
  guint from = d->node_at[edge->from], to = d->node_at[edge->to];
  gint r0 = l->rank[edge->from], r1 = l->rank[edge->to];
  gboolean turned = d->place_of[EDGE (d, e)->from] > d->place_of[EDGE (d, e)->to];
  TdStyle style = { .stroke = TD_ROLE_EDGE,
                    .stroke_width = 1.2,
                    .flags = turned ? TD_PRIM_ARROW_START : TD_PRIM_ARROW_END };
  TdScenePoint p = point (d, d->across[edge->from],
                          d->along[r0] + (d->sideways ? d->width[from] : d->height[from]) / 2);

  g_array_append_val (q, p);
  for (gint r = r0 + 1; r < r1; r++)
    if (edge->trunk >= 0)
      {
        const TdTrunk *t = &l->trunks[edge->trunk];

        if (r >= t->lo && r <= t->hi)
          {
            p = point (d, d->across[t->first_slot + (guint)(r - t->lo)], d->along[r]);
            g_array_append_val (q, p);
          }
      }
  p = point (d, d->across[edge->to],
             d->along[r1] - (d->sideways ? d->width[to] : d->height[to]) / 2);
  g_array_append_val (q, p);
  td_scene_add_line (b, (TdScenePoint *)(void *)q->data, (int)q->len, &style);
}

static void
add_node (Drawing *d, TdSceneBuilder *b, guint thing)
{
  guint i = d->node_at[thing];
  const TdDotNode *n = NODE (d, i);
  TdScenePoint c = point (d, d->across[thing], d->along[d->layering->rank[thing]]);
  TdSceneRect box
      = { c.x - d->width[i] / 2, c.y - d->height[i] / 2, d->width[i], d->height[i] };
  TdStyle style = { .fill = n->octagon ? TD_ROLE_VARIABLE : TD_ROLE_NODE,
                    .stroke = TD_ROLE_NODE_STROKE,
                    .flags = TD_PRIM_NODE };
  TdTextStyle text = { .role = TD_ROLE_NODE_TEXT,
                       .size = TD_TEXT_NODE,
                       .align = 0.5,
                       .max_width = 420,
                       .flags = TD_PRIM_DETAIL };
  g_auto (GStrv) lines = g_strsplit (n->label, "\n", -1);
  guint n_lines = g_strv_length (lines);

  td_scene_mark (b, TD_TAG_NODE, i + 1, i, n->label);
  td_scene_add_shape (b, n->octagon ? TD_PRIM_OCTAGON : TD_PRIM_RECT, box, 0, &style);
  td_scene_unmark (b);
  for (guint k = 0; k < n_lines; k++)
    td_scene_add_text (b, c.x, c.y + 16.0 * (k - (n_lines - 1) / 2.0), lines[k], &text);
}

TdScene *
td_dot_scene (const TdDotGraph *g)
{
  guint n_edges = g->edges->len;
  Drawing d = { .g = g, .n = g->nodes->len };
  guint kept = 0;

  d.sideways = g->rankdir[0] == 'L' || g->rankdir[0] == 'R';
  d.reverse = g->rankdir[0] == 'B' || g->rankdir[0] == 'R';
  d.place_of = g_new0 (guint, MAX (d.n, 1));
  d.node_at = g_new0 (guint, MAX (d.n, 1));
  d.width = g_new0 (double, MAX (d.n, 1));
  d.height = g_new0 (double, MAX (d.n, 1));
  d.edges = g_new0 (TdLayerEdge, MAX (n_edges, 1));
  sort_nodes (&d);
  measure_nodes (&d);
  for (guint e = 0; e < n_edges; e++)
    {
      guint a = d.place_of[EDGE (&d, e)->from], z = d.place_of[EDGE (&d, e)->to];

      kept += a != z;
      d.edges[e] = (TdLayerEdge){ .from = (gint32)MIN (a, z),
                                  .to = (gint32)MAX (a, z),
                                  .source = (gint32)a };
    }
  /* an edge from a node to itself has no place in layers: it is not drawn */
  g_autofree TdLayerEdge *real = g_new0 (TdLayerEdge, MAX (kept, 1));
  g_autofree guint *real_index = g_new0 (guint, MAX (n_edges, 1));
  kept = 0;
  for (guint e = 0; e < n_edges; e++)
    if (d.edges[e].from != d.edges[e].to)
      {
        real_index[e] = kept;
        real[kept++] = d.edges[e];
      }
  d.layering = td__layering_new (d.n, real, kept);
  for (guint e = 0; e < n_edges; e++)
    if (d.edges[e].from != d.edges[e].to)
      d.edges[e].trunk = real[real_index[e]].trunk;

  d.across = g_new0 (double, MAX (d.layering->n_slots, 1));
  d.size = g_new0 (double, MAX (d.layering->n_slots, 1));
  d.along = g_new0 (double, MAX (d.layering->n_ranks, 1));
  for (guint s = 0; s < d.n; s++)
    d.size[s] = d.sideways ? d.height[d.node_at[s]] : d.width[d.node_at[s]];
  place (&d);
  place_ranks (&d);

  TdScenePoint corner = d.sideways ? (TdScenePoint){ d.total_along, d.total_across }
                                   : (TdScenePoint){ d.total_across, d.total_along };
  TdSceneBuilder *b = td_scene_builder_new (corner.x, corner.y);
  td_scene_set_background (b, TD_ROLE_VIEW);
  for (guint e = 0; e < n_edges; e++)
    if (d.edges[e].from != d.edges[e].to)
      add_edge (&d, b, e);
  for (guint t = 0; t < d.n; t++)
    add_node (&d, b, t);
  td__layering_free (d.layering);
  g_free (d.place_of);
  g_free (d.node_at);
  g_free (d.width);
  g_free (d.height);
  g_free (d.edges);
  g_free (d.across);
  g_free (d.size);
  g_free (d.along);
  return td_scene_builder_end (b);
}
