/* Lessons are read from key files; a mistake in one is a line that says where, and never a
 * lesson that stops in the middle. SPDX-License-Identifier: MIT */
#include "pages/td-lesson.h"

#include <string.h>

#include "pages/td-lesson-picture.h"
#include "settings/td-data.h"

#define SUFFIX ".lesson"

// clang-format off
const char *const td_lesson_deed_names[TD_N_DEEDS] = {
  [TD_DEED_OPERATION] = "operation", [TD_DEED_EVENT] = "event",
  [TD_DEED_ITERATION] = "iteration", [TD_DEED_PHASE] = "phase",
  [TD_DEED_BACK] = "back",           [TD_DEED_SELECTED] = "selected",
  [TD_DEED_PAGE] = "page",
};

static const char *const lesson_keys[] = { "Title", "Summary", "Picture", "Needs", NULL };
static const char *const step_keys[] = { "Title", "Text", "Recording", "Page", "Actions", "Target",
                                         "Until", "Done", "Claims", NULL };
// clang-format on

static void
clear_step (TdLessonStep *step)
{
  g_free (step->title);
  g_free (step->text);
  g_free (step->recording);
  g_free (step->page);
  g_strfreev (step->actions);
  g_free (step->target);
  g_free (step->what);
  g_free (step->done);
  g_strfreev (step->claims);
}

void
td_lesson_free (TdLesson *lesson)
{
  for (guint i = 0; i < lesson->n_steps; i++)
    clear_step (&lesson->steps[i]);
  g_free (lesson->steps);
  g_free (lesson->name);
  g_free (lesson->title);
  g_free (lesson->summary);
  g_free (lesson->picture);
  g_free (lesson->needs);
  g_free (lesson);
}

/* ---- one file ---- */

typedef struct
{
  GKeyFile *keys;
  const char *file; /* as a user calls it */
  GError **error;
} Reader;

static gboolean G_GNUC_PRINTF (3, 4)
    refuse (Reader *reader, const char *group, const char *format, ...)
{
  va_list list;
  va_start (list, format);
  g_autofree char *what = g_strdup_vprintf (format, list);
  va_end (list);
  g_set_error (reader->error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s: [%s] %s", reader->file,
               group, what);
  return FALSE;
}

static gboolean
has_known_keys (Reader *reader, const char *group, const char *const *known)
{
  g_auto (GStrv) keys = g_key_file_get_keys (reader->keys, group, NULL, NULL);
  for (guint i = 0; keys[i]; i++)
    if (!g_strv_contains (known, keys[i]))
      return refuse (reader, group, "has a key %s, which no lesson has", keys[i]);
  return TRUE;
}

/* Text that must be there. */
static gboolean
take (Reader *reader, const char *group, const char *key, char **value)
{
  *value = g_key_file_get_string (reader->keys, group, key, NULL);
  return (*value && **value) || refuse (reader, group, "has no %s", key);
}

static char **
take_list (Reader *reader, const char *group, const char *key)
{
  char **list = g_key_file_get_string_list (reader->keys, group, key, NULL, NULL);
  if (!list)
    return g_new0 (char *, 1);
  for (guint i = 0; list[i]; i++)
    g_strstrip (list[i]);
  return list;
}

/* DEED ARGUMENT */
static gboolean
take_deed (Reader *reader, const char *group, TdLessonStep *step)
{
  g_autofree char *until = g_key_file_get_string (reader->keys, group, "Until", NULL);
  if (!until)
    return !step->done || refuse (reader, group, "has Done, but nothing to do before it");
  char *space = strchr (until, ' ');
  if (space)
    *space = '\0';
  for (int deed = 1; deed < TD_N_DEEDS; deed++)
    if (strcmp (until, td_lesson_deed_names[deed]) == 0)
      step->deed = deed;
  if (step->deed == TD_DEED_NONE)
    return refuse (reader, group, "waits until %s, which nobody can do", until);
  if (!space || !space[1])
    return refuse (reader, group, "waits until %s, without saying which", until);
  step->what = g_strdup (space + 1);
  return step->done || refuse (reader, group, "has something to do, and no Done after it");
}

static gboolean
read_step (Reader *reader, const char *group, TdLesson *lesson)
{
  lesson->steps = g_renew (TdLessonStep, lesson->steps, lesson->n_steps + 1);
  TdLessonStep *step = &lesson->steps[lesson->n_steps];
  *step = (TdLessonStep){ 0 };
  step->actions = take_list (reader, group, "Actions");
  step->claims = take_list (reader, group, "Claims");
  step->page = g_key_file_get_string (reader->keys, group, "Page", NULL);
  step->done = g_key_file_get_string (reader->keys, group, "Done", NULL);
  step->recording = g_key_file_get_string (reader->keys, group, "Recording", NULL);
  lesson->n_steps++;
  if (!step->recording && lesson->n_steps > 1)
    step->recording = g_strdup (step[-1].recording);
  if (!step->recording)
    return refuse (reader, group, "has no Recording, and no step is before it");
  return has_known_keys (reader, group, step_keys)
         && take (reader, group, "Title", &step->title)
         && take (reader, group, "Text", &step->text)
         && take (reader, group, "Target", &step->target) && take_deed (reader, group, step);
}

static gboolean
read_lesson (Reader *reader, TdLesson *lesson)
{
  g_auto (GStrv) groups = g_key_file_get_groups (reader->keys, NULL);
  if (!groups[0] || strcmp (groups[0], "Lesson") != 0)
    return refuse (reader, "Lesson", "is not what the file begins with");
  if (!has_known_keys (reader, "Lesson", lesson_keys)
      || !take (reader, "Lesson", "Title", &lesson->title)
      || !take (reader, "Lesson", "Summary", &lesson->summary)
      || !take (reader, "Lesson", "Picture", &lesson->picture))
    return FALSE;
  lesson->needs = g_key_file_get_string (reader->keys, "Lesson", "Needs", NULL);
  if (!td_lesson_picture_exists (lesson->picture))
    return refuse (reader, "Lesson", "has a Picture %s, which nobody can draw",
                   lesson->picture);
  for (guint i = 1; groups[i]; i++)
    {
      g_autofree char *expected = g_strdup_printf ("Step %u", i);
      if (strcmp (groups[i], expected) != 0)
        return refuse (reader, groups[i], "stands where [%s] belongs", expected);
      if (!read_step (reader, groups[i], lesson))
        return FALSE;
    }
  return lesson->n_steps > 0 || refuse (reader, "Lesson", "has no steps");
}

/* "2-xor.lesson" is called xor: the number is its place. */
static char *
dup_name (const char *file)
{
  const char *start = file;
  while (g_ascii_isdigit (*start))
    start++;
  start = start > file && *start == '-' ? start + 1 : file;
  gsize length = strlen (start) - (g_str_has_suffix (start, SUFFIX) ? strlen (SUFFIX) : 0);
  return g_strndup (start, length);
}

TdLesson *
td_lesson_load (const char *path, GError **error)
{
  g_autoptr (GKeyFile) keys = g_key_file_new ();
  g_autofree char *base = g_path_get_basename (path);
  g_autofree char *file = g_utf8_make_valid (base, -1);
  g_autoptr (TdLesson) lesson = g_new0 (TdLesson, 1);
  Reader reader = { keys, file, error };
  lesson->name = dup_name (file);
  if (!g_key_file_load_from_file (keys, path, G_KEY_FILE_NONE, error))
    {
      g_prefix_error (error, "%s: ", file);
      return NULL;
    }
  return read_lesson (&reader, lesson) ? g_steal_pointer (&lesson) : NULL;
}

/* ---- where they are ---- */

static int
by_text (gconstpointer a, gconstpointer b)
{
  return strcmp (*(char *const *)a, *(char *const *)b);
}

/* A recording may have been left out when this was built: of ranks, where none could be
 * started.
 */
static void
add_file (GPtrArray *files, char *path)
{
  g_autoptr (TdLesson) lesson = td_lesson_load (path, NULL);
  g_autofree char *recording
      = lesson && lesson->needs ? td_lesson_find_recording (lesson->needs) : NULL;
  if (!lesson || !lesson->needs || recording)
    g_ptr_array_add (files, path);
  else
    g_free (path);
}

char **
td_lesson_list_files (void)
{
  g_auto (GStrv) folders = td_data_list_folders ("lessons");
  GPtrArray *files = g_ptr_array_new ();
  for (guint i = 0; folders[i] && files->len == 0; i++)
    {
      g_autoptr (GDir) folder = g_dir_open (folders[i], 0, NULL);
      const char *name;
      while (folder && (name = g_dir_read_name (folder)))
        if (g_str_has_suffix (name, SUFFIX))
          add_file (files, g_build_filename (folders[i], name, NULL));
    }
  g_ptr_array_sort (files, by_text);
  g_ptr_array_add (files, NULL);
  return (char **)g_ptr_array_free (files, FALSE);
}

TdLesson *
td_lesson_find (const char *name, GError **error)
{
  g_auto (GStrv) files = td_lesson_list_files ();
  for (guint i = 0; files[i]; i++)
    {
      g_autofree char *base = g_path_get_basename (files[i]);
      g_autofree char *called = dup_name (base);
      if (strcmp (called, name) == 0)
        return td_lesson_load (files[i], error);
    }
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND, "There is no lesson called %s.", name);
  return NULL;
}

char *
td_lesson_find_recording (const char *name)
{
  g_autofree char *file = g_strconcat (name, ".tdtape", NULL);
  return td_data_find ("lessons", file);
}
