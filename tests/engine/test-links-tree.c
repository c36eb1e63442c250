/* The tree of links as a whole: lists, copies, repetition, switches of updates, values and
 * gradients from one tree to another, and links and operations of the program's own.
 *
 * SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <tapedeck-op.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static TdLink *
mlp (const char *name)
{
  TdLink *net = td_sequential_new (name);

  td_linear_new (net, "l1", 3, 4);
  td_batch_normalization_new (net, "bn", 4, .use_gamma = false);
  td_sequential_append (net, td_tanh);
  td_linear_new (net, "l2", 4, 2);
  return net;
}

/* --- lists --- */

static void
chain_list__names_links_by_their_places (void **state)
{
  TdLink *m = td_chain_new ("m"), *list = td_chain_list_new (m, "blocks"), *gone;

  (void)state;
  for (int i = 0; i < 3; i++)
    td_chain_list_append (list, td_linear_new (NULL, "l", 2, i + 1));
  assert_string_equal (param_keys (m), "blocks/0/W blocks/0/b blocks/1/W blocks/1/b blocks/2/W "
                                       "blocks/2/b ");
  td_chain_list_insert (list, 1, td_linear_new (NULL, "new", 2, 9));
  assert_int_equal (td_link_n_children (list), 4);
  assert_shape (td_link_param (m, "blocks/1/W"), TD_SHAPE (9, 2));
  assert_shape (td_link_param (m, "blocks/3/W"), TD_SHAPE (3, 2));
  gone = td_chain_list_remove (list, 0);
  assert_string_equal (td_link_path (gone), "0");
  assert_shape (td_link_param (m, "blocks/0/W"), TD_SHAPE (9, 2));
  assert_shape (td_link_param (m, "blocks/2/W"), TD_SHAPE (3, 2));
  assert_string_equal (td_link_path (td_link_child_at (list, 2)), "m/blocks/2");
  td_chain_list_remove (list, 3);
  assert_contains (said (TD_ERR_ARG), "m/blocks has 3 links, no place 3");
  td_chain_list_append (m, gone);
  assert_contains (said (TD_ERR_ARG), "m is a Chain, not a ChainList");
  td_link (list, td_zeros (TD_F32, TD_SHAPE (1, 2)));
  assert_contains (said (TD_ERR_STATE), "only lists its links");
}

/* --- sequences of steps --- */

static TdVar *
add_one (TdVar *x)
{
  return td_add_scalar (x, 1);
}

static TdVar *
twice (TdVar *x)
{
  return td_mul_scalar (x, 2);
}

static TdVar *
minus (TdVar *x)
{
  return td_neg (x);
}

static void
sequential__is_a_list_of_steps (void **state)
{
  TdLink *s = td_sequential_new ("s"),
         *l
         = td_linear_new (NULL, "l", 1, 1, .nobias = true, .initialW = td_init_constant (10)),
         *out;
  TdVar *x = td_full (TD_F32, TD_SHAPE (1, 1), 3);

  (void)state;
  td_sequential_append (s, add_one);
  td_sequential_append (s, twice);
  assert_true (td_item (td_link (s, x)) == 8);
  td_sequential_insert_link (s, 1, "l", l);
  td_sequential_insert (s, 0, minus);
  assert_int_equal (td_sequential_n_steps (s), 4);
  assert_true (td_item (td_link (s, x)) == (-3 + 1) * 10 * 2);
  assert_string_equal (td_link_path (l), "s/l");
  assert_int_equal (td_sequential_count_by_layer_type (s, "Linear"), 1);
  assert_null (td_sequential_pop (s, -1));
  out = td_sequential_pop (s, 2);
  assert_ptr_equal (out, l);
  assert_string_equal (td_link_path (l), "l");
  assert_true (td_item (td_link (s, x)) == -2);
  assert_null (td_sequential_pop (s, 2));
  assert_contains (said (TD_ERR_ARG), "s has 2 steps, no place 2");
  td_sequential_insert_link (s, 2, "l", l);
  td_linear_new (s, "m", 1, 1);
  assert_int_equal (td_sequential_remove_by_layer_type (s, "Linear"), 2);
  assert_int_equal (td_sequential_n_steps (s), 2);
  td_sequential_clear (s);
  assert_int_equal (td_sequential_n_steps (s), 0);
  assert_true (td_item (td_link (s, x)) == 3);
  td_sequential_pop (td_chain_new ("c"), 0);
  assert_contains (said (TD_ERR_ARG), "c is a Chain, not a Sequential");
}

/* --- copies --- */

static void
copy__init_draws_anew_and_copy_does_not (void **state)
{
  TdLink *net = mlp ("net"), *copy = td_link_copy (net, TD_COPY_COPY),
         *init = td_link_copy (net, TD_COPY_INIT);
  const double *w = numbers (td_link_param (net, "l1/W"));

  (void)state;
  assert_memory_equal (numbers (td_link_param (copy, "l1/W")), w, 12 * sizeof *w);
  assert_true (memcmp (numbers (td_link_param (init, "l1/W")), w, 12 * sizeof *w) != 0);
  assert_string_equal (param_keys (init), "l1/W l1/b bn/beta l2/W l2/b ");
  assert_shape (td_link (copy, td_zeros (TD_F32, TD_SHAPE (2, 3))), TD_SHAPE (2, 2));
  td_link_copy (net, 7);
  assert_contains (said (TD_ERR_ARG), "mode share, copy or init expected, got 7");
}

static void
copy__share_has_one_array_and_two_gradients (void **state)
{
  TdLink *net = mlp ("net"), *twin = td_link_copy (net, TD_COPY_SHARE);
  TdVar *x = td_rand (TD_F32, TD_SHAPE (5, 3));
  TdOpt *opt = td_sgd_new (net, .lr = 0.5);

  (void)state;
  assert_true (td_link_param (net, "l1/W") != td_link_param (twin, "l1/W"));
  td_cleargrads (net);
  td_backward (td_sum (td_link (net, x)), 0);
  assert_non_null (td_grad (td_link_param (net, "l2/b")));
  assert_null (td_grad (td_link_param (twin, "l2/b")));
  td_opt_update (opt);
  assert_same (td_link_param (twin, "l2/W"), td_link_param (net, "l2/W"), 0);
  assert_same (td_link_param (twin, "bn/avg_mean"), td_link_param (net, "bn/avg_mean"), 0);
  TD_USING (train, 0)
    assert_same (td_link (twin, x), td_link (net, x), 0);
  td_link_free (net);
  assert_shape (td_link (twin, x), TD_SHAPE (5, 2)); /* the arrays live on */
}

static TdStatus
nothing (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)link, (void)self, (void)n_in, (void)n_out;
  out[0] = in[0];
  return TD_OK;
}

static void
free_nothing (void *self)
{
  (void)self;
}

static void
copy__refuses_what_cannot_be_copied_before_it_begins (void **state)
{
  static const TdLinkClass owner = {
    .size = sizeof (TdLinkClass), .name = "Owner", .forward = nothing, .free = free_nothing
  };
  TdLink *m = td_chain_new ("m");
  TdMemInfo before;

  (void)state;
  td_linear_new (m, "l", 2, 2);
  td_link_new (&owner, m, "own");
  before = td_mem_info (NULL);
  td_link_copy (m);
  assert_contains (said (TD_ERR_STATE), "Owner links own memory and say not how it is copied");
  assert_int_equal (td_mem_info (NULL).live_vars, before.live_vars);
}

static void
repeat__makes_a_sequential_of_copies (void **state)
{
  TdLink *l = td_linear_new (NULL, "l", 3, 3), *many, *same;
  TdVar *x = td_rand (TD_F32, TD_SHAPE (2, 3)), *y = x;

  (void)state;
  many = td_link_repeat (NULL, "many", l, 3, TD_COPY_INIT);
  same = td_link_repeat (NULL, "same", l, 3, TD_COPY_COPY);
  assert_string_equal (param_keys (many), "0/W 0/b 1/W 1/b 2/W 2/b ");
  assert_true (memcmp (numbers (td_link_param (many, "0/W")),
                       numbers (td_link_param (many, "2/W")), 9 * sizeof (double))
               != 0);
  for (int i = 0; i < 3; i++)
    y = td_link (l, y);
  assert_same (td_link (same, x), y, 1e-6);
  assert_int_equal (td_link_n_children (td_link_repeat (NULL, "none", l, 0, TD_COPY_INIT)), 0);
}

/* --- switches --- */

static void
disable_update__leaves_parameters_alone_also_those_to_come (void **state)
{
  TdLink *net = td_sequential_new ("net");
  TdLink *l1 = td_linear_new (net, "l1", TD_INFER, 4), *l2 = td_linear_new (net, "l2", 4, 1);
  TdVar *x = td_rand (TD_F32, TD_SHAPE (5, 3));
  TdOpt *opt = td_momentum_sgd_new (net, .lr = 0.1);
  double before[2][12];

  (void)state;
  td_link_disable_update (l1);
  assert_false (td_link_update_enabled (l1));
  assert_true (td_link_update_enabled (net));
  for (int i = 0; i < 2; i++)
    {
      td_link (net, x);
      memcpy (before[0], numbers (td_link_param (net, "l1/W")), sizeof before[0]);
      memcpy (before[1], numbers (td_link_param (net, "l2/W")), 4 * sizeof (double));
      td_cleargrads (net);
      td_backward (td_sum (td_link (net, x)), 0);
      td_opt_update (opt);
      assert_int_equal (
          memcmp (before[0], numbers (td_link_param (net, "l1/W")), sizeof before[0]) == 0,
          i == 0);
      assert_true (memcmp (before[1], numbers (td_link_param (net, "l2/W")), 4 * 8) != 0);
      td_link_enable_update (l1);
    }
  td_link_disable_update (net);
  assert_false (td_link_update_enabled (l2));
}

/* --- from one tree to another --- */

static void
copy_params__takes_values_of_equal_names_or_nothing (void **state)
{
  TdLink *a = mlp ("a"), *b = mlp ("b"), *lazy = td_chain_new ("c"), *wrong;
  TdVar *x = td_rand (TD_F32, TD_SHAPE (4, 3));
  double before[8];

  (void)state;
  td_link (a, x); /* moves the running statistics */
  assert_int_equal (td_link_copy_params (b, a), TD_OK);
  TD_USING (train, 0)
    assert_same (td_link (b, x), td_link (a, x), 0);
  td_linear_new (lazy, "l1", TD_INFER, 4);
  assert_int_equal (td_link_copy_params (lazy, a), TD_OK);
  assert_same (td_link_param (lazy, "l1/W"), td_link_param (a, "l1/W"), 0);
  wrong = td_chain_new ("wrong");
  td_linear_new (wrong, "l2", 4, 2);
  td_linear_new (wrong, "l1", 3, 5);
  memcpy (before, numbers (td_link_param (wrong, "l2/W")), sizeof before);
  td_link_copy_params (wrong, a);
  assert_contains (said (TD_ERR_SHAPE), "l1/W is (5, 3) here and (4, 3) in a");
  assert_memory_equal (before, numbers (td_link_param (wrong, "l2/W")), sizeof before);
  td_link_copy_params (a, lazy);
  assert_contains (said (TD_ERR_ARG), "c has no bn/beta");
}

static void
add_grads__adds_what_is_there (void **state)
{
  TdLink *a = td_linear_new (NULL, "a", 3, 2), *b = td_link_copy (a);
  TdVar *x = td_rand (TD_F32, TD_SHAPE (4, 3));

  (void)state;
  td_backward (td_sum (td_link (b, x)), 0);
  assert_int_equal (td_link_add_grads (a, b), TD_OK);
  assert_same (td_grad (td_link_param (a, "W")), td_grad (td_link_param (b, "W")), 0);
  assert_int_equal (td_link_add_grads (a, b), TD_OK);
  assert_same (td_grad (td_link_param (a, "b")),
               td_mul_scalar (td_grad (td_link_param (b, "b")), 2), 0);
  td_cleargrads (b);
  assert_int_equal (td_link_add_grads (a, b), TD_OK);
  assert_same (td_grad (td_link_param (a, "b")), td_full (TD_F32, TD_SHAPE (2), 8), 0);
}

static void
note_link (const char *path, TdLink *link, void *user)
{
  strcat (strcat (strcat (strcat (user, path), ":"), td_link_class_name (link)), " ");
}

static void
note_param (const char *path, TdVar *param, void *user)
{
  strcat (strcat (user, path), param != NULL ? " " : "? ");
}

static void
visits__come_to_every_link_and_every_parameter (void **state)
{
  TdLink *m = td_chain_new ("m"), *in = td_chain_new (m, "in");
  char links[200] = "", params[200] = "";

  (void)state;
  td_linear_new (in, "lazy", TD_INFER, 2);
  td_embed_id_new (m, "e", 4, 2);
  td_link_each (m, note_link, links);
  assert_string_equal (links, ":Chain in:Chain in/lazy:Linear e:EmbedID ");
  td_link_each_param_any (m, note_param, params);
  assert_string_equal (params, "in/lazy/W? in/lazy/b e/W ");
  assert_string_equal (td_link_name (in), "in");
}

/* --- links and operations of the program's own (DY13, DY14) --- */

static TdStatus
softsign_infer (TdOpCall *call)
{
  return td_op_out (call, 0, call->in[0].dtype, call->in[0].shape);
}

/* x / (c + |x|), on the host. */
static TdStatus
softsign_forward (TdOpCall *call)
{
  double c = *(const double *)call->attrs;
  const double *x = call->in[0].data;
  double *y = call->out[0].data;

  if (call->in[0].dtype != TD_F64)
    return td_op_fail_operands (call, TD_ERR_DTYPE, "float64 expected");
  for (int64_t i = 0; i < call->in[0].size; i++)
    y[i] = x[i] / (c + fabs (x[i]));
  return TD_OK;
}

static TdStatus
softsign_backward (TdBackward *b)
{
  double c = *(const double *)b->attrs;
  TdVar *d = td_add_scalar (td_absolute (td_backward_input (b, 0)), c);

  b->gx[0] = td_mul (b->gy[0], td_div_scalar (td_pow_scalar (d, -2), 1 / c));
  return TD_OK;
}

static const TdAttr softsign_attrs[]
    = { { .name = "c", .kind = TD_ATTR_DOUBLE, .default_text = "1" } };
static const char *const softsign_names[] = { "x" };
static const TdOpClass softsign = { .name = "own_softsign",
                                    .label = "OwnSoftsign",
                                    .group = "activation",
                                    .formula = "x / (c + |x|)",
                                    .n_in_min = 1,
                                    .n_in_max = 1,
                                    .n_out = 1,
                                    .flags = TD_OP_ELEMENTWISE | TD_OP_HOST,
                                    .retain_in = 1,
                                    .in_names = softsign_names,
                                    .attrs_size = sizeof (double),
                                    .attrs = softsign_attrs,
                                    .n_attrs = 1,
                                    .infer = softsign_infer,
                                    .forward = softsign_forward,
                                    .backward = softsign_backward };

typedef struct
{
  double c;
  int calls;
} Gate;

/* y = softsign (W x) s + calls, with a child, a parameter and a persistent of its own. */
static TdStatus
gate_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Gate *gate = self;
  TdVar *h = td_link (td_link_child (link, "inner"), in[0]), *y;

  (void)n_in, (void)n_out;
  gate->calls++;
  td_apply (&softsign, &gate->c, &h, 1, &y, 1);
  out[0] = td_add (td_mul (y, td_link_param (link, "s")), td_link_param (link, "shift"));
  return td_poisoned (out[0]) ? TD_ERR_STATE : TD_OK;
}

static const TdLinkClass gate_class = { .size = sizeof (TdLinkClass),
                                        .name = "Gate",
                                        .self_bytes = sizeof (Gate),
                                        .forward = gate_forward };

static TdLink *
gate_new (TdLink *parent, const char *name, int64_t in, int64_t out)
{
  TdLink *link = td_link_new (&gate_class, parent, name);

  ((Gate *)td_link_self (link))->c = 2;
  td_linear_new (link, "inner", in, out);
  td_link_add_param (link, "s", TD_SHAPE (out), .initializer = td_init_constant (3));
  td_link_add_persistent (link, "shift", td_full (TD_F64, TD_SHAPE (out), 0.5));
  return link;
}

static void
call_gate (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in, (void)n_out;
  out[0] = td_link (user, in[0]);
}

static void
dy13_dy14__own_links_and_operations_behave_like_the_engines (void **state)
{
  TdLink *net, *gate, *copy;
  TdVar *x;
  const double *w, *b, *v;
  double in[3] = { 0.5, -1, 2 };
  const char *path = td_test_tmp ("own.npz");

  (void)state;
  td_config_set (dtype, TD_F64);
  net = td_sequential_new ("net");
  gate = gate_new (net, "gate", 3, 2);
  assert_string_equal (param_keys (net), "gate/s gate/inner/W gate/inner/b ");
  assert_int_equal (td_link_count_params (net), 2 + 6 + 2);
  x = td_tensor (TD_F64, TD_SHAPE (1, 3), in);
  w = numbers (td_link_param (gate, "inner/W"));
  b = numbers (td_link_param (gate, "inner/b"));
  v = numbers (td_link (net, x));
  for (int i = 0; i < 2; i++)
    {
      double h = b[i];

      for (int j = 0; j < 3; j++)
        h += w[3 * i + j] * in[j];
      assert_true (fabs (v[i] - (3 * h / (2 + fabs (h)) + 0.5)) < 1e-14);
    }
  assert_int_equal (td_check_backward (call_gate, net, &x, 1, NULL, 1), TD_OK);
  assert_int_equal (td_check_double_backward (call_gate, net, &x, 1, NULL, 1), TD_OK);
  copy = td_link_copy (net, TD_COPY_INIT);
  assert_true (((Gate *)td_link_self (td_link_child (copy, "gate")))->c == 2);
  assert_int_equal (td_save_npz (path, net), TD_OK);
  assert_int_equal (td_load_npz (path, copy), TD_OK);
  assert_same (td_link (copy, x), td_link (net, x), 0);
  td_link (net, td_zeros (TD_F32, TD_SHAPE (1, 3)));
  assert_contains (said (TD_ERR_DTYPE), "(net/gate/inner, ");
  td_config_set (dtype, TD_F32);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (chain_list__names_links_by_their_places),
    engine_test (sequential__is_a_list_of_steps),
    engine_test (copy__init_draws_anew_and_copy_does_not),
    engine_test (copy__share_has_one_array_and_two_gradients),
    engine_test (copy__refuses_what_cannot_be_copied_before_it_begins),
    engine_test (repeat__makes_a_sequential_of_copies),
    engine_test (disable_update__leaves_parameters_alone_also_those_to_come),
    engine_test (copy_params__takes_values_of_equal_names_or_nothing),
    engine_test (add_grads__adds_what_is_there),
    engine_test (visits__come_to_every_link_and_every_parameter),
    engine_test (dy13_dy14__own_links_and_operations_behave_like_the_engines),
  };

  return cmocka_run_group_tests_name ("links-tree", tests, NULL, NULL);
}
