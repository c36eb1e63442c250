/* A recording of a program on a device, in the window: the device in the header, its memory in
 * every page of memory, its work in a lane of the timeline, copies marked.
 *
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <stdio.h>
#include <string.h>

#include "widgets/td-scene-view.h"
#include "window/td-window-private.h"

static gboolean
has_scene (gpointer view)
{
  return td_scene_view_get_scene (TD_SCENE_VIEW (view)) != NULL;
}

/* What a page of a panel shows. */
static TdScene *
scene_of (const char *panel, const char *page)
{
  if (strcmp (panel, "memory") != 0) /* which has a perspective of its own, too */
    {
      ui_test_do ("go-to", "i=3&e=0"); /* the playhead stands before what ran */
      ui_test_do ("show-page", panel);
    }
  TdSceneView *view = ui_test_panel_scene_view (panel, page);
  ui_test_wait ("the page is drawn", has_scene, view);
  return td_scene_view_get_scene (view);
}

/* The same as text. Owner: the caller. */
static char *
dump (const char *panel, const char *page)
{
  return td_scene_dump (scene_of (panel, page));
}

/* Of the items whose lines in the dump begin with `kind` and hold `words`, one has this
 * tooltip; the playhead may hide others. */
static void
assert_tooltip (TdScene *scene, const char *kind, const char *words, const char *expected)
{
  g_autofree char *shown = td_scene_dump (scene);
  g_auto (GStrv) lines = g_strsplit (shown, "\n", -1);
  const char *last = "none";
  double x, y, w, h;

  for (guint i = 0; lines[i]; i++)
    if (g_str_has_prefix (lines[i], kind) && strstr (lines[i], words)
        && sscanf (lines[i] + strlen (kind), "%lf %lf %lf %lf", &x, &y, &w, &h) == 4)
      {
        TdSceneHit hit = { 0 };

        if (td_scene_hit (scene, x + MIN (w / 2, 1), y + h - 1, 0, &hit) && hit.tooltip
            && strstr (hit.tooltip, expected))
          return;
        last = hit.tooltip ? hit.tooltip : "nothing";
      }
  fail_msg ("no %s with %s says: %s; the last one: %s", kind, words, expected, last);
}

static const char *
record (const char *times, const char *reads)
{
  const char *path = td_test_tmp ("gpu.tdtape");
  const char *const argv[] = { GPU_RECORDER, "--record", path, reads, NULL };
  g_autofree char *setting = g_strdup_printf ("TAPEDECK_DEVICE_TIMES=%s", times);
  const char *const env[] = { setting, "TAPEDECK_LEVEL=stats", NULL };
  TdTestChild child = td_test_run (argv, NULL, env);

  assert_child_status (child, 0);
  td_test_child_clear (&child);
  return path;
}

static void
open_recording (const char *times)
{
  ui_test_resize (1600, 900);
  ui_test_open (record (times, NULL));
  ui_test_do ("go-to", "i=3&e=10");
}

static void
header__names_the_device_and_how_full_it_is (void **state)
{
  const char *subtitle;

  open_recording ("all");
  subtitle = adw_window_title_get_subtitle (ui_test_window ()->title);
  assert_contains (subtitle, "cuda:0 Fake H200 · 3");
  assert_contains (subtitle, " MB of 4.29 GB");
}

static void
memory__of_each_device_has_bands_of_its_own (void **state)
{
  static const char *const pages[] = { "events", "iterations" };

  open_recording ("all");
  for (guint i = 0; i < G_N_ELEMENTS (pages); i++)
    {
      g_autofree char *shown = dump ("memory", pages[i]);
      const char *device = strstr (shown, "cuda:0 Fake H200"),
                 *host = strstr (shown, "\"host\"");

      assert_non_null (device);
      assert_non_null (host);
      assert_true (device < host);
      assert_contains (shown, " MB, not to scale");
      assert_contains (device, "Parameters");
      assert_contains (device, "Optimizer");
    }
  ui_test_do ("show-page", "memory");
  ui_test_settle ();
  ui_test_save_picture ("gpu-memory.png");
}

static void
blocks__are_grouped_by_device (void **state)
{
  g_autofree char *shown = NULL;

  open_recording ("all");
  shown = dump ("memory", "blocks");
  assert_contains (shown, "\"cuda:0\"");
}

static void
timeline__has_a_lane_for_the_device (void **state)
{
  g_autofree char *shown = NULL;
  TdScene *scene;

  open_recording ("all");
  scene = scene_of ("schedule", "timeline");
  shown = td_scene_dump (scene);
  ui_test_save_picture ("gpu-timeline.png");
  assert_contains (shown, "\"cuda:0\"");
  assert_contains (shown, "hatch-down"); /* sampled times */
  assert_not_contains (shown, "fill=view stroke=parameter");
}

static void
timeline__says_what_was_not_timed (void **state)
{
  g_autofree char *shown = NULL;
  TdScene *scene;

  open_recording ("off");
  scene = scene_of ("schedule", "timeline");
  shown = td_scene_dump (scene);
  ui_test_save_picture ("gpu-timeline-off.png");
  assert_not_contains (shown, "hatch-down");
  assert_tooltip (scene, "rect",
                  "fill=view stroke=", "not timed on the device: drawn where it was issued");
}

static void
timeline__marks_copies (void **state)
{
  g_autofree char *shown = NULL;

  open_recording ("off");
  shown = td_scene_dump (scene_of ("schedule", "timeline"));
  assert_contains (shown, "ellipse");
  assert_contains (shown, "fill=communication");
}

/* A line of the dump is above another one. */
static gboolean
is_above (const TdScene *scene, const char *first, const char *second)
{
  g_autofree char *shown = td_scene_dump (scene);
  const char *a = strstr (shown, first), *b = strstr (shown, second);

  return a && b && a < b;
}

/* What the host copies has a lane of the device.  Which dots and bars of it lie on one another,
 * and so are drawn as one, depends on how long each took; tests/viz/panels/timeline.c has known
 * times. */
static void
timeline__marks_what_the_host_copies_in_the_lane_of_copies (void **state)
{
  TdScene *scene;
  g_autofree char *shown = NULL;

  ui_test_resize (1600, 900);
  ui_test_open (record ("off", "reads"));
  scene = scene_of ("schedule", "timeline");
  shown = td_scene_dump (scene);
  assert_contains (shown, "ellipse");
  assert_true (is_above (scene, "\"cuda:0\"", "\"copies\""));
  assert_tooltip (scene, "rect", "fill=view stroke=communication",
                  "not timed on the device: drawn where the host was at it");
  ui_test_save_picture ("gpu-timeline-copies.png");
}

/* In iterations that are timed, a read lies where the device made it. */
static void
timeline__shows_when_the_device_copied (void **state)
{
  g_autofree char *shown = NULL;
  TdScene *scene;

  ui_test_resize (1600, 900);
  ui_test_open (record ("all", "reads"));
  scene = scene_of ("schedule", "timeline");
  shown = td_scene_dump (scene);
  assert_not_contains (shown, "fill=view stroke=communication");
  assert_tooltip (scene, "rect", "fill=communication",
                  " µs on the device, beside what it computes, sampled");
  ui_test_save_picture ("gpu-timeline-copies-timed.png");
}

static void
timeline__has_copies_in_a_lane_below_the_device (void **state)
{
  g_autofree char *shown = NULL;
  const char *device;
  TdScene *scene;

  open_recording ("all");
  scene = scene_of ("schedule", "timeline");
  shown = td_scene_dump (scene);
  device = strstr (shown, "\"cuda:0\"");
  assert_non_null (device);
  assert_contains (device, "\"copies\"");
  assert_tooltip (scene, "rect", "fill=communication",
                  "on the device, between what it computes, sampled");
}

static void
memory__has_a_band_of_pools_below_each_device (void **state)
{
  g_autofree char *shown = NULL;

  open_recording ("all");
  shown = dump ("memory", "events");
  assert_contains (shown, "\"pools\"");
  /* What the recording has for statistics and what kernels count is the widest. */
  assert_contains (shown, "\"capture 8.39 MB\"");
  assert_tooltip (scene_of ("memory", "events"), "rect", "stroke=activation",
                  "pool default: 2.10 MB reserved · ");
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (header__names_the_device_and_how_full_it_is),
    ui_test (memory__of_each_device_has_bands_of_its_own),
    ui_test (blocks__are_grouped_by_device),
    ui_test (timeline__has_a_lane_for_the_device),
    ui_test (timeline__says_what_was_not_timed),
    ui_test (timeline__marks_copies),
    ui_test (timeline__marks_what_the_host_copies_in_the_lane_of_copies),
    ui_test (timeline__shows_when_the_device_copied),
    ui_test (timeline__has_copies_in_a_lane_below_the_device),
    ui_test (memory__has_a_band_of_pools_below_each_device),
  };

  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests_name ("window-gpu", tests, NULL, NULL);
}
