/* Matrix products and attention, for where no library does them: by tiles, and by blocks of
 * keys with the largest score and the sum so far.
 *
 * *Source*: Milakov and Gimelshein, 2018 (online softmax); Dao et al., 2022.
 * SPDX-License-Identifier: MIT */
#include "kernel.cuh"

enum
{
  TILE = 64,  /* of C, both ways */
  DEPTH = 16, /* of a step */
  EACH = 4    /* rows and columns of a thread */
};

template <typename T, typename Room>
TD_DEVICE void
gemm (const TdGemmParams &p, Room &as, Room &bs)
{
  const TdGemm &g = p.g;
  const int64_t columns = (g.n + TILE - 1) / TILE;
  const int64_t row = blockIdx.x / columns * TILE, column = blockIdx.x % columns * TILE;
  const int x = threadIdx.x % (TILE / EACH), y = threadIdx.x / (TILE / EACH);

  for (int64_t batch = blockIdx.y; batch < g.batch; batch += gridDim.y)
    {
      const T *a = (const T *)p.a + batch * g.stride_a,
              *b = (const T *)p.b + batch * g.stride_b;
      T *c = (T *)p.c + batch * g.stride_c;
      T sum[EACH][EACH] = {};

      for (int64_t k0 = 0; k0 < g.k; k0 += DEPTH)
        {
          for (int t = threadIdx.x; t < TILE * DEPTH; t += TD_BLOCK)
            {
              /* Neighbouring threads read neighbours, whichever way the matrix lies. */
              const int am = g.ta ? t % TILE : t / DEPTH, ak = g.ta ? t / TILE : t % DEPTH;
              const int bn = g.tb ? t / DEPTH : t % TILE, bk = g.tb ? t % DEPTH : t / TILE;
              const int64_t i = row + am, j = column + bn;

              as[ak * (TILE + 1) + am] = i < g.m && k0 + ak < g.k
                                             ? a[g.ta ? (k0 + ak) * g.m + i : i * g.k + k0 + ak]
                                             : (T)0;
              bs[bk * (TILE + 1) + bn] = j < g.n && k0 + bk < g.k
                                             ? b[g.tb ? j * g.k + k0 + bk : (k0 + bk) * g.n + j]
                                             : (T)0;
            }
          __syncthreads ();
          for (int k = 0; k < DEPTH; k++)
#pragma unroll
            for (int i = 0; i < EACH; i++)
#pragma unroll
              for (int j = 0; j < EACH; j++)
                sum[i][j]
                    += as[k * (TILE + 1) + y * EACH + i] * bs[k * (TILE + 1) + x + j * 16];
          __syncthreads ();
        }
#pragma unroll
      for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++)
          {
            const int64_t at_row = row + y * EACH + i, at_column = column + x + j * 16;
            T *place = c + at_row * g.n + at_column;

            if (at_row < g.m && at_column < g.n)
              *place = (T)g.alpha * sum[i][j] + (g.beta != 0 ? (T)g.beta * *place : (T)0);
          }
    }
}

/* --- attention --- */

template <typename T>
TD_DEVICE T
dot (const T *x, const T *y, int64_t n)
{
  T sum = 0;

  for (int64_t c = 0; c < n; c++)
    sum += x[c] * y[c];
  return sum;
}

/* The score of query i and key j of batch b; -inf where it is hidden. */
template <typename T>
TD_DEVICE T
score (const TdAttentionParams &p, int64_t b, int64_t i, int64_t j)
{
  const TdAttention &a = p.a;
  const T *mask = (const T *)p.mask;

  if (j >= a.n_k || i >= a.n_q || (a.causal && j > i + a.n_k - a.n_q)
      || (mask != nullptr && mask[(b / a.mask_every * a.n_q + i) * a.n_k + j] == 0))
    return -(T)INFINITY;
  return (T)a.scale
         * dot ((const T *)p.q + (b * a.n_q + i) * a.d, (const T *)p.k + (b * a.n_k + j) * a.d,
                a.d);
}

TD_DEVICE float
exp_of (float x)
{
  return td_exp_f32 (x);
}

TD_DEVICE double
exp_of (double x)
{
  return exp (x);
}

/* A block for each query; `weights` holds those of TD_BLOCK keys. */
template <typename T, typename Room, typename Sums>
TD_DEVICE void
attend (const TdAttentionParams &p, int64_t query, Room &weights, Room &room, Sums &sums)
{
  const TdAttention &a = p.a;
  const int64_t b = query / a.n_q, i = query % a.n_q;
  const T *v = (const T *)p.v + b * a.n_k * a.d_v;
  T *y = (T *)p.out + query * a.d_v, top = -(T)INFINITY;
  double sum = 0;

  for (int64_t c = threadIdx.x; c < a.d_v; c += TD_BLOCK)
    y[c] = 0;
  for (int64_t j0 = 0; j0 < a.n_k; j0 += TD_BLOCK)
    {
      const T s = score<T> (p, b, i, j0 + threadIdx.x);
      const T best = largest_of_group (s, TD_BLOCK, room), now = best > top ? best : top;
      const T shrink = now == top ? (T)1 : exp_of (top - now);
      const T e = s == -(T)INFINITY ? (T)0 : exp_of (s - now);
      const int64_t end = a.n_k - j0 < TD_BLOCK ? a.n_k - j0 : (int64_t)TD_BLOCK;

      weights[threadIdx.x] = e;
      sum = sum * (double)shrink + sum_of_group ((double)e, TD_BLOCK, sums);
      for (int64_t c = threadIdx.x; c < a.d_v; c += TD_BLOCK)
        {
          T total = y[c] * shrink;

          for (int64_t k = 0; k < end; k++)
            total += weights[k] * v[(j0 + k) * a.d_v + c];
          y[c] = total;
        }
      top = now;
      __syncthreads ();
    }
  for (int64_t c = threadIdx.x; c < a.d_v; c += TD_BLOCK)
    y[c] = sum != 0 ? (T)((double)y[c] / sum) : (T)0;
  if (threadIdx.x == 0)
    ((T *)p.out2)[query] = sum != 0 ? (T)((double)top + log (sum)) : (T)INFINITY;
}

/* delta = y . gy of each query. */
template <typename T>
TD_DEVICE void
deltas (const TdAttentionParams &p)
{
  for (int64_t i = thread_index (); i < p.a.batch * p.a.n_q; i += n_threads ())
    {
      double sum = 0;

      for (int64_t c = 0; c < p.a.d_v; c++)
        sum += (double)(((const T *)p.y)[i * p.a.d_v + c] * ((const T *)p.gy)[i * p.a.d_v + c]);
      p.delta[i] = sum;
    }
}

/* The weight of query i and key j, and the slope of its score. */
template <typename T>
TD_DEVICE void
weight_and_slope (const TdAttentionParams &p, int64_t b, int64_t i, int64_t j, T &weight,
                  T &slope)
{
  const TdAttention &a = p.a;
  const T s = score<T> (p, b, i, j);

  weight = slope = 0;
  if (s == -(T)INFINITY)
    return;
  weight = exp_of (s - ((const T *)p.lse)[b * a.n_q + i]);
  slope = weight
          * (dot ((const T *)p.gy + (b * a.n_q + i) * a.d_v,
                  (const T *)p.v + (b * a.n_k + j) * a.d_v, a.d_v)
             - (T)p.delta[b * a.n_q + i])
          * (T)a.scale;
}

/* to[c] += the sum of weights[k] rows[k][c], k < n. */
template <typename T, typename Room>
TD_DEVICE void
add_rows (T *to, const T *rows, Room &weights, int64_t n, int64_t width)
{
  for (int64_t c = threadIdx.x; c < width; c += TD_BLOCK)
    {
      T total = to[c];

      for (int64_t k = 0; k < n; k++)
        total += weights[k] * rows[k * width + c];
      to[c] = total;
    }
}

template <typename T>
TD_DEVICE void
set_zero (T *to, int64_t n)
{
  for (int64_t c = threadIdx.x; c < n; c += TD_BLOCK)
    to[c] = 0;
}

template <typename T, typename Room>
TD_DEVICE void
grad_query (const TdAttentionParams &p, int64_t query, Room &slopes)
{
  const TdAttention &a = p.a;
  const int64_t b = query / a.n_q, i = query % a.n_q;
  T *gq = (T *)p.out + query * a.d;

  set_zero (gq, a.d);
  for (int64_t j0 = 0; j0 < a.n_k; j0 += TD_BLOCK)
    {
      T weight, slope;

      weight_and_slope (p, b, i, j0 + threadIdx.x, weight, slope);
      slopes[threadIdx.x] = slope;
      __syncthreads ();
      add_rows (gq, (const T *)p.k + (b * a.n_k + j0) * a.d, slopes,
                a.n_k - j0 < TD_BLOCK ? a.n_k - j0 : (int64_t)TD_BLOCK, a.d);
      __syncthreads ();
    }
}

template <typename T, typename Room>
TD_DEVICE void
grad_key (const TdAttentionParams &p, int64_t key, Room &weights, Room &slopes)
{
  const TdAttention &a = p.a;
  const int64_t b = key / a.n_k, j = key % a.n_k;
  T *gk = (T *)p.out2 + key * a.d, *gv = (T *)p.out3 + key * a.d_v;

  set_zero (gk, a.d);
  set_zero (gv, a.d_v);
  for (int64_t i0 = 0; i0 < a.n_q; i0 += TD_BLOCK)
    {
      const int64_t n = a.n_q - i0 < TD_BLOCK ? a.n_q - i0 : (int64_t)TD_BLOCK;
      T weight, slope;

      weight_and_slope (p, b, i0 + threadIdx.x, j, weight, slope);
      weights[threadIdx.x] = weight;
      slopes[threadIdx.x] = slope;
      __syncthreads ();
      add_rows (gk, (const T *)p.q + (b * a.n_q + i0) * a.d, slopes, n, a.d);
      add_rows (gv, (const T *)p.gy + (b * a.n_q + i0) * a.d_v, weights, n, a.d_v);
      __syncthreads ();
    }
}

#define PRODUCT(T, name)                                                                       \
  TD_KERNEL (td_gemm_##name, TdGemmParams)                                                     \
  {                                                                                            \
    TD_SHARED (T, as, DEPTH *(TILE + 1));                                                      \
    TD_SHARED (T, bs, DEPTH *(TILE + 1));                                                      \
                                                                                               \
    gemm<T> (a, as, bs);                                                                       \
  }                                                                                            \
  TD_KERNEL (td_attend_##name, TdAttentionParams)                                              \
  {                                                                                            \
    TD_SHARED (T, weights, TD_BLOCK);                                                          \
    TD_SHARED (T, room, TD_BLOCK);                                                             \
    TD_SHARED (double, sums, TD_BLOCK / TD_WARP);                                              \
                                                                                               \
    for (int64_t i = blockIdx.x; i < a.a.batch * a.a.n_q; i += gridDim.x)                      \
      attend<T> (a, i, weights, room, sums);                                                   \
  }                                                                                            \
  TD_KERNEL (td_attend_deltas_##name, TdAttentionParams)                                       \
  {                                                                                            \
    deltas<T> (a);                                                                             \
  }                                                                                            \
  TD_KERNEL (td_attend_grad_query_##name, TdAttentionParams)                                   \
  {                                                                                            \
    TD_SHARED (T, slopes, TD_BLOCK);                                                           \
                                                                                               \
    for (int64_t i = blockIdx.x; i < a.a.batch * a.a.n_q; i += gridDim.x)                      \
      grad_query<T> (a, i, slopes);                                                            \
  }                                                                                            \
  TD_KERNEL (td_attend_grad_key_##name, TdAttentionParams)                                     \
  {                                                                                            \
    TD_SHARED (T, weights, TD_BLOCK);                                                          \
    TD_SHARED (T, slopes, TD_BLOCK);                                                           \
                                                                                               \
    for (int64_t j = blockIdx.x; j < a.a.batch * a.a.n_k; j += gridDim.x)                      \
      grad_key<T> (a, j, weights, slopes);                                                     \
  }
PRODUCT (float, f32)
PRODUCT (double, f64)
