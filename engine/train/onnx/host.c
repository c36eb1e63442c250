/* Numbers in host memory.
 *
 * SPDX-License-Identifier: MIT */
#include "host.h"

#include "compute/core/core.h"
#include "host-memory.h"
#include "train/serial/npy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct TdOnnxBlock
{
  struct TdOnnxBlock *next;
  _Alignas(16) char bytes[];
} TdOnnxBlock;

void *
td__onnx_alloc (TdOnnxArena *arena, size_t n, size_t size)
{
  TdOnnxBlock *b;

  if (size > 0 && n > (SIZE_MAX - sizeof *b) / size)
    td__out_of_host_memory (SIZE_MAX, __func__);
  b = td__xcalloc (1, sizeof *b + n * size);
  b->next = arena->blocks;
  arena->blocks = b;
  arena->bytes += n * size;
  return b->bytes;
}

void
td__onnx_arena_free (TdOnnxArena *arena)
{
  for (TdOnnxBlock *b = arena->blocks, *next; b != NULL; b = next)
    {
      next = b->next;
      free (b);
    }
  *arena = (TdOnnxArena){ NULL, 0 };
}

/* --- single numbers --- */

double
td__host_float (const TdOnnxHost *h, int64_t i)
{
  return h->f != NULL ? h->f[i] : (double)h->i[i];
}

static int64_t
whole (double value)
{
  return value >= 0x1p63 ? INT64_MAX : value >= -0x1p63 ? (int64_t)value : INT64_MIN;
}

int64_t
td__host_int (const TdOnnxHost *h, int64_t i)
{
  return h->i != NULL ? h->i[i] : whole (h->f[i]);
}

/* As the dtype can hold it. */
static double
rounded (double value, TdDtype dtype)
{
  return dtype == TD_F32 ? (double)(float)value : value;
}

static int64_t
wrapped (int64_t value, TdDtype dtype)
{
  return dtype == TD_I32    ? (int32_t)value
         : dtype == TD_U8   ? (uint8_t)value
         : dtype == TD_BOOL ? value != 0
                            : value;
}

/* --- arrays --- */

bool
td__host_holds (const TdShape *shape)
{
  size_t n;

  return td__shape_bytes (shape, TD_U8, &n) && n <= TD_ONNX_HOST_MOST;
}

TdOnnxHost *
td__host_new (TdOnnxArena *arena, TdDtype dtype, const TdShape *shape)
{
  TdOnnxHost *h;
  size_t bytes;

  if (!td__host_holds (shape) || arena->bytes > TD_ONNX_ARENA_MOST)
    return NULL;
  bytes = (size_t)td__size (shape);
  h = td__onnx_alloc (arena, 1, sizeof *h);
  h->dtype = dtype;
  h->shape = *shape;
  h->n = (int64_t)bytes;
  if (td__onnx_is_float (dtype))
    h->f = td__onnx_alloc (arena, bytes + 1, sizeof *h->f);
  else
    h->i = td__onnx_alloc (arena, bytes + 1, sizeof *h->i);
  return h;
}

double
td__host_element_of (const void *elements, TdDtype dtype, int64_t i)
{
  const size_t bytes = td_dtype_bytes (dtype);
  double aligned = 0;

  memcpy (&aligned, (const char *)elements + bytes * (size_t)i, bytes);
  return td__host_element (&aligned, dtype, 0);
}

TdOnnxHost *
td__host_from (TdOnnxArena *arena, TdDtype dtype, const TdShape *shape, const void *elements)
{
  TdOnnxHost *h = td__host_new (arena, dtype, shape);

  for (int64_t i = 0; h != NULL && i < h->n; i++)
    if (h->f != NULL)
      h->f[i] = td__host_element_of (elements, dtype, i);
    else if (dtype == TD_I64)
      memcpy (&h->i[i], (const char *)elements + 8 * i, 8);
    else
      h->i[i] = (int64_t)td__host_element_of (elements, dtype, i);
  return h;
}

void *
td__host_elements (TdOnnxArena *arena, const TdOnnxHost *h)
{
  TdNpy npy = { .dtype = h->f != NULL ? TD_F64 : TD_I64, .shape = h->shape };
  void *to = td__onnx_alloc (arena, (size_t)h->n + 1, td_dtype_bytes (h->dtype));

  td__npy_convert (&npy, h->f != NULL ? (const void *)h->f : (const void *)h->i, h->dtype, to);
  return to;
}

TdOnnxHost *
td__host_view (TdOnnxArena *arena, const TdOnnxHost *h, const TdShape *shape)
{
  TdOnnxHost *v = h != NULL ? td__onnx_alloc (arena, 1, sizeof *v) : NULL;

  if (v == NULL)
    return NULL;
  *v = *h;
  v->shape = *shape;
  return v;
}

TdOnnxHost *
td__host_cast (TdOnnxArena *arena, const TdOnnxHost *h, TdDtype dtype)
{
  TdOnnxHost *to = td__host_new (arena, dtype, &h->shape);

  for (int64_t i = 0; to != NULL && i < to->n; i++)
    if (to->f != NULL)
      to->f[i] = rounded (td__host_float (h, i), dtype);
    else if (dtype == TD_BOOL)
      to->i[i] = td__host_float (h, i) != 0;
    else
      to->i[i] = wrapped (td__host_int (h, i), dtype);
  return to;
}

TdOnnxHost *
td__host_gather (TdOnnxArena *arena, const TdOnnxHost *h, const TdShape *shape,
                 const int64_t *at)
{
  TdOnnxHost *to = td__host_new (arena, h->dtype, shape);

  for (int64_t i = 0; to != NULL && i < to->n; i++)
    if (at[i] >= 0 && to->f != NULL)
      to->f[i] = h->f[at[i]];
    else if (at[i] >= 0)
      to->i[i] = h->i[at[i]];
  return to;
}

TdOnnxHost *
td__host_ints (TdOnnxArena *arena, const int64_t *values, int n)
{
  const TdShape shape = { 1, { n } };
  TdOnnxHost *h = td__host_new (arena, TD_I64, &shape);

  for (int i = 0; h != NULL && i < n; i++)
    h->i[i] = values[i];
  return h;
}

/* Of each element of `shape` the one of an array of shape `from` that it is, broadcast. */
static int64_t *
places (TdOnnxArena *arena, const TdShape *from, const TdShape *shape, int64_t n)
{
  int64_t *at = td__onnx_alloc (arena, (size_t)n + 1, sizeof *at), index[TD_MAX_DIMS] = { 0 };
  int64_t step[TD_MAX_DIMS] = { 0 }, size = 1, place = 0;

  for (int d = from->ndim - 1; d >= 0; d--)
    {
      step[d + shape->ndim - from->ndim] = from->dim[d] > 1 ? size : 0;
      size *= from->dim[d];
    }
  for (int64_t i = 0; i < n; i++)
    {
      at[i] = place;
      for (int d = shape->ndim - 1; d >= 0; d--)
        {
          place += step[d];
          if (++index[d] < shape->dim[d])
            break;
          place -= step[d] * index[d];
          index[d] = 0;
        }
    }
  return at;
}

TdOnnxHost *
td__host_expand (TdOnnxArena *arena, const TdOnnxHost *h, const TdShape *shape)
{
  TdShape both;

  if (!td__shape_broadcast (&h->shape, shape, &both) || !td_shape_equal (&both, shape)
      || !td__host_holds (shape))
    return NULL;
  return td__host_gather (arena, h, shape, places (arena, &h->shape, shape, td__size (shape)));
}

TdOnnxHost *
td__host_binary (TdOnnxArena *arena, const TdOnnxHost *a, const TdOnnxHost *b,
                 const TdOnnxHostOp *op)
{
  const bool floats = a->f != NULL;
  TdOnnxHost *to;
  TdShape shape;

  if (a->dtype != b->dtype || (floats ? op->f == NULL : op->i == NULL)
      || !td__shape_broadcast (&a->shape, &b->shape, &shape)
      || (a = td__host_expand (arena, a, &shape)) == NULL
      || (b = td__host_expand (arena, b, &shape)) == NULL)
    return NULL;
  to = td__host_new (arena, op->is_bool ? TD_BOOL : a->dtype, &shape);
  for (int64_t i = 0; to != NULL && i < to->n; i++)
    if (to->f != NULL)
      to->f[i] = rounded (op->f (a->f[i], b->f[i]), to->dtype);
    else
      to->i[i] = wrapped (floats ? op->f (a->f[i], b->f[i]) != 0 : op->i (a->i[i], b->i[i]),
                          to->dtype);
  return to;
}
