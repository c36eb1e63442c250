/*
 * Static chains at a moment: the schedule each replays, what it guards, how often it ran, and
 * what happened to it up to there.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-gantt.h"
#include "td-ran-once.h"
#include "td-statics-traced.h"

G_BEGIN_DECLS

/* One row of a chain's schedule: a step, in the order in which it is listed. */
typedef struct
{
  guint step;
  const TdTapeStep *tape;
  const char *op; /* operation, or what kind of step it is */
  char *site;
  const char *layer;
  const char *why; /* what the passes did to it, or why they did not; "": nothing to say */
  guint64 bytes;   /* of the outputs */
  guint64 ns;      /* in the iteration, over n_runs replays; groups: of the members */
  guint n_runs;
} TdStaticsRow;

typedef struct
{
  const TdTapeChain *chain;
  const char *name;
  char *site;
  gboolean known;             /* the iteration says where the chain stands */
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
} TdStaticsChain;

typedef struct
{
  TdTapeReader *reader; /* borrowed */
  gint64 iteration;
  guint n_chains;
  TdStaticsChain *chains;
  guint64 measured_bytes; /* highest sum of static arenas in the iteration */
  guint64 peak_bytes;     /* of the iteration, all categories */
} TdStatics;

/** Collect what the tape says up to an iteration; NULL where it has no static chain. The reader
 * must outlive it. Owner: the caller. */
TdStatics *td_statics_new (TdTapeReader *reader, TdIteration *iteration);
void td_statics_free (TdStatics *statics);

/** One sentence: "scheduled, replayed 3991 times, last verified in iteration 4800". Owner: the
 * caller. */
char *td_statics_headline (const TdStaticsChain *chain);
/** "missed: argument 0 has shape ..." with its iteration and file:line. Owner: the caller. */
char *td_statics_event_text (TdTapeReader *reader, const TdTapeStaticEvent *event);

/** format: "text", "csv" or "json". Owner: the caller. */
char *td_statics_print (const TdStatics *statics, const char *format);

/** Draw one chain: its steps, its buffers over them, its guards. */
TdScene *td_statics_scene (const TdStatics *statics, guint chain, const TdPanelView *view);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdStatics, td_statics_free)

G_END_DECLS
