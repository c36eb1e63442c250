/* Copies between the host and a GPU, through pinned memory, on the compute stream.
 *
 * An upload returns when the caller's bytes are in pinned memory; only when all of that is on
 * its way does it wait, and then for the oldest piece.  A download waits for its own last
 * piece, and for nothing that is issued later.
 *
 * SPDX-License-Identifier: MIT */
#include "cuda-device.h"

#include <string.h>

bool
td_cuda_stages_open (TdCuda *c)
{
  for (int i = 0; i < TD_CUDA_STAGES; i++)
    if (td_cuda_check (c, td_cuda.cuMemAllocHost (&c->stages[i].host, TD_CUDA_STAGE_BYTES),
                       "cuMemAllocHost")
            != TD_OK
        || td_cuda_check (c,
                          td_cuda.cuEventCreate (&c->stages[i].done, CU_EVENT_DISABLE_TIMING),
                          "cuEventCreate")
               != TD_OK)
      return false;
  return true;
}

void
td_cuda_stages_close (TdCuda *c)
{
  for (int i = 0; i < TD_CUDA_STAGES; i++)
    {
      if (c->stages[i].done != NULL)
        td_cuda.cuEventDestroy (c->stages[i].done);
      if (c->stages[i].host != NULL)
        td_cuda.cuMemFreeHost (c->stages[i].host);
      c->stages[i] = (TdCudaStage){ 0 };
    }
}

static TdStatus
wait_for (TdCuda *c, TdCudaStage *stage)
{
  if (!stage->busy)
    return TD_OK;
  stage->busy = false;
  return td_cuda_check (c, td_cuda.cuEventSynchronize (stage->done), "a copy");
}

/* The next piece in turn, not in use any more; NULL after fail. */
static TdCudaStage *
take_stage (TdCuda *c)
{
  TdCudaStage *stage = &c->stages[c->next_stage];

  c->next_stage = (c->next_stage + 1) % TD_CUDA_STAGES;
  return wait_for (c, stage) == TD_OK ? stage : NULL;
}

static TdStatus
sent (TdCuda *c, TdCudaStage *stage, CUresult copied)
{
  TdStatus status = td_cuda_check (c, copied, "a copy");

  if (status == TD_OK)
    status = td_cuda_check (c, td_cuda.cuEventRecord (stage->done, c->stream), "cuEventRecord");
  stage->busy = status == TD_OK;
  return status;
}

TdStatus
td_cuda_upload (TdDevice *d, void *dst, const void *host, size_t bytes)
{
  TdCuda *c = td_cuda_enter (d);
  TdStatus status = c->lost;

  for (size_t at = 0; at < bytes && status == TD_OK; at += TD_CUDA_STAGE_BYTES)
    {
      size_t n = bytes - at < TD_CUDA_STAGE_BYTES ? bytes - at : TD_CUDA_STAGE_BYTES;
      TdCudaStage *stage = take_stage (c);

      if (stage == NULL)
        return TD_ERR_DEVICE;
      memcpy (stage->host, (const char *)host + at, n);
      status
          = sent (c, stage,
                  td_cuda.cuMemcpyHtoDAsync ((CUdeviceptr)dst + at, stage->host, n, c->stream));
    }
  return status;
}

/* Piece i arrives in the stage that came i-th; two are on their way while one is read. */
TdStatus
td_cuda_download (TdDevice *d, void *host, const void *src, size_t bytes)
{
  TdCuda *c = td_cuda_enter (d);
  size_t n_pieces = (bytes + TD_CUDA_STAGE_BYTES - 1) / TD_CUDA_STAGE_BYTES;
  TdCudaStage *on_way[2] = { NULL, NULL };
  TdStatus status = c->lost;

  for (size_t i = 0; i < n_pieces + 1 && status == TD_OK; i++)
    {
      if (i < n_pieces)
        {
          size_t at = i * TD_CUDA_STAGE_BYTES;
          size_t n = bytes - at < TD_CUDA_STAGE_BYTES ? bytes - at : TD_CUDA_STAGE_BYTES;
          TdCudaStage *stage = take_stage (c);

          if (stage == NULL)
            return TD_ERR_DEVICE;
          on_way[i % 2] = stage;
          status = sent (
              c, stage,
              td_cuda.cuMemcpyDtoHAsync (stage->host, (CUdeviceptr)src + at, n, c->stream));
        }
      if (i > 0 && status == TD_OK)
        {
          size_t at = (i - 1) * TD_CUDA_STAGE_BYTES;
          size_t n = bytes - at < TD_CUDA_STAGE_BYTES ? bytes - at : TD_CUDA_STAGE_BYTES;

          status = wait_for (c, on_way[(i - 1) % 2]);
          if (status == TD_OK)
            memcpy ((char *)host + at, on_way[(i - 1) % 2]->host, n);
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
  return td_cuda_check (c, td_cuda.cuMemsetD8Async ((CUdeviceptr)dst, 0, bytes, c->stream),
                        "cuMemsetD8Async");
}

void
td_cuda_synchronize (TdDevice *d)
{
  TdCuda *c = td_cuda_enter (d);

  if (c->lost == TD_OK)
    td_cuda_check (c, td_cuda.cuStreamSynchronize (c->stream), "waiting for the device");
}
