/*
 * What a frame of the graph costs on the CPU: 2,000 visible nodes far out, and 72 and 288 near.
 * Prints one JSON object a line; the peer is none (these are budgets of our own).
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "scene/td-scene.h"

#define COLS 50

static TdScene *
make_scene (int n)
{
  TdSceneBuilder *b = td_scene_builder_new (200.0 * COLS, 60.0 * (n / COLS + 1));
  TdStyle wire = { .stroke = TD_ROLE_EDGE, .stroke_width = 1.4, .flags = TD_PRIM_ARROW_END };
  TdStyle node = { .fill = TD_ROLE_NODE, .stroke = TD_ROLE_NODE_STROKE, .flags = TD_PRIM_NODE };
  TdTextStyle name = {
    .role = TD_ROLE_NODE_TEXT, .size = TD_TEXT_NODE, .max_width = 120, .flags = TD_PRIM_DETAIL
  };
  TdTextStyle event
      = { .role = TD_ROLE_DIM, .size = TD_TEXT_SMALL, .align = 1, .flags = TD_PRIM_DETAIL };

  for (int i = 0; i < n; i++)
    {
      double x = 200.0 * (i % COLS), y = 60.0 * (i / COLS);
      const TdScenePoint q[]
          = { { x + 86, y + 34 }, { x + 86, y + 47 }, { x + 90, y + 47 }, { x + 90, y + 60 } };
      char text[40];

      td_scene_add_line (b, q, 4, &wire);
      td_scene_mark (b, TD_TAG_NODE, (guint64)i + 1, i, NULL);
      td_scene_add_shape (b, TD_PRIM_ROUND, (TdSceneRect){ x, y, 172, 34 }, 8, &node);
      td_scene_unmark (b);
      g_snprintf (text, sizeof text, "convolution_2d_%d", i % 97);
      td_scene_add_text (b, x + 12, y + 17, text, &name);
      g_snprintf (text, sizeof text, "%d", i);
      td_scene_add_text (b, x + 160, y + 17, text, &event);
    }
  return td_scene_builder_end (b);
}

static double
cpu_ms (void)
{
  struct timespec t;

  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int
by_value (const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

/* Median CPU time of a frame of `visible` at `scale`, panned a little between frames. */
static void
measure (const char *workload, const TdScene *scene, TdSceneRect visible, double scale)
{
  cairo_surface_t *surface = cairo_image_surface_create (
      CAIRO_FORMAT_ARGB32, (int)(visible.width * scale), (int)(visible.height * scale));
  double ms[31];

  for (int i = -3; i < 31; i++)
    {
      cairo_t *cr = cairo_create (surface);
      double start = cpu_ms ();

      cairo_set_source_rgb (cr, 1, 1, 1);
      cairo_paint (cr);
      visible.x += i & 1 ? 3 : -3;
      td_scene_paint (scene, cr, &visible, scale, td_theme_get ("light"));
      cairo_surface_flush (surface);
      if (i >= 0)
        ms[i] = cpu_ms () - start;
      cairo_destroy (cr);
    }
  cairo_surface_destroy (surface);
  qsort (ms, 31, sizeof *ms, by_value);
  printf ("{\"workload\": \"%s\", \"threads\": 1, \"value\": %.3f, \"unit\": \"ms\", \"peer\": "
          "null, "
          "\"ratio\": null}\n",
          workload, ms[15]);
}

int
main (void)
{
  g_autoptr (TdScene) two_thousand = make_scene (2000);
  g_autoptr (TdScene) hundred_thousand = make_scene (100000);
  TdSceneRect all = { 0, 0, 10000, 2460 }, near = { 400, 300, 1200, 760 };
  TdSceneRect half = { 400, 300, 2400, 1520 };

  measure ("frame_2000_visible", two_thousand, all, 0.12);
  measure ("frame_84_visible_of_100000", hundred_thousand, near, 1);
  measure ("frame_325_visible_of_100000", hundred_thousand, half, 0.5);
  return 0;
}
