/* The place (i32) of the first of the largest elements along an axis; NaN is largest.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

typedef struct
{
  int axis;
} ArgmaxAttrs;

static const TdAttr argmax_attrs[]
    = { { "axis", TD_ATTR_INT, offsetof (ArgmaxAttrs, axis), 0, 0, NULL } };

static TdStatus
argmax_infer (TdOpCall *call)
{
  const TdTensor *x = &call->in[0];
  int given = ((const ArgmaxAttrs *)call->attrs)->axis;
  int axis = td__axis (given, x->shape->ndim);
  TdShape shape = { 0 };

  if (!td__is_number (x->dtype))
    return td_op_fail_operands (call, TD_ERR_DTYPE, "a floating-point or signed x expected");
  if (axis < 0)
    return td_op_fail_operands (call, TD_ERR_SHAPE,
                                "-x.ndim <= axis < x.ndim expected, got axis %d", given);
  if (x->shape->dim[axis] == 0)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "x.shape[%d] > 0 expected", axis);
  for (int i = 0; i < x->shape->ndim; i++)
    if (i != axis)
      shape.dim[shape.ndim++] = x->shape->dim[i];
  return td_op_out (call, 0, TD_I32, &shape);
}

static TdStatus
argmax_forward (TdOpCall *call)
{
  int axis = td__axis (((const ArgmaxAttrs *)call->attrs)->axis, call->in[0].shape->ndim);

  return call->device->ops->reduce (call->device, TD_REDUCE_ARGMAX, 1u << axis, &call->in[0],
                                    &call->out[0], false);
}

const TdOpClass td__argmax_class = {
  .name = "argmax",
  .label = "ArgMax",
  .group = "math",
  .formula = "place of the largest x along axis",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .flags = TD_OP_NO_GRAD,
  .in_names = td__names_x,
  .attrs_size = sizeof (ArgmaxAttrs),
  .attrs = argmax_attrs,
  .n_attrs = 1,
  .infer = argmax_infer,
  .forward = argmax_forward,
};

TdVar *
td_argmax_at (TdVar *x, int axis, const TdSite *site)
{
  const ArgmaxAttrs attrs = { axis };

  return td__apply1 (&td__argmax_class, &attrs, site, x);
}

TdVar *
td_argmax (TdVar *x, int axis)
{
  return td_argmax_at (x, axis, NULL);
}
