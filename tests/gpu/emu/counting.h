/* What the tests of kernels that count share: one call made by kernels that do not and by those
 * that do, and what these have counted compared with what the CPU finds.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "rig.h"

typedef enum
{
  PLAIN,
  SPECIAL, /* NaN, infinities, both zeros, denormals, the first number among them */
  CONSTANT,
  NOTHING_FINITE,
  FAR, /* from 0, for what they vary */
  SPREADS
} Spread;

typedef struct
{
  TdDtype dtype;
  TdShape shape;
  Spread spread;
} Array;

enum
{
  COUNTING_MAX_IN = 6,
  COUNTING_MAX_OUT = 4
};

/** Make the call; some of the outputs are counted. */
typedef TdStatus (*CountingCall) (TdCudaLauncher *l, TdTensor *in, TdTensor *out,
                                  const void *context);

/** Parts that were asked for, since counting_begin. */
typedef struct
{
  TdCudaStats *parts;
  int64_t n_parts;
  const void *of;
} CountingParts;

extern const TdDtype counting_floats[4];

/** By the kernels that do not count and, threads in each order, by those that do; counts: how
 * many arrays.  What outputs hold at first is the same. */
void counting_check (const char *what, const Array *in, int n_in, const Array *out, int n_out,
                     int counts, CountingCall call, const void *context);

/** From here on the launcher counts, and has done so of nothing. */
void counting_begin (TdCudaLauncher *l);
/** It does not any more.  Returns what it has counted. */
const CountingParts *counting_end (TdCudaLauncher *l, int *n);
void counting_release (const CountingParts *parts);

/** Fail unless a and b are close, for numbers of that size. */
void counting_assert_close (const char *what, const char *name, double a, double b,
                            double size);

TdTensor counting_tensor (const Array *a, TdShape *shape);
void counting_tensor_release (TdTensor *x);
