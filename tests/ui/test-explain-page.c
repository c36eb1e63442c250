/* What explains static functions, on a GPT of twelve layers: the picture is reached by one
 * action, walked by keyboard, its rows select operations and open lines, and the lines carry
 * marks. Also on a program whose guards fail.
 *
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <string.h>

#include "schedule/td-explain.h"
#include "schedule/td-statics-session.h"
#include "widgets/td-scene-view.h"

static void
open_gpt (void)
{
  static char *tape; /* recorded once for all tests */
  if (!tape)
    {
      g_autofree char *folder = g_strdup (td_test_build ("tests/ui/pictures"));
      g_mkdir_with_parents (folder, 0755);
      tape = g_build_filename (folder, "explain-gpt.tdtape", NULL);
      TdTestChild child
          = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "--quiet", "-f", "--level",
                         "graph", "-o", tape, td_test_source ("tests/models/life/l03-gpt.c"),
                         "static=1", "iterations=8", "layers=12");
      assert_child_status (child, 0);
      td_test_child_clear (&child);
    }
  ui_test_resize (1600, 1000);
  ui_test_open (tape);
}

static void
open_example (void)
{
  const char *tape = td_test_tmp ("mlp.tdtape");
  TdTestChild child
      = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "--quiet", "-f", "-o", tape,
                     "--static", "as-is", td_test_source ("data/examples/static_mlp.c"));
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  ui_test_resize (1600, 1000);
  ui_test_open (tape);
}

static TdSceneView *
picture (void)
{
  TdSceneView *view = ui_test_panel_scene_view ("schedule", "explain");
  assert_non_null (td_scene_view_get_scene (view));
  return view;
}

static char *
dump (void)
{
  return td_scene_dump (td_scene_view_get_scene (picture ()));
}

static gboolean
press_key (int rows)
{
  gboolean taken = FALSE;
  g_signal_emit_by_name (picture (), "moved", rows, &taken);
  ui_test_settle ();
  return taken;
}

static gboolean
is_shown (const char *text)
{
  g_autofree char *shown = dump ();
  return strstr (shown, text) != NULL;
}

/* To the first row that says this: from the top, by as many rows as stand before it while no
 * pass is open. */
static void
go_to_row (const char *text)
{
  TdStatics *statics = td_session_get_statics (ui_test_session ());
  g_autoptr (TdExplain) explain = td_explain_new (statics, NULL);
  int n = 0;
  press_key (1);
  press_key (-100000);
  for (guint i = 0; i < explain->n_rows; i++)
    {
      g_autofree char *says = td_explain_row_text (&explain->rows[i]);
      if (!td_explain_row_is_listed (&explain->rows[i], 0, 0))
        continue;
      if (strstr (says, text))
        {
          assert_true (n == 0 || press_key (n));
          return;
        }
      n++;
    }
  fail_msg ("no row says %s", text);
}

static void
explain_page__is_walked_by_keyboard_on_a_gpt (void **state)
{
  guint n_rows = 0, n;
  open_gpt ();
  ui_test_do ("explain", NULL);
  ui_test_settle ();
  assert_true (is_shown ("Why its code ran"));
  ui_test_save_picture ("explain-gpt.png");
  assert_true (press_key (1));
  assert_false (press_key (-1)); /* it is the first */
  go_to_row ("memory plan");
  while (press_key (8)) /* Page Down */
    n_rows += 8;
  assert_true (n_rows >= 8);
  assert_true (is_shown ("takes the place of an input"));
  /* operations are selected on the way: of remarks and of lines */
  td_session_get_selection (ui_test_session (), &n);
  assert_int_equal (n, 1);
  ui_test_save_picture ("explain-gpt-passes.png");
  ui_test_set_dark (TRUE);
  ui_test_settle ();
  ui_test_save_picture ("explain-gpt-dark.png");
  ui_test_set_dark (FALSE);
}

static void
explain_page__passes_open_one_after_the_other (void **state)
{
  open_gpt ();
  ui_test_do ("explain", NULL);
  ui_test_settle ();
  go_to_row ("batching");
  assert_true (press_key (1));
  assert_true (is_shown ("batched: "));
  assert_false (is_shown ("become one"));
  go_to_row ("fusion");
  assert_true (press_key (2));
  assert_true (is_shown ("become one"));
  assert_false (is_shown ("batched: "));
  ui_test_save_picture ("explain-gpt-fusion.png");
}

static TdSourcePage *
source (void)
{
  return td_workspace_get_source (ui_test_workspace ());
}

/* The line of the example that has this text, from 1 on. */
static guint
line_of (const char *needle)
{
  g_autofree char *text
      = td_test_read_file (td_test_source ("data/examples/static_mlp.c"), NULL);
  const char *at = strstr (text, needle);
  guint line = 1;
  assert_non_null (at);
  for (const char *c = text; c < at; c++)
    line += *c == '\n';
  return line;
}

static void
press_row_that_says (const char *text)
{
  TdSceneView *view = picture ();
  TdScene *scene = td_scene_view_get_scene (view);
  TdSceneHit hit;
  for (double y = 2; y < td_scene_height (scene); y += 4)
    if (td_scene_hit (scene, 60, y, 0, &hit) && hit.tag == TD_TAG_ROW && hit.tooltip
        && strstr (hit.tooltip, text))
      {
        gtk_widget_grab_focus (GTK_WIDGET (view));
        g_signal_emit_by_name (view, "pressed", &hit, 60.0, y);
        ui_test_settle ();
        return;
      }
  fail_msg ("no row says %s", text);
}

static void
explain_page__a_row_opens_its_line_beside_it_and_lines_have_marks (void **state)
{
  open_example ();
  ui_test_do ("explain", NULL);
  ui_test_settle ();
  go_to_row ("n_plain");
  assert_true (is_shown ("Ran only while tracing"));
  press_row_that_says ("printf ran once");
  assert_int_equal (td_source_page_get_line (source ()), line_of ("printf (\"a line of"));
  /* the list is still on show */
  assert_true (td_dock_is_shown (td_workspace_get_dock (ui_test_workspace ()), "schedule"));
  assert_true (td_dock_is_shown (td_workspace_get_dock (ui_test_workspace ()), "source"));
  assert_contains (td_source_page_get_mark (source (), line_of ("printf (\"a line of")),
                   "printf ran once");
  assert_contains (td_source_page_get_mark (source (), line_of ("m->n_plain++")), "n_plain");
  assert_contains (td_source_page_get_mark (source (), line_of ("td_static_new (mlp_forward")),
                   "Guarded: argument 0");
  assert_null (td_source_page_get_mark (source (), 1));
  ui_test_save_picture ("explain-source.png");
  /* by keyboard: the next row, and its line by Return */
  go_to_row ("captured variable");
  assert_true (press_key (0));
  assert_int_equal (td_source_page_get_line (source ()), line_of ("m.l1 = td_linear_new"));
  ui_test_set_dark (TRUE);
  ui_test_settle ();
  ui_test_save_picture ("explain-source-dark.png");
  ui_test_set_dark (FALSE);
}

/* A row of an operation selects it. */
static void
explain_page__a_remark_selects_its_operation (void **state)
{
  guint n;
  open_example ();
  ui_test_do ("explain", NULL);
  ui_test_settle ();
  go_to_row ("fusion");
  assert_true (press_key (1));
  const guint64 *keys = td_session_get_selection (ui_test_session (), &n);
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  assert_int_equal (n, 1);
  gint event = td_iteration_find_event (it, keys[0]);
  assert_true (event >= 0);
  assert_string_equal (td_iteration_get_op_name (it, (guint)event), "linear+relu");
}

/* Guards that fail, in a window that is small, and with text twice as large. */
static void
explain_page__shows_what_failed_in_a_small_window_and_with_large_text (void **state)
{
  const char *tape = td_test_tmp ("guards.tdtape");
  g_autofree char *run_tape = g_strdup_printf ("TAPEDECK_TAPE=%s", tape);
  const char *const argv[]
      = { "env", run_tape, td_test_program ("tests/viz/explain/planted-guards"), "7", NULL };
  TdTestChild child = td_test_run (argv, NULL, NULL);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  ui_test_resize (900, 600);
  ui_test_open (tape);
  ui_test_do ("explain", NULL);
  ui_test_settle ();
  go_to_row ("shape of an argument");
  assert_true (is_shown ("shape of an argument"));
  assert_true (is_shown ("minimize_cache_size"));
  ui_test_save_picture ("explain-small.png");
  ui_test_resize (1600, 1000);
  ui_test_settle ();
  ui_test_save_picture ("explain-guards.png");
  g_object_set (gtk_settings_get_default (), "gtk-xft-dpi", 192 * 1024, NULL);
  ui_test_settle ();
  ui_test_do ("explain", NULL); /* large text folds the dock */
  ui_test_settle ();
  ui_test_save_picture ("explain-text-200.png");
  g_object_set (gtk_settings_get_default (), "gtk-xft-dpi", 96 * 1024, NULL);
  ui_test_settle ();
}

static void
explain_page__says_when_there_is_no_static_function (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("explain", NULL);
  ui_test_settle ();
  assert_true (is_shown ("No static function"));
  assert_false (press_key (1));
  assert_false (press_key (0));
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (explain_page__is_walked_by_keyboard_on_a_gpt),
    ui_test (explain_page__passes_open_one_after_the_other),
    ui_test (explain_page__a_row_opens_its_line_beside_it_and_lines_have_marks),
    ui_test (explain_page__a_remark_selects_its_operation),
    ui_test (explain_page__shows_what_failed_in_a_small_window_and_with_large_text),
    ui_test (explain_page__says_when_there_is_no_static_function),
  };

  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests_name ("explain-page", tests, NULL, NULL);
}
