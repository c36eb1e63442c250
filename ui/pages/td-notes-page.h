/* The views of the dock that show the notebook: notes, one click from their moment, and watches
 * with their numbers at the playhead. SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#include "scene/td-scene.h"
#include "tape/td-notebook.h"
#include "td-session.h"

#define TD_TYPE_NOTES_PAGE (td_notes_page_get_type ())
G_DECLARE_FINAL_TYPE (TdNotesPage, td_notes_page, TD, NOTES_PAGE, GtkWidget)

/** Create the view of notes, or of watches. Owner: floating. */
GtkWidget *td_notes_page_new (gboolean watches);

/** Show the notebook of a session; both may be NULL. */
void td_notes_page_set_notebook (TdNotesPage *self, TdSession *session, TdNotebook *notebook);

/** Return the curve of watch i, NULL: there is none. Owner: the view. */
TdScene *td_notes_page_get_curve (TdNotesPage *self, guint i);
/** Return what row i says; NULL: there is none. Owner: the caller. */
char *td_notes_page_dup_row (TdNotesPage *self, guint i);
