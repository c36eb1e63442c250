/* What the files of the session share.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "td-session.h"
#include "tape/td-iteration-cache.h"
#include "tape/td-names.h"

#define TD_MAX_REQUESTS                                                                        \
  8 /* iterations asked for and not yet loaded; older ones are forgotten */

/** A step that was done. */
typedef struct
{
  TdVerb verb;
  gint direction;
  TdMoment from, to;
} TdTrailStep;

/** An iteration that somebody waits for. */
typedef struct
{
  gint64 number;
  gboolean known; /* its summary is: else it is looked for in the file */
  TdTapeSummary row;
} TdRequest;

struct _TdSession
{
  GObject parent_instance;
  char *path, *name;
  TdTapeHandle *tape;    /* of the main thread */
  GPtrArray *by_hand;    /* TdIteration; instead of a tape */
  GPtrArray *recomputed; /* td-session-recomputed.c; NULL: none */
  TdIterationCache *cache;

  /* the worker: has a reader of its own */
  GMutex lock; /* of what follows */
  TdRequest requests[TD_MAX_REQUESTS];
  guint n_requests;
  TdPrepareFunc prepare;     /* NULL: nothing is */
  TdTapeHandle *worker_tape; /* its lock is for the reader; a command's is `tape` */
  GThreadPool *pool;

  TdMoment moment, head;
  gboolean follow, attached, bounded;
  gboolean named;                      /* after its program, not its file */
  TdIteration *expected, *expected_of; /* of the moment, and what was made of which */
  gint64 expected_from;                /* the iteration that it goes on like; -1: none */
  GArray *history;                     /* TdMoment */
  guint history_at;
  GArray *trail;     /* TdTrailStep, newest last */
  gboolean stepping; /* the newest one is the program's, and has not ended */
  GArray *selection; /* guint64 */
  guint step;        /* of a schedule, that is meant by it */
  guint64 hover;
  TdRange range;
  TdProgramState state;
  char *reason;
  TdCurves *curves;
  GArray *notices; /* TdNotice; texts in `texts` */
  guint n_seen_notices, n_seen_faults;
  GStringChunk *texts;
  gint64 live_number; /* -1: none */
  guint live_events;
  gint64 live_loaded_us, live_cost_us; /* when it was read last, and how long that took */
  gboolean live_waits;                 /* it grew, and was not read again yet */
};

enum
{
  TD_SIGNAL_MOMENT,
  TD_SIGNAL_SELECTION,
  TD_SIGNAL_HOVER,
  TD_SIGNAL_RANGE,
  TD_SIGNAL_HEAD,
  TD_SIGNAL_ITERATIONS,
  TD_SIGNAL_FOLLOW,
  TD_SIGNAL_HISTORY,
  TD_SIGNAL_NOTICES,
  TD_SIGNAL_LOADED,
  TD_N_SESSION_SIGNALS,
};
void td__session_emit (TdSession *self, guint signal);

/** Remember that a verb led from `from` to the moment, or began to; a step back takes the one
 * that it undoes off the trail instead. */
void td__session_trail_add (TdSession *self, TdVerb verb, gint direction, TdMoment from);
/** Return the step that this verb would undo, NULL: none led here. Owner: borrowed. */
const TdTrailStep *td__session_trail_find (TdSession *self, TdVerb verb, gint direction);
/** The playhead follows the program: so does the end of the step that it does. */
void td__session_trail_follow (TdSession *self);

/** Move the playhead without touching history or follow. */
void td__session_place (TdSession *self, TdMoment moment);
/** Read state, head, reason and notices off the tape; emit what changed. */
void td__session_read_program (TdSession *self);
/** Take what was reported into the curves. */
void td__session_take_reports (TdSession *self);
/** Start and stop the worker; ask it for an iteration. */
void td__session_start_worker (TdSession *self);
void td__session_stop_worker (TdSession *self);
void td__session_request (TdSession *self, gint64 number);
/** Whether the process that makes the tape is there, and is the one that began it. */
gboolean td__session_writer_lives (const TdTapeHeader *header);
