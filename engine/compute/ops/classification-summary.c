/* Precision, recall, F score and number of rows of each label.  No gradients.
 *
 * SPDX-License-Identifier: MIT */
#include "losses.h"

#include <math.h>

typedef struct
{
  int label_num;
  double beta;
  int ignore_label;
} Attrs;

static const TdAttr attr_table[] = {
  { "label_num", TD_ATTR_INT, offsetof (Attrs, label_num), 0, 0, NULL },
  { "beta", TD_ATTR_DOUBLE, offsetof (Attrs, beta), 0, 0, "1.0" },
  { "ignore_label", TD_ATTR_INT, offsetof (Attrs, ignore_label), 0, 0, "-1" },
};
static const char *const names[] = { "y", "t" };

static TdStatus
infer (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  const TdShape labels = TD_SHAPE (a->label_num);
  TdStatus status = td__check_floats (call, 1);

  if (status == TD_OK)
    status = td__check_integers (call, 1);
  if (status == TD_OK)
    status = td__check_labels_shape (call, 0, 1);
  if (status == TD_OK && a->label_num < 0)
    return td_op_fail_operands (call, TD_ERR_ARG, "label_num >= 0 expected, got %d",
                                a->label_num);
  for (int k = 0; k < 4 && status == TD_OK; k++)
    status = td_op_out (call, k, k < 3 ? call->in[0].dtype : TD_I32, &labels);
  return status;
}

/* (1 + b^2) p r / (b^2 p + r), into p. */
static TdStatus
f_score (TdDevice *d, double beta, TdTensor *p, TdTensor *r, TdTensor *room)
{
  TdStatus status = d->ops->unary (d, TD_UNARY_MUL_SCALAR, beta * beta, 0, p, room);

  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_ADD, room, r, room, false);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_MUL, p, r, p, false);
  if (status == TD_OK)
    status = d->ops->unary (d, TD_UNARY_MUL_SCALAR, 1 + beta * beta, 0, p, p);
  return status != TD_OK ? status : d->ops->binary (d, TD_BINARY_DIV, p, room, p, false);
}

/* A label that nobody chose, or nobody has, divides 0 by 0: NaN, as in Chainer. */
static TdStatus
forward (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  const int64_t params[] = { a->ignore_label };
  TdDevice *d = call->device;
  TdShape shape = TD_SHAPE (a->label_num);
  const TdTensor counts = { NULL, &shape, a->label_num, TD_F64 };
  TdTensor parts[3] = { counts, counts, counts };
  TdTensor *right = &parts[0], *chosen = &parts[1], *labelled = &parts[2];
  TdStatus status = td__check_labels (call, 1, a->label_num, a->ignore_label);

  if (status == TD_OK)
    status = td__carve (call, parts, 3);
  if (status == TD_OK)
    status = d->ops->cross_entropy (d, TD_LABEL_COUNTS, params, call->in, 2, parts, 3);
  if (status == TD_OK)
    status = d->ops->cast (d, labelled, &call->out[3]);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_DIV, right, chosen, chosen, false);
  if (status == TD_OK)
    status = d->ops->binary (d, TD_BINARY_DIV, right, labelled, labelled, false);
  if (status == TD_OK)
    status = d->ops->cast (d, chosen, &call->out[0]);
  if (status == TD_OK)
    status = d->ops->cast (d, labelled, &call->out[1]);
  if (status == TD_OK)
    status = f_score (d, a->beta, chosen, labelled, right);
  return status != TD_OK ? status : d->ops->cast (d, chosen, &call->out[2]);
}

/* *Source*: chainer.functions.classification_summary. */
const TdOpClass td__classification_summary_class = {
  .name = "classification_summary",
  .label = "ClassificationSummary",
  .group = "evaluation",
  .formula = "precision, recall, F score, support of each label",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 4,
  .flags = TD_OP_NO_GRAD,
  .no_grad_in = 3,
  .in_names = names,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = TD_ARRAY_LENGTH (attr_table),
  .infer = infer,
  .forward = forward,
};

/* Labels up to the largest in t; without values, as many as y has columns. */
static int
labels_in (TdVar *y, TdVar *t, const TdSite *site)
{
  const TdShape shape = td_shape (y);

  if (td_poisoned (y) || td_poisoned (t))
    return 0;
  if (!td_device (t)->computes || td_size (t) == 0)
    return shape.ndim > 1 ? (int)shape.dim[1] : 0;
  return (int)td_item_at (td_max_at (td_cast_at (t, TD_I32, site), site), site) + 1;
}

TdStatus
td_classification_summary_at (TdVar *y, TdVar *t, TdVar **out, TdSummaryOpt o,
                              const TdSite *site)
{
  TdVar *in[] = { y, t }, *results[4];
  TdStatus status;
  Attrs attrs;

  if (out == NULL)
    return td__fail (TD_ERR_ARG, "classification_summary", site,
                     "a list of 4 expected, got NULL");
  attrs = (Attrs){ o.label_num > 0 ? o.label_num : labels_in (y, t, site), o.beta,
                   o.ignore_label };
  status = td__apply_at (&td__classification_summary_class, &attrs, in, 2, results, 4, site);
  for (int k = 0; k < 4; k++)
    out[k] = results[k];
  if (o.support != NULL)
    *o.support = results[3];
  return status;
}

TdStatus
td_classification_summary_ (TdVar *y, TdVar *t, TdVar **out, const TdSummaryOpt *options)
{
  const TdSummaryOpt defaults = { TD_SUMMARY_DEFAULTS };

  return td_classification_summary_at (y, t, out, options != NULL ? *options : defaults, NULL);
}

/* *Source*: chainer.functions.precision, recall, f1_score. */
#define SUMMARY_FUNCTION(name, which)                                                          \
  TdVar *td_##name##_at (TdVar *y, TdVar *t, TdSummaryOpt o, const TdSite *site)               \
  {                                                                                            \
    TdVar *out[4];                                                                             \
                                                                                               \
    td_classification_summary_at (y, t, out, o, site);                                         \
    return out[which];                                                                         \
  }                                                                                            \
  TdVar *td_##name##_ (TdVar *y, TdVar *t, const TdSummaryOpt *options)                        \
  {                                                                                            \
    const TdSummaryOpt defaults = { TD_SUMMARY_DEFAULTS };                                     \
                                                                                               \
    return td_##name##_at (y, t, options != NULL ? *options : defaults, NULL);                 \
  }

SUMMARY_FUNCTION (precision, 0)
SUMMARY_FUNCTION (recall, 1)
SUMMARY_FUNCTION (f1_score, 2)
