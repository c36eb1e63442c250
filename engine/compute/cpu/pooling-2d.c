/* Pooling over planes on the CPU.  Max pooling remembers where in its window each maximum lay
 * (from 1 on, 0 for a window that covers no pixel; in a type I that holds all of a window's
 * places), so that its gradient and the gradient of that are a scatter and a gather.  Planes
 * are shared out over the threads.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "pooling.h"
#include "twins.h"

typedef struct
{
  const TdPooling *attrs;
  TdPoolKind kind;
  int64_t h, w, oh, ow; /* image, pooled */
  const void *in0, *in1;
  void *out, *index;
} Job;

/* The part of window o that lies inside [0, size). */
static inline void
window (int64_t o, int ksize, int stride, int pad, int64_t size, int64_t *begin, int64_t *end)
{
  const int64_t first = o * stride - pad, last = first + ksize;

  *begin = first > 0 ? first : 0;
  *end = last < size ? last : size;
}

/* The element at a remembered place of a window; -1 if it has none there. */
static inline int64_t
remembered (const Job *j, int64_t oy, int64_t ox, int32_t index)
{
  const TdPooling *a = j->attrs;
  const int32_t place = index - 1;
  const int32_t u
      = a->ksize[1] == 2 ? place >> 1 : (int32_t)((uint32_t)place / (uint32_t)a->ksize[1]);
  const int64_t r = oy * a->stride[0] - a->pad[0] + u;
  const int64_t c = ox * a->stride[1] - a->pad[1] + place - (int64_t)u * a->ksize[1];

  return place < 0 || r < 0 || r >= j->h || c < 0 || c >= j->w ? -1 : r * j->w + c;
}

/* K windows of 2 x 2 side by side, all inside: the pairs of two rows, without branches.  Places
 * are found as wide as the numbers are compared, and narrowed then. */
#define DEFINE_MAX_2X2(T)                                                                      \
  static inline __attribute__ ((always_inline)) void max_2x2_##T##_some (                      \
      const T *restrict upper, const T *restrict lower, T *restrict y,                         \
      uint8_t *restrict index, const int K)                                                    \
  {                                                                                            \
    int32_t places[16];                                                                        \
                                                                                               \
    for (int i = 0; i < K; i++)                                                                \
      {                                                                                        \
        const T a = upper[2 * i], b = upper[2 * i + 1];                                        \
        const T c = lower[2 * i], e = lower[2 * i + 1];                                        \
        T best = a;                                                                            \
        int32_t where = 1;                                                                     \
                                                                                               \
        where = ((b > best) | (b != b)) ? 2 : where;                                           \
        best = ((b > best) | (b != b)) ? b : best;                                             \
        where = ((c > best) | (c != c)) ? 3 : where;                                           \
        best = ((c > best) | (c != c)) ? c : best;                                             \
        where = ((e > best) | (e != e)) ? 4 : where;                                           \
        best = ((e > best) | (e != e)) ? e : best;                                             \
        y[i] = best;                                                                           \
        places[i] = where;                                                                     \
      }                                                                                        \
    for (int i = 0; i < K; i++)                                                                \
      index[i] = (uint8_t)places[i];                                                           \
  }                                                                                            \
                                                                                               \
  /* The last few are found together with some that have been. */                              \
  static inline __attribute__ ((always_inline)) void max_2x2_##T##_by (                        \
      const T *upper, int64_t w, int64_t n, T *y, uint8_t *index, const int K)                 \
  {                                                                                            \
    for (int64_t i = 0; i < n; i += K)                                                         \
      {                                                                                        \
        const int64_t at = i + K <= n ? i : n - K;                                             \
                                                                                               \
        max_2x2_##T##_some (upper + 2 * at, upper + w + 2 * at, y + at, index + at, K);        \
      }                                                                                        \
  }                                                                                            \
                                                                                               \
  static inline __attribute__ ((always_inline)) void max_2x2_##T##_body (                      \
      const T *upper, int64_t w, int64_t n, T *y, uint8_t *index)                              \
  {                                                                                            \
    if (n >= 16)                                                                               \
      max_2x2_##T##_by (upper, w, n, y, index, 16);                                            \
    else if (n >= 8)                                                                           \
      max_2x2_##T##_by (upper, w, n, y, index, 8);                                             \
    else if (n >= 4)                                                                           \
      max_2x2_##T##_by (upper, w, n, y, index, 4);                                             \
    else                                                                                       \
      max_2x2_##T##_by (upper, w, n, y, index, 1);                                             \
  }                                                                                            \
  TD_TWINS (max_2x2_##T, (const T *upper, int64_t w, int64_t n, T *y, uint8_t *index),         \
            (upper, w, n, y, index))
DEFINE_MAX_2X2 (float)
DEFINE_MAX_2X2 (double)

#define DEFINE_MAX(T, I)                                                                       \
  static void max_window_##T##_##I (const Job *j, const T *x, int64_t oy, int64_t ox, T *y,    \
                                    I *index)                                                  \
  {                                                                                            \
    const TdPooling *a = j->attrs;                                                             \
    int64_t y0, y1, x0, x1, where = 0;                                                         \
                                                                                               \
    window (oy, a->ksize[0], a->stride[0], a->pad[0], j->h, &y0, &y1);                         \
    window (ox, a->ksize[1], a->stride[1], a->pad[1], j->w, &x0, &x1);                         \
    *y = -(T)INFINITY;                                                                         \
    for (int64_t r = y0; r < y1; r++)                                                          \
      for (int64_t c = x0; c < x1; c++)                                                        \
        {                                                                                      \
          const T v = x[r * j->w + c];                                                         \
                                                                                               \
          if (where == 0 || v > *y || v != v)                                                  \
            {                                                                                  \
              *y = v;                                                                          \
              where = (r - oy * a->stride[0] + a->pad[0]) * a->ksize[1] + c                    \
                      - ox * a->stride[1] + a->pad[1] + 1;                                     \
            }                                                                                  \
        }                                                                                      \
    *index = (I)where;                                                                         \
  }                                                                                            \
                                                                                               \
  static void max_plane_##T##_##I (const Job *j, const T *x, T *y, I *index)                   \
  {                                                                                            \
    const TdPooling *a = j->attrs;                                                             \
    const bool halves = sizeof (I) == 1 && a->ksize[0] == 2 && a->ksize[1] == 2                \
                        && a->stride[0] == 2 && a->stride[1] == 2 && a->pad[0] == 0            \
                        && a->pad[1] == 0;                                                     \
                                                                                               \
    for (int64_t oy = 0; oy < j->oh; oy++, y += j->ow, index += j->ow)                         \
      {                                                                                        \
        int64_t inside = halves && 2 * oy + 1 < j->h ? j->w / 2 : 0;                           \
                                                                                               \
        inside = inside < j->ow ? inside : j->ow;                                              \
        if (inside > 0)                                                                        \
          max_2x2_##T (x + 2 * oy * j->w, j->w, inside, y, (uint8_t *)index);                  \
        for (int64_t ox = inside; ox < j->ow; ox++)                                            \
          max_window_##T##_##I (j, x, oy, ox, y + ox, index + ox);                             \
      }                                                                                        \
  }                                                                                            \
                                                                                               \
  static void scatter_plane_##T##_##I (const Job *j, const I *index, const T *from, T *to)     \
  {                                                                                            \
    for (int64_t oy = 0, i = 0; oy < j->oh; oy++)                                              \
      for (int64_t ox = 0; ox < j->ow; ox++, i++)                                              \
        {                                                                                      \
          const int64_t at = remembered (j, oy, ox, index[i]);                                 \
                                                                                               \
          if (at >= 0)                                                                         \
            to[at] += from[i];                                                                 \
        }                                                                                      \
  }                                                                                            \
                                                                                               \
  static void gather_plane_##T##_##I (const Job *j, const I *index, const T *from, T *to)      \
  {                                                                                            \
    for (int64_t oy = 0, i = 0; oy < j->oh; oy++)                                              \
      for (int64_t ox = 0; ox < j->ow; ox++, i++)                                              \
        {                                                                                      \
          const int64_t at = remembered (j, oy, ox, index[i]);                                 \
                                                                                               \
          to[i] = at >= 0 ? from[at] : 0;                                                      \
        }                                                                                      \
  }

#define DEFINE_AVERAGE(T)                                                                      \
  static void average_plane_##T (const Job *j, const T *from, T *to)                           \
  {                                                                                            \
    const TdPooling *a = j->attrs;                                                             \
    const T share = (T)1 / (T)(a->ksize[0] * a->ksize[1]);                                     \
    const bool grad = j->kind == TD_POOL_AVERAGE_GRAD;                                         \
    int64_t y0, y1, x0, x1;                                                                    \
                                                                                               \
    if (grad)                                                                                  \
      memset (to, 0, (size_t)(j->h * j->w) * sizeof *to);                                      \
    for (int64_t oy = 0; oy < j->oh; oy++)                                                     \
      for (int64_t ox = 0; ox < j->ow; ox++)                                                   \
        {                                                                                      \
          const T g = grad ? from[oy * j->ow + ox] * share : 0;                                \
          T sum = 0;                                                                           \
                                                                                               \
          window (oy, a->ksize[0], a->stride[0], a->pad[0], j->h, &y0, &y1);                   \
          window (ox, a->ksize[1], a->stride[1], a->pad[1], j->w, &x0, &x1);                   \
          for (int64_t r = y0; r < y1; r++)                                                    \
            for (int64_t c = x0; c < x1; c++)                                                  \
              if (grad)                                                                        \
                to[r * j->w + c] += g;                                                         \
              else                                                                             \
                sum += from[r * j->w + c];                                                     \
          if (!grad)                                                                           \
            to[oy * j->ow + ox] = sum * share;                                                 \
        }                                                                                      \
  }

#define DEFINE_PLANES(T, I)                                                                    \
  DEFINE_MAX (T, I)                                                                            \
                                                                                               \
  static void planes_##T##_##I (int64_t begin, int64_t end, int worker, void *context)         \
  {                                                                                            \
    const Job *j = context;                                                                    \
    const int64_t image = j->h * j->w, pooled = j->oh * j->ow;                                 \
                                                                                               \
    for (int64_t p = begin; p < end; p++)                                                      \
      {                                                                                        \
        const I *index = (const I *)j->in0 + p * pooled;                                       \
        const T *from = (const T *)(j->kind == TD_POOL_MAX_GRAD ? j->in1 : j->in0);            \
        T *to = j->out;                                                                        \
                                                                                               \
        switch (j->kind)                                                                       \
          {                                                                                    \
          case TD_POOL_MAX:                                                                    \
            max_plane_##T##_##I (j, from + p * image, to + p * pooled,                         \
                                 (I *)j->index + p * pooled);                                  \
            break;                                                                             \
          case TD_POOL_MAX_GRAD:                                                               \
            memset (to + p * image, 0, (size_t)image * sizeof *to);                            \
            scatter_plane_##T##_##I (j, index, from + p * pooled, to + p * image);             \
            break;                                                                             \
          case TD_POOL_MAX_GATHER:                                                             \
            gather_plane_##T##_##I (j, index, (const T *)j->in1 + p * image, to + p * pooled); \
            break;                                                                             \
          case TD_POOL_AVERAGE:                                                                \
            average_plane_##T (j, from + p * image, to + p * pooled);                          \
            break;                                                                             \
          case TD_POOL_AVERAGE_GRAD:                                                           \
            average_plane_##T (j, from + p * pooled, to + p * image);                          \
            break;                                                                             \
          }                                                                                    \
      }                                                                                        \
  }

DEFINE_AVERAGE (float)
DEFINE_AVERAGE (double)
DEFINE_PLANES (float, uint8_t)
DEFINE_PLANES (double, uint8_t)
DEFINE_PLANES (float, int32_t)
DEFINE_PLANES (double, int32_t)

TdStatus
td__cpu_pooling_2d (TdPoolKind kind, const TdPooling *attrs, const TdTensor *in, int n_in,
                    TdTensor *out, TdTensor *out2)
{
  const TdTensor *const operands[] = { &in[0], n_in > 1 ? &in[1] : NULL, out };
  const int64_t *image = operands[td__pool_roles[kind].image]->shape->dim;
  const int64_t *pooled = operands[td__pool_roles[kind].pooled]->shape->dim;
  Job job = { .attrs = attrs,
              .kind = kind,
              .h = image[2],
              .w = image[3],
              .oh = pooled[2],
              .ow = pooled[3],
              .in0 = in[0].data,
              .in1 = n_in > 1 ? in[1].data : NULL,
              .out = out->data,
              .index = out2 != NULL ? out2->data : NULL };
  const int64_t planes = image[0] * image[1];
  const int64_t grain = 1 + 16384 / (job.h * job.w + 1);
  const bool wide = (out2 != NULL ? out2 : &in[0])->dtype == TD_I32;

  if (out->dtype == TD_F32)
    td__cpu_parallel (planes, grain, wide ? planes_float_int32_t : planes_float_uint8_t, &job);
  else if (out->dtype == TD_F64)
    td__cpu_parallel (planes, grain, wide ? planes_double_int32_t : planes_double_uint8_t,
                      &job);
  else
    return TD_ERR_DTYPE;
  return TD_OK;
}
