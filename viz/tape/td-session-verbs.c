/* The verbs of the transport on a session: td-navigate.h, plus what crosses iterations.
 *
 * SPDX-License-Identifier: MIT */
#include "tape/td-navigate.h"
#include "tape/td-origin.h"
#include "tape/td-session-private.h"

static gboolean
same_moment (TdMoment a, TdMoment b)
{
  return a.iteration == b.iteration && a.event == b.event && a.rank == b.rank;
}

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

/* Where the program stands before the first operation of an iteration. */
static gboolean
go_to_head (TdSession *self)
{
  TdMoment before = self->moment;

  if (self->head.iteration <= before.iteration)
    return FALSE;
  td_session_set_moment (self, self->head.iteration, self->head.event);
  return !same_moment (self->moment, before);
}

static gboolean
go_iteration (TdSession *self, TdIteration *here, gint direction, char **message)
{
  TdIteration *there = load_next (self, direction, NULL);
  gboolean exact = TRUE, moved;
  gint event;

  if (!there && direction > 0 && go_to_head (self))
    return TRUE;
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

/* A NaN, or an infinity, is followed to what made it: the playhead goes there, the way is
 * selected, and the sentence says what was found. */
static gboolean
go_to_origin (TdSession *self, const TdOrigin *o, char **message)
{
  g_autoptr (GArray) keys = g_array_new (FALSE, FALSE, sizeof (guint64));
  gint event = -1;
  gboolean moved;

  /* what came in is shown where it was read first */
  for (guint i = o->steps->len; i-- > 0;)
    {
      const TdOriginStep *step = &g_array_index (o->steps, TdOriginStep, i);

      if (step->iteration != o->at.iteration)
        continue;
      event = event < 0 ? step->event : event;
      g_array_append_val (keys, step->key);
    }
  moved = move_to (self, o->at.iteration, event);
  if (keys->len > 0)
    td_session_select_many (self, (const guint64 *)(gpointer)keys->data, keys->len);
  if (message)
    *message = g_strdup (o->sentence);
  return moved;
}

/* Returns the origin of what is bad at the playhead; NULL: nothing is. Owner: the caller. */
static TdOrigin *
find_origin (TdSession *self, TdIteration *here)
{
  TdOrigin *o;
  gint event = self->moment.event;

  if (event < 0 || !td_iteration_is_anomaly (here, (guint)event))
    return NULL;
  o = td_origin_new (self, here, td_iteration_get_tape (here)->events[event].key, event);
  if (o->steps->len == 0) /* a call that failed */
    g_clear_pointer (&o, td_origin_free);
  return o;
}

/* ---- the trail ---- */

/* Steps are not one to one: several lead over the same layer to its end, and the program stops
 * where its next operation would begin. Their reverses find the way back in what was done. */
#define MAX_TRAIL 1024

const TdTrailStep *
td__session_trail_find (TdSession *self, TdVerb verb, gint direction)
{
  const TdTrailStep *last = (const TdTrailStep *)(gpointer)self->trail->data;

  if (self->trail->len == 0)
    return NULL;
  last += self->trail->len - 1;
  return last->verb == verb && last->direction == -direction
                 && same_moment (last->to, self->moment)
             ? last
             : NULL;
}

void
td__session_trail_add (TdSession *self, TdVerb verb, gint direction, TdMoment from)
{
  TdTrailStep step = { verb, direction, from, self->moment };

  if (self->trail->len == MAX_TRAIL)
    g_array_remove_index (self->trail, 0);
  g_array_append_val (self->trail, step);
  self->stepping = FALSE;
}

void
td__session_trail_follow (TdSession *self)
{
  TdTrailStep *last;

  if (!self->stepping || self->trail->len == 0)
    return;
  last = &g_array_index (self->trail, TdTrailStep, self->trail->len - 1);
  last->to = self->moment;
  if (self->state != TD_PROGRAM_RUNNING && !same_moment (last->from, last->to))
    self->stepping = FALSE;
}

void
td_session_begin_step (TdSession *self, TdVerb verb, gint direction)
{
  td__session_trail_add (self, verb, direction, self->moment);
  self->stepping = TRUE;
}

/* Back to where the step that led here came from. FALSE: none did, or the tape has lost it. */
static gboolean
go_back_on_trail (TdSession *self, TdVerb verb, gint direction)
{
  const TdTrailStep *step = td__session_trail_find (self, verb, direction);
  TdMoment from;

  if (!step)
    return FALSE;
  from = step->from; /* -1 is an event here: the program stood before the first one */
  g_array_set_size (self->trail, self->trail->len - 1);
  self->stepping = FALSE;
  td_session_set_moment (self, from.iteration, from.event);
  return same_moment (self->moment, from);
}

/* ---- verbs ---- */

typedef gint (*StepFunc) (const TdIteration *, gint, gint);

/* From the last operation of an iteration into the next one, from the first into the one
 * before. One that has none yet is where its program stands. */
static gboolean
go_over_edge (TdSession *self, StepFunc step, gint direction)
{
  TdIteration *there = load_next (self, direction, NULL);
  gboolean moved;
  gint n;

  if (!there)
    return direction > 0 && go_to_head (self);
  n = (gint)td_iteration_get_n_events (there);
  moved = move_to (self, td_iteration_get_number (there),
                   step (there, direction > 0 ? -1 : n, direction));
  td_iteration_unref (there);
  return moved;
}

static gboolean
go_step (TdSession *self, TdIteration *here, TdVerb verb, gint direction)
{
  static const StepFunc steps[] = {
    [TD_VERB_STEP_OP] = td_navigate_step_op,
    [TD_VERB_STEP_OVER] = td_navigate_step_over,
    [TD_VERB_STEP_INTO] = td_navigate_step_into,
    [TD_VERB_STEP_OUT] = td_navigate_step_out,
  };
  gint event = here ? steps[verb](here, self->moment.event, direction) : self->moment.event;

  if (event != self->moment.event)
    return move_to (self, self->moment.iteration, event);
  return verb != TD_VERB_STEP_OUT && go_over_edge (self, steps[verb], direction);
}

static gint
find_event (TdSession *self, const TdIteration *here, TdVerb verb, gint direction)
{
  if (verb == TD_VERB_END)
    return direction > 0 ? (gint)td_iteration_get_n_events (here) - 1 : 0;
  if (verb == TD_VERB_LOSS)
    return td_navigate_loss (here);
  if (verb == TD_VERB_BACKWARD)
    return td_navigate_first_of_phase (here, TD_TAPE_PHASE_BACKWARD);
  if (verb == TD_VERB_UPDATE)
    return td_navigate_first_of_phase (here, TD_TAPE_PHASE_UPDATE);
  return td_navigate_twin (here, self->moment.event);
}

static gboolean
do_verb (TdSession *self, TdIteration *here, TdVerb verb, gint direction, char **message)
{
  if (verb == TD_VERB_ITERATION)
    return go_iteration (self, here, direction, message);
  if (verb == TD_VERB_ANOMALY)
    return go_anomaly (self, here, direction, message);
  if (verb == TD_VERB_WHERE_FROM || verb == TD_VERB_WHERE_USED)
    {
      g_autoptr (TdOrigin) origin
          = verb == TD_VERB_WHERE_FROM ? find_origin (self, here) : NULL;

      return origin ? go_to_origin (self, origin, message)
                    : go_where (self, here, verb == TD_VERB_WHERE_FROM, message);
    }
  if (verb <= TD_VERB_STEP_OUT)
    return go_step (self, here, verb, direction);
  return move_to (self, self->moment.iteration, find_event (self, here, verb, direction));
}

gboolean
td_session_go (TdSession *self, TdVerb verb, gint direction, char **message)
{
  gboolean steps = verb <= TD_VERB_ITERATION;
  TdMoment before = self->moment;
  TdIteration *here;
  gboolean moved;

  if (message)
    *message = NULL;
  if (steps && go_back_on_trail (self, verb, direction))
    return TRUE;
  here = td_session_get_current (self);
  if (!here && !steps && verb != TD_VERB_ANOMALY)
    return FALSE;
  moved = do_verb (self, here, verb, direction, message);
  if (moved && steps)
    td__session_trail_add (self, verb, direction, before);
  g_clear_pointer (&here, td_iteration_unref);
  return moved;
}
