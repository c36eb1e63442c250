/* A table over the rows of a TdMemoryCompare, beside one stack.
 * SPDX-License-Identifier: MIT */
#include "pages/td-compare-snapshots.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "scene/td-format.h"
#include "widgets/td-csv.h"
#include "widgets/td-index-list.h"

#define RECORDS_AT_ONCE 20000 /* of memory, that need no thread */

struct _TdCompareSnapshots
{
  GtkWidget parent;
  GtkWidget *box;
  GtkColumnView *table;
  TdIndexList *list;
  GtkSingleSelection *selection;
  TdCallStack *stack;
  TdIteration *of[2];
  TdSession *session;       /* that has the sources; NULL: none */
  TdMemoryCompare *compare; /* once it is known */
  GCancellable *job;        /* it is being found out */
};

enum
{
  FOUND,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdCompareSnapshots, td_compare_snapshots, GTK_TYPE_WIDGET)

/* ---- columns ---- */

static char *
dup_count (guint n)
{
  return n > 0 ? g_strdup_printf ("%u", n) : g_strdup ("");
}

static char *
dup_bytes (guint n, guint64 bytes)
{
  char text[TD_FORMAT_SIZE];
  return g_strdup (n > 0 ? td_format_bytes (text, bytes) : "");
}

static char *
dup_new (const TdMemoryCompare *c, guint i)
{
  return dup_count (c->rows[i].n_new);
}

static char *
dup_new_bytes (const TdMemoryCompare *c, guint i)
{
  return dup_bytes (c->rows[i].n_new, c->rows[i].new_bytes);
}

static char *
dup_gone (const TdMemoryCompare *c, guint i)
{
  return dup_count (c->rows[i].n_gone);
}

static char *
dup_gone_bytes (const TdMemoryCompare *c, guint i)
{
  return dup_bytes (c->rows[i].n_gone, c->rows[i].gone_bytes);
}

static char *
dup_change (const TdMemoryCompare *c, guint i)
{
  const TdMemoryCompareRow *row = &c->rows[i];
  gboolean more = row->bytes[1] >= row->bytes[0];
  char text[TD_FORMAT_SIZE];
  td_format_bytes (text, more ? row->bytes[1] - row->bytes[0] : row->bytes[0] - row->bytes[1]);
  return g_strdup_printf ("%s%s", more ? "+" : "−", text);
}

static char *
dup_device (const TdMemoryCompare *c, guint i)
{
  return g_utf8_make_valid (c->rows[i].device, -1);
}

/* The end of the path: all of it is in the stack. */
static char *
dup_place (const TdMemoryCompare *c, guint i)
{
  const char *slash = strrchr (c->rows[i].place, '/');
  return strcmp (c->rows[i].place, "?") == 0
             ? g_strdup ("no stack")
             : g_utf8_make_valid (slash ? slash + 1 : c->rows[i].place, -1);
}

static char *
dup_apart (const TdMemoryCompare *c, guint i)
{
  char *text = td_memory_compare_apart (c, i, TRUE);
  return text ? text : g_strdup ("");
}

typedef struct
{
  const char *title;
  char *(*text) (const TdMemoryCompare *c, guint row);
  gboolean numeric, expand;
} Column;

static const Column columns[] = {
  { N_ ("New"), dup_new, TRUE, FALSE },
  { N_ ("Bytes"), dup_new_bytes, TRUE, FALSE },
  { N_ ("Gone"), dup_gone, TRUE, FALSE },
  { N_ ("Bytes"), dup_gone_bytes, TRUE, FALSE },
  { N_ ("Change"), dup_change, TRUE, FALSE },
  { N_ ("Device"), dup_device, FALSE, FALSE },
  { N_ ("Allocated at"), dup_place, FALSE, TRUE },
  { N_ ("Through"), dup_apart, FALSE, TRUE },
};

static void
setup_cell (GtkListItemFactory *factory, GtkListItem *item, TdCompareSnapshots *self)
{
  const Column *column = td_index_table_column (factory);
  td_index_table_set_label (item, column->numeric, column->expand);
}

static void
bind_cell (GtkListItemFactory *factory, GtkListItem *item, TdCompareSnapshots *self)
{
  const Column *column = td_index_table_column (factory);
  guint row = gtk_list_item_get_position (item);
  if (!self->compare || row >= self->compare->n)
    return;
  g_autofree char *text = column->text (self->compare, row);
  gtk_label_set_text (GTK_LABEL (gtk_list_item_get_child (item)), text);
}

static char *
dup_cell (gpointer self, gconstpointer column, guint row)
{
  return ((const Column *)column)->text (((TdCompareSnapshots *)self)->compare, row);
}

static char *
dup_csv (gpointer data)
{
  TdCompareSnapshots *self = data;
  return self->compare ? td_csv_dup_table (self->table, self->compare->n, dup_cell, self)
                       : NULL;
}

/* Where all rows say nothing, or the same, there is no column. */
static void
show_columns (TdCompareSnapshots *self)
{
  GListModel *made = gtk_column_view_get_columns (self->table);
  gboolean devices = FALSE, apart = FALSE;
  for (guint i = 0; self->compare && i < self->compare->n; i++)
    {
      devices |= self->compare->rows[i].device != self->compare->rows[0].device;
      apart |= self->compare->rows[i].apart > 0;
    }
  for (guint i = 0; i < G_N_ELEMENTS (columns); i++)
    {
      g_autoptr (GtkColumnViewColumn) column = g_list_model_get_item (made, i);
      gtk_column_view_column_set_visible (column,
                                          (columns[i].text != dup_device || devices)
                                              && (columns[i].text != dup_apart || apart));
    }
}

/* ---- the stack ---- */

static void
row_selected (TdCompareSnapshots *self)
{
  guint at = gtk_single_selection_get_selected (self->selection);
  const TdMemoryCompareRow *row
      = self->compare && at < self->compare->n ? &self->compare->rows[at] : NULL;
  g_autoptr (GArray) frames
      = row ? td_stack_table_list (self->compare->stacks, row->stack) : NULL;
  char a[TD_FORMAT_SIZE], b[TD_FORMAT_SIZE];
  g_autofree char *title
      = row ? g_strdup_printf ("%s in A, %s in B", td_format_bytes (a, row->bytes[0]),
                               td_format_bytes (b, row->bytes[1]))
            : g_strdup ("");
  gtk_widget_set_visible (GTK_WIDGET (self->stack), row != NULL);
  td_call_stack_set (self->stack, title, frames, self->session);
}

gboolean
td_compare_snapshots_step (TdCompareSnapshots *self, int direction)
{
  gint at = (gint)td_compare_snapshots_get_position (self) - 1 + direction;
  gint n = self->compare ? (gint)self->compare->n : 0;
  if (at < -1 || at >= n || (at < 0 && direction < 0))
    return FALSE;
  td_index_table_select (self->table, at);
  return TRUE;
}

guint
td_compare_snapshots_get_position (TdCompareSnapshots *self)
{
  guint at = gtk_single_selection_get_selected (self->selection);
  return at == GTK_INVALID_LIST_POSITION ? 0 : at + 1;
}

TdCallStack *
td_compare_snapshots_get_stack (TdCompareSnapshots *self)
{
  return self->stack;
}

/* ---- comparing ---- */

static void
take (TdCompareSnapshots *self, TdMemoryCompare *compare)
{
  TdMemoryCompare *old = self->compare;
  self->compare = compare;
  td_index_list_reset (self->list, compare ? compare->n : 0);
  td_memory_compare_free (old);
  show_columns (self);
  td_index_table_select (self->table, compare && compare->n > 0 ? 0 : -1);
  row_selected (self);
  g_signal_emit (self, signals[FOUND], 0);
}

static void
compare_in_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  TdIteration **of = data;
  g_task_return_pointer (task, td_memory_compare_new (of[0], of[1]),
                         (GDestroyNotify)td_memory_compare_free);
}

static void
compared (GObject *source, GAsyncResult *result, gpointer data)
{
  TdCompareSnapshots *self = TD_COMPARE_SNAPSHOTS (source);
  TdMemoryCompare *compare = g_task_propagate_pointer (G_TASK (result), NULL);
  if (!compare || g_task_get_cancellable (G_TASK (result)) != self->job)
    {
      td_memory_compare_free (compare);
      return; /* something else is looked at meanwhile */
    }
  g_clear_object (&self->job);
  take (self, compare);
}

static void
free_pair (gpointer data)
{
  TdIteration **of = data;
  td_iteration_unref (of[0]);
  td_iteration_unref (of[1]);
  g_free (of);
}

static void
run (TdCompareSnapshots *self)
{
  guint64 n = 0;
  for (int side = 0; side < 2; side++)
    n += td_iteration_get_tape (self->of[side])->n_memory
         + (guint64)td_iteration_get_tape (self->of[side])->n_blocks;
  if (n <= RECORDS_AT_ONCE)
    {
      take (self, td_memory_compare_new (self->of[0], self->of[1]));
      return;
    }
  TdIteration **of = g_new (TdIteration *, 2);
  of[0] = td_iteration_ref (self->of[0]);
  of[1] = td_iteration_ref (self->of[1]);
  self->job = g_cancellable_new ();
  g_autoptr (GTask) task = g_task_new (self, self->job, compared, NULL);
  g_task_set_task_data (task, of, free_pair);
  g_task_run_in_thread (task, compare_in_thread);
}

void
td_compare_snapshots_set (TdCompareSnapshots *self, TdIteration *a, TdIteration *b,
                          TdSession *session)
{
  TdIteration *of[2] = { a, b };
  if (a == self->of[0] && b == self->of[1])
    return;
  if (self->job)
    g_cancellable_cancel (self->job);
  g_clear_object (&self->job);
  g_set_object (&self->session, session);
  for (int side = 0; side < 2; side++)
    {
      g_clear_pointer (&self->of[side], td_iteration_unref);
      self->of[side] = of[side] ? td_iteration_ref (of[side]) : NULL;
    }
  if (self->compare)
    take (self, NULL);
  if (a && b)
    run (self);
}

const TdMemoryCompare *
td_compare_snapshots_get (TdCompareSnapshots *self)
{
  return self->compare;
}

gboolean
td_compare_snapshots_is_set (TdCompareSnapshots *self)
{
  return self->of[0] != NULL;
}

/* ---- building ---- */

static void
td_compare_snapshots_dispose (GObject *object)
{
  TdCompareSnapshots *self = TD_COMPARE_SNAPSHOTS (object);
  if (self->selection)
    g_signal_handlers_disconnect_by_data (self->selection, self);
  if (self->job)
    g_cancellable_cancel (self->job);
  g_clear_object (&self->job);
  g_clear_object (&self->session);
  g_clear_pointer (&self->of[0], td_iteration_unref);
  g_clear_pointer (&self->of[1], td_iteration_unref);
  g_clear_pointer (&self->box, gtk_widget_unparent);
  g_clear_object (&self->selection);
  g_clear_object (&self->list);
  g_clear_pointer (&self->compare, td_memory_compare_free);
  G_OBJECT_CLASS (td_compare_snapshots_parent_class)->dispose (object);
}

static void
td_compare_snapshots_class_init (TdCompareSnapshotsClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_compare_snapshots_dispose;
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
  signals[FOUND] = g_signal_new ("found", TD_TYPE_COMPARE_SNAPSHOTS, G_SIGNAL_RUN_LAST, 0, NULL,
                                 NULL, NULL, G_TYPE_NONE, 0);
}

static void
td_compare_snapshots_init (TdCompareSnapshots *self)
{
  GtkWidget *scroller = gtk_scrolled_window_new ();
  self->list = td_index_list_new ();
  self->selection = td_index_list_new_selection (self->list, G_CALLBACK (row_selected), self);
  self->table
      = td_index_table_new (self->selection, _ ("Stacks with blocks that are new or gone"));
  td_csv_provide (GTK_WIDGET (self->table), dup_csv, self);
  gtk_widget_set_name (GTK_WIDGET (self->table), "compare-snapshots");
  gtk_widget_add_css_class (GTK_WIDGET (self->table), "td-compare-table");
  for (guint i = 0; i < G_N_ELEMENTS (columns); i++)
    td_index_table_add (self->table, _ (columns[i].title), columns[i].expand, &columns[i],
                        G_CALLBACK (setup_cell), G_CALLBACK (bind_cell), NULL, self);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), GTK_WIDGET (self->table));
  gtk_widget_set_hexpand (scroller, TRUE);
  self->stack = TD_CALL_STACK (td_call_stack_new ());
  gtk_widget_add_css_class (GTK_WIDGET (self->stack), "td-compare-stack");
  self->box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 0);
  gtk_box_append (GTK_BOX (self->box), scroller);
  gtk_box_append (GTK_BOX (self->box), gtk_separator_new (GTK_ORIENTATION_VERTICAL));
  gtk_box_append (GTK_BOX (self->box), GTK_WIDGET (self->stack));
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
  row_selected (self);
}
