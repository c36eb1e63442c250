/* One operation that makes a NaN of healthy work: run under `tapedeck run --break nan`, which
 * must stop at it and nowhere else.
 *
 *   bare-nan --list      the rows, one per line: those whose outputs a NaN in an input reaches
 *   bare-nan ROW         healthy operations, the row with a NaN in its inputs, one more
 *
 * SPDX-License-Identifier: MIT */
#include "op-cases.h"

#include <tapedeck.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Input k of the row, its first number NaN. */
static TdVar *
with_nan (const OpCase *c, int k)
{
  TdVar *x = op_input (c, k, TD_F32, NULL);
  size_t n = (size_t)td_size (x), bytes = n * sizeof (float);
  float *values = malloc (bytes + 1);

  if (values == NULL)
    abort ();
  td_read (x, values, bytes);
  values[0] = NAN;
  x = td_tensor (TD_F32, td_shape (x), values);
  free (values);
  return x;
}

/* The first input that is of floating point; -1: none. */
static int
place_for_nan (const OpCase *c)
{
  for (int k = 0; k < c->n_in; k++)
    if (c->in[k].dtype == TD_F32 && td_shape_size (&c->in[k].shape) > 0)
      return k;
  return -1;
}

static void
call_with_nan (const OpCase *c, TdVar **y)
{
  TdVar *x[6];
  const int bad = place_for_nan (c);

  for (int k = 0; k < c->n_in; k++)
    x[k] = k == bad ? with_nan (c, k) : op_input (c, k, TD_F32, NULL);
  c->call (x, y);
}

/* Whether an output holds a NaN then. */
static bool
comes_through (const OpCase *c)
{
  bool found = false;

  TD_SCOPE ("row")
    {
      TdVar *y[3] = { NULL };

      call_with_nan (c, y);
      for (int k = 0; k < c->n_out && td_error () == NULL; k++)
        if (td_dtype (y[k]) == TD_F32 && td_size (y[k]) > 0)
          found = found || isnan (td_item (td_sum (y[k])));
      if (td_error () != NULL)
        found = false;
      td_error_clear ();
    }
  return found;
}

/* A row in place `at` of all tables; NULL: there are no more. */
static const OpCase *
row_at (int at)
{
  for (int i = 0; i < N_OP_CASE_TABLES; i++)
    {
      if (at < *op_case_tables[i].n_cases)
        return &op_case_tables[i].cases[at];
      at -= *op_case_tables[i].n_cases;
    }
  return NULL;
}

/* One row for each operation: the first that a NaN comes through.  A change of layout makes no
 * numbers, and is not blamed for them. */
static int
list (void)
{
  const char *last = "";

  for (int i = 0; row_at (i) != NULL; i++)
    {
      const OpCase *c = row_at (i);

      if (strcmp (c->op, last) == 0 || strcmp (c->op, "to_layout") == 0 || place_for_nan (c) < 0
          || !comes_through (c))
        continue;
      last = c->op;
      printf ("%d %s\n", i, c->op);
    }
  return td_finish ();
}

int
main (int argc, char **argv)
{
  const OpCase *c;
  TdVar *y[3] = { NULL };

  td_init (&argc, &argv);
  if (argc < 2 || strcmp (argv[1], "--list") == 0)
    return list ();
  c = row_at (atoi (argv[1]));
  if (c == NULL)
    return 2;
  TD_ITERATION (0)
    {
      TdVar *healthy = td_ones (TD_F32, TD_SHAPE (8));

      healthy = td_exp (td_mul (healthy, healthy));
      call_with_nan (c, y);
      td_exp (healthy);
    }
  return td_finish ();
}
