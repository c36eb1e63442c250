/* Functions: activations, mathematics and noise beyond those of tapedeck-functions.h, which
 * includes this.
 *
 * Names and defaults are Chainer's; attributes that have a default there are named options
 * here: td_elu (x), td_elu (x, .alpha = 0.5).  A name without parentheses is the plain
 * function, with every default.  All return a variable of the innermost scope, poisoned on
 * error; none blocks.  Gradients have gradients.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

TD_BEGIN_DECLS

/* --- activations ------------------------------------------------------------------------ */
typedef struct
{
  double slope; /**< where x < 0 */
  int end_;
} TdLeakyReluOpt;
#define TD_LEAKY_RELU_DEFAULTS .slope = 0.2
/** x, or slope times x where x is negative.  *Source*: chainer.functions.leaky_relu. */
TD_API TdVar *td_leaky_relu_ (TdVar *x, const TdLeakyReluOpt *options);
TD_API TdVar *td_leaky_relu (TdVar *x);
TD_API TdVar *td_leaky_relu_at (TdVar *x, TdLeakyReluOpt options, const TdSite *site);
typedef struct
{
  double alpha;
  int end_;
} TdEluOpt;
#define TD_ELU_DEFAULTS .alpha = 1
/** x, or alpha (e^x - 1) where x is not positive.  *Source*: chainer.functions.elu. */
TD_API TdVar *td_elu_ (TdVar *x, const TdEluOpt *options);
TD_API TdVar *td_elu (TdVar *x);
TD_API TdVar *td_elu_at (TdVar *x, TdEluOpt options, const TdSite *site);
typedef struct
{
  double alpha, scale;
  int end_;
} TdSeluOpt;
#define TD_SELU_DEFAULTS .alpha = 1.6732632423543772, .scale = 1.0507009873554805
/** scale times elu (x) with alpha, which keeps means and variances where they are.  *Source*:
 * chainer.functions.selu. */
TD_API TdVar *td_selu_ (TdVar *x, const TdSeluOpt *options);
TD_API TdVar *td_selu (TdVar *x);
TD_API TdVar *td_selu_at (TdVar *x, TdSeluOpt options, const TdSite *site);
typedef struct
{
  double beta;
  int end_;
} TdSoftplusOpt;
#define TD_SOFTPLUS_DEFAULTS .beta = 1
/** log (1 + e^(beta x)) / beta, without overflow.  *Source*: chainer.functions.softplus. */
TD_API TdVar *td_softplus_ (TdVar *x, const TdSoftplusOpt *options);
TD_API TdVar *td_softplus (TdVar *x);
TD_API TdVar *td_softplus_at (TdVar *x, TdSoftplusOpt options, const TdSite *site);
typedef struct
{
  double z; /**< the largest result */
  int end_;
} TdClippedReluOpt;
#define TD_CLIPPED_RELU_DEFAULTS .z = 20
/** x limited to [0, z]; NaN stays.  *Source*: chainer.functions.clipped_relu. */
TD_API TdVar *td_clipped_relu_ (TdVar *x, const TdClippedReluOpt *options);
TD_API TdVar *td_clipped_relu (TdVar *x);
TD_API TdVar *td_clipped_relu_at (TdVar *x, TdClippedReluOpt options, const TdSite *site);
/** x limited to [0, 6].  *Source*: chainer.functions.relu6. */
TD_API TdVar *td_relu6 (TdVar *x);
TD_API TdVar *td_relu6_at (TdVar *x, const TdSite *site);
/** 0.2 x + 0.5 limited to [0, 1].  *Source*: chainer.functions.hard_sigmoid. */
TD_API TdVar *td_hard_sigmoid (TdVar *x);
TD_API TdVar *td_hard_sigmoid_at (TdVar *x, const TdSite *site);
typedef struct
{
  bool approximate; /**< by tanh, as GPT-2 was trained with */
  int end_;
} TdGeluOpt;
#define TD_GELU_DEFAULTS .approximate = false
/** x Phi (x), with the normal distribution function itself or approximated by tanh.  *Source*:
 * D. Hendrycks, K. Gimpel, 2016, section 2. */
TD_API TdVar *td_gelu_ (TdVar *x, const TdGeluOpt *options);
TD_API TdVar *td_gelu (TdVar *x);
TD_API TdVar *td_gelu_at (TdVar *x, TdGeluOpt options, const TdSite *site);
/** x sigmoid (x): swish with beta 1, in one kernel. */
TD_API TdVar *td_silu (TdVar *x);
TD_API TdVar *td_silu_at (TdVar *x, const TdSite *site);
/** x sigmoid (beta x).  *Shapes*: beta has the sizes of x's axes 1, 2 ...  *Source*:
 * chainer.functions.swish. */
TD_API TdVar *td_swish (TdVar *x, TdVar *beta);
TD_API TdVar *td_swish_at (TdVar *x, TdVar *beta, const TdSite *site);
/** x, or W x where x is negative.  *Shapes*: W has the sizes of x's axes 1, 2 ...  *Source*:
 * chainer.functions.prelu. */
TD_API TdVar *td_prelu (TdVar *x, TdVar *W);
TD_API TdVar *td_prelu_at (TdVar *x, TdVar *W, const TdSite *site);
typedef struct
{
  int axis;
  int end_;
} TdAxisOpt;
#define TD_AXIS_DEFAULTS .axis = 1
/** The largest of each pool_size neighbours along an axis, whose size shrinks by that.
 * *Source*: chainer.functions.maxout. */
TD_API TdVar *td_maxout_ (TdVar *x, int pool_size, const TdAxisOpt *options);
TD_API TdVar *td_maxout_at (TdVar *x, int pool_size, TdAxisOpt options, const TdSite *site);

/* --- mathematics ------------------------------------------------------------------------ */
/** x itself, as an operation in the graph; shares x's memory. */
TD_API TdVar *td_identity (TdVar *x);
TD_API TdVar *td_identity_at (TdVar *x, const TdSite *site);
/** (x1 - x2) squared, element by element.  *Shapes*: equal ones.  *Source*:
 * chainer.functions.squared_difference. */
TD_API TdVar *td_squared_difference (TdVar *x1, TdVar *x2);
TD_API TdVar *td_squared_difference_at (TdVar *x1, TdVar *x2, const TdSite *site);
/** Square root of the sum of the squares of all elements, a scalar.  Where it is 0 its gradient
 * is taken as 0. */
TD_API TdVar *td_sqrt_sum_square (TdVar *x);
TD_API TdVar *td_sqrt_sum_square_at (TdVar *x, const TdSite *site);
/** The same over the given axes (negative ones count from the end): the L2 norm along them. */
TD_API TdVar *td_sqrt_sum_square_axes (TdVar *x, const int *axes, int n_axes, bool keepdims);
TD_API TdVar *td_sqrt_sum_square_axes_at (TdVar *x, const int *axes, int n_axes, bool keepdims,
                                          const TdSite *site);
/** 1 where it holds, else 0, in the operands' dtype (floating point or signed), broadcast; no
 * gradient.  With NaN none holds. */
TD_API TdVar *td_equal (TdVar *a, TdVar *b);
TD_API TdVar *td_equal_at (TdVar *a, TdVar *b, const TdSite *site);
TD_API TdVar *td_greater_equal (TdVar *a, TdVar *b);
TD_API TdVar *td_greater_equal_at (TdVar *a, TdVar *b, const TdSite *site);
TD_API TdVar *td_greater (TdVar *a, TdVar *b);
TD_API TdVar *td_greater_at (TdVar *a, TdVar *b, const TdSite *site);
TD_API TdVar *td_less_equal (TdVar *a, TdVar *b);
TD_API TdVar *td_less_equal_at (TdVar *a, TdVar *b, const TdSite *site);
TD_API TdVar *td_less (TdVar *a, TdVar *b);
TD_API TdVar *td_less_at (TdVar *a, TdVar *b, const TdSite *site);
/** -1, 0 or 1; no gradient. */
TD_API TdVar *td_sign (TdVar *x);
TD_API TdVar *td_sign_at (TdVar *x, const TdSite *site);
/** Error function. */
TD_API TdVar *td_erf (TdVar *x);
TD_API TdVar *td_erf_at (TdVar *x, const TdSite *site);
/** log (1 + x), also for small x. */
TD_API TdVar *td_log1p (TdVar *x);
TD_API TdVar *td_log1p_at (TdVar *x, const TdSite *site);
/** e to the power x, less 1, also for small x. */
TD_API TdVar *td_expm1 (TdVar *x);
TD_API TdVar *td_expm1_at (TdVar *x, const TdSite *site);
/** 1 / sqrt (x). */
TD_API TdVar *td_rsqrt (TdVar *x);
TD_API TdVar *td_rsqrt_at (TdVar *x, const TdSite *site);
typedef struct
{
  const int *axes; /**< n_axes of them; NULL: all */
  int n_axes;
  TdVar *weights;
  bool keepdims;
  int end_;
} TdAverageOpt;
#define TD_AVERAGE_DEFAULTS .axes = NULL
/** Mean over axes, weighted if asked.  *Shapes*: weights as x, or (x.shape[axis]) with one
 * axis.  *Source*: chainer.functions.average. */
TD_API TdVar *td_average_ (TdVar *x, const TdAverageOpt *options);
TD_API TdVar *td_average_at (TdVar *x, TdAverageOpt options, const TdSite *site);
/** Index (i32) of the smallest element along an axis; no gradient. */
TD_API TdVar *td_argmin (TdVar *x, int axis);
TD_API TdVar *td_argmin_at (TdVar *x, int axis, const TdSite *site);
/** Sums of what lies up to each element along an axis; td_flatten (x) first for Chainer's axis
 * None. */
TD_API TdVar *td_cumsum (TdVar *x, int axis);
TD_API TdVar *td_cumsum_at (TdVar *x, int axis, const TdSite *site);
/** p x + (1 - p) y, three arrays of one shape. */
TD_API TdVar *td_linear_interpolate (TdVar *p, TdVar *x, TdVar *y);
TD_API TdVar *td_linear_interpolate_at (TdVar *p, TdVar *x, TdVar *y, const TdSite *site);
/** x + y, where y lies under x's axes from `axis` on.  *Shapes*: y.shape == x.shape[axis:axis +
 * y.ndim].  *Source*: chainer.functions.bias. */
TD_API TdVar *td_bias_ (TdVar *x, TdVar *y, const TdAxisOpt *options);
TD_API TdVar *td_bias_at (TdVar *x, TdVar *y, TdAxisOpt options, const TdSite *site);
/** x * y, where y lies under x's axes from `axis` on.  *Shapes*: as td_bias.  *Source*:
 * chainer.functions.scale. */
TD_API TdVar *td_scale_ (TdVar *x, TdVar *y, const TdAxisOpt *options);
TD_API TdVar *td_scale_at (TdVar *x, TdVar *y, TdAxisOpt options, const TdSite *site);
/** Sums of products over labelled axes: td_einsum ("ij,jk->ik", (TdVar *[]){ a, b }, 2); "..."
 * and repeated labels are understood, sizes of equal labels must be equal.  Operands are taken
 * pair by pair from the left.  *Errors*: TD_ERR_ARG for subscripts that cannot be read,
 * TD_ERR_SHAPE for sizes that differ or more than 8 axes.  *Source*: chainer.functions.einsum.
 */
TD_API TdVar *td_einsum (const char *subscripts, TdVar *const *operands, int n);
TD_API TdVar *td_einsum_at (const char *subscripts, TdVar *const *operands, int n,
                            const TdSite *site);
typedef struct
{
  int axes;                   /**< how many axes are summed */
  const int *a_axes, *b_axes; /**< which; NULL: the last of a, the first of b */
  int end_;
} TdTensordotOpt;
#define TD_TENSORDOT_DEFAULTS .axes = 2
/** Sum of products over axes of a and axes of b.  *Shapes*: the other axes of a, then those of
 * b.  *Source*: chainer.functions.tensordot. */
TD_API TdVar *td_tensordot_ (TdVar *a, TdVar *b, const TdTensordotOpt *options);
TD_API TdVar *td_tensordot_at (TdVar *a, TdVar *b, TdTensordotOpt options, const TdSite *site);

/* --- noise ------------------------------------------------------------------------------ */
typedef struct
{
  TdVar *eps;         /**< standard normal numbers; NULL: new ones */
  TdVar **return_eps; /**< gets those that were used */
  int end_;
} TdGaussianOpt;
#define TD_GAUSSIAN_DEFAULTS .eps = NULL
/** A sample of the normal distribution of that mean and log variance: mean + e^(ln_var / 2)
 * eps, which gradients go through.  *Source*: chainer.functions.gaussian. */
TD_API TdVar *td_gaussian_ (TdVar *mean, TdVar *ln_var, const TdGaussianOpt *options);
TD_API TdVar *td_gaussian_at (TdVar *mean, TdVar *ln_var, TdGaussianOpt options,
                              const TdSite *site);
typedef struct
{
  double tau;
  int axis;
  int end_;
} TdGumbelSoftmaxOpt;
#define TD_GUMBEL_SOFTMAX_DEFAULTS .tau = 0.1, .axis = 1
/** A sample near the corners of the simplex: softmax ((log_pi + Gumbel noise) / tau) along an
 * axis.  *Source*: chainer.functions.gumbel_softmax. */
TD_API TdVar *td_gumbel_softmax_ (TdVar *log_pi, const TdGumbelSoftmaxOpt *options);
TD_API TdVar *td_gumbel_softmax_at (TdVar *log_pi, TdGumbelSoftmaxOpt options,
                                    const TdSite *site);
typedef struct
{
  TdVar *mask;         /**< factors, of x's shape; NULL: new ones */
  TdVar **return_mask; /**< gets those that were used; NULL when config train is off */
  int end_;
} TdDropoutOpt;
#define TD_DROPOUT_DEFAULTS .mask = NULL
/** td_dropout with a mask that is given, or wanted: td_dropout (x, 0.5, .return_mask = &mask).
 * The mask is then a variable, else dropout needs no memory for it. */
TD_API TdVar *td_dropout_with_at (TdVar *x, double ratio, TdDropoutOpt options,
                                  const TdSite *site);

#if !defined(TD_NO_SITES)
/* clang-format off */
#define td_leaky_relu(...) td__leaky_relu_x (__VA_ARGS__, .end_ = 0)
#define td__leaky_relu_x(x, ...) TD_CALL_ (td_leaky_relu_at (x, TD_OPTIONS_ (TdLeakyReluOpt, TD_LEAKY_RELU_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_elu(...) td__elu_x (__VA_ARGS__, .end_ = 0)
#define td__elu_x(x, ...) TD_CALL_ (td_elu_at (x, TD_OPTIONS_ (TdEluOpt, TD_ELU_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_selu(...) td__selu_x (__VA_ARGS__, .end_ = 0)
#define td__selu_x(x, ...) TD_CALL_ (td_selu_at (x, TD_OPTIONS_ (TdSeluOpt, TD_SELU_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_softplus(...) td__softplus_x (__VA_ARGS__, .end_ = 0)
#define td__softplus_x(x, ...) TD_CALL_ (td_softplus_at (x, TD_OPTIONS_ (TdSoftplusOpt, TD_SOFTPLUS_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_clipped_relu(...) td__clipped_relu_x (__VA_ARGS__, .end_ = 0)
#define td__clipped_relu_x(x, ...) TD_CALL_ (td_clipped_relu_at (x, TD_OPTIONS_ (TdClippedReluOpt, TD_CLIPPED_RELU_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_relu6(...) td_relu6_at (__VA_ARGS__, TD_HERE)
#define td_hard_sigmoid(...) td_hard_sigmoid_at (__VA_ARGS__, TD_HERE)
#define td_gelu(...) td__gelu_x (__VA_ARGS__, .end_ = 0)
#define td__gelu_x(x, ...) TD_CALL_ (td_gelu_at (x, TD_OPTIONS_ (TdGeluOpt, TD_GELU_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_silu(...) td_silu_at (__VA_ARGS__, TD_HERE)
#define td_swish(...) td_swish_at (__VA_ARGS__, TD_HERE)
#define td_prelu(...) td_prelu_at (__VA_ARGS__, TD_HERE)
#define td_maxout(x, ...) td__maxout_x (x, __VA_ARGS__, .end_ = 0)
#define td__maxout_x(x, pool_size, ...) TD_CALL_ (td_maxout_at (x, pool_size, TD_OPTIONS_ (TdAxisOpt, TD_AXIS_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_identity(...) td_identity_at (__VA_ARGS__, TD_HERE)
#define td_equal(...) td_equal_at (__VA_ARGS__, TD_HERE)
#define td_greater_equal(...) td_greater_equal_at (__VA_ARGS__, TD_HERE)
#define td_greater(...) td_greater_at (__VA_ARGS__, TD_HERE)
#define td_less_equal(...) td_less_equal_at (__VA_ARGS__, TD_HERE)
#define td_less(...) td_less_at (__VA_ARGS__, TD_HERE)
#define td_squared_difference(...) td_squared_difference_at (__VA_ARGS__, TD_HERE)
#define td_sqrt_sum_square(...) td_sqrt_sum_square_at (__VA_ARGS__, TD_HERE)
#define td_sqrt_sum_square_axes(...) td_sqrt_sum_square_axes_at (__VA_ARGS__, TD_HERE)
#define td_sign(...) td_sign_at (__VA_ARGS__, TD_HERE)
#define td_erf(...) td_erf_at (__VA_ARGS__, TD_HERE)
#define td_log1p(...) td_log1p_at (__VA_ARGS__, TD_HERE)
#define td_expm1(...) td_expm1_at (__VA_ARGS__, TD_HERE)
#define td_rsqrt(...) td_rsqrt_at (__VA_ARGS__, TD_HERE)
#define td_average(...) td__average_x (__VA_ARGS__, .end_ = 0)
#define td__average_x(x, ...) TD_CALL_ (td_average_at (x, TD_OPTIONS_ (TdAverageOpt, TD_AVERAGE_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_argmin(...) td_argmin_at (__VA_ARGS__, TD_HERE)
#define td_cumsum(...) td_cumsum_at (__VA_ARGS__, TD_HERE)
#define td_linear_interpolate(...) td_linear_interpolate_at (__VA_ARGS__, TD_HERE)
#define td_bias(x, ...) td__bias_x (x, __VA_ARGS__, .end_ = 0)
#define td__bias_x(x, y, ...) TD_CALL_ (td_bias_at (x, y, TD_OPTIONS_ (TdAxisOpt, TD_AXIS_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_scale(x, ...) td__scale_x (x, __VA_ARGS__, .end_ = 0)
#define td__scale_x(x, y, ...) TD_CALL_ (td_scale_at (x, y, TD_OPTIONS_ (TdAxisOpt, TD_AXIS_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_einsum(...) td_einsum_at (__VA_ARGS__, TD_HERE)
#define td_tensordot(a, ...) td__tensordot_x (a, __VA_ARGS__, .end_ = 0)
#define td__tensordot_x(a, b, ...) TD_CALL_ (td_tensordot_at (a, b, TD_OPTIONS_ (TdTensordotOpt, TD_TENSORDOT_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_gaussian(mean, ...) td__gaussian_x (mean, __VA_ARGS__, .end_ = 0)
#define td__gaussian_x(mean, ln_var, ...) TD_CALL_ (td_gaussian_at (mean, ln_var, TD_OPTIONS_ (TdGaussianOpt, TD_GAUSSIAN_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_gumbel_softmax(...) td__gumbel_softmax_x (__VA_ARGS__, .end_ = 0)
#define td__gumbel_softmax_x(log_pi, ...) TD_CALL_ (td_gumbel_softmax_at (log_pi, TD_OPTIONS_ (TdGumbelSoftmaxOpt, TD_GUMBEL_SOFTMAX_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_dropout(x, ...) td__dropout_x (x, __VA_ARGS__, .end_ = 0)
#define td__dropout_x(x, ratio, ...) TD_CALL_ (td_dropout_with_at (x, ratio, TD_OPTIONS_ (TdDropoutOpt, TD_DROPOUT_DEFAULTS, __VA_ARGS__), TD_HERE))
/* clang-format on */
#endif

TD_END_DECLS
