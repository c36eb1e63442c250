/* What the kernel says of another process.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

typedef struct
{
  char state; /* as in proc(5): 'R', 'S', 'T' stopped, 'Z' ended and not waited for */
  int parent;
} TdProcess;

/** Read the state of a process.  False: nothing is known of it; it may be gone, or there is no
 * /proc. */
bool td__process_read (int pid, TdProcess *process);
