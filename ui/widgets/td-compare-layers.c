/* A GtkColumnView over the pairs of a port check.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-compare-layers.h"

#include "settings/td-tip.h"
#include "widgets/td-compare-list.h"
#include "widgets/td-csv.h"
#include "widgets/td-index-list.h"

#include <glib/gi18n-lib.h>
#include <string.h>

struct _TdCompareLayers
{
  GtkWidget parent;
  GtkWidget *box;
  GtkLabel *found[2], *notes;
  GtkWidget *limits;
  char *text;
  GtkColumnView *view;
  TdIndexList *list;
  GtkSingleSelection *selection;
  const TdPort *port; /* borrowed */
  gboolean syncing;
  guint waits; /* frames until rows have their places */
};

enum
{
  CHOSEN,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdCompareLayers, td_compare_layers, GTK_TYPE_WIDGET)

/* ---- columns ---- */

static gboolean
differs (const TdPortNumbers *n)
{
  return n && n->verdict == TD_PORT_DIFFERS;
}

static char *
dup_mark (const TdPortRow *row)
{
  if (row->first_forward && row->first_backward)
    return g_strdup ("1st →←");
  if (row->first_forward)
    return g_strdup ("1st →");
  if (row->first_backward)
    return g_strdup ("1st ←");
  return g_strdup (differs (row->out) || differs (row->backward) ? "≠" : "");
}

static char *
dup_a (const TdPortRow *row)
{
  return g_utf8_make_valid (row->path[0], -1);
}

static char *
dup_b (const TdPortRow *row)
{
  return g_utf8_make_valid (row->path[1], -1);
}

/* How far apart, in one figure. */
static char *
dup_apart (const TdPortNumbers *n)
{
  if (!n || n->verdict == TD_PORT_UNKNOWN)
    return g_strdup ("not known");
  if (n->what && g_str_has_prefix (n->what, "only"))
    return g_strdup (n->what);
  if (n->apart == 0)
    return g_strdup (n->verdict == TD_PORT_SAME ? "0" : "differs");
  return g_strdup_printf ("%.1e", n->apart);
}

static char *
dup_forward (const TdPortRow *row)
{
  return dup_apart (row->out);
}

static char *
dup_backward (const TdPortRow *row)
{
  return dup_apart (row->backward);
}

static char *
dup_of (const TdPortRow *row)
{
  return g_utf8_make_valid (row->backward_of ? row->backward_of : "", -1);
}

static char *
dup_worst (const TdPortRow *row)
{
  g_autofree char *text = td_port_dup_worst (row);
  return g_utf8_make_valid (text, -1);
}

typedef struct
{
  const char *title;
  char *(*text) (const TdPortRow *row);
  gboolean numeric, expand;
} Column;

static const Column columns[] = {
  { "", dup_mark, FALSE, FALSE },
  { N_ ("Layer of A"), dup_a, FALSE, TRUE },
  { N_ ("Layer of B"), dup_b, FALSE, TRUE },
  { N_ ("Forward"), dup_forward, TRUE, FALSE },
  { N_ ("Backward"), dup_backward, TRUE, FALSE },
  { N_ ("Of"), dup_of, FALSE, FALSE },
  { N_ ("Worst"), dup_worst, FALSE, TRUE },
};

static gboolean
get_row (TdCompareLayers *self, guint i, TdPortRow *row)
{
  if (!self->port || i >= td_port_get_n_rows (self->port))
    return FALSE;
  td_port_get_row (self->port, i, row);
  return TRUE;
}

static char *
dup_cell (gpointer self, gconstpointer column, guint i)
{
  TdPortRow row;
  return get_row (self, i, &row) ? ((const Column *)column)->text (&row) : g_strdup ("");
}

static char *
dup_csv (gpointer data)
{
  TdCompareLayers *self = data;
  return self->port
             ? td_csv_dup_table (self->view, td_port_get_n_rows (self->port), dup_cell, self)
             : NULL;
}

static void
setup_cell (GtkListItemFactory *factory, GtkListItem *item, TdCompareLayers *self)
{
  const Column *column = td_index_table_column (factory);
  td_index_table_set_label (item, column->numeric, column->expand);
}

/* What differs is told by a sign and by a colour. */
static void
bind_cell (GtkListItemFactory *factory, GtkListItem *item, TdCompareLayers *self)
{
  const Column *column = td_index_table_column (factory);
  TdIndexRow *at = gtk_list_item_get_item (item);
  GtkWidget *label = gtk_list_item_get_child (item);
  TdPortRow row;
  if (!at || !get_row (self, td_index_row_get (at), &row))
    return;
  g_autofree char *text = column->text (&row);
  gboolean marked = (column->text == dup_mark && *text)
                    || (column->text == dup_forward && differs (row.out))
                    || (column->text == dup_backward && differs (row.backward));
  gtk_label_set_text (GTK_LABEL (label), text);
  gtk_widget_set_tooltip_text (label, column->expand ? text : NULL);
  td_compare_set_mark_class (label, marked ? TD_MARK_CHANGED : TD_MARK_NONE);
  if (!marked)
    gtk_widget_remove_css_class (label, "td-mark");
}

/* ---- selecting ---- */

static void
selected_changed (TdCompareLayers *self)
{
  guint at = gtk_single_selection_get_selected (self->selection);
  if (!self->syncing && self->port && at < td_port_get_n_rows (self->port))
    g_signal_emit (self, signals[CHOSEN], 0, at);
}

void
td_compare_layers_select (TdCompareLayers *self, gint row)
{
  self->syncing = TRUE;
  td_index_table_select (self->view, row);
  self->syncing = FALSE;
}

/* ---- showing ---- */

static void
set_line (GtkLabel *label, const char *text)
{
  gtk_label_set_text (label, text ? text : "");
  gtk_widget_set_visible (GTK_WIDGET (label), text && *text);
  td_tip_set (GTK_WIDGET (label), text);
}

static void
set_found (TdCompareLayers *self, int direction, const char *text)
{
  gboolean marked = self->port && text && strstr (text, "differs is") != NULL;
  set_line (self->found[direction], text);
  td_compare_set_mark_class (GTK_WIDGET (self->found[direction]),
                             marked ? TD_MARK_CHANGED : TD_MARK_NONE);
  gtk_widget_remove_css_class (GTK_WIDGET (self->found[direction]), "td-mark");
}

static void
show_text (TdCompareLayers *self, const char *why)
{
  g_autofree char *lines[2] = { NULL, NULL };
  g_autofree char *notes = NULL;
  g_free (self->text);
  if (!self->port)
    {
      self->text = g_strdup (why ? why : "");
      set_found (self, 0, self->text);
      set_found (self, 1, NULL);
      set_line (self->notes, NULL);
      return;
    }
  for (int d = 0; d < 2; d++)
    {
      g_autofree char *raw = td_port_dup_first (self->port, d == 1);
      lines[d] = g_utf8_make_valid (raw, -1);
      if (lines[d][0])
        lines[d][0] = g_ascii_toupper (lines[d][0]);
      set_found (self, d, lines[d]);
    }
  g_autofree char *raw = g_strjoinv ("\n", (char **)(gpointer)td_port_get_notes (self->port));
  notes = g_utf8_make_valid (raw, -1);
  g_autofree char *line = g_strjoinv (" · ", (char **)(gpointer)td_port_get_notes (self->port));
  g_autofree char *valid = g_utf8_make_valid (line, -1);
  set_line (self->notes, valid);
  td_tip_set (GTK_WIDGET (self->notes), notes);
  self->text = g_strdup_printf ("%s\n%s\n%s", lines[0], lines[1], notes);
}

/* The first that differs, forward or else backward, is where looking begins, as if it had been
 * chosen: once the rows have their places. */
static gboolean
go_to_first (GtkWidget *widget, GdkFrameClock *clock, gpointer unused)
{
  TdCompareLayers *self = TD_COMPARE_LAYERS (widget);
  gint first = -1;
  TdPortRow row;
  if (self->waits > 0)
    {
      self->waits--;
      return G_SOURCE_CONTINUE;
    }
  for (guint i = 0; get_row (self, i, &row); i++)
    if (row.first_forward || (row.first_backward && first < 0))
      first = (gint)i;
  if (first >= 0
      && gtk_single_selection_get_selected (self->selection) == GTK_INVALID_LIST_POSITION)
    {
      td_compare_layers_select (self, first);
      g_signal_emit (self, signals[CHOSEN], 0, (guint)first);
    }
  return G_SOURCE_REMOVE;
}

void
td_compare_layers_show (TdCompareLayers *self, const TdPort *port, const char *why)
{
  self->port = port;
  show_text (self, why);
  self->syncing = TRUE;
  td_index_list_reset (self->list, port ? td_port_get_n_rows (port) : 0);
  gtk_single_selection_set_selected (self->selection, GTK_INVALID_LIST_POSITION);
  self->syncing = FALSE;
  self->waits = 2;
  if (port)
    gtk_widget_add_tick_callback (GTK_WIDGET (self), go_to_first, NULL, NULL);
}

const char *
td_compare_layers_get_text (TdCompareLayers *self)
{
  return self->text ? self->text : "";
}

TdCompareLimits *
td_compare_layers_get_limits (TdCompareLayers *self)
{
  return TD_COMPARE_LIMITS (self->limits);
}

char *
td_compare_layers_dup_cell (TdCompareLayers *self, guint row, guint column)
{
  TdPortRow found;
  return column < G_N_ELEMENTS (columns) && get_row (self, row, &found)
             ? columns[column].text (&found)
             : NULL;
}

/* ---- building ---- */

static void
td_compare_layers_dispose (GObject *object)
{
  TdCompareLayers *self = TD_COMPARE_LAYERS (object);
  if (self->selection)
    g_signal_handlers_disconnect_by_data (self->selection, self);
  g_clear_pointer (&self->box, gtk_widget_unparent);
  g_clear_object (&self->selection);
  g_clear_object (&self->list);
  g_clear_pointer (&self->text, g_free);
  G_OBJECT_CLASS (td_compare_layers_parent_class)->dispose (object);
}

static void
td_compare_layers_class_init (TdCompareLayersClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_compare_layers_dispose;
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
  signals[CHOSEN] = g_signal_new ("chosen", TD_TYPE_COMPARE_LAYERS, G_SIGNAL_RUN_LAST, 0, NULL,
                                  NULL, NULL, G_TYPE_NONE, 1, G_TYPE_UINT);
}

static GtkLabel *
add_line (GtkWidget *lines, PangoEllipsizeMode mode)
{
  GtkWidget *label = gtk_label_new (NULL);
  gtk_label_set_xalign (GTK_LABEL (label), 0);
  gtk_label_set_ellipsize (GTK_LABEL (label), mode);
  gtk_widget_set_visible (label, FALSE);
  gtk_box_append (GTK_BOX (lines), label);
  return GTK_LABEL (label);
}

static void
td_compare_layers_init (TdCompareLayers *self)
{
  GtkWidget *head = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 12);
  GtkWidget *lines = gtk_box_new (GTK_ORIENTATION_VERTICAL, 2);
  GtkWidget *scroller = gtk_scrolled_window_new ();
  gtk_widget_add_css_class (head, "td-side-head");
  for (int d = 0; d < 2; d++)
    self->found[d] = add_line (lines, PANGO_ELLIPSIZE_END);
  self->notes = add_line (lines, PANGO_ELLIPSIZE_END);
  self->limits = td_compare_limits_new ();
  gtk_widget_set_hexpand (lines, TRUE);
  gtk_widget_set_valign (lines, GTK_ALIGN_CENTER);
  gtk_widget_set_valign (self->limits, GTK_ALIGN_START);
  gtk_box_append (GTK_BOX (head), lines);
  gtk_box_append (GTK_BOX (head), self->limits);
  gtk_widget_add_css_class (GTK_WIDGET (self->notes), "dim-label");
  self->list = td_index_list_new ();
  self->selection
      = td_index_list_new_selection (self->list, G_CALLBACK (selected_changed), self);
  self->view = td_index_table_new (self->selection, _ ("Layers of both sides"));
  td_csv_provide (GTK_WIDGET (self->view), dup_csv, self);
  gtk_widget_add_css_class (GTK_WIDGET (self->view), "td-compare-table");
  for (guint i = 0; i < G_N_ELEMENTS (columns); i++)
    td_index_table_add (self->view, _ (columns[i].title), columns[i].expand, &columns[i],
                        G_CALLBACK (setup_cell), G_CALLBACK (bind_cell), NULL, self);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), GTK_WIDGET (self->view));
  gtk_widget_set_vexpand (scroller, TRUE);
  self->box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  gtk_box_append (GTK_BOX (self->box), head);
  gtk_box_append (GTK_BOX (self->box), scroller);
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
}
