/*
 * Static functions at a moment: the schedule each replays, what it guards, how often it ran,
 * and what happened to it up to there.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-gantt.h"
#include "td-ran-once.h"
#include "td-statics-traced.h"

G_BEGIN_DECLS

/* One row of a function's schedule: a step, in the order in which it is listed. */
typedef struct
{
  guint step;
  const TdTapeStep *tape;
  const char *op; /* operation, its members joined by + for a group, or what kind of step */
  gint leader;    /* the step whose event shows this one: itself, its group, or who made what it
                     gives; -1: none does */
  char *site;
  const char *layer;
  const char *why; /* what the passes did to it, or why they did not; "": nothing to say */
  guint64 bytes;   /* of the outputs */
  guint64 ns;      /* in the iteration, over n_runs replays; groups: of the members */
  guint n_runs;
} TdStaticsRow;

typedef struct
{
  const TdTapeChain *function;
  const char *name;
  char *site;
  gboolean known;             /* the iteration says where the function stands */
  TdTapeStatic state;         /* as of that iteration */
  guint schedule;             /* id; 0: none yet */
  const TdTapeSchedule *tape; /* NULL: none, or `error` */
  char *error;                /* why the schedule cannot be shown; may be NULL */
  guint n_rows, n_calls;      /* steps; of those, what really is called */
  TdStaticsRow *rows;
  gint *row_of_event; /* of the iteration: the step that it was; -1: none */
  guint n_row_events;
  guint n_events;
  const TdTapeStaticEvent **events; /* up to the moment, in order */
  TdTraced *traced;                 /* what was traced in the iteration; running: so far */
  TdGantt *gantt; /* values of the arena over steps; NULL without a schedule */
  TdRanOnce *ran_once;
} TdStaticsFunction;

/* Calls of a function by what they wait for, at one event. */
typedef struct
{
  guint n_forward;  /* in the forward */
  guint n_awaiting; /* for their backward */
  guint n_backward; /* in it */
  guint n_done;
} TdStaticsUse;

typedef struct
{
  TdTapeReader *reader; /* borrowed */
  TdIteration *it;
  gint64 iteration;
  guint n_functions;
  TdStaticsFunction *functions;
  guint64 measured_bytes; /* highest sum of static arenas in the iteration */
  guint64 peak_bytes;     /* of the iteration, all categories */
  TdPanelStep *steps;     /* by event of the iteration */
} TdStatics;

/** Collect what the tape says up to an iteration; NULL where it has no static function. The
 * reader must outlive it. Owner: the caller. */
TdStatics *td_statics_new (TdTapeReader *reader, TdIteration *iteration);
void td_statics_free (TdStatics *statics);

/** Show another schedule of a function than the one that it replayed last: one that it had up
 * to the moment. FALSE: it had no such. */
gboolean td_statics_choose (TdStatics *statics, guint function, guint schedule);
/** List the ids of the schedules that a function had up to the moment, oldest first; those that
 * were made again stand once. Owner: the caller, g_array_unref(); of guint. */
GArray *td_statics_list_schedules (const TdStaticsFunction *function);
/** Find a function by its number, from 1 on, or its name; -1: there is none. */
gint td_statics_find_function (const TdStatics *statics, const char *text);
/** Return the function that most calls were replayed of, the first of several. */
guint td_statics_busiest (const TdStatics *statics);
/** Return what is guarded in a schedule's key: "f32 (16, 8), train"; "" unknown. Owner: the
 * caller. */
char *td_statics_key_of (TdTapeReader *reader, guint schedule);

/** Return the event of the iteration that a row is: of several the last up to `near`, else the
 * first; -1: none. */
gint td_statics_row_event (const TdStaticsFunction *function, guint row, gint near);
/** Return the key of that event; 0: none. */
guint64 td_statics_row_key (const TdStatics *statics, const TdStaticsFunction *function,
                            guint row, gint near);
/** Mark the rows that the marked events (td_viz_graph_mark_events) are; a group with its
 * members. NULL: none. Owner: the caller, g_free(); one byte per row. */
guint8 *td_statics_mark_rows (const TdStaticsFunction *function, const guint8 *events);
/** Count the calls that had not ended when `event` had run. */
TdStaticsUse td_statics_use (const TdStaticsFunction *function, gint event);
/** "free", "1 call in forward", "2 awaiting backward" ... Owner: the caller. */
char *td_statics_use_text (const TdStaticsUse *use);

/** One sentence: "scheduled, replayed 3991 times, last verified in iteration 4800". Owner: the
 * caller. */
char *td_statics_headline (const TdStaticsFunction *function);
/** "missed: argument 0 has shape ..." with its iteration and file:line. Owner: the caller. */
char *td_statics_event_text (TdTapeReader *reader, const TdTapeStaticEvent *event);

/** format: "text", "csv" or "json"; function -1: all. Owner: the caller. */
char *td_statics_print (const TdStatics *statics, gint function, const char *format);

/** Say whether a row is in the list that is drawn: scopes and links are not. */
gboolean td_statics_row_is_listed (const TdStaticsRow *row);
/** Draw one function: its steps, its buffers over them, its guards. */
TdScene *td_statics_scene (const TdStatics *statics, guint function, const TdPanelView *view);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdStatics, td_statics_free)

G_END_DECLS
