/* How messages name an operand.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/** "x", or "x = hidden" where the program has named the variable (td_name); name NULL: it has
 * not. */
void td__operand_text (const char *operand, const char *name, char *text, size_t size);
