/* Text into JSON strings.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/** Write `text` as a JSON string with its quotes into out; cut before it would not fit.
 * Bytes that are no UTF-8 become U+FFFD. */
const char *td__json_quote (const char *text, char *out, size_t size);
