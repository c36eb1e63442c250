/* Operations that a schedule runs, of which core knows no line and no path: they are asked for
 * when one fails.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core.h"

/** Where a call is in the code; false: no schedule runs it. */
typedef bool TdReplayedPlace (const TdOpCall *call, const TdSite **site, const TdPath **path);

/** Of the schedule that runs; NULL: none does.  (static/replay.c) */
extern TdReplayedPlace *td__replayed_place;
