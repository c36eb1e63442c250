/*
 * The picture of buffers over steps.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "td-gantt.h"

#define AXIS_WIDTH 52.0
#define TOP 28.0
#define BOTTOM 24.0
#define LABEL_HEIGHT 15.0

typedef struct
{
  TdSceneBuilder *b;
  const TdGantt *g;
  const TdPanelView *view;
  TdSceneRect plot;
  double extent;
} Picture;

static double
x_of (const Picture *p, double step)
{
  return p->plot.x + p->plot.width * step / MAX (p->g->n_steps, 1);
}

static double
y_of (const Picture *p, double offset)
{
  return p->plot.y + p->plot.height * (1 - offset / p->extent);
}

static void
add_axis (Picture *p)
{
  double step = td_format_byte_step (p->extent, (int)CLAMP (p->plot.height / 32, 2, 8));
  TdStyle line = { .stroke = TD_ROLE_HAIRLINE };
  TdTextStyle text = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = 1 };

  for (double v = 0; v <= p->extent; v += step)
    {
      double y = round (y_of (p, v)) + 0.5;
      const TdScenePoint q[] = { { p->plot.x, y }, { p->plot.x + p->plot.width, y } };
      char label[TD_FORMAT_SIZE];

      td_scene_add_line (p->b, q, 2, &line);
      td_scene_add_text (p->b, p->plot.x - 6, y, td_format_tick_bytes (label, (guint64)v),
                         &text);
    }
}

/* Numbers of steps below, as many as there is room for. */
static void
add_steps (Picture *p)
{
  TdTextStyle text = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = 0.5 };
  guint n = p->g->n_steps > 1 ? p->g->n_steps - 1 : 1; /* the last one is "after" */
  guint every = (guint)MAX (1, td_format_step (n, (int)MAX (p->plot.width / 34, 2)));

  for (guint step = 0; step < n; step += every)
    {
      char label[24];

      g_snprintf (label, sizeof label, "%u", step);
      td_scene_add_text (p->b, x_of (p, step + 0.5), p->plot.y + p->plot.height + 10, label,
                         &text);
    }
}

/* The name on a light ground, where the bar has room for it. */
static void
add_label (Picture *p, const TdGanttBar *bar, TdSceneRect r)
{
  char bytes[TD_FORMAT_SIZE];
  g_autofree char *text = g_strdup_printf ("%s%s%s", bar->name, *bar->name ? " " : "",
                                           td_format_bytes (bytes, bar->bytes));
  double width = MIN (td_text_width (text, TD_TEXT_AXIS, FALSE) + 8, r.width - 8);
  TdStyle ground = { .fill = TD_ROLE_CARD, .fill_alpha = 0.9, .flags = TD_PRIM_DETAIL };
  TdTextStyle style = {
    .role = TD_ROLE_TEXT, .size = TD_TEXT_AXIS, .max_width = width - 6, .flags = TD_PRIM_DETAIL
  };

  if (r.height < LABEL_HEIGHT || r.width < 48)
    return;
  td_scene_add_shape (p->b, TD_PRIM_ROUND,
                      (TdSceneRect){ r.x + 4, r.y + r.height / 2 - 6.5, width, 13 }, 3,
                      &ground);
  td_scene_add_text (p->b, r.x + 8, r.y + r.height / 2, text, &style);
}

static void
add_bar (Picture *p, const TdGanttBar *bar)
{
  double x0 = x_of (p, bar->from), x1 = x_of (p, bar->to);
  double top = y_of (p, (double)(bar->offset + bar->bytes)),
         low = y_of (p, (double)bar->offset);
  TdSceneRect r = { x0, top, MAX (x1 - x0, 0.8), MAX (low - top, 0.8) };
  gboolean selected
      = (bar->key != 0 && td_panel_is_selected (p->view, bar->key))
        || (bar->event_key != 0 && td_panel_is_selected (p->view, bar->event_key));
  TdStyle style = { .fill = td_category_role (bar->category),
                    .pattern = td_category_pattern (bar->category),
                    .stroke = selected ? TD_ROLE_ACCENT : TD_ROLE_VIEW,
                    .stroke_width = selected ? 3 : 0.8,
                    .flags = TD_PRIM_AREA };
  char bytes[TD_FORMAT_SIZE];

  if (x1 - x0 < 0.5 && low - top < 0.5 && !selected)
    return; /* nothing to see */
  g_autofree char *tooltip
      = g_strdup_printf ("%s%s%s, %s, %s %u to %u", bar->name, *bar->name ? ", " : "",
                         td_category_label (bar->category), td_format_bytes (bytes, bar->bytes),
                         "steps", bar->from, bar->to);
  td_scene_mark (p->b, TD_TAG_ROW, bar->key, bar->event, tooltip);
  td_scene_add_shape (p->b, TD_PRIM_RECT, r, 0, &style);
  td_scene_unmark (p->b);
  add_label (p, bar, r);
}

/* What was planned, or else the least that any plan needs. */
static void
add_bound (Picture *p, guint64 bytes, const char *what)
{
  double y = y_of (p, (double)bytes);
  const TdScenePoint q[] = { { p->plot.x, y }, { p->plot.x + p->plot.width, y } };
  TdStyle line = { .stroke = TD_ROLE_TEXT, .stroke_width = 1.2, .dash = TD_DASH_FINE };

  if (bytes == 0 || (double)bytes > p->extent)
    return;
  td_scene_mark (p->b, TD_TAG_NONE, 0, 0, what);
  td_scene_add_line (p->b, q, 2, &line);
  td_scene_unmark (p->b);
}

static void
add_turn (Picture *p)
{
  double x = x_of (p, p->g->first_backward);
  const TdScenePoint q[] = { { x, p->plot.y - 8 }, { x, p->plot.y + p->plot.height } };
  TdStyle line = { .stroke = TD_ROLE_FAINT, .dash = TD_DASH_FINE };

  if (p->g->first_backward >= 0)
    td_scene_add_line (p->b, q, 2, &line);
}

static void
add_caption (Picture *p)
{
  char most[TD_FORMAT_SIZE], extent[TD_FORMAT_SIZE], rest[TD_FORMAT_SIZE];
  TdTextStyle text = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .max_width = p->plot.width };
  guint64 taken = p->g->planned_bytes > 0 ? p->g->planned_bytes : p->g->extent;
  g_autofree char *words = g_strdup_printf (
      "%s %s; at most %s live at once (step %u)%s%s%s", td_format_bytes (extent, taken),
      p->g->planned_bytes > 0 ? "planned" : "of addresses",
      td_format_bytes (most, p->g->most_alive), p->g->most_alive_step,
      p->g->n_throughout > 0 ? "; not drawn: " : "",
      p->g->n_throughout > 0 ? td_format_bytes (rest, p->g->bytes_throughout) : "",
      p->g->n_throughout > 0 ? " that live throughout" : "");

  td_scene_add_text (p->b, p->plot.x, 8, words, &text);
}

TdScene *
td_gantt_scene (const TdGantt *g, guint64 extent, const TdPanelView *view)
{
  double w = view->width > 0 ? view->width : 640, h = view->height > 0 ? view->height : 220;
  Picture p = { .g = g, .view = view };

  if (g->n_bars == 0)
    return td_panel_message (view, "No buffers on the tape",
                             "Nothing was allocated or freed in this iteration.");
  p.extent = (double)MAX (MAX (extent, g->extent), MAX (g->planned_bytes, 1)) * 1.02;
  p.plot = (TdSceneRect){ AXIS_WIDTH, TOP, MAX (20, w - AXIS_WIDTH - 12),
                          MAX (20, h - TOP - BOTTOM) };
  p.b = td_scene_builder_new (w, h);
  td_scene_set_background (p.b, TD_ROLE_VIEW);
  add_axis (&p);
  for (guint i = 0; i < g->n_bars; i++)
    add_bar (&p, &g->bars[i]);
  add_turn (&p);
  add_bound (&p, g->planned_bytes, "planned");
  add_bound (&p, g->most_alive, "the most that lives at once");
  add_steps (&p);
  add_caption (&p);
  TdSceneAxes axes = { .box = p.plot, .x0 = 0, .x1 = g->n_steps, .y0 = 0, .y1 = p.extent };
  td_scene_set_axes (p.b, &axes);
  if (view->event >= 0)
    td_panel_add_playhead (p.b, x_of (&p, view->event + 0.5), p.plot.y - 8,
                           p.plot.y + p.plot.height);
  return td_scene_builder_end (p.b);
}
