/* Asynchronous checks of indices: where they run, and when their errors are reported.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core.h"

/** Wait for each check before its operation runs, for a debugger that stops at errors.  The
 * configuration's `debug` does the same. */
extern bool td__index_now;
/** Wait for the checks of an iteration at its end, for a debugger that stops at errors but need
 * not stop at once. */
extern bool td__index_wait;

/** Check input i of a forward: 0 <= index < limit, or index == allowed.  On a device with
 * asynchronous checks only errors that are known already are returned here.
 * *Errors*: TD_ERR_ARG. */
TdStatus td__index_check (TdOpCall *call, int i, int64_t limit, int64_t allowed);

/** Report an error for every bad index that devices have found so far.  Returns the status of
 * the first, or TD_OK. */
TdStatus td__index_raise (void);
/** The same after waiting for everything that was launched. */
void td__index_finish (void);
/** At the end of an iteration: one of the two above, by td__index_wait. */
void td__index_iteration_ends (void);
/** Forget all checks, before devices are closed. */
void td__index_end (void);

/** Checks that follow become parts of a graph.  *places is the first place of the graph's list,
 * 0 while it is empty; the list exists as long as the graph.  NULL ends this. */
void td__index_capture (TdDevice *d, uint16_t *places, const TdPath *path);
/** A graph with these places was launched; `at`: its event, NULL where nothing is recorded. */
void td__index_launched (TdDevice *d, uint16_t places, const TdEventPlace *at);
/** Where the present event is recorded. */
TdEventPlace td__index_where (void);
/** Checks that follow are of an event that was recorded earlier, as its operation was deferred;
 * NULL ends this. */
void td__index_async_event (const TdEventPlace *at);
/** A graph was freed: forget its places. */
void td__index_forget (TdDevice *d, uint16_t *places);
