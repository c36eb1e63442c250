/* GtkColumnView over a virtual list: a row object is made for what is on screen, from the
 * summaries of the tape. A million iterations cost nothing.
 * SPDX-License-Identifier: MIT */
#include "pages/td-iterations-page.h"

#include <glib/gi18n-lib.h>

#include "scene/td-format.h"
#include "schedule/td-schedule.h"
#include "widgets/td-csv.h"
#include "widgets/td-gradual-list.h"
#include "widgets/td-index-list.h"

struct _TdIterationsPage
{
  GtkWidget parent;
  GtkWidget *scroller;
  GtkColumnView *view;
  TdIndexList *list;
  GtkSingleSelection *selection;
  TdSession *session;
  gboolean syncing;
  guint first;  /* index of the iteration that is listed first: those of the range are */
  guint middle; /* an index and the number that it had: see iterations_changed */
  gint64 middle_number;
};

G_DEFINE_FINAL_TYPE (TdIterationsPage, td_iterations_page, GTK_TYPE_WIDGET)

static gint64
number_of (TdIterationsPage *self, guint row)
{
  return td_session_get_iteration_number (self->session, self->first + row);
}

static const TdTapeSummary *
summary_of (TdIterationsPage *self, guint index)
{
  TdTapeReader *reader = td_session_get_reader (self->session);
  if (!reader)
    return NULL;
  TdTapeSummaries summaries = td_tape_reader_summaries (reader);
  index += self->first;
  return index < summaries.n ? &summaries.rows[index] : NULL;
}

static char *
dup_number (TdIterationsPage *self, guint index)
{
  return g_strdup_printf ("%" G_GINT64_FORMAT, number_of (self, index));
}

static char *
dup_peak (TdIterationsPage *self, guint index)
{
  char text[TD_FORMAT_SIZE];
  const TdTapeSummary *summary = summary_of (self, index);
  return g_strdup (summary ? td_format_bytes (text, summary->peak_bytes) : "");
}

static char *
dup_time (TdIterationsPage *self, guint index)
{
  const TdTapeSummary *summary = summary_of (self, index);
  return summary ? g_strdup_printf ("%.2f", (double)summary->duration_ns / 1e6)
                 : g_strdup ("running");
}

/* Has the graph changed, or only sizes in it? */
static const char *
graph_chip (TdIterationsPage *self, const TdTapeSummary *summary)
{
  TdTapeReader *reader = td_session_get_reader (self->session);
  const TdTapeSummaries all = td_tape_reader_summaries (reader);
  return summary > all.rows && summary[-1].number + 1 == summary->number
                 && td_schedule_only_sizes (reader, summary - 1, summary)
             ? "Δ sizes"
             : "Δ graph";
}

static char *
dup_chips (TdIterationsPage *self, guint index)
{
  static const struct
  {
    guint32 flag;
    const char *words;
  } chips[] = { { TD_TAPE_ITERATION_ERROR, "✕ error" },
                { TD_TAPE_ITERATION_NAN, "✕ NaN" },
                { TD_TAPE_ITERATION_INF, N_ ("▲ Inf") },
                { TD_TAPE_ITERATION_GRAPH_CHANGED, NULL },
                { TD_TAPE_ITERATION_NOT_STORED, N_ ("summary only") },
                { TD_TAPE_ITERATION_PARTIAL, N_ ("cut off") } };
  const TdTapeSummary *summary = summary_of (self, index);
  GString *text = g_string_new (NULL);
  for (guint i = 0; summary && i < G_N_ELEMENTS (chips); i++)
    if (summary->flags & chips[i].flag)
      g_string_append_printf (text, "%s%s", text->len ? "  " : "",
                              chips[i].words ? _ (chips[i].words) : graph_chip (self, summary));
  return g_string_free (text, FALSE);
}

typedef struct
{
  const char *title;
  char *(*text) (TdIterationsPage *self, guint index);
  gboolean numeric, expand;
} Column;

static const Column columns[] = {
  { N_ ("It."), dup_number, TRUE, FALSE },
  { N_ ("Findings"), dup_chips, FALSE, TRUE },
  { N_ ("Peak"), dup_peak, TRUE, FALSE },
  { "ms", dup_time, TRUE, FALSE },
};

static void
setup_cell (GtkListItemFactory *factory, GtkListItem *item, TdIterationsPage *self)
{
  const Column *column = td_index_table_column (factory);
  GtkWidget *label = gtk_label_new (NULL);
  gtk_label_set_xalign (GTK_LABEL (label), column->numeric ? 1 : 0);
  if (column->numeric)
    gtk_widget_add_css_class (label, "numeric");
  else
    gtk_label_set_ellipsize (GTK_LABEL (label), PANGO_ELLIPSIZE_END);
  gtk_list_item_set_child (item, label);
}

static void
bind_cell (GtkListItemFactory *factory, GtkListItem *item, TdIterationsPage *self)
{
  const Column *column = td_index_table_column (factory);
  TdIndexRow *row = gtk_list_item_get_item (item);
  if (!self->session || !row)
    return;
  g_autofree char *text = column->text (self, td_index_row_get (row));
  gtk_label_set_text (GTK_LABEL (gtk_list_item_get_child (item)), text);
}

static void
selected_changed (TdIterationsPage *self)
{
  guint position = gtk_single_selection_get_selected (self->selection);
  if (self->syncing || !self->session || position == GTK_INVALID_LIST_POSITION)
    return;
  td_session_set_moment (self->session, number_of (self, position),
                         td_session_get_moment (self->session).event);
}

static guint
n_rows (TdIterationsPage *self)
{
  return g_list_model_get_n_items (G_LIST_MODEL (self->list));
}

/* Numbers grow with the index except after a restart of the count: guess, then look around. */
static guint
index_of (TdIterationsPage *self, gint64 number)
{
  guint n = n_rows (self);
  gint64 first = n ? number_of (self, 0) : 0;
  guint64 guess = number >= first ? (guint64)(number - first) : 0;
  if (guess < n && number_of (self, (guint)guess) == number)
    return (guint)guess;
  for (guint i = n; i-- > 0;)
    if (number_of (self, i) == number)
      return i;
  return GTK_INVALID_LIST_POSITION;
}

static void
show_moment (TdIterationsPage *self)
{
  guint position = index_of (self, td_session_get_moment (self->session).iteration);
  self->syncing = TRUE;
  if (gtk_single_selection_get_selected (self->selection) != position)
    {
      td_gradual_list_select (self->selection, position);
      if (position != GTK_INVALID_LIST_POSITION && gtk_widget_get_mapped (GTK_WIDGET (self)))
        gtk_widget_activate_action (gtk_widget_get_last_child (GTK_WIDGET (self->view)),
                                    "list.scroll-to-item", "u", position);
    }
  self->syncing = FALSE;
}

static gint64
number_at (TdIterationsPage *self, guint i)
{
  return self->first + i < td_session_get_n_iterations (self->session) ? number_of (self, i)
                                                                       : -1;
}

static void
iterations_changed (TdIterationsPage *self)
{
  guint old = n_rows (self), end;
  td_session_find_range (self->session, &self->first, &end);
  guint n = end - self->first;
  guint middle = MIN (old, n) / 2;
  gint64 number = n ? number_of (self, middle) : -1;
  self->syncing = TRUE;
  /* the last one may have been running and has its numbers now; when some were dropped out of a
   * long list, all have moved */
  guint from = MIN (old, n) ? MIN (old, n) - 1 : 0;
  if (n < old || (old && number_at (self, self->middle) != self->middle_number))
    from = 0;
  self->middle = middle;
  self->middle_number = number;
  td_index_list_resize (self->list, n, from);
  self->syncing = FALSE;
  show_moment (self);
}

static void
list_anew (TdIterationsPage *self)
{
  self->middle = 0;
  self->middle_number = -1;
  self->syncing = TRUE;
  td_index_list_reset (self->list, 0);
  self->syncing = FALSE;
}

static void
range_changed (TdIterationsPage *self)
{
  list_anew (self);
  iterations_changed (self);
}

void
td_iterations_page_set_session (TdIterationsPage *self, TdSession *session)
{
  if (self->session)
    g_signal_handlers_disconnect_by_data (self->session, self);
  g_set_object (&self->session, session);
  list_anew (self);
  if (!session)
    return;
  g_signal_connect_swapped (session, "moment-changed", G_CALLBACK (show_moment), self);
  g_signal_connect_swapped (session, "iterations-changed", G_CALLBACK (iterations_changed),
                            self);
  g_signal_connect_swapped (session, "range-changed", G_CALLBACK (range_changed), self);
  iterations_changed (self);
}

guint
td_iterations_page_get_n_rows (TdIterationsPage *self)
{
  return n_rows (self);
}

static char *
dup_cell (gpointer self, gconstpointer column, guint row)
{
  return ((const Column *)column)->text (self, row);
}

static char *
dup_csv (gpointer data)
{
  TdIterationsPage *self = data;
  return self->session ? td_csv_dup_table (self->view, n_rows (self), dup_cell, self) : NULL;
}

static void
td_iterations_page_dispose (GObject *object)
{
  TdIterationsPage *self = TD_ITERATIONS_PAGE (object);
  if (self->session)
    td_iterations_page_set_session (self, NULL);
  g_clear_pointer (&self->scroller, gtk_widget_unparent);
  g_clear_object (&self->selection);
  G_OBJECT_CLASS (td_iterations_page_parent_class)->dispose (object);
}

static void
td_iterations_page_finalize (GObject *object)
{
  g_object_unref (TD_ITERATIONS_PAGE (object)->list);
  G_OBJECT_CLASS (td_iterations_page_parent_class)->finalize (object);
}

static void
td_iterations_page_class_init (TdIterationsPageClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_iterations_page_dispose;
  G_OBJECT_CLASS (klass)->finalize = td_iterations_page_finalize;
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
}

static void
td_iterations_page_init (TdIterationsPage *self)
{
  self->list = td_index_list_new ();
  self->selection
      = td_index_list_new_selection (self->list, G_CALLBACK (selected_changed), self);
  self->view = td_index_table_new (self->selection, _ ("Iterations of the recording"));
  for (guint i = 0; i < G_N_ELEMENTS (columns); i++)
    td_index_table_add (self->view, _ (columns[i].title), columns[i].expand, &columns[i],
                        G_CALLBACK (setup_cell), G_CALLBACK (bind_cell), NULL, self);
  td_csv_provide (GTK_WIDGET (self->view), dup_csv, self);
  self->scroller = gtk_scrolled_window_new ();
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (self->scroller), GTK_WIDGET (self->view));
  gtk_widget_set_parent (self->scroller, GTK_WIDGET (self));
}

GtkWidget *
td_iterations_page_new (void)
{
  return g_object_new (TD_TYPE_ITERATIONS_PAGE, NULL);
}
