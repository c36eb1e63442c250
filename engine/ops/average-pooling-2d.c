/* Average pooling, padding counted as zeros, and what both poolings share.
 *
 * SPDX-License-Identifier: MIT */
#include "layers.h"

static const char *const grad_names[] = { "gy" };

const TdAttr td__pool_attrs[] = {
  { "ksize", TD_ATTR_INTS, offsetof (TdPoolAttrs, ksize), 2, 0, "2,2" },
  { "stride", TD_ATTR_INTS, offsetof (TdPoolAttrs, stride), 2, 0, "2,2" },
  { "pad", TD_ATTR_INTS, offsetof (TdPoolAttrs, pad), 2, 0, "0,0" },
  { "cover_all", TD_ATTR_BOOL, offsetof (TdPoolAttrs, cover_all), 0, 0, "false" },
  { "size", TD_ATTR_INTS, offsetof (TdPoolAttrs, size), 2, 0, "0,0" },
};

TdPoolAttrs
td__pool_attrs_from (const TdPool2dOpt *o)
{
  TdPoolAttrs a = { .cover_all = o->cover_all };

  for (int i = 0; i < 2; i++)
    {
      a.ksize[i] = o->ksize[i];
      a.stride[i] = o->stride[i] != 0 ? o->stride[i] : o->ksize[i];
      a.pad[i] = o->pad[i];
    }
  return a;
}

TdStatus
td__pool_infer (TdOpCall *call, const TdPoolAttrs *a, TdShape *pooled)
{
  const TdShape *x = call->in[0].shape;
  TdStatus status = td__check_floats (call, 1);

  if (status == TD_OK)
    status = td__check_ndim (call, 0, 4);
  if (status != TD_OK)
    return status;
  *pooled = *x;
  for (int i = 0; i < 2; i++)
    {
      if (a->ksize[i] < 1 || a->stride[i] < 1 || a->pad[i] < 0)
        return td_op_fail (call, TD_ERR_ARG,
                           "ksize >= 1, stride >= 1 and pad >= 0 expected, got ksize (%d, %d), "
                           "stride (%d, %d), pad (%d, %d)",
                           a->ksize[0], a->ksize[1], a->stride[0], a->stride[1], a->pad[0],
                           a->pad[1]);
      if (x->dim[2 + i] > INT32_MAX || x->dim[2] * x->dim[3] > INT32_MAX)
        return td_op_fail_operands (call, TD_ERR_SHAPE,
                                    "a plane of at most %d elements expected", INT32_MAX);
      pooled->dim[2 + i] = td__window_count (x->dim[2 + i], a->ksize[i], a->stride[i],
                                             a->pad[i], 1, a->cover_all);
      if (pooled->dim[2 + i] < 1)
        return td_op_fail_operands (
            call, TD_ERR_SHAPE,
            "%s of the output > 0 expected, the window does not fit the image",
            i == 0 ? "height" : "width");
    }
  return TD_OK;
}

TdStatus
td__pool_run (TdOpCall *call, TdPoolKind kind)
{
  const TdPoolAttrs *a = call->attrs;
  const TdPool2d attrs = { { a->ksize[0], a->ksize[1] },
                           { a->stride[0], a->stride[1] },
                           { a->pad[0], a->pad[1] } };

  return call->device->ops->pool2d (call->device, kind, &attrs, call->in, call->n_in,
                                    &call->out[0], call->n_out > 1 ? &call->out[1] : NULL);
}

static TdStatus
infer (TdOpCall *call)
{
  TdShape pooled;
  const TdStatus status = td__pool_infer (call, call->attrs, &pooled);

  return status != TD_OK ? status : td_op_out (call, 0, call->in[0].dtype, &pooled);
}

static TdStatus
forward (TdOpCall *call)
{
  return td__pool_run (call, TD_POOL_AVERAGE);
}

static TdStatus
backward (TdBackward *b)
{
  const TdShape *x = td_backward_in_shape (b, 0);
  TdPoolAttrs attrs = *(const TdPoolAttrs *)b->attrs;

  attrs.size[0] = (int)x->dim[2];
  attrs.size[1] = (int)x->dim[3];
  b->gx[0] = td__apply1 (&td__average_pooling_2d_grad_class, &attrs, NULL, b->gy[0]);
  return TD_OK;
}

/* *Source*: chainer.functions.average_pooling_2d. */
const TdOpClass td__average_pooling_2d_class = {
  .name = "average_pooling_2d",
  .label = "AveragePooling2D",
  .group = "pooling",
  .formula = "mean of each window",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .in_names = td__names_x,
  .attrs_size = sizeof (TdPoolAttrs),
  .attrs = td__pool_attrs,
  .n_attrs = TD_POOL_N_ATTRS,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

static TdStatus
grad_infer (TdOpCall *call)
{
  const TdPoolAttrs *a = call->attrs;
  const int64_t *gy = call->in[0].shape->dim;
  const TdShape gx = { 4, { gy[0], gy[1], a->size[0], a->size[1] } };
  const TdStatus status = td__check_ndim (call, 0, 4);

  return status != TD_OK ? status : td_op_out (call, 0, call->in[0].dtype, &gx);
}

static TdStatus
grad_forward (TdOpCall *call)
{
  return td__pool_run (call, TD_POOL_AVERAGE_GRAD);
}

static TdStatus
grad_backward (TdBackward *b)
{
  TdPoolAttrs attrs = *(const TdPoolAttrs *)b->attrs;

  attrs.size[0] = attrs.size[1] = 0;
  b->gx[0] = td__apply1 (&td__average_pooling_2d_class, &attrs, NULL, b->gy[0]);
  return TD_OK;
}

const TdOpClass td__average_pooling_2d_grad_class = {
  .name = "average_pooling_2d_grad",
  .label = "AveragePooling2DGrad",
  .group = "pooling",
  .formula = "gy / (kh kw) under each window",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .in_names = grad_names,
  .attrs_size = sizeof (TdPoolAttrs),
  .attrs = td__pool_attrs,
  .n_attrs = TD_POOL_N_ATTRS,
  .infer = grad_infer,
  .forward = grad_forward,
  .backward = grad_backward,
};

TdVar *
td_average_pooling_2d_at (TdVar *x, TdPool2dOpt options, const TdSite *site)
{
  const TdPoolAttrs attrs = td__pool_attrs_from (&options);

  return td__apply1 (&td__average_pooling_2d_class, &attrs, site, x);
}

TdVar *
td_average_pooling_2d_ (TdVar *x, const TdPool2dOpt *options)
{
  const TdPool2dOpt defaults = { TD_AVERAGE_POOL_2D_DEFAULTS };

  return td_average_pooling_2d_at (x, options != NULL ? *options : defaults, NULL);
}
