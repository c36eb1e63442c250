/* Numbers of an operation that may be a size: how many classes, how much padding, a window over
 * all of an axis, where a range begins.  Written as numbers they are right for the size that
 * there was alone.
 *
 * Where a size was 1 nothing is said of them: that number is no sign of a size.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-size-numbers.h"

#include "export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const TdOnnxSize *
sizes_in (const TdOnnxSizes *z, const TdStep *step, uint32_t i)
{
  return z->of[td__step_in (z->s, step, i)];
}

/* Symbols that were as large as a number. */
static uint64_t
symbols_like (const TdOnnxSizes *z, int64_t n)
{
  uint64_t mask = 0;

  for (int i = 0; i < z->n_symbols; i++)
    if (n > 1 && z->symbols[i].why[0] == '\0' && z->symbols[i].v[0] == n)
      mask |= (uint64_t)1 << i;
  return mask;
}

const char *
td__onnx_number_padding (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  int64_t pairs[2 * TD_MAX_DIMS];
  const int n = td__export_ints (step, "pad_width", pairs, 2 * TD_MAX_DIMS);

  for (int i = 0; i < n; i++)
    *mask
        |= (pairs[i] != 0 ? sizes_in (z, step, 0)[i / 2].mask : 0) | symbols_like (z, pairs[i]);
  return *mask != 0 ? "pads it, or by as many as it was" : NULL;
}

const char *
td__onnx_number_classes (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  *mask = symbols_like (z, (int64_t)td__export_number (step, "n_classes", 0));
  return *mask != 0 ? "has as many classes as it was" : NULL;
}

const char *
td__onnx_number_images (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  int64_t size[TD_MAX_DIMS];
  const int n = td__export_ints (step, td__export_has (step, "size") ? "size" : "output_shape",
                                 size, TD_MAX_DIMS);

  for (int i = 0; i < n; i++)
    *mask |= symbols_like (z, size[i]);
  return *mask != 0 ? "has a size as a number that may be it" : NULL;
}

/* Over all of an axis that follows: the code may have taken it from there. */
const char *
td__onnx_number_window (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  int64_t windows[TD_MAX_DIMS];
  const int n = td__export_ints (step, "ksize", windows, TD_MAX_DIMS);
  const TdOnnxSize *x = sizes_in (z, step, 0) + 2; /* behind the batch and channels */

  for (int i = 0; i < z->s->nodes[td__step_in (z->s, step, 0)].shape.ndim - 2 && n > 0; i++)
    if (windows[n == 1 ? 0 : i] > 1 && windows[n == 1 ? 0 : i] == x[i].v[0])
      *mask |= x[i].mask;
  return *mask != 0 ? "has a window that is as large" : NULL;
}

/* --- ranges --- */

static const TdStep *
maker_of (const TdOnnxSizes *z, uint32_t node)
{
  for (uint32_t i = 0; i < z->s->forward.n; i++)
    for (uint32_t k = 0; k < z->s->forward.steps[i].n_out; k++)
      if (td__step_out (z->s, &z->s->forward.steps[i], k) == node)
        return &z->s->forward.steps[i];
  return NULL;
}

static bool
is_range (const TdStep *step)
{
  return step != NULL && step->kind == TD_STEP_FILL && step->how.origin == TD_ARRAY_ARANGE;
}

static bool
is_op (const TdStep *step, const char *op)
{
  return step != NULL && step->kind == TD_STEP_OP && strcmp (step->cls->name, op) == 0;
}

/* i + offset >= j, of rows and columns: td_causal_mask.  The offset is how many columns are
 * more than rows, and must stay that. */
const char *
td__onnx_number_mask (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask)
{
  const TdStep *rows = maker_of (z, td__step_in (z->s, step, 0)),
               *columns = maker_of (z, td__step_in (z->s, step, 1)), *from = NULL;
  const TdOnnxSize *n_rows, *n_columns;
  int64_t offset;

  if (is_op (rows, "reshape"))
    rows = maker_of (z, td__step_in (z->s, rows, 0));
  if (is_op (rows, "add_scalar"))
    from = maker_of (z, td__step_in (z->s, rows, 0));
  if (!is_range (from) || !is_range (columns))
    return NULL;
  n_rows = &sizes_in (z, rows, 0)[0];
  n_columns = &sizes_in (z, step, 1)[0];
  offset = n_columns->v[0] - n_rows->v[0];
  if (((n_rows->mask | n_columns->mask) >> TD_ONNX_SYMBOLS) != 0 /* not decided yet */
      || td__export_number (rows, "value", 0) != (double)offset)
    return NULL;
  for (int j = 1; j < TD_ONNX_SAMPLES; j++)
    if (n_columns->v[j] - n_rows->v[j] != offset)
      *mask = n_rows->mask | n_columns->mask;
  return *mask != 0 ? "has keys less queries as a number" : NULL;
}

/* From 0, or from a small number as the first position is, by whole numbers: with another size
 * it goes on.  One that begins or ends by the size, or has steps that are parts of it, does not
 * follow. */
bool
td__onnx_number_goes_on (const TdOnnxSizes *z, const TdStep *step)
{
  const double from = step->how.a, by = step->how.b;

  if (!is_range (step))
    return true;
  if (from < 0 || by < 1 || from != nearbyint (from) || by != nearbyint (by))
    return false;
  for (int i = 0; i < z->n_symbols && from > 0; i++)
    if (z->symbols[i].why[0] == '\0' && from >= (double)z->symbols[i].v[0] - 1)
      return false;
  return true;
}
