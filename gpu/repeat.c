/* An optimizer's update launches the same kernels in the same order every iteration.  Between
 * td_cuda_repeat_begin and td_cuda_repeat_end such launches are recorded, and once the same
 * sequence has come twice it becomes a CUDA graph, which takes one call.
 *
 * First time: each kernel is launched at once, and its launch (kernel, grid, parameters) is
 * recorded.  Second time: the same launches come again, and at their end a graph is built of
 * them.  From then on a launch is only compared with its node of the graph.  A node whose
 * parameters have changed (a learning rate, Adam's step, an array that moved) is given the new
 * ones, and at the end of the sequence the graph is launched.  Another kernel or another grid
 * ends that: what was held back is launched kernel by kernel with the recorded parameters, and
 * the graph is thrown away.
 *
 * All other work for the stream calls td_cuda_enter first, which launches what is held back
 * (td_cuda_repeat_interrupt).  Such work cuts an update into segments, each with a graph of
 * its own.
 *
 * While somebody looks at each operation, and in iterations that are timed, kernels are
 * launched one by one; with TAPEDECK_CUDA_REPEATS=off always.
 *
 * SPDX-License-Identifier: MIT */
#include "cuda-device.h"

#include <stdlib.h>
#include <string.h>

enum
{
  MAX_SEGMENTS = 16,
  MIN_LAUNCHES = 4,       /* launching a graph costs as much as about three kernels */
  MAX_LAUNCHES = 1 << 14, /* that are kept of a segment */
  MAX_MISMATCHES = 8      /* graphs thrown away; then no more are built */
};

/* A kernel's launch as it was recorded. */
typedef struct
{
  TdCudaKernel *kernel;
  unsigned grid[3], block;
  size_t shared_bytes;
  void *params; /* kernel->params_bytes of them */
} Launch;

typedef struct
{
  Launch *launches;
  uint32_t n;     /* launches, in the last run */
  TdGraph *graph; /* of all n launches; NULL: not built */
  bool differs;   /* this run launches something other than the last run did */
} Segment;

/* One sequence of launches, with the progress of the run that is recorded now. */
struct TdRepeat
{
  Segment segments[MAX_SEGMENTS];
  int n;         /* segments, in the last run */
  int at;        /* segment that this run is in */
  uint32_t next; /* launch of that segment which comes next */
  int n_mismatches;
  bool off; /* the sequence is too long to keep, or differs every time */
};

/* --- launches --- */

static TdStatus
launch_now (TdCuda *c, const Launch *l)
{
  CUresult result;

  if (c->lost != TD_OK)
    return c->lost;
  result = td_cuda.cuLaunchKernel ((CUfunction)l->kernel->handle, l->grid[0], l->grid[1],
                                   l->grid[2], l->block, 1, 1, (unsigned)l->shared_bytes,
                                   c->stream, (void *[]){ l->params }, NULL);
  return result == CUDA_SUCCESS ? TD_OK : td_cuda_check (c, result, l->kernel->name);
}

static void
segment_drop_graph (TdCuda *c, Segment *s)
{
  if (s->graph != NULL)
    td_cuda_graphs.free (&c->device, s->graph);
  s->graph = NULL;
}

/* Keep the first n launches. */
static void
segment_truncate (Segment *s, uint32_t n)
{
  for (uint32_t k = n; k < s->n; k++)
    free (s->launches[k].params);
  s->n = n < s->n ? n : s->n;
}

static void
segment_clear (TdCuda *c, Segment *s)
{
  segment_drop_graph (c, s);
  segment_truncate (s, 0);
  free (s->launches);
  *s = (Segment){ 0 };
}

/* Launch the first n kernels of a segment one by one, with their recorded parameters. */
static void
launch_one_by_one (TdCuda *c, const Segment *s, uint32_t n)
{
  for (uint32_t k = 0; k < n; k++)
    launch_now (c, &s->launches[k]);
}

/* This run departs from the segment's graph: launch what was held back, and drop the graph. */
static void
mismatch (TdCuda *c, TdRepeat *r, Segment *s)
{
  c->repeat = NULL; /* the launches below are not recorded again */
  launch_one_by_one (c, s, r->next);
  segment_drop_graph (c, s);
  c->repeat = r;
  r->off |= ++r->n_mismatches == MAX_MISMATCHES;
}

/* A graph's node can be given other parameters, but no other kernel, grid or shared memory. */
static bool
same_node (const Launch *l, const TdCudaKernel *kernel, const unsigned grid[3], unsigned block,
           size_t shared_bytes)
{
  return l->kernel == kernel && memcmp (l->grid, grid, sizeof l->grid) == 0 && l->block == block
         && l->shared_bytes == shared_bytes;
}

/* NULL: there is no memory. */
static Launch *
segment_add (Segment *s)
{
  Launch *launches = td_cuda_room_for (s->launches, s->n, sizeof *launches);

  if (launches == NULL)
    return NULL;
  s->launches = launches;
  s->launches[s->n] = (Launch){ 0 };
  return &s->launches[s->n++];
}

/* Size of a kernel's parameters, asked of the driver once; 0: it does not say. */
static size_t
params_bytes (TdCudaKernel *kernel)
{
  size_t at = 0;

  if (kernel->params_bytes == 0
      && (td_cuda.cuKernelGetParamInfo (kernel->handle, 0, &at, &kernel->params_bytes)
              != CUDA_SUCCESS
          || at != 0))
    kernel->params_bytes = 0;
  return kernel->params_bytes;
}

/* Make a recorded launch one of this kernel and grid; its parameters follow.  False: there is
 * no memory, and it is what it was. */
static bool
launch_set (Launch *l, TdCudaKernel *kernel, const unsigned grid[3], unsigned block,
            size_t shared_bytes)
{
  if (l->kernel != kernel)
    {
      void *params = td_cuda_room_for (NULL, 0, kernel->params_bytes);

      if (params == NULL)
        return false;
      free (l->params);
      l->params = params;
    }
  l->kernel = kernel;
  memcpy (l->grid, grid, sizeof l->grid);
  l->block = block;
  l->shared_bytes = shared_bytes;
  return true;
}

/* No more of the sequence is kept: launch what was held back, and this. */
static TdStatus
launch_unrecorded (TdCuda *c, TdCudaKernel *kernel, const unsigned grid[3], unsigned block,
                   size_t shared_bytes, const void *params)
{
  const Launch l = { .kernel = kernel,
                     .grid = { grid[0], grid[1], grid[2] },
                     .block = block,
                     .shared_bytes = shared_bytes,
                     .params = (void *)(uintptr_t)params };
  TdRepeat *r = c->repeat;

  td_cuda_repeat_interrupt (c);
  r->off = true;
  launch_now (c, &l);
  return c->lost;
}

TdStatus
td_cuda_repeat_launch (TdCuda *c, TdCudaKernel *kernel, const unsigned grid[3], unsigned block,
                       size_t shared_bytes, const void *params)
{
  TdRepeat *r = c->repeat;
  Segment *s = &r->segments[r->at < MAX_SEGMENTS ? r->at : 0];
  Launch *l = r->next < s->n ? &s->launches[r->next] : NULL;
  const bool same = l != NULL && same_node (l, kernel, grid, block, shared_bytes);

  if (r->off || r->at == MAX_SEGMENTS || r->next == MAX_LAUNCHES || params_bytes (kernel) == 0)
    return launch_unrecorded (c, kernel, grid, block, shared_bytes, params);
  if (s->graph != NULL && !same)
    mismatch (c, r, s);
  if (!same)
    {
      l = l != NULL ? l : segment_add (s);
      s->differs = true;
      if (l == NULL || !launch_set (l, kernel, grid, block, shared_bytes))
        return launch_unrecorded (c, kernel, grid, block, shared_bytes, params);
    }
  if (s->graph == NULL)
    memcpy (l->params, params, kernel->params_bytes);
  else if (memcmp (l->params, params, kernel->params_bytes) != 0)
    {
      memcpy (l->params, params, kernel->params_bytes);
      if (!td_cuda_graph_set (c, s->graph, r->next, kernel, grid, block, shared_bytes,
                              l->params))
        {
          mismatch (c, r, s);
          s->differs = true;
        }
    }
  r->next++;
  return s->graph != NULL ? c->lost : launch_now (c, l);
}

/* --- segments --- */

/* Build the graph of a segment that came twice.  Where that fails, kernels are launched one by
 * one from then on. */
static void
build_graph (TdCuda *c, TdRepeat *r, Segment *s)
{
  TdDevice *d = &c->device;
  bool good = td_cuda_graphs.begin (d, NULL) == NULL;
  const char *why = NULL;

  if (good)
    {
      td_cuda_graphs.step (d, 0);
      for (uint32_t k = 0; k < s->n && good; k++)
        {
          Launch *l = &s->launches[k];

          good = td_cuda_graph_kernel (c, l->kernel, l->grid, l->block, l->shared_bytes,
                                       (void *[]){ l->params })
                 == CUDA_SUCCESS;
        }
      if (good)
        good = td_cuda_graphs.end (d, &s->graph) == NULL;
      else
        td_cuda_graphs.abandon (d, &why);
    }
  r->off |= !good;
}

/* Other work comes, or the end: launch the segment's graph, or build one for the next run. */
static void
end_segment (TdCuda *c)
{
  TdRepeat *r = c->repeat;
  Segment *s = &r->segments[r->at];

  if (r->next == 0)
    return;
  if (s->graph != NULL && r->next != s->n)
    mismatch (c, r, s);
  c->repeat = NULL;
  if (s->graph != NULL)
    td_cuda_graph_go (c, s->graph);
  s->differs |= r->next != s->n;
  segment_truncate (s, r->next);
  if (s->graph == NULL && !s->differs && !r->off && s->n >= MIN_LAUNCHES && c->lost == TD_OK)
    build_graph (c, r, s);
  c->repeat = r;
  r->at++;
  r->next = 0;
  if (r->at < MAX_SEGMENTS)
    r->segments[r->at].differs = false;
}

void
td_cuda_repeat_interrupt (TdCuda *c)
{
  if (c->repeat != NULL && c->capture == NULL && c->repeat->at < MAX_SEGMENTS)
    end_segment (c);
}

void
td_cuda_repeat_leave (TdCuda *c)
{
  TdRepeat *r = c->repeat;
  Segment *s;

  if (r == NULL || c->capture != NULL)
    return;
  c->repeat = NULL;
  s = &r->segments[r->at < MAX_SEGMENTS ? r->at : 0];
  if (s->graph != NULL)
    launch_one_by_one (c, s, r->next);
}

/* --- the slots --- */

static bool
is_enabled (void)
{
  const char *repeats = getenv ("TAPEDECK_CUDA_REPEATS");

  return repeats == NULL || strcmp (repeats, "off") != 0;
}

bool
td_cuda_repeat_begin (TdDevice *d, TdRepeat **repeat)
{
  TdCuda *c = td_cuda_enter (d);
  TdRepeat *r = *repeat;

  if (c->repeat != NULL || c->capture != NULL || c->lost != TD_OK || !is_enabled ())
    return false;
  if (r == NULL)
    r = *repeat = calloc (1, sizeof *r);
  if (r == NULL || r->off)
    return false;
  r->at = 0;
  r->next = 0;
  r->segments[0].differs = false;
  c->repeat = r;
  return true;
}

TdStatus
td_cuda_repeat_end (TdDevice *d)
{
  TdCuda *c = td_cuda_enter (d); /* ends the last segment */
  TdRepeat *r = c->repeat;

  if (r == NULL) /* td_cuda_repeat_leave was called */
    return c->lost;
  c->repeat = NULL;
  for (int k = r->at; k < r->n; k++)
    segment_clear (c, &r->segments[k]);
  r->n = r->at;
  for (int k = 0; k < r->n && r->off; k++)
    segment_clear (c, &r->segments[k]);
  return c->lost;
}

void
td_cuda_repeat_free (TdDevice *d, TdRepeat *r)
{
  TdCuda *c = td_cuda_enter (d);

  for (int k = 0; r != NULL && k < MAX_SEGMENTS; k++)
    segment_clear (c, &r->segments[k]);
  free (r);
}
