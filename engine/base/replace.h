/* How every file is written: beside its place, which it takes when it is whole, so that a write
 * that fails leaves the old file.  A link is followed, what it names is replaced.  What is no
 * file, a pipe or a terminal, is written to and never replaced.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/** A file that is being written. */
typedef struct
{
  FILE *file;
  char path[4096]; /* with links followed */
  char temp[4096]; /* empty: not beside its place, but to it */
} TdReplace;

/** Begin to write what will be at `path`.  A new file gets `rights`, 0666 or 0600, as far as
 * the user's umask leaves them, another keeps its own.  *Owner*: end it by td__replace_end.
 * *Errors*: false and errno, for a file that may not be written too; nothing is to be ended. */
bool td__replace_begin (TdReplace *r, const char *path, mode_t rights);

/** Close the file; if it is `whole`, put it on the disk and in its place, else take it away.
 * *Errors*: false and errno, and the old file is still there.  *Sync*: fsync. */
bool td__replace_end (TdReplace *r, bool whole);

/** Write `bytes` bytes that way, with rights 0666.  *Errors*: false and errno. */
bool td__replace_file (const char *path, const void *data, size_t bytes);

/** Write out what stdout still holds.  *Errors*: false and errno, when any of it is lost. */
bool td__stdout_end (void);
