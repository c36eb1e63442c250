/* Recurrent layers over sequences of different lengths: LSTM, GRU and plain cells, stacked, in
 * one or both directions.  As in Chainer xs[t] holds step t of all sequences that are that
 * long, the longest first, so that its rows only become fewer.  Here everything is composed
 * from operations; n-step-fused.c makes one of it where the device can.
 *
 * What does not depend on the state, the product of all inputs with the input weights, is one
 * product a layer and direction.
 *
 * *Source*: chainer.functions.n_step_lstm, n_step_gru, n_step_rnn.
 * SPDX-License-Identifier: MIT */
#include "n-step.h"
#include "compose.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>

typedef TdNStep Run;
typedef TdNStepState State;
typedef TdNStepCell Cell;

/* --- cells --- */

/* Matrices (u, k), or vectors (u), with the rows of one unit as neighbours: (4 u, k), as
 * td_lstm wants its gates. */
static TdVar *
interleave (TdVar *a, TdVar *i, TdVar *f, TdVar *o)
{
  TdVar *const gates[] = { a, i, f, o };
  TdVar *stacked = td_stack (gates, 4, 1);
  TdShape shape = td_shape (stacked);

  if (shape.ndim == 3)
    return td_reshape (stacked, TD_SHAPE (-1, shape.dim[2]));
  return td_flatten (stacked);
}

/* Weights come as input, forget, candidate and output gate. */
static void
lstm_prepare (const Run *r, State *s, TdVar *const *w, TdVar *const *b)
{
  s->xw = interleave (w[2], w[0], w[1], w[3]);
  s->hw = interleave (w[6], w[4], w[5], w[7]);
  s->xb = td_add (interleave (b[2], b[0], b[1], b[3]), interleave (b[6], b[4], b[5], b[7]));
}

static TdVar *
lstm_step (const Run *r, State *s, TdVar *h, TdVar *x)
{
  TdVar *next;

  s->c = td_lstm (s->c, td_add (x, td_linear (h, s->hw, NULL)), &next);
  return next;
}

/* Weights come as reset gate, update gate and candidate, whose bias stands inside the reset. */
static void
gru_prepare (const Run *r, State *s, TdVar *const *w, TdVar *const *b)
{
  s->xw = td_concat (w, 3, 0);
  s->xb = td_concat (b, 3, 0);
  s->hw = td_concat (w + 3, 3, 0);
  s->hb = td_concat (b + 3, 3, 0);
}

static TdVar *
gru_step (const Run *r, State *s, TdVar *h, TdVar *x)
{
  TdVar *of_x[3], *of_h[3], *reset, *update, *candidate;

  td_split_axis (x, 3, 1, of_x);
  td_split_axis (td_linear (h, s->hw, s->hb), 3, 1, of_h);
  reset = td_sigmoid (td_add (of_x[0], of_h[0]));
  update = td_sigmoid (td_add (of_x[1], of_h[1]));
  candidate = td_tanh (td_add (of_x[2], td_mul (reset, of_h[2])));
  return td_add (candidate, td_mul (update, td_sub (h, candidate)));
}

static void
rnn_prepare (const Run *r, State *s, TdVar *const *w, TdVar *const *b)
{
  s->xw = w[0];
  s->hw = w[1];
  s->xb = td_add (b[0], b[1]);
}

static TdVar *
rnn_step (const Run *r, State *s, TdVar *h, TdVar *x)
{
  TdVar *sum = td_add (x, td_linear (h, s->hw, NULL));

  return r->rectify ? td_relu (sum) : td_tanh (sum);
}

static const Cell lstm
    = { "n_step_lstm", "n_step_bilstm", TD_CELL_LSTM, 8, true, lstm_prepare, lstm_step };
static const Cell gru
    = { "n_step_gru", "n_step_bigru", TD_CELL_GRU, 6, false, gru_prepare, gru_step };
static const Cell rnn
    = { "n_step_rnn", "n_step_birnn", TD_CELL_TANH, 2, false, rnn_prepare, rnn_step };

const TdNStepCell *
td__n_step_cell (TdCell cell, bool *rectify)
{
  *rectify = cell == TD_CELL_RELU;
  return cell == TD_CELL_LSTM ? &lstm : cell == TD_CELL_GRU ? &gru : &rnn;
}

/* --- a layer --- */

static int64_t
rows_at (const Run *r, int t)
{
  return td_shape (r->xs[t]).dim[0];
}

static TdVar *
rows (TdVar *v, int64_t from, int64_t to)
{
  return td_get_item (v, &TD_RANGE (from, to), 1);
}

/* Layer l's part of hx or cx, or zeros. */
static TdVar *
initial (const Run *r, TdVar *v, int l)
{
  if (v != NULL)
    return td_get_item (v, &TD_AT (l), 1);
  return td_broadcast_to (td__number_like (r->xs[0], 0), TD_SHAPE (rows_at (r, 0), r->units));
}

/* Oldest first: sequences that end give up their rows of h, kept for the end in `parts`. */
static TdVar *
run_forwards (const Run *r, State *s, TdVar *h, TdVar *const *gates, TdVar **out, TdVar **parts)
{
  int64_t before = rows_at (r, 0);
  int n_parts = 0;

  for (int t = 0; t < r->n_xs; t++)
    {
      const int64_t n = rows_at (r, t);

      if (n < before)
        {
          parts[r->n_xs - n_parts++] = rows (h, n, before); /* from the back: shortest last */
          h = rows (h, 0, n);
        }
      h = out[t] = r->cell->step (r, s, h, gates[t]);
      before = n;
    }
  parts[r->n_xs - n_parts] = h;
  return n_parts == 0 ? h : td_concat (parts + r->n_xs - n_parts, n_parts + 1, 0);
}

/* Newest first: sequences begin, with their rows of the initial h, where they end. */
static TdVar *
run_backwards (const Run *r, State *s, TdVar *h, TdVar *const *gates, TdVar **out)
{
  int64_t before = rows_at (r, r->n_xs - 1);
  TdVar *first = h;

  if (before < rows_at (r, 0))
    h = rows (first, 0, before);
  for (int t = r->n_xs - 1; t >= 0; t--)
    {
      const int64_t n = rows_at (r, t);

      if (n > before)
        {
          TdVar *const both[] = { h, rows (first, before, n) };

          h = td_concat (both, 2, 0);
        }
      h = out[t] = r->cell->step (r, s, h, gates[t]);
      before = n;
    }
  return h;
}

/* All steps' inputs below each other. */
static TdVar *
join (const Run *r, TdVar *const *xs)
{
  return r->n_xs == 1 ? xs[0] : td_concat (xs, r->n_xs, 0);
}

/* `room`: 3 n_xs + 1 handles.  hs, cs: last states by layer and direction. */
static void
run_layers (const Run *r, TdVar **ys, TdVar **hs, TdVar **cs, TdVar **room)
{
  TdVar *all = join (r, r->xs), **gates = room + 2 * r->n_xs + 1;

  for (int layer = 0; layer < r->n_layers; layer++)
    {
      if (layer > 0)
        all = join (r, ys);
      if (layer > 0 && r->dropout_ratio != 0)
        all = td_dropout (all, r->dropout_ratio);
      for (int d = 0; d < r->n_directions; d++)
        {
          const int l = layer * r->n_directions + d, w = l * r->cell->n_weights;
          TdVar *h = initial (r, r->hx, l);
          State s = { 0 };

          r->cell->prepare (r, &s, r->ws + w, r->bs + w);
          if (r->cell->has_c)
            s.c = initial (r, r->cx, l);
          td_split_axis_indices (td_linear (all, s.xw, s.xb), r->ends, r->n_xs - 1, 0, gates);
          hs[l] = d == 0 ? run_forwards (r, &s, h, gates, ys, room + r->n_xs)
                         : run_backwards (r, &s, h, gates, room);
          cs[l] = s.c;
        }
      for (int t = 0; r->n_directions == 2 && t < r->n_xs; t++)
        {
          TdVar *const both[] = { ys[t], room[t] };

          ys[t] = td_concat (both, 2, 1);
        }
    }
}

/* --- checks --- */

const char *
td__n_step_name (const Run *r)
{
  return r->n_directions == 2 ? r->cell->name_both : r->cell->name;
}

#define REFUSE(r, status, ...) td__fail (status, td__n_step_name (r), (r)->site, __VA_ARGS__)

static bool
usable (const Run *r, TdVar *const *vs, int n)
{
  if (!td__list_there (vs, n, td__n_step_name (r), r->site))
    return false;
  for (int i = 0; i < n; i++)
    if (!td__var_usable (vs[i], td__n_step_name (r), r->site))
      return false;
  return true;
}

static TdStatus
check_state (const Run *r, TdVar *v, const char *name)
{
  const int n = r->n_layers * r->n_directions;
  TdShape s;

  if (v == NULL)
    return TD_OK;
  s = td_shape (v);
  if (s.ndim != 3)
    return REFUSE (r, TD_ERR_SHAPE, "%s.ndim == 3 expected, got %d", name, s.ndim);
  if (s.dim[0] != n)
    return REFUSE (r, TD_ERR_SHAPE,
                   "%s.shape[0] == %d, a state a layer and direction, expected, got %lld", name,
                   n, (long long)s.dim[0]);
  if (s.dim[1] != rows_at (r, 0))
    return REFUSE (r, TD_ERR_SHAPE, "%s.shape[1] == xs[0].shape[0] expected, got %lld != %lld",
                   name, (long long)s.dim[1], (long long)rows_at (r, 0));
  return TD_OK;
}

static TdStatus
check (Run *r)
{
  const int n_weights = r->n_layers * r->n_directions * r->cell->n_weights;
  TdStatus status;

  if (r->n_layers < 1 || r->n_xs < 1)
    return REFUSE (r, TD_ERR_ARG, "n_layers >= 1 and n_xs >= 1 expected, got %d and %d",
                   r->n_layers, r->n_xs);
  if (!usable (r, r->xs, r->n_xs) || !usable (r, r->ws, n_weights)
      || !usable (r, r->bs, n_weights) || (r->hx != NULL && !usable (r, &r->hx, 1))
      || (r->cx != NULL && !usable (r, &r->cx, 1)))
    return td__engine.has_error ? td__engine.error.status : TD_ERR_STATE;
  for (int t = 0; t < r->n_xs; t++)
    if (td_ndim (r->xs[t]) != 2)
      return REFUSE (r, TD_ERR_SHAPE, "xs[%d].ndim == 2 expected, got %d", t,
                     td_ndim (r->xs[t]));
  for (int t = 1; t < r->n_xs; t++)
    if (rows_at (r, t) > rows_at (r, t - 1))
      return REFUSE (r, TD_ERR_SHAPE,
                     "sequences sorted by length, the longest first, expected, got xs[%d] of "
                     "more rows than xs[%d]",
                     t, t - 1);
  for (int i = 0; i < n_weights; i++)
    if (td_ndim (r->ws[i]) != 2 || td_ndim (r->bs[i]) != 1)
      return REFUSE (r, TD_ERR_SHAPE,
                     "weights of 2 and biases of 1 axis expected, got %d and %d",
                     td_ndim (r->ws[i]), td_ndim (r->bs[i]));
  r->units = td_shape (r->ws[0]).dim[0];
  if (td_shape (r->xs[0]).dim[1] != td_shape (r->ws[0]).dim[1])
    return REFUSE (
        r, TD_ERR_SHAPE, "xs[0].shape[1] == ws[0][0].shape[1] expected, got %lld != %lld",
        (long long)td_shape (r->xs[0]).dim[1], (long long)td_shape (r->ws[0]).dim[1]);
  status = check_state (r, r->hx, "hx");
  return status != TD_OK ? status : check_state (r, r->cx, "cx");
}

/* --- calls --- */

TdStatus
td__n_step_composed (Run *r, const char *why, TdVar **hy, TdVar **cy, TdVar **ys)
{
  const int n = r->n_layers * r->n_directions;
  TdEngine *e = &td__engine;
  TdVar **room = td__xcalloc (2 * (size_t)n + 4 * (size_t)r->n_xs + 1, sizeof *room);
  TdVar **hs = room, **cs = hs + n, **outs = cs + n;
  TdScope *scope;
  TdStatus status = TD_OK;
  char name[160];

  snprintf (name, sizeof name, "%s%s%s", td__n_step_name (r), why != NULL ? " composed: " : "",
            why != NULL ? why : "");
  scope = td_scope_open_at (name, e->site);
  run_layers (r, outs, hs, cs, outs + r->n_xs);
  if (hy != NULL)
    *hy = td_scope_yield (td_stack (hs, n, 0));
  if (cy != NULL)
    *cy = td_scope_yield (td_stack (cs, n, 0));
  for (int t = 0; ys != NULL && t < r->n_xs; t++)
    ys[t] = td_scope_yield (outs[t]);
  for (int l = 0; l < n; l++)
    if (td_poisoned (hs[l]) || (r->cell->has_c && td_poisoned (cs[l])))
      status = e->error.status;
  td_scope_close (scope);
  free (room);
  return status;
}

static TdStatus
compute (Run *r, TdVar **hy, TdVar **cy, TdVar **ys)
{
  const TdSite *outer;
  bool offered = false;
  TdStatus status = TD_OK;
  const char *why;

  r->ends = td__xcalloc ((size_t)r->n_xs, sizeof *r->ends);
  for (int t = 0; t < r->n_xs; t++)
    r->ends[t] = rows_at (r, t) + (t > 0 ? r->ends[t - 1] : 0);
  outer = td__at (r->site);
  why = td__n_step_fused (r, hy, cy, ys, &status, &offered);
  if (why != NULL)
    status = td__n_step_composed (r, offered ? why : NULL, hy, cy, ys);
  td__at_end (outer);
  free (r->ends);
  return status;
}

static TdStatus
n_step (Run r, TdVar **hy, TdVar **cy, TdVar **ys)
{
  TdStatus status = check (&r);

  if (status == TD_OK)
    return compute (&r, hy, cy, ys);
  if (hy != NULL)
    *hy = td__poison ();
  if (cy != NULL)
    *cy = td__poison ();
  for (int t = 0; ys != NULL && t < r.n_xs; t++)
    ys[t] = td__poison ();
  return status;
}

#define RUN(of_cell, directions, of_cx, relu)                                                  \
  (Run)                                                                                        \
  {                                                                                            \
    &of_cell, site, n_layers, directions, n_xs, dropout_ratio, hx, of_cx, ws, bs, xs, relu, 0, \
        NULL                                                                                   \
  }

#define DEFINE_LSTM(name, directions)                                                          \
  TdStatus name##_at (int n_layers, double dropout_ratio, TdVar *hx, TdVar *cx,                \
                      TdVar *const *ws, TdVar *const *bs, TdVar *const *xs, int n_xs,          \
                      TdVar **hy, TdVar **cy, TdVar **ys, const TdSite *site)                  \
  {                                                                                            \
    return n_step (RUN (lstm, directions, cx, false), hy, cy, ys);                             \
  }                                                                                            \
  TdStatus name (int n_layers, double dropout_ratio, TdVar *hx, TdVar *cx, TdVar *const *ws,   \
                 TdVar *const *bs, TdVar *const *xs, int n_xs, TdVar **hy, TdVar **cy,         \
                 TdVar **ys)                                                                   \
  {                                                                                            \
    return name##_at (n_layers, dropout_ratio, hx, cx, ws, bs, xs, n_xs, hy, cy, ys, NULL);    \
  }

#define DEFINE_GRU(name, directions)                                                           \
  TdStatus name##_at (int n_layers, double dropout_ratio, TdVar *hx, TdVar *const *ws,         \
                      TdVar *const *bs, TdVar *const *xs, int n_xs, TdVar **hy, TdVar **ys,    \
                      const TdSite *site)                                                      \
  {                                                                                            \
    return n_step (RUN (gru, directions, NULL, false), hy, NULL, ys);                          \
  }                                                                                            \
  TdStatus name (int n_layers, double dropout_ratio, TdVar *hx, TdVar *const *ws,              \
                 TdVar *const *bs, TdVar *const *xs, int n_xs, TdVar **hy, TdVar **ys)         \
  {                                                                                            \
    return name##_at (n_layers, dropout_ratio, hx, ws, bs, xs, n_xs, hy, ys, NULL);            \
  }

#define DEFINE_RNN(name, directions)                                                           \
  TdStatus name##_at (int n_layers, double dropout_ratio, TdVar *hx, TdVar *const *ws,         \
                      TdVar *const *bs, TdVar *const *xs, int n_xs, TdRnnActivation f,         \
                      TdVar **hy, TdVar **ys, const TdSite *site)                              \
  {                                                                                            \
    return n_step (RUN (rnn, directions, NULL, f == TD_RNN_RELU), hy, NULL, ys);               \
  }                                                                                            \
  TdStatus name (int n_layers, double dropout_ratio, TdVar *hx, TdVar *const *ws,              \
                 TdVar *const *bs, TdVar *const *xs, int n_xs, TdRnnActivation f, TdVar **hy,  \
                 TdVar **ys)                                                                   \
  {                                                                                            \
    return name##_at (n_layers, dropout_ratio, hx, ws, bs, xs, n_xs, f, hy, ys, NULL);         \
  }

DEFINE_LSTM (td_n_step_lstm, 1)
DEFINE_LSTM (td_n_step_bilstm, 2)
DEFINE_GRU (td_n_step_gru, 1)
DEFINE_GRU (td_n_step_bigru, 2)
DEFINE_RNN (td_n_step_rnn, 1)
DEFINE_RNN (td_n_step_birnn, 2)
