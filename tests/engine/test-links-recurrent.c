/* Recurrent links: names of parameters, values against the formula in float64, state, gradients
 * through time, and sequences of any lengths in any order.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  N = 2, /* batch */
  IN = 3,
  OUT = 4,
  STEPS = 3
};

static int
setup (void **state)
{
  fixture_setup (state);
  td_config_set (dtype, TD_F64);
  return 0;
}

/* --- plain loops --- */

static double
logistic (double x)
{
  return 1 / (1 + exp (-x));
}

/* b + W x for one row; b may be NULL. */
static void
affine (const double *W, const double *b, const double *x, int n_in, int n_out, double *y)
{
  for (int o = 0; o < n_out; o++)
    {
      y[o] = b != NULL ? b[o] : 0;
      for (int i = 0; i < n_in; i++)
        y[o] += W[o * n_in + i] * x[i];
    }
}

static const double *
param (TdLink *link, const char *name)
{
  static double room[16][256]; /* apart from those of numbers () */
  static int next;
  TdVar *v = td_link_param (link, name);
  double *to = room[next++ % 16];

  assert_true (td_size (v) <= 256);
  assert_int_equal (td_read (v, to, (size_t)td_size (v) * sizeof *to), TD_OK);
  return to;
}

/* One step of a row: h (and c) are overwritten. */
typedef void (*Step) (TdLink *link, const double *x, double *h, double *c, bool first);

static void
gru_step (TdLink *l, const double *x, double *h, double *c, bool first)
{
  double r[OUT], z[OUT], w[OUT], u[OUT], rh[OUT];

  (void)c;
  affine (param (l, "W_r/W"), param (l, "W_r/b"), x, IN, OUT, w);
  affine (param (l, "U_r/W"), param (l, "U_r/b"), h, OUT, OUT, u);
  for (int i = 0; i < OUT; i++)
    {
      r[i] = logistic (w[i] + u[i]);
      rh[i] = r[i] * h[i];
    }
  affine (param (l, "W_z/W"), param (l, "W_z/b"), x, IN, OUT, w);
  affine (param (l, "U_z/W"), param (l, "U_z/b"), h, OUT, OUT, u);
  for (int i = 0; i < OUT; i++)
    z[i] = logistic (w[i] + (first ? 0 : u[i]));
  affine (param (l, "W/W"), param (l, "W/b"), x, IN, OUT, w);
  affine (param (l, "U/W"), param (l, "U/b"), rh, OUT, OUT, u);
  for (int i = 0; i < OUT; i++)
    h[i] = z[i] * tanh (w[i] + (first ? 0 : u[i])) + (1 - z[i]) * h[i];
}

static void
mgu_step (TdLink *l, const double *x, double *h, double *c, bool first)
{
  double both[OUT + IN], f[OUT], g[OUT];

  (void)c, (void)first;
  memcpy (both, h, sizeof g);
  memcpy (both + OUT, x, IN * sizeof *x);
  affine (param (l, "W_f/W"), param (l, "W_f/b"), both, OUT + IN, OUT, f);
  for (int i = 0; i < OUT; i++)
    both[i] = (f[i] = logistic (f[i])) * h[i];
  affine (param (l, "W_h/W"), param (l, "W_h/b"), both, OUT + IN, OUT, g);
  for (int i = 0; i < OUT; i++)
    h[i] = f[i] * tanh (g[i]) + (1 - f[i]) * h[i];
}

static void
lstm_gates (TdLink *l, const double *x, const double *h, bool first, double *gates)
{
  double lateral[4 * OUT];

  affine (param (l, "upward/W"), param (l, "upward/b"), x, IN, 4 * OUT, gates);
  affine (param (l, "lateral/W"), NULL, h, OUT, 4 * OUT, lateral);
  for (int i = 0; i < 4 * OUT && !first; i++)
    gates[i] += lateral[i];
}

static void
lstm_step (TdLink *l, const double *x, double *h, double *c, bool first)
{
  double g[4 * OUT];

  lstm_gates (l, x, h, first, g);
  for (int i = 0; i < OUT; i++)
    {
      c[i] = tanh (g[4 * i]) * logistic (g[4 * i + 1]) + logistic (g[4 * i + 2]) * c[i];
      h[i] = logistic (g[4 * i + 3]) * tanh (c[i]);
    }
}

static void
peephole_step (TdLink *l, const double *x, double *h, double *c, bool first)
{
  double g[4 * OUT], pi[OUT], pf[OUT], po[OUT];

  lstm_gates (l, x, h, first, g);
  affine (param (l, "peep_i/W"), NULL, c, OUT, OUT, pi);
  affine (param (l, "peep_f/W"), NULL, c, OUT, OUT, pf);
  for (int i = 0; i < OUT; i++)
    c[i] = tanh (g[4 * i]) * logistic (g[4 * i + 1] + pi[i])
           + logistic (g[4 * i + 2] + pf[i]) * c[i];
  affine (param (l, "peep_o/W"), NULL, c, OUT, OUT, po);
  for (int i = 0; i < OUT; i++)
    h[i] = logistic (g[4 * i + 3] + po[i]) * tanh (c[i]);
}

/* in[0] (STEPS, N, IN): out[0] is the sum of all steps' outputs, from a fresh state. */
static void
through_time (TdLink *link, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *sum = NULL;

  (void)n_in, (void)n_out;
  td_link_reset_state (link);
  for (int t = 0; t < STEPS; t++)
    {
      TdSlice at = TD_AT (t);
      TdVar *h = td_link (link, td_get_item (in[0], &at, 1));

      sum = sum == NULL ? h : td_add (sum, td_mul_scalar (h, t + 1));
    }
  out[0] = sum;
}

static void
check_stateful (TdLink *link, Step step, const char *keys)
{
  TdVar *x = wide (TD_SHAPE (STEPS, N, IN), 1);
  const double *v = numbers (x);
  double h[N][OUT] = { 0 }, c[N][OUT] = { 0 };

  assert_string_equal (param_keys (link), keys);
  fill_params (link, 3);
  for (int t = 0; t < STEPS; t++)
    {
      TdSlice at = TD_AT (t);
      const double *got = numbers (td_link (link, td_get_item (x, &at, 1)));

      for (int n = 0; n < N; n++)
        {
          step (link, v + (t * N + n) * IN, h[n], c[n], t == 0);
          for (int i = 0; i < OUT; i++)
            if (!(fabs (got[n * OUT + i] - h[n][i]) < 1e-13))
              fail_msg ("step %d: %g, %g expected", t, got[n * OUT + i], h[n][i]);
        }
    }
  assert_non_null (td_link_attr (link, "h"));
  check_gradients (link, through_time, &x, 1, 1);
  td_link_reset_state (link);
  assert_null (td_link_attr (link, "h"));
}

#define GRU_KEYS "W_r/W W_r/b U_r/W U_r/b W_z/W W_z/b U_z/W U_z/b W/W W/b U/W U/b "
#define LSTM_KEYS "upward/W upward/b lateral/W "

static void
stateful_gru__follows_the_formula (void **state)
{
  (void)state;
  check_stateful (td_stateful_gru_new (NULL, "l", IN, OUT), gru_step, GRU_KEYS);
}

static void
gru__is_the_stateful_one_and_waits_for_its_input (void **state)
{
  TdLink *l = td_gru_new (NULL, "l", TD_INFER, OUT, .bias_init = td_init_constant (0.5));

  (void)state;
  assert_true (param (l, "U_z/b")[0] == 0.5);
  for (int i = 0; i < 2; i++) /* the first call has no state for the reset gate to act on */
    td_link (l, wide (TD_SHAPE (N, IN), 1));
  td_link_reset_state (l);
  assert_string_equal (td_link_class_name (l), "GRU");
  check_stateful (l, gru_step, GRU_KEYS);
  td_gru_new (NULL, "m", IN, 0);
  assert_contains (said (TD_ERR_ARG), "got in 3 and out 0");
}

static void
stateful_mgu__follows_the_formula (void **state)
{
  (void)state;
  check_stateful (td_stateful_mgu_new (NULL, "l", IN, OUT), mgu_step,
                  "W_f/W W_f/b W_h/W W_h/b ");
}

static void
stateful_peephole_lstm__follows_the_formula (void **state)
{
  (void)state;
  check_stateful (td_stateful_peephole_lstm_new (NULL, "l", IN, OUT), peephole_step,
                  LSTM_KEYS "peep_i/W peep_f/W peep_o/W ");
}

static void
stateless_lstm__is_given_its_state (void **state)
{
  TdLink *l = td_stateless_lstm_new (NULL, "l", IN, OUT);
  TdVar *in[3] = { wide (TD_SHAPE (N, OUT), 4), wide (TD_SHAPE (N, OUT), 5),
                   wide (TD_SHAPE (N, IN), 6) };
  TdVar *out[2], *alone[2];
  double h[N][OUT], c[N][OUT];
  const double *got_c, *got_h, *x = numbers (in[2]);

  (void)state;
  assert_string_equal (param_keys (l), LSTM_KEYS);
  assert_true (param (l, "upward/b")[2] == 1 && param (l, "upward/b")[3] == 0);
  fill_params (l, 3);
  memcpy (c, numbers (in[0]), sizeof c);
  memcpy (h, numbers (in[1]), sizeof h);
  plain_call (l, in, 3, out, 2);
  got_c = numbers (out[0]);
  got_h = numbers (out[1]);
  for (int n = 0; n < N; n++)
    {
      lstm_step (l, x + n * IN, h[n], c[n], false);
      for (int i = 0; i < OUT; i++)
        assert_true (fabs (got_c[n * OUT + i] - c[n][i]) < 1e-14
                     && fabs (got_h[n * OUT + i] - h[n][i]) < 1e-14);
    }
  check_gradients (l, plain_call, in, 3, 2);
  plain_call (l, in + 2, 1, alone, 2);
  in[0] = in[1] = td_zeros (TD_F64, TD_SHAPE (N, OUT));
  plain_call (l, in, 3, out, 2);
  assert_same (alone[0], out[0], 1e-15);
  td_link_call (l, in, 2, out, 2);
  assert_contains (said (TD_ERR_ARG), "three inputs and two outputs expected, got 2 and 2");
}

static void
stateless_gru__is_given_its_state (void **state)
{
  TdLink *l = td_stateless_gru_new (NULL, "l", IN, OUT);
  TdVar *in[2] = { wide (TD_SHAPE (N, OUT), 5), wide (TD_SHAPE (N, IN), 6) }, *y, *zero;
  double h[N][OUT];
  const double *got, *x = numbers (in[1]);

  (void)state;
  assert_string_equal (param_keys (l), GRU_KEYS);
  fill_params (l, 3);
  memcpy (h, numbers (in[0]), sizeof h);
  plain_call (l, in, 2, &y, 1);
  got = numbers (y);
  for (int n = 0; n < N; n++)
    {
      gru_step (l, x + n * IN, h[n], NULL, false);
      for (int i = 0; i < OUT; i++)
        assert_true (fabs (got[n * OUT + i] - h[n][i]) < 1e-14);
    }
  check_gradients (l, plain_call, in, 2, 1);
  plain_call (l, in + 1, 1, &zero, 1);
  in[0] = td_zeros (TD_F64, TD_SHAPE (N, OUT));
  plain_call (l, in, 2, &y, 1);
  assert_same (zero, y, 0);
}

/* --- whole sequences --- */

static const int lengths[3] = { 2, 4, 1 }; /* not sorted */

static void
make_sequences (TdVar **xs)
{
  for (int i = 0; i < 3; i++)
    xs[i] = wide (TD_SHAPE (lengths[i], IN), 20 + (unsigned)i);
}

/* One direction of one layer over one sequence: ys (length, OUT), h and c are overwritten. */
static void
cell_over (TdLink *layer, const char *kind, const double *x, int n_in, int length, bool back,
           double *h, double *c, double *ys, int width)
{
  int n_w = kind[0] == 'l' ? 4 : kind[0] == 'g' ? 3 : 1;
  double a[4][OUT], b[4][OUT];
  char name[8];

  for (int step = 0; step < length; step++)
    {
      int t = back ? length - 1 - step : step;

      for (int j = 0; j < n_w; j++)
        {
          const double *w, *bias;

          snprintf (name, sizeof name, "w%d", j);
          w = param (layer, name);
          name[0] = 'b';
          bias = param (layer, name);
          affine (w, bias, x + t * n_in, n_in, OUT, a[j]);
          snprintf (name, sizeof name, "w%d", j + n_w);
          w = param (layer, name);
          name[0] = 'b';
          bias = param (layer, name);
          affine (w, bias, h, OUT, OUT, b[j]);
        }
      for (int i = 0; i < OUT; i++)
        if (kind[0] == 'l')
          {
            c[i] = logistic (a[1][i] + b[1][i]) * c[i]
                   + logistic (a[0][i] + b[0][i]) * tanh (a[2][i] + b[2][i]);
            h[i] = logistic (a[3][i] + b[3][i]) * tanh (c[i]);
          }
        else if (kind[0] == 'g')
          {
            double z = logistic (a[1][i] + b[1][i]);

            h[i] = (1 - z) * tanh (a[2][i] + logistic (a[0][i] + b[0][i]) * b[2][i]) + z * h[i];
          }
        else
          h[i] = kind[0] == 't' ? tanh (a[0][i] + b[0][i]) : fmax (0, a[0][i] + b[0][i]);
      memcpy (ys + t * width, h, OUT * sizeof *h);
    }
}

static void
call_n_step (TdLink *link, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *hy, *cy, *ys[3];

  (void)n_in, (void)n_out;
  assert_int_equal (td_n_step_call (link, NULL, NULL, in, 3, &hy, &cy, ys), TD_OK);
  out[0] = hy;
  out[1] = td_concat (ys, 3, 0);
}

static void
check_n_step (TdLink *link, const char *kind, int n_layers, int directions)
{
  TdVar *xs[3], *ys[3], *hy, *cy = NULL;
  bool cell = kind[0] == 'l';
  TdVar *hx = wide (TD_SHAPE (n_layers * directions, 3, OUT), 7), *cx = wide (td_shape (hx), 8);
  double h[4][3][OUT], c[4][3][OUT];
  int width = OUT * directions;

  fill_params (link, 3);
  make_sequences (xs);
  memcpy (h, numbers (hx), (size_t)td_size (hx) * sizeof (double));
  memcpy (c, numbers (cx), (size_t)td_size (cx) * sizeof (double));
  assert_int_equal (
      td_n_step_call (link, hx, cell ? cx : NULL, xs, 3, &hy, cell ? &cy : NULL, ys), TD_OK);
  for (int s = 0; s < 3; s++)
    {
      double from[4 * 2 * OUT], to[4 * 2 * OUT];
      int n_in = IN;
      const double *got;

      memcpy (from, numbers (xs[s]), (size_t)(lengths[s] * IN) * sizeof (double));
      for (int layer = 0; layer < n_layers; layer++)
        {
          for (int d = 0; d < directions; d++)
            {
              int at = layer * directions + d;
              char name[8];

              snprintf (name, sizeof name, "%d", at);
              cell_over (td_link_child (link, name), kind, from, n_in, lengths[s], d == 1,
                         h[at][s], c[at][s], to + d * OUT, width);
            }
          memcpy (from, to, sizeof to);
          n_in = width;
        }
      assert_shape (ys[s], TD_SHAPE (lengths[s], width));
      got = numbers (ys[s]);
      for (int i = 0; i < lengths[s] * width; i++)
        if (!(fabs (got[i] - to[i]) < 1e-13))
          fail_msg ("sequence %d, element %d: %g, %g expected", s, i, got[i], to[i]);
    }
  for (int64_t i = 0; i < td_size (hy); i++)
    assert_true (fabs (numbers (hy)[i] - (&h[0][0][0])[i]) < 1e-13);
  for (int64_t i = 0; cell && i < td_size (cy); i++)
    assert_true (fabs (numbers (cy)[i] - (&c[0][0][0])[i]) < 1e-13);
  check_gradients (link, call_n_step, xs, 3, 2);
}

static void
n_step_lstm__takes_unsorted_sequences (void **state)
{
  TdLink *l = td_n_step_lstm_new (NULL, "l", 2, IN, OUT, 0);

  (void)state;
  assert_contains (param_keys (l), "0/w0 0/b0 0/w1 0/b1 ");
  assert_contains (param_keys (l), "1/w7 1/b7 ");
  assert_shape (td_link_param (l, "0/w3"), TD_SHAPE (OUT, IN));
  assert_shape (td_link_param (l, "0/w4"), TD_SHAPE (OUT, OUT));
  check_n_step (l, "lstm", 2, 1);
}

static void
n_step_bilstm__reads_both_ways (void **state)
{
  TdLink *l = td_n_step_bilstm_new (NULL, "l", 2, IN, OUT, 0);

  (void)state;
  assert_int_equal (td_link_n_children (l), 4);
  assert_shape (td_link_param (l, "2/w0"), TD_SHAPE (OUT, 2 * OUT));
  check_n_step (l, "lstm", 2, 2);
}

static void
n_step_gru__takes_unsorted_sequences (void **state)
{
  (void)state;
  check_n_step (td_n_step_gru_new (NULL, "l", 2, IN, OUT, 0), "gru", 2, 1);
  check_n_step (td_n_step_bigru_new (NULL, "b", 1, IN, OUT, 0), "gru", 1, 2);
}

static void
n_step_rnn__has_two_activations (void **state)
{
  TdLink *relu = td_n_step_rnn_relu_new (NULL, "r", 1, IN, OUT, 0);

  (void)state;
  assert_string_equal (param_keys (relu), "0/w0 0/b0 0/w1 0/b1 ");
  check_n_step (td_n_step_rnn_tanh_new (NULL, "l", 2, IN, OUT, 0), "tanh", 2, 1);
  check_n_step (relu, "relu", 1, 1);
}

static void
n_step__drops_between_layers_only_while_training (void **state)
{
  TdLink *l = td_n_step_gru_new (NULL, "l", 2, IN, OUT, 0.5);
  TdVar *xs[3], *a[3], *b[3], *c[3];

  (void)state;
  make_sequences (xs);
  td_n_step_call (l, NULL, NULL, xs, 3, NULL, NULL, a);
  td_n_step_call (l, NULL, NULL, xs, 3, NULL, NULL, b);
  assert_true (memcmp (numbers (a[1]), numbers (b[1]), 4 * OUT * 8) != 0);
  TD_USING (train, 0)
    {
      td_n_step_call (l, NULL, NULL, xs, 3, NULL, NULL, b);
      td_n_step_call (l, NULL, NULL, xs, 3, NULL, NULL, c);
    }
  assert_same (b[1], c[1], 0);
}

static void
n_step__names_what_does_not_fit (void **state)
{
  TdLink *l = td_n_step_lstm_new (NULL, "l", 1, IN, OUT, 0);
  TdVar *xs[3], *y[5];

  (void)state;
  make_sequences (xs);
  xs[1] = wide (TD_SHAPE (2, 5), 1);
  td_n_step_call (l, NULL, NULL, xs, 3, NULL, NULL, y);
  assert_contains (said (TD_ERR_SHAPE), "sequences (length, 3) expected, xs[1] is (2, 5)");
  make_sequences (xs);
  td_n_step_call (l, wide (TD_SHAPE (1, 2, OUT), 1), NULL, xs, 3, NULL, NULL, y);
  assert_contains (said (TD_ERR_SHAPE), "hx (1, 3, 4) expected, got (1, 2, 4)");
  td_link_call (l, xs, 2, y, 2);
  assert_contains (said (TD_ERR_ARG), "hx, cx and one or more sequences in");
  td_link (td_link_child (l, "0"), xs[0]);
  assert_contains (said (TD_ERR_STATE), "holds the weights of one layer");
  td_n_step_lstm_new (NULL, "m", 1, IN, OUT, 1.0);
  assert_contains (said (TD_ERR_ARG), "dropout");
  td_n_step_call (td_linear_new (NULL, "n", 2, 2), NULL, NULL, xs, 3, NULL, NULL, y);
  assert_contains (said (TD_ERR_ARG), "an n-step link");
}

#define wide_test(f) cmocka_unit_test_setup_teardown (f, setup, fixture_teardown)

int
main (int argc, char **argv)
{
  struct CMUnitTest tests[] = {
    wide_test (stateful_gru__follows_the_formula),
    wide_test (gru__is_the_stateful_one_and_waits_for_its_input),
    wide_test (stateful_mgu__follows_the_formula),
    wide_test (stateful_peephole_lstm__follows_the_formula),
    wide_test (stateless_lstm__is_given_its_state),
    wide_test (stateless_gru__is_given_its_state),
    wide_test (n_step_lstm__takes_unsorted_sequences),
    wide_test (n_step_bilstm__reads_both_ways),
    wide_test (n_step_gru__takes_unsorted_sequences),
    wide_test (n_step_rnn__has_two_activations),
    wide_test (n_step__drops_between_layers_only_while_training),
    wide_test (n_step__names_what_does_not_fit),
  };

  return _cmocka_run_group_tests (
      "links-recurrent", tests,
      fixture_part (tests, sizeof tests / sizeof tests[0], argc, argv), NULL, NULL);
}
