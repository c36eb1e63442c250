/* The picture that explains a static function: a row selects its operation and opens its line.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "pages/td-schedule-data.h"

TdScene *td__explain_make (TdScheduleData *data, TdPanelView *view);
/** Select what a row that was hit stands for, and open its line. FALSE: no row was hit. */
gboolean td__explain_press (TdScheduleData *data, const TdSceneHit *hit, GtkWidget *view);
/** Go `delta` rows on and select, or with 0 open the row's line. Returns what the row says,
 * NULL: there is none. Owner: the caller. */
char *td__explain_move (TdScheduleData *data, int delta, GtkWidget *view);
