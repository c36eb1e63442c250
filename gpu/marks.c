/* Events after launches that write a single number, so that reading a loss waits for the
 * kernel that made it and not for all that was issued since.
 *
 * A mark is valid until something else may write there: another launch, a graph, or the memory
 * being given back.  Everything that writes says so (td_cuda_marks_written).
 *
 * SPDX-License-Identifier: MIT */
#include "cuda-device.h"

void
td_cuda_marks_wanted (TdCuda *c, const void *address)
{
  TdCudaMark *m = &c->marks[c->next_mark];

  if (c->capture != NULL || c->repeat != NULL || c->lost != TD_OK)
    return;
  if (m->event == NULL
      && td_cuda.cuEventCreate (&m->event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
    {
      m->event = NULL;
      return;
    }
  m->address = (CUdeviceptr)address;
  m->waits = true;
  c->marks_wait = true;
  c->next_mark = (c->next_mark + 1) % TD_CUDA_MARKS;
}

void
td_cuda_marks_made (TdCuda *c)
{
  if (!c->marks_wait)
    return;
  c->marks_wait = false;
  for (int i = 0; i < TD_CUDA_MARKS; i++)
    {
      TdCudaMark *m = &c->marks[i];

      if (!m->waits)
        continue;
      m->waits = false;
      if (m->address != 0
          && (c->capture != NULL || c->lost != TD_OK
              || td_cuda.cuEventRecord (m->event, c->stream) != CUDA_SUCCESS))
        m->address = 0;
    }
}

void
td_cuda_marks_written (TdCuda *c, const void *address, size_t bytes)
{
  const CUdeviceptr from = (CUdeviceptr)address;

  for (int i = 0; i < TD_CUDA_MARKS; i++)
    if (c->marks[i].address >= from && c->marks[i].address < from + bytes)
      c->marks[i].address = 0;
}

void
td_cuda_marks_forget (TdCuda *c)
{
  for (int i = 0; i < TD_CUDA_MARKS; i++)
    c->marks[i].address = 0;
}

void
td_cuda_marks_close (TdCuda *c)
{
  for (int i = 0; i < TD_CUDA_MARKS; i++)
    {
      if (c->marks[i].event != NULL && c->lost == TD_OK)
        td_cuda.cuEventDestroy (c->marks[i].event);
      c->marks[i] = (TdCudaMark){ 0 };
    }
}

CUevent
td_cuda_marks_find (const TdCuda *c, const void *address, size_t bytes)
{
  for (int i = 0; i < TD_CUDA_MARKS && bytes <= sizeof (double); i++)
    if (c->marks[i].address == (CUdeviceptr)address && !c->marks[i].waits)
      return c->marks[i].event;
  return NULL;
}
