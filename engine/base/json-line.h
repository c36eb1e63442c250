/* A line of the control protocol: one JSON object of bounded size.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "json.h"

enum
{
  TD_JSON_LINE_BYTES = 4096 /* with its NUL */
};

/** Only `json` is for others. */
typedef struct
{
  TdJsonWriter json;
  TdJsonText text;
  size_t n_tag;
  char line[TD_JSON_LINE_BYTES];
} TdJsonLine;

/** Begin the object, behind the tag of an answer and a blank; NULL: without.  Members go to
 * what is returned.  *Owner*: the line has it. */
TdJsonWriter *td__json_line_begin (TdJsonLine *l, const char *tag);

/** Bytes that are still free, but for those that end objects and lists. */
size_t td__json_line_room (const TdJsonLine *l);

/** End the object; returns the line, without a line end.  *Errors*: where not all of it fits,
 * an answer that says so stands in its place. */
const char *td__json_line_end (TdJsonLine *l);

/** The whole of an answer: that it went well, or why not. */
const char *td__json_line_ok (TdJsonLine *l, const char *tag);
const char *td__json_line_error (TdJsonLine *l, const char *tag, const char *error);
