/* Convolutions through cuDNN's backend graphs: the only file with its types.
 *
 * A graph of one operation, engines by heuristics, the first that computes in fp32 (unless the
 * configuration says tf32) and gives the same bits every time.  Plans are kept per size.
 *
 * SPDX-License-Identifier: MIT */
#include "cudnn.h"

#include "libraries.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cudnn_graph.h>

enum
{
  N_PLANS = 256,
  MAX_ENGINES = 64,
  MAX_NOTES = 32,
  OLDEST = 90800 /* what this was written for */
};
#define MAX_WORKSPACE ((int64_t)1 << 30)

#define FUNCTIONS(X)                                                                           \
  X (cudnnCreate)                                                                              \
  X (cudnnDestroy)                                                                             \
  X (cudnnSetStream)                                                                           \
  X (cudnnGetVersion)                                                                          \
  X (cudnnGetErrorString)                                                                      \
  X (cudnnGetLastErrorString)                                                                  \
  X (cudnnBackendCreateDescriptor)                                                             \
  X (cudnnBackendDestroyDescriptor)                                                            \
  X (cudnnBackendFinalize)                                                                     \
  X (cudnnBackendSetAttribute)                                                                 \
  X (cudnnBackendGetAttribute)                                                                 \
  X (cudnnBackendExecute)

typedef cudnnBackendDescriptor_t Descriptor;

static struct
{
  bool tried, here;
#define FIELD(name) __typeof__ (name) *name;
  FUNCTIONS (FIELD)
#undef FIELD
} dnn;

typedef struct
{
  TdCudnnConv key;
  bool made, refused; /* refused: cuDNN knows no way */
  Descriptor plan;
  int64_t workspace_bytes;
} Plan;

typedef struct TdCudnn
{
  cudnnHandle_t handle;
  Plan plans[N_PLANS];
} TdCudnn;

static bool
load (void)
{
  void *library;

  if (dnn.tried)
    return dnn.here;
  dnn.tried = true;
  library = td_cuda_library ("libcudnn.so.9");
  if (library == NULL)
    return false;
#define FIND(name)                                                                             \
  *(void **)&dnn.name = dlsym (library, #name);                                                \
  if (dnn.name == NULL)                                                                        \
    return false;
  FUNCTIONS (FIND)
#undef FIND
  return dnn.here = dnn.cudnnGetVersion () >= OLDEST;
}

/* --- graphs: the first thing that goes wrong stays --- */

typedef struct
{
  Descriptor made[16]; /* freed with the graph */
  int n;
  cudnnStatus_t status;
} Graph;

static Descriptor
add (Graph *g, cudnnBackendDescriptorType_t type)
{
  Descriptor d = NULL;

  if (g->status == CUDNN_STATUS_SUCCESS)
    g->status = dnn.cudnnBackendCreateDescriptor (type, &d);
  if (d != NULL)
    g->made[g->n++] = d;
  return d;
}

static void
set (Graph *g, Descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
     int64_t n, const void *values)
{
  if (g->status == CUDNN_STATUS_SUCCESS)
    g->status = dnn.cudnnBackendSetAttribute (d, name, type, n, values);
}

static void
finalize (Graph *g, Descriptor d)
{
  if (g->status == CUDNN_STATUS_SUCCESS)
    g->status = dnn.cudnnBackendFinalize (d);
}

static void
graph_clear (Graph *g)
{
  while (g->n > 0)
    dnn.cudnnBackendDestroyDescriptor (g->made[--g->n]);
}

static const struct
{
  bool known;
  cudnnDataType_t type, compute;
} types[] = {
  [TD_F32] = { true, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT },
  [TD_F64] = { true, CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE },
  [TD_F16] = { true, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT },
  [TD_BF16] = { true, CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT },
};

static Descriptor
tensor (Graph *g, const TdCudnnConv *key, const int64_t *dim, int64_t id)
{
  Descriptor d = add (g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  int64_t stride[TD_CUDNN_RANK], alignment = key->alignment;

  stride[key->rank - 1] = 1;
  for (int i = key->rank - 2; i >= 0; i--)
    stride[i] = stride[i + 1] * dim[i + 1];
  set (g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &types[key->dtype].type);
  set (g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, key->rank, dim);
  set (g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, key->rank, stride);
  set (g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
  set (g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
  finalize (g, d);
  return d;
}

static Descriptor
windows (Graph *g, const TdCudnnConv *key)
{
  Descriptor d = add (g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const int64_t n = key->rank - 2;

  set (g, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &n);
  set (g, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1,
       &types[key->dtype].compute);
  set (g, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  set (g, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, n, key->pad);
  set (g, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, n, key->pad);
  set (g, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, n, key->dilate);
  set (g, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, n, key->stride);
  finalize (g, d);
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

static Descriptor
operation_graph (Graph *g, const TdCudnnConv *key, cudnnHandle_t handle)
{
  Descriptor x = tensor (g, key, key->x, 'x'), w = tensor (g, key, key->w, 'w'),
             y = tensor (g, key, key->y, 'y'), how = windows (g, key);
  Descriptor op = add (g, kinds[key->kind].type), graph;
  const double alpha = 1, beta = key->accumulate ? 1 : 0;
  const float alpha_f = 1, beta_f = (float)beta;
  const bool wide = key->dtype == TD_F64;

  set (g, op, kinds[key->kind].windows, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &how);
  set (g, op, kinds[key->kind].x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
  set (g, op, kinds[key->kind].w, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w);
  set (g, op, kinds[key->kind].y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
  set (g, op, kinds[key->kind].alpha, wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT, 1,
       wide ? (const void *)&alpha : &alpha_f);
  set (g, op, kinds[key->kind].beta, wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT, 1,
       wide ? (const void *)&beta : &beta_f);
  finalize (g, op);
  graph = add (g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  set (g, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &op);
  if (handle != NULL)
    set (g, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  finalize (g, graph);
  return graph;
}

/* --- engines --- */

/* The same bits every time; inputs not rounded; fp32 not on tensor cores unless asked for. */
static bool
is_exact (Descriptor config, const TdCudnnConv *key)
{
  cudnnBackendNumericalNote_t notes[MAX_NOTES];
  Descriptor engine = NULL;
  int64_t n = 0;
  bool exact;

  if (dnn.cudnnBackendCreateDescriptor (CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine)
      != CUDNN_STATUS_SUCCESS)
    return false;
  exact = dnn.cudnnBackendGetAttribute (config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine)
              == CUDNN_STATUS_SUCCESS
          && dnn.cudnnBackendGetAttribute (engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                           CUDNN_TYPE_NUMERICAL_NOTE, MAX_NOTES, &n, notes)
                 == CUDNN_STATUS_SUCCESS;
  for (int64_t i = 0; i < n && i < MAX_NOTES && exact; i++)
    exact = notes[i] != CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC
            && notes[i] != CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS
            && notes[i] != CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION
            && (notes[i] != CUDNN_NUMERICAL_NOTE_TENSOR_CORE || key->dtype != TD_F32
                || key->tf32);
  dnn.cudnnBackendDestroyDescriptor (engine);
  return exact;
}

/* A plan for one engine; NULL: it cannot be had here. */
static Descriptor
plan_of (Descriptor config, cudnnHandle_t handle, Descriptor properties, int64_t *workspace)
{
  Graph g = { .n = 0 };
  Descriptor plan = add (&g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  int64_t n;

  set (&g, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
       &config);
  if (handle != NULL)
    set (&g, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  else
    set (&g, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
         &properties);
  finalize (&g, plan);
  if (g.status == CUDNN_STATUS_SUCCESS)
    g.status = dnn.cudnnBackendGetAttribute (plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                             CUDNN_TYPE_INT64, 1, &n, workspace);
  if (g.status == CUDNN_STATUS_SUCCESS && *workspace <= MAX_WORKSPACE)
    return plan;
  graph_clear (&g);
  return NULL;
}

/* Try what the heuristics propose, best first. */
static Descriptor
first_plan (Descriptor graph, const TdCudnnConv *key, cudnnBackendHeurMode_t mode,
            cudnnHandle_t handle, Descriptor properties, TdCudnnPlanned *planned)
{
  Graph g = { .n = 0 };
  Descriptor heuristics = add (&g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR), plan = NULL;
  Descriptor configs[MAX_ENGINES];
  int64_t n = 0, made = 0;

  set (&g, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
       &graph);
  set (&g, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (properties != NULL)
    set (&g, heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
         &properties);
  finalize (&g, heuristics);
  while (
      g.status == CUDNN_STATUS_SUCCESS && made < MAX_ENGINES
      && dnn.cudnnBackendCreateDescriptor (CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[made])
             == CUDNN_STATUS_SUCCESS)
    made++;
  if (g.status == CUDNN_STATUS_SUCCESS)
    g.status = dnn.cudnnBackendGetAttribute (heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                             CUDNN_TYPE_BACKEND_DESCRIPTOR, made, &n, configs);
  if (g.status != CUDNN_STATUS_SUCCESS)
    n = 0;
  planned->n_engines += (int)n;
  for (int64_t i = 0; i < n && i < made; i++)
    if (is_exact (configs[i], key))
      {
        planned->n_exact++;
        if (plan == NULL)
          plan = plan_of (configs[i], handle, properties, &planned->workspace_bytes);
      }
  if (plan == NULL)
    dnn.cudnnGetLastErrorString (planned->why, sizeof planned->why);
  while (made > 0)
    dnn.cudnnBackendDestroyDescriptor (configs[--made]);
  graph_clear (&g);
  return plan;
}

/* By the handle's device, or by properties. */
static Descriptor
plan_for_key (const TdCudnnConv *key, cudnnHandle_t handle, Descriptor properties,
              TdCudnnPlanned *planned)
{
  Graph g = { .n = 0 };
  Descriptor graph = operation_graph (&g, key, handle), plan = NULL;

  if (g.status == CUDNN_STATUS_SUCCESS)
    plan = first_plan (graph, key, CUDNN_HEUR_MODE_A, handle, properties, planned);
  else
    dnn.cudnnGetLastErrorString (planned->why, sizeof planned->why);
  if (g.status == CUDNN_STATUS_SUCCESS && plan == NULL)
    plan = first_plan (graph, key, CUDNN_HEUR_MODE_FALLBACK, handle, properties, planned);
  graph_clear (&g);
  return plan;
}

bool
td_cudnn_plan_deviceless (const TdCudnnConv *key, const char *properties,
                          TdCudnnPlanned *planned)
{
  Graph g = { .n = 0 };
  Descriptor device, plan = NULL;

  *planned = (TdCudnnPlanned){ 0 };
  if (!load ())
    {
      snprintf (planned->why, sizeof planned->why, "cuDNN is not here");
      return false;
    }
  device = add (&g, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  set (&g, device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
       (int64_t)strlen (properties) + 1, properties);
  finalize (&g, device);
  if (g.status == CUDNN_STATUS_SUCCESS)
    plan = plan_for_key (key, NULL, device, planned);
  else
    dnn.cudnnGetLastErrorString (planned->why, sizeof planned->why);
  if (plan != NULL)
    dnn.cudnnBackendDestroyDescriptor (plan);
  graph_clear (&g);
  return plan != NULL;
}

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

static TdStatus
fail (TdCuda *c, cudnnStatus_t result, const char *what)
{
  char text[200];

  snprintf (text, sizeof text, "%s failed: %s", what, dnn.cudnnGetErrorString (result));
  return td_cuda_host->fail (TD_ERR_DEVICE, c->device.name, text);
}

/* The handle; NULL: none to be had, *status TD_OK where that is no error. */
static TdCudnn *
cudnn_of (TdCuda *c, TdStatus *status)
{
  TdCudnn *own = c->cudnn;
  cudnnStatus_t result;

  *status = TD_OK;
  if (own != NULL || !load ())
    return own;
  own = calloc (1, sizeof *own);
  if (own == NULL)
    return NULL;
  result = dnn.cudnnCreate (&own->handle);
  if (result == CUDNN_STATUS_SUCCESS)
    result = dnn.cudnnSetStream (own->handle, (cudaStream_t)c->stream);
  if (result != CUDNN_STATUS_SUCCESS)
    {
      *status = fail (c, result, "cudnnCreate");
      free (own);
      return NULL;
    }
  return c->cudnn = own;
}

void
td_cudnn_close (TdCuda *c)
{
  if (c->cudnn == NULL)
    return;
  for (int i = 0; i < N_PLANS; i++)
    if (c->cudnn->plans[i].plan != NULL)
      dnn.cudnnBackendDestroyDescriptor (c->cudnn->plans[i].plan);
  dnn.cudnnDestroy (c->cudnn->handle);
  free (c->cudnn);
  c->cudnn = NULL;
}

static Plan *
plan_for (TdCudnn *own, const TdCudnnConv *key)
{
  const unsigned char *bytes = (const unsigned char *)key;
  uint64_t hash = 14695981039346656037u;
  TdCudnnPlanned planned = { 0 };
  Plan *p;

  for (size_t i = 0; i < sizeof *key; i++)
    hash = (hash ^ bytes[i]) * 1099511628211u;
  p = &own->plans[(hash ^ hash >> 32) % N_PLANS];
  if (p->made && memcmp (&p->key, key, sizeof *key) == 0)
    return p;
  if (p->plan != NULL)
    dnn.cudnnBackendDestroyDescriptor (p->plan);
  *p = (Plan){ .key = *key, .made = true };
  p->plan = plan_for_key (key, own->handle, NULL, &planned);
  p->workspace_bytes = planned.workspace_bytes;
  p->refused = p->plan == NULL;
  return p;
}

static TdStatus
execute (TdCuda *c, TdCudnn *own, const Plan *p, void *x, void *w, void *y)
{
  Graph g = { .n = 0 };
  Descriptor pack = add (&g, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const int64_t ids[3] = { 'x', 'w', 'y' };
  void *const data[3] = { x, w, y };
  void *room = p->workspace_bytes > 0 ? td_cuda_scratch (c, (size_t)p->workspace_bytes) : NULL;

  if (p->workspace_bytes > 0 && room == NULL)
    {
      graph_clear (&g);
      return TD_ERR_MEMORY;
    }
  if (td_cuda.uses != NULL && room != NULL)
    td_cuda.uses (c->stream, (CUdeviceptr)room, (size_t)p->workspace_bytes, true);
  set (&g, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, ids);
  set (&g, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, data);
  set (&g, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &room);
  finalize (&g, pack);
  if (g.status == CUDNN_STATUS_SUCCESS)
    g.status = dnn.cudnnBackendExecute (own->handle, p->plan, pack);
  graph_clear (&g);
  td_cuda_scratch_end (c);
  return g.status == CUDNN_STATUS_SUCCESS ? TD_OK : fail (c, g.status, "a convolution");
}

/* y += b, b along the channels. */
static TdStatus
add_bias (TdCuda *c, TdTensor *y, const TdTensor *b)
{
  TdShape shape = { .ndim = y->shape->ndim };
  TdTensor row = *b;

  for (int i = 0; i < shape.ndim; i++)
    shape.dim[i] = i == 1 ? b->size : 1;
  row.shape = &shape;
  td_cuda_reads (c, &row, 1);
  td_cuda_writes (c, y, 1);
  return td_cuda_binary (&c->launcher, TD_BINARY_ADD, y, &row, y, false);
}

bool
td_cudnn_conv (TdCuda *c, TdConvKind kind, const TdConv *attrs, const TdTensor *in, int n_in,
               TdTensor *out, TdStatus *status)
{
  TdCudnnConv key;
  TdCudnn *own;
  Plan *p;
  void *x, *w, *y;

  *status = c->lost;
  if (c->lost != TD_OK)
    return true;
  if (td_cuda_host->config ()->use_cudnn == 0
      || !td_cudnn_conv_key (&key, kind, attrs, in, out, td_cuda_host->config ()->tf32 != 0))
    return false;
  own = cudnn_of (c, status);
  if (own == NULL)
    return *status != TD_OK;
  p = plan_for (own, &key);
  if (p->refused)
    return false;
  x = kind == TD_CONV_DATA_GRAD ? out->data : in[0].data;
  w = kind == TD_CONV_FORWARD ? in[1].data : kind == TD_CONV_DATA_GRAD ? in[0].data : out->data;
  y = kind == TD_CONV_FORWARD ? out->data : in[1].data;
  *status = execute (c, own, p, x, w, y);
  if (*status == TD_OK && kind != TD_CONV_WEIGHT_GRAD && n_in > 2)
    *status = add_bias (c, out, &in[2]);
  c->device.algorithm = "cuDNN";
  return true;
}
