/* The deck: its numbers can be read, however long they are, and a step does no more than it
 * must. SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <string.h>

#include "td-synthetic-tape.h"
#include "window/td-window-private.h"

#define NUMBER 1234567 /* of the one iteration */

static void
open_long_numbers (guint n_events)
{
  char error[160];
  TdTapeWriterOptions options = { .size = sizeof options, .path = td_test_tmp ("long.tdtape") };
  TdTapeWriter *w = td_tape_writer_new (&options, error, sizeof error);
  assert_non_null (w);
  g_autoptr (TdIteration) it = td_synthetic_residual (NUMBER, n_events, FALSE);
  td_synthetic_write (w, it);
  td_tape_writer_free (w);
  ui_test_open (td_test_tmp ("long.tdtape"));
}

static GtkWidget *
text_of (GtkWidget *spin)
{
  GtkWidget *child = gtk_widget_get_first_child (spin);
  while (child && !GTK_IS_TEXT (child))
    child = gtk_widget_get_next_sibling (child);
  assert_non_null (child);
  return child;
}

/* A number is drawn whole: its entry is at least as wide. */
static void
assert_whole (const char *name, gint64 number)
{
  GtkWidget *spin = ui_test_named (name), *text = text_of (spin);
  int width;
  g_autofree char *expected = g_strdup_printf ("%" G_GINT64_FORMAT, number);
  assert_string_equal (gtk_editable_get_text (GTK_EDITABLE (spin)), expected);
  g_autoptr (PangoLayout) layout = gtk_widget_create_pango_layout (text, expected);
  pango_layout_get_pixel_size (layout, &width, NULL);
  if (gtk_widget_get_width (text) < width)
    fail_msg ("%s has room for %d of the %d pixels of %s", name, gtk_widget_get_width (text),
              width, expected);
}

static void
deck__shows_numbers_of_seven_digits_whole (void **state)
{
  static const int sizes[][2] = { { 1440, 900 }, { 900, 600 } };
  open_long_numbers (1000020);
  ui_test_do ("last-event", NULL);
  const TdMoment last = td_session_get_moment (ui_test_session ());
  assert_in_range (last.event, 1000000, 9999999);
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++)
    {
      ui_test_resize (sizes[i][0], sizes[i][1]);
      ui_test_settle ();
      assert_true (gtk_widget_get_width (GTK_WIDGET (ui_test_window ())) <= sizes[i][0]);
      assert_whole ("deck-iteration", NUMBER);
      assert_whole ("deck-event", last.event);
    }
}

/* Before the first event nothing has run: that is no number, and one can go on from it. */
static void
deck__says_before_the_first_event_without_a_number (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("first-event", NULL);
  GtkSpinButton *spin = GTK_SPIN_BUTTON (ui_test_named ("deck-event"));
  gtk_spin_button_set_value (spin, -1);
  ui_test_settle ();
  assert_int_equal (td_session_get_moment (ui_test_session ()).event, -1);
  assert_string_equal (gtk_editable_get_text (GTK_EDITABLE (spin)), "-");
  gtk_spin_button_update (spin); /* as when the keyboard leaves it */
  assert_int_equal (td_session_get_moment (ui_test_session ()).event, -1);
  gtk_spin_button_spin (spin, GTK_SPIN_STEP_FORWARD, 1);
  assert_int_equal (td_session_get_moment (ui_test_session ()).event, 0);
  assert_string_equal (gtk_editable_get_text (GTK_EDITABLE (spin)), "0");
}

/* What another tape needed is no reason for gaps in this one's. */
static void
deck__has_no_more_room_than_its_numbers_need (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_settle ();
  const int before = gtk_widget_get_width (ui_test_named ("deck-iteration"));
  ui_test_new_window ();
  open_long_numbers (11);
  ui_test_settle ();
  assert_true (gtk_widget_get_width (ui_test_named ("deck-iteration")) > before);
  ui_test_open_sample (NULL);
  ui_test_settle ();
  assert_int_equal (gtk_widget_get_width (ui_test_named ("deck-iteration")), before);
}

/* ---- steps ---- */

static void
count_same (GtkWidget *widget, GParamSpec *pspec, guint *n_same)
{
  const char *before = g_object_get_data (G_OBJECT (widget), "test-tip");
  const char *now = gtk_widget_get_tooltip_text (widget);
  *n_same += g_strcmp0 (before, now) == 0;
  g_object_set_data_full (G_OBJECT (widget), "test-tip", g_strdup (now), g_free);
}

static guint
watch_tips (GtkWidget *widget, guint *n_same)
{
  guint n = 1;
  g_object_set_data_full (G_OBJECT (widget), "test-tip",
                          g_strdup (gtk_widget_get_tooltip_text (widget)), g_free);
  g_signal_connect (widget, "notify::tooltip-text", G_CALLBACK (count_same), n_same);
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child;
       child = gtk_widget_get_next_sibling (child))
    n += watch_tips (child, n_same);
  return n;
}

/* For each GTK asks the display server where the pointer is: a list of 200 rows did so in every
 * step, which took half of its time. */
static void
step__gives_no_widget_the_tip_that_it_has (void **state)
{
  guint n_same = 0;
  ui_test_open_sample (NULL);
  ui_test_do ("show-page", "outline");
  assert_in_range (watch_tips (GTK_WIDGET (ui_test_window ()), &n_same), 200, 100000);
  for (int i = 0; i < 4; i++)
    ui_test_do (i < 2 ? "reverse-step-op" : "step-op", NULL);
  assert_int_equal (n_same, 0);
}

static GtkWidget *
find_toast (GtkWidget *widget)
{
  GtkWidget *found = strcmp (gtk_widget_get_css_name (widget), "toast") == 0 ? widget : NULL;
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child && !found;
       child = gtk_widget_get_next_sibling (child))
    found = find_toast (child);
  return found;
}

/* A long message, wherever it is shown, leaves the scrubber free. */
static void
assert_toast_is_above (const char *picture)
{
  GtkWidget *window = GTK_WIDGET (ui_test_window ()), *shown;
  graphene_rect_t toast, deck;
  td__window_toast (ui_test_window (),
                    "More than a million values: save them, or copy a slice");
  ui_test_settle ();
  shown = find_toast (window);
  assert_non_null (shown);
  assert_true (gtk_widget_get_mapped (shown));
  assert_true (gtk_widget_compute_bounds (shown, window, &toast));
  assert_true (gtk_widget_compute_bounds (ui_test_named ("deck"), window, &deck));
  assert_true (toast.size.width > 0);
  assert_true (toast.origin.y + toast.size.height <= deck.origin.y);
  ui_test_save_picture (picture);
}

static void
deck__is_covered_by_no_toast (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_resize (1440, 900);
  assert_toast_is_above ("toast.png");
  ui_test_do ("show-page", "compare");
  assert_toast_is_above ("toast-compare.png");
  ui_test_resize (900, 600);
  assert_toast_is_above ("toast-small.png");
  g_object_set (gtk_settings_get_default (), "gtk-xft-dpi", 192 * 1024, NULL);
  ui_test_settle ();
  assert_toast_is_above ("toast-text-200.png");
  g_object_set (gtk_settings_get_default (), "gtk-xft-dpi", 96 * 1024, NULL);
}

/* Nothing of the page lies right of the window at its least size, with text of 200 %. */
static void
window__of_the_least_size_holds_large_text (void **state)
{
  static const char *const pages[] = { "debug", "memory", "compare" };
  open_long_numbers (1200);
  ui_test_resize (900, 600);
  g_object_set (gtk_settings_get_default (), "gtk-xft-dpi", 192 * 1024, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (pages); i++)
    {
      GtkWidget *deck = ui_test_named ("deck");
      g_autofree char *picture = g_strdup_printf ("large-text-%s.png", pages[i]);
      ui_test_do ("show-page", pages[i]);
      ui_test_settle ();
      ui_test_save_picture (picture);
      assert_in_range (gtk_widget_get_width (deck), 100,
                       gtk_widget_get_width (GTK_WIDGET (ui_test_window ()->toasts)));
    }
  g_object_set (gtk_settings_get_default (), "gtk-xft-dpi", 96 * 1024, NULL);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (deck__shows_numbers_of_seven_digits_whole),
    ui_test (step__gives_no_widget_the_tip_that_it_has),
    ui_test (deck__says_before_the_first_event_without_a_number),
    ui_test (deck__has_no_more_room_than_its_numbers_need),
    ui_test (deck__is_covered_by_no_toast),
    ui_test (window__of_the_least_size_holds_large_text),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
