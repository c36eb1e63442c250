/* Attaching to a program that runs under `tapedeck run`, letting it go, and what happens to it
 * when the window closes.
 * SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>

#include "runtime-folder.h"

static void
hello_answered (TdControlClient *control, JsonObject *answer, gpointer data)
{
  g_autoptr (TdWindow) self = data;
  const char *tape
      = answer ? json_object_get_string_member_with_default (answer, "tape", NULL) : NULL;
  if (!self->workspace) /* it was closed meanwhile */
    return;
  if (!tape)
    {
      td_window_show_message (self, "dialog-error-symbolic", _ ("Cannot Attach"),
                              _ ("The program answers, but does not say where it records to."),
                              NULL);
      return;
    }
  g_autoptr (GFile) file = g_file_new_for_path (tape);
  td__window_open_attached (self, file);
}

static void
attach_to (TdWindow *self, const char *address)
{
  td__window_connect (self, address);
  if (self->control && td_control_client_is_open (self->control))
    td_control_client_send (self->control, "hello", hello_answered, g_object_ref (self));
  else
    td_window_show_message (self, "dialog-error-symbolic", _ ("Cannot Attach"),
                            _ ("Nothing answers there: the program has ended, or it belongs to "
                               "another user."),
                            NULL);
}

static void
attach_chosen (AdwMessageDialog *dialog, const char *response, TdWindow *self)
{
  if (g_str_has_prefix (response, "/"))
    attach_to (self, response);
}

static GPtrArray *
list_sockets (void)
{
  GPtrArray *found = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *folder = td_control_folder ();
  td__runtime_clear (folder);
  GDir *dir = g_dir_open (folder, 0, NULL);
  const char *name;
  while (dir && (name = g_dir_read_name (dir)))
    if (g_str_has_suffix (name, ".sock"))
      {
        g_autofree char *path = g_build_filename (folder, name, NULL);
        if (td__socket_answers (path))
          g_ptr_array_add (found, g_steal_pointer (&path));
      }
  g_clear_pointer (&dir, g_dir_close);
  return found;
}

void
td__run_attach (TdWindow *self, const char *parameter)
{
  g_autoptr (GPtrArray) sockets = list_sockets ();
  GtkWidget *dialog = adw_message_dialog_new (
      GTK_WINDOW (self),
      sockets->len ? _ ("Attach to a Program") : _ ("No Program to Attach To"),
      sockets->len
          ? _ ("These programs run under tapedeck.")
          : _ ("Start one with “tapedeck run model.c” in a terminal; it then appears here."));
  for (guint i = 0; i < sockets->len; i++)
    {
      const char *path = g_ptr_array_index (sockets, i);
      g_autofree char *base = g_path_get_basename (path);
      g_autofree char *label
          = g_strdup_printf (_ ("Process %.*s"), (int)(strlen (base) - strlen (".sock")), base);
      adw_message_dialog_add_response (ADW_MESSAGE_DIALOG (dialog), path, label);
    }
  adw_message_dialog_add_response (ADW_MESSAGE_DIALOG (dialog), "cancel",
                                   sockets->len ? _ ("_Cancel") : _ ("_Close"));
  adw_message_dialog_set_close_response (ADW_MESSAGE_DIALOG (dialog), "cancel");
  g_signal_connect_object (dialog, "response", G_CALLBACK (attach_chosen), self, 0);
  gtk_window_present (GTK_WINDOW (dialog));
}

/* A client that leaves changes nothing, so a program that stands still is told to go on first.
 */
void
td__run_detach (TdWindow *self, const char *parameter)
{
  if (self->runner)
    td_runner_detach (self->runner);
  td__window_let_go (self);
}

/* ---- closing ---- */

static void
close_chosen (AdwMessageDialog *dialog, const char *response, TdWindow *self)
{
  if (g_str_equal (response, "cancel"))
    return;
  if (g_str_equal (response, "detach"))
    td__run_detach (self, NULL);
  else if (self->runner)
    td_runner_stop (self->runner);
  else if (self->control)
    {
      td__window_send (self, "stop");
      td__window_let_go (self); /* stays until both were sent */
    }
  self->may_close = TRUE;
  gtk_window_close (GTK_WINDOW (self));
}

gboolean
td__window_ask_to_close (TdWindow *self)
{
  gboolean runs = (self->runner && td_runner_is_running (self->runner))
                  || (self->control && td_control_client_is_open (self->control));
  if (!runs || self->may_close)
    return FALSE;
  GtkWidget *dialog = adw_message_dialog_new (
      GTK_WINDOW (self), _ ("The Program Still Runs"),
      _ ("It can be stopped, or it can go on and be attached to again."));
  adw_message_dialog_add_responses (ADW_MESSAGE_DIALOG (dialog), "cancel", _ ("_Cancel"),
                                    "detach", _ ("_Keep Running"), "stop", _ ("_Stop Program"),
                                    NULL);
  adw_message_dialog_set_response_appearance (ADW_MESSAGE_DIALOG (dialog), "stop",
                                              ADW_RESPONSE_DESTRUCTIVE);
  adw_message_dialog_set_close_response (ADW_MESSAGE_DIALOG (dialog), "cancel");
  g_signal_connect_object (dialog, "response", G_CALLBACK (close_chosen), self, 0);
  gtk_window_present (GTK_WINDOW (dialog));
  return TRUE;
}
