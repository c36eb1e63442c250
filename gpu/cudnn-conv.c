/* Convolutions through cuDNN: a graph of one operation, in fp32 unless the configuration says
 * tf32.
 *
 * SPDX-License-Identifier: MIT */
#include "cudnn-private.h"

#include <string.h>

/* Elements from one place of an axis to the next: of x and y, and of filters too, channels come
 * last where the layout says so. */
static void
strides (const TdCudnnConv *key, const int64_t *dim, int64_t *stride)
{
  const bool last = key->layout == TD_CHANNELS_LAST;
  int64_t step = 1;

  if (last)
    {
      stride[1] = 1;
      step = dim[1];
    }
  for (int i = key->rank - 1; i >= 0; i--)
    if (i != 1 || !last)
      {
        stride[i] = step;
        step *= dim[i];
      }
}

static TdDnn
tensor (TdDnnGraph *g, const TdCudnnConv *key, const int64_t *dim, int64_t id)
{
  TdDnn d = td__dnn_add (g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  int64_t stride[TD_CUDNN_RANK], alignment = key->alignment;

  strides (key, dim, stride);
  td__dnn_set (g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1,
               &td__dnn_types[key->dtype].type);
  td__dnn_set (g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, key->rank, dim);
  td__dnn_set (g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, key->rank, stride);
  td__dnn_set (g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
  td__dnn_set (g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
  td__dnn_finalize (g, d);
  return d;
}

static TdDnn
windows (TdDnnGraph *g, const TdCudnnConv *key)
{
  TdDnn d = td__dnn_add (g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const int64_t n = key->rank - 2;

  td__dnn_set (g, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &n);
  td__dnn_set (g, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1,
               &td__dnn_types[key->dtype].compute);
  td__dnn_set (g, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  td__dnn_set (g, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, n, key->pad);
  td__dnn_set (g, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, n, key->pad);
  td__dnn_set (g, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, n, key->dilate);
  td__dnn_set (g, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, n, key->stride);
  td__dnn_finalize (g, d);
  return d;
}

/* The names of a kind's attributes; the third tensor is the one that is written. */
static const struct
{
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t windows, x, w, y, alpha, beta;
} kinds[] = {
  [TD_CONV_FORWARD]
  = { CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA },
  [TD_CONV_DATA_GRAD]
  = { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA },
  [TD_CONV_WEIGHT_GRAD] = { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA },
};

static TdDnn
conv_graph (TdDnnGraph *g, const void *of, cudnnHandle_t handle)
{
  const TdCudnnConv *key = of;
  TdDnn x = tensor (g, key, key->x, 'x'), w = tensor (g, key, key->w, 'w'),
        y = tensor (g, key, key->y, 'y'), how = windows (g, key);
  TdDnn op = td__dnn_add (g, kinds[key->kind].type);
  const double alpha = 1, beta = key->accumulate ? 1 : 0;
  const float alpha_f = 1, beta_f = (float)beta;
  const bool wide = key->dtype == TD_F64;

  td__dnn_set (g, op, kinds[key->kind].windows, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &how);
  td__dnn_set (g, op, kinds[key->kind].x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
  td__dnn_set (g, op, kinds[key->kind].w, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w);
  td__dnn_set (g, op, kinds[key->kind].y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
  td__dnn_set (g, op, kinds[key->kind].alpha, wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT, 1,
               wide ? (const void *)&alpha : &alpha_f);
  td__dnn_set (g, op, kinds[key->kind].beta, wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT, 1,
               wide ? (const void *)&beta : &beta_f);
  td__dnn_finalize (g, op);
  return td__dnn_operation_graph (g, &op, 1, handle);
}

static bool
conv_on_tensor_cores (const void *of)
{
  const TdCudnnConv *key = of;

  return key->dtype != TD_F32 || key->tf32;
}

static bool
conv_repeats (const void *of)
{
  const TdCudnnConv *key = of;

  return !key->accumulate;
}

const TdDnnKind td__dnn_conv
    = { "a convolution", sizeof (TdCudnnConv), conv_graph, conv_on_tensor_cores, conv_repeats };

/* --- calls --- */

bool
td_cudnn_conv_key (TdCudnnConv *key, TdConvKind kind, const TdConv *attrs, const TdTensor *in,
                   const TdTensor *out, bool tf32)
{
  const TdTensor *x = kind == TD_CONV_DATA_GRAD ? out : &in[0];
  const TdTensor *w = kind == TD_CONV_FORWARD     ? &in[1]
                      : kind == TD_CONV_DATA_GRAD ? &in[0]
                                                  : out;
  const TdTensor *y = kind == TD_CONV_FORWARD ? out : &in[1];
  const TdTensor *all[3] = { x, w, y };
  uintptr_t bits = (uintptr_t)x->data | (uintptr_t)w->data | (uintptr_t)y->data | 16;
  int added = attrs->ndim == 1; /* an axis of one in front: cuDNN has two at least */

  memset (key, 0, sizeof *key);
  if (attrs->ndim < 1 || attrs->ndim > 3 || out->dtype > TD_BF16)
    return false;
  key->rank = attrs->ndim + 2 + added;
  key->kind = (int32_t)kind;
  key->dtype = (int32_t)out->dtype;
  key->tf32 = tf32;
  key->accumulate = attrs->accumulate;
  key->layout = attrs->layout;
  key->alignment = 1 << __builtin_ctzll (bits);
  for (int t = 0; t < 3; t++)
    {
      int64_t *dim = t == 0 ? key->x : t == 1 ? key->w : key->y;
      const TdShape *shape = all[t]->shape;

      if (all[t]->dtype != out->dtype || all[t]->size == 0)
        return false;
      for (int i = 0; i < shape->ndim; i++)
        dim[i < 2 ? i : i + added] = shape->dim[i];
      if (added)
        dim[2] = 1;
    }
  if (added)
    key->stride[0] = key->dilate[0] = 1;
  for (int i = 0; i < attrs->ndim; i++)
    {
      key->stride[i + added] = attrs->stride[i];
      key->pad[i + added] = attrs->pad[i];
      key->dilate[i + added] = attrs->dilate[i];
    }
  return true;
}

/* y += b, b along the channels. */
static TdStatus
add_bias (TdCuda *c, TdLayout layout, TdTensor *y, const TdTensor *b)
{
  TdShape sizes = td__layout_sizes (y->shape, layout), shape = { .ndim = sizes.ndim };
  const int channels = layout == TD_CHANNELS_LAST ? sizes.ndim - 1 : 1;
  TdTensor row = *b, places = *y;

  for (int i = 0; i < shape.ndim; i++)
    shape.dim[i] = i == channels ? b->size : 1;
  row.shape = &shape;
  places.shape = &sizes;
  td_cuda_reads (c, &row, 1);
  td_cuda_writes (c, &places, 1);
  return td_cuda_binary (&c->launcher, TD_BINARY_ADD, &places, &row, &places, false);
}

bool
td_cudnn_conv (TdCuda *c, TdConvKind kind, const TdConv *attrs, const TdTensor *in, int n_in,
               TdTensor *out, TdStatus *status)
{
  TdCudnnConv key;
  TdCudnn *own;
  TdDnnPlan *p;
  const int64_t ids[3] = { 'x', 'w', 'y' };
  void *data[3];

  *status = c->lost;
  if (c->lost != TD_OK)
    return true;
  if (td_cuda_host->config ()->use_cudnn == 0
      || !td_cudnn_conv_key (&key, kind, attrs, in, out, td_cuda_host->config ()->tf32 != 0))
    return false;
  own = td__dnn_of (c, status);
  if (own == NULL)
    return *status != TD_OK;
  p = td__dnn_plan (own, &td__dnn_conv, &key);
  if (p->rivals.n == 0)
    return false;
  data[0] = kind == TD_CONV_DATA_GRAD ? out->data : in[0].data;
  data[1] = kind == TD_CONV_FORWARD     ? in[1].data
            : kind == TD_CONV_DATA_GRAD ? in[0].data
                                        : out->data;
  data[2] = kind == TD_CONV_FORWARD ? out->data : in[1].data;
  *status = td__dnn_execute (c, p, ids, data, 3);
  if (*status == TD_OK && kind != TD_CONV_WEIGHT_GRAD && n_in > 2)
    *status = add_bias (c, (TdLayout)attrs->layout, out, &in[2]);
  c->device.algorithm = "cuDNN";
  return true;
}
