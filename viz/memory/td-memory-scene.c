/*
 * Stacked areas of memory by category, with patterns, the pool's line and a legend.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "tape/td-devices.h"
#include "td-memory.h"
#include "td-pools.h"

#define LEGEND_WIDTH 150.0
#define AXIS_WIDTH 46.0

typedef struct
{
  TdSceneBuilder *b;
  const TdPanelView *view;
  TdSceneRect plot, legend; /* legend.width 0: no room */
  guint n;                  /* columns; column i spans [i, i + 1) of the x axis */
  double y_max;
  guint64 *const *bytes; /* by category */
  const guint64 *most;   /* the same, of all columns; NULL: not known */
  guint *tallest;        /* by picture column, see find_tallest */
} Stack;

static double
x_of (const Stack *s, double column)
{
  return s->plot.x + s->plot.width * column / MAX (s->n, 1);
}

static double
y_of (const Stack *s, double bytes)
{
  return s->plot.y + s->plot.height * (1 - bytes / s->y_max);
}

/* Picture columns: as many as there are data, but not more than pixels. Returns the data column
 * with the highest total that picture column i stands for. */
static guint
shown_columns (const Stack *s, guint n_data)
{
  return MIN (n_data, (guint)MAX (s->plot.width, 1));
}

static guint
tallest (const guint64 *total, guint i, guint n_shown, guint n_data)
{
  guint from = (guint)((guint64)i * n_data / n_shown);
  guint to = (guint)((guint64)(i + 1) * n_data / n_shown), best = from;

  for (guint k = from; k < to; k++)
    if (total[k] > total[best])
      best = k;
  return best;
}

/* Once for all categories: an iteration may have a million columns. */
static void
find_tallest (Stack *s, const guint64 *total, guint n_data)
{
  guint n = shown_columns (s, n_data);

  s->tallest = g_new (guint, MAX (n, 1));
  for (guint i = 0; i < n; i++)
    s->tallest[i] = tallest (total, i, n, n_data);
}

/* Whether there is any of a category, in any column. */
static gboolean
has_any (const Stack *s, guint category)
{
  if (s->most)
    return s->most[category] > 0;
  for (guint k = 0; k < s->n; k++)
    if (s->bytes[category][k] > 0)
      return TRUE;
  return FALSE;
}

/* Draws the area of one category between what lies below it and its own top, as steps. */
static void
add_area (Stack *s, guint category, const gboolean *known, guint n_data, double *base)
{
  guint n = shown_columns (s, n_data);
  g_autofree TdScenePoint *q = g_new (TdScenePoint, 4 * n);
  TdStyle style = { .fill = td_category_role (category),
                    .pattern = td_category_pattern (category),
                    .flags = TD_PRIM_AREA };
  gboolean any = FALSE;

  for (guint i = 0; i < n; i++)
    {
      guint k = s->tallest[i];
      double top = base[i] + (known && !known[k] ? 0 : (double)s->bytes[category][k]);
      double x0 = x_of (s, (double)i * n_data / n), x1 = x_of (s, (double)(i + 1) * n_data / n);

      any |= top > base[i];
      q[2 * i] = (TdScenePoint){ x0, y_of (s, top) };
      q[2 * i + 1] = (TdScenePoint){ x1, y_of (s, top) };
      q[4 * n - 1 - 2 * i] = (TdScenePoint){ x0, y_of (s, base[i]) };
      q[4 * n - 2 - 2 * i] = (TdScenePoint){ x1, y_of (s, base[i]) };
      base[i] = top;
    }
  if (!any)
    return;
  td_scene_mark (s->b, TD_TAG_CATEGORY, 0, category, td_category_label (category));
  td_scene_add_polygon (s->b, q, (int)(4 * n), &style);
  td_scene_unmark (s->b);
}

static void
add_outline (Stack *s, const guint64 *total, guint from, guint n_data, const TdStyle *style)
{
  guint n = shown_columns (s, n_data), k = 0;
  g_autofree TdScenePoint *q = g_new (TdScenePoint, 2 * n + 1);

  for (guint i = 0; i < n; i++)
    {
      guint column = tallest (total, i, n, n_data);

      if (column < from)
        continue;
      q[k++]
          = (TdScenePoint){ x_of (s, (double)i * n_data / n), y_of (s, (double)total[column]) };
      q[k++] = (TdScenePoint){ x_of (s, (double)(i + 1) * n_data / n),
                               y_of (s, (double)total[column]) };
    }
  td_scene_add_line (s->b, q, (int)k, style);
}

static void
add_y_axis (Stack *s)
{
  double step = td_format_byte_step (s->y_max / 1.05, (int)CLAMP (s->plot.height / 32, 2, 8));
  TdStyle line = { .stroke = TD_ROLE_HAIRLINE };
  TdTextStyle text = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = 1 };

  for (double v = 0; v <= s->y_max; v += step)
    {
      double y = round (y_of (s, v)) + 0.5;
      const TdScenePoint q[] = { { s->plot.x, y }, { s->plot.x + s->plot.width, y } };
      char label[TD_FORMAT_SIZE];

      td_scene_add_line (s->b, q, 2, &line);
      td_scene_add_text (s->b, s->plot.x - 6, y, td_format_tick_bytes (label, (guint64)v),
                         &text);
    }
}

/* One line of the legend: a swatch with its pattern, name, bytes. */
static void
add_legend_row (Stack *s, double y, TdRole role, TdPattern pattern, const char *label,
                guint64 bytes, gboolean bold)
{
  TdStyle swatch = { .fill = pattern == TD_PATTERN_OUTLINE ? TD_ROLE_VIEW : role,
                     .pattern = pattern,
                     .stroke = pattern == TD_PATTERN_OUTLINE ? role : TD_ROLE_NONE,
                     .flags = TD_PRIM_AREA };
  TdTextStyle name
      = { .role = TD_ROLE_TEXT, .size = TD_TEXT_CAPTION, .bold = bold, .max_width = 82 };
  TdTextStyle value
      = { .role = TD_ROLE_TEXT, .size = TD_TEXT_CAPTION, .bold = bold, .align = 1 };
  char text[TD_FORMAT_SIZE];

  if (role != TD_ROLE_NONE)
    td_scene_add_shape (s->b, TD_PRIM_ROUND, (TdSceneRect){ s->legend.x, y - 5, 10, 10 }, 2,
                        &swatch);
  td_scene_add_text (s->b, s->legend.x + (role != TD_ROLE_NONE ? 17 : 0), y, label, &name);
  td_scene_add_text (s->b, s->legend.x + s->legend.width, y, td_format_bytes (text, bytes),
                     &value);
}

/* The legend says the bytes of `column`, topmost area first. Returns where it ends. */
static double
add_legend (Stack *s, guint column, guint64 total, guint64 pool)
{
  double row = CLAMP (s->legend.height / 10, 13, 19), y = s->legend.y + row / 2;
  TdStyle line = { .stroke = TD_ROLE_BORDER };

  if (s->legend.width <= 0)
    return y;
  for (int i = TD_TAPE_N_CATEGORIES - 1; i >= 0; i--)
    {
      guint c = td_category_order[i];

      if (!has_any (s, c))
        continue;
      td_scene_mark (s->b, TD_TAG_CATEGORY, 0, c, NULL);
      add_legend_row (s, y, td_category_role (c), td_category_pattern (c),
                      td_category_label (c), s->bytes[c][column], FALSE);
      td_scene_unmark (s->b);
      y += row;
    }
  if (pool > total)
    {
      add_legend_row (s, y, TD_ROLE_CACHED, TD_PATTERN_OUTLINE, "Cached", pool - total, FALSE);
      y += row;
    }
  const TdScenePoint q[] = { { s->legend.x, y - row / 2 + 3.5 },
                             { s->legend.x + s->legend.width, y - row / 2 + 3.5 } };
  td_scene_add_line (s->b, q, 2, &line);
  add_legend_row (s, y + 6, TD_ROLE_NONE, TD_PATTERN_NONE, "In use", total, TRUE);
  return y + 6 + row;
}

static void
stack_init (Stack *s, const TdPanelView *view, TdSceneBuilder *b, const TdSceneRect *area)
{
  double legend = area->width >= 330 ? LEGEND_WIDTH : 0;

  s->view = view;
  s->b = b;
  s->plot
      = (TdSceneRect){ area->x + AXIS_WIDTH, area->y + 22,
                       MAX (20, area->width - AXIS_WIDTH - 12 - (legend > 0 ? legend + 14 : 0)),
                       MAX (20, area->height - 22 - 26) };
  s->legend = (TdSceneRect){ area->x + area->width - 12 - legend, area->y + 12, legend,
                             area->height - 30 };
}

/* The band of a device's pools, at the foot of its place: the place is less high then. */
static void
take_pools (TdSceneBuilder *b, const TdIteration *iteration, guint device, TdSceneRect *place)
{
  Stack s = { 0 };

  if (!td_pools_any (iteration, device) || place->height <= 80)
    return;
  place->height -= TD_POOLS_BAND_HEIGHT;
  stack_init (&s, NULL, b, place);
  td_pools_add_band (b, iteration, device,
                     (TdSceneRect){ s.plot.x, place->y + place->height + 3, s.plot.width,
                                    TD_POOLS_BAND_HEIGHT - 6 });
}

static TdSceneBuilder *
begin_scene (const TdPanelView *view, TdSceneRect *area)
{
  TdSceneBuilder *b;

  *area = (TdSceneRect){ 0, 0, view->width > 0 ? view->width : 480,
                         view->height > 0 ? view->height : 190 };
  b = td_scene_builder_new (area->width, area->height);
  td_scene_set_background (b, TD_ROLE_VIEW);
  return b;
}

/* The places of several devices, below each other: the host's, the last, is half as high. */
static TdSceneRect
place_of (const TdSceneRect *area, guint i, guint n)
{
  double unit = area->height / (2 * n - 1);

  return (TdSceneRect){ area->x, area->y + 2 * i * unit, area->width,
                        i + 1 < n ? 2 * unit : unit };
}

/* What others took of the device is seldom of the size of what the program holds: a strip that
 * is not to scale says that it is there, and how much it is. */
static void
add_outside (Stack *s, guint64 outside)
{
  TdStyle strip = { .fill = TD_ROLE_OTHER, .fill_alpha = 0.5, .pattern = TD_PATTERN_CROSS };
  TdStyle label = { .fill = TD_ROLE_VIEW, .fill_alpha = 0.85 };
  TdTextStyle text = { .role = TD_ROLE_TEXT, .size = TD_TEXT_AXIS };
  TdSceneRect r = { s->plot.x, s->plot.y, s->plot.width, 13 };
  char bytes[TD_FORMAT_SIZE], line[80];

  if (outside == 0)
    return;
  g_snprintf (line, sizeof line, "outside: %s, not to scale", td_format_bytes (bytes, outside));
  td_scene_mark (s->b, TD_TAG_CATEGORY, 0, TD_TAPE_CATEGORY_OTHER,
                 "taken of the device by others: libraries, the driver, other programs");
  td_scene_add_shape (s->b, TD_PRIM_RECT, r, 0, &strip);
  td_scene_add_shape (
      s->b, TD_PRIM_ROUND,
      (TdSceneRect){ r.x + 4, r.y + 1, td_text_width (line, TD_TEXT_AXIS, FALSE) + 6, 11 }, 2,
      &label);
  td_scene_add_text (s->b, r.x + 7, r.y + 6.5, line, &text);
  td_scene_unmark (s->b);
}

static void
add_title (Stack *s, const char *title)
{
  TdTextStyle text = {
    .role = TD_ROLE_TEXT, .size = TD_TEXT_CAPTION, .bold = TRUE, .max_width = s->plot.width
  };

  if (title)
    td_scene_add_text (s->b, s->plot.x, s->plot.y - 12, title, &text);
}

static void
set_axes (Stack *s, double x0, double x1)
{
  TdSceneAxes axes = { .box = s->plot, .x0 = x0, .x1 = x1, .y0 = 0, .y1 = s->y_max };

  td_scene_set_axes (s->b, &axes);
}

/* F | B | U below the plot; a memory snapshot has none of them. */
static void
add_phases (Stack *s, const TdTapeIteration *t)
{
  static const char *const letters[] = { "F", "B", "B", "U" };
  TdTextStyle text = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = 0.5 };
  TdStyle tick = { .stroke = TD_ROLE_FAINT };
  double y = s->plot.y + s->plot.height;

  if (t->flags & TD_TAPE_ITERATION_SNAPSHOT)
    return;
  for (guint from = 0, to; from < t->n_events; from = to)
    {
      const char *letter = letters[MIN (t->events[from].phase, 3)];

      for (to = from + 1; to < t->n_events && letters[MIN (t->events[to].phase, 3)] == letter;
           to++)
        ;
      double x0 = x_of (s, from), x1 = x_of (s, to);
      if (from > 0)
        {
          const TdScenePoint q[] = { { round (x0) + 0.5, y + 1 }, { round (x0) + 0.5, y + 6 } };

          if (x1 - x0 > 3)
            td_scene_add_line (s->b, q, 2, &tick);
        }
      if (x1 - x0 > 12)
        td_scene_add_text (s->b, (x0 + x1) / 2, y + 11, letter, &text);
    }
}

#define POOL_LABEL 13 /* its height */

static void
add_pool (Stack *s, guint64 pool)
{
  double y = y_of (s, (double)pool);
  const TdScenePoint q[] = { { s->plot.x, y }, { s->plot.x + s->plot.width, y } };
  TdStyle line = { .stroke = TD_ROLE_FAINT, .stroke_width = 1.2, .dash = TD_DASH_FINE };
  TdTextStyle text = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS };
  TdStyle under = { .fill = TD_ROLE_VIEW, .fill_alpha = 0.85 };
  char bytes[TD_FORMAT_SIZE], label[64];
  double above = y - POOL_LABEL / 2 - 2;

  td_scene_add_line (s->b, q, 2, &line);
  g_snprintf (label, sizeof label, "pool %s", td_format_bytes (bytes, pool));
  /* over the plot stands the device's name */
  if (above - POOL_LABEL / 2 < s->plot.y)
    above = y + POOL_LABEL / 2 + 2;
  td_scene_add_shape (s->b, TD_PRIM_ROUND,
                      (TdSceneRect){ s->plot.x + 2, above - POOL_LABEL / 2,
                                     td_text_width (label, TD_TEXT_AXIS, FALSE) + 4,
                                     POOL_LABEL },
                      2, &under);
  td_scene_add_text (s->b, s->plot.x + 4, above, label, &text);
}

static void
add_previous (Stack *s, const TdMemoryProfile *previous, guint from)
{
  TdStyle line = { .stroke = TD_ROLE_FAINT, .stroke_width = 1.2, .dash = TD_DASH_DASHED };
  TdTextStyle text = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = 1 };
  char bytes[TD_FORMAT_SIZE], label[96];

  add_outline (s, previous->total, from, previous->n_steps, &line);
  g_snprintf (label, sizeof label, "it. %" G_GINT64_FORMAT ": peak %s", s->view->iteration - 1,
              td_format_bytes (bytes, previous->peak_bytes));
  td_scene_add_text (s->b, s->plot.x + s->plot.width, s->plot.y - 10, label, &text);
}

/* The peak, where it is highest first; what was alive then is in the legend once the playhead
 * is there. */
static void
add_peak (Stack *s, const TdIteration *iteration, const TdMemoryProfile *profile)
{
  guint at = profile->peak_event;
  double x = x_of (s, at + 0.5), y = y_of (s, (double)profile->peak_bytes);
  TdStyle dot = { .fill = TD_ROLE_TEXT, .stroke = TD_ROLE_VIEW, .stroke_width = 1 };
  char bytes[TD_FORMAT_SIZE];

  if (profile->peak_bytes == 0 || at >= td_iteration_get_n_events (iteration))
    return;
  g_autofree char *words
      = g_strdup_printf ("peak %s · event %u, %s", td_format_bytes (bytes, profile->peak_bytes),
                         at, td_iteration_get_op_name (iteration, at));
  td_scene_mark (s->b, TD_TAG_EVENT, td_iteration_get_tape (iteration)->events[at].key, at,
                 words);
  td_scene_add_shape (s->b, TD_PRIM_ELLIPSE, (TdSceneRect){ x - 3.5, y - 3.5, 7, 7 }, 0, &dot);
  td_scene_unmark (s->b);
}

/* One device's memory over the events. */
static void
draw_events (Stack *s, const TdIteration *iteration, const TdMemoryProfile *profile,
             const TdMemoryProfile *previous, guint64 pool, guint64 outside, gboolean axes)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  const TdPanelView *view = s->view;
  guint at = view->event >= 0 ? MIN ((guint)view->event, profile->n_steps - 1)
                              : profile->n_steps - 1;
  gboolean dashed = previous && previous->n_steps > profile->n_steps, near;
  guint n = dashed ? previous->n_steps : profile->n_steps;
  g_autofree double *base = g_new0 (double, profile->n_steps);

  s->bytes = profile->bytes;
  s->most = profile->most;
  s->n = profile->n_steps;
  /* a pool that is far from full would press everything else flat: it is in the legend */
  near = pool <= 4 * profile->peak_bytes;
  s->y_max = (double)MAX (MAX (profile->peak_bytes, near ? pool : 0),
                          dashed ? previous->peak_bytes : 0);
  s->y_max = MAX (s->y_max, 1) * (outside > 0 ? 1.04 + 16 / s->plot.height : 1.04);
  add_y_axis (s);
  if (pool > 0 && near)
    add_pool (s, pool);
  add_legend (s, at, profile->total[at], pool);
  s->n = n;
  if (axes)
    set_axes (s, 0, n);
  find_tallest (s, profile->total, profile->n_steps);
  for (int i = 0; i < TD_TAPE_N_CATEGORIES; i++)
    add_area (s, td_category_order[i], NULL, profile->n_steps, base);
  g_clear_pointer (&s->tallest, g_free);
  add_peak (s, iteration, profile);
  add_outside (s, outside);
  if (dashed)
    add_previous (s, previous, profile->n_steps);
  add_phases (s, t);
  if (view->event >= 0)
    td_panel_add_playhead (s->b, x_of (s, at + 0.5), s->plot.y - 12,
                           s->plot.y + s->plot.height);
  if (view->head >= 0)
    td_panel_add_head (s->b, x_of (s, MIN ((guint)view->head, n - 1) + 0.5),
                       s->plot.y + s->plot.height);
}

TdScene *
td_memory_scene_lines (const TdIteration *iteration, const TdMemoryProfile *profile,
                       const TdMemoryLine *lines, guint n_lines, const TdPanelView *view)
{
  g_autofree double *base = g_new0 (double, profile->n_steps);
  guint at
      = view->event >= 0 ? MIN ((guint)view->event, profile->n_steps - 1) : profile->peak_event;
  TdSceneRect area;
  Stack s = { .n = profile->n_steps, .bytes = profile->bytes, .most = profile->most };
  TdSceneBuilder *b;
  double y;

  b = begin_scene (view, &area);
  stack_init (&s, view, b, &area);
  s.y_max = (double)MAX (profile->peak_bytes, 1);
  for (guint i = 0; i < n_lines; i++)
    for (guint k = 0; lines[i].total && k < s.n; k++)
      s.y_max = MAX (s.y_max, (double)lines[i].total[k]);
  s.y_max *= 1.04;
  add_y_axis (&s);
  set_axes (&s, 0, s.n);
  find_tallest (&s, profile->total, s.n);
  for (int i = 0; i < TD_TAPE_N_CATEGORIES; i++)
    add_area (&s, td_category_order[i], NULL, s.n, base);
  g_clear_pointer (&s.tallest, g_free);
  y = add_legend (&s, at, profile->total[at], 0);
  for (guint i = 0; i < n_lines; i++)
    if (lines[i].total)
      {
        TdStyle style = { .stroke = lines[i].role,
                          .stroke_width = 1.4,
                          .dash = i > 0 ? TD_DASH_FINE : TD_DASH_DASHED };

        add_outline (&s, lines[i].total, 0, s.n, &style);
        add_legend_row (&s, y, lines[i].role, TD_PATTERN_OUTLINE, lines[i].label,
                        lines[i].total[at], FALSE);
        y += 16;
      }
  add_phases (&s, td_iteration_get_tape (iteration));
  if (view->event >= 0)
    td_panel_add_playhead (s.b, x_of (&s, at + 0.5), s.plot.y - 12, s.plot.y + s.plot.height);
  return td_scene_builder_end (s.b);
}

static char *
dup_title (const TdIteration *iteration, guint device)
{
  const TdTapeDevice *d = td_devices_find (iteration, device);
  char total[TD_FORMAT_SIZE];

  if (!d || d->total_bytes == 0)
    return td_devices_dup_name (iteration, device);
  return g_strdup_printf ("%s, %s", td_iteration_get_string (iteration, d->name),
                          td_format_bytes (total, d->total_bytes));
}

TdScene *
td_memory_scene_events (const TdIteration *iteration, const TdMemoryProfile *profile,
                        const TdMemoryProfile *previous, guint64 pool, const TdPanelView *view)
{
  guint devices[TD_MEMORY_MAX_DEVICES];
  guint n = td_memory_list_devices (td_iteration_get_tape (iteration), devices);
  TdSceneRect area;
  TdSceneBuilder *b = begin_scene (view, &area);

  if (n == 0)
    {
      Stack s = { 0 };

      take_pools (b, iteration, 0, &area);
      stack_init (&s, view, b, &area);
      draw_events (&s, iteration, profile, previous, pool, 0, TRUE);
    }
  for (guint i = 0; i < n; i++)
    {
      /* one device of a snapshot has all that there is: a recount would be the same */
      TdMemoryProfile *own
          = n > 1 ? td_memory_profile_new_of (iteration, (gint)devices[i]) : NULL;
      const TdTapeDevice *d = td_devices_find (iteration, devices[i]);
      TdSceneRect place = place_of (&area, i, n);
      g_autofree char *title = dup_title (iteration, devices[i]);
      Stack s = { 0 };

      take_pools (b, iteration, devices[i], &place);
      stack_init (&s, view, b, &place);
      add_title (&s, title);
      draw_events (&s, iteration, own ? own : profile, NULL, d ? d->reserved_bytes : 0,
                   d ? d->outside_bytes : 0, i == 0);
      td_memory_profile_free (own);
    }
  return td_scene_builder_end (b);
}

/* Which column an iteration is in. */
static guint
column_of (const TdMemoryHistory *h, gint64 iteration)
{
  double span = (double)(h->last - h->first) + 1;
  guint at = 0;

  if (h->last >= h->first)
    return (guint)CLAMP (floor ((double)(iteration - h->first) * h->n / span), 0, h->n - 1.0);
  for (guint i = 0; i < h->n; i++)
    if (h->iteration[i] <= iteration)
      at = i;
  return at;
}

/* The middle of its place. */
static double
x_of_iteration (const Stack *s, const TdMemoryHistory *h, gint64 iteration)
{
  double span = (double)(h->last - h->first) + 1;

  if (h->last < h->first)
    return x_of (s, column_of (h, iteration) + 0.5);
  iteration = CLAMP (iteration, h->first, h->last);
  return s->plot.x + s->plot.width * ((double)(iteration - h->first) + 0.5) / span;
}

/* One device's memory over the iterations, or everything. */
static void
draw_iterations (Stack *s, const TdMemoryHistory *h, const guint64 *total, guint64 outside,
                 gboolean axes)
{
  g_autofree double *base = g_new0 (double, MAX (h->n, 1));
  TdStyle line = { .stroke = TD_ROLE_DIM, .stroke_width = 1.2 };
  TdTextStyle text = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = 0.5 };
  guint at = column_of (h, s->view->iteration);

  s->n = h->n;
  for (guint i = 0; i < h->n; i++)
    s->y_max = MAX (s->y_max, (double)total[i]);
  s->y_max = MAX (s->y_max, 1) * (outside > 0 ? 1.04 + 16 / s->plot.height : 1.04);
  if (axes && h->last >= h->first)
    set_axes (s, (double)h->first, (double)h->last + 1);
  add_y_axis (s);
  find_tallest (s, total, h->n);
  for (int i = 0; i < TD_TAPE_N_CATEGORIES; i++)
    add_area (s, td_category_order[i], h->known, h->n, base);
  g_clear_pointer (&s->tallest, g_free);
  add_outside (s, outside);
  add_outline (s, total, 0, h->n, &line);
  add_legend (s, at, total[at], 0);
  for (int i = 0; i <= 4; i++)
    {
      gint64 number = h->last >= h->first ? h->first + (h->last - h->first) * i / 4
                                          : h->iteration[(guint64)(guint)i * (h->n - 1) / 4];
      char label[24];

      if (i > 0 && (h->n < 5 || s->plot.width < 160) && i != 4)
        continue;
      g_snprintf (label, sizeof label, "%" G_GINT64_FORMAT, number);
      if (h->n > 1 || i == 0)
        td_scene_add_text (s->b, x_of_iteration (s, h, number), s->plot.y + s->plot.height + 11,
                           label, &text);
    }
  td_panel_add_playhead (s->b, x_of_iteration (s, h, s->view->iteration), s->plot.y - 12,
                         s->plot.y + s->plot.height);
}

TdScene *
td_memory_scene_iterations (const TdMemoryHistory *h, const TdPanelView *view)
{
  TdSceneBuilder *b;
  TdSceneRect area;

  if (h->n == 0)
    return td_panel_message (view, "No iteration has ended yet",
                             "Memory over iterations appears with the first one.");
  b = begin_scene (view, &area);
  if (h->n_devices == 0)
    {
      Stack s = { .bytes = h->bytes };

      stack_init (&s, view, b, &area);
      draw_iterations (&s, h, h->peak, 0, TRUE);
    }
  for (guint i = 0; i < h->n_devices; i++)
    {
      TdSceneRect place = place_of (&area, i, h->n_devices);
      Stack s = { .bytes = h->of_device[i] };

      stack_init (&s, view, b, &place);
      add_title (&s, h->device_name[i]);
      draw_iterations (&s, h, h->device_total[i], h->outside[i], i == 0);
    }
  return td_scene_builder_end (b);
}
