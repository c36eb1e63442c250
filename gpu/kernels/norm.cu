/* Layer, group and root mean square normalisation.  Sums are carried in double, the mean first
 * and then the squares around it.
 *
 * SPDX-License-Identifier: MIT */
#include "count.cuh"

/* `lanes` threads for each row of m numbers. */

TD_DEVICE int64_t
channel_of (const TdRowNormParams &a, int64_t row, uint32_t k)
{
  return row % a.groups * a.channels + divide (k, a.by_rest);
}

/* Call f (k, i) for the packs of W numbers of a row that are this lane's, the k-th of them from
 * place i on; k stays 0 where they are not kept. */
template <typename S, int W, bool KEEP, typename F>
TD_DEVICE void
each_pack (const TdRowNormParams &a, uint32_t m, F f)
{
  const uint32_t first = threadIdx.x % a.lanes * W, step = (uint32_t)a.lanes * W;

  if (KEEP)
    {
#pragma unroll
      for (int k = 0; k < Held<S, W>::N / W; k++)
        if (first + k * step < m)
          f (k, first + k * step);
    }
  else
    for (uint32_t i = first; i < m; i += step)
      f (0, i);
}

template <int W, typename S>
TD_DEVICE Pack<S, W>
pack_at (const void *data, int64_t i)
{
  return *(const Pack<S, W> *)((const S *)data + i);
}

/* x and its like are stored as S, gamma and beta as V; moments are T.  W numbers are taken at
 * once; where that is more than one, they are as many channels. */
template <typename S, typename V, int W, bool KEEP, typename Room, typename C>
TD_DEVICE void
norm_row (const TdRowNormParams &a, int64_t row, Room &room, C &counter)
{
  typedef Number<S> N;
  typedef Number<V> P;
  typedef typename N::T T;
  const uint32_t m = row < a.rows ? (uint32_t)a.m : 0;
  const int64_t at = row < a.rows ? row * a.m : 0;
  Pack<S, W> x[KEEP ? Held<S, W>::N / W : 1];
  T mean = 0, s;
  double sum = 0;

  if (KEEP)
    each_pack<S, W, KEEP> (a, m,
                           [&] (int k, uint32_t i) { x[k] = pack_at<W, S> (a.x, at + i); });
  if (a.centred)
    {
      each_pack<S, W, KEEP> (a, m, [&] (int k, uint32_t i) {
        if (!KEEP)
          x[k] = pack_at<W, S> (a.x, at + i);
#pragma unroll
        for (int j = 0; j < W; j++)
          sum += (double)N::load (x[k].v[j]);
      });
      mean = (T)(sum_of_group (sum, a.lanes, room) / (double)a.m);
      sum = 0;
    }
  each_pack<S, W, KEEP> (a, m, [&] (int k, uint32_t i) {
    if (!KEEP)
      x[k] = pack_at<W, S> (a.x, at + i);
#pragma unroll
    for (int j = 0; j < W; j++)
      {
        const double d = (double)(N::load (x[k].v[j]) - mean);

        sum += d * d;
      }
  });
  s = (T)(1 / sqrt (sum_of_group (sum, a.lanes, room) / (double)a.m + a.eps));
  if (row < a.rows && threadIdx.x % a.lanes == 0)
    {
      if (a.centred)
        ((T *)a.mean)[row] = mean;
      ((T *)a.spread)[row] = s;
    }
  each_pack<S, W, KEEP> (a, m, [&] (int k, uint32_t i) {
    const int64_t c = channel_of (a, row, i);
    const Pack<V, W> gamma = pack_at<W, V> (a.gamma, c);
    Pack<V, W> beta = gamma;
    Pack<S, W> y;

    if (!KEEP)
      x[k] = pack_at<W, S> (a.x, at + i);
    if (a.beta != nullptr)
      beta = pack_at<W, V> (a.beta, c);
#pragma unroll
    for (int j = 0; j < W; j++)
      {
        const T v = (N::load (x[k].v[j]) - mean) * s * P::load (gamma.v[j]);

        y.v[j] = N::store (a.beta != nullptr ? v + P::load (beta.v[j]) : v);
        counter.see (N::load (y.v[j]));
      }
    *(Pack<S, W> *)((S *)a.y + at + i) = y;
  });
}

template <typename S, typename V, int W, bool KEEP, typename Room, typename C>
TD_DEVICE void
norm_row_grad (const TdRowNormParams &a, int64_t row, Room &room, C &counter)
{
  typedef Number<S> N;
  typedef Number<V> P;
  typedef typename N::T T;
  const bool valid = row < a.rows;
  const uint32_t m = valid ? (uint32_t)a.m : 0;
  const int64_t at = valid ? row * a.m : 0;
  const T mean = valid && a.centred ? ((const T *)a.mean_in)[row] : (T)0;
  const T s = valid ? ((const T *)a.spread_in)[row] : (T)0;
  Pack<S, W> x[KEEP ? Held<S, W>::N / W : 1], gy[KEEP ? Held<S, W>::N / W : 1];
  double of_h = 0, of_one = 0;
  T p, q;

  if (KEEP)
    each_pack<S, W, KEEP> (a, m, [&] (int k, uint32_t i) {
      x[k] = pack_at<W, S> (a.x, at + i);
      gy[k] = pack_at<W, S> (a.gy, at + i);
    });
  each_pack<S, W, KEEP> (a, m, [&] (int k, uint32_t i) {
    const Pack<V, W> gamma = pack_at<W, V> (a.gamma, channel_of (a, row, i));

    if (!KEEP)
      {
        x[k] = pack_at<W, S> (a.x, at + i);
        gy[k] = pack_at<W, S> (a.gy, at + i);
      }
#pragma unroll
    for (int j = 0; j < W; j++)
      {
        const T g = N::load (gy[k].v[j]) * P::load (gamma.v[j]);

        of_h += (double)(g * ((N::load (x[k].v[j]) - mean) * s));
        of_one += (double)g;
      }
  });
  p = (T)(sum_of_group (of_h, a.lanes, room) / (double)a.m);
  q = (T)(sum_of_group (of_one, a.lanes, room) / (double)a.m);
  q = a.centred ? q : (T)0;
  each_pack<S, W, KEEP> (a, m, [&] (int k, uint32_t i) {
    const Pack<V, W> gamma = pack_at<W, V> (a.gamma, channel_of (a, row, i));
    Pack<S, W> gx;

    if (!KEEP)
      {
        x[k] = pack_at<W, S> (a.x, at + i);
        gy[k] = pack_at<W, S> (a.gy, at + i);
      }
#pragma unroll
    for (int j = 0; j < W; j++)
      {
        const T g = N::load (gy[k].v[j]) * P::load (gamma.v[j]);

        gx.v[j] = N::store (s * (g - q - (N::load (x[k].v[j]) - mean) * s * p));
        counter.see (N::load (gx.v[j]));
      }
    *(Pack<S, W> *)((S *)a.y + at + i) = gx;
  });
}

/* What element `at` adds to the gradients of its channel. */
template <typename S>
TD_DEVICE void
add_element (const TdRowNormParams &a, int64_t row, int64_t at, double &ggamma, double &gbeta)
{
  typedef Number<S> N;
  typedef typename N::T T;
  const T mean = a.centred ? ((const T *)a.mean_in)[row] : (T)0;
  const T s = ((const T *)a.spread_in)[row], g = N::load (((const S *)a.gy)[at]);

  ggamma += (double)(g * ((N::load (((const S *)a.x)[at]) - mean) * s));
  gbeta += (double)g;
}

/* parts[piece][2][channel].  Where channels lie side by side a thread takes one, and a piece of
 * the rows; else a block. */
template <typename S, typename Room>
TD_DEVICE void
sum_channels (const TdRowNormParams &a, Room &room)
{
  const int64_t all = a.groups * a.channels, n = a.rows / a.groups;
  const int64_t begin = blockIdx.y * a.piece, end = n - begin < a.piece ? n : begin + a.piece;
  double *parts = a.parts + 2 * blockIdx.y * all;

  if (a.rest == 1)
    for (int64_t c = thread_index (); c < all; c += n_threads ())
      {
        double ggamma = 0, gbeta = 0;

        for (int64_t i = begin; i < end; i++)
          add_element<S> (a, i * a.groups + c / a.channels, i * all + c, ggamma, gbeta);
        parts[c] = ggamma;
        parts[all + c] = gbeta;
      }
  else
    for (int64_t c = blockIdx.x; c < all; c += gridDim.x)
      {
        double ggamma = 0, gbeta = 0;

        for (int64_t i = begin; i < end; i++)
          for (int64_t r = threadIdx.x; r < a.rest; r += TD_BLOCK)
            add_element<S> (a, i * a.groups + c / a.channels, (i * all + c) * a.rest + r,
                            ggamma, gbeta);
        ggamma = sum_of_group (ggamma, TD_BLOCK, room);
        gbeta = sum_of_group (gbeta, TD_BLOCK, room);
        if (threadIdx.x == 0)
          {
            parts[c] = ggamma;
            parts[all + c] = gbeta;
          }
      }
}

/* A group of lanes for each row; how rows are read is the same for all of them. */
#define EACH_ROW(call)                                                                         \
  for (int64_t first = (int64_t)blockIdx.x * groups; first < a.rows;                           \
       first += (int64_t)gridDim.x * groups)                                                   \
  call

#define ROW_NORM(S, V, name)                                                                   \
  TD_COUNTED_KERNEL (row_norm_##name, TdRowNormParams)                                         \
  {                                                                                            \
    TD_SHARED (double, room, TD_BLOCK / TD_WARP);                                              \
    TD_COUNTER (Number<S>::T);                                                                 \
    const int groups = TD_BLOCK / a.lanes;                                                     \
                                                                                               \
    if (a.packs && a.m <= (int64_t)a.lanes * Held<S, Wide<S>::AT_ONCE>::N)                     \
      EACH_ROW ((norm_row<S, V, Wide<S>::AT_ONCE, true> (a, first + threadIdx.x / a.lanes,     \
                                                         room, counter)));                     \
    else if (a.packs)                                                                          \
      EACH_ROW ((norm_row<S, V, Wide<S>::AT_ONCE, false> (a, first + threadIdx.x / a.lanes,    \
                                                          room, counter)));                    \
    else                                                                                       \
      EACH_ROW ((norm_row<S, V, 1, false> (a, first + threadIdx.x / a.lanes, room, counter))); \
    TD_COUNTER_LEAVE (a.counts);                                                               \
  }                                                                                            \
  TD_COUNTED_KERNEL (row_norm_grad_##name, TdRowNormParams)                                    \
  {                                                                                            \
    TD_SHARED (double, room, TD_BLOCK / TD_WARP);                                              \
    TD_COUNTER (Number<S>::T);                                                                 \
    const int groups = TD_BLOCK / a.lanes;                                                     \
                                                                                               \
    if (a.packs && a.m <= (int64_t)a.lanes * Held<S, Wide<S>::AT_ONCE>::N)                     \
      EACH_ROW ((norm_row_grad<S, V, Wide<S>::AT_ONCE, true> (                                 \
          a, first + threadIdx.x / a.lanes, room, counter)));                                  \
    else if (a.packs)                                                                          \
      EACH_ROW ((norm_row_grad<S, V, Wide<S>::AT_ONCE, false> (                                \
          a, first + threadIdx.x / a.lanes, room, counter)));                                  \
    else                                                                                       \
      EACH_ROW (                                                                               \
          (norm_row_grad<S, V, 1, false> (a, first + threadIdx.x / a.lanes, room, counter)));  \
    TD_COUNTER_LEAVE (a.counts);                                                               \
  }
/* What does not count. */
#define ROW_NORM_SUMS(S, V, name)                                                              \
  TD_KERNEL (td_row_norm_sums_##name, TdRowNormParams)                                         \
  {                                                                                            \
    TD_SHARED (double, room, TD_BLOCK / TD_WARP);                                              \
                                                                                               \
    sum_channels<S> (a, room);                                                                 \
  }                                                                                            \
  TD_KERNEL (td_row_norm_end_##name, TdRowNormParams)                                          \
  {                                                                                            \
    const int64_t all = a.groups * a.channels;                                                 \
                                                                                               \
    for (int64_t c = thread_index (); c < all; c += n_threads ())                              \
      {                                                                                        \
        double ggamma = 0, gbeta = 0;                                                          \
                                                                                               \
        for (int k = 0; k < a.n_pieces; k++)                                                   \
          {                                                                                    \
            ggamma += a.parts[2 * k * all + c];                                                \
            gbeta += a.parts[(2 * k + 1) * all + c];                                           \
          }                                                                                    \
        ((V *)a.ggamma)[c] = Number<V>::store ((Number<V>::T)ggamma);                          \
        if (a.gbeta != nullptr)                                                                \
          ((V *)a.gbeta)[c] = Number<V>::store ((Number<V>::T)gbeta);                          \
      }                                                                                        \
  }
ROW_NORM (float, float, f32)
ROW_NORM (double, double, f64)
ROW_NORM (td_f16, td_f16, f16)
ROW_NORM (td_bf16, td_bf16, bf16)
ROW_NORM (td_f16, float, f16_f32)
ROW_NORM (td_bf16, float, bf16_f32)
#if !defined(TD_KERNELS_COUNT)
ROW_NORM_SUMS (float, float, f32)
ROW_NORM_SUMS (double, double, f64)
ROW_NORM_SUMS (td_f16, td_f16, f16)
ROW_NORM_SUMS (td_bf16, td_bf16, bf16)
ROW_NORM_SUMS (td_f16, float, f16_f32)
ROW_NORM_SUMS (td_bf16, float, bf16_f32)
#endif
