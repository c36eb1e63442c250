/* Random numbers, the same bits as engine/compute/cpu/random.c: number i from counter offset +
 * i / 4, lane i % 4.  A thread makes the four of one counter.  Dropout multiplies by a mask
 * that it makes itself.
 *
 * SPDX-License-Identifier: MIT */
#include "count.cuh"

enum
{
  FOUR = 4 /* numbers of a counter */
};

/* What a mask has for random bits: float keeps the upper 24 of them. */
template <typename S> struct Mask
{
  float kept;
  int32_t threshold;

  TD_MEMBER explicit Mask (double p)
      : kept (Number<S>::load (Number<S>::store ((float)(1.0 / (1.0 - p))))),
        threshold ((int32_t)ceil (p * 16777216.0))
  {
  }

  TD_MEMBER float
  of (uint32_t bits) const
  {
    return (int32_t)(bits >> 8) >= threshold ? kept : 0.0f;
  }
};

template <> struct Mask<double>
{
  double kept, p;

  TD_MEMBER explicit Mask (double p_) : kept (1.0 / (1.0 - p_)), p (p_)
  {
  }

  TD_MEMBER double
  of (uint32_t bits) const
  {
    return (double)bits * 2.3283064365386963e-10 >= p ? kept : 0.0;
  }
};

TD_DEVICE float
uniform (uint32_t bits, float)
{
  return (float)(int32_t)(bits >> 8) * 5.9604644775390625e-8f;
}

TD_DEVICE double
uniform (uint32_t bits, double)
{
  return (double)bits * 2.3283064365386963e-10;
}

TD_DEVICE void
draw (const TdRandomParams &a, int64_t i, uint32_t *bits)
{
  const uint32_t key[2] = { (uint32_t)a.seed, (uint32_t)(a.seed >> 32) };
  const uint64_t place = a.offset + (uint64_t)i;
  const uint32_t counter[4] = { (uint32_t)place, (uint32_t)(place >> 32), 0, 0 };

  td_philox (counter, key, bits);
}

/* Numbers 4 i and those behind it, at once where all four are there and aligned. */
template <typename S>
TD_DEVICE Pack<S, FOUR>
take_four (const TdRandomParams &a, int64_t i)
{
  const S *x = (const S *)a.x + FOUR * i;
  Pack<S, FOUR> pack = {};

  if (a.packs && FOUR * i + FOUR <= a.n)
    return *(const Pack<S, FOUR> *)x;
#pragma unroll
  for (int k = 0; k < FOUR; k++)
    if (FOUR * i + k < a.n)
      pack.v[k] = x[k];
  return pack;
}

template <typename S, typename C>
TD_DEVICE void
put_four (const TdRandomParams &a, int64_t i, const typename Number<S>::T *v, C &counter)
{
  S *y = (S *)a.y + FOUR * i;
  Pack<S, FOUR> pack;

#pragma unroll
  for (int k = 0; k < FOUR; k++)
    {
      pack.v[k] = Number<S>::store (v[k]);
      if (FOUR * i + k < a.n)
        counter.see (Number<S>::load (pack.v[k]));
    }
  if (a.packs && FOUR * i + FOUR <= a.n)
    {
      *(Pack<S, FOUR> *)y = pack;
      return;
    }
#pragma unroll
  for (int k = 0; k < FOUR; k++)
    if (FOUR * i + k < a.n)
      y[k] = pack.v[k];
}

#if !defined(TD_KERNELS_COUNT)
template <typename S>
TD_DEVICE void
make (const TdRandomParams &a)
{
  typedef typename Number<S>::T T;
  const Mask<S> mask (a.p);
  Quiet nobody;

  for (int64_t i = thread_index (); i < (a.n + FOUR - 1) / FOUR; i += n_threads ())
    {
      uint32_t bits[FOUR];
      T v[FOUR];

      draw (a, i, bits);
      if (a.kind == TD_RANDOM_NORMAL)
        {
          double normal[FOUR];

          td_box_muller (bits[0], bits[1], normal);
          td_box_muller (bits[2], bits[3], normal + 2);
#pragma unroll
          for (int k = 0; k < FOUR; k++)
            v[k] = (T)normal[k];
        }
      else
#pragma unroll
        for (int k = 0; k < FOUR; k++)
          v[k] = a.kind == TD_RANDOM_UNIFORM ? uniform (bits[k], T ()) : mask.of (bits[k]);
      put_four<S> (a, i, v, nobody);
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
#endif

/* y = x mask; two lots of four in flight, which come while the mask is made. */
template <typename S, typename C>
TD_DEVICE void
drop_out (const TdRandomParams &a, C &counter)
{
  typedef Number<S> N;
  constexpr int AHEAD = 2;
  const int64_t step = n_threads (), lots = (a.n + FOUR - 1) / FOUR;
  const Mask<S> mask (a.p);

  for (int64_t i = thread_index (); i < lots; i += AHEAD * step)
    {
      Pack<S, FOUR> x[AHEAD];

#pragma unroll
      for (int u = 0; u < AHEAD; u++)
        if (i + u * step < lots)
          x[u] = take_four<S> (a, i + u * step);
#pragma unroll
      for (int u = 0; u < AHEAD; u++)
        if (i + u * step < lots)
          {
            uint32_t bits[FOUR];
            typename N::T v[FOUR];

            draw (a, i + u * step, bits);
#pragma unroll
            for (int k = 0; k < FOUR; k++)
              v[k] = N::load (x[u].v[k]) * mask.of (bits[k]);
            put_four<S> (a, i + u * step, v, counter);
          }
    }
}

#define DROPOUT(S, name)                                                                       \
  TD_STATS_KERNEL (dropout_##name, TdRandomParams)                                             \
  {                                                                                            \
    TD_COUNTER (Number<S>::T);                                                                 \
                                                                                               \
    drop_out<S> (a, counter);                                                                  \
    TD_COUNTER_LEAVE (a.parts);                                                                \
  }
DROPOUT (float, f32)
DROPOUT (double, f64)
DROPOUT (td_f16, f16)
DROPOUT (td_bf16, bf16)
