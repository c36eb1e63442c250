/* Adaptive average pooling: so many outputs, whatever the size of the image; window o of n
 * covers [floor (o h / n), ceil ((o + 1) h / n)).
 *
 * SPDX-License-Identifier: MIT */
#include "windows.h"

static const char *const grad_names[] = { "gy" };

typedef struct
{
  TdAxisInts size;
  int n_size;
} Attrs;

/* clang-format off */
static const TdAttr outsize_attrs[] = {
  { "output_size", TD_ATTR_INTS, offsetof (Attrs, size), 0, offsetof (Attrs, n_size), "1" },
};
static const TdAttr size_attrs[] = {
  { "size", TD_ATTR_INTS, offsetof (Attrs, size), 0, offsetof (Attrs, n_size), "1" },
};
/* clang-format on */

static TdStatus
infer (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  TdShape y = *call->in[0].shape;
  TdAxisInts size;
  TdStatus status = td__check_floats (call, 1);

  if (status == TD_OK)
    status = td__check_ndim (call, 0, 4);
  if (status == TD_OK)
    status = td__window_list (call, call->cls->attrs[0].name, a->size, a->n_size, 2, 1, size);
  if (status == TD_OK && (y.dim[2] < 1 || y.dim[3] < 1))
    status = td_op_fail_operands (call, TD_ERR_SHAPE, "an image that is not empty expected");
  for (int i = 0; status == TD_OK && i < 2; i++)
    y.dim[2 + i] = size[i];
  return status != TD_OK ? status : td_op_out (call, 0, call->in[0].dtype, &y);
}

static TdStatus
run (TdOpCall *call, TdPoolKind kind)
{
  const TdPooling w = { .ndim = 2,
                        .layout = (uint8_t)td__call_layout (call),
                        .ksize = { 1, 1 },
                        .stride = { 1, 1 },
                        .divisor = TD_POOL_BY_COVERED,
                        .adaptive = true };

  return call->device->ops->pooling (call->device, kind, &w, call->in, 1, &call->out[0], NULL);
}

static TdStatus
forward (TdOpCall *call)
{
  return run (call, TD_POOL_AVERAGE);
}

static TdStatus
grad_forward (TdOpCall *call)
{
  return run (call, TD_POOL_AVERAGE_GRAD);
}

static Attrs
size_of (const TdShape *s)
{
  return (Attrs){ { (int)s->dim[2], (int)s->dim[3] }, 2 };
}

static TdStatus
backward (TdBackward *b)
{
  const Attrs attrs = size_of (td_backward_in_shape (b, 0));

  b->gx[0] = td__apply1 (&td__adaptive_average_pooling_2d_grad_class, &attrs, NULL, b->gy[0]);
  return TD_OK;
}

static TdStatus
grad_backward (TdBackward *b)
{
  const Attrs attrs = size_of (td_backward_in_shape (b, 0));

  b->gx[0] = td__apply1 (&td__adaptive_average_pooling_2d_class, &attrs, NULL, b->gy[0]);
  return TD_OK;
}

const TdOpClass td__adaptive_average_pooling_2d_class = {
  .name = "adaptive_average_pooling_2d",
  .label = "AdaptiveAveragePooling2D",
  .group = "pooling",
  .formula = "mean of each of oh x ow windows",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .flags = TD_OP_LAYOUTS,
  .in_names = td__names_x,
  .attrs_size = sizeof (Attrs),
  .attrs = outsize_attrs,
  .n_attrs = 1,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

const TdOpClass td__adaptive_average_pooling_2d_grad_class = {
  .name = "adaptive_average_pooling_2d_grad",
  .label = "AdaptiveAveragePooling2DGrad",
  .group = "pooling",
  .formula = "a share of gy under each window",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .flags = TD_OP_LAYOUTS,
  .in_names = grad_names,
  .attrs_size = sizeof (Attrs),
  .attrs = size_attrs,
  .n_attrs = 1,
  .infer = infer,
  .forward = grad_forward,
  .backward = grad_backward,
};

TdVar *
td_adaptive_average_pooling_2d_at (TdVar *x, int64_t oh, int64_t ow, const TdSite *site)
{
  const Attrs attrs = { { oh > INT32_MAX ? -1 : (int)oh, ow > INT32_MAX ? -1 : (int)ow }, 2 };

  return td__apply1 (&td__adaptive_average_pooling_2d_class, &attrs, site, x);
}

TdVar *
td_adaptive_average_pooling_2d (TdVar *x, int64_t oh, int64_t ow)
{
  return td_adaptive_average_pooling_2d_at (x, oh, ow, NULL);
}
