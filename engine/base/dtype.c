/* Sizes and names of the element types, the one table of them: see dtype.h.
 * SPDX-License-Identifier: MIT */
#include "dtype.h"

const uint8_t td__dtype_sizes[TD__N_DTYPES] = { 4, 8, 2, 2, 4, 8, 1, 1 };
const char *const td__dtype_short_names[TD__N_DTYPES]
    = { "f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool" };
const char *const td__dtype_long_names[TD__N_DTYPES]
    = { "float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "bool" };
