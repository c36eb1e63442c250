/* Convolution (cross-correlation) over planes and over any number of axes.  Its gradients are
 * deconvolution.c and convolution-grad-w.c.
 *
 * SPDX-License-Identifier: MIT */
#include "windows.h"

static const char *const names[] = { "x", "W", "b" };

/* clang-format off */
static const TdAttr conv_attrs[] = {
  { "stride", TD_ATTR_INTS, offsetof (TdConvAttrs, stride), 0, offsetof (TdConvAttrs, n_stride), "1" },
  { "pad", TD_ATTR_INTS, offsetof (TdConvAttrs, pad), 0, offsetof (TdConvAttrs, n_pad), "0" },
  { "cover_all", TD_ATTR_BOOL, offsetof (TdConvAttrs, cover_all), 0, 0, "false" },
  { "dilate", TD_ATTR_INTS, offsetof (TdConvAttrs, dilate), 0, offsetof (TdConvAttrs, n_dilate), "1" },
  { "groups", TD_ATTR_INT, offsetof (TdConvAttrs, groups), 0, 0, "1" },
};
/* clang-format on */

static TdStatus
check (TdOpCall *call, TdConv *w)
{
  const TdConvAttrs *a = call->attrs;
  const TdShape *x = call->in[0].shape, *W = call->in[1].shape;
  int ndim;
  TdStatus status = td__conv_operands (call, &td__convolution_2d_class, &ndim);

  if (status == TD_OK)
    status = td__conv_windows (call, ndim, w);
  if (status == TD_OK && call->n_in == 3)
    status = td__check_vector (call, 2, 1, 0);
  if (status != TD_OK || (W->dim[1] * a->groups == x->dim[1] && W->dim[0] % a->groups == 0))
    return status;
  return td_op_fail_operands (
      call, TD_ERR_SHAPE,
      "x.shape[1] == W.shape[1] * groups and W.shape[0] %% groups == 0 expected, got %lld, "
      "%lld * %d and %lld",
      (long long)x->dim[1], (long long)W->dim[1], a->groups, (long long)W->dim[0]);
}

static TdStatus
infer (TdOpCall *call)
{
  const TdConvAttrs *a = call->attrs;
  const TdShape *x = call->in[0].shape, *W = call->in[1].shape;
  TdShape y = *x;
  TdConv w;
  TdStatus status = check (call, &w);

  y.dim[1] = W->dim[0];
  for (int i = 0; status == TD_OK && i < w.ndim; i++)
    {
      char text[20];

      y.dim[2 + i] = a->n_size > 0
                         ? a->size[i]
                         : td__window_count (x->dim[2 + i], W->dim[2 + i], w.stride[i],
                                             w.pad[i], w.dilate[i], a->cover_all);
      if (a->n_size > 0)
        status = td__conv_fits (call, &w, i, x->dim[2 + i], W->dim[2 + i], a->size[i]);
      else if (W->dim[2 + i] < 1 || y.dim[2 + i] < 1)
        return td_op_fail_operands (
            call, TD_ERR_SHAPE,
            "%s of the output > 0 expected, the window does not fit the image",
            td__window_axis (i, w.ndim, text));
    }
  return status != TD_OK ? status : td_op_out (call, 0, call->in[0].dtype, &y);
}

static TdStatus
forward (TdOpCall *call)
{
  const TdConv w = td__conv_kernel (call);

  return call->device->ops->conv (call->device, TD_CONV_FORWARD, &w, call->in, call->n_in,
                                  &call->out[0]);
}

static TdStatus
backward (TdBackward *b)
{
  return td__conv_backward (b, b->cls == &td__convolution_nd_class, false);
}

#define CONVOLUTION(NAME, LABEL)                                                               \
  {                                                                                            \
    .name = NAME, .label = LABEL, .group = "connection", .formula = "x * W + b",               \
    .n_in_min = 2, .n_in_max = 3, .n_out = 1,                                                  \
    .flags = TD_OP_IMAGES | TD_OP_LAYOUTS | TD_OP_ENDS, .retain_in = 3, .in_names = names,     \
    .attrs_size = sizeof (TdConvAttrs), .attrs = conv_attrs,                                   \
    .n_attrs = TD_ARRAY_LENGTH (conv_attrs), .infer = infer, .forward = forward,               \
    .backward = backward,                                                                      \
  }

/* *Source*: chainer.functions.convolution_2d, convolution_nd. */
const TdOpClass td__convolution_2d_class
    = CONVOLUTION ("convolution_2d", "Convolution2DFunction");
const TdOpClass td__convolution_nd_class = CONVOLUTION ("convolution_nd", "ConvolutionND");

TdVar *
td__convolution (bool nd, TdVar *x, TdVar *W, const TdConvAttrs *attrs)
{
  return td__apply2 (nd ? &td__convolution_nd_class : &td__convolution_2d_class, attrs, NULL, x,
                     W);
}

static TdVar *
apply (const TdOpClass *cls, const TdConvAttrs *attrs, const TdSite *site, TdVar *x, TdVar *W,
       TdVar *b)
{
  return b != NULL ? td__apply3 (cls, attrs, site, x, W, b)
                   : td__apply2 (cls, attrs, site, x, W);
}

TdVar *
td_convolution_2d_at (TdVar *x, TdVar *W, TdVar *b, TdConv2dOpt o, const TdSite *site)
{
  const TdConvAttrs attrs = { .stride = { o.stride[0], o.stride[1] },
                              .n_stride = 2,
                              .pad = { o.pad[0], o.pad[1] },
                              .n_pad = 2,
                              .dilate = { o.dilate[0], o.dilate[1] },
                              .n_dilate = 2,
                              .groups = o.groups,
                              .cover_all = o.cover_all };

  return apply (&td__convolution_2d_class, &attrs, site, x, W, b);
}

TdVar *
td_convolution_2d_ (TdVar *x, TdVar *W, TdVar *b, const TdConv2dOpt *options)
{
  const TdConv2dOpt defaults = { TD_CONV_2D_DEFAULTS };

  return td_convolution_2d_at (x, W, b, options != NULL ? *options : defaults, NULL);
}

/* Convolution over ndim axes; 0: as many as x has. */
static TdVar *
convolution_nd (int ndim, TdVar *x, TdVar *W, TdVar *b, const TdConvNdOpt *o,
                const TdSite *site)
{
  const int there = td_ndim (x) - 2, n = ndim != 0 ? ndim : there < 1 ? 1 : there;
  TdConvAttrs attrs = { .n_stride = n,
                        .n_pad = n,
                        .n_dilate = n,
                        .groups = o->groups,
                        .cover_all = o->cover_all,
                        .ndim = ndim };

  for (int i = 0; i < n; i++)
    {
      attrs.stride[i] = o->stride[i];
      attrs.pad[i] = o->pad[i];
      attrs.dilate[i] = o->dilate[i];
    }
  return apply (&td__convolution_nd_class, &attrs, site, x, W, b);
}

#define FUNCTIONS(name, ndim)                                                                  \
  TdVar *td_convolution_##name##_at (TdVar *x, TdVar *W, TdVar *b, TdConvNdOpt o,              \
                                     const TdSite *site)                                       \
  {                                                                                            \
    return convolution_nd (ndim, x, W, b, &o, site);                                           \
  }                                                                                            \
  TdVar *td_convolution_##name##_ (TdVar *x, TdVar *W, TdVar *b, const TdConvNdOpt *options)   \
  {                                                                                            \
    const TdConvNdOpt defaults = { TD_CONV_ND_DEFAULTS };                                      \
                                                                                               \
    return convolution_nd (ndim, x, W, b, options != NULL ? options : &defaults, NULL);        \
  }
FUNCTIONS (nd, 0)
FUNCTIONS (1d, 1)
FUNCTIONS (3d, 3)

TdVar *
td_dilated_convolution_2d_at (TdVar *x, TdVar *W, TdVar *b, TdConv2dOpt o, const TdSite *site)
{
  return td_convolution_2d_at (x, W, b, o, site);
}

TdVar *
td_dilated_convolution_2d_ (TdVar *x, TdVar *W, TdVar *b, const TdConv2dOpt *options)
{
  return td_convolution_2d_ (x, W, b, options);
}

TdVar *
td_depthwise_convolution_2d_at (TdVar *x, TdVar *W, TdVar *b, TdConv2dOpt o, const TdSite *site)
{
  const TdShape s = td_shape (W);

  if (td_poisoned (W) || s.ndim != 4)
    return td_convolution_2d_at (x, W, b, o, site); /* which says what is wrong */
  o.groups = (int)s.dim[1];
  W = td_transpose_at (W, (const int[]){ 1, 0, 2, 3 }, site);
  W = td_reshape_at (W, TD_SHAPE (s.dim[0] * s.dim[1], 1, s.dim[2], s.dim[3]), site);
  return td_convolution_2d_at (x, W, b, o, site);
}

TdVar *
td_depthwise_convolution_2d_ (TdVar *x, TdVar *W, TdVar *b, const TdConv2dOpt *options)
{
  const TdConv2dOpt defaults = { TD_CONV_2D_DEFAULTS };

  return td_depthwise_convolution_2d_at (x, W, b, options != NULL ? *options : defaults, NULL);
}
