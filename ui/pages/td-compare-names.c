/* The table of names by which layers are paired, as text to be edited.
 * SPDX-License-Identifier: MIT */
#include "pages/td-compare-page-private.h"

#include <glib/gi18n-lib.h>

/* NULL: they are guessed. */
static void
use (TdComparePage *self, const char *names)
{
  g_free (self->port_names);
  self->port_names = g_strdup (names);
  td__compare_page_check_again (self);
}

static void
answered (AdwMessageDialog *dialog, const char *response, TdComparePage *self)
{
  GtkWidget *scroller = adw_message_dialog_get_extra_child (dialog);
  GtkTextView *view
      = GTK_TEXT_VIEW (gtk_scrolled_window_get_child (GTK_SCROLLED_WINDOW (scroller)));
  GtkTextIter begin, end;
  gtk_text_buffer_get_bounds (gtk_text_view_get_buffer (view), &begin, &end);
  g_autofree char *text
      = gtk_text_buffer_get_text (gtk_text_view_get_buffer (view), &begin, &end, FALSE);
  if (g_str_equal (response, "guess"))
    use (self, NULL);
  else if (g_str_equal (response, "use"))
    use (self, text);
}

static GtkWidget *
new_editor (const char *text)
{
  GtkWidget *scroller = gtk_scrolled_window_new ();
  GtkWidget *view = gtk_text_view_new ();
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  gtk_text_view_set_monospace (GTK_TEXT_VIEW (view), TRUE);
  gtk_text_view_set_accepts_tab (GTK_TEXT_VIEW (view),
                                 FALSE); /* the keyboard comes out again */
  gtk_text_view_set_top_margin (GTK_TEXT_VIEW (view), 6);
  gtk_text_view_set_left_margin (GTK_TEXT_VIEW (view), 6);
  gtk_text_buffer_set_text (gtk_text_view_get_buffer (GTK_TEXT_VIEW (view)), valid, -1);
  gtk_accessible_update_property (GTK_ACCESSIBLE (view), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Names of layers, a line a pair"), -1);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), view);
  gtk_scrolled_window_set_min_content_width (GTK_SCROLLED_WINDOW (scroller), 520);
  gtk_scrolled_window_set_min_content_height (GTK_SCROLLED_WINDOW (scroller), 260);
  gtk_widget_add_css_class (scroller, "card");
  return scroller;
}

/* The table that is in force; one with a mistake is shown as it was left. */
GtkWidget *
td_compare_page_edit_names (TdComparePage *self)
{
  GtkRoot *window = gtk_widget_get_root (GTK_WIDGET (self));
  g_autofree char *names = self->port_names ? g_strdup (self->port_names)
                           : self->port     ? td_port_names (self->port)
                                            : g_strdup ("");
  GtkWidget *dialog = adw_message_dialog_new (
      GTK_IS_WINDOW (window) ? GTK_WINDOW (window) : NULL, _ ("Names of Layers"),
      _ ("A line a pair: a layer of A and one of B, - for none. What stands behind # is a "
         "remark."));
  AdwMessageDialog *d = ADW_MESSAGE_DIALOG (dialog);
  GtkWidget *editor = new_editor (names);
  adw_message_dialog_set_extra_child (d, editor);
  adw_message_dialog_add_responses (d, "cancel", _ ("_Cancel"), "guess", _ ("_Guess"), "use",
                                    _ ("_Use"), NULL);
  adw_message_dialog_set_response_appearance (d, "use", ADW_RESPONSE_SUGGESTED);
  adw_message_dialog_set_close_response (d, "cancel");
  g_signal_connect_object (dialog, "response", G_CALLBACK (answered), self, 0);
  gtk_window_present (GTK_WINDOW (dialog));
  gtk_widget_grab_focus (gtk_scrolled_window_get_child (GTK_SCROLLED_WINDOW (editor)));
  return dialog;
}
