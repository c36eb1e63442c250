/* What tests of the device cuda:0 begin and end with, and how they look at errors.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <tapedeck.h>

#include "far-cuda.h"

/** The driver, from set-up on; with the engine the device too; with memory a segment of it. */
extern const FakeCudaControl *far_driver;
extern TdDevice *far_device;
extern char *far_memory;

/** A test's folder and a driver as new; -1 without one.  The engine is not started. */
int far_test_setup (void **state);
/** Fails if the driver was misused. */
int far_test_teardown (void **state);

/** The same with the engine started, and finished without memory left on the device. */
int far_test_setup_engine (void **state);
int far_test_teardown_engine (void **state);

enum
{
  FAR_MEMORY_BYTES = 2 << 20
};
/** The same with far_memory, which a test may put another segment in the place of. */
int far_test_setup_memory (void **state);
int far_test_teardown_memory (void **state);

/** The engine's error, which is one line and of this status, and is cleared.
 * Owner: this function, until its next call. */
const char *far_test_error (TdStatus status);
