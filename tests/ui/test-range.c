/* The range of iterations on a program of real size: drawn with Shift on the strip, set by
 * keys, said by a chip, and kept to by every panel over the run.
 *
 *     test-range PROGRAM [NAME=VALUE ...]
 *
 * The program runs 24 iterations.
 *
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <gdk/x11/gdkx.h>
#include <string.h>

#define N_ITERATIONS 24

static char **arguments; /* program, its arguments */
static char *tape;

static void
open_recording (void)
{
  if (!tape)
    {
      g_autofree char *file = g_strdup_printf ("tests/ui/range-%s.tdtape", arguments[0]);
      tape = g_strdup (td_test_build (file));
      ui_test_record_life (tape, arguments, (const char *const[]){ "--level", "stats", NULL });
    }
  ui_test_resize (1440, 900);
  ui_test_open (tape);
  ui_test_wait_for_layout ();
}

static void
assert_range (gint64 first, gint64 end)
{
  TdRange range = td_session_get_range (ui_test_session ());
  assert_int_equal (range.first, first);
  assert_int_equal (range.end, end);
}

static TdSceneView *
strip (void)
{
  return TD_SCENE_VIEW (ui_test_named ("iterations-strip"));
}

static double
place_of (TdSceneView *view, double iteration)
{
  const TdSceneAxes *axes = td_scene_axes (td_scene_view_get_scene (view));
  return axes->box.x + axes->box.width * (iteration - axes->x0) / (axes->x1 - axes->x0);
}

static void
draw_range (TdSceneView *view, double from, double to)
{
  g_signal_emit_by_name (view, "spanned", place_of (view, from), place_of (view, to));
  ui_test_settle ();
}

static const char *
chip_text (void)
{
  GtkWidget *chip = ui_test_named ("range-chip");
  if (!gtk_widget_get_mapped (chip))
    return "";
  GtkWidget *box = gtk_button_get_child (GTK_BUTTON (chip));
  return gtk_label_get_text (GTK_LABEL (gtk_widget_get_first_child (box)));
}

/* ---- setting it ---- */

static void
range__is_drawn_on_the_strip_in_either_direction (void **state)
{
  open_recording ();
  assert_string_equal (chip_text (), "");
  TdMoment before = td_session_get_moment (ui_test_session ());
  draw_range (strip (), 4.5, 10.5);
  assert_range (4, 11);
  assert_string_equal (chip_text (), "Iterations 4 to 10");
  draw_range (strip (), 12.5, 7.5);
  assert_range (7, 13);
  TdMoment after = td_session_get_moment (ui_test_session ());
  assert_true (before.iteration == after.iteration && before.event == after.event);
}

static void
range__chip_shows_the_whole_run_again (void **state)
{
  open_recording ();
  draw_range (strip (), 4.5, 10.5);
  g_signal_emit_by_name (ui_test_named ("range-chip"), "clicked");
  ui_test_settle ();
  assert_range (0, 0);
  assert_string_equal (chip_text (), "");
}

static void
range__is_set_from_and_to_the_playhead (void **state)
{
  open_recording ();
  td_session_set_moment (ui_test_session (), 6, 0);
  ui_test_do ("range-from-here", NULL);
  assert_range (6, N_ITERATIONS);
  td_session_set_moment (ui_test_session (), 15, 0);
  ui_test_do ("range-to-here", NULL);
  assert_range (6, 16);
  td_session_set_moment (ui_test_session (), 20, 0);
  ui_test_do ("range-from-here", NULL); /* after its end: up to the run's */
  assert_range (20, N_ITERATIONS);
  td_session_set_moment (ui_test_session (), 2, 0);
  ui_test_do ("range-to-here", NULL);
  assert_range (0, 3);
  ui_test_do ("clear-range", NULL);
  assert_range (0, 0);
}

static void
range__that_is_none_changes_nothing (void **state)
{
  static const char *const none[] = { "x", "9..3", "5", "5..", "-1..4" };
  open_recording ();
  ui_test_do ("range", "5..9");
  for (guint i = 0; i < G_N_ELEMENTS (none); i++)
    {
      ui_test_do ("range", none[i]);
      assert_range (5, 10);
    }
  ui_test_do ("range", "20..4000");
  assert_range (20, N_ITERATIONS);
  ui_test_do ("range", "0..4000"); /* all there is */
  assert_range (0, 0);
}

static void
range__is_the_recordings_own (void **state)
{
  open_recording ();
  ui_test_do ("range", "5..9");
  ui_test_settle ();
  assert_string_equal (chip_text (), "Iterations 5 to 9");
  ui_test_open_sample (NULL);
  assert_range (0, 0);
  assert_string_equal (chip_text (), "");
}

/* ---- drawing it with the pointer ---- */

/* As if it had been done by hand; the place is one of the view. */
static void
do_by_hand (GtkWidget *view, double x, const char *deeds)
{
  GtkWidget *window = GTK_WIDGET (ui_test_window ());
  GdkSurface *surface = gtk_native_get_surface (GTK_NATIVE (window));
  double left, top, at_x, at_y;
  gtk_native_get_surface_transform (GTK_NATIVE (window), &left, &top);
  gtk_widget_translate_coordinates (view, window, x, gtk_widget_get_height (view) / 2.0, &at_x,
                                    &at_y);
  g_autofree char *line = g_strdup_printf ("xdotool mousemove --window %lu %d %d %s",
                                           (gulong)gdk_x11_surface_get_xid (surface),
                                           (int)(at_x + left), (int)(at_y + top), deeds);
  int status = -1;
  assert_true (g_spawn_command_line_sync (line, NULL, NULL, &status, NULL));
  assert_int_equal (status, 0);
}

static gboolean
can_do_by_hand (void)
{
  g_autofree char *xdotool = g_find_program_in_path ("xdotool");
  return xdotool && GDK_IS_X11_DISPLAY (gdk_display_get_default ());
}

static void
count_update (GtkGestureDrag *drag, double dx, double dy, guint *n)
{
  ++*n;
}

static void
count_change (TdSession *session, guint *n)
{
  ++*n;
}

/* Count the motions of drags on the view. */
static void
watch_drags (GtkWidget *view, guint *n)
{
  g_autoptr (GListModel) all = gtk_widget_observe_controllers (view);
  for (guint i = 0; i < g_list_model_get_n_items (all); i++)
    {
      g_autoptr (GtkEventController) one = g_list_model_get_item (all, i);
      if (GTK_IS_GESTURE_DRAG (one))
        g_signal_connect (one, "drag-update", G_CALLBACK (count_update), n);
    }
}

static gboolean
is_not_zero (gpointer n)
{
  return *(guint *)n > 0;
}

/* A picture of the window, as a file. */
static GBytes *
dup_picture (const char *name)
{
  char *contents;
  gsize length;
  ui_test_save_picture (name);
  g_autofree char *folder = g_strdup (td_test_build ("tests/ui/pictures"));
  g_autofree char *path = g_build_filename (folder, name, NULL);
  assert_true (g_file_get_contents (path, &contents, &length, NULL));
  return g_bytes_new_take (contents, length);
}

/* What is drawn is seen at once; the panels are narrowed once, at its end. */
static void
range__is_a_band_until_the_button_is_let_go (void **state)
{
  guint n_motions = 0, n_ranges = 0;
  if (!can_do_by_hand ())
    skip ();
  open_recording ();
  GtkWidget *view = GTK_WIDGET (strip ());
  watch_drags (view, &n_motions);
  g_signal_connect (ui_test_session (), "range-changed", G_CALLBACK (count_change), &n_ranges);
  do_by_hand (view, place_of (strip (), 4.5), "keydown Shift_L mousedown 1");
  for (guint i = 5; i <= 10; i++)
    {
      n_motions = 0;
      do_by_hand (view, place_of (strip (), i + 0.5), "");
      ui_test_wait ("a motion", is_not_zero, &n_motions);
      ui_test_settle ();
      assert_int_equal (n_ranges, 0);
    }
  g_autoptr (GBytes) wide = dup_picture ("range-band.png");
  do_by_hand (view, place_of (strip (), 6.5), "");
  ui_test_settle ();
  g_autoptr (GBytes) narrow = dup_picture ("range-band-narrow.png");
  assert_false (g_bytes_equal (wide, narrow));
  do_by_hand (view, place_of (strip (), 10.5), "mouseup 1 keyup Shift_L");
  ui_test_wait ("a range", is_not_zero, &n_ranges);
  ui_test_settle ();
  assert_range (4, 11);
  assert_int_equal (n_ranges, 1);
}

/* On a picture that knows no ranges Shift means nothing. */
static void
range__is_not_drawn_where_there_is_none (void **state)
{
  guint n_moments = 0;
  if (!can_do_by_hand ())
    skip ();
  open_recording ();
  td_session_set_moment (ui_test_session (), 5, 2);
  ui_test_settle ();
  TdSceneView *events = TD_SCENE_VIEW (ui_test_named ("events-strip"));
  g_signal_connect (ui_test_session (), "moment-changed", G_CALLBACK (count_change),
                    &n_moments);
  do_by_hand (GTK_WIDGET (events), place_of (events, 40.5),
              "keydown Shift_L mousedown 1 mouseup 1 keyup Shift_L");
  ui_test_wait ("a moment", is_not_zero, &n_moments);
  ui_test_settle ();
  assert_int_equal (td_session_get_moment (ui_test_session ()).iteration, 5);
  assert_in_range (td_session_get_moment (ui_test_session ()).event, 39, 41);
  assert_range (0, 0);
}

/* ---- zoom of the strip ---- */

static void
assert_strip (double first, double end)
{
  const TdSceneAxes *axes = td_scene_axes (td_scene_view_get_scene (strip ()));
  assert_float_equal (axes->x0, first, 0);
  assert_float_equal (axes->x1, end, 0);
}

static void
turn_wheel (double iteration, double delta)
{
  gboolean taken = FALSE;
  g_signal_emit_by_name (strip (), "scrolled", place_of (strip (), iteration), delta, &taken);
  assert_true (taken);
  ui_test_settle ();
}

/* What is under the pointer stays there, to an iteration. */
static void
strip__zooms_at_the_pointer_and_back (void **state)
{
  open_recording ();
  double before = place_of (strip (), 11.0);
  assert_strip (0, N_ITERATIONS);
  turn_wheel (11.0, -1);
  assert_strip (2, 21); /* 19 of 24 */
  turn_wheel (11.0, -1);
  assert_strip (4, 19);
  double one = place_of (strip (), 12.0) - place_of (strip (), 11.0);
  assert_true (place_of (strip (), 11.0) > before - one
               && place_of (strip (), 11.0) < before + one);
  for (guint i = 0; i < 20; i++)
    turn_wheel (11.0, -1);
  const TdSceneAxes *axes = td_scene_axes (td_scene_view_get_scene (strip ()));
  assert_float_equal (axes->x1 - axes->x0, 8, 0);
  for (guint i = 0; i < 20; i++)
    turn_wheel (11.0, 1);
  assert_strip (0, N_ITERATIONS);
}

static void
strip__fits_by_a_double_click_and_goes_along_with_the_playhead (void **state)
{
  open_recording ();
  td_session_set_moment (ui_test_session (), 3, 0);
  turn_wheel (3.0, -4);
  const TdSceneAxes *axes = td_scene_axes (td_scene_view_get_scene (strip ()));
  double n = axes->x1 - axes->x0;
  assert_true (n < N_ITERATIONS && axes->x1 <= 20);
  td_session_set_moment (ui_test_session (), 20, 0);
  ui_test_settle ();
  assert_strip (21 - n, 21);
  td_session_set_moment (ui_test_session (), 1, 0);
  ui_test_settle ();
  assert_strip (1, 1 + n);
  g_signal_emit_by_name (strip (), "opened", NULL, 5.0, 5.0);
  ui_test_settle ();
  assert_strip (0, N_ITERATIONS);
}

/* What was zoomed to is looked at until the playhead moves, whatever else does. */
static void
strip__stays_where_it_was_zoomed_to (void **state)
{
  open_recording ();
  td_session_set_moment (ui_test_session (), 3, 0);
  ui_test_settle ();
  for (guint i = 0; i < 3; i++)
    turn_wheel (20.0, -4);
  const TdSceneAxes *axes = td_scene_axes (td_scene_view_get_scene (strip ()));
  double first = axes->x0, end = axes->x1;
  assert_true (first > 3);
  ui_test_do ("range", "5..16");
  ui_test_settle ();
  assert_strip (first, end);
  g_signal_emit_by_name (ui_test_session (), "iterations-changed");
  ui_test_settle ();
  assert_strip (first, end);
  td_session_set_moment (ui_test_session (), 3, 1); /* an event: this strip is of iterations */
  ui_test_settle ();
  assert_strip (first, end);
  td_session_set_moment (ui_test_session (), 4, 1);
  ui_test_settle ();
  assert_strip (4, 4 + end - first);
}

static gboolean
walk (TdSceneView *view, TdSceneWay way)
{
  gboolean taken = FALSE;
  g_signal_emit_by_name (view, "walked", way, &taken);
  ui_test_settle ();
  return taken;
}

/* As by the wheel, without a pointer: at the playhead, and from there by quarters. */
static void
strip__is_zoomed_and_moved_by_keys (void **state)
{
  open_recording ();
  td_session_set_moment (ui_test_session (), 11, 40);
  ui_test_settle ();
  assert_false (walk (strip (), TD_SCENE_LEFT)); /* all is on show */
  assert_false (walk (strip (), TD_SCENE_OUT));
  assert_true (walk (strip (), TD_SCENE_LARGER));
  assert_strip (2, 21);
  assert_true (walk (strip (), TD_SCENE_LARGER));
  assert_strip (4, 19);
  assert_true (walk (strip (), TD_SCENE_RIGHT));
  assert_strip (7, 22);
  assert_true (walk (strip (), TD_SCENE_RIGHT));
  assert_strip (9, 24);
  assert_true (walk (strip (), TD_SCENE_LEFT));
  assert_strip (6, 21);
  assert_true (walk (strip (), TD_SCENE_SMALLER));
  assert_strip (5, 24);
  assert_true (walk (strip (), TD_SCENE_OUT));
  assert_strip (0, N_ITERATIONS);
  TdSceneView *events = TD_SCENE_VIEW (ui_test_named ("events-strip"));
  double all = td_scene_axes (td_scene_view_get_scene (events))->x1;
  for (guint i = 0; i < 8; i++)
    assert_true (walk (events, TD_SCENE_LARGER));
  const TdSceneAxes *axes = td_scene_axes (td_scene_view_get_scene (events));
  assert_true (axes->x1 - axes->x0 < all / 4 && axes->x0 <= 40 && axes->x1 > 40);
  assert_true (walk (events, TD_SCENE_OUT));
  assert_float_equal (td_scene_axes (td_scene_view_get_scene (events))->x1, all, 0);
}

static gboolean
is_zoomed (gpointer unused)
{
  return td_scene_axes (td_scene_view_get_scene (strip ()))->x0 > 0;
}

static gboolean
is_fitted (gpointer unused)
{
  return !is_zoomed (NULL);
}

/* Keys of the keyboard, where the strip has it. */
static void
strip__takes_its_keys_from_the_keyboard (void **state)
{
  if (!can_do_by_hand ())
    skip ();
  open_recording ();
  td_session_set_moment (ui_test_session (), 11, 40);
  ui_test_settle ();
  do_by_hand (GTK_WIDGET (strip ()), place_of (strip (), 11.5), "click 1");
  GdkSurface *surface = gtk_native_get_surface (GTK_NATIVE (ui_test_window ()));
  g_autofree char *focus = g_strdup_printf ("windowfocus --sync %lu key plus",
                                            (gulong)gdk_x11_surface_get_xid (surface));
  do_by_hand (GTK_WIDGET (strip ()), place_of (strip (), 11.5), focus);
  ui_test_wait ("a zoomed strip", is_zoomed, NULL);
  do_by_hand (GTK_WIDGET (strip ()), place_of (strip (), 11.5), "key BackSpace");
  ui_test_wait ("all of it", is_fitted, NULL);
}

/* The events of the iteration alike, and what is pressed there is the event that is seen there.
 */
static void
strip__of_events_zooms_too (void **state)
{
  open_recording ();
  TdSceneView *events = TD_SCENE_VIEW (ui_test_named ("events-strip"));
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  double n = td_iteration_get_n_events (it);
  gboolean taken = FALSE;
  td_session_set_moment (ui_test_session (), 5, 40);
  ui_test_settle ();
  for (guint i = 0; i < 3; i++)
    {
      g_signal_emit_by_name (events, "scrolled", place_of (events, 40.4), -4.0, &taken);
      ui_test_settle ();
    }
  assert_true (taken);
  const TdSceneAxes *axes = td_scene_axes (td_scene_view_get_scene (events));
  double first = axes->x0, end = axes->x1;
  assert_true (end - first < n / 8 && first <= 40 && end > 40);
  double x = place_of (events, first + 2.5);
  g_signal_emit_by_name (events, "pressed", NULL, x, 10.0);
  ui_test_settle ();
  assert_moment (5, (gint)first + 2);
  td_session_set_moment (ui_test_session (), 5, (gint)n - 1);
  ui_test_settle ();
  axes = td_scene_axes (td_scene_view_get_scene (events));
  assert_float_equal (axes->x1, n, 0);
  assert_float_equal (axes->x1 - axes->x0, end - first, 0);
  g_signal_emit_by_name (events, "opened", NULL, 5.0, 5.0);
  ui_test_settle ();
  axes = td_scene_axes (td_scene_view_get_scene (events));
  assert_float_equal (axes->x0, 0, 0);
}

/* ---- keeping to it ---- */

static void
assert_axis (TdSceneView *view, double first, double end)
{
  const TdSceneAxes *axes = td_scene_axes (td_scene_view_get_scene (view));
  assert_non_null (axes);
  assert_float_equal (axes->x0, first, 0);
  assert_float_equal (axes->x1, end, 0);
}

/* The iterations that the columns of a heat map stand for. */
static void
assert_columns (TdSceneView *view, gint64 first, gint64 end)
{
  TdScene *scene = td_scene_view_get_scene (view);
  gint64 least = G_MAXINT64, most = -1;
  TdSceneHit hit;
  for (double x = 0; x < td_scene_width (scene); x += 1)
    if (td_scene_hit (scene, x, td_scene_height (scene) / 2, 0, &hit) && hit.tag == TD_TAG_CELL
        && hit.number >= 0)
      {
        least = MIN (least, hit.number);
        most = MAX (most, hit.number);
      }
  assert_int_equal (least, first);
  assert_int_equal (most, end - 1);
}

static void
look_at_panels (gint64 first, gint64 end)
{
  td_workspace_show_page (ui_test_workspace (), "iterations");
  ui_test_settle ();
  assert_int_equal (
      td_iterations_page_get_n_rows (td_workspace_get_iterations (ui_test_workspace ())),
      end - first);
  ui_test_do ("show-page", "debug");
  assert_axis (ui_test_panel_scene_view ("memory", "iterations"), (double)first, (double)end);
  assert_columns (ui_test_panel_scene_view ("gradients", "heatmap"), first, end);
  ui_test_do ("show-page", "schedule");
  g_autofree char *advice = td_scene_dump (
      td_scene_view_get_scene (ui_test_panel_scene_view ("schedule", "advice")));
  g_autofree char *all = g_strdup_printf ("%d iterations", (int)(end - first));
  assert_contains (advice, all);
  ui_test_do ("show-page", "curves");
  ui_test_settle ();
  assert_axis (TD_SCENE_VIEW (ui_test_panel_page ("curves", "curves")), (double)first,
               (double)end);
  assert_axis (strip (), 0, N_ITERATIONS); /* which always shows where it is */
}

static void
range__is_what_every_panel_over_the_run_shows (void **state)
{
  open_recording ();
  look_at_panels (0, N_ITERATIONS);
  ui_test_do ("range", "5..16");
  ui_test_settle ();
  look_at_panels (5, 17);
  ui_test_save_picture ("range.png");
  draw_range (TD_SCENE_VIEW (ui_test_panel_page ("curves", "curves")), 8.5, 11.5);
  look_at_panels (8, 12);
  ui_test_do ("clear-range", NULL);
  ui_test_settle ();
  look_at_panels (0, N_ITERATIONS);
}

/* The playhead may stand outside: it goes where it is sent, the range stays. */
static void
range__does_not_hold_the_playhead (void **state)
{
  open_recording ();
  ui_test_do ("range", "5..9");
  td_session_set_moment (ui_test_session (), 20, 3);
  ui_test_settle ();
  assert_moment (20, 3);
  assert_range (5, 10);
  td_session_set_moment (ui_test_session (), 7, 3);
  ui_test_settle ();
  assert_moment (7, 3);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (range__is_drawn_on_the_strip_in_either_direction),
    ui_test (range__chip_shows_the_whole_run_again),
    ui_test (range__is_set_from_and_to_the_playhead),
    ui_test (range__that_is_none_changes_nothing),
    ui_test (range__is_the_recordings_own),
    ui_test (range__is_a_band_until_the_button_is_let_go),
    ui_test (range__is_not_drawn_where_there_is_none),
    ui_test (strip__zooms_at_the_pointer_and_back),
    ui_test (strip__fits_by_a_double_click_and_goes_along_with_the_playhead),
    ui_test (strip__stays_where_it_was_zoomed_to),
    ui_test (strip__is_zoomed_and_moved_by_keys),
    ui_test (strip__takes_its_keys_from_the_keyboard),
    ui_test (strip__of_events_zooms_too),
    ui_test (range__is_what_every_panel_over_the_run_shows),
    ui_test (range__does_not_hold_the_playhead),
  };
  ui_test_init (&argc, &argv);
  if (argc < 2)
    {
      fprintf (stderr, "usage: test-range PROGRAM [NAME=VALUE ...]\n");
      return 2;
    }
  arguments = argv + 1;
  return cmocka_run_group_tests (tests, NULL, NULL);
}
