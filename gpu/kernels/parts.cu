/* Many pieces of memory copied by one launch: what an array is cut into, or joined from.
 *
 * SPDX-License-Identifier: MIT */
#include "kernel.cuh"

#include "parts.h"

struct alignas (16) td_unit16
{
  uint64_t half[2];
};

template <typename Unit>
TD_DEVICE void
copy_units (void *to, const void *from, int64_t begin, int64_t end)
{
  const int64_t size = sizeof (Unit);

  for (int64_t i = begin / size + threadIdx.x; i < end / size; i += TD_BLOCK)
    ((Unit *)to)[i] = ((const Unit *)from)[i];
}

/* By the largest unit that both places and the size allow. */
TD_KERNEL (td_copy_parts, TdPartsParams)
{
  const int k = last_not_above (a.first_block, a.n, blockIdx.x);
  const int64_t begin = (int64_t)(blockIdx.x - a.first_block[k]) * TD_PARTS_CHUNK;
  const int64_t bytes = a.bytes[k];
  const int64_t end = bytes - begin < TD_PARTS_CHUNK ? bytes : begin + (int64_t)TD_PARTS_CHUNK;
  const uint64_t bits = (uint64_t)a.to[k] | (uint64_t)a.from[k] | (uint64_t)bytes;

  if ((bits & 15) == 0)
    copy_units<td_unit16> (a.to[k], a.from[k], begin, end);
  else if ((bits & 3) == 0)
    copy_units<uint32_t> (a.to[k], a.from[k], begin, end);
  else
    copy_units<unsigned char> (a.to[k], a.from[k], begin, end);
}
