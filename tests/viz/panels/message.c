/*
 * The message of a panel that has nothing to show.
 *
 * SPDX-License-Identifier: MIT */
#include <glib.h>
#include <string.h>

#include "scene/td-panel.h"
#include "td-test.h"

/* A message has as many lines as its words need, at whatever width, and none is cut. */
static void
panel__breaks_a_message_into_lines (void **state)
{
  static const char text[] = "Gradients are known by where an optimizer takes them, or not";

  for (double width = 120; width <= 900; width *= 2)
    {
      TdScene *scene
          = td_panel_message (&(TdPanelView){ .width = width, .height = 180 }, "No", text);
      g_autofree char *dump = td_scene_dump (scene);
      g_auto (GStrv) words = g_strsplit (text, " ", -1);
      guint n_lines = 0;

      for (const char *at = dump; (at = strstr (at, "text ")); at++)
        n_lines++;
      n_lines--; /* the title */
      assert_true (width < 400 ? n_lines > 1 : n_lines == 1);
      for (guint i = 0; words[i]; i++)
        assert_contains (dump, words[i]);
      assert_true (n_lines == 1 || !strstr (dump, text));
      td_scene_unref (scene);
    }
  (void)state;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (panel__breaks_a_message_into_lines),
  };

  return cmocka_run_group_tests_name ("panel-message", tests, NULL, NULL);
}
