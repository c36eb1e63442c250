/* Range checks of labels and other indices that nobody waits for.
 *
 * The check's kernel writes the first bad index to pinned memory of the host, which the device
 * can write to, and then sets the word `any_bad`; the host looks at that word alone.  How often
 * each check ran is counted in device memory, which works within a CUDA graph too.  Indices
 * that the host has just sent are checked on the host instead (host-copies.c).
 *
 * Kernels skip bad indices.  The engine reports one when the host next reads or waits and at
 * the end of an iteration, with the event that had it; at once under the configuration's
 * `debug`, and for a breakpoint on `exact error`.
 *
 * SPDX-License-Identifier: MIT */
#include "async.h"

#include <stdlib.h>
#include <string.h>

enum
{
  WORDS = 4, /* of a place: run (0: nothing found), where, what */
  FOUND_BYTES = (TD_INDEX_PLACES * WORDS + 1) * sizeof (int64_t)
};

struct TdCudaIndexAsync
{
  int64_t *found; /* pinned: WORDS for each place, then `any_bad` */
  CUdeviceptr runs;
  size_t bytes;
};

static int64_t *
any_bad_of (const struct TdCudaIndexAsync *s)
{
  return s->found + (size_t)TD_INDEX_PLACES * WORDS;
}

void
td_cuda_index_close (TdCuda *c)
{
  struct TdCudaIndexAsync *s = c->indices;

  if (s == NULL)
    return;
  if (c->lost == TD_OK) /* else both went with the context */
    {
      if (s->found != NULL)
        td_cuda_unpin (c, s->found, FOUND_BYTES);
      if (s->runs != 0)
        td_cuda.cuMemFree (s->runs);
    }
  free (s);
  c->indices = NULL;
}

/* Errors: NULL, without fail: then the host waits for answers. */
static struct TdCudaIndexAsync *
open_index (TdCuda *c)
{
  struct TdCudaIndexAsync *s;
  void *found = NULL;

  if (c->indices != NULL || c->no_indices || c->capture != NULL)
    return c->indices;
  c->no_indices = true;
  s = calloc (1, sizeof *s);
  if (s == NULL)
    return NULL;
  c->indices = s;
  s->bytes = TD_INDEX_PLACES * sizeof (uint64_t);
  if (td_cuda_pin (c, &found, FOUND_BYTES) == CUDA_SUCCESS
      && td_cuda.cuMemAlloc (&s->runs, s->bytes) == CUDA_SUCCESS
      && td_cuda.cuMemsetD8Async (s->runs, 0, s->bytes, c->stream) == CUDA_SUCCESS)
    {
      s->found = memset (found, 0, FOUND_BYTES);
      c->no_indices = false;
      return s;
    }
  s->found = found;
  td_cuda_index_close (c);
  return NULL;
}

TdStatus
td_cuda_index_async (TdDevice *d, const TdTensor *index, int64_t limit, int64_t ignore,
                     uint32_t place)
{
  TdCuda *c = td_cuda_enter (d);
  struct TdCudaIndexAsync *s = c->lost == TD_OK ? open_index (c) : NULL;
  TdStatus status;

  if (c->lost != TD_OK)
    return c->lost;
  if (s == NULL || place >= TD_INDEX_PLACES
      || (c->capture == NULL && td_cuda_host_copies_have (c, index)))
    return TD_ERR_STATE;
  td_cuda_reads (c, index, 1);
  status = td_cuda_check_index_async (&c->launcher, index, limit, ignore,
                                      s->found + (size_t)place * WORDS, any_bad_of (s),
                                      (uint64_t *)s->runs + place);
  td_cuda_scratch_end (c);
  return status;
}

bool
td_cuda_bad_index (TdDevice *d, TdBadIndex *bad)
{
  TdCuda *c = d->priv;
  struct TdCudaIndexAsync *s = c->indices;

  if (s == NULL || c->lost != TD_OK || __atomic_load_n (any_bad_of (s), __ATOMIC_ACQUIRE) == 0)
    return false;
  /* What comes while we look says so again. */
  __atomic_store_n (any_bad_of (s), 0, __ATOMIC_SEQ_CST);
  for (uint32_t place = 0; place < TD_INDEX_PLACES; place++)
    {
      int64_t *found = s->found + (size_t)place * WORDS;
      const int64_t run = __atomic_load_n (&found[0], __ATOMIC_ACQUIRE);

      if (run == 0)
        continue;
      *bad = (TdBadIndex){
        .place = place, .run = (uint64_t)run, .at = found[1], .value = found[2]
      };
      __atomic_store_n (&found[0], 0, __ATOMIC_RELEASE);
      __atomic_store_n (any_bad_of (s), 1, __ATOMIC_SEQ_CST); /* there may be more */
      return true;
    }
  return false;
}
