/* The canvas: the graph of the iteration at the playhead. Pans, zooms, selects, folds;
 * positions stay put when layers open and when the iteration changes.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#include "scene/td-graph-scene.h"
#include "td-session.h"
#include "widgets/td-viewport.h"

#define TD_TYPE_GRAPH_VIEW (td_graph_view_get_type ())
G_DECLARE_FINAL_TYPE (TdGraphView, td_graph_view, TD, GRAPH_VIEW, GtkWidget)

/** Create the canvas. Signal "view-changed" after zoom, fold or graph changed. Owner: floating.
 */
GtkWidget *td_graph_view_new (void);

void td_graph_view_set_session (TdGraphView *self, TdSession *session);

void td_graph_view_set_orientation (TdGraphView *self, TdOrientation orientation);
void td_graph_view_set_heat (TdGraphView *self, TdHeatBy heat);

/** Zoom by `factor` about the middle; 0 goes to 100 %. */
void td_graph_view_zoom (TdGraphView *self, double factor);
/** Show everything. */
void td_graph_view_fit (TdGraphView *self);
double td_graph_view_get_scale (TdGraphView *self);

/** Open or fold the layer with this key; what was clicked does not move on screen. Return FALSE
 *  if there is no such layer. */
gboolean td_graph_view_set_expanded (TdGraphView *self, guint64 key, gboolean expanded);
gboolean td_graph_view_is_expanded (TdGraphView *self, guint64 key);
/** Open layers down to `depth`: 0 none, -1 all. */
void td_graph_view_expand_to (TdGraphView *self, int depth);
/** Open what hides this event. */
void td_graph_view_reveal (TdGraphView *self, gint event);
/** Return the key of the layer to fold for a selected key: itself or the one around it; 0 none.
 */
guint64 td_graph_view_find_layer (TdGraphView *self, guint64 key);

/** Say whether a better layout is being made, or waits for the pointer to be still. */
gboolean td_graph_view_is_laying_out (TdGraphView *self);

/** Find where the node that shows an event, or the playhead, is in pixels of the widget. FALSE:
 * nowhere. */
gboolean td_graph_view_get_event (TdGraphView *self, gint event, TdSceneRect *box);
gboolean td_graph_view_get_playhead (TdGraphView *self, TdSceneRect *box);

/** Count visible nodes. */
guint td_graph_view_get_n_nodes (TdGraphView *self);
/** Return the scene and layout on show; NULL when there are none. Owner: the view. */
TdScene *td_graph_view_get_scene (TdGraphView *self);
TdLayout *td_graph_view_get_layout (TdGraphView *self);

/** Return the key of what is ringed because it is hovered here or elsewhere; 0: nothing. */
guint64 td_graph_view_get_hover (TdGraphView *self);

/** Select what is at (x, y) of the widget, in pixels; `toggle` opens or folds a layer there. */
void td_graph_view_click (TdGraphView *self, double x, double y, gboolean toggle);

/* ---- two canvases side by side ---- */

/** Let two canvases pan, zoom and fold together; the second one's picture keeps to the first
 * one's places. Both must live as long as either is shown. */
void td_graph_view_pair (TdGraphView *first, TdGraphView *second);
/** Show the iteration as if all of it had run, wherever the playhead is. */
void td_graph_view_set_whole (TdGraphView *self, gboolean whole);
/** Choose the lanes on show. */
void td_graph_view_set_lanes (TdGraphView *self, TdViewLanes lanes);
/** Mark operations: TdMark by event, copied; NULL: none. */
void td_graph_view_set_marks (TdGraphView *self, const guint8 *marks, guint n);
/** Open both around these events (-1: it has none) at a zoom at which names can be read; both
 * have `beside` and `peer_beside`, the last ones before. The view of a user who has chosen what
 * is in sight stays. */
void td_graph_view_open_at (TdGraphView *self, gint event, gint peer_event, gint beside,
                            gint peer_beside);
/** Let the peer show its event where this one shows `event`; where a side has none (-1) it
 * shows the place, by what both have before it. */
void td_graph_view_align (TdGraphView *self, gint event, gint peer_event, gint beside,
                          gint peer_beside);
/** Bring the node of an event (-1: none) into sight, and on the peer that of `peer_event`, at
 * the same height if possible. */
void td_graph_view_show_events (TdGraphView *self, gint event, gint peer_event);
/** Return the key of the peer's layer that is the layer `key` here; 0: it has none. */
guint64 td_graph_view_get_peer_key (TdGraphView *self, guint64 key);
