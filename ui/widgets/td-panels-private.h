/* What the files of the panels share: the numbers of the session that pages show, and the rows
 * of those pages that are lists.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "widgets/td-panels.h"

#include "gradient/td-gradient.h"
#include "memory/td-growth.h"
#include "memory/td-memory.h"
#include "schedule/td-gantt.h"
#include "schedule/td-schedule.h"
#include "schedule/td-statics.h"
#include "tape/td-notebook.h"
#include "widgets/td-panel-view.h"

/* When something was read from the tape, and how long that took. *Units*: microseconds. */
typedef struct
{
  gint64 at, cost; /* at 0: never */
} TdHeldTime;

struct _TdPanels
{
  GObject parent;
  TdSession *session;
  TdNotebook *notebook;           /* NULL: none */
  GPtrArray *views;               /* of TdSceneView, not owned */
  GtkWidget *stacks[TD_N_PANELS]; /* weak */
  GtkWidget *static_bar;          /* weak; NULL: nobody shows that page */

  TdIteration *iteration; /* at the playhead */
  TdIteration *expected;  /* the same, with what is to come */
  TdMemoryProfile *profile, *previous;
  gint64 previous_number;
  TdSchedule *schedule;
  char *advice;
  TdStatics *statics;
  TdGantt *gantt;
  TdMemoryHistory *history;
  guint history_n; /* iterations there were when it was made */
  TdGradientTable *gradients;
  TdStaticness *staticness;
  guint staticness_n; /* iterations there were when it was made */

  TdHolders *holders;   /* of all marks */
  TdRetained *retained; /* of the playhead's iteration, or the last before it */
  TdHoldersBy by;
  guint held_n, held_refresh; /* iterations there were when holders was made; a timer */
  TdHeldTime holders_time, retained_time;
  gboolean says_newest;                /* the sentence is of what holders has */
  guint growth_cursor, holders_cursor; /* the chosen rows, plus 1; 0: none */
  GtkWidget *held_bar;                 /* weak */

  guint oom_cursor, oom_chosen; /* row of the report, the report; both plus 1; 0: none */
  GtkWidget *oom_card;          /* weak */

  guint chain_id, schedule_id; /* chosen of static chains; 0: the busiest, its last */
  gboolean at_selection;       /* lists stand at the selection, not at the playhead */
  gboolean picking;            /* the selection is being set from a row */
  guint cursor;                /* row of the static schedule, plus 1; 0: none */
};

TdSchedule *td__panels_get_schedule (TdPanels *self);
TdGantt *td__panels_get_gantt (TdPanels *self);
TdStaticness *td__panels_get_staticness (TdPanels *self);
/** Return the static chains with the chosen schedule, and which chain is on show; NULL: none.
 */
TdStatics *td__panels_get_statics (TdPanels *self, guint *chain);

/** Tell a page's picture where its list stands. */
void td__panels_place_rows (TdPanels *self, const char *page, TdPanelView *view);
/** Select what a row that was hit stands for. FALSE: the page has no such rows. */
gboolean td__panels_pick (TdPanels *self, const char *page, const TdSceneHit *hit);
/** Go `delta` rows on and select, or with 0 move the playhead to the row. Returns what the row
 * is in words, NULL where there is none. Owner: the caller. */
char *td__panels_move (TdPanels *self, const char *page, int delta);

/** Show the chain and the schedule that the selected operation was replayed from, if it was. */
void td__panels_follow_chain (TdPanels *self);
/** Build the bar above the picture of static chains. Owner: floating. */
GtkWidget *td__panels_new_static_bar (TdPanels *self);
/** Show in the bar what the moment has. */
void td__panels_update_static_bar (TdPanels *self);

/* Why memory grows (td-panels-held.c). */
void td__panels_forget_held (TdPanels *self);
TdScene *td__panels_make_growth (TdPanels *self, const TdPanelView *view);
TdScene *td__panels_make_holders (TdPanels *self, const TdPanelView *view);
/** Choose the row that was hit; the one that is chosen already: go to it in the graph. FALSE:
 * it was none. */
gboolean td__panels_pick_held (TdPanels *self, const char *page, const TdSceneHit *hit,
                               GtkWidget *view);
/** As td__panels_move; 0 goes to the operation in the graph. */
char *td__panels_move_held (TdPanels *self, const char *page, int delta, GtkWidget *view);

/* Where memory ran out (td-panels-oom.c). */
void td__panels_forget_oom (TdPanels *self);
TdScene *td__panels_make_oom (TdPanels *self, const TdPanelView *view);
gboolean td__panels_pick_oom (TdPanels *self, const TdSceneHit *hit, GtkWidget *view);
char *td__panels_move_oom (TdPanels *self, int delta, GtkWidget *view);
/** Show the newest report, or the one that was chosen. */
void td__panels_update_oom (TdPanels *self);

/** Say what grows at the top of the Memory page. */
void td__panels_update_held (TdPanels *self);
