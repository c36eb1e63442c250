/* Dropout.  The mask is not kept: its place in the random stream is an attribute, so backward,
 * and the gradient of that, are the same operation on other numbers.
 *
 * SPDX-License-Identifier: MIT */
#include "layers.h"

typedef struct
{
  TdRngKey key;
  double ratio;
} Attrs;

static const TdAttr attr_table[] = {
  { "seed", TD_ATTR_U64, offsetof (Attrs, key.seed), 0, 0, NULL },
  { "offset", TD_ATTR_U64, offsetof (Attrs, key.offset), 0, 0, NULL },
  { "ratio", TD_ATTR_DOUBLE, offsetof (Attrs, ratio), 0, 0, "0.5" },
};

static TdStatus
infer (TdOpCall *call)
{
  return td__infer_mask (call, ((const Attrs *)call->attrs)->ratio);
}

static TdStatus
forward (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  TdDevice *d = call->device;
  const size_t bytes = (size_t)call->out[0].size * td_dtype_bytes (call->out[0].dtype);
  const bool reordered = call->out[0].layout != TD_ROW_MAJOR;
  TdTensor mask = call->out[0], drawn = mask;
  TdStatus status;

  if (d->ops->dropout != NULL && !reordered)
    return d->ops->dropout (d, a->key, a->ratio, &call->in[0], &call->out[0]);
  /* The stream's numbers belong to elements, wherever these lie. */
  mask.data = td_op_workspace (call, reordered ? 2 * bytes : bytes);
  if (mask.data == NULL)
    return TD_ERR_MEMORY;
  drawn.data = reordered ? (char *)mask.data + bytes : mask.data;
  drawn.layout = TD_ROW_MAJOR;
  status = d->ops->random (d, TD_RANDOM_MASK, a->key, a->ratio, &drawn);
  if (status == TD_OK && reordered)
    status = td__layout_copy (d, &drawn, &mask);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_MUL, &call->in[0], &mask, &call->out[0], false);
  return status;
}

static TdStatus
backward (TdBackward *b)
{
  b->gx[0] = td__apply1 (&td__dropout_class, b->attrs, NULL, b->gy[0]);
  return TD_OK;
}

/* *Source*: chainer.functions.dropout. */
const TdOpClass td__dropout_class = {
  .name = "dropout",
  .label = "Dropout",
  .group = "noise",
  .formula = "x mask / (1 - ratio)",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .flags = TD_OP_RANDOM | TD_OP_ELEMENTWISE | TD_OP_LAYOUTS,
  .in_names = td__names_x,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = 3,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

TdVar *
td_dropout_at (TdVar *x, double ratio, const TdSite *site)
{
  Attrs attrs = { { 0, 0 }, ratio };

  if (!td_config ()->train)
    return x;
  if (!td_poisoned (x))
    attrs.key = td__rng_take ((uint64_t)td_size (x));
  return td__apply1 (&td__dropout_class, &attrs, site, x);
}

TdVar *
td_dropout (TdVar *x, double ratio)
{
  return td_dropout_at (x, ratio, NULL);
}
