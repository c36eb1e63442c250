/* log (softmax (x)) along an axis, and its gradient.
 *
 * SPDX-License-Identifier: MIT */
#include "layers.h"

static TdStatus
forward (TdOpCall *call)
{
  return td__softmax_run (call, TD_LOG_SOFTMAX);
}

static TdStatus
backward (TdBackward *b)
{
  b->gx[0] = td__apply2 (&td__log_softmax_grad_class, b->attrs, NULL, td_backward_output (b, 0),
                         b->gy[0]);
  return TD_OK;
}

const TdOpClass td__log_softmax_class = {
  .name = "log_softmax",
  .label = "LogSoftmax",
  .group = "activation",
  .formula = "x - log (sum (exp (x)))",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .retain_out = 1,
  .in_names = td__names_x,
  .attrs_size = sizeof (TdSoftmaxAttrs),
  .attrs = td__softmax_attrs,
  .n_attrs = 1,
  .infer = td__softmax_infer,
  .forward = forward,
  .backward = backward,
};

static TdStatus
grad_forward (TdOpCall *call)
{
  return td__softmax_run (call, TD_LOG_SOFTMAX_GRAD);
}

/* gx = gy - exp (y) sum (gy).  With v the gradient of gx:
 * in y: -v exp (y) sum (gy); in gy: v - sum (v exp (y)). */
static TdStatus
grad_backward (TdBackward *b)
{
  const int axis = ((const TdSoftmaxAttrs *)b->attrs)->axis;
  TdVar *gy = td_backward_input (b, 1), *v = b->gy[0];
  TdVar *ve = td_mul (v, td_exp (td_backward_input (b, 0)));

  if (td_backward_needs (b, 0))
    b->gx[0] = td_neg (td_mul (ve, td_sum_axes (gy, &axis, 1, true)));
  if (td_backward_needs (b, 1))
    b->gx[1] = td_sub (v, td_sum_axes (ve, &axis, 1, true));
  return TD_OK;
}

const TdOpClass td__log_softmax_grad_class = {
  .name = "log_softmax_grad",
  .label = "LogSoftmaxGrad",
  .group = "activation",
  .formula = "gy - exp (y) sum (gy)",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .retain_in = 3,
  .in_names = td__names_ygy,
  .attrs_size = sizeof (TdSoftmaxAttrs),
  .attrs = td__softmax_attrs,
  .n_attrs = 1,
  .infer = td__softmax_grad_infer,
  .forward = grad_forward,
  .backward = grad_backward,
};

TdVar *
td_log_softmax_at (TdVar *x, TdSoftmaxOpt options, const TdSite *site)
{
  return td__softmax_apply (&td__log_softmax_class, x, options.axis, site);
}

TdVar *
td_log_softmax_ (TdVar *x, const TdSoftmaxOpt *options)
{
  return td__softmax_apply (&td__log_softmax_class, x, options != NULL ? options->axis : 1,
                            NULL);
}
