/* Convolutions through cuDNN: one graph of the convolution and its end, which is a bias, an
 * array that is added (a residual block) and relu; in fp32 unless the configuration allows
 * tf32.
 *
 * A graph with an end may use no more workspace than the convolution alone.  Engines that fuse
 * an end want a bias, which is zeros where there is none.  Few engines document that NaN
 * passes through their relu, so a plan with one is first run with a bias of NaN; if NaN is
 * lost, our kernels do the end.  Other activations are left to kernels: of relu's 33 engines,
 * one is offered for tanh and sigmoid that needs no compiling at run time, and none for gelu.
 * Gradients of filters are added to what is there by cuDNN (beta 1).
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

/* A tensor of the call, or (between) one that is never in memory, in the type that is computed
 * in. */
static TdDnn
tensor_of (TdDnnGraph *g, const TdCudnnConv *key, const int64_t *dim, int64_t id, bool between)
{
  TdDnn d = td__dnn_add (g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const TdDnnType *type = &td__dnn_types[key->dtype];
  int64_t stride[TD_CUDNN_RANK], alignment = key->alignment;

  strides (key, dim, stride);
  td__dnn_set (g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1,
               between ? &type->compute : &type->type);
  td__dnn_set (g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, key->rank, dim);
  td__dnn_set (g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, key->rank, stride);
  td__dnn_set (g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
  td__dnn_set (g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
  if (between)
    td__dnn_set (g, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &between);
  td__dnn_finalize (g, d);
  return d;
}

static TdDnn
tensor (TdDnnGraph *g, const TdCudnnConv *key, const int64_t *dim, int64_t id)
{
  return tensor_of (g, key, dim, id, false);
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

/* The operation itself; the third tensor is the one that is written. */
static TdDnn
convolution (TdDnnGraph *g, const TdCudnnConv *key, TdDnn x, TdDnn w, TdDnn y)
{
  TdDnn how = windows (g, key), op = td__dnn_add (g, kinds[key->kind].type);
  const double alpha = 1, beta = key->accumulate ? 1 : 0;
  const float alpha_f = 1, beta_f = (float)beta;
  const bool wide = key->dtype == TD_F64;

  td__dnn_link (g, op, kinds[key->kind].windows, how);
  td__dnn_link (g, op, kinds[key->kind].x, x);
  td__dnn_link (g, op, kinds[key->kind].w, w);
  td__dnn_link (g, op, kinds[key->kind].y, y);
  td__dnn_set (g, op, kinds[key->kind].alpha, wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT, 1,
               wide ? (const void *)&alpha : &alpha_f);
  td__dnn_set (g, op, kinds[key->kind].beta, wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT, 1,
               wide ? (const void *)&beta : &beta_f);
  td__dnn_finalize (g, op);
  return op;
}

/* y = mode (x) or mode (x, second), each number for itself. */
static TdDnn
pointwise (TdDnnGraph *g, const TdCudnnConv *key, cudnnPointwiseMode_t mode, TdDnn x,
           TdDnn second, TdDnn y)
{
  TdDnn how = td__dnn_add (g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR), op;

  td__dnn_set (g, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  td__dnn_set (g, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1,
               &td__dnn_types[key->dtype].compute);
  td__dnn_finalize (g, how);
  op = td__dnn_add (g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  td__dnn_link (g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  td__dnn_link (g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (second != NULL)
    td__dnn_link (g, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, second);
  td__dnn_link (g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  td__dnn_finalize (g, op);
  return op;
}

enum
{
  MAX_STEPS = 4 /* convolution, sum, bias, relu */
};

/* Every step but the last writes a tensor that is never in memory. */
static TdDnn
conv_graph (TdDnnGraph *g, const void *of, cudnnHandle_t handle)
{
  const TdCudnnConv *key = of;
  const int64_t row[TD_CUDNN_RANK] = { 1, key->y[1], 1, 1, 1 };
  const struct
  {
    bool wanted;
    cudnnPointwiseMode_t mode;
    const int64_t *dim;
    int64_t id;
  } after[] = { { key->added, CUDNN_POINTWISE_ADD, key->y, 'a' },
                { key->bias, CUDNN_POINTWISE_ADD, row, 'b' },
                { key->relu, CUDNN_POINTWISE_RELU_FWD, NULL, 0 } };
  int n = 0, left = (key->added != 0) + (key->bias != 0) + (key->relu != 0);
  TdDnn op[MAX_STEPS], y = tensor_of (g, key, key->y, left > 0 ? '0' : 'y', left > 0);

  op[n++] = convolution (g, key, tensor (g, key, key->x, 'x'), tensor (g, key, key->w, 'w'), y);
  for (int i = 0; i < MAX_STEPS - 1; i++)
    if (after[i].wanted)
      {
        TdDnn x = y, second = NULL;

        left--;
        if (after[i].dim != NULL)
          second = tensor (g, key, after[i].dim, after[i].id);
        y = tensor_of (g, key, key->y, left > 0 ? '1' + i : 'y', left > 0);
        op[n++] = pointwise (g, key, after[i].mode, x, second, y);
      }
  return td__dnn_operation_graph (g, op, n, handle);
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

/* Is there something after the convolution and its bias? */
static bool
is_ended (const TdConv *attrs)
{
  return attrs->end.added != NULL || attrs->end.relu || attrs->end.above != NULL;
}

bool
td_cudnn_conv_key (TdCudnnConv *key, TdConvKind kind, const TdConv *attrs, const TdTensor *in,
                   int n_in, const TdTensor *out, bool tf32)
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
  if (kind == TD_CONV_FORWARD)
    {
      key->bias = n_in > 2 || is_ended (attrs); /* engines with an end want one: zeros */
      key->added = attrs->end.added != NULL;
      key->relu = attrs->end.relu;
      bits |= n_in > 2 ? (uintptr_t)in[2].data : 0;
      bits |= key->added ? (uintptr_t)attrs->end.added->data : 0;
    }
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

/* The plan with all that is wanted, or, where only the bias is, with that left to a kernel. */
static TdDnnPlan *
plan_for (TdCudnn *own, TdCudnnConv *key, bool ended)
{
  TdDnnPlan *p = td__dnn_plan (own, &td__dnn_conv, key);

  if (p->rivals.n > 0 || ended || !key->bias)
    return p;
  key->bias = false;
  return td__dnn_plan (own, &td__dnn_conv, key);
}

/* What one execution is given. */
typedef struct
{
  int64_t ids[5];
  void *data[5];
  int n;
} Given;

static void
give (Given *g, int64_t id, void *data)
{
  g->ids[g->n] = id;
  g->data[g->n++] = data;
}

/* Scratch of equal bytes: zeros are 0, and ones are NaN in every type. */
static void *
equal_bytes (TdCuda *c, size_t bytes, unsigned char with)
{
  void *room = td_cuda_scratch (c, bytes);

  if (room == NULL)
    return NULL;
  if (td_cuda_check (c, td_cuda.cuMemsetD8Async ((CUdeviceptr)room, with, bytes, c->stream),
                     "cuMemsetD8Async")
      != TD_OK)
    return NULL;
  return room;
}

/* cuDNN promises of few engines that NaN passes through their relu, and a debugger must not
 * lose one: before a plan is used, it runs once with a bias of NaN. */
static TdStatus
try_relu (TdCuda *c, TdDnnPlan *p, Given given, size_t bias_bytes, const TdTensor *out)
{
  const size_t bytes = td__bytes_of (out->dtype);
  unsigned char first[8];
  TdStatus status;

  if (td_cuda_refuses (c, "the relu of an engine is tried"))
    return TD_ERR_STATE;
  for (int i = 0; i < given.n; i++)
    if (given.ids[i] == 'b' && (given.data[i] = equal_bytes (c, bias_bytes, 0xff)) == NULL)
      return TD_ERR_MEMORY;
  status = td__dnn_execute (c, p, given.ids, given.data, given.n);
  if (status == TD_OK)
    status = td_cuda_download (&c->device, first, out->data, bytes);
  if (status != TD_OK)
    return status;
  p->tried = true;
  if (!td_cudnn_is_nan (first, out->dtype))
    td__dnn_refuse (p);
  return TD_OK;
}

bool
td_cudnn_is_nan (const void *bytes, TdDtype dtype)
{
  const size_t n = td__bytes_of (dtype);
  uint64_t bits = 0;

  memcpy (&bits, bytes, n);
  return (bits & ~(1ull << (8 * n - 1))) > td__infinity_bits (dtype);
}

/* A NaN among what relu_grad looks at has to come out of it, which cuDNN does not promise. */
bool
td_cudnn_conv (TdCuda *c, TdConvKind kind, const TdConv *attrs, const TdTensor *in, int n_in,
               TdTensor *out, TdStatus *status)
{
  const bool forward = kind == TD_CONV_FORWARD, ended = is_ended (attrs);
  TdCudnnConv key;
  TdCudnn *own;
  TdDnnPlan *p;
  Given given = { .n = 0 };
  size_t bias_bytes;

  *status = c->lost;
  if (c->lost != TD_OK)
    return true;
  if (td_cuda_host->config ()->use_cudnn == 0 || attrs->end.above != NULL || (ended && !forward)
      || !td_cudnn_conv_key (&key, kind, attrs, in, n_in, out,
                             td_cuda_host->config ()->tf32 != 0))
    return false;
  own = td__dnn_of (c, status);
  if (own == NULL)
    return *status != TD_OK;
  p = plan_for (own, &key, ended);
  if (p->rivals.n == 0)
    return false;
  give (&given, 'x', kind == TD_CONV_DATA_GRAD ? out->data : in[0].data);
  give (&given, 'w', forward ? in[1].data : kind == TD_CONV_DATA_GRAD ? in[0].data : out->data);
  give (&given, 'y', forward ? out->data : in[1].data);
  if (key.added)
    give (&given, 'a', attrs->end.added->data);
  if (key.bias)
    give (&given, 'b', n_in > 2 ? in[2].data : NULL);
  bias_bytes = (size_t)key.y[1] * td__bytes_of (out->dtype);
  if (key.relu && !p->tried)
    *status = try_relu (c, p, given, bias_bytes, out);
  if (*status != TD_OK)
    return true;
  if (p->rivals.n == 0)
    return false;
  if (key.bias && n_in < 3)
    given.data[given.n - 1] = equal_bytes (c, bias_bytes, 0);
  if (key.bias && given.data[given.n - 1] == NULL)
    *status = TD_ERR_MEMORY;
  if (*status == TD_OK)
    *status = td__dnn_execute (c, p, given.ids, given.data, given.n);
  if (*status == TD_OK && kind != TD_CONV_WEIGHT_GRAD && n_in > 2 && !key.bias)
    *status = add_bias (c, (TdLayout)attrs->layout, out, &in[2]);
  c->device.algorithm = "cuDNN";
  return true;
}
