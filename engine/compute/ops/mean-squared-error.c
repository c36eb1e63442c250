/* Mean of the squared differences.
 *
 * SPDX-License-Identifier: MIT */
#include "layers.h"

static TdStatus
infer (TdOpCall *call)
{
  const TdShape scalar = TD_SCALAR;
  TdStatus status = td__check_floats (call, 3);

  if (status == TD_OK)
    status = td__check_same_shape (call, 0, 1);
  return status != TD_OK ? status : td_op_out (call, 0, call->in[0].dtype, &scalar);
}

static TdStatus
forward (TdOpCall *call)
{
  TdDevice *d = call->device;
  const size_t item = td_dtype_bytes (call->in[0].dtype);
  const size_t bytes = (size_t)call->in[0].size * item, aligned = (bytes + 63) / 64 * 64;
  char *room = td_op_workspace (call, aligned + item);
  TdTensor difference = { room, call->in[0].shape, call->in[0].size, call->in[0].dtype };
  TdTensor sum = call->out[0];
  TdStatus status;

  if (room == NULL)
    return TD_ERR_MEMORY;
  sum.data = room + aligned;
  status = d->ops->binary (d, TD_BINARY_SUB, &call->in[0], &call->in[1], &difference, false);
  if (status == TD_OK)
    status = d->ops->reduce (d, TD_REDUCE_SUM_SQUARES, (1u << call->in[0].shape->ndim) - 1,
                             &difference, &sum, false);
  if (status == TD_OK)
    status = d->ops->unary (d, TD_UNARY_DIV_SCALAR, (double)call->in[0].size, 0, &sum,
                            &call->out[0]);
  return status;
}

static TdStatus
backward (TdBackward *b)
{
  TdVar *difference = td_sub (td_backward_input (b, 0), td_backward_input (b, 1));
  const double size = (double)td_shape_size (td_backward_in_shape (b, 0));
  TdVar *g = td_mul (difference, td_mul_scalar (b->gy[0], 2 / size));

  if (td_backward_needs (b, 0))
    b->gx[0] = g;
  if (td_backward_needs (b, 1))
    b->gx[1] = td_neg (g);
  return TD_OK;
}

const TdOpClass td__mean_squared_error_class = {
  .name = "mean_squared_error",
  .label = "MeanSquaredError",
  .group = "loss",
  .formula = "mean ((a - b)^2)",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .retain_in = 3,
  .in_names = td__names_ab,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

TD_OP_FUNCTIONS_2 (mean_squared_error)
