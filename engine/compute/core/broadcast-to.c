/* Repeating along axes of size 1, and its opposite, summing over what was repeated: each is the
 * other's gradient.  They stand here and not in ops/ because gradients are brought to shape by
 * them.
 *
 * SPDX-License-Identifier: MIT */
#include "operands.h"

typedef struct
{
  TdShape shape;
} ShapeAttrs;

static const TdAttr shape_attrs[]
    = { { "shape", TD_ATTR_SHAPE, offsetof (ShapeAttrs, shape), 0, 0, NULL } };

static ShapeAttrs
attrs_of (TdShape shape)
{
  ShapeAttrs attrs = { 0 };

  attrs.shape.ndim = shape.ndim;
  for (int i = 0; i < shape.ndim && i < TD_MAX_DIMS; i++)
    attrs.shape.dim[i] = shape.dim[i];
  return attrs;
}

static bool
valid (const TdShape *shape)
{
  if (shape->ndim < 0 || shape->ndim > TD_MAX_DIMS)
    return false;
  for (int i = 0; i < shape->ndim; i++)
    if (shape->dim[i] < 0)
      return false;
  return true;
}

/* Does `small` repeated as NumPy does give `large`? */
static bool
repeats_to (const TdShape *small, const TdShape *large)
{
  TdShape both;

  return valid (small) && valid (large) && td__shape_broadcast (small, large, &both)
         && td_shape_equal (&both, large);
}

static TdStatus
broadcast_infer (TdOpCall *call)
{
  const TdShape *shape = &((const ShapeAttrs *)call->attrs)->shape;
  char text[200];

  if (!repeats_to (call->in[0].shape, shape))
    return td_op_fail_operands (call, TD_ERR_SHAPE, "x.shape that broadcasts to %s expected",
                                valid (shape) ? td_shape_text (shape, text, sizeof text)
                                              : "an impossible shape");
  return td_op_out (call, 0, call->in[0].dtype, shape);
}

static TdStatus
broadcast_forward (TdOpCall *call)
{
  const TdShape *x = call->in[0].shape, *y = call->out[0].shape;
  int64_t stride[TD_MAX_DIMS];
  TdStrides walk = { 0 };

  td__row_major (x, stride);
  for (int i = 0; i < x->ndim; i++)
    if (x->dim[i] != 1)
      walk.stride[y->ndim - x->ndim + i] = stride[i];
  return call->device->ops->strided (call->device, TD_STRIDED_READ, &call->in[0], &walk,
                                     &call->out[0]);
}

static TdStatus
broadcast_backward (TdBackward *b)
{
  td_backward_into (b, 0);
  b->gx[0] = td_sum_to (b->gy[0], *td_backward_in_shape (b, 0));
  return TD_OK;
}

const TdOpClass td__broadcast_to_class = {
  .name = "broadcast_to",
  .label = "BroadcastTo",
  .group = "array",
  .formula = "x, repeated along axes of size 1",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .in_names = td__names_x,
  .attrs_size = sizeof (ShapeAttrs),
  .attrs = shape_attrs,
  .n_attrs = 1,
  .infer = broadcast_infer,
  .forward = broadcast_forward,
  .backward = broadcast_backward,
};

static TdStatus
sum_to_infer (TdOpCall *call)
{
  const TdShape *shape = &((const ShapeAttrs *)call->attrs)->shape;
  char text[200];

  if (!td__is_number (call->in[0].dtype))
    return td_op_fail_operands (call, TD_ERR_DTYPE, "a floating-point or signed x expected");
  if (!repeats_to (shape, call->in[0].shape))
    return td_op_fail_operands (call, TD_ERR_SHAPE, "x.shape that %s broadcasts to expected",
                                valid (shape) ? td_shape_text (shape, text, sizeof text)
                                              : "an impossible shape");
  return td_op_out (call, 0, call->in[0].dtype, shape);
}

static TdStatus
sum_to_forward (TdOpCall *call)
{
  const TdShape *x = call->in[0].shape, *y = call->out[0].shape;
  int extra = x->ndim - y->ndim;
  uint32_t mask = 0;

  for (int i = 0; i < x->ndim; i++)
    if (i < extra || (y->dim[i - extra] == 1 && x->dim[i] != 1))
      mask |= 1u << i;
  return call->device->ops->reduce (call->device, TD_REDUCE_SUM, mask, &call->in[0],
                                    &call->out[0], call->accumulate);
}

static TdStatus
sum_to_backward (TdBackward *b)
{
  b->gx[0] = td_broadcast_to (b->gy[0], *td_backward_in_shape (b, 0));
  return TD_OK;
}

const TdOpClass td__sum_to_class = {
  .name = "sum_to",
  .label = "SumTo",
  .group = "math",
  .formula = "sum of x over what broadcasting repeats",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .flags = TD_OP_ACCUMULATES,
  .in_names = td__names_x,
  .attrs_size = sizeof (ShapeAttrs),
  .attrs = shape_attrs,
  .n_attrs = 1,
  .infer = sum_to_infer,
  .forward = sum_to_forward,
  .backward = sum_to_backward,
};

TdVar *
td_broadcast_to_at (TdVar *x, TdShape shape, const TdSite *site)
{
  const ShapeAttrs attrs = attrs_of (shape);

  return td__apply1 (&td__broadcast_to_class, &attrs, site, x);
}

TdVar *
td_broadcast_to (TdVar *x, TdShape shape)
{
  return td_broadcast_to_at (x, shape, NULL);
}

TdVar *
td_sum_to_at (TdVar *x, TdShape shape, const TdSite *site)
{
  const ShapeAttrs attrs = attrs_of (shape);

  return td__apply1 (&td__sum_to_class, &attrs, site, x);
}

TdVar *
td_sum_to (TdVar *x, TdShape shape)
{
  return td_sum_to_at (x, shape, NULL);
}
