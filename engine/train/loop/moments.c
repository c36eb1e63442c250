/* Statistics of an array in host memory.
 *
 * SPDX-License-Identifier: MIT */
#include "moments.h"

#include <math.h>
#include <stdlib.h>

const char *const td__moment_names[TD_N_MOMENTS] = { "mean", "std", "min", "max", "zeros" };

double *
td__host_doubles (TdVar *v, int64_t *n, const char *call)
{
  size_t bytes = (size_t)td_size (v) * td_dtype_bytes (td_dtype (v));
  char *raw = malloc (bytes + 1);
  double *x = malloc ((size_t)td_size (v) * sizeof *x + 1);

  *n = td_size (v);
  if (raw == NULL || x == NULL)
    td__fail (TD_ERR_MEMORY, call, NULL, "no memory for %lld elements", (long long)*n);
  else if (td_read (v, raw, bytes) == TD_OK)
    {
      for (int64_t i = 0; i < *n; i++)
        x[i] = td__host_element (raw, td_dtype (v), i);
      free (raw);
      return x;
    }
  free (raw);
  free (x);
  return NULL;
}

void
td__moments (const double *x, int64_t n, double moments[TD_N_MOMENTS])
{
  double sum = 0, squares = 0, low = INFINITY, high = -(double)INFINITY, zeros = 0;
  bool has_nan = false;

  for (int64_t i = 0; i < n; i++)
    {
      sum += x[i];
      low = fmin (low, x[i]);
      high = fmax (high, x[i]);
      zeros += x[i] == 0;
      has_nan = has_nan || isnan (x[i]);
    }
  for (int64_t i = 0; i < n; i++)
    squares += (x[i] - sum / (double)n) * (x[i] - sum / (double)n);
  if (n == 0 || has_nan)
    sum = squares = low = high = (double)NAN;
  moments[0] = sum / (double)n;
  moments[1] = sqrt (squares / (double)n);
  moments[2] = low;
  moments[3] = high;
  moments[4] = zeros;
}

static int
ascending (const void *a, const void *b)
{
  double p = *(const double *)a, q = *(const double *)b;

  return p < q ? -1 : p > q;
}

void
td__percentiles (double *x, int64_t n, const double *percents, int n_percents, double *values)
{
  bool has_nan = n == 0;

  for (int64_t i = 0; i < n; i++)
    has_nan = has_nan || isnan (x[i]);
  if (!has_nan)
    qsort (x, (size_t)n, sizeof *x, ascending);
  for (int k = 0; k < n_percents; k++)
    {
      double place = percents[k] / 100 * (double)(n - 1);
      int64_t below = (int64_t)place, above = below + 1 < n ? below + 1 : n - 1;

      values[k]
          = has_nan ? (double)NAN : x[below] + (x[above] - x[below]) * (place - (double)below);
    }
}
