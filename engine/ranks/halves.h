/* Numbers of 16 bits that ranks add up, for transports that know no such arithmetic.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "transport.h"

/** Each addition is one of floats, rounded once. (halves.c) */
extern const TdWireAdds td__wire_adds;
