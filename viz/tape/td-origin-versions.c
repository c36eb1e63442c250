/* What the tape knows of a variable at a moment: who wrote it last, its statistics, its
 * elements.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "gradient/td-tensor.h"
#include "tape/td-origin-private.h"

/* In place, without a look at what is there. */
static gboolean
fills (const TdIteration *it, guint event)
{
  static const char *const ops[] = { "gradient_norm", "copy_converted" };
  const char *op = td_iteration_get_op_name (it, event);

  for (guint i = 0; i < G_N_ELEMENTS (ops); i++)
    if (strcmp (op, ops[i]) == 0)
      return TRUE;
  return FALSE;
}

gboolean
td__origin_fills (const TdIteration *it, guint event, guint k)
{
  return k == 0 && td_iteration_get_tape (it)->events[event].n_out == 0 && fills (it, event);
}

/* An update writes its first input in place, and the state behind the gradient; an accumulation
 * its first input, as does what fills it. */
static gboolean
writes (const TdIteration *it, guint event, guint var)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  const TdTapeEvent *e = &t->events[event];
  gboolean has_state = e->phase == TD_TAPE_PHASE_UPDATE && !fills (it, event);

  for (guint k = 0; k < e->n_out; k++)
    if (t->outs[e->first_out + k] == var)
      return TRUE;
  for (guint k = 0; e->n_out == 0 && k < e->n_in; k++)
    if (t->ins[e->first_in + k] == var && (has_state ? k != 1 : k == 0))
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

/* The same numbers, counted twice: what a replay hands out is, when it is read. */
static gboolean
is_again (const TdTapeStats *a, const TdTapeStats *b)
{
  return b && memcmp (&a->n, &b->n, sizeof *a - offsetof (TdTapeStats, n)) == 0;
}

/* Within a replay several variables may be one array, with its id: its numbers are theirs. */
static gboolean
is_same (const TdTapeIteration *t, guint a, guint b)
{
  guint64 id = td_tape_var_id (t, a);

  return a == b || (id != 0 && td_tape_var_id (t, b) == id);
}

/* The last of its events before this one that made it; -1: none. */
static gint
find_producer (const TdTapeIteration *t, guint var, gint event)
{
  gint best = -1;

  for (guint k = 0; k < t->n_vars; k++)
    if (t->vars[k].producer > best && t->vars[k].producer < event && is_same (t, k, var))
      best = t->vars[k].producer;
  return best;
}

/* What a replay hands on as a gradient is a variable of its own that no event has made: the one
 * with the same numbers to the last bit is what it was. */
static guint
handed_on (const TdTapeIteration *t, guint var, gint event)
{
  const TdTapeStats *own = NULL;

  if (find_producer (t, var, event) >= 0 || t->vars[var].name != 0
      || t->vars[var].flags & TD_TAPE_VAR_PARAMETER)
    return var;
  for (guint s = 0; s < t->n_stats; s++)
    if (is_same (t, t->stats[s].var, var) && event_of (&t->stats[s]) < event)
      own = &t->stats[s];
  for (guint s = t->n_stats; own && s-- > 0;)
    {
      const TdTapeStats *other = &t->stats[s];

      /* few are equal to the bit; to find what made one takes a look at every variable */
      if (event_of (other) > event_of (own) || !is_again (other, own)
          || is_same (t, other->var, var))
        continue;
      gint made = find_producer (t, other->var, event_of (own) + 1);
      if (made >= 0 && t->events[made].flags & TD_TAPE_EVENT_REPLAYED
          && t->events[made].phase == TD_TAPE_PHASE_BACKWARD)
        return other->var;
    }
  return var;
}

guint
td__origin_behind (const TdIteration *it, guint var, gint event)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  gint first = -1;

  var = handed_on (t, var, event);
  for (guint shown = var; event >= 0;)
    {
      gint at = t->vars[shown].producer;
      const TdTapeEvent *e = at >= 0 ? &t->events[at] : NULL;

      if (e && e->flags & TD_TAPE_EVENT_REPLAYED && e->flags & TD_TAPE_EVENT_SHARED
          && e->n_in > 0)
        {
          first = first < 0 ? at : MIN (first, at);
          shown = t->ins[e->first_in];
        }
      else
        return first >= 0 && find_producer (t, shown, event) > first ? shown : var;
    }
  return var;
}

TdVersion
td__origin_version (const TdIteration *it, guint var, gint event)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  TdVersion v = { find_producer (t, var, event), NULL, FALSE, FALSE };
  guint n, n_here = 0;
  const gint32 *readers = td_iteration_get_consumers (it, var, &n);

  for (guint i = 0; i < n && readers[i] < event; i++)
    if (writes (it, (guint)readers[i], var))
      v.writer = MAX (v.writer, readers[i]);
  for (guint s = 0; s < t->n_stats; s++)
    if (is_same (t, t->stats[s].var, var) && event_of (&t->stats[s]) < event
        && added_to (t, event_of (&t->stats[s]), var))
      {
        v.writer = MAX (v.writer, event_of (&t->stats[s]));
        v.added = v.writer == event_of (&t->stats[s]);
      }
  for (guint s = 0; s < t->n_stats; s++)
    if (is_same (t, t->stats[s].var, var) && event_of (&t->stats[s]) < event
        && event_of (&t->stats[s]) >= v.writer)
      {
        n_here += event_of (&t->stats[s]) == v.writer && !is_again (&t->stats[s], v.stats);
        v.stats = &t->stats[s];
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
read_tensor (TdSession *session, const TdIteration *it, const TdTapeStats *stats)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  gboolean is_there = FALSE;
  TdTensor *tensor;

  /* elements are written beside their statistics: those of another moment say nothing */
  for (guint i = 0; i < t->n_tensors && !is_there; i++)
    is_there = t->tensors[i].var == stats->var && t->tensors[i].event == stats->event;
  if (!is_there)
    return NULL;
  tensor = td_tensor_new (td_session_get_reader (session), it, stats->var,
                          stats->event == TD_TAPE_NONE ? 0 : (gint)stats->event);
  if (!tensor->values || tensor->n_values != tensor->n_total)
    g_clear_pointer (&tensor, td_tensor_free);
  return tensor;
}

guint8 *
td__origin_bad_elements (TdSession *session, const TdIteration *it, const TdTapeStats *stats,
                         TdBad bad, guint64 *n)
{
  TdTensor *tensor = read_tensor (session, it, stats);
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
td__origin_element (TdSession *session, const TdIteration *it, const TdTapeStats *stats,
                    guint64 i, double *value)
{
  TdTensor *tensor = stats ? read_tensor (session, it, stats) : NULL;
  gboolean is_there = tensor && i < tensor->n_total;

  if (is_there)
    *value = tensor->values[i];
  td_tensor_free (tensor);
  return is_there;
}
