/* Questions to the graph: where a text occurs, which events keys stand for.
 *
 * SPDX-License-Identifier: MIT */
#include "graph/td-graph-private.h"

#include <string.h>

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

/* A text that begins as a shape does, or is the name of a type, is looked for in those: in all
 * others a shape would be found by accident. */
static gboolean
any_var_has_shape (TdVizGraph *self, const guint32 *vars, guint n, const char *wanted)
{
  for (guint i = 0; i < n; i++)
    {
      g_autofree char *shape = td_iteration_dup_shape (self->iteration, vars[i], TRUE);
      const char *dtype
          = td_tape_dtype_name (td_iteration_get_tape (self->iteration)->vars[vars[i]].dtype);
      if (g_str_equal (wanted, dtype) || (*wanted == '(' && has_text (shape, wanted)))
        return TRUE;
    }
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
          || any_var_has_shape (self, tape->outs + tape->events[e].first_out,
                                tape->events[e].n_out, wanted)
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
