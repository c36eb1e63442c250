/* Recurrent layers as LSTM, GRU and RNN of ONNX, where onnx-loops.c found them.
 *
 * Their sequences lie (steps, batch, units), as ours do in one product.  Weights go from our
 * order of gates to ONNX's in the file.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-fields.h"
#include "onnx.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  TEXT = TD_ONNX_TEXT
};

/* ONNX's gates are i, o, f, c; z, r, h; and one. */
static const struct
{
  const char *type;
  int n_gates;
  bool interleaved;
  int64_t order[4];
} kinds[] = { [TD_LOOP_LSTM] = { "LSTM", 4, true, { 1, 3, 2, 0 } },
              [TD_LOOP_GRU] = { "GRU", 3, false, { 1, 0, 2 } },
              [TD_LOOP_TANH] = { "RNN", 1, false, { 0 } },
              [TD_LOOP_RELU] = { "RNN", 1, false, { 0 } } };

/* The file's steps in their order, and what is written of them. */
typedef struct
{
  TdOnnx *o;
  bool *written;        /* by step */
  char (*states)[TEXT]; /* by loop: the value (steps, batch, units), if it is wanted */
} Order;

static const TdStep *
step_at (const TdOnnx *o, uint32_t i)
{
  return &o->s->forward.steps[i];
}

/* to = type (from, operand), along an axis where it is not below 0. */
static void
two (TdOnnx *o, const char *type, const char *from, const char *operand, int axis,
     const char *to)
{
  TdOnnxNodeWriter n = td__onnx_node (o, type, NULL);

  td__onnx_in (&n, from);
  td__onnx_in (&n, operand);
  if (axis >= 0)
    td__onnx_int (&n, "axis", axis);
  td__onnx_out (&n, to);
  td__onnx_end (&n);
}

/* The same, with a list. */
static void
with_list (TdOnnx *o, const char *type, const char *from, const int64_t *list, int n, int axis,
           const char *to)
{
  char name[TEXT];

  two (o, type, from, td__onnx_constant_ints (o, list, n, name, sizeof name), axis, to);
}

/* An array as (sizes), which may follow symbols. */
static void
reshaped (TdOnnx *o, const char *from, const TdOnnxSize *sizes, int n, const char *to)
{
  char list[TEXT];

  td__onnx_reshape_list (o, NULL, 0, sizes, n, list, sizeof list);
  two (o, "Reshape", from, list, -1, to);
}

/* Matrices (gates * units, k), or biases of them, in ONNX's order: (1, gates * units, k). */
static void
ordered (TdOnnx *o, TdLoopKind kind, uint32_t node, int64_t units, char *to)
{
  const TdShape *w = &o->s->nodes[node].shape;
  const int64_t n = kinds[kind].n_gates, k = w->dim[1];
  const int64_t whole[] = { 1, n * units, k };
  const int64_t apart[]
      = { kinds[kind].interleaved ? units : n, kinds[kind].interleaved ? n : units, k };
  static const int64_t turned[] = { 1, 0, 2 };
  char cut[TEXT], order[TEXT];
  TdOnnxNodeWriter turn;

  snprintf (order, sizeof order, "%s", td__onnx_value (o, node));
  if (n > 1)
    {
      with_list (o, "Reshape", order, apart, w->ndim + 1, -1,
                 td__onnx_made (o, cut, sizeof cut));
      if (kinds[kind].interleaved)
        {
          turn = td__onnx_node (o, "Transpose", NULL);
          td__onnx_in (&turn, cut);
          td__onnx_ints (&turn, "perm", turned, w->ndim + 1);
          td__onnx_out (&turn, td__onnx_made (o, cut, sizeof cut));
          td__onnx_end (&turn);
        }
      with_list (o, "Gather", cut, kinds[kind].order, (int)n, 0,
                 td__onnx_made (o, order, sizeof order));
    }
  with_list (o, "Reshape", order, whole, w->ndim + 1, -1, td__onnx_made (o, to, TEXT));
}

/* Both biases, one after the other; one that is not there is zeros. */
static void
biases (TdOnnx *o, const TdOnnxLoop *loop, int64_t units, char *to)
{
  const uint32_t nodes[] = { loop->xb, loop->hb };
  const TdShape shape = { 2, { 1, kinds[loop->kind].n_gates * units } };
  const TdDtype dtype = (TdDtype)o->s->nodes[loop->xw].dtype;
  char parts[2][TEXT], zero[TEXT];
  TdOnnxNodeWriter n;

  to[0] = '\0';
  if (loop->xb == TD_ABSENT && loop->hb == TD_ABSENT)
    return;
  for (int i = 0; i < 2; i++)
    if (nodes[i] != TD_ABSENT)
      ordered (o, loop->kind, nodes[i], units, parts[i]);
    else
      {
        td__onnx_constant_number (o, 0, dtype, zero, sizeof zero);
        with_list (o, "Expand", zero, shape.dim, 2, -1, td__onnx_made (o, parts[i], TEXT));
      }
  n = td__onnx_node (o, "Concat", NULL);
  td__onnx_in (&n, parts[0]);
  td__onnx_in (&n, parts[1]);
  td__onnx_int (&n, "axis", 1);
  td__onnx_out (&n, td__onnx_made (o, to, TEXT));
  td__onnx_end (&n);
}

/* The inputs as (steps, batch, units). */
static void
inputs (TdOnnx *o, const TdOnnxLoop *loop, char *to)
{
  const int64_t first[] = { 0 };
  char (*parts)[TEXT];
  TdOnnxNodeWriter n;

  if (loop->all != TD_ABSENT)
    {
      const TdOnnxSize sizes[]
          = { td__onnx_size (loop->n), o->sizes.of[loop->h[0]][0], o->sizes.of[loop->all][1] };

      reshaped (o, td__onnx_value (o, loop->all), sizes, 3, td__onnx_made (o, to, TEXT));
      return;
    }
  parts = td__xcalloc ((size_t)loop->n, sizeof *parts);
  for (int t = 0; t < loop->n; t++)
    with_list (o, "Unsqueeze", td__onnx_value (o, loop->x[t]), first, 1, -1,
               td__onnx_made (o, parts[t], TEXT));
  n = td__onnx_node (o, "Concat", NULL);
  for (int t = 0; t < loop->n; t++)
    td__onnx_in (&n, parts[t]);
  td__onnx_int (&n, "axis", 0);
  td__onnx_out (&n, td__onnx_made (o, to, TEXT));
  td__onnx_end (&n);
  free (parts);
}

/* A state before the first step as (1, batch, units); "": zeros. One of a batch of 1 is every
 * row's. */
static void
state (TdOnnx *o, const TdOnnxLoop *loop, uint32_t node, char *to)
{
  const int64_t first[] = { 0 };
  const TdOnnxSize *rows = o->sizes.of[loop->h[0]];
  const TdOnnxSize sizes[] = { td__onnx_size (1), rows[0], rows[1] };
  char one[TEXT], list[TEXT];

  to[0] = '\0';
  if (node == TD_ABSENT)
    return;
  with_list (o, "Unsqueeze", td__onnx_value (o, node), first, 1, -1,
             td__onnx_made (o, to, TEXT));
  if (td__onnx_size_same (&rows[0], &o->sizes.of[node][0]))
    return;
  strcpy (one, to);
  td__onnx_size_list (o, sizes, 3, list, sizeof list);
  td__onnx_call (o, (TdOnnxCall){ "Expand", { one, list } }, NULL, to);
}

/* Which nodes others read than a loop's own cells, and what joins its states. */
static bool *
read_outside (const TdOnnx *o, uint32_t loop)
{
  bool *reads = td__xcalloc (o->s->n_nodes + 1, sizeof *reads);
  uint32_t *nodes = td__xcalloc (o->s->forward.n + 8, sizeof *nodes);

  for (uint32_t i = 0; i < o->s->forward.n; i++)
    {
      const TdOnnxRole *role = &o->loops.role[i];

      for (uint32_t k = 0; k < step_at (o, i)->n_in && role->loop == TD_ABSENT && !role->skipped
                           && role->join != loop;
           k++)
        reads[td__step_in (o->s, step_at (o, i), k)] = true;
    }
  for (uint32_t l = 0; l < o->loops.n; l++)
    for (uint32_t n = td__onnx_loop_reads (&o->loops.loops[l], nodes); n-- > 0;)
      reads[nodes[n]] = true;
  for (uint32_t k = 0; k < o->s->n_outputs; k++)
    reads[o->s->outputs[k].node] = true;
  free (nodes);
  return reads;
}

/* States by their places in Y, and the last ones by themselves. */
static void
states (Order *order, uint32_t l, const char *y, const char *y_h, const char *y_c)
{
  TdOnnx *o = order->o;
  const TdOnnxLoop *loop = &o->loops.loops[l];
  const TdShape scalar = { .ndim = 0 };
  bool *wanted = read_outside (o, l);
  char number[TEXT];

  with_list (o, "Squeeze", y, (const int64_t[]){ 1 }, 1, -1,
             td__onnx_made (o, order->states[l], TEXT));
  for (int t = 0; t < loop->n; t++)
    if (wanted[loop->h[t]] && t < loop->n - 1)
      {
        const int64_t at = loop->backwards ? loop->n - 1 - t : t;

        td__onnx_constant (o, TD_I64, &scalar, &at, number, sizeof number);
        two (o, "Gather", order->states[l], number, 0, td__onnx_value (o, loop->h[t]));
      }
  if (wanted[loop->h[loop->n - 1]])
    with_list (o, "Squeeze", y_h, (const int64_t[]){ 0 }, 1, -1,
               td__onnx_value (o, loop->h[loop->n - 1]));
  if (loop->c_last != TD_ABSENT && wanted[loop->c_last])
    with_list (o, "Squeeze", y_c, (const int64_t[]){ 0 }, 1, -1,
               td__onnx_value (o, loop->c_last));
  free (wanted);
}

static void
write_loop (Order *order, uint32_t l)
{
  TdOnnx *o = order->o;
  const TdOnnxLoop *loop = &o->loops.loops[l];
  const int64_t units = td__onnx_fixed (o, o->step, loop->h[0], 1);
  char x[TEXT], w[TEXT], r[TEXT], b[TEXT], h[TEXT], c[TEXT], y[3][TEXT];
  TdOnnxNodeWriter n;

  inputs (o, loop, x);
  ordered (o, loop->kind, loop->xw, units, w);
  ordered (o, loop->kind, loop->hw, units, r);
  biases (o, loop, units, b);
  state (o, loop, loop->h_first, h);
  state (o, loop, loop->c_first, c);
  n = td__onnx_node (o, kinds[loop->kind].type, NULL);
  td__onnx_in (&n, x);
  td__onnx_in (&n, w);
  td__onnx_in (&n, r);
  td__onnx_in (&n, b);
  td__onnx_in (&n, "");
  td__onnx_in (&n, h);
  if (loop->kind == TD_LOOP_LSTM)
    td__onnx_in (&n, c);
  td__onnx_int (&n, "hidden_size", units);
  if (loop->backwards)
    td__onnx_text (&n, "direction", "reverse");
  if (loop->kind == TD_LOOP_GRU)
    td__onnx_int (&n, "linear_before_reset", 1);
  if (loop->kind == TD_LOOP_RELU)
    td__onnx_texts (&n, "activations", "Relu", 1);
  for (int i = 0; i < (loop->kind == TD_LOOP_LSTM ? 3 : 2); i++)
    td__onnx_out (&n, td__onnx_made (o, y[i], TEXT));
  td__onnx_end (&n);
  states (order, l, y[0], y[1], y[2]);
}

/* The states of a loop below each other: (steps * batch, units). */
static void
write_join (Order *order, const TdStep *step, uint32_t l)
{
  const uint32_t node = td__step_out (order->o->s, step, 0);

  reshaped (order->o, order->states[l], order->o->sizes.of[node], 2,
            td__onnx_value (order->o, node));
}

static void write_step (Order *order, uint32_t i);

static void
write_maker (Order *order, uint32_t node)
{
  if (order->o->loops.maker[node] != TD_ABSENT)
    write_step (order, order->o->loops.maker[node]);
}

/* What a loop reads; its own steps are written with it. */
static void
write_reads (Order *order, uint32_t l)
{
  const TdOnnxLoops *loops = &order->o->loops;
  uint32_t *reads = td__xcalloc ((size_t)loops->loops[l].n + 7, sizeof *reads);
  const uint32_t n = td__onnx_loop_reads (&loops->loops[l], reads);

  for (uint32_t i = 0; i < order->o->s->forward.n; i++)
    order->written[i] = order->written[i] || loops->role[i].loop == l;
  for (uint32_t k = 0; k < n; k++)
    write_maker (order, reads[k]);
  free (reads);
}

/* One step, and before it what it reads. */
static void
write_step (Order *order, uint32_t i)
{
  TdOnnx *o = order->o;
  const TdOnnxRole *role = &o->loops.role[i];
  const TdStep *step = step_at (o, i);

  if (order->written[i] || role->skipped)
    return;
  order->written[i] = true;
  if (role->loop != TD_ABSENT)
    write_reads (order, role->loop);
  for (uint32_t k = 0; k < step->n_in && role->loop == TD_ABSENT; k++)
    write_maker (order, td__step_in (o->s, step, k));
  o->step = step;
  if (role->loop != TD_ABSENT)
    {
      o->step = step_at (o, o->loops.maker[o->loops.loops[role->loop].h[0]]);
      write_loop (order, role->loop);
    }
  else if (role->join != TD_ABSENT)
    write_join (order, step, role->join);
  else
    td__onnx_step (o, step);
}

void
td__onnx_all_steps (TdOnnx *o)
{
  Order order = { o, td__xcalloc (o->s->forward.n + 1, sizeof *order.written),
                  td__xcalloc (o->loops.n + 1, sizeof *order.states) };

  for (uint32_t i = 0; i < o->s->forward.n; i++)
    write_step (&order, i);
  o->step = NULL;
  free (order.written);
  free (order.states);
}
