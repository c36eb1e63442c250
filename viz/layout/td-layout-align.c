/* Positions across for slots that stand in a given order: as near to their neighbours in the
 * ranks above and below as their sizes allow. Each rank is a least-squares problem with a
 * minimum distance between neighbours, which pooling adjacent violators solves exactly, in
 * linear time.
 *
 * SPDX-License-Identifier: MIT */
#include "layout/td-layout-private.h"

#include <math.h>

#define MAX_SWEEPS 6
#define BIG 20000

typedef struct
{
  double sum, weight; /* of what its members would like */
  guint n;
} Pool;

typedef struct
{
  const TdLayering *layering;
  guint lane;
  const guint8 *in_lane;
  const double *left, *right;
  double gap;
  double *across;
  double *offset, *wish, *weight;
  Pool *pools;
  guint32 *members;
} Align;

/* The mean of the neighbours of slot `s` on one side, and how many there are. */
static guint
sum_neighbours (const Align *a, guint32 s, gboolean up, double *sum)
{
  const TdLayering *l = a->layering;
  const guint32 *first = up ? l->up_first : l->down_first;
  const guint32 *other = up ? l->up : l->down;
  const guint8 *lanes = up ? l->up_lane : l->down_lane;
  guint n = 0;

  for (guint k = first[s]; k < first[s + 1]; k++)
    if (lanes[k] == a->lane && a->in_lane[other[k]])
      {
        *sum += a->across[other[k]];
        n++;
      }
  return n;
}

/* Move the members of a rank to where they wish to be, in order. */
static void
solve_rank (Align *a, guint n)
{
  guint n_pools = 0;

  for (guint i = 0; i < n; i++)
    {
      Pool pool = { (a->wish[i] - a->offset[i]) * a->weight[i], a->weight[i], 1 };

      while (n_pools > 0
             && a->pools[n_pools - 1].sum * pool.weight
                    > pool.sum * a->pools[n_pools - 1].weight)
        {
          n_pools--;
          pool.sum += a->pools[n_pools].sum;
          pool.weight += a->pools[n_pools].weight;
          pool.n += a->pools[n_pools].n;
        }
      a->pools[n_pools++] = pool;
    }
  for (guint p = 0, i = 0; p < n_pools; p++)
    for (guint k = 0; k < a->pools[p].n; k++, i++)
      a->across[a->members[i]] = a->pools[p].sum / a->pools[p].weight + a->offset[i];
}

static guint
gather_rank (Align *a, guint rank)
{
  const TdLayering *l = a->layering;
  guint n = 0;

  for (guint i = l->rank_first[rank]; i < l->rank_first[rank + 1]; i++)
    {
      guint32 s = l->order[i];

      if (!a->in_lane[s])
        continue;
      a->offset[n]
          = n == 0 ? 0 : a->offset[n - 1] + a->right[a->members[n - 1]] + a->gap + a->left[s];
      a->members[n++] = s;
    }
  return n;
}

static void
align_rank (Align *a, guint rank, gboolean up, gboolean both)
{
  guint n = gather_rank (a, rank);

  for (guint i = 0; i < n; i++)
    {
      double sum = 0;
      guint neighbours = sum_neighbours (a, a->members[i], up, &sum);

      if (both)
        neighbours += sum_neighbours (a, a->members[i], !up, &sum);
      a->wish[i] = neighbours ? sum / neighbours : a->across[a->members[i]];
      /* a long edge should be straight before anything else is */
      a->weight[i] = neighbours == 0 ? 0.01 : a->members[i] >= a->layering->n_things ? 4 : 1;
    }
  solve_rank (a, n);
}

void
td__layout_align (const TdLayering *layering, guint lane, const guint8 *in_lane,
                  const double *left, const double *right, double gap, double *across)
{
  Align a = { .layering = layering,
              .lane = lane,
              .in_lane = in_lane,
              .left = left,
              .right = right,
              .gap = gap,
              .across = across };
  guint n_ranks = layering->n_ranks;
  guint sweeps = layering->n_slots > BIG ? 2 : MAX_SWEEPS;

  a.offset = g_new (double, layering->n_slots + 1);
  a.wish = g_new (double, layering->n_slots + 1);
  a.weight = g_new (double, layering->n_slots + 1);
  a.pools = g_new (Pool, layering->n_slots + 1);
  a.members = g_new (guint32, layering->n_slots + 1);
  for (guint r = 0; r < n_ranks; r++)
    {
      guint n = gather_rank (&a, r);

      /* side by side, the middle at zero */
      for (guint i = 0; i < n; i++)
        across[a.members[i]] = a.offset[i] - a.offset[n - 1] / 2;
    }
  for (guint sweep = 0; sweep < sweeps; sweep++)
    for (guint i = 1; i < n_ranks; i++)
      align_rank (&a, sweep % 2 ? n_ranks - 1 - i : i, sweep % 2 == 0, FALSE);
  if (sweeps > 2)
    for (guint r = 0; r < n_ranks; r++)
      align_rank (&a, r, TRUE, TRUE);
  if (sweeps > 2)
    td__layout_make_columns (layering, lane, in_lane, left, right, gap, across);
  for (guint s = 0; s < layering->n_slots; s++)
    if (in_lane[s])
      across[s] = floor (across[s] + 0.5);
  g_free (a.offset);
  g_free (a.wish);
  g_free (a.weight);
  g_free (a.pools);
  g_free (a.members);
}
