/* Launching the steps of a list as CUDA graphs, on devices that can capture them.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "replay.h"

/** Begin a run.  Returns whether its steps may be launched as graphs: from the second run of
 * the list on, if the device captures and no observer wants every operation. */
bool td__captures_begin (TdReplay *p);
/** Decide about ready step k.  True: it is deferred until its segment is launched, and the
 * caller only allocates its gradients.  False: the caller runs it; deferred steps that it
 * depends on have been launched. */
bool td__captures_defer (TdReplay *p, uint32_t k, TdStatus *status);
/** Report the event of a deferred step now, before it runs. */
void td__captures_notify (TdReplay *p, uint32_t k);
/** Launch what is still deferred, and end the run. */
TdStatus td__captures_end (TdReplay *p);
/** Run the whole list without reporting events. */
TdStatus td__captures_replay (TdReplay *p);
