/* Attention in floats, which no library has: a block takes a tile of queries, or of keys, and
 * meets one tile of the others after the other, with the largest score and the sum so far.  The
 * matrix of all weights is never in memory.
 *
 * A tile is N rows of 16 packs; a thread has ROWS x V numbers of what comes out of two tiles.
 * Products are fused multiply-adds: a sum over so many terms has no bits in common with another
 * order's anyway.
 *
 * *Source*: Milakov and Gimelshein, 2018 (online softmax); Dao et al., 2022; Dao, 2023.
 * SPDX-License-Identifier: MIT */
#include "attention.h"
#include "kernel.cuh"

template <typename T> struct Tile
{
  enum
  {
    V = TD_WIDE_BYTES / sizeof (T),
    N = TD_ATTENTION_PACKS * V,
    Y = TD_ATTENTION_BLOCK / TD_ATTENTION_PACKS, /* threads below each other */
    ROWS = N / Y
  };
};

/* Numbers of a thread: rows y ROWS and up, columns x V and up. */
template <typename T> struct Numbers
{
  T v[Tile<T>::ROWS][Tile<T>::V];

  TD_MEMBER
  Numbers () : v{}
  {
  }
};

/* v, of which the compiler does not know that it is the same each time: what is made of it is
 * made again where it is needed, and takes no registers in between. */
TD_DEVICE int
anew (int v)
{
#if defined(__CUDACC__)
  asm volatile("" : "+r"(v));
#endif
  return v;
}

TD_DEVICE int
thread_x ()
{
  return threadIdx.x % TD_ATTENTION_PACKS;
}

TD_DEVICE int
thread_y ()
{
  return threadIdx.x / TD_ATTENTION_PACKS;
}

/* Where pack c of a row is: the rows that a warp reads at once lie in different banks. */
template <typename T>
TD_DEVICE int
place_of (int row, int c)
{
  return row * TD_ATTENTION_PACKS + (c ^ (row / Tile<T>::V & 7));
}

TD_DEVICE float
add_product (float a, float b, float c)
{
  return fmaf (a, b, c);
}

TD_DEVICE double
add_product (double a, double b, double c)
{
  return fma (a, b, c);
}

/* e^x for x <= 0, to 2 units in the last place, and as many more as x log2 e loses: |x| / 2^24
 * of it.  Large weights lose none. */
TD_DEVICE float
exp_of (float x)
{
#if defined(__CUDACC__)
  float y;

  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504088896341f));
  return y;
#else
  return td_exp_f32 (x);
#endif
}

TD_DEVICE double
exp_of (double x)
{
  return exp (x);
}

/* Copy a pack to the tile without waiting for it, or 0 where it is not there. */
template <typename T, typename Room>
TD_DEVICE void
copy_pack (Room &tile, int place, const T *from, bool there)
{
#if defined(__CUDACC__)
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(
                   (uint32_t)__cvta_generic_to_shared (&tile[place])),
               "l"(from), "r"(there ? 16 : 0)
               : "memory");
#else
  Pack<T, Tile<T>::V> pack = {};

  tile[place] = there ? *(const Pack<T, Tile<T>::V> *)from : pack;
#endif
}

/* Before the barrier after which tiles are read. */
TD_DEVICE void
wait_for_copies ()
{
#if defined(__CUDACC__)
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/* A tile of x (rows, width) from `row` and `column` on, 0 beyond its ends. */
template <typename T, typename Room>
TD_DEVICE void
load_tile (Room &tile, const T *x, int row, int rows, int column, int width, bool packs)
{
  typedef Tile<T> L;
  const int c = thread_x (), first = thread_y (), at = column + c * L::V;
  const int left = at < width ? rows - row : 0;
  const T *from = x + (int64_t)row * width + at;

  if (packs)
    {
#pragma unroll 2 /* registers are few while there are sums */
      for (int k = 0; k < L::ROWS; k++)
        {
          const int r = first + k * L::Y;

          copy_pack (tile, place_of<T> (r, c), r < left ? from + (int64_t)r * width : x,
                     r < left);
        }
      return;
    }
#pragma unroll 1
  for (int r = first; r < L::N; r += L::Y)
    {
      Pack<T, L::V> pack;

#pragma unroll
      for (int j = 0; j < L::V; j++)
        pack.v[j] = r < left && at + j < width ? from[(int64_t)r * width + j] : (T)0;
      tile[place_of<T> (r, c)] = pack;
    }
}

/* Rows of a thread's numbers, as a tile that the next product reads. */
template <typename T, typename Room>
TD_DEVICE void
put_tile (Room &tile, const Numbers<T> &from)
{
  typedef Tile<T> L;

#pragma unroll
  for (int i = 0; i < L::ROWS; i++)
    {
      Pack<T, L::V> pack;

#pragma unroll
      for (int j = 0; j < L::V; j++)
        pack.v[j] = from.v[i][j];
      tile[place_of<T> (thread_y () * L::ROWS + i, thread_x ())] = pack;
    }
}

/* to += a b^T, over the first n packs of their rows. */
template <typename T, typename Room>
TD_DEVICE void
add_dots (Numbers<T> &to, Room &a, Room &b, int n)
{
  typedef Tile<T> L;

#pragma unroll 1
  for (int c = 0; c < n; c++)
    {
      Pack<T, L::V> of_b[L::V];

#pragma unroll
      for (int j = 0; j < L::V; j++)
        of_b[j] = b[place_of<T> (thread_x () * L::V + j, c)];
#pragma unroll
      for (int i = 0; i < L::ROWS; i++)
        {
          const Pack<T, L::V> of_a = a[place_of<T> (thread_y () * L::ROWS + i, c)];

#pragma unroll
          for (int k = 0; k < L::V; k++)
#pragma unroll
            for (int j = 0; j < L::V; j++)
              to.v[i][j] = add_product (of_a.v[k], of_b[j].v[k], to.v[i][j]);
        }
    }
}

/* to += a b. */
template <typename T, typename Room>
TD_DEVICE void
add_rows (Numbers<T> &to, Room &a, Room &b)
{
  typedef Tile<T> L;

#pragma unroll 1
  for (int c = 0; c < TD_ATTENTION_PACKS; c++)
    {
      Pack<T, L::V> of_b[L::V];

#pragma unroll
      for (int k = 0; k < L::V; k++)
        of_b[k] = b[place_of<T> (c * L::V + k, thread_x ())];
#pragma unroll
      for (int i = 0; i < L::ROWS; i++)
        {
          const Pack<T, L::V> of_a = a[place_of<T> (thread_y () * L::ROWS + i, c)];

#pragma unroll
          for (int k = 0; k < L::V; k++)
#pragma unroll
            for (int j = 0; j < L::V; j++)
              to.v[i][j] = add_product (of_a.v[k], of_b[k].v[j], to.v[i][j]);
        }
    }
}

/* to += x y^T for tiles of two arrays of `width` columns, of which `tile_x` and `tile_y` hold
 * one part after the other; all threads have done with these before, and all have loaded after.
 * `again`: tile_x has what it needs. */
template <typename T, typename Room>
TD_DEVICE void
add_all_dots (Numbers<T> &to, Room &tile_x, const T *x, int x_row, int x_rows, Room &tile_y,
              const T *y, int y_row, int y_rows, int width, bool packs, bool again)
{
  typedef Tile<T> L;
  int at = 0;

  do
    {
      const int left = (width - at + L::V - 1) / L::V;

      __syncthreads ();
      if (!again || width > L::N)
        load_tile (tile_x, x, x_row, x_rows, at, width, packs);
      load_tile (tile_y, y, y_row, y_rows, at, width, packs);
      wait_for_copies ();
      __syncthreads ();
      add_dots (to, tile_x, tile_y, left < TD_ATTENTION_PACKS ? left : (int)TD_ATTENTION_PACKS);
      at += L::N;
    }
  while (at < width);
}

/* Write a thread's numbers to rows of y (rows, width). */
template <typename T>
TD_DEVICE void
put_rows (const Numbers<T> &from, T *y, int row, int rows, int column, int width, bool packs)
{
  typedef Tile<T> L;
  const int at = column + thread_x () * L::V;

#pragma unroll
  for (int i = 0; i < L::ROWS; i++)
    {
      const int k = row + thread_y () * L::ROWS + i;
      T *to = y + (int64_t)k * width + at;
      Pack<T, L::V> pack;

#pragma unroll
      for (int j = 0; j < L::V; j++)
        pack.v[j] = from.v[i][j];
      if (k >= rows || at >= width)
        continue;
      if (packs)
        *(Pack<T, L::V> *)to = pack;
      else
        for (int j = 0; j < L::V; j++)
          if (at + j < width)
            to[j] = pack.v[j];
    }
}

/* --- which keys a query sees --- */

/* TdAttention's numbers, of which all are small. */
struct Sizes
{
  int batch, n_q, n_k, d, d_v, mask_every;
  bool causal;

  TD_MEMBER explicit Sizes (const TdAttention &a)
      : batch ((int)a.batch), n_q ((int)a.n_q), n_k ((int)a.n_k), d ((int)a.d),
        d_v ((int)a.d_v), mask_every ((int)a.mask_every), causal (a.causal)
  {
  }
};

/* How many keys, from the first, query i sees. */
TD_DEVICE int
visible (const Sizes &a, int i)
{
  const int n = i + 1 + a.n_k - a.n_q;

  return !a.causal || n > a.n_k ? a.n_k : n < 0 ? 0 : n;
}

/* Products become scores, -inf where a query does not see a key.  BY_KEYS: rows are keys. */
template <typename T, bool BY_KEYS>
TD_DEVICE void
score (const TdAttentionParams &p, int b, int i0, int j0, Numbers<T> &s)
{
  typedef Tile<T> L;
  const Sizes a (p.a);
  const int queries = a.n_q - i0, keys = a.n_k - j0;
  const int first = a.causal ? i0 + 1 + a.n_k - a.n_q - j0 : 2 * L::N;
  const T *mask
      = p.mask != nullptr
            ? (const T *)p.mask + ((int64_t)(b / a.mask_every) * a.n_q + i0) * a.n_k + j0
            : nullptr;

#pragma unroll
  for (int i = 0; i < L::ROWS; i++)
#pragma unroll
    for (int j = 0; j < L::V; j++)
      s.v[i][j] *= (T)p.a.scale;
  if (mask == nullptr && queries >= L::N && keys >= L::N && first >= L::N)
    return;
#pragma unroll
  for (int i = 0; i < L::ROWS; i++)
#pragma unroll
    for (int j = 0; j < L::V; j++)
      {
        const int row = anew (thread_y ()) * L::ROWS + i;
        const int column = anew (thread_x ()) * L::V + j;
        const int query = BY_KEYS ? column : row, key = BY_KEYS ? row : column;

        if (query >= queries || key >= keys || key >= first + query
            || (mask != nullptr && mask[(int64_t)query * a.n_k + key] == 0))
          s.v[i][j] = -(T)INFINITY;
      }
}

/* --- forward --- */

/* Scores become weights against each row's largest score so far; what was against the largest
 * before is shrunk. */
template <typename T>
TD_DEVICE void
soften (Numbers<T> &s, T (&top)[Tile<T>::ROWS], T (&sum)[Tile<T>::ROWS], Numbers<T> &y)
{
  typedef Tile<T> L;

#pragma unroll
  for (int i = 0; i < L::ROWS; i++)
    {
      T best = top[i], shrink, base;

#pragma unroll
      for (int j = 0; j < L::V; j++)
        best = s.v[i][j] > best ? s.v[i][j] : best;
#pragma unroll
      for (int k = TD_ATTENTION_PACKS / 2; k > 0; k /= 2)
        {
          const T other = from_lane (best, k);

          best = other > best ? other : best;
        }
      base = best == -(T)INFINITY ? (T)0 : best; /* e^-inf is 0, and so is all of it */
      shrink = exp_of (top[i] - base);
      top[i] = best;
      sum[i] *= shrink;
#pragma unroll
      for (int j = 0; j < L::V; j++)
        {
          s.v[i][j] = exp_of (s.v[i][j] - base);
          sum[i] += s.v[i][j];
          y.v[i][j] *= shrink;
        }
    }
}

/* Each row's sum over all threads that have some of it, its logarithm, and y over it. */
template <typename T>
TD_DEVICE void
finish (const TdAttentionParams &p, int b, int i0, bool logs, const T (&top)[Tile<T>::ROWS],
        const T (&sum)[Tile<T>::ROWS], Numbers<T> &y)
{
  typedef Tile<T> L;

#pragma unroll
  for (int i = 0; i < L::ROWS; i++)
    {
      const int row = i0 + thread_y () * L::ROWS + i;
      const T total = sum_of_lanes (sum[i], TD_ATTENTION_PACKS);

#pragma unroll
      for (int j = 0; j < L::V; j++)
        y.v[i][j] = total != 0 ? y.v[i][j] / total : (T)0;
      if (logs && thread_x () == 0 && row < (int)p.a.n_q)
        ((T *)p.out2)[(int64_t)b * p.a.n_q + row]
            = total != 0 ? (T)((double)top[i] + log ((double)total)) : (T)INFINITY;
    }
}

/* A block for N queries and N columns of v; those that see most keys begin. */
template <typename T, typename Room>
TD_DEVICE void
attend (const TdAttentionParams &p, Room &queries, Room &keys, Room &values)
{
  typedef Tile<T> L;
  const Sizes a (p.a);
  const int parts = (a.d_v + L::N - 1) / L::N, tiles = (a.n_q + L::N - 1) / L::N;
  const int b = blockIdx.x % a.batch, column = blockIdx.x / a.batch % parts * L::N;
  const int i0 = (tiles - 1 - blockIdx.x / a.batch / parts) * L::N;
  const int end = visible (a, (i0 + L::N < a.n_q ? i0 + L::N : a.n_q) - 1);
  const T *q = (const T *)p.q + (int64_t)b * a.n_q * a.d,
          *k = (const T *)p.k + (int64_t)b * a.n_k * a.d;
  const T *v = (const T *)p.v + (int64_t)b * a.n_k * a.d_v;
  T top[L::ROWS], sum[L::ROWS];
  Numbers<T> y;

#pragma unroll
  for (int i = 0; i < L::ROWS; i++)
    {
      top[i] = -(T)INFINITY;
      sum[i] = 0;
    }
  for (int j0 = 0; j0 < end; j0 += L::N)
    {
      Numbers<T> s;

      add_all_dots (s, queries, q, i0, a.n_q, keys, k, j0, a.n_k, a.d, p.packs, j0 > 0);
      load_tile (values, v, anew (j0), a.n_k, column, a.d_v, p.packs);
      score<T, false> (p, b, i0, j0, s);
      soften (s, top, sum, y);
      wait_for_copies ();
      __syncthreads (); /* keys are read, values are there */
      put_tile (keys, s);
      __syncwarp (); /* a warp reads the rows it wrote */
      add_rows (y, keys, values);
    }
  finish (p, b, i0, column == 0, top, sum, y);
  put_rows (y, (T *)p.out + (int64_t)b * a.n_q * a.d_v, i0, a.n_q, column, a.d_v, p.packs);
}

/* --- backward --- */

/* delta = y . gy of each query: a lane for each pack of a row, or of some. */
template <typename T>
TD_DEVICE void
deltas (const TdAttentionParams &p)
{
  const int64_t n = p.a.batch * p.a.n_q;

  for (int64_t first = (int64_t)blockIdx.x * Tile<T>::Y; first < n;
       first += (int64_t)gridDim.x * Tile<T>::Y)
    {
      const int64_t i = first + thread_y (), at = i * p.a.d_v;
      double sum = 0;

      for (int64_t c = thread_x (); c < p.a.d_v && i < n; c += TD_ATTENTION_PACKS)
        sum += (double)(((const T *)p.y)[at + c] * ((const T *)p.gy)[at + c]);
      sum = sum_of_lanes (sum, TD_ATTENTION_PACKS);
      if (i < n && thread_x () == 0)
        ((T *)p.delta)[i] = (T)sum;
    }
}

/* Scores s and slopes g of their weights become the weights and the slopes of the scores; what
 * is hidden has none, whatever it is. */
template <typename T, bool BY_KEYS>
TD_DEVICE void
weigh (const TdAttentionParams &p, int b, int i0, Numbers<T> &s, Numbers<T> &g)
{
  typedef Tile<T> L;
  const int last = (int)p.a.n_q - 1 - i0;
  const T *lse = (const T *)p.lse + (int64_t)b * p.a.n_q + i0;
  const T *delta = (const T *)p.delta + (int64_t)b * p.a.n_q + i0;

#pragma unroll
  for (int i = 0; i < L::ROWS; i++)
#pragma unroll
    for (int j = 0; j < L::V; j++)
      {
        const int query = BY_KEYS ? thread_x () * L::V + j : thread_y () * L::ROWS + i;
        const int at = query < last ? query : last;
        const bool hidden = s.v[i][j] == -(T)INFINITY;
        const T weight = exp_of (s.v[i][j] - lse[at]);

        s.v[i][j] = hidden ? (T)0 : weight;
        g.v[i][j] = hidden ? (T)0 : weight * (g.v[i][j] - delta[at]) * (T)p.a.scale;
      }
}

/* A block for N queries and N columns of their gradient. */
template <typename T, typename Room>
TD_DEVICE void
grad_query (const TdAttentionParams &p, Room &rows, Room &keys, Room &values)
{
  typedef Tile<T> L;
  const Sizes a (p.a);
  const int parts = (a.d + L::N - 1) / L::N, tiles = (a.n_q + L::N - 1) / L::N;
  const int b = blockIdx.x % a.batch, column = blockIdx.x / a.batch % parts * L::N;
  const int i0 = (tiles - 1 - blockIdx.x / a.batch / parts) * L::N;
  const int end = visible (a, (i0 + L::N < a.n_q ? i0 + L::N : a.n_q) - 1);
  const T *q = (const T *)p.q + (int64_t)b * a.n_q * a.d,
          *k = (const T *)p.k + (int64_t)b * a.n_k * a.d;
  const T *v = (const T *)p.v + (int64_t)b * a.n_k * a.d_v,
          *gy = (const T *)p.gy + (int64_t)b * a.n_q * a.d_v;
  Numbers<T> gq;

  for (int j0 = 0; j0 < end; j0 += L::N)
    {
      Numbers<T> s, g;

      add_all_dots (s, rows, q, i0, a.n_q, keys, k, j0, a.n_k, a.d, p.packs, false);
      add_all_dots (g, rows, gy, i0, a.n_q, values, v, j0, a.n_k, a.d_v, p.packs, false);
      score<T, false> (p, b, i0, j0, s);
      weigh<T, false> (p, b, i0, s, g);
      __syncthreads ();
      if (a.d > L::N)
        load_tile (keys, k, j0, a.n_k, column, a.d, p.packs);
      put_tile (values, g);
      wait_for_copies ();
      __syncthreads ();
      add_rows (gq, values, keys);
    }
  put_rows (gq, (T *)p.out + (int64_t)b * a.n_q * a.d, i0, a.n_q, column, a.d, p.packs);
}

/* A block for N keys and N columns of their gradients. */
template <typename T, typename Room>
TD_DEVICE void
grad_key (const TdAttentionParams &p, Room &rows, Room &queries, Room &slopes)
{
  typedef Tile<T> L;
  const Sizes a (p.a);
  const int b = blockIdx.x % a.batch, tiles = (a.n_k + L::N - 1) / L::N;
  const int j0 = blockIdx.x / a.batch % tiles * L::N;
  const int column = blockIdx.x / a.batch / tiles * L::N;
  const int before = j0 - (a.n_k - a.n_q); /* queries that do not see so far */
  const int begin = a.causal && before > 0 ? before / L::N * L::N : 0;
  const T *q = (const T *)p.q + (int64_t)b * a.n_q * a.d,
          *k = (const T *)p.k + (int64_t)b * a.n_k * a.d;
  const T *v = (const T *)p.v + (int64_t)b * a.n_k * a.d_v,
          *gy = (const T *)p.gy + (int64_t)b * a.n_q * a.d_v;
  Numbers<T> gk, gv;

  for (int i0 = begin; i0 < a.n_q; i0 += L::N)
    {
      Numbers<T> s, g;

      add_all_dots (s, rows, k, j0, a.n_k, queries, q, i0, a.n_q, a.d, p.packs, false);
      add_all_dots (g, rows, v, j0, a.n_k, slopes, gy, i0, a.n_q, a.d_v, p.packs, false);
      score<T, true> (p, b, i0, j0, s);
      weigh<T, true> (p, b, i0, s, g);
      __syncthreads ();
      if (a.d_v > L::N)
        load_tile (slopes, gy, i0, a.n_q, column, a.d_v, p.packs);
      put_tile (rows, s);
      wait_for_copies ();
      __syncthreads ();
      add_rows (gv, rows, slopes);
      __syncthreads ();
      if (a.d > L::N)
        load_tile (queries, q, i0, a.n_q, column, a.d, p.packs);
      put_tile (rows, g);
      wait_for_copies ();
      __syncthreads ();
      add_rows (gk, rows, queries);
    }
  put_rows (gk, (T *)p.out2 + (int64_t)b * a.n_k * a.d, j0, a.n_k, column, a.d, p.packs);
  put_rows (gv, (T *)p.out3 + (int64_t)b * a.n_k * a.d_v, j0, a.n_k, column, a.d_v, p.packs);
}

/* --- kernels --- */

/* So many blocks of a multiprocessor: as their shared memory and their registers allow. */
#if defined(__CUDACC__)
#define ATTENTION_KERNEL(name, blocks)                                                         \
  extern "C" __global__ void __launch_bounds__ (TD_ATTENTION_BLOCK, blocks)                    \
      name (const __grid_constant__ TdAttentionParams a)
#else
#define ATTENTION_KERNEL(name, blocks) TD_KERNEL (name, TdAttentionParams)
#endif

#define BY_TILES(T, name, blocks, function)                                                    \
  ATTENTION_KERNEL (name, blocks)                                                              \
  {                                                                                            \
    typedef Pack<T, Tile<T>::V> Packs;                                                         \
    TD_SHARED (Packs, first, Tile<T>::N *TD_ATTENTION_PACKS);                                  \
    TD_SHARED (Packs, second, Tile<T>::N *TD_ATTENTION_PACKS);                                 \
    TD_SHARED (Packs, third, Tile<T>::N *TD_ATTENTION_PACKS);                                  \
                                                                                               \
    function<T> (a, first, second, third);                                                     \
  }

#define ATTENTION(T, name)                                                                     \
  BY_TILES (T, td_attend_##name, 4, attend)                                                    \
  BY_TILES (T, td_attend_grad_query_##name, 3, grad_query)                                     \
  BY_TILES (T, td_attend_grad_key_##name, 3, grad_key)                                         \
  ATTENTION_KERNEL (td_attend_deltas_##name, 8)                                                \
  {                                                                                            \
    deltas<T> (a);                                                                             \
  }
ATTENTION (float, f32)
ATTENTION (double, f64)
