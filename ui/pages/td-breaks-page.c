/* A list box: people set a handful of breakpoints. Rows are made anew when the list has others,
 * and else only told their numbers, so that a text that is being changed stays.
 * SPDX-License-Identifier: MIT */
#include "pages/td-breaks-page.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "widgets/td-usable.h"

/* What is completed in a text: the language of engine/record/agent/break.c. */
static const char *const phrases[] = {
  "error",
  "exact error",
  "nan",
  "inf",
  "op == ",
  "link == ",
  "line == ",
  "phase == backward",
  "phase == forward",
  "phase == update",
  "iteration == ",
  "iteration >= ",
  "rank == ",
  "graph changed",
  "held after iteration",
  "guard failed",
  "edge cut",
  "bytes > ",
  "pool > ",
  "growth > ",
  "alloc > ",
  "norm > ",
  "norm(grad) > ",
};

struct _TdBreaksPage
{
  GtkWidget parent;
  GtkWidget *box;
  GtkListBox *list;
  GtkEntry *entry;
  GtkLabel *empty, *error;
};

G_DEFINE_FINAL_TYPE (TdBreaksPage, td_breaks_page, GTK_TYPE_WIDGET)

enum
{
  WANTED,
  ASKED,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

/* The parts of a row that change. */
typedef struct
{
  gint64 id;
  char *text; /* as the program has it */
  GtkSwitch *enabled;
  GtkEntry *entry;
  GtkLabel *hits;
} Parts;

static void
parts_free (gpointer data)
{
  g_free (((Parts *)data)->text);
  g_free (data);
}

static Parts *
parts_at (TdBreaksPage *self, guint i)
{
  GtkListBoxRow *row = gtk_list_box_get_row_at_index (self->list, (int)i);
  return row ? g_object_get_data (G_OBJECT (row), "parts") : NULL;
}

static void
ask (TdBreaksPage *self, const char *command)
{
  g_signal_emit (self, signals[ASKED], 0, command);
}

/* ---- what rows do ---- */

static Parts *
parts_of (GtkWidget *widget)
{
  GtkWidget *row = gtk_widget_get_ancestor (widget, GTK_TYPE_LIST_BOX_ROW);
  return g_object_get_data (G_OBJECT (row), "parts");
}

static gboolean
switched (GtkSwitch *widget, gboolean enabled, TdBreaksPage *self)
{
  const Parts *parts = parts_of (GTK_WIDGET (widget));
  g_autofree char *command
      = g_strdup_printf ("rebreak %" G_GINT64_FORMAT " %s", parts->id, enabled ? "on" : "off");
  ask (self, command);
  return FALSE;
}

static void
text_entered (GtkEntry *entry, TdBreaksPage *self)
{
  const Parts *parts = parts_of (GTK_WIDGET (entry));
  const char *text = gtk_editable_get_text (GTK_EDITABLE (entry));
  if (strcmp (text, parts->text) == 0)
    return;
  g_autofree char *command
      = g_strdup_printf ("rebreak %" G_GINT64_FORMAT " %s", parts->id, text);
  ask (self, command);
}

/* Escape, or another place: what was not entered was not meant. */
static void
text_left (GtkEventControllerFocus *focus, TdBreaksPage *self)
{
  GtkWidget *entry = gtk_event_controller_get_widget (GTK_EVENT_CONTROLLER (focus));
  gtk_editable_set_text (GTK_EDITABLE (entry), parts_of (entry)->text);
}

static void
remove_clicked (GtkButton *button, TdBreaksPage *self)
{
  g_autofree char *command
      = g_strdup_printf ("unbreak %" G_GINT64_FORMAT, parts_of (GTK_WIDGET (button))->id);
  ask (self, command);
}

static void
new_entered (GtkEntry *entry, TdBreaksPage *self)
{
  g_autofree char *text = g_strstrip (g_strdup (gtk_editable_get_text (GTK_EDITABLE (entry))));
  g_autofree char *command = g_strconcat ("break ", text, NULL);
  if (*text)
    ask (self, command);
}

/* ---- rows ---- */

static void
name_widget (GtkWidget *widget, const char *name)
{
  gtk_widget_set_tooltip_text (widget, name);
  gtk_accessible_update_property (GTK_ACCESSIBLE (widget), GTK_ACCESSIBLE_PROPERTY_LABEL, name,
                                  -1);
}

static void
add_row (TdBreaksPage *self, gint64 id)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 12);
  GtkWidget *row = gtk_list_box_row_new ();
  GtkWidget *remove = gtk_button_new_from_icon_name ("user-trash-symbolic");
  GtkEventController *focus = gtk_event_controller_focus_new ();
  Parts *parts = g_new0 (Parts, 1);
  *parts = (Parts){ .id = id,
                    .text = g_strdup (""),
                    .enabled = GTK_SWITCH (gtk_switch_new ()),
                    .entry = GTK_ENTRY (gtk_entry_new ()),
                    .hits = GTK_LABEL (gtk_label_new (NULL)) };
  name_widget (GTK_WIDGET (parts->enabled), _ ("Stop there"));
  name_widget (GTK_WIDGET (parts->entry), _ ("Where to stop"));
  name_widget (remove, _ ("Remove the breakpoint"));
  gtk_widget_set_valign (GTK_WIDGET (parts->enabled), GTK_ALIGN_CENTER);
  gtk_widget_set_hexpand (GTK_WIDGET (parts->entry), TRUE);
  gtk_widget_add_css_class (GTK_WIDGET (parts->entry), "monospace");
  gtk_widget_add_css_class (GTK_WIDGET (parts->hits), "numeric");
  gtk_widget_add_css_class (GTK_WIDGET (parts->hits), "dim-label");
  gtk_widget_add_css_class (remove, "flat");
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (parts->enabled));
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (parts->entry));
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (parts->hits));
  gtk_box_append (GTK_BOX (box), remove);
  gtk_list_box_row_set_child (GTK_LIST_BOX_ROW (row), box);
  gtk_list_box_row_set_activatable (GTK_LIST_BOX_ROW (row), FALSE);
  g_object_set_data_full (G_OBJECT (row), "parts", parts, parts_free);
  gtk_list_box_append (self->list, row);
  g_signal_connect (parts->enabled, "state-set", G_CALLBACK (switched), self);
  g_signal_connect (parts->entry, "activate", G_CALLBACK (text_entered), self);
  g_signal_connect (focus, "leave", G_CALLBACK (text_left), self);
  gtk_widget_add_controller (GTK_WIDGET (parts->entry), focus);
  g_signal_connect (remove, "clicked", G_CALLBACK (remove_clicked), self);
}

static gboolean
is_being_written (GtkEntry *entry)
{
  return gtk_widget_get_state_flags (GTK_WIDGET (entry)) & GTK_STATE_FLAG_FOCUS_WITHIN;
}

static void
update_row (TdBreaksPage *self, Parts *parts, const TdBreakRow *now)
{
  g_autofree char *hits
      = now->n_hits == 1 ? g_strdup ("stopped once")
                         : g_strdup_printf ("stopped %" G_GUINT64_FORMAT " times", now->n_hits);
  gboolean changed = strcmp (parts->text, now->text) != 0;
  gtk_label_set_text (parts->hits, hits);
  g_signal_handlers_block_by_func (parts->enabled, switched, self);
  gtk_switch_set_active (parts->enabled, now->enabled);
  g_signal_handlers_unblock_by_func (parts->enabled, switched, self);
  if (!changed)
    return;
  g_free (parts->text);
  parts->text = g_strdup (now->text);
  gtk_editable_set_text (GTK_EDITABLE (parts->entry), now->text);
}

static gboolean
has_rows (TdBreaksPage *self, const TdBreakRow *rows, guint n)
{
  for (guint i = 0; i < n; i++)
    {
      const Parts *parts = parts_at (self, i);
      if (!parts || parts->id != rows[i].id)
        return FALSE;
    }
  return !parts_at (self, n);
}

void
td_breaks_page_set_rows (TdBreaksPage *self, const TdBreakRow *rows, guint n, gboolean live)
{
  GtkListBoxRow *row;
  td_widget_set_usable (GTK_WIDGET (self->entry), live);
  gtk_label_set_text (
      self->empty, live ? _ ("No breakpoints. Ctrl+B sets one on the selected operation, the "
                             "line above any other.")
                        : _ ("Breakpoints are a running program's."));
  if (!has_rows (self, rows, n))
    {
      while ((row = gtk_list_box_get_row_at_index (self->list, 0)))
        gtk_list_box_remove (self->list, GTK_WIDGET (row));
      for (guint i = 0; i < n; i++)
        add_row (self, rows[i].id);
    }
  for (guint i = 0; i < n; i++)
    update_row (self, parts_at (self, i), &rows[i]);
}

void
td_breaks_page_set_error (TdBreaksPage *self, const char *error)
{
  gtk_label_set_text (self->error, error ? error : "");
  gtk_widget_set_visible (GTK_WIDGET (self->error), error != NULL);
  if (!error && is_being_written (self->entry))
    gtk_editable_set_text (GTK_EDITABLE (self->entry), "");
}

char *
td_breaks_page_dup_row (TdBreaksPage *self, guint i)
{
  const Parts *parts = parts_at (self, i);
  return parts ? g_strdup_printf ("%s, %s, %s",
                                  gtk_switch_get_active (parts->enabled) ? "on" : "off",
                                  gtk_editable_get_text (GTK_EDITABLE (parts->entry)),
                                  gtk_label_get_text (parts->hits))
               : NULL;
}

void
td_breaks_page_focus_new (TdBreaksPage *self)
{
  gtk_widget_grab_focus (GTK_WIDGET (self->entry));
}

/* ---- building ---- */

/* Where the last of the terms begins, which is the one that is completed. */
static const char *
last_term (const char *text)
{
  const char *term = text;
  for (const char *c = text; *c; c++)
    if ((c[0] == '&' && c[1] == '&') || (c[0] == '|' && c[1] == '|'))
      term = c + 2;
  return term + strspn (term, " ");
}

static gboolean
is_begun (GtkEntryCompletion *completion, const char *key, GtkTreeIter *row, gpointer unused)
{
  GtkWidget *entry = gtk_entry_completion_get_entry (completion);
  const char *term = last_term (gtk_editable_get_text (GTK_EDITABLE (entry)));
  g_autofree char *phrase = NULL;
  gtk_tree_model_get (gtk_entry_completion_get_model (completion), row, 0, &phrase, -1);
  return *term && g_str_has_prefix (phrase, term) && strcmp (phrase, term) != 0;
}

static gboolean
phrase_chosen (GtkEntryCompletion *completion, GtkTreeModel *model, GtkTreeIter *row,
               gpointer unused)
{
  GtkEditable *entry = GTK_EDITABLE (gtk_entry_completion_get_entry (completion));
  const char *text = gtk_editable_get_text (entry);
  g_autofree char *phrase = NULL;
  gtk_tree_model_get (model, row, 0, &phrase, -1);
  g_autofree char *before = g_strndup (text, (gsize)(last_term (text) - text));
  g_autofree char *whole = g_strconcat (before, phrase, NULL);
  gtk_editable_set_text (entry, whole);
  gtk_editable_set_position (entry, -1);
  return TRUE;
}

static GtkEntryCompletion *
new_completion (void)
{
  GtkEntryCompletion *completion = gtk_entry_completion_new ();
  GtkListStore *words = gtk_list_store_new (1, G_TYPE_STRING);
  for (guint i = 0; i < G_N_ELEMENTS (phrases); i++)
    gtk_list_store_insert_with_values (words, NULL, -1, 0, phrases[i], -1);
  gtk_entry_completion_set_model (completion, GTK_TREE_MODEL (words));
  gtk_entry_completion_set_text_column (completion, 0);
  gtk_entry_completion_set_match_func (completion, is_begun, NULL, NULL);
  g_signal_connect (completion, "match-selected", G_CALLBACK (phrase_chosen), NULL);
  g_object_unref (words);
  return completion;
}

static GtkWidget *
new_line (TdBreaksPage *self)
{
  g_autoptr (GtkEntryCompletion) completion = new_completion ();
  self->entry = GTK_ENTRY (gtk_entry_new ());
  gtk_entry_set_placeholder_text (
      self->entry, _ ("Break when: op == relu && iteration == 12, nan, bytes > 2G"));
  gtk_entry_set_completion (self->entry, completion);
  gtk_widget_add_css_class (GTK_WIDGET (self->entry), "monospace");
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->entry), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("A new breakpoint"), -1);
  g_signal_connect (self->entry, "activate", G_CALLBACK (new_entered), self);
  self->error = GTK_LABEL (gtk_label_new (NULL));
  gtk_label_set_xalign (self->error, 0);
  gtk_label_set_wrap (self->error, TRUE);
  gtk_widget_add_css_class (GTK_WIDGET (self->error), "error");
  gtk_widget_set_visible (GTK_WIDGET (self->error), FALSE);
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 6);
  gtk_widget_set_margin_start (box, 12);
  gtk_widget_set_margin_end (box, 12);
  gtk_widget_set_margin_top (box, 6);
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (self->entry));
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (self->error));
  return box;
}

static void
td_breaks_page_map (GtkWidget *widget)
{
  GTK_WIDGET_CLASS (td_breaks_page_parent_class)->map (widget);
  g_signal_emit (widget, signals[WANTED], 0);
}

static void
td_breaks_page_dispose (GObject *object)
{
  TdBreaksPage *self = TD_BREAKS_PAGE (object);
  g_clear_pointer (&self->box, gtk_widget_unparent);
  G_OBJECT_CLASS (td_breaks_page_parent_class)->dispose (object);
}

static void
td_breaks_page_class_init (TdBreaksPageClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_breaks_page_dispose;
  GTK_WIDGET_CLASS (klass)->map = td_breaks_page_map;
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
  signals[WANTED] = g_signal_new ("wanted", TD_TYPE_BREAKS_PAGE, G_SIGNAL_RUN_LAST, 0, NULL,
                                  NULL, NULL, G_TYPE_NONE, 0);
  signals[ASKED] = g_signal_new ("asked", TD_TYPE_BREAKS_PAGE, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                 NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
}

static void
td_breaks_page_init (TdBreaksPage *self)
{
  GtkWidget *scroller = gtk_scrolled_window_new ();
  self->list = GTK_LIST_BOX (gtk_list_box_new ());
  gtk_list_box_set_selection_mode (self->list, GTK_SELECTION_NONE);
  gtk_widget_add_css_class (GTK_WIDGET (self->list), "td-notes");
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->list), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Breakpoints"), -1);
  self->empty = GTK_LABEL (gtk_label_new (NULL));
  gtk_label_set_wrap (self->empty, TRUE);
  gtk_label_set_justify (self->empty, GTK_JUSTIFY_CENTER);
  gtk_widget_add_css_class (GTK_WIDGET (self->empty), "dim-label");
  gtk_list_box_set_placeholder (self->list, GTK_WIDGET (self->empty));
  gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (scroller), GTK_POLICY_NEVER,
                                  GTK_POLICY_AUTOMATIC);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), GTK_WIDGET (self->list));
  gtk_widget_set_vexpand (scroller, TRUE);
  self->box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  gtk_box_append (GTK_BOX (self->box), new_line (self));
  gtk_box_append (GTK_BOX (self->box), scroller);
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
  td_breaks_page_set_rows (self, NULL, 0, FALSE);
}

GtkWidget *
td_breaks_page_new (void)
{
  return g_object_new (TD_TYPE_BREAKS_PAGE, NULL);
}
