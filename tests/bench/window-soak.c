/* What the window and the supervisor take of memory while a training is recorded and looked at:
 * resident, each time so many more iterations have run. Prints one JSON object a line, and one
 * at the end for what was added since the first twentieth of the run. The
 * window follows the program all the time: what it has shown stays in its cache of iterations,
 * and that is what it may add.
 *
 *     window-soak PROGRAM [NAME=VALUE ...]     of tests/models/life
 *
 * SPDX-License-Identifier: MIT */
#include "../ui/ui-test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAMPLES 20
#define MOST_SECONDS 900
#define CACHE_MB 268 /* td-session.c */
#define GOAL_MB 8    /* beside it, and of the supervisor in the later half */

typedef struct
{
  gint64 iteration;
  double window_mb, supervisor_mb;
} Sample;

static char **arguments; /* program, its arguments */
static gint64 n_iterations;

/* Resident memory of a process; 0: it has ended. */
static double
resident_mb (pid_t pid)
{
  g_autofree char *path = g_strdup_printf ("/proc/%d/statm", (int)pid);
  g_autofree char *text = NULL;
  if (!g_file_get_contents (path, &text, NULL, NULL) || !strchr (text, ' '))
    return 0;
  return (double)g_ascii_strtoull (strchr (text, ' '), NULL, 10)
         * (double)sysconf (_SC_PAGESIZE) / 1e6;
}

static pid_t
start (const char *tape)
{
  g_autofree char *program = g_build_filename ("tests/life", arguments[0], NULL);
  const char *const run[]
      = { td_test_program ("app/tapedeck"), "run", "--quiet", "--level", "stats", "-o", tape,
          td_test_build (program),          NULL };
  g_autoptr (GPtrArray) argv = g_ptr_array_new ();
  for (guint i = 0; run[i]; i++)
    g_ptr_array_add (argv, (gpointer)run[i]);
  for (guint i = 1; arguments[i]; i++)
    g_ptr_array_add (argv, arguments[i]);
  g_ptr_array_add (argv, NULL);
  pid_t pid = fork ();
  if (pid == 0)
    {
      (void)!freopen ("/dev/null", "w", stdout);
      execv (argv->pdata[0], (char **)argv->pdata);
      _exit (127);
    }
  assert_true (pid > 0);
  return pid;
}

static gboolean
is_there (gpointer tape)
{
  return g_file_test (tape, G_FILE_TEST_EXISTS);
}

static void
say (const Sample *s)
{
  printf ("{\"workload\": \"soak.%.3s\", \"iteration\": %" G_GINT64_FORMAT
          ", \"window_mb\": %.1f, \"supervisor_mb\": %.1f}\n",
          arguments[0], s->iteration, s->window_mb, s->supervisor_mb);
  fflush (stdout);
}

static void
say_growth (const char *what, double added, int goal)
{
  printf ("{\"workload\": \"soak.%.3s.%s\", \"threads\": 1, \"value\": %.1f, \"unit\": \"MB\", "
          "\"peer\": null, \"ratio\": null, \"goal\": %d}\n",
          arguments[0], what, added, goal);
}

static gboolean
wake (gpointer data)
{
  return G_SOURCE_CONTINUE;
}

/* Follows the program to its end. Returns how many samples there are. */
static guint
follow (pid_t pid, Sample *samples)
{
  gint64 until = g_get_monotonic_time () + MOST_SECONDS * G_USEC_PER_SEC, next = 0;
  guint timer = g_timeout_add (20, wake, NULL), n = 0;
  int status;
  while (waitpid (pid, &status, WNOHANG) == 0)
    {
      assert_true (g_get_monotonic_time () < until);
      g_main_context_iteration (NULL, TRUE);
      const gint64 now = td_session_get_head (ui_test_session ()).iteration;
      if (now < next || n == SAMPLES)
        continue;
      samples[n] = (Sample){ now, resident_mb (getpid ()), resident_mb (pid) };
      say (&samples[n++]);
      next = now + n_iterations / SAMPLES;
    }
  g_source_remove (timer);
  assert_true (WIFEXITED (status) && WEXITSTATUS (status) == 0);
  return n;
}

static void
window__is_open_while_a_training_runs (void **state)
{
  const char *tape = td_test_tmp ("soak.tdtape");
  Sample samples[SAMPLES];
  ui_test_resize (1440, 900);
  pid_t pid = start (tape);
  ui_test_wait ("the tape", is_there, (gpointer)tape);
  ui_test_open (tape);
  guint n = follow (pid, samples);
  assert_in_range (n, 4, SAMPLES);
  const Sample *first = &samples[1], *half = &samples[n / 2], *last = &samples[n - 1];
  say_growth ("window", last->window_mb - first->window_mb, CACHE_MB + GOAL_MB);
  say_growth ("supervisor-later", last->supervisor_mb - half->supervisor_mb, GOAL_MB);
  (void)state;
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = { ui_test (window__is_open_while_a_training_runs) };
  if (argc < 2)
    {
      fprintf (stderr, "usage: window-soak PROGRAM [NAME=VALUE ...]\n");
      return 2;
    }
  arguments = g_strdupv (argv + 1);
  n_iterations = 20000;
  for (int i = 1; i < argc; i++)
    if (g_str_has_prefix (argv[i], "iterations="))
      n_iterations = MAX (g_ascii_strtoll (argv[i] + 11, NULL, 10), SAMPLES);
  argc = 1;
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
