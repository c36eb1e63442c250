/* Kernels that count what they write, element by element: the numbers are those of the kernels
 * that do not, bit by bit, and what was counted is what the CPU finds in them.
 *
 * SPDX-License-Identifier: MIT */
#include "counting.h"

#include <stdio.h>
#include <string.h>

#include "compute/cpu/cpu.h"
#include "td-test.h"

typedef struct
{
  int kind;
  double p, q;
  bool accumulate;
} Formula;

/* --- element by element --- */

static TdStatus
call_unary (TdCudaLauncher *l, TdTensor *in, TdTensor *out, const void *context)
{
  const Formula *f = context;

  return td_cuda_unary (l, f->kind, f->p, f->q, &in[0], &out[0]);
}

/* Every formula once in each type; sizes around packs, and more than the grid's first round. */
static void
unary__counts_what_it_writes (void **state)
{
  static const int64_t sizes[] = { 1, 63, 257, 1024, 2051 };
  char what[120];

  for (int kind = 0; kind < TD_UNARY_N; kind++)
    for (int d = 0; d < 4; d++)
      {
        const Array a = { counting_floats[d],
                          { 1, { sizes[(kind + d) % 5] } },
                          (Spread)((kind + 3 * d) % SPREADS) };
        const Formula f = { kind, .p = 0.75, .q = 1.5 };

        snprintf (what, sizeof what, "unary %d, dtype %d, spread %d", kind,
                  (int)counting_floats[d], (int)a.spread);
        counting_check (what, &a, 1, &a, 1, 1, call_unary, &f);
      }
}

static void
unary__counts_large_arrays_and_those_with_nothing_finite (void **state)
{
  char what[120];

  for (int d = 0; d < 4; d++)
    for (int spread = 0; spread < SPREADS; spread++)
      {
        const Array a = { counting_floats[d], { 1, { 40013 } }, (Spread)spread };
        const Formula f = { TD_UNARY_RELU };
        const Formula copy = { TD_UNARY_COPY };

        snprintf (what, sizeof what, "dtype %d, spread %d", (int)counting_floats[d], spread);
        counting_check (what, &a, 1, &a, 1, 1, call_unary, d % 2 == 0 ? &f : &copy);
      }
}

/* An array that varies by a millionth of its numbers: sums about 0 would leave nothing of it.
 */
static void
counted__spread_keeps_its_digits_far_from_zero (void **state)
{
  const Array far = { TD_F64, { 1, { 5000 } }, FAR },
              same = { TD_F32, { 1, { 777 } }, CONSTANT };
  const Formula shift = { TD_UNARY_ADD_SCALAR, .p = 1e8 }, copy = { TD_UNARY_COPY };

  counting_check ("far", &far, 1, &far, 1, 1, call_unary, &shift);
  counting_check ("constant", &same, 1, &same, 1, 1, call_unary, &copy);
}

static void
unary__of_integers_and_of_nothing_is_not_counted (void **state)
{
  const Array whole = { TD_I32, { 1, { 100 } }, PLAIN }, none = { TD_F32, { 1, { 0 } }, PLAIN };
  const Formula f = { TD_UNARY_NEG };

  counting_check ("integers", &whole, 1, &whole, 1, 0, call_unary, &f);
  counting_check ("nothing", &none, 1, &none, 1, 0, call_unary, &f);
}

static TdStatus
call_dropout (TdCudaLauncher *l, TdTensor *in, TdTensor *out, const void *context)
{
  return td_cuda_dropout (l, (TdRngKey){ 7, 3 }, *(const double *)context, &in[0], &out[0]);
}

static void
dropout__counts_what_it_writes (void **state)
{
  static const double ratios[] = { 0.3, 0 };

  for (int d = 0; d < 4; d++)
    for (int i = 0; i < 2; i++)
      {
        const Array x = { counting_floats[d], { 1, { i == 0 ? 3001 : 6 } }, SPECIAL };

        counting_check ("dropout", &x, 1, &x, 1, 1, call_dropout, &ratios[i]);
      }
}

static TdStatus
call_cast (TdCudaLauncher *l, TdTensor *in, TdTensor *out, const void *context)
{
  return td_cuda_cast (l, &in[0], &out[0]);
}

static void
cast__counts_floating_numbers_from_all_types (void **state)
{
  char what[120];

  for (int from = TD_F32; from <= TD_BOOL; from++)
    for (int to = TD_F32; to <= TD_BOOL; to++)
      {
        const int counts = to == TD_F32 || to == TD_F64 || to == TD_F16 || to == TD_BF16;
        const Array in = { (TdDtype)from, { 1, { 3001 } }, SPECIAL },
                    out = { (TdDtype)to, { 1, { 3001 } }, PLAIN };

        snprintf (what, sizeof what, "cast of dtype %d to %d", from, to);
        counting_check (what, &in, 1, &out, 1, counts, call_cast, NULL);
      }
}

static TdStatus
call_binary (TdCudaLauncher *l, TdTensor *in, TdTensor *out, const void *context)
{
  const Formula *f = context;

  return td_cuda_binary (l, f->kind, &in[0], &in[1], &out[0], f->accumulate);
}

static TdStatus
call_unary_grad (TdCudaLauncher *l, TdTensor *in, TdTensor *out, const void *context)
{
  const Formula *f = context;

  return td_cuda_unary_grad (l, f->kind, f->p, &in[0], &in[1], &out[0], f->accumulate);
}

/* What is added to counts as the sum. */
static void
binary__counts_what_it_writes_and_adds (void **state)
{
  static const int64_t sizes[] = { 1, 40, 2051, 515 };
  char what[120];

  for (int kind = 0; kind < TD_BINARY_N; kind++)
    for (int d = 0; d < 4; d++)
      {
        const Array a = { counting_floats[d],
                          { 1, { sizes[(kind + d) % 4] } },
                          (Spread)((kind + d) % SPREADS) };
        const Array in[2] = { a, a };
        const Formula f = { kind, .accumulate = (kind + d) % 2 == 0 };

        snprintf (what, sizeof what, "binary %d, dtype %d", kind, (int)counting_floats[d]);
        counting_check (what, in, 2, &a, 1, 1, call_binary, &f);
      }
}

static void
binary__counts_where_operands_are_repeated (void **state)
{
  const Array x = { TD_F32, { 2, { 33, 64 } }, SPECIAL },
              row = { TD_F32, { 1, { 64 } }, PLAIN };
  const Array column = { TD_F32, { 2, { 33, 1 } }, PLAIN };
  const Array odd = { TD_BF16, { 3, { 5, 7, 9 } }, SPECIAL };
  const Array middle = { TD_BF16, { 3, { 1, 7, 1 } }, PLAIN };
  const Array first[2] = { x, row }, second[2] = { column, x }, third[2] = { odd, middle };
  const Formula f = { TD_BINARY_DIV, .accumulate = true };

  counting_check ("row", first, 2, &x, 1, 1, call_binary, &f);
  counting_check ("column", second, 2, &x, 1, 1, call_binary, &f);
  counting_check ("middle axis", third, 2, &odd, 1, 1, call_binary, &f);
}

static void
unary_grad__counts_what_it_writes_and_adds (void **state)
{
  char what[120];

  for (int kind = TD_UNARY_LEAKY_RELU; kind < TD_UNARY_N; kind++)
    for (int d = 0; d < 4; d++)
      {
        const Array a = { counting_floats[d],
                          { 1, { kind % 2 == 0 ? 1027 : 64 } },
                          (Spread)((kind + d) % SPREADS) };
        const Array in[2] = { a, a };
        const Formula f = { kind, .p = 0.75, .accumulate = d % 2 == kind % 2 };

        snprintf (what, sizeof what, "gradient of unary %d, dtype %d", kind,
                  (int)counting_floats[d]);
        counting_check (what, in, 2, &a, 1, 1, call_unary_grad, &f);
      }
}

/* --- moved --- */

static TdStatus
call_gather (TdCudaLauncher *l, TdTensor *in, TdTensor *out, const void *context)
{
  return td_cuda_gather_rows (l, &in[0], &in[1], &out[0]);
}

/* Rows of whole packs, of others, and of single numbers; an index out of range gives zeros. */
static void
gather__counts_the_rows_that_it_writes (void **state)
{
  static const int64_t columns[] = { 64, 6, 7, 1 };
  const Array index = { TD_I32, { 1, { 37 } }, PLAIN };
  char what[120];

  for (int d = 0; d < 4; d++)
    for (int c = 0; c < 4; c++)
      {
        const Array w = { counting_floats[d], { 2, { 4, columns[c] } }, SPECIAL };
        const Array in[2] = { w, index },
                    y = { counting_floats[d], { 2, { 37, columns[c] } }, PLAIN };

        snprintf (what, sizeof what, "rows of %d, dtype %d", (int)columns[c], (int)w.dtype);
        counting_check (what, in, 2, &y, 1, 1, call_gather, NULL);
      }
}

static TdStatus
call_select (TdCudaLauncher *l, TdTensor *in, TdTensor *out, const void *context)
{
  return td_cuda_select (l, &in[0], &in[1], &in[2], &out[0]);
}

static void
select__counts_what_it_chooses (void **state)
{
  const Array whole = { TD_I32, { 1, { 9 } }, PLAIN };
  const Array integers[3] = { whole, whole, whole };
  char what[120];

  for (int d = 0; d < 4; d++)
    {
      const TdDtype dtype = counting_floats[d];
      const Array x = { dtype, { 2, { 33, 64 } }, SPECIAL },
                  row = { dtype, { 1, { 64 } }, PLAIN };
      const Array in[3] = { { TD_I32, x.shape, PLAIN }, x, row };

      snprintf (what, sizeof what, "a choice, dtype %d", (int)dtype);
      counting_check (what, in, 3, &x, 1, 1, call_select, NULL);
    }
  counting_check ("a choice of integers", integers, 3, &whole, 1, 0, call_select, NULL);
}

/* Parts and arrays that are read come out of one launch, each at its place. */
static void
stats__join_parts_beside_arrays_that_are_read (void **state)
{
  TdShape shape = { 1, { 700 } };
  const Array a = { TD_F32, shape, SPECIAL };
  TdCudaLauncher *l = rig_launcher ();
  TdCudaStats *results = rig_guarded (3 * sizeof *results, true);
  TdTensor x = counting_tensor (&a, &shape), y = counting_tensor (&a, &shape);
  const CountingParts *taken;
  TdStats s, of_x, of_y;
  int n;

  counting_begin (l);
  assert_int_equal (td_cuda_unary (l, TD_UNARY_EXP, 0, 0, &x, &y), TD_OK);
  taken = counting_end (l, &n);
  assert_int_equal (n, 1);
  const TdCudaStatsOf of[3] = { { x.data, 700, TD_F32, 0, 0, &results[0] },
                                { NULL, 700, TD_F32, 5, 1, &results[1], taken[0].parts,
                                  taken[0].n_parts }, /* not even looked at */
                                { x.data, 700, TD_F32, 0, 0, &results[2] } };
  assert_int_equal (td_cuda_stats (l, of, 3), TD_OK);
  assert_int_equal (td__cpu_stats (NULL, &x, 0, 0, &of_x), TD_OK);
  assert_int_equal (td__cpu_stats (NULL, &y, 0, 0, &of_y), TD_OK);
  for (int i = 0; i < 3; i++)
    {
      const TdStats *c = i == 1 ? &of_y : &of_x;

      td_cuda_stats_finish (&results[i], &s);
      assert_memory_equal (&s.n, &c->n, 6 * sizeof s.n);
      assert_memory_equal (s.exponent, c->exponent, sizeof s.exponent);
      counting_assert_close ("beside", "the greatest", s.max, c->max, 0);
    }
  counting_release (&taken[0]);
  rig_release (results, 3 * sizeof *results);
  counting_tensor_release (&x);
  counting_tensor_release (&y);
}

static void
kernels__that_count_have_all_run (void **state)
{
  static const char *const words[]
      = { "td_count_unary_",  "td_count_binary_", "td_count_cast_",
          "td_count_gather_", "td_count_select_", "td_count_dropout_" };

  rig_all_ran (words, (int)(sizeof words / sizeof words[0]));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (unary__counts_what_it_writes),
    cmocka_unit_test (unary__counts_large_arrays_and_those_with_nothing_finite),
    cmocka_unit_test (counted__spread_keeps_its_digits_far_from_zero),
    cmocka_unit_test (unary__of_integers_and_of_nothing_is_not_counted),
    cmocka_unit_test (dropout__counts_what_it_writes),
    cmocka_unit_test (cast__counts_floating_numbers_from_all_types),
    cmocka_unit_test (binary__counts_what_it_writes_and_adds),
    cmocka_unit_test (binary__counts_where_operands_are_repeated),
    cmocka_unit_test (unary_grad__counts_what_it_writes_and_adds),
    cmocka_unit_test (gather__counts_the_rows_that_it_writes),
    cmocka_unit_test (select__counts_what_it_chooses),
    cmocka_unit_test (stats__join_parts_beside_arrays_that_are_read),
    cmocka_unit_test (kernels__that_count_have_all_run),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
