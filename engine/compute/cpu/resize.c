/* Images in another size, between their pixels, and the transposed map, which is its gradient.
 * A row is made of two rows first, side by side, then of that row's pixels.
 *
 * SPDX-License-Identifier: MIT */
#include "elementwise.h"

#include <stdlib.h>

/* For each place of the larger size: the pixels that it lies between, and the share of the
 * second. */
typedef struct
{
  int64_t low, high;
  double share;
} Between;

typedef struct
{
  const void *x;
  void *y;
  const Between *rows, *columns;
  int64_t h, w, oh, ow; /* of the images that are looked at, and of what is made of them */
  char *scratch;
  size_t line; /* bytes of a worker's scratch */
  bool nearest;
} Work;

static void
places (const TdResize *r, int64_t n_in, int64_t n_out, Between *b)
{
  double scale, shift;
  const bool halfway = td__resize_line (r, n_in, n_out, &scale, &shift);

  for (int64_t o = 0; o < n_out; o++)
    {
      double at = halfway ? ((double)o + 0.5) * scale + shift : (double)o * scale;

      at = at < 0 ? 0 : at > (double)(n_in - 1) ? (double)(n_in - 1) : at;
      b[o].low = (int64_t)at;
      b[o].high = b[o].low + 1 < n_in ? b[o].low + 1 : n_in - 1;
      b[o].share = r->nearest ? 0 : at - (double)b[o].low;
      if (r->nearest)
        b[o].high = b[o].low;
    }
}

/* y: a row of the result for each o of [begin, end).  Of nearest pixels none is weighed: 0
 * times infinity would be NaN. */
#define FORWARD(T)                                                                             \
  static void forward_##T (int64_t begin, int64_t end, int worker, void *context)              \
  {                                                                                            \
    const Work *k = context;                                                                   \
    T *line = (T *)(k->scratch + (size_t)worker * k->line);                                    \
                                                                                               \
    for (int64_t o = begin; o < end; o++)                                                      \
      {                                                                                        \
        const Between *v = &k->rows[o % k->oh];                                                \
        const T *image = (const T *)k->x + o / k->oh * k->h * k->w;                            \
        const T *low = image + v->low * k->w, *high = image + v->high * k->w;                  \
        const T b = (T)v->share, a = (T)(1 - v->share);                                        \
        T *y = (T *)k->y + o * k->ow;                                                          \
                                                                                               \
        for (int64_t i = 0; i < k->w; i++)                                                     \
          line[i] = k->nearest ? low[i] : a * low[i] + b * high[i];                            \
        for (int64_t i = 0; i < k->ow; i++)                                                    \
          {                                                                                    \
            const Between *u = &k->columns[i];                                                 \
                                                                                               \
            y[i] = k->nearest                                                                  \
                       ? line[u->low]                                                          \
                       : (T)(1 - u->share) * line[u->low] + (T)u->share * line[u->high];       \
          }                                                                                    \
      }                                                                                        \
  }

/* The shares of a whole image, in the order of its pixels: one result for any number of
 * threads. */
#define BACKWARD(T)                                                                            \
  static void backward_##T (int64_t begin, int64_t end, int worker, void *context)             \
  {                                                                                            \
    const Work *k = context;                                                                   \
    T *line = (T *)(k->scratch + (size_t)worker * k->line);                                    \
                                                                                               \
    for (int64_t o = begin; o < end; o++)                                                      \
      {                                                                                        \
        const T *gy = (const T *)k->x + o * k->oh * k->ow;                                     \
        T *gx = (T *)k->y + o * k->h * k->w;                                                   \
                                                                                               \
        memset (gx, 0, (size_t)(k->h * k->w) * sizeof (T));                                    \
        for (int64_t j = 0; j < k->oh; j++, gy += k->ow)                                       \
          {                                                                                    \
            const Between *v = &k->rows[j];                                                    \
            T *low = gx + v->low * k->w, *high = gx + v->high * k->w;                          \
            const T b = (T)v->share, a = (T)(1 - v->share);                                    \
                                                                                               \
            memset (line, 0, (size_t)k->w * sizeof (T));                                       \
            for (int64_t i = 0; i < k->ow; i++)                                                \
              {                                                                                \
                const Between *u = &k->columns[i];                                             \
                                                                                               \
                line[u->low] += (T)(1 - u->share) * gy[i];                                     \
                if (!k->nearest)                                                               \
                  line[u->high] += (T)u->share * gy[i];                                        \
              }                                                                                \
            for (int64_t i = 0; i < k->w; i++)                                                 \
              low[i] += a * line[i];                                                           \
            if (!k->nearest)                                                                   \
              for (int64_t i = 0; i < k->w; i++)                                               \
                high[i] += b * line[i];                                                        \
          }                                                                                    \
      }                                                                                        \
  }

FORWARD (float)
FORWARD (double)
BACKWARD (float)
BACKWARD (double)

TdStatus
td__cpu_resize (TdDevice *d, const TdResize *r, bool grad, const TdTensor *x, TdTensor *y)
{
  static const TdCpuBody bodies[2][2]
      = { { forward_float, forward_double }, { backward_float, backward_double } };
  const int64_t *in = (grad ? y : x)->shape->dim, *out = (grad ? x : y)->shape->dim;
  const int64_t images = in[0] * in[1];
  Work k = { .x = x->data, .y = y->data, .h = in[2], .w = in[3], .oh = out[2], .ow = out[3] };
  Between *between;

  k.nearest = r->nearest;
  if (x->dtype != TD_F32 && x->dtype != TD_F64)
    return TD_ERR_DTYPE;
  k.line = ((size_t)k.w * td__dtype_sizes[x->dtype] + 63) / 64 * 64;
  between
      = malloc ((size_t)(k.oh + k.ow) * sizeof *between + (size_t)td__cpu_threads () * k.line);
  if (between == NULL)
    return TD_ERR_MEMORY;
  k.rows = between;
  k.columns = between + k.oh;
  k.scratch = (char *)(between + k.oh + k.ow);
  places (r, k.h, k.oh, between);
  places (r, k.w, k.ow, between + k.oh);
  if (grad)
    td__cpu_parallel (images, 1 + TD_CPU_GRAIN / (k.oh * k.ow), bodies[1][x->dtype == TD_F64],
                      &k);
  else
    td__cpu_parallel (images * k.oh, 1 + TD_CPU_GRAIN / k.ow, bodies[0][x->dtype == TD_F64],
                      &k);
  free (between);
  return TD_OK;
}
