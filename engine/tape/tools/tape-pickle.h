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
  TAPE_VALUE_BIG,   /* an integer of 60 bits and more: INT to users */
  TAPE_VALUE_TAKEN, /* an entry of a trace that was handed on, and is not kept */
  TAPE_N_VALUES
} TapeValueKind;

/** Everything that a pickle has, in few large arrays.  A list is four words (how many, first
 * and last part, who refers to it), a part two (how many, next part) and its items.  A
 * dictionary is a list of its values whose keys are its shape, of which dictionaries with the
 * same keys share one.  Lists of up to 512 items and dictionaries of up to 4 keys that are
 * equal are one: the stack of an allocation is that of the same line an iteration before. */
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
  TapeMap text_map, shape_map, once_map;
  uint64_t budget; /* bytes that all of it may take now */
  uint64_t taken;
  uint64_t n_read; /* bytes of the file */
  TapeValue root;
} TapePickle;

/** Who is given the entries of the traces, root["device_traces"][device][k], in their order and
 * as soon as they are whole; they are not kept.  `dict` is valid during the call.  Returns
 * false, with one line in `error`, to end the reading. */
typedef struct
{
  bool (*begin) (void *user, TapePickle *p); /* texts may be made; false: no memory */
  bool (*take) (void *user, const TapePickle *p, uint32_t device, TapeValue dict, char *error,
                size_t n);
  void *user;
} TapeEntries;

/** Read a pickle of protocol 2 to 5 from a file, from beginning to end.  Memory is taken only
 * for what has been read, and at most 32 MiB and 16 bytes for each byte of it.  `watch`, which
 * may be NULL, hears how far it is; `entries` may be NULL: all is kept.
 * Owner: the caller; td__tape_pickle_free.
 * Errors: NULL, with one line in `error` that names the offset: "offset 12: GLOBAL is refused
 * ...", or with that of `entries`. */
TapePickle *td__tape_pickle_read (int fd, const TdTapeImportOptions *watch,
                                  const TapeEntries *entries, char *error, size_t n);
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

/** Note that a value was put into the memo; that another place than the stack's and the memo's
 * has it. */
void td__tape_note_put (TapePickle *p, TapeValue v, uint64_t memo);
void td__tape_note_copy (TapePickle *p, TapeValue v);
/** May a list or dictionary get more than it has?  Not if another has become it. */
bool td__tape_may_grow (TapePickle *p, TapeValue v);
/** Returns the list or dictionary that is equal to `v`, which has just got all of its items at
 * once and is on top of the stack: an older one, which takes its place in the memo, or itself.
 */
TapeValue td__tape_once (TapePickle *p, TapeValue v, TapeValue *memo, uint64_t n_memo);
/** Forget a dictionary that is on top of the stack, and the words behind the first `n_words`,
 * which it has taken last.  False: it is kept, for others refer to it. */
bool td__tape_forget (TapePickle *p, TapeValue dict, uint64_t n_words, TapeValue *memo,
                      uint64_t n_memo);
