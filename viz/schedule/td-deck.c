/*
 * The two strips of the deck: all iterations above, the events of one below.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "td-curve-private.h"

static double
strip_x (const TdSceneRect *box, gint64 from, gint64 to, double iteration)
{
  return box->x + box->width * (iteration - (double)from) / (double)(to - from + 1);
}

/* Index of the first summary that is not before `number`; summaries are in order of time. */
static guint
lower_bound (const TdTapeSummaries *s, gint64 number)
{
  guint lo = 0, hi = s->n;

  while (lo < hi)
    {
      guint mid = (lo + hi) / 2;

      if ((gint64)s->rows[mid].number < number)
        lo = mid + 1;
      else
        hi = mid;
    }
  return lo;
}

#define BAD (TD_TAPE_ITERATION_NAN | TD_TAPE_ITERATION_INF | TD_TAPE_ITERATION_ERROR)
#define FINDINGS (BAD | TD_TAPE_ITERATION_GRAPH_CHANGED)

/* Memory as an area, and ticks where something was found: one pass over what is shown. */
static void
add_memory_and_ticks (TdSceneBuilder *b, const TdTapeSummaries *s, const TdSceneRect *box,
                      gint64 from, gint64 to)
{
  guint columns = (guint)MAX (box->width, 1);
  g_autofree guint64 *peak = g_new0 (guint64, columns);
  g_autofree guint32 *flags = g_new0 (guint32, columns);
  g_autofree gint64 *found = g_new0 (gint64, columns);
  guint64 highest = 1;
  TdStyle area = { .fill = TD_ROLE_ACTIVATION, .fill_alpha = 0.18 };

  for (guint i = lower_bound (s, from); i < s->n && (gint64)s->rows[i].number <= to; i++)
    {
      guint a = (guint)CLAMP (strip_x (box, from, to, (double)s->rows[i].number) - box->x, 0,
                              columns - 1);
      guint z = (guint)CLAMP (strip_x (box, from, to, (double)s->rows[i].number + 1) - box->x
                                  - 0.01,
                              a, columns - 1);

      for (guint c = a; c <= z; c++)
        peak[c] = MAX (peak[c], s->rows[i].peak_bytes);
      /* ticks stand where the playhead would: in the middle of the iteration */
      guint at = (guint)CLAMP (
          strip_x (box, from, to, (double)s->rows[i].number + 0.5) - box->x, 0, columns - 1);
      if (s->rows[i].flags & FINDINGS && !(flags[at] & FINDINGS))
        found[at] = (gint64)s->rows[i].number;
      flags[at] |= s->rows[i].flags;
      highest = MAX (highest, s->rows[i].peak_bytes);
    }
  g_autofree TdScenePoint *q = g_new (TdScenePoint, 2 * columns + 2);
  guint k = 0;
  for (guint c = 0; c < columns; c++)
    {
      /* as high as 60 %: the loss line keeps its room */
      double y = box->y + box->height * (1 - 0.6 * (double)peak[c] / (double)highest);

      q[k++] = (TdScenePoint){ box->x + c, y };
      q[k++] = (TdScenePoint){ box->x + c + 1, y };
    }
  q[k++] = (TdScenePoint){ box->x + box->width, box->y + box->height };
  q[k++] = (TdScenePoint){ box->x, box->y + box->height };
  td_scene_add_polygon (b, q, (int)k, &area);
  for (guint c = 0; c < columns; c++)
    {
      gboolean bad = (flags[c] & BAD) != 0;
      gboolean changed = (flags[c] & TD_TAPE_ITERATION_GRAPH_CHANGED) != 0;
      TdStyle tick
          = { .stroke = bad ? TD_ROLE_ERROR : TD_ROLE_CHANGED, .stroke_width = bad ? 2 : 1.2 };
      const TdScenePoint line[] = { { box->x + c + 0.5, box->y + box->height - (bad ? 12 : 6) },
                                    { box->x + c + 0.5, box->y + box->height } };

      if (!bad && !changed)
        continue;
      td_scene_mark (b, TD_TAG_ITERATION, 0, found[c],
                     bad ? "not finite, or an error" : "the graph, or sizes in it, changed");
      td_scene_add_line (b, line, 2, &tick);
      td_scene_unmark (b);
    }
}

static void
add_values_line (TdSceneBuilder *b, const TdSceneRect *box, double begin, double end)
{
  TdStyle line = { .fill = TD_ROLE_SAVED };

  td_scene_add_shape (b, TD_PRIM_RECT,
                      (TdSceneRect){ begin, box->y + box->height + 1, MAX (end - begin, 1), 2 },
                      0, &line);
}

/* A line below the iterations whose values are recorded: the others have none to look at. */
static void
add_values (TdSceneBuilder *b, const TdTapeSummaries *s, const TdSceneRect *box, gint64 from,
            gint64 to)
{
  double begin = -1, end = -1;

  for (guint i = lower_bound (s, from); i < s->n && (gint64)s->rows[i].number <= to; i++)
    {
      double x = strip_x (box, from, to, (double)s->rows[i].number);

      if (!(s->rows[i].flags & TD_TAPE_ITERATION_VALUES))
        continue;
      if (begin >= 0 && x > end + 0.5) /* a gap that can be seen */
        {
          add_values_line (b, box, begin, end);
          begin = -1;
        }
      begin = begin < 0 ? x : begin;
      end = strip_x (box, from, to, (double)s->rows[i].number + 1);
    }
  if (begin >= 0)
    add_values_line (b, box, begin, end);
}

/* A pole and a cloth; of several in one place all are there, one is seen. */
static void
add_flags (TdSceneBuilder *b, const TdSceneRect *box, gint64 from, gint64 to,
           const TdStripFlag *flags, guint n)
{
  TdStyle pole = { .stroke = TD_ROLE_WARNING, .stroke_width = 1.5 };
  TdStyle cloth = { .fill = TD_ROLE_WARNING };

  for (guint i = 0; i < n; i++)
    {
      double x = round (strip_x (box, from, to, (double)flags[i].iteration + 0.5)) + 0.5;
      double top = box->y - 2;
      const TdScenePoint line[] = { { x, top }, { x, box->y + box->height } };
      const TdScenePoint flag[] = { { x, top }, { x + 9, top + 4 }, { x, top + 8 } };

      if (flags[i].iteration < from || flags[i].iteration > to)
        continue;
      td_scene_mark (b, TD_TAG_ROW, 0, i, flags[i].text);
      td_scene_add_line (b, line, 2, &pole);
      td_scene_add_polygon (b, flag, 3, &cloth);
      td_scene_unmark (b);
    }
}

/* What is outside of the range is veiled; its ends are lines. */
static void
add_range (TdSceneBuilder *b, const TdSceneRect *box, gint64 from, gint64 to, TdRange range)
{
  double x[] = { box->x, strip_x (box, from, to, (double)CLAMP (range.first, from, to + 1)),
                 strip_x (box, from, to, (double)CLAMP (range.end, from, to + 1)),
                 box->x + box->width };
  TdStyle veil = { .fill = TD_ROLE_VIEW, .fill_alpha = 0.72 };
  TdStyle inside = { .fill = TD_ROLE_ACCENT, .fill_alpha = 0.10 };
  TdStyle end = { .stroke = TD_ROLE_ACCENT, .stroke_width = 1.5 };

  for (guint i = 0; i < 3; i++)
    if (x[i + 1] > x[i])
      td_scene_add_shape (b, TD_PRIM_RECT,
                          (TdSceneRect){ x[i], box->y - 2, x[i + 1] - x[i], box->height + 4 },
                          0, i == 1 ? &inside : &veil);
  for (guint i = 1; i < 3; i++)
    {
      const TdScenePoint line[] = { { x[i], box->y - 2 }, { x[i], box->y + box->height + 2 } };

      td_scene_add_line (b, line, 2, &end);
    }
}

TdScene *
td_deck_scene_iterations (const TdCurves *curves, TdTapeReader *reader, gint64 from, gint64 to,
                          const TdStripFlag *flags, guint n_flags, const TdPanelView *view)
{
  TdTapeSummaries s = td_tape_reader_summaries (reader);
  double w = view->width > 0 ? view->width : 1320, h = view->height > 0 ? view->height : 38;
  TdSceneBuilder *b = td_scene_builder_new (w, h);
  TdSceneRect card = { 0.5, 0.5, w - 1, h - 1 }, box = { 6, 4, w - 12, h - 8 };
  TdStyle ground = { .fill = TD_ROLE_VIEW, .stroke = TD_ROLE_HAIRLINE };
  TdStyle line = { .stroke = TD_ROLE_CURVE, .stroke_width = 1.5 };
  int main_curve = td_curves_main (curves);
  double lo, hi;

  td_scene_set_background (b, TD_ROLE_BAR);
  td_scene_add_shape (b, TD_PRIM_ROUND, card, 6, &ground);
  if (from >= to)
    {
      from = s.n > 0 ? (gint64)s.rows[0].number : 0;
      to = MAX (view->iteration, s.n > 0 ? (gint64)s.rows[s.n - 1].number : 0);
    }
  if (s.n > 0)
    {
      add_memory_and_ticks (b, &s, &box, from, to);
      add_values (b, &s, &box, from, to);
    }
  if (main_curve >= 0)
    {
      guint first, end;

      td__curve_find (curves, (guint)main_curve, from, to, &first, &end);
      td_curves_range (curves, (guint)main_curve, first, end, &lo, &hi);
      if (lo <= hi)
        {
          double pad = MAX ((hi - lo) * 0.08, 1e-9);
          td__curve_add (b, curves, (guint)main_curve, &box, from, to, lo - pad, hi + pad,
                         &line);
        }
    }
  TdSceneAxes axes = { .box = box, .x0 = (double)from, .x1 = (double)to + 1 };
  td_scene_set_axes (b, &axes);
  if (!td_range_is_all (view->range))
    add_range (b, &box, from, to, view->range);
  add_flags (b, &box, from, to, flags, n_flags);
  if (view->iteration >= from && view->iteration <= to)
    td_panel_add_playhead (b, strip_x (&box, from, to, (double)view->iteration + 0.5), 1,
                           h - 1);
  if (view->head >= 0 && to >= from)
    td_panel_add_head (b, strip_x (&box, from, to, (double)to + 0.5), h - 7);
  return td_scene_builder_end (b);
}

/* ---- events ---- */

static const struct
{
  const char *name;
  TdRole tint, line;
} zones[TD_TAPE_N_PHASES] = {
  [TD_TAPE_PHASE_FORWARD] = { "Forward", TD_ROLE_LANE_FORWARD, TD_ROLE_PARAMETER },
  [TD_TAPE_PHASE_BACKWARD] = { "Backward", TD_ROLE_LANE_BACKWARD, TD_ROLE_GRADIENT },
  [TD_TAPE_PHASE_ACCUMULATE] = { "Backward", TD_ROLE_LANE_BACKWARD, TD_ROLE_GRADIENT },
  [TD_TAPE_PHASE_UPDATE] = { "Update", TD_ROLE_LANE_UPDATE, TD_ROLE_OPTIMIZER },
};

/* Left end of event e, 0..1; e == n_events is the right end of the last. */
static double
event_at (const TdTapeIteration *t, guint e, gboolean by_time, double span)
{
  if (!by_time)
    return (double)e / MAX (t->n_events, 1);
  if (e >= t->n_events)
    return 1;
  return (double)t->event_start_ns[e] / span;
}

TdScene *
td_deck_scene_events (const TdIteration *iteration, gboolean by_time, TdRange shown,
                      const TdPanelView *view)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  double w = view->width > 0 ? view->width : 1320, h = view->height > 0 ? view->height : 24,
         span = 1;
  guint first = td_range_is_all (shown) ? 0 : (guint)CLAMP (shown.first, 0, t->n_events);
  guint end = td_range_is_all (shown) ? t->n_events : (guint)CLAMP (shown.end, 0, t->n_events);
  TdSceneBuilder *b = td_scene_builder_new (w, h);
  TdTextStyle name = { .role = TD_ROLE_TEXT, .size = TD_TEXT_STRIP };
  TdStyle tick = { .stroke = TD_ROLE_HAIRLINE };
  guint n = t->n_events;

  td_scene_set_background (b, TD_ROLE_BAR);
  if (n > 0 && by_time)
    span = MAX (1, (double)(t->event_start_ns[n - 1] + t->event_duration_ns[n - 1]));
  if (first >= end)
    {
      first = 0;
      end = n;
    }
  double left = event_at (t, first, by_time, span), right = event_at (t, end, by_time, span);
#define AT(e) (w * (event_at (t, (e), by_time, span) - left) / MAX (right - left, 1e-12))
  for (guint from = first, to; from < end; from = to)
    {
      guint phase = MIN (t->events[from].phase, TD_TAPE_N_PHASES - 1);
      const char *zone = zones[phase].name;

      for (to = from + 1;
           to < end && zones[MIN (t->events[to].phase, TD_TAPE_N_PHASES - 1)].name == zone;
           to++)
        ;
      double x0 = AT (from), x1 = AT (to);
      gint run_to = view->event < 0 ? (gint)to : CLAMP (view->event + 1, (gint)from, (gint)to);
      TdStyle tint = { .fill = zones[phase].tint }, line = { .fill = zones[phase].line };
      TdSceneRect r = { x0, 0, x1 - x0, h };

      td_scene_add_shape (b, TD_PRIM_RECT, r, 0, &tint);
      r = (TdSceneRect){ x0, h - 3, AT ((guint)run_to) - x0, 3 };
      if (r.width > 0)
        td_scene_add_shape (b, TD_PRIM_RECT, r, 0, &line);
      if (x1 - x0 > 70)
        td_scene_add_text (b, x0 + 8, h / 2 - 1,
                           t->flags & TD_TAPE_ITERATION_SNAPSHOT ? "Trace" : zone, &name);
    }
  /* the borders of events, while they can be told apart */
  if (n > 0 && !by_time && w / (end - first) >= 8)
    for (guint e = first + 1; e < end; e++)
      {
        const TdScenePoint q[]
            = { { round (AT (e)) + 0.5, 3 }, { round (AT (e)) + 0.5, h - 4 } };

        td_scene_add_line (b, q, 2, &tick);
      }
  TdSceneAxes axes = { .box = { 0, 0, w, h },
                       .x0 = by_time ? left * span : first,
                       .x1 = by_time ? right * span : end };
  td_scene_set_axes (b, &axes);
  if (view->event >= (gint)first && (guint)view->event < end)
    {
      double x0 = AT ((guint)view->event), x1 = AT ((guint)view->event + 1);
      double width = MAX (x1 - x0, 8);
      TdStyle frame = {
        .fill = TD_ROLE_ACCENT, .fill_alpha = 0.12, .stroke = TD_ROLE_ACCENT, .stroke_width = 2
      };
      TdStyle triangle = { .fill = TD_ROLE_ACCENT };

      td_scene_mark (b, TD_TAG_PLAYHEAD, t->events[view->event].key, view->event, NULL);
      td_scene_add_shape (b, TD_PRIM_ROUND,
                          (TdSceneRect){ (x0 + x1 - width) / 2 + 1, 1, width - 2, h - 2 }, 4,
                          &frame);
      td_scene_add_shape (b, TD_PRIM_PLAYHEAD, (TdSceneRect){ (x0 + x1) / 2 - 5, 0, 10, 6 }, 0,
                          &triangle);
      td_scene_unmark (b);
    }
  if (view->head >= (gint)first && (guint)view->head < end)
    td_panel_add_head (b, (AT ((guint)view->head) + AT ((guint)view->head + 1)) / 2, h / 2);
#undef AT
  return td_scene_builder_end (b);
}
