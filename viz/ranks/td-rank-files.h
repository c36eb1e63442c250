/*
 * Which files are the tapes of a run's ranks: those of a folder, or the siblings of one.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/** List the tapes that are meant: all of a folder, or where one tape is given its siblings by
 * its name ("run-rank-0.tdtape"), or those that are given. They may be of anything. Owner: the
 * caller, with its texts. Errors: NULL, the folder cannot be read. */
GPtrArray *td_rank_files_list (const char *const *paths, guint n, GError **error);

/** Find the tape of one rank among those of a folder, or beside the tape of another, by what
 * they say of themselves. n_ranks: of the run, as far as a tape says it; 0: there is none of
 * ranks. Owner: the caller. NULL: that rank has none. */
char *td_rank_files_find (const char *path, guint rank, guint *n_ranks);

/** The same, of the first rank that has one. */
char *td_rank_files_find_first (const char *path, guint *n_ranks);

G_END_DECLS
