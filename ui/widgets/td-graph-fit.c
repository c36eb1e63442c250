/* At which zoom a picture opens: all of it where names can be read then, else the part around
 * the playhead, or where two pictures part, with the minimap for the rest.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-graph-view-private.h"

#include <math.h>

#define LEGIBLE_SCALE 0.72 /* names of nodes are 9 pixels high, not less */
#define FIT_MARGIN 24.0

gboolean
td__graph_view_find_event (TdGraphView *self, gint event, TdSceneRect *box)
{
  TdLayout *layout = self->session ? self->layout : NULL;
  gint node = layout && event >= 0 ? td_viz_view_find_event (layout->view, event) : -1;
  double width, height;
  if (node < 0)
    return FALSE;
  td__graph_view_get_size (self, &width, &height);
  /* by place, not by key: a layer has the same in all lanes */
  *box = (TdSceneRect){
    layout->nodes[node].x - layout->bounds.x + (width - layout->bounds.width) / 2,
    layout->nodes[node].y - layout->bounds.y + (height - layout->bounds.height) / 2,
    layout->nodes[node].width, layout->nodes[node].height
  };
  return TRUE;
}

gboolean
td__graph_view_find_playhead (TdGraphView *self, TdSceneRect *box)
{
  return self->session
         && td__graph_view_find_event (self, td_session_get_moment (self->session).event, box);
}

void
td__graph_view_anchor (TdGraphView *self, gint event)
{
  self->anchor = event;
  if (self->peer)
    self->peer->anchor = -1;
}

/* What only the peer has is looked at where it would be. */
static gboolean
find_anchor (TdGraphView *self, TdSceneRect *box)
{
  TdGraphView *peer = self->peer;
  if (td__graph_view_find_event (self, self->anchor, box))
    return TRUE;
  if (!peer || !td__graph_view_find_event (peer, peer->anchor, box))
    return td__graph_view_find_playhead (self, box);
  box->x -= self->peer_x;
  box->y -= self->peer_y;
  return TRUE;
}

static void
align (TdGraphView *self, gint event, gint peer_event)
{
  TdSceneRect here, there;
  if (!td__graph_view_find_event (self, event, &here)
      || !td__graph_view_find_event (self->peer, peer_event, &there))
    return;
  self->peer_x = there.x - here.x;
  self->peer_y = there.y - here.y;
  self->peer->peer_x = -self->peer_x;
  self->peer->peer_y = -self->peer_y;
}

double
td__graph_view_vicinity (const TdViewport *v)
{
  return MIN (v->width, v->height) / 3;
}

/* Both are in sight in a viewport where one is in the middle. */
static gboolean
are_near (const TdViewport *v, TdGraphView *view, gint event, gint other)
{
  TdSceneRect a, b;
  const double most = td__graph_view_vicinity (v) / v->scale;
  return td__graph_view_find_event (view, event, &a)
         && td__graph_view_find_event (view, other, &b) && fabs (a.x - b.x) < most
         && fabs (a.y - b.y) < most;
}

void
td__graph_view_align (TdGraphView *self, gint event, gint peer_event, gint beside,
                      gint peer_beside)
{
  if (event >= 0 && peer_event >= 0)
    align (self, event, peer_event);
  else if (event >= 0)
    align (self, are_near (&self->viewport, self, event, beside) ? beside : event, peer_beside);
  else
    align (self, beside,
           are_near (&self->viewport, self->peer, peer_event, peer_beside) ? peer_beside
                                                                           : peer_event);
}

/* Of two canvases one fits, the other shows the same place. */
static gboolean
follow_peer (TdGraphView *self)
{
  TdGraphView *peer = self->is_second ? self->peer : NULL;
  if (!peer || !peer->layout || peer->viewport.width <= 1)
    return FALSE;
  self->viewport.scale = peer->viewport.scale;
  self->peer_x = -peer->peer_x;
  self->peer_y = -peer->peer_y;
  self->viewport.x = peer->viewport.x + peer->peer_x;
  self->viewport.y = peer->viewport.y + peer->peer_y;
  self->cut = peer->cut;
  return TRUE;
}

void
td__graph_view_fit_content (TdGraphView *self)
{
  if (follow_peer (self))
    return;
  TdViewport *v = &self->viewport;
  double x = v->x, y = v->y;
  gboolean was_cut = self->cut;
  TdSceneRect box = { 0 };
  td_viewport_fit (v);
  self->cut = !self->fit_whole && v->scale < LEGIBLE_SCALE && v->width > 1;
  if (!self->cut)
    {
      self->peer_x = self->peer_y = 0;
      return;
    }
  v->scale = LEGIBLE_SCALE;
  if (was_cut) /* stay, as far as the window and the picture allow */
    {
      box.x = x + v->width / v->scale / 2;
      box.y = y + v->height / v->scale / 2;
    }
  else
    {
      if (self->peer)
        td__graph_view_align (self, self->anchor, self->peer->anchor, self->beside,
                              self->peer->beside);
      find_anchor (self, &box);
    }
  td_viewport_fit_around (v, v->scale, box.x + box.width / 2, box.y + box.height / 2);
  if (find_anchor (self, &box))
    td_viewport_show (v, &box, FIT_MARGIN);
}

void
td__graph_view_keep_zoom (TdGraphView *self)
{
  if (self->viewport.width > 1 && self->layout)
    self->fitted = FALSE;
}

gboolean
td__graph_view_sees_all (TdGraphView *self)
{
  return self->fitted && !self->cut;
}

gboolean
td_graph_view_get_playhead (TdGraphView *self, TdSceneRect *box)
{
  return self->session
         && td_graph_view_get_event (self, td_session_get_moment (self->session).event, box);
}

gboolean
td_graph_view_get_event (TdGraphView *self, gint event, TdSceneRect *box)
{
  TdViewport *v = &self->viewport;
  if (!td__graph_view_find_event (self, event, box))
    return FALSE;
  double scale = v->scale * self->text_scale;
  *box = (TdSceneRect){ (box->x - v->x) * scale, (box->y - v->y) * scale, box->width * scale,
                        box->height * scale };
  return TRUE;
}
