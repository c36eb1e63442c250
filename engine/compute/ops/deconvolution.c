/* Transposed convolution over planes and over any number of axes: the data gradient of a
 * convolution, so the convolution is its gradient.
 *
 * SPDX-License-Identifier: MIT */
#include "windows.h"

static const char *const names[] = { "x", "W", "b" };

/* clang-format off */
static const TdAttr deconv_attrs[] = {
  { "stride", TD_ATTR_INTS, offsetof (TdConvAttrs, stride), 0, offsetof (TdConvAttrs, n_stride), "1" },
  { "pad", TD_ATTR_INTS, offsetof (TdConvAttrs, pad), 0, offsetof (TdConvAttrs, n_pad), "0" },
  { "outsize", TD_ATTR_INTS, offsetof (TdConvAttrs, size), 0, offsetof (TdConvAttrs, n_size), "None" },
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
  TdStatus status = td__conv_operands (call, &td__deconvolution_2d_class, &ndim);

  if (status == TD_OK)
    status = td__conv_windows (call, ndim, w);
  if (status == TD_OK)
    status = td__check_sizes (call, 0, 1, 1, 0);
  if (status == TD_OK && x->dim[1] % a->groups != 0)
    status = td_op_fail_operands (call, TD_ERR_SHAPE,
                                  "W.shape[0] %% groups == 0 expected, got %lld %% %d",
                                  (long long)W->dim[0], a->groups);
  if (status == TD_OK && call->n_in == 3)
    status = td__check_ndim (call, 2, 1);
  if (status == TD_OK && call->n_in == 3 && call->in[2].shape->dim[0] != W->dim[1] * a->groups)
    status = td_op_fail_operands (
        call, TD_ERR_SHAPE, "b.shape[0] == W.shape[1] * groups expected, got %lld != %lld * %d",
        (long long)call->in[2].shape->dim[0], (long long)W->dim[1], a->groups);
  return status;
}

static TdStatus
infer (TdOpCall *call)
{
  const TdConvAttrs *a = call->attrs;
  const TdShape *x = call->in[0].shape, *W = call->in[1].shape;
  TdShape y = *x;
  TdConv w;
  TdAxisInts size;
  TdStatus status = check (call, &w);

  if (status == TD_OK && a->n_size > 0)
    status = td__window_list (call, "outsize", a->size, a->n_size, w.ndim, 0, size);
  if (status == TD_OK)
    y.dim[1] = W->dim[1] * a->groups;
  for (int i = 0; status == TD_OK && i < w.ndim; i++)
    {
      char text[20];

      y.dim[2 + i] = a->n_size > 0 ? size[i]
                                   : w.stride[i] * (x->dim[2 + i] - 1)
                                         + (W->dim[2 + i] - 1) * w.dilate[i] + 1 - 2 * w.pad[i];
      if (a->n_size > 0)
        status = td__conv_fits (call, &w, i, size[i], W->dim[2 + i], x->dim[2 + i]);
      else if (W->dim[2 + i] < 1 || y.dim[2 + i] < 1 || y.dim[2 + i] > INT32_MAX)
        return td_op_fail_operands (call, TD_ERR_SHAPE,
                                    "%s of the output > 0 expected, got %lld",
                                    td__window_axis (i, w.ndim, text), (long long)y.dim[2 + i]);
    }
  return status != TD_OK ? status : td_op_out (call, 0, call->in[0].dtype, &y);
}

static TdStatus
forward (TdOpCall *call)
{
  const TdTensor in[3] = { call->in[1], call->in[0], call->n_in > 2 ? call->in[2] : *call->in };
  const TdConv w = td__conv_kernel (call);

  return call->device->ops->conv (call->device, TD_CONV_DATA_GRAD, &w, in, call->n_in,
                                  &call->out[0]);
}

static TdStatus
backward (TdBackward *b)
{
  return td__conv_backward (b, b->cls == &td__deconvolution_nd_class, true);
}

#define DECONVOLUTION(NAME, LABEL)                                                             \
  {                                                                                            \
    .name = NAME, .label = LABEL, .group = "connection", .formula = "x * W' + b",              \
    .n_in_min = 2, .n_in_max = 3, .n_out = 1,                                                  \
    .flags = TD_OP_IMAGES | TD_OP_LAYOUTS | TD_OP_ENDS, .retain_in = 3, .in_names = names,     \
    .attrs_size = sizeof (TdConvAttrs), .attrs = deconv_attrs,                                 \
    .n_attrs = TD_ARRAY_LENGTH (deconv_attrs), .infer = infer, .forward = forward,             \
    .backward = backward,                                                                      \
  }

/* *Source*: chainer.functions.deconvolution_2d, deconvolution_nd. */
const TdOpClass td__deconvolution_2d_class
    = DECONVOLUTION ("deconvolution_2d", "Deconvolution2DFunction");
const TdOpClass td__deconvolution_nd_class
    = DECONVOLUTION ("deconvolution_nd", "DeconvolutionND");

TdVar *
td__deconvolution (bool nd, TdVar *x, TdVar *W, const TdConvAttrs *attrs)
{
  return td__apply2 (nd ? &td__deconvolution_nd_class : &td__deconvolution_2d_class, attrs,
                     NULL, x, W);
}

/* outsize counts when its first number is not 0. */
static TdVar *
apply (const TdOpClass *cls, int n, const TdDeconvNdOpt *o, const TdSite *site, TdVar *x,
       TdVar *W, TdVar *b)
{
  TdConvAttrs attrs = { .n_stride = n,
                        .n_pad = n,
                        .n_dilate = n,
                        .n_size = o->outsize[0] != 0 ? n : 0,
                        .groups = o->groups };

  for (int i = 0; i < n; i++)
    {
      attrs.stride[i] = o->stride[i];
      attrs.pad[i] = o->pad[i];
      attrs.dilate[i] = o->dilate[i];
      attrs.size[i] = o->outsize[i];
    }
  return b != NULL ? td__apply3 (cls, &attrs, site, x, W, b)
                   : td__apply2 (cls, &attrs, site, x, W);
}

TdVar *
td_deconvolution_2d_at (TdVar *x, TdVar *W, TdVar *b, TdDeconv2dOpt o, const TdSite *site)
{
  const TdDeconvNdOpt nd = { .stride = { o.stride[0], o.stride[1] },
                             .pad = { o.pad[0], o.pad[1] },
                             .outsize = { o.outsize[0], o.outsize[1] },
                             .dilate = { o.dilate[0], o.dilate[1] },
                             .groups = o.groups };

  return apply (&td__deconvolution_2d_class, 2, &nd, site, x, W, b);
}

TdVar *
td_deconvolution_2d_ (TdVar *x, TdVar *W, TdVar *b, const TdDeconv2dOpt *options)
{
  const TdDeconv2dOpt defaults = { TD_DECONV_2D_DEFAULTS };

  return td_deconvolution_2d_at (x, W, b, options != NULL ? *options : defaults, NULL);
}

TdVar *
td_deconvolution_nd_at (TdVar *x, TdVar *W, TdVar *b, TdDeconvNdOpt o, const TdSite *site)
{
  const int n = td_ndim (x) - 2;

  return apply (&td__deconvolution_nd_class, n < 1 ? 1 : n, &o, site, x, W, b);
}

TdVar *
td_deconvolution_nd_ (TdVar *x, TdVar *W, TdVar *b, const TdDeconvNdOpt *options)
{
  const TdDeconvNdOpt defaults = { TD_DECONV_ND_DEFAULTS };

  return td_deconvolution_nd_at (x, W, b, options != NULL ? *options : defaults, NULL);
}
