/*
 * Sequence alignment for iterations of up to 100,000 events.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-align.h"

/* Differences beyond which the quadratic trace would grow too large (16 MB at this number). */
#define MAX_D 2000

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

/* Returns FALSE when more than MAX_D differences would be needed. */
static gboolean
myers (Align *s, gint a0, gint n, gint b0, gint m)
{
  gint max = MIN (n + m, MAX_D);
  g_autofree gint32 *memory = g_new0 (gint32, 2 * (gsize)max + 3);
  gint32 *v = memory + max + 1;
  g_autoptr (GPtrArray) rounds = g_ptr_array_new_with_free_func (g_free);

  for (gint d = 0; d <= max; d++)
    {
      g_ptr_array_add (rounds, g_memdup2 (v - d - 1, (2 * (gsize)d + 3) * sizeof *v));
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
        }
    }
  return FALSE;
}

/* Counts occurrences: the index of the only one, or -2 when there are several. */
static GHashTable *
index_unique (const guint64 *tokens, gint from, gint n)
{
  GHashTable *table = g_hash_table_new (g_int64_hash, g_int64_equal);

  for (gint i = from; i < from + n; i++)
    if (g_hash_table_contains (table, &tokens[i]))
      g_hash_table_insert (table, (gpointer)&tokens[i], GINT_TO_POINTER (-2));
    else
      g_hash_table_insert (table, (gpointer)&tokens[i], GINT_TO_POINTER (i + 1));
  return table;
}

/* Too different for the exact way: match what occurs once in each and keeps its order. */
static void
by_unique (Align *s, gint a0, gint n, gint b0, gint m)
{
  g_autoptr (GHashTable) in_a = index_unique (s->a, a0, n);
  g_autoptr (GHashTable) in_b = index_unique (s->b, b0, m);
  gint last = -1;

  for (gint i = a0; i < a0 + n; i++)
    {
      gint j = GPOINTER_TO_INT (g_hash_table_lookup (in_b, &s->a[i])) - 1;

      if (GPOINTER_TO_INT (g_hash_table_lookup (in_a, &s->a[i])) > 0 && j > last)
        {
          pair (s, i, j);
          last = j;
        }
    }
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
  if (n > 0 && m > 0 && !myers (&s, head, n, head, m))
    by_unique (&s, head, n, head, m);
}
