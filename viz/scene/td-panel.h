/*
 * What every panel's picture is told: its size, the moment and the selection; and the small
 * pieces that several panels draw alike.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "scene/td-format.h"
#include "scene/td-scene.h"
#include "tape/td-iteration.h"
#include "tape/td-range.h"
#include "td-tape-reader.h"

G_BEGIN_DECLS

/* What a comparison, or who looks for something, says of an operation. */
typedef enum
{
  TD_MARK_NONE, /* the same on both sides */
  TD_MARK_ADDED,
  TD_MARK_REMOVED,
  TD_MARK_CHANGED,
  TD_MARK_FUSED,
  TD_MARK_NUMBERS, /* the same call with other numbers */
  TD_MARK_FOUND,   /* it is what was looked for */
  TD_N_MARKS
} TdMark;

/* How a mark looks: never by colour alone. */
typedef struct
{
  const char *glyph, *name; /* "+", "added" */
  TdRole role;
  TdDash dash;
} TdMarkLook;
extern const TdMarkLook td_mark_looks[TD_N_MARKS];

/* Where a replayed event stands in its schedule. */
typedef struct
{
  guint schedule; /* id; 0: not known */
  guint step;     /* TD_PANEL_NO_STEP: not known */
} TdPanelStep;
#define TD_PANEL_NO_STEP G_MAXUINT

typedef struct
{
  double width, height; /* of the picture; 0: its natural size */
  gint64 iteration;
  gint event;              /* playhead; -1: none, everything has run */
  gboolean nothing_ran;    /* the program stands before the first event: event is -1 */
  gint head;               /* program head, if it is in this iteration; else -1 */
  const guint64 *selected; /* keys */
  guint n_selected;
  gboolean whole;      /* all is shown as if it had run, wherever the playhead is */
  const guint8 *marks; /* TdMark by event, NULL: nothing is compared */
  guint n_marks;
  const TdPanelStep *steps; /* by event, NULL: unknown */
  guint n_steps;
  gboolean at_selection; /* lists show the place of the selection, not of the playhead */
  guint cursor;          /* row of a list that the keyboard stands on, plus 1; 0: none */
  TdRange range;         /* of iterations, what pictures over the run are narrowed to */
} TdPanelView;

gboolean td_panel_is_selected (const TdPanelView *view, guint64 key);

/** Return the role and pattern of a memory category (TdTapeCategory). */
TdRole td_category_role (guint category);
TdPattern td_category_pattern (guint category);
/** Return "Activations" and so on. */
const char *td_category_label (guint category);
/** Categories from the lowest area of a stack to the highest. */
extern const guint8 td_category_order[TD_TAPE_N_CATEGORIES];

/** Draw the vertical line with a triangle that says "here" in a plot. */
void td_panel_add_playhead (TdSceneBuilder *b, double x, double top, double bottom);
/** Draw the dot of the program head. */
void td_panel_add_head (TdSceneBuilder *b, double x, double y);
/** Draw one sentence in the middle: what a panel says when it has nothing to show. */
TdScene *td_panel_message (const TdPanelView *view, const char *title, const char *text);

G_END_DECLS
