/* The visitor that saves and loads objects: keys, staging, and what is done when a value does
 * not fit.  The files themselves are archive.c, npz.c and safetensors.c.
 *
 * SPDX-License-Identifier: MIT */
#include "serializer.h"

#include "compute/core/copies.h"

#include "../links/object.h"
#include "archive.h"
#include "npy.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A change that waits until everything else is known to fit. */
typedef struct
{
  TdStatus (*apply) (void *staged);
  void (*drop) (void *staged);
  void *staged;
} Staged;

typedef struct
{
  void (*apply) (void *object);
  void *object;
} Finally;

struct TdSerializer
{
  TdArchive *archive;            /* saving: what is filled */
  const TdArchiveSource *source; /* loading: what is read */
  const TdLoadRule *rule;
  const char *file, *call;
  const TdSite *site;
  Staged *staged;
  int n_staged;
  Finally *finally;
  int n_finally;
  TdStatus status;
  size_t prefix_bytes; /* of key */
  int n_levels, level_room;
  size_t *levels;  /* prefix_bytes before each td_serializer_enter */
  bool old_levels; /* td__serializer_old_levels */
  size_t n_found;  /* keys that were in the file */
  size_t n_taken;  /* ... and whose values fitted, or are None */
  char *key;       /* prefix, then the name of the field at work; NULL: empty */
  size_t key_room;
  bool *ignored; /* names of the rule's ignore_names that were met */
  int n_ignored;
  char *in_file; /* the same behind the rule's prefix */
};

bool
td__serializer_there (const TdSerializer *s, const char *call)
{
  if (td__stranger (call))
    return false;
  if (s == NULL)
    td__fail (TD_ERR_ARG, call, NULL, "a serializer expected, got NULL");
  return s != NULL;
}

bool
td_serializer_loading (const TdSerializer *s)
{
  if (!td__serializer_there (s, "td_serializer_loading"))
    return false;
  return s->source != NULL;
}

bool
td__serializer_failed (const TdSerializer *s)
{
  return s->status != TD_OK;
}

const TdSite *
td__serializer_site (const TdSerializer *s)
{
  return s->site;
}

void
td__serializer_fail (TdSerializer *s, TdStatus status, const char *key, const char *why)
{
  if (s->status != TD_OK)
    return;
  if (key != NULL)
    s->status = td__fail (status, s->call, s->site, "%.400s: %.*s%.200s: %.400s", s->file,
                          (int)s->prefix_bytes, s->key != NULL ? s->key : "", key, why);
  else
    s->status = td__fail (status, s->call, s->site, "%.400s: %.400s", s->file, why);
}

void
td_serializer_refuse (TdSerializer *s, const char *key, const char *why)
{
  if (!td__serializer_there (s, "td_serializer_refuse"))
    return;
  td__serializer_fail (s, TD_ERR_IO, key, why);
}

/* Put text behind the prefix.  Returns the whole key. */
static const char *
put_behind (TdSerializer *s, const char *text)
{
  const size_t n = strlen (text), need = s->prefix_bytes + n + 2; /* and a slash */

  if (need > s->key_room)
    {
      s->key_room = 2 * need;
      s->key = td__xrealloc (s->key, s->key_room);
    }
  memcpy (s->key + s->prefix_bytes, text, n + 1);
  return s->key;
}

void
td_serializer_enter (TdSerializer *s, const char *name)
{
  if (!td__serializer_there (s, "td_serializer_enter"))
    return;
  while (*name == '/')
    name++;
  if (s->n_levels == s->level_room)
    {
      s->level_room = 2 * s->level_room + 8;
      s->levels = td__xrealloc (s->levels, (size_t)s->level_room * sizeof *s->levels);
    }
  s->levels[s->n_levels++] = s->prefix_bytes;
  put_behind (s, name);
  s->prefix_bytes += strlen (name);
  s->key[s->prefix_bytes++] = '/';
  s->key[s->prefix_bytes] = '\0';
}

void
td_serializer_leave (TdSerializer *s)
{
  if (!td__serializer_there (s, "td_serializer_leave") || s->n_levels == 0)
    return;
  s->n_levels--;
  if (!s->old_levels)
    s->prefix_bytes = s->levels[s->n_levels];
  else
    {
      if (s->prefix_bytes > 0)
        s->prefix_bytes--;
      while (s->prefix_bytes > 0 && s->key[s->prefix_bytes - 1] != '/')
        s->prefix_bytes--;
    }
  s->key[s->prefix_bytes] = '\0';
}

void
td__serializer_old_levels (TdSerializer *s, const char *left)
{
  put_behind (s, left);
  s->prefix_bytes += strlen (left);
  s->old_levels = true;
}

/* The next name of a list separated by commas; NULL behind the last. */
static const char *
next_name (const char **list, size_t *n)
{
  const char *name;

  if (*list == NULL)
    return NULL;
  *list += strspn (*list, ", ");
  name = *list;
  *n = strcspn (name, ",");
  *list += *n;
  while (*n > 0 && name[*n - 1] == ' ')
    --*n;
  return *n > 0 ? name : NULL;
}

/* Is this key to be left out?  Takes note of the name that says so. */
static bool
is_ignored (TdSerializer *s, const char *key)
{
  const char *list = s->rule != NULL ? s->rule->ignore_names : NULL, *name;
  size_t n;

  for (int i = 0; (name = next_name (&list, &n)) != NULL; i++)
    {
      if (strlen (key) != n || strncmp (name, key, n) != 0)
        continue;
      if (i >= s->n_ignored)
        {
          s->ignored = td__xrealloc (s->ignored, (size_t)i + 1);
          memset (s->ignored + s->n_ignored, 0, (size_t)(i + 1 - s->n_ignored));
          s->n_ignored = i + 1;
        }
      s->ignored[i] = true;
      return true;
    }
  return false;
}

/* A name that nothing has would be a slip of the pen that loads what was to be left out. */
static void
check_ignored (TdSerializer *s)
{
  const char *list = s->rule != NULL ? s->rule->ignore_names : NULL, *name;
  char why[300];
  size_t n;

  for (int i = 0; (name = next_name (&list, &n)) != NULL; i++)
    {
      if (i < s->n_ignored && s->ignored[i])
        continue;
      snprintf (why, sizeof why, "ignore_names: nothing here has the key \"%.*s\"",
                n < 200 ? (int)n : 200, name);
      td__serializer_fail (s, TD_ERR_ARG, NULL, why);
      return;
    }
}

/* The key in the file: behind the rule's prefix. */
static const char *
file_key (TdSerializer *s, const char *key)
{
  const char *prefix = s->rule != NULL ? s->rule->prefix : NULL;
  const char *whole = put_behind (s, key);
  size_t n;

  if (prefix == NULL || *prefix == '\0')
    return whole;
  prefix += *prefix == '/';
  n = strlen (prefix) + strlen (whole) + 2;
  s->in_file = td__xrealloc (s->in_file, n);
  snprintf (s->in_file, n, "%s%s%s", prefix, prefix[strlen (prefix) - 1] == '/' ? "" : "/",
            whole);
  return s->in_file;
}

bool
td_serializer_has (TdSerializer *s, const char *key)
{
  if (!td__serializer_there (s, "td_serializer_has"))
    return false;
  return s->source != NULL && s->status == TD_OK
         && s->source->has (s->source, file_key (s, key));
}

bool
td__serializer_read (TdSerializer *s, const char *key, TdRecord *value)
{
  const char *at, *why = "it cannot be read";

  memset (value, 0, sizeof *value);
  if (s->source == NULL || s->status != TD_OK)
    return false;
  at = file_key (s, key);
  if (is_ignored (s, s->key))
    return false;
  if (!s->source->has (s->source, at))
    {
      if (s->rule == NULL || !s->rule->lenient)
        td__serializer_fail (s, TD_ERR_IO, key, td__no_such_array);
      return false;
    }
  s->n_found++;
  s->n_taken++;
  if (s->source->read (s->source, at, value, &why))
    return true;
  td__serializer_fail (s, TD_ERR_IO, key, why);
  return false;
}

void
td__serializer_write (TdSerializer *s, const char *key, const TdRecord *value)
{
  const char *why;

  if (s->archive == NULL || s->status != TD_OK)
    return;
  if (!td__archive_add (s->archive, put_behind (s, key), value, &why))
    td__serializer_fail (s, TD_ERR_MEMORY, key, why);
}

void
td__serializer_stage (TdSerializer *s, TdStatus (*apply) (void *staged),
                      void (*drop) (void *staged), void *staged)
{
  s->staged = td__xrealloc (s->staged, (size_t)(s->n_staged + 1) * sizeof *s->staged);
  s->staged[s->n_staged++] = (Staged){ apply, drop, staged };
}

void
td_serializer_finally (TdSerializer *s, void (*apply) (void *object), void *object)
{
  if (!td__serializer_there (s, "td_serializer_finally"))
    return;
  if (s->source == NULL)
    return;
  s->finally = td__xrealloc (s->finally, (size_t)(s->n_finally + 1) * sizeof *s->finally);
  s->finally[s->n_finally++] = (Finally){ apply, object };
}

/* --- fields --- */

/* A number, text or array that waits for its place. */
typedef struct
{
  void *place;
  TdShape *shape_place;
  TdRecord value;
  size_t bytes; /* of a number; 0: place is a pointer to memory that is replaced */
} Field;

static TdStatus
field_apply (void *staged)
{
  Field *f = staged;

  if (f->bytes > 0)
    memcpy (f->place, f->value.data, f->bytes);
  else
    {
      free (*(void **)f->place);
      *(void **)f->place = f->value.data;
      f->value.data = NULL;
      if (f->shape_place != NULL)
        *f->shape_place = f->value.shape;
    }
  return TD_OK;
}

static void
field_drop (void *staged)
{
  Field *f = staged;

  free (f->value.data);
  free (f);
}

static void
stage_field (TdSerializer *s, void *place, TdShape *shape_place, const TdRecord *value,
             size_t bytes)
{
  Field *f = td__xcalloc (1, sizeof *f);

  *f = (Field){ place, shape_place, *value, bytes };
  td__serializer_stage (s, field_apply, field_drop, f);
}

static void
fail_misfit (TdSerializer *s, const char *key, const TdRecord *value, TdDtype dtype, int64_t at)
{
  char why[200];

  snprintf (why, sizeof why, "element %" PRId64 " is %.17g (%s), which %s cannot hold", at,
            td__host_element (value->data, value->dtype, at), td_dtype_name (value->dtype),
            td_dtype_name (dtype));
  td__serializer_fail (s, TD_ERR_DTYPE, key, why);
}

/* Take the elements of a value as dtype; false after an error. */
static bool
converted (TdSerializer *s, const char *key, TdDtype dtype, TdRecord *value)
{
  TdNpy npy = { .dtype = value->dtype, .shape = value->shape };
  size_t bytes = (size_t)td_shape_size (&value->shape) * td_dtype_bytes (dtype);
  void *data;
  int64_t at;

  if (value->dtype == dtype)
    return true;
  if (td__npy_misfit (value->dtype, value->data, td_shape_size (&value->shape), dtype, &at))
    {
      fail_misfit (s, key, value, dtype, at);
      return false;
    }
  data = malloc (bytes + 1);
  if (data == NULL)
    {
      td__serializer_fail (s, TD_ERR_MEMORY, key, "no memory for it");
      return false;
    }
  td__npy_convert (&npy, value->data, dtype, data);
  free (value->data);
  value->data = data;
  value->dtype = dtype;
  value->bytes = bytes;
  return true;
}

/* Read one number as dtype. */
static bool
read_scalar (TdSerializer *s, const char *key, TdDtype dtype, TdRecord *value)
{
  if (!td__serializer_read (s, key, value))
    return false;
  if (value->kind == TD_RECORD_ARRAY && td_shape_size (&value->shape) == 1)
    return converted (s, key, dtype, value);
  if (value->kind != TD_RECORD_NONE) /* None: the number stays, as in Chainer */
    td__serializer_fail (s, TD_ERR_SHAPE, key, "a single number expected");
  return false;
}

static void
serialize_scalar (TdSerializer *s, const char *key, TdDtype dtype, void *place)
{
  TdRecord value = {
    .kind = TD_RECORD_ARRAY, .dtype = dtype, .data = place, .bytes = td_dtype_bytes (dtype)
  };

  if (s->source == NULL)
    td__serializer_write (s, key, &value);
  else if (read_scalar (s, key, dtype, &value))
    stage_field (s, place, NULL, &value, td_dtype_bytes (dtype));
  else
    free (value.data);
}

void
td_serialize_int (TdSerializer *s, const char *key, int64_t *value)
{
  if (!td__serializer_there (s, "td_serialize_int"))
    return;
  serialize_scalar (s, key, TD_I64, value);
}

void
td_serialize_double (TdSerializer *s, const char *key, double *value)
{
  if (!td__serializer_there (s, "td_serialize_double"))
    return;
  serialize_scalar (s, key, TD_F64, value);
}

void
td_serialize_bool (TdSerializer *s, const char *key, bool *value)
{
  if (!td__serializer_there (s, "td_serialize_bool"))
    return;
  _Static_assert(sizeof (bool) == 1, "a bool is one byte of the file");

  serialize_scalar (s, key, TD_BOOL, value);
}

bool
td_serializer_look_int (TdSerializer *s, const char *key, int64_t *value)
{
  TdRecord read = { .data = NULL };
  bool ok;

  if (!td__serializer_there (s, "td_serializer_look_int"))
    return false;
  ok = td_serializer_has (s, key) && read_scalar (s, key, TD_I64, &read);
  if (ok)
    memcpy (value, read.data, sizeof *value);
  free (read.data);
  return ok;
}

void
td_serialize_text (TdSerializer *s, const char *key, char **text)
{
  TdRecord value;

  if (!td__serializer_there (s, "td_serialize_text"))
    return;
  value = (TdRecord){ .kind = *text != NULL ? TD_RECORD_TEXT : TD_RECORD_NONE, .data = *text };
  if (s->source == NULL)
    {
      value.bytes = *text != NULL ? strlen (*text) + 1 : 0;
      td__serializer_write (s, key, &value);
      return;
    }
  if (!td__serializer_read (s, key, &value))
    return;
  if (value.kind == TD_RECORD_ARRAY)
    {
      td__serializer_fail (s, TD_ERR_DTYPE, key, "a text expected, the file has numbers");
      free (value.data);
      return;
    }
  stage_field (s, text, NULL, &value, 0);
}

void
td_serialize_array (TdSerializer *s, const char *key, TdDtype dtype, TdShape *shape,
                    void **data)
{
  TdRecord value;

  if (!td__serializer_there (s, "td_serialize_array"))
    return;
  value = (TdRecord){ .kind = *data != NULL ? TD_RECORD_ARRAY : TD_RECORD_NONE,
                      .dtype = dtype,
                      .shape = *shape,
                      .data = *data };
  if (s->source == NULL)
    {
      value.bytes = *data != NULL ? (size_t)td_shape_size (shape) * td_dtype_bytes (dtype) : 0;
      td__serializer_write (s, key, &value);
      return;
    }
  if (!td__serializer_read (s, key, &value))
    return;
  if (value.kind == TD_RECORD_TEXT)
    td__serializer_fail (s, TD_ERR_DTYPE, key, "numbers expected, the file has a text");
  if (s->status == TD_OK && (value.kind == TD_RECORD_NONE || converted (s, key, dtype, &value)))
    stage_field (s, data, shape, &value, 0);
  else
    free (value.data);
}

/* --- variables --- */

typedef struct
{
  TdVar *v;
  TdRecord value;
  const TdSite *site;
} VarField;

static TdStatus
var_apply (void *staged)
{
  VarField *f = staged;

  return td__write_for (TD_COPY_LOAD, f->v, f->value.data, f->value.bytes, f->site);
}

static void
var_drop (void *staged)
{
  VarField *f = staged;

  td__var_unref (f->v, TD_HOLD_ENGINE);
  free (f->value.data);
  free (f);
}

/* An array of another shape: a failure, or left out where only what fits is wanted. */
static void
fail_shape (TdSerializer *s, const char *key, const TdShape *expected, const TdShape *got)
{
  char why[400], a[160], b[160];

  snprintf (why, sizeof why, "shape %s expected, the file has %s",
            td_shape_text (expected, a, sizeof a), td_shape_text (got, b, sizeof b));
  s->n_taken--;
  if (s->rule == NULL || !s->rule->partial)
    td__serializer_fail (s, TD_ERR_SHAPE, key, why);
}

bool
td__serializer_read_array (TdSerializer *s, const char *key, TdDtype dtype,
                           const TdShape *shape, TdRecord *value)
{
  if (!td__serializer_read (s, key, value))
    return false;
  if (value->kind == TD_RECORD_NONE) /* Chainer keeps the array then */
    return false;
  if (value->kind == TD_RECORD_TEXT)
    td__serializer_fail (s, TD_ERR_DTYPE, key, "numbers expected, the file has a text");
  else if (shape != NULL && !td_shape_equal (&value->shape, shape))
    fail_shape (s, key, shape, &value->shape);
  else if (converted (s, key, dtype, value))
    return true;
  free (value->data);
  value->data = NULL;
  return false;
}

static void
save_var (TdSerializer *s, const char *key, TdVar *v)
{
  TdRecord value = { .kind = TD_RECORD_ARRAY,
                     .dtype = (TdDtype)v->node->dtype,
                     .shape = v->node->shape,
                     .bytes = v->buffer->bytes };

  value.data = malloc (value.bytes + 1);
  if (value.data == NULL)
    td__serializer_fail (s, TD_ERR_MEMORY, key, "no memory to copy it");
  else if (td_read_at (v, value.data, value.bytes, s->site) != TD_OK)
    s->status = td__engine.error.status;
  else
    td__serializer_write (s, key, &value);
  free (value.data);
}

void
td_serialize_var (TdSerializer *s, const char *key, TdVar *v)
{
  VarField *f;
  TdRecord value;

  if (!td__serializer_there (s, "td_serialize_var"))
    return;
  if (s->status != TD_OK)
    return;
  if (!td__var_usable (v, s->call, s->site))
    s->status = td__engine.has_error ? td__engine.error.status : TD_ERR_STATE;
  else if (s->source == NULL)
    save_var (s, key, v);
  else if (td__serializer_read_array (s, key, (TdDtype)v->node->dtype, &v->node->shape, &value))
    {
      f = td__xcalloc (1, sizeof *f);
      *f = (VarField){ td__var_ref (v, TD_HOLD_ENGINE), value, s->site };
      td__serializer_stage (s, var_apply, var_drop, f);
    }
}

/* --- whole objects --- */

static void
serializer_free (TdSerializer *s)
{
  free (s->staged);
  free (s->finally);
  free (s->levels);
  free (s->key);
  free (s->in_file);
  free (s->ignored);
  free (s);
}

TdArchive *
td__archive_new (TdSerializeFn serialize, void *object, const char *call, const TdSite *site)
{
  TdSerializer *s = td__xcalloc (1, sizeof *s);
  TdArchive *archive = td__xcalloc (1, sizeof *archive);

  s->archive = archive;
  s->file = "saving";
  s->call = call;
  s->site = site;
  serialize (object, s);
  if (s->status != TD_OK)
    {
      td__archive_free (archive);
      archive = NULL;
    }
  serializer_free (s);
  return archive;
}

TdStatus
td__save_object (const char *path, TdFileFormat format, bool compress, TdSerializeFn serialize,
                 void *object, const char *call, const TdSite *site)
{
  TdStatus status = TD_OK;
  TdArchive *archive;
  char why[600];

  if (path == NULL)
    return td__fail (TD_ERR_ARG, call, site, "the path is NULL");
  archive = td__archive_new (serialize, object, call, site);
  if (archive == NULL)
    return td__engine.has_error ? td__engine.error.status : TD_ERR_STATE;
  if (!td__archive_write (archive, path, format, compress, why, sizeof why))
    status = td__fail (TD_ERR_IO, call, site, "%.400s: %s", path, why);
  td__archive_free (archive);
  return status;
}

/* All fits: put everything in its place, in the order of reading. */
static void
put_in_place (TdSerializer *s)
{
  for (int i = 0; i < s->n_staged && s->status == TD_OK; i++)
    s->status = s->staged[i].apply (s->staged[i].staged);
  for (int i = 0; i < s->n_finally && s->status == TD_OK; i++)
    s->finally[i].apply (s->finally[i].object);
}

/* A lenient load that found nothing is no error, and yet not what was asked for. */
static void
say_nothing_loaded (const TdSerializer *s)
{
  if (s->n_taken > 0 || s->status != TD_OK || s->rule == NULL || !s->rule->lenient)
    return;
  fprintf (stderr, "tapedeck: %s: %s: none of its arrays has %s: nothing was loaded\n", s->call,
           s->file,
           s->n_found == 0 ? "a key that was looked for" : "the shape of what has its key");
}

TdStatus
td__load_source (const TdArchiveSource *source, const char *path, TdSerializeFn serialize,
                 void *object, const TdLoadRule *rule, const char *call, const TdSite *site)
{
  TdSerializer *s = td__xcalloc (1, sizeof *s);
  TdStatus status;

  s->source = source;
  s->rule = rule;
  s->file = path;
  s->call = call;
  s->site = site;
  serialize (object, s);
  check_ignored (s);
  say_nothing_loaded (s);
  put_in_place (s);
  for (int i = 0; i < s->n_staged; i++)
    s->staged[i].drop (s->staged[i].staged);
  status = s->status;
  serializer_free (s);
  return status;
}

TdStatus
td__load_object (const char *path, TdFileFormat format, TdSerializeFn serialize, void *object,
                 const TdLoadRule *rule, const char *call, const TdSite *site)
{
  const char *why = "it cannot be read";
  TdArchiveSource *source;
  TdStatus status;

  if (path == NULL)
    return td__fail (TD_ERR_ARG, call, site, "the path is NULL");
  source = td__archive_open (path, format, &why);
  if (source == NULL)
    return td__fail (TD_ERR_IO, call, site, "%.400s: %s", path, why);
  status = td__load_source (source, path, serialize, object, rule, call, site);
  source->close (source);
  return status;
}
