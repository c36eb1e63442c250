/* What the launch functions hand to the kernels: one struct for each family, read by the C
 * compiler of the host and by nvcc.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "kernels.h"

enum
{
  TD_PIECE = 1 << 30,  /* elements of one launch that counts them in 32 bits */
  TD_MAX_OPERANDS = 4, /* of a walk */
  TD_PACK = 4,         /* neighbours that a thread takes at once, of whatever type */
  TD_WIDE_BYTES = 16,  /* what a thread reads at once where rows are aligned */
  TD_UPDATE_ARRAYS = 5
};

/** Division of n < 2^31 by a constant: q = (high half of (n * magic) + n) >> shift.
 * *Source*: Granlund and Montgomery, 1994. */
typedef struct TdDivisor
{
  uint32_t value, magic, shift;
} TdDivisor;

/** y = f (x) over flat arrays; `packs`: 16 bytes at a time, as all pointers are aligned. */
typedef struct TdMapParams
{
  const void *x;
  void *y;
  int64_t n;
  double p, q;
  int packs, kind;
  uint64_t bits;      /* of a fill */
  TdCudaStats *parts; /* of each block, where the kernel counts what it writes; so below */
} TdMapParams;

/** Random numbers. */
typedef struct TdRandomParams
{
  const void *x; /* of dropout */
  void *y;
  int64_t n;
  uint64_t seed, offset;
  double p;
  int kind;
  int packs; /* four numbers at once, as the arrays are aligned */
  TdCudaStats *parts;
} TdRandomParams;

/** Up to four operands walked over one shape, axes merged where all of them allow it; strides
 * are 0 where an operand is repeated.  `items` along the last axis are taken at once: those of
 * stride 1 as one pack. */
typedef struct TdWalkParams
{
  void *data[TD_MAX_OPERANDS]; /* the last is written */
  int64_t stride[TD_MAX_OPERANDS][TD_MAX_DIMS];
  TdDivisor dim[TD_MAX_DIMS];
  int ndim;
  uint32_t n, tail; /* steps; elements after them (one axis only) */
  int items;
  int accumulate, kind;
  double p;
  TdCudaStats *parts;
} TdWalkParams;

/** A transpose: tiles over the dense side's last axis (columns) and the axis along which the
 * strided side is contiguous (rows); the other axes are walked. */
typedef struct TdTileParams
{
  const void *from;
  void *to;
  uint32_t rows, columns;
  TdDivisor row_tiles, column_tiles;
  int64_t dense_step, strided_step; /* from row to row, from column to column */
  int ndim;
  TdDivisor dim[TD_MAX_DIMS];
  int64_t dense_stride[TD_MAX_DIMS], strided_stride[TD_MAX_DIMS];
  int write;
} TdTileParams;

/** Rows chosen by an index of dtype `index_dtype`. */
typedef struct TdRowsParams
{
  const void *from, *index;
  void *to;
  int64_t n, rows, columns; /* indices; rows of the table; units of a row */
  int index_dtype;
  int64_t limit, ignore;
  int64_t *result;
  int64_t *any_bad;  /* of a check that nobody waits for: memory of the host, like result */
  uint64_t *runs;    /* how many there have been */
  float *sums;       /* of halves that are added up: where the first index of a row is */
  int32_t *first_of; /* [blocks that share the columns][row] */
  int packs;         /* 16 bytes of a row at once, of halves that are added up TD_PACK */
} TdRowsParams;

/** Merged axes of one reduction: offset of output o, and of element r behind it. */
typedef struct TdReduceParams
{
  const void *x;
  void *y;
  double *parts; /* value and shift of each part and output, or NULL */
  int64_t outputs, count;
  int n_kept, n_reduced;
  TdDivisor kept[TD_MAX_DIMS], reduced[TD_MAX_DIMS];
  int64_t kept_stride[TD_MAX_DIMS], reduced_stride[TD_MAX_DIMS];
  int64_t steps, part; /* numbers, or packs, of an output and of one part */
  int n_parts;
  int kind, accumulate, lanes;
  int columns; /* threads side by side along the outputs, where these lie side by side */
  int packs;   /* 16 bytes at once: of a row, whose last reduced axis counts packs if it is not
                  the only one, or of outputs */
} TdReduceParams;

/** One axis of n, `inner` elements from one to the next. */
typedef struct TdAxisParams
{
  const void *x, *gy;
  void *y;
  int64_t lines, n, inner;
  int kind, lanes, reverse;
  int packs; /* 16 bytes at once: of a line where inner is 1 (all lines are aligned, but for
                argmax), else of lines that lie side by side */
  TdCudaStats *counts; /* of each block, as the parts above */
} TdAxisParams;

/** Softmax cross entropy: x is (n, c, rest), t (n, rest). */
typedef struct TdCrossEntropyParams
{
  const void *x, *t, *weight, *g;
  void *y, *loss;
  double *totals; /* of blocks: total, rows that count, rows that are right */
  uint64_t *counts;
  int64_t rows, c, rest, ignore, n_labels;
  int64_t share_of; /* rows that share the result, if all do */
  double *right, *chosen, *labelled;
  int t_dtype, kind, each, normalize, n_totals, lanes;
  int packs; /* rows lie side by side: TD_PACK numbers, of a gradient 16 bytes, at once */
  int wide;  /* of a loss: all rows are aligned, and taken 16 bytes at once if they are kept */
  TdCudaStats *parts; /* of y, of each block */
} TdCrossEntropyParams;

/** What is summed over a channel's places. */
enum
{
  TD_MOMENT_TRAIN, /* numbers less the channel's shift, and their squares */
  TD_MOMENT_GRAD
};

/** Batch normalisation: x is (n, c, rest).  Arrays of x's size are stored as the kernel says;
 * of the vectors, gamma, beta and their gradients as `gamma_dtype`, moments that come in and
 * running ones as `moments_dtype`, moments that go out as the kernel computes. */
typedef struct TdBatchNormParams
{
  const void *x, *gamma, *beta, *gy, *mean, *spread;
  void *y, *mean_out, *spread_out, *running_mean, *running_var;
  int64_t n, c, rest;
  TdDivisor by_rest; /* rest, in packs */
  double eps, decay;
  int gamma_dtype, moments_dtype;
  int packs; /* TD_PACK neighbours are read at once */
  /* Sums of pieces of the places (in packs, unless channels are last), [piece][2][channel];
   * what is being summed. */
  double *parts;
  double *moments; /* [2][channel]; the first are the shifts till the sums are there */
  int64_t piece;
  int n_pieces, moment;
  int columns; /* threads side by side along the channels */
} TdBatchNormParams;

/** Row normalisation, as TdRowNorm. */
typedef struct TdRowNormParams
{
  const void *x, *gamma, *beta, *gy, *mean_in, *spread_in, *added;
  void *y, *mean, *spread, *sum; /* sum: as TdRowJoin */
  double *parts;                 /* [piece][2][channels of all groups] */
  void *ggamma, *gbeta;
  int64_t rows, groups, channels, rest, m, piece;
  TdDivisor by_rest;
  double eps, over; /* 1 / m */
  int centred, lanes, n_pieces;
  int packs; /* 16 bytes of a row at once: rest is 1, and all rows are aligned; of what gamma's
                and beta's gradients are summed from: of channels, or of one channel's rest */
  int columns;         /* threads of these sums side by side along the channels */
  TdCudaStats *counts; /* of each block, as the parts of other kernels */
  TdCudaStats *sum_counts;
} TdRowNormParams;

/** Windows over images; axes of the window as TdPooling has them. */
typedef struct TdPoolParams
{
  const void *in0, *in1;
  void *out, *index;
  int64_t n, image, pooled, places; /* channels of all images; elements; of a window */
  int64_t inner; /* channels that lie side by side at each place: 1, or all of an image */
  int packs;     /* TD_PACK of them are taken at once */
  int narrow;    /* 32 bits count all elements of each array, and these divide them: */
  TdDivisor by_own, by_inner; /* places of a channel of what comes out; inner */
  TdDivisor by_dim[TD_MAX_SPATIAL], by_stride[TD_MAX_SPATIAL]; /* the same by axes; strides */
  uint32_t strips;    /* not 0: windows are two by two, side by side, and taken in so many lots
                         of 16 bytes of two rows each, */
  TdDivisor by_strip; /* of which a row has this many */
  int64_t size[TD_MAX_SPATIAL],
      n_places[TD_MAX_SPATIAL]; /* of the image, of the pooled array */
  int64_t ksize[TD_MAX_SPATIAL], stride[TD_MAX_SPATIAL], pad[TD_MAX_SPATIAL];
  int divisor, adaptive;
  int bytes;          /* indices are u8, else i32 */
  TdCudaStats *parts; /* of each block, as the parts of other kernels */
} TdPoolParams;

/** A convolution by its definition. */
typedef struct TdConvParams
{
  const void *x, *w, *b, *gy;
  void *out;
  int64_t n, c, o, cg, og;
  int64_t image, pixels, window;
  int64_t x_dim[TD_MAX_SPATIAL], w_dim[TD_MAX_SPATIAL], y_dim[TD_MAX_SPATIAL];
  int64_t stride[TD_MAX_SPATIAL], pad[TD_MAX_SPATIAL], dilate[TD_MAX_SPATIAL];
  int accumulate;
} TdConvParams;

typedef struct TdGemmParams
{
  const void *a, *b;
  void *c;
  TdGemm g;
} TdGemmParams;

typedef struct TdAttentionParams
{
  const void *q, *k, *v, *mask, *gy, *y, *lse;
  void *out, *out2, *out3;
  void *delta; /* of each query, in the type that it is computed in */
  TdAttention a;
  int packs; /* 16 bytes of all rows at once */
} TdAttentionParams;

/** LSTM cells: n rows of u units. */
typedef struct TdLstmParams
{
  const void *c, *x, *c_new, *gc, *gh;
  void *out0, *out1;
  int64_t n, u;
  int packs; /* a unit's gates are read at once */
} TdLstmParams;

enum
{
  TD_UPDATE_CHUNK = 4096, /* elements of one block: small nets wait for one block */
  TD_UPDATE_MANY = 128,   /* parameters of one launch: its struct is below 8 KiB */
  TD_STATS_MANY = 64,
  TD_STATS_CHUNK = 16384,
  TD_STATS_UNIT = 4096 /* a block's share of an array's statistics is some of these */
};

/** Updates of several parameters; block k works on the one whose `first_block` is the last not
 * above k. */
typedef struct TdUpdateParams
{
  TdUpdate u;
  int n_params;
  uint32_t first_block[TD_UPDATE_MANY];
  int64_t size[TD_UPDATE_MANY];
  void *data[TD_UPDATE_MANY][TD_UPDATE_ARRAYS];
} TdUpdateParams;

/** Several gradients, blocks as above: flags[k] = 1 where a number has all bits of `mask`. */
typedef struct TdFiniteParams
{
  double *flags;
  int n;
  uint32_t first_block[TD_STATS_MANY];
  struct
  {
    const void *data;
    int64_t size;
    uint64_t mask;
    int bytes; /* of a number */
  } of[TD_STATS_MANY];
} TdFiniteParams;

/** What n flags come to. */
typedef struct TdDecideParams
{
  double *numbers, growth;
  int n;
  int64_t *report, run;
} TdDecideParams;

/** Squares of several arrays, blocks as above: of each block a sum, then all of them. */
typedef struct TdSquaresParams
{
  double *parts, *sum;
  int n;
  int adds; /* to what is in the sum */
  uint32_t first_block[TD_STATS_MANY + 1];
  struct
  {
    const void *data;
    int64_t size;
    uint16_t dtype, units; /* units: of each block, of TD_STATS_UNIT elements */
  } of[TD_STATS_MANY];
} TdSquaresParams;

/** Statistics of several arrays, blocks as above. */
typedef struct TdStatsParams
{
  int n;
  TdCudaStats *parts; /* of each block */
  uint32_t first_block[TD_STATS_MANY + 1];
  struct
  {
    const void *data;
    int64_t size;
    uint64_t start, step;
    TdCudaStats *result;
    const TdCudaStats *parts;
    uint32_t n_parts;
    uint16_t dtype, units; /* units: of each part */
  } of[TD_STATS_MANY];
} TdStatsParams;
