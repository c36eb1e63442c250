/* The compare page by layer: a port check of what is on show, in a thread with readers of its
 * own, made when the table of layers is looked at. SPDX-License-Identifier: MIT */
#include "pages/td-compare-page-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

/* What a thread checks, and how; the task owns it. */
typedef struct
{
  TdCompareJob *pair;
  char *names;
  TdPortTolerance tolerance;
} Check;

static void
check_free (gpointer data)
{
  Check *check = data;
  td__compare_job_free (check->pair);
  g_free (check->names);
  g_free (check);
}

static void
check_in_thread (GTask *task, gpointer page, gpointer data, GCancellable *cancellable)
{
  const Check *check = data;
  const TdCompareJob *job = check->pair;
  TdPortSource sources[TD_N_SIDES] = { { NULL } };
  GError *error = NULL;
  char why[256] = "";
  TdPort *port = NULL;
  for (int side = 0; side < TD_N_SIDES; side++)
    sources[side]
        = (TdPortSource){ job->of[side],
                          td_tape_reader_open_bounded (job->paths[side], 1, why, sizeof why),
                          job->is_reference[side] };
  if (sources[TD_SIDE_A].reader && sources[TD_SIDE_B].reader)
    port = td_port_new (&sources[TD_SIDE_A], &sources[TD_SIDE_B], check->names,
                        check->tolerance, &error);
  else
    error = g_error_new_literal (G_IO_ERROR, G_IO_ERROR_FAILED, why);
  for (int side = 0; side < TD_N_SIDES; side++)
    if (sources[side].reader)
      td_tape_reader_free (sources[side].reader);
  if (port)
    g_task_return_pointer (task, port, (GDestroyNotify)td_port_free);
  else
    g_task_return_error (task, error);
}

static void
checked (GObject *source, GAsyncResult *result, gpointer data)
{
  TdComparePage *self = data;
  g_autoptr (GError) error = NULL;
  TdPort *port = g_task_propagate_pointer (G_TASK (result), &error);
  if (g_task_get_cancellable (G_TASK (result)) != self->port_job)
    {
      td_port_free (port); /* something else is looked at meanwhile */
      return;
    }
  g_clear_object (&self->port_job);
  self->port = port;
  g_autofree char *valid = error ? g_utf8_make_valid (error->message, -1) : NULL;
  if (valid && *valid)
    valid[0] = g_ascii_toupper (valid[0]);
  td_compare_layers_show (self->layers, port, valid);
  self->port_known (self);
}

void
td__compare_page_forget_port (TdComparePage *self)
{
  if (self->port_job)
    g_cancellable_cancel (self->port_job);
  g_clear_object (&self->port_job);
  td_compare_layers_show (self->layers, NULL, NULL);
  g_clear_pointer (&self->port, td_port_free);
  self->port_asked = FALSE;
}

void
td__compare_page_check_port (TdComparePage *self)
{
  const char *view = gtk_stack_get_visible_child_name (self->views);
  if (self->port_asked || !self->of[TD_SIDE_A])
    return;
  if (!td__compare_page_has_reference (self)
      && (strcmp (view, "by-layer") != 0 || !gtk_widget_get_mapped (GTK_WIDGET (self->layers))))
    return;
  self->port_asked = TRUE;
  td_compare_layers_show (self->layers, NULL, _ ("Comparing layers…"));
  self->port_job = g_cancellable_new ();
  g_autoptr (GTask) task = g_task_new (self, self->port_job, checked, self);
  g_task_set_check_cancellable (task, FALSE);
  Check *check = g_new0 (Check, 1);
  check->pair = td__compare_job_new (self, self->of);
  check->names = g_strdup (self->port_names);
  check->tolerance = td_compare_limits_get (td_compare_layers_get_limits (self->layers));
  g_task_set_task_data (task, check, check_free);
  g_task_run_in_thread (task, check_in_thread);
}

void
td__compare_page_check_again (TdComparePage *self)
{
  td__compare_page_forget_port (self);
  td__compare_page_check_port (self);
  self->port_known (self); /* not yet */
}

gboolean
td__compare_page_has_reference (TdComparePage *self)
{
  return (self->session && td_session_is_reference (self->session))
         || (self->other && td_session_is_reference (self->other));
}

char *
td__compare_page_dup_sentence (TdComparePage *self)
{
  if (self->port)
    return td_port_dup_sentence (self->port);
  return g_strdup (td_compare_layers_get_text (self->layers)); /* that it is made, or why not */
}

/* Where backward alone differs, that is what is meant. */
void
td__compare_page_show_layer (TdComparePage *self, guint row)
{
  TdPortRow found;
  td_port_get_row (self->port, row, &found);
  const gboolean backward = found.out->verdict != TD_PORT_DIFFERS && found.backward
                            && found.backward->verdict == TD_PORT_DIFFERS;
  td__compare_page_show_events (self, backward ? found.backward_event : found.event);
  g_autofree char *worst = td_port_dup_worst (&found);
  g_autofree char *text = g_strdup_printf (_ ("Layer %u of %u: %s, %s: %s"), row + 1,
                                           td_port_get_n_rows (self->port),
                                           found.path[TD_SIDE_A], found.path[TD_SIDE_B], worst);
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  g_signal_emit_by_name (self, "announce", valid);
}

const TdPort *
td_compare_page_get_port (TdComparePage *self)
{
  return self->port;
}
