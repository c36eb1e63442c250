/*
 * The text of an operation's attributes, "axis=1 shape=(8, 4)", in parts.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/** Split a text of attributes into "name=value" each. A value may have blanks, and brackets
 * with anything between them: an attribute ends before a blank outside all brackets that a name
 * and
 * "=" follow. Owner: the caller, g_strfreev. */
char **td_attributes_split (const char *text);

G_END_DECLS
