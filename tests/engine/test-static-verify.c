/* Verify mode: what no guard can see, C variables of the program's own, is caught at the first
 * wrong call, and a call that agrees leaves no trace of having run twice.
 *
 * SPDX-License-Identifier: MIT */
#include "static-rig.h"

#include <tapedeck-op.h>

#include <stdlib.h>
#include <string.h>

/* What the code reads behind the engine's back. */
static struct
{
  int other_op, extra_op, other_line, swapped, fails;
  double scalar;
  float constant;
  int rows;
  double reported;
  int use_other_variable;
  bool drops;
  int n_code;
} hidden;
static TdVar *one, *other;

static void
reset_hidden (void)
{
  memset (&hidden, 0, sizeof hidden);
  hidden.scalar = 2;
  hidden.constant = 3;
  hidden.rows = 2;
  hidden.reported = 1;
}

static void
secretive (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Net *net = self;
  TdVar *h = td_link (net->bn, td_link (net->l1, in[0])), *brought;

  (void)n_in;
  hidden.n_code++;
  h = hidden.other_op ? td_tanh (h) : td_relu (h);
  if (hidden.extra_op)
    h = td_neg (h);
  if (hidden.other_line)
    h = td_exp (h);
  else
    h = td_exp (h);
  h = td_sub (hidden.swapped ? in[1] : h, hidden.swapped ? h : in[1]);
  h = td_mul_scalar (h, hidden.scalar);
  brought = td_tensor (TD_F32, TD_SHAPE (1), &hidden.constant);
  h = td_add (h, td_add (brought, hidden.use_other_variable ? other : one));
  if (hidden.drops)
    h = td_dropout (h, 0.5);
  td_report ("secret", hidden.reported);
  if (hidden.fails)
    h = td_matmul (h, in[1], false, false);
  if (n_out > 1)
    out[1] = td_full (TD_F32, TD_SHAPE (hidden.rows), 1);
  out[0] = td_dropout (h, 0.25);
}

/* clang-format off */
static void set_op (void) { hidden.other_op = 1; }
static void set_extra (void) { hidden.extra_op = 1; }
static void set_line (void) { hidden.other_line = 1; }
static void set_swapped (void) { hidden.swapped = 1; }
static void set_scalar (void) { hidden.scalar = -1; }
static void set_constant (void) { hidden.constant = 5; }
static void set_rows (void) { hidden.rows = 4; }
static void set_reported (void) { hidden.reported = 9; }
static void set_variable (void) { hidden.use_other_variable = 1; }
static void set_drops (void) { hidden.drops = true; }
static const struct
{
  const char *name;
  void (*change) (void);
  const char *words[3];
} secrets[] = {
  { "another operation", set_op,    { "verify:", "tanh at test-static-verify.c:", "relu at test-static-verify.c:" } },
  { "one more",      set_extra,     { "verify:", "neg at test-static-verify.c:", "exp at test-static-verify.c:" } },
  { "another line",  set_line,      { "verify:", "another line: exp at test-static-verify.c:" } },
  { "swapped",       set_swapped,   { "verify:", "other operands: sub at test-static-verify.c:" } },
  { "a scalar",      set_scalar,    { "verify:", "mul_scalar at test-static-verify.c:" } },
  { "a constant",    set_constant,  { "verify:", "brings other numbers", "test-static-verify.c:" } },
  { "a shape",       set_rows,      { "verify:", "operands" } },
  { "a report",      set_reported,  { "verify:", "another effect: a side effect" } },
  { "a variable",    set_variable,  { "verify:", "another variable" } },
  { "random numbers", set_drops,    { "verify:", "dropout at test-static-verify.c:" } },
};
/* clang-format on */

typedef struct
{
  int secret, every, at;
} Plan;

static void
caught (void *user)
{
  const Plan *plan = user;
  Net net = net_new ();
  TdStatic *s = td_static_new (secretive, &net, .fuse = false, .verify = plan->every);
  TdObservation *seen = td_observation_new ();

  reset_hidden ();
  one = td_retain (td_ones (TD_F32, TD_SHAPE (1)));
  other = td_retain (td_full (TD_F32, TD_SHAPE (1), 4));
  for (int i = 0; i < 10; i++)
    TD_SCOPE ("call")
      {
        TdVar *in[] = { some (TD_SHAPE (4, 5), (unsigned)i), some (TD_SHAPE (4, 7), 9) }, *y[2];

        if (i == plan->at)
          secrets[plan->secret].change ();
        TD_REPORT_SCOPE (seen)
          assert_int_equal (td_static_call (s, in, 2, y, 2), TD_OK);
        if (plan->every == 1 || i < plan->at)
          {
            note (y[0]);
            note (y[1]);
            note_number (td_observation_get (seen, td_observation_key (seen, 0)).last);
            note_number ((double)td_observation_get (seen, td_observation_key (seen, 0)).n);
            note (td_link_param (net.bn, "avg_mean"));
          }
        td_cleargrads (net.root);
        td_backward (sum_of_squares (y[0]), 0);
        if (plan->every == 1 || i < plan->at)
          note_link (net.root);
        if (is_static_run () && i == plan->at + plan->every - 1)
          {
            assert_int_equal (td_static_info (s).n_differences, 1);
            for (int k = 0; k < 3 && secrets[plan->secret].words[k] != NULL; k++)
              expect_miss (s, secrets[plan->secret].words[k], NULL);
          }
        if (is_static_run () && plan->every == 1 && i == plan->at - 1)
          assert_int_equal (td_static_info (s).n_differences, 0);
      }
  if (is_static_run ())
    {
      assert_int_equal (td_static_info (s).n_differences, 1);
      assert_int_equal (td_static_info (s).n_traces, 2);
    }
  td_observation_free (seen);
  td_release (one);
  td_release (other);
  td_static_free (s);
  td_link_free (net.root);
}

static void
verify__catches_a_c_variable_at_the_first_wrong_call (void **state)
{
  (void)state;
  for (int k = 0; k < (int)(sizeof secrets / sizeof *secrets); k++)
    {
      Plan plan = { k, 1, 5 };

      print_message ("planted: %s\n", secrets[k].name);
      run_both (caught, &plan);
    }
}

static void
verify__catches_it_within_k_calls (void **state)
{
  (void)state;
  for (int every = 2; every <= 3; every++)
    for (int k = 0; k < 2; k++)
      {
        Net net;
        TdStatic *s;
        int n = 0;

        reset_hidden ();
        net = net_new ();
        one = td_retain (td_ones (TD_F32, TD_SHAPE (1)));
        s = td_static_new (secretive, &net, .verify = every);
        for (int i = 0; i < 12 && td_static_info (s).n_differences == 0; i++)
          TD_SCOPE ("call")
            {
              TdVar *in[] = { some (TD_SHAPE (4, 5), 1), some (TD_SHAPE (4, 7), 9) }, *y;

              if (i == 4 + k)
                set_op ();
              td_static_call (s, in, 2, &y, 1);
              n += i >= 4 + k;
            }
        assert_int_equal (td_static_info (s).n_differences, 1);
        assert_in_range (n, 1, every);
        td_static_free (s);
        td_release (one);
        td_link_free (net.root);
      }
}

/* --- a call that agrees --- */

static void
agreeing (void *user)
{
  Net net = net_new ();
  TdOpt *opt = td_momentum_sgd_new (net.root, .lr = 0.05);
  TdStatic *s = td_static_new (net_forward, &net, .fuse = user != NULL, .verify = 2);

  for (unsigned i = 0; i < 12; i++)
    TD_SCOPE ("call")
      {
        TdVar *y;

        if (i == 8 && is_static_run ())
          td_static_verify_next (s);
        y = td_static_call1 (s, some (TD_SHAPE (8, 5), i));
        note (y);
        note (td_rand (TD_F32, TD_SHAPE (2)));
        td_cleargrads (net.root);
        td_backward (sum_of_squares (y), 0);
        td_opt_update (opt);
        note_link (net.root);
        note_number (net.n_wrapped); /* side effects are had once */
      }
  if (is_static_run ())
    {
      assert_true (td_static_info (s).n_verified >= 5);
      assert_int_equal (td_static_info (s).n_differences, 0);
      assert_int_equal (td_static_info (s).n_traces, 1);
      assert_int_equal (td_static_info (s).n_replays, 11);
      assert_int_equal (net.n_code, 1 + td_static_info (s).n_verified);
      assert_int_equal (td_static_info (s).n_instances, 1);
    }
  td_opt_free (opt);
  td_static_free (s);
  td_link_free (net.root);
}

static void
verify__a_call_that_agrees_leaves_no_trace (void **state)
{
  (void)state;
  run_both (agreeing, NULL);
  run_near (agreeing, (void *)"fused", 64);
}

static void
verify__says_since_when_nothing_was_verified (void **state)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (net_forward, &net);

  (void)state;
  TD_ITERATIONS (i, 6)
    {
      if (i == 4)
        td_static_verify_next (s);
      td_backward (sum_of_squares (td_static_call1 (s, some (TD_SHAPE (8, 5), 1))), 0);
      assert_int_equal (td_static_info (s).unverified_since, i < 4 ? -1 : 4);
      assert_int_equal (td_static_info (s).n_verified, i >= 4);
    }
}

static void
verify__code_that_fails_now_ends_the_schedule (void **state)
{
  Net net = net_new ();
  TdStatic *s = td_static_new (secretive, &net, .verify = 1);
  TdVar *in[] = { some (TD_SHAPE (4, 5), 1), some (TD_SHAPE (4, 7), 9) }, *y;

  (void)state;
  reset_hidden ();
  one = td_retain (td_ones (TD_F32, TD_SHAPE (1)));
  for (int i = 0; i < 3; i++)
    TD_SCOPE ("call")
      assert_int_equal (td_static_call (s, in, 2, &y, 1), TD_OK);
  hidden.fails = 1;
  assert_int_equal (td_static_call (s, in, 2, &y, 1), TD_ERR_SHAPE);
  assert_true (td_poisoned (y));
  assert_non_null (strstr (said (TD_ERR_SHAPE), "matmul"));
  assert_non_null (strstr (td_static_last_miss (s), "the code fails now"));
  assert_int_equal (td_static_info (s).n_schedules, 0);
  assert_int_equal (td_static_info (s).n_differences, 1);
  td_release (one);
}

/* --- backward --- */

/* An operation whose forward is always the same, and whose backward is not. */
static struct
{
  double factor;
  bool negates, gives_none;
} secret_backward;

static TdStatus
through_infer (TdOpCall *call)
{
  call->out[0].dtype = call->in[0].dtype;
  *call->out[0].shape = *call->in[0].shape;
  return TD_OK;
}

static TdStatus
through_forward (TdOpCall *call)
{
  memcpy (call->out[0].data, call->in[0].data,
          (size_t)call->in[0].size * td_dtype_bytes (call->in[0].dtype));
  return TD_OK;
}

static TdStatus
through_backward (TdBackward *b)
{
  if (secret_backward.gives_none)
    return TD_OK;
  b->gx[0] = secret_backward.negates ? td_neg (b->gy[0])
                                     : td_mul_scalar (b->gy[0], secret_backward.factor);
  return TD_OK;
}

static const TdOpClass through_class = { .name = "through",
                                         .group = "test",
                                         .formula = "x",
                                         .n_in_min = 1,
                                         .n_in_max = 1,
                                         .n_out = 1,
                                         .flags = TD_OP_HOST,
                                         .infer = through_infer,
                                         .forward = through_forward,
                                         .backward = through_backward };

static void
through_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *h = td_tanh (td_link (self, in[0]));

  (void)n_in;
  (void)n_out;
  td_apply (&through_class, NULL, &h, 1, &out[0], 1);
  out[0] = td_link (self, td_mul (out[0], h)); /* W once more */
}

/* clang-format off */
static void set_factor (void) { secret_backward.factor = 3; }
static void set_negates (void) { secret_backward.negates = true; }
static void set_gives_none (void) { secret_backward.gives_none = true; }
static void set_nothing (void) { }
static const struct
{
  void (*change) (void);
  const char *words[3];
} backward_secrets[] = {
  { set_factor,     { "verify:", "mul_scalar at test-static-verify.c:", " in the schedule" } },
  { set_negates,    { "verify: another step: neg at test-static-verify.c:", "mul_scalar at test-static-verify.c:" } },
  { set_gives_none, { "verify: another step: ", "mul_scalar at test-static-verify.c:" } },
  { set_nothing,    { NULL } },
};
/* clang-format on */

/* Two calls an iteration share their parameters, and gradients add up over two iterations. */
static void
caught_in_backward (void *user)
{
  const int k = *(const int *)user;
  const bool differs = backward_secrets[k].change != set_nothing;
  TdLink *l = td_linear_new (NULL, "l", 4, 4);
  TdStatic *s = td_static_new (through_code, l, .fuse = false, .verify = 1);

  secret_backward.factor = 2;
  secret_backward.negates = secret_backward.gives_none = false;
  fill_params (l, 5);
  for (unsigned i = 0; i < 8; i++)
    TD_SCOPE ("call")
      {
        TdVar *x = some (TD_SHAPE (3, 4), i), *y, *gx = NULL;

        if (i == 4)
          backward_secrets[k].change ();
        y = td_add (td_static_call1 (s, x), td_static_call1 (s, td_neg (x)));
        if (i % 2 == 0)
          td_cleargrads (l);
        if (i == 2 || i == 3)
          {
            TdVar *W = td_link_param (l, "W"), *loss = sum_of_squares (y);

            assert_int_equal (td_grad_of (&loss, 1, &W, 1, NULL, 0, &gx), TD_OK);
            note (gx);
          }
        assert_int_equal (td_backward (sum_of_squares (y), 0), TD_OK);
        note (y);
        note_link (l); /* of a call that differs too: define-by-run's */
        if (!is_static_run () || i > 4)
          continue;
        assert_int_equal (td_static_info (s).n_differences, differs && i == 4);
        for (int w = 0; differs && i == 4 && w < 3 && backward_secrets[k].words[w]; w++)
          expect_miss (s, backward_secrets[k].words[w], NULL);
      }
  if (is_static_run ())
    {
      assert_int_equal (td_static_info (s).n_differences, differs);
      assert_int_equal (td_static_info (s).n_traces, differs ? 2 : 1);
      assert_true (td_static_info (s).n_verified >= 7);
    }
  td_static_free (s);
  td_link_free (l);
}

static void
verify__compares_backward_before_gradients_are_handed_out (void **state)
{
  (void)state;
  skip_off_cpu (); /* an operation of the program's own, over host memory */
  for (int k = 0; k < (int)(sizeof backward_secrets / sizeof *backward_secrets); k++)
    run_both (caught_in_backward, &k);
}

/* W three times, so that its gradient is a sum, into which products add before they round. */
static void
halves_code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *h = td_tanh (td_matmul (in[0], self, false, false));

  (void)n_in;
  (void)n_out;
  td_apply (&through_class, NULL, &h, 1, &out[0], 1);
  out[0] = td_tanh (td_matmul (td_mul (out[0], h), self, false, false));
  out[0] = td_matmul (out[0], self, false, true);
}

/* Gradients add up over two iterations; in one of them the program holds what was there. */
static void
caught_in_halves (void *user)
{
  const TdDtype dtype = *(const TdDtype *)user;
  TdVar *W = td_retain (td_variable (td_cast (some (TD_SHAPE (4, 4), 3), dtype), "W"));
  TdStatic *s = td_static_new (halves_code, W, .fuse = false, .batch = false, .verify = 1);

  secret_backward.factor = 2;
  secret_backward.negates = secret_backward.gives_none = false;
  for (unsigned i = 0; i < 12; i++)
    TD_SCOPE ("call")
      {
        TdVar *x = td_cast (some (TD_SHAPE (3, 4), i), dtype), *y, *held = NULL;

        if (i == 7)
          secret_backward.factor = 3;
        y = td_static_call1 (s, x);
        if (i % 2 == 0)
          td_cleargrad (W);
        else if (i % 4 == 1)
          held = td_retain (td_grad (W));
        assert_int_equal (td_backward (sum_of_squares (y), 0), TD_OK);
        note (td_cast (td_grad (W), TD_F64));
        if (held != NULL)
          {
            note (td_cast (held, TD_F64));
            td_release (held);
          }
        if (is_static_run ())
          assert_int_equal (td_static_info (s).n_differences, i >= 7);
      }
  td_static_free (s);
  td_release (W);
}

static void
verify__gives_the_codes_sums_of_gradients_to_the_bit (void **state)
{
  (void)state;
  skip_off_cpu ();
  for (TdDtype dtype = TD_F32; dtype <= TD_BF16; dtype++)
    run_both (caught_in_halves, &dtype);
}

/* --- what is said --- */

static int turn;

static void
other_ratio (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  out[0] = td_dropout (in[0], 0.25 * turn);
}

static void
other_full (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  out[0] = td_add (in[0], td_full (TD_F32, TD_SHAPE (3, 3), turn));
}

static void
other_axes (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const int axes[] = { turn - 1, 2 - turn };

  (void)self;
  (void)n_in;
  (void)n_out;
  out[0] = td_transpose (in[0], axes);
}

static void
other_read (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  out[0] = td_mul (in[0], td_item (in[1]) > 1.5 ? other : one);
}

/* clang-format off */
static const struct
{
  TdStaticFn fn;
  const char *words;
} told[] = {
  { other_ratio, "verify: ratio is 0.5 now, 0.25 before: dropout at test-static-verify.c:" },
  { other_full,  "verify: other numbers (2, 0 now, 1, 0 before): a new array at test-static-verify.c:" },
  { other_axes,  "verify: axes is (1, 0) now, (0, 1) before: transpose at test-static-verify.c:" },
  { other_read,  "host read: the code reads numbers that are others now: the first is 2, 1 before" },
};
/* clang-format on */

static void
verify__says_what_is_another_with_both_numbers (void **state)
{
  (void)state;
  one = td_retain (some (TD_SHAPE (3, 3), 8));
  other = td_retain (some (TD_SHAPE (3, 3), 9));
  for (size_t k = 0; k < sizeof told / sizeof *told; k++)
    {
      TdStatic *s = td_static_new (told[k].fn, NULL, .verify = 1);

      for (turn = 1; turn <= 2; turn++)
        TD_SCOPE ("call")
          {
            TdVar *in[] = { some (TD_SHAPE (3, 3), 1), td_full (TD_F32, TD_SCALAR, turn) };
            TdVar *y;

            assert_int_equal (td_static_call (s, in, 2, &y, 1), TD_OK);
          }
      if (strstr (td_static_last_miss (s), told[k].words) == NULL)
        fail_msg ("\"%s\" expected: %s", told[k].words, td_static_last_miss (s));
      td_static_free (s);
    }
  td_release (one);
  td_release (other);
}

/* --- from outside --- */

static void
square (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  hidden.n_code++;
  out[0] = td_mul (in[0], in[0]);
}

static void
verify__the_environment_sets_the_mode_of_all_functions (void **state)
{
  static const struct
  {
    const char *mode;
    int n_code, n_verified;
  } modes[] = { { "as-is", 1, 0 }, { "off", 6, 0 }, { "verify", 6, 5 }, { "verify=2", 3, 2 } };

  (void)state;
  for (int k = 0; k < 4; k++)
    {
      TdStatic *s;

      td_finish ();
      setenv ("TAPEDECK_STATIC", modes[k].mode, 1);
      assert_int_equal (td_init (NULL, NULL), TD_OK);
      assert_null (getenv ("TAPEDECK_STATIC"));
      s = td_static_new (square, NULL);
      reset_hidden ();
      for (int i = 0; i < 6; i++)
        td_static_call1 (s, some (TD_SHAPE (3), 1));
      assert_int_equal (hidden.n_code, modes[k].n_code);
      assert_int_equal (td_static_info (s).n_verified, modes[k].n_verified);
      assert_int_equal (td_static_info (s).n_differences, 0);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (verify__catches_a_c_variable_at_the_first_wrong_call),
    engine_test (verify__catches_it_within_k_calls),
    engine_test (verify__a_call_that_agrees_leaves_no_trace),
    engine_test (verify__says_since_when_nothing_was_verified),
    engine_test (verify__code_that_fails_now_ends_the_schedule),
    engine_test (verify__compares_backward_before_gradients_are_handed_out),
    engine_test (verify__gives_the_codes_sums_of_gradients_to_the_bit),
    engine_test (verify__says_what_is_another_with_both_numbers),
    engine_test (verify__the_environment_sets_the_mode_of_all_functions),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
