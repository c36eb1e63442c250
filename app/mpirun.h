/* mpirun: which it is, what it may be told, and the list of machines that it is given.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/** Which release of Open MPI's mpirun this program is: 4, 5 ...  0: after one line on stderr,
 * it cannot be run, or is another's. */
int td_mpirun_version (const char *program);

/** Say on stderr, in its own words, why this mpirun cannot start anything. */
void td_mpirun_complain (char **argv);

/** Read a file of machines, one a line: NAME [slots=N] [max_slots=N] [port=N]; # begins a
 * comment.  *slots: of all together, 0: a line does not say.  *Errors*: false, one line on
 * stderr with the number of the line. */
bool td_mpirun_hosts (const char *path, long *slots);
