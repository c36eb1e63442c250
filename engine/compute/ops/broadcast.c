/* Several arrays repeated to the shape they have in common.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

static TdStatus
infer (TdOpCall *call)
{
  TdShape shape = *call->in[0].shape, both;
  TdStatus status = TD_OK;

  if (call->n_in != call->n_out)
    return td_op_fail (call, TD_ERR_ARG, "as many outputs as inputs expected, got %d and %d",
                       call->n_out, call->n_in);
  for (int k = 1; k < call->n_in; k++)
    {
      if (!td__shape_broadcast (&shape, call->in[k].shape, &both))
        return td_op_fail_operands (call, TD_ERR_SHAPE,
                                    "shapes that broadcast expected, input %d does not", k);
      shape = both;
    }
  for (int k = 0; status == TD_OK && k < call->n_out; k++)
    status = td_op_out (call, k, call->in[k].dtype, &shape);
  return status;
}

static TdStatus
forward (TdOpCall *call)
{
  TdStatus status = TD_OK;

  for (int k = 0; status == TD_OK && k < call->n_out; k++)
    {
      const TdShape *x = call->in[k].shape, *y = call->out[k].shape;
      int64_t stride[TD_MAX_DIMS];
      TdStrides walk = { 0 };

      td__row_major (x, stride);
      for (int i = 0; i < x->ndim; i++)
        if (x->dim[i] != 1)
          walk.stride[y->ndim - x->ndim + i] = stride[i];
      status = call->device->ops->strided (call->device, TD_STRIDED_READ, &call->in[k], &walk,
                                           &call->out[k]);
    }
  return status;
}

static TdStatus
backward (TdBackward *b)
{
  for (int k = 0; k < b->n_in; k++)
    if (b->gy[k] != NULL && td_backward_needs (b, k))
      b->gx[k] = td_sum_to (b->gy[k], *td_backward_in_shape (b, k));
  return TD_OK;
}

/* *Source*: chainer.functions.broadcast. */
const TdOpClass td__broadcast_class = {
  .name = "broadcast",
  .label = "Broadcast",
  .group = "array",
  .formula = "the inputs, repeated to one shape",
  .n_in_min = 1,
  .n_in_max = -1,
  .n_out = -1,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

TdStatus
td_broadcast_at (TdVar *const *xs, int n, TdVar **out, const TdSite *site)
{
  return td__apply_at (&td__broadcast_class, NULL, xs, n < 0 ? 0 : n, out, n < 0 ? 0 : n, site);
}

TdStatus
td_broadcast (TdVar *const *xs, int n, TdVar **out)
{
  return td_broadcast_at (xs, n, out, NULL);
}
