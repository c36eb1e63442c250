/* Tapes for the tests of the window: a small LeNet whose numbers come from a fixed random
 * sequence, written with the tape writer as any other recorder would.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** How the recorded program ended. */
typedef enum
{
  SAMPLE_ENDED,   /* exit 0 */
  SAMPLE_KILLED,  /* signal 9, in the middle of the last iteration */
  SAMPLE_EXIT_3,  /* exit 3 */
  SAMPLE_RUNNING, /* no end yet; the last iteration has run up to `live_events` */
} SampleEnd;

typedef struct
{
  unsigned n_iterations;
  SampleEnd end;
  unsigned live_events; /* of the iteration after those; 0: there is none */
  int nan_at;           /* iteration whose last gradients are NaN; -1: none */
} SampleOptions;

enum
{
  SAMPLE_N_FORWARD = 13,
  SAMPLE_N_EVENTS = 45
};

/** Write a tape at `path`; fails the test when that is not possible. */
void sample_tape_write (const char *path, const SampleOptions *options);
