/*
 * The picture of a static function: where it stands, its steps, its buffers over them, its
 * guards and what happened to it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "graph/td-graph.h"
#include "td-statics-rows.h"
#include "td-statics-times.h"

#define ROW 22.0
#define HEAD 46.0
#define GANTT 190.0
#define LOOKED_AT 16 /* iterations, for what is drawn anew at every moment */

typedef struct
{
  TdSceneBuilder *b;
  const TdStatics *all;
  const TdStaticsFunction *c;
  const TdPanelView *view;
  guint8 *marked; /* rows of what is selected; NULL: none */
  double w, h;
} Picture;

static void
text_at (Picture *p, double x, double y, const char *text, TdRole role, double max_width,
         double align)
{
  TdTextStyle style
      = { .role = role, .size = TD_TEXT_CAPTION, .max_width = max_width, .align = align };

  td_scene_add_text (p->b, x, y, text, &style);
}

static const struct
{
  const char *mark;
  TdRole role;
} states[TD_TAPE_N_CHAIN_STATES] = {
  [TD_TAPE_CHAIN_OFF] = { "○", TD_ROLE_DIM },
  [TD_TAPE_CHAIN_TRACING] = { "◔", TD_ROLE_ACCENT },
  [TD_TAPE_CHAIN_SCHEDULED] = { "●", TD_ROLE_ADDED },
  [TD_TAPE_CHAIN_INVALID] = { "✕", TD_ROLE_ERROR },
};

static void
add_head (Picture *p)
{
  g_autofree char *headline = td_statics_headline (p->c);
  guint state = MIN (p->c->state.state, TD_TAPE_N_CHAIN_STATES - 1);
  TdTextStyle name = { .role = TD_ROLE_TEXT, .size = TD_TEXT_LIST, .bold = TRUE };
  double x = 30 + td_text_width (p->c->name, TD_TEXT_LIST, TRUE) + 14;
  TdStaticsUse use = td_statics_use (p->c, p->view->event);
  char planned[TD_FORMAT_SIZE], measured[TD_FORMAT_SIZE];

  text_at (p, 14, 14, states[state].mark, states[state].role, 0, 0);
  td_scene_add_text (p->b, 30, 14, p->c->name, &name);
  if (p->view->event >= 0 && p->c->state.n_replays > 0)
    {
      g_autofree char *text = td_statics_use_text (&use);
      TdTextStyle chip = { .role = TD_ROLE_STATIC, .size = TD_TEXT_CAPTION, .bold = TRUE };

      td_scene_add_text (p->b, x, 14, text, &chip);
      x += td_text_width (text, TD_TEXT_CAPTION, TRUE) + 14;
    }
  text_at (p, x, 14, headline, TD_ROLE_TEXT, p->w - x - 14, 0);
  if (p->c->tape)
    {
      const TdStaticsOverhead o = td_statics_overhead (p->all, p->c, LOOKED_AT);
      g_autofree char *overhead = td_statics_overhead_text (&o);
      g_autofree char *facts = g_strdup_printf (
          "%u %s; planned %s, measured %s%s; pruned %u, folded %u, merged %u, fused %u, in "
          "place %u%s%s",
          p->c->n_calls, td_plural (p->c->n_calls, "call", "calls"),
          td_format_bytes (planned, p->c->tape->head.arena_bytes),
          td_format_bytes (measured, p->all->measured_bytes),
          p->all->n_functions > 1 ? " of all functions" : "", p->c->tape->head.n_pruned,
          p->c->tape->head.n_folded, p->c->tape->head.n_merged, p->c->tape->head.n_fused,
          p->c->tape->head.n_in_place, overhead ? "; " : "", overhead ? overhead : "");

      text_at (p, 30, 33, facts, TD_ROLE_DIM, p->w - 44, 0);
    }
  else
    {
      g_autofree char *traced = td_traced_headline (p->c->traced);

      text_at (p, 30, 33,
               p->c->error           ? p->c->error
               : p->c->traced->n > 0 ? traced
                                     : "no schedule yet",
               p->c->error ? TD_ROLE_ERROR : TD_ROLE_DIM, p->w - 44, 0);
    }
}

gboolean
td_statics_row_is_listed (const TdStaticsRow *r)
{
  return r->tape->kind <= TD_TAPE_STEP_HOST_READ || r->tape->kind >= TD_TAPE_STEP_PROPAGATE;
}

static gboolean
is_marked (const Picture *p, guint row)
{
  const guint at = p->view->cursor;

  /* a member that is meant stands for itself, not for all of its group */
  if (at > 0 && at <= p->c->n_rows && td__statics_is_member (p->c->rows[at - 1].tape))
    return at == row + 1;
  return (p->marked && row < p->c->n_rows && p->marked[row]) || at == row + 1;
}

static void
add_step (Picture *p, const TdStaticsRow *r, double y, double w)
{
  const TdTapeStep *t = r->tape;
  gboolean member = t->kind != TD_TAPE_STEP_GROUP && t->group != TD_TAPE_NO_GROUP;
  gboolean gone = t->fate != TD_TAPE_FATE_RUNS;
  TdRole role = gone ? TD_ROLE_FAINT : member ? TD_ROLE_DIM : TD_ROLE_TEXT;
  TdStyle lane = { .fill = t->list > 0 ? TD_ROLE_LANE_BACKWARD : TD_ROLE_LANE_FORWARD };
  TdStyle group = { .fill = TD_ROLE_CARD, .stroke = TD_ROLE_FUSED };
  double indent = member ? 16 : 0;
  char number[24], bytes[TD_FORMAT_SIZE], ns[TD_FORMAT_SIZE];
  g_autofree char *name
      = t->kind == TD_TAPE_STEP_GROUP ? g_strdup_printf ("⇄ %u steps fused", t->group)
        : gone ? g_strdup_printf ("%s (%s)", r->op, td_tape_fate_name (t->fate))
               : g_strdup (r->op);

  g_snprintf (number, sizeof number, "%u", r->step);
  TdStyle ground = { .fill = TD_ROLE_NONE,
                     .stroke = is_marked (p, r->step) ? TD_ROLE_ACCENT : TD_ROLE_NONE,
                     .stroke_width = 2 };

  td_scene_mark (p->b, TD_TAG_ROW, td_statics_row_key (p->all, p->c, r->step, p->view->event),
                 r->step, r->site);
  td_scene_add_shape (p->b, TD_PRIM_ROUND,
                      (TdSceneRect){ 14, y - ROW / 2 + 1, w - 18, ROW - 2 }, 6, &ground);
  td_scene_add_shape (p->b, TD_PRIM_RECT, (TdSceneRect){ 8, y - ROW / 2, 4, ROW }, 0, &lane);
  if (t->kind == TD_TAPE_STEP_GROUP)
    td_scene_add_shape (p->b, TD_PRIM_ROUND, (TdSceneRect){ 48, y - 9, w - 56, 18 }, 5, &group);
  td_scene_unmark (p->b);
  text_at (p, 42, y, number, TD_ROLE_DIM, 0, 1);
  text_at (p, 54 + indent, y, name, role, w * 0.42 - indent, 0);
  if (w >= 340) /* or it would run into the numbers */
    text_at (p, 54 + w * 0.44, y, r->layer, TD_ROLE_DIM, w * 0.2, 0);
  if (r->ns > 0)
    text_at (p, w - 78, y, td_format_ns (ns, r->ns), role, 0, 1);
  if (t->n_out > 0)
    text_at (p, w - 12, y, td_format_bytes (bytes, r->bytes), role, 0, 1);
}

/* The step that the playhead stands before; -1: it is not in the schedule. */
static gint
step_here (const Picture *p)
{
  return p->view->event >= 0 && (guint)p->view->event < p->c->n_row_events
             ? p->c->row_of_event[p->view->event]
             : -1;
}

/* The row that the list stands at: the keyboard's, the selection's or the playhead's; -1: the
 * first. */
static gint
anchor (const Picture *p)
{
  if (p->view->cursor > 0)
    return (gint)p->view->cursor - 1;
  for (guint i = 0; p->view->at_selection && p->marked && i < p->c->n_rows; i++)
    if (p->marked[i])
      return (gint)i;
  return step_here (p);
}

/* As many rows as there is room for, around the anchor. */
static void
add_steps (Picture *p, TdSceneRect box)
{
  g_autofree guint *shown = g_new (guint, MAX (p->c->n_rows, 1));
  guint n = 0, room = (guint)MAX (1, box.height / ROW), middle = 0, first;
  gint here = step_here (p), at = anchor (p);

  for (guint i = 0; i < p->c->n_rows; i++)
    if (td_statics_row_is_listed (&p->c->rows[i]))
      {
        middle = at >= 0 && i <= (guint)at ? n : middle;
        shown[n++] = i;
      }
  first = middle > room / 2 ? MIN (middle - room / 2, n > room ? n - room : 0) : 0;
  for (guint k = 0; k < room && first + k < n; k++)
    {
      const TdStaticsRow *row = &p->c->rows[shown[first + k]];
      double y = box.y + ROW * (k + 0.5);
      TdStyle selected = { .fill = TD_ROLE_SELECTED_ROW };

      if ((gint)row->step == here)
        td_scene_add_shape (p->b, TD_PRIM_ROUND,
                            (TdSceneRect){ 14, y - ROW / 2, box.width - 18, ROW }, 6,
                            &selected);
      if (k + 1 == room && first + room < n)
        {
          g_autofree char *rest = g_strdup_printf ("and %u more %s", n - first - k,
                                                   td_plural (n - first - k, "step", "steps"));

          text_at (p, 54, y, rest, TD_ROLE_DIM, box.width - 60, 0);
        }
      else
        add_step (p, row, y, box.width);
    }
}

/* A schedule that grows: its newest entries, as many as there is room for. */
static void
add_traced (Picture *p)
{
  gint event = p->view->event; /* it has run */
  guint n = td_traced_count_at (p->c->traced, event < 0 ? -1 : event + 1);
  guint room = (guint)MAX (1, (p->h - HEAD - 8) / ROW), first = n > room ? n - room : 0;

  for (guint i = first; i < n; i++)
    {
      const TdTracedRow *r = &p->c->traced->rows[i];
      double y = HEAD + ROW * (i - first + 0.5);
      TdStyle lane
          = { .fill = r->tape.list > 0 ? TD_ROLE_LANE_BACKWARD : TD_ROLE_LANE_FORWARD };
      char number[24];

      g_snprintf (number, sizeof number, "%u", r->tape.number);
      td_scene_mark (p->b, TD_TAG_ROW, 0, i, r->site);
      td_scene_add_shape (p->b, TD_PRIM_RECT, (TdSceneRect){ 8, y - ROW / 2, 4, ROW }, 0,
                          &lane);
      td_scene_unmark (p->b);
      text_at (p, 42, y, number, TD_ROLE_DIM, 0, 1);
      text_at (p, 54, y, r->op, TD_ROLE_TEXT, p->w * 0.3, 0);
      text_at (p, 54 + p->w * 0.32, y, r->layer, TD_ROLE_DIM, p->w * 0.3, 0);
      text_at (p, p->w - 12, y, r->site, TD_ROLE_DIM, p->w * 0.3, 1);
    }
}

static double
add_title (Picture *p, double x, double y, const char *title)
{
  TdTextStyle style = { .role = TD_ROLE_TEXT, .size = TD_TEXT_CAPTION, .bold = TRUE };

  td_scene_add_text (p->b, x, y, title, &style);
  return y + ROW;
}

/* One line with a mark in front; FALSE when there is no room for it. */
static gboolean
add_fact (Picture *p, TdSceneRect box, double *y, const char *mark, TdRole role,
          const char *text, const char *site)
{
  if (*y > box.y + box.height)
    return FALSE;
  text_at (p, box.x, *y, mark, role, 0, 0);
  td_scene_mark (p->b, TD_TAG_NONE, 0, 0, site);
  text_at (p, box.x + 18, *y, text, role == TD_ROLE_ADDED ? TD_ROLE_TEXT : role, box.width - 20,
           0);
  td_scene_unmark (p->b);
  *y += ROW - 3;
  return TRUE;
}

static void
add_guards (Picture *p, TdSceneRect box)
{
  TdTapeReader *r = p->all->reader;
  double y = add_title (p, box.x, box.y + 8, "Guards");
  char site[512];

  for (guint i = 0; i < p->c->ran_once->n; i++)
    {
      const TdRanOnceRow *row = &p->c->ran_once->rows[i];
      g_autofree char *what = td_ran_once_text (row);
      g_autofree char *text = g_strdup_printf ("%s  %s:%u", what, row->file, row->line);

      if (!add_fact (p, box, &y, "⚠", TD_ROLE_WARNING, text, text))
        return;
    }
  for (guint i = p->c->n_events; i-- > 0;)
    if (p->c->events[i]->what == TD_TAPE_STATIC_MISSED
        || p->c->events[i]->what == TD_TAPE_STATIC_DIFFERS)
      {
        g_autofree char *what = td_statics_event_text (r, p->c->events[i]);
        g_autofree char *text = g_strdup_printf ("iteration %" G_GUINT64_FORMAT " %s",
                                                 p->c->events[i]->iteration, what);

        if (!add_fact (p, box, &y, "✕", TD_ROLE_ERROR, text, text))
          return;
        break; /* the last one; the list has them all */
      }
  for (guint i = 0; i < p->c->tape->n_guards; i++)
    {
      const TdTapeGuard *g = &p->c->tape->guards[i];

      td_tape_reader_site_text (r, g->site, site, sizeof site);
      if (!add_fact (p, box, &y, "✓", TD_ROLE_ADDED, td_tape_reader_string (r, g->text), site))
        return;
    }
}

/* Bars over steps, at the place where the gantt's own picture has them. */
static void
add_gantt (Picture *p, TdSceneRect box)
{
  const TdGantt *g = p->c->gantt;
  double extent = (double)MAX (MAX (g->extent, g->planned_bytes), 1);
  TdSceneRect plot = { box.x + 52, box.y + 20, box.width - 64, box.height - 30 };
  char bytes[TD_FORMAT_SIZE];
  const TdScenePoint base[]
      = { { plot.x, plot.y + plot.height }, { plot.x + plot.width, plot.y + plot.height } };
  const TdScenePoint top[] = { { plot.x, plot.y }, { plot.x + plot.width, plot.y } };
  TdStyle line = { .stroke = TD_ROLE_HAIRLINE };
  TdStyle bound = { .stroke = TD_ROLE_TEXT, .dash = TD_DASH_FINE };

  add_title (p, box.x + 14, box.y + 6, "Buffers");
  td_scene_add_line (p->b, base, 2, &line);
  td_scene_add_line (p->b, top, 2, &bound);
  text_at (p, plot.x - 6, plot.y + plot.height, "0", TD_ROLE_DIM, 0, 1);
  text_at (p, plot.x - 6, plot.y, td_format_bytes (bytes, (guint64)extent), TD_ROLE_DIM, 0, 1);
  for (guint i = 0; i < g->n_bars; i++)
    {
      const TdGanttBar *bar = &g->bars[i];
      double unit = plot.width / MAX (g->n_steps, 1), scale = plot.height / extent;
      TdSceneRect r
          = { plot.x + unit * bar->from,
              plot.y + plot.height - scale * (double)(bar->offset + bar->bytes),
              MAX (1, unit * (bar->to - bar->from)), MAX (1, scale * (double)bar->bytes) };
      TdStyle style = { .fill = td_category_role (bar->category),
                        .pattern = td_category_pattern (bar->category),
                        .stroke = TD_ROLE_VIEW,
                        .stroke_width = 0.8,
                        .flags = TD_PRIM_AREA };

      if (bar->event >= 0 && is_marked (p, (guint)bar->event))
        {
          style.stroke = TD_ROLE_ACCENT;
          style.stroke_width = 3;
        }
      g_autofree char *tip
          = g_strdup_printf ("%s, %s, steps %u to %u", bar->name,
                             td_format_bytes (bytes, bar->bytes), bar->from, bar->to - 1);

      td_scene_mark (p->b, TD_TAG_ROW,
                     bar->event >= 0
                         ? td_statics_row_key (p->all, p->c, (guint)bar->event, p->view->event)
                         : 0,
                     bar->event, tip);
      td_scene_add_shape (p->b, TD_PRIM_RECT, r, 0, &style);
      td_scene_unmark (p->b);
      if (r.width > 60 && r.height > 14)
        {
          TdStyle ground = { .fill = TD_ROLE_CARD, .fill_alpha = 0.9 };
          double wide
              = MIN (td_text_width (bar->name, TD_TEXT_CAPTION, FALSE) + 8, r.width - 8);

          td_scene_add_shape (p->b, TD_PRIM_ROUND,
                              (TdSceneRect){ r.x + 4, r.y + r.height / 2 - 7, wide, 14 }, 3,
                              &ground);
          text_at (p, r.x + 8, r.y + r.height / 2, bar->name, TD_ROLE_TEXT, wide - 6, 0);
        }
    }
}

TdScene *
td_statics_scene (const TdStatics *all, guint function, const TdPanelView *view)
{
  Picture p = { .all = all, .view = view };
  double w = view->width > 0 ? view->width : 900, left;
  guint n = 0;

  if (function >= all->n_functions)
    return td_panel_message (view, "No static function",
                             "There is no such function on the tape.");
  p.c = &all->functions[function];
  for (guint i = 0; i < p.c->n_rows; i++)
    n += td_statics_row_is_listed (&p.c->rows[i]);
  if (!p.c->tape)
    n = p.c->traced->n;
  if (view->n_selected > 0)
    {
      g_autofree guint8 *events = td_viz_graph_mark_events (td_iteration_get_graph (all->it),
                                                            view->selected, view->n_selected);

      p.marked = td_statics_mark_rows (p.c, events);
    }
  p.w = w;
  p.h = view->height > 0 ? view->height
                         : HEAD + MAX (ROW * n, ROW * 12) + (p.c->tape ? GANTT : 0) + 12;
  p.b = td_scene_builder_new (p.w, p.h);
  td_scene_set_background (p.b, TD_ROLE_VIEW);
  add_head (&p);
  if (p.c->tape)
    {
      gboolean wide = w >= 420;
      double gantt = p.h > HEAD + GANTT + 80 ? GANTT : 0, body = p.h - HEAD - gantt - 8;

      left = wide ? w * 0.58 : w;
      add_steps (&p, (TdSceneRect){ 0, HEAD, left, wide ? body : body * 0.6 });
      add_guards (&p, wide ? (TdSceneRect){ left + 14, HEAD, w - left - 22, body - ROW }
                           : (TdSceneRect){ 14, HEAD + body * 0.6, w - 22, body * 0.4 - ROW });
      if (gantt > 0)
        add_gantt (&p, (TdSceneRect){ 0, p.h - gantt, w, gantt - 8 });
    }
  else
    add_traced (&p);
  g_free (p.marked);
  return td_scene_builder_end (p.b);
}
