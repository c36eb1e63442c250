/*
 * The table of colours. Its values are those of the design (WCAG contrast and colour-vision
 * distances were measured there; tests/viz/scene checks the contrasts again).
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <string.h>

#include "td-theme.h"

#define RGBA(hex, alpha)                                                                       \
  {                                                                                            \
    (((hex) >> 16) & 255) / 255.0, (((hex) >> 8) & 255) / 255.0, ((hex)&255) / 255.0, (alpha)  \
  }
#define RGB(hex) RGBA (hex, 1.0)
#define FONT "Cantarell, Adwaita Sans, Inter, DejaVu Sans, sans-serif"

static const char *const role_names[TD_N_ROLES] = {
  "none",        "window",    "view",          "bar",          "canvas",        "node",
  "node-stroke", "variable",  "group",         "card",         "text",          "dim",
  "faint",       "node-text", "edge",          "button",       "hairline",      "border",
  "accent",      "selected",  "error",         "warning",      "saved",         "added",
  "removed",     "changed",   "fused",         "lane-forward", "lane-backward", "lane-update",
  "parameter",   "optimizer", "input",         "activation",   "gradient",      "workspace",
  "static",      "buffer",    "communication", "other",        "cached",        "pattern",
  "curve",
};

// clang-format off
#define LIGHT_CATEGORIES                                                                          \
  [TD_ROLE_PARAMETER] = RGB (0x1B67F6), [TD_ROLE_OPTIMIZER] = RGB (0x751D8F),                     \
  [TD_ROLE_INPUT] = RGB (0x15343D), [TD_ROLE_ACTIVATION] = RGB (0x196B4E),                        \
  [TD_ROLE_GRADIENT] = RGB (0xEC6501), [TD_ROLE_WORKSPACE] = RGB (0x937537),                      \
  [TD_ROLE_STATIC] = RGB (0x453E08), [TD_ROLE_BUFFER] = RGB (0x5E5C64),                           \
  [TD_ROLE_COMMUNICATION] = RGB (0x0E7C7B), [TD_ROLE_OTHER] = RGB (0x3D3846),                     \
  [TD_ROLE_CACHED] = RGB (0x8F9199)
#define DARK_CATEGORIES                                                                           \
  [TD_ROLE_PARAMETER] = RGB (0x2B61FD), [TD_ROLE_OPTIMIZER] = RGB (0xB23FAB),                     \
  [TD_ROLE_INPUT] = RGB (0x44E5FE), [TD_ROLE_ACTIVATION] = RGB (0xAFF9D7),                        \
  [TD_ROLE_GRADIENT] = RGB (0xD9531E), [TD_ROLE_WORKSPACE] = RGB (0xF4B214),                      \
  [TD_ROLE_STATIC] = RGB (0xEAF195), [TD_ROLE_BUFFER] = RGB (0xC0BFBC),                           \
  [TD_ROLE_COMMUNICATION] = RGB (0x57C7C6), [TD_ROLE_OTHER] = RGB (0xDEDDDA),                     \
  [TD_ROLE_CACHED] = RGB (0x888483)
#define LIGHT_MEANINGS                                                                            \
  [TD_ROLE_ACCENT] = RGB (0x1C71D8), [TD_ROLE_SELECTED_ROW] = RGBA (0x3584E4, 0.14),              \
  [TD_ROLE_ERROR] = RGB (0xC01C28), [TD_ROLE_WARNING] = RGB (0x8F5902),                           \
  [TD_ROLE_SAVED] = RGB (0x196B4E), [TD_ROLE_ADDED] = RGB (0x1A5FB4),                             \
  [TD_ROLE_REMOVED] = RGB (0xC01C28), [TD_ROLE_CHANGED] = RGB (0x613583),                         \
  [TD_ROLE_FUSED] = RGB (0x8F5902)
#define LIGHT_SURFACES                                                                            \
  [TD_ROLE_WINDOW] = RGB (0xFAFAFA), [TD_ROLE_VIEW] = RGB (0xFFFFFF),                             \
  [TD_ROLE_BAR] = RGB (0xEBEBEB), [TD_ROLE_CANVAS] = RGB (0xF6F5F4),                              \
  [TD_ROLE_CARD] = RGB (0xFFFFFF), [TD_ROLE_BUTTON] = RGBA (0x000000, 0.075),                     \
  [TD_ROLE_HAIRLINE] = RGBA (0x000000, 0.08), [TD_ROLE_BORDER] = RGBA (0x000000, 0.13)

static const TdTheme themes[] = {
  { .name = "light", .font = FONT, .min_stroke = 0, .tints = TRUE, .area_alpha = 0.82,
    .color = {
      LIGHT_SURFACES, LIGHT_MEANINGS, LIGHT_CATEGORIES,
      [TD_ROLE_NODE] = RGB (0xFFFFFF), [TD_ROLE_NODE_STROKE] = RGBA (0x000000, 0.27),
      [TD_ROLE_VARIABLE] = RGB (0xFFFFFF), [TD_ROLE_GROUP] = RGBA (0xFFFFFF, 0.62),
      [TD_ROLE_TEXT] = RGBA (0x000000, 0.82), [TD_ROLE_DIM] = RGBA (0x000000, 0.56),
      [TD_ROLE_FAINT] = RGBA (0x000000, 0.45), [TD_ROLE_NODE_TEXT] = RGBA (0x000000, 0.82),
      [TD_ROLE_EDGE] = RGBA (0x000000, 0.56), [TD_ROLE_LANE_FORWARD] = RGBA (0x1B67F6, 0.08),
      [TD_ROLE_LANE_BACKWARD] = RGBA (0xEC6501, 0.08), [TD_ROLE_LANE_UPDATE] = RGBA (0x751D8F, 0.08),
      [TD_ROLE_PATTERN] = RGBA (0xFFFFFF, 0.45), [TD_ROLE_CURVE] = RGBA (0x000000, 0.82) } },
  { .name = "dark", .font = FONT, .min_stroke = 0, .dark = TRUE, .tints = TRUE, .area_alpha = 0.70,
    .color = {
      DARK_CATEGORIES,
      [TD_ROLE_WINDOW] = RGB (0x242424), [TD_ROLE_VIEW] = RGB (0x1E1E1E),
      [TD_ROLE_BAR] = RGB (0x303030), [TD_ROLE_CANVAS] = RGB (0x1E1E1E),
      [TD_ROLE_NODE] = RGB (0x383838), [TD_ROLE_NODE_STROKE] = RGBA (0xFFFFFF, 0.28),
      [TD_ROLE_VARIABLE] = RGB (0x383838), [TD_ROLE_GROUP] = RGBA (0xFFFFFF, 0.045),
      [TD_ROLE_CARD] = RGB (0x363636), [TD_ROLE_TEXT] = RGBA (0xFFFFFF, 1.0),
      [TD_ROLE_DIM] = RGBA (0xFFFFFF, 0.62), [TD_ROLE_FAINT] = RGBA (0xFFFFFF, 0.45),
      [TD_ROLE_NODE_TEXT] = RGBA (0xFFFFFF, 1.0), [TD_ROLE_EDGE] = RGBA (0xFFFFFF, 0.58),
      [TD_ROLE_BUTTON] = RGBA (0xFFFFFF, 0.10), [TD_ROLE_HAIRLINE] = RGBA (0xFFFFFF, 0.08),
      [TD_ROLE_BORDER] = RGBA (0xFFFFFF, 0.13), [TD_ROLE_ACCENT] = RGB (0x78AEED),
      [TD_ROLE_SELECTED_ROW] = RGBA (0x78AEED, 0.20), [TD_ROLE_ERROR] = RGB (0xFF7B63),
      [TD_ROLE_WARNING] = RGB (0xCD9309), [TD_ROLE_SAVED] = RGB (0xAFF9D7),
      [TD_ROLE_ADDED] = RGB (0x99C1F1), [TD_ROLE_REMOVED] = RGB (0xFF7B63),
      [TD_ROLE_CHANGED] = RGB (0xDC8ADD), [TD_ROLE_FUSED] = RGB (0xF8E45C),
      [TD_ROLE_LANE_FORWARD] = RGBA (0x2B61FD, 0.08), [TD_ROLE_LANE_BACKWARD] = RGBA (0xD9531E, 0.08),
      [TD_ROLE_LANE_UPDATE] = RGBA (0xB23FAB, 0.08), [TD_ROLE_PATTERN] = RGBA (0x000000, 0.42),
      [TD_ROLE_CURVE] = RGBA (0xFFFFFF, 1.0) } },
  { .name = "high-contrast", .font = FONT, .min_stroke = 2, .tints = FALSE, .area_alpha = 1.0,
    .color = {
      LIGHT_MEANINGS, LIGHT_CATEGORIES,
      [TD_ROLE_WINDOW] = RGB (0xFFFFFF), [TD_ROLE_VIEW] = RGB (0xFFFFFF),
      [TD_ROLE_BAR] = RGB (0xFFFFFF), [TD_ROLE_CANVAS] = RGB (0xFFFFFF),
      [TD_ROLE_NODE] = RGB (0xFFFFFF), [TD_ROLE_NODE_STROKE] = RGB (0x000000),
      [TD_ROLE_VARIABLE] = RGB (0xFFFFFF), [TD_ROLE_GROUP] = RGB (0xFFFFFF),
      [TD_ROLE_CARD] = RGB (0xFFFFFF), [TD_ROLE_TEXT] = RGB (0x000000),
      [TD_ROLE_DIM] = RGBA (0x000000, 0.80), [TD_ROLE_FAINT] = RGBA (0x000000, 0.70),
      [TD_ROLE_NODE_TEXT] = RGB (0x000000), [TD_ROLE_EDGE] = RGB (0x000000),
      [TD_ROLE_BUTTON] = RGBA (0x000000, 0.12), [TD_ROLE_HAIRLINE] = RGBA (0x000000, 0.50),
      [TD_ROLE_BORDER] = RGB (0x000000), [TD_ROLE_PATTERN] = RGBA (0xFFFFFF, 0.75),
      [TD_ROLE_CURVE] = RGB (0x000000) } },
  /* computational_graph.py: variables #E0E0E0 octagons, functions #6495ED boxes, black text */
  { .name = "chainer", .font = FONT, .min_stroke = 0, .tints = TRUE, .area_alpha = 0.82,
    .color = {
      LIGHT_SURFACES, LIGHT_MEANINGS, LIGHT_CATEGORIES,
      [TD_ROLE_NODE] = RGB (0x6495ED), [TD_ROLE_NODE_STROKE] = RGB (0x000000),
      [TD_ROLE_VARIABLE] = RGB (0xE0E0E0), [TD_ROLE_GROUP] = RGBA (0xFFFFFF, 0.62),
      [TD_ROLE_TEXT] = RGBA (0x000000, 0.82), [TD_ROLE_DIM] = RGBA (0x000000, 0.66),
      [TD_ROLE_FAINT] = RGBA (0x000000, 0.55), [TD_ROLE_NODE_TEXT] = RGB (0x000000),
      [TD_ROLE_EDGE] = RGB (0x000000), [TD_ROLE_LANE_FORWARD] = RGBA (0x1B67F6, 0.05),
      [TD_ROLE_LANE_BACKWARD] = RGBA (0xEC6501, 0.05), [TD_ROLE_LANE_UPDATE] = RGBA (0x751D8F, 0.05),
      [TD_ROLE_PATTERN] = RGBA (0xFFFFFF, 0.45), [TD_ROLE_CURVE] = RGBA (0x000000, 0.82) } },
};
// clang-format on

const TdTheme *
td_theme_get (const char *name)
{
  for (gsize i = 0; name && i < G_N_ELEMENTS (themes); i++)
    if (strcmp (themes[i].name, name) == 0)
      return &themes[i];
  return &themes[0];
}

const char *
td_role_name (TdRole role)
{
  return role_names[role];
}

TdColor
td_color_mix (TdColor a, TdColor b, double t)
{
  return (TdColor){ a.r + (b.r - a.r) * t, a.g + (b.g - a.g) * t, a.b + (b.b - a.b) * t,
                    a.a + (b.a - a.a) * t };
}

static double
luminance (TdColor c)
{
  double v[3] = { c.r, c.g, c.b };

  for (int i = 0; i < 3; i++)
    v[i] = v[i] <= 0.04045 ? v[i] / 12.92 : pow ((v[i] + 0.055) / 1.055, 2.4);
  return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2];
}

double
td_color_contrast (TdColor a, TdColor b)
{
  double la = luminance (a), lb = luminance (b);

  return (MAX (la, lb) + 0.05) / (MIN (la, lb) + 0.05);
}
