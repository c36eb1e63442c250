/* What the device is asked and not waited for: statistics of arrays, and when operations ran.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "cuda-device.h"

/** The slot stats_async.  The array is looked at before anything else writes there. */
TdAsyncRefusal td_cuda_stats_async (TdDevice *d, const TdTensor *x, uint64_t max_samples,
                                    uint64_t seed, const TdAsyncOf *of);
/** The slot own_bytes. */
size_t td_cuda_own_bytes (TdDevice *d);
/** The slots time_zero and time_op. */
bool td_cuda_time_zero (TdDevice *d, uint64_t zero);
bool td_cuda_time_op (TdDevice *d, const TdAsyncOf *of);
bool td_cuda_time_copy (TdDevice *d);
/** The slots check_index_async and bad_index. */
TdStatus td_cuda_index_async (TdDevice *d, const TdTensor *index, int64_t limit, int64_t ignore,
                              uint32_t place);
bool td_cuda_bad_index (TdDevice *d, TdBadIndex *bad);
void td_cuda_index_close (TdCuda *c);
/** The operation that is timed copies on this stream: its time is that of its copies. */
void td_cuda_timing_on (TdCuda *c, CUstream stream);
/** The same, if what is timed is a copy and nothing else. */
void td_cuda_timing_read_on (TdCuda *c, CUstream stream);
/** The slot poll_async. */
int td_cuda_poll_async (TdDevice *d, TdAsyncHow how, TdAsyncResult *answers, int room);

/** Launch for the arrays that wait; nothing when there are none. */
void td_cuda_stats_send (TdCuda *c);
/** Memory for them.  *Errors*: false, without fail: they cannot be had here. */
bool td_cuda_stats_open (TdCuda *c);
int td_cuda_stats_answers (TdCuda *c, TdAsyncHow how, TdAsyncResult *answers, int room);
void td_cuda_stats_close (TdCuda *c);
int td_cuda_timing_answers (TdCuda *c, TdAsyncHow how, TdAsyncResult *answers, int room);
void td_cuda_timing_close (TdCuda *c);

/* what kernels counted while they wrote (fused-stats.c) */
typedef struct TdCudaParts
{
  const TdCudaStats *parts; /**< device memory */
  int64_t n;
  uint64_t at; /**< fused-stats.c's own */
} TdCudaParts;
/** Memory of the device that it needs, and where that is. */
size_t td_cuda_fused_stats_bytes (void);
bool td_cuda_fused_stats_open (TdCuda *c, CUdeviceptr room);
void td_cuda_fused_stats_close (TdCuda *c);
/** Whether somebody asks for what is launched now. */
bool td_cuda_fused_stats_wanted (const TdCuda *c);
/** Have the kernel that gathers statistics compiled, or found on disk, where that was not done
 * before.  False: it is not to be had here, which the user hears at the first failure. */
bool td_cuda_counting_kernel (TdCuda *c, TdCudaKernel *kernel);
/** Room for the parts of a launch that writes all of y; NULL: nobody asks, or not now. */
TdCudaStats *td_cuda_fused_stats_take (TdCuda *c, const TdTensor *y, int64_t blocks);
/** What those counted who wrote x; no parts: it is to be read. */
TdCudaParts td_cuda_fused_stats_find (const TdCuda *c, const TdTensor *x);
/** They are to stay till the next launch that joins parts has been sent. */
void td_cuda_fused_stats_waits (TdCuda *c, const TdCudaParts *parts);
/** That launch has been sent. */
void td_cuda_fused_stats_sent (TdCuda *c);
/** Something writes there; anywhere. */
void td_cuda_fused_stats_written (TdCuda *c, const void *address, size_t bytes);
void td_cuda_fused_stats_forget (TdCuda *c);
