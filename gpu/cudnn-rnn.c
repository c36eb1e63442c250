/* Stacked recurrent layers through cuDNN: cudnnRNNForward and its two backward functions.
 *
 * Sequences are packed, the longest first, which is how the engine has them too; cuDNN numbers
 * the gates as td_n_step_lstm, td_n_step_gru and td_n_step_rnn do, and says where in its one
 * array of weights each matrix lies.  What forward keeps for backward (the "reserve space") is
 * an output like others; backward overwrites it and so works on a copy, as it may be called
 * again.  Dropout is not left to cuDNN, whose random numbers are not the engine's.  Lengths
 * are given by descriptors alone, so that nothing is copied from the host.
 *
 * *Source*: cuDNN's API reference, cudnnRNNMode_t and cudnnGetRNNWeightParams.
 *
 * SPDX-License-Identifier: MIT */
#include "cudnn-rnn.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS(X)                                                                           \
  X (cudnnCreateDropoutDescriptor)                                                             \
  X (cudnnDestroyDropoutDescriptor)                                                            \
  X (cudnnSetDropoutDescriptor)                                                                \
  X (cudnnCreateTensorDescriptor)                                                              \
  X (cudnnDestroyTensorDescriptor)                                                             \
  X (cudnnSetTensorNdDescriptor)                                                               \
  X (cudnnGetTensorNdDescriptor)                                                               \
  X (cudnnCreateRNNDescriptor)                                                                 \
  X (cudnnDestroyRNNDescriptor)                                                                \
  X (cudnnSetRNNDescriptor_v8)                                                                 \
  X (cudnnCreateRNNDataDescriptor)                                                             \
  X (cudnnDestroyRNNDataDescriptor)                                                            \
  X (cudnnSetRNNDataDescriptor)                                                                \
  X (cudnnGetRNNWeightSpaceSize)                                                               \
  X (cudnnGetRNNWeightParams)                                                                  \
  X (cudnnGetRNNTempSpaceSizes)                                                                \
  X (cudnnRNNForward)                                                                          \
  X (cudnnRNNBackwardData_v8)                                                                  \
  X (cudnnRNNBackwardWeights_v8)

static struct
{
  bool tried, here;
#define FIELD(name) __typeof__ (name) *name;
  FUNCTIONS (FIELD)
#undef FIELD
} rnn_api;

bool
td__dnn_rnn_load (void)
{
  if (!td__dnn_load ())
    return false;
  if (rnn_api.tried)
    return rnn_api.here;
  rnn_api.tried = true;
#define FIND(name)                                                                             \
  *(void **)&rnn_api.name = dlsym (td__dnn.library, #name);                                    \
  if (rnn_api.name == NULL)                                                                    \
    return false;
  FUNCTIONS (FIND)
#undef FIND
  return rnn_api.here = true;
}

/* --- networks and batches, as cuDNN is told of them --- */

enum
{
  N_NETS = 16
};

/* A network's descriptor and where its weights lie; the batch it saw last. */
typedef struct
{
  TdDnnRnnKey key;
  cudnnRNNDescriptor_t net; /* NULL: this place is free */
  size_t weight_bytes;
  int64_t *places; /* of each matrix, then of each bias, in elements */
  TdRnnRun *runs;  /* of the batch */
  int n_runs;
  cudnnRNNDataDescriptor_t x, y;
  cudnnTensorDescriptor_t h;
  size_t workspace_bytes[2], reserve_bytes; /* for inference, and for training */
} Net;

struct TdDnnRnn
{
  cudnnDropoutDescriptor_t none; /* no dropout */
  Net nets[N_NETS];
};

static const struct
{
  cudnnRNNMode_t mode;
  int n_parts;
} cells[] = {
  [TD_CELL_LSTM] = { CUDNN_LSTM, 8 },
  [TD_CELL_GRU] = { CUDNN_GRU, 6 },
  [TD_CELL_TANH] = { CUDNN_RNN_TANH, 2 },
  [TD_CELL_RELU] = { CUDNN_RNN_RELU, 2 },
};

TdDnnRnnKey
td__dnn_rnn_key (const TdRnn *rnn, bool tf32)
{
  TdDnnRnnKey key;

  memset (&key, 0, sizeof key);
  key.cell = (int32_t)rnn->cell;
  key.n_layers = (int32_t)rnn->n_layers;
  key.n_directions = (int32_t)rnn->n_directions;
  key.in_size = (int32_t)rnn->in_size;
  key.units = (int32_t)rnn->units;
  key.dtype = (int32_t)rnn->dtype;
  key.tf32 = rnn->dtype == TD_F32 && tf32;
  return key;
}

cudnnStatus_t
td__dnn_rnn_describe (cudnnRNNDescriptor_t net, const TdDnnRnnKey *key,
                      cudnnDropoutDescriptor_t none)
{
  const TdDnnType *type = &td__dnn_types[key->dtype];
  const cudnnMathType_t math = key->dtype == TD_F16 || key->dtype == TD_BF16
                                   ? CUDNN_TENSOR_OP_MATH
                               : key->dtype == TD_F32 && !key->tf32 ? CUDNN_FMA_MATH
                                                                    : CUDNN_DEFAULT_MATH;

  return rnn_api.cudnnSetRNNDescriptor_v8 (
      net, CUDNN_RNN_ALGO_STANDARD, cells[key->cell].mode, CUDNN_RNN_DOUBLE_BIAS,
      key->n_directions == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT,
      type->type, type->compute, math, key->in_size, key->units, key->units, key->n_layers,
      none, CUDNN_RNN_PADDED_IO_DISABLED);
}

/* How long each sequence is; the longest comes first.  *Owner*: the caller, free. */
static int *
lengths_of (const TdRnn *rnn)
{
  int *lengths = calloc ((size_t)rnn->runs[0].rows, sizeof *lengths);

  if (lengths == NULL)
    return NULL;
  for (int i = 0; i < rnn->n_runs; i++)
    for (int k = 0; k < rnn->runs[i].rows; k++)
      lengths[k] += rnn->runs[i].steps;
  return lengths;
}

cudnnStatus_t
td__dnn_rnn_describe_rows (cudnnRNNDataDescriptor_t rows, const TdRnn *rnn, int64_t width)
{
  int *lengths = lengths_of (rnn);
  cudnnStatus_t result = CUDNN_STATUS_ALLOC_FAILED;

  if (lengths != NULL)
    result = rnn_api.cudnnSetRNNDataDescriptor (
        rows, td__dnn_types[rnn->dtype].type, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED,
        lengths[0], rnn->runs[0].rows, (int)width, lengths, NULL);
  free (lengths);
  return result;
}

static void
forget (Net *n)
{
  if (n->net != NULL)
    rnn_api.cudnnDestroyRNNDescriptor (n->net);
  if (n->x != NULL)
    rnn_api.cudnnDestroyRNNDataDescriptor (n->x);
  if (n->y != NULL)
    rnn_api.cudnnDestroyRNNDataDescriptor (n->y);
  if (n->h != NULL)
    rnn_api.cudnnDestroyTensorDescriptor (n->h);
  free (n->places);
  free (n->runs);
  *n = (Net){ .net = NULL };
}

void
td__dnn_rnn_close (TdCudnn *own)
{
  if (own->rnn == NULL)
    return;
  for (int i = 0; i < N_NETS; i++)
    forget (&own->rnn->nets[i]);
  if (own->rnn->none != NULL)
    rnn_api.cudnnDestroyDropoutDescriptor (own->rnn->none);
  free (own->rnn);
  own->rnn = NULL;
}

/* --- where weights lie --- */

static int
n_places (const TdDnnRnnKey *key)
{
  return key->n_layers * key->n_directions * cells[key->cell].n_parts;
}

/* Whether the tensor is of that many elements of the dtype, one after the other. */
static bool
is_plain (cudnnTensorDescriptor_t t, const TdDnnRnnKey *key, int64_t size)
{
  cudnnDataType_t type;
  int n = 0, dim[8], stride[8];
  int64_t elements = 1;

  if (rnn_api.cudnnGetTensorNdDescriptor (t, 8, &type, &n, dim, stride) != CUDNN_STATUS_SUCCESS
      || n < 1 || n > 8 || type != td__dnn_types[key->dtype].type)
    return false;
  for (int i = n - 1; i >= 0; i--)
    {
      if (dim[i] != 1 && stride[i] != elements)
        return false;
      elements *= dim[i];
    }
  return elements == size;
}

/* Ask for each matrix and bias; NULL, or why not. */
static const char *
find_places (TdCudnn *own, Net *n)
{
  const TdDnnRnnKey *key = &n->key;
  const int k = cells[key->cell].n_parts, all = n_places (key);
  const size_t bytes = td__bytes_of (key->dtype);
  char *const base = (char *)(uintptr_t)(1 << 20); /* only the distance from it matters */
  cudnnTensorDescriptor_t matrix = NULL, bias = NULL;
  const char *why = NULL;

  n->places = calloc (2 * (size_t)all, sizeof *n->places);
  if (n->places == NULL || rnn_api.cudnnCreateTensorDescriptor (&matrix) != CUDNN_STATUS_SUCCESS
      || rnn_api.cudnnCreateTensorDescriptor (&bias) != CUDNN_STATUS_SUCCESS)
    why = "no memory for descriptors";
  for (int i = 0; i < all && why == NULL; i++)
    {
      const int64_t in = i % k >= k / 2              ? key->units
                         : i / k < key->n_directions ? key->in_size
                                                     : key->units * key->n_directions;
      void *at[2] = { NULL, NULL };

      if (rnn_api.cudnnGetRNNWeightParams (own->handle, n->net, i / k, n->weight_bytes, base,
                                           i % k, matrix, &at[0], bias, &at[1])
              != CUDNN_STATUS_SUCCESS
          || at[0] == NULL || at[1] == NULL || !is_plain (matrix, key, in * key->units)
          || !is_plain (bias, key, key->units))
        why = "cuDNN has the weights in an order of its own";
      for (int j = 0; j < 2 && why == NULL; j++)
        n->places[j * all + i] = (int64_t)((size_t)((char *)at[j] - base) / bytes);
    }
  if (matrix != NULL)
    rnn_api.cudnnDestroyTensorDescriptor (matrix);
  if (bias != NULL)
    rnn_api.cudnnDestroyTensorDescriptor (bias);
  return why;
}

/* --- what is known of a call --- */

static bool
ready (TdCudnn *own)
{
  struct TdDnnRnn *r = own->rnn;

  if (r != NULL)
    return r->none != NULL;
  r = own->rnn = calloc (1, sizeof *r);
  if (r == NULL)
    return false;
  if (rnn_api.cudnnCreateDropoutDescriptor (&r->none) == CUDNN_STATUS_SUCCESS
      && rnn_api.cudnnSetDropoutDescriptor (r->none, own->handle, 0, NULL, 0, 0)
             != CUDNN_STATUS_SUCCESS)
    {
      rnn_api.cudnnDestroyDropoutDescriptor (r->none);
      r->none = NULL;
    }
  return r->none != NULL;
}

/* The network of a call; NULL: *why. */
static Net *
net_of (TdCudnn *own, const TdDnnRnnKey *key, const char **why)
{
  uint64_t hash = 14695981039346656037u;
  Net *n;

  *why = "cuDNN makes no descriptors";
  if (!ready (own))
    return NULL;
  for (size_t i = 0; i < sizeof *key; i++)
    hash = (hash ^ ((const unsigned char *)key)[i]) * 1099511628211u;
  n = &own->rnn->nets[(hash ^ hash >> 32) % N_NETS];
  if (n->net != NULL && memcmp (&n->key, key, sizeof *key) == 0)
    return n;
  forget (n);
  n->key = *key;
  if (rnn_api.cudnnCreateRNNDescriptor (&n->net) != CUDNN_STATUS_SUCCESS)
    n->net = NULL;
  else if (td__dnn_rnn_describe (n->net, key, own->rnn->none) != CUDNN_STATUS_SUCCESS
           || rnn_api.cudnnGetRNNWeightSpaceSize (own->handle, n->net, &n->weight_bytes)
                  != CUDNN_STATUS_SUCCESS)
    *why = "cuDNN has no such network";
  else
    {
      *why = find_places (own, n);
      if (*why == NULL)
        return n;
    }
  forget (n);
  return NULL;
}

/* Describe the batch of a call, where it is another than the last one's. */
static cudnnStatus_t
batch_of (TdCudnn *own, Net *n, const TdRnn *rnn)
{
  const size_t bytes = (size_t)rnn->n_runs * sizeof *rnn->runs;
  const int dim[3] = { rnn->n_layers * rnn->n_directions, rnn->runs[0].rows, (int)rnn->units };
  const int stride[3] = { dim[1] * dim[2], dim[2], 1 };
  cudnnStatus_t result = CUDNN_STATUS_SUCCESS;

  if (n->n_runs == rnn->n_runs && memcmp (n->runs, rnn->runs, bytes) == 0)
    return result;
  n->n_runs = 0;
  free (n->runs);
  n->runs = malloc (bytes);
  if (n->runs == NULL)
    return CUDNN_STATUS_ALLOC_FAILED;
  memcpy (n->runs, rnn->runs, bytes);
  if (n->x == NULL)
    result = rnn_api.cudnnCreateRNNDataDescriptor (&n->x);
  if (result == CUDNN_STATUS_SUCCESS && n->y == NULL)
    result = rnn_api.cudnnCreateRNNDataDescriptor (&n->y);
  if (result == CUDNN_STATUS_SUCCESS && n->h == NULL)
    result = rnn_api.cudnnCreateTensorDescriptor (&n->h);
  if (result == CUDNN_STATUS_SUCCESS)
    result = td__dnn_rnn_describe_rows (n->x, rnn, rnn->in_size);
  if (result == CUDNN_STATUS_SUCCESS)
    result = td__dnn_rnn_describe_rows (n->y, rnn, rnn->units * rnn->n_directions);
  if (result == CUDNN_STATUS_SUCCESS)
    result = rnn_api.cudnnSetTensorNdDescriptor (n->h, td__dnn_types[rnn->dtype].type, 3, dim,
                                                 stride);
  if (result == CUDNN_STATUS_SUCCESS)
    result = rnn_api.cudnnGetRNNTempSpaceSizes (own->handle, n->net, CUDNN_FWD_MODE_INFERENCE,
                                                n->x, &n->workspace_bytes[0], NULL);
  if (result == CUDNN_STATUS_SUCCESS)
    result
        = rnn_api.cudnnGetRNNTempSpaceSizes (own->handle, n->net, CUDNN_FWD_MODE_TRAINING, n->x,
                                             &n->workspace_bytes[1], &n->reserve_bytes);
  if (result == CUDNN_STATUS_SUCCESS)
    n->n_runs = rnn->n_runs;
  return result;
}

static bool
is_small (const TdRnn *rnn)
{
  int64_t rows = 0;

  for (int i = 0; i < rnn->n_runs; i++)
    rows += (int64_t)rnn->runs[i].rows * rnn->runs[i].steps;
  return rnn->in_size <= INT_MAX / 8 && rnn->units <= INT_MAX / 8 && rows <= INT_MAX
         && (rnn->n_runs == 0
             || (int64_t)rnn->runs[0].rows * rnn->units <= INT_MAX / rnn->n_directions);
}

/* The network of a call, with its batch if it has one; NULL: *why. */
static Net *
find_net (TdCuda *c, const TdRnn *rnn, const char **why)
{
  const TdDnnRnnKey key = td__dnn_rnn_key (rnn, td_cuda_host->config ()->tf32 != 0);
  TdCudnn *own;
  TdStatus status;
  Net *n;

  *why = "the device has failed";
  if (c->lost != TD_OK)
    return NULL;
  *why = "cuDNN has no such dtype";
  if (!td__dnn_types[rnn->dtype].known)
    return NULL;
  *why = "sizes that cuDNN cannot count";
  if (!is_small (rnn))
    return NULL;
  *why = "cuDNN is not here";
  if (!td__dnn_rnn_load ())
    return NULL;
  own = td__dnn_of (c, &status);
  if (own == NULL)
    return NULL;
  n = net_of (own, &key, why);
  if (n == NULL || rnn->n_runs == 0 || batch_of (own, n, rnn) == CUDNN_STATUS_SUCCESS)
    return n;
  *why = "cuDNN takes no such batch";
  return NULL;
}

static Net *
look_up (TdCuda *c, const TdRnn *rnn, const char **why)
{
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  Net *n;

  td_cuda_exchange_mode (c, &mode);
  n = find_net (c, rnn, why);
  td_cuda_exchange_mode (c, &mode);
  return n;
}

static const char *
slot_sizes (TdDevice *d, const TdRnn *rnn, TdRnnSizes *sizes)
{
  const char *why;
  const Net *n = look_up (td_cuda_enter (d), rnn, &why);

  if (n == NULL)
    return why;
  sizes->n_weights = (int64_t)(n->weight_bytes / td__bytes_of (rnn->dtype));
  sizes->reserve_bytes = n->reserve_bytes;
  return NULL;
}

static TdStatus
not_found (TdCuda *c, const char *why)
{
  return c->lost != TD_OK ? c->lost : td_cuda_host->fail (TD_ERR_DEVICE, c->device.name, why);
}

static TdStatus
slot_place (TdDevice *d, const TdRnn *rnn, int cell, int part, int64_t *matrix, int64_t *bias)
{
  TdCuda *c = td_cuda_enter (d);
  const char *why;
  const Net *n = look_up (c, rnn, &why);
  int i;

  if (n == NULL)
    return not_found (c, why);
  i = cell * cells[rnn->cell].n_parts + part;
  *matrix = n->places[i];
  *bias = n->places[n_places (&n->key) + i];
  return TD_OK;
}

/* --- calls --- */

static void *
data (const TdTensor *t)
{
  return t != NULL ? t->data : NULL;
}

/* Memory for the call. */
static void *
room (TdCuda *c, size_t bytes)
{
  return bytes > 0 ? td_cuda_scratch (c, bytes) : NULL;
}

static void
say_read (TdCuda *c, const TdTensor *const *tensors, int n)
{
  for (int i = 0; i < n; i++)
    td_cuda_reads (c, tensors[i], 1);
}

static void
say_written (TdCuda *c, TdTensor *const *tensors, int n)
{
  for (int i = 0; i < n; i++)
    td_cuda_writes (c, tensors[i], 1);
}

/* What cuDNN does not let be captured can be no graph; else it is an error. */
static TdStatus
outcome (TdCuda *c, cudnnStatus_t result, const char *what)
{
  c->device.algorithm = "cuDNN";
  if (result == CUDNN_STATUS_SUCCESS)
    return TD_OK;
  if (td_cuda_refuses (c, "cuDNN does not let its recurrent layers be captured"))
    return TD_ERR_STATE;
  return td__dnn_fail (c, result, what);
}

static TdStatus
slot_forward (TdDevice *d, const TdRnn *rnn, const TdRnnArrays *a)
{
  TdCuda *c = td_cuda_enter (d);
  const char *why;
  const Net *n = look_up (c, rnn, &why);
  const size_t reserve = rnn->keeps && n != NULL ? n->reserve_bytes : 0;
  const size_t bytes = n != NULL ? n->workspace_bytes[rnn->keeps] : 0;
  void *work;
  cudnnStatus_t result;

  if (n == NULL)
    return not_found (c, why);
  work = room (c, bytes);
  if (work == NULL && bytes > 0)
    return TD_ERR_MEMORY;
  say_read (c, (const TdTensor *[]){ a->x, a->w, a->hx, a->cx }, 4);
  say_written (c, (TdTensor *[]){ a->y, a->reserve, a->hy, a->cy }, 4);
  result = rnn_api.cudnnRNNForward (
      c->cudnn->handle, n->net, rnn->keeps ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE,
      NULL, n->x, a->x->data, n->y, a->y->data, n->h, data (a->hx), data (a->hy),
      rnn->cell == TD_CELL_LSTM ? n->h : NULL, data (a->cx), data (a->cy), n->weight_bytes,
      a->w->data, bytes, work, reserve, data (a->reserve));
  td_cuda_scratch_end (c);
  return outcome (c, result, "cudnnRNNForward");
}

/* cuDNN's first half of backward writes into the reserve, and its second reads that there. They
 * get a copy: a backward may come again.  Gradients of weights are added to what is there. */
static TdStatus
slot_gradient (TdDevice *d, const TdRnn *rnn, const TdRnnArrays *a)
{
  TdCuda *c = td_cuda_enter (d);
  const char *why;
  const Net *n = look_up (c, rnn, &why);
  const cudnnTensorDescriptor_t h = n != NULL ? n->h : NULL,
                                cells_of = rnn->cell == TD_CELL_LSTM ? h : NULL;
  const size_t bytes = n != NULL ? n->workspace_bytes[1] : 0;
  const size_t kept = n != NULL ? n->reserve_bytes : 0;
  void *work, *reserve;
  cudnnStatus_t result;
  TdStatus status;

  if (n == NULL)
    return not_found (c, why);
  work = bytes > 0 ? td_cuda_scratch (c, bytes) : NULL;
  reserve = kept > 0 ? td_cuda_scratch (c, kept) : NULL;
  status = (work == NULL && bytes > 0) || (reserve == NULL && kept > 0) ? TD_ERR_MEMORY : TD_OK;
  if (status == TD_OK && kept > 0)
    status = d->ops->copy (d, reserve, a->reserve->data, kept);
  if (status == TD_OK)
    status = d->ops->zero (d, a->gw->data, n->weight_bytes);
  if (status != TD_OK)
    {
      td_cuda_scratch_end (c);
      return status;
    }
  say_read (c, (const TdTensor *[]){ a->w, a->hx, a->cx, a->y, a->gy, a->ghy, a->gcy }, 7);
  say_written (c, (TdTensor *[]){ a->gx, a->ghx, a->gcx }, 3);
  result = rnn_api.cudnnRNNBackwardData_v8 (
      c->cudnn->handle, n->net, NULL, n->y, a->y->data, a->gy->data, n->x, a->gx->data, h,
      data (a->hx), data (a->ghy), data (a->ghx), cells_of, data (a->cx), data (a->gcy),
      data (a->gcx), n->weight_bytes, a->w->data, bytes, work, kept, reserve);
  status = outcome (c, result, "cudnnRNNBackwardData_v8");
  if (status == TD_OK)
    {
      say_read (c, (const TdTensor *[]){ a->x, a->hx, a->y }, 3);
      say_written (c, (TdTensor *[]){ a->gw }, 1);
      result = rnn_api.cudnnRNNBackwardWeights_v8 (
          c->cudnn->handle, n->net, CUDNN_WGRAD_MODE_ADD, NULL, n->x, a->x->data, h,
          data (a->hx), n->y, a->y->data, n->weight_bytes, a->gw->data, bytes, work, kept,
          reserve);
      status = outcome (c, result, "cudnnRNNBackwardWeights_v8");
    }
  td_cuda_scratch_end (c);
  return status;
}

const TdDeviceRnn td_cudnn_rnn = {
  .sizes = slot_sizes,
  .place = slot_place,
  .forward = slot_forward,
  .gradient = slot_gradient,
};
