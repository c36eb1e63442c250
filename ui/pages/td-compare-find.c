/* Finding on the compare page: an operation of either side, shown in both.
 * SPDX-License-Identifier: MIT */
#include "pages/td-compare-page-private.h"

#include <glib/gi18n-lib.h>

/* Rows that have a match on one side or the other; one byte each. */
static guint8 *
find_rows (const TdCompare *c, const char *text, guint *n)
{
  guint8 *found = g_malloc0 (MAX (c->n_rows, 1));

  *n = 0;
  for (int side = 0; side < TD_N_SIDES; side++)
    {
      g_autoptr (GArray) events
          = td_viz_graph_find_text (td_iteration_get_graph (c->of[side]), text);
      for (guint i = 0; i < events->len; i++)
        {
          gint row = td_compare_find_row (c, (TdSide)side, g_array_index (events, gint32, i));
          if (row < 0 || found[row])
            continue;
          found[row] = 1;
          ++*n;
        }
    }
  return found;
}

/* The row of what is selected on the window's side, or the other; -1: none. */
static gint
selected_row (TdComparePage *self)
{
  for (int i = 0; i < TD_N_SIDES; i++)
    {
      TdSide side = i == 0 ? self->mine : (TdSide)(1 - self->mine);
      TdSession *session = i == 0 ? self->session : self->shown;
      guint n = 0;
      const guint64 *keys = session ? td_session_get_selection (session, &n) : NULL;
      gint event = n ? td_iteration_find (self->compare->of[side], keys[0]) : -1;
      gint row = event >= 0 ? td_compare_find_row (self->compare, side, event) : -1;
      if (row >= 0)
        return row;
    }
  return -1;
}

guint
td_compare_page_search (TdComparePage *self, const char *text)
{
  if (!self->compare || !*text)
    {
      td_find_bar_set_words (self->find, "");
      return 0;
    }
  const TdCompare *c = self->compare;
  guint n, at = 0;
  g_autofree guint8 *found = find_rows (c, text, &n);
  gint from = selected_row (self), chosen = -1;
  for (guint k = 1; n > 0 && k <= c->n_rows && chosen < 0; k++)
    if (found[((guint)(from + 1) + k - 1) % c->n_rows])
      chosen = (gint)(((guint)(from + 1) + k - 1) % c->n_rows);
  for (gint i = 0; i <= chosen; i++)
    at += found[i];
  g_autofree char *words
      = n ? g_strdup_printf ("%u of %u", at, n) : g_strdup (_ ("No match on either side"));
  if (chosen >= 0)
    td__compare_page_show_row (self, (guint)chosen);
  td_find_bar_set_words (self->find, words);
  return n;
}

static void
search (TdFindBar *bar, const char *text, TdComparePage *self)
{
  td_compare_page_search (self, text);
}

static void
closed (TdFindBar *bar, TdComparePage *self)
{
  gtk_widget_grab_focus (GTK_WIDGET (td_compare_side_get_view (self->sides[self->mine])));
}

GtkWidget *
td__compare_page_new_find (TdComparePage *self)
{
  self->find = TD_FIND_BAR (td_find_bar_new (_ ("Find in both graphs")));
  g_signal_connect (self->find, "search", G_CALLBACK (search), self);
  g_signal_connect (self->find, "closed", G_CALLBACK (closed), self);
  return GTK_WIDGET (self->find);
}

void
td_compare_page_find (TdComparePage *self)
{
  td_find_bar_open (self->find);
}

gboolean
td_compare_page_close_find (TdComparePage *self)
{
  return td_find_bar_close (self->find);
}
