/* What a static function must do as its code does, in programs that are unlike the tests' own:
 * parts without backprop, parameters that come two ways, memory that the code changes.
 *
 * SPDX-License-Identifier: MIT */
#include "static-rig.h"

#include "compute/core/core.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- parts without backprop --- */

typedef struct
{
  TdLink *root, *base, *head, *target;
} Frozen;

static Frozen
frozen_new (void)
{
  Frozen f = { .root = td_chain_new ("net") };

  f.base = td_linear_new (f.root, "base", 5, 5);
  f.head = td_linear_new (f.root, "head", 5, 3);
  f.target = td_linear_new (f.root, "target", 5, 3);
  fill_params (f.root, 3);
  return f;
}

static void
frozen_base (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Frozen *f = self;
  TdVar *h = NULL;

  (void)n_in;
  (void)n_out;
  TD_NO_BACKPROP
    h = td_tanh (td_link (f->base, in[0]));
  out[0] = td_link (f->head, h);
}

/* One step towards what another net says, which gets no gradient; nor does the argument there.
 */
static void
towards_target (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Frozen *f = self;
  TdVar *goal = NULL, *q = td_link (f->head, in[0]);

  (void)n_in;
  TD_NO_BACKPROP
    goal = td_add (td_link (f->target, in[1]), td_link (f->head, in[1]));
  q = td_sub (q, goal);
  out[0] = td_sum (td_mul (q, q));
  if (n_out > 1)
    out[1] = goal;
}

/* The same parameter with and without. */
static void
both_ways (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Frozen *f = self;
  TdVar *gate = NULL;

  (void)n_in;
  (void)n_out;
  TD_NO_BACKPROP
    gate = td_sigmoid (td_link (f->base, in[0]));
  out[0] = td_link (f->head, td_mul (gate, td_link (f->base, td_tanh (in[0]))));
}

/* Only a part has backprop, whatever the caller says. */
static void
always_with (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const Frozen *f = self;

  (void)n_in;
  (void)n_out;
  TD_USING (enable_backprop, 1)
    out[0] = td_link (f->head, in[0]);
}

typedef struct
{
  TdStaticFn fn;
  int verify, n_in, n_out;
  bool around, targets;
} WithoutPlan;

static void
without (void *user)
{
  const WithoutPlan *plan = user;
  Frozen f = frozen_new ();
  TdStatic *s = td_static_new (plan->fn, &f, .batch = false, .verify = plan->verify);

  for (unsigned i = 0; i < 6; i++)
    TD_SCOPE ("iteration")
      {
        TdVar *x = td_variable (some (TD_SHAPE (4, 5), i), "x");
        TdVar *z = td_variable (some (TD_SHAPE (4, 5), 20 + i), "z"), *out[2];
        TdVar *in[] = { td_tanh (x), td_tanh (z) }, *loss;

        if (plan->around)
          TD_NO_BACKPROP
            td_static_call (s, in, plan->n_in, out, plan->n_out);
        else
          td_static_call (s, in, plan->n_in, out, plan->n_out);
        for (int k = 0; k < plan->n_out; k++)
          note (out[k]);
        loss = sum_of_squares (out[0]);
        if (plan->targets)
          {
            TdVar *xs[] = { td_link_param (f.base, "W"), x, td_link_param (f.head, "W") };
            TdVar *gxs[3];

            td_grad_of (&loss, 1, xs, 3, NULL, 0, gxs);
            for (int k = 0; k < 3; k++)
              note (gxs[k]);
          }
        td_cleargrads (f.root);
        td_backward (loss, 0);
        note (td_grad (x));
        note (td_grad (z));
        note_link (f.root);
      }
  if (is_static_run ())
    {
      assert_int_equal (td_static_info (s).n_differences, 0);
      assert_true (td_static_info (s).n_replays >= 4);
      if (plan->verify > 0)
        assert_true (td_static_info (s).n_verified >= 4);
    }
  td_static_free (s);
  td_link_free (f.root);
}

static void
truth__parts_without_backprop_get_no_gradient (void **state)
{
  const WithoutPlan plans[] = {
    { frozen_base, 0, 1, 1, false, false },    { towards_target, 0, 2, 1, false, false },
    { towards_target, 0, 2, 2, false, false }, { both_ways, 0, 1, 1, false, false },
    { always_with, 0, 1, 1, true, false },     { frozen_base, 0, 1, 1, false, true },
    { both_ways, 0, 1, 1, false, true },
  };

  (void)state;
  for (size_t k = 0; k < sizeof plans / sizeof *plans; k++)
    for (int verify = 0; verify < 2; verify++)
      {
        WithoutPlan plan = plans[k];

        plan.verify = verify;
        run_doing (verify ? "verified part" : "part", (int)k);
        run_both (without, &plan);
      }
}

/* --- a parameter that comes two ways --- */

static void
through_link (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in;
  (void)n_out;
  out[0] = td_matmul (td_link (self, in[0]), in[1], false, false);
}

static void
linked_and_passed (void *user)
{
  const char *order = user;
  TdLink *l = td_linear_new (NULL, "l", 4, 4), *m = td_linear_new (NULL, "m", 4, 4);
  TdStatic *s = td_static_new (through_link, l, .batch = false);
  TdVar *mine = td_retain (td_variable (some (TD_SHAPE (4, 4), 7), "mine"));

  fill_params (l, 5);
  fill_params (m, 6);
  for (unsigned i = 0; order[i] != '\0'; i++)
    TD_SCOPE ("iteration")
      {
        TdVar *fresh = td_variable (some (TD_SHAPE (4, 4), 30 + i), "fresh");
        TdVar *W = order[i] == 'l'   ? td_link_param (l, "W")
                   : order[i] == 'm' ? td_link_param (m, "W")
                   : order[i] == 'u' ? mine
                                     : fresh;
        TdVar *in[] = { td_variable (some (TD_SHAPE (4, 4), i), "x"), W }, *y;

        assert_int_equal (td_static_call (s, in, 2, &y, 1), TD_OK);
        note (y);
        td_cleargrads (l);
        td_cleargrads (m);
        td_cleargrad (mine);
        td_backward (sum_of_squares (y), 0);
        note (td_grad (W));
        note (td_grad (mine));
        note_link (l);
        note_link (m);
      }
  td_static_free (s);
  td_release (mine);
  td_link_free (l);
  td_link_free (m);
}

static void
truth__a_parameter_may_be_passed_and_used (void **state)
{
  static const char *const orders[]
      = { "lllll",    "llmmll",   "mmllmm",    "ffllff",  "ulululul",
          "mlmlmlml", "uuffuull", "umlumluml", "fmfmlflf" };

  (void)state;
  for (size_t k = 0; k < sizeof orders / sizeof *orders; k++)
    {
      run_doing (orders[k], (int)k);
      run_both (linked_and_passed, (void *)(uintptr_t)orders[k]);
    }
}

static void
one_layer (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in;
  (void)n_out;
  out[0] = td_tanh (td_link (self, in[0]));
}

/* Batches that the program keeps, in turn. */
static void
kept_batches (void *user)
{
  TdLink *l = td_linear_new (NULL, "l", 4, 4);
  TdStatic *s = td_static_new (one_layer, l, .batch = false);
  TdVar *x[3];

  (void)user;
  fill_params (l, 5);
  for (unsigned k = 0; k < 3; k++)
    TD_SCOPE ("batch")
      x[k] = td_retain (some (TD_SHAPE (3, 4), k));
  for (unsigned i = 0; i < 12; i++)
    TD_ITERATION (i)
      {
        TdVar *y = td_static_call1 (s, x[i % 3]);

        note (y);
        td_cleargrads (l);
        td_backward (sum_of_squares (y), 0);
        note_link (l);
      }
  if (is_static_run ())
    assert_int_equal (td_static_info (s).n_replays, 10);
  td_static_free (s);
  for (unsigned k = 0; k < 3; k++)
    td_release (x[k]);
  td_link_free (l);
}

static void
truth__arguments_that_the_program_keeps_are_replayed (void **state)
{
  (void)state;
  run_both (kept_batches, NULL);
}

/* --- memory that the code changes itself --- */

typedef struct
{
  float factor, scratch;
  int32_t n;
} Self;

/* What it leaves for its next call is a factor of that. */
static void
leaves_a_factor (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Self *mine = self;

  (void)n_in;
  (void)n_out;
  out[0] = td_mul_scalar (in[0], (double)mine->factor);
  mine->factor = mine->factor < 3 ? mine->factor + 1 : 3; /* then it stays */
}

static void
leaves_a_scratch (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Self *mine = self;

  (void)n_in;
  (void)n_out;
  mine->scratch = 7;
  out[0] = td_mul_scalar (in[0], (double)mine->scratch);
}

static void
changes_itself (void *user)
{
  const bool scratch = *(const bool *)user;
  Self mine = { 1, 0, 0 };
  TdStatic *s = td_static_new (scratch ? leaves_a_scratch : leaves_a_factor, &mine,
                               .self_bytes = sizeof mine);

  for (unsigned i = 0; i < 10; i++)
    TD_SCOPE ("call")
      note (td_static_call1 (s, some (TD_SHAPE (3), i)));
  if (is_static_run ())
    assert_int_equal (td_static_info (s).n_replays, scratch ? 8 : 7);
  td_static_free (s);
}

static void
truth__memory_is_guarded_as_it_was_when_the_code_began (void **state)
{
  (void)state;
  for (int scratch = 0; scratch < 2; scratch++)
    run_both (changes_itself, &(bool){ scratch });
}

/* What it leaves comes again, so that the bytes of an earlier trace are found again. */
static void
leaves_in_turn (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Self *mine = self;

  (void)n_in;
  (void)n_out;
  out[0] = td_mul_scalar (in[0], (double)mine->n);
  mine->n = 1 - mine->n;
}

static void
drop_scratch (void *user)
{
  ((Self *)user)->scratch = 0;
}

/* What it sets is gone when the call ends, but an effect has read it. */
static void
leaves_nothing (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Self *mine = self;

  (void)n_in;
  (void)n_out;
  mine->scratch = 7;
  td_static_code (drop_scratch, mine);
  out[0] = td_tanh (in[0]);
}

static void
changes_in_turn (void *user)
{
  const TdStaticFn fn = *(const TdStaticFn *)user;
  Self mine = { 1, 0, 1 };
  TdStatic *s
      = td_static_new (fn, &mine, .self_bytes = sizeof mine, .minimize_cache_size = false);

  td__engine.static_verify = 0;
  for (unsigned i = 0; i < 100; i++)
    TD_SCOPE ("call")
      {
        note (td_static_call1 (s, some (TD_SHAPE (3), i)));
        note_number (mine.n);
      }
  if (is_static_run ())
    {
      assert_int_equal (td_static_info (s).n_replays, 0);
      expect_miss (s, "host memory: memory of self changed at byte ",
                   "by the code itself: td_static_code does that in a replay", NULL);
    }
  td_static_free (s);
}

static void
truth__code_that_changes_its_memory_is_never_replayed (void **state)
{
  const TdStaticFn fns[] = { leaves_in_turn, leaves_nothing };

  (void)state;
  for (size_t k = 0; k < sizeof fns / sizeof *fns; k++)
    run_both (changes_in_turn, (void *)(uintptr_t)&fns[k]);
}

/* --- what no guard sees --- */

static double secret;
static int n_code;

static void
secretive (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  n_code++;
  out[0] = td_mul_scalar (td_tanh (in[0]), secret);
}

/* By itself: as where nothing says otherwise. */
static void
by_itself (void)
{
  td__engine.static_verify = 0;
}

static void
changes_at_every_call (void *user)
{
  TdStatic *s = td_static_new (secretive, NULL);

  (void)user;
  by_itself ();
  for (unsigned i = 0; i < 40; i++)
    TD_SCOPE ("call")
      {
        TdVar *x = td_variable (some (TD_SHAPE (3), i), "x"), *y;

        secret = 1 + i;
        y = td_static_call1 (s, x);
        note (y);
        td_backward (td_sum (y), 0);
        note (td_grad (x));
        if (is_static_run () && i == 1)
          {
            assert_int_equal (td_static_info (s).n_differences, 1);
            expect_miss (s, "verify: ", "is 2 now, 1 before",
                         "mul_scalar at test-static-truth.c:", NULL);
          }
      }
  if (is_static_run ())
    assert_int_equal (td_static_info (s).n_replays, 0);
  td_static_free (s);
}

static void
truth__a_factor_that_changes_is_right_from_the_second_call_on (void **state)
{
  (void)state;
  run_both (changes_at_every_call, NULL);
}

static void
truth__it_verifies_itself_with_doubling_gaps (void **state)
{
  TdStatic *s = td_static_new (secretive, NULL),
           *never = td_static_new (secretive, NULL, .verify = 0);
  int before, last = 1;

  (void)state;
  by_itself ();
  secret = 2;
  n_code = 0;
  for (int call = 1; call <= 70; call++)
    TD_SCOPE ("call")
      {
        before = n_code;
        td_static_call1 (s, some (TD_SHAPE (3), 1));
        if (call > 1 && n_code > before)
          {
            assert_int_equal (call, last == 1 ? 2 : 2 * last - 1);
            last = call;
          }
      }
  assert_int_equal (last, 65);
  assert_int_equal (n_code, 8);
  assert_int_equal (td_static_info (s).n_verified, 7);
  assert_int_equal (td_static_info (s).n_replays, 69);
  assert_int_equal (td_static_info (s).n_dynamic, 1); /* each call counts once */
  n_code = 0;
  for (int call = 1; call <= 40; call++)
    td_static_call1 (never, some (TD_SHAPE (3), 1));
  assert_int_equal (n_code, 1);
  td_static_free (s);
  td_static_free (never);
}

/* A difference, and the same code again. */
static void
truth__after_a_difference_the_code_runs_until_it_stays_the_same (void **state)
{
  TdStatic *s = td_static_new (secretive, NULL);

  (void)state;
  by_itself ();
  secret = 2;
  for (int call = 1; call <= 12; call++)
    TD_SCOPE ("call")
      {
        TdVar *x = td_ones (TD_F32, TD_SHAPE (1)), *y;

        if (call == 5)
          secret = 3;
        y = td_static_call1 (s, x);
        assert_float_equal (td_item (y), secret * tanh (1), 1e-6);
        if (call >= 5 && call <= 9)
          assert_int_equal (td_static_info (s).n_replays, 3);
      }
  assert_int_equal (td_static_info (s).n_differences, 1);
  assert_int_equal (td_static_info (s).n_replays, 6);
  assert_int_equal (td_static_info (s).n_dynamic, 6);
  td_static_free (s);
}

/* --- side effects, strict, errors --- */

static void
report_secret (void *user)
{
  (void)user;
  td_report ("secret", secret);
}

static void
reporting (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  td_static_code (report_secret, NULL);
  out[0] = td_tanh (in[0]);
}

static void
truth__code_that_reports_another_value_is_no_difference (void **state)
{
  TdStatic *s = td_static_new (reporting, NULL, .verify = 1);
  TdObservation *seen = td_observation_new ();

  (void)state;
  for (int call = 1; call <= 5; call++)
    {
      secret = call;
      TD_REPORT_SCOPE (seen)
        td_static_call1 (s, some (TD_SHAPE (3), 1));
      assert_float_equal (td_observation_get (seen, "secret").last, call, 0);
      assert_int_equal (td_observation_get (seen, "secret").n, call);
    }
  assert_int_equal (td_static_info (s).n_differences, 0);
  assert_int_equal (td_static_info (s).n_replays, 4);
  td_observation_free (seen);
  td_static_free (s);
}

static void
calls_inner (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in;
  (void)n_out;
  out[0] = td_static_call1 (*(TdStatic **)self, in[0]);
}

static void
truth__strict_counts_for_what_is_inside (void **state)
{
  TdStatic *inner = td_static_new (reporting, NULL);
  TdStatic *outer = td_static_new (calls_inner, &inner, .strict = true);

  (void)state;
  assert_true (td_poisoned (td_static_call1 (outer, some (TD_SHAPE (3), 1))));
  assert_non_null (strstr (said (TD_ERR_STATE), "inside"));
  td_static_free (outer);
  td_static_free (inner);
}

static void
fails_unused (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self;
  (void)n_in;
  (void)n_out;
  td_matmul (in[0], in[0], false, false);
  out[0] = td_tanh (in[0]);
}

/* An error of before the call, of a traced function and of one that is traced then. */
static void
truth__an_error_of_before_is_none_of_the_function (void **state)
{
  (void)state;
  for (int n_before = 0; n_before < 4; n_before++)
    {
      TdLink *l = td_linear_new (NULL, "l", 4, 4);
      TdStatic *s = td_static_new (one_layer, l, .verify = 1);

      fill_params (l, 5);
      for (int i = 0; i < 8; i++)
        TD_SCOPE ("iteration")
          {
            TdVar *x = td_variable (some (TD_SHAPE (4, 4), (unsigned)i), "x"), *y;

            if (i == n_before)
              td_add (td_ones (TD_F32, TD_SHAPE (2)), td_ones (TD_F32, TD_SHAPE (3)));
            td_static_call (s, &x, 1, &y, 1);
            assert_int_equal (td_error () != NULL, i == n_before);
            td_error_clear ();
          }
      assert_int_equal (td_static_info (s).n_differences, 0);
      assert_true (td_static_info (s).n_replays >= 5);
      td_static_free (s);
      td_link_free (l);
    }
}

static void
truth__a_failing_operation_fails_in_every_call (void **state)
{
  TdStatic *s = td_static_new (fails_unused, NULL);

  (void)state;
  for (int call = 0; call < 4; call++)
    {
      assert_false (td_poisoned (td_static_call1 (s, some (TD_SHAPE (3, 2), 1))));
      assert_non_null (strstr (said (TD_ERR_SHAPE), "matmul"));
    }
  td_static_free (s);
}

/* --- traces that lead to nothing --- */

static void
truth__a_function_that_is_never_replayed_is_seldom_traced (void **state)
{
  TdStatic *s = td_static_new (secretive, NULL);

  (void)state;
  for (int64_t n = 1; n <= 200; n++)
    TD_SCOPE ("call")
      td_static_call1 (s, some (TD_SHAPE (n), 1));
  assert_true (td_static_info (s).n_traces <= 16);
  assert_int_equal (td_static_info (s).n_dynamic, 200);
  td_static_free (s);
}

/* --- gradients that are kept --- */

static void
result_of_a_result (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const int *order = self;
  TdVar *h = td_tanh (in[0]);

  (void)n_in;
  (void)n_out;
  out[*order] = h;
  out[1 - *order] = td_mul (h, h);
}

static void
keep_gradients (int order, bool is_static, float kept[4][2][3])
{
  TdStatic *s = td_static_new (result_of_a_result, &order);

  td_config_set (use_static_graph, is_static);
  TD_ITERATIONS (i, 4)
    {
      float numbers[3] = { 0.1f * (float)(i + 1), 0.2f, -0.3f };
      TdVar *x = td_variable (td_tensor (TD_F32, TD_SHAPE (3), numbers), "x"), *out[2];

      assert_int_equal (td_static_call (s, &x, 1, out, 2), TD_OK);
      assert_int_equal (
          td_backward (td_sum (td_add (td_mul_scalar (out[0], 3), td_mul_scalar (out[1], 5))),
                       TD_RETAIN_GRADS),
          TD_OK);
      for (int k = 0; k < 2; k++)
        assert_int_equal (td_read (td_grad (out[k]), kept[i][k], sizeof kept[i][k]), TD_OK);
    }
  if (is_static)
    assert_int_equal (td_static_info (s).n_replays, 3);
  td_static_free (s);
  td_config_set (use_static_graph, true);
}

static void
truth__kept_gradients_of_results_have_all_that_comes (void **state)
{
  (void)state;
  for (int order = 0; order < 2; order++)
    {
      float code[4][2][3], replayed[4][2][3];

      keep_gradients (order, false, code);
      keep_gradients (order, true, replayed);
      assert_memory_equal (code, replayed, sizeof code);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (truth__parts_without_backprop_get_no_gradient),
    engine_test (truth__a_parameter_may_be_passed_and_used),
    engine_test (truth__arguments_that_the_program_keeps_are_replayed),
    engine_test (truth__memory_is_guarded_as_it_was_when_the_code_began),
    engine_test (truth__code_that_changes_its_memory_is_never_replayed),
    engine_test (truth__a_factor_that_changes_is_right_from_the_second_call_on),
    engine_test (truth__it_verifies_itself_with_doubling_gaps),
    engine_test (truth__after_a_difference_the_code_runs_until_it_stays_the_same),
    engine_test (truth__code_that_reports_another_value_is_no_difference),
    engine_test (truth__strict_counts_for_what_is_inside),
    engine_test (truth__an_error_of_before_is_none_of_the_function),
    engine_test (truth__a_failing_operation_fails_in_every_call),
    engine_test (truth__a_function_that_is_never_replayed_is_seldom_traced),
    engine_test (truth__kept_gradients_of_results_have_all_that_comes),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
