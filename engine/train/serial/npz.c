/* npz: a zip file of npy files.  Numbers, texts, and None.
 *
 * SPDX-License-Identifier: MIT */
#include "archive.h"
#include "none-pickle.h"
#include "npy.h"
#include "zip.h"

#include "../links/object.h"

#include <stdlib.h>
#include <string.h>

/* The member of a key.  *Owner*: the caller, free (). */
static char *
member_name (const char *key)
{
  const size_t n = strlen (key);
  char *name = td__xrealloc (NULL, n + sizeof ".npy");

  memcpy (name, key, n);
  memcpy (name + n, ".npy", sizeof ".npy");
  return name;
}

/* --- writing --- */

static bool
add_entry (TdZipWriter *zip, const TdMember *e, bool compress, char *why, size_t size)
{
  const TdRecord *v = &e->value;
  const char *reason = "its text is not UTF-8";
  char *name = member_name (e->key);
  size_t bytes = 0;
  void *npy = NULL;
  bool ok = true;

  if (v->kind == TD_RECORD_ARRAY)
    npy = td__npy_format (v->dtype, &v->shape, v->data, &bytes);
  else if (v->kind == TD_RECORD_TEXT)
    ok = (npy = td__npy_format_text (v->data, &bytes)) != NULL;
  if (ok)
    ok = td__zip_add (zip, name, v->kind == TD_RECORD_NONE ? td__none_npy : npy,
                      v->kind == TD_RECORD_NONE ? td__none_npy_bytes : bytes, compress,
                      &reason);
  if (!ok)
    snprintf (why, size, "%.200s: %s", e->key, reason);
  free (npy);
  free (name);
  return ok;
}

bool
td__npz_write (const TdArchive *archive, FILE *file, bool compress, char *why, size_t size)
{
  TdZipWriter zip = { .file = file };
  const char *reason;
  bool ok = true;

  for (int i = 0; i < archive->n && ok; i++)
    ok = add_entry (&zip, &archive->entries[i], compress, why, size);
  if (ok && !td__zip_finish (&zip, &reason))
    {
      snprintf (why, size, "%s", reason);
      ok = false;
    }
  td__zip_writer_clear (&zip);
  return ok;
}

/* --- reading --- */

typedef struct
{
  TdArchiveSource source;
  TdZip *zip;
  const TdZipMember **arrays; /* of its members those that are npy files */
  int n_arrays;
} NpzSource;

/* The bytes of a member's name in front of .npy; 0: it is no array, as a folder is none. */
static size_t
key_bytes (const TdZipMember *m)
{
  const size_t n = strlen (m->name), ending = sizeof ".npy" - 1;

  return n > ending && strcmp (m->name + n - ending, ".npy") == 0 ? n - ending : 0;
}

static const TdZipMember *
find (const TdArchiveSource *source, const char *key)
{
  char *name = member_name (key);
  const TdZipMember *m = td__zip_find (((const NpzSource *)source)->zip, name);

  free (name);
  return m;
}

static bool
npz_has (const TdArchiveSource *source, const char *key)
{
  return find (source, key) != NULL;
}

/* Elements row by row and in this machine's dtypes, from a whole npy file. */
static bool
take_array (const char *data, size_t bytes, TdRecord *value, const char **why)
{
  TdNpy npy;

  if (!td__npy_parse (data, bytes, &npy, why))
    return false;
  value->kind = TD_RECORD_ARRAY;
  value->dtype = npy.dtype;
  value->shape = npy.shape;
  value->bytes = (size_t)td_shape_size (&npy.shape) * td_dtype_bytes (npy.dtype);
  value->data = malloc (value->bytes + 1);
  *why = "no memory for it";
  if (value->data == NULL)
    return false;
  td__npy_convert (&npy, data + npy.offset, npy.dtype, value->data);
  return true;
}

static bool
take_member (const char *data, size_t bytes, TdRecord *value, const char **why)
{
  size_t offset = 0;
  char type = td__npy_type (data, bytes, &offset);

  if (type == 'O' && td__pickle_is_none ((const unsigned char *)data + offset, bytes - offset))
    {
      value->kind = TD_RECORD_NONE;
      return true;
    }
  if (type == 'U' || type == 'S')
    {
      value->kind = TD_RECORD_TEXT;
      value->data = td__npy_parse_text (data, bytes, &value->bytes, why);
      return value->data != NULL;
    }
  return take_array (data, bytes, value, why);
}

static bool
npz_read (const TdArchiveSource *source, const char *key, TdRecord *value, const char **why)
{
  const TdZipMember *m = find (source, key);
  void *data;
  bool ok;

  *why = td__no_such_array;
  if (m == NULL)
    return false;
  data = td__zip_read (((const NpzSource *)source)->zip, m, why);
  ok = data != NULL && take_member (data, m->bytes, value, why);
  free (data);
  return ok;
}

static bool
npz_key (const TdArchiveSource *source, int i, char *room, size_t size)
{
  const NpzSource *s = (const NpzSource *)source;

  if (i >= s->n_arrays)
    return false;
  snprintf (room, size, "%.*s", (int)key_bytes (s->arrays[i]), s->arrays[i]->name);
  return true;
}

static void
npz_close (TdArchiveSource *source)
{
  td__zip_close (((NpzSource *)source)->zip);
  free (((NpzSource *)source)->arrays);
  free (source);
}

static int
by_name (const void *a, const void *b)
{
  const TdZipMember *const *x = a, *const *y = b;

  return strcmp ((*x)->name, (*y)->name);
}

/* Which of two arrays of one name is meant nobody can know: NumPy takes the last, others the
 * first. */
static bool
has_twins (const NpzSource *s)
{
  const TdZipMember **sorted = td__xcalloc ((size_t)s->n_arrays + 1, sizeof *sorted);
  bool twins = false;

  for (int i = 0; i < s->n_arrays; i++)
    sorted[i] = s->arrays[i];
  qsort (sorted, (size_t)s->n_arrays, sizeof *sorted, by_name);
  for (int i = 1; i < s->n_arrays && !twins; i++)
    twins = strcmp (sorted[i - 1]->name, sorted[i]->name) == 0;
  free (sorted);
  return twins;
}

/* What a model without parameters is saved to has no member at all. */
static bool
take_arrays (NpzSource *s, const char **why)
{
  const TdZip *zip = s->zip;
  bool pickle = false;

  s->arrays = td__xcalloc ((size_t)zip->n_members + 1, sizeof *s->arrays);
  for (int i = 0; i < zip->n_members; i++)
    {
      const char *name = zip->members[i].name, *slash = strrchr (name, '/');

      if (key_bytes (&zip->members[i]) > 0)
        s->arrays[s->n_arrays++] = &zip->members[i];
      pickle = pickle || strcmp (slash != NULL ? slash + 1 : name, "data.pkl") == 0;
    }
  if (has_twins (s))
    {
      *why = "two of its arrays have one name";
      return false;
    }
  *why = pickle ? td__pytorch_pickle : "a zip file without arrays: no npy file is in it";
  return s->n_arrays > 0 || zip->n_members == 0;
}

TdArchiveSource *
td__npz_source (const char *path, const char **why)
{
  static const TdArchiveSource class = { npz_has, npz_read, npz_key, npz_close };
  NpzSource *s = td__xcalloc (1, sizeof *s);

  s->source = class;
  s->zip = td__zip_open (path, why);
  if (s->zip != NULL && take_arrays (s, why))
    return &s->source;
  npz_close (&s->source);
  return NULL;
}
