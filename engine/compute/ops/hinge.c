/* Hinge loss of one class against all others, and the signs that it takes from labels.
 *
 * SPDX-License-Identifier: MIT */
#include "losses.h"

typedef struct
{
  int norm;   /* 1: L2 */
  int reduce; /* 1: no */
} Attrs;

static const char *const norms[] = { "L1", "L2", NULL };
static const TdAttr attr_table[] = {
  { "norm", TD_ATTR_CHOICE, offsetof (Attrs, norm), 0, 0, "L1", norms },
  { "reduce", TD_ATTR_CHOICE, offsetof (Attrs, reduce), 0, 0, "mean", td__reduce_mean_no },
};
static const char *const names[] = { "x", "t" };

static TdStatus
check (TdOpCall *call)
{
  TdStatus status = td__check_floats (call, 1);

  if (status == TD_OK)
    status = td__check_integers (call, 1);
  if (status == TD_OK)
    status = td__check_ndim (call, 0, 2);
  return status != TD_OK ? status : td__check_labels_shape (call, 0, 1);
}

static TdStatus
infer (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  const TdStatus status = check (call);

  return status != TD_OK ? status : td__out_loss (call, a->reduce, 0);
}

/* y[i, t[i]] = -1, all others 1, from the places of a row compared with t; `row` and `column`
 * are memory for (1, c) and (n, 1). */
static TdStatus
signs (TdOpCall *call, TdTensor *row, TdTensor *column, TdTensor *y)
{
  TdDevice *d = call->device;
  TdTensor t = *column;
  TdStatus status = td__check_labels (call, 1, call->in[0].shape->dim[1], TD_NOT_A_LABEL);

  t.shape = call->in[1].shape;
  if (status == TD_OK)
    status = d->ops->cast (d, &call->in[1], &t);
  if (status == TD_OK)
    status = d->ops->arange (d, row, 0, 1);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_EQ, row, column, y, false);
  if (status == TD_OK)
    status = d->ops->unary (d, TD_UNARY_MUL_SCALAR, -2, 0, y, y);
  if (status == TD_OK)
    status = d->ops->unary (d, TD_UNARY_ADD_SCALAR, 1, 0, y, y);
  return status;
}

static TdStatus
forward (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  const TdTensor *x = &call->in[0];
  const int64_t n = x->shape->dim[0], c = x->shape->dim[1];
  TdDevice *d = call->device;
  TdShape row = TD_SHAPE (1, c), column = TD_SHAPE (n, 1);
  TdTensor parts[3]
      = { { NULL, &row, c, x->dtype }, { NULL, &column, n, x->dtype }, td__carve_like (x) };
  TdTensor *y = a->reduce ? &call->out[0] : &parts[2];
  TdStatus status = td__carve (call, parts, a->reduce ? 2 : 3);

  if (status == TD_OK)
    status = signs (call, &parts[0], &parts[1], y);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_MUL, y, x, y, false);
  if (status == TD_OK)
    status = d->ops->unary (d, TD_UNARY_ADD_SCALAR, 1, 0, y, y);
  if (status == TD_OK)
    status = d->ops->unary (d, TD_UNARY_RELU, 0, 0, y, y);
  if (status == TD_OK && a->norm)
    status = d->ops->unary (d, TD_UNARY_SQUARE, 0, 0, y, y);
  if (status != TD_OK || a->reduce)
    return status;
  status = d->ops->reduce (d, TD_REDUCE_SUM, 3, y, &call->out[0], false);
  if (status == TD_OK)
    status = d->ops->unary (d, TD_UNARY_DIV_SCALAR, (double)(n > 0 ? n : 1), 0, &call->out[0],
                            &call->out[0]);
  return status;
}

/* With d = max (1 + s x, 0): s sign (d), or 2 s d. */
static TdStatus
backward (TdBackward *b)
{
  const Attrs *a = b->attrs;
  const int64_t n = td_backward_in_shape (b, 0)->dim[0];
  TdVar *x = td_backward_input (b, 0);
  TdVar *s = td__apply2 (&td__hinge_signs_class, NULL, NULL, x, td_backward_input (b, 1));
  TdVar *d = td_relu (td_add_scalar (td_mul (s, x), 1));
  TdVar *slope = td_mul (s, a->norm ? td_mul_scalar (d, 2) : td__sign (d));
  TdVar *g = a->reduce ? b->gy[0] : td_div_scalar (b->gy[0], (double)(n > 0 ? n : 1));

  b->gx[0] = td_mul (slope, g);
  return TD_OK;
}

/* *Source*: chainer.functions.hinge. */
const TdOpClass td__hinge_class = {
  .name = "hinge",
  .label = "Hinge",
  .group = "loss",
  .formula = "max (1 + s x, 0), s = -1 at t, else 1",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .retain_in = 3,
  .no_grad_in = 2,
  .in_names = names,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = TD_ARRAY_LENGTH (attr_table),
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

static TdStatus
signs_infer (TdOpCall *call)
{
  const TdStatus status = check (call);

  return status != TD_OK ? status : td__out_like (call, 0, 0);
}

static TdStatus
signs_forward (TdOpCall *call)
{
  const TdTensor *x = &call->in[0];
  const int64_t n = x->shape->dim[0], c = x->shape->dim[1];
  TdShape row = TD_SHAPE (1, c), column = TD_SHAPE (n, 1);
  TdTensor parts[2] = { { NULL, &row, c, x->dtype }, { NULL, &column, n, x->dtype } };
  const TdStatus status = td__carve (call, parts, 2);

  return status != TD_OK ? status : signs (call, &parts[0], &parts[1], &call->out[0]);
}

const TdOpClass td__hinge_signs_class = {
  .name = "hinge_signs",
  .label = "HingeSigns",
  .group = "loss",
  .formula = "-1 at t, else 1",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .flags = TD_OP_NO_GRAD,
  .in_names = names,
  .infer = signs_infer,
  .forward = signs_forward,
};

TdVar *
td_hinge_at (TdVar *x, TdVar *t, TdHingeOpt o, const TdSite *site)
{
  const Attrs attrs = { td__choice (norms, o.norm), td__choice (td__reduce_mean_no, o.reduce) };

  if (attrs.norm < 0)
    return td__choice_fail ("hinge", "norm", norms, o.norm, site);
  if (attrs.reduce < 0)
    return td__choice_fail ("hinge", "reduce", td__reduce_mean_no, o.reduce, site);
  return td__apply2 (&td__hinge_class, &attrs, site, x, t);
}

TdVar *
td_hinge_ (TdVar *x, TdVar *t, const TdHingeOpt *options)
{
  return td_hinge_at (x, t, options != NULL ? *options : (TdHingeOpt){ NULL, NULL, 0 }, NULL);
}
