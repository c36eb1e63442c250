/* What the panel shows is made when it is looked at: the variable is read from the tape, the
 * slice is taken of it, and that is a tensor of its own for the picture and for the table
 * (td-tensor-panel.ui). SPDX-License-Identifier: MIT */
#include "pages/td-tensor-panel.h"

#include <string.h>

#include "settings/td-keys.h"
#include "widgets/td-number-grid.h"
#include "widgets/td-panel-view.h"
#include "widgets/td-scene-view.h"
#include "widgets/td-usable.h"

struct _TdTensorPanel
{
  GtkWidget parent;
  GtkWidget *box, *buttons, *map_scroller, *table_scroller;
  GtkEntry *slice;
  GtkDropDown *view;
  GtkCheckButton *subtracts;
  GtkSpinButton *other;
  GtkLabel *mistake, *said, *read_out;
  GtkWidget *again, *again_start, *again_cancel;
  GtkProgressBar *again_bar;
  GtkStack *stack;
  TdSceneView *picture;
  TdNumberGrid *grid;
  char *none, *why;
  TdSession *session;
  TdIteration *iteration; /* NULL: nothing */
  gint var, event;        /* -1: none; after the last one */
  TdTensor *tensor, *shown;
  gboolean recomputed;  /* the values of `tensor` are */
  gboolean recomputing; /* they are on their way */
  guint64 wanted;       /* 1 + the element that the table is to frame; 0: none */
  guint refresh;        /* tick that shows what changed; 0: nothing did */
};

G_DEFINE_FINAL_TYPE (TdTensorPanel, td_tensor_panel, GTK_TYPE_WIDGET)

static const struct
{
  const char *name, *page;
} views[] = { { "map", "map" }, { "table", "table" }, { "images", "map" } };

static TdTensorView
view_of (TdTensorPanel *self)
{
  TdTensorView how = TD_TENSOR_VIEW_DEFAULT;
  how.tiles = g_str_equal (views[gtk_drop_down_get_selected (self->view)].name, "images");
  how.floats = !gtk_check_button_get_active (self->subtracts);
  return how;
}

/* ---- tensors ---- */

/* Where the recording has no values, and the iteration was run again. Events and variables have
 * the same keys in both. */
static void
take_recomputed (TdTensorPanel *self)
{
  const TdTapeIteration *tape = td_iteration_get_tape (self->iteration);
  TdTapeReader *reader;
  TdIteration *again = td_session_get_recomputed (
      self->session, td_iteration_get_number (self->iteration), &reader);
  gint var = again ? td_iteration_find_var (again, tape->vars[self->var].key) : -1;
  gint event = again && self->event >= 0 && (guint32)self->event < tape->n_events
                   ? td_iteration_find_event (again, tape->events[self->event].key)
                   : -1;
  TdTensor *tensor = var >= 0 ? td_tensor_new (reader, again, (guint)var, event) : NULL;
  if (!tensor || !tensor->values)
    {
      g_clear_pointer (&tensor, td_tensor_free);
      return;
    }
  td_tensor_free (self->tensor);
  self->tensor = tensor;
  self->recomputed = TRUE;
}

TdTensor *
td_tensor_panel_get_tensor (TdTensorPanel *self)
{
  TdTapeReader *reader = self->session ? td_session_get_reader (self->session) : NULL;
  if (self->tensor || !self->iteration || self->var < 0)
    return self->tensor;
  self->tensor = td_tensor_new (reader, self->iteration, (guint)self->var, self->event);
  if (self->tensor && !self->tensor->values && self->session)
    take_recomputed (self);
  if (self->tensor)
    *self->tensor->title = '\0'; /* the inspector's own heading says it */
  return self->tensor;
}

static void
set_line (GtkLabel *label, const char *text)
{
  gtk_label_set_text (label, text ? text : "");
  gtk_widget_set_visible (GTK_WIDGET (label), text && *text);
}

/* NULL: nothing is to be said. */
static void
say (TdTensorPanel *self, const char *mistake, const char *text)
{
  set_line (self->mistake, mistake);
  set_line (self->said, text);
  if (mistake)
    gtk_widget_add_css_class (GTK_WIDGET (self->slice), "error");
  else
    gtk_widget_remove_css_class (GTK_WIDGET (self->slice), "error");
  gtk_accessible_update_state (
      GTK_ACCESSIBLE (self->slice), GTK_ACCESSIBLE_STATE_INVALID,
      mistake ? GTK_ACCESSIBLE_INVALID_TRUE : GTK_ACCESSIBLE_INVALID_FALSE, -1);
}

/* The same variable at the same moment of another iteration. */
static TdTensor *
load_other (TdTensorPanel *self, gint64 number, GError **error)
{
  const TdTapeIteration *tape = td_iteration_get_tape (self->iteration);
  g_autoptr (TdIteration) other = td_session_load_iteration (self->session, number, error);
  if (!other)
    return NULL;
  gint var = td_iteration_find_var (other, tape->vars[self->var].key);
  gint event = self->event >= 0 && (guint32)self->event < tape->n_events
                   ? td_iteration_find_event (other, tape->events[self->event].key)
                   : -1;
  if (var < 0)
    {
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "it is not there");
      return NULL;
    }
  return td_tensor_new (td_session_get_reader (self->session), other, (guint)var, event);
}

/* What is said of it: how much it is at most, and where. */
static char *
dup_largest (const TdTensor *difference, gint64 number)
{
  guint64 element;
  if (!td_tensor_find_largest (difference, &element))
    return NULL;
  if (difference->values[element] == 0)
    return g_strdup_printf ("Equal to iteration %" G_GINT64_FORMAT ".", number);
  g_autofree char *value = td_tensor_dup_cell (difference, element);
  g_autofree char *place = td_tensor_dup_read_out (difference, element);
  *strstr (place, "  ") = '\0';
  return g_strdup_printf ("Less iteration %" G_GINT64_FORMAT ": at most %s, at %s.", number,
                          value, place);
}

/* Where there is no difference the values themselves are shown, and it says why. */
static TdTensor *
subtract (TdTensorPanel *self, TdTensor *part, const TdSlice *slice, char **said)
{
  gint64 number = (gint64)gtk_spin_button_get_value (self->other);
  g_autoptr (GError) error = NULL;
  TdTensor *other = load_other (self, number, &error), *there = NULL, *difference = NULL;
  if (other && other->ndim != slice->ndim)
    g_set_error_literal (&error, G_IO_ERROR, G_IO_ERROR_FAILED, "its shape is another there");
  else if (other)
    there = td_tensor_take (other, slice, &error);
  if (there)
    difference = td_tensor_subtract (part, there, &error);
  td_tensor_free (other);
  td_tensor_free (there);
  *said = difference ? dup_largest (difference, number)
                     : g_strdup_printf ("No difference to iteration %" G_GINT64_FORMAT
                                        ": %s. The values themselves are shown.",
                                        number, error->message);
  if (!difference)
    return part;
  td_tensor_free (part);
  return difference;
}

/* A slice that does not fit is said to be none, and all of the tensor is shown: it may have
 * been typed for another one. */
static TdTensor *
take_slice (TdTensorPanel *self, TdTensor *tensor)
{
  const char *text = gtk_editable_get_text (GTK_EDITABLE (self->slice));
  g_autoptr (GError) error = NULL;
  g_autofree char *difference = NULL;
  g_autofree char *mistake = NULL;
  TdSlice slice;
  TdTensor *part = NULL;
  if (td_slice_parse (text, tensor->ndim, tensor->dims, &slice, NULL, &error))
    part = td_tensor_take (tensor, &slice, &error);
  if (!part)
    {
      mistake = g_strdup_printf ("%s. All of it is shown.", error->message);
      slice = td_slice_whole (tensor->ndim, tensor->dims);
      part = td_tensor_ref (tensor);
    }
  if (gtk_check_button_get_active (self->subtracts) && part->n_total > 0)
    part = subtract (self, part, &slice, &difference);
  g_autofree char *extent = td_tensor_dup_extent (part);
  g_autofree char *both
      = difference && extent ? g_strconcat (difference, "\n", extent, NULL) : NULL;
  const char *more = both ? both : difference ? difference : extent;
  g_autofree char *again = self->recomputed ? g_strconcat ("↻ Recomputed, not recorded.",
                                                           more ? "\n" : NULL, more, NULL)
                                            : NULL;
  say (self, mistake, again ? again : more);
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
  TdTensorView how = view_of (self);
  if (!shown)
    return td_panel_message (&view, self->none, self->why);
  return td_tensor_scene (shown, &how, &view);
}

/* As high as its room, or higher where that is low: then it scrolls. */
static void
fit_picture (TdTensorPanel *self)
{
  int width = gtk_widget_get_width (self->map_scroller);
  int height = gtk_widget_get_height (self->map_scroller);
  if (!self->shown || width <= 1 || height <= 1)
    return;
  TdPanelView view = td_panel_view_new (self->session, width, height);
  TdTensorView how = view_of (self);
  gtk_widget_set_size_request (GTK_WIDGET (self->picture), -1,
                               (int)td_tensor_scene_height (self->shown, &how, &view));
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

/* What is under the pointer: of elements that share a cell the one that it shows. */
static void
hovered (TdSceneView *picture, const TdSceneHit *hit, double x, double y, TdTensorPanel *self)
{
  guint64 element, n = 0;
  TdTensorView how = view_of (self);
  if (hit && self->shown)
    n = td_tensor_find_hit (self->shown, &how, hit, &element);
  g_autofree char *place = n > 0 ? td_tensor_dup_read_out (self->shown, element) : NULL;
  g_autofree char *text = n > 1
                              ? g_strdup_printf ("%s  largest of %" G_GUINT64_FORMAT, place, n)
                              : g_strdup (place ? place : "");
  gtk_label_set_text (self->read_out, text);
}

static void
go_to_wanted (TdTensorPanel *self)
{
  gint64 rows, cols;
  guint64 element = self->wanted - 1;
  if (self->wanted == 0 || !self->shown || !shows_table (self))
    return;
  self->wanted = 0;
  td_tensor_get_table (self->shown, &rows, &cols);
  if (cols > 0 && element < self->shown->n_total)
    td_number_grid_go_to (self->grid, (gint64)element / cols, (gint64)element % cols);
}

/* The way there from values that are not recorded; only the engine's own operations can be run
 * again. */
static void
show_way (TdTensorPanel *self)
{
  gboolean missing
      = self->shown && !self->tensor->values && self->tensor->n_total > 0
        && td_iteration_is_complete (self->iteration)
        && !*td_tape_reader_info (td_session_get_reader (self->session), "producer");
  gtk_widget_set_visible (self->again, missing || self->recomputing);
  gtk_widget_set_visible (self->again_start, !self->recomputing);
  gtk_widget_set_visible (GTK_WIDGET (self->again_bar), self->recomputing);
  gtk_widget_set_visible (self->again_cancel, self->recomputing);
}

static gboolean
refresh (GtkWidget *widget, GdkFrameClock *clock, gpointer unused)
{
  TdTensorPanel *self = TD_TENSOR_PANEL (widget);
  self->refresh = 0;
  if (!gtk_widget_get_mapped (widget)) /* nobody looks: map () comes here again */
    return G_SOURCE_REMOVE;
  TdTensor *shown = td_tensor_panel_get_shown (self);
  if (!shown)
    say (self, NULL, NULL);
  td_widget_set_usable (GTK_WIDGET (self->slice), shown != NULL);
  show_way (self);
  fit_picture (self);
  td_number_grid_set_tensor (self->grid, shows_table (self) ? shown : NULL);
  go_to_wanted (self);
  read_out (self);
  return G_SOURCE_REMOVE;
}

/* A click on the map leads to the number in the table. */
static void
pressed (TdSceneView *picture, const TdSceneHit *hit, double x, double y, TdTensorPanel *self)
{
  guint64 element;
  TdTensorView how = view_of (self);
  if (!hit || !self->shown || td_tensor_find_hit (self->shown, &how, hit, &element) == 0)
    return;
  self->wanted = element + 1;
  td_tensor_panel_show_view (self, "table");
}

/* Once before the next frame, however much changes until then. */
static void
queue_refresh (TdTensorPanel *self)
{
  td_scene_view_invalidate (self->picture);
  if (self->refresh == 0)
    self->refresh = gtk_widget_add_tick_callback (GTK_WIDGET (self), refresh, NULL, NULL);
}

static void
update_range (TdTensorPanel *self)
{
  guint n = td_session_get_n_iterations (self->session);
  if (n > 0)
    gtk_spin_button_set_range (self->other,
                               (double)td_session_get_iteration_number (self->session, 0),
                               (double)td_session_get_iteration_number (self->session, n - 1));
}

void
td_tensor_panel_set_subject (TdTensorPanel *self, TdSession *session, TdIteration *iteration,
                             gint var, gint event)
{
  forget_shown (self);
  g_clear_pointer (&self->tensor, td_tensor_free);
  self->recomputed = FALSE;
  g_clear_pointer (&self->iteration, td_iteration_unref);
  g_set_object (&self->session, session);
  self->iteration = iteration ? td_iteration_ref (iteration) : NULL;
  self->var = var;
  self->event = event;
  if (session && gtk_check_button_get_active (self->subtracts))
    update_range (self);
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
  self->recomputed = FALSE;
  queue_refresh (self);
}

void
td_tensor_panel_set_recomputing (TdTensorPanel *self, double part)
{
  gboolean were = self->recomputing;
  self->recomputing = part >= 0;
  if (part >= 0)
    gtk_progress_bar_set_fraction (self->again_bar, part);
  if (were == self->recomputing)
    return;
  forget_shown (self); /* there may be values now */
  g_clear_pointer (&self->tensor, td_tensor_free);
  self->recomputed = FALSE;
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
  gtk_stack_set_visible_child_name (self->stack,
                                    views[gtk_drop_down_get_selected (self->view)].page);
  queue_refresh (self);
}

static void
other_changed (TdTensorPanel *self)
{
  forget_shown (self);
  queue_refresh (self);
}

/* The nearest earlier iteration that has values, else the one before. */
static gint64
find_earlier (TdTensorPanel *self)
{
  TdTapeReader *reader = td_session_get_reader (self->session);
  gint64 now = td_session_get_moment (self->session).iteration, before = -1;
  for (guint i = td_session_get_n_iterations (self->session); i-- > 0;)
    {
      gint64 number = td_session_get_iteration_number (self->session, i);
      TdTapeSummary row;
      if (number >= now)
        continue;
      before = MAX (before, number);
      if (reader && td_tape_reader_look_up (reader, (guint64)number, &row)
          && (row.flags & TD_TAPE_ITERATION_VALUES))
        return number;
    }
  return before >= 0 ? before : now;
}

static void
difference_toggled (TdTensorPanel *self)
{
  gboolean any = gtk_check_button_get_active (self->subtracts) && self->session;
  td_widget_set_usable (GTK_WIDGET (self->other), any);
  if (any)
    {
      update_range (self);
      gtk_spin_button_set_value (self->other, (double)find_earlier (self));
    }
  other_changed (self);
}

void
td_tensor_panel_set_other (TdTensorPanel *self, gint64 iteration)
{
  gtk_check_button_set_active (self->subtracts, iteration >= 0);
  if (iteration >= 0)
    gtk_spin_button_set_value (self->other, (double)iteration);
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
  for (guint i = 0; i < G_N_ELEMENTS (views); i++)
    if (strcmp (views[i].name, name) == 0)
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
td_tensor_panel_get_mistake (TdTensorPanel *self)
{
  return gtk_label_get_text (self->mistake);
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
td_tensor_panel_map (GtkWidget *widget)
{
  GTK_WIDGET_CLASS (td_tensor_panel_parent_class)->map (widget);
  queue_refresh (TD_TENSOR_PANEL (widget));
}

static void
td_tensor_panel_dispose (GObject *object)
{
  TdTensorPanel *self = TD_TENSOR_PANEL (object);
  if (self->box)
    {
      forget_shown (self);
      g_signal_handlers_disconnect_by_data (self->grid, self);
      g_signal_handlers_disconnect_by_data (self->picture, self);
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
  widget_class->map = td_tensor_panel_map;
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_template_from_resource (
      widget_class, "/io/github/tapedeck/Tapedeck/pages/td-tensor-panel.ui");
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, box);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, slice);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, buttons);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, view);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, subtracts);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, other);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, mistake);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, said);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, again);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, again_start);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, again_bar);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, again_cancel);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, stack);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, map_scroller);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, table_scroller);
  gtk_widget_class_bind_template_child (widget_class, TdTensorPanel, read_out);
  gtk_widget_class_bind_template_callback (widget_class, slice_entered);
  gtk_widget_class_bind_template_callback (widget_class, slice_cleared);
  gtk_widget_class_bind_template_callback (widget_class, view_chosen);
  gtk_widget_class_bind_template_callback (widget_class, difference_toggled);
  gtk_widget_class_bind_template_callback (widget_class, other_changed);
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
  g_signal_connect (self->picture, "hovered", G_CALLBACK (hovered), self);
  g_signal_connect (self->picture, "pressed", G_CALLBACK (pressed), self);
  self->grid = TD_NUMBER_GRID (td_number_grid_new (numbers));
  g_signal_connect_swapped (self->grid, "cell-changed", G_CALLBACK (read_out), self);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (self->map_scroller),
                                 GTK_WIDGET (self->picture));
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (self->table_scroller),
                                 GTK_WIDGET (self->grid));
  return GTK_WIDGET (self);
}
