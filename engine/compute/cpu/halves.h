/* Where kernels of the CPU that know no halves end up when they are given some.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../in-floats.h"
#include "cpu.h"

/** The slot of that name with floats for halves; td__cpu_NAME calls it instead of refusing.
 * *Errors*: TD_ERR_DTYPE where there are none among the operands. */
#define TD_CPU_IN_FLOATS(name, parameters, ...) TdStatus td__cpu_half_##name parameters;
TD_IN_FLOATS_SLOTS (TD_CPU_IN_FLOATS)
