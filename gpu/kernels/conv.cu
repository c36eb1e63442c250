/* Convolution by its definition, and its gradients: a thread for each number that comes out, a
 * block for each weight's gradient.  D axes, those that are not there of size 1.
 *
 * SPDX-License-Identifier: MIT */
#include "places.cuh"

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
  return inside ? index_in<int64_t, D> (at, a.x_dim) : -1;
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
                   * ((const T *)
                          a.gy)[(i * a.o + o) * a.pixels + index_in<int64_t, D> (p, a.y_dim)];
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
