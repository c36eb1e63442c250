/* Runs `tapedeck import` for a file that has to be made into a tape before it can be shown.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "live/td-job.h"

/** Start it. Owner: caller. Errors: NULL and `error`. */
TdJob *td_import_new (const char *path, GError **error);

/** Put the tape of a job that has ended well where td_session_dup_import says that the file's
 * is. Owner of the path: caller. Errors: NULL and `error`. */
char *td_import_take (TdJob *job, const char *path, GError **error);
