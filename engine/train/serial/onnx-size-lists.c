/* Sizes as values of an ONNX graph: constants, or computed from the shapes of its inputs.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-fields.h"
#include "onnx.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum
{
  TEXT = TD_ONNX_TEXT
};

int64_t
td__onnx_fixed (TdOnnx *o, const TdStep *step, uint32_t node, int axis)
{
  td__onnx_sizes_fix (&o->sizes, o->sizes.of[node][axis].mask, step,
                      "is written by its number");
  return o->s->nodes[node].shape.dim[axis];
}

/* to = type (a, b). */
static void
two (TdOnnx *o, const char *type, const char *a, const char *b, char *to)
{
  TdOnnxNodeWriter n = td__onnx_node (o, type, NULL);

  td__onnx_in (&n, a);
  td__onnx_in (&n, b);
  td__onnx_out (&n, td__onnx_made (o, to, TEXT));
  td__onnx_end (&n);
}

/* What a symbol stands for: the size of an axis of an input, in the shape (1). */
static const char *
symbol_value (TdOnnx *o, int i)
{
  const TdOnnxSymbol *symbol = &o->sizes.symbols[i];
  TdOnnxNodeWriter n;

  if (o->symbol[i] != NULL)
    return o->symbol[i];
  o->symbol[i] = td__onnx_name_take (&o->values, symbol->name);
  n = td__onnx_node (o, "Shape", NULL);
  td__onnx_in_node (&n, symbol->node);
  td__onnx_int (&n, "start", symbol->axis);
  td__onnx_int (&n, "end", symbol->axis + 1);
  td__onnx_out (&n, o->symbol[i]);
  td__onnx_end (&n);
  return o->symbol[i];
}

/* One size, in the shape (1). */
static void
size_value (TdOnnx *o, const TdOnnxSize *s, char *to)
{
  char number[TEXT], before[TEXT];
  bool any = false;

  if (s->mask == 0)
    {
      td__onnx_constant_ints (o, s->v, 1, to, TEXT);
      return;
    }
  if (!s->known)
    td__onnx_sizes_fix (&o->sizes, s->mask, o->step, "has a size that no sum or product says");
  for (int i = 0; i < o->sizes.n_symbols; i++)
    if (s->mask >> i & 1)
      {
        const char *value = symbol_value (o, i);

        if (any)
          two (o, "Mul", strcpy (before, to), value, to);
        else
          snprintf (to, TEXT, "%s", value);
        any = true;
      }
  if (s->times != 1)
    two (o, "Mul", strcpy (before, to),
         td__onnx_constant_ints (o, &s->times, 1, number, sizeof number), to);
  if (s->fixed != 0)
    two (o, "Add", strcpy (before, to),
         td__onnx_constant_ints (o, &s->fixed, 1, number, sizeof number), to);
}

const char *
td__onnx_size_list (TdOnnx *o, const TdOnnxSize *sizes, int n, char *text, size_t size)
{
  int64_t numbers[2 * TD_MAX_DIMS];
  char parts[2 * TD_MAX_DIMS][TEXT];
  uint64_t mask = 0;
  TdOnnxNodeWriter list;

  for (int d = 0; d < n; d++)
    {
      numbers[d] = sizes[d].v[0];
      mask |= sizes[d].mask;
    }
  if (mask == 0)
    return td__onnx_constant_ints (o, numbers, n, text, size);
  for (int d = 0; d < n; d++)
    size_value (o, &sizes[d], parts[d]);
  list = td__onnx_node (o, "Concat", NULL);
  for (int d = 0; d < n; d++)
    td__onnx_in (&list, parts[d]);
  td__onnx_int (&list, "axis", 0);
  td__onnx_out (&list, td__onnx_made (o, text, size));
  td__onnx_end (&list);
  return text;
}

const char *
td__onnx_zeros (TdOnnx *o, TdDtype dtype, const TdOnnxSize *sizes, int n, char *text,
                size_t size)
{
  char zero[TEXT], list[TEXT];
  TdOnnxNodeWriter node;

  td__onnx_constant_number (o, 0, dtype, zero, sizeof zero);
  td__onnx_size_list (o, sizes, n, list, sizeof list);
  node = td__onnx_node (o, "Expand", NULL);
  td__onnx_in (&node, zero);
  td__onnx_in (&node, list);
  td__onnx_out (&node, td__onnx_made (o, text, size));
  td__onnx_end (&node);
  return text;
}

const char *
td__onnx_shape_of (TdOnnx *o, uint32_t node, char *text, size_t size)
{
  return td__onnx_size_list (o, o->sizes.of[node], o->s->nodes[node].shape.ndim, text, size);
}

bool
td__onnx_has_none (const TdOnnx *o, const char *list)
{
  for (int i = 0; i < TD_ONNX_NONES; i++)
    if (strcmp (o->none[i], list) == 0)
      return true;
  return false;
}

/* Where a size is one of the array's, at the same place, 0 says so; one size may be -1.  An
 * array of no elements has its sizes as they are. */
const char *
td__onnx_reshape_list (TdOnnx *o, const TdOnnxSize *from, int n_from, const TdOnnxSize *sizes,
                       int n, char *text, size_t size)
{
  int64_t numbers[2 * TD_MAX_DIMS];
  int n_open = 0;
  bool empty = false;

  for (int d = 0; d < n; d++)
    {
      numbers[d] = sizes[d].v[0];
      empty = empty || numbers[d] == 0;
      if (sizes[d].mask != 0 && d < n_from && from[d].mask != 0
          && td__onnx_size_same (&sizes[d], &from[d]))
        numbers[d] = 0;
      else if (sizes[d].mask != 0)
        {
          numbers[d] = -1;
          n_open++;
        }
    }
  if (empty)
    {
      td__onnx_size_list (o, sizes, n, text, size);
      snprintf (o->none[o->n_nones++ % TD_ONNX_NONES], TD_ONNX_TEXT, "%s", text);
      return text;
    }
  if (n_open > 1)
    return td__onnx_size_list (o, sizes, n, text, size);
  return td__onnx_constant_ints (o, numbers, n, text, size);
}

const char *
td__onnx_size_number (TdOnnx *o, const TdOnnxSize *s, TdDtype dtype, char *text, size_t size)
{
  char value[TEXT], scalar[TEXT], none[TEXT];
  TdOnnxNodeWriter n;

  if (s->mask == 0)
    return td__onnx_constant_number (o, (double)s->v[0], dtype, text, size);
  size_value (o, s, value);
  two (o, "Reshape", value, td__onnx_constant_ints (o, NULL, 0, none, sizeof none), scalar);
  n = td__onnx_node (o, "Cast", NULL);
  td__onnx_in (&n, scalar);
  td__onnx_int (&n, "to", td__onnx_dtype ((int)dtype));
  td__onnx_out (&n, td__onnx_made (o, text, size));
  td__onnx_end (&n);
  return text;
}
