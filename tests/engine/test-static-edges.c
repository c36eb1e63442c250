/* Static functions at their edges: every way to run a backward, results that are arguments,
 * calls that fail inside, and what is freed in another order.
 *
 * SPDX-License-Identifier: MIT */
#include "static-rig.h"

#include <tapedeck-op.h>

#include <string.h>

/* --- ways to run a backward --- */

enum
{
  TWICE,
  RETAINED,
  OF_PARAMETERS,
  OF_RESULTS,
  OF_BOTH_SIDES,
  GIVEN_GRADIENT,
  SEVERAL_ROOTS,
  FIRST_RESULT_ONLY,
  N_WAYS
};

static void
two_results (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Net *net = self;
  TdVar *h = td_tanh (td_link (net->l1, in[0]));

  (void)n_in;
  (void)n_out;
  out[0] = td_link (net->l2, h);
  out[1] = td_mul (h, h);
}

static void
note_all (TdVar **v, int n)
{
  for (int i = 0; i < n; i++)
    note (v[i]);
}

static void
one_way (int way, const Net *net, TdVar *x, TdVar **y)
{
  TdVar *loss = td_add (sum_of_squares (y[0]), td_sum (y[1])), *g[4];
  TdVar *wanted[] = { x, td_link_param (net->l1, "W"), td_link_param (net->l2, "b"), y[1] };
  TdVar *ends[] = { y[0], y[1] };
  TdVar *gys[] = { td_ones (TD_F32, td_shape (y[0])), some (td_shape (y[1]), 4) };

  switch (way)
    {
    case TWICE:
      td_backward (loss, 0);
      note_link (net->root);
      td_backward (loss, 0);
      break;
    case RETAINED:
      td_backward (loss, TD_RETAIN_GRADS);
      note (td_grad (y[0]));
      note (td_grad (y[1]));
      break;
    case OF_PARAMETERS:
      td_grad_of (&loss, 1, wanted, 3, NULL, 0, g);
      note_all (g, 3);
      break;
    case OF_RESULTS:
      td_grad_of (&loss, 1, y, 2, NULL, 0, g);
      note_all (g, 2);
      break;
    case OF_BOTH_SIDES:
      td_grad_of (&loss, 1, wanted, 4, NULL, 0, g);
      note_all (g, 4);
      break;
    case GIVEN_GRADIENT:
      td_set_grad (y[1], gys[1]);
      td_backward (y[1], 0);
      break;
    case SEVERAL_ROOTS:
      td_backward_all (ends, 2, gys, 0);
      break;
    default:
      td_backward (td_sum (y[0]), 0);
    }
}

static void
ways (void *user)
{
  int way = *(int *)user;
  Net net = net_new ();
  TdStatic *s = td_static_new (two_results, &net, .fuse = false);

  for (unsigned i = 0; i < 5; i++)
    TD_SCOPE ("call")
      {
        TdVar *x = td_variable (some (TD_SHAPE (4, 5), i), "x"), *y[2];

        if (i % 2 == 0)
          td_cleargrads (net.root);
        assert_int_equal (td_static_call (s, &x, 1, y, 2), TD_OK);
        note_all (y, 2);
        one_way (i == 3 ? way + 1 : way, &net, x, y); /* once another way than was traced */
        note (td_grad (x));
        note_link (net.root);
      }
  expect_calls (s, 1, 4);
  td_static_free (s);
  td_link_free (net.root);
}

static void
static__every_way_to_run_a_backward_gives_the_same (void **state)
{
  (void)state;
  for (int way = 0; way < N_WAYS; way++)
    {
      print_message ("way %d\n", way);
      run_both (ways, &way);
    }
}

/* --- kinds of arrays and operations --- */

typedef struct
{
  float slope;
} Ramp;

static TdStatus
ramp_infer (TdOpCall *call)
{
  call->out[0].dtype = call->in[0].dtype;
  *call->out[0].shape = *call->in[0].shape;
  return TD_OK;
}

static TdStatus
ramp_forward (TdOpCall *call)
{
  const Ramp *ramp = call->attrs;
  const float *x = call->in[0].data;
  float *y = call->out[0].data;

  for (int64_t i = 0; i < call->in[0].size; i++)
    y[i] = x[i] > 0 ? x[i] : ramp->slope * x[i];
  return TD_OK;
}

static TdStatus
ramp_backward (TdBackward *b)
{
  const Ramp *ramp = b->attrs;

  b->gx[0] = td_mul_scalar (b->gy[0], (double)ramp->slope);
  return TD_OK;
}

static const TdOpClass ramp_class = { .name = "ramp",
                                      .group = "test",
                                      .formula = "x, or slope x",
                                      .n_in_min = 1,
                                      .n_in_max = 1,
                                      .n_out = 1,
                                      .flags = TD_OP_HOST,
                                      .attrs_size = sizeof (Ramp),
                                      .infer = ramp_infer,
                                      .forward = ramp_forward,
                                      .backward = ramp_backward };

static void
odd_kinds (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Ramp ramp = { 0.25f };
  TdVar *x = in[0];

  (void)self;
  (void)n_in;
  (void)n_out;
  td_apply (&ramp_class, &ramp, &x, 1, &out[0], 1);
  out[1] = td_embed_id (in[1], in[2]);
  out[2] = td_cast (in[1], TD_F64);
  out[3] = td_sum (td_mul (in[3], in[3])); /* of nothing: 0 */
  out[4] = td_concat (&in[3], 1, 0);
  out[5] = td_argmax (td_reshape (in[0], TD_SHAPE (6)), 0);
  out[6] = td_add (td_arange (TD_F32, 0, 3, 1), td_full (TD_F32, TD_SHAPE (3), 2));
  out[7] = td_randn (TD_F32, TD_SHAPE (2));
}

static void
kinds (void *user)
{
  TdStatic *s = td_static_new (odd_kinds, NULL, .fuse = false);

  (void)user;
  for (unsigned i = 0; i < 4; i++)
    TD_SCOPE ("call")
      {
        TdVar *in[] = { td_variable (some (TD_SHAPE (2, 3), i), "x"), classes (4, 5, i),
                        td_variable (some (TD_SHAPE (5, 2), 3), "W"),
                        td_variable (td_zeros (TD_F32, TD_SHAPE (0, 2)), "empty") };
        TdVar *y[8];

        assert_int_equal (td_static_call (s, in, 4, y, 8), TD_OK);
        note_all (y, 8);
        td_backward (td_add (td_add (sum_of_squares (y[0]), sum_of_squares (y[1])), y[3]), 0);
        note (td_grad (in[0]));
        note (td_grad (in[2]));
        note (td_grad (in[3]));
      }
  expect_calls (s, 1, 3);
  td_static_free (s);
}

static void
static__own_operations_integers_and_empty_arrays_are_replayed (void **state)
{
  (void)state;
  skip_off_cpu (); /* an operation of the program's own, over host memory */
  run_both (kinds, NULL);
}

/* --- links as functions, and reports --- */

static void
of_link (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  td_link_call (self, in, n_in, out, n_out);
}

static void
classifier (void *user)
{
  TdLink *layers = td_sequential_new ("layers"), *model;
  TdObservation *seen = td_observation_new ();
  TdOpt *opt;
  TdStatic *s;

  (void)user;
  td_linear_new (layers, "l1", 5, 8);
  td_sequential_append (layers, td_relu);
  td_linear_new (layers, "l2", 8, 3);
  model = td_classifier_new (NULL, "model", layers);
  fill_params (model, 4);
  opt = td_adam_new (model, .lr = 0.05);
  s = td_static_new (of_link, model, .fuse = false);
  for (unsigned i = 0; i < 6; i++)
    TD_SCOPE ("call")
      {
        TdVar *in[] = { some (TD_SHAPE (7, 5), i), classes (7, 3, i) }, *loss;

        TD_REPORT_SCOPE (seen)
          td_static_call (s, in, 2, &loss, 1);
        note (loss);
        assert_int_equal (td_observation_n_keys (seen), 2);
        for (int k = 0; k < 2; k++)
          {
            TdSummary sum = td_observation_get (seen, td_observation_key (seen, k));

            note_number ((double)sum.n);
            note_number (sum.mean);
          }
        td_cleargrads (model);
        td_backward (loss, 0);
        td_opt_update (opt);
        note_link (model);
      }
  expect_calls (s, 1, 5);
  td_observation_free (seen);
  td_static_free (s);
  td_opt_free (opt);
  td_link_free (model);
}

static void
static__a_classifier_reports_at_every_replay (void **state)
{
  (void)state;
  run_both (classifier, NULL);
}

/* --- errors --- */

static void
static__a_parameter_changed_before_backward_is_told_with_both_lines (void **state)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (net_forward, &net);
  TdOpt *opt = td_sgd_new (net.root, .lr = 0.1);
  const char *text;

  (void)state;
  for (int i = 0; i < 4; i++)
    TD_SCOPE ("call")
      {
        TdVar *y = sum_of_squares (td_static_call1 (s, some (TD_SHAPE (8, 5), 1)));

        if (i == 3)
          td_opt_update (opt);
        td_cleargrads (net.root);
        if (i < 3)
          assert_int_equal (td_backward (y, 0), TD_OK);
        else
          assert_int_equal (td_backward (y, 0), TD_ERR_STATE);
        if (i == 1)
          td_opt_update (opt);
      }
  text = said (TD_ERR_STATE);
  assert_non_null (strstr (text, "kept for backward at"));
  assert_non_null (strstr (text, "overwritten at"));
}

static void
static__a_call_that_runs_out_of_memory_loses_nothing (void **state)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (net_forward, &net, .fuse = false);
  TdVar *x = some (TD_SHAPE (8, 5), 1), *mean = td_zeros (TD_F32, TD_SHAPE (7)), *y;
  TdDevice *device = td_device (x);
  float before[7];

  (void)state;
  for (int i = 0; i < 3; i++)
    TD_SCOPE ("call")
      td_backward (sum_of_squares (td_static_call1 (s, x)), 0);
  td_read (td_link_param (net.bn, "avg_mean"), before, sizeof before);
  td_write (mean, before, sizeof before);
  for (int i = 0; i < 3; i++)
    TD_SCOPE ("call")
      {
        size_t live = td_mem_info (device).live_bytes;

        td_set_mem_limit (live);
        y = td_static_call1 (s, x);
        assert_true (td_poisoned (y));
        assert_non_null (strstr (said (TD_ERR_MEMORY), "96 B wanted"));
        td_set_mem_limit (0);
        assert_int_equal (td_mem_info (device).live_bytes, live);
      }
  assert_bits (td_link_param (net.bn, "avg_mean"), mean);
  TD_SCOPE ("call")
    {
      y = td_static_call1 (s, x);
      assert_int_equal (td_backward (sum_of_squares (y), 0), TD_OK);
    }
  assert_int_equal (td_static_info (s).n_replays, 3);
  assert_int_equal (td_static_info (s).n_instances, 1);
  assert_int_equal (td_static_info (s).n_instances_awaiting, 0);
}

static void
static__a_backward_that_runs_out_of_memory_loses_nothing (void **state)
{
  Net a = net_new (), b = net_new ();
  TdStatic *s = td_static_new (two_results, &a, .fuse = false);
  TdStatic *same = td_static_new (two_results, &b, .fuse = false);
  TdDevice *cpu = td_device_get ("cpu");

  (void)state;
  for (unsigned i = 0; i < 6; i++)
    TD_SCOPE ("call")
      {
        TdVar *x = some (TD_SHAPE (4, 5), i), *y[2], *z[2];

        td_cleargrads (a.root);
        td_cleargrads (b.root);
        td_static_call (s, &x, 1, y, 2);
        td_static_call (same, &x, 1, z, 2);
        y[0] = sum_of_squares (y[0]);
        if (i == 3)
          {
            td_set_mem_limit (td_mem_info (cpu).live_bytes + 400);
            assert_int_equal (td_backward (y[0], 0), TD_ERR_MEMORY);
            said (TD_ERR_MEMORY);
            td_set_mem_limit (0);
            td_cleargrads (a.root);
            assert_int_equal (td_backward (y[0], 0), TD_OK); /* the same one, once more */
          }
        else
          assert_int_equal (td_backward (y[0], 0), TD_OK);
        assert_int_equal (td_backward (sum_of_squares (z[0]), 0), TD_OK);
        assert_bits (td_grad (td_link_param (a.l1, "W")), td_grad (td_link_param (b.l1, "W")));
        assert_bits (td_grad (td_link_param (a.l2, "b")), td_grad (td_link_param (b.l2, "b")));
      }
  assert_int_equal (td_static_info (s).n_replays, 5);
}

/* --- truncated backpropagation through time --- */

static void
cell (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  td_link_call (self, in, n_in, out, n_out);
}

static void
truncated (void *user)
{
  TdLink *lstm = td_stateless_lstm_new (NULL, "lstm", 3, 4);
  TdStatic *s = td_static_new (cell, lstm, .fuse = user != NULL, .minimize_cache_size = false);
  TdVar *state[2];

  fill_params (lstm, 5);
  for (int k = 0; k < 2; k++)
    TD_SCOPE ("start")
      state[k] = td_retain (td_zeros (TD_F32, TD_SHAPE (2, 4)));
  for (unsigned i = 0; i < 6; i++)
    TD_SCOPE ("stretch")
      {
        TdVar *loss = NULL, *next[2] = { state[0], state[1] };

        for (unsigned t = 0; t < 3; t++)
          {
            TdVar *in[] = { next[0], next[1], some (TD_SHAPE (2, 3), 10 * i + t) }, *one;

            assert_int_equal (td_static_call (s, in, 3, next, 2), TD_OK);
            one = sum_of_squares (next[1]);
            loss = loss == NULL ? one : td_add (loss, one);
          }
        td_cleargrads (lstm);
        td_backward (loss, 0);
        td_unchain_backward (loss); /* the state goes on, its past does not */
        note (loss);
        note_link (lstm);
        for (int k = 0; k < 2; k++)
          {
            td_retain (next[k]);
            td_release (state[k]);
            state[k] = next[k];
          }
      }
  if (is_static_run ())
    {
      assert_true (td_static_info (s).n_replays >= 10);
      assert_true (td_static_info (s).n_instances <= 6);
    }
  td_release (state[0]);
  td_release (state[1]);
  td_static_free (s);
  td_link_free (lstm);
}

static void
static__truncated_backpropagation_through_time_is_the_same (void **state)
{
  (void)state;
  run_both (truncated, NULL);
  run_near (truncated, (void *)"fused", 16);
}

static void
may_fail (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in;
  (void)n_out;
  out[0] = *(int *)self ? td_matmul (in[0], in[0], false, false) : td_exp (in[0]);
}

static void
static__code_that_fails_leaves_no_schedule (void **state)
{
  int fails = 1;
  TdStatic *s = td_static_new (may_fail, &fails, .self_bytes = sizeof fails);
  TdVar *x = some (TD_SHAPE (2, 3), 1);

  (void)state;
  assert_true (td_poisoned (td_static_call1 (s, x)));
  assert_non_null (strstr (said (TD_ERR_SHAPE), "matmul"));
  assert_int_equal (td_static_info (s).n_schedules, 0);
  fails = 0;
  for (int i = 0; i < 3; i++)
    assert_false (td_poisoned (td_static_call1 (s, x)));
  assert_int_equal (td_static_info (s).n_replays, 2);
  fails = 1;
  assert_true (td_poisoned (td_static_call1 (s, x)));
  said (TD_ERR_SHAPE);
}

/* --- life --- */

static void
static__functions_links_and_results_may_go_in_any_order (void **state)
{
  TdDevice *cpu = td_device_get ("cpu");
  TdMemInfo before = td_mem_info (cpu), after;

  (void)state;
  for (int order = 0; order < 4; order++)
    {
      Net net = net_new ();
      TdStatic *s = td_static_new (net_forward, &net);
      TdVar *y = NULL;

      for (int i = 0; i < 3; i++)
        TD_SCOPE ("call")
          {
            y = sum_of_squares (td_static_call1 (s, some (TD_SHAPE (8, 5), 1)));
            if (i == 2)
              td_retain (y);
            else
              td_backward (y, 0);
          }
      if (order == 0) /* links first: the call's graph has what it needs */
        td_link_free (net.root);
      if (order == 1)
        td_static_clear (s);
      if (order != 2)
        td_static_free (s);
      TD_SCOPE ("backward")
        assert_int_equal (td_backward (y, 0), TD_OK);
      td_release (y);
      if (order == 2)
        td_static_free (s);
      if (order != 0)
        td_link_free (net.root);
    }
  after = td_mem_info (cpu);
  assert_int_equal (after.live_vars, before.live_vars);
  assert_int_equal (after.live_nodes, before.live_nodes);
  assert_int_equal (after.live_ops, before.live_ops);
  assert_int_equal (after.live_bytes, before.live_bytes);
}

/* Two results, of which one is made of the other. */
static void
two_steps (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in;
  (void)n_out;
  out[1] = td_tanh (td_link (self, in[0]));
  out[0] = td_exp (td_link (self, out[1]));
}

typedef struct
{
  bool backward;
} CutPlan;

/* A weight is written, then a result cut off: its graph cannot be made again. */
static void
cut_after_a_write (void *user)
{
  const CutPlan *plan = user;
  static const float zeros[16] = { 0 };
  TdLink *l = td_linear_new (NULL, "l", 4, 4);
  TdStatic *s = td_static_new (two_steps, l, .batch = false);

  fill_params (l, 5);
  for (unsigned i = 0; i < 5; i++)
    TD_SCOPE ("iteration")
      {
        TdVar *x = td_variable (some (TD_SHAPE (4, 4), i), "x"), *y[2];

        assert_int_equal (td_static_call (s, &x, 1, y, 2), TD_OK);
        assert_int_equal (td_write (td_link_param (l, "W"), zeros, sizeof zeros), TD_OK);
        td_unchain (y[1]);
        assert_null (td_error ());
        if (plan->backward)
          note_number (td_backward (td_sum (y[0]), 0));
        td_error_clear ();
        note (y[0]);
        note (td_grad (x));
      }
  td_static_free (s);
  td_link_free (l);
}

static void
static__cutting_a_result_after_a_write_is_an_error_only_in_backward (void **state)
{
  (void)state;
  for (int backward = 0; backward < 2; backward++)
    run_both (cut_after_a_write, &(CutPlan){ backward });
}

static void
static__td_finish_frees_functions_with_results_that_wait (void **state)
{
  static Net net;
  TdStatic *s;

  (void)state;
  net = net_new ();
  s = td_static_new (net_forward, &net);
  for (int i = 0; i < 3; i++)
    td_static_call1 (s, some (TD_SHAPE (8, 5), 1)); /* the fixture's td_finish counts leaks */
  assert_int_equal (td_static_info (s).n_calls, 3);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (static__every_way_to_run_a_backward_gives_the_same),
    engine_test (static__own_operations_integers_and_empty_arrays_are_replayed),
    engine_test (static__a_classifier_reports_at_every_replay),
    engine_test (static__a_parameter_changed_before_backward_is_told_with_both_lines),
    engine_test (static__a_call_that_runs_out_of_memory_loses_nothing),
    engine_test (static__a_backward_that_runs_out_of_memory_loses_nothing),
    engine_test (static__truncated_backpropagation_through_time_is_the_same),
    engine_test (static__code_that_fails_leaves_no_schedule),
    engine_test (static__functions_links_and_results_may_go_in_any_order),
    engine_test (static__cutting_a_result_after_a_write_is_an_error_only_in_backward),
    engine_test (static__td_finish_frees_functions_with_results_that_wait),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
