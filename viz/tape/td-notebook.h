/* What a person wrote down about a recording: notes at moments, and what is watched. It lives
 * in NAME.tdnotes beside NAME.tdtape, belongs to the recording with that UUID, and is text that
 * can be read and mailed. Signal "changed" (no parameters).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gio/gio.h>

#include "tape/td-iteration.h"

G_BEGIN_DECLS

#define TD_TYPE_NOTEBOOK (td_notebook_get_type ())
G_DECLARE_FINAL_TYPE (TdNotebook, td_notebook, TD, NOTEBOOK, GObject)

typedef struct
{
  gint64 iteration;
  gint event;
  char *text;
} TdNote;

typedef struct
{
  guint64 key; /* of an operation or a variable */
  char *name;
} TdWatch;

/** Read the notebook of a recording; none yet is an empty one. Owner: the caller. Errors: NULL
 * when there is one that cannot be read or is of another recording: it is then left alone. */
TdNotebook *td_notebook_new (const char *tape_path, const guint8 uuid[16], GError **error);

/** Count notes; they are in order of moments. */
guint td_notebook_get_n_notes (TdNotebook *self);
const TdNote *td_notebook_get_note (TdNotebook *self, guint i);
/** Return the note at a moment, NULL: there is none. Owner: the notebook, until it changes. */
const TdNote *td_notebook_find (TdNotebook *self, gint64 iteration, gint event);
/** Write a note at a moment, in place of one that is there; "" takes it away. Errors: it stands
 * in the notebook, but the file could not be written. */
gboolean td_notebook_write (TdNotebook *self, gint64 iteration, gint event, const char *text,
                            GError **error);

guint td_notebook_get_n_watches (TdNotebook *self);
const TdWatch *td_notebook_get_watch (TdNotebook *self, guint i);
gboolean td_notebook_is_watched (TdNotebook *self, guint64 key);
/** Watch what has this key, or no longer. Errors: as td_notebook_write. */
gboolean td_notebook_toggle_watch (TdNotebook *self, guint64 key, const char *name,
                                   GError **error);

/** Say what a watched thing is in an iteration: shape, and its numbers as far as they are on
 * the tape. Owner: the caller. */
char *td_watch_describe (TdIteration *iteration, guint64 key);
/** Name the thing with this key: "conv1/W", "relu 12"; NULL: it is not in this iteration.
 * Owner: the caller. */
char *td_watch_name (TdIteration *iteration, guint64 key);

G_END_DECLS
