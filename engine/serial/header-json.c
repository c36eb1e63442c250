/* Reads the JSON header of a safetensors file: one object of objects, strictly.
 *
 * SPDX-License-Identifier: MIT */
#include "safetensors.h"

#include "../links/object.h"

#include <stdlib.h>
#include <string.h>

typedef struct
{
  const char *at, *end;
  TdSafeHeader *header;
} Json;

static void
blanks (Json *j)
{
  while (j->at < j->end
         && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r'))
    j->at++;
}

/* Blanks, then this character. */
static bool
eat (Json *j, char c)
{
  blanks (j);
  if (j->at == j->end || *j->at != c)
    return false;
  j->at++;
  return true;
}

static bool
hex4 (Json *j, uint32_t *value)
{
  *value = 0;
  if (j->end - j->at < 4)
    return false;
  for (int i = 0; i < 4; i++, j->at++)
    {
      const char *digits = "0123456789abcdef", *found;

      found = memchr (digits, *j->at | 0x20, 16);
      if (found == NULL || (*j->at < '0' && *j->at != 0))
        return false;
      *value = *value << 4 | (uint32_t)(found - digits);
    }
  return true;
}

/* \uXXXX, and the second half when it is the first of a pair. */
static bool
escaped_code (Json *j, char *to, size_t *n)
{
  uint32_t c, low;

  if (!hex4 (j, &c) || c == 0)
    return false;
  if (c >= 0xd800 && c < 0xdc00)
    {
      if (j->end - j->at < 2 || j->at[0] != '\\' || j->at[1] != 'u')
        return false;
      j->at += 2;
      if (!hex4 (j, &low) || low < 0xdc00 || low > 0xdfff)
        return false;
      c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
  else if (c >= 0xdc00 && c < 0xe000)
    return false;
  if (c < 0x80)
    to[(*n)++] = (char)c;
  else
    {
      int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;

      to[(*n)++] = (char)((0xf00 >> more & 0xff) | (int)(c >> (6 * more)));
      for (int k = more - 1; k >= 0; k--)
        to[(*n)++] = (char)(0x80 | (c >> (6 * k) & 0x3f));
    }
  return true;
}

static bool
escape (Json *j, char *to, size_t *n)
{
  static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
  const char *found;

  if (j->at == j->end)
    return false;
  if (*j->at == 'u')
    {
      j->at++;
      return escaped_code (j, to, n);
    }
  found = *j->at != '\0' ? strchr (from, *j->at) : NULL;
  if (found == NULL)
    return false;
  to[(*n)++] = into[found - from];
  j->at++;
  return true;
}

/* A string.  *Owner*: the caller.  NULL: none. */
static char *
string (Json *j)
{
  const char *stop;
  char *text;
  size_t n = 0;

  if (!eat (j, '"'))
    return NULL;
  for (stop = j->at; stop < j->end && *stop != '"'; stop++)
    stop += *stop == '\\' && stop + 1 < j->end;
  text = td__xcalloc ((size_t)(stop - j->at) + 1, 1); /* no escape grows */
  while (j->at < j->end && *j->at != '"')
    {
      bool ok = (unsigned char)*j->at >= 0x20;

      if (ok && *j->at == '\\')
        {
          j->at++;
          ok = escape (j, text, &n);
        }
      else
        text[n++] = *j->at++;
      if (!ok)
        {
          free (text);
          return NULL;
        }
    }
  if (eat (j, '"'))
    return text;
  free (text);
  return NULL;
}

/* A whole number of 0 or more. */
static bool
whole (Json *j, uint64_t *value)
{
  const char *first;

  blanks (j);
  first = j->at;
  *value = 0;
  for (; j->at < j->end && *j->at >= '0' && *j->at <= '9'; j->at++)
    {
      if (*value > (UINT64_MAX - 9) / 10)
        return false;
      *value = *value * 10 + (uint64_t)(*j->at - '0');
    }
  return j->at > first && !(*first == '0' && j->at > first + 1) && *value <= INT64_MAX;
}

/* [a, b ...]: at most `most` numbers. */
static int
numbers (Json *j, uint64_t *values, int most)
{
  int n = 0;

  if (!eat (j, '['))
    return -1;
  if (eat (j, ']'))
    return 0;
  do
    if (n == most || !whole (j, &values[n++]))
      return -1;
  while (eat (j, ','));
  return eat (j, ']') ? n : -1;
}

enum
{
  HAS_DTYPE = 1,
  HAS_SHAPE = 2,
  HAS_OFFSETS = 4
};

static int
field (Json *j, const char *name, TdSafeTensor *t)
{
  uint64_t values[TD_MAX_DIMS];
  int n;

  if (strcmp (name, "dtype") == 0)
    {
      char *dtype = string (j);
      bool ok = dtype != NULL && strlen (dtype) < sizeof t->dtype_name;

      if (ok)
        memcpy (t->dtype_name, dtype, strlen (dtype) + 1);
      free (dtype);
      return ok ? HAS_DTYPE : 0;
    }
  n = numbers (j, values, TD_MAX_DIMS);
  if (strcmp (name, "shape") == 0 && n >= 0)
    {
      t->shape.ndim = n;
      for (int i = 0; i < n; i++)
        t->shape.dim[i] = (int64_t)values[i];
      return HAS_SHAPE;
    }
  if (strcmp (name, "data_offsets") != 0 || n != 2)
    return 0;
  t->begin = values[0];
  t->end = values[1];
  return HAS_OFFSETS;
}

/* {"dtype": ..., "shape": ..., "data_offsets": ...}, each once. */
static bool
tensor (Json *j, TdSafeTensor *t)
{
  int seen = 0;

  if (!eat (j, '{'))
    return false;
  do
    {
      char *name = string (j);
      int bit = name != NULL && eat (j, ':') ? field (j, name, t) : 0;

      free (name);
      if (bit == 0 || (seen & bit) != 0)
        return false;
      seen |= bit;
    }
  while (eat (j, ','));
  return eat (j, '}') && seen == (HAS_DTYPE | HAS_SHAPE | HAS_OFFSETS);
}

static bool
metadata (Json *j)
{
  TdSafeHeader *h = j->header;

  if (!eat (j, '{'))
    return false;
  if (eat (j, '}'))
    return true;
  do
    {
      TdSafeText text = { string (j), NULL };

      if (text.key != NULL && eat (j, ':'))
        text.text = string (j);
      h->texts = td__xrealloc (h->texts, (size_t)(h->n_texts + 1) * sizeof *h->texts);
      h->texts[h->n_texts++] = text;
      if (text.text == NULL)
        return false;
    }
  while (eat (j, ','));
  return eat (j, '}');
}

static bool
member (Json *j, bool *had_metadata)
{
  TdSafeHeader *h = j->header;
  TdSafeTensor *t;
  char *name = string (j);

  if (name == NULL || !eat (j, ':'))
    {
      free (name);
      return false;
    }
  if (strcmp (name, "__metadata__") == 0)
    {
      free (name);
      if (*had_metadata)
        return false;
      *had_metadata = true;
      return metadata (j);
    }
  h->tensors = td__xrealloc (h->tensors, (size_t)(h->n_tensors + 1) * sizeof *h->tensors);
  t = &h->tensors[h->n_tensors++];
  memset (t, 0, sizeof *t);
  t->name = name;
  return tensor (j, t);
}

static int
by_name (const void *a, const void *b)
{
  return strcmp (((const TdSafeTensor *)a)->name, ((const TdSafeTensor *)b)->name);
}

static bool
names_differ (TdSafeHeader *h)
{
  if (h->n_tensors > 1)
    qsort (h->tensors, (size_t)h->n_tensors, sizeof *h->tensors, by_name);
  for (int i = 1; i < h->n_tensors; i++)
    if (strcmp (h->tensors[i - 1].name, h->tensors[i].name) == 0)
      return false;
  return true;
}

bool
td__safe_header_parse (TdSafeHeader *header, const char *json, size_t n, const char **why)
{
  Json j = { json, json + n, header };
  bool had_metadata = false;

  *why = "its header is not the JSON of a safetensors file";
  if (n == 0 || *json != '{' || !eat (&j, '{'))
    return false;
  if (!eat (&j, '}'))
    {
      do
        if (!member (&j, &had_metadata))
          return false;
      while (eat (&j, ','));
      if (!eat (&j, '}'))
        return false;
    }
  blanks (&j);
  if (j.at != j.end)
    return false;
  *why = "its header has two arrays of one name";
  return names_differ (header);
}

void
td__safe_header_clear (TdSafeHeader *header)
{
  for (int i = 0; i < header->n_tensors; i++)
    free (header->tensors[i].name);
  for (int i = 0; i < header->n_texts; i++)
    {
      free (header->texts[i].key);
      free (header->texts[i].text);
    }
  free (header->tensors);
  free (header->texts);
}
