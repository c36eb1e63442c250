/* The header of an npy file: see npy-header.h.
 *
 * SPDX-License-Identifier: MIT */
#include "npy-header.h"

#include <stdlib.h>
#include <string.h>

typedef const char *(*Take) (const char *at, TdNpyHeader *h);

static const char *
blanks (const char *at)
{
  return at + strspn (at, " \t\n");
}

/* Past blanks and this character; NULL: another. */
static const char *
eat (const char *at, char c)
{
  at = blanks (at);
  return *at == c ? at + 1 : NULL;
}

/* Past a text in quotes, which has no escapes; its characters.  NULL: none. */
static const char *
quoted (const char *at, const char **text, size_t *n)
{
  const char quote = *(at = blanks (at));

  if (quote != '\'' && quote != '"')
    return NULL;
  *text = ++at;
  while (*at != '\0' && *at != quote && *at != '\\')
    at++;
  *n = (size_t)(at - *text);
  return *at == quote ? at + 1 : NULL;
}

static const char *
take_descr (const char *at, TdNpyHeader *h)
{
  const char *text;
  size_t n;

  h->is_record = *blanks (at) == '[';
  at = quoted (at, &text, &n);
  if (at == NULL)
    return NULL;
  n = n < sizeof h->descr ? n : sizeof h->descr - 1;
  memcpy (h->descr, text, n);
  h->descr[n] = '\0';
  return at;
}

static const char *
take_order (const char *at, TdNpyHeader *h)
{
  at = blanks (at);
  h->fortran = strncmp (at, "True", 4) == 0;
  return h->fortran ? at + 4 : strncmp (at, "False", 5) == 0 ? at + 5 : NULL;
}

/* () or (3,) or (3, 4), with a comma at its end or none. */
static const char *
take_shape (const char *at, TdNpyHeader *h)
{
  const char *next;

  at = eat (at, '(');
  while (at != NULL && (next = eat (at, ')')) == NULL)
    {
      char *end = NULL;
      long long size;

      at = blanks (at);
      size = *at >= '0' && *at <= '9' ? strtoll (at, &end, 10) : -1;
      if (size < 0 || size == INT64_MAX || h->ndim == TD__NPY_MAX_DIMS)
        return NULL;
      h->dim[h->ndim++] = size;
      at = *end == 'L' ? end + 1 : end; /* Python 2 wrote 3L */
      next = eat (at, ',');
      if (next == NULL && (h->ndim == 1 || eat (at, ')') == NULL)) /* (3) is no tuple */
        return NULL;
      at = next != NULL ? next : at;
    }
  return at != NULL ? next : NULL;
}

static const struct
{
  const char *key;
  Take take;
} entries[] = {
  { "descr", take_descr },
  { "fortran_order", take_order },
  { "shape", take_shape },
};

enum
{
  N_ENTRIES = sizeof entries / sizeof *entries
};

/* 'key': value.  The bit of the key is set in `seen`; NULL: not that, or for the second time.
 */
static const char *
entry (const char *at, TdNpyHeader *h, unsigned *seen)
{
  const char *key;
  size_t n;
  int i = 0;

  at = quoted (at, &key, &n);
  at = at != NULL ? eat (at, ':') : NULL;
  if (at == NULL)
    return NULL;
  while (i < N_ENTRIES
         && (strlen (entries[i].key) != n || memcmp (entries[i].key, key, n) != 0))
    i++;
  if (i == N_ENTRIES || (*seen & 1u << i) != 0)
    return NULL;
  *seen |= 1u << i;
  return entries[i].take (at, h);
}

bool
td__npy_header_parse (const char *text, TdNpyHeader *header)
{
  const char *at = eat (text, '{'), *next;
  unsigned seen = 0;

  memset (header, 0, sizeof *header);
  while (at != NULL && (next = eat (at, '}')) == NULL)
    {
      at = entry (at, header, &seen);
      if (at == NULL)
        return header->is_record;
      next = eat (at, ',');
      if (next == NULL && eat (at, '}') == NULL)
        return false;
      at = next != NULL ? next : at;
    }
  return at != NULL && seen == (1u << N_ENTRIES) - 1 && *blanks (next) == '\0';
}

bool
td__npy_header_read (const void *data, size_t bytes, TdNpyHeader *header, size_t *offset,
                     const char **why)
{
  const unsigned char *p = data;
  size_t head, length;
  char *text;
  bool ok;

  *why = "it is not an npy array";
  if (bytes < 12 || memcmp (p, "\x93NUMPY", 6) != 0 || p[6] < 1 || p[6] > 3)
    return false;
  head = p[6] == 1 ? 10 : 12;
  length = p[6] == 1
               ? (size_t)p[8] | (size_t)p[9] << 8
               : (size_t)p[8] | (size_t)p[9] << 8 | (size_t)p[10] << 16 | (size_t)p[11] << 24;
  if (length > bytes - head || length > 65536)
    return false;
  text = calloc (length + 1, 1);
  *why = "no memory for it";
  if (text == NULL)
    return false;
  memcpy (text, p + head, length);
  *offset = head + length;
  ok = td__npy_header_parse (text, header);
  free (text);
  *why = header->is_record ? "it is a record array, which is not read"
                           : "its header is not the dictionary of an npy file";
  return ok && !header->is_record;
}
