/*
 * Comparing two iterations: what the other files find, put together and looked up.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-diff-private.h"
#include "td-tape.h"

G_DEFINE_BOXED_TYPE (TdDiff, td_diff, td_diff_ref, td_diff_unref)

static void
begin_side (TdComparison *c, guint side, TdIteration *iteration)
{
  guint n;

  c->d->side[side] = td_iteration_ref (iteration);
  c->t[side] = td_iteration_get_tape (iteration);
  n = MAX (c->t[side]->n_events, 1);
  c->d->partner[side] = g_new (gint32, n);
  c->d->pair_of[side] = g_new (gint32, n);
  c->group[side] = g_new (gint32, n);
  c->moved[side] = g_new0 (guint8, n);
  for (guint e = 0; e < n; e++)
    c->d->partner[side][e] = c->d->pair_of[side][e] = c->group[side][e] = -1;
}

TdDiff *
td_diff_new (TdIteration *a, TdIteration *b, TdTapeReader *reader_a, TdTapeReader *reader_b)
{
  TdDiff *d = g_new0 (TdDiff, 1);
  TdComparison c = { .d = d,
                     .reader = { reader_a, reader_b },
                     .maps = g_ptr_array_new_with_free_func (td__line_map_free),
                     .groups = g_array_new (FALSE, FALSE, sizeof (TdFusedGroup)),
                     .fused = g_array_new (FALSE, FALSE, sizeof (guint32)) };

  d->ref_count = 1;
  d->members = g_hash_table_new_full (NULL, NULL, NULL, td__diff_member_free);
  begin_side (&c, TD_DIFF_A, a);
  begin_side (&c, TD_DIFF_B, b);
  td__diff_programs (&c);
  td__diff_match (&c);
  td__diff_times (&c);
  td__diff_compare (&c);
  td__diff_forget_schedules (&c);
  d->fused = (guint32 *)(void *)g_array_free (c.fused, FALSE);
  td__diff_find_cause (&c);
  for (guint s = 0; s < 2; s++)
    {
      g_free (c.group[s]);
      g_free (c.moved[s]);
      g_free (c.event_ns[s]);
    }
  g_array_unref (c.groups);
  g_ptr_array_unref (c.maps);
  return d;
}

TdDiff *
td_diff_ref (TdDiff *d)
{
  g_atomic_int_inc (&d->ref_count);
  return d;
}

void
td_diff_unref (TdDiff *d)
{
  if (!d || !g_atomic_int_dec_and_test (&d->ref_count))
    return;
  for (guint s = 0; s < 2; s++)
    {
      td_iteration_unref (d->side[s]);
      g_free (d->partner[s]);
      g_free (d->pair_of[s]);
    }
  g_free (d->pairs);
  g_free (d->items);
  g_free (d->fused);
  g_free (d->numbers);
  g_free (d->cause_file);
  g_free (d->cause_text);
  g_hash_table_unref (d->members);
  g_strfreev (d->versions);
  g_free (d);
}

gboolean
td_diff_is_same (const TdDiff *d)
{
  return d->n_items == 0;
}

gboolean
td_diff_is_same_structure (const TdDiff *d)
{
  return d->n_items == d->n_numbers_only;
}

gint
td_diff_get_pair (const TdDiff *d, guint side, guint event)
{
  return event < td_iteration_get_tape (d->side[side])->n_events ? d->pair_of[side][event] : -1;
}

gint
td_diff_get_item (const TdDiff *d, gint pair)
{
  guint lo = 0, hi = d->n_items;
  guint32 wanted;

  if (pair < 0 || (guint)pair >= d->n_pairs)
    return -1;
  wanted = d->pairs[pair].cause >= 0 ? (guint32)d->pairs[pair].cause : (guint32)pair;
  while (lo < hi)
    {
      guint middle = (lo + hi) / 2;

      if (d->items[middle] < wanted)
        lo = middle + 1;
      else
        hi = middle;
    }
  return lo < d->n_items && d->items[lo] == wanted ? (gint)lo : -1;
}

const guint32 *
td_diff_get_events (const TdDiff *d, const TdDiffPair *pair, guint side, guint *n)
{
  gboolean fused = pair->n_fused > 0 && pair->fused_side == side;

  *n = fused ? pair->n_fused : pair->event[side] >= 0;
  if (*n == 0)
    return NULL;
  return fused ? d->fused + pair->first_fused : (const guint32 *)&pair->event[side];
}

const TdDiffNumbers *
td_diff_get_numbers (const TdDiff *d, const TdDiffPair *pair, guint *n)
{
  *n = pair->n_numbers;
  return *n > 0 ? d->numbers + pair->first_numbers : NULL;
}

char *
td_diff_dup_site (const TdDiff *d, const TdDiffPair *pair, guint side)
{
  const TdDiffMember *member = td__diff_member_of (d, pair);

  if (member)
    return g_strdup (member->site[side]);
  return pair->event[side] >= 0
             ? td_iteration_dup_site (d->side[side], (guint)pair->event[side])
             : g_strdup ("");
}
