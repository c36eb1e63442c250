/*
 * Expressions over recorded values: results against loops of their own, and mistakes in one
 * line with their place. Of the tape conv2's gradient of W, (16, 6, 5, 5), has values.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "gradient/td-evaluate.h"
#include "lenet-tape.h"
#include "td-test.h"

typedef struct
{
  TdTapeReader *reader;
  TdIteration *it;
  TdTensor *g; /* the gradient */
} Fixture;

static Fixture
open_lenet (void)
{
  LenetOptions o = LENET_DEFAULT;
  const char *path = td_test_tmp ("lenet.tdtape");
  char error[160];
  Fixture f;

  o.n_iterations = 1;
  lenet_tape_write (path, &o);
  f.reader = td_tape_reader_open (path, error, sizeof error);
  assert_non_null (f.reader);
  f.it = lenet_tape_load (f.reader, 0);
  f.g = td_tensor_new (f.reader, f.it, td_iteration_get_tape (f.it)->grads[2].gradient, -1);
  assert_int_equal (f.g->n_values, 2400);
  return f;
}

static void
close_lenet (Fixture *f)
{
  td_tensor_free (f->g);
  td_iteration_unref (f->it);
  td_tape_reader_free (f->reader);
}

static TdEvaluateSource
source_of (const Fixture *f)
{
  return (TdEvaluateSource){ f->reader, f->it, -1, NULL, NULL };
}

static double
number (Fixture *f, const char *text)
{
  const TdEvaluateSource source = source_of (f);
  g_autoptr (GError) error = NULL;
  TdTensor *x = td_evaluate (text, &source, &error);

  if (!x)
    fail_msg ("%s: %s", text, error->message);
  assert_int_equal (x->ndim, 0);
  double value = x->values[0];
  td_tensor_free (x);
  return value;
}

static void
evaluate__numbers_bind_as_usual (void **state)
{
  Fixture f = open_lenet ();

  assert_true (number (&f, "1 + 2 * 3 - 4 / 8") == 6.5);
  assert_true (number (&f, " ( 1+2 )*-3") == -9);
  assert_true (number (&f, "2 - -3 - 1") == 4);
  assert_true (number (&f, "8/2/2") == 2);
  assert_true (number (&f, ".5e1") == 5);
  assert_true (number (&f, "sqrt (16) + abs (-2) + log (exp (1))") == 7);
  assert_true (isinf (number (&f, "1 / 0")));
  close_lenet (&f);
}

static void
evaluate__functions_agree_with_loops (void **state)
{
  Fixture f = open_lenet ();
  double sum = 0, square = 0, low = INFINITY, high = -INFINITY, first = 0;

  for (int i = 150; i < 2400; i++)
    {
      double v = f.g->values[i];
      sum += v;
      square += v * v;
      low = MIN (low, v);
      high = MAX (high, v);
    }
  for (int i = 0; i < 25; i++)
    first += fabs (f.g->values[(3 * 6 + 2) * 25 + i]);
  assert_true (number (&f, "sum (conv2/W.grad[1:])") == sum);
  assert_true (number (&f, "mean(lenet/block2/conv2/W.grad[1:])") == sum / 2250);
  assert_true (number (&f, "norm (\"conv2/W.grad\"[1:])") == sqrt (square));
  assert_true (number (&f, "min (conv2/W.grad[1:])") == low);
  assert_true (number (&f, "max (conv2/W.grad[1:]) - min (conv2/W.grad[1:])") == high - low);
  assert_true (number (&f, "sum (abs (conv2/W.grad[3, 2]))") == first);
  assert_true (number (&f, "conv2/W.grad[3][-1, 0, 4]") == f.g->values[(3 * 6 + 5) * 25 + 4]);
  assert_true (
      number (&f, "max (abs (2 * conv2/W.grad[1:] - conv2/W.grad[1:] - conv2/W.grad[1:]))")
      == 0);
  /* of the first channel one is NaN: so is what is made of it */
  assert_true (isnan (number (&f, "sum (conv2/W.grad)")));
  assert_true (isnan (number (&f, "max (conv2/W.grad)")));
  assert_true (isnan (number (&f, "min (conv2/W.grad)")));
  close_lenet (&f);
}

static void
evaluate__events_have_outputs_and_results_a_line (void **state)
{
  Fixture f = open_lenet ();
  const TdTapeIteration *t = td_iteration_get_tape (f.it);
  gint producer = t->vars[t->grads[2].gradient].producer;
  const TdEvaluateSource source = source_of (&f);
  g_autofree char *text = g_strdup_printf ("#%d[0, 0, :, 0] * 0 + 0.25", producer);
  TdTensor *x = td_evaluate (text, &source, NULL);
  g_autofree char *said = td_evaluate_print (x);

  assert_string_equal (said, "shape [5], 0.25 to 0.25: 0.25, 0.25, 0.25, 0.25, 0.25");
  td_tensor_free (x);
  x = td_evaluate ("-1 / 3", &source, NULL);
  g_autofree char *digits = td_evaluate_print (x);
  assert_string_equal (digits, "−0.333333333333");
  td_tensor_free (x);
  close_lenet (&f);
}

static void
evaluate__mistakes_are_one_line_with_their_place (void **state)
{
  static const struct
  {
    const char *text, *said;
  } rows[] = {
    { "", "character 1: something is missing here" },
    { "1 +", "character 4: something is missing here" },
    { "1 2", "character 3: “2” is not understood here" },
    { "(1 + 2", "character 7: a bracket is not closed" },
    { "none", "character 1: nothing here is called “none”" },
    { "1 + é", "character 5: nothing here is called “é”" },
    { "W.grad", "character 1: “W.grad” could be lenet/block1/conv1/W.grad or "
                "lenet/block2/conv2/W.grad" },
    { "conv1/W", "character 1: values of conv1/W are not recorded at this moment" },
    { "conv2/W.grad[16]",
      "character 14: index 16 is outside of axis 0, which has 16 elements" },
    { "conv2/W.grad[0", "character 13: the bracket is not closed" },
    { "conv2/W.grad + conv2/W.grad[0]",
      "character 14: + is between shapes [16, 6, 5, 5] and [6, 5, 5]" },
    { "cube (2)", "character 1: there is no function “cube”" },
    { "\"conv", "character 1: the quotation is not closed" },
    { "#9999", "character 1: there is no output of event 9999" },
    { "#", "character 1: an event is written as # and its number" },
    { "2 $ 3", "character 3: “$” is not understood here" },
    { "\xff", "character 1: the text is not UTF-8" },
  };
  Fixture f = open_lenet ();
  const TdEvaluateSource source = source_of (&f);

  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr (GError) error = NULL;

      assert_null (td_evaluate (rows[i].text, &source, &error));
      assert_string_equal (error->message, rows[i].said);
    }
  g_autofree char *deep = g_strnfill (100000, '(');
  g_autofree char *minus = g_strnfill (100000, '-');
  g_autoptr (GError) error = NULL;
  assert_null (td_evaluate (deep, &source, &error));
  assert_contains (error->message, "this is too deep");
  assert_null (td_evaluate (minus, &source, NULL));
  close_lenet (&f);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (evaluate__numbers_bind_as_usual),
    td_test (evaluate__functions_agree_with_loops),
    td_test (evaluate__events_have_outputs_and_results_a_line),
    td_test (evaluate__mistakes_are_one_line_with_their_place),
  };
  return cmocka_run_group_tests_name ("evaluate", tests, NULL, NULL);
}
