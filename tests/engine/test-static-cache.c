/* Holes H12 to H21 of Chainer's static graph, each with the right result: what the cache is
 * keyed by, what hooks and checks still see, what a replay costs, what comes back.
 *
 * *Source*: chainer 7.8.1, graph_optimizations/static_graph.py, and its issue 8324.
 * SPDX-License-Identifier: MIT */
#include "static-rig.h"

#include <math.h>
#include <string.h>
#include <time.h>

/* --- H12, H13: the cache --- */

static void
static__h12_shapes_in_turn_get_a_schedule_each (void **state)
{
  Net net = net_new ();
  TdStatic *small = td_static_new (net_forward, &net);
  TdStatic *large = td_static_new (net_forward, &net, .minimize_cache_size = false);

  (void)state;
  assert_true (td_static_options ().minimize_cache_size);
  for (int i = 0; i < 40; i++)
    TD_SCOPE ("batch")
      {
        TdVar *x = some (TD_SHAPE (i % 2 ? 4 : 8, 5), 1);

        td_static_call1 (small, x);
        td_static_call1 (large, x);
        if (i == 1)
          assert_int_equal (td_static_info (small).n_schedules, 1);
      }
  assert_int_equal (td_static_info (small).n_schedules, 2); /* the third came before */
  assert_int_equal (td_static_info (small).n_evictions, 1);
  assert_int_equal (td_static_info (small).n_replays, 37);
  assert_int_equal (td_static_info (large).n_schedules, 2);
  assert_int_equal (td_static_info (large).n_evictions, 0);
  assert_int_equal (td_static_info (large).n_replays, 38);
}

static void
keys (void *user)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (reading_forward, &net, .fuse = false);
  TdVar *x = some (TD_SHAPE (4, 5), 1), *y;

  (void)user;
  note (td_static_call1 (s, x));
  note (td_static_call1 (s, x));
  td_variable (x, "x"); /* wants a gradient from here on */
  y = td_static_call1 (s, x);
  expect_miss (s, "argument 0 wants a gradient", NULL);
  td_backward (td_sum (y), 0);
  note (td_grad (x));
  note (td_static_call1 (s, x));
  TD_USING (cudnn_deterministic, 1)
    note (td_static_call1 (s, x));
  expect_miss (s, "config.cudnn_deterministic is 1, 0 before", NULL);
  TD_USING (dtype, TD_F16)
    note (td_static_call1 (s, x));
  expect_miss (s, "config.dtype", NULL);
  td_link_free (net.l1);
  net.l1 = td_linear_new (net.root, "l1", 5, 9); /* a parameter of another shape */
  fill_params (net.l1, 4);
  y = td_static_call1 (s, x);
  assert_int_equal (td_shape (y).dim[1], 9);
  note (y);
  td_static_free (s);
  td_link_free (net.root);
}

static void
static__h13_the_key_holds_gradients_settings_and_parameters (void **state)
{
  (void)state;
  run_both (keys, NULL);
}

/* --- H14, H15: nothing goes blind --- */

typedef struct
{
  int n_forward, n_backward, n_links, n_relu;
} Seen;

static void
see_forward (TdHook *hook, void *self, const TdFunctionCall *call)
{
  Seen *seen = self;

  (void)hook;
  seen->n_forward += !call->in_backward;
  seen->n_relu += strcmp (call->name, "relu") == 0 && !call->in_backward;
}

static void
see_backward (TdHook *hook, void *self, const TdFunctionCall *call)
{
  (void)hook;
  ((Seen *)self)->n_backward += strcmp (call->name, "static_schedule") != 0;
}

static void
see_link (TdHook *hook, void *self, const TdLinkCall *call)
{
  (void)hook;
  (void)call;
  ((Seen *)self)->n_links++;
}

static void
hooked (void *user)
{
  static const TdHookClass seeing = { .size = sizeof seeing,
                                      .name = "seeing",
                                      .self_bytes = sizeof (Seen),
                                      .forward_postprocess = see_forward,
                                      .backward_postprocess = see_backward,
                                      .link_forward_postprocess = see_link };
  Net net = net_new ();
  TdStatic *s = td_static_new (net_forward, &net, .fuse = false);
  TdHook *hook = td_hook_new (&seeing);
  const Seen *seen = td_hook_self (hook);

  (void)user;
  for (unsigned i = 0; i < 6; i++)
    {
      TdVar *y;

      if (i == 2)
        td_hook_add (hook);
      if (i == 4)
        td_hook_remove (hook);
      y = td_static_call1 (s, some (TD_SHAPE (8, 5), i));
      if (i == 5)
        td_hook_add (hook); /* a call that was replayed, and a backward with hooks */
      td_cleargrads (net.root);
      td_backward (sum_of_squares (y), 0);
      note_link (net.root);
      note_number (seen->n_forward);
      note_number (seen->n_backward);
      note_number (seen->n_links);
      note_number (seen->n_relu);
    }
  assert_int_equal (seen->n_relu, 2);
  assert_true (seen->n_links >= 6);
  td_hook_free (hook);
  td_static_free (s);
  td_link_free (net.root);
}

static void
static__h14_hooks_see_every_operation_and_inner_link (void **state)
{
  (void)state;
  run_both (hooked, NULL);
}

static void
see_every_forward (TdHook *hook, void *self, const TdFunctionCall *call)
{
  (void)hook;
  (void)call;
  ((Seen *)self)->n_forward++;
}

/* Hooks that are added after the forward: to all operations, or to those of one name. */
static void
hooked_late (void *user)
{
  static const TdHookClass seeing = { .size = sizeof seeing,
                                      .name = "seeing",
                                      .self_bytes = sizeof (Seen),
                                      .forward_postprocess = see_every_forward,
                                      .backward_postprocess = see_backward };
  const int what = *(const int *)user;
  Net net = net_new ();
  TdStatic *s = td_static_new (net_forward, &net, .verify = what / 2 - 1);
  TdHook *hook = td_hook_new (&seeing);
  const Seen *seen = td_hook_self (hook);

  for (unsigned i = 0; i < 6; i++)
    TD_ITERATION (i)
      {
        TdVar *y = td_static_call1 (s, some (TD_SHAPE (8, 5), i));

        if (what % 2 == 0)
          td_hook_add (hook);
        else
          td_hook_add_to_op (hook, "relu");
        td_cleargrads (net.root);
        td_backward (sum_of_squares (y), 0);
        td_hook_remove (hook);
        note_link (net.root);
        note_number (seen->n_forward);
        note_number (seen->n_backward);
      }
  if (is_static_run ())
    assert_int_equal (td_static_info (s).n_replays, 5);
  td_hook_free (hook);
  td_static_free (s);
  td_link_free (net.root);
}

static void
hooks__added_after_the_forward_see_each_backward_once (void **state)
{
  (void)state;
  for (int what = 0; what < 6; what++)
    {
      run_doing ("late hook", what);
      run_both (hooked_late, &what);
    }
}

static void
logarithm (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  out[0] = td_mul (td_log (in[0]), in[0]);
}

static void
static__h14_the_check_for_nan_names_the_inner_operation (void **state)
{
  TdStatic *s = td_static_new (logarithm, NULL);

  (void)state;
  TD_USING (debug, 1)
    {
      for (int i = 0; i < 3; i++)
        td_static_call1 (s, td_full (TD_F32, TD_SHAPE (3), 2));
      assert_true (td_poisoned (td_static_call1 (s, td_full (TD_F32, TD_SHAPE (3), -1))));
    }
  assert_non_null (strstr (said (TD_ERR_NUMERIC), "log:"));
}

static void
static__h15_wrong_shapes_are_told_after_the_first_iteration_too (void **state)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (net_forward, &net);
  const char *text;

  (void)state;
  for (int i = 0; i < 3; i++)
    td_static_call1 (s, some (TD_SHAPE (8, 5), 1));
  assert_true (td_poisoned (td_static_call1 (s, some (TD_SHAPE (8, 6), 1))));
  text = said (TD_ERR_SHAPE);
  assert_non_null (strstr (text, "linear"));
  assert_non_null (strstr (text, "(7, 5)"));
  assert_false (td_poisoned (td_static_call1 (s, some (TD_SHAPE (8, 5), 1))));
}

/* --- H16, H17, H18: what it costs --- */

static void
static__h16_a_replay_allocates_its_results_and_copies_nothing (void **state)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (net_forward, &net);
  TdDevice *cpu = td_device_get ("cpu");
  TdVar *x = some (TD_SHAPE (8, 5), 1);

  (void)state;
  for (int i = 0; i < 3; i++)
    TD_SCOPE ("warm")
      td_backward (sum_of_squares (td_static_call1 (s, x)), 0);
  TD_SCOPE ("counted")
    {
      size_t before = td_mem_info (cpu).live_bytes, one;

      td_zeros (TD_F32, TD_SHAPE (8, 3));
      one = td_mem_info (cpu).live_bytes - before;
      before = td_mem_info (cpu).live_bytes;
      td_static_call1 (s, x);
      assert_int_equal (td_mem_info (cpu).live_bytes - before, one);
      assert_int_equal (td_static_info (s).n_replays, 3);
    }
}

static void
long_chain (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *h = in[0];

  (void)n_in;
  (void)n_out;
  for (int i = 0; i < *(int *)self; i++)
    h = td_add_scalar (h, 1);
  out[0] = h;
}

static double
seconds_to_trace (int n)
{
  TdStatic *s = td_static_new (long_chain, &n);
  struct timespec a, b;

  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &a);
  TD_SCOPE ("trace")
    td_backward (
        td_sum (td_static_call1 (s, td_variable (td_zeros (TD_F32, TD_SHAPE (1)), "x"))), 0);
  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &b);
  assert_int_equal (td_static_info (s).n_traces, 1);
  td_static_free (s);
  return (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
}

typedef struct
{
  double small, large;
  int n;
} Tracing;

/* Whatever else the machine does adds to a time: the least of enough of them is the operations'
 * own, and that would be 256 times as long if it were quadratic. */
static bool
is_in_proportion (void *data)
{
  Tracing *t = data;

  t->small = fmin (t->small, seconds_to_trace (1000));
  t->large = fmin (t->large, seconds_to_trace (16000));
  return ++t->n >= 5 && t->large <= 5 * 16 * t->small;
}

static void
static__h17_tracing_takes_time_in_proportion_to_the_operations (void **state)
{
  Tracing t = { 1e9, 1e9, 0 };

  (void)state;
  skip_off_cpu ();
  td_test_wait ("times in proportion to the operations", is_in_proportion, &t);
}

static void
static__h17_schedules_that_are_dropped_give_their_memory_back (void **state)
{
  Net net = net_new ();
  TdStatic *s
      = td_static_new (net_forward, &net, .minimize_cache_size = false, .cache_bytes = 1);
  size_t live = 0;

  (void)state;
  for (int i = 0; i < 12; i++)
    {
      TD_SCOPE ("batch")
        for (int k = 0; k < 2; k++)
          TD_SCOPE ("call")
            td_static_call1 (s, some (TD_SHAPE (8 + i, 5), 1));
      if (i == 0)
        live = td_mem_info (NULL).live_bytes;
    }
  assert_int_equal (td_static_info (s).n_schedules, 1);
  assert_int_equal (td_static_info (s).n_evictions, 11);
  assert_true (td_mem_info (NULL).live_bytes < 3 * live);
}

static void
static__h17_schedules_that_can_never_run_again_are_dropped (void **state)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (net_forward, &net, .minimize_cache_size = false);

  (void)state;
  for (int i = 0; i < 5; i++)
    {
      td_link_free (net.l2);
      net.l2 = td_linear_new (net.root, "l2", 7, 3);
      for (int k = 0; k < 4; k++)
        TD_SCOPE ("call")
          td_static_call1 (s, some (TD_SHAPE (8 + k % 2, 5), 1));
      assert_int_equal (td_static_info (s).n_schedules, 2);
    }
  assert_int_equal (td_static_info (s).n_evictions, 8);
  assert_int_equal (td_static_info (s).n_replays, 10);
}

static void
static__h18_the_graph_of_the_traced_call_dies_with_it (void **state)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (net_forward, &net);
  TdDevice *cpu = td_device_get ("cpu");
  TdMemInfo before = td_mem_info (cpu), after;

  (void)state;
  TD_SCOPE ("traced")
    td_backward (sum_of_squares (td_static_call1 (s, some (TD_SHAPE (8, 5), 1))), 0);
  after = td_mem_info (cpu);
  assert_int_equal (td_static_info (s).n_traces, 1);
  assert_int_equal (after.live_ops, before.live_ops);
  td_cleargrads (net.root);
  after = td_mem_info (cpu);
  assert_int_equal (after.live_vars, before.live_vars);
  assert_int_equal (after.live_bytes, before.live_bytes);
}

/* --- H19: what comes back --- */

static void
mixed_results (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *h = td_tanh (in[0]);
  static const float three[] = { 1, 2, 3 };

  (void)self;
  (void)n_in;
  (void)n_out;
  out[0] = h;
  out[1] = in[0];                           /* an argument */
  out[2] = td_reshape (h, TD_SHAPE (3, 2)); /* the same memory in another shape */
  out[3] = h;                               /* twice */
  out[4] = td_tensor (TD_F32, TD_SHAPE (3), three);
  out[5] = td_sum (h);
  out[6] = td_reshape (in[0], TD_SHAPE (6)); /* an argument in another shape */
  out[7] = td_zeros (TD_F32, TD_SHAPE (0, 4));
}

static void
results (void *user)
{
  TdStatic *s = td_static_new (mixed_results, NULL, .fuse = false);

  for (unsigned i = 0; i < 4; i++)
    TD_SCOPE ("call")
      {
        TdVar *x = td_variable (some (TD_SHAPE (2, 3), i), "x"), *y[8], *loss;

        assert_int_equal (td_static_call (s, &x, 1, y, 8), TD_OK);
        for (int k = 0; k < 8; k++)
          note (y[k]);
        assert_ptr_equal (y[1], x);
        assert_ptr_equal (y[3], y[0]);
        loss = td_add (td_sum (td_mul (td_reshape (y[0], TD_SHAPE (3, 2)), y[2])), y[5]);
        loss = td_add (loss, td_sum (td_mul (y[6], y[6])));
        td_backward (user != NULL && i > 1 ? y[5] : loss, 0);
        note (td_grad (x));
      }
  td_static_free (s);
}

static void
static__h19_results_keep_their_number_order_and_identity (void **state)
{
  (void)state;
  run_both (results, NULL);
  run_both (results, (void *)"another backward later on");
}

/* --- H20: gradients that are handed through --- */

static void
handed_through (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  out[0] = td_add (in[0], in[1]);
  if (n_out > 1)
    out[1] = td_add_scalar (in[0], 1);
}

static void
through (void *user)
{
  int n_out = user != NULL ? 2 : 1;
  TdStatic *s = td_static_new (handed_through, NULL, .fuse = false);

  for (unsigned i = 0; i < 4; i++)
    TD_SCOPE ("call")
      {
        TdVar *x[] = { td_variable (some (TD_SHAPE (3), i), "a"),
                       td_variable (some (TD_SHAPE (3), i + 9), "b") };
        TdVar *y[2], *loss;

        assert_int_equal (td_static_call (s, x, 2, y, n_out), TD_OK);
        loss = sum_of_squares (y[0]);
        if (n_out > 1)
          loss = td_add (loss, sum_of_squares (y[1]));
        td_backward (loss, 0);
        note (td_grad (x[0]));
        note (td_grad (x[1]));
      }
  expect_calls (s, 1, 3);
  td_static_free (s);
}

static void
static__h20_a_gradient_may_be_handed_through_as_it_came (void **state)
{
  (void)state;
  run_both (through, NULL);
  run_both (through, (void *)"two results");
}

/* --- H21: constants made inside a link --- */

static void
call_link (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  td_link_call (self, in, n_in, out, n_out);
}

static void
without_beta (void *user)
{
  TdLink *root = td_chain_new ("root");
  TdLink *bn = td_batch_normalization_new (root, "bn", 5, .use_beta = false,
                                           .use_gamma = user == NULL);
  TdStatic *s = td_static_new (call_link, bn, .fuse = false);

  for (unsigned i = 0; i < 4; i++)
    {
      TdVar *x = td_variable (some (TD_SHAPE (6, 5), i), "x"), *y = td_static_call1 (s, x);

      note (y);
      td_backward (td_sum (td_mul (y, some (TD_SHAPE (6, 5), 50))), 0);
      note (td_grad (x));
      note_link (root);
    }
  expect_calls (s, 1, 3);
  td_static_free (s);
  td_link_free (root);
}

static void
static__h21_constants_made_inside_a_link_stay (void **state)
{
  (void)state;
  run_both (without_beta, NULL);
  run_both (without_beta, (void *)"without gamma too");
}

/* SG05, SG06: what need not run every time is not among the operations. */
static void
lazy_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in;
  (void)n_out;
  out[0] = td_relu (td_link (self, in[0])); /* the first call makes W and b */
}

static void
static__a_schedule_holds_only_what_runs_every_iteration (void **state)
{
  TdLink *root = td_chain_new ("root"), *l = td_linear_new (root, "l", TD_INFER, 4);
  TdStatic *s = td_static_new (lazy_forward, l, .fuse = false);

  (void)state;
  for (int i = 0; i < 3; i++)
    TD_SCOPE ("call")
      td_backward (td_sum (td_static_call1 (s, some (TD_SHAPE (3, 5), 1))), 0);
  assert_int_equal (td_static_info (s).n_traces, 1);
  assert_int_equal (td_static_info (s).n_steps, 2); /* linear and relu; no initialiser */
  assert_int_equal (td_static_info (s).n_replays, 2);
}

/* --- every result keeps its values --- */

static void
static__results_that_are_kept_keep_their_values (void **state)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (net_forward, &net);
  TdStatic *m = td_static_new (mixed_results, NULL);
  TdVar *kept[6][9];
  double then[6][9][32];

  (void)state;
  TD_ITERATIONS (i, 6)
    {
      TdVar *x = some (TD_SHAPE (2, 3), (unsigned)i);

      kept[i][8] = td_static_call1 (s, some (TD_SHAPE (8, 5), (unsigned)i));
      td_backward (sum_of_squares (kept[i][8]), 0);
      td_static_call (m, &x, 1, kept[i], 8);
      for (int k = 0; k < 9; k++)
        {
          td_retain (kept[i][k]);
          memcpy (then[i][k], numbers (kept[i][k]),
                  (size_t)td_size (kept[i][k]) * sizeof (double));
        }
    }
  assert_int_equal (td_static_info (s).n_replays, 5);
  assert_int_equal (td_static_info (m).n_replays, 5);
  for (int i = 0; i < 6; i++)
    for (int k = 0; k < 9; k++)
      {
        assert_memory_equal (then[i][k], numbers (kept[i][k]),
                             (size_t)td_size (kept[i][k]) * sizeof (double));
        td_release (kept[i][k]);
      }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (static__h12_shapes_in_turn_get_a_schedule_each),
    engine_test (static__h13_the_key_holds_gradients_settings_and_parameters),
    engine_test (static__h14_hooks_see_every_operation_and_inner_link),
    engine_test (hooks__added_after_the_forward_see_each_backward_once),
    engine_test (static__h14_the_check_for_nan_names_the_inner_operation),
    engine_test (static__h15_wrong_shapes_are_told_after_the_first_iteration_too),
    engine_test (static__h16_a_replay_allocates_its_results_and_copies_nothing),
    engine_test (static__h17_tracing_takes_time_in_proportion_to_the_operations),
    engine_test (static__h17_schedules_that_are_dropped_give_their_memory_back),
    engine_test (static__h17_schedules_that_can_never_run_again_are_dropped),
    engine_test (static__h18_the_graph_of_the_traced_call_dies_with_it),
    engine_test (static__h19_results_keep_their_number_order_and_identity),
    engine_test (static__h20_a_gradient_may_be_handed_through_as_it_came),
    engine_test (static__h21_constants_made_inside_a_link_stay),
    engine_test (static__a_schedule_holds_only_what_runs_every_iteration),
    engine_test (static__results_that_are_kept_keep_their_values),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
