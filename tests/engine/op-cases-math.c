/* Rows for activations, mathematics and noise of tapedeck-math.h.  References are the
 * definitions in double precision; of gradients, the derivatives written out.
 * SPDX-License-Identifier: MIT */
#include "op-cases.h"

#include <math.h>
#include <string.h>

#include "compute/cpu/cpu.h"

#define S(...) TD_SHAPE (__VA_ARGS__)
#define CALL(name, ...)                                                                        \
  static void call_##name (TdVar *const *x, TdVar **y)                                         \
  {                                                                                            \
    __VA_ARGS__;                                                                               \
  }
#define MAP(name, expression)                                                                  \
  static double map_##name (double a, double b, double c)                                      \
  {                                                                                            \
    return expression;                                                                         \
  }
#define WHOLE(name)                                                                            \
  static void whole_##name (const OpCase *c, const double *const *in, double *const *out)

/* --- functions of one variable: value, and gradient as the operation it is --- */

#define SLOPED(name, grad, attrs, call, value, slope)                                          \
  CALL (name, y[0] = call)                                                                     \
  MAP (name, value)                                                                            \
  CALL (name##_grad, y[0] = td__apply2 (&td__##grad##_class, attrs, NULL, x[0], x[1]))         \
  MAP (name##_grad, b *(slope))

static double
sigmoid (double x)
{
  return 1 / (1 + exp (-x));
}
static double
phi (double x)
{
  return exp (-0.5 * x * x) / sqrt (2 * M_PI);
}
static double
normal (double x)
{
  return 0.5 * erfc (-x / sqrt (2));
}
static double
gelu_g (double x)
{
  return 2 * sqrt (2 / M_PI) * (x + 0.044715 * x * x * x);
}

#define NUMBER(v) ((const double[]){ v })
SLOPED (leaky_relu, leaky_relu_grad, NUMBER (0.2), td_leaky_relu (x[0]), a < 0 ? 0.2 * a : a,
        a < 0 ? 0.2 : 1)
SLOPED (leaky_relu_up, leaky_relu_grad, NUMBER (-0.5),
        td_leaky_relu_ (x[0], &(TdLeakyReluOpt){ .slope = -0.5 }), a < 0 ? -0.5 * a : a,
        a < 0 ? -0.5 : 1)
SLOPED (elu, elu_grad, NUMBER (1), td_elu (x[0]), a > 0 ? a : expm1 (a), a > 0 ? 1 : exp (a))
SLOPED (elu_half, elu_grad, NUMBER (0.5), td_elu_ (x[0], &(TdEluOpt){ .alpha = 0.5 }),
        a > 0 ? a : 0.5 * expm1 (a), a > 0 ? 1 : 0.5 * exp (a))
CALL (selu, y[0] = td_selu (x[0]))
MAP (selu, 1.0507009873554805 * (a > 0 ? a : 1.6732632423543772 * expm1 (a)))
SLOPED (softplus, softplus_grad, NUMBER (1), td_softplus (x[0]), log1p (exp (a)), sigmoid (a))
SLOPED (softplus_sharp, softplus_grad, NUMBER (3),
        td_softplus_ (x[0], &(TdSoftplusOpt){ .beta = 3 }), log1p (exp (3 * a)) / 3,
        sigmoid (3 * a))
SLOPED (clipped_relu, clipped_relu_grad, NUMBER (1.5),
        td_clipped_relu_ (x[0], &(TdClippedReluOpt){ .z = 1.5 }), fmin (fmax (a, 0), 1.5),
        a > 0 && a < 1.5)
CALL (relu6, y[0] = td_relu6 (x[0]))
MAP (relu6, fmin (fmax (a, 0), 6))
SLOPED (hard_sigmoid, hard_sigmoid_grad, NULL, td_hard_sigmoid (x[0]),
        fmin (fmax (0.2 * a + 0.5, 0), 1), fabs (a) < 2.5 ? 0.2 : 0)
SLOPED (silu, silu_grad, NULL, td_silu (x[0]), a *sigmoid (a),
        sigmoid (a) * (1 + a * (1 - sigmoid (a))))
SLOPED (gelu, gelu_grad, (const bool[]){ false }, td_gelu (x[0]), a *normal (a),
        normal (a) + a * phi (a))
SLOPED (gelu_tanh, gelu_grad, (const bool[]){ true },
        td_gelu_ (x[0], &(TdGeluOpt){ .approximate = true }), a *sigmoid (gelu_g (a)),
        sigmoid (gelu_g (a))
            + a * sigmoid (gelu_g (a)) * sigmoid (-gelu_g (a)) * 2 * sqrt (2 / M_PI)
                  * (1 + 3 * 0.044715 * a * a))
SLOPED (erf, erf_grad, NULL, td_erf (x[0]), erf (a), 2 / sqrt (M_PI) * exp (-a * a))
SLOPED (log1p, log1p_grad, NULL, td_log1p (x[0]), log1p (a), 1 / (1 + a))
SLOPED (expm1, expm1_grad, NULL, td_expm1 (x[0]), expm1 (a), exp (a))
SLOPED (rsqrt, rsqrt_grad, NULL, td_rsqrt (x[0]), 1 / sqrt (a), -0.5 / (a * sqrt (a)))
CALL (identity, y[0] = td_identity (x[0]))
MAP (identity, a)
CALL (to_layout, y[0] = td__to_layout (x[0], TD_CHANNELS_LAST, NULL))
MAP (to_layout, a)
CALL (to_layout_back,
      y[0] = td__to_layout (td__to_layout (x[0], TD_CHANNELS_LAST, NULL), TD_ROW_MAJOR, NULL))
MAP (to_layout_back, a)

/* --- averages --- */

CALL (average,
      y[0] = td_average_ (x[0], &(TdAverageOpt){ (const int[]){ 0, -1 }, 2, x[1], true }))
CALL (average_row,
      y[0] = td_average_ (x[0], &(TdAverageOpt){ (const int[]){ 1 }, 1, x[1], false }))
CALL (average_all, y[0] = td_average_ (x[0], NULL))
WHOLE (average)
{
  for (int64_t j = 0; j < 3; j++)
    {
      double sum = 0, weight = 0;

      for (int64_t k = 0; k < 8; k++)
        {
          const int64_t at = k / 4 * 12 + j * 4 + k % 4;

          sum += in[0][at] * in[1][at];
          weight += in[1][at];
        }
      out[0][j] = sum / weight;
    }
}
WHOLE (average_row)
{
  const double *w = in[1];

  for (int64_t i = 0; i < 8; i++)
    {
      const double *x = in[0] + i / 4 * 12 + i % 4;

      out[0][i] = (x[0] * w[0] + x[4] * w[1] + x[8] * w[2]) / (w[0] + w[1] + w[2]);
    }
}
WHOLE (average_all)
{
  for (int64_t i = 0; i < 24; i++)
    out[0][0] += in[0][i] / 24;
}

/* --- activations with parameters --- */

#define UNDER(i) ((i) / 2 % 3) /* which of 3 a place of (2, 3, 2) lies under */
CALL (swish, y[0] = td_swish (x[0], x[1]))
CALL (swish_whole, y[0] = td_swish (x[0], x[1]))
CALL (swish_one, y[0] = td_swish (x[0], x[1]))
CALL (prelu, y[0] = td_prelu (x[0], x[1]))
CALL (prelu_one, y[0] = td_prelu (x[0], x[1]))
WHOLE (swish)
{
  for (int64_t i = 0; i < 12; i++)
    out[0][i] = in[0][i] * sigmoid (in[1][UNDER (i)] * in[0][i]);
}
MAP (swish_whole, a *sigmoid (a *b))
MAP (swish_one, a *sigmoid (a *b))
WHOLE (prelu)
{
  for (int64_t i = 0; i < 12; i++)
    out[0][i] = in[0][i] * (in[0][i] < 0 ? in[1][UNDER (i)] : 1);
}
MAP (prelu_one, a < 0 ? a * b : a)
CALL (maxout, y[0] = td_maxout_ (x[0], 3, NULL))
CALL (maxout_last, y[0] = td_maxout_ (x[0], 2, &(TdAxisOpt){ -1, 0 }))
WHOLE (maxout)
{
  for (int64_t i = 0; i < 8; i++)
    {
      const double *x = in[0] + i / 4 * 12 + i / 2 % 2 * 6 + i % 2;

      out[0][i] = fmax (x[0], fmax (x[2], x[4]));
    }
}
WHOLE (maxout_last)
{
  for (int64_t i = 0; i < 12; i++)
    out[0][i] = fmax (in[0][2 * i], in[0][2 * i + 1]);
}

/* --- along axes --- */

CALL (argmin, y[0] = td_argmin (x[0], 1))
WHOLE (argmin)
{
  for (int64_t i = 0; i < 8; i++)
    {
      const double *x = in[0] + i / 4 * 12 + i % 4;

      out[0][i] = x[0] <= x[4] && x[0] <= x[8] ? 0 : x[4] <= x[8] ? 1 : 2;
    }
}
CALL (cumsum, y[0] = td_cumsum (x[0], 1))
CALL (cumsum_last, y[0] = td_cumsum (x[0], -1))
CALL (cumsum_back, y[0] = td__apply1 (&td__cumsum_class, &((struct {
                     int axis;
                     bool back;
                   }){ 0, true }),
                                      NULL, x[0]))
WHOLE (cumsum)
{
  for (int64_t i = 0; i < 24; i++)
    out[0][i] = in[0][i] + (i / 4 % 3 > 0 ? out[0][i - 4] : 0);
}
WHOLE (cumsum_last)
{
  for (int64_t i = 0; i < 24; i++)
    out[0][i] = in[0][i] + (i % 4 > 0 ? out[0][i - 1] : 0);
}
WHOLE (cumsum_back)
{
  for (int64_t i = 23; i >= 0; i--)
    out[0][i] = in[0][i] + (i < 12 ? out[0][i + 12] : 0);
}
CALL (linear_interpolate, y[0] = td_linear_interpolate (x[0], x[1], x[2]))
MAP (linear_interpolate, a *b + (1 - a) * c)
CALL (bias, y[0] = td_bias_ (x[0], x[1], NULL))
CALL (scale, y[0] = td_scale_ (x[0], x[1], NULL))
CALL (bias_first, y[0] = td_bias_ (x[0], x[1], &(TdAxisOpt){ 0, 0 }))
CALL (scale_last, y[0] = td_scale_ (x[0], x[1], &(TdAxisOpt){ -1, 0 }))
WHOLE (bias)
{
  for (int64_t i = 0; i < 12; i++)
    out[0][i] = in[0][i] + in[1][UNDER (i)];
}
WHOLE (scale)
{
  for (int64_t i = 0; i < 12; i++)
    out[0][i] = in[0][i] * in[1][UNDER (i)];
}
WHOLE (bias_first)
{
  for (int64_t i = 0; i < 12; i++)
    out[0][i] = in[0][i] + in[1][i / 2];
}
MAP (scale_last, a *b)

/* --- sums of products: every assignment of the labels --- */

static int64_t
label_offset (const char *labels, size_t n, const TdShape *shape, const int64_t *at)
{
  int64_t offset = 0;

  for (size_t d = 0; d < n; d++)
    offset = offset * shape->dim[d] + at[(int)labels[d]];
  return offset;
}
static void
sum_products (const char *spec, const OpCase *c, const double *const *in, double *out)
{
  int64_t size[128] = { 0 }, at[128] = { 0 }, n = 1;
  const char *part[4] = { spec }, *arrow = strstr (spec, "->") + 2;
  size_t length[4];

  for (int k = 0; k < c->n_in; k++)
    {
      length[k] = strcspn (part[k], ",-");
      for (size_t d = 0; d < length[k]; d++)
        size[(int)part[k][d]] = c->in[k].shape.dim[d];
      part[k + 1] = part[k] + length[k] + 1;
    }
  for (int label = 0; label < 128; label++)
    n *= size[label] > 0 ? size[label] : 1;
  for (int64_t i = 0; i < n; i++)
    {
      double product = 1;
      int64_t rest = i;

      for (int label = 0; label < 128; label++)
        if (size[label] > 0)
          {
            at[label] = rest % size[label];
            rest /= size[label];
          }
      for (int k = 0; k < c->n_in; k++)
        product *= in[k][label_offset (part[k], length[k], &c->in[k].shape, at)];
      out[label_offset (arrow, strlen (arrow), &c->out[0], at)] += product;
    }
}
#define EINSUM(name, given, meaning)                                                           \
  static void call_##name (TdVar *const *x, TdVar **y)                                         \
  {                                                                                            \
    int n = 1;                                                                                 \
                                                                                               \
    for (const char *s = given; *s != '\0'; s++)                                               \
      n += *s == ',';                                                                          \
    y[0] = td_einsum (given, x, n);                                                            \
  }                                                                                            \
  WHOLE (name)                                                                                 \
  {                                                                                            \
    sum_products (meaning, c, in, out[0]);                                                     \
  }
EINSUM (matrix_product, "ij,jk->ik", "ij,jk->ik")
EINSUM (implicit, "ij,jk", "ij,jk->ik")
EINSUM (stacked, "bij,bkj->bik", "bij,bkj->bik")
EINSUM (inner, "ij,ij->", "ij,ij->")
EINSUM (outer, "i,j->ij", "i,j->ij")
EINSUM (transposed, "ijk->kij", "ijk->kij")
EINSUM (row_sums, "ij->i", "ij->i")
EINSUM (trace, "ii", "ii->")
EINSUM (diagonal, "iij->ji", "iij->ji")
EINSUM (three, "ij,jk,kl->li", "ij,jk,kl->li")
EINSUM (bilinear, "ni,oij,nj->no", "ni,oij,nj->no")
EINSUM (dots, "...ij,...jk->...ik", "xyij,xyjk->xyik")
EINSUM (fewer_dots, "i...,...->i...", "ixy,xy->ixy")
EINSUM (apart, "ij,kl->ik", "ij,kl->ik")
CALL (tensordot, y[0] = td_tensordot_ (x[0], x[1], NULL))
CALL (tensordot_lists, y[0] = td_tensordot_ (x[0], x[1],
                                             &(TdTensordotOpt){ 2, (const int[]){ 0, -1 },
                                                                (const int[]){ 2, 0 }, 0 }))
CALL (tensordot_0, y[0] = td_tensordot_ (x[0], x[1], &(TdTensordotOpt){ .axes = 0 }))
WHOLE (tensordot)
{
  sum_products ("ijk,jkl->il", c, in, out[0]);
}
WHOLE (tensordot_lists)
{
  sum_products ("ijk,kli->jl", c, in, out[0]);
}
WHOLE (tensordot_0)
{
  sum_products ("i,jk->ijk", c, in, out[0]);
}

/* --- noise: from the same place of the stream --- */

static void
stream (TdRandomKind kind, double p, double *out, int64_t n)
{
  TdShape shape = TD_SHAPE (n);
  TdTensor t = { out, &shape, n, TD_F64 };

  td__cpu_random (NULL, kind, (TdRngKey){ 5, 0 }, p, &t);
}
#define DRAW(name, ...) CALL (name, td_set_seed (5); __VA_ARGS__)
DRAW (gaussian_given, y[0] = td_gaussian_ (x[0], x[1], &(TdGaussianOpt){ x[2], NULL, 0 }))
MAP (gaussian_given, a + exp (b / 2) * c)
DRAW (gaussian, y[0] = td_gaussian_ (x[0], x[1], &(TdGaussianOpt){ NULL, &y[1], 0 }))
WHOLE (gaussian)
{
  stream (TD_RANDOM_NORMAL, 0, out[1], 15);
  for (int64_t i = 0; i < 15; i++)
    out[0][i] = in[0][i] + exp (in[1][i] / 2) * out[1][i];
}
DRAW (gumbel_softmax, y[0] = td_gumbel_softmax_ (x[0], &(TdGumbelSoftmaxOpt){ 0.8, 1, 0 }))
WHOLE (gumbel_softmax)
{
  double g[15];

  stream (TD_RANDOM_UNIFORM, 0, g, 15);
  for (int64_t row = 0; row < 3; row++)
    {
      double sum = 0;

      for (int64_t i = row * 5; i < row * 5 + 5; i++)
        sum += out[0][i] = exp ((in[0][i] - log (-log (g[i]))) / 0.8);
      for (int64_t i = row * 5; i < row * 5 + 5; i++)
        out[0][i] /= sum;
    }
}
static void
call_dropout_mask (TdVar *const *x, TdVar **y)
{
  td_set_seed (5);
  y[0] = td_dropout_with_at (x[0], 0.3, (TdDropoutOpt){ NULL, &y[1], 0 }, NULL);
}
WHOLE (dropout_mask)
{
  stream (TD_RANDOM_MASK, 0.3, out[1], 15);
  for (int64_t i = 0; i < 15; i++)
    out[0][i] = in[0][i] * out[1][i];
}
CALL (dropout_given,
      y[0] = td_dropout_with_at (x[0], 0.3, (TdDropoutOpt){ x[1], NULL, 0 }, NULL))
MAP (dropout_given, a *b)
DRAW (random_normal, y[0] = td__apply1 (&td__random_like_class, &((struct {
                       TdRngKey key;
                       int distribution;
                       double ratio;
                     }){ { 5, 0 }, 0, 0 }),
                                        NULL, x[0]))
WHOLE (random_normal)
{
  stream (TD_RANDOM_NORMAL, 0, out[0], 15);
}

/* --- squares and lengths --- */

CALL (squared_difference, y[0] = td_squared_difference (x[0], x[1]))
MAP (squared_difference, (a - b) * (a - b))

static double
fold_length (const double *v, int64_t n)
{
  double sum = 0;

  for (int64_t i = 0; i < n; i++)
    sum += v[i] * v[i];
  return sqrt (sum);
}
CALL (length, y[0] = td_sqrt_sum_square (x[0]))
CALL (length_1, y[0] = td_sqrt_sum_square_axes (x[0], (const int[]){ 1 }, 1, false))
CALL (length_02, y[0] = td_sqrt_sum_square_axes (x[0], (const int[]){ 0, -1 }, 2, true))

/* --- the tables --- */

// clang-format off
#define IN(low, high, gap, ...) { S (__VA_ARGS__), low, high, 0, gap, NULL }
#define ONE { 0, { 0 } }
#define X(...) IN (-2, 2, 0, __VA_ARGS__)
#define POSITIVE(...) IN (0.5, 1.5, 0, __VA_ARGS__)
#define ROW(op_name, name, n, ...) \
  { .op = op_name, .variant = #name, .call = call_##name, .n_in = n, .n_out = 1, .whole = whole_##name, __VA_ARGS__ }
#define MAP_ROW(op_name, name, n, ...) \
  { .op = op_name, .variant = #name, .call = call_##name, .n_in = n, .n_out = 1, .map = map_##name, __VA_ARGS__ }
#define SLOPED_ROWS(cls, name, low, high, gap, ...) \
  MAP_ROW (#cls, name, 1, .in = { IN (low, high, gap, 3, 5) }, .out = { S (3, 5) }, __VA_ARGS__), \
  MAP_ROW (#cls "_grad", name##_grad, 2, .in = { IN (low, high, gap, 3, 5), X (3, 5) }, .out = { S (3, 5) }, __VA_ARGS__)

const OpCase op_cases_math[] = {
  SLOPED_ROWS (leaky_relu, leaky_relu, -2, 2, 0.05),
  SLOPED_ROWS (leaky_relu, leaky_relu_up, -2, 2, 0.05),
  SLOPED_ROWS (elu, elu, -4, 2, 0.05),
  SLOPED_ROWS (elu, elu_half, -4, 2, 0.05),
  MAP_ROW ("selu", selu, 1, .in = { IN (-4, 2, 0.05, 3, 5) }, .out = { S (3, 5) }),
  SLOPED_ROWS (softplus, softplus, -6, 6, 0),
  SLOPED_ROWS (softplus, softplus_sharp, -3, 3, 0),
  SLOPED_ROWS (clipped_relu, clipped_relu, -2, 3, 0.05),
  MAP_ROW ("relu6", relu6, 1, .in = { IN (-2, 9, 0.05, 3, 5) }, .out = { S (3, 5) }),
  SLOPED_ROWS (hard_sigmoid, hard_sigmoid, -4, 4, 0),
  SLOPED_ROWS (silu, silu, -5, 5, 0),
  SLOPED_ROWS (gelu, gelu, -5, 5, 0),
  SLOPED_ROWS (gelu, gelu_tanh, -5, 5, 0),
  SLOPED_ROWS (erf, erf, -3, 3, 0),
  SLOPED_ROWS (log1p, log1p, -0.7, 3, 0),
  SLOPED_ROWS (expm1, expm1, -3, 2, 0),
  SLOPED_ROWS (rsqrt, rsqrt, 0.5, 3, 0, .loose = 2),
  MAP_ROW ("identity", identity, 1, .in = { X (3, 5) }, .out = { S (3, 5) }),
  MAP_ROW ("to_layout", to_layout, 1, .in = { X (2, 3, 2, 2) }, .out = { S (2, 3, 2, 2) }),
  MAP_ROW ("to_layout", to_layout_back, 1, .in = { X (2, 3, 5) }, .out = { S (2, 3, 5) }),
  ROW ("swish", swish, 2, .in = { X (2, 3, 2), X (3) }, .out = { S (2, 3, 2) }),
  MAP_ROW ("swish", swish_whole, 2, .in = { X (2, 3, 2), X (3, 2) }, .out = { S (2, 3, 2) }),
  MAP_ROW ("swish", swish_one, 2, .in = { X (2, 3), { { 0, { 0 } }, -2, 2, 0, 0, NULL } }, .out = { S (2, 3) }),
  ROW ("prelu", prelu, 2, .in = { IN (-2, 2, 0.05, 2, 3, 2), X (3) }, .out = { S (2, 3, 2) }),
  MAP_ROW ("prelu", prelu_one, 2, .in = { IN (-2, 2, 0.05, 2, 3), { { 0, { 0 } }, -2, 2, 0, 0, NULL } }, .out = { S (2, 3) }),
  ROW ("maxout", maxout, 1, .in = { X (2, 6, 2) }, .out = { S (2, 2, 2) }),
  ROW ("maxout", maxout_last, 1, .in = { X (2, 3, 4) }, .out = { S (2, 3, 2) }),
  ROW ("argmin", argmin, 1, .in = { X (2, 3, 4) }, .out = { S (2, 4) }, .out_dtype = TD_I32, .flags = OP_NO_GRAD),
  ROW ("cumsum", cumsum, 1, .in = { X (2, 3, 4) }, .out = { S (2, 3, 4) }),
  ROW ("cumsum", cumsum_last, 1, .in = { X (2, 3, 4) }, .out = { S (2, 3, 4) }),
  ROW ("cumsum", cumsum_back, 1, .in = { X (2, 3, 4) }, .out = { S (2, 3, 4) }),
  MAP_ROW ("linear_interpolate", linear_interpolate, 3, .in = { X (3, 5), X (3, 5), X (3, 5) }, .out = { S (3, 5) }),
  ROW ("bias", bias, 2, .in = { X (2, 3, 2), X (3) }, .out = { S (2, 3, 2) }),
  ROW ("bias", bias_first, 2, .in = { X (2, 3, 2), X (2, 3) }, .out = { S (2, 3, 2) }),
  ROW ("scale", scale, 2, .in = { X (2, 3, 2), X (3) }, .out = { S (2, 3, 2) }),
  MAP_ROW ("scale", scale_last, 2, .in = { X (2, 3, 2), X (2) }, .out = { S (2, 3, 2) }),
  ROW ("einsum", matrix_product, 2, .in = { X (2, 3), X (3, 4) }, .out = { S (2, 4) }),
  ROW ("einsum", implicit, 2, .in = { X (2, 3), X (3, 4) }, .out = { S (2, 4) }),
  ROW ("einsum", stacked, 2, .in = { X (2, 3, 2), X (2, 4, 2) }, .out = { S (2, 3, 4) }),
  ROW ("einsum", inner, 2, .in = { X (2, 3), X (2, 3) }, .out = { ONE }),
  ROW ("einsum", outer, 2, .in = { X (2), X (3) }, .out = { S (2, 3) }),
  ROW ("einsum", transposed, 1, .in = { X (2, 3, 4) }, .out = { S (4, 2, 3) }),
  ROW ("einsum", row_sums, 1, .in = { X (2, 3) }, .out = { S (2) }),
  ROW ("einsum", trace, 1, .in = { X (3, 3) }, .out = { ONE }),
  ROW ("einsum", diagonal, 1, .in = { X (3, 3, 2) }, .out = { S (2, 3) }),
  ROW ("einsum", three, 3, .in = { X (2, 3), X (3, 2), X (2, 4) }, .out = { S (4, 2) }),
  ROW ("einsum", bilinear, 3, .in = { X (2, 3), X (2, 3, 4), X (2, 4) }, .out = { S (2, 2) }),
  ROW ("einsum", dots, 2, .in = { X (2, 1, 2, 3), X (2, 1, 3, 2) }, .out = { S (2, 1, 2, 2) }),
  ROW ("einsum", fewer_dots, 2, .in = { X (2, 3, 2), X (3, 2) }, .out = { S (2, 3, 2) }),
  ROW ("einsum", apart, 2, .in = { X (2, 3), X (2, 2) }, .out = { S (2, 2) }),
  ROW ("tensordot", tensordot, 2, .in = { X (2, 3, 2), X (3, 2, 4) }, .out = { S (2, 4) }),
  ROW ("tensordot", tensordot_lists, 2, .in = { X (2, 3, 4), X (4, 3, 2) }, .out = { S (3, 3) }),
  ROW ("tensordot", tensordot_0, 2, .in = { X (2), X (3, 2) }, .out = { S (2, 3, 2) }),
  MAP_ROW ("gaussian", gaussian_given, 3, .in = { X (3, 5), X (3, 5), X (3, 5) }, .out = { S (3, 5) }, .flags = OP_NO_GRAD),
  { .op = "gaussian", .variant = "", .call = call_gaussian, .n_in = 2, .n_out = 2, .in = { X (3, 5), X (3, 5) }, .out = { S (3, 5), S (3, 5) }, .whole = whole_gaussian },
  ROW ("gumbel_softmax", gumbel_softmax, 1, .in = { X (3, 5) }, .out = { S (3, 5) }),
  { .op = "dropout", .variant = "with its mask", .call = call_dropout_mask, .n_in = 1, .n_out = 2, .in = { X (3, 5) }, .out = { S (3, 5), S (3, 5) }, .whole = whole_dropout_mask },
  MAP_ROW ("dropout", dropout_given, 2, .in = { X (3, 5), X (3, 5) }, .out = { S (3, 5) }),
  ROW ("random_like", random_normal, 1, .in = { X (3, 5) }, .out = { S (3, 5) }, .flags = OP_NO_GRAD),
  ROW ("average", average, 2, .in = { X (2, 3, 4), POSITIVE (2, 3, 4) }, .out = { S (1, 3, 1) }),
  ROW ("average", average_row, 2, .in = { X (2, 3, 4), POSITIVE (3) }, .out = { S (2, 4) }),
  MAP_ROW ("squared_difference", squared_difference, 2, .in = { X (3, 5), X (3, 5) }, .out = { S (3, 5) }),
  { .op = "sqrt_sum_square", .variant = "all", .call = call_length, .n_in = 1, .n_out = 1, .in = { X (2, 3, 4) }, .out = { { 0, { 0 } } }, .fold = fold_length, .mask = 7 },
  { .op = "sqrt_sum_square", .variant = "middle", .call = call_length_1, .n_in = 1, .n_out = 1, .in = { X (2, 3, 4) }, .out = { S (2, 4) }, .fold = fold_length, .mask = 2 },
  { .op = "sqrt_sum_square", .variant = "ends", .call = call_length_02, .n_in = 1, .n_out = 1, .in = { X (2, 3, 4) }, .out = { S (1, 3, 1) }, .fold = fold_length, .mask = 5 },
  ROW ("average", average_all, 1, .in = { X (2, 3, 4) }, .out = { { 0, { 0 } } }),
};
const int n_op_cases_math = (int)(sizeof op_cases_math / sizeof op_cases_math[0]);

#define E1(d, s) 1, { { d, s } }
#define E2(d, s, e, t) 2, { { d, s }, { e, t } }
CALL (einsum_unknown, y[0] = td_einsum ("ij->k", x, 1))
CALL (einsum_parts, y[0] = td_einsum ("ij,j->i", x, 1))
CALL (einsum_sign, y[0] = td_einsum ("i+j", x, 1))
CALL (softplus_0, y[0] = td_softplus_ (x[0], &(TdSoftplusOpt){ .beta = 0 }))
CALL (clipped_relu_below, y[0] = td_clipped_relu_ (x[0], &(TdClippedReluOpt){ .z = -1 }))
CALL (length_3, y[0] = td_sqrt_sum_square_axes (x[0], (const int[]){ 3 }, 1, false))
const OpError op_errors_math[] = {
  { "squared_difference", call_squared_difference, E2 (TD_F32, S (2, 3), TD_F32, S (3)), TD_ERR_SHAPE, "squared_difference: x1.shape == x2.shape expected: x1 (2, 3) f32, x2 (3) f32" },
  { "sqrt_sum_square", call_length, E1 (TD_I32, S (2, 3)), TD_ERR_DTYPE, "sqrt_sum_square: a floating-point x expected: x (2, 3) i32" },
  { "sqrt_sum_square", call_length_3, E1 (TD_F32, S (2, 3)), TD_ERR_SHAPE, "sqrt_sum_square: -x.ndim <= axis < x.ndim expected, got axis 3: x (2, 3) f32" },
  { "elu", call_elu, E1 (TD_I32, S (2, 3)), TD_ERR_DTYPE, "elu: a floating-point x expected: x (2, 3) i32" },
  { "gelu_grad", call_gelu_grad, E2 (TD_F32, S (2, 3), TD_F32, S (3)), TD_ERR_SHAPE, "gelu_grad: x.shape == gy.shape expected: x (2, 3) f32, gy (3) f32" },
  { "softplus", call_softplus_0, E1 (TD_F32, S (3)), TD_ERR_ARG, "softplus: beta != 0 expected, got 0: x (3) f32" },
  { "clipped_relu", call_clipped_relu_below, E1 (TD_F32, S (3)), TD_ERR_ARG, "clipped_relu: z >= 0 expected, got -1: x (3) f32" },
  { "average", call_average_row, E2 (TD_F32, S (2, 3), TD_F32, S (4)), TD_ERR_SHAPE, "average: weights.shape == x.shape, or (x.shape[axis]) with one axis, expected: x (2, 3) f32, weights (4) f32" },
  { "swish", call_swish, E2 (TD_F32, S (2, 3), TD_F32, S (2)), TD_ERR_SHAPE, "swish: beta.shape[0] == x.shape[1] expected, got 2 != 3: x (2, 3) f32, beta (2) f32" },
  { "prelu", call_prelu, E2 (TD_F32, S (2), TD_F32, S (2)), TD_ERR_SHAPE, "prelu: W.ndim < x.ndim expected, got 1 and 1: x (2) f32, W (2) f32" },
  { "maxout", call_maxout, E1 (TD_F32, S (2, 4)), TD_ERR_SHAPE, "maxout: x.shape[axis] % pool_size == 0 expected, got axis 1, pool_size 3: x (2, 4) f32" },
  { "cumsum", call_cumsum, E1 (TD_F32, S (2)), TD_ERR_SHAPE, "cumsum: -x.ndim <= axis < x.ndim expected, got axis 1: x (2) f32" },
  { "bias", call_bias, E2 (TD_F32, S (2, 3), TD_F32, S (2)), TD_ERR_SHAPE, "bias: x.shape[axis:axis + y.ndim] == y.shape expected, got axis 1: x (2, 3) f32, y (2) f32" },
  { "linear_interpolate", call_linear_interpolate, 3, { { TD_F32, S (2) }, { TD_F32, S (2) }, { TD_F32, S (3) } }, TD_ERR_SHAPE, "linear_interpolate: p.shape == y.shape expected: p (2) f32, x (2) f32, y (3) f32" },
  { "gaussian", call_gaussian_given, 3, { { TD_F32, S (2) }, { TD_F32, S (3) }, { TD_F32, S (2) } }, TD_ERR_SHAPE, "gaussian: mean.shape == ln_var.shape expected: mean (2) f32, ln_var (3) f32, eps (2) f32" },
  { "tensordot", call_tensordot, E2 (TD_F32, S (2, 3, 2), TD_F32, S (3, 3, 2)), TD_ERR_SHAPE, "tensordot: axes of equal sizes, each once, expected: a (2, 3, 2) f32, b (3, 3, 2) f32" },
  { "einsum", call_matrix_product, E2 (TD_F32, S (2, 3), TD_F32, S (2, 3)), TD_ERR_SHAPE, "einsum: equal sizes for equal labels expected, got 3 and 2 in operand 1, in \"ij,jk->ik\"" },
  { "einsum", call_transposed, E1 (TD_F32, S (2, 3)), TD_ERR_SHAPE, "einsum: as many labels as axes expected, got 3 and 2 in operand 0, in \"ijk->kij\"" },
  { "einsum", call_einsum_unknown, E1 (TD_F32, S (2, 3)), TD_ERR_ARG, "einsum: each label of the result once, and in an operand, expected, in \"ij->k\"" },
  { "einsum", call_einsum_parts, E1 (TD_F32, S (2, 3)), TD_ERR_ARG, "einsum: as many parts as operands expected, in \"ij,j->i\"" },
  { "einsum", call_einsum_sign, E1 (TD_F32, S (2, 3)), TD_ERR_ARG, "einsum: letters, commas, one ... per operand and one -> expected, in \"i+j\"" },
};
// clang-format on
const int n_op_errors_math = (int)(sizeof op_errors_math / sizeof op_errors_math[0]);
