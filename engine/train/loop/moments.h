/* Statistics of an array in host memory.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "compute/core/core.h"

enum
{
  TD_N_MOMENTS = 5
};
/** "mean", "std", "min", "max", "zeros". */
extern const char *const td__moment_names[TD_N_MOMENTS];

/** All elements of a variable as doubles, n of them.  *Owner*: the caller, free ().  NULL after
 * td__fail.  *Sync*: blocks. */
double *td__host_doubles (TdVar *v, int64_t *n, const char *call);
/** NaN in, NaN out, but for zeros; no elements: NaN. */
void td__moments (const double *x, int64_t n, double moments[TD_N_MOMENTS]);
/** Percentiles of numbers, which are sorted, with linear interpolation as numpy.percentile.
 * NaN as soon as there is one. */
void td__percentiles (double *x, int64_t n, const double *percents, int n_percents,
                      double *values);
