/* Where everything of a view stands. Three lanes side by side (TB) or above one another (LR),
 * twins in the same row, stubs beside their users, groups as boxes with a header; edges are
 * orthogonal polylines. Immutable, in points, y down, the origin at the top left of the first
 * lane.
 *
 * The quick engine is ours and linear. The Graphviz engine runs in a helper process that is
 * killed on time-out or cancel; what it answers for the content of a group is kept in memory.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gio/gio.h>

#include "graph/td-graph.h"

G_BEGIN_DECLS

typedef struct
{
  double x, y, width, height;
} TdRect;

typedef struct
{
  double x, y;
} TdPoint;

typedef enum
{
  TD_ORIENTATION_TB,
  TD_ORIENTATION_LR,
} TdOrientation;

typedef struct
{
  TdOrientation orientation;
} TdLayoutOptions;

typedef struct
{
  guint32 first_point, n_points; /* into `points`; the last one is the arrow's tip */
  TdRect pill;                   /* place for the bytes of a saved edge; width 0: none */
  TdPoint label;                 /* left middle of the label of an edge that has one */
} TdEdgeRoute;

typedef struct
{
  TdVizView *view; /* owned */
  TdOrientation orientation;
  gboolean is_quick;            /* FALSE: every group that could be was laid out by Graphviz */
  TdRect bounds;                /* of everything */
  TdRect *nodes;                /* one per node of the view */
  TdRect (*groups)[TD_N_LANES]; /* one box per open group and lane; width 0: not in that lane */
  TdRect lanes[TD_N_LANES];
  TdEdgeRoute *edges; /* one per edge of the view */
  TdPoint *points;
  guint n_points;
  /*< private >*/
  gint ref_count;
} TdLayout;

/** Lay out now, in linear time, without any other process. `previous` (may be NULL) is the
 * picture before: nodes with equal keys stay where they are if they can. Owner: the caller. */
TdLayout *td_layout_new_quick (TdVizView *view, const TdLayoutOptions *options,
                               TdLayout *previous);
/** Lay out with Graphviz in the helper process. Sync: blocks up to `timeout_ms`. Errors:
 * G_IO_ERROR_TIMED_OUT, G_IO_ERROR_CANCELLED, G_IO_ERROR_FAILED (helper missing, dead or
 * talking nonsense): keep the quick layout then. */
TdLayout *td_layout_new_graphviz (TdVizView *view, const TdLayoutOptions *options,
                                  TdLayout *previous, guint timeout_ms,
                                  GCancellable *cancellable, GError **error);
/** The same in a worker thread. */
void td_layout_new_graphviz_async (TdVizView *view, const TdLayoutOptions *options,
                                   TdLayout *previous, guint timeout_ms,
                                   GCancellable *cancellable, GAsyncReadyCallback callback,
                                   gpointer user_data);
TdLayout *td_layout_new_graphviz_finish (GAsyncResult *result, GError **error);

/** Say whether a view would be laid out as this layout is: it has the same in it. */
gboolean td_layout_fits (const TdLayout *self, const TdVizView *view,
                         TdOrientation orientation);
/** Return the places of a layout for another iteration's view that it fits, whose words,
 * sizes and times are its own. Owner: the caller. */
TdLayout *td_layout_new_like (const TdLayout *self, TdVizView *view);

TdLayout *td_layout_ref (TdLayout *self);
void td_layout_unref (TdLayout *self);

/** Say how far the thing with this key (node or open group) moved from one layout to the other,
 * so that a view can scroll by it and keep it still on screen. Return FALSE if it is not in
 * both. */
gboolean td_layout_get_shift (const TdLayout *from, const TdLayout *to, guint64 key, double *dx,
                              double *dy);
/** Return the node to walk to by an arrow key: up and down along edges, left and right among
 * neighbours; -1 if there is none. `dx`, `dy` are -1, 0 or 1. */
gint td_layout_walk (const TdLayout *self, gint node, gint dx, gint dy);
/** Print all positions as text, for golden tests. Owner: the caller, g_free(). */
char *td_layout_to_text (const TdLayout *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdLayout, td_layout_unref)

G_END_DECLS
