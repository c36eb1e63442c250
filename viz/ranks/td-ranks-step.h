/*
 * A step of all ranks, as its views see it.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-ranks-private.h"
#include "td-ranks-views.h"

struct _TdRanksStep
{
  TdRanks *ranks; /* borrowed */
  TdRankRow *row;
  TdSumTable *table;
  GPtrArray *rungs;
};

/** Return "4 of 4 ranks, iteration 41". Owner: the caller. */
char *td__ranks_step_dup_title (const TdRanksStep *step);
/** Begin the object that all views print, with its iteration and ranks. */
void td__ranks_step_begin_json (const TdRanksStep *step, TdJson *json, GString *out);
