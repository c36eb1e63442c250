/* What the tape knows of a variable at a moment: who wrote it last, its statistics, its
 * elements.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "gradient/td-tensor.h"
#include "tape/td-origin-private.h"

/* An update writes its first input in place, and the state behind the gradient; an accumulation
 * its first input. */
static gboolean
writes (const TdTapeIteration *t, guint event, guint var)
{
  const TdTapeEvent *e = &t->events[event];

  for (guint k = 0; k < e->n_out; k++)
    if (t->outs[e->first_out + k] == var)
      return TRUE;
  for (guint k = 0; e->n_out == 0 && k < e->n_in; k++)
    if (t->ins[e->first_in + k] == var && (e->phase == TD_TAPE_PHASE_UPDATE ? k != 1 : k == 0))
      return TRUE;
  return FALSE;
}

/* A kernel that added its output to `var`, which is counted beside it. */
static gboolean
added_to (const TdTapeIteration *t, gint event, guint var)
{
  const TdTapeEvent *e = event >= 0 && event < (gint)t->n_events ? &t->events[event] : NULL;

  return e && e->flags & TD_TAPE_EVENT_ACCUMULATED && e->n_out > 0
         && t->outs[e->first_out] != var;
}

static gint
event_of (const TdTapeStats *stats)
{
  return stats->event == TD_TAPE_NONE ? -1 : (gint)stats->event;
}

TdVersion
td__origin_version (const TdIteration *it, guint var, gint event)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  gint producer = t->vars[var].producer;
  TdVersion v = { producer < event ? MAX (producer, -1) : -1, NULL, FALSE, FALSE };
  guint n, n_here = 0;
  const gint32 *readers = td_iteration_get_consumers (it, var, &n);

  for (guint i = 0; i < n && readers[i] < event; i++)
    if (writes (t, (guint)readers[i], var))
      v.writer = MAX (v.writer, readers[i]);
  for (guint s = 0; s < t->n_stats; s++)
    if (t->stats[s].var == var && event_of (&t->stats[s]) < event
        && added_to (t, event_of (&t->stats[s]), var))
      {
        v.writer = MAX (v.writer, event_of (&t->stats[s]));
        v.added = v.writer == event_of (&t->stats[s]);
      }
  for (guint s = 0; s < t->n_stats; s++)
    if (t->stats[s].var == var && event_of (&t->stats[s]) < event
        && event_of (&t->stats[s]) >= v.writer)
      {
        v.stats = &t->stats[s];
        n_here += event_of (v.stats) == v.writer;
      }
  /* Inputs are counted when they are read first, and again once the program wrote to them: such
   * numbers come after those of the last writer. */
  if (v.stats)
    v.given = v.writer < 0 || event_of (v.stats) > v.writer || n_here > 1;
  return v;
}

TdState
td__origin_state (const TdTapeStats *s, TdBad bad)
{
  if (!s)
    return TD_STATE_UNKNOWN;
  return (bad == TD_BAD_NAN ? s->n_nan : s->n_pos_inf + s->n_neg_inf) > 0 ? TD_STATE_BAD
                                                                          : TD_STATE_CLEAN;
}

static TdTensor *
read_tensor (TdSession *session, const TdIteration *it, guint var, const TdTapeStats *stats)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  gboolean is_there = FALSE;
  TdTensor *tensor;

  /* elements are written beside their statistics: those of another moment say nothing */
  for (guint i = 0; i < t->n_tensors && !is_there; i++)
    is_there = t->tensors[i].var == var && t->tensors[i].event == stats->event;
  if (!is_there)
    return NULL;
  tensor = td_tensor_new (td_session_get_reader (session), it, var,
                          stats->event == TD_TAPE_NONE ? 0 : (gint)stats->event);
  if (!tensor->values || tensor->n_values != tensor->n_total)
    g_clear_pointer (&tensor, td_tensor_free);
  return tensor;
}

guint8 *
td__origin_bad_elements (TdSession *session, const TdIteration *it, guint var,
                         const TdTapeStats *stats, TdBad bad, guint64 *n)
{
  TdTensor *tensor = read_tensor (session, it, var, stats);
  guint8 *mask = NULL;
  gboolean any = FALSE;

  *n = tensor ? tensor->n_total : 0;
  if (!tensor)
    return NULL;
  mask = g_malloc0 (*n + 1);
  for (guint64 i = 0; i < *n; i++)
    {
      mask[i]
          = bad == TD_BAD_NAN ? isnan (tensor->values[i]) != 0 : isinf (tensor->values[i]) != 0;
      any = any || mask[i];
    }
  if (!any)
    g_clear_pointer (&mask, g_free);
  td_tensor_free (tensor);
  return mask;
}

gboolean
td__origin_element (TdSession *session, const TdIteration *it, guint var,
                    const TdTapeStats *stats, guint64 i, double *value)
{
  TdTensor *tensor = stats ? read_tensor (session, it, var, stats) : NULL;
  gboolean is_there = tensor && i < tensor->n_total;

  if (is_there)
    *value = tensor->values[i];
  td_tensor_free (tensor);
  return is_there;
}
