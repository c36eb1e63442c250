/* An observer that is told of everything and does nothing, for tests to take and change.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "compute/core/observer.h"

/** All that an observer must have, and nothing that is optional. */
extern const TdObserver quiet_observer;
