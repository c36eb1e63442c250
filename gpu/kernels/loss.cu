/* Softmax cross entropy, accuracy, counts of labels: x is (n, c, rest), a row is one place with
 * its c numbers.  Totals of blocks are added up by one block, in their order.
 *
 * SPDX-License-Identifier: MIT */
#include "kernel.cuh"

/* One that is none of the labels, which a check tells of, is ignored.  Accuracy only compares.
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

/* What one row adds to the block's totals. */
struct Totals
{
  double loss;
  int64_t counted, right;
};

template <typename T, typename Room>
TD_DEVICE void
loss_row (const TdCrossEntropyParams &a, int64_t row, Totals &totals, Room &room)
{
  const int lane = threadIdx.x % a.lanes;
  const bool valid = row < a.rows;
  const int64_t at = valid ? row_at (a, row) : 0, c = valid ? a.c : 0;
  const int64_t label = valid ? label_at (a, row) : a.ignore;
  const T *x = (const T *)a.x + at;
  T *y = (T *)a.y + at, top = -(T)INFINITY, sum = 0;
  double loss = 0;

  for (int64_t k = lane; k < c; k += a.lanes)
    top = x[k * a.rest] > top ? x[k * a.rest] : top;
  top = largest_of_group (top, a.lanes, room);
  for (int64_t k = lane; k < c; k += a.lanes)
    sum += y[k * a.rest] = exp_of (x[k * a.rest] - top);
  sum = sum_of_group (sum, a.lanes, room);
  for (int64_t k = lane; k < c; k += a.lanes)
    y[k * a.rest] /= sum;
  if (lane != 0 || !valid)
    return;
  if (label != a.ignore)
    loss = (log ((double)sum) - (double)(x[label * a.rest] - top))
           * (a.weight != nullptr ? (double)((const T *)a.weight)[label] : 1);
  if (a.each)
    ((T *)a.loss)[row] = (T)loss;
  totals.loss += loss;
  totals.counted += label != a.ignore;
}

/* The place of the largest of a row, NaN before all others, the first of equals. */
template <typename T>
TD_DEVICE int64_t
largest_in_row (const TdCrossEntropyParams &a, const T *x, int lane, int64_t c)
{
  T best = x[0];
  int64_t place = 0;

  for (int64_t k = lane; k < c; k += a.lanes)
    {
      const T v = x[k * a.rest];

      if (v > best || (v != v && best == best))
        {
          best = v;
          place = k;
        }
    }
  for (int k = a.lanes / 2; k > 0; k /= 2)
    {
      const T other = from_lane (best, k);
      const int64_t where = from_lane (place, k);
      const bool nan = best != best, other_nan = other != other;

      if ((other_nan && (!nan || where < place))
          || (!other_nan && !nan && (other > best || (other == best && where < place))))
        {
          best = other;
          place = where;
        }
    }
  return place;
}

template <typename T>
TD_DEVICE void
right_row (const TdCrossEntropyParams &a, int64_t row, Totals &totals)
{
  const int lane = threadIdx.x % a.lanes;
  const bool valid = row < a.rows;
  const int64_t label = valid ? label_at (a, row) : a.ignore;
  const int64_t best = largest_in_row (a, (const T *)a.x + (valid ? row_at (a, row) : 0), lane,
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
  const int64_t counted = sum_of_group (totals.counted, TD_BLOCK, counts);
  const int64_t right = sum_of_group (totals.right, TD_BLOCK, counts);

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

template <typename T>
TD_DEVICE double
row_scale (const TdCrossEntropyParams &a, int64_t label)
{
  return share_of (a)
         * (label != a.ignore && a.weight != nullptr ? (double)((const T *)a.weight)[label]
                                                     : 1);
}

template <typename T>
TD_DEVICE void
grad (const TdCrossEntropyParams &a)
{
  const T *y = (const T *)a.x, *g = (const T *)a.g;
  T *gx = (T *)a.y;

  for (int64_t i = thread_index (); i < a.rows * a.c; i += n_threads ())
    {
      const int64_t image = i / (a.c * a.rest), place = i % a.rest;
      const int64_t k = i / a.rest % a.c, row = image * a.rest + place;
      const int64_t label = label_at (a, row);
      const T scale = (T)((double)g[a.each ? row : 0] * row_scale<T> (a, label));

      gx[i] = label == a.ignore ? (T)0 : (k == label ? y[i] - 1 : y[i]) * scale;
    }
}

#define LOSS(T, name)                                                                          \
  TD_KERNEL (td_loss_##name, TdCrossEntropyParams)                                             \
  {                                                                                            \
    TD_SHARED (T, room, TD_BLOCK / TD_WARP);                                                   \
    TD_SHARED (double, losses, TD_BLOCK / TD_WARP);                                            \
    TD_SHARED (int64_t, counts, TD_BLOCK / TD_WARP);                                           \
    const int groups = TD_BLOCK / a.lanes;                                                     \
    Totals totals = { 0, 0, 0 };                                                               \
                                                                                               \
    for (int64_t first = (int64_t)blockIdx.x * groups; first < a.rows;                         \
         first += (int64_t)gridDim.x * groups)                                                 \
      loss_row<T> (a, first + threadIdx.x / a.lanes, totals, room);                            \
    put_totals (a, totals, losses, counts);                                                    \
  }                                                                                            \
  TD_KERNEL (td_right_##name, TdCrossEntropyParams)                                            \
  {                                                                                            \
    TD_SHARED (double, losses, TD_BLOCK / TD_WARP);                                            \
    TD_SHARED (int64_t, counts, TD_BLOCK / TD_WARP);                                           \
    const int groups = TD_BLOCK / a.lanes;                                                     \
    Totals totals = { 0, 0, 0 };                                                               \
                                                                                               \
    for (int64_t first = (int64_t)blockIdx.x * groups; first < a.rows;                         \
         first += (int64_t)gridDim.x * groups)                                                 \
      right_row<T> (a, first + threadIdx.x / a.lanes, totals);                                 \
    put_totals (a, totals, losses, counts);                                                    \
  }                                                                                            \
  TD_KERNEL (td_loss_grad_##name, TdCrossEntropyParams)                                        \
  {                                                                                            \
    grad<T> (a);                                                                               \
  }                                                                                            \
  TD_KERNEL (td_loss_rows_##name, TdCrossEntropyParams)                                        \
  {                                                                                            \
    for (int64_t i = thread_index (); i < a.rows; i += n_threads ())                           \
      {                                                                                        \
        const int64_t label = label_at (a, i);                                                 \
                                                                                               \
        ((T *)a.loss)[i] = label == a.ignore ? (T)0 : (T)row_scale<T> (a, label);              \
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
      *(T *)a.loss = (T)(sums[0] * share_of (a));                                              \
    else if (a.kind == TD_ACCURACY)                                                            \
      *(T *)a.loss = (T)(sums[2] / (sums[1] > 1 ? sums[1] : 1));                               \
  }
LOSS (float, f32)
LOSS (double, f64)

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
