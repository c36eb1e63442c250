/* The table of numbers: scrolls by itself, with the places of rows and columns kept in sight.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-number-grid.h"

#include <math.h>

#include "widgets/td-scene-view.h"

#define ROW_HEIGHT 20
#define COLUMN_WIDTH 72
#define PAD 6

struct _TdNumberGrid
{
  GtkWidget parent;
  TdTensor *tensor;
  gint64 rows, cols, row, col; /* of the table; the frame */
  int side;                    /* width of the places of rows */
  GtkAdjustment *across, *down;
  GtkScrollablePolicy across_policy, down_policy;
};

enum
{
  PROP_0,
  PROP_HADJUSTMENT,
  PROP_VADJUSTMENT,
  PROP_HSCROLL_POLICY,
  PROP_VSCROLL_POLICY
};

static guint cell_changed;

G_DEFINE_FINAL_TYPE_WITH_CODE (TdNumberGrid, td_number_grid, GTK_TYPE_WIDGET,
                               G_IMPLEMENT_INTERFACE (GTK_TYPE_SCROLLABLE, NULL))

/* ---- scrolling ---- */

static void
configure (GtkAdjustment *adjustment, double page, double all)
{
  if (!adjustment)
    return;
  double value = gtk_adjustment_get_value (adjustment);
  gtk_adjustment_configure (adjustment, CLAMP (value, 0, MAX (all - page, 0)), 0,
                            MAX (all, page), ROW_HEIGHT, MAX (page - ROW_HEIGHT, ROW_HEIGHT),
                            page);
}

static double
value_of (GtkAdjustment *adjustment)
{
  return adjustment ? gtk_adjustment_get_value (adjustment) : 0;
}

static void
update_scrolling (TdNumberGrid *self)
{
  int width = gtk_widget_get_width (GTK_WIDGET (self)) - self->side;
  int height = gtk_widget_get_height (GTK_WIDGET (self)) - ROW_HEIGHT;
  configure (self->across, MAX (width, 1), (double)self->cols * COLUMN_WIDTH);
  configure (self->down, MAX (height, 1), (double)self->rows * ROW_HEIGHT);
}

static void
set_adjustment (TdNumberGrid *self, GtkAdjustment **at, GtkAdjustment *adjustment)
{
  if (*at)
    g_signal_handlers_disconnect_by_data (*at, self);
  g_set_object (at, adjustment);
  if (adjustment)
    g_signal_connect_swapped (adjustment, "value-changed", G_CALLBACK (gtk_widget_queue_draw),
                              self);
  update_scrolling (self);
}

/* Scroll by as little as brings [from, from + size) into sight. */
static void
reveal (GtkAdjustment *adjustment, double from, double size)
{
  if (adjustment)
    gtk_adjustment_clamp_page (adjustment, from, from + size);
}

/* ---- what is said ---- */

static PangoLayout *
new_layout (TdNumberGrid *self, const char *text, int width)
{
  PangoLayout *layout = gtk_widget_create_pango_layout (GTK_WIDGET (self), text);
  if (width > 0)
    pango_layout_set_width (layout, width * PANGO_SCALE);
  pango_layout_set_ellipsize (layout, PANGO_ELLIPSIZE_END);
  pango_layout_set_alignment (layout, PANGO_ALIGN_RIGHT);
  return layout;
}

static void
tell (TdNumberGrid *self)
{
  guint64 element;
  g_autofree char *said = td_number_grid_get_element (self, &element)
                              ? td_tensor_dup_read_out (self->tensor, element)
                              : g_strdup ("no values");
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION,
                                  said, -1);
  g_signal_emit (self, cell_changed, 0);
}

/* As wide as the place of the last row. */
static int
measure_side (TdNumberGrid *self)
{
  if (!self->tensor || self->rows == 0)
    return 0;
  int first, last;
  for (int i = 0; i < 2; i++)
    {
      g_autofree char *label
          = td_tensor_dup_row_label (self->tensor, i == 0 ? 0 : self->rows - 1);
      g_autoptr (PangoLayout) layout = new_layout (self, label, -1);
      pango_layout_get_pixel_size (layout, i == 0 ? &first : &last, NULL);
    }
  return MAX (first, last) > 0 ? MAX (first, last) + 2 * PAD : 0;
}

gboolean
td_number_grid_get_element (TdNumberGrid *self, guint64 *element)
{
  if (!self->tensor || self->row < 0 || self->row >= self->rows || self->col < 0
      || self->col >= self->cols)
    return FALSE;
  *element = td_tensor_get_element (self->tensor, self->row, self->col);
  return TRUE;
}

void
td_number_grid_go_to (TdNumberGrid *self, gint64 row, gint64 col)
{
  self->row = CLAMP (row, 0, MAX (self->rows - 1, 0));
  self->col = CLAMP (col, 0, MAX (self->cols - 1, 0));
  reveal (self->down, (double)self->row * ROW_HEIGHT, ROW_HEIGHT);
  reveal (self->across, (double)self->col * COLUMN_WIDTH, COLUMN_WIDTH);
  gtk_widget_queue_draw (GTK_WIDGET (self));
  tell (self);
}

void
td_number_grid_set_tensor (TdNumberGrid *self, TdTensor *tensor)
{
  gint64 rows = 0, cols = 0;
  if (tensor == self->tensor)
    return;
  if (tensor)
    td_tensor_get_table (tensor, &rows, &cols);
  g_clear_pointer (&self->tensor, td_tensor_free);
  self->tensor = tensor ? td_tensor_ref (tensor) : NULL;
  self->rows = rows;
  self->cols = cols;
  self->row = CLAMP (self->row, 0, MAX (rows - 1, 0));
  self->col = CLAMP (self->col, 0, MAX (cols - 1, 0));
  self->side = measure_side (self);
  update_scrolling (self);
  gtk_widget_queue_draw (GTK_WIDGET (self));
  tell (self);
}

/* ---- drawing ---- */

typedef struct
{
  GtkSnapshot *snapshot;
  GdkRGBA text, dim, error, ground, line;
} Pen;

static GdkRGBA
faded (GdkRGBA color, double alpha)
{
  color.alpha *= (float)alpha;
  return color;
}

static GdkRGBA
themed (TdRole role)
{
  TdColor c = td_scene_view_get_theme ()->color[role];
  return (GdkRGBA){ (float)c.r, (float)c.g, (float)c.b, (float)c.a };
}

static void
write_text (TdNumberGrid *self, const Pen *pen, const char *text, double x, double y, int width,
            const GdkRGBA *color)
{
  g_autoptr (PangoLayout) layout = new_layout (self, text, width - 2 * PAD);
  int height;
  pango_layout_get_pixel_size (layout, NULL, &height);
  gtk_snapshot_save (pen->snapshot);
  gtk_snapshot_translate (
      pen->snapshot,
      &GRAPHENE_POINT_INIT ((float)(x + PAD), (float)(y + (ROW_HEIGHT - height) / 2.0)));
  gtk_snapshot_append_layout (pen->snapshot, layout, color);
  gtk_snapshot_restore (pen->snapshot);
}

/* What is not there is dim, what is no number stands out: by its words, not by colour alone. */
static void
draw_cell (TdNumberGrid *self, const Pen *pen, gint64 row, gint64 col, double x, double y)
{
  guint64 i = td_tensor_get_element (self->tensor, row, col);
  g_autofree char *text = td_tensor_dup_cell (self->tensor, i);
  gboolean there = self->tensor->values && i < self->tensor->n_values;
  const GdkRGBA *color = !there                               ? &pen->dim
                         : isfinite (self->tensor->values[i]) ? &pen->text
                                                              : &pen->error;
  write_text (self, pen, text, x, y, COLUMN_WIDTH, color);
}

static void
draw_frame (TdNumberGrid *self, const Pen *pen, double x, double y)
{
  float width = gtk_widget_has_focus (GTK_WIDGET (self)) ? 2 : 1;
  GdkRGBA accent = themed (TD_ROLE_ACCENT);
  GskRoundedRect frame;
  gsk_rounded_rect_init_from_rect (
      &frame, &GRAPHENE_RECT_INIT ((float)x, (float)y, COLUMN_WIDTH, ROW_HEIGHT), 3);
  gtk_snapshot_append_border (pen->snapshot, &frame, (float[4]){ width, width, width, width },
                              (GdkRGBA[4]){ accent, accent, accent, accent });
}

static void
draw_cells (TdNumberGrid *self, const Pen *pen, int width, int height)
{
  double dx = value_of (self->across), dy = value_of (self->down);
  gint64 row0 = (gint64)(dy / ROW_HEIGHT), col0 = (gint64)(dx / COLUMN_WIDTH);
  gint64 row1 = MIN (self->rows, row0 + height / ROW_HEIGHT + 2);
  gint64 col1 = MIN (self->cols, col0 + width / COLUMN_WIDTH + 2);
  for (gint64 row = row0; row < row1; row++)
    for (gint64 col = col0; col < col1; col++)
      {
        double x = self->side + (double)col * COLUMN_WIDTH - dx;
        double y = ROW_HEIGHT + (double)row * ROW_HEIGHT - dy;
        draw_cell (self, pen, row, col, x, y);
        if (row == self->row && col == self->col)
          draw_frame (self, pen, x, y);
      }
}

static void
draw_places (TdNumberGrid *self, const Pen *pen, int width, int height)
{
  double dx = value_of (self->across), dy = value_of (self->down);
  gint64 row0 = (gint64)(dy / ROW_HEIGHT), col0 = (gint64)(dx / COLUMN_WIDTH);
  gint64 row1 = MIN (self->rows, row0 + height / ROW_HEIGHT + 2);
  gint64 col1 = MIN (self->cols, col0 + width / COLUMN_WIDTH + 2);
  gtk_snapshot_push_clip (
      pen->snapshot,
      &GRAPHENE_RECT_INIT ((float)self->side, 0, (float)(width - self->side), ROW_HEIGHT));
  for (gint64 col = col0; col < col1; col++)
    {
      g_autofree char *label = td_tensor_dup_column_label (self->tensor, col);
      write_text (self, pen, label, self->side + (double)col * COLUMN_WIDTH - dx, 0,
                  COLUMN_WIDTH, &pen->dim);
    }
  gtk_snapshot_pop (pen->snapshot);
  gtk_snapshot_push_clip (pen->snapshot, &GRAPHENE_RECT_INIT (0, ROW_HEIGHT, (float)self->side,
                                                              (float)(height - ROW_HEIGHT)));
  for (gint64 row = row0; row < row1 && self->side > 0; row++)
    {
      g_autofree char *label = td_tensor_dup_row_label (self->tensor, row);
      write_text (self, pen, label, 0, ROW_HEIGHT + (double)row * ROW_HEIGHT - dy, self->side,
                  &pen->dim);
    }
  gtk_snapshot_pop (pen->snapshot);
  gtk_snapshot_append_color (pen->snapshot, &pen->line,
                             &GRAPHENE_RECT_INIT (0, ROW_HEIGHT - 1, (float)width, 1));
  if (self->side > 0)
    gtk_snapshot_append_color (
        pen->snapshot, &pen->line,
        &GRAPHENE_RECT_INIT ((float)(self->side - 1), 0, 1, (float)height));
}

static void
td_number_grid_snapshot (GtkWidget *widget, GtkSnapshot *snapshot)
{
  TdNumberGrid *self = TD_NUMBER_GRID (widget);
  int width = gtk_widget_get_width (widget), height = gtk_widget_get_height (widget);
  Pen pen = { .snapshot = snapshot, .error = themed (TD_ROLE_ERROR) };
  if (!self->tensor || self->rows == 0 || self->cols == 0)
    return;
  gtk_style_context_get_color (gtk_widget_get_style_context (widget), &pen.text);
  pen.dim = faded (pen.text, 0.72);
  pen.line = faded (pen.text, 0.2);
  gtk_snapshot_push_clip (snapshot, &GRAPHENE_RECT_INIT ((float)self->side, ROW_HEIGHT,
                                                         (float)MAX (width - self->side, 0),
                                                         (float)MAX (height - ROW_HEIGHT, 0)));
  draw_cells (self, &pen, width, height);
  gtk_snapshot_pop (snapshot);
  draw_places (self, &pen, width, height);
}

/* ---- keys and pointer ---- */

static gboolean
key_pressed (GtkEventControllerKey *keys, guint keyval, guint code, GdkModifierType modifiers,
             TdNumberGrid *self)
{
  gint64 page = MAX (gtk_widget_get_height (GTK_WIDGET (self)) / ROW_HEIGHT - 2, 1);
  gint64 rows = self->rows, cols = self->cols;
  gboolean far = (modifiers & GDK_CONTROL_MASK) != 0;
  const struct
  {
    guint keyval, keypad;
    gint64 row, col;
  } moves[] = { { GDK_KEY_Up, GDK_KEY_KP_Up, far ? -rows : -1, 0 },
                { GDK_KEY_Down, GDK_KEY_KP_Down, far ? rows : 1, 0 },
                { GDK_KEY_Left, GDK_KEY_KP_Left, 0, far ? -cols : -1 },
                { GDK_KEY_Right, GDK_KEY_KP_Right, 0, far ? cols : 1 },
                { GDK_KEY_Page_Up, GDK_KEY_KP_Page_Up, -page, 0 },
                { GDK_KEY_Page_Down, GDK_KEY_KP_Page_Down, page, 0 },
                { GDK_KEY_Home, GDK_KEY_KP_Home, far ? -rows : 0, -cols },
                { GDK_KEY_End, GDK_KEY_KP_End, far ? rows : 0, cols } };
  if (modifiers & (GDK_ALT_MASK | GDK_SHIFT_MASK))
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (moves); i++)
    if (keyval == moves[i].keyval || keyval == moves[i].keypad)
      {
        td_number_grid_go_to (self, self->row + moves[i].row, self->col + moves[i].col);
        return TRUE;
      }
  return FALSE;
}

static void
pressed (GtkGestureClick *gesture, int n, double x, double y, TdNumberGrid *self)
{
  gtk_widget_grab_focus (GTK_WIDGET (self));
  if (x < self->side || y < ROW_HEIGHT)
    return;
  td_number_grid_go_to (self, (gint64)((y - ROW_HEIGHT + value_of (self->down)) / ROW_HEIGHT),
                        (gint64)((x - self->side + value_of (self->across)) / COLUMN_WIDTH));
}

/* ---- the widget ---- */

static void
td_number_grid_size_allocate (GtkWidget *widget, int width, int height, int baseline)
{
  update_scrolling (TD_NUMBER_GRID (widget));
}

static void
td_number_grid_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  TdNumberGrid *self = TD_NUMBER_GRID (object);
  switch (id)
    {
    case PROP_HADJUSTMENT:
      set_adjustment (self, &self->across, g_value_get_object (value));
      break;
    case PROP_VADJUSTMENT:
      set_adjustment (self, &self->down, g_value_get_object (value));
      break;
    case PROP_HSCROLL_POLICY:
      self->across_policy = g_value_get_enum (value);
      break;
    case PROP_VSCROLL_POLICY:
      self->down_policy = g_value_get_enum (value);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
}

static void
td_number_grid_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  TdNumberGrid *self = TD_NUMBER_GRID (object);
  switch (id)
    {
    case PROP_HADJUSTMENT:
      g_value_set_object (value, self->across);
      break;
    case PROP_VADJUSTMENT:
      g_value_set_object (value, self->down);
      break;
    case PROP_HSCROLL_POLICY:
      g_value_set_enum (value, self->across_policy);
      break;
    case PROP_VSCROLL_POLICY:
      g_value_set_enum (value, self->down_policy);
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    }
}

static void
td_number_grid_dispose (GObject *object)
{
  TdNumberGrid *self = TD_NUMBER_GRID (object);
  set_adjustment (self, &self->across, NULL);
  set_adjustment (self, &self->down, NULL);
  g_clear_pointer (&self->tensor, td_tensor_free);
  G_OBJECT_CLASS (td_number_grid_parent_class)->dispose (object);
}

static void
td_number_grid_class_init (TdNumberGridClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  object_class->dispose = td_number_grid_dispose;
  object_class->set_property = td_number_grid_set_property;
  object_class->get_property = td_number_grid_get_property;
  widget_class->snapshot = td_number_grid_snapshot;
  widget_class->size_allocate = td_number_grid_size_allocate;
  g_object_class_override_property (object_class, PROP_HADJUSTMENT, "hadjustment");
  g_object_class_override_property (object_class, PROP_VADJUSTMENT, "vadjustment");
  g_object_class_override_property (object_class, PROP_HSCROLL_POLICY, "hscroll-policy");
  g_object_class_override_property (object_class, PROP_VSCROLL_POLICY, "vscroll-policy");
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_IMG);
  cell_changed = g_signal_new ("cell-changed", TD_TYPE_NUMBER_GRID, G_SIGNAL_RUN_LAST, 0, NULL,
                               NULL, NULL, G_TYPE_NONE, 0);
}

static void
td_number_grid_init (TdNumberGrid *self)
{
  gtk_widget_set_focusable (GTK_WIDGET (self), TRUE);
  gtk_widget_set_overflow (GTK_WIDGET (self), GTK_OVERFLOW_HIDDEN);
  gtk_widget_add_css_class (GTK_WIDGET (self), "td-numbers");
  gtk_widget_set_name (GTK_WIDGET (self), "numbers");
  GtkEventController *keys = gtk_event_controller_key_new ();
  g_signal_connect (keys, "key-pressed", G_CALLBACK (key_pressed), self);
  gtk_widget_add_controller (GTK_WIDGET (self), keys);
  GtkGesture *click = gtk_gesture_click_new ();
  g_signal_connect (click, "pressed", G_CALLBACK (pressed), self);
  gtk_widget_add_controller (GTK_WIDGET (self), GTK_EVENT_CONTROLLER (click));
  g_signal_connect_object (adw_style_manager_get_default (), "notify::dark",
                           G_CALLBACK (gtk_widget_queue_draw), self, G_CONNECT_SWAPPED);
}

GtkWidget *
td_number_grid_new (const char *label)
{
  TdNumberGrid *self = g_object_new (TD_TYPE_NUMBER_GRID, NULL);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL, label,
                                  -1);
  return GTK_WIDGET (self);
}
