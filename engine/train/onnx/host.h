/* Numbers in host memory: what shapes are computed with, and what attributes hold.
 *
 * Integers and truth values are kept as int64_t, floating-point numbers as double, whatever
 * their dtype is.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tapedeck-op.h"

enum
{
  TD_ONNX_HOST_MOST = 1 << 22, /* elements: more are no shape */
  TD_ONNX_ARENA_MOST = 1 << 30 /* bytes of all numbers of a call, or of a file's constants */
};

typedef struct TdOnnxHost
{
  TdDtype dtype;
  TdShape shape;
  int64_t n;
  int64_t *i; /**< or NULL */
  double *f;  /**< or NULL */
} TdOnnxHost;

/** Memory that is freed at once: of a graph, of a call. */
typedef struct TdOnnxArena
{
  struct TdOnnxBlock *blocks;
  size_t bytes;
} TdOnnxArena;
/** n elements of size bytes, zeroed.  *Owner*: the arena. */
void *td__onnx_alloc (TdOnnxArena *arena, size_t n, size_t size);
void td__onnx_arena_free (TdOnnxArena *arena);

static inline bool
td__onnx_is_float (TdDtype dtype)
{
  return dtype <= TD_BF16;
}
/** NULL: there are too many.  *Owner*: the arena, as of all below, which give NULL then, too.
 */
TdOnnxHost *td__host_new (TdOnnxArena *arena, TdDtype dtype, const TdShape *shape);
/** Element i as a number, of elements that may lie anywhere, as those in a file do. */
double td__host_element_of (const void *elements, TdDtype dtype, int64_t i);
/** From elements as an array has them, wherever they lie. */
TdOnnxHost *td__host_from (TdOnnxArena *arena, TdDtype dtype, const TdShape *shape,
                           const void *elements);
/** Elements as an array has them. */
void *td__host_elements (TdOnnxArena *arena, const TdOnnxHost *h);
/** Element i as a number of either kind. */
double td__host_float (const TdOnnxHost *h, int64_t i);
int64_t td__host_int (const TdOnnxHost *h, int64_t i);
/** The same numbers in another shape of as many elements. */
TdOnnxHost *td__host_view (TdOnnxArena *arena, const TdOnnxHost *h, const TdShape *shape);
TdOnnxHost *td__host_cast (TdOnnxArena *arena, const TdOnnxHost *h, TdDtype dtype);
/** Element to takes that of `from` at at[i]; -1 leaves 0. */
TdOnnxHost *td__host_gather (TdOnnxArena *arena, const TdOnnxHost *h, const TdShape *shape,
                             const int64_t *at);
/** Few enough to be kept as numbers? */
bool td__host_holds (const TdShape *shape);
/** Repeated along axes of size 1.  NULL: the shapes do not allow it. */
TdOnnxHost *td__host_expand (TdOnnxArena *arena, const TdOnnxHost *h, const TdShape *shape);
/** Vectors of int64. */
TdOnnxHost *td__host_ints (TdOnnxArena *arena, const int64_t *values, int n);

/** One function on two numbers; integers and floats apart.  NULL: not defined. */
typedef struct TdOnnxHostOp
{
  int64_t (*i) (int64_t a, int64_t b);
  double (*f) (double a, double b);
  bool is_bool; /**< its results are truth values */
} TdOnnxHostOp;
/** Broadcast as NumPy does.  NULL: dtypes or shapes do not fit, or division by 0. */
TdOnnxHost *td__host_binary (TdOnnxArena *arena, const TdOnnxHost *a, const TdOnnxHost *b,
                             const TdOnnxHostOp *op);
