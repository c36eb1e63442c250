/* What the kernel says of another process: see process.h.
 *
 * SPDX-License-Identifier: MIT */
#include "process.h"

#include <stdio.h>
#include <string.h>

bool
td__process_read (int pid, TdProcess *process)
{
  char name[64], text[512];
  const char *rest;
  size_t n;
  FILE *f;

  snprintf (name, sizeof name, "/proc/%d/stat", pid);
  f = fopen (name, "re");
  if (f == NULL)
    return false;
  n = fread (text, 1, sizeof text - 1, f);
  fclose (f);
  text[n] = '\0';
  rest = strrchr (text, ')'); /* its name may hold anything */
  return rest != NULL && sscanf (rest + 1, " %c %d", &process->state, &process->parent) == 2;
}
