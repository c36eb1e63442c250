/* The lists among the pictures of the Schedule page: a row stands for an operation, a buffer or
 * a layer of the graph, and selecting one selects the other. SPDX-License-Identifier: MIT */
#pragma once

#include "pages/td-schedule-data.h"

/** Tell a picture where its list stands. */
void td__schedule_place (TdScheduleData *data, const char *name, TdPanelView *view);
/** Select what a row that was hit stands for. FALSE: the picture has no such rows. */
gboolean td__schedule_pick (TdScheduleData *data, const char *name, const TdSceneHit *hit);
/** Go `delta` rows on and select, or with 0 move the playhead to the row. Returns what the row
 * says, NULL: there is none. Owner: the caller. */
char *td__schedule_move (TdScheduleData *data, const char *name, int delta);
