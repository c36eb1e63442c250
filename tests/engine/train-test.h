/* What the tests of training share: an engine for each test.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "start.h"

/** A CMocka table row for `f`: its folder, a started engine, no error left at its end. */
#define train_test(f) cmocka_unit_test_setup_teardown (f, train_setup, fixture_teardown)

int train_setup (void **state);
