/* The list of iterations: number, main report, memory, and chips for what happened in them.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#include "td-session.h"

#define TD_TYPE_ITERATIONS_PAGE (td_iterations_page_get_type ())
G_DECLARE_FINAL_TYPE (TdIterationsPage, td_iterations_page, TD, ITERATIONS_PAGE, GtkWidget)

/** Create the list. Owner: floating. */
GtkWidget *td_iterations_page_new (void);

void td_iterations_page_set_session (TdIterationsPage *self, TdSession *session);

guint td_iterations_page_get_n_rows (TdIterationsPage *self);
