/* What is sent of an optimizer.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "comm.h"
#include "train/optim/optimizer.h"

/** Of its kind, and of the names and shapes of its parameters. */
uint64_t td__opt_kind_digest (const TdOpt *opt);
/** Give all ranks rank 0's; digests are the same. */
TdStatus td__opt_share_state (TdComm *comm, TdOpt *opt, const TdSite *site);
