/* What a widget provides hangs on it as data. SPDX-License-Identifier: MIT */
#include "widgets/td-csv.h"

#include "scene/td-format.h"
#include "widgets/td-index-list.h"

#define KEY "td-csv"

typedef struct
{
  TdCsvMake make;
  gpointer data;
} Provider;

void
td_csv_provide (GtkWidget *widget, TdCsvMake make, gpointer data)
{
  Provider *provider = g_new (Provider, 1);
  *provider = (Provider){ make, data };
  g_object_set_data_full (G_OBJECT (widget), KEY, provider, g_free);
}

static const Provider *
find_provider (GtkWidget *widget)
{
  for (; widget; widget = gtk_widget_get_parent (widget))
    {
      const Provider *provider = g_object_get_data (G_OBJECT (widget), KEY);
      if (provider)
        return provider;
    }
  return NULL;
}

char *
td_csv_dup (GtkWidget *widget)
{
  const Provider *provider = find_provider (widget);
  return provider ? provider->make (provider->data) : NULL;
}

gboolean
td_csv_is_provided (GtkWidget *widget)
{
  return find_provider (widget) != NULL;
}

/* ---- tables ---- */

static void
put (GString *text, guint at, const char *field)
{
  if (at > 0)
    g_string_append_c (text, ',');
  td_csv_append (text, field ? field : "");
}

static GPtrArray *
columns_of (GtkColumnView *table)
{
  GPtrArray *columns = g_ptr_array_new_with_free_func (g_object_unref);
  GListModel *all = gtk_column_view_get_columns (table);
  for (guint i = 0; i < g_list_model_get_n_items (all); i++)
    {
      GtkColumnViewColumn *column = g_list_model_get_item (all, i);
      if (gtk_column_view_column_get_visible (column))
        g_ptr_array_add (columns, column);
      else
        g_object_unref (column);
    }
  return columns;
}

char *
td_csv_dup_table (GtkColumnView *table, guint n,
                  char *(*cell) (gpointer data, gconstpointer column, guint row), gpointer data)
{
  g_autoptr (GPtrArray) columns = columns_of (table);
  GString *text = g_string_new (NULL);
  for (guint c = 0; c < columns->len; c++)
    put (text, c, gtk_column_view_column_get_title (g_ptr_array_index (columns, c)));
  g_string_append_c (text, '\n');
  for (guint row = 0; row < n; row++)
    {
      for (guint c = 0; c < columns->len; c++)
        {
          GtkListItemFactory *factory
              = gtk_column_view_column_get_factory (g_ptr_array_index (columns, c));
          g_autofree char *field = cell (data, td_index_table_column (factory), row);
          put (text, c, field);
        }
      g_string_append_c (text, '\n');
    }
  return g_string_free (text, FALSE);
}
