/* The scene of the canvas, and how it is drawn with the minimap.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-graph-view-private.h"

#include <glib/gi18n-lib.h>

#include "schedule/td-statics-session.h"
#include "widgets/td-panel-view.h"
#include "widgets/td-scene-view.h"

#define MINIMAP_WIDTH 122.0
#define MINIMAP_HEIGHT 66.0
#define MINIMAP_INSET 12.0

/* What a scene is made for: moment, selection, marks. */
static TdPanelView
panel_of (TdGraphView *self)
{
  TdPanelView view = td_panel_view_new (self->session, 0, 0);
  /* everything on show is still to come */
  view.nothing_ran = self->iteration && td_iteration_get_n_run (self->iteration) == 0;
  view.whole = self->whole;
  view.marks = self->marks;
  view.n_marks = self->n_marks;
  TdStatics *statics = td_session_get_statics (self->session);
  if (statics)
    {
      view.steps = statics->steps;
      view.n_steps = td_iteration_get_n_events (statics->it);
    }
  return view;
}

TdScene *
td_graph_view_get_scene (TdGraphView *self)
{
  if (self->scene_valid)
    return self->scene;
  g_clear_pointer (&self->scene, td_scene_unref);
  self->scene_valid = TRUE;
  if (self->session && self->layout)
    {
      TdPanelView view = panel_of (self);
      self->scene = td_graph_scene_new (self->layout, &view, self->heat);
    }
  else if (self->session && self->iteration) /* a memory snapshot: nothing is laid out */
    {
      TdPanelView view = { .width = 520, .height = 120, .event = -1 };
      self->scene = td_panel_message (&view, _ ("No operations in a memory snapshot"),
                                      _ ("Over Time and Blocks show what it has."));
    }
  return self->scene;
}

void
td__graph_view_get_size (TdGraphView *self, double *width, double *height)
{
  *width = *height = 0;
  if (self->session && self->layout)
    {
      td_graph_scene_get_size (self->layout, width, height);
      return;
    }
  TdScene *scene = td_graph_view_get_scene (self);
  if (!scene)
    return;
  *width = td_scene_width (scene);
  *height = td_scene_height (scene);
}

gboolean
td__graph_view_minimap_box (TdGraphView *self, TdSceneRect *box)
{
  TdViewport *v = &self->viewport;
  gboolean all_seen = v->content_width * v->scale <= v->width + 1
                      && v->content_height * v->scale <= v->height + 1;
  *box = (TdSceneRect){ v->width - MINIMAP_WIDTH - MINIMAP_INSET,
                        v->height - MINIMAP_HEIGHT - MINIMAP_INSET, MINIMAP_WIDTH,
                        MINIMAP_HEIGHT };
  return self->layout && !all_seen && v->width > 3 * MINIMAP_WIDTH;
}

static void
draw_minimap (TdGraphView *self, cairo_t *cr)
{
  TdSceneRect box;
  if (!td__graph_view_minimap_box (self, &box))
    return;
  TdPanelView view = panel_of (self);
  TdSceneRect visible = td_viewport_visible (&self->viewport);
  TdScene *scene = td_graph_minimap_new (self->layout, &view, &visible);
  cairo_save (cr);
  cairo_translate (cr, box.x, box.y);
  td_scene_paint (scene, cr, NULL, 1.0, td_scene_view_get_theme ());
  cairo_restore (cr);
  td_scene_unref (scene);
}

void
td__graph_view_forget_painted (TdGraphView *self)
{
  g_clear_pointer (&self->painted, gsk_render_node_unref);
  g_clear_pointer (&self->painted_scene, td_scene_unref);
}

cairo_t *
td__graph_view_begin_paint (TdGraphView *self, GtkSnapshot *snapshot)
{
  graphene_rect_t bounds;

  td__graph_view_get_bounds (self, &bounds);
  cairo_t *cr = gtk_snapshot_append_cairo (snapshot, &bounds);
  cairo_scale (cr, self->text_scale, self->text_scale);
  return cr;
}

void
td__graph_view_get_bounds (TdGraphView *self, graphene_rect_t *bounds)
{
  graphene_rect_init (bounds, 0, 0, (float)gtk_widget_get_width (GTK_WIDGET (self)),
                      (float)gtk_widget_get_height (GTK_WIDGET (self)));
}

void
td__graph_view_paint (TdGraphView *self, TdScene *scene)
{
  TdViewport *v = &self->viewport;
  TdSceneRect visible = td_viewport_visible (v);
  GtkSnapshot *once = gtk_snapshot_new ();
  cairo_t *cr = td__graph_view_begin_paint (self, once);
  td__graph_view_forget_painted (self);
  cairo_save (cr);
  td_scene_paint (scene, cr, &visible, v->scale, td_scene_view_get_theme ());
  cairo_restore (cr);
  draw_minimap (self, cr);
  cairo_destroy (cr);
  self->painted = gtk_snapshot_free_to_node (once);
  self->painted_scene = td_scene_ref (scene);
  self->painted_at = *v;
}
