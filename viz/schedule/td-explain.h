/*
 * Why static functions were replayed or not, up to a moment: what made calls run the code, by
 * guard and line, with what it cost and what helps; where the graph breaks; what verification
 * found; what ran only while tracing; guards by line; and the passes, one after the other.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-statics.h"

G_BEGIN_DECLS

typedef enum
{
  TD_EXPLAIN_REASON,     /* calls that ran the code, or the code too */
  TD_EXPLAIN_BREAK,      /* what a schedule cannot have, or has to stop at */
  TD_EXPLAIN_DIFFERENCE, /* found by verification */
  TD_EXPLAIN_ONCE,       /* ran only while the code was traced */
  TD_EXPLAIN_GUARD,      /* the guards of one line */
  TD_EXPLAIN_PASS,
  TD_EXPLAIN_REMARK, /* of the pass above it, to one step */
  TD_EXPLAIN_N_SECTIONS
} TdExplainSection;

/* One row; what a section does not have is 0, -1 or "". */
typedef struct
{
  TdExplainSection section;
  guint function;    /* of the TdStatics */
  const char *guard; /* REASON: the guard's word on the tape; else a word for the cause */
  const char *title; /* "shape of an argument" */
  const char *advice;
  char *text; /* what the first of them said; PASS, REMARK: what it did */
  char *file; /* as on the tape */
  guint line; /* 0: of no line */
  guint n;    /* calls; BREAK: how often; GUARD: guards */
  guint n_traced, n_code;
  guint n_misses;      /* GUARD: calls that one of them made run the code */
  guint n_timed;       /* calls that a replay can be compared with */
  double cost_ns;      /* of those, in forward, beyond as many replays */
  gint64 first, last;  /* iterations */
  guint pass;          /* PASS, REMARK: from 1 on, in the order in which they ran */
  guint before, after; /* PASS: steps */
  guint step;          /* REMARK: of the schedule; TD_PANEL_NO_STEP: none */
} TdExplainRow;

/* How the calls of one function ran. */
typedef struct
{
  guint64 n_replayed, n_code; /* as the tape counts them */
  guint n_explained;          /* of those by code, how many a row tells of */
  guint n_replays_timed;
  double replay_ns; /* median of a replay's forward */
} TdExplainCalls;

typedef struct
{
  const TdStatics *statics; /* borrowed */
  guint n_rows;
  TdExplainRow *rows;    /* by section, those of all functions */
  TdExplainCalls *calls; /* by function */
} TdExplain;

/* What was read of iterations, so that the next moment need not read them again. */
typedef struct TdExplainRuns TdExplainRuns;
TdExplainRuns *td_explain_runs_new (TdTapeReader *reader);
void td_explain_runs_free (TdExplainRuns *runs);

/** Explain the functions up to the moment of `statics`, which must outlive it. *Runs*: NULL:
 * iterations are read for this once. *Owner*: the caller. */
TdExplain *td_explain_new (const TdStatics *statics, TdExplainRuns *runs);
void td_explain_free (TdExplain *explain);

/** List what the source says at its lines: rows of the sections ONCE and GUARD of all
 * functions. *Owner*: the caller, g_array_unref(); of TdExplainRow. */
GArray *td_explain_list_lines (const TdStatics *statics);

/** "why its code ran", "guards by line" ... */
const char *td_explain_section_title (TdExplainSection section);
/** Say what a row is, with its line, in one sentence: for lists that are read out. *Owner*: the
 * caller. */
char *td_explain_row_text (const TdExplainRow *row);
/** "4 of 20 calls ran the code, which cost 1.2 ms more than replays". *Owner*: the caller. */
char *td_explain_headline (const TdExplain *explain, guint function);
/** Say whether a row is in the list of a function while that pass is open (0: none is). */
gboolean td_explain_row_is_listed (const TdExplainRow *row, guint function, guint pass);
/** Find the event of the moment's iteration that stands at the row's line; -1: there is none.
 */
gint td_explain_row_event (const TdExplain *explain, const TdExplainRow *row);

/** format: "text", "csv" or "json"; function -1: all. *Owner*: the caller. */
char *td_explain_print (const TdExplain *explain, gint function, const char *format);
/** Draw the rows of one function around the cursor. */
TdScene *td_explain_scene (const TdExplain *explain, guint function, const TdPanelView *view);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdExplain, td_explain_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdExplainRuns, td_explain_runs_free)

G_END_DECLS
