/* Functions: what a model's forward pass is written in.  Included by tapedeck.h.
 *
 * Names and argument order are Chainer's.  Each has a twin with _at that takes the call site;
 * the macros at the end pass it.  A name without parentheses is the plain function.  All return
 * a variable of the innermost scope, poisoned on error (TD_ERR_SHAPE, TD_ERR_DTYPE ... with the
 * operands' names and shapes); none blocks.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

TD_BEGIN_DECLS

/** One axis of td_get_item: a range with a step, or one index (drops the axis), or a new
 * axis. */
typedef struct
{
  int64_t start, stop, step;
  int kind; /**< 0 range, 1 index, 2 new axis */
} TdSlice;
#define TD_END INT64_MAX
#define TD_ALL (__extension__(TdSlice){ 0, TD_END, 1, 0 })
#define TD_RANGE(a, b) (__extension__(TdSlice){ (a), (b), 1, 0 })
#define TD_STEP(a, b, s) (__extension__(TdSlice){ (a), (b), (s), 0 })
#define TD_AT(i) (__extension__(TdSlice){ (i), 0, 1, 1 })
#define TD_NEW_AXIS (__extension__(TdSlice){ 0, 0, 1, 2 })

/* --- arithmetic, with NumPy broadcasting -------------------------------------------------- */
/** a + b.  *Shapes*: broadcast as NumPy does. */
TD_API TdVar *td_add (TdVar *a, TdVar *b);
TD_API TdVar *td_add_at (TdVar *a, TdVar *b, const TdSite *site);
/** a - b.  *Shapes*: broadcast as NumPy does. */
TD_API TdVar *td_sub (TdVar *a, TdVar *b);
TD_API TdVar *td_sub_at (TdVar *a, TdVar *b, const TdSite *site);
/** a * b.  *Shapes*: broadcast as NumPy does. */
TD_API TdVar *td_mul (TdVar *a, TdVar *b);
TD_API TdVar *td_mul_at (TdVar *a, TdVar *b, const TdSite *site);
/** a / b.  *Shapes*: broadcast as NumPy does. */
TD_API TdVar *td_div (TdVar *a, TdVar *b);
TD_API TdVar *td_div_at (TdVar *a, TdVar *b, const TdSite *site);
/** a to the power b.  *Shapes*: broadcast as NumPy does. */
TD_API TdVar *td_pow (TdVar *a, TdVar *b);
TD_API TdVar *td_pow_at (TdVar *a, TdVar *b, const TdSite *site);
/** The larger of a and b, element by element; NaN wins.  *Shapes*: broadcast as NumPy does.
 */
TD_API TdVar *td_maximum (TdVar *a, TdVar *b);
TD_API TdVar *td_maximum_at (TdVar *a, TdVar *b, const TdSite *site);
/** The smaller of a and b; NaN wins.  *Shapes*: broadcast as NumPy does. */
TD_API TdVar *td_minimum (TdVar *a, TdVar *b);
TD_API TdVar *td_minimum_at (TdVar *a, TdVar *b, const TdSite *site);
/** -x. */
TD_API TdVar *td_neg (TdVar *x);
TD_API TdVar *td_neg_at (TdVar *x, const TdSite *site);
/** x + c. */
TD_API TdVar *td_add_scalar (TdVar *x, double c);
TD_API TdVar *td_add_scalar_at (TdVar *x, double c, const TdSite *site);
/** x - c. */
TD_API TdVar *td_sub_scalar (TdVar *x, double c);
TD_API TdVar *td_sub_scalar_at (TdVar *x, double c, const TdSite *site);
/** x * c. */
TD_API TdVar *td_mul_scalar (TdVar *x, double c);
TD_API TdVar *td_mul_scalar_at (TdVar *x, double c, const TdSite *site);
/** x / c. */
TD_API TdVar *td_div_scalar (TdVar *x, double c);
TD_API TdVar *td_div_scalar_at (TdVar *x, double c, const TdSite *site);
/** x to the power c. */
TD_API TdVar *td_pow_scalar (TdVar *x, double c);
TD_API TdVar *td_pow_scalar_at (TdVar *x, double c, const TdSite *site);
/** c - x. */
TD_API TdVar *td_rsub_scalar (TdVar *x, double c);
TD_API TdVar *td_rsub_scalar_at (TdVar *x, double c, const TdSite *site);
/** c / x. */
TD_API TdVar *td_rdiv_scalar (TdVar *x, double c);
TD_API TdVar *td_rdiv_scalar_at (TdVar *x, double c, const TdSite *site);
/** c to the power x. */
TD_API TdVar *td_rpow_scalar (TdVar *x, double c);
TD_API TdVar *td_rpow_scalar_at (TdVar *x, double c, const TdSite *site);

/* --- activations and element by element mathematics --------------------------------------- */
/** max (x, 0); NaN stays.  *Source*: chainer.functions.relu. */
TD_API TdVar *td_relu (TdVar *x);
TD_API TdVar *td_relu_at (TdVar *x, const TdSite *site);
/** 1 / (1 + exp (-x)). */
TD_API TdVar *td_sigmoid (TdVar *x);
TD_API TdVar *td_sigmoid_at (TdVar *x, const TdSite *site);
/** Hyperbolic tangent. */
TD_API TdVar *td_tanh (TdVar *x);
TD_API TdVar *td_tanh_at (TdVar *x, const TdSite *site);
/** e to the power x. */
TD_API TdVar *td_exp (TdVar *x);
TD_API TdVar *td_exp_at (TdVar *x, const TdSite *site);
/** Natural logarithm. */
TD_API TdVar *td_log (TdVar *x);
TD_API TdVar *td_log_at (TdVar *x, const TdSite *site);
/** Square root. */
TD_API TdVar *td_sqrt (TdVar *x);
TD_API TdVar *td_sqrt_at (TdVar *x, const TdSite *site);
/** |x|. */
TD_API TdVar *td_absolute (TdVar *x);
TD_API TdVar *td_absolute_at (TdVar *x, const TdSite *site);
/** x * x. */
TD_API TdVar *td_square (TdVar *x);
TD_API TdVar *td_square_at (TdVar *x, const TdSite *site);
/** Sine. */
TD_API TdVar *td_sin (TdVar *x);
TD_API TdVar *td_sin_at (TdVar *x, const TdSite *site);
/** Cosine. */
TD_API TdVar *td_cos (TdVar *x);
TD_API TdVar *td_cos_at (TdVar *x, const TdSite *site);
/** x limited to [min, max]; NaN stays. */
TD_API TdVar *td_clip (TdVar *x, double min, double max);
TD_API TdVar *td_clip_at (TdVar *x, double min, double max, const TdSite *site);

/* --- reductions: over everything, or over axes -------------------------------------------- */
/** Sum of all elements, a scalar. */
TD_API TdVar *td_sum (TdVar *x);
TD_API TdVar *td_sum_at (TdVar *x, const TdSite *site);
/** Sum over the given axes (negative ones count from the end). */
TD_API TdVar *td_sum_axes (TdVar *x, const int *axes, int n_axes, bool keepdims);
TD_API TdVar *td_sum_axes_at (TdVar *x, const int *axes, int n_axes, bool keepdims,
                              const TdSite *site);
/** Mean of all elements, a scalar. */
TD_API TdVar *td_mean (TdVar *x);
TD_API TdVar *td_mean_at (TdVar *x, const TdSite *site);
/** Mean over the given axes (negative ones count from the end). */
TD_API TdVar *td_mean_axes (TdVar *x, const int *axes, int n_axes, bool keepdims);
TD_API TdVar *td_mean_axes_at (TdVar *x, const int *axes, int n_axes, bool keepdims,
                               const TdSite *site);
/** Largest element (NaN wins) of all elements, a scalar. */
TD_API TdVar *td_max (TdVar *x);
TD_API TdVar *td_max_at (TdVar *x, const TdSite *site);
/** Largest element (NaN wins) over the given axes (negative ones count from the end). */
TD_API TdVar *td_max_axes (TdVar *x, const int *axes, int n_axes, bool keepdims);
TD_API TdVar *td_max_axes_at (TdVar *x, const int *axes, int n_axes, bool keepdims,
                              const TdSite *site);
/** Smallest element (NaN wins) of all elements, a scalar. */
TD_API TdVar *td_min (TdVar *x);
TD_API TdVar *td_min_at (TdVar *x, const TdSite *site);
/** Smallest element (NaN wins) over the given axes (negative ones count from the end). */
TD_API TdVar *td_min_axes (TdVar *x, const int *axes, int n_axes, bool keepdims);
TD_API TdVar *td_min_axes_at (TdVar *x, const int *axes, int n_axes, bool keepdims,
                              const TdSite *site);
/** Product of all elements, a scalar. */
TD_API TdVar *td_prod (TdVar *x);
TD_API TdVar *td_prod_at (TdVar *x, const TdSite *site);
/** Product over the given axes (negative ones count from the end). */
TD_API TdVar *td_prod_axes (TdVar *x, const int *axes, int n_axes, bool keepdims);
TD_API TdVar *td_prod_axes_at (TdVar *x, const int *axes, int n_axes, bool keepdims,
                               const TdSite *site);
/** log (sum (exp (x))), without overflow of all elements, a scalar. */
TD_API TdVar *td_logsumexp (TdVar *x);
TD_API TdVar *td_logsumexp_at (TdVar *x, const TdSite *site);
/** log (sum (exp (x))), without overflow over the given axes (negative ones count from the
 * end). */
TD_API TdVar *td_logsumexp_axes (TdVar *x, const int *axes, int n_axes, bool keepdims);
TD_API TdVar *td_logsumexp_axes_at (TdVar *x, const int *axes, int n_axes, bool keepdims,
                                    const TdSite *site);
/** Index (i32) of the largest element along an axis; no gradient. */
TD_API TdVar *td_argmax (TdVar *x, int axis);
TD_API TdVar *td_argmax_at (TdVar *x, int axis, const TdSite *site);

/* --- matrix products ---------------------------------------------------------------------- */
/** Matrix product, the last two axes of each transposed first if asked.  *Shapes*: (m, k), (k,
 * n)
 * -> (m, n); axes before the last two broadcast; one axis is a row on the left, a column on the
 * right.  *Source*: chainer.functions.matmul. */
TD_API TdVar *td_matmul (TdVar *a, TdVar *b, bool ta, bool tb);
TD_API TdVar *td_matmul_at (TdVar *a, TdVar *b, bool ta, bool tb, const TdSite *site);
/** Matrix products over the first axis.  *Shapes*: (B, m, k), (B, k, n) -> (B, m, n). */
TD_API TdVar *td_batch_matmul (TdVar *a, TdVar *b, bool ta, bool tb);
TD_API TdVar *td_batch_matmul_at (TdVar *a, TdVar *b, bool ta, bool tb, const TdSite *site);
/** x W^T + b; trailing axes of x are flattened; b may be NULL.  *Shapes*: x (n, in), W (out,
 * in), b (out) -> (n, out). */
TD_API TdVar *td_linear (TdVar *x, TdVar *W, TdVar *b);
TD_API TdVar *td_linear_at (TdVar *x, TdVar *W, TdVar *b, const TdSite *site);
/** The same with several axes of rows.  *Shapes*: x (n1, ..., m1, ...) with n_batch_axes of the
 * first kind, W (out, m) -> (n1, ..., out).  *Source*: chainer.functions.linear. */
TD_API TdVar *td_linear_axes (TdVar *x, TdVar *W, TdVar *b, int n_batch_axes);
TD_API TdVar *td_linear_axes_at (TdVar *x, TdVar *W, TdVar *b, int n_batch_axes,
                                 const TdSite *site);
/** Each pair of features of e1 and e2 with a weight of its own, and a linear part.  *Shapes*:
 * e1 (n, j), e2 (n, k), W (j, k, l), V1 (j, l), V2 (k, l), b (l) -> (n, l); axes of e1 and e2
 * after the first are one.  V1, V2 and b may be NULL, all of them.  *Source*:
 * chainer.functions.bilinear; Socher et al., NIPS 2013, equation 1. */
TD_API TdVar *td_bilinear (TdVar *e1, TdVar *e2, TdVar *W, TdVar *V1, TdVar *V2, TdVar *b);
TD_API TdVar *td_bilinear_at (TdVar *e1, TdVar *e2, TdVar *W, TdVar *V1, TdVar *V2, TdVar *b,
                              const TdSite *site);

/* --- shapes and pieces -------------------------------------------------------------------- */
/** Same elements, other shape; one size may be -1. */
TD_API TdVar *td_reshape (TdVar *x, TdShape shape);
TD_API TdVar *td_reshape_at (TdVar *x, TdShape shape, const TdSite *site);
/** One axis. */
TD_API TdVar *td_flatten (TdVar *x);
TD_API TdVar *td_flatten_at (TdVar *x, const TdSite *site);
/** Axes in another order; NULL reverses them. */
TD_API TdVar *td_transpose (TdVar *x, const int *axes);
TD_API TdVar *td_transpose_at (TdVar *x, const int *axes, const TdSite *site);
/** Join along an existing axis. */
TD_API TdVar *td_concat (TdVar *const *xs, int n, int axis);
TD_API TdVar *td_concat_at (TdVar *const *xs, int n, int axis, const TdSite *site);
/** Join along a new axis. */
TD_API TdVar *td_stack (TdVar *const *xs, int n, int axis);
TD_API TdVar *td_stack_at (TdVar *const *xs, int n, int axis, const TdSite *site);
/** Cut into equal pieces along an axis, written to out[0 .. sections - 1]. */
TD_API TdStatus td_split_axis (TdVar *x, int sections, int axis, TdVar **out);
TD_API TdStatus td_split_axis_at (TdVar *x, int sections, int axis, TdVar **out,
                                  const TdSite *site);
/** Basic indexing, one TdSlice per leading axis (see TD_ALL, TD_AT, TD_RANGE, TD_STEP,
 * TD_NEW_AXIS). */
TD_API TdVar *td_get_item (TdVar *x, const TdSlice *slices, int n_slices);
TD_API TdVar *td_get_item_at (TdVar *x, const TdSlice *slices, int n_slices,
                              const TdSite *site);
/** x[i, t[i]] for each row i.  *Shapes*: x (n, m), t (n) -> (n). */
TD_API TdVar *td_select_item (TdVar *x, TdVar *t);
TD_API TdVar *td_select_item_at (TdVar *x, TdVar *t, const TdSite *site);
/** Repeat along axes of size 1 (NumPy rules). */
TD_API TdVar *td_broadcast_to (TdVar *x, TdShape shape);
TD_API TdVar *td_broadcast_to_at (TdVar *x, TdShape shape, const TdSite *site);
/** Sum over the axes that broadcasting to x's shape would repeat; the opposite of
 * td_broadcast_to. */
TD_API TdVar *td_sum_to (TdVar *x, TdShape shape);
TD_API TdVar *td_sum_to_at (TdVar *x, TdShape shape, const TdSite *site);
/** A new axis of size 1. */
TD_API TdVar *td_expand_dims (TdVar *x, int axis);
TD_API TdVar *td_expand_dims_at (TdVar *x, int axis, const TdSite *site);
/** Drop all axes of size 1. */
TD_API TdVar *td_squeeze (TdVar *x);
TD_API TdVar *td_squeeze_at (TdVar *x, const TdSite *site);
/** Drop one axis, which must be of size 1. */
TD_API TdVar *td_squeeze_axis (TdVar *x, int axis);
TD_API TdVar *td_squeeze_axis_at (TdVar *x, int axis, const TdSite *site);
/** Other element type; gradients are cast back. */
TD_API TdVar *td_cast (TdVar *x, TdDtype dtype);
TD_API TdVar *td_cast_at (TdVar *x, TdDtype dtype, const TdSite *site);
/** An equal array in memory of its own. */
TD_API TdVar *td_copy (TdVar *x);
TD_API TdVar *td_copy_at (TdVar *x, const TdSite *site);
/** x where condition is not zero, else y; all three broadcast. */
TD_API TdVar *td_where (TdVar *condition, TdVar *x, TdVar *y);
TD_API TdVar *td_where_at (TdVar *condition, TdVar *x, TdVar *y, const TdSite *site);

/* --- layers without parameters of their own ----------------------------------------------- */
/** Zero a share of the elements and scale the rest by 1 / (1 - ratio); x itself when config
 * train is off. */
TD_API TdVar *td_dropout (TdVar *x, double ratio);
TD_API TdVar *td_dropout_at (TdVar *x, double ratio, const TdSite *site);
/** No number, where Chainer has None. */
#define TD_NONE INT32_MIN
typedef struct
{
  int ignore_label; /**< ids that give zeros and no gradient; TD_NONE: none do */
  int end_;
} TdEmbedOpt;
#define TD_EMBED_DEFAULTS .ignore_label = TD_NONE
/** Rows of W by index.  *Shapes*: x (...) integers, W (n, d) -> (..., d).  *Errors*:
 * TD_ERR_ARG for an index out of range.  *Source*: chainer.functions.embed_id. */
TD_API TdVar *td_embed_id_ (TdVar *x, TdVar *W, const TdEmbedOpt *options);
TD_API TdVar *td_embed_id (TdVar *x, TdVar *W);
TD_API TdVar *td_embed_id_at (TdVar *x, TdVar *W, TdEmbedOpt options, const TdSite *site);
/** LSTM cell without its matrix products; returns the new c and writes h.  *Shapes*: c (m, u),
 * x (n, 4 u) with n <= m, gates interleaved a, i, f, o per unit as in Chainer -> c (m, u), h
 * (n, u); rows of c from n on pass through.  *Source*: chainer.functions.lstm. */
TD_API TdVar *td_lstm (TdVar *c, TdVar *x, TdVar **h);
TD_API TdVar *td_lstm_at (TdVar *c, TdVar *x, TdVar **h, const TdSite *site);

/* --- losses and scores -------------------------------------------------------------------- */
/** Mean of (a - b) squared, a scalar. */
TD_API TdVar *td_mean_squared_error (TdVar *a, TdVar *b);
TD_API TdVar *td_mean_squared_error_at (TdVar *a, TdVar *b, const TdSite *site);

/* --- functions with named options: td_convolution_2d (x, W, b, .stride = {2, 2}) ---------- */
typedef struct
{
  int stride[2], pad[2], dilate[2];
  int groups;
  bool cover_all;
  int end_;
} TdConv2dOpt;
#define TD_CONV_2D_DEFAULTS .stride = { 1, 1 }, .pad = { 0, 0 }, .dilate = { 1, 1 }, .groups = 1
/** Two-dimensional convolution (cross-correlation); b may be NULL.
 * *Shapes*: x (n, c, h, w), W (out, c / groups, kh, kw), b (out) -> (n, out, oh, ow) with
 * oh = (h + 2 pad - dilate (kh - 1) - 1) / stride + 1.  *Source*:
 * chainer.functions.convolution_2d. */
TD_API TdVar *td_convolution_2d_ (TdVar *x, TdVar *W, TdVar *b, const TdConv2dOpt *options);
TD_API TdVar *td_convolution_2d_at (TdVar *x, TdVar *W, TdVar *b, TdConv2dOpt options,
                                    const TdSite *site);

typedef struct
{
  int ksize[2], stride[2], pad[2]; /**< stride 0: as ksize */
  bool cover_all;                  /**< the last window may hang over the edge */
  TdVar **indices; /**< gets, from max pooling, places in windows (i32), Chainer's indices */
  int end_;
} TdPool2dOpt;
#define TD_MAX_POOL_2D_DEFAULTS .ksize = { 2, 2 }, .cover_all = true
#define TD_AVERAGE_POOL_2D_DEFAULTS .ksize = { 2, 2 }
/** Largest element of each window; cover_all is on by default, as in Chainer. */
TD_API TdVar *td_max_pooling_2d_ (TdVar *x, const TdPool2dOpt *options);
TD_API TdVar *td_max_pooling_2d_at (TdVar *x, TdPool2dOpt options, const TdSite *site);
/** Mean of each window, padding counted as zeros, as in Chainer. */
TD_API TdVar *td_average_pooling_2d_ (TdVar *x, const TdPool2dOpt *options);
TD_API TdVar *td_average_pooling_2d_at (TdVar *x, TdPool2dOpt options, const TdSite *site);

typedef struct
{
  int axis; /**< Chainer's default is 1 */
  int end_;
} TdSoftmaxOpt;
#define TD_SOFTMAX_DEFAULTS .axis = 1
/** exp (x) / sum (exp (x)) along an axis (1 unless said). */
TD_API TdVar *td_softmax_ (TdVar *x, const TdSoftmaxOpt *options);
TD_API TdVar *td_softmax_at (TdVar *x, TdSoftmaxOpt options, const TdSite *site);
/** log (softmax (x)) along an axis, without overflow. */
TD_API TdVar *td_log_softmax_ (TdVar *x, const TdSoftmaxOpt *options);
TD_API TdVar *td_log_softmax_at (TdVar *x, TdSoftmaxOpt options, const TdSite *site);

typedef struct
{
  double eps, decay;
  TdVar *running_mean, *running_var; /**< updated in place when config train is on */
  int end_;
} TdBatchNormOpt;
#define TD_BATCH_NORM_DEFAULTS .eps = 2e-5, .decay = 0.9
/** Normalise each channel by the batch's mean and variance, then scale and shift.
 * *Shapes*: x (n, c, ...), gamma (c), beta (c) -> x's.  *Source*:
 * chainer.functions.batch_normalization. */
TD_API TdVar *td_batch_normalization_ (TdVar *x, TdVar *gamma, TdVar *beta,
                                       const TdBatchNormOpt *options);
TD_API TdVar *td_batch_normalization_at (TdVar *x, TdVar *gamma, TdVar *beta,
                                         TdBatchNormOpt options, const TdSite *site);
/** The same with a given mean and variance (c), for evaluation. */
TD_API TdVar *td_fixed_batch_normalization (TdVar *x, TdVar *gamma, TdVar *beta, TdVar *mean,
                                            TdVar *var, double eps);
TD_API TdVar *td_fixed_batch_normalization_at (TdVar *x, TdVar *gamma, TdVar *beta, TdVar *mean,
                                               TdVar *var, double eps, const TdSite *site);

typedef struct
{
  int ignore_label; /**< rows with this label count nothing */
  bool normalize;   /**< divide by the rows that count, else by the batch size */
  TdVar *class_weight;
  const char *reduce; /**< "mean", or "no": the loss has t's shape; NULL: "mean" */
  int end_;
} TdCrossEntropyOpt;
#define TD_CROSS_ENTROPY_DEFAULTS .ignore_label = -1, .normalize = true
/** Mean of -log_softmax (x)[t] over rows.  *Shapes*: x (n, c, ...), t (n, ...) integers ->
 * scalar, or t's with reduce "no".
 * Its gradient always has a gradient (Chainer: enable_double_backprop).  *Errors*: TD_ERR_ARG
 * for a label out of range, naming it and its place. */
TD_API TdVar *td_softmax_cross_entropy_ (TdVar *x, TdVar *t, const TdCrossEntropyOpt *options);
TD_API TdVar *td_softmax_cross_entropy_at (TdVar *x, TdVar *t, TdCrossEntropyOpt options,
                                           const TdSite *site);

/* --- gradient checks ---------------------------------------------------------------------- */
/** A function under check: makes out[0 .. n_out - 1] from in. */
typedef void (*TdCheckFn) (void *user, TdVar *const *in, int n_in, TdVar **out, int n_out);
typedef struct
{
  double eps;           /**< half the distance of a central difference */
  double atol, rtol;    /**< |backward - difference| <= atol + rtol |difference| */
  int64_t max_elements; /**< places checked of each input, evenly spaced; 0: all */
  uint32_t no_grads;    /**< bit i: input i is not checked */
  int end_;
} TdCheckOpt;
#define TD_CHECK_DEFAULTS .eps = 1e-3, .atol = 1e-5, .rtol = 1e-4
TD_API TdCheckOpt td_check_options (void);
/** Gradients of sum (gys[k] * ys[k]) by central differences, f64; NULL for integer inputs.
 * *Errors*: those of fn.  *Sync*: blocks. */
TD_API TdStatus td_numerical_grad (TdCheckFn fn, void *user, TdVar *const *in, int n_in,
                                   TdVar *const *gys, int n_out, double eps, TdVar **gxs);
/** Hold fn's backward against differences; gys may be NULL (weights of the engine's own).
 * *Errors*: TD_ERR_NUMERIC names the worst element.  *Sync*: blocks.  *Source*:
 * chainer.gradient_check.check_backward. */
TD_API TdStatus td_check_backward_ (TdCheckFn fn, void *user, TdVar *const *in, int n_in,
                                    TdVar *const *gys, int n_out, const TdCheckOpt *options);
TD_API TdStatus td_check_backward_at (TdCheckFn fn, void *user, TdVar *const *in, int n_in,
                                      TdVar *const *gys, int n_out, TdCheckOpt options,
                                      const TdSite *site);
/** The same one order higher: the gradient's own gradients, in x and in gy. */
TD_API TdStatus td_check_double_backward_ (TdCheckFn fn, void *user, TdVar *const *in, int n_in,
                                           TdVar *const *gys, int n_out,
                                           const TdCheckOpt *options);
TD_API TdStatus td_check_double_backward_at (TdCheckFn fn, void *user, TdVar *const *in,
                                             int n_in, TdVar *const *gys, int n_out,
                                             TdCheckOpt options, const TdSite *site);

#if !defined(TD_NO_SITES)
/* clang-format off */
#define td_convolution_2d(x, W, ...) td__convolution_2d_x (x, W, __VA_ARGS__, .end_ = 0)
#define td__convolution_2d_x(x, W, b, ...) TD_CALL_ (td_convolution_2d_at (x, W, b, TD_OPTIONS_ (TdConv2dOpt, TD_CONV_2D_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_max_pooling_2d(...) td__max_pooling_2d_x (__VA_ARGS__, .end_ = 0)
#define td__max_pooling_2d_x(x, ...) TD_CALL_ (td_max_pooling_2d_at (x, TD_OPTIONS_ (TdPool2dOpt, TD_MAX_POOL_2D_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_average_pooling_2d(...) td__average_pooling_2d_x (__VA_ARGS__, .end_ = 0)
#define td__average_pooling_2d_x(x, ...) TD_CALL_ (td_average_pooling_2d_at (x, TD_OPTIONS_ (TdPool2dOpt, TD_AVERAGE_POOL_2D_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_softmax(...) td__softmax_x (__VA_ARGS__, .end_ = 0)
#define td__softmax_x(x, ...) TD_CALL_ (td_softmax_at (x, TD_OPTIONS_ (TdSoftmaxOpt, TD_SOFTMAX_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_log_softmax(...) td__log_softmax_x (__VA_ARGS__, .end_ = 0)
#define td__log_softmax_x(x, ...) TD_CALL_ (td_log_softmax_at (x, TD_OPTIONS_ (TdSoftmaxOpt, TD_SOFTMAX_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_batch_normalization(x, gamma, ...) td__batch_normalization_x (x, gamma, __VA_ARGS__, .end_ = 0)
#define td__batch_normalization_x(x, gamma, beta, ...) TD_CALL_ (td_batch_normalization_at (x, gamma, beta, TD_OPTIONS_ (TdBatchNormOpt, TD_BATCH_NORM_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_fixed_batch_normalization(...) td_fixed_batch_normalization_at (__VA_ARGS__, TD_HERE)
#define td_softmax_cross_entropy(x, ...) td__softmax_cross_entropy_x (x, __VA_ARGS__, .end_ = 0)
#define td__softmax_cross_entropy_x(x, t, ...) TD_CALL_ (td_softmax_cross_entropy_at (x, t, TD_OPTIONS_ (TdCrossEntropyOpt, TD_CROSS_ENTROPY_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_check_backward(fn, user, in, n_in, gys, ...) td__check_backward_x (fn, user, in, n_in, gys, __VA_ARGS__, .end_ = 0)
#define td__check_backward_x(fn, user, in, n_in, gys, n_out, ...) TD_CALL_ (td_check_backward_at (fn, user, in, n_in, gys, n_out, TD_OPTIONS_ (TdCheckOpt, TD_CHECK_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_check_double_backward(fn, user, in, n_in, gys, ...) td__check_double_backward_x (fn, user, in, n_in, gys, __VA_ARGS__, .end_ = 0)
#define td__check_double_backward_x(fn, user, in, n_in, gys, n_out, ...) TD_CALL_ (td_check_double_backward_at (fn, user, in, n_in, gys, n_out, TD_OPTIONS_ (TdCheckOpt, TD_CHECK_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_add(...) td_add_at (__VA_ARGS__, TD_HERE)
#define td_sub(...) td_sub_at (__VA_ARGS__, TD_HERE)
#define td_mul(...) td_mul_at (__VA_ARGS__, TD_HERE)
#define td_div(...) td_div_at (__VA_ARGS__, TD_HERE)
#define td_pow(...) td_pow_at (__VA_ARGS__, TD_HERE)
#define td_maximum(...) td_maximum_at (__VA_ARGS__, TD_HERE)
#define td_minimum(...) td_minimum_at (__VA_ARGS__, TD_HERE)
#define td_neg(...) td_neg_at (__VA_ARGS__, TD_HERE)
#define td_add_scalar(...) td_add_scalar_at (__VA_ARGS__, TD_HERE)
#define td_sub_scalar(...) td_sub_scalar_at (__VA_ARGS__, TD_HERE)
#define td_mul_scalar(...) td_mul_scalar_at (__VA_ARGS__, TD_HERE)
#define td_div_scalar(...) td_div_scalar_at (__VA_ARGS__, TD_HERE)
#define td_pow_scalar(...) td_pow_scalar_at (__VA_ARGS__, TD_HERE)
#define td_rsub_scalar(...) td_rsub_scalar_at (__VA_ARGS__, TD_HERE)
#define td_rdiv_scalar(...) td_rdiv_scalar_at (__VA_ARGS__, TD_HERE)
#define td_rpow_scalar(...) td_rpow_scalar_at (__VA_ARGS__, TD_HERE)
#define td_relu(...) td_relu_at (__VA_ARGS__, TD_HERE)
#define td_sigmoid(...) td_sigmoid_at (__VA_ARGS__, TD_HERE)
#define td_tanh(...) td_tanh_at (__VA_ARGS__, TD_HERE)
#define td_exp(...) td_exp_at (__VA_ARGS__, TD_HERE)
#define td_log(...) td_log_at (__VA_ARGS__, TD_HERE)
#define td_sqrt(...) td_sqrt_at (__VA_ARGS__, TD_HERE)
#define td_absolute(...) td_absolute_at (__VA_ARGS__, TD_HERE)
#define td_square(...) td_square_at (__VA_ARGS__, TD_HERE)
#define td_sin(...) td_sin_at (__VA_ARGS__, TD_HERE)
#define td_cos(...) td_cos_at (__VA_ARGS__, TD_HERE)
#define td_clip(...) td_clip_at (__VA_ARGS__, TD_HERE)
#define td_sum(...) td_sum_at (__VA_ARGS__, TD_HERE)
#define td_sum_axes(...) td_sum_axes_at (__VA_ARGS__, TD_HERE)
#define td_mean(...) td_mean_at (__VA_ARGS__, TD_HERE)
#define td_mean_axes(...) td_mean_axes_at (__VA_ARGS__, TD_HERE)
#define td_max(...) td_max_at (__VA_ARGS__, TD_HERE)
#define td_max_axes(...) td_max_axes_at (__VA_ARGS__, TD_HERE)
#define td_min(...) td_min_at (__VA_ARGS__, TD_HERE)
#define td_min_axes(...) td_min_axes_at (__VA_ARGS__, TD_HERE)
#define td_prod(...) td_prod_at (__VA_ARGS__, TD_HERE)
#define td_prod_axes(...) td_prod_axes_at (__VA_ARGS__, TD_HERE)
#define td_logsumexp(...) td_logsumexp_at (__VA_ARGS__, TD_HERE)
#define td_logsumexp_axes(...) td_logsumexp_axes_at (__VA_ARGS__, TD_HERE)
#define td_argmax(...) td_argmax_at (__VA_ARGS__, TD_HERE)
#define td_matmul(...) td_matmul_at (__VA_ARGS__, TD_HERE)
#define td_batch_matmul(...) td_batch_matmul_at (__VA_ARGS__, TD_HERE)
#define td_bilinear(...) td_bilinear_at (__VA_ARGS__, TD_HERE)
#define td_linear_axes(...) td_linear_axes_at (__VA_ARGS__, TD_HERE)
#define td_linear(...) td_linear_at (__VA_ARGS__, TD_HERE)
#define td_reshape(...) td_reshape_at (__VA_ARGS__, TD_HERE)
#define td_flatten(...) td_flatten_at (__VA_ARGS__, TD_HERE)
#define td_transpose(...) td_transpose_at (__VA_ARGS__, TD_HERE)
#define td_concat(...) td_concat_at (__VA_ARGS__, TD_HERE)
#define td_stack(...) td_stack_at (__VA_ARGS__, TD_HERE)
#define td_split_axis(...) td_split_axis_at (__VA_ARGS__, TD_HERE)
#define td_get_item(...) td_get_item_at (__VA_ARGS__, TD_HERE)
#define td_select_item(...) td_select_item_at (__VA_ARGS__, TD_HERE)
#define td_broadcast_to(...) td_broadcast_to_at (__VA_ARGS__, TD_HERE)
#define td_sum_to(...) td_sum_to_at (__VA_ARGS__, TD_HERE)
#define td_expand_dims(...) td_expand_dims_at (__VA_ARGS__, TD_HERE)
#define td_squeeze(...) td_squeeze_at (__VA_ARGS__, TD_HERE)
#define td_squeeze_axis(...) td_squeeze_axis_at (__VA_ARGS__, TD_HERE)
#define td_cast(...) td_cast_at (__VA_ARGS__, TD_HERE)
#define td_copy(...) td_copy_at (__VA_ARGS__, TD_HERE)
#define td_where(...) td_where_at (__VA_ARGS__, TD_HERE)
#define td_embed_id(x, ...) td__embed_id_x (x, __VA_ARGS__, .end_ = 0)
#define td__embed_id_x(x, W, ...) TD_CALL_ (td_embed_id_at (x, W, TD_OPTIONS_ (TdEmbedOpt, TD_EMBED_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_lstm(...) td_lstm_at (__VA_ARGS__, TD_HERE)
#define td_mean_squared_error(...) td_mean_squared_error_at (__VA_ARGS__, TD_HERE)
/* clang-format on */
#endif

TD_END_DECLS

#include "tapedeck-arrays.h"
#include "tapedeck-sequences.h"
#include "tapedeck-math.h"
#include "tapedeck-nd.h"
#include "tapedeck-losses.h"
