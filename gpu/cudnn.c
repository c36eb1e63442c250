/* cuDNN's backend graphs: its functions, choice of an engine, plans kept by key.
 *
 * Engines are proposed by cuDNN's heuristics.  Those are left out that are not deterministic
 * or that compute in less than fp32 (unless the key allows tensor cores).  The first of the
 * rest is taken; with the configuration's autotune the fastest of the first eight, measured at
 * the first call.  What was proposed for each graph is written to the file that
 * TAPEDECK_CUDNN_LOG names.  Graphs themselves are built in cudnn-conv.c and cudnn-
 * attention.c.
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
  TIMED_RUNS = 3,     /* of autotune */
  OLDEST = 90800      /* what this was written for */
};
#define MAX_WORKSPACE ((int64_t)1 << 30)

struct TdDnnApi td__dnn;

/* Returns NULL, or what is missing. */
static const char *
find_functions (void)
{
  static char old[80];
  size_t version;

  td__dnn.library = td_cuda_library ("libcudnn.so.9");
  if (td__dnn.library == NULL)
    return "there is no libcudnn.so.9";
#define FIND(name)                                                                             \
  *(void **)&td__dnn.name = dlsym (td__dnn.library, #name);                                    \
  if (td__dnn.name == NULL)                                                                    \
    return "libcudnn.so.9 has no " #name;
  TD_DNN_FUNCTIONS (FIND)
#undef FIND
  version = td__dnn.cudnnGetVersion ();
  if (version >= OLDEST)
    return NULL;
  snprintf (old, sizeof old, "cuDNN %zu.%zu is here, %d.%d is the least", version / 10000,
            version % 10000 / 100, OLDEST / 10000, OLDEST % 10000 / 100);
  return old;
}

/* Programs that have nothing for it hear nothing of it; the others once. */
bool
td__dnn_load (void)
{
  const char *missing;
  char text[240];

  if (td__dnn.tried)
    return td__dnn.here;
  td__dnn.tried = true;
  missing = find_functions ();
  td__dnn.here = missing == NULL;
  if (missing == NULL || td_cuda_host == NULL)
    return td__dnn.here;
  snprintf (text, sizeof text,
            "no cuDNN: %s; convolutions, recurrent layers and attention run as tapedeck's own "
            "kernels",
            missing);
  td_cuda_host->notice (text);
  return false;
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

/* Add plans of what the heuristics propose, best first, until there are as many as wanted;
 * without a device an engine whose code is compiled here is tried once: it fails at loading. */
static void
propose (TdDnn graph, const TdDnnKind *kind, const void *key, cudnnBackendHeurMode_t mode,
         cudnnHandle_t handle, TdDnn properties, TdCudnnPlanned *planned, TdDnnRivals *r)
{
  TdDnnGraph g = { .n = 0 };
  TdDnn heuristics = td__dnn_add (&g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
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
        if (r->n == r->wanted || (handle == NULL && r->n == 0 && planned->n_exact > 1))
          continue;
        r->plan[r->n] = plan_of (configs[i], handle, properties, &r->workspace_bytes[r->n]);
        if (r->plan[r->n] != NULL)
          r->n++;
        else
          explain (planned);
      }
  while (made > 0)
    td__dnn.cudnnBackendDestroyDescriptor (configs[--made]);
  td__dnn_clear (&g);
}

/* By the handle's device, or by properties. */
static void
plans_for_key (const TdDnnKind *kind, const void *key, cudnnHandle_t handle, TdDnn properties,
               TdCudnnPlanned *planned, TdDnnRivals *r)
{
  static const cudnnBackendHeurMode_t modes[] = { CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK };
  TdDnnGraph g = { .n = 0 };
  TdDnn graph = kind->graph (&g, key, handle);

  if (g.status != CUDNN_STATUS_SUCCESS)
    td__dnn.cudnnGetLastErrorString (planned->why, sizeof planned->why);
  for (size_t i = 0; i < 2 && r->n == 0 && g.status == CUDNN_STATUS_SUCCESS; i++)
    propose (graph, kind, key, modes[i], handle, properties, planned, r);
  if (r->n == 0 && planned->why[0] == '\0')
    snprintf (planned->why, sizeof planned->why, "no engine is proposed for %s of these sizes",
              kind->what);
  td__dnn_clear (&g);
}

/* --- plans on disk: cuDNN's own text of them, by all that they depend on --- */

/* Plans that were the first proposed, and those that were the fastest. */
static const char *
cache_of (bool tuned)
{
  return tuned ? "tuned" : "plan";
}

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
                const char *properties, bool tuned, int64_t *workspace)
{
  TdDnnGraph g = { .n = 0 };
  size_t n_key = 0, n = 0;
  char *of = disk_key (kind, key, properties, &n_key);
  char *text = of != NULL ? td_cuda_cache_read (cache_of (tuned), of, n_key, &n) : NULL;
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

void
td__dnn_keep (TdDnn plan, const TdDnnKind *kind, const void *key, const char *properties,
              bool tuned)
{
  char *text = text_of (plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION), *of;
  size_t n_key;

  of = text != NULL ? disk_key (kind, key, properties, &n_key) : NULL;
  if (of != NULL)
    td_cuda_cache_write (cache_of (tuned), of, n_key, text, strlen (text) + 1);
  free (text);
  free (of);
}

/* A plan from disk, or new ones: of one alone, it is kept there. */
static void
plans_kept (const TdDnnKind *kind, const void *key, cudnnHandle_t handle, TdDnn device,
            const char *properties, TdCudnnPlanned *planned, TdDnnRivals *r)
{
  const bool tuned = r->wanted > 1;

  if (properties != NULL)
    r->plan[0]
        = plan_from_disk (kind, key, handle, device, properties, tuned, &r->workspace_bytes[0]);
  planned->from_disk = r->plan[0] != NULL;
  if (planned->from_disk)
    r->n = 1;
  else
    plans_for_key (kind, key, handle, device, planned, r);
  if (r->n == 1 && properties != NULL && !planned->from_disk)
    td__dnn_keep (r->plan[0], kind, key, properties, tuned);
  planned->n_plans = r->n;
  planned->workspace_bytes = r->n > 0 ? r->workspace_bytes[0] : 0;
}

static bool
plan_deviceless (const TdDnnKind *kind, const void *key, const char *properties, int wanted,
                 TdCudnnPlanned *planned)
{
  TdDnnGraph g = { .n = 0 };
  TdDnnRivals r = { .wanted = wanted };
  TdDnn device;

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
    plans_kept (kind, key, NULL, device, properties, planned, &r);
  else
    td__dnn.cudnnGetLastErrorString (planned->why, sizeof planned->why);
  for (int i = 0; i < r.n; i++)
    td__dnn.cudnnBackendDestroyDescriptor (r.plan[i]);
  td__dnn_clear (&g);
  return r.n > 0;
}

bool
td_cudnn_conv_plan_deviceless (const TdCudnnConv *key, const char *properties, int wanted,
                               TdCudnnPlanned *planned)
{
  return plan_deviceless (&td__dnn_conv, key, properties, wanted, planned);
}

bool
td_cudnn_attention_plan_deviceless (const TdCudnnAttention *key, const char *properties,
                                    TdCudnnPlanned *planned)
{
  return plan_deviceless (&td__dnn_attention, key, properties, 1, planned);
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
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  TdCudnn *own = c->cudnn;
  cudnnStatus_t result;

  *status = TD_OK;
  if (own != NULL || !td__dnn_load ())
    return own;
  own = calloc (1, sizeof *own);
  if (own == NULL)
    return NULL;
  own->of = c;
  td_cuda_exchange_mode (c, &mode);
  result = td__dnn.cudnnCreate (&own->handle);
  if (result == CUDNN_STATUS_SUCCESS)
    result = td__dnn.cudnnSetStream (own->handle, (cudaStream_t)c->stream);
  td_cuda_exchange_mode (c, &mode);
  if (result != CUDNN_STATUS_SUCCESS)
    {
      *status = td__dnn_fail (c, result, "cudnnCreate");
      free (own);
      return NULL;
    }
  own->properties = properties_of (own->handle);
  return c->cudnn = own;
}

static void
drop (TdDnnPlan *p)
{
  for (int i = 0; i < p->rivals.n; i++)
    td__dnn.cudnnBackendDestroyDescriptor (p->rivals.plan[i]);
  *p = (TdDnnPlan){ 0 };
}

void
td__dnn_refuse (TdDnnPlan *p)
{
  for (int i = 0; i < p->rivals.n; i++)
    td__dnn.cudnnBackendDestroyDescriptor (p->rivals.plan[i]);
  p->rivals = (TdDnnRivals){ .wanted = p->rivals.wanted };
}

void
td_cudnn_close (TdCuda *c)
{
  if (c->cudnn == NULL)
    return;
  for (int i = 0; i < TD_DNN_PLANS; i++)
    drop (&c->cudnn->plans[i]);
  td__dnn_rnn_close (c->cudnn);
  td__dnn.cudnnDestroy (c->cudnn->handle);
  free (c->cudnn->properties);
  free (c->cudnn);
  c->cudnn = NULL;
}

/* A line for each graph that was planned, in the file TAPEDECK_CUDNN_LOG, if there is one: its
 * first sizes, what was proposed, what came of it. */
static void
report (const TdDnnKind *kind, const void *key, const TdCudnnPlanned *planned)
{
  const char *path = getenv ("TAPEDECK_CUDNN_LOG");
  FILE *f = path != NULL ? fopen (path, "ae") : NULL;
  int64_t sizes[10];
  const size_t n = kind->key_bytes < sizeof sizes ? kind->key_bytes / 8 : 10;

  if (f == NULL)
    return;
  memcpy (sizes, key, n * sizeof *sizes);
  fprintf (f, "%s", kind->what);
  for (size_t i = 0; i < n; i++)
    fprintf (f, " %lld", (long long)sizes[i]);
  fprintf (f, ": %d engines, %d exact, %d plans%s, workspace %lld%s%s\n", planned->n_engines,
           planned->n_exact, planned->n_plans, planned->from_disk ? " from disk" : "",
           (long long)planned->workspace_bytes, planned->why[0] != '\0' ? "; " : "",
           planned->why);
  fclose (f);
}

TdDnnPlan *
td__dnn_plan (TdCudnn *own, const TdDnnKind *kind, const void *key)
{
  const bool tune = td_cuda_host->config ()->autotune != 0 && kind->repeats (key);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  TdCudnnPlanned planned = { 0 };
  TdDnnPlan *p;
  uint64_t hash = td_cuda_cache_hash (TD_CACHE_HASH, key, kind->key_bytes);

  p = &own->plans[(hash ^ hash >> 32) % TD_DNN_PLANS];
  if (p->kind == kind && p->tuned == tune && memcmp (p->key, key, kind->key_bytes) == 0)
    return p;
  drop (p);
  p->kind = kind;
  p->tuned = tune;
  memcpy (p->key, key, kind->key_bytes);
  p->rivals.wanted = tune ? TD_DNN_RIVALS : 1;
  td_cuda_exchange_mode (own->of, &mode); /* engines load code */
  plans_kept (kind, key, own->handle, NULL, own->properties, &planned, &p->rivals);
  td_cuda_exchange_mode (own->of, &mode);
  report (kind, key, &planned);
  return p;
}

/* Put plan i on the stream. */
static cudnnStatus_t
execute (TdCuda *c, const TdDnnPlan *p, int i, const int64_t *ids, void *const *data, int n,
         void *room)
{
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  TdDnnGraph g = { .n = 0 };
  TdDnn pack = td__dnn_add (&g, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);

  td__dnn_set (&g, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, ids);
  td__dnn_set (&g, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, data);
  td__dnn_set (&g, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &room);
  td__dnn_finalize (&g, pack);
  td_cuda_exchange_mode (c, &mode); /* the first launch of a kernel may load it */
  if (g.status == CUDNN_STATUS_SUCCESS)
    g.status = td__dnn.cudnnBackendExecute (c->cudnn->handle, p->rivals.plan[i], pack);
  td_cuda_exchange_mode (c, &mode);
  td__dnn_clear (&g);
  return g.status;
}

int
td__dnn_fastest (const float *milliseconds, int n)
{
  int best = 0;

  /* What is not clearly faster is noise: then the order of the heuristics holds. */
  for (int i = 1; i < n; i++)
    if (milliseconds[i] >= 0
        && (milliseconds[best] < 0 || milliseconds[i] < 0.97f * milliseconds[best]))
      best = i;
  return best;
}

/* How long plan i takes; below 0: it does not run. */
static float
time_of (TdCuda *c, const TdDnnPlan *p, int i, const int64_t *ids, void *const *data, int n,
         void *room)
{
  CUevent from = NULL, to = NULL;
  float milliseconds = -1;
  bool ran
      = execute (c, p, i, ids, data, n, room) == CUDNN_STATUS_SUCCESS; /* once for nothing */

  if (ran && td_cuda.cuEventCreate (&from, CU_EVENT_DEFAULT) == CUDA_SUCCESS
      && td_cuda.cuEventCreate (&to, CU_EVENT_DEFAULT) == CUDA_SUCCESS)
    {
      td_cuda.cuEventRecord (from, c->stream);
      for (int k = 0; k < TIMED_RUNS && ran; k++)
        ran = execute (c, p, i, ids, data, n, room) == CUDNN_STATUS_SUCCESS;
      td_cuda.cuEventRecord (to, c->stream);
      if (td_cuda.cuEventSynchronize (to) != CUDA_SUCCESS || !ran
          || td_cuda.cuEventElapsedTime (&milliseconds, from, to) != CUDA_SUCCESS)
        milliseconds = -1;
    }
  if (from != NULL)
    td_cuda.cuEventDestroy (from);
  if (to != NULL)
    td_cuda.cuEventDestroy (to);
  return milliseconds;
}

/* Keep the fastest of the plans, for this run and the next. */
static void
settle (TdCuda *c, TdDnnPlan *p, const int64_t *ids, void *const *data, int n, void *room)
{
  TdDnnRivals *r = &p->rivals;
  float milliseconds[TD_DNN_RIVALS] = { 0 };
  int best;

  for (int i = 0; i < r->n; i++)
    milliseconds[i] = time_of (c, p, i, ids, data, n, room);
  best = td__dnn_fastest (milliseconds, r->n);
  for (int i = 0; i < r->n; i++)
    if (i != best)
      td__dnn.cudnnBackendDestroyDescriptor (r->plan[i]);
  r->plan[0] = r->plan[best];
  r->workspace_bytes[0] = r->workspace_bytes[best];
  r->n = 1;
  if (c->cudnn->properties != NULL && milliseconds[best] >= 0)
    td__dnn_keep (r->plan[0], p->kind, p->key, c->cudnn->properties, true);
}

TdStatus
td__dnn_execute (TdCuda *c, TdDnnPlan *p, const int64_t *ids, void *const *data, int n)
{
  int64_t bytes = 0;
  void *room = NULL;
  cudnnStatus_t result;

  if (p->rivals.n > 1 && td_cuda_refuses (c, "plans are timed"))
    return TD_ERR_STATE;
  for (int i = 0; i < p->rivals.n; i++)
    bytes = p->rivals.workspace_bytes[i] > bytes ? p->rivals.workspace_bytes[i] : bytes;
  if (bytes > 0)
    room = td_cuda_scratch (c, (size_t)bytes);
  if (bytes > 0 && room == NULL)
    return TD_ERR_MEMORY;
  if (p->rivals.n > 1)
    settle (c, p, ids, data, n, room);
  result = execute (c, p, 0, ids, data, n, room);
  td_cuda_scratch_end (c);
  return result == CUDNN_STATUS_SUCCESS ? TD_OK : td__dnn_fail (c, result, p->kind->what);
}
