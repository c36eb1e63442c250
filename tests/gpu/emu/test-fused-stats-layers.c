/* Kernels that count what they write, rows and layers: the numbers are those of the kernels
 * that do not, bit by bit, and what was counted is what the CPU finds in them.
 *
 * SPDX-License-Identifier: MIT */
#include "counting.h"

#include <stdio.h>

#include "td-test.h"

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
    = { { 33, 64 }, { 2, 8200 }, { 40, 37 }, { 2, 4101 }, { 7, 1 }, { 300, 8 }, { 6, 776 } };

enum
{
  N_ROWS = sizeof rows / sizeof rows[0]
};

static void
softmax__counts_what_it_writes (void **state)
{
  char what[120];

  for (int kind = 0; kind <= TD_LOG_SOFTMAX_GRAD; kind++)
    for (int d = 0; d < 4; d++)
      for (int s = 0; s < N_ROWS; s++)
        for (int axis = s < 2 ? 1 : 0; axis < 2; axis++)
          {
            const Array a = { counting_floats[d],
                              { 2, { rows[s][0], rows[s][1] } },
                              s % 3 == 0 && kind < 2 ? SPECIAL : PLAIN };
            const Array in[2] = { a, a };
            const Softmax c = { (TdSoftmaxKind)kind, axis };

            if (rows[s][1] > 4000 && (d + kind) % 4 != 0) /* the rest is the same text */
              continue;
            snprintf (what, sizeof what, "softmax %d, dtype %d, row of %d, axis %d", kind,
                      (int)counting_floats[d], (int)rows[s][1], axis);
            counting_check (what, in, 2, &a, 1, 1, call_softmax, &c);
          }
}

/* A thread of a column counts no more numbers than it has room for. */
static void
softmax__of_lines_too_long_to_count_does_not (void **state)
{
  const Array fits = { TD_F16, { 2, { 60000, 2 } }, PLAIN };
  const Array too_long = { TD_F16, { 2, { 66000, 2 } }, PLAIN };
  const Softmax c = { TD_SOFTMAX, 0 };

  counting_check ("60000 numbers of a thread", &fits, 1, &fits, 1, 1, call_softmax, &c);
  counting_check ("66000 numbers of a thread", &too_long, 1, &too_long, 1, 0, call_softmax, &c);
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
        const Array a
            = { counting_floats[d], cases[s].shape, (s + d) % 3 == 0 ? SPECIAL : PLAIN };
        const Sum c = { cases[s].axis, (s + d) % 2 == 0 };

        snprintf (what, sizeof what, "cumulative sum, dtype %d, case %d",
                  (int)counting_floats[d], s);
        counting_check (what, &a, 1, &a, 1, 1, call_cumulative_sum, &c);
      }
  counting_check ("of integers", &whole, 1, &whole, 1, 0, call_cumulative_sum,
                  &(Sum){ 1, false });
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
          const Array x = { counting_floats[d], shapes[s], s == 0 ? SPECIAL : PLAIN };
          const Array t = { TD_I32, places, PLAIN },
                      one = { counting_floats[d], { 0, { 0 } }, CONSTANT };
          const Loss c = { grad ? TD_CROSS_ENTROPY_GRAD : TD_CROSS_ENTROPY, (s + d) % 2 == 0,
                           (s + d) % 3 == 0 };
          const Array loss = { counting_floats[d], c.each ? places : one.shape, PLAIN };
          const Array in[3] = { x, t, c.each ? loss : one }, out[2] = { loss, x };

          snprintf (what, sizeof what, "cross entropy%s, dtype %d, case %d",
                    grad ? "'s gradient" : "", (int)counting_floats[d], s);
          counting_check (what, in, grad ? 3 : 2, grad ? &x : out, grad ? 1 : 2, 1, call_loss,
                          &c);
        }
}

typedef struct
{
  TdRowNormKind kind;
  TdRowNorm norm;
} RowNorm;

/* The last input is added; of a normalisation the second output is the sum. */
static TdStatus
call_norm_of_sum (TdCudaLauncher *l, TdTensor *in, TdTensor *out, const void *context)
{
  const RowNorm *c = context;
  const bool grad = c->kind == TD_ROW_NORM_GRAD;
  TdTensor of_norm[3] = { out[0], out[grad ? 1 : 2], out[grad ? 2 : 3] };
  TdRowNorm norm = c->norm;

  norm.join.added = &in[grad ? 5 : 3];
  norm.join.sum = grad ? NULL : &out[1];
  return td_cuda_row_norm (l, c->kind, &norm, in, grad ? 5 : 3, of_norm, 3);
}

static TdStatus
call_row_norm (TdCudaLauncher *l, TdTensor *in, TdTensor *out, const void *context)
{
  const RowNorm *c = context;
  const bool grad = c->kind == TD_ROW_NORM_GRAD;

  return td_cuda_row_norm (l, c->kind, &c->norm, in, grad ? 5 : 3, out, 3);
}

/* vectors: of gamma and beta; summed: with what is added. */
static void
check_row_norm (TdDtype dtype, TdDtype vectors, const int64_t *size, bool grad, bool summed)
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

  snprintf (what, sizeof what, "row norm%s%s, dtypes %d and %d, row of %d",
            grad ? "'s gradient" : "", summed ? " and a sum" : "", (int)dtype, (int)vectors,
            (int)size[1]);
  if (!summed)
    counting_check (what, grad ? backward : forward, grad ? 5 : 3, grad ? gradients : moments,
                    3, 1, call_row_norm, &c);
  else if (grad)
    counting_check (what, (const Array[]){ x, of_channels, x, of_rows, of_rows, x }, 6,
                    gradients, 3, 1, call_norm_of_sum, &c);
  else
    counting_check (what, (const Array[]){ x, of_channels, of_channels, x }, 4,
                    (const Array[]){ x, x, of_rows, of_rows }, 4, 2, call_norm_of_sum, &c);
}

/* Of sums the short ones: how rows are read is the same text. */
static void
check_row_norms (bool summed)
{
  for (int grad = 0; grad < 2; grad++)
    for (int s = 0; s < N_ROWS; s++)
      {
        if (summed && rows[s][0] * rows[s][1] > 5000)
          continue;
        for (int d = 0; d < 4; d++)
          if (rows[s][1] < 4000 || (d + grad) % 2 == 0)
            check_row_norm (counting_floats[d], counting_floats[d], rows[s], grad, summed);
        if (rows[s][1] < 4000)
          {
            check_row_norm (TD_F16, TD_F32, rows[s], grad, summed);
            check_row_norm (TD_BF16, TD_F32, rows[s], grad, summed);
          }
      }
}

static void
row_norm__counts_what_it_writes (void **state)
{
  check_row_norms (false);
}

static void
row_norm__counts_sums_too (void **state)
{
  check_row_norms (true);
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
          const TdDtype own = counting_floats[d] == TD_F64 ? TD_F64 : TD_F32;
          const Array x = { counting_floats[d], cases[s].shape, kind == 1 ? SPECIAL : PLAIN };
          const Array c = { counting_floats[d], { 1, { x.shape.dim[1] } }, PLAIN };
          const Array m = { own, c.shape, CONSTANT };
          const bool grad = kind == TD_BATCH_NORM_GRAD;
          const Array forward[5] = { x, c, c, m, m }, backward[5] = { x, c, x, m, m };
          const Array moments[3] = { x, m, m }, gradients[3] = { x, c, c };
          const BatchNorm call = { kind, cases[s].layout };

          snprintf (what, sizeof what, "batch norm %d, dtype %d, case %d", kind,
                    (int)counting_floats[d], s);
          counting_check (what, grad ? backward : forward, kind == TD_BATCH_NORM_TRAIN ? 3 : 5,
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
          const Array c = { counting_floats[d], { 2, { 3, units[s] } }, PLAIN };
          const Array x
              = { counting_floats[d], { 2, { 3, 4 * units[s] } }, s == 2 ? SPECIAL : PLAIN };
          const Array in[5] = { c, x, c, c, c }, cells[2] = { c, c }, gradients[2] = { c, x };
          const bool grad = kind == TD_LSTM_GRAD;

          snprintf (what, sizeof what, "lstm%s, dtype %d, %d units", grad ? "'s gradient" : "",
                    (int)counting_floats[d], (int)units[s]);
          counting_check (what, in, grad ? 5 : 2, grad ? gradients : cells, 2, 2, call_lstm,
                          &kind);
        }
}

/* --- windows --- */

typedef struct
{
  TdPoolKind kind;
  TdPooling pooling;
} Pooling;

static TdStatus
call_pooling (TdCudaLauncher *l, TdTensor *in, TdTensor *out, const void *context)
{
  const Pooling *c = context;
  const bool indexed = c->kind == TD_POOL_MAX_GRAD || c->kind == TD_POOL_MAX_GATHER;

  return td_cuda_pooling (l, c->kind, &c->pooling, in, indexed ? 2 : 1, &out[0],
                          c->kind == TD_POOL_MAX ? &out[1] : NULL);
}

/* Outputs and gradients. */
static void
check_pools (const char *what, const TdPooling *pooling, const Array *x, const Array *y)
{
  const Array index = { TD_U8, y->shape, PLAIN };
  const Array forward[2] = { *y, index }, backward[2] = { index, *y };
  Pooling c = { TD_POOL_AVERAGE, *pooling };

  counting_check (what, x, 1, y, 1, 1, call_pooling, &c);
  c.kind = TD_POOL_AVERAGE_GRAD;
  counting_check ("its gradient", y, 1, x, 1, 1, call_pooling, &c);
  c.kind = TD_POOL_MAX;
  counting_check ("max pooling", x, 1, forward, 2, 1, call_pooling, &c);
  c.kind = TD_POOL_MAX_GRAD;
  counting_check ("its gradient", backward, 2, x, 1, 1, call_pooling, &c);
  c.kind = TD_POOL_MAX_GATHER;
  counting_check ("what it takes", (const Array[]){ index, *x }, 2, y, 1, 0, call_pooling, &c);
}

/* Images in both layouts, channels taken four at once and one by one, windows side by side and
 * over each other, and volumes. */
static void
check_pooling (TdDtype dtype, int i)
{
  const bool volume = i % 4 == 3, apart = i % 2 == 0;
  const int64_t channels = i / 4 % 2 == 0 ? 8 : 3;
  const int ndim = volume ? 3 : 2, k = apart ? 2 : 3;
  const int64_t n = apart ? 7 : 6; /* windows along an axis of 13, the last in the padding */
  const Array x = { dtype, { 2 + ndim, { 2, channels, 13, 13, 13 } }, SPECIAL };
  const Array y = { dtype, { 2 + ndim, { 2, channels, n, n, n } }, (Spread)(i % SPREADS) };
  const TdPooling pooling = { ndim,
                              { k, k, k },
                              { 2, 2, 2 },
                              { apart, apart, apart },
                              (TdPoolDivisor)(i % 3),
                              false,
                              (uint8_t)(i / 2 % 2 == 0 ? TD_CHANNELS_LAST : TD_ROW_MAJOR) };
  char what[120];

  snprintf (what, sizeof what, "case %d, dtype %d, average pooling", i, (int)dtype);
  check_pools (what, &pooling, &x, &y);
}

/* Taken 16 bytes of two rows at a time. */
static void
pooling__of_two_by_two_side_by_side_counts_what_it_writes (void **state)
{
  const TdPooling pooling = { .ndim = 2, .ksize = { 2, 2 }, .stride = { 2, 2 } };

  for (int d = 0; d < 4; d++)
    {
      const Array x = { counting_floats[d], { 4, { 2, 3, 6, 80 } }, SPECIAL };
      const Array y = { counting_floats[d], { 4, { 2, 3, 3, 40 } }, SPECIAL };

      check_pools ("two by two", &pooling, &x, &y);
    }
}

static void
pooling__counts_what_it_writes (void **state)
{
  for (int d = 0; d < 4; d++)
    for (int i = 0; i < 8; i++)
      if (i % 4 != 3 || d == i / 4 || d == 2 + i / 4) /* volumes are slow here */
        check_pooling (counting_floats[d], i);
}

static void
kernels__that_count_have_all_run (void **state)
{
  static const char *const words[]
      = { "td_count_softmax_", "td_count_row_norm_",    "td_count_batch_norm_",
          "td_count_lstm_",    "td_count_sum_along_",   "td_count_scan_along_",
          "td_count_loss_",    "td_count_norm_of_sum_", "td_count_norm_grad_to_sum_",
          "td_count_pool_" };

  rig_all_ran (words, (int)(sizeof words / sizeof words[0]));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (softmax__counts_what_it_writes),
    cmocka_unit_test (softmax__of_lines_too_long_to_count_does_not),
    cmocka_unit_test (cumulative_sum__counts_what_it_writes),
    cmocka_unit_test (loss__counts_its_probabilities_and_gradient),
    cmocka_unit_test (row_norm__counts_what_it_writes),
    cmocka_unit_test (batch_norm__counts_what_it_writes_in_both_layouts),
    cmocka_unit_test (lstm__counts_both_arrays_that_it_writes),
    cmocka_unit_test (pooling__counts_what_it_writes),
    cmocka_unit_test (pooling__of_two_by_two_side_by_side_counts_what_it_writes),
    cmocka_unit_test (row_norm__counts_sums_too),
    cmocka_unit_test (kernels__that_count_have_all_run),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
