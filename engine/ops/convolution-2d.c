/* Two-dimensional convolution (cross-correlation).  Its gradients are in convolution-2d-grad.c.
 *
 * SPDX-License-Identifier: MIT */
#include "layers.h"

static const char *const names[] = { "x", "W", "b" };

const TdAttr td__conv_attrs[] = {
  { "stride", TD_ATTR_INTS, offsetof (TdConvAttrs, stride), 2, 0, "1,1" },
  { "pad", TD_ATTR_INTS, offsetof (TdConvAttrs, pad), 2, 0, "0,0" },
  { "dilate", TD_ATTR_INTS, offsetof (TdConvAttrs, dilate), 2, 0, "1,1" },
  { "groups", TD_ATTR_INT, offsetof (TdConvAttrs, groups), 0, 0, "1" },
  { "cover_all", TD_ATTR_BOOL, offsetof (TdConvAttrs, cover_all), 0, 0, "false" },
  { "size", TD_ATTR_INTS, offsetof (TdConvAttrs, size), 2, 0, "0,0" },
};

TdConv2d
td__conv_kernel_attrs (const TdConvAttrs *a, bool accumulate)
{
  return (TdConv2d){ .stride = { a->stride[0], a->stride[1] },
                     .pad = { a->pad[0], a->pad[1] },
                     .dilate = { a->dilate[0], a->dilate[1] },
                     .groups = a->groups,
                     .accumulate = accumulate };
}

static TdStatus
check_attrs (const TdOpCall *call, const TdConvAttrs *a)
{
  for (int i = 0; i < 2; i++)
    if (a->stride[i] < 1 || a->dilate[i] < 1 || a->pad[i] < 0)
      return td_op_fail (call, TD_ERR_ARG,
                         "stride >= 1, dilate >= 1 and pad >= 0 expected, got stride (%d, %d), "
                         "dilate (%d, %d), pad (%d, %d)",
                         a->stride[0], a->stride[1], a->dilate[0], a->dilate[1], a->pad[0],
                         a->pad[1]);
  if (a->groups < 1)
    return td_op_fail (call, TD_ERR_ARG, "groups >= 1 expected, got %d", a->groups);
  return TD_OK;
}

static TdStatus
infer (TdOpCall *call)
{
  const TdConvAttrs *a = call->attrs;
  const TdShape *x = call->in[0].shape, *W = call->in[1].shape;
  TdShape y = { 4, { 0 } };
  TdStatus status = td__check_floats (call, 7);

  for (int i = 0; status == TD_OK && i < 2; i++)
    status = td__check_ndim (call, i, 4);
  if (status == TD_OK)
    status = check_attrs (call, a);
  if (status == TD_OK && call->n_in == 3)
    status = td__check_vector (call, 2, 1, 0);
  if (status != TD_OK)
    return status;
  if (W->dim[1] * a->groups != x->dim[1] || W->dim[0] % a->groups != 0)
    return td_op_fail_operands (
        call, TD_ERR_SHAPE,
        "x.shape[1] == W.shape[1] * groups and W.shape[0] %% groups == 0 expected, got %lld, "
        "%lld * %d and %lld",
        (long long)x->dim[1], (long long)W->dim[1], a->groups, (long long)W->dim[0]);
  y.dim[0] = x->dim[0];
  y.dim[1] = W->dim[0];
  for (int i = 0; i < 2; i++)
    {
      y.dim[2 + i] = td__window_count (x->dim[2 + i], W->dim[2 + i], a->stride[i], a->pad[i],
                                       a->dilate[i], a->cover_all);
      if (x->dim[2 + i] > INT32_MAX || W->dim[2 + i] > INT32_MAX)
        return td_op_fail_operands (call, TD_ERR_SHAPE, "sizes of at most %d expected",
                                    INT32_MAX);
      if (W->dim[2 + i] < 1 || y.dim[2 + i] < 1)
        return td_op_fail_operands (
            call, TD_ERR_SHAPE,
            "%s of the output > 0 expected, the window does not fit the image",
            i == 0 ? "height" : "width");
    }
  return td_op_out (call, 0, call->in[0].dtype, &y);
}

static TdStatus
forward (TdOpCall *call)
{
  const TdConv2d a = td__conv_kernel_attrs (call->attrs, false);

  return call->device->ops->conv2d (call->device, TD_CONV_FORWARD, &a, call->in, call->n_in,
                                    &call->out[0]);
}

static TdStatus
backward (TdBackward *b)
{
  const TdConvAttrs *a = b->attrs;
  const TdShape *x = td_backward_in_shape (b, 0), *W = td_backward_in_shape (b, 1);
  static const int all_but_channels[] = { 0, 2, 3 };

  if (td_backward_needs (b, 0))
    b->gx[0] = td__convolution_2d_grad_x (td_backward_input (b, 1), b->gy[0], *a, x->dim[2],
                                          x->dim[3]);
  if (td_backward_needs (b, 1))
    {
      TdVar *input = td_backward_input (b, 0);

      td_backward_into (b, 1);
      b->gx[1] = td__convolution_2d_grad_w (input, b->gy[0], *a, W->dim[2], W->dim[3]);
    }
  if (b->n_in == 3 && td_backward_needs (b, 2))
    {
      td_backward_into (b, 2);
      b->gx[2] = td_sum_axes (b->gy[0], all_but_channels, 3, false);
    }
  return TD_OK;
}

/* *Source*: chainer.functions.convolution_2d. */
const TdOpClass td__convolution_2d_class = {
  .name = "convolution_2d",
  .label = "Convolution2DFunction",
  .group = "connection",
  .formula = "x * W + b",
  .n_in_min = 2,
  .n_in_max = 3,
  .n_out = 1,
  .retain_in = 3,
  .in_names = names,
  .attrs_size = sizeof (TdConvAttrs),
  .attrs = td__conv_attrs,
  .n_attrs = TD_CONV_N_ATTRS,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

TdVar *
td__convolution_2d (TdVar *x, TdVar *W, TdConvAttrs attrs)
{
  attrs.size[0] = attrs.size[1] = 0;
  return td__apply2 (&td__convolution_2d_class, &attrs, NULL, x, W);
}

TdVar *
td_convolution_2d_at (TdVar *x, TdVar *W, TdVar *b, TdConv2dOpt o, const TdSite *site)
{
  const TdConvAttrs attrs = { { o.stride[0], o.stride[1] },
                              { o.pad[0], o.pad[1] },
                              { o.dilate[0], o.dilate[1] },
                              o.groups,
                              o.cover_all,
                              { 0, 0 } };

  return b != NULL ? td__apply3 (&td__convolution_2d_class, &attrs, site, x, W, b)
                   : td__apply2 (&td__convolution_2d_class, &attrs, site, x, W);
}

TdVar *
td_convolution_2d_ (TdVar *x, TdVar *W, TdVar *b, const TdConv2dOpt *options)
{
  const TdConv2dOpt defaults = { TD_CONV_2D_DEFAULTS };

  return td_convolution_2d_at (x, W, b, options != NULL ? *options : defaults, NULL);
}
