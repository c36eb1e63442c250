/* An entry above a table; the last expression that was understood stays on show.
 * SPDX-License-Identifier: MIT */
#include "pages/td-filter-page.h"

#include <glib/gi18n-lib.h>

#include "graph/td-filter.h"
#include "scene/td-format.h"
#include "tape/td-devices.h"
#include "widgets/td-csv.h"
#include "widgets/td-gradual-list.h"
#include "widgets/td-hover-row.h"
#include "widgets/td-index-list.h"

struct _TdFilterPage
{
  GtkWidget parent;
  GtkWidget *box;
  GtkWidget *entry;
  GtkLabel *message;
  GtkColumnView *view;
  TdIndexList *list;
  GtkSingleSelection *selection;
  TdSession *session;
  TdIteration *iteration; /* that `found` is of */
  char *text;             /* that the filter was made of, right or wrong */
  TdFilter *filter;
  GArray *found; /* gint32 events; NULL: nothing yet */
  gboolean syncing, dirty;
};

G_DEFINE_FINAL_TYPE (TdFilterPage, td_filter_page, GTK_TYPE_WIDGET)

/* ---- columns ---- */

typedef struct
{
  const char *title;
  char *(*text) (TdIteration *iteration, guint event);
  gboolean numeric, expand;
} Column;

static char *
dup_event (TdIteration *iteration, guint event)
{
  return g_strdup_printf ("%u", event);
}

static char *
dup_op (TdIteration *iteration, guint event)
{
  return g_utf8_make_valid (td_iteration_get_op_name (iteration, event), -1);
}

static char *
dup_link (TdIteration *iteration, guint event)
{
  return g_utf8_make_valid (td_iteration_get_link_path (iteration, event), -1);
}

static char *
dup_site (TdIteration *iteration, guint event)
{
  g_autofree char *site = td_iteration_dup_site (iteration, event);
  return g_utf8_make_valid (site, -1);
}

static char *
dup_time (TdIteration *iteration, guint event)
{
  return td_devices_dup_cost (iteration, event);
}

static char *
dup_bytes (TdIteration *iteration, guint event)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  const TdTapeEvent *e = &t->events[event];
  char text[TD_FORMAT_SIZE];
  guint64 bytes = 0;
  for (guint k = 0; k < e->n_out; k++)
    bytes += t->vars[t->outs[e->first_out + k]].bytes;
  return g_strdup (td_format_bytes (text, bytes));
}

static const Column columns[] = {
  { N_ ("Event"), dup_event, TRUE, FALSE }, { N_ ("Operation"), dup_op, FALSE, TRUE },
  { N_ ("Layer"), dup_link, FALSE, TRUE },  { N_ ("Where"), dup_site, FALSE, FALSE },
  { N_ ("Time"), dup_time, TRUE, FALSE },   { N_ ("Output"), dup_bytes, TRUE, FALSE },
};

static void
setup_cell (GtkListItemFactory *factory, GtkListItem *item, TdFilterPage *self)
{
  const Column *column = td_index_table_column (factory);
  td_index_table_set_label (item, column->numeric, column->expand);
}

static void
bind_cell (GtkListItemFactory *factory, GtkListItem *item, TdFilterPage *self)
{
  const Column *column = td_index_table_column (factory);
  TdIndexRow *row = gtk_list_item_get_item (item);
  if (!self->found || !row || td_index_row_get (row) >= self->found->len)
    return;
  gint32 event = g_array_index (self->found, gint32, td_index_row_get (row));
  g_autofree char *text = column->text (self->iteration, (guint)event);
  GtkWidget *label = gtk_list_item_get_child (item), *cell = gtk_widget_get_parent (label);
  gtk_label_set_text (GTK_LABEL (label), text);
  td_hover_row_set (cell, self->session,
                    td_iteration_get_tape (self->iteration)->events[event].key, cell);
}

static void
unbind_cell (GtkListItemFactory *factory, GtkListItem *item, TdFilterPage *self)
{
  td_hover_row_set (gtk_widget_get_parent (gtk_list_item_get_child (item)), NULL, 0, NULL);
}

static char *
dup_cell (gpointer data, gconstpointer column, guint row)
{
  TdFilterPage *self = data;
  gint32 event = g_array_index (self->found, gint32, row);
  return ((const Column *)column)->text (self->iteration, (guint)event);
}

static char *
dup_csv (gpointer data)
{
  TdFilterPage *self = data;
  return self->found ? td_csv_dup_table (self->view, self->found->len, dup_cell, self) : NULL;
}

/* ---- finding ---- */

static void
apply (TdFilterPage *self)
{
  if (!gtk_widget_get_mapped (GTK_WIDGET (self)))
    {
      self->dirty = TRUE;
      return;
    }
  self->dirty = FALSE;
  g_clear_pointer (&self->found, g_array_unref);
  g_clear_pointer (&self->iteration, td_iteration_unref);
  self->iteration = self->session ? td_session_get_current (self->session) : NULL;
  if (self->iteration && self->filter)
    self->found = td_filter_apply (self->filter, self->iteration);
  self->syncing = TRUE;
  td_index_list_reset (self->list, self->found ? self->found->len : 0);
  gtk_single_selection_set_selected (self->selection, GTK_INVALID_LIST_POSITION);
  self->syncing = FALSE;
  g_autofree char *text = NULL;
  if (self->found)
    text = g_strdup_printf ("%u of %u", self->found->len,
                            td_iteration_get_n_events (self->iteration));
  gtk_label_set_text (self->message, text ? text : "");
}

static void
moment_changed (TdFilterPage *self)
{
  g_autoptr (TdIteration) now = td_session_get_current (self->session);
  if (now != self->iteration || self->dirty)
    apply (self);
}

static void
text_changed (TdFilterPage *self)
{
  const char *text = gtk_editable_get_text (GTK_EDITABLE (self->entry));
  g_autoptr (GError) error = NULL;
  if (g_strcmp0 (text, self->text) == 0) /* the entry says it once more when no key came */
    return;
  g_free (self->text);
  self->text = g_strdup (text);
  TdFilter *filter = td_filter_new (text, &error);
  if (!filter)
    {
      gtk_label_set_text (self->message, error->message);
      gtk_widget_add_css_class (self->entry, "error");
      return;
    }
  gtk_widget_remove_css_class (self->entry, "error");
  g_clear_pointer (&self->filter, td_filter_free);
  self->filter = filter;
  apply (self);
}

static void
selected_changed (TdFilterPage *self)
{
  guint at = gtk_single_selection_get_selected (self->selection);
  if (self->syncing || !self->found || at >= self->found->len)
    return;
  gint32 event = g_array_index (self->found, gint32, at);
  td_session_select (self->session, td_iteration_get_tape (self->iteration)->events[event].key);
}

static void
row_activated (GtkColumnView *view, guint at, TdFilterPage *self)
{
  if (self->found && at < self->found->len)
    td_session_set_moment (self->session, td_iteration_get_number (self->iteration),
                           g_array_index (self->found, gint32, at));
}

void
td_filter_page_choose (TdFilterPage *self, guint i)
{
  td_gradual_list_select (self->selection, i);
}

void
td_filter_page_set_text (TdFilterPage *self, const char *text)
{
  /* the entry says that it is empty in between, and then waits for more keys */
  g_signal_handlers_block_by_func (self->entry, text_changed, self);
  gtk_editable_set_text (GTK_EDITABLE (self->entry), text);
  g_signal_handlers_unblock_by_func (self->entry, text_changed, self);
  text_changed (self);
}

guint
td_filter_page_get_n (TdFilterPage *self)
{
  return self->found ? self->found->len : 0;
}

const char *
td_filter_page_get_message (TdFilterPage *self)
{
  return gtk_label_get_text (self->message);
}

void
td_filter_page_focus (TdFilterPage *self)
{
  gtk_widget_grab_focus (self->entry);
}

void
td_filter_page_set_session (TdFilterPage *self, TdSession *session)
{
  if (self->session)
    g_signal_handlers_disconnect_by_data (self->session, self);
  g_set_object (&self->session, session);
  apply (self);
  if (!session)
    return;
  g_signal_connect_swapped (session, "moment-changed", G_CALLBACK (moment_changed), self);
  g_signal_connect_swapped (session, "iterations-changed", G_CALLBACK (moment_changed), self);
}

/* ---- building ---- */

static GtkWidget *
new_entry (TdFilterPage *self)
{
  static const char name[] = "Filter of operations";
  self->entry = gtk_search_entry_new ();
  g_object_set (self->entry, "placeholder-text", "op == relu && norm > 10", NULL);
  gtk_widget_set_hexpand (self->entry, TRUE);
  gtk_widget_set_tooltip_text (
      self->entry,
      _ ("error, nan, inf; op, link, line, phase == …; bytes, ms, norm, norm(grad), "
         "mean, min, max > …; or words; && and ||"));
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->entry), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  name, -1);
  GtkEditable *text = gtk_editable_get_delegate (GTK_EDITABLE (self->entry));
  gtk_accessible_update_property (GTK_ACCESSIBLE (text), GTK_ACCESSIBLE_PROPERTY_LABEL, name,
                                  -1);
  g_signal_connect_swapped (self->entry, "search-changed", G_CALLBACK (text_changed), self);
  g_signal_connect_swapped (self->entry, "activate", G_CALLBACK (text_changed), self);
  GtkWidget *row = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 12);
  gtk_widget_add_css_class (row, "td-side-head");
  gtk_box_append (GTK_BOX (row), self->entry);
  self->message = GTK_LABEL (gtk_label_new (NULL));
  gtk_label_set_ellipsize (self->message, PANGO_ELLIPSIZE_END);
  gtk_label_set_width_chars (self->message, 12);
  gtk_label_set_xalign (self->message, 0);
  gtk_widget_add_css_class (GTK_WIDGET (self->message), "dim-label");
  gtk_box_append (GTK_BOX (row), GTK_WIDGET (self->message));
  return row;
}

static GtkWidget *
new_table (TdFilterPage *self)
{
  self->list = td_index_list_new ();
  self->selection
      = td_index_list_new_selection (self->list, G_CALLBACK (selected_changed), self);
  self->view = td_index_table_new (self->selection, _ ("Operations that match"));
  td_csv_provide (GTK_WIDGET (self), dup_csv, self);
  g_signal_connect (self->view, "activate", G_CALLBACK (row_activated), self);
  for (guint i = 0; i < G_N_ELEMENTS (columns); i++)
    td_index_table_add (self->view, _ (columns[i].title), columns[i].expand, &columns[i],
                        G_CALLBACK (setup_cell), G_CALLBACK (bind_cell),
                        G_CALLBACK (unbind_cell), self);
  GtkWidget *scroller = gtk_scrolled_window_new ();
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), GTK_WIDGET (self->view));
  gtk_widget_set_vexpand (scroller, TRUE);
  return scroller;
}

static void
td_filter_page_map (GtkWidget *widget)
{
  GTK_WIDGET_CLASS (td_filter_page_parent_class)->map (widget);
  if (TD_FILTER_PAGE (widget)->dirty)
    apply (TD_FILTER_PAGE (widget));
}

static void
td_filter_page_dispose (GObject *object)
{
  TdFilterPage *self = TD_FILTER_PAGE (object);
  if (self->box)
    td_filter_page_set_session (self, NULL);
  g_clear_pointer (&self->text, g_free);
  g_clear_pointer (&self->found, g_array_unref);
  g_clear_pointer (&self->iteration, td_iteration_unref);
  g_clear_pointer (&self->filter, td_filter_free);
  if (self->selection)
    g_signal_handlers_disconnect_by_data (self->selection, self);
  g_clear_pointer (&self->box, gtk_widget_unparent);
  g_clear_object (&self->selection);
  g_clear_object (&self->list);
  G_OBJECT_CLASS (td_filter_page_parent_class)->dispose (object);
}

static void
td_filter_page_class_init (TdFilterPageClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_filter_page_dispose;
  GTK_WIDGET_CLASS (klass)->map = td_filter_page_map;
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
}

static void
td_filter_page_init (TdFilterPage *self)
{
  self->filter = td_filter_new ("", NULL);
  self->box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  gtk_box_append (GTK_BOX (self->box), new_entry (self));
  gtk_box_append (GTK_BOX (self->box), new_table (self));
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
}

GtkWidget *
td_filter_page_new (void)
{
  return g_object_new (TD_TYPE_FILTER_PAGE, NULL);
}
