/* The source of the model as recorded, with the line of the playhead and of the program.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#include "td-session.h"

#define TD_TYPE_SOURCE_PAGE (td_source_page_get_type ())
G_DECLARE_FINAL_TYPE (TdSourcePage, td_source_page, TD, SOURCE_PAGE, GtkWidget)

/** Create the view. Owner: floating. */
GtkWidget *td_source_page_new (void);

void td_source_page_set_session (TdSourcePage *self, TdSession *session);

/** Show a line of a recorded file until the playhead moves. FALSE: the file was not stored. */
gboolean td_source_page_show_line (TdSourcePage *self, const char *file, guint line);

/** Return the marked line, from 1; 0 if there is none. */
guint td_source_page_get_line (TdSourcePage *self);
/** Return the line that is marked because something of it is hovered; 0: none. */
guint td_source_page_get_hovered (TdSourcePage *self);
/** Return the path of the file on show, "" if there is none. */
/** Return what the gutter says of static functions at a line of the file on show, from 1 on;
 * NULL: nothing. Owner: the page. */
const char *td_source_page_get_mark (TdSourcePage *self, guint line);
const char *td_source_page_get_file (TdSourcePage *self);
