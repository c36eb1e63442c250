/* y = f (x): picks the loop, splits large arrays over the threads.  Half precision goes through
 * float, a block at a time.
 * SPDX-License-Identifier: MIT */
#include "cpu.h"
#include "elementwise.h"
#include "vector.h"

typedef struct
{
  TdUnaryLoop loop;
  const char *x;
  char *y;
  double p, q;
  size_t bytes;
} UnaryWork;

static void
unary_piece (int64_t begin, int64_t end, int worker, void *context)
{
  const UnaryWork *w = context;

  w->loop (w->x + (size_t)begin * w->bytes, w->y + (size_t)begin * w->bytes, end - begin, w->p,
           w->q);
}

typedef struct
{
  TdUnaryLoop loop;
  const TdTensor *x;
  TdTensor *y;
  double p, q;
} HalfWork;

static void
half_piece (int64_t begin, int64_t end, int worker, void *context)
{
  const HalfWork *w = context;
  float block[TD_HALF_BLOCK];

  for (int64_t i = begin; i < end; i += TD_HALF_BLOCK)
    {
      int64_t n = end - i < TD_HALF_BLOCK ? end - i : TD_HALF_BLOCK;

      td__half_load (w->x, i, n, block);
      w->loop (block, block, n, w->p, w->q);
      td__half_store (w->y, i, n, block);
    }
}

TdStatus
td__cpu_unary (TdDevice *d, TdUnaryKind kind, double p, double q, const TdTensor *x,
               TdTensor *y)
{
  TdUnaryLoop loop = td__vector->unary[kind][x->dtype];

  if (__builtin_expect (loop != NULL && x->dtype == y->dtype, 1))
    {
      UnaryWork w;

      if (__builtin_expect (x->size <= TD_CPU_GRAIN, 1))
        {
          loop (x->data, y->data, x->size, p, q);
          return TD_OK;
        }
      w = (UnaryWork){ loop, x->data, y->data, p, q, td__dtype_sizes[x->dtype] };
      td__cpu_parallel (x->size, TD_CPU_GRAIN, unary_piece, &w);
      return TD_OK;
    }
  if (td__is_half (x->dtype) && x->dtype == y->dtype)
    {
      HalfWork w = { td__vector->unary[kind][TD_F32], x, y, p, q };

      td__cpu_parallel (x->size, TD_CPU_GRAIN, half_piece, &w);
      return TD_OK;
    }
  if (kind == TD_UNARY_COPY && x->dtype == y->dtype)
    {
      memcpy (y->data, x->data, (size_t)x->size * td__dtype_sizes[x->dtype]);
      return TD_OK;
    }
  return TD_ERR_DTYPE;
}
