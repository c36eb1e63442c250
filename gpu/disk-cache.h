/* What took long to make for a device, kept in files for the next run: one file an entry.
 *
 * A file, numbers little-endian:
 *   0  8 bytes  "TDCACHE1"
 *   8  u32      bytes of the key, at most 1 MiB
 *  12  u32      bytes of the value, at most 64 MiB
 *  16  u64      FNV-1a of the key, then the value
 *  24           the key, then the value, then nothing
 * Its name is KIND-HASH.tdcache, HASH the FNV-1a of the key.  The key holds all that the value
 * depends on, versions too: what was made by another version is only not found.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** FNV-1a over more bytes; begin with TD_CACHE_HASH. */
uint64_t td_cuda_cache_hash (uint64_t hash, const void *bytes, size_t n);
#define TD_CACHE_HASH 14695981039346656037u

/** Look into a file's bytes.  *value: inside the file, or NULL where it is of another key.
 * Returns NULL, or what is wrong with it. */
const char *td_cuda_cache_parse (const void *file, size_t bytes, const void *key,
                                 size_t key_bytes, const void **value, size_t *value_bytes);

/** The value of a key; NULL: there is none.  A damaged file is reported in one line, and counts
 * as none.  *Owner*: the caller, free. */
void *td_cuda_cache_read (const char *kind, const void *key, size_t key_bytes, size_t *bytes);
/** Keep a value; where that does not work it is only not kept. */
void td_cuda_cache_write (const char *kind, const void *key, size_t key_bytes,
                          const void *value, size_t bytes);
