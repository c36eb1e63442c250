/*
 * What the painter, the SVG writer and the dump see of a scene. Not for panels.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-scene.h"

G_BEGIN_DECLS

typedef struct
{
  guint8 kind, pattern, dash, size; /* TdPrimKind, TdPattern, TdDash, TdTextSize */
  guint8 fill, stroke, tag;         /* TdRole, TdRole, TdSceneTag */
  guint8 flags;                     /* TdPrimFlags */
  guint8 bold, middle, upward;
  float fill_alpha, stroke_alpha, stroke_width, radius;
  float align, max_width, text_x, text_y;
  TdSceneRect box;  /* bounds; of text: an estimate that is never too small */
  guint32 first, n; /* points, or the text's offset and length, or the heat map's index */
  guint32 tooltip;  /* offset in the pool, 0: none */
  guint64 key;
  gint64 data;
} TdPrim;

typedef struct
{
  TdHeat heat;
  float *values;
  guint8 *cells;
  gint64 *numbers;
  guint32 *tooltips; /* offsets in the pool */
} TdSceneHeat;

struct _TdScene
{
  gatomicrefcount refs;
  double width, height;
  guint8 background;
  gboolean has_axes;
  TdSceneAxes axes;
  GArray *prims;  /* TdPrim */
  GArray *points; /* TdScenePoint */
  GArray *heats;  /* TdSceneHeat */
  GString *pool;  /* NUL-terminated strings */
  /* uniform grid over the scene, made above TD_GRID_MIN items: cell c holds
   * grid_items[grid_start[c]..grid_start[c+1]) */
  int grid_cols, grid_rows;
  double grid_cell;
  guint32 *grid_start, *grid_items;
};

#define TD_GRID_MIN 2000
#define TD_LOD_NODES 400
#define TD_LOD_TEXT_PIXELS 6.0

static inline const TdPrim *
td__scene_prim (const TdScene *scene, guint i)
{
  return &g_array_index (scene->prims, TdPrim, i);
}

static inline const TdScenePoint *
td__scene_points (const TdScene *scene, const TdPrim *p)
{
  return &g_array_index (scene->points, TdScenePoint, p->first);
}

static inline const char *
td__scene_text (const TdScene *scene, const TdPrim *p)
{
  return scene->pool->str + p->first;
}

/** Set marks[i] for each primitive that may touch `r` (never misses one). */
void td__scene_query (const TdScene *scene, const TdSceneRect *r, guint8 *marks);

/** Return the colour of a role in a theme, times alpha. */
static inline TdColor
td__color (const TdTheme *theme, guint role, double alpha)
{
  TdColor c = theme->color[role];

  c.a *= alpha > 0 ? alpha : 1.0;
  return c;
}

/** Return the solidity of a primitive's fill in a theme. */
static inline double
td__fill_alpha (const TdTheme *theme, const TdPrim *p)
{
  double alpha = p->fill_alpha > 0 ? p->fill_alpha : 1.0;

  return p->flags & TD_PRIM_AREA ? alpha * theme->area_alpha : alpha;
}

static inline double
td__stroke_width (const TdTheme *theme, const TdPrim *p)
{
  double width = p->stroke_width > 0 ? p->stroke_width : 1.0;

  return MAX (width, theme->min_stroke);
}

static inline gboolean
td__rects_touch (const TdSceneRect *a, const TdSceneRect *b)
{
  return a->x <= b->x + b->width && b->x <= a->x + a->width && a->y <= b->y + b->height
         && b->y <= a->y + a->height;
}

/** Return what the heat map shows at a cell, telling NaN and Inf by the value when no cells are
 * given. */
TdCell td__heat_cell (const TdSceneHeat *h, int row, int col);
/** Return the colour of a cell of kind TD_CELL_VALUE. */
TdColor td__heat_color (const TdSceneHeat *h, int row, int col);

/** Fill `out` with the corners of the arrow head at the end of a polyline; returns FALSE when
 * too short. */
gboolean td__arrow_head (const TdScenePoint *from, const TdScenePoint *to, double size,
                         TdScenePoint out[3]);

/** Return the distance of the lines of a pattern, in units. */
#define TD_PATTERN_TILE 6.0

G_END_DECLS
