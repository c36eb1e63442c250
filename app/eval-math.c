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
  td_eval_output (e, y);
}

static void
call_sub_scalar (TdEval *e)
{
  td_eval_output (e, td_sub_scalar (e->in[0], td_eval_float (e, "value")));
}

static void
call_clip (TdEval *e)
{
  td_eval_output (e,
                  td_clip (e->in[0], td_eval_float (e, "x_min"), td_eval_float (e, "x_max")));
}

static void
call_identity (TdEval *e)
{
  for (int i = 0; i < e->n_in; i++)
    td_eval_output (e, e->in[i]);
}

static void
call_matmul (TdEval *e)
{
  td_eval_output (e, td_matmul (e->in[0], e->in[1], td_eval_bool (e, "transa"),
                                td_eval_bool (e, "transb")));
}

static void
call_batch_matmul (TdEval *e)
{
  td_eval_output (e, td_batch_matmul (e->in[0], e->in[1], td_eval_bool (e, "transa"),
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

  td_eval_output (e, reduction (e->in[0], axes, n, td_eval_bool (e, "keepdims")));
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

  td_eval_output (e, td_average_ (e->in[0], &o));
}

static void
call_logsumexp (TdEval *e)
{
  int axes[TD_MAX_DIMS], n = reduced_axes (e, axes);

  td_eval_output (e, td_logsumexp_axes (e->in[0], axes, n, false));
}

/* Along an axis, or over everything. */
static void
call_argmax (TdEval *e)
{
  if (td_eval_none (e, "axis"))
    td_eval_output (e, td_argmax (td_flatten (e->in[0]), 0));
  else
    td_eval_output (e, td_argmax (e->in[0], (int)td_eval_int (e, "axis")));
}

static void
call_argmin (TdEval *e)
{
  if (td_eval_none (e, "axis"))
    td_eval_output (e, td_argmin (td_flatten (e->in[0]), 0));
  else
    td_eval_output (e, td_argmin (e->in[0], (int)td_eval_int (e, "axis")));
}

static void
call_cumsum (TdEval *e)
{
  if (td_eval_none (e, "axis"))
    td_eval_output (e, td_cumsum (td_flatten (e->in[0]), 0));
  else
    td_eval_output (e, td_cumsum (e->in[0], (int)td_eval_int (e, "axis")));
}

static void
call_bias (TdEval *e)
{
  TdAxisOpt o = { .axis = (int)td_eval_int (e, "axis") };

  td_eval_output (e, td_bias_ (e->in[0], e->in[1], &o));
}

static void
call_scale (TdEval *e)
{
  TdAxisOpt o = { .axis = (int)td_eval_int (e, "axis") };

  td_eval_output (e, td_scale_ (e->in[0], e->in[1], &o));
}

static void
call_linear_interpolate (TdEval *e)
{
  td_eval_output (e, td_linear_interpolate (e->in[0], e->in[1], e->in[2]));
}

static void
call_einsum (TdEval *e)
{
  td_eval_output (e, td_einsum (td_eval_text (e, "subscripts"), e->in, e->n_in));
}

/* How many axes, or those of a and then those of b. */
static void
call_tensordot (TdEval *e)
{
  int axes[2 * TD_MAX_DIMS], n = td_eval_ints (e, "axes", axes, 2 * TD_MAX_DIMS);
  TdTensordotOpt o = { .axes = axes[0] };

  if (n > 1)
    o = (TdTensordotOpt){ .axes = n / 2, .a_axes = axes, .b_axes = axes + n / 2 };
  if (n < 1 || (n > 1 && n % 2 != 0))
    return td_eval_wrong (e, "axes", "one number, or as many axes of a as of b expected");
  td_eval_output (e, td_tensordot_ (e->in[0], e->in[1], &o));
}

/* --- activations --- */

static void
call_softmax (TdEval *e)
{
  TdSoftmaxOpt o = { .axis = (int)td_eval_int (e, "axis") };

  td_eval_output (e, td_softmax_ (e->in[0], &o));
}

static void
call_log_softmax (TdEval *e)
{
  TdSoftmaxOpt o = { .axis = (int)td_eval_int (e, "axis") };

  td_eval_output (e, td_log_softmax_ (e->in[0], &o));
}

static void
call_selu (TdEval *e)
{
  TdSeluOpt o = { .alpha = td_eval_float (e, "alpha"), .scale = td_eval_float (e, "scale") };

  td_eval_output (e, td_selu_ (e->in[0], &o));
}

static void
call_maxout (TdEval *e)
{
  TdAxisOpt o = { .axis = (int)td_eval_int (e, "axis") };
  int pool_size;

  td_eval_tuple (e, "pool_size", &pool_size, 1);
  if (e->wrong[0] == '\0')
    td_eval_output (e, td_maxout_ (e->in[0], pool_size, &o));
}

/* --- noise --- */

static void
call_dropout (TdEval *e)
{
  TdVar *mask = td_eval_in (e, 1);
  TdDropoutOpt o = { .mask = mask };

  TD_USING (train, td_eval_bool (e, "train"))
    td_eval_output (e, mask != NULL
                           ? td_dropout_with_at (e->in[0], td_eval_float (e, "ratio"), o, NULL)
                           : td_dropout (e->in[0], td_eval_float (e, "ratio")));
}

static void
call_gaussian (TdEval *e)
{
  TdGaussianOpt o = { .eps = td_eval_in (e, 2) };

  td_eval_output (e, td_gaussian_ (e->in[0], e->in[1], &o));
}

static void
call_gumbel_softmax (TdEval *e)
{
  TdGumbelSoftmaxOpt o
      = { .tau = td_eval_float (e, "tau"), .axis = (int)td_eval_int (e, "axis") };

  td_eval_output (e, td_gumbel_softmax_ (e->in[0], &o));
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
  UNARY (relu6, "activation", "min (max (x, 0), 6)"),
  ROW (selu, "activation", "x", "alpha:float=1.6732632423543772 scale:float=1.0507009873554805",
       "scale * elu (x, alpha)"),
  { "swish", "activation", "x beta", NULL, "x * sigmoid (beta * x)", .binary = td_swish },
  { "prelu", "activation", "x W", NULL, "x where x >= 0, else W * x", .binary = td_prelu },
  ROW (maxout, "activation", "x", "pool_size:int axis:int=1", "largest of each pool_size neighbours"),
  ROW (argmin, "math", "x", "axis:int=None", "index of the smallest along axis"),
  ROW (cumsum, "math", "x", "axis:int=None", "sums of what lies up to each element along axis"),
  ROW (bias, "math", "x y", "axis:int=1", "x + y, y under the axes of x from axis on"),
  ROW (scale, "math", "x y", "axis:int=1", "x * y, y under the axes of x from axis on"),
  ROW (linear_interpolate, "math", "p x y", NULL, "p * x + (1 - p) * y"),
  ROW (einsum, "math", "xs...", "subscripts:text", "sums of products over labelled axes: ij,jk->ik"),
  ROW (tensordot, "math", "a b", "axes:ints=2", "sum of products over axes of a and axes of b"),
  ROW (dropout, "noise", "x [~mask]", "ratio:float=0.5 train:bool=true",
       "x * mask, or x where it is kept / (1 - ratio)"),
  ROW (gaussian, "noise", "mean ln_var [~eps]", NULL, "mean + exp (ln_var / 2) * eps"),
  ROW (gumbel_softmax, "noise", "log_pi", "tau:float=0.1 axis:int=1",
       "softmax ((log_pi + Gumbel noise) / tau) along axis"),
  { .name = NULL },
};
