/* Places in row-major boxes of D axes, as windows go through them.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "kernel.cuh"

/* Places of `index` in a row-major box. */
template <int D>
TD_DEVICE void
places_of (int64_t index, const int64_t *dim, int64_t *place)
{
#pragma unroll
  for (int i = D - 1; i > 0; i--)
    {
      place[i] = index % dim[i];
      index /= dim[i];
    }
  place[0] = index;
}

/* The next place of a box [begin, end), row-major. */
template <typename I, int D>
TD_DEVICE void
step_on (I *at, const I *begin, const I *end)
{
  bool carry = true;

#pragma unroll
  for (int i = D - 1; i >= 0; i--)
    if (carry)
      {
        carry = ++at[i] == end[i];
        at[i] = carry ? begin[i] : at[i];
      }
}

template <typename I, int D>
TD_DEVICE I
index_in (const I *at, const int64_t *dim)
{
  I index = 0;

#pragma unroll
  for (int i = 0; i < D; i++)
    index = index * (I)dim[i] + at[i];
  return index;
}
