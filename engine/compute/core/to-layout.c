/* to_layout: an array with its elements in another order in memory.  Logically it is the same
 * array.
 *
 * SPDX-License-Identifier: MIT */
#include "operands.h"
#include "walk.h"

typedef struct
{
  int layout; /* a TdLayout */
} Attrs;

static const char *const layouts[] = { "row_major", "channels_last", NULL };
static const TdAttr attr_table[] = {
  { "layout", TD_ATTR_CHOICE, offsetof (Attrs, layout), 0, 0, "channels_last", layouts },
};

static TdStatus
infer (TdOpCall *call)
{
  const int layout = ((const Attrs *)call->attrs)->layout;
  TdStatus status;

  if (layout != TD_ROW_MAJOR && layout != TD_CHANNELS_LAST)
    return td_op_fail (call, TD_ERR_ARG, "a layout expected, got %d", layout);
  status = td_op_out (call, 0, call->in[0].dtype, call->in[0].shape);
  call->out[0].layout
      = (uint8_t)(td__layout_fits_both (call->in[0].shape) ? TD_ROW_MAJOR : layout);
  return status;
}

TdStatus
td__layout_copy (TdDevice *d, const TdTensor *from, TdTensor *to)
{
  TdShape x_sizes, y_sizes;
  const TdStrides walk = td__layout_walk (from->shape, (TdLayout)from->layout,
                                          (TdLayout)to->layout, &x_sizes, &y_sizes);
  TdTensor x = *from, y = *to;

  x.shape = &x_sizes;
  y.shape = &y_sizes;
  x.layout = y.layout = TD_ROW_MAJOR;
  return d->ops->strided (d, TD_STRIDED_READ, &x, &walk, &y);
}

static TdStatus
forward (TdOpCall *call)
{
  return td__layout_copy (call->device, &call->in[0], &call->out[0]);
}

/* Back to the layout of x. */
static TdStatus
backward (TdBackward *b)
{
  b->gx[0] = td__to_layout (b->gy[0], td__backward_in_layout (b, 0), NULL);
  return TD_OK;
}

const TdOpClass td__to_layout_class = {
  .name = "to_layout",
  .label = "ToLayout",
  .group = "array",
  .formula = "x, its elements in another order in memory",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .in_names = td__names_x,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = 1,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

TdVar *
td__to_layout (TdVar *v, TdLayout layout, const TdSite *site)
{
  const Attrs attrs = { (int)layout };

  if (td_poisoned (v) || v->node->layout == layout || td__layout_fits_both (&v->node->shape))
    return v;
  return td__apply1 (&td__to_layout_class, &attrs, site, v);
}

TdVar *
td__gradient_again (TdVar *g)
{
  const Attrs attrs = { g->node->layout };

  return td__apply1 (&td__to_layout_class, &attrs, NULL, g);
}
