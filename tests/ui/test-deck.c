/* The deck: its numbers can be read, however long they are.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include "td-synthetic-tape.h"

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

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (deck__shows_numbers_of_seven_digits_whole),
    ui_test (deck__has_no_more_room_than_its_numbers_need),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
