/* What the pointer is on is marked in every view: from a row to the graph, from a node to the
 * rows, from the scrubber to both; without a new layout, and no longer than the pointer is
 * there. SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <gtksourceview/gtksource.h>
#include <string.h>

#include "lenet-tape.h"
#include "widgets/td-compare-buffers.h"
#include "widgets/td-compare-list.h"
#include "widgets/td-compare-table.h"
#include "window/td-window-private.h"

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

/* Columns stand for several iterations: what a click goes to is what the column shows, and what
 * the pointer is told. */
/* Goes to all places of an axis, to the left and to the right of the middle of each. */
static void
assert_goes_where_it_was_pressed (TdSceneView *view, gboolean of_events, const char *signal)
{
  ui_test_settle ();
  TdScene *scene = td_scene_view_get_scene (view);
  assert_non_null (scene);
  assert_non_null (td_scene_axes (scene));
  const TdSceneAxes axes = *td_scene_axes (scene);
  double each = axes.box.width / (axes.x1 - axes.x0);
  for (gint64 k = (gint64)axes.x0; k < (gint64)axes.x1; k += 7)
    for (double part = 0.2; part < 1; part += 0.3)
      {
        double x = axes.box.x + each * ((double)(k - (gint64)axes.x0) + part);
        g_signal_emit_by_name (view, signal, NULL, x, axes.box.y + 1);
        TdMoment moment = td_session_get_moment (ui_test_session ());
        assert_int_equal (of_events ? moment.event : moment.iteration, k);
      }
}

static void
press__goes_to_the_place_that_it_is_in (void **state)
{
  ui_test_resize (1600, 1000);
  ui_test_open_sample (NULL);
  td_session_set_moment (ui_test_session (), 7, 3);
  ui_test_settle ();
  for (int i = 0; i < 2; i++)
    {
      const char *signal = i ? "dragged" : "pressed";
      ui_test_do ("show-page", "debug");
      assert_goes_where_it_was_pressed (TD_SCENE_VIEW (ui_test_named ("iterations-strip")),
                                        FALSE, signal);
      assert_goes_where_it_was_pressed (strip (), TRUE, signal);
      assert_goes_where_it_was_pressed (ui_test_panel_scene_view ("memory", "iterations"),
                                        FALSE, signal);
      assert_goes_where_it_was_pressed (ui_test_panel_scene_view ("memory", "events"), TRUE,
                                        signal);
      ui_test_do ("show-page", "curves");
      assert_goes_where_it_was_pressed (ui_test_panel_scene_view ("curves", "curves"), FALSE,
                                        signal);
    }
}

static void
click__on_a_column_of_gradients_goes_to_the_iteration_that_it_shows (void **state)
{
  static const SampleOptions many = { .n_iterations = 300, .nan_at = 77 };
  ui_test_resize (1600, 1000);
  ui_test_open_sample (&many);
  ui_test_do ("show-page", "gradients");
  TdSceneView *map = ui_test_panel_scene_view ("gradients", "heatmap");
  td_session_set_moment (ui_test_session (), 5, 3);
  ui_test_settle ();
  TdScene *scene = td_scene_view_get_scene (map);
  TdSceneRect box = td_scene_axes (scene)->box;
  gboolean went_to_nan = FALSE;
  TdSceneHit hit;
  assert_true (td_scene_axes (scene)->x0 == 0 && td_scene_axes (scene)->x1 >= 300);
  for (double x = box.x + 1; x < box.x + box.width; x += 3)
    {
      scene = td_scene_view_get_scene (map);
      assert_true (td_scene_hit (scene, x, box.y + 3, 0, &hit));
      assert_int_equal (hit.tag, TD_TAG_CELL);
      g_autofree char *said = g_strdup_printf ("iteration %" G_GINT64_FORMAT ",", hit.number);
      assert_true (g_str_has_prefix (hit.tooltip, said));
      gint64 under = (gint64)td_scene_axis_value (scene, x);
      assert_true (ABS (under - hit.number) < 16); /* in the same column */
      gint64 number = hit.number;
      g_signal_emit_by_name (map, "pressed", &hit, x, box.y + 3);
      assert_moment (number, 3);
      went_to_nan |= number == 77;
    }
  assert_true (went_to_nan);
  /* the zoom is of the newest up to the playhead, a column each */
  td_session_set_moment (ui_test_session (), 200, 3);
  TdSceneView *zoom = ui_test_panel_scene_view ("gradients", "newest");
  ui_test_settle ();
  scene = td_scene_view_get_scene (zoom);
  assert_true (td_scene_axes (scene)->x1 == 201);
  box = td_scene_axes (scene)->box;
  assert_true (td_scene_hit (scene, box.x + box.width - 2, box.y + 3, 0, &hit));
  assert_int_equal (hit.number, 200);
  ui_test_save_picture ("gradients-newest.png");
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

/* ---- every other view ---- */

/* The first widget of this type, on show. */
static GtkWidget *
find_type (GtkWidget *widget, GType type)
{
  GtkWidget *found = G_TYPE_CHECK_INSTANCE_TYPE (widget, type) ? widget : NULL;
  for (GtkWidget *c = gtk_widget_get_first_child (widget); c && !found;
       c = gtk_widget_get_next_sibling (c))
    found = gtk_widget_get_mapped (c) ? find_type (c, type) : NULL;
  return found;
}

static GtkWidget *
find_in_workspace (GType type)
{
  GtkWidget *found = find_type (GTK_WIDGET (ui_test_workspace ()), type);
  assert_non_null (found);
  return found;
}

static guint
count_in_scene (GtkWidget *widget)
{
  return td_scene_view_count_hovered (TD_SCENE_VIEW (widget));
}

static void
show_memory (void)
{
  ui_test_panel_scene_view ("memory", "events");
}

static GtkWidget *
find_in_memory (double *x, double *y)
{
  TdSceneView *view = ui_test_panel_scene_view ("memory", "events");
  const TdSceneAxes *axes = td_scene_axes (td_scene_view_get_scene (view));
  *x = axes->box.x + axes->box.width * (3.5 - axes->x0) / (axes->x1 - axes->x0);
  *y = axes->box.y + axes->box.height / 2;
  return GTK_WIDGET (view);
}

static void
show_filter (void)
{
  ui_test_do ("filter", NULL);
  td_filter_page_set_text (td_workspace_get_filter (ui_test_workspace ()), "phase == forward");
}

static GtkWidget *
find_in_filter (double *x, double *y)
{
  return find_cell (GTK_WIDGET (td_workspace_get_filter (ui_test_workspace ())), key_of (3));
}

static GtkWidget *
first_row (gboolean watches)
{
  GtkWidget *page = GTK_WIDGET (td_workspace_get_notes (ui_test_workspace (), watches));
  return find_type (page, GTK_TYPE_LIST_BOX_ROW);
}

static void
show_notes (void)
{
  assert_true (td__window_write_note (ui_test_window (), "here"));
  ui_test_do ("show-page", "notes");
}

static GtkWidget *
find_in_notes (double *x, double *y)
{
  return first_row (FALSE);
}

static void
show_watches (void)
{
  td_session_select (ui_test_session (), key_of (3));
  ui_test_do ("watch", NULL);
  ui_test_do ("show-page", "watches");
}

static GtkWidget *
find_in_watches (double *x, double *y)
{
  return first_row (TRUE);
}

static void
show_source (void)
{
  ui_test_do ("show-page", "source");
}

static GtkWidget *
find_in_source (double *x, double *y)
{
  GtkTextView *view = GTK_TEXT_VIEW (find_in_workspace (GTK_SOURCE_TYPE_VIEW));
  GtkTextIter line;
  g_autoptr (TdIteration) iteration = td_session_get_current (ui_test_session ());
  guint32 at;
  int top, height, wx, wy;
  td_iteration_get_site (iteration, td_iteration_get_tape (iteration)->events[3].site, &at);
  gtk_text_buffer_get_iter_at_line (gtk_text_view_get_buffer (view), &line, (int)at - 1);
  gtk_text_view_get_line_yrange (view, &line, &top, &height);
  gtk_text_view_buffer_to_window_coords (view, GTK_TEXT_WINDOW_WIDGET, 4, top + height / 2, &wx,
                                         &wy);
  *x = wx;
  *y = wy;
  return GTK_WIDGET (view);
}

static guint
count_in_source (GtkWidget *widget)
{
  return td_source_page_get_hovered (td_workspace_get_source (ui_test_workspace ())) ? 1 : 0;
}

static void
show_value (void)
{
  ui_test_do ("show-page", "value");
}

static GtkWidget *
find_in_value (double *x, double *y)
{
  return ui_test_named ("value");
}

/* Each is pointed at where event 3 is. */
static const struct
{
  const char *name;
  void (*show) (void);
  GtkWidget *(*find) (double *x, double *y);
  guint (*count) (GtkWidget *widget); /* of what is marked */
} views[] = {
  { "memory", show_memory, find_in_memory, count_in_scene },
  { "filter", show_filter, find_in_filter, count_lit },
  { "notes", show_notes, find_in_notes, count_lit },
  { "watches", show_watches, find_in_watches, count_lit },
  { "source", show_source, find_in_source, count_in_source },
  { "value", show_value, find_in_value, count_lit },
};

static void
hover__goes_from_every_view_and_to_it (void **state)
{
  open_sample ();
  guint64 key = key_of (3);
  for (guint i = 0; i < G_N_ELEMENTS (views); i++)
    {
      double x = 1, y = 1;
      print_message ("%s\n", views[i].name);
      views[i].show ();
      ui_test_settle ();
      GtkWidget *widget = views[i].find (&x, &y);
      assert_non_null (widget);
      leave (widget); /* where it was looked for by pointing */
      assert_int_equal (td_session_get_hover (ui_test_session ()), 0);
      assert_int_equal (views[i].count (widget), 0);
      point_at (widget, x, y);
      assert_int_equal (td_session_get_hover (ui_test_session ()), key);
      assert_int_not_equal (views[i].count (widget), 0);
      assert_int_not_equal (td_graph_view_get_hover (canvas ()), 0); /* it, or its layer */
      assert_int_not_equal (lit_rows (), 0);
      ui_test_settle ();
      g_autofree char *picture = g_strdup_printf ("hover-%s.png", views[i].name);
      ui_test_save_picture (picture);
      leave (widget);
      assert_int_equal (td_session_get_hover (ui_test_session ()), 0);
      assert_int_equal (views[i].count (widget), 0);
      td_session_set_hover (ui_test_session (), key);
      assert_int_not_equal (views[i].count (widget), 0);
      td_session_set_hover (ui_test_session (), key_of (5));
      if (views[i].count == count_lit) /* a widget for this one alone */
        assert_int_equal (count_lit (widget), 0);
      td_session_set_hover (ui_test_session (), 0);
      assert_int_equal (views[i].count (widget), 0);
    }
}

/* A curve is of iterations: it stands for no operation. */
static void
hover__of_a_curve_is_of_nothing (void **state)
{
  open_sample ();
  TdSceneView *rows = ui_test_panel_scene_view ("schedule", "order");
  ui_test_do ("show-page", "curves");
  GtkWidget *view = GTK_WIDGET (ui_test_panel_scene_view ("curves", "curves"));
  point_at (view, gtk_widget_get_width (view) / 2, gtk_widget_get_height (view) / 2);
  assert_nothing_is_marked (rows);
  td_session_set_hover (ui_test_session (), key_of (3));
  assert_int_equal (count_in_scene (view), 0);
}

static void
hover__of_the_inspectors_gradient_marks_its_parameter (void **state)
{
  open_sample ();
  g_autoptr (TdIteration) iteration = td_session_get_current (ui_test_session ());
  const TdTapeIteration *tape = td_iteration_get_tape (iteration);
  guint64 key = tape->vars[tape->grads[0].parameter].key;
  td_session_select (ui_test_session (), key);
  ui_test_do ("show-page", "gradient");
  ui_test_do ("show-page", "gradients");
  ui_test_settle ();
  GtkWidget *view = ui_test_named ("gradient");
  TdSceneView *map = ui_test_panel_scene_view ("gradients", "heatmap");
  point_at (view, 40, 40);
  assert_int_equal (td_session_get_hover (ui_test_session ()), key);
  assert_int_equal (count_lit (view), 1);
  assert_int_equal (td_scene_view_count_hovered (map), 1);
  /* it stays while the playhead moves below the pointer */
  td_session_set_moment (ui_test_session (), 7, 4);
  assert_int_equal (td_session_get_hover (ui_test_session ()), key);
  leave (view);
  assert_int_equal (count_lit (view), 0);
  td_session_set_hover (ui_test_session (), key);
  assert_int_equal (count_lit (view), 1);
  assert_int_equal (count_lit (ui_test_named ("value")), 0);
}

static void
hover__inside_a_group_is_of_the_group (void **state)
{
  const char *tape = td_test_tmp ("fused.tdtape");
  TdTestChild child
      = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "-f", "--quiet", "-o", tape,
                     td_test_source ("tests/models/fused.c"), "6", "100");
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  ui_test_resize (1440, 900);
  ui_test_open (tape);
  ui_test_do ("go-to", "i=4&e=0");
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  guint group = 0;
  while (group < td_iteration_get_n_events (it)
         && !g_str_has_prefix (td_iteration_get_op_name (it, group), "mul+tanh+log+exp"))
    group++;
  assert_in_range (group, 0, td_iteration_get_n_events (it) - 1);
  td_session_select (ui_test_session (), key_of (group));
  ui_test_do ("show-page", "inside");
  ui_test_settle ();
  static const char *const names[] = { "inside", "inside-value" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      GtkWidget *view = ui_test_named (names[i]);
      point_at (view, 20, 10);
      assert_int_equal (td_session_get_hover (ui_test_session ()), key_of (group));
      assert_int_equal (td_graph_view_get_hover (canvas ()), key_of (group));
      assert_int_equal (count_lit (view), 1);
      ui_test_settle ();
      ui_test_save_picture ("hover-inside.png");
      leave (view);
      assert_int_equal (td_session_get_hover (ui_test_session ()), 0);
      assert_int_equal (count_lit (view), 0);
      td_session_set_hover (ui_test_session (), key_of (group));
      assert_int_equal (count_lit (view), 1);
      td_session_set_hover (ui_test_session (), 0);
    }
}

/* ---- the compare page ---- */

#define BRANCH 20 /* the iteration that has one relu more */
#define RELU 12   /* its event */

static TdComparePage *
open_compare (void)
{
  LenetOptions options = LENET_DEFAULT;
  const char *path = td_test_tmp ("lenet.tdtape");
  options.extra_relu_at = BRANCH;
  lenet_tape_write (path, &options);
  ui_test_resize (1440, 900);
  ui_test_open (path);
  ui_test_do ("go-to", "i=20&e=20");
  ui_test_do ("compare", NULL);
  ui_test_settle ();
  TdComparePage *page = td_workspace_get_compare (ui_test_workspace ());
  assert_non_null (td_compare_page_get (page));
  return page;
}

static GtkWidget *
find_difference (void)
{
  GtkWidget *list = find_type (find_in_workspace (TD_TYPE_COMPARE_LIST), GTK_TYPE_LIST_VIEW);
  GtkWidget *row = gtk_widget_get_first_child (list);
  return gtk_widget_get_next_sibling (row); /* below its heading */
}

/* What only one side has is marked there, and nothing on the other. */
static void
hover__of_a_difference_marks_the_side_that_has_it (void **state)
{
  TdComparePage *page = open_compare ();
  TdSession *mine = ui_test_session (), *theirs = td_compare_page_get_other (page);
  TdSide side = td_compare_page_get_mine (page);
  TdGraphView *view = td_compare_side_get_view (td_compare_page_get_side (page, side));
  GtkWidget *row = find_difference ();
  point_at (row, 4, 4);
  assert_int_equal (td_session_get_hover (mine), key_of (RELU));
  assert_int_equal (td_session_get_hover (theirs), 0);
  assert_int_not_equal (td_graph_view_get_hover (view), 0);
  assert_int_equal (count_lit (row), 1);
  ui_test_settle ();
  ui_test_save_picture ("hover-difference.png");
  leave (row);
  assert_int_equal (td_session_get_hover (mine), 0);
  assert_int_equal (count_lit (row), 0);
  td_session_set_hover (mine, key_of (RELU));
  assert_int_equal (count_lit (row), 1);
}

static void
hover__of_a_compared_operation_marks_both_sides (void **state)
{
  TdComparePage *page = open_compare ();
  const TdCompare *compare = td_compare_page_get (page);
  TdSide side = td_compare_page_get_mine (page);
  TdSession *sessions[TD_N_SIDES];
  gint event[TD_N_SIDES];
  guint64 key[TD_N_SIDES];
  sessions[side] = ui_test_session ();
  sessions[1 - side] = td_compare_page_get_other (page);
  event[side] = RELU + 8;
  event[1 - side] = td_compare_counterpart (compare, side, event[side]);
  for (int i = 0; i < TD_N_SIDES; i++)
    key[i] = td_iteration_get_tape (compare->of[i])->events[event[i]].key;
  assert_true (td_compare_page_show_view (page, "operations"));
  ui_test_settle ();
  GtkWidget *table = find_in_workspace (TD_TYPE_COMPARE_TABLE);
  td_compare_table_select (TD_COMPARE_TABLE (table),
                           td_compare_find_row (compare, side, event[side]));
  ui_test_settle (); /* it is scrolled to */
  GtkWidget *cell = find_cell (table, key[side]);
  assert_non_null (cell);
  for (int i = 0; i < TD_N_SIDES; i++)
    {
      TdGraphView *view = td_compare_side_get_view (td_compare_page_get_side (page, (TdSide)i));
      assert_int_equal (td_session_get_hover (sessions[i]), key[i]);
      assert_int_not_equal (td_graph_view_get_hover (view), 0);
    }
  assert_int_equal (count_lit (cell), 1);
  ui_test_settle ();
  ui_test_save_picture ("hover-compare.png");
  leave (cell);
  for (int i = 0; i < TD_N_SIDES; i++)
    {
      assert_int_equal (td_session_get_hover (sessions[i]), 0);
      td_session_set_hover (sessions[i], key[i]); /* from either side */
      assert_int_equal (td_session_get_hover (sessions[1 - i]), key[1 - i]);
      assert_int_equal (count_lit (cell), 1);
      td_session_set_hover (sessions[i], 0);
    }
}

static void
hover__of_a_compared_buffer_marks_it_on_both_sides (void **state)
{
  TdComparePage *page = open_compare ();
  assert_true (td_compare_page_show_view (page, "compare-buffers"));
  ui_test_settle ();
  GtkWidget *buffers = find_in_workspace (TD_TYPE_COMPARE_BUFFERS);
  GtkWidget *a = find_type (buffers, TD_TYPE_SCENE_VIEW), *b = gtk_widget_get_next_sibling (a);
  /* a buffer that both have, wherever it lies */
  for (int y = 0; y < gtk_widget_get_height (a) && count_in_scene (b) == 0; y += 4)
    for (int x = 0; x < gtk_widget_get_width (a) && count_in_scene (b) == 0; x += 8)
      point_at (a, x, y);
  assert_int_not_equal (count_in_scene (a), 0);
  assert_int_not_equal (count_in_scene (b), 0);
  ui_test_settle ();
  ui_test_save_picture ("hover-buffers.png");
  leave (a);
  assert_int_equal (count_in_scene (a), 0);
  assert_int_equal (count_in_scene (b), 0);
  assert_int_equal (td_session_get_hover (td_compare_page_get_other (page)), 0);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (hover__of_a_row_marks_the_graph),
    ui_test (hover__of_a_node_marks_the_rows),
    ui_test (hover__of_the_strip_marks_its_event),
    ui_test (hover__of_a_gradient_marks_its_parameter),
    ui_test (press__goes_to_the_place_that_it_is_in),
    ui_test (click__on_a_column_of_gradients_goes_to_the_iteration_that_it_shows),
    ui_test (hover__of_an_outline_row_marks_the_graph_in_dark_too),
    ui_test (hover__goes_from_every_view_and_to_it),
    ui_test (hover__of_a_curve_is_of_nothing),
    ui_test (hover__of_the_inspectors_gradient_marks_its_parameter),
    ui_test (hover__inside_a_group_is_of_the_group),
    ui_test (hover__of_a_difference_marks_the_side_that_has_it),
    ui_test (hover__of_a_compared_operation_marks_both_sides),
    ui_test (hover__of_a_compared_buffer_marks_it_on_both_sides),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
