/* A rank's supervisor, out of mpirun's reach: it kills what it has started, with SIGKILL, some
 * milliseconds after SIGTERM, and a tape wants its end.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/** Go on in a process group of one's own, below this process, which stays behind for mpirun: it
 * passes signals on, and ends as the other does; that one gets SIGTERM when it dies.  Returns
 * in the other.  *Errors*: false, where no process can be had: it goes on in this one. */
bool td_keep_apart (void);

/** Has what started that process died meanwhile: mpirun, or its daemon? Nobody ends the ranks
 * then. */
bool td_keep_lost (void);
