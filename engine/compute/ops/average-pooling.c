/* Average pooling over planes and over any number of axes; padding counts as zeros, or not.
 *
 * SPDX-License-Identifier: MIT */
#include "windows.h"

static const char *const grad_names[] = { "gy" };

static TdStatus
infer (TdOpCall *call)
{
  TdShape pooled;
  const TdStatus status = td__pool_infer (call, &td__average_pooling_2d_class, &pooled);

  return status != TD_OK ? status : td_op_out (call, 0, call->in[0].dtype, &pooled);
}

static TdPoolDivisor
divisor (const TdPoolAttrs *a)
{
  return a->pad_value == TD_NONE ? TD_POOL_BY_COVERED : TD_POOL_BY_WINDOW;
}

static TdStatus
forward (TdOpCall *call)
{
  return td__pool_run (call, TD_POOL_AVERAGE, divisor (call->attrs));
}

static TdStatus
backward (TdBackward *b)
{
  const TdPoolAttrs attrs = td__pool_sized (b->attrs, td_backward_in_shape (b, 0));

  b->gx[0] = td__apply1 (b->cls == &td__average_pooling_nd_class
                             ? &td__average_pooling_nd_grad_class
                             : &td__average_pooling_2d_grad_class,
                         &attrs, NULL, b->gy[0]);
  return TD_OK;
}

static TdStatus
grad_infer (TdOpCall *call)
{
  TdShape image;
  const TdStatus status
      = td__pool_grad_infer (call, &td__average_pooling_2d_grad_class, 0, &image);

  return status != TD_OK ? status : td_op_out (call, 0, call->in[0].dtype, &image);
}

static TdStatus
grad_forward (TdOpCall *call)
{
  return td__pool_run (call, TD_POOL_AVERAGE_GRAD, divisor (call->attrs));
}

static TdStatus
grad_backward (TdBackward *b)
{
  b->gx[0] = td__apply1 (b->cls == &td__average_pooling_nd_grad_class
                             ? &td__average_pooling_nd_class
                             : &td__average_pooling_2d_class,
                         b->attrs, NULL, b->gy[0]);
  return TD_OK;
}

/* clang-format off */
static const TdAttr attrs_2d[] = { TD_POOL_ATTRS, TD_POOL_COVER_ALL ("false") };
static const TdAttr attrs_nd[] = { TD_POOL_ATTRS, TD_POOL_PAD_VALUE, TD_POOL_COVER_ALL ("false") };
static const TdAttr grad_attrs_2d[] = { TD_POOL_ATTRS, TD_POOL_COVER_ALL ("false"), TD_POOL_SIZE ("size") };
static const TdAttr grad_attrs_nd[]
    = { TD_POOL_ATTRS, TD_POOL_PAD_VALUE, TD_POOL_COVER_ALL ("false"), TD_POOL_SIZE ("size") };

#define AVERAGE_POOLING(NAME, LABEL, FORMULA, NAMES, ATTRS, INFER, FORWARD, BACKWARD) \
  {                                                                                            \
    .name = NAME, .label = LABEL, .group = "pooling", .formula = FORMULA, .n_in_min = 1,       \
    .n_in_max = 1, .n_out = 1, .flags = TD_OP_LAYOUTS, .in_names = NAMES, .attrs_size = sizeof (TdPoolAttrs),          \
    .attrs = ATTRS, .n_attrs = TD_ARRAY_LENGTH (ATTRS), .infer = INFER, .forward = FORWARD,                    \
    .backward = BACKWARD,                                                                      \
  }

/* *Source*: chainer.functions.average_pooling_2d, average_pooling_nd. */
const TdOpClass td__average_pooling_2d_class
    = AVERAGE_POOLING ("average_pooling_2d", "AveragePooling2D", "mean of each window", td__names_x,
                       attrs_2d, infer, forward, backward);
const TdOpClass td__average_pooling_nd_class
    = AVERAGE_POOLING ("average_pooling_nd", "AveragePoolingND", "mean of each window", td__names_x,
                       attrs_nd, infer, forward, backward);
const TdOpClass td__average_pooling_2d_grad_class
    = AVERAGE_POOLING ("average_pooling_2d_grad", "AveragePooling2DGrad", "a share of gy under each window",
                       grad_names, grad_attrs_2d, grad_infer, grad_forward,
                       grad_backward);
const TdOpClass td__average_pooling_nd_grad_class
    = AVERAGE_POOLING ("average_pooling_nd_grad", "AveragePoolingNDGrad", "a share of gy under each window",
                       grad_names, grad_attrs_nd, grad_infer,
                       grad_forward, grad_backward);
/* clang-format on */

TdVar *
td_average_pooling_2d_at (TdVar *x, TdPool2dOpt options, const TdSite *site)
{
  const TdPoolAttrs attrs = td__pool_attrs_2d (&options);

  return td__apply1 (&td__average_pooling_2d_class, &attrs, site, x);
}

TdVar *
td_average_pooling_2d_ (TdVar *x, const TdPool2dOpt *options)
{
  const TdPool2dOpt defaults = { TD_AVERAGE_POOL_2D_DEFAULTS };

  return td_average_pooling_2d_at (x, options != NULL ? *options : defaults, NULL);
}

#define FUNCTIONS(name, ndim)                                                                  \
  TdVar *td_average_pooling_##name##_at (TdVar *x, TdPoolNdOpt o, const TdSite *site)          \
  {                                                                                            \
    const TdPoolAttrs attrs = td__pool_attrs_nd (&o, ndim, x);                                 \
                                                                                               \
    return td__apply1 (&td__average_pooling_nd_class, &attrs, site, x);                        \
  }                                                                                            \
  TdVar *td_average_pooling_##name##_ (TdVar *x, const TdPoolNdOpt *options)                   \
  {                                                                                            \
    const TdPoolNdOpt defaults = { TD_AVERAGE_POOL_ND_DEFAULTS };                              \
                                                                                               \
    return td_average_pooling_##name##_at (x, options != NULL ? *options : defaults, NULL);    \
  }
FUNCTIONS (nd, 0)
FUNCTIONS (1d, 1)
FUNCTIONS (3d, 3)
