/* What is sent of an optimizer.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "comm.h"
#include "train/optim/optimizer.h"

/** Of its kind, and of the names and shapes of its parameters. */
uint64_t td__opt_kind_digest (const TdOpt *opt);
/** Kinds differ: fail on all ranks, naming both. */
TdStatus td__opt_kind_explain (TdComm *comm, const TdOpt *opt, TdMeetKind kind,
                               const TdSite *site);
/** Give all ranks rank 0's; digests are the same. */
TdStatus td__opt_share_state (TdComm *comm, TdOpt *opt, const TdSite *site);

/* multi-node-optimizer.c */
/** All ranks have loaded the same numbers: the next update does not begin with rank 0's, which
 * would take the persistents of the others.  Nothing for an optimizer of one rank. */
void td__opt_loaded_by_all (TdOpt *opt);

/* settings.c */
/** Of hyperparameters, of which parameters are frozen, and of hooks; slots are up to date. */
uint64_t td__opt_settings_digest (const TdOpt *opt);
/** Settings differ: fail on all ranks, by the first that does. */
TdStatus td__opt_settings_explain (TdComm *comm, const TdOpt *opt, TdMeetKind kind,
                                   const TdSite *site);
