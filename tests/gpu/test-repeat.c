/* Updates whose launches come again: as one graph from the third on, of the same bits, with
 * what changes from one to the next, and kernel by kernel where somebody looks.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "far-test.h"
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

static const FakeCudaControl *driver;

enum
{
  N_PARAMS = 6,
  MAX_SIZE = 40,
  STEPS = 12,
  BUILT = 2, /* steps after which there is a graph, if all that is launched is the same */
  MAX_STEPS = 40
};

static int
setup (void **state)
{
  driver = far_cuda_driver ();
  return far_test_setup_engine (state);
}

/* --- one training --- */

typedef struct Program Program;
struct Program
{
  TdOpt *(*make) (TdLink *net);
  void (*hooks) (TdOpt *opt);
  TdDtype dtype;
  bool mixed, scales;
  bool moves; /* gradients lie elsewhere at every step */
  void (*before) (TdOpt *opt, int step);
};

/* What it left, and how its steps were launched. */
typedef struct
{
  unsigned char params[N_PARAMS * MAX_SIZE * 4];
  double numbers[4];
  long launches[MAX_STEPS], graphs[MAX_STEPS], captures, changes, waits;
  size_t used[MAX_STEPS];
} Result;

static TdOpt *
make_sgd (TdLink *net)
{
  return td_momentum_sgd_new (net, .lr = 0.05);
}

static TdOpt *
make_adam (TdLink *net)
{
  return td_adam_new (net, .lr = 0.05);
}

static void
clipping (TdOpt *opt)
{
  td_opt_add_hook (opt, td_gradient_clipping_new (0.5));
  td_opt_add_hook (opt, td_weight_decay_new (0.01));
}

static void
all_hooks (TdOpt *opt)
{
  clipping (opt);
  td_opt_add_hook (opt, td_gradient_noise_new (0.1));
  td_opt_add_hook (opt, td_gradient_hard_clipping_new (-1, 1));
  td_opt_add_hook (opt, td_lasso_new (0.001), .param = "p1");
  td_opt_add_hook (opt, td_gradient_lars_new ());
}

static float
slope (int param, int64_t k, int step)
{
  return (float)((param + 3 * k + step) % 11 - 5) / 8;
}

static void
set_gradients (TdVar **params, const Program *p, int step)
{
  for (int i = 0; i < N_PARAMS; i++)
    {
      float slopes[MAX_SIZE];
      const int64_t n = td_size (params[i]);

      for (int64_t k = 0; k < n; k++)
        slopes[k] = p->scales && step == 7 && i == 2 ? 1e30f : slope (i, k, step);
      td_set_grad (params[i], td_cast (td_tensor (TD_F32, TD_SHAPE (n), slopes), p->dtype));
    }
}

static void
read_all (Result *r, TdVar **params, TdOpt *opt)
{
  memset (r->params, 0, sizeof r->params);
  for (int i = 0; i < N_PARAMS; i++)
    assert_int_equal (
        td_read (params[i], r->params + (size_t)i * MAX_SIZE * 4,
                 (size_t)td_size (params[i]) * td_dtype_bytes (td_dtype (params[i]))),
        TD_OK);
  r->numbers[0] = (double)td_opt_count (opt);
  r->numbers[1] = td_opt_loss_scale (opt);
  r->numbers[2] = (double)td_opt_skipped (opt);
  r->numbers[3] = (double)td_opt_count_of (opt, "p0");
}

static void
step_once (const Program *p, TdVar **params, TdOpt *opt, int step, Result *r)
{
  const FakeCuda *s = driver->state;
  long launches, graphs, waits, captures, changes;

  set_gradients (params, p, step);
  if (p->before != NULL)
    p->before (opt, step);
  launches = s->n_launches;
  graphs = s->n_graph_launches;
  waits = s->n_waits;
  captures = s->n_captures;
  changes = s->n_graph_changes[0];
  assert_int_equal (td_opt_update (opt), TD_OK);
  r->launches[step] = s->n_launches - launches;
  r->graphs[step] = s->n_graph_launches - graphs;
  r->captures += s->n_captures - captures;
  r->changes += s->n_graph_changes[0] - changes;
  r->waits += s->n_waits - waits;
  r->used[step] = s->used_bytes;
}

static void
train (const Program *p, bool repeats, int n, Result *r)
{
  TdVar *params[N_PARAMS], *kept[MAX_STEPS];
  TdLink *m;
  TdOpt *opt;
  int n_kept = 0;
  char name[16];

  *r = (Result){ 0 };
  if (!repeats)
    setenv ("TAPEDECK_CUDA_REPEATS", "off", 1);
  td_device_use (td_device_get ("cuda:0"));
  td_set_seed (3);
  m = td_chain_new ("net");
  for (int i = 0; i < N_PARAMS; i++)
    {
      snprintf (name, sizeof name, "p%d", i);
      params[i] = td_link_add_param (m, name, TD_SHAPE (1 + 7 * i), p->dtype,
                                     td_init_constant (0.5 + i % 7));
    }
  opt = p->make (m);
  td_opt_use_fp32_update (opt, p->mixed);
  if (p->scales)
    td_opt_loss_scaling (opt);
  if (p->hooks != NULL)
    p->hooks (opt);
  TD_ITERATIONS (i, n)
    {
      if (p->moves)
        kept[n_kept++] = td_retain (td_zeros (TD_F32, TD_SHAPE (64 * (1 + i % 5))));
      step_once (p, params, opt, (int)i, r);
    }
  read_all (r, params, opt);
  while (n_kept > 0)
    td_release (kept[--n_kept]);
  td_opt_free (opt);
  td_link_free (m);
  assert_int_equal (driver->state->n_graphs, 0);
  unsetenv ("TAPEDECK_CUDA_REPEATS");
}

/* Both ways, to the same bits. */
static void
expect_same (const Program *p, int n, Result *alone, Result *together)
{
  train (p, false, n, alone);
  train (p, true, n, together);
  assert_memory_equal (alone->params, together->params, sizeof alone->params);
  assert_memory_equal (alone->numbers, together->numbers, sizeof alone->numbers);
  for (int i = 0; i < n; i++)
    assert_int_equal (alone->graphs[i], 0);
  if (!p->scales) /* whose host waits when it is too far ahead of this driver */
    assert_int_equal (together->waits, alone->waits);
}

/* Steps that are one launch, after those that could not be. */
static void
expect_one_launch (const Result *r, int from, int n)
{
  for (int i = from; i < n; i++)
    {
      assert_int_equal (r->graphs[i], 1);
      assert_int_equal (r->launches[i], 0);
    }
}

static void
updates__with_clipping_are_one_launch (void **state)
{
  const Program p = { .make = make_adam, .hooks = clipping };
  Result alone, together;

  (void)state;
  expect_same (&p, STEPS, &alone, &together);
  assert_int_equal (alone.launches[STEPS - 1], 8); /* of all parameters together */
  expect_one_launch (&together, BUILT + 1, STEPS);
  assert_int_equal (together.captures, 1);
  print_message ("%ld launches, or 1\n", alone.launches[STEPS - 1]);
}

static void
updates__with_every_hook_are_one_launch (void **state)
{
  const Program p = { .make = make_sgd, .hooks = all_hooks };
  Result alone, together;

  (void)state;
  expect_same (&p, STEPS, &alone, &together);
  expect_one_launch (&together, BUILT + 1, STEPS);
  assert_int_equal (together.captures, 1);
  print_message ("%ld launches, or 1\n", alone.launches[STEPS - 1]);
}

/* Two launches are two launches. */
static void
updates__of_few_launches_stay_as_they_are (void **state)
{
  const Program p = { .make = make_adam };
  Result alone, together;

  (void)state;
  expect_same (&p, STEPS, &alone, &together);
  assert_int_equal (together.captures, 0);
  for (int i = 0; i < STEPS; i++)
    assert_int_equal (together.launches[i], alone.launches[i]);
}

static void
updates__of_float32_copies_are_one_launch (void **state)
{
  const Program p = { .make = make_adam, .dtype = TD_BF16, .mixed = true };
  Result alone, together;

  (void)state;
  expect_same (&p, STEPS, &alone, &together);
  assert_true (alone.launches[STEPS - 1] > 2 * N_PARAMS);
  expect_one_launch (&together, BUILT + 1, STEPS);
  print_message ("%ld launches, or 1\n", alone.launches[STEPS - 1]);
}

/* Decisions of the device, an overflow among them, are part of the graph. */
static void
updates__of_a_dynamic_scale_are_one_launch (void **state)
{
  const Program p = {
    .make = make_adam, .hooks = clipping, .dtype = TD_F16, .mixed = true, .scales = true
  };
  Result alone, together;

  (void)state;
  expect_same (&p, STEPS, &alone, &together);
  assert_true (together.numbers[2] == 1); /* the overflow */
  expect_one_launch (&together, 6, STEPS);
  assert_int_equal (together.captures, 1);
  print_message ("%ld launches, or 1\n", alone.launches[STEPS - 1]);
}

/* --- what changes --- */

static void
set_rate (TdOpt *opt, int step)
{
  td_opt_set_lr (opt, 0.05 / (1 + step % 5));
  td_opt_set_hyper (opt, "p3", "lr", 0.013 * (1 + step % 3));
}

static void
updates__follow_rates_and_steps_that_change (void **state)
{
  const Program p = { .make = make_adam, .hooks = clipping, .before = set_rate };
  Result alone, together;

  (void)state;
  expect_same (&p, STEPS, &alone, &together);
  assert_int_equal (together.captures, 1);
  assert_true (together.changes >= STEPS - BUILT - 1);
}

static void
updates__follow_gradients_that_lie_elsewhere (void **state)
{
  const Program p = { .make = make_adam, .hooks = clipping, .moves = true };
  Result alone, together;

  (void)state;
  expect_same (&p, 30, &alone, &together);
  expect_one_launch (&together, BUILT + 1, 30);
  assert_int_equal (together.captures, 1);
  assert_true (together.changes > 30 - BUILT);
}

/* A step that launches something else is no part of the graph, which is made again. */
static void
enable_some (TdOpt *opt, int step)
{
  td_opt_set_enabled (opt, "p2", step < 10 || step >= 20);
}

static void
updates__that_are_others_for_a_while_are_launched_one_by_one (void **state)
{
  const Program p = { .make = make_sgd, .hooks = all_hooks, .before = enable_some };
  Result alone, together;

  (void)state;
  expect_same (&p, 30, &alone, &together);
  assert_int_equal (together.graphs[9], 1);
  assert_int_equal (together.graphs[10], 0);
  assert_int_equal (together.launches[10], alone.launches[10]);
  assert_int_equal (together.graphs[19], 1);
  assert_int_equal (together.graphs[20], 0);
  assert_int_equal (together.graphs[29], 1);
  assert_int_equal (together.captures, 3);
}

/* The same at every step: then no more graphs are made. */
static void
enable_by_turns (TdOpt *opt, int step)
{
  td_opt_set_enabled (opt, "p2", step / 3 % 2 == 0);
}

static void
updates__that_change_all_the_time_are_given_up (void **state)
{
  const Program p = { .make = make_sgd, .hooks = all_hooks, .before = enable_by_turns };
  Result alone, together;

  (void)state;
  expect_same (&p, MAX_STEPS, &alone, &together);
  assert_in_range (together.captures, 3, 8);
  for (int i = MAX_STEPS - 6; i < MAX_STEPS; i++)
    {
      assert_int_equal (together.graphs[i], 0);
      assert_int_equal (together.launches[i], alone.launches[i]);
    }
}

/* A hook of the program's own multiplies matrices and reads a number in the middle. */
static TdStatus
own_hook (void *user, TdOpt *opt, const char *key, TdVar *param, TdVar *grad)
{
  (void)user;
  (void)opt;
  if (strcmp (key, "p3") == 0 && td_item (td_sum (grad)) > 0)
    {
      TdVar *square = td_ones (TD_F32, TD_SHAPE (22, 22));
      TdVar *row = td_reshape (grad, TD_SHAPE (1, 22));

      td_set_grad (param, td_reshape (td_matmul (row, square, false, false), TD_SHAPE (22)));
    }
  return TD_OK;
}

static void
own_and_others (TdOpt *opt)
{
  td_opt_add_hook (opt, td_gradient_lars_new ());
  td_opt_add_hook (opt, td_opt_hook_new ("own", own_hook, NULL));
  td_opt_add_hook (opt, td_gradient_clipping_new (0.5));
}

static void
updates__are_sent_before_whatever_else_a_hook_does (void **state)
{
  const Program p = { .make = make_sgd, .hooks = own_and_others };
  Result alone, together;

  (void)state;
  expect_same (&p, 30, &alone, &together);
  assert_true (together.captures >= 2); /* before it, after it */
  assert_true (together.graphs[29] >= 1);
  assert_true (together.launches[29] < alone.launches[29] / 2);
}

/* --- memory, waiting, faults --- */

static void
updates__take_no_more_memory_from_step_to_step (void **state)
{
  const Program p = { .make = make_adam, .hooks = clipping };
  Result r;

  (void)state;
  train (&p, true, MAX_STEPS, &r);
  for (int i = BUILT + 1; i < MAX_STEPS; i++)
    assert_int_equal (r.used[i], r.used[BUILT]);
}

static void
fault__of_a_launch_together_is_told (void **state)
{
  TdVar *p;
  TdLink *m;
  TdOpt *opt;

  (void)state;
  td_device_use (td_device_get ("cuda:0"));
  m = td_chain_new ("net");
  p = td_link_add_param (m, "p", TD_SHAPE (8), TD_F32, td_init_constant (1));
  opt = make_adam (m);
  all_hooks (opt);
  td_error_clear (); /* there is no p1 */
  for (int i = 0; i < 5; i++)
    {
      td_set_grad (p, td_ones (TD_F32, TD_SHAPE (8)));
      if (i == 4)
        driver->fail_call ("cuGraphLaunch", 1, CUDA_ERROR_LAUNCH_FAILED);
      assert_int_equal (td_opt_update (opt), i < 4 ? TD_OK : TD_ERR_DEVICE);
    }
  assert_contains (far_test_error (TD_ERR_DEVICE), "cuGraphLaunch");
  td_opt_free (opt);
  td_link_free (m);
}

/* A driver that makes no graphs: launches do. */
static void
updates__are_launched_where_the_driver_makes_no_graph (void **state)
{
  const Program p = { .make = make_adam, .hooks = clipping };
  Result alone, together;

  (void)state;
  train (&p, false, STEPS, &alone);
  driver->fail_call ("cuGraphInstantiate", 1, CUDA_ERROR_NOT_SUPPORTED);
  train (&p, true, STEPS, &together);
  assert_memory_equal (alone.params, together.params, sizeof alone.params);
  for (int i = BUILT + 1; i < STEPS; i++)
    {
      assert_int_equal (together.graphs[i], 0);
      assert_int_equal (together.launches[i], alone.launches[i]);
    }
}

/* --- recordings --- */

static void
record (const Program *p, const char *level, const char *times, Result *r)
{
  char name[40];
  const char *path;

  snprintf (name, sizeof name, "%s-%s.tdtape", level, times);
  path = td_test_tmp (name);
  assert_int_equal (td_finish (), 0);
  setenv ("TAPEDECK_TAPE", path, 1);
  setenv ("TAPEDECK_LEVEL", level, 1);
  setenv ("TAPEDECK_DEVICE_TIMES", times, 1);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  train (p, true, STEPS, r);
  assert_int_equal (td_finish (), 0);
  unsetenv ("TAPEDECK_TAPE");
  unsetenv ("TAPEDECK_LEVEL");
  unsetenv ("TAPEDECK_DEVICE_TIMES");
  assert_int_equal (td_init (NULL, NULL), TD_OK);
}

/* Weights are the same at every level; what looks at each operation, or times it, gets them one
 * by one. */
static void
recordings__change_no_weight (void **state)
{
  const Program p = { .make = make_adam, .hooks = clipping, .dtype = TD_BF16, .mixed = true };
  Result off, graph, stats, timed;

  (void)state;
  train (&p, true, STEPS, &off);
  record (&p, "graph", "off", &graph);
  record (&p, "stats", "off", &stats);
  record (&p, "graph", "all", &timed);
  assert_memory_equal (off.params, graph.params, sizeof off.params);
  assert_memory_equal (off.params, stats.params, sizeof off.params);
  assert_memory_equal (off.params, timed.params, sizeof off.params);
  expect_one_launch (&off, BUILT + 1, STEPS);
  expect_one_launch (&graph, BUILT + 1, STEPS);
  for (int i = 0; i < STEPS; i++)
    {
      assert_int_equal (stats.graphs[i], 0);
      assert_int_equal (timed.graphs[i], 0);
    }
}

/* Wherever it is missing. */
static void
updates__without_host_memory_are_launched_one_by_one (void **state)
{
  const Program p = { .make = make_adam, .hooks = clipping };
  Result alone, together;
  int n = 0;

  (void)state;
  train (&p, false, STEPS, &alone);
  do
    {
      driver->fail_call ("td_cuda_room_for", ++n, CUDA_ERROR_OUT_OF_MEMORY);
      train (&p, true, STEPS, &together);
      assert_memory_equal (alone.params, together.params, sizeof alone.params);
      assert_memory_equal (alone.numbers, together.numbers, sizeof alone.numbers);
    }
  while (together.graphs[STEPS - 1] == 0 && n < 1000);
  driver->fail_call ("td_cuda_room_for", 0, 0);
  expect_one_launch (&together, BUILT + 1, STEPS);
  assert_true (n > 3 * alone.launches[STEPS - 1]); /* two rooms for each, and its node */
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, far_test_teardown_engine)
  const struct CMUnitTest tests[] = {
    row (updates__with_clipping_are_one_launch),
    row (updates__with_every_hook_are_one_launch),
    row (updates__of_few_launches_stay_as_they_are),
    row (updates__of_float32_copies_are_one_launch),
    row (updates__of_a_dynamic_scale_are_one_launch),
    row (updates__follow_rates_and_steps_that_change),
    row (updates__follow_gradients_that_lie_elsewhere),
    row (updates__that_are_others_for_a_while_are_launched_one_by_one),
    row (updates__that_change_all_the_time_are_given_up),
    row (updates__are_sent_before_whatever_else_a_hook_does),
    row (updates__take_no_more_memory_from_step_to_step),
    row (fault__of_a_launch_together_is_told),
    row (updates__are_launched_where_the_driver_makes_no_graph),
    row (updates__without_host_memory_are_launched_one_by_one),
    row (recordings__change_no_weight),
  };

  return cmocka_run_group_tests_name ("repeat", tests, NULL, NULL);
}
