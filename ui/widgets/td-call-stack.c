/* A GtkListView over the frames of a stack, which may be thousands.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-call-stack.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "scene/td-format.h"
#include "settings/td-tip.h"
#include "widgets/td-gradual-list.h"
#include "widgets/td-index-list.h"

#define PLACE_CHARS 30
#define LEAST_HEIGHT 96 /* of the list: four rows */

struct _TdCallStack
{
  GtkWidget parent;
  GtkWidget *box, *buttons, *scroller;
  GtkLabel *title, *missing;
  GtkWidget *toggle;
  GtkListView *view;
  TdIndexList *list;
  GtkSingleSelection *selection;
  GArray *frames, *folds; /* TdStackFrame with texts in `texts`, TdStackFold */
  GStringChunk *texts;
  GHashTable *stored; /* files that the recording has; keys in `texts` */
  gboolean whole, syncing;
};

enum
{
  CHOSEN,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdCallStack, td_call_stack, GTK_TYPE_WIDGET)

static const TdStackFrame *
get_frame (TdCallStack *self, guint i)
{
  return &g_array_index (self->frames, TdStackFrame, i);
}

/* What a row stands for. */
static const TdStackFold *
get_fold (TdCallStack *self, guint row)
{
  return row < self->folds->len ? &g_array_index (self->folds, TdStackFold, row) : NULL;
}

static gboolean
has_source (TdCallStack *self, const TdStackFrame *frame)
{
  return frame->line > 0 && g_hash_table_contains (self->stored, frame->file);
}

/* ---- rows ---- */

static void
open_source (TdCallStack *self, guint row)
{
  const TdStackFold *fold = get_fold (self, row);
  if (!fold || fold->n > 1 || !has_source (self, get_frame (self, fold->first)))
    return;
  g_autofree char *place = td_stack_frame_dup_place (get_frame (self, fold->first));
  gtk_widget_activate_action (GTK_WIDGET (self), "win.show-source", "s", place);
}

static void
place_clicked (GtkWidget *button, GtkListItem *item)
{
  TdCallStack *self = g_object_get_data (G_OBJECT (item), "stack");
  open_source (self, gtk_list_item_get_position (item));
}

static void
setup_row (GtkListItemFactory *factory, GtkListItem *item, TdCallStack *self)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 9);
  GtkWidget *function = gtk_label_new (NULL), *place = gtk_label_new (NULL);
  GtkWidget *link = gtk_button_new (), *text = gtk_label_new (NULL);
  gtk_label_set_xalign (GTK_LABEL (function), 0);
  gtk_label_set_ellipsize (GTK_LABEL (function), PANGO_ELLIPSIZE_END);
  gtk_widget_set_hexpand (function, TRUE);
  gtk_label_set_ellipsize (GTK_LABEL (place), PANGO_ELLIPSIZE_START);
  gtk_label_set_max_width_chars (GTK_LABEL (place), PLACE_CHARS);
  gtk_widget_add_css_class (place, "dim-label");
  gtk_label_set_ellipsize (GTK_LABEL (text), PANGO_ELLIPSIZE_START);
  gtk_label_set_max_width_chars (GTK_LABEL (text), PLACE_CHARS);
  gtk_button_set_child (GTK_BUTTON (link), text);
  gtk_widget_add_css_class (link, "flat");
  gtk_widget_add_css_class (link, "td-link");
  gtk_widget_set_tooltip_text (link, _ ("Show this line of the source (Return)"));
  g_signal_connect (link, "clicked", G_CALLBACK (place_clicked), item);
  gtk_box_append (GTK_BOX (box), function);
  gtk_box_append (GTK_BOX (box), place);
  gtk_box_append (GTK_BOX (box), link);
  g_object_set_data (G_OBJECT (item), "stack", self);
  gtk_list_item_set_child (item, box);
}

/* "linear.py:114": the whole path is in the tip. Owner: the caller. */
static char *
dup_short_place (const TdStackFrame *frame)
{
  g_autofree char *place = td_stack_frame_dup_place (frame);
  const char *slash = strrchr (place, '/');
  return g_strdup (slash ? slash + 1 : place);
}

static void
bind_row (GtkListItemFactory *factory, GtkListItem *item, TdCallStack *self)
{
  const TdStackFold *fold = get_fold (self, gtk_list_item_get_position (item));
  GtkWidget *function = gtk_widget_get_first_child (gtk_list_item_get_child (item));
  GtkWidget *place = gtk_widget_get_next_sibling (function);
  GtkWidget *link = gtk_widget_get_next_sibling (place);
  if (!fold)
    return;
  const TdStackFrame *frame = get_frame (self, fold->first);
  gboolean one = fold->n == 1, linked = one && has_source (self, frame);
  g_autofree char *whole
      = one ? td_stack_frame_dup_text (frame) : td_stack_fold_dup_text (self->frames, fold);
  g_autofree char *name
      = one && *frame->function ? g_utf8_make_valid (frame->function, -1) : g_strdup (whole);
  g_autofree char *where = one && *frame->function ? dup_short_place (frame) : g_strdup ("");
  gtk_label_set_text (GTK_LABEL (function), name);
  gtk_label_set_text (GTK_LABEL (place), linked ? "" : where);
  gtk_label_set_text (GTK_LABEL (gtk_button_get_child (GTK_BUTTON (link))), where);
  gtk_widget_set_visible (place, !linked);
  gtk_widget_set_visible (link, linked);
  gtk_widget_set_name (link, linked ? "frame-source" : "frame-without");
  if (one)
    gtk_widget_remove_css_class (function, "dim-label");
  else
    gtk_widget_add_css_class (function, "dim-label");
  td_tip_set (function, whole);
  gtk_accessible_update_property (GTK_ACCESSIBLE (link), GTK_ACCESSIBLE_PROPERTY_LABEL, whole,
                                  -1);
}

static void
row_activated (GtkListView *view, guint row, TdCallStack *self)
{
  const TdStackFold *fold = get_fold (self, row);
  if (fold && fold->n > 1)
    td_call_stack_set_whole (self, TRUE);
  else
    open_source (self, row);
}

static void
selected_changed (TdCallStack *self)
{
  const TdStackFold *fold
      = get_fold (self, gtk_single_selection_get_selected (self->selection));
  if (!self->syncing)
    g_signal_emit (self, signals[CHOSEN], 0,
                   fold && fold->n == 1 ? get_frame (self, fold->first)->call : 0);
}

/* ---- what is shown ---- */

static void
fill (TdCallStack *self)
{
  g_clear_pointer (&self->folds, g_array_unref);
  self->folds = td_stack_fold (self->frames);
  gboolean folded = self->folds->len < self->frames->len;
  if (self->whole)
    {
      g_array_set_size (self->folds, 0);
      for (guint i = 0; i < self->frames->len; i++)
        {
          TdStackFold one = { i, 1 };
          g_array_append_val (self->folds, one);
        }
    }
  self->syncing = TRUE;
  td_index_list_reset (self->list, self->folds->len);
  gtk_single_selection_set_selected (self->selection, GTK_INVALID_LIST_POSITION);
  self->syncing = FALSE;
  gtk_button_set_label (GTK_BUTTON (self->toggle), self->whole ? _ ("Fold") : _ ("Show All"));
  gtk_widget_set_visible (self->toggle, folded);
}

static void
take_frames (TdCallStack *self, const GArray *frames)
{
  g_array_set_size (self->frames, 0);
  for (guint i = 0; frames && i < frames->len; i++)
    {
      TdStackFrame frame = g_array_index (frames, TdStackFrame, i);
      frame.function = g_string_chunk_insert_const (self->texts, frame.function);
      frame.file = g_string_chunk_insert_const (self->texts, frame.file);
      g_array_append_val (self->frames, frame);
    }
}

static void
take_sources (TdCallStack *self, TdTapeReader *reader)
{
  guint n = reader ? td_tape_reader_n_sources (reader) : 0;
  for (guint i = 0; i < n; i++)
    {
      TdTapeSource source = td_tape_reader_source (reader, i);
      if (source.path)
        g_hash_table_add (self->stored, g_string_chunk_insert_const (self->texts, source.path));
    }
}

void
td_call_stack_set (TdCallStack *self, const char *title, const GArray *frames,
                   TdSession *session)
{
  g_hash_table_remove_all (self->stored);
  g_array_set_size (self->frames, 0);
  g_array_set_size (self->folds, 0);
  g_string_chunk_clear (self->texts);
  take_frames (self, frames);
  take_sources (self, session ? td_session_get_reader (session) : NULL);
  self->whole = FALSE;
  fill (self);
  gboolean any = self->frames->len > 0;
  g_autofree char *text = any ? g_strdup_printf ("%s (%u %s)", title, self->frames->len,
                                                 td_plural (self->frames->len, "call", "calls"))
                              : g_strdup (title);
  gtk_label_set_text (self->title, text);
  gtk_widget_set_visible (self->scroller, any);
  gtk_widget_set_visible (self->buttons, any);
  gtk_widget_set_visible (GTK_WIDGET (self->missing), !any);
}

void
td_call_stack_select (TdCallStack *self, guint32 call)
{
  guint at = GTK_INVALID_LIST_POSITION;
  for (guint i = 0; call > 0 && i < self->folds->len; i++)
    if (get_fold (self, i)->n == 1 && get_frame (self, get_fold (self, i)->first)->call == call)
      at = i;
  self->syncing = TRUE;
  td_gradual_list_select (self->selection, at);
  self->syncing = FALSE;
}

void
td_call_stack_set_whole (TdCallStack *self, gboolean whole)
{
  self->whole = whole;
  fill (self);
}

char *
td_call_stack_dup_text (TdCallStack *self)
{
  return td_stack_frames_print (self->frames, "");
}

guint
td_call_stack_get_n_rows (TdCallStack *self)
{
  return g_list_model_get_n_items (G_LIST_MODEL (self->list));
}

/* ---- building ---- */

static void
toggle_clicked (GtkButton *button, TdCallStack *self)
{
  td_call_stack_set_whole (self, !self->whole);
}

static void
copy_clicked (GtkButton *button, TdCallStack *self)
{
  g_autofree char *text = td_call_stack_dup_text (self);
  gdk_clipboard_set_text (gtk_widget_get_clipboard (GTK_WIDGET (self)), text);
}

static GtkWidget *
new_button (TdCallStack *self, const char *label, const char *tip, GCallback clicked)
{
  GtkWidget *button = gtk_button_new_with_label (label);
  gtk_widget_add_css_class (button, "td-small");
  gtk_widget_set_tooltip_text (button, tip);
  g_signal_connect (button, "clicked", clicked, self);
  gtk_box_append (GTK_BOX (self->buttons), button);
  return button;
}

static GtkWidget *
new_head (TdCallStack *self)
{
  GtkWidget *head = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  self->title = GTK_LABEL (gtk_label_new (NULL));
  gtk_label_set_xalign (self->title, 0);
  gtk_label_set_ellipsize (self->title, PANGO_ELLIPSIZE_END);
  gtk_widget_set_hexpand (GTK_WIDGET (self->title), TRUE);
  gtk_widget_add_css_class (GTK_WIDGET (self->title), "caption-heading");
  self->buttons = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  self->toggle
      = new_button (self, "Show All", "Show the calls that are folded away, or fold them",
                    G_CALLBACK (toggle_clicked));
  new_button (self, "Copy Stack", "Copy all of its calls as text", G_CALLBACK (copy_clicked));
  gtk_box_append (GTK_BOX (head), GTK_WIDGET (self->title));
  gtk_box_append (GTK_BOX (head), self->buttons);
  return head;
}

static GtkWidget *
new_list (TdCallStack *self)
{
  GtkListItemFactory *factory = gtk_signal_list_item_factory_new ();
  g_signal_connect (factory, "setup", G_CALLBACK (setup_row), self);
  g_signal_connect (factory, "bind", G_CALLBACK (bind_row), self);
  self->list = td_index_list_new ();
  self->selection
      = td_index_list_new_selection (self->list, G_CALLBACK (selected_changed), self);
  self->view = GTK_LIST_VIEW (
      gtk_list_view_new (g_object_ref (GTK_SELECTION_MODEL (self->selection)), factory));
  gtk_widget_add_css_class (GTK_WIDGET (self->view), "td-frames");
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->view), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Calls of the stack, innermost first"), -1);
  g_signal_connect (self->view, "activate", G_CALLBACK (row_activated), self);
  self->scroller = gtk_scrolled_window_new ();
  gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (self->scroller), GTK_POLICY_NEVER,
                                  GTK_POLICY_AUTOMATIC);
  gtk_scrolled_window_set_min_content_height (GTK_SCROLLED_WINDOW (self->scroller),
                                              LEAST_HEIGHT);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (self->scroller), GTK_WIDGET (self->view));
  gtk_widget_set_vexpand (self->scroller, TRUE);
  return self->scroller;
}

static void
td_call_stack_dispose (GObject *object)
{
  TdCallStack *self = TD_CALL_STACK (object);
  if (self->selection)
    g_signal_handlers_disconnect_by_data (self->selection, self);
  g_clear_pointer (&self->box, gtk_widget_unparent);
  g_clear_object (&self->selection);
  g_clear_object (&self->list);
  G_OBJECT_CLASS (td_call_stack_parent_class)->dispose (object);
}

static void
td_call_stack_finalize (GObject *object)
{
  TdCallStack *self = TD_CALL_STACK (object);
  g_hash_table_unref (self->stored);
  g_array_unref (self->frames);
  g_array_unref (self->folds);
  g_string_chunk_free (self->texts);
  G_OBJECT_CLASS (td_call_stack_parent_class)->finalize (object);
}

static void
td_call_stack_class_init (TdCallStackClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_call_stack_dispose;
  G_OBJECT_CLASS (klass)->finalize = td_call_stack_finalize;
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
  signals[CHOSEN] = g_signal_new ("chosen", TD_TYPE_CALL_STACK, G_SIGNAL_RUN_LAST, 0, NULL,
                                  NULL, NULL, G_TYPE_NONE, 1, G_TYPE_UINT);
}

static void
td_call_stack_init (TdCallStack *self)
{
  self->frames = g_array_new (FALSE, FALSE, sizeof (TdStackFrame));
  self->folds = g_array_new (FALSE, FALSE, sizeof (TdStackFold));
  self->texts = g_string_chunk_new (1024);
  self->stored = g_hash_table_new (g_str_hash, g_str_equal);
  self->box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 6);
  gtk_box_append (GTK_BOX (self->box), new_head (self));
  gtk_box_append (GTK_BOX (self->box), new_list (self));
  self->missing = GTK_LABEL (gtk_label_new (_ ("No stack was recorded for it")));
  gtk_label_set_xalign (self->missing, 0);
  gtk_widget_add_css_class (GTK_WIDGET (self->missing), "caption");
  gtk_widget_add_css_class (GTK_WIDGET (self->missing), "dim-label");
  gtk_box_append (GTK_BOX (self->box), GTK_WIDGET (self->missing));
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
  td_call_stack_set (self, "", NULL, NULL);
}

GtkWidget *
td_call_stack_new (void)
{
  return g_object_new (TD_TYPE_CALL_STACK, NULL);
}
