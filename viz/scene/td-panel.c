/*
 * Small pieces that several panels draw alike.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-panel.h"

#define LINE 16.0 /* of a message */

static const struct
{
  const char *label;
  TdRole role;
  TdPattern pattern;
} categories[TD_TAPE_N_CATEGORIES] = {
  [TD_TAPE_CATEGORY_OTHER] = { "Other", TD_ROLE_OTHER, TD_PATTERN_NONE },
  [TD_TAPE_CATEGORY_PARAMETER] = { "Parameters", TD_ROLE_PARAMETER, TD_PATTERN_NONE },
  [TD_TAPE_CATEGORY_GRADIENT] = { "Gradients", TD_ROLE_GRADIENT, TD_PATTERN_HATCH_UP },
  [TD_TAPE_CATEGORY_ACTIVATION] = { "Activations", TD_ROLE_ACTIVATION, TD_PATTERN_DOTS },
  [TD_TAPE_CATEGORY_OPTIMIZER] = { "Optimizer", TD_ROLE_OPTIMIZER, TD_PATTERN_HATCH_DOWN },
  [TD_TAPE_CATEGORY_INPUT] = { "Inputs", TD_ROLE_INPUT, TD_PATTERN_HORIZONTAL },
  [TD_TAPE_CATEGORY_BUFFER] = { "Buffers", TD_ROLE_BUFFER, TD_PATTERN_VERTICAL },
  [TD_TAPE_CATEGORY_WORKSPACE] = { "Workspace", TD_ROLE_WORKSPACE, TD_PATTERN_CROSS },
  [TD_TAPE_CATEGORY_COMMUNICATION]
  = { "Communication", TD_ROLE_COMMUNICATION, TD_PATTERN_DOTS },
  [TD_TAPE_CATEGORY_STATIC] = { "Static arena", TD_ROLE_STATIC, TD_PATTERN_VERTICAL },
};

const guint8 td_category_order[TD_TAPE_N_CATEGORIES] = {
  TD_TAPE_CATEGORY_PARAMETER, TD_TAPE_CATEGORY_OPTIMIZER, TD_TAPE_CATEGORY_INPUT,
  TD_TAPE_CATEGORY_BUFFER,    TD_TAPE_CATEGORY_STATIC,    TD_TAPE_CATEGORY_ACTIVATION,
  TD_TAPE_CATEGORY_GRADIENT,  TD_TAPE_CATEGORY_WORKSPACE, TD_TAPE_CATEGORY_COMMUNICATION,
  TD_TAPE_CATEGORY_OTHER,
};

TdRole
td_category_role (guint category)
{
  return categories[MIN (category, TD_TAPE_N_CATEGORIES - 1)].role;
}

TdPattern
td_category_pattern (guint category)
{
  return categories[MIN (category, TD_TAPE_N_CATEGORIES - 1)].pattern;
}

const char *
td_category_label (guint category)
{
  return categories[MIN (category, TD_TAPE_N_CATEGORIES - 1)].label;
}

// clang-format off
const TdMarkLook td_mark_looks[TD_N_MARKS] = {
  [TD_MARK_NONE] = { "", "the same", TD_ROLE_NODE_STROKE, TD_DASH_NONE },
  [TD_MARK_ADDED] = { "+", "added", TD_ROLE_ADDED, TD_DASH_NONE },
  [TD_MARK_REMOVED] = { "−", "removed", TD_ROLE_REMOVED, TD_DASH_DASHED },
  [TD_MARK_CHANGED] = { "~", "changed", TD_ROLE_CHANGED, TD_DASH_FINE },
  [TD_MARK_FUSED] = { "⇄", "fused", TD_ROLE_FUSED, TD_DASH_NONE },
  [TD_MARK_NUMBERS] = { "≠", "with other numbers", TD_ROLE_CHANGED, TD_DASH_DOTTED },
  [TD_MARK_FOUND] = { "●", "found", TD_ROLE_FUSED, TD_DASH_NONE },
};
// clang-format on

gboolean
td_panel_is_selected (const TdPanelView *view, guint64 key)
{
  for (guint i = 0; i < view->n_selected; i++)
    if (view->selected[i] == key)
      return TRUE;
  return FALSE;
}

void
td_panel_add_playhead (TdSceneBuilder *b, double x, double top, double bottom)
{
  const TdScenePoint q[] = { { x, top }, { x, bottom } };
  TdStyle line = { .stroke = TD_ROLE_ACCENT, .stroke_width = 2 };
  TdStyle head = { .fill = TD_ROLE_ACCENT };

  td_scene_mark (b, TD_TAG_PLAYHEAD, 0, 0, NULL);
  td_scene_add_line (b, q, 2, &line);
  td_scene_add_shape (b, TD_PRIM_PLAYHEAD, (TdSceneRect){ x - 4.5, top - 1, 9, 6 }, 0, &head);
  td_scene_unmark (b);
}

void
td_panel_add_head (TdSceneBuilder *b, double x, double y)
{
  TdStyle dot = { .fill = TD_ROLE_ERROR, .stroke = TD_ROLE_VIEW, .stroke_width = 1 };

  td_scene_mark (b, TD_TAG_HEAD, 0, 0, "the program is here");
  td_scene_add_shape (b, TD_PRIM_ELLIPSE, (TdSceneRect){ x - 5, y - 5, 10, 10 }, 0, &dot);
  td_scene_unmark (b);
}

/* As many lines as its words need, each as wide as the style allows. */
static void
add_lines (TdSceneBuilder *b, double x, double y, const char *text, const TdTextStyle *style)
{
  g_auto (GStrv) words = g_strsplit (text, " ", -1);
  g_autoptr (GString) line = g_string_new (NULL);

  for (guint i = 0; words[i]; i++)
    {
      g_autofree char *longer
          = g_strdup_printf ("%s%s%s", line->str, line->len > 0 ? " " : "", words[i]);

      if (line->len > 0 && td_text_width (longer, style->size, FALSE) > style->max_width)
        {
          td_scene_add_text (b, x, y, line->str, style);
          y += LINE;
          g_string_assign (line, words[i]);
        }
      else
        g_string_assign (line, longer);
    }
  td_scene_add_text (b, x, y, line->str, style);
}

TdScene *
td_panel_message (const TdPanelView *view, const char *title, const char *text)
{
  double w = view->width > 0 ? view->width : 480, h = view->height > 0 ? view->height : 180;
  TdSceneBuilder *b = td_scene_builder_new (w, h);
  TdTextStyle big = {
    .role = TD_ROLE_TEXT, .size = TD_TEXT_BODY, .align = 0.5, .bold = TRUE, .max_width = w - 24
  };
  TdTextStyle small
      = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION, .align = 0.5, .max_width = w - 24 };

  td_scene_set_background (b, TD_ROLE_VIEW);
  td_scene_add_text (b, w / 2, h / 2 - 10, title, &big);
  add_lines (b, w / 2, h / 2 + 12, text, &small);
  return td_scene_builder_end (b);
}
