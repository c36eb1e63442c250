/* The flame graph among the pictures of the Schedule page: zoom, cursor, the bar above it. A
 * box stands for a layer or an operation of the graph, and selecting one selects the other.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "pages/td-schedule-data.h"

TdScene *td__flame_make (TdScheduleData *data, const TdPanelView *view);

/** Select what a box that was hit stands for. */
void td__flame_press (TdScheduleData *data, const TdSceneHit *hit);
/** Zoom into the box that was hit; out of it where it fills the picture. */
void td__flame_open (TdScheduleData *data, const TdSceneHit *hit);
/** Go to the box beside, above or below and select it; or zoom; or, into an operation, move the
 * playhead to it. Returns what the box says, NULL: there is none. Owner: the caller. */
char *td__flame_walk (TdScheduleData *data, TdSceneWay way);
/** Zoom into what the picture is a part of. FALSE: it is all there is. */
gboolean td__flame_zoom_out (TdScheduleData *data);
/** Say what boxes are as wide as. */
void td__flame_set_size (TdScheduleData *data, TdFlameSize size);

/** Build the bar above it: time or bytes, what is on show, zoom out. Owner: floating. */
GtkWidget *td__flame_bar_new (TdScheduleData *data);
void td__flame_bar_update (GtkWidget *bar);
