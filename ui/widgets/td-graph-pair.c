/* Two canvases that are compared: one leads, the other follows in place, scale and folds; which
 * of them leads is whichever was touched last. SPDX-License-Identifier: MIT */
#include "widgets/td-graph-view-private.h"

#include <string.h>

#define SHOW_MARGIN 36.0

void
td_graph_view_pair (TdGraphView *first, TdGraphView *second)
{
  first->peer = second;
  second->peer = first;
  first->is_second = FALSE;
  second->is_second = TRUE;
}

void
td_graph_view_set_whole (TdGraphView *self, gboolean whole)
{
  self->whole = whole;
  self->scene_valid = FALSE;
  gtk_widget_queue_draw (GTK_WIDGET (self));
}

void
td_graph_view_set_marks (TdGraphView *self, const guint8 *marks, guint n)
{
  g_clear_pointer (&self->marks, g_free);
  self->n_marks = marks ? n : 0;
  if (marks)
    self->marks = g_memdup2 (marks, n);
  self->scene_valid = FALSE;
  gtk_widget_queue_draw (GTK_WIDGET (self));
}

/* ---- place ---- */

/* Show what the one that was touched shows. */
static void
lead (TdGraphView *self)
{
  TdGraphView *peer = self->peer;
  if (!peer || self->following)
    return;
  peer->fitted = self->fitted;
  peer->fit_whole = self->fit_whole;
  peer->cut = self->cut;
  peer->peer_x = -self->peer_x;
  peer->peer_y = -self->peer_y;
  peer->viewport.scale = self->viewport.scale;
  peer->viewport.x = self->viewport.x + self->peer_x;
  peer->viewport.y = self->viewport.y + self->peer_y;
  peer->following = TRUE;
  td__graph_view_moved (peer);
  peer->following = FALSE;
}

void
td__graph_view_moved (TdGraphView *self)
{
  gtk_widget_queue_draw (GTK_WIDGET (self));
  lead (self);
  g_signal_emit_by_name (self, "view-changed");
}

void
td__graph_view_share_content (TdGraphView *self)
{
  double width, height;
  if (!self->peer)
    return;
  td__graph_view_get_size (self->peer, &width, &height);
  self->viewport.content_width = MAX (self->viewport.content_width, width);
  self->viewport.content_height = MAX (self->viewport.content_height, height);
}

void
td_graph_view_align (TdGraphView *self, gint event, gint peer_event, gint beside,
                     gint peer_beside)
{
  if (td__graph_view_sees_all (self))
    return;
  td__graph_view_align (self, event, peer_event, beside, peer_beside);
  td__graph_view_moved (self);
}

void
td_graph_view_open_at (TdGraphView *self, gint event, gint peer_event, gint beside,
                       gint peer_beside)
{
  TdGraphView *first = self->is_second ? self->peer : self;
  if (!self->fitted || self->fit_whole)
    return;
  self->anchor = event;
  self->peer->anchor = peer_event;
  self->beside = beside;
  self->peer->beside = peer_beside;
  first->cut = FALSE;
  td__graph_view_fit_content (first);
  td__graph_view_moved (first);
}

void
td_graph_view_show_events (TdGraphView *self, gint event, gint peer_event)
{
  TdGraphView *peer = self->peer;
  TdSceneRect here, there;
  gboolean is_here = td__graph_view_find_event (self, event, &here);
  gboolean is_there = peer && td__graph_view_find_event (peer, peer_event, &there);
  if (td__graph_view_sees_all (self) || (!is_here && !is_there))
    return;
  self->anchor = event;
  if (peer)
    peer->anchor = peer_event;
  if (!is_here) /* where it would be */
    {
      here = there;
      here.x -= self->peer_x;
      here.y -= self->peer_y;
    }
  const TdViewport *v = &self->viewport;
  double around
      = is_here && is_there ? SHOW_MARGIN : MAX (SHOW_MARGIN, td__graph_view_vicinity (v));
  td_viewport_show (&self->viewport, &here, around);
  if (is_here && is_there)
    td__graph_view_align (self, event, peer_event, -1, -1);
  td__graph_view_moved (self);
}

/* ---- folds ---- */

/* Groups of one program have equal keys in all its runs; those of two programs are matched by
 * their paths. */
static gint
find_same_group (TdGraphView *self, const TdVizGroup *group)
{
  gint found = td_viz_graph_find_group (self->graph, group->key);
  guint n;
  const TdVizGroup *groups = td_viz_graph_get_groups (self->graph, &n);
  for (guint i = 1; i < n && found < 0 && group->path && *group->path; i++)
    if (groups[i].kind == group->kind && strcmp (groups[i].path, group->path) == 0)
      found = (gint)i;
  return found;
}

guint64
td_graph_view_get_peer_key (TdGraphView *self, guint64 key)
{
  gint at = self->graph ? td_viz_graph_find_group (self->graph, key) : -1;
  guint n;
  if (at < 0 || !self->peer || !self->peer->graph)
    return 0;
  gint there = find_same_group (self->peer, &td_viz_graph_get_groups (self->graph, &n)[at]);
  return there >= 0 ? td_viz_graph_get_groups (self->peer->graph, &n)[there].key : 0;
}

TdFold *
td__graph_view_copy_fold (TdGraphView *self)
{
  TdGraphView *peer = self->peer;
  guint n, n_there = 0;
  const TdVizGroup *groups = td_viz_graph_get_groups (self->graph, &n);
  if (peer->graph && peer->fold)
    td_viz_graph_get_groups (peer->graph, &n_there);
  gboolean same = n == n_there;
  for (guint i = 1; i < n && same; i++)
    same = td_viz_graph_find_group (peer->graph, groups[i].key) >= 0;
  return same ? td__graph_view_match_fold (self, td_fold_new_depth (self->graph, 0)) : NULL;
}

TdFold *
td__graph_view_match_fold (TdGraphView *self, TdFold *fold)
{
  TdGraphView *peer = self->peer;
  guint n;
  const TdVizGroup *groups = td_viz_graph_get_groups (self->graph, &n);
  for (guint i = 1; i < n && peer->graph && peer->fold; i++)
    {
      gint there = find_same_group (peer, &groups[i]);
      guint n_there;
      const TdVizGroup *others = td_viz_graph_get_groups (peer->graph, &n_there);
      if (there >= 0)
        td_fold_set_expanded (fold, groups[i].key,
                              td_fold_is_expanded (peer->fold, others[there].key));
    }
  return fold;
}
