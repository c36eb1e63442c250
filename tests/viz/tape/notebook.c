/*
 * Notes and watches: what was written is there again, what is not ours is left alone.
 *
 * SPDX-License-Identifier: MIT
 */
#include <glib/gstdio.h>
#include <string.h>

#include "tape/td-notebook.h"
#include "td-synthetic.h"
#include "td-test.h"

static const guint8 uuid[16] = { 1, 2, 3, 4 };

static void
notebook__keeps_notes_in_order_of_moments (void **state)
{
  const char *path = td_test_tmp ("run.tdtape");
  g_autoptr (GError) error = NULL;
  g_autoptr (TdNotebook) first = td_notebook_new (path, uuid, &error);

  assert_non_null (first);
  assert_int_equal (td_notebook_get_n_notes (first), 0);
  assert_true (td_notebook_write (first, 20, 3, "later", &error));
  assert_true (td_notebook_write (first, 4, 9, " the loss jumps = here; why? ", &error));
  assert_true (td_notebook_write (first, 4, 2, "earlier\nin two lines", &error));
  g_autoptr (TdNotebook) again = td_notebook_new (path, uuid, &error);
  assert_int_equal (td_notebook_get_n_notes (again), 3);
  assert_string_equal (td_notebook_get_note (again, 0)->text, "earlier in two lines");
  assert_string_equal (td_notebook_get_note (again, 1)->text, "the loss jumps = here; why?");
  assert_int_equal (td_notebook_get_note (again, 2)->iteration, 20);
  assert_string_equal (td_notebook_find (again, 20, 3)->text, "later");
  assert_null (td_notebook_find (again, 20, 4));
}

static void
notebook__replaces_and_takes_away_a_note (void **state)
{
  const char *path = td_test_tmp ("run.tdtape");
  g_autoptr (TdNotebook) notebook = td_notebook_new (path, uuid, NULL);

  assert_true (td_notebook_write (notebook, 1, 1, "one", NULL));
  assert_true (td_notebook_write (notebook, 1, 1, "two", NULL));
  assert_int_equal (td_notebook_get_n_notes (notebook), 1);
  assert_string_equal (td_notebook_find (notebook, 1, 1)->text, "two");
  assert_true (td_notebook_write (notebook, 1, 1, "  ", NULL));
  assert_int_equal (td_notebook_get_n_notes (notebook), 0);
  g_autoptr (TdNotebook) again = td_notebook_new (path, uuid, NULL);
  assert_int_equal (td_notebook_get_n_notes (again), 0);
}

static void
notebook__keeps_watches (void **state)
{
  const char *path = td_test_tmp ("run.tdtape");
  g_autoptr (TdNotebook) notebook = td_notebook_new (path, uuid, NULL);
  const guint64 key = 0xfedcba9876543210u;

  assert_true (td_notebook_toggle_watch (notebook, key, "conv1/W", NULL));
  assert_true (td_notebook_toggle_watch (notebook, 7, "loss", NULL));
  assert_true (td_notebook_toggle_watch (notebook, 7, "", NULL));
  g_autoptr (TdNotebook) again = td_notebook_new (path, uuid, NULL);
  assert_int_equal (td_notebook_get_n_watches (again), 1);
  assert_true (td_notebook_get_watch (again, 0)->key == key);
  assert_string_equal (td_notebook_get_watch (again, 0)->name, "conv1/W");
  assert_false (td_notebook_is_watched (again, 7));
}

static void
notebook__of_another_recording_is_left_alone (void **state)
{
  const char *path = td_test_tmp ("run.tdtape");
  const guint8 other[16] = { 9 };
  g_autoptr (GError) error = NULL;
  g_autoptr (TdNotebook) notebook = td_notebook_new (path, uuid, NULL);

  assert_true (td_notebook_write (notebook, 1, 1, "mine", NULL));
  assert_null (td_notebook_new (path, other, &error));
  assert_contains (error->message, "run.tdnotes: the notes are of another recording");
  g_autoptr (TdNotebook) again = td_notebook_new (path, uuid, NULL);
  assert_string_equal (td_notebook_find (again, 1, 1)->text, "mine");
}

static void
notebook__says_in_one_line_what_is_wrong_with_its_file (void **state)
{
  static const char *const bad[]
      = { "\177ELF", "[recording\nuuid=", "[note 1]\niteration=1\n" };
  const char *path = td_test_tmp ("run.tdtape");

  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (GError) error = NULL;

      assert_true (g_file_set_contents (td_test_tmp ("run.tdnotes"), bad[i], -1, NULL));
      assert_null (td_notebook_new (path, uuid, &error));
      assert_contains (error->message, "run.tdnotes: ");
      assert_null (strchr (error->message, '\n'));
    }
}

static void
notebook__takes_no_harm_from_hostile_notes (void **state)
{
  GString *text
      = g_string_new ("[recording]\nuuid=01020304000000000000000000000000\n"
                      "[note 1]\niteration=-5\nevent=1\ntext=before the beginning\n"
                      "[note 2]\niteration=99999999999999999999\nevent=x\ntext=a\\nb\\x1b[31m\n"
                      "[watch 1]\nkey=zz\nname=none\n[note 3]\niteration=1\nevent=1\ntext=");
  for (int i = 0; i < 9000; i++)
    g_string_append_c (text, 'y');
  const char *path = td_test_tmp ("run.tdtape");
  g_autoptr (GError) error = NULL;

  assert_true (g_file_set_contents (td_test_tmp ("run.tdnotes"), text->str, -1, NULL));
  g_autoptr (TdNotebook) notebook = td_notebook_new (path, uuid, &error);
  assert_non_null (notebook);
  assert_int_equal (td_notebook_get_n_watches (notebook), 0);
  for (guint i = 0; i < td_notebook_get_n_notes (notebook); i++)
    {
      const TdNote *note = td_notebook_get_note (notebook, i);

      assert_true (note->iteration >= 0);
      assert_true (strlen (note->text) <= 4096);
      for (const char *p = note->text; *p; p++)
        assert_false (g_ascii_iscntrl (*p));
    }
  g_string_free (text, TRUE);
}

static void
notebook__stands_although_its_file_cannot_be_written (void **state)
{
  g_autofree char *path
      = g_build_filename (td_test_tmp ("missing"), "deep", "run.tdtape", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (TdNotebook) notebook = td_notebook_new (path, uuid, &error);

  assert_non_null (notebook);
  assert_false (td_notebook_write (notebook, 1, 1, "kept in memory", &error));
  assert_contains (error->message, "not kept: ");
  assert_string_equal (td_notebook_find (notebook, 1, 1)->text, "kept in memory");
}

static void
watch__says_shape_and_numbers_or_that_there_are_none (void **state)
{
  g_autoptr (TdIteration) iteration = td_synthetic_lenet (3);
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  guint64 key = t->events[0].key, parameter = 0;

  for (guint i = 0; i < t->n_vars && !parameter; i++)
    if (g_str_has_suffix (td_iteration_get_var_name (iteration, i), "/W"))
      parameter = t->vars[i].key;
  g_autofree char *text = td_watch_describe (iteration, key),
                  *name = td_watch_name (iteration, key),
                  *none = td_watch_describe (iteration, 12345),
                  *path = td_watch_name (iteration, parameter);
  assert_contains (text, "no numbers were recorded");
  assert_contains (text, "(64, 6");
  assert_string_equal (name, "convolution_2d 0");
  assert_string_equal (none, "not in this iteration");
  assert_null (td_watch_name (iteration, 12345));
  assert_contains (path, "/W");
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (notebook__keeps_notes_in_order_of_moments),
    td_test (notebook__replaces_and_takes_away_a_note),
    td_test (notebook__keeps_watches),
    td_test (notebook__of_another_recording_is_left_alone),
    td_test (notebook__says_in_one_line_what_is_wrong_with_its_file),
    td_test (notebook__takes_no_harm_from_hostile_notes),
    td_test (notebook__stands_although_its_file_cannot_be_written),
    td_test (watch__says_shape_and_numbers_or_that_there_are_none),
  };

  return cmocka_run_group_tests_name ("notebook", tests, NULL, NULL);
}
