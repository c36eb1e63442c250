/* Notes at moments and watches, kept beside the recording.
 * SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>

/* A notebook that cannot be read is left alone, which a line says. */
void
td__window_open_notebook (TdWindow *self)
{
  g_autoptr (GError) error = NULL;
  TdTapeReader *reader = self->session ? td_session_get_reader (self->session) : NULL;
  g_clear_object (&self->notebook);
  if (reader)
    self->notebook = td_notebook_new (td_session_get_path (self->session),
                                      td_tape_reader_header (reader)->uuid, &error);
  if (error)
    td__window_show_info (self, GTK_MESSAGE_WARNING, error->message);
  td_workspace_set_notebook (self->workspace, self->session, self->notebook);
}

gboolean
td__window_write_note (TdWindow *self, const char *text)
{
  g_autoptr (GError) error = NULL;
  TdMoment moment = td_session_get_moment (self->session);
  if (!self->notebook)
    {
      td__window_toast (self, _ ("Notes cannot be kept for this recording"));
      return FALSE;
    }
  if (td_notebook_write (self->notebook, moment.iteration, moment.event, text, &error))
    return TRUE;
  td__window_show_info (self, GTK_MESSAGE_WARNING, error->message);
  return FALSE;
}

static void
note_written (AdwMessageDialog *dialog, const char *response, TdWindow *self)
{
  GtkEditable *entry = GTK_EDITABLE (adw_message_dialog_get_extra_child (dialog));
  if (!g_str_equal (response, "write") || !self->session)
    return;
  if (td__window_write_note (self, gtk_editable_get_text (entry)))
    td_workspace_show_page (self->workspace, "notes");
}

void
td__run_note (TdWindow *self, const char *parameter)
{
  TdMoment moment = td_session_get_moment (self->session);
  const TdNote *there = self->notebook
                            ? td_notebook_find (self->notebook, moment.iteration, moment.event)
                            : NULL;
  g_autofree char *where = g_strdup_printf ("At iteration %" G_GINT64_FORMAT ", event %d",
                                            moment.iteration, moment.event);
  GtkWidget *dialog = adw_message_dialog_new (GTK_WINDOW (self), _ ("Note"), where);
  GtkWidget *entry = gtk_entry_new ();
  gtk_editable_set_text (GTK_EDITABLE (entry), there ? there->text : "");
  gtk_entry_set_max_length (GTK_ENTRY (entry), 1000);
  gtk_entry_set_activates_default (GTK_ENTRY (entry), TRUE);
  gtk_accessible_update_property (GTK_ACCESSIBLE (entry), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Text of the note"), -1);
  adw_message_dialog_set_extra_child (ADW_MESSAGE_DIALOG (dialog), entry);
  adw_message_dialog_add_responses (ADW_MESSAGE_DIALOG (dialog), "cancel", _ ("_Cancel"),
                                    "write", _ ("_Write"), NULL);
  adw_message_dialog_set_response_appearance (ADW_MESSAGE_DIALOG (dialog), "write",
                                              ADW_RESPONSE_SUGGESTED);
  adw_message_dialog_set_default_response (ADW_MESSAGE_DIALOG (dialog), "write");
  adw_message_dialog_set_close_response (ADW_MESSAGE_DIALOG (dialog), "cancel");
  g_signal_connect_object (dialog, "response", G_CALLBACK (note_written), self, 0);
  gtk_window_present (GTK_WINDOW (dialog));
  gtk_widget_grab_focus (entry);
}

void
td__run_watch (TdWindow *self, const char *parameter)
{
  guint n;
  const guint64 *keys = td_session_get_selection (self->session, &n);
  g_autoptr (TdIteration) iteration = td_session_get_current (self->session);
  g_autofree char *name = n && iteration ? td_watch_name (iteration, keys[0]) : NULL;
  g_autoptr (GError) error = NULL;
  if (!name || !self->notebook)
    {
      td__window_toast (self, name ? _ ("Watches cannot be kept for this recording")
                                   : _ ("Select an operation or a variable to watch"));
      return;
    }
  gboolean was = td_notebook_is_watched (self->notebook, keys[0]);
  if (!td_notebook_toggle_watch (self->notebook, keys[0], name, &error))
    td__window_show_info (self, GTK_MESSAGE_WARNING, error->message);
  if (!was)
    td_workspace_show_page (self->workspace, "watches");
}
