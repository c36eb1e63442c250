/* Every optimizer with every hook gives the same bits on one thread and on two, and on a device
 * whose memory the host cannot look into; on the null device it plans only.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck.h>

#include <stdlib.h>
#include <string.h>

#include "compute/cpu/cpu.h"
#include "../support/fake-remote.h"
#include "optim-rig.h"

enum
{
  SIZE = 32768 + 5, /* two pieces */
  STEPS = 3,
  KINDS = RIG_OPTS + 4
};

/* The plain ones, then the branches of RMSprop's and Adam's kernels. */
static TdOpt *
make (int kind, TdLink *m)
{
  switch (kind - RIG_OPTS)
    {
    case 0:
      return td_rmsprop_new (m, .eps_inside_sqrt = true);
    case 1:
      return td_adam_new (m, .amsgrad = true, .weight_decay_rate = 0.01);
    case 2:
      return td_adam_new (m, .adabound = true);
    case 3:
      return td_adam_new (m, .amsgrad = true, .adabound = true);
    default:
      return rig_opt_new (kind, m);
    }
}

static void
add_hooks (TdOpt *opt)
{
  td_opt_add_hook (opt, td_weight_decay_new (1e-3));
  td_opt_add_hook (opt, td_lasso_new (1e-3));
  td_opt_add_hook (opt, td_gradient_noise_new (0.01));
  td_opt_add_hook (opt, td_gradient_lars_new (.weight_decay = 1e-3));
  td_opt_add_hook (opt, td_gradient_hard_clipping_new (-0.4, 0.5));
  td_opt_add_hook (opt, td_gradient_clipping_new (30));
  assert_null (td_error ());
}

/* A few steps from the same numbers; the parameter's bytes. */
static void *
train (int kind, TdDtype dtype, bool fp32, TdDevice *device, size_t *bytes)
{
  TdLink *m;
  TdOpt *opt;
  TdVar *W;
  void *out;

  td_set_seed (5);
  td_device_use (device);
  m = td_chain_new ("m");
  W = td_link_add_param (m, "W", TD_SHAPE (SIZE), dtype, td_init_constant (0.5));
  opt = make (kind, m);
  add_hooks (opt);
  td_opt_use_fp32_update (opt, fp32);
  td_opt_loss_scaling (opt, .scale = 8);
  TD_ITERATIONS (i, STEPS)
    {
      TdVar *x = td_cast (td_randn (TD_F32, TD_SHAPE (SIZE)), dtype);
      TdVar *loss = td_sum (td_mul (W, x));

      td_cleargrads (m);
      assert_int_equal (td_opt_backward (opt, loss, 0), TD_OK);
      assert_int_equal (td_opt_update (opt), TD_OK);
    }
  *bytes = SIZE * td_dtype_bytes (dtype);
  out = calloc (1, *bytes);
  assert_non_null (out);
  if (device != td_device_get ("null")) /* it has no numbers */
    assert_int_equal (td_read (W, out, *bytes), TD_OK);
  td_opt_free (opt);
  td_link_free (m);
  return out;
}

static void
same_bits (TdDtype dtype, bool fp32)
{
  TdDevice *cpu, *remote, *null;

  td_init (NULL, NULL);
  cpu = td_device_get ("cpu");
  remote = fake_remote_start ();
  null = td_device_get ("null");
  for (int kind = 0; kind < KINDS; kind++)
    {
      size_t n;
      char *one, *two, *there;

      td__cpu_set_threads (1);
      one = train (kind, dtype, fp32, cpu, &n);
      td__cpu_set_threads (2);
      two = train (kind, dtype, fp32, cpu, &n);
      there = train (kind, dtype, fp32, remote, &n);
      if (memcmp (one, two, n) != 0 || memcmp (one, there, n) != 0)
        fail_msg ("optimizer %d differs %s", kind,
                  memcmp (one, two, n) != 0 ? "at two threads" : "far away");
      if (dtype == TD_F32
          || dtype == TD_F64) /* it went somewhere: steps are too small for half */
        assert_memory_not_equal (one, one + td_dtype_bytes (dtype), td_dtype_bytes (dtype));
      free (one);
      free (two);
      free (there);
      free (train (kind, dtype, fp32, null, &n));
      assert_null (td_error ());
    }
  assert_int_equal (td_finish (), 0);
}

static void
optimizers__give_the_same_bits_everywhere_in_f32 (void **state)
{
  (void)state;
  same_bits (TD_F32, false);
}

static void
optimizers__give_the_same_bits_everywhere_in_f64 (void **state)
{
  (void)state;
  same_bits (TD_F64, false);
}

static void
optimizers__give_the_same_bits_everywhere_in_half_precision (void **state)
{
  (void)state;
  same_bits (TD_F16, false);
  same_bits (TD_BF16, false);
}

static void
optimizers__give_the_same_bits_everywhere_with_float32_copies (void **state)
{
  (void)state;
  same_bits (TD_F16, true);
  same_bits (TD_BF16, true);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (optimizers__give_the_same_bits_everywhere_in_f32),
    td_test (optimizers__give_the_same_bits_everywhere_in_f64),
    td_test (optimizers__give_the_same_bits_everywhere_in_half_precision),
    td_test (optimizers__give_the_same_bits_everywhere_with_float32_copies),
  };

  return cmocka_run_group_tests_name ("optim-devices", tests, NULL, NULL);
}
