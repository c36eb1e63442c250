/* Windows: convolutions and poolings over any number of axes, transposed convolutions,
 * unpooling. Included by tapedeck-functions.h, whose rules hold here too; the two-dimensional
 * ones that everybody uses are there.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

TD_BEGIN_DECLS

/* Lists hold one number per axis after batch and channels; those past the last are not read. */
typedef struct
{
  int stride[TD_MAX_DIMS - 2], pad[TD_MAX_DIMS - 2], dilate[TD_MAX_DIMS - 2];
  int groups;
  bool cover_all;
  int end_;
} TdConvNdOpt;
#define TD_CONV_ND_DEFAULTS                                                                    \
  .stride = { 1, 1, 1, 1, 1, 1 }, .dilate = { 1, 1, 1, 1, 1, 1 }, .groups = 1
/** Convolution (cross-correlation) over all axes after the second; b may be NULL.
 * *Shapes*: x (n, c, d1 ... dk), W (out, c / groups, k1 ... kk), b (out) -> (n, out, o1 ...
 * ok). *Source*: chainer.functions.convolution_nd. */
TD_API TdVar *td_convolution_nd_ (TdVar *x, TdVar *W, TdVar *b, const TdConvNdOpt *options);
TD_API TdVar *td_convolution_nd_at (TdVar *x, TdVar *W, TdVar *b, TdConvNdOpt options,
                                    const TdSite *site);
/** The same for x (n, c, d). */
TD_API TdVar *td_convolution_1d_ (TdVar *x, TdVar *W, TdVar *b, const TdConvNdOpt *options);
TD_API TdVar *td_convolution_1d_at (TdVar *x, TdVar *W, TdVar *b, TdConvNdOpt options,
                                    const TdSite *site);
/** The same for x (n, c, d, h, w). */
TD_API TdVar *td_convolution_3d_ (TdVar *x, TdVar *W, TdVar *b, const TdConvNdOpt *options);
TD_API TdVar *td_convolution_3d_at (TdVar *x, TdVar *W, TdVar *b, TdConvNdOpt options,
                                    const TdSite *site);
/** td_convolution_2d under the name for windows with gaps: .dilate.  *Source*:
 * chainer.functions.dilated_convolution_2d. */
TD_API TdVar *td_dilated_convolution_2d_ (TdVar *x, TdVar *W, TdVar *b,
                                          const TdConv2dOpt *options);
TD_API TdVar *td_dilated_convolution_2d_at (TdVar *x, TdVar *W, TdVar *b, TdConv2dOpt options,
                                            const TdSite *site);
/** Convolve each channel with filters of its own.
 * *Shapes*: x (n, c, h, w), W (multiplier, c, kh, kw), b (c * multiplier) -> (n, c *
 * multiplier, oh, ow), the channels that come of one channel side by side; options' groups is
 * not read. *Source*: chainer.functions.depthwise_convolution_2d. */
TD_API TdVar *td_depthwise_convolution_2d_ (TdVar *x, TdVar *W, TdVar *b,
                                            const TdConv2dOpt *options);
TD_API TdVar *td_depthwise_convolution_2d_at (TdVar *x, TdVar *W, TdVar *b, TdConv2dOpt options,
                                              const TdSite *site);

typedef struct
{
  int stride[2], pad[2], dilate[2];
  int outsize[2]; /**< {0}: stride (h - 1) + dilate (kh - 1) + 1 - 2 pad */
  int groups;
  int end_;
} TdDeconv2dOpt;
#define TD_DECONV_2D_DEFAULTS .stride = { 1, 1 }, .dilate = { 1, 1 }, .groups = 1
/** Transposed convolution; b may be NULL.
 * *Shapes*: x (n, c, h, w), W (c, out / groups, kh, kw), b (out) -> (n, out, oh, ow).
 * *Source*: chainer.functions.deconvolution_2d. */
TD_API TdVar *td_deconvolution_2d_ (TdVar *x, TdVar *W, TdVar *b, const TdDeconv2dOpt *options);
TD_API TdVar *td_deconvolution_2d_at (TdVar *x, TdVar *W, TdVar *b, TdDeconv2dOpt options,
                                      const TdSite *site);
typedef struct
{
  int stride[TD_MAX_DIMS - 2], pad[TD_MAX_DIMS - 2], dilate[TD_MAX_DIMS - 2];
  int outsize[TD_MAX_DIMS - 2];
  int groups;
  int end_;
} TdDeconvNdOpt;
#define TD_DECONV_ND_DEFAULTS TD_CONV_ND_DEFAULTS
/** Transposed convolution over all axes after the second.  *Source*:
 * chainer.functions.deconvolution_nd. */
TD_API TdVar *td_deconvolution_nd_ (TdVar *x, TdVar *W, TdVar *b, const TdDeconvNdOpt *options);
TD_API TdVar *td_deconvolution_nd_at (TdVar *x, TdVar *W, TdVar *b, TdDeconvNdOpt options,
                                      const TdSite *site);

typedef struct
{
  int ksize[TD_MAX_DIMS - 2], stride[TD_MAX_DIMS - 2], pad[TD_MAX_DIMS - 2]; /**< stride 0: as
                                                                                ksize */
  bool cover_all;  /**< the last window may hang over the edge */
  int pad_value;   /**< of averages: 0, or TD_NONE: padding counts nothing */
  TdVar **indices; /**< gets, from max pooling, places in windows (i32), Chainer's indices */
  int end_;
} TdPoolNdOpt;
#define TD_MAX_POOL_ND_DEFAULTS .ksize = { 2, 2, 2, 2, 2, 2 }, .cover_all = true
#define TD_AVERAGE_POOL_ND_DEFAULTS .ksize = { 2, 2, 2, 2, 2, 2 }
/** Largest element of each window, over all axes after the second.  *Source*:
 * chainer.functions.max_pooling_nd. */
TD_API TdVar *td_max_pooling_nd_ (TdVar *x, const TdPoolNdOpt *options);
TD_API TdVar *td_max_pooling_nd_at (TdVar *x, TdPoolNdOpt options, const TdSite *site);
/** The same for x (n, c, d). */
TD_API TdVar *td_max_pooling_1d_ (TdVar *x, const TdPoolNdOpt *options);
TD_API TdVar *td_max_pooling_1d_at (TdVar *x, TdPoolNdOpt options, const TdSite *site);
/** The same for x (n, c, d, h, w). */
TD_API TdVar *td_max_pooling_3d_ (TdVar *x, const TdPoolNdOpt *options);
TD_API TdVar *td_max_pooling_3d_at (TdVar *x, TdPoolNdOpt options, const TdSite *site);
/** Mean of each window, over all axes after the second.  *Source*:
 * chainer.functions.average_pooling_nd. */
TD_API TdVar *td_average_pooling_nd_ (TdVar *x, const TdPoolNdOpt *options);
TD_API TdVar *td_average_pooling_nd_at (TdVar *x, TdPoolNdOpt options, const TdSite *site);
/** The same for x (n, c, d). */
TD_API TdVar *td_average_pooling_1d_ (TdVar *x, const TdPoolNdOpt *options);
TD_API TdVar *td_average_pooling_1d_at (TdVar *x, TdPoolNdOpt options, const TdSite *site);
/** The same for x (n, c, d, h, w). */
TD_API TdVar *td_average_pooling_3d_ (TdVar *x, const TdPoolNdOpt *options);
TD_API TdVar *td_average_pooling_3d_at (TdVar *x, TdPoolNdOpt options, const TdSite *site);

typedef struct
{
  int ksize[2], stride[2], pad[2]; /**< stride 0: as ksize */
  int outsize[2];                  /**< {0}: the smallest image whose windows these are */
  bool cover_all;                  /**< the last window may have hung over the edge */
  int end_;
} TdUnpool2dOpt;
#define TD_UNPOOL_2D_DEFAULTS .ksize = { 2, 2 }, .cover_all = true
/** Spread each element over its window; windows that overlap add up.
 * *Shapes*: x (n, c, h, w) -> (n, c, oh, ow).  *Source*: chainer.functions.unpooling_2d. */
TD_API TdVar *td_unpooling_2d_ (TdVar *x, const TdUnpool2dOpt *options);
TD_API TdVar *td_unpooling_2d_at (TdVar *x, TdUnpool2dOpt options, const TdSite *site);
/** Mean of each of oh by ow windows: o of oh covers [floor (o h / oh), ceil ((o + 1) h / oh)).
 * *Shapes*: x (n, c, h, w) -> (n, c, oh, ow). */
TD_API TdVar *td_adaptive_average_pooling_2d (TdVar *x, int64_t oh, int64_t ow);
TD_API TdVar *td_adaptive_average_pooling_2d_at (TdVar *x, int64_t oh, int64_t ow,
                                                 const TdSite *site);

#if !defined(TD_NO_SITES)
/* clang-format off */
#define td_convolution_nd(x, W, ...) td__convolution_nd_x (x, W, __VA_ARGS__, .end_ = 0)
#define td__convolution_nd_x(x, W, b, ...) TD_CALL_ (td_convolution_nd_at (x, W, b, TD_OPTIONS_ (TdConvNdOpt, TD_CONV_ND_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_convolution_1d(x, W, ...) td__convolution_1d_x (x, W, __VA_ARGS__, .end_ = 0)
#define td__convolution_1d_x(x, W, b, ...) TD_CALL_ (td_convolution_1d_at (x, W, b, TD_OPTIONS_ (TdConvNdOpt, TD_CONV_ND_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_convolution_3d(x, W, ...) td__convolution_3d_x (x, W, __VA_ARGS__, .end_ = 0)
#define td__convolution_3d_x(x, W, b, ...) TD_CALL_ (td_convolution_3d_at (x, W, b, TD_OPTIONS_ (TdConvNdOpt, TD_CONV_ND_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_dilated_convolution_2d(x, W, ...) td__dilated_convolution_2d_x (x, W, __VA_ARGS__, .end_ = 0)
#define td__dilated_convolution_2d_x(x, W, b, ...) TD_CALL_ (td_dilated_convolution_2d_at (x, W, b, TD_OPTIONS_ (TdConv2dOpt, TD_CONV_2D_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_depthwise_convolution_2d(x, W, ...) td__depthwise_convolution_2d_x (x, W, __VA_ARGS__, .end_ = 0)
#define td__depthwise_convolution_2d_x(x, W, b, ...) TD_CALL_ (td_depthwise_convolution_2d_at (x, W, b, TD_OPTIONS_ (TdConv2dOpt, TD_CONV_2D_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_deconvolution_2d(x, W, ...) td__deconvolution_2d_x (x, W, __VA_ARGS__, .end_ = 0)
#define td__deconvolution_2d_x(x, W, b, ...) TD_CALL_ (td_deconvolution_2d_at (x, W, b, TD_OPTIONS_ (TdDeconv2dOpt, TD_DECONV_2D_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_deconvolution_nd(x, W, ...) td__deconvolution_nd_x (x, W, __VA_ARGS__, .end_ = 0)
#define td__deconvolution_nd_x(x, W, b, ...) TD_CALL_ (td_deconvolution_nd_at (x, W, b, TD_OPTIONS_ (TdDeconvNdOpt, TD_DECONV_ND_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_max_pooling_nd(...) td__max_pooling_nd_x (__VA_ARGS__, .end_ = 0)
#define td__max_pooling_nd_x(x, ...) TD_CALL_ (td_max_pooling_nd_at (x, TD_OPTIONS_ (TdPoolNdOpt, TD_MAX_POOL_ND_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_max_pooling_1d(...) td__max_pooling_1d_x (__VA_ARGS__, .end_ = 0)
#define td__max_pooling_1d_x(x, ...) TD_CALL_ (td_max_pooling_1d_at (x, TD_OPTIONS_ (TdPoolNdOpt, TD_MAX_POOL_ND_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_max_pooling_3d(...) td__max_pooling_3d_x (__VA_ARGS__, .end_ = 0)
#define td__max_pooling_3d_x(x, ...) TD_CALL_ (td_max_pooling_3d_at (x, TD_OPTIONS_ (TdPoolNdOpt, TD_MAX_POOL_ND_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_average_pooling_nd(...) td__average_pooling_nd_x (__VA_ARGS__, .end_ = 0)
#define td__average_pooling_nd_x(x, ...) TD_CALL_ (td_average_pooling_nd_at (x, TD_OPTIONS_ (TdPoolNdOpt, TD_AVERAGE_POOL_ND_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_average_pooling_1d(...) td__average_pooling_1d_x (__VA_ARGS__, .end_ = 0)
#define td__average_pooling_1d_x(x, ...) TD_CALL_ (td_average_pooling_1d_at (x, TD_OPTIONS_ (TdPoolNdOpt, TD_AVERAGE_POOL_ND_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_average_pooling_3d(...) td__average_pooling_3d_x (__VA_ARGS__, .end_ = 0)
#define td__average_pooling_3d_x(x, ...) TD_CALL_ (td_average_pooling_3d_at (x, TD_OPTIONS_ (TdPoolNdOpt, TD_AVERAGE_POOL_ND_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_unpooling_2d(...) td__unpooling_2d_x (__VA_ARGS__, .end_ = 0)
#define td__unpooling_2d_x(x, ...) TD_CALL_ (td_unpooling_2d_at (x, TD_OPTIONS_ (TdUnpool2dOpt, TD_UNPOOL_2D_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_adaptive_average_pooling_2d(...) td_adaptive_average_pooling_2d_at (__VA_ARGS__, TD_HERE)
/* clang-format on */
#endif

TD_END_DECLS
