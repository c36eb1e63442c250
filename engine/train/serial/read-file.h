/* Files that are read in one piece, or a piece of one.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** The whole of a regular file.  *Owner*: the caller, free ().  NULL: *why. */
void *td__read_file (const char *path, size_t *bytes, const char **why);
/** So many bytes of a regular file from offset on; memory is taken once they are there.
 * *Owner*: the caller, free ().  NULL: *why. */
void *td__read_file_part (const char *path, uint64_t offset, size_t bytes, const char **why);
