/* The control connection over GIO streams. Signals: "event" (JsonObject) for lines nobody asked
 * for, "closed" once.
 * SPDX-License-Identifier: MIT */
#include "td-control-client.h"

#include <gio/gunixsocketaddress.h>
#include <string.h>

/* A reply longer than this is not from a supervisor. */
#define MAX_LINE_BYTES (4u << 20)

typedef struct
{
  TdControlAnswer answer;
  gpointer data;
} Pending;

struct _TdControlClient
{
  GObject parent;
  GSocketConnection *connection;
  GDataInputStream *input;
  GCancellable *cancellable;
  GQueue pending; /* of Pending, oldest first */
  GString *unsent;
  gboolean writing;
};

enum
{
  EVENT,
  CLOSED,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdControlClient, td_control_client, G_TYPE_OBJECT)

static void read_next (TdControlClient *self);
static void write_more (TdControlClient *self);

static void
answer_first (TdControlClient *self, JsonObject *object)
{
  Pending *pending = g_queue_pop_head (&self->pending);
  if (!pending)
    return;
  if (pending->answer)
    pending->answer (self, object, pending->data);
  g_free (pending);
}

void
td_control_client_close (TdControlClient *self)
{
  if (!self->connection)
    return;
  g_object_ref (self);
  g_cancellable_cancel (self->cancellable);
  g_io_stream_close (G_IO_STREAM (self->connection), NULL, NULL);
  g_clear_object (&self->connection);
  while (!g_queue_is_empty (&self->pending))
    answer_first (self, NULL);
  g_signal_emit (self, signals[CLOSED], 0);
  g_object_unref (self);
}

gboolean
td_control_client_is_open (TdControlClient *self)
{
  return self->connection != NULL;
}

static void
handle_line (TdControlClient *self, const char *line)
{
  g_autoptr (JsonParser) parser = json_parser_new ();
  JsonNode *root = NULL;
  if (json_parser_load_from_data (parser, line, -1, NULL))
    root = json_parser_get_root (parser);
  if (!root || !JSON_NODE_HOLDS_OBJECT (root))
    {
      answer_first (self, NULL);
      return;
    }
  JsonObject *object = json_node_get_object (root);
  if (json_object_has_member (object, "event"))
    g_signal_emit (self, signals[EVENT], 0, object);
  else
    answer_first (self, object);
}

static void
line_ready (GObject *stream, GAsyncResult *result, gpointer data)
{
  TdControlClient *self = data;
  gsize length;
  g_autofree char *line = g_data_input_stream_read_line_finish (G_DATA_INPUT_STREAM (stream),
                                                                result, &length, NULL);
  if (!line || length > MAX_LINE_BYTES)
    td_control_client_close (self);
  else if (self->connection)
    {
      handle_line (self, line);
      if (self->connection)
        read_next (self);
    }
  g_object_unref (self);
}

static void
read_next (TdControlClient *self)
{
  g_data_input_stream_read_line_async (self->input, G_PRIORITY_DEFAULT, self->cancellable,
                                       line_ready, g_object_ref (self));
}

static void
written (GObject *stream, GAsyncResult *result, gpointer data)
{
  TdControlClient *self = data;
  self->writing = FALSE;
  gssize n = g_output_stream_write_finish (G_OUTPUT_STREAM (stream), result, NULL);
  if (n < 0)
    td_control_client_close (self);
  else
    {
      g_string_erase (self->unsent, 0, n);
      write_more (self);
    }
  g_object_unref (self);
}

/* The bytes under a running write must stay put, so only one write runs and it gets a copy. */
static void
write_more (TdControlClient *self)
{
  if (self->writing || !self->unsent->len || !self->connection)
    return;
  self->writing = TRUE;
  GOutputStream *out = g_io_stream_get_output_stream (G_IO_STREAM (self->connection));
  char *copy = g_memdup2 (self->unsent->str, self->unsent->len);
  g_object_set_data_full (G_OBJECT (self), "bytes-under-write", copy, g_free);
  g_output_stream_write_async (out, copy, self->unsent->len, G_PRIORITY_DEFAULT,
                               self->cancellable, written, g_object_ref (self));
}

void
td_control_client_send (TdControlClient *self, const char *command, TdControlAnswer answer,
                        gpointer data)
{
  if (!self->connection)
    {
      if (answer)
        answer (self, NULL, data);
      return;
    }
  Pending *pending = g_new0 (Pending, 1);
  *pending = (Pending){ answer, data };
  g_queue_push_tail (&self->pending, pending);
  g_string_append (self->unsent, command);
  g_string_append_c (self->unsent, '\n');
  write_more (self);
}

TdControlClient *
td_control_client_new (const char *address, GError **error)
{
  g_autoptr (GSocketClient) client = g_socket_client_new ();
  g_autoptr (GSocketAddress) socket_address = g_unix_socket_address_new (address);
  GSocketConnection *connection
      = g_socket_client_connect (client, G_SOCKET_CONNECTABLE (socket_address), NULL, error);
  if (!connection)
    return NULL;
  TdControlClient *self = g_object_new (TD_TYPE_CONTROL_CLIENT, NULL);
  self->connection = connection;
  self->input
      = g_data_input_stream_new (g_io_stream_get_input_stream (G_IO_STREAM (connection)));
  read_next (self);
  return self;
}

static void
td_control_client_finalize (GObject *object)
{
  TdControlClient *self = TD_CONTROL_CLIENT (object);
  g_queue_clear_full (&self->pending, g_free);
  g_clear_object (&self->connection);
  g_clear_object (&self->input);
  g_clear_object (&self->cancellable);
  g_string_free (self->unsent, TRUE);
  G_OBJECT_CLASS (td_control_client_parent_class)->finalize (object);
}

static void
td_control_client_class_init (TdControlClientClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = td_control_client_finalize;
  signals[EVENT] = g_signal_new ("event", TD_TYPE_CONTROL_CLIENT, G_SIGNAL_RUN_LAST, 0, NULL,
                                 NULL, NULL, G_TYPE_NONE, 1, JSON_TYPE_OBJECT);
  signals[CLOSED] = g_signal_new ("closed", TD_TYPE_CONTROL_CLIENT, G_SIGNAL_RUN_LAST, 0, NULL,
                                  NULL, NULL, G_TYPE_NONE, 0);
}

static void
td_control_client_init (TdControlClient *self)
{
  g_queue_init (&self->pending);
  self->unsent = g_string_new (NULL);
  self->cancellable = g_cancellable_new ();
}
