/* Random numbers, the same bits as engine/compute/cpu/random.c: number i from counter offset +
 * i / 4, lane i % 4.  A thread makes the four of one counter.
 *
 * SPDX-License-Identifier: MIT */
#include "kernel.cuh"

template <typename S>
TD_DEVICE void
put (S *y, double v)
{
  y[0] = Number<S>::store ((typename Number<S>::T)v);
}

/* What float keeps of a lane: its upper 24 bits. */
template <typename S>
TD_DEVICE S
plain (const TdRandomParams &a, uint32_t bits, S)
{
  const int32_t threshold = (int32_t)ceil (a.p * 16777216.0);

  if (a.kind == TD_RANDOM_UNIFORM)
    return Number<S>::store ((float)(int32_t)(bits >> 8) * 5.9604644775390625e-8f);
  return Number<S>::store ((int32_t)(bits >> 8) >= threshold ? (float)(1.0 / (1.0 - a.p))
                                                             : 0.0f);
}

TD_DEVICE double
plain (const TdRandomParams &a, uint32_t bits, double)
{
  const double v = (double)bits * 2.3283064365386963e-10;

  return a.kind == TD_RANDOM_UNIFORM ? v : v >= a.p ? 1.0 / (1.0 - a.p) : 0.0;
}

template <typename S>
TD_DEVICE void
make (const TdRandomParams &a)
{
  const uint32_t key[2] = { (uint32_t)a.seed, (uint32_t)(a.seed >> 32) };

  for (int64_t i = thread_index (); i < (a.n + 3) / 4; i += n_threads ())
    {
      const uint64_t place = a.offset + (uint64_t)i;
      const uint32_t counter[4] = { (uint32_t)place, (uint32_t)(place >> 32), 0, 0 };
      uint32_t bits[4];
      double v[4] = { 0, 0, 0, 0 };

      td_philox (counter, key, bits);
      if (a.kind == TD_RANDOM_NORMAL)
        {
          td_box_muller (bits[0], bits[1], v);
          td_box_muller (bits[2], bits[3], v + 2);
        }
#pragma unroll
      for (int k = 0; k < 4; k++)
        if (4 * i + k < a.n)
          {
            S *y = (S *)a.y + 4 * i + k;

            if (a.kind == TD_RANDOM_NORMAL)
              put (y, v[k]);
            else
              *y = plain (a, bits[k], S ());
          }
    }
}

#define RANDOM(S, name)                                                                        \
  TD_KERNEL (td_random_##name, TdRandomParams)                                                 \
  {                                                                                            \
    make<S> (a);                                                                               \
  }
RANDOM (float, f32)
RANDOM (double, f64)
RANDOM (td_f16, f16)
RANDOM (td_bf16, bf16)
