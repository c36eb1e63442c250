/* The Schedule page: operations in order, static functions, the timeline, what layers cost,
 * what could be static, buffers. SPDX-License-Identifier: MIT */
#pragma once

#include "pages/td-page.h"
#include "schedule/td-flame.h"

#define TD_TYPE_SCHEDULE_PAGE (td_schedule_page_get_type ())
G_DECLARE_FINAL_TYPE (TdSchedulePage, td_schedule_page, TD, SCHEDULE_PAGE, TdPage)

/** Create the page. Owner: the caller. */
TdPage *td_schedule_page_new (void);

/** Show the static function, or (`schedules`) the schedule of the function on show, after (1)
 * or before (-1) that one. FALSE: there is one at most. */
gboolean td_schedule_page_step_static (TdSchedulePage *self, gboolean schedules, int direction);

/** Say what boxes of the flame graph are as wide as. */
void td_schedule_page_set_flame_size (TdSchedulePage *self, TdFlameSize size);
/** Go out of what the focused picture is zoomed into. FALSE: there is nothing such. */
gboolean td_schedule_page_leave (TdSchedulePage *self);
