/*
 * What the code of a static function does besides operations: it happens while the code is
 * traced and not at a replay. Found in the recorded source, by reading it, not by running it.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

#include "td-tape-reader.h"

G_BEGIN_DECLS

typedef struct
{
  char *file;
  guint line;
  char *text;        /* "printf", "m->n_plain" */
  gboolean is_write; /* an assignment that may be seen outside: possibly; else a call */
  char *memory;      /* is_write: the variable or parameter through which it is written */
  gint64 proved_in;  /* a verified call of this iteration did it; -1: none was seen to */
} TdRanOnceRow;

typedef struct
{
  guint n;
  TdRanOnceRow *rows; /* by file and line */
} TdRanOnce;

/** Read the functions in which a schedule's forward has steps. Owner: the caller. */
TdRanOnce *td_ran_once_new (TdTapeReader *reader, const TdTapeSchedule *schedule);
/** The same for one function of one text. Owner: the caller. */
TdRanOnce *td_ran_once_new_text (const char *file, const char *text, const char *function);
/** Take what verified calls of a static function were seen to do, up to an iteration: writes to
 * the standard output prove calls that print, changed memory that the program registered (also
 * the function's own, "self") proves writes to it. */
void td_ran_once_prove (TdRanOnce *found, TdTapeReader *reader, guint function,
                        gint64 iteration);
void td_ran_once_free (TdRanOnce *found);

/** "printf ran once", "m->n_plain is possibly set once"; with a proof "printf ran once, proved
 * in iteration 4", "m->n_plain is set once, proved in iteration 4". Owner: the caller. */
char *td_ran_once_text (const TdRanOnceRow *row);

G_END_DECLS
