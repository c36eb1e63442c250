/* Joining along an axis: concat, and stack, which is expand_dims and concat as in Chainer.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"
#include "../core/copy-parts.h"

#include <stdlib.h>

typedef struct
{
  int axis;
} ConcatAttrs;

static const TdAttr concat_attrs[]
    = { { "axis", TD_ATTR_INT, offsetof (ConcatAttrs, axis), 0, 0, "1" } };

static int
axis_of (const void *attrs, int ndim)
{
  return td__axis (((const ConcatAttrs *)attrs)->axis, ndim);
}

static TdStatus
concat_infer (TdOpCall *call)
{
  const TdTensor *first = &call->in[0];
  TdShape shape = *first->shape;
  int axis = axis_of (call->attrs, shape.ndim);

  if (axis < 0)
    return td_op_fail_operands (call, TD_ERR_SHAPE,
                                "-x.ndim <= axis < x.ndim expected, got axis %d",
                                ((const ConcatAttrs *)call->attrs)->axis);
  for (int k = 1; k < call->n_in; k++)
    {
      const TdTensor *x = &call->in[k];

      if (x->dtype != first->dtype)
        return td_op_fail_operands (call, TD_ERR_DTYPE,
                                    "inputs of one dtype expected, input %d differs", k);
      for (int i = 0; i < shape.ndim || i < x->shape->ndim; i++)
        if (x->shape->ndim != shape.ndim || (i != axis && x->shape->dim[i] != shape.dim[i]))
          return td_op_fail_operands (
              call, TD_ERR_SHAPE,
              "inputs that differ along axis %d only expected, input %d differs elsewhere",
              axis, k);
      shape.dim[axis] += x->shape->dim[axis];
    }
  return td_op_out (call, 0, first->dtype, &shape);
}

/* Along the first axis pieces lie one after the other. */
static TdStatus
join_in_line (TdOpCall *call)
{
  TdCopyParts parts = { .device = call->device };
  char *to = call->out[0].data;

  for (int k = 0; k < call->n_in; k++)
    {
      const size_t bytes = (size_t)call->in[k].size * td_dtype_bytes (call->in[k].dtype);

      td__copy_parts_add (&parts, to, call->in[k].data, bytes);
      to += bytes;
    }
  return td__copy_parts_end (&parts);
}

static TdStatus
concat_forward (TdOpCall *call)
{
  const TdLayout layout = td__call_layout (call);
  const int axis = td__layout_axis (axis_of (call->attrs, call->out[0].shape->ndim),
                                    call->out[0].shape->ndim, layout);
  TdShape sizes = td__layout_sizes (call->out[0].shape, layout);
  TdTensor y = call->out[0];
  TdStrides walk = { 0 };

  /* Kernels that copy by strides can gather statistics of what they write meanwhile. */
  if (axis == 0 && call->device->ops->copy_parts != NULL && !call->device->stats_wanted)
    return join_in_line (call);
  y.shape = &sizes;
  td__row_major (&sizes, walk.stride);
  for (int k = 0; k < call->n_in; k++)
    {
      TdShape x_sizes = td__layout_sizes (call->in[k].shape, layout);
      TdTensor x = call->in[k];
      TdStatus status;

      x.shape = &x_sizes;
      status = call->device->ops->strided (call->device, TD_STRIDED_WRITE, &x, &walk, &y);
      if (status != TD_OK)
        return status;
      walk.offset += x_sizes.dim[axis] * walk.stride[axis];
    }
  return TD_OK;
}

static TdStatus
concat_backward (TdBackward *b)
{
  int axis = axis_of (b->attrs, td_ndim (b->gy[0]));
  TdSlice slices[TD_MAX_DIMS];
  int64_t start = 0;

  for (int i = 0; i < axis; i++)
    slices[i] = TD_ALL;
  for (int k = 0; k < b->n_in; k++)
    {
      int64_t n = td_backward_in_shape (b, k)->dim[axis];

      slices[axis] = TD_RANGE (start, start + n);
      if (td_backward_needs (b, k))
        b->gx[k] = td_get_item (b->gy[0], slices, axis + 1);
      start += n;
    }
  return TD_OK;
}

const TdOpClass td__concat_class = {
  .name = "concat",
  .label = "Concat",
  .group = "array",
  .formula = "the inputs, one after the other along axis",
  .n_in_min = 1,
  .n_in_max = -1,
  .n_out = 1,
  .flags = TD_OP_LAYOUTS,
  .attrs_size = sizeof (ConcatAttrs),
  .attrs = concat_attrs,
  .n_attrs = 1,
  .infer = concat_infer,
  .forward = concat_forward,
  .backward = concat_backward,
};

TdVar *
td_concat_at (TdVar *const *xs, int n, int axis, const TdSite *site)
{
  const ConcatAttrs attrs = { axis };

  return td__applyn (&td__concat_class, &attrs, site, xs, n < 0 ? 0 : n);
}

TdVar *
td_concat (TdVar *const *xs, int n, int axis)
{
  return td_concat_at (xs, n, axis, NULL);
}

TdVar *
td_stack_at (TdVar *const *xs, int n, int axis, const TdSite *site)
{
  TdVar **expanded, *y;

  if (!td__list_there (xs, n, "stack", site))
    return td__poison ();
  expanded = calloc (n > 0 ? (size_t)n : 1, sizeof (TdVar *));
  if (expanded == NULL)
    {
      td__fail (TD_ERR_MEMORY, "stack", site, "no host memory for %d inputs", n);
      return td__poison ();
    }
  for (int k = 0; k < n; k++)
    expanded[k] = td_expand_dims_at (xs[k], axis, site);
  y = td_concat_at (expanded, n, axis, site);
  free (expanded);
  return y;
}

TdVar *
td_stack (TdVar *const *xs, int n, int axis)
{
  return td_stack_at (xs, n, axis, NULL);
}
