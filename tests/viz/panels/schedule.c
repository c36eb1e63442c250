/*
 * The execution order as a picture: its columns have room for what stands in them.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>

#include "schedule/td-schedule.h"
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

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (schedule__numbers_of_any_length_stand_beside_the_playhead),
  };

  return cmocka_run_group_tests_name ("schedule", tests, NULL, NULL);
}
