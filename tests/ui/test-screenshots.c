/* The pictures of the README: the window on real recordings, of a GPT of twelve layers
 * (tests/models/life) and of data/examples with the built-in digits. TD_UPDATE_SCREENSHOTS=1
 * writes them to data/screenshots; else they are only taken, and stay beside the other pictures
 * of the tests. SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <stdlib.h>
#include <string.h>

#include "graph/td-graph.h"

#define ITERATIONS 119
#define SHOWN 118
#define GPT_ITERATIONS 30

static char *tape; /* recorded once for all tests */

static char *
record (const char *source, const char *name, int n_iterations)
{
  static const char *const env[] = { "TAPEDECK_DATA=", NULL };
  const char *program = td_test_program ("app/tapedeck");
  g_autofree char *folder = g_strdup (td_test_build ("tests/ui/pictures"));
  g_mkdir_with_parents (folder, 0755);
  char *path = g_build_filename (folder, name, NULL);
  g_autofree char *count = g_strdup_printf ("%d", n_iterations);
  g_autofree char *argument = g_strdup_printf ("iterations=%d", n_iterations);
  const char *const argv[] = { program,
                               "run",
                               "-f",
                               "-o",
                               path,
                               "--level",
                               "values",
                               "--iterations",
                               count,
                               "--values-budget",
                               "32M",
                               "--quiet",
                               td_test_source (source),
                               argument,
                               NULL };
  TdTestChild child = td_test_run (argv, NULL, env);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  return path;
}

static void
record_lenet (void)
{
  if (!tape)
    tape = record ("data/examples/lenet.c", "lenet.tdtape", ITERATIONS);
}

static guint64
find_group (const char *name)
{
  TdIteration *iteration = td_session_get_current (ui_test_session ());
  guint n;
  const TdVizGroup *groups = td_viz_graph_get_groups (td_iteration_get_graph (iteration), &n);
  guint64 key = 0;
  for (guint i = 0; i < n; i++)
    if (strcmp (groups[i].name, name) == 0)
      key = groups[i].key;
  td_iteration_unref (iteration);
  return key;
}

/* The event of the backward pass that makes the gradient of a parameter. */
static gint
find_gradient (const char *name)
{
  TdIteration *iteration = td_session_get_current (ui_test_session ());
  const TdTapeIteration *it = td_iteration_get_tape (iteration);
  gint found = -1;
  for (guint32 i = 0; i < it->n_grads && found < 0; i++)
    {
      const char *path = td_iteration_get_string (iteration, it->grads[i].path);
      guint32 gradient = it->grads[i].gradient;
      if (g_str_has_suffix (path, name) && gradient != TD_TAPE_NONE)
        found = it->vars[gradient].producer;
    }
  td_iteration_unref (iteration);
  assert_true (found >= 0);
  return found;
}

static void
save (const char *name)
{
  if (g_getenv ("TD_UPDATE_SCREENSHOTS"))
    {
      g_autofree char *relative = g_strdup_printf ("data/screenshots/%s", name);
      g_autofree char *folder = g_strdup (td_test_source ("data/screenshots"));
      g_mkdir_with_parents (folder, 0755);
      ui_test_save_picture_at (td_test_source (relative));
    }
  ui_test_save_picture (name);
}

/* Twelve layers as one box, in the middle of backward: the gradient of an attention's weights.
 */
static void
screenshot__debug_shows_a_gpt (void **state)
{
  g_autofree char *gpt = record ("tests/models/life/l03-gpt.c", "gpt.tdtape", GPT_ITERATIONS);
  ui_test_resize (1440, 900);
  ui_test_open (gpt);
  g_autofree char *there
      = g_strdup_printf ("i=%d&e=%d", GPT_ITERATIONS - 1, find_gradient ("h6/qkv/W"));
  ui_test_do ("go-to", there);
  ui_test_wait_for_layout ();
  assert_non_null (td_inspector_get_tensor (td_workspace_get_inspector (ui_test_workspace ())));
  assert_true (ui_test_has_many_colours (60));
  save ("gpt.png");
  ui_test_set_dark (TRUE);
  save ("gpt-dark.png");
  ui_test_set_dark (FALSE);
}

static void
screenshot__debug_shows_a_real_training (void **state)
{
  record_lenet ();
  ui_test_resize (1440, 900);
  ui_test_open (tape);
  g_autofree char *start = g_strdup_printf ("i=%d&e=0", SHOWN);
  ui_test_do ("go-to", start);
  g_autofree char *there = g_strdup_printf ("i=%d&e=%d", SHOWN, find_gradient ("conv2/W"));
  ui_test_do ("go-to", there);
  TdGraphView *view = td_graph_page_get_view (td_workspace_get_graph (ui_test_workspace ()));
  td_graph_view_set_expanded (view, find_group ("block2"), TRUE);
  ui_test_wait_for_layout ();
  const TdTensor *tensor
      = td_inspector_get_tensor (td_workspace_get_inspector (ui_test_workspace ()));
  assert_non_null (tensor);
  assert_int_equal (tensor->n_total, 16 * 6 * 5 * 5);
  assert_true (ui_test_has_many_colours (60));
  ui_test_save_picture ("debug.png");
  ui_test_set_dark (TRUE);
  ui_test_save_picture ("debug-dark.png");
  ui_test_set_dark (FALSE);
}

static void
screenshot__memory_shows_a_real_training (void **state)
{
  record_lenet ();
  ui_test_resize (1440, 900);
  ui_test_open (tape);
  g_autofree char *there = g_strdup_printf ("i=%d&e=20", SHOWN);
  ui_test_do ("go-to", there);
  ui_test_do ("show-page", "memory");
  assert_true (ui_test_has_many_colours (20));
  save ("memory.png");
}

static void
screenshot__start_offers_the_lessons (void **state)
{
  ui_test_resize (1440, 900);
  assert_true (ui_test_has_many_colours (12));
  save ("start.png");
}

/* A program that keeps the sum of its losses, and with it every graph. */
static void
screenshot__growth_names_who_keeps_memory (void **state)
{
  const char *path = td_test_tmp ("leaks.tdtape");
  TdTestChild child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "-f", "-o", path,
                                   "--quiet", td_test_source ("tests/models/leaks.c"), "total");

  assert_child_status (child, 0);
  td_test_child_clear (&child);
  ui_test_resize (1440, 900);
  ui_test_open (path);
  ui_test_do ("show-page", "memory");
  assert_true (ui_test_has_many_colours (20));
  save ("growth.png");
}

/* Two iterations of dynamic_graph.c, whose second one takes the other branch. */
static void
screenshot__compare_says_which_branch_parted_two_iterations (void **state)
{
  const char *tape_path = td_test_tmp ("dynamic_graph.tdtape");
  g_autofree char *folder = g_path_get_dirname (tape_path); /* it saves pictures of its own */
  const char *const argv[]
      = { "env",     "-C",    folder,    td_test_program ("app/tapedeck"),
          "run",     "-f",    "-o",      tape_path,
          "--level", "stats", "--quiet", td_test_source ("data/examples/dynamic_graph.c"),
          NULL };
  TdTestChild child = td_test_run (argv, NULL, NULL);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  ui_test_resize (1440, 900);
  ui_test_open (tape_path);
  ui_test_do ("go-to", "i=1&e=0");
  ui_test_do ("compare", NULL);
  ui_test_do ("next-difference", NULL);
  TdComparePage *page = td_workspace_get_compare (ui_test_workspace ());
  assert_non_null (strstr (td_compare_page_get_sentence (page),
                           "took the else branch at dynamic_graph.c:14"));
  assert_true (ui_test_has_many_colours (20));
  save ("compare.png");
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (screenshot__start_offers_the_lessons),
    ui_test (screenshot__debug_shows_a_gpt),
    ui_test (screenshot__debug_shows_a_real_training),
    ui_test (screenshot__memory_shows_a_real_training),
    ui_test (screenshot__growth_names_who_keeps_memory),
    ui_test (screenshot__compare_says_which_branch_parted_two_iterations),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
