/* Max pooling.  Output 1 remembers where each maximum lay; the gradient scatters to those
 * places, its own gradient gathers from them.
 *
 * SPDX-License-Identifier: MIT */
#include "layers.h"

static const char *const grad_names[] = { "index", "gy" };

static TdStatus
infer (TdOpCall *call)
{
  TdShape pooled;
  TdStatus status = td__pool_infer (call, call->attrs, &pooled);

  if (status == TD_OK)
    status = td_op_out (call, 0, call->in[0].dtype, &pooled);
  return status != TD_OK ? status : td_op_out (call, 1, TD_I32, &pooled);
}

static TdStatus
forward (TdOpCall *call)
{
  return td__pool_run (call, TD_POOL_MAX);
}

static TdVar *
run_on_index (const TdOpClass *cls, TdVar *index, TdVar *x, TdPoolAttrs attrs,
              const TdShape *image)
{
  attrs.size[0] = (int)image->dim[2];
  attrs.size[1] = (int)image->dim[3];
  return td__apply2 (cls, &attrs, NULL, index, x);
}

static TdStatus
backward (TdBackward *b)
{
  if (b->gy[0] != NULL)
    b->gx[0]
        = run_on_index (&td__max_pooling_2d_grad_class, td_backward_output (b, 1), b->gy[0],
                        *(const TdPoolAttrs *)b->attrs, td_backward_in_shape (b, 0));
  return TD_OK;
}

/* *Source*: chainer.functions.max_pooling_2d. */
const TdOpClass td__max_pooling_2d_class = {
  .name = "max_pooling_2d",
  .label = "MaxPooling2D",
  .group = "pooling",
  .formula = "largest of each window",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 2,
  .retain_out = 2,
  .in_names = td__names_x,
  .attrs_size = sizeof (TdPoolAttrs),
  .attrs = td__pool_attrs,
  .n_attrs = TD_POOL_N_ATTRS,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

static TdStatus
grad_infer (TdOpCall *call)
{
  const TdPoolAttrs *a = call->attrs;
  const int64_t *gy = call->in[1].shape->dim;
  const TdShape gx = { 4, { gy[0], gy[1], a->size[0], a->size[1] } };
  TdStatus status = td__check_ndim (call, 1, 4);

  if (status == TD_OK)
    status = td__check_same_shape (call, 0, 1);
  return status != TD_OK ? status : td_op_out (call, 0, call->in[1].dtype, &gx);
}

static TdStatus
grad_forward (TdOpCall *call)
{
  return td__pool_run (call, TD_POOL_MAX_GRAD);
}

static TdStatus
grad_backward (TdBackward *b)
{
  if (td_backward_needs (b, 1))
    b->gx[1] = td__apply2 (&td__max_pooling_2d_gather_class, b->attrs, NULL,
                           td_backward_input (b, 0), b->gy[0]);
  return TD_OK;
}

const TdOpClass td__max_pooling_2d_grad_class = {
  .name = "max_pooling_2d_grad",
  .label = "MaxPooling2DGrad",
  .group = "pooling",
  .formula = "gy where the maxima were",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .retain_in = 1,
  .no_grad_in = 1,
  .in_names = grad_names,
  .attrs_size = sizeof (TdPoolAttrs),
  .attrs = td__pool_attrs,
  .n_attrs = TD_POOL_N_ATTRS,
  .infer = grad_infer,
  .forward = grad_forward,
  .backward = grad_backward,
};

static TdStatus
gather_infer (TdOpCall *call)
{
  return td_op_out (call, 0, call->in[1].dtype, call->in[0].shape);
}

static TdStatus
gather_forward (TdOpCall *call)
{
  return td__pool_run (call, TD_POOL_MAX_GATHER);
}

static TdStatus
gather_backward (TdBackward *b)
{
  if (td_backward_needs (b, 1))
    b->gx[1] = run_on_index (&td__max_pooling_2d_grad_class, td_backward_input (b, 0), b->gy[0],
                             *(const TdPoolAttrs *)b->attrs, td_backward_in_shape (b, 1));
  return TD_OK;
}

const TdOpClass td__max_pooling_2d_gather_class = {
  .name = "max_pooling_2d_gather",
  .label = "MaxPooling2DWithIndexes",
  .group = "pooling",
  .formula = "x where the maxima were",
  .n_in_min = 2,
  .n_in_max = 2,
  .n_out = 1,
  .retain_in = 1,
  .no_grad_in = 1,
  .in_names = grad_names,
  .attrs_size = sizeof (TdPoolAttrs),
  .attrs = td__pool_attrs,
  .n_attrs = TD_POOL_N_ATTRS,
  .infer = gather_infer,
  .forward = gather_forward,
  .backward = gather_backward,
};

TdVar *
td_max_pooling_2d_at (TdVar *x, TdPool2dOpt options, const TdSite *site)
{
  const TdPoolAttrs attrs = td__pool_attrs_from (&options);
  TdVar *out[2];

  td_apply_at (&td__max_pooling_2d_class, &attrs, &x, 1, out, 2, site);
  return out[0];
}

TdVar *
td_max_pooling_2d_ (TdVar *x, const TdPool2dOpt *options)
{
  const TdPool2dOpt defaults = { TD_MAX_POOL_2D_DEFAULTS };

  return td_max_pooling_2d_at (x, options != NULL ? *options : defaults, NULL);
}
