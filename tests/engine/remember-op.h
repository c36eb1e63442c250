/* An operation of a program's own that changes what it is given: memory = (memory + x) / 2,
 * which is its result, too. SPDX-License-Identifier: MIT */
#pragma once

#include <tapedeck-op.h>

extern const TdOpClass remember_class;
