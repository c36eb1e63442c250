/* Launches of dynamic loss scaling on the device (scaling.c).
 *
 * SPDX-License-Identifier: MIT */
#include "launch.h"

#include <assert.h>

static_assert (sizeof (TdFiniteParams) <= 4096,
               "drivers before 12.1 take no more of a kernel's parameters");

TdStatus
td_cuda_scale_look (TdCudaLauncher *l, const TdTensor *gradients, int n, double *numbers)
{
  static TdCudaKernel look = { .name = "td_scale_look" };
  TdStatus status = TD_OK;

  for (int first = 0; first < n && status == TD_OK; first += TD_STATS_MANY)
    {
      TdFiniteParams a = { .flags = numbers + TD_SCALE_FLAGS + first,
                           .n = n - first < TD_STATS_MANY ? n - first : TD_STATS_MANY };
      int64_t blocks = 0;

      for (int k = 0; k < a.n; k++)
        {
          const TdTensor *g = &gradients[first + k];

          if (td__infinity_bits (g->dtype) == 0)
            return TD_ERR_DTYPE;
          a.first_block[k] = (uint32_t)blocks;
          a.of[k].data = g->data;
          a.of[k].size = g->size;
          a.of[k].mask = td__infinity_bits (g->dtype);
          a.of[k].bytes = (int)td__bytes_of (g->dtype);
          blocks += (g->size + TD_STATS_CHUNK - 1) / TD_STATS_CHUNK;
        }
      status = td__launch (l, &look, blocks, 1, &a);
    }
  return status;
}

TdStatus
td_cuda_scale_decide (TdCudaLauncher *l, int n, double growth, double *numbers, int64_t *report,
                      int64_t run)
{
  static TdCudaKernel decide = { .name = "td_scale_decide" };
  const TdDecideParams a
      = { .numbers = numbers, .growth = growth, .n = n, .report = report, .run = run };

  return td__launch (l, &decide, 1, 1, &a);
}
