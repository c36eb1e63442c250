/* What a device can do: one vtable, families of kernels parametrised by a kind.
 *
 * Kernels see contiguous arrays (TdTensor) and never a TdVar; they are row-major but for conv,
 * pooling, batch_norm and sums (reduce), which know channels-last ones.  Shapes and dtypes have
 * been checked by the operation's infer; a kernel that does not know a dtype returns
 * TD_ERR_DTYPE.  Work is ordered on one compute stream; host-visible results need synchronize.
 * NaN passes through relu, max, min and clip.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device-graphs.h"
#include "device-async.h"
#include "device-programs.h"
#include "device-rnn.h"
#include "device-teams.h"
#include "tapedeck-op.h"

#define TD_DEVICE_ABI 10

struct TdPool;
struct TdBlock;

/** Where a pool's segments come from: the device's memory, in pieces. */
typedef struct TdSegmentProvider
{
  const char *name;
  void *(*segment_new) (void *context, size_t bytes); /**< NULL: no more memory */
  void (*segment_free) (void *context, void *address, size_t bytes);
  /** Free and total memory of the whole device; NULL: nobody knows. */
  bool (*query) (void *context, size_t *free_bytes, size_t *total_bytes);
  size_t alignment; /**< of blocks, a power of two; 0: 64 */
  bool joins;       /**< a segment that begins where another ends is one with it; the pieces of
                       its end can be freed one by one */
  /** Say whether the work that a fence stands for is done; then the fence is gone. */
  bool (*fence_passed) (void *context, void *fence);
  void (*fence_wait) (void *context, void *fence); /**< the same, waiting for it */
  /** Make a fence that passes when all work is done that was issued so far.  *Owner*: the
   * caller, fence_passed or fence_wait.  The slot may be NULL: there are no other streams, and
   * no upload_new.  *Errors*: NULL when the device is lost. */
  void *(*fence_new) (void *context);
} TdSegmentProvider;

/** A piece of memory that is copied to another place of the same device. */
typedef struct TdCopyPart
{
  void *to;
  const void *from;
  size_t bytes;
} TdCopyPart;

/** Host memory by mmap, for devices that compute in it; its context is unused. */
extern const TdSegmentProvider td__provider_host;

/** y = f (x), with up to two parameters. */
typedef enum
{
  TD_UNARY_COPY,
  TD_UNARY_NEG,
  TD_UNARY_RELU,
  TD_UNARY_SIGMOID,
  TD_UNARY_TANH,
  TD_UNARY_EXP,
  TD_UNARY_LOG,
  TD_UNARY_SQRT,
  TD_UNARY_ABS,
  TD_UNARY_SQUARE,
  TD_UNARY_SIN,
  TD_UNARY_COS,
  TD_UNARY_SIGN,
  TD_UNARY_ADD_SCALAR,  /* x + p */
  TD_UNARY_MUL_SCALAR,  /* x * p */
  TD_UNARY_RSUB_SCALAR, /* p - x */
  TD_UNARY_RDIV_SCALAR, /* p / x */
  TD_UNARY_DIV_SCALAR,  /* x / p */
  TD_UNARY_POW_SCALAR,  /* x ^ p */
  TD_UNARY_RPOW_SCALAR, /* p ^ x */
  TD_UNARY_CLIP,        /* p <= x <= q */
  TD_UNARY_INSIDE,      /* 1 where p <= x <= q or NaN, else 0 */
  /* From here on those that unary_grad knows too. */
  TD_UNARY_LEAKY_RELU,   /* x < 0 ? p x : x */
  TD_UNARY_ELU,          /* x > 0 ? x : p (e^x - 1) */
  TD_UNARY_SOFTPLUS,     /* log (1 + e^(p x)) / p */
  TD_UNARY_CLIPPED_RELU, /* 0 <= x <= p */
  TD_UNARY_HARD_SIGMOID, /* 0 <= 0.2 x + 0.5 <= 1 */
  TD_UNARY_SILU,         /* x / (1 + e^-x) */
  TD_UNARY_GELU,         /* x Phi (x), Phi the normal distribution */
  TD_UNARY_GELU_TANH,    /* its approximation by tanh */
  TD_UNARY_ERF,
  TD_UNARY_LOG1P,
  TD_UNARY_EXPM1,
  TD_UNARY_RSQRT,
  TD_UNARY_N
} TdUnaryKind;

/** z = f (x, y), broadcast as NumPy does. */
typedef enum
{
  TD_BINARY_ADD,
  TD_BINARY_SUB,
  TD_BINARY_MUL,
  TD_BINARY_DIV,
  TD_BINARY_POW,
  TD_BINARY_MAXIMUM,
  TD_BINARY_MINIMUM,
  TD_BINARY_RELU_GRAD,    /* x is y of relu, y is gy: x > 0 ? gy : 0 (NaN in x: NaN) */
  TD_BINARY_SIGMOID_GRAD, /* gy * y * (1 - y) */
  TD_BINARY_TANH_GRAD,    /* gy * (1 - y * y) */
  TD_BINARY_EQ,           /* 1 or 0, in z's dtype */
  TD_BINARY_GE,
  TD_BINARY_GT,
  TD_BINARY_LE,
  TD_BINARY_LT,
  TD_BINARY_SIGMOID_CE,      /* x, label y (0, 1; -1: ignored): the loss of a sigmoid */
  TD_BINARY_SIGMOID_CE_GRAD, /* its slope in x */
  TD_BINARY_N
} TdBinaryKind;

typedef enum
{
  TD_REDUCE_SUM,
  TD_REDUCE_MAX,
  TD_REDUCE_MIN,
  TD_REDUCE_PROD,
  TD_REDUCE_MEAN,
  TD_REDUCE_LOGSUMEXP,
  TD_REDUCE_SUM_SQUARES,
  TD_REDUCE_ARGMAX, /* one axis; i32 */
  TD_REDUCE_ARGMIN,
  TD_REDUCE_N
} TdReduceKind;

enum
{
  TD_N_DTYPES = TD_BOOL + 1
};

/** How td_strided walks the larger side: y's shape, and the element offset and stride per axis
 * of x. */
typedef struct TdStrides
{
  int64_t offset;
  int64_t stride[TD_MAX_DIMS];
} TdStrides;

/** Do both layouts put the elements of an array of this shape in the same order? */
static inline bool
td__layout_fits_both (const TdShape *shape)
{
  int64_t rest = 1;

  if (shape->ndim < 3)
    return true;
  for (int i = 2; i < shape->ndim; i++)
    rest *= shape->dim[i];
  return shape->dim[0] == 0 || shape->dim[1] <= 1 || rest <= 1;
}

/** The bits of infinity in a floating type, 0 for others.  All of these, the exponent, are set
 * in infinities and NaN, and in nothing else. */
static inline uint64_t
td__infinity_bits (TdDtype dtype)
{
  /* f32, f64, f16, bf16 */
  static const uint64_t bits[TD_N_DTYPES] = { 0x7F800000, 0x7FFull << 52, 0x7C00, 0x7F80 };

  return bits[dtype];
}

/** The sizes in the order in which an array of that layout lies in memory. */
static inline TdShape
td__layout_sizes (const TdShape *shape, TdLayout layout)
{
  TdShape sizes = *shape;

  if (layout == TD_ROW_MAJOR || shape->ndim < 3)
    return sizes;
  for (int i = 2; i < shape->ndim; i++)
    sizes.dim[i - 1] = shape->dim[i];
  sizes.dim[shape->ndim - 1] = shape->dim[1];
  return sizes;
}

/** TD_STRIDED_READ that brings an array of a shape from the one layout to the other; x and y:
 * the sizes that the kernel is to see. */
static inline TdStrides
td__layout_walk (const TdShape *shape, TdLayout from, TdLayout to, TdShape *x, TdShape *y)
{
  TdStrides walk = { 0, { 0 } };
  int64_t stride[TD_MAX_DIMS], step = 1;
  const int last = shape->ndim - 1;

  *x = td__layout_sizes (shape, from);
  *y = td__layout_sizes (shape, to);
  for (int i = last; i >= 0; i--)
    {
      stride[i] = step;
      step *= x->dim[i];
    }
  for (int i = 0; i <= last; i++)
    walk.stride[i] = from == to || i == 0 || last < 2 ? stride[i]
                     : to == TD_CHANNELS_LAST         ? stride[i == last ? 1 : i + 1]
                                                      : stride[i == 1 ? last : i - 1];
  return walk;
}

typedef enum
{
  TD_STRIDED_READ,  /* y[i] = x[walk i] : transpose, broadcast, slice */
  TD_STRIDED_WRITE, /* y[walk i] = x[i] */
  TD_STRIDED_ADD    /* y[walk i] += x[i] */
} TdStridedKind;

/** What is done to each number of a finished product or convolution, in this order. */
typedef struct TdProductEnd
{
  const TdTensor *bias;  /**< (n), added to every row; NULL: none, as in a convolution */
  const TdTensor *added; /**< like the result of a convolution, what it is added to; or NULL */
  bool relu;
  const TdTensor *above; /**< like the product: relu_grad of it, what was made is gy; or NULL */
} TdProductEnd;

typedef struct TdGemm
{
  bool ta, tb;
  int64_t m, n, k;
  int64_t batch;                        /* 1 for a plain product */
  int64_t stride_a, stride_b, stride_c; /* elements from one batch to the next */
  double alpha, beta;
  TdProductEnd end; /* only where ops.ends_products; beta is 0 then */
} TdGemm;

enum
{
  /* Devices there can be at once, the host and `null` among them: each has a bit or a slot
   * wherever something is kept for every device. */
  TD_MAX_DEVICES = 16
};

enum
{
  TD_MAX_SPATIAL = TD_MAX_DIMS - 2 /* axes that a window can have */
};

/** Windows of a convolution over the ndim axes after batch and channels. */
typedef struct TdConv
{
  int ndim;
  int stride[TD_MAX_SPATIAL], pad[TD_MAX_SPATIAL], dilate[TD_MAX_SPATIAL];
  int groups;
  bool accumulate;
  uint8_t layout;   /**< a TdLayout: of all operands of three axes and more */
  TdProductEnd end; /**< after its own bias; only where ops.ends_convs, ops.ends_conv_grads, and
                       not accumulating */
} TdConv;
typedef enum
{
  TD_CONV_FORWARD,    /* x, W, b? -> y */
  TD_CONV_DATA_GRAD,  /* W, gy, b? -> gx */
  TD_CONV_WEIGHT_GRAD /* x, gy -> gW */
} TdConvKind;

/** What the sum over a window is divided by. */
typedef enum
{
  TD_POOL_BY_WINDOW,  /* all of its places, those in the padding too */
  TD_POOL_BY_COVERED, /* the elements it covers */
  TD_POOL_BY_ONE
} TdPoolDivisor;

typedef struct TdPooling
{
  int ndim;
  int ksize[TD_MAX_SPATIAL], stride[TD_MAX_SPATIAL], pad[TD_MAX_SPATIAL];
  TdPoolDivisor divisor;
  bool adaptive;  /* average only: window o of n is [o size / n, ceil ((o + 1) size / n)) */
  uint8_t layout; /* a TdLayout: of all operands */
} TdPooling;
typedef enum
{
  TD_POOL_MAX,         /* x -> y, index (u8 or i32: 1 + row-major place in window; 0: none) */
  TD_POOL_MAX_GRAD,    /* index, gy -> gx */
  TD_POOL_MAX_GATHER,  /* index, ggx -> ggy: reads ggx at the remembered places */
  TD_POOL_AVERAGE,     /* x -> y */
  TD_POOL_AVERAGE_GRAD /* gy -> gx */
} TdPoolKind;

/** Images in another size.  Pixel o of a line of n_out lies at o (n_in - 1) / (n_out - 1) of
 * the line that it is made from if corners are aligned, else at (o + 0.5) n_in / n_out - 0.5,
 * kept inside; the nearest is that at floor (o n_in / n_out).  *Source*:
 * chainer.functions.resize_images. */
typedef struct TdResize
{
  bool nearest; /* else bilinear */
  bool align_corners;
} TdResize;

/** Where pixel o of a line lies: o scale, or (o + 0.5) scale + shift if it returns true. */
static inline bool
td__resize_line (const TdResize *r, int64_t n_in, int64_t n_out, double *scale, double *shift)
{
  const bool aligned = r->align_corners && !r->nearest;

  *shift = -0.5;
  *scale = !aligned    ? (double)n_in / (double)n_out
           : n_out > 1 ? (double)(n_in - 1) / (double)(n_out - 1)
                       : 0;
  return !aligned && !r->nearest;
}

typedef enum
{
  TD_SOFTMAX,
  TD_LOG_SOFTMAX,
  TD_SOFTMAX_GRAD,    /* y, gy -> gx */
  TD_LOG_SOFTMAX_GRAD /* y, gy -> gx */
} TdSoftmaxKind;

typedef enum
{
  TD_RANDOM_UNIFORM,
  TD_RANDOM_NORMAL,
  TD_RANDOM_MASK /* 1 / (1 - p) with probability 1 - p, else 0 */
} TdRandomKind;

typedef enum
{
  TD_BATCH_NORM_TRAIN, /* eps, decay: x, gamma, beta (running mean, var: written) -> y, mean,
                          1 / std */
  TD_BATCH_NORM_FIXED, /* eps: x, gamma, beta, mean, var -> y */
  TD_BATCH_NORM_GRAD   /* x, gamma, gy, mean, 1 / std -> gx, ggamma, gbeta */
} TdBatchNormKind;

/** What a kernel of rows does besides, so that it needs no kernel of its own.  What operations
 * would have left on the way is rounded as they would have. */
typedef struct TdRowJoin
{
  const TdTensor *added; /**< like x: x + added is what the kernel works on; of a gradient:
                            what it is added to.  NULL: none */
  TdTensor *sum;         /**< where x + added is left too, may lie where one of them does; NULL:
                            nowhere */
} TdRowJoin;

/** x as (n, groups, channels, rest); a row, the last two axes, is normalised by its own
 * moments, a channel scaled by its own gamma. */
typedef struct TdRowNorm
{
  int64_t n, groups, channels, rest;
  double eps;
  bool centred; /* take out the mean; else the root mean square is all, and there is no beta */
  TdRowJoin join; /* only where ops.joins_norms: added, sum */
} TdRowNorm;
typedef enum
{
  TD_ROW_NORM,     /* x, gamma, beta -> y, mean, 1 / std; or x, gamma -> y, 1 / rms */
  TD_ROW_NORM_GRAD /* x, gamma, gy, mean, 1 / std -> gx, ggamma, gbeta; or without mean, gbeta
                    */
} TdRowNormKind;

/** softmax (scale q k^T) v of each batch; q (batch, n_q, d), k (batch, n_k, d), v (batch, n_k,
 * d_v).  Query i sees key j where j <= i + n_k - n_q, if causal, and the mask (1 or batch /
 * mask_every, n_q, n_k) is not 0. */
typedef struct TdAttention
{
  int64_t batch, n_q, n_k, d, d_v;
  int64_t mask_every; /* batches that share one mask */
  double scale;
  bool causal;
} TdAttention;
typedef enum
{
  TD_ATTENTION,     /* q, k, v (mask) -> y, log of the sum of exp of each query's scores */
  TD_ATTENTION_GRAD /* q, k, v, gy, y, log sum (mask) -> gq, gk, gv */
} TdAttentionKind;

typedef enum
{
  /* Parameters: ignore, normalize, each row for itself (then the loss and its gradient have t's
     shape, and a row's share is its weight). */
  TD_CROSS_ENTROPY,      /* x, t (class weight) -> loss, softmax (x) */
  TD_CROSS_ENTROPY_GRAD, /* y, t, gloss (class weight) -> gx */
  TD_CROSS_ENTROPY_ROWS, /* t (class weight) -> each row's share */
  TD_ACCURACY,           /* ignore, whether it is: y, t -> share of rows that are right */
  TD_LABEL_COUNTS /* ignore: y, t -> f64 per label: rows right, rows chosen, rows labelled */
} TdCrossEntropyKind;

typedef enum
{
  TD_LSTM,     /* c, x -> c, h */
  TD_LSTM_GRAD /* c, x, new c, gc, gh -> gc, gx */
} TdLstmKind;

/** In-place updates of parameters by their rules, of gradients by optimizer hooks: arrays p, g,
 * then the states, all of one size and dtype.  *Source*: chainer.optimizers. */
typedef enum
{
  TD_UPDATE_SGD,                    /* p -= lr g */
  TD_UPDATE_MOMENTUM_SGD,           /* v: v = momentum v - lr g; p += v */
  TD_UPDATE_CORRECTED_MOMENTUM_SGD, /* v: v = momentum v - g; p += lr v */
  TD_UPDATE_NESTEROV_AG, /* v: v = momentum v - lr g; p += momentum^2 v - (1 + momentum) lr g */
  TD_UPDATE_ADA_GRAD,    /* h: h += g g; p -= lr g / (sqrt (h) + eps) */
  TD_UPDATE_ADA_DELTA,   /* msg, msdx: see td_adadelta_new */
  TD_UPDATE_RMSPROP, /* ms: ms = alpha ms + (1 - alpha) g g; p -= lr g / (sqrt (ms) + eps) */
  TD_UPDATE_RMSPROP_INSIDE, /* the same with sqrt (ms + eps) */
  TD_UPDATE_RMSPROP_GRAVES, /* n, g, delta: see td_rmsprop_graves_new */
  TD_UPDATE_SMORMS3,        /* mem, g, g2: see td_smorms3_new */
  TD_UPDATE_ADAM,           /* m, v; see td_adam_new */
  TD_UPDATE_AMSGRAD,        /* m, v, vhat: the highest v so far instead of v */
  TD_UPDATE_ADABOUND,       /* m, v: steps between lower and upper */
  TD_UPDATE_AMSBOUND,       /* m, v, vhat: both */
  TD_UPDATE_WEIGHT_DECAY,   /* arrays g, p: g += rate p */
  TD_UPDATE_LASSO,          /* arrays g, p: g += rate sign (p) */
  TD_UPDATE_UNSCALE,        /* g: g /= the scale that it was computed with, else rate */
  TD_UPDATE_CLIP,           /* g: g *= *by */
  TD_UPDATE_N
} TdUpdateKind;
/** Numbers of a loss scale that the device finds by itself; flags: one for each gradient. */
typedef enum
{
  TD_SCALE_NEXT,         /* of the losses to come */
  TD_SCALE_OF_GRADIENTS, /* that were looked at last */
  TD_SCALE_SKIPS,        /* 1: one of those is not finite, nothing is to be updated */
  TD_SCALE_SKIPPED,      /* how often that was so */
  TD_SCALE_SEEN,         /* 1: it was so once, the scale grows slowly */
  TD_SCALE_FLAGS = 8
} TdScaleNumber;
enum
{
  TD_UPDATE_EARLIER = 7 /* updates of which the host may not know whether they were done */
};
/** What Adam's step depends on beside the hyperparameters. */
typedef struct TdUpdateStep
{
  double alpha_t, lower, upper;
} TdUpdateStep;
typedef struct TdUpdate
{
  double lr, momentum, alpha, rho, beta1, beta2, eps, eta, weight_decay, final_lr, gamma;
  double alpha_t, lower, upper; /* of this step: Adam's own */
  double rate;                  /* hooks */
  const double *by;             /* of TD_UPDATE_CLIP, in the device's memory */
  const double *decided; /* TdScaleNumber, in the device's memory; NULL: it is done anyway */
  double n_known;        /* TD_SCALE_SKIPPED, as far as the host knows */
  TdUpdateStep earlier[TD_UPDATE_EARLIER]; /* of the steps before: one for each not known */
  bool amsgrad, adabound, eps_inside_sqrt;
} TdUpdate;

/** Copies of what is computed with later, while the device computes with what is there. */
typedef struct TdDeviceAhead
{
  /** Memory of the host that these uploads read where it is; NULL: there is none. */
  void *(*host_new) (TdDevice *d, size_t bytes);
  void (*host_free) (TdDevice *d, void *host);
  /** Begin a copy to memory that no work uses, behind nothing that was issued, and before
   * nothing that is.  stays: host is of host_new, and is left as it is till settle. */
  TdStatus (*upload) (TdDevice *d, void *dst, const void *host, size_t bytes, bool stays);
  /** Let what is issued from here on follow all of these uploads. */
  TdStatus (*follow) (TdDevice *d);
  /** Wait till none of these uploads reads memory of the host any more. */
  TdStatus (*settle) (TdDevice *d);
} TdDeviceAhead;

/** What a loss scale that the device finds by itself needs; the host does not wait for it. */
typedef struct TdDeviceScaling
{
  /** Set the flag of each gradient that is not finite. */
  TdStatus (*look) (TdDevice *d, const TdTensor *gradients, int n, TdTensor *numbers);
  /** Decide by n flags, which are cleared, and make the next scale.  report: memory of
   * ahead->host_new for two numbers, the first flag that was set, or -1, and, after that, run.
   */
  TdStatus (*decide) (TdDevice *d, int n, double growth, TdTensor *numbers, int64_t *report,
                      int64_t run);
} TdDeviceScaling;

/** The kernels of a device.  "[...]" after a slot lists its operands. */
typedef struct TdDeviceOps
{
  uint32_t abi;
  uint32_t ends_products; /**< gemm knows TdGemm.end: mask of TdDtype */
  /* conv knows TdConv.end, the same: */
  uint32_t ends_convs;      /**< of TD_CONV_FORWARD, what is added and relu */
  uint32_t ends_conv_grads; /**< of TD_CONV_DATA_GRAD too, and relu_grad of both */
  uint32_t joins_norms;     /**< row_norm knows TdRowNorm.join, the same */
  /* memory */
  const TdSegmentProvider *provider;
  TdStatus (*upload) (TdDevice *d, void *dst, const void *host, size_t bytes);
  /** The same to memory that no work uses: it need not wait for what was issued, only what is
   * issued from here on waits for it.  NULL: upload. */
  TdStatus (*upload_new) (TdDevice *d, void *dst, const void *host, size_t bytes);
  const TdDeviceAhead *ahead; /**< NULL: batches are sent when they are asked for */
  TdStatus (*download) (TdDevice *d, void *host, const void *src, size_t bytes);
  TdStatus (*copy) (TdDevice *d, void *dst, const void *src, size_t bytes);
  /** The same of many that do not overlap.  NULL: one after the other (core/copy-parts.h). */
  TdStatus (*copy_parts) (TdDevice *d, const TdCopyPart *parts, int n);
  TdStatus (*zero) (TdDevice *d, void *dst, size_t bytes);
  void (*synchronize) (TdDevice *d);
  /* element by element */
  TdStatus (*fill) (TdDevice *d, TdTensor *y, double value);
  TdStatus (*arange) (TdDevice *d, TdTensor *y, double start, double step);
  TdStatus (*unary) (TdDevice *d, TdUnaryKind kind, double p, double q, const TdTensor *x,
                     TdTensor *y);
  TdStatus (*unary_grad) (TdDevice *d, TdUnaryKind kind, double p, const TdTensor *x,
                          const TdTensor *gy, TdTensor *gx,
                          bool accumulate); /* gx = gy f' (x), all of one shape */
  TdStatus (*binary) (TdDevice *d, TdBinaryKind kind, const TdTensor *x, const TdTensor *y,
                      TdTensor *z, bool accumulate);
  TdStatus (*select) (TdDevice *d, const TdTensor *c, const TdTensor *x, const TdTensor *y,
                      TdTensor *z);
  TdStatus (*cast) (TdDevice *d, const TdTensor *x, TdTensor *y);
  TdStatus (*random) (TdDevice *d, TdRandomKind kind, TdRngKey key, double p, TdTensor *y);
  /** y = x times what random gives as TD_RANDOM_MASK, by one kernel.  NULL: it is composed. */
  TdStatus (*dropout) (TdDevice *d, TdRngKey key, double p, const TdTensor *x, TdTensor *y);
  /* shape */
  TdStatus (*strided) (TdDevice *d, TdStridedKind kind, const TdTensor *x,
                       const TdStrides *walk, TdTensor *y);
  TdStatus (*gather_rows) (TdDevice *d, const TdTensor *w, const TdTensor *index, TdTensor *y);
  TdStatus (*scatter_rows_add) (TdDevice *d, const TdTensor *index, const TdTensor *gy,
                                TdTensor *gw);
  TdStatus (*check_index) (TdDevice *d, const TdTensor *index, int64_t limit, int64_t ignore,
                           int64_t *bad_place,
                           int64_t *bad_value); /* *bad_place -1: all in range */
  /* reductions; axes: bit mask of x's axes */
  TdStatus (*reduce) (TdDevice *d, TdReduceKind kind, uint32_t axes, const TdTensor *x,
                      TdTensor *y, bool accumulate);
  TdStatus (*cumulative_sum) (TdDevice *d, int axis, bool reverse, const TdTensor *x,
                              TdTensor *y); /* reverse: from the end */
  TdStatus (*softmax) (TdDevice *d, TdSoftmaxKind kind, int axis, const TdTensor *x,
                       const TdTensor *gy, TdTensor *y);
  /* products */
  TdStatus (*gemm) (TdDevice *d, const TdGemm *g, const TdTensor *a, const TdTensor *b,
                    TdTensor *c);
  TdStatus (*conv) (TdDevice *d, TdConvKind kind, const TdConv *attrs, const TdTensor *in,
                    int n_in, TdTensor *out);
  TdStatus (*pooling) (TdDevice *d, TdPoolKind kind, const TdPooling *attrs, const TdTensor *in,
                       int n_in, TdTensor *out, TdTensor *out2);
  /** x (n, c, h, w) -> y (n, c, oh, ow); grad: gy (n, c, oh, ow) -> gx (n, c, h, w).  Only
   * floats and doubles are asked for.  NULL: it is composed of gather_rows. */
  TdStatus (*resize) (TdDevice *d, const TdResize *r, bool grad, const TdTensor *x,
                      TdTensor *y);
  /* fused layers; operand lists are documented at the operations that use them */
  TdStatus (*batch_norm) (TdDevice *d, int kind, const double *params, const TdTensor *in,
                          int n_in, TdTensor *out, int n_out);
  TdStatus (*row_norm) (TdDevice *d, TdRowNormKind kind, const TdRowNorm *norm,
                        const TdTensor *in, int n_in, TdTensor *out, int n_out);
  TdStatus (*attention) (TdDevice *d, TdAttentionKind kind, const TdAttention *attention,
                         const TdTensor *in, int n_in, TdTensor *out, int n_out);
  TdStatus (*cross_entropy) (TdDevice *d, int kind, const int64_t *params, const TdTensor *in,
                             int n_in, TdTensor *out, int n_out);
  TdStatus (*lstm) (TdDevice *d, int kind, const TdTensor *in, int n_in, TdTensor *out,
                    int n_out);
  const TdDeviceRnn *rnn; /**< NULL: recurrent layers are composed */
  TdStatus (*update) (TdDevice *d, TdUpdateKind kind, const TdUpdate *u,
                      TdTensor *const *arrays, int n);
  /** y (an f64 scalar) = the sum of the squares of n arrays: of the sums that reduce gives for
   * each, added up in their order.  NULL: it is composed of those. */
  TdStatus (*sum_squares) (TdDevice *d, const TdTensor *x, int n, TdTensor *y);
  /** No more updates follow soon: those that were collected are to begin.  NULL: none are. */
  void (*updates_end) (TdDevice *d);
  const TdDeviceScaling *scaling; /**< NULL: the host looks at gradients, and waits */
  TdStatus (*stats) (TdDevice *d, const TdTensor *x, uint64_t max_samples, uint64_t seed,
                     TdStats *out);
  /** From here on, until it is called with false, short kernels follow each other: threads may
   * stay awake between them.  NULL: of no matter. */
  void (*stay_awake) (TdDevice *d, bool awake);
  const TdDeviceGraphs *graphs; /**< NULL: work cannot be captured */
  /* programs; all NULL where a device has none */
  /** Make one ready.  Returns NULL where it is none for this device: no error.  *Owner*: the
   * caller, program_free. */
  void *(*program_new) (TdDevice *d, const TdProgram *program);
  void (*program_free) (TdDevice *d, void *program);
  /** adds, keys: as td__tiles_run. */
  TdStatus (*program_run) (TdDevice *d, void *program, const TdTensor *operands,
                           const bool *adds, const TdRngKey *keys);
  /* What is asked without waiting; all NULL where nothing is to be waited for.  x may be
   * overwritten or given back at once. */
  TdAsyncRefusal (*stats_async) (TdDevice *d, const TdTensor *x, uint64_t max_samples,
                                 uint64_t seed, const TdAsyncOf *of);
  /** Mark where times begin; before an operation (NULL) and after it (of).  False: not now. */
  bool (*time_zero) (TdDevice *d, uint64_t zero);
  bool (*time_op) (TdDevice *d, const TdAsyncOf *of);
  /** The same before a copy of the host's, which time_op ends; NULL: copies are not timed. */
  bool (*time_copy) (TdDevice *d);
  /** Begin a range of the host's time for tools that look, or end the innermost (NULL); name
   * stays.  category: a phase, or 4 for a link.  NULL: no tool looks. */
  void (*range) (TdDevice *d, const char *name, int category, uint64_t payload);
  /** Take up to room answers; fewer: there are no more. */
  int (*poll_async) (TdDevice *d, TdAsyncHow how, TdAsyncResult *answers, int room);
  /* Indices that are checked and not waited for; both NULL where check_index waits for nothing.
   */
  /** Check, and keep the first bad one for bad_index.  Kernels take a bad index for none: rows
   * of zeros, labels to ignore.  place: below TD_INDEX_PLACES, the caller's own; captured in a
   * graph, every launch of that is a run.  *Errors*: TD_ERR_STATE, without fail: not here, use
   * check_index. */
  TdStatus (*check_index_async) (TdDevice *d, const TdTensor *index, int64_t limit,
                                 int64_t ignore, uint32_t place);
  /** Take one that is known by now.  False: there is none. */
  bool (*bad_index) (TdDevice *d, TdBadIndex *bad);
  const TdDeviceTeams *teams; /**< NULL: it exchanges nothing with devices of other processes */
  /** Memory of the device that it took for recording, none of the pool's; NULL: none. */
  size_t (*own_bytes) (TdDevice *d);
  /** Memory of the host that it has pinned for copies and answers; NULL: none. */
  size_t (*pinned_bytes) (TdDevice *d);
} TdDeviceOps;

struct TdDevice
{
  char name[16];
  const TdDeviceOps *ops;
  struct TdPool *pool;
  int index;
  bool computes;         /**< false: shapes and allocation only ("null") */
  const char *algorithm; /**< which implementation computed last, where a kernel has several; a
                            string that stays */
  void *priv;
  const char *model;  /**< of the hardware, "NVIDIA H200"; NULL: of no matter */
  uint8_t number;     /**< the engine's, in the order of opening; 0: the host */
  bool channels_last; /**< convolutions are to be so (TdConfig.channels_last) */
  bool stats_wanted;  /**< what is written now will be asked for: kernels may count meanwhile */
  bool stats_apart;   /**< of tests: they may not */
};

/* --- modules: devices that come in a shared object, opened when one of them is asked for ---
 */

/** What the engine lends a module, which links nothing of ours. */
typedef struct TdModuleHost
{
  uint32_t abi; /**< TD_DEVICE_ABI */
  uint32_t host_bytes, ops_bytes, device_bytes, provider_bytes;
  /** Record an error.  Returns status. */
  TdStatus (*fail) (TdStatus status, const char *what, const char *message);
  const char *(*status_name) (TdStatus status);
  /** Say something in a line, to who sees the program and on its tape. */
  void (*notice) (const char *text);
  const TdConfig *(*config) (void);
  /** Take memory of d from its pool, for a module's own use.  *Errors*: NULL after fail. */
  void *(*memory_take) (TdDevice *d, size_t bytes, TdMemCategory category,
                        struct TdBlock **block);
  void (*memory_release) (struct TdBlock *block);
  TdDevice *cpu;
} TdModuleHost;

/** What a module answers.  All sizes are those that it was compiled with. */
typedef struct TdModule
{
  uint32_t abi;
  uint32_t module_bytes, host_bytes, ops_bytes, device_bytes, provider_bytes;
  /** Look for devices.  Returns NULL, or in one line why there are none. */
  const char *(*open) (const TdModuleHost *host);
  int (*n_devices) (void);
  /** Say what device i is and what it is reached through, in one line. */
  const char *(*describe) (int i);
  /** Make device i ready.  *Owner*: the module, until device_close.  *Errors*: NULL after
   * fail. */
  TdDevice *(*device_open) (int i);
  /** Its work and its libraries end; its memory has still to be given back. */
  void (*device_end) (TdDevice *d);
  void (*device_close) (TdDevice *d);
} TdModule;

/** The one symbol of a module: TdModuleEntry. */
#define TD_MODULE_ENTRY "td_device_module"
typedef const TdModule *(*TdModuleEntry) (void);
