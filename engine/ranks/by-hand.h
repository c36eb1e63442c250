/* Gradients whose mean the program makes itself, by td_comm_allreduce and td_set_grad: an
 * optimizer of one rank then makes updates that ranks must have in common.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "comm.h"

/** x has been summed over the ranks of comm. */
void td__by_hand_summed (const TdComm *comm, const TdVar *x);
/** A backward begins: what was summed before it are no gradients of it. */
void td__by_hand_forget (void);
