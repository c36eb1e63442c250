/* The list of numbers: a GListModel that makes a row for whoever asks for one.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-index-list.h"

#include "widgets/td-gradual-list.h"

struct _TdIndexRow
{
  GObject parent;
  guint index;
};

struct _TdIndexList
{
  GObject parent;
  guint n;
};

G_DEFINE_FINAL_TYPE (TdIndexRow, td_index_row, G_TYPE_OBJECT)

static void
td_index_row_class_init (TdIndexRowClass *klass)
{
}

static void
td_index_row_init (TdIndexRow *row)
{
}

static GType
list_get_item_type (GListModel *model)
{
  return TD_TYPE_INDEX_ROW;
}

static guint
list_get_n_items (GListModel *model)
{
  return TD_INDEX_LIST (model)->n;
}

static gpointer
list_get_item (GListModel *model, guint position)
{
  if (position >= TD_INDEX_LIST (model)->n)
    return NULL;
  TdIndexRow *row = g_object_new (TD_TYPE_INDEX_ROW, NULL);
  row->index = position;
  return row;
}

static void
list_iface_init (GListModelInterface *iface)
{
  iface->get_item_type = list_get_item_type;
  iface->get_n_items = list_get_n_items;
  iface->get_item = list_get_item;
}

G_DEFINE_FINAL_TYPE_WITH_CODE (TdIndexList, td_index_list, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (G_TYPE_LIST_MODEL, list_iface_init))

static void
td_index_list_class_init (TdIndexListClass *klass)
{
}

static void
td_index_list_init (TdIndexList *list)
{
}

TdIndexList *
td_index_list_new (void)
{
  return g_object_new (TD_TYPE_INDEX_LIST, NULL);
}

void
td_index_list_reset (TdIndexList *self, guint n)
{
  td_index_list_resize (self, n, 0);
}

void
td_index_list_resize (TdIndexList *self, guint n, guint from)
{
  guint old = self->n;
  g_return_if_fail (from <= MIN (old, n));
  self->n = n;
  g_list_model_items_changed (G_LIST_MODEL (self), from, old - from, n - from);
}

guint
td_index_row_get (TdIndexRow *row)
{
  return row->index;
}

GtkSingleSelection *
td_index_list_new_selection (TdIndexList *self, GCallback changed, gpointer data)
{
  GListModel *rows = td_gradual_list_new (g_object_ref (G_LIST_MODEL (self)));
  GtkSingleSelection *selection = gtk_single_selection_new (rows);
  gtk_single_selection_set_autoselect (selection, FALSE);
  gtk_single_selection_set_can_unselect (selection, TRUE);
  g_signal_connect_swapped (selection, "notify::selected", changed, data);
  return selection;
}

GtkColumnView *
td_index_table_new (GtkSingleSelection *selection, const char *name)
{
  GtkWidget *table = gtk_column_view_new (g_object_ref (GTK_SELECTION_MODEL (selection)));
  gtk_widget_add_css_class (table, "td-dense");
  gtk_accessible_update_property (GTK_ACCESSIBLE (table), GTK_ACCESSIBLE_PROPERTY_LABEL, name,
                                  -1);
  /* its rows take the focus through the list inside */
  gtk_accessible_update_property (GTK_ACCESSIBLE (gtk_widget_get_last_child (table)),
                                  GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
  return GTK_COLUMN_VIEW (table);
}

void
td_index_table_add (GtkColumnView *table, const char *title, gboolean expand,
                    gconstpointer column, GCallback setup, GCallback bind, GCallback unbind,
                    gpointer data)
{
  GtkListItemFactory *factory = gtk_signal_list_item_factory_new ();
  g_object_set_data (G_OBJECT (factory), "column", (gpointer)column);
  g_signal_connect (factory, "setup", setup, data);
  g_signal_connect (factory, "bind", bind, data);
  if (unbind)
    g_signal_connect (factory, "unbind", unbind, data);
  GtkColumnViewColumn *made = gtk_column_view_column_new (title, factory);
  gtk_column_view_column_set_expand (made, expand);
  gtk_column_view_append_column (table, made);
  g_object_unref (made);
}

gconstpointer
td_index_table_column (GtkListItemFactory *factory)
{
  return g_object_get_data (G_OBJECT (factory), "column");
}

GtkWidget *
td_index_table_set_label (GtkListItem *cell, gboolean numeric, gboolean expand)
{
  GtkWidget *label = gtk_label_new (NULL);
  gtk_label_set_xalign (GTK_LABEL (label), numeric ? 1 : 0);
  if (numeric)
    gtk_widget_add_css_class (label, "numeric");
  if (expand)
    gtk_label_set_ellipsize (GTK_LABEL (label), PANGO_ELLIPSIZE_MIDDLE);
  gtk_list_item_set_child (cell, label);
  return label;
}

void
td_index_table_select (GtkColumnView *table, gint row)
{
  GtkSingleSelection *selection = GTK_SINGLE_SELECTION (gtk_column_view_get_model (table));
  guint at = row >= 0 ? (guint)row : GTK_INVALID_LIST_POSITION;
  if (gtk_single_selection_get_selected (selection) == at)
    return;
  td_gradual_list_select (selection, at);
  if (row >= 0 && gtk_widget_get_mapped (GTK_WIDGET (table)))
    gtk_widget_activate_action (gtk_widget_get_last_child (GTK_WIDGET (table)),
                                "list.scroll-to-item", "u", at);
}
