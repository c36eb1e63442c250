/* What a file is that the window is given: a program to run, a recording, a folder of
 * recordings of ranks, a picture. SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>

#include "pages/td-picture-page.h"

/* A model is C text, a PyTorch script, an ONNX file or something that can be executed;
 * everything else must be a recording. */
static gboolean
is_program (const char *path)
{
  return g_str_has_suffix (path, ".c") || td_runner_is_script (path)
         || td_runner_is_model (path)
         || (!g_str_has_suffix (path, ".tdtape")
             && g_file_test (path, G_FILE_TEST_IS_EXECUTABLE)
             && g_file_test (path, G_FILE_TEST_IS_REGULAR));
}

static void
show_picture (TdWindow *self, const char *path)
{
  g_autoptr (GError) error = NULL;
  if (!self->picture_page)
    {
      self->picture_page = td_picture_page_new ();
      gtk_stack_add_named (self->pages, self->picture_page, "picture");
    }
  if (!td_picture_page_load (TD_PICTURE_PAGE (self->picture_page), path, &error))
    {
      td_window_show_message (self, "dialog-error-symbolic", _ ("This Picture Cannot Be Shown"),
                              error->message, NULL);
      return;
    }
  gtk_stack_set_visible_child (self->pages, self->picture_page);
  td__window_update_title (self);
}

static void
remember (TdWindow *self, const char *path, gboolean shown)
{
  g_autoptr (GFile) file = g_file_new_for_path (path);
  if (shown)
    td__window_remember (file);
}

/* A memory snapshot or a profiler's trace was made into a tape in the user's cache. */
static void
show_recording (TdWindow *self, const char *path, const char *tape, const char *why)
{
  if (tape)
    {
      td__window_load (self, path, tape, remember);
      return;
    }
  const char *kind = td_session_import_kind (path);
  g_autofree char *title = g_strdup_printf (_ ("This %s Cannot Be Read"), kind ? kind : "File");
  td_window_show_message (self, "dialog-warning-symbolic", title, why, why);
}

void
td_window_open (TdWindow *self, GFile *file)
{
  g_autofree char *path = g_file_get_path (file);
  td__window_forget_import (self);
  if (!path)
    {
      td_window_show_message (self, "dialog-error-symbolic", _ ("Not a Local File"),
                              _ ("Recordings and models are opened from local folders."), NULL);
      return;
    }
  if (!g_file_test (path, G_FILE_TEST_EXISTS))
    {
      g_autofree char *text = g_strdup_printf (_ ("%s does not exist."), path);
      td_window_show_message (self, "dialog-error-symbolic", _ ("No Such File"), text, NULL);
    }
  else if (td_picture_page_takes (path))
    show_picture (self, path);
  else if (g_file_test (path, G_FILE_TEST_IS_DIR))
    {
      if (td__window_open_ranks (self, path))
        td__window_remember (file);
    }
  else if (is_program (path))
    td_window_run (self, file, NULL);
  else
    td__window_import (self, path, show_recording);
}
