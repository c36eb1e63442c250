/* Cross entropy of a sigmoid with labels 0 and 1; -1 is left out.
 *
 * SPDX-License-Identifier: MIT */
#include "losses.h"

#include <math.h>

typedef struct
{
  bool normalize;
  int reduce; /* 1: no */
} Attrs;

static const TdAttr attr_table[] = {
  { "normalize", TD_ATTR_BOOL, offsetof (Attrs, normalize), 0, 0, "true" },
  { "reduce", TD_ATTR_CHOICE, offsetof (Attrs, reduce), 0, 0, "mean", td__reduce_mean_no },
};
static const char *const names[] = { "x", "t" };
static const char *const grad_names[] = { "x", "t", "gloss" };

static TdStatus
check_labelled (TdOpCall *call)
{
  TdStatus status = td__check_floats (call, 1);

  if (status == TD_OK)
    status = td__check_integers (call, 1);
  return status != TD_OK ? status : td__check_same_shape (call, 0, 1);
}

static TdStatus
infer (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  const TdStatus status = check_labelled (call);

  return status != TD_OK ? status : td__out_loss (call, a->reduce, 0);
}

/* Rows, where the mean is not over what counts. */
static double
batch_of (const TdShape *x)
{
  return x->ndim > 0 && x->dim[0] > 1 ? (double)x->dim[0] : 1;
}

/* y (a number, or y itself) divided by the labels that count; t as numbers is overwritten. */
static TdStatus
divide (TdOpCall *call, TdTensor *t, TdTensor *number, TdTensor *y)
{
  const Attrs *a = call->attrs;
  TdDevice *d = call->device;
  TdStatus status;

  if (!a->normalize)
    return d->ops->unary (d, TD_UNARY_DIV_SCALAR, batch_of (t->shape), 0, y, y);
  status = d->ops->unary (d, TD_UNARY_CLIP, -1, 0, t, t); /* -1 where ignored, else 0 */
  if (status == TD_OK)
    status = d->ops->unary (d, TD_UNARY_ADD_SCALAR, 1, 0, t, t);
  if (status == TD_OK)
    status = d->ops->reduce (d, TD_REDUCE_SUM, (1u << t->shape->ndim) - 1, t, number, false);
  if (status == TD_OK)
    status = d->ops->unary (d, TD_UNARY_CLIP, 1, INFINITY, number, number);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_DIV, y, number, y, false);
  return status;
}

static TdStatus
forward (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  const TdTensor *x = &call->in[0];
  TdDevice *d = call->device;
  TdTensor parts[3] = { td__carve_like (x), td__carve_number (x->dtype), td__carve_like (x) };
  TdTensor *loss = a->reduce ? &call->out[0] : &parts[2];
  TdStatus status = td__check_labels (call, 1, 2, -1);

  if (status == TD_OK)
    status = td__carve (call, parts, a->reduce ? 1 : 3);
  if (status == TD_OK)
    status = d->ops->cast (d, &call->in[1], &parts[0]);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_SIGMOID_CE, x, &parts[0], loss, false);
  if (status != TD_OK || a->reduce)
    return status;
  status = d->ops->reduce (d, TD_REDUCE_SUM, (1u << x->shape->ndim) - 1, loss, &call->out[0],
                           false);
  return status != TD_OK ? status : divide (call, &parts[0], &parts[1], &call->out[0]);
}

static TdStatus
backward (TdBackward *b)
{
  b->gx[0] = td__apply3 (&td__sigmoid_cross_entropy_grad_class, b->attrs, NULL,
                         td_backward_input (b, 0), td_backward_input (b, 1), b->gy[0]);
  return TD_OK;
}

/* *Source*: chainer.functions.sigmoid_cross_entropy. */
const TdOpClass td__sigmoid_cross_entropy_class = {
  .name = "sigmoid_cross_entropy",
  .label = "SigmoidCrossEntropy",
  .group = "loss",
  .formula = "mean (log (1 + e ** x) - x t)",
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
grad_infer (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  const TdStatus status = check_labelled (call);

  return status != TD_OK ? status : td__infer_loss_grad (call, a->reduce);
}

static TdStatus
grad_forward (TdOpCall *call)
{
  const TdTensor *x = &call->in[0];
  TdDevice *d = call->device;
  TdTensor parts[3]
      = { td__carve_like (x), td__carve_number (x->dtype), td__carve_number (x->dtype) };
  const TdTensor *g = &call->in[2];
  TdStatus status = td__carve (call, parts, 3);

  if (status == TD_OK)
    status = d->ops->cast (d, &call->in[1], &parts[0]);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_SIGMOID_CE_GRAD, x, &parts[0], &call->out[0], false);
  if (status == TD_OK && !((const Attrs *)call->attrs)->reduce)
    {
      status = d->ops->unary (d, TD_UNARY_COPY, 0, 0, g, &parts[2]);
      if (status == TD_OK)
        status = divide (call, &parts[0], &parts[1], &parts[2]);
      g = &parts[2];
    }
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_MUL, &call->out[0], g, &call->out[0], false);
  return status;
}

/* gx = (s - t) g / count, s = sigmoid (x), 0 where ignored.  With v the gradient of gx: in x:
 * v s (1 - s) g / count; in g: what v weighs in the gradient for g = 1. */
static TdStatus
grad_backward (TdBackward *b)
{
  const Attrs *a = b->attrs;
  TdVar *x = td_backward_input (b, 0), *t = td_backward_input (b, 1), *v = b->gy[0];
  TdVar *g = td_backward_input (b, 2);

  if (td_backward_needs (b, 0))
    {
      TdVar *s = td_sigmoid (x), *bell = td_mul (s, td_rsub_scalar (s, 1));
      TdVar *counts = td_add_scalar (td_clip (td_cast (t, td_dtype (x)), -1, 0), 1);
      TdVar *share = a->reduce      ? g
                     : a->normalize ? td_div (g, td_clip (td_sum (counts), 1, INFINITY))
                                    : td_div_scalar (g, batch_of (td_backward_in_shape (b, 0)));

      b->gx[0] = td_mul (td_mul (v, share), td_mul (bell, counts));
    }
  if (td_backward_needs (b, 2))
    {
      TdVar *one = td_broadcast_to (td__number_like (g, 1), td_shape (g));
      TdVar *unit
          = td__apply3 (&td__sigmoid_cross_entropy_grad_class, b->attrs, NULL, x, t, one);

      b->gx[2] = a->reduce ? td_mul (v, unit) : td_sum (td_mul (v, unit));
    }
  return TD_OK;
}

const TdOpClass td__sigmoid_cross_entropy_grad_class = {
  .name = "sigmoid_cross_entropy_grad",
  .label = "SigmoidCrossEntropyGrad",
  .group = "loss",
  .formula = "(sigmoid (x) - t) gloss / count",
  .n_in_min = 3,
  .n_in_max = 3,
  .n_out = 1,
  .retain_in = 7,
  .no_grad_in = 2,
  .in_names = grad_names,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = TD_ARRAY_LENGTH (attr_table),
  .infer = grad_infer,
  .forward = grad_forward,
  .backward = grad_backward,
};

TdVar *
td_sigmoid_cross_entropy_at (TdVar *x, TdVar *t, TdSigmoidCrossEntropyOpt o, const TdSite *site)
{
  const Attrs attrs = { o.normalize, td__choice (td__reduce_mean_no, o.reduce) };

  if (attrs.reduce < 0)
    return td__choice_fail ("sigmoid_cross_entropy", "reduce", td__reduce_mean_no, o.reduce,
                            site);
  return td__apply2 (&td__sigmoid_cross_entropy_class, &attrs, site, x, t);
}

TdVar *
td_sigmoid_cross_entropy_ (TdVar *x, TdVar *t, const TdSigmoidCrossEntropyOpt *options)
{
  const TdSigmoidCrossEntropyOpt defaults = { TD_SIGMOID_CROSS_ENTROPY_DEFAULTS };

  return td_sigmoid_cross_entropy_at (x, t, options != NULL ? *options : defaults, NULL);
}
