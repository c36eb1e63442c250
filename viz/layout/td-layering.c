/* Ranks by longest path, sources pulled down to their users, trunks for long edges, order by
 * barycentre sweeps of which the best is kept.
 *
 * SPDX-License-Identifier: MIT */
#include "layout/td-layering.h"

#include <string.h>

#define MAX_SWEEPS 8
#define BIG 20000 /* slots from which two sweeps must do, and crossings are not counted */

/* ---- ranks ---- */

/* Lists of edges by one end, in the order of the edges. */
static void
list_edges (const TdLayerEdge *edges, guint n_edges, guint n, gboolean by_from, guint32 **first,
            guint32 **items)
{
  guint32 *f = g_new0 (guint32, n + 2);
  guint32 *list = g_new (guint32, n_edges + 1);

  for (guint i = 0; i < n_edges; i++)
    if (edges[i].from >= 0 && edges[i].to >= 0)
      f[(by_from ? edges[i].from : edges[i].to) + 2]++;
  for (guint i = 1; i < n + 2; i++)
    f[i] += f[i - 1];
  for (guint i = 0; i < n_edges; i++)
    if (edges[i].from >= 0 && edges[i].to >= 0)
      list[f[(by_from ? edges[i].from : edges[i].to) + 1]++] = i;
  *first = f;
  *items = list;
}

static gint32 *
find_ranks (guint n, const TdLayerEdge *edges, guint n_edges)
{
  gint32 *rank = g_new0 (gint32, n + 1);
  guint8 *has_source = g_new0 (guint8, n + 1);
  guint32 *first, *list;

  list_edges (edges, n_edges, n, TRUE, &first, &list);
  for (guint u = 0; u < n; u++)
    for (guint i = first[u]; i < first[u + 1]; i++)
      {
        gint32 v = edges[list[i]].to;

        rank[v] = MAX (rank[v], rank[u] + 1);
        has_source[v] = 1;
      }
  for (guint u = n; u-- > 0;)
    if (!has_source[u] && first[u] < first[u + 1])
      {
        gint32 lowest = G_MAXINT32;

        for (guint i = first[u]; i < first[u + 1]; i++)
          lowest = MIN (lowest, rank[edges[list[i]].to]);
        rank[u] = lowest - 1;
      }
  g_free (first);
  g_free (list);
  g_free (has_source);
  return rank;
}

/* ---- trunks ---- */

static void
find_trunks (TdLayering *self, TdLayerEdge *edges, guint n_edges)
{
  GHashTable *known = g_hash_table_new (NULL, NULL);
  gint32 *trunk_of = NULL;
  gint32 max_source = -1;

  self->trunks = g_new (TdTrunk, n_edges + 1);
  for (guint i = 0; i < n_edges; i++)
    max_source = MAX (max_source, edges[i].source);
  if (max_source < (gint32)(8 * n_edges + 1024))
    {
      trunk_of = g_new (gint32, max_source + 2);
      memset (trunk_of, -1, sizeof (gint32) * (gsize)(max_source + 2));
    }
  for (guint i = 0; i < n_edges; i++)
    {
      TdLayerEdge *e = &edges[i];
      gint32 lo = e->from >= 0 ? self->rank[e->from] + 1 : 0;
      gint32 hi = e->to >= 0 ? self->rank[e->to] - 1 : (gint32)self->n_ranks - 1;
      gint t = trunk_of
                   ? trunk_of[e->source]
                   : GPOINTER_TO_INT (g_hash_table_lookup (known, GINT_TO_POINTER (e->source)))
                         - 1;
      TdTrunk *trunk;

      if (t < 0)
        {
          t = (gint)self->n_trunks++;
          self->trunks[t]
              = (TdTrunk){ .source = e->source, .lo = G_MAXINT32, .hi = -1, .lane = e->lane };
          if (trunk_of)
            trunk_of[e->source] = t;
          else
            g_hash_table_insert (known, GINT_TO_POINTER (e->source), GINT_TO_POINTER (t + 1));
        }
      e->trunk = t;
      trunk = &self->trunks[t];
      if (lo <= hi)
        {
          trunk->lo = MIN (trunk->lo, lo);
          trunk->hi = MAX (trunk->hi, hi);
        }
    }
  g_free (trunk_of);
  g_hash_table_unref (known);
}

/* Slots for the trunks, unless there would be absurdly many. */
static void
add_passing_slots (TdLayering *self)
{
  guint64 n = 0;
  guint limit = 8 * self->n_things + 4096;

  for (guint t = 0; t < self->n_trunks; t++)
    if (self->trunks[t].lo <= self->trunks[t].hi)
      n += (guint64)(self->trunks[t].hi - self->trunks[t].lo + 1);
  if (n > limit)
    for (guint t = 0; t < self->n_trunks; t++)
      {
        self->trunks[t].lo = 0;
        self->trunks[t].hi = -1;
      }
  n = n > limit ? 0 : n;
  self->n_slots = self->n_things + (guint)n;
  self->rank = g_renew (gint32, self->rank, self->n_slots + 1);
  self->slot_lane = g_new (guint8, n + 1);
  for (guint t = 0, next = self->n_things; t < self->n_trunks; t++)
    {
      TdTrunk *trunk = &self->trunks[t];

      trunk->first_slot = next;
      for (gint32 r = trunk->lo; r <= trunk->hi; r++, next++)
        {
          self->rank[next] = r;
          self->slot_lane[next - self->n_things] = trunk->lane;
        }
    }
}

typedef struct
{
  guint32 above, below;
  guint8 lane;
} Link;

static void
add_link (GArray *links, guint32 above, guint32 below, guint8 lane)
{
  Link link = { above, below, lane };

  g_array_append_val (links, link);
}

static GArray *
collect_links (const TdLayering *self, const TdLayerEdge *edges, guint n_edges)
{
  GArray *links = g_array_sized_new (FALSE, FALSE, sizeof (Link), n_edges + self->n_slots);
  gint32 *top
      = g_new (gint32, self->n_trunks + 1); /* what was last tied to a trunk's ends: the */
  gint32 *bottom = g_new (gint32, self->n_trunks + 1); /* edges of one source tie it once */

  memset (top, -1, sizeof (gint32) * (self->n_trunks + 1));
  memset (bottom, -1, sizeof (gint32) * (self->n_trunks + 1));

  for (guint t = 0; t < self->n_trunks; t++)
    for (gint32 r = self->trunks[t].lo; r < self->trunks[t].hi; r++)
      {
        guint32 slot = self->trunks[t].first_slot + (guint32)(r - self->trunks[t].lo);

        add_link (links, slot, slot + 1, self->trunks[t].lane);
      }
  for (guint i = 0; i < n_edges; i++)
    {
      const TdLayerEdge *e = &edges[i];
      const TdTrunk *trunk = &self->trunks[e->trunk];
      gint32 above = e->from >= 0 ? self->rank[e->from] + 1 : -1;
      gint32 below = e->to >= 0 ? self->rank[e->to] - 1 : -1;

      if (e->from >= 0 && e->to >= 0 && above > below)
        add_link (links, (guint32)e->from, (guint32)e->to, e->lane);
      if (above >= trunk->lo && above <= trunk->hi && (e->to < 0 || above <= below)
          && top[e->trunk] != e->from)
        {
          top[e->trunk] = e->from;
          add_link (links, (guint32)e->from, trunk->first_slot + (guint32)(above - trunk->lo),
                    e->lane);
        }
      if (below >= trunk->lo && below <= trunk->hi && (e->from < 0 || above <= below)
          && bottom[e->trunk] != e->to)
        {
          bottom[e->trunk] = e->to;
          add_link (links, trunk->first_slot + (guint32)(below - trunk->lo), (guint32)e->to,
                    e->lane);
        }
    }
  g_free (top);
  g_free (bottom);
  return links;
}

static void
index_links (TdLayering *self, const TdLayerEdge *edges, guint n_edges)
{
  GArray *links = collect_links (self, edges, n_edges);
  const Link *l = (const Link *)(gpointer)links->data;
  guint n = links->len;

  self->n_links = n;
  self->up_first = g_new0 (guint32, self->n_slots + 2);
  self->down_first = g_new0 (guint32, self->n_slots + 2);
  self->up = g_new (guint32, n + 1);
  self->down = g_new (guint32, n + 1);
  self->up_lane = g_new (guint8, n + 1);
  self->down_lane = g_new (guint8, n + 1);
  for (guint i = 0; i < n; i++)
    {
      self->up_first[l[i].below + 2]++;
      self->down_first[l[i].above + 2]++;
    }
  for (guint i = 1; i < self->n_slots + 2; i++)
    {
      self->up_first[i] += self->up_first[i - 1];
      self->down_first[i] += self->down_first[i - 1];
    }
  for (guint i = 0; i < n; i++)
    {
      guint u = self->up_first[l[i].below + 1]++;
      guint d = self->down_first[l[i].above + 1]++;

      self->up[u] = l[i].above;
      self->up_lane[u] = l[i].lane;
      self->down[d] = l[i].below;
      self->down_lane[d] = l[i].lane;
    }
  g_array_free (links, TRUE);
}

/* ---- order ---- */

static void
fill_ranks (TdLayering *self)
{
  guint32 *next;

  self->rank_first = g_new0 (guint32, self->n_ranks + 2);
  self->order = g_new (guint32, self->n_slots + 1);
  for (guint s = 0; s < self->n_slots; s++)
    self->rank_first[self->rank[s] + 1]++;
  for (guint r = 0; r < self->n_ranks; r++)
    self->rank_first[r + 1] += self->rank_first[r];
  next = g_memdup2 (self->rank_first, sizeof (guint32) * (self->n_ranks + 1));
  for (guint s = 0; s < self->n_slots; s++)
    self->order[next[self->rank[s]]++] = s;
  g_free (next);
}

typedef struct
{
  double at;
  guint32 slot;
  guint32 before; /* where it stood: equal ones keep their order */
} Place;

static int
compare_places (const void *a, const void *b)
{
  const Place *x = a, *y = b;

  if (x->at != y->at)
    return x->at < y->at ? -1 : 1;
  return x->before < y->before ? -1 : x->before > y->before;
}

static void
sort_places (Place *places, guint n)
{
  if (n > 24)
    {
      qsort (places, n, sizeof (Place), compare_places);
      return;
    }
  for (guint i = 1; i < n; i++)
    {
      Place p = places[i];
      guint k = i;

      for (; k > 0 && compare_places (&p, &places[k - 1]) < 0; k--)
        places[k] = places[k - 1];
      places[k] = p;
    }
}

static void
sort_rank (TdLayering *self, guint rank, gboolean by_up, double *position, Place *places)
{
  const guint32 *first = by_up ? self->up_first : self->down_first;
  const guint32 *other = by_up ? self->up : self->down;
  guint32 *order = self->order + self->rank_first[rank];
  guint n = self->rank_first[rank + 1] - self->rank_first[rank];

  if (n < 2)
    {
      if (n)
        position[order[0]] = 0.5;
      return;
    }
  for (guint i = 0; i < n; i++)
    {
      guint32 s = order[i];
      double sum = 0;

      for (guint k = first[s]; k < first[s + 1]; k++)
        sum += position[other[k]];
      places[i].slot = s;
      places[i].before = i;
      places[i].at
          = first[s] < first[s + 1] ? sum / (double)(first[s + 1] - first[s]) : position[s];
    }
  sort_places (places, n);
  /* positions are shares of the rank's width, so that ranks of different sizes compare */
  for (guint i = 0; i < n; i++)
    {
      order[i] = places[i].slot;
      position[order[i]] = (i + 0.5) / n;
    }
}

static void
find_order (TdLayering *self)
{
  double *position = g_new (double, self->n_slots + 1);
  Place *places = g_new (Place, self->n_slots + 1);
  gboolean big = self->n_slots > BIG;
  guint32 *best = big ? NULL : g_memdup2 (self->order, sizeof (guint32) * (self->n_slots + 1));
  guint64 fewest = big ? 0 : td__layering_count_crossings (self);

  for (guint r = 0; r < self->n_ranks; r++)
    for (guint i = self->rank_first[r]; i < self->rank_first[r + 1]; i++)
      position[self->order[i]]
          = (i - self->rank_first[r] + 0.5) / (self->rank_first[r + 1] - self->rank_first[r]);
  for (guint sweep = 0; sweep < (big ? 2 : MAX_SWEEPS) && (big || fewest > 0); sweep++)
    {
      guint64 crossings;

      for (guint i = 1; i < self->n_ranks; i++)
        sort_rank (self, sweep % 2 ? self->n_ranks - 1 - i : i, sweep % 2 == 0, position,
                   places);
      if (big)
        continue;
      crossings = td__layering_count_crossings (self);
      if (crossings < fewest)
        {
          fewest = crossings;
          memcpy (best, self->order, sizeof (guint32) * self->n_slots);
        }
    }
  if (best)
    memcpy (self->order, best, sizeof (guint32) * self->n_slots);
  g_free (best);
  g_free (position);
  g_free (places);
}

/* Inversions between neighbouring ranks, by a tree of counts. */
guint64
td__layering_count_crossings (const TdLayering *self)
{
  guint32 *index = g_new (guint32, self->n_slots + 1);
  guint32 *tree = g_new0 (guint32, self->n_slots + 2);
  GArray *ends = g_array_new (FALSE, FALSE, sizeof (guint32));
  guint64 crossings = 0;

  for (guint r = 0; r < self->n_ranks; r++)
    for (guint i = self->rank_first[r]; i < self->rank_first[r + 1]; i++)
      index[self->order[i]] = i - self->rank_first[r];
  for (guint r = 0; r + 1 < self->n_ranks; r++)
    {
      guint width = self->rank_first[r + 2] - self->rank_first[r + 1];
      guint seen = 0;

      if (width < 2 || self->rank_first[r + 1] - self->rank_first[r] < 2)
        continue;
      memset (tree, 0, sizeof (guint32) * (width + 1));
      for (guint i = self->rank_first[r]; i < self->rank_first[r + 1]; i++)
        {
          guint32 s = self->order[i];

          g_array_set_size (ends, 0);
          for (guint k = self->down_first[s]; k < self->down_first[s + 1]; k++)
            g_array_append_val (ends, index[self->down[k]]);
          /* those that end to the left of an earlier one's end cross it; links of one slot do
           * not */
          for (guint k = 0; k < ends->len; k++)
            {
              guint at = g_array_index (ends, guint32, k) + 1, before = 0;

              for (guint j = at; j > 0; j -= j & (~j + 1))
                before += tree[j];
              crossings += seen - before;
            }
          for (guint k = 0; k < ends->len; k++)
            for (guint j = g_array_index (ends, guint32, k) + 1; j <= width; j += j & (~j + 1))
              tree[j]++;
          seen += ends->len;
        }
    }
  g_free (index);
  g_free (tree);
  g_array_free (ends, TRUE);
  return crossings;
}

/* ---- life ---- */

static TdLayering *
layering_start (guint n_things, TdLayerEdge *edges, guint n_edges, gint32 *ranks)
{
  TdLayering *self = g_new0 (TdLayering, 1);

  self->n_things = n_things;
  self->rank = ranks;
  for (guint i = 0; i < n_things; i++)
    self->n_ranks = MAX (self->n_ranks, (guint)ranks[i] + 1);
  find_trunks (self, edges, n_edges);
  add_passing_slots (self);
  index_links (self, edges, n_edges);
  fill_ranks (self);
  return self;
}

TdLayering *
td__layering_new (guint n_things, TdLayerEdge *edges, guint n_edges)
{
  TdLayering *self
      = layering_start (n_things, edges, n_edges, find_ranks (n_things, edges, n_edges));

  find_order (self);
  return self;
}

TdLayering *
td__layering_new_from (guint n_things, TdLayerEdge *edges, guint n_edges, const gint32 *ranks,
                       const double *across, TdPassFunc pass, gpointer data)
{
  TdLayering *self = layering_start (n_things, edges, n_edges,
                                     g_memdup2 (ranks, sizeof (gint32) * (n_things + 1)));
  double *at = g_new0 (double, self->n_slots + 1);
  Place *places = g_new (Place, self->n_slots + 1);

  memcpy (at, across, sizeof (double) * n_things);
  for (guint i = 0; i < n_edges; i++)
    {
      const TdLayerEdge *e = &edges[i];
      const TdTrunk *trunk = &self->trunks[e->trunk];
      gint32 lo = e->from >= 0 ? self->rank[e->from] + 1 : 0;
      gint32 hi = e->to >= 0 ? self->rank[e->to] - 1 : (gint32)self->n_ranks - 1;

      for (gint32 r = MAX (lo, trunk->lo); r <= MIN (hi, trunk->hi); r++)
        {
          double *x = &at[trunk->first_slot + (guint32)(r - trunk->lo)];

          if (pass && e->from >= 0 && e->to >= 0)
            *x = pass (data, i, r);
          else
            *x = across[e->from >= 0 ? e->from : e->to];
        }
    }
  for (guint r = 0; r < self->n_ranks; r++)
    {
      guint32 *order = self->order + self->rank_first[r];
      guint n = self->rank_first[r + 1] - self->rank_first[r];

      for (guint i = 0; i < n; i++)
        places[i] = (Place){ at[order[i]], order[i], i };
      sort_places (places, n);
      for (guint i = 0; i < n; i++)
        order[i] = places[i].slot;
    }
  g_free (at);
  g_free (places);
  return self;
}

void
td__layering_free (TdLayering *self)
{
  g_free (self->rank);
  g_free (self->slot_lane);
  g_free (self->trunks);
  g_free (self->rank_first);
  g_free (self->order);
  g_free (self->up_first);
  g_free (self->down_first);
  g_free (self->up);
  g_free (self->down);
  g_free (self->up_lane);
  g_free (self->down_lane);
  g_free (self);
}
