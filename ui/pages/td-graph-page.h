/* The canvas with what stands above it: where the selection is, legend chips, orientation,
 * heat, zoom; and the search bar. SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#include "td-session.h"
#include "widgets/td-graph-view.h"

#define TD_TYPE_GRAPH_PAGE (td_graph_page_get_type ())
G_DECLARE_FINAL_TYPE (TdGraphPage, td_graph_page, TD, GRAPH_PAGE, AdwBin)

/** Create the pane. Owner: floating. */
GtkWidget *td_graph_page_new (void);

void td_graph_page_set_session (TdGraphPage *self, TdSession *session);

/** Return the canvas. Owner: the pane. */
TdGraphView *td_graph_page_get_view (TdGraphPage *self);

/** Show the search bar and put the cursor in it. */
void td_graph_page_find (TdGraphPage *self);

/** Close the search bar. FALSE: it was not open. */
gboolean td_graph_page_close_find (TdGraphPage *self);

/** Search for `text` from the selection on, select what is found. Return the number of matches.
 */
guint td_graph_page_search (TdGraphPage *self, const char *text);

void td_graph_page_set_orientation (TdGraphPage *self, TdOrientation orientation);

/** Leave out what a narrow window has no room for. */
void td_graph_page_set_narrow (TdGraphPage *self, gboolean narrow);
