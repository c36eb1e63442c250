/* Pooling on the CPU over any number of axes, with every divisor, and adaptive.  The common
 * case, planes, has loops of its own in pooling-2d.c.
 *
 * SPDX-License-Identifier: MIT */
#include "pooling.h"
#include "halves.h"

#include <math.h>
#include <string.h>

const TdPoolRoles td__pool_roles[] = {
  [TD_POOL_MAX] = { 0, 2 },          [TD_POOL_MAX_GRAD] = { 2, 1 },
  [TD_POOL_MAX_GATHER] = { 1, 2 },   [TD_POOL_AVERAGE] = { 0, 2 },
  [TD_POOL_AVERAGE_GRAD] = { 2, 0 },
};

typedef struct
{
  const TdPooling *attrs;
  TdPoolKind kind;
  int ndim;
  const int64_t *size, *n;            /* of the image and the pooled array, per axis */
  int64_t step[TD_MAX_SPATIAL];       /* elements of the image per axis */
  int64_t place_step[TD_MAX_SPATIAL]; /* places of the window per axis */
  int64_t image, pooled, places;      /* elements of one channel, of one window */
  const void *in0, *in1;
  void *out, *index;
  bool bytes; /* indices are u8 */
} Job;

/* One window: the part that lies inside the image, and an element of it. */
typedef struct
{
  int64_t first[TD_MAX_SPATIAL], begin[TD_MAX_SPATIAL], end[TD_MAX_SPATIAL], at[TD_MAX_SPATIAL];
  int64_t covered; /* elements */
} Window;

static void
window_open (const Job *j, int64_t o, Window *w)
{
  const TdPooling *a = j->attrs;

  w->covered = 1;
  for (int i = j->ndim - 1; i >= 0; i--)
    {
      const int64_t place = o % j->n[i];

      o /= j->n[i];
      w->first[i]
          = a->adaptive ? place * j->size[i] / j->n[i] : place * a->stride[i] - a->pad[i];
      w->end[i] = a->adaptive ? ((place + 1) * j->size[i] + j->n[i] - 1) / j->n[i]
                              : w->first[i] + a->ksize[i];
      w->begin[i] = w->first[i] > 0 ? w->first[i] : 0;
      w->end[i] = w->end[i] < j->size[i] ? w->end[i] : j->size[i];
      w->at[i] = w->begin[i];
      w->covered *= w->end[i] > w->begin[i] ? w->end[i] - w->begin[i] : 0;
    }
}

static inline void
window_next (const Job *j, Window *w)
{
  for (int i = j->ndim - 1; i >= 0 && ++w->at[i] == w->end[i]; i--)
    w->at[i] = w->begin[i];
}

static inline int64_t
element_of (const Job *j, const Window *w)
{
  int64_t at = 0;

  for (int i = 0; i < j->ndim; i++)
    at += w->at[i] * j->step[i];
  return at;
}

static inline int64_t
place_of (const Job *j, const Window *w)
{
  int64_t at = 0;

  for (int i = 0; i < j->ndim; i++)
    at += (w->at[i] - w->first[i]) * j->place_step[i];
  return at;
}

/* Places are remembered from 1 on. */
static inline void
remember (const Job *j, int64_t at, int64_t index)
{
  if (j->bytes)
    ((uint8_t *)j->index)[at] = (uint8_t)index;
  else
    ((int32_t *)j->index)[at] = (int32_t)index;
}

/* The element of the image at the place that in0 remembers of window o, which is its element
 * `element`; -1 if it has none there. */
static int64_t
remembered (const Job *j, int64_t o, int64_t element)
{
  const int64_t place
      = (j->bytes ? ((const uint8_t *)j->in0)[element] : ((const int32_t *)j->in0)[element])
        - 1;
  int64_t at = 0;
  Window w;

  if (place < 0 || place >= j->places)
    return -1;
  window_open (j, o, &w);
  for (int i = 0; i < j->ndim; i++)
    {
      const int64_t v = w.first[i] + place / j->place_step[i] % j->attrs->ksize[i];

      if (v < w.begin[i] || v >= w.end[i])
        return -1;
      at += v * j->step[i];
    }
  return at;
}

static double
divisor_of (const Job *j, const Window *w)
{
  return j->attrs->divisor == TD_POOL_BY_ONE      ? 1
         : j->attrs->divisor == TD_POOL_BY_WINDOW ? (double)j->places
         : w->covered > 0                         ? (double)w->covered
                                                  : 1;
}

#define DEFINE_POOL(T)                                                                         \
  static int64_t max_window_##T (const Job *j, Window *w, const T *x, T *y)                    \
  {                                                                                            \
    int64_t index = 0;                                                                         \
                                                                                               \
    *y = -(T)INFINITY;                                                                         \
    for (int64_t t = 0; t < w->covered; t++, window_next (j, w))                               \
      {                                                                                        \
        const T v = x[element_of (j, w)];                                                      \
                                                                                               \
        if (index == 0 || v > *y || v != v)                                                    \
          {                                                                                    \
            *y = v;                                                                            \
            index = place_of (j, w) + 1;                                                       \
          }                                                                                    \
      }                                                                                        \
    return index;                                                                              \
  }                                                                                            \
                                                                                               \
  static void average_window_##T (const Job *j, Window *w, const T *x, T *y)                   \
  {                                                                                            \
    const T divisor = (T)divisor_of (j, w);                                                    \
    T sum = 0;                                                                                 \
                                                                                               \
    for (int64_t t = 0; t < w->covered; t++, window_next (j, w))                               \
      sum += x[element_of (j, w)];                                                             \
    *y = sum / divisor;                                                                        \
  }                                                                                            \
                                                                                               \
  static void share_window_##T (const Job *j, Window *w, T gy, T *gx)                          \
  {                                                                                            \
    const T share = gy / (T)divisor_of (j, w);                                                 \
                                                                                               \
    for (int64_t t = 0; t < w->covered; t++, window_next (j, w))                               \
      gx[element_of (j, w)] += share;                                                          \
  }                                                                                            \
                                                                                               \
  static void windows_##T (const Job *j, int64_t channel)                                      \
  {                                                                                            \
    const int64_t image = channel * j->image, pooled = channel * j->pooled;                    \
    T *to = j->out;                                                                            \
    Window w;                                                                                  \
                                                                                               \
    for (int64_t o = 0; o < j->pooled; o++)                                                    \
      if (j->kind == TD_POOL_MAX_GRAD || j->kind == TD_POOL_MAX_GATHER)                        \
        {                                                                                      \
          const int64_t at = remembered (j, o, pooled + o);                                    \
                                                                                               \
          if (j->kind == TD_POOL_MAX_GATHER)                                                   \
            to[pooled + o] = at < 0 ? 0 : ((const T *)j->in1)[image + at];                     \
          else if (at >= 0)                                                                    \
            to[image + at] += ((const T *)j->in1)[pooled + o];                                 \
        }                                                                                      \
      else                                                                                     \
        {                                                                                      \
          window_open (j, o, &w);                                                              \
          if (j->kind == TD_POOL_MAX)                                                          \
            remember (j, pooled + o,                                                           \
                      max_window_##T (j, &w, (const T *)j->in0 + image, to + pooled + o));     \
          else if (j->kind == TD_POOL_AVERAGE)                                                 \
            average_window_##T (j, &w, (const T *)j->in0 + image, to + pooled + o);            \
          else                                                                                 \
            share_window_##T (j, &w, ((const T *)j->in0)[pooled + o], to + image);             \
        }                                                                                      \
  }                                                                                            \
                                                                                               \
  static void channels_##T (int64_t begin, int64_t end, int worker, void *context)             \
  {                                                                                            \
    const Job *j = context;                                                                    \
                                                                                               \
    for (int64_t channel = begin; channel < end; channel++)                                    \
      {                                                                                        \
        if (td__pool_roles[j->kind].image == 2)                                                \
          memset ((T *)j->out + channel * j->image, 0, (size_t)j->image * sizeof (T));         \
        windows_##T (j, channel);                                                              \
      }                                                                                        \
  }

DEFINE_POOL (float)
DEFINE_POOL (double)

TdStatus
td__cpu_pooling (TdDevice *d, TdPoolKind kind, const TdPooling *attrs, const TdTensor *in,
                 int n_in, TdTensor *out, TdTensor *out2)
{
  const TdTensor *const operands[] = { &in[0], n_in > 1 ? &in[1] : NULL, out };
  const int64_t *image = operands[td__pool_roles[kind].image]->shape->dim;
  const int64_t *pooled = operands[td__pool_roles[kind].pooled]->shape->dim;
  Job job = { .attrs = attrs,
              .kind = kind,
              .ndim = attrs->ndim,
              .size = image + 2,
              .n = pooled + 2,
              .image = 1,
              .pooled = 1,
              .places = 1,
              .in0 = in[0].data,
              .in1 = n_in > 1 ? in[1].data : NULL,
              .out = out->data,
              .index = out2 != NULL ? out2->data : NULL,
              .bytes = (out2 != NULL ? out2 : &in[0])->dtype == TD_U8 };

  if (td__is_half (out->dtype))
    return td__cpu_half_pooling (d, kind, attrs, in, n_in, out, out2);
  if (attrs->ndim == 2 && !attrs->adaptive
      && (kind <= TD_POOL_MAX_GATHER || attrs->divisor == TD_POOL_BY_WINDOW))
    return td__cpu_pooling_2d (kind, attrs, in, n_in, out, out2);
  for (int i = attrs->ndim - 1; i >= 0; i--)
    {
      job.step[i] = job.image;
      job.place_step[i] = job.places;
      job.image *= job.size[i];
      job.pooled *= job.n[i];
      job.places *= attrs->ksize[i];
    }
  if (out->dtype == TD_F32)
    td__cpu_parallel (image[0] * image[1], 1 + 4096 / (job.image + 1), channels_float, &job);
  else if (out->dtype == TD_F64)
    td__cpu_parallel (image[0] * image[1], 1 + 4096 / (job.image + 1), channels_double, &job);
  else
    return TD_ERR_DTYPE;
  return TD_OK;
}
