/* What is inside a fused group, for a debugger that stands before it or behind it: the group's
 * operations are run one by one, aside, from what the group reads.  Nothing of the run changes.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core.h"

/** One of its operations. */
typedef struct TdInsideStep
{
  const TdOpClass *cls;
  const TdSite *site;
  TdDtype dtype;
  const TdShape *shape;
} TdInsideStep;

/** What one leaves, row-major. */
typedef struct TdInsideArray
{
  void *data; /**< memory of the host: the caller's to free */
  size_t bytes;
  TdInsideStep step;
} TdInsideArray;

/** Set while somebody may stop behind a group because of what is in it: then what a group
 * overwrites is kept till it is over, on devices that compute in the host's memory. */
extern bool td__inside_wanted;

/** How many operations the group has whose event is told now; 0: it is none. */
uint32_t td__inside_n (void);
TdInsideStep td__inside_step (uint32_t k);
/** Whether it has run: the program stands behind it. */
bool td__inside_ran (void);
/** Run operations 0 to k of it.  *Errors*: false, and why in one line. */
bool td__inside_run (uint32_t k, TdInsideArray *array, char *why, size_t size);
/** The first operation whose result has a NaN; UINT32_MAX: none, or they cannot be run. */
uint32_t td__inside_first_nan (void);
