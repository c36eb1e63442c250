/* Windows of images as columns, and the opposite, which adds columns back into images: each is
 * the other's gradient.
 *
 * SPDX-License-Identifier: MIT */
#include "layers.h"

#include <string.h>

typedef struct
{
  int ksize[2], stride[2], pad[2], dilate[2];
  bool cover_all;
  int size[2]; /* of the image, in the gradient */
} Attrs;

static const TdAttr attr_table[] = {
  { "ksize", TD_ATTR_INTS, offsetof (Attrs, ksize), 2, 0, NULL },
  { "stride", TD_ATTR_INTS, offsetof (Attrs, stride), 2, 0, "1, 1" },
  { "pad", TD_ATTR_INTS, offsetof (Attrs, pad), 2, 0, "0, 0" },
  { "cover_all", TD_ATTR_BOOL, offsetof (Attrs, cover_all), 0, 0, "false" },
  { "dilate", TD_ATTR_INTS, offsetof (Attrs, dilate), 2, 0, "1, 1" },
  { "size", TD_ATTR_INTS, offsetof (Attrs, size), 2, 0, "0, 0" },
};
static const char *const names_gy[] = { "gy" };

/* The image (n, c, h, w), with padding, and its windows (n, c, kh, kw, oh, ow). */
typedef struct
{
  TdShape image, padded, windows;
  TdStrides walk, inside; /* of the windows over `padded`, and of the image */
  bool pads;              /* padded is not the image itself */
} Geometry;

static TdStatus
geometry (const TdOpCall *call, const TdShape *image, Geometry *g)
{
  const Attrs *a = call->attrs;
  int64_t stride[TD_MAX_DIMS];

  memset (g, 0, sizeof *g);
  g->image = g->padded = *image;
  g->windows.ndim = 6;
  for (int i = 0; i < 2; i++)
    {
      const int64_t size = image->dim[2 + i];
      int64_t n, reach;

      if (a->ksize[i] < 1 || a->stride[i] < 1 || a->dilate[i] < 1 || a->pad[i] < 0)
        return td_op_fail (call, TD_ERR_ARG,
                           "ksize, stride and dilate >= 1 and pad >= 0 expected");
      n = td__window_count (size, a->ksize[i], a->stride[i], a->pad[i], a->dilate[i],
                            a->cover_all);
      if (n < 1)
        return td_op_fail_operands (
            call, TD_ERR_SHAPE,
            "%s of the output > 0 expected, the window does not fit the image",
            i == 0 ? "height" : "width");
      reach = (n - 1) * a->stride[i] + (int64_t)(a->ksize[i] - 1) * a->dilate[i] + 1;
      g->padded.dim[2 + i] = size + 2 * a->pad[i] > reach ? size + 2 * a->pad[i] : reach;
      g->windows.dim[2 + i] = a->ksize[i];
      g->windows.dim[4 + i] = n;
      g->pads = g->pads || g->padded.dim[2 + i] != size;
    }
  td__row_major (&g->padded, stride);
  for (int i = 0; i < 2; i++)
    {
      g->windows.dim[i] = image->dim[i];
      g->walk.stride[i] = stride[i];
      g->walk.stride[2 + i] = a->dilate[i] * stride[2 + i];
      g->walk.stride[4 + i] = a->stride[i] * stride[2 + i];
      g->inside.offset += a->pad[i] * stride[2 + i];
    }
  memcpy (g->inside.stride, stride, sizeof stride);
  return TD_OK;
}

/* The padded image in workspace, of zeros; or `image` itself where nothing is padded. */
static TdStatus
padded_image (TdOpCall *call, Geometry *g, const TdTensor *image, TdTensor *padded)
{
  size_t bytes;

  *padded = *image;
  if (!g->pads)
    return TD_OK;
  if (!td__shape_bytes (&g->padded, image->dtype, &bytes))
    return td_op_fail_operands (call, TD_ERR_SHAPE, "padding that fits memory expected");
  padded->shape = &g->padded;
  padded->size = td__size (&g->padded);
  padded->data = td_op_workspace (call, bytes);
  return padded->data == NULL ? TD_ERR_MEMORY
                              : call->device->ops->zero (call->device, padded->data, bytes);
}

static TdStatus
infer (TdOpCall *call)
{
  const TdShape *x = call->in[0].shape;
  TdStatus status = td__check_ndim (call, 0, 4);
  Geometry g;

  if (status == TD_OK)
    status = geometry (call, x, &g);
  if (status != TD_OK)
    return status;
  return td_op_out (call, 0, call->in[0].dtype,
                    &TD_SHAPE (x->dim[0], x->dim[1] * g.windows.dim[2] * g.windows.dim[3],
                               g.windows.dim[4], g.windows.dim[5]));
}

static TdStatus
forward (TdOpCall *call)
{
  const TdDeviceOps *ops = call->device->ops;
  TdTensor padded, y = call->out[0];
  Geometry g;
  TdStatus status = geometry (call, call->in[0].shape, &g);

  y.shape = &g.windows;
  if (status == TD_OK)
    status = padded_image (call, &g, &call->in[0], &padded);
  if (status == TD_OK && g.pads)
    status = ops->strided (call->device, TD_STRIDED_WRITE, &call->in[0], &g.inside, &padded);
  if (status == TD_OK)
    status = ops->strided (call->device, TD_STRIDED_READ, &padded, &g.walk, &y);
  return status;
}

static TdStatus
backward (TdBackward *b)
{
  Attrs attrs = *(const Attrs *)b->attrs;

  for (int i = 0; i < 2; i++)
    attrs.size[i] = (int)td_backward_in_shape (b, 0)->dim[2 + i];
  b->gx[0] = td__apply1 (&td__im2col_grad_class, &attrs, NULL, b->gy[0]);
  return TD_OK;
}

/* *Source*: chainer.functions.im2col. */
const TdOpClass td__im2col_class = {
  .name = "im2col",
  .label = "Im2Col",
  .group = "array",
  .formula = "windows of x as columns",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .in_names = td__names_x,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = 5,
  .infer = infer,
  .forward = forward,
  .backward = backward,
};

static TdStatus
grad_image (const TdOpCall *call, TdShape *image)
{
  const Attrs *a = call->attrs;
  const TdShape *gy = call->in[0].shape;
  const TdStatus status = td__check_ndim (call, 0, 4);
  const int64_t window = (int64_t)a->ksize[0] * a->ksize[1];

  if (status != TD_OK)
    return status;
  if (window < 1 || gy->dim[1] % window != 0)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "gy.shape[1] %% (kh * kw) == 0 expected");
  *image = TD_SHAPE (gy->dim[0], gy->dim[1] / window, a->size[0], a->size[1]);
  return TD_OK;
}

static TdStatus
grad_infer (TdOpCall *call)
{
  const TdShape *gy = call->in[0].shape;
  TdShape image;
  Geometry g;
  TdStatus status = grad_image (call, &image);

  if (status == TD_OK)
    status = geometry (call, &image, &g);
  if (status == TD_OK && (gy->dim[2] != g.windows.dim[4] || gy->dim[3] != g.windows.dim[5]))
    return td_op_fail_operands (call, TD_ERR_SHAPE, "gy of the windows' number expected");
  return status != TD_OK ? status : td_op_out (call, 0, call->in[0].dtype, &image);
}

static TdStatus
grad_forward (TdOpCall *call)
{
  const TdDeviceOps *ops = call->device->ops;
  TdTensor padded, gy = call->in[0], *gx = &call->out[0];
  Geometry g;
  TdStatus status = geometry (call, gx->shape, &g);

  gy.shape = &g.windows;
  if (status == TD_OK)
    status = padded_image (call, &g, gx, &padded);
  if (status == TD_OK && !g.pads)
    status = ops->zero (call->device, gx->data, (size_t)gx->size * td_dtype_bytes (gx->dtype));
  if (status == TD_OK)
    status = ops->strided (call->device, TD_STRIDED_ADD, &gy, &g.walk, &padded);
  if (status == TD_OK && g.pads)
    status = ops->strided (call->device, TD_STRIDED_READ, &padded, &g.inside, gx);
  return status;
}

static TdStatus
grad_backward (TdBackward *b)
{
  b->gx[0] = td__apply1 (&td__im2col_class, b->attrs, NULL, b->gy[0]);
  return TD_OK;
}

const TdOpClass td__im2col_grad_class = {
  .name = "im2col_grad",
  .label = "Im2ColGrad",
  .group = "array",
  .formula = "columns added back into images",
  .n_in_min = 1,
  .n_in_max = 1,
  .n_out = 1,
  .in_names = names_gy,
  .attrs_size = sizeof (Attrs),
  .attrs = attr_table,
  .n_attrs = TD_ARRAY_LENGTH (attr_table),
  .infer = grad_infer,
  .forward = grad_forward,
  .backward = grad_backward,
};

TdVar *
td_im2col_at (TdVar *x, TdIm2colOpt o, const TdSite *site)
{
  Attrs attrs;

  memset (&attrs, 0, sizeof attrs);
  for (int i = 0; i < 2; i++)
    {
      attrs.ksize[i] = o.ksize[i];
      attrs.stride[i] = o.stride[i];
      attrs.pad[i] = o.pad[i];
      attrs.dilate[i] = o.dilate[i];
    }
  attrs.cover_all = o.cover_all;
  return td__apply1 (&td__im2col_class, &attrs, site, x);
}

TdVar *
td_im2col_ (TdVar *x, const TdIm2colOpt *options)
{
  const TdIm2colOpt defaults = { TD_IM2COL_DEFAULTS };

  return td_im2col_at (x, options != NULL ? *options : defaults, NULL);
}
