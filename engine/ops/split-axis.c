/* Cutting into equal pieces along an axis.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

#include <stdlib.h>

typedef struct
{
  int sections, axis;
} SplitAttrs;

static const TdAttr split_attrs[] = {
  { "indices_or_sections", TD_ATTR_INT, offsetof (SplitAttrs, sections), 0, 0, NULL },
  { "axis", TD_ATTR_INT, offsetof (SplitAttrs, axis), 0, 0, NULL },
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

static TdStatus
split_forward (TdOpCall *call)
{
  const SplitAttrs *a = call->attrs;
  const TdShape *x = call->in[0].shape;
  int axis = td__axis (a->axis, x->ndim);
  TdStrides walk = { 0 };

  td__row_major (x, walk.stride);
  for (int k = 0; k < call->n_out; k++)
    {
      TdStatus status = call->device->ops->strided (call->device, TD_STRIDED_READ, &call->in[0],
                                                    &walk, &call->out[k]);

      if (status != TD_OK)
        return status;
      walk.offset += x->dim[axis] / a->sections * walk.stride[axis];
    }
  return TD_OK;
}

/* Pieces that no gradient came to count as zeros. */
static TdStatus
split_backward (TdBackward *b)
{
  const SplitAttrs *a = b->attrs;
  TdVar **gys = calloc ((size_t)b->n_out, sizeof *gys);
  TdVar *some = NULL;

  if (gys == NULL)
    return TD_ERR_MEMORY;
  for (int k = 0; k < b->n_out; k++)
    some = b->gy[k] != NULL ? b->gy[k] : some;
  for (int k = 0; k < b->n_out; k++)
    gys[k] = b->gy[k] != NULL ? b->gy[k] : td__zeros_like (some);
  b->gx[0] = td_concat (gys, b->n_out, a->axis);
  free (gys);
  return TD_OK;
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
  return td_apply_at (&td__split_axis_class, &attrs, &x, 1, out, sections, site);
}

TdStatus
td_split_axis (TdVar *x, int sections, int axis, TdVar **out)
{
  return td_split_axis_at (x, sections, axis, out, NULL);
}
