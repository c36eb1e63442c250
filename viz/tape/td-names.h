/* Texts of one iteration, copied out of the reader's tables (which move when the tape grows),
 * so that any thread can ask for them without a lock.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tape/td-iteration.h"
#include "td-tape-reader.h"

/** A reader that iterations keep alive, since their texts lie in it. */
typedef struct
{
  gint ref_count;
  TdTapeReader *reader;
  GMutex lock;    /* for whoever calls the reader, where several threads do */
  gboolean whole; /* iterations show what was discarded, too */
} TdTapeHandle;

/** Open a tape, keeping at most `max_summaries` summaries (td_tape_reader_open_bounded).
 * Errors: NULL, `error` set to one line. Owner: the caller. */
TdTapeHandle *td__tape_handle_open (const char *path, guint max_summaries, GError **error);
TdTapeHandle *td__tape_handle_ref (TdTapeHandle *self);
void td__tape_handle_unref (TdTapeHandle *self);

/** Wrap an iteration that `handle` loaded. Call with its lock, where it has several users.
 * Owner: the caller. */
TdIteration *td__iteration_new_from_handle (TdTapeHandle *handle, const TdTapeIteration *tape);
