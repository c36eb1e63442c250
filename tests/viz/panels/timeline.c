/*
 * The timeline's picture of what the host copies, from a tape whose times never change.
 *
 * SPDX-License-Identifier: MIT
 */
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "lenet-tape.h"
#include "schedule/td-gaps.h"
#include "scene/td-format.h"
#include "schedule/td-schedule.h"
#include "schedule/td-scope-times-print.h"
#include "td-synthetic.h"
#include "td-tape-import.h"
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

/* ---- scopes ---- */

/* Events of a synthetic iteration follow one another without gaps. */
static TdIteration *
with_scopes (void)
{
  TdSynthetic *s = td_synthetic_new (0);
  guint x = td_synthetic_input (s, "x", TD_SHAPE (2, 8)), h;

  h = TD_OP (s, "relu", 1, TD_SHAPE (2, 8), x);
  td_synthetic_enter_scope (s, "attention", 2);
  h = TD_OP (s, "tanh", 3, TD_SHAPE (2, 8), h);
  td_synthetic_enter_scope (s, "mask", 4);
  h = TD_OP (s, "exp", 5, TD_SHAPE (2, 8), h);
  td_synthetic_leave (s);
  td_synthetic_enter_scope (s, "empty", 6);
  td_synthetic_leave (s);
  td_synthetic_leave (s);
  TD_OP (s, "sigmoid", 7, TD_SHAPE (2, 8), h);
  return td_synthetic_finish (s);
}

static void
timeline__shows_scopes_from_their_first_to_their_last_event (void **state)
{
  g_autoptr (TdIteration) it = with_scopes ();
  const TdTapeIteration *t = td_iteration_get_tape (it);
  g_autoptr (GArray) scopes = td_scope_times_new (it);
  const TdScopeTime *attention = &g_array_index (scopes, TdScopeTime, 0);
  const TdScopeTime *mask = &g_array_index (scopes, TdScopeTime, 1);
  TdPanelView view = { .width = 1600, .height = 400, .event = -1, .head = -1 };
  g_autofree char *shown = NULL, *tip = NULL;
  char ns[TD_FORMAT_SIZE];

  assert_int_equal (scopes->len, 2); /* in the third nothing ran */
  assert_string_equal (attention->name, "attention");
  assert_int_equal (attention->depth, 0);
  assert_int_equal (attention->first_event, 1);
  assert_int_equal (attention->last_event, 2);
  assert_int_equal (attention->start_ns, t->event_start_ns[1]);
  assert_int_equal (attention->ns,
                    t->event_start_ns[2] + t->event_duration_ns[2] - t->event_start_ns[1]);
  assert_string_equal (mask->name, "mask");
  assert_int_equal (mask->depth, 1);
  assert_int_equal (mask->ns, t->event_duration_ns[2]);
  TdScene *scene = td_timeline_scene (it, &view);
  tip = g_strdup_printf ("attention · events 1 to 2 · %s", td_format_ns (ns, attention->ns));
  assert_tooltip (scene, "rect", "fill=other", tip);
  shown = td_scene_dump (scene);
  assert_contains (shown, "Scopes");
  assert_contains (shown, "mask");
  td_scene_unref (scene);
}

static void
timeline__says_scopes_as_text_and_json (void **state)
{
  g_autoptr (TdIteration) it = with_scopes ();
  TdSchedule *schedule = td_schedule_new (it);
  GString *text = g_string_new (NULL);
  TdSink sink = { .text = g_string_new (NULL) };

  td_scope_times_print (schedule->scopes, text);
  assert_contains (text->str, "\nattention                        1 to 2 ");
  assert_contains (text->str, "\n  mask                           2 to 2 ");
  td_schedule_print (schedule, "", NULL, "json", &sink);
  assert_contains (sink.text->str, "\"name\": \"mask\"");
  assert_contains (sink.text->str, "\"depth\": 1");
  td_schedule_free (schedule);
  g_string_free (text, TRUE);
  g_string_free (sink.text, TRUE);
}

/* ---- gaps ---- */

/* Three operations of the host and one of its copies: what is left of the time is gaps. */
static void
gaps__are_what_operations_and_copies_leave (void **state)
{
  const char *path = td_test_source ("tests/golden/tape-1.2-copies.tdtape");
  char error[160];
  TdTapeReader *reader = td_tape_reader_open (path, error, sizeof error);
  TdIteration *it = lenet_tape_load (reader, 1);
  const TdTapeIteration *t = td_iteration_get_tape (it);
  g_autoptr (GArray) gaps = td_gaps_new (it, 0);
  guint64 end = 0;

  assert_true (gaps->len >= 1);
  for (guint i = 0; i < gaps->len; i++)
    {
      const TdGap *gap = &g_array_index (gaps, TdGap, i);

      assert_true (gap->ns > 0);
      assert_true (gap->start_ns >= end); /* in order, and none in another */
      end = gap->start_ns + gap->ns;
      for (guint e = 0; e < t->n_events; e++) /* nothing ran in it */
        assert_true (t->event_start_ns[e] + t->event_duration_ns[e] <= gap->start_ns
                     || t->event_start_ns[e] >= end);
    }
  td_iteration_unref (it);
  td_tape_reader_free (reader);
}

/* Times are in units of 10 ns: forward ends at 30, backward begins at 50, updates at 80. */
static void
gaps__of_the_host_are_named_after_what_follows (void **state)
{
  static const struct
  {
    TdGapKind kind;
    guint64 start, ns;
    const char *name;
  } expected[] = { { TD_GAP_FIRST, 0, 100, "before the first operation" },
                   { TD_GAP_CODE, 200, 50, "between operations" },
                   { TD_GAP_BACKWARD, 300, 200, "before backward" },
                   { TD_GAP_UPDATE, 600, 200, "before update" } };
  static const TdTapeEvent events[] = { { .phase = TD_TAPE_PHASE_FORWARD, .key = 1 },
                                        { .phase = TD_TAPE_PHASE_FORWARD, .key = 2 },
                                        { .phase = TD_TAPE_PHASE_BACKWARD, .key = 3 },
                                        { .phase = TD_TAPE_PHASE_UPDATE, .key = 4 } };
  static const guint64 starts[] = { 100, 250, 500, 800 }, durations[] = { 100, 50, 100, 10 };
  static const TdTapeIteration tape = { .size = sizeof tape,
                                        .n_events = G_N_ELEMENTS (events),
                                        .events = events,
                                        .event_start_ns = starts,
                                        .event_duration_ns = durations };
  static const TdNamesClass nameless = { 0 };
  g_autoptr (TdIteration) it = td_iteration_new (&nameless, NULL, NULL, &tape, NULL);
  g_autoptr (GArray) gaps = td_gaps_new (it, 0);

  assert_int_equal (gaps->len, G_N_ELEMENTS (expected));
  for (guint i = 0; i < gaps->len; i++)
    {
      const TdGap *gap = &g_array_index (gaps, TdGap, i);

      assert_int_equal (gap->kind, expected[i].kind);
      assert_int_equal (gap->start_ns, expected[i].start);
      assert_int_equal (gap->ns, expected[i].ns);
      assert_int_equal (gap->before, i);
      assert_int_equal (gap->after, (gint)i - 1);
      assert_string_equal (td_gap_name (gap->kind), expected[i].name);
    }
}

/* The second was issued at 500, long after the first ended; the third at 600, while the second
 * ran. */
static void
gaps__of_a_device_say_whether_it_waits_for_the_host (void **state)
{
  static const TdTapeEvent events[] = { { .key = 1 }, { .key = 2 }, { .key = 3 } };
  static const guint64 starts[] = { 0, 500, 600 }, durations[] = { 10, 10, 10 };
  static const TdTapeDeviceTime times[]
      = { { .start_ns = 20, .duration_ns = 100, .event = 0, .device = 1 },
          { .start_ns = 520, .duration_ns = 200, .event = 1, .device = 1 },
          { .start_ns = 730, .duration_ns = 100, .event = 2, .device = 1 } };
  static const TdTapeIteration tape = { .size = sizeof tape,
                                        .n_events = G_N_ELEMENTS (events),
                                        .events = events,
                                        .event_start_ns = starts,
                                        .event_duration_ns = durations,
                                        .n_device_times = G_N_ELEMENTS (times),
                                        .device_times = times };
  static const TdNamesClass nameless = { 0 };
  static const guint64 expected[][3]
      = { { 0, 20, TD_GAP_START }, { 120, 400, TD_GAP_HOST }, { 720, 10, TD_GAP_START } };
  g_autoptr (TdIteration) it = td_iteration_new (&nameless, NULL, NULL, &tape, NULL);
  g_autoptr (GArray) gaps = td_gaps_new (it, 1), none = td_gaps_new (it, 2);

  assert_int_equal (none->len, 0);
  assert_int_equal (gaps->len, 3);
  for (guint i = 0; i < 3; i++)
    {
      const TdGap *gap = &g_array_index (gaps, TdGap, i);

      assert_int_equal (gap->start_ns, expected[i][0]);
      assert_int_equal (gap->ns, expected[i][1]);
      assert_int_equal (gap->kind, expected[i][2]);
    }
}

/* Two streams of one device have a lane each, named after the program's own numbers, and gaps
 * of their own: 60 us of the first, though the second computes. */
static void
timeline__has_a_lane_for_each_stream (void **state)
{
#define SLICE(category, ts, dur, number, stream)                                               \
  "{\"ph\":\"X\",\"cat\":\"" category "\",\"name\":\"x\",\"ts\":" ts ",\"dur\":" dur           \
  ",\"args\":{\"device\":0,\"correlation\":" number ",\"stream\":" stream "}}"
  static const char trace[] = "[" SLICE ("cuda_runtime", "0", "10", "1", "0") "," SLICE (
      "cuda_runtime", "20", "10", "2",
      "0") "," SLICE ("cuda_runtime", "40", "10", "3",
                      "0") "," SLICE ("kernel", "20", "100", "1",
                                      "7") "," SLICE ("kernel", "50", "200", "2",
                                                      "20") "," SLICE ("kernel", "180", "100",
                                                                       "3", "7") "]";
#undef SLICE
  const char *json = td_test_tmp ("a.json"), *path = td_test_tmp ("a.tdtape");
  TdPanelView view = { .width = 1000, .height = 400, .event = -1 };
  char error[256] = "";
  TdTapeReader *reader;
  TdIteration *it;
  TdScene *scene;
  g_autofree char *shown = NULL;
  g_autoptr (GArray) first = NULL, second = NULL, all = NULL;

  td_test_write_file (json, trace, sizeof trace - 1);
  assert_true (td_tape_import (json, path, true, NULL, error, sizeof error));
  reader = td_tape_reader_open (path, error, sizeof error);
  assert_non_null (reader);
  it = lenet_tape_load (reader, 0);
  first = td_gaps_of_stream (it, 1, 0);
  second = td_gaps_of_stream (it, 1, 1);
  all = td_gaps_new (it, 1);
  assert_int_equal (first->len, 2);
  assert_int_equal (g_array_index (first, TdGap, 1).start_ns, 120000);
  assert_int_equal (g_array_index (first, TdGap, 1).ns, 60000);
  assert_int_equal (second->len, 1);
  assert_int_equal (all->len, 1); /* before the first */
  scene = td_timeline_scene (it, &view);
  shown = td_scene_dump (scene);
  assert_contains (shown, "gpu:0/7");
  assert_contains (shown, "/20");
  td_scene_unref (scene);
  td_iteration_unref (it);
  td_tape_reader_free (reader);
}

static void
timeline__names_a_gap_that_can_be_seen (void **state)
{
  const char *path = td_test_source ("tests/golden/tape-1.2-copies.tdtape");
  TdPanelView view = { .width = 1600, .height = 400, .iteration = 1, .event = -1, .head = 1 };
  char error[160];
  TdTapeReader *reader = td_tape_reader_open (path, error, sizeof error);
  TdIteration *it = lenet_tape_load (reader, 1);
  g_autoptr (GArray) gaps = td_gaps_new (it, 0);
  const TdGap *gap = &g_array_index (gaps, TdGap, 0);
  g_autoptr (TdScene) scene = td_timeline_scene (it, &view);
  g_autofree char *shown = td_scene_dump (scene);
  char ns[TD_FORMAT_SIZE];
  g_autofree char *words
      = g_strdup_printf ("%s %s", td_format_ns (ns, gap->ns), td_gap_name (gap->kind));

  assert_contains (shown, words);
  td_iteration_unref (it);
  td_tape_reader_free (reader);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (timeline__shows_scopes_from_their_first_to_their_last_event),
    td_test (timeline__says_scopes_as_text_and_json),
    td_test (timeline__shows_what_the_host_copies_and_waits_for),
    td_test (gaps__are_what_operations_and_copies_leave),
    td_test (gaps__of_the_host_are_named_after_what_follows),
    td_test (gaps__of_a_device_say_whether_it_waits_for_the_host),
    td_test (timeline__has_a_lane_for_each_stream),
    td_test (timeline__names_a_gap_that_can_be_seen),
  };

  return cmocka_run_group_tests_name ("timeline", tests, NULL, NULL);
}
