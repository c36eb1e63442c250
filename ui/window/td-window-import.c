/* Files that are made into tapes before they can be shown: a process of its own does it, its
 * progress is on show after a second, and what was on show before comes back when it is
 * cancelled. SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>
#include <signal.h>

#define SHOW_MS 1000

void
td__window_show_opening (TdWindow *self, const char *doing)
{
  g_autofree char *name = g_filename_display_basename (self->import_path);
  g_autofree char *title = g_strdup_printf (_ ("Opening %s"), name);
  GtkWidget *work = self->session ? GTK_WIDGET (self->workspace) : self->start_page;
  GtkWidget *page = gtk_stack_get_visible_child (self->pages);
  self->import_from = page == GTK_WIDGET (self->message) ? work : page;
  td_window_show_message (self, "document-open-symbolic", title, doing, NULL);
  gtk_widget_set_visible (GTK_WIDGET (self->message_progress), TRUE);
  gtk_widget_set_visible (self->message_cancel, TRUE);
  gtk_widget_grab_focus (self->message_cancel);
}

void
td__window_hide_opening (TdWindow *self)
{
  if (self->import_from)
    gtk_stack_set_visible_child (self->pages, self->import_from);
  self->import_from = NULL;
  td__window_update_actions (self);
}

static void
fill_page (TdWindow *self, double part, const char *doing)
{
  static const struct
  {
    const char *name, *text;
  } stages[] = { { "reading", N_ ("Reading the file") },
                 { "arranging", N_ ("Putting what was read in order") },
                 { "writing", N_ ("Writing the recording") } };
  const char *text = _ (stages[0].text);
  for (guint i = 0; i < G_N_ELEMENTS (stages); i++)
    if (g_str_equal (stages[i].name, doing))
      text = _ (stages[i].text);
  g_autofree char *line
      = part > 0 ? g_strdup_printf ("%s: %.0f %%", text, part * 100) : g_strdup (text);
  adw_status_page_set_description (self->message, line);
  gtk_progress_bar_set_fraction (self->message_progress, part);
}

static gboolean
show (gpointer data)
{
  TdWindow *self = data;
  const char *doing;
  double part = td_job_get_part (self->import, &doing);
  self->importing = 0;
  td__window_show_opening (self, "");
  fill_page (self, part, doing);
  return G_SOURCE_REMOVE;
}

static void
progressed (TdJob *import, double part, const char *doing, TdWindow *self)
{
  if (self->import_from)
    fill_page (self, part, doing);
}

void
td__window_forget_load (TdWindow *self)
{
  if (!self->loading)
    return;
  g_clear_handle_id (&self->importing, g_source_remove);
  g_cancellable_cancel (self->loading);
  g_clear_object (&self->loading);
  td__window_hide_opening (self);
}

/* The job is over for this window: the page that it hid is there again. */
void
td__window_forget_import (TdWindow *self)
{
  td__window_forget_load (self);
  if (!self->import)
    return;
  g_clear_handle_id (&self->importing, g_source_remove);
  td_job_drop (g_steal_pointer (&self->import), self);
  td__window_hide_opening (self);
}

/* What ended the process itself may be over: memory that was short, somebody's kill. */
static void
offer_again (TdWindow *self, int number)
{
  if (number && gtk_stack_get_visible_child (self->pages) == GTK_WIDGET (self->message))
    gtk_widget_set_visible (self->message_again, TRUE);
}

static void
ended (TdJob *import, const char *text, TdWindow *self)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_strdup (self->import_path);
  g_autofree char *tape
      = text && !*text ? td_import_take (import, self->import_path, &error) : NULL;
  int number = text ? td_job_get_signal (import) : 0;
  g_autofree char *why
      = number ? g_strdup_printf (
            _ ("%s%s: nothing of it was kept, and opening the file again tries again"), text,
            number == SIGKILL ? ", as the system does when memory is short" : "")
               : g_strdup (error ? error->message : text);
  gboolean shown = self->import_from != NULL;
  td__window_forget_import (self);
  if (!text)
    {
      td__window_toast (self, _ ("Cancelled"));
      return;
    }
  self->import_shown = shown;
  self->imported (self, path, tape, why);
  self->import_shown = FALSE;
  offer_again (self, number);
}

void
td__window_import (TdWindow *self, const char *path, TdImported done)
{
  g_autoptr (GError) error = NULL;
  td__window_forget_import (self);
  if (!td_session_import_kind (path))
    {
      done (self, path, path, NULL);
      return;
    }
  g_autofree char *tape = td_session_dup_import (path, &error);
  if (tape && !g_file_test (tape, G_FILE_TEST_EXISTS))
    {
      g_free (self->import_path);
      self->import_path = g_strdup (path);
      self->imported = done;
      self->import = td_import_new (path, &error);
    }
  if (!self->import)
    {
      done (self, path, error ? NULL : tape, error ? error->message : NULL);
      return;
    }
  g_signal_connect (self->import, "progress", G_CALLBACK (progressed), self);
  g_signal_connect (self->import, "ended", G_CALLBACK (ended), self);
  self->importing = g_timeout_add (SHOW_MS, show, self);
}

void
td__run_cancel_import (TdWindow *self, const char *parameter)
{
  if (self->import)
    td_job_cancel (self->import);
  else if (self->loading)
    {
      td__window_forget_load (self);
      td__window_toast (self, _ ("Cancelled"));
    }
}

void
td__run_import_again (TdWindow *self, const char *parameter)
{
  g_autofree char *path = g_strdup (self->import_path);
  if (path && !self->import)
    td__window_import (self, path, self->imported);
}
