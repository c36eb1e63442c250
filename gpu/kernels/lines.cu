/* What is done along one axis: places of extremes, cumulative sums, softmax.  A line is n
 * numbers, `inner` elements apart; `lanes` threads share one.
 *
 * SPDX-License-Identifier: MIT */
#include "count.cuh"
#include "softmax.cuh"

/* Where line `line` begins. */
TD_DEVICE int64_t
line_at (const TdAxisParams &a, int64_t line)
{
  return line / a.inner * a.inner * a.n + line % a.inner;
}

/* Whether v at place i comes before the best so far: larger (smaller), or a NaN; the first of
 * equals. */
template <typename T>
TD_DEVICE bool
precedes (T v, int64_t i, T best, int64_t place, bool least)
{
  if (v != v || best != best)
    return v != v && (best == best || i < place);
  return (least ? v < best : v > best) || (v == best && i < place);
}

/* The best so far of V lines. */
template <typename T, int V> struct Best
{
  T value[V];
  int32_t place[V];

  TD_MEMBER void
  offer (int k, T v, int32_t i, bool least)
  {
    if (precedes (v, i, value[k], place[k], least))
      {
        value[k] = v;
        place[k] = i;
      }
  }
};

/* A group of lanes for each line; `tops` and `places` have one for each warp. */
template <typename S, typename Tops, typename Places>
TD_DEVICE void
argmax_line (const TdAxisParams &a, int64_t line, Tops &tops, Places &places)
{
  typedef Number<S> N;
  typedef typename N::T T;
  constexpr int V = Wide<S>::AT_ONCE;
  const int lane = threadIdx.x % a.lanes, warp = threadIdx.x / TD_WARP;
  const bool mine = line < a.lines;
  const S *x = (const S *)a.x + (mine ? line_at (a, line) : 0);
  const int64_t n = mine ? a.n : 0;
  Best<T, 1> best = { { N::load (x[0]) }, { 0 } };

  if (a.packs)
    each_of_row<V> ((int64_t)((uintptr_t)x / sizeof (S)), n, lane, a.lanes,
                    [&] (int64_t i, auto width) {
                      constexpr int W = decltype (width)::V;
                      const Pack<S, W> pack = *(const Pack<S, W> *)(x + i);

#pragma unroll
                      for (int k = 0; k < W; k++)
                        best.offer (0, N::load (pack.v[k]), (int32_t)i + k, a.reverse);
                    });
  else
    for (int64_t i = lane; i < n; i += a.lanes)
      best.offer (0, N::load (x[i * a.inner]), (int32_t)i, a.reverse);
  for (int k = (a.lanes < TD_WARP ? a.lanes : TD_WARP) / 2; k > 0; k /= 2)
    {
      const T other = from_lane (best.value[0], k);

      best.offer (0, other, from_lane (best.place[0], k), a.reverse);
    }
  if (a.lanes > TD_WARP)
    {
      if (threadIdx.x % TD_WARP == 0)
        {
          tops[warp] = best.value[0];
          places[warp] = best.place[0];
        }
      __syncthreads ();
      for (int k = 1; k < TD_BLOCK / TD_WARP && threadIdx.x == 0; k++)
        best.offer (0, tops[k], places[k], a.reverse);
      __syncthreads ();
    }
  if (lane == 0 && mine)
    ((int32_t *)a.y)[line] = best.place[0];
}

/* A thread for V lines that lie side by side. */
template <typename S, int V>
TD_DEVICE void
argmax_lines (const TdAxisParams &a)
{
  typedef Number<S> N;

  for (int64_t line = thread_index () * V; line < a.lines; line += n_threads () * V)
    {
      const S *x = (const S *)a.x + line_at (a, line);
      Best<typename N::T, V> best;

#pragma unroll
      for (int k = 0; k < V; k++)
        {
          best.value[k] = N::load (x[k]);
          best.place[k] = 0;
        }
#pragma unroll 2
      for (int64_t i = 1; i < a.n; i++)
        {
          const Pack<S, V> pack = *(const Pack<S, V> *)(x + i * a.inner);

#pragma unroll
          for (int k = 0; k < V; k++)
            best.offer (k, N::load (pack.v[k]), (int32_t)i, a.reverse);
        }
#pragma unroll
      for (int k = 0; k < V; k++)
        ((int32_t *)a.y)[line + k] = best.place[k];
    }
}

template <typename S, typename Tops, typename Places>
TD_DEVICE void
argmax (const TdAxisParams &a, Tops &tops, Places &places)
{
  const int groups = TD_BLOCK / a.lanes;

  if (a.packs && a.inner > 1)
    argmax_lines<S, Wide<S>::AT_ONCE> (a);
  else
    for (int64_t first = (int64_t)blockIdx.x * groups; first < a.lines;
         first += (int64_t)gridDim.x * groups)
      argmax_line<S> (a, first + threadIdx.x / a.lanes, tops, places);
}

/* Cumulative sums: a thread for each line, or for V that lie side by side. */
template <typename S, typename A, int V, typename C>
TD_DEVICE void
sum_along (const TdAxisParams &a, C &counter)
{
  typedef Number<S> N;

  for (int64_t line = thread_index () * V; line < a.lines; line += n_threads () * V)
    {
      const S *x = (const S *)a.x + line_at (a, line);
      S *y = (S *)a.y + line_at (a, line);
      A total[V];

#pragma unroll
      for (int k = 0; k < V; k++)
        total[k] = 0;
#pragma unroll 2
      for (int64_t i = 0; i < a.n; i++)
        {
          const int64_t at = (a.reverse ? a.n - 1 - i : i) * a.inner;
          Pack<S, V> pack = *(const Pack<S, V> *)(x + at);

#pragma unroll
          for (int k = 0; k < V; k++)
            {
              total[k] += (A)N::load (pack.v[k]);
              pack.v[k] = N::store ((typename N::T)total[k]);
              counter.see (N::load (pack.v[k]));
            }
          *(Pack<S, V> *)(y + at) = pack;
        }
    }
}

/* The same where the numbers of each line lie side by side, a pack after the other. */
template <typename S, typename A, typename C>
TD_DEVICE void
sum_of_packs (const TdAxisParams &a, C &counter)
{
  typedef Number<S> N;
  constexpr int V = Wide<S>::AT_ONCE;

  for (int64_t line = thread_index (); line < a.lines; line += n_threads ())
    {
      A total = 0;

      for (int64_t i = 0; i < a.n; i += V)
        {
          const int64_t at = line * a.n + (a.reverse ? a.n - V - i : i);
          Pack<S, V> pack = *(const Pack<S, V> *)((const S *)a.x + at);

#pragma unroll
          for (int k = 0; k < V; k++)
            if (a.reverse)
              {
                total += (A)N::load (pack.v[V - 1 - k]);
                pack.v[V - 1 - k] = N::store ((typename N::T)total);
              }
            else
              {
                total += (A)N::load (pack.v[k]);
                pack.v[k] = N::store ((typename N::T)total);
              }
#pragma unroll
          for (int k = 0; k < V; k++)
            counter.see (N::load (pack.v[k]));
          *(Pack<S, V> *)((S *)a.y + at) = pack;
        }
    }
}

/* V numbers of a line from the i-th on, the other way round if sums go back; those behind the
 * end are 0.  `whole`: packs are aligned. */
template <typename S, typename A, int V>
TD_DEVICE void
load_to_scan (const TdAxisParams &a, const S *x, int64_t i, bool whole, A (&v)[V])
{
  typedef Number<S> N;

  if (whole && i + V <= a.n)
    {
      const Pack<S, V> pack = *(const Pack<S, V> *)(x + (a.reverse ? a.n - V - i : i));

#pragma unroll
      for (int k = 0; k < V; k++)
        v[k] = (A)N::load (a.reverse ? pack.v[V - 1 - k] : pack.v[k]);
    }
  else
    {
#pragma unroll
      for (int k = 0; k < V; k++)
        v[k] = i + k < a.n ? (A)N::load (x[a.reverse ? a.n - 1 - i - k : i + k]) : (A)0;
    }
}

template <typename S, typename A, int V, typename C>
TD_DEVICE void
put_scanned (const TdAxisParams &a, S *y, int64_t i, bool whole, A before, const A (&v)[V],
             C &counter)
{
  typedef Number<S> N;
  Pack<S, V> pack;

#pragma unroll
  for (int k = 0; k < V; k++)
    {
      pack.v[k] = N::store ((typename N::T) (before + (a.reverse ? v[V - 1 - k] : v[k])));
      if (i + (a.reverse ? V - 1 - k : k) < a.n)
        counter.see (N::load (pack.v[k]));
    }
  if (whole && i + V <= a.n)
    *(Pack<S, V> *)(y + (a.reverse ? a.n - V - i : i)) = pack;
  else
    {
#pragma unroll
      for (int k = 0; k < V; k++)
        if (i + k < a.n)
          y[a.reverse ? a.n - 1 - i - k : i + k] = a.reverse ? pack.v[V - 1 - k] : pack.v[k];
    }
}

/* A block for a long line: V numbers of each thread at a time, aligned or not, so that neither
 * that nor the type shows in the order. */
template <typename S, typename A, typename Room, typename C>
TD_DEVICE void
scan_along (const TdAxisParams &a, Room &room, C &counter)
{
  constexpr int V = sizeof (S) <= 4 ? 4 : 2;
  const int lane = threadIdx.x % TD_WARP, warp = threadIdx.x / TD_WARP;

  for (int64_t line = blockIdx.x; line < a.lines; line += gridDim.x)
    {
      const S *x = (const S *)a.x + line * a.n;
      S *y = (S *)a.y + line * a.n;
      const int64_t packs_at = a.reverse ? a.n : 0;
      const bool x_whole = (uintptr_t)(x + packs_at) % (V * sizeof (S)) == 0;
      const bool y_whole = (uintptr_t)(y + packs_at) % (V * sizeof (S)) == 0;
      A before = 0;

      for (int64_t begin = 0; begin < a.n; begin += TD_BLOCK * V)
        {
          const int64_t i = begin + threadIdx.x * V;
          A v[V], sum, up_to;

          load_to_scan<S, A, V> (a, x, i, x_whole, v);
#pragma unroll
          for (int k = 1; k < V; k++)
            v[k] += v[k - 1];
          sum = v[V - 1];
          for (int k = 1; k < TD_WARP; k *= 2)
            {
              const A other = __shfl_up_sync (TD_ALL_LANES, sum, k);

              sum += lane >= k ? other : (A)0;
            }
          up_to = __shfl_up_sync (TD_ALL_LANES, sum, 1);
          up_to = lane > 0 ? up_to : (A)0;
          if (lane == TD_WARP - 1)
            room[warp] = sum;
          __syncthreads ();
          sum = 0;
          for (int k = 0; k < warp; k++)
            sum += room[k];
          put_scanned<S, A, V> (a, y, i, y_whole, before + (sum + up_to), v, counter);
          for (int k = 0; k < TD_BLOCK / TD_WARP; k++)
            before += room[k];
          __syncthreads ();
        }
    }
}

#define SUMS(S, A, name)                                                                       \
  TD_STATS_KERNEL (sum_along_##name, TdAxisParams)                                             \
  {                                                                                            \
    TD_COUNTER (Number<S>::T);                                                                 \
                                                                                               \
    if (a.packs && a.inner > 1)                                                                \
      sum_along<S, A, Wide<S>::AT_ONCE> (a, counter);                                          \
    else if (a.packs)                                                                          \
      sum_of_packs<S, A> (a, counter);                                                         \
    else                                                                                       \
      sum_along<S, A, 1> (a, counter);                                                         \
    TD_COUNTER_LEAVE (a.counts);                                                               \
  }                                                                                            \
  TD_STATS_KERNEL (scan_along_##name, TdAxisParams)                                            \
  {                                                                                            \
    TD_SHARED (A, room, TD_BLOCK / TD_WARP);                                                   \
    TD_COUNTER (Number<S>::T);                                                                 \
                                                                                               \
    scan_along<S, A> (a, room, counter);                                                       \
    TD_COUNTER_LEAVE (a.counts);                                                               \
  }
SUMS (float, double, f32)
SUMS (double, double, f64)
SUMS (td_f16, double, f16)
SUMS (td_bf16, double, bf16)

#if !defined(TD_KERNELS_COUNT)
SUMS (int32_t, uint32_t, i32)
SUMS (int64_t, uint64_t, i64)

#define ARGMAX(S, name)                                                                        \
  TD_KERNEL (td_argmax_##name, TdAxisParams)                                                   \
  {                                                                                            \
    TD_SHARED (Number<S>::T, tops, TD_BLOCK / TD_WARP);                                        \
    TD_SHARED (int32_t, places, TD_BLOCK / TD_WARP);                                           \
                                                                                               \
    argmax<S> (a, tops, places);                                                               \
  }
ARGMAX (float, f32)
ARGMAX (double, f64)
ARGMAX (int32_t, i32)
ARGMAX (int64_t, i64)
ARGMAX (td_f16, f16)
ARGMAX (td_bf16, bf16)
#endif

TD_DEVICE float
exp_of (float x)
{
  return td_exp_f32 (x);
}

TD_DEVICE double
exp_of (double x)
{
  return td_exp_f64 (x);
}

/* A line that its threads keep. */
template <typename S, int V, typename Room, typename Sums, typename C>
TD_DEVICE void
softmax_line (const TdAxisParams &a, int64_t line, Room &room, Sums &sums, C &counter)
{
  const bool mine = line < a.lines;
  const int64_t at = mine ? line_at (a, line) : 0;

  softmax_kept<S, V> ((const S *)a.x + at, (S *)a.y + at, mine ? (int)a.n : 0, a.inner, a.lanes,
                      a.kind == TD_LOG_SOFTMAX, room, sums, counter);
}

/* A line that is too long to be kept is read three times. */
template <typename S, int V, typename Room, typename Sums, typename C>
TD_DEVICE void
softmax_read (const TdAxisParams &a, int64_t line, Room &room, Sums &sums, C &counter)
{
  typedef Number<S> N;
  typedef typename N::T T;
  const int64_t first = threadIdx.x % a.lanes * V, step = a.lanes * V;
  const bool logs = a.kind == TD_LOG_SOFTMAX;
  const int64_t n = line < a.lines ? a.n : 0, at = line < a.lines ? line_at (a, line) : 0;
  const S *x = (const S *)a.x + at;
  T top = -(T)INFINITY, v[V], last;
  double sum = 0;

  for (int64_t i = first; i < n; i += step)
    {
      load_numbers<S, V> (x, i, a.inner, v);
      top = largest_of_pack<T, V> (v, top);
    }
  top = largest_of_group (top, a.lanes, room);
  for (int64_t i = first; i < n; i += step)
    {
      load_numbers<S, V> (x, i, a.inner, v);
#pragma unroll
      for (int j = 0; j < V; j++)
        sum += (double)exp_of_share (v[j] - top);
    }
  last = (T)sum_of_group (sum, a.lanes, sums);
  last = logs ? log_of (last) : 1 / last;
  for (int64_t i = first; i < n; i += step)
    {
      Pack<S, V> pack;

      load_numbers<S, V> (x, i, a.inner, v);
#pragma unroll
      for (int j = 0; j < V; j++)
        {
          pack.v[j] = N::store (logs ? v[j] - top - last : exp_of_share (v[j] - top) * last);
          counter.see (N::load (pack.v[j]));
        }
      put_of_line<S, V> ((S *)a.y + at, i, a.inner, pack);
    }
}

/* What one pack adds to the sum of a line's gradient; what its gradient is. */
template <typename S, int V>
TD_DEVICE double
grad_sum (bool logs, const Pack<S, V> &y, const Pack<S, V> &gy)
{
  typedef Number<S> N;
  double sum = 0;

#pragma unroll
  for (int j = 0; j < V; j++)
    sum += (double)(logs ? N::load (gy.v[j]) : N::load (gy.v[j]) * N::load (y.v[j]));
  return sum;
}

template <typename S, int V, typename C>
TD_DEVICE Pack<S, V>
grad_pack (bool logs, const Pack<S, V> &y, const Pack<S, V> &gy, typename Number<S>::T sum,
           C &counter)
{
  typedef Number<S> N;
  Pack<S, V> gx;

#pragma unroll
  for (int j = 0; j < V; j++)
    {
      const typename N::T v = N::load (y.v[j]), g = N::load (gy.v[j]);

      gx.v[j] = N::store (logs ? g - exp_of (v) * sum : v * (g - sum));
      counter.see (N::load (gx.v[j]));
    }
  return gx;
}

template <typename S, int V, bool KEEP, typename Sums, typename C>
TD_DEVICE void
softmax_grad_line (const TdAxisParams &a, int64_t line, Sums &sums, C &counter)
{
  typedef typename Number<S>::T T;
  const int64_t first = threadIdx.x % a.lanes * V, step = a.lanes * V;
  const bool logs = a.kind == TD_LOG_SOFTMAX_GRAD;
  const int64_t n = line < a.lines ? a.n : 0, at = line < a.lines ? line_at (a, line) : 0;
  const S *y = (const S *)a.x + at, *gy = (const S *)a.gy + at;
  S *gx = (S *)a.y + at;
  Pack<S, V> kept_y[Held<S, V>::N / V], kept_gy[Held<S, V>::N / V];
  double sum = 0;
  T total;

  if (KEEP)
    {
#pragma unroll
      for (int k = 0; k < Held<S, V>::N / V; k++)
        if (first + k * step < n)
          {
            kept_y[k] = load_of_line<S, V> (y, first + k * step, a.inner);
            kept_gy[k] = load_of_line<S, V> (gy, first + k * step, a.inner);
          }
#pragma unroll
      for (int k = 0; k < Held<S, V>::N / V; k++)
        if (first + k * step < n)
          sum += grad_sum<S, V> (logs, kept_y[k], kept_gy[k]);
    }
  else
    for (int64_t i = first; i < n; i += step)
      sum += grad_sum<S, V> (logs, load_of_line<S, V> (y, i, a.inner),
                             load_of_line<S, V> (gy, i, a.inner));
  total = (T)sum_of_group (sum, a.lanes, sums);
  if (KEEP)
    {
#pragma unroll
      for (int k = 0; k < Held<S, V>::N / V; k++)
        if (first + k * step < n)
          put_of_line<S, V> (gx, first + k * step, a.inner,
                             grad_pack<S, V> (logs, kept_y[k], kept_gy[k], total, counter));
    }
  else
    for (int64_t i = first; i < n; i += step)
      put_of_line<S, V> (gx, i, a.inner,
                         grad_pack<S, V> (logs, load_of_line<S, V> (y, i, a.inner),
                                          load_of_line<S, V> (gy, i, a.inner), total, counter));
}

/* A group of lanes for each line; whether lines are kept and how wide they are read is the same
 * for all of them. */
#define EACH_LINE(call)                                                                        \
  for (int64_t first = (int64_t)blockIdx.x * groups; first < a.lines;                          \
       first += (int64_t)gridDim.x * groups)                                                   \
  call

#define SOFTMAX(S, name)                                                                       \
  TD_STATS_KERNEL (softmax_##name, TdAxisParams)                                               \
  {                                                                                            \
    TD_SHARED (Number<S>::T, room, TD_BLOCK / TD_WARP);                                        \
    TD_SHARED (double, sums, TD_BLOCK / TD_WARP);                                              \
    TD_COUNTER (Number<S>::T);                                                                 \
    const int groups = TD_BLOCK / a.lanes, mine = threadIdx.x / a.lanes;                       \
    const bool keep                                                                            \
        = a.n <= (int64_t)a.lanes                                                              \
                     * (a.packs ? (int)Held<S, Wide<S>::AT_ONCE>::N : (int)Held<S, 1>::N);     \
                                                                                               \
    if (a.packs && keep)                                                                       \
      EACH_LINE ((softmax_line<S, Wide<S>::AT_ONCE> (a, first + mine, room, sums, counter)));  \
    else if (a.packs)                                                                          \
      EACH_LINE ((softmax_read<S, Wide<S>::AT_ONCE> (a, first + mine, room, sums, counter)));  \
    else if (keep)                                                                             \
      EACH_LINE ((softmax_line<S, 1> (a, first + mine, room, sums, counter)));                 \
    else                                                                                       \
      EACH_LINE ((softmax_read<S, 1> (a, first + mine, room, sums, counter)));                 \
    TD_COUNTER_LEAVE (a.counts);                                                               \
  }                                                                                            \
  TD_STATS_KERNEL (softmax_grad_##name, TdAxisParams)                                          \
  {                                                                                            \
    TD_SHARED (double, sums, TD_BLOCK / TD_WARP);                                              \
    TD_COUNTER (Number<S>::T);                                                                 \
    const int groups = TD_BLOCK / a.lanes, mine = threadIdx.x / a.lanes;                       \
    const bool keep                                                                            \
        = a.n <= (int64_t)a.lanes                                                              \
                     * (a.packs ? (int)Held<S, Wide<S>::AT_ONCE>::N : (int)Held<S, 1>::N);     \
                                                                                               \
    if (a.packs && keep)                                                                       \
      EACH_LINE (                                                                              \
          (softmax_grad_line<S, Wide<S>::AT_ONCE, true> (a, first + mine, sums, counter)));    \
    else if (a.packs)                                                                          \
      EACH_LINE (                                                                              \
          (softmax_grad_line<S, Wide<S>::AT_ONCE, false> (a, first + mine, sums, counter)));   \
    else                                                                                       \
      EACH_LINE ((softmax_grad_line<S, 1, false> (a, first + mine, sums, counter)));           \
    TD_COUNTER_LEAVE (a.counts);                                                               \
  }
SOFTMAX (float, f32)
SOFTMAX (double, f64)
SOFTMAX (td_f16, f16)
SOFTMAX (td_bf16, bf16)
