/* The option `axes`: which axes of the arguments are symbols.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-sizes.h"

#include "../links/object.h"
#include "export.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  FIRST_PRIME = 101 /* few sizes of models are prime and larger */
};

int64_t
td__onnx_prime (int k)
{
  for (int64_t n = FIRST_PRIME;; n += 2)
    {
      bool is_prime = true;

      for (int64_t d = 3; d * d <= n && is_prime; d += 2)
        is_prime = n % d != 0;
      if (is_prime && k-- == 0)
        return n;
    }
}

/* Are all numbers of a constant the same, so that it can have another size? */
static bool
is_uniform (const TdSchedule *s, uint32_t node)
{
  const size_t bytes = td__dtype_sizes[s->nodes[node].dtype];
  const int64_t n = td__size (&s->nodes[node].shape);
  char *numbers;
  bool same = n > 0 && td__node_value (s, node)->kind == TD_VALUE_CONSTANT
              && s->constants[td__node_value (s, node)->index].buffer->device->computes;

  if (!same)
    return false;
  numbers = td__export_numbers (s, node, NULL);
  if (numbers == NULL)
    return false;
  for (int64_t i = 1; i < n && same; i++)
    same = memcmp (numbers, numbers + (size_t)i * bytes, bytes) == 0;
  free (numbers);
  return same;
}

static bool
has_name (const TdOnnxSizes *z, uint32_t node, int axis)
{
  for (int i = 0; i < z->n_symbols; i++)
    if (z->symbols[i].node == node && z->symbols[i].axis == axis)
      return true;
  for (uint32_t i = 0; i < z->n_more; i++)
    if (z->more[i].node == node && z->more[i].axis == axis)
      return true;
  return false;
}

/* Axis `axis` of an argument is this symbol, a new one or one that is there. */
static const char *
add_axis (TdOnnxSizes *z, uint32_t argument, int axis, const char *name)
{
  const uint32_t node = z->s->externals[argument].node;
  const int64_t was = z->s->nodes[node].shape.dim[axis];
  TdOnnxSymbol *symbol = &z->symbols[z->n_symbols];

  if (has_name (z, node, axis))
    return "an axis with two names";
  for (int i = 0; i < z->n_symbols; i++)
    if (strcmp (z->symbols[i].name, name) == 0)
      {
        if (z->symbols[i].v[0] != was)
          return "two axes of one name, and of two sizes";
        z->more = td__xrealloc (z->more, (z->n_more + 1) * sizeof *z->more);
        z->more[z->n_more++] = (struct TdOnnxMore){ node, axis, i };
        return NULL;
      }
  if (z->n_symbols == TD_ONNX_SYMBOLS)
    return "more than 8 names";
  if (was == 0)
    return "an axis of no elements, which may be any";
  snprintf (symbol->name, sizeof symbol->name, "%s", name);
  symbol->v[0] = was;
  symbol->v[1] = td__onnx_prime (2 * z->n_symbols);
  symbol->v[2] = td__onnx_prime (2 * z->n_symbols + 1);
  symbol->node = node;
  symbol->axis = axis;
  z->n_symbols++;
  return NULL;
}

/* The argument whose name, or number, are these n bytes; n_arguments: none. */
static uint32_t
find_argument (const TdOnnxSizes *z, const char *const *named, const char *text, size_t n)
{
  const bool number = n > 0 && n < 6 && strspn (text, "0123456789") >= n;

  for (uint32_t i = 0; i < z->s->n_arguments; i++)
    if ((named[i] != NULL && strlen (named[i]) == n && strncmp (named[i], text, n) == 0)
        || (number && strtoul (text, NULL, 10) == i))
      return i;
  return z->s->n_arguments;
}

/* Is it a name, and no number or formula, which sizes of the file are as well? */
static bool
is_name (const char *text)
{
  if (isdigit ((unsigned char)*text))
    return false;
  while (isalnum ((unsigned char)*text) || *text == '_')
    text++;
  return *text == '\0';
}

/* "x:0=batch": one axis; *at goes behind it.  NULL, or what is wrong. */
static const char *
read_axis (TdOnnxSizes *z, const char *const *named, const char **at)
{
  const size_t n = strcspn (*at, ":=,");
  const uint32_t argument = find_argument (z, named, *at, n);
  char name[sizeof z->symbols->name];
  char *end;
  long axis;
  size_t length;

  if ((*at)[n] != ':' || !isdigit ((unsigned char)(*at)[n + 1]))
    return "ARGUMENT:AXIS=NAME expected";
  if (argument == z->s->n_arguments || z->s->externals[argument].node >= z->s->n_nodes)
    return "no argument of that name or number";
  axis = strtol (*at + n + 1, &end, 10);
  length = *end == '=' ? strcspn (end + 1, ",") : 0;
  if (length == 0 || length >= sizeof name)
    return "ARGUMENT:AXIS=NAME expected, with a name of at most 63 characters";
  if (axis >= z->s->nodes[z->s->externals[argument].node].shape.ndim)
    return "the argument has no such axis";
  memcpy (name, end + 1, length);
  name[length] = '\0';
  if (!is_name (name))
    return "a name has letters, digits and _, and no digit first";
  *at = end + 1 + length;
  return add_axis (z, argument, (int)axis, name);
}

/* The first argument that has an axis 0 names it; those of others follow. */
static void
batch (TdOnnxSizes *z)
{
  z->opens_arguments = true;
  for (uint32_t i = 0; i < z->s->n_arguments && z->n_symbols == 0; i++)
    if (z->s->externals[i].node < z->s->n_nodes
        && z->s->nodes[z->s->externals[i].node].shape.ndim > 0)
      {
        add_axis (z, i, 0, "batch");
        return;
      }
}

TdStatus
td__onnx_sizes_begin (TdOnnxSizes *z, const TdSchedule *s, const char *axes,
                      const char *const *named, const char *call, const TdSite *site)
{
  const char *wrong = NULL;

  *z = (TdOnnxSizes){ .s = s };
  z->of = td__xcalloc (s->n_nodes + 1, sizeof *z->of);
  z->depends = td__xcalloc (s->n_nodes + 1, sizeof *z->depends);
  z->is_uniform = td__xcalloc (s->n_nodes + 1, sizeof *z->is_uniform);
  if (axes == NULL)
    batch (z);
  else
    for (const char *at = axes; *at != '\0' && wrong == NULL; at += *at == ',')
      wrong = read_axis (z, named, &at);
  if (wrong != NULL)
    return td__fail (TD_ERR_ARG, call, site, "axes \"%.200s\": %s", axes, wrong);
  /* With a batch of one, what is 1 is a number while that is possible. */
  for (int i = 0; i < z->n_symbols; i++)
    z->numbers_first = z->numbers_first || z->symbols[i].v[0] == 1;
  for (uint32_t n = 0; n < s->n_nodes && z->n_symbols > 0; n++)
    z->is_uniform[n] = is_uniform (s, n);
  return TD_OK;
}

const char *
td__onnx_sizes_stays (const TdOnnxSizes *z, uint32_t argument)
{
  const uint32_t node = z->s->externals[argument].node;

  if (!z->opens_arguments || z->n_symbols == 0 || z->symbols[0].why[0] != '\0'
      || node >= z->s->n_nodes || z->s->nodes[node].shape.ndim == 0
      || z->s->nodes[node].shape.dim[0] != z->symbols[0].v[0] || z->of[node][0].mask != 0)
    return NULL;
  for (uint32_t i = 0; i < argument; i++)
    if (z->s->externals[i].node == node)
      return NULL;
  for (uint32_t i = 0; i < z->n_stays; i++)
    if (z->stays[i].node == node && z->stays[i].axis == 0)
      return z->stays[i].why;
  return "what computes with it has that size";
}

void
td__onnx_sizes_free (TdOnnxSizes *z)
{
  free (z->stays);
  free (z->of);
  free (z->depends);
  free (z->is_uniform);
  free (z->decided);
  free (z->more);
}
