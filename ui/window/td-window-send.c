/* One command to the program; an error that it answers is said.
 * SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

static void
command_answered (TdControlClient *control, JsonObject *answer, gpointer data)
{
  g_autoptr (TdWindow) self = data;
  if (!answer)
    return;
  const char *error = json_object_get_string_member_with_default (answer, "error", NULL);
  if (error)
    {
      g_autofree char *valid = g_utf8_make_valid (error, -1);
      td__window_toast (self, valid);
    }
}

void
td__window_send (TdWindow *self, const char *command)
{
  self->next_poll = 0; /* the answer is to be seen at once */
  if (self->control)
    td_control_client_send (self->control, command, command_answered, g_object_ref (self));
}
