/* Folders of runs: made with a name that sorts by time within a program, cleared by the time
 * their tape was last written. SPDX-License-Identifier: MIT */
#include "live/td-runs.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "td-session.h"

#define TAPE "run.tdtape"

/* What a run consists of; everything else in its folder is the user's. */
static const char *const own_files[] = { TAPE, TAPE ".ring", "stdout.log", "stderr.log" };

char *
td_runs_folder (void)
{
  return g_build_filename (g_get_user_state_dir (), "tapedeck", "runs", NULL);
}

/* From the desktop there is no working directory worth the name: each run gets one. */
char *
td_runs_make (const char *program)
{
  g_autofree char *base = g_path_get_basename (program);
  if (g_str_has_suffix (base, ".c") || g_str_has_suffix (base, ".onnx"))
    *strrchr (base, '.') = '\0';
  g_autoptr (GDateTime) now = g_date_time_new_now_local ();
  g_autofree char *stamp = g_date_time_format (now, "%Y%m%d-%H%M%S");
  g_autofree char *folder = td_runs_folder ();
  g_autofree char *name = g_strdup_printf ("%s-%s-%d", base, stamp, (int)getpid ());
  char *path = g_build_filename (folder, name, NULL);
  for (int i = 2; g_file_test (path, G_FILE_TEST_EXISTS); i++)
    {
      g_free (path);
      g_autofree char *again = g_strdup_printf ("%s-%d", name, i);
      path = g_build_filename (folder, again, NULL);
    }
  g_mkdir_with_parents (path, 0700);
  return path;
}

typedef struct
{
  char *folder;
  gint64 when; /* seconds */
  guint64 bytes;
} Run;

static void
run_clear (gpointer data)
{
  g_free (((Run *)data)->folder);
}

static gint
newest_first (gconstpointer a, gconstpointer b)
{
  const Run *x = a, *y = b;
  return x->when != y->when ? (x->when < y->when) - (x->when > y->when)
                            : strcmp (y->folder, x->folder);
}

static guint64
size_of_run (const char *folder)
{
  guint64 bytes = 0;
  for (guint i = 0; i < G_N_ELEMENTS (own_files); i++)
    {
      g_autofree char *path = g_build_filename (folder, own_files[i], NULL);
      GStatBuf info;
      if (g_lstat (path, &info) == 0 && S_ISREG (info.st_mode))
        bytes += (guint64)info.st_size;
    }
  return bytes;
}

static GArray *
list_runs (void)
{
  GArray *runs = g_array_new (FALSE, FALSE, sizeof (Run));
  g_autofree char *folder = td_runs_folder ();
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const char *name;
  g_array_set_clear_func (runs, run_clear);
  while (dir && (name = g_dir_read_name (dir)))
    {
      Run run = { g_build_filename (folder, name, NULL), 0, 0 };
      g_autofree char *tape = g_build_filename (run.folder, TAPE, NULL);
      g_autofree char *log = g_build_filename (run.folder, "stdout.log", NULL);
      GStatBuf info;
      if (g_lstat (tape, &info) == 0 || g_lstat (log, &info) == 0)
        {
          run.when = info.st_mtime;
          run.bytes = size_of_run (run.folder);
          g_array_append_val (runs, run);
        }
      else
        g_free (run.folder);
    }
  g_array_sort (runs, newest_first);
  return runs;
}

static gboolean
is_in_use (const char *tape, const char *const *open)
{
  return (open && g_strv_contains (open, tape)) || td_session_tape_is_written (tape);
}

static void
clear_run (const char *folder)
{
  for (guint i = 0; i < G_N_ELEMENTS (own_files); i++)
    {
      g_autofree char *path = g_build_filename (folder, own_files[i], NULL);
      GStatBuf info;
      if (g_lstat (path, &info) == 0 && S_ISREG (info.st_mode))
        g_unlink (path);
    }
  g_rmdir (folder); /* stays when the program has put something there */
}

guint
td_runs_measure (guint64 *bytes)
{
  g_autoptr (GArray) runs = list_runs ();
  *bytes = 0;
  for (guint i = 0; i < runs->len; i++)
    *bytes += g_array_index (runs, Run, i).bytes;
  return runs->len;
}

guint
td_runs_clear (guint keep, guint64 budget, const char *const *open, guint64 *bytes)
{
  g_autoptr (GArray) runs = keep || budget ? list_runs () : NULL;
  guint64 total = 0;
  guint n = 0;
  *bytes = 0;
  for (guint i = 0; runs && i < runs->len; i++)
    total += g_array_index (runs, Run, i).bytes;
  for (guint i = runs ? runs->len : 0; i-- > 0;)
    {
      const Run *run = &g_array_index (runs, Run, i);
      g_autofree char *tape = g_build_filename (run->folder, TAPE, NULL);
      gboolean too_many = keep && i >= keep, too_big = budget && i > 0 && total > budget;
      if ((!too_many && !too_big) || is_in_use (tape, open))
        continue;
      clear_run (run->folder);
      total -= run->bytes;
      *bytes += run->bytes;
      n++;
    }
  return n;
}
