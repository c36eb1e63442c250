/*
 * The picture of what explains a static function: its rows around the cursor, under the heads
 * of their sections. The pass that the cursor stands in is open.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-explain-private.h"

#include <math.h>
#include <string.h>

#define LINE 20.0
#define HEAD 30.0
#define MARGIN 12.0
#define NUMBERS 196.0 /* calls, cost and the first iteration */

typedef struct
{
  gint row; /* -1: the head of a section */
  TdExplainSection section;
  double y, height;
} Shown;

typedef struct
{
  TdSceneBuilder *b;
  const TdExplain *e;
  const TdPanelView *view;
  guint function;
  double w, h;
} Picture;

static const struct
{
  const char *glyph;
  TdRole role;
} looks[TD_EXPLAIN_N_SECTIONS] = {
  [TD_EXPLAIN_REASON] = { "✕", TD_ROLE_ERROR },
  [TD_EXPLAIN_BREAK] = { "≠", TD_ROLE_WARNING },
  [TD_EXPLAIN_DIFFERENCE] = { "~", TD_ROLE_CHANGED },
  [TD_EXPLAIN_ONCE] = { "⚠", TD_ROLE_WARNING },
  [TD_EXPLAIN_GUARD] = { "✓", TD_ROLE_ADDED },
  [TD_EXPLAIN_PASS] = { "⇄", TD_ROLE_FUSED },
  [TD_EXPLAIN_REMARK] = { "·", TD_ROLE_DIM },
};

static void
text_at (Picture *p, double x, double y, const char *text, TdRole role, double max_width,
         double align)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  TdTextStyle style = {
    .role = role, .size = TD_TEXT_CAPTION, .max_width = MAX (max_width, 0), .align = align
  };

  if (max_width >= 0)
    td_scene_add_text (p->b, x, y, valid, &style);
}

static gboolean
has_advice (const TdExplainRow *row)
{
  return *row->advice != '\0';
}

/* Rows of one function with the heads of their sections, from the top. */
static GArray *
lay_out (const Picture *p, guint pass)
{
  GArray *shown = g_array_new (FALSE, TRUE, sizeof (Shown));
  const char *title = NULL;
  double y = 0;

  for (guint i = 0; i < p->e->n_rows; i++)
    {
      const TdExplainRow *row = &p->e->rows[i];
      const char *own = td_explain_section_title (row->section);

      if (!td_explain_row_is_listed (row, p->function, pass))
        continue;
      if (!title || strcmp (own, title) != 0)
        {
          Shown head = { -1, row->section, y, LINE + (title ? 6 : 0) };

          title = own;
          g_array_append_val (shown, head);
          y += head.height;
        }
      Shown one = { (gint)i, row->section, y, has_advice (row) ? 2 * LINE : LINE };

      g_array_append_val (shown, one);
      y += one.height;
    }
  return shown;
}

static void
add_head (Picture *p, const Shown *s, double y)
{
  TdTextStyle style = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION, .bold = TRUE };

  td_scene_add_text (p->b, MARGIN, y + s->height - LINE / 2,
                     td_explain_section_title (s->section), &style);
}

static void
add_numbers (Picture *p, const TdExplainRow *row, double right, double y)
{
  char cost[TD_FORMAT_SIZE], ns[TD_FORMAT_SIZE], text[64];

  if (row->section == TD_EXPLAIN_PASS)
    {
      g_snprintf (text, sizeof text, "%u → %u steps", row->before, row->after);
      text_at (p, right, y, text, TD_ROLE_TEXT, 0, 1);
      return;
    }
  if (row->section == TD_EXPLAIN_GUARD)
    {
      if (row->n_misses > 0)
        {
          g_snprintf (text, sizeof text, "failed ×%u", row->n_misses);
          text_at (p, right, y, text, TD_ROLE_ERROR, 0, 1);
        }
      return;
    }
  if (row->section == TD_EXPLAIN_REMARK || row->section == TD_EXPLAIN_ONCE)
    return;
  g_snprintf (text, sizeof text, "×%u", row->n);
  text_at (p, right - 140, y, text, TD_ROLE_TEXT, 0, 1);
  if (row->n_timed > 0)
    {
      g_snprintf (cost, sizeof cost, "%s%s", row->cost_ns < 0 ? "−" : "+",
                  td_format_ns (ns, (guint64)fabs (row->cost_ns)));
      text_at (p, right - 64, y, cost, TD_ROLE_TEXT, 0, 1);
    }
  if (row->first < 0)
    return;
  g_autofree char *tip
      = g_strdup_printf ("The first in iteration %" G_GINT64_FORMAT ": go there", row->first);
  TdStyle none = { .fill = TD_ROLE_NONE };
  g_snprintf (text, sizeof text, "it. %" G_GINT64_FORMAT, row->first);
  td_scene_mark (p->b, TD_TAG_ITERATION, 0, row->first, tip);
  td_scene_add_shape (p->b, TD_PRIM_RECT, (TdSceneRect){ right - 56, y - LINE / 2, 56, LINE },
                      0, &none);
  text_at (p, right, y, text, TD_ROLE_ACCENT, 0, 1);
  td_scene_unmark (p->b);
}

/* "net.c:12"; the whole path is in the tip. */
static char *
dup_place (const TdExplainRow *row)
{
  g_autofree char *base = g_path_get_basename (row->file);

  return row->line > 0 ? g_strdup_printf ("%s:%u", base, row->line) : g_strdup ("");
}

static void
add_row (Picture *p, const Shown *s, double y)
{
  const TdExplainRow *row = &p->e->rows[s->row];
  gint event = td_explain_row_event (p->e, row);
  guint64 key = event >= 0 ? td_iteration_get_tape (p->e->statics->it)->events[event].key : 0;
  gboolean here = p->view->cursor == (guint)s->row + 1;
  gboolean marked = key && td_panel_is_selected (p->view, key);
  TdStyle ground = { .fill = here ? TD_ROLE_SELECTED_ROW : TD_ROLE_NONE,
                     .stroke = marked ? TD_ROLE_ACCENT : TD_ROLE_NONE };
  g_autofree char *tip = td_explain_row_text (row);
  g_autofree char *valid = g_utf8_make_valid (tip, -1);
  g_autofree char *place = dup_place (row);
  g_autofree char *title = row->text && *row->text && row->section != TD_EXPLAIN_REASON
                               ? g_strdup_printf ("%s  %s", row->title, row->text)
                               : g_strdup (row->title);
  double x = MARGIN + (row->section == TD_EXPLAIN_REMARK ? 30 : 18), first = y + LINE / 2;
  double right = p->w - MARGIN, numbers = p->w < 380 ? 150 : NUMBERS, wide = p->w - x;
  double lines = *place ? td_text_width (place, TD_TEXT_CAPTION, FALSE) + 10 : 0;

  td_scene_mark (p->b, TD_TAG_ROW, key, s->row, valid);
  td_scene_add_shape (p->b, TD_PRIM_ROUND, (TdSceneRect){ 5, y + 1, p->w - 10, s->height - 2 },
                      6, &ground);
  td_scene_unmark (p->b);
  if (row->section == TD_EXPLAIN_REMARK || row->section == TD_EXPLAIN_ONCE)
    numbers = 0;
  else if (row->section >= TD_EXPLAIN_GUARD)
    numbers = row->section == TD_EXPLAIN_PASS ? 110 : row->n_misses > 0 ? 66 : 0;
  lines = MIN (lines, wide * 0.4);
  gboolean benign = row->section == TD_EXPLAIN_REASON && row->n_misses == 0
                    && (strcmp (row->guard, TD_EXPLAIN_FIRST) == 0
                        || strcmp (row->guard, TD_EXPLAIN_VERIFIED) == 0);
  text_at (p, MARGIN + (row->section == TD_EXPLAIN_REMARK ? 14 : 0), first,
           benign              ? "·"
           : row->n_misses > 0 ? "✕"
                               : looks[row->section].glyph,
           benign              ? TD_ROLE_DIM
           : row->n_misses > 0 ? TD_ROLE_ERROR
                               : looks[row->section].role,
           0, 0);
  text_at (p, x, first, title, row->section == TD_EXPLAIN_REMARK ? TD_ROLE_DIM : TD_ROLE_TEXT,
           right - x - numbers - lines - 8, 0);
  text_at (p, right - numbers, first, place, TD_ROLE_DIM, lines, 1);
  add_numbers (p, row, right, first);
  if (!has_advice (row))
    return;
  g_autofree char *advice = row->section == TD_EXPLAIN_REASON && row->text && *row->text
                                ? g_strdup_printf ("%s → %s", row->text, row->advice)
                                : g_strdup_printf ("→ %s", row->advice);
  text_at (p, x, first + LINE - 2, advice, TD_ROLE_DIM, right - x, 0);
}

/* The row of the cursor is in the middle, as far as the ends of the list allow; rows are whole.
 */
static double
find_top (const GArray *shown, guint cursor, double room, double total)
{
  double top = 0;

  for (guint i = 0; cursor > 0 && i < shown->len; i++)
    {
      const Shown *s = &g_array_index (shown, Shown, i);

      if (s->row + 1 == (gint)cursor)
        top = CLAMP (s->y + s->height / 2 - room / 2, 0, MAX (0, total - room));
    }
  for (guint i = 0; i < shown->len; i++)
    if (g_array_index (shown, Shown, i).y >= top)
      return g_array_index (shown, Shown, i).y;
  return top;
}

/* What there is room for below `top`; of what is cut off it is said how much that is. */
static void
add_rows (Picture *p, const GArray *shown, double top, double total)
{
  double end = top + p->h - HEAD - 4, bottom = total > end ? end - LINE : end;
  guint n_left = 0;

  for (guint i = 0; i < shown->len; i++)
    {
      const Shown *s = &g_array_index (shown, Shown, i);
      gboolean is_head = s->row < 0 && i + 1 < shown->len;
      double needs = s->height + (is_head ? g_array_index (shown, Shown, i + 1).height : 0);

      if (s->y < top - 1)
        continue;
      if (n_left > 0 || s->y + needs > bottom + 1)
        n_left += s->row >= 0;
      else if (s->row < 0)
        add_head (p, s, HEAD + s->y - top);
      else
        add_row (p, s, HEAD + s->y - top);
    }
  if (n_left == 0)
    return;
  g_autofree char *text
      = g_strdup_printf ("and %u more %s", n_left, td_plural (n_left, "row", "rows"));
  text_at (p, MARGIN + 18, p->h - 4 - LINE / 2, text, TD_ROLE_DIM, 0, 0);
}

TdScene *
td_explain_scene (const TdExplain *e, guint function, const TdPanelView *view)
{
  Picture p = { .e = e, .view = view, .function = function };
  guint at = view->cursor, pass = at > 0 && at <= e->n_rows ? e->rows[at - 1].pass : 0;
  double top = 0, total = 0;

  if (function >= e->statics->n_functions)
    return td_panel_message (view, "No static function",
                             "There is no such function on the tape.");
  g_autoptr (GArray) shown = lay_out (&p, pass);
  g_autofree char *headline = td_explain_headline (e, function);

  for (guint i = 0; i < shown->len; i++)
    total += g_array_index (shown, Shown, i).height;
  p.w = view->width > 0 ? view->width : 900;
  p.h = view->height > 0 ? view->height : HEAD + total + 8;
  p.b = td_scene_builder_new (p.w, p.h);
  td_scene_set_background (p.b, TD_ROLE_VIEW);
  TdTextStyle name = { .role = TD_ROLE_TEXT, .size = TD_TEXT_LIST, .bold = TRUE };
  g_autofree char *valid = g_utf8_make_valid (e->statics->functions[function].name, -1);
  double after = MARGIN + td_text_width (valid, TD_TEXT_LIST, TRUE) + 12;
  td_scene_add_text (p.b, MARGIN, HEAD / 2, valid, &name);
  text_at (&p, after, HEAD / 2, headline, TD_ROLE_TEXT, p.w - after - MARGIN, 0);
  top = find_top (shown, at, p.h - HEAD - 4, total);
  add_rows (&p, shown, top, total);
  return td_scene_builder_end (p.b);
}
