/* One listener for each widget, with the key that it stands for at the moment.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-hover-row.h"

typedef struct
{
  GtkWidget *lit;     /* weak */
  TdSession *session; /* weak */
  guint64 key;
  gulong handler;
  gboolean inside; /* the pointer or the focus is here */
} HoverRow;

static void
forget (HoverRow *row)
{
  if (row->session && row->handler)
    g_signal_handler_disconnect (row->session, row->handler);
  row->handler = 0;
  if (row->inside && row->session && td_session_get_hover (row->session) == row->key)
    td_session_set_hover (row->session, 0); /* the row went away below the pointer */
  row->inside = FALSE;
  if (row->lit)
    gtk_widget_remove_css_class (row->lit, "td-hover");
  g_clear_weak_pointer (&row->session);
  g_clear_weak_pointer (&row->lit);
}

static void
row_free (gpointer data)
{
  forget (data);
  g_free (data);
}

static void
show_hover (HoverRow *row)
{
  if (!row->lit || !row->session)
    return;
  if (row->key != 0 && td_session_get_hover (row->session) == row->key)
    gtk_widget_add_css_class (row->lit, "td-hover");
  else
    gtk_widget_remove_css_class (row->lit, "td-hover");
}

static void
entered (HoverRow *row)
{
  row->inside = TRUE;
  if (row->session)
    td_session_set_hover (row->session, row->key);
}

static void
left (HoverRow *row)
{
  row->inside = FALSE;
  if (row->session && td_session_get_hover (row->session) == row->key)
    td_session_set_hover (row->session, 0);
}

static HoverRow *
new_row (GtkWidget *widget)
{
  HoverRow *row = g_new0 (HoverRow, 1);
  GtkEventController *motion = gtk_event_controller_motion_new ();
  GtkEventController *focus = gtk_event_controller_focus_new ();
  g_object_set_data_full (G_OBJECT (widget), "hover-row", row, row_free);
  g_signal_connect_swapped (motion, "enter", G_CALLBACK (entered), row);
  g_signal_connect_swapped (motion, "leave", G_CALLBACK (left), row);
  gtk_widget_add_controller (widget, motion);
  g_signal_connect_swapped (focus, "enter", G_CALLBACK (entered), row);
  g_signal_connect_swapped (focus, "leave", G_CALLBACK (left), row);
  gtk_widget_add_controller (widget, focus);
  return row;
}

void
td_hover_row_set (GtkWidget *widget, TdSession *session, guint64 key, GtkWidget *lit)
{
  HoverRow *row = g_object_get_data (G_OBJECT (widget), "hover-row");
  if (!row)
    row = new_row (widget);
  if (row->key == key && row->session == session && row->lit == lit)
    return; /* the pointer may be on it */
  forget (row);
  row->key = key;
  if (!session || key == 0)
    return;
  g_set_weak_pointer (&row->session, session);
  g_set_weak_pointer (&row->lit, lit);
  row->handler
      = g_signal_connect_swapped (session, "hover-changed", G_CALLBACK (show_hover), row);
  show_hover (row);
}
