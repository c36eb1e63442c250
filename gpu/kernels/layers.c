/* Launches of row normalisation, pooling, convolution, matrix products and attention.
 *
 * SPDX-License-Identifier: MIT */
#include "attention.h"
#include "launch.h"

#include <string.h>

#define KERNELS(name) static TdCudaKernel name[TD_N_DTYPES] = { TD_FLOATS ("td_" #name) }

enum
{
  MAX_SIZE = 1 << 30,  /* of an axis that attention's kernels count in 32 bits */
  MAX_BATCHES = 65535, /* of a grid's second axis */
  PIECE_STEPS = 4,     /* at least, of the packs whose gradients one thread adds up */
  BLOCKS_OF_SM = 4,    /* in flight while they do */
  ROWS_OF_BLOCK = 4,   /* at most, that it takes at a time */
  MAX_PIECES = 1024,   /* which some threads of each channel add up */
  MAX_COLUMNS = 32,    /* threads side by side along the channels, */
  FEW_ROWS = 4,        /* unless there are no more rows than this: then all of a block */
  FEW_PIECES = 2,      /* that one thread adds up */
  END_COLUMNS = 8      /* of a block that adds up more */
};

/* --- normalisation --- */

/* The second row: gamma and beta are f32. */
#define NORM_KERNELS(kernel)                                                                   \
  static TdCudaKernel kernel[2][TD_N_DTYPES]                                                   \
      = { { TD_FLOATS ("td_" #kernel), TD_HALVES ("td_" #kernel) },                            \
          { [TD_F16] = { .name = "td_" #kernel "_f16_f32" },                                   \
            [TD_BF16] = { .name = "td_" #kernel "_bf16_f32" } } }
NORM_KERNELS (row_norm);
NORM_KERNELS (row_norm_grad);
NORM_KERNELS (count_row_norm);
NORM_KERNELS (count_row_norm_grad);
NORM_KERNELS (norm_of_sum);
NORM_KERNELS (norm_grad_to_sum);
NORM_KERNELS (count_norm_of_sum);
NORM_KERNELS (count_norm_grad_to_sum);
NORM_KERNELS (row_norm_rows_grad);
NORM_KERNELS (norm_rows_grad_to_sum);
NORM_KERNELS (count_row_norm_rows_grad);
NORM_KERNELS (count_norm_rows_grad_to_sum);
NORM_KERNELS (row_norm_sums);
NORM_KERNELS (row_norm_end);

/* Whether rows are read in packs, and the threads of one. */
static void
choose_width (TdRowNormParams *a, TdDtype dtype, TdDtype vectors)
{
  const int64_t wide = TD_WIDE_BYTES / (int64_t)td__bytes_of (dtype);
  const size_t pack = (size_t)wide * td__bytes_of (vectors);

  a->packs = a->rest == 1 && td__rows_aligned (a->x, a->m, dtype)
             && td__rows_aligned (a->y, a->m, dtype) && td__rows_aligned (a->gy, a->m, dtype)
             && td__rows_aligned (a->added, a->m, dtype)
             && td__rows_aligned (a->sum, a->m, dtype) && td__aligned (a->gamma, pack)
             && td__aligned (a->beta, pack);
  a->lanes = a->packs ? td__wide_lanes (a->m, wide) : td__lanes (a->m);
}

/* Add up the pieces of gamma's and beta's gradients. */
static TdStatus
launch_end (TdCudaLauncher *l, TdRowNormParams *a, int mixed, TdDtype dtype)
{
  a->columns = a->n_pieces <= FEW_PIECES ? TD_BLOCK : END_COLUMNS;
  return td__launch (l, &row_norm_end[mixed][dtype],
                     td__blocks (l, a->groups * a->channels, a->columns), 1, a);
}

/* Whether a block takes whole rows, and sums gradients of gamma and beta on the way: rows that
 * give most of its threads a pack, and no thread more than two. */
static bool
takes_rows (const TdRowNormParams *a, TdDtype dtype)
{
  const int64_t pack = dtype == TD_F64 ? 2 : TD_PACK;

  return a->packs && a->groups == 1 && a->rest == 1 && a->rows >= ROWS_OF_BLOCK
         && a->m > TD_BLOCK * pack / 2 && a->m <= TD_BLOCK * pack * 2;
}

/* Gradients of all at once. */
static TdStatus
launch_rows_grad (TdCudaLauncher *l, TdRowNormParams *a, int mixed, TdDtype dtype,
                  const TdTensor *gx)
{
  const bool joins = a->added != NULL;
  TdCudaKernel *plain = &(joins ? norm_rows_grad_to_sum : row_norm_rows_grad)[mixed][dtype];
  TdCudaKernel *counting
      = &(joins ? count_norm_rows_grad_to_sum : count_row_norm_rows_grad)[mixed][dtype];
  const int64_t some = (a->rows + ROWS_OF_BLOCK - 1) / ROWS_OF_BLOCK;
  const int64_t most = (int64_t)l->n_sms * BLOCKS_OF_SM;
  int64_t blocks = some < most ? some : most;
  TdStatus status;

  blocks = blocks < MAX_PIECES ? blocks : MAX_PIECES;
  a->n_pieces = (int)blocks;
  a->parts = l->workspace (l, (size_t)(2 * a->n_pieces * a->m) * sizeof (double));
  if (a->parts == NULL)
    return TD_ERR_MEMORY;
  a->counts = td__count_lines_of_all (l, counting, gx, blocks, a->rows, a->m, TD_BLOCK);
  status = td__launch (l, a->counts != NULL ? counting : plain, blocks, 1, a);
  return status == TD_OK ? launch_end (l, a, mixed, dtype) : status;
}

/* Gradients of gamma and beta: pieces of the rows, then their sums. */
static TdStatus
launch_channel_sums (TdCudaLauncher *l, TdRowNormParams *a, int mixed, TdDtype dtype, int64_t n)
{
  const int64_t all = a->groups * a->channels, run = a->rest == 1 ? a->channels : a->rest;
  int64_t wide = TD_WIDE_BYTES / (int64_t)td__bytes_of (dtype), tiles = all, rows, pieces;
  TdStatus status;

  a->packs = td__rows_aligned (a->x, run, dtype) && td__rows_aligned (a->gy, run, dtype);
  wide = a->packs ? wide : 1;
  a->by_rest = td__divisor (a->rest == 1 ? 1 : a->rest / wide);
  for (a->columns = 1; a->columns < all / wide && a->columns < MAX_COLUMNS;)
    a->columns *= 2;
  if (n <= FEW_ROWS && a->columns == MAX_COLUMNS)
    a->columns = TD_BLOCK;
  if (a->rest == 1)
    tiles = (all + a->columns * wide - 1) / (a->columns * wide);
  /* Rows, or images, that are a piece at least. */
  rows = a->rest == 1 ? (int64_t)TD_BLOCK / a->columns * PIECE_STEPS
                      : (TD_BLOCK * PIECE_STEPS + a->by_rest.value - 1) / a->by_rest.value;
  pieces = (int64_t)l->n_sms * BLOCKS_OF_SM / (tiles > 0 ? tiles : 1);
  pieces = pieces < (n + rows - 1) / rows ? pieces : (n + rows - 1) / rows;
  /* Places are divided up in 32 bits. */
  pieces = pieces > n * a->by_rest.value / TD_PIECE + 1 ? pieces
                                                        : n * a->by_rest.value / TD_PIECE + 1;
  pieces = pieces > MAX_PIECES ? MAX_PIECES : pieces;
  a->piece = (n + pieces - 1) / pieces;
  a->n_pieces = a->piece > 0 ? (int)((n + a->piece - 1) / a->piece) : 1;
  a->parts = l->workspace (l, (size_t)(2 * a->n_pieces * all) * sizeof (double));
  if (a->parts == NULL)
    return TD_ERR_MEMORY;
  status
      = td__launch (l, &row_norm_sums[mixed][dtype], td__blocks (l, tiles, 1), a->n_pieces, a);
  return status == TD_OK ? launch_end (l, a, mixed, dtype) : status;
}

/* The kernel of a normalisation, or of its gradient: one that adds an array or not (joins), and
 * gathers statistics or not (counts). */
static TdCudaKernel *
choose_norm (bool counts, const TdRowNormParams *a, bool grad, int mixed, TdDtype dtype)
{
  static TdCudaKernel (*const forward[2][2])[TD_N_DTYPES]
      = { { row_norm, norm_of_sum }, { count_row_norm, count_norm_of_sum } };
  static TdCudaKernel (*const backward[2][2])[TD_N_DTYPES]
      = { { row_norm_grad, norm_grad_to_sum },
          { count_row_norm_grad, count_norm_grad_to_sum } };
  const bool joins = a->added != NULL;

  return &(grad ? backward : forward)[counts][joins][mixed][dtype];
}

TdStatus
td_cuda_row_norm (TdCudaLauncher *l, TdRowNormKind kind, const TdRowNorm *norm,
                  const TdTensor *in, int n_in, TdTensor *out, int n_out)
{
  const TdDtype dtype = out[0].dtype;
  const TdRowJoin *join = &norm->join;
  const int centred = norm->centred, mixed = in[1].dtype != dtype;
  const bool grad = kind == TD_ROW_NORM_GRAD;
  TdRowNormParams a = { .x = in[0].data,
                        .gamma = in[1].data,
                        .added = join->added != NULL ? join->added->data : NULL,
                        .y = out[0].data,
                        .sum = join->sum != NULL ? join->sum->data : NULL,
                        .rows = norm->n * norm->groups,
                        .groups = norm->groups,
                        .channels = norm->channels,
                        .rest = norm->rest,
                        .m = norm->channels * norm->rest,
                        .eps = norm->eps,
                        .over = 1 / (double)(norm->channels * norm->rest),
                        .centred = centred };
  TdCudaKernel *counting;
  int64_t blocks;
  bool counts;
  TdStatus status;

  /* Channels, and the group of a row, are told in 32 bits. */
  if (a.m > INT32_MAX || a.groups * a.channels > INT32_MAX
      || (a.groups > 1 && a.rows > UINT32_MAX))
    return TD_ERR_SHAPE;
  if ((mixed && in[1].dtype != TD_F32) || (grad && dtype != TD_F64 && in[3].dtype != TD_F32))
    return TD_ERR_DTYPE;
  a.by_rest = td__divisor (a.rest);
  if (grad)
    {
      a.gy = in[2].data;
      a.mean_in = centred ? in[3].data : NULL;
      a.spread_in = in[3 + centred].data;
      a.ggamma = out[1].data;
      a.gbeta = centred ? out[2].data : NULL;
    }
  else
    {
      a.beta = centred ? in[2].data : NULL;
      a.mean = centred ? out[1].data : NULL;
      a.spread = out[1 + centred].data;
    }
  choose_width (&a, dtype, in[1].dtype);
  if (grad && takes_rows (&a, dtype))
    return launch_rows_grad (l, &a, mixed, dtype, &out[0]);
  blocks = td__blocks (l, a.rows, TD_BLOCK / a.lanes);
  counting = choose_norm (true, &a, grad, mixed, dtype);
  a.counts = td__count (l, counting, &out[0], &blocks);
  if (join->sum != NULL)
    a.sum_counts = td__count (l, counting, join->sum, &blocks);
  counts = a.counts != NULL || a.sum_counts != NULL;
  status = td__launch (l, choose_norm (counts, &a, grad, mixed, dtype), blocks, 1, &a);
  return grad && status == TD_OK ? launch_channel_sums (l, &a, mixed, dtype, norm->n) : status;
}

/* --- windows --- */

/* Kernels of two axes and of six; axes that an array lacks are of size 1. */
#define WINDOWS(name)                                                                          \
  static TdCudaKernel name[2][TD_N_DTYPES]                                                     \
      = { { TD_FLOATS ("td_" #name "_2d") }, { TD_FLOATS ("td_" #name "_6d") } }
#define POOLS(name)                                                                            \
  static TdCudaKernel name[2][TD_N_DTYPES]                                                     \
      = { { TD_FLOATS ("td_" #name "_2d"), TD_HALVES ("td_" #name "_2d") },                    \
          { TD_FLOATS ("td_" #name "_6d"), TD_HALVES ("td_" #name "_6d") } }
POOLS (pool_max);
POOLS (pool_max_grad);
POOLS (pool_gather);
POOLS (pool_average);
POOLS (pool_average_grad);
POOLS (count_pool_max);
POOLS (count_pool_max_grad);
POOLS (count_pool_average);
POOLS (count_pool_average_grad);
WINDOWS (conv);
WINDOWS (conv_data_grad);
WINDOWS (conv_weight_grad);

/* How the places of an array are found from its elements: divisors where 32 bits count them. */
static void
count_narrow (TdPoolParams *a, bool from_image)
{
  a->narrow = a->n * a->image <= TD_PIECE && a->n * a->pooled <= TD_PIECE;
  for (int i = 0; i < 2; i++)
    a->narrow = a->narrow && a->ksize[i] + a->pad[i] + a->stride[i] + a->size[i] <= TD_PIECE
                && a->n_places[i] * a->stride[i] <= TD_PIECE;
  if (!a->narrow)
    return;
  a->by_own = td__divisor (from_image ? a->pooled : a->image);
  a->by_inner = td__divisor (a->inner);
  for (int i = 0; i < 2; i++)
    {
      a->by_dim[i] = td__divisor (from_image ? a->n_places[i] : a->size[i]);
      a->by_stride[i] = td__divisor (a->stride[i]);
    }
}

/* Two by two, side by side, all of an image that is read or written by rows of 16 bytes. */
static uint32_t
count_strips (TdPoolParams *a, TdDtype dtype, const void *image, const void *pooled,
              const void *indices)
{
  const int64_t wide = TD_WIDE_BYTES / (int64_t)td__bytes_of (dtype);
  const size_t pack = (size_t)wide / 2;

  if (!a->narrow || a->adaptive || a->inner != 1 || !td__rows_aligned (image, a->size[1], dtype)
      || !td__aligned (pooled, pack * td__bytes_of (dtype))
      || !td__aligned (indices, pack * (a->bytes ? 1 : sizeof (int32_t))))
    return 0;
  for (int i = 0; i < 2; i++)
    if (a->ksize[i] != 2 || a->stride[i] != 2 || a->pad[i] != 0
        || a->size[i] != 2 * a->n_places[i])
      return 0;
  a->by_strip = td__divisor (a->size[1] / wide);
  return (uint32_t)(a->n * a->pooled / (wide / 2));
}

TdStatus
td_cuda_pooling (TdCudaLauncher *l, TdPoolKind kind, const TdPooling *attrs, const TdTensor *in,
                 int n_in, TdTensor *out, TdTensor *out2)
{
  static TdCudaKernel (*const kernels[])[TD_N_DTYPES]
      = { [TD_POOL_MAX] = pool_max,
          [TD_POOL_MAX_GRAD] = pool_max_grad,
          [TD_POOL_MAX_GATHER] = pool_gather,
          [TD_POOL_AVERAGE] = pool_average,
          [TD_POOL_AVERAGE_GRAD] = pool_average_grad };
  static TdCudaKernel (*const counting[])[TD_N_DTYPES]
      = { [TD_POOL_MAX] = count_pool_max,
          [TD_POOL_MAX_GRAD] = count_pool_max_grad,
          [TD_POOL_MAX_GATHER] = NULL,
          [TD_POOL_AVERAGE] = count_pool_average,
          [TD_POOL_AVERAGE_GRAD] = count_pool_average_grad };
  /* Which operand is the image, which is pooled: in[0], in[1], out. */
  static const int roles[][2] = { [TD_POOL_MAX] = { 0, 2 },
                                  [TD_POOL_MAX_GRAD] = { 2, 1 },
                                  [TD_POOL_MAX_GATHER] = { 1, 2 },
                                  [TD_POOL_AVERAGE] = { 0, 2 },
                                  [TD_POOL_AVERAGE_GRAD] = { 2, 0 } };
  const TdTensor *const operands[] = { &in[0], n_in > 1 ? &in[1] : NULL, out };
  const TdShape *image = operands[roles[kind][0]]->shape;
  const TdShape *pooled = operands[roles[kind][1]]->shape;
  const int wide = attrs->ndim > 2, none = (wide ? TD_MAX_SPATIAL : 2) - attrs->ndim;
  const TdTensor *index = kind == TD_POOL_MAX ? out2 : kind < TD_POOL_AVERAGE ? &in[0] : NULL;
  const size_t pack = TD_PACK * td__bytes_of (out->dtype);
  const size_t indices = index != NULL ? TD_PACK * td__bytes_of (index->dtype) : 1;
  int64_t blocks;
  TdPoolParams a = { .in0 = in[0].data,
                     .in1 = n_in > 1 ? in[1].data : NULL,
                     .out = out->data,
                     .index = out2 != NULL ? out2->data : NULL,
                     .n = image->dim[0] * image->dim[1],
                     .inner = attrs->layout == TD_CHANNELS_LAST ? image->dim[1] : 1,
                     .image = 1,
                     .pooled = 1,
                     .places = 1,
                     .divisor = (int)attrs->divisor,
                     .adaptive = attrs->adaptive,
                     .bytes = index != NULL && index->dtype == TD_U8 };

  for (int i = 0; i < none + attrs->ndim; i++)
    {
      const int k = i - none;

      a.size[i] = k < 0 ? 1 : image->dim[2 + k];
      a.n_places[i] = k < 0 ? 1 : pooled->dim[2 + k];
      a.ksize[i] = k < 0 || attrs->adaptive ? 1 : attrs->ksize[k];
      a.stride[i] = k < 0 || attrs->adaptive ? 1 : attrs->stride[k];
      a.pad[i] = k < 0 || attrs->adaptive ? 0 : attrs->pad[k];
      a.image *= a.size[i];
      a.pooled *= a.n_places[i];
      a.places *= k < 0 ? 1 : attrs->ksize[k];
    }
  if (!wide)
    count_narrow (&a, roles[kind][0] != 2);
  if (a.narrow && kind != TD_POOL_MAX_GATHER)
    a.strips
        = count_strips (&a, out->dtype, operands[roles[kind][0]]->data,
                        operands[roles[kind][1]]->data, index != NULL ? index->data : NULL);
  /* Indices lie in memory as the numbers do. */
  a.packs = a.narrow && out->dtype != TD_F64 && a.inner % TD_PACK == 0
            && td__aligned (a.in0, kind == TD_POOL_MAX_GRAD ? indices : pack)
            && td__aligned (a.in1, pack) && td__aligned (a.out, pack)
            && td__aligned (a.index, indices);
  blocks
      = td__blocks (l, a.strips > 0 ? a.strips : out->size / (a.packs ? TD_PACK : 1), TD_BLOCK);
  if (counting[kind] != NULL)
    a.parts = td__count (l, &counting[kind][wide][out->dtype], out, &blocks);
  return td__launch (l, &(a.parts != NULL ? counting : kernels)[kind][wide][out->dtype], blocks,
                     1, &a);
}

TdStatus
td_cuda_conv (TdCudaLauncher *l, TdConvKind kind, const TdConv *attrs, const TdTensor *in,
              int n_in, TdTensor *out)
{
  static TdCudaKernel (*const kernels[])[TD_N_DTYPES]
      = { [TD_CONV_FORWARD] = conv,
          [TD_CONV_DATA_GRAD] = conv_data_grad,
          [TD_CONV_WEIGHT_GRAD] = conv_weight_grad };
  const TdShape *x = kind == TD_CONV_DATA_GRAD ? out->shape : in[0].shape;
  const TdShape *w = kind == TD_CONV_FORWARD     ? in[1].shape
                     : kind == TD_CONV_DATA_GRAD ? in[0].shape
                                                 : out->shape;
  const TdShape *y = kind == TD_CONV_FORWARD ? out->shape : in[1].shape;
  const int wide = attrs->ndim > 2, none = (wide ? TD_MAX_SPATIAL : 2) - attrs->ndim;
  TdConvParams a = { .b = n_in > 2 ? in[2].data : NULL,
                     .out = out->data,
                     .n = x->dim[0],
                     .c = x->dim[1],
                     .o = w->dim[0],
                     .cg = w->dim[1],
                     .og = w->dim[0] / attrs->groups,
                     .image = 1,
                     .pixels = 1,
                     .window = 1,
                     .accumulate = attrs->accumulate };

  a.x = kind == TD_CONV_DATA_GRAD ? NULL : in[0].data;
  a.w = kind == TD_CONV_FORWARD ? in[1].data : in[0].data;
  a.gy = in[1].data;
  for (int i = 0; i < none + attrs->ndim; i++)
    {
      const int k = i - none;

      a.x_dim[i] = k < 0 ? 1 : x->dim[2 + k];
      a.w_dim[i] = k < 0 ? 1 : w->dim[2 + k];
      a.y_dim[i] = k < 0 ? 1 : y->dim[2 + k];
      a.stride[i] = k < 0 ? 1 : attrs->stride[k];
      a.pad[i] = k < 0 ? 0 : attrs->pad[k];
      a.dilate[i] = k < 0 ? 1 : attrs->dilate[k];
      a.image *= a.x_dim[i];
      a.window *= a.w_dim[i];
      a.pixels *= a.y_dim[i];
    }
  return td__launch (l, &kernels[kind][wide][out->dtype],
                     td__blocks (l, out->size, kind == TD_CONV_WEIGHT_GRAD ? 1 : TD_BLOCK), 1,
                     &a);
}

/* --- products --- */

KERNELS (gemm);

TdStatus
td_cuda_gemm (TdCudaLauncher *l, const TdGemm *g, const TdTensor *a, const TdTensor *b,
              TdTensor *c)
{
  const int64_t tiles = (g->m + 63) / 64 * ((g->n + 63) / 64);
  const TdGemmParams p = { a->data, b->data, c->data, *g };

  return td__launch (l, &gemm[c->dtype], tiles, g->batch < MAX_BATCHES ? g->batch : MAX_BATCHES,
                     &p);
}

KERNELS (attend);
KERNELS (attend_deltas);
KERNELS (attend_grad_query);
KERNELS (attend_grad_key);

/* A block for each tile of each batch, and each part of the columns. */
static TdStatus
launch_tiles (TdCudaLauncher *l, TdCudaKernel *kernel, const TdAttention *a, int64_t rows,
              int64_t columns, int64_t n, const TdAttentionParams *params)
{
  const int64_t blocks = a->batch * ((rows + n - 1) / n) * ((columns + n - 1) / n);
  const unsigned grid[3] = { (unsigned)blocks, 1, 1 };

  if (blocks == 0)
    return TD_OK;
  return blocks > INT32_MAX ? TD_ERR_SHAPE /* beyond any grid */
                            : l->launch (l, kernel, grid, TD_ATTENTION_BLOCK, 0, params);
}

TdStatus
td_cuda_attention (TdCudaLauncher *l, TdAttentionKind kind, const TdAttention *attention,
                   const TdTensor *in, int n_in, TdTensor *out, int n_out)
{
  const bool grad = kind == TD_ATTENTION_GRAD;
  const int n_plain = grad ? 6 : 3;
  const TdDtype dtype = out[0].dtype;
  const int64_t queries = attention->batch * attention->n_q;
  const int64_t d = attention->d, d_v = attention->d_v;
  const int64_t tile = TD_ATTENTION_PACKS * (int64_t)(TD_WIDE_BYTES / td__bytes_of (dtype));
  TdAttentionParams a = { .q = in[0].data,
                          .k = in[1].data,
                          .v = in[2].data,
                          .mask = n_in > n_plain ? in[n_plain].data : NULL,
                          .out = out[0].data,
                          .out2 = out[1].data,
                          .a = *attention };
  TdStatus status;

  if (attend[dtype].name == NULL)
    return TD_ERR_DTYPE;
  if (attention->n_q > MAX_SIZE || attention->n_k > MAX_SIZE || d > MAX_SIZE || d_v > MAX_SIZE)
    return TD_ERR_SHAPE;
  a.packs = td__rows_aligned (a.q, d, dtype) && td__rows_aligned (a.k, d, dtype)
            && td__rows_aligned (a.v, d_v, dtype)
            && td__rows_aligned (a.out, grad ? d : d_v, dtype);
  if (!grad)
    return launch_tiles (l, &attend[dtype], attention, attention->n_q, d_v > 0 ? d_v : 1, tile,
                         &a);
  a.gy = in[3].data;
  a.y = in[4].data;
  a.lse = in[5].data;
  a.out3 = out[2].data;
  a.packs = a.packs && td__rows_aligned (a.gy, d_v, dtype)
            && td__rows_aligned (a.out2, d, dtype) && td__rows_aligned (a.out3, d_v, dtype);
  a.delta = l->workspace (l, (size_t)(queries + 1) * td__bytes_of (dtype));
  if (a.delta == NULL)
    return TD_ERR_MEMORY;
  status = launch_tiles (l, &attend_deltas[dtype], attention, attention->n_q, 1,
                         TD_ATTENTION_BLOCK / TD_ATTENTION_PACKS, &a);
  if (status == TD_OK)
    status
        = launch_tiles (l, &attend_grad_query[dtype], attention, attention->n_q, d, tile, &a);
  return status == TD_OK ? launch_tiles (l, &attend_grad_key[dtype], attention, attention->n_k,
                                         d > d_v ? d : d_v, tile, &a)
                         : status;
}
