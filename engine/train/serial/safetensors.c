/* safetensors: eight bytes with the size of a JSON header, the header, then the elements of all
 * arrays without gaps.  *Source*: github.com/huggingface/safetensors, "Format".
 *
 * Texts are kept in the header's __metadata__ under their own keys, and the keys of values that
 * are None under "tapedeck.none", one to a line.  The header is read by header-json.c.
 *
 * SPDX-License-Identifier: MIT */
#include "archive.h"
#include "safetensors.h"

#include "../links/object.h"
#include "json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char none_key[] = "tapedeck.none";
static const char *const dtype_names[] = {
  [TD_F32] = "F32", [TD_F64] = "F64", [TD_F16] = "F16", [TD_BF16] = "BF16",
  [TD_I32] = "I32", [TD_I64] = "I64", [TD_U8] = "U8",   [TD_BOOL] = "BOOL",
};

/* --- writing --- */

static void
put_tensor (TdJsonWriter *json, const TdMember *e, uint64_t *offset)
{
  const TdRecord *v = &e->value;

  td__json_key (json, e->key);
  td__json_begin_object (json);
  td__json_member_string (json, "dtype", dtype_names[v->dtype]);
  td__json_key (json, "shape");
  td__json_begin_array (json);
  for (int i = 0; i < v->shape.ndim; i++)
    td__json_int (json, v->shape.dim[i]);
  td__json_end_array (json);
  td__json_key (json, "data_offsets");
  td__json_begin_array (json);
  td__json_uint (json, *offset);
  *offset += v->bytes;
  td__json_uint (json, *offset);
  td__json_end_array (json);
  td__json_end_object (json);
}

static void
append (TdJsonText *t, const char *text)
{
  td__json_put_text (t, text, strlen (text));
}

static void
put_metadata (TdJsonWriter *json, const TdArchive *archive)
{
  TdJsonText none = { 0 };

  td__json_key (json, "__metadata__");
  td__json_begin_object (json);
  for (int i = 0; i < archive->n; i++)
    if (archive->entries[i].value.kind == TD_RECORD_TEXT)
      td__json_member_string (json, archive->entries[i].key, archive->entries[i].value.data);
    else if (archive->entries[i].value.kind == TD_RECORD_NONE)
      {
        append (&none, none.n > 0 ? "\n" : "");
        append (&none, archive->entries[i].key);
      }
  if (none.n > 0)
    td__json_member_string (json, none_key, none.text);
  td__json_end_object (json);
  free (none.text);
}

/* Large elements first: all of them lie aligned then. */
#define FOR_EACH_ALIGNED(e, archive)                                                           \
  for (size_t width_ = 8; width_ > 0; width_ /= 2)                                             \
    for (const TdMember *e = (archive)->entries; e < (archive)->entries + (archive)->n; e++)   \
      if (e->value.kind == TD_RECORD_ARRAY && td_dtype_bytes (e->value.dtype) == width_)

bool
td__safetensors_write (const TdArchive *archive, FILE *file, char *why, size_t size)
{
  unsigned char length[8];
  TdJsonText head = { 0 };
  TdJsonWriter json;
  uint64_t offset = 0;
  bool ok, plain = true;

  for (int i = 0; i < archive->n; i++)
    plain = plain && archive->entries[i].value.kind == TD_RECORD_ARRAY;
  td__json_write (&json, td__json_put_text, &head, TD_JSON_TIGHT);
  td__json_begin_object (&json);
  if (!plain)
    put_metadata (&json, archive);
  FOR_EACH_ALIGNED (e, archive)
  put_tensor (&json, e, &offset);
  td__json_end_object (&json);
  while (head.n % 8 != 0)
    append (&head, " ");
  for (int i = 0; i < 8; i++)
    length[i] = (unsigned char)((uint64_t)head.n >> (8 * i));
  ok = fwrite (length, 8, 1, file) == 1 && fwrite (head.text, head.n, 1, file) == 1;
  FOR_EACH_ALIGNED (e, archive)
  ok = ok && (e->value.bytes == 0 || fwrite (e->value.data, e->value.bytes, 1, file) == 1);
  free (head.text);
  if (!ok) /* NOLINTNEXTLINE(concurrency-mt-unsafe) */
    snprintf (why, size, "cannot be written: %s", strerror (errno));
  return ok;
}

/* --- reading --- */

typedef struct
{
  TdArchiveSource source;
  TdSafeHeader header;
  int fd;
  uint64_t start; /* of the elements */
} SafeSource;

static bool
read_at (int fd, void *data, uint64_t bytes, uint64_t offset)
{
  uint64_t done = 0;

  while (done < bytes)
    {
      ssize_t k = pread (fd, (char *)data + done, bytes - done, (off_t)(offset + done));

      if (k < 0 && errno == EINTR)
        continue;
      if (k <= 0)
        return false;
      done += (uint64_t)k;
    }
  return true;
}

static const TdSafeTensor *
find_tensor (const SafeSource *s, const char *key)
{
  for (int i = 0; i < s->header.n_tensors; i++)
    if (strcmp (s->header.tensors[i].name, key) == 0)
      return &s->header.tensors[i];
  return NULL;
}

static const char *
find_text (const SafeSource *s, const char *key)
{
  for (int i = 0; i < s->header.n_texts; i++)
    if (strcmp (s->header.texts[i].key, key) == 0)
      return s->header.texts[i].text;
  return NULL;
}

static bool
is_none (const SafeSource *s, const char *key)
{
  const char *list = find_text (s, none_key);
  size_t n = strlen (key);

  while (list != NULL && *list != '\0')
    {
      size_t k = strcspn (list, "\n");

      if (k == n && strncmp (list, key, n) == 0)
        return true;
      list += k + (list[k] != '\0');
    }
  return false;
}

static bool
safe_has (const TdArchiveSource *source, const char *key)
{
  const SafeSource *s = (const SafeSource *)source;

  return find_tensor (s, key) != NULL || find_text (s, key) != NULL || is_none (s, key);
}

static bool
read_tensor (const SafeSource *s, const TdSafeTensor *t, TdRecord *value, const char **why)
{
  *why = "its element type has no counterpart here";
  if (t->dtype < 0)
    return false;
  value->kind = TD_RECORD_ARRAY;
  value->dtype = (TdDtype)t->dtype;
  value->shape = t->shape;
  value->bytes = (size_t)(t->end - t->begin);
  value->data = malloc (value->bytes + 1);
  *why = "no memory for it";
  if (value->data == NULL)
    return false;
  *why = "it cannot be read";
  if (read_at (s->fd, value->data, value->bytes, s->start + t->begin))
    return true;
  free (value->data);
  value->data = NULL;
  return false;
}

static bool
safe_read (const TdArchiveSource *source, const char *key, TdRecord *value, const char **why)
{
  const SafeSource *s = (const SafeSource *)source;
  const TdSafeTensor *t = find_tensor (s, key);
  const char *text = find_text (s, key);

  if (t != NULL)
    return read_tensor (s, t, value, why);
  value->kind = text != NULL ? TD_RECORD_TEXT : TD_RECORD_NONE;
  if (text != NULL)
    {
      value->data = td__xstrdup (text);
      value->bytes = strlen (text) + 1;
    }
  return true;
}

static bool
safe_key (const TdArchiveSource *source, int i, char *room, size_t size)
{
  const SafeSource *s = (const SafeSource *)source;

  if (i >= s->header.n_tensors)
    return false;
  snprintf (room, size, "%s", s->header.tensors[i].name);
  return true;
}

static void
safe_close (TdArchiveSource *source)
{
  SafeSource *s = (SafeSource *)source;

  td__safe_header_clear (&s->header);
  if (s->fd >= 0)
    close (s->fd);
  free (s);
}

/* The dtype and the bytes that shape and dtype promise; an unknown dtype is kept as -1. */
static bool
check_tensor (TdSafeTensor *t, uint64_t data_bytes, const char **why)
{
  size_t need;

  t->dtype = -1;
  for (int i = 0; i < TD_ARRAY_LENGTH (dtype_names); i++)
    if (strcmp (dtype_names[i], t->dtype_name) == 0)
      t->dtype = i;
  *why = "its header has offsets that lie outside the file";
  if (t->begin > t->end || t->end > data_bytes)
    return false;
  *why = "its header has an array whose bytes are not those of its shape";
  return t->dtype < 0
         || (td__shape_bytes (&t->shape, (TdDtype)t->dtype, &need)
             && need == t->end - t->begin);
}

static int
by_offset (const void *a, const void *b)
{
  const TdSafeTensor *x = a, *y = b;

  if (x->begin != y->begin)
    return x->begin < y->begin ? -1 : 1;
  return x->end < y->end ? -1 : x->end > y->end;
}

static bool
check_header (TdSafeHeader *h, uint64_t data_bytes, const char **why)
{
  uint64_t at = 0;

  for (int i = 0; i < h->n_tensors; i++)
    if (!check_tensor (&h->tensors[i], data_bytes, why))
      return false;
  if (h->n_tensors > 1)
    qsort (h->tensors, (size_t)h->n_tensors, sizeof *h->tensors, by_offset);
  *why = "its arrays overlap, or leave gaps";
  for (int i = 0; i < h->n_tensors; i++)
    {
      if (h->tensors[i].begin != at)
        return false;
      at = h->tensors[i].end;
    }
  return at == data_bytes;
}

static bool
open_file (SafeSource *s, const char *path, const char **why)
{
  unsigned char length[8];
  uint64_t n = 0, file_bytes;
  struct stat st;
  char *text;
  bool ok;

  s->fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (s->fd < 0)
    *why = strerror (errno); /* NOLINT(concurrency-mt-unsafe): the engine's one thread */
  if (s->fd < 0 || fstat (s->fd, &st) != 0)
    return false;
  *why = "not a regular file";
  if (!S_ISREG (st.st_mode))
    return false;
  file_bytes = (uint64_t)st.st_size;
  *why = "not a safetensors file, or cut off: its header is not there";
  if (file_bytes < 10 || !read_at (s->fd, length, 8, 0))
    return false;
  for (int i = 0; i < 8; i++)
    n |= (uint64_t)length[i] << (8 * i);
  if (n > file_bytes - 8 || n > TD_SAFE_HEADER_MOST)
    return false;
  s->start = 8 + n;
  text = malloc (n + 1);
  ok = text != NULL && read_at (s->fd, text, n, 8);
  if (ok)
    {
      text[n] = '\0';
      ok = td__safe_header_parse (&s->header, text, n, why)
           && check_header (&s->header, file_bytes - s->start, why);
    }
  free (text);
  return ok;
}

TdArchiveSource *
td__safetensors_source (const char *path, const char **why)
{
  static const TdArchiveSource class = { safe_has, safe_read, safe_key, safe_close };
  SafeSource *s = td__xcalloc (1, sizeof *s);

  s->source = class;
  if (open_file (s, path, why))
    return &s->source;
  safe_close (&s->source);
  return NULL;
}
