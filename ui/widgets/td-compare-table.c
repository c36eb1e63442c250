/* A GtkColumnView over the rows of a comparison.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-compare-table.h"

#include <glib/gi18n-lib.h>

#include "widgets/td-compare-list.h"
#include "widgets/td-csv.h"
#include "widgets/td-hover-row.h"
#include "widgets/td-index-list.h"

struct _TdCompareTable
{
  GtkWidget parent;
  GtkWidget *scroller;
  GtkColumnView *view;
  TdIndexList *list;
  GtkSingleSelection *selection;
  const TdCompare *compare; /* borrowed, as the sessions */
  TdSession *sessions[TD_N_SIDES];
  gboolean syncing;
};

enum
{
  CHOSEN,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdCompareTable, td_compare_table, GTK_TYPE_WIDGET)

/* ---- columns ---- */

static char *
dup_mark (const TdCompare *c, guint i)
{
  return g_strdup (td_mark_looks[c->rows[i].mark].glyph);
}

static char *
dup_event (const TdCompare *c, guint i, TdSide side)
{
  gint event = c->rows[i].event[side];
  return event >= 0 ? g_strdup_printf ("%d", event) : g_strdup ("none");
}

static char *
dup_event_a (const TdCompare *c, guint i)
{
  return dup_event (c, i, TD_SIDE_A);
}

static char *
dup_event_b (const TdCompare *c, guint i)
{
  return dup_event (c, i, TD_SIDE_B);
}

typedef const char *(*Format) (char out[TD_FORMAT_SIZE], guint64 n);
typedef guint64 (*Number) (const TdCompare *c, guint i, TdSide side);

static char *
dup_number (const TdCompare *c, guint i, TdSide side, Number number, Format format)
{
  char text[TD_FORMAT_SIZE];
  return g_strdup (c->rows[i].event[side] >= 0 ? format (text, number (c, i, side)) : "");
}

static char *
dup_ns_a (const TdCompare *c, guint i)
{
  return dup_number (c, i, TD_SIDE_A, td_compare_row_ns, td_format_ns);
}

static char *
dup_ns_b (const TdCompare *c, guint i)
{
  return dup_number (c, i, TD_SIDE_B, td_compare_row_ns, td_format_ns);
}

static char *
dup_ns_change (const TdCompare *c, guint i)
{
  char text[TD_FORMAT_SIZE];
  return g_strdup (td_compare_format_ns (text, td_compare_row_ns (c, i, TD_SIDE_A),
                                         td_compare_row_ns (c, i, TD_SIDE_B)));
}

static char *
dup_bytes_a (const TdCompare *c, guint i)
{
  return dup_number (c, i, TD_SIDE_A, td_compare_row_bytes, td_format_bytes);
}

static char *
dup_bytes_b (const TdCompare *c, guint i)
{
  return dup_number (c, i, TD_SIDE_B, td_compare_row_bytes, td_format_bytes);
}

static char *
dup_bytes_change (const TdCompare *c, guint i)
{
  char text[TD_FORMAT_SIZE];
  return g_strdup (td_compare_format_bytes (text, td_compare_row_bytes (c, i, TD_SIDE_A),
                                            td_compare_row_bytes (c, i, TD_SIDE_B)));
}

typedef struct
{
  const char *title;
  char *(*text) (const TdCompare *c, guint row);
  gboolean numeric, expand;
} Column;

static const Column columns[] = {
  { "", dup_mark, FALSE, FALSE },
  { N_ ("Operation"), td_compare_row_name, FALSE, TRUE },
  { N_ ("Where"), td_compare_row_detail, FALSE, TRUE },
  { "A", dup_event_a, TRUE, FALSE },
  { "B", dup_event_b, TRUE, FALSE },
  { N_ ("Time A"), dup_ns_a, TRUE, FALSE },
  { N_ ("Time B"), dup_ns_b, TRUE, FALSE },
  { N_ ("Change"), dup_ns_change, TRUE, FALSE },
  { N_ ("Output A"), dup_bytes_a, TRUE, FALSE },
  { N_ ("Output B"), dup_bytes_b, TRUE, FALSE },
  { N_ ("Change"), dup_bytes_change, TRUE, FALSE },
};

static char *
dup_cell (gpointer self, gconstpointer column, guint row)
{
  return ((const Column *)column)->text (((TdCompareTable *)self)->compare, row);
}

static char *
dup_csv (gpointer data)
{
  TdCompareTable *self = data;
  return self->compare ? td_csv_dup_table (self->view, self->compare->n_rows, dup_cell, self)
                       : NULL;
}

static void
setup_cell (GtkListItemFactory *factory, GtkListItem *item, TdCompareTable *self)
{
  const Column *column = td_index_table_column (factory);
  GtkWidget *label = td_index_table_set_label (item, column->numeric, column->expand);
  if (column->text == dup_mark)
    gtk_label_set_width_chars (GTK_LABEL (label), 2);
}

static void
bind_cell (GtkListItemFactory *factory, GtkListItem *item, TdCompareTable *self)
{
  const Column *column = td_index_table_column (factory);
  TdIndexRow *row = gtk_list_item_get_item (item);
  if (!self->compare || !row || td_index_row_get (row) >= self->compare->n_rows)
    return;
  guint i = td_index_row_get (row);
  g_autofree char *text = column->text (self->compare, i);
  GtkWidget *label = gtk_list_item_get_child (item);
  gtk_label_set_text (GTK_LABEL (label), text);
  if (column->text == dup_mark)
    td_compare_set_mark_class (label, self->compare->rows[i].mark);
  td_compare_set_hover (gtk_widget_get_parent (label), self->compare, self->sessions, i);
}

static void
unbind_cell (GtkListItemFactory *factory, GtkListItem *item, TdCompareTable *self)
{
  td_hover_row_set (gtk_widget_get_parent (gtk_list_item_get_child (item)), NULL, 0, NULL);
}

/* ---- selecting ---- */

static void
selected_changed (TdCompareTable *self)
{
  guint at = gtk_single_selection_get_selected (self->selection);
  if (!self->syncing && self->compare && at < self->compare->n_rows)
    g_signal_emit (self, signals[CHOSEN], 0, at);
}

void
td_compare_table_select (TdCompareTable *self, gint row)
{
  self->syncing = TRUE;
  td_index_table_select (self->view, row);
  self->syncing = FALSE;
}

void
td_compare_table_set_compare (TdCompareTable *self, const TdCompare *compare,
                              TdSession *const *sessions)
{
  self->compare = compare;
  for (int side = 0; side < TD_N_SIDES; side++)
    self->sessions[side] = compare ? sessions[side] : NULL;
  self->syncing = TRUE;
  td_index_list_reset (self->list, compare ? compare->n_rows : 0);
  gtk_single_selection_set_selected (self->selection, GTK_INVALID_LIST_POSITION);
  self->syncing = FALSE;
}

/* ---- building ---- */

static void
td_compare_table_dispose (GObject *object)
{
  TdCompareTable *self = TD_COMPARE_TABLE (object);
  if (self->selection)
    g_signal_handlers_disconnect_by_data (self->selection, self);
  g_clear_pointer (&self->scroller, gtk_widget_unparent);
  g_clear_object (&self->selection);
  g_clear_object (&self->list);
  G_OBJECT_CLASS (td_compare_table_parent_class)->dispose (object);
}

static void
td_compare_table_class_init (TdCompareTableClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_compare_table_dispose;
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
  signals[CHOSEN] = g_signal_new ("chosen", TD_TYPE_COMPARE_TABLE, G_SIGNAL_RUN_LAST, 0, NULL,
                                  NULL, NULL, G_TYPE_NONE, 1, G_TYPE_UINT);
}

static void
td_compare_table_init (TdCompareTable *self)
{
  self->list = td_index_list_new ();
  self->selection
      = td_index_list_new_selection (self->list, G_CALLBACK (selected_changed), self);
  self->view = td_index_table_new (self->selection, _ ("Operations of both sides"));
  td_csv_provide (GTK_WIDGET (self->view), dup_csv, self);
  gtk_widget_add_css_class (GTK_WIDGET (self->view), "td-compare-table");
  for (guint i = 0; i < G_N_ELEMENTS (columns); i++)
    td_index_table_add (self->view, _ (columns[i].title), columns[i].expand, &columns[i],
                        G_CALLBACK (setup_cell), G_CALLBACK (bind_cell),
                        G_CALLBACK (unbind_cell), self);
  self->scroller = gtk_scrolled_window_new ();
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (self->scroller), GTK_WIDGET (self->view));
  gtk_widget_set_parent (self->scroller, GTK_WIDGET (self));
}
