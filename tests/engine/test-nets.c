/* Whole nets of links: recurrent and recursive gradients, sequences of many lengths, memory of
 * a training loop, and training that is bitwise that of a reference (rows DY06, DY07, DY14,
 * DY16, DY19, EX03, EX11, EX12 of the inventory; the engine's own side of them is in core/).
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "start.h"

static int
setup (void **state)
{
  fixture_setup (state);
  td_set_seed (3);
  return 0;
}

/* All numbers of an f32 or f64 array, as doubles. */
static double *
values (TdVar *v)
{
  static double room[4096];
  float single[4096];
  int64_t n = td_size (v);

  assert_true (n <= 4096);
  if (td_dtype (v) == TD_F64)
    assert_int_equal (td_read (v, room, (size_t)n * sizeof *room), TD_OK);
  else
    {
      assert_int_equal (td_read (v, single, (size_t)n * sizeof *single), TD_OK);
      for (int64_t i = 0; i < n; i++)
        room[i] = (double)single[i];
    }
  return room;
}

/* d loss / d p[i] by central differences, for every element of an f64 parameter, against what
 * backward left in its gradient. */
static void
check_gradient (TdVar *p, TdVar *(*loss) (void *user), void *user)
{
  double p0[256], g[256];
  int64_t n = td_size (p);
  size_t bytes = (size_t)n * sizeof *p0;

  td_cleargrad (p);
  TD_SCOPE ("backward")
    {
      assert_int_equal (td_backward (loss (user), 0), TD_OK);
    }
  memcpy (g, values (td_grad (p)), bytes);
  memcpy (p0, values (p), bytes);
  for (int64_t i = 0; i < n; i++)
    {
      double side[2], keep = p0[i];

      for (int k = 0; k < 2; k++)
        TD_NO_BACKPROP
          TD_SCOPE ("difference")
            {
              p0[i] = keep + (k == 0 ? 1e-5 : -1e-5);
              td_write (p, p0, bytes);
              side[k] = td_item (loss (user));
            }
      p0[i] = keep;
      if (fabs ((side[0] - side[1]) / 2e-5 - g[i]) > 1e-7 * fmax (1, fabs (g[i])))
        fail_msg ("element %d: %.12g, differences give %.12g", (int)i, g[i],
                  (side[0] - side[1]) / 2e-5);
    }
  td_write (p, p0, bytes);
}

/* --- DY06, DY19: recurrent and recursive --- */

typedef struct
{
  TdLink *lstm, *leaf, *join;
  int length;
} Nets;

static TdVar *
rnn_loss (void *user)
{
  Nets *n = user;
  TdVar *y = NULL;

  td_lstm_reset_state (n->lstm);
  for (int t = 0; t < n->length; t++)
    {
      double x[3] = { sin (t), cos (t), 0.1 * t };

      y = td_link (n->lstm, td_tensor (TD_F64, TD_SHAPE (1, 3), x));
    }
  td_lstm_reset_state (n->lstm);
  return td_sum (td_square (y));
}

/* A tree in brackets, "((ab)c)": a leaf by its letter, a pair by joining its halves. */
static TdVar *
tree (Nets *n, const char **at)
{
  if (*(*at) == '(')
    {
      TdVar *pair[2];

      ++*at;
      pair[0] = tree (n, at);
      pair[1] = tree (n, at);
      ++*at;
      return td_tanh (td_link (n->join, td_concat (pair, 2, 1)));
    }
  int32_t id = *(*at)++ - 'a';
  return td_link (n->leaf, td_tensor (TD_I32, TD_SHAPE (1), &id));
}

static TdVar *
tree_loss (void *user)
{
  static const char *const trees[] = { "a", "((ab)c)", "((a(bc))(da))" };
  Nets *n = user;
  TdVar *loss = NULL;

  for (int i = 0; i < 3; i++)
    {
      const char *at = trees[i];
      TdVar *l = td_sum (td_square (tree (n, &at)));

      loss = loss == NULL ? l : td_add (loss, l);
    }
  return loss;
}

static void
dy06__recurrent_and_recursive_nets_have_right_gradients (void **state)
{
  Nets n = { .length = 1 };

  (void)state;
  TD_USING (dtype, TD_F64)
    {
      n.lstm = td_lstm_new (NULL, "lstm", 3, 2);
      n.leaf = td_embed_id_new (NULL, "leaf", 4, 2);
      n.join = td_linear_new (NULL, "join", 4, 2);
    }
  for (int k = 0; k < 3; k++)
    {
      n.length = 1 + 4 * k;
      check_gradient (td_link_param (n.lstm, "upward/W"), rnn_loss, &n);
      if (n.length > 1)
        check_gradient (td_link_param (n.lstm, "lateral/W"), rnn_loss, &n);
    }
  check_gradient (td_link_param (n.join, "W"), tree_loss, &n);
  check_gradient (td_link_param (n.leaf, "W"), tree_loss, &n);
}

static void
dy19__sequences_sorted_by_length_need_no_padding (void **state)
{
  static const int lengths[3] = { 5, 3, 2 };
  TdLink *lstm;
  TdVar *W, *apart = NULL, *together = NULL;
  double data[5][3][3], g[32];

  (void)state;
  TD_USING (dtype, TD_F64)
    lstm = td_lstm_new (NULL, "lstm", 3, 2);
  W = td_link_param (lstm, "upward/W");
  for (int i = 0; i < 45; i++)
    (&data[0][0][0])[i] = sin (i);
  for (int s = 0; s < 3; s++) /* each sequence by itself */
    {
      TdVar *y = NULL;

      td_lstm_reset_state (lstm);
      for (int t = 0; t < lengths[s]; t++)
        y = td_link (lstm, td_tensor (TD_F64, TD_SHAPE (1, 3), data[t][s]));
      y = td_sum (td_square (y));
      apart = apart == NULL ? y : td_add (apart, y);
    }
  td_backward (apart, 0);
  memcpy (g, values (td_grad (W)), sizeof (double[24]));
  td_cleargrad (W);
  td_lstm_reset_state (lstm);
  for (int t = 0; t < 5; t++) /* the batch shrinks as sequences end */
    {
      int n = (lengths[0] > t) + (lengths[1] > t) + (lengths[2] > t);

      td_link (lstm, td_tensor (TD_F64, TD_SHAPE (n, 3), data[t]));
    }
  together = td_sum (td_square (td_lstm_h (lstm)));
  assert_true (fabs (td_item (together) - td_item (apart)) < 1e-12);
  td_backward (together, 0);
  for (int i = 0; i < 24; i++)
    assert_true (fabs (values (td_grad (W))[i] - g[i]) < 1e-12);
  td_lstm_reset_state (lstm);
}

/* --- DY07: memory --- */

static void
dy07__the_graph_is_gone_when_the_loss_is (void **state)
{
  TdLink *m = td_sequential_new ("m");
  TdOpt *opt;
  TdMemInfo warm = { 0 };

  (void)state;
  td_linear_new (m, "l1", 6, 5);
  td_sequential_append (m, td_relu);
  td_linear_new (m, "l2", 5, 2);
  opt = td_adam_new (m);
  for (int i = 0; i < 5; i++)
    {
      TdMemInfo now;

      TD_ITERATION (i)
        {
          TdVar *loss = td_sum (td_square (td_link (m, td_rand (TD_F32, TD_SHAPE (4, 6)))));

          td_cleargrads (m);
          td_backward (loss, 0);
          td_opt_update (opt);
        }
      now = td_mem_info (NULL);
      if (i == 0)
        warm = now;
      assert_int_equal (now.live_ops, 0);
      assert_int_equal (now.live_nodes, 4 + 4 + 8); /* parameters, gradients, Adam's m and v */
      assert_int_equal (now.live_bytes, warm.live_bytes);
      assert_int_equal (now.category_bytes[TD_MEM_ACTIVATION], 0);
      assert_int_equal (now.category_bytes[TD_MEM_INPUT], 0);
    }
}

/* --- DY14: one's own --- */

static TdStatus
scale_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self, (void)n_in, (void)n_out;
  out[0] = td_mul (in[0], td_link_param (link, "scale"));
  return TD_OK;
}

static const TdLinkClass scale_class
    = { .size = sizeof (TdLinkClass), .name = "MyScale", .forward = scale_forward };

static TdLink *
scale_model (double scale, double seen_so_far)
{
  TdLink *m = td_chain_new ("m"), *s = td_link_new (&scale_class, m, "s");

  td_link_add_param (s, "scale", TD_SHAPE (2), TD_F32, td_init_constant (scale));
  td_link_add_persistent (s, "seen", td_full (TD_I64, TD_SCALAR, seen_so_far));
  return m;
}

static void
dy14__a_link_of_ones_own_trains_and_is_saved (void **state)
{
  TdLink *a = scale_model (3, 7), *b = scale_model (0, 0);
  TdVar *x = td_ones (TD_F32, TD_SHAPE (2));
  TdOpt *opt = td_sgd_new (a, .lr = 0.5);

  (void)state;
  td_backward (td_sum (td_link (td_link_child (a, "s"), x)), 0);
  td_opt_update (opt);
  assert_int_equal (td_save_npz (td_test_tmp ("m.npz"), a), TD_OK);
  assert_int_equal (td_load_npz (td_test_tmp ("m.npz"), b), TD_OK);
  assert_true (values (td_link_param (b, "s/scale"))[1] == 2.5);
  assert_true (td_item (td_link_param (b, "s/seen")) == 7);
  assert_string_equal (td_link_path (td_link_child (b, "s")), "m#2/s");
}

/* --- DY18: a model that is built again --- */

static TdLink *
version (int hidden, bool third)
{
  TdLink *m = td_chain_new ("m");

  td_linear_new (m, "l1", 4, 5);
  td_linear_new (m, "l2", 5, hidden);
  if (third)
    td_linear_new (m, "l3", hidden, 2);
  return m;
}

static void
dy18__a_changed_model_takes_from_a_file_what_still_fits (void **state)
{
  TdLink *before = version (3, false), *after = version (6, true);
  const char *path = td_test_tmp ("before.npz");
  double W[20], own[30];

  (void)state;
  assert_int_equal (td_save_npz (path, before), TD_OK);
  memcpy (W, values (td_link_param (before, "l1/W")), sizeof W);
  memcpy (own, values (td_link_param (after, "l2/W")), sizeof own);
  assert_int_equal (td_load_npz (path, after), TD_ERR_SHAPE);
  assert_contains (td_error ()->message, "l2/W");
  td_error_clear ();
  assert_memory_not_equal (values (td_link_param (after, "l1/W")), W, sizeof W);
  assert_int_equal (td_load_npz (path, after, .strict = false, .ignore_names = "l2/W,l2/b"),
                    TD_OK);
  assert_memory_equal (values (td_link_param (after, "l1/W")), W, sizeof W);
  assert_memory_equal (values (td_link_param (after, "l2/W")), own, sizeof own);
  assert_int_equal (td_size (td_link_param (after, "l3/W")), 12);
}

/* --- DY16 --- */

/* Two structures in turn: w x, and (w x) x. The reference multiplies in the same order. */
static void
dy16__structures_in_turn_train_bitwise_as_the_reference (void **state)
{
  static const float data[3] = { 0.3f, -1.7f, 2.1f };
  TdLink *m = td_chain_new ("m");
  TdVar *W = td_link_add_param (m, "W", TD_SHAPE (3), TD_F32, td_init_constant (0.7));
  TdOpt *opt = td_sgd_new (m, .lr = 0.125);
  float w[3] = { 0.7f, 0.7f, 0.7f }, got[3];

  (void)state;
  for (int i = 0; i < 40; i++)
    TD_ITERATION (i)
      {
        TdVar *x = td_tensor (TD_F32, TD_SHAPE (3), data);
        TdVar *h = td_mul (W, x);

        if (i % 2 == 1)
          h = td_mul (h, x);
        td_cleargrads (m);
        td_backward (td_sum (h), 0);
        td_opt_update (opt);
        for (int k = 0; k < 3; k++)
          {
            float g = i % 2 == 1 ? data[k] * data[k] : data[k], step = 0.125f * g;

            w[k] -= step;
          }
      }
  assert_int_equal (td_read (W, got, sizeof got), TD_OK);
  assert_memory_equal (got, w, sizeof w);
}

/* --- EX03, EX11, EX12 --- */

static void
ex03__normal_numbers_are_repeated_by_their_seed (void **state)
{
  double a[5], b[5], c[5];

  (void)state;
  td_set_seed (11);
  memcpy (a, values (td_randn (TD_F32, TD_SHAPE (5))), sizeof a);
  memcpy (c, values (td_randn (TD_F32, TD_SHAPE (5))), sizeof c);
  td_set_seed (11);
  memcpy (b, values (td_randn (TD_F32, TD_SHAPE (5))), sizeof b);
  assert_memory_equal (a, b, sizeof a);
  assert_memory_not_equal (a, c, sizeof a);
}

static void
ex11_ex12__parameters_have_their_names_and_wait_for_their_sizes (void **state)
{
  TdLink *model = td_chain_new ("model");
  TdLink *l1 = td_linear_new (model, "l1", TD_INFER, 5),
         *l2 = td_linear_new (model, "l2", 5, 2);
  TdVar *y;

  (void)state;
  assert_null (td_link_param (model, "l1/W"));
  y = td_link (l2, td_relu (td_link (l1, td_rand (TD_F32, TD_SHAPE (3, 4)))));
  assert_int_equal (td_shape (td_link_param (model, "l1/W")).dim[0], 5);
  assert_int_equal (td_shape (td_link_param (model, "l1/W")).dim[1], 4);
  assert_int_equal (td_size (td_link_param (model, "l1/b")), 5);
  assert_int_equal (td_size (td_link_param (model, "l2/W")), 10);
  assert_int_equal (td_size (td_link_param (model, "l2/b")), 2);
  assert_int_equal (td_shape (y).dim[0], 3);
  assert_int_equal (td_shape (y).dim[1], 2);
}

#define td_net_test(f) cmocka_unit_test_setup_teardown (f, setup, fixture_teardown)

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_net_test (dy06__recurrent_and_recursive_nets_have_right_gradients),
    td_net_test (dy07__the_graph_is_gone_when_the_loss_is),
    td_net_test (dy14__a_link_of_ones_own_trains_and_is_saved),
    td_net_test (dy18__a_changed_model_takes_from_a_file_what_still_fits),
    td_net_test (dy16__structures_in_turn_train_bitwise_as_the_reference),
    td_net_test (dy19__sequences_sorted_by_length_need_no_padding),
    td_net_test (ex03__normal_numbers_are_repeated_by_their_seed),
    td_net_test (ex11_ex12__parameters_have_their_names_and_wait_for_their_sizes),
  };

  return cmocka_run_group_tests_name ("nets", tests, NULL, NULL);
}
