/* At which zoom a picture opens: all of it where names can be read then, else the part around
 * the playhead, with the minimap for the rest. SPDX-License-Identifier: MIT */
#include "widgets/td-graph-view-private.h"

#define LEGIBLE_SCALE 0.72 /* names of nodes are 9 pixels high, not less */
#define FIT_MARGIN 24.0

gboolean
td__graph_view_find_playhead (TdGraphView *self, TdSceneRect *box)
{
  TdScene *scene = self->session && self->layout ? td_graph_view_get_scene (self) : NULL;
  if (!scene)
    return FALSE;
  TdLayout *layout = self->layout;
  gint node
      = td_viz_view_find_event (layout->view, td_session_get_moment (self->session).event);
  if (node < 0)
    return FALSE;
  /* by place, not by key: a layer has the same in all lanes */
  *box = (TdSceneRect){ layout->nodes[node].x - layout->bounds.x
                            + (td_scene_width (scene) - layout->bounds.width) / 2,
                        layout->nodes[node].y - layout->bounds.y
                            + (td_scene_height (scene) - layout->bounds.height) / 2,
                        layout->nodes[node].width, layout->nodes[node].height };
  return TRUE;
}

void
td__graph_view_fit_content (TdGraphView *self)
{
  TdViewport *v = &self->viewport;
  double x = v->x, y = v->y;
  gboolean was_cut = self->cut;
  TdSceneRect box = { 0 };
  td_viewport_fit (v);
  self->cut = !self->fit_whole && !self->peer && v->scale < LEGIBLE_SCALE && v->width > 1;
  if (!self->cut)
    return;
  if (was_cut) /* stay, as far as the window and the picture allow */
    {
      box.x = x + v->width / LEGIBLE_SCALE / 2;
      box.y = y + v->height / LEGIBLE_SCALE / 2;
    }
  else
    td__graph_view_find_playhead (self, &box);
  td_viewport_fit_around (v, LEGIBLE_SCALE, box.x + box.width / 2, box.y + box.height / 2);
  if (td__graph_view_find_playhead (self, &box))
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
  TdViewport *v = &self->viewport;
  if (!td__graph_view_find_playhead (self, box))
    return FALSE;
  double scale = v->scale * self->text_scale;
  *box = (TdSceneRect){ (box->x - v->x) * scale, (box->y - v->y) * scale, box->width * scale,
                        box->height * scale };
  return TRUE;
}
