/* Functions: losses and scores beyond those of tapedeck-functions.h, which includes this.
 *
 * Names and defaults are Chainer's; words such as reduce are given as text.  All return a
 * variable of the innermost scope, poisoned on error; none blocks unless it says so.  Gradients
 * have gradients.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <limits.h>

TD_BEGIN_DECLS

/* --- losses ----------------------------------------------------------------------------- */
typedef struct
{
  bool normalize;     /**< divide by the labels that count, else by x.shape[0] */
  const char *reduce; /**< "mean" or "no" */
  int end_;
} TdSigmoidCrossEntropyOpt;
#define TD_SIGMOID_CROSS_ENTROPY_DEFAULTS .normalize = true, .reduce = "mean"
/** Mean of -t log (sigmoid (x)) - (1 - t) log (1 - sigmoid (x)); labels -1 are left out.
 * *Shapes*: x, t (integers 0, 1 or -1) of one shape -> scalar, or x's with reduce "no".
 * *Errors*: TD_ERR_ARG for another label.  *Source*: chainer.functions.sigmoid_cross_entropy.
 */
TD_API TdVar *td_sigmoid_cross_entropy_ (TdVar *x, TdVar *t,
                                         const TdSigmoidCrossEntropyOpt *options);
TD_API TdVar *td_sigmoid_cross_entropy_at (TdVar *x, TdVar *t, TdSigmoidCrossEntropyOpt options,
                                           const TdSite *site);
/** Mean of |a - b|, a scalar. */
TD_API TdVar *td_mean_absolute_error (TdVar *a, TdVar *b);
TD_API TdVar *td_mean_absolute_error_at (TdVar *a, TdVar *b, const TdSite *site);
/** |a - b|, element by element. */
TD_API TdVar *td_absolute_error (TdVar *a, TdVar *b);
TD_API TdVar *td_absolute_error_at (TdVar *a, TdVar *b, const TdSite *site);
/** (a - b) squared, element by element. */
TD_API TdVar *td_squared_error (TdVar *a, TdVar *b);
TD_API TdVar *td_squared_error_at (TdVar *a, TdVar *b, const TdSite *site);
typedef struct
{
  const char *reduce; /**< "sum_along_second_axis" or "no" */
  int end_;
} TdHuberLossOpt;
#define TD_HUBER_LOSS_DEFAULTS .reduce = "sum_along_second_axis"
/** Half the square of x - t where it is less than delta, else delta (|x - t| - delta / 2).
 * *Shapes*: x, t (n, m, ...) -> (n, ...), or x's with reduce "no".  *Source*:
 * chainer.functions.huber_loss. */
TD_API TdVar *td_huber_loss_ (TdVar *x, TdVar *t, double delta, const TdHuberLossOpt *options);
TD_API TdVar *td_huber_loss_at (TdVar *x, TdVar *t, double delta, TdHuberLossOpt options,
                                const TdSite *site);
typedef struct
{
  const char *norm;   /**< "L1" or "L2" */
  const char *reduce; /**< "mean" (over rows) or "no" */
  int end_;
} TdHingeOpt;
#define TD_HINGE_DEFAULTS .norm = "L1", .reduce = "mean"
/** max (1 + s x, 0) with s -1 at the label and 1 elsewhere, or its square.  *Shapes*: x (n, c),
 * t (n) integers -> scalar, or x's with reduce "no".  *Errors*: TD_ERR_ARG for a label out of
 * range.  *Source*: chainer.functions.hinge. */
TD_API TdVar *td_hinge_ (TdVar *x, TdVar *t, const TdHingeOpt *options);
TD_API TdVar *td_hinge_at (TdVar *x, TdVar *t, TdHingeOpt options, const TdSite *site);
typedef struct
{
  const char *reduce; /**< "sum", "mean" or "no" */
  int end_;
} TdNllOpt;
#define TD_NLL_DEFAULTS .reduce = "sum"
/** Negative log likelihood of x under the Bernoulli distribution whose mean is sigmoid (y).
 * *Source*: chainer.functions.bernoulli_nll. */
TD_API TdVar *td_bernoulli_nll_ (TdVar *x, TdVar *y, const TdNllOpt *options);
TD_API TdVar *td_bernoulli_nll_at (TdVar *x, TdVar *y, TdNllOpt options, const TdSite *site);
/** Negative log likelihood of x under the normal distribution of that mean and log variance.
 * *Source*: chainer.functions.gaussian_nll. */
TD_API TdVar *td_gaussian_nll_ (TdVar *x, TdVar *mean, TdVar *ln_var, const TdNllOpt *options);
TD_API TdVar *td_gaussian_nll_at (TdVar *x, TdVar *mean, TdVar *ln_var, TdNllOpt options,
                                  const TdSite *site);
/** Divergence of the normal distribution of that mean and log variance from the standard one.
 * *Source*: chainer.functions.gaussian_kl_divergence. */
TD_API TdVar *td_gaussian_kl_divergence_ (TdVar *mean, TdVar *ln_var, const TdNllOpt *options);
TD_API TdVar *td_gaussian_kl_divergence_at (TdVar *mean, TdVar *ln_var, TdNllOpt options,
                                            const TdSite *site);
typedef struct
{
  const char *reduce; /**< "sum" or "no" */
  int end_;
} TdNegativeSamplingOpt;
#define TD_NEGATIVE_SAMPLING_DEFAULTS .reduce = "sum"
/** Loss of telling a word from samples: words -1 are left out.  *Shapes*: x (n, d), t (n)
 * integers, W (words, d), samples (n, k) integers (see td_walker_alias_sample) -> scalar, or
 * (n) with reduce "no".  *Errors*: TD_ERR_ARG for a word out of range.  *Source*:
 * chainer.functions.negative_sampling. */
TD_API TdVar *td_negative_sampling_ (TdVar *x, TdVar *t, TdVar *W, TdVar *samples,
                                     const TdNegativeSamplingOpt *options);
TD_API TdVar *td_negative_sampling_at (TdVar *x, TdVar *t, TdVar *W, TdVar *samples,
                                       TdNegativeSamplingOpt options, const TdSite *site);
/** Draws 0 .. n - 1 by weight, in constant time.  *Source*: A. Walker, 1977. */
typedef struct TdWalkerAlias TdWalkerAlias;
/** Make a sampler of n weights, which need not sum to 1.  *Owner*: td_walker_alias_free.
 * *Errors*: NULL and TD_ERR_ARG for negative weights or a sum of 0. */
TD_API TdWalkerAlias *td_walker_alias_new (const double *weights, int64_t n);
TD_API void td_walker_alias_free (TdWalkerAlias *alias);
/** Numbers (i32) of that shape, from the engine's random stream. */
TD_API TdVar *td_walker_alias_sample (const TdWalkerAlias *alias, TdShape shape);
TD_API TdVar *td_walker_alias_sample_at (const TdWalkerAlias *alias, TdShape shape,
                                         const TdSite *site);

/* --- evaluation: no gradients ----------------------------------------------------------- */
#define TD_NO_LABEL INT_MIN
typedef struct
{
  int ignore_label; /**< rows with this label count nothing; TD_NO_LABEL: all count */
  int end_;
} TdAccuracyOpt;
#define TD_ACCURACY_DEFAULTS .ignore_label = TD_NO_LABEL
/** Share of rows whose largest element is at t, a scalar.  *Shapes*: y (n, c, ...), t (n, ...)
 * integers.  *Source*: chainer.functions.accuracy. */
TD_API TdVar *td_accuracy_ (TdVar *y, TdVar *t, const TdAccuracyOpt *options);
TD_API TdVar *td_accuracy (TdVar *y, TdVar *t);
TD_API TdVar *td_accuracy_at (TdVar *y, TdVar *t, TdAccuracyOpt options, const TdSite *site);
/** Share of elements of which y >= 0 says the label; labels -1 are left out.  *Shapes*: y, t
 * (integers 0, 1 or -1) of one shape.  *Source*: chainer.functions.binary_accuracy. */
TD_API TdVar *td_binary_accuracy (TdVar *y, TdVar *t);
TD_API TdVar *td_binary_accuracy_at (TdVar *y, TdVar *t, const TdSite *site);
typedef struct
{
  int label_num;    /**< labels from 0 on; 0: up to the largest in t, which is read */
  double beta;      /**< of the F score */
  int ignore_label; /**< rows with this label count nothing */
  TdVar **support;  /**< gets the number of rows (i32) of each label */
  int end_;
} TdSummaryOpt;
#define TD_SUMMARY_DEFAULTS .beta = 1, .ignore_label = -1
/** Precision, recall, F score and number of rows (i32) of each label, written to out[0 .. 3].
 * A label that nobody chose has NaN for precision, one that nobody has NaN for recall.
 * *Shapes*: y (n, c, ...), t (n, ...) integers -> (label_num) each.  *Sync*: reads t without
 * label_num. *Source*: chainer.functions.classification_summary. */
TD_API TdStatus td_classification_summary_ (TdVar *y, TdVar *t, TdVar **out,
                                            const TdSummaryOpt *options);
TD_API TdStatus td_classification_summary_at (TdVar *y, TdVar *t, TdVar **out,
                                              TdSummaryOpt options, const TdSite *site);
/** Of the rows that chose a label, the share that has it; see td_classification_summary. */
TD_API TdVar *td_precision_ (TdVar *y, TdVar *t, const TdSummaryOpt *options);
TD_API TdVar *td_precision_at (TdVar *y, TdVar *t, TdSummaryOpt options, const TdSite *site);
/** Of the rows that have a label, the share that chose it; see td_classification_summary. */
TD_API TdVar *td_recall_ (TdVar *y, TdVar *t, const TdSummaryOpt *options);
TD_API TdVar *td_recall_at (TdVar *y, TdVar *t, TdSummaryOpt options, const TdSite *site);
/** Harmonic mean of precision and recall (beta 1); see td_classification_summary. */
TD_API TdVar *td_f1_score_ (TdVar *y, TdVar *t, const TdSummaryOpt *options);
TD_API TdVar *td_f1_score_at (TdVar *y, TdVar *t, TdSummaryOpt options, const TdSite *site);

#if !defined(TD_NO_SITES)
/* clang-format off */
#define td_sigmoid_cross_entropy(x, ...) td__sigmoid_cross_entropy_x (x, __VA_ARGS__, .end_ = 0)
#define td__sigmoid_cross_entropy_x(x, t, ...) TD_CALL_ (td_sigmoid_cross_entropy_at (x, t, TD_OPTIONS_ (TdSigmoidCrossEntropyOpt, TD_SIGMOID_CROSS_ENTROPY_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_mean_absolute_error(...) td_mean_absolute_error_at (__VA_ARGS__, TD_HERE)
#define td_absolute_error(...) td_absolute_error_at (__VA_ARGS__, TD_HERE)
#define td_squared_error(...) td_squared_error_at (__VA_ARGS__, TD_HERE)
#define td_huber_loss(x, t, ...) td__huber_loss_x (x, t, __VA_ARGS__, .end_ = 0)
#define td__huber_loss_x(x, t, delta, ...) TD_CALL_ (td_huber_loss_at (x, t, delta, TD_OPTIONS_ (TdHuberLossOpt, TD_HUBER_LOSS_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_hinge(x, ...) td__hinge_x (x, __VA_ARGS__, .end_ = 0)
#define td__hinge_x(x, t, ...) TD_CALL_ (td_hinge_at (x, t, TD_OPTIONS_ (TdHingeOpt, TD_HINGE_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_bernoulli_nll(x, ...) td__bernoulli_nll_x (x, __VA_ARGS__, .end_ = 0)
#define td__bernoulli_nll_x(x, y, ...) TD_CALL_ (td_bernoulli_nll_at (x, y, TD_OPTIONS_ (TdNllOpt, TD_NLL_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_gaussian_nll(x, mean, ...) td__gaussian_nll_x (x, mean, __VA_ARGS__, .end_ = 0)
#define td__gaussian_nll_x(x, mean, ln_var, ...) TD_CALL_ (td_gaussian_nll_at (x, mean, ln_var, TD_OPTIONS_ (TdNllOpt, TD_NLL_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_gaussian_kl_divergence(mean, ...) td__gaussian_kl_divergence_x (mean, __VA_ARGS__, .end_ = 0)
#define td__gaussian_kl_divergence_x(mean, ln_var, ...) TD_CALL_ (td_gaussian_kl_divergence_at (mean, ln_var, TD_OPTIONS_ (TdNllOpt, TD_NLL_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_negative_sampling(x, t, W, ...) td__negative_sampling_x (x, t, W, __VA_ARGS__, .end_ = 0)
#define td__negative_sampling_x(x, t, W, samples, ...) TD_CALL_ (td_negative_sampling_at (x, t, W, samples, TD_OPTIONS_ (TdNegativeSamplingOpt, TD_NEGATIVE_SAMPLING_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_walker_alias_sample(...) td_walker_alias_sample_at (__VA_ARGS__, TD_HERE)
#define td_accuracy(y, ...) td__accuracy_x (y, __VA_ARGS__, .end_ = 0)
#define td__accuracy_x(y, t, ...) TD_CALL_ (td_accuracy_at (y, t, TD_OPTIONS_ (TdAccuracyOpt, TD_ACCURACY_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_binary_accuracy(...) td_binary_accuracy_at (__VA_ARGS__, TD_HERE)
#define td_classification_summary(y, t, ...) td__classification_summary_x (y, t, __VA_ARGS__, .end_ = 0)
#define td__classification_summary_x(y, t, out, ...) TD_CALL_ (td_classification_summary_at (y, t, out, TD_OPTIONS_ (TdSummaryOpt, TD_SUMMARY_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_precision(y, ...) td__precision_x (y, __VA_ARGS__, .end_ = 0)
#define td__precision_x(y, t, ...) TD_CALL_ (td_precision_at (y, t, TD_OPTIONS_ (TdSummaryOpt, TD_SUMMARY_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_recall(y, ...) td__recall_x (y, __VA_ARGS__, .end_ = 0)
#define td__recall_x(y, t, ...) TD_CALL_ (td_recall_at (y, t, TD_OPTIONS_ (TdSummaryOpt, TD_SUMMARY_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_f1_score(y, ...) td__f1_score_x (y, __VA_ARGS__, .end_ = 0)
#define td__f1_score_x(y, t, ...) TD_CALL_ (td_f1_score_at (y, t, TD_OPTIONS_ (TdSummaryOpt, TD_SUMMARY_DEFAULTS, __VA_ARGS__), TD_HERE))
/* clang-format on */
#endif

TD_END_DECLS
