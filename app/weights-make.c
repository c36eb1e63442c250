/* One array of a model of ours, made of those of another program: the steps of td-weights.h on
 * elements.
 *
 * SPDX-License-Identifier: MIT */
#include "weights-files.h"

#include "dtype.h"
#include "train/serial/npy.h"

#include <stdlib.h>
#include <string.h>

enum
{
  N_GATES = 4
};

/* Where a, i, f, o of ours are in PyTorch's i, f, g, o. */
static const int gate_of[N_GATES] = { 2, 0, 1, 3 };

static int64_t
row_elements (const TdRecord *v)
{
  return v->shape.dim[0] > 0 ? td_shape_size (&v->shape) / v->shape.dim[0] : 0;
}

/* A new array in the place of an old one; FALSE: there is no memory. */
static gboolean
replace (TdRecord *v, void *data, size_t bytes)
{
  if (data == NULL)
    return FALSE;
  free (v->data);
  v->data = data;
  v->bytes = bytes;
  return TRUE;
}

static gboolean
transpose (TdRecord *v)
{
  const int64_t rows = v->shape.dim[0], columns = v->shape.dim[1];
  const size_t width = td_dtype_bytes (v->dtype);
  char *out = malloc (v->bytes + 1);

  for (int64_t i = 0; out != NULL && i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      memcpy (out + (size_t)(j * rows + i) * width,
              (const char *)v->data + (size_t)(i * columns + j) * width, width);
  v->shape.dim[0] = columns;
  v->shape.dim[1] = rows;
  return replace (v, out, v->bytes);
}

static void
take_rows (TdRecord *v, int64_t first, int64_t end)
{
  const size_t row = (size_t)row_elements (v) * td_dtype_bytes (v->dtype);

  v->bytes = (size_t)(end - first) * row;
  memmove (v->data, (const char *)v->data + (size_t)first * row, v->bytes);
  v->shape.dim[0] = end - first;
}

/* Blocks of rows to rows of unit after unit. */
static gboolean
interleave (TdRecord *v)
{
  const int64_t size = v->shape.dim[0] / N_GATES;
  const size_t row = (size_t)row_elements (v) * td_dtype_bytes (v->dtype);
  char *out = malloc (v->bytes + 1);

  for (int64_t unit = 0; out != NULL && unit < size; unit++)
    for (int g = 0; g < N_GATES; g++)
      memcpy (out + (size_t)(unit * N_GATES + g) * row,
              (const char *)v->data + (size_t)(gate_of[g] * size + unit) * row, row);
  return replace (v, out, v->bytes);
}

/* What cannot be taken over, as it is there. */
static char *
misfit_text (const TdRecord *v, int64_t at, TdDtype dtype, const char *name)
{
  const TdNpy one = { .dtype = v->dtype, .shape = { 0, { 0 } } };
  const char *element = (const char *)v->data + (size_t)at * td_dtype_bytes (v->dtype);
  g_autofree char *number = NULL;
  double real;
  int64_t whole;

  if (v->dtype < TD_I32) /* the floats come first */
    {
      td__npy_convert (&one, element, TD_F64, &real);
      number = g_strdup_printf ("%.9g", real);
    }
  else
    {
      td__npy_convert (&one, element, TD_I64, &whole);
      number = g_strdup_printf ("%" G_GINT64_FORMAT, whole);
    }
  return g_strdup_printf ("element %" G_GINT64_FORMAT " of %s is %s, which %s does not hold",
                          at, name, number, td__dtype_short_names[dtype]);
}

/* Elements of another type: widened exactly or rounded, but never another number. */
static gboolean
convert (TdRecord *v, TdDtype dtype, const char *name, char **why)
{
  const int64_t n = td_shape_size (&v->shape);
  const TdNpy from = { .dtype = v->dtype, .shape = v->shape };
  const size_t bytes = (size_t)n * td_dtype_bytes (dtype);
  int64_t at;
  void *out;

  if (v->dtype == dtype)
    return TRUE;
  if (td__npy_misfit (v->dtype, v->data, n, dtype, &at))
    {
      *why = misfit_text (v, at, dtype, name);
      return FALSE;
    }
  out = malloc (bytes + 1);
  if (out != NULL)
    td__npy_convert (&from, v->data, dtype, out);
  v->dtype = dtype;
  return replace (v, out, bytes);
}

static gboolean
read_source (const TdWeightsFile *theirs, const TdWeightsRow *row, int k, TdRecord *v,
             char **why)
{
  const char *name = g_ptr_array_index (theirs->names, (guint)row->theirs[k]), *reason = NULL;

  *v = (TdRecord){ 0 };
  if (!theirs->source->read (theirs->source, name, v, &reason))
    *why = g_strdup_printf ("%s: %s", name, reason);
  else if (row->transpose && !transpose (v))
    *why = g_strdup ("no memory for it");
  else if (row->end >= 0)
    take_rows (v, row->first, row->end);
  return *why == NULL;
}

/* The next one to a sum of doubles, or behind the rows of the same type. */
static gboolean
join (TdWeightsJoin how, TdRecord *v, TdRecord *next, const char *name, char **why)
{
  if (how == TD_WEIGHTS_ROWS)
    {
      char *out
          = convert (next, v->dtype, name, why) ? malloc (v->bytes + next->bytes + 1) : NULL;

      if (out == NULL)
        return FALSE;
      memcpy (out, v->data, v->bytes);
      memcpy (out + v->bytes, next->data, next->bytes);
      v->shape.dim[0] += next->shape.dim[0];
      return replace (v, out, v->bytes + next->bytes);
    }
  if (!convert (v, TD_F64, name, why) || !convert (next, TD_F64, name, why))
    return FALSE;
  for (size_t i = 0; i < v->bytes / sizeof (double); i++)
    ((double *)v->data)[i] += ((const double *)next->data)[i];
  return TRUE;
}

/* What a waiting parameter gets: the float that 16 bits are widened to, or theirs. */
static TdDtype
dtype_of (const TdWeightsArray *ours, const TdRecord *v)
{
  if (ours->ndim >= 0)
    return (TdDtype)ours->dtype;
  return v->dtype == TD_F16 || v->dtype == TD_BF16 ? TD_F32 : v->dtype;
}

static gboolean
make_of_theirs (const TdWeightsRow *row, const TdWeightsArray *ours,
                const TdWeightsFile *theirs, TdRecord *value, char **why)
{
  gboolean ok = read_source (theirs, row, 0, value, why);

  for (int k = 1; ok && k < row->n_theirs; k++)
    {
      TdRecord next = { 0 };

      ok = read_source (theirs, row, k, &next, why)
           && join (row->join, value, &next, ours->name, why);
      free (next.data);
    }
  ok = ok && (!row->gates || interleave (value))
       && convert (value, dtype_of (ours, value), ours->name, why);
  for (int d = 0; d < ours->ndim; d++)
    value->shape.dim[d] = ours->dims[d];
  value->shape.ndim = ours->ndim >= 0 ? ours->ndim : value->shape.ndim;
  return ok;
}

static gboolean
make_zeros (const TdWeightsArray *ours, TdRecord *value)
{
  value->kind = TD_RECORD_ARRAY;
  value->dtype = (TdDtype)ours->dtype;
  value->shape.ndim = ours->ndim;
  memcpy (value->shape.dim, ours->dims, sizeof value->shape.dim);
  value->bytes = (size_t)td_shape_size (&value->shape) * td_dtype_bytes (value->dtype);
  value->data = calloc (value->bytes + 1, 1);
  return value->data != NULL;
}

gboolean
td_weights_make (const TdWeights *weights, const TdWeightsRow *row, const TdWeightsFile *ours,
                 const TdWeightsFile *theirs, TdRecord *value, char **why)
{
  const TdWeightsArray *array = &g_array_index (ours->arrays, TdWeightsArray, row->ours);
  const char *reason = NULL;
  gboolean ok = TRUE;

  (void)weights;
  *value = (TdRecord){ .kind = TD_RECORD_NONE };
  *why = NULL;
  if (row->n_theirs > 0)
    ok = make_of_theirs (row, array, theirs, value, why);
  else if (row->zeros)
    ok = make_zeros (array, value);
  else if (ours->source != NULL)
    ok = ours->source->read (ours->source, array->name, value, &reason);
  if (ok)
    return TRUE;
  free (value->data);
  *value = (TdRecord){ .kind = TD_RECORD_NONE };
  if (*why == NULL)
    *why = g_strdup (reason != NULL ? reason : "no memory for it");
  return FALSE;
}
