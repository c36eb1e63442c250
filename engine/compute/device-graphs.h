/* Capturing work of a device, to launch it as one graph.  Included by device.h.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tapedeck-op.h"

/** A captured graph; opaque, of the device. */
typedef struct TdGraph TdGraph;
typedef struct TdRepeat TdRepeat; /**< a repeated sequence of launches (repeat_begin) */

typedef struct TdSpan
{
  void *address;
  size_t bytes;
} TdSpan;

/** Capturing.  Between begin and end (or abandon) slots launch nothing: what they would launch
 * becomes a graph, or updates one.  A slot that waits, or copies from or to the host, cannot be
 * captured: it returns an error status without reporting an error. */
typedef struct TdDeviceGraphs
{
  /** change: NULL, or the graph whose steps get the operands of what slots would launch.
   * Returns NULL, or why nothing can be captured. */
  const char *(*begin) (TdDevice *d, TdGraph *change);
  /** What follows belongs to this step: 0, 1 ...; in an update only those that change. */
  void (*step) (TdDevice *d, uint32_t step);
  /** *graph: NULL, or an older graph, which is updated in place if the new one has the same
   * nodes.  Ignored after an update by begin.  Returns NULL on success, else the reason.  Then
   * *graph is unchanged or NULL; after an update it may be half updated, and has to be freed or
   * captured again. */
  const char *(*end) (TdDevice *d, TdGraph **graph);
  /** End a capture without a graph.  *why: what could not be captured, or NULL. */
  void (*abandon) (TdDevice *d, const char **why);
  /** Whether this step can be updated by itself. */
  bool (*changes) (const TdGraph *graph, uint32_t step);
  /** written: the memory that the graph writes, whose values the host may have a copy of. */
  TdStatus (*launch) (TdDevice *d, TdGraph *graph, const TdSpan *written, uint32_t n);
  void (*free) (TdDevice *d, TdGraph *graph);
  /** Between begin and end slots launch nearly the same each time, which the device may do in
   * fewer launches.  *repeat: NULL the first time; the device's.  False: it does not now, and
   * end must not be called. */
  bool (*repeat_begin) (TdDevice *d, TdRepeat **repeat);
  TdStatus (*repeat_end) (TdDevice *d);
  void (*repeat_free) (TdDevice *d, TdRepeat *repeat);
} TdDeviceGraphs;
