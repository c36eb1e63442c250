/* `tapedeck run train.py`: a PyTorch script is recorded by the Python package.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** What of `tapedeck run` a script can have. */
typedef struct
{
  const char *tape; /* NULL: the script's name with .tdtape */
  uint32_t level;
  uint64_t budget_bytes; /* 0: unlimited */
  bool overwrite;
  char **argv; /* the script, its arguments, NULL */
} TdPythonRun;

/** Whether a name is that of a Python script. */
bool td_is_python (const char *name);

/** Become the Python that runs and records the script: python3, or what TAPEDECK_PYTHON names.
 * Returns an exit status when that is not possible. */
int td_run_python (const TdPythonRun *run);
