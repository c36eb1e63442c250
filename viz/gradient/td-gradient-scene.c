/*
 * The heat map of gradient norms, and the list of what got none.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "td-gradient-private.h"

/* What the names beside rows take. */
#define LEAST_NAMES 86.0
#define MOST_NAMES 150.0
#define VALUE_WIDTH 58.0
#define MIN_ROW 5.0 /* its colour can still be told from the next one's */

static gint
by_value (gconstpointer a, gconstpointer b)
{
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

typedef struct
{
  TdSceneBuilder *b;
  const TdGradientTable *table;
  const TdPanelView *view;
  const TdGradientAxis *axis;
  GArray *columns;         /* gint64: what the columns of the axis show */
  guint first_row, n_rows; /* rows shown */
  GPtrArray *names;        /* of all rows */
  double names_width;
  TdSceneRect map;
  double lo, hi; /* log10 */
} Map;

/* Ends of the scale: all norms that are drawn, but robust: the 2nd and 98th percentile. */
static void
find_limits (Map *m)
{
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (double));

  for (guint r = 0; r < m->n_rows; r++)
    for (guint c = 0; c < m->columns->len; c++)
      {
        double norm;

        if (td_gradient_table_norm (m->table, m->first_row + r,
                                    g_array_index (m->columns, gint64, c), &norm)
                == TD_CELL_VALUE
            && norm > 0)
          {
            double v = log10 (norm);
            g_array_append_val (all, v);
          }
      }
  m->lo = 0;
  m->hi = 1;
  if (all->len == 0)
    return;
  g_array_sort (all, by_value);
  double *v = (double *)(void *)all->data;
  m->lo = v[all->len * 2 / 100];
  m->hi = v[all->len - 1 - all->len * 2 / 100];
  if (m->hi - m->lo < 1e-9)
    m->hi = m->lo + 1e-9;
}

/* What a column says: of which iterations it is, and which one it shows. */
static char *
column_tooltip (const Map *m, guint column)
{
  const TdGradientAxis *a = m->axis;
  gint64 from = a->first + column * a->width, to = MIN (from + a->width - 1, a->last),
         shown = a->shown[column];
  GString *text = g_string_new (NULL);

  if (shown >= 0)
    g_string_append_printf (text, "iteration %" G_GINT64_FORMAT, shown);
  if (shown >= 0 && from < to)
    g_string_append_printf (text, ", of %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT, from, to);
  if (shown < 0 && from < to)
    g_string_append_printf (
        text, "iterations %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT ": none is stored whole",
        from, to);
  else if (shown < 0)
    g_string_append_printf (text, "iteration %" G_GINT64_FORMAT ": not stored whole", from);
  return g_string_free (text, FALSE);
}

static void
add_cells (Map *m)
{
  guint cols = m->axis->n, n = m->n_rows * cols;
  g_autofree float *values = g_new0 (float, MAX (n, 1));
  g_autofree guint8 *cells = g_malloc0 (MAX (n, 1));
  g_autoptr (GPtrArray) tooltips = g_ptr_array_new_with_free_func (g_free);

  for (guint c = 0; c < cols; c++)
    g_ptr_array_add (tooltips, column_tooltip (m, c));
  for (guint r = 0; r < m->n_rows; r++)
    for (guint c = 0; c < cols; c++)
      {
        guint i = r * cols + c;
        double norm = 0;

        cells[i] = m->axis->shown[c] < 0 ? TD_CELL_EMPTY
                                         : td_gradient_table_norm (m->table, m->first_row + r,
                                                                   m->axis->shown[c], &norm);
        /* an all-zero gradient is the lowest colour, not a hole */
        values[i] = (float)(norm > 0 ? log10 (norm) : m->lo);
      }
  TdHeat heat = { .rows = (int)m->n_rows,
                  .cols = (int)cols,
                  .values = values,
                  .cells = cells,
                  .map = TD_COLORMAP_CIVIDIS,
                  .lo = m->lo,
                  .hi = m->hi,
                  .gap = 1,
                  .numbers = m->axis->shown,
                  .tooltips = (const char *const *)tooltips->pdata };
  td_scene_mark (m->b, TD_TAG_CELL, 0, m->first_row, NULL);
  td_scene_add_heat (m->b, m->map, &heat);
  td_scene_unmark (m->b);
}

static double
width_of_names (const GPtrArray *names)
{
  double width = 0;

  for (guint r = 0; r < names->len; r++)
    width = MAX (width, td_text_width (names->pdata[r], TD_TEXT_CAPTION, TRUE));
  return CLAMP (ceil (width) + 16, LEAST_NAMES, MOST_NAMES);
}

/* Where rows are lower than a line of text, every so many have a name, and the selected one. */
static gboolean
is_named (const Map *m, guint r, gint selected)
{
  double h = m->map.height / MAX (m->n_rows, 1);
  guint every = (guint)ceil (td_text_pixels (TD_TEXT_CAPTION) * 1.15 / h);
  gint from_selected = (gint)(m->first_row + r) - selected;

  if (selected >= 0 && ABS (from_selected) < (gint)every)
    return from_selected == 0;
  return r % every == 0;
}

/* In place of a name: the row is there, and hovering says which it is. */
static void
add_tick (Map *m, double y)
{
  const TdScenePoint line[] = { { m->names_width - 6, y }, { m->names_width - 1, y } };
  TdStyle style = { .stroke = TD_ROLE_FAINT };

  td_scene_add_line (m->b, line, 2, &style);
}

static void
add_rows (Map *m, gint selected)
{
  double h = m->map.height / MAX (m->n_rows, 1);

  for (guint r = 0; r < m->n_rows; r++)
    {
      guint row = m->first_row + r;
      gboolean bold = (gint)row == selected;
      double y = m->map.y + (r + 0.5) * h, norm;
      TdTextStyle name = { .role = TD_ROLE_TEXT,
                           .size = TD_TEXT_CAPTION,
                           .align = 1,
                           .bold = bold,
                           .middle = TRUE,
                           .max_width = m->names_width - 14 };
      TdTextStyle value
          = { .role = TD_ROLE_TEXT, .size = TD_TEXT_CAPTION, .align = 1, .bold = bold };
      TdCell cell = td_gradient_table_norm (m->table, row, m->view->iteration, &norm);
      char text[TD_FORMAT_SIZE];

      if (cell == TD_CELL_NAN || cell == TD_CELL_PLUS_INF || cell == TD_CELL_MINUS_INF)
        {
          value.role = TD_ROLE_ERROR;
          norm = cell == TD_CELL_NAN ? NAN : cell == TD_CELL_PLUS_INF ? INFINITY : -INFINITY;
        }
      td_format_honest (text, norm,
                        cell == TD_CELL_MISSING ? TD_HONEST_MISSING : TD_HONEST_EXACT);
      td_scene_mark (m->b, TD_TAG_PARAMETER, td_gradient_table_key (m->table, row), row,
                     td_gradient_table_path (m->table, row));
      if (is_named (m, r, selected))
        {
          td_scene_add_text (m->b, m->names_width - 8, y, m->names->pdata[row], &name);
          td_scene_add_text (m->b, m->map.x + m->map.width + VALUE_WIDTH - 8, y, text, &value);
        }
      else
        add_tick (m, y);
      td_scene_unmark (m->b);
    }
}

/* ---- the axis ---- */

static double
x_of (const Map *m, gint64 number)
{
  double n = (double)m->axis->n * (double)m->axis->width;

  return m->map.x + ((double)(number - m->axis->first) + 0.5) / n * m->map.width;
}

/* Labels that are there, by their places. */
typedef struct
{
  GArray *x;
  double apart;
} Labels;

/* Writes an iteration's number at its place, unless another one is near. */
static void
add_number (Map *m, Labels *labels, gint64 number)
{
  gboolean here = number == m->view->iteration;
  TdTextStyle text = { .role = here ? TD_ROLE_ACCENT : TD_ROLE_DIM,
                       .size = TD_TEXT_AXIS,
                       .align = 0.5,
                       .bold = here };
  double x = x_of (m, number);
  char label[24];

  for (guint i = 0; i < labels->x->len; i++)
    if (fabs (g_array_index (labels->x, double, i) - x) < labels->apart)
      return;
  g_array_append_val (labels->x, x);
  g_snprintf (label, sizeof label, "%" G_GINT64_FORMAT, number);
  td_scene_add_text (m->b, x, m->map.y + m->map.height + 11, label, &text);
}

/* The playhead's column is framed; the triangle is over the iteration's own place in it. */
static void
add_playhead (Map *m)
{
  gint column = td__gradient_axis_find (m->axis, m->view->iteration);
  double cell = m->map.width / m->axis->n;
  TdStyle triangle = { .fill = TD_ROLE_ACCENT };
  TdStyle frame = { .stroke = TD_ROLE_ACCENT, .stroke_alpha = 0.6 };

  if (column < 0)
    return;
  td_scene_add_shape (
      m->b, TD_PRIM_RECT,
      (TdSceneRect){ m->map.x + column * cell - 1, m->map.y - 1, cell + 1, m->map.height + 1 },
      0, &frame);
  td_scene_add_shape (m->b, TD_PRIM_PLAYHEAD,
                      (TdSceneRect){ x_of (m, m->view->iteration) - 4.5, m->map.y - 8, 9, 6 },
                      0, &triangle);
}

static void
add_iterations (Map *m)
{
  const TdGradientAxis *a = m->axis;
  g_autoptr (GArray) places = g_array_new (FALSE, FALSE, sizeof (double));
  char longest[24];
  int digits = g_snprintf (longest, sizeof longest, "%" G_GINT64_FORMAT, a->last);
  Labels labels = { places, MAX (34, 7 * digits + 10) };
  gint64 step = (gint64)MAX (
      1, td_format_step ((double)(a->n * a->width), (int)(m->map.width / labels.apart)));

  if (td__gradient_axis_find (a, m->view->iteration) >= 0)
    add_number (m, &labels, m->view->iteration);
  add_number (m, &labels, a->first);
  add_number (m, &labels, a->last);
  for (gint64 n = (a->first / step + 1) * step; n < a->last; n += step)
    add_number (m, &labels, n);
}

static void
add_scale (Map *m, double right)
{
  float ramp[32];
  TdTextStyle text = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = 1 };
  TdTextStyle after = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS };
  char label[TD_FORMAT_SIZE];

  for (int i = 0; i < 32; i++)
    ramp[i] = (float)i / 31;
  TdHeat heat
      = { .rows = 1, .cols = 32, .values = ramp, .map = TD_COLORMAP_CIVIDIS, .lo = 0, .hi = 1 };
  td_scene_add_heat (m->b, (TdSceneRect){ right - 102, 6, 58, 8 }, &heat);
  td_scene_add_text (m->b, right - 107, 10, td_format_value (label, pow (10, m->lo)), &text);
  td_scene_add_text (m->b, right - 39, 10, td_format_value (label, pow (10, m->hi)), &after);
  td_scene_add_text (m->b, right - 150, 10, "‖g‖₂", &text);
}

/* "clipped in 3 of 12 · ‖g‖₂ 15.2 → 5.00": how often, and what it did in this iteration. */
static void
append_clipping (const Map *m, const TdGradientClip *clip, GString *text)
{
  guint n_clipped, n_known = td__gradient_count_clipped (m->table, m->columns, &n_clipped);
  char before[TD_FORMAT_SIZE], after[TD_FORMAT_SIZE];

  if (n_known == 0)
    return;
  g_string_append_printf (text, "%sclipped in %u of %u", text->len > 0 ? " · " : "", n_clipped,
                          n_known);
  if (clip->n_hooked > 0 && clip->known && clip->before == TD_CELL_VALUE
      && clip->after == TD_CELL_VALUE)
    g_string_append_printf (text, " · ‖g‖₂ %s → %s", td_format_value (before, clip->l2_before),
                            td_format_value (after, clip->l2_after));
}

/* "36 of 149 parameters": those around the selected one. */
static void
append_rows (const Map *m, GString *text)
{
  if (m->n_rows < m->table->rows->len)
    g_string_append_printf (text, "%u of %u parameters", m->n_rows, m->table->rows->len);
}

/* "a column: 16 iterations · 3 of 40 empty" */
static void
append_columns (const Map *m, GString *text)
{
  guint n_empty = m->axis->n - m->columns->len;

  if (m->axis->width > 1)
    g_string_append_printf (text, "%s1 of %" G_GINT64_FORMAT " iterations a column",
                            text->len > 0 ? " · " : "", m->axis->width);
  if (n_empty > 0)
    g_string_append_printf (text, "%s%u of %u empty: not stored", text->len > 0 ? " · " : "",
                            n_empty, m->axis->n);
}

static void
add_caption (Map *m, double right)
{
  TdGradientClip clip = td_gradient_table_clip (m->table, m->view->iteration);
  TdTextStyle style = { .role = clip.clipped ? TD_ROLE_WARNING : TD_ROLE_DIM,
                        .size = TD_TEXT_AXIS,
                        .max_width = MAX (20, right - 200) };
  g_autoptr (GString) text = g_string_new (NULL);

  append_rows (m, text);
  append_clipping (m, &clip, text);
  append_columns (m, text);
  if (text->len > 0)
    td_scene_add_text (m->b, 8, 10, text->str, &style);
}

/* The selected parameter's cell in the playhead's column. */
static void
add_selected (Map *m, gint selected)
{
  TdStyle frame = { .stroke = TD_ROLE_ACCENT, .stroke_width = 2 };
  gint column = td__gradient_axis_find (m->axis, m->view->iteration);
  double cell = m->map.width / m->axis->n, row = m->map.height / m->n_rows;

  if (column < 0 || selected < 0 || (guint)selected < m->first_row
      || (guint)selected >= m->first_row + m->n_rows)
    return;
  td_scene_add_shape (m->b, TD_PRIM_ROUND,
                      (TdSceneRect){ m->map.x + column * cell - 1,
                                     m->map.y + ((guint)selected - m->first_row) * row - 1,
                                     cell + 1, row + 1 },
                      3, &frame);
}

TdScene *
td_gradient_scene (const TdGradientTable *table, const TdIteration *current,
                   const TdGradientRange *range, const TdPanelView *view)
{
  double w = view->width > 0 ? view->width : 480,
         h = view->height > 0 ? view->height : MAX (190, 48 + 14.0 * table->rows->len);
  g_autoptr (GPtrArray) names = td__gradient_name_rows (table);
  const double names_width = width_of_names (names);
  double room = MAX (40, w - names_width - VALUE_WIDTH - 6);
  g_autoptr (TdGradientAxis) axis = td__gradient_axis_of (table, range, (guint)(room / 7));
  g_autoptr (GArray) columns = td__gradient_axis_list (axis);
  Map m = { .table = table,
            .view = view,
            .axis = axis,
            .columns = columns,
            .names = names,
            .names_width = names_width };
  const char *title, *text;
  gint selected = -1;

  if (current && (td_iteration_get_tape (current)->flags & TD_TAPE_ITERATION_SNAPSHOT))
    return td_panel_message (view, "No gradients in a memory snapshot",
                             "Of a block it knows the size and who allocated it.");
  if (td__gradient_why_nothing (table, columns, &title, &text))
    return td_panel_message (view, title, text);
  for (guint r = 0; r < table->rows->len; r++)
    if (td_panel_is_selected (view, td_gradient_table_key (table, r)))
      selected = (gint)r;
  /* as many rows as can be told apart, around the selected one */
  m.n_rows = MIN (table->rows->len, (guint)MAX (1, (h - 46) / MIN_ROW));
  if (selected >= 0 && (guint)selected >= m.n_rows)
    m.first_row = MIN ((guint)selected - m.n_rows / 2, table->rows->len - m.n_rows);
  m.b = td_scene_builder_new (w, h);
  td_scene_set_background (m.b, TD_ROLE_VIEW);
  m.map = (TdSceneRect){ names_width, 26, MIN (room / axis->n, 18) * axis->n,
                         MIN ((h - 46) / m.n_rows, 20) * m.n_rows };
  find_limits (&m);
  add_rows (&m, selected);
  add_cells (&m); /* over the rows' texts, whose boxes for the pointer are rather wide */
  add_iterations (&m);
  add_playhead (&m);
  add_scale (&m, w);
  add_caption (&m, w);
  add_selected (&m, selected);
  TdSceneAxes axes = { .box = m.map,
                       .x0 = (double)axis->first,
                       .x1 = (double)(axis->first + axis->n * axis->width),
                       .y1 = m.n_rows };
  td_scene_set_axes (m.b, &axes);
  return td_scene_builder_end (m.b);
}

TdScene *
td_gradient_scene_missing (const TdGradientTable *table, const TdPanelView *view)
{
  double w = view->width > 0 ? view->width : 480, h = view->height > 0 ? view->height : 190,
         y = 18;
  TdSceneBuilder *b = NULL;

  for (guint r = 0; r < table->rows->len; r++)
    {
      const char *why = td_gradient_table_missing (table, r, view->iteration);
      TdTextStyle name = { .role = TD_ROLE_TEXT,
                           .size = TD_TEXT_CAPTION,
                           .bold = TRUE,
                           .middle = TRUE,
                           .max_width = 120 };
      TdTextStyle text
          = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION, .max_width = MAX (20, w - 154) };

      if (!why)
        continue;
      if (!b)
        {
          b = td_scene_builder_new (w, h);
          td_scene_set_background (b, TD_ROLE_VIEW);
        }
      td_scene_mark (b, TD_TAG_PARAMETER, td_gradient_table_key (table, r), r, why);
      td_scene_add_text (b, 12, y, td_gradient_table_path (table, r), &name);
      td_scene_add_text (b, 142, y, why, &text);
      td_scene_unmark (b);
      y += 22;
    }
  if (!b && !td__gradient_updated (table, view->iteration))
    return td_panel_message (view, "No optimizer update in this iteration",
                             "What has no gradient is known by what an optimizer takes.");
  if (!b)
    return td_panel_message (view, "Nothing is missing",
                             "Every parameter got a gradient in this iteration.");
  td_scene_set_size (b, w, MAX (h, y));
  return td_scene_builder_end (b);
}
