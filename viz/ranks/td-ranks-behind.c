/*
 * A rank of a framework that left an iteration out: its calls fit, so that it goes on, until it
 * ends while the others wait for it. Its tape has an iteration for each step of the optimizer:
 * the one that has the beginning of another one in it shows where.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-ranks-private.h"

#define MOST_LOOKS 2000 /* iterations */

/* "randn at train.py:12", of each operation of forward: how often. Owner: the caller. */
static GHashTable *
count_forward (const TdIteration *iteration)
{
  const TdTapeIteration *it = td_iteration_get_tape (iteration);
  GHashTable *counts = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  for (guint e = 0; e < it->n_events; e++)
    {
      g_autofree char *site = NULL, *base = NULL;
      char *key;

      if (it->events[e].phase != TD_TAPE_PHASE_FORWARD)
        continue;
      site = td_iteration_dup_site (iteration, e);
      base = *site ? g_path_get_basename (site) : g_strdup ("");
      key = g_strdup_printf ("%s at %s", td_iteration_get_op_name (iteration, e), base);
      g_hash_table_insert (
          counts, key,
          GUINT_TO_POINTER (GPOINTER_TO_UINT (g_hash_table_lookup (counts, key)) + 1));
    }
  return counts;
}

/* One that `a` runs more often than `b`, where all it runs more often is run by `b`, too, and
 * it runs nothing less often. Owner: the caller. NULL: not so. */
static char *
dup_repeated (const TdIteration *a, const TdIteration *b)
{
  g_autoptr (GHashTable) of_a = count_forward (a), of_b = count_forward (b);
  const char *found = NULL;
  gpointer key, n;
  GHashTableIter iter;

  g_hash_table_iter_init (&iter, of_b);
  while (g_hash_table_iter_next (&iter, &key, &n))
    if (GPOINTER_TO_UINT (g_hash_table_lookup (of_a, key)) < GPOINTER_TO_UINT (n))
      return NULL;
  g_hash_table_iter_init (&iter, of_a);
  while (g_hash_table_iter_next (&iter, &key, &n))
    {
      const guint other = GPOINTER_TO_UINT (g_hash_table_lookup (of_b, key));

      if (other == 0)
        return NULL;
      if (GPOINTER_TO_UINT (n) > other && (!found || strcmp (key, found) < 0))
        found = key;
    }
  return g_strdup (found);
}

/* It ended by itself while others waited for it, and has no more steps than they. FALSE: not
 * so.
 */
static gboolean
is_behind (const TdRanks *self, guint place, guint other)
{
  const TdRankTape *a = &self->tapes[place], *b = &self->tapes[other];

  return td__ranks_is_of_framework (self, place) && !a->is_stuck && !a->open.has_failed
         && !a->open.is_running && b->is_stuck && a->open.n_updating <= b->open.n_updating;
}

/* The last line that it had is where it went on from. */
static void
say_behind (TdRanks *self, guint place, guint other, gint64 number, const char *repeated)
{
  g_autofree gboolean *set = g_new0 (gboolean, self->n);
  const char *at = strstr (repeated, " at ");
  TdRanksFinding *f;

  set[place] = TRUE;
  f = td__ranks_add (self, TD_RANKS_UPDATES, TD_RANKS_ERROR, number, set);
  f->site = at && at[strlen (" at ")] ? g_strdup (at + strlen (" at ")) : NULL;
  f->sentence = g_strdup_printf (
      "rank %u leaves an iteration out in iteration %" G_GINT64_FORMAT
      ": it begins again (%s runs once more than on rank %u) without a step between; from then "
      "on it is one iteration behind, and ends where the others wait for it",
      self->tapes[place].open.rank, number, repeated, self->tapes[other].open.rank);
  f->advice = g_strdup (td__ranks_advice (self, TD_RANKS_SAME_STEPS));
}

static gboolean
compare (TdRanks *self, guint place, guint other)
{
  TdTapeSummaries all = td_tape_reader_summaries (self->tapes[place].reader);

  for (guint i = 0; i < MIN (all.n, MOST_LOOKS); i++)
    {
      const gint64 number = (gint64)all.rows[i].number;
      g_autoptr (TdIteration) x = td__ranks_load (self, place, number),
                              y = td__ranks_load (self, other, number);
      g_autofree char *repeated = x && y ? dup_repeated (x, y) : NULL;

      if (!repeated)
        continue;
      say_behind (self, place, other, number, repeated);
      return TRUE;
    }
  return FALSE;
}

void
td__ranks_look_for_behind (TdRanks *self)
{
  if (!td__ranks_has (self, TD_RANKS_HANG) || td__ranks_has (self, TD_RANKS_UPDATES))
    return;
  for (guint i = 0; i < self->n; i++)
    for (guint j = 0; j < self->n; j++)
      if (i != j && is_behind (self, i, j))
        {
          if (compare (self, i, j))
            return;
          break;
        }
}
