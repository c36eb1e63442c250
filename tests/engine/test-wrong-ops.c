/* Operations of a program's own that do what they may not: an error that names them, their line
 * and what was expected, and nothing wrong is handed out.
 *
 * SPDX-License-Identifier: MIT */
#include <tapedeck-op.h>
#include "wrong-child.h"

#include <stdio.h>

/* --- backward of a program's own operation --- */

static TdStatus
twice_infer (TdOpCall *call)
{
  return td_op_out (call, 0, call->in[0].dtype, call->in[0].shape);
}

static TdStatus
twice_forward (TdOpCall *call)
{
  for (int64_t i = 0; i < call->in[0].size; i++)
    ((float *)call->out[0].data)[i] = 2 * ((const float *)call->in[0].data)[i];
  return TD_OK;
}

static TdStatus
wrong_shape (TdBackward *b)
{
  b->gx[0] = td_sum (b->gy[0]);
  return TD_OK;
}

static TdStatus
wrong_dtype (TdBackward *b)
{
  b->gx[0] = td_cast (b->gy[0], TD_F64);
  return TD_OK;
}

static TdStatus
wrong_count (TdBackward *b)
{
  b->gx[0] = b->gx[1] = b->gy[0];
  return TD_OK;
}

/* Into every place that a backward could take for one. */
static TdStatus
far_too_many (TdBackward *b)
{
  for (int i = 0; i < 3; i++)
    b->gx[b->n_in + i] = b->gy[0];
  return TD_OK;
}

static TdVar *old; /* of a scope that has ended */

static TdStatus
dead_gradient (TdBackward *b)
{
  b->gx[0] = old;
  return TD_OK;
}

static TdStatus
far_input (TdBackward *b)
{
  b->gx[0] = td_mul (b->gy[0], td_backward_input (b, 5));
  return TD_OK;
}

static TdStatus
far_shape (TdBackward *b)
{
  b->gx[0] = td_sum_to (b->gy[0], *td_backward_in_shape (b, -1));
  return TD_OK;
}

static TdStatus
only_an_error (TdBackward *b)
{
  (void)b;
  return TD_ERR_NUMERIC;
}

/* The product goes into the gradient that is there, and what is given is another. */
static TdStatus
added_and_negated (TdBackward *b)
{
  td_backward_into (b, 0);
  b->gx[0] = td_neg (td_mul (b->gy[0], b->gy[0]));
  return TD_OK;
}

static const struct
{
  TdStatus (*backward) (TdBackward *b);
  TdStatus status;
  const char *said;
} wrong[] = {
  { wrong_shape, TD_ERR_SHAPE, "backward gives v a gradient () f32, (2, 3) f32 expected" },
  { wrong_dtype, TD_ERR_DTYPE, "backward gives v a gradient (2, 3) f64, (2, 3) f32 expected" },
  { wrong_count, TD_ERR_ARG, "backward gives more than 1 gradient, one for each input" },
  { far_too_many, TD_ERR_ARG, "backward gives more than 1 gradient, one for each input" },
  { dead_gradient, TD_ERR_STATE, "backward gives v a gradient that is no more, of " },
  { far_input, TD_ERR_ARG, "backward asks for input 5 of 1" },
  { far_shape, TD_ERR_ARG, "backward asks for input -1 of 1" },
  { only_an_error, TD_ERR_NUMERIC, "backward returned an error: numeric" },
  { added_and_negated, TD_ERR_STATE,
    "backward adds to the gradient of v that is there, and then gives another" },
  { NULL, TD_ERR_STATE, "its class has no backward, and a gradient arrived" },
};

static int
run_wrong_backward (int which)
{
  static const char *const names[] = { "v" };
  const TdOpClass cls = { .name = "twice",
                          .n_in_min = 1,
                          .n_in_max = 1,
                          .n_out = 1,
                          .flags = TD_OP_HOST,
                          .in_names = names,
                          .infer = twice_infer,
                          .forward = twice_forward,
                          .backward = wrong[which].backward };
  TdVar *x, *y;
  TdStatus status;

  td_init (NULL, NULL);
  TD_SCOPE ("gone")
    old = td_ones (TD_F32, TD_SHAPE (2, 3));
  x = td_variable (td_ones (TD_F32, TD_SHAPE (2, 3)), "x");
  td_apply (&cls, NULL, &x, 1, &y, 1);
  status = td_backward (td_sum (td_add (td_square (y), td_mul (x, x))), 0);
  if (status != wrong[which].status || td_grad (x) != NULL)
    fprintf (stderr, "status %d, gradient %p\n", (int)status, (void *)td_grad (x));
  return td_finish ();
}

static void
backward__refuses_what_an_operation_of_ones_own_returns_wrong (void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    {
      const TdChild c = td_child_of (run_wrong_backward, (int)i);

      assert_int_equal (c.status, 1);
      assert_contains (c.said, "twice: ");
      assert_contains (c.said, wrong[i].said);
      assert_contains (c.said, "test-wrong-ops.c:");
      assert_int_equal (td_count_of (c.said, "\n"), 1);
    }
}

/* Behind the gradients of many inputs as well. */
static int
run_many_inputs (int n)
{
  const TdOpClass cls = { .name = "many",
                          .n_in_min = n,
                          .n_in_max = n,
                          .n_out = 1,
                          .flags = TD_OP_HOST,
                          .infer = twice_infer,
                          .forward = twice_forward,
                          .backward = far_too_many };
  TdVar *x[20], *y;

  td_init (NULL, NULL);
  for (int i = 0; i < n; i++)
    x[i] = td_variable (td_ones (TD_F32, TD_SHAPE (2)), NULL);
  td_apply (&cls, NULL, x, n, &y, 1);
  if (td_backward (td_sum (y), 0) != TD_ERR_ARG)
    fprintf (stderr, "not refused\n");
  return td_finish ();
}

static void
backward__guards_what_lies_behind_the_gradients (void **state)
{
  (void)state;
  for (int n = 7; n <= 20; n++)
    {
      const TdChild c = td_child_of (run_many_inputs, n);

      assert_int_equal (c.status, 1);
      assert_contains (c.said, "one for each input expected");
      assert_int_equal (td_count_of (c.said, "\n"), 1);
    }
}

static TdStatus
infer_nothing (TdOpCall *call)
{
  (void)call;
  return TD_OK;
}

static TdStatus
infer_another (TdOpCall *call)
{
  return td_op_out (call, 1, TD_F32, call->in[0].shape);
}

static TdStatus
infer_without_a_word (TdOpCall *call)
{
  (void)call;
  return TD_ERR_SHAPE;
}

static TdStatus
infer_no_dtype (TdOpCall *call)
{
  return td_op_out (call, 0, (TdDtype)77, call->in[0].shape);
}

static TdStatus
infer_nine_axes (TdOpCall *call)
{
  static const TdShape nine = { .ndim = 9, .dim = { 1, 1, 1, 1, 1, 1, 1, 1 } };

  return td_op_out (call, 0, TD_F32, &nine);
}

static const struct
{
  const char *name;
  TdStatus (*infer) (TdOpCall *call);
  TdStatus (*forward) (TdOpCall *call);
  const char *said;
} unfinished[] = {
  { "mine", NULL, twice_forward,
    "mine: the class of an operation cannot be called: it has no "
    "infer" },
  { "mine", twice_infer, NULL, "it has no forward" },
  { NULL, twice_infer, twice_forward,
    "td_apply: the class of an operation cannot be called: it "
    "has no name" },
  { "mine", infer_nothing, twice_forward, "infer says nothing of an output" },
  { "mine", infer_another, twice_forward, "td_op_out of output 1" },
  { "mine", infer_without_a_word, twice_forward, "mine: infer refuses its inputs (shape)" },
  { "mine", infer_no_dtype, twice_forward, "td_op_out of output 0: there is no dtype 77" },
  { "mine", infer_nine_axes, twice_forward, "a result of 9 axes is no size" },
};

static int
run_unfinished (int which)
{
  const TdOpClass cls = { .name = unfinished[which].name,
                          .n_in_min = 1,
                          .n_in_max = 1,
                          .n_out = 1,
                          .infer = unfinished[which].infer,
                          .forward = unfinished[which].forward };
  TdVar *x, *y;

  td_init (NULL, NULL);
  x = td_ones (TD_F32, TD_SHAPE (2));
  if (td_apply (&cls, NULL, &x, 1, &y, 1) == TD_OK || !td_poisoned (y))
    fprintf (stderr, "not refused\n");
  return td_finish ();
}

static void
apply__refuses_a_class_that_is_not_whole (void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof unfinished / sizeof *unfinished; i++)
    {
      const TdChild c = td_child_of (run_unfinished, (int)i);

      assert_int_equal (c.status, 1);
      assert_contains (c.said, unfinished[i].said);
      assert_int_equal (td_count_of (c.said, "\n"), 1);
    }
}

/* --- the same root twice --- */

static int
run_root_twice (int which)
{
  TdVar *x, *y[2];

  (void)which;
  td_init (NULL, NULL);
  x = td_variable (td_ones (TD_F32, TD_SHAPE (3)), "x");
  y[0] = y[1] = td_sum (x);
  if (td_backward_all (y, 2, NULL, 0) != TD_ERR_ARG || td_grad (x) != NULL)
    fprintf (stderr, "not refused\n");
  return td_finish ();
}

static void
backward_all__refuses_a_root_given_twice (void **state)
{
  const TdChild c = td_child_of (run_root_twice, 0);

  (void)state;
  assert_int_equal (c.status, 1);
  assert_contains (c.said,
                   "td_backward_all: each root once expected, roots 0 and 1 are the same");
  assert_int_equal (td_count_of (c.said, "\n"), 1);
}

static int
run_unknown_flags (int way)
{
  TdVar *x, *y, *g = NULL;
  TdStatus status;

  td_init (NULL, NULL);
  x = td_variable (td_ones (TD_F32, TD_SHAPE (3)), "x");
  y = td_sum (x);
  status = way == 0   ? td_backward (y, 5)
           : way == 1 ? td_backward_all (&y, 1, NULL, 5)
                      : td_grad_of (&y, 1, &x, 1, NULL, 5, &g);
  if (status != TD_ERR_ARG || td_grad (x) != NULL)
    fprintf (stderr, "not refused\n");
  return td_finish ();
}

static void
backward__refuses_flags_that_there_are_not (void **state)
{
  (void)state;
  for (int way = 0; way < 3; way++)
    {
      const TdChild c = td_child_of (run_unknown_flags, way);

      assert_int_equal (c.status, 1);
      assert_contains (c.said, "TD_RETAIN_GRADS (2), both or 0 expected, got 5");
      assert_int_equal (td_count_of (c.said, "\n"), 1);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (backward__refuses_what_an_operation_of_ones_own_returns_wrong),
    td_test (backward__guards_what_lies_behind_the_gradients),
    td_test (apply__refuses_a_class_that_is_not_whole),
    td_test (backward_all__refuses_a_root_given_twice),
    td_test (backward__refuses_flags_that_there_are_not),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
