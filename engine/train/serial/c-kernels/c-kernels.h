/* What the text of kernels sees when it is compiled by itself, as tests and editors do; the
 * programs that it is written into have their own includes.
 *
 * Kernels are of float.  c-kernels.py makes of each that has the word a second one of double,
 * NAME_f64, and, where it says ROUND, which is where the engine's half precision rounds on the
 * way, NAME_f16 and NAME_bf16: in float, too, and rounded there.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#define ROUND(x) (x)
