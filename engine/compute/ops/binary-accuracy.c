/* Share of elements whose sign agrees with labels 0 and 1; -1 is left out.  No gradient.
 *
 * SPDX-License-Identifier: MIT */
#include "losses.h"

#include <math.h>

static const char *const names[] = { "y", "t" };

static TdStatus
infer (TdOpCall *call)
{
  const TdShape scalar = TD_SCALAR;
  TdStatus status = td__check_floats (call, 1);

  if (status == TD_OK)
    status = td__check_integers (call, 1);
  if (status == TD_OK)
    status = td__check_same_shape (call, 0, 1);
  return status != TD_OK ? status : td_op_out (call, 0, call->in[0].dtype, &scalar);
}

static TdStatus
forward (TdOpCall *call)
{
  const TdTensor *y = &call->in[0];
  TdDevice *d = call->device;
  TdTensor parts[4] = { td__carve_like (y), td__carve_like (y), td__carve_number (y->dtype),
                        td__carve_number (y->dtype) };
  TdTensor *t = &parts[0], *right = &parts[1], *zero = &parts[2], *count = &parts[3];
  const uint32_t all = (1u << y->shape->ndim) - 1;
  TdStatus status = td__check_labels (call, 1, 2, -1);

  if (status == TD_OK)
    status = td__carve (call, parts, 4);
  if (status == TD_OK)
    status = d->ops->fill (d, zero, 0);
  if (status == TD_OK)
    status = d->ops->cast (d, &call->in[1], t);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_GE, y, zero, right, false);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_EQ, right, t, right, false);
  if (status == TD_OK)
    status = d->ops->reduce (d, TD_REDUCE_SUM, all, right, &call->out[0], false);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_GE, t, zero, t, false);
  if (status == TD_OK)
    status = d->ops->reduce (d, TD_REDUCE_SUM, all, t, count, false);
  if (status == TD_OK)
    status = d->ops->unary (d, TD_UNARY_CLIP, 1, INFINITY, count, count);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_DIV, &call->out[0], count, &call->out[0], false);
  return status;
}

/* *Source*: chainer.functions.binary_accuracy. */
const TdOpClass td__binary_accuracy_class = {
  .name = "binary_accuracy",
  .label = "BinaryAccuracy",
  .group = "evaluation",
  .formula = "mean ((y >= 0) == t)",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .flags = TD_OP_NO_GRAD,
  .no_grad_in = 3,
  .in_names = names,
  .infer = infer,
  .forward = forward,
};

TdVar *
td_binary_accuracy_at (TdVar *y, TdVar *t, const TdSite *site)
{
  return td__apply2 (&td__binary_accuracy_class, NULL, site, y, t);
}

TdVar *
td_binary_accuracy (TdVar *y, TdVar *t)
{
  return td__apply2 (&td__binary_accuracy_class, NULL, NULL, y, t);
}
