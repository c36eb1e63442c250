/* One recording on the start page: name, size, and, once a worker has read its tape,
 * iterations, a line of the loss, a line of memory and a badge for what went wrong.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

/** Create the row and begin to read the tape. Owner: floating. */
GtkWidget *td_recent_row_new (const char *path, GDateTime *modified);

/** Return the path of the row's recording. Owner: the row. */
const char *td_recent_row_get_path (GtkWidget *row);
