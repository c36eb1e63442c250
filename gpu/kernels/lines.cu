/* What is done along one axis: places of extremes, cumulative sums, softmax.  A line is n
 * numbers, `inner` elements apart; `lanes` threads share one.
 *
 * SPDX-License-Identifier: MIT */
#include "kernel.cuh"

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

template <typename S>
TD_DEVICE void
argmax (const TdAxisParams &a)
{
  typedef Number<S> N;
  typedef typename N::T T;
  const int lane = threadIdx.x % a.lanes, groups = TD_BLOCK / a.lanes;

  for (int64_t first = (int64_t)blockIdx.x * groups; first < a.lines;
       first += (int64_t)gridDim.x * groups)
    {
      const int64_t line = first + threadIdx.x / a.lanes;
      const S *x = (const S *)a.x + (line < a.lines ? line_at (a, line) : 0);
      T best = N::load (x[0]);
      int64_t place = 0;

      for (int64_t i = lane; i < a.n && line < a.lines; i += a.lanes)
        {
          const T v = N::load (x[i * a.inner]);

          if (precedes (v, i, best, place, a.reverse))
            {
              best = v;
              place = i;
            }
        }
      for (int k = a.lanes / 2; k > 0; k /= 2)
        {
          const T other = from_lane (best, k);
          const int64_t where = from_lane (place, k);

          if (precedes (other, where, best, place, a.reverse))
            {
              best = other;
              place = where;
            }
        }
      if (lane == 0 && line < a.lines)
        ((int32_t *)a.y)[line] = (int32_t)place;
    }
}

/* A thread for each line, or a block for a long one: TD_BLOCK numbers at a time. */
template <typename S, typename A>
TD_DEVICE void
sum_along (const TdAxisParams &a)
{
  typedef Number<S> N;

  for (int64_t line = thread_index (); line < a.lines; line += n_threads ())
    {
      const S *x = (const S *)a.x + line_at (a, line);
      S *y = (S *)a.y + line_at (a, line);
      A total = 0;

      for (int64_t i = 0; i < a.n; i++)
        {
          const int64_t at = (a.reverse ? a.n - 1 - i : i) * a.inner;

          total += (A)N::load (x[at]);
          y[at] = N::store ((typename N::T)total);
        }
    }
}

template <typename S, typename A, typename Room>
TD_DEVICE void
scan_along (const TdAxisParams &a, Room &room)
{
  typedef Number<S> N;
  const int lane = threadIdx.x % TD_WARP, warp = threadIdx.x / TD_WARP;

  for (int64_t line = blockIdx.x; line < a.lines; line += gridDim.x)
    {
      const S *x = (const S *)a.x + line_at (a, line);
      S *y = (S *)a.y + line_at (a, line);
      A before = 0;

      for (int64_t begin = 0; begin < a.n; begin += TD_BLOCK)
        {
          const int64_t i = begin + threadIdx.x;
          const int64_t at = (a.reverse ? a.n - 1 - i : i) * a.inner;
          A sum = i < a.n ? (A)N::load (x[at]) : (A)0;

          for (int k = 1; k < TD_WARP; k *= 2)
            {
              const A other = __shfl_up_sync (TD_ALL_LANES, sum, k);

              sum += lane >= k ? other : (A)0;
            }
          if (lane == TD_WARP - 1)
            room[warp] = sum;
          __syncthreads ();
          for (int k = 0; k < warp; k++)
            sum += room[k];
          if (i < a.n)
            y[at] = N::store ((typename N::T) (before + sum));
          for (int k = 0; k < TD_BLOCK / TD_WARP; k++)
            before += room[k];
          __syncthreads ();
        }
    }
}

#define ALONG(T, A, name)                                                                      \
  TD_KERNEL (td_argmax_##name, TdAxisParams)                                                   \
  {                                                                                            \
    argmax<T> (a);                                                                             \
  }                                                                                            \
  TD_KERNEL (td_sum_along_##name, TdAxisParams)                                                \
  {                                                                                            \
    sum_along<T, A> (a);                                                                       \
  }                                                                                            \
  TD_KERNEL (td_scan_along_##name, TdAxisParams)                                               \
  {                                                                                            \
    TD_SHARED (A, room, TD_BLOCK / TD_WARP);                                                   \
                                                                                               \
    scan_along<T, A> (a, room);                                                                \
  }
ALONG (float, double, f32)
ALONG (double, double, f64)
ALONG (int32_t, uint32_t, i32)
ALONG (int64_t, uint64_t, i64)
ALONG (td_f16, double, f16)
ALONG (td_bf16, double, bf16)

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

TD_DEVICE float
log_of (float x)
{
  return td_log_f32 (x);
}

TD_DEVICE double
log_of (double x)
{
  return td_log_f64 (x);
}

enum
{
  HELD = 16 /* numbers of a line that a thread keeps, so that they are read once */
};

template <typename S, bool HOLD, typename Room>
TD_DEVICE void
softmax_line (const TdAxisParams &a, int64_t line, Room &room)
{
  typedef Number<S> N;
  typedef typename N::T T;
  const int lane = threadIdx.x % a.lanes;
  const bool logs = a.kind == TD_LOG_SOFTMAX;
  const int64_t n = line < a.lines ? a.n : 0, at = line < a.lines ? line_at (a, line) : 0;
  const S *x = (const S *)a.x + at;
  S *y = (S *)a.y + at;
  T top = -(T)INFINITY, sum = 0, kept[HELD];

  if (HOLD)
    {
#pragma unroll
      for (int k = 0; k < HELD; k++)
        if (lane + k * a.lanes < n)
          {
            kept[k] = N::load (x[(lane + k * a.lanes) * a.inner]);
            top = kept[k] > top ? kept[k] : top;
          }
    }
  else
    for (int64_t i = lane; i < n; i += a.lanes)
      {
        const T v = N::load (x[i * a.inner]);

        top = v > top ? v : top;
      }
  top = largest_of_group (top, a.lanes, room);
  if (HOLD)
    {
#pragma unroll
      for (int k = 0; k < HELD; k++)
        if (lane + k * a.lanes < n)
          {
            const T e = exp_of (kept[k] - top);

            sum += e;
            kept[k] = logs ? kept[k] - top : e;
          }
    }
  else
    for (int64_t i = lane; i < n; i += a.lanes)
      sum += exp_of (N::load (x[i * a.inner]) - top);
  sum = sum_of_group (sum, a.lanes, room);
  sum = logs ? log_of (sum) : sum;
  if (HOLD)
    {
#pragma unroll
      for (int k = 0; k < HELD; k++)
        if (lane + k * a.lanes < n)
          y[(lane + k * a.lanes) * a.inner] = N::store (logs ? kept[k] - sum : kept[k] / sum);
    }
  else
    for (int64_t i = lane; i < n; i += a.lanes)
      {
        const T v = N::load (x[i * a.inner]) - top;

        y[i * a.inner] = N::store (logs ? v - sum : exp_of (v) / sum);
      }
}

template <typename S, typename Room>
TD_DEVICE void
softmax_grad_line (const TdAxisParams &a, int64_t line, Room &room)
{
  typedef Number<S> N;
  typedef typename N::T T;
  const int lane = threadIdx.x % a.lanes;
  const bool logs = a.kind == TD_LOG_SOFTMAX_GRAD;
  const int64_t n = line < a.lines ? a.n : 0, at = line < a.lines ? line_at (a, line) : 0;
  const S *y = (const S *)a.x + at, *gy = (const S *)a.gy + at;
  S *gx = (S *)a.y + at;
  T sum = 0;

  for (int64_t i = lane; i < n; i += a.lanes)
    sum += logs ? N::load (gy[i * a.inner])
                : N::load (gy[i * a.inner]) * N::load (y[i * a.inner]);
  sum = sum_of_group (sum, a.lanes, room);
  for (int64_t i = lane; i < n; i += a.lanes)
    {
      const T v = N::load (y[i * a.inner]), g = N::load (gy[i * a.inner]);

      gx[i * a.inner] = N::store (logs ? g - exp_of (v) * sum : v * (g - sum));
    }
}

template <typename S, typename Room>
TD_DEVICE void
softmax (const TdAxisParams &a, Room &room)
{
  const int groups = TD_BLOCK / a.lanes;

  for (int64_t first = (int64_t)blockIdx.x * groups; first < a.lines;
       first += (int64_t)gridDim.x * groups)
    {
      const int64_t line = first + threadIdx.x / a.lanes;

      if (a.gy != nullptr)
        softmax_grad_line<S> (a, line, room);
      else if (a.n <= (int64_t)a.lanes * HELD)
        softmax_line<S, true> (a, line, room);
      else
        softmax_line<S, false> (a, line, room);
    }
}

#define SOFTMAX(S, name)                                                                       \
  TD_KERNEL (td_softmax_##name, TdAxisParams)                                                  \
  {                                                                                            \
    TD_SHARED (Number<S>::T, room, TD_BLOCK / TD_WARP);                                        \
                                                                                               \
    softmax<S> (a, room);                                                                      \
  }
SOFTMAX (float, f32)
SOFTMAX (double, f64)
SOFTMAX (td_f16, f16)
SOFTMAX (td_bf16, bf16)
