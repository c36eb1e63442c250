/*
 * Where memory ran out: a sentence for the top of the Memory page, and a table of who held what
 * there was, with the figures around it.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

#include "scene/td-panel.h"
#include "tape/td-iteration.h"
#include "td-tape-reader.h"

G_BEGIN_DECLS

/** Say where memory ran out last, who held the most, and what would help most. Owner: the
 * caller; NULL: it did not. */
char *td_oom_headline (TdTapeReader *reader);

/* Below, `i` is the number of a report: less than td_tape_reader_n_ooms (). */

/* A line of figures: "Reserved", "12.0 MB". */
typedef struct
{
  const char *name;
  char *text;
} TdOomFact;

/** List what was asked for, how full the device was, and what was tried. Owner: the caller,
 * g_array_unref(); of TdOomFact. */
GArray *td_oom_list_facts (TdTapeReader *reader, guint i);
/** Name a report among others: "iteration 4, event 1: forward relu". Owner: the caller. */
char *td_oom_dup_name (TdTapeReader *reader, guint i);
/** Return all that is known, as `tapedeck info --oom` says it. Owner: the caller. */
char *td_oom_print (TdTapeReader *reader);

/** Name a group of arrays: "activation net/l1". Owner: the caller. */
char *td_oom_dup_title (TdTapeReader *reader, const TdTapeOomHolder *h);
/** The same with the shape of the largest: "activation net/l1 (8000, 256)". Owner: the caller.
 */
char *td_oom_dup_label (TdTapeReader *reader, const TdTapeOomHolder *h);
/** Say all of a group in a sentence. Owner: the caller. */
char *td_oom_describe (TdTapeReader *reader, guint i, guint row);
/** Return the iteration that has what made a group, as far as is known. */
gint64 td_oom_holder_iteration (TdTapeReader *reader, guint i, guint row);
/** Find a group in an iteration: the operation that made it, else the variable; 0: it has
 * neither. */
guint64 td_oom_find_key (TdTapeReader *reader, const TdTapeOomHolder *h, TdIteration *it);

/* Of the picture, in its units. */
#define TD_OOM_HEAD 24.0
#define TD_OOM_ROW 24.0
/** Draw the groups, the largest first; the view's cursor is the chosen one, plus 1. */
TdScene *td_oom_scene (TdTapeReader *reader, guint i, const TdPanelView *view);

G_END_DECLS
