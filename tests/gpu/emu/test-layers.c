/* Normalisation, pooling, convolution, products and attention, beside the CPU's.
 *
 * SPDX-License-Identifier: MIT */
#include "rig.h"

#include <stdio.h>
#include <string.h>

#include "compute/cpu/conv.h"
#include "compute/cpu/cpu.h"
#include "td-test.h"

/* Switching between fibres costs 25 times as much under AddressSanitizer. */
#if defined(__SANITIZE_ADDRESS__)
#define LONG 140
#define FEWER 8
#else
#define LONG 300
#define FEWER 2
#endif

static const TdDtype types[] = { TD_F32, TD_F64, TD_I32 };
static const TdDtype floats[] = { TD_F32, TD_F64, TD_F16, TD_BF16 };

static double
tolerance_of (TdDtype dtype)
{
  return dtype == TD_F64 ? 1e-11 : dtype == TD_BF16 ? 8e-3 : dtype == TD_F16 ? 1e-3 : 5e-5;
}

/* --- normalisation --- */

static const TdDtype norm_dtypes[][3] /* x, gamma, moments */
    = { { TD_F32, TD_F32, TD_F32 }, { TD_F64, TD_F64, TD_F64 },   { TD_F16, TD_F16, TD_F32 },
        { TD_F16, TD_F32, TD_F32 }, { TD_BF16, TD_BF16, TD_F32 }, { TD_BF16, TD_F32, TD_F32 } };

typedef struct
{
  int kind, n_in, n_out;
  TdLayout layout;
} BatchNorm;

/* Running mean and variance are written: of the outputs, they come last. */
static TdStatus
call_batch_norm (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const BatchNorm *c = context;
  const double params[2] = { 1e-3, 0.9 };
  const bool running = c->kind == TD_BATCH_NORM_TRAIN && c->n_in == 3 && c->n_out == 5;
  const int n_in = running ? 5 : c->n_in, n_out = running ? 3 : c->n_out;
  TdTensor all[5];

  memcpy (all, in, (size_t)c->n_in * sizeof *in);
  if (running)
    memcpy (all + 3, out + 3, 2 * sizeof *out);
  for (int i = 0; i < n_in; i++)
    all[i].layout = (uint8_t)(all[i].shape->ndim > 2 ? c->layout : TD_ROW_MAJOR);
  out[0].layout = all[0].layout;
  return gpu == NULL ? td__cpu_batch_norm_any (NULL, c->kind, params, all, n_in, out, n_out)
                     : td_cuda_batch_norm (gpu, c->kind, params, all, n_in, out, n_out);
}

static void
batch_norm__trains_applies_and_goes_back_as_the_cpu (void **state)
{
  static const TdShape shapes[] /* channels-last from the sixth on */
      = { { 2, { 9, 5 } },       { 4, { 3, 4, 5, 7 } },  { 2, { 70, 132 } },
          { 3, { 20, 2, 40 } },  { 3, { 3, 5, 33 } },    { 4, { 3, 4, 5, 7 } },
          { 3, { 20, 2, 40 } },  { 4, { 2, 72, 3, 2 } }, { 5, { 1, 33, 2, 1, 2 } },
          { 3, { 5, 1, 1700 } }, { 3, { 3, 2, 1025 } } }; /* channels in pieces */

  for (int s = 0; s < 11; s++)
    for (int d = 0; d < (s < 10 ? 6 : 2); d += s == 9 && d > 0 ? 2 : 1)
      {
        const TdLayout layout = s < 5 || s > 8 ? TD_ROW_MAJOR : TD_CHANNELS_LAST;
        const TdDtype dtype = norm_dtypes[d][0], moments = norm_dtypes[d][2];
        const RigArray x = { dtype, shapes[s], -2, 3, 0 };
        const RigArray c = { norm_dtypes[d][1], { 1, { shapes[s].dim[1] } }, 0.5, 2, 0 };
        const RigArray m = { moments, c.shape, 0.5, 2, 0 };
        /* Running ones are stored as gamma is. */
        const RigArray kept = { c.dtype, c.shape, 0.5, 2, RIG_KEEP };
        const RigArray train_in[3] = { x, c, c }, train_out[5] = { x, m, m, kept, kept };
        const RigArray fixed_in[5] = { x, c, c, c, c }, grad_in[5] = { x, c, x, m, m };
        const RigArray grad_out[3] = { x, c, c };
        const BatchNorm train = { TD_BATCH_NORM_TRAIN, 3, 3, layout },
                        run = { TD_BATCH_NORM_TRAIN, 3, 5, layout };
        const BatchNorm fixed = { TD_BATCH_NORM_FIXED, 5, 1, layout },
                        grad = { TD_BATCH_NORM_GRAD, 5, 3, layout };
        const double tolerance = tolerance_of (dtype);

        rig_check ("batch norm", train_in, 3, train_out, 3, tolerance, call_batch_norm, &train);
        rig_check ("running batch norm", train_in, 3, train_out, 5, tolerance, call_batch_norm,
                   &run);
        rig_check ("fixed batch norm", fixed_in, 5, &x, 1, tolerance, call_batch_norm, &fixed);
        rig_check ("batch norm gradient", grad_in, 5, grad_out, 3, tolerance, call_batch_norm,
                   &grad);
      }
}

/* One look gives mean and variance; a sum of squares about 0 would have none of its digits. */
static void
batch_norm__keeps_the_digits_of_a_variance_far_from_zero (void **state)
{
  static const TdShape shapes[]
      = { { 2, { 300, 5 } }, { 3, { 5, 3, 40 } }, { 3, { 3, 2, 1025 } }, { 3, { 6, 4, 9 } } };

  for (int s = 0; s < 4; s++)
    {
      const RigArray x = { TD_F64, shapes[s], 1e6, 1e6 + 1, 0 };
      const RigArray c = { TD_F64, { 1, { shapes[s].dim[1] } }, 0.5, 2, 0 };
      const RigArray in[3] = { x, c, c }, out[3] = { x, c, c };
      const BatchNorm train
          = { TD_BATCH_NORM_TRAIN, 3, 3, s == 3 ? TD_CHANNELS_LAST : TD_ROW_MAJOR };

      rig_check ("batch norm far from 0", in, 3, out, 3, 1e-8, call_batch_norm, &train);
    }
}

typedef struct
{
  TdRowNormKind kind;
  TdRowNorm norm;
  int n_in, n_out;
} RowNorm;

static TdStatus
call_row_norm (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const RowNorm *c = context;

  return gpu == NULL ? td__cpu_row_norm (NULL, c->kind, &c->norm, in, c->n_in, out, c->n_out)
                     : td_cuda_row_norm (gpu, c->kind, &c->norm, in, c->n_in, out, c->n_out);
}

/* Forward and back; the i-th of the types, every other one centred. */
static void
check_row_norm (const int64_t *n, int i, RigCall run)
{
  const bool centred = i % 2 == 0;
  const TdDtype dtype = norm_dtypes[i / 2][0];
  const RigArray x = { dtype, { 4, { n[0], n[1], n[2], n[3] } }, -2, 3, 0 };
  const RigArray c = { norm_dtypes[i / 2][1], { 1, { n[1] * n[2] } }, 0.5, 2, 0 };
  const RigArray rows = { norm_dtypes[i / 2][2], { 1, { n[0] * n[1] } }, 0.5, 1, 0 };
  const RigArray forward_in[3] = { x, c, c }, forward_out[3] = { x, rows, rows };
  const RigArray grad_in[5] = { x, c, x, rows, rows }, grad_out[3] = { x, c, c };
  RowNorm call
      = { TD_ROW_NORM, { n[0], n[1], n[2], n[3], 1e-5, centred }, 2 + centred, 2 + centred };

  rig_check ("row norm", forward_in, call.n_in, forward_out, call.n_out, tolerance_of (dtype),
             run, &call);
  call.kind = TD_ROW_NORM_GRAD;
  call.n_in = 4 + centred;
  rig_check ("row norm gradient", grad_in, call.n_in, grad_out, call.n_out,
             tolerance_of (dtype), run, &call);
}

static void
row_norm__gives_the_cpus_rows_and_gradients (void **state)
{
  static const int64_t sizes[][4] /* n, groups, channels, rest */
      = {
          { 5, 1, 7, 1 }, { 200, 1, 40, 1 }, { 3, 2, 3, 11 }, { 2, 1, 1500, 1 }, { 4, 3, 2, 1 }
        };

  for (int s = 0; s < 5; s++)
    for (int i = 0; i < (s == 1 || s == 3 ? 4 : 12); i++) /* halves: the short ones */
      check_row_norm (sizes[s], i, call_row_norm);
}

static void
row_norm__is_the_cpus_in_rows_of_packs_kept_or_read_again (void **state)
{
  static const int64_t sizes[][4] = { { 37, 1, 8, 1 },   { 9, 2, 24, 1 },   { 5, 1, 264, 1 },
                                      { 2, 1, 1024, 1 }, { 1, 1, 4104, 1 }, { 1, 1, 8216, 1 } };

  for (int s = 0; s < 6; s++)
    for (int i = 0; i < 12; i++)
      check_row_norm (sizes[s], i, call_row_norm);
}

/* Pieces of the rows, tiles of the channels; packs of them, or of what is behind a channel. */
static void
row_norm__sums_gradients_of_its_vectors_by_pieces (void **state)
{
  static const int64_t sizes[][4] = { { 70, 1, 136, 1 }, { 40, 2, 21, 1 },  { 4100, 1, 2, 1 },
                                      { 7, 3, 1, 1 },    { 25, 1, 2, 200 }, { 25, 1, 1, 99 } };

  for (int s = 0; s < 6; s++)
    for (int i = s % 2; i < 12; i += s < 2 ? 2 : 4)
      check_row_norm (sizes[s], i, call_row_norm);
}

/* Blocks that take whole rows and sum gradients of gamma and beta on the way: one pack of each
 * thread, or two, some of them without; rows that are no multiple of what a block takes. */
static void
row_norm__sums_gradients_of_its_vectors_with_those_of_rows (void **state)
{
  static const int64_t sizes[][4]
      = { { 39, 1, 520, 1 }, { 5, 1, 1024, 1 }, { 4, 1, 1032, 1 }, { 7, 1, 2048, 1 } };

  for (int s = 0; s < 4; s++)
    for (int i = 0; i < 12; i += s == 0 ? 1 : 2)
      check_row_norm (sizes[s], i, call_row_norm);
}

/* x and its like begin one number behind an aligned place, and have a row less. */
static TdStatus
call_row_norm_behind (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const RowNorm *c = context;
  RowNorm less = *c;
  TdShape rows = { 4, { c->norm.n - 1, c->norm.groups, c->norm.channels, c->norm.rest } };
  TdTensor of_in[5], of_out[3], *arrays[] = { &of_in[0], &of_out[0], &of_in[2] };

  less.norm.n--;
  memcpy (of_in, in, (size_t)c->n_in * sizeof *in);
  memcpy (of_out, out, (size_t)c->n_out * sizeof *out);
  for (int i = 0; i < (c->kind == TD_ROW_NORM_GRAD ? 3 : 2); i++)
    {
      arrays[i]->data = (char *)arrays[i]->data + rig_bytes_of (arrays[i]->dtype);
      arrays[i]->shape = &rows;
      arrays[i]->size -= c->norm.groups * c->norm.channels * c->norm.rest;
    }
  return call_row_norm (gpu, of_in, of_out, &less);
}

static void
row_norm__is_the_cpus_in_rows_that_are_not_aligned (void **state)
{
  static const int64_t size[4] = { 12, 1, 24, 1 };

  for (int i = 0; i < 12; i++)
    check_row_norm (size, i, call_row_norm_behind);
}

/* --- pooling --- */

typedef struct
{
  TdPoolKind kind;
  TdPooling attrs;
} Pool;

static TdStatus
call_pool (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const Pool *c = context;
  const int n_in = c->kind == TD_POOL_MAX_GRAD || c->kind == TD_POOL_MAX_GATHER ? 2 : 1;
  TdTensor *out2 = c->kind == TD_POOL_MAX ? &out[1] : NULL;

  return gpu == NULL ? td__cpu_pooling_any (NULL, c->kind, &c->attrs, in, n_in, out, out2)
                     : td_cuda_pooling (gpu, c->kind, &c->attrs, in, n_in, out, out2);
}

/* indices: the type that places are remembered in. */
static void
check_pools (const TdPooling *attrs, const TdShape *image, const TdShape *pooled, TdDtype dtype,
             TdDtype indices)
{
  const RigArray x = { dtype, *image, -2, 2, 0 }, y = { dtype, *pooled, -2, 2, 0 };
  int64_t places = 1;
  RigArray index = { indices, *pooled, 0, 0, 0 };
  Pool c = { TD_POOL_AVERAGE, *attrs };
  const double tolerance = dtype == TD_F64   ? 1e-13
                           : dtype == TD_F32 ? 1e-6
                                             : tolerance_of (dtype);

  for (int i = 0; i < attrs->ndim; i++)
    places *= attrs->ksize[i];
  index.high = (double)places;
  rig_check ("average pooling", &x, 1, &y, 1, tolerance, call_pool, &c);
  c.kind = TD_POOL_AVERAGE_GRAD;
  rig_check ("gradient of average pooling", &y, 1, &x, 1, tolerance, call_pool, &c);
  if (attrs->adaptive)
    return;
  c.kind = TD_POOL_MAX;
  rig_check ("max pooling", &x, 1, (const RigArray[]){ y, index }, 2, 0, call_pool, &c);
  c.kind = TD_POOL_MAX_GRAD;
  rig_check ("gradient of max pooling", (const RigArray[]){ index, y }, 2, &x, 1, tolerance,
             call_pool, &c);
  c.kind = TD_POOL_MAX_GATHER;
  rig_check ("gather of max pooling", (const RigArray[]){ index, x }, 2, &y, 1, 0, call_pool,
             &c);
}

static void
pooling__gives_the_cpus_numbers_over_any_axes (void **state)
{
  for (int i = 0; i < 48; i++)
    {
      TdPooling attrs
          = { .ndim = 1 + i % 4,
              .divisor = (TdPoolDivisor)(i % 3),
              .adaptive = i % 12 == 7 || i == 33,
              .layout = (uint8_t)(i / 4 % 2 == 0 ? TD_ROW_MAJOR : TD_CHANNELS_LAST) };
      TdShape image = { 2 + attrs.ndim, { 2, i % 8 < 2 ? 3 : 4 } }, pooled = image;

      for (int k = 0; k < attrs.ndim; k++)
        {
          const int64_t size = 3 + (int64_t)rig_random (attrs.ndim > 2 ? 4 : 9);

          attrs.ksize[k] = 1 + (int)rig_random (3);
          attrs.stride[k] = 1 + (int)rig_random (3);
          attrs.pad[k] = (int)rig_random ((uint64_t)attrs.ksize[k]);
          image.dim[2 + k] = size;
          pooled.dim[2 + k] = attrs.adaptive ? 1 + (int64_t)rig_random ((uint64_t)size)
                                             : (size + 2 * attrs.pad[k] - attrs.ksize[k]
                                                + (int)rig_random (2) * (attrs.stride[k] - 1))
                                                       / attrs.stride[k]
                                                   + 1;
        }
      check_pools (&attrs, &image, &pooled, floats[(i + i / 4) % 4],
                   i % 5 == 4 ? TD_I32 : TD_U8);
    }
}

static void
pooling__remembers_every_place_of_a_byte_and_more (void **state)
{
  static const struct
  {
    int ksize[2];
    TdDtype indices;
  } rows[] = { { { 15, 17 }, TD_U8 }, { { 16, 16 }, TD_I32 }, { { 1, 255 }, TD_U8 } };

  for (int i = 0; i < 6; i++)
    {
      const int *k = rows[i / 2].ksize;
      const TdPooling attrs = { .ndim = 2,
                                .ksize = { k[0], k[1] },
                                .stride = { 3, 4 },
                                .pad = { k[0] / 2, k[1] / 2 },
                                .layout = i % 2 == 0 ? TD_CHANNELS_LAST : TD_ROW_MAJOR };
      const TdShape image = { 4, { 2, 4, 19, 21 } };
      const TdShape pooled = { 4,
                               { 2, 4, (19 + 2 * attrs.pad[0] - k[0]) / 3 + 1,
                                 (21 + 2 * attrs.pad[1] - k[1]) / 4 + 1 } };

      check_pools (&attrs, &image, &pooled, floats[i % 4], rows[i / 2].indices);
    }
}

/* Most are taken 16 bytes of a row at a time; those that are no multiple of it, or leave a row
 * out, are not. */
static void
pooling__of_two_by_two_side_by_side_gives_the_cpus_numbers (void **state)
{
  static const struct
  {
    int64_t height, width;
    int layout;
    TdDtype indices;
  } rows[] = { { 6, 16, TD_ROW_MAJOR, TD_U8 },     { 2, 8, TD_ROW_MAJOR, TD_I32 },
               { 4, 4, TD_ROW_MAJOR, TD_U8 },      { 4, 6, TD_ROW_MAJOR, TD_U8 },
               { 5, 16, TD_ROW_MAJOR, TD_U8 },     { 4, 17, TD_ROW_MAJOR, TD_U8 },
               { 4, 16, TD_CHANNELS_LAST, TD_U8 }, { 32, 32, TD_ROW_MAJOR, TD_U8 } };

  for (int i = 0; i < 4 * (int)(sizeof rows / sizeof rows[0]); i++)
    {
      const int r = i / 4;
      const TdPooling attrs = { .ndim = 2,
                                .ksize = { 2, 2 },
                                .stride = { 2, 2 },
                                .divisor = (TdPoolDivisor)(r % 3),
                                .layout = (uint8_t)rows[r].layout };
      const TdShape image = { 4, { 3, 4, rows[r].height, rows[r].width } };
      const TdShape pooled = { 4, { 3, 4, rows[r].height / 2, rows[r].width / 2 } };

      check_pools (&attrs, &image, &pooled, floats[i % 4], rows[r].indices);
    }
}

/* NaN, infinities and zeros of either sign, in windows and in what comes back to them. */
static void
pooling__of_two_by_two_takes_nan_as_the_cpu_does (void **state)
{
  const TdPooling attrs = { .ndim = 2, .ksize = { 2, 2 }, .stride = { 2, 2 } };
  const TdShape image = { 4, { 2, 3, 8, 32 } }, pooled = { 4, { 2, 3, 4, 16 } };

  for (int d = 0; d < 4; d++)
    {
      const RigArray x = { floats[d], image, -2, 2, RIG_SPECIAL };
      const RigArray y = { floats[d], pooled, -2, 2, RIG_SPECIAL };
      const RigArray index = { TD_U8, pooled, 0, 4, 0 };
      Pool c = { TD_POOL_MAX, attrs };

      rig_check ("max", &x, 1, (const RigArray[]){ y, index }, 2, 0, call_pool, &c);
      c.kind = TD_POOL_MAX_GRAD;
      rig_check ("gradient of max", (const RigArray[]){ index, y }, 2, &x, 1, 0, call_pool, &c);
      c.kind = TD_POOL_AVERAGE_GRAD;
      rig_check ("gradient of average", &y, 1, &x, 1, 0, call_pool, &c);
    }
}

static void
pooling__takes_the_first_nan_of_a_window (void **state)
{
  const Pool c = { TD_POOL_MAX, { 2, { 3, 3 }, { 2, 2 }, { 1, 1 }, TD_POOL_BY_WINDOW, false } };
  const RigArray x = { TD_F32, { 4, { 2, 2, 13, 13 } }, -2, 2, RIG_SPECIAL };
  const RigArray out[2] = { { TD_F32, { 4, { 2, 2, 7, 7 } }, 0, 0, 0 },
                            { TD_U8, { 4, { 2, 2, 7, 7 } }, 0, 0, 0 } };

  rig_check ("max pooling of NaN", &x, 1, out, 2, 0, call_pool, &c);
}

/* --- convolution --- */

typedef struct
{
  TdConvKind kind;
  TdConv attrs;
  int n_in;
} Conv;

static TdStatus
call_conv (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const Conv *c = context;

  return gpu == NULL ? td__conv_by_definition (c->kind, &c->attrs, in, c->n_in, out)
                     : td_cuda_conv (gpu, c->kind, &c->attrs, in, c->n_in, out);
}

static void
conv__gives_the_definitions_numbers_over_any_axes (void **state)
{
  for (int i = 0; i < 30; i++)
    {
      const int ndim = 1 + i % 3, groups = i % 4 == 3 ? 2 : 1, cg = 1 + i % 2, og = 1 + i % 3;
      const TdDtype dtype = types[i / 3 % 2];
      Conv c = { TD_CONV_FORWARD,
                 { .ndim = ndim, .groups = groups, .accumulate = i % 5 == 0 },
                 2 + i % 2 };
      TdShape x = { 2 + ndim, { 2, cg * groups } }, w = { 2 + ndim, { og * groups, cg } };
      TdShape y = { 2 + ndim, { 2, og * groups } };
      RigArray in[3], out;

      for (int k = 0; k < ndim; k++)
        {
          int64_t reach;

          c.attrs.stride[k] = 1 + (int)rig_random (3);
          c.attrs.pad[k] = (int)rig_random (3);
          c.attrs.dilate[k] = 1 + (int)rig_random (2);
          w.dim[2 + k] = 1 + (int64_t)rig_random (3);
          x.dim[2 + k] = 5 + (int64_t)rig_random (ndim > 2 ? 3 : 9);
          reach = (w.dim[2 + k] - 1) * c.attrs.dilate[k] + 1;
          y.dim[2 + k] = (x.dim[2 + k] + 2 * c.attrs.pad[k] - reach) / c.attrs.stride[k] + 1;
        }
      in[0] = (RigArray){ dtype, x, -1, 1, 0 };
      in[1] = (RigArray){ dtype, w, -1, 1, 0 };
      in[2] = (RigArray){ dtype, { 1, { og * groups } }, -1, 1, 0 };
      out = (RigArray){ dtype, y, -1, 1, RIG_KEEP };
      rig_check ("convolution", in, c.n_in, &out, 1, tolerance_of (dtype), call_conv, &c);
      c.kind = TD_CONV_DATA_GRAD;
      in[0].shape = w;
      in[1].shape = y;
      in[2].shape.dim[0] = cg * groups;
      out.shape = x;
      rig_check ("convolution's data gradient", in, c.n_in, &out, 1, tolerance_of (dtype),
                 call_conv, &c);
      c.kind = TD_CONV_WEIGHT_GRAD;
      c.n_in = 2;
      in[0].shape = x;
      out.shape = w;
      rig_check ("convolution's weight gradient", in, 2, &out, 1, tolerance_of (dtype),
                 call_conv, &c);
    }
}

/* --- products --- */

static TdStatus
call_gemm (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  return gpu == NULL ? td__cpu_gemm (NULL, context, &in[0], &in[1], &out[0])
                     : td_cuda_gemm (gpu, context, &in[0], &in[1], &out[0]);
}

static void
gemm__gives_the_cpus_products_both_ways_round (void **state)
{
  static const int64_t sizes[][3] = { { 1, 1, 1 },    { 65, 3, 17 }, { 64, 64, 16 },
                                      { 5, 130, 40 }, { 4, 4, 0 },   { 0, 3, 2 } };

  for (int s = 0; s < 6; s++)
    for (int i = 0; i < 8; i++)
      {
        const int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2], batch = 1 + i % 3;
        const TdDtype dtype = types[i / 4];
        const TdGemm g = { .ta = i % 2 == 1,
                           .tb = i / 2 % 2 == 1,
                           .m = m,
                           .n = n,
                           .k = k,
                           .batch = batch,
                           .stride_a = m * k,
                           .stride_b = i % 3 == 2 ? 0 : k * n,
                           .stride_c = m * n,
                           .alpha = i % 2 == 0 ? 1 : 0.5,
                           .beta = i % 4 == 1            ? 1
                                   : i % 4 == 2 && k > 0 ? -0.5
                                                         : 0 };
        const RigArray in[2]
            = { { dtype, { 3, { batch, g.ta ? k : m, g.ta ? m : k } }, -1, 1, 0 },
                { dtype, { 3, { batch, g.tb ? n : k, g.tb ? k : n } }, -1, 1, 0 } };
        const RigArray out = { dtype, { 3, { batch, m, n } }, -1, 1, RIG_KEEP };

        rig_check ("product", in, 2, &out, 1, tolerance_of (dtype), call_gemm, &g);
      }
}

typedef struct
{
  TdAttentionKind kind;
  TdAttention a;
  int n_in;
} Attend;

static TdStatus
call_attention (TdCudaLauncher *gpu, TdTensor *in, TdTensor *out, const void *context)
{
  const Attend *c = context;
  const int n_out = c->kind == TD_ATTENTION ? 2 : 3;

  return gpu == NULL ? td__cpu_attention (NULL, c->kind, &c->a, in, c->n_in, out, n_out)
                     : td_cuda_attention (gpu, c->kind, &c->a, in, c->n_in, out, n_out);
}

static void
attention__gives_the_cpus_rows_and_gradients (void **state)
{
  static const int64_t sizes[][5] /* batch, queries, keys, d, d_v */
      = {
          { 1, 1, 1, 1, 1 },         { 4, 7, 9, 8, 5 },      { 2, 3, LONG, 4, 6 },
          { 2, LONG - 40, 5, 3, 2 }, { 1, 130, 70, 72, 68 }, { 2, 66, 140, 16, 132 },
        };

  for (int s = 0; s < (int)(sizeof sizes / sizeof sizes[0]); s++)
    for (int i = s % 2; i<8; i += s> 1 ? FEWER : 1)
      {
        const int64_t *n = sizes[s];
        const bool masked = i % 4 >= 2;
        const TdDtype dtype = types[i / 4];
        const RigArray q = { dtype, { 3, { n[0], n[1], n[3] } }, -1, 1, 0 };
        const RigArray k = { dtype, { 3, { n[0], n[2], n[3] } }, -1, 1, 0 };
        const RigArray v = { dtype, { 3, { n[0], n[2], n[4] } }, -1, 1, 0 };
        const RigArray y = { dtype, { 3, { n[0], n[1], n[4] } }, -1, 1, 0 };
        const RigArray sums = { dtype, { 2, { n[0], n[1] } }, 2, 3, 0 };
        const RigArray mask = { dtype, { 3, { (n[0] + 1) / 2, n[1], n[2] } }, 0, 1, RIG_WHOLE };
        Attend c = { TD_ATTENTION,
                     { n[0], n[1], n[2], n[3], n[4], 2, n[3] > 8 ? 0.1 : 0.7, i % 2 == 1 },
                     3 + masked };
        RigArray in[7] = { q, k, v };

        in[3] = mask;
        rig_check ("attention", in, c.n_in, (const RigArray[]){ y, sums }, 2,
                   tolerance_of (dtype), call_attention, &c);
        c.kind = TD_ATTENTION_GRAD;
        c.n_in = 6 + masked;
        in[3] = in[4] = y;
        in[5] = sums;
        in[6] = mask;
        rig_check ("attention's gradient", in, c.n_in, (const RigArray[]){ q, k, v }, 3,
                   tolerance_of (dtype), call_attention, &c);
      }
}

static void
kernels__of_these_families_have_all_run (void **state)
{
  static const char *const words[]
      = { "td_batch_norm_", "td_row_norm_", "td_pool_", "td_conv_", "td_gemm_", "td_attend_" };

  rig_all_ran (words, (int)(sizeof words / sizeof words[0]));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (batch_norm__trains_applies_and_goes_back_as_the_cpu),
    cmocka_unit_test (batch_norm__keeps_the_digits_of_a_variance_far_from_zero),
    cmocka_unit_test (row_norm__gives_the_cpus_rows_and_gradients),
    cmocka_unit_test (row_norm__is_the_cpus_in_rows_of_packs_kept_or_read_again),
    cmocka_unit_test (row_norm__sums_gradients_of_its_vectors_by_pieces),
    cmocka_unit_test (row_norm__sums_gradients_of_its_vectors_with_those_of_rows),
    cmocka_unit_test (row_norm__is_the_cpus_in_rows_that_are_not_aligned),
    cmocka_unit_test (pooling__gives_the_cpus_numbers_over_any_axes),
    cmocka_unit_test (pooling__remembers_every_place_of_a_byte_and_more),
    cmocka_unit_test (pooling__of_two_by_two_side_by_side_gives_the_cpus_numbers),
    cmocka_unit_test (pooling__of_two_by_two_takes_nan_as_the_cpu_does),
    cmocka_unit_test (pooling__takes_the_first_nan_of_a_window),
    cmocka_unit_test (conv__gives_the_definitions_numbers_over_any_axes),
    cmocka_unit_test (gemm__gives_the_cpus_products_both_ways_round),
    cmocka_unit_test (attention__gives_the_cpus_rows_and_gradients),
    cmocka_unit_test (kernels__of_these_families_have_all_run),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
