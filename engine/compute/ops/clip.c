/* x limited to [min, max], NaN stays; and the mask of what lies inside, which has no gradient.
 *
 * SPDX-License-Identifier: MIT */
#include "ops.h"

typedef struct
{
  double min, max;
} ClipAttrs;

static const TdAttr clip_attrs[] = {
  { "x_min", TD_ATTR_DOUBLE, offsetof (ClipAttrs, min), 0, 0, NULL },
  { "x_max", TD_ATTR_DOUBLE, offsetof (ClipAttrs, max), 0, 0, NULL },
};

static TdStatus
clip_infer (TdOpCall *call)
{
  const ClipAttrs *a = call->attrs;

  if (!(a->min <= a->max))
    return td_op_fail_operands (call, TD_ERR_ARG, "x_min <= x_max expected, got %g and %g",
                                a->min, a->max);
  return td__infer_float (call);
}

static TdStatus
unary (TdOpCall *call, TdUnaryKind kind)
{
  const ClipAttrs *a = call->attrs;

  return call->device->ops->unary (call->device, kind, a->min, a->max, &call->in[0],
                                   &call->out[0]);
}

static TdStatus
clip_forward (TdOpCall *call)
{
  return unary (call, TD_UNARY_CLIP);
}

static TdStatus
inside_forward (TdOpCall *call)
{
  return unary (call, TD_UNARY_INSIDE);
}

static TdStatus
clip_backward (TdBackward *b)
{
  TdVar *inside = td__apply1 (&td__clip_inside_class, b->attrs, NULL, td_backward_input (b, 0));

  b->gx[0] = td_where (inside, b->gy[0], td__number_like (b->gy[0], 0));
  return TD_OK;
}

const TdOpClass td__clip_class = {
  .name = "clip",
  .label = "Clip",
  .group = "math",
  .formula = "min (max (x, x_min), x_max)",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .flags = TD_OP_ELEMENTWISE,
  .retain_in = 1,
  .in_names = td__names_x,
  .attrs_size = sizeof (ClipAttrs),
  .attrs = clip_attrs,
  .n_attrs = TD_ARRAY_LENGTH (clip_attrs),
  .infer = clip_infer,
  .forward = clip_forward,
  .backward = clip_backward,
};

const TdOpClass td__clip_inside_class = {
  .name = "clip_inside",
  .label = "ClipInside",
  .group = "math",
  .formula = "1 where x_min <= x <= x_max, else 0",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .flags = TD_OP_ELEMENTWISE | TD_OP_NO_GRAD,
  .in_names = td__names_x,
  .attrs_size = sizeof (ClipAttrs),
  .attrs = clip_attrs,
  .n_attrs = TD_ARRAY_LENGTH (clip_attrs),
  .infer = clip_infer,
  .forward = inside_forward,
};

TdVar *
td_clip_at (TdVar *x, double min, double max, const TdSite *site)
{
  const ClipAttrs attrs = { min, max };

  return td__apply1 (&td__clip_class, &attrs, site, x);
}

TdVar *
td_clip (TdVar *x, double min, double max)
{
  return td_clip_at (x, min, max, NULL);
}
