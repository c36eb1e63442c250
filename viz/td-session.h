/* One recording, open in one window: what is looked at (moment, selection, hover), what the
 * program does (head, state), and access to iterations. Panels listen and pull; no panel has a
 * private time. Everything here is for the main thread; loading happens in a worker.
 *
 * Signals (no parameters; read the new value):
 *   moment-changed      the playhead moved
 *   selection-changed   the set of keys changed
 *   hover-changed       the transient key changed
 *   range-changed       panels over the run are narrowed to other iterations
 *   head-changed        program head or state changed
 *   iterations-changed  summaries, reports or the newest iteration grew
 *   follow-changed      the playhead was tied to the program head, or untied
 *   history-changed     back and forward became possible or impossible
 *   notices-changed     a notice or an error was added
 *   iteration-loaded    (gint64 number) an iteration asked for is in the cache now
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gio/gio.h>

#include "td-tape-reader.h"
#include "tape/td-iteration.h"
#include "tape/td-range.h"

G_BEGIN_DECLS

#define TD_TYPE_SESSION (td_session_get_type ())
G_DECLARE_FINAL_TYPE (TdSession, td_session, TD, SESSION, GObject)

/** Where a head stands. `event` is an index into the iteration's events; -1 before the first.
 */
typedef struct
{
  gint32 rank;
  gint32 event;
  gint64 iteration; /* engine number; -1 when the tape has none yet */
} TdMoment;

typedef struct _TdCurves TdCurves;

typedef enum
{
  TD_PROGRAM_RUNNING, /* the tape has no end and grew lately, or its writer lives */
  TD_PROGRAM_PAUSED,
  TD_PROGRAM_ENDED,   /* by itself, status 0 or its own other status */
  TD_PROGRAM_CRASHED, /* by a signal, or the tape ends without saying how */
} TdProgramState;

/** Open a tape, complete or still growing, for a command, which looks once and from one thread:
 * the playhead stands at the head, nothing is loaded before it is asked for, and what the
 * session loads and what is loaded through its reader share their arrays. What is added to the
 * tape meanwhile is not seen. Owner: the caller. Errors: `error` says what and where in one
 * line (missing, not a tape, newer format). */
TdSession *td_session_open (const char *path, GError **error);
/** The same for a window, which may look on for ever: it begins at the loss, loads what is
 * asked for in a thread of its own and sees what is added; of a long run the list of iterations
 * is a sample (td_session_get_n_iterations) and curves are folded, so that memory has a bound.
 * May be called in a worker that hands the session over to the main thread. */
TdSession *td_session_open_bounded (const char *path, GError **error);
/** Wrap iterations made by hand: tests, and tools without a tape. Owner: takes the array's
 * references. */
TdSession *td_session_new_for_iterations (TdIteration **iterations, guint n);

/** Say what a file is that is made into a tape when it is opened: "Snapshot", "Trace",
 * "Reference"; NULL: it is none of these. */
const char *td_session_import_kind (const char *path);
/** Return where in the user's cache the tape that is made of such a file lies, or is to lie:
 * the folder is there. Owner: the caller. Errors: one line that names the file. */
char *td_session_dup_import (const char *path, GError **error);

/** So large a file is read within a frame or two. */
#define TD_SESSION_SMALL_BYTES (8u << 20)

const char *td_session_get_path (TdSession *self);
/** Return a short name for titles: the program's name without folder and suffix. */
const char *td_session_get_name (TdSession *self);
/** Return the reader. Owner: borrowed; read it on the main thread only. */
TdTapeReader *td_session_get_reader (TdSession *self);

/** Keep the values of an iteration that was run again (`tapedeck recompute`). The file may go
 * after that. Errors: FALSE and `error`. */
gboolean td_session_take_recomputed (TdSession *self, const char *path, GError **error);
/** Return an iteration that was run again, with the reader of its values; NULL: it was not.
 * Owner: borrowed, both. */
TdIteration *td_session_get_recomputed (TdSession *self, gint64 number, TdTapeReader **reader);

/** Say whether reading all of the tape takes longer than a window may be deaf. */
gboolean td_session_is_large (TdSession *self);
/** Say whether the recording is a memory snapshot of another program: it has blocks of memory
 * and a trace, no operations, and does not know who keeps what. */
gboolean td_session_is_snapshot (TdSession *self);
/** Say whether it is a profiler's trace: operations and when they ran, without arrays. */
gboolean td_session_is_trace (TdSession *self);
/** Say whether it was made of the arrays of a reference (td-tape-import.h): layers, without
 * what ran in them. */
gboolean td_session_is_reference (TdSession *self);

/** Look for what the tape gained since, emit what changed; call in a tick callback. Return TRUE
 * if anything did. Sync: never waits for the worker. */
gboolean td_session_poll (TdSession *self);

/* ---- moment ---- */
TdMoment td_session_get_moment (TdSession *self);
/** Move the playhead; clamps to what the iteration has; adds to the history; unties follow. */
void td_session_set_moment (TdSession *self, gint64 iteration, gint event);
gboolean td_session_get_follow (TdSession *self);
void td_session_set_follow (TdSession *self, gboolean follow);
gboolean td_session_can_go_back (TdSession *self);
gboolean td_session_can_go_forward (TdSession *self);
void td_session_go_back (TdSession *self);
void td_session_go_forward (TdSession *self);

typedef enum
{
  TD_VERB_STEP_OP,
  TD_VERB_STEP_OVER,
  TD_VERB_STEP_INTO,
  TD_VERB_STEP_OUT,
  TD_VERB_ITERATION, /* same key in the next or previous recorded iteration */
  TD_VERB_END,       /* last (first) event of the iteration */
  TD_VERB_ANOMALY,   /* also into other iterations */
  TD_VERB_LOSS,      /* direction is ignored here and below */
  TD_VERB_BACKWARD,
  TD_VERB_UPDATE,
  TD_VERB_WHERE_FROM, /* moves to the first of the list and selects it */
  TD_VERB_WHERE_USED,
  TD_VERB_TWIN,
} TdVerb;

/** Do a verb on the playhead. A step at the edge of an iteration goes on in the next (previous)
 * one; the reverse of the step that led here leads back to where it came from. Return TRUE if
 * it moved; `message` (may be NULL) gets a sentence worth a toast, or NULL. Owner of the
 * message: the caller. Sync: loads the iteration it lands in. */
gboolean td_session_go (TdSession *self, TdVerb verb, gint direction, char **message);
/** Say that the program was told to do a verb: where it stops next, the playhead following, is
 * where that step led to. */
void td_session_begin_step (TdSession *self, TdVerb verb, gint direction);

/* ---- selection ---- */
/** Return the selected keys, in order of selecting. Owner: borrowed. */
const guint64 *td_session_get_selection (TdSession *self, guint *n);
gboolean td_session_is_selected (TdSession *self, guint64 key);
/** Select one key only; 0 clears. */
void td_session_select (TdSession *self, guint64 key);
void td_session_select_many (TdSession *self, const guint64 *keys, guint n);
/** Return which step of its schedule is meant where one key is selected, a replayed
 * operation's: a member of a fused group; TD_SESSION_NO_STEP: the operation itself. */
#define TD_SESSION_NO_STEP G_MAXUINT
guint td_session_get_step (TdSession *self);
/** Mean a step of what is selected; a change is one of the selection. */
void td_session_set_step (TdSession *self, guint step);
/** Do both at once. */
void td_session_select_step (TdSession *self, guint64 key, guint step);
guint64 td_session_get_hover (TdSession *self);
void td_session_set_hover (TdSession *self, guint64 key);

/* ---- the range ---- */
/** Return the iterations that panels over the run are narrowed to. */
TdRange td_session_get_range (TdSession *self);
/** Narrow them to these, of those that there are; an empty range: to none. */
void td_session_set_range (TdSession *self, TdRange range);
/** Find the iterations that lie in it, by their place, from the first such to the last: [from,
 * to). */
void td_session_find_range (TdSession *self, guint *from, guint *to);
/** Return all iterations that there are, by number; an empty range: there are none. */
TdRange td_session_get_run (TdSession *self);

/* ---- the program ---- */
TdMoment td_session_get_head (TdSession *self);
TdProgramState td_session_get_state (TdSession *self);
/** Return why it stopped or how it ended ("stopped at nan_origin.c:17: log made NaN"), "" if
 * nothing is known. Owner: borrowed until the next poll. */
const char *td_session_get_reason (TdSession *self);
/** Say whether the program that records to the tape `path` is still there. */
gboolean td_session_tape_is_written (const char *path);
/** Tell the session that a live supervisor vouches for (or gave up) the program. */
void td_session_set_attached (TdSession *self, gboolean attached);

typedef struct
{
  gboolean is_error;
  gboolean is_loss; /* the tape holds less than the program did */
  gint64 iteration;
  gint event;            /* that it is about, of the iteration as it is on the tape; -1: none */
  const char *text;      /* one line */
  gboolean is_of_others; /* not of this program: a rank does not come, or has died */
} TdNotice;
guint td_session_get_n_notices (TdSession *self);
const TdNotice *td_session_get_notice (TdSession *self, guint i);

/* ---- iterations ---- */
/** Return the curves of what was reported so far. Owner: borrowed.
 */
TdCurves *td_session_get_curves (TdSession *self);
/** Count iterations that have a summary or are running. Of a long run in a bounded session this
 * is a sample: the newest, those with findings, every n-th of the others; all can be loaded by
 * their number. */
guint td_session_get_n_iterations (TdSession *self);
/** Return the number of the i-th iteration, oldest first. */
gint64 td_session_get_iteration_number (TdSession *self, guint i);
gint64 td_session_get_last_complete (TdSession *self);
/** Limit the iterations that are kept in memory. *Units*: bytes; 256 MB at first. */
void td_session_set_cache_bytes (TdSession *self, gsize bytes);

/** Have `prepare` called by the worker on every iteration that it loads from here on (NULL:
 * nothing is), to make what will be asked for next. */
typedef void (*TdPrepareFunc) (TdIteration *iteration);
void td_session_set_prepare (TdSession *self, TdPrepareFunc prepare);

/** Have iterations that are loaded from here on show what was discarded: the code of
 * verified calls, beside the schedule that it was compared with. */
void td_session_set_shows_discarded (TdSession *self, gboolean shows);
/** Load an iteration now (from the cache of 256 MB if it is there). Owner: the caller. Errors:
 * thinned out of the tape, or unknown. */
TdIteration *td_session_load_iteration (TdSession *self, gint64 number, GError **error);
/** Return it if it is in the cache, else NULL and have the worker load it: "iteration-loaded"
 * tells when. Owner: the caller. */
TdIteration *td_session_get_iteration (TdSession *self, gint64 number);
/** Return the iteration of the moment as it is expected to go on: where the program stands
 * still in the middle of it, what is to come is taken from a recent iteration that began like
 * it (td_iteration_get_n_run says how much ran); else it is td_session_get_current (). Owner:
 * the caller. */
TdIteration *td_session_get_expected (TdSession *self);
/** Return the iteration of the moment, loading it if need be; NULL when there is none. Owner:
 * the caller. */
TdIteration *td_session_get_current (TdSession *self);

G_END_DECLS
