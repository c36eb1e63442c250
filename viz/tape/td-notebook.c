/* The notebook and its file, a key file: one group for each note and each watch.
 *
 * SPDX-License-Identifier: MIT */
#include "tape/td-notebook.h"

#include <errno.h>
#include <string.h>

#include "replace.h"
#include "scene/td-format.h"

#define SUFFIX ".tdtape"
#define MAX_BYTES (4 << 20)
#define MAX_TEXT 4096

struct _TdNotebook
{
  GObject parent;
  char *path;
  char *uuid;
  GArray *notes;   /* TdNote */
  GArray *watches; /* TdWatch */
};

enum
{
  CHANGED,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdNotebook, td_notebook, G_TYPE_OBJECT)

static void
note_clear (gpointer note)
{
  g_free (((TdNote *)note)->text);
}

static void
watch_clear (gpointer watch)
{
  g_free (((TdWatch *)watch)->name);
}

static gint
by_moment (gconstpointer a, gconstpointer b)
{
  const TdNote *x = a, *y = b;

  if (x->iteration != y->iteration)
    return (x->iteration > y->iteration) - (x->iteration < y->iteration);
  return (x->event > y->event) - (x->event < y->event);
}

/* ---- the file ---- */

/* A note that somebody else wrote may be anything: it is cut to one line of text. */
static char *
read_text (GKeyFile *file, const char *group, const char *key)
{
  g_autofree char *text = g_key_file_get_string (file, group, key, NULL);
  g_autofree char *valid = g_utf8_make_valid (text ? text : "", -1);

  for (char *p = valid; *p; p++)
    if (g_ascii_iscntrl (*p))
      *p = ' ';
  if (strlen (valid) > MAX_TEXT)
    {
      char *end = g_utf8_find_prev_char (valid, valid + MAX_TEXT);

      if (end)
        *end = '\0';
    }
  return g_strstrip (g_steal_pointer (&valid));
}

static void
read_group (TdNotebook *self, GKeyFile *file, const char *group)
{
  if (g_str_has_prefix (group, "note "))
    {
      TdNote note = { g_key_file_get_int64 (file, group, "iteration", NULL),
                      g_key_file_get_integer (file, group, "event", NULL),
                      read_text (file, group, "text") };

      if (*note.text && note.iteration >= 0 && note.event >= -1
          && !td_notebook_find (self, note.iteration, note.event))
        g_array_append_val (self->notes, note);
      else
        g_free (note.text);
    }
  else if (g_str_has_prefix (group, "watch "))
    {
      g_autofree char *key = g_key_file_get_string (file, group, "key", NULL);
      TdWatch watch
          = { key ? g_ascii_strtoull (key, NULL, 16) : 0, read_text (file, group, "name") };

      if (watch.key != 0 && !td_notebook_is_watched (self, watch.key))
        g_array_append_val (self->watches, watch);
      else
        g_free (watch.name);
    }
}

static gboolean
load (TdNotebook *self, GError **error)
{
  g_autoptr (GFile) path = g_file_new_for_path (self->path);
  g_autoptr (GFileInfo) info
      = g_file_query_info (path, G_FILE_ATTRIBUTE_STANDARD_SIZE, 0, NULL, NULL);
  g_autoptr (GKeyFile) file = g_key_file_new ();
  g_autoptr (GError) why = NULL;

  if (!info)
    return TRUE; /* nothing was written down yet */
  if (g_file_info_get_size (info) > MAX_BYTES)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s: larger than %d MB",
                   self->path, MAX_BYTES >> 20);
      return FALSE;
    }
  if (!g_key_file_load_from_file (file, self->path, G_KEY_FILE_NONE, &why))
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s: not a notebook: %s",
                   self->path, why->message);
      return FALSE;
    }
  g_autofree char *uuid = g_key_file_get_string (file, "recording", "uuid", NULL);
  if (g_strcmp0 (uuid, self->uuid) != 0)
    {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                   "%s: the notes are of another recording", self->path);
      return FALSE;
    }
  g_auto (GStrv) groups = g_key_file_get_groups (file, NULL);
  for (char **group = groups; *group; group++)
    read_group (self, file, *group);
  g_array_sort (self->notes, by_moment);
  return TRUE;
}

static gboolean
save (TdNotebook *self, GError **error)
{
  g_autoptr (GKeyFile) file = g_key_file_new ();
  gsize bytes;

  g_key_file_set_string (file, "recording", "uuid", self->uuid);
  for (guint i = 0; i < self->notes->len; i++)
    {
      const TdNote *note = &g_array_index (self->notes, TdNote, i);
      g_autofree char *group = g_strdup_printf ("note %u", i + 1);

      g_key_file_set_int64 (file, group, "iteration", note->iteration);
      g_key_file_set_integer (file, group, "event", note->event);
      g_key_file_set_string (file, group, "text", note->text);
    }
  for (guint i = 0; i < self->watches->len; i++)
    {
      const TdWatch *watch = &g_array_index (self->watches, TdWatch, i);
      g_autofree char *group = g_strdup_printf ("watch %u", i + 1);
      g_autofree char *key = g_strdup_printf ("%016" G_GINT64_MODIFIER "x", watch->key);

      g_key_file_set_string (file, group, "key", key);
      g_key_file_set_string (file, group, "name", watch->name);
    }
  g_signal_emit (self, signals[CHANGED], 0);
  g_autofree char *text = g_key_file_to_data (file, &bytes, NULL);
  if (td__replace_file (self->path, text, bytes))
    return TRUE;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s: not kept: %s", self->path,
               g_strerror (errno));
  return FALSE;
}

TdNotebook *
td_notebook_new (const char *tape_path, const guint8 uuid[16], GError **error)
{
  g_autoptr (TdNotebook) self = g_object_new (TD_TYPE_NOTEBOOK, NULL);
  g_autofree char *stem = g_strdup (tape_path);
  GString *hex = g_string_new (NULL);

  if (g_str_has_suffix (stem, SUFFIX))
    stem[strlen (stem) - strlen (SUFFIX)] = '\0';
  self->path = g_strconcat (stem, ".tdnotes", NULL);
  for (int i = 0; i < 16; i++)
    g_string_append_printf (hex, "%02x", uuid[i]);
  self->uuid = g_string_free (hex, FALSE);
  return load (self, error) ? g_steal_pointer (&self) : NULL;
}

/* ---- notes ---- */

guint
td_notebook_get_n_notes (TdNotebook *self)
{
  return self->notes->len;
}

const TdNote *
td_notebook_get_note (TdNotebook *self, guint i)
{
  return &g_array_index (self->notes, TdNote, i);
}

static gint
index_of (TdNotebook *self, gint64 iteration, gint event)
{
  for (guint i = 0; i < self->notes->len; i++)
    {
      const TdNote *note = &g_array_index (self->notes, TdNote, i);

      if (note->iteration == iteration && note->event == event)
        return (gint)i;
    }
  return -1;
}

const TdNote *
td_notebook_find (TdNotebook *self, gint64 iteration, gint event)
{
  gint i = index_of (self, iteration, event);

  return i >= 0 ? &g_array_index (self->notes, TdNote, i) : NULL;
}

gboolean
td_notebook_write (TdNotebook *self, gint64 iteration, gint event, const char *text,
                   GError **error)
{
  gint at = index_of (self, iteration, event);
  g_autofree char *words = g_strstrip (g_utf8_make_valid (text, -1));

  if (at < 0 && !*words)
    return TRUE;
  if (at >= 0)
    g_array_remove_index (self->notes, (guint)at);
  if (*words)
    {
      TdNote note = { iteration, event, g_steal_pointer (&words) };

      g_array_append_val (self->notes, note);
      g_array_sort (self->notes, by_moment);
    }
  return save (self, error);
}

/* ---- watches ---- */

guint
td_notebook_get_n_watches (TdNotebook *self)
{
  return self->watches->len;
}

const TdWatch *
td_notebook_get_watch (TdNotebook *self, guint i)
{
  return &g_array_index (self->watches, TdWatch, i);
}

static gint
watch_index (TdNotebook *self, guint64 key)
{
  for (guint i = 0; i < self->watches->len; i++)
    if (g_array_index (self->watches, TdWatch, i).key == key)
      return (gint)i;
  return -1;
}

gboolean
td_notebook_is_watched (TdNotebook *self, guint64 key)
{
  return watch_index (self, key) >= 0;
}

gboolean
td_notebook_toggle_watch (TdNotebook *self, guint64 key, const char *name, GError **error)
{
  gint at = watch_index (self, key);
  TdWatch watch = { key, NULL };

  if (at >= 0)
    g_array_remove_index (self->watches, (guint)at);
  else
    {
      watch.name = g_utf8_make_valid (name, -1);
      g_array_append_val (self->watches, watch);
    }
  return save (self, error);
}

/* ---- what a watched thing is ---- */

/* The variable that a key means: itself, or the first output of the operation; -1: none. */
static gint
find_var (TdIteration *iteration, guint64 key)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  gint event = td_iteration_find_event (iteration, key);

  if (event < 0)
    return td_iteration_find_var (iteration, key);
  return t->events[event].n_out > 0 ? (gint)t->outs[t->events[event].first_out] : -1;
}

char *
td_watch_name (TdIteration *iteration, guint64 key)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  gint var = find_var (iteration, key);
  g_autofree char *text = NULL;

  if (var < 0)
    return NULL;
  const char *name = td_iteration_get_var_name (iteration, (guint)var);
  const char *path = td_iteration_get_path_name (iteration, t->vars[var].path);
  gint producer = t->vars[var].producer;
  if (producer >= 0 && (guint)producer < t->n_events)
    text = g_strdup_printf ("%s %d", td_iteration_get_op_name (iteration, (guint)producer),
                            producer);
  else
    text = g_strdup_printf ("%s%s%s", path, *path ? "/" : "", name);
  return g_utf8_make_valid (text, -1);
}

char *
td_watch_describe (TdIteration *iteration, guint64 key)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  gint var = find_var (iteration, key);
  char mean[TD_FORMAT_SIZE], l2[TD_FORMAT_SIZE], min[TD_FORMAT_SIZE], max[TD_FORMAT_SIZE];

  if (var < 0)
    return g_strdup ("not in this iteration");
  g_autofree char *shape = td_iteration_dup_shape (iteration, (guint)var, TRUE);
  for (guint i = 0; i < t->n_stats; i++)
    if (t->stats[i].var == (guint)var)
      {
        const TdTapeStats *s = &t->stats[i];
        guint64 n_inf = s->n_pos_inf + s->n_neg_inf;

        return g_strdup_printf ("%s · mean %s · norm %s · %s to %s%s", shape,
                                td_format_value (mean, s->mean), td_format_value (l2, s->l2),
                                td_format_value (min, s->min), td_format_value (max, s->max),
                                s->n_nan > 0 ? " · ✕ NaN"
                                : n_inf > 0  ? " · ▲ infinite"
                                             : "");
      }
  return g_strdup_printf ("%s · no numbers were recorded", shape);
}

/* ---- life ---- */

static void
td_notebook_finalize (GObject *object)
{
  TdNotebook *self = TD_NOTEBOOK (object);

  g_free (self->path);
  g_free (self->uuid);
  g_array_unref (self->notes);
  g_array_unref (self->watches);
  G_OBJECT_CLASS (td_notebook_parent_class)->finalize (object);
}

static void
td_notebook_class_init (TdNotebookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = td_notebook_finalize;
  signals[CHANGED] = g_signal_new ("changed", TD_TYPE_NOTEBOOK, G_SIGNAL_RUN_LAST, 0, NULL,
                                   NULL, NULL, G_TYPE_NONE, 0);
}

static void
td_notebook_init (TdNotebook *self)
{
  self->notes = g_array_new (FALSE, FALSE, sizeof (TdNote));
  self->watches = g_array_new (FALSE, FALSE, sizeof (TdWatch));
  g_array_set_clear_func (self->notes, note_clear);
  g_array_set_clear_func (self->watches, watch_clear);
}
