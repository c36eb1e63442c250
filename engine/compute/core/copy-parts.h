/* Pieces of memory of one device, gathered and copied together: an array that is cut or joined
 * along its first axis, weights that are put into another order.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "device.h"

enum
{
  TD_COPY_PARTS = 128
};

/** Begin with { .device = d }; what is added is copied at the end at the latest. */
typedef struct TdCopyParts
{
  TdDevice *device;
  TdStatus status; /**< of those copied so far; after an error nothing more is */
  int n;
  TdCopyPart part[TD_COPY_PARTS];
} TdCopyParts;

/** Pieces must not overlap, nor may one be copied from where another is copied to. */
void td__copy_parts_add (TdCopyParts *c, void *to, const void *from, size_t bytes);
/** *Errors*: the first of a copy. */
TdStatus td__copy_parts_end (TdCopyParts *c);
