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

/* --- mathematics ------------------------------------------------------------------------ */
/** x itself, as an operation in the graph; shares x's memory. */
TD_API TdVar *td_identity (TdVar *x);
TD_API TdVar *td_identity_at (TdVar *x, const TdSite *site);
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

#if !defined(TD_NO_SITES)
/* clang-format off */
#define td_leaky_relu(...) td__leaky_relu_x (__VA_ARGS__, .end_ = 0)
#define td__leaky_relu_x(x, ...) td_leaky_relu_at (x, TD_OPTIONS_ (TdLeakyReluOpt, TD_LEAKY_RELU_DEFAULTS, __VA_ARGS__), TD_HERE)
#define td_elu(...) td__elu_x (__VA_ARGS__, .end_ = 0)
#define td__elu_x(x, ...) td_elu_at (x, TD_OPTIONS_ (TdEluOpt, TD_ELU_DEFAULTS, __VA_ARGS__), TD_HERE)
#define td_selu(...) td__selu_x (__VA_ARGS__, .end_ = 0)
#define td__selu_x(x, ...) td_selu_at (x, TD_OPTIONS_ (TdSeluOpt, TD_SELU_DEFAULTS, __VA_ARGS__), TD_HERE)
#define td_softplus(...) td__softplus_x (__VA_ARGS__, .end_ = 0)
#define td__softplus_x(x, ...) td_softplus_at (x, TD_OPTIONS_ (TdSoftplusOpt, TD_SOFTPLUS_DEFAULTS, __VA_ARGS__), TD_HERE)
#define td_clipped_relu(...) td__clipped_relu_x (__VA_ARGS__, .end_ = 0)
#define td__clipped_relu_x(x, ...) td_clipped_relu_at (x, TD_OPTIONS_ (TdClippedReluOpt, TD_CLIPPED_RELU_DEFAULTS, __VA_ARGS__), TD_HERE)
#define td_relu6(...) td_relu6_at (__VA_ARGS__, TD_HERE)
#define td_hard_sigmoid(...) td_hard_sigmoid_at (__VA_ARGS__, TD_HERE)
#define td_gelu(...) td__gelu_x (__VA_ARGS__, .end_ = 0)
#define td__gelu_x(x, ...) td_gelu_at (x, TD_OPTIONS_ (TdGeluOpt, TD_GELU_DEFAULTS, __VA_ARGS__), TD_HERE)
#define td_silu(...) td_silu_at (__VA_ARGS__, TD_HERE)
#define td_identity(...) td_identity_at (__VA_ARGS__, TD_HERE)
#define td_sign(...) td_sign_at (__VA_ARGS__, TD_HERE)
#define td_erf(...) td_erf_at (__VA_ARGS__, TD_HERE)
#define td_log1p(...) td_log1p_at (__VA_ARGS__, TD_HERE)
#define td_expm1(...) td_expm1_at (__VA_ARGS__, TD_HERE)
#define td_rsqrt(...) td_rsqrt_at (__VA_ARGS__, TD_HERE)
#define td_average(...) td__average_x (__VA_ARGS__, .end_ = 0)
#define td__average_x(x, ...) td_average_at (x, TD_OPTIONS_ (TdAverageOpt, TD_AVERAGE_DEFAULTS, __VA_ARGS__), TD_HERE)
/* clang-format on */
#endif

TD_END_DECLS
