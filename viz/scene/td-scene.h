/*
 * A scene is an immutable, flat list of primitives: what one picture shows, in its own units
 * (one unit is a CSS pixel at 100 %). Widgets, PNG, SVG and PDF are painted from the same list,
 * tests read its text dump, and clicks are answered by it. Colours are roles of a TdTheme.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <cairo.h>

#include "td-colormap.h"
#include "td-theme.h"

G_BEGIN_DECLS

typedef struct _TdScene TdScene;
typedef struct _TdSceneBuilder TdSceneBuilder;

typedef struct
{
  double x, y, width, height;
} TdSceneRect;

typedef struct
{
  double x, y;
} TdScenePoint;

typedef enum
{
  TD_PRIM_RECT,          /* corners as given */
  TD_PRIM_ROUND,         /* corners rounded by radius */
  TD_PRIM_CUT,           /* corners cut by radius (backward operations) */
  TD_PRIM_OCTAGON,       /* Chainer's variables, parameter stubs */
  TD_PRIM_ELLIPSE,       /* dots, the program head */
  TD_PRIM_PLAYHEAD,      /* triangle pointing down, in the box */
  TD_PRIM_CHEVRON_RIGHT, /* folded */
  TD_PRIM_CHEVRON_DOWN,  /* expanded */
  TD_PRIM_CROSS,         /* x: not finite, failure */
  TD_PRIM_POLYLINE,
  TD_PRIM_POLYGON,
  TD_PRIM_TEXT,
  TD_PRIM_HEAT
} TdPrimKind;

typedef enum
{
  TD_PATTERN_NONE,
  TD_PATTERN_HATCH_UP,   /* gradients */
  TD_PATTERN_HATCH_DOWN, /* optimizer state */
  TD_PATTERN_DOTS,       /* activations */
  TD_PATTERN_CROSS,      /* workspace, failures */
  TD_PATTERN_HORIZONTAL, /* inputs */
  TD_PATTERN_VERTICAL,   /* static arena */
  TD_PATTERN_OUTLINE     /* cached: no fill */
} TdPattern;

typedef enum
{
  TD_DASH_NONE,
  TD_DASH_DASHED, /* 4 3: not run yet */
  TD_DASH_DOTTED, /* round dots every 5: saved for backward */
  TD_DASH_FINE    /* 1 2: pool limit */
} TdDash;

typedef enum
{
  TD_PRIM_NODE = 1 << 0, /* counts for the level of detail */
  TD_PRIM_ARROW_END = 1 << 1,
  TD_PRIM_ARROW_START = 1 << 2,
  TD_PRIM_TINT = 1 << 3,   /* left out by themes without tints */
  TD_PRIM_DETAIL = 1 << 4, /* left out when a scene shows more than 400 nodes */
  TD_PRIM_AREA = 1 << 5    /* filled with the theme's area alpha */
} TdPrimFlags;

/* What a primitive stands for; says how to read key and data of a hit. */
typedef enum
{
  TD_TAG_NONE,
  TD_TAG_NODE,         /* key: node key, data: event */
  TD_TAG_GROUP,        /* key: group key */
  TD_TAG_GROUP_TOGGLE, /* key: group key */
  TD_TAG_EDGE,         /* key: key of the variable */
  TD_TAG_PILL,         /* key: key of the saved variable */
  TD_TAG_STUB,         /* key: key of the parameter or input */
  TD_TAG_LANE,
  TD_TAG_EVENT,     /* data: event of the iteration */
  TD_TAG_ITERATION, /* data: iteration */
  TD_TAG_CATEGORY,  /* data: memory category */
  TD_TAG_PARAMETER, /* key: parameter key, data: row */
  TD_TAG_CELL,      /* a heat map; row and column of the hit are set */
  TD_TAG_ROW,       /* data: row of a table; key: its node */
  TD_TAG_MINIMAP,
  TD_TAG_PLAYHEAD,
  TD_TAG_HEAD,
  TD_N_TAGS
} TdSceneTag;

/* Sizes of text by use: the pixels of 11, 10, 9, 9.4, 8.2 and 8 points. */
typedef enum
{
  TD_TEXT_BODY,
  TD_TEXT_LIST,
  TD_TEXT_CAPTION,
  TD_TEXT_NODE,
  TD_TEXT_SMALL,
  TD_TEXT_AXIS,
  TD_TEXT_STRIP,
  TD_N_TEXT_SIZES
} TdTextSize;

typedef struct
{
  TdRole fill;
  double fill_alpha; /* 0 means 1 */
  TdPattern pattern;
  TdRole stroke;
  double stroke_alpha; /* 0 means 1 */
  double stroke_width; /* 0 means 1 */
  TdDash dash;
  unsigned flags; /* TdPrimFlags */
} TdStyle;

typedef struct
{
  TdRole role;
  TdTextSize size;
  double align;     /* where x is in the text: 0 left end, 0.5 middle, 1 right end */
  double max_width; /* 0: as wide as it is; else cut with an ellipsis */
  double alpha;     /* 0 means 1 */
  gboolean bold;
  gboolean middle; /* cut in the middle, as paths are */
  gboolean upward; /* turned by 90 degrees, for axis titles */
  unsigned flags;
} TdTextStyle;

/* What a heat map shows in a cell that has no colour of the scale. */
typedef enum
{
  TD_CELL_VALUE,
  TD_CELL_MISSING, /* not recorded: a faint middle dot */
  TD_CELL_NAN,     /* hatched in the error colour */
  TD_CELL_PLUS_INF,
  TD_CELL_MINUS_INF,
  TD_CELL_EMPTY /* nothing there (yet): the background */
} TdCell;

typedef struct
{
  int rows, cols;
  const float *values; /* rows * cols, copied */
  const guint8 *cells; /* TdCell of each, or NULL: NaN and Inf are told from the value */
  TdColormap map;
  double lo, hi; /* ends of the scale */
  double gap;    /* free space at the right and lower end of each cell, in units */
  /* by column, copied; NULL: they stand for nothing */
  const gint64 *numbers;       /* what it stands for, -1: nothing is there */
  const char *const *tooltips; /* what it says, instead of the mark's */
} TdHeat;

typedef struct
{
  guint64 key;
  gint64 data;
  TdSceneTag tag;
  int row, col;        /* of a heat map, else -1 */
  gint64 number;       /* what its column stands for, -1: nothing */
  const char *tooltip; /* owned by the scene; may be NULL */
  TdSceneRect box;
} TdSceneHit;

/* A plot area: its x axis maps scene units to iterations, events or indices. */
typedef struct
{
  TdSceneRect box;
  double x0, x1; /* values at the left and right end */
  double y0, y1; /* values at the lower and upper end */
} TdSceneAxes;

/* ---- building ---- */

/** Begin a scene of the given size in units. Owner: the caller, until td_scene_builder_end. */
TdSceneBuilder *td_scene_builder_new (double width, double height);

/** Give everything added from here on a meaning: what a click on it means and its tooltip (may
 * be NULL). */
void td_scene_mark (TdSceneBuilder *b, TdSceneTag tag, guint64 key, gint64 data,
                    const char *tooltip);
/** Things added from here on mean nothing when clicked. */
void td_scene_unmark (TdSceneBuilder *b);

/** Add a shape of `kind` (any up to TD_PRIM_CROSS) in `box`; radius only matters to ROUND and
 * CUT. */
void td_scene_add_shape (TdSceneBuilder *b, TdPrimKind kind, TdSceneRect box, double radius,
                         const TdStyle *style);
/** Add a line through n points. */
void td_scene_add_line (TdSceneBuilder *b, const TdScenePoint *points, int n,
                        const TdStyle *style);
/** Add a closed polygon. */
void td_scene_add_polygon (TdSceneBuilder *b, const TdScenePoint *points, int n,
                           const TdStyle *style);
/** Add one line of text whose vertical middle is y; never read as markup; control characters
 * are made visible. */
void td_scene_add_text (TdSceneBuilder *b, double x, double y, const char *text,
                        const TdTextStyle *style);
/** Add a heat map filling `box`, row 0 on top. */
void td_scene_add_heat (TdSceneBuilder *b, TdSceneRect box, const TdHeat *heat);
/** Say where the plot is, so that x can be turned into a value. */
void td_scene_set_axes (TdSceneBuilder *b, const TdSceneAxes *axes);
/** Make the scene larger than first said (graphs know their size late). */
void td_scene_set_size (TdSceneBuilder *b, double width, double height);
/** Fill the whole scene with a role when it is exported; widgets paint their own background. */
void td_scene_set_background (TdSceneBuilder *b, TdRole role);

/** Finish. Owner: the caller; frees the builder. */
TdScene *td_scene_builder_end (TdSceneBuilder *b);

/* ---- reading ---- */
TdScene *td_scene_ref (TdScene *scene);
void td_scene_unref (TdScene *scene);
double td_scene_width (const TdScene *scene);
double td_scene_height (const TdScene *scene);
guint td_scene_n_items (const TdScene *scene);
/** Return the axes, or NULL when the scene has no plot. */
const TdSceneAxes *td_scene_axes (const TdScene *scene);
/** Turn x into a value of the x axis, clamped to its ends. */
double td_scene_axis_value (const TdScene *scene, double x);
/** Return the iteration, event or index whose place x is in: each has the axis from itself up
 * to the next one. */
gint64 td_scene_axis_place (const TdScene *scene, double x);

/**
 * Find the topmost meaningful primitive at (x, y), or, within `slack` units around, the nearest
 * one. Returns FALSE when there is none.
 */
gboolean td_scene_hit (const TdScene *scene, double x, double y, double slack, TdSceneHit *hit);
/** Find the box of the first primitive with this key (for scrolling to it); FALSE when absent.
 */
gboolean td_scene_find_key (const TdScene *scene, guint64 key, TdSceneRect *box);

/**
 * Paint what lies in `visible` (scene units; NULL: all) with its upper left corner at cr's
 * origin, `scale` units of cr to one of the scene. Primitives outside are skipped; text below 6
 * device pixels becomes bars; above 400 visible nodes they are plain rectangles.
 */
void td_scene_paint (const TdScene *scene, cairo_t *cr, const TdSceneRect *visible,
                     double scale, const TdTheme *theme);

/** Append the boxes (TdSceneRect) of what stands for `key`: one for each thing that was added
 * under a mark, however many primitives it has. Returns how many; none for key 0. */
guint td_scene_list_boxes (const TdScene *scene, guint64 key, GArray *boxes);
/** Paint a ring around each of them, and lines that stand for the key thicker, over a scene
 * that was painted by td_scene_paint with the same `visible`, `scale` and `theme`. */
void td_scene_paint_key (const TdScene *scene, cairo_t *cr, const TdSceneRect *visible,
                         double scale, const TdTheme *theme, guint64 key);

/** Return the scene as text, one primitive a line, for golden tests. Owner: the caller
 * (g_free). */
char *td_scene_dump (const TdScene *scene);

/* ---- files ---- */

/** Write the scene as "png", "svg" or "pdf" (one page). Errors: one line with the path. */
gboolean td_scene_export (const TdScene *scene, const char *format, const char *path,
                          double scale, const TdTheme *theme, GError **error);
/** Write bytes to a file, "-" for standard output. Errors: one line with the path. */
gboolean td_write_output (const char *path, const void *data, gsize n, GError **error);
/** Return the scene as SVG; text stays text. Owner: the caller. */
char *td_scene_to_svg (const TdScene *scene, double scale, const TdTheme *theme);

/** Return the width in units of a text in this size (bold or not) with the theme-independent
 * default font. */
double td_text_width (const char *text, TdTextSize size, gboolean bold);
/** Return the height in units (pixels) of this size of text. */
double td_text_pixels (TdTextSize size);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdScene, td_scene_unref)

G_END_DECLS
