/* `tapedeck run train.py`: a PyTorch script is recorded by the Python package.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "supervisor.h"

/** Whether a name is that of a Python script. */
bool td_is_python (const char *name);

/** Supervise the Python that runs and records the script, which begins `argv`: python3, or what
 * TAPEDECK_PYTHON names.  It writes the tape itself.  Returns the exit status. */
int td_run_python (const TdSupervisorOptions *options);
