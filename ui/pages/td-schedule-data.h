/* What the pictures of the Schedule page are made of, and what is chosen there. For the files
 * of that page. SPDX-License-Identifier: MIT */
#pragma once

#include "pages/td-page.h"
#include "schedule/td-explain.h"
#include "schedule/td-flame.h"
#include "schedule/td-gantt.h"
#include "schedule/td-schedule.h"
#include "schedule/td-staticness.h"
#include "schedule/td-statics.h"

/* A box of the flame graph, whatever the iteration. */
typedef struct
{
  guint64 key;
  guint lane;
} TdFlamePlace;

typedef struct
{
  TdPage *page; /* that it is the data of */
  TdSchedule *schedule;
  char *advice;
  TdStatics *statics;
  TdExplain *explain; /* of `statics` */
  TdExplainRuns *explain_runs;
  TdGantt *gantt;
  TdFlame *flame;
  TdStaticness *staticness;
  guint staticness_n;       /* iterations there were when it was made */
  TdRange staticness_range; /* that it is of */

  guint function_id, schedule_id; /* chosen of static functions; 0: the busiest, its last */
  gboolean picking;               /* the selection is being set from a row */
  guint cursor;                   /* row of the static schedule, plus 1; 0: none */
  guint explain_cursor;           /* the same of the rows that explain */
  TdFlameSize flame_size;
  gboolean flame_sized; /* by the user */
  TdFlamePlace flame_zoom, flame_cursor;
  gboolean flame_walked; /* the cursor is where keys or a click led it; else at the selection */
} TdScheduleData;

/** Drop what was computed of the iteration, or (`all`) of the recording. */
void td__schedule_forget (TdScheduleData *data, gboolean all);

/* Each is computed when it is first asked for; NULL: there is nothing to compute it of. Owner:
 * the data. */
TdSchedule *td__schedule_get_schedule (TdScheduleData *data);
TdGantt *td__schedule_get_gantt (TdScheduleData *data);
TdFlame *td__schedule_get_flame (TdScheduleData *data);
TdStaticness *td__schedule_get_staticness (TdScheduleData *data);
/** Return the static functions with the chosen schedule, and which function is on show. */
TdStatics *td__schedule_get_statics (TdScheduleData *data, guint *function);

/** Return what explains them, and which function is on show. */
TdExplain *td__schedule_get_explain (TdScheduleData *data, guint *function);

/** Show a function and one of its schedules (0: its last). */
void td__schedule_choose (TdScheduleData *data, guint function_id, guint schedule_id);
/** Show the function and schedule that the selected operation was replayed from, if it was. */
void td__schedule_follow (TdScheduleData *data);
/** Show the function, or schedule of the function on show, after (1) or before (-1) that one.
 * FALSE: there is one at most. */
gboolean td__schedule_step_function (TdScheduleData *data, int direction);
gboolean td__schedule_step_schedule (TdScheduleData *data, int direction);
