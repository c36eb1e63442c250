/*
 * tapedeck show: the views of the graph, and where a NaN in it comes from.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "diff/td-node-json.h"
#include "layout/td-layout.h"
#include "scene/td-graph-scene.h"
#include "schedule/td-statics.h"
#include "tape/td-origin.h"
#include "viz-show.h"

#define GRAPHVIZ_TIMEOUT_MS 5000
#define FIT_OF_ALL 600 /* pixels from which on a picture has as many nodes as any */
#define FIT_OF_NODE 16

/* ---- graph ---- */

/* Is this event part of the view? The graph view is the forward pass. */
static gboolean
in_view (Show *s, guint phase)
{
  gboolean backward = strcmp (s->view, "backward") == 0;

  return backward ? phase == TD_TAPE_PHASE_BACKWARD || phase == TD_TAPE_PHASE_ACCUMULATE
                  : phase == TD_TAPE_PHASE_FORWARD;
}

static void
add_edge (TdJson *j, guint64 from, guint64 to)
{
  td_json_begin_array (j);
  td_json_id (j, from);
  td_json_id (j, to);
  td_json_end_array (j);
}

/* Of a variable: an event of the view reads or writes it; a node with its key was written. */
enum
{
  USED = 1,
  WRITTEN = 2
};

/* Of variables with the same key, the first that is used is a node. */
static gboolean
is_first (Show *s, guint8 *used, guint var)
{
  guint8 *found
      = &used[td_iteration_find_var (s->it, td_iteration_get_tape (s->it)->vars[var].key)];

  if (*found & WRITTEN)
    return FALSE;
  *found |= WRITTEN;
  return TRUE;
}

/* Which variables the events of the view read or write. Owner: the caller. */
static guint8 *
find_used (Show *s)
{
  const TdTapeIteration *t = td_iteration_get_tape (s->it);
  guint8 *used = g_malloc0 (MAX (t->n_vars, 1));

  for (guint e = 0; e < t->n_events; e++)
    if (in_view (s, t->events[e].phase))
      {
        for (guint k = 0; k < t->events[e].n_in; k++)
          used[t->ins[t->events[e].first_in + k]] = USED;
        for (guint k = 0; k < t->events[e].n_out; k++)
          used[t->outs[t->events[e].first_out + k]] = USED;
      }
  return used;
}

static void
add_nodes (Show *s, TdJson *j, TdSink *sink)
{
  const TdTapeIteration *t = td_iteration_get_tape (s->it);
  g_autofree guint8 *used = find_used (s);

  for (guint e = 0; e < t->n_events; e++)
    if (in_view (s, t->events[e].phase))
      {
        td_node_json_begin_event (j, s->it, e);
        td_json_end_object (j);
        td_sink_row (sink);
      }
  for (guint v = 0; v < t->n_vars; v++)
    if ((used[v] & USED) && is_first (s, used, v))
      {
        td_node_json_begin_var (j, s->it, v);
        td_json_end_object (j);
        td_sink_row (sink);
      }
}

static void
add_edges (Show *s, TdJson *j, TdSink *sink)
{
  const TdTapeIteration *t = td_iteration_get_tape (s->it);

  for (guint e = 0; e < t->n_events; e++)
    if (in_view (s, t->events[e].phase))
      {
        const TdTapeEvent *event = &t->events[e];

        for (guint k = 0; k < event->n_in; k++)
          add_edge (j, t->vars[t->ins[event->first_in + k]].key, event->key);
        for (guint k = 0; k < event->n_out; k++)
          add_edge (j, event->key, t->vars[t->outs[event->first_out + k]].key);
        td_sink_row (sink);
      }
}

static void
graph_json (Show *s, TdSink *sink)
{
  TdJson j;

  td_json_init (&j, sink->text);
  td_json_begin_object (&j);
  td_json_member_int (&j, "iteration", td_iteration_get_number (s->it));
  td_json_key (&j, "nodes");
  td_json_begin_array (&j);
  add_nodes (s, &j, sink);
  td_json_end_array (&j);
  td_json_key (&j, "edges");
  td_json_begin_array (&j);
  add_edges (s, &j, sink);
  td_json_end_array (&j);
  td_json_end_object (&j);
}

static TdVizView *
make_view (Show *s, TdViewLanes lanes)
{
  TdVizGraph *graph = td_iteration_get_graph (s->it);
  /* A small picture of many nodes is a grey one. */
  const guint visible
      = s->fit > 0 && s->fit < FIT_OF_ALL ? (guint)MAX (s->fit / FIT_OF_NODE, 4) : 0;
  g_autoptr (TdFold) fold = s->fold_given ? td_fold_new_depth (graph, s->fold)
                                          : td_fold_new_default (graph, visible);

  return td_viz_view_new (graph, fold, lanes);
}

static TdViewLanes
lanes_of (Show *s)
{
  if (strcmp (s->view, "backward") == 0)
    return TD_VIEW_BACKWARD;
  /* A model in a file, which is not trained: its backward is only ours, to look at. */
  return s->fit > 0 && g_str_has_suffix (td_tape_reader_info (s->reader, "program"), ".onnx")
             ? TD_VIEW_FORWARD
             : TD_VIEW_ALL;
}

static char *
print_graph (Show *s)
{
  if (strcmp (s->format, "dot") == 0 && strcmp (s->view, "graph") == 0 && !s->fold_given)
    return td_viz_graph_to_dot (td_iteration_get_graph (s->it));
  g_autoptr (TdVizView) view = make_view (s, lanes_of (s));
  return strcmp (s->format, "dot") == 0 ? td_viz_view_to_dot (view)
                                        : td_viz_view_to_text (view);
}

gboolean
td__show_graph_write (Show *s, TdSink *sink, GError **error)
{
  if (strcmp (s->format, "json") == 0)
    graph_json (s, sink);
  else
    td_sink_take (sink, print_graph (s));
  return TRUE;
}

TdScene *
td__show_graph_draw (Show *s, GError **error)
{
  TdLayoutOptions options = { TD_ORIENTATION_TB };
  g_autoptr (TdVizView) view = make_view (s, lanes_of (s));
  g_autoptr (TdLayout) quick = td_layout_new_quick (view, &options, NULL);
  g_autoptr (GError) ignored = NULL; /* without the helper the quick layout is the answer */
  g_autoptr (TdLayout) nice
      = td_layout_new_graphviz (view, &options, quick, GRAPHVIZ_TIMEOUT_MS, NULL, &ignored);

  g_autoptr (TdStatics) statics = td_statics_new (s->reader, s->it);

  if (statics)
    {
      s->panel.steps = statics->steps;
      s->panel.n_steps = td_iteration_get_n_events (s->it);
    }
  return td_graph_scene_new (nice ? nice : quick, &s->panel, TD_HEAT_OFF);
}

/* ---- origin ---- */

/* Where no iteration was asked for: the newest that has any, in the place of the last one. */
static guint64
find_bad (Show *s)
{
  const TdTapeSummaries all = td_tape_reader_summaries (s->reader);
  guint64 key = td_origin_find (s->it);

  if (s->iteration_given || s->event >= 0)
    return key;
  for (guint i = all.n; i-- > 0 && key == 0;)
    if (all.rows[i].flags & (TD_TAPE_ITERATION_NAN | TD_TAPE_ITERATION_INF))
      {
        TdIteration *it
            = td_session_load_iteration (s->session, (gint64)all.rows[i].number, NULL);

        key = it ? td_origin_find (it) : 0;
        if (key != 0)
          {
            g_clear_pointer (&s->it, td_iteration_unref);
            s->it = g_steal_pointer (&it);
            s->iteration = (gint64)all.rows[i].number;
          }
        g_clear_pointer (&it, td_iteration_unref);
      }
  return key;
}

static TdOrigin *
origin (Show *s, GError **error)
{
  guint64 key = s->node ? s->key : find_bad (s);

  if (s->node && td_iteration_find (s->it, key) < 0)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED,
                 "iteration %" G_GINT64_FORMAT " has no node %s", s->iteration, s->node);
  else if (key == 0)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED,
                 "no NaN and no infinity is recorded in %s%" G_GINT64_FORMAT "%s",
                 s->iteration_given || s->event >= 0 ? "iteration " : "any iteration up to ",
                 s->iteration,
                 td_iteration_get_tape (s->it)->n_stats > 0
                     ? ""
                     : " (level stats or values would record them)");
  else
    return td_origin_new (s->session, s->it, key, s->event);
  return NULL;
}

char *
td__show_origin_print (Show *s, GError **error)
{
  g_autoptr (TdOrigin) o = origin (s, error);

  return o ? td_origin_print (o, s->format) : NULL;
}

/* The graph of the iteration in which it was made, with the way from there selected. */
TdScene *
td__show_origin_draw (Show *s, GError **error)
{
  g_autoptr (TdOrigin) o = origin (s, error);
  g_autoptr (GArray) keys = g_array_new (FALSE, FALSE, sizeof (guint64));

  if (!o)
    return NULL;
  for (guint i = 0; i < o->steps->len; i++)
    {
      const TdOriginStep *step = &g_array_index (o->steps, TdOriginStep, i);

      if (step->iteration == o->at.iteration)
        g_array_append_val (keys, step->key);
    }
  td_iteration_unref (s->it);
  s->it = td_session_load_iteration (s->session, o->at.iteration, error);
  if (!s->it)
    return NULL;
  s->panel.iteration = o->at.iteration;
  s->panel.selected = (const guint64 *)(gpointer)keys->data;
  s->panel.n_selected = keys->len;
  s->fold_given = TRUE;
  s->fold = -1;
  return td__show_graph_draw (s, error);
}
