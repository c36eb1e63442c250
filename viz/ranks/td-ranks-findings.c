/*
 * The picture of the findings: sentences, worst first, and the ranks below.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-ranks-step.h"

#define MARGIN 12.0
#define LINE 17.0
#define GAP 10.0
#define LEVEL 66.0 /* width of "warning" */

static const TdRole roles[TD_RANKS_N_LEVELS] = {
  [TD_RANKS_NOTE] = TD_ROLE_DIM,
  [TD_RANKS_WARNING] = TD_ROLE_WARNING,
  [TD_RANKS_ERROR] = TD_ROLE_ERROR,
};

typedef struct
{
  TdSceneBuilder *b;
  double width, y;
} Page;

/* As many words as fit on a line, and at least one. */
static void
add_wrapped (Page *p, const char *text, double left, TdRole role)
{
  TdTextStyle style = { .role = role,
                        .size = TD_TEXT_CAPTION,
                        .max_width = MAX (p->width - left - MARGIN, 60) };
  g_auto (GStrv) words = g_strsplit (text, " ", -1);
  g_autoptr (GString) line = g_string_new (NULL);

  for (guint i = 0; words[i]; i++)
    {
      g_autofree char *longer = g_strconcat (line->str, line->len ? " " : "", words[i], NULL);

      if (line->len && td_text_width (longer, TD_TEXT_CAPTION, FALSE) > style.max_width)
        {
          td_scene_add_text (p->b, left, p->y + LINE / 2, line->str, &style);
          p->y += LINE;
          g_string_assign (line, words[i]);
        }
      else
        g_string_assign (line, longer);
    }
  td_scene_add_text (p->b, left, p->y + LINE / 2, line->str, &style);
  p->y += LINE;
}

static void
add_finding (Page *p, const TdRanksFinding *f, guint i)
{
  TdTextStyle level = { .role = roles[f->level], .size = TD_TEXT_CAPTION, .bold = TRUE };

  td_scene_mark (p->b, TD_TAG_ROW, 0, i, f->sentence);
  td_scene_add_text (p->b, MARGIN, p->y + LINE / 2, td_ranks_level_name (f->level), &level);
  add_wrapped (p, f->sentence, MARGIN + LEVEL, TD_ROLE_TEXT);
  if (f->advice)
    add_wrapped (p, f->advice, MARGIN + LEVEL, TD_ROLE_DIM);
  td_scene_unmark (p->b);
  p->y += GAP;
}

static void
add_rank (Page *p, const TdRank *rank)
{
  char waited[TD_FORMAT_SIZE], iterations[TD_FORMAT_SIZE];
  TdTextStyle name = { .role = TD_ROLE_TEXT, .size = TD_TEXT_CAPTION, .bold = TRUE };
  g_autofree char *title = g_strdup_printf ("Rank %u", rank->rank);
  g_autofree char *text = g_strdup_printf (
      "%s, process %d: %s %s, waited %s for others, %s", *rank->host ? rank->host : "?",
      rank->pid, td_format_count (iterations, (gint64)rank->n_iterations),
      td_plural (rank->n_iterations, "iteration", "iterations"),
      td_format_ns (waited, rank->waited_ns), rank->end);

  td_scene_add_text (p->b, MARGIN, p->y + LINE / 2, title, &name);
  add_wrapped (p, text, MARGIN + LEVEL, rank->has_failed ? TD_ROLE_ERROR : TD_ROLE_DIM);
}

TdScene *
td_ranks_findings_scene (const TdRanks *self, const TdPanelView *view)
{
  Page p = { .width = view->width > 0 ? view->width : 720, .y = MARGIN };

  p.b = td_scene_builder_new (p.width, 100);
  td_scene_set_background (p.b, TD_ROLE_VIEW);
  for (guint i = 0; i < self->findings->len; i++)
    add_finding (&p, td_ranks_get_finding (self, i), i);
  if (td_ranks_count_faults (self) == 0)
    {
      g_autofree char *text = td__ranks_dup_nothing (self);

      add_wrapped (&p, text, MARGIN, TD_ROLE_TEXT);
      p.y += GAP;
    }
  for (guint i = 0; i < self->n; i++)
    add_rank (&p, td_ranks_get (self, i));
  td_scene_set_size (p.b, p.width, MAX (view->height, p.y + MARGIN));
  return td_scene_builder_end (p.b);
}
