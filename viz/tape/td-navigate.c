/* The verbs of the transport. A layer is a run of events of one phase that share the same call;
 * the backward events of a call form its run in backward.
 *
 * SPDX-License-Identifier: MIT */
#include "tape/td-navigate.h"

#include <string.h>

/* The layer of `event` at `depth`, or -1. */
static gint
layer_at (const TdIteration *it, gint event, gint depth)
{
  guint n;
  const TdLayer *layers = td_iteration_get_layers (it, &n);
  gint layer = td_iteration_get_layer (it, (guint)event);

  while (layer >= 0 && layers[layer].depth > depth)
    layer = layers[layer].parent;
  return layer >= 0 && layers[layer].depth == depth ? layer : -1;
}

static gint
depth_of (const TdIteration *it, gint event)
{
  guint n;
  const TdLayer *layers = td_iteration_get_layers (it, &n);
  gint layer = td_iteration_get_layer (it, (guint)event);

  return layer >= 0 ? layers[layer].depth : -1;
}

/* Accumulations belong to backward. */
static gint
pass_of (const TdIteration *it, gint event)
{
  gint phase = td_iteration_get_tape (it)->events[event].phase;

  return phase == TD_TAPE_PHASE_ACCUMULATE ? TD_TAPE_PHASE_BACKWARD : phase;
}

static gboolean
in_range (const TdIteration *it, gint event)
{
  return event >= 0 && event < (gint)td_iteration_get_n_events (it);
}

gint
td_navigate_step_op (const TdIteration *it, gint event, gint direction)
{
  gint next = event + direction;

  return in_range (it, next) ? next : event;
}

gboolean
td_navigate_layer_range (const TdIteration *it, gint event, gint depth, gint *first, gint *end)
{
  gint layer, pass, from, to;

  if (!in_range (it, event) || depth < 0)
    return FALSE;
  layer = layer_at (it, event, depth);
  if (layer < 0)
    return FALSE;
  pass = pass_of (it, event);
  for (from = event; from > 0; from--)
    if (layer_at (it, from - 1, depth) != layer || pass_of (it, from - 1) != pass)
      break;
  for (to = event + 1; in_range (it, to); to++)
    if (layer_at (it, to, depth) != layer || pass_of (it, to) != pass)
      break;
  *first = from;
  *end = to;
  return TRUE;
}

/* The depth of the innermost layer that both events are in; -1: none. */
static gint
common_depth (const TdIteration *it, gint a, gint b)
{
  gint depth = MIN (depth_of (it, a), depth_of (it, b));

  if (pass_of (it, a) != pass_of (it, b))
    return -1;
  while (depth >= 0 && layer_at (it, a, depth) != layer_at (it, b, depth))
    depth--;
  return depth;
}

gint
td_navigate_step_over (const TdIteration *it, gint event, gint direction)
{
  gint next = event + direction;
  gint depth, first, end;

  if (!in_range (it, next))
    return event;
  /* before the first event, and after the last, one is in no layer */
  depth = in_range (it, event) ? common_depth (it, event, next) : -1;
  if (!td_navigate_layer_range (it, next, depth + 1, &first, &end))
    return next;
  return direction > 0 ? end - 1 : first;
}

gint
td_navigate_step_into (const TdIteration *it, gint event, gint direction)
{
  return td_navigate_step_op (it, event, direction);
}

gint
td_navigate_step_out (const TdIteration *it, gint event, gint direction)
{
  gint n = (gint)td_iteration_get_n_events (it);
  gint first, end, pass, target;

  if (!in_range (it, event))
    return event;
  for (gint depth = depth_of (it, event); depth >= 0; depth--)
    {
      if (!td_navigate_layer_range (it, event, depth, &first, &end))
        continue;
      target = direction > 0 ? end - 1 : first;
      if (target != event)
        return target;
    }
  /* outside every layer the enclosing thing is the pass, and then the iteration */
  pass = pass_of (it, event);
  for (target = event; in_range (it, target + direction); target += direction)
    if (pass_of (it, target + direction) != pass)
      break;
  if (target != event)
    return target;
  return direction > 0 ? n - 1 : 0;
}

gint
td_navigate_same_event (const TdIteration *it, gint event, const TdIteration *other,
                        gboolean *exact)
{
  const TdTapeIteration *tape = td_iteration_get_tape (it);

  if (exact)
    *exact = FALSE;
  if (td_iteration_get_n_events (other) == 0)
    return -1;
  for (gint e = MIN (event, (gint)tape->n_events - 1); e >= 0; e--)
    {
      gint found = td_iteration_find_event (other, tape->events[e].key);

      if (found < 0)
        continue;
      if (exact)
        *exact = e == event;
      return found;
    }
  return 0;
}

gint
td_navigate_anomaly (const TdIteration *it, gint event, gint direction)
{
  for (gint e = event + direction; in_range (it, e); e += direction)
    if (td_iteration_is_anomaly (it, (guint)e))
      return e;
  return -1;
}

gint
td_navigate_loss (const TdIteration *it)
{
  const TdTapeEvent *events = td_iteration_get_tape (it)->events;
  gint n = (gint)td_iteration_get_n_events (it);
  gint backward = td_navigate_first_of_phase (it, TD_TAPE_PHASE_BACKWARD);
  gint e = backward >= 0 ? backward : n;

  /* Backward starts from the loss: what its first event is the twin of.  PyTorch makes the
   * gradient of 1 before, an operation without one. */
  for (gint b = backward; b >= 0 && b < n && events[b].phase == TD_TAPE_PHASE_BACKWARD; b++)
    if (td_iteration_get_forward (it, (guint)b) >= 0)
      return td_iteration_get_forward (it, (guint)b);
  for (e--; e >= 0; e--)
    if (td_iteration_get_tape (it)->events[e].phase == TD_TAPE_PHASE_FORWARD)
      return e;
  return -1;
}

gint
td_navigate_first_of_phase (const TdIteration *it, gint phase)
{
  const TdTapeIteration *tape = td_iteration_get_tape (it);

  for (guint e = 0; e < tape->n_events; e++)
    if (tape->events[e].phase == phase)
      return (gint)e;
  return -1;
}

/* An operation that passes its input's value on: same bytes elsewhere, or a view of them. */
static gboolean
is_view (const TdIteration *it, gint event)
{
  static const char *const names[] = { "reshape", "cast",        "copy",    "transpose",
                                       "squeeze", "expand_dims", "flatten", "identity" };
  const char *op = td_iteration_get_op_name (it, (guint)event);

  if (td_iteration_get_tape (it)->events[event].flags & TD_TAPE_EVENT_SHARED)
    return TRUE;
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (strcmp (op, names[i]) == 0)
      return TRUE;
  return FALSE;
}

/* The event that wrote `var` before `event` read it: its producer, or a later one that wrote
 * into the same variable (an accumulation, an update). */
static gint
writer_of (const TdIteration *it, guint var, gint event)
{
  const TdTapeIteration *tape = td_iteration_get_tape (it);
  gint writer = tape->vars[var].producer;
  guint n;
  const gint32 *readers = td_iteration_get_consumers (it, var, &n);

  for (guint i = 0; i < n && readers[i] < event; i++)
    {
      const TdTapeEvent *reader = &tape->events[readers[i]];

      for (guint o = 0; o < reader->n_out; o++)
        if (tape->outs[reader->first_out + o] == var)
          writer = MAX (writer, readers[i]);
    }
  return writer < event ? writer : -1;
}

static int
later_first (gconstpointer a, gconstpointer b)
{
  return *(const gint32 *)b - *(const gint32 *)a;
}

GArray *
td_navigate_where_from (const TdIteration *it, gint event, gboolean skip_views)
{
  const TdTapeIteration *tape = td_iteration_get_tape (it);
  GArray *found = g_array_new (FALSE, FALSE, sizeof (gint32));

  if (!in_range (it, event))
    return found;
  for (guint i = 0; i < tape->events[event].n_in; i++)
    {
      gint32 writer = writer_of (it, tape->ins[tape->events[event].first_in + i], event);
      gboolean known = FALSE;

      while (skip_views && writer >= 0 && is_view (it, writer) && tape->events[writer].n_in > 0)
        writer = writer_of (it, tape->ins[tape->events[writer].first_in], writer);
      for (guint k = 0; k < found->len; k++)
        known = known || g_array_index (found, gint32, k) == writer;
      if (writer >= 0 && !known)
        g_array_append_val (found, writer);
    }
  g_array_sort (found, later_first);
  return found;
}

static int
earlier_first (gconstpointer a, gconstpointer b)
{
  return *(const gint32 *)a - *(const gint32 *)b;
}

GArray *
td_navigate_where_used (const TdIteration *it, gint event)
{
  const TdTapeIteration *tape = td_iteration_get_tape (it);
  GArray *found = g_array_new (FALSE, FALSE, sizeof (gint32));

  if (!in_range (it, event))
    return found;
  for (guint o = 0; o < tape->events[event].n_out; o++)
    {
      guint n;
      const gint32 *readers
          = td_iteration_get_consumers (it, tape->outs[tape->events[event].first_out + o], &n);

      for (guint i = 0; i < n; i++)
        if (readers[i] > event)
          g_array_append_val (found, readers[i]);
    }
  g_array_sort (found, earlier_first);
  for (guint i = 1; i < found->len;) /* an event that reads two outputs is one user */
    if (g_array_index (found, gint32, i) == g_array_index (found, gint32, i - 1))
      g_array_remove_index (found, i);
    else
      i++;
  return found;
}

/* Whether one of the events that read what `event` wrote is marked. */
static gboolean
leads_to (const TdIteration *it, gint event, const guint8 *marked, gint last)
{
  g_autoptr (GArray) users = td_navigate_where_used (it, event);

  for (guint i = 0; i < users->len && g_array_index (users, gint32, i) <= last; i++)
    if (marked[g_array_index (users, gint32, i)])
      return TRUE;
  return FALSE;
}

GArray *
td_navigate_between (const TdIteration *it, gint from, gint to)
{
  GArray *found = g_array_new (FALSE, FALSE, sizeof (gint32));
  g_autofree guint8 *leads = NULL, *reached = NULL;

  if (!in_range (it, from) || !in_range (it, to) || from > to)
    return found;
  leads = g_malloc0 ((gsize)to + 1);
  reached = g_malloc0 ((gsize)to + 1);
  leads[to] = 1;
  for (gint event = to - 1; event >= from; event--)
    leads[event] = leads_to (it, event, leads, to);
  reached[from] = leads[from];
  for (gint32 event = from; event <= to; event++)
    {
      if (!reached[event])
        continue;
      g_array_append_val (found, event);
      g_autoptr (GArray) users = td_navigate_where_used (it, event);
      for (guint i = 0; i < users->len && g_array_index (users, gint32, i) <= to; i++)
        reached[g_array_index (users, gint32, i)] = leads[g_array_index (users, gint32, i)];
    }
  return found;
}

gint
td_navigate_twin (const TdIteration *it, gint event)
{
  const TdTapeIteration *tape = td_iteration_get_tape (it);
  guint n;

  if (!in_range (it, event))
    return -1;
  switch (pass_of (it, event))
    {
    case TD_TAPE_PHASE_FORWARD:
      {
        const gint32 *twins = td_iteration_get_twins (it, (guint)event, &n);

        return n ? twins[0] : -1;
      }
    case TD_TAPE_PHASE_BACKWARD:
      return td_iteration_get_forward (it, (guint)event);
    default:
      for (guint i = 0; i < tape->n_grads; i++)
        if (tape->grads[i].event == (guint)event && tape->grads[i].gradient < tape->n_vars)
          return writer_of (it, tape->grads[i].gradient, event);
      return -1;
    }
}
