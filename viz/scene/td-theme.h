/*
 * Colours by role, for light, dark, high contrast and Chainer's look.
 * Panels name roles; only this table and the painters know what a role looks like.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Order of the table in td-theme.c and of the names in a scene dump. */
typedef enum
{
  TD_ROLE_NONE, /* not painted */
  TD_ROLE_WINDOW,
  TD_ROLE_VIEW,
  TD_ROLE_BAR,
  TD_ROLE_CANVAS,
  TD_ROLE_NODE,
  TD_ROLE_NODE_STROKE,
  TD_ROLE_VARIABLE, /* Chainer's octagons */
  TD_ROLE_GROUP,
  TD_ROLE_CARD,
  TD_ROLE_TEXT,
  TD_ROLE_DIM,
  TD_ROLE_FAINT,
  TD_ROLE_NODE_TEXT,
  TD_ROLE_EDGE,
  TD_ROLE_BUTTON,
  TD_ROLE_HAIRLINE,
  TD_ROLE_BORDER,
  TD_ROLE_ACCENT, /* playhead, selection, links */
  TD_ROLE_SELECTED_ROW,
  TD_ROLE_ERROR, /* program head, NaN, failure */
  TD_ROLE_WARNING,
  TD_ROLE_SAVED, /* saved for backward and needed later */
  TD_ROLE_ADDED,
  TD_ROLE_REMOVED,
  TD_ROLE_CHANGED,
  TD_ROLE_FUSED,
  TD_ROLE_LANE_FORWARD,
  TD_ROLE_LANE_BACKWARD,
  TD_ROLE_LANE_UPDATE,
  TD_ROLE_PARAMETER, /* the memory categories, in stacking order from below */
  TD_ROLE_OPTIMIZER,
  TD_ROLE_INPUT,
  TD_ROLE_ACTIVATION,
  TD_ROLE_GRADIENT,
  TD_ROLE_WORKSPACE,
  TD_ROLE_STATIC,
  TD_ROLE_BUFFER,
  TD_ROLE_COMMUNICATION,
  TD_ROLE_OTHER,
  TD_ROLE_CACHED,
  TD_ROLE_PATTERN, /* lines and dots drawn over an area */
  TD_ROLE_CURVE,
  TD_N_ROLES
} TdRole;

typedef struct
{
  double r, g, b, a;
} TdColor;

typedef struct
{
  const char *name;  /* "light", "dark", "high-contrast", "chainer" */
  const char *font;  /* Pango family list */
  double min_stroke; /* strokes are never thinner (units of the scene) */
  gboolean dark;
  gboolean tints;    /* lane tints and halos are painted */
  double area_alpha; /* how solid stacked areas are */
  TdColor color[TD_N_ROLES];
} TdTheme;

/** Return the theme called `name`, the light one when there is none such. Owner: static, never
 * freed. */
const TdTheme *td_theme_get (const char *name);

/** Return the name of a role as dumps and golden files spell it. */
const char *td_role_name (TdRole role);

/** Mix two colours: 0 gives `a`, 1 gives `b`. */
TdColor td_color_mix (TdColor a, TdColor b, double t);

/** Return the WCAG contrast ratio of two opaque colours (1 to 21). */
double td_color_contrast (TdColor a, TdColor b);

G_END_DECLS
