/* A copy of the recording, which nothing clears away, and the prompt that goes to an iteration,
 * a place in the source or an operation. SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

/* ---- a copy ---- */

typedef struct
{
  char *from, *to;
} Copy;

static void
copy_free (gpointer data)
{
  Copy *copy = data;
  g_free (copy->from);
  g_free (copy->to);
  g_free (copy);
}

/* A recording that grows is copied up to where it is whole; one that has ended likewise. */
static void
copy_tape (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  Copy *copy = data;
  char error[256] = "cannot be written";
  g_autofree char *part = g_strconcat (copy->to, ".part", NULL);
  unlink (part);
  if (td_tape_repair (copy->from, part, error, sizeof error) && g_rename (part, copy->to) == 0)
    g_task_return_boolean (task, TRUE);
  else
    {
      unlink (part);
      g_task_return_new_error (task, G_IO_ERROR, G_IO_ERROR_FAILED, "%s: %s", copy->to, error);
    }
}

static void
copied (GObject *source, GAsyncResult *result, gpointer data)
{
  TdWindow *self = TD_WINDOW (source);
  Copy *copy = g_task_get_task_data (G_TASK (result));
  g_autoptr (GError) error = NULL;
  gboolean good = g_task_propagate_boolean (G_TASK (result), &error);
  if (!self->workspace) /* the window was closed meanwhile */
    return;
  if (!good)
    {
      td__window_show_info (self, GTK_MESSAGE_ERROR, error->message);
      return;
    }
  g_autofree char *text = g_strdup_printf (_ ("Saved %s"), copy->to);
  g_autoptr (GFile) file = g_file_new_for_path (copy->to);
  td__window_remember (file);
  td__window_toast (self, text);
}

static gboolean
is_same_file (const char *a, const char *b)
{
  GStatBuf x, y;
  return g_stat (a, &x) == 0 && g_stat (b, &y) == 0 && x.st_dev == y.st_dev
         && x.st_ino == y.st_ino;
}

void
td__window_save_copy (TdWindow *self, const char *path)
{
  if (is_same_file (path, td_session_get_path (self->session)))
    {
      td__window_toast (self, _ ("That is the recording itself"));
      return;
    }
  GTask *task = g_task_new (self, NULL, copied, NULL);
  Copy *copy = g_new (Copy, 1);
  *copy = (Copy){ g_strdup (td_session_get_path (self->session)), g_strdup (path) };
  g_task_set_task_data (task, copy, copy_free);
  g_task_run_in_thread (task, copy_tape);
  g_object_unref (task);
}

void
td__run_save_copy (TdWindow *self, const char *parameter)
{
  g_autofree char *name = g_strconcat (td_session_get_name (self->session), ".tdtape", NULL);
  td__window_ask_where (self, _ ("Save a Copy of the Recording"), name, td__window_save_copy);
}

/* ---- going there ---- */

/* A number is an iteration, something with = in it a link; all else is looked for among
 * operations, layers and places in the source. Returns FALSE when nothing is there. */
gboolean
td__window_go_to_text (TdWindow *self, const char *text)
{
  g_autofree char *words = g_strstrip (g_strdup (text));
  char *end;
  gint64 number = g_ascii_strtoll (words, &end, 10);
  if (!*words)
    return FALSE;
  if (!*end)
    {
      td_session_set_moment (self->session, number,
                             td_session_get_moment (self->session).event);
      return td_session_get_moment (self->session).iteration == number;
    }
  if (td_link_is (words))
    return td_window_open_link (self, words);
  if (strchr (words, '='))
    {
      td__run_go_to (self, words);
      return TRUE;
    }
  return td_graph_page_search (td_workspace_get_graph (self->workspace), words) > 0;
}

static void
place_chosen (AdwMessageDialog *dialog, const char *response, TdWindow *self)
{
  GtkEditable *entry = GTK_EDITABLE (adw_message_dialog_get_extra_child (dialog));
  const char *text = gtk_editable_get_text (entry);
  if (!g_str_equal (response, "go") || !self->session || td__window_go_to_text (self, text))
    return;
  g_autofree char *words = g_strdup_printf (_ ("Nothing here is called “%s”"), text);
  td__window_toast (self, words);
}

void
td__run_go_to_place (TdWindow *self, const char *parameter)
{
  GtkWidget *dialog
      = adw_message_dialog_new (GTK_WINDOW (self), _ ("Go To"),
                                _ ("The number of an iteration, an operation, a "
                                   "layer, a place such as model.c:42, or a link"));
  GtkWidget *entry = gtk_entry_new ();
  gtk_entry_set_activates_default (GTK_ENTRY (entry), TRUE);
  gtk_accessible_update_property (GTK_ACCESSIBLE (entry), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Where to go"), -1);
  adw_message_dialog_set_extra_child (ADW_MESSAGE_DIALOG (dialog), entry);
  adw_message_dialog_add_responses (ADW_MESSAGE_DIALOG (dialog), "cancel", _ ("_Cancel"), "go",
                                    _ ("_Go"), NULL);
  adw_message_dialog_set_response_appearance (ADW_MESSAGE_DIALOG (dialog), "go",
                                              ADW_RESPONSE_SUGGESTED);
  adw_message_dialog_set_default_response (ADW_MESSAGE_DIALOG (dialog), "go");
  adw_message_dialog_set_close_response (ADW_MESSAGE_DIALOG (dialog), "cancel");
  g_signal_connect_object (dialog, "response", G_CALLBACK (place_chosen), self, 0);
  gtk_window_present (GTK_WINDOW (dialog));
  gtk_widget_grab_focus (entry);
}
