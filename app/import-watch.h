/* Who looks on while a file is imported: a terminal, or another program on standard output; and
 * the signals that end it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "td-tape-import.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct
{
  TdTapeImportOptions options; /* for the import */
  const char *name;
  uint64_t start_ns;
  TdTapeImportStage stage; /* said last, with `part` of 1000 */
  int part;                /* -1: nothing was said */
  struct sigaction before[2];
} TdImportWatch;

/** Begin to look on at an import of `path`: with `lines` on standard output, else on standard
 * error if that is a terminal, after a second.  From now on SIGINT and SIGTERM end the import.
 */
void td_import_watch_begin (TdImportWatch *w, const char *path, bool lines);

/** Take the line of progress away, and say what went wrong (`error`; NULL: nothing).  Returns
 * the exit code. */
int td_import_watch_end (TdImportWatch *w, const char *error);
