/* Copies between the host and a GPU, through pinned memory.
 *
 * All computing is on one stream.  An upload returns once the caller's bytes are in pinned
 * memory; if all of that is in use, it waits for the oldest copy.  Uploads are in order with
 * computing, except those of new inputs of a megabyte or more: they go to memory that no work
 * uses (the pool `upload`), on a stream of their own, and what is computed next waits for
 * them.  A batch that an iterator's threads have ready is sent an iteration early the same way
 * (engine/train/loop/ahead.c).
 *
 * Downloads have a third stream.  They wait for what wrote the array: for one number its own
 * event (marks.c), else all that was issued.  The host waits for a download's last piece
 * alone.
 *
 * SPDX-License-Identifier: MIT */
#include "cuda-device.h"
#include "async.h"

#include <string.h>

CUresult
td_cuda_pin (TdCuda *c, void **host, size_t bytes)
{
  const CUresult result = td_cuda.cuMemAllocHost (host, bytes);

  if (result == CUDA_SUCCESS)
    c->pinned_bytes += bytes;
  return result;
}

void
td_cuda_unpin (TdCuda *c, void *host, size_t bytes)
{
  td_cuda.cuMemFreeHost (host);
  c->pinned_bytes -= bytes;
}

size_t
td_cuda_pinned_bytes (TdDevice *d)
{
  return ((const TdCuda *)d->priv)->pinned_bytes;
}

static bool
stage_open (TdCuda *c, TdCudaStage *stage)
{
  void *host = NULL;

  if (td_cuda_check (c, td_cuda_pin (c, &host, TD_CUDA_STAGE_BYTES), "cuMemAllocHost") != TD_OK)
    return false;
  stage->host = host;
  return td_cuda_check (c, td_cuda.cuEventCreate (&stage->done, CU_EVENT_DISABLE_TIMING),
                        "cuEventCreate")
         == TD_OK;
}

static void
stage_close (TdCuda *c, TdCudaStage *stage)
{
  if (stage->done != NULL)
    td_cuda.cuEventDestroy (stage->done);
  if (stage->host != NULL)
    td_cuda_unpin (c, stage->host, TD_CUDA_STAGE_BYTES);
  *stage = (TdCudaStage){ 0 };
}

static bool
stages_open (TdCuda *c, TdCudaStages *stages, CUstream stream)
{
  stages->stream = stream;
  for (int i = 0; i < TD_CUDA_STAGES; i++)
    if (stages->stage[i].done == NULL && !stage_open (c, &stages->stage[i]))
      return false;
  return true;
}

bool
td_cuda_stages_open (TdCuda *c)
{
  return stages_open (c, &c->up, c->stream) && stage_open (c, &c->down[0])
         && stage_open (c, &c->down[1])
         && td_cuda_check (c, td_cuda.cuEventCreate (&c->computed, CU_EVENT_DISABLE_TIMING),
                           "cuEventCreate")
                == TD_OK;
}

void
td_cuda_stages_close (TdCuda *c)
{
  for (int i = 0; i < TD_CUDA_STAGES; i++)
    {
      stage_close (c, &c->up.stage[i]);
      stage_close (c, &c->up_new.stage[i]);
    }
  stage_close (c, &c->down[0]);
  stage_close (c, &c->down[1]);
  if (c->computed != NULL)
    td_cuda.cuEventDestroy (c->computed);
  if (c->ahead != NULL)
    td_cuda.cuEventDestroy (c->ahead);
  c->computed = c->ahead = NULL;
}

static TdStatus
wait_for (TdCuda *c, TdCudaStage *stage)
{
  if (!stage->busy)
    return TD_OK;
  stage->busy = false;
  return td_cuda_check (c, td_cuda.cuEventSynchronize (stage->done), "a copy");
}

/* The stage's event comes after this copy. */
static TdStatus
sent (TdCuda *c, TdCudaStage *stage, CUresult copied, CUstream stream)
{
  TdStatus status = td_cuda_check (c, copied, "a copy");

  if (status == TD_OK)
    status = td_cuda_check (c, td_cuda.cuEventRecord (stage->done, stream), "cuEventRecord");
  stage->busy = stage->busy || status == TD_OK;
  return status;
}

/* Small uploads lie behind each other in a stage; the next one is waited for when this is full.
 */
static TdStatus
upload_piece (TdCuda *c, TdCudaStages *up, CUdeviceptr dst, const char *host, size_t bytes)
{
  TdCudaStage *stage = &up->stage[up->at];

  if (bytes > TD_CUDA_STAGE_BYTES - up->used)
    {
      TdStatus status;

      up->at = (up->at + 1) % TD_CUDA_STAGES;
      up->used = 0;
      stage = &up->stage[up->at];
      status = wait_for (c, stage);
      if (status != TD_OK)
        return status;
    }
  memcpy (stage->host + up->used, host, bytes);
  host = stage->host + up->used;
  up->used += (bytes + 255) & ~(size_t)255;
  return sent (c, stage, td_cuda.cuMemcpyHtoDAsync (dst, host, bytes, up->stream), up->stream);
}

static size_t
piece_bytes (size_t bytes, size_t at)
{
  return bytes - at < TD_CUDA_STAGE_BYTES ? bytes - at : TD_CUDA_STAGE_BYTES;
}

static TdStatus
upload (TdCuda *c, TdCudaStages *up, void *dst, const void *host, size_t bytes)
{
  TdStatus status;

  td_cuda_refuses (c, "copies numbers of the host");
  status = c->lost;
  td_cuda_host_copies_keep (c, dst, host, bytes);
  for (size_t at = 0; at < bytes && status == TD_OK; at += TD_CUDA_STAGE_BYTES)
    status = upload_piece (c, up, (CUdeviceptr)dst + at, (const char *)host + at,
                           piece_bytes (bytes, at));
  return status;
}

TdStatus
td_cuda_upload (TdDevice *d, void *dst, const void *host, size_t bytes)
{
  TdCuda *c = td_cuda_enter (d);

  return upload (c, &c->up, dst, host, bytes);
}

/* What is issued to the compute stream from here on follows the last piece, and so all. */
TdStatus
td_cuda_upload_new (TdDevice *d, void *dst, const void *host, size_t bytes)
{
  TdCuda *c = td_cuda_enter (d);
  TdStatus status;

  if (bytes == 0 || c->capture != NULL
      || (c->up_new.stage[TD_CUDA_STAGES - 1].done == NULL && c->lost == TD_OK
          && !stages_open (c, &c->up_new, c->uploads)))
    return td_cuda_upload (d, dst, host, bytes);
  td_cuda_timing_on (c, c->uploads);
  status = upload (c, &c->up_new, dst, host, bytes);
  if (status == TD_OK)
    status = td_cuda_check (
        c, td_cuda.cuStreamWaitEvent (c->stream, c->up_new.stage[c->up_new.at].done, 0),
        "cuStreamWaitEvent");
  if (status != TD_OK && c->lost == TD_OK) /* pieces that nothing waits for */
    td_cuda.cuStreamSynchronize (c->uploads);
  return status;
}

/* --- uploads of what is computed with later --- */

enum
{
  AHEAD_HEAD = 64 /* bytes before what is lent, for its size */
};

static void *
ahead_host_new (TdDevice *d, size_t bytes)
{
  TdCuda *c = td_cuda_enter (d);
  void *host = NULL;

  bytes += AHEAD_HEAD;
  /* Without it there is one more copy, and no error. */
  if (c->lost != TD_OK || td_cuda_pin (c, &host, bytes) != CUDA_SUCCESS)
    return NULL;
  memcpy (host, &bytes, sizeof bytes);
  return (char *)host + AHEAD_HEAD;
}

static void
ahead_host_free (TdDevice *d, void *host)
{
  TdCuda *c = td_cuda_enter (d);
  size_t bytes;

  if (c->lost != TD_OK) /* it went with the context */
    return;
  host = (char *)host - AHEAD_HEAD;
  memcpy (&bytes, host, sizeof bytes);
  td_cuda_unpin (c, host, bytes);
}

static TdStatus
ahead_upload (TdDevice *d, void *dst, const void *host, size_t bytes, bool stays)
{
  TdCuda *c = td_cuda_enter (d);
  TdStatus status = c->lost;

  td_cuda_refuses (c, "copies numbers of the host");
  if (c->lost != TD_OK || bytes == 0)
    return c->lost;
  if (c->ahead == NULL)
    status = td_cuda_check (c, td_cuda.cuEventCreate (&c->ahead, CU_EVENT_DISABLE_TIMING),
                            "cuEventCreate");
  if (status == TD_OK && !stays && c->up_new.stage[TD_CUDA_STAGES - 1].done == NULL
      && !stages_open (c, &c->up_new, c->uploads))
    status = TD_ERR_MEMORY;
  if (status == TD_OK && !stays)
    status = upload (c, &c->up_new, dst, host, bytes);
  else if (status == TD_OK)
    {
      td_cuda_host_copies_keep (c, dst, host, bytes);
      status = td_cuda_check (
          c, td_cuda.cuMemcpyHtoDAsync ((CUdeviceptr)dst, host, bytes, c->uploads), "a copy");
    }
  if (status == TD_OK)
    status = td_cuda_check (c, td_cuda.cuEventRecord (c->ahead, c->uploads), "cuEventRecord");
  if (status != TD_OK && c->lost == TD_OK) /* pieces that nothing waits for */
    td_cuda.cuStreamSynchronize (c->uploads);
  c->ahead_reads = c->ahead_reads || status == TD_OK;
  return status;
}

static TdStatus
ahead_follow (TdDevice *d)
{
  TdCuda *c = td_cuda_enter (d);

  if (c->lost != TD_OK || c->ahead == NULL)
    return c->lost;
  return td_cuda_check (c, td_cuda.cuStreamWaitEvent (c->stream, c->ahead, 0),
                        "cuStreamWaitEvent");
}

/* The copies began an iteration ago: this seldom waits. */
static TdStatus
ahead_settle (TdDevice *d)
{
  TdCuda *c = td_cuda_enter (d);

  if (c->lost != TD_OK || !c->ahead_reads)
    return c->lost;
  c->ahead_reads = false;
  if (td_cuda.cuEventQuery (c->ahead) == CUDA_SUCCESS)
    return TD_OK;
  return td_cuda_check (c, td_cuda.cuEventSynchronize (c->ahead), "a copy");
}

const TdDeviceAhead td_cuda_ahead = { .host_new = ahead_host_new,
                                      .host_free = ahead_host_free,
                                      .upload = ahead_upload,
                                      .follow = ahead_follow,
                                      .settle = ahead_settle };

/* --- downloads --- */

/* Let the stream of downloads follow what wrote there, or all that was issued. */
static TdStatus
follow (TdCuda *c, const void *src, size_t bytes)
{
  CUevent event = td_cuda_marks_find (c, src, bytes);
  TdStatus status = TD_OK;

  if (event == NULL)
    {
      event = c->computed;
      status = td_cuda_check (c, td_cuda.cuEventRecord (event, c->stream), "cuEventRecord");
    }
  if (status == TD_OK)
    status = td_cuda_check (c, td_cuda.cuStreamWaitEvent (c->downloads, event, 0),
                            "cuStreamWaitEvent");
  return status;
}

/* One piece is on its way while the one before it is read. */
TdStatus
td_cuda_download (TdDevice *d, void *host, const void *src, size_t bytes)
{
  TdCuda *c = td_cuda_enter (d);
  TdStatus status;
  size_t at = 0, read = 0;

  td_cuda_refuses (c, "waits for numbers that the host reads");
  status = c->lost;
  if (status == TD_OK && bytes > 0)
    status = follow (c, src, bytes);
  td_cuda_timing_read_on (c, c->downloads);
  for (int i = 0; read < bytes && status == TD_OK; i++)
    {
      TdCudaStage *stage = &c->down[i % 2];

      if (at < bytes)
        {
          size_t n = piece_bytes (bytes, at);

          status = sent (
              c, stage,
              td_cuda.cuMemcpyDtoHAsync (stage->host, (CUdeviceptr)src + at, n, c->downloads),
              c->downloads);
          at += n;
        }
      stage = &c->down[(i + 1) % 2]; /* of the round before */
      if (i > 0 && status == TD_OK)
        {
          size_t n = piece_bytes (bytes, read);

          status = wait_for (c, stage);
          if (status == TD_OK)
            memcpy ((char *)host + read, stage->host, n);
          read += n;
        }
    }
  return status;
}

TdStatus
td_cuda_copy (TdDevice *d, void *dst, const void *src, size_t bytes)
{
  TdCuda *c = td_cuda_enter (d);

  if (bytes == 0 || c->lost != TD_OK)
    return c->lost;
  td_cuda_host_copies_written (c, dst, bytes);
  return td_cuda_check (
      c, td_cuda.cuMemcpyDtoDAsync ((CUdeviceptr)dst, (CUdeviceptr)src, bytes, c->stream),
      "a copy");
}

TdStatus
td_cuda_zero (TdDevice *d, void *dst, size_t bytes)
{
  TdCuda *c = td_cuda_enter (d);

  if (bytes == 0 || c->lost != TD_OK)
    return c->lost;
  td_cuda_host_copies_written (c, dst, bytes);
  return td_cuda_check (c, td_cuda.cuMemsetD8Async ((CUdeviceptr)dst, 0, bytes, c->stream),
                        "cuMemsetD8Async");
}

void
td_cuda_synchronize (TdDevice *d)
{
  TdCuda *c = td_cuda_enter (d);

  td_cuda_refuses (c, "waits for the device");
  if (c->lost == TD_OK)
    td_cuda_check (c, td_cuda.cuStreamSynchronize (c->stream), "waiting for the device");
}
