/* Huber's loss: half the square within delta, straight lines outside.
 *
 * With c = x - t limited to [-delta, delta] it is c (x - t - c / 2), and c is its slope.
 *
 * SPDX-License-Identifier: MIT */
#include "losses.h"

typedef struct
{
  double delta;
  int reduce; /* 1: no */
} Attrs;

static const char *const reductions[] = { "sum_along_second_axis", "no", NULL };
static const TdAttr attr_table[] = {
  { "delta", TD_ATTR_DOUBLE, offsetof (Attrs, delta), 0, 0, NULL },
  { "reduce", TD_ATTR_CHOICE, offsetof (Attrs, reduce), 0, 0, "sum_along_second_axis",
    reductions },
};
static const char *const names[] = { "x", "t" };

static TdStatus
infer (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  const TdShape *x = call->in[0].shape;
  TdStatus status = td__check_floats (call, 3);
  TdShape rows = { 0 };

  if (status == TD_OK)
    status = td__check_same_shape (call, 0, 1);
  if (status != TD_OK)
    return status;
  if (!(a->delta >= 0))
    return td_op_fail_operands (call, TD_ERR_ARG, "delta >= 0 expected, got %g", a->delta);
  if (a->reduce)
    return td__out_like (call, 0, 0);
  if (x->ndim < 2)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "x.ndim >= 2 expected, got %d", x->ndim);
  for (int i = 0; i < x->ndim; i++)
    if (i != 1)
      rows.dim[rows.ndim++] = x->dim[i];
  return td_op_out (call, 0, call->in[0].dtype, &rows);
}

static TdStatus
forward (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  TdDevice *d = call->device;
  const TdTensor like = td__carve_like (&call->in[0]);
  TdTensor parts[2] = { like, like }, *c = &parts[0], *e = &parts[1];
  TdStatus status = td__carve (call, parts, 2);

  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_SUB, &call->in[0], &call->in[1], e, false);
  if (status == TD_OK)
    status = d->ops->unary (d, TD_UNARY_CLIP, -a->delta, a->delta, e, c);
  if (status == TD_OK)
    status = d->ops->unary (d, TD_UNARY_MUL_SCALAR, 2, 0, e, e);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_SUB, e, c, e, false);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_MUL, e, c, e, false);
  if (status != TD_OK)
    return status;
  if (a->reduce)
    return d->ops->unary (d, TD_UNARY_MUL_SCALAR, 0.5, 0, e, &call->out[0]);
  status = d->ops->reduce (d, TD_REDUCE_SUM, 1u << 1, e, &call->out[0], false);
  if (status == TD_OK)
    status = d->ops->unary (d, TD_UNARY_MUL_SCALAR, 0.5, 0, &call->out[0], &call->out[0]);
  return status;
}

static TdStatus
backward (TdBackward *b)
{
  const Attrs *a = b->attrs;
  TdVar *difference = td_sub (td_backward_input (b, 0), td_backward_input (b, 1));
  TdVar *gy = a->reduce ? b->gy[0] : td_expand_dims (b->gy[0], 1);
  TdVar *g = td_mul (td_clip (difference, -a->delta, a->delta), gy);

  if (td_backward_needs (b, 0))
    b->gx[0] = g;
  if (td_backward_needs (b, 1))
    b->gx[1] = td_neg (g);
  return TD_OK;
}

/* *Source*: chainer.functions.huber_loss. */
const TdOpClass td__huber_loss_class = {
  .name = "huber_loss",
  .label = "HuberLoss",
  .group = "loss",
  .formula = "|x - t| < delta ? (x - t)^2 / 2 : delta (|x - t| - delta / 2)",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .retain_in = 3,
  .in_names = names,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = TD_ARRAY_LENGTH (attr_table),
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

TdVar *
td_huber_loss_at (TdVar *x, TdVar *t, double delta, TdHuberLossOpt o, const TdSite *site)
{
  const Attrs attrs = { delta, td__choice (reductions, o.reduce) };

  if (attrs.reduce < 0)
    return td__choice_fail ("huber_loss", "reduce", reductions, o.reduce, site);
  return td__apply2 (&td__huber_loss_class, &attrs, site, x, t);
}

TdVar *
td_huber_loss_ (TdVar *x, TdVar *t, double delta, const TdHuberLossOpt *options)
{
  return td_huber_loss_at (x, t, delta,
                           options != NULL ? *options : (TdHuberLossOpt){ NULL, 0 }, NULL);
}
