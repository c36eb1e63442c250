/*
 * The ladder of calls: a rail for each rank, a rung for each call, from top to bottom.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-ranks-step.h"

#define MARGIN 12.0
#define HEAD 46.0
#define ROW 30.0
#define NAME 240.0 /* width of a call's name */
#define RAIL 84.0  /* between two rails */
#define DOT 6.0

/* Where ranks wait, the last calls say more than those of any step. */
static GPtrArray *
list_rungs (const TdRanksStep *step, gboolean *is_end)
{
  GPtrArray *rungs;

  *is_end = FALSE;
  for (guint i = 0; i < step->ranks->n; i++)
    *is_end = *is_end
              || (step->row->of[i] && step->row->of[i]->is_partial
                  && td__ranks_has (step->ranks, TD_RANKS_HANG));
  if (*is_end)
    return td__ranks_list_last (step->ranks);
  rungs = g_ptr_array_new ();
  for (guint i = 0; i < step->rungs->len; i++)
    g_ptr_array_add (rungs, g_ptr_array_index (step->rungs, i));
  return rungs;
}

typedef struct
{
  TdSceneBuilder *b;
  const TdRanks *ranks;
  double rails; /* x of the first */
  double height;
} Ladder;

static double
x_of (const Ladder *l, guint place)
{
  return l->rails + RAIL * place;
}

static void
add_rails (const Ladder *l)
{
  TdStyle line = { .stroke = TD_ROLE_HAIRLINE, .stroke_width = 2 };
  TdTextStyle name
      = { .role = TD_ROLE_TEXT, .size = TD_TEXT_CAPTION, .align = 0.5, .bold = TRUE };

  for (guint i = 0; i < l->ranks->n; i++)
    {
      const TdScenePoint q[]
          = { { x_of (l, i), HEAD - 8 }, { x_of (l, i), l->height - MARGIN } };
      g_autofree char *text = g_strdup_printf ("Rank %u", l->ranks->tapes[i].open.rank);

      td_scene_add_line (l->b, q, 2, &line);
      td_scene_add_text (l->b, x_of (l, i), HEAD - 18, text, &name);
    }
}

/* "waits in td_comm_allreduce at train.c:40 since 1.2 s". Owner: the caller. */
static char *
dup_side (const TdRanks *ranks, const TdRung *rung, guint place, gboolean missing)
{
  const TdRungSide *side = &rung->sides[place];
  g_autofree char *site = side->here ? td__ranks_dup_site (ranks, place, side->site) : NULL;
  char ns[TD_FORMAT_SIZE], bytes[TD_FORMAT_SIZE];

  if (!side->here)
    return g_strdup_printf ("rank %u %s", ranks->tapes[place].open.rank,
                            missing ? "never came" : "is not in this call");
  return g_strdup_printf ("rank %u %s %s%s%s%s%s%s%s", ranks->tapes[place].open.rank,
                          side->left ? "left" : "waits in", side->call, site ? " at " : "",
                          site ? site : "", side->left ? " after " : "",
                          side->left ? td_format_ns (ns, side->leave_ns - side->enter_ns) : "",
                          side->bytes ? ", " : "",
                          side->bytes ? td_format_bytes (bytes, side->bytes) : "");
}

static void
add_side (const Ladder *l, const TdRung *rung, guint place, gboolean missing, double y)
{
  const TdRungSide *side = &rung->sides[place];
  gboolean failed = (side->flags & TD_TAPE_COLLECTIVE_FAILED) != 0;
  TdStyle dot = { .fill = side->left ? TD_ROLE_COMMUNICATION : TD_ROLE_VIEW,
                  .stroke = side->left ? TD_ROLE_COMMUNICATION : TD_ROLE_WARNING,
                  .stroke_width = 2 };
  TdStyle gone = { .stroke = TD_ROLE_ERROR, .stroke_width = 2, .dash = TD_DASH_DASHED };
  TdStyle cross = { .stroke = TD_ROLE_ERROR, .stroke_width = 2 };
  TdTextStyle text = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS };
  TdSceneRect box = { x_of (l, place) - DOT, y - DOT, 2 * DOT, 2 * DOT };
  g_autofree char *tip = dup_side (l->ranks, rung, place, missing);
  char ns[TD_FORMAT_SIZE];

  if (!side->here && !missing)
    return;
  td_scene_mark (l->b, TD_TAG_ROW, 0, (gint64)rung->seq, tip);
  td_scene_add_shape (l->b, failed ? TD_PRIM_CROSS : TD_PRIM_ELLIPSE, box, 0,
                      failed       ? &cross
                      : side->here ? &dot
                                   : &gone);
  td_scene_unmark (l->b);
  text.role = !side->here ? TD_ROLE_ERROR : side->left ? TD_ROLE_DIM : TD_ROLE_WARNING;
  td_scene_add_text (l->b, box.x + 2 * DOT + 4, y + 9,
                     !side->here  ? "missing"
                     : side->left ? td_format_ns (ns, side->leave_ns - side->enter_ns)
                                  : "waits",
                     &text);
}

static void
add_rung (const Ladder *l, const TdRung *rung, double y)
{
  g_autofree gboolean *missing = g_new (gboolean, l->ranks->n);
  TdTextStyle name = {
    .role = TD_ROLE_TEXT, .size = TD_TEXT_CAPTION, .max_width = NAME - 50, .middle = TRUE
  };
  TdTextStyle seq = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION, .align = 1 };
  TdStyle whole = { .stroke = TD_ROLE_COMMUNICATION, .stroke_width = 2 };
  TdStyle part = { .stroke = TD_ROLE_ERROR, .stroke_width = 1.5, .dash = TD_DASH_DASHED };
  gint from = -1;
  char number[TD_FORMAT_SIZE];

  td__ranks_list_missing (l->ranks, rung, missing);
  td_scene_add_text (l->b, MARGIN + 40, y, td_format_count (number, (gint64)rung->seq), &seq);
  td_scene_add_text (l->b, MARGIN + 50, y, td__rung_call (l->ranks, rung), &name);
  for (guint i = 0; i < l->ranks->n; i++)
    {
      if (!rung->sides[i].here && !missing[i])
        continue;
      if (from >= 0)
        {
          const TdScenePoint q[] = { { x_of (l, (guint)from), y }, { x_of (l, i), y } };

          td_scene_add_line (l->b, q, 2,
                             rung->sides[i].here && rung->sides[from].here ? &whole : &part);
        }
      from = (gint)i;
    }
  for (guint i = 0; i < l->ranks->n; i++)
    add_side (l, rung, i, missing[i], y);
}

TdScene *
td_ranks_ladder_scene (TdRanksStep *step, const TdPanelView *view)
{
  gboolean is_end;
  g_autoptr (GPtrArray) rungs = list_rungs (step, &is_end);
  g_autofree char *where = td__ranks_step_dup_title (step), *title = NULL;
  double width = MAX (view->width, 2 * MARGIN + NAME + RAIL * step->ranks->n);
  Ladder l = { .ranks = step->ranks, .rails = MARGIN + NAME + RAIL / 2 - 20 };
  TdTextStyle head = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION, .max_width = width - 24 };

  if (rungs->len == 0)
    return td_panel_message (view, "No calls in this iteration",
                             "Ranks did nothing together in it.");
  l.height = MAX (view->height, HEAD + ROW * rungs->len + MARGIN);
  l.b = td_scene_builder_new (width, l.height);
  td_scene_set_background (l.b, TD_ROLE_VIEW);
  title = g_strconcat (is_end ? "The last calls: " : "Calls: ", where, NULL);
  td_scene_add_text (l.b, MARGIN, 12, title, &head);
  add_rails (&l);
  for (guint i = 0; i < rungs->len; i++)
    add_rung (&l, g_ptr_array_index (rungs, i), HEAD + ROW * (i + 0.5));
  return td_scene_builder_end (l.b);
}

/* A line for each rank of a call: that it was there, or is missing. */
static void
csv_rung (const TdRanks *ranks, const TdRung *rung, GString *out)
{
  g_autofree gboolean *missing = g_new (gboolean, ranks->n);

  td__ranks_list_missing (ranks, rung, missing);
  for (guint i = 0; i < ranks->n; i++)
    {
      const TdRungSide *side = &rung->sides[i];

      if (!side->here && !missing[i])
        continue;
      g_string_append_printf (out, "%" G_GUINT64_FORMAT ",", rung->seq);
      td_csv_append (out, td__rung_call (ranks, rung));
      g_string_append_printf (out, ",%d,%s,", ranks->tapes[i].open.rank,
                              missing[i]   ? "missing"
                              : side->left ? "left"
                                           : "waits");
      if (side->here)
        g_string_append_printf (out, "%" G_GUINT64_FORMAT ",", side->bytes);
      else
        g_string_append_c (out, ',');
      if (side->here && side->left)
        g_string_append_printf (out, "%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT,
                                side->leave_ns - side->enter_ns, side->wait_ns);
      else
        g_string_append_c (out, ',');
      g_string_append_c (out, '\n');
    }
}

static void
print_csv (const TdRanks *ranks, const GPtrArray *rungs, GString *out)
{
  g_string_append (out, "number,call,rank,state,bytes,ns,waited_ns\n");
  for (guint i = 0; i < rungs->len; i++)
    csv_rung (ranks, g_ptr_array_index (rungs, i), out);
}

char *
td_ranks_ladder_print (TdRanksStep *step, const char *format)
{
  gboolean is_end;
  g_autoptr (GPtrArray) rungs = list_rungs (step, &is_end);
  GString *out = g_string_new (NULL);
  TdJson j;

  if (g_str_equal (format, "json"))
    {
      td__ranks_step_begin_json (step, &j, out);
      td_json_key (&j, "calls");
      td_json_begin_array (&j);
      for (guint i = 0; i < rungs->len; i++)
        td__rung_json (step->ranks, g_ptr_array_index (rungs, i), &j);
      td_json_end_array (&j);
      td_json_end_object (&j);
      return g_string_free (out, FALSE);
    }
  if (g_str_equal (format, "csv"))
    {
      print_csv (step->ranks, rungs, out);
      return g_string_free (out, FALSE);
    }
  if (rungs->len == 0)
    g_string_append_printf (
        out, "No calls in iteration %" G_GINT64_FORMAT ": ranks did nothing together in it.\n",
        step->row->number);
  for (guint i = 0; i < rungs->len; i++)
    td__rung_print_whole (step->ranks, g_ptr_array_index (rungs, i), out);
  return g_string_free (out, FALSE);
}
