/* Lists of arrays of files and of tapes: see weights-files.h.
 *
 * SPDX-License-Identifier: MIT */
#include "weights-files.h"

#include "dtype.h"
#include "td-tape-reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  LONGEST_NAME = 4096
};

static gboolean
fail (GError **error, const TdWeightsFile *file, const char *what)
{
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s: %s", file->path, what);
  return FALSE;
}

static void
begin (TdWeightsFile *file, const char *path)
{
  *file = (TdWeightsFile){ .path = path,
                           .names = g_ptr_array_new_with_free_func (g_free),
                           .reasons = g_ptr_array_new_with_free_func (g_free),
                           .arrays = g_array_new (FALSE, TRUE, sizeof (TdWeightsArray)) };
}

static void
add (TdWeightsFile *file, char *name, TdWeightsArray array)
{
  g_ptr_array_add (file->names, name);
  array.name = name;
  g_array_append_val (file->arrays, array);
}

/* A zip file begins with PK, whatever it is called. */
static TdArchiveSource *
open_archive (const char *path, const char **why)
{
  char head[2] = { 0 };
  FILE *f = fopen (path, "rb");

  if (f != NULL)
    {
      const size_t n = fread (head, 1, sizeof head, f);

      fclose (f);
      if (n == sizeof head)
        return td__archive_open (
            path, memcmp (head, "PK", 2) == 0 ? TD_FILE_NPZ : TD_FILE_SAFETENSORS, why);
    }
  *why = f == NULL ? g_strerror (errno) : "neither npz nor safetensors";
  return NULL;
}

/* What there is of an array but its elements; what is none waits for its shape. */
static TdWeightsArray
look_at (TdWeightsFile *file, const char *name)
{
  const TdArchiveSource *source = file->source;
  TdWeightsArray array = { .ndim = TD_WEIGHTS_UNKNOWN, .dtype = TD__N_DTYPES };
  TdRecord value = { 0 };
  const char *why;

  if (!source->read (source, name, &value, &why))
    {
      g_ptr_array_add (file->reasons, g_strdup (why));
      array.unread = g_ptr_array_index (file->reasons, file->reasons->len - 1);
      return array;
    }
  if (value.kind == TD_RECORD_ARRAY)
    {
      array.dtype = value.dtype;
      array.ndim = value.shape.ndim;
      for (int d = 0; d < value.shape.ndim; d++)
        array.dims[d] = value.shape.dim[d];
    }
  else if (value.kind == TD_RECORD_TEXT)
    array.unread = "it is a text";
  free (value.data);
  return array;
}

gboolean
td_weights_file_open (TdWeightsFile *file, const char *path, GError **error)
{
  char name[LONGEST_NAME];
  const char *why;

  begin (file, path);
  file->source = open_archive (path, &why);
  if (file->source == NULL)
    return fail (error, file, why);
  for (int i = 0; file->source->key (file->source, i, name, sizeof name); i++)
    {
      if (strlen (name) == sizeof name - 1)
        return fail (error, file, "it has a name of more than 4094 bytes");
      add (file, g_strdup (name), look_at (file, name));
    }
  return file->arrays->len > 0 || fail (error, file, "it has no arrays");
}

/* The name of the model in front of a path; NULL: there is none. */
static const char *
behind_model (const char *path, const char *model, size_t n)
{
  return strncmp (path, model, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

static gboolean
take_parameters (TdWeightsFile *file, const TdTapeReader *reader, GError **error)
{
  const uint32_t n = td_tape_reader_n_parameters (reader);
  const char *model = NULL;

  for (uint32_t i = 0; i < n; i++)
    {
      const TdTapeParameter *p = td_tape_reader_parameter (reader, i);
      const char *path = td_tape_reader_string (reader, p->path), *name;
      TdWeightsArray array = { .dtype = p->dtype, .ndim = p->ndim };

      if (model == NULL)
        model = path;
      name = behind_model (path, model, strcspn (model, "/"));
      if (name == NULL)
        return fail (error, file,
                     "it has the parameters of several models; try --into MODEL.npz");
      memcpy (array.dims, p->dims, sizeof array.dims);
      add (file, g_strdup (name), array);
    }
  return n > 0 || fail (error, file, "it tells of no parameters");
}

gboolean
td_weights_file_open_tape (TdWeightsFile *file, const char *path, GError **error)
{
  char why[512];
  TdTapeReader *reader = td_tape_reader_open_bounded (path, 1, why, sizeof why);
  gboolean ok;

  begin (file, path);
  if (reader == NULL)
    {
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_FAILED, why);
      return FALSE;
    }
  ok = take_parameters (file, reader, error);
  td_tape_reader_free (reader);
  return ok;
}

void
td_weights_file_clear (TdWeightsFile *file)
{
  if (file->source != NULL)
    file->source->close (file->source);
  g_clear_pointer (&file->names, g_ptr_array_unref);
  g_clear_pointer (&file->reasons, g_ptr_array_unref);
  g_clear_pointer (&file->arrays, g_array_unref);
}

/* One number over and over, as zeros that nothing has trained yet, says nothing of two arrays.
 */
static gboolean
is_constant (const TdRecord *v)
{
  const size_t width = td_dtype_bytes (v->dtype);

  return v->bytes <= width
         || memcmp (v->data, (const char *)v->data + width, v->bytes - width) == 0;
}

gboolean
td_weights_file_same (guint i, guint other, gpointer user)
{
  const TdWeightsFile *file = user;
  TdRecord a = { 0 }, b = { 0 };
  const char *why;
  gboolean same
      = file->source->read (file->source, g_ptr_array_index (file->names, i), &a, &why)
        && file->source->read (file->source, g_ptr_array_index (file->names, other), &b, &why)
        && a.kind == TD_RECORD_ARRAY && b.kind == TD_RECORD_ARRAY && a.bytes == b.bytes
        && memcmp (a.data, b.data, a.bytes) == 0 && !is_constant (&a);

  free (a.data);
  free (b.data);
  return same;
}
