/* What overlap and double buffering are for: on a slow link, how much of the time of the sums
 * an update waits for.
 *
 * The link is slow by itself (TAPEDECK_TEST_LINK), and so is backward: each layer sleeps there
 * for as long as a device would compute.  Neither takes a processor, so that a loaded machine
 * changes little, and of several updates the shortest is looked at.
 * SPDX-License-Identifier: MIT */
#include "models.h"

#include <tapedeck-op.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum
{
  WIDTH = 64,
  LAYERS = 6,
  EXAMPLES = 4,
  SLEEP_MS = 20, /* of each layer's backward */
  WARM = 3,      /* updates from which is learned */
  TIMED = 9
};

static double
now_ms (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* How long the link takes for one mean of all gradients. */
static double
link_ms (void)
{
  double us = 0, mb = 1, bytes = LAYERS * (WIDTH * WIDTH + WIDTH) * 4.0;

  assert_non_null (getenv ("TAPEDECK_TEST_LINK"));
  assert_int_equal (sscanf (getenv ("TAPEDECK_TEST_LINK"), "%lf:%lf", &us, &mb), 2);
  return bytes / mb / 1e3 + LAYERS * us / 1e3;
}

static TdStatus
same_infer (TdOpCall *call)
{
  return td_op_out (call, 0, call->in[0].dtype, call->in[0].shape);
}

static TdStatus
same_forward (TdOpCall *call)
{
  memcpy (call->out[0].data, call->in[0].data, (size_t)call->in[0].size * sizeof (float));
  return TD_OK;
}

static TdStatus
slow_backward (TdBackward *b)
{
  const struct timespec t = { 0, SLEEP_MS * 1000000 };

  nanosleep (&t, NULL);
  b->gx[0] = b->gy[0];
  return TD_OK;
}

static const TdOpClass slow_class = { .name = "slow",
                                      .n_in_min = 1,
                                      .n_in_max = 1,
                                      .n_out = 1,
                                      .infer = same_infer,
                                      .forward = same_forward,
                                      .backward = slow_backward };

static TdVar *
slow (TdVar *x)
{
  TdVar *y;

  td_apply (&slow_class, NULL, &x, 1, &y, 1);
  return y;
}

typedef struct
{
  double update_ms, iteration_ms; /* the shortest */
} Timing;

static Timing
measure (TdMultiNodeOpt options)
{
  TdLink *model = td_sequential_new ("net");
  Timing t = { 1e9, 1e9 };
  TdOpt *opt;

  options.bucket_bytes = (WIDTH * WIDTH + WIDTH) * 4;
  for (int i = 0; i < LAYERS; i++)
    {
      char name[16];

      snprintf (name, sizeof name, "l%d", i);
      td_linear_new (model, name, WIDTH, WIDTH);
      td_sequential_append (model, slow);
    }
  opt = td_multi_node_optimizer_new_ (td_sgd_new (model, .lr = 1e-3), world, &options);
  for (int step = 0; step < WARM + TIMED; step++)
    TD_SCOPE ("step")
      {
        TdVar *x = td_full (TD_F32, TD_SHAPE (EXAMPLES, WIDTH), 0.1 * (me + 1));
        const double begin = now_ms ();
        double before;

        td_cleargrads (model);
        assert_int_equal (td_backward (td_mean (td_square (td_link (model, x))), 0), TD_OK);
        before = now_ms ();
        assert_int_equal (td_opt_update (opt), TD_OK);
        if (step >= WARM)
          {
            t.update_ms = fmin (t.update_ms, now_ms () - before);
            t.iteration_ms = fmin (t.iteration_ms, now_ms () - begin);
          }
      }
  td_opt_free (opt);
  td_link_free (model);
  return t;
}

static void
say (const char *what, Timing t, Timing usual)
{
  if (me == 0)
    printf ("%s: %.1f ms in the update, %.1f ms an iteration; the link takes %.1f ms, hidden "
            "%.1f ms\n",
            what, t.update_ms, t.iteration_ms, link_ms (), usual.update_ms - t.update_ms);
}

static void
sums__of_a_slow_link_are_hidden_behind_backward_and_the_next_iteration (void **state)
{
  TdMultiNodeOpt options = { TD_MULTI_NODE_DEFAULTS };
  Timing usual, behind, later;

  (void)state;
  options.overlap = false;
  usual = measure (options);
  options.overlap = true;
  behind = measure (options);
  options.overlap = false;
  options.double_buffering = true;
  later = measure (options);
  say ("one after the other", usual, usual);
  say ("behind backward", behind, usual);
  say ("behind the next iteration", later, usual);
  assert_true (usual.update_ms >= link_ms ());
  assert_true (behind.update_ms < usual.update_ms - link_ms () / 3);
  assert_true (later.update_ms < usual.update_ms - link_ms () / 3);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    ranks_test (sums__of_a_slow_link_are_hidden_behind_backward_and_the_next_iteration),
  };

  return run_as_ranks (tests);
}
