/* gx = gy f' (x) for the formulas that have a slope of their own; adds into gx if asked.  Half
 * precision goes through float.
 * SPDX-License-Identifier: MIT */
#include "cpu.h"
#include "elementwise.h"
#include "vector.h"

typedef struct
{
  TdUnaryGradLoop loop;
  TdBinaryLoop add; /* NULL: overwrite */
  const TdTensor *x, *gy;
  TdTensor *gx;
  double p;
  size_t bytes;
} GradWork;

static void
grad_piece (int64_t begin, int64_t end, int worker, void *context)
{
  const GradWork *w = context;
  const char *x = (const char *)w->x->data, *gy = (const char *)w->gy->data;
  char *gx = (char *)w->gx->data;
  _Alignas(64) double block[TD_HALF_BLOCK];

  if (w->add == NULL)
    {
      const size_t at = (size_t)begin * w->bytes;

      w->loop (x + at, gy + at, gx + at, end - begin, w->p);
      return;
    }
  for (int64_t i = begin; i < end; i += TD_HALF_BLOCK)
    {
      const int64_t n = end - i < TD_HALF_BLOCK ? end - i : TD_HALF_BLOCK;
      const size_t at = (size_t)i * w->bytes;

      w->loop (x + at, gy + at, block, n, w->p);
      w->add (gx + at, block, gx + at, n);
    }
}

static void
half_piece (int64_t begin, int64_t end, int worker, void *context)
{
  const GradWork *w = context;
  float x[TD_HALF_BLOCK], g[TD_HALF_BLOCK];

  for (int64_t i = begin; i < end; i += TD_HALF_BLOCK)
    {
      const int64_t n = end - i < TD_HALF_BLOCK ? end - i : TD_HALF_BLOCK;

      td__half_load (w->x, i, n, x);
      td__half_load (w->gy, i, n, g);
      w->loop (x, g, g, n, w->p);
      if (w->add != NULL)
        {
          td__half_load (w->gx, i, n, x);
          w->add (x, g, g, n);
        }
      td__half_store (w->gx, i, n, g);
    }
}

TdStatus
td__cpu_unary_grad (TdDevice *d, TdUnaryKind kind, double p, const TdTensor *x,
                    const TdTensor *gy, TdTensor *gx, bool accumulate)
{
  const bool half = td__is_half (x->dtype);
  const TdDtype dtype = half ? TD_F32 : x->dtype;
  GradWork w;

  if (dtype > TD_F64 || td__vector->unary_grad[kind][dtype] == NULL || gy->dtype != x->dtype
      || gx->dtype != x->dtype)
    return TD_ERR_DTYPE;
  w = (GradWork){ td__vector->unary_grad[kind][dtype],
                  accumulate ? td__vector->binary[TD_BINARY_ADD][dtype][TD_WALK_BOTH] : NULL,
                  x,
                  gy,
                  gx,
                  p,
                  td__dtype_sizes[x->dtype] };
  td__cpu_parallel (x->size, TD_CPU_GRAIN, half ? half_piece : grad_piece, &w);
  return TD_OK;
}
