/* What all reductions share: their attributes, the shape of their result, and the way back.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

#include <string.h>

const TdAttr td__reduce_attrs[2] = {
  { "axis", TD_ATTR_INTS, offsetof (TdReduceAttrs, axes), 0, offsetof (TdReduceAttrs, n_axes),
    "None" },
  { "keepdims", TD_ATTR_BOOL, offsetof (TdReduceAttrs, keepdims), 0, 0, "False" },
};

uint32_t
td__reduce_mask (const TdReduceAttrs *a, int ndim)
{
  uint32_t mask = 0;

  if (a->n_axes < 0)
    return (1u << ndim) - 1;
  for (int i = 0; i < a->n_axes; i++)
    mask |= 1u << td__axis (a->axes[i], ndim);
  return mask;
}

static TdStatus
check_axes (TdOpCall *call)
{
  const TdReduceAttrs *a = call->attrs;
  int ndim = call->in[0].shape->ndim;
  uint32_t seen = 0;

  if (a->n_axes > TD_MAX_DIMS)
    return td_op_fail_operands (call, TD_ERR_ARG, "at most %d axes expected, got %d",
                                TD_MAX_DIMS, a->n_axes);
  for (int i = 0; i < a->n_axes; i++)
    {
      int axis = td__axis (a->axes[i], ndim);

      if (axis < 0)
        return td_op_fail_operands (
            call, TD_ERR_SHAPE, "-x.ndim <= axis < x.ndim expected, got axis %d", a->axes[i]);
      if (seen >> axis & 1)
        return td_op_fail_operands (call, TD_ERR_ARG, "each axis once expected, got %d twice",
                                    a->axes[i]);
      seen |= 1u << axis;
    }
  return TD_OK;
}

static void
reduced_shape (const TdShape *x, uint32_t mask, bool keepdims, TdShape *out)
{
  out->ndim = 0;
  for (int i = 0; i < x->ndim; i++)
    if (!(mask >> i & 1))
      out->dim[out->ndim++] = x->dim[i];
    else if (keepdims)
      out->dim[out->ndim++] = 1;
}

TdStatus
td__infer_reduce (TdOpCall *call)
{
  const TdReduceAttrs *a = call->attrs;
  const TdTensor *x = &call->in[0];
  TdStatus status;
  TdShape shape;

  if (!td__is_number (x->dtype))
    return td_op_fail_operands (call, TD_ERR_DTYPE, "a floating-point or signed x expected");
  status = check_axes (call);
  if (status != TD_OK)
    return status;
  reduced_shape (x->shape, td__reduce_mask (a, x->shape->ndim), a->keepdims, &shape);
  return td_op_out (call, 0, x->dtype, &shape);
}

TdVar *
td__reduce (const TdOpClass *cls, TdVar *x, const int *axes, int n_axes, bool keepdims,
            const TdSite *site)
{
  TdReduceAttrs attrs;

  if (!td__list_there (axes, n_axes, cls->name, site))
    return td__poison ();
  memset (&attrs, 0, sizeof attrs);
  attrs.n_axes = n_axes;
  attrs.keepdims = keepdims;
  for (int i = 0; i < n_axes && i < TD_MAX_DIMS; i++)
    attrs.axes[i] = axes[i];
  return td__apply1 (cls, &attrs, site, x);
}

TdVar *
td__reduce_unsqueeze (TdBackward *b, TdVar *y)
{
  const TdReduceAttrs *a = b->attrs;
  const TdShape *x = td_backward_in_shape (b, 0);
  TdShape shape;

  if (a->keepdims || td_ndim (y) == 0)
    return y; /* broadcasts as it is */
  reduced_shape (x, td__reduce_mask (a, x->ndim), true, &shape);
  return td_reshape (y, shape);
}
