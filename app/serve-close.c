/* Whether answers are the same but for rounding: sums of other lengths round otherwise.  What
 * that may make is held against numbers of the same kind: a column of small numbers beside one
 * of large ones can be all wrong and far below a ten-thousandth of the largest.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double
td_serve_element (const TdServeArray *a, size_t i)
{
  return a->dtype == TD_F32   ? (double)((const float *)a->data)[i]
         : a->dtype == TD_F64 ? ((const double *)a->data)[i]
         : a->dtype == TD_I32 ? (double)((const int32_t *)a->data)[i]
         : a->dtype == TD_I64 ? (double)((const int64_t *)a->data)[i]
                              : (double)((const uint8_t *)a->data)[i];
}

static double
size_at (const TdServeArray *a, size_t i)
{
  const double x = fabs (td_serve_element (a, i));

  return isfinite (x) ? x : 0;
}

static size_t
elements_of (const TdServeArray *a)
{
  return a->bytes / td_dtype_bytes (a->dtype);
}

static size_t
row_of (const TdServeArray *a)
{
  return a->shape.ndim > 0 && a->shape.dim[0] > 0 ? elements_of (a) / (size_t)a->shape.dim[0]
                                                  : elements_of (a);
}

/* The largest of the row that begins with element i. */
static double
size_of_row (const TdServeArray *a, size_t i, size_t row)
{
  double size = 0;

  for (size_t k = i; k < i + row; k++)
    size = fmax (size, size_at (a, k));
  return size;
}

/* Where the sizes stand that element i of a row counts for: [0] is the largest of all, then
 * come those of each place along axis 1, along axis 2 and so on.  Returns how many. */
static int
places_of (const TdShape *shape, size_t row, size_t i, size_t *place)
{
  size_t at = 1, rest = row;
  int n = 0;

  for (int d = 1; d < shape->ndim; d++)
    {
      const size_t dim = (size_t)shape->dim[d];

      rest /= dim;
      place[n++] = at + i / rest % dim;
      at += dim;
    }
  return n;
}

static void
count_sizes (const TdServeArray *a, double *sizes)
{
  const size_t row = row_of (a), n = elements_of (a);
  size_t place[TD_MAX_DIMS];

  for (size_t i = 0; i < n; i++)
    {
      const double x = size_at (a, i);
      const int n_places = places_of (&a->shape, row, i % row, place);

      sizes[0] = fmax (sizes[0], x);
      for (int k = 0; k < n_places; k++)
        sizes[place[k]] = fmax (sizes[place[k]], x);
    }
}

bool
td_serve_sizes_of (TdServeSizes *sizes, TdServeRequest *const *batch, int n)
{
  const int n_out = batch[0]->model->ports.n_out;

  memset (sizes, 0, sizeof *sizes);
  for (int o = 0; o < n_out; o++)
    {
      const TdShape *shape = &batch[0]->out[o].shape;
      size_t places = 1;

      for (int d = 1; d < shape->ndim; d++)
        places += (size_t)shape->dim[d];
      sizes->of[o] = calloc (places, sizeof *sizes->of[o]);
      if (sizes->of[o] == NULL)
        {
          td_serve_sizes_clear (sizes);
          return false;
        }
      for (int k = 0; k < n; k++)
        count_sizes (&batch[k]->out[o], sizes->of[o]);
    }
  return true;
}

void
td_serve_sizes_clear (TdServeSizes *sizes)
{
  for (int o = 0; o < TD_SERVE_MOST_PORTS; o++)
    free (sizes->of[o]);
  memset (sizes, 0, sizeof *sizes);
}

/* What a number may be off where the least of its sizes is `size`: a ten-thousandth of it; of
 * one that is small beside others, from which it may come by a difference, a tenth, if that is
 * no more than a hundred-thousandth of the largest. */
static double
slack (double size, double largest)
{
  return fmax (1e-4 * size, fmin (1e-1 * size, 1e-5 * largest));
}

static bool
are_close (const TdServeArray *a, const TdServeArray *b, const double *sizes)
{
  const bool is_exact = a->dtype != TD_F32 && a->dtype != TD_F64;
  const size_t row = row_of (b), n = elements_of (b);
  size_t place[TD_MAX_DIMS];
  double largest = 0;

  if (a->dtype != b->dtype || a->bytes != b->bytes || a->shape.ndim != b->shape.ndim
      || memcmp (a->shape.dim, b->shape.dim, (size_t)b->shape.ndim * sizeof *b->shape.dim) != 0)
    return false;
  if (is_exact)
    return n == 0 || memcmp (a->data, b->data, b->bytes) == 0;
  for (size_t i = 0; i < n; i++)
    {
      const double x = td_serve_element (a, i), y = td_serve_element (b, i);
      const int n_places = places_of (&b->shape, row, i % row, place);
      double size;

      if (i % row == 0)
        largest = size_of_row (b, i, row);
      size = largest;
      for (int k = 0; k < n_places; k++)
        size = fmin (size, sizes[place[k]]);
      if (!(fabs (x - y) <= slack (size, sizes[0])) && !(isnan (x) && isnan (y)) && x != y)
        return false;
    }
  return true;
}

bool
td_serve_are_close (const TdServeArray *a, const TdServeArray *b, const TdServeSizes *sizes,
                    int n)
{
  for (int i = 0; i < n; i++)
    if (!are_close (&a[i], &b[i], sizes->of[i]))
      return false;
  return true;
}
