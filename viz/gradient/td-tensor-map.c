/*
 * The map of a tensor: cells of a matrix with the places of its rows and columns, or an image
 * for each pair of its last two axes; and which element is under the pointer.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>

#include "td-tensor-private.h"

#define TILE_GAP 2.0
#define WORTH_WRAPPING 1.6 /* times as large: then the grid is given up */
#define LEAST_TILE 8.0
#define MOST_TILE_SCALE 24.0 /* units a value */
#define SIDE 30.0            /* room for the places of rows */
#define FOOT 28.0            /* for those of columns, and what axes they are */

/* What is drawn as one heat map: a matrix of the tensor in at most so many cells. */
typedef struct
{
  const TdTensor *tensor;
  TdTensorMatrix m;
  gint64 rows, cols;
} Cells;

static Cells
cells_of (const TdTensor *t, TdTensorMatrix m, const TdSceneRect *box)
{
  return (Cells){ t, m, MIN (m.rows, MAX ((gint64)box->height, 1)),
                  MIN (m.cols, MAX ((gint64)box->width, 1)) };
}

/* Several elements share a cell: it shows the one of largest magnitude, and NaN before all.
 * Returns how many of them there are, `element` is only set where one is. */
static guint64
pick (const Cells *cells, gint64 row, gint64 col, guint64 *element)
{
  const TdTensor *t = cells->tensor;
  const TdTensorMatrix *m = &cells->m;
  guint64 n = 0;

  for (gint64 r = row * m->rows / cells->rows; r < (row + 1) * m->rows / cells->rows; r++)
    for (gint64 c = col * m->cols / cells->cols; c < (col + 1) * m->cols / cells->cols; c++)
      {
        guint64 i = (guint64)(m->origin + r * m->row_stride + c * m->col_stride);

        if (i >= t->n_values)
          continue;
        if (n == 0
            || (!isnan (t->values[*element])
                && !(fabs (t->values[i]) <= fabs (t->values[*element]))))
          *element = i;
        n++;
      }
  return n;
}

static double
scaled (const TdTensorView *view, double limit, double v)
{
  if (!view->log || v == 0)
    return v;
  /* symmetric log over four decades below the limit */
  double t = 1 + log10 (fabs (v) / limit) / 4;
  return copysign (CLAMP (t, 0, 1) * limit, v);
}

static void
add_cells (TdSceneBuilder *b, const Cells *cells, const TdTensorView *view, double limit,
           TdSceneRect box, gint64 tile)
{
  gsize n = (gsize)MAX (cells->rows, 0) * (gsize)MAX (cells->cols, 0);
  g_autofree float *values = g_new0 (float, MAX (n, 1));
  g_autofree guint8 *kinds = g_malloc0 (MAX (n, 1));
  guint64 i;

  for (gsize k = 0; k < n; k++)
    {
      if (pick (cells, (gint64)k / cells->cols, (gint64)k % cells->cols, &i) == 0)
        {
          kinds[k] = TD_CELL_MISSING;
          continue;
        }
      double v = cells->tensor->values[i];
      kinds[k] = isnan (v)    ? TD_CELL_NAN
                 : !isinf (v) ? TD_CELL_VALUE
                 : v > 0      ? TD_CELL_PLUS_INF
                              : TD_CELL_MINUS_INF;
      values[k] = isfinite (v) ? (float)scaled (view, limit, v) : 0;
    }
  TdHeat heat = { .rows = (int)cells->rows,
                  .cols = (int)cells->cols,
                  .values = values,
                  .cells = kinds,
                  .map = TD_COLORMAP_DIVERGING,
                  .lo = -limit,
                  .hi = limit };
  td_scene_mark (b, TD_TAG_CELL, 0, tile, NULL);
  td_scene_add_heat (b, box, &heat);
  td_scene_unmark (b);
}

/* ---- places ---- */

static char *
dup_axis_names (const guint *axes, guint first, guint end)
{
  if (first >= end)
    return g_strdup ("");
  if (first + 1 == end)
    return g_strdup_printf ("axis %u", axes[first]);
  return g_strdup_printf ("axes %u to %u", axes[first], axes[end - 1]);
}

static void
add_row_places (TdSceneBuilder *b, const TdTensor *t, const TdTensorMatrix *m, TdSceneRect box)
{
  TdTextStyle text = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = 1 };
  TdStyle line = { .stroke = TD_ROLE_BORDER };
  gint64 step = MAX ((gint64)td_format_step ((double)m->rows, (int)(box.height / 16)), 1);

  for (gint64 r = 0; r < m->rows; r += step)
    {
      double y = box.y + box.height * ((double)r + 0.5) / (double)m->rows;
      const TdScenePoint tick[] = { { box.x - 4, y }, { box.x - 1, y } };
      g_autofree char *label = td_tensor_dup_row_label (t, r);

      td_scene_add_line (b, tick, 2, &line);
      td_scene_add_text (b, box.x - 6, y, label, &text);
    }
}

/* Columns that stand for several axes are told by the first of these. */
static void
add_column_places (TdSceneBuilder *b, const TdTensor *t, const TdTensorMatrix *m,
                   TdSceneRect box)
{
  TdTextStyle text = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .align = 0.5 };
  TdStyle line = { .stroke = TD_ROLE_BORDER };
  guint first = t->ndim < 2 ? 0 : td__tensor_row_axis (t) + 1, axes[TD_TAPE_MAX_NDIM];
  gint64 n = t->ndim > 0 ? t->dims[first] : 1, width = MAX (m->cols / MAX (n, 1), 1);
  gint64 step = MAX ((gint64)td_format_step ((double)n, (int)(box.width / 34)), 1);

  td__tensor_axes (t, axes);
  for (gint64 k = 0; k < n && t->ndim > 0; k += step)
    {
      const TdSliceAxis *axis = &t->slice.axes[axes[first]];
      double at = width > 1 ? (double)(k * width) : (double)k + 0.5;
      double x = box.x + box.width * at / (double)m->cols;
      const TdScenePoint tick[]
          = { { x, box.y + box.height + 1 }, { x, box.y + box.height + 4 } };
      g_autofree char *label
          = g_strdup_printf ("%" G_GINT64_FORMAT, axis->start + k * axis->step);

      td_scene_add_line (b, tick, 2, &line);
      td_scene_add_text (b, x, box.y + box.height + 10, label, &text);
    }
}

static void
add_axis_names (TdSceneBuilder *b, const TdTensor *t, TdSceneRect box)
{
  TdTextStyle text = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .max_width = box.width };
  guint axes[TD_TAPE_MAX_NDIM], n = td__tensor_axes (t, axes);
  guint row = td__tensor_row_axis (t);

  if (n == 0)
    return;
  g_autofree char *down = n < 2 ? NULL : dup_axis_names (axes, row, row + 1);
  g_autofree char *across = dup_axis_names (axes, n < 2 ? 0 : row + 1, n);
  g_autofree char *names
      = down ? g_strdup_printf ("↓ %s   → %s", down, across) : g_strdup_printf ("→ %s", across);
  td_scene_add_text (b, box.x, box.y + box.height + 22, names, &text);
}

/* ---- tiles ---- */

/* Images in rows and columns: of three axes they are wrapped like words, and where a grid would
 * be nearly one line; else the last axis but two is the columns, or the rows where that leaves
 * larger images or a lower picture. */
typedef struct
{
  gint64 h, w, n;        /* of an image; how many there are */
  gint64 n_rows, n_cols; /* of the grid; 0: wrapped */
  gint64 rows, cols;     /* that are drawn */
  gboolean turned;
  double tile_w, tile_h;
} Tiles;

static gboolean
fits (const Tiles *tiles, double scale, double width, double height)
{
  double w = (double)tiles->w * scale + TILE_GAP, h = (double)tiles->h * scale + TILE_GAP;
  double cols = MAX (floor (width / w), 1), rows = MAX (floor (height / h), 1);

  if (tiles->n_cols > 0)
    return (double)tiles->n_cols <= cols && (double)tiles->n_rows <= rows;
  return cols * rows >= (double)tiles->n;
}

static double
find_scale (const Tiles *tiles, double width, double height)
{
  double longer = (double)MAX (MAX (tiles->h, tiles->w), 1);
  double scale = MIN (MIN (width, height) / longer, MOST_TILE_SCALE);

  while (scale * longer > LEAST_TILE && !fits (tiles, scale, width, height))
    scale *= 0.96;
  return scale;
}

static Tiles
lay_out_tiles (const TdTensor *t, double width, double height)
{
  gint64 h = t->dims[t->ndim - 2], w = t->dims[t->ndim - 1];
  Tiles tiles = { .h = h, .w = w, .n = (gint64)t->n_total / MAX (h * w, 1) };

  if (t->ndim >= 4)
    {
      Tiles turned = tiles, tiles_in_turn = tiles;

      tiles.n_cols = MAX (t->dims[t->ndim - 3], 1);
      tiles.n_rows = tiles.n / tiles.n_cols;
      turned.n_cols = tiles.n_rows;
      turned.n_rows = tiles.n_cols;
      turned.turned = TRUE;
      double here = find_scale (&tiles, width, height);
      double there = find_scale (&turned, width, height);
      double wrapped = find_scale (&tiles_in_turn, width, height);
      if (wrapped > WORTH_WRAPPING * MAX (here, there))
        tiles = tiles_in_turn;
      else if (there > here || (there == here && turned.n_rows < tiles.n_rows))
        tiles = turned;
    }
  double scale = find_scale (&tiles, width, height);
  tiles.tile_w = MAX ((double)w * scale, 1);
  tiles.tile_h = MAX ((double)h * scale, 1);
  gint64 across = MAX ((gint64)floor (width / (tiles.tile_w + TILE_GAP)), 1);
  gint64 down = MAX ((gint64)floor (height / (tiles.tile_h + TILE_GAP)), 1);
  tiles.cols = MIN (across, tiles.n_cols > 0 ? tiles.n_cols : tiles.n);
  tiles.rows = MIN (down, tiles.n_cols > 0 ? tiles.n_rows
                                           : (tiles.n + tiles.cols - 1) / MAX (tiles.cols, 1));
  return tiles;
}

/* Which image is in a place of the grid; -1: none. */
static gint64
find_tile (const Tiles *tiles, gint64 row, gint64 col)
{
  gint64 tile = tiles->turned       ? col * tiles->n_rows + row
                : tiles->n_cols > 0 ? row * tiles->n_cols + col
                                    : row * tiles->cols + col;
  return tile < tiles->n ? tile : -1;
}

gboolean
td_tensor_has_images (const TdTensor *t)
{
  return t->ndim >= 3 && t->n_total > 0 && t->dims[t->ndim - 1] > 1 && t->dims[t->ndim - 2] > 1;
}

/* An image is a matrix of its own. */
static TdTensorMatrix
image_of (const TdTensor *t, gint64 tile)
{
  gint64 h = t->dims[t->ndim - 2], w = t->dims[t->ndim - 1];

  return (TdTensorMatrix){ h, w, tile * h * w, w, 1 };
}

static void
add_tiles (TdSceneBuilder *b, const TdTensor *t, const TdTensorView *view, TdSceneRect box,
           double limit)
{
  Tiles tiles = lay_out_tiles (t, box.width, box.width); /* as its height was found */
  TdTextStyle text = { .role = TD_ROLE_DIM, .size = TD_TEXT_AXIS, .max_width = box.width };
  gint64 n_shown = 0;
  guint axes[TD_TAPE_MAX_NDIM], n = td__tensor_axes (t, axes);
  char shown[TD_FORMAT_SIZE], all[TD_FORMAT_SIZE];

  for (gint64 r = 0; r < tiles.rows; r++)
    for (gint64 c = 0; c < tiles.cols; c++)
      {
        gint64 tile = find_tile (&tiles, r, c);
        TdSceneRect at
            = { box.x + (double)c * (tiles.tile_w + TILE_GAP),
                box.y + (double)r * (tiles.tile_h + TILE_GAP), tiles.tile_w, tiles.tile_h };
        if (tile < 0)
          break;
        Cells cells = cells_of (t, image_of (t, tile), &at);
        add_cells (b, &cells, view, limit, at, tile);
        n_shown++;
      }
  g_autofree char *leading = dup_axis_names (axes, 0, tiles.n_cols > 0 ? n - 3 : n - 2);
  g_autofree char *last = tiles.n_cols > 0 ? dup_axis_names (axes, n - 3, n - 2) : NULL;
  g_autofree char *names = last ? g_strdup_printf ("↓ %s   → %s", tiles.turned ? last : leading,
                                                   tiles.turned ? leading : last)
                                : g_strdup_printf ("images of %s", leading);
  g_autofree char *said
      = n_shown == tiles.n
            ? g_strdup (names)
            : g_strdup_printf ("%s · %s of %s images", names, td_format_count (shown, n_shown),
                               td_format_count (all, tiles.n));
  td_scene_add_text (b, box.x, box.y + box.height + 10, said, &text);
}

/* ---- the map ---- */

double
td__tensor_map_height (const TdTensor *t, const TdTensorView *view, double width, double most)
{
  if (view->tiles && td_tensor_has_images (t))
    {
      Tiles tiles = lay_out_tiles (t, width, width);
      return (double)tiles.rows * (tiles.tile_h + TILE_GAP) + FOOT / 2;
    }
  TdTensorMatrix m = td__tensor_matrix (t, view);
  width -= SIDE;
  /* square cells while there is room, but neither a thread nor a tower */
  gboolean square = m.rows * 2 > m.cols;
  double height = width * (double)m.rows / (double)MAX (m.cols, 1);
  height = MAX (height, MIN ((double)m.rows * 6, 92));
  height = CLAMP (height, 28, square ? width : 92);
  if (most > 0)
    height = MIN (height, MAX (most - FOOT, square ? 110 : 92));
  return height + FOOT;
}

TdSceneRect
td__tensor_add_map (TdSceneBuilder *b, const TdTensor *t, const TdTensorView *view,
                    TdSceneRect box, double limit)
{
  TdStyle frame = { .stroke = TD_ROLE_HAIRLINE };
  TdTensorMatrix m = td__tensor_matrix (t, view);
  gboolean chosen = view->row_axis >= 0; /* other axes than the places are of */

  if (view->tiles && td_tensor_has_images (t))
    {
      TdSceneRect at = { box.x, box.y, box.width, box.height - FOOT / 2 };
      add_tiles (b, t, view, at, limit);
      return at;
    }
  TdSceneRect at = { box.x + SIDE, box.y, box.width - SIDE, box.height - FOOT };
  Cells cells = cells_of (t, m, &at);
  add_cells (b, &cells, view, limit, at, -1);
  td_scene_add_shape (b, TD_PRIM_RECT, at, 0, &frame);
  if (!chosen && t->ndim >= 2)
    add_row_places (b, t, &m, at);
  if (!chosen)
    {
      add_column_places (b, t, &m, at);
      add_axis_names (b, t, at);
    }
  return at;
}

guint64
td_tensor_find_hit (const TdTensor *t, const TdTensorView *view, const TdSceneHit *hit,
                    guint64 *element)
{
  if (!t->values || hit->tag != TD_TAG_CELL || hit->row < 0)
    return 0;
  if (hit->data >= 0 && (!td_tensor_has_images (t) || (guint64)hit->data >= t->n_total))
    return 0;
  TdTensorMatrix m = hit->data < 0 ? td__tensor_matrix (t, view) : image_of (t, hit->data);
  Cells cells = cells_of (t, m, &hit->box);
  if (hit->row >= cells.rows || hit->col >= cells.cols)
    return 0;
  return pick (&cells, hit->row, hit->col, element);
}
