/* What the device is asked and not waited for: statistics of arrays, and when operations ran.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "cuda-device.h"

/** The slot stats_later.  The array is looked at before anything else writes there. */
TdLateRefusal td_cuda_stats_later (TdDevice *d, const TdTensor *x, uint64_t max_samples,
                                   uint64_t seed, const TdLateOf *of);
/** The slot own_bytes. */
size_t td_cuda_own_bytes (TdDevice *d);
/** The slots time_zero and time_op. */
bool td_cuda_time_zero (TdDevice *d, uint64_t zero);
bool td_cuda_time_op (TdDevice *d, const TdLateOf *of);
/** The slots check_index_later and bad_index. */
TdStatus td_cuda_index_later (TdDevice *d, const TdTensor *index, int64_t limit, int64_t ignore,
                              uint32_t place);
bool td_cuda_bad_index (TdDevice *d, TdBadIndex *bad);
void td_cuda_index_close (TdCuda *c);
/** The operation that is timed copies on this stream: its time is that of its copies. */
void td_cuda_timing_on (TdCuda *c, CUstream stream);
/** The slot late. */
int td_cuda_late (TdDevice *d, TdLateHow how, TdLate *answers, int room);

/** Launch for the arrays that wait; nothing when there are none. */
void td_cuda_stats_send (TdCuda *c);
int td_cuda_stats_answers (TdCuda *c, TdLateHow how, TdLate *answers, int room);
void td_cuda_stats_close (TdCuda *c);
int td_cuda_timing_answers (TdCuda *c, TdLateHow how, TdLate *answers, int room);
void td_cuda_timing_close (TdCuda *c);
