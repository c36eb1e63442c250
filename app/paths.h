/* Folders of the user: cache, run-time.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** Make $XDG_CACHE_HOME/tapedeck/KIND/HASH and write it to out.  *Errors*: false, one line
 * said. */
bool td_cache_folder (const char *kind, uint64_t hash, char *out, unsigned long size);
/** Make the folder of control sockets, 0700 and ours, and write it to out. */
bool td_runtime_folder (char *out, unsigned long size);
