/* The page of breakpoints and the program: what the page asks goes there, what the program has
 * comes back. SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <string.h>

static gboolean
is_live (TdWindow *self)
{
  return self->control && td_control_client_is_open (self->control);
}

static TdBreaksPage *
page_of (TdWindow *self)
{
  return td_workspace_get_breaks (self->workspace);
}

/* ---- what there is ---- */

static void
listed (TdControlClient *control, JsonObject *answer, gpointer data)
{
  g_autoptr (TdWindow) self = data;
  JsonArray *breaks = answer && json_object_has_member (answer, "breaks")
                          ? json_object_get_array_member (answer, "breaks")
                          : NULL;
  guint n = breaks ? json_array_get_length (breaks) : 0;
  g_autofree TdBreakRow *rows = g_new0 (TdBreakRow, n + 1);
  if (!self->workspace)
    return;
  for (guint i = 0; i < n; i++)
    {
      JsonObject *row = json_array_get_object_element (breaks, i);
      rows[i] = (TdBreakRow){
        .id = json_object_get_int_member_with_default (row, "id", 0),
        .text = json_object_get_string_member_with_default (row, "text", ""),
        .enabled = json_object_get_boolean_member_with_default (row, "enabled", TRUE),
        .n_hits = (guint64)json_object_get_int_member_with_default (row, "hits", 0),
      };
    }
  td_breaks_page_set_rows (page_of (self), rows, n, is_live (self));
}

void
td__window_list_breaks (TdWindow *self)
{
  if (!self->workspace || !gtk_widget_get_mapped (GTK_WIDGET (page_of (self))))
    return; /* it asks when it comes on show */
  if (is_live (self))
    td_control_client_send (self->control, "breaks", listed, g_object_ref (self));
  else
    td_breaks_page_set_rows (page_of (self), NULL, 0, FALSE);
}

/* ---- what is asked ---- */

static void
answered (TdControlClient *control, JsonObject *answer, gpointer data)
{
  g_autoptr (TdWindow) self = data;
  const char *error = answer
                          ? json_object_get_string_member_with_default (answer, "error", NULL)
                          : "The program has ended";
  g_autofree char *valid = error ? g_utf8_make_valid (error, -1) : NULL;
  if (!self->workspace)
    return;
  td_breaks_page_set_error (page_of (self), valid);
  td__window_list_breaks (self);
}

/* The text that a command sets, for the window takes back what it has set before it lets the
 * program go. NULL: it sets none. */
static const char *
text_of (const char *command)
{
  const char *rest;
  if (g_str_has_prefix (command, "break "))
    return command + strlen ("break ");
  if (!g_str_has_prefix (command, "rebreak "))
    return NULL;
  rest = strchr (command + strlen ("rebreak "), ' ');
  if (!rest || g_str_equal (rest, " on") || g_str_equal (rest, " off"))
    return NULL;
  return rest + 1;
}

static void
asked (TdBreaksPage *page, const char *command, TdWindow *self)
{
  const char *text = text_of (command);
  if (!is_live (self))
    return;
  if (text && !g_ptr_array_find_with_equal_func (self->own_breaks, text, g_str_equal, NULL))
    g_ptr_array_add (self->own_breaks, g_strdup (text));
  td_control_client_send (self->control, command, answered, g_object_ref (self));
}

void
td__window_connect_breaks (TdWindow *self)
{
  g_signal_connect_object (page_of (self), "wanted", G_CALLBACK (td__window_list_breaks), self,
                           G_CONNECT_SWAPPED);
  g_signal_connect_object (page_of (self), "asked", G_CALLBACK (asked), self, 0);
}

void
td__run_break_when (TdWindow *self, const char *parameter)
{
  td_workspace_show_page (self->workspace, "breakpoints");
  td_breaks_page_focus_new (page_of (self));
}
