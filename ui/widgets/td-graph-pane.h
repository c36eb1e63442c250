/* The canvas with what stands above it: where the selection is, legend chips, orientation,
 * heat, zoom; and the search bar. SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#include "td-session.h"
#include "widgets/td-graph-view.h"

#define TD_TYPE_GRAPH_PANE (td_graph_pane_get_type ())
G_DECLARE_FINAL_TYPE (TdGraphPane, td_graph_pane, TD, GRAPH_PANE, GtkWidget)

/** Create the pane. Owner: floating. */
GtkWidget *td_graph_pane_new (void);

void td_graph_pane_set_session (TdGraphPane *self, TdSession *session);

/** Return the canvas. Owner: the pane. */
TdGraphView *td_graph_pane_get_view (TdGraphPane *self);

/** Show the search bar and put the cursor in it. */
void td_graph_pane_find (TdGraphPane *self);

/** Close the search bar. FALSE: it was not open. */
gboolean td_graph_pane_close_find (TdGraphPane *self);

/** Search for `text` from the selection on, select what is found. Return the number of matches.
 */
guint td_graph_pane_search (TdGraphPane *self, const char *text);

void td_graph_pane_set_orientation (TdGraphPane *self, TdOrientation orientation);

/** Leave out what a narrow window has no room for. */
void td_graph_pane_set_narrow (TdGraphPane *self, gboolean narrow);
