/* Puts iterations made by hand onto a tape.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "td-synthetic.h"
#include "td-tape-writer.h"

/** Write a whole iteration. */
void td_synthetic_write (TdTapeWriter *w, TdIteration *it);
/** Write its first `n_events` events as what runs now; `stop` says why it stands, NULL: it
 * runs. */
void td_synthetic_write_live (TdTapeWriter *w, TdIteration *it, guint n_events,
                              const char *stop);

/** What a rank has beside its operations: strings and sites are the writer's. */
typedef struct
{
  const TdTapeCollective *waits;
  const TdTapeRankSum *sums;
  guint n_waits, n_sums;
  gboolean is_live; /* it ran when the tape ended */
} TdSyntheticRank;

/** Write a whole iteration of a rank. */
void td_synthetic_write_rank (TdTapeWriter *w, TdIteration *it, const TdSyntheticRank *rank);
