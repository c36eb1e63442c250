/* Windows over the axes after batch and channels: attributes of one number or one per axis, and
 * the checks of shapes that convolutions and poolings make alike.
 *
 * SPDX-License-Identifier: MIT */
#include "windows.h"

#include <stdio.h>
#include <string.h>

TdStatus
td__window_ndim (const TdOpCall *call, const TdOpClass *planes, int wanted, int *ndim)
{
  const int n = call->in[0].shape->ndim;

  if (call->cls == planes)
    wanted = 2;
  *ndim = n - 2;
  if (wanted != 0)
    return td__check_ndim (call, 0, 2 + wanted);
  if (n < 3)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "%s.ndim >= 3 expected, got %d",
                                call->cls->in_names[0], n);
  return TD_OK;
}

static const char *
list_text (const int *list, int n, char *text, size_t size)
{
  size_t at = 0;

  text[0] = '\0';
  for (int i = 0; i < n && at < size; i++)
    at += (size_t)snprintf (text + at, size - at, i > 0 ? ", %d" : "%d", list[i]);
  return text;
}

TdStatus
td__window_list (const TdOpCall *call, const char *name, const int *list, int n, int ndim,
                 int least, int *to)
{
  char text[80];

  if (n != 1 && n != ndim)
    return td_op_fail (call, TD_ERR_ARG, "%s of 1 or %d numbers expected, got %d", name, ndim,
                       n);
  for (int i = 0; i < ndim; i++)
    {
      to[i] = list[n == 1 ? 0 : i];
      if (to[i] < least)
        return td_op_fail (call, TD_ERR_ARG, "%s >= %d expected, got (%s)", name, least,
                           list_text (list, n, text, sizeof text));
    }
  return TD_OK;
}

const char *
td__window_axis (int i, int ndim, char text[20])
{
  if (ndim == 2)
    return i == 0 ? "height" : "width";
  snprintf (text, 20, "axis %d", 2 + i);
  return text;
}

/* Sizes that attributes and kernels keep as int. */
static TdStatus
check_sizes (const TdOpCall *call, int i)
{
  for (int a = 2; a < call->in[i].shape->ndim; a++)
    if (call->in[i].shape->dim[a] > INT32_MAX)
      return td_op_fail_operands (call, TD_ERR_SHAPE, "sizes of at most %d expected",
                                  INT32_MAX);
  return TD_OK;
}

/* --- convolutions --- */

TdStatus
td__conv_operands (const TdOpCall *call, const TdOpClass *planes, int *ndim)
{
  const TdConvAttrs *a = call->attrs;
  TdStatus status = td__check_floats (call, 7);

  if (status == TD_OK)
    status = td__window_ndim (call, planes, a->ndim, ndim);
  return status != TD_OK ? status : td__check_ndim (call, 1, 2 + *ndim);
}

TdStatus
td__conv_windows (const TdOpCall *call, int ndim, TdConv *w)
{
  const TdConvAttrs *a = call->attrs;
  TdStatus status;

  *w = (TdConv){ .ndim = ndim, .groups = a->groups, .accumulate = call->accumulate };
  status = td__window_list (call, "stride", a->stride, a->n_stride, ndim, 1, w->stride);
  if (status == TD_OK)
    status = td__window_list (call, "pad", a->pad, a->n_pad, ndim, 0, w->pad);
  if (status == TD_OK)
    status = td__window_list (call, "dilate", a->dilate, a->n_dilate, ndim, 1, w->dilate);
  if (status == TD_OK && a->groups < 1)
    status = td_op_fail (call, TD_ERR_ARG, "groups >= 1 expected, got %d", a->groups);
  for (int i = 0; status == TD_OK && i < call->n_in; i++)
    status = check_sizes (call, i);
  return status;
}

TdConv
td__conv_kernel (const TdOpCall *call)
{
  TdConv w;

  td__conv_windows (call, call->in[0].shape->ndim - 2, &w);
  w.layout = (uint8_t)td__call_layout (call);
  if (call->end != NULL)
    w.end = *call->end;
  return w;
}

TdStatus
td__conv_fits (const TdOpCall *call, const TdConv *a, int axis, int64_t size, int64_t ksize,
               int64_t n)
{
  const int64_t least
      = td__window_count (size, ksize, a->stride[axis], a->pad[axis], a->dilate[axis], false);
  const int64_t most
      = td__window_count (size, ksize, a->stride[axis], a->pad[axis], a->dilate[axis], true);
  char text[20];

  if (n >= least && n <= most && ksize >= 1)
    return TD_OK;
  return td_op_fail_operands (call, TD_ERR_SHAPE,
                              "%s of %lld to %lld expected for an image of %lld, got %lld",
                              td__window_axis (axis, a->ndim, text), (long long)least,
                              (long long)most, (long long)size, (long long)n);
}

TdConvAttrs
td__conv_sized (const TdConvAttrs *a, const TdShape *s)
{
  TdConvAttrs sized = *a;

  sized.n_size = s->ndim - 2;
  for (int i = 0; i < sized.n_size; i++)
    sized.size[i] = (int)s->dim[2 + i];
  return sized;
}

/* The bias' gradient: gy summed over all axes but 1. */
static TdVar *
bias_grad (TdVar *gy, int ndim)
{
  int axes[TD_MAX_DIMS] = { 0 };

  for (int i = 1; i < ndim - 1; i++)
    axes[i] = i + 1;
  return td_sum_axes (gy, axes, ndim - 1, false);
}

TdStatus
td__conv_backward (TdBackward *b, bool nd, bool transposed)
{
  const TdShape *x = td_backward_in_shape (b, 0), *W = td_backward_in_shape (b, 1);

  if (td_backward_needs (b, 0))
    {
      const TdConvAttrs attrs = td__conv_sized (b->attrs, x);
      TdVar *filters = td_backward_input (b, 1);

      b->gx[0] = transposed ? td__convolution (nd, b->gy[0], filters, &attrs)
                            : td__deconvolution (nd, b->gy[0], filters, &attrs);
    }
  if (td_backward_needs (b, 1))
    {
      const TdConvAttrs attrs = td__conv_sized (b->attrs, W);
      TdVar *input = td_backward_input (b, 0);

      td_backward_into (b, 1);
      b->gx[1] = transposed ? td__convolution_grad_w (nd, b->gy[0], input, &attrs)
                            : td__convolution_grad_w (nd, input, b->gy[0], &attrs);
    }
  if (b->n_in == 3 && td_backward_needs (b, 2))
    {
      td_backward_into (b, 2);
      b->gx[2] = bias_grad (b->gy[0], x->ndim);
    }
  return TD_OK;
}

/* --- poolings --- */

TdPoolAttrs
td__pool_attrs_2d (const TdPool2dOpt *o)
{
  TdPoolAttrs a = { .n_ksize = 2, .n_stride = 2, .n_pad = 2, .cover_all = o->cover_all };

  for (int i = 0; i < 2; i++)
    {
      a.ksize[i] = o->ksize[i];
      a.stride[i] = o->stride[i] != 0 ? o->stride[i] : o->ksize[i];
      a.pad[i] = o->pad[i];
    }
  return a;
}

TdPoolAttrs
td__pool_attrs_nd (const TdPoolNdOpt *o, int ndim, const TdVar *x)
{
  const int there = td_ndim (x) - 2, n = ndim != 0 ? ndim : there < 1 ? 1 : there;
  TdPoolAttrs a = { .n_ksize = n,
                    .n_stride = n,
                    .n_pad = n,
                    .cover_all = o->cover_all,
                    .pad_value = o->pad_value,
                    .ndim = ndim };

  for (int i = 0; i < n; i++)
    {
      a.ksize[i] = o->ksize[i];
      a.stride[i] = o->stride[i] != 0 ? o->stride[i] : o->ksize[i];
      a.pad[i] = o->pad[i];
    }
  return a;
}

TdStatus
td__pool_windows (const TdOpCall *call, int ndim, TdPooling *w)
{
  const TdPoolAttrs *a = call->attrs;
  const bool own = a->n_stride > 0;
  TdStatus status;
  int64_t places = 1;

  *w = (TdPooling){ .ndim = ndim };
  status = td__window_list (call, "ksize", a->ksize, a->n_ksize, ndim, 1, w->ksize);
  if (status == TD_OK)
    status = td__window_list (call, "stride", own ? a->stride : a->ksize,
                              own ? a->n_stride : a->n_ksize, ndim, 1, w->stride);
  if (status == TD_OK)
    status = td__window_list (call, "pad", a->pad, a->n_pad, ndim, 0, w->pad);
  for (int i = 0; i < ndim && status == TD_OK; i++)
    {
      places *= w->ksize[i];
      if (places > INT32_MAX)
        status
            = td_op_fail (call, TD_ERR_ARG, "windows of at most %d places expected", INT32_MAX);
    }
  if (status == TD_OK && a->pad_value != 0 && a->pad_value != TD_NONE)
    status
        = td_op_fail (call, TD_ERR_ARG, "pad_value 0 or None expected, got %d", a->pad_value);
  return status;
}

TdStatus
td__pool_infer (TdOpCall *call, const TdOpClass *planes, TdShape *pooled)
{
  const TdPoolAttrs *a = call->attrs;
  const TdShape *x = call->in[0].shape;
  TdPooling w;
  int ndim;
  TdStatus status = td__check_floats (call, 1);

  if (status == TD_OK)
    status = td__window_ndim (call, planes, a->ndim, &ndim);
  if (status == TD_OK)
    status = td__pool_windows (call, ndim, &w);
  if (status == TD_OK)
    status = check_sizes (call, 0);
  if (status != TD_OK)
    return status;
  *pooled = *x;
  for (int i = 0; i < ndim; i++)
    {
      char text[20];

      pooled->dim[2 + i] = td__window_count (x->dim[2 + i], w.ksize[i], w.stride[i], w.pad[i],
                                             1, a->cover_all);
      if (pooled->dim[2 + i] < 1)
        return td_op_fail_operands (
            call, TD_ERR_SHAPE,
            "%s of the output > 0 expected, the window does not fit the image",
            td__window_axis (i, ndim, text));
    }
  return TD_OK;
}

TdStatus
td__pool_grad_infer (TdOpCall *call, const TdOpClass *planes, int i, TdShape *image)
{
  const TdPoolAttrs *a = call->attrs;
  const TdShape *pooled = call->in[i].shape;
  TdPooling w;
  TdAxisInts size;
  int ndim;
  TdStatus status = td__check_floats (call, 1u << i);

  if (status == TD_OK)
    status = td__window_ndim (call, planes, a->ndim, &ndim);
  if (status == TD_OK)
    status = td__check_ndim (call, i, 2 + ndim);
  if (status == TD_OK)
    status = td__pool_windows (call, ndim, &w);
  if (status == TD_OK)
    status = td__window_list (call, "size", a->size, a->n_size, ndim, 0, size);
  if (status != TD_OK)
    return status;
  *image = *pooled;
  for (int k = 0; k < ndim; k++)
    {
      const int64_t n
          = td__window_count (size[k], w.ksize[k], w.stride[k], w.pad[k], 1, a->cover_all);
      char text[20];

      image->dim[2 + k] = size[k];
      if (n != pooled->dim[2 + k])
        return td_op_fail_operands (call, TD_ERR_SHAPE,
                                    "%s of %lld expected for an image of %d, got %lld",
                                    td__window_axis (k, ndim, text), (long long)n, size[k],
                                    (long long)pooled->dim[2 + k]);
    }
  return TD_OK;
}

TdStatus
td__pool_run (TdOpCall *call, TdPoolKind kind, TdPoolDivisor divisor)
{
  TdPooling w;

  td__pool_windows (call, call->in[0].shape->ndim - 2, &w);
  w.divisor = divisor;
  w.layout = (uint8_t)td__call_layout (call);
  return call->device->ops->pooling (call->device, kind, &w, call->in, call->n_in,
                                     &call->out[0], call->n_out > 1 ? &call->out[1] : NULL);
}

TdPoolAttrs
td__pool_sized (const TdPoolAttrs *a, const TdShape *s)
{
  TdPoolAttrs sized = *a;

  sized.n_size = s->ndim - 2;
  for (int i = 0; i < sized.n_size; i++)
    sized.size[i] = (int)s->dim[2 + i];
  return sized;
}
