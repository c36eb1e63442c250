/* Another element type, and an equal array in memory of its own.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

typedef struct
{
  int dtype;
} CastAttrs;

static const TdAttr cast_attrs[]
    = { { "typ", TD_ATTR_DTYPE, offsetof (CastAttrs, dtype), 0, 0, NULL } };

static TdStatus
cast_infer (TdOpCall *call)
{
  int dtype = ((const CastAttrs *)call->attrs)->dtype;

  if (dtype < 0 || dtype > TD_BOOL)
    return td_op_fail_operands (call, TD_ERR_ARG, "a known dtype expected, got %d", dtype);
  return td_op_out (call, 0, (TdDtype)dtype, call->in[0].shape);
}

static TdStatus
cast_forward (TdOpCall *call)
{
  return call->device->ops->cast (call->device, &call->in[0], &call->out[0]);
}

static TdStatus
cast_backward (TdBackward *b)
{
  b->gx[0] = td_cast (b->gy[0], td_backward_in_dtype (b, 0));
  return TD_OK;
}

const TdOpClass td__cast_class = {
  .name = "cast",
  .label = "Cast",
  .group = "array",
  .formula = "x as another element type",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .flags = TD_OP_ELEMENTWISE,
  .in_names = td__names_x,
  .attrs_size = sizeof (CastAttrs),
  .attrs = cast_attrs,
  .n_attrs = 1,
  .infer = cast_infer,
  .forward = cast_forward,
  .backward = cast_backward,
};

TdVar *
td_cast_at (TdVar *x, TdDtype dtype, const TdSite *site)
{
  const CastAttrs attrs = { (int)dtype };

  return td__apply1 (&td__cast_class, &attrs, site, x);
}

TdVar *
td_cast (TdVar *x, TdDtype dtype)
{
  return td_cast_at (x, dtype, NULL);
}

static TdStatus
copy_infer (TdOpCall *call)
{
  return td_op_out (call, 0, call->in[0].dtype, call->in[0].shape);
}

static TdStatus
copy_forward (TdOpCall *call)
{
  const TdTensor *x = &call->in[0];

  return call->device->ops->copy (call->device, call->out[0].data, x->data,
                                  (size_t)x->size * td_dtype_bytes (x->dtype));
}

static TdStatus
copy_backward (TdBackward *b)
{
  b->gx[0] = b->gy[0];
  return TD_OK;
}

const TdOpClass td__copy_class = {
  .name = "copy",
  .label = "Copy",
  .group = "array",
  .formula = "x in memory of its own",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .flags = TD_OP_ELEMENTWISE,
  .in_names = td__names_x,
  .infer = copy_infer,
  .forward = copy_forward,
  .backward = copy_backward,
};

TD_OP_FUNCTIONS_1 (copy)
