/* Cumulative sums along an axis; the gradient sums from the other end.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

typedef struct
{
  int axis;
  bool reverse;
} Attrs;

static const TdAttr attr_table[] = {
  { "axis", TD_ATTR_INT, offsetof (Attrs, axis), 0, 0, "0" },
  { "reverse", TD_ATTR_BOOL, offsetof (Attrs, reverse), 0, 0, "false" },
};

static TdStatus
infer (TdOpCall *call)
{
  const int axis = ((const Attrs *)call->attrs)->axis;

  if (td__axis (axis, call->in[0].shape->ndim) < 0)
    return td_op_fail_operands (call, TD_ERR_SHAPE,
                                "-x.ndim <= axis < x.ndim expected, got axis %d", axis);
  return td__infer_number (call);
}

static TdStatus
forward (TdOpCall *call)
{
  const Attrs *a = call->attrs;

  return call->device->ops->cumulative_sum (call->device,
                                            td__axis (a->axis, call->in[0].shape->ndim),
                                            a->reverse, &call->in[0], &call->out[0]);
}

static TdStatus
backward (TdBackward *b)
{
  const Attrs *a = b->attrs;
  const Attrs back = { a->axis, !a->reverse };

  b->gx[0] = td__apply1 (&td__cumsum_class, &back, NULL, b->gy[0]);
  return TD_OK;
}

/* *Source*: chainer.functions.cumsum. */
const TdOpClass td__cumsum_class = {
  .name = "cumsum",
  .label = "Cumsum",
  .group = "math",
  .formula = "y[i] = x[0] + ... + x[i]",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .in_names = td__names_x,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = TD_ARRAY_LENGTH (attr_table),
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

TdVar *
td_cumsum_at (TdVar *x, int axis, const TdSite *site)
{
  const Attrs attrs = { axis, false };

  return td__apply1 (&td__cumsum_class, &attrs, site, x);
}

TdVar *
td_cumsum (TdVar *x, int axis)
{
  return td_cumsum_at (x, axis, NULL);
}
