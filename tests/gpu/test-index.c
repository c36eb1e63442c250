/* Indices that the device checks by itself: nothing waits, what is bad is skipped and told of
 * with its operation, place, value and iteration, also out of a CUDA graph.
 *
 * SPDX-License-Identifier: MIT */
#include "static-rig.h"

#include "compute/core/async-index.h"
#include "far-cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const FakeCudaControl *driver;

static int
setup (void **state)
{
  driver = far_cuda_driver ();
  if (driver == NULL)
    return -1;
  driver->reset ();
  setenv ("TAPEDECK_ON_ERROR", "continue", 1);
  if (fixture_setup (state) != 0)
    return -1;
  td_device_use (td_device_get ("cuda:0"));
  return 0;
}

static int
teardown (void **state)
{
  int status = fixture_teardown (state);

  unsetenv ("TAPEDECK_ON_ERROR");
  if (driver->state->n_violations > 0)
    fail_msg ("the driver was misused: %s", driver->state->violation);
  assert_int_equal (driver->state->used_bytes, 0);
  return status;
}

/* What the device has computed: the host has never seen these numbers. */
static TdVar *
computed (const int32_t *numbers, int64_t n)
{
  return td_add (td_tensor (TD_I32, TD_SHAPE (n), numbers), td_zeros (TD_I32, TD_SHAPE (n)));
}

/* The error, which is there before anybody waits for it if `now`. */
static const char *
told (bool now)
{
  static char text[1100];

  if (!now)
    td_device_synchronize (td_device_get ("cuda:0"));
  assert_non_null (td_error ());
  assert_int_equal (td_error ()->status, TD_ERR_ARG);
  snprintf (text, sizeof text, "%s", td_error ()->message);
  td_error_clear ();
  return text;
}

/* --- operation by operation --- */

static void
index__that_the_device_computed_is_checked_without_a_wait (void **state)
{
  static const int32_t good[3] = { 2, 0, 1 }, bad[4] = { 1, -3, 0, 3 };
  TdVar *W = td_variable (some (TD_SHAPE (3, 2), 1), "W"), *x = computed (good, 3), *y;
  float w[6], rows[8];
  long waits;

  (void)state;
  assert_int_equal (td_read (W, w, sizeof w), TD_OK);
  waits = driver->state->n_waits;
  y = td_embed_id (x, W);
  assert_int_equal (driver->state->n_waits, waits);
  assert_int_equal (td_read (y, rows, 6 * sizeof (float)), TD_OK);
  assert_memory_equal (rows, w + 4, 2 * sizeof (float));
  x = computed (bad, 4);
  waits = driver->state->n_waits;
  y = td_embed_id (x, W);
  assert_false (td_poisoned (y));
  assert_int_equal (driver->state->n_waits, waits);
  memset (rows, 1, sizeof rows);
  assert_int_equal (td_read (y, rows, sizeof rows),
                    TD_ERR_ARG); /* the host reads: it is told */
  assert_contains (told (true),
                   "embed_id: 0 <= x[i] < 3 expected, got -3 at element 1: x (4) i32 (");
  assert_memory_equal (rows, w + 2, 2 * sizeof (float));
  assert_true (rows[2] == 0 && rows[3] == 0 && rows[6] == 0 && rows[7] == 0);
  assert_int_equal (td_read (y, rows, sizeof rows), TD_OK); /* once */
}

static void
index__that_is_bad_adds_nothing_and_makes_no_loss (void **state)
{
  static const int32_t bad[3] = { 1, 7, -2 }, ignored[3] = { 1, -1, -1 };
  TdVar *W = td_variable (td_zeros (TD_F32, TD_SHAPE (3, 2)), "W"), *y;
  TdVar *x = td_variable (some (TD_SHAPE (3, 4), 2), "x"), *loss[2];
  float g[6], gx[2][12];

  (void)state;
  y = td_sum (td_embed_id (computed (bad, 3), W));
  assert_int_equal (td_backward (y, 0), TD_OK);
  assert_contains (told (false), "got 7 at element 1");
  assert_int_equal (td_read (td_grad (W), g, sizeof g), TD_OK);
  for (int i = 0; i < 6; i++)
    assert_true (g[i] == (i / 2 == 1));
  loss[0] = td_softmax_cross_entropy (x, computed (bad, 3));
  assert_int_equal (td_backward (loss[0], 0), TD_OK);
  assert_contains (told (false), "softmax_cross_entropy: 0 <= t[i] < 4 expected, got 7");
  assert_int_equal (td_read (td_grad (x), gx[0], sizeof gx[0]), TD_OK);
  td_cleargrad (x);
  loss[1] = td_softmax_cross_entropy (x, computed (ignored, 3));
  assert_int_equal (td_backward (loss[1], 0), TD_OK);
  assert_int_equal (td_read (td_grad (x), gx[1], sizeof gx[1]), TD_OK);
  assert_true (td_item (loss[0]) == td_item (loss[1]));
  assert_memory_equal (gx[0], gx[1], sizeof gx[0]);
  assert_true (gx[0][1] < 0);
}

static void
index__is_told_of_at_the_end_of_the_iteration_after_the_device_came_to_it (void **state)
{
  static const int32_t bad[2] = { 0, 5 };
  TdVar *W = td_retain (some (TD_SHAPE (3, 2), 1));
  TdDevice *device = td_device_get ("cuda:0");
  const TdError *error;

  (void)state;
  TD_ITERATIONS (i, 5)
    {
      TdVar *y = td_embed_id (computed (bad, i == 2 ? 2 : 1), W);

      if (i == 3) /* what the device did up to here is known; nothing of ours asks */
        device->ops->synchronize (device);
      assert_false (td_poisoned (y));
      assert_int_equal (td__engine.has_error, i == 4);
    }
  error = td_error ();
  assert_non_null (error);
  assert_contains (error->message, "got 5 at element 1 in iteration 2: x (2) i32");
  td_error_clear ();
  td_release (W);
}

static void
index__is_checked_at_once_where_somebody_debugs (void **state)
{
  static const int32_t bad[2] = { 0, 5 };
  TdVar *W = some (TD_SHAPE (3, 2), 1);

  (void)state;
  td_config_set (debug, true);
  assert_true (td_poisoned (td_embed_id (computed (bad, 2), W)));
  assert_contains (told (true), "embed_id: 0 <= x[i] < 3 expected, got 5 at element 1: x (2)");
  td_config_set (debug, false);
  td__index_now = true; /* a breakpoint on errors */
  assert_true (td_poisoned (td_embed_id (computed (bad, 2), W)));
  assert_contains (told (true), "got 5 at element 1");
  td__index_now = false;
  /* What the host has sent it knows. */
  assert_true (td_poisoned (td_embed_id (td_tensor (TD_I32, TD_SHAPE (2), bad), W)));
  assert_contains (told (true), "got 5 at element 1");
  assert_false (td_poisoned (td_embed_id (computed (bad, 2), W)));
  told (false);
}

static void
index__that_was_never_asked_about_ends_the_program_with_1 (void **state)
{
  static const int32_t bad[2] = { 0, 5 };

  (void)state;
  td_embed_id (computed (bad, 2), some (TD_SHAPE (3, 2), 1));
  assert_int_equal (td_finish (), 1);
}

/* --- static schedules --- */

static TdVar *
labels (int64_t i, int64_t bad)
{
  int32_t t[4] = { 0, (int32_t)(i % 3), 1, 2 };

  t[1] = i == bad ? 9 : t[1];
  return td_tensor (TD_I32, TD_SHAPE (4), t);
}

static void
classifier__iterates_in_graphs_alone_and_without_a_wait (void **state)
{
  Net net = net_new ();
  TdOpt *opt = td_sgd_new (net.root, .lr = 0.1);
  TdStatic *s = td_static_new (classifier_forward, &net, .fuse = false);
  long graphs = 0, alone = 0, waits = 0;

  (void)state;
  TD_ITERATIONS (i, 20)
    {
      TdVar *in[] = { some (TD_SHAPE (4, 5), (unsigned)i), labels (i, -1) }, *y;

      assert_int_equal (td_static_call (s, in, 2, &y, 1), TD_OK);
      td_cleargrads (net.root);
      assert_int_equal (td_backward (y, 0), TD_OK);
      assert_int_equal (td_opt_update (opt), TD_OK);
      if (i > 8) /* all addresses have been seen */
        {
          assert_int_equal (driver->state->n_graph_launches - graphs, 2);
          assert_int_equal ((long)td_static_info (s).n_alone - alone, 0);
          assert_int_equal (driver->state->n_waits - waits, 0);
        }
      graphs = driver->state->n_graph_launches;
      alone = (long)td_static_info (s).n_alone;
      waits = driver->state->n_waits;
    }
  assert_string_equal (td_static_last_alone (s), "");
  assert_int_equal (td_static_info (s).n_alone, 0);
  assert_null (td_error ());
  td_static_free (s);
  td_opt_free (opt);
  td_link_free (net.root);
}

/* A bad label in one of the iterations, whose graphs all run long after they were launched. */
static void
classifier__names_the_iteration_that_had_the_bad_label (void **state)
{
  (void)state;
  for (int64_t bad = 3; bad < 16; bad += 4)
    {
      Net net = net_new ();
      TdStatic *s = td_static_new (classifier_forward, &net, .fuse = false);
      int64_t first = td__engine.n_iterations;
      char when[80];

      TD_ITERATIONS (i, 18)
        {
          TdVar *in[] = { some (TD_SHAPE (4, 5), (unsigned)i), labels (i, bad) }, *y;

          assert_int_equal (td_static_call (s, in, 2, &y, 1), TD_OK);
          td_cleargrads (net.root);
          if (!td__engine.has_error)
            assert_int_equal (td_backward (y, 0), TD_OK);
        }
      assert_true (td_static_info (s).n_graph_launches > 20);
      snprintf (when, sizeof when, "got 9 at element 1 in iteration %lld: t (4) i32",
                (long long)(first + bad));
      td_device_synchronize (td_device_get ("cuda:0"));
      assert_non_null (td_error ());
      assert_contains (td_error ()->message, "softmax_cross_entropy: 0 <= t[i] < 3 expected");
      assert_contains (td_error ()->message, when);
      assert_contains (td_error ()->message, "net.c:42)");
      assert_string_equal (td_error ()->op, "softmax_cross_entropy");
      td_error_clear ();
      td_static_free (s);
      td_link_free (net.root);
    }
}

static void
classifier__is_launched_alone_where_errors_are_looked_for_at_once (void **state)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (classifier_forward, &net, .fuse = false);

  (void)state;
  td__index_now = true;
  TD_ITERATIONS (i, 8)
    {
      TdVar *in[] = { some (TD_SHAPE (4, 5), 3), labels (i, 6) }, *y;

      assert_int_equal (td_static_call (s, in, 2, &y, 1), i == 6 ? TD_ERR_ARG : TD_OK);
      if (i == 6)
        assert_contains (told (true), "got 9 at element 1");
    }
  assert_contains (td_static_last_alone (s), "softmax_cross_entropy is launched alone: it has "
                                             "indices that the host checks at every call at ");
  td__index_now = false;
  td_static_free (s);
  td_link_free (net.root);
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, teardown)
  const struct CMUnitTest tests[] = {
    row (index__that_the_device_computed_is_checked_without_a_wait),
    row (index__that_is_bad_adds_nothing_and_makes_no_loss),
    row (index__is_told_of_at_the_end_of_the_iteration_after_the_device_came_to_it),
    row (index__is_checked_at_once_where_somebody_debugs),
    row (index__that_was_never_asked_about_ends_the_program_with_1),
    row (classifier__iterates_in_graphs_alone_and_without_a_wait),
    row (classifier__names_the_iteration_that_had_the_bad_label),
    row (classifier__is_launched_alone_where_errors_are_looked_for_at_once),
  };

  return cmocka_run_group_tests_name ("indices of a device", tests, NULL, NULL);
}
