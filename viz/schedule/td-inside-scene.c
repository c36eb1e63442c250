/*
 * The picture of a fused group's members: in order, with what each is given and what its
 * result looks like.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-inside.h"

#define MARGIN 6.0

static void
add_text (TdSceneBuilder *b, double x, double y, const char *text, TdRole role, double align,
          double max_width, gboolean bold)
{
  TdTextStyle style = {
    .role = role, .size = TD_TEXT_CAPTION, .align = align, .bold = bold, .max_width = max_width
  };

  td_scene_add_text (b, x, y, text, &style);
}

static void
add_member (TdSceneBuilder *b, const TdInside *inside, guint k, double y, double width,
            gboolean chosen)
{
  const TdInsideMember *m = &inside->members[k];
  const gboolean bad = m->known && m->n_nan > 0;
  g_autofree char *words = td_inside_describe (inside, k);
  g_autofree char *range = td_inside_dup_range (m);
  g_autofree char *place = *m->site ? g_path_get_basename (m->site) : g_strdup ("");
  TdStyle ground = { .fill = chosen ? TD_ROLE_SELECTED_ROW : TD_ROLE_NONE };
  TdStyle line = { .fill = bad ? TD_ROLE_ERROR : TD_ROLE_FUSED };
  double shape_width = td_text_width (m->result, TD_TEXT_CAPTION, FALSE);
  double range_width = td_text_width (range, TD_TEXT_CAPTION, FALSE);
  char number[16];

  g_snprintf (number, sizeof number, "#%u", k + 1);
  td_scene_mark (b, TD_TAG_ROW, inside->key, k, words);
  td_scene_add_shape (b, TD_PRIM_ROUND, (TdSceneRect){ 1, y + 1, width - 2, TD_INSIDE_ROW - 2 },
                      6, &ground);
  td_scene_unmark (b);
  td_scene_add_shape (b, TD_PRIM_RECT, (TdSceneRect){ MARGIN, y + 5, 3, TD_INSIDE_ROW - 10 }, 0,
                      &line);
  add_text (b, MARGIN + 12, y + 12, number, TD_ROLE_DIM, 0, 0, FALSE);
  add_text (b, MARGIN + 40, y + 12, m->call, TD_ROLE_TEXT, 0,
            width - MARGIN - shape_width - MARGIN - 52, chosen);
  add_text (b, width - MARGIN, y + 12, m->result, TD_ROLE_DIM, 1, 0, FALSE);
  add_text (b, MARGIN + 40, y + 27, place, TD_ROLE_DIM, 0,
            width - MARGIN - range_width - MARGIN - 52, FALSE);
  add_text (b, width - MARGIN, y + 27, range, bad ? TD_ROLE_ERROR : TD_ROLE_TEXT, 1, 0, bad);
}

TdScene *
td_inside_scene (const TdInside *inside, const TdPanelView *view)
{
  double width = view->width > 0 ? view->width : 340;
  double height = view->height > 0 ? view->height : TD_INSIDE_ROW * inside->n;
  guint room = (guint)MAX (1, height / TD_INSIDE_ROW);
  guint from = view->cursor > room ? view->cursor - room : 0;
  TdSceneBuilder *b = td_scene_builder_new (width, height);

  td_scene_set_background (b, TD_ROLE_WINDOW);
  for (guint k = from; k < inside->n && k < from + room; k++)
    add_member (b, inside, k, TD_INSIDE_ROW * (k - from), width, view->cursor == k + 1);
  return td_scene_builder_end (b);
}
