/*
 * Which part of an iteration trains: the rest, an evaluation or a print, may be of one rank.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-ranks-private.h"

/* An operation that was differentiated, or is of backward or of an update. */
static gboolean
trains (const TdIteration *it, guint event)
{
  guint n_twins;

  td_iteration_get_twins (it, event, &n_twins);
  return n_twins > 0
         || td_iteration_get_tape (it)->events[event].phase != TD_TAPE_PHASE_FORWARD;
}

/* Operations stand behind what they read: one pass from the end sees all that comes of each. */
gboolean *
td__ranks_mark_trained (const TdIteration *it)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  gboolean *trained = g_new0 (gboolean, MAX (t->n_vars, 1));

  for (guint e = t->n_events; e-- > 0;)
    {
      const TdTapeEvent *event = &t->events[e];
      gboolean leads = trains (it, e);

      for (guint k = 0; k < event->n_out; k++)
        leads = leads || trained[t->outs[event->first_out + k]];
      for (guint k = 0; leads && k < event->n_in; k++)
        trained[t->ins[event->first_in + k]] = TRUE;
    }
  return trained;
}
