/* Basic indexing: one slice per leading axis (a range with a step, one index, or a new axis),
 * its gradient, which writes into zeros, and adding at such places.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

#include <limits.h>
#include <string.h>

#define MAX_SLICES (2 * TD_MAX_DIMS) /* every axis, and new ones between them */
#define PER_SLICE 4                  /* start, stop, step, kind */

typedef struct
{
  int slices[PER_SLICE * MAX_SLICES];
  int n;         /* numbers in slices */
  TdShape shape; /* of x, for the gradient */
} GetItemAttrs;

static const TdAttr get_item_attrs[]
    = { { "slices", TD_ATTR_INTS, offsetof (GetItemAttrs, slices), 0,
          offsetof (GetItemAttrs, n), NULL } };
static const TdAttr get_item_grad_attrs[] = {
  { "slices", TD_ATTR_INTS, offsetof (GetItemAttrs, slices), 0, offsetof (GetItemAttrs, n),
    NULL },
  { "shape", TD_ATTR_SHAPE, offsetof (GetItemAttrs, shape), 0, 0, NULL },
};

static const char *const names_gy[] = { "gy" };

/* Open ends are stored as INT_MAX and INT_MIN; other numbers beyond int mean the same. */
static int
to_int (int64_t v)
{
  return v > INT_MAX ? INT_MAX : v < INT_MIN ? INT_MIN : (int)v;
}

static int64_t
clamp (int64_t v, int64_t low, int64_t high)
{
  return v < low ? low : v > high ? high : v;
}

/* NumPy's rules for start:stop:step on an axis of n elements; TD_END as a stop means to the
 * end, in the direction of the step. */
static void
range_of (const int *s, int64_t n, int64_t *start, int64_t *count)
{
  int64_t first = s[0], stop = s[1], step = s[2];
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;

  if (first == INT_MAX && step < 0)
    first = n - 1;
  first = clamp (first < 0 ? first + n : first, low, high);
  if (stop == INT_MAX)
    stop = step > 0 ? n : -1;
  else
    stop = clamp (stop < 0 ? stop + n : stop, low, high);
  *start = first;
  *count = step > 0 ? (stop - first + step - 1) / step : (first - stop - step - 1) / -step;
  *count = *count < 0 ? 0 : *count;
}

/* The result's shape, and how it walks over an array of shape x. */
static TdStatus
resolve (TdOpCall *call, const TdShape *x, TdShape *out, TdStrides *walk)
{
  const GetItemAttrs *a = call->attrs;
  int64_t stride[TD_MAX_DIMS];
  int axis = 0;

  memset (walk, 0, sizeof *walk);
  out->ndim = 0;
  td__row_major (x, stride);
  for (int k = 0; k < a->n / PER_SLICE; k++)
    {
      const int *s = a->slices + PER_SLICE * k;
      int64_t start = 0, count = 1, step = 0;

      if (s[3] != 2 && axis >= x->ndim)
        return td_op_fail_operands (call, TD_ERR_SHAPE,
                                    "at most x.ndim indices expected, got more");
      if (s[3] == 0 && s[2] == 0)
        return td_op_fail_operands (call, TD_ERR_ARG, "a slice step that is not 0 expected");
      if (s[3] == 0)
        range_of (s, x->dim[axis], &start, &count);
      else if (s[3] == 1)
        {
          start = s[0] < 0 ? s[0] + x->dim[axis] : s[0];
          if (start < 0 || start >= x->dim[axis])
            return td_op_fail_operands (call, TD_ERR_ARG,
                                        "index %d is out of range for axis %d of size %lld",
                                        s[0], axis, (long long)x->dim[axis]);
        }
      if (s[3] != 1)
        {
          if (out->ndim == TD_MAX_DIMS)
            return td_op_fail_operands (call, TD_ERR_SHAPE, "at most %d dimensions expected",
                                        TD_MAX_DIMS);
          if (s[3] == 0)
            step = s[2] * stride[axis];
          walk->stride[out->ndim] = step;
          out->dim[out->ndim++] = count;
        }
      if (s[3] != 2)
        {
          if (count > 0)
            walk->offset += start * stride[axis];
          axis++;
        }
    }
  for (; axis < x->ndim; axis++)
    {
      if (out->ndim == TD_MAX_DIMS)
        return td_op_fail_operands (call, TD_ERR_SHAPE, "at most %d dimensions expected",
                                    TD_MAX_DIMS);
      walk->stride[out->ndim] = stride[axis];
      out->dim[out->ndim++] = x->dim[axis];
    }
  return TD_OK;
}

static TdStatus
get_item_infer (TdOpCall *call)
{
  TdStrides walk;
  TdShape out;
  TdStatus status = resolve (call, call->in[0].shape, &out, &walk);

  return status != TD_OK ? status : td_op_out (call, 0, call->in[0].dtype, &out);
}

static TdStatus
get_item_forward (TdOpCall *call)
{
  TdStrides walk;
  TdShape out;
  TdStatus status = resolve (call, call->in[0].shape, &out, &walk);

  return status != TD_OK ? status
                         : call->device->ops->strided (call->device, TD_STRIDED_READ,
                                                       &call->in[0], &walk, &call->out[0]);
}

static TdStatus
get_item_backward (TdBackward *b)
{
  GetItemAttrs attrs = *(const GetItemAttrs *)b->attrs;

  attrs.shape = *td_backward_in_shape (b, 0);
  b->gx[0] = td__apply1 (&td__get_item_grad_class, &attrs, NULL, b->gy[0]);
  return TD_OK;
}

const TdOpClass td__get_item_class = {
  .name = "get_item",
  .label = "GetItem",
  .group = "array",
  .formula = "x[slices]",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .in_names = td__names_x,
  .attrs_size = sizeof (GetItemAttrs),
  .attrs = get_item_attrs,
  .n_attrs = 1,
  .infer = get_item_infer,
  .forward = get_item_forward,
  .backward = get_item_backward,
};

static TdStatus
get_item_grad_infer (TdOpCall *call)
{
  const GetItemAttrs *a = call->attrs;
  TdStrides walk;
  TdShape out;
  TdStatus status = resolve (call, &a->shape, &out, &walk);

  if (status != TD_OK)
    return status;
  if (!td_shape_equal (&out, call->in[0].shape))
    return td_op_fail_operands (call, TD_ERR_SHAPE, "gy of the slice's shape expected");
  return td_op_out (call, 0, call->in[0].dtype, &a->shape);
}

static TdStatus
get_item_grad_forward (TdOpCall *call)
{
  const GetItemAttrs *a = call->attrs;
  TdTensor *gx = &call->out[0];
  TdStrides walk;
  TdShape out;
  TdStatus status = resolve (call, &a->shape, &out, &walk);

  if (status == TD_OK)
    status = call->device->ops->zero (call->device, gx->data,
                                      (size_t)gx->size * td_dtype_bytes (gx->dtype));
  if (status == TD_OK)
    status
        = call->device->ops->strided (call->device, TD_STRIDED_WRITE, &call->in[0], &walk, gx);
  return status;
}

static TdStatus
get_item_grad_backward (TdBackward *b)
{
  b->gx[0] = td__apply1 (&td__get_item_class, b->attrs, NULL, b->gy[0]);
  return TD_OK;
}

const TdOpClass td__get_item_grad_class = {
  .name = "get_item_grad",
  .label = "GetItemGrad",
  .group = "array",
  .formula = "zeros, gx[slices] = gy",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .in_names = names_gy,
  .attrs_size = sizeof (GetItemAttrs),
  .attrs = get_item_grad_attrs,
  .n_attrs = TD_ARRAY_LENGTH (get_item_grad_attrs),
  .infer = get_item_grad_infer,
  .forward = get_item_grad_forward,
  .backward = get_item_grad_backward,
};

/* --- adding at places --- */

static const char *const add_names[] = { "a", "b" };

static TdStatus
add_infer (TdOpCall *call)
{
  TdStrides walk;
  TdShape out;
  TdStatus status = resolve (call, call->in[0].shape, &out, &walk);

  if (status == TD_OK && call->in[1].dtype != call->in[0].dtype)
    return td_op_fail_operands (call, TD_ERR_DTYPE, "a.dtype == b.dtype expected");
  if (status == TD_OK && !td_shape_equal (&out, call->in[1].shape))
    return td_op_fail_operands (call, TD_ERR_SHAPE, "b of the slice's shape expected");
  return status != TD_OK ? status : td_op_out (call, 0, call->in[0].dtype, call->in[0].shape);
}

static TdStatus
add_forward (TdOpCall *call)
{
  const TdTensor *a = &call->in[0];
  TdStrides walk;
  TdShape out;
  TdStatus status = resolve (call, a->shape, &out, &walk);

  if (status == TD_OK)
    status = call->device->ops->copy (call->device, call->out[0].data, a->data,
                                      (size_t)a->size * td_dtype_bytes (a->dtype));
  if (status == TD_OK)
    status = call->device->ops->strided (call->device, TD_STRIDED_ADD, &call->in[1], &walk,
                                         &call->out[0]);
  return status;
}

static TdStatus
add_backward (TdBackward *b)
{
  b->gx[0] = b->gy[0];
  if (td_backward_needs (b, 1))
    b->gx[1] = td__apply1 (&td__get_item_class, b->attrs, NULL, b->gy[0]);
  return TD_OK;
}

/* *Source*: chainer.functions.scatter_add. */
const TdOpClass td__scatter_add_class = {
  .name = "scatter_add",
  .label = "ScatterAdd",
  .group = "array",
  .formula = "a, y[slices] += b",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .in_names = add_names,
  .attrs_size = sizeof (GetItemAttrs),
  .attrs = get_item_attrs,
  .n_attrs = 1,
  .infer = add_infer,
  .forward = add_forward,
  .backward = add_backward,
};

/* --- calls --- */

/* Slices as attributes of `op`; false after an error. */
static bool
slices_of (GetItemAttrs *attrs, const TdSlice *slices, int n, const char *op,
           const TdSite *site)
{
  memset (attrs, 0, sizeof *attrs);
  if (n < 0 || n > MAX_SLICES)
    {
      td__fail (TD_ERR_ARG, op, site, "0 to %d slices expected, got %d", MAX_SLICES, n);
      return false;
    }
  if (!td__list_there (slices, n, op, site))
    return false;
  attrs->n = PER_SLICE * n;
  for (int k = 0; k < n; k++)
    {
      attrs->slices[PER_SLICE * k] = to_int (slices[k].start);
      attrs->slices[PER_SLICE * k + 1] = to_int (slices[k].stop);
      attrs->slices[PER_SLICE * k + 2] = to_int (slices[k].step);
      attrs->slices[PER_SLICE * k + 3] = slices[k].kind;
    }
  return true;
}

TdVar *
td_get_item_at (TdVar *x, const TdSlice *slices, int n_slices, const TdSite *site)
{
  GetItemAttrs attrs;

  if (!slices_of (&attrs, slices, n_slices, "get_item", site))
    return td__poison ();
  return td__apply1 (&td__get_item_class, &attrs, site, x);
}

TdVar *
td_get_item (TdVar *x, const TdSlice *slices, int n_slices)
{
  return td_get_item_at (x, slices, n_slices, NULL);
}

TdVar *
td_scatter_add_at (TdVar *a, const TdSlice *slices, int n_slices, TdVar *b, const TdSite *site)
{
  GetItemAttrs attrs;

  if (!slices_of (&attrs, slices, n_slices, "scatter_add", site))
    return td__poison ();
  return td__apply2 (&td__scatter_add_class, &attrs, site, a, b);
}

TdVar *
td_scatter_add (TdVar *a, const TdSlice *slices, int n_slices, TdVar *b)
{
  return td_scatter_add_at (a, slices, n_slices, b, NULL);
}
