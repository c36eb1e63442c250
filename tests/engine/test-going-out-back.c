/* Every row of op-cases as an ONNX file that comes in again: it gives the same numbers.
 *
 * SPDX-License-Identifier: MIT */
#include "going-out-rows.h"
#include "td-test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  LAST_OPSET = 21
};
static int n_files, n_wrong, n_exact;

/* The inputs that the file has, under their names. */
static TdStatus
call (const Row *row, TdLink *link, TdVar *const *x, TdVar **y)
{
  char names[6][16];
  const char *given[6];
  TdVar *in[6];
  int n = 0;

  for (int k = 0; k < row->c->n_in; k++)
    {
      snprintf (names[k], sizeof names[k], "input%d", k);
      for (int i = 0; td_onnx_input (link, i).name != NULL; i++)
        if (strcmp (td_onnx_input (link, i).name, names[k]) == 0)
          {
            given[n] = names[k];
            in[n++] = x[k];
          }
    }
  return td_onnx_call (link, given, in, n, y, row->c->n_out);
}

/* Are they the same, but for the order of a sum?  *exact: to the bit. */
static bool
is_same (TdVar *a, TdVar *b, bool *exact)
{
  const TdShape shape_a = td_shape (a), shape_b = td_shape (b);
  const size_t bytes = (size_t)td_size (a) * td_dtype_bytes (td_dtype (a));
  char *p, *q;
  bool same = td_shape_equal (&shape_a, &shape_b) && td_dtype (a) == td_dtype (b);

  if (!same)
    return false;
  p = calloc (bytes + 1, 1);
  q = calloc (bytes + 1, 1);
  if (bytes > 0)
    {
      td_read (a, p, bytes);
      td_read (b, q, bytes);
    }
  if (memcmp (p, q, bytes) != 0)
    {
      *exact = false;
      same = td_dtype (a) == TD_F32;
    }
  for (size_t i = 0; same && td_dtype (a) == TD_F32 && i < bytes / sizeof (float); i++)
    {
      const float u = ((float *)p)[i], v = ((float *)q)[i];

      same = u == v || (isnan (u) && isnan (v)) || fabsf (u - v) <= 1e-5f * (1 + fabsf (v));
    }
  free (p);
  free (q);
  return same;
}

/* Others of the same shape, which are not all one. */
static bool
is_drawn (TdVar *a, TdVar *b)
{
  const TdShape shape_a = td_shape (a), shape_b = td_shape (b);
  float first, last;

  return td_shape_equal (&shape_a, &shape_b) && td_dtype (a) == td_dtype (b)
         && td_read (td_max (a), &last, sizeof last) == TD_OK
         && td_read (td_min (a), &first, sizeof first) == TD_OK && first < last;
}

static void
come_back (const Row *row, const char *ending, TdVar *const *x, TdVar *const *y)
{
  TdLink *link
      = td_onnx_load_at (row_file (row, ending), (TdOnnxLoadOpt){ .train = row->random }, NULL);
  TdVar *z[3] = { NULL };
  bool exact = true, same = true;

  n_files++;
  if (td_error () == NULL)
    TD_USING (train, row->random)
      call (row, link, x, z);
  for (int k = 0; k < row->c->n_out && td_error () == NULL; k++)
    same = (row->random ? is_drawn (z[k], y[k]) : is_same (z[k], y[k], &exact)) && same;
  n_exact += same && exact && td_error () == NULL;
  if (td_error () != NULL || !same)
    {
      n_wrong++;
      print_message ("%s %s, %s: %s\n", row->c->op, row->c->variant, ending,
                     td_error () != NULL ? td_error ()->message : "other numbers");
    }
  td_error_clear ();
  td_link_free (link);
}

static void
go_out_and_back (Row *row, TdStatic *s, TdVar *const *x, TdVar *const *y)
{
  char ending[16];

  row_save (row, s, 1);
  if (row->said[1][0] != '\0')
    return;
  come_back (row, "onnx", x, y);
  snprintf (ending, sizeof ending, "%d.onnx", LAST_OPSET);
  assert_int_equal (td_static_save_at (s, row_file (row, ending),
                                       (TdStaticSaveOpt){ .opset = LAST_OPSET }, NULL),
                    TD_OK);
  come_back (row, ending, x, y);
}

static void
onnx__of_every_row_comes_in_again (void **state)
{
  static const TdDtype runs[] = { TD_F32 };

  (void)state;
  rows_make (runs, 1, go_out_and_back);
  print_message ("%d files come in again, %d of them to the bit; %d wrong\n", n_files, n_exact,
                 n_wrong);
  rows_forget ();
  assert_int_equal (n_wrong, 0);
  assert_true (n_files > 700);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    td_test (onnx__of_every_row_comes_in_again),
  };
  int failed;

  if (td_init (&argc, &argv) != TD_OK)
    return 1;
  failed = cmocka_run_group_tests_name ("going-out-back", tests, NULL, NULL);
  return td_finish () != 0 || failed != 0;
}
