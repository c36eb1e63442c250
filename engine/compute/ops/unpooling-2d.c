/* Unpooling: each element spread over its window, windows that overlap add up; its gradient is
 * the sum over each window.
 *
 * SPDX-License-Identifier: MIT */
#include "windows.h"

static const char *const grad_names[] = { "gy" };

/* clang-format off */
static const TdAttr attrs_of[] = { TD_POOL_ATTRS, TD_POOL_SIZE ("outsize"), TD_POOL_COVER_ALL ("true") };
/* clang-format on */

static TdStatus
infer (TdOpCall *call)
{
  const TdPoolAttrs *a = call->attrs;
  const TdShape *x = call->in[0].shape;
  TdShape y = *x;
  TdPooling w;
  TdAxisInts size;
  TdStatus status = td__check_floats (call, 1);

  if (status == TD_OK)
    status = td__check_ndim (call, 0, 4);
  if (status == TD_OK)
    status = td__pool_windows (call, 2, &w);
  if (status == TD_OK && a->n_size > 0)
    status = td__window_list (call, "outsize", a->size, a->n_size, 2, 0, size);
  for (int i = 0; status == TD_OK && i < 2; i++)
    {
      const int64_t full = w.stride[i] * (x->dim[2 + i] - 1) + w.ksize[i] - 2 * w.pad[i]
                           - (a->cover_all ? w.stride[i] - 1 : 0);
      char text[20];

      y.dim[2 + i] = a->n_size > 0 ? size[i] : full;
      if (y.dim[2 + i] < 1 || y.dim[2 + i] > INT32_MAX)
        status = td_op_fail_operands (call, TD_ERR_SHAPE,
                                      "%s of the output > 0 expected, got %lld",
                                      td__window_axis (i, 2, text), (long long)y.dim[2 + i]);
    }
  return status != TD_OK ? status : td_op_out (call, 0, call->in[0].dtype, &y);
}

static TdStatus
forward (TdOpCall *call)
{
  return td__pool_run (call, TD_POOL_AVERAGE_GRAD, TD_POOL_BY_ONE);
}

static TdStatus
backward (TdBackward *b)
{
  const TdPoolAttrs attrs = td__pool_sized (b->attrs, td_backward_in_shape (b, 0));

  b->gx[0] = td__apply1 (&td__unpooling_2d_grad_class, &attrs, NULL, b->gy[0]);
  return TD_OK;
}

/* Of the windows, as many as were unpooled. */
static TdStatus
grad_infer (TdOpCall *call)
{
  const TdPoolAttrs *a = call->attrs;
  TdShape gx = *call->in[0].shape;
  TdPooling w;
  TdAxisInts size;
  TdStatus status = td__check_floats (call, 1);

  if (status == TD_OK)
    status = td__check_ndim (call, 0, 4);
  if (status == TD_OK)
    status = td__pool_windows (call, 2, &w);
  if (status == TD_OK)
    status = td__window_list (call, "outsize", a->size, a->n_size, 2, 0, size);
  for (int i = 0; status == TD_OK && i < 2; i++)
    gx.dim[2 + i] = size[i];
  return status != TD_OK ? status : td_op_out (call, 0, call->in[0].dtype, &gx);
}

static TdStatus
grad_forward (TdOpCall *call)
{
  return td__pool_run (call, TD_POOL_AVERAGE, TD_POOL_BY_ONE);
}

static TdStatus
grad_backward (TdBackward *b)
{
  const TdPoolAttrs attrs = td__pool_sized (b->attrs, td_backward_in_shape (b, 0));

  b->gx[0] = td__apply1 (&td__unpooling_2d_class, &attrs, NULL, b->gy[0]);
  return TD_OK;
}

/* clang-format off */
#define UNPOOLING(NAME, LABEL, FORMULA, NAMES, INFER, FORWARD, BACKWARD)                       \
  {                                                                                            \
    .name = NAME, .label = LABEL, .group = "pooling", .formula = FORMULA, .n_in_min = 1,       \
    .n_in_max = 1, .n_out = 1, .flags = TD_OP_LAYOUTS, .in_names = NAMES, .attrs_size = sizeof (TdPoolAttrs),          \
    .attrs = attrs_of, .n_attrs = TD_ARRAY_LENGTH (attrs_of), .infer = INFER,                  \
    .forward = FORWARD, .backward = BACKWARD,                                                  \
  }

/* *Source*: chainer.functions.unpooling_2d. */
const TdOpClass td__unpooling_2d_class
    = UNPOOLING ("unpooling_2d", "Unpooling2D", "x under each window", td__names_x, infer, forward, backward);
const TdOpClass td__unpooling_2d_grad_class
    = UNPOOLING ("unpooling_2d_grad", "Unpooling2DGrad", "sum of each window", grad_names, grad_infer,
                 grad_forward, grad_backward);
/* clang-format on */

TdVar *
td_unpooling_2d_at (TdVar *x, TdUnpool2dOpt o, const TdSite *site)
{
  TdPoolAttrs attrs = { .n_ksize = 2,
                        .n_stride = 2,
                        .n_pad = 2,
                        .n_size = o.outsize[0] != 0 ? 2 : 0,
                        .cover_all = o.cover_all };

  for (int i = 0; i < 2; i++)
    {
      attrs.ksize[i] = o.ksize[i];
      attrs.stride[i] = o.stride[i] != 0 ? o.stride[i] : o.ksize[i];
      attrs.pad[i] = o.pad[i];
      attrs.size[i] = o.outsize[i];
    }
  return td__apply1 (&td__unpooling_2d_class, &attrs, site, x);
}

TdVar *
td_unpooling_2d_ (TdVar *x, const TdUnpool2dOpt *options)
{
  const TdUnpool2dOpt defaults = { TD_UNPOOL_2D_DEFAULTS };

  return td_unpooling_2d_at (x, options != NULL ? *options : defaults, NULL);
}
