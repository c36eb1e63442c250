/* Reads the JSON header of a safetensors file: one object of objects, strictly.
 *
 * SPDX-License-Identifier: MIT */
#include "safetensors.h"

#include "../links/object.h"
#include "json-read.h"

#include <stdlib.h>
#include <string.h>

enum
{
  HAS_DTYPE = 1,
  HAS_SHAPE = 2,
  HAS_OFFSETS = 4
};

/* A member's name and its value behind it.  *Owner*: the caller.  NULL: none. */
static char *
string (const TdJsonReader *r)
{
  char *text;

  if (r->token != TD_JSON_KEY && r->token != TD_JSON_STRING)
    return NULL;
  text = td__xcalloc (r->n + 1, 1); /* no escape grows */
  td__json_text (r, text, r->n + 1);
  return text;
}

/* [a, b ...]: at most `most` whole numbers, -1: something else. */
static int
numbers (TdJsonReader *r, uint64_t *values, int most)
{
  int n = 0;

  if (td__json_next (r) != TD_JSON_ARRAY)
    return -1;
  while (td__json_next (r) == TD_JSON_NUMBER)
    if (n == most || !td__json_whole (r, &values[n]) || values[n++] > INT64_MAX)
      return -1;
  return r->token == TD_JSON_ARRAY_END ? n : -1;
}

/* The member whose key came last; its bit, 0: wrong. */
static int
field (TdJsonReader *r, TdSafeTensor *t)
{
  uint64_t values[TD_MAX_DIMS];
  int n;

  if (td__json_is (r, "dtype"))
    return td__json_next (r) == TD_JSON_STRING
                   && td__json_text (r, t->dtype_name, sizeof t->dtype_name)
                          < sizeof t->dtype_name
               ? HAS_DTYPE
               : 0;
  if (td__json_is (r, "shape"))
    {
      n = numbers (r, values, TD_MAX_DIMS);
      t->shape.ndim = n > 0 ? n : 0;
      for (int i = 0; i < n; i++)
        t->shape.dim[i] = (int64_t)values[i];
      return n >= 0 ? HAS_SHAPE : 0;
    }
  if (!td__json_is (r, "data_offsets") || numbers (r, values, 2) != 2)
    return 0;
  t->begin = values[0];
  t->end = values[1];
  return HAS_OFFSETS;
}

/* {"dtype": ..., "shape": ..., "data_offsets": ...}, each once. */
static bool
tensor (TdJsonReader *r, TdSafeTensor *t)
{
  int seen = 0;

  if (td__json_next (r) != TD_JSON_OBJECT)
    return false;
  while (td__json_next (r) == TD_JSON_KEY)
    {
      const int bit = field (r, t);

      if (bit == 0 || (seen & bit) != 0)
        return false;
      seen |= bit;
    }
  return r->token == TD_JSON_OBJECT_END && seen == (HAS_DTYPE | HAS_SHAPE | HAS_OFFSETS);
}

static bool
metadata (TdJsonReader *r, TdSafeHeader *h)
{
  if (td__json_next (r) != TD_JSON_OBJECT)
    return false;
  while (td__json_next (r) == TD_JSON_KEY)
    {
      TdSafeText text = { string (r), NULL };

      if (td__json_next (r) == TD_JSON_STRING)
        text.text = string (r);
      h->texts = td__xrealloc (h->texts, (size_t)(h->n_texts + 1) * sizeof *h->texts);
      h->texts[h->n_texts++] = text;
      if (text.text == NULL)
        return false;
    }
  return r->token == TD_JSON_OBJECT_END;
}

/* The member whose key came last. */
static bool
member (TdJsonReader *r, TdSafeHeader *h, bool *had_metadata)
{
  TdSafeTensor *t;

  if (td__json_is (r, "__metadata__"))
    {
      const bool twice = *had_metadata;

      *had_metadata = true;
      return !twice && metadata (r, h);
    }
  h->tensors = td__xrealloc (h->tensors, (size_t)(h->n_tensors + 1) * sizeof *h->tensors);
  t = &h->tensors[h->n_tensors++];
  memset (t, 0, sizeof *t);
  t->name = string (r);
  return tensor (r, t);
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
  TdJsonReader r;
  bool had_metadata = false;

  *why = "its header is not the JSON of a safetensors file";
  td__json_read (&r, json, n);
  if (n == 0 || *json != '{' || td__json_next (&r) != TD_JSON_OBJECT)
    return false;
  while (td__json_next (&r) == TD_JSON_KEY)
    if (!member (&r, header, &had_metadata))
      return false;
  if (r.token != TD_JSON_OBJECT_END || td__json_next (&r) != TD_JSON_END)
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
