/* A recording of more than a gigabyte, opened in the window: how long it takes to the first
 * picture, with the index at its end and without, and the memory that it takes.  Time is that
 * of the processor, as machines are shared.
 *
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "pages/td-graph-page.h"

#define LEAST_BYTES 1000000000
#define ROOM_BYTES 2500000000
#define WITH_INDEX_MS 1000
#define WITHOUT_MS 3000
#define MOST_MEMORY 600000000
/* The end of a tape, with what leads to its index and of the last iteration: before that one.
 */
#define CUT_BYTES 10000
#define BEFORE_CUT "i=70&e=3"

static double
cpu_ms (void)
{
  struct timespec now;
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static guint64
resident_bytes (void)
{
  g_autofree char *text = NULL;
  assert_true (g_file_get_contents ("/proc/self/statm", &text, NULL, NULL));
  return g_ascii_strtoull (strchr (text, ' '), NULL, 10) * (guint64)sysconf (_SC_PAGESIZE);
}

static gboolean
has_picture (gpointer unused)
{
  return ui_test_session ()
         && td_graph_view_get_n_nodes (
                td_graph_page_get_view (td_workspace_get_graph (ui_test_workspace ())))
                > 0;
}

/* GPT at level values, all of it kept. */
static void
record (const char *path)
{
  static char *const arguments[] = { (char *)"l03-gpt", (char *)"iterations=72", NULL };
  static const char *const options[]
      = { "--level", "values", "--values-budget", "0", "--tape-budget", "0", "--tape-rate",
          "0",       NULL };
  struct stat file;
  ui_test_record_life (path, arguments, options);
  assert_int_equal (g_stat (path, &file), 0);
  assert_true (file.st_size > LEAST_BYTES);
}

/* `moment`: where to go first; NULL: where it opens. */
static double
open_it (const char *path, const char *moment)
{
  const double before = cpu_ms ();
  ui_test_open (path);
  if (moment)
    ui_test_do ("go-to", moment);
  ui_test_wait ("the graph", has_picture, NULL);
  ui_test_settle ();
  return cpu_ms () - before;
}

static void
gigabyte__has_its_first_picture_within_seconds (void **state)
{
  const char *path = td_test_tmp ("gigabyte.tdtape");
  struct statvfs fs;
  struct stat file;
  if (statvfs (td_test_tmp (""), &fs) != 0
      || (guint64)fs.f_bavail * fs.f_frsize < (guint64)ROOM_BYTES)
    skip ();
  record (path);
  const guint64 before = resident_bytes ();
  const double with = open_it (path, NULL);
  const guint64 more = resident_bytes () - before;
  print_message ("with its index: %.0f ms, %.0f MB\n", with, (double)more / 1e6);
  assert_true (with < WITH_INDEX_MS);
  assert_true (more < (guint64)MOST_MEMORY);
  ui_test_new_window ();
  assert_int_equal (g_stat (path, &file), 0);
  assert_int_equal (truncate (path, file.st_size - CUT_BYTES), 0);
  const double without = open_it (path, BEFORE_CUT);
  print_message ("without: %.0f ms\n", without);
  assert_true (without < WITHOUT_MS);
  assert_int_equal (g_unlink (path), 0);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[]
      = { ui_test (gigabyte__has_its_first_picture_within_seconds) };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests_name ("gigabyte", tests, NULL, NULL);
}
