/* A file of bytes, plain or gzip (told by its content), read from front to back.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct TdSource TdSource;

/** Open a regular file.  NULL: *why says what is wrong. */
TdSource *td__source_open (const char *path, const char **why);
void td__source_close (TdSource *source);
/** Read up to n bytes.  *Units*: returns bytes, fewer only at the end; -1: *why. */
int64_t td__source_read (TdSource *source, void *bytes, size_t n, const char **why);
/** The most bytes that the file can come to, compressed or not. */
uint64_t td__source_most (const TdSource *source);
/** How much of the file's own bytes has been read, and how many it has. */
void td__source_progress (const TdSource *source, uint64_t *done, uint64_t *all);
bool td__source_is_gzip (const TdSource *source);
