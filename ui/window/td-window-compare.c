/* The commands of the compare page: what to compare with, from difference to difference, the
 * list as text. SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "widgets/td-scene-view.h"

static TdComparePage *
page_of (TdWindow *self)
{
  return td_workspace_get_compare (self->workspace);
}

/* The page compares while it is on show. */
static TdComparePage *
show_page (TdWindow *self)
{
  gtk_stack_set_visible_child (self->pages, GTK_WIDGET (self->workspace));
  td_workspace_show_page (self->workspace, "compare");
  return page_of (self);
}

/* There is nothing to compare, or not yet. */
static void
say_why_not (TdWindow *self)
{
  const char *reason = td_compare_page_get_reason (page_of (self));
  td__window_toast (self, *reason ? reason : _ ("The comparison is still being made"));
}

void
td__run_compare (TdWindow *self, const char *parameter)
{
  gboolean there = strcmp (td_workspace_get_perspective (self->workspace), "compare") == 0;
  TdComparePage *page = show_page (self);
  if (there)
    td_compare_page_pick (page);
}

static void
compare_with (TdWindow *self, const char *what, const char *tape, const char *why)
{
  g_autoptr (GError) error = NULL;
  if (!tape)
    td__window_show_info (self, GTK_MESSAGE_ERROR, why);
  else if (!td_compare_page_compare_with (show_page (self), tape, &error))
    td__window_show_info (self, GTK_MESSAGE_ERROR, error->message);
}

/* What is no file is an iteration, or a rule that finds one. */
void
td__run_compare_with (TdWindow *self, const char *parameter)
{
  if (g_file_test (parameter, G_FILE_TEST_IS_REGULAR))
    td__window_import (self, parameter, compare_with);
  else
    compare_with (self, parameter, parameter, NULL);
}

void
td__run_compare_by (TdWindow *self, const char *parameter)
{
  td_compare_page_show_view (show_page (self), parameter);
}

static void
iteration_chosen (AdwMessageDialog *dialog, const char *response, TdWindow *self)
{
  GtkEditable *entry = GTK_EDITABLE (adw_message_dialog_get_extra_child (dialog));
  g_autofree char *text = g_strstrip (g_strdup (gtk_editable_get_text (entry)));
  char *end;
  if (!g_str_equal (response, "compare") || !self->session)
    return;
  g_ascii_strtoll (text, &end, 10);
  if (*text && !*end)
    td__run_compare_with (self, text);
  else
    td__window_toast (self, _ ("An iteration is a number from 0 on"));
}

void
td__run_compare_iteration (TdWindow *self, const char *parameter)
{
  GtkWidget *dialog
      = adw_message_dialog_new (GTK_WINDOW (self), _ ("Compare With an Iteration"),
                                _ ("Its number in the recording on the right"));
  GtkWidget *entry = gtk_entry_new ();
  gtk_entry_set_activates_default (GTK_ENTRY (entry), TRUE);
  gtk_entry_set_input_purpose (GTK_ENTRY (entry), GTK_INPUT_PURPOSE_DIGITS);
  gtk_accessible_update_property (GTK_ACCESSIBLE (entry), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Number of the iteration"), -1);
  adw_message_dialog_set_extra_child (ADW_MESSAGE_DIALOG (dialog), entry);
  adw_message_dialog_add_responses (ADW_MESSAGE_DIALOG (dialog), "cancel", _ ("_Cancel"),
                                    "compare", _ ("C_ompare"), NULL);
  adw_message_dialog_set_response_appearance (ADW_MESSAGE_DIALOG (dialog), "compare",
                                              ADW_RESPONSE_SUGGESTED);
  adw_message_dialog_set_default_response (ADW_MESSAGE_DIALOG (dialog), "compare");
  adw_message_dialog_set_close_response (ADW_MESSAGE_DIALOG (dialog), "cancel");
  g_signal_connect_object (dialog, "response", G_CALLBACK (iteration_chosen), self, 0);
  gtk_window_present (GTK_WINDOW (dialog));
  gtk_widget_grab_focus (entry);
}

static void
recording_chosen (GtkNativeDialog *dialog, int response, TdWindow *self)
{
  if (response == GTK_RESPONSE_ACCEPT && self->session)
    {
      g_autoptr (GFile) file = gtk_file_chooser_get_file (GTK_FILE_CHOOSER (dialog));
      g_autofree char *path = file ? g_file_get_path (file) : NULL;
      if (path)
        td__run_compare_with (self, path);
    }
  g_object_unref (dialog);
}

void
td__run_compare_recording (TdWindow *self, const char *parameter)
{
  GtkFileChooserNative *dialog = gtk_file_chooser_native_new (
      _ ("Compare With a Recording"), GTK_WINDOW (self), GTK_FILE_CHOOSER_ACTION_OPEN,
      _ ("C_ompare"), _ ("_Cancel"));
  g_autoptr (GtkFileFilter) filter = gtk_file_filter_new ();
  gtk_file_filter_set_name (filter, _ ("Recordings"));
  gtk_file_filter_add_pattern (filter, "*.tdtape");
  gtk_file_filter_add_pattern (filter, "*.npz");    /* a reference */
  gtk_file_filter_add_pattern (filter, "*.pickle"); /* a memory snapshot */
  gtk_file_chooser_add_filter (GTK_FILE_CHOOSER (dialog), filter);
  gtk_native_dialog_set_modal (GTK_NATIVE_DIALOG (dialog), TRUE);
  g_signal_connect_object (dialog, "response", G_CALLBACK (recording_chosen), self, 0);
  gtk_native_dialog_show (GTK_NATIVE_DIALOG (dialog));
}

static void
move_other (TdWindow *self, int direction)
{
  g_autoptr (GError) error = NULL;
  if (!td_compare_page_move_other (show_page (self), direction, &error))
    td__window_toast (self, error->message);
}

void
td__run_compare_previous (TdWindow *self, const char *parameter)
{
  move_other (self, -1);
}

void
td__run_compare_next (TdWindow *self, const char *parameter)
{
  move_other (self, 1);
}

static gboolean
is_known (TdComparePage *page)
{
  TdCompareSnapshots *snapshots = td_compare_page_get_snapshots (page);
  return snapshots ? td_compare_snapshots_get (snapshots) != NULL
                   : td_compare_page_get (page) != NULL;
}

static void
step (TdWindow *self, int direction)
{
  TdComparePage *page = show_page (self);
  guint n;
  if (td_compare_page_step (page, direction))
    return;
  td_compare_page_get_position (page, &n);
  if (!is_known (page))
    say_why_not (self);
  else if (n == 0)
    td__window_toast (self, td_compare_page_is_by_layer (page)
                                ? td_compare_page_get_sentence (page)
                                : _ ("There are no differences"));
  else
    td__window_toast (self, direction > 0 ? _ ("That was the last difference")
                                          : _ ("That was the first difference"));
}

void
td__run_next_difference (TdWindow *self, const char *parameter)
{
  step (self, 1);
}

void
td__run_previous_difference (TdWindow *self, const char *parameter)
{
  step (self, -1);
}

void
td__run_toggle_numbers (TdWindow *self, const char *parameter)
{
  TdComparePage *page = show_page (self);
  td_compare_page_set_numbers (page, !td_compare_page_get_numbers (page));
}

/* What is on show; NULL: there is nothing, or not yet. Owner: the caller. */
static char *
dup_differences (TdComparePage *page)
{
  TdCompareSnapshots *snapshots = td_compare_page_get_snapshots (page);
  const gboolean by_layer = td_compare_page_is_by_layer (page);
  const TdMemoryCompare *memory = snapshots ? td_compare_snapshots_get (snapshots) : NULL;
  const TdCompare *compare = td_compare_page_get (page);
  const TdPort *port = td_compare_page_get_port (page);
  if (memory)
    return td_memory_compare_print (memory, "text", TRUE);
  if (by_layer)
    return port ? td_port_print (port, "text") : NULL;
  return compare ? td_compare_print (compare, "text", FALSE) : NULL;
}

void
td__run_copy_differences (TdWindow *self, const char *parameter)
{
  g_autofree char *text = dup_differences (show_page (self));
  if (!text)
    {
      say_why_not (self);
      return;
    }
  gdk_clipboard_set_text (gtk_widget_get_clipboard (GTK_WIDGET (self)), text);
  td__window_toast (self, _ ("Copied"));
}

/* "name.svg" and "b" give "name-b.svg". */
static char *
beside (const char *path, const char *letter)
{
  const char *dot = strrchr (path, '.'), *slash = strrchr (path, '/');
  gsize n = dot && dot > slash ? (gsize)(dot - path) : strlen (path);
  return g_strdup_printf ("%.*s-%s%s", (int)n, path, letter, path + n);
}

gboolean
td__window_save_compare (TdWindow *self, const char *format, const char *path, GError **error)
{
  static const char *const letters[TD_N_SIDES] = { "a", "b" };
  for (int side = 0; side < TD_N_SIDES; side++)
    {
      TdCompareSide *half = td_compare_page_get_side (page_of (self), (TdSide)side);
      TdScene *scene = td_graph_view_get_scene (td_compare_side_get_view (half));
      g_autofree char *name = beside (path, letters[side]);
      if (scene
          && !td_scene_export (scene, format, name, strcmp (format, "png") == 0 ? 2.0 : 1.0,
                               td_scene_view_get_theme (), error))
        return FALSE;
    }
  return TRUE;
}
