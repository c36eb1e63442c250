/* Loss scaling that the device decides: the numbers, counts and names that the host's decisions
 * give, told late and exactly, without waiting.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include "compute/core/async-index.h"
#include "far-test.h"
#include "fake-remote.h"
#include "far-tape.h"
#include "td-test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

static const FakeCudaControl *driver;

#ifndef EACH_KIND /* of optimizers: all of them, where kernels are not emulated */
#define FIRST_KIND 0
#define EACH_KIND 1
#endif

enum
{
  STEPS = 45,
  N_A = 5,
  N_B = 40,
  N_C = 16500, /* more than one block looks at */
  N_ALL = N_A + N_B + N_C
};
static const int64_t sizes[] = { N_A, N_B, N_C };
static const char *const names[] = { "a", "b", "c" };

static int
setup (void **state)
{
  driver = far_cuda_driver ();
  return far_test_setup (state);
}

/* --- one training, by the device or by the host --- */

typedef enum
{
  BY_CPU,
  BY_HOST, /* as where a breakpoint asks for each answer at once */
  BY_DEVICE
} Who;

typedef struct
{
  const char *name;
  TdOpt *(*make) (TdLink *net);
  void (*hooks) (TdOpt *opt);
  const char *state;
  bool as_cpu; /* no sums, whose order the CUDA kernels have their own way with */
  TdDtype dtype;
} Kind;

static TdOpt *
make_sgd (TdLink *net)
{
  return td_sgd_new (net, .lr = 0.01);
}

static TdOpt *
make_momentum (TdLink *net)
{
  return td_momentum_sgd_new (net, .lr = 0.01);
}

static TdOpt *
make_adam (TdLink *net)
{
  return td_adam_new (net, .lr = 0.01);
}

static TdOpt *
make_amsbound (TdLink *net)
{
  return td_adam_new (net, .lr = 0.01, .amsgrad = true, .adabound = true, .gamma = 0.1);
}

static void
no_hooks (TdOpt *opt)
{
  (void)opt;
}

static void
decay_hooks (TdOpt *opt)
{
  td_opt_add_hook (opt, td_weight_decay_new (0.01));
  td_opt_add_hook (opt, td_lasso_new (0.02), .param = "b");
}

static void
clipping_hooks (TdOpt *opt)
{
  td_opt_add_hook (opt, td_gradient_clipping_new (3));
  td_opt_add_hook (opt, td_weight_decay_new (0.01));
}

/* The host must know: it takes numbers of the sequence only for updates that are done. */
static void
noise_hooks (TdOpt *opt)
{
  td_opt_add_hook (opt, td_gradient_noise_new (0.1));
}

static const Kind kinds[] = {
  { "sgd", make_sgd, no_hooks, NULL, true, TD_F32 },
  { "momentum", make_momentum, decay_hooks, "v", true, TD_F64 },
  { "adam", make_adam, decay_hooks, "m", true, TD_F32 },
  { "amsbound", make_amsbound, no_hooks, "vhat", true, TD_F64 },
  { "adam with clipping", make_adam, clipping_hooks, "v", false, TD_F32 },
  { "adam of halves", make_adam, no_hooks, "v", true, TD_F16 },
  { "sgd with noise", make_sgd, noise_hooks, NULL, false, TD_F32 },
};

typedef struct
{
  double weights[N_ALL], state[N_C], gradient[N_B];
  double scale;
  int64_t skipped, count, t[3];
  char first[8];
  long waits;
} Result;

static void
read_as_double (TdVar *v, double *out)
{
  TdVar *wide = td_cast (v, TD_F64);

  assert_int_equal (td_read (wide, out, (size_t)td_size (wide) * sizeof *out), TD_OK);
}

/* Those that make b's, all, or a's gradients infinite or NaN; some follow each other, and one
 * is the first of all. */
static double
factor_of (int step, int part)
{
  static const struct
  {
    int step, part;
    double factor;
  } bad[] = { { 0, 1, (double)INFINITY },  { 9, 0, (double)NAN },
              { 10, 1, (double)INFINITY }, { 11, 2, -(double)INFINITY },
              { 23, 1, (double)NAN },      { 24, 2, (double)INFINITY },
              { 30, 0, (double)INFINITY }, { 31, 0, (double)INFINITY },
              { 40, 2, (double)NAN } };

  for (int i = 0; i < TD_ARRAY_LENGTH (bad); i++)
    if (bad[i].step == step && bad[i].part == part)
      return bad[i].factor;
  return 1;
}

static TdVar *
loss_of (TdLink *net, int step)
{
  TdVar *loss = NULL;

  for (int k = 0; k < 3; k++)
    {
      TdVar *p = td_cast (td_link_param (net, names[k]), TD_F32);
      TdVar *part = td_sum (td_square (td_add_scalar (p, -1 - k)));

      part = td_mul_scalar (part, factor_of (step, k));
      loss = loss == NULL ? part : td_add (loss, part);
    }
  return loss;
}

static void
start (Who who)
{
  assert_int_equal (td_init (NULL, NULL), TD_OK);
  td_device_use (td_device_get (who == BY_CPU ? "cpu" : "cuda:0"));
  td_set_seed (9);
  td__index_now = who == BY_HOST;
}

static TdLink *
make_net (TdDtype dtype)
{
  TdLink *net = td_chain_new ("net");

  TD_USING (dtype, (int)dtype)
    for (int k = 0; k < 3; k++)
      td_link_add_param (net, names[k], TD_SHAPE (sizes[k]));
  return net;
}

static void
one_step (TdLink *net, TdOpt *opt, int step)
{
  TD_SCOPE ("step")
    {
      TdVar *loss = loss_of (net, step);

      td_cleargrads (net);
      td_opt_backward (opt, loss, 0);
      td_opt_update (opt);
    }
  if (td_error () != NULL)
    fail_msg ("step %d: %s", step, td_error ()->message);
}

static void
run (const Kind *kind, Who who, int asks_every, Result *r)
{
  TdLink *net;
  TdOpt *opt;
  double *w = r->weights;
  long before;

  memset (r, 0, sizeof *r);
  start (who);
  net = make_net (kind->dtype);
  opt = kind->make (net);
  td_opt_use_fp32_update (opt, kind->dtype == TD_F16);
  kind->hooks (opt);
  assert_int_equal (td_opt_loss_scaling (opt, .interval = 10), TD_OK);
  before = driver->state->n_waits;
  for (int i = 0; i < STEPS; i++)
    {
      one_step (net, opt, i);
      if (asks_every > 0 && i % asks_every == 0)
        assert_true (td_opt_loss_scale (opt) >= 1);
    }
  r->waits = driver->state->n_waits - before;
  r->skipped = td_opt_skipped (opt);
  r->scale = td_opt_loss_scale (opt);
  r->count = td_opt_count (opt);
  snprintf (r->first, sizeof r->first, "%s", td_opt_first_overflow (opt));
  TD_SCOPE ("results")
    {
      for (int k = 0; k < 3; w += sizes[k++])
        {
          r->t[k] = td_opt_count_of (opt, names[k]);
          read_as_double (td_link_param (net, names[k]), w);
        }
      read_as_double (td_grad (td_link_param (net, "b")), r->gradient);
      if (kind->state != NULL)
        read_as_double (td_opt_state (opt, "c", kind->state), r->state);
    }
  td_opt_free (opt);
  td_link_free (net);
  assert_null (td_error ());
  assert_int_equal (td_finish (), 0);
}

static void
assert_same (const Kind *kind, const Result *a, const Result *b)
{
  if (memcmp (a->weights, b->weights, sizeof a->weights) != 0
      || memcmp (a->state, b->state, sizeof a->state) != 0
      || memcmp (a->gradient, b->gradient, sizeof a->gradient) != 0)
    fail_msg ("%s: other numbers", kind->name);
  assert_true (a->scale == b->scale);
  assert_int_equal (a->skipped, b->skipped);
  assert_int_equal (a->count, b->count);
  assert_memory_equal (a->t, b->t, sizeof a->t);
  assert_string_equal (a->first, b->first);
}

static void
decisions__of_the_device_are_those_of_the_host (void **state)
{
  static Result host, device, cpu;

  (void)state;
  for (int k = FIRST_KIND; k < TD_ARRAY_LENGTH (kinds); k += EACH_KIND)
    {
      const bool noise = kinds[k].hooks == noise_hooks;

      run (&kinds[k], BY_HOST, 0, &host);
      assert_int_equal (host.skipped, 9);
      assert_int_equal (host.t[0], STEPS - 9);
      assert_string_equal (host.first, "c");
      assert_true (host.waits >= STEPS);
      for (int asks = 0; asks < 4; asks += 3 * EACH_KIND)
        {
          run (&kinds[k], BY_DEVICE, asks, &device);
          assert_same (&kinds[k], &device, &host);
          assert_true (noise ? device.waits >= STEPS : device.waits < STEPS / 2);
        }
      if (!kinds[k].as_cpu)
        continue;
      run (&kinds[k], BY_CPU, 0, &cpu);
      assert_same (&kinds[k], &device, &cpu);
    }
}

/* --- waits --- */

/* Seven updates may be unknown; and a loop that reads its loss waits for that alone. */
static void
updates__wait_for_nothing (void **state)
{
  TdLink *net;
  TdOpt *opt;
  long before;

  (void)state;
  start (BY_DEVICE);
  net = make_net (TD_F32);
  opt = make_adam (net);
  td_opt_loss_scaling (opt, .interval = 10);
  one_step (net, opt, 1);
  td_device_synchronize (td_device_get ("cuda:0"));
  before = driver->state->n_waits;
  for (int i = 0; i < 7; i++)
    one_step (net, opt, i);
  assert_int_equal (driver->state->n_waits, before);
  assert_int_equal (td_opt_skipped (opt), 1);
  for (int i = 1; i < 30; i++)
    TD_SCOPE ("step")
      {
        TdVar *loss = loss_of (net, i);

        td_cleargrads (net);
        td_opt_backward (opt, loss, 0);
        before = driver->state->n_waits;
        td_opt_update (opt);
        assert_int_equal (driver->state->n_waits, before);
        td_item (loss);
      }
  before = driver->state->n_waits;
  for (int i = 0; i < 60; i++)
    one_step (net, opt, 1);
  assert_in_range (driver->state->n_waits - before, 0, 60 / 3);
  td_opt_free (opt);
  td_link_free (net);
  assert_int_equal (td_finish (), 0);
}

/* --- changes on the way --- */

/* A parameter that is left out for a while has its own count, and the host decides when a hook
 * of its kind comes, and the device when that goes. */
static void
counts__are_each_parameters_own (void **state)
{
  int64_t counts[2][4];

  (void)state;
  for (int late = 0; late < 2; late++)
    {
      TdLink *net;
      TdOpt *opt;

      start (late ? BY_DEVICE : BY_HOST);
      net = make_net (TD_F32);
      opt = make_adam (net);
      td_opt_loss_scaling (opt, .interval = 10);
      for (int i = 0; i < STEPS; i++)
        {
          if (i == 8 || i == 12)
            td_opt_set_enabled (opt, "b", i == 12);
          if (i == 22)
            td_opt_add_hook (opt, td_gradient_hard_clipping_new (-1e6, 1e6));
          if (i == 26)
            td_opt_remove_hook (opt, "GradientHardClipping");
          one_step (net, opt, i);
        }
      for (int k = 0; k < 3; k++)
        counts[late][k] = td_opt_count_of (opt, names[k]);
      counts[late][3] = td_opt_skipped (opt);
      td_opt_free (opt);
      td_link_free (net);
      assert_int_equal (td_finish (), 0);
    }
  assert_memory_equal (counts[0], counts[1], sizeof counts[0]);
  assert_int_equal (counts[1][0], STEPS - 9);
  assert_int_equal (counts[1][1],
                    STEPS - 9 - 1); /* of steps 8 to 11 one would have been done */
}

/* --- files --- */

static void
files__hold_what_is_known_in_the_end (void **state)
{
  const char *path = td_test_tmp ("opt.npz");
  double scales[2], w[2][N_A];

  (void)state;
  for (int resumed = 0; resumed < 2; resumed++)
    {
      TdLink *net;
      TdOpt *opt;

      start (BY_DEVICE);
      net = make_net (TD_F32);
      opt = make_adam (net);
      td_opt_loss_scaling (opt, .interval = 10);
      for (int i = 0; i < 35; i++)
        {
          if (i == 26 && resumed)
            {
              assert_int_equal (td_save_npz (path, opt), TD_OK);
              for (int k = 0; k < 3; k++) /* the weights are not in it */
                assert_int_equal (td_opt_loss_scaling (opt, .interval = 10), TD_OK);
              assert_int_equal (td_load_npz (path, opt), TD_OK);
            }
          one_step (net, opt, i);
        }
      scales[resumed] = td_opt_loss_scale (opt);
      TD_SCOPE ("w")
        read_as_double (td_link_param (net, "a"), w[resumed]);
      td_opt_free (opt);
      td_link_free (net);
      assert_int_equal (td_finish (), 0);
    }
  assert_true (scales[0] == scales[1]);
  assert_memory_equal (w[0], w[1], sizeof w[0]);
}

/* --- on the tape --- */

/* Every update's scale, in order, told with the update after it; the last at the end. */
static void
curves__have_every_decision (void **state)
{
  const char *path = td_test_tmp ("t.tdtape");
  TdTapeReader *r;
  const TdTapeReport *reports;
  double scale = 1, overflows = 0, in_b = 0;
  bool seen = false;
  uint64_t n;
  int step = 0;

  (void)state;
  setenv ("TAPEDECK_TAPE", path, 1);
  start (BY_DEVICE);
  unsetenv ("TAPEDECK_TAPE");
  {
    TdLink *net = make_net (TD_F32);
    TdOpt *opt = make_adam (net);

    td_opt_loss_scaling (opt, .interval = 10);
    TD_ITERATIONS (i, STEPS)
      one_step (net, opt, (int)i);
  }
  assert_int_equal (td_finish (), 0);
  r = far_tape_open (path);
  reports = td_tape_reader_reports (r, &n);
  for (uint64_t i = 0; i < n; i++)
    {
      const char *key = td_tape_reader_string (r, reports[i].key);

      if (strcmp (key, "loss_scale") == 0)
        {
          const bool bad = factor_of (step, 0) != 1 || factor_of (step, 1) != 1
                           || factor_of (step, 2) != 1;

          assert_true (reports[i].value == scale);
          scale = fmax (1, fmin (65504, scale * (bad ? 0.5 : seen || bad ? pow (2, 0.1) : 2)));
          seen = seen || bad;
          step++;
        }
      overflows = strcmp (key, "overflows") == 0 ? reports[i].value : overflows;
      in_b = strcmp (key, "overflows/b") == 0 ? reports[i].value : in_b;
    }
  assert_int_equal (step, STEPS);
  assert_true (overflows == 9);
  assert_true (in_b == 3);
  td_tape_reader_free (r);
}

/* --- when it goes wrong --- */

static void
fault__of_the_device_is_one_error_and_no_wait_for_ever (void **state)
{
  TdLink *net;
  TdOpt *opt;

  (void)state;
  start (BY_DEVICE);
  net = make_net (TD_F32);
  opt = make_adam (net);
  td_opt_loss_scaling (opt, .interval = 10);
  for (int i = 1; i < 4; i++)
    one_step (net, opt, i);
  driver->fail_call ("cuStreamSynchronize", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_int_equal (td_opt_skipped (opt), 0);
  far_test_error (TD_ERR_DEVICE);
  td_opt_free (opt);
  td_link_free (net);
  td_error_clear ();
  td_finish ();
}

int
main (void)
{
#define row(f) cmocka_unit_test_setup_teardown (f, setup, far_test_teardown)
  const struct CMUnitTest tests[] = {
    row (decisions__of_the_device_are_those_of_the_host),
    row (updates__wait_for_nothing),
    row (counts__are_each_parameters_own),
    row (files__hold_what_is_known_in_the_end),
    row (curves__have_every_decision),
    row (fault__of_the_device_is_one_error_and_no_wait_for_ever),
  };

  return cmocka_run_group_tests_name ("scaling-later", tests, NULL, NULL);
}
