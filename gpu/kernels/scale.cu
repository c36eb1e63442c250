/* A loss scale that the device finds by itself: are gradients finite, and what follows.
 *
 * SPDX-License-Identifier: MIT */
#include "kernel.cuh"
#include "scalar-updates.h"

/* Does one of this block's numbers have all bits of the mask? */
template <typename W>
TD_DEVICE bool
has_mask (const W *x, int64_t begin, int64_t end, W mask)
{
  constexpr int V = 16 / sizeof (W);
  const bool packs = (uint64_t)x % 16 == 0;
  const int64_t whole = packs ? begin + (end - begin) / V * V : begin;
  bool found = false;

  for (int64_t i = begin + (int64_t)threadIdx.x * V; i < whole; i += TD_BLOCK * V)
    {
      const Pack<W, V> pack = *(const Pack<W, V> *)(x + i);

#pragma unroll
      for (int j = 0; j < V; j++)
        found = found || (pack.v[j] & mask) == mask;
    }
  for (int64_t i = whole + threadIdx.x; i < end; i += TD_BLOCK)
    found = found || (x[i] & mask) == mask;
  return found;
}

/* All that find something write the same. */
TD_KERNEL (td_scale_look, TdFiniteParams)
{
  const int k = last_not_above (a.first_block, a.n, blockIdx.x);
  bool found = false;

  const int64_t begin = (int64_t)(blockIdx.x - a.first_block[k]) * TD_STATS_CHUNK;
  const int64_t size = a.of[k].size;
  const int64_t end = size - begin < TD_STATS_CHUNK ? size : begin + TD_STATS_CHUNK;
  const void *data = a.of[k].data;
  const uint64_t mask = a.of[k].mask;

  if (a.of[k].bytes == 2)
    found = has_mask ((const uint16_t *)data, begin, end, (uint16_t)mask);
  else if (a.of[k].bytes == 4)
    found = has_mask ((const uint32_t *)data, begin, end, (uint32_t)mask);
  else
    found = has_mask ((const uint64_t *)data, begin, end, mask);
  if (found)
    a.flags[k] = 1;
}

/* One block.  The host reads report[1] first: the run is written last. */
TD_KERNEL (td_scale_decide, TdDecideParams)
{
  TD_SHARED (int64_t, firsts, TD_BLOCK / TD_WARP);
  double *flags = a.numbers + TD_SCALE_FLAGS;
  volatile int64_t *report = a.report;
  int64_t first = a.n;

  for (int k = (int)threadIdx.x; k < a.n; k += TD_BLOCK)
    {
      first = flags[k] != 0 && first == a.n ? k : first;
      flags[k] = 0;
    }
  first = -largest_of_group (-first, TD_BLOCK, firsts);
  if (threadIdx.x != 0)
    return;
  td_scale_next (a.numbers, first < a.n, a.growth);
  report[0] = first < a.n ? first : -1;
  __threadfence_system ();
  report[1] = a.run;
}
