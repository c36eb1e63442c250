/*
 * A rank of a framework that left an iteration out: its calls fit, so that it goes on, until it
 * comes to its end, and the others wait for it. Its tape has an iteration for each step of the
 * optimizer: the one that has the beginning of another one in it shows where.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-ranks-private.h"

#define MOST_LOOKS 2000 /* iterations */

/* "randn at train.py:12", of each operation of forward, in order. Owner: the caller. */
static GPtrArray *
list_forward (const TdIteration *iteration)
{
  const TdTapeIteration *it = td_iteration_get_tape (iteration);
  GPtrArray *keys = g_ptr_array_new_with_free_func (g_free);

  for (guint e = 0; e < it->n_events; e++)
    {
      g_autofree char *site = NULL, *base = NULL;

      if (it->events[e].phase != TD_TAPE_PHASE_FORWARD)
        continue;
      site = td_iteration_dup_site (iteration, e);
      base = *site ? g_path_get_basename (site) : g_strdup ("");
      g_ptr_array_add (
          keys, g_strdup_printf ("%s at %s", td_iteration_get_op_name (iteration, e), base));
    }
  return keys;
}

static guint
count (const GPtrArray *keys, const char *key)
{
  guint n = 0;

  for (guint i = 0; i < keys->len; i++)
    n += g_str_equal (keys->pdata[i], key);
  return n;
}

/* Where `a` is `b` with a part of it once more behind itself, an operation of that part which
 * `b` runs once: one that it runs several times is of a loop, which may be longer. Owner:
 * borrowed. NULL: not so. */
static const char *
find_repeated (const GPtrArray *a, const GPtrArray *b)
{
  const guint more = a->len > b->len ? a->len - b->len : 0;
  guint same = 0;

  while (more > 0 && same < b->len && g_str_equal (a->pdata[same], b->pdata[same]))
    same++;
  if (more == 0 || same < more)
    return NULL;
  for (guint i = same; i < a->len; i++)
    if (!g_str_equal (a->pdata[i], b->pdata[i - more]))
      return NULL;
  for (guint i = same - more; i < same; i++)
    if (count (b, b->pdata[i]) == 1)
      return b->pdata[i];
  return NULL;
}

/* It has no more steps than the other one, and calls do not fit any more. */
static gboolean
is_behind (const TdRanks *self, guint place, guint other)
{
  return td__ranks_is_of_framework (self, place)
         && self->tapes[place].open.n_updating <= self->tapes[other].open.n_updating;
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
      "on it is one iteration behind",
      self->tapes[place].open.rank, number, repeated, self->tapes[other].open.rank);
  f->advice = g_strdup (td__ranks_advice (self, TD_RANKS_SAME_STEPS));
}

/* The first that begins twice. FALSE: none does. */
static gboolean
compare (TdRanks *self, guint place, guint other)
{
  TdTapeSummaries all = td_tape_reader_summaries (self->tapes[place].reader);

  for (guint i = 0; i < MIN (all.n, MOST_LOOKS); i++)
    {
      const gint64 number = (gint64)all.rows[i].number;
      g_autoptr (TdIteration) x = td__ranks_load (self, place, number),
                              y = td__ranks_load (self, other, number);
      g_autoptr (GPtrArray) of_x = x && y ? list_forward (x) : NULL,
                            of_y = x && y ? list_forward (y) : NULL;
      const char *repeated = of_x ? find_repeated (of_x, of_y) : NULL;

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
  if ((!td__ranks_has (self, TD_RANKS_HANG) && !td__ranks_has (self, TD_RANKS_MISMATCH))
      || td__ranks_has (self, TD_RANKS_UPDATES))
    return;
  for (guint i = 0; i < self->n; i++)
    for (guint j = 0; j < self->n; j++)
      if (i != j && is_behind (self, i, j) && compare (self, i, j))
        return;
}
