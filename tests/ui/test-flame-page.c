/* The flame graph of the Schedule page on a program of real size: one selection with the other
 * views, zoom by pointer and keys, time and bytes, and sums that are those of the order.
 *
 *     test-flame-page PROGRAM LAYER [NAME=VALUE ...]
 *
 * LAYER is a layer with operations in it that runs forward and backward.
 *
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <string.h>

#include "pages/td-graph-page.h"
#include "schedule/td-flame.h"
#include "schedule/td-schedule.h"

static char **arguments; /* program, layer, its arguments */
static char *tape;

static void
open_flame (void)
{
  if (!tape)
    {
      char *program[16] = { arguments[0] };
      for (guint i = 2; arguments[i] && i < G_N_ELEMENTS (program); i++)
        program[i - 1] = arguments[i];
      g_autofree char *file = g_strdup_printf ("tests/ui/flame-%s.tdtape", arguments[0]);
      tape = g_strdup (td_test_build (file));
      ui_test_record_life (tape, program, NULL);
    }
  ui_test_resize (1440, 900);
  ui_test_open (tape);
  ui_test_wait_for_layout ();
  ui_test_do ("flame", "bytes"); /* which are the same on every machine */
  ui_test_settle ();
}

static TdSceneView *
view (void)
{
  return ui_test_panel_scene_view ("schedule", "flame");
}

static char *
dump (void)
{
  return td_scene_dump (td_scene_view_get_scene (view ()));
}

static const char *
title (void)
{
  return gtk_label_get_text (GTK_LABEL (ui_test_named ("flame-title")));
}

static TdFlame *
new_flame (void)
{
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  return td_flame_new (it);
}

static gint
find_layer (const TdFlame *flame, TdLane lane)
{
  for (guint i = 0; i < flame->n; i++)
    if (strcmp (flame->nodes[i].name, arguments[1]) == 0 && flame->nodes[i].lane == lane)
      return (gint)i;
  fail_msg ("no layer %s", arguments[1]);
  return -1;
}

static guint64
selected (void)
{
  guint n;
  const guint64 *keys = td_session_get_selection (ui_test_session (), &n);
  return n > 0 ? keys[0] : 0;
}

/* The box of a node, wherever it is drawn; FALSE: it is too narrow. */
static gboolean
find_box (gint node, double *x, double *y)
{
  TdScene *scene = td_scene_view_get_scene (view ());
  TdSceneHit hit;
  for (*y = 6; *y < td_scene_height (scene); *y += 6)
    for (*x = 9; *x < td_scene_width (scene); *x += 1)
      if (td_scene_hit (scene, *x, *y, 0, &hit) && hit.tag == TD_TAG_ROW && hit.data == node)
        return TRUE;
  return FALSE;
}

static void
point (const char *signal, gint node)
{
  double x = 0, y = 0;
  TdSceneHit hit;
  assert_true (find_box (node, &x, &y));
  assert_true (td_scene_hit (td_scene_view_get_scene (view ()), x, y, 0, &hit));
  g_signal_emit_by_name (view (), signal, &hit, x, y);
  ui_test_settle ();
}

/* As GTK would, to whoever listens to keys on the view. */
static gboolean
press_key (guint keyval)
{
  return ui_test_press_key (GTK_WIDGET (view ()), keyval);
}

/* ---- what it shows ---- */

static void
flame__is_what_the_whole_iteration_cost (void **state)
{
  open_flame ();
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  TdSchedule *schedule = td_schedule_new (it);
  char ns[TD_FORMAT_SIZE], bytes[TD_FORMAT_SIZE];
  assert_contains (title (), td_format_bytes (bytes, schedule->total_bytes));
  ui_test_do ("flame", "time");
  ui_test_settle ();
  assert_contains (title (), td_format_ns (ns, schedule->total_ns));
  td_schedule_free (schedule);
}

static void
flame__by_time_has_other_widths (void **state)
{
  open_flame ();
  g_autofree char *bytes = dump ();
  GtkWidget *button = ui_test_find_button (ui_test_panel_page ("schedule", "flame"), "Time");
  gtk_toggle_button_set_active (GTK_TOGGLE_BUTTON (button), TRUE);
  ui_test_settle ();
  g_autofree char *time = dump ();
  assert_string_not_equal (time, bytes);
  ui_test_do ("flame", "bytes");
  ui_test_settle ();
  g_autofree char *again = dump ();
  assert_string_equal (bytes, again);
  assert_false (gtk_toggle_button_get_active (GTK_TOGGLE_BUTTON (button)));
}

/* ---- one selection ---- */

static void
flame__click_selects_the_layer_everywhere (void **state)
{
  open_flame ();
  g_autoptr (TdFlame) flame = new_flame ();
  gint node = find_layer (flame, TD_LANE_BACKWARD);
  TdMoment before = td_session_get_moment (ui_test_session ());
  point ("pressed", node);
  assert_true (selected () == flame->nodes[node].key);
  TdMoment after = td_session_get_moment (ui_test_session ());
  assert_int_equal (after.event, before.event);
}

/* The same layer has a box in each lane: both are ringed, as what is selected elsewhere. */
static void
flame__shows_what_is_selected_elsewhere (void **state)
{
  open_flame ();
  g_autoptr (TdFlame) flame = new_flame ();
  g_autofree char *before = dump ();
  assert_null (strstr (before, "stroke=accent"));
  td_session_select (ui_test_session (), flame->nodes[find_layer (flame, TD_LANE_FORWARD)].key);
  ui_test_settle ();
  g_autofree char *after = dump ();
  const char *first = strstr (after, "stroke=accent");
  assert_non_null (first);
  assert_non_null (strstr (first + 1, "stroke=accent"));
}

static void
flame__rings_what_is_hovered_elsewhere (void **state)
{
  open_flame ();
  g_autoptr (TdFlame) flame = new_flame ();
  td_session_set_hover (ui_test_session (),
                        flame->nodes[find_layer (flame, TD_LANE_FORWARD)].key);
  ui_test_settle ();
  assert_true (td_scene_view_count_hovered (view ()) >= 1);
}

/* ---- zoom ---- */

static void
flame__double_click_zooms_into_a_layer_and_out_of_the_top (void **state)
{
  open_flame ();
  g_autoptr (TdFlame) flame = new_flame ();
  gint node = find_layer (flame, TD_LANE_BACKWARD);
  point ("opened", node);
  assert_contains (title (), arguments[1]);
  assert_contains (title (), "% of iteration");
  gint around = flame->nodes[node].parent;
  point ("opened", node);
  g_autofree char *expected = td_flame_title (flame, around, TD_FLAME_BYTES);
  assert_string_equal (title (), expected);
}

static void
flame__is_walked_by_keys (void **state)
{
  open_flame ();
  g_autoptr (TdFlame) flame = new_flame ();
  gint backward = td_flame_find (flame, 0, TD_LANE_BACKWARD);
  assert_true (press_key (GDK_KEY_Home)); /* onto the top */
  assert_true (press_key (GDK_KEY_Down));
  assert_true (press_key (GDK_KEY_Right));
  assert_int_equal (selected (), 0); /* a lane is nothing that could be selected */
  assert_true (press_key (GDK_KEY_Return));
  g_autofree char *zoomed = td_flame_title (flame, backward, TD_FLAME_BYTES);
  assert_string_equal (title (), zoomed);
  assert_true (press_key (GDK_KEY_Down));
  assert_true (selected () == flame->nodes[backward + 1].key);
  assert_true (press_key (GDK_KEY_End));
  assert_int_equal (flame->nodes[td_flame_find (flame, selected (), TD_LANE_BACKWARD)].depth,
                    2);
  assert_true (press_key (GDK_KEY_BackSpace));
  assert_contains (title (), " in outputs of ");
  assert_false (press_key (GDK_KEY_BackSpace)); /* that is all there is */
}

/* Return on an operation is the moment at which it ran. */
static void
flame__return_on_an_operation_goes_to_it (void **state)
{
  open_flame ();
  g_autoptr (TdFlame) flame = new_flame ();
  gint op = 0;
  for (guint i = 0; i < flame->n && op == 0; i++)
    if (flame->nodes[i].is_op && flame->nodes[i].lane == TD_LANE_BACKWARD)
      op = (gint)i;
  td_session_select (ui_test_session (), flame->nodes[op].key);
  ui_test_settle ();
  assert_true (press_key (GDK_KEY_Return));
  assert_int_equal (td_session_get_moment (ui_test_session ()).event, flame->nodes[op].event);
}

/* Escape goes out of the zoom first, then it clears the selection. */
static void
flame__escape_goes_out_one_by_one (void **state)
{
  open_flame ();
  g_autoptr (TdFlame) flame = new_flame ();
  gint node = find_layer (flame, TD_LANE_FORWARD);
  td_session_select (ui_test_session (), flame->nodes[node].key);
  ui_test_settle ();
  gtk_widget_grab_focus (GTK_WIDGET (view ()));
  assert_true (press_key (GDK_KEY_Return));
  for (gint at = node; at > 0; at = flame->nodes[at].parent)
    {
      g_autofree char *expected = td_flame_title (flame, at, TD_FLAME_BYTES);
      assert_string_equal (title (), expected);
      ui_test_do ("cancel", NULL);
      ui_test_settle ();
      assert_true (selected () == flame->nodes[node].key);
    }
  assert_contains (title (), " in outputs of ");
  ui_test_do ("cancel", NULL);
  assert_int_equal (selected (), 0);
}

static void
flame__stays_in_the_layer_when_the_iteration_changes (void **state)
{
  open_flame ();
  g_autoptr (TdFlame) flame = new_flame ();
  gint64 number = td_session_get_moment (ui_test_session ()).iteration;
  point ("opened", find_layer (flame, TD_LANE_BACKWARD));
  td_session_set_moment (ui_test_session (), number - 1, 0);
  ui_test_settle ();
  g_autofree char *end = g_strdup_printf ("of iteration %" G_GINT64_FORMAT " · ", number - 1);
  assert_contains (title (), arguments[1]);
  assert_contains (title (), end);
}

/* It is of the whole iteration: steps in it leave the picture alone. */
static void
flame__is_kept_within_an_iteration (void **state)
{
  open_flame ();
  gint64 number = td_session_get_moment (ui_test_session ()).iteration;
  td_session_set_moment (ui_test_session (), number, 0);
  ui_test_settle ();
  g_autoptr (TdScene) scene = td_scene_ref (td_scene_view_get_scene (view ()));
  for (gint event = 1; event < 4; event++)
    {
      td_session_set_moment (ui_test_session (), number, event);
      ui_test_settle ();
      assert_ptr_equal (td_scene_view_get_scene (view ()), scene);
    }
  g_autoptr (TdFlame) flame = new_flame ();
  td_session_select (ui_test_session (), flame->nodes[find_layer (flame, TD_LANE_FORWARD)].key);
  ui_test_settle ();
  g_autoptr (TdScene) selected = td_scene_ref (td_scene_view_get_scene (view ()));
  assert_ptr_not_equal (selected, scene);
  td_session_set_moment (ui_test_session (), number - 1, 0);
  ui_test_settle ();
  assert_ptr_not_equal (td_scene_view_get_scene (view ()), selected);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (flame__is_what_the_whole_iteration_cost),
    ui_test (flame__by_time_has_other_widths),
    ui_test (flame__click_selects_the_layer_everywhere),
    ui_test (flame__shows_what_is_selected_elsewhere),
    ui_test (flame__rings_what_is_hovered_elsewhere),
    ui_test (flame__double_click_zooms_into_a_layer_and_out_of_the_top),
    ui_test (flame__is_walked_by_keys),
    ui_test (flame__return_on_an_operation_goes_to_it),
    ui_test (flame__escape_goes_out_one_by_one),
    ui_test (flame__is_kept_within_an_iteration),
    ui_test (flame__stays_in_the_layer_when_the_iteration_changes),
  };
  ui_test_init (&argc, &argv);
  if (argc < 3)
    {
      fprintf (stderr, "usage: test-flame-page PROGRAM LAYER [NAME=VALUE ...]\n");
      return 2;
    }
  arguments = argv + 1;
  return cmocka_run_group_tests (tests, NULL, NULL);
}
