/* The shortcuts window: every key of the table, and for Ctrl+F1 the page on show with the keys
 * that are only its own, and what pages there are. SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

/** Build the window, which tells of a page; NULL: of all keys. Owner: caller. */
GtkShortcutsWindow *td_help_new_window (const char *page);

/** Return the page that a widget is a part of; `fallback` where none is known, and that one's
 * help, if it has any; else the start page. Owner: static. */
const char *td_help_find_page (GtkWidget *widget, const char *fallback);

/** Return the topic of the manual that a page of td_help_find_page is in. Owner: static. */
const char *td_help_find_topic (const char *page);
