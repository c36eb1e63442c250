/* Repeating: each element along an axis, its gradient, and whole arrays (tile).
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct
{
  int repeats, axis;
} Attrs;

static const TdAttr repeat_attrs[] = {
  { "repeats", TD_ATTR_INT, offsetof (Attrs, repeats), 0, 0, NULL },
  { "axis", TD_ATTR_INT, offsetof (Attrs, axis), 0, 0, "0" },
};
static const char *const names_gy[] = { "gy" };

/* The repeated side as (outer, n, repeats, inner), `shape` being the other one's. */
static TdShape
view (const TdShape *shape, int axis, int repeats)
{
  TdShape v = TD_SHAPE (1, shape->dim[axis], repeats, 1);

  for (int i = 0; i < axis; i++)
    v.dim[0] *= shape->dim[i];
  for (int i = axis + 1; i < shape->ndim; i++)
    v.dim[3] *= shape->dim[i];
  return v;
}

static TdStatus
check (const TdOpCall *call, int *axis)
{
  const Attrs *a = call->attrs;

  *axis = td__axis (a->axis, call->in[0].shape->ndim);
  if (*axis < 0)
    return td_op_fail_operands (call, TD_ERR_SHAPE,
                                "-%s.ndim <= axis < %s.ndim expected, got axis %d",
                                call->cls->in_names[0], call->cls->in_names[0], a->axis);
  if (a->repeats < 0)
    return td_op_fail (call, TD_ERR_ARG, "repeats >= 0 expected, got %d", a->repeats);
  return TD_OK;
}

static TdStatus
infer (TdOpCall *call)
{
  TdShape shape = *call->in[0].shape;
  int axis;
  const TdStatus status = check (call, &axis);

  if (status != TD_OK)
    return status;
  if (__builtin_mul_overflow (shape.dim[axis], ((const Attrs *)call->attrs)->repeats,
                              &shape.dim[axis]))
    shape.dim[axis] = INT64_MAX; /* refused by td_op_out */
  return td_op_out (call, 0, call->in[0].dtype, &shape);
}

static TdStatus
forward (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  const int axis = td__axis (a->axis, call->in[0].shape->ndim);
  TdShape v = view (call->in[0].shape, axis, a->repeats);
  const TdStrides walk = { 0, { v.dim[1] * v.dim[3], v.dim[3], 0, 1 } };
  TdTensor y = call->out[0];

  y.shape = &v;
  return call->device->ops->strided (call->device, TD_STRIDED_READ, &call->in[0], &walk, &y);
}

static TdStatus
backward (TdBackward *b)
{
  b->gx[0] = td__apply1 (&td__repeat_grad_class, b->attrs, NULL, b->gy[0]);
  return TD_OK;
}

/* *Source*: chainer.functions.repeat. */
const TdOpClass td__repeat_class = {
  .name = "repeat",
  .label = "Repeat",
  .group = "array",
  .formula = "each element of an axis several times",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .in_names = td__names_x,
  .attrs_size = sizeof (Attrs),
  .attrs = repeat_attrs,
  .n_attrs = 2,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

static TdStatus
grad_infer (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  TdShape shape = *call->in[0].shape;
  int axis;
  const TdStatus status = check (call, &axis);

  if (status != TD_OK)
    return status;
  if (!td__is_number (call->in[0].dtype))
    return td_op_fail_operands (call, TD_ERR_DTYPE, "a floating-point or signed gy expected");
  if (a->repeats < 1 || shape.dim[axis] % a->repeats != 0)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "gy.shape[%d] %% %d == 0 expected", axis,
                                a->repeats);
  shape.dim[axis] /= a->repeats;
  return td_op_out (call, 0, call->in[0].dtype, &shape);
}

static TdStatus
grad_forward (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  const int axis = td__axis (a->axis, call->in[0].shape->ndim);
  TdShape v = view (call->out[0].shape, axis, a->repeats);
  TdShape sums = TD_SHAPE (v.dim[0], v.dim[1], v.dim[3]);
  TdTensor gy = call->in[0], gx = call->out[0];

  gy.shape = &v;
  gx.shape = &sums;
  return call->device->ops->reduce (call->device, TD_REDUCE_SUM, 1u << 2, &gy, &gx, false);
}

static TdStatus
grad_backward (TdBackward *b)
{
  b->gx[0] = td__apply1 (&td__repeat_class, b->attrs, NULL, b->gy[0]);
  return TD_OK;
}

const TdOpClass td__repeat_grad_class = {
  .name = "repeat_grad",
  .label = "RepeatGrad",
  .group = "array",
  .formula = "sums of several neighbours along an axis",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .in_names = names_gy,
  .attrs_size = sizeof (Attrs),
  .attrs = repeat_attrs,
  .n_attrs = 2,
  .infer = grad_infer,
  .forward = grad_forward,
  .backward = grad_backward,
};

/* Each element its own number of times: rows by an index that names them as often. */
static TdVar *
repeat_each (TdVar *x, const int *repeats, int n, int axis, const TdSite *site)
{
  const TdShape shape = td_shape (x);
  const int at = td__axis (axis, shape.ndim);
  int64_t total = 0, *rows;
  TdVar *index, *y;

  if (at < 0 || shape.dim[at] != n)
    {
      td__fail (TD_ERR_SHAPE, "repeat", site,
                "one number of repeats for each of axis %d expected, got %d", axis, n);
      return td__poison ();
    }
  for (int i = 0; i < n; i++)
    {
      if (repeats[i] < 0)
        {
          td__fail (TD_ERR_ARG, "repeat", site, "repeats >= 0 expected, got %d", repeats[i]);
          return td__poison ();
        }
      total += repeats[i];
    }
  rows = malloc ((size_t)(total + 1) * sizeof *rows);
  if (rows == NULL)
    {
      td__fail (TD_ERR_MEMORY, "repeat", site, "no host memory for %lld indices",
                (long long)total);
      return td__poison ();
    }
  for (int64_t i = 0, k = 0; i < n; i++)
    for (int j = 0; j < repeats[i]; j++)
      rows[k++] = i;
  index = td_to_device (td_tensor_at (TD_I64, TD_SHAPE (total), rows, site), td_device (x));
  free (rows);
  y = td_get_item_arrays_at (x, &index, 1, at, site);
  return y;
}

TdVar *
td_repeat_at (TdVar *x, const int *repeats, int n_repeats, int axis, const TdSite *site)
{
  Attrs attrs = { 0, axis };

  if (!td__var_usable (x, "repeat", site))
    return td__poison ();
  if (n_repeats < 1)
    {
      td__fail (TD_ERR_ARG, "repeat", site, "a number of repeats expected");
      return td__poison ();
    }
  if (axis == TD_NO_AXIS)
    {
      x = td_flatten_at (x, site);
      attrs.axis = axis = 0;
    }
  if (n_repeats > 1)
    return repeat_each (x, repeats, n_repeats, axis, site);
  attrs.repeats = repeats[0];
  return td__apply1 (&td__repeat_class, &attrs, site, x);
}

TdVar *
td_repeat (TdVar *x, const int *repeats, int n_repeats, int axis)
{
  return td_repeat_at (x, repeats, n_repeats, axis, NULL);
}

/* --- whole arrays --- */

typedef struct
{
  int reps[TD_MAX_DIMS];
  int n;
} TileAttrs;

static const TdAttr tile_attrs[] = {
  { "reps", TD_ATTR_INTS, offsetof (TileAttrs, reps), 0, offsetof (TileAttrs, n), NULL },
};

/* The result, and the same with an axis of its own for each that is repeated: `apart`, with how
 * to walk over x and which of its axes repeat.  False if there are too many. */
static bool
tile_shapes (const TileAttrs *a, const TdShape *x, TdShape *y, TdShape *apart, TdStrides *walk,
             uint32_t *mask)
{
  int64_t stride[TD_MAX_DIMS];

  *y = *apart = (TdShape){ 0 };
  *walk = (TdStrides){ 0 };
  *mask = 0;
  td__row_major (x, stride);
  y->ndim = a->n > x->ndim ? a->n : x->ndim;
  for (int i = 0; i < y->ndim; i++)
    {
      const int of_x = i - (y->ndim - x->ndim), of_reps = i - (y->ndim - a->n);
      const int64_t n = of_x < 0 ? 1 : x->dim[of_x], r = of_reps < 0 ? 1 : a->reps[of_reps];

      if (apart->ndim + (r != 1) + (n != 1) > TD_MAX_DIMS)
        return false;
      if (__builtin_mul_overflow (n, r, &y->dim[i]))
        y->dim[i] = INT64_MAX;
      if (r != 1)
        {
          *mask |= 1u << apart->ndim;
          apart->dim[apart->ndim++] = r;
        }
      if (n != 1)
        {
          walk->stride[apart->ndim] = stride[of_x];
          apart->dim[apart->ndim++] = n;
        }
    }
  return true;
}

static TdStatus
tile_infer (TdOpCall *call)
{
  const TileAttrs *a = call->attrs;
  TdShape y, apart;
  TdStrides walk;
  uint32_t mask;

  for (int i = 0; i < a->n; i++)
    if (a->reps[i] < 0)
      return td_op_fail (call, TD_ERR_ARG, "reps >= 0 expected, got %d", a->reps[i]);
  if (!tile_shapes (a, call->in[0].shape, &y, &apart, &walk, &mask))
    return td_op_fail_operands (call, TD_ERR_SHAPE,
                                "at most %d axes, those repeated counted twice, expected",
                                TD_MAX_DIMS);
  return td_op_out (call, 0, call->in[0].dtype, &y);
}

static TdStatus
tile_forward (TdOpCall *call)
{
  TdTensor out = call->out[0];
  TdShape y, apart;
  TdStrides walk;
  uint32_t mask;

  tile_shapes (call->attrs, call->in[0].shape, &y, &apart, &walk, &mask);
  out.shape = &apart;
  return call->device->ops->strided (call->device, TD_STRIDED_READ, &call->in[0], &walk, &out);
}

static TdStatus
tile_backward (TdBackward *b)
{
  const TdShape *x = td_backward_in_shape (b, 0);
  TdShape y, apart;
  TdStrides walk;
  uint32_t mask;
  int axes[TD_MAX_DIMS], n = 0;

  tile_shapes (b->attrs, x, &y, &apart, &walk, &mask);
  for (int i = 0; i < apart.ndim; i++)
    if (mask >> i & 1)
      axes[n++] = i;
  b->gx[0] = td_reshape (b->gy[0], apart);
  if (n > 0)
    b->gx[0] = td_sum_axes (b->gx[0], axes, n, false);
  b->gx[0] = td_reshape (b->gx[0], *x);
  return TD_OK;
}

/* *Source*: chainer.functions.tile. */
const TdOpClass td__tile_class = {
  .name = "tile",
  .label = "Tile",
  .group = "array",
  .formula = "x several times along each axis",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .in_names = td__names_x,
  .attrs_size = sizeof (TileAttrs),
  .attrs = tile_attrs,
  .n_attrs = 1,
  .infer = tile_infer,
  .forward = tile_forward,
  .backward = tile_backward,
};

TdVar *
td_tile_at (TdVar *x, const int *reps, int n_reps, const TdSite *site)
{
  TileAttrs attrs;

  memset (&attrs, 0, sizeof attrs);
  if (n_reps < 0 || n_reps > TD_MAX_DIMS)
    {
      td__fail (TD_ERR_ARG, "tile", site, "0 to %d reps expected, got %d", TD_MAX_DIMS, n_reps);
      return td__poison ();
    }
  if (!td__list_there (reps, n_reps, "tile", site))
    return td__poison ();
  attrs.n = n_reps;
  for (int i = 0; i < n_reps; i++)
    attrs.reps[i] = reps[i];
  return td__apply1 (&td__tile_class, &attrs, site, x);
}

TdVar *
td_tile (TdVar *x, const int *reps, int n_reps)
{
  return td_tile_at (x, reps, n_reps, NULL);
}
