/* Control of all ranks of a run together: what one is told, all do, at the same event.
 *
 * Where one stops for a reason of its own the others stop at the same event, or, if they have
 * come further, at their next.  Until then they may have to go through a call for all ranks
 * that this one stands before: they then wait in it, which is no hang, and stop behind it.  So
 * that they have not come further, ranks go event by event while there is a breakpoint that may
 * hold on some of them only: none begins an event before all others have looked whether they
 * stop before it.  Nobody waits so for a rank that waits itself, or for longer than a second.
 *
 * A rank that is told to move takes the move from where the one stood that was told: one that
 * is behind comes there first, one that is further and has done it stays.  That is how they
 * come level again.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "agent.h"

/** Begin; NULL: the program is no rank of a run, or the file of the run is not to be had.
 * Borrowed: the agent.  Owner: the caller. */
TdAgentRanks *td__together_new (TdAgent *a);
void td__together_free (TdAgentRanks *t);

/** Answer what came of a change of breakpoints that all were told. */
void td__together_answer (TdAgentRanks *t, const char *tag, uint64_t number);
/** Take changes of breakpoints that have come. */
void td__together_changes (TdAgentRanks *t);
/** Take all that has come; before an event: place is its own. */
void td__together_news (TdAgentRanks *t);
void td__together_before (TdAgentRanks *t, const TdControlPlace *place);
/** What the program does before an event. */
typedef enum
{
  TD_TOGETHER_RUNS,   /**< whatever its own step says */
  TD_TOGETHER_STANDS, /**< see td__together_why */
  TD_TOGETHER_PASSES  /**< its step begins here */
} TdTogetherWay;

/** No breakpoint of this rank stops before that event: wait until that is so of the others,
 * where there are some that may hold on one of them only. */
TdTogetherWay td__together_wait (TdAgentRanks *t);
/** Why it is to stand, and the rank that it does so for; -1: for none. */
const char *td__together_why (const TdAgentRanks *t);
int td__together_for (const TdAgentRanks *t);

/** It stands, before an event or after one: tell the others, if the reason is its own. */
void td__together_stands (TdAgentRanks *t, const char *reason, const TdControlPlace *place,
                          bool own, bool after);
/** What has come while it stands. */
TdControlOutcome td__together_look (TdAgentRanks *t);
void td__together_resumes (TdAgentRanks *t);
