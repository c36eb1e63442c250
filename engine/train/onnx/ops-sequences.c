/* ONNX's recurrent layers over whole sequences.
 *
 * Gates lie i, o, f, c (LSTM) and z, r, h (GRU) there, and i, f, c, o and r, z, h here.
 *
 * SPDX-License-Identifier: MIT */
#include "run.h"

#include "host-memory.h"

#include <stdlib.h>
#include <string.h>

enum
{
  MOST_GATES = 4,
  MOST_MATRICES = 2 * MOST_GATES
};

/* What a layer is called with, time first: x (T, B, I), h (directions, B, N). */
typedef struct
{
  int n_gates, directions, n_steps;
  int64_t size;
  bool backward; /* one direction, from the end */
  bool batch_first;
  TdVar *h, *c; /* or NULL */
  TdVar *ws[2 * MOST_MATRICES], *bs[2 * MOST_MATRICES];
  TdVar **xs, **ys;
  TdVar *h_end, *c_end;
} Layer;

/* Of ONNX's gates, in the engine's order. */
static const int lstm_gates[] = { 0, 2, 3, 1 }, gru_gates[] = { 1, 0, 2 }, rnn_gates[] = { 0 };

static const int *
order_of (const Layer *l)
{
  return l->n_gates == 4 ? lstm_gates : l->n_gates == 3 ? gru_gates : rnn_gates;
}

/* Row d of a (directions, n N, ...), cut into n pieces. */
static bool
pieces (TdOnnxRun *r, TdVar *v, int d, int n, TdVar **to)
{
  TdVar *row = td_get_item (v, &TD_AT (d), 1);

  if (n == 1)
    {
      to[0] = row;
      return !td_poisoned (row);
    }
  r->failed |= td_split_axis (row, n, 0, to) != TD_OK;
  return !r->failed;
}

static bool
weights_of (TdOnnxRun *r, Layer *l)
{
  const int n = l->n_gates, *order = order_of (l);
  TdVar *w[MOST_MATRICES], *b[MOST_MATRICES];

  for (int d = 0; d < l->directions; d++)
    {
      if (!pieces (r, td__run_var (r, 1), d, n, w)
          || !pieces (r, td__run_var (r, 2), d, n, w + n)
          || (td__run_there (r, 3) && !pieces (r, td__run_var (r, 3), d, 2 * n, b)))
        return false;
      for (int k = 0; k < 2 * n; k++)
        {
          const int from = k < n ? order[k] : n + order[k - n];

          l->ws[2 * n * d + k] = w[from];
          l->bs[2 * n * d + k] = td__run_there (r, 3)
                                     ? b[from]
                                     : td_zeros (td_dtype (w[from]), TD_SHAPE (l->size));
        }
    }
  return true;
}

/* A state (directions, B, N), whatever comes first in the file. */
static TdVar *
state_of (TdOnnxRun *r, const Layer *l, int i)
{
  static const int exchanged[] = { 1, 0, 2 };

  if (!td__run_there (r, i))
    return NULL;
  return l->batch_first ? td_transpose (td__run_var (r, i), exchanged) : td__run_var (r, i);
}

/* Every sequence is as long as the input, or nothing is said of that. */
static bool
lengths_are_full (TdOnnxRun *r, int64_t n_steps)
{
  const TdOnnxHost *h = td__run_there (r, 4) ? td__run_numbers (r, 4) : NULL;

  for (int64_t i = 0; h != NULL && i < h->n; i++)
    if (td__host_int (h, i) != n_steps)
      td__run_fail (r, TD_ERR_ARG, "sequences of one length, %lld, expected, got %lld",
                    (long long)n_steps, (long long)td__host_int (h, i));
  return !r->failed;
}

static bool
layer_of (TdOnnxRun *r, int n_gates, Layer *l)
{
  static const int exchanged[] = { 1, 0, 2 };
  const char *direction = td__onnx_attr_text (r->node, "direction", "forward");
  const TdShape w = td__run_shape (r, 1), recurrent = td__run_shape (r, 2);
  TdVar *x = td__run_var (r, 0);

  *l = (Layer){ .n_gates = n_gates, .directions = direction[0] == 'b' ? 2 : 1 };
  l->backward = direction[0] == 'r';
  l->batch_first = td__onnx_attr_int (r->node, "layout", 0) != 0;
  l->size = recurrent.ndim == 3 ? recurrent.dim[2] : 0;
  if (td_ndim (x) != 3 || w.ndim != 3 || recurrent.ndim != 3 || w.dim[0] != l->directions
      || recurrent.dim[0] != l->directions || w.dim[1] != n_gates * l->size
      || recurrent.dim[1] != w.dim[1]
      || td__onnx_attr_int (r->node, "hidden_size", l->size) != l->size)
    {
      td__run_fail (r, TD_ERR_SHAPE, "X, W and R of 3 axes that fit each other expected");
      return false;
    }
  x = l->batch_first ? td_transpose (x, exchanged) : x;
  x = l->backward ? td_flip (x, 0) : x;
  l->n_steps = (int)(td_shape (x).dim[0] < 1 << 24 ? td_shape (x).dim[0] : 0);
  if (l->n_steps < 1)
    td__run_fail (r, TD_ERR_SHAPE, "a step and more expected");
  else if (td_shape (x).dim[1] < 1)
    td__run_fail (r, TD_ERR_SHAPE, "a sequence and more expected, got a batch of 0");
  if (r->failed || !lengths_are_full (r, l->n_steps) || !weights_of (r, l))
    return false;
  l->h = state_of (r, l, 5);
  l->c = n_gates == 4 ? state_of (r, l, 6) : NULL;
  l->xs = td__onnx_alloc (&r->arena, (size_t)l->n_steps, sizeof *l->xs);
  l->ys = td__onnx_alloc (&r->arena, (size_t)l->n_steps, sizeof *l->ys);
  r->failed |= td_separate (x, 0, l->xs) != TD_OK;
  return !r->failed;
}

static void
state_out (TdOnnxRun *r, const Layer *l, int k, TdVar *v)
{
  static const int exchanged[] = { 1, 0, 2 };

  td__run_out (r, k, l->batch_first ? td_transpose (v, exchanged) : v);
}

/* Y (T, directions, B, N), or (B, T, directions, N). */
static void
layer_out (TdOnnxRun *r, Layer *l, TdStatus status)
{
  static const int time_first[] = { 0, 2, 1, 3 }, batch_first[] = { 1, 0, 2, 3 };
  TdShape shape;
  TdVar *y;

  r->failed |= status != TD_OK;
  if (r->failed)
    return;
  y = td_stack (l->ys, l->n_steps, 0);
  y = l->backward ? td_flip (y, 0) : y;
  shape = td_shape (y);
  y = td_reshape (y, TD_SHAPE (shape.dim[0], shape.dim[1], l->directions, l->size));
  td__run_out (r, 0, td_transpose (y, l->batch_first ? batch_first : time_first));
  state_out (r, l, 1, l->h_end);
  if (l->n_gates == 4)
    state_out (r, l, 2, l->c_end);
}

static void
lstm (TdOnnxRun *r)
{
  Layer l;
  TdStatus status;

  if (!layer_of (r, 4, &l))
    return;
  status = (l.directions == 2 ? td_n_step_bilstm : td_n_step_lstm) (
      1, 0, l.h, l.c, l.ws, l.bs, l.xs, l.n_steps, &l.h_end, &l.c_end, l.ys);
  layer_out (r, &l, status);
}

/* Before the reset gate R h is not the same as R of what it leaves: that is composed. */
static void
reset_before (TdOnnxRun *r, Layer *l, int d)
{
  TdVar *const *w = l->ws + 6 * d, *const *b = l->bs + 6 * d;
  TdVar *h = l->h != NULL ? td_get_item (l->h, &TD_AT (d), 1)
                          : td_zeros (td_dtype (l->xs[0]),
                                      TD_SHAPE (td_shape (l->xs[0]).dim[0], l->size));
  const bool from_end = d == 1;

  for (int k = 0; k < l->n_steps && !td_poisoned (h); k++)
    {
      const int t = from_end ? l->n_steps - 1 - k : k;
      TdVar *x = l->xs[t];
      TdVar *reset = td_sigmoid (td_add (td_linear (x, w[0], b[0]), td_linear (h, w[3], b[3])));
      TdVar *update
          = td_sigmoid (td_add (td_linear (x, w[1], b[1]), td_linear (h, w[4], b[4])));
      TdVar *candidate = td_tanh (
          td_add (td_linear (x, w[2], b[2]), td_linear (td_mul (reset, h), w[5], b[5])));

      h = td_linear_interpolate (update, h, candidate);
      l->ys[t] = d == 0 ? h : td_concat ((TdVar *[]){ l->ys[t], h }, 2, 1);
    }
  h = td_expand_dims (h, 0);
  l->h_end = d == 0 ? h : td_concat ((TdVar *[]){ l->h_end, h }, 2, 0);
  r->failed |= td_poisoned (l->h_end);
}

static void
gru (TdOnnxRun *r)
{
  TdStatus status = TD_OK;
  Layer l;

  if (!layer_of (r, 3, &l))
    return;
  if (td__onnx_attr_int (r->node, "linear_before_reset", 0) != 0)
    status = (l.directions == 2 ? td_n_step_bigru : td_n_step_gru) (1, 0, l.h, l.ws, l.bs, l.xs,
                                                                    l.n_steps, &l.h_end, l.ys);
  else
    for (int d = 0; d < l.directions && !r->failed; d++)
      reset_before (r, &l, d);
  layer_out (r, &l, status);
}

static TdRnnActivation
activation_of (const TdOnnxNode *n)
{
  const TdOnnxAttr *a = td__onnx_attr (n, "activations");

  return a != NULL && a->n > 0 && strcmp (a->texts[0], "Relu") == 0 ? TD_RNN_RELU : TD_RNN_TANH;
}

static void
rnn (TdOnnxRun *r)
{
  TdStatus status;
  Layer l;

  if (!layer_of (r, 1, &l))
    return;
  status = (l.directions == 2 ? td_n_step_birnn : td_n_step_rnn) (
      1, 0, l.h, l.ws, l.bs, l.xs, l.n_steps, activation_of (r->node), &l.h_end, l.ys);
  layer_out (r, &l, status);
}

/* Activations as every layer of the kind has them, direction by direction. */
static const char *
recurrent_lacks (const TdOnnxGraph *g, const TdOnnxNode *n)
{
  static const char *const usual[][4]
      = { { "LSTM", "Sigmoid", "Tanh", "Tanh" }, { "GRU", "Sigmoid", "Tanh", NULL } };
  const TdOnnxAttr *a = td__onnx_attr (n, "activations");
  const int is_gru = n->type[0] == 'G', period = is_gru ? 2 : 3;

  (void)g;
  if (a == NULL || a->n == 0)
    return NULL;
  if (a->texts == NULL)
    return "the activations";
  for (int i = 0; i < a->n; i++)
    if (n->type[0] == 'R'
            ? strcmp (a->texts[i], a->texts[0]) != 0
                  || (strcmp (a->texts[i], "Tanh") != 0 && strcmp (a->texts[i], "Relu") != 0)
            : strcmp (a->texts[i], usual[is_gru][1 + i % period]) != 0)
      return "the activations";
  return NULL;
}

#define RECURRENT "activations direction hidden_size layout input_forget=0 "
#define LIMITS "activations as PyTorch has them, sequences of one length"

/* clang-format off */
const TdOnnxRow td__onnx_sequences[] = {
  { "GRU", .from = 7, .least_in = 3, .most_in = 6, .most_out = 2, .read = 16, .attributes = RECURRENT "linear_before_reset",
    .run = gru, .limits = LIMITS, .lacks = recurrent_lacks },
  { "LSTM", .from = 7, .least_in = 3, .most_in = 7, .most_out = 3, .read = 16, .attributes = RECURRENT,
    .run = lstm, .limits = LIMITS ", no peepholes", .lacks = recurrent_lacks },
  { "RNN", .from = 7, .least_in = 3, .most_in = 6, .most_out = 2, .read = 16, .attributes = RECURRENT,
    .run = rnn, .limits = LIMITS, .lacks = recurrent_lacks },
  { 0 },
};
/* clang-format on */
