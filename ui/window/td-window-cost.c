/* What recording costs the program of the window: asked of its supervisor once a second, which
 * does not ask the program, and shown on the deck.
 * SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#define ASK_EVERY_MS 1000

static guint64
number_of (JsonObject *answer, const char *key)
{
  return (guint64)json_object_get_int_member_with_default (answer, key, 0);
}

static void
status_answered (TdControlClient *control, JsonObject *answer, gpointer data)
{
  g_autoptr (TdWindow) self = data;
  if (!self->workspace || control != self->control || !answer
      || !json_object_get_boolean_member_with_default (answer, "ok", FALSE))
    return;
  const TdCost cost = {
    .cost_ns = number_of (answer, "cost_ns"),
    .ran_ns = number_of (answer, "ran_ns"),
    .n_waits = number_of (answer, "stalls"),
    .waited_ns = number_of (answer, "stalled_ns"),
    .tape_bytes = number_of (answer, "tape_bytes"),
    .is_lost = json_object_get_boolean_member_with_default (answer, "lost", FALSE),
  };
  td_workspace_set_cost (self->workspace, &cost);
}

static gboolean
ask (gpointer data)
{
  TdWindow *self = data;
  if (!self->control || !td_control_client_is_open (self->control))
    {
      self->asking_cost = 0;
      return G_SOURCE_REMOVE;
    }
  td_control_client_send (self->control, "status", status_answered, g_object_ref (self));
  return G_SOURCE_CONTINUE;
}

void
td__window_ask_cost (TdWindow *self)
{
  td__window_end_cost (self);
  if (self->workspace)
    td_workspace_set_cost (self->workspace, NULL);
  self->asking_cost = g_timeout_add (ASK_EVERY_MS, ask, self);
}

void
td__window_end_cost (TdWindow *self)
{
  g_clear_handle_id (&self->asking_cost, g_source_remove);
}
