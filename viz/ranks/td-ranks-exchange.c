/*
 * Which calls of several ranks make them train one model: those that bring gradients, and not
 * those that count, log or evaluate.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-ranks-private.h"

#define NUMBER_BYTES 4 /* sums go in float32 or wider */
#define ONE_NUMBER 8   /* bytes; a loss */

/* What a call may bring: numbers of the model for sure, or whatever it is given. */
typedef enum
{
  BRINGS_NOTHING,
  BRINGS_MODEL,
  BRINGS_WHAT_IT_READS
} Brings;

static const struct
{
  const char *call;
  Brings brings;
} calls[] = {
  { "td_comm_allreduce", BRINGS_WHAT_IT_READS },
  { "td_comm_allgather", BRINGS_WHAT_IT_READS },
  { "td_comm_alltoall", BRINGS_MODEL },
  { "td_comm_allreduce_grad", BRINGS_MODEL },
  { "td_opt_update", BRINGS_MODEL },
  { "td_send", BRINGS_MODEL },
  { "td_recv", BRINGS_MODEL },
};

static Brings
find_brings (const char *call)
{
  for (guint i = 0; i < G_N_ELEMENTS (calls); i++)
    if (g_str_equal (calls[i].call, call))
      return calls[i].brings;
  return BRINGS_NOTHING;
}

/* Mark gradients, and what was made of them before an update. Owner: the caller; by variable.
 */
static gboolean *
mark_gradients (const TdTapeIteration *it)
{
  gboolean *marked = g_new0 (gboolean, MAX (it->n_vars, 1));

  for (guint i = 0; i < it->n_events; i++)
    {
      const TdTapeEvent *e = &it->events[i];
      gboolean marks = e->phase == TD_TAPE_PHASE_BACKWARD;

      for (guint k = 0; k < e->n_in; k++)
        marks = marks || marked[it->ins[e->first_in + k]];
      for (guint k = 0; marks && e->phase != TD_TAPE_PHASE_UPDATE && k < e->n_out; k++)
        marked[it->outs[e->first_out + k]] = TRUE;
    }
  return marked;
}

static gboolean
reads_gradient (const TdTapeIteration *it, const TdTapeEvent *e, const gboolean *gradients)
{
  for (guint k = 0; k < e->n_in; k++)
    if (gradients[it->ins[e->first_in + k]])
      return TRUE;
  return FALSE;
}

/* A layer that normalizes by the means of all ranks sums them, and their gradients: each rank
 * may have weights of its own for all that. */
static gboolean
normalizes (TdRanks *self, guint place, const TdTapeIteration *it, guint32 path)
{
  for (guint i = 0; path != 0 && i < it->n_events; i++)
    if (it->events[i].path == path
        && g_str_equal (td_tape_reader_op_name (self->tapes[place].reader, it->events[i].opdef),
                        "fixed_batch_normalization"))
      return TRUE;
  return FALSE;
}

/* A gradient that goes through other ranks' part of the model, or is sent itself. */
static gboolean
brings_gradient (TdRanks *self, guint place, const TdTapeIteration *it,
                 const TdTapeCollective *w, const gboolean *gradients)
{
  const TdTapeEvent *e = w->event < it->n_events ? &it->events[w->event] : NULL;

  if (!e || normalizes (self, place, it, e->path))
    return FALSE;
  return reads_gradient (it, e, gradients)
         && (e->phase != TD_TAPE_PHASE_BACKWARD || w->bytes > ONE_NUMBER);
}

static guint64
count_numbers (const TdTapeIteration *it)
{
  guint64 n = 0;

  for (guint i = 0; i < it->n_grads; i++)
    {
      const TdTapeVar *v
          = it->grads[i].gradient < it->n_vars ? &it->vars[it->grads[i].gradient] : NULL;
      guint64 size = v != NULL;

      for (guint k = 0; v && k < v->ndim; k++)
        size *= (guint64)it->dims[v->first_dim + k];
      n += size;
    }
  return n;
}

void
td__ranks_take_exchange (TdRanks *self, guint place, const TdTapeIteration *it)
{
  g_autofree gboolean *gradients = it->n_collectives > 0 ? mark_gradients (it) : NULL;
  guint64 n_bytes = 0;

  for (guint i = 0; i < it->n_collectives; i++)
    {
      const TdTapeCollective *w = &it->collectives[i];
      Brings brings = w->wait != TD_TAPE_WAIT_MEET && w->wait != TD_TAPE_WAIT_BCAST
                          ? find_brings (td__ranks_text (self, place, w->call))
                          : BRINGS_NOTHING;

      if (brings == BRINGS_MODEL
          || (brings == BRINGS_WHAT_IT_READS
              && brings_gradient (self, place, it, w, gradients)))
        self->trains_together = TRUE;
      if (brings == BRINGS_WHAT_IT_READS && w->wait == TD_TAPE_WAIT_SUM)
        n_bytes += w->bytes;
    }
  self->most_summed = MAX (self->most_summed, n_bytes / NUMBER_BYTES);
  self->most_gradients = MAX (self->most_gradients, count_numbers (it));
}

gboolean
td__ranks_train_together (const TdRanks *self)
{
  return self->n_means > 0 || self->trains_together
         || (self->most_gradients > 0 && self->most_summed >= self->most_gradients);
}
