/* Static schedules on a GPU as CUDA graphs: the CPU's and define-by-run's bits, one launch for
 * many operations, what changes between calls, what is launched alone and why.
 *
 * SPDX-License-Identifier: MIT */
#include "static-rig.h"

#include "compute/core/async-index.h"
#include "far-cuda.h"
#include "far-tape.h"
#include "quiet-observer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kernels are the CPU's behind the fake driver; emulated ones sum in another order. */
#ifndef OWN_KERNELS
#define OWN_KERNELS 0
#endif

static const FakeCudaControl *driver;

static int
setup (void **state)
{
  driver = far_cuda_driver ();
  if (driver == NULL)
    return -1;
  driver->reset ();
  if (fixture_setup (state) != 0)
    return -1;
  td_device_use (td_device_get ("cuda:0"));
  return 0;
}

static int
teardown (void **state)
{
  int status = fixture_teardown (state);

  if (driver->state->n_violations > 0)
    fail_msg ("the driver was misused: %s", driver->state->violation);
  assert_int_equal (driver->state->used_bytes, 0);
  assert_int_equal (driver->state->n_graphs, 0);
  return status;
}

/* --- chains --- */

/* l1, relu, l2, tanh. */
static void
plain_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Net *net = self;

  (void)n_in;
  (void)n_out;
  out[0] = td_tanh (td_link (net->l2, td_relu (td_link (net->l1, in[0]))));
}

/* The same and a number to go backward from. */
static void
summed_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *y;

  plain_forward (self, in, n_in, &y, 1);
  out[0] = sum_of_squares (y);
  (void)n_out;
}

/* The same and a loss, whose labels the host checks while errors are looked for at once. */
static void
labelled_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *y;

  plain_forward (self, in, n_in, &y, 1);
  out[0] = td_softmax_cross_entropy (y, in[1]);
  (void)n_out;
}

typedef struct
{
  TdStaticFn fn;
  bool keeps_inputs; /* arrays lie elsewhere at every call */
  bool two_losses;   /* gradients collect over two calls */
  int n;
} Training;

static void
train (void *user)
{
  const Training *t = user;
  Net net = net_new ();
  TdOpt *opt = td_adam_new (net.root);
  TdStatic *s = td_static_new (t->fn, &net, .fuse = false, .verify = 0);
  TdVar *kept[32];
  int n_kept = 0;

  TD_ITERATIONS (i, t->n)
    {
      TdVar *in[] = { some (TD_SHAPE (4, 5), (unsigned)i), classes (4, 3, (unsigned)i) }, *y;

      if (t->keeps_inputs && i % 3 != 0)
        kept[n_kept++] = td_retain (td_zeros (TD_F32, TD_SHAPE (100 + i)));
      td_cleargrads (net.root);
      for (int k = 0; k <= t->two_losses; k++)
        {
          assert_int_equal (td_static_call (s, in, 2, &y, 1), TD_OK);
          note (y);
          assert_int_equal (td_backward (td_ndim (y) > 0 ? sum_of_squares (y) : y, 0), TD_OK);
        }
      note_link (net.root);
      assert_int_equal (td_opt_update (opt), TD_OK);
    }
  note_link (net.root);
  while (n_kept > 0)
    td_release (kept[--n_kept]);
  td_static_free (s);
  td_opt_free (opt);
  td_link_free (net.root);
}

static void
graphs__train_to_define_by_runs_bits (void **state)
{
  Training t = { plain_forward, false, false, 12 };

  (void)state;
  run_both (train, &t);
  assert_true (driver->state->n_graph_launches >= 2 * 8);
}

static void
graphs__follow_arrays_that_lie_elsewhere (void **state)
{
  Training t = { plain_forward, true, false, 20 };

  (void)state;
  run_both (train, &t);
  assert_true (driver->state->n_graph_launches >= 2 * 12);
  assert_true (driver->state->n_graph_changes[1] > 0); /* with a library's products */
  assert_true (!OWN_KERNELS || driver->state->n_graph_changes[0] > 0); /* node by node */
}

static void
graphs__follow_gradients_that_collect_over_two_calls (void **state)
{
  Training t = { plain_forward, false, true, 10 };

  (void)state;
  run_both (train, &t);
  assert_true (driver->state->n_graph_launches > 10);
}

static void
graphs__follow_the_random_numbers_of_each_call (void **state)
{
  Training t = { net_forward, false, false, 12 };

  (void)state;
  run_both (train, &t);
  assert_true (driver->state->n_graph_launches >= 8);
}

/* The same program on the CPU: every bit, where the kernels are the CPU's. */
static void
graphs__train_as_on_the_cpu (void **state)
{
  static float numbers[2][1000];
  size_t n[2] = { 0, 0 };

  (void)state;
  for (int device = 0; device < 2; device++)
    {
      Net net;
      TdOpt *opt;
      TdStatic *s;

      td_device_use (td_device_get (device == 0 ? "cpu" : "cuda:0"));
      td_set_seed (5);
      net = net_new ();
      opt = td_sgd_new (net.root, .lr = 0.1);
      s = td_static_new (plain_forward, &net, .fuse = false, .verify = 0);
      TD_ITERATIONS (i, 8)
        {
          TdVar *in[] = { some (TD_SHAPE (4, 5), (unsigned)i) }, *y;

          td_static_call (s, in, 1, &y, 1);
          td_cleargrads (net.root);
          td_backward (sum_of_squares (y), 0);
          td_opt_update (opt);
          td_read (y, numbers[device] + n[device], 12 * sizeof (float));
          n[device] += 12;
        }
      td_read (td_link_param (net.l1, "W"), numbers[device] + n[device], 35 * sizeof (float));
      n[device] += 35;
      td_static_free (s);
      td_opt_free (opt);
      td_link_free (net.root);
    }
  assert_int_equal (n[0], n[1]);
  if (!OWN_KERNELS)
    assert_memory_equal (numbers[0], numbers[1], n[0] * sizeof (float));
  for (size_t i = 0; i < n[0]; i++)
    assert_float_equal (numbers[0][i], numbers[1][i], 1e-5);
  assert_true (driver->state->n_graph_launches >= 10);
}

/* --- how many launches --- */

static TdVar *
call (TdStatic *s, TdVar *x)
{
  TdVar *in[] = { x }, *y;

  td_static_call (s, in, 1, &y, 1);
  return y;
}

static void
graphs__are_one_launch_for_a_forward_and_one_for_its_backward (void **state)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (summed_forward, &net, .fuse = false, .verify = 0);
  long launches = 0, graphs = 0, alone = 0, captures = 0;

  (void)state;
  TD_ITERATIONS (i, 10)
    {
      TdVar *y = call (s, some (TD_SHAPE (4, 5), 3));

      td_cleargrads (net.root);
      assert_int_equal (td_backward (y, 0), TD_OK);
      if (i > 6) /* all addresses have been seen */
        {
          assert_int_equal (driver->state->n_graph_launches - graphs, 2);
          assert_int_equal (driver->state->n_captures, captures);
          assert_int_equal ((long)td_static_info (s).n_alone, alone);
          assert_true (driver->state->n_launches - launches <= 2); /* gradient of y */
        }
      graphs = driver->state->n_graph_launches;
      captures = driver->state->n_captures;
      alone = (long)td_static_info (s).n_alone;
      launches = driver->state->n_launches;
    }
  assert_string_equal (td_static_last_alone (s), "");
  assert_int_equal (td_static_info (s).n_graph_launches, driver->state->n_graph_launches);
  td_static_free (s);
  assert_int_equal (driver->state->n_graphs, 0);
  td_link_free (net.root);
}

static void
graphs__are_not_made_when_the_option_is_off (void **state)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (plain_forward, &net, .cuda_graph = false, .verify = 0);

  (void)state;
  for (int i = 0; i < 5; i++)
    TD_SCOPE ("call")
      call (s, some (TD_SHAPE (4, 5), 3));
  assert_int_equal (driver->state->n_captures, 0);
  assert_int_equal (td_static_info (s).n_replays, 4);
  td_static_free (s);
  td_link_free (net.root);
}

/* Waiting for the device is what a graph must never bring about. */
static void
graphs__wait_for_nothing (void **state)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (summed_forward, &net, .fuse = false, .verify = 0);
  long before = 0;

  (void)state;
  TD_ITERATIONS (i, 8)
    {
      TdVar *y;

      if (i == 1)
        before = driver->state->n_waits;
      y = call (s, td_rand (TD_F32, TD_SHAPE (4, 5)));
      td_cleargrads (net.root);
      td_backward (y, 0);
    }
  assert_int_equal (driver->state->n_waits, before);
  assert_true (driver->state->n_graph_launches > 8);
  td_static_free (s);
  td_link_free (net.root);
}

/* --- what is no graph --- */

static void
graphs__leave_out_what_the_host_checks (void **state)
{
  Training t = { labelled_forward, false, false, 8 };
  static const int32_t bad[4] = { 0, 9, 1, 2 };
  Net net;
  TdStatic *s;

  (void)state;
  td__index_now = true;
  run_both (train, &t);
  net = net_new ();
  s = td_static_new (labelled_forward, &net, .fuse = false, .verify = 0);
  TD_ITERATIONS (i, 6)
    {
      TdVar *in[] = { some (TD_SHAPE (4, 5), 3), classes (4, 3, 1) }, *y;

      td_static_call (s, in, 2, &y, 1);
    }
  assert_contains (td_static_last_alone (s), "softmax_cross_entropy is launched alone: it has "
                                             "indices that the host checks at every call at ");
  assert_true (td_static_info (s).n_graph_launches >= 3);
  TD_SCOPE ("wrong label")
    {
      TdVar *in[] = { some (TD_SHAPE (4, 5), 3), td_tensor (TD_I32, TD_SHAPE (4), bad) }, *y;

      assert_int_not_equal (td_static_call (s, in, 2, &y, 1), TD_OK);
      assert_contains (said (TD_ERR_ARG), "got 9 at element 1");
    }
  td__index_now = false;
  td_static_free (s);
  td_link_free (net.root);
}

static void
graphs__that_the_driver_refuses_are_done_without (void **state)
{
  static const char *const calls[]
      = { "cuStreamBeginCapture", "cuGraphInstantiate", "cuStreamEndCapture" };

  (void)state;
  for (int i = 0; i < 3; i++)
    {
      Training t = { plain_forward, false, false, 6 };

      driver->fail_call (calls[i], 1, 801 /* CUDA_ERROR_NOT_SUPPORTED */);
      run_both (train, &t);
      assert_null (td_error ());
    }
}

static void
graphs__that_there_is_no_host_memory_for_are_done_without (void **state)
{
  (void)state;
  for (int n = 1; n <= 12; n++)
    {
      Training t = { plain_forward, false, false, 6 };

      driver->fail_call ("td_cuda_room_for", n, 2 /* CUDA_ERROR_OUT_OF_MEMORY */);
      run_both (train, &t);
      assert_null (td_error ());
    }
  driver->fail_call ("td_cuda_room_for", 0, 0);
}

/* --- who looks --- */

typedef struct
{
  TdObserver observer; /* first */
  bool wants_each;
  int n, n_captured, n_events;
  char together[300], alone[300];
} Watch;

static void
after_op (TdObserver *o, const TdEvent *e)
{
  Watch *w = (Watch *)(void *)o;

  w->n += (e->flags & TD_EVENT_REPLAYED) != 0;
  w->n_captured += (e->flags & TD_EVENT_CAPTURED) != 0;
}

static bool
each (TdObserver *o)
{
  return ((Watch *)(void *)o)->wants_each;
}

static void
on_event (TdObserver *o, const TdStaticEvent *n)
{
  Watch *w = (Watch *)(void *)o;

  if (n->what != TD_STATIC_EVENT_CAPTURED)
    return;
  snprintf (strcmp (n->guard, "alone") == 0 ? w->alone : w->together, sizeof w->alone, "%s",
            n->text);
  w->n_events++;
}

static Watch
watch_new (void)
{
  Watch w = { .observer = quiet_observer };

  w.observer.after_op = after_op;
  w.observer.each = each;
  w.observer.static_event = on_event;
  return w;
}

static void
graphs__are_told_of_and_what_is_launched_alone_too (void **state)
{
  Watch w = watch_new ();
  Net net = net_new ();
  TdStatic *s = td_static_new (labelled_forward, &net, .fuse = false, .verify = 0);

  (void)state;
  td__index_now = true;
  td__engine.observer = &w.observer;
  for (int i = 0; i < 6; i++)
    TD_SCOPE ("call")
      {
        TdVar *in[] = { some (TD_SHAPE (4, 5), 3), classes (4, 3, 1) }, *y;

        td_static_call (s, in, 2, &y, 1);
      }
  td__engine.observer = NULL;
  assert_string_equal (w.together, "forward: 4 operations are one CUDA graph");
  assert_string_equal (w.alone, "forward: softmax_cross_entropy is launched alone: it has "
                                "indices that the host checks at every call");
  assert_int_equal (w.n_events, 2); /* once each */
  td__index_now = false;
  td_static_free (s);
  td_link_free (net.root);
}

static void
graphs__are_taken_apart_while_somebody_looks_at_each_operation (void **state)
{
  Watch w = watch_new ();
  Net net = net_new ();
  TdStatic *s = td_static_new (plain_forward, &net, .fuse = false, .verify = 0);
  float plain[12], seen[12];
  TdVar *x = td_retain (some (TD_SHAPE (4, 5), 3));
  long graphs;

  (void)state;
  for (int i = 0; i < 5; i++)
    TD_SCOPE ("call")
      assert_int_equal (td_read (call (s, x), plain, sizeof plain), TD_OK);
  td__engine.observer = &w.observer;
  TD_SCOPE ("told together") /* events, none with a time of its own */
    assert_int_equal (td_read (call (s, x), seen, sizeof seen), TD_OK);
  assert_memory_equal (plain, seen, sizeof plain);
  assert_true (w.n >= 4);
  assert_int_equal (w.n_captured, w.n);
  w.wants_each = true;
  w.n = w.n_captured = 0;
  graphs = driver->state->n_graph_launches;
  TD_SCOPE ("one by one")
    assert_int_equal (td_read (call (s, x), seen, sizeof seen), TD_OK);
  assert_memory_equal (plain, seen, sizeof plain);
  assert_true (w.n >= 4);
  assert_int_equal (w.n_captured, 0);
  assert_int_equal (driver->state->n_graph_launches, graphs);
  td__engine.observer = NULL;
  TD_SCOPE ("together again")
    call (s, x);
  assert_int_equal (driver->state->n_graph_launches, graphs + 1);
  td_release (x);
  td_static_free (s);
  td_link_free (net.root);
}

/* --- the tape --- */

/* Record a few iterations at this level.  Returns how many graphs were launched. */
static long
record_training (const char *path, const char *level)
{
  Training t = { summed_forward, false, false, 8 };
  long launches;

  assert_int_equal (td_finish (), 0);
  driver->reset ();
  setenv ("TAPEDECK_TAPE", path, 1);
  setenv ("TAPEDECK_LEVEL", level, 1);
  setenv ("TAPEDECK_DEVICE_TIMES", "all", 1);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  td_device_use (td_device_get ("cuda:0"));
  TD_SCOPE ("recorded")
    train (&t);
  launches = driver->state->n_graph_launches;
  assert_int_equal (td_finish (), 0);
  unsetenv ("TAPEDECK_TAPE");
  unsetenv ("TAPEDECK_LEVEL");
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  return launches;
}

/* Of the last iteration: replayed operations, and those of them that ran in a graph, none of
 * which has a time of its own. */
static void
count_events (TdTapeReader *r, int *replayed, int *captured)
{
  char error[200];
  const TdTapeIteration *it = td_tape_iteration_load (r, 7, error, sizeof error);

  assert_non_null (it);
  *replayed = *captured = 0;
  for (uint32_t e = 0; e < it->n_events; e++)
    {
      *replayed += (it->events[e].flags & TD_TAPE_EVENT_REPLAYED) != 0;
      *captured += (it->events[e].flags & TD_TAPE_EVENT_CAPTURED) != 0;
    }
  assert_true (it->n_device_times > 0);
  for (uint32_t k = 0; k < it->n_device_times; k++)
    assert_int_equal (it->events[it->device_times[k].event].flags & TD_TAPE_EVENT_CAPTURED, 0);
  td_tape_iteration_free (it);
}

static void
tape__says_what_ran_in_a_graph_and_has_numbers_of_each_at_level_stats (void **state)
{
  const char *path = td_test_tmp ("graphs.tdtape");
  int replayed, captured, n_told = 0;
  TdTapeReader *r;

  (void)state;
  assert_true (record_training (path, "graph") >= 10);
  r = far_tape_open (path);
  count_events (r, &replayed, &captured);
  assert_true (replayed > 12);
  assert_int_equal (captured, replayed);
  for (uint32_t i = 0; i < td_tape_reader_n_static_events (r); i++)
    {
      const TdTapeStaticEvent *e = td_tape_reader_static_event (r, i);

      if (e->what != TD_TAPE_STATIC_CAPTURED)
        continue;
      n_told++;
      assert_contains (td_tape_reader_string (r, e->text), "operations are one CUDA graph");
    }
  assert_int_equal (n_told, 2); /* forward, backward */
  td_tape_reader_free (r);

  path = td_test_tmp ("each.tdtape");
  assert_int_equal (record_training (path, "stats"), 0);
  r = far_tape_open (path);
  count_events (r, &replayed, &captured);
  assert_true (replayed > 12);
  assert_int_equal (captured, 0);
  td_tape_reader_free (r);
}

/* --- memory --- */

static void
pools__hold_what_schedules_and_graphs_need_apart (void **state)
{
  TdDevice *d = td_device_get ("cuda:0");
  Net net = net_new ();
  TdStatic *s = td_static_new (summed_forward, &net, .fuse = false, .verify = 0);
  TdMemInfo info;
  size_t sum = 0;

  (void)state;
  TD_ITERATIONS (i, 6)
    {
      td_cleargrads (net.root);
      td_backward (call (s, some (TD_SHAPE (4, 5), 3)), 0);
    }
  info = td_mem_info (d);
  assert_true (info.pool_bytes[TD_MEM_POOL_STATIC] >= td_static_info (s).planned_bytes);
  assert_true (info.pool_reserved_bytes[TD_MEM_POOL_WORKSPACE] > 0); /* of the library */
  assert_true (info.pool_reserved_bytes[TD_MEM_POOL_GRAPH] > 0);
  for (int which = 0; which < TD_MEM_N_POOLS; which++)
    sum += info.pool_reserved_bytes[which];
  assert_int_equal (sum, info.reserved_bytes);
  assert_int_equal (info.reserved_bytes, driver->state->used_bytes);
  /* What graphs refer to stays as long as they are there. */
  td_pool_trim (d);
  info = td_mem_info (d);
  assert_true (info.pool_reserved_bytes[TD_MEM_POOL_GRAPH] > 0);
  TD_SCOPE ("again")
    call (s, some (TD_SHAPE (4, 5), 3));
  td_static_free (s);
  td_pool_trim (d);
  info = td_mem_info (d);
  assert_int_equal (info.pool_reserved_bytes[TD_MEM_POOL_GRAPH], 0);
  assert_int_equal (info.pool_bytes[TD_MEM_POOL_STATIC], 0);
  assert_null (td__pool_check (d->pool));
  td_link_free (net.root);
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, teardown)
  const struct CMUnitTest tests[] = {
    row (graphs__train_to_define_by_runs_bits),
    row (graphs__follow_arrays_that_lie_elsewhere),
    row (graphs__follow_gradients_that_collect_over_two_calls),
    row (graphs__follow_the_random_numbers_of_each_call),
    row (graphs__train_as_on_the_cpu),
    row (graphs__are_one_launch_for_a_forward_and_one_for_its_backward),
    row (graphs__are_not_made_when_the_option_is_off),
    row (graphs__wait_for_nothing),
    row (graphs__leave_out_what_the_host_checks),
    row (graphs__that_the_driver_refuses_are_done_without),
    row (graphs__that_there_is_no_host_memory_for_are_done_without),
    row (graphs__are_told_of_and_what_is_launched_alone_too),
    row (graphs__are_taken_apart_while_somebody_looks_at_each_operation),
    row (tape__says_what_ran_in_a_graph_and_has_numbers_of_each_at_level_stats),
    row (pools__hold_what_schedules_and_graphs_need_apart),
  };

  return cmocka_run_group_tests_name ("graphs", tests, NULL, NULL);
}
