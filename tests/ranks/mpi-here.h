/* Is there an mpirun to start ranks with?  What with-ranks does, for programs whose children
 * call mpirun themselves.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

/** Set what ranks on one machine need in the environment; false: it has no mpirun, which is
 * said, and the test is skipped (77). */
bool mpi_here (void);
