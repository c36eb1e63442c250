/* Cutting along an axis, into equal pieces or at given places.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"
#include "../core/copy-parts.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MAX_INDICES = 511 /* of one operation; more are cut in two steps */
};

typedef struct
{
  int sections, axis;
} SplitAttrs;

typedef struct
{
  int axis, n;
  int indices[MAX_INDICES];
} IndicesAttrs;

static const TdAttr split_attrs[] = {
  { "indices_or_sections", TD_ATTR_INT, offsetof (SplitAttrs, sections), 0, 0, NULL },
  { "axis", TD_ATTR_INT, offsetof (SplitAttrs, axis), 0, 0, NULL },
};

static const TdAttr indices_attrs[] = {
  { "indices_or_sections", TD_ATTR_INTS, offsetof (IndicesAttrs, indices), 0,
    offsetof (IndicesAttrs, n), NULL },
  { "axis", TD_ATTR_INT, offsetof (IndicesAttrs, axis), 0, 0, "0" },
};

static TdStatus
split_infer (TdOpCall *call)
{
  const SplitAttrs *a = call->attrs;
  TdShape shape = *call->in[0].shape;
  int axis = td__axis (a->axis, shape.ndim);

  if (axis < 0)
    return td_op_fail_operands (call, TD_ERR_SHAPE,
                                "-x.ndim <= axis < x.ndim expected, got axis %d", a->axis);
  if (a->sections != call->n_out || shape.dim[axis] % a->sections != 0)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "x.shape[%d] %% %d == 0 expected", axis,
                                a->sections);
  shape.dim[axis] /= a->sections;
  for (int k = 0; k < call->n_out; k++)
    if (td_op_out (call, k, call->in[0].dtype, &shape) != TD_OK)
      return TD_ERR_SHAPE;
  return TD_OK;
}

/* Along the first axis pieces lie one after the other. */
static TdStatus
cut_in_line (TdOpCall *call)
{
  TdCopyParts parts = { .device = call->device };
  const char *from = call->in[0].data;

  for (int k = 0; k < call->n_out; k++)
    {
      const size_t bytes = (size_t)call->out[k].size * td_dtype_bytes (call->out[k].dtype);

      td__copy_parts_add (&parts, call->out[k].data, from, bytes);
      from += bytes;
    }
  return td__copy_parts_end (&parts);
}

/* Piece by piece, as long as their shapes say.  Kernels that copy by strides can gather
 * statistics of what they write meanwhile. */
static TdStatus
cut (TdOpCall *call, int axis)
{
  TdStrides walk = { 0 };
  TdStatus status = TD_OK;

  if (axis == 0 && call->device->ops->copy_parts != NULL && !call->device->stats_wanted)
    return cut_in_line (call);
  td__row_major (call->in[0].shape, walk.stride);
  for (int k = 0; status == TD_OK && k < call->n_out; k++)
    {
      status = call->device->ops->strided (call->device, TD_STRIDED_READ, &call->in[0], &walk,
                                           &call->out[k]);
      walk.offset += call->out[k].shape->dim[axis] * walk.stride[axis];
    }
  return status;
}

static TdStatus
split_forward (TdOpCall *call)
{
  const SplitAttrs *a = call->attrs;

  return cut (call, td__axis (a->axis, call->in[0].shape->ndim));
}

/* Pieces that no gradient came to count as zeros; they may be gone, so their sizes along the
 * axis are given: `ends`, or equal ones. */
static TdStatus
join (TdBackward *b, int given_axis, const int *ends)
{
  TdShape shape = *td_backward_in_shape (b, 0);
  const int axis = td__axis (given_axis, shape.ndim);
  const int64_t size = shape.dim[axis];
  TdVar **gys = calloc ((size_t)b->n_out, sizeof *gys);
  TdVar *some = NULL;
  int64_t from = 0;

  if (gys == NULL)
    return TD_ERR_MEMORY;
  for (int k = 0; k < b->n_out; k++)
    some = b->gy[k] != NULL ? b->gy[k] : some;
  for (int k = 0; k < b->n_out; k++)
    {
      const int64_t to = ends == NULL       ? from + size / b->n_out
                         : k < b->n_out - 1 ? ends[k]
                                            : size;

      shape.dim[axis] = to - from;
      gys[k] = b->gy[k] != NULL ? b->gy[k] : td_broadcast_to (td__number_like (some, 0), shape);
      from = to;
    }
  b->gx[0] = td_concat (gys, b->n_out, axis);
  free (gys);
  return TD_OK;
}

static TdStatus
split_backward (TdBackward *b)
{
  return join (b, ((const SplitAttrs *)b->attrs)->axis, NULL);
}

const TdOpClass td__split_axis_class = {
  .name = "split_axis",
  .label = "SplitAxis",
  .group = "array",
  .formula = "equal pieces of x along axis",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = -1,
  .in_names = td__names_x,
  .attrs_size = sizeof (SplitAttrs),
  .attrs = split_attrs,
  .n_attrs = TD_ARRAY_LENGTH (split_attrs),
  .infer = split_infer,
  .forward = split_forward,
  .backward = split_backward,
};

TdStatus
td_split_axis_at (TdVar *x, int sections, int axis, TdVar **out, const TdSite *site)
{
  const SplitAttrs attrs = { sections, axis };

  if (sections < 1)
    return td__fail (TD_ERR_ARG, "split_axis", site, "sections > 0 expected, got %d", sections);
  if (!td__list_there (out, sections, "split_axis", site))
    return td__error_status ();
  return td__apply_at (&td__split_axis_class, &attrs, &x, 1, out, sections, site);
}

TdStatus
td_split_axis (TdVar *x, int sections, int axis, TdVar **out)
{
  return td_split_axis_at (x, sections, axis, out, NULL);
}

/* --- at given places --- */

static TdStatus
indices_infer (TdOpCall *call)
{
  const IndicesAttrs *a = call->attrs;
  TdShape shape = *call->in[0].shape;
  const int axis = td__axis (a->axis, shape.ndim);
  TdStatus status = TD_OK;
  int64_t size, from = 0;

  if (axis < 0)
    return td_op_fail_operands (call, TD_ERR_SHAPE,
                                "-x.ndim <= axis < x.ndim expected, got axis %d", a->axis);
  if (a->n < 0 || a->n > MAX_INDICES || call->n_out != a->n + 1)
    return td_op_fail (call, TD_ERR_ARG, "one output more than indices expected, got %d and %d",
                       call->n_out, a->n);
  size = shape.dim[axis];
  for (int k = 0; status == TD_OK && k < call->n_out; k++)
    {
      const int64_t to = k < a->n ? a->indices[k] : size;

      if (to < from || to > size)
        return td_op_fail_operands (
            call, TD_ERR_ARG,
            "indices that rise from 0 to x.shape[%d] expected, got %lld "
            "after %lld",
            axis, (long long)to, (long long)from);
      shape.dim[axis] = to - from;
      from = to;
      status = td_op_out (call, k, call->in[0].dtype, &shape);
    }
  return status;
}

static TdStatus
indices_forward (TdOpCall *call)
{
  const IndicesAttrs *a = call->attrs;

  return cut (call, td__axis (a->axis, call->in[0].shape->ndim));
}

static TdStatus
indices_backward (TdBackward *b)
{
  const IndicesAttrs *a = b->attrs;

  return join (b, a->axis, a->indices);
}

const TdOpClass td__split_axis_indices_class = {
  .name = "split_axis_indices",
  .label = "SplitAxis",
  .group = "array",
  .formula = "x cut at places along axis",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = -1,
  .in_names = td__names_x,
  .attrs_size = sizeof (IndicesAttrs),
  .attrs = indices_attrs,
  .n_attrs = TD_ARRAY_LENGTH (indices_attrs),
  .infer = indices_infer,
  .forward = indices_forward,
  .backward = indices_backward,
};

static TdStatus
cut_few (TdVar *x, const int64_t *indices, int n, int64_t from, int axis, TdVar **out,
         const TdSite *site)
{
  IndicesAttrs attrs;

  memset (&attrs, 0, sizeof attrs);
  attrs.axis = axis;
  attrs.n = n;
  for (int k = 0; k < n; k++)
    {
      const int64_t at = indices[k] - from;

      attrs.indices[k] = at < -1 ? -1 : at > INT_MAX ? INT_MAX : (int)at;
    }
  return td__apply_at (&td__split_axis_indices_class, &attrs, &x, 1, out, n + 1, site);
}

TdStatus
td_split_axis_indices_at (TdVar *x, const int64_t *indices, int n, int axis, TdVar **out,
                          const TdSite *site)
{
  TdStatus status = TD_OK;
  int64_t from = 0;

  if (n < 0)
    return td__fail (TD_ERR_ARG, "split_axis_indices", site, "n >= 0 expected, got %d", n);
  if (!td__list_there (indices, n, "split_axis_indices", site)
      || !td__list_there (out, n + 1, "split_axis_indices", site))
    return td__error_status ();
  while (status == TD_OK && n > MAX_INDICES)
    {
      TdVar *both[2];
      const int64_t at = indices[MAX_INDICES];

      status = cut_few (x, &at, 1, from, axis, both, site);
      cut_few (both[0], indices, MAX_INDICES, from, axis, out, site);
      x = both[1];
      from = at;
      indices += MAX_INDICES + 1;
      out += MAX_INDICES + 1;
      n -= MAX_INDICES + 1;
    }
  if (status == TD_OK)
    return cut_few (x, indices, n, from, axis, out, site);
  for (int k = 0; k <= n; k++)
    out[k] = td__poison ();
  return status;
}

TdStatus
td_split_axis_indices (TdVar *x, const int64_t *indices, int n, int axis, TdVar **out)
{
  return td_split_axis_indices_at (x, indices, n, axis, out, NULL);
}

TdStatus
td_separate_at (TdVar *x, int axis, TdVar **out, const TdSite *site)
{
  TdShape shape;
  TdStatus status;
  int n, at;

  if (!td__var_usable (x, "separate", site))
    return td__engine.has_error ? td__engine.error.status : TD_ERR_STATE;
  shape = td_shape (x);
  at = td__axis (axis, shape.ndim);
  if (at < 0 || shape.dim[at] < 1 || shape.dim[at] > INT_MAX)
    return td__fail (TD_ERR_SHAPE, "separate", site,
                     "-x.ndim <= axis < x.ndim and an axis that is not empty expected, got %d",
                     axis);
  n = (int)shape.dim[at];
  if (!td__list_there (out, n, "separate", site))
    return td__error_status ();
  status = td_split_axis_at (x, n, axis, out, site);
  for (int i = at + 1; i < shape.ndim; i++)
    shape.dim[i - 1] = shape.dim[i];
  shape.ndim--;
  for (int k = 0; k < n; k++)
    out[k] = td_reshape_at (out[k], shape, site);
  return status;
}

TdStatus
td_separate (TdVar *x, int axis, TdVar **out)
{
  return td_separate_at (x, axis, out, NULL);
}
