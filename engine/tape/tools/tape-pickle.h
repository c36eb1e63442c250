/* Reading a pickle of plain values: dictionaries, lists, tuples, texts, numbers, None. Whatever
 * would run code or make an object is refused.  What was read is a tree whose parts may be
 * shared, or even contain themselves: users go down to a depth that they know.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../format/tape-private.h"
#include "td-tape-import.h"

/** A value: its kind in the upper four bits; 0 is none at all. */
typedef uint64_t TapeValue;

typedef enum
{
  TAPE_VALUE_ABSENT, /* a key that is not there */
  TAPE_VALUE_NONE,
  TAPE_VALUE_BOOL,
  TAPE_VALUE_INT,
  TAPE_VALUE_FLOAT,
  TAPE_VALUE_TEXT,
  TAPE_VALUE_LIST, /* tuples, too */
  TAPE_VALUE_DICT,
  TAPE_VALUE_BIG, /* an integer of 60 bits and more: INT to users */
  TAPE_N_VALUES
} TapeValueKind;

/** Everything that a pickle has, in few large arrays.  A list is three words (how many, first
 * and last part), a part two (how many, next part) and its items.  A dictionary is a list of
 * its values whose keys are its shape, of which dictionaries with the same keys share one. */
typedef struct
{
  uint64_t *words;
  uint64_t n_words, room_words;
  char *bytes; /* of texts, each with a NUL behind it */
  uint64_t n_bytes, room_bytes;
  uint64_t *texts; /* where each begins in `bytes`, by its number; one more at the end */
  uint64_t n_texts, room_texts;
  struct TapeShape *shapes;
  uint64_t n_shapes, room_shapes;
  TapeMap text_map, shape_map;
  uint64_t budget; /* bytes that all of it may take now */
  uint64_t taken;
  TapeValue root;
} TapePickle;

/** Read a pickle of protocol 2 to 5 from a file, from beginning to end.  Memory is taken only
 * for what has been read, and at most 32 MiB and 16 bytes for each byte of it.  `watch`, which
 * may be NULL, hears how far it is.
 * Owner: the caller; td__tape_pickle_free.
 * Errors: NULL, with one line in `error` that names the offset: "offset 12: GLOBAL is refused
 * ...". */
TapePickle *td__tape_pickle_read (int fd, const TdTapeImportOptions *watch, char *error,
                                  size_t n);
void td__tape_pickle_free (TapePickle *p);

TapeValueKind td__tape_value_kind (TapeValue v);

/** Take a number that is an integer (or a bool) and not negative; false: it is none. */
bool td__tape_value_unsigned (const TapePickle *p, TapeValue v, uint64_t *out);
/** Take a text; "" for anything else.  `n` may be NULL. */
const char *td__tape_value_text (const TapePickle *p, TapeValue v, size_t *n);
double td__tape_value_float (const TapePickle *p, TapeValue v);

/** Number of items of a list, of values of a dictionary; 0 for anything else. */
uint64_t td__tape_value_length (const TapePickle *p, TapeValue v);

/** Going through a list: `for (TapeItems i = td__tape_items (p, v); td__tape_next (p, &i);)`
 * with the item in i.value.  What is no list has no items. */
typedef struct
{
  uint64_t part, k;
  TapeValue value;
} TapeItems;
TapeItems td__tape_items (const TapePickle *p, TapeValue v);
bool td__tape_next (const TapePickle *p, TapeItems *i);

/** The text `key` as a value, ABSENT where the pickle does not have it. */
TapeValue td__tape_key (const TapePickle *p, const char *key);
/** What a dictionary says about a key, the last if it says it twice. */
TapeValue td__tape_member (const TapePickle *p, TapeValue dict, TapeValue key);

/* For the reader of opcodes.  Where a function can fail for want of memory, or of the budget,
 * it returns ABSENT or false. */
void *td__tape_grow (TapePickle *p, void *array, uint64_t *room, uint64_t n, size_t size);
TapeValue td__tape_value_make_text (TapePickle *p, const char *text, size_t n);
TapeValue td__tape_value_make_unsigned (TapePickle *p, uint64_t x);
TapeValue td__tape_value_make_signed (TapePickle *p, int64_t x);
TapeValue td__tape_value_make_float (TapePickle *p, double x);
TapeValue td__tape_value_make_plain (TapeValueKind kind, bool x);
TapeValue td__tape_value_make_list (TapePickle *p, TapeValueKind kind);
bool td__tape_list_add (TapePickle *p, TapeValue list, const TapeValue *items, uint64_t n);
/** Add pairs of key and value.  NULL, or what is wrong with them. */
const char *td__tape_dict_add (TapePickle *p, TapeValue dict, const TapeValue *pairs,
                               uint64_t n_pairs);
