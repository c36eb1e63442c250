/* Arrays from nothing: one value, or an even sequence.
 * SPDX-License-Identifier: MIT */
#include "elementwise.h"

/* An array of one element of y's dtype, by way of the casts. */
static TdStatus
one_value (TdDevice *d, TdDtype dtype, double value, uint64_t *bits)
{
  TdShape shape = { 0 };
  TdTensor x = { &value, &shape, 1, TD_F64 }, y = { bits, &shape, 1, dtype };

  return td__cpu_cast (d, &x, &y);
}

typedef struct
{
  char *y;
  uint64_t bits;
  size_t bytes;
} FillWork;

static void
fill_piece (int64_t begin, int64_t end, int worker, void *context)
{
  const FillWork *w = context;
  char *y = w->y + (size_t)begin * w->bytes;
  int64_t n = end - begin;
  uint16_t b16 = (uint16_t)w->bits;
  uint32_t b32 = (uint32_t)w->bits;

  if (w->bytes == 8)
    for (int64_t i = 0; i < n; i++)
      ((uint64_t *)(void *)y)[i] = w->bits;
  else if (w->bytes == 4)
    for (int64_t i = 0; i < n; i++)
      ((uint32_t *)(void *)y)[i] = b32;
  else if (w->bytes == 2)
    for (int64_t i = 0; i < n; i++)
      ((uint16_t *)(void *)y)[i] = b16;
  else
    memset (y, (int)(w->bits & 255), (size_t)n);
}

TdStatus
td__cpu_fill (TdDevice *d, TdTensor *y, double value)
{
  FillWork w = { y->data, 0, td__dtype_sizes[y->dtype] };
  TdStatus status = one_value (d, y->dtype, value, &w.bits);

  if (status == TD_OK)
    td__cpu_parallel (y->size, TD_CPU_GRAIN, fill_piece, &w);
  return status;
}

TdStatus
td__cpu_arange (TdDevice *d, TdTensor *y, double start, double step)
{
  double block[TD_HALF_BLOCK];
  TdShape shape = { 1, { 0 } };

  for (int64_t i = 0; i < y->size; i += TD_HALF_BLOCK)
    {
      int64_t n = y->size - i < TD_HALF_BLOCK ? y->size - i : TD_HALF_BLOCK;
      TdTensor x = { block, &shape, n, TD_F64 };
      TdTensor part
          = { (char *)y->data + (size_t)i * td__dtype_sizes[y->dtype], &shape, n, y->dtype };

      for (int64_t k = 0; k < n; k++)
        block[k] = start + (double)(i + k) * step;
      td__cpu_cast (d, &x, &part);
    }
  return TD_OK;
}
