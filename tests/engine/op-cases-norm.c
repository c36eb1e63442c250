/* Rows for normalisation by rows, groups, norms and neighbours.  References are the definitions
 * as loops in double precision. SPDX-License-Identifier: MIT */
#include "op-cases.h"

#include <math.h>
#include <string.h>

#define S(...) TD_SHAPE (__VA_ARGS__)
#define CALL(name, ...)                                                                        \
  static void call_##name (TdVar *const *x, TdVar **y)                                         \
  {                                                                                            \
    __VA_ARGS__;                                                                               \
  }
#define WHOLE(name)                                                                            \
  static void whole_##name (const OpCase *c, const double *const *in, double *const *out)

/* x as rows of m numbers; number i of row r is scaled by gamma[r % groups * channels + i /
 * rest]. Layers: one group, rest 1. */
typedef struct
{
  int64_t rows, groups, channels, rest;
  bool centred;
} View;

/* Layer and root mean square rows are (.., d); groups are two, of (n, 4, 3). */
static View
view_of (const OpCase *c)
{
  const TdShape *x = &c->in[0].shape;
  const int64_t d = x->dim[x->ndim - 1], size = td_shape_size (x);

  if (strncmp (c->op, "group", 5) == 0)
    return (View){ x->dim[0] * 2, 2, x->dim[1] / 2, x->ndim > 2 ? x->dim[2] : 1, true };
  return (View){ size / d, 1, d, 1, strncmp (c->op, "layer", 5) == 0 };
}

static void
moments (const View *v, const double *row, double *mean, double *s)
{
  const int64_t m = v->channels * v->rest;
  double squares = 0;

  *mean = 0;
  for (int64_t i = 0; v->centred && i < m; i++)
    *mean += row[i] / (double)m;
  for (int64_t i = 0; i < m; i++)
    squares += pow (row[i] - *mean, 2);
  *s = 1 / sqrt (squares / (double)m + 1e-5);
}

WHOLE (rows)
{
  const View v = view_of (c);
  const int64_t m = v.channels * v.rest;

  for (int64_t at = 0; at < v.rows * m; at++)
    {
      const int64_t row = at / m, channel = row % v.groups * v.channels + at % m / v.rest;
      double mean, s;

      moments (&v, in[0] + row * m, &mean, &s);
      out[0][at] = (in[0][at] - mean) * s * in[1][channel] + (v.centred ? in[2][channel] : 0);
    }
}

WHOLE (rows_grad)
{
  const View v = view_of (c);
  const int64_t m = v.channels * v.rest;

  for (int64_t row = 0; row < v.rows; row++)
    {
      const double *x = in[0] + row * m, *gy = in[2] + row * m;
      double mean, s, a = 0, b = 0;

      moments (&v, x, &mean, &s);
      for (int64_t i = 0; i < m; i++)
        {
          const int64_t channel = row % v.groups * v.channels + i / v.rest;
          const double h = (x[i] - mean) * s;

          a += gy[i] * in[1][channel] * h / (double)m;
          b += v.centred ? gy[i] * in[1][channel] / (double)m : 0;
          out[1][channel] += gy[i] * h;
          if (v.centred)
            out[2][channel] += gy[i];
        }
      for (int64_t i = 0; i < m; i++)
        out[0][row * m + i] = s
                              * (gy[i] * in[1][row % v.groups * v.channels + i / v.rest] - b
                                 - (x[i] - mean) * s * a);
    }
}

CALL (layer, y[0] = td_layer_normalization_ (x[0], x[1], x[2], NULL))
CALL (group, y[0] = td_group_normalization_ (x[0], 2, x[1], x[2], NULL))
CALL (rms, y[0] = td_rms_normalization_ (x[0], x[1], NULL))

/* Mean and deviation are those of x, as in backward. */
static void
apply_grad (const OpCase *c, const TdOpClass *cls, TdVar *const *x, TdVar **y)
{
  const View v = view_of (c);
  const struct
  {
    double eps;
    int groups;
  } attrs = { 1e-5, (int)v.groups };
  const int last = 1;
  TdVar *rows = td_reshape (x[0], S (v.rows, v.channels * v.rest));
  TdVar *mean = td_mean_axes (rows, &last, 1, true);
  TdVar *off = v.centred ? td_sub (rows, mean) : rows;
  TdVar *var = td_mean_axes (td_square (off), &last, 1, true);
  TdVar *s = td_flatten (td_pow_scalar (td_add_scalar (var, 1e-5), -0.5));
  TdVar *in[5] = { x[0], x[1], x[2], v.centred ? td_flatten (mean) : s, s };

  td_apply (cls, &attrs, in, v.centred ? 5 : 4, y, v.centred ? 3 : 2);
}

static const OpCase layer_grad_row = { .op = "layer", .in = { { .shape = { 2, { 3, 19 } } } } };
static const OpCase group_grad_row
    = { .op = "group", .in = { { .shape = { 3, { 2, 4, 3 } } } } };
static const OpCase rms_grad_row = { .op = "rms", .in = { { .shape = { 2, { 3, 19 } } } } };
CALL (layer_grad, apply_grad (&layer_grad_row, &td__layer_normalization_grad_class, x, y))
CALL (group_grad, apply_grad (&group_grad_row, &td__group_normalization_grad_class, x, y))
CALL (rms_grad, apply_grad (&rms_grad_row, &td__rms_normalization_grad_class, x, y))

/* --- by the Euclidean norm: of axis 1, and of axes 0 and 2, of (2, 3, 2) --- */

CALL (normalize, y[0] = td_normalize (x[0], 1e-5, NULL, 0))
CALL (normalize_axes, y[0] = td_normalize (x[0], 0.5, (const int[]){ 0, -1 }, 2))
WHOLE (normalize)
{
  for (int64_t at = 0; at < 12; at++)
    {
      double squares = 0;

      for (int64_t k = 0; k < 3; k++)
        squares += pow (in[0][at / 6 * 6 + k * 2 + at % 2], 2);
      out[0][at] = in[0][at] / (sqrt (squares) + 1e-5);
    }
}
WHOLE (normalize_axes)
{
  for (int64_t at = 0; at < 12; at++)
    {
      double squares = 0;

      for (int64_t k = 0; k < 12; k++)
        if (k / 2 % 3 == at / 2 % 3)
          squares += pow (in[0][k], 2);
      out[0][at] = in[0][at] / (sqrt (squares) + 0.5);
    }
}

/* --- by the squares of neighbours: five channels around, of (2, 7, 2) --- */

static double
around (const double *x, int64_t at, double power)
{
  double sum = 0;

  for (int64_t k = -2; k <= 2; k++)
    if (at / 2 % 7 + k >= 0 && at / 2 % 7 + k < 7)
      sum += pow (x[at + 2 * k], power);
  return sum;
}
CALL (local_response,
      y[0] = td_local_response_normalization_ (
          x[0], &(TdLocalResponseOpt){ .n = 5, .k = 2, .alpha = 0.25, .beta = 0.75 }))
CALL (window_sum, y[0] = td__apply1 (&td__channel_window_sum_class, &(const struct {
                    int n;
                    double unused[3];
                  }){ 5, { 0 } },
                                     NULL, x[0]))
WHOLE (local_response)
{
  for (int64_t at = 0; at < 28; at++)
    out[0][at] = in[0][at] * pow (2 + 0.25 * around (in[0], at, 2), -0.75);
}
WHOLE (window_sum)
{
  for (int64_t at = 0; at < 28; at++)
    out[0][at] = around (in[0], at, 1);
}

/* --- a forgotten function of two inputs and outputs --- */

static void
forgotten (void *user, TdVar *const *x, int n, TdVar **y, int m)
{
  y[0] = td_tanh (td_mul (x[0], x[1]));
  y[1] = td_exp (y[0]);
}
CALL (forget, td_forget (forgotten, NULL, x, 2, y, 2))
WHOLE (forget)
{
  for (int64_t at = 0; at < 6; at++)
    {
      out[0][at] = tanh (in[0][at] * in[1][at]);
      out[1][at] = exp (out[0][at]);
    }
}

/* --- the tables --- */

// clang-format off
#define X(...) { S (__VA_ARGS__), -1.5, 1.5, 0, 0, NULL }
#define POSITIVE(...) { S (__VA_ARGS__), 0.5, 1.5, 0, 0, NULL }
#define ROW(op_name, name, n, ...) \
  { .op = op_name, .variant = #name, .call = call_##name, .n_in = n, .n_out = 1, .whole = whole_##name, __VA_ARGS__ }
#define ROWS(op_name, text, name, n, m, reference, ...) \
  { .op = op_name, .variant = text, .call = call_##name, .n_in = n, .n_out = m, .whole = whole_##reference, .loose = 10, __VA_ARGS__ }

const OpCase op_cases_norm[] = {
  ROWS ("layer_normalization", "", layer, 3, 1, rows, .in = { X (4, 5), POSITIVE (5), X (5) }, .out = { S (4, 5) }),
  ROWS ("layer_normalization", "of 3 axes", layer, 3, 1, rows, .in = { X (2, 2, 19), POSITIVE (19), X (19) }, .out = { S (2, 2, 19) }),
  ROWS ("layer_normalization_grad", "", layer_grad, 3, 3, rows_grad, .in = { X (3, 19), POSITIVE (19), X (3, 19) }, .out = { S (3, 19), S (19), S (19) }),
  ROWS ("group_normalization", "", group, 3, 1, rows, .in = { X (2, 4, 3), POSITIVE (4), X (4) }, .out = { S (2, 4, 3) }),
  ROWS ("group_normalization", "of 2 axes", group, 3, 1, rows, .in = { X (3, 6), POSITIVE (6), X (6) }, .out = { S (3, 6) }),
  ROWS ("group_normalization", "of planes", group, 3, 1, rows, .in = { X (1, 2, 35), POSITIVE (2), X (2) }, .out = { S (1, 2, 35) }),
  ROWS ("group_normalization_grad", "", group_grad, 3, 3, rows_grad, .in = { X (2, 4, 3), POSITIVE (4), X (2, 4, 3) }, .out = { S (2, 4, 3), S (4), S (4) }),
  ROWS ("rms_normalization", "", rms, 2, 1, rows, .in = { X (3, 19), POSITIVE (19) }, .out = { S (3, 19) }),
  ROWS ("rms_normalization_grad", "", rms_grad, 3, 2, rows_grad, .in = { X (3, 19), POSITIVE (19), X (3, 19) }, .out = { S (3, 19), S (19) }),
  ROW ("normalize", normalize, 1, .in = { X (2, 3, 2) }, .out = { S (2, 3, 2) }),
  ROW ("normalize", normalize_axes, 1, .in = { X (2, 3, 2) }, .out = { S (2, 3, 2) }),
  ROW ("local_response_normalization", local_response, 1, .in = { X (2, 7, 2) }, .out = { S (2, 7, 2) }),
  { .op = "forget", .variant = "", .call = call_forget, .n_in = 2, .n_out = 2, .in = { X (2, 3), X (2, 3) }, .out = { S (2, 3), S (2, 3) }, .whole = whole_forget, .flags = OP_NO_SECOND },
  ROW ("channel_window_sum", window_sum, 1, .in = { X (2, 7, 2) }, .out = { S (2, 7, 2) }),
};
const int n_op_cases_norm = (int)(sizeof op_cases_norm / sizeof op_cases_norm[0]);

#define E1(d, s) 1, { { d, s } }
#define E2(d, s, e, t) 2, { { d, s }, { e, t } }
#define E3(d, s, e, t, f, u) 3, { { d, s }, { e, t }, { f, u } }
const OpError op_errors_norm[] = {
  { "layer_normalization", call_layer, E3 (TD_F32, S (2, 3), TD_F32, S (4), TD_F32, S (3)), TD_ERR_SHAPE, "layer_normalization: gamma.shape[0] == x.shape[1] expected, got 4 != 3: x (2, 3) f32, gamma (4) f32, beta (3) f32" },
  { "layer_normalization", call_layer, E3 (TD_F32, S (3), TD_F32, S (3), TD_F32, S (3)), TD_ERR_SHAPE, "layer_normalization: x.ndim >= 2 expected, got 1: x (3) f32, gamma (3) f32, beta (3) f32" },
  { "group_normalization", call_group, E3 (TD_F32, S (2, 3), TD_F32, S (3), TD_F32, S (3)), TD_ERR_ARG, "group_normalization: groups >= 1 that divide x.shape[1] expected, got 2: x (2, 3) f32, gamma (3) f32, beta (3) f32" },
  { "rms_normalization", call_rms, E2 (TD_F32, S (2, 3), TD_F64, S (3)), TD_ERR_DTYPE, "rms_normalization: x.dtype == gamma.dtype expected, got f32 != f64: x (2, 3) f32, gamma (3) f64" },
  { "normalize", call_normalize, E1 (TD_F32, S (3)), TD_ERR_SHAPE, "normalize: different axes, -x.ndim <= axis < x.ndim, expected, got 1: x (3) f32" },
  { "local_response_normalization", call_local_response, E1 (TD_F32, S (3)), TD_ERR_SHAPE, "local_response_normalization: x.ndim >= 2 expected, got 1: x (3) f32" },
};
// clang-format on
const int n_op_errors_norm = (int)(sizeof op_errors_norm / sizeof op_errors_norm[0]);
