/* Softmax cross entropy with labels.  Output 1 is softmax (x), kept for backward only.
 *
 * SPDX-License-Identifier: MIT */
#include "losses.h"

typedef struct
{
  int ignore_label;
  bool normalize;
  int reduce; /* 1: each row for itself */
} Attrs;

static const TdAttr attr_table[] = {
  { "ignore_label", TD_ATTR_INT, offsetof (Attrs, ignore_label), 0, 0, "-1" },
  { "normalize", TD_ATTR_BOOL, offsetof (Attrs, normalize), 0, 0, "true" },
  { "reduce", TD_ATTR_CHOICE, offsetof (Attrs, reduce), 0, 0, "mean", td__reduce_mean_no },
};
static const char *const names[] = { "x", "t", "class_weight" };
static const char *const grad_names[] = { "y", "t", "gloss", "class_weight" };
static const char *const rows_names[] = { "t", "class_weight" };

static TdStatus
check_labelled (const TdOpCall *call, int weight)
{
  TdStatus status = td__check_floats (call, weight < call->n_in ? 1u | 1u << weight : 1);

  if (status == TD_OK)
    status = td__check_integers (call, 1);
  if (status == TD_OK)
    status = td__check_labels_shape (call, 0, 1);
  if (status == TD_OK && weight < call->n_in)
    status = td__check_vector (call, weight, 0, 1);
  return status;
}

static TdStatus
run (TdOpCall *call, TdCrossEntropyKind kind)
{
  const Attrs *a = call->attrs;
  const int64_t params[] = { a->ignore_label, a->normalize, a->reduce };

  return call->device->ops->cross_entropy (call->device, kind, params, call->in, call->n_in,
                                           call->out, call->n_out);
}

static TdStatus
infer (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  TdStatus status = check_labelled (call, 2);

  if (status == TD_OK)
    status = td__out_loss (call, a->reduce, 1);
  return status != TD_OK ? status : td__out_like (call, 1, 0);
}

static TdStatus
forward (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  const TdStatus status
      = td__check_labels (call, 1, call->in[0].shape->dim[1], a->ignore_label);

  return status != TD_OK ? status : run (call, TD_CROSS_ENTROPY);
}

/* softmax (x) is an output, so a gradient of the gradient arrives there as any other would. */
static TdStatus
backward (TdBackward *b)
{
  static const TdSoftmaxAttrs channels = { 1 };
  TdVar *y = td_backward_output (b, 1), *in[4] = { y };

  if (!td_backward_needs (b, 0))
    return TD_OK;
  if (b->gy[0] != NULL)
    {
      in[1] = td_backward_input (b, 1);
      in[2] = b->gy[0];
      if (b->n_in == 3)
        in[3] = td_backward_input (b, 2);
      b->gx[0]
          = td__applyn (&td__softmax_cross_entropy_grad_class, b->attrs, NULL, in, b->n_in + 1);
    }
  if (b->gy[1] != NULL)
    {
      TdVar *g = td__apply2 (&td__softmax_grad_class, &channels, NULL, y, b->gy[1]);

      b->gx[0] = b->gx[0] != NULL ? td_add (b->gx[0], g) : g;
    }
  return TD_OK;
}

/* *Source*: chainer.functions.softmax_cross_entropy. */
const TdOpClass td__softmax_cross_entropy_class = {
  .name = "softmax_cross_entropy",
  .label = "SoftmaxCrossEntropy",
  .group = "loss",
  .formula = "mean (-log (softmax (x)[t]))",
  .n_in_min = 2,
  .n_in_max = 3,
  .n_out = 2,
  .retain_in = 6,
  .retain_out = 2,
  .no_grad_in = 6,
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
  const TdStatus status = check_labelled (call, 3);

  return status != TD_OK ? status : td__infer_loss_grad (call, a->reduce);
}

static TdStatus
grad_forward (TdOpCall *call)
{
  return run (call, TD_CROSS_ENTROPY_GRAD);
}

/* gx = (y - onehot (t)) share g, where share is each row's.  With v the gradient of gx:
 * in y: v share g; in g: sum (v gx) / g, with gx / g computed as the gradient for g = 1.  With
 * reduce "no" g has a number for each row, and only rows are summed. */
static TdStatus
grad_backward (TdBackward *b)
{
  TdVar *t = td_backward_input (b, 1), *g = td_backward_input (b, 2), *v = b->gy[0];
  TdVar *weight = b->n_in == 4 ? td_backward_input (b, 3) : NULL;
  const bool each = ((const Attrs *)b->attrs)->reduce != 0;

  if (td_backward_needs (b, 0))
    {
      TdVar *in[] = { t, weight != NULL ? weight : g };
      TdVar *share = td__applyn (&td__softmax_cross_entropy_rows_class, b->attrs, NULL, in,
                                 weight != NULL ? 2 : 1);

      /* The shares are f32 or f64 as the weight says, or g. */
      b->gx[0] = td_mul (td_mul (v, td_expand_dims (td_cast (share, td_dtype (v)), 1)),
                         each ? td_expand_dims (g, 1) : g);
    }
  if (td_backward_needs (b, 2))
    {
      TdVar *one = td_broadcast_to (td__number_like (g, 1), td_shape (g));
      TdVar *in[] = { td_backward_input (b, 0), t, one, weight };
      TdVar *unit
          = td__applyn (&td__softmax_cross_entropy_grad_class, b->attrs, NULL, in, b->n_in);

      b->gx[2] = each ? td_sum_axes (td_mul (v, unit), (const int[]){ 1 }, 1, false)
                      : td_sum (td_mul (v, unit));
    }
  return TD_OK;
}

const TdOpClass td__softmax_cross_entropy_grad_class = {
  .name = "softmax_cross_entropy_grad",
  .label = "SoftmaxCrossEntropyGrad",
  .group = "loss",
  .formula = "(y - onehot (t)) gloss / count",
  .n_in_min = 3,
  .n_in_max = 4,
  .n_out = 1,
  .retain_in = 15,
  .no_grad_in = 2 | 8,
  .in_names = grad_names,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = TD_ARRAY_LENGTH (attr_table),
  .infer = grad_infer,
  .forward = grad_forward,
  .backward = grad_backward,
};

static TdStatus
rows_infer (TdOpCall *call)
{
  const TdStatus status = td__check_integers (call, 0);

  if (status != TD_OK)
    return status;
  return td_op_out (call, 0, call->n_in == 2 ? call->in[1].dtype : TD_F64, call->in[0].shape);
}

static TdStatus
rows_forward (TdOpCall *call)
{
  return run (call, TD_CROSS_ENTROPY_ROWS);
}

const TdOpClass td__softmax_cross_entropy_rows_class = {
  .name = "softmax_cross_entropy_rows",
  .label = "SoftmaxCrossEntropyRows",
  .group = "loss",
  .formula = "each row's share in the loss",
  .n_in_min = 1,
  .n_in_max = 2,
  .n_out = 1,
  .flags = TD_OP_NO_GRAD,
  .in_names = rows_names,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = TD_ARRAY_LENGTH (attr_table),
  .infer = rows_infer,
  .forward = rows_forward,
};

TdVar *
td_softmax_cross_entropy_at (TdVar *x, TdVar *t, TdCrossEntropyOpt o, const TdSite *site)
{
  const Attrs attrs
      = { o.ignore_label, o.normalize, td__choice (td__reduce_mean_no, o.reduce) };
  TdVar *in[] = { x, t, o.class_weight }, *out[2];

  if (attrs.reduce < 0)
    return td__choice_fail ("softmax_cross_entropy", "reduce", td__reduce_mean_no, o.reduce,
                            site);
  td__apply_at (&td__softmax_cross_entropy_class, &attrs, in, o.class_weight != NULL ? 3 : 2,
                out, 2, site);
  return out[0];
}

TdVar *
td_softmax_cross_entropy_ (TdVar *x, TdVar *t, const TdCrossEntropyOpt *options)
{
  const TdCrossEntropyOpt defaults = { TD_CROSS_ENTROPY_DEFAULTS };

  return td_softmax_cross_entropy_at (x, t, options != NULL ? *options : defaults, NULL);
}
