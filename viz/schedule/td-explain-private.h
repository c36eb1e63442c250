/*
 * For the files of td-explain.h only.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-explain.h"

G_BEGIN_DECLS

/* What is known of a reason, by the guard's word and words of what it said. */
typedef struct
{
  const char *guard;  /* on the tape */
  const char *needle; /* in the text; "": any */
  const char *title;  /* NULL: the guard's word */
  const char *advice;
} TdExplainCause;

/** Look up a guard that failed; never NULL. */
const TdExplainCause *td__explain_cause (const char *guard, const char *text);

/** Return the word of the guard that an event is about, or what stands for it. */
const char *td__explain_guard_of (TdTapeReader *reader, const TdTapeStaticEvent *event);

/* Reasons that no guard gives; their words stand in `guard`. */
#define TD_EXPLAIN_FIRST "first call"
#define TD_EXPLAIN_WAITS "backward"
#define TD_EXPLAIN_DOUBT "doubt"
#define TD_EXPLAIN_NESTED "nested"
#define TD_EXPLAIN_ASIDE "set aside"
#define TD_EXPLAIN_VERIFIED "verification"

/* One run of a function's forward. */
typedef struct
{
  guint chain, schedule;
  guint8 kind; /* TdTapeRunKind */
  gboolean discarded, nested;
  guint64 ns;
  guint64 start_ns; /* of its first operation, on the tape's clock */
} TdExplainRun;

/** Return the runs of an iteration, in order; NULL: it is not on the tape. *Owner*: `runs`. */
const GArray *td__explain_runs_get (TdExplainRuns *runs, gint64 iteration);

/* One call that ran the code, or the code too. */
typedef struct
{
  gint64 iteration;
  const char *guard, *text; /* NULL: nothing was said */
  guint32 site;
  guint8 kind;    /* of its run: TRACED, CODE, or VERIFICATION */
  gboolean timed; /* its run is on the tape */
  guint64 ns;
  guint schedule; /* that its trace became; 0: none */
} TdExplainCall;

typedef struct
{
  GArray *calls;       /* TdExplainCall */
  GHashTable *replays; /* by schedule: GArray of guint64, nanoseconds */
  GArray *all_replays;
} TdExplainHistory;

/** Go through the calls of a function up to the moment. */
void td__explain_history_fill (TdExplainHistory *history, const TdStatics *statics,
                               guint function, TdExplainRuns *runs);
void td__explain_history_clear (TdExplainHistory *history);
/** Return the median of a replay's nanoseconds, of that schedule where it was replayed, else of
 * all; 0: there was no replay. */
double td__explain_replay_ns (const TdExplainHistory *history, guint schedule);

/** Add a row, and the line of a site to it; `text` is taken. */
TdExplainRow *td__explain_add (GArray *rows, const TdStatics *statics, TdExplainSection section,
                               guint function, guint32 site, char *text);
/** Add the passes of a function's schedule with their remarks. */
void td__explain_passes (GArray *rows, const TdStatics *statics, guint function);

G_END_DECLS
