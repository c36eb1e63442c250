/* Rows of `tapedeck eval`: normalizations, recurrent nets, attention, recomputation.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "eval.h"

#include <stddef.h>

/* --- normalizations --- */

static void
call_layer_normalization (TdEval *e)
{
  TdNormOpt o = { .eps = td_eval_float (e, "eps") };

  td_eval_give (e, td_layer_normalization_ (e->in[0], e->in[1], e->in[2], &o));
}

static void
call_group_normalization (TdEval *e)
{
  TdNormOpt o = { .eps = td_eval_float (e, "eps") };
  int groups;

  td_eval_tuple (e, "groups", &groups, 1);
  if (e->wrong[0] == '\0')
    td_eval_give (e, td_group_normalization_ (e->in[0], groups, e->in[1], e->in[2], &o));
}

static void
call_rms_normalization (TdEval *e)
{
  TdNormOpt o = { .eps = td_eval_float (e, "eps") };

  td_eval_give (e, td_rms_normalization_ (e->in[0], e->in[1], &o));
}

static void
call_normalize (TdEval *e)
{
  int axes[TD_MAX_DIMS], n = td_eval_ints (e, "axis", axes, TD_MAX_DIMS);

  td_eval_give (e, td_normalize (e->in[0], td_eval_float (e, "eps"), axes, n));
}

static void
call_local_response_normalization (TdEval *e)
{
  TdLocalResponseOpt o = { .k = td_eval_float (e, "k"),
                           .alpha = td_eval_float (e, "alpha"),
                           .beta = td_eval_float (e, "beta") };

  td_eval_tuple (e, "n", &o.n, 1);
  if (e->wrong[0] == '\0')
    td_eval_give (e, td_local_response_normalization_ (e->in[0], &o));
}

/* --- recurrent cells --- */

static void
call_lstm (TdEval *e)
{
  TdVar *h, *c = td_lstm (e->in[0], e->in[1], &h);

  td_eval_give (e, c);
  td_eval_give (e, h);
}

/* clang-format off */
#define ROW(name, group, operands, attributes, formula)                                        \
  { #name, group, operands, attributes, formula, .call = call_##name }
const TdEvalFunction td_eval_sequences[] = {
  ROW (layer_normalization, "normalization", "x gamma beta", "eps:float=1e-5",
       "gamma * (x - mean) / sqrt (var + eps) + beta, mean and var of each row"),
  ROW (group_normalization, "normalization", "x gamma beta", "groups:int eps:float=1e-5",
       "gamma * (x - mean) / sqrt (var + eps) + beta, mean and var of each group of channels"),
  ROW (rms_normalization, "normalization", "x gamma", "eps:float=1e-5",
       "gamma * x / sqrt (mean (x ** 2) + eps)"),
  ROW (normalize, "normalization", "x", "eps:float=1e-5 axis:ints=1",
       "x / (norm of x along axis + eps)"),
  ROW (local_response_normalization, "normalization", "x",
       "n:int=5 k:float=2 alpha:float=1e-4 beta:float=0.75",
       "x / (k + alpha * sum of x ** 2 over n channels) ** beta"),
  ROW (lstm, "rnn", "c_prev x", NULL,
       "c = sigmoid (i) * tanh (a) + sigmoid (f) * c_prev, h = sigmoid (o) * tanh (c)"),
  { .name = NULL },
};
