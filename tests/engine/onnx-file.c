/* ONNX files as tests want them.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
names (TdMessage *m, unsigned field, const char *list)
{
  char copy[300];

  snprintf (copy, sizeof copy, "%s", list);
  for (char *at = strtok (copy, " "); at != NULL; at = strtok (NULL, " "))
    td__message_text (m, field, strcmp (at, "-") == 0 ? "" : at);
}

void
onnx_node (OnnxFile *f, const char *name, const char *type, const char *domain, const char *in,
           const char *out, const char *attribute, int64_t value)
{
  TdMessage m = { NULL, 0, 0 }, a = { NULL, 0, 0 };

  names (&m, 1, in);
  names (&m, 2, out);
  td__message_text (&m, 3, name);
  td__message_text (&m, 4, type);
  if (attribute != NULL)
    {
      td__message_text (&a, 1, attribute);
      td__message_int (&a, 3, value);
      td__message_int (&a, 20, 2);
      td__message_nest (&m, 5, &a);
    }
  if (domain != NULL)
    td__message_text (&m, 7, domain);
  td__message_nest (&f->graph, 1, &m);
}

static TdMessage
tensor (const char *name, int type, const int64_t *dims, int n_dims)
{
  TdMessage t = { NULL, 0, 0 };

  for (int d = 0; d < n_dims; d++)
    td__message_int (&t, 1, dims[d]);
  td__message_int (&t, 2, type);
  td__message_text (&t, 8, name);
  return t;
}

void
onnx_initializer (OnnxFile *f, const char *name, int type, const int64_t *dims, int n_dims,
                  const void *bytes, size_t n)
{
  TdMessage t = tensor (name, type, dims, n_dims);

  td__message_bytes (&t, 9, bytes, n);
  td__message_nest (&f->graph, 5, &t);
}

static void
entry (TdMessage *t, const char *key, const char *value)
{
  TdMessage e = { NULL, 0, 0 };

  td__message_text (&e, 1, key);
  td__message_text (&e, 2, value);
  td__message_nest (t, 13, &e);
}

void
onnx_external (OnnxFile *f, const char *name, const int64_t *dims, int n_dims,
               const char *location, const char *offset)
{
  TdMessage t = tensor (name, 1, dims, n_dims);

  entry (&t, "location", location);
  entry (&t, "offset", offset);
  td__message_int (&t, 14, 1);
  td__message_nest (&f->graph, 5, &t);
}

static void
port (OnnxFile *f, unsigned field, const char *name, int element, const int64_t *dims,
      int n_dims)
{
  TdMessage info = { NULL, 0, 0 }, type = info, array = info, shape = info;

  for (int d = 0; d < n_dims; d++)
    {
      TdMessage dim = { NULL, 0, 0 };

      if (dims[d] < 0)
        td__message_text (&dim, 2, "batch");
      else
        td__message_int (&dim, 1, dims[d]);
      td__message_nest (&shape, 1, &dim);
    }
  td__message_int (&array, 1, element);
  if (n_dims >= 0)
    td__message_nest (&array, 2, &shape);
  td__message_nest (&type, 1, &array);
  td__message_text (&info, 1, name);
  td__message_nest (&info, 2, &type);
  td__message_nest (&f->graph, field, &info);
}

void
onnx_input (OnnxFile *f, const char *name, const int64_t *dims, int n_dims)
{
  onnx_input_of (f, name, 1, dims, n_dims);
}

void
onnx_input_of (OnnxFile *f, const char *name, int element, const int64_t *dims, int n_dims)
{
  port (f, 11, name, element, dims, n_dims);
}

void
onnx_output (OnnxFile *f, const char *name)
{
  port (f, 12, name, 1, NULL, -1);
}

TdMessage
onnx_model (OnnxFile *f)
{
  TdMessage model = { NULL, 0, 0 }, opset = { NULL, 0, 0 };

  td__message_int (&model, 1, f->ir_version > 0 ? f->ir_version : 8);
  td__message_nest (&model, 7, &f->graph);
  td__message_text (&opset, 1, "");
  td__message_int (&opset, 2, f->opset);
  td__message_nest (&model, 8, &opset);
  return model;
}

void
onnx_write (OnnxFile *f, const char *path)
{
  TdMessage m = onnx_model (f);
  FILE *file = fopen (path, "wb");

  if (file == NULL || fwrite (m.bytes, 1, m.n, file) != m.n || fclose (file) != 0)
    abort ();
  td__message_free (&m);
}
