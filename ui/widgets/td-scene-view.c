/* The scene widget: makes lazily, paints through one Cairo node, hits through the scene.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-scene-view.h"

#include "widgets/td-draw-later.h"
#include "widgets/td-text-scale.h"

#define HIT_SLACK 12.0

struct _TdSceneView
{
  GtkWidget parent;
  TdSceneMaker maker;
  gpointer data;
  TdScene *scene;
  gboolean valid;
  int width, height;      /* of the scene: of the widget, in the unit of its text */
  double scale;           /* pixels of the widget for one of the scene */
  double pointer_x;       /* where it was last, in pixels of the widget */
  gboolean spanning;      /* the pointer is drawn with Shift, */
  double span[2];         /* from here to here, in pixels of the widget */
  GskRenderNode *painted; /* the scene, drawn once; NULL: not yet */
  guint64 hover;          /* key that is ringed over it; 0: none */
  gint hover_event;       /* on an axis of events; -1: none */
};

enum
{
  PRESSED,
  DRAGGED,
  HOVERED,
  MOVED,
  WALKED,
  OPENED,
  SPANNED,
  SCROLLED,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdSceneView, td_scene_view, GTK_TYPE_WIDGET)

const TdTheme *
td_scene_view_get_theme (void)
{
  AdwStyleManager *style = adw_style_manager_get_default ();
  if (adw_style_manager_get_high_contrast (style))
    return td_theme_get ("high-contrast");
  return td_theme_get (adw_style_manager_get_dark (style) ? "dark" : "light");
}

TdScene *
td_scene_view_get_scene (TdSceneView *self)
{
  int width = (int)(gtk_widget_get_width (GTK_WIDGET (self)) / self->scale);
  int height = (int)(gtk_widget_get_height (GTK_WIDGET (self)) / self->scale);
  if (self->valid && width == self->width && height == self->height)
    return self->scene;
  g_clear_pointer (&self->scene, td_scene_unref);
  g_clear_pointer (&self->painted, gsk_render_node_unref);
  self->valid = TRUE;
  self->width = width;
  self->height = height;
  if (width > 1 && height > 1)
    self->scene = self->maker (self->data, width, height);
  return self->scene;
}

void
td_scene_view_invalidate (TdSceneView *self)
{
  self->valid = FALSE;
  gtk_widget_queue_draw (GTK_WIDGET (self));
}

/* A node of Cairo's as large as the widget; what is drawn is in the scene's unit. */
static cairo_t *
begin_paint (TdSceneView *self, GtkSnapshot *snapshot)
{
  GtkWidget *widget = GTK_WIDGET (self);
  graphene_rect_t bounds = GRAPHENE_RECT_INIT (0, 0, (float)gtk_widget_get_width (widget),
                                               (float)gtk_widget_get_height (widget));
  cairo_t *cr = gtk_snapshot_append_cairo (snapshot, &bounds);
  cairo_scale (cr, self->scale, self->scale);
  return cr;
}

static GskRenderNode *
paint_scene (TdSceneView *self, TdScene *scene)
{
  GtkSnapshot *once = gtk_snapshot_new ();
  cairo_t *cr = begin_paint (self, once);
  td_scene_paint (scene, cr, NULL, 1.0, td_scene_view_get_theme ());
  cairo_destroy (cr);
  return gtk_snapshot_free_to_node (once);
}

/* ---- what the pointer is on, here or elsewhere ---- */

/* Where the event is on the axis, unless something stands for it already. FALSE: nowhere. */
static gboolean
find_band (TdSceneView *self, TdScene *scene, TdSceneRect *band)
{
  const TdSceneAxes *axes = td_scene_axes (scene);
  double n = axes ? axes->x1 - axes->x0 : 0;
  TdSceneRect own;
  if (self->hover_event < 0 || n <= 0 || td_scene_find_key (scene, self->hover, &own)
      || self->hover_event < axes->x0 || self->hover_event >= axes->x1)
    return FALSE;
  double width = MAX (axes->box.width / n, 3);
  *band = (TdSceneRect){ axes->box.x + axes->box.width * (self->hover_event - axes->x0) / n,
                         axes->box.y, width, axes->box.height };
  return TRUE;
}

static void
paint_band (cairo_t *cr, const TdSceneRect *band)
{
  TdColor c = td_scene_view_get_theme ()->color[TD_ROLE_ACCENT];
  cairo_rectangle (cr, band->x, band->y, band->width, band->height);
  cairo_set_source_rgba (cr, c.r, c.g, c.b, 0.28);
  cairo_fill (cr);
}

static void
paint_hover (TdSceneView *self, TdScene *scene, GtkSnapshot *snapshot)
{
  const TdTheme *theme = td_scene_view_get_theme ();
  TdSceneRect band;
  gboolean has_band = find_band (self, scene, &band);
  if (!has_band && self->hover == 0)
    return;
  cairo_t *cr = begin_paint (self, snapshot);
  td_scene_paint_key (scene, cr, NULL, 1.0, theme, self->hover);
  if (has_band)
    paint_band (cr, &band);
  cairo_destroy (cr);
}

/* What is being drawn with Shift, within the axis. */
static void
paint_span (TdSceneView *self, TdScene *scene, GtkSnapshot *snapshot)
{
  const TdSceneAxes *axes = td_scene_axes (scene);
  if (!self->spanning || !axes)
    return;
  const TdSceneRect *box = &axes->box;
  double from = MIN (self->span[0], self->span[1]) / self->scale;
  double to = MAX (self->span[0], self->span[1]) / self->scale;
  from = CLAMP (from, box->x, box->x + box->width);
  to = CLAMP (to, box->x, box->x + box->width);
  cairo_t *cr = begin_paint (self, snapshot);
  paint_band (cr, &(TdSceneRect){ from, box->y, to - from, box->height });
  cairo_destroy (cr);
}

guint
td_scene_view_count_hovered (TdSceneView *self)
{
  TdScene *scene = td_scene_view_get_scene (self);
  g_autoptr (GArray) boxes = g_array_new (FALSE, FALSE, sizeof (TdSceneRect));
  TdSceneRect band;
  if (!scene)
    return 0;
  return td_scene_list_boxes (scene, self->hover, boxes)
         + (find_band (self, scene, &band) ? 1 : 0);
}

void
td_scene_view_set_hover (TdSceneView *self, guint64 key, gint event)
{
  if (self->hover == key && self->hover_event == event)
    return;
  guint before = self->valid && self->scene ? td_scene_view_count_hovered (self) : 1;
  self->hover = key;
  self->hover_event = event;
  if (!gtk_widget_get_mapped (GTK_WIDGET (self)))
    return;
  if (before > 0 || td_scene_view_count_hovered (self) > 0)
    gtk_widget_queue_draw (GTK_WIDGET (self));
}

static void
make_first (GtkWidget *widget)
{
  td_scene_view_get_scene (TD_SCENE_VIEW (widget));
}

static void
td_scene_view_snapshot (GtkWidget *widget, GtkSnapshot *snapshot)
{
  TdSceneView *self = TD_SCENE_VIEW (widget);
  if (!self->valid && !self->scene)
    {
      td_draw_later (widget, make_first);
      return;
    }
  TdScene *scene = td_scene_view_get_scene (self);
  if (!scene)
    return;
  if (!self->painted)
    self->painted = paint_scene (self, scene);
  if (self->painted)
    gtk_snapshot_append_node (snapshot, self->painted);
  paint_hover (self, scene, snapshot);
  paint_span (self, scene, snapshot);
}

/* The signals have places of the scene. */
static void
emit_at (TdSceneView *self, guint signal, double x, double y)
{
  TdScene *scene = td_scene_view_get_scene (self);
  TdSceneHit hit;
  x /= self->scale;
  y /= self->scale;
  gboolean found = scene && td_scene_hit (scene, x, y, HIT_SLACK, &hit);
  g_signal_emit (self, signals[signal], 0, found ? &hit : NULL, x, y);
}

static void
motion (GtkEventControllerMotion *controller, double x, double y, TdSceneView *self)
{
  self->pointer_x = x;
  emit_at (self, HOVERED, x, y);
}

static void
left (GtkEventControllerMotion *controller, TdSceneView *self)
{
  g_signal_emit (self, signals[HOVERED], 0, NULL, -1.0, -1.0);
}

static void
drag_begin (GtkGestureDrag *gesture, double x, double y, TdSceneView *self)
{
  GdkModifierType state
      = gtk_event_controller_get_current_event_state (GTK_EVENT_CONTROLLER (gesture));
  gtk_widget_grab_focus (GTK_WIDGET (self));
  self->spanning = (state & GDK_SHIFT_MASK)
                   && g_signal_has_handler_pending (self, signals[SPANNED], 0, TRUE);
  self->span[0] = self->span[1] = x;
  if (!self->spanning)
    emit_at (self, PRESSED, x, y);
}

static void
drag_update (GtkGestureDrag *gesture, double dx, double dy, TdSceneView *self)
{
  double x, y;
  gtk_gesture_drag_get_start_point (gesture, &x, &y);
  if (self->spanning)
    {
      self->span[1] = x + dx;
      gtk_widget_queue_draw (GTK_WIDGET (self));
    }
  else
    emit_at (self, DRAGGED, x + dx, y + dy);
}

static void
stop_span (TdSceneView *self)
{
  self->spanning = FALSE;
  gtk_widget_queue_draw (GTK_WIDGET (self));
}

/* What listens to it makes much anew: it is told once, and not of a press alone. */
static void
drag_end (GtkGestureDrag *gesture, double dx, double dy, TdSceneView *self)
{
  if (!self->spanning)
    return;
  stop_span (self);
  if (self->span[0] != self->span[1])
    g_signal_emit (self, signals[SPANNED], 0, self->span[0] / self->scale,
                   self->span[1] / self->scale);
}

static void
clicked (GtkGestureClick *gesture, int n_press, double x, double y, TdSceneView *self)
{
  if (n_press == 2)
    emit_at (self, OPENED, x, y);
}

static gboolean
scrolled (GtkEventControllerScroll *controller, double dx, double dy, TdSceneView *self)
{
  gboolean taken = FALSE;
  if (dy != 0)
    g_signal_emit (self, signals[SCROLLED], 0, self->pointer_x / self->scale, dy, &taken);
  return taken;
}

#define PAGE_ROWS 8

/* Ways come first: where a picture knows them its rows are not asked. */
static gboolean
walk (TdSceneView *self, guint keyval)
{
  static const struct
  {
    guint keyval, keypad;
    TdSceneWay way;
  } ways[] = { { GDK_KEY_Left, GDK_KEY_KP_Left, TD_SCENE_LEFT },
               { GDK_KEY_Right, GDK_KEY_KP_Right, TD_SCENE_RIGHT },
               { GDK_KEY_Up, GDK_KEY_KP_Up, TD_SCENE_UP },
               { GDK_KEY_Down, GDK_KEY_KP_Down, TD_SCENE_DOWN },
               { GDK_KEY_Home, GDK_KEY_KP_Home, TD_SCENE_FIRST },
               { GDK_KEY_End, GDK_KEY_KP_End, TD_SCENE_LAST },
               { GDK_KEY_Return, GDK_KEY_KP_Enter, TD_SCENE_IN },
               { GDK_KEY_BackSpace, GDK_KEY_BackSpace, TD_SCENE_OUT },
               { GDK_KEY_plus, GDK_KEY_KP_Add, TD_SCENE_LARGER },
               { GDK_KEY_minus, GDK_KEY_KP_Subtract, TD_SCENE_SMALLER } };
  gboolean taken = FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (ways); i++)
    if (keyval == ways[i].keyval || keyval == ways[i].keypad)
      g_signal_emit (self, signals[WALKED], 0, ways[i].way, &taken);
  return taken;
}

static gboolean
key_pressed (GtkEventControllerKey *keys, guint keyval, guint code, GdkModifierType modifiers,
             TdSceneView *self)
{
  static const struct
  {
    guint keyval, keypad;
    int rows;
  } moves[] = { { GDK_KEY_Up, GDK_KEY_KP_Up, -1 },
                { GDK_KEY_Down, GDK_KEY_KP_Down, 1 },
                { GDK_KEY_Page_Up, GDK_KEY_KP_Page_Up, -PAGE_ROWS },
                { GDK_KEY_Page_Down, GDK_KEY_KP_Page_Down, PAGE_ROWS },
                { GDK_KEY_Return, GDK_KEY_KP_Enter, 0 } };
  gboolean taken = FALSE;
  gboolean shift = keyval != GDK_KEY_plus && (modifiers & GDK_SHIFT_MASK); /* it may need it */
  if (shift || (modifiers & (GDK_CONTROL_MASK | GDK_ALT_MASK)))
    return FALSE;
  if (walk (self, keyval))
    return TRUE;
  for (guint i = 0; i < G_N_ELEMENTS (moves); i++)
    if (keyval == moves[i].keyval || keyval == moves[i].keypad)
      g_signal_emit (self, signals[MOVED], 0, moves[i].rows, &taken);
  return taken;
}

static gboolean
query_tooltip (GtkWidget *widget, int x, int y, gboolean keyboard, GtkTooltip *tooltip,
               gpointer data)
{
  TdScene *scene = td_scene_view_get_scene (TD_SCENE_VIEW (widget));
  TdSceneHit hit;
  double scale = TD_SCENE_VIEW (widget)->scale;
  if (keyboard || !scene || !td_scene_hit (scene, x / scale, y / scale, HIT_SLACK, &hit)
      || !hit.tooltip)
    return FALSE;
  gtk_tooltip_set_text (tooltip, hit.tooltip);
  return TRUE;
}

static void
style_changed (TdSceneView *self)
{
  self->scale = td_text_scale_get (GTK_WIDGET (self));
  td_scene_view_invalidate (self);
}

static void
td_scene_view_finalize (GObject *object)
{
  g_clear_pointer (&TD_SCENE_VIEW (object)->scene, td_scene_unref);
  g_clear_pointer (&TD_SCENE_VIEW (object)->painted, gsk_render_node_unref);
  G_OBJECT_CLASS (td_scene_view_parent_class)->finalize (object);
}

static void
td_scene_view_class_init (TdSceneViewClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);
  widget_class->snapshot = td_scene_view_snapshot;
  G_OBJECT_CLASS (klass)->finalize = td_scene_view_finalize;
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_IMG);
  signals[PRESSED]
      = g_signal_new ("pressed", TD_TYPE_SCENE_VIEW, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                      G_TYPE_NONE, 3, G_TYPE_POINTER, G_TYPE_DOUBLE, G_TYPE_DOUBLE);
  signals[DRAGGED]
      = g_signal_new ("dragged", TD_TYPE_SCENE_VIEW, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                      G_TYPE_NONE, 3, G_TYPE_POINTER, G_TYPE_DOUBLE, G_TYPE_DOUBLE);
  signals[HOVERED]
      = g_signal_new ("hovered", TD_TYPE_SCENE_VIEW, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                      G_TYPE_NONE, 3, G_TYPE_POINTER, G_TYPE_DOUBLE, G_TYPE_DOUBLE);
  signals[MOVED] = g_signal_new ("moved", TD_TYPE_SCENE_VIEW, G_SIGNAL_RUN_LAST, 0,
                                 g_signal_accumulator_true_handled, NULL, NULL, G_TYPE_BOOLEAN,
                                 1, G_TYPE_INT);
  signals[WALKED] = g_signal_new ("walked", TD_TYPE_SCENE_VIEW, G_SIGNAL_RUN_LAST, 0,
                                  g_signal_accumulator_true_handled, NULL, NULL, G_TYPE_BOOLEAN,
                                  1, G_TYPE_INT);
  signals[SPANNED] = g_signal_new ("spanned", TD_TYPE_SCENE_VIEW, G_SIGNAL_RUN_LAST, 0, NULL,
                                   NULL, NULL, G_TYPE_NONE, 2, G_TYPE_DOUBLE, G_TYPE_DOUBLE);
  signals[SCROLLED] = g_signal_new ("scrolled", TD_TYPE_SCENE_VIEW, G_SIGNAL_RUN_LAST, 0,
                                    g_signal_accumulator_true_handled, NULL, NULL,
                                    G_TYPE_BOOLEAN, 2, G_TYPE_DOUBLE, G_TYPE_DOUBLE);
  signals[OPENED]
      = g_signal_new ("opened", TD_TYPE_SCENE_VIEW, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                      G_TYPE_NONE, 3, G_TYPE_POINTER, G_TYPE_DOUBLE, G_TYPE_DOUBLE);
}

static void
td_scene_view_init (TdSceneView *self)
{
  self->hover_event = -1;
  self->scale = td_text_scale_get (GTK_WIDGET (self));
  td_text_scale_watch (self, G_CALLBACK (style_changed));
  gtk_widget_set_focusable (GTK_WIDGET (self), TRUE);
  gtk_widget_set_has_tooltip (GTK_WIDGET (self), TRUE);
  gtk_widget_set_overflow (GTK_WIDGET (self), GTK_OVERFLOW_HIDDEN);
  g_signal_connect (self, "query-tooltip", G_CALLBACK (query_tooltip), NULL);
  GtkGesture *drag = gtk_gesture_drag_new ();
  g_signal_connect (drag, "drag-begin", G_CALLBACK (drag_begin), self);
  g_signal_connect (drag, "drag-update", G_CALLBACK (drag_update), self);
  g_signal_connect (drag, "drag-end", G_CALLBACK (drag_end), self);
  g_signal_connect_swapped (drag, "cancel", G_CALLBACK (stop_span), self);
  gtk_widget_add_controller (GTK_WIDGET (self), GTK_EVENT_CONTROLLER (drag));
  GtkGesture *click = gtk_gesture_click_new ();
  g_signal_connect (click, "pressed", G_CALLBACK (clicked), self);
  gtk_widget_add_controller (GTK_WIDGET (self), GTK_EVENT_CONTROLLER (click));
  GtkEventController *pointer = gtk_event_controller_motion_new ();
  g_signal_connect (pointer, "enter", G_CALLBACK (motion), self);
  g_signal_connect (pointer, "motion", G_CALLBACK (motion), self);
  g_signal_connect (pointer, "leave", G_CALLBACK (left), self);
  gtk_widget_add_controller (GTK_WIDGET (self), pointer);
  GtkEventController *wheel
      = gtk_event_controller_scroll_new (GTK_EVENT_CONTROLLER_SCROLL_VERTICAL);
  g_signal_connect (wheel, "scroll", G_CALLBACK (scrolled), self);
  gtk_widget_add_controller (GTK_WIDGET (self), wheel);
  GtkEventController *keys = gtk_event_controller_key_new ();
  g_signal_connect (keys, "key-pressed", G_CALLBACK (key_pressed), self);
  gtk_widget_add_controller (GTK_WIDGET (self), keys);
  AdwStyleManager *style = adw_style_manager_get_default ();
  g_signal_connect_object (style, "notify::dark", G_CALLBACK (style_changed), self,
                           G_CONNECT_SWAPPED);
  g_signal_connect_object (style, "notify::high-contrast", G_CALLBACK (style_changed), self,
                           G_CONNECT_SWAPPED);
}

GtkWidget *
td_scene_view_new (const char *label, TdSceneMaker maker, gpointer data)
{
  TdSceneView *self = g_object_new (TD_TYPE_SCENE_VIEW, NULL);
  self->maker = maker;
  self->data = data;
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL, label,
                                  -1);
  return GTK_WIDGET (self);
}
