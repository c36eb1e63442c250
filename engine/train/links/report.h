/* Reports from the inside.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "link.h"

/** What is known of a key. */
typedef struct TdReportEntry
{
  char *key;
  int64_t n;
  double last, mean, m2, weight, min, max;
  TdVar *variable; /**< the last one, with its graph; or NULL */
} TdReportEntry;

/** All zero: an empty one, which td_observation_clear empties again. */
struct TdObservation
{
  TdObject object;
  TdReportEntry *entries;
  int n_entries;
  bool is_recorded; /**< what is reported to it goes to the recorder too */
};

/** Clear it, and leave a shell. */
void td__observation_bury (TdObservation *observation);
/** Keep the numbers only. */
void td__observation_drop_graphs (TdObservation *observation);
/** Forget every report and observation that is left. */
void td__reports_finish (void);
