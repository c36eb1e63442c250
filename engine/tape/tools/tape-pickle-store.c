/* Where the values of a pickle lie: words, texts that are there once, shapes of dictionaries.
 * SPDX-License-Identifier: MIT */
#include "tape-pickle.h"

#include "td-tape-writer.h"

#include <stdlib.h>
#include <string.h>

#define KIND_SHIFT 60
#define PAYLOAD (((uint64_t)1 << KIND_SHIFT) - 1)
#define INT_SIGN ((uint64_t)1 << (KIND_SHIFT - 1))

/* A list's words. */
enum
{
  LIST_COUNT, /* of a dictionary, with the shape in the upper half */
  LIST_FIRST,
  LIST_LAST,
  LIST_KEPT, /* who refers to it */
  LIST_WORDS,
  PART_COUNT = 0,
  PART_NEXT,
  PART_WORDS
};

#define COUNT_MASK UINT32_MAX
#define MAX_KEYS 1024    /* of one dictionary */
#define MAX_SHAPES 65536 /* a program's dictionaries are of few kinds */

/* What LIST_KEPT says: the number of its memo, plus 1, and above it */
#define KEPT_SHARED ((uint64_t)1 << 63) /* others than one memo and the stack refer to it */
#define KEPT_ONCE ((uint64_t)1 << 62)   /* it is the one that equal ones become */
#define KEPT_EQUAL ((uint64_t)1 << 61)  /* one did */
#define MAX_ONCE_ITEMS 512              /* a stack of frames has fewer */
#define MAX_ONCE_KEYS 4                 /* a frame has three: what has more is rarely equal */

/* The keys of dictionaries: those of `parent`, and one more. */
struct TapeShape
{
  TapeValue key;
  uint32_t parent, n;
  uint32_t longer; /* the last that was asked for with one key more */
};

static TapeValue
make (TapeValueKind kind, uint64_t payload)
{
  return (uint64_t)kind << KIND_SHIFT | (payload & PAYLOAD);
}

static uint64_t
payload_of (TapeValue v)
{
  return v & PAYLOAD;
}

/* ---------------------------------------------------------------------------- memory */

void *
td__tape_grow (TapePickle *p, void *array, uint64_t *room, uint64_t n, size_t size)
{
  const uint64_t left = (p->budget - p->taken) / size;
  uint64_t wanted = *room < 64 ? 64 : *room;
  void *bigger;

  if (n <= *room)
    return array;
  if (n - *room > left)
    return NULL;
  while (wanted < n)
    wanted += wanted / 2;
  if (wanted - *room > left) /* near the end half of what is left: never little by little */
    wanted = *room + (n - *room + left) / 2;
  bigger = realloc (array, wanted * size);
  if (bigger == NULL)
    return NULL;
  p->taken += (wanted - *room) * size;
  *room = wanted;
  return bigger;
}

/* Take words; returns where they begin, 0 if there are none left (0 is never given out). */
static uint64_t
take_words (TapePickle *p, uint64_t n)
{
  const uint64_t at = p->n_words == 0 ? 1 : p->n_words;
  uint64_t *words = td__tape_grow (p, p->words, &p->room_words, at + n, sizeof *words);

  if (words == NULL)
    return 0;
  p->words = words;
  p->n_words = at + n;
  return at;
}

void
td__tape_pickle_free (TapePickle *p)
{
  if (p == NULL)
    return;
  free (p->words);
  free (p->bytes);
  free (p->texts);
  free (p->shapes);
  td__tape_map_clear (&p->text_map);
  td__tape_map_clear (&p->shape_map);
  td__tape_map_clear (&p->once_map);
  free (p);
}

/* The tables' own memory counts, too: 12 bytes a place, doubled when half full. */
static bool
add_to_map (TapePickle *p, TapeMap *map, uint64_t hash, uint64_t value)
{
  const uint32_t room = map->room;

  if (value >= (uint64_t)1 << 30 || (map->n * 2 >= room && p->budget - p->taken < room * 24ull))
    return false;
  if (!td__tape_map_add (map, hash, (uint32_t)value))
    return false;
  p->taken += (map->room - room) * 12ull;
  return true;
}

/* ---------------------------------------------------------------------------- values */

TapeValueKind
td__tape_value_kind (TapeValue v)
{
  const TapeValueKind kind = v >> KIND_SHIFT;

  return kind == TAPE_VALUE_BIG ? TAPE_VALUE_INT : kind;
}

TapeValue
td__tape_value_make_plain (TapeValueKind kind, bool x)
{
  return make (kind, x);
}

TapeValue
td__tape_value_make_signed (TapePickle *p, int64_t x)
{
  if (x >= 0)
    return td__tape_value_make_unsigned (p, (uint64_t)x);
  if (x >= -(int64_t)INT_SIGN)
    return make (TAPE_VALUE_INT, (uint64_t)x);
  return make (TAPE_VALUE_INT, INT_SIGN); /* nobody asks how negative */
}

TapeValue
td__tape_value_make_unsigned (TapePickle *p, uint64_t x)
{
  uint64_t at;

  if (x < INT_SIGN)
    return make (TAPE_VALUE_INT, x);
  at = take_words (p, 1);
  if (at == 0)
    return 0;
  p->words[at] = x;
  return make (TAPE_VALUE_BIG, at);
}

TapeValue
td__tape_value_make_float (TapePickle *p, double x)
{
  const uint64_t at = take_words (p, 1);

  if (at == 0)
    return 0;
  memcpy (&p->words[at], &x, sizeof x);
  return make (TAPE_VALUE_FLOAT, at);
}

bool
td__tape_value_unsigned (const TapePickle *p, TapeValue v, uint64_t *out)
{
  const TapeValueKind kind = v >> KIND_SHIFT;

  if (kind == TAPE_VALUE_BIG)
    *out = p->words[payload_of (v)];
  else if ((kind == TAPE_VALUE_INT && (v & INT_SIGN) == 0) || kind == TAPE_VALUE_BOOL)
    *out = payload_of (v);
  else
    return false;
  return true;
}

double
td__tape_value_float (const TapePickle *p, TapeValue v)
{
  double x = 0;

  if (td__tape_value_kind (v) == TAPE_VALUE_FLOAT)
    memcpy (&x, &p->words[payload_of (v)], sizeof x);
  return x;
}

/* ----------------------------------------------------------------------------- texts */

typedef struct
{
  const TapePickle *p;
  const char *text;
  size_t n;
} Wanted;

static bool
same_text (const void *user, uint32_t value)
{
  const Wanted *w = user;
  const uint64_t from = w->p->texts[value - 1], to = w->p->texts[value] - 1;

  return to - from == w->n && memcmp (w->p->bytes + from, w->text, w->n) == 0;
}

static uint32_t
find_text (const TapePickle *p, const char *text, size_t n, uint64_t hash)
{
  return td__tape_map_find (&p->text_map, hash, same_text, &(Wanted){ p, text, n });
}

TapeValue
td__tape_value_make_text (TapePickle *p, const char *text, size_t n)
{
  const uint64_t hash = td_tape_hash_bytes (0, text, n);
  uint32_t id = find_text (p, text, n, hash);
  uint64_t *texts;
  char *bytes;

  if (id != 0)
    return make (TAPE_VALUE_TEXT, id);
  bytes = td__tape_grow (p, p->bytes, &p->room_bytes, p->n_bytes + n + 1, 1);
  if (bytes == NULL)
    return 0;
  p->bytes = bytes;
  texts = td__tape_grow (p, p->texts, &p->room_texts, p->n_texts + 2, sizeof *texts);
  if (texts == NULL)
    return 0;
  p->texts = texts;
  if (!add_to_map (p, &p->text_map, hash, p->n_texts + 1))
    return 0;
  if (n > 0)
    memcpy (bytes + p->n_bytes, text, n);
  bytes[p->n_bytes + n] = '\0';
  texts[p->n_texts++] = p->n_bytes;
  p->n_bytes += n + 1;
  texts[p->n_texts] = p->n_bytes;
  return make (TAPE_VALUE_TEXT, p->n_texts);
}

const char *
td__tape_value_text (const TapePickle *p, TapeValue v, size_t *n)
{
  const uint64_t id = payload_of (v);
  const bool is = td__tape_value_kind (v) == TAPE_VALUE_TEXT;

  if (n != NULL)
    *n = is ? p->texts[id] - 1 - p->texts[id - 1] : 0;
  return is ? p->bytes + p->texts[id - 1] : "";
}

TapeValue
td__tape_key (const TapePickle *p, const char *key)
{
  const size_t n = strlen (key);
  const uint32_t id = find_text (p, key, n, td_tape_hash_bytes (0, key, n));

  return id != 0 ? make (TAPE_VALUE_TEXT, id) : 0;
}

/* ------------------------------------------------------------------------------ lists */

TapeValue
td__tape_value_make_list (TapePickle *p, TapeValueKind kind)
{
  const uint64_t at = take_words (p, LIST_WORDS);

  if (at == 0)
    return 0;
  memset (&p->words[at], 0, LIST_WORDS * sizeof *p->words);
  return make (kind, at);
}

bool
td__tape_list_add (TapePickle *p, TapeValue list, const TapeValue *items, uint64_t n)
{
  const uint64_t head = payload_of (list);
  uint64_t last = p->words[head + LIST_LAST], at;

  if (n == 0)
    return true;
  if (n > COUNT_MASK - (p->words[head] & COUNT_MASK))
    return false;
  if (last != 0 && last + PART_WORDS + p->words[last + PART_COUNT] == p->n_words)
    { /* nothing behind it yet: it grows */
      at = take_words (p, n);
      if (at == 0)
        return false;
      p->words[last + PART_COUNT] += n;
    }
  else
    {
      const uint64_t part = take_words (p, PART_WORDS + n);

      if (part == 0)
        return false;
      p->words[part + PART_COUNT] = n;
      p->words[part + PART_NEXT] = 0;
      p->words[last != 0 ? last + PART_NEXT : head + LIST_FIRST] = part;
      p->words[head + LIST_LAST] = part;
      at = part + PART_WORDS;
    }
  memcpy (&p->words[at], items, n * sizeof *items);
  p->words[head] += n;
  return true;
}

static bool
has_items (TapeValue v)
{
  const TapeValueKind kind = td__tape_value_kind (v);

  return kind == TAPE_VALUE_LIST || kind == TAPE_VALUE_DICT;
}

uint64_t
td__tape_value_length (const TapePickle *p, TapeValue v)
{
  return has_items (v) ? p->words[payload_of (v)] & COUNT_MASK : 0;
}

TapeItems
td__tape_items (const TapePickle *p, TapeValue v)
{
  const bool is = td__tape_value_kind (v) == TAPE_VALUE_LIST;

  return (TapeItems){ .part = is ? p->words[payload_of (v) + LIST_FIRST] : 0 };
}

bool
td__tape_next (const TapePickle *p, TapeItems *i)
{
  if (i->part != 0 && i->k == p->words[i->part + PART_COUNT])
    {
      i->part = p->words[i->part + PART_NEXT];
      i->k = 0;
    }
  if (i->part == 0)
    return false;
  i->value = p->words[i->part + PART_WORDS + i->k++];
  return true;
}

/* ----------------------------------------------------------------------- dictionaries */

typedef struct
{
  const TapePickle *p;
  TapeValue key;
  uint32_t parent;
} WantedShape;

static bool
same_shape (const void *user, uint32_t value)
{
  const WantedShape *w = user;
  const struct TapeShape *s = &w->p->shapes[value];

  return s->parent == w->parent && s->key == w->key;
}

/* The shape with one key more; 0: none. */
static uint32_t
shape_with (TapePickle *p, uint32_t parent, TapeValue key)
{
  const WantedShape wanted = { p, key, parent };
  struct TapeShape *shapes = p->shapes;
  uint32_t found = shapes != NULL ? shapes[parent].longer : 0;
  uint64_t hash;

  if (found != 0 && shapes[found].key == key) /* one dictionary is like the one before */
    return found;
  hash = td_tape_hash (td_tape_hash (1, parent), key);
  found = td__tape_map_find (&p->shape_map, hash, same_shape, &wanted);
  if (found != 0)
    return shapes[parent].longer = found;
  if (p->n_shapes >= MAX_SHAPES)
    return 0;
  if (p->n_shapes == 0)
    p->n_shapes = 1; /* 0 is that of an empty dictionary */
  shapes = td__tape_grow (p, p->shapes, &p->room_shapes, p->n_shapes + 1, sizeof *shapes);
  if (shapes == NULL)
    return 0;
  p->shapes = shapes;
  if (!add_to_map (p, &p->shape_map, hash, p->n_shapes))
    return 0;
  if (parent == 0)
    shapes[0] = (struct TapeShape){ 0 };
  shapes[p->n_shapes] = (struct TapeShape){ key, parent, shapes[parent].n + 1, 0 };
  return shapes[parent].longer = (uint32_t)p->n_shapes++;
}

const char *
td__tape_dict_add (TapePickle *p, TapeValue dict, const TapeValue *pairs, uint64_t n_pairs)
{
  const uint64_t head = payload_of (dict);

  for (uint64_t i = 0; i < n_pairs; i++)
    {
      const uint32_t shape = (uint32_t)(p->words[head] >> 32);
      const TapeValueKind kind = pairs[2 * i] >> KIND_SHIFT;
      uint32_t longer;

      if (kind != TAPE_VALUE_TEXT && kind != TAPE_VALUE_INT)
        return "a key that is neither a text nor a small number";
      if ((p->words[head] & COUNT_MASK) >= MAX_KEYS)
        return "a dictionary of more than 1024 keys";
      longer = shape_with (p, shape, pairs[2 * i]);
      if (longer == 0)
        return p->n_shapes >= MAX_SHAPES ? "too many different dictionaries" : "no memory";
      if (!td__tape_list_add (p, dict, &pairs[2 * i + 1], 1))
        return "no memory";
      p->words[head] = (p->words[head] & COUNT_MASK) | (uint64_t)longer << 32;
    }
  return NULL;
}

/* The k-th value. */
static TapeValue
value_at (const TapePickle *p, TapeValue dict, uint64_t k)
{
  uint64_t part = p->words[payload_of (dict) + LIST_FIRST];

  while (part != 0 && k >= p->words[part + PART_COUNT])
    {
      k -= p->words[part + PART_COUNT];
      part = p->words[part + PART_NEXT];
    }
  return part != 0 ? p->words[part + PART_WORDS + k] : 0;
}

TapeValue
td__tape_member (const TapePickle *p, TapeValue dict, TapeValue key)
{
  uint32_t shape;

  if (td__tape_value_kind (dict) != TAPE_VALUE_DICT || key == 0)
    return 0;
  for (shape = (uint32_t)(p->words[payload_of (dict)] >> 32); shape != 0;
       shape = p->shapes[shape].parent)
    if (p->shapes[shape].key == key)
      return value_at (p, dict, p->shapes[shape].n - 1);
  return 0;
}

/* ------------------------------------------------------------- equal ones are there once */

static uint64_t *
kept_of (const TapePickle *p, TapeValue v)
{
  return has_items (v) ? &p->words[payload_of (v) + LIST_KEPT] : NULL;
}

void
td__tape_note_put (TapePickle *p, TapeValue v, uint64_t memo)
{
  uint64_t *kept = kept_of (p, v);

  if (kept == NULL)
    return;
  if ((*kept & UINT32_MAX) == 0 && memo < UINT32_MAX)
    *kept |= memo + 1;
  else
    *kept |= KEPT_SHARED;
}

void
td__tape_note_copy (TapePickle *p, TapeValue v)
{
  uint64_t *kept = kept_of (p, v);

  if (kept != NULL && !(*kept & KEPT_SHARED))
    *kept |= KEPT_SHARED;
}

bool
td__tape_may_grow (TapePickle *p, TapeValue v)
{
  uint64_t *kept = kept_of (p, v);

  if (*kept & KEPT_EQUAL)
    return false;
  *kept &= ~KEPT_ONCE;
  return true;
}

/* The items lie in one part: they came at once. */
static const uint64_t *
part_of (const TapePickle *p, TapeValue v)
{
  return &p->words[p->words[payload_of (v) + LIST_FIRST] + PART_WORDS];
}

typedef struct
{
  const TapePickle *p;
  TapeValue value;
} WantedOnce;

static bool
same_items (const void *user, uint32_t at)
{
  const WantedOnce *w = user;
  const TapePickle *p = w->p;
  const uint64_t *mine = &p->words[payload_of (w->value)], *its = &p->words[at];
  const TapeValue other = make (w->value >> KIND_SHIFT, at);

  return (its[LIST_KEPT] & KEPT_ONCE) && its[LIST_COUNT] == mine[LIST_COUNT]
         && p->words[its[LIST_FIRST] + PART_COUNT] == p->words[mine[LIST_FIRST] + PART_COUNT]
         && memcmp (part_of (p, other), part_of (p, w->value),
                    p->words[mine[LIST_FIRST] + PART_COUNT] * sizeof *mine)
                == 0;
}

/* Memory goes back only where nothing came behind the head but the items. */
TapeValue
td__tape_once (TapePickle *p, TapeValue v, TapeValue *memo, uint64_t n_memo)
{
  const uint64_t head = payload_of (v), n = p->words[head] & COUNT_MASK;
  const uint64_t kept = p->words[head + LIST_KEPT], slot = kept & UINT32_MAX;
  const TapeValueKind kind = td__tape_value_kind (v);
  const uint64_t *items = part_of (p, v);
  uint64_t hash = td_tape_hash (kind, p->words[head]);
  uint32_t found;

  if (n == 0 || n > (kind == TAPE_VALUE_DICT ? MAX_ONCE_KEYS : MAX_ONCE_ITEMS)
      || (kept & (KEPT_SHARED | KEPT_ONCE)) || p->words[head + LIST_FIRST] == 0
      || p->words[p->words[head + LIST_FIRST] + PART_COUNT] != n)
    return v;
  for (uint64_t i = 0; i < n; i++)
    hash = (hash ^ items[i]) * 0x9e3779b97f4a7c15u ^ hash >> 29;
  hash = td_tape_hash (hash, kind);
  found = td__tape_map_find (&p->once_map, hash, same_items, &(WantedOnce){ p, v });
  if (found == 0)
    {
      if (head < (uint64_t)1 << 30 && add_to_map (p, &p->once_map, hash, head))
        p->words[head + LIST_KEPT] |= KEPT_ONCE;
      return v;
    }
  p->words[found + LIST_KEPT] |= KEPT_EQUAL;
  if (slot != 0 && slot <= n_memo && memo[slot - 1] == v)
    memo[slot - 1] = make (kind, found);
  if (head + LIST_WORDS + PART_WORDS + n == p->n_words)
    p->n_words = head;
  return make (kind, found);
}

bool
td__tape_forget (TapePickle *p, TapeValue dict, uint64_t n_words, TapeValue *memo,
                 uint64_t n_memo)
{
  const uint64_t head = payload_of (dict), kept = p->words[head + LIST_KEPT];
  const uint64_t slot = kept & UINT32_MAX;

  if (kept & (KEPT_SHARED | KEPT_ONCE))
    return false;
  if (slot != 0 && slot <= n_memo && memo[slot - 1] == dict)
    memo[slot - 1] = make (TAPE_VALUE_TAKEN, 0);
  p->n_words = head + LIST_WORDS == n_words ? head : n_words;
  return true;
}
