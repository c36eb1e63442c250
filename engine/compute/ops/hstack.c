/* Joining as NumPy's hstack and vstack do: along axis 1 or 0, scalars and vectors made wider
 * first.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

/* x as it is joined: hstack needs an axis, vstack two. */
static TdShape
widened (const TdShape *x, bool vertical)
{
  if (x->ndim >= (vertical ? 2 : 1))
    return *x;
  if (x->ndim == 1)
    return TD_SHAPE (1, x->dim[0]);
  return vertical ? TD_SHAPE (1, 1) : TD_SHAPE (1);
}

static int
axis_of (const TdShape *widened, bool vertical)
{
  return vertical || widened->ndim == 1 ? 0 : 1;
}

static TdStatus
infer (TdOpCall *call, bool vertical)
{
  TdShape shape = widened (call->in[0].shape, vertical);
  const int axis = axis_of (&shape, vertical);

  for (int k = 1; k < call->n_in; k++)
    {
      const TdShape x = widened (call->in[k].shape, vertical);

      if (call->in[k].dtype != call->in[0].dtype)
        return td_op_fail_operands (call, TD_ERR_DTYPE,
                                    "inputs of one dtype expected, input %d differs", k);
      for (int i = 0; i < shape.ndim || i < x.ndim; i++)
        if (x.ndim != shape.ndim || (i != axis && x.dim[i] != shape.dim[i]))
          return td_op_fail_operands (
              call, TD_ERR_SHAPE,
              "inputs that differ along axis %d only expected, input %d differs elsewhere",
              axis, k);
      shape.dim[axis] += x.dim[axis];
    }
  return td_op_out (call, 0, call->in[0].dtype, &shape);
}

static TdStatus
forward (TdOpCall *call, bool vertical)
{
  const int axis = axis_of (call->out[0].shape, vertical);
  TdStrides walk = { 0 };
  TdStatus status = TD_OK;

  td__row_major (call->out[0].shape, walk.stride);
  for (int k = 0; status == TD_OK && k < call->n_in; k++)
    {
      TdShape shape = widened (call->in[k].shape, vertical);
      TdTensor x = call->in[k];

      x.shape = &shape;
      status = call->device->ops->strided (call->device, TD_STRIDED_WRITE, &x, &walk,
                                           &call->out[0]);
      walk.offset += shape.dim[axis] * walk.stride[axis];
    }
  return status;
}

static TdStatus
backward (TdBackward *b, bool vertical)
{
  const int axis = axis_of (td_backward_out_shape (b, 0), vertical);
  TdSlice slices[2] = { TD_ALL };
  int64_t start = 0;

  for (int k = 0; k < b->n_in; k++)
    {
      const TdShape *x = td_backward_in_shape (b, k);
      const int64_t n = widened (x, vertical).dim[axis];

      slices[axis] = TD_RANGE (start, start + n);
      if (td_backward_needs (b, k))
        b->gx[k] = td_get_item (b->gy[0], slices, axis + 1);
      if (b->gx[k] != NULL && x->ndim < 2)
        b->gx[k] = td_reshape (b->gx[k], *x);
      start += n;
    }
  return TD_OK;
}

#define STACK_CLASS(op_name, op_label, vertical)                                               \
  static TdStatus op_name##_infer (TdOpCall *call)                                             \
  {                                                                                            \
    return infer (call, vertical);                                                             \
  }                                                                                            \
  static TdStatus op_name##_forward (TdOpCall *call)                                           \
  {                                                                                            \
    return forward (call, vertical);                                                           \
  }                                                                                            \
  static TdStatus op_name##_backward (TdBackward *b)                                           \
  {                                                                                            \
    return backward (b, vertical);                                                             \
  }                                                                                            \
  const TdOpClass td__##op_name##_class = {                                                    \
    .name = #op_name,                                                                          \
    .label = op_label,                                                                         \
    .group = "array",                                                                          \
    .formula = vertical ? "the inputs below each other" : "the inputs beside each other",      \
    .n_in_min = 1,                                                                             \
    .n_in_max = -1,                                                                            \
    .n_out = 1,                                                                                \
    .infer = op_name##_infer,                                                                  \
    .forward = op_name##_forward,                                                              \
    .backward = op_name##_backward,                                                            \
  };                                                                                           \
  TdVar *td_##op_name##_at (TdVar *const *xs, int n, const TdSite *site)                       \
  {                                                                                            \
    return td__applyn (&td__##op_name##_class, NULL, site, xs, n < 0 ? 0 : n);                 \
  }                                                                                            \
  TdVar *td_##op_name (TdVar *const *xs, int n)                                                \
  {                                                                                            \
    return td_##op_name##_at (xs, n, NULL);                                                    \
  }

/* *Source*: chainer.functions.hstack, vstack. */
STACK_CLASS (hstack, "Hstack", false)
STACK_CLASS (vstack, "Vstack", true)
