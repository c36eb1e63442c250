/* Rows of op-cases as C programs: called once, written, compiled as one library, compared.
 *
 * SPDX-License-Identifier: MIT */
#include "going-out-rows.h"

#include "td-test.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compute/scalar-ops.h"

const char *const row_formats[N_FORMATS] = { "c", "onnx" };
Row *rows;
int n_rows;

/* Rows of what draws: those of the tables set the seed, which no schedule can contain. */
static void
call_dropout (TdVar *const *x, TdVar **y)
{
  TD_USING (train, true)
    y[0] = td_dropout (x[0], 0.3);
}

static void
call_masked_dropout (TdVar *const *x, TdVar **y)
{
  TdVar *mask;

  TD_USING (train, true)
    y[0] = td_dropout_with_at (x[0], 0.3, (TdDropoutOpt){ .return_mask = &mask }, NULL);
  y[1] = mask;
}

static void
call_gaussian (TdVar *const *x, TdVar **y)
{
  y[0] = td_gaussian_ (x[0], x[1], NULL);
}

static void
call_gumbel (TdVar *const *x, TdVar **y)
{
  y[0] = td_gumbel_softmax_ (x[0], NULL);
}

static void
call_arrays (TdVar *const *x, TdVar **y)
{
  y[0] = td_add (x[0], td_randn (td_dtype (x[0]), td_shape (x[0])));
  y[1] = td_mul (x[0], td_rand (td_dtype (x[0]), td_shape (x[0])));
}

#define NUMBERS                                                                                \
  {                                                                                            \
    { 2, { 7, 5 } }, -2, 2                                                                     \
  }
static const OpCase random_cases[] = {
  { "dropout", "", call_dropout, 1, 1, { NUMBERS } },
  { "random_like", "mask", call_masked_dropout, 1, 2, { NUMBERS } },
  { "gumbel_softmax", "", call_gumbel, 1, 1, { NUMBERS } },
  { "gaussian", "", call_gaussian, 2, 1, { NUMBERS, NUMBERS } },
  { "td_randn, td_rand", "", call_arrays, 1, 2, { NUMBERS } },
};
enum
{
  N_RANDOM = (int)(sizeof random_cases / sizeof *random_cases),
  N_WITHOUT_SCHEDULE = 9 /* rows of a type that cannot be in a static function */
};

static void
call_case (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  ((const OpCase *)user)->call (in, out);
}

static void
keep (Row *row, int i, TdVar *v)
{
  row->dtype[i] = td_dtype (v);
  row->shape[i] = td_shape (v);
  row->bytes[i] = (size_t)td_size (v) * td_dtype_bytes (td_dtype (v));
  row->arrays[i] = calloc (row->bytes[i] + 1, 1);
  if (row->bytes[i] > 0)
    assert_int_equal (td_read (v, row->arrays[i], row->bytes[i]), TD_OK);
}

const char *
row_file (const Row *row, const char *ending)
{
  char name[64];

  snprintf (name, sizeof name, "case%d.%s", (int)(row - rows), ending);
  return td_test_tmp (name);
}

void
row_save (Row *row, TdStatic *s, int format)
{
  const TdStatus status = td_static_save (s, row_file (row, row_formats[format]));

  assert_int_equal (status == TD_OK, td_error () == NULL);
  if (status != TD_OK)
    snprintf (row->said[format], sizeof row->said[format], "%s", td_error ()->message);
  td_error_clear ();
}

static void
make (Row *row, void (*also) (Row *row, TdStatic *s, TdVar *const *x, TdVar *const *y))
{
  const OpCase *c = row->c;
  TdStatic *s = td_static_new_at (call_case, (void *)(uintptr_t)c, td_static_options (), NULL);
  TdVar *x[6], *y[3] = { NULL };

  td_set_seed (7);
  TD_SCOPE ("case")
    {
      for (int k = 0; k < c->n_in; k++)
        keep (row, k, x[k] = op_input (c, k, row->run, NULL));
      td_static_call (s, x, c->n_in, y, c->n_out);
      if (td_error () != NULL)
        fail_msg ("%s %s: %s", c->op, c->variant, td_error ()->message);
      for (int k = 0; k < c->n_out; k++)
        keep (row, c->n_in + k, y[k]);
      row_save (row, s, 0);
      if (also != NULL)
        also (row, s, x, y);
    }
  td_static_free (s);
}

void
rows_make (const TdDtype *runs, int n_runs,
           void (*also) (Row *row, TdStatic *s, TdVar *const *x, TdVar *const *y))
{
  int most = N_RANDOM;

  for (const OpCaseTable *t = op_case_tables; t < op_case_tables + N_OP_CASE_TABLES; t++)
    most += *t->n_cases;
  rows = calloc ((size_t)(most * n_runs), sizeof *rows);
  n_rows = 0;
  for (int r = 0; r < n_runs; r++)
    {
      for (int k = 0; k < N_RANDOM; k++)
        rows[n_rows++] = (Row){ .c = &random_cases[k], .run = runs[r], .random = true };
      for (const OpCaseTable *t = op_case_tables; t < op_case_tables + N_OP_CASE_TABLES; t++)
        for (int k = 0; k < *t->n_cases; k++)
          rows[n_rows++] = (Row){ .c = &t->cases[k], .run = runs[r] };
    }
  for (int i = 0; i < n_rows; i++)
    make (&rows[i], also);
}

void
rows_forget (void)
{
  for (int i = 0; i < n_rows; i++)
    for (int k = 0; k < MOST_ARRAYS; k++)
      free (rows[i].arrays[k]);
  free (rows);
}

/* --- as C --- */

static double
number_at (const void *numbers, TdDtype dtype, size_t i)
{
  return dtype == TD_F32    ? (double)((const float *)numbers)[i]
         : dtype == TD_F64  ? ((const double *)numbers)[i]
         : dtype == TD_F16  ? (double)td_float_of_f16 (((const uint16_t *)numbers)[i])
         : dtype == TD_BF16 ? (double)td_float_of_bf16 (((const uint16_t *)numbers)[i])
         : dtype == TD_I32  ? ((const int32_t *)numbers)[i]
         : dtype == TD_I64  ? (double)((const int64_t *)numbers)[i]
                            : ((const uint8_t *)numbers)[i];
}

/* Are these halves, by their bits, neighbours, or the same?  0 is one number. */
static bool
are_neighbours (uint16_t a, uint16_t b)
{
  const int x = a & 0x8000 ? -(a & 0x7FFF) : a, y = b & 0x8000 ? -(b & 0x7FFF) : b;

  return abs (x - y) <= 1;
}

static bool
agrees (const Row *row, int k, const void *got, size_t i)
{
  const TdDtype dtype = row->dtype[k];
  const double want = number_at (row->arrays[k], dtype, i), have = number_at (got, dtype, i);
  const double tolerance = dtype == TD_F32 ? 1e-5 : 1e-12;

  if (have == want || (isnan (have) && isnan (want)))
    return true;
  if (!isfinite (have) || !isfinite (want))
    return false;
  if (dtype == TD_F16 || dtype == TD_BF16)
    return are_neighbours (((const uint16_t *)row->arrays[k])[i], ((const uint16_t *)got)[i]);
  return fabs (have - want) <= tolerance * (1 + fabs (want));
}

/* How many halves there were, and how many of them had other bits. */
static int n_halves, n_others;

static bool
row_agrees (const Row *row, void *const *got)
{
  int n = 0;

  for (int k = row->c->n_in; k < row->c->n_in + row->c->n_out; k++)
    {
      const bool half = row->dtype[k] == TD_F16 || row->dtype[k] == TD_BF16;

      for (size_t i = 0; i < row->bytes[k] / td_dtype_bytes (row->dtype[k]); i++)
        {
          n_halves += half;
          n_others += half
                      && number_at (row->arrays[k], row->dtype[k], i)
                             != number_at (got[k], row->dtype[k], i);
          if (!agrees (row, k, got[k], i) && n++ == 0)
            print_message ("%s %s of %s: number %zu of output %d is %.17g, expected %.17g\n",
                           row->c->op, row->c->variant, td_dtype_name (row->run), i,
                           k - row->c->n_in, number_at (got[k], row->dtype[k], i),
                           number_at (row->arrays[k], row->dtype[k], i));
        }
    }
  return n == 0;
}

static bool
is_written (const Row *row, const TdDtype *runs, int n_runs)
{
  for (int r = 0; r < n_runs; r++)
    if (row->run == runs[r])
      return row->said[0][0] == '\0';
  return false;
}

/* A file that has every program's call under its number, so that all are one library, and the
 * list of all files. */
static void
write_calls (const TdDtype *runs, int n_runs)
{
  FILE *f = fopen (td_test_tmp ("calls.c"), "w"), *list = fopen (td_test_tmp ("list"), "w");

  assert_non_null (f);
  assert_non_null (list);
  fprintf (list, "calls.c\n");
  for (int i = 0; i < n_rows; i++)
    if (is_written (&rows[i], runs, n_runs))
      {
        fprintf (list, "case%d.c\n", i);
        fprintf (f,
                 "#include \"case%d.h\"\nint call%d (void *const *p);\nint call%d (void "
                 "*const *p)\n{\n  (void)p;\n  return case%d_run (",
                 i, i, i, i);
        for (int k = 0; k < rows[i].c->n_in + rows[i].c->n_out; k++)
          fprintf (f, "%sp[%d]", k > 0 ? ", " : "", k);
        fprintf (f, ");\n}\n");
      }
  fclose (f);
  fclose (list);
}

static bool
call_agrees (void *library, const Row *program, const Row *row)
{
  void *p[MOST_ARRAYS] = { NULL };
  int (*call) (void *const *p);
  char name[32];
  bool agrees;

  snprintf (name, sizeof name, "call%d", (int)(program - rows));
  *(void **)&call = dlsym (library, name);
  assert_non_null (call);
  for (int k = 0; k < row->c->n_in + row->c->n_out; k++)
    {
      p[k] = calloc (row->bytes[k] + 1, 1);
      if (k < row->c->n_in)
        memcpy (p[k], row->arrays[k], row->bytes[k]);
    }
  agrees = call (p) == 0;
  if (!agrees)
    print_message ("%s %s: an index out of range\n", row->c->op, row->c->variant);
  agrees = row_agrees (row, p) && agrees;
  for (int k = 0; k < MOST_ARRAYS; k++)
    free (p[k]);
  return agrees;
}

/* --- with numbers that are none --- */

/* Write a number of a floating-point type. */
static void
plant (void *numbers, TdDtype dtype, size_t i, double number)
{
  if (dtype == TD_F32)
    ((float *)numbers)[i] = (float)number;
  else if (dtype == TD_F64)
    ((double *)numbers)[i] = number;
  else if (dtype == TD_F16)
    ((uint16_t *)numbers)[i] = td_f16_of_float ((float)number);
  else
    ((uint16_t *)numbers)[i] = td_bf16_of_float ((float)number);
}

/* A copy of the row whose input has the number planted, with what the engine makes of it; false
 * where the engine refuses it. */
static bool
row_planted (const Row *row, const Planting *p, Row *planted)
{
  const OpCase *c = row->c;
  const size_t n = row->bytes[p->input] / td_dtype_bytes (row->dtype[p->input]);
  bool ran = false;

  *planted = *row;
  for (int k = 0; k < c->n_in + c->n_out; k++)
    {
      planted->arrays[k] = malloc (row->bytes[k] + 1);
      memcpy (planted->arrays[k], row->arrays[k], row->bytes[k]);
    }
  plant (planted->arrays[p->input], row->dtype[p->input], p->first ? 0 : n / 3, p->number);
  if (!p->first)
    plant (planted->arrays[p->input], row->dtype[p->input], n - 1, p->number);
  TD_SCOPE ("planted")
    {
      TdVar *x[6], *y[3] = { NULL };

      for (int k = 0; k < c->n_in; k++)
        x[k] = td_tensor (row->dtype[k], row->shape[k], planted->arrays[k]);
      c->call (x, y);
      for (int k = 0; k < c->n_out && td_error () == NULL; k++)
        if (row->bytes[c->n_in + k] > 0)
          td_read (y[k], planted->arrays[c->n_in + k], row->bytes[c->n_in + k]);
      ran = td_error () == NULL;
      td_error_clear ();
    }
  return ran;
}

/* Where the engine's kernels differ among themselves, by the type and the size. */
static const struct
{
  const char *op;
  int input;
  bool of_nan;
} left_open[] = {
  /* padding is a zero that is multiplied, or is left out */
  { "convolution_2d", 1, true },
  { "convolution_nd", 1, true },
  { "convolution_2d_grad_w", 1, true },
  { "convolution_nd_grad_w", 1, true },
  /* sums of gamma's products begin elsewhere, and infinity minus infinity is NaN */
  { "group_normalization_grad", 1, false },
};

static bool
is_left_open (const Row *row, const Planting *p)
{
  for (size_t i = 0; i < sizeof left_open / sizeof *left_open; i++)
    if (strcmp (left_open[i].op, row->c->op) == 0 && left_open[i].input == p->input
        && (left_open[i].of_nan || !isnan (p->number)))
      return true;
  return false;
}

static bool
is_float (TdDtype dtype)
{
  return dtype == TD_F32 || dtype == TD_F64 || dtype == TD_F16 || dtype == TD_BF16;
}

int
row_each_planted (const Row *row,
                  void (*each) (const Row *planted, const Planting *p, void *user), void *user)
{
  static const double numbers[] = { NAN, INFINITY, -INFINITY };
  int n = 0;

  for (int i = 0; i < 6 * row->c->n_in; i++)
    {
      const Planting p = { numbers[i % 3], i / 6, i / 3 % 2 == 0 };
      Row planted;

      if (!is_float (row->dtype[p.input]) || row->bytes[p.input] == 0 || is_left_open (row, &p))
        continue;
      if (row_planted (row, &p, &planted))
        {
          n++;
          each (&planted, &p, user);
        }
      for (int k = 0; k < row->c->n_in + row->c->n_out; k++)
        free (planted.arrays[k]);
    }
  return n;
}

typedef struct
{
  void *library;
  const Row *row;
  int n_wrong;
} PlantedCalls;

static void
call_planted (const Row *planted, const Planting *p, void *user)
{
  PlantedCalls *calls = user;

  if (call_agrees (calls->library, calls->row, planted))
    return;
  print_message ("  with %g in input %d%s\n", p->number, p->input,
                 p->first ? ", at first" : "");
  calls->n_wrong++;
}

void
rows_agree_as_c (const TdDtype *runs, int n_runs, const char *compiler)
{
  char folder[512];
  TdTestChild child;
  int n_wrong = 0, n_written = 0, n_all = 0, n_planted = 0;
  void *library;

  snprintf (folder, sizeof folder, "%s", td_test_tmp ("."));
  write_calls (runs, n_runs);
  child = td_test_shell ("cd '%s' && xargs -P 2 -n 25 %s -Wall -Wextra -Werror -fPIC -c < list "
                         "&& sed 's/c$/o/' list | xargs cc -shared -lm -o all.so",
                         folder, compiler);
  assert_string_equal (child.err, "");
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  library = dlopen (td_test_tmp ("all.so"), RTLD_NOW);
  assert_non_null (library);
  n_halves = n_others = 0;
  for (int i = 0; i < n_rows; i++)
    {
      for (int r = 0; r < n_runs; r++)
        n_all += rows[i].run == runs[r];
      if (is_written (&rows[i], runs, n_runs))
        {
          n_written++;
          n_wrong += !call_agrees (library, &rows[i], &rows[i]);
          if (!rows[i].random)
            {
              PlantedCalls calls = { .library = library, .row = &rows[i] };

              n_planted += row_each_planted (&rows[i], call_planted, &calls);
              n_wrong += calls.n_wrong;
            }
        }
    }
  dlclose (library);
  print_message ("%d of %d rows are written as C, and called %d times with NaN or infinity; of "
                 "%d halves %d are the number beside\n",
                 n_written, n_all, n_planted, n_halves, n_others);
  assert_int_equal (n_all - n_written, N_WITHOUT_SCHEDULE * n_runs);
  assert_true (n_planted > 9 * n_written); /* six of each float input */
  assert_int_equal (n_wrong, 0);
}
