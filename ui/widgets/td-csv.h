/* Tables as comma-separated values: whoever shows one says how it is written, and what has the
 * keyboard in it, or in a picture of it, finds that again. SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

/** Write a table, with a line of titles. Owner: the caller. NULL: there is nothing in it now.
 */
typedef char *(*TdCsvMake) (gpointer data);

/** Say how the table is written that this widget shows. */
void td_csv_provide (GtkWidget *widget, TdCsvMake make, gpointer data);

/** Write the table of this widget, or of the nearest around it that has one. Owner: the caller.
 * NULL: none has, or it is empty. */
char *td_csv_dup (GtkWidget *widget);

/** Say whether there is such a widget. */
gboolean td_csv_is_provided (GtkWidget *widget);

/** Write n rows of a table of td-index-list.h, as its visible columns show them; `cell` is
 * asked for each by the column (td_index_table_column). Owner: the caller. */
char *td_csv_dup_table (GtkColumnView *table, guint n,
                        char *(*cell) (gpointer data, gconstpointer column, guint row),
                        gpointer data);
