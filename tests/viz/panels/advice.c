/*
 * The advice as a picture: the sentence, the functions, and what there is no room for.
 *
 * SPDX-License-Identifier: MIT
 */
#include <glib.h>
#include <string.h>

#include "lenet-tape.h"
#include "schedule/td-advice-scene.h"
#include "td-test.h"

static TdStaticness *
advice_of (gint extra_relu_at)
{
  LenetOptions o = LENET_DEFAULT;
  const char *path = td_test_tmp ("advice.tdtape");
  char error[160];

  o.extra_relu_at = extra_relu_at;
  lenet_tape_write (path, &o);
  TdTapeReader *reader = td_tape_reader_open (path, error, sizeof error);
  TdStaticness *advice = td_staticness_new (reader, NULL);
  td_tape_reader_free (reader);
  return advice;
}

static char *
dump_of (const TdStaticness *advice, double width, double height)
{
  TdPanelView view = { .width = width, .height = height, .event = -1, .head = -1 };
  g_autoptr (TdScene) scene = td_advice_scene (advice, &view);

  return td_scene_dump (scene);
}

static void
advice__begins_with_its_sentence (void **state)
{
  g_autoptr (TdStaticness) advice = advice_of (-1);
  g_autofree char *dump = dump_of (advice, 2000, 300);

  assert_contains (dump, advice->sentence);
}

static void
advice__has_a_row_for_each_function (void **state)
{
  g_autoptr (TdStaticness) advice = advice_of (20);
  g_autofree char *dump = dump_of (advice, 1600, 0);

  assert_true (advice->n_functions >= 3);
  for (guint i = 0; i < advice->n_functions; i++)
    {
      g_autofree char *text = td_staticness_dup_function (advice, &advice->functions[i]);

      assert_contains (dump, text);
    }
  assert_null (strstr (dump, " more"));
}

static void
advice__counts_nothing_that_did_not_run (void **state)
{
  g_autoptr (TdStaticness) advice = advice_of (20);
  TdStaticFunction function = advice->functions[0];
  g_autofree char *some = td_staticness_dup_function (advice, &function);
  function.n_ops = 0;
  g_autofree char *none = td_staticness_dup_function (advice, &function);

  assert_contains (some, " operations");
  assert_null (strstr (none, " of 0 operations"));
}

static void
advice__says_how_much_there_is_no_room_for (void **state)
{
  g_autoptr (TdStaticness) advice = advice_of (20);
  g_autofree char *dump = dump_of (advice, 480, 130);

  assert_contains (dump, "… and ");
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (advice__begins_with_its_sentence),
    td_test (advice__has_a_row_for_each_function),
    td_test (advice__counts_nothing_that_did_not_run),
    td_test (advice__says_how_much_there_is_no_room_for),
  };

  return cmocka_run_group_tests_name ("advice", tests, NULL, NULL);
}
