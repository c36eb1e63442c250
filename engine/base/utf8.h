/* UTF-8, and what of it a terminal obeys instead of showing it.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/** The length of the character that begins the `n` bytes at `text`: 0 when they begin none,
 * also not the part of one. */
size_t td__utf8_length (const char *text, size_t n);

/** Whether this character, of `length` bytes, is a control character: below space, DEL, and
 * U+0080 to U+009F. */
bool td__utf8_is_control (const char *character, size_t length);

/** Open a stream that writes to `to` what it gets, control characters but for line end and tab
 * as \xNN, and so bytes that are no UTF-8: what a name on a tape says to a terminal is shown
 * and not obeyed.  *Owner*: close it by fclose before `to`.  *Errors*: NULL and errno; what
 * `to` does not take is an error of its own. */
FILE *td__plain_stream (FILE *to);

/** The same for a text.  *Owner*: the caller, by free.  *Errors*: NULL without memory. */
char *td__plain_text (const char *text);
