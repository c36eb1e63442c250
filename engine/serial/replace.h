/* Files that are written beside their place and take it when they are whole: a write that fails
 * leaves the old file. SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/** A file that is being written. */
typedef struct
{
  FILE *file;
  const char *path; /* the caller's */
  char temp[4096];
} TdReplace;

/** Begin to write what will be at `path`.  *Owner*: end it by td__replace_end.  *Errors*: false
 * and errno; nothing is to be ended. */
bool td__replace_begin (TdReplace *r, const char *path);

/** Close the file; if it is `whole`, put it on the disk and in its place, else take it away.
 * *Errors*: false and errno, and the old file is still there.  *Sync*: fsync. */
bool td__replace_end (TdReplace *r, bool whole);

/** Write `bytes` bytes that way.  *Errors*: false and errno. */
bool td__replace_file (const char *path, const void *data, size_t bytes);
