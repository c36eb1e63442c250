/*
 * What tables of names have in common, and by which sizes a layer is known under any name.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/** Return a number that sizes have in common in whatever order they stand, which is changed. */
guint64 td__names_token (gint64 *dims, guint n);
/** Split a line of a table, which is changed, into its words, of which there may be more than
 * `most`; what stands behind # is none. Returns their number. */
guint td__names_words (char *line, const char **words, guint most);

G_END_DECLS
