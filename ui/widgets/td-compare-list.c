/* A GtkListView (td-compare-list.ui) over headings and differences. Numbers of rows stand for
 * themselves: a heading is a phase, all else a row of the comparison.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-compare-list.h"

#include <glib/gi18n-lib.h>

#include "widgets/td-csv.h"
#include "widgets/td-gradual-list.h"
#include "widgets/td-hover-row.h"
#include "widgets/td-index-list.h"

typedef struct
{
  gint phase; /* a heading: TdTapePhase; -1: a difference */
  guint row;
} Entry;

struct _TdCompareList
{
  AdwBin parent;
  GtkLabel *title, *position;
  GtkWidget *numbers_button;
  GtkListView *view;
  TdIndexList *list;
  GtkSingleSelection *selection;
  const TdCompare *compare; /* borrowed, as the sessions */
  TdSession *sessions[TD_N_SIDES];
  GArray *entries; /* Entry */
  guint n;
  gboolean syncing;
};

enum
{
  CHOSEN,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdCompareList, td_compare_list, ADW_TYPE_BIN)

static const char *const phase_titles[TD_TAPE_N_PHASES]
    = { [TD_TAPE_PHASE_FORWARD] = N_ ("Forward"),
        [TD_TAPE_PHASE_BACKWARD] = N_ ("Backward"),
        [TD_TAPE_PHASE_ACCUMULATE] = N_ ("Accumulation"),
        [TD_TAPE_PHASE_UPDATE] = N_ ("Update") };

static const char *const mark_classes[TD_N_MARKS]
    = { [TD_MARK_NONE] = "td-mark-none",       [TD_MARK_ADDED] = "td-mark-added",
        [TD_MARK_REMOVED] = "td-mark-removed", [TD_MARK_CHANGED] = "td-mark-changed",
        [TD_MARK_FUSED] = "td-mark-fused",     [TD_MARK_NUMBERS] = "td-mark-changed",
        [TD_MARK_FOUND] = "td-mark-none" };

void
td_compare_set_mark_class (GtkWidget *label, TdMark mark)
{
  for (guint k = 0; k < TD_N_MARKS; k++)
    gtk_widget_remove_css_class (label, mark_classes[k]);
  gtk_widget_add_css_class (label, "td-mark");
  gtk_widget_add_css_class (label, mark_classes[mark]);
}

void
td_compare_set_hover (GtkWidget *widget, const TdCompare *compare, TdSession *const *sessions,
                      guint row)
{
  const gint *event = compare->rows[row].event;
  TdSide side = event[TD_SIDE_A] >= 0 ? TD_SIDE_A : TD_SIDE_B;
  td_hover_row_set (widget, sessions[side],
                    td_iteration_get_tape (compare->of[side])->events[event[side]].key, widget);
}

/* ---- rows ---- */

static GtkWidget *
add_label (GtkWidget *box, float xalign, const char *style)
{
  GtkWidget *label = gtk_label_new (NULL);
  gtk_label_set_xalign (GTK_LABEL (label), xalign);
  if (style)
    gtk_widget_add_css_class (label, style);
  gtk_box_append (GTK_BOX (box), label);
  return label;
}

static void
set_label (GtkWidget *row, const char *name, const char *text)
{
  gtk_label_set_text (GTK_LABEL (g_object_get_data (G_OBJECT (row), name)), text);
}

static void
setup_row (GtkListItemFactory *factory, GtkListItem *item, TdCompareList *self)
{
  GtkWidget *row = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  GtkWidget *glyph = add_label (row, 0.5f, "td-mark");
  gtk_label_set_width_chars (GTK_LABEL (glyph), 2);
  gtk_widget_set_valign (glyph, GTK_ALIGN_CENTER);
  GtkWidget *words = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  gtk_widget_set_hexpand (words, TRUE);
  GtkWidget *name = add_label (words, 0, NULL), *detail = add_label (words, 0, "caption");
  GtkWidget *numbers = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  GtkWidget *time = add_label (numbers, 1, "numeric"),
            *events = add_label (numbers, 1, "caption");
  gtk_label_set_ellipsize (GTK_LABEL (name), PANGO_ELLIPSIZE_END);
  gtk_label_set_ellipsize (GTK_LABEL (detail), PANGO_ELLIPSIZE_MIDDLE);
  gtk_widget_add_css_class (detail, "dim-label");
  gtk_widget_add_css_class (events, "dim-label");
  gtk_widget_add_css_class (events, "numeric");
  gtk_box_append (GTK_BOX (row), words);
  gtk_box_append (GTK_BOX (row), numbers);
  g_object_set_data (G_OBJECT (row), "glyph", glyph);
  g_object_set_data (G_OBJECT (row), "name", name);
  g_object_set_data (G_OBJECT (row), "detail", detail);
  g_object_set_data (G_OBJECT (row), "time", time);
  g_object_set_data (G_OBJECT (row), "events", events);
  gtk_list_item_set_child (item, row);
}

static void
bind_heading (TdCompareList *self, GtkWidget *row, guint phase)
{
  g_autofree char *counts
      = g_strdup_printf ("%u → %u", self->compare->diff->totals[TD_SIDE_A].n_phase[phase],
                         self->compare->diff->totals[TD_SIDE_B].n_phase[phase]);
  set_label (row, "glyph", "");
  set_label (row, "name", _ (phase_titles[phase]));
  set_label (row, "time", counts);
}

static void
bind_difference (TdCompareList *self, GtkWidget *row, guint i)
{
  const TdCompare *c = self->compare;
  TdMark mark = c->rows[i].mark;
  g_autofree char *name = td_compare_row_name (c, i), *detail = td_compare_row_detail (c, i),
                  *events = td_compare_row_events (c, i);
  char time[TD_FORMAT_SIZE];
  GtkWidget *glyph = g_object_get_data (G_OBJECT (row), "glyph");
  td_compare_set_mark_class (glyph, mark);
  gtk_widget_set_tooltip_text (glyph, td_mark_looks[mark].name);
  set_label (row, "glyph", td_mark_looks[mark].glyph);
  set_label (row, "name", name);
  set_label (row, "detail", detail);
  set_label (row, "events", events);
  set_label (row, "time",
             td_compare_format_ns (time, td_compare_row_ns (c, i, TD_SIDE_A),
                                   td_compare_row_ns (c, i, TD_SIDE_B)));
  gtk_widget_set_tooltip_text (row, detail);
  g_autofree char *words
      = g_strdup_printf ("%s: %s, %s", td_mark_looks[mark].name, name, events);
  gtk_accessible_update_property (GTK_ACCESSIBLE (row), GTK_ACCESSIBLE_PROPERTY_LABEL, words,
                                  -1);
}

static void
bind_row (GtkListItemFactory *factory, GtkListItem *item, TdCompareList *self)
{
  TdIndexRow *index = gtk_list_item_get_item (item);
  GtkWidget *row = gtk_list_item_get_child (item);
  if (!self->compare || !index || td_index_row_get (index) >= self->entries->len)
    return;
  const Entry *entry = &g_array_index (self->entries, Entry, td_index_row_get (index));
  gboolean heading = entry->phase >= 0;
  gtk_list_item_set_selectable (item, !heading);
  gtk_list_item_set_activatable (item, !heading);
  gtk_widget_set_visible (g_object_get_data (G_OBJECT (row), "glyph"), !heading);
  gtk_widget_set_visible (g_object_get_data (G_OBJECT (row), "detail"), !heading);
  gtk_widget_set_visible (g_object_get_data (G_OBJECT (row), "events"), !heading);
  if (heading)
    gtk_widget_add_css_class (row, "td-list-heading");
  else
    gtk_widget_remove_css_class (row, "td-list-heading");
  if (heading)
    bind_heading (self, row, (guint)entry->phase);
  else
    bind_difference (self, row, entry->row);
  if (!heading)
    td_compare_set_hover (gtk_widget_get_parent (row), self->compare, self->sessions,
                          entry->row);
}

static void
unbind_row (GtkListItemFactory *factory, GtkListItem *item, TdCompareList *self)
{
  td_hover_row_set (gtk_widget_get_parent (gtk_list_item_get_child (item)), NULL, 0, NULL);
}

/* ---- selecting ---- */

static void
show_position (TdCompareList *self)
{
  guint at = td_compare_list_get_position (self);
  g_autofree char *text = g_strdup_printf ("%u of %u", at, self->n);
  gtk_label_set_text (self->position, at ? text : "");
}

static void
selected_changed (TdCompareList *self)
{
  guint at = gtk_single_selection_get_selected (self->selection);
  show_position (self);
  if (self->syncing || at >= self->entries->len)
    return;
  const Entry *entry = &g_array_index (self->entries, Entry, at);
  if (entry->phase < 0)
    g_signal_emit (self, signals[CHOSEN], 0, entry->row);
}

static void
select_entry (TdCompareList *self, guint at)
{
  td_gradual_list_select (self->selection, at);
  if (at < self->entries->len && gtk_widget_get_mapped (GTK_WIDGET (self)))
    gtk_widget_activate_action (GTK_WIDGET (self->view), "list.scroll-to-item", "u", at);
}

void
td_compare_list_select (TdCompareList *self, gint row)
{
  guint at = GTK_INVALID_LIST_POSITION;
  for (guint i = 0; row >= 0 && i < self->entries->len; i++)
    {
      const Entry *entry = &g_array_index (self->entries, Entry, i);
      if (entry->phase < 0 && entry->row == (guint)row)
        at = i;
    }
  self->syncing = TRUE;
  if (gtk_single_selection_get_selected (self->selection) != at)
    select_entry (self, at);
  self->syncing = FALSE;
}

gboolean
td_compare_list_step (TdCompareList *self, int direction)
{
  guint selected = gtk_single_selection_get_selected (self->selection);
  gint at = selected < self->entries->len ? (gint)selected
            : direction > 0               ? -1
                                          : (gint)self->entries->len;
  do
    at += direction;
  while (at >= 0 && at < (gint)self->entries->len
         && g_array_index (self->entries, Entry, at).phase >= 0);
  if (at < 0 || at >= (gint)self->entries->len)
    return FALSE;
  select_entry (self, (guint)at);
  return TRUE;
}

guint
td_compare_list_get_n (TdCompareList *self)
{
  return self->n;
}

gint
td_compare_list_get_first (TdCompareList *self)
{
  for (guint i = 0; i < self->entries->len; i++)
    if (g_array_index (self->entries, Entry, i).phase < 0)
      return (gint)g_array_index (self->entries, Entry, i).row;
  return -1;
}

guint
td_compare_list_get_position (TdCompareList *self)
{
  guint selected = gtk_single_selection_get_selected (self->selection), n = 0;
  if (selected >= self->entries->len)
    return 0;
  for (guint i = 0; i <= selected; i++)
    n += g_array_index (self->entries, Entry, i).phase < 0;
  return n;
}

/* ---- filling ---- */

static void
fill (TdCompareList *self, gboolean numbers)
{
  const TdCompare *c = self->compare;
  g_array_set_size (self->entries, 0);
  self->n = 0;
  for (gint phase = 0; c && phase < TD_TAPE_N_PHASES; phase++)
    {
      gboolean begun = FALSE;
      for (guint i = 0; i < c->n_rows; i++)
        {
          Entry heading = { phase, 0 }, entry = { -1, i };
          if (c->rows[i].item < 0 || (gint)c->rows[i].phase != phase
              || (c->rows[i].mark == TD_MARK_NUMBERS && !numbers))
            continue;
          if (!begun)
            g_array_append_val (self->entries, heading);
          begun = TRUE;
          g_array_append_val (self->entries, entry);
          self->n++;
        }
    }
}

void
td_compare_list_set_compare (TdCompareList *self, const TdCompare *compare,
                             TdSession *const *sessions, gboolean numbers)
{
  self->compare = compare;
  for (int side = 0; side < TD_N_SIDES; side++)
    self->sessions[side] = compare ? sessions[side] : NULL;
  fill (self, numbers);
  self->syncing = TRUE;
  td_index_list_reset (self->list, self->entries->len);
  gtk_single_selection_set_selected (self->selection, GTK_INVALID_LIST_POSITION);
  self->syncing = FALSE;
  g_autofree char *title
      = self->n ? g_strdup_printf ("%u Difference%s", self->n, self->n == 1 ? "" : "s")
        : compare && compare->n_numeric && !numbers ? g_strdup (_ ("Only Numbers Differ"))
                                                    : g_strdup (_ ("No Differences"));
  gtk_label_set_text (self->title, title);
  g_autofree char *label = g_strdup_printf ("%s %u", td_mark_looks[TD_MARK_NUMBERS].glyph,
                                            compare ? compare->n_numeric : 0);
  gtk_button_set_label (GTK_BUTTON (self->numbers_button), label);
  gtk_widget_set_visible (self->numbers_button, compare && compare->n_numeric > 0);
  if (numbers)
    gtk_widget_add_css_class (self->numbers_button, "td-on");
  else
    gtk_widget_remove_css_class (self->numbers_button, "td-on");
  show_position (self);
}

/* ---- building ---- */

static void
td_compare_list_dispose (GObject *object)
{
  TdCompareList *self = TD_COMPARE_LIST (object);
  if (self->selection)
    g_signal_handlers_disconnect_by_data (self->selection, self);
  g_clear_object (&self->selection);
  g_clear_object (&self->list);
  G_OBJECT_CLASS (td_compare_list_parent_class)->dispose (object);
}

static void
td_compare_list_finalize (GObject *object)
{
  g_array_unref (TD_COMPARE_LIST (object)->entries);
  G_OBJECT_CLASS (td_compare_list_parent_class)->finalize (object);
}

/* The differences, as they are copied. */
static char *
dup_csv (gpointer data)
{
  TdCompareList *self = data;
  return self->compare ? td_compare_print (self->compare, "csv", FALSE) : NULL;
}

static void
td_compare_list_class_init (TdCompareListClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);
  G_OBJECT_CLASS (klass)->dispose = td_compare_list_dispose;
  G_OBJECT_CLASS (klass)->finalize = td_compare_list_finalize;
  gtk_widget_class_set_template_from_resource (
      widget_class, "/io/github/tapedeck/Tapedeck/widgets/td-compare-list.ui");
  gtk_widget_class_bind_template_child (widget_class, TdCompareList, title);
  gtk_widget_class_bind_template_child (widget_class, TdCompareList, position);
  gtk_widget_class_bind_template_child (widget_class, TdCompareList, numbers_button);
  gtk_widget_class_bind_template_child (widget_class, TdCompareList, view);
  gtk_widget_class_bind_template_callback (widget_class, setup_row);
  gtk_widget_class_bind_template_callback (widget_class, bind_row);
  gtk_widget_class_bind_template_callback (widget_class, unbind_row);
  signals[CHOSEN] = g_signal_new ("chosen", TD_TYPE_COMPARE_LIST, G_SIGNAL_RUN_LAST, 0, NULL,
                                  NULL, NULL, G_TYPE_NONE, 1, G_TYPE_UINT);
}

static void
td_compare_list_init (TdCompareList *self)
{
  self->entries = g_array_new (FALSE, FALSE, sizeof (Entry));
  self->list = td_index_list_new ();
  td_csv_provide (GTK_WIDGET (self), dup_csv, self);
  self->selection
      = td_index_list_new_selection (self->list, G_CALLBACK (selected_changed), self);
  gtk_widget_init_template (GTK_WIDGET (self));
  gtk_list_view_set_model (self->view, GTK_SELECTION_MODEL (self->selection));
}
