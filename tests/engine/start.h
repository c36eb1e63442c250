/* How tests of the engine start and end it, and what they ask of errors and of Python.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <tapedeck.h>

#include "td-test.h"

/** A CMocka row for f with an engine of its own, seed 1; an error that is left fails it. */
#define engine_test(f) cmocka_unit_test_setup_teardown (f, fixture_setup, fixture_teardown)
/** The same with the seed that the engine begins with, and no folder of data. */
#define train_test(f) cmocka_unit_test_setup_teardown (f, train_setup, fixture_teardown)
/** A CMocka row for f in a group with one engine for all: it leaves no variable, no node and no
 * byte behind. */
#define tidy_test(f) cmocka_unit_test_setup_teardown (f, tidy_setup, tidy_teardown)
/** Run a table of tests with one engine for all of them. */
#define run_with_engine(tests) cmocka_run_group_tests (tests, group_start, group_stop)

int fixture_setup (void **state);
int train_setup (void **state);
int fixture_teardown (void **state);
int tidy_setup (void **state);
int tidy_teardown (void **state);
int group_start (void **state);
int group_stop (void **state);
/** Take the pending error, which must have this status and be one line.  *Owner*: static. */
const char *said (TdStatus status);
/** Fail unless a script for Python with NumPy, given this path, prints this text. */
void assert_python_says (const char *script, const char *path, const char *text);
/** A file that NumPy wrote, in tests/golden/npz.  Owner: the test. */
const char *numpys_file (const char *name);
