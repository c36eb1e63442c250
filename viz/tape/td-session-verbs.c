/* The verbs of the transport on a session: td-navigate.h, plus what crosses iterations.
 *
 * SPDX-License-Identifier: MIT */
#include "tape/td-navigate.h"
#include "tape/td-session-private.h"

/* Where the iteration `number` stands in the list, -1. */
static gint
find_in_list (TdSession *self, gint64 number)
{
  if (!self->by_hand)
    {
      gint64 found = td_tape_reader_find (self->tape->reader, (guint64)number);

      if (found >= 0)
        return (gint)found;
    }
  for (guint i = td_session_get_n_iterations (self); i-- > 0;)
    if (td_session_get_iteration_number (self, i) == number)
      return (gint)i;
  return -1;
}

/* The next iteration in that direction that is still on the tape. */
static TdIteration *
load_next (TdSession *self, gint direction, gboolean (*wanted) (TdSession *, guint))
{
  gint n = (gint)td_session_get_n_iterations (self);

  for (gint i = find_in_list (self, self->moment.iteration) + direction; i >= 0 && i < n;
       i += direction)
    {
      TdIteration *iteration;

      if (wanted && !wanted (self, (guint)i))
        continue;
      iteration = td_session_load_iteration (
          self, td_session_get_iteration_number (self, (guint)i), NULL);
      if (iteration && td_iteration_get_n_events (iteration) > 0)
        return iteration;
      g_clear_pointer (&iteration, td_iteration_unref);
    }
  return NULL;
}

static gboolean
has_findings (TdSession *self, guint index)
{
  TdTapeSummaries summaries;

  if (self->by_hand)
    return td_navigate_anomaly (self->by_hand->pdata[index], -1, 1) >= 0;
  summaries = td_tape_reader_summaries (self->tape->reader);
  return index >= summaries.n
         || (summaries.rows[index].flags
             & (TD_TAPE_ITERATION_NAN | TD_TAPE_ITERATION_INF | TD_TAPE_ITERATION_ERROR));
}

static gboolean
move_to (TdSession *self, gint64 iteration, gint event)
{
  if (event < 0 || (iteration == self->moment.iteration && event == self->moment.event))
    return FALSE;
  td_session_set_moment (self, iteration, event);
  return TRUE;
}

static gboolean
go_iteration (TdSession *self, TdIteration *here, gint direction, char **message)
{
  TdIteration *there = load_next (self, direction, NULL);
  gboolean exact = TRUE, moved;
  gint event;

  if (!there)
    {
      if (message)
        *message = g_strdup (direction > 0 ? "This is the last recorded iteration"
                                           : "This is the first recorded iteration");
      return FALSE;
    }
  event = here && self->moment.event >= 0
              ? td_navigate_same_event (here, self->moment.event, there, &exact)
              : 0;
  if (!exact && message)
    *message = g_strdup_printf ("%s is not in iteration %" G_GINT64_FORMAT
                                ": the nearest operation before it is shown",
                                td_iteration_get_op_name (here, (guint)self->moment.event),
                                td_iteration_get_number (there));
  moved = move_to (self, td_iteration_get_number (there), event);
  td_iteration_unref (there);
  return moved;
}

static gboolean
go_anomaly (TdSession *self, TdIteration *here, gint direction, char **message)
{
  gint event = here ? td_navigate_anomaly (here, self->moment.event, direction) : -1;
  TdIteration *there;
  gboolean moved = FALSE;

  if (event >= 0)
    return move_to (self, self->moment.iteration, event);
  there = load_next (self, direction, has_findings);
  if (there)
    {
      event = td_navigate_anomaly (
          there, direction > 0 ? -1 : (gint)td_iteration_get_n_events (there), direction);
      moved = move_to (self, td_iteration_get_number (there), MAX (event, 0));
      td_iteration_unref (there);
    }
  if (!moved && message)
    *message = g_strdup (direction > 0 ? "No anomaly after this moment"
                                       : "No anomaly before this moment");
  return moved;
}

static gboolean
go_where (TdSession *self, TdIteration *here, gboolean from, char **message)
{
  GArray *events = from ? td_navigate_where_from (here, self->moment.event, TRUE)
                        : td_navigate_where_used (here, self->moment.event);
  gboolean moved = FALSE;

  if (events->len)
    {
      gint32 event = g_array_index (events, gint32, 0);

      moved = move_to (self, self->moment.iteration, event);
      td_session_select (self, td_iteration_get_tape (here)->events[event].key);
    }
  else if (message)
    *message = g_strdup (from ? "Its inputs come from outside this iteration"
                              : "Nothing in this iteration reads its output");
  g_array_unref (events);
  return moved;
}

typedef gint (*StepFunc) (const TdIteration *, gint, gint);

gboolean
td_session_go (TdSession *self, TdVerb verb, gint direction, char **message)
{
  static const StepFunc steps[] = {
    [TD_VERB_STEP_OP] = td_navigate_step_op,
    [TD_VERB_STEP_OVER] = td_navigate_step_over,
    [TD_VERB_STEP_INTO] = td_navigate_step_into,
    [TD_VERB_STEP_OUT] = td_navigate_step_out,
  };
  TdIteration *here = td_session_get_current (self);
  gint event = -1;
  gboolean moved = FALSE;

  if (message)
    *message = NULL;
  if (!here && verb != TD_VERB_ITERATION && verb != TD_VERB_ANOMALY)
    return FALSE;
  if (verb < G_N_ELEMENTS (steps))
    event = steps[verb](here, self->moment.event, direction);
  else if (verb == TD_VERB_END)
    event = direction > 0 ? (gint)td_iteration_get_n_events (here) - 1 : 0;
  else if (verb == TD_VERB_LOSS)
    event = td_navigate_loss (here);
  else if (verb == TD_VERB_BACKWARD)
    event = td_navigate_first_of_phase (here, TD_TAPE_PHASE_BACKWARD);
  else if (verb == TD_VERB_UPDATE)
    event = td_navigate_first_of_phase (here, TD_TAPE_PHASE_UPDATE);
  else if (verb == TD_VERB_TWIN)
    event = td_navigate_twin (here, self->moment.event);
  else if (verb == TD_VERB_ITERATION)
    moved = go_iteration (self, here, direction, message);
  else if (verb == TD_VERB_ANOMALY)
    moved = go_anomaly (self, here, direction, message);
  else
    moved = go_where (self, here, verb == TD_VERB_WHERE_FROM, message);
  if (event >= 0)
    moved = move_to (self, self->moment.iteration, event);
  g_clear_pointer (&here, td_iteration_unref);
  return moved;
}
