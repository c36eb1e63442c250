/* What the tests of training share: an engine for each test, and what it said.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <tapedeck.h>

#include "td-test.h"

/** A CMocka table row for `f`: its folder, a started engine, no error left at its end. */
#define train_test(f) cmocka_unit_test_setup_teardown (f, train_setup, train_teardown)

int train_setup (void **state);
int train_teardown (void **state);
/** The one line of the first error, which is then forgotten; fails unless it has this status.
 */
const char *train_said (TdStatus status);
