/* Reductions over any axes.  Where numbers of one output lie side by side, `lanes` threads for
 * each output and part of the elements behind it; where outputs do, columns of threads.  Then,
 * where there are several parts, some threads for each output.  Sums are carried in double,
 * integers wrap, NaN is the largest and the smallest.
 *
 * The order is the arrays' alone: a thread adds its packs of 16 bytes one after the other
 * (first and last numbers of a row that is not aligned singly, before and after them), threads
 * are joined by halves, warps and parts in order.
 *
 * SPDX-License-Identifier: MIT */
#include "kernel.cuh"

/* What an output has come to: a total and, for logsumexp, the largest so far.  Kinds of
 * reduction are structs of start, add and join; AT_ONCE packs are read before they are added.
 */
template <typename A> struct State
{
  A value, shift;
};

/* Integers take more registers: their products are made of halves. */
template <typename A> struct InFlight
{
  enum
  {
    N = (A)0.5 == 0 ? 2 : 4
  };
};

template <typename A> struct Sum
{
  enum
  {
    AT_ONCE = InFlight<A>::N
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
    AT_ONCE = InFlight<A>::N
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
    AT_ONCE = InFlight<A>::N
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

/* What the places [begin, end) of an output's row add that are this lane's. */
template <typename Op, typename S, typename A>
TD_DEVICE void
add_row (const TdReduceParams &a, const S *x, int64_t begin, int64_t end, int lane, State<A> &s)
{
  typedef Number<S> N;
  constexpr int V = Wide<S>::AT_ONCE;

  if (a.packs && a.n_reduced <= 1)
    {
      const int64_t n = end - begin, at = (int64_t)((uintptr_t)(x + begin) / sizeof (S));
      const int64_t before = (V - at % V) % V, head = before < n ? before : n;
      const int64_t stop = n - (n - head) % V;

      x += begin;
      for (int64_t k = lane; k < head; k += a.lanes)
        Op::add (s, (A)N::load (x[k]));
#pragma unroll(int)(Op::AT_ONCE)
      for (int64_t k = head + (int64_t)lane * V; k < stop; k += (int64_t)a.lanes * V)
        {
          const Pack<S, V> pack = *(const Pack<S, V> *)(x + k);

#pragma unroll
          for (int j = 0; j < V; j++)
            Op::add (s, (A)N::load (pack.v[j]));
        }
      for (int64_t k = stop + lane; k < n; k += a.lanes)
        Op::add (s, (A)N::load (x[k]));
    }
  else if (a.packs)
    for (int64_t r = begin + lane; r < end; r += a.lanes)
      {
        const Pack<S, V> pack = *(
            const Pack<S, V> *)(x + offset_of (a.n_reduced, a.reduced, a.reduced_stride, r));

#pragma unroll
        for (int j = 0; j < V; j++)
          Op::add (s, (A)N::load (pack.v[j]));
      }
  else if (a.n_reduced <= 1)
    {
#pragma unroll(int)(Op::AT_ONCE)
      for (int64_t r = begin + lane; r < end; r += a.lanes)
        Op::add (s, (A)N::load (x[r * a.reduced_stride[0]]));
    }
  else
    for (int64_t r = begin + lane; r < end; r += a.lanes)
      Op::add (s, (A)N::load (x[offset_of (a.n_reduced, a.reduced, a.reduced_stride, r)]));
}

TD_DEVICE int64_t
end_of_part (const TdReduceParams &a, int64_t begin)
{
  return a.steps - begin < a.part ? a.steps : begin + a.part;
}

/* What an output has come to: a part of it, or all. */
template <typename S, typename A>
TD_DEVICE void
keep (const TdReduceParams &a, int64_t output, const State<A> &s)
{
  A *parts = (A *)a.parts;

  if (parts == nullptr)
    put<S> (a, output, s);
  else
    {
      parts[2 * (blockIdx.y * a.outputs + output)] = s.value;
      parts[2 * (blockIdx.y * a.outputs + output) + 1] = s.shift;
    }
}

template <typename S, typename A, typename Op, typename Room>
TD_DEVICE void
reduce_rows (const TdReduceParams &a, Room &room)
{
  const int lane = threadIdx.x % a.lanes, groups = TD_BLOCK / a.lanes;
  const int64_t begin = blockIdx.y * a.part, end = end_of_part (a, begin);

  for (int64_t first = (int64_t)blockIdx.x * groups; first < a.outputs;
       first += (int64_t)gridDim.x * groups)
    {
      const int64_t output = first + threadIdx.x / a.lanes;
      State<A> s = Op::start ();

      if (output < a.outputs)
        add_row<Op> (a, (const S *)a.x + offset_of (a.n_kept, a.kept, a.kept_stride, output),
                     begin, end, lane, s);
      s = join_lanes<Op> (s, a.lanes, room);
      if (lane == 0 && output < a.outputs)
        keep<S> (a, output, s);
    }
}

/* Join the states of threads that are `columns` (at most a warp) apart, for the first of them;
 * `room` has two places for each thread. */
template <typename Op, typename A, typename Room>
TD_DEVICE State<A>
join_rows (State<A> s, int columns, Room &room)
{
  const int t = threadIdx.x, lane = t % TD_WARP;

  for (int k = TD_WARP / 2; k >= columns; k /= 2)
    {
      const State<A> other = { from_lane (s.value, k), from_lane (s.shift, k) };

      if ((t & k) == 0)
        Op::join (s, other);
    }
  if (lane < columns)
    {
      room[2 * t] = s.value;
      room[2 * t + 1] = s.shift;
    }
  __syncthreads ();
  for (int k = 1; k < TD_BLOCK / TD_WARP && t < columns; k++)
    Op::join (s, { room[2 * (k * TD_WARP + t)], room[2 * (k * TD_WARP + t) + 1] });
  __syncthreads ();
  return s;
}

/* V outputs that lie side by side for each thread of a row. */
template <typename S, typename A, typename Op, int V, typename Room>
TD_DEVICE void
reduce_columns (const TdReduceParams &a, Room &room)
{
  typedef Number<S> N;
  const int column = threadIdx.x % a.columns, row = threadIdx.x / a.columns;
  const int rows = TD_BLOCK / a.columns, width = a.columns * V;
  const int64_t begin = blockIdx.y * a.part, end = end_of_part (a, begin);

  for (int64_t first = (int64_t)blockIdx.x * width; first < a.outputs;
       first += (int64_t)gridDim.x * width)
    {
      const int64_t output = first + column * V;
      const bool mine = output < a.outputs;
      const S *x
          = (const S *)a.x + (mine ? offset_of (a.n_kept, a.kept, a.kept_stride, output) : 0);
      State<A> s[V];

#pragma unroll
      for (int k = 0; k < V; k++)
        s[k] = Op::start ();
      if (a.n_reduced <= 1)
        {
#pragma unroll(int)(Op::AT_ONCE)
          for (int64_t r = begin + row; r < end && mine; r += rows)
            {
              const Pack<S, V> pack = *(const Pack<S, V> *)(x + r * a.reduced_stride[0]);

#pragma unroll
              for (int k = 0; k < V; k++)
                Op::add (s[k], (A)N::load (pack.v[k]));
            }
        }
      else
        for (int64_t r = begin + row; r < end && mine; r += rows)
          {
            const Pack<S, V> pack = *(
                const Pack<S, V> *)(x
                                    + offset_of (a.n_reduced, a.reduced, a.reduced_stride, r));

#pragma unroll
            for (int k = 0; k < V; k++)
              Op::add (s[k], (A)N::load (pack.v[k]));
          }
#pragma unroll
      for (int k = 0; k < V; k++)
        {
          s[k] = join_rows<Op> (s[k], a.columns, room);
          if (row == 0 && mine)
            keep<S> (a, output + k, s[k]);
        }
    }
}

/* The numbers are the states of parts. */
template <typename S, typename A, typename Op, typename Room>
TD_DEVICE void
reduce_parts (const TdReduceParams &a, Room &room)
{
  const int lane = threadIdx.x % a.lanes, groups = TD_BLOCK / a.lanes;
  const A *parts = (const A *)a.parts;

  for (int64_t first = (int64_t)blockIdx.x * groups; first < a.outputs;
       first += (int64_t)gridDim.x * groups)
    {
      const int64_t output = first + threadIdx.x / a.lanes;
      State<A> s = Op::start ();

      for (int64_t k = lane; k < a.n_parts && output < a.outputs; k += a.lanes)
        {
          const A *from = parts + 2 * (k * a.outputs + output);

          Op::join (s, { from[0], from[1] });
        }
      s = join_lanes<Op> (s, a.lanes, room);
      if (lane == 0 && output < a.outputs)
        put<S> (a, output, s);
    }
}

enum
{
  ROWS,
  COLUMNS,
  PARTS
};

template <typename S, typename A, typename Op, int STEP, typename Room>
TD_DEVICE void
reduce (const TdReduceParams &a, Room &room)
{
  if (STEP == PARTS)
    reduce_parts<S, A, Op> (a, room);
  else if (STEP == ROWS)
    reduce_rows<S, A, Op> (a, room);
  else if (a.packs)
    reduce_columns<S, A, Op, Wide<S>::AT_ONCE> (a, room);
  else
    reduce_columns<S, A, Op, 1> (a, room);
}

template <typename S, typename A, int STEP, typename Room>
TD_DEVICE void
reduce_any (const TdReduceParams &a, Room &room)
{
  switch (a.kind)
    {
    case TD_REDUCE_SUM:
    case TD_REDUCE_MEAN:
      reduce<S, A, Sum<A>, STEP> (a, room);
      break;
    case TD_REDUCE_PROD:
      reduce<S, A, Prod<A>, STEP> (a, room);
      break;
    case TD_REDUCE_MAX:
      reduce<S, A, Extreme<A, 1>, STEP> (a, room);
      break;
    case TD_REDUCE_MIN:
      reduce<S, A, Extreme<A, -1>, STEP> (a, room);
      break;
    }
}

#define REDUCE_INT(S, kernel, STEP, places)                                                    \
  TD_KERNEL (kernel, TdReduceParams)                                                           \
  {                                                                                            \
    TD_SHARED (int64_t, room, places);                                                         \
                                                                                               \
    reduce_any<S, int64_t, STEP> (a, room);                                                    \
  }
#define REDUCE_INTS(S, name)                                                                   \
  REDUCE_INT (S, td_reduce_##name, ROWS, 2 * TD_BLOCK / TD_WARP)                               \
  REDUCE_INT (S, td_reduce_columns_##name, COLUMNS, 2 * TD_BLOCK)                              \
  REDUCE_INT (S, td_reduce_parts_##name, PARTS, 2 * TD_BLOCK / TD_WARP)
REDUCE_INTS (int32_t, i32)
REDUCE_INTS (int64_t, i64)

#define REDUCE_FLOAT(S, kernel, STEP, places)                                                  \
  TD_KERNEL (kernel, TdReduceParams)                                                           \
  {                                                                                            \
    TD_SHARED (double, room, places);                                                          \
                                                                                               \
    if (a.kind == TD_REDUCE_SUM_SQUARES)                                                       \
      reduce<S, double, SumSquares<double>, STEP> (a, room);                                   \
    else                                                                                       \
      reduce_any<S, double, STEP> (a, room);                                                   \
  }
/* Exponentials bound the rest, whose columns are read one number at a time. */
#define REDUCE_FLOATS(S, name)                                                                 \
  REDUCE_FLOAT (S, td_reduce_##name, ROWS, 2 * TD_BLOCK / TD_WARP)                             \
  REDUCE_FLOAT (S, td_reduce_columns_##name, COLUMNS, 2 * TD_BLOCK)                            \
  REDUCE_FLOAT (S, td_reduce_parts_##name, PARTS, 2 * TD_BLOCK / TD_WARP)                      \
  TD_KERNEL (td_logsumexp_##name, TdReduceParams)                                              \
  {                                                                                            \
    TD_SHARED (double, room, 2 * TD_BLOCK / TD_WARP);                                          \
                                                                                               \
    reduce_rows<S, double, LogSumExp> (a, room);                                               \
  }                                                                                            \
  TD_KERNEL (td_logsumexp_columns_##name, TdReduceParams)                                      \
  {                                                                                            \
    TD_SHARED (double, room, 2 * TD_BLOCK);                                                    \
                                                                                               \
    reduce_columns<S, double, LogSumExp, 1> (a, room);                                         \
  }                                                                                            \
  TD_KERNEL (td_logsumexp_parts_##name, TdReduceParams)                                        \
  {                                                                                            \
    TD_SHARED (double, room, 2 * TD_BLOCK / TD_WARP);                                          \
                                                                                               \
    reduce_parts<S, double, LogSumExp> (a, room);                                              \
  }
REDUCE_FLOATS (float, f32)
REDUCE_FLOATS (double, f64)
REDUCE_FLOATS (td_f16, f16)
REDUCE_FLOATS (td_bf16, bf16)
