/*
 * Which part of an iteration trains: the rest, an evaluation or a print, may be of one rank.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-ranks-private.h"
#include "td-tape-writer.h"

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

/* It trains, or what comes of it does. */
static gboolean
is_of_training (const TdIteration *it, guint e, const gboolean *trained)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);

  if (trains (it, e))
    return TRUE;
  for (guint k = 0; k < t->events[e].n_out; k++)
    if (trained[t->outs[t->events[e].first_out + k]])
      return TRUE;
  return FALSE;
}

guint64
td__ranks_hash_trained (TdRanks *self, guint place, gint64 number)
{
  g_autoptr (TdIteration) it = td__ranks_load (self, place, number);
  const TdTapeIteration *t = it ? td_iteration_get_tape (it) : NULL;
  g_autofree gboolean *trained = it ? td__ranks_mark_trained (it) : NULL;
  g_autofree guint32 *order = it ? g_new0 (guint32, t->n_vars + 1) : NULL;
  guint64 h = it ? 1 : 0;
  guint32 n = 0;

  for (guint e = 0; it && e < t->n_events; e++)
    {
      const TdTapeEvent *event = &t->events[e];
      const char *name = td_iteration_get_op_name (it, e);

      if (!is_of_training (it, e, trained))
        continue;
      h = td_tape_hash_bytes (td_tape_hash (h, event->phase), name, strlen (name));
      for (guint k = 0; k < event->n_in; k++)
        h = td_tape_hash (h, met (order, &n, t->ins[event->first_in + k]));
      for (guint k = 0; k < event->n_out; k++)
        h = td_tape_hash (h, met (order, &n, t->outs[event->first_out + k]));
    }
  return h;
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
