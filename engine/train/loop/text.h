/* Text that grows, for the files that extensions write.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/** All zero: empty.  *Owner*: free (text). */
typedef struct TdText
{
  char *text;
  size_t n, room;
} TdText;

void td__text_add (TdText *t, const char *format, ...) __attribute__ ((format (printf, 2, 3)));
/** A text with <, >, & and quotes replaced, as XML wants it. */
void td__text_add_xml (TdText *t, const char *text);
