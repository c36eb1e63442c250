/* What the files of the canvas share: its state and the moves of the view.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "widgets/td-graph-view.h"

struct _TdGraphView
{
  GtkWidget parent;
  TdSession *session;
  TdIteration *iteration;
  TdVizGraph *graph; /* borrowed from the iteration */
  TdFold *fold;
  gboolean fold_chosen;      /* by the user: no longer fitted to each new structure */
  TdLayout *layout, *better; /* `better` waits for the pointer to be still */
  TdScene *scene;
  gboolean scene_valid;
  TdViewport viewport;
  gboolean fitted; /* the view follows the window until the user zooms or pans */
  TdOrientation orientation;
  TdHeatBy heat;
  GCancellable *cancellable;
  guint n_asked;      /* layouts that Graphviz has not answered yet */
  gint64 last_motion; /* monotonic, microseconds */
  guint still_timer;
  double pan_x, pan_y;
  gboolean on_minimap;
};

/** Draw again and tell listeners that the view moved. */
void td__graph_view_moved (TdGraphView *self);

/** Zoom about a pixel of the widget. */
void td__graph_view_zoom_at (TdGraphView *self, double factor, double x, double y);

/** Return where the minimap is, in pixels. FALSE: everything is in sight, there is none. */
gboolean td__graph_view_minimap_box (TdGraphView *self, TdSceneRect *box);

/** Take pointer, wheel, keys and tooltips. */
void td__graph_view_add_controllers (TdGraphView *self);
