/* Gradients whose mean the program makes itself, by td_comm_allreduce or td_comm_allgather: an
 * optimizer of one rank then makes updates that ranks must have in common.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "comm.h"

/** Something is going to be summed over the ranks of comm, or given to all: gradients are still
 * this rank's own. */
void td__by_hand_brings (const TdComm *comm);
/** x has been, and y is what all ranks have of it: their sum, or a row of each. */
void td__by_hand_summed (const TdComm *comm, const TdVar *x, const TdVar *y);
/** A backward begins: what was summed before it are no gradients of it. */
void td__by_hand_forget (void);
