/* Rows for products, normalisation, losses and recurrent layers.
 * References are the definitions as loops in double precision.
 * SPDX-License-Identifier: MIT */
#include "op-cases.h"

#include <math.h>
#include <string.h>

#include "compute/cpu/cpu.h"
#include "compute/ops/layers.h"

#define S(...) TD_SHAPE (__VA_ARGS__)
#define CALL(name, ...)                                                                        \
  static void call_##name (TdVar *const *x, TdVar **y)                                         \
  {                                                                                            \
    __VA_ARGS__;                                                                               \
  }
#define WHOLE(name)                                                                            \
  static void whole_##name (const OpCase *c, const double *const *in, double *const *out)

static int64_t
size_of (const TdShape *s)
{
  return td_shape_size (s);
}

/* The class applied as backward applies it; outputs past the first n are not compared. */
static void
apply (const TdOpClass *cls, const void *attrs, TdVar *const *x, int n_in, int n_out, TdVar **y,
       int n)
{
  TdVar *out[3] = { NULL };

  td_apply (cls, attrs, x, n_in, out, n_out);
  memcpy (y, out, (size_t)n * sizeof *y);
}

/* --- products --- */

#define PRODUCT(name, f, ta, tb)                                                               \
  CALL (name, y[0] = f (x[0], x[1], ta, tb))                                                   \
  WHOLE (name)                                                                                 \
  {                                                                                            \
    product (c, in, out[0], ta, tb);                                                           \
  }

/* Stacks of matrices; a plain product is a stack of one. */
static void
product (const OpCase *c, const double *const *in, double *out, bool ta, bool tb)
{
  const int n = c->out[0].ndim;
  const int64_t *a = c->in[0].shape.dim + n - 2, *b = c->in[1].shape.dim + n - 2;
  const int64_t *y = c->out[0].dim + n - 2, k = ta ? a[0] : a[1];

  for (int64_t s = 0; s < (n == 3 ? c->out[0].dim[0] : 1); s++)
    for (int64_t i = 0; i < y[0]; i++)
      for (int64_t j = 0; j < y[1]; j++)
        {
          double sum = 0;

          for (int64_t l = 0; l < k; l++)
            sum += in[0][s * a[0] * a[1] + (ta ? l * a[1] + i : i * a[1] + l)]
                   * in[1][s * b[0] * b[1] + (tb ? j * b[1] + l : l * b[1] + j)];
          out[(s * y[0] + i) * y[1] + j] = sum;
        }
}

PRODUCT (matmul, td_matmul, false, false)
PRODUCT (matmul_ta, td_matmul, true, false)
PRODUCT (matmul_tb, td_matmul, false, true)
PRODUCT (matmul_tab, td_matmul, true, true)
PRODUCT (batch_matmul, td_batch_matmul, false, false)
PRODUCT (batch_matmul_tab, td_batch_matmul, true, true)

CALL (linear, y[0] = td_linear (x[0], x[1], x[2]))
CALL (linear_no_bias, y[0] = td_linear (x[0], x[1], NULL))
WHOLE (linear)
{
  const int64_t m = c->out[0].dim[0], n = c->out[0].dim[1], k = c->in[1].shape.dim[1];

  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++)
      {
        double sum = c->n_in == 3 ? in[2][j] : 0;

        for (int64_t l = 0; l < k; l++)
          sum += in[0][i * k + l] * in[1][j * k + l];
        out[0][i * n + j] = sum;
      }
}

/* --- normalisation --- */

CALL (batch_norm, y[0] = td_batch_normalization_ (x[0], x[1], x[2], NULL))
CALL (fixed_batch_norm,
      y[0] = td_fixed_batch_normalization (x[0], x[1], x[2], x[3], x[4], 2e-5))

/* One channel of (n, c, rest): mean and 1 / standard deviation. */
static void
moments (const TdShape *s, const double *x, int64_t ch, double *mean, double *inv_std)
{
  const int64_t rest = s->ndim > 2 ? s->dim[2] : 1;
  double sum = 0, squares = 0;

  for (int64_t i = 0; i < s->dim[0]; i++)
    for (int64_t r = 0; r < rest; r++)
      sum += x[(i * s->dim[1] + ch) * rest + r];
  *mean = sum / (double)(s->dim[0] * rest);
  for (int64_t i = 0; i < s->dim[0]; i++)
    for (int64_t r = 0; r < rest; r++)
      squares += pow (x[(i * s->dim[1] + ch) * rest + r] - *mean, 2);
  *inv_std = 1 / sqrt (squares / (double)(s->dim[0] * rest) + 2e-5);
}
static int64_t
channel_of (const TdShape *s, int64_t at)
{
  return at / (s->ndim > 2 ? s->dim[2] : 1) % s->dim[1];
}
WHOLE (batch_norm)
{
  const TdShape *s = &c->out[0];

  for (int64_t i = 0; i < size_of (s); i++)
    {
      const int64_t ch = channel_of (s, i);
      double mean, inv_std;

      moments (s, in[0], ch, &mean, &inv_std);
      out[0][i] = (in[0][i] - mean) * inv_std * in[1][ch] + in[2][ch];
    }
}
WHOLE (fixed_batch_norm)
{
  for (int64_t i = 0; i < size_of (&c->out[0]); i++)
    {
      const int64_t ch = channel_of (&c->out[0], i);

      out[0][i] = (in[0][i] - in[3][ch]) / sqrt (in[4][ch] + 2e-5) * in[1][ch] + in[2][ch];
    }
}
/* Mean and deviation are those of x, as in backward. */
static void
call_batch_norm_grad (TdVar *const *x, TdVar **y)
{
  const double attrs[] = { 2e-5, 0.9 };
  const int axes[] = { 0, 2 };
  TdVar *mean = td_mean_axes (x[0], axes, 2, true);
  TdVar *var = td_mean_axes (td_square (td_sub (x[0], mean)), axes, 2, false);
  TdVar *in[] = { x[0], x[1], x[2], td_squeeze (mean),
                  td_pow_scalar (td_add_scalar (var, 2e-5), -0.5) };

  apply (&td__batch_normalization_grad_class, attrs, in, 5, 3, y, 3);
}
WHOLE (batch_norm_grad)
{
  const TdShape *s = &c->out[0];
  const double m = (double)(s->dim[0] * s->dim[2]);

  for (int64_t i = 0; i < size_of (s); i++)
    {
      const int64_t ch = channel_of (s, i);
      double mean, inv_std;

      moments (s, in[0], ch, &mean, &inv_std);
      out[1][ch] += in[2][i] * (in[0][i] - mean) * inv_std;
      out[2][ch] += in[2][i];
    }
  for (int64_t i = 0; i < size_of (s); i++)
    {
      const int64_t ch = channel_of (s, i);
      double mean, inv_std;

      moments (s, in[0], ch, &mean, &inv_std);
      out[0][i] = in[1][ch] * inv_std
                  * (in[2][i] - ((in[0][i] - mean) * inv_std * out[1][ch] + out[2][ch]) / m);
    }
}

static void
call_dropout (TdVar *const *x, TdVar **y)
{
  td_set_seed (5);
  y[0] = td_dropout (x[0], 0.25);
}
WHOLE (dropout)
{
  TdShape shape = c->out[0];
  TdTensor mask = { out[0], &shape, size_of (&shape), TD_F64 };

  td__cpu_random (NULL, TD_RANDOM_MASK, (TdRngKey){ 5, 0 }, 0.25, &mask);
  for (int64_t i = 0; i < size_of (&shape); i++)
    out[0][i] *= in[0][i];
}

static const double ids[] = { 2, 0, 2, 3 };
CALL (embed_id, y[0] = td_embed_id (x[0], x[1]))
CALL (embed_id_grad,
      y[0] = td__apply2 (&td__embed_id_grad_class, (const int[]){ 5 }, NULL, x[0], x[1]))
WHOLE (embed_id)
{
  for (int64_t i = 0; i < 12; i++)
    out[0][i] = in[1][(int64_t)ids[i / 3] * 3 + i % 3];
}
WHOLE (embed_id_grad)
{
  for (int64_t i = 0; i < 12; i++)
    out[0][(int64_t)ids[i / 3] * 3 + i % 3] += in[1][i];
}

/* --- softmax over axis 1 of (2, 3, 2), and losses --- */

static double
exp_sum (const double *x, int64_t at)
{
  const int64_t first = at / 6 * 6 + at % 2;

  return exp (x[first]) + exp (x[first + 2]) + exp (x[first + 4]);
}
/* The sum of y g over the place's row; y NULL: of g. */
static double
row_sum (const double *y, const double *g, int64_t at)
{
  double sum = 0;

  for (int64_t k = at / 6 * 6 + at % 2, n = k + 6; k < n; k += 2)
    sum += (y != NULL ? y[k] : 1) * g[k];
  return sum;
}
static const TdSoftmaxAttrs axis_1 = { 1 };
CALL (softmax, y[0] = td_softmax_ (x[0], NULL))
CALL (log_softmax, y[0] = td_log_softmax_ (x[0], NULL))
CALL (softmax_grad, y[0] = td__apply2 (&td__softmax_grad_class, &axis_1, NULL, x[0], x[1]))
CALL (log_softmax_grad,
      y[0] = td__apply2 (&td__log_softmax_grad_class, &axis_1, NULL, x[0], x[1]))
WHOLE (softmax)
{
  for (int64_t i = 0; i < 12; i++)
    out[0][i] = exp (in[0][i]) / exp_sum (in[0], i);
}
WHOLE (log_softmax)
{
  for (int64_t i = 0; i < 12; i++)
    out[0][i] = in[0][i] - log (exp_sum (in[0], i));
}
WHOLE (softmax_grad)
{
  for (int64_t i = 0; i < 12; i++)
    out[0][i] = in[0][i] * (in[1][i] - row_sum (in[0], in[1], i));
}
WHOLE (log_softmax_grad)
{
  for (int64_t i = 0; i < 12; i++)
    out[0][i] = in[1][i] - exp (in[0][i]) * row_sum (NULL, in[1], i);
}

/* Labels of (2, 2) rows; 1 is ignored below, so three rows count. */
static const double labels[] = { 2, 0, 1, 2 };
typedef struct
{
  int ignore;
  bool normalize;
  int reduce;
} EntropyAttrs;
static const EntropyAttrs ignoring = { 1, true, 0 };
CALL (entropy, y[0] = td_softmax_cross_entropy_ (x[0], x[1],
                                                 &(TdCrossEntropyOpt){ .ignore_label = 1,
                                                                       .normalize = true }))
CALL (entropy_weighted,
      y[0] = td_softmax_cross_entropy_ (x[0], x[1],
                                        &(TdCrossEntropyOpt){ .ignore_label = -1,
                                                              .class_weight = x[2] }))
CALL (entropy_grad,
      y[0] = td__applyn (&td__softmax_cross_entropy_grad_class, &ignoring, NULL, x, 3))
CALL (entropy_rows,
      y[0] = td__applyn (&td__softmax_cross_entropy_rows_class, &ignoring, NULL, x, 2))
static int64_t
labelled (int64_t row)
{
  return row / 2 * 6 + (int64_t)labels[row] * 2 + row % 2;
}
WHOLE (entropy)
{
  for (int64_t row = 0; row < 4; row++)
    if (labels[row] != 1)
      out[0][0] += (log (exp_sum (in[0], labelled (row))) - in[0][labelled (row)]) / 3;
}
/* Not normalised: divided by the batch of 2, as in Chainer, not by 4 rows. */
WHOLE (entropy_weighted)
{
  for (int64_t row = 0; row < 4; row++)
    out[0][0] += (log (exp_sum (in[0], labelled (row))) - in[0][labelled (row)])
                 * in[2][(int64_t)labels[row]] / 2;
}
WHOLE (entropy_grad)
{
  for (int64_t i = 0; i < 12; i++)
    {
      const int64_t row = i / 6 * 2 + i % 2;

      out[0][i] = labels[row] == 1 ? 0 : (in[0][i] - (labelled (row) == i)) * in[2][0] / 3;
    }
}
WHOLE (entropy_rows)
{
  for (int64_t row = 0; row < 4; row++)
    out[0][row] = labels[row] == 1 ? 0 : in[1][(int64_t)labels[row]] / 3;
}

CALL (mean_squared_error, y[0] = td_mean_squared_error (x[0], x[1]))
WHOLE (mean_squared_error)
{
  for (int64_t i = 0; i < 6; i++)
    out[0][0] += pow (in[0][i] - in[1][i], 2) / 6;
}
CALL (accuracy, y[0] = td_accuracy (x[0], x[1]))
WHOLE (accuracy)
{
  for (int64_t row = 0; row < 4; row++)
    {
      const double *x = in[0] + row / 2 * 6 + row % 2;
      const int best = x[2] > x[0] ? (x[4] > x[2] ? 2 : 1) : (x[4] > x[0] ? 2 : 0);

      out[0][0] += best == labels[row] ? 0.25 : 0;
    }
}

/* --- lstm --- */

static double
sigmoid (double x)
{
  return 1 / (1 + exp (-x));
}
CALL (lstm, y[0] = td_lstm (x[0], x[1], &y[1]))
WHOLE (lstm)
{
  for (int64_t i = 0; i < 6; i++)
    {
      const double *g = in[1] + 4 * i;

      out[0][i] = tanh (g[0]) * sigmoid (g[1]) + sigmoid (g[2]) * in[0][i];
      out[1][i] = sigmoid (g[3]) * tanh (out[0][i]);
    }
}
/* The third row of c belongs to a sequence that has ended. */
WHOLE (lstm_ended)
{
  whole_lstm (c, in, out);
  memcpy (out[0] + 6, in[0] + 6, 3 * sizeof (double));
}
static void
call_lstm_grad (TdVar *const *x, TdVar **y)
{
  TdVar *in[] = { x[0], x[1], td_lstm (x[0], x[1], NULL), x[2], x[3] };

  apply (&td__lstm_grad_class, NULL, in, 5, 2, y, 2);
}
WHOLE (lstm_grad)
{
  for (int64_t k = 0; k < 6; k++)
    {
      const double *g = in[1] + 4 * k;
      const double a = tanh (g[0]), i = sigmoid (g[1]), f = sigmoid (g[2]), o = sigmoid (g[3]);
      const double t = tanh (a * i + f * in[0][k]);
      const double d = in[2][k] + in[3][k] * o * (1 - t * t);

      out[0][k] = d * f;
      out[1][4 * k] = d * i * (1 - a * a);
      out[1][4 * k + 1] = d * a * i * (1 - i);
      out[1][4 * k + 2] = d * in[0][k] * f * (1 - f);
      out[1][4 * k + 3] = in[3][k] * t * o * (1 - o);
    }
}

CALL (linear_rows, y[0] = td_linear_axes (x[0], x[1], x[2], 2))
/* Of x (n, m, in ...), W (out, in), b: rows of both first axes. */
WHOLE (linear_rows)
{
  const int64_t in_size = c->in[1].shape.dim[1], n = td_shape_size (&c->in[0].shape) / in_size;
  const int64_t o_size = c->in[1].shape.dim[0];

  for (int64_t i = 0; i < n; i++)
    for (int64_t o = 0; o < o_size; o++)
      {
        double y = in[2][o];

        for (int64_t k = 0; k < in_size; k++)
          y += in[0][i * in_size + k] * in[1][o * in_size + k];
        out[0][i * o_size + o] = y;
      }
}

/* Of e1 (n, j), e2 (n, k), W (j, k, l), and V1, V2, b if there are. */
WHOLE (bilinear)
{
  const int64_t *W = c->in[2].shape.dim, n = c->out[0].dim[0];

  for (int64_t i = 0; i < n; i++)
    for (int64_t l = 0; l < W[2]; l++)
      {
        double y = c->n_in == 6 ? in[5][l] : 0;

        for (int64_t j = 0; j < W[0]; j++)
          for (int64_t k = 0; k < W[1]; k++)
            y += in[0][i * W[0] + j] * in[1][i * W[1] + k] * in[2][(j * W[1] + k) * W[2] + l];
        for (int64_t j = 0; c->n_in == 6 && j < W[0]; j++)
          y += in[0][i * W[0] + j] * in[3][j * W[2] + l];
        for (int64_t k = 0; c->n_in == 6 && k < W[1]; k++)
          y += in[1][i * W[1] + k] * in[4][k * W[2] + l];
        out[0][i * W[2] + l] = y;
      }
}
CALL (bilinear, y[0] = td_bilinear (x[0], x[1], x[2], x[3], x[4], x[5]))
CALL (bilinear_plain, y[0] = td_bilinear (x[0], x[1], x[2], NULL, NULL, NULL))

/* --- the tables --- */

// clang-format off
#define X(...) { S (__VA_ARGS__), -1.5, 1.5, 0, 0, NULL }
#define POSITIVE(...) { S (__VA_ARGS__), 0.5, 1.5, 0, 0, NULL }
#define INDICES(numbers, ...) { S (__VA_ARGS__), 0, 0, TD_I32, 0, numbers }
#define NUMBER { { 0, { 0 } }, 0.5, 2, 0, 0, NULL }
#define ROW(op_name, name, n, ...) \
  { .op = op_name, .variant = #name, .call = call_##name, .n_in = n, .n_out = 1, .whole = whole_##name, __VA_ARGS__ }

const OpCase op_cases_layers[] = {
  ROW ("matmul", matmul, 2, .in = { X (3, 4), X (4, 2) }, .out = { S (3, 2) }),
  ROW ("matmul", matmul_ta, 2, .in = { X (4, 3), X (4, 2) }, .out = { S (3, 2) }),
  ROW ("matmul", matmul_tb, 2, .in = { X (3, 4), X (2, 4) }, .out = { S (3, 2) }),
  ROW ("matmul", matmul_tab, 2, .in = { X (4, 3), X (2, 4) }, .out = { S (3, 2) }),
  ROW ("batch_matmul", batch_matmul, 2, .in = { X (2, 3, 4), X (2, 4, 2) }, .out = { S (2, 3, 2) }),
  ROW ("batch_matmul", batch_matmul_tab, 2, .in = { X (2, 4, 3), X (2, 2, 4) }, .out = { S (2, 3, 2) }),
  ROW ("linear", linear, 3, .in = { X (3, 4), X (2, 4), X (2) }, .out = { S (3, 2) }),
  { .op = "linear", .variant = "of 3 axes", .call = call_linear, .n_in = 3, .n_out = 1, .in = { X (3, 2, 2), X (2, 4), X (2) }, .out = { S (3, 2) }, .whole = whole_linear },
  { .op = "linear", .variant = "without bias", .call = call_linear_no_bias, .n_in = 2, .n_out = 1, .in = { X (3, 4), X (2, 4) }, .out = { S (3, 2) }, .whole = whole_linear },
  ROW ("linear", linear_rows, 3, .in = { X (2, 3, 2, 2), X (2, 4), X (2) }, .out = { S (2, 3, 2) }),
  ROW ("bilinear", bilinear, 6, .in = { X (3, 4), X (3, 2), X (4, 2, 3), X (4, 3), X (2, 3), X (3) }, .out = { S (3, 3) }, .loose = 4),
  { .op = "bilinear", .variant = "without bias", .call = call_bilinear_plain, .n_in = 3, .n_out = 1, .in = { X (3, 4), X (3, 2), X (4, 2, 3) }, .out = { S (3, 3) }, .whole = whole_bilinear, .loose = 4 },
  { .op = "bilinear", .variant = "of 3 axes", .call = call_bilinear_plain, .n_in = 3, .n_out = 1, .in = { X (3, 2, 2), X (3, 2, 1), X (4, 2, 3) }, .out = { S (3, 3) }, .whole = whole_bilinear, .loose = 4 },
  ROW ("batch_normalization", batch_norm, 3, .in = { X (4, 2, 3), POSITIVE (2), X (2) }, .out = { S (4, 2, 3) }, .loose = 4),
  { .op = "batch_normalization", .variant = "of 2 axes", .call = call_batch_norm, .n_in = 3, .n_out = 1, .in = { X (5, 3), POSITIVE (3), X (3) }, .out = { S (5, 3) }, .whole = whole_batch_norm, .loose = 4 },
  { .op = "batch_normalization_grad", .variant = "", .call = call_batch_norm_grad, .n_in = 3, .n_out = 3, .in = { X (4, 2, 3), POSITIVE (2), X (4, 2, 3) }, .out = { S (4, 2, 3), S (2), S (2) }, .whole = whole_batch_norm_grad, .loose = 10 },
  ROW ("fixed_batch_normalization", fixed_batch_norm, 5, .in = { X (2, 2, 3), POSITIVE (2), X (2), X (2), POSITIVE (2) }, .out = { S (2, 2, 3) }, .loose = 4),
  ROW ("dropout", dropout, 1, .in = { X (5, 7) }, .out = { S (5, 7) }),
  ROW ("embed_id", embed_id, 2, .in = { INDICES (ids, 2, 2), X (4, 3) }, .out = { S (2, 2, 3) }),
  ROW ("embed_id_grad", embed_id_grad, 2, .in = { INDICES (ids, 2, 2), X (2, 2, 3) }, .out = { S (5, 3) }),
  ROW ("softmax", softmax, 1, .in = { X (2, 3, 2) }, .out = { S (2, 3, 2) }),
  ROW ("softmax_grad", softmax_grad, 2, .in = { X (2, 3, 2), X (2, 3, 2) }, .out = { S (2, 3, 2) }),
  ROW ("log_softmax", log_softmax, 1, .in = { X (2, 3, 2) }, .out = { S (2, 3, 2) }),
  ROW ("log_softmax_grad", log_softmax_grad, 2, .in = { X (2, 3, 2), X (2, 3, 2) }, .out = { S (2, 3, 2) }, .loose = 2),
  ROW ("softmax_cross_entropy", entropy, 2, .in = { X (2, 3, 2), INDICES (labels, 2, 2) }, .out = { { 0, { 0 } } }),
  ROW ("softmax_cross_entropy", entropy_weighted, 3, .in = { X (2, 3, 2), INDICES (labels, 2, 2), { S (3), 0.5, 1.5, TD_F32, 0, NULL } }, .out = { { 0, { 0 } } }, .flags = OP_NO_GRAD),
  ROW ("softmax_cross_entropy_grad", entropy_grad, 3, .in = { X (2, 3, 2), INDICES (labels, 2, 2), NUMBER }, .out = { S (2, 3, 2) }),
  ROW ("softmax_cross_entropy_rows", entropy_rows, 2, .in = { INDICES (labels, 2, 2), POSITIVE (3) }, .out = { S (2, 2) }, .flags = OP_NO_GRAD),
  ROW ("mean_squared_error", mean_squared_error, 2, .in = { X (2, 3), X (2, 3) }, .out = { { 0, { 0 } } }),
  ROW ("accuracy", accuracy, 2, .in = { X (2, 3, 2), INDICES (labels, 2, 2) }, .out = { { 0, { 0 } } }, .flags = OP_NO_GRAD),
  { .op = "lstm", .variant = "", .call = call_lstm, .n_in = 2, .n_out = 2, .in = { X (2, 3), X (2, 12) }, .out = { S (2, 3), S (2, 3) }, .whole = whole_lstm },
  { .op = "lstm", .variant = "of fewer rows", .call = call_lstm, .n_in = 2, .n_out = 2, .in = { X (3, 3), X (2, 12) }, .out = { S (3, 3), S (2, 3) }, .whole = whole_lstm_ended },
  { .op = "lstm_grad", .variant = "", .call = call_lstm_grad, .n_in = 4, .n_out = 2, .in = { X (2, 3), X (2, 12), X (2, 3), X (2, 3) }, .out = { S (2, 3), S (2, 12) }, .whole = whole_lstm_grad },
};
const int n_op_cases_layers = (int)(sizeof op_cases_layers / sizeof op_cases_layers[0]);

#define E2(d, s, e, t) 2, { { d, s }, { e, t } }
#define E3(d, s, e, t, f, u) 3, { { d, s }, { e, t }, { f, u } }
CALL (linear_no_features, y[0] = td_linear_axes (x[0], x[1], NULL, 2))
CALL (bilinear_half, y[0] = td_bilinear (x[0], x[1], x[2], NULL, x[3], NULL))
CALL (bilinear_4, y[0] = td__applyn (&td__bilinear_class, NULL, NULL, x, 4))
#define E4(d, s, e, t, f, u, g, v) 4, { { d, s }, { e, t }, { f, u }, { g, v } }
const OpError op_errors_layers[] = {
  { "linear", call_linear_no_features, E2 (TD_F32, S (2, 3), TD_F32, S (5, 3)), TD_ERR_SHAPE, "linear: 0 < n_batch_axes < x.ndim expected, got 2: x (2, 3) f32, W (5, 3) f32" },
  { "bilinear", call_bilinear_plain, E3 (TD_F32, S (2, 4), TD_F32, S (2, 3), TD_F32, S (4, 2, 5)), TD_ERR_SHAPE, "bilinear: prod (e2.shape[1:]) == W.shape[1] expected, got 3 != 2: e1 (2, 4) f32, e2 (2, 3) f32, W (4, 2, 5) f32" },
  { "bilinear", call_bilinear_plain, E3 (TD_F32, S (2, 4), TD_F32, S (3, 2), TD_F32, S (4, 2, 5)), TD_ERR_SHAPE, "bilinear: e1.shape[0] == e2.shape[0] expected, got 2 != 3: e1 (2, 4) f32, e2 (3, 2) f32, W (4, 2, 5) f32" },
  { "bilinear", call_bilinear_plain, E3 (TD_F32, S (2, 4), TD_F32, S (2), TD_F32, S (4, 2, 5)), TD_ERR_SHAPE, "bilinear: e2.ndim >= 2 expected, got 1: e1 (2, 4) f32, e2 (2) f32, W (4, 2, 5) f32" },
  { "bilinear", call_bilinear_half, E4 (TD_F32, S (2, 4), TD_F32, S (2, 2), TD_F32, S (4, 2, 5), TD_F32, S (2, 5)), TD_ERR_ARG, "bilinear: V1, V2 and b, or none of them, expected: e1 (2, 4) f32, e2 (2, 2) f32, W (4, 2, 5) f32, V2 (2, 5) f32" },
  { "bilinear", call_bilinear_4, E4 (TD_F32, S (2, 4), TD_F32, S (2, 2), TD_F32, S (4, 2, 5), TD_F32, S (4, 5)), TD_ERR_ARG, "bilinear: V1, V2 and b, or none of them, expected: e1 (2, 4) f32, e2 (2, 2) f32, W (4, 2, 5) f32, V1 (4, 5) f32" },
  { "matmul", call_matmul, E2 (TD_F32, S (2, 3), TD_F32, S (2, 3)), TD_ERR_SHAPE, "matmul: a.shape[1] == b.shape[0] expected, got 3 != 2: a (2, 3) f32, b (2, 3) f32" },
  { "matmul", call_matmul, E2 (TD_F32, S (3), TD_F32, S (2, 3)), TD_ERR_SHAPE, "matmul: as many columns of op (a) as rows of op (b) expected: a (3) f32, b (2, 3) f32" },
  { "batch_matmul", call_batch_matmul, E2 (TD_F32, S (2, 3, 4), TD_F32, S (3, 4, 2)), TD_ERR_SHAPE, "batch_matmul: a.shape[0] == b.shape[0] expected, got 2 != 3: a (2, 3, 4) f32, b (3, 4, 2) f32" },
  { "linear", call_linear, E3 (TD_F32, S (2, 784), TD_F32, S (10, 100), TD_F32, S (10)), TD_ERR_SHAPE, "linear: x.shape[1] == W.shape[1] expected, got 784 != 100: x (2, 784) f32, W (10, 100) f32, b (10) f32" },
  { "linear", call_linear, E3 (TD_F32, S (2, 10, 10), TD_F32, S (10, 90), TD_F32, S (10)), TD_ERR_SHAPE, "linear: prod (x.shape[1:]) == W.shape[1] expected, got 100 != 90: x (2, 10, 10) f32, W (10, 90) f32, b (10) f32" },
  { "linear", call_linear, E3 (TD_F32, S (2, 9), TD_F64, S (3, 9), TD_F32, S (3)), TD_ERR_DTYPE, "linear: x.dtype == W.dtype expected, got f32 != f64: x (2, 9) f32, W (3, 9) f64, b (3) f32" },
  { "batch_normalization", call_batch_norm, E3 (TD_F32, S (2, 3), TD_F32, S (4), TD_F32, S (3)), TD_ERR_SHAPE, "batch_normalization: gamma.shape[0] == x.shape[1] expected, got 4 != 3: x (2, 3) f32, gamma (4) f32, beta (3) f32" },
  { "softmax", call_softmax, 1, { { TD_F32, S (3) } }, TD_ERR_SHAPE, "softmax: -x.ndim <= axis < x.ndim expected: x (3) f32" },
  { "softmax_cross_entropy", call_entropy, E2 (TD_F32, S (2, 3), TD_I32, S (4)), TD_ERR_SHAPE, "softmax_cross_entropy: x.shape[0] == t.shape[0] expected, got 2 != 4: x (2, 3) f32, t (4) i32" },
  { "softmax_cross_entropy", call_entropy, E2 (TD_F32, S (2, 3), TD_F32, S (2)), TD_ERR_DTYPE, "softmax_cross_entropy: t.dtype.kind == i expected, got f32: x (2, 3) f32, t (2) f32" },
  { "mean_squared_error", call_mean_squared_error, E2 (TD_F32, S (2, 3), TD_F32, S (3, 2)), TD_ERR_SHAPE, "mean_squared_error: a.shape == b.shape expected: a (2, 3) f32, b (3, 2) f32" },
  { "accuracy", call_accuracy, E2 (TD_F32, S (0, 3), TD_I32, S (0)), TD_ERR_SHAPE, "accuracy: at least one row expected: y (0, 3) f32, t (0) i32" },
  { "embed_id", call_embed_id, E2 (TD_I32, S (2), TD_F32, S (0, 3)), TD_ERR_ARG, "embed_id: 0 <= x[i] < 0 expected, got 0 at element 0: x (2) i32, W (0, 3) f32" },
  { "lstm", call_lstm, E2 (TD_F32, S (2, 3), TD_F32, S (2, 11)), TD_ERR_SHAPE, "lstm: x.shape[1] == 4 * c.shape[1] expected, got 11 != 4 * 3: c (2, 3) f32, x (2, 11) f32" },
  { "lstm", call_lstm, E2 (TD_F32, S (2, 3), TD_F32, S (3, 12)), TD_ERR_SHAPE, "lstm: x.shape[0] <= c.shape[0] expected, got 3 > 2: c (2, 3) f32, x (3, 12) f32" },
};
// clang-format on
const int n_op_errors_layers = (int)(sizeof op_errors_layers / sizeof op_errors_layers[0]);
