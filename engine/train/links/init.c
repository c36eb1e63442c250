/* Initialisers: how a parameter gets its first numbers.  One table says what each kind draws;
 * fans are computed as Chainer does.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

#include "compute/core/copies.h"

#include <math.h>
#include <stdlib.h>

typedef enum
{
  FAN_NONE,
  FAN_IN,
  FAN_BOTH
} Fan;

typedef enum
{
  DRAW_CONSTANT,
  DRAW_NORMAL,
  DRAW_UNIFORM,
  DRAW_HOST /* computed on the host, then uploaded */
} Draw;

typedef TdStatus (*HostFill) (double *w, const TdShape *shape, double scale, const char **why);

static TdStatus fill_identity (double *w, const TdShape *shape, double scale, const char **why);
static TdStatus fill_orthogonal (double *w, const TdShape *shape, double scale,
                                 const char **why);
static TdStatus fill_upsampling (double *w, const TdShape *shape, double scale,
                                 const char **why);
static TdStatus fill_downsampling (double *w, const TdShape *shape, double scale,
                                   const char **why);

/* standard deviation or bound = scale sqrt (factor / fan) */
static const struct
{
  Draw draw;
  Fan fan;
  double factor;
  HostFill fill;
} kinds[] = {
  [TD_INIT_DEFAULT] = { DRAW_CONSTANT, FAN_NONE, 0, NULL },
  [TD_INIT_CONSTANT] = { DRAW_CONSTANT, FAN_NONE, 0, NULL },
  [TD_INIT_IDENTITY] = { DRAW_HOST, FAN_NONE, 0, fill_identity },
  [TD_INIT_NORMAL] = { DRAW_NORMAL, FAN_NONE, 1, NULL },
  [TD_INIT_LECUN_NORMAL] = { DRAW_NORMAL, FAN_IN, 1, NULL },
  [TD_INIT_GLOROT_NORMAL] = { DRAW_NORMAL, FAN_BOTH, 2, NULL },
  [TD_INIT_HE_NORMAL] = { DRAW_NORMAL, FAN_IN, 2, NULL },
  [TD_INIT_UNIFORM] = { DRAW_UNIFORM, FAN_NONE, 1, NULL },
  [TD_INIT_LECUN_UNIFORM] = { DRAW_UNIFORM, FAN_IN, 3, NULL },
  [TD_INIT_GLOROT_UNIFORM] = { DRAW_UNIFORM, FAN_BOTH, 6, NULL },
  [TD_INIT_HE_UNIFORM] = { DRAW_UNIFORM, FAN_IN, 6, NULL },
  [TD_INIT_ORTHOGONAL] = { DRAW_HOST, FAN_NONE, 0, fill_orthogonal },
  [TD_INIT_UPSAMPLING_DECONV] = { DRAW_HOST, FAN_NONE, 0, fill_upsampling },
  [TD_INIT_DOWNSAMPLING_CONV] = { DRAW_HOST, FAN_NONE, 0, fill_downsampling },
};

#define DEFINE_INIT(name, kind, scale)                                                         \
  TdInit td_init_##name (void)                                                                 \
  {                                                                                            \
    return (TdInit){ kind, scale };                                                            \
  }
// clang-format off
DEFINE_INIT (zero, TD_INIT_CONSTANT, 0)
DEFINE_INIT (one, TD_INIT_CONSTANT, 1)
DEFINE_INIT (nan, TD_INIT_CONSTANT, (double)NAN)
DEFINE_INIT (identity, TD_INIT_IDENTITY, 1)
DEFINE_INIT (lecun_normal, TD_INIT_LECUN_NORMAL, 1)
DEFINE_INIT (glorot_normal, TD_INIT_GLOROT_NORMAL, 1)
DEFINE_INIT (he_normal, TD_INIT_HE_NORMAL, 1)
DEFINE_INIT (lecun_uniform, TD_INIT_LECUN_UNIFORM, 1)
DEFINE_INIT (glorot_uniform, TD_INIT_GLOROT_UNIFORM, 1)
DEFINE_INIT (he_uniform, TD_INIT_HE_UNIFORM, 1)
DEFINE_INIT (orthogonal, TD_INIT_ORTHOGONAL, 1.1)
DEFINE_INIT (upsampling_deconv_filter, TD_INIT_UPSAMPLING_DECONV, 1)
DEFINE_INIT (downsampling_conv_filter, TD_INIT_DOWNSAMPLING_CONV, 1)
// clang-format on

TdInit
td_init_constant (double value)
{
  return (TdInit){ TD_INIT_CONSTANT, value };
}

TdInit
td_init_normal (double scale)
{
  return (TdInit){ TD_INIT_NORMAL, scale };
}

TdInit
td_init_uniform (double scale)
{
  return (TdInit){ TD_INIT_UNIFORM, scale };
}

TdInit
td_init_scaled (TdInit init, double scale)
{
  init.scale = scale;
  return init;
}

/* --- those that are computed on the host --- */

static TdStatus
fill_identity (double *w, const TdShape *shape, double scale, const char **why)
{
  *why = "Identity needs a square matrix";
  if (shape->ndim != 2 || shape->dim[0] != shape->dim[1])
    return TD_ERR_SHAPE;
  for (int64_t i = 0; i < shape->dim[0]; i++)
    w[i * shape->dim[0] + i] = scale;
  return TD_OK;
}

/* Standard normal numbers on the host, from the engine's stream (Box-Muller over splitmix64,
 * seeded by a place in the Philox stream). */
static double
next_uniform (uint64_t *state)
{
  uint64_t z = *state += 0x9e3779b97f4a7c15u;

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return ((double)((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
}

/* Make the n vectors of length m (n <= m) at w orthonormal: modified Gram-Schmidt, run twice.
 */
static void
orthonormalise (double *w, int64_t n, int64_t m)
{
  for (int64_t i = 0; i < n; i++)
    {
      double *u = w + i * m, norm = 0;

      for (int64_t k = 0; k < 2 * i; k++)
        {
          const double *v = w + (k % i) * m;
          double dot = 0;

          for (int64_t j = 0; j < m; j++)
            dot += u[j] * v[j];
          for (int64_t j = 0; j < m; j++)
            u[j] -= dot * v[j];
        }
      for (int64_t j = 0; j < m; j++)
        norm += u[j] * u[j];
      for (int64_t j = 0; j < m; j++)
        u[j] /= sqrt (norm);
    }
}

static TdStatus
fill_orthogonal (double *w, const TdShape *shape, double scale, const char **why)
{
  int64_t rows = shape->ndim > 0 ? shape->dim[0] : 0, columns = td__row_size (shape);
  int64_t n = rows < columns ? rows : columns, m = rows < columns ? columns : rows;
  TdRngKey key = td__rng_take ((uint64_t)(rows * columns));
  uint64_t state = key.seed * 0x2545f4914f6cdd1du + key.offset;
  double *u;

  *why = "Orthogonal needs at least one axis";
  if (shape->ndim < 1)
    return TD_ERR_SHAPE;
  u = calloc ((size_t)(n * m + 1), sizeof *u);
  *why = "no memory for Orthogonal";
  if (u == NULL)
    return TD_ERR_MEMORY;
  for (int64_t i = 0; i < n * m; i++)
    u[i] = sqrt (-2 * log (next_uniform (&state)))
           * cos (6.283185307179586 * next_uniform (&state));
  orthonormalise (u, n, m);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      w[i * columns + j] = scale * (rows < columns ? u[i * m + j] : u[j * m + i]);
  free (u);
  return TD_OK;
}

/* Bilinear filters on the diagonal of channels.  *Source*: Long et al. 2014, and
 * chainer.initializers._get_linear_filter. */
static TdStatus
fill_filter (double *w, const TdShape *shape, double scale, bool upsampling)
{
  int64_t k = shape->dim[2];
  double factor = (double)((k + 1) / 2), sum = 0;
  double center = k % 2 == 1 ? factor - 1 : factor - 0.5;

  for (int64_t i = 0; i < k; i++)
    sum += 1 - fabs ((double)i - center) / factor;
  for (int64_t c = 0; c < shape->dim[0]; c++)
    for (int64_t i = 0; i < k; i++)
      for (int64_t j = 0; j < k; j++)
        w[((c * shape->dim[1] + c) * k + i) * k + j]
            = scale * (1 - fabs ((double)i - center) / factor)
              * (1 - fabs ((double)j - center) / factor) / (upsampling ? 1 : sum * sum);
  return TD_OK;
}

static bool
filter_shape (const TdShape *shape, const char **why)
{
  *why = "a resampling filter needs the shape (c, c, k, k)";
  return shape->ndim == 4 && shape->dim[0] == shape->dim[1] && shape->dim[2] == shape->dim[3];
}

static TdStatus
fill_upsampling (double *w, const TdShape *shape, double scale, const char **why)
{
  return filter_shape (shape, why) ? fill_filter (w, shape, scale, true) : TD_ERR_SHAPE;
}

static TdStatus
fill_downsampling (double *w, const TdShape *shape, double scale, const char **why)
{
  return filter_shape (shape, why) ? fill_filter (w, shape, scale, false) : TD_ERR_SHAPE;
}

static TdStatus
fill_from_host (TdInit init, TdVar *v, const TdSite *site)
{
  const TdShape *shape = &v->node->shape;
  int64_t n = td_shape_size (shape);
  TdDevice *d = v->node->device;
  bool single = v->node->dtype == TD_F32;
  const char *why = "no memory for it";
  char text[160];
  double *w;
  TdStatus status;

  if (v->node->dtype != TD_F32 && v->node->dtype != TD_F64)
    return td__fail (TD_ERR_DTYPE, "initializer", site, "f32 or f64 expected, got %s",
                     td_dtype_name ((TdDtype)v->node->dtype));
  w = calloc ((size_t)n + 1, sizeof *w);
  status = w != NULL ? kinds[init.kind].fill (w, shape, init.scale, &why) : TD_ERR_MEMORY;
  if (status != TD_OK)
    td__fail (status, "initializer", site, "%s, got %s", why,
              td_shape_text (shape, text, sizeof text));
  for (int64_t i = 0; i < n && single && w != NULL; i++)
    {
      float f = (float)w[i];

      __builtin_memcpy ((char *)w + 4 * i, &f, sizeof f);
    }
  if (status == TD_OK)
    status = td__copy_in (d, v->buffer->data, w, v->buffer->bytes, TD_COPY_NEW, v->node, site);
  free (w);
  return status;
}

/* scale sqrt (factor / fan); false when the shape has no fan. */
static bool
deviation (TdInit init, const TdShape *shape, double *s)
{
  double fan_in, fan_out, fan;

  *s = init.scale;
  if (kinds[init.kind].fan == FAN_NONE)
    return true;
  if (shape->ndim < 2)
    return false;
  fan_in = (double)td__row_size (shape);
  fan_out = shape->dim[1] > 0
                ? (double)shape->dim[0] * (double)td__row_size (shape) / (double)shape->dim[1]
                : 0;
  fan = kinds[init.kind].fan == FAN_IN ? fan_in : fan_in + fan_out;
  *s = init.scale * sqrt (kinds[init.kind].factor / fan);
  return true;
}

TdStatus
td__init_fill (TdInit init, TdVar *v, const TdShape *fan_shape, const TdSite *site)
{
  TdDevice *d = v->node->device;
  const TdDeviceOps *ops = d->ops;
  TdTensor t = { v->buffer->data, &v->node->shape, td_shape_size (&v->node->shape),
                 (TdDtype)v->node->dtype };
  Draw draw = kinds[init.kind].draw;
  TdStatus status = TD_OK;
  char text[160];
  double s;

  if (!deviation (init, fan_shape, &s))
    return td__fail (TD_ERR_SHAPE, "initializer", site,
                     "two or more axes expected, to count inputs and outputs, got %s",
                     td_shape_text (fan_shape, text, sizeof text));
  if (!d->computes || t.size == 0)
    {
      if (draw != DRAW_CONSTANT)
        td__rng_take ((uint64_t)t.size);
      return TD_OK;
    }
  if (draw == DRAW_HOST)
    return fill_from_host (init, v, site);
  if (draw == DRAW_CONSTANT)
    status = ops->fill (d, &t, init.scale);
  else
    status = ops->random (d, draw == DRAW_NORMAL ? TD_RANDOM_NORMAL : TD_RANDOM_UNIFORM,
                          td__rng_take ((uint64_t)t.size), 0, &t);
  if (status == TD_OK && draw == DRAW_NORMAL)
    status = ops->unary (d, TD_UNARY_MUL_SCALAR, s, 0, &t, &t);
  if (status == TD_OK && draw == DRAW_UNIFORM)
    {
      status = ops->unary (d, TD_UNARY_MUL_SCALAR, 2 * s, 0, &t, &t);
      if (status == TD_OK)
        status = ops->unary (d, TD_UNARY_ADD_SCALAR, -s, 0, &t, &t);
    }
  return status == TD_OK ? TD_OK
                         : td__fail (status, "initializer", site, "not possible for %s on %s",
                                     td_dtype_name (t.dtype), d->name);
}
