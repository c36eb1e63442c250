/* The second matrix of products, packed once for many of them: the steps of a recurrent net
 * multiply by the same weights.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../device.h"

/** Bytes that (k, n) floats take packed; 0 where this device does not pack them. */
size_t td__packed_bytes (const TdDevice *d, int64_t n, int64_t k);
/** Pack B (k, n), or (n, k) transposed. */
void td__packed_fill (const float *b, bool tb, int64_t n, int64_t k, float *out);
/** Products by b that follow on this thread may use what td__packed_fill made of it; NULL: none
 * any more.  Bits are the same. */
void td__packed_offer (const float *b, bool tb, int64_t n, int64_t k, const float *packed);
