/* Text that grows, and numbers as Python writes them.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/** All zero: empty.  *Owner*: free (text). */
typedef struct TdText
{
  char *text;
  size_t n, room;
} TdText;

void td__text_add (TdText *t, const char *format, ...) __attribute__ ((format (printf, 2, 3)));
/** A text in quotes, as JSON wants it. */
void td__text_add_json (TdText *t, const char *text);
/** A text with <, >, & and quotes replaced, as XML wants it. */
void td__text_add_xml (TdText *t, const char *text);
/** A number in the fewest digits that give it back; NaN and Infinity as Python's json has them.
 */
void td__text_add_number (TdText *t, double value, bool is_whole);
