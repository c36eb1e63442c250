/* The picture of iterations that are equal but for their sizes: nothing moves from one to the
 * next, and each has its own words.
 * SPDX-License-Identifier: MIT */
#include "pages/td-graph-page.h"
#include "td-synthetic-tape.h"
#include "ui-test.h"

static const gint64 rows[] = { 1, 2, 3, 2 };

/* Requests to a server: of so many rows, forward only. */
static TdIteration *
request (guint64 number, gboolean fails)
{
  TdSynthetic *s = td_synthetic_new (number);
  const gint64 n = rows[number];
  guint h = td_synthetic_input (s, "x", TD_SHAPE (n, 4));

  h = TD_OP (s, "linear", 10, TD_SHAPE (n, 4), h,
             td_synthetic_parameter (s, "net/l0/W", TD_SHAPE (4, 4)));
  h = TD_OP (s, "tanh", 11, TD_SHAPE (n, 4), h);
  if (fails)
    td_synthetic_fail (s);
  return td_synthetic_finish (s);
}

static const char *
write_tape (void)
{
  const char *path = td_test_tmp ("requests.tdtape");
  char error[256];
  TdTapeWriterOptions options = { .size = sizeof options, .path = path };
  TdTapeWriter *w = td_tape_writer_new (&options, error, sizeof error);

  assert_non_null (w);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autoptr (TdIteration) it = request (i, i == 3);
      td_synthetic_write (w, it);
    }
  td_tape_writer_free (w);
  return path;
}

static TdGraphView *
canvas (void)
{
  return td_graph_page_get_view (td_workspace_get_graph (ui_test_workspace ()));
}

static char *
go_to (gint64 iteration)
{
  td_session_set_moment (ui_test_session (), iteration, 1);
  ui_test_wait_for_layout ();
  ui_test_settle ();
  return td_scene_dump (td_graph_view_get_scene (canvas ()));
}

static void
equal_iterations__show_their_own_sizes (void **state)
{
  static const gint64 order[] = { 3, 0, 1, 2, 1, 0 };
  (void)state;
  ui_test_open (write_tape ());
  for (guint i = 0; i < G_N_ELEMENTS (order); i++)
    {
      g_autofree char *dump = go_to (order[i]);
      g_autofree char *input = g_strdup_printf ("x (%d, 4)", (int)rows[order[i]]);
      assert_contains (dump, input);
    }
}

static void
equal_iterations__stand_where_the_others_do (void **state)
{
  (void)state;
  ui_test_open (write_tape ());
  g_autofree char *before = go_to (2);
  g_autofree TdRect *nodes
      = g_memdup2 (td_graph_view_get_layout (canvas ())->nodes,
                   sizeof (TdRect) * td_graph_view_get_n_nodes (canvas ()));
  g_autofree char *after = go_to (0);
  assert_string_not_equal (before, after);
  assert_memory_equal (nodes, td_graph_view_get_layout (canvas ())->nodes,
                       sizeof (TdRect) * td_graph_view_get_n_nodes (canvas ()));
}

/* What failed is red in its iteration, and only there, wherever one comes from. */
static void
equal_iterations__fail_on_their_own (void **state)
{
  (void)state;
  ui_test_open (write_tape ());
  for (gint64 turn = 0; turn < 4; turn++)
    {
      const gint64 number = turn % 2 ? 3 : 1;
      g_autofree char *dump = go_to (number);
      TdVizView *view = td_graph_view_get_layout (canvas ())->view;
      guint n_failed = 0;
      assert_contains (dump, "x (2, 4)"); /* both */
      for (guint i = 0; i < view->n_nodes; i++)
        n_failed += view->nodes[i].failed;
      assert_int_equal (n_failed, number == 3);
    }
}

int
main (int argc, char **argv)
{
  ui_test_init (&argc, &argv);
  const struct CMUnitTest tests[] = {
    ui_test (equal_iterations__show_their_own_sizes),
    ui_test (equal_iterations__stand_where_the_others_do),
    ui_test (equal_iterations__fail_on_their_own),
  };

  return cmocka_run_group_tests_name ("equal iterations", tests, NULL, NULL);
}
