/* Launches of batch normalisation.  With channels first there is a block for each channel, or
 * several where channels are few; with channels last, threads lie along the channels and
 * blocks share the rows.
 *
 * SPDX-License-Identifier: MIT */
#include "batch-norm.h"
#include "launch.h"

#include <assert.h>

enum
{
  PIECE_ROWS = 64,   /* at least, of the places of a piece */
  PIECE_STEPS = 4,   /* the same of a channel's, for each of the block's threads */
  BLOCKS_OF_SM = 4,  /* pieces in flight */
  MAX_PIECES = 1024, /* which some threads of each channel add up */
  MAX_COLUMNS = 32,  /* threads side by side along the channels */
  END_CHANNELS = 8   /* as in batch-norm.cu */
};

#define KERNELS(name)                                                                          \
  static TdCudaKernel name[TD_N_DTYPES] = { TD_FLOATS ("td_" #name), TD_HALVES ("td_" #name) }
/* The second row counts what it writes. */
#define WRITERS(name)                                                                          \
  static TdCudaKernel name[2][TD_N_DTYPES]                                                     \
      = { { TD_FLOATS ("td_" #name), TD_HALVES ("td_" #name) },                                \
          { TD_FLOATS ("td_count_" #name), TD_HALVES ("td_count_" #name) } }
WRITERS (batch_norm_train);
WRITERS (batch_norm_fixed);
WRITERS (batch_norm_grad);
KERNELS (batch_norm_sum);
WRITERS (batch_norm_scale);
WRITERS (batch_norm_scale_grad);
KERNELS (batch_norm_last_sum);
WRITERS (batch_norm_last_scale);
WRITERS (batch_norm_last_scale_grad);
/* By what the vectors are computed in. */
static TdCudaKernel batch_norm_end[2]
    = { { .name = "td_batch_norm_end_f32" }, { .name = "td_batch_norm_end_f64" } };
static TdCudaKernel batch_norm_last_fixed[2] = { { .name = "td_batch_norm_last_fixed_f32" },
                                                 { .name = "td_batch_norm_last_fixed_f64" } };

/* Room for the moments and the sums of pieces. */
static bool
take_room (TdCudaLauncher *l, TdBatchNormParams *a)
{
  a->moments = l->workspace (l, (size_t)(2 * (a->n_pieces + 1) * a->c) * sizeof (double));
  a->parts = a->moments != NULL ? a->moments + 2 * a->c : NULL;
  return a->moments != NULL;
}

/* Sums over all places of each channel, of which training, or the gradient, is made: of
 * pieces, then of these. */
static TdStatus
sum_channels (TdCudaLauncher *l, TdCudaKernel *kernel, TdBatchNormParams *a, TdDtype dtype,
              int kind, int64_t tiles)
{
  TdStatus status;

  a->moment = kind == TD_BATCH_NORM_GRAD ? TD_MOMENT_GRAD : TD_MOMENT_TRAIN;
  status = td__launch (l, kernel, td__blocks (l, tiles, 1), a->n_pieces, a);
  return status == TD_OK ? td__launch (l, &batch_norm_end[dtype == TD_F64],
                                       td__blocks (l, a->c, END_CHANNELS), 1, a)
                         : status;
}

/* Numbers that one thread of such a grid writes, at most. */
static int64_t
share_of_thread (const TdBatchNormParams *a, int64_t blocks_x, int64_t blocks_y)
{
  const int64_t rows = a->columns > 0 ? TD_BLOCK / a->columns * blocks_y : TD_BLOCK;
  const int64_t places = a->columns > 0 ? a->n * a->rest : a->piece;
  const int64_t pack = a->packs ? TD_PACK : 1;
  const int64_t tiles
      = a->columns > 0 ? (a->c + a->columns * pack - 1) / (a->columns * pack) : a->c;

  return (tiles + blocks_x - 1) / blocks_x * ((places + rows - 1) / rows) * pack;
}

/* Launch who writes all of y, and counts that where somebody asks.  Fewer blocks count than
 * write: of those whose channels lie side by side, rows of the grid may go as well. */
static TdStatus
write_all (TdCudaLauncher *l, TdCudaKernel (*kernels)[TD_N_DTYPES], const TdBatchNormParams *p,
           const TdTensor *y, int64_t blocks_x, int64_t blocks_y)
{
  const int64_t most = td__counting_blocks (l);
  TdBatchNormWithStats a = { .p = *p };

  if (blocks_x > 0 && blocks_y > 0)
    {
      const int64_t some_x = blocks_x < most ? blocks_x : most, rows = most / some_x;
      const int64_t some_y = blocks_y < rows ? blocks_y : rows;
      int64_t n = some_x * some_y;

      assert (p->columns > 0 || some_y == blocks_y); /* rows are pieces of their own */
      if (share_of_thread (p, some_x, some_y) <= UINT16_MAX)
        a.counts = td__count (l, &kernels[true][y->dtype], y, &n);
      blocks_x = a.counts != NULL ? some_x : blocks_x;
      blocks_y = a.counts != NULL ? some_y : blocks_y;
    }
  return td__launch (l, &kernels[a.counts != NULL][y->dtype], blocks_x, blocks_y, &a);
}

/* (n, c, rest): pieces of a channel where there are too few of these for the device. */
static TdStatus
channels_first (TdCudaLauncher *l, TdBatchNormParams *a, const TdTensor *y, int kind)
{
  static TdCudaKernel (*const kernels[])[TD_N_DTYPES]
      = { [TD_BATCH_NORM_TRAIN] = batch_norm_train,
          [TD_BATCH_NORM_FIXED] = batch_norm_fixed,
          [TD_BATCH_NORM_GRAD] = batch_norm_grad };
  const int64_t steps = a->n * a->by_rest.value, blocks = td__blocks (l, a->c, 1);
  int64_t pieces = (int64_t)l->n_sms * BLOCKS_OF_SM / (blocks > 0 ? blocks : 1);
  TdStatus status;

  if (pieces > steps / (TD_BLOCK * PIECE_STEPS))
    pieces = steps / (TD_BLOCK * PIECE_STEPS);
  pieces = pieces < 1 ? 1 : pieces > MAX_PIECES ? MAX_PIECES : pieces;
  a->piece = (steps + pieces - 1) / pieces;
  a->n_pieces = a->piece > 0 ? (int)((steps + a->piece - 1) / a->piece) : 1;
  if (a->n_pieces == 1 || kind == TD_BATCH_NORM_FIXED)
    return write_all (l, kernels[kind], a, y, blocks, a->n_pieces);
  if (!take_room (l, a))
    return TD_ERR_MEMORY;
  status = sum_channels (l, &batch_norm_sum[y->dtype], a, y->dtype, kind, a->c);
  return status != TD_OK
             ? status
             : write_all (l,
                          kind == TD_BATCH_NORM_GRAD ? batch_norm_scale_grad : batch_norm_scale,
                          a, y, blocks, a->n_pieces);
}

static TdStatus
channels_last (TdCudaLauncher *l, TdBatchNormParams *a, const TdTensor *y, int kind)
{
  const int64_t places = a->n * a->rest, units = a->packs ? a->c / TD_PACK : a->c;
  const TdDtype dtype = y->dtype;
  TdCudaKernel (*scale)[TD_N_DTYPES]
      = kind == TD_BATCH_NORM_GRAD ? batch_norm_last_scale_grad : batch_norm_last_scale;
  int64_t tiles, pieces, rows;
  TdStatus status;

  for (a->columns = 1; a->columns < units && a->columns < MAX_COLUMNS;)
    a->columns *= 2;
  tiles = (units + a->columns - 1) / a->columns;
  pieces = (int64_t)l->n_sms * BLOCKS_OF_SM / tiles;
  if (pieces > (places + PIECE_ROWS - 1) / PIECE_ROWS)
    pieces = (places + PIECE_ROWS - 1) / PIECE_ROWS;
  pieces = pieces < 1 ? 1 : pieces > MAX_PIECES ? MAX_PIECES : pieces;
  a->piece = (places + pieces - 1) / pieces;
  a->n_pieces = (int)((places + a->piece - 1) / a->piece);
  if (!take_room (l, a))
    return TD_ERR_MEMORY;
  status = kind == TD_BATCH_NORM_FIXED
               ? td__launch (l, &batch_norm_last_fixed[dtype == TD_F64],
                             td__blocks (l, a->c, TD_BLOCK), 1, a)
               : sum_channels (l, &batch_norm_last_sum[dtype], a, dtype, kind, tiles);
  rows = (places * a->columns + TD_BLOCK - 1) / TD_BLOCK;
  tiles = td__blocks (l, tiles, 1);
  rows = td__blocks (l, rows * tiles, 1) / tiles;
  return status == TD_OK ? write_all (l, scale, a, y, tiles, rows < 1 ? 1 : rows) : status;
}

/* The operands; false: vectors of types that no kernel takes. */
static bool
take_operands (TdBatchNormParams *a, int kind, const double *params, const TdTensor *in,
               int n_in, TdTensor *out, int n_out)
{
  const bool grad = kind == TD_BATCH_NORM_GRAD, train = kind == TD_BATCH_NORM_TRAIN;
  const TdDtype dtype = out[0].dtype, own = dtype == TD_F64 ? TD_F64 : TD_F32;

  a->gamma_dtype = (int)in[1].dtype;
  a->moments_dtype = (int)own;
  if ((in[1].dtype != dtype && in[1].dtype != own) || (!grad && in[2].dtype != in[1].dtype))
    return false;
  *(grad ? &a->gy : &a->beta) = in[2].data;
  if (n_in == 5)
    {
      a->moments_dtype = (int)in[3].dtype;
      if ((in[3].dtype != dtype && in[3].dtype != own) || in[4].dtype != in[3].dtype)
        return false;
      a->mean = in[3].data;
      a->spread = in[4].data;
    }
  if (train && n_in == 5)
    {
      a->running_mean = in[3].data;
      a->running_var = in[4].data;
    }
  if (!grad)
    a->eps = params[0];
  if (train)
    a->decay = params[1];
  for (int i = 1; i < 3 && n_out > 2; i++)
    {
      if (out[i].dtype != (grad ? in[1].dtype : own))
        return false;
      *(i == 1 ? &a->mean_out : &a->spread_out) = out[i].data;
    }
  return true;
}

TdStatus
td_cuda_batch_norm (TdCudaLauncher *l, int kind, const double *params, const TdTensor *in,
                    int n_in, TdTensor *out, int n_out)
{
  const TdShape *x = in[0].shape;
  const TdDtype dtype = out[0].dtype;
  const size_t pack = TD_PACK * td__bytes_of (dtype);
  TdBatchNormParams a = { .x = in[0].data,
                          .gamma = in[1].data,
                          .y = out[0].data,
                          .n = x->dim[0],
                          .c = x->dim[1],
                          .rest = 1 };
  bool last;

  for (int i = 2; i < x->ndim; i++)
    a.rest *= x->dim[i];
  if (a.n * a.rest > INT32_MAX) /* places are divided up in 32 bits */
    return TD_ERR_SHAPE;
  if (batch_norm_grad[0][dtype].name == NULL
      || !take_operands (&a, kind, params, in, n_in, out, n_out))
    return TD_ERR_DTYPE;
  last = in[0].layout == TD_CHANNELS_LAST || a.rest == 1;
  a.packs = dtype != TD_F64 && (last ? a.c : a.rest) % TD_PACK == 0 && td__aligned (a.x, pack)
            && td__aligned (a.gy, pack) && td__aligned (a.y, pack);
  a.by_rest = td__divisor (a.packs && !last ? a.rest / TD_PACK : a.rest);
  return last ? channels_last (l, &a, &out[0], kind) : channels_first (l, &a, &out[0], kind);
}
