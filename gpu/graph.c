/* CUDA graphs: what slots launch between two calls is captured from the compute stream, and
 * replayed with one launch.
 *
 * Nodes of our own kernels are known.  Where arrays or numbers of a step have changed since,
 * its slots run again, and set parameters of nodes instead of launching.  Nodes of libraries
 * cannot be changed; there the whole is captured again and the graph updated in place, if its
 * shape is the same.
 *
 * A slot that waits for the device or copies from the host cannot be captured and says so by
 * td_cuda_refuses.  Allocating, loading code and asking for older events would end a capture,
 * unless the thread relaxes it around them (td_cuda_exchange_mode).  Memory that is taken
 * during a capture comes from the pool `graph-private`, whose pages stay mapped while there
 * are graphs.
 *
 * SPDX-License-Identifier: MIT */
#include "cuda-device.h"
#include "async.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct
{
  CUgraphNode node;
  uint32_t step;
} Launch;

struct TdGraph
{
  CUgraph graph; /* whose nodes are those of exec, as long as it is not instantiated anew */
  CUgraphExec exec;
  Launch *launches; /* our own, in order */
  uint32_t n_launches;
  bool *foreign; /* by step: something else was launched too */
  uint32_t n_steps;
};

/** A capture that runs. */
typedef struct TdCudaCapture
{
  TdGraph *g;
  bool changes;     /* g's nodes are set; what is captured besides is thrown away */
  CUgraphNode last; /* of ours */
  uint32_t step, next;
  char why[200]; /* it can be no graph, or none of this shape; "": it can */
} TdCudaCapture;

static const char no_memory[] = "there is no host memory for the graph";

bool
td_cuda_refuses (TdCuda *c, const char *why)
{
  if (c->capture == NULL)
    return false;
  if (c->capture->why[0] == '\0')
    snprintf (c->capture->why, sizeof c->capture->why, "%s", why);
  if (c->lost == TD_OK)
    c->lost = TD_ERR_STATE; /* nothing more is launched till the capture ends */
  return true;
}

/* A stream that is captured can be neither asked nor waited for. */
CUresult
td_cuda_wait_issued (TdCuda *c)
{
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUresult result;

  if (c->capture == NULL)
    return td_cuda.cuStreamSynchronize (c->stream);
  td_cuda_exchange_mode (c, &mode);
  result = td_cuda.cuEventSynchronize (c->before);
  td_cuda_exchange_mode (c, &mode);
  return result;
}

/* The node that the next one would follow; NULL: none yet.  Edges are asked for, as the driver
 * says nothing to who does not want all: libraries may launch kernels that begin before the one
 * in front of them has ended. */
static CUgraphNode
last_node (TdCuda *c)
{
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode *nodes = NULL;
  const CUgraphEdgeData *edges = NULL;
  size_t n = 0;

  if (td_cuda.cuStreamGetCaptureInfo (c->stream, &status, NULL, NULL, &nodes, &edges, &n)
          != CUDA_SUCCESS
      || status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
    {
      td_cuda_refuses (c, "the driver ended its capture");
      return NULL;
    }
  return n > 0 ? nodes[n - 1] : NULL;
}

/* What was launched since, and not by us, belongs to the step. */
static void
note_foreign (TdCuda *c)
{
  TdCudaCapture *k = c->capture;
  CUgraphNode last = last_node (c);

  if (last == k->last)
    return;
  k->last = last;
  if (k->changes)
    td_cuda_refuses (c, "a step launches what is not ours to change");
  else if (k->step < k->g->n_steps)
    k->g->foreign[k->step] = true;
}

/* Give launch k of a graph that was made these numbers. */
static CUresult
set_node (TdGraph *g, uint32_t k, const TdCudaKernel *kernel, const unsigned grid[3],
          unsigned block, size_t shared_bytes, void **values)
{
  const CUDA_KERNEL_NODE_PARAMS params = { .gridDimX = grid[0],
                                           .gridDimY = grid[1],
                                           .gridDimZ = grid[2],
                                           .blockDimX = block,
                                           .blockDimY = 1,
                                           .blockDimZ = 1,
                                           .sharedMemBytes = (unsigned)shared_bytes,
                                           .kernelParams = values,
                                           .kern = kernel->handle };

  return td_cuda.cuGraphExecKernelNodeSetParams (g->exec, g->launches[k].node, &params);
}

CUresult
td_cuda_graph_kernel (TdCuda *c, TdCudaKernel *kernel, const unsigned grid[3], unsigned block,
                      size_t shared_bytes, void **values)
{
  TdCudaCapture *k = c->capture;
  TdGraph *g = k->g;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUresult result;
  Launch *launches;

  note_foreign (c);
  if (k->changes)
    {
      if (k->next == g->n_launches || g->launches[k->next].step != k->step)
        {
          td_cuda_refuses (c, "a step launches more than it did");
          return CUDA_SUCCESS;
        }
      if (set_node (g, k->next++, kernel, grid, block, shared_bytes, values) != CUDA_SUCCESS)
        td_cuda_refuses (c, "a node takes no other parameters");
      return CUDA_SUCCESS;
    }
  td_cuda_exchange_mode (c, &mode); /* the first launch of a kernel may load it */
  result = td_cuda.cuLaunchKernel ((CUfunction)kernel->handle, grid[0], grid[1], grid[2], block,
                                   1, 1, (unsigned)shared_bytes, c->stream, values, NULL);
  td_cuda_exchange_mode (c, &mode);
  if (result != CUDA_SUCCESS)
    return result;
  k->last = last_node (c);
  launches = td_cuda_room_for (g->launches, g->n_launches, sizeof *g->launches);
  if (launches == NULL)
    td_cuda_refuses (c, no_memory);
  else
    {
      g->launches = launches;
      g->launches[g->n_launches++] = (Launch){ k->last, k->step };
    }
  return CUDA_SUCCESS;
}

static void
graph_free (TdDevice *d, TdGraph *g)
{
  if (g == NULL)
    return;
  td_cuda_enter (d);
  if (g->exec != NULL)
    td_cuda.cuGraphExecDestroy (g->exec);
  if (g->graph != NULL)
    td_cuda.cuGraphDestroy (g->graph);
  free (g->launches);
  free (g->foreign);
  free (g);
}

static const char *
graph_begin (TdDevice *d, TdGraph *change)
{
  TdCuda *c = td_cuda_enter (d);
  TdCudaCapture *k;
  TdGraph *g = change;

  if (c->lost != TD_OK)
    return "the device is lost";
  k = td_cuda_room_for (NULL, 0, sizeof *k);
  if (g == NULL && (g = td_cuda_room_for (NULL, 0, sizeof *g)) != NULL)
    *g = (TdGraph){ 0 };
  if (k == NULL || g == NULL)
    {
      free (k);
      if (change == NULL)
        free (g);
      return no_memory;
    }
  *k = (TdCudaCapture){ .g = g, .changes = change != NULL };
  if ((c->before == NULL
       && td_cuda.cuEventCreate (&c->before, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
      || td_cuda.cuEventRecord (c->before, c->stream) != CUDA_SUCCESS
      || td_cuda.cuStreamBeginCapture (c->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
             != CUDA_SUCCESS)
    {
      if (!k->changes)
        graph_free (d, k->g);
      free (k);
      return "the driver begins no capture";
    }
  c->capture = k;
  return NULL;
}

static void
graph_step (TdDevice *d, uint32_t step)
{
  TdCuda *c = td_cuda_enter (d);
  TdCudaCapture *k = c->capture;
  TdGraph *g = k->g;

  note_foreign (c);
  k->step = step;
  for (; !k->changes && g->n_steps <= step; g->n_steps++)
    {
      bool *foreign = td_cuda_room_for (g->foreign, g->n_steps, sizeof *g->foreign);

      if (foreign == NULL)
        {
          td_cuda_refuses (c, no_memory);
          break;
        }
      g->foreign = foreign;
      g->foreign[g->n_steps] = false;
    }
  for (k->next = 0; k->changes && k->next < g->n_launches; k->next++)
    if (g->launches[k->next].step == step)
      break;
}

/* A copy of why that stays till the next capture ends. */
static const char *
kept (const char *why)
{
  static char text[200];

  snprintf (text, sizeof text, "%s", why);
  return text;
}

/* End the capture; *graph is what was captured, NULL where that is nothing.  Returns NULL, or
 * why it is no good. */
static const char *
finish (TdCuda *c, CUgraph *graph)
{
  TdCudaCapture *k = c->capture;
  const char *why;

  note_foreign (c);
  *graph = NULL;
  if (td_cuda.cuStreamEndCapture (c->stream, graph) != CUDA_SUCCESS)
    td_cuda_refuses (c, "the driver cannot end the capture");
  why = k->why[0] != '\0' ? kept (k->why) : NULL;
  if (c->lost == TD_ERR_STATE)
    c->lost = TD_OK;
  c->capture = NULL;
  free (k);
  td_cuda_scratch_end (c);
  return why;
}

static void
graph_abandon (TdDevice *d, const char **why)
{
  TdCuda *c = td_cuda_enter (d);
  TdGraph *g = c->capture->changes ? NULL : c->capture->g;
  CUgraph graph;

  *why = finish (c, &graph);
  if (graph != NULL)
    td_cuda.cuGraphDestroy (graph);
  graph_free (d, g);
}

/* Take over what was captured: into the old one if it has the same shape. */
static bool
take_over (TdCuda *c, TdGraph **graph, TdGraph *g)
{
  TdGraph *old = *graph;
  CUgraphExecUpdateResultInfo info;

  if (old != NULL && td_cuda.cuGraphExecUpdate (old->exec, g->graph, &info) == CUDA_SUCCESS
      && old->n_launches == g->n_launches)
    {
      memcpy (old->foreign, g->foreign, g->n_steps * sizeof *g->foreign);
      graph_free (&c->device, g);
      return true;
    }
  graph_free (&c->device, old);
  *graph = NULL;
  if (td_cuda.cuGraphInstantiate (&g->exec, g->graph, 0) != CUDA_SUCCESS)
    {
      g->exec = NULL;
      graph_free (&c->device, g);
      return false;
    }
  *graph = g;
  return true;
}

static const char *
graph_end (TdDevice *d, TdGraph **graph)
{
  TdCuda *c = td_cuda_enter (d);
  bool changes = c->capture->changes;
  TdGraph *g = c->capture->g;
  CUgraph captured;
  const char *why = finish (c, &captured);

  if (changes)
    {
      if (captured != NULL)
        td_cuda.cuGraphDestroy (captured);
      return why;
    }
  g->graph = captured;
  if (why != NULL)
    graph_free (d, g);
  else if (!take_over (c, graph, g))
    why = "the driver makes nothing of the graph that can be launched";
  return why;
}

static bool
graph_changes (const TdGraph *g, uint32_t step)
{
  return step < g->n_steps && !g->foreign[step];
}

bool
td_cuda_graph_set (TdCuda *c, TdGraph *g, uint32_t k, const TdCudaKernel *kernel,
                   const unsigned grid[3], unsigned block, size_t shared_bytes, void *params)
{
  return c->lost == TD_OK && k < g->n_launches
         && set_node (g, k, kernel, grid, block, shared_bytes, (void *[]){ params })
                == CUDA_SUCCESS;
}

TdStatus
td_cuda_graph_go (TdCuda *c, TdGraph *g)
{
  return c->lost != TD_OK
             ? c->lost
             : td_cuda_check (c, td_cuda.cuGraphLaunch (g->exec, c->stream), "cuGraphLaunch");
}

static TdStatus
graph_launch (TdDevice *d, TdGraph *g, const TdSpan *written, uint32_t n)
{
  TdCuda *c = td_cuda_enter (d);

  if (c->lost != TD_OK)
    return c->lost;
  for (uint32_t i = 0; i < n; i++)
    td_cuda_host_copies_written (c, written[i].address, written[i].bytes);
  td_cuda_marks_forget (c);
  td_cuda_fused_stats_forget (c);
  td_cuda_stats_send (c); /* it may write anything that a recording has asked for */
  return td_cuda_graph_go (c, g);
}

const TdDeviceGraphs td_cuda_graphs = { .begin = graph_begin,
                                        .step = graph_step,
                                        .end = graph_end,
                                        .abandon = graph_abandon,
                                        .changes = graph_changes,
                                        .launch = graph_launch,
                                        .free = graph_free,
                                        .repeat_begin = td_cuda_repeat_begin,
                                        .repeat_end = td_cuda_repeat_end,
                                        .repeat_free = td_cuda_repeat_free };
