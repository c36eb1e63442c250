/* What convolutions and poolings share: windows over the axes after batch and channels, checked
 * in one place, and gradients as functions.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "layers.h"

/** One number per axis; a list of one stands for all axes. */
typedef int TdAxisInts[TD_MAX_SPATIAL];

/** The spatial axes of a call's operands: 2 for a class of planes, else those of its first;
 * `wanted`, if not 0, is what the caller says they are.  *Errors*: TD_ERR_SHAPE. */
TdStatus td__window_ndim (const TdOpCall *call, const TdOpClass *planes, int wanted, int *ndim);

/** Fill to[0 .. ndim) from a list of one or ndim numbers, none below least.  *Errors*:
 * TD_ERR_ARG, naming the list. */
TdStatus td__window_list (const TdOpCall *call, const char *name, const int *list, int n,
                          int ndim, int least, int *to);

/** "height", "width" or "axis 3": spatial axis i of ndim, for messages. */
const char *td__window_axis (int i, int ndim, char text[20]);

/** Of a convolution, its transpose and its weight gradient. */
typedef struct TdConvAttrs
{
  TdAxisInts stride;
  int n_stride;
  TdAxisInts pad;
  int n_pad;
  TdAxisInts dilate;
  int n_dilate;
  int groups;
  bool cover_all;
  TdAxisInts size; /**< of the output's spatial axes; n_size 0: what the windows give */
  int n_size;
  int ndim; /**< spatial axes that the caller wants; 0: any */
} TdConvAttrs;

/** Check that all operands are floats of one dtype and the first two of ndim spatial axes, 2
 * for the class of planes. */
TdStatus td__conv_operands (const TdOpCall *call, const TdOpClass *planes, int *ndim);
/** Check the attributes of a call over ndim axes and spread them.  *Errors*: TD_ERR_ARG. */
TdStatus td__conv_windows (const TdOpCall *call, int ndim, TdConv *windows);
/** The same in forward, when they have been checked. */
TdConv td__conv_kernel (const TdOpCall *call);
/** Check that n windows over an image of that size are as many as there are, cover_all or not.
 */
TdStatus td__conv_fits (const TdOpCall *call, const TdConv *a, int axis, int64_t size,
                        int64_t ksize, int64_t n);
/** Set the spatial sizes of the output to those of s. */
TdConvAttrs td__conv_sized (const TdConvAttrs *a, const TdShape *s);

/* The three functions on given attributes; nd chooses the class. */
TdVar *td__convolution (bool nd, TdVar *x, TdVar *W, const TdConvAttrs *attrs);
TdVar *td__deconvolution (bool nd, TdVar *x, TdVar *W, const TdConvAttrs *attrs);
/** x, gy -> gW with filters of attrs->size. */
TdVar *td__convolution_grad_w (bool nd, TdVar *x, TdVar *gy, const TdConvAttrs *attrs);
/** backward of a convolution of x, W and maybe b, or of a transposed one: its data gradient is
 * the other of the two, its weight gradient takes x and gy, or gy and x. */
TdStatus td__conv_backward (TdBackward *b, bool nd, bool transposed);

/** Of every pooling. */
typedef struct TdPoolAttrs
{
  TdAxisInts ksize;
  int n_ksize;
  TdAxisInts stride; /**< n_stride 0 (or -1, read from None): ksize */
  int n_stride;
  TdAxisInts pad;
  int n_pad;
  bool cover_all;
  int pad_value;   /**< TD_NONE: padding counts nothing; else 0 */
  TdAxisInts size; /**< of the image, in gradients; of the output of unpooling */
  int n_size;
  int ndim; /**< spatial axes that the caller wants; 0: any */
} TdPoolAttrs;

/* clang-format off */
/** Rows of the attribute tables of poolings. */
#define TD_POOL_ATTRS                                                                          \
  { "ksize", TD_ATTR_INTS, offsetof (TdPoolAttrs, ksize), 0, offsetof (TdPoolAttrs, n_ksize), "2" },       \
  { "stride", TD_ATTR_INTS, offsetof (TdPoolAttrs, stride), 0, offsetof (TdPoolAttrs, n_stride), "None" }, \
  { "pad", TD_ATTR_INTS, offsetof (TdPoolAttrs, pad), 0, offsetof (TdPoolAttrs, n_pad), "0" }
#define TD_POOL_COVER_ALL(DEFAULT)                                                             \
  { "cover_all", TD_ATTR_BOOL, offsetof (TdPoolAttrs, cover_all), 0, 0, DEFAULT }
#define TD_POOL_SIZE(NAME)                                                                     \
  { NAME, TD_ATTR_INTS, offsetof (TdPoolAttrs, size), 0, offsetof (TdPoolAttrs, n_size), "None" }
#define TD_POOL_PAD_VALUE                                                                      \
  { "pad_value", TD_ATTR_INT, offsetof (TdPoolAttrs, pad_value), 0, 0, "0" }
/* clang-format on */

TdPoolAttrs td__pool_attrs_2d (const TdPool2dOpt *o);
TdPoolAttrs td__pool_attrs_nd (const TdPoolNdOpt *o, int ndim, const TdVar *x);

/** Check the attributes of a call and spread them.  *Errors*: TD_ERR_ARG. */
TdStatus td__pool_windows (const TdOpCall *call, int ndim, TdPooling *windows);
/** infer of poolings: checks x and the attributes, gives the pooled shape. */
TdStatus td__pool_infer (TdOpCall *call, const TdOpClass *planes, TdShape *pooled);
/** infer of gradients: input i is pooled; gives the image's shape, from attribute size. */
TdStatus td__pool_grad_infer (TdOpCall *call, const TdOpClass *planes, int i, TdShape *image);
TdStatus td__pool_run (TdOpCall *call, TdPoolKind kind, TdPoolDivisor divisor);
/** Set attribute size to the spatial sizes of s. */
TdPoolAttrs td__pool_sized (const TdPoolAttrs *a, const TdShape *s);
