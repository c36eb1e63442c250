/* Largest and smallest element over axes; NaN wins.  All elements that are equal to the extreme
 * get its gradient, as in Chainer.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

static TdStatus
extreme_infer (TdOpCall *call)
{
  TdStatus status = td__infer_reduce (call);

  if (status == TD_OK && call->in[0].size == 0 && td_shape_size (call->out[0].shape) > 0)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "x.size > 0 expected");
  return status;
}

static TdStatus
extreme (TdOpCall *call, TdReduceKind kind)
{
  return call->device->ops->reduce (call->device, kind,
                                    td__reduce_mask (call->attrs, call->in[0].shape->ndim),
                                    &call->in[0], &call->out[0], false);
}

static TdStatus
max_forward (TdOpCall *call)
{
  return extreme (call, TD_REDUCE_MAX);
}

static TdStatus
min_forward (TdOpCall *call)
{
  return extreme (call, TD_REDUCE_MIN);
}

static TdStatus
extreme_backward (TdBackward *b)
{
  TdVar *y = td__reduce_unsqueeze (b, td_backward_output (b, 0));
  TdVar *gy = td__reduce_unsqueeze (b, b->gy[0]);

  b->gx[0]
      = td_where (td__equal (td_backward_input (b, 0), y), gy, td__number_like (b->gy[0], 0));
  return TD_OK;
}

#define EXTREME_CLASS(op_name, op_label, text)                                                 \
  const TdOpClass td__##op_name##_class = {                                                    \
    .name = #op_name,                                                                          \
    .label = op_label,                                                                         \
    .group = "math",                                                                           \
    .formula = text,                                                                           \
    .n_in_min = 1,                                                                             \
    .n_in_max = 1,                                                                             \
    .n_out = 1,                                                                                \
    .retain_in = 1,                                                                            \
    .retain_out = 1,                                                                           \
    .in_names = td__names_x,                                                                   \
    .attrs_size = sizeof (TdReduceAttrs),                                                      \
    .attrs = td__reduce_attrs,                                                                 \
    .n_attrs = 2,                                                                              \
    .infer = extreme_infer,                                                                    \
    .forward = op_name##_forward,                                                              \
    .backward = extreme_backward,                                                              \
  };                                                                                           \
  TD_OP_FUNCTIONS_REDUCE (op_name)

EXTREME_CLASS (max, "Max", "largest x over axis")
EXTREME_CLASS (min, "Min", "smallest x over axis")
