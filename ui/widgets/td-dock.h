/* The dock: up to three panels side by side, each showing one of the views it was given. A view
 * lives in one place at a time; choosing it elsewhere swaps the two.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#define TD_TYPE_DOCK (td_dock_get_type ())
G_DECLARE_FINAL_TYPE (TdDock, td_dock, TD, DOCK, GtkWidget)

/** Create an empty dock. Owner: floating. */
GtkWidget *td_dock_new (void);

/** Add a view: `name` for actions, `title` for people, `controls` (may be NULL) go beside the
 *  title. The first three take the three places. */
void td_dock_add_view (TdDock *self, const char *name, const char *title, GtkWidget *controls,
                       GtkWidget *content);

/** Bring a view to the front: where it is, else in the last place that nobody works in.
 * FALSE: there is none such. */
gboolean td_dock_show_view (TdDock *self, const char *name);

/** Say whether the view has a place now. */
gboolean td_dock_is_shown (TdDock *self, const char *name);

/** Return the names of the views in the places, left to right. Owner: caller. */
char **td_dock_dup_names (TdDock *self);

/** Put the views of these names into the places; unknown names are left out. The signal
 * "changed" says that another view was put into a place. */
void td_dock_set_names (TdDock *self, const char *const *names);

/** Set how many places there are, 1 to 3. */
void td_dock_set_n_places (TdDock *self, guint n);
