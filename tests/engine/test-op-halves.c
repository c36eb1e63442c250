/* Every row of op-cases in half precision: stored in two bytes, computed in float.  Values and
 * gradients are held against the same call in float on the same numbers.
 *
 * SPDX-License-Identifier: MIT */
#include "op-cases.h"
#include "td-test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ELEMENTS 4096

/* What one call gives: outputs, then gradients, as doubles. */
typedef struct
{
  int n;
  int64_t size[9];
  double *numbers[9];
} Answers;

static void
keep (Answers *a, TdVar *v)
{
  double *numbers = calloc ((size_t)td_size (v) + 1, sizeof *numbers);

  assert_non_null (numbers);
  if (td_size (v) > 0)
    assert_int_equal (
        td_read (td_cast (v, TD_F64), numbers, (size_t)td_size (v) * sizeof *numbers), TD_OK);
  a->size[a->n] = td_size (v);
  a->numbers[a->n++] = numbers;
}

/* Some numbers for the gradient of an output, which all dtypes hold. */
static TdVar *
seed_of (TdVar *y)
{
  TdVar *ramp = td_arange (TD_F32, 0, (double)td_size (y), 1);

  ramp = td_mul_scalar (td_add_scalar (td_sin (ramp), 2), 0.5);
  return td_cast (td_cast (td_reshape (ramp, td_shape (y)), TD_BF16), td_dtype (y));
}

/* The row's call on its numbers as `half` holds them, computed in `run`. */
static void
answer (const OpCase *c, TdDtype half, TdDtype run, Answers *a)
{
  TdVar *x[6], *y[3] = { NULL }, *gy[3], *gx[6], *in[6], *out[3];
  int n_in = 0, n_out = 0;

  for (int k = 0; k < c->n_in; k++)
    {
      x[k] = op_input (c, k, half, NULL);
      if (td_dtype (x[k]) == half)
        {
          x[k] = td_variable (td_cast (x[k], run), "x");
          in[n_in++] = x[k];
        }
    }
  c->call (x, y);
  if (td_error () != NULL)
    fail_msg ("%s", td_error ()->message);
  for (int k = 0; k < c->n_out; k++)
    {
      if (c->out_dtype == TD_F32 && td_dtype (y[k]) != run)
        assert_int_equal (td_dtype (y[k]), TD_F32); /* moments */
      keep (a, y[k]);
      if (td_dtype (y[k]) <= TD_BF16)
        {
          out[n_out] = y[k];
          gy[n_out++] = seed_of (y[k]);
        }
    }
  if ((c->flags & OP_NO_GRAD) || n_in == 0 || n_out == 0)
    return;
  if (td_grad_of (out, n_out, in, n_in, gy, 0, gx) != TD_OK)
    fail_msg ("backward: %s", td_error ()->message);
  for (int k = 0; k < n_in; k++)
    if (gx[k] != NULL)
      {
        assert_int_equal (td_dtype (gx[k]), run);
        keep (a, gx[k]);
      }
}

/* tolerance: of numbers around the largest of an array, as rounding of sums is. */
static void
agree (const OpCase *c, TdDtype half, double tolerance)
{
  Answers wide = { 0 }, narrow = { 0 };

  TD_SCOPE ("wide")
    answer (c, half, TD_F32, &wide);
  TD_SCOPE ("narrow")
    answer (c, half, half, &narrow);
  assert_int_equal (narrow.n, wide.n);
  for (int k = 0; k < wide.n; k++)
    {
      double scale = 1;

      assert_int_equal (narrow.size[k], wide.size[k]);
      for (int64_t i = 0; i < wide.size[k]; i++)
        if (isfinite (wide.numbers[k][i]))
          scale = fmax (scale, fabs (wide.numbers[k][i]));
      if (k >= c->n_out && strstr (c->op, "_grad") != NULL)
        scale *= 3; /* of a gradient's gradient, which is composed: each step is rounded */
      for (int64_t i = 0; i < wide.size[k]; i++)
        if (!(fabs (narrow.numbers[k][i] - wide.numbers[k][i]) <= tolerance * scale)
            && !(narrow.numbers[k][i] == wide.numbers[k][i]))
          fail_msg ("%s %d at %ld is %g, in float %g", k < c->n_out ? "output" : "gradient",
                    k < c->n_out ? k : k - c->n_out, (long)i, narrow.numbers[k][i],
                    wide.numbers[k][i]);
      free (wide.numbers[k]);
      free (narrow.numbers[k]);
    }
}

static void
in_bfloat16 (void **state)
{
  agree (*state, TD_BF16, 2e-2);
}

static void
in_float16 (void **state)
{
  agree (*state, TD_F16, 2.5e-3);
}

static struct CMUnitTest *tests;
static size_t n_tests;

static void
add (CMUnitTestFunction f, const OpCase *c, const char *claim)
{
  char *name = NULL;

  tests = realloc (tests, (n_tests + 1) * sizeof *tests);
  if (tests == NULL
      || asprintf (&name, "%s%s%s__%s", c->op, c->variant[0] != '\0' ? " " : "", c->variant,
                   claim)
             < 0)
    abort ();
  tests[n_tests++]
      = (struct CMUnitTest){ name, f, op_test_begin, op_test_end, (void *)(uintptr_t)c };
}

int
main (int argc, char **argv)
{
  int failed;

  if (td_init (&argc, &argv) != TD_OK)
    return 1;
  for (int i = 0; i < N_OP_CASE_TABLES; i++)
    for (int k = 0; k < *op_case_tables[i].n_cases; k++)
      {
        add (in_bfloat16, &op_case_tables[i].cases[k], "is_near_float_in_bfloat16");
        add (in_float16, &op_case_tables[i].cases[k], "is_near_float_in_float16");
      }
  if (argc > 1)
    cmocka_set_test_filter (argv[1]);
  failed = _cmocka_run_group_tests ("op-halves", tests, n_tests, NULL, NULL);
  for (size_t i = 0; i < n_tests; i++)
    free ((void *)(uintptr_t)tests[i].name);
  free (tests);
  return td_finish () != 0 || failed != 0;
}
