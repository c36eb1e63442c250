/* Statistics of arrays without waiting: requests are collected, one launch serves up to 64
 * arrays, and its results are copied to pinned memory.  Where the kernel that wrote an array
 * has left partial statistics (fused-stats.c), the launch reduces those and does not read the
 * array.
 *
 * The launch is issued when 64 requests wait, when one of their arrays is about to be written
 * or its memory given back, and at the end of an iteration.  All is on the compute stream, so
 * that nothing can overtake it.  Memory for this comes from the driver and not from the
 * engine's pool, so that what a program sees of its memory does not change.
 *
 * SPDX-License-Identifier: MIT */
#include "async.h"

#include <stdlib.h>

enum
{
  MANY = 64,     /* arrays of a launch */
  BATCHES = 128, /* on their way */
  CHUNK = 16384, /* elements of a block, at least: TD_STATS_CHUNK */
  MAX_BLOCKS = 1 << 14
};

/* Results, room for each block's share, and for what kernels count; whole pages, which the
 * driver would give anyway. */
#define PAGE ((size_t)2 << 20)
#define PARTS_BYTES ((MAX_BLOCKS + 1) * sizeof (TdCudaStats))

static size_t
own_bytes (void)
{
  const size_t bytes = MANY * sizeof (TdCudaStats) + PARTS_BYTES + td_cuda_fused_stats_bytes ();

  return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* A launch on its way. */
typedef struct
{
  TdAsyncOf of[MANY];
  CUevent done;
  TdStatus status;
  int n;
} Batch;

struct TdCudaStatsAsync
{
  TdCudaStatsOf waiting[MANY];
  TdAsyncOf of[MANY];
  int n;
  int64_t blocks;
  Batch batches[BATCHES];
  int first, n_sent; /* of batches */
  int taken;         /* answers of the first that were given */
  TdCudaStats *host; /* pinned: MANY for each batch */
  CUdeviceptr results;
};

static TdCudaStats *
results_of (const struct TdCudaStatsAsync *s, int batch)
{
  return s->host + (size_t)batch * MANY;
}

/* *Errors*: NULL, without fail: a recording that finds no memory is no error of the program. */
static struct TdCudaStatsAsync *
open_stats (TdCuda *c)
{
  struct TdCudaStatsAsync *s;
  void *host = NULL;

  if (c->stats != NULL || c->no_stats)
    return c->stats;
  c->no_stats = true;
  s = calloc (1, sizeof *s);
  if (s == NULL)
    return NULL;
  c->stats = s;
  if (td_cuda_pin (c, &host, (size_t)BATCHES * MANY * sizeof *s->host) != CUDA_SUCCESS
      || td_cuda.cuMemAlloc (&s->results, own_bytes ()) != CUDA_SUCCESS)
    {
      s->host = host;
      td_cuda_stats_close (c);
      return NULL;
    }
  s->host = host;
  c->own_room = s->results + MANY * sizeof *s->host;
  c->own_room_bytes = PARTS_BYTES;
  if (!td_cuda_fused_stats_open (c, c->own_room + PARTS_BYTES))
    {
      td_cuda_stats_close (c);
      return NULL;
    }
  for (int i = 0; i < BATCHES; i++)
    if (td_cuda.cuEventCreate (&s->batches[i].done, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
      {
        td_cuda_stats_close (c);
        return NULL;
      }
  c->no_stats = false;
  return s;
}

bool
td_cuda_stats_open (TdCuda *c)
{
  return open_stats (c) != NULL;
}

void
td_cuda_stats_close (TdCuda *c)
{
  struct TdCudaStatsAsync *s = c->stats;

  td_cuda_fused_stats_close (c);
  if (s == NULL)
    return;
  if (c->lost == TD_OK) /* else all of this went with the context */
    {
      for (int i = 0; i < BATCHES; i++)
        if (s->batches[i].done != NULL)
          td_cuda.cuEventDestroy (s->batches[i].done);
      if (s->host != NULL)
        td_cuda_unpin (c, s->host, (size_t)BATCHES * MANY * sizeof *s->host);
      if (s->results != 0)
        td_cuda.cuMemFree (s->results);
    }
  free (s);
  c->stats = NULL;
  c->own_room = 0;
}

static TdStatus
launch (TdCuda *c, struct TdCudaStatsAsync *s, TdCudaStats *host)
{
  size_t bytes = (size_t)s->n * sizeof *host;
  TdStatus status;

  if (c->lost != TD_OK)
    return c->lost;
  c->in_own_room = true;
  status = td_cuda_stats (&c->launcher, s->waiting, s->n);
  c->in_own_room = false;
  if (status == TD_OK)
    status = td_cuda_check (c, td_cuda.cuMemcpyDtoHAsync (host, s->results, bytes, c->stream),
                            "a copy of statistics");
  return status;
}

void
td_cuda_stats_send (TdCuda *c)
{
  struct TdCudaStatsAsync *s = c->stats;
  int at;
  Batch *b;

  if (s == NULL || s->n == 0 || c->capture != NULL)
    return;
  td_cuda_updates_send (c); /* some of the arrays may be theirs */
  td_cuda_repeat_leave (c);
  at = (s->first + s->n_sent++) % BATCHES; /* there is one, or none would wait */
  b = &s->batches[at];
  b->status = launch (c, s, results_of (s, at));
  if (b->status == TD_OK)
    b->status = td_cuda_check (c, td_cuda.cuEventRecord (b->done, c->stream), "cuEventRecord");
  b->n = s->n;
  for (int i = 0; i < s->n; i++)
    b->of[i] = s->of[i];
  s->n = 0;
  s->blocks = 0;
  td_cuda_fused_stats_sent (c);
}

void
td_cuda_stats_written (TdCuda *c, const void *address, size_t bytes)
{
  const struct TdCudaStatsAsync *s = c->stats;
  const char *from = address;

  if (c->capture != NULL) /* nothing is written before the graph is launched */
    return;
  td_cuda_fused_stats_written (c, address, bytes);
  for (int i = 0; s != NULL && i < s->n; i++)
    {
      const char *data = s->waiting[i].data;

      if (s->waiting[i].parts == NULL
          && from < data + (size_t)s->waiting[i].size * td__bytes_of (s->waiting[i].dtype)
          && data < from + bytes)
        {
          td_cuda_stats_send (c);
          return;
        }
    }
}

/* Why none can be made of so many blocks now. */
static TdAsyncRefusal
refusal (TdCuda *c, int64_t blocks)
{
  if (c->capture != NULL)
    return TD_ASYNC_CAPTURED;
  if (c->lost != TD_OK)
    return TD_ASYNC_LOST;
  if (blocks > MAX_BLOCKS)
    return TD_ASYNC_TOO_LARGE;
  return open_stats (c) == NULL ? TD_ASYNC_NO_ROOM : TD_ASYNC_TAKEN;
}

size_t
td_cuda_own_bytes (TdDevice *d)
{
  const TdCuda *c = d->priv;

  return c->stats == NULL ? 0 : own_bytes ();
}

TdAsyncRefusal
td_cuda_stats_async (TdDevice *d, const TdTensor *x, uint64_t max_samples, uint64_t seed,
                     const TdAsyncOf *of)
{
  TdCuda *c = td_cuda_thread (d);
  const TdCudaParts fused = td_cuda_fused_stats_find (c, x);
  int64_t blocks = fused.parts != NULL ? 0 : (x->size + CHUNK - 1) / CHUNK;
  TdAsyncRefusal why = refusal (c, blocks);
  struct TdCudaStatsAsync *s = c->stats;

  if (why != TD_ASYNC_TAKEN)
    return why;
  if (s->n == MANY || s->blocks + blocks > MAX_BLOCKS)
    td_cuda_stats_send (c);
  if (s->n_sent == BATCHES)
    return TD_ASYNC_BEHIND;
  s->waiting[s->n] = (TdCudaStatsOf){ .data = x->data,
                                      .size = x->size,
                                      .dtype = x->dtype,
                                      .max_samples = max_samples,
                                      .seed = seed,
                                      .parts = fused.parts,
                                      .n_parts = fused.n,
                                      .result = (TdCudaStats *)s->results + s->n };
  if (fused.parts != NULL)
    td_cuda_fused_stats_waits (c, &fused);
  s->of[s->n++] = *of;
  s->blocks += blocks;
  return TD_ASYNC_TAKEN;
}

/* Whether the first batch has its answers; that the device failed is one too. */
static bool
is_there (TdCuda *c, Batch *b, bool wait)
{
  CUresult result;

  if (b->status == TD_OK && c->lost == TD_ERR_DEVICE)
    b->status = c->lost;
  if (b->status != TD_OK)
    return true;
  result = wait ? td_cuda.cuEventSynchronize (b->done) : td_cuda.cuEventQuery (b->done);
  if (result == CUDA_ERROR_NOT_READY)
    return false;
  b->status = td_cuda_check (c, result, "statistics");
  return true;
}

int
td_cuda_stats_answers (TdCuda *c, TdAsyncHow how, TdAsyncResult *answers, int room)
{
  struct TdCudaStatsAsync *s = c->stats;
  int n = 0;

  if (s == NULL)
    return 0;
  if (how != TD_ASYNC_LOOK)
    td_cuda_stats_send (c);
  while (n < room && s->n_sent > 0)
    {
      Batch *b = &s->batches[s->first];

      if (s->taken == 0 && !is_there (c, b, how == TD_ASYNC_WAIT))
        break;
      while (n < room && s->taken < b->n)
        {
          TdAsyncResult *a = &answers[n++];

          *a = (TdAsyncResult){ .of = b->of[s->taken],
                                .what = TD_ASYNC_STATS,
                                .status = b->status };
          if (b->status == TD_OK)
            td_cuda_stats_finish (results_of (s, s->first) + s->taken, &a->stats);
          s->taken++;
        }
      if (s->taken < b->n)
        break;
      s->taken = 0;
      s->first = (s->first + 1) % BATCHES;
      s->n_sent--;
    }
  return n;
}
