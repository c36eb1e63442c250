/* Verification of backward: an operation of the program's own may read in its backward what no
 * guard sees, while its forward stays the same.
 *
 * SPDX-License-Identifier: MIT */
#include "static-rig.h"

#include "compute/core/core.h"

#include <tapedeck-op.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What the operation's backward reads, and how it is hidden. */
static struct
{
  enum
  {
    AS_ATTRIBUTE,
    AS_NUMBERS, /* brought by the code */
    AS_FILL,
    AS_OPERATION,
    N_WAYS
  } way;
  double factor;
} hidden;

static TdStatus
through_infer (TdOpCall *call)
{
  return td_op_out (call, 0, call->in[0].dtype, call->in[0].shape);
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
  const float number = (float)hidden.factor;

  if (hidden.way == AS_ATTRIBUTE)
    b->gx[0] = td_mul_scalar (b->gy[0], hidden.factor);
  else if (hidden.way == AS_NUMBERS)
    b->gx[0] = td_mul (b->gy[0], td_tensor (TD_F32, TD_SHAPE (1), &number));
  else if (hidden.way == AS_FILL)
    b->gx[0] = td_mul (b->gy[0], td_full (TD_F32, TD_SHAPE (1), hidden.factor));
  else
    b->gx[0] = hidden.factor > 2 ? td_neg (b->gy[0]) : td_exp (b->gy[0]);
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

static int n_code;

static void
code (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *h = td_tanh (td_mul (in[0], self));

  (void)n_in;
  (void)n_out;
  n_code++;
  td_apply (&through_class, NULL, &h, 1, &out[0], 1);
  out[0] = td_mul (out[0], self); /* once more */
}

/* One call and its backward; notes what the program gets, if that is to be right. */
static void
call (TdStatic *s, TdVar *W, int i, bool noted)
{
  TdVar *x = td_variable (some (td_shape (W), (unsigned)i), "x"), *y;

  y = td_static_call1 (s, x);
  td_cleargrad (W);
  assert_int_equal (td_backward (td_sum (td_mul (y, y)), 0), TD_OK);
  if (!noted)
    return;
  note (y);
  note (td_grad (x));
  note (td_grad (W));
}

/* --- by itself --- */

typedef struct
{
  int at,
      again; /* the call that has another factor, and how many later each other one; 0: none */
  TdShape shape;
  int n_calls;
} Plan;

/* The first call from `at` on at which a function looks at its code. */
static int
looks_at (int at)
{
  int call = 2;

  while (call < at)
    call = 2 * call - 1;
  return call;
}

static void
by_itself (void *user)
{
  const Plan *plan = user;
  TdVar *W = td_retain (td_variable (some (plan->shape, 3), "W"));
  TdStatic *s = td_static_new (code, W);

  td__engine.static_verify = 0;
  hidden.factor = 2;
  for (int i = 1; i <= plan->n_calls; i++)
    TD_SCOPE ("call")
      {
        if (i == plan->at
            || (plan->again > 0 && i > plan->at && (i - plan->at) % plan->again == 0))
          hidden.factor = 5 - hidden.factor;
        call (s, W, i, i < plan->at || i >= looks_at (plan->at));
      }
  if (is_static_run ())
    assert_true (td_static_info (s).n_differences >= 1);
  if (is_static_run () && plan->again == 0)
    {
      assert_int_equal (td_static_info (s).n_differences, 1);
      assert_true (td_static_info (s).n_replays >= (uint64_t)(plan->n_calls - plan->at) / 2);
    }
  td_static_free (s);
  td_release (W);
}

static void
backward__is_looked_at_with_doubling_gaps (void **state)
{
  (void)state;
  skip_off_cpu (); /* an operation of the program's own, over host memory */
  for (hidden.way = 0; hidden.way < N_WAYS; hidden.way++)
    for (int at = 2; at <= 18; at++)
      {
        run_doing ("factor changes at call", at);
        run_both (by_itself, &(Plan){ at, 0, TD_SHAPE (3, 4), 60 });
      }
}

/* In doubt, too: else four calls whose forward is the same would end it. */
static void
backward__that_changes_now_and_then_stays_code (void **state)
{
  (void)state;
  skip_off_cpu ();
  for (hidden.way = 0; hidden.way < N_WAYS; hidden.way++)
    for (int again = 1; again <= 3; again++)
      {
        run_doing ("factor changes each", again);
        run_both (by_itself, &(Plan){ 9, again, TD_SHAPE (3, 4), 120 });
      }
}

/* Beyond 64 MB the code runs in place of the schedule, whose memory is not there twice. */
static void
backward__of_large_arrays_is_looked_at (void **state)
{
  (void)state;
  skip_off_cpu ();
  hidden.way = AS_ATTRIBUTE;
  run_both (by_itself, &(Plan){ 3, 0, TD_SHAPE (1, (64 << 20) / 4), 4 });
}

static void
only_tanh (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in;
  (void)n_out;
  n_code++;
  out[0] = td_tanh (td_mul (in[0], self));
}

/* A verified call runs the code once, also for its backward, and no more often than others. */
static void
backward__costs_no_further_calls (void **state)
{
  static const TdStaticFn functions[] = { code, only_tanh };

  (void)state;
  skip_off_cpu ();
  hidden.way = AS_ATTRIBUTE;
  hidden.factor = 2;
  td__engine.static_verify = 0;
  for (int k = 0; k < 2; k++)
    {
      TdVar *W = td_retain (td_variable (some (TD_SHAPE (3, 4), 3), "W"));
      TdStatic *s = td_static_new (functions[k], W);

      n_code = 0;
      for (int i = 1; i <= 70; i++)
        TD_SCOPE ("call")
          call (s, W, i, false);
      assert_int_equal (n_code, 8);
      assert_int_equal (td_static_info (s).n_verified, 7);
      assert_int_equal (td_static_info (s).n_replays, 69);
      assert_int_equal (td_static_info (s).n_differences, 0);
      td_static_free (s);
      td_release (W);
    }
}

/* --- what is said --- */

typedef struct
{
  int verify, at;
  int from; /* the call that has the other factor first; 0: `at` */
} Talk;

static void
talk (const Talk *t)
{
  TdVar *W = td_retain (td_variable (some (TD_SHAPE (3, 4), 3), "W"));
  TdStatic *s = td_static_new (code, W, .verify = t->verify, .name = "talker");

  td__engine.static_verify = 0;
  hidden.factor = 2;
  for (int i = 1; i <= t->at; i++)
    TD_ITERATION (i)
      {
        hidden.factor = i < (t->from > 0 ? t->from : t->at) ? 2 : 3;
        call (s, W, i, false);
      }
  td_static_free (s);
  td_release (W);
}

static const char *
heard (const Talk *t)
{
  static char text[4000];
  FILE *file = tmpfile ();
  int old = dup (2);
  size_t n;

  assert_non_null (file);
  fflush (stderr);
  dup2 (fileno (file), 2);
  talk (t);
  fflush (stderr);
  dup2 (old, 2);
  close (old);
  rewind (file);
  n = fread (text, 1, sizeof text - 1, file);
  text[n] = '\0';
  fclose (file);
  return text;
}

static void
backward__says_function_gradient_line_and_both_numbers (void **state)
{
  static const Talk talks[] = { { -1, 2 }, { -1, 9 }, { 1, 2 }, { 1, 6 }, { 3, 4 } };
  static const char *const words[]
      = { "tapedeck: static function talker: its code is not what it was: verify: ",
          " is 3 now, 2 before: mul_scalar at test-static-backward.c:",
          "; backward, ",
          " of its gradient is ",
          " by the code, ",
          " by the schedule" };

  (void)state;
  skip_off_cpu ();
  hidden.way = AS_ATTRIBUTE;
  for (size_t k = 0; k < sizeof talks / sizeof *talks; k++)
    {
      const char *text = heard (&talks[k]);

      for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        if (strstr (text, words[w]) == NULL)
          fail_msg ("talk %zu: \"%s\" expected: %s", k, words[w], text);
      if (strchr (text, '\n') != strrchr (text, '\n'))
        fail_msg ("talk %zu: one line expected: %s", k, text);
    }
}

/* Found at call 9, equal at call 5, whichever between them it was. */
static void
backward__says_since_when_replays_may_have_been_wrong (void **state)
{
  (void)state;
  skip_off_cpu ();
  hidden.way = AS_ATTRIBUTE;
  for (int from = 6; from < 9; from++)
    {
      const char *text = heard (&(Talk){ -1, 9, from });
      char words[120];

      snprintf (words, sizeof words, "last found equal in iteration %d: replays since then may",
                (int)td__engine.iteration - 4);
      assert_non_null (strstr (text, words));
    }
  assert_null (strstr (heard (&(Talk){ -1, 2, 2 }), "last found equal"));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (backward__is_looked_at_with_doubling_gaps),
    engine_test (backward__that_changes_now_and_then_stays_code),
    engine_test (backward__of_large_arrays_is_looked_at),
    engine_test (backward__costs_no_further_calls),
    engine_test (backward__says_function_gradient_line_and_both_numbers),
    engine_test (backward__says_since_when_replays_may_have_been_wrong),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
