/* Reading JSON, strictly (RFC 8259), token by token: nothing is allocated, what is wrong ends
 * it. SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum
{
  TD_JSON_MAX_DEPTH = 64
};

typedef enum
{
  TD_JSON_WRONG, /* and again whatever is asked: the text is no JSON */
  TD_JSON_END,   /* of the text, behind one whole value */
  TD_JSON_OBJECT,
  TD_JSON_OBJECT_END,
  TD_JSON_ARRAY,
  TD_JSON_ARRAY_END,
  TD_JSON_KEY,
  TD_JSON_STRING,
  TD_JSON_NUMBER,
  TD_JSON_TRUE,
  TD_JSON_FALSE,
  TD_JSON_NULL
} TdJsonToken;

/** Where in a text one reads.  Only `token` and `wrong` are for others. */
typedef struct
{
  TdJsonToken token; /* the last one */
  const char *at, *end;
  const char *wrong; /* with TD_JSON_WRONG: what cannot stand there, or the end */
  const char *text;  /* of the token: without quotes, with its escapes */
  size_t n;
  int depth;
  uint64_t is_array;  /* one bit per depth */
  bool has_item;      /* the innermost object or array */
  bool is_key_before; /* a value has to come */
  bool takes_python;
} TdJsonReader;

/** Begin to read `n` bytes.  *Owner*: the text is the caller's and has to stay. */
void td__json_read (TdJsonReader *r, const char *text, size_t n);

/** The same of what Python's json writes, for which NaN, Infinity and -Infinity are numbers. */
void td__json_read_python (TdJsonReader *r, const char *text, size_t n);

/** The next token: commas and colons are no tokens, they have to be right.  Nesting beyond
 * TD_JSON_MAX_DEPTH, texts that are no UTF-8 and the character 0 are wrong. */
TdJsonToken td__json_next (TdJsonReader *r);

/** Pass over the value whose first token came last.  *Errors*: false, the text is wrong. */
bool td__json_skip (TdJsonReader *r);

/** Whether the last token is a key or string of these characters. */
bool td__json_is (const TdJsonReader *r, const char *text);

/** Copy the last key or string, cut to what fits; its whole length. */
size_t td__json_text (const TdJsonReader *r, char *out, size_t size);

/** The last number when it is whole, not below 0 and fits.  *Errors*: false. */
bool td__json_whole (const TdJsonReader *r, uint64_t *value);

/** The last number, rounded.  *Errors*: false, when the last token is none, or one of more than
 * 500 characters. */
bool td__json_number (const TdJsonReader *r, double *value);

/** Copy the text of one member of an object.  *Errors*: false and "", when `json` is no object,
 * or has no such member that is a text. */
bool td__json_member (const char *json, const char *member, char *out, size_t size);
