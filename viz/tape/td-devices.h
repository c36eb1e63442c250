/*
 * The devices of a recording: names, how full they are, what ran where.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-iteration.h"

G_BEGIN_DECLS

/** Return the device that an event ran on (0: the host). */
guint td_devices_of_event (const TdIteration *iteration, guint event);
/** Return what the iteration says of device `device`; NULL: nothing. */
const TdTapeDevice *td_devices_find (const TdIteration *iteration, guint device);
/** Return "cuda:0", "host" for 0. Owner: the caller. */
char *td_devices_dup_name (const TdIteration *iteration, guint device);
/** Return "cuda:0 NVIDIA H200 · 2.1 GB of 141 GB", devices other than the host after each
 * other; NULL: there are none. Owner: the caller. */
char *td_devices_dup_summary (const TdIteration *iteration);
/** Return when an event ran on its device; NULL: it was not timed. */
const TdTapeDeviceTime *td_devices_time (const TdIteration *iteration, guint event);
/** Return how long an event took: on its device where that was timed, else on the host; 0: it
 * is not known. *Units*: ns. */
guint64 td_devices_duration (const TdIteration *iteration, guint event);
/** Return what an event cost where it ran: of one on a device its time there, and 0 where that
 * was not timed, for the host only issued it; of others the host's. *Units*: ns. */
guint64 td_devices_cost (const TdIteration *iteration, guint event);
/** Say what an event took where it ran: "9.00 µs", "≈8.00 µs" where that was sampled, "—" where
 * it was not timed. Owner: the caller. */
char *td_devices_dup_cost (const TdIteration *iteration, guint event);
/** Return td_devices_duration of all events together. */
guint64 td_devices_sum_durations (const TdIteration *iteration);
/** Return whether an event is one that its device would have a time for. */
gboolean td_devices_is_work (const TdIteration *iteration, guint event);

G_END_DECLS
