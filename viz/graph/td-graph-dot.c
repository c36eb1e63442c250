/* DOT: the recorded graph in Chainer's manner (variables and functions), and the visible graph
 * with all that Tapedeck knows. Nodes come in the order in which they ran, so equal graphs give
 * equal text.
 *
 * SPDX-License-Identifier: MIT */
#include "graph/td-graph-private.h"

#include <string.h>

#define MAX_LABEL 400 /* characters: DOT has no use for more */

/* ---- text ---- */

/* Inside double quotes; braces, bars and angle brackets are markup in a record. */
static void
append_escaped (GString *dot, const char *text, gboolean record)
{
  char *valid = g_utf8_make_valid (text, -1);
  guint n = 0;

  for (const char *p = valid; *p && n < MAX_LABEL; p = g_utf8_next_char (p), n++)
    {
      if (*p == '\n' || *p == '\r')
        g_string_append (dot, "\\n");
      else if ((guchar)*p < ' ')
        g_string_append_c (dot, ' ');
      else
        {
          if (*p == '"' || *p == '\\' || (record && strchr ("{}|<>", *p)))
            g_string_append_c (dot, '\\');
          g_string_append_len (dot, p, g_utf8_next_char (p) - p);
        }
    }
  if (n == MAX_LABEL)
    g_string_append (dot, "…");
  g_free (valid);
}

/* ---- Chainer's labels ---- */

/* Where Chainer's class has another name than the operation spelt in capitals; %s is the
 * scalar. */
static const struct
{
  const char *op, *label;
} chainer_names[] = {
  { "add", "_ + _" },
  { "sub", "_ - _" },
  { "mul", "_ * _" },
  { "div", "_ / _" },
  { "pow", "_ ** _" },
  { "neg", "__neg__" },
  { "add_scalar", "_ + %s" },
  { "sub_scalar", "_ - %s" },
  { "mul_scalar", "_ * %s" },
  { "div_scalar", "_ / %s" },
  { "pow_scalar", "_ ** %s" },
  { "rsub_scalar", "%s - _" },
  { "rdiv_scalar", "%s / _" },
  { "rpow_scalar", "%s ** _" },
  { "relu", "ReLU" },
  { "lstm", "LSTM" },
  { "matmul", "MatMul" },
  { "batch_matmul", "MatMul" },
  { "argmax", "ArgMax" },
  { "argmin", "ArgMin" },
  { "logsumexp", "LogSumExp" },
  { "linear", "LinearFunction" },
  { "embed_id", "EmbedIDFunction" },
  { "convolution_2d", "Convolution2DFunction" },
  { "deconvolution_2d", "Deconvolution2DFunction" },
};

/* The scalar in attributes such as "c=2" or "value=0.5". */
static char *
scalar_of (const char *attributes)
{
  const char *equals = strchr (attributes, '=');
  gsize n = equals ? strcspn (equals + 1, " ,") : 0;

  return n ? g_strndup (equals + 1, n) : g_strdup ("c");
}

/* "max_pooling_2d" -> "MaxPooling2D". */
static void
append_capitals (GString *dot, const char *op)
{
  gboolean start = TRUE;

  for (; *op; op++)
    {
      if (*op == '_')
        start = TRUE;
      else
        {
          g_string_append_c (dot, start ? g_ascii_toupper (*op) : *op);
          start = g_ascii_isdigit (*op);
        }
    }
}

static void
append_function_label (GString *dot, const TdIteration *it, guint event)
{
  const char *op = td_iteration_get_op_name (it, event);

  for (guint i = 0; i < G_N_ELEMENTS (chainer_names); i++)
    if (strcmp (op, chainer_names[i].op) == 0)
      {
        const char *label = chainer_names[i].label, *hole = strstr (label, "%s");
        GString *text = g_string_new (label);

        if (hole)
          {
            char *scalar = scalar_of (
                td_iteration_get_string (it, td_iteration_get_tape (it)->events[event].attrs));

            g_string_erase (text, hole - label, 2);
            g_string_insert (text, hole - label, scalar);
            g_free (scalar);
          }
        append_escaped (dot, text->str, TRUE);
        g_string_free (text, TRUE);
        return;
      }
  {
    GString *text = g_string_new (NULL);

    append_capitals (text, op);
    append_escaped (dot, text->str, TRUE);
    g_string_free (text, TRUE);
  }
}

static void
append_variable (GString *dot, const TdIteration *it, guint var, guint number)
{
  const char *name = td_iteration_get_var_name (it, var);
  const char *slash = strrchr (name, '/');
  char *shape = td_iteration_dup_shape (it, var, FALSE);

  g_string_append_printf (dot, "%u [label=\"", number);
  if (*name)
    {
      append_escaped (dot, slash ? slash + 1 : name, FALSE);
      g_string_append (dot, ": ");
    }
  g_string_append_printf (
      dot, "%s%s%s\",shape=\"octagon\",fillcolor=\"#E0E0E0\",style=\"filled\"];", shape,
      *shape ? ", " : "", td_tape_dtype_name (td_iteration_get_tape (it)->vars[var].dtype));
  g_free (shape);
}

/* Mark what the last thing computed depends on: the forward events behind the roots, which are
 * what backward started from, else everything that nobody reads. */
static guint8 *
mark_reachable (TdVizGraph *self)
{
  const TdTapeIteration *t = td_iteration_get_tape (self->iteration);
  guint8 *marked = g_new0 (guint8, t->n_events + 1);
  gboolean any_backward = FALSE;

  for (guint e = 0; e < t->n_events && !any_backward; e++)
    if (t->events[e].phase == TD_TAPE_PHASE_BACKWARD)
      {
        gint root = td_iteration_get_forward (self->iteration, e);

        any_backward = root >= 0;
        if (root >= 0)
          marked[root] = 1;
      }
  for (guint e = 0; e < t->n_events && !any_backward; e++)
    {
      gboolean read = FALSE;
      guint n;

      for (guint o = 0; o < t->events[e].n_out; o++)
        {
          td_iteration_get_consumers (self->iteration, t->outs[t->events[e].first_out + o], &n);
          read = read || n > 0;
        }
      marked[e] = !read && t->events[e].phase == TD_TAPE_PHASE_FORWARD;
    }
  for (guint e = t->n_events; e-- > 0;)
    for (guint i = 0; marked[e] && i < t->events[e].n_in; i++)
      {
        gint32 producer = t->vars[t->ins[t->events[e].first_in + i]].producer;

        if (producer >= 0 && (guint)producer < e
            && t->events[producer].phase == TD_TAPE_PHASE_FORWARD)
          marked[producer] = 1;
      }
  return marked;
}

static void
append_argument (GString *dot, guint *number_of, guint *next, const TdIteration *it, guint var)
{
  if (number_of[var])
    return;
  number_of[var] = ++*next;
  append_variable (dot, it, var, number_of[var] - 1);
}

char *
td_viz_graph_to_dot (TdVizGraph *self)
{
  const TdIteration *it = self->iteration;
  const TdTapeIteration *t = td_iteration_get_tape (it);
  guint8 *marked = mark_reachable (self);
  guint *number_of = g_new0 (guint, t->n_vars + 1); /* + 1; 0: not yet */
  guint *stamp = g_new0 (guint, t->n_vars + 1);
  GString *dot = g_string_new ("digraph graphname{rankdir=TB;");
  GString *edges = g_string_new (NULL);
  guint next = 0;

  for (guint e = 0; e < t->n_events; e++)
    {
      const TdTapeEvent *event = &t->events[e];
      guint function;

      if (!marked[e])
        continue;
      for (guint i = 0; i < event->n_in; i++)
        append_argument (dot, number_of, &next, it, t->ins[event->first_in + i]);
      function = next++;
      g_string_append_printf (dot, "%u [label=\"", function);
      append_function_label (dot, it, e);
      g_string_append (dot, "\",shape=\"record\",fillcolor=\"#6495ED\",style=\"filled\"];");
      for (guint i = 0; i < event->n_in; i++)
        {
          guint var = t->ins[event->first_in + i];

          if (stamp[var] == e + 1) /* an argument used twice is one edge, as in Chainer */
            continue;
          stamp[var] = e + 1;
          g_string_append_printf (edges, "%u -> %u;", number_of[var] - 1, function);
        }
      for (guint o = 0; o < event->n_out; o++)
        {
          guint var = t->outs[event->first_out + o];
          gboolean read = FALSE;
          guint n;
          const gint32 *readers = td_iteration_get_consumers (it, var, &n);

          /* outputs that lead nowhere are not part of Chainer's walk, the root's are */
          for (guint r = 0; r < n; r++)
            read = read || (marked[readers[r]] && readers[r] > (gint32)e);
          for (guint other = 0; other < event->n_out && !read; other++)
            {
              td_iteration_get_consumers (it, t->outs[event->first_out + other], &n);
              read = event->n_out == 1 || n == 0;
            }
          if (!read)
            continue;
          append_argument (dot, number_of, &next, it, var);
          g_string_append_printf (edges, "%u -> %u;", function, number_of[var] - 1);
        }
    }
  g_string_append_len (dot, edges->str, (gssize)edges->len);
  g_string_append (dot, "}");
  g_string_free (edges, TRUE);
  g_free (marked);
  g_free (number_of);
  g_free (stamp);
  return g_string_free (dot, FALSE);
}

/* ---- the visible graph ---- */

static const char *const lane_colours[TD_N_LANES] = { "#DCE6F5", "#F6E3D3", "#E9E0EE" };

static void
append_node (GString *dot, const TdVizView *view, guint node)
{
  const TdVizNode *n = &view->nodes[node];

  g_string_append_printf (dot, "    n%u [label=\"", node);
  append_escaped (dot, n->label, FALSE);
  if (n->detail)
    {
      g_string_append (dot, "\\n");
      append_escaped (dot, n->detail, FALSE);
    }
  if (n->user < 0 && n->kind != TD_VIZ_INPUT)
    g_string_append_printf (dot, "\\n%" G_GUINT64_FORMAT " bytes, %.3g ms", n->bytes,
                            (double)n->time_ns / 1e6);
  g_string_append_printf (dot,
                          "\",shape=\"%s\",fillcolor=\"%s\",style=\"filled%s\",URL=\"tapedeck:%"
                          "016" G_GINT64_MODIFIER "x\"];\n",
                          n->user >= 0 || n->kind == TD_VIZ_INPUT ? "octagon" : "box",
                          n->failed      ? "#F66151"
                          : n->user >= 0 ? "#E0E0E0"
                                         : lane_colours[n->lane],
                          n->lane == TD_LANE_FORWARD ? ",rounded" : "", n->select_key);
}

static void
append_cluster (GString *dot, const TdVizView *view, guint group, TdLane lane)
{
  const TdVizGroup *g = td__graph_group (view->graph, view->groups[group].group);

  if (group > 0)
    {
      g_string_append_printf (dot, "  subgraph cluster_%u_%d {label=\"", group, lane);
      append_escaped (dot, g->name, FALSE);
      g_string_append (dot, "\";\n");
    }
  for (guint i = 0; i < view->n_nodes; i++)
    if (view->nodes[i].parent == (gint)group && view->nodes[i].lane == lane)
      append_node (dot, view, i);
  for (guint i = 1; i < view->n_groups; i++)
    if (view->groups[i].parent == (gint)group
        && td__graph_group (view->graph, view->groups[i].group)->n_ops[lane] > 0)
      append_cluster (dot, view, i, lane);
  if (group > 0)
    g_string_append (dot, "  }\n");
}

char *
td_viz_view_to_dot (const TdVizView *view)
{
  GString *dot = g_string_new ("digraph tapedeck {\n  rankdir=TB; node [fontname=\"sans\"];\n");

  for (guint lane = 0; lane < TD_N_LANES; lane++)
    if (view->has_lane[lane])
      append_cluster (dot, view, 0, lane);
  for (guint i = 0; i < view->n_edges; i++)
    {
      const TdVizEdge *e = &view->edges[i];
      /* mirrored, so that backward stands beside forward and not below it */
      gboolean back = e->kind == TD_EDGE_DATA && view->nodes[e->from].lane == TD_LANE_BACKWARD
                      && view->nodes[e->to].lane == TD_LANE_BACKWARD;

      g_string_append_printf (dot, "  n%d -> n%d [", back ? e->to : e->from,
                              back ? e->from : e->to);
      if (back)
        g_string_append (dot, "dir=back,");
      if (e->kind == TD_EDGE_SAVED)
        g_string_append_printf (
            dot, "style=dotted,constraint=false,label=\"%" G_GUINT64_FORMAT " bytes\",",
            e->bytes);
      else if (e->kind == TD_EDGE_GRAD)
        g_string_append (dot, "constraint=false,");
      if (e->label)
        {
          g_string_append (dot, "label=\"");
          append_escaped (dot, e->label, FALSE);
          g_string_append (dot, "\",");
        }
      g_string_append (dot, "];\n");
    }
  g_string_append (dot, "}\n");
  return g_string_free (dot, FALSE);
}
