/* The record page, the folders of runs, and what a started program shares with the app.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utime.h>

#include "pages/td-record-page.h"
#include "live/td-runs.h"
#include "settings/td-settings.h"
#include "window/td-window-private.h"

static TdRecordPage *
open_page (void)
{
  td_test_program ("app/tapedeck");
  g_action_group_activate_action (G_ACTION_GROUP (ui_test_app ()), "record", NULL);
  ui_test_settle ();
  assert_string_equal (ui_test_page (), "record");
  return TD_RECORD_PAGE (ui_test_window ()->record_page);
}

static gboolean
is_state (gpointer wanted)
{
  g_autofree char *state = ui_test_state ("state");
  return ui_test_session () && g_str_equal (state, wanted);
}

static void
record__starts_what_the_page_says (void **state)
{
  TdRecordPage *page = open_page ();
  g_autofree char *arguments = g_shell_quote (td_test_tmp ("pid"));
  td_record_page_set_text (page, TD_RECORD_PROGRAM, td_test_source ("tests/ui/models/train.c"));
  td_record_page_set_text (page, TD_RECORD_ARGUMENTS, arguments);
  td_record_page_set_text (page, TD_RECORD_DIRECTORY, td_test_tmp (""));
  td_record_page_set_text (page, TD_RECORD_STOP, "iteration == 5");
  td_record_page_set_text (page, TD_RECORD_BUDGET, "3M");
  td_record_page_set_text (page, TD_RECORD_RATE, "2M");
  td_record_page_set_text (page, TD_RECORD_SEED, "7");
  td_record_page_set_text (page, TD_RECORD_KEYFRAMES, "3");
  td_record_page_choose (page, 0, -1);
  td_record_page_start (page);
  assert_string_equal (td_record_page_get_error (page), "");
  ui_test_wait ("a program that has stopped", is_state, (gpointer) "paused");
  assert_int_equal (td_session_get_head (ui_test_session ()).iteration, 5);
  const TdTapeHeader *header
      = td_tape_reader_header (td_session_get_reader (ui_test_session ()));
  assert_int_equal (header->level, TD_TAPE_LEVEL_GRAPH);
  assert_int_equal (header->budget_bytes, 3 << 20);

  ui_test_new_window (); /* a later one is filled as this was left */
  page = open_page ();
  assert_string_equal (td_record_page_get_text (page, TD_RECORD_ARGUMENTS), arguments);
  assert_string_equal (td_record_page_get_text (page, TD_RECORD_STOP), "iteration == 5");
  assert_string_equal (td_record_page_get_text (page, TD_RECORD_BUDGET), "3M");
  assert_string_equal (td_record_page_get_text (page, TD_RECORD_RATE), "2M");
  assert_contains (td_record_page_get_command (page), "--tape-rate 2M");
  assert_string_equal (td_record_page_get_text (page, TD_RECORD_SEED), "7");
  assert_string_equal (td_record_page_get_text (page, TD_RECORD_KEYFRAMES), "3");
  assert_contains (td_record_page_get_command (page), "--keyframes 3");
  assert_contains (td_record_page_get_command (page), "--level graph");
}

static void
record__bad_input_is_one_clear_line (void **state)
{
  static const struct
  {
    TdRecordField field;
    const char *text, *words;
  } bad[] = {
    { TD_RECORD_PROGRAM, "", "Choose a model or a program first." },
    { TD_RECORD_PROGRAM, "/nowhere/model.c", "/nowhere/model.c does not exist." },
    { TD_RECORD_PROGRAM, "/", "/ is a folder." },
    { TD_RECORD_PROGRAM, "/etc/passwd", "neither a model in C (.c) nor a program" },
    { TD_RECORD_ARGUMENTS, "one 'two", "Arguments: " },
    { TD_RECORD_DIRECTORY, "/nowhere", "The working folder /nowhere does not exist." },
    { TD_RECORD_ENVIRONMENT, "A=1 B", "Environment: B: NAME=VALUE expected" },
    { TD_RECORD_BUDGET, "much", "--tape-budget much: a number of bytes expected" },
    { TD_RECORD_RATE, "fast", "--tape-rate fast: a number of bytes expected" },
    { TD_RECORD_STOP, "norm(grad) >", "norm(grad) wants a comparison with a number" },
    { TD_RECORD_ITERATIONS, "0", "--iterations 0: a number above 0 expected" },
    { TD_RECORD_SEED, "x", "--seed x: a number expected" },
    { TD_RECORD_KEYFRAMES, "x", "--keyframes x: a number expected" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      ui_test_new_window ();
      TdRecordPage *page = open_page ();
      td_record_page_set_text (page, TD_RECORD_PROGRAM,
                               td_test_source ("tests/ui/models/train.c"));
      td_record_page_set_text (page, bad[i].field, bad[i].text);
      td_record_page_start (page);
      const char *line = td_record_page_get_error (page);
      if (!strstr (line, bad[i].words) || strchr (line, '\n'))
        fail_msg ("%s: said %s", bad[i].words, line);
      assert_string_equal (ui_test_page (), "record");
      assert_null (ui_test_window ()->runner);
      td_record_page_set_text (page, TD_RECORD_SEED, "1"); /* it is gone with the next change */
      td_record_page_set_text (page, TD_RECORD_SEED, "2");
      assert_string_equal (td_record_page_get_error (page), "");
    }
}

static void
record__says_the_same_for_a_terminal (void **state)
{
  TdRecordPage *page = open_page ();
  td_record_page_set_text (page, TD_RECORD_PROGRAM, "/tmp/my net.c");
  td_record_page_set_text (page, TD_RECORD_ARGUMENTS, "--epochs 3 'a b'");
  td_record_page_set_text (page, TD_RECORD_STOP, "nan || norm(grad) > 5");
  td_record_page_choose (page, 1, 2);
  assert_string_equal (td_record_page_get_command (page),
                       "tapedeck run -o 'my net.tdtape' --level stats --tape-budget 512M "
                       "--tape-rate 1M --device null --break "
                       "'nan || norm(grad) > 5' '/tmp/my net.c' --epochs 3 'a b'");
}

/* Every field and button is reached with Tab, and Escape leaves. */
static void
record__is_complete_by_keyboard (void **state)
{
  static const char *const wanted[] = { "Choose a Model", "Choose the Working Folder", "Copy",
                                        "_Cancel", "_Start Recording" };
  TdRecordPage *page = open_page ();
  GtkWindow *window = GTK_WINDOW (ui_test_window ());
  gboolean seen[G_N_ELEMENTS (wanted)] = { FALSE };
  g_autoptr (GHashTable) rows = g_hash_table_new (NULL, NULL);
  for (int i = 0; i < 100; i++)
    {
      GtkWidget *focus = gtk_window_get_focus (window);
      GtkWidget *row = focus ? gtk_widget_get_ancestor (focus, GTK_TYPE_LIST_BOX_ROW) : NULL;
      if (row)
        g_hash_table_add (rows, row);
      for (guint k = 0; focus && k < G_N_ELEMENTS (wanted); k++)
        seen[k]
            |= g_strcmp0 (gtk_widget_get_tooltip_text (focus), wanted[k]) == 0
               || (GTK_IS_BUTTON (focus)
                   && g_strcmp0 (gtk_button_get_label (GTK_BUTTON (focus)), wanted[k]) == 0);
      gtk_widget_child_focus (GTK_WIDGET (window), GTK_DIR_TAB_FORWARD);
    }
  assert_int_equal (g_hash_table_size (rows), TD_N_RECORD_FIELDS + 2);
  for (guint k = 0; k < G_N_ELEMENTS (wanted); k++)
    if (!seen[k])
      fail_msg ("Tab never comes to %s", wanted[k]);
  assert_string_equal (td_record_page_get_error (page), "");
  ui_test_do ("cancel", NULL);
  assert_string_equal (ui_test_page (), "start");
}

static void
record__looks_right_in_light_and_dark (void **state)
{
  TdRecordPage *page = open_page ();
  ui_test_resize (1440, 900);
  td_record_page_set_text (page, TD_RECORD_PROGRAM, "/models/lenet.c");
  td_record_page_set_text (page, TD_RECORD_ARGUMENTS, "--epochs 3");
  assert_true (ui_test_has_many_colours (12));
  ui_test_save_picture ("record.png");
  ui_test_set_dark (TRUE);
  ui_test_save_picture ("record-dark.png");
  ui_test_set_dark (FALSE);
}

/* ---- folders of runs ---- */

/* A run whose tape was written `age` seconds before the others. */
static char *
make_run (const char *name, int age, const void *tape, gsize n)
{
  g_autofree char *root = td_runs_folder ();
  char *folder = g_build_filename (root, name, NULL);
  static const char *const files[] = { "run.tdtape", "stdout.log", "stderr.log" };
  g_mkdir_with_parents (folder, 0700);
  for (guint i = 0; i < G_N_ELEMENTS (files); i++)
    {
      g_autofree char *path = g_build_filename (folder, files[i], NULL);
      assert_true (
          g_file_set_contents (path, i == 0 ? tape : "x", i == 0 ? (gssize)n : 1, NULL));
      time_t when = 1000000000 - age;
      assert_int_equal (utime (path, &(struct utimbuf){ when, when }), 0);
    }
  return folder;
}

static gboolean
has_file (const char *folder, const char *name)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);
  return g_file_test (path, G_FILE_TEST_EXISTS);
}

static void
remove_runs (void)
{
  g_autofree char *root = td_runs_folder ();
  const char *const argv[] = { "rm", "-rf", root, NULL };
  TdTestChild child = td_test_run (argv, NULL, NULL);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

static void
runs__the_newest_are_kept_and_what_the_user_made (void **state)
{
  guint64 bytes;
  remove_runs ();
  g_autofree char *a = make_run ("a", 4, "old", 3), *b = make_run ("b", 3, "older", 5);
  g_autofree char *c = make_run ("c", 2, "new", 3), *d = make_run ("d", 1, "newest", 6);
  g_autofree char *weights = g_build_filename (a, "mlp.npz", NULL);
  g_autofree char *named = g_build_filename (a, "good.tdtape", NULL);
  assert_true (g_file_set_contents (weights, "w", 1, NULL));
  assert_true (g_file_set_contents (named, "t", 1, NULL));
  assert_int_equal (td_runs_clear (0, 0, NULL, &bytes), 0);
  assert_int_equal (td_runs_clear (2, 0, NULL, &bytes), 2);
  assert_int_equal (bytes, 3 + 5 + 4);
  assert_true (has_file (c, "run.tdtape") && has_file (d, "stdout.log"));
  assert_false (g_file_test (b, G_FILE_TEST_EXISTS));
  assert_false (has_file (a, "run.tdtape") || has_file (a, "stdout.log"));
  assert_true (has_file (a, "mlp.npz") && has_file (a, "good.tdtape"));
  assert_int_equal (td_runs_clear (2, 0, NULL, &bytes), 0);
}

static void
runs__what_is_written_or_shown_is_kept (void **state)
{
  guint64 bytes;
  TdTapeHeader header = { .pid = getpid (), .wall_ns = (guint64)g_get_real_time () * 1000 };
  memcpy (header.magic, TD_TAPE_MAGIC, sizeof header.magic);
  remove_runs ();
  g_autofree char *written = make_run ("a", 9, &header, sizeof header);
  header.wall_ns = 1; /* its process is another one that has the number now */
  g_autofree char *over = make_run ("b", 8, &header, sizeof header);
  g_autofree char *shown = make_run ("c", 7, "x", 1), *newest = make_run ("d", 1, "x", 1);
  g_autofree char *tape = g_build_filename (shown, "run.tdtape", NULL);
  const char *const open[] = { tape, NULL };
  assert_int_equal (td_runs_clear (1, 0, open, &bytes), 1);
  assert_true (has_file (written, "run.tdtape") && has_file (shown, "run.tdtape"));
  assert_true (has_file (newest, "run.tdtape"));
  assert_false (g_file_test (over, G_FILE_TEST_EXISTS));
}

static void
runs__the_oldest_go_until_the_rest_fits_the_budget (void **state)
{
  char big[1000] = "tape";
  guint64 bytes;
  remove_runs ();
  g_autofree char *a = make_run ("a", 4, big, sizeof big);
  g_autofree char *b = make_run ("b", 3, big, sizeof big);
  g_autofree char *c = make_run ("c", 2, big, sizeof big);
  g_autofree char *d = make_run ("d", 1, big, sizeof big);
  g_autofree char *tape = g_build_filename (a, "run.tdtape", NULL);
  const char *const open[] = { tape, NULL };
  assert_int_equal (td_runs_measure (&bytes), 4);
  assert_int_equal (bytes, 4 * 1002);
  assert_int_equal (td_runs_clear (0, 4 * 1002, open, &bytes), 0);
  assert_int_equal (td_runs_clear (0, 3000, open, &bytes), 2); /* the oldest is open */
  assert_int_equal (bytes, 2 * 1002);
  assert_true (has_file (a, "run.tdtape") && has_file (d, "run.tdtape"));
  assert_false (g_file_test (b, G_FILE_TEST_EXISTS) || g_file_test (c, G_FILE_TEST_EXISTS));
  assert_int_equal (td_runs_clear (0, 10, NULL, &bytes), 1); /* the newest is never too big */
  assert_true (has_file (d, "run.tdtape"));
}

static gboolean
has_ended (gpointer unused)
{
  return !ui_test_window ()->runner;
}

static gboolean
has_recorded (gpointer iterations)
{
  TdSession *session = ui_test_session ();
  return session && td_session_get_head (session).iteration >= GPOINTER_TO_INT (iterations);
}

static gboolean
is_gone (gpointer folder)
{
  return !g_file_test (folder, G_FILE_TEST_EXISTS);
}

/* A fast loop: without a budget 40 bytes an iteration, 2.1 GB in 100 s. */
static void
runs__one_from_the_window_stays_below_its_share (void **state)
{
  const guint64 budget = 4000000;
  guint64 bytes;
  remove_runs ();
  g_settings_set_uint64 (td_settings_get (), "runs-budget", budget);
  assert_int_equal (td_settings_get_run_bytes (), budget / 2);
  td_test_program ("app/tapedeck");
  g_autoptr (GFile) file = g_file_new_for_path (td_test_source ("tests/ui/models/train.c"));
  td_window_run (ui_test_window (), file, NULL);
  ui_test_wait ("30000 iterations", has_recorded, GINT_TO_POINTER (30000));
  GStatBuf info; /* without the ring, which goes with the program */
  assert_int_equal (g_stat (td_runner_get_tape (ui_test_window ()->runner), &info), 0);
  assert_in_range (info.st_size, 1, budget);
  /* Another window's run has ended meanwhile: together they are too many bytes. */
  g_autofree char *much = g_malloc0 (budget);
  g_autofree char *other = make_run ("other", 4, much, budget);
  ui_test_wait ("the other run to go", is_gone, other);
  assert_true (td_runner_is_running (ui_test_window ()->runner));
  td_runner_stop (ui_test_window ()->runner);
  ui_test_wait ("the end of the program", has_ended, NULL);
  assert_int_equal (td_runs_measure (&bytes), 1);
  assert_in_range (bytes, 1, budget);
  ui_test_new_window ();
  ui_test_save_picture ("start-runs.png");
  g_settings_set_uint64 (td_settings_get (), "runs-budget", 0);
  g_settings_set_uint64 (td_settings_get (), "tape-budget", 7000);
  assert_int_equal (td_settings_get_run_bytes (), 7000);
}

static void
runs__starting_one_clears_the_oldest (void **state)
{
  remove_runs ();
  g_autofree char *a = make_run ("a", 4, "old", 3), *b = make_run ("b", 3, "newer", 5);
  g_settings_set_uint (td_settings_get (), "runs-kept", 1);
  td_test_program ("app/tapedeck");
  g_autoptr (GFile) program = g_file_new_for_path ("/bin/true");
  td_window_run (ui_test_window (), program, NULL);
  assert_false (g_file_test (a, G_FILE_TEST_EXISTS));
  assert_true (g_file_test (b, G_FILE_TEST_EXISTS));
  ui_test_wait ("the end of the program", has_ended, NULL);
}

/* 80 MB of output leave less than 64 MB on the disk, and the log says so. */
static void
runs__log_of_an_endless_printer_is_bounded (void **state)
{
  static const char text_of_script[]
      = "#!/bin/sh\nyes 0123456789012345678901234567890123456789 | head -c 80000000\n"
        "echo the last line\n";
  const char *script = td_test_tmp ("print");
  td_test_write_file (script, text_of_script, strlen (text_of_script));
  assert_int_equal (g_chmod (script, 0755), 0);
  td_test_program ("app/tapedeck");
  g_autoptr (GFile) program = g_file_new_for_path (script);
  td_window_run (ui_test_window (), program, NULL);
  g_autofree char *folder = g_path_get_dirname (td_runner_get_tape (ui_test_window ()->runner));
  g_autofree char *log = g_build_filename (folder, "stdout.log", NULL);
  fflush (stdout); /* the app says it on to whoever started it: not into the test's log */
  int usual = dup (1), nowhere = open ("/dev/null", O_WRONLY);
  dup2 (nowhere, 1);
  ui_test_wait ("the end of the program", has_ended, NULL);
  fflush (stdout);
  dup2 (usual, 1);
  close (usual);
  close (nowhere);
  GStatBuf info;
  assert_int_equal (g_stat (log, &info), 0);
  assert_true (info.st_size < 64 << 20);
  g_autofree char *text = td_log_page_dup_text (td_workspace_get_log (ui_test_workspace ()));
  assert_contains (text, "begins anew");
  assert_contains (text, "the last line");
}

/* ---- the process ---- */

static gboolean
exists (gpointer path)
{
  g_autofree char *text = NULL;
  return g_file_get_contents (path, &text, NULL, NULL) && atoi (text) > 0;
}

static void
run__program_has_a_session_of_its_own (void **state)
{
  size_t n;
  const char *args[] = { td_test_tmp ("pid"), NULL };
  g_autoptr (GFile) program = g_file_new_for_path (td_test_source ("tests/ui/models/train.c"));
  td_test_program ("app/tapedeck");
  td_window_run (ui_test_window (), program, args);
  ui_test_wait ("the program's number", exists, (gpointer)args[0]);
  char *text = td_test_read_file (args[0], &n);
  pid_t pid = (pid_t)atoi (text);
  free (text);
  assert_true (getsid (pid) > 0);
  assert_true (getsid (pid) != getsid (0));
  assert_true (getpgid (pid) != getpgid (0));
}

static gboolean
says (gpointer words)
{
  return strstr (ui_test_message_text (), words) != NULL;
}

/* A program that loads for long says so on the page, and can be stopped there. */
static void
run__waiting_shows_the_time_and_the_last_words (void **state)
{
  static const char text[]
      = "#!/bin/sh\nfor i in 1 2 3 4 5 6 7 8 9; do echo \"loading <$i>\" >&2; done\n"
        "exec tail -f /dev/null\n";
  const char *script = td_test_tmp ("slow");
  td_test_write_file (script, text, strlen (text));
  assert_int_equal (g_chmod (script, 0755), 0);
  td_test_program ("app/tapedeck");
  g_autoptr (GFile) program = g_file_new_for_path (script);
  td_window_run (ui_test_window (), program, NULL);
  assert_string_equal (ui_test_message_title (), "Waiting for the First Operation");
  ui_test_wait ("the last words", says, (gpointer) "loading &lt;9&gt;");
  ui_test_wait ("the time", says, (gpointer) " s)");
  assert_null (strstr (ui_test_message_text (), "loading &lt;4&gt;"));
  ui_test_save_picture ("waiting.png");
  assert_true (gtk_widget_get_mapped (ui_test_window ()->message_stop));
  g_signal_emit_by_name (ui_test_window ()->message_stop, "clicked");
  ui_test_wait ("the end of the program", has_ended, NULL);
  assert_string_equal (ui_test_message_title (),
                       "The Program Ended Before Its First Operation");
  assert_false (gtk_widget_get_visible (ui_test_window ()->message_stop));
}

/* An ONNX file that cannot be run is no program that stands at an error: the page says what it
 * lacks, and nothing is left to continue. */
static void
run__of_a_model_that_is_refused_says_what_it_lacks (void **state)
{
  /* y = Fancy (x) of opset 17, sizes (n). */
  static const char unknown[]
      = "\x08\x08\x42\x02\x10\x11\x3a\x36\x0a\x0d\x0a\x01x\x12\x01y\x22\x05"
        "Fancy\x12\x01g"
        "\x5a\x10\x0a\x01x\x12\x0b\x0a\x09\x08\x01\x12\x05\x0a\x03\x12\x01n"
        "\x62\x10\x0a\x01y\x12\x0b\x0a\x09\x08\x01\x12\x05\x0a\x03\x12\x01n";
  static const struct
  {
    const char *bytes;
    gsize n;
    const char *title, *says;
  } models[] = {
    { unknown, sizeof unknown - 1, "The Model Needs What Is Not There", "operator Fancy" },
    { "nonsense", 8, "The Program Ended Before Its First Operation", "not an ONNX model" },
  };
  const char *path = td_test_tmp ("refused.onnx");
  td_test_program ("app/tapedeck");
  for (gsize i = 0; i < G_N_ELEMENTS (models); i++)
    {
      td_test_write_file (path, models[i].bytes, models[i].n);
      g_autoptr (GFile) file = g_file_new_for_path (path);
      td_window_run (ui_test_window (), file, NULL);
      ui_test_wait ("the end of the program", has_ended, NULL);
      assert_string_equal (ui_test_message_title (), models[i].title);
      assert_non_null (strstr (ui_test_message_text (), models[i].says));
      /* "" where the end came before the tape was opened */
      assert_string_not_equal (adw_window_title_get_subtitle (ui_test_window ()->title),
                               "Waiting for the first operation");
    }
  ui_test_save_picture ("refused-model.png");
}

/* ---- text ---- */

/* Medium hinting, GTK's own where no desktop says otherwise, flattens bold letters. */
static void
text__is_hinted_as_on_a_desktop (void **state)
{
  g_autofree char *style = NULL;
  g_object_get (gtk_settings_get_default (), "gtk-xft-hintstyle", &style, NULL);
  assert_string_equal (style, "hintslight");
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (text__is_hinted_as_on_a_desktop),
    ui_test (record__says_the_same_for_a_terminal),
    ui_test (record__bad_input_is_one_clear_line),
    ui_test (record__is_complete_by_keyboard),
    ui_test (record__looks_right_in_light_and_dark),
    ui_test (record__starts_what_the_page_says),
    ui_test (runs__the_newest_are_kept_and_what_the_user_made),
    ui_test (runs__what_is_written_or_shown_is_kept),
    ui_test (runs__the_oldest_go_until_the_rest_fits_the_budget),
    ui_test (runs__one_from_the_window_stays_below_its_share),
    ui_test (runs__starting_one_clears_the_oldest),
    ui_test (runs__log_of_an_endless_printer_is_bounded),
    ui_test (run__program_has_a_session_of_its_own),
    ui_test (run__waiting_shows_the_time_and_the_last_words),
    ui_test (run__of_a_model_that_is_refused_says_what_it_lacks),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
