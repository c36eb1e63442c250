/* Padding: with a constant, which is an operation, and by what is at the edge, which is made of
 * pieces; and sequences padded to one length.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

#include <limits.h>
#include <string.h>

typedef struct
{
  double value;
  int pad_width[2 * TD_MAX_DIMS]; /* before and after, axis by axis */
  int n;
} Attrs;

static const TdAttr pad_attrs[] = {
  { "pad_width", TD_ATTR_INTS, offsetof (Attrs, pad_width), 0, offsetof (Attrs, n), NULL },
  { "constant_values", TD_ATTR_DOUBLE, offsetof (Attrs, value), 0, 0, "0" },
};

static TdStatus
infer (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  TdShape shape = *call->in[0].shape;

  if (a->n != 2 * shape.ndim)
    return td_op_fail_operands (
        call, TD_ERR_ARG, "pad_width of two numbers an axis expected, got %d numbers", a->n);
  for (int i = 0; i < a->n; i++)
    {
      if (a->pad_width[i] < 0)
        return td_op_fail_operands (call, TD_ERR_ARG, "pad_width >= 0 expected, got %d",
                                    a->pad_width[i]);
      shape.dim[i / 2] += a->pad_width[i];
    }
  return td_op_out (call, 0, call->in[0].dtype, &shape);
}

static TdStatus
forward (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  TdStrides walk = { 0 };
  TdStatus status = call->device->ops->fill (call->device, &call->out[0], a->value);

  td__row_major (call->out[0].shape, walk.stride);
  for (int i = 0; i < call->in[0].shape->ndim; i++)
    walk.offset += a->pad_width[2 * i] * walk.stride[i];
  return status != TD_OK ? status
                         : call->device->ops->strided (call->device, TD_STRIDED_WRITE,
                                                       &call->in[0], &walk, &call->out[0]);
}

static TdStatus
backward (TdBackward *b)
{
  const Attrs *a = b->attrs;
  const TdShape *x = td_backward_in_shape (b, 0);
  TdSlice slices[TD_MAX_DIMS];

  for (int i = 0; i < x->ndim; i++)
    slices[i] = TD_RANGE (a->pad_width[2 * i], a->pad_width[2 * i] + x->dim[i]);
  b->gx[0] = td_get_item (b->gy[0], slices, x->ndim);
  return TD_OK;
}

/* *Source*: chainer.functions.pad. */
const TdOpClass td__pad_class = {
  .name = "pad",
  .label = "Pad",
  .group = "array",
  .formula = "x with constants around it",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .in_names = td__names_x,
  .attrs_size = sizeof (Attrs),
  .attrs = pad_attrs,
  .n_attrs = 2,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

/* --- by what is at the edge --- */

static TdVar *
slice (TdVar *x, int axis, TdSlice s)
{
  TdSlice slices[TD_MAX_DIMS];

  for (int i = 0; i < axis; i++)
    slices[i] = TD_ALL;
  slices[axis] = s;
  return td_get_item (x, slices, axis + 1);
}

/* The n numbers that go before x along the axis, or after it. */
static TdVar *
edge (TdVar *x, int axis, int64_t n, bool after)
{
  TdShape shape = td_shape (x);
  const int64_t at = after ? shape.dim[axis] - 1 : 0;

  shape.dim[axis] = n;
  return td_broadcast_to (slice (x, axis, TD_RANGE (at, at + 1)), shape);
}

static TdVar *
mirror (TdVar *x, int axis, int64_t n, bool after)
{
  const int64_t first = after ? td_shape (x).dim[axis] - 2 : n, stop = first - n;

  return slice (x, axis, TD_STEP (first, stop < 0 ? TD_END : stop, -1));
}

static TdVar *
pad_axis (TdVar *x, int axis, const int *width, TdPadMode mode)
{
  TdVar *(*const piece) (TdVar *, int, int64_t, bool) = mode == TD_PAD_EDGE ? edge : mirror;
  TdVar *parts[3];
  int n = 0;

  if (width[0] > 0)
    parts[n++] = piece (x, axis, width[0], false);
  parts[n++] = x;
  if (width[1] > 0)
    parts[n++] = piece (x, axis, width[1], true);
  return n == 1 ? x : td_concat (parts, n, axis);
}

static TdStatus
check_edges (TdVar *x, const int *width, TdPadMode mode, const TdSite *site)
{
  const TdShape shape = td_shape (x);

  for (int i = 0; i < 2 * shape.ndim; i++)
    {
      const int64_t limit
          = mode == TD_PAD_EDGE ? shape.dim[i / 2] > 0 ? INT_MAX : 0 : shape.dim[i / 2] - 1;

      if (width[i] < 0 || (width[i] > 0 && width[i] > limit))
        return td__fail (TD_ERR_ARG, "pad", site,
                         "0 <= pad_width <= %lld expected for axis %d of size %lld, got %d",
                         (long long)(limit < 0 ? 0 : limit), i / 2, (long long)shape.dim[i / 2],
                         width[i]);
    }
  return TD_OK;
}

static TdVar *
pad_edges (TdVar *x, const int *width, TdPadMode mode, const TdSite *site)
{
  TdEngine *e = &td__engine;
  const TdSite *outer = e->site;
  const int ndim = td_ndim (x);

  if (check_edges (x, width, mode, site) != TD_OK)
    return td__poison ();
  if (site != NULL)
    e->site = site;
  for (int i = 0; i < ndim; i++)
    x = pad_axis (x, i, width + 2 * i, mode);
  e->site = outer;
  return x;
}

TdVar *
td_pad_at (TdVar *x, const int *pad_width, TdPadMode mode, double value, const TdSite *site)
{
  Attrs attrs;

  if (!td__var_usable (x, "pad", site)
      || !td__list_there (pad_width, 2 * td_ndim (x), "pad", site))
    return td__poison ();
  if (mode != TD_PAD_CONSTANT)
    return pad_edges (x, pad_width, mode, site);
  memset (&attrs, 0, sizeof attrs);
  attrs.value = value;
  attrs.n = 2 * td_ndim (x);
  memcpy (attrs.pad_width, pad_width, (size_t)attrs.n * sizeof *pad_width);
  return td__apply1 (&td__pad_class, &attrs, site, x);
}

TdVar *
td_pad (TdVar *x, const int *pad_width, TdPadMode mode, double value)
{
  return td_pad_at (x, pad_width, mode, value, NULL);
}

/* --- sequences --- */

typedef struct
{
  double padding;
  int length; /* -1: of the longest */
} SequenceAttrs;

static const TdAttr sequence_attrs[] = {
  { "length", TD_ATTR_INT, offsetof (SequenceAttrs, length), 0, 0, "-1" },
  { "padding", TD_ATTR_DOUBLE, offsetof (SequenceAttrs, padding), 0, 0, "0" },
};

static TdStatus
sequence_infer (TdOpCall *call)
{
  const SequenceAttrs *a = call->attrs;
  const TdTensor *first = &call->in[0];
  TdShape shape = { first->shape->ndim + 1, { call->n_in, 0 } };

  if (first->shape->ndim < 1 || first->shape->ndim == TD_MAX_DIMS)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "inputs of 1 to %d axes expected",
                                TD_MAX_DIMS - 1);
  for (int i = 1; i < first->shape->ndim; i++)
    shape.dim[1 + i] = first->shape->dim[i];
  for (int k = 0; k < call->n_in; k++)
    {
      const TdTensor *x = &call->in[k];

      if (x->dtype != first->dtype)
        return td_op_fail_operands (call, TD_ERR_DTYPE,
                                    "inputs of one dtype expected, input %d differs", k);
      for (int i = 1; i < first->shape->ndim || i < x->shape->ndim; i++)
        if (x->shape->ndim != first->shape->ndim || x->shape->dim[i] != shape.dim[1 + i])
          return td_op_fail_operands (
              call, TD_ERR_SHAPE,
              "inputs that differ along axis 0 only expected, input %d differs elsewhere", k);
      if (x->shape->dim[0] > shape.dim[1])
        shape.dim[1] = x->shape->dim[0];
    }
  if (a->length >= 0 && a->length < shape.dim[1])
    return td_op_fail_operands (call, TD_ERR_ARG,
                                "length >= %lld, that of the longest, expected, got %d",
                                (long long)shape.dim[1], a->length);
  if (a->length >= 0)
    shape.dim[1] = a->length;
  return td_op_out (call, 0, first->dtype, &shape);
}

static TdStatus
sequence_forward (TdOpCall *call)
{
  const SequenceAttrs *a = call->attrs;
  int64_t stride[TD_MAX_DIMS] = { 0 };
  TdStrides walk = { 0 };
  TdStatus status = call->device->ops->fill (call->device, &call->out[0], a->padding);

  td__row_major (call->out[0].shape, stride);
  memcpy (walk.stride, stride + 1, (TD_MAX_DIMS - 1) * sizeof *stride);
  for (int k = 0; status == TD_OK && k < call->n_in; k++)
    {
      walk.offset = k * stride[0];
      status = call->device->ops->strided (call->device, TD_STRIDED_WRITE, &call->in[k], &walk,
                                           &call->out[0]);
    }
  return status;
}

static TdStatus
sequence_backward (TdBackward *b)
{
  for (int k = 0; k < b->n_in; k++)
    {
      const TdSlice slices[] = { TD_AT (k), TD_RANGE (0, td_backward_in_shape (b, k)->dim[0]) };

      if (td_backward_needs (b, k))
        b->gx[k] = td_get_item (b->gy[0], slices, 2);
    }
  return TD_OK;
}

/* *Source*: chainer.functions.pad_sequence. */
const TdOpClass td__pad_sequence_class = {
  .name = "pad_sequence",
  .label = "PadSequence",
  .group = "array",
  .formula = "the inputs below each other, filled up to one length",
  .n_in_min = 1,
  .n_in_max = -1,
  .n_out = 1,
  .attrs_size = sizeof (SequenceAttrs),
  .attrs = sequence_attrs,
  .n_attrs = 2,
  .infer = sequence_infer,
  .forward = sequence_forward,
  .backward = sequence_backward,
};

TdVar *
td_pad_sequence_at (TdVar *const *xs, int n, int length, double padding, const TdSite *site)
{
  SequenceAttrs attrs;

  memset (&attrs, 0, sizeof attrs);
  attrs.length = length;
  attrs.padding = padding;
  return td__applyn (&td__pad_sequence_class, &attrs, site, xs, n < 0 ? 0 : n);
}

TdVar *
td_pad_sequence (TdVar *const *xs, int n, int length, double padding)
{
  return td_pad_sequence_at (xs, n, length, padding, NULL);
}
