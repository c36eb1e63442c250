/* Asks where something is to be saved. SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>

typedef struct
{
  TdWindow *window; /* held: the answer may come after it was closed */
  TdWindowSave save;
} Asked;

static void
place_chosen (GtkNativeDialog *dialog, int response, Asked *asked)
{
  if (response == GTK_RESPONSE_ACCEPT && asked->window->session)
    {
      g_autoptr (GFile) file = gtk_file_chooser_get_file (GTK_FILE_CHOOSER (dialog));
      g_autofree char *path = file ? g_file_get_path (file) : NULL;
      if (path)
        asked->save (asked->window, path);
    }
  g_object_unref (asked->window);
  g_free (asked);
  g_object_unref (dialog);
}

void
td__window_ask_where (TdWindow *self, const char *title, const char *name, TdWindowSave save)
{
  g_autofree char *valid = g_utf8_make_valid (name, -1);
  GtkFileChooserNative *dialog = gtk_file_chooser_native_new (
      title, GTK_WINDOW (self), GTK_FILE_CHOOSER_ACTION_SAVE, _ ("_Save"), _ ("_Cancel"));
  Asked *asked = g_new (Asked, 1);
  *asked = (Asked){ g_object_ref (self), save };
  gtk_file_chooser_set_current_name (GTK_FILE_CHOOSER (dialog), valid);
  gtk_native_dialog_set_modal (GTK_NATIVE_DIALOG (dialog), TRUE);
  g_signal_connect (dialog, "response", G_CALLBACK (place_chosen), asked);
  gtk_native_dialog_show (GTK_NATIVE_DIALOG (dialog));
}
