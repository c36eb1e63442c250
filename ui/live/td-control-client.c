/* The control connection over GIO streams. Signals: "event" (JsonObject) for lines nobody asked
 * for, "closed" once.
 * SPDX-License-Identifier: MIT */
#include "live/td-control-client.h"

#include "runtime-folder.h"

#include <gio/gunixfdmessage.h>
#include <gio/gunixsocketaddress.h>
#include <string.h>
#include <unistd.h>

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
  GSource *input;
  GByteArray *received; /* the beginning of a line */
  GArray *fds;          /* of int: came with answers, not yet taken */
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
  g_source_destroy (self->input);
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
  if (json_object_has_member (object, "event") && !json_object_has_member (object, "ok"))
    g_signal_emit (self, signals[EVENT], 0, object);
  else
    answer_first (self, object);
}

static void
handle_lines (TdControlClient *self)
{
  guint8 *end;
  while (self->connection && self->received->len
         && (end = memchr (self->received->data, '\n', self->received->len)))
    {
      guint length = (guint)(end - self->received->data);
      g_autofree char *line = g_strndup ((const char *)self->received->data, length);
      g_byte_array_remove_range (self->received, 0, length + 1);
      handle_line (self, line);
    }
}

static void
keep_fds (TdControlClient *self, GSocketControlMessage **messages, int n)
{
  for (int i = 0; i < n; i++)
    {
      if (G_IS_UNIX_FD_MESSAGE (messages[i]))
        {
          int n_fds;
          int *fds = g_unix_fd_message_steal_fds (G_UNIX_FD_MESSAGE (messages[i]), &n_fds);
          g_array_append_vals (self->fds, fds, (guint)n_fds);
          g_free (fds);
        }
      g_object_unref (messages[i]);
    }
  g_free (messages);
}

int
td_control_client_take_fd (TdControlClient *self)
{
  if (!self->fds->len)
    return -1;
  int fd = g_array_index (self->fds, int, 0);
  g_array_remove_index (self->fds, 0);
  return fd;
}

/* Descriptors of tensors come with the bytes of their answer, so streams do not do here. */
static gboolean
readable (GSocket *socket, GIOCondition condition, gpointer data)
{
  g_autoptr (TdControlClient) self = g_object_ref (data);
  guint8 room[16384];
  GInputVector vector = { room, sizeof room };
  GSocketControlMessage **messages = NULL;
  int n_messages = 0, flags = 0;
  gssize n = g_socket_receive_message (socket, NULL, &vector, 1, &messages, &n_messages, &flags,
                                       NULL, NULL);
  keep_fds (self, messages, n_messages);
  if (n <= 0 || self->received->len > MAX_LINE_BYTES)
    {
      td_control_client_close (self);
      return G_SOURCE_REMOVE;
    }
  g_byte_array_append (self->received, room, (guint)n);
  handle_lines (self);
  return self->connection ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
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

char *
td_control_folder (void)
{
  const char *why;
  char folder[4096];

  td__runtime_folder (folder, sizeof folder, &why); /* else the run says why, and has none */
  return g_strdup (folder);
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
  GSocket *socket = g_socket_connection_get_socket (connection);
  self->input = g_socket_create_source (socket, G_IO_IN | G_IO_HUP, NULL);
  g_source_set_callback (self->input, G_SOURCE_FUNC (readable), self, NULL);
  g_source_attach (self->input, NULL);
  return self;
}

static void
td_control_client_finalize (GObject *object)
{
  TdControlClient *self = TD_CONTROL_CLIENT (object);
  g_queue_clear_full (&self->pending, g_free);
  g_clear_object (&self->connection);
  if (self->input)
    g_source_destroy (self->input);
  g_clear_pointer (&self->input, g_source_unref);
  for (int fd = td_control_client_take_fd (self); fd >= 0;)
    {
      close (fd);
      fd = td_control_client_take_fd (self);
    }
  g_array_unref (self->fds);
  g_byte_array_unref (self->received);
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
  self->received = g_byte_array_new ();
  self->fds = g_array_new (FALSE, FALSE, sizeof (int));
  self->cancellable = g_cancellable_new ();
}
