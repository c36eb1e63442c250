/* Reductions over any axes: `lanes` threads for each output and part of the elements behind it,
 * then, where there are several parts, some for each output.  Sums are carried in double,
 * integers wrap, NaN is the largest and the smallest.
 *
 * SPDX-License-Identifier: MIT */
#include "kernel.cuh"

/* What an output has come to: a total and, for logsumexp, the largest so far.  Kinds of
 * reduction are structs of start, add and join; AT_ONCE numbers are read before they are added.
 */
template <typename A> struct State
{
  A value, shift;
};

template <typename A> struct Sum
{
  enum
  {
    AT_ONCE = 4
  };

  TD_DEVICE State<A>
  start ()
  {
    return { 0, 0 };
  }

  TD_DEVICE void
  add (State<A> &s, A v)
  {
    s.value = sum_of_two (s.value, v);
  }

  TD_DEVICE void
  join (State<A> &s, const State<A> &other)
  {
    s.value = sum_of_two (s.value, other.value);
  }
};

template <typename A> struct SumSquares : Sum<A>
{
  TD_DEVICE void
  add (State<A> &s, A v)
  {
    s.value += v * v;
  }
};

TD_DEVICE double
product (double a, double b)
{
  return a * b;
}

TD_DEVICE int64_t
product (int64_t a, int64_t b)
{
  return (int64_t)((uint64_t)a * (uint64_t)b);
}

template <typename A> struct Prod
{
  enum
  {
    AT_ONCE = 4
  };

  TD_DEVICE State<A>
  start ()
  {
    return { 1, 0 };
  }

  TD_DEVICE void
  add (State<A> &s, A v)
  {
    s.value = product (s.value, v);
  }

  TD_DEVICE void
  join (State<A> &s, const State<A> &other)
  {
    s.value = product (s.value, other.value);
  }
};

/* SIGN -1: the smallest. */
template <typename A, int SIGN> struct Extreme
{
  enum
  {
    AT_ONCE = 4
  };

  TD_DEVICE double
  first (double)
  {
    return -SIGN * (double)INFINITY;
  }

  TD_DEVICE int64_t
  first (int64_t)
  {
    return SIGN > 0 ? INT64_MIN : INT64_MAX;
  }

  TD_DEVICE State<A>
  start ()
  {
    return { first ((A)0), 0 };
  }

  TD_DEVICE void
  add (State<A> &s, A v)
  {
    s.value = v != v || (SIGN > 0 ? v > s.value : v < s.value) ? v : s.value;
  }

  TD_DEVICE void
  join (State<A> &s, const State<A> &other)
  {
    add (s, other.value);
  }
};

/* value: the sum of exp (x - shift); the shift is the largest, not finite if one is not. */
struct LogSumExp
{
  enum
  {
    AT_ONCE = 1
  };

  TD_DEVICE State<double>
  start ()
  {
    return { 0, -(double)INFINITY };
  }

  TD_DEVICE bool
  finite (double v)
  {
    return v - v == 0;
  }

  TD_DEVICE void
  join (State<double> &s, const State<double> &other)
  {
    const bool larger = other.shift > s.shift || other.shift != other.shift;
    const bool both = finite (other.shift) && finite (s.shift);
    const double gap = s.shift - other.shift, e = both ? exp (gap < 0 ? gap : -gap) : 0;

    s.value = larger ? s.value * e + other.value : s.value + other.value * e;
    s.shift = larger ? other.shift : s.shift;
  }

  TD_DEVICE void
  add (State<double> &s, double v)
  {
    join (s, { 1, v });
  }
};

TD_DEVICE int64_t
offset_of (int n, const TdDivisor *dim, const int64_t *stride, int64_t index)
{
  int64_t offset = 0;

  for (int d = n - 1; d > 0; d--)
    {
      const uint32_t rest = divide ((uint32_t)index, dim[d]);

      offset += ((uint32_t)index - rest * dim[d].value) * stride[d];
      index = rest;
    }
  return n > 0 ? offset + index * stride[0] : 0;
}

/* Join the states of a group of lanes; `room` has two places for each warp. */
template <typename Op, typename A, typename Room>
TD_DEVICE State<A>
join_lanes (State<A> s, int lanes, Room &room)
{
  const int warp = threadIdx.x / TD_WARP;

  for (int k = (lanes < TD_WARP ? lanes : TD_WARP) / 2; k > 0; k /= 2)
    {
      const State<A> other = { from_lane (s.value, k), from_lane (s.shift, k) };

      /* Both lanes join in the same order, so that they agree to the bit. */
      if ((threadIdx.x & k) == 0)
        Op::join (s, other);
      else
        {
          State<A> first = other;

          Op::join (first, s);
          s = first;
        }
    }
  if (lanes <= TD_WARP)
    return s;
  if (threadIdx.x % TD_WARP == 0)
    {
      room[2 * warp] = s.value;
      room[2 * warp + 1] = s.shift;
    }
  __syncthreads ();
  s = { room[0], room[1] };
  for (int k = 1; k < TD_BLOCK / TD_WARP; k++)
    Op::join (s, { room[2 * k], room[2 * k + 1] });
  __syncthreads ();
  return s;
}

TD_DEVICE double
finished (const TdReduceParams &a, const State<double> &s)
{
  if (a.kind == TD_REDUCE_MEAN)
    return s.value / (double)a.count;
  if (a.kind == TD_REDUCE_LOGSUMEXP)
    return LogSumExp::finite (s.shift) ? s.shift + log (s.value) : s.shift;
  return s.value;
}

TD_DEVICE int64_t
finished (const TdReduceParams &a, const State<int64_t> &s)
{
  return s.value;
}

template <typename S, typename A>
TD_DEVICE void
put (const TdReduceParams &a, int64_t output, const State<A> &s)
{
  typedef Number<S> N;
  typename N::T v = (typename N::T)finished (a, s);
  S *y = (S *)a.y + output;

  *y = N::store (a.accumulate ? sum_of_two (N::load (*y), v) : v);
}

/* PARTS: the numbers are the states of parts. */
template <typename S, typename A, typename Op, bool PARTS, typename Room>
TD_DEVICE void
reduce (const TdReduceParams &a, Room &room)
{
  const int lane = threadIdx.x % a.lanes, groups = TD_BLOCK / a.lanes;
  const int64_t part = PARTS ? 0 : blockIdx.y, begin = part * a.part;
  const int64_t end = a.count - begin < a.part ? a.count : begin + a.part;
  A *parts = (A *)a.parts;

  for (int64_t first = (int64_t)blockIdx.x * groups; first < a.outputs;
       first += (int64_t)gridDim.x * groups)
    {
      const int64_t output = first + threadIdx.x / a.lanes;
      State<A> s = Op::start ();

      if (output < a.outputs && PARTS)
        for (int64_t k = lane; k < a.n_parts; k += a.lanes)
          {
            const A *from = parts + 2 * (k * a.outputs + output);

            Op::join (s, { from[0], from[1] });
          }
      else if (output < a.outputs)
        {
          const S *x = (const S *)a.x + offset_of (a.n_kept, a.kept, a.kept_stride, output);

          if (a.n_reduced <= 1)
            {
#pragma unroll (int)(Op::AT_ONCE)
              for (int64_t r = begin + lane; r < end; r += a.lanes)
                Op::add (s, (A)Number<S>::load (x[r * a.reduced_stride[0]]));
            }
          else
            for (int64_t r = begin + lane; r < end; r += a.lanes)
              Op::add (s, (A)Number<S>::load (
                              x[offset_of (a.n_reduced, a.reduced, a.reduced_stride, r)]));
        }
      s = join_lanes<Op> (s, a.lanes, room);
      if (lane != 0 || output >= a.outputs)
        continue;
      if (!PARTS && parts != nullptr)
        {
          parts[2 * (part * a.outputs + output)] = s.value;
          parts[2 * (part * a.outputs + output) + 1] = s.shift;
        }
      else
        put<S> (a, output, s);
    }
}

template <typename S, typename A, bool PARTS, typename Room>
TD_DEVICE void
reduce_any (const TdReduceParams &a, Room &room)
{
  switch (a.kind)
    {
    case TD_REDUCE_SUM:
    case TD_REDUCE_MEAN:
      reduce<S, A, Sum<A>, PARTS> (a, room);
      break;
    case TD_REDUCE_PROD:
      reduce<S, A, Prod<A>, PARTS> (a, room);
      break;
    case TD_REDUCE_MAX:
      reduce<S, A, Extreme<A, 1>, PARTS> (a, room);
      break;
    case TD_REDUCE_MIN:
      reduce<S, A, Extreme<A, -1>, PARTS> (a, room);
      break;
    }
}

#define REDUCE_INT(S, name)                                                                    \
  TD_KERNEL (td_reduce_##name, TdReduceParams)                                                 \
  {                                                                                            \
    TD_SHARED (int64_t, room, 2 * TD_BLOCK / TD_WARP);                                         \
                                                                                               \
    reduce_any<S, int64_t, false> (a, room);                                                   \
  }                                                                                            \
  TD_KERNEL (td_reduce_parts_##name, TdReduceParams)                                           \
  {                                                                                            \
    TD_SHARED (int64_t, room, 2 * TD_BLOCK / TD_WARP);                                         \
                                                                                               \
    reduce_any<S, int64_t, true> (a, room);                                                    \
  }
REDUCE_INT (int32_t, i32)
REDUCE_INT (int64_t, i64)

#define REDUCE_FLOAT(S, name)                                                                  \
  TD_KERNEL (td_reduce_##name, TdReduceParams)                                                 \
  {                                                                                            \
    TD_SHARED (double, room, 2 * TD_BLOCK / TD_WARP);                                          \
                                                                                               \
    if (a.kind == TD_REDUCE_SUM_SQUARES)                                                       \
      reduce<S, double, SumSquares<double>, false> (a, room);                                  \
    else                                                                                       \
      reduce_any<S, double, false> (a, room);                                                  \
  }                                                                                            \
  TD_KERNEL (td_logsumexp_##name, TdReduceParams)                                              \
  {                                                                                            \
    TD_SHARED (double, room, 2 * TD_BLOCK / TD_WARP);                                          \
                                                                                               \
    reduce<S, double, LogSumExp, false> (a, room);                                             \
  }                                                                                            \
  TD_KERNEL (td_reduce_parts_##name, TdReduceParams)                                           \
  {                                                                                            \
    TD_SHARED (double, room, 2 * TD_BLOCK / TD_WARP);                                          \
                                                                                               \
    if (a.kind == TD_REDUCE_LOGSUMEXP)                                                         \
      reduce<S, double, LogSumExp, true> (a, room);                                            \
    else if (a.kind == TD_REDUCE_SUM_SQUARES)                                                  \
      reduce<S, double, SumSquares<double>, true> (a, room);                                   \
    else                                                                                       \
      reduce_any<S, double, true> (a, room);                                                   \
  }
REDUCE_FLOAT (float, f32)
REDUCE_FLOAT (double, f64)
REDUCE_FLOAT (td_f16, f16)
REDUCE_FLOAT (td_bf16, bf16)
