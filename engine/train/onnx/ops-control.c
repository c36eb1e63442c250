/* ONNX's control flow: graphs in attributes, run as code is run, again and again or not at all.
 *
 * What decides (a condition, a number of turns) is read; the operations of the turns that were
 * taken are the graph, and gradients go back through those.
 *
 * SPDX-License-Identifier: MIT */
#include "run.h"

#include "host-memory.h"

#include <stdlib.h>

/* --- what all of them need --- */

static void
put (TdOnnxRun *r, int k, TdOnnxValue v)
{
  if (k < r->node->n_out && r->node->out[k] != TD_ONNX_ABSENT)
    r->values[r->node->out[k]] = v;
}

/* One number that is true or not.  False after a failure, too. */
static bool
holds (TdOnnxRun *r, const TdOnnxValue *v)
{
  const int64_t n = v->host != NULL                           ? v->host->n
                    : v->var != NULL && !td_poisoned (v->var) ? td_size (v->var)
                                                              : 0;

  if (n == 1)
    return v->host != NULL ? td__host_float (v->host, 0) != 0 : td_item (v->var) != 0;
  td__run_fail (r, TD_ERR_SHAPE, "a condition of one number expected, got %lld", (long long)n);
  return false;
}

static TdOnnxValue
number (TdOnnxRun *r, TdDtype dtype, int64_t value)
{
  static const TdShape scalar = { 0, { 0 } };
  TdOnnxHost *h = td__host_new (&r->arena, dtype, &scalar);

  if (h == NULL)
    td__run_fail (r, TD_ERR_STATE, "there is no room for more turns");
  else
    h->i[0] = value;
  return (TdOnnxValue){ NULL, h };
}

enum
{
  MOST_TURNS = 1 << 18 /* in a call; a count that is damaged must not take all memory */
};

static bool
turn_begins (TdOnnxRun *r)
{
  if (++r->n_turns > MOST_TURNS)
    td__run_fail (r, TD_ERR_STATE, "more than %d turns in a call", MOST_TURNS);
  return !r->failed;
}

/* What the turns make one after the other. */
typedef struct
{
  TdOnnxValue *turns;
  size_t n, room;
} Scanned;

static void
add_turn (Scanned *s, TdOnnxValue v)
{
  if (s->n == s->room)
    {
      s->room = 2 * s->room + 8;
      s->turns = td__xrealloc (s->turns, s->room * sizeof *s->turns);
    }
  s->turns[s->n++] = v;
}

/* Of no turns there is only what the file says of their shape; a size that it leaves open is
 * 0. */
static TdVar *
nothing_scanned (TdOnnxRun *r, const TdOnnxPort *port, int axis)
{
  TdShape shape = { port->ndim + 1, { 0 } };

  if (port->ndim < 0 || port->ndim >= TD_MAX_DIMS || port->dtype < 0 || axis > port->ndim)
    {
      td__run_fail (r, TD_ERR_SHAPE,
                    "no turn was taken, and the file does not say of what "
                    "shape its output is");
      return td__poison ();
    }
  for (int d = 0; d < port->ndim; d++)
    shape.dim[d + (d >= axis)] = port->dim[d] > 0 ? port->dim[d] : 0;
  shape.dim[axis] = 0;
  return td_zeros ((TdDtype)port->dtype, shape);
}

/* Numbers of turns that are all on the host stay there. */
static const TdOnnxHost *
stacked_numbers (TdOnnxRun *r, const Scanned *s)
{
  const TdOnnxHost *first = s->turns[0].host;
  TdShape shape = { 1, { (int64_t)s->n } };
  TdOnnxHost *to;

  for (size_t i = 0; i < s->n; i++)
    if (s->turns[i].host == NULL || s->turns[i].host->dtype != first->dtype
        || s->turns[i].host->shape.ndim != 0)
      return NULL;
  to = td__host_new (&r->arena, first->dtype, &shape);
  for (size_t i = 0; to != NULL && i < s->n; i++)
    if (to->f != NULL)
      to->f[i] = s->turns[i].host->f[0];
    else
      to->i[i] = s->turns[i].host->i[0];
  return to;
}

/* All turns along a new axis; takes the list. */
static void
put_scanned (TdOnnxRun *r, int k, Scanned *s, const TdOnnxPort *port, int64_t axis)
{
  TdVar **vars = td__xcalloc (s->n + 1, sizeof *vars);
  TdOnnxValue to = { NULL, NULL };

  if (!r->failed && s->n == 0)
    to.var = nothing_scanned (r, port, (int)axis);
  else if (!r->failed && (axis != 0 || (to.host = stacked_numbers (r, s)) == NULL))
    {
      for (size_t i = 0; i < s->n; i++)
        vars[i]
            = s->turns[i].var != NULL ? s->turns[i].var : td__run_upload (r, s->turns[i].host);
      to.var = td_stack (vars, (int)s->n, (int)axis);
    }
  put (r, k, to);
  free (vars);
  free (s->turns);
}

/* --- If --- */

static void
branch (TdOnnxRun *r)
{
  const bool then = holds (r, &r->values[r->node->in[0]]);
  const TdOnnxGraph *body = td__onnx_body (r->node, then ? "then_branch" : "else_branch");

  if (r->failed || !td__run_body (r, body))
    return;
  for (int k = 0; k < body->n_out; k++)
    put (r, k, r->values[body->out[k].value]);
}

static const char *
branch_lacks (const TdOnnxGraph *g, const TdOnnxNode *n)
{
  const TdOnnxGraph *then = td__onnx_body (n, "then_branch"),
                    *otherwise = td__onnx_body (n, "else_branch");

  (void)g;
  if (then == NULL || otherwise == NULL)
    return "one of two branches";
  if (then->n_in > 0 || otherwise->n_in > 0)
    return "inputs of a branch";
  return then->n_out != n->n_out || otherwise->n_out != n->n_out ? "as many outputs in branches"
                                                                 : NULL;
}

/* --- Loop --- */

static void
loop (TdOnnxRun *r)
{
  const TdOnnxNode *n = r->node;
  const TdOnnxGraph *body = td__onnx_body (n, "body");
  const int n_carried = body->n_in - 2, n_scanned = body->n_out - 1 - n_carried;
  const bool asks = td__run_there (r, 1);
  TdOnnxValue *carried = td__xcalloc ((size_t)n_carried + 1, sizeof *carried);
  Scanned *scanned = td__xcalloc ((size_t)n_scanned + 1, sizeof *scanned);
  int64_t most = INT64_MAX;
  bool goes_on = !asks || holds (r, &r->values[n->in[1]]);

  if (td__run_there (r, 0) && td__run_ints (r, 0, "numbers", &most, 1) != 1)
    td__run_fail (r, TD_ERR_ARG, "a number of turns expected");
  for (int k = 0; k < n_carried; k++)
    carried[k] = r->values[n->in[2 + k]];
  for (int64_t t = 0; t < most && goes_on && turn_begins (r); t++)
    {
      r->values[body->in[0].value] = number (r, TD_I64, t);
      r->values[body->in[1].value] = number (r, TD_BOOL, 1);
      for (int k = 0; k < n_carried; k++)
        r->values[body->in[2 + k].value] = carried[k];
      if (r->failed || !td__run_body (r, body))
        break;
      for (int k = 0; k < n_carried; k++)
        carried[k] = r->values[body->out[1 + k].value];
      for (int k = 0; k < n_scanned; k++)
        add_turn (&scanned[k], r->values[body->out[1 + n_carried + k].value]);
      goes_on = !asks || holds (r, &r->values[body->out[0].value]);
    }
  for (int k = 0; k < n_carried; k++)
    put (r, k, carried[k]);
  for (int k = 0; k < n_scanned; k++)
    put_scanned (r, n_carried + k, &scanned[k], &body->out[1 + n_carried + k], 0);
  free (carried);
  free (scanned);
}

static bool
all_there (const TdOnnxNode *n, int from, int to)
{
  for (int i = from; i < to; i++)
    if (i >= n->n_in || n->in[i] == TD_ONNX_ABSENT)
      return false;
  return true;
}

static const char *
loop_lacks (const TdOnnxGraph *g, const TdOnnxNode *n)
{
  const TdOnnxGraph *body = td__onnx_body (n, "body");

  (void)g;
  if (body == NULL)
    return "the body";
  if (body->n_in < 2 || n->n_in > body->n_in || !all_there (n, 2, body->n_in))
    return "inputs that fit the body";
  if (body->n_out < body->n_in - 1 || n->n_out > body->n_out - 1)
    return "outputs that fit the body";
  return n->n_in == 0
                 || (n->in[0] == TD_ONNX_ABSENT && (n->n_in < 2 || n->in[1] == TD_ONNX_ABSENT))
             ? "an end (a count or a condition)"
             : NULL;
}

/* --- Scan --- */

/* Number i of a list that may be left out. */
static int64_t
listed (const TdOnnxNode *n, const char *name, int i)
{
  const TdOnnxAttr *a = td__onnx_attr (n, name);

  return a != NULL && a->kind == TD_ONNX_INTS && i < a->n ? a->ints[i] : 0;
}

/* Axis i of a list of those of an array with so many.  -1 after a failure. */
static int64_t
listed_axis (TdOnnxRun *r, const char *name, int i, int ndim)
{
  const int64_t given = listed (r->node, name, i), axis = given < 0 ? given + ndim : given;

  if (axis >= 0 && axis < ndim)
    return axis;
  td__run_fail (r, TD_ERR_ARG, "axis %lld of %d axes", (long long)given, ndim);
  return -1;
}

typedef struct
{
  const TdOnnxGraph *body;
  int n_states, n_scans, n_scanned;
  int64_t n_turns;
  int64_t axes[TD_MAX_DIMS * 4];
} Scan;

enum
{
  MOST_SCANS = TD_MAX_DIMS * 4
};

/* How many turns there are: the size of every array along its axis. */
static bool
measure (TdOnnxRun *r, Scan *s)
{
  s->n_turns = -1;
  for (int i = 0; i < s->n_scans; i++)
    {
      const TdShape shape = td__run_shape (r, s->n_states + i);

      s->axes[i] = listed_axis (r, "scan_input_axes", i, shape.ndim);
      if (r->failed)
        return false;
      if (s->n_turns >= 0 && s->n_turns != shape.dim[s->axes[i]])
        td__run_fail (r, TD_ERR_SHAPE, "inputs of one length expected, got %lld and %lld",
                      (long long)s->n_turns, (long long)shape.dim[s->axes[i]]);
      s->n_turns = shape.dim[s->axes[i]];
    }
  return !r->failed;
}

static TdVar *
slice_at (TdOnnxRun *r, const Scan *s, int i, int64_t t)
{
  TdSlice at[TD_MAX_DIMS];
  const bool backward = listed (r->node, "scan_input_directions", i) != 0;

  for (int d = 0; d < s->axes[i]; d++)
    at[d] = TD_ALL;
  at[s->axes[i]] = TD_AT (backward ? s->n_turns - 1 - t : t);
  return td_get_item (td__run_var (r, s->n_states + i), at, (int)s->axes[i] + 1);
}

static void
turn_round (Scanned *s)
{
  for (size_t i = 0; i < s->n / 2; i++)
    {
      const TdOnnxValue v = s->turns[i];

      s->turns[i] = s->turns[s->n - 1 - i];
      s->turns[s->n - 1 - i] = v;
    }
}

/* Along which axis the turns of output k are put together: of one more than a turn has. */
static int64_t
axis_of_output (TdOnnxRun *r, const Scan *s, int k, const Scanned *made)
{
  const TdOnnxPort *port = &s->body->out[s->n_states + k];
  int ndim = port->ndim;

  if (made->n > 0)
    ndim = made->turns[0].host != NULL ? made->turns[0].host->shape.ndim
                                       : td_ndim (made->turns[0].var);
  return listed_axis (r, "scan_output_axes", k, ndim + 1);
}

static void
scan (TdOnnxRun *r)
{
  const TdOnnxNode *n = r->node;
  Scan s = { .body = td__onnx_body (n, "body"),
             .n_scans = (int)td__onnx_attr_int (n, "num_scan_inputs", 0) };
  TdOnnxValue *states;
  Scanned *scanned;

  s.n_states = n->n_in - s.n_scans;
  s.n_scanned = s.body->n_out - s.n_states;
  if (!measure (r, &s))
    return;
  states = td__xcalloc ((size_t)s.n_states + 1, sizeof *states);
  scanned = td__xcalloc ((size_t)s.n_scanned + 1, sizeof *scanned);
  for (int k = 0; k < s.n_states; k++)
    states[k] = r->values[n->in[k]];
  for (int64_t t = 0; t < s.n_turns && turn_begins (r); t++)
    {
      for (int i = 0; i < s.n_scans; i++)
        r->values[s.body->in[s.n_states + i].value]
            = (TdOnnxValue){ slice_at (r, &s, i, t), NULL };
      for (int k = 0; k < s.n_states; k++)
        r->values[s.body->in[k].value] = states[k];
      if (!td__run_body (r, s.body))
        break;
      for (int k = 0; k < s.n_states; k++)
        states[k] = r->values[s.body->out[k].value];
      for (int k = 0; k < s.n_scanned; k++)
        add_turn (&scanned[k], r->values[s.body->out[s.n_states + k].value]);
    }
  for (int k = 0; k < s.n_states; k++)
    put (r, k, states[k]);
  for (int k = 0; k < s.n_scanned; k++)
    {
      const int64_t axis = r->failed ? 0 : axis_of_output (r, &s, k, &scanned[k]);

      if (listed (n, "scan_output_directions", k) != 0)
        turn_round (&scanned[k]);
      put_scanned (r, s.n_states + k, &scanned[k], &s.body->out[s.n_states + k], axis);
    }
  free (states);
  free (scanned);
}

static const char *
scan_lacks (const TdOnnxGraph *g, const TdOnnxNode *n)
{
  const TdOnnxGraph *body = td__onnx_body (n, "body");
  const int64_t n_scans = td__onnx_attr_int (n, "num_scan_inputs", 0);

  (void)g;
  if (body == NULL)
    return "the body";
  if (n_scans < 1 || n_scans > n->n_in || n_scans > MOST_SCANS || body->n_in != n->n_in
      || !all_there (n, 0, n->n_in))
    return "inputs that fit the body";
  return body->n_out < n->n_in - n_scans || n->n_out > body->n_out ? "outputs that fit the body"
                                                                   : NULL;
}

/* clang-format off */
const TdOnnxRow td__onnx_control[] = {
  { "If", .from = 1, .least_in = 1, .most_in = 1, .most_out = -1, .read = 1, .attributes = "then_branch else_branch",
    .has_bodies = true, .run = branch, .limits = "arrays only", .lacks = branch_lacks },
  { "Loop", .from = 1, .least_in = 0, .most_in = -1, .most_out = -1, .read = 3, .attributes = "body",
    .has_bodies = true, .run = loop, .limits = "arrays only, 262144 turns in a call", .lacks = loop_lacks },
  { "Scan", .from = 9, .least_in = 1, .most_in = -1, .most_out = -1, .has_bodies = true,
    .attributes = "body num_scan_inputs scan_input_axes scan_input_directions scan_output_axes scan_output_directions",
    .run = scan, .limits = "32 scanned inputs, 262144 turns in a call", .lacks = scan_lacks },
  { 0 },
};
/* clang-format on */
