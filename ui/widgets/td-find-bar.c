/* An entry in a GtkSearchBar.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-find-bar.h"

struct _TdFindBar
{
  GtkWidget parent;
  GtkWidget *bar, *entry;
  GtkLabel *words;
};

enum
{
  SEARCH,
  CLOSED,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdFindBar, td_find_bar, GTK_TYPE_WIDGET)

void
td_find_bar_open (TdFindBar *self)
{
  gtk_search_bar_set_search_mode (GTK_SEARCH_BAR (self->bar), TRUE);
  if (gtk_widget_get_mapped (GTK_WIDGET (self))) /* else its page is not shown */
    gtk_widget_grab_focus (self->entry);
}

gboolean
td_find_bar_close (TdFindBar *self)
{
  if (!gtk_search_bar_get_search_mode (GTK_SEARCH_BAR (self->bar)))
    return FALSE;
  gtk_search_bar_set_search_mode (GTK_SEARCH_BAR (self->bar), FALSE);
  return TRUE;
}

/* By its own button, too. */
static void
mode_changed (TdFindBar *self)
{
  if (!gtk_search_bar_get_search_mode (GTK_SEARCH_BAR (self->bar)))
    g_signal_emit (self, signals[CLOSED], 0);
}

void
td_find_bar_set_words (TdFindBar *self, const char *words)
{
  gtk_label_set_text (self->words, words);
}

static void
search (GtkEntry *entry, TdFindBar *self)
{
  g_signal_emit (self, signals[SEARCH], 0, gtk_editable_get_text (GTK_EDITABLE (entry)));
}

static void
td_find_bar_dispose (GObject *object)
{
  g_clear_pointer (&TD_FIND_BAR (object)->bar, gtk_widget_unparent);
  G_OBJECT_CLASS (td_find_bar_parent_class)->dispose (object);
}

static void
td_find_bar_class_init (TdFindBarClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_find_bar_dispose;
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
  signals[SEARCH] = g_signal_new ("search", TD_TYPE_FIND_BAR, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                  NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
  signals[CLOSED] = g_signal_new ("closed", TD_TYPE_FIND_BAR, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                  NULL, G_TYPE_NONE, 0);
}

static void
td_find_bar_init (TdFindBar *self)
{
  self->entry = gtk_search_entry_new ();
  g_object_set (self->entry, "placeholder-text", "Operation, layer, name or file:line", NULL);
  gtk_widget_set_size_request (self->entry, 280, -1);
  g_signal_connect (self->entry, "search-changed", G_CALLBACK (search), self);
  g_signal_connect (self->entry, "activate", G_CALLBACK (search), self);
  g_signal_connect_swapped (self->entry, "stop-search", G_CALLBACK (td_find_bar_close), self);
  self->words = GTK_LABEL (gtk_label_new (NULL));
  gtk_widget_add_css_class (GTK_WIDGET (self->words), "dim-label");
  GtkWidget *row = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 12);
  gtk_box_append (GTK_BOX (row), self->entry);
  gtk_box_append (GTK_BOX (row), GTK_WIDGET (self->words));
  self->bar = gtk_search_bar_new ();
  gtk_search_bar_set_child (GTK_SEARCH_BAR (self->bar), row);
  gtk_search_bar_set_show_close_button (GTK_SEARCH_BAR (self->bar), TRUE);
  g_signal_connect_swapped (self->bar, "notify::search-mode-enabled", G_CALLBACK (mode_changed),
                            self);
  gtk_widget_set_parent (self->bar, GTK_WIDGET (self));
}

GtkWidget *
td_find_bar_new (const char *label)
{
  TdFindBar *self = g_object_new (TD_TYPE_FIND_BAR, NULL);
  GtkEditable *text = gtk_editable_get_delegate (GTK_EDITABLE (self->entry));
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->entry), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  label, -1);
  gtk_accessible_update_property (GTK_ACCESSIBLE (text), GTK_ACCESSIBLE_PROPERTY_LABEL, label,
                                  -1);
  return GTK_WIDGET (self);
}
