/* Values of live tensors: asked for over the control socket, answered with a descriptor of
 * anonymous memory, for the inspector and for lines that are evaluated. Nothing that comes is
 * trusted. SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A line is evaluated with all of an array, and each number becomes a double. */
#define MOST_EVALUATED (256u << 20)

/* Whoever asked gets the tensor, or NULL and why; owns it. */
typedef void (*Take) (TdWindow *self, guint64 id, TdTensor *tensor, const char *error);

typedef struct
{
  TdWindow *window;
  guint64 id;
  guint32 most; /* bytes */
  Take take;
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
read_memory (int fd, gsize bytes, guint32 most)
{
  struct stat info;
  if (fd < 0 || fstat (fd, &info) != 0 || info.st_size < (off_t)bytes || bytes > most)
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

static TdTensor *
take_tensor (JsonObject *answer, int fd, guint32 most)
{
  gint64 dims[TD_TAPE_MAX_NDIM] = { 0 };
  guint dtype;
  const char *name = json_object_get_string_member_with_default (answer, "dtype", "");
  gint64 bytes = json_object_get_int_member_with_default (answer, "bytes", -1);
  JsonNode *shape = json_object_get_member (answer, "shape");
  if (bytes < 0 || !find_dtype (name, &dtype) || !shape || !JSON_NODE_HOLDS_ARRAY (shape))
    return NULL;
  guint ndim = take_shape (json_node_get_array (shape), dims);
  g_autofree char *data = read_memory (fd, (gsize)bytes, most);
  return data ? td_tensor_new_live ("live", dtype, ndim, dims, data, (gsize)bytes) : NULL;
}

TdTensor *
td__window_take_tensor (JsonObject *answer, int fd)
{
  return take_tensor (answer, fd, TD_READ_MAX_BYTES);
}

/* Owner: the caller. */
static char *
dup_error (JsonObject *answer)
{
  if (!answer)
    return g_strdup (_ ("the connection to the program ended"));
  const char *busy = json_object_get_string_member_with_default (answer, "busy", NULL);
  if (busy)
    return g_strdup_printf (_ ("the program is busy at %s"), busy);
  const char *error = json_object_get_string_member_with_default (answer, "error", NULL);
  return g_strdup (error ? error : _ ("its numbers are of a kind that is not read here"));
}

static void
answered (TdControlClient *control, JsonObject *answer, gpointer data)
{
  Request *request = data;
  gboolean ok = answer && json_object_get_boolean_member_with_default (answer, "ok", FALSE);
  int fd = ok ? td_control_client_take_fd (control) : -1;
  if (request->window->workspace)
    {
      TdTensor *tensor = ok ? take_tensor (answer, fd, request->most) : NULL;
      g_autofree char *error = tensor ? NULL : dup_error (answer);
      request->take (request->window, request->id, tensor, error);
    }
  if (fd >= 0)
    close (fd);
  g_object_unref (request->window);
  g_free (request);
}

static void
ask_for (TdWindow *self, guint64 id, guint32 most, Take take)
{
  if (!self->control || !td_control_client_is_open (self->control))
    {
      take (self, id, NULL, _ ("the program is not connected"));
      return;
    }
  Request *request = g_new (Request, 1);
  *request = (Request){ g_object_ref (self), id, most, take };
  g_autofree char *command = g_strdup_printf ("read %" G_GUINT64_FORMAT " %u", id, most);
  td_control_client_send (self->control, command, answered, request);
}

static void
inspect (TdWindow *self, guint64 id, TdTensor *tensor, const char *error)
{
  if (tensor)
    td_inspector_take_live (td_workspace_get_inspector (self->workspace), id, tensor);
}

static void
evaluate (TdWindow *self, guint64 id, TdTensor *tensor, const char *error)
{
  td_evaluate_page_take_array (td_workspace_get_evaluate (self->workspace), id, tensor, error);
}

void
td__window_read_live (TdInspector *inspector, guint64 id, TdWindow *self)
{
  ask_for (self, id, TD_READ_MAX_BYTES, inspect);
}

void
td__window_read_to_evaluate (TdEvaluatePage *page, guint64 id, TdWindow *self)
{
  ask_for (self, id, MOST_EVALUATED, evaluate);
}
