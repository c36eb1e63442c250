/* Definitions, which are recorded once: texts, operation classes, sites, link paths,
 * attributes.
 *
 * SPDX-License-Identifier: MIT */
#include "recorder.h"
#include "host-memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t
mix (uint64_t h)
{
  h ^= h >> 32;
  h *= 0x9E3779B97F4A7C15u;
  return h ^ h >> 29;
}

static void
map_grow (TdIdMap *m)
{
  TdIdMap old = *m;

  m->capacity = old.capacity == 0 ? 256 : 2 * old.capacity;
  m->slots = td__xcalloc (m->capacity, sizeof *m->slots);
  for (size_t i = 0; i < old.capacity; i++)
    if (old.slots[i].id != 0)
      {
        size_t at = mix (old.slots[i].key) & (m->capacity - 1);

        while (m->slots[at].id != 0)
          at = (at + 1) & (m->capacity - 1);
        m->slots[at] = old.slots[i];
      }
  free (old.slots);
}

/* The id of key; a new one is *counter + 1 and sets *is_new. */
static inline uint32_t
map_id (TdIdMap *m, uint64_t key, uint32_t *counter, bool *is_new)
{
  size_t at;

  *is_new = false;
  if (TD_LIKELY (m->capacity > 0))
    for (at = mix (key) & (m->capacity - 1); m->slots[at].id != 0;
         at = (at + 1) & (m->capacity - 1))
      if (m->slots[at].key == key)
        return m->slots[at].id;
  if (2 * (m->n + 1) > m->capacity)
    map_grow (m);
  for (at = mix (key) & (m->capacity - 1); m->slots[at].id != 0;)
    at = (at + 1) & (m->capacity - 1);
  m->slots[at].key = key;
  m->slots[at].id = ++*counter;
  m->n++;
  *is_new = true;
  return m->slots[at].id;
}

static uint64_t
hash_text (const char *text)
{
  uint64_t h = 14695981039346656037u;

  for (; *text != '\0'; text++)
    h = (h ^ (unsigned char)*text) * 1099511628211u;
  return h | 1;
}

enum
{
  LONGEST_STRING = 60000
};

uint32_t
td__recorder_string (TdRecorder *r, const char *text)
{
  uint32_t id, length, bytes;
  bool is_new;
  TdRawString *s;
  size_t n;

  if (text == NULL || *text == '\0')
    return 0;
  id = map_id (&r->strings, hash_text (text), &r->n_strings, &is_new);
  if (!is_new)
    return id;
  n = strlen (text);
  length = n > LONGEST_STRING ? LONGEST_STRING : (uint32_t)n;
  if (length > TD_RING_MAX_RECORD (r->ring) / 2)
    length = TD_RING_MAX_RECORD (r->ring) / 2;
  bytes = TD_RAW_PADDED (sizeof *s + length);
  s = td_ring_reserve (r->ring, bytes);
  s->head = (TdRawHead){ bytes, TD_RAW_STRING, 0 };
  s->id = id;
  s->length = length;
  memcpy (s->bytes, text, length);
  td_ring_publish (r->ring, bytes);
  return id;
}

uint32_t
td__recorder_site (TdRecorder *r, const TdSite *site)
{
  uint32_t id, file, function;
  bool is_new;
  TdRawSite *s;

  if (site == NULL)
    return 0;
  id = map_id (&r->sites, (uint64_t)(uintptr_t)site, &r->n_sites, &is_new);
  if (!is_new)
    return id;
  file = td__recorder_string (r, site->file);
  function = td__recorder_string (r, site->func);
  s = td_ring_reserve (r->ring, sizeof *s);
  s->head = (TdRawHead){ sizeof *s, TD_RAW_SITE, 0 };
  s->site = (TdTapeSite){ id, file, function, site->line > 0 ? (uint32_t)site->line : 0 };
  td_ring_publish (r->ring, sizeof *s);
  return id;
}

uint32_t
td__recorder_path (TdRecorder *r, const TdPath *path)
{
  uint32_t text, link_class, n = 0;
  bool is_new;
  TdRawPath *p;

  if (path == NULL)
    return 0;
  n = path->id - 1; /* ids are the engine's own */
  map_id (&r->paths, path->id, &n, &is_new);
  if (!is_new)
    return path->id;
  text = td__recorder_string (r, path->text);
  link_class = td__recorder_string (r, path->link_class);
  p = td_ring_reserve (r->ring, sizeof *p);
  p->head = (TdRawHead){ sizeof *p, TD_RAW_PATH, 0 };
  p->path = (TdTapePath){ path->id, text, link_class, 0 };
  td_ring_publish (r->ring, sizeof *p);
  return path->id;
}

/* "stride (default 1,1), pad (default 0,0)". */
static void
schema_text (const TdOpClass *cls, char *text, size_t size)
{
  size_t used = 0;

  text[0] = '\0';
  for (int i = 0; i < cls->n_attrs && used < size; i++)
    used += (size_t)snprintf (text + used, size - used, "%s%s%s%s", i > 0 ? ", " : "",
                              cls->attrs[i].name, cls->attrs[i].default_text != NULL ? "=" : "",
                              cls->attrs[i].default_text != NULL ? cls->attrs[i].default_text
                                                                 : "");
}

uint32_t
td__recorder_class (TdRecorder *r, const TdOpClass *cls)
{
  char schema[512];
  uint32_t id, name, group, attributes, formula;
  bool is_new;
  TdRawOpdef *d;

  id = map_id (&r->classes, (uint64_t)(uintptr_t)cls, &r->n_classes, &is_new);
  if (!is_new)
    return id;
  schema_text (cls, schema, sizeof schema);
  name = td__recorder_string (r, cls->name);
  group = td__recorder_string (r, cls->group);
  attributes = td__recorder_string (r, schema);
  formula = td__recorder_string (r, cls->formula);
  d = td_ring_reserve (r->ring, sizeof *d);
  d->head = (TdRawHead){ sizeof *d, TD_RAW_OPDEF, 0 };
  d->def = (TdTapeOpdef){ id,         name,          group,      attributes, formula,
                          cls->flags, cls->n_in_max, cls->n_out, 0 };
  td_ring_publish (r->ring, sizeof *d);
  return id;
}

static int
one_attr_text (const TdAttr *a, const char *at, const char *attrs, char *text, size_t size)
{
  char shape[160];
  int n = 0, count = a->count;

  switch (a->kind)
    {
    case TD_ATTR_INT:
      return snprintf (text, size, "%d", *(const int *)(const void *)at);
    case TD_ATTR_CHOICE:
      return snprintf (text, size, "%s", a->choices[*(const int *)(const void *)at]);
    case TD_ATTR_DTYPE:
      return snprintf (text, size, "%s",
                       td_dtype_name ((TdDtype) * (const int *)(const void *)at));
    case TD_ATTR_DOUBLE:
      return snprintf (text, size, "%.9g", *(const double *)(const void *)at);
    case TD_ATTR_BOOL:
      return snprintf (text, size, "%s", *(const bool *)at ? "true" : "false");
    case TD_ATTR_U64:
      return snprintf (text, size, "%" PRIu64, *(const uint64_t *)(const void *)at);
    case TD_ATTR_SHAPE:
      return snprintf (text, size, "%s",
                       td_shape_text ((const TdShape *)(const void *)at, shape, sizeof shape));
    case TD_ATTR_INTS:
      if (a->n_offset != 0)
        count = *(const int *)(const void *)(attrs + a->n_offset);
      for (int i = 0; i < count && (size_t)n < size; i++)
        n += snprintf (text + n, size - (size_t)n, "%s%d", i > 0 ? "," : "",
                       ((const int *)(const void *)at)[i]);
      return n;
    default:
      return 0;
    }
}

/* The place in the stream of random numbers, with which attributes begin: it is another in
 * every call, and no attribute of the operation. */
static size_t
random_bytes (const TdOpClass *cls)
{
  return cls->flags & TD_OP_RANDOM ? sizeof (TdRngKey) : 0;
}

void
td__attrs_text (const TdOpClass *cls, const void *attrs, char *text, size_t size)
{
  const size_t skip = random_bytes (cls);
  size_t used = 0;

  text[0] = '\0';
  for (int i = 0; i < cls->n_attrs && used + 2 < size; i++)
    {
      const TdAttr *a = &cls->attrs[i];
      int n;

      if (a->offset < skip)
        continue;
      n = snprintf (text + used, size - used, "%s%s=", used > 0 ? " " : "", a->name);

      used += (size_t)n < size - used ? (size_t)n : size - used - 1;
      n = one_attr_text (a, (const char *)attrs + a->offset, attrs, text + used, size - used);
      used += (size_t)n < size - used ? (size_t)n : size - used - 1;
    }
}

uint32_t
td__recorder_attrs (TdRecorder *r, const TdOpClass *cls, const void *attrs,
                    const char *algorithm)
{
  const size_t skip = random_bytes (cls);
  uint64_t h = (uint64_t)(uintptr_t)cls, word;
  uint32_t unused = 0, text_id;
  char text[512];
  bool is_new;

  if ((cls->n_attrs == 0 || attrs == NULL) && algorithm == NULL)
    return 0;
  h ^= (uint64_t)(uintptr_t)algorithm * 0xBF58476D1CE4E5B9u;
  for (size_t i = skip; i < cls->attrs_size; i += sizeof word)
    {
      size_t n = cls->attrs_size - i < sizeof word ? cls->attrs_size - i : sizeof word;

      word = 0;
      memcpy (&word, (const char *)attrs + i, n);
      h = (h ^ word) * 0x9E3779B97F4A7C15u;
      h ^= h >> 31;
    }
  /* The map's id is the text's; only a first call formats it. */
  text_id = map_id (&r->attrs, h | 1, &unused, &is_new);
  if (!is_new)
    return text_id == UINT32_MAX ? 0 : text_id;
  td__attrs_text (cls, attrs, text, sizeof text);
  if (algorithm != NULL)
    snprintf (text + strlen (text), sizeof text - strlen (text), "%salgorithm=%s",
              text[0] != '\0' ? " " : "", algorithm);
  text_id = td__recorder_string (r, text);
  for (size_t at = mix (h | 1) & (r->attrs.capacity - 1);;
       at = (at + 1) & (r->attrs.capacity - 1))
    if (r->attrs.slots[at].key == (h | 1))
      {
        r->attrs.slots[at].id = text_id == 0 ? UINT32_MAX : text_id;
        return text_id;
      }
}
