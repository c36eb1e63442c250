/*
 * A lane for each rank on the first one's clock: what it computed, what it waited for others,
 * and what it sent and received.  In calls without a meeting of their own these two are one
 * element, which the others' clocks part: it waits until the last has come.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "td-ranks-step.h"

#define NAME 150.0
#define TOP 44.0
#define BOTTOM 26.0
#define LANE 46.0
#define PIECES 2000 /* an iteration is cut into: shorter pauses between operations are none */

typedef enum
{
  LANE_FORWARD,
  LANE_BACKWARD,
  LANE_UPDATE,
  LANE_MEETS,
  LANE_SENDS,
  LANE_BEHIND, /* transfers that nobody waited for */
  LANE_N_KINDS
} LaneKind;

static const struct
{
  const char *name, *title;
  TdRole role;
  TdPattern pattern;
} looks[LANE_N_KINDS] = {
  [LANE_FORWARD] = { "forward", "forward", TD_ROLE_PARAMETER, TD_PATTERN_NONE },
  [LANE_BACKWARD] = { "backward", "backward", TD_ROLE_GRADIENT, TD_PATTERN_NONE },
  [LANE_UPDATE] = { "update", "update", TD_ROLE_OPTIMIZER, TD_PATTERN_NONE },
  [LANE_MEETS] = { "waits", "waits for others", TD_ROLE_WARNING, TD_PATTERN_HATCH_UP },
  [LANE_SENDS] = { "transfers", "transfers", TD_ROLE_COMMUNICATION, TD_PATTERN_NONE },
  [LANE_BEHIND]
  = { "behind", "transfers behind other work", TD_ROLE_COMMUNICATION, TD_PATTERN_HATCH_UP },
};
static const LaneKind kind_of_phase[TD_TAPE_N_PHASES] = {
  [TD_TAPE_PHASE_FORWARD] = LANE_FORWARD,
  [TD_TAPE_PHASE_BACKWARD] = LANE_BACKWARD,
  [TD_TAPE_PHASE_ACCUMULATE] = LANE_BACKWARD,
  [TD_TAPE_PHASE_UPDATE] = LANE_UPDATE,
};

/* A piece of a lane; times are the first rank's. */
typedef struct
{
  LaneKind kind;
  gint64 from, to;
  guint wait;       /* of the iteration; G_MAXUINT: operations */
  gboolean is_open; /* a wait that never ended */
} Piece;

typedef struct
{
  gboolean here;
  gint64 from, to;
  guint64 sums[LANE_N_KINDS];
  GArray *pieces;
} Lane;

typedef struct
{
  const TdRanksStep *step;
  guint n;
  Lane *lanes;
  gint64 from, to;
} Lanes;

static void
clear_lanes (Lanes *l)
{
  for (guint i = 0; i < l->n; i++)
    g_clear_pointer (&l->lanes[i].pieces, g_array_unref);
  g_free (l->lanes);
}

/* Operations of one phase that follow each other closely are one piece. */
static void
take_events (Lane *lane, const TdTapeIteration *it, gint64 begin)
{
  guint64 least = it->duration_ns / PIECES;
  Piece *last = NULL;

  for (guint e = 0; e < it->n_events; e++)
    {
      gint64 from = begin + (gint64)it->event_start_ns[e],
             to = from + (gint64)it->event_duration_ns[e];
      LaneKind kind = kind_of_phase[MIN (it->events[e].phase, TD_TAPE_N_PHASES - 1)];

      lane->sums[kind] += it->event_duration_ns[e];
      if (last && last->kind == kind && from <= last->to + (gint64)least)
        {
          last->to = MAX (last->to, to);
          continue;
        }
      Piece piece = { .kind = kind, .from = from, .to = to, .wait = G_MAXUINT };
      g_array_append_val (lane->pieces, piece);
      last = &g_array_index (lane->pieces, Piece, lane->pieces->len - 1);
    }
}

static void
add_piece (Lane *lane, const Piece *piece)
{
  lane->sums[piece->kind] += (guint64)(piece->to - piece->from);
  g_array_append_val (lane->pieces, *piece);
}

static const TdRung *
find_rung (const TdRanksStep *step, const TdTapeCollective *w)
{
  for (guint i = 0; i < step->rungs->len; i++)
    {
      const TdRung *rung = g_ptr_array_index (step->rungs, i);

      if (rung->comm == w->comm && rung->seq == w->seq)
        return rung;
    }
  return NULL;
}

/* Until the last has come it waits, and then it takes part. */
static void
add_parted (Lane *lane, const TdRanksStep *step, guint place, const TdTapeCollective *w,
            Piece piece)
{
  const TdRung *rung = find_rung (step, w);
  Piece after = piece;
  gint64 last;

  if (!rung || rung->sides[place].meets || w->wait == TD_TAPE_WAIT_MEET)
    {
      add_piece (lane, &piece);
      return;
    }
  piece.kind = LANE_MEETS;
  if (!piece.is_open && td__rung_find_last (step->ranks, rung, place, &last))
    piece.to = after.from = CLAMP (last, piece.from, piece.to);
  else if (!piece.is_open)
    piece.to = piece.from; /* for nobody */
  if (piece.is_open || piece.to > piece.from)
    add_piece (lane, &piece);
  if (!piece.is_open && after.to > after.from)
    add_piece (lane, &after);
}

/* What happened before the iteration is not of it. */
static void
take_waits (Lane *lane, const TdRanksStep *step, guint place)
{
  const TdRankIteration *it = step->row->of[place];
  gint64 offset = step->ranks->tapes[place].open.offset_ns;

  for (guint i = 0; i < it->n_waits; i++)
    {
      const TdTapeCollective *w = &it->waits[i];
      Piece piece = { .kind = w->wait == TD_TAPE_WAIT_MEET ? LANE_MEETS : LANE_SENDS,
                      .from = (gint64)w->start_ns + offset,
                      .wait = i,
                      .is_open = (w->flags & TD_TAPE_COLLECTIVE_WAITS) != 0 };
      gboolean behind = (w->flags & TD_TAPE_COLLECTIVE_BEHIND) != 0;

      if ((w->flags & TD_TAPE_COLLECTIVE_BEFORE) || w->wait >= TD_TAPE_N_WAITS)
        continue;
      piece.to = piece.from + (gint64)w->duration_ns;
      if (behind) /* it may have begun in the iteration before */
        {
          piece.kind = LANE_BEHIND;
          piece.from = CLAMP (piece.from, lane->from, MAX (piece.to, lane->from));
          add_piece (lane, &piece);
        }
      else
        add_parted (lane, step, place, w, piece);
    }
}

static void
take_ends (Lane *lane)
{
  for (guint i = 0; i < lane->pieces->len; i++)
    {
      const Piece *p = &g_array_index (lane->pieces, Piece, i);

      lane->from = MIN (lane->from, p->from);
      lane->to = MAX (lane->to, p->to);
    }
}

static void
init_lanes (Lanes *l, TdRanksStep *step)
{
  TdRanks *ranks = step->ranks;

  memset (l, 0, sizeof *l);
  l->step = step;
  l->n = ranks->n;
  l->lanes = g_new0 (Lane, l->n);
  l->from = G_MAXINT64;
  l->to = G_MININT64;
  for (guint i = 0; i < l->n; i++)
    {
      Lane *lane = &l->lanes[i];
      const TdRankIteration *it = step->row->of[i];
      g_autoptr (TdIteration) whole = NULL;

      lane->pieces = g_array_new (FALSE, FALSE, sizeof (Piece));
      if (!it || !ranks->tapes[i].open.has_offset)
        continue;
      lane->here = TRUE;
      lane->from = (gint64)it->start_ns + ranks->tapes[i].open.offset_ns;
      lane->to = lane->from + (gint64)it->duration_ns;
      whole = td__ranks_load (ranks, i, it->number);
      if (whole)
        take_events (lane, td_iteration_get_tape (whole), lane->from);
      take_waits (lane, step, i);
      take_ends (lane);
      l->from = MIN (l->from, lane->from);
      l->to = MAX (l->to, lane->to);
    }
  if (l->to <= l->from)
    l->to = l->from + 1;
}

/* A wait that never ended goes on to the end of what is shown. */
static gint64
end_of (const Lanes *l, const Piece *p)
{
  return p->is_open ? l->to : p->to;
}

/* ---- the picture ---- */

typedef struct
{
  TdSceneBuilder *b;
  const Lanes *lanes;
  TdSceneRect plot;
} Picture;

static double
x_of (const Picture *p, gint64 ns)
{
  return p->plot.x
         + p->plot.width * (double)(ns - p->lanes->from)
               / (double)(p->lanes->to - p->lanes->from);
}

static char *
dup_tip (const Lanes *l, guint place, const Piece *piece)
{
  const TdRanks *ranks = l->step->ranks;
  char ns[TD_FORMAT_SIZE];
  g_autofree char *site = NULL;
  const TdTapeCollective *w;

  td_format_ns (ns, (guint64)(end_of (l, piece) - piece->from));
  if (piece->wait == G_MAXUINT)
    return g_strdup_printf ("rank %u: %s, %s", ranks->tapes[place].open.rank,
                            looks[piece->kind].title, ns);
  w = &l->step->row->of[place]->waits[piece->wait];
  site = td__ranks_dup_site (ranks, place, w->site);
  return g_strdup_printf (
      "rank %u: %s in %s%s%s, %s", ranks->tapes[place].open.rank, looks[piece->kind].title,
      td_tape_reader_string (ranks->tapes[place].reader, w->call), site ? " at " : "",
      site ? site : "", piece->is_open ? "and never left" : ns);
}

static void
add_lane (const Picture *p, guint place)
{
  const Lane *lane = &p->lanes->lanes[place];
  double y = p->plot.y + LANE * place;
  const TdScenePoint base[]
      = { { p->plot.x, y + LANE - 4 }, { p->plot.x + p->plot.width, y + LANE - 4 } };
  TdStyle line = { .stroke = TD_ROLE_HAIRLINE };
  TdTextStyle none = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION };
  double drawn[LANE_N_KINDS] = { 0 };

  td_scene_add_line (p->b, base, 2, &line);
  if (!lane->here)
    {
      td_scene_add_text (
          p->b, p->plot.x + 4, y + LANE / 2,
          p->lanes->step->row->of[place] ? "its clock is not known" : "not on its tape", &none);
      return;
    }
  for (guint i = 0; i < lane->pieces->len; i++)
    {
      const Piece *piece = &g_array_index (lane->pieces, Piece, i);
      gboolean wait = piece->wait != G_MAXUINT;
      double x = x_of (p, piece->from), end = x_of (p, end_of (p->lanes, piece));
      TdStyle style = { .fill = looks[piece->kind].role,
                        .pattern = looks[piece->kind].pattern,
                        .flags = TD_PRIM_AREA };
      g_autofree char *tip = NULL;

      end = MAX (end, x + 1);
      if (end < drawn[piece->kind] + 0.5)
        continue;
      drawn[piece->kind] = end;
      if (piece->is_open)
        {
          style.stroke = TD_ROLE_ERROR;
          style.dash = TD_DASH_DASHED;
        }
      tip = dup_tip (p->lanes, place, piece);
      td_scene_mark (p->b, TD_TAG_ROW, 0, place, tip);
      td_scene_add_shape (p->b, TD_PRIM_RECT,
                          piece->kind == LANE_BEHIND
                              ? (TdSceneRect){ x, y + 38, end - x, 4 }
                              : (TdSceneRect){ x, y + (wait ? 22 : 4), end - x, 16 },
                          0, &style);
      td_scene_unmark (p->b);
    }
}

static void
add_name (const Picture *p, guint place)
{
  const TdRank *rank = &p->lanes->step->ranks->tapes[place].open;
  double y = p->plot.y + LANE * place;
  TdTextStyle name = { .role = TD_ROLE_TEXT, .size = TD_TEXT_CAPTION, .bold = TRUE };
  TdTextStyle dim
      = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .max_width = NAME - 20, .middle = TRUE };
  char error[TD_FORMAT_SIZE];
  g_autofree char *title = g_strdup_printf ("Rank %u", rank->rank);
  g_autofree char *clock
      = rank->error_ns == 0
            ? g_strdup (rank->host)
            : g_strdup_printf ("%s ± %s", rank->host, td_format_ns (error, rank->error_ns));

  td_scene_add_text (p->b, 12, y + 12, title, &name);
  td_scene_add_text (p->b, 12, y + 29, clock, &dim);
}

static void
add_axis (const Picture *p)
{
  double span = (double)(p->lanes->to - p->lanes->from),
         step = td_format_step (span, (int)MAX (p->plot.width / 110, 2));
  TdStyle line = { .stroke = TD_ROLE_HAIRLINE };
  TdTextStyle text = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = 0.5 };
  double foot = p->plot.y + p->plot.height;

  for (double v = 0; v <= span; v += step)
    {
      double x = round (x_of (p, p->lanes->from + (gint64)v)) + 0.5;
      const TdScenePoint q[] = { { x, p->plot.y }, { x, foot } };
      char label[TD_FORMAT_SIZE];

      td_scene_add_line (p->b, q, 2, &line);
      td_scene_add_text (p->b, x, foot + 12, td_format_ns (label, (guint64)v), &text);
    }
}

static void
add_legend (const Picture *p)
{
  double width = 0, right = p->plot.x + p->plot.width, x;
  TdTextStyle text = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS };

  for (guint k = 0; k < LANE_N_KINDS; k++)
    width += 26 + td_text_width (looks[k].title, TD_TEXT_AXIS, FALSE);
  x = CLAMP (right - width, 12,
             p->plot.x); /* where it has no room it begins before the lanes */
  for (guint k = 0; k < LANE_N_KINDS; k++)
    {
      TdStyle swatch
          = { .fill = looks[k].role, .pattern = looks[k].pattern, .flags = TD_PRIM_AREA };

      td_scene_add_shape (p->b, TD_PRIM_RECT, (TdSceneRect){ x, 26, 10, 10 }, 0, &swatch);
      td_scene_add_text (p->b, x + 14, 31, looks[k].title, &text);
      x += 26 + td_text_width (looks[k].title, TD_TEXT_AXIS, FALSE);
    }
}

TdScene *
td_ranks_lanes_scene (TdRanksStep *step, const TdPanelView *view)
{
  double width = view->width > 0 ? view->width : 900;
  double height = MAX (view->height, TOP + LANE * step->ranks->n + BOTTOM);
  g_autofree char *where = td__ranks_step_dup_title (step),
                  *title = g_strconcat (where, ", on rank ", NULL), *all = NULL;
  TdTextStyle head = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION, .max_width = width - 24 };
  Lanes lanes;
  Picture p = { .lanes = &lanes };

  init_lanes (&lanes, step);
  all = g_strdup_printf ("%s%u's clock", title, step->ranks->tapes[0].open.rank);
  p.b = td_scene_builder_new (width, height);
  p.plot = (TdSceneRect){ NAME, TOP, MAX (width - NAME - 30, 40), LANE * lanes.n };
  td_scene_set_background (p.b, TD_ROLE_VIEW);
  td_scene_add_text (p.b, 12, 12, all, &head);
  add_legend (&p);
  add_axis (&p);
  for (guint i = 0; i < lanes.n; i++)
    {
      add_name (&p, i);
      add_lane (&p, i);
    }
  clear_lanes (&lanes);
  return td_scene_builder_end (p.b);
}

/* ---- text and JSON ---- */

static void
print_lane (const Lanes *l, guint place, GString *out)
{
  const Lane *lane = &l->lanes[place];
  char ns[TD_FORMAT_SIZE];

  g_string_append_printf (out, "rank %u:", l->step->ranks->tapes[place].open.rank);
  if (!lane->here)
    g_string_append (out,
                     l->step->row->of[place] ? " its clock is not known" : " not on its tape");
  else
    g_string_append_printf (out, " begins at +%s,",
                            td_format_ns (ns, (guint64)(lane->from - l->from)));
  for (guint k = 0; lane->here && k < LANE_N_KINDS; k++)
    g_string_append_printf (out, "%s %s %s", k ? "," : "", looks[k].title,
                            td_format_ns (ns, lane->sums[k]));
  g_string_append_c (out, '\n');
}

static void
json_piece (TdJson *j, const Lanes *l, guint place, const Piece *p)
{
  td_json_begin_object (j);
  td_json_member_string (j, "kind", looks[p->kind].name);
  td_json_member_int (j, "start_ns", p->from);
  td_json_key (j, "ns");
  if (p->is_open)
    td_json_null (j);
  else
    td_json_int (j, p->to - p->from);
  if (p->wait != G_MAXUINT)
    {
      const TdTapeCollective *w = &l->step->row->of[place]->waits[p->wait];
      g_autofree char *site = td__ranks_dup_site (l->step->ranks, place, w->site);

      td_json_member_string (
          j, "call", td_tape_reader_string (l->step->ranks->tapes[place].reader, w->call));
      td_json_member_string (j, "site", site);
      td_json_member_int (j, "bytes", (gint64)w->bytes);
      td_json_member_string (j, "wait", td_tape_wait_name (w->wait));
    }
  td_json_end_object (j);
}

static void
json_lane (TdJson *j, const Lanes *l, guint place)
{
  const Lane *lane = &l->lanes[place];

  td_json_begin_object (j);
  td_json_member_int (j, "rank", l->step->ranks->tapes[place].open.rank);
  td_json_member_bool (j, "here", lane->here);
  for (guint k = 0; k < LANE_N_KINDS; k++)
    {
      g_autofree char *key = g_strconcat (looks[k].name, "_ns", NULL);

      td_json_member_int (j, key, (gint64)lane->sums[k]);
    }
  td_json_key (j, "pieces");
  td_json_begin_array (j);
  for (guint i = 0; i < lane->pieces->len; i++)
    json_piece (j, l, place, &g_array_index (lane->pieces, Piece, i));
  td_json_end_array (j);
  td_json_end_object (j);
}

static void
csv_lane (const Lanes *l, guint place, GString *out)
{
  const Lane *lane = &l->lanes[place];

  for (guint i = 0; i < lane->pieces->len; i++)
    {
      const Piece *p = &g_array_index (lane->pieces, Piece, i);
      const TdTapeCollective *w
          = p->wait != G_MAXUINT ? &l->step->row->of[place]->waits[p->wait] : NULL;
      g_autofree char *site = w ? td__ranks_dup_site (l->step->ranks, place, w->site) : NULL;

      g_string_append_printf (out, "%d,%s,%" G_GINT64_FORMAT ",",
                              l->step->ranks->tapes[place].open.rank, looks[p->kind].name,
                              (gint64)p->from);
      if (!p->is_open)
        g_string_append_printf (out, "%" G_GINT64_FORMAT, (gint64)(p->to - p->from));
      g_string_append_c (out, ',');
      if (w)
        {
          td_csv_append (out,
                         td_tape_reader_string (l->step->ranks->tapes[place].reader, w->call));
          g_string_append_c (out, ',');
          td_csv_append (out, site);
          g_string_append_printf (out, ",%" G_GUINT64_FORMAT, (guint64)w->bytes);
        }
      else
        g_string_append (out, ",,");
      g_string_append_c (out, '\n');
    }
}

char *
td_ranks_lanes_print (TdRanksStep *step, const char *format)
{
  GString *out = g_string_new (NULL);
  Lanes lanes;
  TdJson j;

  init_lanes (&lanes, step);
  if (g_str_equal (format, "json"))
    {
      td__ranks_step_begin_json (step, &j, out);
      td_json_key (&j, "lanes");
      td_json_begin_array (&j);
      for (guint i = 0; i < lanes.n; i++)
        json_lane (&j, &lanes, i);
      td_json_end_array (&j);
      td_json_end_object (&j);
    }
  else if (g_str_equal (format, "csv"))
    {
      g_string_append (out, "rank,kind,start_ns,ns,call,site,bytes\n");
      for (guint i = 0; i < lanes.n; i++)
        csv_lane (&lanes, i, out);
    }
  else
    {
      g_autofree char *title = td__ranks_step_dup_title (step);

      g_string_append_printf (out, "%s\n", title);
      for (guint i = 0; i < lanes.n; i++)
        print_lane (&lanes, i, out);
    }
  clear_lanes (&lanes);
  return g_string_free (out, FALSE);
}
