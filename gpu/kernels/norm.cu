/* Layer, group and root mean square normalisation, also of a sum that is made on the way; and
 * gradients, also added to another array.  Sums over rows are carried in double, the mean first
 * and then the squares around it.
 *
 * SPDX-License-Identifier: MIT */
#include "count.cuh"

/* `lanes` threads, a power of 2, for each row of m numbers. */
TD_DEVICE uint32_t
lane_of (const TdRowNormParams &a)
{
  return threadIdx.x & (uint32_t)(a.lanes - 1);
}

/* The first channel of a row. */
TD_DEVICE uint32_t
channel_of (const TdRowNormParams &a, int64_t row)
{
  return a.groups == 1 ? 0 : (uint32_t)row % (uint32_t)a.groups * (uint32_t)a.channels;
}

/* Which channel of the row place i belongs to; packs are of rows whose channels are numbers. */
template <int W>
TD_DEVICE uint32_t
channel_at (const TdRowNormParams &a, uint32_t i)
{
  return W > 1 ? i : divide (i, a.by_rest);
}

/* Call f (k, i) for the packs of W numbers of a row that are this lane's, the k-th of them from
 * place i on; k stays 0 where they are not kept. */
template <typename S, int W, bool KEEP, typename F>
TD_DEVICE void
each_pack (const TdRowNormParams &a, uint32_t m, F f)
{
  const uint32_t first = lane_of (a) * W, step = (uint32_t)a.lanes * W;

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

/* Two packs added up, as a kernel of its own would leave it. */
template <typename S, int W>
TD_DEVICE Pack<S, W>
sum_of_packs (const Pack<S, W> &x, const Pack<S, W> &y)
{
  typedef Number<S> N;
  Pack<S, W> z;

#pragma unroll
  for (int j = 0; j < W; j++)
    z.v[j] = N::store (N::load (x.v[j]) + N::load (y.v[j]));
  return z;
}

/* What is normalised, from place i on: x, or where SUM x and what is added. */
template <typename S, int W, bool SUM>
TD_DEVICE Pack<S, W>
first_pack (const TdRowNormParams &a, int64_t i)
{
  const Pack<S, W> x = pack_at<W, S> (a.x, i);

  return SUM ? sum_of_packs<S, W> (x, pack_at<W, S> (a.added, i)) : x;
}

/* The same, once it may lie in the place of x. */
template <typename S, int W, bool SUM>
TD_DEVICE Pack<S, W>
pack_again (const TdRowNormParams &a, int64_t i)
{
  return SUM && a.sum != nullptr ? pack_at<W, S> (a.sum, i) : first_pack<S, W, SUM> (a, i);
}

/* Leave the sum, if it is wanted. */
template <typename S, int W, bool SUM, typename C>
TD_DEVICE void
leave_sum (const TdRowNormParams &a, int64_t i, const Pack<S, W> &x, C &of_sum)
{
  if (!SUM || a.sum == nullptr)
    return;
  *(Pack<S, W> *)((S *)a.sum + i) = x;
#pragma unroll
  for (int j = 0; j < W; j++)
    of_sum.see (Number<S>::load (x.v[j]));
}

/* x and its like are stored as S, gamma and beta as V; moments are T.  W numbers are taken at
 * once; where that is more than one, they are as many channels. */
template <typename S, typename V, int W, bool KEEP, bool SUM, typename Room, typename C>
TD_DEVICE void
norm_row (const TdRowNormParams &a, int64_t row, Room &room, C &counter, C &of_sum)
{
  typedef Number<S> N;
  typedef Number<V> P;
  typedef typename N::T T;
  const uint32_t m = row < a.rows ? (uint32_t)a.m : 0;
  const int64_t at = row < a.rows ? row * a.m : 0;
  Pack<S, W> x[KEEP ? Held<S, W>::N / W : 1];
  T mean = 0, s;
  double sum = 0;
  uint32_t first;

  if (KEEP)
    each_pack<S, W, KEEP> (a, m, [&] (int k, uint32_t i) {
      x[k] = first_pack<S, W, SUM> (a, at + i);
      leave_sum<S, W, SUM> (a, at + i, x[k], of_sum);
    });
  if (a.centred)
    {
      each_pack<S, W, KEEP> (a, m, [&] (int k, uint32_t i) {
        if (!KEEP)
          {
            x[k] = first_pack<S, W, SUM> (a, at + i);
            leave_sum<S, W, SUM> (a, at + i, x[k], of_sum);
          }
#pragma unroll
        for (int j = 0; j < W; j++)
          sum += (double)N::load (x[k].v[j]);
      });
      mean = (T)(sum_of_group (sum, a.lanes, room) * a.over);
      sum = 0;
    }
  each_pack<S, W, KEEP> (a, m, [&] (int k, uint32_t i) {
    if (!KEEP && a.centred)
      x[k] = pack_again<S, W, SUM> (a, at + i);
    else if (!KEEP)
      {
        x[k] = first_pack<S, W, SUM> (a, at + i);
        leave_sum<S, W, SUM> (a, at + i, x[k], of_sum);
      }
#pragma unroll
    for (int j = 0; j < W; j++)
      {
        const double d = (double)(N::load (x[k].v[j]) - mean);

        sum = fma (d, d, sum);
      }
  });
  s = (T)(1 / sqrt (sum_of_group (sum, a.lanes, room) * a.over + a.eps));
  if (row < a.rows && lane_of (a) == 0)
    {
      if (a.centred)
        ((T *)a.mean)[row] = mean;
      ((T *)a.spread)[row] = s;
    }
  first = channel_of (a, row);
  each_pack<S, W, KEEP> (a, m, [&] (int k, uint32_t i) {
    const uint32_t c = first + channel_at<W> (a, i);
    const Pack<V, W> gamma = pack_at<W, V> (a.gamma, c);
    Pack<V, W> beta = gamma;
    Pack<S, W> y;

    if (!KEEP)
      x[k] = pack_again<S, W, SUM> (a, at + i);
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

/* Where SUM, what is added is added last. */
template <typename S, typename V, int W, bool KEEP, bool SUM, typename Room, typename C>
TD_DEVICE void
norm_row_grad (const TdRowNormParams &a, int64_t row, Room &room, C &counter)
{
  typedef Number<S> N;
  typedef Number<V> P;
  typedef typename N::T T;
  const bool valid = row < a.rows;
  const uint32_t m = valid ? (uint32_t)a.m : 0;
  const int64_t at = valid ? row * a.m : 0;
  const uint32_t first = channel_of (a, row);
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
    const Pack<V, W> gamma = pack_at<W, V> (a.gamma, first + channel_at<W> (a, i));

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
  p = (T)(sum_of_group (of_h, a.lanes, room) * a.over);
  q = (T)(sum_of_group (of_one, a.lanes, room) * a.over);
  q = a.centred ? q : (T)0;
  each_pack<S, W, KEEP> (a, m, [&] (int k, uint32_t i) {
    const Pack<V, W> gamma = pack_at<W, V> (a.gamma, first + channel_at<W> (a, i));
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
      }
    if (SUM)
      gx = sum_of_packs<S, W> (gx, pack_at<W, S> (a.added, at + i));
#pragma unroll
    for (int j = 0; j < W; j++)
      counter.see (N::load (gx.v[j]));
    *(Pack<S, W> *)((S *)a.y + at + i) = gx;
  });
}

/* --- gradients of gamma and beta ---
 *
 * parts[piece][2][channel]: blocks in y take a piece of the rows, then all pieces of a channel
 * are added up, in order.  Where channels lie side by side, threads of a block are `columns`
 * along them, W channels of each, and the rest along the rows; else a block takes a channel. */

/* What W elements at x and gy add to the gradients of their channels: of one channel, or of as
 * many. */
template <typename S, int W, bool ONE>
TD_DEVICE void
add_elements (const TdRowNormParams &a, int64_t row, int64_t at, double *ggamma, double *gbeta)
{
  typedef Number<S> N;
  typedef typename N::T T;
  const T mean = a.centred ? ((const T *)a.mean_in)[row] : (T)0;
  const T s = ((const T *)a.spread_in)[row];
  const Pack<S, W> x = pack_at<W, S> (a.x, at), gy = pack_at<W, S> (a.gy, at);

#pragma unroll
  for (int j = 0; j < W; j++)
    {
      const T g = N::load (gy.v[j]);

      ggamma[ONE ? 0 : j] += (double)(g * ((N::load (x.v[j]) - mean) * s));
      gbeta[ONE ? 0 : j] += (double)g;
    }
}

/* The sums over threads that are `columns` (at most a warp, or the block) apart, for the first
 * of them. */
template <typename Room>
TD_DEVICE void
sum_rows (double &p, double &q, int columns, Room &room)
{
  const int t = threadIdx.x, lane = t % TD_WARP;

  if (columns > TD_WARP)
    return;
  for (int k = TD_WARP / 2; k >= columns; k /= 2)
    {
      p += from_lane (p, k);
      q += from_lane (q, k);
    }
  if (lane < columns)
    {
      room[2 * t] = p;
      room[2 * t + 1] = q;
    }
  __syncthreads ();
  for (int k = 1; k < TD_BLOCK / TD_WARP && t < columns; k++)
    {
      p += room[2 * (k * TD_WARP + t)];
      q += room[2 * (k * TD_WARP + t) + 1];
    }
  __syncthreads ();
}

template <typename S, int W, typename Room>
TD_DEVICE void
sum_columns (const TdRowNormParams &a, int64_t begin, int64_t end, Room &room)
{
  const int64_t all = a.groups * a.channels;
  const int column = threadIdx.x % a.columns, row = threadIdx.x / a.columns;
  const int rows = TD_BLOCK / a.columns, width = a.columns * W;
  double *parts = a.parts + 2 * blockIdx.y * all;

  for (int64_t first = (int64_t)blockIdx.x * width; first < all;
       first += (int64_t)gridDim.x * width)
    {
      const int64_t c = first + column * W, group = c / a.channels;
      double ggamma[W], gbeta[W];

#pragma unroll
      for (int j = 0; j < W; j++)
        ggamma[j] = gbeta[j] = 0;
#pragma unroll 2
      for (int64_t i = begin + row; i < end && c < all; i += rows)
        add_elements<S, W, false> (a, i * a.groups + group, i * all + c, ggamma, gbeta);
#pragma unroll
      for (int j = 0; j < W; j++)
        {
          sum_rows (ggamma[j], gbeta[j], a.columns, room);
          if (row == 0 && c < all)
            {
              parts[c + j] = ggamma[j];
              parts[all + c + j] = gbeta[j];
            }
        }
    }
}

template <typename S, int W, typename Room>
TD_DEVICE void
sum_channel (const TdRowNormParams &a, int64_t begin, int64_t end, Room &room)
{
  const int64_t all = a.groups * a.channels;
  const uint32_t rest = a.by_rest.value, n = (uint32_t)((end - begin) * rest);
  double *parts = a.parts + 2 * blockIdx.y * all;

  for (int64_t c = blockIdx.x; c < all; c += gridDim.x)
    {
      double ggamma = 0, gbeta = 0;

      for (uint32_t e = threadIdx.x; e < n; e += TD_BLOCK)
        {
          const uint32_t of = divide (e, a.by_rest);
          const int64_t i = begin + of;

          add_elements<S, W, true> (a, i * a.groups + c / a.channels,
                                    ((i * all + c) * rest + (e - of * rest)) * W, &ggamma,
                                    &gbeta);
        }
      ggamma = sum_of_group (ggamma, TD_BLOCK, room);
      gbeta = sum_of_group (gbeta, TD_BLOCK, room);
      if (threadIdx.x == 0)
        {
          parts[c] = ggamma;
          parts[all + c] = gbeta;
        }
    }
}

template <typename S, typename Room>
TD_DEVICE void
sum_channels (const TdRowNormParams &a, Room &room)
{
  constexpr int W = Wide<S>::AT_ONCE;
  const int64_t n = a.rows / a.groups, begin = blockIdx.y * a.piece;
  const int64_t end = n - begin < a.piece ? n : begin + a.piece;

  if (a.rest == 1 && a.packs)
    sum_columns<S, W> (a, begin, end, room);
  else if (a.rest == 1)
    sum_columns<S, 1> (a, begin, end, room);
  else if (a.packs)
    sum_channel<S, W> (a, begin, end, room);
  else
    sum_channel<S, 1> (a, begin, end, room);
}

template <typename V, typename Room>
TD_DEVICE void
add_pieces (const TdRowNormParams &a, Room &room)
{
  typedef Number<V> P;
  const int64_t all = a.groups * a.channels;
  const int column = threadIdx.x % a.columns, row = threadIdx.x / a.columns;

  for (int64_t first = (int64_t)blockIdx.x * a.columns; first < all;
       first += (int64_t)gridDim.x * a.columns)
    {
      const int64_t c = first + column;
      double ggamma = 0, gbeta = 0;

      for (int k = row; k < a.n_pieces && c < all; k += TD_BLOCK / a.columns)
        {
          ggamma += a.parts[2 * k * all + c];
          gbeta += a.parts[(2 * k + 1) * all + c];
        }
      sum_rows (ggamma, gbeta, a.columns, room);
      if (row == 0 && c < all)
        ((V *)a.ggamma)[c] = P::store ((typename P::T)ggamma);
      if (row == 0 && c < all && a.gbeta != nullptr)
        ((V *)a.gbeta)[c] = P::store ((typename P::T)gbeta);
    }
}

/* --- gradients of rows, of gamma and of beta together ---
 *
 * Where rows are about as long as a block has threads, a block takes ROWS of them at a time and
 * each of its threads the same columns of all, so that these sums are its own; what is left is
 * parts[block][2][channel]. */

/* The sums of N numbers over all threads of the block, N a power of 2 up to a warp's lanes;
 * `room` is not written again before the next barrier but one, or has two halves. */
template <int N, typename Room>
TD_DEVICE void
sum_numbers (double (&v)[N], int half, Room &room)
{
  constexpr int WARPS_OF_BLOCK = TD_BLOCK / TD_WARP;
  const int lane = threadIdx.x % TD_WARP, at = half * WARPS_OF_BLOCK * N;
  double total = 0;

#pragma unroll
  for (int i = 0; i < N; i++)
    {
      v[i] = sum_of_lanes (v[i], TD_WARP);
      if (lane == 0)
        room[at + threadIdx.x / TD_WARP * N + i] = v[i];
    }
  __syncthreads ();
  for (int w = lane / N; w < WARPS_OF_BLOCK; w += TD_WARP / N)
    total += room[at + w * N + lane % N];
  for (int k = TD_WARP / 2; k >= N; k /= 2)
    total += from_lane (total, k);
#pragma unroll
  for (int i = 0; i < N; i++)
    v[i] = __shfl_sync (TD_ALL_LANES, total, i);
}

/* PACKS packs of W numbers are a thread's share of a row. */
template <typename S, typename V, int W, int PACKS, bool SUM, typename Room, typename C>
TD_DEVICE void
norm_rows_grad (const TdRowNormParams &a, Room &room, C &counter)
{
  typedef Number<S> N;
  typedef Number<V> P;
  typedef typename N::T T;
  constexpr int ROWS = 4 / PACKS;
  const int m = (int)a.m, first = threadIdx.x * W;
  Pack<V, W> gamma[PACKS];
  double ggamma[PACKS][W], gbeta[PACKS][W];
  int half = 0;

#pragma unroll
  for (int k = 0; k < PACKS; k++)
    {
      const int c = first + k * TD_BLOCK * W;

      gamma[k] = pack_at<W, V> (a.gamma, c < m ? c : 0);
#pragma unroll
      for (int j = 0; j < W; j++)
        ggamma[k][j] = gbeta[k][j] = 0;
    }
  for (int64_t row = (int64_t)blockIdx.x * ROWS; row < a.rows; row += (int64_t)gridDim.x * ROWS)
    {
      Pack<S, W> x[ROWS][PACKS], gy[ROWS][PACKS];
      T mean[ROWS], s[ROWS], of_h[ROWS] = {}, of_one[ROWS] = {};
      double sums[2 * ROWS];

      /* Rows and columns that are not there have no slope. */
#pragma unroll
      for (int r = 0; r < ROWS; r++)
        {
          const bool there = row + r < a.rows;

          mean[r] = there && a.centred ? ((const T *)a.mean_in)[row + r] : (T)0;
          s[r] = there ? ((const T *)a.spread_in)[row + r] : (T)0;
#pragma unroll
          for (int k = 0; k < PACKS; k++)
            {
              const int c = first + k * TD_BLOCK * W;

              if (there && c < m)
                {
                  x[r][k] = pack_at<W, S> (a.x, (row + r) * m + c);
                  gy[r][k] = pack_at<W, S> (a.gy, (row + r) * m + c);
                }
              else
                {
#pragma unroll
                  for (int j = 0; j < W; j++)
                    x[r][k].v[j] = gy[r][k].v[j] = N::store ((T)0);
                }
            }
        }
        /* A thread's few numbers of a row, and of a column, are added up as they are computed;
         * what comes of them is carried in double. */
#pragma unroll
      for (int k = 0; k < PACKS; k++)
#pragma unroll
        for (int j = 0; j < W; j++)
          {
            T of_gamma = 0, of_beta = 0;

#pragma unroll
            for (int r = 0; r < ROWS; r++)
              {
                const T slope = N::load (gy[r][k].v[j]), g = slope * P::load (gamma[k].v[j]);
                const T h = (N::load (x[r][k].v[j]) - mean[r]) * s[r];

                of_h[r] += g * h;
                of_one[r] += g;
                of_gamma += slope * h;
                of_beta += slope;
              }
            ggamma[k][j] += (double)of_gamma;
            gbeta[k][j] += (double)of_beta;
          }
#pragma unroll
      for (int r = 0; r < ROWS; r++)
        {
          sums[2 * r] = (double)of_h[r];
          sums[2 * r + 1] = (double)of_one[r];
        }
      sum_numbers<2 * ROWS> (sums, half, room);
      half = 1 - half;
#pragma unroll
      for (int r = 0; r < ROWS; r++)
        {
          const T p = (T)(sums[2 * r] * a.over),
                  q = a.centred ? (T)(sums[2 * r + 1] * a.over) : (T)0;

#pragma unroll
          for (int k = 0; k < PACKS; k++)
            {
              const int c = first + k * TD_BLOCK * W;
              const int64_t at = (row + r) * m + c;
              Pack<S, W> gx;

              if (row + r >= a.rows || c >= m)
                continue;
#pragma unroll
              for (int j = 0; j < W; j++)
                {
                  const T g = N::load (gy[r][k].v[j]) * P::load (gamma[k].v[j]);
                  const T h = (N::load (x[r][k].v[j]) - mean[r]) * s[r];

                  gx.v[j] = N::store (s[r] * (g - q - h * p));
                }
              if (SUM)
                gx = sum_of_packs<S, W> (gx, pack_at<W, S> (a.added, at));
#pragma unroll
              for (int j = 0; j < W; j++)
                counter.see (N::load (gx.v[j]));
              *(Pack<S, W> *)((S *)a.y + at) = gx;
            }
        }
    }
#pragma unroll
  for (int k = 0; k < PACKS; k++)
#pragma unroll
    for (int j = 0; j < W; j++)
      {
        const int c = first + k * TD_BLOCK * W + j;
        double *parts = a.parts + 2 * (int64_t)blockIdx.x * m;

        if (c < m)
          {
            parts[c] = ggamma[k][j];
            parts[m + c] = gbeta[k][j];
          }
      }
}

/* A group of lanes for each row; how rows are read is the same for all of them. */
#define EACH_ROW(call)                                                                         \
  for (int64_t first = (int64_t)blockIdx.x * groups; first < a.rows;                           \
       first += (int64_t)gridDim.x * groups)                                                   \
  call

/* By how rows are read. */
#define EACH_ROW_AS(S, V, SUM, row, ...)                                                       \
  if (a.packs && a.m <= (int64_t)a.lanes * Held<S, Wide<S>::AT_ONCE>::N)                       \
    EACH_ROW ((row<S, V, Wide<S>::AT_ONCE, true, SUM> (a, first + threadIdx.x / a.lanes, room, \
                                                       __VA_ARGS__)));                         \
  else if (a.packs)                                                                            \
    EACH_ROW ((row<S, V, Wide<S>::AT_ONCE, false, SUM> (a, first + threadIdx.x / a.lanes,      \
                                                        room, __VA_ARGS__)));                  \
  else                                                                                         \
    EACH_ROW ((row<S, V, 1, false, SUM> (a, first + threadIdx.x / a.lanes, room, __VA_ARGS__)));

/* What is normalised is x; or a sum, which is counted too where it is left. */
#define ROW_NORM(S, V, name)                                                                   \
  TD_STATS_KERNEL (row_norm_##name, TdRowNormParams)                                           \
  {                                                                                            \
    TD_SHARED (double, room, TD_BLOCK / TD_WARP);                                              \
    TD_COUNTER (Number<S>::T);                                                                 \
    const int groups = TD_BLOCK / a.lanes;                                                     \
                                                                                               \
    EACH_ROW_AS (S, V, false, norm_row, counter, counter)                                      \
    TD_COUNTER_LEAVE (a.counts);                                                               \
  }                                                                                            \
  TD_STATS_KERNEL (norm_of_sum_##name, TdRowNormParams)                                        \
  {                                                                                            \
    TD_SHARED (double, room, TD_BLOCK / TD_WARP);                                              \
    TD_COUNTER (Number<S>::T);                                                                 \
    TD_COUNTER_AS (of_sum, Number<S>::T);                                                      \
    const int groups = TD_BLOCK / a.lanes;                                                     \
                                                                                               \
    EACH_ROW_AS (S, V, true, norm_row, counter, of_sum)                                        \
    TD_COUNTER_LEAVE (a.counts);                                                               \
    TD_COUNTER_LEAVE_AS (of_sum, a.sum_counts);                                                \
  }                                                                                            \
  TD_STATS_KERNEL (row_norm_grad_##name, TdRowNormParams)                                      \
  {                                                                                            \
    TD_SHARED (double, room, TD_BLOCK / TD_WARP);                                              \
    TD_COUNTER (Number<S>::T);                                                                 \
    const int groups = TD_BLOCK / a.lanes;                                                     \
                                                                                               \
    EACH_ROW_AS (S, V, false, norm_row_grad, counter)                                          \
    TD_COUNTER_LEAVE (a.counts);                                                               \
  }                                                                                            \
  TD_STATS_KERNEL (norm_grad_to_sum_##name, TdRowNormParams)                                   \
  {                                                                                            \
    TD_SHARED (double, room, TD_BLOCK / TD_WARP);                                              \
    TD_COUNTER (Number<S>::T);                                                                 \
    const int groups = TD_BLOCK / a.lanes;                                                     \
                                                                                               \
    EACH_ROW_AS (S, V, true, norm_row_grad, counter)                                           \
    TD_COUNTER_LEAVE (a.counts);                                                               \
  }
#define NORM_ROWS_GRAD(S, V, name, SUM)                                                        \
  TD_STATS_KERNEL (name, TdRowNormParams)                                                      \
  {                                                                                            \
    TD_SHARED (double, room, 2 * 8 * TD_BLOCK / TD_WARP);                                      \
    TD_COUNTER (Number<S>::T);                                                                 \
    constexpr int W = sizeof (S) == 8 ? 2 : (int)TD_PACK;                                      \
                                                                                               \
    if (a.m <= TD_BLOCK * W)                                                                   \
      norm_rows_grad<S, V, W, 1, SUM> (a, room, counter);                                      \
    else                                                                                       \
      norm_rows_grad<S, V, W, 2, SUM> (a, room, counter);                                      \
    TD_COUNTER_LEAVE (a.counts);                                                               \
  }
/* Gradients of all at once. */
#define ROW_NORM_WHOLE(S, V, name)                                                             \
  NORM_ROWS_GRAD (S, V, row_norm_rows_grad_##name, false)                                      \
  NORM_ROWS_GRAD (S, V, norm_rows_grad_to_sum_##name, true)
/* What does not count. */
#define ROW_NORM_SUMS(S, V, name)                                                              \
  TD_KERNEL (td_row_norm_sums_##name, TdRowNormParams)                                         \
  {                                                                                            \
    TD_SHARED (double, room, 2 * TD_BLOCK);                                                    \
                                                                                               \
    sum_channels<S> (a, room);                                                                 \
  }                                                                                            \
  TD_KERNEL (td_row_norm_end_##name, TdRowNormParams)                                          \
  {                                                                                            \
    TD_SHARED (double, room, 2 * TD_BLOCK);                                                    \
                                                                                               \
    add_pieces<V> (a, room);                                                                   \
  }
ROW_NORM (float, float, f32)
ROW_NORM (double, double, f64)
ROW_NORM (td_f16, td_f16, f16)
ROW_NORM (td_bf16, td_bf16, bf16)
ROW_NORM (td_f16, float, f16_f32)
ROW_NORM (td_bf16, float, bf16_f32)
ROW_NORM_WHOLE (float, float, f32)
ROW_NORM_WHOLE (double, double, f64)
ROW_NORM_WHOLE (td_f16, td_f16, f16)
ROW_NORM_WHOLE (td_bf16, td_bf16, bf16)
ROW_NORM_WHOLE (td_f16, float, f16_f32)
ROW_NORM_WHOLE (td_bf16, float, bf16_f32)
#if !defined(TD_KERNELS_COUNT)
ROW_NORM_SUMS (float, float, f32)
ROW_NORM_SUMS (double, double, f64)
ROW_NORM_SUMS (td_f16, td_f16, f16)
ROW_NORM_SUMS (td_bf16, td_bf16, bf16)
ROW_NORM_SUMS (td_f16, float, f16_f32)
ROW_NORM_SUMS (td_bf16, float, bf16_f32)
#endif
