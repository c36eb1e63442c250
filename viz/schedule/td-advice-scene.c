/*
 * The picture of the staticness advice.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-advice-scene.h"

#include <string.h>

#define MARGIN 14.0
#define LINE 17.0
#define ROW 22.0
#define MAX_SENTENCE_LINES 4

/* How a verdict looks: a sign, its colour. */
static const struct
{
  const char *glyph;
  TdRole role;
} looks[] = {
  [TD_STATIC_ALWAYS] = { "✓", TD_ROLE_SAVED },  [TD_STATIC_SETTLED] = { "✓", TD_ROLE_SAVED },
  [TD_STATIC_SHAPES] = { "≡", TD_ROLE_ACCENT }, [TD_STATIC_SEVERAL] = { "≡", TD_ROLE_ACCENT },
  [TD_STATIC_ONCE] = { "·", TD_ROLE_DIM },      [TD_STATIC_DYNAMIC] = { "~", TD_ROLE_CHANGED },
};

/* Breaks at spaces; returns where the text below begins. */
static double
add_sentence (TdSceneBuilder *b, const char *text, double y, double width)
{
  TdTextStyle style = { .role = TD_ROLE_TEXT, .size = TD_TEXT_CAPTION, .bold = TRUE };
  g_auto (GStrv) words = g_strsplit (text, " ", -1);
  g_autoptr (GString) line = g_string_new (NULL);
  int n = 0;

  for (char **word = words; *word; word++)
    {
      g_autofree char *longer = g_strconcat (line->str, line->len ? " " : "", *word, NULL);
      gboolean last = n + 1 == MAX_SENTENCE_LINES;

      if (line->len && !last && td_text_width (longer, TD_TEXT_CAPTION, TRUE) > width)
        {
          td_scene_add_text (b, MARGIN, y, line->str, &style);
          y += LINE;
          n++;
          g_string_assign (line, *word);
        }
      else
        g_string_assign (line, longer);
    }
  style.max_width = width; /* the last line is cut where there is no room for more */
  td_scene_add_text (b, MARGIN, y, line->str, &style);
  return y + LINE;
}

static void
add_function (TdSceneBuilder *b, const TdStaticness *s, guint i, double y, double w,
              const TdPanelView *view)
{
  const TdStaticFunction *function = &s->functions[i];
  guint verdict = MIN ((guint)function->verdict, G_N_ELEMENTS (looks) - 1);
  g_autofree char *text = td_staticness_dup_function (s, function);
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  TdTextStyle glyph
      = { .role = looks[verdict].role, .size = TD_TEXT_LIST, .align = 0.5, .bold = TRUE };
  TdTextStyle words = { .role = TD_ROLE_TEXT,
                        .size = TD_TEXT_CAPTION,
                        .bold = function->maximal,
                        .max_width = w - MARGIN - 38 };
  TdStyle row = { .fill = view->cursor == i + 1 ? TD_ROLE_SELECTED_ROW : TD_ROLE_NONE };

  td_scene_mark (b, TD_TAG_ROW, 0, i, valid);
  td_scene_add_shape (b, TD_PRIM_ROUND, (TdSceneRect){ 6, y - ROW / 2, w - 12, ROW }, 6, &row);
  td_scene_unmark (b);
  td_scene_add_text (b, MARGIN + 6, y, looks[verdict].glyph, &glyph);
  td_scene_add_text (b, MARGIN + 22, y, valid, &words);
}

TdScene *
td_advice_scene (const TdStaticness *s, const TdPanelView *view)
{
  double w = view->width > 0 ? view->width : 480;
  double h = view->height > 0 ? view->height : 60 + ROW * (s->n_functions + 1), y = MARGIN;
  guint n_shown = 0;

  if (s->n_iterations == 0)
    return td_panel_message (view, "No iteration has ended yet",
                             "What could be a static schedule is seen in whole iterations.");
  TdSceneBuilder *b = td_scene_builder_new (w, h);
  td_scene_set_background (b, TD_ROLE_VIEW);
  y = add_sentence (b, s->sentence, y, w - 2 * MARGIN) + 8;
  for (int maximal = 1; maximal >= 0; maximal--)
    for (guint i = 0; i < s->n_functions; i++)
      if (s->functions[i].maximal == maximal
          && y + 1.5 * ROW < h + (n_shown + 1 == s->n_functions ? ROW : 0))
        {
          add_function (b, s, i, y, w, view);
          y += ROW;
          n_shown++;
        }
  if (n_shown < s->n_functions)
    {
      TdTextStyle more = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION };
      g_autofree char *text = g_strdup_printf ("… and %u more", s->n_functions - n_shown);

      td_scene_add_text (b, MARGIN + 22, y, text, &more);
    }
  return td_scene_builder_end (b);
}
