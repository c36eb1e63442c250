/* Programs of element-by-element kernels that run tile by tile: each kernel of the program over
 * one segment of the arrays that fits the first-level cache, then all over the next.
 *
 * What kernel an operation is, is asked of the operation: it runs on a device that computes
 * nothing and notes what it is told to do.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../device.h"

/** Say whether a device runs programs. */
bool td__tiles_known (const TdDevice *d);
/** Say whether a device knows that kernel in a program. */
bool td__tiles_has (const TdDevice *d, const TdTileCall *call);
/** How many operands, or kernels, a program may have there. */
uint32_t td__tiles_most_operands (const TdDevice *d);
uint32_t td__tiles_most_steps (const TdDevice *d);
/** Ask an operation what it does, of operands that need no data.  Returns false where that is
 * not one kernel call on its operands that a program can have. */
bool td__tiles_record (TdOpCall *call, TdTileCall *out);

typedef struct TdTiles TdTiles;
/** Make a program ready.  Returns NULL where the device has none for it: no error.  *Owner*:
 * the caller, td__tiles_free. */
TdTiles *td__tiles_new (TdDevice *d, const TdProgram *program);
void td__tiles_free (TdTiles *t);
/** adds: by operand, for kernels that may add to it; keys: by draw.  NULL where there are none.
 */
TdStatus td__tiles_run (const TdTiles *t, const TdTensor *operands, const bool *adds,
                        const TdRngKey *keys);
/** Elements of a tile. */
int64_t td__tiles_length (const TdTiles *t);
