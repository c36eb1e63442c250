/* Rows of `tapedeck eval`: losses and scores.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "eval.h"

#include <stddef.h>

static void
call_softmax_cross_entropy (TdEval *e)
{
  TdCrossEntropyOpt o = { .ignore_label = (int)td_eval_int (e, "ignore_label"),
                          .normalize = td_eval_bool (e, "normalize"),
                          .class_weight = td_eval_in (e, 2),
                          .reduce = td_eval_text (e, "reduce") };

  td_eval_give (e, td_softmax_cross_entropy_ (e->in[0], e->in[1], &o));
}

static void
call_sigmoid_cross_entropy (TdEval *e)
{
  TdSigmoidCrossEntropyOpt o
      = { .normalize = td_eval_bool (e, "normalize"), .reduce = td_eval_text (e, "reduce") };

  td_eval_give (e, td_sigmoid_cross_entropy_ (e->in[0], e->in[1], &o));
}

static void
call_huber_loss (TdEval *e)
{
  TdHuberLossOpt o = { .reduce = td_eval_text (e, "reduce") };

  td_eval_give (e, td_huber_loss_ (e->in[0], e->in[1], td_eval_float (e, "delta"), &o));
}

static void
call_hinge (TdEval *e)
{
  TdHingeOpt o = { .norm = td_eval_text (e, "norm"), .reduce = td_eval_text (e, "reduce") };

  td_eval_give (e, td_hinge_ (e->in[0], e->in[1], &o));
}

static void
call_bernoulli_nll (TdEval *e)
{
  TdNllOpt o = { .reduce = td_eval_text (e, "reduce") };

  td_eval_give (e, td_bernoulli_nll_ (e->in[0], e->in[1], &o));
}

static void
call_gaussian_nll (TdEval *e)
{
  TdNllOpt o = { .reduce = td_eval_text (e, "reduce") };

  td_eval_give (e, td_gaussian_nll_ (e->in[0], e->in[1], e->in[2], &o));
}

static void
call_gaussian_kl_divergence (TdEval *e)
{
  TdNllOpt o = { .reduce = td_eval_text (e, "reduce") };

  td_eval_give (e, td_gaussian_kl_divergence_ (e->in[0], e->in[1], &o));
}

/* --- scores --- */

static void
call_accuracy (TdEval *e)
{
  TdAccuracyOpt o = { .ignore_label = TD_NO_LABEL };

  td_eval_tuple (e, "ignore_label", &o.ignore_label, 1);
  if (e->wrong[0] == '\0')
    td_eval_give (e, td_accuracy_ (e->in[0], e->in[1], &o));
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
  { .name = NULL },
};
