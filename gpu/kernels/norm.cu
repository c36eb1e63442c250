/* Layer, group and root mean square normalisation.  Sums are carried in double, the mean first
 * and then the squares around it.
 *
 * SPDX-License-Identifier: MIT */
#include "kernel.cuh"

/* `lanes` threads for each row of m numbers. */

TD_DEVICE int64_t
channel_of (const TdRowNormParams &a, int64_t row, uint32_t k)
{
  return row % a.groups * a.channels + divide (k, a.by_rest);
}

/* x and its like are stored as S, gamma and beta as V; moments are T. */
template <typename S, typename V, typename Room>
TD_DEVICE void
norm_row (const TdRowNormParams &a, int64_t row, Room &room)
{
  typedef Number<S> N;
  typedef Number<V> P;
  typedef typename N::T T;
  const uint32_t lane = threadIdx.x % a.lanes, m = row < a.rows ? (uint32_t)a.m : 0;
  const S *x = (const S *)a.x + (row < a.rows ? row * a.m : 0);
  S *y = (S *)a.y + (row < a.rows ? row * a.m : 0);
  T mean = 0, s;
  double sum = 0;

  if (a.centred)
    {
      for (uint32_t k = lane; k < m; k += a.lanes)
        sum += (double)N::load (x[k]);
      mean = (T)(sum_of_group (sum, a.lanes, room) / (double)a.m);
      sum = 0;
    }
  for (uint32_t k = lane; k < m; k += a.lanes)
    {
      const double d = (double)(N::load (x[k]) - mean);

      sum += d * d;
    }
  s = (T)(1 / sqrt (sum_of_group (sum, a.lanes, room) / (double)a.m + a.eps));
  if (row < a.rows && lane == 0)
    {
      if (a.centred)
        ((T *)a.mean)[row] = mean;
      ((T *)a.spread)[row] = s;
    }
  for (uint32_t k = lane; k < m; k += a.lanes)
    {
      const int64_t c = channel_of (a, row, k);
      const T v = (N::load (x[k]) - mean) * s * P::load (((const V *)a.gamma)[c]);

      y[k] = N::store (a.beta != nullptr ? v + P::load (((const V *)a.beta)[c]) : v);
    }
}

template <typename S, typename V, typename Room>
TD_DEVICE void
norm_row_grad (const TdRowNormParams &a, int64_t row, Room &room)
{
  typedef Number<S> N;
  typedef Number<V> P;
  typedef typename N::T T;
  const bool valid = row < a.rows;
  const uint32_t lane = threadIdx.x % a.lanes, m = valid ? (uint32_t)a.m : 0;
  const int64_t at = valid ? row * a.m : 0;
  const S *x = (const S *)a.x + at, *gy = (const S *)a.gy + at;
  const V *gamma = (const V *)a.gamma;
  const T mean = valid && a.centred ? ((const T *)a.mean_in)[row] : (T)0;
  const T s = valid ? ((const T *)a.spread_in)[row] : (T)0;
  double of_h = 0, of_one = 0;
  T p, q;

  for (uint32_t k = lane; k < m; k += a.lanes)
    {
      const T g = N::load (gy[k]) * P::load (gamma[channel_of (a, row, k)]);

      of_h += (double)(g * ((N::load (x[k]) - mean) * s));
      of_one += (double)g;
    }
  p = (T)(sum_of_group (of_h, a.lanes, room) / (double)a.m);
  q = (T)(sum_of_group (of_one, a.lanes, room) / (double)a.m);
  q = a.centred ? q : (T)0;
  for (uint32_t k = lane; k < m; k += a.lanes)
    {
      const T g = N::load (gy[k]) * P::load (gamma[channel_of (a, row, k)]);

      ((S *)a.y)[at + k] = N::store (s * (g - q - (N::load (x[k]) - mean) * s * p));
    }
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

#define ROW_NORM(S, V, name)                                                                   \
  TD_KERNEL (td_row_norm_##name, TdRowNormParams)                                              \
  {                                                                                            \
    TD_SHARED (double, room, TD_BLOCK / TD_WARP);                                              \
    const int groups = TD_BLOCK / a.lanes;                                                     \
                                                                                               \
    for (int64_t first = (int64_t)blockIdx.x * groups; first < a.rows;                         \
         first += (int64_t)gridDim.x * groups)                                                 \
      norm_row<S, V> (a, first + threadIdx.x / a.lanes, room);                                 \
  }                                                                                            \
  TD_KERNEL (td_row_norm_grad_##name, TdRowNormParams)                                         \
  {                                                                                            \
    TD_SHARED (double, room, TD_BLOCK / TD_WARP);                                              \
    const int groups = TD_BLOCK / a.lanes;                                                     \
                                                                                               \
    for (int64_t first = (int64_t)blockIdx.x * groups; first < a.rows;                         \
         first += (int64_t)gridDim.x * groups)                                                 \
      norm_row_grad<S, V> (a, first + threadIdx.x / a.lanes, room);                            \
  }                                                                                            \
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
