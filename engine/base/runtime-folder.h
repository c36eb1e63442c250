/* The folder of control sockets: `tapedeck run` listens in it, the window looks in it, and both
 * choose it here.  SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/** Make `path` and the folders above it, 0700 where they are new.  *Errors*: false and errno;
 * path ends at the folder that cannot be made. */
bool td__make_folders (char *path);

/** Make the user's private folder for temporary files, in $TAPEDECK_TMPDIR, else in /tmp, and
 * write it to out.  *Errors*: false, and `why` says why the folder in out cannot be had. */
bool td__temporary_folder (char *out, size_t size, const char **why);

/** Make the folder of control sockets, 0700 and ours, and write it to out: below
 * $XDG_RUNTIME_DIR, or, where that is unset, another user's, not writable or too long for the
 * address of a socket, the private folder for temporary files.  *Errors*: as there. */
bool td__runtime_folder (char *out, size_t size, const char **why);

/** Say whether somebody listens at this address. */
bool td__socket_answers (const char *path);

/** Remove the sockets and rings that dead runs have left in such a folder. */
void td__runtime_clear (const char *folder);
