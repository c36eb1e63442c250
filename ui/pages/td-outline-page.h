/* The outline: the graph as a tree, the fastest navigator and the accessible twin of the
 * canvas. It shows the same moment and selection as every other panel.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#include "td-session.h"

#define TD_TYPE_OUTLINE_PAGE (td_outline_page_get_type ())
G_DECLARE_FINAL_TYPE (TdOutlinePage, td_outline_page, TD, OUTLINE_PAGE, GtkWidget)

/** Create the outline. Owner: floating. */
GtkWidget *td_outline_page_new (void);

/** Show `session`; NULL shows nothing. */
void td_outline_page_set_session (TdOutlinePage *self, TdSession *session);

/** Count the rows on show. */
guint td_outline_page_get_n_rows (TdOutlinePage *self);

/** Return the name in row `position`, NULL past the end. Owner: caller. */
char *td_outline_page_dup_row_name (TdOutlinePage *self, guint position);

/** Expand or fold every row that has rows of layers below it. */
void td_outline_page_expand_all (TdOutlinePage *self, gboolean expand);

/** Return the operations of the backward pass that could run next, one a line; "" outside it.
 */
const char *td_outline_page_get_waiting (TdOutlinePage *self);
