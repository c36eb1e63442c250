/* Checks of indices that nobody waits for: where they run, and when what they find is told.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core.h"

/** Set while each check is to be answered before its operation runs, as a debugger needs it
 * that stops at errors; the configuration's `debug` does the same. */
extern bool td__index_now;
/** Set while the end of an iteration waits for its checks, as a debugger needs it that stops at
 * errors, and lets them run with the rest. */
extern bool td__index_wait;

/** Check input i of a forward: 0 <= index < limit, or index == allowed.  On a device that
 * computes by itself only a bad one that is known already is an error here.
 * *Errors*: TD_ERR_ARG. */
TdStatus td__index_check (TdOpCall *call, int i, int64_t limit, int64_t allowed);

/** Record the error of every bad index that devices know of by now.  Returns the first's
 * status, TD_OK where there is none. */
TdStatus td__index_raise (void);
/** The same after all that was launched. */
void td__index_finish (void);
/** The iteration ends: one of these two. */
void td__index_iteration_ends (void);
/** Forget all; before devices end. */
void td__index_end (void);

/** Checks that follow become parts of a graph: a list of places begins in *places, which grows
 * as needed and stays as long as the graph (0: there is none yet); NULL ends this. */
void td__index_capture (TdDevice *d, uint16_t *places, const TdPath *path);
/** A graph with these was launched; `at` is the event, NULL where nobody records. */
void td__index_launched (TdDevice *d, uint16_t places, const TdEventPlace *at);
/** Where the event that runs is recorded. */
TdEventPlace td__index_where (void);
/** Operations that follow run later than they were recorded: checks are about this event; NULL
 * ends this. */
void td__index_late_event (const TdEventPlace *at);
/** It is no more. */
void td__index_forget (TdDevice *d, uint16_t *places);
