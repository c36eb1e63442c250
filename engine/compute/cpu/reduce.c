/* Reductions over any axes.
 *
 * Neighbouring axes of the same kind (kept or reduced) are merged.  If the last group is
 * reduced, its rows go through the vector loops; if it is kept, sums run over chunks of
 * columns, everything else gathers a column into a block first.  Sums are carried in double.
 * SPDX-License-Identifier: MIT */
#include "elementwise.h"
#include "halves.h"
#include "vector.h"

#include <math.h>
#include <stdlib.h>

#define BLOCK 512
#define MAX_PARTS 1024

/* What one output has come to so far. */
typedef struct
{
  double value;  /* total, extreme, product, or logsumexp's sum */
  double shift;  /* logsumexp: the largest so far */
  int64_t whole; /* integers */
} State;

typedef struct Work Work;
typedef void (*BlockFn) (const Work *w, const void *x, int64_t n, State *s);
struct Work
{
  TdReduceKind kind;
  const TdTensor *x;
  TdTensor *y;
  bool accumulate;
  int n_kept, n_reduced; /* merged groups, outermost first */
  int64_t kept[TD_MAX_DIMS], kept_stride[TD_MAX_DIMS];
  int64_t reduced[TD_MAX_DIMS], reduced_stride[TD_MAX_DIMS];
  int64_t count; /* elements behind one output */
  bool ends_kept;
  bool is_int;
  int loop_dtype;
  BlockFn block;
};

/* --- one block of float, double or int64_t, contiguous --- */

static void
block_sum (const Work *w, const void *x, int64_t n, State *s)
{
  td__vector->sum[w->loop_dtype](x, n, &s->value);
}

static void
block_sum_squares (const Work *w, const void *x, int64_t n, State *s)
{
  td__vector->sum_squares[w->loop_dtype](x, n, &s->value);
}

static void
block_max (const Work *w, const void *x, int64_t n, State *s)
{
  td__vector->max[w->loop_dtype](x, n, &s->value);
}

static void
block_min (const Work *w, const void *x, int64_t n, State *s)
{
  td__vector->min[w->loop_dtype](x, n, &s->value);
}

static void
block_prod (const Work *w, const void *x, int64_t n, State *s)
{
  if (w->loop_dtype == TD_F32)
    for (int64_t i = 0; i < n; i++)
      s->value *= (double)((const float *)x)[i];
  else
    for (int64_t i = 0; i < n; i++)
      s->value *= ((const double *)x)[i];
}

/* The sum of exp (x - shift), rescaled whenever a larger element comes. */
static void
block_logsumexp (const Work *w, const void *x, int64_t n, State *s)
{
  size_t bytes = w->loop_dtype == TD_F32 ? sizeof (float) : sizeof (double);
  double shifted[BLOCK];

  for (int64_t i = 0; i < n; i += BLOCK)
    {
      const char *part = (const char *)x + (size_t)i * bytes;
      int64_t m = n - i < BLOCK ? n - i : BLOCK;
      double largest = s->shift;

      td__vector->max[w->loop_dtype](part, m, &largest);
      if (largest != s->shift)
        s->value = s->shift == -INFINITY ? 0 : s->value * exp (s->shift - largest);
      s->shift = largest;
      if (isinf (largest) || isnan (largest))
        continue;
      td__vector->unary[TD_UNARY_ADD_SCALAR][w->loop_dtype](part, shifted, m, -largest, 0);
      td__vector->unary[TD_UNARY_EXP][w->loop_dtype](shifted, shifted, m, 0, 0);
      td__vector->sum[w->loop_dtype](shifted, m, &s->value);
    }
}

static void
int_block_sum (const Work *w, const void *xs, int64_t n, State *s)
{
  const int64_t *x = xs;
  uint64_t total = (uint64_t)s->whole;

  for (int64_t i = 0; i < n; i++)
    total += (uint64_t)x[i];
  s->whole = (int64_t)total;
}

static void
int_block_prod (const Work *w, const void *xs, int64_t n, State *s)
{
  const int64_t *x = xs;
  uint64_t total = (uint64_t)s->whole;

  for (int64_t i = 0; i < n; i++)
    total *= (uint64_t)x[i];
  s->whole = (int64_t)total;
}

static void
int_block_max (const Work *w, const void *xs, int64_t n, State *s)
{
  const int64_t *x = xs;

  for (int64_t i = 0; i < n; i++)
    s->whole = x[i] > s->whole ? x[i] : s->whole;
}

static void
int_block_min (const Work *w, const void *xs, int64_t n, State *s)
{
  const int64_t *x = xs;

  for (int64_t i = 0; i < n; i++)
    s->whole = x[i] < s->whole ? x[i] : s->whole;
}

/* --- kinds --- */

static const struct
{
  BlockFn block, int_block;
  double start;
  int64_t int_start;
} kinds[TD_REDUCE_N] = {
  [TD_REDUCE_SUM] = { block_sum, int_block_sum, 0, 0 },
  [TD_REDUCE_MEAN] = { block_sum, NULL, 0, 0 },
  [TD_REDUCE_SUM_SQUARES] = { block_sum_squares, NULL, 0, 0 },
  [TD_REDUCE_MAX] = { block_max, int_block_max, -INFINITY, INT64_MIN },
  [TD_REDUCE_MIN] = { block_min, int_block_min, INFINITY, INT64_MAX },
  [TD_REDUCE_PROD] = { block_prod, int_block_prod, 1, 1 },
  [TD_REDUCE_LOGSUMEXP] = { block_logsumexp, NULL, 0, 0 },
};

static State
start_state (const Work *w)
{
  return (State){ kinds[w->kind].start, -INFINITY, kinds[w->kind].int_start };
}

/* Add a part's state to s (only kinds that are reduced in parts come here). */
static void
join_states (const Work *w, State *s, const State *part)
{
  if (w->kind == TD_REDUCE_MAX || w->kind == TD_REDUCE_MIN)
    {
      const double two[2] = { s->value, part->value };
      const int64_t two_ints[2] = { s->whole, part->whole };
      Work doubles = *w;

      doubles.loop_dtype = TD_F64;
      doubles.block (&doubles, w->is_int ? (const void *)two_ints : (const void *)two, 2, s);
      return;
    }
  s->value += part->value;
  s->whole = (int64_t)((uint64_t)s->whole + (uint64_t)part->whole);
}

static double
finished (const Work *w, const State *s)
{
  if (w->kind == TD_REDUCE_MEAN)
    return s->value / (double)w->count;
  if (w->kind == TD_REDUCE_LOGSUMEXP)
    return isinf (s->shift) || isnan (s->shift) ? s->shift : s->shift + log (s->value);
  return s->value;
}

#define PUT(T, v)                                                                              \
  ((T *)w->y->data)[at] = w->accumulate ? (T)(((T *)w->y->data)[at] + (T)(v)) : (T)(v)

static void
put (const Work *w, int64_t at, const State *s)
{
  float half;

  switch (w->y->dtype)
    {
    case TD_F32:
      PUT (float, finished (w, s));
      break;
    case TD_F64:
      PUT (double, finished (w, s));
      break;
    case TD_I32:
      PUT (int32_t, s->whole);
      break;
    case TD_I64:
      PUT (int64_t, s->whole);
      break;
    case TD_F16:
    case TD_BF16:
      half = 0;
      if (w->accumulate)
        td__half_load (w->y, at, 1, &half);
      half += (float)finished (w, s);
      td__half_store (w->y, at, 1, &half);
      break;
    case TD_U8:
    case TD_BOOL:
      break; /* refused before */
    }
}

/* --- walking --- */

/* Elements x[at + i step], i < n, as contiguous numbers of the loops' type. */
static void
gather (const Work *w, int64_t at, int64_t step, int64_t n, void *block)
{
  const void *data = w->x->data;

  if (td__is_half (w->x->dtype))
    for (int64_t i = 0; i < n; i++)
      td__half_load (w->x, at + i * step, 1, (float *)block + i);
  else if (w->x->dtype == TD_F32)
    for (int64_t i = 0; i < n; i++)
      ((float *)block)[i] = ((const float *)data)[at + i * step];
  else if (w->x->dtype == TD_I32)
    for (int64_t i = 0; i < n; i++)
      ((int64_t *)block)[i] = ((const int32_t *)data)[at + i * step];
  else
    for (int64_t i = 0; i < n; i++)
      ((uint64_t *)block)[i] = ((const uint64_t *)data)[at + i * step];
}

static void
segment (const Work *w, int64_t at, int64_t step, int64_t n, State *s)
{
  bool direct = w->x->dtype == TD_F32 || w->x->dtype == TD_F64 || w->x->dtype == TD_I64;
  int64_t block[BLOCK];

  if (direct && step == 1)
    {
      w->block (w, (const char *)w->x->data + (size_t)at * td__dtype_sizes[w->x->dtype], n, s);
      return;
    }
  for (int64_t i = 0; i < n; i += BLOCK)
    {
      int64_t m = n - i < BLOCK ? n - i : BLOCK;

      gather (w, at + i * step, step, m, block);
      w->block (w, block, m, s);
    }
}

static int64_t
group_offset (int n, const int64_t *dim, const int64_t *stride, int64_t index)
{
  int64_t offset = 0;

  for (int i = n - 1; i >= 0; i--)
    {
      offset += index % dim[i] * stride[i];
      index /= dim[i];
    }
  return offset;
}

/* Outputs [begin, end), one after the other. */
static void
output_piece (int64_t begin, int64_t end, int worker, void *context)
{
  const Work *w = context;
  int last = w->n_reduced - 1;
  int64_t n = last < 0 ? 1 : w->reduced[last];
  int64_t step = last < 0 ? 1 : w->reduced_stride[last];
  int64_t segments = n > 0 ? w->count / n : 0;

  for (int64_t o = begin; o < end; o++)
    {
      int64_t at = group_offset (w->n_kept, w->kept, w->kept_stride, o);
      State s = start_state (w);

      for (int64_t k = 0; k < segments; k++)
        segment (w, at + group_offset (last, w->reduced, w->reduced_stride, k), step, n, &s);
      put (w, o, &s);
    }
}

/* Chunks [begin, end) of columns of a sum whose last axis is kept. */
static void
column_piece (int64_t begin, int64_t end, int worker, void *context)
{
  const Work *w = context;
  int last = w->n_reduced - 1;
  int64_t columns = w->kept[w->n_kept - 1];
  int64_t chunks = (columns + TD_COLUMN_CHUNK - 1) / TD_COLUMN_CHUNK;
  int64_t segments = w->count / w->reduced[last];

  for (int64_t c = begin; c < end; c++)
    {
      int64_t outer = c / chunks, first = c % chunks * TD_COLUMN_CHUNK;
      int64_t n = columns - first < TD_COLUMN_CHUNK ? columns - first : TD_COLUMN_CHUNK;
      int64_t at = group_offset (w->n_kept - 1, w->kept, w->kept_stride, outer) + first;
      double total[TD_COLUMN_CHUNK] = { 0 };

      for (int64_t k = 0; k < segments; k++)
        td__vector->sum_columns[w->loop_dtype](
            (const char *)w->x->data
                + (size_t)(at + group_offset (last, w->reduced, w->reduced_stride, k))
                      * td__dtype_sizes[w->x->dtype],
            w->reduced[last], w->reduced_stride[last], n, total);
      for (int64_t j = 0; j < n; j++)
        {
          State s = { .value = total[j] };

          put (w, outer * columns + first + j, &s);
        }
    }
}

typedef struct
{
  const Work *w;
  int64_t grain;
  State part[MAX_PARTS];
} PartsWork;

static void
part_piece (int64_t begin, int64_t end, int worker, void *context)
{
  PartsWork *p = context;
  State s = start_state (p->w);

  segment (p->w, begin, 1, end - begin, &s);
  p->part[begin / p->grain] = s;
}

/* Everything into one number: parts of a size that depends on n alone, joined in order. */
static void
reduce_all (const Work *w)
{
  PartsWork p;
  State s = start_state (w);
  int64_t n = w->x->size;

  p.w = w;
  p.grain = n / MAX_PARTS + 1 > TD_CPU_GRAIN ? n / MAX_PARTS + 1 : TD_CPU_GRAIN;
  td__cpu_parallel (n, p.grain, part_piece, &p);
  for (int64_t i = 0; i * p.grain < n; i++)
    join_states (w, &s, &p.part[i]);
  put (w, 0, &s);
}

static void
merge_groups (Work *w, uint32_t axes)
{
  const TdShape *shape = w->x->shape;
  int64_t stride = 1;
  int64_t strides[TD_MAX_DIMS];
  bool was_reduced = false, first = true;

  for (int i = shape->ndim - 1; i >= 0; stride *= shape->dim[i], i--)
    strides[i] = stride;
  w->count = 1;
  for (int i = 0; i < shape->ndim; i++)
    {
      bool reduced = (axes >> i & 1) != 0;
      int *n = reduced ? &w->n_reduced : &w->n_kept;
      int64_t *dim = reduced ? w->reduced : w->kept;

      w->count *= reduced ? shape->dim[i] : 1;
      if (shape->dim[i] == 1)
        continue;
      if (first || reduced != was_reduced)
        dim[(*n)++] = 1;
      dim[*n - 1] *= shape->dim[i];
      (reduced ? w->reduced_stride : w->kept_stride)[*n - 1] = strides[i];
      was_reduced = reduced;
      first = false;
    }
  w->ends_kept = !first && !was_reduced;
}

/* Of a channels-last array, by a row-major copy: the same sums in the same order. */
static TdStatus
reduce_copy (TdDevice *d, TdReduceKind kind, uint32_t axes, const TdTensor *x, TdTensor *y,
             bool accumulate)
{
  TdShape x_sizes, y_sizes;
  const TdStrides walk
      = td__layout_walk (x->shape, (TdLayout)x->layout, TD_ROW_MAJOR, &x_sizes, &y_sizes);
  TdTensor from = *x, plain = *x;
  TdStatus status;

  from.shape = &x_sizes;
  plain.layout = from.layout = TD_ROW_MAJOR;
  plain.data = malloc ((size_t)x->size * sizeof (double));
  if (plain.data == NULL)
    return TD_ERR_MEMORY;
  status = td__cpu_strided (d, TD_STRIDED_READ, &from, &walk, &plain);
  if (status == TD_OK)
    status = td__cpu_reduce (d, kind, axes, &plain, y, accumulate);
  free (plain.data);
  return status;
}

TdStatus
td__cpu_reduce (TdDevice *d, TdReduceKind kind, uint32_t axes, const TdTensor *x, TdTensor *y,
                bool accumulate)
{
  bool is_int = x->dtype == TD_I32 || x->dtype == TD_I64;
  Work w = { .kind = kind, .x = x, .y = y, .accumulate = accumulate, .is_int = is_int };
  bool sums;

  if (x->layout != TD_ROW_MAJOR)
    return reduce_copy (d, kind, axes, x, y, accumulate);
  if (kind == TD_REDUCE_ARGMAX || kind == TD_REDUCE_ARGMIN)
    return td__is_half (x->dtype) ? td__cpu_half_reduce (d, kind, axes, x, y, accumulate)
                                  : td__cpu_argmax (kind, axes, x, y);
  if (x->dtype == TD_U8 || x->dtype == TD_BOOL || y->dtype != x->dtype)
    return TD_ERR_DTYPE;
  w.block = is_int ? kinds[kind].int_block : kinds[kind].block;
  w.loop_dtype = td__is_half (x->dtype) ? TD_F32 : (int)x->dtype;
  if (w.block == NULL)
    return TD_ERR_DTYPE;
  if (y->size == 0)
    return TD_OK;
  merge_groups (&w, axes);
  sums = kind == TD_REDUCE_SUM || kind == TD_REDUCE_MEAN;
  if (w.n_kept == 0 && w.n_reduced == 1 && x->size > TD_CPU_GRAIN
      && (sums || kind == TD_REDUCE_SUM_SQUARES || kind == TD_REDUCE_MAX
          || kind == TD_REDUCE_MIN))
    reduce_all (&w);
  else if (sums && w.ends_kept && w.n_reduced > 0 && w.count > 0 && !is_int
           && !td__is_half (x->dtype))
    {
      int64_t columns = w.kept[w.n_kept - 1];
      int64_t chunks = (columns + TD_COLUMN_CHUNK - 1) / TD_COLUMN_CHUNK;

      td__cpu_parallel (y->size / columns * chunks,
                        1 + TD_CPU_GRAIN / (w.count * TD_COLUMN_CHUNK), column_piece, &w);
    }
  else
    td__cpu_parallel (y->size, 1 + TD_CPU_GRAIN / (w.count + 1), output_piece, &w);
  return TD_OK;
}
