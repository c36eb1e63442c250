/* Pooling, and convolution by its definition: a thread for each number that comes out,
 * gradients gathered from the windows that a place lies under.  D axes, those that are not
 * there of size 1.
 *
 * SPDX-License-Identifier: MIT */
#include "count.cuh"

/* Places of `index` in a row-major box. */
template <int D>
TD_DEVICE void
places_of (int64_t index, const int64_t *dim, int64_t *place)
{
#pragma unroll
  for (int i = D - 1; i > 0; i--)
    {
      place[i] = index % dim[i];
      index /= dim[i];
    }
  place[0] = index;
}

/* The next place of a box [begin, end), row-major. */
template <int D>
TD_DEVICE void
step_on (int64_t *at, const int64_t *begin, const int64_t *end)
{
  bool carry = true;

#pragma unroll
  for (int i = D - 1; i >= 0; i--)
    if (carry)
      {
        carry = ++at[i] == end[i];
        at[i] = carry ? begin[i] : at[i];
      }
}

template <int D>
TD_DEVICE int64_t
index_in (const int64_t *at, const int64_t *dim)
{
  int64_t index = 0;

#pragma unroll
  for (int i = 0; i < D; i++)
    index = index * dim[i] + at[i];
  return index;
}

/* One window: where it begins, what of it lies inside the image, how many elements that are. */
template <int D> struct Window
{
  int64_t first[D], begin[D], end[D], covered;

  TD_MEMBER void
  open (const TdPoolParams &a, const int64_t *place)
  {
    covered = 1;
#pragma unroll
    for (int i = 0; i < D; i++)
      {
        first[i] = a.adaptive ? place[i] * a.size[i] / a.n_places[i]
                              : place[i] * a.stride[i] - a.pad[i];
        end[i] = a.adaptive ? ((place[i] + 1) * a.size[i] + a.n_places[i] - 1) / a.n_places[i]
                            : first[i] + a.ksize[i];
        begin[i] = first[i] > 0 ? first[i] : 0;
        end[i] = end[i] < a.size[i] ? end[i] : a.size[i];
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

/* Which of the `places` of its image an element is at, and where on the other side, which has
 * `others`, its channel begins: the places of a channel are a.inner apart. */
struct Plane
{
  int64_t place, other;

  TD_MEMBER void
  open (const TdPoolParams &a, int64_t element, int64_t places, int64_t others)
  {
    if (a.inner == 1)
      {
        const int64_t plane = element / places;

        place = element - plane * places;
        other = plane * others;
      }
    else
      {
        const int64_t at = element / a.inner, channel = element - at * a.inner;
        const int64_t image = at / places;

        place = at - image * places;
        other = image * others * a.inner + channel;
      }
  }
};

/* The windows [low, high) that element `at` of an image lies under. */
template <int D>
TD_DEVICE bool
windows_over (const TdPoolParams &a, const int64_t *at, int64_t *low, int64_t *high)
{
  bool any = true;

#pragma unroll
  for (int i = 0; i < D; i++)
    {
      const int64_t v = at[i] + a.pad[i], before = v - a.ksize[i] + 1;

      low[i] = a.adaptive   ? at[i] * a.n_places[i] / a.size[i]
               : before > 0 ? (before + a.stride[i] - 1) / a.stride[i]
                            : 0;
      high[i] = a.adaptive ? ((at[i] + 1) * a.n_places[i] + a.size[i] - 1) / a.size[i]
                           : v / a.stride[i] + 1;
      high[i] = high[i] < a.n_places[i] ? high[i] : a.n_places[i];
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

template <typename S, int D, int V, typename C>
TD_DEVICE void
pool_max (const TdPoolParams &a, C &counter)
{
  typedef Number<S> N;
  typedef typename N::T T;

  for (int64_t o = thread_index () * V; o < a.n * a.pooled; o += n_threads () * V)
    {
      int64_t at[D];
      Indices<V> index;
      T best[V];
      Window<D> w;
      Plane p;

      p.open (a, o, a.pooled, a.image);
      const S *x = (const S *)a.in0 + p.other;
      places_of<D> (p.place, a.n_places, at);
      w.open (a, at);
      for (int i = 0; i < D; i++)
        at[i] = w.begin[i];
#pragma unroll
      for (int k = 0; k < V; k++)
        {
          best[k] = -(T)INFINITY;
          index.v[k] = 0;
        }
      for (int64_t t = 0; t < w.covered; t++, step_on<D> (at, w.begin, w.end))
        {
          const Pack<S, V> pack = *(const Pack<S, V> *)(x + index_in<D> (at, a.size) * a.inner);
          int64_t place = 0;

          for (int i = 0; i < D; i++)
            place = place * a.ksize[i] + at[i] - w.first[i];
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

template <typename S, int D, int V, typename C>
TD_DEVICE void
pool_average (const TdPoolParams &a, C &counter)
{
  typedef Number<S> N;
  typedef typename N::T T;

  for (int64_t o = thread_index () * V; o < a.n * a.pooled; o += n_threads () * V)
    {
      int64_t at[D];
      T sum[V];
      Window<D> w;
      Plane p;

      p.open (a, o, a.pooled, a.image);
      const S *x = (const S *)a.in0 + p.other;
      places_of<D> (p.place, a.n_places, at);
      w.open (a, at);
      for (int i = 0; i < D; i++)
        at[i] = w.begin[i];
#pragma unroll
      for (int k = 0; k < V; k++)
        sum[k] = 0;
      for (int64_t t = 0; t < w.covered; t++, step_on<D> (at, w.begin, w.end))
        {
          const Pack<S, V> pack = *(const Pack<S, V> *)(x + index_in<D> (at, a.size) * a.inner);

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
template <typename S, int D, int V, bool MAX, typename C>
TD_DEVICE void
pool_grad (const TdPoolParams &a, C &counter)
{
  typedef Number<S> N;
  typedef typename N::T T;

  for (int64_t x = thread_index () * V; x < a.n * a.image; x += n_threads () * V)
    {
      int64_t at[D], low[D], high[D], o[D], n = 1;
      T sum[V];
      Plane p;

      p.open (a, x, a.image, a.pooled);
      const S *gy = (const S *)(MAX ? a.in1 : a.in0) + p.other;
      places_of<D> (p.place, a.size, at);
      if (!windows_over<D> (a, at, low, high))
        n = 0;
      for (int i = 0; i < D; i++)
        {
          o[i] = low[i];
          n *= high[i] - low[i];
        }
#pragma unroll
      for (int k = 0; k < V; k++)
        sum[k] = 0;
      for (int64_t t = 0; t < n; t++, step_on<D> (o, low, high))
        {
          const int64_t from = index_in<D> (o, a.n_places) * a.inner;
          const Pack<S, V> g = *(const Pack<S, V> *)(gy + from);

          if (MAX)
            {
              Indices<V> taken;
              int64_t place = 0;

              taken.load (a, p.other + from);
              for (int i = 0; i < D; i++)
                place = place * a.ksize[i] + at[i] - o[i] * a.stride[i] + a.pad[i];
#pragma unroll
              for (int k = 0; k < V; k++)
                sum[k] += taken.v[k] == place + 1 ? N::load (g.v[k]) : (T)0;
            }
          else
            {
              Window<D> w;

              w.open (a, o);
#pragma unroll
              for (int k = 0; k < V; k++)
                sum[k] += N::load (g.v[k]) / (T)w.divisor (a);
            }
        }
      put<S, V> (a, x, sum, counter);
    }
}

template <typename S, int D, int V, typename C>
TD_DEVICE void
pool_max_grad (const TdPoolParams &a, C &counter)
{
  pool_grad<S, D, V, true> (a, counter);
}

template <typename S, int D, int V, typename C>
TD_DEVICE void
pool_average_grad (const TdPoolParams &a, C &counter)
{
  pool_grad<S, D, V, false> (a, counter);
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
      Plane p;

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
        v = x[index_in<D> (at, a.size) * a.inner];
      ((S *)a.out)[o] = v;
    }
}

/* --- convolution --- */

template <typename T>
TD_DEVICE void
finish (const TdConvParams &a, int64_t at, T v)
{
  T *out = (T *)a.out + at;

  *out = a.accumulate ? *out + v : v;
}

/* The place of the image under place `u` of the window at pixel `p`; -1 in the padding. */
template <int D>
TD_DEVICE int64_t
place_under (const TdConvParams &a, const int64_t *p, const int64_t *u)
{
  int64_t at[D];
  bool inside = true;

#pragma unroll
  for (int i = 0; i < D; i++)
    {
      at[i] = p[i] * a.stride[i] + u[i] * a.dilate[i] - a.pad[i];
      inside = inside && at[i] >= 0 && at[i] < a.x_dim[i];
    }
  return inside ? index_in<D> (at, a.x_dim) : -1;
}

template <typename T, int D>
TD_DEVICE void
conv_forward (const TdConvParams &a)
{
  for (int64_t y = thread_index (); y < a.n * a.o * a.pixels; y += n_threads ())
    {
      const int64_t i = y / (a.o * a.pixels), o = y / a.pixels % a.o;
      const T *x = (const T *)a.x + (i * a.c + o / a.og * a.cg) * a.image;
      const T *w = (const T *)a.w + o * a.cg * a.window;
      int64_t p[D], u[D];
      T sum = a.b != nullptr ? ((const T *)a.b)[o] : (T)0;

      places_of<D> (y % a.pixels, a.y_dim, p);
      for (int64_t c = 0; c < a.cg; c++)
        for (int64_t k = 0; k < a.window; k++)
          {
            int64_t place;

            places_of<D> (k, a.w_dim, u);
            place = place_under<D> (a, p, u);
            if (place >= 0)
              sum += x[c * a.image + place] * w[c * a.window + k];
          }
      finish (a, y, sum);
    }
}

template <typename T, int D>
TD_DEVICE void
conv_data_grad (const TdConvParams &a)
{
  for (int64_t x = thread_index (); x < a.n * a.c * a.image; x += n_threads ())
    {
      const int64_t i = x / (a.c * a.image), c = x / a.image % a.c, group = c / a.cg;
      int64_t at[D], u[D], p[D];
      T sum = a.b != nullptr ? ((const T *)a.b)[c] : (T)0;

      places_of<D> (x % a.image, a.x_dim, at);
      for (int64_t k = 0; k < a.window; k++)
        {
          bool inside = true;

          places_of<D> (k, a.w_dim, u);
#pragma unroll
          for (int d = 0; d < D; d++)
            {
              const int64_t v = at[d] + a.pad[d] - u[d] * a.dilate[d];

              p[d] = v / a.stride[d];
              inside = inside && v >= 0 && p[d] * a.stride[d] == v && p[d] < a.y_dim[d];
            }
          for (int64_t o = group * a.og; inside && o < (group + 1) * a.og; o++)
            sum += ((const T *)a.w)[(o * a.cg + c % a.cg) * a.window + k]
                   * ((const T *)a.gy)[(i * a.o + o) * a.pixels + index_in<D> (p, a.y_dim)];
        }
      finish (a, x, sum);
    }
}

/* A block for each weight. */
template <typename T, int D, typename Room>
TD_DEVICE void
conv_weight_grad (const TdConvParams &a, Room &room)
{
  for (int64_t w = blockIdx.x; w < a.o * a.cg * a.window; w += gridDim.x)
    {
      const int64_t o = w / (a.cg * a.window), c = o / a.og * a.cg + w / a.window % a.cg;
      int64_t p[D], u[D];
      T sum = 0;

      places_of<D> (w % a.window, a.w_dim, u);
      for (int64_t t = threadIdx.x; t < a.n * a.pixels; t += TD_BLOCK)
        {
          const int64_t i = t / a.pixels, pixel = t % a.pixels;
          int64_t place;

          places_of<D> (pixel, a.y_dim, p);
          place = place_under<D> (a, p, u);
          if (place >= 0)
            sum += ((const T *)a.x)[(i * a.c + c) * a.image + place]
                   * ((const T *)a.gy)[(i * a.o + o) * a.pixels + pixel];
        }
      sum = sum_of_group (sum, TD_BLOCK, room);
      if (threadIdx.x == 0)
        finish (a, w, sum);
    }
}

#define POOL_KERNEL(each, S, D, name)                                                          \
  TD_STATS_KERNEL (each##_##D##d_##name, TdPoolParams)                                         \
  {                                                                                            \
    TD_COUNTER (Number<S>::T);                                                                 \
                                                                                               \
    if (a.packs)                                                                               \
      each<S, D, AtOnce<S, D>::V> (a, counter);                                                \
    else                                                                                       \
      each<S, D, 1> (a, counter);                                                              \
    TD_COUNTER_LEAVE (a.parts);                                                                \
  }
#define POOLS(S, D, name)                                                                      \
  POOL_KERNEL (pool_max, S, D, name)                                                           \
  POOL_KERNEL (pool_max_grad, S, D, name)                                                      \
  POOL_KERNEL (pool_average, S, D, name)                                                       \
  POOL_KERNEL (pool_average_grad, S, D, name)
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

#define CONVS(T, D, name)                                                                      \
  TD_KERNEL (td_conv_##D##d_##name, TdConvParams)                                              \
  {                                                                                            \
    conv_forward<T, D> (a);                                                                    \
  }                                                                                            \
  TD_KERNEL (td_conv_data_grad_##D##d_##name, TdConvParams)                                    \
  {                                                                                            \
    conv_data_grad<T, D> (a);                                                                  \
  }                                                                                            \
  TD_KERNEL (td_conv_weight_grad_##D##d_##name, TdConvParams)                                  \
  {                                                                                            \
    TD_SHARED (T, room, TD_BLOCK / TD_WARP);                                                   \
                                                                                               \
    conv_weight_grad<T, D> (a, room);                                                          \
  }
CONVS (float, 2, f32)
CONVS (double, 2, f64)
CONVS (float, 6, f32)
CONVS (double, 6, f64)
#endif
