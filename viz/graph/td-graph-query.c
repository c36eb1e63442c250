/* Questions to the graph: a way from here to there, what depends on what, where a text occurs.
 *
 * SPDX-License-Identifier: MIT */
#include "graph/td-graph-private.h"

#include <string.h>

GArray *
td_viz_graph_find_path (TdVizGraph *self, guint from, guint to)
{
  const TdTapeIteration *tape = td_iteration_get_tape (self->iteration);
  GArray *path = g_array_new (FALSE, FALSE, sizeof (gint32));
  gint32 *before, *queue;
  guint head = 0, tail = 0;

  if (from >= tape->n_events || to >= tape->n_events)
    return path;
  before = g_new (gint32, tape->n_events); /* -2: not reached */
  queue = g_new (gint32, tape->n_events);
  for (guint e = 0; e < tape->n_events; e++)
    before[e] = -2;
  before[from] = -1;
  queue[tail++] = (gint32)from;
  while (head < tail && before[to] == -2)
    {
      gint32 e = queue[head++];

      for (guint o = 0; o < tape->events[e].n_out; o++)
        {
          guint n;
          const gint32 *readers = td_iteration_get_consumers (
              self->iteration, tape->outs[tape->events[e].first_out + o], &n);

          for (guint i = 0; i < n; i++)
            if (readers[i] > e && before[readers[i]] == -2)
              {
                before[readers[i]] = e;
                queue[tail++] = readers[i];
              }
        }
    }
  if (before[to] != -2)
    for (gint32 e = (gint32)to; e >= 0; e = before[e])
      g_array_prepend_val (path, e);
  g_free (before);
  g_free (queue);
  return path;
}

/* Events ran in an order of their dependencies, so one pass in that order (or against it) is
 * enough. */
GArray *
td_viz_graph_find_related (TdVizGraph *self, guint event, gboolean ancestors)
{
  const TdTapeIteration *tape = td_iteration_get_tape (self->iteration);
  GArray *related = g_array_new (FALSE, FALSE, sizeof (gint32));
  guint8 *marked;

  if (event >= tape->n_events)
    return related;
  marked = g_new0 (guint8, tape->n_events);
  marked[event] = 1;
  for (guint i = 0; i < tape->n_events; i++)
    {
      guint e = ancestors ? tape->n_events - 1 - i : i;

      if (ancestors && !marked[e])
        continue;
      for (guint k = 0; k < tape->events[e].n_in; k++)
        {
          gint32 producer = tape->vars[tape->ins[tape->events[e].first_in + k]].producer;

          if (producer < 0 || (guint)producer >= e)
            continue;
          if (ancestors)
            marked[producer] = 1;
          else if (marked[producer])
            marked[e] = 1;
        }
    }
  marked[event] = 0;
  for (guint e = 0; e < tape->n_events; e++)
    if (marked[e])
      {
        gint32 found = (gint32)e;

        g_array_append_val (related, found);
      }
  g_free (marked);
  return related;
}

static gboolean
has_text (const char *text, const char *wanted)
{
  char *folded = g_utf8_casefold (text, -1);
  gboolean found = strstr (folded, wanted) != NULL;

  g_free (folded);
  return found;
}

static gboolean
any_var_has_text (TdVizGraph *self, const guint32 *vars, guint n, const char *wanted)
{
  for (guint i = 0; i < n; i++)
    if (has_text (td_iteration_get_var_name (self->iteration, vars[i]), wanted))
      return TRUE;
  return FALSE;
}

GArray *
td_viz_graph_find_text (TdVizGraph *self, const char *text)
{
  const TdTapeIteration *tape = td_iteration_get_tape (self->iteration);
  GArray *found = g_array_new (FALSE, FALSE, sizeof (gint32));
  char *wanted = g_utf8_casefold (text, -1);
  gint32 *names = g_new0 (gint32, tape->n_events + 1);

  for (guint i = 0; i < tape->n_grads; i++)
    if (tape->grads[i].event < tape->n_events)
      names[tape->grads[i].event] = (gint32)tape->grads[i].path;
  for (guint e = 0; e < tape->n_events; e++)
    {
      gint forward = td_iteration_get_forward (self->iteration, e);
      guint at = forward >= 0 ? (guint)forward : e;
      char *site = td_iteration_dup_site (self->iteration, at);
      gint32 event = (gint32)e;

      if (has_text (td_iteration_get_op_name (self->iteration, e), wanted)
          || has_text (td_iteration_get_link_path (self->iteration, at), wanted)
          || has_text (td_iteration_get_string (self->iteration, (guint32)names[e]), wanted)
          || any_var_has_text (
              self, tape->outs + tape->events[e].first_out,
              tape->events[e].phase == TD_TAPE_PHASE_FORWARD ? tape->events[e].n_out : 0,
              wanted)
          || has_text (site, wanted))
        g_array_append_val (found, event);
      g_free (site);
    }
  g_free (names);
  g_free (wanted);
  return found;
}

/* ---- keys ---- */

static gboolean
mark_group (TdVizGraph *self, guint64 key, guint8 *marked)
{
  gint group = td_viz_graph_find_group (self, key);
  gboolean any = FALSE;

  for (int lane = 0; group >= 0 && lane < TD_N_LANES; lane++)
    {
      guint n;
      const gint32 *members = td_viz_graph_get_members (self, (guint)group, (TdLane)lane, &n);

      for (guint i = 0; i < n; i++)
        marked[members[i]] = 1;
      any = any || n > 0;
    }
  return any;
}

guint8 *
td_viz_graph_mark_events (TdVizGraph *self, const guint64 *keys, guint n)
{
  const TdTapeIteration *tape = td_iteration_get_tape (self->iteration);
  guint8 *marked = n > 0 ? g_malloc0 (MAX (tape->n_events, 1)) : NULL;
  gboolean any = FALSE;

  for (guint i = 0; i < n; i++)
    {
      gint event = td_iteration_find_event (self->iteration, keys[i]), var;

      if (event < 0 && (var = td_iteration_find_var (self->iteration, keys[i])) >= 0)
        event = tape->vars[var].producer;
      if (event >= 0 && (guint)event < tape->n_events)
        any = marked[event] = 1;
      else
        any |= mark_group (self, keys[i], marked);
    }
  if (!any)
    g_clear_pointer (&marked, g_free);
  return marked;
}
