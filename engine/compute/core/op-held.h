/* What an operation of the graph keeps alive besides the arrays that its operands have saved.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core.h"

/** Told of each reference to an array, with the node that stands for it in the graph. */
typedef void TdHeldEach (void *user, const TdNode *n, const TdBuffer *b);
/** Tell of all that an operation with TD_OP_CAPTURES keeps. */
typedef void TdOpHeld (const TdOp *op, TdHeldEach *each, void *user);

/** Of calls of static functions (static/keeps.c); NULL: there was none. */
extern TdOpHeld *td__op_held;
/** At td_finish: what operations that are still in a graph keep themselves is given back.
 * (node.c) */
void td__ops_finish (void);
