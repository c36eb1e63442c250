/* The rows that explain a static function. The list has a cursor of its own: most rows stand
 * for a line of the program, and only some for an operation too. Walking down the passes opens
 * one after the other. SPDX-License-Identifier: MIT */
#include "pages/td-schedule-explain.h"

#include <glib/gi18n-lib.h>

TdScene *
td__explain_make (TdScheduleData *data, TdPanelView *view)
{
  guint function;
  TdExplain *explain = td__schedule_get_explain (data, &function);

  if (!explain)
    return td_panel_message (
        view, _ ("No static function"),
        _ ("td_static_new makes one; why its code runs is explained here."));
  view->cursor = data->explain_cursor;
  return td_explain_scene (explain, function, view);
}

static void
show_line (GtkWidget *view, const TdExplainRow *row)
{
  g_autofree char *place = g_strdup_printf ("%s:%u", row->file, row->line);

  if (row->line > 0)
    gtk_widget_activate_action (view, "win.show-source", "s", place);
}

/* The operation at the row's line is selected, if the iteration has one. */
static void
pick (TdScheduleData *data, const TdExplain *explain, guint i)
{
  const TdExplainRow *row = &explain->rows[i];
  gint event = td_explain_row_event (explain, row);
  TdIteration *iteration = td_page_get_iteration (data->page);

  data->explain_cursor = i + 1;
  data->picking = TRUE;
  if (event >= 0 && (guint)event < td_iteration_get_n_events (iteration))
    td_session_select (td_page_get_session (data->page),
                       td_iteration_get_tape (iteration)->events[event].key);
  data->picking = FALSE;
  td_page_invalidate (data->page);
}

gboolean
td__explain_press (TdScheduleData *data, const TdSceneHit *hit, GtkWidget *view)
{
  guint function;
  TdExplain *explain = td__schedule_get_explain (data, &function);

  if (!explain || !hit || hit->tag != TD_TAG_ROW || hit->data < 0
      || (guint)hit->data >= explain->n_rows)
    return FALSE;
  pick (data, explain, (guint)hit->data);
  show_line (view, &explain->rows[hit->data]);
  return TRUE;
}

/* Without a line, where it was first. */
static char *
open_row (TdScheduleData *data, const TdExplain *explain, const TdExplainRow *row,
          GtkWidget *view)
{
  char *words = td_explain_row_text (row);

  if (row->line > 0)
    show_line (view, row);
  else if (row->first >= 0)
    td_session_set_moment (td_page_get_session (data->page), row->first, 0);
  return words;
}

char *
td__explain_move (TdScheduleData *data, int delta, GtkWidget *view)
{
  guint function;
  TdExplain *explain = td__schedule_get_explain (data, &function);
  gint at = (gint)data->explain_cursor - 1, found = -1;
  int step = delta < 0 ? -1 : 1;

  if (!explain || at >= (gint)explain->n_rows)
    return NULL;
  if (delta == 0)
    return at >= 0 ? open_row (data, explain, &explain->rows[at], view) : NULL;
  guint pass = at >= 0 ? explain->rows[at].pass : 0;
  for (gint i = at + step; delta != 0 && i >= 0 && i < (gint)explain->n_rows; i += step)
    if (td_explain_row_is_listed (&explain->rows[i], function, pass))
      {
        found = i;
        delta -= step;
      }
  if (found < 0)
    return NULL;
  pick (data, explain, (guint)found);
  return td_explain_row_text (&explain->rows[found]);
}
