/* Links that are small nets, and the nets of ImageNet.  Included by tapedeck.h.
 *
 * Structure only: the nets start from random numbers or from an npz file (td_load_npz) whose
 * keys are Chainer's; nothing is downloaded.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

TD_BEGIN_DECLS

typedef struct
{
  TdInit conv_init, bias_init;
  int end_;
} TdInceptionOpt;
#define TD_INCEPTION_DEFAULTS .conv_init = { TD_INIT_DEFAULT, 0 }
/** Windows of 1, 3 and 5 and a pooling beside one another.  Children conv1, proj3, conv3,
 * proj5, conv5, projp.  *Shapes*: x (n, in, h, w) -> (n, out1 + out3 + out5 + proj_pool, h, w).
 * *Source*: chainer.links.Inception, Szegedy et al. 2014. */
TD_API TdLink *td_inception_new_ (TdLink *parent, const char *name, int64_t in_channels,
                                  int64_t out1, int64_t proj3, int64_t out3, int64_t proj5,
                                  int64_t out5, int64_t proj_pool,
                                  const TdInceptionOpt *options);
TD_API TdLink *td_inception_new_at (TdLink *parent, const char *name, int64_t in_channels,
                                    int64_t out1, int64_t proj3, int64_t out3, int64_t proj5,
                                    int64_t out5, int64_t proj_pool, TdInceptionOpt options,
                                    const TdSite *site);

typedef enum
{
  TD_INCEPTION_MAX,
  TD_INCEPTION_AVERAGE
} TdInceptionPool;
typedef struct
{
  int64_t proj_pool; /**< 0: the pooling is not projected */
  int stride;        /**< 2 only with out1 0 */
  TdInit conv_init;
  int end_;
} TdInceptionBnOpt;
#define TD_INCEPTION_BN_DEFAULTS .proj_pool = 0, .stride = 1
/** Inception with batch normalization and two windows of 3 instead of one of 5; out1 0 leaves
 * the window of 1 out.  *Source*: chainer.links.InceptionBN, Ioffe and Szegedy 2015. */
TD_API TdLink *td_inception_bn_new_ (TdLink *parent, const char *name, int64_t in_channels,
                                     int64_t out1, int64_t proj3, int64_t out3, int64_t proj33,
                                     int64_t out33, TdInceptionPool pooltype,
                                     const TdInceptionBnOpt *options);
TD_API TdLink *td_inception_bn_new_at (TdLink *parent, const char *name, int64_t in_channels,
                                       int64_t out1, int64_t proj3, int64_t out3,
                                       int64_t proj33, int64_t out33, TdInceptionPool pooltype,
                                       TdInceptionBnOpt options, const TdSite *site);

typedef struct
{
  int stride[2], pad[2];
  TdVar *(*activation) (TdVar *x); /**< after every layer but the last */
  TdInit conv_init, bias_init;
  int end_;
} TdMlpConv2dOpt;
#define TD_MLP_CONV_2D_DEFAULTS .stride = { 1, 1 }, .pad = { 0, 0 }, .activation = td_relu
/** A convolution and then layers of windows of 1: a small net at every place.  Children "0",
 * "1"
 * ... for out_channels[0 .. n - 1].  *Source*: chainer.links.MLPConvolution2D. */
TD_API TdLink *td_mlp_convolution_2d_new_ (TdLink *parent, const char *name,
                                           int64_t in_channels, const int64_t *out_channels,
                                           int n, int ksize, const TdMlpConv2dOpt *options);
TD_API TdLink *td_mlp_convolution_2d_new_at (TdLink *parent, const char *name,
                                             int64_t in_channels, const int64_t *out_channels,
                                             int n, int ksize, TdMlpConv2dOpt options,
                                             const TdSite *site);

typedef struct
{
  const char *layer; /**< whose output the call gives, "prob" unless said */
  int end_;
} TdNetOpt;
#define TD_NET_DEFAULTS .layer = "prob"
/** *Shapes*: x (n, 3, 224, 224) -> (n, 1000).  Layers conv1_1 ... pool5, fc6, fc7, fc8, prob.
 * *Source*: chainer.links.VGG16Layers. */
TD_API TdLink *td_vgg16_layers_new_ (TdLink *parent, const char *name, const TdNetOpt *options);
TD_API TdLink *td_vgg16_layers_new_at (TdLink *parent, const char *name, TdNetOpt options,
                                       const TdSite *site);
/** *Shapes*: x (n, 3, h, w) -> (n, 1000).  Layers conv1, pool1, res2 ... res5, pool5, fc6,
 * prob. *Source*: chainer.links.ResNet50Layers. */
TD_API TdLink *td_resnet50_layers_new_ (TdLink *parent, const char *name,
                                        const TdNetOpt *options);
TD_API TdLink *td_resnet50_layers_new_at (TdLink *parent, const char *name, TdNetOpt options,
                                          const TdSite *site);
/** *Shapes*: x (n, 3, 224, 224) -> (n, 1000), and with three outputs loss1_fc2 and loss2_fc2
 * besides.  Layers conv1, pool1, conv2_reduce, conv2, pool2, inc3a ... inc5b, pool3 ... pool5,
 * loss3_fc, prob.  *Source*: chainer.links.GoogLeNet. */
TD_API TdLink *td_googlenet_new_ (TdLink *parent, const char *name, const TdNetOpt *options);
TD_API TdLink *td_googlenet_new_at (TdLink *parent, const char *name, TdNetOpt options,
                                    const TdSite *site);
/** Another layer's output from the next call on.  *Errors*: TD_ERR_ARG for a layer that the net
 * does not have. */
TD_API TdStatus td_net_set_layer (TdLink *net, const char *layer);

#if !defined(TD_NO_SITES)
/* clang-format off */
#define td_inception_new(parent, name, in, out1, proj3, out3, proj5, out5, ...) td__inception_new_x (parent, name, in, out1, proj3, out3, proj5, out5, __VA_ARGS__, .end_ = 0)
#define td__inception_new_x(parent, name, in, out1, proj3, out3, proj5, out5, proj_pool, ...) TD_CALL_ (td_inception_new_at (parent, name, in, out1, proj3, out3, proj5, out5, proj_pool, TD_OPTIONS_ (TdInceptionOpt, TD_INCEPTION_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_inception_bn_new(parent, name, in, out1, proj3, out3, proj33, out33, ...) td__inception_bn_new_x (parent, name, in, out1, proj3, out3, proj33, out33, __VA_ARGS__, .end_ = 0)
#define td__inception_bn_new_x(parent, name, in, out1, proj3, out3, proj33, out33, pooltype, ...) TD_CALL_ (td_inception_bn_new_at (parent, name, in, out1, proj3, out3, proj33, out33, pooltype, TD_OPTIONS_ (TdInceptionBnOpt, TD_INCEPTION_BN_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_mlp_convolution_2d_new(parent, name, in, outs, n, ...) td__mlp_convolution_2d_new_x (parent, name, in, outs, n, __VA_ARGS__, .end_ = 0)
#define td__mlp_convolution_2d_new_x(parent, name, in, outs, n, ksize, ...) TD_CALL_ (td_mlp_convolution_2d_new_at (parent, name, in, outs, n, ksize, TD_OPTIONS_ (TdMlpConv2dOpt, TD_MLP_CONV_2D_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_vgg16_layers_new(parent, ...) td__net_new_x (td_vgg16_layers_new_at, parent, __VA_ARGS__, .end_ = 0)
#define td_resnet50_layers_new(parent, ...) td__net_new_x (td_resnet50_layers_new_at, parent, __VA_ARGS__, .end_ = 0)
#define td_googlenet_new(parent, ...) td__net_new_x (td_googlenet_new_at, parent, __VA_ARGS__, .end_ = 0)
#define td__net_new_x(make, parent, name, ...) TD_CALL_ (make (parent, name, TD_OPTIONS_ (TdNetOpt, TD_NET_DEFAULTS, __VA_ARGS__), TD_HERE))
/* clang-format on */
#endif

TD_END_DECLS
