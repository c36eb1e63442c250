/* Values of live tensors: asked for over the control socket, answered with a descriptor of
 * anonymous memory, shown by the inspector. Nothing that comes is trusted.
 * SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct
{
  TdWindow *window;
  guint64 id;
} Request;

static gboolean
find_dtype (const char *name, guint *dtype)
{
  static const char *const names[TD_TAPE_N_DTYPES]
      = { "f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (g_strcmp0 (name, names[i]) == 0)
      {
        *dtype = i;
        return TRUE;
      }
  return FALSE;
}

static guint
take_shape (JsonArray *shape, gint64 dims[TD_TAPE_MAX_NDIM])
{
  guint n = shape ? MIN (json_array_get_length (shape), TD_TAPE_MAX_NDIM) : 0;
  for (guint i = 0; i < n; i++)
    dims[i] = CLAMP (json_array_get_int_element (shape, i), 0, G_MAXINT);
  return n;
}

static char *
read_memory (int fd, gsize bytes)
{
  struct stat info;
  if (fd < 0 || fstat (fd, &info) != 0 || info.st_size < (off_t)bytes
      || bytes > TD_READ_MAX_BYTES)
    return NULL;
  char *data = g_malloc (bytes + 1);
  for (gsize done = 0; done < bytes;)
    {
      ssize_t n = pread (fd, data + done, bytes - done, (off_t)done);
      if (n <= 0)
        {
          g_free (data);
          return NULL;
        }
      done += (gsize)n;
    }
  return data;
}

TdTensor *
td__window_take_tensor (JsonObject *answer, int fd)
{
  gint64 dims[TD_TAPE_MAX_NDIM] = { 0 };
  guint dtype;
  const char *name = json_object_get_string_member_with_default (answer, "dtype", "");
  gint64 bytes = json_object_get_int_member_with_default (answer, "bytes", -1);
  JsonNode *shape = json_object_get_member (answer, "shape");
  if (bytes < 0 || !find_dtype (name, &dtype) || !shape || !JSON_NODE_HOLDS_ARRAY (shape))
    return NULL;
  guint ndim = take_shape (json_node_get_array (shape), dims);
  g_autofree char *data = read_memory (fd, (gsize)bytes);
  return data ? td_tensor_new_live ("live", dtype, ndim, dims, data, (gsize)bytes) : NULL;
}

static void
show_answer (TdWindow *self, guint64 id, JsonObject *answer, int fd)
{
  TdTensor *tensor = td__window_take_tensor (answer, fd);
  if (tensor)
    td_inspector_take_live (td_workspace_get_inspector (self->workspace), id, tensor);
}

static void
answered (TdControlClient *control, JsonObject *answer, gpointer data)
{
  Request *request = data;
  gboolean ok = answer && json_object_get_boolean_member_with_default (answer, "ok", FALSE);
  int fd = ok ? td_control_client_take_fd (control) : -1;
  if (ok && request->window->workspace)
    show_answer (request->window, request->id, answer, fd);
  if (fd >= 0)
    close (fd);
  g_object_unref (request->window);
  g_free (request);
}

void
td__window_read_live (TdInspector *inspector, guint64 id, TdWindow *self)
{
  if (!self->control || !td_control_client_is_open (self->control))
    return;
  Request *request = g_new (Request, 1);
  *request = (Request){ g_object_ref (self), id };
  g_autofree char *command
      = g_strdup_printf ("read %" G_GUINT64_FORMAT " %u", id, TD_READ_MAX_BYTES);
  td_control_client_send (self->control, command, answered, request);
}
