/* A list model of numbers: a row object, which knows only where it stands, is made for what is
 * on screen; and what tables over it have in common. SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#define TD_TYPE_INDEX_ROW (td_index_row_get_type ())
G_DECLARE_FINAL_TYPE (TdIndexRow, td_index_row, TD, INDEX_ROW, GObject)

#define TD_TYPE_INDEX_LIST (td_index_list_get_type ())
G_DECLARE_FINAL_TYPE (TdIndexList, td_index_list, TD, INDEX_LIST, GObject)

/** Create an empty list. Owner: caller. */
TdIndexList *td_index_list_new (void);

/** Say how many rows there are now; all of them are new. */
void td_index_list_reset (TdIndexList *self, guint n);

/** Say how many rows there are now; those from `from` on are new. */
void td_index_list_resize (TdIndexList *self, guint n, guint from);

/** Return where a row stands. */
guint td_index_row_get (TdIndexRow *row);

/** Create a selection of one row of the list, or of none. `changed` is called with `data`
 * swapped when it is another one. Owner: caller. */
GtkSingleSelection *td_index_list_new_selection (TdIndexList *self, GCallback changed,
                                                 gpointer data);

/** Create a table over a selection, with a name for who does not see it. Owner: floating. */
GtkColumnView *td_index_table_new (GtkSingleSelection *selection, const char *name);

/** Add a column; `column` is what td_index_table_column returns for its factory. The signals of
 * the factory are called with `data`; unbind may be NULL. */
void td_index_table_add (GtkColumnView *table, const char *title, gboolean expand,
                         gconstpointer column, GCallback setup, GCallback bind,
                         GCallback unbind, gpointer data);
gconstpointer td_index_table_column (GtkListItemFactory *factory);

/** Give a cell its label: numbers to the right, what has room cut in the middle. */
GtkWidget *td_index_table_set_label (GtkListItem *cell, gboolean numeric, gboolean expand);

/** Select a row, -1 none, and scroll to it where the table is on show. */
void td_index_table_select (GtkColumnView *table, gint row);
