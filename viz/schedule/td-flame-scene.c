/*
 * A flame graph from the top down: a row for each depth, a box for each node, as wide as its
 * share.  What is narrower than can be seen is drawn together.  A label is whole, or cut so
 * that no other in its row reads the same, or not there.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "td-flame.h"

#define MARGIN 8.0
#define TITLE 22.0
#define LEAST_ROW 18.0
#define MOST_ROW 24.0
#define NARROW 2.0 /* boxes below this are drawn together */
#define LEAST_LABEL 26.0
#define LEAST_LETTERS 6 /* of a label that is cut */
#define MAX_MARKED 32   /* selected keys that are drawn over what hides them */

typedef struct
{
  double from, to;
  guint n, n_ops;
  guint64 size;
} Run;

typedef struct
{
  TdSceneBuilder *b;
  const TdFlame *flame;
  const TdFlameLook *look;
  const TdPanelView *view;
  TdSceneRect plot;
  double row;
  gint n_rows;
  Run *runs;           /* of narrow boxes, by row */
  GHashTable **labels; /* what the labels of a row that are cut stand for, by what is left */
} Flame;

static const TdRole lane_roles[] = { [TD_LANE_FORWARD] = TD_ROLE_PARAMETER,
                                     [TD_LANE_BACKWARD] = TD_ROLE_GRADIENT,
                                     [TD_LANE_UPDATE] = TD_ROLE_OPTIMIZER,
                                     [TD_FLAME_ALL] = TD_ROLE_OTHER };

static double
x_of (const Flame *f, guint64 at)
{
  const TdFlameNode *zoom = &f->flame->nodes[f->look->zoom];
  double share
      = (double)(at - zoom->start[f->look->size]) / (double)MAX (zoom->size[f->look->size], 1);

  return f->plot.x + f->plot.width * share;
}

static TdSceneRect
box_of (const Flame *f, gint node)
{
  const TdFlameNode *n = &f->flame->nodes[node];
  gint row = n->depth - f->flame->nodes[f->look->zoom].depth;
  double x = x_of (f, n->start[f->look->size]);

  return (TdSceneRect){ x, f->plot.y + row * f->row,
                        x_of (f, n->start[f->look->size] + n->size[f->look->size]) - x,
                        f->row };
}

/* ---- labels ---- */

/* The first letters and the last ones, which tell "h10" from "h11", as many as fit. NULL: too
 * few. Owner: the caller. */
static char *
cut_label (const char *text, TdTextSize size, double width)
{
  glong n = g_utf8_strlen (text, -1);
  glong lo = 0, hi = n - 1;
  char *best = NULL;

  while (lo < hi)
    {
      glong letters = (lo + hi + 1) / 2, head = letters - letters / 2;
      g_autofree char *left = g_utf8_substring (text, 0, head);
      const char *right = g_utf8_offset_to_pointer (text, n - letters / 2);
      char *cut = g_strdup_printf ("%s…%s", left, right);

      if (td_text_width (cut, size, FALSE) <= width)
        {
          lo = letters;
          g_free (best);
          best = cut;
        }
      else
        {
          hi = letters - 1;
          g_free (cut);
        }
    }
  if (lo < LEAST_LETTERS)
    g_clear_pointer (&best, g_free);
  return best;
}

/* A box's label: all of it, or a cut one that stands for nothing else in its row. Owner: the
 * caller; NULL: it has none. */
static char *
fit_label (Flame *f, gint row, const char *text, TdTextSize size, double width)
{
  g_autofree char *cut = NULL;
  const char *other;

  if (td_text_width (text, size, FALSE) <= width)
    return g_strdup (text);
  cut = cut_label (text, size, width);
  if (!cut)
    return NULL;
  if (!f->labels[row])
    f->labels[row] = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  other = g_hash_table_lookup (f->labels[row], cut);
  if (other && strcmp (other, text) != 0)
    return NULL;
  g_hash_table_insert (f->labels[row], g_strdup (cut), (gpointer)text);
  return g_steal_pointer (&cut);
}

static void
add_label (Flame *f, gint node, const TdSceneRect *r, gboolean patterned)
{
  const TdFlameNode *n = &f->flame->nodes[node];
  gint row = n->depth - f->flame->nodes[f->look->zoom].depth;
  gboolean folded = row == f->n_rows - 1 && n->end > node + 1;
  double room = r->width - 10 - (folded ? 14 : 0);
  TdTextStyle style = { .role = TD_ROLE_TEXT, .size = TD_TEXT_SMALL };
  TdStyle ground = { .fill = TD_ROLE_VIEW, .fill_alpha = 0.85 };
  TdStyle chevron = { .stroke = TD_ROLE_TEXT };
  g_autofree char *label = NULL;

  if (r->width < LEAST_LABEL)
    return;
  label = fit_label (f, row, n->name, style.size, room);
  if (label && patterned)
    td_scene_add_shape (f->b, TD_PRIM_ROUND,
                        (TdSceneRect){ r->x + 3, r->y + r->height / 2 - 7,
                                       td_text_width (label, style.size, FALSE) + 4, 14 },
                        3, &ground);
  if (label)
    td_scene_add_text (f->b, r->x + 5, r->y + r->height / 2, label, &style);
  if (folded)
    td_scene_add_shape (f->b, TD_PRIM_CHEVRON_DOWN,
                        (TdSceneRect){ r->x + r->width - 14, r->y + r->height / 2 - 4, 8, 8 },
                        0, &chevron);
}

/* ---- boxes ---- */

/* By time, what is not known for sure looks so: hatched where it was sampled, an empty outline
 * where nobody timed it. */
static TdStyle
style_of (const Flame *f, const TdFlameNode *n)
{
  gboolean by_time = f->look->size == TD_FLAME_TIME;
  TdRole role = lane_roles[n->lane];
  TdStyle style
      = { .fill = role, .fill_alpha = n->is_op ? 0.42 : 0.24, .stroke = TD_ROLE_VIEW };

  if (by_time && n->n_untimed > 0 && n->n_untimed == n->n_ops)
    style = (TdStyle){ .fill = TD_ROLE_VIEW, .stroke = role, .dash = TD_DASH_DASHED };
  else if (by_time && (n->n_sampled > 0 || n->n_untimed > 0))
    style.pattern = TD_PATTERN_HATCH_DOWN;
  return style;
}

static void
add_box (Flame *f, gint node)
{
  const TdFlameNode *n = &f->flame->nodes[node];
  TdSceneRect r = box_of (f, node);
  TdStyle style = style_of (f, n);
  g_autofree char *tip = td_flame_describe (f->flame, node, f->look->size);
  gboolean outlined = style.dash == TD_DASH_DASHED;
  TdSceneRect inside
      = outlined ? (TdSceneRect){ r.x + 1, r.y + 1, MAX (r.width - 2, 1), r.height - 2 } : r;

  td_scene_mark (f->b, TD_TAG_ROW, n->key, node, tip);
  td_scene_add_shape (f->b, TD_PRIM_RECT, inside, 0, &style);
  td_scene_unmark (f->b);
  add_label (f, node, &r, style.pattern != TD_PATTERN_NONE);
}

static void
end_run (Flame *f, gint row)
{
  Run *run = &f->runs[row];
  TdStyle style = { .fill = TD_ROLE_DIM, .fill_alpha = 0.45 };
  char text[TD_FORMAT_SIZE];
  g_autofree char *tip = NULL;

  if (run->n == 0)
    return;
  if (f->look->size == TD_FLAME_TIME && f->flame->kind != TD_FLAME_LAYERS)
    {
      td_format_bytes (text, run->size / 1000);
      g_strlcat (text, "·s", sizeof text);
    }
  else if (f->look->size == TD_FLAME_TIME)
    td_format_ns (text, run->size);
  else
    td_format_bytes (text, run->size);
  tip = g_strdup_printf ("%u %s too narrow to be seen · %u %s · %s · zoom in to see %s", run->n,
                         td_plural (run->n, "box", "boxes"), run->n_ops,
                         f->flame->kind == TD_FLAME_LAYERS
                             ? td_plural (run->n_ops, "operation", "operations")
                             : td_plural (run->n_ops, "block", "blocks"),
                         text, td_plural (run->n, "it", "them"));
  td_scene_mark (f->b, TD_TAG_LANE, 0, row, tip);
  td_scene_add_shape (f->b, TD_PRIM_RECT,
                      (TdSceneRect){ run->from, f->plot.y + row * f->row + 2,
                                     MAX (run->to - run->from, 1), f->row - 4 },
                      0, &style);
  td_scene_unmark (f->b);
  *run = (Run){ 0 };
}

/* Narrow boxes that follow one another become one; what is below them is not looked at. */
static void
add_narrow (Flame *f, gint node, gint row)
{
  const TdFlameNode *n = &f->flame->nodes[node];
  TdSceneRect r = box_of (f, node);
  Run *run = &f->runs[row];

  if (run->n > 0 && r.x > run->to + 0.5)
    end_run (f, row);
  if (run->n == 0)
    run->from = r.x;
  run->to = r.x + r.width;
  run->n++;
  run->n_ops += n->n_ops;
  run->size += n->size[f->look->size];
}

static void
add_boxes (Flame *f)
{
  const TdFlameNode *nodes = f->flame->nodes;
  gint zoom = f->look->zoom;

  for (gint i = zoom; i < nodes[zoom].end;)
    {
      gint row = nodes[i].depth - nodes[zoom].depth;
      gboolean deep = row >= f->n_rows, none = nodes[i].size[f->look->size] == 0;
      gboolean narrow = !deep && !none && box_of (f, i).width < NARROW;

      if (narrow)
        add_narrow (f, i, row);
      else if (!deep && !none)
        {
          end_run (f, row);
          add_box (f, i);
        }
      i = deep || none || narrow ? nodes[i].end : i + 1;
    }
  for (gint row = 0; row < f->n_rows; row++)
    end_run (f, row);
}

/* ---- what is selected ---- */

/* Around the box, or as a mark in the box that hides it. */
static void
add_mark (Flame *f, gint node, double width)
{
  const TdFlameNode *zoom = &f->flame->nodes[f->look->zoom];
  TdStyle ring = { .stroke = TD_ROLE_ACCENT, .stroke_width = width };
  gint depth = f->flame->nodes[node].depth - zoom->depth;

  if (node < f->look->zoom || node >= zoom->end
      || f->flame->nodes[node].size[f->look->size] == 0)
    return;
  TdSceneRect r = box_of (f, node);
  r.y = f->plot.y + MIN (depth, f->n_rows - 1) * f->row;
  r.x = MIN (r.x, f->plot.x + f->plot.width - 3);
  td_scene_add_shape (f->b, TD_PRIM_RECT,
                      (TdSceneRect){ r.x + width / 2, r.y + width / 2, MAX (r.width - width, 2),
                                     r.height - width },
                      0, &ring);
}

static void
add_marks (Flame *f)
{
  for (guint k = 0; k < MIN (f->view->n_selected, MAX_MARKED); k++)
    for (guint lane = 0; lane < TD_N_LANES && f->view->selected[k]; lane++)
      {
        gint node = td_flame_find (f->flame, f->view->selected[k], lane);

        if (node >= 0)
          add_mark (f, node, 2);
      }
  if (f->look->cursor >= 0)
    add_mark (f, f->look->cursor, 3);
}

/* ---- the picture ---- */

static gint
count_rows (const TdFlame *flame, gint zoom)
{
  gint deepest = 0;

  for (gint i = zoom; i < flame->nodes[zoom].end; i++)
    deepest = MAX (deepest, flame->nodes[i].depth - flame->nodes[zoom].depth);
  return deepest + 1;
}

static void
add_title (Flame *f, double w)
{
  g_autofree char *title = td_flame_title (f->flame, f->look->zoom, f->look->size);
  TdTextStyle style
      = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION, .max_width = w - 2 * MARGIN };

  td_scene_add_text (f->b, MARGIN, TITLE / 2, title, &style);
}

/* Why no box would have a width. */
static TdScene *
make_none (const TdFlame *flame, TdFlameSize size, const TdPanelView *view)
{
  static const char *const words[TD_N_FLAME_SIZES][2] = {
    [TD_FLAME_TIME]
    = { "Nothing of it was measured", "The tape has no time for these operations." },
    [TD_FLAME_BYTES]
    = { "Nothing new was made", "These operations have no outputs that take bytes." },
  };

  if (flame->nodes[0].n_ops == 0)
    return td_panel_message (view, "Nothing has run yet", "Layers appear here as they run.");
  return td_panel_message (view, words[size][0], words[size][1]);
}

TdScene *
td_flame_scene (const TdFlame *flame, const TdFlameLook *look, const TdPanelView *view)
{
  gint rows = count_rows (flame, look->zoom);
  double top = look->title ? TITLE : MARGIN / 2;
  double w = view->width > 0 ? view->width : 960;
  double h = view->height > 0 ? view->height : top + rows * MOST_ROW + MARGIN;
  Flame f = { .flame = flame,
              .look = look,
              .view = view,
              .plot = { MARGIN, top, MAX (40, w - 2 * MARGIN), MAX (LEAST_ROW, h - top - 4) } };

  if (flame->nodes[look->zoom].size[look->size] == 0)
    return make_none (flame, look->size, view);
  f.row = CLAMP (f.plot.height / rows, LEAST_ROW, MOST_ROW);
  f.n_rows = CLAMP ((gint)floor (f.plot.height / f.row + 1e-6), 1, rows);
  f.runs = g_new0 (Run, f.n_rows);
  f.labels = g_new0 (GHashTable *, f.n_rows);
  f.b = td_scene_builder_new (w, h);
  td_scene_set_background (f.b, TD_ROLE_VIEW);
  if (look->title)
    add_title (&f, w);
  add_boxes (&f);
  add_marks (&f);
  for (gint row = 0; row < f.n_rows; row++)
    g_clear_pointer (&f.labels[row], g_hash_table_unref);
  g_free (f.labels);
  g_free (f.runs);
  return td_scene_builder_end (f.b);
}
