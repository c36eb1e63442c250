/* As much of cuDNN as recurrent layers need, for the fake driver: descriptors, and calls that
 * are checked against them, queued on their stream and computed by fake-cudnn-rnn.c.  Its
 * backend graphs are none: convolutions and attention find no plan, and take our own kernels.
 *
 * What the documentation asks of arguments is a violation where it is not so.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-cudnn.h"

#include <cudnn_graph.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__ ((visibility ("default")))
#define OK CUDNN_STATUS_SUCCESS
#define BAD CUDNN_STATUS_BAD_PARAM

/* What is public of them is only a name. */
struct cudnnContext
{
  CUstream stream;
};

struct cudnnTensorStruct
{
  cudnnDataType_t type;
  int n, dim[8], stride[8];
};

struct cudnnDropoutStruct
{
  bool set;
};

struct cudnnRNNStruct
{
  bool set;
  cudnnDataType_t type;
  FakeRnn net; /* what is known without a batch */
};

struct cudnnRNNDataStruct
{
  cudnnDataType_t type;
  int n_steps, n_sequences, width;
  int *lengths; /* NULL: not set */
};

static cudnnStatus_t
made (void *out, size_t bytes)
{
  void *p = calloc (1, bytes);

  memcpy (out, &p, sizeof p);
  return p != NULL ? OK : CUDNN_STATUS_ALLOC_FAILED;
}

static cudnnStatus_t
gone (void *p)
{
  free (p);
  return OK;
}

static cudnnStatus_t
entered (const char *function)
{
  return fake_enter (function) == CUDA_SUCCESS ? OK : CUDNN_STATUS_EXECUTION_FAILED;
}

/* --- the library, and what of it is none --- */

EXPORT size_t
cudnnGetVersion (void)
{
  return 91900;
}

EXPORT const char *
cudnnGetErrorString (cudnnStatus_t status)
{
  return status == BAD                          ? "CUDNN_STATUS_BAD_PARAM"
         : status == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
                                                : "CUDNN_STATUS_EXECUTION_FAILED";
}

EXPORT void
cudnnGetLastErrorString (char *message, size_t size)
{
  snprintf (message, size, "the fake has no graphs");
}

EXPORT cudnnStatus_t
cudnnCreate (cudnnHandle_t *handle)
{
  return entered ("cudnnCreate") == OK ? made (handle, sizeof **handle)
                                       : CUDNN_STATUS_NOT_INITIALIZED;
}

EXPORT cudnnStatus_t
cudnnDestroy (cudnnHandle_t handle)
{
  return gone (handle);
}

EXPORT cudnnStatus_t
cudnnSetStream (cudnnHandle_t handle, cudaStream_t stream)
{
  handle->stream = (CUstream)stream;
  return OK;
}

EXPORT cudnnStatus_t
cudnnBackendCreateDescriptor (cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out)
{
  *out = NULL;
  return CUDNN_STATUS_NOT_SUPPORTED;
}

EXPORT cudnnStatus_t
cudnnBackendDestroyDescriptor (cudnnBackendDescriptor_t d)
{
  return BAD;
}

EXPORT cudnnStatus_t
cudnnBackendFinalize (cudnnBackendDescriptor_t d)
{
  return BAD;
}

EXPORT cudnnStatus_t
cudnnBackendSetAttribute (cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
  return BAD;
}

EXPORT cudnnStatus_t
cudnnBackendGetAttribute (cudnnBackendDescriptor_t const d, cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type, int64_t n, int64_t *found,
                          void *values)
{
  return BAD;
}

EXPORT cudnnStatus_t
cudnnBackendExecute (cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                     cudnnBackendDescriptor_t pack)
{
  return BAD;
}

/* --- descriptors --- */

EXPORT cudnnStatus_t
cudnnCreateTensorDescriptor (cudnnTensorDescriptor_t *t)
{
  return made (t, sizeof **t);
}

EXPORT cudnnStatus_t
cudnnDestroyTensorDescriptor (cudnnTensorDescriptor_t t)
{
  return gone (t);
}

EXPORT cudnnStatus_t
cudnnSetTensorNdDescriptor (cudnnTensorDescriptor_t t, cudnnDataType_t type, int n,
                            const int dim[], const int stride[])
{
  if (n < 3 || n > 8)
    return BAD;
  t->type = type;
  t->n = n;
  for (int i = 0; i < n; i++)
    {
      t->dim[i] = dim[i];
      t->stride[i] = stride[i];
      if (dim[i] < 1 || stride[i] < 1)
        return BAD;
    }
  return OK;
}

EXPORT cudnnStatus_t
cudnnGetTensorNdDescriptor (const cudnnTensorDescriptor_t t, int room, cudnnDataType_t *type,
                            int *n, int dim[], int stride[])
{
  *type = t->type;
  *n = t->n;
  for (int i = 0; i < t->n && i < room; i++)
    {
      dim[i] = t->dim[i];
      stride[i] = t->stride[i];
    }
  return OK;
}

EXPORT cudnnStatus_t
cudnnCreateDropoutDescriptor (cudnnDropoutDescriptor_t *d)
{
  return made (d, sizeof **d);
}

EXPORT cudnnStatus_t
cudnnDestroyDropoutDescriptor (cudnnDropoutDescriptor_t d)
{
  return gone (d);
}

EXPORT cudnnStatus_t
cudnnSetDropoutDescriptor (cudnnDropoutDescriptor_t d, cudnnHandle_t handle, float ratio,
                           void *states, size_t bytes, unsigned long long seed)
{
  if (handle == NULL || ratio != 0 || states != NULL || bytes != 0)
    return BAD; /* with numbers of its own it is not what this fake is for */
  d->set = true;
  return OK;
}

EXPORT cudnnStatus_t
cudnnCreateRNNDescriptor (cudnnRNNDescriptor_t *d)
{
  return made (d, sizeof **d);
}

EXPORT cudnnStatus_t
cudnnDestroyRNNDescriptor (cudnnRNNDescriptor_t d)
{
  return gone (d);
}

EXPORT cudnnStatus_t
cudnnSetRNNDescriptor_v8 (cudnnRNNDescriptor_t d, cudnnRNNAlgo_t algorithm, cudnnRNNMode_t mode,
                          cudnnRNNBiasMode_t bias, cudnnDirectionMode_t direction,
                          cudnnRNNInputMode_t input, cudnnDataType_t type,
                          cudnnDataType_t compute, cudnnMathType_t math, int32_t in,
                          int32_t units, int32_t projection, int32_t n_layers,
                          cudnnDropoutDescriptor_t dropout, uint32_t flags)
{
  if (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_DOUBLE)
    return CUDNN_STATUS_NOT_SUPPORTED; /* the real one has halves */
  if (compute != type || in < 1 || units < 1 || n_layers < 1 || dropout == NULL || !dropout->set
      || projection != units || flags != CUDNN_RNN_PADDED_IO_DISABLED
      || algorithm != CUDNN_RNN_ALGO_STANDARD || bias != CUDNN_RNN_DOUBLE_BIAS
      || input != CUDNN_LINEAR_INPUT || math == CUDNN_TENSOR_OP_MATH)
    return BAD;
  d->type = type;
  d->net = (FakeRnn){ .mode = mode,
                      .n_layers = n_layers,
                      .n_directions = direction == CUDNN_BIDIRECTIONAL ? 2 : 1,
                      .in = in,
                      .units = units,
                      .wide = type == CUDNN_DATA_DOUBLE };
  d->set = true;
  return OK;
}

EXPORT cudnnStatus_t
cudnnCreateRNNDataDescriptor (cudnnRNNDataDescriptor_t *d)
{
  return made (d, sizeof **d);
}

EXPORT cudnnStatus_t
cudnnDestroyRNNDataDescriptor (cudnnRNNDataDescriptor_t d)
{
  free (d->lengths);
  return gone (d);
}

EXPORT cudnnStatus_t
cudnnSetRNNDataDescriptor (cudnnRNNDataDescriptor_t d, cudnnDataType_t type,
                           cudnnRNNDataLayout_t layout, int n_steps, int n_sequences, int width,
                           const int lengths[], void *fill)
{
  if (layout != CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED || n_steps < 1 || n_sequences < 1
      || width < 1 || fill != NULL || lengths[0] != n_steps)
    return BAD;
  for (int i = 0; i < n_sequences; i++)
    if (lengths[i] < 1 || (i > 0 && lengths[i] > lengths[i - 1]))
      return BAD;
  free (d->lengths);
  d->lengths = malloc ((size_t)n_sequences * sizeof *lengths);
  if (d->lengths == NULL)
    return CUDNN_STATUS_ALLOC_FAILED;
  memcpy (d->lengths, lengths, (size_t)n_sequences * sizeof *lengths);
  d->type = type;
  d->n_steps = n_steps;
  d->n_sequences = n_sequences;
  d->width = width;
  return OK;
}

/* --- sizes --- */

static size_t
element_bytes (const FakeRnn *r)
{
  return r->wide ? sizeof (double) : sizeof (float);
}

static size_t
weight_bytes (const FakeRnn *r)
{
  return fake_rnn_place (r, r->n_layers * r->n_directions, 0, true) * element_bytes (r);
}

/* The network with the batch that x describes; lengths are x's own. */
static FakeRnn
with_batch (cudnnRNNDescriptor_t d, cudnnRNNDataDescriptor_t x)
{
  FakeRnn r = d->net;

  r.n_steps = x->n_steps;
  r.n_sequences = x->n_sequences;
  r.lengths = x->lengths;
  return r;
}

static size_t
work_bytes (const FakeRnn *r)
{
  return fake_rnn_rows (r) * (size_t)(4 * r->units) * element_bytes (r);
}

EXPORT cudnnStatus_t
cudnnGetRNNWeightSpaceSize (cudnnHandle_t handle, cudnnRNNDescriptor_t d, size_t *bytes)
{
  if (handle == NULL || !d->set)
    return BAD;
  *bytes = weight_bytes (&d->net);
  return OK;
}

EXPORT cudnnStatus_t
cudnnGetRNNWeightParams (cudnnHandle_t handle, cudnnRNNDescriptor_t d, int32_t cell,
                         size_t bytes, const void *weights, int32_t part,
                         cudnnTensorDescriptor_t matrix, void **at,
                         cudnnTensorDescriptor_t bias, void **bias_at)
{
  const FakeRnn *r = &d->net;
  char *base = (char *)(uintptr_t)weights;
  int columns;

  if (handle == NULL || !d->set || bytes != weight_bytes (r) || weights == NULL || cell < 0
      || cell >= r->n_layers * r->n_directions || part < 0 || part >= fake_rnn_parts (r))
    return BAD;
  columns = fake_rnn_columns (r, cell, part);
  *matrix = (struct cudnnTensorStruct){
    d->type, 3, { 1, r->units, columns }, { r->units * columns, columns, 1 }
  };
  *bias = (struct cudnnTensorStruct){ d->type, 3, { 1, r->units, 1 }, { r->units, 1, 1 } };
  *at = base + fake_rnn_place (r, cell, part, false) * element_bytes (r);
  *bias_at = base + fake_rnn_place (r, cell, part, true) * element_bytes (r);
  return OK;
}

EXPORT cudnnStatus_t
cudnnGetRNNTempSpaceSizes (cudnnHandle_t handle, cudnnRNNDescriptor_t d,
                           cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t x, size_t *work,
                           size_t *reserve)
{
  FakeRnn r;

  if (handle == NULL || !d->set || x->lengths == NULL || x->type != d->type
      || x->width != d->net.in)
    return BAD;
  r = with_batch (d, x);
  *work = work_bytes (&r);
  if (reserve != NULL)
    *reserve = mode == CUDNN_FWD_MODE_TRAINING ? fake_rnn_reserve_bytes (&r) : 0;
  return OK;
}

/* --- calls --- */

static bool
same_batch (cudnnRNNDataDescriptor_t x, cudnnRNNDataDescriptor_t y)
{
  return x->lengths != NULL && y->lengths != NULL && x->n_sequences == y->n_sequences
         && x->n_steps == y->n_steps && x->type == y->type
         && memcmp (x->lengths, y->lengths, (size_t)x->n_sequences * sizeof (int)) == 0;
}

/* (cells, sequences, units), row-major. */
static bool
is_state (const struct cudnnTensorStruct *t, const FakeRnn *r, cudnnDataType_t type)
{
  return t != NULL && t->type == type && t->n == 3 && t->dim[0] == r->n_layers * r->n_directions
         && t->dim[1] == r->n_sequences && t->dim[2] == r->units && t->stride[2] == 1
         && t->stride[1] == r->units && t->stride[0] == r->units * r->n_sequences;
}

/* What is wrong with the arguments that all three calls have; NULL: nothing. */
static const char *
wrong (cudnnHandle_t handle, cudnnRNNDescriptor_t d, const int32_t *device_lengths,
       cudnnRNNDataDescriptor_t x, cudnnRNNDataDescriptor_t y, cudnnTensorDescriptor_t h,
       const FakeRnn *r, size_t weights, size_t work, const void *work_at, size_t reserve,
       const void *reserve_at)
{
  if (handle == NULL || handle->stream == NULL || !d->set)
    return "a handle without a stream, or a network that was not set";
  if (device_lengths != NULL)
    return "lengths on the device, which have had no meaning since 8.9.1";
  if (!same_batch (x, y) || x->type != d->type || x->width != r->in
      || y->width != r->units * r->n_directions)
    return "rows in and out that do not fit the network";
  if (!is_state (h, r, d->type))
    return "a descriptor of states that is not (cells, sequences, units)";
  if (weights != weight_bytes (r))
    return "a wrong size of the weights";
  if (work < work_bytes (r) || work_at == NULL)
    return "too little workspace";
  if (r->trains ? reserve < fake_rnn_reserve_bytes (r) || reserve_at == NULL
                : reserve != 0 || reserve_at != NULL)
    return "a reserve that does not fit the mode";
  return NULL;
}

typedef struct
{
  FakeRnn r;
  void (*compute) (const FakeRnn *r);
} Call;

static void
run_call (FakeCommand *command)
{
  const Call *call = command->data;

  call->compute (&call->r);
}

static void
free_call (FakeCommand *command)
{
  Call *call = command->data;

  free (call->r.lengths);
  free (call);
}

static void
use_states (FakeCommand *command, const FakeRnn *r, const void *at, bool writes)
{
  if (at != NULL)
    fake_command_use (command, (CUdeviceptr)at,
                      (size_t)(r->n_layers * r->n_directions * r->n_sequences * r->units)
                          * element_bytes (r),
                      writes);
}

static void
use_rows (FakeCommand *command, const FakeRnn *r, const void *at, int width, bool writes)
{
  if (at != NULL)
    fake_command_use (command, (CUdeviceptr)at,
                      fake_rnn_rows (r) * (size_t)width * element_bytes (r), writes);
}

static cudnnStatus_t
queue (cudnnHandle_t handle, const char *name, const FakeRnn *r,
       void (*compute) (const FakeRnn *r))
{
  const int out = r->units * r->n_directions;
  FakeCommand *command;
  Call *call;

  if (entered (name) != OK)
    return CUDNN_STATUS_EXECUTION_FAILED;
  call = calloc (1, sizeof *call);
  if (call == NULL)
    abort ();
  call->r = *r;
  call->compute = compute;
  call->r.lengths = malloc ((size_t)r->n_sequences * sizeof *r->lengths);
  if (call->r.lengths == NULL)
    abort ();
  memcpy (call->r.lengths, r->lengths, (size_t)r->n_sequences * sizeof *r->lengths);
  command = fake_command (name, run_call);
  command->data = call;
  command->free = free_call;
  fake_command_take_uses (command);
  use_rows (command, r, r->x, r->in, false);
  use_rows (command, r, r->gy, out, false);
  use_rows (command, r, r->y, out, r->gx == NULL && r->gw == NULL);
  use_rows (command, r, r->gx, r->in, true);
  for (int i = 0; i < 4; i++)
    {
      use_states (command, r, (const void *[]){ r->hx, r->cx, r->ghy, r->gcy }[i], false);
      use_states (command, r, (const void *[]){ r->hy, r->cy, r->ghx, r->gcx }[i], true);
    }
  if (r->w != NULL)
    fake_command_use (command, (CUdeviceptr)r->w, weight_bytes (r), false);
  if (r->gw != NULL)
    fake_command_use (command, (CUdeviceptr)r->gw, weight_bytes (r), true);
  fake_command_use (command, (CUdeviceptr)r->work, work_bytes (r), true);
  if (r->reserve != NULL)
    fake_command_use (command, (CUdeviceptr)r->reserve, fake_rnn_reserve_bytes (r), true);
  fake.n_launches++;
  fake.n_rnn++;
  return fake_enqueue (handle->stream, command) == CUDA_SUCCESS ? OK
                                                                : CUDNN_STATUS_EXECUTION_FAILED;
}

static cudnnStatus_t
refused (const char *function, const char *why)
{
  fake_violation ("%s with %s", function, why);
  return BAD;
}

EXPORT cudnnStatus_t
cudnnRNNForward (cudnnHandle_t handle, cudnnRNNDescriptor_t d, cudnnForwardMode_t mode,
                 const int32_t device_lengths[], cudnnRNNDataDescriptor_t x_rows, const void *x,
                 cudnnRNNDataDescriptor_t y_rows, void *y, cudnnTensorDescriptor_t h,
                 const void *hx, void *hy, cudnnTensorDescriptor_t c, const void *cx, void *cy,
                 size_t weights, const void *w, size_t work, void *work_at, size_t reserve,
                 void *reserve_at)
{
  FakeRnn r = with_batch (d, x_rows);
  const char *why;

  r.trains = mode == CUDNN_FWD_MODE_TRAINING;
  why = wrong (handle, d, device_lengths, x_rows, y_rows, h, &r, weights, work, work_at,
               reserve, reserve_at);
  if (why == NULL && (x == NULL || y == NULL || w == NULL))
    why = "no rows or no weights";
  if (why == NULL && r.mode == CUDNN_LSTM && !is_state (c, &r, d->type))
    why = "a descriptor of cells that is not (cells, sequences, units)";
  if (why == NULL && r.mode != CUDNN_LSTM && (cx != NULL || cy != NULL))
    why = "cells for what has none";
  if (why != NULL)
    return refused ("cudnnRNNForward", why);
  r.x = x;
  r.y = y;
  r.hx = hx;
  r.hy = hy;
  r.cx = cx;
  r.cy = cy;
  r.w = w;
  r.work = work_at;
  r.work_bytes = work_bytes (&r);
  r.reserve = reserve_at;
  return queue (handle, "cudnnRNNForward", &r, fake_rnn_forward);
}

EXPORT cudnnStatus_t
cudnnRNNBackwardData_v8 (cudnnHandle_t handle, cudnnRNNDescriptor_t d,
                         const int32_t device_lengths[], cudnnRNNDataDescriptor_t y_rows,
                         const void *y, const void *gy, cudnnRNNDataDescriptor_t x_rows,
                         void *gx, cudnnTensorDescriptor_t h, const void *hx, const void *ghy,
                         void *ghx, cudnnTensorDescriptor_t c, const void *cx, const void *gcy,
                         void *gcx, size_t weights, const void *w, size_t work, void *work_at,
                         size_t reserve, void *reserve_at)
{
  FakeRnn r = with_batch (d, x_rows);
  const char *why;

  r.trains = true;
  why = wrong (handle, d, device_lengths, x_rows, y_rows, h, &r, weights, work, work_at,
               reserve, reserve_at);
  if (why == NULL && (y == NULL || gy == NULL || gx == NULL || w == NULL))
    why = "no rows or no weights";
  if (why == NULL && r.mode == CUDNN_LSTM && !is_state (c, &r, d->type))
    why = "a descriptor of cells that is not (cells, sequences, units)";
  if (why == NULL && r.mode != CUDNN_LSTM && (cx != NULL || gcy != NULL || gcx != NULL))
    why = "cells for what has none";
  if (why != NULL)
    return refused ("cudnnRNNBackwardData_v8", why);
  r.y = (void *)(uintptr_t)y;
  r.gy = gy;
  r.gx = gx;
  r.hx = hx;
  r.ghy = ghy;
  r.ghx = ghx;
  r.cx = cx;
  r.gcy = gcy;
  r.gcx = gcx;
  r.w = w;
  r.work = work_at;
  r.work_bytes = work_bytes (&r);
  r.reserve = reserve_at;
  return queue (handle, "cudnnRNNBackwardData_v8", &r, fake_rnn_backward_data);
}

EXPORT cudnnStatus_t
cudnnRNNBackwardWeights_v8 (cudnnHandle_t handle, cudnnRNNDescriptor_t d, cudnnWgradMode_t mode,
                            const int32_t device_lengths[], cudnnRNNDataDescriptor_t x_rows,
                            const void *x, cudnnTensorDescriptor_t h, const void *hx,
                            cudnnRNNDataDescriptor_t y_rows, const void *y, size_t weights,
                            void *gw, size_t work, void *work_at, size_t reserve,
                            void *reserve_at)
{
  FakeRnn r = with_batch (d, x_rows);
  const char *why;

  r.trains = true;
  why = wrong (handle, d, device_lengths, x_rows, y_rows, h, &r, weights, work, work_at,
               reserve, reserve_at);
  if (why == NULL && (x == NULL || y == NULL || gw == NULL))
    why = "no rows or no weights";
  if (why == NULL && mode != CUDNN_WGRAD_MODE_ADD)
    why = "gradients of weights that are to be set, which cuDNN only adds";
  if (why != NULL)
    return refused ("cudnnRNNBackwardWeights_v8", why);
  r.x = x;
  r.hx = hx;
  r.y = (void *)(uintptr_t)y;
  r.gw = gw;
  r.work = work_at;
  r.work_bytes = work_bytes (&r);
  r.reserve = reserve_at;
  return queue (handle, "cudnnRNNBackwardWeights_v8", &r, fake_rnn_backward_weights);
}
