/* Axes in another order.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

#include <string.h>

typedef struct
{
  int axes[TD_MAX_DIMS];
  int n; /* 0: reverse */
} TransposeAttrs;

static const TdAttr transpose_attrs[]
    = { { "axes", TD_ATTR_INTS, offsetof (TransposeAttrs, axes), 0,
          offsetof (TransposeAttrs, n), "None" } };

/* Where output axis i comes from. */
static int
source (const TransposeAttrs *a, int i, int ndim)
{
  return a->n == 0 ? ndim - 1 - i : td__axis (a->axes[i], ndim);
}

static TdStatus
transpose_infer (TdOpCall *call)
{
  const TransposeAttrs *a = call->attrs;
  const TdShape *x = call->in[0].shape;
  TdShape shape = { x->ndim, { 0 } };
  uint32_t seen = 0;

  if (a->n != 0 && a->n != x->ndim)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "x.ndim axes expected, got %d", a->n);
  for (int i = 0; i < x->ndim; i++)
    {
      int from = source (a, i, x->ndim);

      if (from < 0 || (seen >> from & 1))
        return td_op_fail_operands (call, TD_ERR_SHAPE,
                                    "each axis of x once expected, got %d as axis %d",
                                    a->axes[i], i);
      seen |= 1u << from;
      shape.dim[i] = x->dim[from];
    }
  return td_op_out (call, 0, call->in[0].dtype, &shape);
}

static TdStatus
transpose_forward (TdOpCall *call)
{
  const TdShape *x = call->in[0].shape;
  int64_t stride[TD_MAX_DIMS];
  TdStrides walk = { 0 };

  td__row_major (x, stride);
  for (int i = 0; i < x->ndim; i++)
    walk.stride[i] = stride[source (call->attrs, i, x->ndim)];
  return call->device->ops->strided (call->device, TD_STRIDED_READ, &call->in[0], &walk,
                                     &call->out[0]);
}

static TdStatus
transpose_backward (TdBackward *b)
{
  const TransposeAttrs *a = b->attrs;
  int inverse[TD_MAX_DIMS];

  for (int i = 0; i < a->n; i++)
    inverse[td__axis (a->axes[i], a->n)] = i;
  b->gx[0] = td_transpose (b->gy[0], a->n == 0 ? NULL : inverse);
  return TD_OK;
}

const TdOpClass td__transpose_class = {
  .name = "transpose",
  .label = "Transpose",
  .group = "array",
  .formula = "x with its axes in another order",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .in_names = td__names_x,
  .attrs_size = sizeof (TransposeAttrs),
  .attrs = transpose_attrs,
  .n_attrs = 1,
  .infer = transpose_infer,
  .forward = transpose_forward,
  .backward = transpose_backward,
};

TdVar *
td_transpose_at (TdVar *x, const int *axes, const TdSite *site)
{
  TransposeAttrs attrs;

  memset (&attrs, 0, sizeof attrs);
  if (axes != NULL)
    {
      attrs.n = td_ndim (x);
      memcpy (attrs.axes, axes, (size_t)attrs.n * sizeof *axes);
    }
  return td__apply1 (&td__transpose_class, &attrs, site, x);
}

TdVar *
td_transpose (TdVar *x, const int *axes)
{
  return td_transpose_at (x, axes, NULL);
}
