/* The window of one recording: header bar, the pages (start, debug, memory, message), its
 * actions. It owns the session and the connection to the program; pages only look at both.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#include "td-session.h"

#define TD_TYPE_WINDOW (td_window_get_type ())
G_DECLARE_FINAL_TYPE (TdWindow, td_window, TD, WINDOW, AdwApplicationWindow)

/** Create a window that shows the start page. Owner: the application. */
TdWindow *td_window_new (GtkApplication *app);

/** Say whether the window shows no recording and runs no program. */
gboolean td_window_is_empty (TdWindow *self);

/** Open a recording, or compile and run a model under supervision. Errors: shown as a page. */
void td_window_open (TdWindow *self, GFile *file);

/** Say whether this is a link to a moment of a recording (tapedeck:...). */
gboolean td_link_is (const char *text);
/** Go to the moment that a link names, in the window that shows its recording, else in this
 * one. FALSE: it is no link, or the recording is not found, which is said. */
gboolean td_window_open_link (TdWindow *self, const char *link);

/** Run a model or a program with arguments (NULL: none), whatever its name ends in. */
void td_window_run (TdWindow *self, GFile *program, const char *const *args);

/** Show the page on which a recording is prepared. */
void td_window_show_record (TdWindow *self);

/** Return the topic of the manual that the page that has the keyboard is in. Owner: static. */
const char *td_window_get_help_topic (TdWindow *self);

/** Show the growing recording `tape` of the program that listens on the socket `address`. */
void td_window_attach (TdWindow *self, GFile *tape, const char *address);

/** Set environment and working directory of programs started from this window. */
void td_window_set_launch (TdWindow *self, const char *const *environment,
                           const char *directory);

/** Show a full-page message. `button` and `action` may be NULL; `details` goes to Copy Details.
 */
void td_window_show_message (TdWindow *self, const char *icon, const char *title,
                             const char *text, const char *details);

/** Return the session of the recording on show, NULL if there is none. Owner: the window. */
TdSession *td_window_get_session (TdWindow *self);
