/* Links of layers: scale and shift, activations with parameters, convolutions over any axes,
 * normalisations, and small nets that others are made of.  Included by tapedeck.h.
 *
 * Linear, Convolution2D, BatchNormalization, EmbedID and LSTM are in tapedeck-links.h, the
 * other recurrent ones in tapedeck-recurrent.h.  Names, arguments and parameters' names are
 * Chainer's.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

TD_BEGIN_DECLS

/** A shape that an option leaves open (Chainer's None). */
#define TD_NO_SHAPE                                                                            \
  {                                                                                            \
    -1,                                                                                        \
    {                                                                                          \
      0                                                                                        \
    }                                                                                          \
  }

/* --- element by element ------------------------------------------------------------------- */
typedef struct
{
  int axis;      /**< of x where b's first axis lies */
  TdShape shape; /**< of b; TD_NO_SHAPE: b is the second input */
  int end_;
} TdBiasLinkOpt;
#define TD_BIAS_LINK_DEFAULTS .axis = 1, .shape = TD_NO_SHAPE
/** x + b.  Parameter b (shape), 0.  *Source*: chainer.links.Bias. */
TD_API TdLink *td_bias_new_ (TdLink *parent, const char *name, const TdBiasLinkOpt *options);
TD_API TdLink *td_bias_new_at (TdLink *parent, const char *name, TdBiasLinkOpt options,
                               const TdSite *site);

typedef struct
{
  int axis;
  TdShape W_shape;    /**< of W; TD_NO_SHAPE: W is the second input */
  bool bias_term;     /**< a child "bias" follows */
  TdShape bias_shape; /**< of the bias where W is an input */
  int end_;
} TdScaleLinkOpt;
#define TD_SCALE_LINK_DEFAULTS                                                                 \
  .axis = 1, .W_shape = TD_NO_SHAPE, .bias_term = false, .bias_shape = TD_NO_SHAPE
/** x W, element by element.  Parameter W (W_shape), 1.  *Source*: chainer.links.Scale. */
TD_API TdLink *td_scale_new_ (TdLink *parent, const char *name, const TdScaleLinkOpt *options);
TD_API TdLink *td_scale_new_at (TdLink *parent, const char *name, TdScaleLinkOpt options,
                                const TdSite *site);

/** A link of no input whose output is its parameter W, which starts as a copy of array.
 * *Source*: chainer.links.Parameter. */
TD_API TdLink *td_parameter_new (TdLink *parent, const char *name, TdVar *array);

typedef struct
{
  TdShape shape; /**< of W: sizes of x's axes 1, 2 ...; scalar unless said */
  TdInit init;
  int end_;
} TdPreluLinkOpt;
#define TD_PRELU_LINK_DEFAULTS .shape = { 0, { 0 } }, .init = { TD_INIT_DEFAULT, 0 }
/** x, or W x where x is negative.  Parameter W (shape), 0.25.  *Source*: chainer.links.PReLU.
 */
TD_API TdLink *td_prelu_new_ (TdLink *parent, const char *name, const TdPreluLinkOpt *options);
TD_API TdLink *td_prelu_new_at (TdLink *parent, const char *name, TdPreluLinkOpt options,
                                const TdSite *site);

typedef struct
{
  TdInit beta_init;
  int end_;
} TdSwishLinkOpt;
#define TD_SWISH_LINK_DEFAULTS .beta_init = { TD_INIT_DEFAULT, 0 }
/** x sigmoid (beta x); TD_NO_SHAPE takes a row of the first input.  Parameter beta, 1.
 * *Source*: chainer.links.Swish. */
TD_API TdLink *td_swish_new_ (TdLink *parent, const char *name, TdShape beta_shape,
                              const TdSwishLinkOpt *options);
TD_API TdLink *td_swish_new_at (TdLink *parent, const char *name, TdShape beta_shape,
                                TdSwishLinkOpt options, const TdSite *site);

/* --- from rows to rows -------------------------------------------------------------------- */
typedef struct
{
  bool nobias; /**< W alone */
  TdInit initialW, initialV1, initialV2, initial_bias;
  int end_;
} TdBilinearOpt;
#define TD_BILINEAR_DEFAULTS .nobias = false
/** td_bilinear of two inputs.  Parameters W (left_size, right_size, out_size), V1 (left_size,
 * out_size), V2 (right_size, out_size), b (out_size).  *Source*: chainer.links.Bilinear. */
TD_API TdLink *td_bilinear_new_ (TdLink *parent, const char *name, int64_t left_size,
                                 int64_t right_size, int64_t out_size,
                                 const TdBilinearOpt *options);
TD_API TdLink *td_bilinear_new_at (TdLink *parent, const char *name, int64_t left_size,
                                   int64_t right_size, int64_t out_size, TdBilinearOpt options,
                                   const TdSite *site);

typedef struct
{
  bool nobias;
  TdInit initialW, initial_bias;
  int end_;
} TdMaxoutLinkOpt;
#define TD_MAXOUT_LINK_DEFAULTS .nobias = false
/** The largest of pool_size linear functions for each output.  Child linear (in_size, out_size
 * pool_size).  *Source*: chainer.links.Maxout. */
TD_API TdLink *td_maxout_new_ (TdLink *parent, const char *name, int64_t in_size,
                               int64_t out_size, int64_t pool_size,
                               const TdMaxoutLinkOpt *options);
TD_API TdLink *td_maxout_new_at (TdLink *parent, const char *name, int64_t in_size,
                                 int64_t out_size, int64_t pool_size, TdMaxoutLinkOpt options,
                                 const TdSite *site);

typedef struct
{
  bool nobias;
  TdVar *(*activate) (TdVar *x);
  TdInit init_Wh, init_Wt, init_bh, init_bt;
  int end_;
} TdHighwayOpt;
#define TD_HIGHWAY_DEFAULTS .nobias = false, .activate = td_relu
/** t activate (plain (x)) + (1 - t) x with t = sigmoid (transform (x)), whose bias starts at
 * -1. *Source*: chainer.links.Highway. */
TD_API TdLink *td_highway_new_ (TdLink *parent, const char *name, int64_t in_out_size,
                                const TdHighwayOpt *options);
TD_API TdLink *td_highway_new_at (TdLink *parent, const char *name, int64_t in_out_size,
                                  TdHighwayOpt options, const TdSite *site);

/* --- normalisation ------------------------------------------------------------------------ */
typedef struct
{
  double eps;
  TdInit initial_gamma, initial_beta;
  int end_;
} TdNormLinkOpt;
#define TD_LAYER_NORM_LINK_DEFAULTS .eps = 1e-6
#define TD_GROUP_NORM_LINK_DEFAULTS .eps = 1e-5
/** Normalise each row; size TD_INFER takes it from the first input.  Parameters gamma, beta
 * (size).  *Source*: chainer.links.LayerNormalization. */
TD_API TdLink *td_layer_normalization_new_ (TdLink *parent, const char *name, int64_t size,
                                            const TdNormLinkOpt *options);
TD_API TdLink *td_layer_normalization_new_at (TdLink *parent, const char *name, int64_t size,
                                              TdNormLinkOpt options, const TdSite *site);
/** Normalise groups of channels; size TD_INFER takes the channels of the first input.
 * Parameters gamma, beta (size).  *Source*: chainer.links.GroupNormalization. */
TD_API TdLink *td_group_normalization_new_ (TdLink *parent, const char *name, int groups,
                                            int64_t size, const TdNormLinkOpt *options);
TD_API TdLink *td_group_normalization_new_at (TdLink *parent, const char *name, int groups,
                                              int64_t size, TdNormLinkOpt options,
                                              const TdSite *site);

/* --- losses with parameters --------------------------------------------------------------- */
typedef struct
{
  double power; /**< of the counts */
  bool each;    /**< a loss for each row (Chainer's reduce 'no') */
  TdInit initialW;
  int end_;
} TdNegativeSamplingLinkOpt;
#define TD_NEGATIVE_SAMPLING_LINK_DEFAULTS .power = 0.75, .each = false
/** Negative sampling of word2vec: in x (n, in_size), t (n); out the loss and, if asked, the
 * samples (n, sample_size).  Words are drawn by counts to a power.  Parameter W (n_words,
 * in_size), 0.  *Errors*: TD_ERR_ARG for negative counts or counts that are all 0.  *Source*:
 * chainer.links.NegativeSampling. */
TD_API TdLink *td_negative_sampling_new_ (TdLink *parent, const char *name, int64_t in_size,
                                          const int64_t *counts, int64_t n_words,
                                          int sample_size,
                                          const TdNegativeSamplingLinkOpt *options);
TD_API TdLink *td_negative_sampling_new_at (TdLink *parent, const char *name, int64_t in_size,
                                            const int64_t *counts, int64_t n_words,
                                            int sample_size, TdNegativeSamplingLinkOpt options,
                                            const TdSite *site);

/* --- convolutions ------------------------------------------------------------------------- */
/** Lists hold one number per axis of the window. */
typedef struct
{
  int stride[TD_MAX_DIMS - 2], pad[TD_MAX_DIMS - 2], dilate[TD_MAX_DIMS - 2];
  int kernel[TD_MAX_DIMS - 2];  /**< sizes of a kernel that is no cube; 0: ksize */
  int outsize[TD_MAX_DIMS - 2]; /**< of deconvolutions; 0: as small as it can be */
  int groups;
  bool nobias;
  bool cover_all; /**< of convolutions over n axes */
  TdInit initialW, initial_bias;
  int end_;
} TdConvLinkOpt;
#define TD_CONV_LINK_DEFAULTS                                                                  \
  .stride = { 1, 1, 1, 1, 1, 1 }, .dilate = { 1, 1, 1, 1, 1, 1 }, .groups = 1
/** Convolution over ndim axes.  Parameters W (out, in / groups, k ...), LeCunNormal, and b
 * (out), 0; in_channels TD_INFER waits for the first input (so for all below).  *Source*:
 * chainer.links.ConvolutionND. */
TD_API TdLink *td_convolution_nd_new_ (TdLink *parent, const char *name, int ndim,
                                       int64_t in_channels, int64_t out_channels, int ksize,
                                       const TdConvLinkOpt *options);
TD_API TdLink *td_convolution_nd_new_at (TdLink *parent, const char *name, int ndim,
                                         int64_t in_channels, int64_t out_channels, int ksize,
                                         TdConvLinkOpt options, const TdSite *site);
TD_API TdLink *td_convolution_1d_new_ (TdLink *parent, const char *name, int64_t in_channels,
                                       int64_t out_channels, int ksize,
                                       const TdConvLinkOpt *options);
TD_API TdLink *td_convolution_1d_new_at (TdLink *parent, const char *name, int64_t in_channels,
                                         int64_t out_channels, int ksize, TdConvLinkOpt options,
                                         const TdSite *site);
TD_API TdLink *td_convolution_3d_new_ (TdLink *parent, const char *name, int64_t in_channels,
                                       int64_t out_channels, int ksize,
                                       const TdConvLinkOpt *options);
TD_API TdLink *td_convolution_3d_new_at (TdLink *parent, const char *name, int64_t in_channels,
                                         int64_t out_channels, int ksize, TdConvLinkOpt options,
                                         const TdSite *site);
/** Convolution2D under the name for windows with gaps.  *Source*:
 * chainer.links.DilatedConvolution2D. */
TD_API TdLink *td_dilated_convolution_2d_new_ (TdLink *parent, const char *name,
                                               int64_t in_channels, int64_t out_channels,
                                               int ksize, const TdConvLinkOpt *options);
TD_API TdLink *td_dilated_convolution_2d_new_at (TdLink *parent, const char *name,
                                                 int64_t in_channels, int64_t out_channels,
                                                 int ksize, TdConvLinkOpt options,
                                                 const TdSite *site);
/** Filters of its own for each channel.  Parameters W (multiplier, in, kh, kw), b (multiplier
 * in).  *Source*: chainer.links.DepthwiseConvolution2D. */
TD_API TdLink *td_depthwise_convolution_2d_new_ (TdLink *parent, const char *name,
                                                 int64_t in_channels,
                                                 int64_t channel_multiplier, int ksize,
                                                 const TdConvLinkOpt *options);
TD_API TdLink *td_depthwise_convolution_2d_new_at (TdLink *parent, const char *name,
                                                   int64_t in_channels,
                                                   int64_t channel_multiplier, int ksize,
                                                   TdConvLinkOpt options, const TdSite *site);
/** Transposed convolution.  Parameters W (in, out / groups, k ...), b (out).  *Source*:
 * chainer.links.Deconvolution2D, DeconvolutionND. */
TD_API TdLink *td_deconvolution_2d_new_ (TdLink *parent, const char *name, int64_t in_channels,
                                         int64_t out_channels, int ksize,
                                         const TdConvLinkOpt *options);
TD_API TdLink *td_deconvolution_2d_new_at (TdLink *parent, const char *name,
                                           int64_t in_channels, int64_t out_channels, int ksize,
                                           TdConvLinkOpt options, const TdSite *site);
TD_API TdLink *td_deconvolution_nd_new_ (TdLink *parent, const char *name, int ndim,
                                         int64_t in_channels, int64_t out_channels, int ksize,
                                         const TdConvLinkOpt *options);
TD_API TdLink *td_deconvolution_nd_new_at (TdLink *parent, const char *name, int ndim,
                                           int64_t in_channels, int64_t out_channels, int ksize,
                                           TdConvLinkOpt options, const TdSite *site);

#if !defined(TD_NO_SITES)
/* clang-format off */
#define td_bias_new(parent, ...) td__bias_new_x (parent, __VA_ARGS__, .end_ = 0)
#define td__bias_new_x(parent, name, ...) TD_CALL_ (td_bias_new_at (parent, name, TD_OPTIONS_ (TdBiasLinkOpt, TD_BIAS_LINK_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_scale_new(parent, ...) td__scale_new_x (parent, __VA_ARGS__, .end_ = 0)
#define td__scale_new_x(parent, name, ...) TD_CALL_ (td_scale_new_at (parent, name, TD_OPTIONS_ (TdScaleLinkOpt, TD_SCALE_LINK_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_prelu_new(parent, ...) td__prelu_new_x (parent, __VA_ARGS__, .end_ = 0)
#define td__prelu_new_x(parent, name, ...) TD_CALL_ (td_prelu_new_at (parent, name, TD_OPTIONS_ (TdPreluLinkOpt, TD_PRELU_LINK_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_swish_new(parent, name, ...) td__swish_new_x (parent, name, __VA_ARGS__, .end_ = 0)
#define td__swish_new_x(parent, name, beta_shape, ...) TD_CALL_ (td_swish_new_at (parent, name, beta_shape, TD_OPTIONS_ (TdSwishLinkOpt, TD_SWISH_LINK_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_bilinear_new(parent, name, left_size, right_size, ...) td__bilinear_new_x (parent, name, left_size, right_size, __VA_ARGS__, .end_ = 0)
#define td__bilinear_new_x(parent, name, left_size, right_size, out_size, ...) TD_CALL_ (td_bilinear_new_at (parent, name, left_size, right_size, out_size, TD_OPTIONS_ (TdBilinearOpt, TD_BILINEAR_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_maxout_new(parent, name, in_size, out_size, ...) td__maxout_new_x (parent, name, in_size, out_size, __VA_ARGS__, .end_ = 0)
#define td__maxout_new_x(parent, name, in_size, out_size, pool_size, ...) TD_CALL_ (td_maxout_new_at (parent, name, in_size, out_size, pool_size, TD_OPTIONS_ (TdMaxoutLinkOpt, TD_MAXOUT_LINK_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_highway_new(parent, name, ...) td__highway_new_x (parent, name, __VA_ARGS__, .end_ = 0)
#define td__highway_new_x(parent, name, in_out_size, ...) TD_CALL_ (td_highway_new_at (parent, name, in_out_size, TD_OPTIONS_ (TdHighwayOpt, TD_HIGHWAY_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_layer_normalization_new(parent, name, ...) td__layer_normalization_new_x (parent, name, __VA_ARGS__, .end_ = 0)
#define td__layer_normalization_new_x(parent, name, size, ...) TD_CALL_ (td_layer_normalization_new_at (parent, name, size, TD_OPTIONS_ (TdNormLinkOpt, TD_LAYER_NORM_LINK_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_group_normalization_new(parent, name, groups, ...) td__group_normalization_new_x (parent, name, groups, __VA_ARGS__, .end_ = 0)
#define td__group_normalization_new_x(parent, name, groups, size, ...) TD_CALL_ (td_group_normalization_new_at (parent, name, groups, size, TD_OPTIONS_ (TdNormLinkOpt, TD_GROUP_NORM_LINK_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_negative_sampling_new(parent, name, in, counts, n_words, ...) td__negative_sampling_new_x (parent, name, in, counts, n_words, __VA_ARGS__, .end_ = 0)
#define td__negative_sampling_new_x(parent, name, in, counts, n_words, samples, ...) TD_CALL_ (td_negative_sampling_new_at (parent, name, in, counts, n_words, samples, TD_OPTIONS_ (TdNegativeSamplingLinkOpt, TD_NEGATIVE_SAMPLING_LINK_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_convolution_nd_new(parent, name, ndim, in, out, ...) td__conv_nd_new_x (td_convolution_nd_new_at, parent, name, ndim, in, out, __VA_ARGS__, .end_ = 0)
#define td_deconvolution_nd_new(parent, name, ndim, in, out, ...) td__conv_nd_new_x (td_deconvolution_nd_new_at, parent, name, ndim, in, out, __VA_ARGS__, .end_ = 0)
#define td__conv_nd_new_x(make, parent, name, ndim, in, out, ksize, ...) TD_CALL_ (make (parent, name, ndim, in, out, ksize, TD_OPTIONS_ (TdConvLinkOpt, TD_CONV_LINK_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_convolution_1d_new(parent, name, in, out, ...) td__conv_new_x (td_convolution_1d_new_at, parent, name, in, out, __VA_ARGS__, .end_ = 0)
#define td_convolution_3d_new(parent, name, in, out, ...) td__conv_new_x (td_convolution_3d_new_at, parent, name, in, out, __VA_ARGS__, .end_ = 0)
#define td_dilated_convolution_2d_new(parent, name, in, out, ...) td__conv_new_x (td_dilated_convolution_2d_new_at, parent, name, in, out, __VA_ARGS__, .end_ = 0)
#define td_depthwise_convolution_2d_new(parent, name, in, multiplier, ...) td__conv_new_x (td_depthwise_convolution_2d_new_at, parent, name, in, multiplier, __VA_ARGS__, .end_ = 0)
#define td_deconvolution_2d_new(parent, name, in, out, ...) td__conv_new_x (td_deconvolution_2d_new_at, parent, name, in, out, __VA_ARGS__, .end_ = 0)
#define td__conv_new_x(make, parent, name, in, out, ksize, ...) TD_CALL_ (make (parent, name, in, out, ksize, TD_OPTIONS_ (TdConvLinkOpt, TD_CONV_LINK_DEFAULTS, __VA_ARGS__), TD_HERE))
/* clang-format on */
#endif

TD_END_DECLS
