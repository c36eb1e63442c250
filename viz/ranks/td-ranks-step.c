/*
 * One step of all ranks, for the views.
 *
 * SPDX-License-Identifier: MIT
 */
#include <gio/gio.h>

#include "td-ranks-step.h"

static gboolean
is_of_all (const TdTapeCollective *w)
{
  return (w->flags & TD_TAPE_COLLECTIVE_WHOLE) && !(w->flags & TD_TAPE_COLLECTIVE_BEFORE);
}

/* Have two iterations calls of all ranks, and no one in common? One that died before its first
 * call may be of any step. */
static gboolean
are_apart (const TdRankIteration *a, const TdRankIteration *b)
{
  gboolean any = FALSE;

  for (guint i = 0; i < a->n_waits; i++)
    for (guint j = 0; is_of_all (&a->waits[i]) && j < b->n_waits; j++)
      {
        if (!is_of_all (&b->waits[j]))
          continue;
        any = TRUE;
        if (b->waits[j].comm == a->waits[i].comm && b->waits[j].seq == a->waits[i].seq)
          return FALSE;
      }
  return any;
}

static TdRankIteration *
load (TdRanks *ranks, guint place, gint64 number)
{
  char error[200];
  const TdTapeIteration *it = td_tape_iteration_load (ranks->tapes[place].reader,
                                                      (guint64)number, error, sizeof error);
  TdRankIteration *copy = it ? td__rank_iteration_new (ranks, place, it) : NULL;

  td_tape_iteration_free (it);
  return copy;
}

/* The iterations of that number, if they are of one step. */
static gboolean
take_by_number (TdRanks *ranks, gint64 number, TdRankRow *row)
{
  const TdRankIteration *first = NULL;

  for (guint i = 0; i < ranks->n; i++)
    {
      row->of[i] = load (ranks, i, number);
      if (row->of[i] && first && are_apart (first, row->of[i]))
        return FALSE;
      first = first ? first : row->of[i];
    }
  row->number = number;
  return first != NULL;
}

static gboolean
take_by_calls (TdRanks *ranks, gint64 number, TdRankRow *row)
{
  td__ranks_rewind (ranks);
  for (;;)
    {
      td__rank_row_clear (ranks, row);
      if (!td__ranks_next_row (ranks, row))
        return FALSE;
      if (row->number == number)
        return TRUE;
    }
}

/* What a view begins with. */
static gint64
choose (TdRanks *ranks)
{
  gint64 last = -1;

  for (guint i = 0; i < ranks->findings->len; i++)
    if (td_ranks_get_finding (ranks, i)->iteration >= 0)
      return td_ranks_get_finding (ranks, i)->iteration;
  for (guint i = 0; i < ranks->n; i++)
    last = MAX (last, ranks->tapes[i].last_number);
  return last;
}

TdRanksStep *
td_ranks_step_new (TdRanks *ranks, gint64 number, GError **error)
{
  g_autoptr (TdRanksStep) self = g_new0 (TdRanksStep, 1);

  self->ranks = ranks;
  self->row = td__rank_row_new (ranks);
  if (number < 0)
    number = choose (ranks);
  if (number < 0
      || (!take_by_number (ranks, number, self->row)
          && !take_by_calls (ranks, number, self->row)))
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                   "iteration %" G_GINT64_FORMAT " is whole on no tape of these ranks", number);
      return NULL;
    }
  self->table = td__sum_table_new (ranks, self->row);
  self->rungs = td__ranks_rungs_of (ranks, self->row);
  return g_steal_pointer (&self);
}

void
td_ranks_step_free (TdRanksStep *self)
{
  g_clear_pointer (&self->table, td__sum_table_free);
  g_clear_pointer (&self->rungs, g_ptr_array_unref);
  td__rank_row_free (self->ranks, self->row);
  g_free (self);
}

gint64
td_ranks_step_get_number (const TdRanksStep *self)
{
  return self->row->number;
}

char *
td__ranks_step_dup_title (const TdRanksStep *self)
{
  return g_strdup_printf ("%u of %u ranks, iteration %" G_GINT64_FORMAT, self->ranks->n,
                          self->ranks->n_started, self->row->number);
}

void
td__ranks_step_begin_json (const TdRanksStep *self, TdJson *j, GString *out)
{
  td_json_init (j, out);
  td_json_begin_object (j);
  td_json_member_int (j, "iteration", self->row->number);
  td_json_key (j, "ranks");
  td_json_begin_array (j);
  for (guint i = 0; i < self->ranks->n; i++)
    td_json_int (j, self->ranks->tapes[i].open.rank);
  td_json_end_array (j);
}
