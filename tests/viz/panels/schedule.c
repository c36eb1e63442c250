/*
 * The execution order as a picture: its columns have room for what stands in them.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>

#include "schedule/td-schedule.h"
#include "tape/td-devices.h"
#include "td-synthetic.h"
#include "td-test.h"

typedef struct
{
  double x, y, width; /* a text has no width */
} Place;

/* Where a line of a scene's dump that begins with `begin` and has `also` in it says it is. */
static Place
read_place (const char *dump, const char *begin, const char *also)
{
  g_auto (GStrv) lines = g_strsplit (dump, "\n", -1);
  Place p = { 0 };

  for (guint i = 0; lines[i]; i++)
    if (g_str_has_prefix (lines[i], begin) && strstr (lines[i], also)
        && sscanf (lines[i] + strlen (begin), "%lf %lf %lf", &p.x, &p.y, &p.width) >= 2)
      return p;
  fail_msg ("no %s with %s in:\n%s", begin, also, dump);
  return p;
}

/* The last row of an iteration of so many events is where the playhead is. */
static void
check_columns (guint last, double width)
{
  TdScheduleRow rows[3];
  TdSchedule schedule = { .n_rows = G_N_ELEMENTS (rows), .rows = rows };
  TdPanelView view = { .width = width, .height = 120, .event = (gint)last, .head = -1 };
  char text[16], quoted[20];

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    rows[i] = (TdScheduleRow){ .event = last + i + 1 - schedule.n_rows,
                               .op = "convolution_2d",
                               .layer = "net/conv1" };
  g_snprintf (text, sizeof text, "%u", last);
  g_snprintf (quoted, sizeof quoted, "\"%s\"", text);
  g_autoptr (TdScene) scene = td_schedule_scene (&schedule, NULL, &view);
  g_autofree char *dump = td_scene_dump (scene);

  const Place triangle = read_place (dump, "playhead ", "fill=accent"),
              number = read_place (dump, "text ", quoted),
              op = read_place (dump, "text ", "\"convolution_2d\""),
              layer = read_place (dump, "text ", "\"conv1\"");
  const double left = number.x - td_text_width (text, TD_TEXT_CAPTION, FALSE),
               end = triangle.x + triangle.width;
  if (left < end)
    fail_msg ("%s begins at %.1f, the playhead ends at %.1f", text, left, end);
  assert_true (op.x > number.x);
  assert_true (layer.x > op.x);
}

static void
schedule__numbers_of_any_length_stand_beside_the_playhead (void **state)
{
  static const double widths[] = { 320, 480, 900 };

  for (guint digits = 1, last = 9; digits <= 9; digits++, last = last * 10 + 9)
    for (guint i = 0; i < G_N_ELEMENTS (widths); i++)
      check_columns (last, widths[i]);
}

/* Of three operations on a device one was timed by its tracing, one by marks, one not. */
static void
schedule__times_of_a_device_are_beside_those_of_issuing (void **state)
{
  g_autoptr (TdIteration) it = td_synthetic_lenet (3);
  TdTapeIteration *t = (TdTapeIteration *)(gpointer)td_iteration_get_tape (it);
  const TdTapeDeviceTime times[] = {
    { .duration_ns = 9000, .event = 0, .device = 1, .kind = TD_TAPE_DEVICE_TIME_EXACT },
    { .duration_ns = 8000, .event = 1, .device = 1, .kind = TD_TAPE_DEVICE_TIME_SAMPLED },
  };
  static const char *const cells[] = { "9.00 µs", "≈8.00 µs", "-", "-" };
  TdTapeVar *vars = (TdTapeVar *)(gpointer)t->vars;

  for (guint e = 0; e < 3; e++)
    vars[t->outs[t->events[e].first_out]].device = 1;
  t->device_times = times;
  t->n_device_times = G_N_ELEMENTS (times);
  TdSchedule *s = td_schedule_new (it);
  g_autofree char *note = td_schedule_dup_device_note (s);
  for (guint e = 0; e < G_N_ELEMENTS (cells); e++)
    {
      char text[TD_FORMAT_SIZE];

      assert_string_equal (td_schedule_format_device (&s->rows[e], text), cells[e]);
      assert_int_equal (td_devices_cost (it, e), e < 2   ? times[e].duration_ns
                                                 : e < 3 ? 0
                                                         : t->event_duration_ns[e]);
    }
  assert_non_null (strstr (note, "17.0 µs in 2 of the 3 operations"));
  td_schedule_free (s);
  t->n_device_times = 0;
  s = td_schedule_new (it);
  g_free (note);
  note = td_schedule_dup_device_note (s);
  assert_non_null (strstr (note, "of the host, which only issues: 3 operations"));
  td_schedule_free (s);
  t->device_times = NULL;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (schedule__numbers_of_any_length_stand_beside_the_playhead),
    td_test (schedule__times_of_a_device_are_beside_those_of_issuing),
  };

  return cmocka_run_group_tests_name ("schedule", tests, NULL, NULL);
}
