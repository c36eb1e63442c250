/* Kernels that read and write halves, beside the same kernels in float between two casts: the
 * same bits, as both round once, at the end.
 *
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>

#include "scalar-ops.h"
#include "td-test.h"

/* A call on operands of any type; what it is about is in the same struct. */
typedef struct Case Case;
struct Case
{
  TdStatus (*run) (TdCudaLauncher *l, const Case *c, TdTensor *in, TdTensor *out);
  int kind, n_in, n_out;
  TdLayout layout;
  TdPooling pooling;
  int64_t params[3];
  int axis;
  bool flag;
};

static bool
is_half (TdDtype dtype)
{
  return dtype == TD_F16 || dtype == TD_BF16;
}

static TdTensor
widened (const TdTensor *x)
{
  TdTensor wide = *x;

  if (!is_half (x->dtype))
    return wide;
  wide.dtype = TD_F32;
  wide.data = aligned_alloc (64, ((size_t)x->size * sizeof (float) + 127) / 64 * 64);
  assert_non_null (wide.data);
  for (int64_t i = 0; i < x->size; i++)
    ((float *)wide.data)[i] = (float)rig_at (x, i);
  return wide;
}

static void
narrow (const TdTensor *wide, TdTensor *y, bool write)
{
  if (!is_half (y->dtype))
    return;
  for (int64_t i = 0; i < y->size && write; i++)
    ((uint16_t *)y->data)[i] = y->dtype == TD_F16
                                   ? td_f16_of_float (((const float *)wide->data)[i])
                                   : td_bf16_of_float (((const float *)wide->data)[i]);
  free (wide->data);
}

/* The kernels as they are; or, for what they are held against, in float. */
static TdStatus
call (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const Case *c = context;
  TdTensor wide_in[RIG_ARRAYS], wide_out[RIG_ARRAYS];
  TdStatus status;

  if (gpu != NULL)
    return c->run (gpu, c, in, out);
  for (int i = 0; i < c->n_in; i++)
    wide_in[i] = widened (&in[i]);
  for (int i = 0; i < c->n_out; i++)
    wide_out[i] = widened (&out[i]);
  status = c->run (rig_launcher (), c, wide_in, wide_out);
  for (int i = 0; i < c->n_in; i++)
    narrow (&wide_in[i], &in[i], false);
  for (int i = 0; i < c->n_out; i++)
    narrow (&wide_out[i], &out[i], status == TD_OK);
  return status;
}

static void
same_bits (const char *what, const Case *c, const RigArray *in, const RigArray *out)
{
  rig_check (what, in, c->n_in, out, c->n_out, 0, call, c);
}

static const TdDtype halves[] = { TD_BF16, TD_F16 };

/* --- batch normalisation --- */

/* Running mean and variance are the last outputs here. */
static TdStatus
run_batch_norm (TdCudaLauncher *l, const Case *c, TdTensor *in, TdTensor *out)
{
  const double params[2] = { 1e-3, 0.9 };
  const int running = c->n_out == 5 ? 2 : 0;
  TdTensor all[5];

  for (int i = 0; i < c->n_in + running; i++)
    {
      all[i] = i < c->n_in ? in[i] : out[3 + i - c->n_in];
      all[i].layout = (uint8_t)(all[i].shape->ndim > 2 ? c->layout : TD_ROW_MAJOR);
    }
  out[0].layout = all[0].layout;
  return td_cuda_batch_norm (l, c->kind, params, all, c->n_in + running, out,
                             c->n_out - running);
}

static void
batch_norm__in_halves_is_rounded_once (void **state)
{
  static const TdShape shapes[] = {
    { 4, { 3, 8, 5, 7 } }, { 4, { 3, 5, 4, 4 } }, { 2, { 130, 36 } }, { 4, { 2, 6, 5, 3 } }
  };

  for (int i = 0; i < 32; i++)
    {
      const TdDtype dtype = halves[i % 2], vectors = i / 2 % 2 == 0 ? dtype : TD_F32;
      const TdShape shape = shapes[i / 8], one = { 1, { shape.dim[1] } };
      const RigArray x = { dtype, shape, -2, 3, 0 }, c = { vectors, one, 0.5, 2, 0 };
      const RigArray m = { TD_F32, one, 0.5, 2, 0 }, kept = { vectors, one, 0.5, 2, RIG_KEEP };
      Case train = { run_batch_norm, TD_BATCH_NORM_TRAIN, 3, 5 };
      Case fixed = { run_batch_norm, TD_BATCH_NORM_FIXED, 5, 1 };
      Case grad = { run_batch_norm, TD_BATCH_NORM_GRAD, 5, 3 };

      train.layout = fixed.layout = grad.layout
          = i / 4 % 2 == 0 ? TD_ROW_MAJOR : TD_CHANNELS_LAST;
      same_bits ("batch norm", &train, (const RigArray[]){ x, c, c },
                 (const RigArray[]){ x, m, m, kept, kept });
      same_bits ("fixed batch norm", &fixed, (const RigArray[]){ x, c, c, c, c }, &x);
      same_bits ("batch norm's gradient", &grad, (const RigArray[]){ x, c, x, m, m },
                 (const RigArray[]){ x, c, c });
    }
}

/* --- pooling --- */

static TdStatus
run_pooling (TdCudaLauncher *l, const Case *c, TdTensor *in, TdTensor *out)
{
  return td_cuda_pooling (l, (TdPoolKind)c->kind, &c->pooling, in, c->n_in, &out[0],
                          c->n_out > 1 ? &out[1] : NULL);
}

static void
pooling__in_halves_is_rounded_once (void **state)
{
  for (int i = 0; i < 16; i++)
    {
      const TdDtype dtype = halves[i % 2];
      const TdLayout layout = i / 2 % 2 == 0 ? TD_CHANNELS_LAST : TD_ROW_MAJOR;
      const int channels = i / 4 % 2 == 0 ? 8 : 3, ndim = i / 8 == 0 ? 2 : 3;
      const TdShape image = { 2 + ndim, { 2, channels, 9, 7, 5 } };
      const TdShape pooled = { 2 + ndim, { 2, channels, 5, 4, 3 } };
      const RigArray x = { dtype, image, -2, 2, 0 }, y = { dtype, pooled, -2, 2, 0 };
      const RigArray special = { dtype, image, -2, 2, RIG_SPECIAL };
      const RigArray index = { i < 8 ? TD_U8 : TD_I32, pooled, 0, ndim == 2 ? 9 : 27, 0 };
      Case c = { .run = run_pooling,
                 .n_in = 1,
                 .n_out = 1,
                 .pooling = { ndim,
                              { 3, 3, 3 },
                              { 2, 2, 2 },
                              { 1, 1, 1 },
                              TD_POOL_BY_COVERED,
                              false,
                              (uint8_t)layout } };

      c.kind = TD_POOL_AVERAGE;
      same_bits ("average pooling", &c, &x, &y);
      c.kind = TD_POOL_AVERAGE_GRAD;
      same_bits ("average pooling's gradient", &c, &y, &x);
      c.kind = TD_POOL_MAX;
      c.n_out = 2;
      same_bits ("max pooling", &c, &special, (const RigArray[]){ y, index });
      c.kind = TD_POOL_MAX_GRAD;
      c.n_in = 2;
      c.n_out = 1;
      same_bits ("max pooling's gradient", &c, (const RigArray[]){ index, y }, &x);
      c.kind = TD_POOL_MAX_GATHER;
      same_bits ("max pooling's gather", &c, (const RigArray[]){ index, x }, &y);
    }
}

/* --- cross entropy --- */

static TdStatus
run_loss (TdCudaLauncher *l, const Case *c, TdTensor *in, TdTensor *out)
{
  return td_cuda_cross_entropy (l, c->kind, c->params, in, c->n_in, out, c->n_out);
}

static void
cross_entropy__in_halves_is_rounded_once (void **state)
{
  /* Multiples of four: as aligned where they end with a page, and so added up in one order. */
  static const int64_t sizes[][3]
      = { { 8, 10, 1 }, { 4, 1301, 1 }, { 3, 4, 50 }, { 9, 64, 1 } };

  for (int i = 0; i < 32; i++)
    {
      const int64_t *n = sizes[i / 8];
      const TdDtype dtype = halves[i % 2];
      const bool each = i / 2 % 2 == 1, weighted = i / 4 % 2 == 1;
      const TdShape rows = { 2, { n[0], n[2] } }, number = { 0 };
      const RigArray x = { dtype, { 3, { n[0], n[1], n[2] } }, -3, 3, 0 };
      const RigArray t = { TD_I32, rows, -1, (double)n[1] - 1, 0 };
      const RigArray w = { dtype, { 1, { n[1] } }, 0.5, 2, 0 };
      const RigArray loss = { dtype, each ? rows : number, -2, 2, 0 };
      Case c = { .run = run_loss,
                 .kind = TD_CROSS_ENTROPY,
                 .n_in = 2 + weighted,
                 .n_out = 2,
                 .params = { -1, 1, each } };

      same_bits ("cross entropy", &c, (const RigArray[]){ x, t, w },
                 (const RigArray[]){ loss, x });
      c.kind = TD_CROSS_ENTROPY_GRAD;
      c.n_in++;
      c.n_out = 1;
      same_bits ("cross entropy's gradient", &c, (const RigArray[]){ x, t, loss, w }, &x);
      c.kind = TD_CROSS_ENTROPY_ROWS;
      c.n_in = 1 + weighted;
      same_bits ("shares of rows", &c, (const RigArray[]){ t, w },
                 &(const RigArray){ dtype, rows, 0, 0, 0 });
      c.kind = TD_ACCURACY;
      c.n_in = 2;
      c.params[1] = each;
      same_bits ("accuracy", &c, (const RigArray[]){ x, t },
                 &(const RigArray){ dtype, number, 0, 0, 0 });
    }
}

/* --- rows, cells, lines --- */

static TdStatus
run_scatter (TdCudaLauncher *l, const Case *c, TdTensor *in, TdTensor *out)
{
  return td_cuda_scatter_rows_add (l, &in[0], &in[1], &out[0]);
}

/* Hundreds of indices to one row: rounded each time, their sum would stay far behind. */
static void
scatter__in_halves_is_rounded_once_however_many_meet (void **state)
{
  static const int64_t tables[][3] /* rows, columns, indices */
      = { { 5, 1, 9 }, { 3, 16, 700 }, { 7, 1100, 33 }, { 3000, 3, 40 }, { 1, 8, 700 } };
  const Case c = { .run = run_scatter, .n_in = 2, .n_out = 1 };

  for (int i = 0; i < 10; i++)
    {
      const int64_t *n = tables[i / 2];
      const TdDtype dtype = halves[i % 2];
      const RigArray in[] = { { TD_I32, { 1, { n[2] } }, -1, (double)n[0], 0 },
                              { dtype, { 2, { n[2], n[1] } }, 0, 9, 0 } };
      const RigArray gw = { dtype, { 2, { n[0], n[1] } }, 0, 9, RIG_KEEP };

      same_bits ("scatter", &c, in, &gw);
    }
}

static TdStatus
run_add (TdCudaLauncher *l, const Case *c, TdTensor *in, TdTensor *out)
{
  const TdStrides walk = { c->params[0], { c->params[1], c->params[2] } };

  return td_cuda_strided (l, TD_STRIDED_ADD, &in[0], &walk, &out[0]);
}

static void
adding_walk__in_halves_is_left_to_float_where_places_meet (void **state)
{
  TdShape shape = { 2, { 6, 9 } }, whole = { 1, { 60 } };

  for (int i = 0; i < 2; i++)
    {
      const RigArray x = { halves[i], shape, -9, 9, 0 },
                     y = { halves[i], whole, -9, 9, RIG_KEEP };
      const Case apart = { .run = run_add, .n_in = 1, .n_out = 1, .params = { 3, 9, 1 } };
      uint16_t from[54] = { 0 }, to[60] = { 0 };
      const TdTensor dense = { from, &shape, 54, halves[i] };
      const TdStrides meeting = { 0, { 5, 1 } };
      TdTensor out = { to, &whole, 60, halves[i] };

      same_bits ("adding walk", &apart, &x, &y);
      assert_int_equal (
          td_cuda_strided (rig_launcher (), TD_STRIDED_ADD, &dense, &meeting, &out),
          TD_ERR_DTYPE);
    }
}

static TdStatus
run_lstm (TdCudaLauncher *l, const Case *c, TdTensor *in, TdTensor *out)
{
  return td_cuda_lstm (l, c->kind, in, c->n_in, out, 2);
}

static void
lstm__in_halves_is_rounded_once (void **state)
{
  for (int i = 0; i < 2; i++)
    {
      const RigArray h = { halves[i], { 2, { 5, 33 } }, -2, 2, 0 };
      const RigArray x = { halves[i], { 2, { 5, 4 * 33 } }, -3, 3, 0 };
      const Case cell = { .run = run_lstm, .kind = TD_LSTM, .n_in = 2, .n_out = 2 };
      const Case grad = { .run = run_lstm, .kind = TD_LSTM_GRAD, .n_in = 5, .n_out = 2 };

      same_bits ("lstm", &cell, (const RigArray[]){ h, x }, (const RigArray[]){ h, h });
      same_bits ("lstm's gradient", &grad, (const RigArray[]){ h, x, h, h, h },
                 (const RigArray[]){ h, x });
    }
}

static TdStatus
run_sums (TdCudaLauncher *l, const Case *c, TdTensor *in, TdTensor *out)
{
  return td_cuda_cumulative_sum (l, c->axis, c->flag, &in[0], &out[0]);
}

static void
cumulative_sum__in_halves_is_rounded_once_at_each_place (void **state)
{
  for (int i = 0; i < 8; i++)
    {
      const RigArray x = { halves[i % 2], { 2, { 3, 700 } }, -2, 3, 0 };
      const Case c
          = { .run = run_sums, .n_in = 1, .n_out = 1, .axis = i / 2 % 2, .flag = i / 4 != 0 };

      same_bits ("cumulative sum", &c, &x, &x);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (batch_norm__in_halves_is_rounded_once),
    cmocka_unit_test (pooling__in_halves_is_rounded_once),
    cmocka_unit_test (cross_entropy__in_halves_is_rounded_once),
    cmocka_unit_test (scatter__in_halves_is_rounded_once_however_many_meet),
    cmocka_unit_test (adding_walk__in_halves_is_left_to_float_where_places_meet),
    cmocka_unit_test (lstm__in_halves_is_rounded_once),
    cmocka_unit_test (cumulative_sum__in_halves_is_rounded_once_at_each_place),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
