/* The list of iterations: number, main report, memory, and chips for what happened in them.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#include "td-session.h"

#define TD_TYPE_ITERATIONS (td_iterations_get_type ())
G_DECLARE_FINAL_TYPE (TdIterations, td_iterations, TD, ITERATIONS, GtkWidget)

/** Create the list. Owner: floating. */
GtkWidget *td_iterations_new (void);

void td_iterations_set_session (TdIterations *self, TdSession *session);

guint td_iterations_get_n_rows (TdIterations *self);
