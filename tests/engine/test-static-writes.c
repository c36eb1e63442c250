/* Arrays that are written between the forward of a static function and its backward: as code.
 *
 * SPDX-License-Identifier: MIT */
#include "remember-op.h"
#include "static-rig.h"

#include "compute/core/core.h"

#include <stdio.h>
#include <string.h>

static void
keeping (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *y = td_link (self, in[0]);

  (void)n_in;
  (void)n_out;
  out[0] = td_exp (y);
  out[1] = td_add (y, in[0]);
}

static char messages[2][1024]; /* of the code, of a replay */

static void
written (void *user)
{
  const int *what = user;
  TdLink *l = td_linear_new (NULL, "l", 4, 4);
  TdStatic *s = td_static_new (keeping, l, .batch = false);
  static const float zeros[16] = { 0 };

  fill_params (l, 5);
  for (unsigned i = 0; i < 4; i++)
    TD_SCOPE ("iteration")
      {
        TdVar *x = td_variable (some (TD_SHAPE (4, 4), i), "x"), *y[2], *loss;
        TdVar *goals[] = { NULL, NULL, x, td_link_param (l, "W") };
        TdStatus status;

        assert_int_equal (td_static_call (s, &x, 1, y, 2), TD_OK);
        goals[0] = y[0];
        goals[1] = y[1];
        loss = td_add (td_sum (y[0]), td_sum (y[1]));
        assert_int_equal (td_write (goals[*what], zeros, sizeof zeros), TD_OK);
        td_cleargrads (l);
        status = td_backward (loss, 0);
        note_number (status);
        if (status == TD_OK)
          note (td_grad (x));
        assert_int_equal (status, *what == 1 ? TD_OK : TD_ERR_STATE);
        if (status != TD_OK)
          snprintf (messages[is_static_run ()], sizeof messages[0], "%s", td_error ()->message);
        td_error_clear ();
      }
  td_static_free (s);
  td_link_free (l);
}

static void
writes__to_what_backward_reads_are_errors (void **state)
{
  (void)state;
  for (int what = 0; what < 4; what++)
    {
      run_doing ("written", what);
      run_both (written, &what);
      assert_string_equal (messages[1], messages[0]); /* which operation, and both lines */
    }
}

/* Else code would be compared with code. */
static void
assert_replayed (const TdStatic *s)
{
  if (is_static_run ())
    assert_true (td_static_info (s).n_replays > 1);
}

static TdVar *side; /* what the code multiplies by, for a result that nobody uses */

static void
leading_nowhere (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in;
  (void)n_out;
  td_matmul (td_tanh (in[0]), side, false, false);
  out[0] = td_exp (td_link (self, in[0]));
  out[1] = td_tanh (out[0]);
}

static void
written_beside (void *user)
{
  TdLink *l = td_linear_new (NULL, "l", 4, 4);
  TdStatic *s = td_static_new (leading_nowhere, l, .batch = false);
  static const float zeros[16] = { 0 };

  (void)user;
  fill_params (l, 5);
  side = td_retain (td_variable (some (TD_SHAPE (4, 4), 9), "side"));
  for (unsigned i = 0; i < 4; i++)
    TD_SCOPE ("iteration")
      {
        TdVar *x = td_variable (some (TD_SHAPE (4, 4), i), "x"), *y[2];

        assert_int_equal (td_static_call (s, &x, 1, y, 2), TD_OK);
        assert_int_equal (td_write (side, zeros, sizeof zeros), TD_OK);
        td_cleargrads (l);
        /* of another result than in the trace: the forward runs again for it */
        assert_int_equal (td_backward (td_sum (y[i > 1]), 0), TD_OK);
        note (td_grad (x));
        note_link (l);
      }
  assert_replayed (s);
  td_static_free (s);
  td_release (side);
  td_link_free (l);
}

static void
writes__to_what_leads_nowhere_are_fine (void **state)
{
  (void)state;
  run_both (written_beside, NULL);
}

/* --- what the function changes itself --- */

static TdVar *memory;

/* Of the memory before, by a copy or itself, of what comes of it, and of the memory after. */
static void
remembering (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  const int what = *(const int *)self;
  TdVar *before = what == 0 ? td_copy (memory) : memory, *now;
  TdVar *y = what < 2 ? td_mul (in[0], before) : in[0];

  (void)n_in;
  (void)n_out;
  td_apply (&remember_class, NULL, (TdVar *[]){ memory, td_tanh (in[0]) }, 2, &now, 1);
  out[0] = td_mul (td_add (y, td_mul (td_tanh (in[0]), memory)), td_sigmoid (in[0]));
  out[1] = td_mul (y, now);
}

/* Twice backward: the second makes the graph once more. */
static void
remembered (void *user)
{
  int what = *(const int *)user % 3;
  const bool meddles = *(const int *)user > 2;
  TdStatic *s = td_static_new (remembering, &what, .batch = false);
  static const float numbers[4] = { 3, -2, 1, 0.5f };

  TD_SCOPE ("memory")
    memory = td_retain (some (TD_SHAPE (1, 4), 8));
  for (unsigned i = 0; i < 12; i++)
    TD_SCOPE ("iteration")
      {
        TdVar *x = td_variable (some (TD_SHAPE (1, 4), i), "x"), *y[2];

        assert_int_equal (td_static_call (s, &x, 1, y, 2), TD_OK);
        note (y[0]);
        note (y[1]);
        if (meddles && i > 3)
          assert_int_equal (td_write (memory, numbers, sizeof numbers), TD_OK);
        for (int times = 0; times < 2; times++)
          {
            const TdStatus status
                = td_backward (td_sum (td_add (y[0], y[1])), i % 4 == 2 ? TD_RETAIN_GRADS : 0);

            note_number (status);
            if (status == TD_OK)
              note (td_grad (x));
            if (status == TD_OK && i % 4 == 2)
              note (td_grad (y[0]));
            td_error_clear ();
          }
        note (memory);
      }
  assert_replayed (s);
  td_static_free (s);
  td_release (memory);
}

static void
writes__of_the_function_itself_are_those_of_its_code (void **state)
{
  (void)state;
  for (int what = 0; what < 6; what++)
    {
      run_doing ("remembered", what);
      run_both (remembered, &what);
    }
}

/* Only the second argument's gradient reads the memory. */
static void
beside_memory (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  TdVar *now;

  (void)self;
  (void)n_in;
  (void)n_out;
  td_apply (&remember_class, NULL, (TdVar *[]){ memory, td_tanh (in[1]) }, 2, &now, 1);
  out[0] = td_exp (in[0]);
  out[1] = td_add (td_mul (in[1], memory), now);
}

/* A gradient of one argument, through a graph that is made once more, after some iterations
 * whose backward reads all. */
static void
asked_for (void *user)
{
  const int which = *(const int *)user;
  TdStatic *s
      = td_static_new (beside_memory, NULL, .batch = false, .enable_double_backprop = true);
  static const float numbers[4] = { 3, -2, 1, 0.5f };

  TD_SCOPE ("memory")
    memory = td_retain (some (TD_SHAPE (1, 4), 8));
  for (unsigned i = 0; i < 6; i++)
    TD_SCOPE ("iteration")
      {
        TdVar *x[2] = { td_variable (some (TD_SHAPE (1, 4), i), "x"),
                        td_variable (some (TD_SHAPE (1, 4), i + 20), "y") };
        TdVar *y[2], *loss, *g = NULL;
        TdStatus status;

        assert_int_equal (td_static_call (s, x, 2, y, 2), TD_OK);
        loss = td_add (td_sum (y[0]), td_sum (y[1]));
        if (i < 3)
          {
            assert_int_equal (td_backward (loss, 0), TD_OK);
            continue;
          }
        assert_int_equal (td_write (memory, numbers, sizeof numbers), TD_OK);
        status = td_grad_of (&loss, 1, &x[which], 1, NULL, TD_DOUBLE_BACKPROP, &g);
        assert_int_equal (status, which == 0 ? TD_OK : TD_ERR_STATE);
        if (status == TD_OK)
          note (g);
        td_error_clear ();
      }
  assert_replayed (s);
  td_static_free (s);
  td_release (memory);
}

static void
writes__to_what_an_asked_for_gradient_does_not_read_are_fine (void **state)
{
  (void)state;
  for (int which = 0; which < 2; which++)
    {
      run_doing ("asked for", which);
      run_both (asked_for, &which);
    }
}

/* --- a backward that no call before had --- */

typedef struct
{
  TdLink *online, *target;
} Two;

static void
difference (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  Two *two = self;
  TdVar *y = td_link (two->online, in[0]), *wanted = NULL;

  (void)n_in;
  (void)n_out;
  TD_NO_BACKPROP
    wanted = td_link (two->target, in[0]);
  out[0] = td_mean (td_square (td_sub (y, wanted)));
}

/* The first call has no backward; before that of the second the target is written, as a copied
 * net is.  It is an error then, which says what is missing, and none later. */
static void
writes__before_the_first_backward_are_an_error_once (void **state)
{
  Two two = { td_linear_new ((TdLink *)NULL, "online", 4, 3),
              td_linear_new ((TdLink *)NULL, "target", 4, 3) };
  TdStatic *s = td_static_new (difference, &two, .verify = 0);

  (void)state;
  fill_params (two.online, 1);
  fill_params (two.target, 2);
  for (unsigned i = 0; i < 5; i++)
    TD_SCOPE ("iteration")
      {
        TdVar *x = some (TD_SHAPE (2, 4), i), *loss = td_static_call1 (s, x);

        td_cleargrads (two.online);
        if (i == 0)
          continue;
        fill_params (two.target, i);
        assert_int_equal (td_backward (loss, 0) == TD_OK, i > 1);
        if (i > 1)
          {
            assert_non_null (td_grad (td_link_param (two.online, "W")));
            continue;
          }
        assert_non_null (strstr (td_error ()->message, "needs W as it was in the call"));
        assert_non_null (strstr (td_error ()->message, "test-static-writes.c"));
        td_error_clear ();
      }
  assert_int_equal (td_static_info (s).n_traces, 2);
  assert_true (td_static_info (s).n_replays >= 3);
}

/* --- several calls, of which none had a backward --- */

static void
of_a_layer (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)n_in;
  (void)n_out;
  out[0] = td_mean (td_square (td_link (self, in[0])));
}

typedef struct
{
  const char *calls; /* g: the argument wants a gradient, so that the code keeps W */
  int by;            /* what writes W */
  int verify;
} Several;

static void
write_W (TdLink *l, TdLink *other, TdOpt *opt, int by)
{
  static const float numbers[16] = { 3, -2, 1, 0.5f };

  if (by == 0)
    assert_int_equal (td_write (td_link_param (l, "W"), numbers, sizeof numbers), TD_OK);
  else if (by == 1)
    assert_int_equal (td_link_copy_params (l, other), TD_OK);
  else
    TD_SCOPE ("update")
      {
        TdVar *x = some (TD_SHAPE (2, 4), 9);

        assert_int_equal (td_backward (td_sum (td_link (l, x)), 0), TD_OK);
        assert_int_equal (td_opt_update (opt), TD_OK);
      }
}

/* Twice: the second time there is a backward to replay. */
static void
several (void *user)
{
  const Several *what = user;
  TdLink *l = td_linear_new (NULL, "l", 4, 4), *other = td_linear_new (NULL, "other", 4, 4);
  TdStatic *s = td_static_new (of_a_layer, l, .batch = false, .verify = what->verify);
  TdOpt *opt = td_sgd_new (l, .lr = 0.1);
  TdVar *y[8];
  unsigned n = 0;

  fill_params (l, 5);
  fill_params (other, 6);
  for (unsigned times = 0; times < 2; times++)
    {
      for (n = 0; what->calls[n] != '\0'; n++)
        TD_ITERATION (n)
          {
            TdVar *x = some (TD_SHAPE (2, 4), n);

            if (what->calls[n] == 'g')
              td_variable (x, "x");
            assert_int_equal (td_static_call (s, &x, 1, &y[n], 1), TD_OK);
            td_retain (y[n]);
          }
      write_W (l, other, opt, what->by);
      while (n-- > 0)
        {
          td_cleargrads (l);
          note_number (td_backward (y[n], 0));
          if (td_error () == NULL)
            note_link (l);
          td_error_clear ();
          td_release (y[n]);
        }
    }
  assert_replayed (s);
  td_static_free (s);
  td_opt_free (opt);
  td_link_free (l);
  td_link_free (other);
}

static void
writes__to_what_the_first_backward_does_not_read_are_fine (void **state)
{
  static const char *const calls[] = { "nnn", "gnnn", "ggg" };
  Several what;

  (void)state;
  for (int k = 0; k < 27; k++)
    {
      what = (Several){ calls[k % 3], k / 3 % 3, k / 9 - 1 };
      run_doing (what.calls, what.by);
      run_both (several, &what);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    engine_test (writes__to_what_backward_reads_are_errors),
    engine_test (writes__to_what_leads_nowhere_are_fine),
    engine_test (writes__of_the_function_itself_are_those_of_its_code),
    engine_test (writes__to_what_an_asked_for_gradient_does_not_read_are_fine),
    engine_test (writes__before_the_first_backward_are_an_error_once),
    engine_test (writes__to_what_the_first_backward_does_not_read_are_fine),
  };

  return cmocka_run_group_tests_name ("static writes", tests, NULL, NULL);
}
