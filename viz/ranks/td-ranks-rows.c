/*
 * The iterations of all tapes in one order: those that are of one step of the run together.
 * Ranks may number them differently (one that evaluates alone has more), so they are put
 * together by the calls that all ranks made in them, and by their numbers where there are none.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-ranks-private.h"

void
td__rank_iteration_free (TdRankIteration *self)
{
  g_free (self->waits);
  g_free (self->sums);
  g_free (self->trained);
  g_free (self);
}

/* Which updates a structure has is looked up once. */
static TdRankUpdates
updates_of (TdRankTape *tape, const TdTapeIteration *it)
{
  TdRankUpdates found = { 0 }, *known = NULL;

  if (it->structure != 0)
    known = g_hash_table_lookup (tape->updates, GUINT_TO_POINTER (it->structure));
  if (known)
    return *known;
  for (guint i = 0; i < it->n_events; i++)
    {
      found.has_backward = found.has_backward || it->events[i].phase == TD_TAPE_PHASE_BACKWARD;
      if (it->events[i].phase != TD_TAPE_PHASE_UPDATE || found.n++ > 0)
        continue;
      found.site = it->events[i].site;
      found.opdef = it->events[i].opdef;
    }
  if (it->structure != 0)
    g_hash_table_insert (tape->updates, GUINT_TO_POINTER (it->structure),
                         g_memdup2 (&found, sizeof found));
  return found;
}

/* An operation of an optimizer's hook (weight decay) works on gradients alone. */
static gboolean
is_parameter (const TdTapeIteration *it, const TdTapeGrad *grad)
{
  return grad->gradient != TD_TAPE_NONE && grad->parameter < it->n_vars
         && it->vars[grad->parameter].flags & TD_TAPE_VAR_PARAMETER;
}

/* Each parameter once, though it has a copy in float32. */
static void
take_trained (TdRankIteration *copy, const TdTapeIteration *it)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);

  copy->trained = g_new (guint32, MAX (it->n_grads, 1));
  for (guint i = 0; i < it->n_grads; i++)
    if (is_parameter (it, &it->grads[i])
        && g_hash_table_add (seen, GUINT_TO_POINTER (it->grads[i].path)))
      copy->trained[copy->n_trained++] = it->grads[i].path;
}

/* Sums that stand behind one event, and before or at another. */
static gboolean
is_summed_between (const TdTapeIteration *it, gint64 from, gint64 to)
{
  for (guint i = 0; i < it->n_rank_sums; i++)
    if ((gint64)it->rank_sums[i].event > from && (gint64)it->rank_sums[i].event <= to)
      return TRUE;
  return FALSE;
}

/* A mean that was made before its backward is of gradients of the step before, or of none: an
 * update follows on backward, with nothing between. */
static gboolean
has_early_mean (const TdTapeIteration *it)
{
  gint64 updated = -1, first = -1, last = -1; /* backward's first and last, after the update */

  for (guint e = 0; e < it->n_events && it->n_rank_sums > 0; e++)
    {
      if (it->events[e].phase == TD_TAPE_PHASE_BACKWARD)
        {
          first = first < 0 ? (gint64)e : first;
          last = e;
        }
      if (it->events[e].phase != TD_TAPE_PHASE_UPDATE)
        continue;
      if (first >= 0 && is_summed_between (it, updated, first)
          && !is_summed_between (it, last, e))
        return TRUE;
      updated = e;
      first = -1;
    }
  return FALSE;
}

TdRankIteration *
td__rank_iteration_new (TdRanks *self, guint place, const TdTapeIteration *it)
{
  TdRankIteration *copy = g_new0 (TdRankIteration, 1);
  TdRankUpdates updates = updates_of (&self->tapes[place], it);

  copy->number = (gint64)it->number;
  copy->structure = it->structure;
  copy->flags = it->flags;
  copy->fingerprint = it->fingerprint;
  copy->fingerprint_dims = it->fingerprint_dims;
  copy->attrs = td__ranks_hash_attrs (self, place, it);
  copy->start_ns = it->start_ns;
  copy->duration_ns = it->duration_ns;
  copy->n_update_events = updates.n;
  copy->update_site = updates.site;
  copy->update_opdef = updates.opdef;
  copy->has_backward = updates.has_backward;
  copy->computes = it->n_events > 0;
  copy->is_of_loop = it->label != 0 || copy->has_backward || copy->n_update_events > 0;
  copy->n_waits = it->n_collectives;
  copy->n_sums = it->n_rank_sums;
  copy->waits = g_memdup2 (it->collectives, it->n_collectives * sizeof *it->collectives);
  copy->sums = g_memdup2 (it->rank_sums, it->n_rank_sums * sizeof *it->rank_sums);
  copy->mean_early = copy->n_sums > 0 && has_early_mean (it);
  take_trained (copy, it);
  td__ranks_take_exchange (self, place, it);
  copy->is_partial = (it->flags & TD_TAPE_ITERATION_PARTIAL) != 0;
  return copy;
}

TdIteration *
td__ranks_load (TdRanks *self, guint place, gint64 number)
{
  TdRankTape *tape = &self->tapes[place];
  char error[200];
  const TdTapeIteration *it
      = td_tape_iteration_load (tape->reader, (guint64)number, error, sizeof error);

  return it ? td__iteration_new_from_handle (tape->handle, it) : NULL;
}

/* The next one that is whole; then the one that ran when the tape ended. */
static void
advance (TdRanks *self, guint place)
{
  TdRankTape *tape = &self->tapes[place];
  TdTapeSummaries all = td_tape_reader_summaries (tape->reader);
  const TdTapeIteration *it = NULL;
  gboolean is_live = FALSE;
  char error[200];

  g_clear_pointer (&tape->now, td__rank_iteration_free);
  while (!it && tape->next < all.n)
    {
      guint32 i = tape->next++;

      if (td_tape_reader_stored (tape->reader, i))
        it = td_tape_iteration_load_row (tape->reader, &all.rows[i], error, sizeof error);
    }
  if (!it && !tape->live_taken)
    {
      tape->live_taken = is_live = TRUE;
      it = td_tape_reader_live (tape->reader);
    }
  if (!it)
    return;
  tape->now = td__rank_iteration_new (self, place, it);
  tape->now->is_live = is_live;
  td_tape_iteration_free (it);
}

void
td__ranks_rewind (TdRanks *self)
{
  for (guint i = 0; i < self->n; i++)
    {
      self->tapes[i].next = 0;
      self->tapes[i].live_taken = FALSE;
      g_clear_pointer (&self->tapes[i].now, td__rank_iteration_free);
    }
}

/* The calls of all ranks that an iteration has, first and last; those before it are not its
 * own. FALSE: it has none. */
static gboolean
find_calls (TdRanks *self, const TdRankIteration *it, guint64 *first, guint64 *last)
{
  gboolean found = FALSE;

  for (guint i = 0; i < it->n_waits; i++)
    {
      const TdTapeCollective *w = &it->waits[i];

      if (!(w->flags & TD_TAPE_COLLECTIVE_WHOLE) || w->wait == TD_TAPE_WAIT_SEND
          || w->wait == TD_TAPE_WAIT_RECEIVE)
        continue;
      if (self->primary == 0)
        self->primary = w->comm;
      if (w->comm != self->primary || (w->flags & TD_TAPE_COLLECTIVE_BEFORE))
        continue;
      *first = found ? MIN (*first, w->seq) : w->seq;
      *last = found ? MAX (*last, w->seq) : w->seq;
      found = TRUE;
    }
  return found;
}

typedef struct
{
  gboolean here, calls;
  gint64 number;
  guint64 first, last;
} Place;

/* Which of the next iterations goes first: one without calls by its number, else by calls. */
static gint
find_lead (const TdRanks *self, const Place *places)
{
  gint lead = -1;

  for (guint i = 0; i < self->n; i++)
    {
      if (!places[i].here)
        continue;
      if (lead < 0 || places[i].calls < places[lead].calls)
        {
          lead = (gint)i;
          continue;
        }
      if (places[i].calls != places[lead].calls)
        continue;
      if (places[i].calls ? places[i].first < places[lead].first
                          : places[i].number < places[lead].number)
        lead = (gint)i;
    }
  return lead;
}

static gboolean
goes_with (const Place *a, const Place *b)
{
  if (!a->here || a->calls != b->calls)
    return FALSE;
  return a->calls ? a->first <= b->last && b->first <= a->last : a->number == b->number;
}

gboolean
td__ranks_next_row (TdRanks *self, TdRankRow *row)
{
  g_autofree Place *places = g_new0 (Place, self->n);
  gint lead;

  for (guint i = 0; i < self->n; i++)
    {
      TdRankTape *tape = &self->tapes[i];

      if (!tape->now)
        advance (self, i);
      places[i].here = tape->now != NULL;
      places[i].number = tape->now ? tape->now->number : -1;
      places[i].calls
          = tape->now && find_calls (self, tape->now, &places[i].first, &places[i].last);
      if (!places[i].calls)
        continue;
      tape->now->has_calls = TRUE;
      tape->now->first_call = places[i].first;
      tape->now->last_call = places[i].last;
    }
  lead = find_lead (self, places);
  if (lead < 0)
    return FALSE;
  row->number = -1;
  for (guint i = 0; i < self->n; i++)
    {
      if (!goes_with (&places[i], &places[lead]))
        continue;
      row->of[i] = g_steal_pointer (&self->tapes[i].now);
      if (row->number < 0)
        row->number = row->of[i]->number;
    }
  return TRUE;
}

TdRankRow *
td__rank_row_new (const TdRanks *self)
{
  TdRankRow *row = g_new0 (TdRankRow, 1);

  row->of = g_new0 (TdRankIteration *, self->n);
  return row;
}

void
td__rank_row_clear (const TdRanks *self, TdRankRow *row)
{
  for (guint i = 0; i < self->n; i++)
    g_clear_pointer (&row->of[i], td__rank_iteration_free);
}

void
td__rank_row_free (const TdRanks *self, TdRankRow *row)
{
  td__rank_row_clear (self, row);
  g_free (row->of);
  g_free (row);
}
