/*
 * The timeline's picture of what the host copies, from a tape whose times never change.
 *
 * SPDX-License-Identifier: MIT
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "lenet-tape.h"
#include "schedule/td-schedule.h"
#include "td-test.h"

/* Of the items whose lines in the dump begin with `kind` and hold `words`, one has this
 * tooltip. */
static void
assert_tooltip (TdScene *scene, const char *kind, const char *words, const char *expected)
{
  g_autofree char *shown = td_scene_dump (scene);
  g_auto (GStrv) lines = g_strsplit (shown, "\n", -1);
  double x, y, w, h;

  for (guint i = 0; lines[i]; i++)
    if (g_str_has_prefix (lines[i], kind) && strstr (lines[i], words)
        && sscanf (lines[i] + strlen (kind), "%lf %lf %lf %lf", &x, &y, &w, &h) == 4)
      {
        TdSceneHit hit = { 0 };

        if (td_scene_hit (scene, x + w / 2, y + h / 2, 0, &hit) && hit.tooltip
            && strcmp (hit.tooltip, expected) == 0)
          return;
      }
  fail_msg ("no %s with %s says: %s", kind, words, expected);
}

/* tests/golden/tape-1.2-copies.txt has them with their times.  Dots are where copies began,
 * bars as long as the host waited; what was copied before the iteration took none of its time.
 */
static void
timeline__shows_what_the_host_copies_and_waits_for (void **state)
{
  const char *path = td_test_source ("tests/golden/tape-1.2-copies.tdtape");
  TdPanelView view = { .width = 1600, .height = 400, .iteration = 1, .event = -1, .head = 1 };
  char error[160];
  TdTapeReader *reader = td_tape_reader_open (path, error, sizeof error);
  TdIteration *it;
  TdScene *scene;
  g_autofree char *shown = NULL;

  assert_non_null (reader);
  it = lenet_tape_load (reader, 1);
  scene = td_timeline_scene (it, &view);
  assert_tooltip (scene, "ellipse", "fill=communication",
                  "new: host to device 1 · 100 B · 438 ns of the host · before the iteration");
  assert_tooltip (scene, "ellipse", "fill=communication",
                  "read: device 1 to host · 4 B · the host waited 436 ns · model.c:10");
  assert_tooltip (scene, "rect", "fill=communication",
                  "read: device 1 to host · 4 B · the host waited 436 ns · model.c:10");
  shown = td_scene_dump (scene);
  assert_contains (shown, "ellipse 1160.5 "); /* 1121 of 1557 ns, 72 to 1588 */
  assert_contains (shown, "rect 1163.5 12.0 424.5 ");
  td_scene_unref (scene);
  td_iteration_unref (it);
  td_tape_reader_free (reader);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (timeline__shows_what_the_host_copies_and_waits_for),
  };

  return cmocka_run_group_tests_name ("timeline", tests, NULL, NULL);
}
