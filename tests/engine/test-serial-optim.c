/* An optimizer's file: Chainer's keys, and training that goes on from it as if it had never
 * stopped.
 *
 * SPDX-License-Identifier: MIT */
#include "optim-rig.h"
#include "start.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  KINDS = RIG_OPTS,
  ADAM = RIG_OPTS - 1
};

static TdOpt *
make (int kind, TdLink *m)
{
  return kind == ADAM ? td_adam_new (m, .lr = 0.1, .amsgrad = true) : rig_opt_new (kind, m);
}

/* The states' names of Chainer 7.8.1's rules. */
static void
opt_file__has_chainers_keys (void **state)
{
  static const char *const keys[KINDS] = {
    "",
    "W/v float32 (7,)\n",
    "W/v float32 (7,)\n",
    "W/v float32 (7,)\n",
    "W/h float32 (7,)\n",
    "W/msdx float32 (7,)\nW/msg float32 (7,)\n",
    "W/ms float32 (7,)\n",
    "W/delta float32 (7,)\nW/g float32 (7,)\nW/n float32 (7,)\n",
    "W/g float32 (7,)\nW/g2 float32 (7,)\nW/mem float32 (7,)\n",
    "W/m float32 (7,)\nW/v float32 (7,)\nW/vhat float32 (7,)\n",
  };

  (void)state;
  for (int kind = 0; kind < KINDS; kind++)
    {
      const char *path = td_test_tmp ("opt.npz");
      double g[RIG_N] = { 1 };
      char want[300], before_t[200] = "", after_t[200] = "";
      TdOpt *opt;

      rig_start (TD_F32);
      opt = make (kind, rig_chain);
      td_opt_new_epoch (opt);
      rig_give_gradient (rig_W, g);
      td_opt_update (opt);
      rig_give_gradient (rig_W, g);
      td_opt_update (opt);
      assert_int_equal (td_save_npz (path, opt), TD_OK);
      for (const char *at = keys[kind]; *at != '\0'; at = strchr (at, '\n') + 1)
        { /* sorted: W/g, W/g2 come before W/t */
          char *to = at[2] < 't' ? before_t : after_t;

          strncat (to, at, (size_t)(strchr (at, '\n') + 1 - at));
        }
      snprintf (want, sizeof want, "%sW/t int64 ()\n%sepoch int64 ()\nt int64 ()\n2 1 2\n",
                before_t, after_t);
      assert_python_says ("import sys, numpy as np\n"
                          "f = np.load(sys.argv[1])\n"
                          "for k in sorted(f.files): print(k, f[k].dtype, f[k].shape)\n"
                          "print(f['t'], f['epoch'], f['W/t'])\n",
                          path, want);
      assert_int_equal (td_finish (), 0);
    }
}

/* --- resuming --- */

/* Steps from t on; the same gradients whoever takes them. */
static void
steps (TdOpt *opt, TdVar *W, int from, int to)
{
  for (int t = from; t < to; t++)
    {
      double g[RIG_N];

      rig_gradient (t, g);
      rig_give_gradient (W, g);
      assert_int_equal (td_opt_update (opt), TD_OK);
    }
}

/* A second model with the same parameter; lazy: without its shape. */
static TdLink *
second_model (bool lazy, TdDtype dtype)
{
  TdLink *again = td_chain_new ("again");

  td_link_add_param (again, "W", TD_SHAPE (lazy ? TD_INFER : RIG_N), dtype,
                     td_init_constant (3));
  return again;
}

static void
resume (int kind, TdDtype dtype, bool fp32, bool lazy, bool safe, bool optimizer_first)
{
  char *model = strdup (td_test_tmp ("model")), *optimizer = strdup (td_test_tmp ("opt"));
  double went_on[RIG_N], resumed[RIG_N];
  TdLink *again;
  TdOpt *opt, *opt2;

  rig_start (dtype);
  opt = make (kind, rig_chain);
  td_opt_use_fp32_update (opt, fp32);
  steps (opt, rig_W, 1, 6);
  assert_int_equal (
      safe ? td_save_safetensors (model, rig_chain) : td_save_npz (model, rig_chain), TD_OK);
  assert_int_equal (safe ? td_save_safetensors (optimizer, opt) : td_save_npz (optimizer, opt),
                    TD_OK);
  steps (opt, rig_W, 6, 12);
  rig_get (rig_W, went_on);

  again = second_model (lazy, dtype);
  opt2 = make (kind, again);
  td_opt_use_fp32_update (opt2, fp32);
  for (int i = 0; i < 2; i++)
    if ((i == 0) == optimizer_first)
      assert_int_equal (
          safe ? td_load_safetensors (optimizer, opt2) : td_load_npz (optimizer, opt2), TD_OK);
    else
      assert_int_equal (safe ? td_load_safetensors (model, again) : td_load_npz (model, again),
                        TD_OK);
  assert_int_equal (td_opt_count (opt2), 5);
  assert_int_equal (td_opt_count_of (opt2, "W"), 5);
  steps (opt2, td_link_param (again, "W"), 6, 12);
  rig_get (td_link_param (again, "W"), resumed);
  if (memcmp (went_on, resumed, sizeof resumed) != 0)
    fail_msg ("optimizer %d, %s%s%s%s%s: %.17g went on, %.17g resumed", kind,
              td_dtype_name (dtype), fp32 ? ", copies" : "", lazy ? ", lazy" : "",
              safe ? ", safetensors" : "", optimizer_first ? ", optimizer first" : "",
              went_on[0], resumed[0]);
  assert_int_equal (td_finish (), 0);
  free (model);
  free (optimizer);
}

static void
training__goes_on_from_files_bit_for_bit (void **state)
{
  (void)state;
  for (int kind = 0; kind < KINDS; kind++)
    for (int way = 0; way < 8; way++)
      resume (kind, kind % 2 == 0 ? TD_F32 : TD_F64, false, way & 1, way & 2, way & 4);
}

/* The float32 copies come back too, whichever file is read first. */
static void
training__in_half_precision_goes_on_bit_for_bit (void **state)
{
  (void)state;
  for (int way = 0; way < 8; way++)
    {
      resume (9, TD_F16, true, way & 1, way & 2, way & 4);
      resume (1, TD_F16, false, way & 1, way & 2, way & 4);
    }
  resume (9, TD_BF16, true, false, true, false);
  resume (1, TD_BF16, false, false, true, true);
}

static void
opt_file__is_read_as_chainer_wrote_it (void **state)
{
  const char *path = td_test_tmp ("opt.npz");
  double m[RIG_N];
  TdOpt *opt;

  (void)state;
  rig_start (TD_F32);
  opt = td_adam_new (rig_chain);
  assert_python_says ("import sys, numpy as np\n"
                      "np.savez_compressed(sys.argv[1], t=np.asarray(9), epoch=np.asarray(2),\n"
                      " **{'W/t': np.asarray(8), 'W/m': np.arange(7, dtype='f'),\n"
                      "    'W/v': np.ones(7, 'f')})\n",
                      path, "");
  assert_int_equal (td_load_npz (path, opt), TD_OK);
  assert_int_equal (td_opt_count (opt), 9);
  assert_int_equal (td_opt_epoch (opt), 2);
  assert_int_equal (td_opt_count_of (opt, "W"), 8);
  rig_get (td_opt_state (opt, "W", "m"), m);
  assert_true (m[0] == 0 && m[6] == 6);
  assert_int_equal (td_finish (), 0);
}

/* A file that does not fit is named, and changes neither counts nor states. */
static void
opt_file__that_does_not_fit_changes_nothing (void **state)
{
  static const struct
  {
    const char *arrays, *text;
  } bad[] = {
    { "t=9, epoch=0, **{'W/t': 1, 'W/m': np.ones(7, 'f')}",
      "opt.npz: W/v: there is no such array in the file" },
    { "t=9, epoch=0, **{'W/t': 1, 'W/m': np.ones(7, 'f'), 'W/v': np.ones(6, 'f')}",
      "opt.npz: W/v: shape (7) expected, the file has (6)" },
    { "t=9, epoch=0, **{'W/m': np.ones(7, 'f'), 'W/v': np.ones(7, 'f')}",
      "opt.npz: W/t: there is no such array in the file" },
    { "t='nine', epoch=0, **{'W/t': 1, 'W/m': np.ones(7, 'f'), 'W/v': np.ones(7, 'f')}",
      "opt.npz: t: a single number expected" },
  };
  const char *path = td_test_tmp ("opt.npz");
  double before[RIG_N], after[RIG_N];
  TdOpt *opt;

  (void)state;
  rig_start (TD_F32);
  opt = td_adam_new (rig_chain);
  steps (opt, rig_W, 1, 3);
  rig_get (td_opt_state (opt, "W", "m"), before);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    {
      char script[300];

      snprintf (script, sizeof script, "import sys, numpy as np\nnp.savez(sys.argv[1], %s)\n",
                bad[i].arrays);
      assert_python_says (script, path, "");
      assert_int_not_equal (td_load_npz (path, opt), TD_OK);
      assert_contains (td_error ()->message, bad[i].text);
      td_error_clear ();
      assert_int_equal (td_opt_count (opt), 2);
      assert_int_equal (td_opt_count_of (opt, "W"), 2);
      rig_get (td_opt_state (opt, "W", "m"), after);
      assert_memory_equal (before, after, sizeof before);
    }
  assert_int_equal (td_finish (), 0);
}

static void
opt_file__keeps_a_dynamic_loss_scale (void **state)
{
  const char *path = td_test_tmp ("opt.npz");
  double g[RIG_N] = { 1 };
  TdOpt *opt, *opt2;

  (void)state;
  rig_start (TD_F32);
  opt = td_sgd_new (rig_chain);
  td_opt_loss_scaling (opt, .interval = 2);
  rig_give_gradient (rig_W, g);
  td_opt_update (opt);
  td_opt_update (opt);
  g[0] = (double)INFINITY;
  rig_give_gradient (rig_W, g);
  td_opt_update (opt);
  assert_true (td_opt_loss_scale (opt) == 2);
  assert_int_equal (td_save_npz (path, opt), TD_OK);
  opt2 = td_sgd_new (rig_chain);
  td_opt_loss_scaling (opt2, .interval = 2);
  assert_int_equal (td_load_npz (path, opt2), TD_OK);
  g[0] = 1;
  rig_give_gradient (rig_W, g);
  td_opt_update (opt2);
  assert_true (fabs (td_opt_loss_scale (opt2) - 2 * sqrt (2)) < 1e-12); /* not doubled */
  assert_int_equal (td_finish (), 0);
}

static void
opt_file__knows_parameters_that_wait_for_their_shape (void **state)
{
  const char *path = td_test_tmp ("opt.npz");
  TdLink *lazy;
  TdOpt *opt;

  (void)state;
  rig_start (TD_F32);
  lazy = second_model (true, TD_F32);
  opt = td_momentum_sgd_new (lazy);
  assert_int_equal (td_save_npz (path, opt), TD_OK);
  assert_int_equal (td_load_npz (path, td_momentum_sgd_new (lazy)), TD_OK);
  assert_int_equal (td_finish (), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (opt_file__has_chainers_keys),
    td_test (training__goes_on_from_files_bit_for_bit),
    td_test (training__in_half_precision_goes_on_bit_for_bit),
    td_test (opt_file__is_read_as_chainer_wrote_it),
    td_test (opt_file__that_does_not_fit_changes_nothing),
    td_test (opt_file__keeps_a_dynamic_loss_scale),
    td_test (opt_file__knows_parameters_that_wait_for_their_shape),
  };

  return cmocka_run_group_tests_name ("serial-optim", tests, NULL, NULL);
}
