/* Who looks on while a backward runs, and may do a little work between its steps.  Ranks fills
 * it, to send gradients that are final already.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core.h"

/** Of walks to the gradients of leaves; those of td_grad_of, and those that keep a graph, are
 * not told of. */
typedef struct TdWalkWatch
{
  void (*begins) (void);
  /** The backward of op has run: what it gives its inputs is with them. */
  void (*steps) (const TdOp *op);
  /** Gradients are attached to their variables. */
  void (*ends) (TdStatus status);
} TdWalkWatch;
