/* cuDNN's backend graphs: its functions, engines by heuristics, plans kept by key.
 *
 * Of the engines proposed the first is taken that computes in fp32 (unless a key says that
 * tensor cores may) and gives the same bits every time.  What a graph computes is in
 * cudnn-conv.c and cudnn-attention.c.
 *
 * SPDX-License-Identifier: MIT */
#include "cudnn-private.h"

#include "disk-cache.h"
#include "libraries.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MAX_ENGINES = 64,
  MAX_NOTES = 32,
  MAX_JSON = 1 << 20, /* of a plan */
  OLDEST = 90800      /* what this was written for */
};
#define MAX_WORKSPACE ((int64_t)1 << 30)

struct TdDnnApi td__dnn;

bool
td__dnn_load (void)
{
  if (td__dnn.tried)
    return td__dnn.here;
  td__dnn.tried = true;
  td__dnn.library = td_cuda_library ("libcudnn.so.9");
  if (td__dnn.library == NULL)
    return false;
#define FIND(name)                                                                             \
  *(void **)&td__dnn.name = dlsym (td__dnn.library, #name);                                    \
  if (td__dnn.name == NULL)                                                                    \
    return false;
  TD_DNN_FUNCTIONS (FIND)
#undef FIND
  return td__dnn.here = td__dnn.cudnnGetVersion () >= OLDEST;
}

/* --- graphs --- */

TdDnn
td__dnn_add (TdDnnGraph *g, cudnnBackendDescriptorType_t type)
{
  TdDnn d = NULL;

  if (g->n == TD_DNN_MADE)
    g->status = CUDNN_STATUS_INTERNAL_ERROR;
  if (g->status == CUDNN_STATUS_SUCCESS)
    g->status = td__dnn.cudnnBackendCreateDescriptor (type, &d);
  if (d != NULL)
    g->made[g->n++] = d;
  return d;
}

void
td__dnn_set (TdDnnGraph *g, TdDnn d, cudnnBackendAttributeName_t name,
             cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
  if (g->status == CUDNN_STATUS_SUCCESS)
    g->status = td__dnn.cudnnBackendSetAttribute (d, name, type, n, values);
}

void
td__dnn_link (TdDnnGraph *g, TdDnn d, cudnnBackendAttributeName_t name, TdDnn part)
{
  td__dnn_set (g, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part);
}

void
td__dnn_finalize (TdDnnGraph *g, TdDnn d)
{
  if (g->status == CUDNN_STATUS_SUCCESS)
    g->status = td__dnn.cudnnBackendFinalize (d);
}

void
td__dnn_clear (TdDnnGraph *g)
{
  while (g->n > 0)
    td__dnn.cudnnBackendDestroyDescriptor (g->made[--g->n]);
}

TdDnn
td__dnn_operation_graph (TdDnnGraph *g, const TdDnn *operations, int n, cudnnHandle_t handle)
{
  TdDnn graph = td__dnn_add (g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);

  td__dnn_set (g, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n,
               operations);
  if (handle != NULL)
    td__dnn_set (g, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  td__dnn_finalize (g, graph);
  return graph;
}

const TdDnnType td__dnn_types[8] = {
  [TD_F32] = { true, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT },
  [TD_F64] = { true, CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE },
  [TD_F16] = { true, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT },
  [TD_BF16] = { true, CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT },
};

/* --- engines --- */

/* The same bits every time; inputs not rounded; fp32 not on tensor cores unless asked for. */
static bool
is_exact (TdDnn config, const TdDnnKind *kind, const void *key)
{
  cudnnBackendNumericalNote_t notes[MAX_NOTES];
  TdDnn engine = NULL;
  int64_t n = 0;
  bool exact;

  if (td__dnn.cudnnBackendCreateDescriptor (CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine)
      != CUDNN_STATUS_SUCCESS)
    return false;
  exact = td__dnn.cudnnBackendGetAttribute (config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine)
              == CUDNN_STATUS_SUCCESS
          && td__dnn.cudnnBackendGetAttribute (engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                               CUDNN_TYPE_NUMERICAL_NOTE, MAX_NOTES, &n, notes)
                 == CUDNN_STATUS_SUCCESS;
  for (int64_t i = 0; i < n && i < MAX_NOTES && exact; i++)
    exact = notes[i] != CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC
            && notes[i] != CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS
            && notes[i] != CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION
            && (notes[i] != CUDNN_NUMERICAL_NOTE_TENSOR_CORE || kind->tensor_cores (key));
  td__dnn.cudnnBackendDestroyDescriptor (engine);
  return exact;
}

/* A plan for one engine; NULL: it cannot be had here. */
static TdDnn
plan_of (TdDnn config, cudnnHandle_t handle, TdDnn properties, int64_t *workspace)
{
  TdDnnGraph g = { .n = 0 };
  TdDnn plan = td__dnn_add (&g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  int64_t n;

  td__dnn_set (&g, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR,
               1, &config);
  if (handle != NULL)
    td__dnn_set (&g, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  else
    td__dnn_set (&g, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                 1, &properties);
  td__dnn_finalize (&g, plan);
  if (g.status == CUDNN_STATUS_SUCCESS)
    g.status = td__dnn.cudnnBackendGetAttribute (plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                 CUDNN_TYPE_INT64, 1, &n, workspace);
  if (g.status == CUDNN_STATUS_SUCCESS && *workspace <= MAX_WORKSPACE)
    return plan;
  td__dnn_clear (&g);
  return NULL;
}

/* Keep why something failed; what failed first says most. */
static void
explain (TdCudnnPlanned *planned)
{
  if (planned->why[0] == '\0')
    td__dnn.cudnnGetLastErrorString (planned->why, sizeof planned->why);
  if (planned->why[0] == '\0')
    snprintf (planned->why, sizeof planned->why, "no reason given");
}

/* Try what the heuristics propose, best first; without a device only the first, for what makes
 * its code fails at loading it. */
static TdDnn
first_plan (TdDnn graph, const TdDnnKind *kind, const void *key, cudnnBackendHeurMode_t mode,
            cudnnHandle_t handle, TdDnn properties, TdCudnnPlanned *planned)
{
  TdDnnGraph g = { .n = 0 };
  TdDnn heuristics = td__dnn_add (&g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR), plan = NULL;
  TdDnn configs[MAX_ENGINES];
  int64_t n = 0, made = 0;

  td__dnn_set (&g, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
               CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
  td__dnn_set (&g, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (properties != NULL)
    td__dnn_set (&g, heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &properties);
  td__dnn_finalize (&g, heuristics);
  while (g.status == CUDNN_STATUS_SUCCESS && made < MAX_ENGINES
         && td__dnn.cudnnBackendCreateDescriptor (CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                                                  &configs[made])
                == CUDNN_STATUS_SUCCESS)
    made++;
  if (g.status == CUDNN_STATUS_SUCCESS)
    g.status
        = td__dnn.cudnnBackendGetAttribute (heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, made, &n, configs);
  if (g.status != CUDNN_STATUS_SUCCESS)
    n = 0;
  planned->n_engines += (int)n;
  if (g.status != CUDNN_STATUS_SUCCESS)
    explain (planned);
  for (int64_t i = 0; i < n && i < made; i++)
    if (is_exact (configs[i], kind, key))
      {
        planned->n_exact++;
        if (plan != NULL || (handle == NULL && planned->n_exact > 1))
          continue;
        plan = plan_of (configs[i], handle, properties, &planned->workspace_bytes);
        if (plan == NULL)
          explain (planned);
      }
  while (made > 0)
    td__dnn.cudnnBackendDestroyDescriptor (configs[--made]);
  td__dnn_clear (&g);
  return plan;
}

/* By the handle's device, or by properties. */
static TdDnn
plan_for_key (const TdDnnKind *kind, const void *key, cudnnHandle_t handle, TdDnn properties,
              TdCudnnPlanned *planned)
{
  static const cudnnBackendHeurMode_t modes[] = { CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK };
  TdDnnGraph g = { .n = 0 };
  TdDnn graph = kind->graph (&g, key, handle), plan = NULL;

  if (g.status != CUDNN_STATUS_SUCCESS)
    td__dnn.cudnnGetLastErrorString (planned->why, sizeof planned->why);
  for (size_t i = 0; i < 2 && plan == NULL && g.status == CUDNN_STATUS_SUCCESS; i++)
    plan = first_plan (graph, kind, key, modes[i], handle, properties, planned);
  if (plan == NULL && planned->why[0] == '\0')
    snprintf (planned->why, sizeof planned->why, "no engine is proposed for %s of these sizes",
              kind->what);
  td__dnn_clear (&g);
  return plan;
}

/* --- plans on disk: cuDNN's own text of them, by all that they depend on --- */

/* What the text was made for; and what a plan of it depends on. */
static char *
disk_key (const TdDnnKind *kind, const void *key, const char *properties, size_t *bytes)
{
  const size_t n = strlen (properties) + 1;
  char *all = malloc (64 + n + kind->key_bytes);

  if (all == NULL)
    return NULL;
  memset (all, 0, 64);
  snprintf (all, 64, "cuDNN %zu, %s", td__dnn.cudnnGetVersion (), kind->what);
  memcpy (all + 64, properties, n);
  memcpy (all + 64 + n, key, kind->key_bytes);
  *bytes = 64 + n + kind->key_bytes;
  return all;
}

static char *
text_of (TdDnn d, cudnnBackendAttributeName_t name)
{
  char *text = calloc (1, MAX_JSON + 1);
  int64_t n = 0;

  if (text != NULL
      && td__dnn.cudnnBackendGetAttribute (d, name, CUDNN_TYPE_CHAR, MAX_JSON, &n, text)
             == CUDNN_STATUS_SUCCESS
      && n > 0 && text[0] == '{')
    return text;
  free (text);
  return NULL;
}

/* The text of a device's properties; NULL: there is none.  *Owner*: the caller, free. */
static char *
properties_of (cudnnHandle_t handle)
{
  TdDnnGraph g = { .n = 0 };
  TdDnn device = td__dnn_add (&g, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  char *text = NULL;

  td__dnn_set (&g, device, CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  td__dnn_finalize (&g, device);
  if (g.status == CUDNN_STATUS_SUCCESS)
    text = text_of (device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
  td__dnn_clear (&g);
  return text;
}

/* The plan that was kept; NULL: none, or none that this library takes. */
static TdDnn
plan_from_disk (const TdDnnKind *kind, const void *key, cudnnHandle_t handle, TdDnn device,
                const char *properties, int64_t *workspace)
{
  TdDnnGraph g = { .n = 0 };
  size_t n_key = 0, n = 0;
  char *of = disk_key (kind, key, properties, &n_key);
  char *text = of != NULL ? td_cuda_cache_read ("plan", of, n_key, &n) : NULL;
  TdDnn plan = NULL;
  int64_t count;

  if (text != NULL && n > 0 && text[n - 1] == '\0')
    {
      plan = td__dnn_add (&g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      if (handle != NULL)
        td__dnn_set (&g, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
      else
        td__dnn_link (&g, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
      td__dnn_set (&g, plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                   (int64_t)n, text);
      td__dnn_finalize (&g, plan);
      if (g.status == CUDNN_STATUS_SUCCESS)
        g.status
            = td__dnn.cudnnBackendGetAttribute (plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                CUDNN_TYPE_INT64, 1, &count, workspace);
      if (g.status != CUDNN_STATUS_SUCCESS)
        {
          td__dnn_clear (&g);
          plan = NULL;
        }
    }
  free (text);
  free (of);
  return plan;
}

static void
plan_to_disk (TdDnn plan, const TdDnnKind *kind, const void *key, const char *properties)
{
  char *text = text_of (plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION), *of;
  size_t n_key;

  of = text != NULL ? disk_key (kind, key, properties, &n_key) : NULL;
  if (of != NULL)
    td_cuda_cache_write ("plan", of, n_key, text, strlen (text) + 1);
  free (text);
  free (of);
}

/* A plan from disk, or a new one that is kept there. */
static TdDnn
plan_kept (const TdDnnKind *kind, const void *key, cudnnHandle_t handle, TdDnn device,
           const char *properties, TdCudnnPlanned *planned)
{
  TdDnn plan = NULL;

  if (properties != NULL)
    plan = plan_from_disk (kind, key, handle, device, properties, &planned->workspace_bytes);
  planned->from_disk = plan != NULL;
  if (plan != NULL)
    return plan;
  plan = plan_for_key (kind, key, handle, device, planned);
  if (plan != NULL && properties != NULL)
    plan_to_disk (plan, kind, key, properties);
  return plan;
}

static bool
plan_deviceless (const TdDnnKind *kind, const void *key, const char *properties,
                 TdCudnnPlanned *planned)
{
  TdDnnGraph g = { .n = 0 };
  TdDnn device, plan = NULL;

  *planned = (TdCudnnPlanned){ 0 };
  if (!td__dnn_load ())
    {
      snprintf (planned->why, sizeof planned->why, "cuDNN is not here");
      return false;
    }
  device = td__dnn_add (&g, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  td__dnn_set (&g, device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
               (int64_t)strlen (properties) + 1, properties);
  td__dnn_finalize (&g, device);
  if (g.status == CUDNN_STATUS_SUCCESS)
    plan = plan_kept (kind, key, NULL, device, properties, planned);
  else
    td__dnn.cudnnGetLastErrorString (planned->why, sizeof planned->why);
  if (plan != NULL)
    td__dnn.cudnnBackendDestroyDescriptor (plan);
  td__dnn_clear (&g);
  return plan != NULL;
}

bool
td_cudnn_conv_plan_deviceless (const TdCudnnConv *key, const char *properties,
                               TdCudnnPlanned *planned)
{
  return plan_deviceless (&td__dnn_conv, key, properties, planned);
}

bool
td_cudnn_attention_plan_deviceless (const TdCudnnAttention *key, const char *properties,
                                    TdCudnnPlanned *planned)
{
  return plan_deviceless (&td__dnn_attention, key, properties, planned);
}

/* --- a device's handle, its plans, and calls --- */

TdStatus
td__dnn_fail (TdCuda *c, cudnnStatus_t result, const char *what)
{
  char text[200];

  snprintf (text, sizeof text, "%s failed: %s", what, td__dnn.cudnnGetErrorString (result));
  return td_cuda_host->fail (TD_ERR_DEVICE, c->device.name, text);
}

TdCudnn *
td__dnn_of (TdCuda *c, TdStatus *status)
{
  TdCudnn *own = c->cudnn;
  cudnnStatus_t result;

  *status = TD_OK;
  if (own != NULL || !td__dnn_load ())
    return own;
  own = calloc (1, sizeof *own);
  if (own == NULL)
    return NULL;
  result = td__dnn.cudnnCreate (&own->handle);
  if (result == CUDNN_STATUS_SUCCESS)
    result = td__dnn.cudnnSetStream (own->handle, (cudaStream_t)c->stream);
  if (result != CUDNN_STATUS_SUCCESS)
    {
      *status = td__dnn_fail (c, result, "cudnnCreate");
      free (own);
      return NULL;
    }
  own->properties = properties_of (own->handle);
  return c->cudnn = own;
}

void
td_cudnn_close (TdCuda *c)
{
  if (c->cudnn == NULL)
    return;
  for (int i = 0; i < TD_DNN_PLANS; i++)
    if (c->cudnn->plans[i].plan != NULL)
      td__dnn.cudnnBackendDestroyDescriptor (c->cudnn->plans[i].plan);
  td__dnn.cudnnDestroy (c->cudnn->handle);
  free (c->cudnn->properties);
  free (c->cudnn);
  c->cudnn = NULL;
}

const TdDnnPlan *
td__dnn_plan (TdCudnn *own, const TdDnnKind *kind, const void *key)
{
  const unsigned char *bytes = key;
  uint64_t hash = 14695981039346656037u;
  TdCudnnPlanned planned = { 0 };
  TdDnnPlan *p;

  for (size_t i = 0; i < kind->key_bytes; i++)
    hash = (hash ^ bytes[i]) * 1099511628211u;
  p = &own->plans[(hash ^ hash >> 32) % TD_DNN_PLANS];
  if (p->kind == kind && memcmp (p->key, key, kind->key_bytes) == 0)
    return p;
  if (p->plan != NULL)
    td__dnn.cudnnBackendDestroyDescriptor (p->plan);
  *p = (TdDnnPlan){ .kind = kind };
  memcpy (p->key, key, kind->key_bytes);
  p->plan = plan_kept (kind, key, own->handle, NULL, own->properties, &planned);
  p->workspace_bytes = planned.workspace_bytes;
  return p;
}

TdStatus
td__dnn_execute (TdCuda *c, const TdDnnPlan *p, const int64_t *ids, void *const *data, int n)
{
  TdDnnGraph g = { .n = 0 };
  TdDnn pack = td__dnn_add (&g, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  void *room = p->workspace_bytes > 0 ? td_cuda_scratch (c, (size_t)p->workspace_bytes) : NULL;

  if (p->workspace_bytes > 0 && room == NULL)
    {
      td__dnn_clear (&g);
      return TD_ERR_MEMORY;
    }
  if (td_cuda.uses != NULL && room != NULL)
    td_cuda.uses (c->stream, (CUdeviceptr)room, (size_t)p->workspace_bytes, true);
  td__dnn_set (&g, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, ids);
  td__dnn_set (&g, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, data);
  td__dnn_set (&g, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &room);
  td__dnn_finalize (&g, pack);
  if (g.status == CUDNN_STATUS_SUCCESS)
    g.status = td__dnn.cudnnBackendExecute (c->cudnn->handle, p->plan, pack);
  td__dnn_clear (&g);
  td_cuda_scratch_end (c);
  return g.status == CUDNN_STATUS_SUCCESS ? TD_OK : td__dnn_fail (c, g.status, p->kind->what);
}
