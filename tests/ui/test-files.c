/* Files that the app opens besides recordings: pictures it has written itself, and a model that
 * was changed since it ran. SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <stdio.h>
#include <string.h>

#include "pages/td-picture-page.h"
#include "schedule/td-flame.h"
#include "td-tape-writer.h"
#include "window/td-window-private.h"

static TdPicturePage *
picture (void)
{
  assert_string_equal (ui_test_page (), "picture");
  return TD_PICTURE_PAGE (ui_test_window ()->picture_page);
}

static void
ex10__a_picture_that_was_exported_opens_in_the_window (void **state)
{
  const char *path = td_test_tmp ("graph.png");
  int width, height;

  ui_test_open_sample (NULL);
  ui_test_wait_for_layout ();
  ui_test_do ("save-picture", path);
  ui_test_new_window ();
  ui_test_open (path);
  assert_string_equal (td_picture_page_get_name (picture ()), "graph.png");
  assert_string_equal (gtk_window_get_title (GTK_WINDOW (ui_test_window ())), "graph.png");
  td_picture_page_get_size (picture (), &width, &height);
  assert_true (width > 100 && height > 100);
  assert_true (ui_test_has_many_colours (8));
  ui_test_save_picture ("picture-page");

  /* At its own size it scrolls where it is larger than the window. */
  GtkWidget *actual = ui_test_find_button (GTK_WIDGET (picture ()), "_Actual Size");
  assert_non_null (actual);
  gtk_toggle_button_set_active (GTK_TOGGLE_BUTTON (actual), TRUE);
  ui_test_settle ();
  assert_string_equal (ui_test_page (), "picture");
  /* The window is still one that a recording can be opened in. */
  assert_true (td_window_is_empty (ui_test_window ()));
  ui_test_open_sample (NULL);
}

static void
pictures__that_are_none_are_refused_in_one_line (void **state)
{
  static const char bomb[] = "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\1\0\0\0\1\0\0\x08\x06\0\0\0";
  static const struct
  {
    const char *bytes;
    size_t n;
    const char *says;
  } rows[] = {
    { "", 0, "bad.png: not a PNG picture" },
    { "digraph graphname{}", 19, "bad.png: not a PNG picture" },
    { bomb, sizeof bomb - 1, "bad.png: 65536 × 65536 pixels" },
    { "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\2\0\0\0\2\x08\x06\0\0\0zzzz", 33, "bad.png: " },
  };
  const char *path = td_test_tmp ("bad.png");

  for (size_t i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      td_test_write_file (path, rows[i].bytes, rows[i].n);
      ui_test_open (path);
      assert_string_equal (ui_test_page (), "message");
      assert_string_equal (ui_test_message_title (), "This Picture Cannot Be Shown");
      assert_contains (ui_test_message_text (), rows[i].says);
      assert_null (strchr (ui_test_message_text (), '\n'));
    }
}

/* Open a recording with a notice at its end. */
static void
open_with_notice (const char *name, TdTapeNotice notice, const char *why)
{
  const SampleOptions options = { .n_iterations = SAMPLE_ITERATIONS, .nan_at = -1 };
  const char *path = td_test_tmp (name);
  char error[200];
  TdTapeWriter *w;

  ui_test_new_window ();
  sample_tape_write (path, &options);
  w = td_tape_writer_continue (path, error, sizeof error);
  assert_non_null (w);
  notice.text = td_tape_writer_string (w, why);
  td_tape_writer_notice (w, &notice);
  td_tape_writer_free (w);
  ui_test_open (path);
}

/* A tape can be whole as a file and still hold less than the program did. */
static void
recordings__that_are_not_whole_say_so_when_they_open (void **state)
{
  static const char why[] = "the tape was cut to 1500 bytes while it was recorded";
  const TdTapeNotice notice = { .iteration = 2,
                                .event = TD_TAPE_NONE,
                                .kind = TD_TAPE_NOTICE_RECORDING,
                                .status = TD_TAPE_NOTICE_LOST };
  char says[200];

  (void)state;
  ui_test_open_sample (NULL);
  assert_false (ui_test_has_info ((gpointer) "not whole"));
  open_with_notice ("cut.tdtape", notice, why);
  g_snprintf (says, sizeof says, "This recording is not whole: %s", why);
  ui_test_wait ("a line about what is missing", ui_test_has_info, says);
}

/* Whatever became of this one, and while it still runs. */
static void
recordings__of_a_rank_say_which_other_does_not_come (void **state)
{
  static char why[] = "rank 0 of 2 has waited 60 s in td_opt_update (call 4, a.c:7) for rank 1";
  const TdTapeNotice notice
      = { .iteration = 2, .event = TD_TAPE_NONE, .kind = TD_TAPE_NOTICE_ERROR, .status = -6 };
  TdTapeNotice own = notice;

  (void)state;
  open_with_notice ("rank.tdtape", notice, why);
  ui_test_wait ("the line about the other rank", ui_test_has_info, why);
  own.event = 1; /* an error that the program has gone on from */
  open_with_notice ("error.tdtape", own, why);
  ui_test_settle ();
  assert_false (ui_test_has_info (why));
}

/* A snapshot of PyTorch's memory opens like a recording, where what it has is: on the page
 * Memory. The graph says that there is none. */
static void
snapshots__open_on_the_memory_page (void **state)
{
  const char *path = td_test_tmp ("run.pickle");
  g_autofree char *bytes = NULL;
  gsize n;

  g_file_get_contents (td_test_source ("tests/golden/snapshot/small-4.pickle"), &bytes, &n,
                       NULL);
  td_test_write_file (path, bytes, n);
  ui_test_open (path);
  assert_string_equal (ui_test_page (), "workspace");
  assert_string_equal (td_workspace_get_perspective (ui_test_workspace ()), "memory");
  assert_true (td_session_is_snapshot (td_window_get_session (ui_test_window ())));
  ui_test_save_picture ("snapshot-memory");
  ui_test_do ("show-page", "debug");
  ui_test_settle ();
  TdGraphView *graph = td_graph_page_get_view (td_workspace_get_graph (ui_test_workspace ()));
  g_autofree char *dump = td_scene_dump (td_graph_view_get_scene (graph));
  assert_contains (dump, "No operations in a memory snapshot");
  assert_int_equal (td_graph_view_get_n_nodes (graph), 0);

  /* What would run code is refused, and nothing of it is run. */
  ui_test_open (td_test_source ("tests/golden/snapshot/harmful.pickle"));
  assert_string_equal (ui_test_page (), "message");
  assert_string_equal (ui_test_message_title (), "This Snapshot Cannot Be Read");
  assert_contains (ui_test_message_text (), "STACK_GLOBAL is refused");
  ui_test_open_sample (NULL);
}

static const char *
flame_title (void)
{
  return gtk_label_get_text (GTK_LABEL (ui_test_named ("flame-title")));
}

/* Calls are boxes, in bytes and in bytes times time; one is zoomed into, and out of. */
static void
snapshots__have_a_flame_graph_of_their_stacks (void **state)
{
  ui_test_open (td_test_source ("tests/golden/snapshot/small-4.pickle"));
  ui_test_resize (1440, 900);
  ui_test_do ("show-page", "debug");
  ui_test_do ("flame", "bytes");
  ui_test_settle ();
  TdSceneView *view = ui_test_panel_scene_view ("schedule", "flame");
  g_autofree char *bytes = td_scene_dump (td_scene_view_get_scene (view));
  assert_contains (bytes, "forward (train.py:12)");
  assert_string_equal (flame_title (), "40.5 MB at the peak in 5 blocks");
  ui_test_save_picture ("snapshot-flame.png");
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  g_autoptr (TdFlame) flame = td_flame_stacks_new (it, TD_FLAME_PEAK);
  TdSceneHit hit = { .tag = TD_TAG_ROW, .data = 2 };
  g_signal_emit_by_name (view, "opened", &hit, 0.0, 0.0);
  ui_test_settle ();
  g_autofree char *zoomed = td_flame_title (flame, 2, TD_FLAME_BYTES);
  assert_string_equal (flame_title (), zoomed);
  assert_contains (zoomed, "% of the peak");
  g_signal_emit_by_name (view, "opened", &hit, 0.0, 0.0); /* the top: out again */
  ui_test_settle ();
  g_autofree char *around = td_flame_title (flame, 1, TD_FLAME_BYTES);
  assert_string_equal (flame_title (), around);
  ui_test_do ("flame", "time");
  ui_test_settle ();
  assert_non_null (
      ui_test_find_button (ui_test_panel_page ("schedule", "flame"), "Bytes × Time"));
  g_autofree char *held = td_scene_dump (td_scene_view_get_scene (view));
  assert_string_not_equal (held, bytes);
  ui_test_open_sample (NULL);
  ui_test_do ("flame", "time");
  ui_test_settle ();
  assert_non_null (ui_test_find_button (ui_test_panel_page ("schedule", "flame"), "Time"));
}

/* A trace opens on its timeline; one that is cut off says so and how far it went. */
static void
traces__open_on_the_timeline (void **state)
{
  static const char trace[]
      = "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"ts\":5,\"dur\":7}";
  g_autofree char *whole = g_strconcat (trace, "]", NULL);
  const char *path = td_test_tmp ("run.json");

  (void)state;
  td_test_write_file (path, whole, strlen (whole));
  ui_test_open (path);
  assert_string_equal (ui_test_page (), "workspace");
  assert_true (td_session_is_trace (td_window_get_session (ui_test_window ())));
  assert_true (td_workspace_shows_picture (ui_test_workspace (), "schedule", "timeline"));

  path = td_test_tmp ("cut.json");
  td_test_write_file (path, trace, sizeof trace - 1);
  ui_test_open (path);
  assert_string_equal (ui_test_page (), "message");
  assert_string_equal (ui_test_message_title (), "This Trace Cannot Be Read");
  assert_contains (ui_test_message_text (), "it is cut off: it ends after 1 events");
  ui_test_open_sample (NULL);
}

/* A model of n layers, as its writer would change it between two runs. */
static void
write_model (const char *path, int n_layers)
{
  g_autofree char *text = g_strdup_printf ("#include <tapedeck.h>\n"
                                           "int\n"
                                           "main (int argc, char **argv)\n"
                                           "{\n"
                                           "  td_init (&argc, &argv);\n"
                                           "  TD_ITERATIONS (i, 3)\n"
                                           "    {\n"
                                           "      TdVar *h = td_ones (TD_F32, TD_SHAPE (4));\n"
                                           "      for (int k = 0; k < %d; k++)\n"
                                           "        h = td_tanh (h);\n"
                                           "    }\n"
                                           "  return td_finish ();\n"
                                           "}\n",
                                           n_layers);
  td_test_write_file (path, text, strlen (text));
}

static gboolean
has_ended (gpointer unused)
{
  g_autofree char *state = ui_test_state ("state");
  return ui_test_session () && g_str_equal (state, "ended");
}

static guint
run_and_count (const char *path)
{
  g_autoptr (GFile) file = g_file_new_for_path (path);
  td_window_open (ui_test_window (), file);
  ui_test_wait ("the end of the model", has_ended, NULL);
  ui_test_do ("first-event", NULL);
  TdIteration *iteration = td_session_get_current (ui_test_session ());
  assert_non_null (iteration);
  guint n = td_iteration_get_n_events (iteration);
  td_iteration_unref (iteration);
  return n;
}

static void
dy17__a_model_with_another_number_of_layers_runs_again_in_the_same_app (void **state)
{
  const char *path = td_test_tmp ("layers.c");
  td_test_program ("app/tapedeck");
  write_model (path, 2);
  assert_int_equal (run_and_count (path), 2);
  write_model (path, 5);
  ui_test_new_window ();
  assert_int_equal (run_and_count (path), 5);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (ex10__a_picture_that_was_exported_opens_in_the_window),
    ui_test (pictures__that_are_none_are_refused_in_one_line),
    ui_test (recordings__that_are_not_whole_say_so_when_they_open),
    ui_test (recordings__of_a_rank_say_which_other_does_not_come),
    ui_test (snapshots__open_on_the_memory_page),
    ui_test (snapshots__have_a_flame_graph_of_their_stacks),
    ui_test (traces__open_on_the_timeline),
    ui_test (dy17__a_model_with_another_number_of_layers_runs_again_in_the_same_app),
  };

  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
