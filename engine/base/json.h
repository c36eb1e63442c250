/* Writing JSON: item by item, commas and blanks come by themselves; and the one place that
 * knows what of a text is escaped, and how. SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Takes `n` bytes of what is written. */
typedef void (*TdJsonPut) (void *to, const char *text, size_t n);

/** Memory that is written to: all zero, or with room of a fixed size. */
typedef struct
{
  char *text; /* ends in NUL; NULL: nothing was written */
  size_t n, room;
  bool is_fixed; /* the caller's, and does not grow */
  bool is_cut;   /* something did not fit; what comes behind it is left out, too */
} TdJsonText;

/** Write to a TdJsonText.  *Owner*: free (text) where it is not fixed. */
void td__json_put_text (void *to, const char *text, size_t n);
/** Write to a FILE. */
void td__json_put_file (void *to, const char *text, size_t n);

/** How it looks, and how numbers are written. */
typedef enum
{
  TD_JSON_TIGHT, /* one line without blanks */
  TD_JSON_LINES, /* the first two levels in lines of their own; NaN and infinities as texts */
  TD_JSON_PYTHON /* as Python's json writes two levels: four blanks each, 1.0, NaN, Infinity */
} TdJsonStyle;

/** Where one writes.  Nothing in it is for others. */
typedef struct
{
  TdJsonPut put;
  void *to;
  TdJsonStyle style;
  int depth;
  uint64_t has_item, has_lines, is_array; /* one bit per depth */
  bool is_behind_key;
} TdJsonWriter;

/** Begin to write a value by `put`, nested TD_JSON_MAX_DEPTH deep at most.  *Owner*: nothing is
 * to be ended but what is begun. */
void td__json_write (TdJsonWriter *w, TdJsonPut put, void *to, TdJsonStyle style);

/** Whether what was begun is ended. */
bool td__json_is_whole (const TdJsonWriter *w);

void td__json_begin_object (TdJsonWriter *w);
void td__json_end_object (TdJsonWriter *w);
void td__json_begin_array (TdJsonWriter *w);
void td__json_end_array (TdJsonWriter *w);
/** The name of a member, whose value comes next. */
void td__json_key (TdJsonWriter *w, const char *key);
/** A text; NULL: null.  What is no UTF-8 becomes U+FFFD. */
void td__json_string (TdJsonWriter *w, const char *text);
/** The same without its last characters where it would take more than `most` bytes, escaped and
 * without its quotes. */
void td__json_cut_string (TdJsonWriter *w, const char *text, size_t most);
void td__json_int (TdJsonWriter *w, int64_t value);
void td__json_uint (TdJsonWriter *w, uint64_t value);
/** A number in the fewest digits that give it back; NaN and infinities are the texts "nan",
 * "inf" and "-inf", but as Python has them in its style. */
void td__json_double (TdJsonWriter *w, double value);
/** The same of `digits` digits at most. */
void td__json_rounded (TdJsonWriter *w, double value, int digits);
void td__json_bool (TdJsonWriter *w, bool value);
void td__json_null (TdJsonWriter *w);

/* Members: a key, and its value. */
void td__json_member_string (TdJsonWriter *w, const char *key, const char *text);
void td__json_member_int (TdJsonWriter *w, const char *key, int64_t value);
void td__json_member_uint (TdJsonWriter *w, const char *key, uint64_t value);
void td__json_member_double (TdJsonWriter *w, const char *key, double value);
void td__json_member_bool (TdJsonWriter *w, const char *key, bool value);
void td__json_member_null (TdJsonWriter *w, const char *key);

/** Put `n` bytes of text as a JSON string with its quotes.  Quotes, backslashes and control
 * characters, those that terminals obey among them, are escaped; bytes that are no UTF-8 become
 * U+FFFD. */
void td__json_put_string (TdJsonPut put, void *to, const char *text, size_t n);
