/* Where memory ran out, on the Memory page below the sentence: figures, a table of who held
 * what there was, and what would help. A click on a row goes to the operation that made its
 * arrays, a second one or Return shows it in the graph. SPDX-License-Identifier: MIT */
#include "pages/td-memory-oom.h"

#include <glib/gi18n-lib.h>

#include "memory/td-oom.h"
#include "scene/td-format.h"

#define LEFT_CHARS 52 /* that its lines are broken at, or they would take all the room */
#define MAX_ROWS 12   /* on show at once */
#define N_REMEDIES 3

struct _TdMemoryOom
{
  TdPage parent;
  guint cursor, chosen; /* row of the report, the report; both plus 1; 0: none */
  GtkWidget *card;      /* weak; NULL: nobody shows it, nor what is on it */
  GtkDropDown *reports;
  GtkGrid *facts;
  GtkBox *remedies;
  GtkWidget *table;
  GtkLabel *words; /* all of the chosen row */
  guint n, shown;  /* reports there are, which one is filled in, plus 1 */
  gboolean filling;
};

G_DEFINE_FINAL_TYPE (TdMemoryOom, td_memory_oom, TD_TYPE_PAGE)

static TdTapeReader *
get_reader (TdMemoryOom *self)
{
  return td_page_get_reader (TD_PAGE (self));
}

/* The report on show; FALSE: there is none. */
static gboolean
get_report (TdMemoryOom *self, guint *i)
{
  TdTapeReader *reader = get_reader (self);
  guint n = reader ? td_tape_reader_n_ooms (reader) : 0;
  *i = self->chosen > 0 && self->chosen <= n ? self->chosen - 1 : n - 1;
  return n > 0;
}

static TdScene *
make_table (TdPage *page, const TdPanelView *view)
{
  TdMemoryOom *self = TD_MEMORY_OOM (page);
  TdPanelView own = *view;
  guint i;
  own.cursor = self->cursor;
  return get_report (self, &i) ? td_oom_scene (get_reader (self), i, &own) : NULL;
}

/* ---- going there ---- */

/* Move playhead and selection to what made a row's arrays. FALSE: no recorded iteration has it.
 */
static gboolean
go_to_row (TdMemoryOom *self, guint row)
{
  guint i;
  if (!get_report (self, &i) || row >= td_tape_reader_oom (get_reader (self), i)->n_holders)
    return FALSE;
  TdTapeReader *reader = get_reader (self);
  const TdTapeOomHolder *h = &td_tape_reader_oom_holders (reader, i)[row];
  gint64 number = td_oom_holder_iteration (reader, i, row);
  g_autoptr (TdIteration) iteration
      = number >= 0
            ? td_session_load_iteration (td_page_get_session (TD_PAGE (self)), number, NULL)
            : NULL;
  guint64 key = iteration ? td_oom_find_key (reader, h, iteration) : 0;
  if (key == 0)
    return FALSE;
  td_session_set_moment (td_page_get_session (TD_PAGE (self)), number,
                         td_iteration_find (iteration, key));
  td_session_select (td_page_get_session (TD_PAGE (self)), key);
  return TRUE;
}

static gboolean
show_source (TdMemoryOom *self, guint row, GtkWidget *widget)
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
open_row (TdMemoryOom *self, guint row, GtkWidget *widget)
{
  if (go_to_row (self, row))
    return gtk_widget_activate_action (widget, "win.show-page", "s", "debug");
  return show_source (self, row, widget);
}

/* In words, which can be selected; the table cuts. */
static void
say_chosen (TdMemoryOom *self)
{
  guint i;
  gboolean any = self->card && self->cursor > 0 && get_report (self, &i);
  g_autofree char *words
      = any ? td_oom_describe (get_reader (self), i, self->cursor - 1) : NULL;
  g_autofree char *valid = words ? g_utf8_make_valid (words, -1) : NULL;
  if (!self->card)
    return;
  gtk_label_set_text (self->words, valid ? valid : "");
  gtk_widget_set_visible (GTK_WIDGET (self->words), any);
}

static void
choose_row (TdMemoryOom *self, guint row)
{
  self->cursor = row + 1;
  say_chosen (self);
  td_page_invalidate (TD_PAGE (self));
}

static TdPress
press_row (TdPage *page, const char *name, const TdSceneHit *hit, GtkWidget *view)
{
  TdMemoryOom *self = TD_MEMORY_OOM (page);
  if (!hit || hit->tag != TD_TAG_ROW || hit->data < 0)
    return TD_PRESS_TAKEN;
  if (self->cursor == (guint)hit->data + 1)
    {
      open_row (self, (guint)hit->data, view);
      return TD_PRESS_TAKEN;
    }
  choose_row (self, (guint)hit->data);
  go_to_row (self, (guint)hit->data);
  return TD_PRESS_TAKEN;
}

static char *
move_row (TdPage *page, const char *name, int delta, GtkWidget *view)
{
  TdMemoryOom *self = TD_MEMORY_OOM (page);
  guint i;
  if (!get_report (self, &i))
    return NULL;
  gint n = (gint)td_tape_reader_oom (get_reader (self), i)->n_holders;
  if (n == 0)
    return NULL;
  guint row = (guint)CLAMP ((gint)self->cursor - 1 + delta, 0, n - 1);
  choose_row (self, row);
  if (delta == 0 && !open_row (self, row, view))
    return NULL;
  return td_oom_describe (get_reader (self), i, row);
}

static void
append_site (GString *text, TdTapeReader *reader, guint32 site)
{
  char place[512] = "";
  if (td_tape_reader_site (reader, site))
    td_tape_reader_site_text (reader, site, place, sizeof place);
  g_string_append_c (text, ',');
  td_csv_append (text, place);
}

static char *
dup_csv (TdPage *page, const char *name)
{
  TdMemoryOom *self = TD_MEMORY_OOM (page);
  guint i;
  if (!get_report (self, &i))
    return NULL;
  TdTapeReader *reader = get_reader (self);
  const TdTapeOom *oom = td_tape_reader_oom (reader, i);
  const TdTapeOomHolder *holders = td_tape_reader_oom_holders (reader, i);
  GString *text = g_string_new ("held,arrays,bytes,largest_bytes,made_at,kept_at\n");
  for (guint row = 0; row < oom->n_holders; row++)
    {
      g_autofree char *label = td_oom_dup_label (reader, &holders[row]);
      td_csv_append (text, label);
      g_string_append_printf (text, ",%u,%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT,
                              holders[row].n, (guint64)holders[row].bytes,
                              (guint64)holders[row].largest_bytes);
      append_site (text, reader, holders[row].site);
      append_site (text, reader, holders[row].holder_site);
      g_string_append_c (text, '\n');
    }
  return g_string_free (text, FALSE);
}

static const TdPicture pictures[]
    = { { "oom", N_ ("Out of Memory"), N_ ("Who held what when memory ran out"), make_table,
          press_row, move_row, .named = TRUE } };

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
fill_facts (TdMemoryOom *self, TdTapeReader *reader, guint i)
{
  GtkWidget *child;
  while ((child = gtk_widget_get_first_child (GTK_WIDGET (self->facts))))
    gtk_grid_remove (self->facts, child);
  g_autoptr (GArray) facts = td_oom_list_facts (reader, i);
  for (guint k = 0; k < facts->len; k++)
    {
      const TdOomFact *fact = &g_array_index (facts, TdOomFact, k);
      gboolean same
          = k > 0 && g_str_equal (fact->name, g_array_index (facts, TdOomFact, k - 1).name);
      gtk_grid_attach (self->facts, new_text (same ? "" : fact->name, TRUE), 0, (int)k, 1, 1);
      gtk_grid_attach (self->facts, new_text (fact->text, FALSE), 1, (int)k, 1, 1);
    }
}

static void
fill_remedies (TdMemoryOom *self, TdTapeReader *reader, guint i)
{
  TdTapeRemedy remedies[N_REMEDIES];
  guint n = td_tape_oom_remedies (reader, i, remedies, N_REMEDIES);
  GtkWidget *child;
  while ((child = gtk_widget_get_first_child (GTK_WIDGET (self->remedies))))
    gtk_box_remove (self->remedies, child);
  gtk_widget_set_visible (GTK_WIDGET (self->remedies), n > 0);
  if (n > 0)
    gtk_box_append (self->remedies,
                    new_text ("Would help, as estimated from what was recorded", TRUE));
  for (guint k = 0; k < n; k++)
    {
      g_autofree char *text = g_strdup_printf ("%u. %s%s", k + 1, remedies[k].text,
                                               remedies[k].enough ? "" : "; not enough alone");
      gtk_box_append (self->remedies, new_text (text, FALSE));
    }
}

static void
fill_reports (TdMemoryOom *self, TdTapeReader *reader, guint n)
{
  GtkStringList *names = gtk_string_list_new (NULL);
  for (guint i = 0; i < n; i++)
    {
      g_autofree char *name = td_oom_dup_name (reader, i);
      g_autofree char *valid = g_utf8_make_valid (name, -1);
      gtk_string_list_append (names, valid);
    }
  gtk_drop_down_set_model (self->reports, G_LIST_MODEL (names));
  g_object_unref (names);
  gtk_widget_set_visible (GTK_WIDGET (self->reports), n > 1);
}

/* A running program may run out of memory again: the newest is on show until one is chosen. */
static void
update (TdMemoryOom *self)
{
  guint i, n;
  gboolean any = self->card && get_report (self, &i);
  if (!self->card)
    return;
  gtk_widget_set_visible (self->card, any);
  if (!any)
    {
      self->n = self->shown = 0;
      return;
    }
  TdTapeReader *reader = get_reader (self);
  n = td_tape_reader_n_ooms (reader);
  if (self->n == n && self->shown == i + 1)
    return;
  const TdTapeOom *oom = td_tape_reader_oom (reader, i);
  guint rows = MIN (oom->n_holders + (oom->unnamed_bytes > 0 ? 1 : 0), MAX_ROWS);
  self->filling = TRUE;
  if (self->n != n)
    fill_reports (self, reader, n);
  gtk_drop_down_set_selected (self->reports, i);
  self->filling = FALSE;
  self->n = n;
  self->shown = i + 1;
  say_chosen (self);
  fill_facts (self, reader, i);
  fill_remedies (self, reader, i);
  gtk_widget_set_size_request (self->table, -1,
                               (int)(TD_OOM_HEAD + TD_OOM_ROW * MAX (rows, 3)));
  td_scene_view_invalidate (TD_SCENE_VIEW (self->table));
}

void
td_memory_oom_look (TdMemoryOom *self)
{
  if (self->card && gtk_widget_get_mapped (gtk_widget_get_parent (self->card)))
    update (self);
}

static void
forget_session (TdPage *page)
{
  TdMemoryOom *self = TD_MEMORY_OOM (page);
  self->cursor = self->chosen = self->n = self->shown = 0;
}

/* ---- its head ---- */

static void
report_chosen (GtkDropDown *list, GParamSpec *pspec, TdMemoryOom *self)
{
  guint i = gtk_drop_down_get_selected (list);
  if (self->filling || i == GTK_INVALID_LIST_POSITION)
    return;
  self->chosen = i + 1;
  self->cursor = 0;
  update (self);
}

static guint
chosen_row (TdMemoryOom *self)
{
  return self->cursor > 0 ? self->cursor - 1 : 0;
}

static void
source_clicked (GtkWidget *button, TdMemoryOom *self)
{
  show_source (self, chosen_row (self), button);
}

static void
graph_clicked (GtkWidget *button, TdMemoryOom *self)
{
  open_row (self, chosen_row (self), button);
}

static void
copy_clicked (GtkWidget *button, TdMemoryOom *self)
{
  TdTapeReader *reader = get_reader (self);
  g_autofree char *text = reader ? td_oom_print (reader) : NULL;
  if (text)
    gdk_clipboard_set_text (gtk_widget_get_clipboard (button), text);
}

void
td_memory_oom_build (TdMemoryOom *self, GtkBuilder *builder)
{
  static const struct
  {
    const char *id;
    GCallback clicked;
  } buttons[] = { { "oom-source", G_CALLBACK (source_clicked) },
                  { "oom-graph", G_CALLBACK (graph_clicked) },
                  { "oom-copy", G_CALLBACK (copy_clicked) } };
  GtkWidget *right = GTK_WIDGET (gtk_builder_get_object (builder, "oom-right"));
  self->reports = GTK_DROP_DOWN (gtk_builder_get_object (builder, "oom-reports"));
  self->facts = GTK_GRID (gtk_builder_get_object (builder, "oom-facts"));
  self->remedies = GTK_BOX (gtk_builder_get_object (builder, "oom-remedies"));
  g_signal_connect_object (self->reports, "notify::selected", G_CALLBACK (report_chosen), self,
                           0);
  for (guint i = 0; i < G_N_ELEMENTS (buttons); i++)
    g_signal_connect_object (gtk_builder_get_object (builder, buttons[i].id), "clicked",
                             buttons[i].clicked, self, 0);
  self->table = td_page_new_picture (TD_PAGE (self), "oom");
  gtk_widget_set_vexpand (self->table, TRUE);
  self->words = GTK_LABEL (new_text ("", FALSE));
  gtk_label_set_max_width_chars (self->words, -1);
  gtk_widget_set_margin_start (GTK_WIDGET (self->words), 12);
  gtk_widget_set_name (GTK_WIDGET (self->words), "oom-chosen");
  gtk_box_append (GTK_BOX (right), self->table);
  gtk_box_append (GTK_BOX (right), GTK_WIDGET (self->words));
  g_set_weak_pointer (&self->card, GTK_WIDGET (gtk_builder_get_object (builder, "oom-card")));
}

/* ---- life ---- */

static void
moment_shown (TdPage *page)
{
  td_memory_oom_look (TD_MEMORY_OOM (page));
}

static void
td_memory_oom_finalize (GObject *object)
{
  g_clear_weak_pointer (&TD_MEMORY_OOM (object)->card);
  G_OBJECT_CLASS (td_memory_oom_parent_class)->finalize (object);
}

static void
td_memory_oom_class_init (TdMemoryOomClass *klass)
{
  TdPageClass *class = TD_PAGE_CLASS (klass);
  G_OBJECT_CLASS (klass)->finalize = td_memory_oom_finalize;
  class->name = "oom";
  class->title = N_ ("Out of Memory");
  class->dup_csv = dup_csv;
  class->pictures = pictures;
  class->n_pictures = G_N_ELEMENTS (pictures);
  class->forget_session = forget_session;
  class->moment_shown = moment_shown;
}

static void
td_memory_oom_init (TdMemoryOom *self)
{
}

TdMemoryOom *
td_memory_oom_new (void)
{
  return g_object_new (TD_TYPE_MEMORY_OOM, NULL);
}
