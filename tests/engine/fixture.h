/* What tests of links and hooks share: an engine per test, and the error that was expected.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <tapedeck.h>

#include "td-test.h"

/** A CMocka row for f with an engine of its own, seed 1; an error that is left fails it. */
#define engine_test(f) cmocka_unit_test_setup_teardown (f, fixture_setup, fixture_teardown)

int fixture_setup (void **state);
int fixture_teardown (void **state);
/** Take the pending error, which must have this status and be one line.  *Owner*: static. */
const char *said (TdStatus status);
/** All numbers of a float array as float64.  *Owner*: static, until the next but seven. */
const double *numbers (TdVar *v);
/** Fail unless two arrays have equal shapes and agree to `tolerance`. */
void assert_same (TdVar *a, TdVar *b, double tolerance);
/** Fail unless v has this shape. */
void assert_shape (TdVar *v, TdShape shape);
/** Overwrite an array of floats by numbers of a fixed sequence in -1 .. 1. */
void fill (TdVar *v, unsigned seed);
/** Fill every parameter of a link. */
void fill_params (TdLink *link, unsigned seed);
/** Names of all parameters below a link, in order, each followed by a space. *Owner*: static.
 */
const char *param_keys (TdLink *link);
