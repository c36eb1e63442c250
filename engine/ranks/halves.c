/* Sums of 16 bits: both are widened to float, added, and rounded, by the kernels of the host.
 *
 * SPDX-License-Identifier: MIT */
#include "halves.h"

#include "compute/core/core.h"

enum
{
  BLOCK = 1024 /* numbers, which stay in the cache */
};

static void
add (TdDtype dtype, const void *from, void *to, int64_t n)
{
  TdDevice *host = td__device_at (0);
  float a[BLOCK], b[BLOCK];

  for (int64_t at = 0; at < n; at += BLOCK)
    {
      TdShape shape = TD_SHAPE (n - at < BLOCK ? n - at : BLOCK);
      const TdTensor x = { (uint16_t *)from + at, &shape, shape.dim[0], dtype };
      const TdTensor y = { (uint16_t *)to + at, &shape, shape.dim[0], dtype };
      TdTensor wide_x = { a, &shape, shape.dim[0], TD_F32 };
      TdTensor wide_y = { b, &shape, shape.dim[0], TD_F32 }, sum = y;

      host->ops->cast (host, &x, &wide_x);
      host->ops->cast (host, &y, &wide_y);
      for (int64_t i = 0; i < shape.dim[0]; i++)
        b[i] += a[i];
      host->ops->cast (host, &wide_y, &sum);
    }
}

static void
add_f16 (const void *from, void *to, int64_t n)
{
  add (TD_F16, from, to, n);
}

static void
add_bf16 (const void *from, void *to, int64_t n)
{
  add (TD_BF16, from, to, n);
}

const TdWireAdds td__wire_adds = { add_f16, add_bf16 };
