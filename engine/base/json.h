/* Text as JSON has it: the one place that knows what is escaped, and how.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/** Takes `n` bytes of what is written. */
typedef void (*TdJsonPut) (void *to, const char *text, size_t n);

/** Put `n` bytes of text as a JSON string with its quotes.  Quotes, backslashes and control
 * characters, those that terminals obey among them, are escaped; bytes that are no UTF-8 become
 * U+FFFD. */
void td__json_put_string (TdJsonPut put, void *to, const char *text, size_t n);

/** The same into `out`, without its last characters where not all fit: out is always a whole
 * string when size is 3 or more.  *Owner*: out is the caller's, and is returned. */
const char *td__json_quote (const char *text, char *out, size_t size);
