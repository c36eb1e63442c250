/* Static functions beside define-by-run: a scenario runs twice, once with config
 * use_static_graph off and once on, and every array that it notes must be the same to the bit.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "fixture.h"

/** A scenario: makes its links, functions and arrays anew, and notes what it computes. */
typedef void (*Scenario) (void *user);
/** Run it both ways and compare; after it a random number is compared too (the place in the
 * stream). */
void run_both (Scenario scenario, void *user);
/** Name what runs, for a failure's message. */
void run_doing (const char *what, int number);
/** run_both with a tolerance in units of the last place of the array's largest number, instead
 * of bits. */
void run_near (Scenario scenario, void *user, int ulps);
/** Which of the two runs this is. */
bool is_static_run (void);

/** Note an array, NULL included. */
void note (TdVar *v);
/** Note a number. */
void note_number (double x);
/** Note every parameter and persistent below a link, and their gradients. */
void note_link (TdLink *link);
/** In the static run, fail unless so many calls of s ran its code and so many its schedule. */
void expect_calls (TdStatic *s, uint64_t n_code, uint64_t n_replays);
/** In the static run, fail unless the last miss holds every one of these words (NULL ends). */
void expect_miss (TdStatic *s, ...);

/** Skip the test where arrays are not the CPU's: the same programs are run on other devices. */
void skip_off_cpu (void);
/** Fail unless both have the same shape and bits. */
void assert_bits (TdVar *a, TdVar *b);
/** Numbers of a fixed sequence in -1 .. 1. */
TdVar *some (TdShape shape, unsigned seed);
/** Labels 0 .. classes - 1. */
TdVar *classes (int64_t n, int n_classes, unsigned seed);

/** A net with dropout and running statistics, and what its code reads besides. */
typedef struct
{
  TdLink *root, *l1, *bn, *l2;
  int n_code, n_wrapped;
  int tanh_instead;
  float scale;
  TdVar *captured;
} Net;
Net net_new (void);
/** l1, bn, relu, dropout, l2; counts its runs and, by td_static_code, its calls. */
void net_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out);
/** l1, then tanh or relu, times scale, plus captured: as the fields of the net say. */
void reading_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out);
/** l1, relu, l2, and the cross entropy with labels as second input, at net.c:42. */
void classifier_forward (void *self, TdVar *const *in, int n_in, TdVar **out, int n_out);
TdVar *sum_of_squares (TdVar *y);

/** The plan of a function that has a schedule. */
const struct TdPlan *plan_of (TdStatic *s);
