/* GtkColumnView over a GtkTreeListModel of TdOutlineRow. Columns are described by a table. A
 * new iteration of the same structure only refreshes what the visible cells say.
 * SPDX-License-Identifier: MIT */
#include "pages/td-outline-page.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "pages/td-outline-model.h"
#include "scene/td-format.h"
#include "widgets/td-csv.h"
#include "widgets/td-gradual-list.h"
#include "widgets/td-hover-row.h"
#include "settings/td-tip.h"

struct _TdOutlinePage
{
  GtkWidget parent;
  GtkWidget *box, *scroller, *waiting_box;
  GtkLabel *waiting;
  GtkColumnView *view;
  TdSession *session;
  TdOutlineModel *model;
  GtkTreeListModel *tree;
  GtkSingleSelection *selection;
  GHashTable *expanded; /* keys of layers that are open */
  gboolean syncing;     /* the selection is being set from the session */
};

enum
{
  REFRESH, /* cells read their row again */
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdOutlinePage, td_outline_page, GTK_TYPE_WIDGET)

/* ---- cells ---- */

typedef struct
{
  const char *title;
  char *(*text) (TdOutlineRow *row);
  gboolean tree, numeric;
} Column;

static const Column columns[] = {
  { N_ ("Layer or operation"), td_outline_row_dup_name, TRUE, FALSE },
  { N_ ("Saved"), td_outline_row_dup_bytes, FALSE, TRUE },
  { "ms", td_outline_row_dup_time, FALSE, TRUE },
};

static TdOutlineRow *
row_of_item (GtkListItem *item)
{
  GtkTreeListRow *tree_row = gtk_list_item_get_item (item);
  return tree_row ? TD_OUTLINE_ROW (gtk_tree_list_row_get_item (tree_row)) : NULL;
}

/* Everything at or before the playhead has run; layers that have run in part count as run. */
static gboolean
has_run (TdOutlinePage *self, TdOutlineRow *row)
{
  TdMoment moment = td_session_get_moment (self->session);
  return td_outline_row_get_event (row) <= moment.event;
}

static void
refresh_text (GtkListItem *item)
{
  TdOutlinePage *self = g_object_get_data (G_OBJECT (item), "outline");
  const Column *column = g_object_get_data (G_OBJECT (item), "column");
  GtkLabel *label = g_object_get_data (G_OBJECT (item), "label");
  g_autoptr (TdOutlineRow) row = row_of_item (item);
  if (!row || !self->session)
    return;
  g_autofree char *text = column->text (row);
  gtk_label_set_text (label, text);
  if (has_run (self, row))
    gtk_widget_remove_css_class (GTK_WIDGET (label), "td-not-run");
  else
    gtk_widget_add_css_class (GTK_WIDGET (label), "td-not-run");
}

typedef struct
{
  const char *icon, *style, *words;
} Glyph;

static const Glyph glyph_playhead = { "pan-down-symbolic", "accent", N_ ("looked at now") };
static const Glyph glyph_head
    = { "media-record-symbolic", "error", N_ ("the program is here") };
static const Glyph glyph_anomaly
    = { "dialog-warning-symbolic", "error", N_ ("not finite or failed") };
static const Glyph glyph_run = { "object-select-symbolic", "dim-label", N_ ("has run") };

static const Glyph *
choose_glyph (TdOutlinePage *self, TdOutlineRow *row)
{
  TdMoment moment = td_session_get_moment (self->session);
  TdMoment head = td_session_get_head (self->session);
  gint event = td_outline_row_get_event (row);
  if (td_outline_row_get_kind (row) == TD_OUTLINE_EVENT)
    {
      if (event == moment.event)
        return &glyph_playhead;
      if (head.iteration == moment.iteration && event == head.event)
        return &glyph_head;
      if (td_iteration_is_anomaly (td_outline_model_get_iteration (self->model), (guint)event))
        return &glyph_anomaly;
    }
  else if (td_outline_row_get_kind (row) > TD_OUTLINE_SPAN)
    return NULL;
  return td_outline_row_get_last_event (row) <= moment.event ? &glyph_run : NULL;
}

static void
refresh_glyph (GtkListItem *item)
{
  TdOutlinePage *self = g_object_get_data (G_OBJECT (item), "outline");
  GtkWidget *image = gtk_list_item_get_child (item);
  g_autoptr (TdOutlineRow) row = row_of_item (item);
  if (!row || !self->session || !self->model)
    return;
  const Glyph *glyph = choose_glyph (self, row);
  if (g_object_get_data (G_OBJECT (item), "glyph") == glyph)
    return;
  g_object_set_data (G_OBJECT (item), "glyph", (gpointer)glyph);
  gtk_image_set_from_icon_name (GTK_IMAGE (image), glyph ? glyph->icon : NULL);
  const char *const classes[] = { glyph ? glyph->style : NULL, NULL };
  gtk_widget_set_css_classes (image, (const char **)classes);
}

static void
expanded_changed (GtkTreeListRow *tree_row, GParamSpec *pspec, TdOutlinePage *self)
{
  g_autoptr (TdOutlineRow) row = gtk_tree_list_row_get_item (tree_row);
  if (!row || td_outline_row_get_kind (row) != TD_OUTLINE_GROUP)
    return;
  guint64 key = td_outline_row_get_key (row);
  if (gtk_tree_list_row_get_expanded (tree_row))
    g_hash_table_add (self->expanded, g_memdup2 (&key, sizeof key));
  else
    g_hash_table_remove (self->expanded, &key);
}

static void
bind_cell (GtkListItemFactory *factory, GtkListItem *item, TdOutlinePage *self)
{
  const Column *column = g_object_get_data (G_OBJECT (item), "column");
  GtkTreeListRow *tree_row = gtk_list_item_get_item (item);
  if (column && column->tree)
    {
      gtk_tree_expander_set_list_row (GTK_TREE_EXPANDER (gtk_list_item_get_child (item)),
                                      tree_row);
      g_signal_connect_object (tree_row, "notify::expanded", G_CALLBACK (expanded_changed),
                               self, 0);
    }
  gpointer refresh = column ? (gpointer)refresh_text : (gpointer)refresh_glyph;
  gulong handler = g_signal_connect_swapped (self, "refresh", G_CALLBACK (refresh), item);
  g_object_set_data (G_OBJECT (item), "handler", GSIZE_TO_POINTER (handler));
  column ? refresh_text (item) : refresh_glyph (item);
  GtkWidget *cell = gtk_widget_get_parent (gtk_list_item_get_child (item));
  g_autoptr (TdOutlineRow) row = row_of_item (item);
  td_hover_row_set (cell, self->session, row ? td_outline_row_get_key (row) : 0, cell);
}

static void
unbind_cell (GtkListItemFactory *factory, GtkListItem *item, TdOutlinePage *self)
{
  gulong handler = GPOINTER_TO_SIZE (g_object_get_data (G_OBJECT (item), "handler"));
  if (handler)
    g_signal_handler_disconnect (self, handler);
  g_object_set_data (G_OBJECT (item), "handler", NULL);
  td_hover_row_set (gtk_widget_get_parent (gtk_list_item_get_child (item)), NULL, 0, NULL);
  GtkTreeListRow *tree_row = gtk_list_item_get_item (item);
  if (tree_row)
    g_signal_handlers_disconnect_by_func (tree_row, expanded_changed, self);
}

/* Asked for when the pointer rests there: to set it asks the display server for the pointer, at
 * each of hundreds of cells. */
static gboolean
query_tip (GtkWidget *cell, int x, int y, gboolean keyboard, GtkTooltip *tooltip,
           GtkListItem *item)
{
  const Glyph *glyph = g_object_get_data (G_OBJECT (item), "glyph");
  GtkLabel *label = g_object_get_data (G_OBJECT (item), "label");
  const char *text = label ? gtk_label_get_text (label) : glyph ? _ (glyph->words) : "";
  gtk_tooltip_set_text (tooltip, text);
  return *text != '\0';
}

static void
add_tip (GtkWidget *cell, GtkListItem *item)
{
  gtk_widget_set_has_tooltip (cell, TRUE);
  g_signal_connect (cell, "query-tooltip", G_CALLBACK (query_tip), item);
}

static void
setup_cell (GtkListItemFactory *factory, GtkListItem *item, TdOutlinePage *self)
{
  const Column *column = g_object_get_data (G_OBJECT (factory), "column");
  g_object_set_data (G_OBJECT (item), "outline", self);
  g_object_set_data (G_OBJECT (item), "column", (gpointer)column);
  if (!column)
    {
      gtk_list_item_set_child (item, gtk_image_new ());
      add_tip (gtk_list_item_get_child (item), item);
      return;
    }
  GtkWidget *label = gtk_label_new (NULL);
  gtk_label_set_xalign (GTK_LABEL (label), column->numeric ? 1 : 0);
  gtk_label_set_ellipsize (GTK_LABEL (label),
                           column->numeric ? PANGO_ELLIPSIZE_NONE : PANGO_ELLIPSIZE_END);
  g_object_set_data (G_OBJECT (item), "label", label);
  if (column->numeric)
    {
      gtk_widget_add_css_class (label, "numeric");
      gtk_list_item_set_child (item, label);
      return;
    }
  add_tip (label, item);
  GtkWidget *expander = gtk_tree_expander_new ();
  gtk_tree_expander_set_child (GTK_TREE_EXPANDER (expander), label);
  gtk_list_item_set_child (item, expander);
}

static void
append_column (TdOutlinePage *self, const Column *column)
{
  GtkListItemFactory *factory = gtk_signal_list_item_factory_new ();
  g_object_set_data (G_OBJECT (factory), "column", (gpointer)column);
  g_signal_connect (factory, "setup", G_CALLBACK (setup_cell), self);
  g_signal_connect (factory, "bind", G_CALLBACK (bind_cell), self);
  g_signal_connect (factory, "unbind", G_CALLBACK (unbind_cell), self);
  GtkColumnViewColumn *view_column
      = gtk_column_view_column_new (column ? _ (column->title) : "", factory);
  gtk_column_view_column_set_expand (view_column, column && column->tree);
  gtk_column_view_append_column (self->view, view_column);
  g_object_unref (view_column);
}

/* ---- as a table ---- */

/* A line for each layer and operation, whatever is open, with the depth that it stands at. */
static void
print_rows (GListModel *rows, guint depth, GString *text)
{
  for (guint i = 0; rows && i < g_list_model_get_n_items (rows); i++)
    {
      g_autoptr (TdOutlineRow) row = g_list_model_get_item (rows, i);
      if (td_outline_row_get_kind (row) > TD_OUTLINE_SPAN)
        continue;
      g_string_append_printf (text, "%u,%d", depth, td_outline_row_get_event (row));
      for (guint c = 0; c < G_N_ELEMENTS (columns); c++)
        {
          g_autofree char *field = columns[c].text (row);
          g_string_append_c (text, ',');
          td_csv_append (text, field);
        }
      g_string_append_c (text, '\n');
      g_autoptr (GListModel) children = td_outline_row_get_children (row);
      print_rows (children, depth + 1, text);
    }
}

static char *
dup_csv (gpointer data)
{
  TdOutlinePage *self = data;
  if (!self->model)
    return NULL;
  GString *text = g_string_new (_ ("Depth,Event"));
  for (guint c = 0; c < G_N_ELEMENTS (columns); c++)
    g_string_append_printf (text, ",%s", _ (columns[c].title));
  g_string_append_c (text, '\n');
  g_autoptr (GListModel) roots = td_outline_model_get_roots (self->model);
  print_rows (roots, 0, text);
  return g_string_free (text, FALSE);
}

/* ---- tree ---- */

static GListModel *
create_children (gpointer item, gpointer data)
{
  return td_outline_row_get_children (item);
}

/* Open again what was open; rows that come later are opened as their parents are. A row that is
 * looked at becomes an object, and there may be millions: none is when all are found. */
static void
restore_expanded (TdOutlinePage *self)
{
  guint n = g_hash_table_size (self->expanded);
  for (guint i = 0; n > 0 && i < g_list_model_get_n_items (G_LIST_MODEL (self->tree)); i++)
    {
      g_autoptr (GtkTreeListRow) tree_row = gtk_tree_list_model_get_row (self->tree, i);
      g_autoptr (TdOutlineRow) row = gtk_tree_list_row_get_item (tree_row);
      guint64 key = td_outline_row_get_key (row);
      gboolean open = td_outline_row_get_kind (row) == TD_OUTLINE_GROUP
                      && g_hash_table_contains (self->expanded, &key);
      if (open)
        gtk_tree_list_row_set_expanded (tree_row, TRUE);
      n -= open;
    }
}

static void activate_selected (TdOutlinePage *self);

static void
rebuild (TdOutlinePage *self, TdIteration *iteration)
{
  gboolean first = self->model == NULL;
  self->syncing = TRUE;
  g_clear_object (&self->model);
  gtk_column_view_set_model (self->view, NULL);
  g_clear_object (&self->selection);
  g_clear_object (&self->tree);
  if (iteration)
    {
      self->model = td_outline_model_new (iteration);
      self->tree = gtk_tree_list_model_new (td_outline_model_get_roots (self->model), FALSE,
                                            FALSE, create_children, NULL, NULL);
      if (first)
        td_outline_page_expand_all (self, TRUE);
      restore_expanded (self);
      self->selection = gtk_single_selection_new (
          td_gradual_list_new (g_object_ref (G_LIST_MODEL (self->tree))));
      gtk_single_selection_set_autoselect (self->selection, FALSE);
      gtk_single_selection_set_can_unselect (self->selection, TRUE);
      gtk_single_selection_set_selected (self->selection, GTK_INVALID_LIST_POSITION);
      g_signal_connect_swapped (self->selection, "notify::selected",
                                G_CALLBACK (activate_selected), self);
      gtk_column_view_set_model (self->view, GTK_SELECTION_MODEL (self->selection));
    }
  self->syncing = FALSE;
}

/* A large graph opens with its layers folded: expanding builds a row object for each row. */
#define MAX_ROWS_OPENED 400

void
td_outline_page_expand_all (TdOutlinePage *self, gboolean expand)
{
  for (guint i = 0; self->tree && i < g_list_model_get_n_items (G_LIST_MODEL (self->tree)); i++)
    {
      if (expand && g_list_model_get_n_items (G_LIST_MODEL (self->tree)) > MAX_ROWS_OPENED)
        break;
      g_autoptr (GtkTreeListRow) tree_row = gtk_tree_list_model_get_row (self->tree, i);
      g_autoptr (TdOutlineRow) row = gtk_tree_list_row_get_item (tree_row);
      if (td_outline_row_get_kind (row) != TD_OUTLINE_GROUP)
        continue;
      gtk_tree_list_row_set_expanded (tree_row, expand);
      guint64 key = td_outline_row_get_key (row);
      if (expand)
        g_hash_table_add (self->expanded, g_memdup2 (&key, sizeof key));
      else
        g_hash_table_remove (self->expanded, &key);
    }
}

/* ---- selection ---- */

static void
activate_selected (TdOutlinePage *self)
{
  if (self->syncing || !self->session || !self->selection)
    return;
  guint position = gtk_single_selection_get_selected (self->selection);
  if (position == GTK_INVALID_LIST_POSITION)
    return;
  g_autoptr (GtkTreeListRow) tree_row = gtk_tree_list_model_get_row (self->tree, position);
  g_autoptr (TdOutlineRow) row = gtk_tree_list_row_get_item (tree_row);
  td_session_select (self->session, td_outline_row_get_key (row));
}

/* Enter or a double click moves the playhead there. */
static void
row_activated (GtkColumnView *view, guint position, TdOutlinePage *self)
{
  g_autoptr (GtkTreeListRow) tree_row = gtk_tree_list_model_get_row (self->tree, position);
  g_autoptr (TdOutlineRow) row = gtk_tree_list_row_get_item (tree_row);
  TdOutlineKind kind = td_outline_row_get_kind (row);
  if (kind == TD_OUTLINE_GROUP || kind == TD_OUTLINE_SPAN)
    {
      gtk_tree_list_row_set_expanded (tree_row, !gtk_tree_list_row_get_expanded (tree_row));
      return;
    }
  TdMoment moment = td_session_get_moment (self->session);
  td_session_set_moment (self->session, moment.iteration, td_outline_row_get_event (row));
}

static GtkTreeListRow *
open_path (TdOutlinePage *self, GArray *path)
{
  GtkTreeListRow *row = NULL;
  for (guint i = 0; i < path->len; i++)
    {
      guint position = g_array_index (path, guint, i);
      if (row)
        gtk_tree_list_row_set_expanded (row, TRUE);
      GtkTreeListRow *next = row ? gtk_tree_list_row_get_child_row (row, position)
                                 : gtk_tree_list_model_get_child_row (self->tree, position);
      g_clear_object (&row);
      row = next;
      if (!row)
        break;
    }
  return row;
}

static void
show_selection (TdOutlinePage *self)
{
  guint n;
  const guint64 *keys = td_session_get_selection (self->session, &n);
  if (!self->model || !self->selection || self->syncing)
    return;
  self->syncing = TRUE;
  guint position = GTK_INVALID_LIST_POSITION;
  if (n)
    {
      TdIteration *iteration = td_outline_model_get_iteration (self->model);
      TdVizGraph *graph = td_iteration_get_graph (iteration);
      gint group = td_viz_graph_find_group (graph, keys[0]);
      gint event = group < 0 ? td_iteration_find (iteration, keys[0]) : -1;
      GArray *path = group >= 0 ? td_outline_model_find_group (self->model, group)
                                : td_outline_model_find_event (self->model, event);
      g_autoptr (GtkTreeListRow) row = open_path (self, path);
      if (row)
        position = gtk_tree_list_row_get_position (row);
      g_array_unref (path);
    }
  if (gtk_single_selection_get_selected (self->selection) != position)
    {
      td_gradual_list_select (self->selection, position);
      if (position != GTK_INVALID_LIST_POSITION)
        gtk_widget_activate_action (gtk_widget_get_last_child (GTK_WIDGET (self->view)),
                                    "list.scroll-to-item", "u", position);
    }
  self->syncing = FALSE;
}

/* Bring the playhead's row into sight, as far down as its layers are open. */
static void
scroll_to_playhead (TdOutlinePage *self)
{
  GArray *path
      = td_outline_model_find_event (self->model, td_session_get_moment (self->session).event);
  GtkTreeListRow *row = NULL;
  for (guint i = 0; i < path->len; i++)
    {
      guint position = g_array_index (path, guint, i);
      GtkTreeListRow *next = row ? gtk_tree_list_row_get_child_row (row, position)
                                 : gtk_tree_list_model_get_child_row (self->tree, position);
      if (!next)
        break;
      g_clear_object (&row);
      row = next;
    }
  if (row && gtk_widget_get_mapped (GTK_WIDGET (self)))
    {
      guint position = gtk_tree_list_row_get_position (row);
      td_gradual_list_reach (self->selection, position);
      gtk_widget_activate_action (gtk_widget_get_last_child (GTK_WIDGET (self->view)),
                                  "list.scroll-to-item", "u", position);
    }
  g_clear_object (&row);
  g_array_unref (path);
}

/* ---- what waits in backward ---- */

#define MAX_WAITING 4

/* An operation of the backward pass waits when everything it reads has been written. */
static gboolean
is_waiting (const TdTapeIteration *tape, guint32 e, gint playhead)
{
  const TdTapeEvent *event = &tape->events[e];
  for (guint i = 0; i < event->n_in; i++)
    if (tape->vars[tape->ins[event->first_in + i]].producer > playhead)
      return FALSE;
  return event->phase == TD_TAPE_PHASE_BACKWARD || event->phase == TD_TAPE_PHASE_ACCUMULATE;
}

static void
show_waiting (TdOutlinePage *self)
{
  TdIteration *iteration = self->model ? td_outline_model_get_iteration (self->model) : NULL;
  const TdTapeIteration *tape = iteration ? td_iteration_get_tape (iteration) : NULL;
  gint playhead = self->session ? td_session_get_moment (self->session).event : -1;
  GString *text = g_string_new (NULL);
  guint n = 0;
  gboolean backward = tape && playhead >= 0 && (guint32)playhead < tape->n_events
                      && tape->events[playhead].phase != TD_TAPE_PHASE_FORWARD;
  for (guint32 e = (guint32)(playhead + 1); backward && e < tape->n_events; e++)
    if (is_waiting (tape, e, playhead) && n++ < MAX_WAITING)
      {
        const char *path = td_iteration_get_link_path (iteration, e);
        const char *cut = strrchr (path, '/');
        g_string_append_printf (text, "%s%u  %s %s", text->len ? "\n" : "", e,
                                cut ? cut + 1 : path, td_iteration_get_op_name (iteration, e));
      }
  if (n > MAX_WAITING)
    g_string_append_printf (text, "\nand %u more", n - MAX_WAITING);
  g_autofree char *valid = g_utf8_make_valid (text->str, -1);
  gtk_label_set_text (self->waiting, valid);
  gtk_widget_set_visible (self->waiting_box, n > 0);
  g_string_free (text, TRUE);
}

const char *
td_outline_page_get_waiting (TdOutlinePage *self)
{
  return gtk_label_get_text (self->waiting);
}

/* ---- session ---- */

static void
show_moment (TdOutlinePage *self)
{
  TdIteration *iteration = td_session_get_expected (self->session);
  if (!iteration)
    rebuild (self, NULL);
  else if (!self->model || !td_outline_model_update (self->model, iteration))
    {
      rebuild (self, iteration);
      show_selection (self);
    }
  g_clear_pointer (&iteration, td_iteration_unref);
  g_signal_emit (self, signals[REFRESH], 0);
  show_waiting (self);
  if (self->model)
    scroll_to_playhead (self);
}

static void
head_changed (TdOutlinePage *self)
{
  g_signal_emit (self, signals[REFRESH], 0);
}

void
td_outline_page_set_session (TdOutlinePage *self, TdSession *session)
{
  if (self->session)
    g_signal_handlers_disconnect_by_data (self->session, self);
  g_hash_table_remove_all (self->expanded);
  rebuild (self, NULL);
  g_set_object (&self->session, session);
  if (!session)
    return;
  g_signal_connect_swapped (session, "moment-changed", G_CALLBACK (show_moment), self);
  g_signal_connect_swapped (session, "iterations-changed", G_CALLBACK (show_moment), self);
  g_signal_connect_swapped (session, "head-changed", G_CALLBACK (head_changed), self);
  g_signal_connect_swapped (session, "selection-changed", G_CALLBACK (show_selection), self);
  show_moment (self);
}

guint
td_outline_page_get_n_rows (TdOutlinePage *self)
{
  return self->tree ? g_list_model_get_n_items (G_LIST_MODEL (self->tree)) : 0;
}

char *
td_outline_page_dup_row_name (TdOutlinePage *self, guint position)
{
  if (position >= td_outline_page_get_n_rows (self))
    return NULL;
  g_autoptr (GtkTreeListRow) tree_row = gtk_tree_list_model_get_row (self->tree, position);
  g_autoptr (TdOutlineRow) row = gtk_tree_list_row_get_item (tree_row);
  return td_outline_row_dup_name (row);
}

static void
td_outline_page_dispose (GObject *object)
{
  TdOutlinePage *self = TD_OUTLINE_PAGE (object);
  if (self->view)
    td_outline_page_set_session (self, NULL);
  self->view = NULL;
  g_clear_pointer (&self->box, gtk_widget_unparent);
  G_OBJECT_CLASS (td_outline_page_parent_class)->dispose (object);
}

static void
td_outline_page_finalize (GObject *object)
{
  g_hash_table_unref (TD_OUTLINE_PAGE (object)->expanded);
  G_OBJECT_CLASS (td_outline_page_parent_class)->finalize (object);
}

static void
td_outline_page_class_init (TdOutlinePageClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_outline_page_dispose;
  G_OBJECT_CLASS (klass)->finalize = td_outline_page_finalize;
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
  signals[REFRESH] = g_signal_new ("refresh", TD_TYPE_OUTLINE_PAGE, G_SIGNAL_RUN_LAST, 0, NULL,
                                   NULL, NULL, G_TYPE_NONE, 0);
}

static GtkWidget *
new_waiting (TdOutlinePage *self)
{
  GtkWidget *title = gtk_label_new (_ ("Waiting in backward"));
  gtk_label_set_xalign (GTK_LABEL (title), 0);
  gtk_widget_add_css_class (title, "td-panel-title");
  self->waiting = GTK_LABEL (gtk_label_new (NULL));
  gtk_label_set_xalign (self->waiting, 0);
  gtk_label_set_ellipsize (self->waiting, PANGO_ELLIPSIZE_END);
  gtk_widget_add_css_class (GTK_WIDGET (self->waiting), "td-waiting");
  self->waiting_box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 3);
  gtk_widget_add_css_class (self->waiting_box, "td-waiting-box");
  gtk_box_append (GTK_BOX (self->waiting_box), title);
  gtk_box_append (GTK_BOX (self->waiting_box), GTK_WIDGET (self->waiting));
  gtk_widget_set_visible (self->waiting_box, FALSE);
  return self->waiting_box;
}

static void
td_outline_page_init (TdOutlinePage *self)
{
  self->expanded = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  self->view = GTK_COLUMN_VIEW (gtk_column_view_new (NULL));
  td_csv_provide (GTK_WIDGET (self->view), dup_csv, self);
  gtk_widget_add_css_class (GTK_WIDGET (self->view), "td-dense");
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->view), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Outline of the computation graph"), -1);
  /* its rows take the focus through the list inside */
  GtkWidget *list = gtk_widget_get_last_child (GTK_WIDGET (self->view));
  gtk_accessible_update_property (GTK_ACCESSIBLE (list), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Outline of the computation graph"), -1);
  g_signal_connect (self->view, "activate", G_CALLBACK (row_activated), self);
  for (guint i = 0; i < G_N_ELEMENTS (columns); i++)
    append_column (self, &columns[i]);
  append_column (self, NULL);
  self->scroller = gtk_scrolled_window_new ();
  gtk_widget_set_vexpand (self->scroller, TRUE);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (self->scroller), GTK_WIDGET (self->view));
  self->box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  gtk_box_append (GTK_BOX (self->box), self->scroller);
  gtk_box_append (GTK_BOX (self->box), new_waiting (self));
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
}

GtkWidget *
td_outline_page_new (void)
{
  return g_object_new (TD_TYPE_OUTLINE_PAGE, NULL);
}
