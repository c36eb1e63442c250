/* What people come for, with the window alone, on a ResNet and a GPT with a mistake in one
 * layer: from opening the recording to the answer in at most three clicks. What is clicked is
 * counted; what is read is on the screen at that moment.
 *
 *     test-tasks PROGRAM LAYER
 *
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <string.h>
#include <time.h>

#define MOST_CLICKS 3

static const char *program, *layer; /* that has the mistake */
static guint n_clicks;
static gint64 begun;

static void
open_with (const char *argument, const char *level, const char *iterations)
{
  g_autofree char *count = g_strdup_printf ("iterations=%s", iterations);
  const char *tape = td_test_tmp ("task.tdtape");
  char *const arguments[] = { (char *)program, count, (char *)argument, NULL };
  ui_test_record_life (tape, arguments, (const char *const[]){ "--level", level, NULL });
  ui_test_resize (1440, 900);
  begun = g_get_monotonic_time ();
  ui_test_open (tape);
  n_clicks = 0;
}

static void
click (const char *action, const char *parameter)
{
  n_clicks++;
  ui_test_do (action, parameter);
}

static void
done (const char *task)
{
  print_message ("%-14s %-10s %u clicks, %.1f s\n", program, task, n_clicks,
                 (double)(g_get_monotonic_time () - begun) / 1e6);
  g_autofree char *name = g_strdup_printf ("task-%s-%s.png", program, task);
  ui_test_save_picture (name);
  assert_in_range (n_clicks, 1, MOST_CLICKS);
}

/* What is selected is in the layer with the mistake. */
static gboolean
layer_is_selected (void)
{
  guint n;
  const guint64 *keys = td_session_get_selection (ui_test_session (), &n);
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  const TdTapeIteration *t = td_iteration_get_tape (it);
  for (guint32 e = 0; n && e < t->n_events; e++)
    if (t->events[e].key == keys[0])
      return strstr (td_iteration_get_link_path (it, e), layer) != NULL;
  for (guint32 i = 0; n && i < t->n_grads; i++)
    if (t->vars[t->grads[i].parameter].key == keys[0])
      return strstr (td_iteration_get_string (it, t->grads[i].path), layer) != NULL;
  return FALSE;
}

static void
task__a_layer_that_does_not_learn (void **state)
{
  open_with ("fault=vanishing", "stats", "8");
  /* the page of gradients is open from the start */
  TdSceneView *view = ui_test_panel_scene_view ("gradients", "findings");
  n_clicks++;
  TdScene *scene = td_scene_view_get_scene (view);
  g_autofree char *text = td_scene_dump (scene);
  assert_non_null (strstr (text, "Vanishing"));
  assert_non_null (strstr (text, layer));
  assert_non_null (strstr (text, "/W")); /* which weight decay hides behind its own term */
  /* the first line below the heading */
  TdSceneHit hit;
  assert_true (td_scene_hit (scene, 30, 40, 4, &hit));
  assert_int_equal (hit.tag, TD_TAG_PARAMETER);
  g_signal_emit_by_name (view, "pressed", &hit, 30.0, 40.0);
  n_clicks++;
  ui_test_settle ();
  assert_true (layer_is_selected ());
  done ("vanishing");
}

static void
task__memory_that_grows (void **state)
{
  open_with ("fault=growth", "graph", "16");
  click ("show-page", "memory");
  GtkWidget *sentence = ui_test_named ("growth-sentence");
  const char *text = gtk_label_get_text (GTK_LABEL (sentence));
  if (!strstr (text, "retains") || !strstr (text, ".c:") || !strstr (text, "td_item"))
    fail_msg ("said: %s", text);
  done ("growth");
}

static void
task__where_the_nan_was_born (void **state)
{
  open_with ("fault=nan", "stats", "8");
  click ("where-from", NULL);
  assert_int_equal (td_session_get_moment (ui_test_session ()).iteration, 3);
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  guint event = (guint)td_session_get_moment (ui_test_session ()).event;
  assert_string_equal (td_iteration_get_op_name (it, event), "sqrt");
  done ("nan");
}

static void
task__a_branch_that_changed (void **state)
{
  open_with ("fault=branch", "graph", "8");
  click ("show-page", "compare");
  ui_test_settle ();
  TdComparePage *page = td_workspace_get_compare (ui_test_workspace ());
  const char *text = td_compare_page_get_sentence (page);
  if (!strstr (text, "→") || !strstr (text, ".c:")) /* one operation for another, and where */
    fail_msg ("said: %s", text);
  done ("branch");
}

static void
task__static_beside_dynamic (void **state)
{
  open_with ("static=1", "graph", "8");
  click ("show-page", "compare");
  n_clicks++; /* the menu of Compare With */
  click ("compare-with", "code");
  TdComparePage *page = td_workspace_get_compare (ui_test_workspace ());
  const TdCompare *compare = td_compare_page_get (page);
  assert_non_null (compare);
  assert_int_equal (td_iteration_get_number (compare->of[0]), 0); /* whose code was traced */
  assert_int_equal (td_iteration_get_number (compare->of[1]), 7);
  done ("static");
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (task__a_layer_that_does_not_learn), ui_test (task__memory_that_grows),
    ui_test (task__where_the_nan_was_born),      ui_test (task__a_branch_that_changed),
    ui_test (task__static_beside_dynamic),
  };
  ui_test_init (&argc, &argv);
  if (argc < 3)
    {
      fprintf (stderr, "usage: test-tasks PROGRAM LAYER\n");
      return 2;
    }
  program = argv[1];
  layer = argv[2];
  return cmocka_run_group_tests (tests, NULL, NULL);
}
