/* Files that are installed beside the program: lessons, examples.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/** Return the folders that may hold files of a kind ("lessons", "examples"), the best first:
 * the one that TAPEDECK_LESSONS or TAPEDECK_EXAMPLES names, alone; else those of the sources
 * and of the build, and the installed one. Owner: the caller. */
char **td_data_list_folders (const char *kind);

/** Return the path of a file in one of them. Owner: the caller; NULL: there is none such. */
char *td_data_find (const char *kind, const char *file);

G_END_DECLS
