/* Columns: the vertical alignment of Brandes and Koepf (Fast and Simple Horizontal Coordinate
 * Assignment, 2001, section 3.1), with their four runs replaced by one that starts from good
 * positions. Long edges are tied first, then operations to operations, then what is left.
 *
 * SPDX-License-Identifier: MIT */
#include "layout/td-layout-private.h"

#include <string.h>

typedef struct
{
  const TdLayering *layering;
  guint lane;
  const guint8 *in_lane;
  const double *left, *right;
  double gap;
  double *across;
  gint32 *position; /* of a slot in its rank */
  gint32 *above;    /* the slot it is tied to in the rank above, -1 */
  gint32 *below;
  gint32 *column; /* per slot */
  guint n_columns;
} Columns;

typedef enum
{
  PASS_PASSING, /* two slots of a long edge */
  PASS_THINGS,  /* two things */
  PASS_MIXED,
  N_PASSES,
} Pass;

static gboolean
fits_pass (const Columns *c, Pass pass, guint32 upper, guint32 lower)
{
  guint n_things = (upper < c->layering->n_things) + (lower < c->layering->n_things);

  return pass == PASS_PASSING  ? n_things == 0
         : pass == PASS_THINGS ? n_things == 2
                               : n_things == 1;
}

/* The free upper neighbour nearest to the middle of all, within (low, high). */
static gint32
choose_above (const Columns *c, guint32 slot, Pass pass, gint32 low, gint32 high)
{
  const TdLayering *l = c->layering;
  double sum = 0, nearest = G_MAXDOUBLE;
  guint n = 0;
  gint32 found = -1;

  for (guint k = l->up_first[slot]; k < l->up_first[slot + 1]; k++)
    if (l->up_lane[k] == c->lane && c->in_lane[l->up[k]])
      {
        sum += c->across[l->up[k]];
        n++;
      }
  for (guint k = l->up_first[slot]; k < l->up_first[slot + 1]; k++)
    {
      guint32 u = l->up[k];
      double distance = n ? c->across[u] - sum / n : 0;

      if (l->up_lane[k] != c->lane || !c->in_lane[u] || c->below[u] >= 0
          || c->position[u] <= low || c->position[u] >= high || !fits_pass (c, pass, u, slot))
        continue;
      distance = distance < 0 ? -distance : distance;
      if (distance < nearest)
        {
          nearest = distance;
          found = (gint32)u;
        }
    }
  return found;
}

static void
tie_rank (Columns *c, guint rank, Pass pass, gint32 *high)
{
  const TdLayering *l = c->layering;
  gint32 low = -1, next = G_MAXINT32;

  /* ties must not cross: none right of a tie may end left of it */
  for (guint i = l->rank_first[rank + 1]; i-- > l->rank_first[rank];)
    {
      guint32 s = l->order[i];

      high[i - l->rank_first[rank]] = next;
      if (c->in_lane[s] && c->above[s] >= 0)
        next = c->position[c->above[s]];
    }
  for (guint i = l->rank_first[rank]; i < l->rank_first[rank + 1]; i++)
    {
      guint32 s = l->order[i];

      if (!c->in_lane[s])
        continue;
      if (c->above[s] < 0)
        {
          c->above[s] = choose_above (c, s, pass, low, high[i - l->rank_first[rank]]);
          if (c->above[s] >= 0)
            c->below[c->above[s]] = (gint32)s;
        }
      if (c->above[s] >= 0)
        low = c->position[c->above[s]];
    }
}

static void
number_columns (Columns *c)
{
  const TdLayering *l = c->layering;

  for (guint i = 0; i < l->n_slots; i++) /* rank after rank, so that above comes first */
    {
      guint32 s = l->order[i];

      if (!c->in_lane[s])
        c->column[s] = -1;
      else if (c->above[s] >= 0)
        c->column[s] = c->column[c->above[s]];
      else
        c->column[s] = (gint32)c->n_columns++;
    }
}

typedef struct
{
  gint32 left, right; /* columns */
  double distance;
} Apart;

static GArray *
find_neighbours (const Columns *c)
{
  const TdLayering *l = c->layering;
  GArray *apart = g_array_new (FALSE, FALSE, sizeof (Apart));

  for (guint r = 0; r < l->n_ranks; r++)
    {
      gint32 before = -1;

      for (guint i = l->rank_first[r]; i < l->rank_first[r + 1]; i++)
        {
          gint32 s = (gint32)l->order[i];

          if (!c->in_lane[s])
            continue;
          if (before >= 0)
            {
              Apart a
                  = { c->column[before], c->column[s], c->right[before] + c->gap + c->left[s] };

              g_array_append_val (apart, a);
            }
          before = s;
        }
    }
  return apart;
}

/* Columns from left to right: ties do not cross, so this order exists. Returns how many it
 * found. */
static guint
sort_columns (const Columns *c, const GArray *apart, guint32 *first, guint32 *list,
              gint32 *order)
{
  guint32 *waiting = g_new0 (guint32, c->n_columns + 1);
  guint head = 0, tail = 0;

  for (guint i = 0; i < apart->len; i++)
    {
      first[g_array_index (apart, Apart, i).left + 2]++;
      waiting[g_array_index (apart, Apart, i).right]++;
    }
  for (guint i = 1; i < c->n_columns + 2; i++)
    first[i] += first[i - 1];
  for (guint i = 0; i < apart->len; i++)
    list[first[g_array_index (apart, Apart, i).left + 1]++] = i;
  for (guint i = 0; i < c->n_columns; i++)
    if (waiting[i] == 0)
      order[tail++] = (gint32)i;
  for (; head < tail; head++)
    for (guint k = first[order[head]]; k < first[order[head] + 1]; k++)
      {
        gint32 right = g_array_index (apart, Apart, list[k]).right;

        if (--waiting[right] == 0)
          order[tail++] = right;
      }
  g_free (waiting);
  return tail;
}

/* Two answers keep all distances: one that only pushes right, one that only pushes left. So
 * does their mean, which is fair to both sides. */
static void
place_columns (const Columns *c, const GArray *apart, double *x)
{
  guint n = c->n_columns;
  guint32 *first = g_new0 (guint32, n + 3), *list = g_new (guint32, apart->len + 1);
  gint32 *order = g_new (gint32, n + 1);
  double *pushed_right = g_memdup2 (x, sizeof (double) * (n + 1));
  double *pushed_left = g_memdup2 (x, sizeof (double) * (n + 1));

  if (sort_columns (c, apart, first, list, order) == n)
    {
      for (guint i = 0; i < n; i++)
        for (guint k = first[order[i]]; k < first[order[i] + 1]; k++)
          {
            const Apart *a = &g_array_index (apart, Apart, list[k]);

            pushed_right[a->right]
                = MAX (pushed_right[a->right], pushed_right[a->left] + a->distance);
          }
      for (guint i = n; i-- > 0;)
        for (guint k = first[order[i]]; k < first[order[i] + 1]; k++)
          {
            const Apart *a = &g_array_index (apart, Apart, list[k]);

            pushed_left[a->left]
                = MIN (pushed_left[a->left], pushed_left[a->right] - a->distance);
          }
      for (guint32 s = 0; s < c->layering->n_slots; s++)
        if (c->column[s] >= 0)
          c->across[s] = (pushed_right[c->column[s]] + pushed_left[c->column[s]]) / 2;
    }
  g_free (first);
  g_free (list);
  g_free (order);
  g_free (pushed_right);
  g_free (pushed_left);
}

void
td__layout_make_columns (const TdLayering *layering, guint lane, const guint8 *in_lane,
                         const double *left, const double *right, double gap, double *across)
{
  Columns c = { .layering = layering,
                .lane = lane,
                .in_lane = in_lane,
                .left = left,
                .right = right,
                .gap = gap,
                .across = across };
  guint n = layering->n_slots;
  gint32 *high = g_new (gint32, n + 1);
  double *x;
  guint32 *members;
  GArray *apart;

  c.position = g_new (gint32, n + 1);
  c.above = g_new (gint32, n + 1);
  c.below = g_new (gint32, n + 1);
  c.column = g_new (gint32, n + 1);
  memset (c.above, -1, sizeof (gint32) * (n + 1));
  memset (c.below, -1, sizeof (gint32) * (n + 1));
  for (guint r = 0; r < layering->n_ranks; r++)
    for (guint i = layering->rank_first[r]; i < layering->rank_first[r + 1]; i++)
      c.position[layering->order[i]] = (gint32)(i - layering->rank_first[r]);
  for (Pass pass = 0; pass < N_PASSES; pass++)
    for (guint r = 1; r < layering->n_ranks; r++)
      tie_rank (&c, r, pass, high);
  number_columns (&c);
  x = g_new0 (double, c.n_columns + 1);
  members = g_new0 (guint32, c.n_columns + 1);
  for (guint s = 0; s < n; s++)
    if (c.column[s] >= 0)
      {
        x[c.column[s]] += across[s];
        members[c.column[s]]++;
      }
  for (guint i = 0; i < c.n_columns; i++)
    x[i] /= members[i];
  apart = find_neighbours (&c);
  place_columns (&c, apart, x);
  g_array_free (apart, TRUE);
  g_free (high);
  g_free (x);
  g_free (members);
  g_free (c.position);
  g_free (c.above);
  g_free (c.below);
  g_free (c.column);
}
