/* The lesson of dynamic and static graphs: both examples are recorded, one after the other, and
 * shown side by side. Their recordings stay in the cache: the next time nothing has to be
 * compiled. SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>
#include <glib/gstdio.h>

#include "settings/td-data.h"

#define N_TAPES 2

static const char *const examples[N_TAPES] = { "dynamic_graph", "static_graph" };

typedef struct
{
  TdWindow *window; /* owned */
  char *folder;
  char *models[N_TAPES], *tapes[N_TAPES];
  int next; /* to record */
} Lesson;

static void
lesson_free (Lesson *lesson)
{
  g_object_unref (lesson->window);
  g_free (lesson->folder);
  for (int i = 0; i < N_TAPES; i++)
    {
      g_free (lesson->models[i]);
      g_free (lesson->tapes[i]);
    }
  g_free (lesson);
}

/* A whole recording that is not older than its program. */
static gboolean
is_recorded (Lesson *lesson, int i)
{
  GStatBuf model, tape;
  TdTapeCheck check = { 0 };
  return g_stat (lesson->models[i], &model) == 0 && g_stat (lesson->tapes[i], &tape) == 0
         && tape.st_mtime >= model.st_mtime && td_tape_check (lesson->tapes[i], &check)
         && check.whole && check.ended;
}

static void
show (Lesson *lesson)
{
  TdWindow *self = lesson->window;
  if (!td__window_open_tape (self, lesson->tapes[0]))
    return;
  td_session_set_moment (self->session, 0, 0);
  td__run_compare_with (self, lesson->tapes[1]);
  td_workspace_show_page (self->workspace, "dynamic-static");
}

static void record_next (Lesson *lesson);

static void
recorded (GObject *process, GAsyncResult *result, gpointer data)
{
  Lesson *lesson = data;
  TdWindow *self = lesson->window;
  g_autofree char *errors = NULL;
  g_autoptr (GError) error = NULL;
  g_subprocess_communicate_utf8_finish (G_SUBPROCESS (process), result, NULL, &errors, &error);
  gboolean good = !error && g_subprocess_get_successful (G_SUBPROCESS (process));
  /* closed, or gone on with something else */
  gboolean wanted = self->workspace && !self->session
                    && gtk_stack_get_visible_child (self->pages) == GTK_WIDGET (self->message);
  if (wanted && good)
    {
      lesson->next++;
      record_next (lesson);
      return;
    }
  if (wanted)
    td_window_show_message (self, "dialog-warning-symbolic",
                            _ ("The Lesson Cannot Be Recorded"),
                            _ ("Its examples are C programs that are compiled here; "
                               "the details say what went wrong."),
                            error ? error->message : errors);
  lesson_free (lesson);
}

static void
record_next (Lesson *lesson)
{
  while (lesson->next < N_TAPES && is_recorded (lesson, lesson->next))
    lesson->next++;
  if (lesson->next == N_TAPES)
    {
      show (lesson);
      lesson_free (lesson);
      return;
    }
  g_autoptr (GError) error = NULL;
  g_autoptr (GSubprocessLauncher) launcher = g_subprocess_launcher_new (
      G_SUBPROCESS_FLAGS_STDOUT_SILENCE | G_SUBPROCESS_FLAGS_STDERR_PIPE);
  g_autofree char *tapedeck = td_runner_find_executable ("tapedeck");
  g_subprocess_launcher_set_cwd (launcher, lesson->folder); /* they save pictures */
  g_autoptr (GSubprocess) process = g_subprocess_launcher_spawn (
      launcher, &error, tapedeck ? tapedeck : "tapedeck", "run", "-f", "--quiet", "--level",
      "stats", "-o", lesson->tapes[lesson->next], lesson->models[lesson->next], NULL);
  if (process)
    {
      g_subprocess_communicate_utf8_async (process, NULL, NULL, recorded, lesson);
      return;
    }
  td_window_show_message (lesson->window, "dialog-warning-symbolic",
                          _ ("The Lesson Cannot Be Recorded"), error->message, error->message);
  lesson_free (lesson);
}

void
td__run_lesson_compare (TdWindow *self, const char *parameter)
{
  Lesson *lesson = g_new0 (Lesson, 1);
  gboolean found = TRUE;
  lesson->window = g_object_ref (self);
  lesson->folder = g_build_filename (g_get_user_cache_dir (), "tapedeck", "lessons",
                                     "static-vs-dynamic", NULL);
  g_mkdir_with_parents (lesson->folder, 0700);
  for (int i = 0; i < N_TAPES; i++)
    {
      g_autofree char *model = g_strconcat (examples[i], ".c", NULL);
      g_autofree char *tape = g_strconcat (examples[i], ".tdtape", NULL);
      lesson->models[i] = td_data_find ("examples", model);
      lesson->tapes[i] = g_build_filename (lesson->folder, tape, NULL);
      found = found && lesson->models[i];
    }
  if (!found)
    {
      td__window_toast (self, _ ("The examples of the lesson are not installed"));
      lesson_free (lesson);
      return;
    }
  td_window_show_message (self, "media-record-symbolic", _ ("Recording Two Examples"),
                          _ ("dynamic_graph.c and static_graph.c are being compiled and run."),
                          NULL);
  record_next (lesson);
}
