/* Launches of copies of many pieces of memory.
 *
 * SPDX-License-Identifier: MIT */
#include "launch.h"
#include "parts.h"

#include <assert.h>

static_assert (sizeof (TdPartsParams) <= 4096,
               "drivers before 12.1 take no more of a kernel's parameters");

TdStatus
td_cuda_copy_parts (TdCudaLauncher *l, const TdCopyPart *parts, int n)
{
  static TdCudaKernel copy = { .name = "td_copy_parts" };
  TdStatus status = TD_OK;

  for (int first = 0; first < n && status == TD_OK; first += TD_PARTS_MANY)
    {
      TdPartsParams a = { 0 };
      int64_t blocks = 0;

      for (int i = first; i < n && i < first + TD_PARTS_MANY; i++)
        if (parts[i].bytes > 0)
          {
            a.first_block[a.n] = (uint32_t)blocks;
            a.bytes[a.n] = (int64_t)parts[i].bytes;
            a.from[a.n] = parts[i].from;
            a.to[a.n++] = parts[i].to;
            blocks += ((int64_t)parts[i].bytes + TD_PARTS_CHUNK - 1) / TD_PARTS_CHUNK;
          }
      status = td__launch (l, &copy, blocks, 1, &a);
    }
  return status;
}
