/* Rows of a matrix by index, and the gradient that adds rows back.
 *
 * SPDX-License-Identifier: MIT */
#include "compose.h"
#include "layers.h"

typedef struct
{
  int rows; /* of W */
} GradAttrs;

static const TdAttr grad_attrs[] = {
  { "rows", TD_ATTR_INT, offsetof (GradAttrs, rows), 0, 0, NULL },
};
static const char *const names[] = { "x", "W" };
static const char *const grad_names[] = { "x", "gy" };

static TdStatus
infer (TdOpCall *call)
{
  TdShape y = *call->in[0].shape;
  TdStatus status = td__check_integers (call, 0);

  if (status == TD_OK)
    status = td__check_floats (call, 2);
  if (status == TD_OK)
    status = td__check_ndim (call, 1, 2);
  if (status != TD_OK)
    return status;
  if (y.ndim == TD_MAX_DIMS)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "x.ndim < %d expected", TD_MAX_DIMS);
  if (call->in[1].shape->dim[0] > INT32_MAX)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "W.shape[0] <= %d expected", INT32_MAX);
  y.dim[y.ndim++] = call->in[1].shape->dim[1];
  return td_op_out (call, 0, call->in[1].dtype, &y);
}

static TdStatus
forward (TdOpCall *call)
{
  const TdStatus status = td__check_labels (call, 0, call->in[1].shape->dim[0], TD_NOT_A_LABEL);

  if (status != TD_OK)
    return status;
  return call->device->ops->gather_rows (call->device, &call->in[1], &call->in[0],
                                         &call->out[0]);
}

static TdStatus
backward (TdBackward *b)
{
  const GradAttrs attrs = { (int)td_backward_in_shape (b, 1)->dim[0] };

  if (td_backward_needs (b, 1))
    b->gx[1] = td__apply2 (&td__embed_id_grad_class, &attrs, NULL, td_backward_input (b, 0),
                           b->gy[0]);
  return TD_OK;
}

/* *Source*: chainer.functions.embed_id. */
const TdOpClass td__embed_id_class = {
  .name = "embed_id",
  .label = "EmbedIDFunction",
  .group = "connection",
  .formula = "W[x]",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .retain_in = 1,
  .no_grad_in = 1,
  .in_names = names,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

static TdStatus
grad_infer (TdOpCall *call)
{
  const TdShape *gy = call->in[1].shape;
  const TdShape gW = TD_SHAPE (((const GradAttrs *)call->attrs)->rows,
                               gy->dim[gy->ndim > 0 ? gy->ndim - 1 : 0]);

  return td_op_out (call, 0, call->in[1].dtype, &gW);
}

static TdStatus
grad_forward (TdOpCall *call)
{
  TdDevice *d = call->device;
  TdTensor *gW = &call->out[0];
  const TdStatus status
      = d->ops->zero (d, gW->data, (size_t)gW->size * td_dtype_bytes (gW->dtype));

  return status != TD_OK ? status
                         : d->ops->scatter_rows_add (d, &call->in[0], &call->in[1], gW);
}

static TdStatus
grad_backward (TdBackward *b)
{
  if (td_backward_needs (b, 1))
    b->gx[1] = td__apply2 (&td__embed_id_class, NULL, NULL, td_backward_input (b, 0), b->gy[0]);
  return TD_OK;
}

const TdOpClass td__embed_id_grad_class = {
  .name = "embed_id_grad",
  .label = "EmbedIDGrad",
  .group = "connection",
  .formula = "gW[x] += gy",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .retain_in = 1,
  .no_grad_in = 1,
  .in_names = grad_names,
  .attrs_size = sizeof (GradAttrs),
  .attrs = grad_attrs,
  .n_attrs = 1,
  .infer = grad_infer,
  .forward = grad_forward,
  .backward = grad_backward,
};

/* Ignored ids read row 0, and zeros take its place. */
TdVar *
td_embed_id_at (TdVar *x, TdVar *W, TdEmbedOpt options, const TdSite *site)
{
  const TdSite *outer = td__at (site);
  TdVar *ignored, *y;

  if (options.ignore_label == TD_NONE || td_dtype (x) < TD_I32 || td_dtype (x) > TD_I64)
    y = td_embed_id (x, W);
  else
    {
      ignored = td__equal (x, td__number_like (x, options.ignore_label));
      y = td_embed_id (td_where (ignored, td__number_like (x, 0), x), W);
      y = td_where (td_expand_dims (ignored, -1), td__number_like (y, 0), y);
    }
  td__at_end (outer);
  return y;
}

TdVar *
td_embed_id_ (TdVar *x, TdVar *W, const TdEmbedOpt *options)
{
  return td_embed_id_at (x, W, options != NULL ? *options : (TdEmbedOpt){ TD_EMBED_DEFAULTS },
                         NULL);
}

TdVar *
td_embed_id (TdVar *x, TdVar *W)
{
  return td__apply2 (&td__embed_id_class, NULL, NULL, x, W);
}
