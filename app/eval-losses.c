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
                          .class_weight = td_eval_in (e, 2) };

  td_eval_give (e, td_softmax_cross_entropy_ (e->in[0], e->in[1], &o));
}

/* clang-format off */
#define BINARY(name, group, operands, formula) { #name, group, operands, NULL, formula, .binary = td_##name }
#define ROW(name, group, operands, attributes, formula)                                        \
  { #name, group, operands, attributes, formula, .call = call_##name }
const TdEvalFunction td_eval_losses[] = {
  ROW (softmax_cross_entropy, "loss", "x t [~class_weight]",
       "normalize:bool=true ignore_label:int=-1", "mean of -log_softmax (x)[t]"),
  BINARY (mean_squared_error, "loss", "x0 x1", "mean of (x0 - x1) ** 2"),
  BINARY (accuracy, "evaluation", "y t", "share of rows whose largest element is at t"),
  { .name = NULL },
};
