/* Sum and mean over axes.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

/* The result is row-major where channels and places do not both stay. */
static bool
takes_layout (const void *attrs, const TdShape *x)
{
  const TdReduceAttrs *a = attrs;
  uint32_t mask;

  for (int i = 0; i < a->n_axes; i++)
    if (i >= TD_MAX_DIMS || td__axis (a->axes[i], x->ndim) < 0)
      return false;
  mask = td__reduce_mask (a, x->ndim);
  return x->ndim >= 3 && ((mask >> 1 & 1) || mask >> 2 == (1u << (x->ndim - 2)) - 1);
}

static TdStatus
reduce (TdOpCall *call, TdReduceKind kind)
{
  return call->device->ops->reduce (call->device, kind,
                                    td__reduce_mask (call->attrs, call->in[0].shape->ndim),
                                    &call->in[0], &call->out[0], call->accumulate);
}

static TdStatus
sum_forward (TdOpCall *call)
{
  return reduce (call, TD_REDUCE_SUM);
}

static TdStatus
sum_backward (TdBackward *b)
{
  b->gx[0] = td_broadcast_to (td__reduce_unsqueeze (b, b->gy[0]), *td_backward_in_shape (b, 0));
  return TD_OK;
}

static TdStatus
mean_infer (TdOpCall *call)
{
  if (!td__is_float (call->in[0].dtype))
    return td_op_fail_operands (call, TD_ERR_DTYPE, "a floating-point x expected");
  return td__infer_reduce (call);
}

static TdStatus
mean_forward (TdOpCall *call)
{
  return reduce (call, TD_REDUCE_MEAN);
}

static TdStatus
mean_backward (TdBackward *b)
{
  const TdShape *shape = td_backward_in_shape (b, 0);
  double n
      = (double)td_shape_size (shape) / (double)td_shape_size (td_backward_out_shape (b, 0));
  TdVar *g = td_div_scalar (b->gy[0], n);

  b->gx[0] = td_broadcast_to (td__reduce_unsqueeze (b, g), *shape);
  return TD_OK;
}

#define SUM_CLASS(op_name, op_label, text, check)                                              \
  const TdOpClass td__##op_name##_class = {                                                    \
    .name = #op_name,                                                                          \
    .label = op_label,                                                                         \
    .group = "math",                                                                           \
    .formula = text,                                                                           \
    .n_in_min = 1,                                                                             \
    .n_in_max = 1,                                                                             \
    .n_out = 1,                                                                                \
    .flags = TD_OP_ACCUMULATES | TD_OP_LAYOUTS,                                                \
    .takes_layout = takes_layout,                                                              \
    .in_names = td__names_x,                                                                   \
    .attrs_size = sizeof (TdReduceAttrs),                                                      \
    .attrs = td__reduce_attrs,                                                                 \
    .n_attrs = 2,                                                                              \
    .infer = check,                                                                            \
    .forward = op_name##_forward,                                                              \
    .backward = op_name##_backward,                                                            \
  };                                                                                           \
  TD_OP_FUNCTIONS_REDUCE (op_name)

SUM_CLASS (sum, "Sum", "sum of x over axis", td__infer_reduce)
SUM_CLASS (mean, "Mean", "sum of x over axis / number of elements", mean_infer)
