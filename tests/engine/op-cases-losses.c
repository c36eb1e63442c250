/* Rows for the losses and scores of tapedeck-losses.h.  References are the definitions as loops
 * in double precision.
 * SPDX-License-Identifier: MIT */
#include "op-cases.h"

#include <math.h>
#include <string.h>

#include "compute/ops/losses.h"

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
/* The sum of the map over all places of equal inputs, times a factor. */
#define SUM(name, of, times)                                                                   \
  WHOLE (name)                                                                                 \
  {                                                                                            \
    const int64_t n = td_shape_size (&c->in[0].shape);                                         \
                                                                                               \
    for (int64_t i = 0; i < n; i++)                                                            \
      out[0][0] += map_##of (in[0][i], in[1][i], c->n_in > 2 ? in[2][i] : 0) * (times);        \
  }

/* --- errors --- */

CALL (mean_absolute_error, y[0] = td_mean_absolute_error (x[0], x[1]))
CALL (absolute_error, y[0] = td_absolute_error (x[0], x[1]))
MAP (absolute_error, fabs (a - b))
SUM (mean_absolute_error, absolute_error, 1.0 / (double)n)
CALL (squared_error, y[0] = td_squared_error (x[0], x[1]))
MAP (squared_error, (a - b) * (a - b))

#define HUBER(a, b) (fabs (a - b) < 0.7 ? (a - b) * (a - b) / 2 : 0.7 * (fabs (a - b) - 0.35))
CALL (huber_each, y[0] = td_huber_loss_ (x[0], x[1], 0.7, &(TdHuberLossOpt){ "no", 0 }))
MAP (huber_each, HUBER (a, b))
CALL (huber_rows, y[0] = td_huber_loss_ (x[0], x[1], 0.7, NULL))
WHOLE (huber_rows)
{
  for (int64_t i = 0; i < 12; i++)
    out[0][i / 6 * 2 + i % 2] += HUBER (in[0][i], in[1][i]);
}

/* --- labels of two classes; -1 does not count --- */

static const double bits[] = { 1, 0, -1, 1, 0, 0, -1, 1, 1, 0 };
typedef struct
{
  bool normalize;
  int reduce;
} SigmoidAttrs;
static const SigmoidAttrs counted = { true, 0 }, batch = { false, 0 }, each = { true, 1 };
static const TdSigmoidCrossEntropyOpt batch_opt = { .normalize = false },
                                      each_opt = { .normalize = true, .reduce = "no" };

#define GRAD(name, attrs)                                                                      \
  CALL (name, y[0] = td__applyn (&td__sigmoid_cross_entropy_grad_class, &attrs, NULL, x, 3))
CALL (sigmoid_counted, y[0] = td_sigmoid_cross_entropy_ (x[0], x[1], NULL))
CALL (sigmoid_batch, y[0] = td_sigmoid_cross_entropy_ (x[0], x[1], &batch_opt))
CALL (sigmoid_each, y[0] = td_sigmoid_cross_entropy_ (x[0], x[1], &each_opt))
GRAD (sigmoid_grad_counted, counted)
GRAD (sigmoid_grad_batch, batch)
GRAD (sigmoid_grad_each, each)
static double
sigmoid (double x)
{
  return 1 / (1 + exp (-x));
}
MAP (sigmoid_each, b < 0 ? 0 : -(b * log (sigmoid (a)) + (1 - b) * log (sigmoid (-a))))
SUM (sigmoid_counted, sigmoid_each, 1.0 / 8)
SUM (sigmoid_batch, sigmoid_each, 1.0 / 5)
MAP (sigmoid_grad_counted, b < 0 ? 0 : (sigmoid (a) - b) * c / 8)
MAP (sigmoid_grad_batch, b < 0 ? 0 : (sigmoid (a) - b) * c / 5)
MAP (sigmoid_grad_each, b < 0 ? 0 : (sigmoid (a) - b) * c)

CALL (binary_accuracy, y[0] = td_binary_accuracy (x[0], x[1]))
WHOLE (binary_accuracy)
{
  for (int64_t i = 0; i < 10; i++)
    out[0][0] += (in[0][i] >= 0) == bits[i] ? 1.0 / 8 : 0;
}
static const double none[] = { -1, -1 };
CALL (binary_accuracy_none, y[0] = td_binary_accuracy (x[0], x[1]))
WHOLE (binary_accuracy_none)
{
  out[0][0] = 0;
}

/* --- labels of three classes: (2, 3, 2) with (2, 2) --- */

static const double labels[] = { 2, 0, 1, 2 };
typedef struct
{
  int ignore;
  bool normalize;
  int reduce;
} EntropyAttrs;
static const EntropyAttrs entropy_each_attrs = { 1, true, 1 };
CALL (entropy_each, y[0] = td_softmax_cross_entropy_ (x[0], x[1],
                                                      &(TdCrossEntropyOpt){ .ignore_label = 1,
                                                                            .normalize = true,
                                                                            .reduce = "no" }))
CALL (entropy_each_weighted,
      y[0] = td_softmax_cross_entropy_ (
          x[0], x[1],
          &(TdCrossEntropyOpt){ .ignore_label = -1, .class_weight = x[2], .reduce = "no" }))
CALL (entropy_grad_each, y[0] = td__applyn (&td__softmax_cross_entropy_grad_class,
                                            &entropy_each_attrs, NULL, x, 3))
/* Place of a row's class k. */
static int64_t
place (int64_t row, int64_t k)
{
  return row / 2 * 6 + k * 2 + row % 2;
}
static double
row_loss (const double *x, int64_t row)
{
  double sum = 0;

  for (int64_t k = 0; k < 3; k++)
    sum += exp (x[place (row, k)]);
  return log (sum) - x[place (row, (int64_t)labels[row])];
}
WHOLE (entropy_each)
{
  for (int64_t row = 0; row < 4; row++)
    out[0][row] = labels[row] == 1 ? 0 : row_loss (in[0], row);
}
WHOLE (entropy_each_weighted)
{
  for (int64_t row = 0; row < 4; row++)
    out[0][row] = row_loss (in[0], row) * in[2][(int64_t)labels[row]];
}
WHOLE (entropy_grad_each)
{
  for (int64_t row = 0; row < 4; row++)
    for (int64_t k = 0; k < 3; k++)
      out[0][place (row, k)]
          = labels[row] == 1
                ? 0
                : (in[0][place (row, k)] - (labels[row] == (double)k)) * in[2][row];
}

CALL (accuracy_ignoring, y[0] = td_accuracy_ (x[0], x[1], &(TdAccuracyOpt){ 2, 0 }))
WHOLE (accuracy_ignoring)
{
  for (int64_t row = 1; row < 3; row++)
    {
      bool best = true;

      for (int64_t k = 0; k < 3; k++)
        best = best && in[0][place (row, k)] <= in[0][place (row, (int64_t)labels[row])];
      out[0][0] += best ? 0.5 : 0;
    }
}

/* --- hinge: (4, 3) with (4) --- */

CALL (hinge, y[0] = td_hinge_ (x[0], x[1], NULL))
CALL (hinge_l2, y[0] = td_hinge_ (x[0], x[1], &(TdHingeOpt){ "L2", "mean", 0 }))
CALL (hinge_each, y[0] = td_hinge_ (x[0], x[1], &(TdHingeOpt){ "L1", "no", 0 }))
CALL (hinge_each_l2, y[0] = td_hinge_ (x[0], x[1], &(TdHingeOpt){ "L2", "no", 0 }))
CALL (hinge_signs, y[0] = td__apply2 (&td__hinge_signs_class, NULL, NULL, x[0], x[1]))
static double
hinge_at (const double *const *in, int64_t i)
{
  return fmax (1 + (labels[i / 3] == (double)(i % 3) ? -1 : 1) * in[0][i], 0);
}
WHOLE (hinge)
{
  for (int64_t i = 0; i < 12; i++)
    out[0][0] += hinge_at (in, i) / 4;
}
WHOLE (hinge_l2)
{
  for (int64_t i = 0; i < 12; i++)
    out[0][0] += pow (hinge_at (in, i), 2) / 4;
}
WHOLE (hinge_each)
{
  for (int64_t i = 0; i < 12; i++)
    out[0][i] = hinge_at (in, i);
}
WHOLE (hinge_each_l2)
{
  for (int64_t i = 0; i < 12; i++)
    out[0][i] = pow (hinge_at (in, i), 2);
}
WHOLE (hinge_signs)
{
  for (int64_t i = 0; i < 12; i++)
    out[0][i] = labels[i / 3] == (double)(i % 3) ? -1 : 1;
}

/* --- likelihoods --- */

#define NLL(reduce) (&(TdNllOpt){ reduce, 0 })
CALL (bernoulli_nll, y[0] = td_bernoulli_nll_ (x[0], x[1], NULL))
CALL (bernoulli_nll_each, y[0] = td_bernoulli_nll_ (x[0], x[1], NLL ("no")))
MAP (bernoulli_nll_each, -(a *log (sigmoid (b)) + (1 - a) * log (sigmoid (-b))))
SUM (bernoulli_nll, bernoulli_nll_each, 1)
CALL (gaussian_nll, y[0] = td_gaussian_nll_ (x[0], x[1], x[2], NULL))
CALL (gaussian_nll_mean, y[0] = td_gaussian_nll_ (x[0], x[1], x[2], NLL ("mean")))
CALL (gaussian_nll_each, y[0] = td_gaussian_nll_ (x[0], x[1], x[2], NLL ("no")))
MAP (gaussian_nll_each,
     -log (exp (-(a - b) * (a - b) / (2 * exp (c))) / sqrt (2 * M_PI * exp (c))))
SUM (gaussian_nll, gaussian_nll_each, 1)
SUM (gaussian_nll_mean, gaussian_nll_each, 1.0 / (double)n)
CALL (kl, y[0] = td_gaussian_kl_divergence_ (x[0], x[1], NULL))
CALL (kl_mean, y[0] = td_gaussian_kl_divergence_ (x[0], x[1], NLL ("mean")))
CALL (kl_each, y[0] = td_gaussian_kl_divergence_ (x[0], x[1], NLL ("no")))
MAP (kl_each, (a * a + exp (b) - b - 1) / 2)
SUM (kl, kl_each, 1)
SUM (kl_mean, kl_each, 1.0 / (double)n)

/* --- counts: rows chosen by y (4, 3), labelled 2, 0, 1, 2; label 1 left out --- */

static void
summary (TdVar *const *x, TdVar **y, TdSummaryOpt o)
{
  TdVar *out[4];

  td_classification_summary_ (x[0], x[1], out, &o);
  memcpy (y, out, 3 * sizeof *y);
}
CALL (summary, summary (x, y, (TdSummaryOpt){ .beta = 2, .ignore_label = 1 }))
static const double chosen[]
    = { 1, 2, 3, 5, 4, 0, 0, 0, 9, 7, 6, 5 }; /* 2, 0, 2, 0: the third row is left out */
WHOLE (summary)
{
  const double precision[] = { 0.5, NAN, 1 }, recall[] = { 1, NAN, 0.5 };

  for (int k = 0; k < 3; k += 2)
    {
      out[0][k] = precision[k];
      out[1][k] = recall[k];
      out[2][k] = 5 * precision[k] * recall[k] / (4 * precision[k] + recall[k]);
    }
  out[0][1] = out[1][1] = out[2][1] = -1; /* NaN became -1 */
}
static void
call_summary_known (TdVar *const *x, TdVar **y)
{
  TdVar *out[3];

  call_summary (x, out);
  for (int k = 0; k < 3; k++)
    y[k] = td_where (td__equal (out[k], out[k]), out[k], td__number_like (out[k], -1));
}

/* --- negative sampling: 3 words of 4, the last left out, 2 samples each --- */

static const double words[] = { 2, 0, -1 }, samples[] = { 1, 3, 0, 2, 1, 1 };
CALL (negative, y[0] = td_negative_sampling_ (x[0], x[1], x[2], x[3], NULL))
CALL (negative_rows, y[0] = td_negative_sampling_ (x[0], x[1], x[2], x[3],
                                                   &(TdNegativeSamplingOpt){ "no", 0 }))
static double
dot (const double *const *in, int64_t row, int64_t word)
{
  return in[0][2 * row] * in[2][2 * word] + in[0][2 * row + 1] * in[2][2 * word + 1];
}
WHOLE (negative_rows)
{
  for (int64_t i = 0; i < 2; i++)
    out[0][i] = -log (sigmoid (dot (in, i, (int64_t)words[i])))
                - log (sigmoid (-dot (in, i, (int64_t)samples[2 * i])))
                - log (sigmoid (-dot (in, i, (int64_t)samples[2 * i + 1])));
}
WHOLE (negative)
{
  double rows[3] = { 0 };

  whole_negative_rows (c, in, (double *const[]){ rows });
  out[0][0] = rows[0] + rows[1];
}

/* --- the tables --- */

// clang-format off
#define IN(low, high, ...) { S (__VA_ARGS__), low, high, 0, 0, NULL }
#define X(...) IN (-2, 2, __VA_ARGS__)
#define INDICES(numbers, ...) { S (__VA_ARGS__), 0, 0, TD_I32, 0, numbers }
#define NUMBER { { 0, { 0 } }, 0.5, 2, 0, 0, NULL }
#define ONE { 0, { 0 } }
#define ROW(op_name, name, n, ...) \
  { .op = op_name, .variant = #name, .call = call_##name, .n_in = n, .n_out = 1, .whole = whole_##name, __VA_ARGS__ }
#define MAP_ROW(op_name, name, n, ...) \
  { .op = op_name, .variant = #name, .call = call_##name, .n_in = n, .n_out = 1, .map = map_##name, __VA_ARGS__ }

const OpCase op_cases_losses[] = {
  ROW ("mean_absolute_error", mean_absolute_error, 2, .in = { X (2, 3), X (2, 3) }, .out = { ONE }),
  MAP_ROW ("absolute_error", absolute_error, 2, .in = { X (2, 3), X (2, 3) }, .out = { S (2, 3) }),
  MAP_ROW ("squared_error", squared_error, 2, .in = { X (2, 3), X (2, 3) }, .out = { S (2, 3) }),
  MAP_ROW ("huber_loss", huber_each, 2, .in = { X (5, 3), X (5, 3) }, .out = { S (5, 3) }),
  ROW ("huber_loss", huber_rows, 2, .in = { X (2, 3, 2), X (2, 3, 2) }, .out = { S (2, 2) }),
  ROW ("sigmoid_cross_entropy", sigmoid_counted, 2, .in = { X (5, 2), INDICES (bits, 5, 2) }, .out = { ONE }),
  ROW ("sigmoid_cross_entropy", sigmoid_batch, 2, .in = { X (5, 2), INDICES (bits, 5, 2) }, .out = { ONE }),
  MAP_ROW ("sigmoid_cross_entropy", sigmoid_each, 2, .in = { IN (-9, 9, 5, 2), INDICES (bits, 5, 2) }, .out = { S (5, 2) }),
  MAP_ROW ("sigmoid_cross_entropy_grad", sigmoid_grad_counted, 3, .in = { X (5, 2), INDICES (bits, 5, 2), NUMBER }, .out = { S (5, 2) }),
  MAP_ROW ("sigmoid_cross_entropy_grad", sigmoid_grad_batch, 3, .in = { X (5, 2), INDICES (bits, 5, 2), NUMBER }, .out = { S (5, 2) }),
  MAP_ROW ("sigmoid_cross_entropy_grad", sigmoid_grad_each, 3, .in = { X (5, 2), INDICES (bits, 5, 2), X (5, 2) }, .out = { S (5, 2) }),
  ROW ("binary_accuracy", binary_accuracy, 2, .in = { X (5, 2), INDICES (bits, 5, 2) }, .out = { ONE }, .flags = OP_NO_GRAD),
  ROW ("binary_accuracy", binary_accuracy_none, 2, .in = { X (2), INDICES (none, 2) }, .out = { ONE }, .flags = OP_NO_GRAD),
  ROW ("softmax_cross_entropy", entropy_each, 2, .in = { X (2, 3, 2), INDICES (labels, 2, 2) }, .out = { S (2, 2) }),
  ROW ("softmax_cross_entropy", entropy_each_weighted, 3, .in = { X (2, 3, 2), INDICES (labels, 2, 2), IN (0.5, 1.5, 3) }, .out = { S (2, 2) }, .flags = OP_NO_GRAD),
  ROW ("softmax_cross_entropy_grad", entropy_grad_each, 3, .in = { X (2, 3, 2), INDICES (labels, 2, 2), X (2, 2) }, .out = { S (2, 3, 2) }),
  ROW ("accuracy", accuracy_ignoring, 2, .in = { X (2, 3, 2), INDICES (labels, 2, 2) }, .out = { ONE }, .flags = OP_NO_GRAD),
  ROW ("hinge", hinge, 2, .in = { X (4, 3), INDICES (labels, 4) }, .out = { ONE }),
  ROW ("hinge", hinge_l2, 2, .in = { X (4, 3), INDICES (labels, 4) }, .out = { ONE }),
  ROW ("hinge", hinge_each, 2, .in = { X (4, 3), INDICES (labels, 4) }, .out = { S (4, 3) }),
  ROW ("hinge", hinge_each_l2, 2, .in = { X (4, 3), INDICES (labels, 4) }, .out = { S (4, 3) }),
  ROW ("hinge_signs", hinge_signs, 2, .in = { X (4, 3), INDICES (labels, 4) }, .out = { S (4, 3) }, .flags = OP_NO_GRAD),
  ROW ("bernoulli_nll", bernoulli_nll, 2, .in = { IN (0, 1, 2, 3), X (2, 3) }, .out = { ONE }),
  MAP_ROW ("bernoulli_nll", bernoulli_nll_each, 2, .in = { IN (0, 1, 2, 3), X (2, 3) }, .out = { S (2, 3) }),
  ROW ("gaussian_nll", gaussian_nll, 3, .in = { X (2, 3), X (2, 3), X (2, 3) }, .out = { ONE }),
  ROW ("gaussian_nll", gaussian_nll_mean, 3, .in = { X (2, 3), X (2, 3), X (2, 3) }, .out = { ONE }),
  MAP_ROW ("gaussian_nll", gaussian_nll_each, 3, .in = { X (2, 3), X (2, 3), X (2, 3) }, .out = { S (2, 3) }, .loose = 2),
  ROW ("gaussian_kl_divergence", kl, 2, .in = { X (2, 3), X (2, 3) }, .out = { ONE }),
  ROW ("gaussian_kl_divergence", kl_mean, 2, .in = { X (2, 3), X (2, 3) }, .out = { ONE }),
  MAP_ROW ("gaussian_kl_divergence", kl_each, 2, .in = { X (2, 3), X (2, 3) }, .out = { S (2, 3) }),
  { .op = "classification_summary", .variant = "", .call = call_summary_known, .n_in = 2, .n_out = 3, .in = { { S (4, 3), 0, 0, 0, 0, chosen }, INDICES (labels, 4) }, .out = { S (3), S (3), S (3) }, .whole = whole_summary, .flags = OP_NO_GRAD },
  ROW ("negative_sampling", negative, 4, .in = { X (3, 2), INDICES (words, 3), X (4, 2), INDICES (samples, 3, 2) }, .out = { ONE }),
  ROW ("negative_sampling", negative_rows, 4, .in = { X (3, 2), INDICES (words, 3), X (4, 2), INDICES (samples, 3, 2) }, .out = { S (3) }),
};
const int n_op_cases_losses = (int)(sizeof op_cases_losses / sizeof op_cases_losses[0]);

#define E2(d, s, e, t) 2, { { d, s }, { e, t } }
CALL (huber_negative, y[0] = td_huber_loss_ (x[0], x[1], -1, NULL))
CALL (entropy_reduce, y[0] = td_softmax_cross_entropy_ (x[0], x[1], &(TdCrossEntropyOpt){ .reduce = "none" }))
CALL (hinge_norm, y[0] = td_hinge_ (x[0], x[1], &(TdHingeOpt){ "L3", "mean", 0 }))
CALL (nll_reduce, y[0] = td_bernoulli_nll_ (x[0], x[1], NLL ("all")))
const OpError op_errors_losses[] = {
  { "absolute_error", call_absolute_error, E2 (TD_F32, S (2, 3), TD_F32, S (3)), TD_ERR_SHAPE, "absolute_error: a.shape == b.shape expected: a (2, 3) f32, b (3) f32" },
  { "mean_absolute_error", call_mean_absolute_error, E2 (TD_F32, S (2), TD_F64, S (2)), TD_ERR_DTYPE, "mean_absolute_error: a.dtype == b.dtype expected, got f32 != f64: a (2) f32, b (2) f64" },
  { "huber_loss", call_huber_rows, E2 (TD_F32, S (2), TD_F32, S (2)), TD_ERR_SHAPE, "huber_loss: x.ndim >= 2 expected, got 1: x (2) f32, t (2) f32" },
  { "huber_loss", call_huber_negative, E2 (TD_F32, S (2, 2), TD_F32, S (2, 2)), TD_ERR_ARG, "huber_loss: delta >= 0 expected, got -1: x (2, 2) f32, t (2, 2) f32" },
  { "sigmoid_cross_entropy", call_sigmoid_counted, E2 (TD_F32, S (2, 3), TD_I32, S (2)), TD_ERR_SHAPE, "sigmoid_cross_entropy: x.shape == t.shape expected: x (2, 3) f32, t (2) i32" },
  { "sigmoid_cross_entropy", call_sigmoid_counted, E2 (TD_F32, S (2), TD_F32, S (2)), TD_ERR_DTYPE, "sigmoid_cross_entropy: t.dtype.kind == i expected, got f32: x (2) f32, t (2) f32" },
  { "softmax_cross_entropy", call_entropy_reduce, E2 (TD_F32, S (2, 3), TD_I32, S (2)), TD_ERR_ARG, "softmax_cross_entropy: reduce is mean or no, got 'none'" },
  { "hinge", call_hinge, E2 (TD_F32, S (2, 3, 4), TD_I32, S (2)), TD_ERR_SHAPE, "hinge: x.ndim == 2 expected, got 3: x (2, 3, 4) f32, t (2) i32" },
  { "hinge", call_hinge_norm, E2 (TD_F32, S (2, 3), TD_I32, S (2)), TD_ERR_ARG, "hinge: norm is L1 or L2, got 'L3'" },
  { "bernoulli_nll", call_nll_reduce, E2 (TD_F32, S (2), TD_F32, S (2)), TD_ERR_ARG, "bernoulli_nll: reduce is sum, mean or no, got 'all'" },
  { "binary_accuracy", call_binary_accuracy, E2 (TD_F32, S (2), TD_I32, S (3)), TD_ERR_SHAPE, "binary_accuracy: y.shape == t.shape expected: y (2) f32, t (3) i32" },
  { "classification_summary", call_summary_known, E2 (TD_F32, S (2, 3), TD_F32, S (2)), TD_ERR_DTYPE, "classification_summary: t.dtype.kind == i expected, got f32: y (2, 3) f32, t (2) f32" },
  { "negative_sampling", call_negative, 4, { { TD_F32, S (2, 3) }, { TD_I32, S (2) }, { TD_F32, S (4, 2) }, { TD_I32, S (2, 5) } }, TD_ERR_SHAPE, "negative_sampling: x (n, d), t (n), W (words, d) and samples (n, k) expected: x (2, 3) f32, t (2) i32, W (4, 2) f32, samples (2, 5) i32" },
};
// clang-format on
const int n_op_errors_losses = (int)(sizeof op_errors_losses / sizeof op_errors_losses[0]);
