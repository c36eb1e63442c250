/*
 * A schedule as it grows: the steps of a trace that was, or is being, written in an iteration.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-tape-reader.h"

#include <glib.h>

G_BEGIN_DECLS

/* One step of a trace, in the order of being traced. */
typedef struct
{
  TdTapeTraced tape;
  const char *op; /* operation, or what kind of step it is */
  char *site;
  const char *layer;
} TdTracedRow;

typedef struct
{
  gboolean running; /* the iteration has not ended: more may come */
  guint n;
  TdTracedRow *rows;
} TdTraced;

/** Collect what was traced of a function in an iteration; n is 0 where nothing was. Owner: the
 * caller. */
TdTraced *td_traced_new (TdTapeReader *reader, const TdTapeIteration *iteration,
                         guint function);
void td_traced_free (TdTraced *traced);
/** Count the rows that were there when the program stood before an event; -1: all. */
guint td_traced_count_at (const TdTraced *traced, gint event);
/** "tracing: 3 entries so far", "traced: 12 entries". Owner: the caller. */
char *td_traced_headline (const TdTraced *traced);
/** One line of the table of the trace. */
void td_traced_print_row (const TdTraced *traced, guint row, GString *out);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdTraced, td_traced_free)

G_END_DECLS
