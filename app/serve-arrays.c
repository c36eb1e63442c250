/* Arrays of requests: element types of the wire, shapes, and what fits an input.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const TdServeFormRow td_serve_forms[TD_SERVE_N_FORMS] = {
  [TD_SERVE_JSON] = { "application/json", td_serve_json_read, td_serve_json_write },
  [TD_SERVE_NPY] = { "application/x-npy", td_serve_npy_read, td_serve_npy_write },
};

bool
td_serve_refuse (char *why, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  vsnprintf (why, TD_SERVE_WHY, format, args);
  va_end (args);
  for (char *at = why; *at != '\0'; at++)
    if ((unsigned char)*at < ' ') /* of a name that a request has */
      *at = '?';
  return false;
}

TdDtype
td_serve_wire (TdDtype dtype)
{
  return dtype == TD_F16 || dtype == TD_BF16 ? TD_F32 : dtype;
}

int64_t
td_serve_elements (const TdShape *shape)
{
  int64_t n = 1;

  for (int d = 0; d < shape->ndim; d++)
    if (shape->dim[d] == 0) /* before others, whose product may be beyond all bounds */
      return 0;
  for (int d = 0; d < shape->ndim; d++)
    n *= shape->dim[d];
  return n;
}

const char *
td_serve_shape_text (int ndim, const int64_t *dim, char *text, size_t size)
{
  size_t used = (size_t)snprintf (text, size, ndim < 0 ? "(..." : "(");

  for (int d = 0; d < ndim && used < size; d++)
    if (dim[d] < 0)
      used += (size_t)snprintf (text + used, size - used, "%s?", d > 0 ? ", " : "");
    else
      used += (size_t)snprintf (text + used, size - used, "%s%lld", d > 0 ? ", " : "",
                                (long long)dim[d]);
  if (used < size)
    snprintf (text + used, size - used, ndim == 1 ? ",)" : ")");
  return text;
}

/* Numbers that are finite on the wire stay so in the model's narrower type: they are below the
 * middle between its largest number and what would come next. */
static bool
is_in_range (const TdOnnxInfo *port, const TdServeArray *a, char *why)
{
  const bool half = port->dtype == TD_F16;
  const float infinite = half ? 65520 : 0x1.FFp127f, *numbers = a->data;

  if (td_serve_wire (port->dtype) == port->dtype)
    return true;
  for (size_t i = 0; i < a->bytes / sizeof *numbers; i++)
    if (isfinite (numbers[i]) && fabsf (numbers[i]) >= infinite)
      return td_serve_refuse (
          why, "input %.100s, element %zu: a number that %s can hold expected, got %g",
          port->name, i, half ? "float16" : "bfloat16", (double)numbers[i]);
  return true;
}

bool
td_serve_fits (const TdOnnxInfo *port, const TdServeArray *a, char *why)
{
  char want[200], got[200];
  bool fits = port->ndim < 0 || port->ndim == a->shape.ndim;

  for (int d = 0; d < port->ndim && fits; d++)
    fits = port->dim[d] < 0 || port->dim[d] == a->shape.dim[d];
  if (!fits)
    return td_serve_refuse (why, "input %.100s of shape %s expected, got %s", port->name,
                            td_serve_shape_text (port->ndim, port->dim, want, sizeof want),
                            td_serve_shape_text (a->shape.ndim, a->shape.dim, got, sizeof got));
  if (td_serve_elements (&a->shape) == 0)
    return td_serve_refuse (why, "input %.100s has no elements: %s", port->name,
                            td_serve_shape_text (a->shape.ndim, a->shape.dim, got, sizeof got));
  return is_in_range (port, a, why);
}

/* Axes of the earlier inputs that have the name of axis d of input i, and another size. */
static bool
agrees_with_earlier (const TdOnnxInfo *ports, const TdServeArray *arrays, int i, int d,
                     char *why)
{
  for (int j = 0; j <= i; j++)
    for (int c = 0; arrays[j].data != NULL && c < (j < i ? ports[j].ndim : d); c++)
      if (ports[j].symbol[c] != NULL && strcmp (ports[j].symbol[c], ports[i].symbol[d]) == 0
          && arrays[j].shape.dim[c] != arrays[i].shape.dim[d])
        return td_serve_refuse (
            why, "input %.100s: %.60s of %lld expected, as in input %.100s, got %lld",
            ports[i].name, ports[i].symbol[d], (long long)arrays[j].shape.dim[c], ports[j].name,
            (long long)arrays[i].shape.dim[d]);
  return true;
}

bool
td_serve_sizes_agree (const TdOnnxInfo *ports, const TdServeArray *arrays, int n, char *why)
{
  for (int i = 0; i < n; i++)
    for (int d = 0; arrays[i].data != NULL && d < ports[i].ndim; d++)
      if (ports[i].symbol[d] != NULL && !agrees_with_earlier (ports, arrays, i, d, why))
        return false;
  return true;
}

int64_t
td_serve_rows (const TdServeArray *arrays, int n)
{
  int64_t rows = 0;

  for (int i = 0; i < n; i++)
    {
      const int64_t here = arrays[i].shape.ndim > 0 ? arrays[i].shape.dim[0] : 0;

      if (here == 0 || (i > 0 && here != rows))
        return 0;
      rows = here;
    }
  return rows;
}

int64_t
td_serve_rows_given (const TdServePorts *p, const TdServeArray *in)
{
  for (int i = p->n_needed; i < p->n_in; i++)
    if (in[i].data != NULL)
      return 0;
  return td_serve_rows (in, p->n_needed);
}

void
td_serve_clear (TdServeArray *arrays, int n)
{
  for (int i = 0; i < n; i++)
    {
      free (arrays[i].data);
      arrays[i] = (TdServeArray){ .data = NULL };
    }
}
