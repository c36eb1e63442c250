/* The breakpoints that this window sets: on the selection, for one run to it, and how they are
 * taken back before the program is let go. The program keeps the list; the window knows which
 * of it is its own.
 * SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

/* ---- the list in the program ---- */

/* Return the id of the breakpoint `text` in the answer to `breaks`; 0: there is none. */
static gint64
find_break (JsonObject *answer, const char *text)
{
  JsonArray *breaks = answer && json_object_has_member (answer, "breaks")
                          ? json_object_get_array_member (answer, "breaks")
                          : NULL;
  for (guint i = 0; breaks && i < json_array_get_length (breaks); i++)
    {
      JsonObject *row = json_array_get_object_element (breaks, i);
      if (g_str_equal (json_object_get_string_member_with_default (row, "text", ""), text))
        return json_object_get_int_member_with_default (row, "id", 0);
    }
  return 0;
}

static void
send_unbreak (TdControlClient *control, gint64 id)
{
  g_autofree char *command = g_strdup_printf ("unbreak %" G_GINT64_FORMAT, id);
  td_control_client_send (control, command, NULL, NULL);
}

static void
forget (TdWindow *self, const char *text)
{
  guint i;
  if (g_ptr_array_find_with_equal_func (self->own_breaks, text, g_str_equal, &i))
    g_ptr_array_remove_index (self->own_breaks, i);
}

void
td__window_break (TdWindow *self, const char *text)
{
  g_autofree char *command = g_strdup_printf ("break %s", text);
  forget (self, text);
  g_ptr_array_add (self->own_breaks, g_strdup (text));
  td__window_send (self, command);
}

/* ---- toggling ---- */

typedef struct
{
  TdWindow *window; /* owned */
  char *text;
} Asked;

static Asked *
ask_about (TdWindow *self, const char *text)
{
  Asked *asked = g_new (Asked, 1);
  *asked = (Asked){ g_object_ref (self), g_strdup (text) };
  return asked;
}

static void
asked_free (Asked *asked)
{
  g_object_unref (asked->window);
  g_free (asked->text);
  g_free (asked);
}

static gboolean
show_error (TdWindow *self, JsonObject *answer)
{
  const char *error = answer
                          ? json_object_get_string_member_with_default (answer, "error", NULL)
                          : "The program has ended";
  if (!error || !self->workspace)
    return !self->workspace;
  g_autofree char *valid = g_utf8_make_valid (error, -1);
  td__window_toast (self, valid);
  return TRUE;
}

static void
toggle_answered (TdControlClient *control, JsonObject *answer, gpointer data)
{
  Asked *asked = data;
  TdWindow *self = asked->window;
  gint64 id = find_break (answer, asked->text);
  if (show_error (self, answer))
    {
      asked_free (asked);
      return;
    }
  g_autofree char *words
      = g_strdup_printf (id ? _ ("Breakpoint removed: %s") : _ ("Breakpoint: %s"), asked->text);
  if (id)
    {
      forget (self, asked->text);
      send_unbreak (control, id);
    }
  else
    td__window_break (self, asked->text);
  td__window_toast (self, words);
  td__window_list_breaks (self);
  asked_free (asked);
}

void
td__window_toggle_break (TdWindow *self, const char *text)
{
  td_control_client_send (self->control, "breaks", toggle_answered, ask_about (self, text));
}

/* ---- running to one place ---- */

static void
run_to_answered (TdControlClient *control, JsonObject *answer, gpointer data)
{
  Asked *asked = data;
  TdWindow *self = asked->window;
  if (!show_error (self, answer))
    {
      self->once = json_object_get_int_member_with_default (answer, "id", 0);
      td_session_set_follow (self->session, TRUE);
      td__window_send (self, "continue");
    }
  asked_free (asked);
}

void
td__window_run_to (TdWindow *self, const char *text)
{
  g_autofree char *command = g_strdup_printf ("break %s", text);
  td__window_end_run_to (self);
  td_control_client_send (self->control, command, run_to_answered, ask_about (self, text));
}

void
td__window_end_run_to (TdWindow *self)
{
  if (self->once && self->control)
    send_unbreak (self->control, self->once);
  self->once = 0;
}

/* ---- letting the program go ---- */

typedef struct
{
  TdControlClient *control; /* owned */
  GPtrArray *texts;         /* owned */
  GApplication *app;        /* held until the program has heard of it; owned */
  TdWindow *window;         /* owned */
  gint64 once;
} Letting;

static void
let_go (TdControlClient *control, JsonObject *answer, gpointer data)
{
  Letting *letting = data;
  td_control_client_close (control);
  if (letting->window->workspace)
    td__window_update_actions (letting->window);
  g_application_release (letting->app);
  g_object_unref (letting->app);
  g_object_unref (letting->window);
  g_ptr_array_unref (letting->texts);
  g_object_unref (letting->control);
  g_free (letting);
}

static void
clear_and_continue (TdControlClient *control, JsonObject *answer, gpointer data)
{
  Letting *letting = data;
  for (guint i = 0; i < letting->texts->len; i++)
    {
      gint64 id = find_break (answer, g_ptr_array_index (letting->texts, i));
      if (id)
        send_unbreak (control, id);
    }
  if (letting->once)
    send_unbreak (control, letting->once);
  td_control_client_send (control, "continue", let_go, letting);
}

void
td__window_let_go (TdWindow *self)
{
  if (!self->control || !td_control_client_is_open (self->control))
    return;
  Letting *letting = g_new0 (Letting, 1);
  letting->control = g_steal_pointer (&self->control);
  letting->window = g_object_ref (self);
  letting->app = g_object_ref (g_application_get_default ());
  letting->once = self->once;
  letting->texts = g_steal_pointer (&self->own_breaks);
  self->own_breaks = g_ptr_array_new_with_free_func (g_free);
  self->once = 0;
  g_application_hold (letting->app);
  td_control_client_send (letting->control, "breaks", clear_and_continue, letting);
  td__window_update_actions (self);
}
