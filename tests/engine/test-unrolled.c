/* Nets as long or as branched as their data: back-propagation that is cut off in time by
 * td_unchain_backward, and trees of every size and shape (row DY06).
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "start.h"

enum
{
  SIZE = 3,
  UNITS = 4,
  WINDOW = 5,
  N_WINDOWS = 4
};

static int
setup (void **state)
{
  fixture_setup (state);
  td_set_seed (7);
  return 0;
}

/* The numbers of an f64 array.  *Owner*: the caller, free (). */
static double *
numbers (TdVar *v)
{
  size_t bytes = (size_t)td_size (v) * sizeof (double);
  double *host = malloc (bytes + 1);

  assert_non_null (host);
  assert_int_equal (td_dtype (v), TD_F64);
  assert_int_equal (td_read (v, host, bytes), TD_OK);
  return host;
}

static TdVar *
input (int t)
{
  const double x[SIZE] = { sin (1.0 + t), cos (2.0 * t), 0.3 * sin (0.5 * t) };

  return td_tensor (TD_F64, TD_SHAPE (1, SIZE), x);
}

/* The loss of steps from .. from + n - 1 of a recurrent link, which goes on from where it is.
 */
static TdVar *
window_loss (TdLink *lstm, int from, int n)
{
  TdVar *loss = NULL;

  for (int t = from; t < from + n; t++)
    {
      TdVar *l = td_sum (td_square (td_link (lstm, input (t))));

      loss = loss == NULL ? l : td_add (loss, l);
    }
  return loss;
}

/* The same window by itself, from a state that is only numbers. */
typedef struct
{
  TdLink *lstm;
  double *c, *h;
  int from;
} Window;

static TdVar *
cut_loss (const Window *w)
{
  td_lstm_set_state (w->lstm, td_tensor (TD_F64, TD_SHAPE (1, UNITS), w->c),
                     td_tensor (TD_F64, TD_SHAPE (1, UNITS), w->h));
  return window_loss (w->lstm, w->from, WINDOW);
}

/* d loss / d p[i] by central differences against what backward left in p's gradient. */
static void
assert_gradient (TdVar *p, TdVar *(*loss) (void *user), void *user)
{
  double *p0 = numbers (p), *g = numbers (td_grad (p));
  size_t bytes = (size_t)td_size (p) * sizeof *p0;

  for (int64_t i = 0; i < td_size (p); i++)
    {
      double side[2], keep = p0[i], slope;

      for (int k = 0; k < 2; k++)
        TD_NO_BACKPROP
          TD_SCOPE ("difference")
            {
              p0[i] = keep + (k == 0 ? 1e-5 : -1e-5);
              td_write (p, p0, bytes);
              side[k] = td_item (loss (user));
            }
      p0[i] = keep;
      td_write (p, p0, bytes);
      slope = (side[0] - side[1]) / 2e-5;
      assert_true (fabs (g[i] - slope) < 1e-7 + 1e-6 * fabs (slope));
    }
  free (p0);
  free (g);
}

static TdVar *
cut_loss_of (void *user)
{
  return cut_loss (user);
}

/* The gradient of each window is that of the window alone: nothing flows in from windows
 * before, although the numbers of the state do. */
static void
unchain_backward__truncates_gradients_at_the_window (void **state)
{
  static const char *const names[] = { "upward/W", "lateral/W", "upward/b" };
  TdLink *lstm = NULL;

  (void)state;
  TD_USING (dtype, TD_F64)
    lstm = td_lstm_new (NULL, "lstm", SIZE, UNITS);
  for (int k = 0; k < N_WINDOWS; k++)
    {
      Window w = { .lstm = lstm, .from = k * WINDOW };
      TdVar *loss, *c, *h;

      if (k > 0)
        {
          w.c = numbers (td_lstm_c (lstm));
          w.h = numbers (td_lstm_h (lstm));
        }
      loss = window_loss (lstm, w.from, WINDOW);
      td_cleargrads (lstm);
      assert_int_equal (td_backward (loss, 0), TD_OK);
      td_unchain_backward (loss);
      c = td_retain (td_lstm_c (lstm));
      h = td_retain (td_lstm_h (lstm));
      for (int i = 0; i < 3 && k > 0; i++)
        assert_gradient (td_link_param (lstm, names[i]), cut_loss_of, &w);
      td_lstm_set_state (lstm, c, h);
      td_release (c);
      td_release (h);
      free (w.c);
      free (w.h);
    }
  td_lstm_reset_state (lstm);
}

/* Without the cut the same window has another gradient: the test above can fail. */
static void
unchain_backward__is_what_truncates (void **state)
{
  TdLink *lstm = NULL;
  double *gradients[2] = { NULL };
  TdVar *W, *loss;
  double most = 0;

  (void)state;
  TD_USING (dtype, TD_F64)
    lstm = td_lstm_new (NULL, "lstm", SIZE, UNITS);
  W = td_link_param (lstm, "upward/W");
  for (int unchain = 0; unchain < 2; unchain++)
    {
      td_lstm_reset_state (lstm);
      loss = window_loss (lstm, 0, WINDOW);
      if (unchain)
        td_unchain_backward (loss);
      loss = window_loss (lstm, WINDOW, WINDOW);
      td_cleargrads (lstm);
      td_backward (loss, 0);
      gradients[unchain] = numbers (td_grad (W));
    }
  for (int64_t i = 0; i < td_size (W); i++)
    most = fmax (most, fabs (gradients[1][i] - gradients[0][i]));
  assert_true (most > 1e-3);
  free (gradients[0]);
  free (gradients[1]);
  td_lstm_reset_state (lstm);
}

/* What lives after each window is the same, however many there were. */
static void
unchain_backward__keeps_a_long_run_at_one_window_of_memory (void **state)
{
  TdLink *lstm = td_lstm_new (NULL, "lstm", SIZE, UNITS);
  TdOpt *opt = td_sgd_new (lstm, .lr = 0.01);
  TdMemInfo warm = { 0 };

  (void)state;
  for (int k = 0; k < 50; k++)
    {
      TdMemInfo now;

      TD_ITERATION (k)
        {
          TdVar *loss = NULL;

          for (int t = 0; t < WINDOW; t++)
            {
              TdVar *l = td_sum (
                  td_square (td_link (lstm, td_cast (input (WINDOW * k + t), TD_F32))));

              loss = loss == NULL ? l : td_add (loss, l);
            }
          td_cleargrads (lstm);
          td_backward (loss, 0);
          td_unchain_backward (loss);
          td_opt_update (opt);
        }
      now = td_mem_info (NULL);
      if (k == 2)
        warm = now;
      if (k > 2)
        {
          assert_int_equal (now.live_bytes, warm.live_bytes);
          assert_int_equal (now.live_nodes, warm.live_nodes);
          assert_int_equal (now.live_ops, warm.live_ops);
        }
      assert_int_equal (now.live_ops, 0);
    }
  td_lstm_reset_state (lstm);
}

/* --- trees --- */

/* Parents of a net that joins two states; the shape of the tree is counted through. */
typedef struct
{
  TdLink *leaf, *join;
  int n_leaves, shape, next_leaf;
} Tree;

/* A tree of n leaves; where it divides is taken from `shape`, digit by digit. */
static TdVar *
grow (Tree *t, int n)
{
  TdVar *pair[2];
  int left;

  if (n == 1)
    {
      int32_t id = t->next_leaf++ % 4;

      return td_link (t->leaf, td_tensor (TD_I32, TD_SHAPE (1), &id));
    }
  left = 1 + t->shape % (n - 1);
  t->shape /= n - 1;
  pair[0] = grow (t, left);
  pair[1] = grow (t, n - left);
  return td_tanh (td_link (t->join, td_concat (pair, 2, 1)));
}

static TdVar *
tree_loss (void *user)
{
  Tree t = *(const Tree *)user;

  return td_sum (td_square (grow (&t, t.n_leaves)));
}

static void
tree_net__has_right_gradients_at_every_size_and_shape (void **state)
{
  Tree t = { .n_leaves = 1 };

  (void)state;
  TD_USING (dtype, TD_F64)
    {
      t.leaf = td_embed_id_new (NULL, "leaf", 4, 2);
      t.join = td_linear_new (NULL, "join", 4, 2);
    }
  for (t.n_leaves = 1; t.n_leaves <= 9; t.n_leaves++)
    for (t.shape = 0; t.shape < (t.n_leaves < 3 ? 1 : 4 * t.n_leaves); t.shape += 3)
      TD_SCOPE ("tree")
        {
          TdMemInfo before = td_mem_info (NULL), after;
          TdVar *loss = tree_loss (&t);

          after = td_mem_info (NULL);
          /* leaves, and concat, linear, tanh for each pair; square and sum */
          assert_int_equal (after.live_ops - before.live_ops,
                            t.n_leaves + 3 * (t.n_leaves - 1) + 2);
          td_cleargrads (t.leaf);
          td_cleargrads (t.join);
          assert_int_equal (td_backward (loss, 0), TD_OK);
          assert_gradient (td_link_param (t.leaf, "W"), tree_loss, &t);
          if (t.n_leaves > 1)
            {
              assert_gradient (td_link_param (t.join, "W"), tree_loss, &t);
              assert_gradient (td_link_param (t.join, "b"), tree_loss, &t);
            }
        }
}

#define row(f) cmocka_unit_test_setup_teardown (f, setup, fixture_teardown)

int
main (void)
{
  const struct CMUnitTest tests[] = {
    row (unchain_backward__truncates_gradients_at_the_window),
    row (unchain_backward__is_what_truncates),
    row (unchain_backward__keeps_a_long_run_at_one_window_of_memory),
    row (tree_net__has_right_gradients_at_every_size_and_shape),
  };

  return cmocka_run_group_tests_name ("unrolled", tests, NULL, NULL);
}
