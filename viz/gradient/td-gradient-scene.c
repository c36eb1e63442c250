/*
 * The heat map of gradient norms, and the list of what got none.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "td-gradient-private.h"

#define NAME_WIDTH 86.0
#define VALUE_WIDTH 58.0

static gint
by_number (gconstpointer a, gconstpointer b)
{
  gint64 x = *(const gint64 *)a, y = *(const gint64 *)b;

  return (x > y) - (x < y);
}

static gint
by_value (gconstpointer a, gconstpointer b)
{
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

GArray *
td__gradient_columns (const TdGradientTable *table, gint64 last, guint n)
{
  GArray *all = g_array_new (FALSE, FALSE, sizeof (gint64));
  GHashTableIter iter;
  gpointer key;

  g_hash_table_iter_init (&iter, table->columns);
  while (g_hash_table_iter_next (&iter, &key, NULL))
    if (*(gint64 *)key <= last)
      g_array_append_val (all, *(gint64 *)key);
  g_array_sort (all, by_number);
  if (all->len > n)
    g_array_remove_range (all, 0, all->len - n);
  return all;
}

typedef struct
{
  TdSceneBuilder *b;
  const TdGradientTable *table;
  const TdPanelView *view;
  GArray *columns;         /* gint64 */
  guint first_row, n_rows; /* rows shown */
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

static void
add_cells (Map *m)
{
  guint n = m->n_rows * m->columns->len;
  g_autofree float *values = g_new0 (float, MAX (n, 1));
  g_autofree guint8 *cells = g_malloc0 (MAX (n, 1));

  for (guint r = 0; r < m->n_rows; r++)
    for (guint c = 0; c < m->columns->len; c++)
      {
        guint i = r * m->columns->len + c;
        double norm;

        cells[i] = td_gradient_table_norm (m->table, m->first_row + r,
                                           g_array_index (m->columns, gint64, c), &norm);
        /* an all-zero gradient is the lowest colour, not a hole */
        values[i] = (float)(norm > 0 ? log10 (norm) : m->lo);
      }
  TdHeat heat = { .rows = (int)m->n_rows,
                  .cols = (int)m->columns->len,
                  .values = values,
                  .cells = cells,
                  .map = TD_COLORMAP_CIVIDIS,
                  .lo = m->lo,
                  .hi = m->hi,
                  .gap = 1 };
  td_scene_mark (m->b, TD_TAG_CELL, 0, m->first_row, NULL);
  td_scene_add_heat (m->b, m->map, &heat);
  td_scene_unmark (m->b);
}

/* The last two parts of a path: "conv1/W" says enough beside a row. */
static const char *
short_path (const char *path)
{
  const char *last = strrchr (path, '/'), *at = last;

  while (at && at > path && at[-1] != '/')
    at--;
  return at ? at : path;
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
                           .max_width = NAME_WIDTH - 14 };
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
      td_scene_add_text (m->b, NAME_WIDTH - 8, y,
                         short_path (td_gradient_table_path (m->table, row)), &name);
      td_scene_add_text (m->b, m->map.x + m->map.width + VALUE_WIDTH - 8, y, text, &value);
      td_scene_unmark (m->b);
    }
}

static void
add_iterations (Map *m)
{
  guint n = m->columns->len, every = MAX (1, (guint)ceil (n * 46.0 / m->map.width));
  double w = m->map.width / MAX (n, 1);

  for (guint c = 0; c < n; c++)
    {
      gint64 number = g_array_index (m->columns, gint64, c);
      gboolean here = number == m->view->iteration;
      TdTextStyle text = { .role = here ? TD_ROLE_ACCENT : TD_ROLE_DIM,
                           .size = TD_TEXT_AXIS,
                           .align = 0.5,
                           .bold = here };
      char label[24];

      /* the last one is always named; others at even distances from it */
      if ((n - 1 - c) % every != 0)
        continue;
      g_snprintf (label, sizeof label, "%" G_GINT64_FORMAT, number);
      td_scene_add_text (m->b, m->map.x + (c + 0.5) * w, m->map.y + m->map.height + 11, label,
                         &text);
      if (here)
        {
          TdStyle triangle = { .fill = TD_ROLE_ACCENT };
          td_scene_add_shape (
              m->b, TD_PRIM_PLAYHEAD,
              (TdSceneRect){ m->map.x + (c + 0.5) * w - 4.5, m->map.y - 8, 9, 6 }, 0,
              &triangle);
        }
    }
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

/* "clipped 3 of 12 · ‖g‖₂ 15.2 → 5.00": how often, and what it did in this iteration. */
static void
add_clipping (Map *m, double right)
{
  TdGradientClip clip = td_gradient_table_clip (m->table, m->view->iteration);
  TdTextStyle style = { .role = clip.clipped ? TD_ROLE_WARNING : TD_ROLE_DIM,
                        .size = TD_TEXT_AXIS,
                        .max_width = MAX (20, right - 180) };
  guint n_clipped, n_known = td_gradient_table_count_clipped (m->table, m->view->iteration,
                                                              m->columns->len, &n_clipped);
  char before[TD_FORMAT_SIZE], after[TD_FORMAT_SIZE], text[160];

  if (n_known == 0)
    return;
  if (clip.n_hooked > 0 && clip.known && clip.before == TD_CELL_VALUE
      && clip.after == TD_CELL_VALUE)
    g_snprintf (text, sizeof text, "clipped in %u of %u · ‖g‖₂ %s → %s", n_clipped, n_known,
                td_format_value (before, clip.l2_before),
                td_format_value (after, clip.l2_after));
  else
    g_snprintf (text, sizeof text, "clipped in %u of %u", n_clipped, n_known);
  td_scene_add_text (m->b, 8, 10, text, &style);
}

static const char no_update[] = "Gradients are known by where an optimizer takes them.";

static gboolean
any_updated (const TdGradientTable *table, const GArray *columns)
{
  for (guint c = 0; c < columns->len; c++)
    if (td__gradient_updated (table, g_array_index (columns, gint64, c)))
      return TRUE;
  return FALSE;
}

TdScene *
td_gradient_scene (const TdGradientTable *table, const TdIteration *current,
                   const TdPanelView *view)
{
  double w = view->width > 0 ? view->width : 480,
         h = view->height > 0 ? view->height : MAX (190, 48 + 14.0 * table->rows->len);
  double room = MAX (40, w - NAME_WIDTH - VALUE_WIDTH - 6);
  Map m = { .table = table,
            .view = view,
            .columns = td__gradient_columns (table, view->iteration, (guint)(room / 7)) };
  g_autoptr (GArray) columns = m.columns;
  gint selected = -1;

  if (current && (td_iteration_get_tape (current)->flags & TD_TAPE_ITERATION_SNAPSHOT))
    return td_panel_message (view, "No gradients in a memory snapshot",
                             "Of a block it knows the size and who allocated it.");
  if (table->rows->len == 0)
    return td_panel_message (view, "No parameters",
                             "The program has not announced any parameter yet.");
  if (columns->len == 0)
    return td_panel_message (view, "No gradients recorded",
                             "Record with --level stats to see norms by iteration.");
  if (!any_updated (table, columns))
    return td_panel_message (view, "No optimizer update in these iterations", no_update);
  for (guint r = 0; r < table->rows->len; r++)
    if (td_panel_is_selected (view, td_gradient_table_key (table, r)))
      selected = (gint)r;
  /* as many rows as stay readable, around the selected one */
  m.n_rows = MIN (table->rows->len, (guint)MAX (1, (h - 46) / 11));
  if (selected >= 0 && (guint)selected >= m.n_rows)
    m.first_row = MIN ((guint)selected - m.n_rows / 2, table->rows->len - m.n_rows);
  m.b = td_scene_builder_new (w, h);
  td_scene_set_background (m.b, TD_ROLE_VIEW);
  double row = MIN ((h - 46) / m.n_rows, 20);
  double cell = MIN (room / columns->len, 18);
  m.map = (TdSceneRect){ NAME_WIDTH, 26, cell * columns->len, row * m.n_rows };
  find_limits (&m);
  add_cells (&m);
  add_rows (&m, selected);
  add_iterations (&m);
  add_scale (&m, w);
  add_clipping (&m, w);
  if (selected >= 0 && (guint)selected >= m.first_row
      && (guint)selected < m.first_row + m.n_rows)
    {
      TdStyle frame = { .stroke = TD_ROLE_ACCENT, .stroke_width = 2 };

      td_scene_add_shape (m.b, TD_PRIM_ROUND,
                          (TdSceneRect){ m.map.x + m.map.width - cell - 1,
                                         m.map.y + ((guint)selected - m.first_row) * row - 1,
                                         cell + 1, row + 1 },
                          3, &frame);
    }
  TdSceneAxes axes = { .box = m.map,
                       .x0 = (double)g_array_index (columns, gint64, 0),
                       .x1 = (double)g_array_index (columns, gint64, columns->len - 1) + 1,
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
    return td_panel_message (view, "No optimizer update in this iteration", no_update);
  if (!b)
    return td_panel_message (view, "Nothing is missing",
                             "Every parameter got a gradient in this iteration.");
  td_scene_set_size (b, w, MAX (h, y));
  return td_scene_builder_end (b);
}
