/* Kernels that count, beside those that do not, and beside the CPU's statistics.
 *
 * SPDX-License-Identifier: MIT */
#include "counting.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compute/cpu/cpu.h"
#include "scalar-ops.h"
#include "td-test.h"

const TdDtype counting_floats[4] = { TD_F32, TD_F64, TD_F16, TD_BF16 };

/* --- a launcher that counts --- */

static CountingParts taken[COUNTING_MAX_OUT];
static int n_taken;

static TdCudaStats *
take (TdCudaLauncher *l, TdCudaKernel *kernel, const TdTensor *y, int64_t blocks)
{
  TdCudaStats *parts = rig_guarded ((size_t)blocks * sizeof *parts, true);

  assert_true (n_taken < COUNTING_MAX_OUT);
  taken[n_taken].parts = parts;
  taken[n_taken].n_parts = blocks;
  taken[n_taken++].of = y->data;
  return parts;
}

void
counting_begin (TdCudaLauncher *l)
{
  l->count = take;
  n_taken = 0;
}

const CountingParts *
counting_end (TdCudaLauncher *l, int *n)
{
  l->count = NULL;
  *n = n_taken;
  return taken;
}

void
counting_release (const CountingParts *parts)
{
  rig_release (parts->parts, (size_t)parts->n_parts * sizeof (TdCudaStats));
}

/* --- numbers --- */

static void
put (TdTensor *x, int64_t i, double v)
{
  if (x->dtype == TD_F32)
    ((float *)x->data)[i] = (float)v;
  else if (x->dtype == TD_F64)
    ((double *)x->data)[i] = v;
  else if (x->dtype == TD_F16)
    ((uint16_t *)x->data)[i] = td_f16_of_float ((float)v);
  else if (x->dtype == TD_BF16)
    ((uint16_t *)x->data)[i] = td_bf16_of_float ((float)v);
  else if (x->dtype == TD_I32)
    ((int32_t *)x->data)[i] = isfinite (v) && fabs (v) < 1e9 ? (int32_t)v : 7;
  else if (x->dtype == TD_I64)
    ((int64_t *)x->data)[i] = isfinite (v) && fabs (v) < 1e9 ? (int64_t)v : 7;
  else
    ((uint8_t *)x->data)[i] = isfinite (v) && fabs (v) < 1e9 ? (uint8_t)(int64_t)v : 7;
}

static void
fill (TdTensor *x, Spread spread)
{
  static const double special[] = { NAN, INFINITY, -INFINITY, 0.0, -0.0, 1e-42, 1e-7, -3e38 };

  for (int64_t i = 0; i < x->size; i++)
    {
      const double u = (double)(rig_random (0) >> 11) * 0x1p-53;

      if (spread == CONSTANT)
        put (x, i, 0.7);
      else if (spread == NOTHING_FINITE)
        put (x, i, special[rig_random (3)]);
      else if (spread == SPECIAL && (i == 0 || rig_random (8) == 0))
        put (x, i, special[i == 0 ? 0 : rig_random (8)]);
      else
        put (x, i, spread == FAR ? 1000 + u : 8 * u - 4);
    }
}

/* --- one call --- */

void
counting_assert_close (const char *what, const char *name, double a, double b, double size)
{
  if (!(isnan (a) && isnan (b)) && a != b && !(fabs (a - b) <= 1e-12 * size))
    fail_msg ("%s: %s is %.17g, the CPU's %.17g", what, name, a, b);
}

/* The CPU's sums of float are rounded more than ours are. */
static void
sum_again (const TdTensor *y, TdStats *c)
{
  long double n = 0, sum = 0, m2 = 0, squares = 0;

  for (int pass = 0; pass < 2; pass++)
    for (int64_t i = 0; i < y->size; i++)
      {
        const long double v = rig_at (y, i);

        if (!isfinite (v))
          continue;
        n += pass == 0;
        sum += pass == 0 ? v : 0;
        squares += pass == 0 ? v * v : 0;
        m2 += pass == 1 ? (v - sum / n) * (v - sum / n) : 0;
      }
  if (n == 0)
    return;
  c->mean = (double)(sum / n);
  c->m2 = (double)m2;
  c->sum_squares = (double)squares;
}

/* Of y, which is memory of the host here. */
static void
assert_counted (const char *what, const TdTensor *y, int k)
{
  TdCudaStats *result = rig_guarded (sizeof *result, true);
  const TdCudaStatsOf of = { .data = y->data,
                             .size = y->size,
                             .dtype = y->dtype,
                             .max_samples = 1, /* parts are of all */
                             .parts = taken[k].parts,
                             .n_parts = taken[k].n_parts,
                             .result = result };
  TdStats s, c;

  assert_int_equal (td_cuda_stats (rig_launcher (), &of, 1), TD_OK);
  td_cuda_stats_finish (result, &s);
  assert_int_equal (td__cpu_stats (NULL, y, 0, 0, &c), TD_OK);
  sum_again (y, &c);
  if (memcmp (&s.n, &c.n, 6 * sizeof s.n) != 0
      || memcmp (s.exponent, c.exponent, sizeof s.exponent) != 0)
    fail_msg ("%s: %d numbers (%d sampled), %d zeros, %d NaN, %d and %d infinities; "
              "the CPU's %d (%d), %d, %d, %d and %d, or exponents differ",
              what, (int)s.n, (int)s.n_sampled, (int)s.n_zero, (int)s.n_nan, (int)s.n_pos_inf,
              (int)s.n_neg_inf, (int)c.n, (int)c.n_sampled, (int)c.n_zero, (int)c.n_nan,
              (int)c.n_pos_inf, (int)c.n_neg_inf);
  counting_assert_close (what, "the least", s.min, c.min, 0);
  counting_assert_close (what, "the greatest", s.max, c.max, 0);
  counting_assert_close (what, "the mean", s.mean, c.mean, fmax (fabs (c.min), fabs (c.max)));
  counting_assert_close (what, "the spread", s.m2, c.m2, c.m2 + 1e-9 * c.sum_squares);
  counting_assert_close (what, "the sum of squares", s.sum_squares, c.sum_squares,
                         c.sum_squares);
  rig_release (result, sizeof *result);
}

TdTensor
counting_tensor (const Array *a, TdShape *shape)
{
  TdTensor x = { .shape = shape, .size = 1, .dtype = a->dtype };

  *shape = a->shape;
  for (int i = 0; i < shape->ndim; i++)
    x.size *= shape->dim[i];
  x.data = rig_guarded ((size_t)x.size * rig_bytes_of (x.dtype), true);
  fill (&x, a->spread);
  return x;
}

void
counting_tensor_release (TdTensor *x)
{
  rig_release (x->data, (size_t)x->size * rig_bytes_of (x->dtype));
}

/* To the bit, but that the host's compiler has its own idea of the sign of a NaN. */
static bool
same_numbers (const TdTensor *a, const TdTensor *b)
{
  const size_t each = rig_bytes_of (a->dtype);

  for (int64_t i = 0; i < a->size; i++)
    if (memcmp ((const char *)a->data + i * (int64_t)each,
                (const char *)b->data + i * (int64_t)each, each)
            != 0
        && !(isnan (rig_at (a, i)) && isnan (rig_at (b, i))))
      return false;
  return true;
}

static int
place_of (const void *data, const TdTensor *y, int n)
{
  for (int i = 0; i < n; i++)
    if (y[i].data == data)
      return i;
  fail_msg ("what is counted is no output");
  return 0;
}

void
counting_check (const char *what, const Array *in, int n_in, const Array *out, int n_out,
                int counts, CountingCall call, const void *context)
{
  TdCudaLauncher *l = rig_launcher ();
  TdShape shapes[COUNTING_MAX_IN + 2 * COUNTING_MAX_OUT];
  TdTensor x[COUNTING_MAX_IN], plain[COUNTING_MAX_OUT], y[COUNTING_MAX_OUT];
  static int turn;

  turn++;
  for (int i = 0; i < n_in; i++)
    x[i] = counting_tensor (&in[i], &shapes[i]);
  for (int i = 0; i < n_out; i++)
    {
      plain[i] = counting_tensor (&out[i], &shapes[COUNTING_MAX_IN + i]);
      y[i] = counting_tensor (&out[i], &shapes[COUNTING_MAX_IN + COUNTING_MAX_OUT + i]);
    }
  for (int order = 0; order < TD_EMU_ORDERS; order++)
    {
      char text[160];

      if (!rig_tries ((TdEmuOrder)order, turn))
        continue;
      for (int i = 0; i < n_out; i++)
        {
          fill (&plain[i], PLAIN);
          memcpy (y[i].data, plain[i].data, (size_t)y[i].size * rig_bytes_of (y[i].dtype));
        }
      td_emu_order ((TdEmuOrder)order);
      l->count = NULL;
      assert_int_equal (call (l, x, plain, context), TD_OK);
      counting_begin (l);
      assert_int_equal (call (l, x, y, context), TD_OK);
      l->count = NULL;
      for (int i = 0; i < n_out; i++)
        if (!same_numbers (&y[i], &plain[i]))
          fail_msg ("%s: other numbers where they are counted", what);
      snprintf (text, sizeof text, "%s, order %d", what, order);
      if (n_taken != counts)
        fail_msg ("%s: %d arrays are counted", text, n_taken);
      for (int i = 0; i < counts; i++)
        {
          assert_counted (text, &y[place_of (taken[i].of, y, n_out)], i);
          counting_release (&taken[i]);
        }
    }
  for (int i = 0; i < n_in; i++)
    counting_tensor_release (&x[i]);
  for (int i = 0; i < n_out; i++)
    {
      counting_tensor_release (&plain[i]);
      counting_tensor_release (&y[i]);
    }
}
