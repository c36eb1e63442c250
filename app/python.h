/* `tapedeck run train.py`: a PyTorch script is recorded by the Python package.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "supervisor.h"

/** Whether a name is that of a Python script. */
bool td_is_python (const char *name);

/** The tape of a script that is given none: its name with .tdtape, in the folder where it runs.
 * *Owner*: static, till the next call. */
const char *td_python_tape (const char *script);

/** Say in the environment where ranks on one machine meet: at a port that is free now. */
void td_python_meet (void);

/** Supervise the Python that runs and records the script, which begins `argv`: python3, or what
 * TAPEDECK_PYTHON names.  It writes the tape itself.  Returns the exit status. */
int td_run_python (const TdSupervisorOptions *options);
