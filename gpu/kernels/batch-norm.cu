/* Batch normalisation.  Sums are carried in double, those of numbers and squares together,
 * about the channel's first number; numbers stored as S are computed in float (double), and
 * rounded once.  All types add up in one order.
 *
 * SPDX-License-Identifier: MIT */
#include "count.cuh"

#include "batch-norm.h"

/* A channel's mean and spread are known: what is kept of them. */
template <typename T>
TD_DEVICE void
keep_moments (const TdBatchNormParams &a, int64_t ch, double mean, double var, double inv_std)
{
  const double m = (double)(a.n * a.rest), unbiased = var * m / (m > 2 ? m - 1 : 1);
  const int dtype = a.moments_dtype;

  ((T *)a.mean_out)[ch] = (T)mean;
  ((T *)a.spread_out)[ch] = (T)inv_std;
  if (a.running_mean == nullptr)
    return;
  put_number (a.running_mean, dtype, ch,
              (T)(a.decay * (double)number_at (a.running_mean, dtype, ch, (T)0)
                  + (1 - a.decay) * mean));
  put_number (a.running_var, dtype, ch,
              (T)(a.decay * (double)number_at (a.running_var, dtype, ch, (T)0)
                  + (1 - a.decay) * unbiased));
}

/* Number `first` is a channel's: what its sums are about.  The mean is no further from it than
 * the root of m variances, so that the variance keeps its digits whichever it is. */
template <typename S>
TD_DEVICE double
shift_of (const TdBatchNormParams &a, int64_t first)
{
  const double v = a.n * a.rest > 0 ? (double)Number<S>::load (((const S *)a.x)[first]) : 0.0;

  return v - v == 0 ? v : 0;
}

/* What the sums of the numbers less the shift, and of their squares, come to. */
struct Moments
{
  double mean, var;

  TD_MEMBER
  Moments (const TdBatchNormParams &a, double shift, double sum, double squares)
  {
    const double m = (double)(a.n * a.rest), d = sum / m;

    mean = shift + d;
    var = squares / m - d * d;
    var = var < 0 ? 0 : var; /* rounded so; NaN stays */
  }
};

template <typename T>
TD_DEVICE void
keep_gradients (const TdBatchNormParams &a, int64_t ch, double ggamma, double gbeta)
{
  put_number (a.mean_out, a.gamma_dtype, ch, (T)ggamma);
  put_number (a.spread_out, a.gamma_dtype, ch, (T)gbeta);
}

/* What the numbers of one channel become. */
template <typename T> struct Channel
{
  T mean, spread, gamma, beta;

  TD_MEMBER void
  open (const TdBatchNormParams &a, int64_t ch, double m, double inv_std)
  {
    mean = (T)m;
    spread = (T)inv_std;
    gamma = number_at (a.gamma, a.gamma_dtype, ch, (T)0);
    beta = number_at (a.beta, a.gamma_dtype, ch, (T)0);
  }

  TD_MEMBER T
  of (T x) const
  {
    return (x - mean) * spread * gamma + beta;
  }
};

/* And their gradients: p and q are the means of gy h and gy. */
template <typename T> struct ChannelGrad
{
  T mean, spread, scale, p, q;

  TD_MEMBER void
  open (const TdBatchNormParams &a, int64_t ch)
  {
    mean = number_at (a.mean, a.moments_dtype, ch, (T)0);
    spread = number_at (a.spread, a.moments_dtype, ch, (T)0);
    scale = number_at (a.gamma, a.gamma_dtype, ch, (T)0) * spread;
  }

  TD_MEMBER T
  of (T x, T gy) const
  {
    return scale * (gy - (x - mean) * spread * p - q);
  }
};

/* --- (n, c, rest): a block for each channel, or several ---
 *
 * Blocks in x are channels.  Where these are few, blocks in y take pieces of a channel: sums of
 * pieces are added up below, in order, and pieces are scaled once the moments are there. */

/* The packs of a channel that are a block's. */
struct Piece
{
  uint32_t begin, end;
};

TD_DEVICE Piece
whole_channel (const TdBatchNormParams &a)
{
  return { 0, (uint32_t)a.n * a.by_rest.value };
}

TD_DEVICE Piece
piece_of_block (const TdBatchNormParams &a)
{
  const int64_t all = whole_channel (a).end, begin = blockIdx.y * a.piece;

  return { (uint32_t)begin, (uint32_t)(all - begin < a.piece ? all : begin + a.piece) };
}

/* V numbers, and V numbers with their gradients. */
template <typename S, int V> struct Numbers
{
  enum
  {
    WIDTH = V,
    AHEAD = 4 /* in flight */
  };
  Pack<S, V> x;

  TD_MEMBER void
  load (const TdBatchNormParams &a, int64_t at)
  {
    x = *(const Pack<S, V> *)((const S *)a.x + at);
  }
};

template <typename S, int V> struct WithGrads
{
  enum
  {
    WIDTH = V,
    AHEAD = 2
  };
  Pack<S, V> x, gy;

  TD_MEMBER void
  load (const TdBatchNormParams &a, int64_t at)
  {
    x = *(const Pack<S, V> *)((const S *)a.x + at);
    gy = *(const Pack<S, V> *)((const S *)a.gy + at);
  }
};

/* Call f with the place of each lot of numbers of channel ch that is this thread's, and the
 * lot: in order, some of them loaded before. */
template <typename L, typename F>
TD_DEVICE void
each_place (const TdBatchNormParams &a, int64_t ch, Piece piece, F f)
{
  const uint32_t rest = a.by_rest.value;

  for (uint32_t e = piece.begin + threadIdx.x; e < piece.end; e += L::AHEAD * TD_BLOCK)
    {
      L lot[L::AHEAD];
      int64_t at[L::AHEAD];

#pragma unroll
      for (int u = 0; u < L::AHEAD; u++)
        {
          const uint32_t next = e + u * TD_BLOCK, k = next < piece.end ? next : e;
          const uint32_t i = divide (k, a.by_rest);

          at[u] = ((i * a.c + ch) * rest + (k - i * rest)) * L::WIDTH;
          lot[u].load (a, at[u]); /* beyond the end one of its own again */
        }
#pragma unroll
      for (int u = 0; u < L::AHEAD; u++)
        if (e + u * TD_BLOCK < piece.end)
          f (at[u], lot[u]);
    }
}

template <typename S, int V, typename C>
TD_DEVICE void
scale_channel (const TdBatchNormParams &a, int64_t ch, Piece piece, double mean, double inv_std,
               C &counter)
{
  typedef Number<S> N;
  Channel<typename N::T> c;

  c.open (a, ch, mean, inv_std);
  each_place<Numbers<S, V> > (a, ch, piece, [&] (int64_t at, Numbers<S, V> &of) {
#pragma unroll
    for (int k = 0; k < V; k++)
      {
        of.x.v[k] = N::store (c.of (N::load (of.x.v[k])));
        counter.see (N::load (of.x.v[k]));
      }
    *(Pack<S, V> *)((S *)a.y + at) = of.x;
  });
}

template <typename S, int V, typename C>
TD_DEVICE void
scale_channel_grad (const TdBatchNormParams &a, int64_t ch, Piece piece, double p, double q,
                    C &counter)
{
  typedef Number<S> N;
  ChannelGrad<typename N::T> c;

  c.open (a, ch);
  c.p = (typename N::T)p;
  c.q = (typename N::T)q;
  each_place<WithGrads<S, V> > (a, ch, piece, [&] (int64_t at, WithGrads<S, V> &of) {
#pragma unroll
    for (int k = 0; k < V; k++)
      {
        of.x.v[k] = N::store (c.of (N::load (of.x.v[k]), N::load (of.gy.v[k])));
        counter.see (N::load (of.x.v[k]));
      }
    *(Pack<S, V> *)((S *)a.y + at) = of.x;
  });
}

/* This thread's share of a channel's sums: of the numbers less the shift, and of squares. */
template <typename S, int V>
TD_DEVICE void
sums_of_channel (const TdBatchNormParams &a, int64_t ch, Piece piece, double shift, double &sum,
                 double &squares)
{
  typedef Number<S> N;

  each_place<Numbers<S, V> > (a, ch, piece, [&] (int64_t, const Numbers<S, V> &of) {
#pragma unroll
    for (int k = 0; k < V; k++)
      {
        const double d = (double)N::load (of.x.v[k]) - shift;

        sum += d;
        squares += d * d;
      }
  });
}

/* The same of its gradients. */
template <typename S, int V>
TD_DEVICE void
sum_of_grads (const TdBatchNormParams &a, int64_t ch, Piece piece, double &ggamma,
              double &gbeta)
{
  typedef Number<S> N;
  ChannelGrad<typename N::T> c;

  c.open (a, ch);
  each_place<WithGrads<S, V> > (a, ch, piece, [&] (int64_t, const WithGrads<S, V> &of) {
#pragma unroll
    for (int k = 0; k < V; k++)
      {
        const typename N::T g = N::load (of.gy.v[k]);

        gbeta += (double)g;
        ggamma += (double)g * (double)((N::load (of.x.v[k]) - c.mean) * c.spread);
      }
  });
}

template <typename S, int V, typename Room, typename C>
TD_DEVICE void
train_channel (const TdBatchNormParams &a, int64_t ch, Room &room, C &counter)
{
  const Piece all = whole_channel (a);
  const double shift = shift_of<S> (a, ch * a.rest);
  double sum = 0, squares = 0;

  sums_of_channel<S, V> (a, ch, all, shift, sum, squares);
  sum = sum_of_group (sum, TD_BLOCK, room);
  squares = sum_of_group (squares, TD_BLOCK, room);
  const Moments of (a, shift, sum, squares);
  const double inv_std = 1 / sqrt (of.var + a.eps);

  if (threadIdx.x == 0)
    keep_moments<typename Number<S>::T> (a, ch, of.mean, of.var, inv_std);
  scale_channel<S, V> (a, ch, all, of.mean, inv_std, counter);
}

template <typename S, int V, typename Room, typename C>
TD_DEVICE void
grad_channel (const TdBatchNormParams &a, int64_t ch, Room &room, C &counter)
{
  const Piece all = whole_channel (a);
  const double m = (double)(a.n * a.rest);
  double ggamma = 0, gbeta = 0;

  sum_of_grads<S, V> (a, ch, all, ggamma, gbeta);
  ggamma = sum_of_group (ggamma, TD_BLOCK, room);
  gbeta = sum_of_group (gbeta, TD_BLOCK, room);
  if (threadIdx.x == 0)
    keep_gradients<typename Number<S>::T> (a, ch, ggamma, gbeta);
  scale_channel_grad<S, V> (a, ch, all, ggamma / m, gbeta / m, counter);
}

template <typename S, int V, typename Room>
TD_DEVICE void
sum_piece (const TdBatchNormParams &a, int64_t ch, Room &room)
{
  double *parts = a.parts + 2 * (int64_t)blockIdx.y * a.c, p = 0, q = 0;
  const Piece piece = piece_of_block (a);

  if (a.moment == TD_MOMENT_GRAD)
    sum_of_grads<S, V> (a, ch, piece, p, q);
  else
    {
      const double shift = shift_of<S> (a, ch * a.rest);

      sums_of_channel<S, V> (a, ch, piece, shift, p, q);
      if (blockIdx.y == 0 && threadIdx.x == 0)
        a.moments[ch] = shift;
    }
  p = sum_of_group (p, TD_BLOCK, room);
  q = sum_of_group (q, TD_BLOCK, room);
  if (threadIdx.x == 0)
    {
      parts[ch] = p;
      parts[a.c + ch] = q;
    }
}

/* --- (places, c): channels lie side by side ---
 *
 * Threads of a block are `columns` along the channels, V of each, and the rest along the
 * places. Blocks in y take a piece of the places; then all pieces of a channel are added up, in
 * order. */

enum
{
  AT_ONCE = 4,      /* packs of a thread in flight */
  END_CHANNELS = 8, /* of a block that adds up pieces */
  END_ROWS = TD_BLOCK / END_CHANNELS
};

/* Add up the places [at, end) that are this thread's, rows apart, for the channels from ch on.
 */
template <typename S, int V, int MOMENT>
TD_DEVICE void
add_places (const TdBatchNormParams &a, int64_t ch, int64_t at, int64_t end, int rows,
            double *p, double *q)
{
  typedef Number<S> N;
  typedef typename N::T T;
  double shift[V];
  T mean[V], spread[V];

#pragma unroll
  for (int k = 0; k < V; k++)
    if (MOMENT == TD_MOMENT_GRAD)
      {
        mean[k] = number_at (a.mean, a.moments_dtype, ch + k, (T)0);
        spread[k] = number_at (a.spread, a.moments_dtype, ch + k, (T)0);
      }
    else
      {
        shift[k] = shift_of<S> (a, ch + k);
        if (at == 0) /* who has the first place */
          a.moments[ch + k] = shift[k];
      }
#pragma unroll(MOMENT == TD_MOMENT_GRAD ? AT_ONCE / 2 : AT_ONCE)
  for (; at < end; at += rows)
    {
      const Pack<S, V> x = *(const Pack<S, V> *)((const S *)a.x + at * a.c + ch);
      Pack<S, V> gy;

      if (MOMENT == TD_MOMENT_GRAD)
        gy = *(const Pack<S, V> *)((const S *)a.gy + at * a.c + ch);
#pragma unroll
      for (int k = 0; k < V; k++)
        if (MOMENT == TD_MOMENT_GRAD)
          {
            const T g = N::load (gy.v[k]);

            p[k] += (double)g * (double)((N::load (x.v[k]) - mean[k]) * spread[k]);
            q[k] += (double)g;
          }
        else
          {
            const double d = (double)N::load (x.v[k]) - shift[k];

            p[k] += d;
            q[k] += d * d;
          }
    }
}

template <typename S, int V, typename Room>
TD_DEVICE void
sum_places (const TdBatchNormParams &a, Room &room)
{
  const int64_t places = a.n * a.rest, begin = blockIdx.y * a.piece;
  const int64_t end = places - begin < a.piece ? places : begin + a.piece;
  const int t = (int)threadIdx.x, column = t % a.columns, row = t / a.columns;
  const int rows = TD_BLOCK / a.columns, width = a.columns * V;
  double *parts = a.parts + 2 * (int64_t)blockIdx.y * a.c;

  for (int64_t first = (int64_t)blockIdx.x * width; first < a.c;
       first += (int64_t)gridDim.x * width)
    {
      const int64_t ch = first + column * V;
      const int which = t / a.columns;
      double p[V], q[V], sum = 0;

#pragma unroll
      for (int k = 0; k < V; k++)
        p[k] = q[k] = 0;
      if (ch < a.c && a.moment == TD_MOMENT_GRAD)
        add_places<S, V, TD_MOMENT_GRAD> (a, ch, begin + row, end, rows, p, q);
      else if (ch < a.c)
        add_places<S, V, TD_MOMENT_TRAIN> (a, ch, begin + row, end, rows, p, q);
#pragma unroll
      for (int k = 0; k < V; k++)
        {
          room[2 * k * TD_BLOCK + t] = p[k];
          room[(2 * k + 1) * TD_BLOCK + t] = q[k];
        }
      __syncthreads ();
      /* A thread for each sum: 2 V of them at each column. */
      if (which < 2 * V && first + column * V < a.c)
        {
          for (int k = 0; k < rows; k++)
            sum += room[which * TD_BLOCK + k * a.columns + column];
          parts[which % 2 * a.c + first + column * V + which / 2] = sum;
        }
      __syncthreads ();
    }
}

/* What a channel's sums are for. */
template <typename T>
TD_DEVICE void
end_of_sums (const TdBatchNormParams &a, int64_t ch, double p, double q)
{
  const double m = (double)(a.n * a.rest);

  if (a.moment == TD_MOMENT_GRAD)
    {
      keep_gradients<T> (a, ch, p, q);
      a.moments[ch] = p / m;
      a.moments[a.c + ch] = q / m;
    }
  else
    {
      const Moments of (a, a.moments[ch], p, q);

      a.moments[ch] = of.mean;
      a.moments[a.c + ch] = 1 / sqrt (of.var + a.eps);
      keep_moments<T> (a, ch, of.mean, of.var, a.moments[a.c + ch]);
    }
}

template <typename T, typename Room>
TD_DEVICE void
add_pieces (const TdBatchNormParams &a, Room &room)
{
  const int column = threadIdx.x % END_CHANNELS, row = threadIdx.x / END_CHANNELS;

  for (int64_t first = (int64_t)blockIdx.x * END_CHANNELS; first < a.c;
       first += (int64_t)gridDim.x * END_CHANNELS)
    {
      const int64_t ch = first + column;
      double p = 0, q = 0;

#pragma unroll(AT_ONCE)
      for (int k = row; k < a.n_pieces; k += END_ROWS)
        {
          p += ch < a.c ? a.parts[2 * k * a.c + ch] : 0;
          q += ch < a.c ? a.parts[(2 * k + 1) * a.c + ch] : 0;
        }
      room[threadIdx.x] = p;
      room[TD_BLOCK + threadIdx.x] = q;
      __syncthreads ();
      if (row == 0 && ch < a.c)
        {
          for (int k = 1; k < END_ROWS; k++)
            {
              p += room[k * END_CHANNELS + column];
              q += room[TD_BLOCK + k * END_CHANNELS + column];
            }
          end_of_sums<T> (a, ch, p, q);
        }
      __syncthreads ();
    }
}

/* The numbers, once the moments are there: mean and 1 / deviation, of a gradient p and q. */
template <typename S, int V, bool GRAD, typename C>
TD_DEVICE void
scale_places (const TdBatchNormParams &a, C &counter)
{
  typedef Number<S> N;
  typedef typename N::T T;
  constexpr int UNROLL = GRAD || V == 1 ? AT_ONCE / 2 : AT_ONCE;
  const int64_t places = a.n * a.rest;
  const int column = threadIdx.x % a.columns, rows = TD_BLOCK / a.columns;
  const int64_t step = (int64_t)gridDim.y * rows, width = a.columns * V;

  for (int64_t ch = blockIdx.x * width + column * V; ch < a.c; ch += gridDim.x * width)
    {
      ChannelGrad<T> grad[V];
      Channel<T> c[V];

#pragma unroll
      for (int k = 0; k < V; k++)
        if (GRAD)
          {
            grad[k].open (a, ch + k);
            grad[k].p = (T)a.moments[ch + k];
            grad[k].q = (T)a.moments[a.c + ch + k];
          }
        else
          c[k].open (a, ch + k, a.moments[ch + k], a.moments[a.c + ch + k]);
      for (int64_t i = (int64_t)blockIdx.y * rows + threadIdx.x / a.columns; i < places;
           i += UNROLL * step)
        {
          Pack<S, V> x[UNROLL], gy[UNROLL];

#pragma unroll
          for (int u = 0; u < UNROLL; u++)
            if (i + u * step < places)
              {
                const int64_t at = (i + u * step) * a.c + ch;

                x[u] = *(const Pack<S, V> *)((const S *)a.x + at);
                if (GRAD)
                  gy[u] = *(const Pack<S, V> *)((const S *)a.gy + at);
              }
#pragma unroll
          for (int u = 0; u < UNROLL; u++)
            if (i + u * step < places)
              {
#pragma unroll
                for (int k = 0; k < V; k++)
                  {
                    x[u].v[k] = N::store (
                        GRAD ? grad[k].of (N::load (x[u].v[k]), N::load (gy[u].v[k]))
                             : c[k].of (N::load (x[u].v[k])));
                    counter.see (N::load (x[u].v[k]));
                  }
                *(Pack<S, V> *)((S *)a.y + (i + u * step) * a.c + ch) = x[u];
              }
        }
    }
}

#if defined(TD_KERNELS_COUNT)
/* What the blocks of this row of the grid leave of what they count. */
TD_DEVICE TdCudaStats *
counts_of_row (const TdBatchNormWithStats &a)
{
  return a.counts != nullptr ? a.counts + (int64_t)blockIdx.y * gridDim.x : nullptr;
}
#endif

/* By packs where the arrays allow it. */
#define PACKED(S, call, a, ...)                                                                \
  do                                                                                           \
    {                                                                                          \
      if ((a).packs)                                                                           \
        call<S, Packed<S>::V> (a, __VA_ARGS__);                                                \
      else                                                                                     \
        call<S, 1> (a, __VA_ARGS__);                                                           \
    }                                                                                          \
  while (0)

/* Kernels that write an array of x's size: each channel of the block's, or all that is its own.
 */
#define WRITER(S, kernel, ...)                                                                 \
  TD_STATS_KERNEL (kernel, TdBatchNormWithStats)                                               \
  {                                                                                            \
    TD_COUNTER (Number<S>::T);                                                                 \
                                                                                               \
    __VA_ARGS__                                                                                \
    TD_COUNTER_LEAVE (counts_of_row (a));                                                      \
  }
#define ROOM TD_SHARED (double, room, TD_BLOCK / TD_WARP);
#define EACH_CHANNEL for (int64_t ch = blockIdx.x; ch < a.p.c; ch += gridDim.x)

#define WRITERS(S, name)                                                                       \
  WRITER (S, batch_norm_train_##name,                                                          \
          ROOM EACH_CHANNEL PACKED (S, train_channel, a.p, ch, room, counter);)                \
  WRITER (S, batch_norm_grad_##name,                                                           \
          ROOM EACH_CHANNEL PACKED (S, grad_channel, a.p, ch, room, counter);)                 \
  WRITER (S, batch_norm_scale_##name,                                                          \
          EACH_CHANNEL PACKED (S, scale_channel, a.p, ch, piece_of_block (a.p),                \
                               a.p.moments[ch], a.p.moments[a.p.c + ch], counter);)            \
  WRITER (S, batch_norm_scale_grad_##name,                                                     \
          EACH_CHANNEL PACKED (S, scale_channel_grad, a.p, ch, piece_of_block (a.p),           \
                               a.p.moments[ch], a.p.moments[a.p.c + ch], counter);)            \
  WRITER (                                                                                     \
      S, batch_norm_fixed_##name, EACH_CHANNEL {                                               \
        typedef Number<S>::T T;                                                                \
        const T mean = number_at (a.p.mean, a.p.moments_dtype, ch, (T)0);                      \
        const T var = number_at (a.p.spread, a.p.moments_dtype, ch, (T)0);                     \
                                                                                               \
        PACKED (S, scale_channel, a.p, ch, piece_of_block (a.p), (double)mean,                 \
                1 / sqrt ((double)var + a.p.eps), counter);                                    \
      })                                                                                       \
  WRITER (S, batch_norm_last_scale_##name,                                                     \
          if (a.p.packs) scale_places<S, Packed<S>::V, false> (a.p, counter);                  \
          else scale_places<S, 1, false> (a.p, counter);)                                      \
  WRITER (S, batch_norm_last_scale_grad_##name,                                                \
          if (a.p.packs) scale_places<S, Packed<S>::V, true> (a.p, counter);                   \
          else scale_places<S, 1, true> (a.p, counter);)
WRITERS (float, f32)
WRITERS (double, f64)
WRITERS (td_f16, f16)
WRITERS (td_bf16, bf16)

#if !defined(TD_KERNELS_COUNT)
#define SUMS(S, name)                                                                          \
  TD_KERNEL (td_batch_norm_sum_##name, TdBatchNormParams)                                      \
  {                                                                                            \
    TD_SHARED (double, room, TD_BLOCK / TD_WARP);                                              \
                                                                                               \
    for (int64_t ch = blockIdx.x; ch < a.c; ch += gridDim.x)                                   \
      PACKED (S, sum_piece, a, ch, room);                                                      \
  }                                                                                            \
  TD_KERNEL (td_batch_norm_last_sum_##name, TdBatchNormParams)                                 \
  {                                                                                            \
    TD_SHARED (double, room, 2 * Packed<S>::V * TD_BLOCK);                                     \
                                                                                               \
    PACKED (S, sum_places, a, room);                                                           \
  }
SUMS (float, f32)
SUMS (double, f64)
SUMS (td_f16, f16)
SUMS (td_bf16, bf16)

/* What knows the vectors only. */
#define MOMENTS(T, name)                                                                       \
  TD_KERNEL (td_batch_norm_end_##name, TdBatchNormParams)                                      \
  {                                                                                            \
    TD_SHARED (double, room, 2 * TD_BLOCK);                                                    \
                                                                                               \
    add_pieces<T> (a, room);                                                                   \
  }                                                                                            \
  TD_KERNEL (td_batch_norm_last_fixed_##name, TdBatchNormParams)                               \
  {                                                                                            \
    for (int64_t ch = thread_index (); ch < a.c; ch += n_threads ())                           \
      {                                                                                        \
        const T mean = number_at (a.mean, a.moments_dtype, ch, (T)0);                          \
        const T var = number_at (a.spread, a.moments_dtype, ch, (T)0);                         \
                                                                                               \
        a.moments[ch] = (double)mean;                                                          \
        a.moments[a.c + ch] = 1 / sqrt ((double)var + a.eps);                                  \
      }                                                                                        \
  }
MOMENTS (float, f32)
MOMENTS (double, f64)
#endif
