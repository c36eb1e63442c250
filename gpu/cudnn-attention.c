/* Attention in halves through cuDNN: the graph that it knows as one kernel, products, scale,
 * causal mask and softmax by its parts, with the logarithm of each row's sum for backward.
 *
 * All sizes are (batch, 1, rows, columns): batch and heads are one axis here.  Scores and
 * softmax are in fp32; nothing of size n_q n_k is ever stored.
 *
 * *Source*: cuDNN's developer guide, "Fused flash attention", forward and backward graphs.
 * SPDX-License-Identifier: MIT */
#include "cudnn-private.h"

#include <math.h>
#include <string.h>

enum
{
  /* what is read and written */
  ID_Q = 1,
  ID_K,
  ID_V,
  ID_Y,
  ID_SUMS,
  ID_GY,
  ID_GQ,
  ID_GK,
  ID_GV,
  /* numbers of the host's */
  ID_SCALE,
  ID_ONE,
  ID_HIDDEN,
  ID_SHIFT,
  ID_VIRTUAL, /* and up: what is in between */
  MAX_OPERATIONS = 24
};

/* A graph under construction. */
typedef struct
{
  TdDnnGraph *g;
  const TdCudnnAttention *key;
  TdDnn operations[MAX_OPERATIONS];
  int n, n_virtual;
} Build;

/* (batch, 1, rows, columns) with these strides between rows and columns. */
static TdDnn
tensor_strided (Build *b, int64_t id, cudnnDataType_t type, int64_t rows, int64_t columns,
                int64_t row_stride, int64_t column_stride)
{
  TdDnn d = td__dnn_add (b->g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const int64_t dim[4] = { b->key->batch, 1, rows, columns };
  const int64_t stride[4] = { rows * columns, rows * columns, row_stride, column_stride };
  const int64_t alignment = b->key->alignment;
  const bool is_virtual = id >= ID_VIRTUAL;

  td__dnn_set (b->g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  td__dnn_set (b->g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dim);
  td__dnn_set (b->g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride);
  td__dnn_set (b->g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
  td__dnn_set (b->g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
  td__dnn_set (b->g, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
  td__dnn_finalize (b->g, d);
  return d;
}

/* Row-major, in the dtype of the call. */
static TdDnn
tensor (Build *b, int64_t id, int64_t rows, int64_t columns)
{
  return tensor_strided (b, id, td__dnn_types[b->key->dtype].type, rows, columns, columns, 1);
}

static TdDnn
transposed (Build *b, int64_t id, int64_t rows, int64_t columns)
{
  return tensor_strided (b, id, td__dnn_types[b->key->dtype].type, rows, columns, 1, rows);
}

/* In between, never in memory. */
static TdDnn
between (Build *b, cudnnDataType_t type, int64_t rows, int64_t columns)
{
  return tensor_strided (b, ID_VIRTUAL + b->n_virtual++, type, rows, columns, columns, 1);
}

/* One number that the host gives with each call. */
static TdDnn
number (Build *b, int64_t id, cudnnDataType_t type)
{
  TdDnn d = td__dnn_add (b->g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const int64_t one[4] = { 1, 1, 1, 1 }, alignment = 4;
  const bool by_value = true;

  td__dnn_set (b->g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  td__dnn_set (b->g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, one);
  td__dnn_set (b->g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, one);
  td__dnn_set (b->g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
  td__dnn_set (b->g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
  td__dnn_set (b->g, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
  td__dnn_finalize (b->g, d);
  return d;
}

/* --- operations: each writes y and returns it --- */

static TdDnn
operation_add (Build *b, TdDnn op)
{
  td__dnn_finalize (b->g, op);
  if (b->n == MAX_OPERATIONS)
    b->g->status = CUDNN_STATUS_INTERNAL_ERROR;
  else
    b->operations[b->n++] = op;
  return op;
}

/* y = mode (x, second), or where `chosen` is given, chosen ? x : second. */
static TdDnn
pointwise_of (Build *b, cudnnPointwiseMode_t mode, cudnnDataType_t compute, int64_t axis,
              TdDnn x, TdDnn second, TdDnn chosen, TdDnn y)
{
  TdDnn how = td__dnn_add (b->g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR), op;

  td__dnn_set (b->g, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  td__dnn_set (b->g, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  if (axis >= 0)
    td__dnn_set (b->g, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
  td__dnn_finalize (b->g, how);
  op = td__dnn_add (b->g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  td__dnn_link (b->g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  td__dnn_link (b->g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (second != NULL)
    td__dnn_link (b->g, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, second);
  if (chosen != NULL)
    td__dnn_link (b->g, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, chosen);
  td__dnn_link (b->g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  operation_add (b, op);
  return y;
}

static TdDnn
pointwise (Build *b, cudnnPointwiseMode_t mode, TdDnn x, TdDnn second, TdDnn y)
{
  return pointwise_of (b, mode, CUDNN_DATA_FLOAT, -1, x, second, NULL, y);
}

static TdDnn
product (Build *b, TdDnn x, TdDnn w, TdDnn y)
{
  TdDnn how = td__dnn_add (b->g, CUDNN_BACKEND_MATMUL_DESCRIPTOR), op;
  const cudnnDataType_t compute = CUDNN_DATA_FLOAT;

  td__dnn_set (b->g, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  td__dnn_finalize (b->g, how);
  op = td__dnn_add (b->g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  td__dnn_link (b->g, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
  td__dnn_link (b->g, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, x);
  td__dnn_link (b->g, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, w);
  td__dnn_link (b->g, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, y);
  operation_add (b, op);
  return y;
}

static TdDnn
reduction (Build *b, cudnnReduceTensorOp_t by, TdDnn x, TdDnn y)
{
  TdDnn how = td__dnn_add (b->g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR), op;
  const cudnnDataType_t compute = CUDNN_DATA_FLOAT;

  td__dnn_set (b->g, how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1,
               &by);
  td__dnn_set (b->g, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  td__dnn_finalize (b->g, how);
  op = td__dnn_add (b->g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  td__dnn_link (b->g, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
  td__dnn_link (b->g, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
  td__dnn_link (b->g, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
  operation_add (b, op);
  return y;
}

/* The same numbers, rows and columns exchanged. */
static TdDnn
reshape (Build *b, TdDnn x, TdDnn y)
{
  TdDnn op = td__dnn_add (b->g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);

  td__dnn_link (b->g, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
  td__dnn_link (b->g, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
  operation_add (b, op);
  return y;
}

/* x with rows and columns exchanged, rounded for a product. */
static TdDnn
turned (Build *b, TdDnn x, int64_t rows, int64_t columns)
{
  return reshape (b, x,
                  tensor_strided (b, ID_VIRTUAL + b->n_virtual++,
                                  td__dnn_types[b->key->dtype].type, rows, columns, 1, rows));
}

/* --- the graphs --- */

static TdDnn
in_float (Build *b, int64_t rows, int64_t columns)
{
  return between (b, CUDNN_DATA_FLOAT, rows, columns);
}

/* Place of row or column of each score. */
static TdDnn
places (Build *b, TdDnn like, int64_t axis)
{
  return pointwise_of (b, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, axis, like, NULL, NULL,
                       between (b, CUDNN_DATA_INT32, b->key->n_q, b->key->n_k));
}

/* scale q k^T, -inf where query i does not see key j: j > i + n_k - n_q. */
static TdDnn
scores (Build *b, TdDnn q, TdDnn k_transposed, TdDnn scale)
{
  const int64_t n_q = b->key->n_q, n_k = b->key->n_k;
  TdDnn s = product (b, q, k_transposed, in_float (b, n_q, n_k)), row, seen;

  s = pointwise (b, CUDNN_POINTWISE_MUL, s, scale, in_float (b, n_q, n_k));
  if (!b->key->causal)
    return s;
  row = places (b, s, 2);
  if (n_q != n_k)
    row = pointwise_of (b, CUDNN_POINTWISE_ADD, CUDNN_DATA_INT32, -1, row,
                        number (b, ID_SHIFT, CUDNN_DATA_INT32), NULL,
                        between (b, CUDNN_DATA_INT32, n_q, n_k));
  seen = pointwise_of (b, CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, -1, row, places (b, s, 3),
                       NULL, between (b, CUDNN_DATA_BOOLEAN, n_q, n_k));
  return pointwise_of (b, CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, -1, s,
                       number (b, ID_HIDDEN, CUDNN_DATA_FLOAT), seen, in_float (b, n_q, n_k));
}

static TdDnn
sums_tensor (Build *b)
{
  return tensor_strided (b, ID_SUMS, CUDNN_DATA_FLOAT, b->key->n_q, 1, 1, 1);
}

static void
forward_graph (Build *b)
{
  const TdCudnnAttention *key = b->key;
  const cudnnDataType_t type = td__dnn_types[key->dtype].type;
  TdDnn s
      = scores (b, tensor (b, ID_Q, key->n_q, key->d), transposed (b, ID_K, key->d, key->n_k),
                number (b, ID_SCALE, CUDNN_DATA_FLOAT));
  TdDnn top = reduction (b, CUDNN_REDUCE_TENSOR_MAX, s, in_float (b, key->n_q, 1));
  TdDnn e = pointwise (b, CUDNN_POINTWISE_SUB, s, top, in_float (b, key->n_q, key->n_k)), sum,
        log_sum;

  e = pointwise (b, CUDNN_POINTWISE_EXP, e, NULL, in_float (b, key->n_q, key->n_k));
  sum = reduction (b, CUDNN_REDUCE_TENSOR_ADD, e, in_float (b, key->n_q, 1));
  log_sum = pointwise (b, CUDNN_POINTWISE_LOG, sum, NULL, in_float (b, key->n_q, 1));
  pointwise (b, CUDNN_POINTWISE_ADD, top, log_sum, sums_tensor (b));
  e = pointwise (b, CUDNN_POINTWISE_DIV, e, sum, between (b, type, key->n_q, key->n_k));
  product (b, e, tensor (b, ID_V, key->n_k, key->d_v), tensor (b, ID_Y, key->n_q, key->d_v));
}

/* P = e^(scores - log sum), gP = gy v^T, gS = scale P (gP - sum (gy y)):
 *   gv = P^T gy, gk = gS^T q, gq = gS k.
 * Two products with 1 stand where dropout's numbers would: cuDNN looks for this graph.  That gq
 * comes straight from a product asks for the algorithm of the same bits every time. */
static void
grad_graph (Build *b)
{
  const TdCudnnAttention *key = b->key;
  const int64_t n_q = key->n_q, n_k = key->n_k;
  TdDnn q = tensor (b, ID_Q, n_q, key->d), gy = tensor (b, ID_GY, n_q, key->d_v);
  TdDnn k = transposed (b, ID_K, key->d, n_k), scale = number (b, ID_SCALE, CUDNN_DATA_FLOAT);
  TdDnn one = number (b, ID_ONE, CUDNN_DATA_FLOAT);
  TdDnn shares = pointwise (b, CUDNN_POINTWISE_MUL, gy, tensor (b, ID_Y, n_q, key->d_v),
                            in_float (b, n_q, key->d_v));
  TdDnn p, gs;

  shares = reduction (b, CUDNN_REDUCE_TENSOR_ADD, shares, in_float (b, n_q, 1));
  shares = pointwise (b, CUDNN_POINTWISE_MUL, shares, one, in_float (b, n_q, 1));
  p = scores (b, q, k, scale);
  p = pointwise (b, CUDNN_POINTWISE_SUB, p, sums_tensor (b), in_float (b, n_q, n_k));
  p = pointwise (b, CUDNN_POINTWISE_EXP, p, NULL, in_float (b, n_q, n_k));
  product (b, turned (b, p, n_k, n_q), gy, tensor (b, ID_GV, n_k, key->d_v));
  gs = product (b, gy, transposed (b, ID_V, key->d_v, n_k), in_float (b, n_q, n_k));
  gs = pointwise (b, CUDNN_POINTWISE_MUL, gs, one, in_float (b, n_q, n_k));
  gs = pointwise (b, CUDNN_POINTWISE_SUB, gs, shares, in_float (b, n_q, n_k));
  gs = pointwise (b, CUDNN_POINTWISE_MUL, gs, p, in_float (b, n_q, n_k));
  gs = pointwise (b, CUDNN_POINTWISE_MUL, gs, scale, in_float (b, n_q, n_k));
  product (b, turned (b, gs, n_k, n_q), q, tensor (b, ID_GK, n_k, key->d));
  product (b, gs, reshape (b, k, between (b, td__dnn_types[key->dtype].type, n_k, key->d)),
           tensor (b, ID_GQ, n_q, key->d));
}

static TdDnn
attention_graph (TdDnnGraph *g, const void *of, cudnnHandle_t handle)
{
  Build b = { .g = g, .key = of };

  if (b.key->kind == TD_ATTENTION)
    forward_graph (&b);
  else
    grad_graph (&b);
  return td__dnn_operation_graph (g, b.operations, b.n, handle);
}

/* Halves lose nothing on tensor cores; and nothing is added to. */
static bool
always (const void *of)
{
  return of != NULL;
}

const TdDnnKind td__dnn_attention
    = { "attention", sizeof (TdCudnnAttention), attention_graph, always, always };

/* --- calls --- */

bool
td_cudnn_attention_key (TdCudnnAttention *key, TdAttentionKind kind, const TdAttention *attrs,
                        const TdTensor *in, int n_in, const TdTensor *out)
{
  const int n_plain = kind == TD_ATTENTION ? 3 : 6;
  uintptr_t bits = 16;

  memset (key, 0, sizeof *key);
  if ((out->dtype != TD_F16 && out->dtype != TD_BF16) || n_in > n_plain || attrs->batch == 0
      || attrs->n_q == 0 || attrs->n_k == 0 || attrs->d == 0 || attrs->d_v == 0
      || (attrs->causal && attrs->n_q > attrs->n_k))
    return false;
  for (int i = 0; i < n_in; i++)
    bits |= (uintptr_t)in[i].data;
  for (int i = 0; i < (kind == TD_ATTENTION ? 2 : 3); i++)
    bits |= (uintptr_t)out[i].data;
  *key = (TdCudnnAttention){ .batch = attrs->batch,
                             .n_q = attrs->n_q,
                             .n_k = attrs->n_k,
                             .d = attrs->d,
                             .d_v = attrs->d_v,
                             .kind = (int32_t)kind,
                             .dtype = (int32_t)out->dtype,
                             .causal = attrs->causal,
                             .alignment = 1 << __builtin_ctzll (bits) };
  return true;
}

bool
td_cudnn_attention (TdCuda *c, TdAttentionKind kind, const TdAttention *attrs,
                    const TdTensor *in, int n_in, TdTensor *out, TdStatus *status)
{
  const bool grad = kind == TD_ATTENTION_GRAD;
  float scale = (float)attrs->scale, one = 1, hidden = -INFINITY;
  int32_t shift = (int32_t)(attrs->n_k - attrs->n_q);
  TdCudnnAttention key;
  TdDnnPlan *p;
  TdCudnn *own;
  int64_t ids[TD_DNN_MAX_TENSORS] = { ID_Q, ID_K, ID_V };
  void *data[TD_DNN_MAX_TENSORS] = { in[0].data, in[1].data, in[2].data };
  const int64_t forward_ids[] = { ID_Y, ID_SUMS },
                grad_ids[] = { ID_GY, ID_Y, ID_SUMS, ID_GQ, ID_GK, ID_GV };
  int n = 3;

  *status = c->lost;
  if (c->lost != TD_OK)
    return true;
  if (td_cuda_host->config ()->use_cudnn == 0
      || !td_cudnn_attention_key (&key, kind, attrs, in, n_in, out))
    return false;
  own = td__dnn_of (c, status);
  if (own == NULL)
    return *status != TD_OK;
  p = td__dnn_plan (own, &td__dnn_attention, &key);
  if (p->rivals.n == 0)
    return false;
  for (int i = 0; i < (grad ? 6 : 2); i++, n++)
    {
      ids[n] = grad ? grad_ids[i] : forward_ids[i];
      data[n] = !grad ? out[i].data : i < 3 ? in[3 + i].data : out[i - 3].data;
    }
  ids[n] = ID_SCALE;
  data[n++] = &scale;
  if (grad)
    {
      ids[n] = ID_ONE;
      data[n++] = &one;
    }
  if (attrs->causal)
    {
      ids[n] = ID_HIDDEN;
      data[n++] = &hidden;
    }
  if (attrs->causal && shift != 0)
    {
      ids[n] = ID_SHIFT;
      data[n++] = &shift;
    }
  *status = td__dnn_execute (c, p, ids, data, n);
  c->device.algorithm = "cuDNN";
  return true;
}
