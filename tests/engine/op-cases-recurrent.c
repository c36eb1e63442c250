/* Rows for recurrent layers over sequences.  What a row calls is composed from operations here;
 * on a device that has the whole as one operation it is that one.  The reference is the cell
 * along each sequence, in double precision.
 * SPDX-License-Identifier: MIT */
#include "op-cases.h"

#include <math.h>
#include <string.h>

#define S(...) TD_SHAPE (__VA_ARGS__)

enum
{
  N = 3, /* sequences; the last is one step long, the others two */
  I = 2,
  U = 2
};

/* Two steps: all of x, then its first two rows. */
static TdStatus
steps_of (TdVar *x, TdVar **xs)
{
  xs[0] = x;
  xs[1] = td_get_item (x, &TD_RANGE (0, N - 1), 1);
  return td_poisoned (xs[1]) ? TD_ERR_STATE : TD_OK;
}

/* x, W, U, b, b', hx, or without hx -> hy and the two steps' outputs. */
static void
call (TdVar *const *x, TdVar *hx, TdRnnActivation f, TdVar **y)
{
  TdVar *xs[2], *const ws[] = { x[1], x[2] }, *const bs[] = { x[3], x[4] };

  if (steps_of (x[0], xs) != TD_OK)
    y[0] = y[1] = y[2] = xs[1];
  else
    td_n_step_rnn (1, 0, hx, ws, bs, xs, 2, f, &y[0], &y[1]);
}

static void
call_tanh (TdVar *const *x, TdVar **y)
{
  call (x, x[5], TD_RNN_TANH, y);
}

static void
call_zeros (TdVar *const *x, TdVar **y)
{
  call (x, NULL, TD_RNN_TANH, y);
}

static void
call_relu (TdVar *const *x, TdVar **y)
{
  call (x, x[5], TD_RNN_RELU, y);
}

/* One bias for both. */
static void
call_refused (TdVar *const *x, TdVar **y)
{
  TdVar *const ws[] = { x[1], x[2] }, *const bs[] = { x[3], x[3] };

  td_n_step_rnn (1, 0, NULL, ws, bs, x, 1, TD_RNN_TANH, y, NULL);
}

/* h of sequence n goes on by x of it. */
static void
advance (const double *const *in, int64_t n, bool relu, double *h)
{
  double next[U];

  for (int u = 0; u < U; u++)
    {
      double sum = in[3][u] + in[4][u];

      for (int i = 0; i < I; i++)
        sum += in[1][u * I + i] * in[0][n * I + i];
      for (int i = 0; i < U; i++)
        sum += in[2][u * U + i] * h[i];
      next[u] = relu ? fmax (sum, 0) : tanh (sum);
    }
  memcpy (h, next, sizeof next);
}

static void
run (const OpCase *c, const double *const *in, bool relu, double *const *out)
{
  for (int64_t n = 0; n < N; n++)
    {
      double h[U] = { 0 };

      for (int u = 0; u < U && c->n_in == 6; u++)
        h[u] = in[5][n * U + u];
      for (int t = 0; t < (n < N - 1 ? 2 : 1); t++)
        {
          advance (in, n, relu, h);
          memcpy (out[1 + t] + n * U, h, sizeof h);
        }
      memcpy (out[0] + n * U, h, sizeof h);
    }
}

static void
whole_tanh (const OpCase *c, const double *const *in, double *const *out)
{
  run (c, in, false, out);
}

static void
whole_relu (const OpCase *c, const double *const *in, double *const *out)
{
  run (c, in, true, out);
}

/* Sums inside the cells that are far from relu's kink. */
static const double weights[U * I] = { 0.7, -0.2, 0.4, 0.9 }, up[U] = { 3, -4 };

// clang-format off
#define X(...) { S (__VA_ARGS__), -1, 1, 0, 0, NULL }
#define GIVEN(values, ...) { S (__VA_ARGS__), 0, 0, 0, 0, values }
#define ALL X (N, I), X (U, I), X (U, U), X (U), X (U)
#define KINKED X (N, I), GIVEN (weights, U, I), GIVEN (weights, U, U), GIVEN (up, U), X (U)
#define ROW(op_name, name, n, call_name, whole_name, ...) \
  { .op = op_name, .variant = name, .call = call_##call_name, .n_in = n, .n_out = 3, .whole = whole_##whole_name, .loose = 4, \
    .out = { S (1, N, U), S (N, U), S (N - 1, U) }, __VA_ARGS__ }

const OpCase op_cases_recurrent[] = {
  ROW ("n_step_rnn", "tanh", 6, tanh, tanh, .in = { ALL, X (1, N, U) }),
  ROW ("n_step_rnn_grad", "relu", 6, relu, relu, .in = { KINKED, X (1, N, U) }),
  ROW ("n_step_weights", "of a stack", 5, zeros, tanh, .in = { ALL }),
  ROW ("n_step_weights_grad", "given", 5, zeros, tanh, .in = { KINKED }),
};
const int n_op_cases_recurrent = (int)(sizeof op_cases_recurrent / sizeof op_cases_recurrent[0]);

const OpError op_errors_recurrent[] = {
  { "n_step_rnn", call_refused, 4, { { TD_F32, S (2, 3) }, { TD_F32, S (2, 4) }, { TD_F32, S (2, 2) }, { TD_F32, S (2) } }, TD_ERR_SHAPE, "n_step_rnn: xs[0].shape[1] == ws[0][0].shape[1] expected, got 3 != 4" },
};
// clang-format on
const int n_op_errors_recurrent
    = (int)(sizeof op_errors_recurrent / sizeof op_errors_recurrent[0]);
