/* Topics at the left, as far as they have the words that are searched; the chosen one at the
 * right, as labels. SPDX-License-Identifier: MIT */
#include "app/td-manual-window.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "settings/td-manual.h"

typedef struct
{
  GtkWindow *window, *parent;
  GtkListBox *list;
  GtkEditable *search;
  GtkBox *text;
  GtkScrolledWindow *scroller;
} Manual;

static const char *
name_of (GtkListBoxRow *row)
{
  return gtk_widget_get_name (GTK_WIDGET (row));
}

static void
select_topic (Manual *m, const char *name)
{
  GtkListBoxRow *row;
  for (int i = 0; (row = gtk_list_box_get_row_at_index (m->list, i)); i++)
    if (g_str_equal (name_of (row), name))
      gtk_list_box_select_row (m->list, row);
}

/* help:TOPIC is here, lesson:NAME in the window behind, which comes to the front. */
static gboolean
follow (GtkLabel *label, const char *uri, Manual *m)
{
  if (g_str_has_prefix (uri, "help:"))
    select_topic (m, uri + strlen ("help:"));
  else if (g_str_has_prefix (uri, "lesson:"))
    {
      gtk_window_close (m->window);
      gtk_widget_activate_action (GTK_WIDGET (m->parent), "win.lesson", "s",
                                  uri + strlen ("lesson:"));
    }
  return TRUE;
}

static const struct
{
  const char *classes[3];
  const char *bullet;
} looks[] = {
  [TD_MANUAL_HEADING] = { { "heading", "td-manual-heading" } },
  [TD_MANUAL_TEXT] = { { "td-manual-text" } },
  [TD_MANUAL_ITEM] = { { "td-manual-text" }, "•" },
  [TD_MANUAL_COMMANDS] = { { "monospace", "td-manual-commands" } },
};

static GtkWidget *
new_label (Manual *m, const char *words, gboolean is_markup)
{
  GtkWidget *label = gtk_label_new (NULL);
  if (is_markup)
    gtk_label_set_markup (GTK_LABEL (label), words);
  else
    gtk_label_set_text (GTK_LABEL (label), words);
  gtk_label_set_wrap (GTK_LABEL (label), TRUE);
  gtk_label_set_wrap_mode (GTK_LABEL (label), PANGO_WRAP_WORD_CHAR);
  gtk_label_set_selectable (GTK_LABEL (label), TRUE);
  gtk_label_set_xalign (GTK_LABEL (label), 0);
  gtk_widget_set_hexpand (label, TRUE);
  g_signal_connect (label, "activate-link", G_CALLBACK (follow), m);
  return label;
}

static void
append_block (Manual *m, const TdManualBlock *block)
{
  GtkWidget *label = new_label (m, block->markup, block->kind != TD_MANUAL_COMMANDS);
  gtk_widget_set_css_classes (label, (const char **)(gpointer)looks[block->kind].classes);
  if (!looks[block->kind].bullet)
    {
      gtk_box_append (m->text, label);
      return;
    }
  GtkWidget *item = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 8),
            *bullet = gtk_label_new (looks[block->kind].bullet);
  gtk_widget_set_valign (bullet, GTK_ALIGN_START);
  gtk_box_append (GTK_BOX (item), bullet);
  gtk_box_append (GTK_BOX (item), label);
  gtk_box_append (m->text, item);
}

static void
show_topic (GtkListBox *list, GtkListBoxRow *row, Manual *m)
{
  if (!row)
    return;
  g_autoptr (TdManualTopic) topic = td_manual_read (name_of (row));
  for (GtkWidget *child; (child = gtk_widget_get_first_child (GTK_WIDGET (m->text)));)
    gtk_box_remove (m->text, child);
  GtkWidget *head = new_label (m, topic->title, FALSE);
  gtk_widget_add_css_class (head, "title-2");
  gtk_box_append (m->text, head);
  for (guint i = 0; i < topic->n_blocks; i++)
    append_block (m, &topic->blocks[i]);
  gtk_adjustment_set_value (gtk_scrolled_window_get_vadjustment (m->scroller), 0);
}

static gboolean
has_words (GtkListBoxRow *row, gpointer manual)
{
  Manual *m = manual;
  g_autoptr (TdManualTopic) topic = td_manual_read (name_of (row));
  g_autofree char *wanted = g_utf8_strdown (gtk_editable_get_text (m->search), -1);
  g_strstrip (wanted);
  return strstr (topic->words, wanted) != NULL;
}

/* The first topic that has the words is shown, but where the one on show has them. */
static void
search_changed (GtkEditable *search, Manual *m)
{
  gtk_list_box_invalidate_filter (m->list);
  GtkListBoxRow *row = gtk_list_box_get_selected_row (m->list);
  if (row && gtk_widget_get_child_visible (GTK_WIDGET (row)))
    return;
  for (int i = 0; (row = gtk_list_box_get_row_at_index (m->list, i)); i++)
    if (gtk_widget_get_child_visible (GTK_WIDGET (row)))
      {
        gtk_list_box_select_row (m->list, row);
        return;
      }
}

static void
show_keys (GtkButton *button, Manual *m)
{
  gtk_window_close (m->window);
  gtk_widget_activate_action (GTK_WIDGET (m->parent), "win.page-keys", NULL);
}

static void
fill_list (Manual *m)
{
  const char *const *names = td_manual_names ();
  for (guint i = 0; names[i]; i++)
    {
      g_autoptr (TdManualTopic) topic = td_manual_read (names[i]);
      GtkWidget *row = gtk_list_box_row_new (), *label = gtk_label_new (topic->title);
      gtk_label_set_xalign (GTK_LABEL (label), 0);
      gtk_label_set_wrap (GTK_LABEL (label), TRUE);
      gtk_list_box_row_set_child (GTK_LIST_BOX_ROW (row), label);
      gtk_widget_set_name (row, names[i]);
      gtk_list_box_append (m->list, row);
    }
}

static GtkWidget *
new_side (Manual *m)
{
  GtkWidget *side = gtk_box_new (GTK_ORIENTATION_VERTICAL, 6),
            *scroller = gtk_scrolled_window_new ();
  m->search = GTK_EDITABLE (gtk_search_entry_new ());
  gtk_accessible_update_property (GTK_ACCESSIBLE (m->search), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Search the manual"), -1);
  gtk_widget_add_css_class (side, "td-manual-side");
  gtk_widget_add_css_class (GTK_WIDGET (m->list), "navigation-sidebar");
  gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (scroller), GTK_POLICY_NEVER,
                                  GTK_POLICY_AUTOMATIC);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), GTK_WIDGET (m->list));
  gtk_widget_set_vexpand (scroller, TRUE);
  gtk_box_append (GTK_BOX (side), GTK_WIDGET (m->search));
  gtk_box_append (GTK_BOX (side), scroller);
  g_signal_connect (m->search, "changed", G_CALLBACK (search_changed), m);
  return side;
}

static GtkWidget *
new_header (Manual *m)
{
  GtkWidget *header = gtk_header_bar_new (),
            *keys = gtk_button_new_with_mnemonic (_ ("_Keys of the Page"));
  g_signal_connect (keys, "clicked", G_CALLBACK (show_keys), m);
  gtk_header_bar_pack_end (GTK_HEADER_BAR (header), keys);
  return header;
}

static gboolean
close_it (GtkWidget *window, GVariant *none, gpointer data)
{
  gtk_window_close (GTK_WINDOW (window));
  return TRUE;
}

static void
add_keys (GtkWidget *window)
{
  GtkEventController *keys = gtk_shortcut_controller_new ();
  static const char *const triggers[] = { "Escape", "<Control>w", "F1" };
  for (guint i = 0; i < G_N_ELEMENTS (triggers); i++)
    gtk_shortcut_controller_add_shortcut (
        GTK_SHORTCUT_CONTROLLER (keys),
        gtk_shortcut_new (gtk_shortcut_trigger_parse_string (triggers[i]),
                          gtk_callback_action_new (close_it, NULL, NULL)));
  gtk_widget_add_controller (window, keys);
}

static Manual *
new_manual (GtkWindow *parent)
{
  Manual *m = g_new0 (Manual, 1);
  GtkWidget *sides = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 0);
  m->parent = parent;
  m->window = GTK_WINDOW (gtk_window_new ());
  m->list = GTK_LIST_BOX (gtk_list_box_new ());
  m->text = GTK_BOX (gtk_box_new (GTK_ORIENTATION_VERTICAL, 10));
  m->scroller = GTK_SCROLLED_WINDOW (gtk_scrolled_window_new ());
  gtk_widget_add_css_class (GTK_WIDGET (m->text), "td-manual");
  gtk_scrolled_window_set_policy (m->scroller, GTK_POLICY_NEVER, GTK_POLICY_AUTOMATIC);
  gtk_scrolled_window_set_child (m->scroller, GTK_WIDGET (m->text));
  gtk_widget_set_hexpand (GTK_WIDGET (m->scroller), TRUE);
  gtk_box_append (GTK_BOX (sides), new_side (m));
  gtk_box_append (GTK_BOX (sides), gtk_separator_new (GTK_ORIENTATION_VERTICAL));
  gtk_box_append (GTK_BOX (sides), GTK_WIDGET (m->scroller));
  gtk_window_set_titlebar (m->window, new_header (m));
  gtk_window_set_child (m->window, sides);
  gtk_window_set_title (m->window, _ ("Help"));
  gtk_window_set_default_size (m->window, 840, 600);
  gtk_window_set_transient_for (m->window, parent);
  gtk_window_set_destroy_with_parent (m->window, TRUE);
  gtk_window_set_hide_on_close (m->window, TRUE);
  add_keys (GTK_WIDGET (m->window));
  g_object_set_data_full (G_OBJECT (m->window), "td-manual", m, g_free);
  g_signal_connect (m->list, "row-selected", G_CALLBACK (show_topic), m);
  fill_list (m);
  gtk_list_box_set_filter_func (m->list, has_words, m, NULL);
  return m;
}

GtkWindow *
td_manual_window_show (GtkWindow *parent, const char *topic)
{
  Manual *m = g_object_get_data (G_OBJECT (parent), "td-manual-of-it");
  if (!m)
    {
      m = new_manual (parent);
      g_object_set_data (G_OBJECT (parent), "td-manual-of-it", m);
    }
  gtk_editable_set_text (m->search, "");
  select_topic (m, topic);
  if (!gtk_list_box_get_selected_row (m->list))
    select_topic (m, td_manual_names ()[0]);
  gtk_window_present (m->window);
  return m->window;
}
