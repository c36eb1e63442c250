/*
 * What would be lost of a tensor in a narrower float format: values that become infinite, zero
 * or subnormal.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "gradient/td-tensor.h"

G_BEGIN_DECLS

typedef enum
{
  TD_FLOAT_F16,
  TD_FLOAT_BF16,
  TD_FLOAT_E4M3, /* without infinities; 448 is the largest */
  TD_FLOAT_E5M2,
  TD_N_FLOATS
} TdFloat;

/* A count of finite values, and whether it is one: of values that are known, of a sample of
 * them, or not to be told from what is recorded. */
typedef struct
{
  TdHonesty honesty;
  double share; /* of the finite values, 0 to 1 */
} TdFloatShare;

typedef struct
{
  TdFloatShare over;      /* too large: infinite, or not a number where there is no infinity */
  TdFloatShare zero;      /* not zero, but too small to be another number */
  TdFloatShare subnormal; /* kept with fewer digits than the format has */
} TdFloatLoss;

/** Return a format's name: "f16", "e4m3". */
const char *td_float_name (TdFloat format);
/** Count what rounding to nearest, ties to even, would lose. Of a tensor without values the
 * recorder's magnitudes are asked, which tell some of it. Source: IEEE 754-2019 for f16; OCP
 * 8-bit floating point specification 1.0, section 5, for e4m3 and e5m2. */
TdFloatLoss td_float_loss (TdFloat format, const TdTensor *tensor);

G_END_DECLS
