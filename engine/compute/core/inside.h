/* Looking inside a fused group, for a debugger that has stopped before or after it.  The
 * group's operations are run one by one on its inputs, in memory of their own, so that the
 * program is not affected.
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
  const TdPath *path;
} TdInsideStep;

/** The result of an operation, row-major. */
typedef struct TdInsideArray
{
  void *data; /**< host memory; the caller frees it */
  size_t bytes;
  TdInsideStep step;
} TdInsideArray;

/** Called with the result of each operation, which is in host memory and gone afterwards; true
 * to stop. */
typedef bool (*TdInsideVisit) (const TdInsideStep *step, const TdTensor *result, void *user);

/** What static functions tell a debugger, and do for the graph.  TdEngine.statics, or NULL:
 * there are none. */
typedef struct TdStaticTable
{
  /** Verify the next replay of every static function; says how many there are. */
  int (*verify_next) (void);
  /** How many operations the group of the present event has; 0: the event is no group. */
  uint32_t (*n) (void);
  TdInsideStep (*step) (uint32_t k);
  /** Whether the group has run: the program has stopped after it. */
  bool (*ran) (void);
  /** Run operations 0 to k of it.  *Errors*: false, and why in one line. */
  bool (*run) (uint32_t k, TdInsideArray *array, char *why, size_t size);
  /** The first operation whose result has a NaN; UINT32_MAX: none, or they cannot be run. */
  uint32_t (*first_nan) (void);
  /** Run its operations one after the other and look at each result, as far as they can be run.
   * Says whether it was stopped. */
  bool (*each) (TdInsideVisit visit, void *user);
  /** For what changes the graph: of a call that has several results, make the graph of its
   * code. Nothing for other operations. */
  void (*expand) (TdOp *call);
  /** Whether an array of a replay has been used for another value, or has none yet. */
  bool (*overwritten) (const TdBuffer *b);
} TdStaticTable;
