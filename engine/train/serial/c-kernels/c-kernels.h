/* What the text of kernels sees when it is compiled by itself, as tests and editors do; the
 * programs that it is written into have their own includes.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>
