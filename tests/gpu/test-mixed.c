/* Mixed precision on the device: parameters and activations of two bytes, float32 copies that
 * the optimizer works on, a loss scale that finds itself; held against float32 on the CPU.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "compute/core/core.h"
#include "far-test.h"
#include "fake-remote.h"
#include "far-tape.h"
#include "td-test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const FakeCudaControl *driver;

enum
{
  BATCH = 16,
  PIXELS = 12,
  STEPS = 40
};

static int
setup (void **state)
{
  driver = far_cuda_driver ();
  return far_test_setup (state);
}

typedef struct
{
  double first, last, scale;
  int64_t skipped;
  long waits; /* of the last iteration */
} Run;

static TdVar *
loss_of (TdLink *l1, TdLink *l2, TdDtype dtype)
{
  static float images[BATCH * PIXELS];
  static int32_t labels[BATCH];
  TdVar *h;

  for (int i = 0; i < BATCH * PIXELS; i++)
    images[i] = (float)(i * 7 % 11) / 33 + (i % PIXELS % 3 == i / PIXELS % 3 ? 1 : 0);
  for (int i = 0; i < BATCH; i++)
    labels[i] = i % 3;
  h = td_cast (td_tensor (TD_F32, TD_SHAPE (BATCH, PIXELS), images), dtype);
  h = td_link (l2, td_relu (td_link (l1, h)));
  /* The loss in float32, as one does. */
  return td_softmax_cross_entropy (td_cast (h, TD_F32),
                                   td_tensor (TD_I32, TD_SHAPE (BATCH), labels));
}

static Run
train (const char *device, TdDtype dtype, double factor, const char *tape)
{
  Run run = { 0 };
  TdLink *net, *l1 = NULL, *l2 = NULL;
  TdOpt *opt;

  if (tape != NULL)
    setenv ("TAPEDECK_TAPE", tape, 1);
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  td_device_use (td_device_get (device));
  net = td_chain_new ("mlp");
  TD_USING (dtype, (int)dtype)
    {
      l1 = td_linear_new (net, "l1", PIXELS, 16);
      l2 = td_linear_new (net, "l2", 16, 3);
    }
  opt = td_momentum_sgd_new (net, .lr = 0.1 / factor);
  if (dtype != TD_F32)
    {
      td_opt_use_fp32_update (opt, true);
      td_opt_loss_scaling (opt, .interval = 10);
    }
  TD_ITERATIONS (i, STEPS)
    {
      TdVar *loss = td_mul_scalar (loss_of (l1, l2, dtype), factor);
      long before = driver->state->n_waits;

      td_cleargrads (net);
      td_opt_backward (opt, loss, 0);
      td_opt_update (opt);
      if (td_error () != NULL)
        fail_msg ("%s", td_error ()->message);
      run.waits = driver->state->n_waits - before;
      run.last = td_item (loss);
      if (i == 0)
        run.first = run.last;
    }
  run.scale = td_opt_loss_scale (opt);
  run.skipped = td_opt_skipped (opt);
  td_opt_free (opt);
  td_link_free (net);
  assert_null (td_error ());
  assert_int_equal (td_finish (), 0);
  return run;
}

/* The CPU in float32 is what both have to come to; that is far below where they began. */
static void
assert_reaches (TdDtype dtype, double tolerance)
{
  Run exact = train ("cpu", TD_F32, 1, NULL), half = train ("cuda:0", dtype, 1, NULL);

  print_message ("%s: %.4f to %.4f (float32 on the CPU: %.4f), scale %g, %ld skipped\n",
                 td_dtype_name (dtype), half.first, half.last, exact.last, half.scale,
                 (long)half.skipped);
  assert_true (exact.last < exact.first / 3);
  assert_true (fabs (half.last - exact.last) <= tolerance * exact.first);
  assert_true (half.scale > 1);
  assert_int_equal (half.waits, 0); /* the device finds the scale */
}

static void
mlp__in_bfloat16_reaches_the_cpus_loss (void **state)
{
  assert_reaches (TD_BF16, 0.05);
}

static void
mlp__in_float16_reaches_the_cpus_loss (void **state)
{
  assert_reaches (TD_F16, 0.02);
}

/* What `tapedeck info` says of it. */
static void
assert_info (TdTapeReader *r, bool json, const char *expected)
{
  char *text = NULL;
  size_t n;
  FILE *out = open_memstream (&text, &n);

  td_tape_info (r, out, json);
  fclose (out);
  if (strstr (text, expected) == NULL)
    fail_msg ("%s is not in %s", expected, text);
  free (text);
}

/* A scale that is too large costs steps, and both are on the tape as curves; so is the type of
 * every operation. */
static void
overflows__are_counted_on_the_tape (void **state)
{
  const char *path = td_test_tmp ("t.tdtape");
  char error[256] = "";
  Run run = train ("cuda:0", TD_F16, 8192, path);
  TdTapeReader *r = far_tape_open (path);
  const TdTapeReport *reports;
  const TdTapeIteration *it;
  uint64_t n;
  double overflows = -1, scale = -1, begun = 0;
  char expected[160];
  int n_half = 0, n_linear = 0;

  assert_non_null (r);
  reports = td_tape_reader_reports (r, &n);
  for (uint64_t i = 0; i < n; i++)
    {
      const char *key = td_tape_reader_string (r, reports[i].key);

      if (strcmp (key, "overflows") == 0)
        overflows = reports[i].value;
      if (strcmp (key, "loss_scale") == 0)
        scale = reports[i].value;
      if (strcmp (key, "overflows/l2/W") == 0) /* the first that backward comes to */
        begun = reports[i].value;
    }
  assert_true (run.skipped > 0 && run.last < run.first);
  assert_true (overflows == (double)run.skipped);
  assert_true (scale >= 1 && scale <= 65504);
  assert_true (begun > 0 && begun <= overflows);
  snprintf (expected, sizeof expected, "loss scale       %.9g, %.0f updates skipped, begun in ",
            scale, overflows);
  assert_info (r, false, expected);
  snprintf (expected, sizeof expected,
            "\"loss_scaling\":{\"scale\":%.9g,\"skipped\":%.0f,\"begun_in\":{\"l", scale,
            overflows);
  assert_info (r, true, expected);
  it = td_tape_iteration_load (r, td_tape_reader_summaries (r).rows[5].number, error,
                               sizeof error);
  assert_non_null (it);
  for (uint32_t e = 0; e < it->n_events; e++)
    if (strcmp (td_tape_reader_op_name (r, it->events[e].opdef), "linear") == 0)
      {
        const TdTapeVar *y = &it->vars[it->outs[it->events[e].first_out]];

        n_linear++;
        n_half += y->dtype == TD_TAPE_F16 && y->device == 2;
      }
  assert_int_equal (n_linear, 2);
  assert_int_equal (n_half, 2);
  td_tape_iteration_free (it);
  td_tape_reader_free (r);
}

/* Every way of not being finite is seen on the device, in every type. */
static void
overflow__is_seen_in_every_type (void **state)
{
  static const double bad[] = { (double)INFINITY, -(double)INFINITY, (double)NAN };
  static const TdDtype types[] = { TD_F16, TD_BF16, TD_F32, TD_F64 };

  for (int t = 0; t < TD_ARRAY_LENGTH (types); t++)
    {
      TdLink *net;
      TdOpt *opt;

      assert_int_equal (td_init (NULL, NULL), TD_OK);
      td_device_use (td_device_get ("cuda:0"));
      net = td_chain_new ("net");
      TD_USING (dtype, (int)types[t])
        {
          td_link_add_param (net, "a", TD_SHAPE (3));
          td_link_add_param (net, "b", TD_SHAPE (40));
        }
      opt = td_sgd_new (net, .lr = 1);
      td_opt_loss_scaling (opt, .interval = 10);
      for (int k = 0; k < TD_ARRAY_LENGTH (bad) + 1; k++)
        TD_SCOPE ("step")
          {
            TdVar *loss = td_add (
                td_sum (td_link_param (net, "a")),
                td_sum (td_mul_scalar (td_link_param (net, "b"), k < 3 ? bad[k] : 1)));

            td_cleargrads (net);
            td_opt_backward (opt, loss, 0);
            td_opt_update (opt);
            assert_int_equal (td_opt_skipped (opt), k < 3 ? k + 1 : 3);
          }
      td_opt_free (opt);
      td_link_free (net);
      assert_int_equal (td_finish (), 0);
      driver->reset ();
    }
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, far_test_teardown)
  const struct CMUnitTest tests[] = {
    row (mlp__in_bfloat16_reaches_the_cpus_loss),
    row (mlp__in_float16_reaches_the_cpus_loss),
    row (overflows__are_counted_on_the_tape),
    row (overflow__is_seen_in_every_type),
  };

  return cmocka_run_group_tests_name ("mixed", tests, NULL, NULL);
}
