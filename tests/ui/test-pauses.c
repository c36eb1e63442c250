/* How long the window is deaf: the longest turn of its main loop while a large recording is
 * opened, its pages are turned to and its iterations are walked. What counts is the processor's
 * time of the main thread, which does not depend on what else the machine does; both are said.
 *
 *     test-pauses                    recordings of its own
 *     test-pauses TAPE               what is said of this one
 *
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <string.h>
#include <time.h>

#include "td-synthetic-tape.h"
#include "window/td-window-private.h"

/* To lay out and draw a page of the window with Cairo takes up to half of it. */
#define MOST_MS 250
/* The widgets of 200 rows of nine columns, made and measured at once, took 145 ms. */
#define MOST_MS_OF_ROWS 60

typedef struct
{
  double wall_ms, cpu_ms;
} Turn;

static Turn worst, begun;

static double
clock_ms (clockid_t clock)
{
  struct timespec t;
  clock_gettime (clock, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void
end_turn (void)
{
  worst.wall_ms = MAX (worst.wall_ms, clock_ms (CLOCK_MONOTONIC) - begun.wall_ms);
  worst.cpu_ms = MAX (worst.cpu_ms, clock_ms (CLOCK_THREAD_CPUTIME_ID) - begun.cpu_ms);
}

/* Between two polls the loop does one turn. */
static int
timed_poll (GPollFD *fds, guint n, int timeout)
{
  if (begun.wall_ms > 0)
    end_turn ();
  int found = g_poll (fds, n, timeout);
  begun = (Turn){ clock_ms (CLOCK_MONOTONIC), clock_ms (CLOCK_THREAD_CPUTIME_ID) };
  return found;
}

static gboolean
is_time (gpointer until)
{
  return g_get_monotonic_time () > *(gint64 *)until;
}

/* Until what came of it is drawn: a worker's answer comes later. */
static void
run_for (int ms)
{
  gint64 until = g_get_monotonic_time () + ms * (gint64)1000;
  ui_test_wait ("some time", is_time, &until);
}

static void
begin (void)
{
  worst = (Turn){ 0, 0 };
  begun = (Turn){ clock_ms (CLOCK_MONOTONIC), clock_ms (CLOCK_THREAD_CPUTIME_ID) };
}

static double
said (const char *what)
{
  end_turn ();
  print_message ("%-24s longest turn %7.1f ms, %7.1f ms of the processor\n", what,
                 worst.wall_ms, worst.cpu_ms);
  return worst.cpu_ms;
}

static gboolean
is_open (gpointer unused)
{
  return ui_test_session () != NULL;
}

static gboolean
is_read (gpointer unused)
{
  return !ui_test_window ()->loading;
}

static gboolean
has_scene (gpointer view)
{
  return td_scene_view_get_scene (view) != NULL;
}

static const char *given;

static void
act (const char *action, const char *parameter)
{
  g_autofree char *what = g_strdup_printf ("%s %s", action, parameter ? parameter : "");
  begin ();
  if (!g_action_group_get_action_enabled (G_ACTION_GROUP (ui_test_window ()), action))
    return;
  g_action_group_activate_action (G_ACTION_GROUP (ui_test_window ()), action,
                                  parameter ? g_variant_new_string (parameter) : NULL);
  run_for (600);
  said (what);
}

static void
pauses__of_what_is_given (void **state)
{
  static const char *const pages[]
      = { "memory", "gradients", "schedule", "source",     "log",   "breakpoints",
          "filter", "notes",     "outline",  "iterations", "value", "gradient",
          "op",     "compare",   "curves",   "debug" };
  g_autoptr (GFile) file = g_file_new_for_path (given);
  ui_test_resize (1440, 900);
  run_for (500);
  begin ();
  td_window_open (ui_test_window (), file);
  ui_test_wait ("the recording", is_open, NULL);
  run_for (2000);
  said ("opened");
  act ("step-op", NULL);
  act ("previous-iteration", NULL);
  act ("previous-iteration", NULL);
  act ("first-event", NULL);
  for (guint i = 0; i < G_N_ELEMENTS (pages); i++)
    act ("show-page", pages[i]);
  (void)state;
}

/* ---- recordings of its own ---- */

/* What PyTorch's allocator wrote of so many allocations and frees, made into a tape. */
static char *
write_snapshot (const char *n_entries)
{
  const char *pickle = td_test_tmp ("large.pickle");
  g_autofree char *python = g_find_program_in_path ("python3");
  if (!python)
    skip ();
  TdTestChild made = TD_TEST_RUN (python, td_test_source ("tests/golden/snapshot/large.py"),
                                  pickle, n_entries);
  assert_child_status (made, 0);
  td_test_child_clear (&made);
  char *tape = g_strdup (td_test_tmp ("large.tdtape"));
  TdTestChild child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "import",
                                   td_test_tmp ("large.pickle"), "-o", tape);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  return tape;
}

static void
open_file (const char *path)
{
  g_autoptr (GFile) file = g_file_new_for_path (path);
  td_window_open (ui_test_window (), file);
}

/* Read in the main loop, one of 1,200,016 events took 1155 ms of it, and Debug 205 ms. */
static void
pauses__of_a_large_recording_are_those_of_drawing (void **state)
{
  g_autofree char *tape = write_snapshot ("650000");
  ui_test_resize (1440, 900);
  run_for (300);
  begin ();
  open_file (tape);
  assert_non_null (ui_test_window ()->loading);
  assert_null (ui_test_session ());
  ui_test_wait ("the recording", is_open, NULL);
  run_for (2000);
  assert_true (said ("opened") < MOST_MS);
  act ("show-page", "debug");
  assert_true (worst.cpu_ms < MOST_MS);
  act ("show-page", "memory");
  assert_true (worst.cpu_ms < MOST_MS);
  assert_string_equal (ui_test_page (), "workspace");
  ui_test_do ("show-page", "debug");
  TdSceneView *view = ui_test_panel_scene_view ("memory", "iterations");
  ui_test_wait ("the memory of the run", has_scene, view);
  /* a tree of GTK makes a node for each row that it may show: of very many there are spans */
  TdOutlinePage *outline = td_workspace_get_outline (ui_test_workspace ());
  g_autofree char *name = td_outline_page_dup_row_name (outline, 2);
  assert_in_range (td_outline_page_get_n_rows (outline), 100, 2000);
  assert_string_equal (name, "Events 2000 to 2999");
}

static gboolean
is_compared (gpointer unused)
{
  return td_compare_page_get (td_workspace_get_compare (ui_test_workspace ())) != NULL;
}

static void
write_pair (const char *path)
{
  char error[160];
  TdTapeWriterOptions options = { .size = sizeof options, .path = path };
  TdTapeWriter *w = td_tape_writer_new (&options, error, sizeof error);
  assert_non_null (w);
  for (guint number = 0; number < 3; number++)
    {
      g_autoptr (TdIteration) it = td_synthetic_residual (number, 150, FALSE);
      td_synthetic_write (w, it);
    }
  td_tape_writer_free (w);
}

/* The longest turn from opening it to the last row of its comparison. */
static double
open_and_compare (const char *path)
{
  ui_test_new_window ();
  ui_test_resize (1440, 900);
  run_for (300);
  begin ();
  ui_test_open (path);
  run_for (1000);
  double opened = said ("opened");
  act ("show-page", "compare");
  ui_test_wait ("the comparison", is_compared, NULL);
  run_for (1000); /* so many turns it takes to have all rows */
  double compared = said ("compared");
  ui_test_do ("show-page", "debug"); /* where the next window begins */
  return MAX (opened, compared);
}

/* The table has a row for each of some hundred operations. What a virtual machine's host takes
 * of the processor counts as the test's: the shortest of three tells what the window does. */
static void
pauses__do_not_grow_with_the_rows_of_lists (void **state)
{
  const char *path = td_test_tmp ("pair.tdtape");
  double least = G_MAXDOUBLE;
  write_pair (path);
  for (guint i = 0; i < 3 && least >= MOST_MS_OF_ROWS; i++)
    {
      double longest = open_and_compare (path);
      least = MIN (least, longest);
    }
  assert_true (least < MOST_MS_OF_ROWS);
  (void)state;
}

/* Nothing of it is shown, then or later, and what was on show before is there. */
static void
pauses__of_reading_end_when_it_is_cancelled (void **state)
{
  g_autofree char *tape = write_snapshot ("650000");
  open_file (tape);
  ui_test_do ("cancel-import", NULL);
  assert_null (ui_test_window ()->loading);
  run_for (1500);
  assert_null (ui_test_session ());
  assert_string_equal (ui_test_page (), "start");
  open_file (tape); /* twice: the second one is on show */
  open_file (tape);
  ui_test_wait ("the recording", is_open, NULL);
  run_for (300);
  assert_string_equal (ui_test_page (), "workspace");
  assert_null (ui_test_window ()->loading);
  open_file (tape); /* and a window that is closed meanwhile waits for nothing */
  ui_test_new_window ();
  run_for (500);
  assert_null (ui_test_session ());
}

static void
pauses__of_what_is_no_recording_end_in_a_message (void **state)
{
  g_autofree char *path = g_strdup (td_test_tmp ("large.tdtape"));
  g_autofree char *text = g_strnfill (9 << 20, 'x');
  assert_true (g_file_set_contents (path, text, -1, NULL));
  open_file (path);
  ui_test_wait ("an answer", is_read, NULL);
  assert_string_equal (ui_test_page (), "message");
  assert_string_equal (ui_test_message_title (), "Not a Recording");
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest one[] = { ui_test (pauses__of_what_is_given) };
  const struct CMUnitTest tests[]
      = { ui_test (pauses__of_a_large_recording_are_those_of_drawing),
          ui_test (pauses__do_not_grow_with_the_rows_of_lists),
          ui_test (pauses__of_reading_end_when_it_is_cancelled),
          ui_test (pauses__of_what_is_no_recording_end_in_a_message) };
  given = argc > 1 ? argv[1] : NULL;
  argc = 1;
  g_main_context_set_poll_func (NULL, timed_poll);
  ui_test_init (&argc, &argv);
  return given ? cmocka_run_group_tests_name ("pauses", one, NULL, NULL)
               : cmocka_run_group_tests_name ("pauses", tests, NULL, NULL);
}
