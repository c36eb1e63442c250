/* What the files of the canvas share: its state and the moves of the view.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "widgets/td-graph-view.h"

#include "scene/td-panel.h"

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
  TdViewport viewport; /* its pixels are the widget's divided by text_scale */
  double text_scale;
  GskRenderNode *painted; /* scene and minimap as they were drawn last; NULL: not yet */
  TdScene *painted_scene; /* that it is of, and what was in sight */
  TdViewport painted_at;
  guint64 hover;      /* key on the canvas that is ringed; 0: none */
  gboolean fitted;    /* the view follows the window until the user zooms, pans or opens */
  gboolean fit_whole; /* asked for: everything in sight, even if nobody can read it */
  gboolean cut;       /* fitted, but only a part is in sight: the one around the anchor */
  gint anchor;        /* the event that stays in sight then; -1: the one at the playhead */
  TdOrientation orientation;
  TdHeatBy heat;
  GCancellable *cancellable;
  guint n_asked;      /* layouts that Graphviz has not answered yet */
  gint64 last_motion; /* monotonic, microseconds */
  guint still_timer;
  double pan_x, pan_y;
  gboolean on_minimap;

  /* of two canvases that are compared: td-graph-pair.c */
  TdGraphView *peer;     /* borrowed; moves, zooms and folds with this one */
  gboolean is_second;    /* its picture follows the peer's */
  gboolean following;    /* the peer moves this one */
  gint beside;           /* the event that stands beside the peer's when they open; -1 */
  double peer_x, peer_y; /* the peer's view is so much to the right and below */
  TdViewLanes lanes;     /* on show; 0: all */
  gboolean whole;        /* nothing is faded */
  guint8 *marks;         /* TdMark by event; NULL: none */
  guint n_marks;
};

/** How large the picture is, without making it. */
void td__graph_view_get_size (TdGraphView *self, double *width, double *height);

/** Draw again, with the peer, and tell listeners that the view moved. */
void td__graph_view_moved (TdGraphView *self);

/** Find where the node is that shows an event (-1: none). FALSE: nowhere. */
gboolean td__graph_view_find_event (TdGraphView *self, gint event, TdSceneRect *box);
/** The same of the playhead. */
gboolean td__graph_view_find_playhead (TdGraphView *self, TdSceneRect *box);
/** Let what is in sight while the view is fitted follow an event, -1: the playhead. */
void td__graph_view_anchor (TdGraphView *self, gint event);

/** Fit the viewport: to everything, or to as much of it as can be read. */
void td__graph_view_fit_content (TdGraphView *self);

/** From now on the zoom is the user's: opening a layer must not make all others small. */
void td__graph_view_keep_zoom (TdGraphView *self);

/** Say whether everything is in sight anyway. */
gboolean td__graph_view_sees_all (TdGraphView *self);

/** Say in the session what the pointer is on. */
void td__graph_view_point (TdGraphView *self, double x, double y);

/** Zoom about a pixel of the widget. */
void td__graph_view_zoom_at (TdGraphView *self, double factor, double x, double y);

/** Return the widget's own rectangle. */
void td__graph_view_get_bounds (TdGraphView *self, graphene_rect_t *bounds);
/** Begin to draw in pixels of the viewport. Owner: the caller. */
cairo_t *td__graph_view_begin_paint (TdGraphView *self, GtkSnapshot *snapshot);

/** Draw scene and minimap as they are in sight now. It is kept, so that a highlight which
 * follows the pointer does not draw the graph again. */
void td__graph_view_paint (TdGraphView *self, TdScene *scene);
void td__graph_view_forget_painted (TdGraphView *self);

/** Return where the minimap is, in pixels of the viewport. FALSE: everything is in sight, there
 * is none. */
gboolean td__graph_view_minimap_box (TdGraphView *self, TdSceneRect *box);

/** How much around what is in the middle is in sight too, in pixels. */
double td__graph_view_vicinity (const TdViewport *v);
/** Let the peer's view show its event where this one shows `event`. Where a side has none, what
 * both have nearby stands side by side, or what that side has is where the other's event is. */
void td__graph_view_align (TdGraphView *self, gint event, gint peer_event, gint beside,
                           gint peer_beside);
/** Make room in the viewport for the peer's content too, and fit at the same scale. */
void td__graph_view_share_content (TdGraphView *self);

/** Return the peer's fold state for the same layers. Owner: the caller. NULL: some are others.
 */
TdFold *td__graph_view_copy_fold (TdGraphView *self);
/** Return the fold state that fits the peer's, for a graph of its own default `fold`. Owner:
 * takes `fold`; the caller. */
TdFold *td__graph_view_match_fold (TdGraphView *self, TdFold *fold);
