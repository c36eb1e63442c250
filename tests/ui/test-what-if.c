/* What computing layers again would save, on the Memory page: the slider, its sentence and its
 * picture, for a GPT.
 *
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <string.h>

#include "memory/td-what-if.h"

static char *tape; /* recorded once for all tests */

static void
open_memory (void)
{
  char name[] = "l03-gpt", layers[] = "layers=4", last[] = "iterations=4";
  char *const program[] = { name, layers, last, NULL };
  if (!tape)
    {
      tape = g_strdup (td_test_build ("tests/ui/what-if.tdtape"));
      ui_test_record_life (tape, program, NULL);
    }
  ui_test_resize (1440, 1000);
  ui_test_open (tape);
  ui_test_do ("show-page", "memory");
  ui_test_settle ();
}

static const char *
sentence (void)
{
  return gtk_label_get_text (GTK_LABEL (ui_test_named ("what-if-sentence")));
}

static GtkRange *
slider (void)
{
  return GTK_RANGE (ui_test_named ("what-if-scale"));
}

static char *
dump (void)
{
  return td_scene_dump (td_scene_view_get_scene (TD_SCENE_VIEW (ui_test_named ("what-if"))));
}

/* What viz says of the iteration on show with the first n layers. */
static char *
dup_expected (guint n)
{
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  g_autoptr (TdWhatIf) w = td_what_if_new (it, NULL);
  assert_non_null (w);
  assert_int_equal (w->n_layers, 4);
  td_what_if_choose_first (w, n);
  return td_what_if_sentence (w);
}

static void
what_if__follows_the_slider (void **state)
{
  g_autofree char *none = NULL, *drawn = NULL;
  open_memory ();
  none = dump ();
  assert_non_null (strstr (sentence (), "Nothing is computed again"));
  assert_non_null (strstr (none, "Recorded"));
  for (guint n = 1; n <= 4; n++)
    {
      g_autofree char *expected = dup_expected (n), *now = NULL;
      gtk_range_set_value (slider (), n);
      ui_test_settle ();
      assert_string_equal (sentence (), expected);
      now = dump ();
      assert_string_not_equal (now, none);
    }
  assert_non_null (strstr (sentence (), " instead of "));
  gtk_range_set_value (slider (), 0);
  ui_test_settle ();
  drawn = dump ();
  assert_string_equal (drawn, none);
}

/* The slider stays, the numbers are those of the iteration. */
static void
what_if__is_of_the_iteration_at_the_playhead (void **state)
{
  open_memory ();
  gtk_range_set_value (slider (), 2);
  for (gint i = 0; i < 4; i++)
    {
      td_session_set_moment (ui_test_session (), i, 5);
      ui_test_settle ();
      g_autofree char *expected = dup_expected (2);
      assert_string_equal (sentence (), expected);
      assert_int_equal ((int)gtk_range_get_value (slider ()), 2);
    }
}

static void
what_if__says_why_there_is_nothing (void **state)
{
  char name[] = "l03-gpt", layers[] = "layers=2", last[] = "iterations=6", how[] = "static=1";
  char *const program[] = { name, layers, last, how, NULL };
  g_autofree char *replayed = g_strdup (td_test_build ("tests/ui/what-if-static.tdtape"));
  ui_test_record_life (replayed, program, NULL);
  ui_test_open (replayed);
  ui_test_do ("show-page", "memory");
  td_session_set_moment (ui_test_session (), 5, 5);
  ui_test_settle ();
  assert_non_null (strstr (sentence (), "A static schedule ran in this iteration"));
  assert_false (gtk_widget_is_sensitive (GTK_WIDGET (slider ())));
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (what_if__follows_the_slider),
    ui_test (what_if__is_of_the_iteration_at_the_playhead),
    ui_test (what_if__says_why_there_is_nothing),
  };

  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests_name ("what-if", tests, NULL, NULL);
}
