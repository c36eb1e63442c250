/* Axes in another place or direction: swapaxes, moveaxis and flip.  Each walks the same
 * elements in another order, and is undone by one of its own kind.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

typedef struct
{
  int axes[2];
} Attrs;

static const TdAttr swap_attrs[] = {
  { "axis1", TD_ATTR_INT, offsetof (Attrs, axes[0]), 0, 0, NULL },
  { "axis2", TD_ATTR_INT, offsetof (Attrs, axes[1]), 0, 0, NULL },
};
static const TdAttr move_attrs[] = {
  { "source", TD_ATTR_INT, offsetof (Attrs, axes[0]), 0, 0, NULL },
  { "destination", TD_ATTR_INT, offsetof (Attrs, axes[1]), 0, 0, NULL },
};
static const TdAttr flip_attrs[] = {
  { "axis", TD_ATTR_INT, offsetof (Attrs, axes[0]), 0, 0, NULL },
};

/* Which axis of x axis i of the result is. */
typedef int (*Source) (int a, int b, int i);

static int
swapped (int a, int b, int i)
{
  return i == a ? b : i == b ? a : i;
}

static int
moved (int from, int to, int i)
{
  if (i == to)
    return from;
  return i + (from < to ? i >= from && i < to : -(i > to && i <= from));
}

static TdStatus
check_axes (const TdOpCall *call, int n)
{
  const Attrs *a = call->attrs;

  for (int i = 0; i < n; i++)
    if (td__axis (a->axes[i], call->in[0].shape->ndim) < 0)
      return td_op_fail_operands (call, TD_ERR_SHAPE,
                                  "-x.ndim <= axis < x.ndim expected, got axis %d", a->axes[i]);
  return TD_OK;
}

static TdStatus
infer (TdOpCall *call, Source source)
{
  const Attrs *a = call->attrs;
  const TdShape *x = call->in[0].shape;
  TdShape y = { x->ndim, { 0 } };

  if (check_axes (call, 2) != TD_OK)
    return TD_ERR_SHAPE;
  for (int i = 0; i < x->ndim; i++)
    y.dim[i]
        = x->dim[source (td__axis (a->axes[0], x->ndim), td__axis (a->axes[1], x->ndim), i)];
  return td_op_out (call, 0, call->in[0].dtype, &y);
}

static TdStatus
forward (TdOpCall *call, Source source)
{
  const Attrs *a = call->attrs;
  const TdShape *x = call->in[0].shape;
  int64_t stride[TD_MAX_DIMS];
  TdStrides walk = { 0 };

  td__row_major (x, stride);
  for (int i = 0; i < x->ndim; i++)
    walk.stride[i]
        = stride[source (td__axis (a->axes[0], x->ndim), td__axis (a->axes[1], x->ndim), i)];
  return call->device->ops->strided (call->device, TD_STRIDED_READ, &call->in[0], &walk,
                                     &call->out[0]);
}

static TdStatus
swap_infer (TdOpCall *call)
{
  return infer (call, swapped);
}

static TdStatus
swap_forward (TdOpCall *call)
{
  return forward (call, swapped);
}

static TdStatus
move_infer (TdOpCall *call)
{
  return infer (call, moved);
}

static TdStatus
move_forward (TdOpCall *call)
{
  return forward (call, moved);
}

static TdStatus
move_backward (TdBackward *b)
{
  const Attrs *a = b->attrs;

  b->gx[0] = td_moveaxis (b->gy[0], a->axes[1], a->axes[0]);
  return TD_OK;
}

/* Swapping and flipping undo themselves. */
static TdStatus
own_backward (TdBackward *b)
{
  b->gx[0] = td__apply1 (b->cls, b->attrs, NULL, b->gy[0]);
  return TD_OK;
}

static TdStatus
flip_infer (TdOpCall *call)
{
  if (check_axes (call, 1) != TD_OK)
    return TD_ERR_SHAPE;
  return td_op_out (call, 0, call->in[0].dtype, call->in[0].shape);
}

static TdStatus
flip_forward (TdOpCall *call)
{
  const TdShape *x = call->in[0].shape;
  const int axis = td__axis (((const Attrs *)call->attrs)->axes[0], x->ndim);
  TdStrides walk = { 0 };

  td__row_major (x, walk.stride);
  if (x->dim[axis] > 0)
    walk.offset = (x->dim[axis] - 1) * walk.stride[axis];
  walk.stride[axis] = -walk.stride[axis];
  return call->device->ops->strided (call->device, TD_STRIDED_READ, &call->in[0], &walk,
                                     &call->out[0]);
}

#define AXIS_CLASS(op_name, op_label, text, list, own_infer, own_forward, own)                 \
  const TdOpClass td__##op_name##_class = {                                                    \
    .name = #op_name,                                                                          \
    .label = op_label,                                                                         \
    .group = "array",                                                                          \
    .formula = text,                                                                           \
    .n_in_min = 1,                                                                             \
    .n_in_max = 1,                                                                             \
    .n_out = 1,                                                                                \
    .in_names = td__names_x,                                                                   \
    .attrs_size = sizeof (Attrs),                                                              \
    .attrs = list,                                                                             \
    .n_attrs = TD_ARRAY_LENGTH (list),                                                         \
    .infer = own_infer,                                                                        \
    .forward = own_forward,                                                                    \
    .backward = own,                                                                           \
  }

/* *Source*: chainer.functions.swapaxes, moveaxis, flip. */
AXIS_CLASS (swapaxes, "Swapaxes", "x with two axes exchanged", swap_attrs, swap_infer,
            swap_forward, own_backward);
AXIS_CLASS (moveaxis, "Moveaxis", "x with an axis in another place", move_attrs, move_infer,
            move_forward, move_backward);
AXIS_CLASS (flip, "Flip", "x with an axis reversed", flip_attrs, flip_infer, flip_forward,
            own_backward);

TdVar *
td_swapaxes_at (TdVar *x, int axis1, int axis2, const TdSite *site)
{
  const Attrs attrs = { { axis1, axis2 } };

  return td__apply1 (&td__swapaxes_class, &attrs, site, x);
}

TdVar *
td_swapaxes (TdVar *x, int axis1, int axis2)
{
  return td_swapaxes_at (x, axis1, axis2, NULL);
}

TdVar *
td_moveaxis_at (TdVar *x, int source, int destination, const TdSite *site)
{
  const Attrs attrs = { { source, destination } };

  return td__apply1 (&td__moveaxis_class, &attrs, site, x);
}

TdVar *
td_moveaxis (TdVar *x, int source, int destination)
{
  return td_moveaxis_at (x, source, destination, NULL);
}

TdVar *
td_flip_at (TdVar *x, int axis, const TdSite *site)
{
  const Attrs attrs = { { axis, 0 } };

  return td__apply1 (&td__flip_class, &attrs, site, x);
}

TdVar *
td_flip (TdVar *x, int axis)
{
  return td_flip_at (x, axis, NULL);
}
