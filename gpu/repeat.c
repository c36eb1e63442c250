/* Launches that come again: between begin and end, our own kernels are launched in much the
 * same way each time, as in an optimizer's update.  What was launched twice in the same order
 * becomes a graph; from then on launches are noted, the nodes whose numbers are others are
 * changed, and all of them go to the device at once.
 *
 * Whatever else wants the stream enters the device (td_cuda_enter), which sends what was noted
 * before it; so launches fall into stretches, each of which is a graph of its own.  A stretch
 * that turns out another than it was is launched kernel by kernel, with the numbers that were
 * noted.
 *
 * SPDX-License-Identifier: MIT */
#include "cuda-device.h"

#include <stdlib.h>
#include <string.h>

enum
{
  MAX_STRETCHES = 16,
  LEAST = 4,      /* launches that are worth a graph: one takes as long as three or so */
  MOST = 1 << 14, /* and that are remembered */
  MAX_MISSES = 8  /* graphs that were of no use: then no more are made */
};

/* What a launch says that it uses; only for the checks of a driver of tests. */
typedef struct
{
  CUdeviceptr address;
  size_t bytes;
  bool writes;
} Use;

typedef struct
{
  Use *uses;
  int n;
} Uses;

typedef struct
{
  TdCudaKernel *kernel;
  unsigned grid[3], block;
  size_t shared_bytes;
  void *params; /* kernel->params_bytes of them */
  Uses uses;
} Launch;

typedef struct
{
  Launch *launches;
  uint32_t n; /* of the last run */
  uint32_t room;
  TdGraph *graph; /* of all of them, with their numbers; or NULL */
  bool changed;   /* this run's are others */
} Stretch;

struct TdRepeat
{
  Stretch stretches[MAX_STRETCHES];
  int n;         /* of the last run */
  int at;        /* this run's */
  uint32_t next; /* launch of that */
  int n_misses;
  bool off;  /* there is more than can be remembered, or it is another each time */
  Uses told; /* for the launch that comes */
};

/* --- what a driver of tests checks --- */

void
td_cuda_note (const TdCuda *c, CUdeviceptr address, size_t bytes, bool writes)
{
  Uses *told = c->repeat != NULL && c->capture == NULL ? &c->repeat->told : NULL;

  if (td_cuda.uses == NULL)
    return;
  if (told == NULL)
    {
      td_cuda.uses (c->stream, address, bytes, writes);
      return;
    }
  told->uses = realloc (told->uses, (size_t)(told->n + 1) * sizeof *told->uses);
  if (told->uses == NULL)
    abort ();
  told->uses[told->n++] = (Use){ address, bytes, writes };
}

static void
tell_uses (const TdCuda *c, const Uses *uses)
{
  for (int i = 0; i < uses->n; i++)
    td_cuda.uses (c->stream, uses->uses[i].address, uses->uses[i].bytes, uses->uses[i].writes);
}

/* What was told, of what is no launch of ours. */
static void
pass_on (const TdCuda *c, Uses *told)
{
  tell_uses (c, told);
  told->n = 0;
}

/* --- launches --- */

static TdStatus
launch_now (TdCuda *c, const Launch *l)
{
  CUresult result;

  if (c->lost != TD_OK)
    return c->lost;
  tell_uses (c, &l->uses);
  result = td_cuda.cuLaunchKernel ((CUfunction)l->kernel->handle, l->grid[0], l->grid[1],
                                   l->grid[2], l->block, 1, 1, (unsigned)l->shared_bytes,
                                   c->stream, (void *[]){ l->params }, NULL);
  return result == CUDA_SUCCESS ? TD_OK : td_cuda_check (c, result, l->kernel->name);
}

static void
stretch_forget (TdCuda *c, Stretch *s)
{
  if (s->graph != NULL)
    td_cuda_graphs.free (&c->device, s->graph);
  s->graph = NULL;
}

static void
stretch_cut (Stretch *s, uint32_t n)
{
  for (uint32_t k = n; k < s->n; k++)
    {
      free (s->launches[k].params);
      free (s->launches[k].uses.uses);
    }
  s->n = n < s->n ? n : s->n;
}

static void
stretch_clear (TdCuda *c, Stretch *s)
{
  stretch_forget (c, s);
  stretch_cut (s, 0);
  free (s->launches);
  *s = (Stretch){ 0 };
}

/* Launch what was noted of a stretch, kernel by kernel. */
static void
send_apart (TdCuda *c, const Stretch *s, uint32_t n)
{
  for (uint32_t k = 0; k < n; k++)
    launch_now (c, &s->launches[k]);
}

/* It is another than it was. */
static void
miss (TdCuda *c, TdRepeat *r, Stretch *s)
{
  c->repeat = NULL; /* nothing below is noted */
  send_apart (c, s, r->next);
  stretch_forget (c, s);
  c->repeat = r;
  r->off |= ++r->n_misses == MAX_MISSES;
}

static bool
has_shape (const Launch *l, const TdCudaKernel *kernel, const unsigned grid[3], unsigned block,
           size_t shared_bytes)
{
  return l->kernel == kernel && memcmp (l->grid, grid, sizeof l->grid) == 0 && l->block == block
         && l->shared_bytes == shared_bytes;
}

static Launch *
add (Stretch *s)
{
  if (s->n == s->room)
    {
      s->room = s->room > 0 ? 2 * s->room : 16;
      s->launches = realloc (s->launches, s->room * sizeof *s->launches);
      if (s->launches == NULL)
        abort ();
    }
  s->launches[s->n] = (Launch){ 0 };
  return &s->launches[s->n++];
}

/* How many bytes a kernel takes; 0: the driver does not say. */
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

static void
reshape (Launch *l, TdCudaKernel *kernel, const unsigned grid[3], unsigned block,
         size_t shared_bytes)
{
  if (l->kernel != kernel)
    {
      free (l->params);
      l->params = calloc (1, kernel->params_bytes);
      if (l->params == NULL)
        abort ();
    }
  l->kernel = kernel;
  memcpy (l->grid, grid, sizeof l->grid);
  l->block = block;
  l->shared_bytes = shared_bytes;
}

/* The numbers of this run, and what they use. */
static void
take_numbers (TdRepeat *r, Launch *l, const void *params)
{
  const Uses before = l->uses;

  memcpy (l->params, params, l->kernel->params_bytes);
  l->uses = r->told;
  r->told = before;
  r->told.n = 0;
}

/* Without being remembered. */
static TdStatus
launch_unseen (TdCuda *c, TdCudaKernel *kernel, const unsigned grid[3], unsigned block,
               size_t shared_bytes, const void *params)
{
  const Launch l = { .kernel = kernel,
                     .grid = { grid[0], grid[1], grid[2] },
                     .block = block,
                     .shared_bytes = shared_bytes,
                     .params = (void *)(uintptr_t)params,
                     .uses = c->repeat->told };

  c->repeat->told = (Uses){ 0 };
  launch_now (c, &l);
  free (l.uses.uses);
  return c->lost;
}

TdStatus
td_cuda_repeat_launch (TdCuda *c, TdCudaKernel *kernel, const unsigned grid[3], unsigned block,
                       size_t shared_bytes, const void *params)
{
  TdRepeat *r = c->repeat;
  Stretch *s = &r->stretches[r->at < MAX_STRETCHES ? r->at : 0];
  Launch *l = r->next < s->n ? &s->launches[r->next] : NULL;
  const bool same = l != NULL && has_shape (l, kernel, grid, block, shared_bytes);

  if (r->off || r->at == MAX_STRETCHES || r->next == MOST || params_bytes (kernel) == 0)
    {
      td_cuda_repeat_interrupt (c);
      r->off = true;
      return launch_unseen (c, kernel, grid, block, shared_bytes, params);
    }
  if (s->graph != NULL && !same)
    miss (c, r, s);
  if (!same)
    {
      l = l != NULL ? l : add (s);
      reshape (l, kernel, grid, block, shared_bytes);
      s->changed = true;
    }
  if (s->graph != NULL && memcmp (l->params, params, kernel->params_bytes) == 0)
    r->told.n = 0; /* they use what they used */
  else
    {
      take_numbers (r, l, params);
      if (s->graph != NULL)
        {
          tell_uses (c, &l->uses);
          if (!td_cuda_graph_set (c, s->graph, r->next, kernel, grid, block, shared_bytes,
                                  l->params))
            {
              miss (c, r, s);
              s->changed = true;
            }
        }
    }
  r->next++;
  return s->graph != NULL ? c->lost : launch_now (c, l);
}

/* --- stretches --- */

/* Make a graph of what has been launched twice. */
static void
build (TdCuda *c, TdRepeat *r, Stretch *s)
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

          tell_uses (c, &l->uses);
          good = td_cuda_graph_kernel (c, l->kernel, l->grid, l->block, l->shared_bytes,
                                       (void *[]){ l->params })
                 == CUDA_SUCCESS;
        }
      if (good)
        good = td_cuda_graphs.end (d, &s->graph) == NULL;
      else
        td_cuda_graphs.abandon (d, &why);
    }
  r->off |= !good; /* launches will do */
}

/* The stretch ends here. */
static void
close_stretch (TdCuda *c)
{
  TdRepeat *r = c->repeat;
  Stretch *s = &r->stretches[r->at];

  if (r->next == 0)
    return;
  if (s->graph != NULL && r->next != s->n)
    miss (c, r, s);
  c->repeat = NULL;
  if (s->graph != NULL)
    td_cuda_graph_go (c, s->graph);
  s->changed |= r->next != s->n;
  stretch_cut (s, r->next);
  if (s->graph == NULL && !s->changed && !r->off && s->n >= LEAST && c->lost == TD_OK)
    build (c, r, s);
  c->repeat = r;
  r->at++;
  r->next = 0;
  if (r->at < MAX_STRETCHES)
    r->stretches[r->at].changed = false;
}

void
td_cuda_repeat_interrupt (TdCuda *c)
{
  if (c->repeat == NULL || c->capture != NULL)
    return;
  if (c->repeat->at < MAX_STRETCHES)
    close_stretch (c);
  pass_on (c, &c->repeat->told);
}

void
td_cuda_repeat_leave (TdCuda *c)
{
  TdRepeat *r = c->repeat;
  Stretch *s;

  if (r == NULL || c->capture != NULL)
    return;
  c->repeat = NULL;
  s = &r->stretches[r->at < MAX_STRETCHES ? r->at : 0];
  if (s->graph != NULL)
    send_apart (c, s, r->next);
  pass_on (c, &r->told);
}

/* --- the slots --- */

static bool
is_wanted (void)
{
  const char *wanted = getenv ("TAPEDECK_CUDA_REPEATS");

  return wanted == NULL || strcmp (wanted, "off") != 0;
}

bool
td_cuda_repeat_begin (TdDevice *d, TdRepeat **repeat)
{
  TdCuda *c = td_cuda_enter (d);
  TdRepeat *r = *repeat;

  if (c->repeat != NULL || c->capture != NULL || c->lost != TD_OK || !is_wanted ())
    return false;
  if (r == NULL)
    r = *repeat = calloc (1, sizeof *r);
  if (r == NULL || r->off)
    return false;
  r->at = 0;
  r->next = 0;
  r->stretches[0].changed = false;
  c->repeat = r;
  return true;
}

TdStatus
td_cuda_repeat_end (TdDevice *d)
{
  TdCuda *c = td_cuda_enter (d);
  TdRepeat *r = c->repeat;

  if (r == NULL) /* it was left */
    return c->lost;
  c->repeat = NULL;
  for (int k = r->at; k < r->n; k++)
    stretch_clear (c, &r->stretches[k]);
  r->n = r->at;
  for (int k = 0; k < r->n && r->off; k++)
    stretch_clear (c, &r->stretches[k]);
  return c->lost;
}

void
td_cuda_repeat_free (TdDevice *d, TdRepeat *r)
{
  TdCuda *c = td_cuda_enter (d);

  for (int k = 0; r != NULL && k < MAX_STRETCHES; k++)
    stretch_clear (c, &r->stretches[k]);
  if (r != NULL)
    free (r->told.uses);
  free (r);
}
