/* Recurrent layers over sequences of different lengths: values against a loop over each
 * sequence on its own in double precision, gradients against differences at every length, what
 * is refused. SPDX-License-Identifier: MIT */
#include "start.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MAX_STEPS = 6,
  MAX_INPUTS = 80,
  UNITS = 2,
  FEATURES = 3
};

typedef enum
{
  LSTM,
  GRU,
  RNN_TANH,
  RNN_RELU
} Kind;

static const int n_weights[] = { [LSTM] = 8, [GRU] = 6, [RNN_TANH] = 2, [RNN_RELU] = 2 };

/* A stack of cells and how many sequences last to each step. */
typedef struct
{
  Kind kind;
  int layers, directions, steps;
  int64_t rows[MAX_STEPS];
  double dropout;
} Net;

/* --- inputs: hx, cx of LSTMs, weights, biases, xs --- */

static int
n_states (const Net *net)
{
  return net->kind == LSTM ? 2 : 1;
}

static int
n_matrices (const Net *net)
{
  return net->layers * net->directions * n_weights[net->kind];
}

static int
n_inputs (const Net *net)
{
  return n_states (net) + 2 * n_matrices (net) + net->steps;
}

static int
n_outputs (const Net *net)
{
  return n_states (net) + net->steps;
}

/* How many numbers a row of input weights of `layer` has. */
static int64_t
width (const Net *net, int layer)
{
  return layer == 0 ? FEATURES : UNITS * net->directions;
}

static TdShape
input_shape (const Net *net, int k)
{
  const int m = n_matrices (net), s = n_states (net), w = n_weights[net->kind];

  if (k < s)
    return TD_SHAPE (net->layers * net->directions, net->rows[0], UNITS);
  if (k < s + m)
    return TD_SHAPE (UNITS,
                     (k - s) % w < w / 2 ? width (net, (k - s) / w / net->directions) : UNITS);
  if (k < s + 2 * m)
    return TD_SHAPE (UNITS);
  return TD_SHAPE (net->rows[k - s - 2 * m], FEATURES);
}

/* Numbers in (-1, 1) that differ from place to place. */
static double
number (int k, int64_t i)
{
  return sin (12.9898 * (k + 1) + 78.233 * (double)(i + 1));
}

static void
make_inputs (const Net *net, TdVar **in)
{
  for (int k = 0; k < n_inputs (net); k++)
    {
      const TdShape shape = input_shape (net, k);
      double host[64];
      int64_t n = 1;

      for (int i = 0; i < shape.ndim; i++)
        n *= shape.dim[i];
      assert_true (n <= 64);
      for (int64_t i = 0; i < n; i++)
        host[i] = number (k, i);
      in[k] = td_tensor (TD_F64, shape, host);
    }
}

static void
call (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Net *net = user;
  const int m = n_matrices (net), s = n_states (net);
  TdVar *const *ws = in + s, *const *bs = ws + m, *const *xs = bs + m;
  TdVar **ys = out + s;
  const bool both = net->directions == 2;
  const TdRnnActivation f = net->kind == RNN_RELU ? TD_RNN_RELU : TD_RNN_TANH;

  (void)n_in;
  (void)n_out;
  if (net->kind == LSTM)
    (both ? td_n_step_bilstm : td_n_step_lstm) (net->layers, net->dropout, in[0], in[1], ws, bs,
                                                xs, net->steps, &out[0], &out[1], ys);
  else if (net->kind == GRU)
    (both ? td_n_step_bigru : td_n_step_gru) (net->layers, net->dropout, in[0], ws, bs, xs,
                                              net->steps, &out[0], ys);
  else
    (both ? td_n_step_birnn : td_n_step_rnn) (net->layers, net->dropout, in[0], ws, bs, xs,
                                              net->steps, f, &out[0], ys);
}

/* The same with all inputs cut from one vector: gradient checks take 32 inputs at most. */
static void
call_packed (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Net *net = user;
  TdVar *cut[MAX_INPUTS];
  int64_t at = 0;

  (void)n_in;
  for (int k = 0; k < n_inputs (net); k++)
    {
      const TdShape shape = input_shape (net, k);
      int64_t n = 1;

      for (int i = 0; i < shape.ndim; i++)
        n *= shape.dim[i];
      cut[k] = td_reshape (td_get_item (in[0], &TD_RANGE (at, at + n), 1), shape);
      at += n;
    }
  call (user, cut, n_inputs (net), out, n_out);
}

/* --- the reference: one sequence, one step, one unit at a time --- */

static double
sigmoid (double x)
{
  return 1 / (1 + exp (-x));
}

/* (W_j x + b_j)[u] of layer and direction l. */
static double
product (const Net *net, int l, int j, int u, const double *x)
{
  const int w = n_weights[net->kind], k = n_states (net) + l * w + j;
  const int64_t n = j < w / 2 ? width (net, l / net->directions) : UNITS;
  double sum = number (k + n_matrices (net), u);

  for (int64_t i = 0; i < n; i++)
    sum += number (k, u * n + i) * x[i];
  return sum;
}

/* h and c of one sequence, one step on. */
static void
advance (const Net *net, int l, const double *x, double *h, double *c)
{
  double next[UNITS];

  for (int u = 0; u < UNITS; u++)
    {
#define P(j, v) product (net, l, j, u, v)
      if (net->kind == LSTM)
        {
          const double i = sigmoid (P (0, x) + P (4, h)), f = sigmoid (P (1, x) + P (5, h));
          const double a = tanh (P (2, x) + P (6, h)), o = sigmoid (P (3, x) + P (7, h));

          c[u] = f * c[u] + i * a;
          next[u] = o * tanh (c[u]);
        }
      else if (net->kind == GRU)
        {
          const double r = sigmoid (P (0, x) + P (3, h)), z = sigmoid (P (1, x) + P (4, h));

          next[u] = (1 - z) * tanh (P (2, x) + r * P (5, h)) + z * h[u];
        }
      else
        {
          const double sum = P (0, x) + P (1, h);

          next[u] = net->kind == RNN_RELU ? fmax (sum, 0) : tanh (sum);
        }
#undef P
    }
  memcpy (h, next, sizeof next);
}

/* All of sequence q; y[t] gets the last layer's output, h and c the states of each l. */
static void
reference (const Net *net, int64_t q, double y[MAX_STEPS][2 * UNITS], double h[][UNITS],
           double c[][UNITS])
{
  const int first_x = n_states (net) + 2 * n_matrices (net);
  double x[MAX_STEPS][4] = { 0 };
  int length = 0;

  while (length < net->steps && net->rows[length] > q)
    length++;
  for (int t = 0; t < length; t++)
    for (int i = 0; i < FEATURES; i++)
      x[t][i] = number (first_x + t, q * FEATURES + i);
  for (int l = 0; l < net->layers * net->directions; l++)
    {
      const int d = l % net->directions;

      for (int u = 0; u < UNITS; u++)
        {
          const int64_t at = (l * net->rows[0] + q) * UNITS + u;

          h[l][u] = number (0, at);
          c[l][u] = number (1, at);
        }
      for (int k = 0; k < length; k++)
        {
          const int t = d == 0 ? k : length - 1 - k;

          advance (net, l, x[t], h[l], c[l]);
          memcpy (y[t] + d * UNITS, h[l], sizeof h[l]);
        }
      if (d == net->directions - 1)
        for (int t = 0; t < length; t++)
          memcpy (x[t], y[t], sizeof x[t]);
    }
}

static void
expect_near (const char *what, int64_t at, double got, double want)
{
  if (!(fabs (got - want) <= 1e-12))
    fail_msg ("%s at %ld is %.17g, the loop says %.17g", what, (long)at, got, want);
}

static void
check_values (const Net *net)
{
  TD_SCOPE ("values")
    {
      TdVar *in[MAX_INPUTS], *out[2 + MAX_STEPS];
      double state[2][64] = { { 0 } }, steps[MAX_STEPS][64];
      const int n = net->layers * net->directions;

      make_inputs (net, in);
      call ((void *)(uintptr_t)net, in, n_inputs (net), out, n_outputs (net));
      assert_null (td_error ());
      for (int k = 0; k < n_states (net); k++)
        assert_int_equal (td_read (out[k], state[k], (size_t)td_size (out[k]) * 8), TD_OK);
      for (int t = 0; t < net->steps; t++)
        {
          TdVar *y = out[n_states (net) + t];

          assert_int_equal (td_shape (y).dim[0], net->rows[t]);
          assert_int_equal (td_shape (y).dim[1], UNITS * net->directions);
          assert_int_equal (td_read (y, steps[t], (size_t)td_size (y) * 8), TD_OK);
        }
      for (int64_t q = 0; q < net->rows[0]; q++)
        {
          double y[MAX_STEPS][2 * UNITS] = { { 0 } }, h[8][UNITS], c[8][UNITS];

          reference (net, q, y, h, c);
          for (int t = 0; t < net->steps && net->rows[t] > q; t++)
            for (int64_t u = 0; u < UNITS * net->directions; u++)
              expect_near ("ys", t, steps[t][q * UNITS * net->directions + u], y[t][u]);
          for (int l = 0; l < n; l++)
            for (int64_t u = 0; u < UNITS; u++)
              {
                const int64_t at = (l * net->rows[0] + q) * UNITS + u;

                expect_near ("hy", at, state[0][at], h[l][u]);
                if (net->kind == LSTM)
                  expect_near ("cy", at, state[1][at], c[l][u]);
              }
        }
    }
}

/* --- claims --- */

/* Four sequences of lengths 5, 5, 3, 1. */
#define SORTED                                                                                 \
  5,                                                                                           \
  {                                                                                            \
    4, 3, 3, 2, 2                                                                              \
  }

static void
n_step_lstm__is_the_cell_along_each_sequence (void **unused)
{
  check_values (&(const Net){ LSTM, 1, 1, SORTED, 0 });
  check_values (&(const Net){ LSTM, 3, 1, SORTED, 0 });
  check_values (&(const Net){ LSTM, 2, 1, 1, { 2 }, 0 });
}

static void
n_step_bilstm__runs_each_sequence_from_its_own_end (void **unused)
{
  check_values (&(const Net){ LSTM, 1, 2, SORTED, 0 });
  check_values (&(const Net){ LSTM, 2, 2, SORTED, 0 });
}

static void
n_step_gru__is_the_cell_along_each_sequence (void **unused)
{
  check_values (&(const Net){ GRU, 2, 1, SORTED, 0 });
  check_values (&(const Net){ GRU, 2, 2, SORTED, 0 });
}

static void
n_step_rnn__is_the_cell_along_each_sequence (void **unused)
{
  check_values (&(const Net){ RNN_TANH, 2, 1, SORTED, 0 });
  check_values (&(const Net){ RNN_RELU, 2, 1, SORTED, 0 });
  check_values (&(const Net){ RNN_TANH, 2, 2, SORTED, 0 });
}

static void
check_gradients (const Net *net, bool twice)
{
  TD_SCOPE ("gradients")
    {
      TdVar *in[MAX_INPUTS], *all;
      TdCheckOpt o = td_check_options ();
      TdStatus status;

      o.eps = 1e-4;
      o.atol = o.rtol = 1e-6;
      make_inputs (net, in);
      for (int k = 0; k < n_inputs (net); k++)
        in[k] = td_flatten (in[k]);
      all = td_concat (in, n_inputs (net), 0);
      status = (twice ? td_check_double_backward_ : td_check_backward_) (
          call_packed, (void *)(uintptr_t)net, &all, 1, NULL, n_outputs (net), &o);
      if (status != TD_OK)
        fail_msg ("%d steps: %s", net->steps, td_error ()->message);
    }
}

static void
n_step_lstm__has_the_gradients_of_differences_at_every_length (void **unused)
{
  for (int steps = 1; steps <= MAX_STEPS; steps++)
    {
      Net net = { LSTM, 1, 1, steps, { 0 }, 0 };

      for (int t = 0; t < steps; t++)
        net.rows[t] = 1 + (steps - t) / 2; /* ends at every other step */
      check_gradients (&net, false);
    }
}

static void
n_step_functions__have_the_gradients_of_differences (void **unused)
{
  check_gradients (&(const Net){ LSTM, 2, 2, 3, { 3, 2, 1 }, 0 }, false);
  check_gradients (&(const Net){ GRU, 2, 1, 3, { 3, 2, 1 }, 0 }, false);
  check_gradients (&(const Net){ GRU, 1, 2, 3, { 2, 2, 1 }, 0 }, false);
  check_gradients (&(const Net){ RNN_TANH, 2, 1, 3, { 3, 2, 1 }, 0 }, false);
}

static void
n_step_functions__have_second_gradients (void **unused)
{
  check_gradients (&(const Net){ LSTM, 1, 1, 2, { 2, 1 }, 0 }, true);
  check_gradients (&(const Net){ GRU, 1, 1, 2, { 2, 1 }, 0 }, true);
  check_gradients (&(const Net){ RNN_TANH, 1, 1, 2, { 2, 1 }, 0 }, true);
}

static void
n_step_lstm__takes_zeros_for_states_that_are_not_given (void **unused)
{
  const Net net = { LSTM, 2, 1, SORTED, 0 };

  TD_SCOPE ("test")
    {
      TdVar *in[MAX_INPUTS], *hy[2], *ys[MAX_STEPS], *zeros;
      double a[64], b[64];

      make_inputs (&net, in);
      zeros = td_zeros_like (in[0]);
      td_n_step_lstm (2, 0, zeros, zeros, in + 2, in + 18, in + 34, 5, &hy[0], NULL, NULL);
      td_n_step_lstm (2, 0, NULL, NULL, in + 2, in + 18, in + 34, 5, &hy[1], NULL, ys);
      assert_int_equal (td_read (hy[0], a, 16 * 8), TD_OK);
      assert_int_equal (td_read (hy[1], b, 16 * 8), TD_OK);
      assert_memory_equal (a, b, 16 * 8);
      assert_int_equal (td_shape (ys[4]).dim[0], 2);
    }
}

static void
n_step_lstm__drops_between_layers_in_training_only (void **unused)
{
  const Net net = { LSTM, 2, 1, SORTED, 0.5 }, one = { LSTM, 1, 1, SORTED, 0.5 };

  TD_SCOPE ("test")
    {
      TdVar *in[MAX_INPUTS], *out[2 + MAX_STEPS];
      double trained[16], tested[16], plain[16];
      Net without = net;

      without.dropout = 0;
      make_inputs (&net, in);
      call ((void *)(uintptr_t)&net, in, n_inputs (&net), out, n_outputs (&net));
      assert_int_equal (td_read (out[0], trained, sizeof trained), TD_OK);
      call (&without, in, n_inputs (&net), out, n_outputs (&net));
      assert_int_equal (td_read (out[0], plain, sizeof plain), TD_OK);
      TD_USING (train, 0)
        call ((void *)(uintptr_t)&net, in, n_inputs (&net), out, n_outputs (&net));
      assert_int_equal (td_read (out[0], tested, sizeof tested), TD_OK);
      assert_memory_equal (tested, plain, sizeof plain);
      /* The first layer is not touched, the second is.  Where a device has all layers as one
         operation, those with dropout are composed: not the same bits. */
      for (int i = 0; i < 8; i++)
        expect_near ("the first layer", i, trained[i], plain[i]);
      assert_memory_not_equal (trained + 8, plain + 8, sizeof plain / 2);
    }
  check_values (&one);
}

static void
expect (TdStatus got, TdStatus status, TdVar **y, const char *text)
{
  assert_true (td_poisoned (*y));
  assert_int_equal (got, status);
  assert_non_null (td_error ());
  assert_contains (td_error ()->message, text);
  assert_null (strchr (td_error ()->message, '\n'));
  td_error_clear ();
}

static void
n_step_functions__report_what_does_not_fit_on_one_line (void **unused)
{
  const Net net = { LSTM, 1, 1, 3, { 3, 2, 2 }, 0 };

  TD_SCOPE ("test")
    {
      TdVar *in[MAX_INPUTS], *hy, *ys[3], *swapped[3],
          *wide = td_zeros (TD_F64, TD_SHAPE (3, 4));
      TdVar *const *ws = in + 2, *const *bs = in + 10, *const *xs = in + 18;

      make_inputs (&net, in);
      swapped[0] = xs[1];
      swapped[1] = xs[0];
      expect (
          td_n_step_lstm (1, 0, NULL, NULL, ws, bs, swapped, 2, &hy, NULL, ys), TD_ERR_SHAPE,
          &ys[1],
          "n_step_lstm: sequences sorted by length, the longest first, expected, got xs[1] of "
          "more rows than xs[0]");
      expect (td_n_step_lstm (1, 0, NULL, NULL, ws, bs, &wide, 1, &hy, NULL, ys), TD_ERR_SHAPE,
              &hy, "n_step_lstm: xs[0].shape[1] == ws[0][0].shape[1] expected, got 4 != 3");
      expect (td_n_step_bilstm (1, 0, in[0], NULL, ws, bs, xs, 0, &hy, NULL, ys), TD_ERR_ARG,
              &hy, "n_step_bilstm: n_layers >= 1 and n_xs >= 1 expected, got 1 and 0");
      expect (td_n_step_gru (1, 0, in[2], ws, bs, xs, 3, &hy, ys), TD_ERR_SHAPE, &hy,
              "n_step_gru: hx.ndim == 3 expected, got 2");
      expect (td_n_step_rnn (1, 0, in[0], ws, bs, xs + 1, 2, TD_RNN_TANH, &hy, ys),
              TD_ERR_SHAPE, &hy,
              "n_step_rnn: hx.shape[1] == xs[0].shape[0] expected, got 3 != 2");
    }
}

static void
n_step_lstm__passes_poison_on (void **unused)
{
  const Net net = { LSTM, 1, 1, 2, { 2, 1 }, 0 };

  TD_SCOPE ("test")
    {
      TdVar *in[MAX_INPUTS], *out[4];

      make_inputs (&net, in);
      in[5] = td_reshape (in[5], TD_SHAPE (7));
      call ((void *)(uintptr_t)&net, in, n_inputs (&net), out, n_outputs (&net));
      for (int k = 0; k < 4; k++)
        assert_true (td_poisoned (out[k]));
      assert_string_equal (td_error ()->op, "reshape");
      td_error_clear ();
    }
}

static void
n_step_lstm__keeps_its_shapes_on_the_null_device (void **unused)
{
  const Net net = { LSTM, 2, 2, SORTED, 0.5 };
  TdDevice *null = td_device_get ("null");

  TD_SCOPE ("test")
    {
      TdVar *in[MAX_INPUTS], *out[2 + MAX_STEPS];

      make_inputs (&net, in);
      for (int k = 0; k < n_inputs (&net); k++)
        in[k] = td_to_device (in[k], null);
      call ((void *)(uintptr_t)&net, in, n_inputs (&net), out, n_outputs (&net));
      assert_null (td_error ());
      assert_int_equal (td_shape (out[0]).dim[0], 4);
      assert_int_equal (td_shape (out[6]).dim[1], 2 * UNITS);
      assert_ptr_equal (td_device (out[6]), null);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    tidy_test (n_step_lstm__is_the_cell_along_each_sequence),
    tidy_test (n_step_bilstm__runs_each_sequence_from_its_own_end),
    tidy_test (n_step_gru__is_the_cell_along_each_sequence),
    tidy_test (n_step_rnn__is_the_cell_along_each_sequence),
    tidy_test (n_step_lstm__has_the_gradients_of_differences_at_every_length),
    tidy_test (n_step_functions__have_the_gradients_of_differences),
    tidy_test (n_step_functions__have_second_gradients),
    tidy_test (n_step_lstm__takes_zeros_for_states_that_are_not_given),
    tidy_test (n_step_lstm__drops_between_layers_in_training_only),
    tidy_test (n_step_functions__report_what_does_not_fit_on_one_line),
    tidy_test (n_step_lstm__passes_poison_on),
    tidy_test (n_step_lstm__keeps_its_shapes_on_the_null_device),
  };

  return run_with_engine (tests);
}
