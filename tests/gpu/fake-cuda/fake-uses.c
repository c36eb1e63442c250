/* What each launch of the module reads and writes, for the checks of fake-streams.c.
 *
 * A real driver is not told that, and neither is this one.  The linker puts the functions below
 * in the place of those through which the module prepares a launch (--wrap in meson.build):
 * each notes arrays and workspace, calls the module's own, and the launch that follows takes
 * what was noted.  Libraries' calls, copies and fills know what they use themselves.
 *
 * Launches that repeat.c holds back go out later, and in graphs.  What they use is kept by
 * kernel and parameters, as one follows from the other, and looked up when they reach the
 * driver.
 *
 * SPDX-License-Identifier: MIT */
#include "fake-kernels.h"

#include "cuda-device.h"
#include "async.h"

#include <stddef.h>

#define WRAP(type, name, ...)                                                                  \
  type __real_##name (__VA_ARGS__);                                                            \
  type __wrap_##name (__VA_ARGS__);                                                            \
  type __wrap_##name (__VA_ARGS__)

static void
note_tensor (const TdTensor *t, bool writes)
{
  if (t->data != NULL && t->size > 0)
    fake_note_use (NULL, (CUdeviceptr)t->data, (size_t)t->size * td__bytes_of (t->dtype),
                   writes);
}

/* --- arrays and workspace of the next launch --- */

WRAP (void, td_cuda_reads, TdCuda *c, const TdTensor *tensors, int n)
{
  __real_td_cuda_reads (c, tensors, n); /* may launch something else */
  for (int i = 0; tensors != NULL && i < n; i++)
    note_tensor (&tensors[i], false);
}

WRAP (void, td_cuda_writes, TdCuda *c, const TdTensor *tensors, int n)
{
  __real_td_cuda_writes (c, tensors, n);
  for (int i = 0; tensors != NULL && i < n; i++)
    note_tensor (&tensors[i], true);
}

WRAP (void *, td_cuda_scratch, TdCuda *c, size_t bytes)
{
  void *room = __real_td_cuda_scratch (c, bytes);

  if (room != NULL)
    fake_note_use (NULL, (CUdeviceptr)room, bytes, true);
  return room;
}

WRAP (TdCudaStats *, td_cuda_fused_stats_take, TdCuda *c, const TdTensor *y, int64_t blocks)
{
  TdCudaStats *parts = __real_td_cuda_fused_stats_take (c, y, blocks);

  if (parts != NULL)
    fake_note_use (NULL, (CUdeviceptr)parts, (size_t)blocks * sizeof *parts, true);
  return parts;
}

/* --- launches with operands of their own --- */

WRAP (TdStatus, td_cuda_update, TdCudaLauncher *l, TdUpdateKind kind, const TdUpdate *u,
      TdTensor *const *arrays, int n, int n_params)
{
  for (int k = 0; k < n * n_params; k++)
    note_tensor (arrays[k], k % n != 1); /* the gradient is read */
  return __real_td_cuda_update (l, kind, u, arrays, n, n_params);
}

WRAP (TdStatus, td_cuda_check_index_async, TdCudaLauncher *l, const TdTensor *index,
      int64_t limit, int64_t ignore, int64_t *found, int64_t *any_bad, uint64_t *runs)
{
  fake_note_use (NULL, (CUdeviceptr)runs, sizeof *runs, true);
  return __real_td_cuda_check_index_async (l, index, limit, ignore, found, any_bad, runs);
}

static void
note_stats (const TdCuda *c, const TdCudaStatsOf *of, int n)
{
  for (int i = 0; i < n; i++)
    {
      const size_t parts = (size_t)of[i].n_parts * sizeof *of[i].parts;
      const size_t numbers = (size_t)of[i].size * td__bytes_of (of[i].dtype);

      if (of[i].parts != NULL)
        fake_note_use (NULL, (CUdeviceptr)of[i].parts, parts, false);
      else
        fake_note_use (NULL, (CUdeviceptr)of[i].data, numbers, false);
      fake_note_use (NULL, (CUdeviceptr)of[i].result, sizeof *of[i].result, true);
    }
  fake_note_use (NULL, c->own_room, c->own_room_bytes, true);
}

/* What has waited for long enough is counted between a launch and what was noted of that
 * launch; what a program asks for at once is counted by a launch of its own. */
WRAP (TdStatus, td_cuda_stats, TdCudaLauncher *l, const TdCudaStatsOf *of, int n)
{
  const TdCuda *c = (TdCuda *)(void *)((char *)l - offsetof (TdCuda, launcher));
  TdStatus status;

  if (!c->in_own_room)
    return __real_td_cuda_stats (l, of, n);
  fake_uses_save ();
  note_stats (c, of, n);
  status = __real_td_cuda_stats (l, of, n);
  fake_uses_restore ();
  return status;
}

/* --- host memory, which is there unless a test says that it is not --- */

WRAP (void *, td_cuda_room_for, void *items, uint32_t n, size_t bytes)
{
  return fake_enter ("td_cuda_room_for") == CUDA_ERROR_OUT_OF_MEMORY
             ? NULL
             : __real_td_cuda_room_for (items, n, bytes);
}

/* --- launches that are held back --- */

WRAP (TdStatus, td_cuda_repeat_launch, TdCuda *c, TdCudaKernel *kernel, const unsigned grid[3],
      unsigned block, size_t shared_bytes, const void *params)
{
  TdStatus status;

  fake_launch_keep_uses (kernel->handle, params);
  fake_launches_kept++;
  status = __real_td_cuda_repeat_launch (c, kernel, grid, block, shared_bytes, params);
  fake_launches_kept--;
  return status;
}

WRAP (void, td_cuda_repeat_interrupt, TdCuda *c)
{
  fake_launches_kept++;
  __real_td_cuda_repeat_interrupt (c);
  fake_launches_kept--;
}

WRAP (void, td_cuda_repeat_leave, TdCuda *c)
{
  fake_launches_kept++;
  __real_td_cuda_repeat_leave (c);
  fake_launches_kept--;
}
