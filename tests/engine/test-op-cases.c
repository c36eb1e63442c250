/* Drives the rows of op-cases*.c: each becomes several tests, named "op variant: claim".
 * SPDX-License-Identifier: MIT */
#include "op-cases.h"
#include "td-test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ELEMENTS 4096

/* --- references --- */

static void
place_of (const TdShape *shape, int64_t at, int64_t *place)
{
  for (int d = shape->ndim - 1; d >= 0; d--)
    {
      place[d] = at % shape->dim[d];
      at /= shape->dim[d];
    }
}

static int64_t
offset_of (const TdShape *shape, const int64_t *place)
{
  int64_t at = 0;

  for (int d = 0; d < shape->ndim; d++)
    at = at * shape->dim[d] + place[d];
  return at;
}

static void
reference_map (const OpCase *c, double *const *in, double *out)
{
  for (int64_t at = 0; at < td_shape_size (&c->out[0]); at++)
    {
      double v[3] = { 0 };
      int64_t place[TD_MAX_DIMS];

      place_of (&c->out[0], at, place);
      for (int k = 0; k < c->n_in; k++)
        {
          const TdShape *shape = &c->in[k].shape;
          int64_t own[TD_MAX_DIMS];

          for (int d = 0; d < shape->ndim; d++)
            own[d] = shape->dim[d] == 1 ? 0 : place[c->out[0].ndim - shape->ndim + d];
          v[k] = in[k][offset_of (shape, own)];
        }
      out[at] = c->map (v[0], v[1], v[2]);
    }
}

static void
reference_source (const OpCase *c, double *const *in, int k, double *out)
{
  for (int64_t at = 0; at < td_shape_size (&c->out[k]); at++)
    {
      int64_t place[TD_MAX_DIMS], from[TD_MAX_DIMS] = { 0 };
      int input;

      place_of (&c->out[k], at, place);
      input = c->source (k, place, from);
      out[at] = input < 0 ? 0 : in[input][offset_of (&c->in[input].shape, from)];
    }
}

static void
reference_fold (const OpCase *c, const double *in, double *out)
{
  const TdShape *x = &c->in[0].shape;
  int64_t n_out = td_shape_size (&c->out[0]);
  double values[MAX_ELEMENTS];

  for (int64_t o = 0; o < n_out; o++)
    {
      int64_t n = 0;

      for (int64_t at = 0; at < td_shape_size (x); at++)
        {
          int64_t place[TD_MAX_DIMS], index = 0;

          place_of (x, at, place);
          for (int d = 0; d < x->ndim; d++)
            if (!(c->mask >> d & 1))
              index = index * x->dim[d] + place[d];
          if (index == o)
            values[n++] = in[at];
        }
      out[o] = c->fold (values, n);
    }
}

static void
reference (const OpCase *c, double *const *in, double *const *out)
{
  if (c->map != NULL)
    reference_map (c, in, out[0]);
  else if (c->fold != NULL)
    reference_fold (c, in[0], out[0]);
  else if (c->source != NULL)
    for (int k = 0; k < c->n_out; k++)
      reference_source (c, in, k, out[k]);
  else
    c->whole (c, (const double *const *)in, out);
}

/* --- claims --- */

static void
fail_at (const OpCase *c, int k, int64_t at, double got, double want)
{
  int64_t place[TD_MAX_DIMS];
  TdShape shape = c->out[k];
  char text[160];

  place_of (&shape, at, place);
  for (int d = 0; d < shape.ndim; d++)
    shape.dim[d] = place[d];
  fail_msg ("output %d at %s is %.17g, the reference says %.17g", k,
            td_shape_text (&shape, text, sizeof text), got, want);
}

static void
check_values (const OpCase *c, TdDtype run, double tolerance)
{
  double *in[6], *want[3], *got = calloc (MAX_ELEMENTS, sizeof *got);
  TdVar *x[6], *y[3] = { NULL };

  for (int k = 0; k < c->n_in; k++)
    x[k] = op_input (c, k, run, in[k] = calloc (MAX_ELEMENTS, sizeof (double)));
  for (int k = 0; k < c->n_out; k++)
    want[k] = calloc (MAX_ELEMENTS, sizeof (double));
  reference (c, in, want);
  c->call (x, y);
  for (int k = 0; k < c->n_out; k++)
    {
      TdShape shape = td_shape (y[k]);
      int64_t n = td_size (y[k]);

      if (td_error () != NULL)
        fail_msg ("%s", td_error ()->message);
      assert_true (td_shape_equal (&shape, &c->out[k]));
      assert_int_equal (td_dtype (y[k]), c->out_dtype == TD_F32 ? run : c->out_dtype);
      if (n > 0)
        assert_int_equal (td_read (td_cast (y[k], TD_F64), got, (size_t)n * sizeof *got),
                          TD_OK);
      for (int64_t i = 0; i < n; i++)
        if (!(fabs (got[i] - want[k][i]) <= tolerance * (1 + fabs (want[k][i]))))
          fail_at (c, k, i, got[i], want[k][i]);
    }
  for (int k = 0; k < c->n_in; k++)
    free (in[k]);
  for (int k = 0; k < c->n_out; k++)
    free (want[k]);
  free (got);
}

static double
loosened (const OpCase *c, double tolerance)
{
  return c->loose > 0 ? c->loose * tolerance : tolerance;
}

static void
values_in_double (void **state)
{
  TD_SCOPE ("case")
    check_values (*state, TD_F64, loosened (*state, 1e-12));
}

static void
values_in_float (void **state)
{
  TD_SCOPE ("case")
    check_values (*state, TD_F32, loosened (*state, 4e-6));
}

static void
call_case (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  ((const OpCase *)user)->call (in, out);
}

static void
expect_ok (TdStatus status)
{
  if (status != TD_OK)
    fail_msg ("%s", td_error () != NULL ? td_error ()->message : td_status_name (status));
}

static TdCheckOpt
check_options (const OpCase *c)
{
  TdCheckOpt o = td_check_options ();

  o.eps = 1e-4;
  o.atol = loosened (c, 2e-7);
  o.rtol = loosened (c, 2e-7);
  return o;
}

static void
first_gradient (void **state)
{
  const OpCase *c = *state;

  TD_SCOPE ("case")
    {
      TdCheckOpt o = check_options (c);
      TdVar *x[6];

      for (int k = 0; k < c->n_in; k++)
        x[k] = op_input (c, k, TD_F64, NULL);
      expect_ok (
          td_check_backward_ (call_case, (void *)(uintptr_t)c, x, c->n_in, NULL, c->n_out, &o));
    }
}

static void
second_gradient (void **state)
{
  const OpCase *c = *state;

  TD_SCOPE ("case")
    {
      TdCheckOpt o = check_options (c);
      TdVar *x[6];

      for (int k = 0; k < c->n_in; k++)
        x[k] = op_input (c, k, TD_F64, NULL);
      expect_ok (td_check_double_backward_ (call_case, (void *)(uintptr_t)c, x, c->n_in, NULL,
                                            c->n_out, &o));
    }
}

/* A loss in which no two elements weigh the same, from the same random numbers each time. */
static void
case_backward (const OpCase *c, TdVar **x)
{
  TdVar *y[3] = { NULL }, *loss = NULL;

  td_set_seed (1);
  c->call (x, y);
  for (int k = 0; k < c->n_out; k++)
    if (y[k] != NULL && td_size (y[k]) > 0 && td_dtype (y[k]) == TD_F64)
      {
        TdVar *weights = td_reshape (td_arange (TD_F64, 1, (double)td_size (y[k]) + 1, 1),
                                     td_shape (y[k]));
        TdVar *part = td_sum (td_mul (y[k], td_mul_scalar (weights, 0.25)));

        loss = loss == NULL ? part : td_add (loss, part);
      }
  expect_ok (loss != NULL ? td_backward (loss, 0) : TD_OK);
}

/* A second backward adds as much again to every gradient, also where kernels add in place. */
static void
added_gradient (void **state)
{
  const OpCase *c = *state;
  double *first = calloc (MAX_ELEMENTS, sizeof *first);
  double *sum = calloc (MAX_ELEMENTS, sizeof *sum);

  TD_SCOPE ("case")
    {
      TdVar *x[6];
      TdVar *ones[6] = { NULL };

      for (int k = 0; k < c->n_in; k++)
        {
          x[k] = op_input (c, k, TD_F64, NULL);
          if (td_dtype (x[k]) == TD_F64)
            x[k] = td_variable (x[k], NULL);
        }
      TD_SCOPE ("first")
        case_backward (c, x);
      for (int k = 0; k < c->n_in; k++)
        if (td_grad (x[k]) != NULL)
          ones[k] = td_mul_scalar (td_grad (x[k]), 1);
      TD_SCOPE ("second")
        case_backward (c, x);
      for (int k = 0; k < c->n_in; k++)
        {
          const int64_t n = ones[k] != NULL ? td_size (ones[k]) : 0;

          if (n == 0)
            continue;
          expect_ok (td_read (ones[k], first, (size_t)n * sizeof *first));
          expect_ok (td_read (td_grad (x[k]), sum, (size_t)n * sizeof *sum));
          for (int64_t i = 0; i < n; i++)
            if (!(fabs (sum[i] - 2 * first[i]) <= 1e-10 * (1 + fabs (first[i]))))
              fail_msg ("input %d, element %lld: %.17g once, %.17g after two", k, (long long)i,
                        first[i], sum[i]);
        }
    }
  free (first);
  free (sum);
}

/* Shapes without numbers: the null device agrees, and keeps no memory. */
static void
null_device (void **state)
{
  const OpCase *c = *state;
  TdDevice *null = td_device_get ("null");

  TD_SCOPE ("case")
    {
      TdVar *x[6], *y[3] = { NULL };
      TdDevice *own = td_device (td_zeros (TD_F32, TD_SHAPE (1)));

      for (int k = 0; k < c->n_in; k++)
        x[k] = td_to_device (op_input (c, k, TD_F32, NULL), null);
      td_device_use (null);
      c->call (x, y);
      td_device_use (own);
      if (td_error () != NULL)
        fail_msg ("%s", td_error ()->message);
      for (int k = 0; k < c->n_out; k++)
        {
          TdShape shape = td_shape (y[k]);

          assert_true (td_shape_equal (&shape, &c->out[k]));
          assert_ptr_equal (td_device (y[k]), null);
        }
    }
}

/* Poison in, poison out, and the first error stays. */
static void
poison (void **state)
{
  const OpCase *c = *state;

  for (int bad = 0; bad < c->n_in; bad++)
    TD_SCOPE ("case")
      {
        TdVar *x[6], *y[3] = { NULL };
        char first[1024];

        for (int k = 0; k < c->n_in; k++)
          x[k] = op_input (c, k, TD_F32, NULL);
        x[bad] = td_reshape (td_zeros (TD_F32, TD_SHAPE (2)), TD_SHAPE (3));
        snprintf (first, sizeof first, "%s", td_error ()->message);
        c->call (x, y);
        for (int k = 0; k < c->n_out; k++)
          assert_true (td_poisoned (y[k]));
        assert_string_equal (td_error ()->message, first);
        td_error_clear ();
      }
}

/* A loss of all that the row gives, as case_backward's. */
static TdVar *
squares (TdVar *const *y, int n)
{
  TdVar *sum = NULL;

  for (int k = 0; k < n; k++)
    if (y[k] != NULL && td_size (y[k]) > 0 && td_dtype (y[k]) == TD_F64)
      {
        TdVar *part = td_sum (td_square (y[k]));

        sum = sum == NULL ? part : td_add (sum, part);
      }
  return sum;
}

/* An input is written to after the forward, or after a backward that has a graph of its own:
 * what needs it fails, and hands out nothing; what does not goes on. */
static void
lost_input (void **state)
{
  const OpCase *c = *state;

  for (int trial = 0; trial < 2 * c->n_in; trial++)
    TD_SCOPE ("case")
      {
        const int lost = trial / 2;
        TdVar *x[6], *y[3] = { NULL }, *gx[6] = { NULL }, *loss;
        TdStatus status = TD_OK;

        for (int k = 0; k < c->n_in; k++)
          {
            x[k] = op_input (c, k, TD_F64, NULL);
            if (td_dtype (x[k]) == TD_F64)
              x[k] = td_variable (x[k], NULL);
          }
        td_set_seed (1);
        c->call (x, y);
        loss = squares (y, c->n_out);
        if (loss != NULL && trial % 2 == 1)
          status = td_grad_of (&loss, 1, x, c->n_in, NULL, TD_DOUBLE_BACKPROP, gx);
        if (loss != NULL && status == TD_OK && td_dtype (x[lost]) == TD_F64)
          {
            double *numbers = calloc ((size_t)td_size (x[lost]) + 1, sizeof *numbers);

            td_write (x[lost], numbers, (size_t)td_size (x[lost]) * sizeof *numbers);
            free (numbers);
            if (trial % 2 == 1)
              loss = squares (gx, c->n_in);
            status = loss != NULL ? td_backward (loss, 0) : TD_OK;
          }
        if (status != TD_OK)
          for (int k = 0; k < c->n_in; k++)
            assert_null (td_grad (x[k]));
        if (status != TD_OK && td_error ()->status != TD_ERR_STATE)
          fail_msg ("input %d: %s", lost, td_error ()->message);
        td_error_clear ();
      }
}

static void
error_text (void **state)
{
  const OpError *e = *state;
  TdVar *x[4], *y[4] = { NULL };
  const char *rest;

  TD_SCOPE ("error")
    {
      for (int k = 0; k < e->n_in; k++)
        x[k] = td_tensor (e->in[k].dtype, e->in[k].shape, NULL);
      TD_USING (debug, 1) /* devices tell of bad indices at once */
        e->call (x, y);
      assert_non_null (td_error ());
      assert_int_equal (td_error ()->status, e->status);
      assert_string_equal (td_error ()->op, e->op);
      assert_int_equal (strncmp (td_error ()->message, e->message, strlen (e->message)), 0);
      /* Nothing but the operands and the place may follow. */
      rest = td_error ()->message + strlen (e->message);
      assert_true (rest[0] == '\0' || strncmp (rest, " (", 2) == 0
                   || strncmp (rest, ": x (", 5) == 0);
      td_error_clear ();
    }
}

static void
every_operation_has_a_row (void **state)
{
  for (int i = 0; td__op_classes[i] != NULL; i++)
    {
      bool found = false;

      for (const OpCaseTable *t = op_case_tables; t < op_case_tables + N_OP_CASE_TABLES; t++)
        for (int k = 0; k < *t->n_cases && !found; k++)
          found = strcmp (t->cases[k].op, td__op_classes[i]->name) == 0;
      if (!found)
        fail_msg ("no row for %s", td__op_classes[i]->name);
    }
}

/* --- the list of tests --- */

static struct CMUnitTest *tests;
static size_t n_tests, capacity;

static void
add_test (CMUnitTestFunction f, const void *row, const char *op, const char *variant,
          const char *claim)
{
  char *name = NULL;

  if (n_tests == capacity)
    {
      capacity = capacity == 0 ? 256 : 2 * capacity;
      tests = realloc (tests, capacity * sizeof *tests);
      if (tests == NULL)
        abort ();
    }
  if (asprintf (&name, "%s%s%s__%s", op, variant[0] != '\0' ? " " : "", variant, claim) < 0)
    abort ();
  tests[n_tests++]
      = (struct CMUnitTest){ name, f, op_test_begin, op_test_end, (void *)(uintptr_t)row };
}

static void
add_cases (const OpCase *rows, int n)
{
  for (const OpCase *c = rows; c < rows + n; c++)
    {
      add_test (values_in_double, c, c->op, c->variant, "agrees_with_the_reference");
      add_test (values_in_float, c, c->op, c->variant, "agrees_in_float");
      if (!(c->flags & OP_NO_GRAD))
        {
          add_test (first_gradient, c, c->op, c->variant, "has_the_gradient_of_differences");
          add_test (added_gradient, c, c->op, c->variant, "adds_to_gradients_that_are_there");
        }
      if (!(c->flags & (OP_NO_GRAD | OP_NO_SECOND)))
        {
          add_test (second_gradient, c, c->op, c->variant, "has_the_second_gradient");
          add_test (lost_input, c, c->op, c->variant, "misses_an_input_that_was_written");
        }
      add_test (null_device, c, c->op, c->variant, "keeps_its_shape_on_the_null_device");
      add_test (poison, c, c->op, c->variant, "passes_poison_on");
    }
}

static void
add_errors (const OpError *rows, int n)
{
  for (const OpError *e = rows; e < rows + n; e++)
    add_test (error_text, e, e->op, "", e->message);
}

int
main (int argc, char **argv)
{
  int failed;

  if (td_init (&argc, &argv) != TD_OK)
    return 1;
  add_test (every_operation_has_a_row, NULL, "ops.def", "", "every_operation_has_a_row");
  for (int i = 0; i < N_OP_CASE_TABLES; i++)
    add_cases (op_case_tables[i].cases, *op_case_tables[i].n_cases);
  for (int i = 0; i < N_OP_CASE_TABLES; i++)
    add_errors (op_case_tables[i].errors, *op_case_tables[i].n_errors);
  if (argc > 1)
    cmocka_set_test_filter (argv[1]);
  failed = _cmocka_run_group_tests ("op-cases", tests, n_tests, NULL, NULL);
  for (size_t i = 0; i < n_tests; i++)
    free ((void *)(uintptr_t)tests[i].name);
  free (tests);
  return td_finish () != 0 || failed != 0;
}
