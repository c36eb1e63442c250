/* Rows of the list of features that are about the graph, on the canvas itself: what it draws
 * (twins, saved arrays, colours, ghosts, what wires carry), what is done on it (open, find,
 * walk, play, move by the small map, ask for a path), and what is saved of it.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <gdk/x11/gdkx.h>
#include <string.h>

#include "pages/td-graph-page.h"
#include "widgets/td-graph-view-private.h"
#include "window/td-window-private.h"

#define RELU 1 /* its event in the sample, and others */
#define POOLING 2
#define LOSS 12

static TdGraphView *
canvas (void)
{
  return td_graph_page_get_view (td_workspace_get_graph (ui_test_workspace ()));
}

static TdScene *
scene (void)
{
  return td_graph_view_get_scene (canvas ());
}

static TdVizView *
view (void)
{
  return td_graph_view_get_layout (canvas ())->view;
}

static void
open_at (const char *moment)
{
  ui_test_resize (1440, 900);
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", moment);
  ui_test_do ("expand-all", NULL);
  ui_test_wait_for_layout ();
}

static guint64
key_of (guint event)
{
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  return td_iteration_get_tape (it)->events[event].key;
}

static const TdVizNode *
node_of (guint event)
{
  gint node = td_viz_view_find_event (view (), (gint)event);
  assert_in_range (node, 0, view ()->n_nodes - 1);
  return &view ()->nodes[node];
}

static TdRect
place_of (guint event)
{
  return td_graph_view_get_layout (canvas ())->nodes[node_of (event) - view ()->nodes];
}

/* How many lines of the picture, as text, have both words. */
static guint
count_lines (const char *a, const char *b)
{
  g_autofree char *dump = td_scene_dump (scene ());
  g_auto (GStrv) lines = g_strsplit (dump, "\n", -1);
  guint n = 0;
  for (char **line = lines; *line; line++)
    n += strstr (*line, a) && strstr (*line, b);
  return n;
}

/* ---- what is drawn ---- */

static void
canvas__twins_stand_side_by_side (void **state)
{
  open_at ("i=59&e=20");
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  const TdTapeIteration *t = td_iteration_get_tape (it);
  guint n = 0;
  for (guint e = 0; e < t->n_events; e++)
    if (t->events[e].phase == TD_TAPE_PHASE_BACKWARD)
      {
        TdRect forward = place_of ((guint)t->events[e].twin), backward = place_of (e);
        assert_float_equal (forward.y + forward.height / 2, backward.y + backward.height / 2,
                            1);
        assert_true (backward.x > forward.x + forward.width);
        n++;
      }
  assert_int_equal (n, 22);
}

/* Where the layer's upper left corner is on the screen, by the place of an operation outside.
 */
static TdScenePoint
corner_of (guint64 layer, guint other)
{
  TdSceneRect box, inside, pixels;
  double scale = td_graph_view_get_scale (canvas ());
  assert_true (td_scene_find_key (scene (), layer, &box));
  assert_true (td_scene_find_key (scene (), key_of (other), &inside));
  assert_true (td_graph_view_get_event (canvas (), (gint)other, &pixels));
  return (TdScenePoint){ pixels.x + (box.x - inside.x) * scale,
                         pixels.y + (box.y - inside.y) * scale };
}

static void
canvas__a_layer_opens_where_it_was_clicked (void **state)
{
  open_at ("i=59&e=12");
  guint64 block2 = td_graph_view_find_layer (canvas (), key_of (4));
  assert_true (block2 != 0);
  td_graph_view_set_expanded (canvas (), block2, FALSE);
  ui_test_wait_for_layout ();
  TdScenePoint before = corner_of (block2, LOSS);
  guint n = view ()->n_nodes;
  td_graph_view_set_expanded (canvas (), block2, TRUE);
  ui_test_wait_for_layout ();
  TdScenePoint after = corner_of (block2, LOSS);
  assert_true (view ()->n_nodes > n);
  assert_float_equal (after.x, before.x, 2);
  assert_float_equal (after.y, before.y, 2);
}

/* The bytes are those that the operation keeps. */
static void
canvas__saved_arrays_are_dotted_edges_with_their_bytes (void **state)
{
  open_at ("i=59&e=12");
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  TdVizGraph *graph = td_iteration_get_graph (it);
  guint n = 0;
  for (guint e = 0; e < SAMPLE_N_FORWARD; e++)
    {
      char bytes[TD_FORMAT_SIZE];
      guint64 saved = td_viz_graph_get_saved_bytes (graph, e);
      if (saved == 0)
        continue;
      g_autofree char *words = g_strdup_printf ("\"%s\"", td_format_bytes (bytes, saved));
      assert_true (count_lines ("text ", words) > 0);
      n++;
    }
  assert_in_range (n, 6, SAMPLE_N_FORWARD);
  assert_in_range (count_lines ("[pill ", "stroke=saved"), n, 2 * n);
  assert_true (count_lines ("[edge ", " dotted") >= n);
}

static void
canvas__is_coloured_by_bytes_time_and_norm_of_the_iteration (void **state)
{
  static const TdHeatBy heats[] = { TD_HEAT_BYTES, TD_HEAT_TIME, TD_HEAT_NORM };
  open_at ("i=59&e=12");
  assert_int_equal (count_lines ("heat ", ""), 0);
  for (guint i = 0; i < G_N_ELEMENTS (heats); i++)
    {
      td_graph_view_set_heat (canvas (), heats[i]);
      ui_test_settle ();
      /* each operation, but that updates make no output */
      assert_in_range (count_lines ("heat ", ""), 35, SAMPLE_N_EVENTS);
      g_autofree char *name = g_strdup_printf ("heat-%u.png", i);
      ui_test_save_picture (name);
    }
  g_autofree char *now = td_scene_dump (scene ());
  ui_test_do ("go-to", "i=30&e=12");
  ui_test_settle ();
  g_autofree char *then = td_scene_dump (scene ());
  assert_string_not_equal (now, then);
  td_graph_view_set_heat (canvas (), TD_HEAT_OFF);
  assert_int_equal (count_lines ("heat ", ""), 0);
}

/* Also where it is inside of a layer that is folded. */
static void
canvas__marks_what_is_no_number (void **state)
{
  ui_test_resize (1440, 900);
  ui_test_open_sample (&(SampleOptions){ .n_iterations = 40, .nan_at = 30 });
  ui_test_do ("go-to", "i=30&e=44");
  ui_test_do ("expand-all", NULL);
  td_graph_view_set_heat (canvas (), TD_HEAT_NORM);
  ui_test_wait_for_layout ();
  assert_int_equal (count_lines ("    |N|", ""), 22);
  assert_in_range (count_lines ("text ", "\"NaN\""), 1, 22); /* where there is room */
  ui_test_save_picture ("heat-nan.png");
  ui_test_do ("expand-to", "0");
  ui_test_wait_for_layout ();
  assert_true (count_lines ("    |N|", "") > 0);
  ui_test_do ("go-to", "i=29&e=44");
  ui_test_wait_for_layout ();
  assert_int_equal (count_lines ("    |N|", ""), 0);
}

/* The pointer is told all of it; the first wire from relu to the pooling. */
static void
canvas__wires_say_shape_type_and_bytes (void **state)
{
  open_at ("i=59&e=12");
  TdSceneHit hit;
  guint n = 0;
  for (guint i = 0; i < view ()->n_edges; i++)
    {
      const TdEdgeRoute *route = &td_graph_view_get_layout (canvas ())->edges[i];
      const TdVizEdge *e = &view ()->edges[i];
      if (e->kind != TD_EDGE_DATA || view ()->nodes[e->from].event != RELU
          || view ()->nodes[e->to].event != POOLING)
        continue;
      const TdRect *bounds = &td_graph_view_get_layout (canvas ())->bounds;
      TdPoint a = td_graph_view_get_layout (canvas ())->points[route->first_point];
      TdPoint b = td_graph_view_get_layout (canvas ())->points[route->first_point + 1];
      double margin = (td_scene_width (scene ()) - bounds->width) / 2;
      double x = a.x - bounds->x + margin, y = (a.y + b.y) / 2 - bounds->y + margin;
      assert_true (td_scene_hit (scene (), x, y, 2, &hit));
      assert_int_equal (hit.tag, TD_TAG_EDGE);
      assert_contains (hit.tooltip, "(64, 6, 28, 28) float32");
      assert_contains (hit.tooltip, "1.20 MB");
      n++;
    }
  assert_int_equal (n, 1);
  /* where a wire crosses the border of a layer its shape stands beside it */
  assert_true (count_lines ("text ", "(64, 6, 14, 14)") > 0);
}

/* Outputs of an event that were freed by another one, found by their buffers. */
static guint
count_freed (const TdTapeIteration *t, guint event, gint by)
{
  guint n = 0;
  for (guint32 i = 0; i < t->n_memory; i++)
    for (guint32 k = 0; k < i && t->memory[i].kind == TD_TAPE_MEMORY_FREE; k++)
      n += t->memory[k].kind == TD_TAPE_MEMORY_ALLOC
           && t->memory[k].buffer == t->memory[i].buffer && t->memory[k].var < t->n_vars
           && t->vars[t->memory[k].var].producer == (gint)event
           && (gint)t->memory[i].event <= by;
  return n;
}

/* A recording that tells of frees: the node of what has gone is a ghost, until one goes back.
 */
static void
canvas__operations_whose_output_is_freed_are_ghosts (void **state)
{
  const char *tape = td_test_tmp ("leaks.tdtape");
  TdTestChild child
      = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "-f", "--quiet", "--iterations",
                     "4", "-o", tape, td_test_source ("tests/models/leaks.c"), "total");
  guint n = 0;
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  ui_test_resize (1440, 900);
  ui_test_open (tape);
  ui_test_do ("expand-all", NULL);
  ui_test_do ("first-event", NULL);
  ui_test_wait_for_layout ();
  assert_int_equal (count_lines ("[node ", " fine"), 0);
  ui_test_do ("last-event", NULL);
  ui_test_wait_for_layout ();
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  const TdTapeIteration *t = td_iteration_get_tape (it);
  gint last = td_session_get_moment (ui_test_session ()).event;
  for (guint e = 0; e < t->n_events; e++)
    n += t->events[e].n_out > 0 && count_freed (t, e, last) == t->events[e].n_out;
  assert_in_range (n, 1, t->n_events - 1);
  assert_int_equal (count_lines ("[node ", " fine"), n);
  TdSceneHit hit;
  guint n_said = 0;
  for (guint i = 0; i < view ()->n_nodes; i++)
    {
      TdSceneRect box;
      if (view ()->nodes[i].kind == TD_VIZ_OP
          && td_scene_find_key (scene (), view ()->nodes[i].select_key, &box)
          && td_scene_hit (scene (), box.x + 4, box.y + box.height / 2, 0, &hit))
        n_said += strstr (hit.tooltip, "its output is freed") != NULL;
    }
  assert_int_equal (n_said, n);
  /* the inspector knows when */
  guint dead = 0;
  while (count_freed (t, dead, last) == 0)
    dead++;
  td_session_select (ui_test_session (), t->events[dead].key);
  ui_test_do ("show-page", "life");
  ui_test_settle ();
  TdInspector *inspector = td_workspace_get_inspector (ui_test_workspace ());
  assert_true (g_str_has_prefix (td_inspector_find_fact (inspector, "Freed"), "before event "));
  ui_test_save_picture ("ghosts.png");
}

/* ---- what is done on it ---- */

static guint
count_selected (void)
{
  guint n;
  td_session_get_selection (ui_test_session (), &n);
  return n;
}

/* From the middle to the loss, and from the selection to the playhead: its nodes are ringed and
 * the wires between them drawn. */
static void
canvas__path_to_the_loss_and_to_the_playhead_is_drawn (void **state)
{
  open_at ("i=59&e=3");
  ui_test_do ("path", NULL);
  ui_test_settle ();
  assert_int_equal (count_selected (), LOSS - 3 + 1); /* a chain */
  for (guint e = 3; e <= LOSS; e++)
    assert_true (td_session_is_selected (ui_test_session (), key_of (e)));
  assert_int_equal (count_lines ("[node ", "stroke=accent"), LOSS - 3 + 1);
  assert_true (count_lines ("[edge ", "stroke=accent") >= LOSS - 3);
  ui_test_save_picture ("path.png");
  ui_test_do ("go-to", "i=59&e=7");
  td_session_select (ui_test_session (), key_of (4));
  ui_test_do ("path", NULL);
  assert_int_equal (count_selected (), 4);
  td_session_select (ui_test_session (), key_of (9)); /* after the playhead */
  ui_test_do ("path", NULL);
  assert_int_equal (count_selected (), 3);
  assert_false (td_session_is_selected (ui_test_session (), key_of (4)));
  ui_test_do ("go-to", "i=59&e=40"); /* nothing reads an update */
  td_session_select (ui_test_session (), key_of (39));
  ui_test_do ("path", NULL);
  assert_int_equal (count_selected (), 1);
  ui_test_do ("where-used", NULL);
  ui_test_do ("go-to", "i=59&e=3");
  ui_test_do ("where-used", NULL);
  assert_moment (59, 4);
  ui_test_do ("where-from", NULL);
  assert_moment (59, 3);
}

static void
canvas__minimap_is_there_for_what_is_out_of_sight (void **state)
{
  TdSceneRect box;
  open_at ("i=59&e=12");
  ui_test_do ("fit", NULL);
  ui_test_settle ();
  assert_false (td__graph_view_minimap_box (canvas (), &box));
  ui_test_do ("zoom-normal", NULL);
  ui_test_do ("zoom-in", NULL);
  ui_test_settle ();
  assert_true (td__graph_view_minimap_box (canvas (), &box));
  assert_true (box.x > 0 && box.y > 0);
  ui_test_save_picture ("minimap.png");
  /* its places are those of the graph, and what is in sight has a frame */
  const TdLayout *layout = td_graph_view_get_layout (canvas ());
  TdSceneRect visible = td_viewport_visible (&canvas ()->viewport);
  TdPanelView panel = { .event = 12 };
  g_autoptr (TdScene) map = td_graph_minimap_new (layout, &panel, &visible);
  g_autofree char *dump = td_scene_dump (map);
  assert_contains (dump, "stroke=accent");
  TdScenePoint middle = td_graph_minimap_point (layout, box.width / 2, box.height / 2);
  assert_float_equal (middle.x, layout->bounds.x + layout->bounds.width / 2, 1);
  assert_float_equal (middle.y, layout->bounds.y + layout->bounds.height / 2, 1);
}

/* As if it had been done by hand, at a place of the canvas. */
static void
do_by_hand (double x, double y, const char *deeds)
{
  GtkWidget *window = GTK_WIDGET (ui_test_window ());
  GdkSurface *surface = gtk_native_get_surface (GTK_NATIVE (window));
  double left, top, at_x, at_y;
  int status = -1;
  gtk_native_get_surface_transform (GTK_NATIVE (window), &left, &top);
  gtk_widget_translate_coordinates (GTK_WIDGET (canvas ()), window, x, y, &at_x, &at_y);
  g_autofree char *line = g_strdup_printf ("xdotool mousemove --window %lu %d %d %s",
                                           (gulong)gdk_x11_surface_get_xid (surface),
                                           (int)(at_x + left), (int)(at_y + top), deeds);
  assert_true (g_spawn_command_line_sync (line, NULL, NULL, &status, NULL));
  assert_int_equal (status, 0);
}

static gboolean
sees_the_end (gpointer unused)
{
  TdSceneRect visible = td_viewport_visible (&canvas ()->viewport);
  return visible.y + visible.height > canvas ()->viewport.content_height - 60;
}

static void
canvas__minimap_drags_the_view (void **state)
{
  TdSceneRect box;
  g_autofree char *xdotool = g_find_program_in_path ("xdotool");
  if (!xdotool || !GDK_IS_X11_DISPLAY (gdk_display_get_default ()))
    skip ();
  open_at ("i=59&e=0");
  ui_test_do ("zoom-normal", NULL);
  ui_test_do ("zoom-in", NULL);
  ui_test_settle ();
  assert_true (td__graph_view_minimap_box (canvas (), &box));
  assert_false (sees_the_end (NULL));
  do_by_hand (box.x + box.width / 2, box.y + 8, "mousedown 1");
  for (double part = 0.2; part < 1; part += 0.2)
    do_by_hand (box.x + box.width / 2, box.y + part * box.height, "");
  do_by_hand (box.x + box.width / 2, box.y + box.height - 6, "mouseup 1");
  ui_test_wait ("the lower end of the graph", sees_the_end, NULL);
  assert_moment (59, 0); /* it is no click on a node */
  assert_int_equal (count_selected (), 0);
}

static gboolean
has_come_to (gpointer event)
{
  return td_session_get_moment (ui_test_session ()).event >= GPOINTER_TO_INT (event);
}

static gboolean
has_gone_back_to (gpointer event)
{
  return td_session_get_moment (ui_test_session ()).event <= GPOINTER_TO_INT (event);
}

/* What is still to come is dashed; one after the other is not any more. */
static void
canvas__lights_up_as_a_recording_is_played (void **state)
{
  open_at ("i=59&e=3");
  guint to_come = count_lines ("[node ", " dashed");
  assert_int_equal (to_come, SAMPLE_N_EVENTS - 4);
  ui_test_do ("play", NULL);
  ui_test_wait ("five operations", has_come_to, GINT_TO_POINTER (8));
  ui_test_do ("pause", NULL);
  gint event = td_session_get_moment (ui_test_session ()).event;
  ui_test_settle ();
  assert_int_equal (count_lines ("[node ", " dashed"), SAMPLE_N_EVENTS - 1 - event);
  assert_false (ui_test_window ()->playing);
  assert_int_equal (td_session_get_moment (ui_test_session ()).event, event);
  ui_test_do ("continue-back", NULL);
  ui_test_wait ("two operations back", has_gone_back_to, GINT_TO_POINTER (event - 2));
  ui_test_do ("cancel", NULL);
}

static guint
find (const char *text)
{
  return td_graph_page_search (td_workspace_get_graph (ui_test_workspace ()), text);
}

/* Numbers are those of the sample: six of conv2, four shapes with all 28 x 28 values. */
static void
find__takes_a_layer_an_operation_a_shape_a_type_and_a_place (void **state)
{
  static const struct
  {
    const char *text;
    guint n;
  } rows[] = { { "conv2", 6 },    { "max_pooling", 4 }, { "(64, 6, 28, 28)", 4 },
               { "(10, 84)", 1 }, { "lenet.c:41", 2 },  { "float32", 35 },
               { "float16", 0 },  { "(64, 7", 0 },      { "no such name", 0 } };
  open_at ("i=59&e=12");
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      print_message ("%s: %u\n", rows[i].text, find (rows[i].text));
      td_session_select (ui_test_session (), 0);
      assert_int_equal (find (rows[i].text), rows[i].n);
      assert_int_equal (count_selected (), rows[i].n > 0);
    }
}

static gboolean
marks_found (gpointer n)
{
  return count_lines ("text ", "\"●") == GPOINTER_TO_UINT (n);
}

/* The one that is selected is one of them; a layer that is folded says how many it hides. */
static void
find__marks_all_matches_at_once (void **state)
{
  open_at ("i=59&e=12");
  td_graph_view_expand_to (canvas (), 0);
  ui_test_settle ();
  assert_int_equal (find ("conv2"), 6);
  ui_test_settle ();
  assert_int_equal (count_selected (), 1);
  td_graph_view_expand_to (canvas (), 0); /* what hides the first was opened */
  ui_test_settle ();
  assert_true (count_lines ("text ", "\"● ") > 0);
  ui_test_save_picture ("find-folded.png");
  td_graph_view_expand_to (canvas (), -1);
  ui_test_wait ("six that are marked", marks_found, GUINT_TO_POINTER (6));
  ui_test_settle ();
  ui_test_save_picture ("find-open.png");
  ui_test_do ("go-to", "i=58&e=3");
  ui_test_wait ("six in another iteration", marks_found, GUINT_TO_POINTER (6));
  assert_int_equal (find ("no such name"), 0);
  ui_test_wait ("none that is marked", marks_found, GUINT_TO_POINTER (0));
  ui_test_do ("find", NULL);
  assert_int_equal (find ("conv2"), 6);
  ui_test_wait ("six that are marked", marks_found, GUINT_TO_POINTER (6));
  assert_true (td_graph_page_close_find (td_workspace_get_graph (ui_test_workspace ())));
  ui_test_wait ("none that is marked", marks_found, GUINT_TO_POINTER (0));
}

static gboolean
press_key (guint keyval)
{
  return ui_test_press_key (GTK_WIDGET (canvas ()), keyval);
}

static gint
selected_event (void)
{
  guint n;
  const guint64 *keys = td_session_get_selection (ui_test_session (), &n);
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  return n > 0 ? td_iteration_find_event (it, keys[0]) : -1;
}

/* Down the forward lane, over to the twin and up the backward lane; Return goes there. */
static void
canvas__is_walked_by_the_keyboard_alone (void **state)
{
  open_at ("i=59&e=3");
  assert_true (press_key (GDK_KEY_Down)); /* the playhead's own at first */
  assert_int_equal (selected_event (), 3);
  assert_true (press_key (GDK_KEY_Down));
  assert_int_equal (selected_event (), 4);
  assert_true (press_key (GDK_KEY_Right));
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  gint twin = selected_event ();
  assert_int_equal (td_iteration_get_tape (it)->events[twin].phase, TD_TAPE_PHASE_BACKWARD);
  assert_true (press_key (GDK_KEY_Up));
  assert_true (selected_event () != twin);
  gint above = selected_event ();
  assert_true (press_key (GDK_KEY_Return));
  assert_moment (59, above);
}

/* ---- what is saved of it ---- */

static char *
save (const char *name)
{
  const char *path = td_test_tmp (name);
  char *text = NULL;
  ui_test_do ("save-picture", path);
  assert_true (g_file_get_contents (path, &text, NULL, NULL));
  return text;
}

/* All that is open, whether in sight or not. */
static void
canvas__is_saved_whole_as_svg_and_dot (void **state)
{
  open_at ("i=59&e=12");
  ui_test_do ("zoom-normal", NULL);
  ui_test_do ("zoom-in", NULL);
  g_autofree char *svg = save ("graph.svg"), *dot = save ("graph.dot");
  assert_contains (svg, "<svg");
  assert_contains (dot, "digraph");
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  for (guint e = 0; e < SAMPLE_N_FORWARD; e++)
    {
      assert_contains (svg, td_iteration_get_op_name (it, e));
      assert_contains (dot, td_iteration_get_op_name (it, e));
    }
  ui_test_do ("expand-to", "0");
  ui_test_wait_for_layout ();
  g_autofree char *folded = save ("folded.dot");
  assert_not_contains (folded, "max_pooling_2d");
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (canvas__twins_stand_side_by_side),
    ui_test (canvas__a_layer_opens_where_it_was_clicked),
    ui_test (canvas__saved_arrays_are_dotted_edges_with_their_bytes),
    ui_test (canvas__is_coloured_by_bytes_time_and_norm_of_the_iteration),
    ui_test (canvas__marks_what_is_no_number),
    ui_test (canvas__wires_say_shape_type_and_bytes),
    ui_test (canvas__operations_whose_output_is_freed_are_ghosts),
    ui_test (canvas__path_to_the_loss_and_to_the_playhead_is_drawn),
    ui_test (canvas__minimap_is_there_for_what_is_out_of_sight),
    ui_test (canvas__minimap_drags_the_view),
    ui_test (canvas__lights_up_as_a_recording_is_played),
    ui_test (find__marks_all_matches_at_once),
    ui_test (find__takes_a_layer_an_operation_a_shape_a_type_and_a_place),
    ui_test (canvas__is_walked_by_the_keyboard_alone),
    ui_test (canvas__is_saved_whole_as_svg_and_dot),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests_name ("graph rows", tests, NULL, NULL);
}
