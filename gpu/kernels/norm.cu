/* Batch, layer, group and root mean square normalisation.  Sums are carried in double, the mean
 * first and then the squares around it.
 *
 * SPDX-License-Identifier: MIT */
#include "kernel.cuh"

/* --- batch normalisation: a block for each channel of (n, c, rest) --- */

/* Element e of channel ch. */
TD_DEVICE int64_t
channel_at (const TdBatchNormParams &a, int64_t ch, uint32_t e)
{
  const uint32_t i = divide (e, a.by_rest);

  return (i * a.c + ch) * a.rest + (e - i * a.by_rest.value);
}

template <typename T>
TD_DEVICE void
scale_channel (const TdBatchNormParams &a, int64_t ch, double mean, double inv_std)
{
  const T m = (T)mean, s = (T)inv_std;
  const T gamma = ((const T *)a.gamma)[ch], beta = ((const T *)a.beta)[ch];

  for (uint32_t e = threadIdx.x; e < a.n * a.rest; e += TD_BLOCK)
    {
      const int64_t at = channel_at (a, ch, e);

      ((T *)a.y)[at] = (((const T *)a.x)[at] - m) * s * gamma + beta;
    }
}

template <typename T, typename Room>
TD_DEVICE void
train_channel (const TdBatchNormParams &a, int64_t ch, Room &room)
{
  const T *x = (const T *)a.x;
  const double m = (double)(a.n * a.rest);
  double sum = 0, mean, var, inv_std;

  for (uint32_t e = threadIdx.x; e < a.n * a.rest; e += TD_BLOCK)
    sum += (double)x[channel_at (a, ch, e)];
  mean = sum_of_group (sum, TD_BLOCK, room) / m;
  sum = 0;
  for (uint32_t e = threadIdx.x; e < a.n * a.rest; e += TD_BLOCK)
    {
      const double d = (double)x[channel_at (a, ch, e)] - mean;

      sum += d * d;
    }
  var = sum_of_group (sum, TD_BLOCK, room) / m;
  inv_std = 1 / sqrt (var + a.eps);
  if (threadIdx.x == 0)
    {
      ((T *)a.mean_out)[ch] = (T)mean;
      ((T *)a.spread_out)[ch] = (T)inv_std;
      if (a.running_mean != nullptr)
        {
          T *running = (T *)a.running_mean + ch, *spread = (T *)a.running_var + ch;
          const double unbiased = var * m / (m > 2 ? m - 1 : 1);

          *running = (T)(a.decay * (double)*running + (1 - a.decay) * mean);
          *spread = (T)(a.decay * (double)*spread + (1 - a.decay) * unbiased);
        }
    }
  scale_channel<T> (a, ch, mean, inv_std);
}

template <typename T, typename Room>
TD_DEVICE void
grad_channel (const TdBatchNormParams &a, int64_t ch, Room &room)
{
  const T *x = (const T *)a.x, *gy = (const T *)a.gy;
  const T gamma = ((const T *)a.gamma)[ch], mean = ((const T *)a.mean)[ch];
  const T s = ((const T *)a.spread)[ch];
  const double m = (double)(a.n * a.rest);
  double ggamma = 0, gbeta = 0;
  T p, q;

  for (uint32_t e = threadIdx.x; e < a.n * a.rest; e += TD_BLOCK)
    {
      const int64_t at = channel_at (a, ch, e);

      gbeta += (double)gy[at];
      ggamma += (double)gy[at] * (double)((x[at] - mean) * s);
    }
  ggamma = sum_of_group (ggamma, TD_BLOCK, room);
  gbeta = sum_of_group (gbeta, TD_BLOCK, room);
  if (threadIdx.x == 0)
    {
      ((T *)a.mean_out)[ch] = (T)ggamma;
      ((T *)a.spread_out)[ch] = (T)gbeta;
    }
  p = (T)(ggamma / m);
  q = (T)(gbeta / m);
  for (uint32_t e = threadIdx.x; e < a.n * a.rest; e += TD_BLOCK)
    {
      const int64_t at = channel_at (a, ch, e);

      ((T *)a.y)[at] = gamma * s * (gy[at] - (x[at] - mean) * s * p - q);
    }
}

/* --- batch normalisation of (places, c): channels lie side by side ---
 *
 * A warp takes 32 channels, the warps of a block the places of a piece in turn; then one thread
 * a channel adds up the pieces, in order.  Training sums x, then squares around the mean. */

enum
{
  TD_TILE_ROWS = TD_BLOCK / TD_WARP
};

template <typename T>
TD_DEVICE void
add_place (const TdBatchNormParams &a, int64_t at, int64_t ch, double mean, double &p,
           double &q)
{
  const T x = ((const T *)a.x)[at];

  if (a.kind == TD_BATCH_NORM_GRAD)
    {
      const T gy = ((const T *)a.gy)[at];

      p += (double)gy * (double)((x - ((const T *)a.mean)[ch]) * ((const T *)a.spread)[ch]);
      q += (double)gy;
    }
  else if (a.moment == 0)
    p += (double)x;
  else
    p += ((double)x - mean) * ((double)x - mean);
}

template <typename T, typename Room>
TD_DEVICE void
sum_places (const TdBatchNormParams &a, Room &room)
{
  const int64_t places = a.n * a.rest, begin = blockIdx.y * a.piece;
  const int64_t end = places - begin < a.piece ? places : begin + a.piece;
  const int lane = (int)(threadIdx.x % TD_WARP), row = (int)(threadIdx.x / TD_WARP);
  double *parts = a.parts + 2 * (int64_t)blockIdx.y * a.c;

  for (int64_t first = (int64_t)blockIdx.x * TD_WARP; first < a.c;
       first += (int64_t)gridDim.x * TD_WARP)
    {
      const int64_t ch = first + lane;
      const double mean = ch < a.c && a.moment == 1 ? a.moments[ch] : 0;
      double p = 0, q = 0;

      for (int64_t i = begin + row; ch < a.c && i < end; i += TD_TILE_ROWS)
        add_place<T> (a, i * a.c + ch, ch, mean, p, q);
      room[2 * threadIdx.x] = p;
      room[2 * threadIdx.x + 1] = q;
      __syncthreads ();
      if (row == 0 && ch < a.c)
        {
          for (int k = 1; k < TD_TILE_ROWS; k++)
            {
              p += room[2 * (k * TD_WARP + lane)];
              q += room[2 * (k * TD_WARP + lane) + 1];
            }
          parts[ch] = p;
          parts[a.c + ch] = q;
        }
      __syncthreads ();
    }
}

/* What a channel's sums are for. */
template <typename T>
TD_DEVICE void
end_of_sums (const TdBatchNormParams &a, int64_t ch)
{
  const double m = (double)(a.n * a.rest);
  double p = 0, q = 0;

  for (int k = 0; k < a.n_pieces; k++)
    {
      p += a.parts[2 * k * a.c + ch];
      q += a.parts[(2 * k + 1) * a.c + ch];
    }
  if (a.kind == TD_BATCH_NORM_GRAD)
    {
      ((T *)a.mean_out)[ch] = (T)p;
      ((T *)a.spread_out)[ch] = (T)q;
      a.moments[ch] = p / m;
      a.moments[a.c + ch] = q / m;
    }
  else if (a.moment == 0)
    a.moments[ch] = p / m;
  else
    {
      const double mean = a.moments[ch], var = p / m, inv_std = 1 / sqrt (var + a.eps);

      a.moments[a.c + ch] = inv_std;
      ((T *)a.mean_out)[ch] = (T)mean;
      ((T *)a.spread_out)[ch] = (T)inv_std;
      if (a.running_mean != nullptr)
        {
          T *running = (T *)a.running_mean + ch, *spread = (T *)a.running_var + ch;
          const double unbiased = var * m / (m > 2 ? m - 1 : 1);

          *running = (T)(a.decay * (double)*running + (1 - a.decay) * mean);
          *spread = (T)(a.decay * (double)*spread + (1 - a.decay) * unbiased);
        }
    }
}

/* The elements, once the moments are there: mean and 1 / deviation, of a gradient p and q. */
template <typename T>
TD_DEVICE void
scale_places (const TdBatchNormParams &a)
{
  const int64_t n = a.n * a.rest * a.c;

  for (int64_t at = thread_index (); at < n; at += n_threads ())
    {
      const int64_t ch = at % a.c;
      const T x = ((const T *)a.x)[at], gamma = ((const T *)a.gamma)[ch];
      const T u = (T)a.moments[ch], v = (T)a.moments[a.c + ch];

      if (a.kind == TD_BATCH_NORM_GRAD)
        {
          const T mean = ((const T *)a.mean)[ch], s = ((const T *)a.spread)[ch];

          ((T *)a.y)[at] = gamma * s * (((const T *)a.gy)[at] - (x - mean) * s * u - v);
        }
      else
        ((T *)a.y)[at] = (x - u) * v * gamma + ((const T *)a.beta)[ch];
    }
}

/* --- row normalisation: `lanes` threads for each row of m numbers --- */

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

#define NORM(T, name)                                                                          \
  TD_KERNEL (td_batch_norm_train_##name, TdBatchNormParams)                                    \
  {                                                                                            \
    TD_SHARED (double, room, TD_BLOCK / TD_WARP);                                              \
                                                                                               \
    for (int64_t ch = blockIdx.x; ch < a.c; ch += gridDim.x)                                   \
      train_channel<T> (a, ch, room);                                                          \
  }                                                                                            \
  TD_KERNEL (td_batch_norm_grad_##name, TdBatchNormParams)                                     \
  {                                                                                            \
    TD_SHARED (double, room, TD_BLOCK / TD_WARP);                                              \
                                                                                               \
    for (int64_t ch = blockIdx.x; ch < a.c; ch += gridDim.x)                                   \
      grad_channel<T> (a, ch, room);                                                           \
  }                                                                                            \
  TD_KERNEL (td_batch_norm_fixed_##name, TdBatchNormParams)                                    \
  {                                                                                            \
    for (int64_t ch = blockIdx.x; ch < a.c; ch += gridDim.x)                                   \
      scale_channel<T> (a, ch, (double)((const T *)a.mean)[ch],                                \
                        1 / sqrt ((double)((const T *)a.spread)[ch] + a.eps));                 \
  }                                                                                            \
  TD_KERNEL (td_batch_norm_last_sum_##name, TdBatchNormParams)                                 \
  {                                                                                            \
    TD_SHARED (double, room, 2 * TD_BLOCK);                                                    \
                                                                                               \
    sum_places<T> (a, room);                                                                   \
  }                                                                                            \
  TD_KERNEL (td_batch_norm_last_end_##name, TdBatchNormParams)                                 \
  {                                                                                            \
    for (int64_t ch = thread_index (); ch < a.c; ch += n_threads ())                           \
      end_of_sums<T> (a, ch);                                                                  \
  }                                                                                            \
  TD_KERNEL (td_batch_norm_last_fixed_##name, TdBatchNormParams)                               \
  {                                                                                            \
    for (int64_t ch = thread_index (); ch < a.c; ch += n_threads ())                           \
      {                                                                                        \
        a.moments[ch] = (double)((const T *)a.mean)[ch];                                       \
        a.moments[a.c + ch] = 1 / sqrt ((double)((const T *)a.spread)[ch] + a.eps);            \
      }                                                                                        \
  }                                                                                            \
  TD_KERNEL (td_batch_norm_last_scale_##name, TdBatchNormParams)                               \
  {                                                                                            \
    scale_places<T> (a);                                                                       \
  }
NORM (float, f32)
NORM (double, f64)

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
