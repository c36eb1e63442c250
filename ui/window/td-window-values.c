/* Values: to the entry of the slice and the line that evaluates, and out of the inspector, all
 * of the slice on show, to the clipboard or into a file. SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "scene/td-scene.h"

/* Text of more values than these is for a file. */
#define MOST_COPIED 1000000

static TdTensor *
shown_values (TdWindow *self)
{
  TdTensor *shown = td_tensor_panel_get_shown (
      td_inspector_get_panel (td_workspace_get_inspector (self->workspace)));
  if (shown && shown->values && shown->n_total > 0)
    return shown;
  td__window_toast (self, shown && shown->n_total == 0 ? _ ("Nothing is in this slice")
                                                       : _ ("No values are recorded here"));
  return NULL;
}

void
td__run_slice (TdWindow *self, const char *parameter)
{
  TdInspector *inspector = td_workspace_get_inspector (self->workspace);
  TdTensorPanel *panel = td_inspector_get_panel (inspector);
  td_workspace_show_page (self->workspace, td_inspector_get_panel_name (inspector));
  td_tensor_panel_focus_slice (panel);
}

void
td__run_evaluate (TdWindow *self, const char *parameter)
{
  td_workspace_show_page (self->workspace, "evaluate");
  td_evaluate_page_focus (td_workspace_get_evaluate (self->workspace));
}

void
td__run_copy_values (TdWindow *self, const char *parameter)
{
  TdTensor *shown = shown_values (self);
  if (!shown)
    return;
  if (shown->n_total > MOST_COPIED)
    {
      td__window_toast (self, _ ("More than a million values: save them, or copy a slice"));
      return;
    }
  g_autofree char *text = td_tensor_print (shown, "csv");
  g_autofree char *said
      = g_strdup_printf ("Copied %" G_GUINT64_FORMAT " values", shown->n_total);
  gdk_clipboard_set_text (gtk_widget_get_clipboard (GTK_WIDGET (self)), text);
  td__window_toast (self, said);
}

/* ---- files ---- */

typedef struct
{
  TdTensor *tensor;
  char *path;
} Values;

static void
values_free (gpointer data)
{
  Values *values = data;
  td_tensor_free (values->tensor);
  g_free (values->path);
  g_free (values);
}

static gboolean
write_npy (const Values *v, GError **error)
{
  g_autoptr (GBytes) bytes = td_tensor_to_npy (v->tensor);
  gsize n;
  if (!bytes)
    {
      g_set_error (
          error, G_IO_ERROR, G_IO_ERROR_FAILED,
          "%s: an .npy file has all values, and of these only the first %" G_GUINT64_FORMAT
          " of %" G_GUINT64_FORMAT " are there; .csv leaves gaps",
          v->path, v->tensor->n_values, v->tensor->n_total);
      return FALSE;
    }
  const void *data = g_bytes_get_data (bytes, &n);
  return td_write_output (v->path, data, n, error);
}

static gboolean
write_csv (const Values *v, GError **error)
{
  g_autofree char *text = td_tensor_print (v->tensor, "csv");
  return td_write_output (v->path, text, strlen (text), error);
}

static void
write_values (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  const Values *v = data;
  g_autoptr (GError) error = NULL;
  gboolean good = FALSE;
  if (g_str_has_suffix (v->path, ".npy"))
    good = write_npy (v, &error);
  else if (g_str_has_suffix (v->path, ".csv"))
    good = write_csv (v, &error);
  else
    g_set_error (&error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                 "%s: values are saved as .npy or .csv", v->path);
  if (good)
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, g_steal_pointer (&error));
}

static void
values_written (GObject *source, GAsyncResult *result, gpointer data)
{
  TdWindow *self = TD_WINDOW (source);
  const Values *v = g_task_get_task_data (G_TASK (result));
  g_autoptr (GError) error = NULL;
  gboolean good = g_task_propagate_boolean (G_TASK (result), &error);
  if (!self->workspace) /* the window was closed meanwhile */
    return;
  if (!good)
    {
      td__window_show_info (self, GTK_MESSAGE_ERROR, error->message);
      return;
    }
  g_autofree char *text = g_strdup_printf (_ ("Saved %s"), v->path);
  td__window_toast (self, text);
}

void
td__run_save_values (TdWindow *self, const char *path)
{
  TdTensor *shown = shown_values (self);
  if (!shown)
    return;
  GTask *task = g_task_new (self, NULL, values_written, NULL);
  Values *values = g_new (Values, 1);
  *values = (Values){ td_tensor_ref (shown), g_strdup (path) };
  g_task_set_task_data (task, values, values_free);
  g_task_run_in_thread (task, write_values);
  g_object_unref (task);
}

void
td__run_export_values (TdWindow *self, const char *parameter)
{
  if (!shown_values (self))
    return;
  g_autofree char *name
      = g_strdup (td_inspector_get_title (td_workspace_get_inspector (self->workspace)));
  g_strdelimit (name, "/", '.');
  g_autofree char *file = g_strconcat (name, ".npy", NULL);
  td__window_ask_where (self, _ ("Save Values (.npy or .csv)"), file, td__run_save_values);
}
