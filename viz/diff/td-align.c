/*
 * Sequence alignment for iterations of up to 100,000 events.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-align.h"

/* Differences up to which the search is exact: its trace grows with their square (16 MB here).
 */
#define MAX_D 2000
/* The same for each piece of what is more different than that. */
#define PIECE_D 200

typedef struct
{
  const guint64 *a, *b;
  gint32 *b_of_a, *a_of_b;
} Align;

static void
pair (Align *s, gint i, gint j)
{
  s->b_of_a[i] = j;
  s->a_of_b[j] = i;
}

/* Walks back through the furthest points of each round and pairs the diagonals. */
static void
trace_back (Align *s, gint a0, gint b0, gint n, gint m, GPtrArray *rounds)
{
  gint x = n, y = m;

  for (gint d = (gint)rounds->len - 1; d >= 0; d--)
    {
      const gint32 *v = (const gint32 *)g_ptr_array_index (rounds, d) + d
                        + 1; /* round d holds k = -d-1 .. d+1 */
      gint k = x - y, from;

      if (k == -d || (k != d && v[k - 1] < v[k + 1]))
        from = k + 1;
      else
        from = k - 1;
      gint px = d > 0 ? v[from] : 0, py = d > 0 ? px - from : 0;
      while (x > px && y > py)
        {
          x--;
          y--;
          pair (s, a0 + x, b0 + y);
        }
      x = px;
      y = py;
    }
}

/* Pairs a[a0, a0 + n) with b[b0, b0 + m). Returns FALSE when more than `max_d` differences are
 * needed; then, if `reached` is not NULL, pairs as far as it got and says where that is. */
static gboolean
myers (Align *s, gint a0, gint n, gint b0, gint m, gint max_d, gint reached[2])
{
  gint max = MIN (n + m, max_d), best = 0, best_k = 0;
  g_autofree gint32 *memory = g_new0 (gint32, 2 * (gsize)max + 3);
  gint32 *v = memory + max + 1;
  g_autoptr (GPtrArray) rounds = g_ptr_array_new_with_free_func (g_free);

  for (gint d = 0; d <= max; d++)
    {
      g_ptr_array_add (rounds, g_memdup2 (v - d - 1, (2 * (gsize)d + 3) * sizeof *v));
      best = -1;
      for (gint k = -d; k <= d; k += 2)
        {
          gint x = k == -d || (k != d && v[k - 1] < v[k + 1]) ? v[k + 1] : v[k - 1] + 1,
               y = x - k;

          while (x < n && y < m && s->a[a0 + x] == s->b[b0 + y])
            {
              x++;
              y++;
            }
          v[k] = x;
          if (x >= n && y >= m)
            {
              trace_back (s, a0, b0, n, m, rounds);
              return TRUE;
            }
          if (x <= n && y <= m && x + y > best)
            {
              best = x + y;
              best_k = k;
            }
        }
    }
  if (!reached || best < 0)
    return FALSE;
  reached[0] = v[best_k];
  reached[1] = v[best_k] - best_k;
  trace_back (s, a0, b0, reached[0], reached[1], rounds);
  return FALSE;
}

/* Too different for the exact way: piece by piece, each from where the last one got. */
static void
by_pieces (Align *s, gint a0, gint n, gint b0, gint m)
{
  gint reached[2] = { 0, 0 };

  while (n > 0 && m > 0 && !myers (s, a0, n, b0, m, PIECE_D, reached)
         && reached[0] + reached[1] > 0)
    {
      a0 += reached[0];
      n -= reached[0];
      b0 += reached[1];
      m -= reached[1];
      reached[0] = reached[1] = 0;
    }
}

/* Counts occurrences: the index + 1 of the only one, or -1 when there are several. */
static GHashTable *
index_unique (const guint64 *tokens, gint from, gint n)
{
  GHashTable *table = g_hash_table_new (g_int64_hash, g_int64_equal);

  for (gint i = from; i < from + n; i++)
    if (g_hash_table_contains (table, &tokens[i]))
      g_hash_table_insert (table, (gpointer)&tokens[i], GINT_TO_POINTER (-1));
    else
      g_hash_table_insert (table, (gpointer)&tokens[i], GINT_TO_POINTER (i + 1));
  return table;
}

typedef struct
{
  gint a, b;
  gint before; /* the anchor before it in the longest chain that ends here, -1 */
} Anchor;

/* Tokens that occur once in each, as many as keep their order (patience sorting). Returns them
 * in order. */
static GArray *
find_anchors (const Align *s, gint a0, gint n, gint b0, gint m)
{
  g_autoptr (GHashTable) in_a = index_unique (s->a, a0, n);
  g_autoptr (GHashTable) in_b = index_unique (s->b, b0, m);
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (Anchor));
  g_autoptr (GArray) piles = g_array_new (FALSE, FALSE, sizeof (gint)); /* of `all` */
  GArray *chain = g_array_new (FALSE, FALSE, sizeof (Anchor));

  for (gint i = a0; i < a0 + n; i++)
    {
      Anchor anchor = { i, GPOINTER_TO_INT (g_hash_table_lookup (in_b, &s->a[i])) - 1, -1 };
      guint lo = 0, hi = piles->len;

      if (anchor.b < 0 || GPOINTER_TO_INT (g_hash_table_lookup (in_a, &s->a[i])) < 0)
        continue;
      while (lo < hi)
        {
          guint middle = (lo + hi) / 2;

          if (g_array_index (all, Anchor, g_array_index (piles, gint, middle)).b < anchor.b)
            lo = middle + 1;
          else
            hi = middle;
        }
      if (lo > 0)
        anchor.before = g_array_index (piles, gint, lo - 1);
      gint at = (gint)all->len;
      g_array_append_val (all, anchor);
      if (lo < piles->len)
        g_array_index (piles, gint, lo) = at;
      else
        g_array_append_val (piles, at);
    }
  for (gint at = piles->len > 0 ? g_array_index (piles, gint, piles->len - 1) : -1; at >= 0;
       at = g_array_index (all, Anchor, at).before)
    g_array_append_val (chain, g_array_index (all, Anchor, at));
  for (guint i = 0; i < chain->len / 2; i++)
    {
      Anchor other = g_array_index (chain, Anchor, i);

      g_array_index (chain, Anchor, i) = g_array_index (chain, Anchor, chain->len - 1 - i);
      g_array_index (chain, Anchor, chain->len - 1 - i) = other;
    }
  return chain;
}

/* What occurs once in each holds the rest in place. */
static void
by_anchors (Align *s, gint a0, gint n, gint b0, gint m)
{
  g_autoptr (GArray) chain = find_anchors (s, a0, n, b0, m);
  gint a = a0, b = b0;

  for (guint i = 0; i < chain->len; i++)
    {
      const Anchor *anchor = &g_array_index (chain, Anchor, i);

      by_pieces (s, a, anchor->a - a, b, anchor->b - b);
      pair (s, anchor->a, anchor->b);
      a = anchor->a + 1;
      b = anchor->b + 1;
    }
  by_pieces (s, a, a0 + n - a, b, b0 + m - b);
}

void
td__align (const guint64 *a, gint n_a, const guint64 *b, gint n_b, gint32 *b_of_a,
           gint32 *a_of_b)
{
  Align s = { a, b, b_of_a, a_of_b };
  gint head = 0, tail = 0;

  memset (b_of_a, 0xff, (gsize)n_a * sizeof *b_of_a);
  memset (a_of_b, 0xff, (gsize)n_b * sizeof *a_of_b);
  for (; head < n_a && head < n_b && a[head] == b[head]; head++)
    pair (&s, head, head);
  for (; tail < n_a - head && tail < n_b - head && a[n_a - 1 - tail] == b[n_b - 1 - tail];
       tail++)
    pair (&s, n_a - 1 - tail, n_b - 1 - tail);
  gint n = n_a - head - tail, m = n_b - head - tail;
  if (n > 0 && m > 0 && !myers (&s, head, n, head, m, MAX_D, NULL))
    by_anchors (&s, head, n, head, m);
}
