/* Share of rows whose largest element is at the label.  No gradient.
 *
 * SPDX-License-Identifier: MIT */
#include "layers.h"

/* No label, or one, to leave out. */
typedef struct
{
  int ignore_label[TD_MAX_DIMS], n_ignored; /* as any list may come; one is taken */
} Attrs;

static const TdAttr attr_table[]
    = { { "ignore_label", TD_ATTR_INTS, offsetof (Attrs, ignore_label), 0,
          offsetof (Attrs, n_ignored), "None" } };
static const char *const names[] = { "y", "t" };

static TdStatus
infer (TdOpCall *call)
{
  const TdShape scalar = TD_SCALAR;
  TdStatus status = td__check_floats (call, 1);

  if (((const Attrs *)call->attrs)->n_ignored > 1)
    return td_op_fail_operands (call, TD_ERR_ARG, "one ignore_label expected, got %d",
                                ((const Attrs *)call->attrs)->n_ignored);
  if (status == TD_OK)
    status = td__check_integers (call, 1);
  if (status == TD_OK)
    status = td__check_labels_shape (call, 0, 1);
  if (status == TD_OK && call->in[1].size == 0)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "at least one row expected");
  return status != TD_OK ? status : td_op_out (call, 0, call->in[0].dtype, &scalar);
}

/* Unless it is left out, the label -1, which softmax_cross_entropy ignores, is a row that is
 * never right, as in Chainer. */
static TdStatus
forward (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  const int64_t n_classes = call->in[0].shape->dim[1];
  const int64_t params[] = { a->n_ignored == 1 ? a->ignore_label[0] : -1, a->n_ignored == 1 };
  const bool inside = params[0] >= 0 && params[0] < n_classes;
  const TdStatus status = td__check_labels (call, 1, n_classes, inside ? -1 : params[0]);

  if (status != TD_OK)
    return status;
  return call->device->ops->cross_entropy (call->device, TD_ACCURACY, params, call->in, 2,
                                           call->out, 1);
}

/* *Source*: chainer.functions.accuracy. */
const TdOpClass td__accuracy_class = {
  .name = "accuracy",
  .label = "Accuracy",
  .group = "evaluation",
  .formula = "mean (argmax (y) == t)",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .flags = TD_OP_NO_GRAD,
  .no_grad_in = 3,
  .in_names = names,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = 1,
  .infer = infer,
  .forward = forward,
};

TdVar *
td_accuracy_at (TdVar *y, TdVar *t, TdAccuracyOpt o, const TdSite *site)
{
  const Attrs attrs = { { o.ignore_label }, o.ignore_label == TD_NO_LABEL ? -1 : 1 };

  return td__apply2 (&td__accuracy_class, &attrs, site, y, t);
}

TdVar *
td_accuracy_ (TdVar *y, TdVar *t, const TdAccuracyOpt *options)
{
  return td_accuracy_at (
      y, t, options != NULL ? *options : (TdAccuracyOpt){ TD_ACCURACY_DEFAULTS }, NULL);
}

TdVar *
td_accuracy (TdVar *y, TdVar *t)
{
  return td_accuracy_ (y, t, NULL);
}
