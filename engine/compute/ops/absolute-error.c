/* |a - b|, (a - b)^2 as a loss and as mathematics, and the mean of |a - b|.
 *
 * SPDX-License-Identifier: MIT */
#include "losses.h"

static TdStatus
check_pair (TdOpCall *call)
{
  const TdStatus status = td__check_floats (call, 3);

  return status != TD_OK ? status : td__check_same_shape (call, 0, 1);
}

static TdStatus
each_infer (TdOpCall *call)
{
  const TdStatus status = check_pair (call);

  return status != TD_OK ? status : td__out_like (call, 0, 0);
}

static TdStatus
mean_infer (TdOpCall *call)
{
  const TdShape scalar = TD_SCALAR;
  const TdStatus status = check_pair (call);

  return status != TD_OK ? status : td_op_out (call, 0, call->in[0].dtype, &scalar);
}

/* f (a - b), made in place. */
static TdStatus
of_difference (TdOpCall *call, TdUnaryKind kind, TdTensor *y)
{
  TdDevice *d = call->device;
  const TdStatus status
      = d->ops->binary (d, TD_BINARY_SUB, &call->in[0], &call->in[1], y, false);

  return status != TD_OK ? status : d->ops->unary (d, kind, 0, 0, y, y);
}

static TdStatus
absolute_forward (TdOpCall *call)
{
  return of_difference (call, TD_UNARY_ABS, &call->out[0]);
}

static TdStatus
squared_forward (TdOpCall *call)
{
  return of_difference (call, TD_UNARY_SQUARE, &call->out[0]);
}

static TdStatus
mean_forward (TdOpCall *call)
{
  TdTensor error = td__carve_like (&call->in[0]);
  TdStatus status = td__carve (call, &error, 1);

  if (status == TD_OK)
    status = of_difference (call, TD_UNARY_ABS, &error);
  if (status == TD_OK)
    status = call->device->ops->reduce (call->device, TD_REDUCE_MEAN,
                                        (1u << error.shape->ndim) - 1, &error, &call->out[0],
                                        false);
  return status;
}

/* The gradient g in a, -g in b. */
static void
set_gradients (TdBackward *b, TdVar *g)
{
  if (td_backward_needs (b, 0))
    b->gx[0] = g;
  if (td_backward_needs (b, 1))
    b->gx[1] = td_neg (g);
}

static TdVar *
difference_of (TdBackward *b)
{
  return td_sub (td_backward_input (b, 0), td_backward_input (b, 1));
}

static TdStatus
absolute_backward (TdBackward *b)
{
  set_gradients (b, td_mul (b->gy[0], td__sign (difference_of (b))));
  return TD_OK;
}

static TdStatus
squared_backward (TdBackward *b)
{
  set_gradients (b, td_mul (b->gy[0], td_mul_scalar (difference_of (b), 2)));
  return TD_OK;
}

static TdStatus
mean_backward (TdBackward *b)
{
  const double size = (double)td_shape_size (td_backward_in_shape (b, 0));

  set_gradients (b, td_mul (td_div_scalar (b->gy[0], size), td__sign (difference_of (b))));
  return TD_OK;
}

static const char *const names_x1x2[] = { "x1", "x2" };

#define ERROR_CLASS(op_name, op_label, in, names, text, infer_of, forward_of, backward_of)     \
  const TdOpClass td__##op_name##_class = {                                                    \
    .name = #op_name,                                                                          \
    .label = op_label,                                                                         \
    .group = in,                                                                               \
    .formula = text,                                                                           \
    .n_in_min = 2,                                                                             \
    .n_in_max = 2,                                                                             \
    .n_out = 1,                                                                                \
    .retain_in = 3,                                                                            \
    .in_names = names,                                                                         \
    .infer = infer_of,                                                                         \
    .forward = forward_of,                                                                     \
    .backward = backward_of,                                                                   \
  };                                                                                           \
  TD_OP_FUNCTIONS_2 (op_name)

/* *Source*: chainer.functions.absolute_error, squared_error, squared_difference,
 * mean_absolute_error. */
ERROR_CLASS (absolute_error, "AbsoluteError", "loss", td__names_ab, "|a - b|", each_infer,
             absolute_forward, absolute_backward)
ERROR_CLASS (squared_error, "SquaredError", "loss", td__names_ab, "(a - b)^2", each_infer,
             squared_forward, squared_backward)
ERROR_CLASS (squared_difference, "SquaredDifference", "math", names_x1x2, "(x1 - x2)^2",
             each_infer, squared_forward, squared_backward)
ERROR_CLASS (mean_absolute_error, "MeanAbsoluteError", "loss", td__names_ab, "mean (|a - b|)",
             mean_infer, mean_forward, mean_backward)
