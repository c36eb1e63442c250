/* What the panel shows is made when it is looked at: the variable is read from the tape, the
 * slice is taken of it, and that is a tensor of its own for the picture and for the table
 * (td-tensor-panel.ui). SPDX-License-Identifier: MIT */
#include "pages/td-tensor-panel.h"

#include <string.h>

#include "settings/td-keys.h"
#include "widgets/td-number-grid.h"
#include "widgets/td-panel-view.h"
#include "widgets/td-scene-view.h"

/* Below this the picture scrolls. */
#define LEAST_HEIGHT 230

struct _TdTensorPanel
{
  GtkWidget parent;
  GtkWidget *box, *buttons, *map_scroller, *table_scroller;
  GtkEntry *slice;
  GtkDropDown *view;
  GtkLabel *said, *read_out;
  GtkStack *stack;
  TdSceneView *picture;
  TdNumberGrid *grid;
  char *none, *why;
  TdSession *session;
  TdIteration *iteration; /* NULL: nothing */
  gint var, event;        /* -1: none; after the last one */
  TdTensor *tensor, *shown;
  guint refresh; /* tick that shows what changed; 0: nothing did */
};

G_DEFINE_FINAL_TYPE (TdTensorPanel, td_tensor_panel, GTK_TYPE_WIDGET)

static const char *const view_names[] = { "map", "table" };

/* ---- tensors ---- */

TdTensor *
td_tensor_panel_get_tensor (TdTensorPanel *self)
{
  TdTapeReader *reader = self->session ? td_session_get_reader (self->session) : NULL;
  if (self->tensor || !self->iteration || self->var < 0)
    return self->tensor;
  self->tensor = td_tensor_new (reader, self->iteration, (guint)self->var, self->event);
  if (self->tensor)
    *self->tensor->title = '\0'; /* the inspector's own heading says it */
  return self->tensor;
}

static void
say (TdTensorPanel *self, const char *text, gboolean mistake)
{
  gtk_label_set_text (self->said, text ? text : "");
  gtk_widget_set_visible (GTK_WIDGET (self->said), text && *text);
  if (mistake)
    {
      gtk_widget_add_css_class (GTK_WIDGET (self->slice), "error");
      gtk_widget_add_css_class (GTK_WIDGET (self->said), "error");
    }
  else
    {
      gtk_widget_remove_css_class (GTK_WIDGET (self->slice), "error");
      gtk_widget_remove_css_class (GTK_WIDGET (self->said), "error");
    }
  gtk_accessible_update_state (
      GTK_ACCESSIBLE (self->slice), GTK_ACCESSIBLE_STATE_INVALID,
      mistake ? GTK_ACCESSIBLE_INVALID_TRUE : GTK_ACCESSIBLE_INVALID_FALSE, -1);
}

/* A slice that does not fit is said to be none, and all of the tensor is shown: it may have
 * been typed for another one. */
static TdTensor *
take_slice (TdTensorPanel *self, TdTensor *tensor)
{
  const char *text = gtk_editable_get_text (GTK_EDITABLE (self->slice));
  g_autoptr (GError) error = NULL;
  TdSlice slice;
  TdTensor *part = NULL;
  if (td_slice_parse (text, tensor->ndim, tensor->dims, &slice, NULL, &error))
    part = td_tensor_take (tensor, &slice, &error);
  if (!part)
    {
      g_autofree char *said = g_strdup_printf ("%s. All of it is shown.", error->message);
      say (self, said, TRUE);
      return td_tensor_ref (tensor);
    }
  g_autofree char *extent = td_tensor_dup_extent (part);
  say (self, extent, FALSE);
  return part;
}

TdTensor *
td_tensor_panel_get_shown (TdTensorPanel *self)
{
  TdTensor *tensor = td_tensor_panel_get_tensor (self);
  if (!self->shown && tensor)
    self->shown = take_slice (self, tensor);
  return self->shown;
}

static void
forget_shown (TdTensorPanel *self)
{
  td_number_grid_set_tensor (self->grid, NULL);
  g_clear_pointer (&self->shown, td_tensor_free);
}

/* ---- showing ---- */

static TdScene *
make_picture (gpointer data, double width, double height)
{
  TdTensorPanel *self = data;
  if (!self->session)
    return NULL;
  TdPanelView view = td_panel_view_new (self->session, width, height);
  TdTensor *shown = td_tensor_panel_get_shown (self);
  TdTensorSlice whole = TD_TENSOR_SLICE_DEFAULT;
  if (!shown)
    return td_panel_message (&view, self->none, self->why);
  return td_tensor_scene (shown, &whole, &view);
}

static gboolean
shows_table (TdTensorPanel *self)
{
  return g_str_equal (gtk_stack_get_visible_child_name (self->stack), "table");
}

static void
read_out (TdTensorPanel *self)
{
  guint64 element;
  TdTensor *shown = self->shown;
  gboolean any
      = shown && shows_table (self) && td_number_grid_get_element (self->grid, &element);
  g_autofree char *text = any ? td_tensor_dup_read_out (shown, element) : g_strdup ("");
  gtk_label_set_text (self->read_out, text);
}

static gboolean
refresh (GtkWidget *widget, GdkFrameClock *clock, gpointer unused)
{
  TdTensorPanel *self = TD_TENSOR_PANEL (widget);
  TdTensor *shown = td_tensor_panel_get_shown (self);
  self->refresh = 0;
  if (!shown)
    say (self, NULL, FALSE);
  gtk_widget_set_sensitive (GTK_WIDGET (self->slice), shown != NULL);
  td_number_grid_set_tensor (self->grid, shows_table (self) ? shown : NULL);
  read_out (self);
  return G_SOURCE_REMOVE;
}

/* Once before the next frame, however much changes until then. */
static void
queue_refresh (TdTensorPanel *self)
{
  td_scene_view_invalidate (self->picture);
  if (self->refresh == 0)
    self->refresh = gtk_widget_add_tick_callback (GTK_WIDGET (self), refresh, NULL, NULL);
}

void
td_tensor_panel_set_subject (TdTensorPanel *self, TdSession *session, TdIteration *iteration,
                             gint var, gint event)
{
  forget_shown (self);
  g_clear_pointer (&self->tensor, td_tensor_free);
  g_clear_pointer (&self->iteration, td_iteration_unref);
  g_set_object (&self->session, session);
  self->iteration = iteration ? td_iteration_ref (iteration) : NULL;
  self->var = var;
  self->event = event;
  queue_refresh (self);
}

void
td_tensor_panel_take_live (TdTensorPanel *self, TdTensor *tensor)
{
  if (self->tensor)
    {
      tensor->has_stats = self->tensor->has_stats;
      tensor->stats = self->tensor->stats;
    }
  *tensor->title = '\0';
  forget_shown (self);
  g_clear_pointer (&self->tensor, td_tensor_free);
  self->tensor = tensor;
  queue_refresh (self);
}

/* ---- what the user does ---- */

static void
slice_entered (TdTensorPanel *self)
{
  gboolean any = gtk_entry_get_text_length (self->slice) > 0;
  forget_shown (self);
  gtk_entry_set_icon_from_icon_name (self->slice, GTK_ENTRY_ICON_SECONDARY,
                                     any ? "edit-clear-symbolic" : NULL);
  if (any)
    gtk_entry_set_icon_tooltip_text (self->slice, GTK_ENTRY_ICON_SECONDARY, "Show all of it");
  queue_refresh (self);
}

static void
slice_cleared (TdTensorPanel *self)
{
  td_tensor_panel_set_slice (self, "");
}

static void
view_chosen (TdTensorPanel *self)
{
  gtk_stack_set_visible_child_name (
      self->stack,
      view_names[MIN (gtk_drop_down_get_selected (self->view), G_N_ELEMENTS (view_names) - 1)]);
  queue_refresh (self);
}

void
td_tensor_panel_set_slice (TdTensorPanel *self, const char *text)
{
  gtk_editable_set_text (GTK_EDITABLE (self->slice), text);
  slice_entered (self);
}

gboolean
td_tensor_panel_show_view (TdTensorPanel *self, const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (view_names); i++)
    if (strcmp (view_names[i], name) == 0)
      {
        gtk_drop_down_set_selected (self->view, i);
        return TRUE;
      }
  return FALSE;
}

void
td_tensor_panel_focus_slice (TdTensorPanel *self)
{
  gtk_widget_grab_focus (GTK_WIDGET (self->slice));
}

const char *
td_tensor_panel_get_said (TdTensorPanel *self)
{
  return gtk_label_get_text (self->said);
}

const char *
td_tensor_panel_get_read_out (TdTensorPanel *self)
{
  return gtk_label_get_text (self->read_out);
}

GtkWidget *
td_tensor_panel_get_picture (TdTensorPanel *self)
{
  return GTK_WIDGET (self->picture);
}

/* ---- building ---- */

static void
td_tensor_panel_dispose (GObject *object)
{
  TdTensorPanel *self = TD_TENSOR_PANEL (object);
  if (self->box)
    {
      forget_shown (self);
      g_signal_handlers_disconnect_by_data (self->grid, self);
    }
  g_clear_pointer (&self->tensor, td_tensor_free);
  g_clear_pointer (&self->iteration, td_iteration_unref);
  g_clear_object (&self->session);
  g_clear_pointer (&self->box, gtk_widget_unparent);
  G_OBJECT_CLASS (td_tensor_panel_parent_class)->dispose (object);
}

static void
td_tensor_panel_finalize (GObject *object)
{
  g_free (TD_TENSOR_PANEL (object)->none);
  g_free (TD_TENSOR_PANEL (object)->why);
  G_OBJECT_CLASS (td_tensor_panel_parent_class)->finalize (object);
}

static void
td_tensor_panel_class_init (TdTensorPanelClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);
  G_OBJECT_CLASS (klass)->dispose = td_tensor_panel_dispose;
  G_OBJECT_CLASS (klass)->finalize = td_tensor_panel_finalize;
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_template_from_resource (
      widget_class, "/io/github/tapedeck/Tapedeck/pages/td-tensor-panel.ui");
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, box);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, slice);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, buttons);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, view);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, said);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, stack);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, map_scroller);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, table_scroller);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, read_out);
  gtk_widget_class_bind_template_callback (widget_class, slice_entered);
  gtk_widget_class_bind_template_callback (widget_class, slice_cleared);
  gtk_widget_class_bind_template_callback (widget_class, view_chosen);
}

static void
td_tensor_panel_init (TdTensorPanel *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
  td_keys_name_buttons (self->buttons);
  self->var = self->event = -1;
}

GtkWidget *
td_tensor_panel_new (const char *label, const char *none, const char *why)
{
  TdTensorPanel *self = g_object_new (TD_TYPE_TENSOR_PANEL, NULL);
  g_autofree char *numbers = g_strconcat (label, ", numbers", NULL);
  self->none = g_strdup (none);
  self->why = g_strdup (why);
  self->picture = TD_SCENE_VIEW (td_scene_view_new (label, make_picture, self));
  gtk_widget_set_size_request (GTK_WIDGET (self->picture), -1, LEAST_HEIGHT);
  self->grid = TD_NUMBER_GRID (td_number_grid_new (numbers));
  g_signal_connect_swapped (self->grid, "cell-changed", G_CALLBACK (read_out), self);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (self->map_scroller),
                                 GTK_WIDGET (self->picture));
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (self->table_scroller),
                                 GTK_WIDGET (self->grid));
  return GTK_WIDGET (self);
}
