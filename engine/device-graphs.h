/* What a device can do in fewer launches than it is told: work that is captured and launched as
 * one.  Included by device.h.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tapedeck-op.h"

/** Launches that were captured and are launched as one; the device's own. */
typedef struct TdGraph TdGraph;
typedef struct TdRepeat TdRepeat; /**< and such a row of launches */

typedef struct TdSpan
{
  void *address;
  size_t bytes;
} TdSpan;

/** Capturing: between begin and end or abandon, slots launch nothing.  What they would launch
 * becomes a graph, or changes one.  A slot that waits, or moves bytes of the host, cannot be
 * captured: it returns an error and records none. */
typedef struct TdDeviceGraphs
{
  /** change: what slots would launch only gives that graph's steps other operands; else NULL.
   * Returns NULL, or why nothing can be captured. */
  const char *(*begin) (TdDevice *d, TdGraph *change);
  /** What follows is this step's: 0, 1 ...; of a change, those that are to be changed. */
  void (*step) (TdDevice *d, uint32_t step);
  /** *graph: NULL, or an older one, which is updated in place if the new one has its shape.
   * Ignored after a change.  Returns NULL, or why not; then *graph is as it was, or NULL, or,
   * after a change, half changed and good for nothing but to be freed or captured anew. */
  const char *(*end) (TdDevice *d, TdGraph **graph);
  /** why: what could not be captured, or NULL. */
  void (*abandon) (TdDevice *d, const char **why);
  /** Can this step be changed by itself? */
  bool (*changes) (const TdGraph *graph, uint32_t step);
  /** written: what the host may know the numbers of, and does no more. */
  TdStatus (*launch) (TdDevice *d, TdGraph *graph, const TdSpan *written, uint32_t n);
  void (*free) (TdDevice *d, TdGraph *graph);
  /** Slots launch much the same between begin and end each time: by fewer launches.  *repeat:
   * NULL at first, the device's own.  False: not now, and there is no end. */
  bool (*repeat_begin) (TdDevice *d, TdRepeat **repeat);
  TdStatus (*repeat_end) (TdDevice *d);
  void (*repeat_free) (TdDevice *d, TdRepeat *repeat);
} TdDeviceGraphs;
