/* Requests and answers as NumPy's npy files: the arrays behind each other, in the model's
 * order, as numpy.save writes them to one file.
 *
 * SPDX-License-Identifier: MIT */
#define TD_NO_SITES
#include "serve.h"

#include "train/serial/npy.h"

#include <stdlib.h>
#include <string.h>

static bool
read_one (const TdOnnxInfo *port, const char *body, size_t n, TdServeArray *to, size_t *used,
          char *why)
{
  const TdDtype dtype = td_serve_wire (port->dtype);
  const char *wrong;
  void *elements;
  int64_t at, n_elements;
  size_t bytes;
  TdNpy npy;

  if (!td__npy_parse_first (body, n, &npy, &bytes, &wrong))
    return td_serve_refuse (why, "input %.100s: %s", port->name, wrong);
  n_elements = td_serve_elements (&npy.shape);
  /* The body may lie anywhere, elements may not. */
  elements = malloc (bytes - npy.offset + 1);
  to->dtype = dtype;
  to->shape = npy.shape;
  to->bytes = (size_t)n_elements * td_dtype_bytes (dtype);
  to->data = malloc (to->bytes + 1);
  if (elements == NULL || to->data == NULL)
    {
      free (elements);
      return td_serve_refuse (why, "no memory");
    }
  memcpy (elements, body + npy.offset, bytes - npy.offset);
  if (td__npy_misfit (npy.dtype, elements, n_elements, dtype, &at))
    {
      free (elements);
      return td_serve_refuse (why, "input %.100s: element %lld of %s does not fit %s",
                              port->name, (long long)at, td_dtype_name (npy.dtype),
                              td_dtype_name (dtype));
    }
  td__npy_convert (&npy, elements, dtype, to->data);
  free (elements);
  *used = bytes;
  return true;
}

bool
td_serve_npy_read (const TdServePorts *p, const char *body, size_t n, TdServeArray *in,
                   char *why)
{
  size_t used = 0;

  for (int i = 0; i < p->n_in; i++)
    {
      if (n == 0 && p->in[i].is_optional)
        break;
      if (n == 0)
        return td_serve_refuse (why,
                                "input %.100s is missing: %d npy files behind each other "
                                "expected",
                                p->in[i].name, p->n_in);
      if (!read_one (&p->in[i], body, n, &in[i], &used, why))
        return false;
      body += used;
      n -= used;
    }
  return n == 0
         || td_serve_refuse (why, "%zu bytes too many behind the last of %d npy files", n,
                             p->n_in);
}

char *
td_serve_npy_write (const TdServePorts *p, const TdServeArray *out, size_t *n)
{
  char *text = NULL, *longer;
  size_t used = 0;

  for (int k = 0; k < p->n_out; k++)
    {
      size_t bytes;
      void *npy = td__npy_format (out[k].dtype, &out[k].shape, out[k].data, &bytes);

      longer = realloc (text, used + bytes);
      if (longer == NULL)
        {
          free (npy);
          free (text);
          return NULL;
        }
      text = longer;
      memcpy (text + used, npy, bytes);
      used += bytes;
      free (npy);
    }
  *n = used;
  return text != NULL ? text : calloc (1, 1);
}
