/* What attention's kernels and their launch functions agree on.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

enum
{
  TD_ATTENTION_BLOCK = 128, /* threads */
  TD_ATTENTION_PACKS
  = 16 /* of 16 bytes in a row of a tile, which has as many rows as numbers */
};
