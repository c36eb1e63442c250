/* Sizes and names of the element types, by their number, which engine and tape agree on.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

enum
{
  TD__N_DTYPES = 8
};

/** Bytes of an element. */
extern const uint8_t td__dtype_sizes[TD__N_DTYPES];
/** f32, as in TD_F32. */
extern const char *const td__dtype_short_names[TD__N_DTYPES];
/** float32, as NumPy and Chainer have it. */
extern const char *const td__dtype_long_names[TD__N_DTYPES];
