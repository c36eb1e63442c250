/* What the kernel that copies many pieces of memory is launched with.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

enum
{
  TD_PARTS_MANY = 128,    /* of one launch */
  TD_PARTS_CHUNK = 16384, /* bytes of one block */
};

/** Block b copies from the part whose `first_block` is the last not above b. */
typedef struct TdPartsParams
{
  int n;
  uint32_t first_block[TD_PARTS_MANY];
  int64_t bytes[TD_PARTS_MANY];
  const void *from[TD_PARTS_MANY];
  void *to[TD_PARTS_MANY];
} TdPartsParams;
