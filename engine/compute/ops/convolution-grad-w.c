/* The weight gradient of a convolution.  It is linear in both operands, so its own gradients
 * are convolution and deconvolution.
 *
 * SPDX-License-Identifier: MIT */
#include "windows.h"

static const char *const names[] = { "x", "gy" };

/* clang-format off */
static const TdAttr grad_w_attrs[] = {
  { "stride", TD_ATTR_INTS, offsetof (TdConvAttrs, stride), 0, offsetof (TdConvAttrs, n_stride), "1" },
  { "pad", TD_ATTR_INTS, offsetof (TdConvAttrs, pad), 0, offsetof (TdConvAttrs, n_pad), "0" },
  { "dilate", TD_ATTR_INTS, offsetof (TdConvAttrs, dilate), 0, offsetof (TdConvAttrs, n_dilate), "1" },
  { "groups", TD_ATTR_INT, offsetof (TdConvAttrs, groups), 0, 0, "1" },
  { "ksize", TD_ATTR_INTS, offsetof (TdConvAttrs, size), 0, offsetof (TdConvAttrs, n_size), "1" },
};
/* clang-format on */

static TdStatus
infer (TdOpCall *call)
{
  const TdConvAttrs *a = call->attrs;
  const TdShape *x = call->in[0].shape, *gy = call->in[1].shape;
  TdShape gW = *x;
  TdConv w;
  TdAxisInts ksize;
  int ndim;
  TdStatus status = td__conv_operands (call, &td__convolution_2d_grad_w_class, &ndim);

  if (status == TD_OK)
    status = td__check_sizes (call, 0, 0, 1, 0);
  if (status == TD_OK)
    status = td__conv_windows (call, ndim, &w);
  if (status == TD_OK)
    status = td__window_list (call, "ksize", a->size, a->n_size, ndim, 1, ksize);
  if (status == TD_OK && (x->dim[1] % a->groups != 0 || gy->dim[1] % a->groups != 0))
    status = td_op_fail_operands (
        call, TD_ERR_SHAPE,
        "x.shape[1] %% groups == 0 and gy.shape[1] %% groups == 0 expected");
  for (int i = 0; status == TD_OK && i < ndim; i++)
    {
      gW.dim[2 + i] = ksize[i];
      status = td__conv_fits (call, &w, i, x->dim[2 + i], ksize[i], gy->dim[2 + i]);
    }
  if (status != TD_OK)
    return status;
  gW.dim[0] = gy->dim[1];
  gW.dim[1] = x->dim[1] / a->groups;
  return td_op_out (call, 0, call->in[0].dtype, &gW);
}

static TdStatus
forward (TdOpCall *call)
{
  const TdConv w = td__conv_kernel (call);

  return call->device->ops->conv (call->device, TD_CONV_WEIGHT_GRAD, &w, call->in, 2,
                                  &call->out[0]);
}

static TdStatus
backward (TdBackward *b)
{
  const bool nd = b->cls == &td__convolution_nd_grad_w_class;

  if (td_backward_needs (b, 0))
    {
      const TdConvAttrs attrs = td__conv_sized (b->attrs, td_backward_in_shape (b, 0));

      b->gx[0] = td__deconvolution (nd, td_backward_input (b, 1), b->gy[0], &attrs);
    }
  if (td_backward_needs (b, 1))
    {
      const TdConvAttrs attrs = td__conv_sized (b->attrs, td_backward_in_shape (b, 1));

      b->gx[1] = td__convolution (nd, td_backward_input (b, 0), b->gy[0], &attrs);
    }
  return TD_OK;
}

#define GRAD_W(NAME, LABEL)                                                                    \
  {                                                                                            \
    .name = NAME, .label = LABEL, .group = "connection", .formula = "gy * x", .n_in_min = 2,   \
    .n_in_max = 2, .n_out = 1, .flags = TD_OP_ACCUMULATES | TD_OP_IMAGES | TD_OP_LAYOUTS,      \
    .retain_in = 3, .in_names = names, .attrs_size = sizeof (TdConvAttrs),                     \
    .attrs = grad_w_attrs, .n_attrs = TD_ARRAY_LENGTH (grad_w_attrs), .infer = infer,          \
    .forward = forward, .backward = backward,                                                  \
  }

const TdOpClass td__convolution_2d_grad_w_class
    = GRAD_W ("convolution_2d_grad_w", "Convolution2DGradW");
const TdOpClass td__convolution_nd_grad_w_class
    = GRAD_W ("convolution_nd_grad_w", "ConvolutionNDGradW");

TdVar *
td__convolution_grad_w (bool nd, TdVar *x, TdVar *gy, const TdConvAttrs *attrs)
{
  return td__apply2 (nd ? &td__convolution_nd_grad_w_class : &td__convolution_2d_grad_w_class,
                     attrs, NULL, x, gy);
}
