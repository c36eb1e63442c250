/* What tests share that run as several ranks: one engine and one communicator for all tests of
 * a program, and the same numbers on all ranks.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "start.h"

/** All ranks that were started; of MPI, or of what TD_TEST_COMM says. */
extern TdComm *world;
extern int me, n_ranks;

/** A row for a test that leaves nothing behind. */
#define ranks_test(f) cmocka_unit_test_setup_teardown (f, tidy_setup, ranks_teardown)
/** Run a table of tests with one engine and `world`.  Each rank runs all of them. */
#define run_as_ranks(tests) cmocka_run_group_tests (tests, ranks_start, ranks_stop)

int ranks_start (void **state);
int ranks_stop (void **state);
int ranks_teardown (void **state);
/** Numbers in -1 .. 1 that depend on the rank and on a seed, as a variable. */
TdVar *numbers_of (int rank, TdDtype dtype, TdShape shape, unsigned seed);
/** Fail unless a and b have one shape and dtype, and differ by `tolerance` at most, which is
 * relative above 1. */
void assert_near (TdVar *a, TdVar *b, double tolerance);
/** Have all ranks the same bytes here?  For all ranks, and so is what fails unless they have.
 */
bool same_on_all_ranks (const void *bytes, size_t n);
void assert_same_on_all_ranks (const void *bytes, size_t n);
