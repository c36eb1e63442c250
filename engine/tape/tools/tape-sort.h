/* Sorting what an import has read, so much of it that somebody may not want to wait for the
 * end. SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** How a sort went. */
typedef enum
{
  TAPE_SORTED,
  TAPE_SORT_NO_MEMORY,
  TAPE_SORT_LEFT /* who looked on did not want it any more: in what order they are is not said
                  */
} TapeSort;

/** Who looks on: called every some ten thousand elements; false: leave. */
typedef bool (*TapeSortGoesOn) (void *user);

/** Sort an array in place, with 8 bytes of memory for each of its elements, fewer than 2^32 of
 * `size` bytes, at most TAPE_SORT_MOST.  Those that are equal stay in their order. */
TapeSort td__tape_sort (void *array, uint64_t n, size_t size,
                        int (*compare) (const void *a, const void *b), TapeSortGoesOn goes_on,
                        void *user);

enum
{
  TAPE_SORT_MOST = 64
};
