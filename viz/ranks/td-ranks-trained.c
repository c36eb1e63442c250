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

/* The order in which events first met it, as fingerprints count. */
static guint32
met (guint32 *order, guint32 *n, guint32 var)
{
  if (order[var] == 0)
    order[var] = ++*n;
  return order[var];
}

gint
td__ranks_find_other_input (const TdIteration *a, const TdIteration *b)
{
  const TdTapeIteration *x = td_iteration_get_tape (a), *y = td_iteration_get_tape (b);
  g_autofree guint32 *of_x = g_new0 (guint32, x->n_vars + 1),
                     *of_y = g_new0 (guint32, y->n_vars + 1);
  guint32 n_x = 0, n_y = 0;

  for (guint e = 0; e < MIN (x->n_events, y->n_events); e++)
    {
      const TdTapeEvent *i = &x->events[e], *j = &y->events[e];

      for (guint k = 0; k < MIN (i->n_in, j->n_in); k++)
        if (met (of_x, &n_x, x->ins[i->first_in + k])
            != met (of_y, &n_y, y->ins[j->first_in + k]))
          return (gint)e;
      for (guint k = 0; k < MIN (i->n_out, j->n_out); k++)
        if (met (of_x, &n_x, x->outs[i->first_out + k])
            != met (of_y, &n_y, y->outs[j->first_out + k]))
          return (gint)e;
    }
  return -1;
}
