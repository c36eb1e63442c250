/* The graph that ran as an ONNX model: it becomes a schedule, which is written like any other.
 *
 * SPDX-License-Identifier: MIT */
#include "export.h"
#include "static/map.h"

#include "../links/object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char call[] = "td_save_onnx";

typedef struct
{
  TdSchedule *s;
  TdMap nodes; /* id of a node of the graph -> node of the schedule */
  const TdOp **ops;
  size_t n_ops, room;
  TdExportLacks lacks;
  const TdOnnxOpt *options;
} Graph;

static int
by_id (const void *a, const void *b)
{
  const TdOp *x = *(const TdOp *const *)a, *y = *(const TdOp *const *)b;

  return x->id < y->id ? -1 : x->id > y->id;
}

static bool
is_input (const Graph *g, const TdNode *n)
{
  for (int i = 0; i < g->options->n_in; i++)
    if (g->options->in[i]->node == n)
      return true;
  return false;
}

static void
take_op (Graph *g, TdNode *n, uint32_t mark)
{
  if (n->creator == NULL || n->creator->mark == mark || is_input (g, n))
    return;
  n->creator->mark = mark;
  if (g->n_ops == g->room)
    {
      g->room = 2 * g->room + 64;
      g->ops = td__xrealloc (g->ops, g->room * sizeof *g->ops);
    }
  g->ops[g->n_ops++] = n->creator;
}

/* All operations between the inputs and outs, in the order in which they ran. */
static void
collect (Graph *g, TdVar *const *outs, int n)
{
  const uint32_t mark = td__engine.mark += 4; /* those of backward mean something else */

  for (int i = 0; i < n; i++)
    take_op (g, outs[i]->node, mark);
  for (size_t i = 0; i < g->n_ops; i++)
    for (int k = 0; k < g->ops[i]->n_in; k++)
      take_op (g, g->ops[i]->in[k], mark);
  if (g->n_ops > 0)
    qsort (g->ops, g->n_ops, sizeof *g->ops, by_id);
}

static uint32_t
new_node (Graph *g, const TdNode *n, TdValueKind kind, uint32_t index, size_t bytes)
{
  const uint32_t node
      = td__schedule_node (g->s, td__schedule_value (g->s, kind, index, bytes), n);

  td__map_put (&g->nodes, n->id, node);
  return node;
}

static size_t
bytes_of (const TdNode *n)
{
  return (size_t)td__size (&n->shape) * td__dtype_sizes[n->dtype];
}

static void
add_external (Graph *g, TdNode *n, int argument)
{
  TdSchedule *s = g->s;

  s->externals = td__xrealloc (s->externals, (s->n_externals + 1) * sizeof *s->externals);
  s->externals[s->n_externals]
      = (TdExternal){ .node = new_node (g, n, TD_VALUE_EXTERNAL, s->n_externals, bytes_of (n)),
                      .argument = argument,
                      .var = argument < 0 ? td__var_ref (n->var, TD_HOLD_ENGINE) : NULL,
                      .node_id = n->id };
  s->n_externals++;
}

static bool
is_of_link (const TdNode *n)
{
  return n->var != NULL && (n->var->flags & TD_VAR_PERSISTENT) != 0;
}

/* Without a list, what nobody made and no link has is an input. */
static bool
is_found_input (const Graph *g, const TdNode *n)
{
  return g->options->in == NULL && n->creator == NULL && !is_of_link (n);
}

static bool
is_found (const Graph *g, const TdNode *n)
{
  return td__map_get (&g->nodes, n->id) != TD_ABSENT;
}

static TdStatus
add_inputs (Graph *g, TdVar *const *outs, int n_out)
{
  for (int i = 0; i < g->options->n_in; i++)
    add_external (g, g->options->in[i]->node, i);
  for (size_t i = 0; i < g->n_ops; i++)
    for (int k = 0; k < g->ops[i]->n_in; k++)
      if (is_found_input (g, g->ops[i]->in[k]) && !is_found (g, g->ops[i]->in[k]))
        add_external (g, g->ops[i]->in[k], (int)g->s->n_externals);
  for (int i = 0; i < n_out; i++)
    if (is_found_input (g, outs[i]->node) && !is_found (g, outs[i]->node))
      add_external (g, outs[i]->node, (int)g->s->n_externals);
  g->s->n_arguments = g->s->n_externals;
  return TD_OK;
}

/* "linear at net.c:12". */
static const char *
user_text (const TdOp *user, char *text, size_t size)
{
  if (user == NULL || user->site == NULL)
    snprintf (text, size, "%s", user == NULL ? "an output" : user->cls->name);
  else
    snprintf (text, size, "%s at %.200s:%d", user->cls->name, user->site->file,
              user->site->line);
  return text;
}

/* A leaf that is no input: a parameter, or an array that the code brought.  One that an
 * operation made, whose graph was not kept, is neither. */
static TdStatus
add_leaf (Graph *g, TdNode *n, const TdOp *user, const TdSite *site)
{
  TdSchedule *s = g->s;
  TdBuffer *b = n->var != NULL ? n->var->buffer : n->retained;
  const TdSite *from = n->var != NULL ? n->var->site : NULL;
  char text[300];

  if (!is_of_link (n) && n->category != TD_MEM_INPUT && n->category != TD_MEM_PARAMETER)
    return td__fail (TD_ERR_ARG, call, site,
                     "what %s uses is the result of an operation that kept no graph: run the "
                     "code in TD_USING (keep_graph, true), or list it as an input",
                     user_text (user, text, sizeof text));
  if (b == NULL)
    return td__fail (TD_ERR_STATE, call, site,
                     "an array that %s uses is gone: run the code in TD_USING (keep_graph, "
                     "true), or list it as an input",
                     user_text (user, text, sizeof text));
  if (n->var != NULL && (is_of_link (n) || n->var->holds[TD_HOLD_USER] > 0))
    {
      add_external (g, n, -1);
      return TD_OK;
    }
  s->constants = td__xrealloc (s->constants, (s->n_constants + 1) * sizeof *s->constants);
  s->constants[s->n_constants] = (TdConstant){ td__buffer_ref (b), from };
  new_node (g, n, TD_VALUE_CONSTANT, s->n_constants, bytes_of (n));
  s->n_constants++;
  return TD_OK;
}

/* Results that nothing holds are nodes as well, which no step reads. */
static uint32_t
result_node (Graph *g, const TdOp *op, int k, const TdNode *like)
{
  const TdNode none = { .shape = { 1, { 1 } }, .dtype = like->dtype };
  const TdNode *n = op->out[k];
  uint32_t value;

  if (n == NULL)
    return td__schedule_node (
        g->s, td__schedule_value (g->s, TD_VALUE_INTERIOR, 0, bytes_of (&none)), &none);
  if (k > 0 || (op->cls->flags & TD_OP_VIEW) == 0)
    return new_node (g, n, TD_VALUE_INTERIOR, 0, bytes_of (n));
  value = g->s->nodes[td__map_get (&g->nodes, op->in[0]->id)].value;
  td__map_put (&g->nodes, n->id, g->s->n_nodes);
  return td__schedule_node (g->s, value, n);
}

static void
add_step (Graph *g, const TdOp *op)
{
  TdSchedule *s = g->s;
  const uint32_t in = td__schedule_operands (s, (uint32_t)op->n_in),
                 out = td__schedule_operands (s, (uint32_t)op->n_out);
  TdStep built = { .kind = TD_STEP_OP,
                   .in = in,
                   .n_in = (uint32_t)op->n_in,
                   .out = out,
                   .n_out = (uint32_t)op->n_out,
                   .cls = op->cls,
                   .site = op->site,
                   .path = op->path,
                   .external = TD_ABSENT };

  for (int k = 0; k < op->n_in; k++)
    s->operands[in + (uint32_t)k] = td__map_get (&g->nodes, op->in[k]->id);
  for (int k = 0; k < op->n_out; k++)
    {
      const uint32_t node = result_node (g, op, k, op->in[0]);

      s->operands[out + (uint32_t)k] = node;
      td__node_value (s, node)->n_writers = 1;
    }
  if (op->cls->attrs_size > 0)
    {
      built.attrs = td__xmalloc (op->cls->attrs_size);
      memcpy (built.attrs, op->attrs, op->cls->attrs_size);
    }
  *td__steps_add (&s->forward) = built;
}

/* Operations that stand for code which is not in the graph. */
static void
add_lack (Graph *g, const TdOp *op)
{
  const TdStep step = { .kind = TD_STEP_OP, .cls = op->cls, .site = op->site };

  td__export_lack (&g->lacks, &step,
                   op->cls == &td__static_class
                       ? "the one operation that a replayed static function is (td_static_save "
                         "writes it; without config use_static_graph its code runs)"
                       : NULL);
}

static TdStatus
add_ops (Graph *g, const TdSite *site)
{
  TdStatus status = TD_OK;

  for (size_t i = 0; i < g->n_ops && status == TD_OK; i++)
    {
      const TdOp *op = g->ops[i];

      if (op->cls == &td__static_class || (op->cls->flags & TD_OP_CAPTURES)
          || op->cls->release != NULL)
        add_lack (g, op);
      for (int k = 0; k < op->n_in && status == TD_OK; k++)
        if (!is_found (g, op->in[k]))
          status = add_leaf (g, op->in[k], op, site);
      if (status == TD_OK)
        add_step (g, op);
    }
  return status;
}

static TdStatus
add_outputs (Graph *g, TdVar *const *outs, int n, const TdSite *site)
{
  TdStatus status = TD_OK;

  g->s->outputs = td__xcalloc ((size_t)n + 1, sizeof *g->s->outputs);
  for (int i = 0; i < n && status == TD_OK; i++)
    {
      if (!is_found (g, outs[i]->node))
        status = add_leaf (g, outs[i]->node, NULL, site);
      if (status == TD_OK)
        g->s->outputs[g->s->n_outputs++]
            = (TdOutput){ .node = td__map_get (&g->nodes, outs[i]->node->id),
                          .same_as = TD_ABSENT,
                          .external = TD_ABSENT };
    }
  return status;
}

/* Every input of the list leads to an output: else what was computed from it kept no graph, and
 * its numbers of this run would go into the file. */
static TdStatus
check_inputs (const Graph *g, const TdSite *site)
{
  for (int i = 0; i < g->options->n_in; i++)
    for (int k = 0; k < i; k++)
      if (g->options->in[i]->node == g->options->in[k]->node)
        return td__fail (TD_ERR_ARG, call, site, "input %d is input %d once more", i, k);
  for (uint32_t i = 0; i < g->s->n_arguments; i++)
    if (!td__export_is_used (g->s, g->s->externals[i].node))
      return td__fail (
          TD_ERR_ARG, call, site,
          "no output was computed from input %u by operations that kept their graph: "
          "run the code in TD_USING (keep_graph, true), or leave an input out that none uses",
          i);
  return TD_OK;
}

static TdStatus
save (Graph *g, TdVar *const *outs, int n, const char *path, const TdSite *site)
{
  TdStatus status;

  collect (g, outs, n);
  g->s->device = outs[0]->node->device;
  status = add_inputs (g, outs, n);
  if (status == TD_OK)
    status = add_ops (g, site);
  if (status == TD_OK)
    status = add_outputs (g, outs, n, site);
  if (status == TD_OK)
    status = check_inputs (g, site);
  if (status == TD_OK)
    status = td__export_lacks_end (&g->lacks, call, "ONNX", "", g->options->lack,
                                   g->options->user, site);
  if (status == TD_OK)
    status = td__export_onnx (call, g->options->name != NULL ? g->options->name : "graph", g->s,
                              g->options, path, site);
  return status;
}

static bool
all_usable (TdVar *const *vars, int n, const TdSite *site)
{
  for (int i = 0; i < n; i++)
    if (!td__var_usable (vars[i], call, site))
      return false;
  return true;
}

TdStatus
td_save_onnx_at (TdVar *const *outs, size_t n, const char *path, TdOnnxOpt options,
                 const TdSite *site)
{
  Graph g = { .options = &options };
  TdStatus status;

  if (td__check_thread (call) != TD_OK || !td__list_there (outs, (int64_t)n, call, site)
      || !td__list_there (options.in, options.n_in, call, site))
    return td__error_status ();
  if (n == 0 || n > INT32_MAX || path == NULL || options.n_in < 0)
    return td__fail (TD_ERR_ARG, call, site, "outputs, and a file's name, expected");
  if (!all_usable (outs, (int)n, site) || !all_usable (options.in, options.n_in, site))
    return td_error () != NULL ? td__error_status ()
                               : td__fail (TD_ERR_STATE, call, site,
                                           "a variable is of an operation that failed, and "
                                           "whose error was cleared");
  g.s = td__schedule_new (0);
  status = save (&g, outs, (int)n, path, site);
  td__schedule_free (g.s);
  td__map_free (&g.nodes);
  td__export_lacks_free (&g.lacks);
  free (g.ops);
  return status;
}

TdOnnxOpt
td_save_onnx_options (void)
{
  return (TdOnnxOpt){ TD_SAVE_ONNX_DEFAULTS };
}

TdStatus (td_save_onnx) (TdVar *const *outs, size_t n, const char *path)
{
  return td_save_onnx_at (outs, n, path, td_save_onnx_options (), NULL);
}
