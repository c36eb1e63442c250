/* Rank 0's random state on all ranks: from here on all draw the same numbers.
 *
 * SPDX-License-Identifier: MIT */
#include "arrays.h"

#include "compute/core/core.h"

TdStatus
td__random_share (TdComm *comm, const TdSite *site)
{
  uint64_t state[] = { td__engine.rng_seed, td__engine.rng_offset };
  const TdStatus status = td__bcast_bytes (comm, state, sizeof state, site);

  if (status != TD_OK)
    return status;
  td__engine.rng_seed = state[0];
  td__engine.rng_offset = state[1];
  return TD_OK;
}

TdStatus
td_comm_bcast_random_at (TdComm *comm, const TdSite *site)
{
  TdMeet mine;
  TdStatus status;

  if (!td__comm_usable (comm, "td_comm_bcast_random", site))
    return td__error_status ();
  mine = td__meet_of (TD_MEET_BCAST_RANDOM, NULL, site);
  status = td__meet (comm, &mine, site);
  return status == TD_OK ? td__random_share (comm, site) : status;
}

TdStatus
td_comm_bcast_random (TdComm *comm)
{
  return td_comm_bcast_random_at (comm, NULL);
}
