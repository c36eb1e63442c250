/* The CPU's reductions, walks, index kernels, updates, statistics and threads, called directly.
 * SPDX-License-Identifier: MIT */
#include "compute/cpu/cpu.h"
#include "td-test.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static TdTensor
tensor (void *data, TdShape *shape, TdDtype dtype)
{
  return (TdTensor){ data, shape, td_shape_size (shape), dtype };
}

static void
sum__does_not_lose_what_it_adds (void **state)
{
  enum
  {
    N = 10000000
  };
  float *x = malloc (N * sizeof *x), sum = 0;
  TdShape shape = TD_SHAPE (N), scalar = { 0 };
  TdTensor tx = tensor (x, &shape, TD_F32), ty = tensor (&sum, &scalar, TD_F32);

  assert_non_null (x);
  for (int i = 0; i < N; i++)
    x[i] = 0.1f;
  td__cpu_reduce (NULL, TD_REDUCE_SUM, 1, &tx, &ty, false);
  /* A lane adds 16 floats before it goes to double: the error is theirs, whatever N is. */
  assert_true (fabs ((double)sum / (N * (double)0.1f) - 1) < 16 * 0x1p-24);
  td__cpu_reduce (NULL, TD_REDUCE_SUM_SQUARES, 1, &tx, &ty, false);
  assert_true (fabs ((double)sum / (N * (double)0.1f * (double)0.1f) - 1) < 1e-6);
  free (x);
}

static void
sum_squares__of_large_floats_does_not_overflow_inside (void **state)
{
  float x[] = { 3e18f, 4e18f }, y = 0;
  TdShape shape = TD_SHAPE (2), scalar = { 0 };
  TdTensor tx = tensor (x, &shape, TD_F32), ty = tensor (&y, &scalar, TD_F32);

  td__cpu_reduce (NULL, TD_REDUCE_SUM_SQUARES, 1, &tx, &ty, false);
  assert_true (fabs ((double)y / 25e36 - 1) < 1e-6);
}

/* Any axes of a four-dimensional array, against plain loops, with sizes that leave tails. */
static void
reduce__agrees_with_plain_loops_over_any_axes (void **state)
{
  TdShape shape = TD_SHAPE (3, 67, 5, 33);
  int64_t n = td_shape_size (&shape);
  double *x = malloc ((size_t)n * sizeof *x), *want = malloc ((size_t)n * sizeof *want);
  double *got = malloc ((size_t)n * sizeof *got);
  TdTensor tx = tensor (x, &shape, TD_F64);

  for (int64_t i = 0; i < n; i++)
    x[i] = sin ((double)i * 0.37) * 2;
  for (uint32_t axes = 0; axes < 16; axes++)
    {
      TdShape out = { 0 };
      TdTensor ty;

      for (int d = 0; d < 4; d++)
        if (!(axes >> d & 1))
          out.dim[out.ndim++] = shape.dim[d];
      ty = tensor (got, &out, TD_F64);
      for (int pass = 0; pass < 2; pass++)
        {
          for (int64_t o = 0; o < ty.size; o++)
            want[o] = pass == 0 ? 0 : -INFINITY;
          for (int64_t i = 0; i < n; i++)
            {
              int64_t place[4], rest = i, o = 0;

              for (int d = 3; d >= 0; rest /= shape.dim[d], d--)
                place[d] = rest % shape.dim[d];
              for (int d = 0; d < 4; d++)
                if (!(axes >> d & 1))
                  o = o * shape.dim[d] + place[d];
              want[o] = pass == 0 ? want[o] + x[i] : fmax (want[o], x[i]);
            }
          td__cpu_reduce (NULL, pass == 0 ? TD_REDUCE_SUM : TD_REDUCE_MAX, axes, &tx, &ty,
                          false);
          for (int64_t o = 0; o < ty.size; o++)
            assert_true (fabs (got[o] - want[o]) < 1e-10);
        }
      /* Adding into what is there. */
      for (int64_t o = 0; o < ty.size; o++)
        got[o] = 1;
      td__cpu_reduce (NULL, TD_REDUCE_MAX, axes, &tx, &ty, true);
      for (int64_t o = 0; o < ty.size; o++)
        assert_true (got[o] == want[o] + 1);
    }
  free (x);
  free (want);
  free (got);
}

static void
logsumexp__neither_overflows_nor_loses_infinities (void **state)
{
  static const struct
  {
    double x[3], want;
  } rows[] = { { { 1000, 1000, -1000 }, 1000.6931471805599 },
               { { -INFINITY, -INFINITY, -INFINITY }, -INFINITY },
               { { -INFINITY, 2, -INFINITY }, 2 },
               { { INFINITY, 0, 1 }, INFINITY },
               { { NAN, 0, 1 }, NAN } };
  TdShape shape = TD_SHAPE (3), scalar = { 0 };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    {
      double x[3], y = 0;
      TdTensor tx = tensor (x, &shape, TD_F64), ty = tensor (&y, &scalar, TD_F64);

      memcpy (x, rows[i].x, sizeof x);
      td__cpu_reduce (NULL, TD_REDUCE_LOGSUMEXP, 1, &tx, &ty, false);
      if (isnan (rows[i].want))
        assert_true (isnan (y));
      else
        assert_true (y == rows[i].want || fabs (y - rows[i].want) < 1e-12);
    }
}

static void
argmax__takes_the_first_of_equals_and_nan_before_all (void **state)
{
  float x[3][4] = { { 1, 3, 3, 2 }, { 5, NAN, 9, NAN }, { -1, -1, -1, -1 } };
  int32_t y[3];
  TdShape shape = TD_SHAPE (3, 4), out = TD_SHAPE (3);
  TdTensor tx = tensor (x, &shape, TD_F32), ty = tensor (y, &out, TD_I32);

  td__cpu_reduce (NULL, TD_REDUCE_ARGMAX, 2, &tx, &ty, false);
  assert_int_equal (y[0], 1);
  assert_int_equal (y[1], 1);
  assert_int_equal (y[2], 0);
}

/* A transpose larger than its tiles, there and back. */
static void
strided__transposes_and_writes_back (void **state)
{
  enum
  {
    B = 3,
    M = 131,
    N = 77
  };
  static float x[B][M][N], y[B][N][M], z[B][M][N];
  float *flat = &x[0][0][0];
  TdShape shape = TD_SHAPE (B, M, N), turned = TD_SHAPE (B, N, M);
  TdTensor tx = tensor (x, &shape, TD_F32), ty = tensor (y, &turned, TD_F32);
  TdTensor tz = tensor (z, &shape, TD_F32);
  TdStrides walk = { 0, { M * N, 1, N } };

  for (int i = 0; i < B * M * N; i++)
    flat[i] = (float)i;
  td__cpu_strided (NULL, TD_STRIDED_READ, &tx, &walk, &ty);
  for (int b = 0; b < B; b++)
    for (int j = 0; j < N; j++)
      for (int i = 0; i < M; i++)
        assert_true (y[b][j][i] == x[b][i][j]);
  td__cpu_strided (NULL, TD_STRIDED_WRITE, &ty, &walk, &tz);
  assert_memory_equal (x, z, sizeof x);
  td__cpu_strided (NULL, TD_STRIDED_ADD, &ty, &walk, &tz);
  assert_true (z[2][130][76] == 2 * x[2][130][76]);
}

static void
rows__are_gathered_and_added_in_order (void **state)
{
  float w[4][2] = { { 0, 1 }, { 2, 3 }, { 4, 5 }, { 6, 7 } }, y[3][2], g[4][2] = { { 0 } };
  int64_t index[3] = { 3, 0, 3 };
  TdShape ws = TD_SHAPE (4, 2), is = TD_SHAPE (3), ys = TD_SHAPE (3, 2);
  TdTensor tw = tensor (w, &ws, TD_F32), ti = tensor (index, &is, TD_I64);
  TdTensor ty = tensor (y, &ys, TD_F32), tg = tensor (g, &ws, TD_F32);
  int64_t place, value;

  td__cpu_gather_rows (NULL, &tw, &ti, &ty);
  assert_true (y[0][1] == 7 && y[1][0] == 0 && y[2][0] == 6);
  td__cpu_scatter_rows_add (NULL, &ti, &ty, &tg);
  assert_true (g[3][0] == 12 && g[3][1] == 14 && g[0][1] == 1 && g[1][0] == 0);
  td__cpu_check_index (NULL, &ti, 4, -1, &place, &value);
  assert_int_equal (place, -1);
  td__cpu_check_index (NULL, &ti, 3, -1, &place, &value);
  assert_int_equal (place, 0);
  assert_int_equal (value, 3);
  td__cpu_check_index (NULL, &ti, 3, 3, &place, &value);
  assert_int_equal (place, -1);
}

/* Chainer's formulas, in double. */
static void
updates__follow_chainers_arithmetic (void **state)
{
  double p[2], g[2] = { 0.5, -2 }, s[3][2];
  TdShape shape = TD_SHAPE (2);
  TdTensor t[5]
      = { tensor (p, &shape, TD_F64), tensor (g, &shape, TD_F64), tensor (s[0], &shape, TD_F64),
          tensor (s[1], &shape, TD_F64), tensor (s[2], &shape, TD_F64) };
  TdTensor *arrays[] = { &t[0], &t[1], &t[2], &t[3], &t[4] };
  TdUpdate u = { .lr = 0.1,
                 .momentum = 0.9,
                 .alpha_t = 0.01,
                 .beta1 = 0.9,
                 .beta2 = 0.99,
                 .eps = 1e-8,
                 .eta = 1,
                 .weight_decay = 0.05 };

  for (int i = 0; i < 2; i++)
    {
      p[i] = 1;
      s[0][i] = 0.25;
      s[1][i] = 4;
      s[2][i] = 9;
    }
  td__cpu_update (NULL, TD_UPDATE_SGD, &u, arrays, 2);
  assert_true (fabs (p[0] - 0.95) < 1e-15 && fabs (p[1] - 1.2) < 1e-15);
  td__cpu_update (NULL, TD_UPDATE_MOMENTUM_SGD, &u, arrays, 3);
  assert_true (fabs (s[0][0] - 0.175) < 1e-15 && fabs (p[0] - 1.125) < 1e-15);
  for (int amsgrad = 0; amsgrad < 2; amsgrad++)
    {
      double m = s[0][1] + 0.1 * (g[1] - s[0][1]), v = s[1][1] + 0.01 * (4 - s[1][1]);
      double root = sqrt (amsgrad ? 9 : v);
      double want = p[1] - (0.01 * m / (root + 1e-8) + 0.05 * p[1]);

      assert_int_equal (td__cpu_update (NULL, amsgrad ? TD_UPDATE_AMSGRAD : TD_UPDATE_ADAM, &u,
                                        arrays, amsgrad ? 5 : 4),
                        TD_OK);
      assert_true (fabs (s[0][1] - m) < 1e-15 && fabs (s[1][1] - v) < 1e-15);
      assert_true (fabs (p[1] - want) < 1e-15);
    }
}

static void
stats__count_and_measure_exactly (void **state)
{
  enum
  {
    N = 100003
  };
  static float x[N];
  TdShape shape = TD_SHAPE (N);
  TdTensor tx = tensor (x, &shape, TD_F32);
  double sum = 0, squares = 0, m2 = 0, low = INFINITY, high = -INFINITY;
  uint64_t bins[32] = { 0 }, sampled = 0, finite = 0, zero = 0;
  TdStats s;

  for (int i = 0; i < N; i++)
    x[i] = i % 1000 == 7 ? 0 : 1000 + (float)sin (i * 0.1) * (float)pow (2, i % 40 - 20);
  x[0] = x[N - 1] = NAN;
  x[5] = INFINITY;
  x[6] = x[7] = -INFINITY;
  for (int i = 0; i < N; i++)
    {
      double v = (double)x[i];

      if (!isfinite (x[i]))
        continue;
      finite++;
      zero += v == 0;
      sum += v;
      squares += v * v;
      low = fmin (low, v);
      high = fmax (high, v);
      if (v != 0)
        bins[ilogb (v) < -24 ? 0 : ilogb (v) > 7 ? 31 : ilogb (v) + 24]++;
    }
  for (int i = 0; i < N; i++)
    if (isfinite (x[i]))
      m2 += pow ((double)x[i] - sum / (double)finite, 2);
  assert_int_equal (td__cpu_stats (NULL, &tx, UINT64_MAX, 3, &s), TD_OK);
  assert_int_equal (s.n, N);
  assert_int_equal (s.n_sampled, N);
  assert_int_equal (s.n_nan, 2);
  assert_int_equal (s.n_pos_inf, 1);
  assert_int_equal (s.n_neg_inf, 2);
  assert_int_equal (s.n_zero, zero);
  assert_true (s.min == low && s.max == high);
  assert_true (fabs (s.mean - sum / (double)finite) < 1e-9 * sqrt (m2 / (double)finite));
  assert_true (fabs (s.m2 - m2) < 1e-9 * m2);
  assert_true (fabs (s.sum_squares - squares) < 1e-9 * squares);
  for (int b = 0; b < 32; b++)
    assert_int_equal (s.exponent[b], bins[b]);

  /* A sample: as many as asked for at most, the rest as before. */
  td__cpu_stats (NULL, &tx, 1000, 3, &s);
  assert_true (s.n_sampled <= 1000 && s.n_sampled > 900);
  for (int b = 0; b < 32; b++)
    sampled += s.exponent[b];
  assert_true (sampled <= s.n_sampled && sampled + 20 > s.n_sampled);
  assert_int_equal (s.n_nan, 2);
}

/* Squares of these are outside float's range. */
static void
stats__hold_for_tiny_and_huge_numbers (void **state)
{
  enum
  {
    N = 20000
  };
  static const float scales[] = { 1e-30f, 1e-22f, 1e-13f, 1e22f };
  static float x[N];
  TdShape shape = TD_SHAPE (N);
  TdTensor tx = tensor (x, &shape, TD_F32);
  TdStats s;

  for (size_t k = 0; k < sizeof scales / sizeof scales[0]; k++)
    {
      double squares = 0;

      for (int i = 0; i < N; i++)
        {
          x[i] = scales[k] * (float)sin (i * 0.1);
          squares += (double)x[i] * (double)x[i];
        }
      assert_int_equal (td__cpu_stats (NULL, &tx, 1000, 3, &s), TD_OK);
      assert_true (fabs (s.sum_squares - squares) < 1e-7 * squares);
      assert_true (s.n_zero == 1 && s.n_nan == 0 && s.n_pos_inf == 0);
    }
}

static void
stats__of_nothing_finite_have_no_moments (void **state)
{
  float x[] = { NAN, INFINITY };
  TdShape shape = TD_SHAPE (2), none = TD_SHAPE (0);
  TdTensor tx = tensor (x, &shape, TD_F32), t0 = tensor (x, &none, TD_F32);
  TdStats s;

  td__cpu_stats (NULL, &tx, 10, 0, &s);
  assert_true (isnan (s.mean) && isnan (s.min) && s.n_nan == 1 && s.n_pos_inf == 1);
  td__cpu_stats (NULL, &t0, 10, 0, &s);
  assert_true (isnan (s.mean) && s.n == 0 && s.n_sampled == 0);
}

/* Moments are made about the first element, whatever it is. */
static void
stats__keep_their_digits_beside_an_outlier (void **state)
{
  enum
  {
    N = 30000
  };
  static double x[N];
  TdShape shape = TD_SHAPE (N);
  TdTensor tx = tensor (x, &shape, TD_F64);
  TdStats s;

  for (int i = 0; i < N; i++)
    x[i] = i == 0 ? 1e20 : i == N - 2 ? (double)-INFINITY : 1;
  td__cpu_stats (NULL, &tx, 100, 3, &s);
  assert_true (fabs (s.sum_squares - 1e40) < 1e-9 * 1e40);
  assert_int_equal (s.n_neg_inf, 1);
  x[0] = 1e-20;
  td__cpu_stats (NULL, &tx, 100, 3, &s);
  assert_true (fabs (s.sum_squares - (N - 2)) < 1e-9 * N);
  assert_true (fabs (s.mean - (double)(N - 2) / (N - 1)) < 1e-9);
}

/* --- threads --- */

static void
count_piece (int64_t begin, int64_t end, int worker, void *context)
{
  atomic_int *hits = context;

  assert_true (td__cpu_in_parallel () || td__cpu_threads () == 1);
  assert_in_range (worker, 0, td__cpu_threads () - 1);
  for (int64_t i = begin; i < end; i++)
    atomic_fetch_add (&hits[i], 1);
}

static void
threads__do_every_piece_once (void **state)
{
  enum
  {
    N = 10007
  };
  static atomic_int hits[N];

  for (int threads = 1; threads <= 5; threads++)
    {
      td__cpu_set_threads (threads);
      for (int round = 0; round < 200; round++)
        td__cpu_parallel (N, 97, count_piece, hits);
      for (int i = 0; i < N; i++)
        assert_int_equal (atomic_exchange (&hits[i], 0), 200);
      assert_false (td__cpu_in_parallel ());
    }
}

static void
nested_piece (int64_t begin, int64_t end, int worker, void *context)
{
  td__cpu_parallel (100, 10, count_piece, (atomic_int *)context + 100 * begin);
}

static void
threads__run_nested_regions_serially (void **state)
{
  static atomic_int hits[1000];

  td__cpu_set_threads (3);
  td__cpu_parallel (10, 1, nested_piece, hits);
  for (int i = 0; i < 1000; i++)
    assert_int_equal (hits[i], 1);
}

static void
threads__work_in_a_forked_child (void **state)
{
  static atomic_int hits[1000];
  pid_t pid;
  int status = 0;

  td__cpu_set_threads (3);
  td__cpu_parallel (1000, 10, count_piece, hits);
  pid = fork ();
  if (pid == 0)
    {
      td__cpu_parallel (1000, 10, count_piece, hits);
      for (int i = 0; i < 1000; i++)
        if (hits[i] != 2)
          _exit (1);
      _exit (0);
    }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
}

/* Everything that is split over threads, hashed by its bits. */
static void
results__do_not_depend_on_the_number_of_threads (void **state)
{
  enum
  {
    R = 301,
    C = 1003,
    N = R * C
  };
  static float x[N], got[4 * N + R + C + 1], want[4 * N + R + C + 1];
  TdShape shape = TD_SHAPE (R, C), rows = TD_SHAPE (R), columns = TD_SHAPE (C), scalar = { 0 };
  TdShape turned = TD_SHAPE (C, R);
  TdTensor tx = tensor (x, &shape, TD_F32);
  TdTensor parts[] = { tensor (got, &shape, TD_F32),
                       tensor (got + N, &shape, TD_F32),
                       tensor (got + 2 * N, &turned, TD_F32),
                       tensor (got + 3 * N, &shape, TD_F32),
                       tensor (got + 4 * N, &rows, TD_F32),
                       tensor (got + 4 * N + R, &columns, TD_F32),
                       tensor (got + 4 * N + R + C, &scalar, TD_F32) };
  TdStrides walk = { 0, { 1, C } };

  for (int i = 0; i < N; i++)
    x[i] = (float)sin (i * 0.001) * 3;
  for (int threads = 1; threads <= 4; threads++)
    {
      td__cpu_set_threads (threads);
      td__cpu_unary (NULL, TD_UNARY_EXP, 0, 0, &tx, &parts[0]);
      td__cpu_random (NULL, TD_RANDOM_NORMAL, (TdRngKey){ 1, 2 }, 0, &parts[1]);
      td__cpu_strided (NULL, TD_STRIDED_READ, &tx, &walk, &parts[2]);
      td__cpu_reduce (NULL, TD_REDUCE_SUM, 2, &tx, &parts[4], false);
      td__cpu_reduce (NULL, TD_REDUCE_SUM, 1, &tx, &parts[5], false);
      td__cpu_reduce (NULL, TD_REDUCE_SUM, 3, &tx, &parts[6], false);
      td__cpu_binary (NULL, TD_BINARY_MUL, &tx, &parts[5], &parts[3], false);
      if (threads == 1)
        memcpy (want, got, sizeof got);
      assert_memory_equal (want, got, sizeof got);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (sum__does_not_lose_what_it_adds),
    td_test (sum_squares__of_large_floats_does_not_overflow_inside),
    td_test (reduce__agrees_with_plain_loops_over_any_axes),
    td_test (logsumexp__neither_overflows_nor_loses_infinities),
    td_test (argmax__takes_the_first_of_equals_and_nan_before_all),
    td_test (strided__transposes_and_writes_back),
    td_test (rows__are_gathered_and_added_in_order),
    td_test (updates__follow_chainers_arithmetic),
    td_test (stats__count_and_measure_exactly),
    td_test (stats__hold_for_tiny_and_huge_numbers),
    td_test (stats__keep_their_digits_beside_an_outlier),
    td_test (stats__of_nothing_finite_have_no_moments),
    td_test (threads__do_every_piece_once),
    td_test (threads__run_nested_regions_serially),
    td_test (threads__work_in_a_forked_child),
    td_test (results__do_not_depend_on_the_number_of_threads),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
