/* The log: what the model and its supervisor print, stderr marked, bounded in length.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#define TD_TYPE_LOG_PAGE (td_log_page_get_type ())
G_DECLARE_FINAL_TYPE (TdLogPage, td_log_page, TD, LOG_PAGE, GtkWidget)

/** Create an empty log. Owner: floating. */
GtkWidget *td_log_page_new (void);

/** Add a line; the oldest go when there are more than 10,000. */
void td_log_page_append (TdLogPage *self, const char *line, gboolean is_stderr);

/** Return the whole text. Owner: caller. */
char *td_log_page_dup_text (TdLogPage *self);
