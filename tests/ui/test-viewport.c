/* Pan and zoom of the canvas, without a display.
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <math.h>

#include "widgets/td-viewport.h"

static TdViewport
make (double content_width, double content_height)
{
  TdViewport v = { .scale = 1, .width = 800, .height = 400 };
  v.content_width = content_width;
  v.content_height = content_height;
  return v;
}

static void
near (double a, double b)
{
  if (fabs (a - b) > 1e-6)
    fail_msg ("%g is not %g", a, b);
}

static void
fit__shows_all_and_never_enlarges (void **state)
{
  TdViewport v = make (1600, 400);
  (void)state;
  td_viewport_fit (&v);
  near (v.scale, 0.5);
  near (v.x, 0);
  near (v.y, -(800 - 400) / 2.0); /* half as high as the window: centred */
  v = make (100, 100);
  td_viewport_fit (&v);
  near (v.scale, 1);
  near (v.x, -350);
}

static void
zoom__keeps_what_is_under_the_pointer (void **state)
{
  TdViewport v = make (4000, 4000);
  double x0, y0, x1, y1;
  (void)state;
  v.x = 1000;
  v.y = 1500;
  td_viewport_to_content (&v, 300, 200, &x0, &y0);
  td_viewport_zoom_at (&v, 1.7, 300, 200);
  td_viewport_to_content (&v, 300, 200, &x1, &y1);
  near (x0, x1);
  near (y0, y1);
  near (v.scale, 1.7);
}

static void
zoom__stays_within_its_limits (void **state)
{
  TdViewport v = make (4000, 4000);
  (void)state;
  td_viewport_zoom_at (&v, 1e9, 0, 0);
  near (v.scale, TD_VIEWPORT_MAX_SCALE);
  td_viewport_zoom_at (&v, 1e-9, 0, 0);
  near (v.scale, TD_VIEWPORT_MIN_SCALE);
}

static void
pan__cannot_lose_the_content (void **state)
{
  TdViewport v = make (4000, 4000);
  (void)state;
  td_viewport_pan (&v, -1e9, -1e9);
  assert_true (v.x < 4000 && v.y < 4000);
  td_viewport_pan (&v, 1e9, 1e9);
  assert_true (v.x + 800 > 0 && v.y + 400 > 0);
}

static void
show__moves_only_as_far_as_needed (void **state)
{
  TdViewport v = make (4000, 4000);
  (void)state;
  v.x = v.y = 1000;
  assert_false (td_viewport_show (&v, &(TdSceneRect){ 1100, 1100, 50, 50 }, 10));
  assert_true (td_viewport_show (&v, &(TdSceneRect){ 1790, 1100, 50, 50 }, 10));
  near (v.x, 1850 - 800);
  near (v.y, 1000);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (fit__shows_all_and_never_enlarges),
    cmocka_unit_test (zoom__keeps_what_is_under_the_pointer),
    cmocka_unit_test (zoom__stays_within_its_limits),
    cmocka_unit_test (pan__cannot_lose_the_content),
    cmocka_unit_test (show__moves_only_as_far_as_needed),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
