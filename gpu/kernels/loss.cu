/* Softmax cross entropy, accuracy, counts of labels: x is (n, c, rest), a row is one place with
 * its c numbers.  Totals of blocks are added up by one block, in their order.
 *
 * SPDX-License-Identifier: MIT */
#include "count.cuh"
#include "softmax.cuh"

/* One that is none of the labels, which a check reports, is ignored.  Accuracy only compares.
 */
TD_DEVICE int64_t
label_at (const TdCrossEntropyParams &a, int64_t row)
{
  const int64_t label = integer_at (a.t, a.t_dtype, row);

  return (label >= 0 && label < a.n_labels) || a.kind == TD_ACCURACY ? label : a.ignore;
}

TD_DEVICE int64_t
row_at (const TdCrossEntropyParams &a, int64_t row)
{
  return row / a.rest * a.rest * a.c + row % a.rest;
}

template <typename S>
TD_DEVICE double
weight_of (const TdCrossEntropyParams &a, int64_t label)
{
  return a.weight != nullptr ? (double)Number<S>::load (((const S *)a.weight)[label]) : 1;
}

/* What a thread's rows add to the block's totals. */
struct Totals
{
  double loss;
  int32_t counted, right;
};

/* The same so far. */
template <typename T> struct SoftSumSoFar : SoftSum<T>
{
  TD_MEMBER
  SoftSumSoFar () : SoftSum<T>{ -(T)INFINITY, 0 }
  {
  }

  TD_MEMBER T
  share (T v) const
  {
    return v == -(T)INFINITY ? (T)0 : exp_of_share (v - this->top);
  }

  TD_MEMBER void
  raise (T new_top)
  {
    if (new_top > this->top)
      {
        this->sum *= exp_of_share (this->top - new_top);
        this->top = new_top;
      }
  }
};

/* W numbers of a row from place k on; those of an image are a.rest apart (and then W is 1). */
template <typename S, int W>
TD_DEVICE Pack<S, W>
load_of_row (const TdCrossEntropyParams &a, const S *x, int64_t k)
{
  return *(const Pack<S, W> *)(x + k * a.rest);
}

template <typename S, int W>
TD_DEVICE void
put_of_row (const TdCrossEntropyParams &a, S *y, int64_t k, const Pack<S, W> &pack)
{
  *(Pack<S, W> *)(y + k * a.rest) = pack;
}

/* The sum of a row that is too long to be kept in one pass, then its softmax. */
template <typename S, int V, typename Room, typename C>
TD_DEVICE SoftSum<typename Number<S>::T>
softmax_read (const TdCrossEntropyParams &a, int64_t at, int64_t c, Room &room, C &counter)
{
  typedef Number<S> N;
  typedef typename N::T T;
  const int lane = threadIdx.x % a.lanes;
  const S *x = (const S *)a.x + at;
  S *y = (S *)a.y + at;
  SoftSumSoFar<T> s;
  T top, over;

  each_of_row<V> (at, c, lane, a.lanes, [&] (int64_t k, auto width) {
    constexpr int W = decltype (width)::V;
    const Pack<S, W> pack = load_of_row<S, W> (a, x, k);
    T largest = N::load (pack.v[0]);

#pragma unroll
    for (int i = 1; i < W; i++)
      largest = N::load (pack.v[i]) > largest ? N::load (pack.v[i]) : largest;
    s.raise (largest);
#pragma unroll
    for (int i = 0; i < W; i++)
      s.sum += s.share (N::load (pack.v[i]));
  });
  top = largest_of_group (s.top, a.lanes, room);
  s.raise (top);
  s.sum = sum_of_group (s.sum, a.lanes, room);
  over = 1 / s.sum;
  each_of_row<V> (at, c, lane, a.lanes, [&] (int64_t k, auto width) {
    constexpr int W = decltype (width)::V;
    Pack<S, W> pack = load_of_row<S, W> (a, x, k);

#pragma unroll
    for (int i = 0; i < W; i++)
      {
        pack.v[i] = N::store (exp_of_share (N::load (pack.v[i]) - s.top) * over);
        counter.see (N::load (pack.v[i]));
      }
    put_of_row<S, W> (a, y, k, pack);
  });
  return s;
}

/* How rows are read: V at once, and kept or not. */
template <typename S, int V, bool KEEP, typename Room, typename Sums, typename C>
TD_DEVICE SoftSum<typename Number<S>::T>
softmax_row (const TdCrossEntropyParams &a, int64_t at, int64_t c, Room &room, Sums &sums,
             C &counter)
{
  if constexpr (KEEP)
    return softmax_kept<S, V> ((const S *)a.x + at, (S *)a.y + at, (int)c, a.rest, a.lanes,
                               false, room, sums, counter);
  else
    return softmax_read<S, V> (a, at, c, room, counter);
}

template <typename S, int V, bool KEEP, typename Room, typename Sums, typename C>
TD_DEVICE void
loss_row (const TdCrossEntropyParams &a, int64_t row, Totals &totals, Room &room, Sums &sums,
          C &counter)
{
  typedef Number<S> N;
  typedef typename N::T T;
  const bool valid = row < a.rows;
  const int64_t at = valid ? row_at (a, row) : 0, c = valid ? a.c : 0;
  const SoftSum<T> s = softmax_row<S, V, KEEP> (a, at, c, room, sums, counter);
  double loss = 0;
  int64_t label;

  if (threadIdx.x % a.lanes != 0 || !valid)
    return;
  label = label_at (a, row);
  if (label != a.ignore)
    loss = (log ((double)s.sum)
            - (double)(N::load (((const S *)a.x)[at + label * a.rest]) - s.top))
           * weight_of<S> (a, label);
  if (a.each)
    ((S *)a.loss)[row] = N::store ((T)loss);
  totals.loss += loss;
  totals.counted += label != a.ignore;
}

/* The best so far of a row, NaN before all others, the first of equals. */
template <typename T> struct Largest
{
  T value;
  int64_t place;

  TD_MEMBER void
  offer (T v, int64_t k)
  {
    if (v > value || (v != v && value == value))
      {
        value = v;
        place = k;
      }
  }
};

/* Its place.  A lane goes forward, in packs where rows lie side by side. */
template <typename S>
TD_DEVICE int64_t
largest_in_row (const TdCrossEntropyParams &a, const S *x, int lane, int64_t c)
{
  typedef Number<S> N;
  typedef typename N::T T;
  Largest<T> best = { N::load (x[0]), 0 };

  if (a.rest == 1)
    each_of_row<Wide<S>::AT_ONCE> ((int64_t)((uintptr_t)x / sizeof (S)), c, lane, a.lanes,
                                   [&] (int64_t k, auto width) {
                                     constexpr int W = decltype (width)::V;
                                     const Pack<S, W> pack = *(const Pack<S, W> *)(x + k);

#pragma unroll
                                     for (int i = 0; i < W; i++)
                                       best.offer (N::load (pack.v[i]), k + i);
                                   });
  else
    for (int64_t k = lane; k < c; k += a.lanes)
      best.offer (N::load (x[k * a.rest]), k);
  for (int k = a.lanes / 2; k > 0; k /= 2)
    {
      const T other = from_lane (best.value, k);
      const int64_t where = from_lane (best.place, k);
      const bool nan = best.value != best.value, other_nan = other != other;

      if ((other_nan && (!nan || where < best.place))
          || (!other_nan && !nan
              && (other > best.value || (other == best.value && where < best.place))))
        best = { other, where };
    }
  return best.place;
}

template <typename S>
TD_DEVICE void
right_row (const TdCrossEntropyParams &a, int64_t row, Totals &totals)
{
  const int lane = threadIdx.x % a.lanes;
  const bool valid = row < a.rows;
  const int64_t label = valid ? label_at (a, row) : a.ignore;
  const int64_t best = largest_in_row (a, (const S *)a.x + (valid ? row_at (a, row) : 0), lane,
                                       valid ? a.c : 0);

  if (lane != 0 || !valid || (a.each && label == a.ignore))
    return;
  totals.counted++;
  totals.right += best == label;
  if (a.kind != TD_LABEL_COUNTS || label == a.ignore)
    return;
  atomicAdd ((unsigned long long *)a.counts + 2 * a.n_labels + label, 1ull);
  if (best < a.n_labels)
    atomicAdd ((unsigned long long *)a.counts + a.n_labels + best, 1ull);
  if (best == label)
    atomicAdd ((unsigned long long *)a.counts + label, 1ull);
}

template <typename Room, typename Counts>
TD_DEVICE void
put_totals (const TdCrossEntropyParams &a, const Totals &totals, Room &room, Counts &counts)
{
  const double loss = sum_of_group (totals.loss, TD_BLOCK, room);
  const int64_t counted = sum_of_group ((int64_t)totals.counted, TD_BLOCK, counts);
  const int64_t right = sum_of_group ((int64_t)totals.right, TD_BLOCK, counts);

  if (threadIdx.x == 0)
    {
      a.totals[3 * blockIdx.x] = loss;
      a.totals[3 * blockIdx.x + 1] = (double)counted;
      a.totals[3 * blockIdx.x + 2] = (double)right;
    }
}

/* The share of one row; a mean over rows that count is known to the device only. */
TD_DEVICE double
share_of (const TdCrossEntropyParams &a)
{
  const double n = a.normalize ? a.totals[3 * a.n_totals] : (double)a.share_of;

  return a.each ? 1 : 1 / (n > 1 ? n : 1);
}

template <typename S>
TD_DEVICE double
row_scale (const TdCrossEntropyParams &a, int64_t label)
{
  return share_of (a) * (label != a.ignore ? weight_of<S> (a, label) : 1);
}

template <typename S, int V, typename C>
TD_DEVICE void
grad_row (const TdCrossEntropyParams &a, int64_t row, C &counter)
{
  typedef Number<S> N;
  typedef typename N::T T;
  const int64_t at = row_at (a, row), label = label_at (a, row);
  const S *y = (const S *)a.x + at;
  S *gx = (S *)a.y + at;
  const T scale
      = (T)((double)N::load (((const S *)a.g)[a.each ? row : 0]) * row_scale<S> (a, label));

  each_of_row<V> (at, a.c, threadIdx.x % a.lanes, a.lanes, [&] (int64_t k, auto width) {
    constexpr int W = decltype (width)::V;
    Pack<S, W> pack = load_of_row<S, W> (a, y, k);

#pragma unroll
    for (int i = 0; i < W; i++)
      {
        const T v = N::load (pack.v[i]);

        pack.v[i] = N::store (label == a.ignore ? (T)0 : (k + i == label ? v - 1 : v) * scale);
        counter.see (N::load (pack.v[i]));
      }
    put_of_row<S, W> (a, gx, k, pack);
  });
}

/* A group of lanes for each row; how rows are read is the same for all of them. */
#define EACH_LOSS(S, V, KEEP)                                                                  \
  for (int64_t first = (int64_t)blockIdx.x * groups; first < a.rows;                           \
       first += (int64_t)gridDim.x * groups)                                                   \
  loss_row<S, V, KEEP> (a, first + threadIdx.x / a.lanes, totals, room, losses, counter)

/* What writes an array of x's size. */
#define WRITERS(S, name)                                                                       \
  TD_STATS_KERNEL (loss_##name, TdCrossEntropyParams)                                          \
  {                                                                                            \
    TD_SHARED (Number<S>::T, room, TD_BLOCK / TD_WARP);                                        \
    TD_SHARED (double, losses, TD_BLOCK / TD_WARP);                                            \
    TD_SHARED (int64_t, counts, TD_BLOCK / TD_WARP);                                           \
    TD_COUNTER (Number<S>::T);                                                                 \
    const int groups = TD_BLOCK / a.lanes;                                                     \
    Totals totals = { 0, 0, 0 };                                                               \
                                                                                               \
    if (a.wide && a.c <= (int64_t)a.lanes * Held<S, Wide<S>::AT_ONCE>::N)                      \
      EACH_LOSS (S, Wide<S>::AT_ONCE, true);                                                   \
    else if (!a.wide && a.c <= (int64_t)a.lanes * Held<S, 1>::N)                               \
      EACH_LOSS (S, 1, true);                                                                  \
    else if (a.packs)                                                                          \
      EACH_LOSS (S, Packed<S>::V, false);                                                      \
    else                                                                                       \
      EACH_LOSS (S, 1, false);                                                                 \
    put_totals (a, totals, losses, counts);                                                    \
    TD_COUNTER_LEAVE (a.parts);                                                                \
  }                                                                                            \
  TD_STATS_KERNEL (loss_grad_##name, TdCrossEntropyParams)                                     \
  {                                                                                            \
    const int groups = TD_BLOCK / a.lanes;                                                     \
    TD_COUNTER (Number<S>::T);                                                                 \
                                                                                               \
    for (int64_t row = (int64_t)blockIdx.x * groups + threadIdx.x / a.lanes; row < a.rows;     \
         row += (int64_t)gridDim.x * groups)                                                   \
      if (a.packs)                                                                             \
        grad_row<S, Wide<S>::AT_ONCE> (a, row, counter);                                       \
      else                                                                                     \
        grad_row<S, 1> (a, row, counter);                                                      \
    TD_COUNTER_LEAVE (a.parts);                                                                \
  }
WRITERS (float, f32)
WRITERS (double, f64)
WRITERS (td_f16, f16)
WRITERS (td_bf16, bf16)

#if !defined(TD_KERNELS_COUNT)
#define LOSS(S, name)                                                                          \
  TD_KERNEL (td_right_##name, TdCrossEntropyParams)                                            \
  {                                                                                            \
    TD_SHARED (double, losses, TD_BLOCK / TD_WARP);                                            \
    TD_SHARED (int64_t, counts, TD_BLOCK / TD_WARP);                                           \
    const int groups = TD_BLOCK / a.lanes;                                                     \
    Totals totals = { 0, 0, 0 };                                                               \
                                                                                               \
    for (int64_t first = (int64_t)blockIdx.x * groups; first < a.rows;                         \
         first += (int64_t)gridDim.x * groups)                                                 \
      right_row<S> (a, first + threadIdx.x / a.lanes, totals);                                 \
    put_totals (a, totals, losses, counts);                                                    \
  }                                                                                            \
  TD_KERNEL (td_loss_rows_##name, TdCrossEntropyParams)                                        \
  {                                                                                            \
    typedef Number<S> N;                                                                       \
                                                                                               \
    for (int64_t i = thread_index (); i < a.rows; i += n_threads ())                           \
      {                                                                                        \
        const int64_t label = label_at (a, i);                                                 \
                                                                                               \
        ((S *)a.loss)[i]                                                                       \
            = N::store (label == a.ignore ? (N::T)0 : (N::T)row_scale<S> (a, label));          \
      }                                                                                        \
  }                                                                                            \
  /* One block: the totals of all, to places after them; the result, where it is asked for. */ \
  TD_KERNEL (td_loss_end_##name, TdCrossEntropyParams)                                         \
  {                                                                                            \
    TD_SHARED (double, room, TD_BLOCK / TD_WARP);                                              \
    double sums[3] = { 0, 0, 0 };                                                              \
                                                                                               \
    for (int k = 0; k < 3; k++)                                                                \
      {                                                                                        \
        for (int64_t i = threadIdx.x; i < a.n_totals; i += TD_BLOCK)                           \
          sums[k] += a.totals[3 * i + k];                                                      \
        sums[k] = sum_of_group (sums[k], TD_BLOCK, room);                                      \
      }                                                                                        \
    if (threadIdx.x != 0)                                                                      \
      return;                                                                                  \
    a.totals[3 * a.n_totals] = sums[1];                                                        \
    if (a.kind == TD_CROSS_ENTROPY && !a.each)                                                 \
      *(S *)a.loss = Number<S>::store ((Number<S>::T) (sums[0] * share_of (a)));               \
    else if (a.kind == TD_ACCURACY)                                                            \
      *(S *)a.loss                                                                             \
          = Number<S>::store ((Number<S>::T) (sums[2] / (sums[1] > 1 ? sums[1] : 1)));         \
  }
LOSS (float, f32)
LOSS (double, f64)
LOSS (td_f16, f16)
LOSS (td_bf16, bf16)

/* Blocks count the rows that are not ignored. */
TD_KERNEL (td_count_rows, TdCrossEntropyParams)
{
  TD_SHARED (double, losses, TD_BLOCK / TD_WARP);
  TD_SHARED (int64_t, counts, TD_BLOCK / TD_WARP);
  Totals totals = { 0, 0, 0 };

  for (int64_t i = thread_index (); i < a.rows; i += n_threads ())
    totals.counted += label_at (a, i) != a.ignore;
  put_totals (a, totals, losses, counts);
}

TD_KERNEL (td_label_counts_end, TdCrossEntropyParams)
{
  for (int64_t i = thread_index (); i < a.n_labels; i += n_threads ())
    {
      a.right[i] = (double)a.counts[i];
      a.chosen[i] = (double)a.counts[a.n_labels + i];
      a.labelled[i] = (double)a.counts[2 * a.n_labels + i];
    }
}
#endif
