/* x where the condition is not zero, else y; all three broadcast.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

static const char *const names[] = { "condition", "x", "y" };

static TdStatus
where_infer (TdOpCall *call)
{
  const TdTensor *c = &call->in[0], *x = &call->in[1], *y = &call->in[2];
  TdShape pair, shape;

  if (x->dtype != y->dtype)
    return td_op_fail_operands (call, TD_ERR_DTYPE, "x.dtype == y.dtype expected");
  if (!td__shape_broadcast (x->shape, y->shape, &pair)
      || !td__shape_broadcast (c->shape, &pair, &shape))
    return td_op_fail_operands (call, TD_ERR_SHAPE,
                                "condition.shape, x.shape and y.shape that broadcast expected");
  return td_op_out (call, 0, x->dtype, &shape);
}

static TdStatus
where_forward (TdOpCall *call)
{
  return call->device->ops->select (call->device, &call->in[0], &call->in[1], &call->in[2],
                                    &call->out[0]);
}

static TdStatus
where_backward (TdBackward *b)
{
  TdVar *condition = td_backward_input (b, 0), *zero = td__number_like (b->gy[0], 0);

  if (td_backward_needs (b, 1))
    b->gx[1] = td__grad_to_input (b, 1, td_where (condition, b->gy[0], zero));
  if (td_backward_needs (b, 2))
    b->gx[2] = td__grad_to_input (b, 2, td_where (condition, zero, b->gy[0]));
  return TD_OK;
}

const TdOpClass td__where_class = {
  .name = "where",
  .label = "Where",
  .group = "array",
  .formula = "condition ? x : y",
  .n_in_min = 3,
  .n_in_max = 3,
  .n_out = 1,
  .flags = TD_OP_ELEMENTWISE,
  .retain_in = 1,
  .no_grad_in = 1,
  .in_names = names,
  .infer = where_infer,
  .forward = where_forward,
  .backward = where_backward,
};

TdVar *
td_where_at (TdVar *condition, TdVar *x, TdVar *y, const TdSite *site)
{
  return td__apply3 (&td__where_class, NULL, site, condition, x, y);
}

TdVar *
td_where (TdVar *condition, TdVar *x, TdVar *y)
{
  return td_where_at (condition, x, y, NULL);
}
