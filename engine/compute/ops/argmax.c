/* The place (i32) of the first of the largest, or smallest, elements along an axis; NaN comes
 * before all numbers.
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

#define ARGMAX_CLASS(op_name, kind, op_label, text)                                            \
  static TdStatus op_name##_forward (TdOpCall *call)                                           \
  {                                                                                            \
    int axis = td__axis (((const ArgmaxAttrs *)call->attrs)->axis, call->in[0].shape->ndim);   \
                                                                                               \
    return call->device->ops->reduce (call->device, kind, 1u << axis, &call->in[0],            \
                                      &call->out[0], false);                                   \
  }                                                                                            \
  const TdOpClass td__##op_name##_class = {                                                    \
    .name = #op_name,                                                                          \
    .label = op_label,                                                                         \
    .group = "math",                                                                           \
    .formula = text,                                                                           \
    .n_in_min = 1,                                                                             \
    .n_in_max = 1,                                                                             \
    .n_out = 1,                                                                                \
    .flags = TD_OP_NO_GRAD,                                                                    \
    .in_names = td__names_x,                                                                   \
    .attrs_size = sizeof (ArgmaxAttrs),                                                        \
    .attrs = argmax_attrs,                                                                     \
    .n_attrs = 1,                                                                              \
    .infer = argmax_infer,                                                                     \
    .forward = op_name##_forward,                                                              \
  };                                                                                           \
  TdVar *td_##op_name##_at (TdVar *x, int axis, const TdSite *site)                            \
  {                                                                                            \
    const ArgmaxAttrs attrs = { axis };                                                        \
                                                                                               \
    return td__apply1 (&td__##op_name##_class, &attrs, site, x);                               \
  }                                                                                            \
  TdVar *td_##op_name (TdVar *x, int axis)                                                     \
  {                                                                                            \
    return td_##op_name##_at (x, axis, NULL);                                                  \
  }

ARGMAX_CLASS (argmax, TD_REDUCE_ARGMAX, "ArgMax", "place of the largest x along axis")
ARGMAX_CLASS (argmin, TD_REDUCE_ARGMIN, "ArgMin", "place of the smallest x along axis")
