/* Numbers moved as bits: walks with any stride, transposes by tiles, choices between two
 * arrays, rows by an index.  A unit is 1 to 16 bytes, the largest that all sides allow.
 *
 * SPDX-License-Identifier: MIT */
#include "walk.cuh"

#include "move.h"

struct alignas (16) td_unit16
{
  uint64_t half[2];
};

/* data[0]: the side with strides; data[1]: the dense side, which is written unless kind says
 * that the other is. */
template <typename Unit>
TD_DEVICE void
copy_walk (const TdWalkParams &a)
{
  Unit *strided = (Unit *)a.data[0], *dense = (Unit *)a.data[1];

  for (uint32_t i = (uint32_t)thread_index (); i < a.n; i += (uint32_t)n_threads ())
    {
      int64_t at;

      walk_to<1> (a, i, &at);
      if (a.kind == TD_STRIDED_READ)
        dense[i] = strided[at];
      else
        strided[at] = dense[i];
    }
}

/* Here the dense side may be part of an array.  Places of the strided side are different for
 * different i. */
template <typename S>
TD_DEVICE void
add_walk (const TdWalkParams &a)
{
  typedef Number<S> N;
  S *strided = (S *)a.data[0];
  const S *dense = (const S *)a.data[1];

  for (uint32_t i = (uint32_t)thread_index (); i < a.n; i += (uint32_t)n_threads ())
    {
      int64_t at[2];

      walk_to<2> (a, i, at);
      strided[at[0]] = N::store (sum_of_two (N::load (strided[at[0]]), N::load (dense[at[1]])));
    }
}

enum
{
  TILE = 64,
  TILE_ROWS = TD_BLOCK / TILE, /* that the block takes at once */
  TILE_STEPS = TILE / TILE_ROWS
};

/* A side of a tile: lines along which its numbers are neighbours. */
struct Side
{
  int64_t begin, step; /* from line to line */
  uint32_t lines, n;   /* those that there are from the tile on; numbers of a line */
};

/* Rows of the tile are neighbours on the strided side, columns on the dense one: both are read
 * and written along their own.  All that a thread reads is in flight at once. */
template <typename Unit, typename Room>
TD_DEVICE void
copy_tile (const TdTileParams &a, Room &room)
{
  const uint32_t x = threadIdx.x % TILE, y = threadIdx.x / TILE;
  uint32_t i = blockIdx.x, rest = divide (i, a.column_tiles);
  const uint32_t column = (i - rest * a.column_tiles.value) * TILE;
  const uint32_t outer = divide (rest, a.row_tiles);
  const uint32_t row = (rest - outer * a.row_tiles.value) * TILE;
  Side dense = { row * a.dense_step + column, a.dense_step, a.rows - row, a.columns - column };
  Side strided
      = { column * a.strided_step + row, a.strided_step, a.columns - column, a.rows - row };
  Unit v[TILE_STEPS];

  i = outer;
  for (int d = a.ndim - 1; d >= 0; d--)
    {
      rest = divide (i, a.dim[d]);
      dense.begin += (i - rest * a.dim[d].value) * a.dense_stride[d];
      strided.begin += (i - rest * a.dim[d].value) * a.strided_stride[d];
      i = rest;
    }
  const Side from = a.write ? dense : strided, to = a.write ? strided : dense;

#pragma unroll
  for (int u = 0; u < TILE_STEPS; u++)
    {
      const uint32_t k = y + u * TILE_ROWS;

      if (k < from.lines && x < from.n)
        v[u] = ((const Unit *)a.from)[from.begin + k * from.step + x];
    }
#pragma unroll
  for (int u = 0; u < TILE_STEPS; u++)
    {
      const uint32_t k = y + u * TILE_ROWS;

      if (k < from.lines && x < from.n)
        room[k * (TILE + 1) + x] = v[u];
    }
  __syncthreads ();
#pragma unroll
  for (int u = 0; u < TILE_STEPS; u++)
    {
      const uint32_t k = y + u * TILE_ROWS;

      if (k < to.lines && x < to.n)
        ((Unit *)a.to)[to.begin + k * to.step + x] = room[x * (TILE + 1) + k];
    }
}

TD_DEVICE bool
holds (const void *c, int dtype, int64_t at)
{
  switch (dtype)
    {
    case TD_F32:
      return ((const float *)c)[at] != 0;
    case TD_F64:
      return ((const double *)c)[at] != 0;
    case TD_F16:
    case TD_BF16:
      return (((const uint16_t *)c)[at] & 0x7FFF) != 0; /* -0 is 0 */
    case TD_I32:
      return ((const int32_t *)c)[at] != 0;
    case TD_I64:
      return ((const int64_t *)c)[at] != 0;
    default:
      return ((const uint8_t *)c)[at] != 0;
    }
}

/* kind: the condition's dtype.  see (v): what is written. */
template <typename Unit, typename F>
TD_DEVICE void
choose (const TdWalkParams &a, F see)
{
  for (uint32_t i = (uint32_t)thread_index (); i < a.n; i += (uint32_t)n_threads ())
    {
      int64_t at[3];

      walk_to<3> (a, i, at);
      const Unit v = holds (a.data[0], a.kind, at[0]) ? ((const Unit *)a.data[1])[at[1]]
                                                      : ((const Unit *)a.data[2])[at[2]];

      see (v);
      ((Unit *)a.data[3])[i] = v;
    }
}

/* A block takes rows in turn, its threads the units of a row; of short rows several.  Zeros for
 * an index that is out of range. */
template <typename Unit, typename F>
TD_DEVICE void
gather (const TdRowsParams &a, F see)
{
  for (int64_t i = thread_index (); i < a.n * a.columns; i += n_threads ())
    {
      const int64_t at = i / a.columns, column = i - at * a.columns;
      const int64_t row = integer_at (a.index, a.index_dtype, at);
      Unit v = {};

      if (row >= 0 && row < a.rows)
        v = ((const Unit *)a.from)[row * a.columns + column];
      see (v);
      ((Unit *)a.to)[i] = v;
    }
}

#if defined(TD_KERNELS_COUNT)
/* Those that know what the bits are. */
template <typename S, int V, typename C>
TD_DEVICE void
gather_with_stats (const TdRowsParams &a, C &counter)
{
  gather<Pack<S, V> > (a, [&] (const Pack<S, V> &v) {
#pragma unroll
    for (int k = 0; k < V; k++)
      counter.see (Number<S>::load (v.v[k]));
  });
}

#define WITH_STATS(S, name)                                                                    \
  TD_STATS_KERNEL (gather_##name, TdRowsWithStats)                                             \
  {                                                                                            \
    TD_COUNTER (Number<S>::T);                                                                 \
                                                                                               \
    if (a.p.packs)                                                                             \
      gather_with_stats<S, Wide<S>::AT_ONCE> (a.p, counter);                                   \
    else                                                                                       \
      gather_with_stats<S, 1> (a.p, counter);                                                  \
    TD_COUNTER_LEAVE (a.parts);                                                                \
  }                                                                                            \
  TD_STATS_KERNEL (select_##name, TdWalkParams)                                                \
  {                                                                                            \
    TD_COUNTER (Number<S>::T);                                                                 \
                                                                                               \
    choose<S> (a, [&] (S v) { counter.see (Number<S>::load (v)); });                           \
    TD_COUNTER_LEAVE (a.parts);                                                                \
  }
WITH_STATS (float, f32)
WITH_STATS (double, f64)
WITH_STATS (td_f16, f16)
WITH_STATS (td_bf16, bf16)
#else
#define MOVES(Unit, bytes)                                                                     \
  TD_KERNEL (td_copy_walk_##bytes, TdWalkParams)                                               \
  {                                                                                            \
    copy_walk<Unit> (a);                                                                       \
  }                                                                                            \
  TD_KERNEL (td_gather_##bytes, TdRowsParams)                                                  \
  {                                                                                            \
    gather<Unit> (a, [] (const Unit &) {});                                                    \
  }
MOVES (uint8_t, 1)
MOVES (uint16_t, 2)
MOVES (uint32_t, 4)
MOVES (uint64_t, 8)
MOVES (td_unit16, 16)

#define TYPED_MOVES(Unit, bytes)                                                               \
  TD_KERNEL (td_copy_tile_##bytes, TdTileParams)                                               \
  {                                                                                            \
    TD_SHARED (Unit, room, TILE *(TILE + 1));                                                  \
                                                                                               \
    copy_tile<Unit> (a, room);                                                                 \
  }                                                                                            \
  TD_KERNEL (td_select_##bytes, TdWalkParams)                                                  \
  {                                                                                            \
    choose<Unit> (a, [] (Unit) {});                                                            \
  }
TYPED_MOVES (uint8_t, 1)
TYPED_MOVES (uint16_t, 2)
TYPED_MOVES (uint32_t, 4)
TYPED_MOVES (uint64_t, 8)

/* gw[index[i]] += gy[i], in the order of i: a block owns some rows of gw, looks through all
 * indices, a batch at a time, and adds what is its own.  Blocks in y share out the columns. */
enum
{
  EACH = 8, /* indices of a batch that a thread looks at, TD_BLOCK apart */
  BATCH = EACH * TD_BLOCK,
  HITS = EACH * TD_BLOCK / TD_WARP /* words of lanes that have one of ours: [of each][warp] */
};
static_assert (HITS == 2 * TD_WARP, "two of a lane");

struct Share
{
  int64_t first, end; /* rows */

  TD_MEMBER void
  open (const TdRowsParams &a)
  {
    const int64_t each = (a.rows + gridDim.x - 1) / gridDim.x;

    first = blockIdx.x * each;
    end = first + each < a.rows ? first + each : a.rows;
  }
};

/* The sum over the lanes up to this one. */
TD_DEVICE int
sum_up_to (int v)
{
  const int lane = threadIdx.x % TD_WARP;

  for (int k = 1; k < TD_WARP; k *= 2)
    {
      const int other = __shfl_up_sync (TD_ALL_LANES, v, k);

      v += lane >= k ? other : 0;
    }
  return v;
}

/* Which of a thread's indices are the block's, a bit each: all are on their way at once. */
template <typename I>
TD_DEVICE uint32_t
own_of_thread (const I *index, int64_t n, const Share &share)
{
  const int t = (int)threadIdx.x, left = n < BATCH ? (int)n : BATCH;
  I row[EACH];
  uint32_t own = 0;

#pragma unroll
  for (int u = 0; u < EACH; u++)
    row[u] = u * TD_BLOCK + t < left ? index[u * TD_BLOCK + t] : (I)-1;
#pragma unroll
  for (int u = 0; u < EACH; u++)
    if (u * TD_BLOCK + t < left && row[u] >= share.first && row[u] < share.end)
      own |= 1u << u;
  return own;
}

/* Leave which of a batch are the block's, in their order, and return how many. */
template <typename Room, typename Hits>
TD_DEVICE int
own_of_batch (const TdRowsParams &a, const Share &share, int64_t begin, Room &mine, Hits &hits)
{
  const unsigned lane = threadIdx.x % TD_WARP, warp = threadIdx.x / TD_WARP;
  const int64_t left = a.n - begin;
  const uint32_t own = a.index_dtype == TD_I32
                           ? own_of_thread ((const int32_t *)a.index + begin, left, share)
                       : a.index_dtype == TD_I64
                           ? own_of_thread ((const int64_t *)a.index + begin, left, share)
                           : own_of_thread ((const uint8_t *)a.index + begin, left, share);
  int first, second, before[2], all;

#pragma unroll
  for (int u = 0; u < EACH; u++)
    {
      const uint32_t here = __ballot_sync (TD_ALL_LANES, own >> u & 1);

      if (lane == 0)
        hits[u * (TD_BLOCK / TD_WARP) + warp] = here;
    }
  __syncthreads ();
  first = __popc (hits[lane]);
  second = __popc (hits[TD_WARP + lane]);
  before[0] = sum_up_to (first);
  before[1] = sum_up_to (second) + __shfl_sync (TD_ALL_LANES, before[0], TD_WARP - 1);
  all = __shfl_sync (TD_ALL_LANES, before[1], TD_WARP - 1);
  before[0] -= first;
  before[1] -= second;
#pragma unroll
  for (int u = 0; u < EACH; u++)
    {
      const int at = u * (TD_BLOCK / TD_WARP) + warp;
      const uint32_t here = hits[at];
      const int place = __shfl_sync (TD_ALL_LANES, before[u / (EACH / 2)], at % TD_WARP);

      if (here >> lane & 1)
        mine[place + __popc (here & ((1u << lane) - 1))]
            = (uint16_t)(u * TD_BLOCK + threadIdx.x);
    }
  __syncthreads ();
  return all;
}

template <typename T, int V>
TD_DEVICE void
add_pack (Pack<T, V> &sum, const Pack<T, V> &v)
{
#pragma unroll
  for (int k = 0; k < V; k++)
    sum.v[k] = sum_of_two (sum.v[k], v.v[k]);
}

/* Two rows at a time, so that one is on its way while the other is waited for. */
template <typename T, int V, typename Room, typename Hits>
TD_DEVICE void
scatter (const TdRowsParams &a, Room &mine, Hits &hits)
{
  typedef Pack<T, V> P;
  const int64_t c0 = (blockIdx.y * TD_BLOCK + threadIdx.x) * (int64_t)V;
  const int64_t step = gridDim.y * (int64_t)TD_BLOCK * V;
  Share share;

  share.open (a);
  for (int64_t begin = 0; begin < a.n; begin += BATCH)
    {
      const int all = own_of_batch (a, share, begin, mine, hits);

      for (int k = 0; k < all; k += 2)
        {
          const bool both = k + 1 < all;
          const int64_t from = begin + mine[k], next = both ? begin + mine[k + 1] : from;
          const int64_t to = integer_at (a.index, a.index_dtype, from);
          const int64_t next_to = integer_at (a.index, a.index_dtype, next);

          for (int64_t c = c0; c < a.columns; c += step)
            {
              P *place = (P *)((T *)a.to + to * a.columns + c);
              P *other = (P *)((T *)a.to + next_to * a.columns + c);
              const P v = *(const P *)((const T *)a.from + from * a.columns + c);
              const P w = *(const P *)((const T *)a.from + next * a.columns + c);
              P sum = *place, other_sum = *other;

              add_pack (sum, v);
              if (both && next_to == to)
                add_pack (sum, w);
              *place = sum;
              if (next_to == to)
                continue;
              add_pack (other_sum, w);
              *other = other_sum;
            }
        }
      __syncthreads ();
    }
}

/* Halves are added up in float, and rounded once: the sum of a row of gw lies in a.sums where
 * its first index is, a.first_of says which that is. */
template <typename S, int V>
TD_DEVICE void
add_to_sum (const TdRowsParams &a, int64_t from, int64_t to, int64_t sum, int64_t c)
{
  typedef Number<S> N;
  Pack<float, V> *place = (Pack<float, V> *)(a.sums + sum * a.columns + c);
  const Pack<S, V> gy = *(const Pack<S, V> *)((const S *)a.from + from * a.columns + c);
  Pack<float, V> v;

  if (sum == from)
    {
      const Pack<S, V> start = *(const Pack<S, V> *)((const S *)a.to + to * a.columns + c);

#pragma unroll
      for (int k = 0; k < V; k++)
        v.v[k] = N::load (start.v[k]);
    }
  else
    v = *place;
#pragma unroll
  for (int k = 0; k < V; k++)
    v.v[k] += N::load (gy.v[k]);
  *place = v;
}

template <typename S, int V>
TD_DEVICE void
round_sum (const TdRowsParams &a, int64_t row, int64_t sum, int64_t c)
{
  const Pack<float, V> v = *(const Pack<float, V> *)(a.sums + sum * a.columns + c);
  Pack<S, V> y;

#pragma unroll
  for (int k = 0; k < V; k++)
    y.v[k] = Number<S>::store (v.v[k]);
  *(Pack<S, V> *)((S *)a.to + row * a.columns + c) = y;
}

/* A thread's columns are its own throughout: it reads of a.sums what it has written itself. */
template <typename S, int V, typename Room, typename Hits>
TD_DEVICE void
scatter_halves (const TdRowsParams &a, Room &mine, Hits &hits)
{
  int32_t *first_of = a.first_of + (int64_t)blockIdx.y * a.rows;
  const int64_t c0 = (blockIdx.y * TD_BLOCK + threadIdx.x) * (int64_t)V;
  const int64_t step = gridDim.y * (int64_t)TD_BLOCK * V;
  Share share;

  share.open (a);
  for (int64_t row = share.first + threadIdx.x; row < share.end; row += TD_BLOCK)
    first_of[row] = -1;
  __syncthreads ();
  for (int64_t begin = 0; begin < a.n; begin += BATCH)
    {
      const int all = own_of_batch (a, share, begin, mine, hits);

      /* The first of each row, by one thread, before any is added. */
      if (threadIdx.x == 0)
        for (int k = 0; k < all; k++)
          {
            const int64_t row = integer_at (a.index, a.index_dtype, begin + mine[k]);

            if (first_of[row] < 0)
              first_of[row] = (int32_t)(begin + mine[k]);
          }
      __syncthreads ();
      for (int k = 0; k < all; k++)
        {
          const int64_t from = begin + mine[k];
          const int64_t to = integer_at (a.index, a.index_dtype, from), sum = first_of[to];

          for (int64_t c = c0; c < a.columns; c += step)
            add_to_sum<S, V> (a, from, to, sum, c);
        }
      __syncthreads ();
    }
  for (int64_t row = share.first; row < share.end; row++)
    {
      const int64_t sum = first_of[row];

      for (int64_t c = c0; sum >= 0 && c < a.columns; c += step)
        round_sum<S, V> (a, row, sum, c);
    }
}

#define ADDS(S, name)                                                                          \
  TD_KERNEL (td_add_walk_##name, TdWalkParams)                                                 \
  {                                                                                            \
    add_walk<S> (a);                                                                           \
  }
#define SCATTER(S, name)                                                                       \
  TD_KERNEL (td_scatter_##name, TdRowsParams)                                                  \
  {                                                                                            \
    TD_SHARED (uint16_t, mine, BATCH);                                                         \
    TD_SHARED (uint32_t, hits, HITS);                                                          \
                                                                                               \
    if (a.packs)                                                                               \
      scatter<S, Wide<S>::AT_ONCE> (a, mine, hits);                                            \
    else                                                                                       \
      scatter<S, 1> (a, mine, hits);                                                           \
  }
#define SCATTER_HALVES(S, name)                                                                \
  TD_KERNEL (td_scatter_##name, TdRowsParams)                                                  \
  {                                                                                            \
    TD_SHARED (uint16_t, mine, BATCH);                                                         \
    TD_SHARED (uint32_t, hits, HITS);                                                          \
                                                                                               \
    if (a.packs)                                                                               \
      scatter_halves<S, TD_PACK> (a, mine, hits);                                              \
    else                                                                                       \
      scatter_halves<S, 1> (a, mine, hits);                                                    \
  }
ADDS (float, f32)
ADDS (double, f64)
ADDS (int32_t, i32)
ADDS (int64_t, i64)
ADDS (td_f16, f16)
ADDS (td_bf16, bf16)
SCATTER (float, f32)
SCATTER (double, f64)
SCATTER (int32_t, i32)
SCATTER (int64_t, i64)
SCATTER_HALVES (td_f16, f16)
SCATTER_HALVES (td_bf16, bf16)

TD_DEVICE int64_t
first_bad (const TdRowsParams &a, int64_t from, int64_t step)
{
  for (int64_t i = from; i < a.n; i += step)
    {
      const int64_t v = integer_at (a.index, a.index_dtype, i);

      if ((v < 0 || v >= a.limit) && v != a.ignore)
        return i;
    }
  return a.n;
}

/* Nobody waits: what is found stays till the host has taken it.  The run is written last. */
TD_DEVICE void
leave (const TdRowsParams &a, int64_t first)
{
  volatile int64_t *found = a.result, *any_bad = a.any_bad;
  const uint64_t run = ++*a.runs;

  if (first >= a.n || found[0] != 0)
    return;
  found[1] = first;
  found[2] = integer_at (a.index, a.index_dtype, first);
  __threadfence_system ();
  found[0] = (int64_t)run;
  __threadfence_system ();
  *any_bad = 1;
}

/* The first place of a block whose index is out of range, to from[block] (n: there is none);
 * then the first of all blocks, with its value. */
TD_KERNEL (td_check_index, TdRowsParams)
{
  TD_SHARED (int64_t, firsts, TD_BLOCK / TD_WARP);
  int64_t first = first_bad (a, thread_index (), n_threads ());

  first = -largest_of_group (-first, TD_BLOCK, firsts);
  if (threadIdx.x == 0)
    ((int64_t *)a.to)[blockIdx.x] = first;
}

/* rows: how many blocks there were. */
TD_KERNEL (td_check_index_end, TdRowsParams)
{
  TD_SHARED (int64_t, firsts, TD_BLOCK / TD_WARP);
  int64_t first = a.n;

  for (int64_t k = threadIdx.x; k < a.rows; k += TD_BLOCK)
    {
      const int64_t other = ((const int64_t *)a.to)[k];

      first = other < first ? other : first;
    }
  first = -largest_of_group (-first, TD_BLOCK, firsts);
  if (threadIdx.x == 0 && a.runs != nullptr)
    leave (a, first);
  else if (threadIdx.x == 0)
    {
      a.result[0] = first < a.n ? first : -1;
      a.result[1] = first < a.n ? integer_at (a.index, a.index_dtype, first) : 0;
    }
}

/* Both for few indices: one block. */
TD_KERNEL (td_check_index_few, TdRowsParams)
{
  TD_SHARED (int64_t, firsts, TD_BLOCK / TD_WARP);
  const int64_t first
      = -largest_of_group (-first_bad (a, threadIdx.x, TD_BLOCK), TD_BLOCK, firsts);

  if (threadIdx.x == 0)
    leave (a, first);
}
#endif
