/* The gradients of a convolution: the data gradient (a deconvolution) and the weight gradient.
 * Each is linear in both operands, so the gradients of gradients are convolutions again.
 *
 * SPDX-License-Identifier: MIT */
#include "layers.h"

static const char *const x_names[] = { "W", "gy" };
static const char *const w_names[] = { "x", "gy" };

static TdStatus
check_operands (const TdOpCall *call)
{
  TdStatus status = td__check_floats (call, 3);

  for (int i = 0; status == TD_OK && i < 2; i++)
    status = td__check_ndim (call, i, 4);
  return status;
}

static TdStatus
grad_x_infer (TdOpCall *call)
{
  const TdConvAttrs *a = call->attrs;
  const int64_t *W = call->in[0].shape->dim, *gy = call->in[1].shape->dim;
  const TdShape gx = { 4, { gy[0], W[1] * a->groups, a->size[0], a->size[1] } };
  TdStatus status = check_operands (call);

  if (status == TD_OK)
    status = td__check_sizes (call, 0, 0, 1, 1);
  return status != TD_OK ? status : td_op_out (call, 0, call->in[0].dtype, &gx);
}

static TdStatus
grad_x_forward (TdOpCall *call)
{
  const TdConv2d a = td__conv_kernel_attrs (call->attrs, false);

  return call->device->ops->conv2d (call->device, TD_CONV_DATA_GRAD, &a, call->in, 2,
                                    &call->out[0]);
}

static TdStatus
grad_x_backward (TdBackward *b)
{
  const TdShape *W = td_backward_in_shape (b, 0);

  if (td_backward_needs (b, 0))
    {
      TdVar *gy = td_backward_input (b, 1);

      td_backward_into (b, 0);
      b->gx[0] = td__convolution_2d_grad_w (b->gy[0], gy, *(const TdConvAttrs *)b->attrs,
                                            W->dim[2], W->dim[3]);
    }
  if (td_backward_needs (b, 1))
    b->gx[1] = td__convolution_2d (b->gy[0], td_backward_input (b, 0),
                                   *(const TdConvAttrs *)b->attrs);
  return TD_OK;
}

const TdOpClass td__convolution_2d_grad_x_class = {
  .name = "convolution_2d_grad_x",
  .label = "Deconvolution2DFunction",
  .group = "connection",
  .formula = "W' * gy",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .retain_in = 3,
  .in_names = x_names,
  .attrs_size = sizeof (TdConvAttrs),
  .attrs = td__conv_attrs,
  .n_attrs = TD_CONV_N_ATTRS,
  .infer = grad_x_infer,
  .forward = grad_x_forward,
  .backward = grad_x_backward,
};

static TdStatus
grad_w_infer (TdOpCall *call)
{
  const TdConvAttrs *a = call->attrs;
  const int64_t *x = call->in[0].shape->dim, *gy = call->in[1].shape->dim;
  TdShape gW = { 4, { gy[1], x[1], a->size[0], a->size[1] } };
  TdStatus status = check_operands (call);

  if (status == TD_OK)
    status = td__check_sizes (call, 0, 0, 1, 0);
  if (status != TD_OK)
    return status;
  gW.dim[1] /= a->groups;
  return td_op_out (call, 0, call->in[0].dtype, &gW);
}

static TdStatus
grad_w_forward (TdOpCall *call)
{
  const TdConv2d a = td__conv_kernel_attrs (call->attrs, call->accumulate);

  return call->device->ops->conv2d (call->device, TD_CONV_WEIGHT_GRAD, &a, call->in, 2,
                                    &call->out[0]);
}

static TdStatus
grad_w_backward (TdBackward *b)
{
  const TdShape *x = td_backward_in_shape (b, 0);

  if (td_backward_needs (b, 0))
    b->gx[0] = td__convolution_2d_grad_x (b->gy[0], td_backward_input (b, 1),
                                          *(const TdConvAttrs *)b->attrs, x->dim[2], x->dim[3]);
  if (td_backward_needs (b, 1))
    b->gx[1] = td__convolution_2d (td_backward_input (b, 0), b->gy[0],
                                   *(const TdConvAttrs *)b->attrs);
  return TD_OK;
}

const TdOpClass td__convolution_2d_grad_w_class = {
  .name = "convolution_2d_grad_w",
  .label = "Convolution2DGradW",
  .group = "connection",
  .formula = "gy * x",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .flags = TD_OP_ACCUMULATES,
  .retain_in = 3,
  .in_names = w_names,
  .attrs_size = sizeof (TdConvAttrs),
  .attrs = td__conv_attrs,
  .n_attrs = TD_CONV_N_ATTRS,
  .infer = grad_w_infer,
  .forward = grad_w_forward,
  .backward = grad_w_backward,
};

TdVar *
td__convolution_2d_grad_x (TdVar *W, TdVar *gy, TdConvAttrs attrs, int64_t h, int64_t w)
{
  attrs.size[0] = (int)h;
  attrs.size[1] = (int)w;
  return td__apply2 (&td__convolution_2d_grad_x_class, &attrs, NULL, W, gy);
}

TdVar *
td__convolution_2d_grad_w (TdVar *x, TdVar *gy, TdConvAttrs attrs, int64_t kh, int64_t kw)
{
  attrs.size[0] = (int)kh;
  attrs.size[1] = (int)kw;
  return td__apply2 (&td__convolution_2d_grad_w_class, &attrs, NULL, x, gy);
}
