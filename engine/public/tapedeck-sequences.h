/* Functions of sequences and layers: normalisation, attention, recurrent layers over sequences,
 * and recomputation.  Included by tapedeck.h.
 *
 * Names and argument order are Chainer's where Chainer has the function.  As everywhere, each
 * has a twin with _at that takes the call site, and results belong to the innermost scope.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tapedeck.h"

TD_BEGIN_DECLS

/* --- normalization ------------------------------------------------------------------------ */
typedef struct
{
  double eps;
  int end_;
} TdNormOpt;
#define TD_NORM_DEFAULTS .eps = 1e-5
/** Normalise each row, the last axis, by its own mean and variance, then scale and shift.
 * *Shapes*: x (..., d), gamma (d), beta (d) -> x's.  *Source*:
 * chainer.functions.layer_normalization (which takes two axes only). */
TD_API TdVar *td_layer_normalization_ (TdVar *x, TdVar *gamma, TdVar *beta,
                                       const TdNormOpt *options);
TD_API TdVar *td_layer_normalization_at (TdVar *x, TdVar *gamma, TdVar *beta, TdNormOpt options,
                                         const TdSite *site);
/** Normalise each group of channels of each sample by its own mean and variance.  *Shapes*: x
 * (n, c, ...), gamma (c), beta (c) -> x's; groups divides c.  *Source*:
 * chainer.functions.group_normalization. */
TD_API TdVar *td_group_normalization_ (TdVar *x, int groups, TdVar *gamma, TdVar *beta,
                                       const TdNormOpt *options);
TD_API TdVar *td_group_normalization_at (TdVar *x, int groups, TdVar *gamma, TdVar *beta,
                                         TdNormOpt options, const TdSite *site);
/** Divide each row, the last axis, by its root mean square, then scale.  *Shapes*: x (..., d),
 * gamma (d) -> x's.  *Source*: Zhang and Sennrich, 2019. */
TD_API TdVar *td_rms_normalization_ (TdVar *x, TdVar *gamma, const TdNormOpt *options);
TD_API TdVar *td_rms_normalization_at (TdVar *x, TdVar *gamma, TdNormOpt options,
                                       const TdSite *site);
/** x / (|x| + eps), the Euclidean norm taken over the axes (NULL: axis 1).  *Source*:
 * chainer.functions.normalize. */
TD_API TdVar *td_normalize (TdVar *x, double eps, const int *axes, int n_axes);
TD_API TdVar *td_normalize_at (TdVar *x, double eps, const int *axes, int n_axes,
                               const TdSite *site);

typedef struct
{
  int n;                 /**< channels of a window */
  double k, alpha, beta; /**< x / (k + alpha sum)^beta */
  int end_;
} TdLocalResponseOpt;
#define TD_LOCAL_RESPONSE_DEFAULTS .n = 5, .k = 2, .alpha = 1e-4, .beta = 0.75
/** Divide each channel by a power of its neighbours' squares.  *Shapes*: x (n, c, ...) -> x's.
 * *Source*: chainer.functions.local_response_normalization. */
TD_API TdVar *td_local_response_normalization_ (TdVar *x, const TdLocalResponseOpt *options);
TD_API TdVar *td_local_response_normalization_at (TdVar *x, TdLocalResponseOpt options,
                                                  const TdSite *site);

/* --- attention ---------------------------------------------------------------------------- */
typedef struct
{
  TdVar *mask;  /**< not 0 where a query may look at a key: (n_q, n_k), (B, n_q, n_k), or with
                     heads (B, H, n_q, n_k); NULL: everywhere */
  bool causal;  /**< query i looks at keys up to i + n_k - n_q only */
  double scale; /**< of the scores; 0: 1 / sqrt (d) */
  bool
      composed; /**< from products and softmax, storing all weights, instead of one operation */
  int end_;
} TdAttentionOpt;
#define TD_ATTENTION_DEFAULTS .mask = NULL
/** softmax (scale q k^T) v.  One operation that keeps no matrix of weights; its backward makes
 * them again, block by block.  A query that may look at no key gives zeros.  *Shapes*: q (B,
 * n_q, d), k (B, n_k, d), v (B, n_k, e) -> (B, n_q, e), or all with heads, (B, H, ...).
 * *Source*: Vaswani et al., 2017; Dao et al., 2022. */
TD_API TdVar *td_scaled_dot_product_attention_ (TdVar *q, TdVar *k, TdVar *v,
                                                const TdAttentionOpt *options);
TD_API TdVar *td_scaled_dot_product_attention_at (TdVar *q, TdVar *k, TdVar *v,
                                                  TdAttentionOpt options, const TdSite *site);
/** A mask for attention or td_where: 1 where key j <= query i + n_k - n_q, else 0, in any
 * dtype; TD_BOOL takes the least room.  *Shapes*: (n_q, n_k). */
TD_API TdVar *td_causal_mask_at (TdDtype dtype, int64_t n_q, int64_t n_k, const TdSite *site);
TD_API TdVar *td_causal_mask (TdDtype dtype, int64_t n_q, int64_t n_k);

/* --- recurrent layers over sequences -------------------------------------------------------
 * xs[t] (B_t, I) holds step t of the B_t sequences that are longer than t; sequences are sorted
 * by length, the longest first, so B_t never grows.  Weights and biases of layer l in direction
 * d are ws[(l * directions + d) * k + j] and bs[...], j < k; hx, cx (layers * directions, B_0,
 * N), NULL for zeros.  hy, cy (as hx) and ys[t] (B_t, directions * N) may be NULL.  Dropout
 * stands between layers.  *Errors*: TD_ERR_SHAPE for inputs that do not fit or are not sorted.
 *
 * On a device that has all steps and layers as one operation (cuda, with cuDNN) they are one,
 * unless config use_cudnn is 0: composed of operations, each step can be looked at.  Composed
 * there too are layers with dropout between them in training, calls while a hook looks at every
 * operation, and gradients that are to have gradients; the scope's name says why.
 */

/** LSTM.  k is 8: W_0 .. W_3 (N, I) of the input, forget, candidate and output gates on x, W_4
 * .. W_7 (N, N) of the same on h.  *Source*: chainer.functions.n_step_lstm. */
TD_API TdStatus td_n_step_lstm (int n_layers, double dropout_ratio, TdVar *hx, TdVar *cx,
                                TdVar *const *ws, TdVar *const *bs, TdVar *const *xs, int n_xs,
                                TdVar **hy, TdVar **cy, TdVar **ys);
TD_API TdStatus td_n_step_lstm_at (int n_layers, double dropout_ratio, TdVar *hx, TdVar *cx,
                                   TdVar *const *ws, TdVar *const *bs, TdVar *const *xs,
                                   int n_xs, TdVar **hy, TdVar **cy, TdVar **ys,
                                   const TdSite *site);
/** LSTM in both directions; from the second layer on I is 2 N.  *Source*:
 * chainer.functions.n_step_bilstm. */
TD_API TdStatus td_n_step_bilstm (int n_layers, double dropout_ratio, TdVar *hx, TdVar *cx,
                                  TdVar *const *ws, TdVar *const *bs, TdVar *const *xs,
                                  int n_xs, TdVar **hy, TdVar **cy, TdVar **ys);
TD_API TdStatus td_n_step_bilstm_at (int n_layers, double dropout_ratio, TdVar *hx, TdVar *cx,
                                     TdVar *const *ws, TdVar *const *bs, TdVar *const *xs,
                                     int n_xs, TdVar **hy, TdVar **cy, TdVar **ys,
                                     const TdSite *site);
/** Gated recurrent unit.  k is 6: W_0 .. W_2 (N, I) of reset gate, update gate and candidate on
 * x, W_3 .. W_5 (N, N) on h; h' = (1 - z) tanh (W_2 x + b_2 + r (W_5 h + b_5)) + z h. *Source*:
 * chainer.functions.n_step_gru. */
TD_API TdStatus td_n_step_gru (int n_layers, double dropout_ratio, TdVar *hx, TdVar *const *ws,
                               TdVar *const *bs, TdVar *const *xs, int n_xs, TdVar **hy,
                               TdVar **ys);
TD_API TdStatus td_n_step_gru_at (int n_layers, double dropout_ratio, TdVar *hx,
                                  TdVar *const *ws, TdVar *const *bs, TdVar *const *xs,
                                  int n_xs, TdVar **hy, TdVar **ys, const TdSite *site);
/** The same in both directions.  *Source*: chainer.functions.n_step_bigru. */
TD_API TdStatus td_n_step_bigru (int n_layers, double dropout_ratio, TdVar *hx,
                                 TdVar *const *ws, TdVar *const *bs, TdVar *const *xs, int n_xs,
                                 TdVar **hy, TdVar **ys);
TD_API TdStatus td_n_step_bigru_at (int n_layers, double dropout_ratio, TdVar *hx,
                                    TdVar *const *ws, TdVar *const *bs, TdVar *const *xs,
                                    int n_xs, TdVar **hy, TdVar **ys, const TdSite *site);
typedef enum
{
  TD_RNN_TANH,
  TD_RNN_RELU
} TdRnnActivation;
/** Plain recurrent layer, h' = f (W_0 x + b_0 + W_1 h + b_1); k is 2.  *Source*:
 * chainer.functions.n_step_rnn. */
TD_API TdStatus td_n_step_rnn (int n_layers, double dropout_ratio, TdVar *hx, TdVar *const *ws,
                               TdVar *const *bs, TdVar *const *xs, int n_xs, TdRnnActivation f,
                               TdVar **hy, TdVar **ys);
TD_API TdStatus td_n_step_rnn_at (int n_layers, double dropout_ratio, TdVar *hx,
                                  TdVar *const *ws, TdVar *const *bs, TdVar *const *xs,
                                  int n_xs, TdRnnActivation f, TdVar **hy, TdVar **ys,
                                  const TdSite *site);
/** The same in both directions.  *Source*: chainer.functions.n_step_birnn. */
TD_API TdStatus td_n_step_birnn (int n_layers, double dropout_ratio, TdVar *hx,
                                 TdVar *const *ws, TdVar *const *bs, TdVar *const *xs, int n_xs,
                                 TdRnnActivation f, TdVar **hy, TdVar **ys);
TD_API TdStatus td_n_step_birnn_at (int n_layers, double dropout_ratio, TdVar *hx,
                                    TdVar *const *ws, TdVar *const *bs, TdVar *const *xs,
                                    int n_xs, TdRnnActivation f, TdVar **hy, TdVar **ys,
                                    const TdSite *site);

/* --- recomputation ------------------------------------------------------------------------ */
/** A function to be run twice: makes ys[0 .. m - 1] from xs[0 .. n - 1]. */
typedef void (*TdForgetFn) (void *user, TdVar *const *xs, int n, TdVar **ys, int m);
/** Call fn without keeping what it computes on the way; backward runs it again.  Random numbers
 * and config train are the same the second time, so dropout drops the same; running statistics
 * are written the first time only.  Variables that fn uses besides xs (parameters) get their
 * gradients in td_backward, not in td_grad_of.  *Owner*: user must stay valid until backward
 * has run. *Errors*: TD_ERR_STATE for gradients of gradients, and for a function that computes
 * something else the second time.  *Source*: chainer.functions.forget. */
TD_API TdStatus td_forget (TdForgetFn fn, void *user, TdVar *const *xs, int n, TdVar **ys,
                           int m);
TD_API TdStatus td_forget_at (TdForgetFn fn, void *user, TdVar *const *xs, int n, TdVar **ys,
                              int m, const TdSite *site);

#if !defined(TD_NO_SITES)
/* clang-format off */
#define td_layer_normalization(x, gamma, ...) td__layer_normalization_x (x, gamma, __VA_ARGS__, .end_ = 0)
#define td__layer_normalization_x(x, gamma, beta, ...) TD_CALL_ (td_layer_normalization_at (x, gamma, beta, TD_OPTIONS_ (TdNormOpt, TD_NORM_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_group_normalization(x, groups, gamma, ...) td__group_normalization_x (x, groups, gamma, __VA_ARGS__, .end_ = 0)
#define td__group_normalization_x(x, groups, gamma, beta, ...) TD_CALL_ (td_group_normalization_at (x, groups, gamma, beta, TD_OPTIONS_ (TdNormOpt, TD_NORM_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_rms_normalization(x, ...) td__rms_normalization_x (x, __VA_ARGS__, .end_ = 0)
#define td__rms_normalization_x(x, gamma, ...) TD_CALL_ (td_rms_normalization_at (x, gamma, TD_OPTIONS_ (TdNormOpt, TD_NORM_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_causal_mask(...) td_causal_mask_at (__VA_ARGS__, TD_HERE)
#define td_scaled_dot_product_attention(q, k, ...) td__scaled_dot_product_attention_x (q, k, __VA_ARGS__, .end_ = 0)
#define td__scaled_dot_product_attention_x(q, k, v, ...) TD_CALL_ (td_scaled_dot_product_attention_at (q, k, v, TD_OPTIONS_ (TdAttentionOpt, TD_ATTENTION_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_normalize(...) td_normalize_at (__VA_ARGS__, TD_HERE)
#define td_local_response_normalization(...) td__local_response_normalization_x (__VA_ARGS__, .end_ = 0)
#define td__local_response_normalization_x(x, ...) TD_CALL_ (td_local_response_normalization_at (x, TD_OPTIONS_ (TdLocalResponseOpt, TD_LOCAL_RESPONSE_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_n_step_lstm(...) td_n_step_lstm_at (__VA_ARGS__, TD_HERE)
#define td_n_step_bilstm(...) td_n_step_bilstm_at (__VA_ARGS__, TD_HERE)
#define td_n_step_gru(...) td_n_step_gru_at (__VA_ARGS__, TD_HERE)
#define td_n_step_bigru(...) td_n_step_bigru_at (__VA_ARGS__, TD_HERE)
#define td_n_step_rnn(...) td_n_step_rnn_at (__VA_ARGS__, TD_HERE)
#define td_n_step_birnn(...) td_n_step_birnn_at (__VA_ARGS__, TD_HERE)
#define td_forget(...) td_forget_at (__VA_ARGS__, TD_HERE)
/* clang-format on */
#endif

TD_END_DECLS
