/* Can a program be started?  Asked before anything is done for its recording.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

/** Why posix_spawnp would not start this program, as errno; 0: nothing speaks against it. */
int td_program_trouble (const char *name);
