/* Gradients whose mean the program makes itself, by td_comm_allreduce or td_comm_allgather, or
 * has made by td_comm_allreduce_grad: an optimizer of one rank then makes updates that ranks
 * must have in common.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "arrays.h"

/** Something is going to be summed over the ranks of comm, or given to all: gradients are still
 * this rank's own. */
void td__by_hand_brings (const TdComm *comm);
/** x has been, and y is what all ranks have of it: their sum, or a row of each. */
void td__by_hand_summed (const TdComm *comm, const TdVar *x, const TdVar *y);
/** A backward begins: what was summed before it are no gradients of it. */
void td__by_hand_forget (void);
/** The gradients of these have become their means.  Returns those of which no optimizer is
 * known to tell after its update.  *Owner*: the list the caller, free; its keys borrowed. */
TdCommon td__by_hand_averaged (const TdComm *comm, const TdCommon *common);
