/* Rows of `tapedeck eval`: arithmetic, elementary functions, reductions, activations, noise.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "eval.h"

#include <stddef.h>

/* --- arithmetic --- */

static void
call_add (TdEval *e)
{
  TdVar *y = e->in[0];

  for (int i = 1; i < e->n_in; i++)
    y = td_add (y, e->in[i]);
  td_eval_give (e, y);
}

static void
call_sub_scalar (TdEval *e)
{
  td_eval_give (e, td_sub_scalar (e->in[0], td_eval_float (e, "value")));
}

static void
call_clip (TdEval *e)
{
  td_eval_give (e, td_clip (e->in[0], td_eval_float (e, "x_min"), td_eval_float (e, "x_max")));
}

static void
call_identity (TdEval *e)
{
  for (int i = 0; i < e->n_in; i++)
    td_eval_give (e, e->in[i]);
}

static void
call_matmul (TdEval *e)
{
  td_eval_give (e, td_matmul (e->in[0], e->in[1], td_eval_bool (e, "transa"),
                              td_eval_bool (e, "transb")));
}

static void
call_batch_matmul (TdEval *e)
{
  td_eval_give (e, td_batch_matmul (e->in[0], e->in[1], td_eval_bool (e, "transa"),
                                    td_eval_bool (e, "transb")));
}

/* --- reductions --- */

typedef TdVar *Reduction (TdVar *x, const int *axes, int n_axes, bool keepdims);

/* The axes that an attribute names, or all of them; how many. */
static int
reduced_axes (TdEval *e, int axes[TD_MAX_DIMS])
{
  if (!td_eval_none (e, "axis"))
    return td_eval_ints (e, "axis", axes, TD_MAX_DIMS);
  for (int i = 0; i < td_ndim (e->in[0]); i++)
    axes[i] = i;
  return td_ndim (e->in[0]);
}

static void
reduce (TdEval *e, Reduction *reduction)
{
  int axes[TD_MAX_DIMS], n = reduced_axes (e, axes);

  td_eval_give (e, reduction (e->in[0], axes, n, td_eval_bool (e, "keepdims")));
}

#define REDUCTION(name)                                                                        \
  static void call_##name (TdEval *e)                                                          \
  {                                                                                            \
    reduce (e, td_##name##_axes);                                                              \
  }
REDUCTION (sum)
REDUCTION (max)
REDUCTION (min)
REDUCTION (prod)

static void
call_average (TdEval *e)
{
  int axes[TD_MAX_DIMS], n = td_eval_none (e, "axis") ? 0 : reduced_axes (e, axes);
  TdAverageOpt o = { .axes = n > 0 ? axes : NULL,
                     .n_axes = n,
                     .weights = td_eval_in (e, 1),
                     .keepdims = td_eval_bool (e, "keepdims") };

  td_eval_give (e, td_average_ (e->in[0], &o));
}

static void
call_logsumexp (TdEval *e)
{
  int axes[TD_MAX_DIMS], n = reduced_axes (e, axes);

  td_eval_give (e, td_logsumexp_axes (e->in[0], axes, n, false));
}

/* Along an axis, or over everything. */
static void
call_argmax (TdEval *e)
{
  if (td_eval_none (e, "axis"))
    td_eval_give (e, td_argmax (td_flatten (e->in[0]), 0));
  else
    td_eval_give (e, td_argmax (e->in[0], (int)td_eval_int (e, "axis")));
}

/* --- activations --- */

static void
call_softmax (TdEval *e)
{
  TdSoftmaxOpt o = { .axis = (int)td_eval_int (e, "axis") };

  td_eval_give (e, td_softmax_ (e->in[0], &o));
}

static void
call_log_softmax (TdEval *e)
{
  TdSoftmaxOpt o = { .axis = (int)td_eval_int (e, "axis") };

  td_eval_give (e, td_log_softmax_ (e->in[0], &o));
}

/* --- noise --- */

static void
call_dropout (TdEval *e)
{
  TD_USING (train, td_eval_bool (e, "train"))
    td_eval_give (e, td_dropout (e->in[0], td_eval_float (e, "ratio")));
}

/* clang-format off */
#define UNARY(name, group, formula) { #name, group, "x", NULL, formula, .unary = td_##name }
#define BINARY(name, group, formula) { #name, group, "a b", NULL, formula, .binary = td_##name }
#define ROW(name, group, operands, attributes, formula)                                        \
  { #name, group, operands, attributes, formula, .call = call_##name }
const TdEvalFunction td_eval_math[] = {
  UNARY (relu, "activation", "max (x, 0)"),
  UNARY (sigmoid, "activation", "1 / (1 + exp (-x))"),
  UNARY (tanh, "activation", "tanh (x)"),
  ROW (softmax, "activation", "x", "axis:int=1", "exp (x) / sum (exp (x)) along axis"),
  ROW (log_softmax, "activation", "x", "axis:int=1", "log (softmax (x)) along axis"),
  ROW (add, "math", "a b...", NULL, "a + b + ..."),
  BINARY (sub, "math", "a - b"),
  BINARY (mul, "math", "a * b"),
  BINARY (div, "math", "a / b"),
  BINARY (pow, "math", "a ** b"),
  BINARY (maximum, "math", "the larger of a and b"),
  BINARY (minimum, "math", "the smaller of a and b"),
  UNARY (neg, "math", "-x"),
  ROW (sub_scalar, "math", "x", "value:float", "x - value"),
  UNARY (absolute, "math", "|x|"),
  UNARY (exp, "math", "e ** x"),
  UNARY (log, "math", "natural logarithm of x"),
  UNARY (sqrt, "math", "square root of x"),
  UNARY (square, "math", "x * x"),
  UNARY (sin, "math", "sin (x)"),
  UNARY (cos, "math", "cos (x)"),
  ROW (clip, "math", "x", "x_min:float x_max:float", "min (max (x, x_min), x_max)"),
  ROW (identity, "math", "xs...", NULL, "the inputs"),
  ROW (matmul, "math", "a b", "transa:bool=false transb:bool=false", "a @ b"),
  ROW (batch_matmul, "math", "a b", "transa:bool=false transb:bool=false", "a[i] @ b[i]"),
  ROW (sum, "math", "x", "axis:ints=None keepdims:bool=false", "sum of x over axis"),
  ROW (average, "math", "x [weights]", "axis:ints=None keepdims:bool=false",
       "mean of x over axis, weighted by weights"),
  { "mean", "math", "x [weights]", "axis:ints=None keepdims:bool=false", "average",
    .call = call_average },
  ROW (max, "math", "x", "axis:ints=None keepdims:bool=false", "largest of x over axis"),
  ROW (min, "math", "x", "axis:ints=None keepdims:bool=false", "smallest of x over axis"),
  ROW (prod, "math", "x", "axis:ints=None keepdims:bool=false", "product of x over axis"),
  ROW (logsumexp, "math", "x", "axis:ints=None", "log (sum (exp (x))) over axis"),
  ROW (argmax, "math", "x", "axis:int=None", "index of the largest along axis"),
  ROW (dropout, "noise", "x", "ratio:float=0.5 train:bool=true", "x * mask / (1 - ratio)"),
  { .name = NULL },
};
