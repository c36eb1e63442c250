/* Shapes: sizes, text, broadcasting, axes; names and sizes of element types.
 *
 * SPDX-License-Identifier: MIT */
#include "core.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static_assert (TD_F32 == 0 && TD_F64 == 1 && TD_F16 == 2 && TD_BF16 == 3 && TD_I32 == 4
                   && TD_I64 == 5 && TD_U8 == 6 && TD_BOOL == TD__N_DTYPES - 1,
               "the order of base/dtype.c");

size_t
td_dtype_bytes (TdDtype dtype)
{
  return (unsigned)dtype < TD_ARRAY_LENGTH (td__dtype_sizes) ? td__dtype_sizes[dtype] : 0;
}

const char *
td_dtype_name (TdDtype dtype)
{
  return (unsigned)dtype < TD_ARRAY_LENGTH (td__dtype_short_names)
             ? td__dtype_short_names[dtype]
             : "?";
}

int64_t
td_shape_size (const TdShape *shape)
{
  int64_t n = 1;

  if (shape == NULL)
    return 0;
  for (int i = 0; i < shape->ndim; i++)
    n *= shape->dim[i];
  return n;
}

bool
td_shape_equal (const TdShape *a, const TdShape *b)
{
  if (a == NULL || b == NULL)
    return a == b;
  if (a->ndim != b->ndim)
    return false;
  for (int i = 0; i < a->ndim; i++)
    if (a->dim[i] != b->dim[i])
      return false;
  return true;
}

const char *
td_shape_text (const TdShape *shape, char *text, size_t size)
{
  size_t used = 0;

  if (text == NULL || size == 0)
    return "";
  if (shape == NULL)
    {
      snprintf (text, size, "no shape");
      return text;
    }
  if (shape->ndim < 0 || shape->ndim > TD_MAX_DIMS)
    {
      snprintf (text, size, "%d axes", shape->ndim);
      return text;
    }
  for (int i = 0; i <= shape->ndim && used < size; i++)
    {
      int n = i == shape->ndim ? snprintf (text + used, size - used, i == 0 ? "()" : ")")
                               : snprintf (text + used, size - used, "%s%" PRId64,
                                           i == 0 ? "(" : ", ", shape->dim[i]);
      used += (size_t)(n > 0 ? n : 0);
    }
  return text;
}

/* Sizes are limited to 2^46 bytes, so that no product of theirs in a kernel can overflow. */
bool
td__shape_bytes (const TdShape *shape, TdDtype dtype, size_t *bytes)
{
  int64_t n = (int64_t)td_dtype_bytes (dtype);

  if (n == 0 || shape->ndim < 0 || shape->ndim > TD_MAX_DIMS)
    return false;
  *bytes = 0;
  for (int i = 0; i < shape->ndim; i++)
    if (shape->dim[i] < 0)
      return false;
  for (int i = 0; i < shape->ndim; i++)
    if (shape->dim[i] == 0)
      return true;
  for (int i = 0; i < shape->ndim; i++)
    if (__builtin_mul_overflow (n, shape->dim[i], &n) || n > (int64_t)1 << 46)
      return false;
  *bytes = (size_t)n;
  return true;
}

bool
td__shape_broadcast (const TdShape *a, const TdShape *b, TdShape *out)
{
  int ndim = a->ndim > b->ndim ? a->ndim : b->ndim;

  out->ndim = ndim;
  for (int i = 1; i <= ndim; i++)
    {
      int64_t da = i <= a->ndim ? a->dim[a->ndim - i] : 1;
      int64_t db = i <= b->ndim ? b->dim[b->ndim - i] : 1;

      if (da != db && da != 1 && db != 1)
        return false;
      out->dim[ndim - i] = da == 1 ? db : da;
    }
  return true;
}

int
td__axis (int axis, int ndim)
{
  if (axis < -ndim || axis >= ndim)
    return -1;
  return axis < 0 ? axis + ndim : axis;
}
