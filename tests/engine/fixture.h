/* What tests of links and hooks share: numbers, and gradients held against differences.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "start.h"

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

/** A call of a link under check: makes out[0 .. n_out - 1] from in. */
typedef void (*LinkCall) (TdLink *link, TdVar *const *in, int n_in, TdVar **out, int n_out);
/** Call it, as td_link_call does. */
void plain_call (TdLink *link, TdVar *const *in, int n_in, TdVar **out, int n_out);
/** Hold the gradients of a float64 link against central differences: of all inputs that are no
 * integers (first and second order) and, first order, of every parameter. */
void check_gradients (TdLink *link, LinkCall call, TdVar *const *in, int n_in, int n_out);
/** A variable of float64 numbers in -1 .. 1. */
TdVar *wide (TdShape shape, unsigned seed);

/** Keep the tests of one part, "0/3" to "2/3" for thirds, where the program's argument names
 * one: every third of them. Returns how many are left. */
size_t fixture_part (struct CMUnitTest *tests, size_t n, int argc, char **argv);
