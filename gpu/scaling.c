/* Dynamic loss scaling on the device (engine/train/optim/scaling-async.c): a launch looks for
 * infinities and NaN in up to 64 gradients, and one block decides and computes the next scale.
 *
 * Kernels of updates read that decision, and change nothing after an overflow.  The host
 * learns of it through pinned memory, and may be up to seven updates behind: it passes Adam's
 * step for each number of updates that may have been skipped.
 *
 * SPDX-License-Identifier: MIT */
#include "cuda-device.h"

static TdStatus
look (TdDevice *d, const TdTensor *gradients, int n, TdTensor *numbers)
{
  TdCuda *c = td_cuda_enter_launch (d);
  TdStatus status;

  if (c->lost != TD_OK)
    return c->lost;
  td_cuda_reads (c, gradients, n);
  td_cuda_writes (c, numbers, 1);
  status = td_cuda_scale_look (&c->launcher, gradients, n, numbers->data);
  td_cuda_scratch_end (c);
  return status;
}

static TdStatus
decide (TdDevice *d, int n, double growth, TdTensor *numbers, int64_t *report, int64_t run)
{
  TdCuda *c = td_cuda_enter_launch (d);
  TdStatus status;

  td_cuda_refuses (c, "tells the host about a loss scale");
  if (c->lost != TD_OK)
    return c->lost;
  td_cuda_writes (c, numbers, 1);
  status = td_cuda_scale_decide (&c->launcher, n, growth, numbers->data, report, run);
  td_cuda_scratch_end (c);
  return status;
}

const TdDeviceScaling td_cuda_scaling = { .look = look, .decide = decide };
