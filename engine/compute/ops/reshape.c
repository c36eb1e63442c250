/* The same elements under another shape: reshape, flatten, expand_dims, squeeze.  All are
 * views.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

#include <limits.h>

typedef struct
{
  TdShape shape;
} ReshapeAttrs;

typedef struct
{
  int axis;
} AxisAttrs;

#define ALL_AXES INT_MIN

static const TdAttr reshape_attrs[]
    = { { "shape", TD_ATTR_SHAPE, offsetof (ReshapeAttrs, shape), 0, 0, NULL } };
static const TdAttr axis_attrs[]
    = { { "axis", TD_ATTR_INT, offsetof (AxisAttrs, axis), 0, 0, NULL } };

/* One size may be -1: what is left over. */
static TdStatus
reshape_infer (TdOpCall *call)
{
  TdShape shape = ((const ReshapeAttrs *)call->attrs)->shape;
  int64_t known = 1, size = call->in[0].size;
  int unknown = -1;
  char text[200];

  if (shape.ndim < 0 || shape.ndim > TD_MAX_DIMS)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "at most %d dimensions expected, got %d",
                                TD_MAX_DIMS, shape.ndim);
  td_shape_text (&shape, text, sizeof text);
  for (int i = 0; i < shape.ndim; i++)
    if (shape.dim[i] == -1 && unknown < 0)
      unknown = i;
    else if (shape.dim[i] < 0 || __builtin_mul_overflow (known, shape.dim[i], &known))
      return td_op_fail_operands (call, TD_ERR_SHAPE, "sizes, and -1 once, expected, got %s",
                                  text);
  if (unknown >= 0 && (known == 0 || size % known != 0))
    return td_op_fail_operands (call, TD_ERR_SHAPE, "x.size %% %lld == 0 expected for %s",
                                (long long)known, text);
  if (unknown >= 0)
    shape.dim[unknown] = size / known;
  else if (known != size)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "x.size == prod %s expected", text);
  return td_op_out (call, 0, call->in[0].dtype, &shape);
}

static TdStatus
expand_dims_infer (TdOpCall *call)
{
  const TdShape *x = call->in[0].shape;
  int given = ((const AxisAttrs *)call->attrs)->axis, axis = td__axis (given, x->ndim + 1);
  TdShape shape = { 0 };

  if (x->ndim == TD_MAX_DIMS)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "x.ndim < %d expected", TD_MAX_DIMS);
  if (axis < 0)
    return td_op_fail_operands (call, TD_ERR_SHAPE,
                                "-x.ndim - 1 <= axis <= x.ndim expected, got axis %d", given);
  for (int i = 0; i <= x->ndim; i++)
    shape.dim[i] = i == axis ? 1 : x->dim[i - (i > axis)];
  shape.ndim = x->ndim + 1;
  return td_op_out (call, 0, call->in[0].dtype, &shape);
}

static TdStatus
squeeze_infer (TdOpCall *call)
{
  const TdShape *x = call->in[0].shape;
  int given = ((const AxisAttrs *)call->attrs)->axis, axis = -1;
  TdShape shape = { 0 };

  if (given != ALL_AXES)
    {
      axis = td__axis (given, x->ndim);
      if (axis < 0)
        return td_op_fail_operands (call, TD_ERR_SHAPE,
                                    "-x.ndim <= axis < x.ndim expected, got axis %d", given);
      if (x->dim[axis] != 1)
        return td_op_fail_operands (call, TD_ERR_SHAPE, "x.shape[%d] == 1 expected", axis);
    }
  for (int i = 0; i < x->ndim; i++)
    if (given == ALL_AXES ? x->dim[i] != 1 : i != axis)
      shape.dim[shape.ndim++] = x->dim[i];
  return td_op_out (call, 0, call->in[0].dtype, &shape);
}

static TdStatus
view_backward (TdBackward *b)
{
  b->gx[0] = td_reshape (b->gy[0], *td_backward_in_shape (b, 0));
  return TD_OK;
}

#define VIEW_CLASS(op_name, op_label, text, Attrs, list, check)                                \
  const TdOpClass td__##op_name##_class = {                                                    \
    .name = #op_name,                                                                          \
    .label = op_label,                                                                         \
    .group = "array",                                                                          \
    .formula = text,                                                                           \
    .n_in_min = 1,                                                                             \
    .n_in_max = 1,                                                                             \
    .n_out = 1,                                                                                \
    .flags = TD_OP_VIEW,                                                                       \
    .in_names = td__names_x,                                                                   \
    .attrs_size = sizeof (Attrs),                                                              \
    .attrs = list,                                                                             \
    .n_attrs = 1,                                                                              \
    .infer = check,                                                                            \
    .backward = view_backward,                                                                 \
  }

VIEW_CLASS (reshape, "Reshape", "x under another shape", ReshapeAttrs, reshape_attrs,
            reshape_infer);
VIEW_CLASS (expand_dims, "ExpandDims", "x with a new axis of size 1", AxisAttrs, axis_attrs,
            expand_dims_infer);
VIEW_CLASS (squeeze, "Squeeze", "x without axes of size 1", AxisAttrs, axis_attrs,
            squeeze_infer);

TdVar *
td_reshape_at (TdVar *x, TdShape shape, const TdSite *site)
{
  ReshapeAttrs attrs = { 0 };

  attrs.shape.ndim = shape.ndim;
  for (int i = 0; i < shape.ndim && i < TD_MAX_DIMS; i++)
    attrs.shape.dim[i] = shape.dim[i];
  return td__apply1 (&td__reshape_class, &attrs, site, x);
}

TdVar *
td_reshape (TdVar *x, TdShape shape)
{
  return td_reshape_at (x, shape, NULL);
}

TdVar *
td_flatten_at (TdVar *x, const TdSite *site)
{
  return td_reshape_at (x, TD_SHAPE (-1), site);
}

TdVar *
td_flatten (TdVar *x)
{
  return td_flatten_at (x, NULL);
}

TdVar *
td_expand_dims_at (TdVar *x, int axis, const TdSite *site)
{
  const AxisAttrs attrs = { axis };

  return td__apply1 (&td__expand_dims_class, &attrs, site, x);
}

TdVar *
td_expand_dims (TdVar *x, int axis)
{
  return td_expand_dims_at (x, axis, NULL);
}

TdVar *
td_squeeze_axis_at (TdVar *x, int axis, const TdSite *site)
{
  const AxisAttrs attrs = { axis };

  return td__apply1 (&td__squeeze_class, &attrs, site, x);
}

TdVar *
td_squeeze_axis (TdVar *x, int axis)
{
  return td_squeeze_axis_at (x, axis, NULL);
}

TdVar *
td_squeeze_at (TdVar *x, const TdSite *site)
{
  return td_squeeze_axis_at (x, ALL_AXES, site);
}

TdVar *
td_squeeze (TdVar *x)
{
  return td_squeeze_axis_at (x, ALL_AXES, NULL);
}
