/* What the programs of a GPU run share: a clock, medians, one JSON object per line.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <tapedeck.h>

#include <stdbool.h>
#include <stddef.h>

/** Seconds of a clock that only goes forward. */
double measure_now (void);

/** The median of n numbers, which it sorts. */
double measure_median (double *x, int n);

/** Options that all programs take, out of argv: --small (sizes for a device that is none),
 * --seconds S (for each row), --flat N (updates that must leave memory as it is), NAMES of rows
 * (none: all). */
typedef struct MeasureOptions
{
  bool small;
  double seconds;
  int flat;
  char **names;
  int n_names;
} MeasureOptions;
MeasureOptions measure_options (int argc, char **argv);

/** Whether this row was asked for: a name is a row's, or the begin of one that ends in '*'. */
bool measure_wanted (const MeasureOptions *o, const char *row);

/** Median microseconds of a call of `run`, work on the device included: so many calls are sent
 * before the device is waited for that waiting does not count.  *Errors*: a negative number
 * when the engine has an error. */
double measure_call (const MeasureOptions *o, TdDevice *d, void (*run) (void *context),
                     void *context);

/** FNV-1a over bytes, from `hash` on; begin with MEASURE_HASH. */
#define MEASURE_HASH 0xcbf29ce484222325u
unsigned long long measure_hash (unsigned long long hash, const void *bytes, size_t n);

/** The hash of all parameters below a link, in their order. */
unsigned long long measure_params_hash (TdLink *root);

/** End the program: 0, or 1 and the engine's error on standard error. */
int measure_end (void);
