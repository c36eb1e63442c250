/* The views of the dock that show the notebook: notes, one click from their moment, and watches
 * with their numbers at the playhead. SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#include "scene/td-scene.h"
#include "tape/td-notebook.h"
#include "td-session.h"

#define TD_TYPE_NOTES_VIEW (td_notes_view_get_type ())
G_DECLARE_FINAL_TYPE (TdNotesView, td_notes_view, TD, NOTES_VIEW, GtkWidget)

/** Create the view of notes, or of watches. Owner: floating. */
GtkWidget *td_notes_view_new (gboolean watches);

/** Show the notebook of a session; both may be NULL. */
void td_notes_view_set_notebook (TdNotesView *self, TdSession *session, TdNotebook *notebook);

/** Return the curve of watch i, NULL: there is none. Owner: the view. */
TdScene *td_notes_view_get_curve (TdNotesView *self, guint i);
/** Return what row i says; NULL: there is none. Owner: the caller. */
char *td_notes_view_dup_row (TdNotesView *self, guint i);
