/* Pointer, wheel and keys of the canvas: pan, zoom, select, fold, walk along edges.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-graph-view-private.h"

#include <math.h>

#include "widgets/td-panel-view.h"

#define SHOW_MARGIN 24.0
#define HIT_SLACK 6.0
#define KEY_PAN 60.0

/* From pixels of the widget to those of the viewport, which grow with the user's text. */
static void
to_viewport (TdGraphView *self, double *x, double *y)
{
  *x /= self->text_scale;
  *y /= self->text_scale;
}

void
td_graph_view_click (TdGraphView *self, double x, double y, gboolean toggle)
{
  TdScene *scene = td_graph_view_get_scene (self);
  TdSceneHit hit;
  double cx, cy;
  td_viewport_to_content (&self->viewport, x, y, &cx, &cy);
  if (!scene || !self->session)
    return;
  if (!td_scene_hit (scene, cx, cy, HIT_SLACK / self->viewport.scale, &hit))
    {
      td_session_select (self->session, 0);
      return;
    }
  gboolean is_layer = hit.tag == TD_TAG_GROUP || hit.tag == TD_TAG_GROUP_TOGGLE;
  if (is_layer && (toggle || hit.tag == TD_TAG_GROUP_TOGGLE))
    td_graph_view_set_expanded (self, hit.key, !td_graph_view_is_expanded (self, hit.key));
  else if (toggle && hit.tag == TD_TAG_NODE)
    td_session_set_moment (self->session, td_session_get_moment (self->session).iteration,
                           (gint)hit.data);
  else
    td_panel_view_follow (self->session, &hit);
}

static void
pressed (GtkGestureClick *gesture, int n_press, double x, double y, TdGraphView *self)
{
  gtk_widget_grab_focus (GTK_WIDGET (self));
  TdSceneRect box;
  to_viewport (self, &x, &y);
  gboolean on_map = td__graph_view_minimap_box (self, &box) && x >= box.x
                    && x < box.x + box.width && y >= box.y && y < box.y + box.height;
  if (!on_map)
    td_graph_view_click (self, x, y, n_press == 2);
}

static void
drag_begin (GtkGestureDrag *gesture, double x, double y, TdGraphView *self)
{
  TdSceneRect box;
  to_viewport (self, &x, &y);
  self->pan_x = self->pan_y = 0;
  self->on_minimap = td__graph_view_minimap_box (self, &box) && x >= box.x
                     && x < box.x + box.width && y >= box.y && y < box.y + box.height;
}

static void
pan_to_minimap (TdGraphView *self, double x, double y)
{
  TdSceneRect box;
  if (!td__graph_view_minimap_box (self, &box))
    return;
  TdScenePoint at = td_graph_minimap_point (self->layout, x - box.x, y - box.y);
  TdSceneRect visible = td_viewport_visible (&self->viewport);
  self->fitted = FALSE;
  td_viewport_pan (&self->viewport,
                   (visible.x + visible.width / 2 - at.x) * self->viewport.scale,
                   (visible.y + visible.height / 2 - at.y) * self->viewport.scale);
  td__graph_view_moved (self);
}

static void
drag_update (GtkGestureDrag *gesture, double dx, double dy, TdGraphView *self)
{
  double x, y;
  gtk_gesture_drag_get_start_point (gesture, &x, &y);
  to_viewport (self, &x, &y);
  to_viewport (self, &dx, &dy);
  if (self->on_minimap)
    {
      pan_to_minimap (self, x + dx, y + dy);
      return;
    }
  if (self->fitted && hypot (dx, dy) < 4)
    return;
  self->fitted = FALSE;
  td_viewport_pan (&self->viewport, dx - self->pan_x, dy - self->pan_y);
  self->pan_x = dx;
  self->pan_y = dy;
  td__graph_view_moved (self);
}

static gboolean
scrolled (GtkEventControllerScroll *controller, double dx, double dy, TdGraphView *self)
{
  double x = self->viewport.width / 2, y = self->viewport.height / 2;
  GdkEvent *event = gtk_event_controller_get_current_event (GTK_EVENT_CONTROLLER (controller));
  GtkNative *native = gtk_widget_get_native (GTK_WIDGET (self));
  double sx, sy, nx, ny;
  if (event && native && gdk_event_get_position (event, &sx, &sy))
    {
      gtk_native_get_surface_transform (native, &nx, &ny);
      gtk_widget_translate_coordinates (GTK_WIDGET (native), GTK_WIDGET (self), sx - nx,
                                        sy - ny, &x, &y);
      to_viewport (self, &x, &y);
    }
  td__graph_view_zoom_at (self, pow (1.15, -dy), x, y);
  return TRUE;
}

static void
moved (GtkEventControllerMotion *controller, double x, double y, TdGraphView *self)
{
  self->last_motion = g_get_monotonic_time ();
  to_viewport (self, &x, &y);
  td__graph_view_point (self, x, y);
}

static void
left (GtkEventControllerMotion *controller, TdGraphView *self)
{
  td__graph_view_point (self, -1, -1);
}

static void
walk (TdGraphView *self, int dx, int dy)
{
  guint n;
  const guint64 *keys = td_session_get_selection (self->session, &n);
  gint node = n ? td_viz_view_find (self->layout->view, keys[0]) : -1;
  if (node < 0)
    node = td_viz_view_find_event (self->layout->view,
                                   td_session_get_moment (self->session).event);
  else
    node = td_layout_walk (self->layout, node, dx, dy);
  if (node < 0)
    return;
  guint64 key = self->layout->view->nodes[node].select_key;
  td_session_select (self->session, key);
  TdSceneRect box;
  TdScene *scene = td_graph_view_get_scene (self);
  if (scene && td_scene_find_key (scene, key, &box)
      && td_viewport_show (&self->viewport, &box, SHOW_MARGIN))
    {
      self->fitted = FALSE;
      td__graph_view_moved (self);
    }
}

static void
toggle_selected (TdGraphView *self)
{
  guint n;
  const guint64 *keys = td_session_get_selection (self->session, &n);
  if (!n || !self->graph)
    return;
  if (td_viz_graph_find_group (self->graph, keys[0]) >= 0)
    td_graph_view_set_expanded (self, keys[0], !td_graph_view_is_expanded (self, keys[0]));
  else
    td_session_set_moment (self->session, td_session_get_moment (self->session).iteration,
                           td_iteration_find (self->iteration, keys[0]));
}

static gboolean
key_pressed (GtkEventControllerKey *controller, guint keyval, guint keycode,
             GdkModifierType modifiers, TdGraphView *self)
{
  static const struct
  {
    guint key, keypad;
    int dx, dy;
  } arrows[] = { { GDK_KEY_Up, GDK_KEY_KP_Up, 0, -1 },
                 { GDK_KEY_Down, GDK_KEY_KP_Down, 0, 1 },
                 { GDK_KEY_Left, GDK_KEY_KP_Left, -1, 0 },
                 { GDK_KEY_Right, GDK_KEY_KP_Right, 1, 0 } };
  const GdkModifierType used
      = GDK_CONTROL_MASK | GDK_ALT_MASK | GDK_SUPER_MASK | GDK_SHIFT_MASK;
  if (!self->session || !self->layout || (modifiers & used & ~(guint)GDK_SHIFT_MASK))
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (arrows); i++)
    if (keyval == arrows[i].key || keyval == arrows[i].keypad)
      {
        if (modifiers & GDK_SHIFT_MASK)
          {
            self->fitted = FALSE;
            td_viewport_pan (&self->viewport, -KEY_PAN * arrows[i].dx, -KEY_PAN * arrows[i].dy);
            td__graph_view_moved (self);
          }
        else
          walk (self, arrows[i].dx, arrows[i].dy);
        return TRUE;
      }
  if (keyval == GDK_KEY_Return || keyval == GDK_KEY_KP_Enter)
    {
      toggle_selected (self);
      return TRUE;
    }
  return FALSE;
}

static gboolean
query_tooltip (GtkWidget *widget, int at_x, int at_y, gboolean keyboard, GtkTooltip *tooltip,
               gpointer data)
{
  TdGraphView *self = TD_GRAPH_VIEW (widget);
  TdScene *scene = td_graph_view_get_scene (self);
  TdSceneHit hit;
  double x = at_x, y = at_y, cx, cy;
  to_viewport (self, &x, &y);
  td_viewport_to_content (&self->viewport, x, y, &cx, &cy);
  if (keyboard || !scene || !td_scene_hit (scene, cx, cy, 0, &hit) || !hit.tooltip)
    return FALSE;
  gtk_tooltip_set_text (tooltip, hit.tooltip);
  return TRUE;
}

static void
add_controllers (TdGraphView *self)
{
  GtkWidget *widget = GTK_WIDGET (self);
  GtkGesture *click = gtk_gesture_click_new ();
  g_signal_connect (click, "pressed", G_CALLBACK (pressed), self);
  gtk_widget_add_controller (widget, GTK_EVENT_CONTROLLER (click));
  GtkGesture *drag = gtk_gesture_drag_new ();
  g_signal_connect (drag, "drag-begin", G_CALLBACK (drag_begin), self);
  g_signal_connect (drag, "drag-update", G_CALLBACK (drag_update), self);
  gtk_widget_add_controller (widget, GTK_EVENT_CONTROLLER (drag));
  GtkEventController *scroll
      = gtk_event_controller_scroll_new (GTK_EVENT_CONTROLLER_SCROLL_VERTICAL);
  g_signal_connect (scroll, "scroll", G_CALLBACK (scrolled), self);
  gtk_widget_add_controller (widget, scroll);
  GtkEventController *motion = gtk_event_controller_motion_new ();
  g_signal_connect (motion, "enter", G_CALLBACK (moved), self);
  g_signal_connect (motion, "motion", G_CALLBACK (moved), self);
  g_signal_connect (motion, "leave", G_CALLBACK (left), self);
  gtk_widget_add_controller (widget, motion);
  GtkEventController *key = gtk_event_controller_key_new ();
  g_signal_connect (key, "key-pressed", G_CALLBACK (key_pressed), self);
  gtk_widget_add_controller (widget, key);
  g_signal_connect (self, "query-tooltip", G_CALLBACK (query_tooltip), NULL);
}

GtkWidget *
td_graph_view_new (void)
{
  TdGraphView *self = g_object_new (TD_TYPE_GRAPH_VIEW, NULL);
  add_controllers (self);
  return GTK_WIDGET (self);
}
