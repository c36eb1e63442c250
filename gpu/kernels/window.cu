/* Pooling: a thread for each number that comes out, gradients gathered from the windows that a
 * place lies under.  D axes, those that are not there of size 1.  Places are counted in I: 32
 * bits where all of an array fits.  Windows of two by two that lie side by side, the most
 * common, are taken several at once.
 *
 * SPDX-License-Identifier: MIT */
#include "count.cuh"
#include "places.cuh"

/* n / value, of which d is the divisor. */
TD_DEVICE int32_t
quotient (int32_t n, int64_t, const TdDivisor &d)
{
  return (int32_t)divide ((uint32_t)n, d);
}

TD_DEVICE int64_t
quotient (int64_t n, int64_t value, const TdDivisor &)
{
  return n / value;
}

/* Places of `index` in a row-major box, by divisors where there are some. */
template <typename I, int D>
TD_DEVICE void
split (I index, const int64_t *dim, const TdDivisor *by, I *place)
{
#pragma unroll
  for (int i = D - 1; i > 0; i--)
    {
      const I rest = quotient (index, dim[i], by[i]);

      place[i] = index - rest * (I)dim[i];
      index = rest;
    }
  place[0] = index;
}

/* One window: where it begins, what of it lies inside the image, how many elements that are. */
template <typename I, int D> struct Window
{
  I first[D], begin[D], end[D], covered;

  TD_MEMBER void
  open (const TdPoolParams &a, const I *place)
  {
    covered = 1;
#pragma unroll
    for (int i = 0; i < D; i++)
      {
        const int64_t at = place[i];
        const I size = (I)a.size[i];

        first[i] = a.adaptive ? (I)(at * a.size[i] / a.n_places[i])
                              : place[i] * (I)a.stride[i] - (I)a.pad[i];
        end[i] = a.adaptive ? (I)(((at + 1) * a.size[i] + a.n_places[i] - 1) / a.n_places[i])
                            : first[i] + (I)a.ksize[i];
        begin[i] = first[i] > 0 ? first[i] : 0;
        end[i] = end[i] < size ? end[i] : size;
        covered *= end[i] > begin[i] ? end[i] - begin[i] : 0;
      }
  }

  TD_MEMBER double
  divisor (const TdPoolParams &a) const
  {
    return a.divisor == TD_POOL_BY_ONE      ? 1
           : a.divisor == TD_POOL_BY_WINDOW ? (double)a.places
           : covered > 0                    ? (double)covered
                                            : 1;
  }
};

/* Which of the places of its image an element of what comes out is at, and where on the other
 * side, whose channels have `others`, its channel begins: the places of a channel are a.inner
 * apart. */
template <typename I> struct Plane
{
  I place, other;

  TD_MEMBER void
  open (const TdPoolParams &a, I element, int64_t own, int64_t others)
  {
    if (a.inner == 1)
      {
        const I plane = quotient (element, own, a.by_own);

        place = element - plane * (I)own;
        other = plane * (I)others;
      }
    else
      {
        const I inner = (I)a.inner, at = quotient (element, a.inner, a.by_inner);
        const I channel = element - at * inner, image = quotient (at, own, a.by_own);

        place = at - image * (I)own;
        other = image * (I)others * inner + channel;
      }
  }
};

/* The windows [low, high) that element `at` of an image lies under. */
template <typename I, int D>
TD_DEVICE bool
windows_over (const TdPoolParams &a, const I *at, I *low, I *high)
{
  bool any = true;

#pragma unroll
  for (int i = 0; i < D; i++)
    {
      const int64_t place = at[i];
      const I n = (I)a.n_places[i], stride = (I)a.stride[i];
      const I v = at[i] + (I)a.pad[i], before = v - (I)a.ksize[i] + 1;

      low[i] = a.adaptive   ? (I)(place * a.n_places[i] / a.size[i])
               : before > 0 ? quotient (before + stride - 1, stride, a.by_stride[i])
                            : 0;
      high[i] = a.adaptive ? (I)(((place + 1) * a.n_places[i] + a.size[i] - 1) / a.size[i])
                           : quotient (v, stride, a.by_stride[i]) + 1;
      high[i] = high[i] < n ? high[i] : n;
      any = any && low[i] < high[i];
    }
  return any;
}

/* Channels of two axes are taken several at once; of more, one. */
template <typename S, int D> struct AtOnce
{
  enum
  {
    V = D == 2 ? Packed<S>::V : 1
  };
};

/* In what follows a thread has V numbers that lie side by side: channels of one place. */

/* Where windows had their maxima, from 1 on: a byte each, or four. */
template <int V> struct Indices
{
  int32_t v[V];

  template <typename I>
  TD_MEMBER void
  load_as (const void *indices, int64_t at)
  {
    const Pack<I, V> pack = *(const Pack<I, V> *)((const I *)indices + at);

#pragma unroll
    for (int k = 0; k < V; k++)
      v[k] = pack.v[k];
  }

  template <typename I>
  TD_MEMBER void
  store_as (void *indices, int64_t at) const
  {
    Pack<I, V> pack;

#pragma unroll
    for (int k = 0; k < V; k++)
      pack.v[k] = (I)v[k];
    *(Pack<I, V> *)((I *)indices + at) = pack;
  }

  TD_MEMBER void
  load (const TdPoolParams &a, int64_t at)
  {
    if (a.bytes)
      load_as<uint8_t> (a.in0, at);
    else
      load_as<int32_t> (a.in0, at);
  }

  TD_MEMBER void
  store (const TdPoolParams &a, int64_t at) const
  {
    if (a.bytes)
      store_as<uint8_t> (a.index, at);
    else
      store_as<int32_t> (a.index, at);
  }
};

/* Number o and its neighbours of what comes out. */
template <typename S, int V, typename C>
TD_DEVICE void
put (const TdPoolParams &a, int64_t o, const typename Number<S>::T *v, C &counter)
{
  typedef Number<S> N;
  Pack<S, V> pack;

#pragma unroll
  for (int k = 0; k < V; k++)
    {
      pack.v[k] = N::store (v[k]);
      counter.see (N::load (pack.v[k]));
    }
  *(Pack<S, V> *)((S *)a.out + o) = pack;
}

template <typename S, typename I, int D, int V, typename C>
TD_DEVICE void
pool_max (const TdPoolParams &a, C &counter)
{
  typedef Number<S> N;
  typedef typename N::T T;

  for (int64_t o = thread_index () * V; o < a.n * a.pooled; o += n_threads () * V)
    {
      I at[D];
      Indices<V> index;
      T best[V];
      Window<I, D> w;
      Plane<I> p;

      p.open (a, (I)o, a.pooled, a.image);
      const S *x = (const S *)a.in0 + p.other;
      split<I, D> (p.place, a.n_places, a.by_dim, at);
      w.open (a, at);
      for (int i = 0; i < D; i++)
        at[i] = w.begin[i];
#pragma unroll
      for (int k = 0; k < V; k++)
        {
          best[k] = -(T)INFINITY;
          index.v[k] = 0;
        }
      for (I t = 0; t < w.covered; t++, step_on<I, D> (at, w.begin, w.end))
        {
          const Pack<S, V> pack
              = *(const Pack<S, V> *)(x + index_in<I, D> (at, a.size) * (I)a.inner);
          I place = 0;

          for (int i = 0; i < D; i++)
            place = place * (I)a.ksize[i] + at[i] - w.first[i];
#pragma unroll
          for (int k = 0; k < V; k++)
            {
              const T v = N::load (pack.v[k]);

              if (index.v[k] == 0 || v > best[k] || v != v)
                {
                  best[k] = v;
                  index.v[k] = (int32_t)place + 1;
                }
            }
        }
      put<S, V> (a, o, best, counter);
      index.store (a, o);
    }
}

template <typename S, typename I, int D, int V, typename C>
TD_DEVICE void
pool_average (const TdPoolParams &a, C &counter)
{
  typedef Number<S> N;
  typedef typename N::T T;

  for (int64_t o = thread_index () * V; o < a.n * a.pooled; o += n_threads () * V)
    {
      I at[D];
      T sum[V];
      Window<I, D> w;
      Plane<I> p;

      p.open (a, (I)o, a.pooled, a.image);
      const S *x = (const S *)a.in0 + p.other;
      split<I, D> (p.place, a.n_places, a.by_dim, at);
      w.open (a, at);
      for (int i = 0; i < D; i++)
        at[i] = w.begin[i];
#pragma unroll
      for (int k = 0; k < V; k++)
        sum[k] = 0;
      for (I t = 0; t < w.covered; t++, step_on<I, D> (at, w.begin, w.end))
        {
          const Pack<S, V> pack
              = *(const Pack<S, V> *)(x + index_in<I, D> (at, a.size) * (I)a.inner);

#pragma unroll
          for (int k = 0; k < V; k++)
            sum[k] += N::load (pack.v[k]);
        }
#pragma unroll
      for (int k = 0; k < V; k++)
        sum[k] /= (T)w.divisor (a);
      put<S, V> (a, o, sum, counter);
    }
}

/* MAX: what the windows remember to have taken here; else a share of each window. */
template <typename S, typename I, int D, int V, bool MAX, typename C>
TD_DEVICE void
pool_grad (const TdPoolParams &a, C &counter)
{
  typedef Number<S> N;
  typedef typename N::T T;

  for (int64_t x = thread_index () * V; x < a.n * a.image; x += n_threads () * V)
    {
      I at[D], low[D], high[D], o[D], n = 1;
      T sum[V];
      Plane<I> p;

      p.open (a, (I)x, a.image, a.pooled);
      const S *gy = (const S *)(MAX ? a.in1 : a.in0) + p.other;
      split<I, D> (p.place, a.size, a.by_dim, at);
      if (!windows_over<I, D> (a, at, low, high))
        n = 0;
      for (int i = 0; i < D; i++)
        {
          o[i] = low[i];
          n *= high[i] - low[i];
        }
#pragma unroll
      for (int k = 0; k < V; k++)
        sum[k] = 0;
      for (I t = 0; t < n; t++, step_on<I, D> (o, low, high))
        {
          const I from = index_in<I, D> (o, a.n_places) * (I)a.inner;
          const Pack<S, V> g = *(const Pack<S, V> *)(gy + from);

          if (MAX)
            {
              Indices<V> taken;
              I place = 0;

              taken.load (a, p.other + from);
              for (int i = 0; i < D; i++)
                place = place * (I)a.ksize[i] + at[i] - o[i] * (I)a.stride[i] + (I)a.pad[i];
#pragma unroll
              for (int k = 0; k < V; k++)
                sum[k] += taken.v[k] == place + 1 ? N::load (g.v[k]) : (T)0;
            }
          else
            {
              Window<I, D> w;

              w.open (a, o);
#pragma unroll
              for (int k = 0; k < V; k++)
                sum[k] += N::load (g.v[k]) / (T)w.divisor (a);
            }
        }
      put<S, V> (a, x, sum, counter);
    }
}

template <typename S, typename I, int D, int V, typename C>
TD_DEVICE void
pool_max_grad (const TdPoolParams &a, C &counter)
{
  pool_grad<S, I, D, V, true> (a, counter);
}

template <typename S, typename I, int D, int V, typename C>
TD_DEVICE void
pool_average_grad (const TdPoolParams &a, C &counter)
{
  pool_grad<S, I, D, V, false> (a, counter);
}

/* --- windows of two by two, side by side ---
 *
 * A thread takes 16 bytes of two rows of an image, which are N windows: number i of them all
 * has the numbers from i N on of the pooled array. */
template <typename S> struct Strip
{
  enum
  {
    WIDE = 16 / sizeof (S),
    N = WIDE / 2,
    AHEAD = 2 /* in flight */
  };
  Pack<S, WIDE> row[2];

  /* Where its first row begins: rows of an image, and images, lie one behind the other. */
  TD_DEVICE int64_t
  begin (const TdPoolParams &a, uint32_t i)
  {
    return (int64_t)i * WIDE + (int64_t)divide (i, a.by_strip) * a.size[1];
  }

  TD_MEMBER void
  load (const TdPoolParams &a, uint32_t i)
  {
    const S *x = (const S *)a.in0 + begin (a, i);

    row[0] = *(const Pack<S, WIDE> *)x;
    row[1] = *(const Pack<S, WIDE> *)(x + a.size[1]);
  }

  template <typename C>
  TD_MEMBER void
  store (const TdPoolParams &a, uint32_t i, C &counter) const
  {
    S *x = (S *)a.out + begin (a, i);

#pragma unroll
    for (int k = 0; k < 2 * WIDE; k++)
      counter.see (Number<S>::load (row[k / WIDE].v[k % WIDE]));
    *(Pack<S, WIDE> *)x = row[0];
    *(Pack<S, WIDE> *)(x + a.size[1]) = row[1];
  }

  /* Of window w, place t. */
  TD_MEMBER typename Number<S>::T
  at (int w, int t) const
  {
    return Number<S>::load (row[t / 2].v[2 * w + t % 2]);
  }
};

/* What is the divisor of all windows: 1 or 4, so that a product is the quotient. */
template <typename T>
TD_DEVICE T
share_of_pair (const TdPoolParams &a)
{
  return a.divisor == TD_POOL_BY_ONE ? (T)1 : (T)0.25;
}

/* finish (i, strip) for strips of the image, those of one thread loaded before the first is
 * finished. */
template <typename L, typename F>
TD_DEVICE void
each_strip (const TdPoolParams &a, F finish)
{
  const uint32_t step = (uint32_t)n_threads ();

  for (uint32_t i = (uint32_t)thread_index (); i < a.strips; i += L::AHEAD * step)
    {
      L loaded[L::AHEAD];

#pragma unroll
      for (int u = 0; u < L::AHEAD; u++)
        if (i + u * step < a.strips)
          loaded[u].load (a, i + u * step);
#pragma unroll
      for (int u = 0; u < L::AHEAD; u++)
        if (i + u * step < a.strips)
          finish (i + u * step, loaded[u]);
    }
}

template <typename S, typename C>
TD_DEVICE void
pool_max_pairs (const TdPoolParams &a, C &counter)
{
  typedef typename Number<S>::T T;
  constexpr int N = Strip<S>::N;

  each_strip<Strip<S> > (a, [&] (uint32_t i, const Strip<S> &x) {
    Indices<N> index;
    T best[N];

#pragma unroll
    for (int w = 0; w < N; w++)
      {
        best[w] = x.at (w, 0);
        index.v[w] = 1;
#pragma unroll
        for (int t = 1; t < 4; t++)
          {
            const T v = x.at (w, t);
            const bool takes = v > best[w] || v != v;

            best[w] = takes ? v : best[w];
            index.v[w] = takes ? t + 1 : index.v[w];
          }
      }
    put<S, N> (a, (int64_t)i * N, best, counter);
    index.store (a, (int64_t)i * N);
  });
}

template <typename S, typename C>
TD_DEVICE void
pool_average_pairs (const TdPoolParams &a, C &counter)
{
  typedef typename Number<S>::T T;
  constexpr int N = Strip<S>::N;
  const T share = share_of_pair<T> (a);

  each_strip<Strip<S> > (a, [&] (uint32_t i, const Strip<S> &x) {
    T sum[N];

#pragma unroll
    for (int w = 0; w < N; w++)
      {
        sum[w] = 0;
#pragma unroll
        for (int t = 0; t < 4; t++)
          sum[w] += x.at (w, t);
        sum[w] *= share;
      }
    put<S, N> (a, (int64_t)i * N, sum, counter);
  });
}

/* What a strip's gradient is of: those of its windows, and which places they took. */
template <typename S, bool MAX> struct Pairs
{
  enum
  {
    N = Strip<S>::N,
    AHEAD = 2
  };
  Pack<S, N> gy;
  Indices<N> taken;

  TD_MEMBER void
  load (const TdPoolParams &a, uint32_t i)
  {
    gy = *(const Pack<S, N> *)((const S *)(MAX ? a.in1 : a.in0) + (int64_t)i * N);
    if (MAX)
      taken.load (a, (int64_t)i * N);
  }
};

template <typename S, bool MAX, typename C>
TD_DEVICE void
pool_grad_pairs (const TdPoolParams &a, C &counter)
{
  typedef Number<S> N;
  typedef typename N::T T;
  const T share = share_of_pair<T> (a);

  each_strip<Pairs<S, MAX> > (a, [&] (uint32_t i, const Pairs<S, MAX> &of) {
    Strip<S> x;

#pragma unroll
    for (int w = 0; w < Strip<S>::N; w++)
#pragma unroll
      for (int t = 0; t < 4; t++)
        {
          const T g = N::load (of.gy.v[w]);

          /* The sum of one number: -0 becomes 0. */
          x.row[t / 2].v[2 * w + t % 2] = N::store ((T)0
                                                    + (!MAX                     ? g * share
                                                       : of.taken.v[w] == t + 1 ? g
                                                                                : (T)0));
        }
    x.store (a, i, counter);
  });
}

template <typename S, typename C>
TD_DEVICE void
pool_max_grad_pairs (const TdPoolParams &a, C &counter)
{
  pool_grad_pairs<S, true> (a, counter);
}

template <typename S, typename C>
TD_DEVICE void
pool_average_grad_pairs (const TdPoolParams &a, C &counter)
{
  pool_grad_pairs<S, false> (a, counter);
}

template <typename S, int D>
TD_DEVICE void
pool_gather (const TdPoolParams &a)
{
  for (int64_t o = thread_index (); o < a.n * a.pooled; o += n_threads ())
    {
      Indices<1> taken;
      int64_t at[D], place[D];

      taken.load (a, o);
      const int32_t index = taken.v[0] - 1;
      bool inside = index >= 0 && index < a.places;
      S v = {};
      Plane<int64_t> p;

      p.open (a, o, a.pooled, a.image);
      const S *x = (const S *)a.in1 + p.other;
      places_of<D> (p.place, a.n_places, at);
      places_of<D> (index, a.ksize, place);
      for (int i = 0; i < D; i++)
        {
          at[i] = at[i] * a.stride[i] - a.pad[i] + place[i];
          inside = inside && at[i] >= 0 && at[i] < a.size[i];
        }
      if (inside)
        v = x[index_in<int64_t, D> (at, a.size) * a.inner];
      ((S *)a.out)[o] = v;
    }
}

#define POOL_KERNEL(each, pairs, S, D, name)                                                   \
  TD_STATS_KERNEL (each##_##D##d_##name, TdPoolParams)                                         \
  {                                                                                            \
    TD_COUNTER (Number<S>::T);                                                                 \
                                                                                               \
    if (D == 2 && a.strips > 0)                                                                \
      pairs<S> (a, counter);                                                                   \
    else if (D == 2 && a.packs)                                                                \
      each<S, int32_t, D, AtOnce<S, D>::V> (a, counter);                                       \
    else if (D == 2 && a.narrow)                                                               \
      each<S, int32_t, D, 1> (a, counter);                                                     \
    else                                                                                       \
      each<S, int64_t, D, 1> (a, counter);                                                     \
    TD_COUNTER_LEAVE (a.parts);                                                                \
  }
#define POOLS(S, D, name)                                                                      \
  POOL_KERNEL (pool_max, pool_max_pairs, S, D, name)                                           \
  POOL_KERNEL (pool_max_grad, pool_max_grad_pairs, S, D, name)                                 \
  POOL_KERNEL (pool_average, pool_average_pairs, S, D, name)                                   \
  POOL_KERNEL (pool_average_grad, pool_average_grad_pairs, S, D, name)
POOLS (float, 2, f32)
POOLS (double, 2, f64)
POOLS (td_f16, 2, f16)
POOLS (td_bf16, 2, bf16)
POOLS (float, 6, f32)
POOLS (double, 6, f64)
POOLS (td_f16, 6, f16)
POOLS (td_bf16, 6, bf16)

#if !defined(TD_KERNELS_COUNT)
#define GATHERS(S, D, name)                                                                    \
  TD_KERNEL (td_pool_gather_##D##d_##name, TdPoolParams)                                       \
  {                                                                                            \
    pool_gather<S, D> (a);                                                                     \
  }
GATHERS (float, 2, f32)
GATHERS (double, 2, f64)
GATHERS (td_f16, 2, f16)
GATHERS (td_bf16, 2, bf16)
GATHERS (float, 6, f32)
GATHERS (double, 6, f64)
GATHERS (td_f16, 6, f16)
GATHERS (td_bf16, 6, bf16)
#endif
