/* What the pointer is on is marked in every view: from a row to the graph, from a node to the
 * rows, from the scrubber to both; without a new layout, and no longer than the pointer is
 * there. SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <string.h>

/* ---- the pointer ---- */

/* Every controller of motion hears it, as when the X server sends it. */
static void
send (GtkWidget *widget, const char *const *names, double x, double y)
{
  g_autoptr (GListModel) all = gtk_widget_observe_controllers (widget);
  for (guint i = 0; i < g_list_model_get_n_items (all); i++)
    {
      g_autoptr (GtkEventController) controller = g_list_model_get_item (all, i);
      for (guint k = 0; GTK_IS_EVENT_CONTROLLER_MOTION (controller) && names[k]; k++)
        if (strcmp (names[k], "leave") == 0)
          g_signal_emit_by_name (controller, "leave");
        else
          g_signal_emit_by_name (controller, names[k], x, y);
    }
}

static void
point_at (GtkWidget *widget, double x, double y)
{
  static const char *const names[] = { "enter", "motion", NULL };
  send (widget, names, x, y);
}

static void
leave (GtkWidget *widget)
{
  static const char *const names[] = { "leave", NULL };
  send (widget, names, 0, 0);
}

/* ---- what is marked ---- */

static guint64
key_of (guint event)
{
  g_autoptr (TdIteration) iteration = td_session_get_current (ui_test_session ());
  return td_iteration_get_tape (iteration)->events[event].key;
}

static TdGraphView *
canvas (void)
{
  return td_graph_page_get_view (td_workspace_get_graph (ui_test_workspace ()));
}

static TdSceneView *
strip (void)
{
  return TD_SCENE_VIEW (ui_test_named ("events-strip"));
}

static guint
count_lit (GtkWidget *widget)
{
  guint n = gtk_widget_has_css_class (widget, "td-hover") ? 1 : 0;
  for (GtkWidget *c = gtk_widget_get_first_child (widget); c;
       c = gtk_widget_get_next_sibling (c))
    n += count_lit (c);
  return n;
}

static guint
lit_rows (void)
{
  return count_lit (GTK_WIDGET (td_workspace_get_outline (ui_test_workspace ())));
}

static void
open_sample (void)
{
  ui_test_resize (1600, 1000);
  ui_test_open_sample (NULL);
  ui_test_do ("show-page", "schedule");
  td_session_set_moment (ui_test_session (), 7, 3);
  td_outline_page_expand_all (td_workspace_get_outline (ui_test_workspace ()), TRUE);
  ui_test_wait_for_layout ();
  ui_test_settle ();
}

static void
assert_nothing_is_marked (TdSceneView *rows)
{
  assert_int_equal (td_session_get_hover (ui_test_session ()), 0);
  assert_int_equal (td_graph_view_get_hover (canvas ()), 0);
  assert_int_equal (td_scene_view_count_hovered (rows), 0);
  assert_int_equal (td_scene_view_count_hovered (strip ()), 0);
  assert_int_equal (lit_rows (), 0);
}

/* ---- tests ---- */

static void
hover__of_a_row_marks_the_graph (void **state)
{
  open_sample ();
  TdSceneView *rows = ui_test_panel_scene_view ("schedule", "order");
  guint64 key = key_of (3);
  TdSceneRect box;
  TdScene *graph = td_scene_ref (td_graph_view_get_scene (canvas ()));
  assert_true (td_scene_find_key (td_scene_view_get_scene (rows), key, &box));
  assert_nothing_is_marked (rows);
  point_at (GTK_WIDGET (rows), box.x + box.width / 2, box.y + box.height / 2);
  assert_int_equal (td_session_get_hover (ui_test_session ()), key);
  assert_int_not_equal (td_graph_view_get_hover (canvas ()), 0);
  assert_int_equal (td_scene_view_count_hovered (rows), 1);
  assert_int_equal (td_scene_view_count_hovered (strip ()), 1);
  assert_int_not_equal (lit_rows (), 0);
  ui_test_settle ();
  ui_test_save_picture ("hover-row.png");
  assert_ptr_equal (td_graph_view_get_scene (canvas ()), graph); /* nothing was made anew */
  leave (GTK_WIDGET (rows));
  assert_nothing_is_marked (rows);
  td_scene_unref (graph);
}

static void
hover__of_a_node_marks_the_rows (void **state)
{
  open_sample ();
  TdSceneView *rows = ui_test_panel_scene_view ("schedule", "order");
  TdScene *scene = td_graph_view_get_scene (canvas ());
  g_autoptr (TdIteration) iteration = td_session_get_current (ui_test_session ());
  gint event = -1;
  /* the first operation that has a node of its own, at whatever zoom there is */
  td_graph_view_fit (canvas ());
  ui_test_settle ();
  for (int y = 0; y < gtk_widget_get_height (GTK_WIDGET (canvas ())) && event < 0; y += 4)
    for (int x = 0; x < gtk_widget_get_width (GTK_WIDGET (canvas ())) && event < 0; x += 8)
      {
        point_at (GTK_WIDGET (canvas ()), x, y);
        guint64 key = td_session_get_hover (ui_test_session ());
        event = key ? td_iteration_find_event (iteration, key) : -1;
      }
  assert_true (event >= 0);
  assert_int_equal (td_graph_view_get_hover (canvas ()), key_of ((guint)event));
  assert_int_equal (td_scene_view_count_hovered (strip ()), 1);
  assert_int_not_equal (lit_rows (), 0);
  assert_ptr_equal (td_graph_view_get_scene (canvas ()), scene);
  leave (GTK_WIDGET (canvas ()));
  assert_nothing_is_marked (rows);
}

static void
hover__of_the_strip_marks_its_event (void **state)
{
  open_sample ();
  TdSceneView *rows = ui_test_panel_scene_view ("schedule", "order");
  double width = gtk_widget_get_width (GTK_WIDGET (strip ()));
  point_at (GTK_WIDGET (strip ()), width * 5.5 / SAMPLE_N_EVENTS, 12);
  assert_int_equal (td_session_get_hover (ui_test_session ()), key_of (5));
  assert_int_not_equal (td_graph_view_get_hover (canvas ()), 0);
  leave (GTK_WIDGET (strip ()));
  assert_nothing_is_marked (rows);
}

static void
hover__of_a_gradient_marks_its_parameter (void **state)
{
  open_sample ();
  ui_test_do ("show-page", "gradients");
  TdSceneView *map = ui_test_panel_scene_view ("gradients", "heatmap");
  const TdSceneAxes *axes = td_scene_axes (td_scene_view_get_scene (map));
  assert_non_null (axes);
  point_at (GTK_WIDGET (map), axes->box.x + 3, axes->box.y + 3);
  guint64 key = td_session_get_hover (ui_test_session ());
  TdSceneRect box;
  assert_int_not_equal (key, 0);
  assert_true (td_scene_find_key (td_scene_view_get_scene (map), key, &box));
  assert_true (box.y < axes->box.y + 20); /* the name beside the first row */
  assert_int_equal (td_scene_view_count_hovered (map), 1);
  ui_test_settle ();
  ui_test_save_picture ("hover-gradient.png");
  leave (GTK_WIDGET (map));
  assert_int_equal (td_session_get_hover (ui_test_session ()), 0);
}

/* A cell of the outline: the first one whose hovering sets this key. */
static GtkWidget *
find_cell (GtkWidget *widget, guint64 key)
{
  if (strcmp (gtk_widget_get_css_name (widget), "cell") == 0)
    {
      point_at (widget, 1, 1);
      if (td_session_get_hover (ui_test_session ()) == key)
        return widget;
      leave (widget);
    }
  for (GtkWidget *c = gtk_widget_get_first_child (widget); c;
       c = gtk_widget_get_next_sibling (c))
    {
      GtkWidget *found = find_cell (c, key);
      if (found)
        return found;
    }
  return NULL;
}

static void
hover__of_an_outline_row_marks_the_graph_in_dark_too (void **state)
{
  open_sample ();
  TdSceneView *rows = ui_test_panel_scene_view ("schedule", "order");
  GtkWidget *outline = GTK_WIDGET (td_workspace_get_outline (ui_test_workspace ()));
  ui_test_set_dark (TRUE);
  GtkWidget *cell = find_cell (outline, key_of (3));
  assert_non_null (cell);
  assert_true (gtk_widget_has_css_class (cell, "td-hover"));
  assert_int_not_equal (td_graph_view_get_hover (canvas ()), 0);
  assert_int_equal (td_scene_view_count_hovered (rows), 1);
  ui_test_settle ();
  ui_test_save_picture ("hover-dark.png");
  leave (cell);
  ui_test_set_dark (FALSE);
  assert_nothing_is_marked (rows);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (hover__of_a_row_marks_the_graph),
    ui_test (hover__of_a_node_marks_the_rows),
    ui_test (hover__of_the_strip_marks_its_event),
    ui_test (hover__of_a_gradient_marks_its_parameter),
    ui_test (hover__of_an_outline_row_marks_the_graph_in_dark_too),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
