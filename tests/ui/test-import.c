/* Files that are made into tapes by a process of their own: the window goes on meanwhile, says
 * how far it is, and outlives whatever becomes of that process. A child that is stopped is one
 * that takes as long as a test wants.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "window/td-window-private.h"

#define TICK_MS 10
#define CANCEL_US 200000
#define BESIDE 60000 /* operations */

/* A trace of so many operations. Owner of the path: caller. */
static char *
write_trace (const char *name, guint n)
{
  char *path = g_strdup (td_test_tmp (name));
  FILE *file = fopen (path, "w");

  assert_non_null (file);
  fputs ("{\"traceEvents\":[", file);
  for (guint i = 0; i < n; i++)
    fprintf (file,
             "%s{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::op%u\",\"pid\":1,\"tid\":1,"
             "\"ts\":%u,\"dur\":7,\"args\":{\"Sequence number\":%u}}",
             i ? ",\n" : "", i % 50, i * 10, i);
  fputs ("]}", file);
  assert_int_equal (fclose (file), 0);
  return path;
}

static void
open_file (const char *path)
{
  g_autoptr (GFile) file = g_file_new_for_path (path);

  td_window_open (ui_test_window (), file);
}

static gboolean
is_over (gpointer unused)
{
  return !ui_test_window ()->import && !ui_test_window ()->loading;
}

static gboolean
shows_progress (gpointer unused)
{
  return gtk_widget_get_mapped (GTK_WIDGET (ui_test_window ()->message_progress));
}

static gboolean
has_gone (gpointer pid)
{
  return kill (*(pid_t *)pid, 0) != 0;
}

/* Whatever lies in the cache for a file. */
static guint
count_kept (const char *path)
{
  g_autofree char *tape = td_session_dup_import (path, NULL);
  g_autofree char *folder = g_path_get_dirname (tape);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  guint n = 0;

  while (g_dir_read_name (dir))
    n++;
  return n;
}

static gboolean
nothing_is_kept (gpointer path)
{
  return count_kept (path) == 0;
}

/* Begin to open a file, and stop the process that makes its tape. */
static pid_t
open_stopped (const char *path)
{
  pid_t pid;

  open_file (path);
  assert_non_null (ui_test_window ()->import);
  pid = (pid_t)atoi (td_job_get_process (ui_test_window ()->import));
  assert_int_equal (kill (pid, SIGSTOP), 0);
  return pid;
}

/* The process and what it wrote are no more. */
static void
assert_nothing_left (pid_t pid, char *path)
{
  ui_test_wait ("the end of the process", has_gone, &pid);
  ui_test_wait ("an empty folder", nothing_is_kept, path);
}

typedef struct
{
  gint64 last, longest;
  guint n;
} Ticks;

static gboolean
tick (gpointer data)
{
  Ticks *ticks = data;
  gint64 now = g_get_monotonic_time ();

  ticks->longest = MAX (ticks->longest, now - ticks->last);
  ticks->last = now;
  ticks->n++;
  return G_SOURCE_CONTINUE;
}

static gboolean
is_writing (void)
{
  const char *doing;

  td_job_get_part (ui_test_window ()->import, &doing);
  return g_str_equal (doing, "writing");
}

static void
import__leaves_the_main_loop_free (void **state)
{
  g_autofree char *path = write_trace ("large.json", 600000);
  gint64 start = g_get_monotonic_time ();
  Ticks ticks = { .last = start };
  guint timer = g_timeout_add (TICK_MS, tick, &ticks);
  gint64 took;

  open_file (path);
  assert_true (g_get_monotonic_time () - start < G_USEC_PER_SEC / 5);
  /* while it is read: what comes then is the window's own */
  while (ui_test_window ()->import && !is_writing ())
    g_main_context_iteration (NULL, TRUE);
  took = g_get_monotonic_time () - start;
  g_source_remove (timer);
  print_message ("%.2f s, longest pause %.3f s, %u ticks\n", (double)took / 1e6,
                 (double)ticks.longest / 1e6, ticks.n);
  assert_true (took > 3 * G_USEC_PER_SEC / 10); /* a large file it is */
  assert_true (ticks.longest < took / 3);
  assert_true (ticks.n > 10);
  ui_test_wait ("its tape", is_over, NULL);
  assert_string_equal (ui_test_page (), "workspace");
  assert_true (td_session_is_trace (ui_test_session ()));
  assert_int_equal (count_kept (path), 1);
  /* the second time there is a tape */
  ui_test_new_window ();
  open_file (path);
  assert_null (ui_test_window ()->import);
  ui_test_wait ("its tape", is_over, NULL);
  assert_string_equal (ui_test_page (), "workspace");
}

static void
import__says_how_far_it_is_after_a_second (void **state)
{
  g_autofree char *path = write_trace ("slow.json", 200000);
  gint64 start = g_get_monotonic_time ();
  pid_t pid = open_stopped (path);

  ui_test_settle ();
  if (g_get_monotonic_time () - start < G_USEC_PER_SEC / 2)
    assert_string_equal (ui_test_page (), "start");
  ui_test_wait ("its progress", shows_progress, NULL);
  assert_true (g_get_monotonic_time () - start >= 9 * G_USEC_PER_SEC / 10);
  assert_string_equal (ui_test_message_title (), "Opening slow.json");
  g_signal_emit_by_name (ui_test_window ()->import, "progress", 0.42, "reading");
  assert_string_equal (ui_test_message_text (), "Reading the file: 42 %");
  assert_true (gtk_progress_bar_get_fraction (ui_test_window ()->message_progress) == 0.42);
  assert_true (gtk_widget_get_mapped (ui_test_window ()->message_cancel));
  assert_false (gtk_widget_get_visible (ui_test_window ()->message_again));
  assert_false (td_window_is_empty (ui_test_window ()));
  ui_test_save_picture ("import-progress.png");
  ui_test_set_dark (TRUE);
  ui_test_settle ();
  ui_test_save_picture ("import-progress-dark.png");
  ui_test_set_dark (FALSE);
  g_signal_emit_by_name (ui_test_window ()->import, "progress", 0.0, "arranging");
  assert_string_equal (ui_test_message_text (), "Putting what was read in order");
  assert_int_equal (kill (pid, SIGCONT), 0);
  ui_test_wait ("its tape", is_over, NULL);
  assert_string_equal (ui_test_page (), "workspace");
  assert_int_equal (count_kept (path), 1);
}

/* By its button, and by Escape; on the start page, and before a recording. */
static void
import__is_cancelled_at_once_and_leaves_nothing (void **state)
{
  g_autofree char *path = write_trace ("cancel.json", 200000);

  for (int with_recording = 0; with_recording < 2; with_recording++)
    {
      if (with_recording)
        ui_test_open_sample (NULL);
      g_autofree char *before = g_strdup (ui_test_page ());
      TdSession *session = ui_test_session ();
      pid_t pid = open_stopped (path);

      ui_test_wait ("its progress", shows_progress, NULL);
      gint64 start = g_get_monotonic_time ();
      if (with_recording)
        ui_test_do ("cancel", NULL);
      else
        g_signal_emit_by_name (ui_test_window ()->message_cancel, "clicked");
      ui_test_wait ("its end", is_over, NULL);
      assert_true (g_get_monotonic_time () - start < CANCEL_US);
      assert_string_equal (ui_test_page (), before);
      assert_ptr_equal (ui_test_session (), session);
      assert_nothing_left (pid, path);
    }
  open_file (path); /* and it opens as ever */
  ui_test_wait ("its tape", is_over, NULL);
  assert_true (td_session_is_trace (ui_test_session ()));
}

static void
import__that_is_killed_is_said_and_tried_again (void **state)
{
  g_autofree char *path = write_trace ("killed.json", 60000);
  pid_t pid = open_stopped (path);

  assert_int_equal (kill (pid, SIGKILL), 0);
  ui_test_wait ("its end", is_over, NULL);
  assert_string_equal (ui_test_message_title (), "This Trace Cannot Be Read");
  assert_string_equal (
      ui_test_message_text (),
      "tapedeck import was ended by signal 9 (Killed), as the system does when "
      "memory is short: nothing of it was kept, and opening the file again "
      "tries again");
  assert_nothing_left (pid, path);
  assert_true (gtk_widget_get_mapped (ui_test_window ()->message_again));
  assert_false (gtk_widget_get_visible (ui_test_window ()->message_cancel));
  ui_test_save_picture ("import-killed.png");
  g_signal_emit_by_name (ui_test_window ()->message_again, "clicked");
  ui_test_wait ("its tape", is_over, NULL);
  assert_string_equal (ui_test_page (), "workspace");
  assert_true (td_session_is_trace (ui_test_session ()));
}

static void
import__that_crashes_is_said (void **state)
{
  g_autofree char *path = write_trace ("crash.json", 60000);
  pid_t pid = open_stopped (path);

  kill (pid, SIGSEGV);
  kill (pid, SIGCONT);
  ui_test_wait ("its end", is_over, NULL);
  assert_true (g_str_has_prefix (
      ui_test_message_text (), "tapedeck import was ended by signal 11 (Segmentation fault)"));
  assert_nothing_left (pid, path);
}

/* One line, which names the file and where it ends; to try again would be in vain. */
static void
import__of_a_truncated_file_says_where_it_ends (void **state)
{
  g_autofree char *path = g_strdup (td_test_tmp ("cut.pickle"));
  g_autofree char *bytes = NULL;
  gsize n;

  g_file_get_contents (td_test_source ("tests/golden/snapshot/small-4.pickle"), &bytes, &n,
                       NULL);
  td_test_write_file (path, bytes, n / 2);
  ui_test_open (path);
  assert_string_equal (ui_test_message_title (), "This Snapshot Cannot Be Read");
  assert_true (g_str_has_prefix (ui_test_message_text (), path));
  assert_non_null (strstr (ui_test_message_text (), "the file ends within the pickle"));
  assert_null (strchr (ui_test_message_text (), '\n'));
  assert_false (gtk_widget_get_visible (ui_test_window ()->message_again));
  assert_int_equal (count_kept (path), 0);
}

static void
import__ends_with_its_window (void **state)
{
  g_autofree char *path = write_trace ("close.json", 200000);
  pid_t pid = open_stopped (path);

  ui_test_new_window (); /* the old one is destroyed */
  assert_nothing_left (pid, path);
}

static void
import__gives_way_to_what_is_opened_next (void **state)
{
  g_autofree char *path = write_trace ("first.json", 200000);
  pid_t pid = open_stopped (path);

  ui_test_wait ("its progress", shows_progress, NULL);
  ui_test_open_sample (NULL);
  assert_null (ui_test_window ()->import);
  assert_nothing_left (pid, path);
  assert_string_equal (ui_test_page (), "workspace");
  assert_false (td_session_is_trace (ui_test_session ()));
}

static gboolean
is_compared (gpointer page)
{
  return td_compare_page_get (page) != NULL;
}

/* What stands beside a recording is made likewise; the recording stays. */
static void
import__of_what_is_compared_with_can_be_cancelled (void **state)
{
  g_autofree char *path = write_trace ("beside.json", BESIDE);
  TdComparePage *page;
  pid_t pid;

  ui_test_open_sample (NULL);
  page = td_workspace_get_compare (ui_test_workspace ());
  td__run_compare_with (ui_test_window (), path);
  assert_non_null (ui_test_window ()->import);
  pid = (pid_t)atoi (td_job_get_process (ui_test_window ()->import));
  assert_int_equal (kill (pid, SIGSTOP), 0);
  ui_test_wait ("its progress", shows_progress, NULL);
  ui_test_do ("cancel-import", NULL);
  assert_string_equal (ui_test_page (), "workspace");
  assert_false (td_compare_page_has_other_recording (page));
  assert_nothing_left (pid, path);

  td__run_compare_with (ui_test_window (), path);
  pid = (pid_t)atoi (td_job_get_process (ui_test_window ()->import));
  kill (pid, SIGKILL);
  ui_test_wait ("its end", is_over, NULL);
  assert_string_equal (ui_test_page (), "workspace");
  assert_non_null (strstr (ui_test_info_text (), "was ended by signal 9 (Killed)"));

  td__run_compare_with (ui_test_window (), path);
  ui_test_wait ("its tape", is_over, NULL);
  ui_test_wait ("the comparison", is_compared, page);
  g_autoptr (TdIteration) other = td_session_get_current (td_compare_page_get_other (page));
  assert_int_equal (td_iteration_get_n_events (other), BESIDE);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (import__leaves_the_main_loop_free),
    ui_test (import__says_how_far_it_is_after_a_second),
    ui_test (import__is_cancelled_at_once_and_leaves_nothing),
    ui_test (import__that_is_killed_is_said_and_tried_again),
    ui_test (import__that_crashes_is_said),
    ui_test (import__of_a_truncated_file_says_where_it_ends),
    ui_test (import__ends_with_its_window),
    ui_test (import__gives_way_to_what_is_opened_next),
    ui_test (import__of_what_is_compared_with_can_be_cancelled),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
