/* Where memory ran out, on the Memory page below the sentence: figures, a table of who held
 * what there was, and what would help. A click on a row goes to the operation that made its
 * arrays, a second one or Return shows it in the graph. SPDX-License-Identifier: MIT */
#include "widgets/td-panels-private.h"

#include "memory/td-oom.h"
#include "widgets/td-scene-view.h"

#define LEFT_WIDTH 330
#define LEFT_CHARS 52 /* that its lines are broken at, or they would take all the room */
#define MAX_ROWS 12   /* on show at once */
#define N_REMEDIES 3

typedef struct
{
  TdPanels *panels; /* weak */
  GtkDropDown *reports;
  GtkGrid *facts;
  GtkBox *remedies;
  GtkWidget *table;
  GtkLabel *chosen; /* all of the chosen row */
  guint n, shown;   /* reports there are, which one is filled in, plus 1 */
  gboolean filling;
} Card;

static void
card_free (gpointer data)
{
  Card *card = data;
  g_clear_weak_pointer (&card->panels);
  g_free (card);
}

static TdTapeReader *
get_reader (TdPanels *self)
{
  return self->session ? td_session_get_reader (self->session) : NULL;
}

/* The report on show; FALSE: there is none. */
static gboolean
get_report (TdPanels *self, guint *i)
{
  TdTapeReader *reader = get_reader (self);
  guint n = reader ? td_tape_reader_n_ooms (reader) : 0;
  *i = self->oom_chosen > 0 && self->oom_chosen <= n ? self->oom_chosen - 1 : n - 1;
  return n > 0;
}

TdScene *
td__panels_make_oom (TdPanels *self, const TdPanelView *view)
{
  TdPanelView own = *view;
  guint i;
  own.cursor = self->oom_cursor;
  return get_report (self, &i) ? td_oom_scene (get_reader (self), i, &own) : NULL;
}

/* ---- going there ---- */

/* Move playhead and selection to what made a row's arrays. FALSE: no recorded iteration has it.
 */
static gboolean
go_to_row (TdPanels *self, guint row)
{
  guint i;
  if (!get_report (self, &i) || row >= td_tape_reader_oom (get_reader (self), i)->n_holders)
    return FALSE;
  TdTapeReader *reader = get_reader (self);
  const TdTapeOomHolder *h = &td_tape_reader_oom_holders (reader, i)[row];
  gint64 number = td_oom_holder_iteration (reader, i, row);
  g_autoptr (TdIteration) iteration
      = number >= 0 ? td_session_load_iteration (self->session, number, NULL) : NULL;
  guint64 key = iteration ? td_oom_find_key (reader, h, iteration) : 0;
  if (key == 0)
    return FALSE;
  td_session_set_moment (self->session, number, td_iteration_find (iteration, key));
  td_session_select (self->session, key);
  return TRUE;
}

static gboolean
show_source (TdPanels *self, guint row, GtkWidget *widget)
{
  guint i;
  char text[512];
  if (!get_report (self, &i) || row >= td_tape_reader_oom (get_reader (self), i)->n_holders)
    return FALSE;
  TdTapeReader *reader = get_reader (self);
  const TdTapeOomHolder *h = &td_tape_reader_oom_holders (reader, i)[row];
  guint32 site = h->holder_site != 0 ? h->holder_site : h->site;
  if (!td_tape_reader_site (reader, site))
    return FALSE;
  td_tape_reader_site_text (reader, site, text, sizeof text);
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  return gtk_widget_activate_action (widget, "win.show-source", "s", valid);
}

/* In the graph, or where it is not in any recorded iteration in the source. */
static gboolean
open_row (TdPanels *self, guint row, GtkWidget *widget)
{
  if (go_to_row (self, row))
    return gtk_widget_activate_action (widget, "win.show-page", "s", "debug");
  return show_source (self, row, widget);
}

/* In words, which can be selected; the table cuts. */
static void
say_chosen (TdPanels *self)
{
  Card *card = self->oom_card ? g_object_get_data (G_OBJECT (self->oom_card), "card") : NULL;
  guint i;
  gboolean any = card && self->oom_cursor > 0 && get_report (self, &i);
  g_autofree char *words
      = any ? td_oom_describe (get_reader (self), i, self->oom_cursor - 1) : NULL;
  g_autofree char *valid = words ? g_utf8_make_valid (words, -1) : NULL;
  if (!card)
    return;
  gtk_label_set_text (card->chosen, valid ? valid : "");
  gtk_widget_set_visible (GTK_WIDGET (card->chosen), any);
}

static void
choose_row (TdPanels *self, guint row)
{
  self->oom_cursor = row + 1;
  say_chosen (self);
  for (guint i = 0; i < self->views->len; i++)
    td_scene_view_invalidate (g_ptr_array_index (self->views, i));
}

gboolean
td__panels_pick_oom (TdPanels *self, const TdSceneHit *hit, GtkWidget *view)
{
  if (!hit || hit->tag != TD_TAG_ROW || hit->data < 0)
    return FALSE;
  if (self->oom_cursor == (guint)hit->data + 1)
    return open_row (self, (guint)hit->data, view);
  choose_row (self, (guint)hit->data);
  go_to_row (self, (guint)hit->data);
  return TRUE;
}

char *
td__panels_move_oom (TdPanels *self, int delta, GtkWidget *view)
{
  guint i;
  if (!get_report (self, &i))
    return NULL;
  gint n = (gint)td_tape_reader_oom (get_reader (self), i)->n_holders;
  if (n == 0)
    return NULL;
  guint row = (guint)CLAMP ((gint)self->oom_cursor - 1 + delta, 0, n - 1);
  choose_row (self, row);
  if (delta == 0 && !open_row (self, row, view))
    return NULL;
  return td_oom_describe (get_reader (self), i, row);
}

/* ---- what the card says ---- */

static GtkWidget *
new_text (const char *text, gboolean dim)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  GtkWidget *label = gtk_label_new (valid);
  gtk_label_set_xalign (GTK_LABEL (label), 0);
  gtk_label_set_yalign (GTK_LABEL (label), 0);
  gtk_label_set_wrap (GTK_LABEL (label), !dim);
  gtk_label_set_wrap_mode (GTK_LABEL (label), PANGO_WRAP_WORD_CHAR);
  gtk_label_set_selectable (GTK_LABEL (label), !dim);
  gtk_label_set_max_width_chars (GTK_LABEL (label), dim ? -1 : LEFT_CHARS);
  gtk_widget_add_css_class (label, "caption");
  gtk_widget_add_css_class (label, "numeric");
  if (dim)
    gtk_widget_add_css_class (label, "dim-label");
  gtk_widget_set_hexpand (label, !dim);
  return label;
}

static void
fill_facts (Card *card, TdTapeReader *reader, guint i)
{
  GtkWidget *child;
  while ((child = gtk_widget_get_first_child (GTK_WIDGET (card->facts))))
    gtk_grid_remove (card->facts, child);
  g_autoptr (GArray) facts = td_oom_list_facts (reader, i);
  for (guint k = 0; k < facts->len; k++)
    {
      const TdOomFact *fact = &g_array_index (facts, TdOomFact, k);
      gboolean same
          = k > 0 && g_str_equal (fact->name, g_array_index (facts, TdOomFact, k - 1).name);
      gtk_grid_attach (card->facts, new_text (same ? "" : fact->name, TRUE), 0, (int)k, 1, 1);
      gtk_grid_attach (card->facts, new_text (fact->text, FALSE), 1, (int)k, 1, 1);
    }
}

static void
fill_remedies (Card *card, TdTapeReader *reader, guint i)
{
  TdTapeRemedy remedies[N_REMEDIES];
  guint n = td_tape_oom_remedies (reader, i, remedies, N_REMEDIES);
  GtkWidget *child;
  while ((child = gtk_widget_get_first_child (GTK_WIDGET (card->remedies))))
    gtk_box_remove (card->remedies, child);
  gtk_widget_set_visible (GTK_WIDGET (card->remedies), n > 0);
  if (n > 0)
    gtk_box_append (card->remedies,
                    new_text ("Would help, as estimated from what was recorded", TRUE));
  for (guint k = 0; k < n; k++)
    {
      g_autofree char *text = g_strdup_printf ("%u. %s%s", k + 1, remedies[k].text,
                                               remedies[k].enough ? "" : "; not enough alone");
      gtk_box_append (card->remedies, new_text (text, FALSE));
    }
}

static void
fill_reports (Card *card, TdTapeReader *reader, guint n)
{
  GtkStringList *names = gtk_string_list_new (NULL);
  for (guint i = 0; i < n; i++)
    {
      g_autofree char *name = td_oom_dup_name (reader, i);
      g_autofree char *valid = g_utf8_make_valid (name, -1);
      gtk_string_list_append (names, valid);
    }
  gtk_drop_down_set_model (card->reports, G_LIST_MODEL (names));
  g_object_unref (names);
  gtk_widget_set_visible (GTK_WIDGET (card->reports), n > 1);
}

/* A running program may run out of memory again: the newest is on show until one is chosen. */
void
td__panels_update_oom (TdPanels *self)
{
  if (!self->oom_card)
    return;
  Card *card = g_object_get_data (G_OBJECT (self->oom_card), "card");
  guint i, n;
  gboolean any = get_report (self, &i);
  gtk_widget_set_visible (self->oom_card, any);
  if (!any)
    {
      card->n = card->shown = 0;
      return;
    }
  TdTapeReader *reader = get_reader (self);
  n = td_tape_reader_n_ooms (reader);
  if (card->n == n && card->shown == i + 1)
    return;
  const TdTapeOom *oom = td_tape_reader_oom (reader, i);
  guint rows = MIN (oom->n_holders + (oom->unnamed_bytes > 0 ? 1 : 0), MAX_ROWS);
  card->filling = TRUE;
  if (card->n != n)
    fill_reports (card, reader, n);
  gtk_drop_down_set_selected (card->reports, i);
  card->filling = FALSE;
  card->n = n;
  card->shown = i + 1;
  say_chosen (self);
  fill_facts (card, reader, i);
  fill_remedies (card, reader, i);
  gtk_widget_set_size_request (card->table, -1,
                               (int)(TD_OOM_HEAD + TD_OOM_ROW * MAX (rows, 3)));
  td_scene_view_invalidate (TD_SCENE_VIEW (card->table));
}

void
td__panels_forget_oom (TdPanels *self)
{
  self->oom_cursor = self->oom_chosen = 0;
  if (!self->oom_card)
    return;
  Card *card = g_object_get_data (G_OBJECT (self->oom_card), "card");
  card->n = card->shown = 0;
}

/* ---- its head ---- */

static void
report_chosen (GtkDropDown *list, GParamSpec *pspec, Card *card)
{
  guint i = gtk_drop_down_get_selected (list);
  if (card->filling || !card->panels || i == GTK_INVALID_LIST_POSITION)
    return;
  card->panels->oom_chosen = i + 1;
  card->panels->oom_cursor = 0;
  td__panels_update_oom (card->panels);
}

static guint
chosen_row (const Card *card)
{
  return card->panels->oom_cursor > 0 ? card->panels->oom_cursor - 1 : 0;
}

static void
source_clicked (GtkWidget *button, Card *card)
{
  if (card->panels)
    show_source (card->panels, chosen_row (card), button);
}

static void
graph_clicked (GtkWidget *button, Card *card)
{
  if (card->panels)
    open_row (card->panels, chosen_row (card), button);
}

static void
copy_clicked (GtkWidget *button, Card *card)
{
  TdTapeReader *reader = card->panels ? get_reader (card->panels) : NULL;
  g_autofree char *text = reader ? td_oom_print (reader) : NULL;
  if (text)
    gdk_clipboard_set_text (gtk_widget_get_clipboard (button), text);
}

static GtkWidget *
new_head (Card *card)
{
  static const struct
  {
    const char *label, *tip;
    GCallback clicked;
  } buttons[]
      = { { "Show Source", "Go to the line that took hold", G_CALLBACK (source_clicked) },
          { "Show in Graph", "Go to the operation that made it (Return)",
            G_CALLBACK (graph_clicked) },
          { "Copy", "Copy the whole report as text", G_CALLBACK (copy_clicked) } };
  GtkWidget *head = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  GtkWidget *title = gtk_label_new ("Who held it when memory ran out");
  gtk_label_set_xalign (GTK_LABEL (title), 0);
  gtk_label_set_ellipsize (GTK_LABEL (title), PANGO_ELLIPSIZE_END);
  gtk_widget_add_css_class (title, "td-panel-title");
  gtk_widget_set_hexpand (title, TRUE);
  gtk_box_append (GTK_BOX (head), title);
  card->reports = GTK_DROP_DOWN (gtk_drop_down_new (NULL, NULL));
  gtk_widget_add_css_class (GTK_WIDGET (card->reports), "td-small");
  gtk_widget_set_name (GTK_WIDGET (card->reports), "oom-reports");
  gtk_widget_set_tooltip_text (GTK_WIDGET (card->reports), "Which time");
  gtk_accessible_update_property (GTK_ACCESSIBLE (card->reports), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  "Which time memory ran out", -1);
  g_signal_connect (card->reports, "notify::selected", G_CALLBACK (report_chosen), card);
  gtk_box_append (GTK_BOX (head), GTK_WIDGET (card->reports));
  for (guint i = 0; i < G_N_ELEMENTS (buttons); i++)
    {
      GtkWidget *button = gtk_button_new_with_label (buttons[i].label);
      gtk_widget_add_css_class (button, "td-small");
      gtk_widget_set_valign (button, GTK_ALIGN_CENTER);
      gtk_widget_set_tooltip_text (button, buttons[i].tip);
      g_signal_connect (button, "clicked", buttons[i].clicked, card);
      gtk_box_append (GTK_BOX (head), button);
    }
  return head;
}

GtkWidget *
td_panels_new_oom_card (TdPanels *self)
{
  Card *card = g_new0 (Card, 1);
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 9);
  GtkWidget *row = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 18);
  GtkWidget *left = gtk_box_new (GTK_ORIENTATION_VERTICAL, 12);
  GtkWidget *right = gtk_box_new (GTK_ORIENTATION_VERTICAL, 6);
  g_set_weak_pointer (&card->panels, self);
  g_object_set_data_full (G_OBJECT (box), "card", card, card_free);
  gtk_widget_add_css_class (box, "card");
  gtk_widget_add_css_class (box, "td-card");
  gtk_widget_set_name (box, "oom-card");
  card->facts = GTK_GRID (gtk_grid_new ());
  gtk_widget_set_name (GTK_WIDGET (card->facts), "oom-facts");
  gtk_grid_set_column_spacing (card->facts, 12);
  gtk_grid_set_row_spacing (card->facts, 6);
  card->table = td_panels_new_page (self, TD_PANEL_MEMORY, "oom");
  card->remedies = GTK_BOX (gtk_box_new (GTK_ORIENTATION_VERTICAL, 6));
  gtk_widget_set_name (GTK_WIDGET (card->remedies), "oom-remedies");
  gtk_widget_set_size_request (left, LEFT_WIDTH, -1);
  gtk_widget_set_hexpand (left, FALSE);
  gtk_box_append (GTK_BOX (left), GTK_WIDGET (card->facts));
  gtk_box_append (GTK_BOX (left), GTK_WIDGET (card->remedies));
  gtk_box_append (GTK_BOX (row), left);
  gtk_widget_set_vexpand (card->table, TRUE);
  card->chosen = GTK_LABEL (new_text ("", FALSE));
  gtk_label_set_max_width_chars (card->chosen, -1);
  gtk_widget_set_margin_start (GTK_WIDGET (card->chosen), 12);
  gtk_widget_set_name (GTK_WIDGET (card->chosen), "oom-chosen");
  gtk_box_append (GTK_BOX (right), card->table);
  gtk_box_append (GTK_BOX (right), GTK_WIDGET (card->chosen));
  gtk_box_append (GTK_BOX (row), right);
  gtk_box_append (GTK_BOX (box), new_head (card));
  gtk_box_append (GTK_BOX (box), row);
  gtk_widget_set_visible (box, FALSE);
  g_set_weak_pointer (&self->oom_card, box);
  return box;
}
