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
  TdGraphView *peer = self->peer;
  TdScene *scene = peer ? td_graph_view_get_scene (peer) : NULL;
  if (!scene)
    return;
  self->viewport.content_width = MAX (self->viewport.content_width, td_scene_width (scene));
  self->viewport.content_height = MAX (self->viewport.content_height, td_scene_height (scene));
}

/* Where the node that shows an event is in the scene. */
static gboolean
find_box (TdGraphView *self, gint event, TdSceneRect *box)
{
  TdScene *scene = td_graph_view_get_scene (self);
  gint node
      = self->layout && event >= 0 ? td_viz_view_find_event (self->layout->view, event) : -1;
  return scene && node >= 0
         && td_scene_find_key (scene, self->layout->view->nodes[node].select_key, box);
}

void
td_graph_view_show_events (TdGraphView *self, gint event, gint peer_event)
{
  TdGraphView *peer = self->peer;
  TdSceneRect here, there;
  gboolean is_here = find_box (self, event, &here);
  gboolean is_there = peer && find_box (peer, peer_event, &there);
  if (self->fitted || (!is_here && !is_there))
    return;     /* all of it is in sight */
  if (!is_here) /* where it would be */
    {
      here = there;
      here.x -= self->peer_x;
      here.y -= self->peer_y;
    }
  td_viewport_show (&self->viewport, &here, SHOW_MARGIN);
  if (is_here && is_there)
    {
      self->peer_x = there.x - here.x;
      self->peer_y = there.y - here.y;
    }
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
