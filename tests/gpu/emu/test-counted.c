/* Kernels that count what they write: the numbers are those of the kernels that do not, bit by
 * bit, and what was counted is what the CPU finds in them.
 *
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cpu/cpu.h"
#include "scalar-ops.h"
#include "td-test.h"

static const TdDtype floats[] = { TD_F32, TD_F64, TD_F16, TD_BF16 };

enum
{
  MAX_IN = 6,
  MAX_OUT = 4
};

/* Make the call; some of the outputs are counted. */
typedef TdStatus (*Call) (TdCudaLauncher *l, TdTensor *in, TdTensor *out, const void *context);

typedef struct
{
  int kind;
  double p, q;
  bool accumulate;
} Formula;

/* --- a launcher that counts --- */

static struct
{
  TdCudaStats *parts;
  int64_t n_parts;
  const void *of;
} taken[MAX_OUT];
static int n_taken;

static TdCudaStats *
take (TdCudaLauncher *l, const TdTensor *y, int64_t blocks)
{
  TdCudaStats *parts = rig_guarded ((size_t)blocks * sizeof *parts, true);

  assert_true (n_taken < MAX_OUT);
  taken[n_taken].parts = parts;
  taken[n_taken].n_parts = blocks;
  taken[n_taken++].of = y->data;
  return parts;
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

typedef enum
{
  PLAIN,
  SPECIAL, /* NaN, infinities, both zeros, denormals, the first number among them */
  CONSTANT,
  NOTHING_FINITE,
  FAR, /* from 0, for what they vary */
  SPREADS
} Spread;

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

static void
assert_close (const char *what, const char *name, double a, double b, double size)
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
  assert_close (what, "the least", s.min, c.min, 0);
  assert_close (what, "the greatest", s.max, c.max, 0);
  assert_close (what, "the mean", s.mean, c.mean, fmax (fabs (c.min), fabs (c.max)));
  assert_close (what, "the spread", s.m2, c.m2, c.m2 + 1e-9 * c.sum_squares);
  assert_close (what, "the sum of squares", s.sum_squares, c.sum_squares, c.sum_squares);
  rig_release (result, sizeof *result);
}

typedef struct
{
  TdDtype dtype;
  TdShape shape;
  Spread spread;
} Array;

static TdTensor
new_tensor (const Array *a, TdShape *shape)
{
  TdTensor x = { .shape = shape, .size = 1, .dtype = a->dtype };

  *shape = a->shape;
  for (int i = 0; i < shape->ndim; i++)
    x.size *= shape->dim[i];
  x.data = rig_guarded ((size_t)x.size * rig_bytes_of (x.dtype), true);
  fill (&x, a->spread);
  return x;
}

static void
release (TdTensor *x)
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

/* By the kernels that do not count and, threads in each order, by those that do; counts: how
 * many arrays.  What outputs hold at first is the same. */
static void
check (const char *what, const Array *in, int n_in, const Array *out, int n_out, int counts,
       Call call, const void *context)
{
  TdCudaLauncher *l = rig_launcher ();
  TdShape shapes[MAX_IN + 2 * MAX_OUT];
  TdTensor x[MAX_IN], plain[MAX_OUT], y[MAX_OUT];
  static int turn;

  turn++;
  for (int i = 0; i < n_in; i++)
    x[i] = new_tensor (&in[i], &shapes[i]);
  for (int i = 0; i < n_out; i++)
    {
      plain[i] = new_tensor (&out[i], &shapes[MAX_IN + i]);
      y[i] = new_tensor (&out[i], &shapes[MAX_IN + MAX_OUT + i]);
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
      l->count = take;
      n_taken = 0;
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
          rig_release (taken[i].parts, (size_t)taken[i].n_parts * sizeof (TdCudaStats));
        }
    }
  for (int i = 0; i < n_in; i++)
    release (&x[i]);
  for (int i = 0; i < n_out; i++)
    {
      release (&plain[i]);
      release (&y[i]);
    }
}

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
        const Array a = { floats[d],
                          { 1, { sizes[(kind + d) % 5] } },
                          (Spread)((kind + 3 * d) % SPREADS) };
        const Formula f = { kind, .p = 0.75, .q = 1.5 };

        snprintf (what, sizeof what, "unary %d, dtype %d, spread %d", kind, (int)floats[d],
                  (int)a.spread);
        check (what, &a, 1, &a, 1, 1, call_unary, &f);
      }
}

static void
unary__counts_large_arrays_and_those_with_nothing_finite (void **state)
{
  char what[120];

  for (int d = 0; d < 4; d++)
    for (int spread = 0; spread < SPREADS; spread++)
      {
        const Array a = { floats[d], { 1, { 40013 } }, (Spread)spread };
        const Formula f = { TD_UNARY_RELU };
        const Formula copy = { TD_UNARY_COPY };

        snprintf (what, sizeof what, "dtype %d, spread %d", (int)floats[d], spread);
        check (what, &a, 1, &a, 1, 1, call_unary, d % 2 == 0 ? &f : &copy);
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

  check ("far", &far, 1, &far, 1, 1, call_unary, &shift);
  check ("constant", &same, 1, &same, 1, 1, call_unary, &copy);
}

static void
unary__of_integers_and_of_nothing_is_not_counted (void **state)
{
  const Array whole = { TD_I32, { 1, { 100 } }, PLAIN }, none = { TD_F32, { 1, { 0 } }, PLAIN };
  const Formula f = { TD_UNARY_NEG };

  check ("integers", &whole, 1, &whole, 1, 0, call_unary, &f);
  check ("nothing", &none, 1, &none, 1, 0, call_unary, &f);
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
        check (what, &in, 1, &out, 1, counts, call_cast, NULL);
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
        const Array a
            = { floats[d], { 1, { sizes[(kind + d) % 4] } }, (Spread)((kind + d) % SPREADS) };
        const Array in[2] = { a, a };
        const Formula f = { kind, .accumulate = (kind + d) % 2 == 0 };

        snprintf (what, sizeof what, "binary %d, dtype %d", kind, (int)floats[d]);
        check (what, in, 2, &a, 1, 1, call_binary, &f);
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

  check ("row", first, 2, &x, 1, 1, call_binary, &f);
  check ("column", second, 2, &x, 1, 1, call_binary, &f);
  check ("middle axis", third, 2, &odd, 1, 1, call_binary, &f);
}

static void
unary_grad__counts_what_it_writes_and_adds (void **state)
{
  char what[120];

  for (int kind = TD_UNARY_LEAKY_RELU; kind < TD_UNARY_N; kind++)
    for (int d = 0; d < 4; d++)
      {
        const Array a = { floats[d],
                          { 1, { kind % 2 == 0 ? 1027 : 64 } },
                          (Spread)((kind + d) % SPREADS) };
        const Array in[2] = { a, a };
        const Formula f = { kind, .p = 0.75, .accumulate = d % 2 == kind % 2 };

        snprintf (what, sizeof what, "gradient of unary %d, dtype %d", kind, (int)floats[d]);
        check (what, in, 2, &a, 1, 1, call_unary_grad, &f);
      }
}

/* --- rows --- */

typedef struct
{
  TdSoftmaxKind kind;
  int axis;
} Softmax;

static TdStatus
call_softmax (TdCudaLauncher *l, TdTensor *in, TdTensor *out, const void *context)
{
  const Softmax *c = context;

  return td_cuda_softmax (l, c->kind, c->axis, &in[0],
                          c->kind >= TD_SOFTMAX_GRAD ? &in[1] : NULL, &out[0]);
}

/* Rows that threads keep and that they read again, in packs and one by one; and columns. */
static const int64_t rows[][2]
    = { { 33, 64 }, { 2, 8200 }, { 40, 37 }, { 2, 4101 }, { 7, 1 }, { 300, 8 } };

static void
softmax__counts_what_it_writes (void **state)
{
  char what[120];

  for (int kind = 0; kind <= TD_LOG_SOFTMAX_GRAD; kind++)
    for (int d = 0; d < 4; d++)
      for (int s = 0; s < 6; s++)
        for (int axis = s < 2 ? 1 : 0; axis < 2; axis++)
          {
            const Array a = { floats[d],
                              { 2, { rows[s][0], rows[s][1] } },
                              s % 3 == 0 && kind < 2 ? SPECIAL : PLAIN };
            const Array in[2] = { a, a };
            const Softmax c = { (TdSoftmaxKind)kind, axis };

            if (rows[s][1] > 4000 && (d + kind) % 4 != 0) /* the rest is the same text */
              continue;
            snprintf (what, sizeof what, "softmax %d, dtype %d, row of %d, axis %d", kind,
                      (int)floats[d], (int)rows[s][1], axis);
            check (what, in, 2, &a, 1, 1, call_softmax, &c);
          }
}

/* A thread of a column counts no more numbers than it has room for. */
static void
softmax__of_lines_too_long_to_count_does_not (void **state)
{
  const Array fits = { TD_F16, { 2, { 60000, 2 } }, PLAIN };
  const Array too_long = { TD_F16, { 2, { 66000, 2 } }, PLAIN };
  const Softmax c = { TD_SOFTMAX, 0 };

  check ("60000 numbers of a thread", &fits, 1, &fits, 1, 1, call_softmax, &c);
  check ("66000 numbers of a thread", &too_long, 1, &too_long, 1, 0, call_softmax, &c);
}

typedef struct
{
  int axis;
  bool reverse;
} Sum;

static TdStatus
call_cumulative_sum (TdCudaLauncher *l, TdTensor *in, TdTensor *out, const void *context)
{
  const Sum *c = context;

  return td_cuda_cumulative_sum (l, c->axis, c->reverse, &in[0], &out[0]);
}

/* A block for a line; a thread for one, in packs and not, and for several that lie side by
 * side. */
static void
cumulative_sum__counts_what_it_writes (void **state)
{
  static const struct
  {
    TdShape shape;
    int axis;
  } cases[] = { { { 2, { 3, 2051 } }, 1 },
                { { 2, { 700, 16 } }, 1 },
                { { 2, { 33, 7 } }, 1 },
                { { 3, { 2, 5, 301 } }, 1 },
                { { 2, { 3, 16384 } }, 0 } };
  const Array whole = { TD_I32, { 2, { 9, 9 } }, PLAIN };
  char what[120];

  for (int s = 0; s < (int)(sizeof cases / sizeof cases[0]); s++)
    for (int d = 0; d < 4; d++)
      {
        const Array a = { floats[d], cases[s].shape, (s + d) % 3 == 0 ? SPECIAL : PLAIN };
        const Sum c = { cases[s].axis, (s + d) % 2 == 0 };

        snprintf (what, sizeof what, "cumulative sum, dtype %d, case %d", (int)floats[d], s);
        check (what, &a, 1, &a, 1, 1, call_cumulative_sum, &c);
      }
  check ("of integers", &whole, 1, &whole, 1, 0, call_cumulative_sum, &(Sum){ 1, false });
}

typedef struct
{
  int kind;
  bool normalize, each;
} Loss;

static TdStatus
call_loss (TdCudaLauncher *l, TdTensor *in, TdTensor *out, const void *context)
{
  const Loss *c = context;
  const int64_t params[3] = { -1, c->normalize, c->each };
  const bool grad = c->kind == TD_CROSS_ENTROPY_GRAD;

  return td_cuda_cross_entropy (l, c->kind, params, in, grad ? 3 : 2, out, grad ? 1 : 2);
}

/* The probabilities, and the gradient; labels are ignored, or out of range, among them. */
static void
loss__counts_its_probabilities_and_gradient (void **state)
{
  static const TdShape shapes[]
      = { { 2, { 33, 10 } }, { 2, { 7, 2051 } }, { 2, { 3, 4096 } }, { 3, { 3, 7, 70 } } };
  char what[120];

  for (int s = 0; s < 4; s++)
    for (int d = 0; d < 4; d++)
      for (int grad = 0; grad < 2; grad++)
        {
          const TdShape places = { shapes[s].ndim - 1, { shapes[s].dim[0], shapes[s].dim[2] } };
          const Array x = { floats[d], shapes[s], s == 0 ? SPECIAL : PLAIN };
          const Array t = { TD_I32, places, PLAIN },
                      one = { floats[d], { 0, { 0 } }, CONSTANT };
          const Loss c = { grad ? TD_CROSS_ENTROPY_GRAD : TD_CROSS_ENTROPY, (s + d) % 2 == 0,
                           (s + d) % 3 == 0 };
          const Array loss = { floats[d], c.each ? places : one.shape, PLAIN };
          const Array in[3] = { x, t, c.each ? loss : one }, out[2] = { loss, x };

          snprintf (what, sizeof what, "cross entropy%s, dtype %d, case %d",
                    grad ? "'s gradient" : "", (int)floats[d], s);
          check (what, in, grad ? 3 : 2, grad ? &x : out, grad ? 1 : 2, 1, call_loss, &c);
        }
}

typedef struct
{
  TdRowNormKind kind;
  TdRowNorm norm;
} RowNorm;

static TdStatus
call_row_norm (TdCudaLauncher *l, TdTensor *in, TdTensor *out, const void *context)
{
  const RowNorm *c = context;
  const bool grad = c->kind == TD_ROW_NORM_GRAD;

  return td_cuda_row_norm (l, c->kind, &c->norm, in, grad ? 5 : 3, out, 3);
}

/* vectors: of gamma and beta. */
static void
check_row_norm (TdDtype dtype, TdDtype vectors, const int64_t *size, bool grad)
{
  const TdDtype own = dtype == TD_F64 ? TD_F64 : TD_F32;
  const Array x = { dtype, { 2, { size[0], size[1] } }, PLAIN };
  const Array of_channels = { vectors, { 1, { size[1] } }, PLAIN };
  const Array of_rows = { own, { 1, { size[0] } }, PLAIN };
  const Array forward[3] = { x, of_channels, of_channels };
  const Array backward[5] = { x, of_channels, x, of_rows, of_rows };
  const Array moments[3] = { x, of_rows, of_rows };
  const Array gradients[3] = { x, of_channels, of_channels };
  const RowNorm c
      = { grad ? TD_ROW_NORM_GRAD : TD_ROW_NORM, { size[0], 1, size[1], 1, 1e-5, true } };
  char what[120];

  snprintf (what, sizeof what, "row norm%s, dtypes %d and %d, row of %d",
            grad ? "'s gradient" : "", (int)dtype, (int)vectors, (int)size[1]);
  check (what, grad ? backward : forward, grad ? 5 : 3, grad ? gradients : moments, 3, 1,
         call_row_norm, &c);
}

static void
row_norm__counts_what_it_writes (void **state)
{
  for (int grad = 0; grad < 2; grad++)
    for (int s = 0; s < 6; s++)
      {
        for (int d = 0; d < 4; d++)
          if (rows[s][1] < 4000 || (d + grad) % 2 == 0)
            check_row_norm (floats[d], floats[d], rows[s], grad);
        if (rows[s][1] < 4000)
          {
            check_row_norm (TD_F16, TD_F32, rows[s], grad);
            check_row_norm (TD_BF16, TD_F32, rows[s], grad);
          }
      }
}

typedef struct
{
  int kind;
  TdLayout layout;
} BatchNorm;

static TdStatus
call_batch_norm (TdCudaLauncher *l, TdTensor *in, TdTensor *out, const void *context)
{
  const BatchNorm *c = context;
  const double params[2] = { 1e-3, 0.9 };
  const bool train = c->kind == TD_BATCH_NORM_TRAIN;

  in[0].layout = out[0].layout = (uint8_t)c->layout;
  if (c->kind == TD_BATCH_NORM_GRAD)
    in[2].layout = (uint8_t)c->layout;
  return td_cuda_batch_norm (l, c->kind, params, in, train ? 3 : 5, out,
                             c->kind == TD_BATCH_NORM_FIXED ? 1 : 3);
}

/* A block for a channel and pieces of one, more channels than blocks; channels side by side,
 * few rows and more than the grid's; in packs and one by one. */
static void
batch_norm__counts_what_it_writes_in_both_layouts (void **state)
{
  static const struct
  {
    TdShape shape;
    TdLayout layout;
  } cases[] = {
    { { 3, { 20, 2, 40 } }, TD_ROW_MAJOR },       { { 4, { 3, 4, 5, 7 } }, TD_ROW_MAJOR },
    { { 3, { 3, 1500, 2 } }, TD_ROW_MAJOR },      { { 3, { 5, 1, 1700 } }, TD_ROW_MAJOR },
    { { 3, { 3, 2, 1025 } }, TD_ROW_MAJOR },      { { 2, { 70, 132 } }, TD_ROW_MAJOR },
    { { 2, { 3, 9001 } }, TD_ROW_MAJOR },         { { 4, { 3, 5, 5, 7 } }, TD_CHANNELS_LAST },
    { { 4, { 2, 8, 40, 50 } }, TD_CHANNELS_LAST }
  };
  char what[120];

  for (int s = 0; s < (int)(sizeof cases / sizeof cases[0]); s++)
    for (int d = 0; d < 4; d++)
      for (int kind = TD_BATCH_NORM_TRAIN; kind <= TD_BATCH_NORM_GRAD; kind++)
        {
          const TdDtype own = floats[d] == TD_F64 ? TD_F64 : TD_F32;
          const Array x = { floats[d], cases[s].shape, kind == 1 ? SPECIAL : PLAIN };
          const Array c = { floats[d], { 1, { x.shape.dim[1] } }, PLAIN };
          const Array m = { own, c.shape, CONSTANT };
          const bool grad = kind == TD_BATCH_NORM_GRAD;
          const Array forward[5] = { x, c, c, m, m }, backward[5] = { x, c, x, m, m };
          const Array moments[3] = { x, m, m }, gradients[3] = { x, c, c };
          const BatchNorm call = { kind, cases[s].layout };

          snprintf (what, sizeof what, "batch norm %d, dtype %d, case %d", kind, (int)floats[d],
                    s);
          check (what, grad ? backward : forward, kind == TD_BATCH_NORM_TRAIN ? 3 : 5,
                 grad ? gradients : moments, kind == TD_BATCH_NORM_FIXED ? 1 : 3, 1,
                 call_batch_norm, &call);
        }
}

static TdStatus
call_lstm (TdCudaLauncher *l, TdTensor *in, TdTensor *out, const void *context)
{
  const int kind = *(const int *)context;

  return td_cuda_lstm (l, kind, in, kind == TD_LSTM_GRAD ? 5 : 2, out, 2);
}

static void
lstm__counts_both_arrays_that_it_writes (void **state)
{
  static const int64_t units[] = { 1, 7, 96, 1500 };
  char what[120];

  for (int kind = TD_LSTM; kind <= TD_LSTM_GRAD; kind++)
    for (int d = 0; d < 4; d++)
      for (int s = 0; s < 4; s++)
        {
          const Array c = { floats[d], { 2, { 3, units[s] } }, PLAIN };
          const Array x = { floats[d], { 2, { 3, 4 * units[s] } }, s == 2 ? SPECIAL : PLAIN };
          const Array in[5] = { c, x, c, c, c }, cells[2] = { c, c }, gradients[2] = { c, x };
          const bool grad = kind == TD_LSTM_GRAD;

          snprintf (what, sizeof what, "lstm%s, dtype %d, %d units", grad ? "'s gradient" : "",
                    (int)floats[d], (int)units[s]);
          check (what, in, grad ? 5 : 2, grad ? gradients : cells, 2, 2, call_lstm, &kind);
        }
}

/* Parts and arrays that are read come out of one launch, each at its place. */
static void
stats__join_parts_beside_arrays_that_are_read (void **state)
{
  TdShape shape = { 1, { 700 } };
  const Array a = { TD_F32, shape, SPECIAL };
  TdCudaLauncher *l = rig_launcher ();
  TdCudaStats *results = rig_guarded (3 * sizeof *results, true);
  TdTensor x = new_tensor (&a, &shape), y = new_tensor (&a, &shape);
  TdStats s, of_x, of_y;

  l->count = take;
  n_taken = 0;
  assert_int_equal (td_cuda_unary (l, TD_UNARY_EXP, 0, 0, &x, &y), TD_OK);
  l->count = NULL;
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
      assert_close ("beside", "the greatest", s.max, c->max, 0);
    }
  rig_release (taken[0].parts, (size_t)taken[0].n_parts * sizeof (TdCudaStats));
  rig_release (results, 3 * sizeof *results);
  release (&x);
  release (&y);
}

static void
kernels__that_count_have_all_run (void **state)
{
  static const char *const words[]
      = { "td_count_unary_",   "td_count_binary_",    "td_count_cast_",
          "td_count_softmax_", "td_count_row_norm_",  "td_count_batch_norm_",
          "td_count_lstm_",    "td_count_sum_along_", "td_count_scan_along_",
          "td_count_loss_" };

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
    cmocka_unit_test (cast__counts_floating_numbers_from_all_types),
    cmocka_unit_test (binary__counts_what_it_writes_and_adds),
    cmocka_unit_test (binary__counts_where_operands_are_repeated),
    cmocka_unit_test (unary_grad__counts_what_it_writes_and_adds),
    cmocka_unit_test (softmax__counts_what_it_writes),
    cmocka_unit_test (softmax__of_lines_too_long_to_count_does_not),
    cmocka_unit_test (cumulative_sum__counts_what_it_writes),
    cmocka_unit_test (loss__counts_its_probabilities_and_gradient),
    cmocka_unit_test (row_norm__counts_what_it_writes),
    cmocka_unit_test (batch_norm__counts_what_it_writes_in_both_layouts),
    cmocka_unit_test (lstm__counts_both_arrays_that_it_writes),
    cmocka_unit_test (stats__join_parts_beside_arrays_that_are_read),
    cmocka_unit_test (kernels__that_count_have_all_run),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
