/* Rows of `tapedeck eval`: losses and scores.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "eval.h"

#include <stddef.h>
#include <stdlib.h>

static void
call_softmax_cross_entropy (TdEval *e)
{
  TdCrossEntropyOpt o = { .ignore_label = (int)td_eval_int (e, "ignore_label"),
                          .normalize = td_eval_bool (e, "normalize"),
                          .class_weight = td_eval_in (e, 2),
                          .reduce = td_eval_text (e, "reduce") };

  td_eval_output (e, td_softmax_cross_entropy_ (e->in[0], e->in[1], &o));
}

static void
call_sigmoid_cross_entropy (TdEval *e)
{
  TdSigmoidCrossEntropyOpt o
      = { .normalize = td_eval_bool (e, "normalize"), .reduce = td_eval_text (e, "reduce") };

  td_eval_output (e, td_sigmoid_cross_entropy_ (e->in[0], e->in[1], &o));
}

static void
call_huber_loss (TdEval *e)
{
  TdHuberLossOpt o = { .reduce = td_eval_text (e, "reduce") };

  td_eval_output (e, td_huber_loss_ (e->in[0], e->in[1], td_eval_float (e, "delta"), &o));
}

static void
call_hinge (TdEval *e)
{
  TdHingeOpt o = { .norm = td_eval_text (e, "norm"), .reduce = td_eval_text (e, "reduce") };

  td_eval_output (e, td_hinge_ (e->in[0], e->in[1], &o));
}

static void
call_bernoulli_nll (TdEval *e)
{
  TdNllOpt o = { .reduce = td_eval_text (e, "reduce") };

  td_eval_output (e, td_bernoulli_nll_ (e->in[0], e->in[1], &o));
}

static void
call_gaussian_nll (TdEval *e)
{
  TdNllOpt o = { .reduce = td_eval_text (e, "reduce") };

  td_eval_output (e, td_gaussian_nll_ (e->in[0], e->in[1], e->in[2], &o));
}

static void
call_gaussian_kl_divergence (TdEval *e)
{
  TdNllOpt o = { .reduce = td_eval_text (e, "reduce") };

  td_eval_output (e, td_gaussian_kl_divergence_ (e->in[0], e->in[1], &o));
}

/* Words to tell from are given, or drawn, each as likely as the others. */
static void
call_negative_sampling (TdEval *e)
{
  TdNegativeSamplingOpt o = { .reduce = td_eval_text (e, "reduce") };
  TdVar *samples = td_eval_in (e, 3);
  int64_t n_words = td_shape (e->in[2]).dim[0], size;
  TdWalkerAlias *alias;
  double *weights;

  if (samples == NULL)
    {
      size = td_eval_none (e, "sample_size") ? 0 : td_eval_int (e, "sample_size");
      if (size < 1 || td_ndim (e->in[2]) != 2 || n_words < 1 || n_words > 1 << 24)
        return td_eval_wrong (e, "sample_size",
                              "a number of samples of the rows of W, or samples expected");
      weights = malloc ((size_t)n_words * sizeof *weights);
      for (int64_t i = 0; weights != NULL && i < n_words; i++)
        weights[i] = 1;
      alias = td_walker_alias_new (weights, n_words);
      samples = td_walker_alias_sample (alias, TD_SHAPE (td_size (e->in[1]), size));
      td_walker_alias_free (alias);
      free (weights);
    }
  td_eval_output (e, td_negative_sampling_ (e->in[0], e->in[1], e->in[2], samples, &o));
}

/* --- scores --- */

/* Attributes that precision, recall and their summary share. */
static bool
summary (TdEval *e, TdSummaryOpt *o, TdVar **support)
{
  *o = (TdSummaryOpt){ .beta = 1, .ignore_label = TD_NO_LABEL, .support = support };
  td_eval_tuple (e, "label_num", &o->label_num, 1);
  td_eval_tuple (e, "ignore_label", &o->ignore_label, 1);
  return e->wrong[0] == '\0';
}

static void
call_classification_summary (TdEval *e)
{
  TdSummaryOpt o;

  if (!summary (e, &o, NULL))
    return;
  o.beta = td_eval_float (e, "beta");
  e->n_out = 4;
  td_classification_summary_ (e->in[0], e->in[1], e->out, &o);
}

typedef TdVar *Score (TdVar *y, TdVar *t, const TdSummaryOpt *options);

/* A score of each label, and how many rows have it. */
static void
score (TdEval *e, Score *function)
{
  TdVar *support = NULL, *y;
  TdSummaryOpt o;

  if (!summary (e, &o, &support))
    return;
  y = function (e->in[0], e->in[1], &o);
  td_eval_output (e, y);
  if (support != NULL)
    td_eval_output (e, support);
}

static void
call_precision (TdEval *e)
{
  score (e, td_precision_);
}

static void
call_recall (TdEval *e)
{
  score (e, td_recall_);
}

static void
call_f1_score (TdEval *e)
{
  score (e, td_f1_score_);
}

static void
call_accuracy (TdEval *e)
{
  TdAccuracyOpt o = { .ignore_label = TD_NO_LABEL };

  td_eval_tuple (e, "ignore_label", &o.ignore_label, 1);
  if (e->wrong[0] == '\0')
    td_eval_output (e, td_accuracy_ (e->in[0], e->in[1], &o));
}

/* clang-format off */
#define BINARY(name, group, operands, formula) { #name, group, operands, NULL, formula, .binary = td_##name }
#define ROW(name, group, operands, attributes, formula)                                        \
  { #name, group, operands, attributes, formula, .call = call_##name }
const TdEvalFunction td_eval_losses[] = {
  ROW (softmax_cross_entropy, "loss", "x t [~class_weight]",
       "normalize:bool=true cache_score:bool=true ignore_label:int=-1 reduce:text=mean "
       "enable_double_backprop:bool=false",
       "mean of -log_softmax (x)[t]; it always has second gradients and keeps its scores"),
  ROW (sigmoid_cross_entropy, "loss", "x t", "normalize:bool=true reduce:text=mean",
       "mean of -t log (sigmoid (x)) - (1 - t) log (1 - sigmoid (x)) where t is not -1"),
  BINARY (mean_squared_error, "loss", "x0 x1", "mean of (x0 - x1) ** 2"),
  BINARY (mean_absolute_error, "loss", "x0 x1", "mean of |x0 - x1|"),
  BINARY (squared_error, "loss", "x0 x1", "(x0 - x1) ** 2"),
  BINARY (absolute_error, "loss", "x0 x1", "|x0 - x1|"),
  ROW (huber_loss, "loss", "x t", "delta:float reduce:text=sum_along_second_axis",
       "a ** 2 / 2 where a = |x - t| < delta, else delta (a - delta / 2)"),
  ROW (hinge, "loss", "x t", "norm:text=L1 reduce:text=mean",
       "max (1 + s x, 0), s -1 at the label and 1 elsewhere"),
  ROW (bernoulli_nll, "loss", "x y", "reduce:text=sum", "log (1 + exp (y)) - x y"),
  ROW (gaussian_nll, "loss", "x mean ln_var", "reduce:text=sum",
       "(ln_var + log (2 pi) + (x - mean) ** 2 exp (-ln_var)) / 2"),
  ROW (gaussian_kl_divergence, "loss", "mean ln_var", "reduce:text=sum",
       "(mean ** 2 + exp (ln_var) - ln_var - 1) / 2"),
  ROW (accuracy, "evaluation", "y t", "ignore_label:int=None",
       "share of rows whose largest element is at t"),
  BINARY (binary_accuracy, "evaluation", "y t", "share of elements of which y >= 0 says t"),
  ROW (negative_sampling, "loss", "x t W [samples]", "sample_size:int=None reduce:text=sum",
       "-log (sigmoid (x W[t])) - sum of log (sigmoid (-x W[samples]))"),
  ROW (classification_summary, "evaluation", "y t",
       "label_num:int=None beta:float=1 ignore_label:int=-1",
       "precision, recall, F score and number of rows of each label"),
  ROW (precision, "evaluation", "y t", "label_num:int=None ignore_label:int=-1",
       "of the rows that chose a label, the share that has it; numbers of rows"),
  ROW (recall, "evaluation", "y t", "label_num:int=None ignore_label:int=-1",
       "of the rows that have a label, the share that chose it; numbers of rows"),
  ROW (f1_score, "evaluation", "y t", "label_num:int=None ignore_label:int=-1",
       "harmonic mean of precision and recall; numbers of rows"),
  { .name = NULL },
};
