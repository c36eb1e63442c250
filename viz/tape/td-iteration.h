/* One recorded iteration, as every panel sees it: the tape's immutable arrays plus the indices
 * that make looking things up by key, by consumer and by layer cheap. Built in a worker, shared
 * by reference count, never changed; a growing iteration is a new TdIteration each time it is
 * asked for.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <glib-object.h>

#include "td-tape.h"

G_BEGIN_DECLS

#define TD_TYPE_ITERATION (td_iteration_get_type ())

typedef struct TdIteration TdIteration;

/** One layer call or user scope: a node of the tree of calls. Events [first, end) ran inside
 * it, in the forward phase. */
typedef struct
{
  gint32 parent; /* index into the layers, -1 at the top */
  gint32 depth;  /* 0 at the top */
  guint32 first, end;
  guint32 site;     /* where it was entered; 0 unknown */
  gboolean is_link; /* FALSE: a user scope */
  const char *name; /* the last part of the link path, or the scope's name */
  const char *path; /* the whole link path; the scope's name for a scope */
} TdLayer;

/** Where an iteration finds the texts behind its ids: a tape's reader, or a test's own tables.
 * Each function returns text that lives as long as `data`, or NULL. */
typedef struct
{
  const char *(*string) (gpointer data, guint32 id);
  const char *(*op) (gpointer data, guint32 opdef);
  const char *(*path) (gpointer data, guint32 path);
  const char *(*site) (gpointer data, guint32 site, guint32 *line); /* returns the file */
  const char *(*function) (gpointer data, guint32 site);            /* may be missing */
} TdNamesClass;

/** An event that a static schedule ran instead of the program's code. */
typedef struct
{
  guint function, schedule; /* ids on the tape, from 1 on; schedule 0: it is not on it */
  guint list;               /* 0: forward; k: the k-th backward */
  guint call; /* which call of the list, operations and groups counted, from 0 on */
} TdReplayed;

GType td_iteration_get_type (void);

/** Wrap a loaded iteration and index it. What was discarded (the code of verified
 * calls, beside the schedule) is left out. Owner: takes the tape's iteration and `names_data`,
 * each freed with its function (which may be NULL). */
TdIteration *td_iteration_new (const TdNamesClass *names, gpointer names_data,
                               GDestroyNotify free_names_data,
                               const TdTapeIteration *tape_iteration,
                               void (*free_tape_iteration) (const TdTapeIteration *));
/** Make the iteration that `now`, which has not ended, becomes if it goes on as `before` did.
 * NULL: it did not begin like that, or there is nothing to come. Owner: the caller. */
TdIteration *td_iteration_new_expected (TdIteration *now, TdIteration *before);
TdIteration *td_iteration_ref (TdIteration *self);
void td_iteration_unref (TdIteration *self);

/** Return the arrays of the tape: events, variables, memory, statistics. Owner: borrowed. */
const TdTapeIteration *td_iteration_get_tape (const TdIteration *self);
gint64 td_iteration_get_number (const TdIteration *self);
guint td_iteration_get_n_events (const TdIteration *self);
/** Count the events that ran: all but in an expected iteration. */
guint td_iteration_get_n_run (const TdIteration *self);
/** Say whether the iteration ended; FALSE while the program is still in it or died in it. */
gboolean td_iteration_is_complete (const TdIteration *self);
/** Estimate the memory held. Units: bytes. */
gsize td_iteration_get_size (const TdIteration *self);

/** Find the event with this key. Return -1 if there is none. */
gint td_iteration_find_event (const TdIteration *self, guint64 key);
/** Find the variable with this key. Return -1 if there is none. */
gint td_iteration_find_var (const TdIteration *self, guint64 key);
/** Find the event that shows this key best: the event itself, or the producer (else first
 * reader) of the variable. Return -1 if there is none. */
gint td_iteration_find (const TdIteration *self, guint64 key);

/** List the events that read variable `var`, in order. Owner: borrowed. */
const gint32 *td_iteration_get_consumers (const TdIteration *self, guint var, guint *n);
/** List the backward, accumulate and later-order events whose twin is event `event`, in order.
 * Owner: borrowed. */
const gint32 *td_iteration_get_twins (const TdIteration *self, guint event, guint *n);
/** Return the forward event that `event` belongs to: itself, or through twins of any order; -1
 * if there is none. */
gint td_iteration_get_forward (const TdIteration *self, guint event);

/** List the layers in order of entering. Owner: borrowed. */
const TdLayer *td_iteration_get_layers (const TdIteration *self, guint *n);
/** Say whether the tape has calls of links; else layers are runs of events of one path. */
gboolean td_iteration_has_calls (const TdIteration *self);
/** Return the innermost layer of an event of any phase (a backward event is in the layer of its
 * forward twin); -1 at the top. */
gint td_iteration_get_layer (const TdIteration *self, guint event);

/** Return texts as the tape has them; never NULL ("" when unknown). Owner: borrowed. */
const char *td_iteration_get_string (const TdIteration *self, guint32 id);
const char *td_iteration_get_path_name (const TdIteration *self, guint32 path);
const char *td_iteration_get_site (const TdIteration *self, guint32 site, guint32 *line);
const char *td_iteration_get_function (const TdIteration *self, guint32 site);
const char *td_iteration_get_var_name (const TdIteration *self, guint var);
const char *td_iteration_get_op_name (const TdIteration *self, guint event);
const char *td_iteration_get_link_path (const TdIteration *self, guint event);
/** Write "file:line" of the event's call site, "" when unknown. Owner: the caller, g_free(). */
char *td_iteration_dup_site (const TdIteration *self, guint event);
/** The same of a site of the tape. */
char *td_iteration_dup_place (const TdIteration *self, guint32 site);
/** Write "(64, 10) float32"-like text. Owner: the caller, g_free(). */
char *td_iteration_dup_shape (const TdIteration *self, guint var, gboolean with_dtype);
/** The same for narrow places: halves are told apart, other dtypes are left out. */
char *td_iteration_dup_short_shape (const TdIteration *self, guint var);

/** Say whether the event failed, or one of its outputs is known to hold NaN or infinity. */
gboolean td_iteration_is_anomaly (const TdIteration *self, guint event);

/** Say what was found wrong with the event after it had run; NULL: nothing. Owner: the caller,
 * g_free(). */
char *td_iteration_dup_fault (const TdIteration *self, guint event);

/** Return what was replayed in an event; NULL: the program's own code ran. Owner: borrowed. */
const TdReplayed *td_iteration_get_replayed (const TdIteration *self, guint event);
/** Say whether anything in it was replayed. */
gboolean td_iteration_any_replayed (const TdIteration *self);
/** Find the step of the schedule that it was; -1: the schedule has none such. */
gint td_replayed_step (const TdReplayed *replayed, const TdTapeSchedule *schedule);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdIteration, td_iteration_unref)

G_END_DECLS
