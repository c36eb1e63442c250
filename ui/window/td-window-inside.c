/* Inside a fused group of the live program: the commands `inside` and `inside K`, answered for
 * the inspector's page. Nothing that comes is trusted. SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <unistd.h>

typedef struct
{
  TdInsidePage *page;
  int k; /* -1: which group */
  guint token;
} Request;

static void
take_group (const Request *r, JsonObject *answer)
{
  JsonNode *node = json_object_get_member (answer, "steps");
  JsonArray *steps = node && JSON_NODE_HOLDS_ARRAY (node) ? json_node_get_array (node) : NULL;
  guint n = steps ? json_array_get_length (steps) : 0;
  g_autofree const char **ops = g_new0 (const char *, n + 1);
  for (guint i = 0; i < n; i++)
    {
      JsonNode *step = json_array_get_element (steps, i);
      ops[i] = JSON_NODE_HOLDS_OBJECT (step) ? json_object_get_string_member_with_default (
                   json_node_get_object (step), "op", "")
                                             : "";
    }
  td_inside_page_take_group (
      r->page, r->token, ops, n,
      (guint)CLAMP (json_object_get_int_member_with_default (answer, "n", 0), 0, G_MAXINT),
      json_object_get_boolean_member_with_default (answer, "ran", FALSE));
}

static void
take_result (const Request *r, JsonObject *answer, int fd)
{
  TdTensor *tensor = td__window_take_tensor (answer, fd);
  if (tensor)
    td_inside_page_take (r->page, r->token, (guint)r->k, tensor);
  else
    td_inside_page_take_error (r->page, r->token, "the program's answer cannot be read");
}

static void
answered (TdControlClient *control, JsonObject *answer, gpointer data)
{
  Request *r = data;
  gboolean ok = answer && json_object_get_boolean_member_with_default (answer, "ok", FALSE);
  int fd = ok ? td_control_client_take_fd (control) : -1;
  if (!ok)
    td_inside_page_take_error (
        r->page, r->token,
        answer ? json_object_get_string_member_with_default (answer, "error", "")
               : "the program has gone");
  else if (r->k < 0)
    take_group (r, answer);
  else
    take_result (r, answer, fd);
  if (fd >= 0)
    close (fd);
  g_object_unref (r->page);
  g_free (r);
}

void
td__window_look_inside (TdInsidePage *page, int k, guint token, TdWindow *self)
{
  if (!self->control || !td_control_client_is_open (self->control))
    {
      td_inside_page_take_error (page, token, "nothing is connected to the program");
      return;
    }
  Request *request = g_new (Request, 1);
  *request = (Request){ g_object_ref (page), k, token };
  g_autofree char *command
      = k < 0 ? g_strdup ("inside") : g_strdup_printf ("inside %d %u", k, TD_READ_MAX_BYTES);
  td_control_client_send (self->control, command, answered, request);
}
