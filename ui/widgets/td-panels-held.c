/* Why memory grows, on the Memory page: the sentence at its top, the rows of Growth and those
 * of Holders. A row is chosen by a click or by Up and Down; a second click or Return goes to
 * the operation in the graph, and Show Source to the line that took hold.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-panels-private.h"

#include <string.h>

#include "memory/td-oom.h"
#include "widgets/td-scene-view.h"

#define REFRESH_MS 1000 /* a running program's marks are read no more often */

/* ---- what is computed ---- */

void
td__panels_forget_held (TdPanels *self)
{
  g_clear_pointer (&self->holders, td_holders_free);
  g_clear_pointer (&self->retained, td_retained_free);
  g_clear_handle_id (&self->held_refresh, g_source_remove);
  self->held_n = self->growth_cursor = self->holders_cursor = 0;
  self->holders_time = self->retained_time = (TdHeldTime){ 0 };
  self->says_newest = FALSE;
}

static void
invalidate (TdPanels *self)
{
  for (guint i = 0; i < self->views->len; i++)
    td_scene_view_invalidate (g_ptr_array_index (self->views, i));
}

static gboolean
refresh (gpointer data)
{
  TdPanels *self = data;
  self->held_refresh = 0;
  td__panels_update_held (self);
  invalidate (self);
  return G_SOURCE_REMOVE;
}

/* What a running program adds is read at most once a second, for at most a twentieth of the
 * time, and the last of it soon after. */
static gboolean
is_too_soon (TdPanels *self, const TdHeldTime *last)
{
  gint64 wait = MAX (REFRESH_MS * 1000, 20 * last->cost);
  if (last->at == 0 || g_get_monotonic_time () - last->at >= wait)
    return FALSE;
  if (!self->held_refresh)
    self->held_refresh = g_timeout_add ((guint)(wait / 1000), refresh, self);
  return TRUE;
}

static void
note_time (TdHeldTime *time, gint64 began)
{
  time->at = g_get_monotonic_time ();
  time->cost = time->at - began;
}

static TdHolders *
get_holders (TdPanels *self)
{
  TdTapeReader *reader = self->session ? td_session_get_reader (self->session) : NULL;
  guint n = self->session ? td_session_get_n_iterations (self->session) : 0;
  gint64 began = g_get_monotonic_time ();
  if (!reader || (self->holders_time.at > 0 && n == self->held_n)
      || is_too_soon (self, &self->holders_time))
    return self->holders;
  g_clear_pointer (&self->holders, td_holders_free);
  self->holders = td_holders_new_by (reader, -1, self->by);
  self->growth_cursor = MIN (self->growth_cursor, self->holders ? self->holders->n_holders : 0);
  self->held_n = n;
  self->says_newest = FALSE;
  note_time (&self->holders_time, began);
  return self->holders;
}

/* Of the iteration of the playhead, or the newest before it that says so. */
static TdRetained *
get_retained (TdPanels *self)
{
  TdTapeReader *reader = self->session ? td_session_get_reader (self->session) : NULL;
  gint64 last = reader ? td_session_get_moment (self->session).iteration : -1;
  gint64 wanted = reader ? td_retained_find_iteration (reader, last) : -1;
  gint64 began = g_get_monotonic_time ();
  if (self->retained
      && (self->retained->iteration == wanted
          || (wanted >= 0 && td_session_get_follow (self->session)
              && is_too_soon (self, &self->retained_time))))
    return self->retained;
  g_clear_pointer (&self->retained, td_retained_free);
  self->holders_cursor = 0;
  if (wanted >= 0)
    self->retained = td_retained_new (reader, wanted);
  note_time (&self->retained_time, began);
  return self->retained;
}

/* ---- pictures ---- */

static const char no_marks[] = "This recording does not say what outlived its iteration";

/* Of a memory snapshot neither will ever be known. */
static TdScene *
make_none (TdPanels *self, const TdPanelView *view, const char *title, const char *text)
{
  if (self->session && td_session_is_snapshot (self->session))
    return td_panel_message (view, "Not in a memory snapshot",
                             "It is one moment, and does not say who keeps a block.");
  return td_panel_message (view, title, text);
}

TdScene *
td__panels_make_growth (TdPanels *self, const TdPanelView *view)
{
  TdHolders *holders = get_holders (self);
  TdPanelView own = *view;
  own.cursor = self->growth_cursor;
  return holders ? td_growth_rows_scene (holders, get_retained (self), &own)
                 : make_none (self, view, no_marks, "Growth is seen at ends of iterations.");
}

TdScene *
td__panels_make_holders (TdPanels *self, const TdPanelView *view)
{
  TdRetained *retained = get_retained (self);
  TdPanelView own = *view;
  own.cursor = self->holders_cursor;
  return retained ? td_retained_scene (retained, &own)
                  : make_none (self, view, "Nobody is known to hold anything here",
                               "Who keeps what is told at ends of iterations, now and then.");
}

/* ---- rows ---- */

static gboolean
is_growth (const char *page)
{
  return strcmp (page, "growth") == 0;
}

/* The lines that there are: rows, and below the open one its sites. */
static guint
step_line (const TdRetained *r, guint line, int step)
{
  guint row = line / TD_RETAINED_SUBS, sub = line % TD_RETAINED_SUBS;
  if (step > 0)
    {
      if (sub < td_retained_count_subs (r, row))
        return line + 1;
      return row + 1 < r->n_rows ? TD_RETAINED_LINE (row + 1, 0) : line;
    }
  if (sub > 0)
    return line - 1;
  return row > 0 ? TD_RETAINED_LINE (row - 1, td_retained_count_subs (r, row - 1)) : line;
}

/* The object that a page's cursor stands for; G_MAXUINT: none is known. */
static guint
chosen_object (TdPanels *self, const char *page)
{
  TdRetained *r = get_retained (self);
  guint cursor = is_growth (page) ? self->growth_cursor : self->holders_cursor;
  if (!r || r->n_rows == 0)
    return G_MAXUINT;
  if (!is_growth (page))
    return td_retained_line_object (r, cursor > 0 ? cursor - 1 : 0);
  TdHolders *holders = get_holders (self);
  if (!holders || holders->n_holders == 0)
    return G_MAXUINT;
  g_autofree guint *order = td_growth_order (holders);
  const TdHolder *h = &holders->holders[order[cursor > 0 ? cursor - 1 : 0]];
  gint row = holders->by == TD_HOLDERS_BY_HOLDER ? td_retained_find (r, h) : -1;
  if (row >= 0)
    return r->rows[row].first;
  for (guint i = 0; i < r->tape->n_objects && holders->by == TD_HOLDERS_BY_SITE; i++)
    if (r->tape->objects[i].kind == TD_TAPE_OBJECT_ARRAY && r->tape->objects[i].site == h->site
        && r->tape->objects[i].opdef == h->opdef)
      return i;
  return G_MAXUINT;
}

static gboolean
show_in_graph (TdPanels *self, const char *page, GtkWidget *widget)
{
  guint object = chosen_object (self, page);
  gint64 number;
  guint64 key;
  if (object == G_MAXUINT || !td_retained_locate (self->retained, object, &number, &key))
    return FALSE;
  TdIteration *iteration = td_session_load_iteration (self->session, number, NULL);
  gint event = iteration ? td_iteration_find (iteration, key) : -1;
  g_clear_pointer (&iteration, td_iteration_unref);
  td_session_set_moment (self->session, number, event);
  td_session_select (self->session, key);
  return gtk_widget_activate_action (widget, "win.show-page", "s", "debug");
}

/* Where the chosen handle took hold, else where the array was made. */
static void
show_source (TdPanels *self, const char *page, GtkWidget *widget)
{
  guint object = chosen_object (self, page);
  char text[320];
  if (object == G_MAXUINT)
    return;
  const TdTapeObject *o = &self->retained->tape->objects[object];
  guint32 site = o->holder_site != 0 ? o->holder_site : o->site;
  if (!td_tape_reader_site (self->retained->reader, site))
    return;
  td_tape_reader_site_text (self->retained->reader, site, text, sizeof text);
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  gtk_widget_activate_action (widget, "win.show-source", "s", valid);
}

gboolean
td__panels_pick_held (TdPanels *self, const char *page, const TdSceneHit *hit, GtkWidget *view)
{
  guint *cursor = is_growth (page) ? &self->growth_cursor : &self->holders_cursor;
  if (strcmp (page, "oom") == 0)
    return td__panels_pick_oom (self, hit, view);
  if (!hit || hit->tag != TD_TAG_ROW || hit->data < 0)
    return FALSE;
  guint line = (guint)hit->data + 1;
  if (*cursor == line)
    return show_in_graph (self, page, view);
  *cursor = line;
  invalidate (self);
  return TRUE;
}

static char *
move_growth (TdPanels *self, int delta)
{
  TdHolders *holders = get_holders (self);
  if (!holders || holders->n_holders == 0)
    return NULL;
  gint last = (gint)holders->n_holders;
  self->growth_cursor = (guint)CLAMP ((gint)self->growth_cursor + delta, 1, last);
  g_autofree guint *order = td_growth_order (holders);
  return td_growth_describe (holders, get_retained (self),
                             &holders->holders[order[self->growth_cursor - 1]]);
}

static char *
move_holders (TdPanels *self, int delta)
{
  TdRetained *r = get_retained (self);
  if (!r || r->n_rows == 0)
    return NULL;
  guint line = self->holders_cursor > 0 ? self->holders_cursor - 1 : 0;
  for (; delta != 0; delta -= delta < 0 ? -1 : 1)
    line = step_line (r, line, delta);
  self->holders_cursor = line + 1;
  return td_retained_describe (r, line);
}

char *
td__panels_move_held (TdPanels *self, const char *page, int delta, GtkWidget *view)
{
  if (strcmp (page, "oom") == 0)
    return td__panels_move_oom (self, delta, view);
  char *words = is_growth (page) ? move_growth (self, delta) : move_holders (self, delta);
  if (words && delta == 0 && !show_in_graph (self, page, view))
    g_clear_pointer (&words, g_free);
  invalidate (self);
  return words;
}

/* ---- the sentence ---- */

typedef struct
{
  TdPanels *panels; /* weak */
  GtkWidget *icon;
  GtkLabel *text;
  const char *page; /* that its buttons are about */
} Bar;

static void
bar_free (gpointer data)
{
  Bar *bar = data;
  g_clear_weak_pointer (&bar->panels);
  g_free (bar);
}

static void
graph_clicked (GtkWidget *button, Bar *bar)
{
  if (bar->panels)
    show_in_graph (bar->panels, bar->page, button);
}

static void
source_clicked (GtkWidget *button, Bar *bar)
{
  if (bar->panels)
    show_source (bar->panels, bar->page, button);
}

static void
add_buttons (GtkWidget *box, Bar *bar)
{
  static const struct
  {
    const char *label, *tip;
    GCallback clicked;
  } buttons[]
      = { { "Show Source", "Go to the line that took hold", G_CALLBACK (source_clicked) },
          { "Show in Graph", "Go to the operation that made it (Return)",
            G_CALLBACK (graph_clicked) } };
  for (guint i = 0; i < G_N_ELEMENTS (buttons); i++)
    {
      GtkWidget *button = gtk_button_new_with_label (buttons[i].label);
      gtk_widget_add_css_class (button, "td-small");
      gtk_widget_set_valign (button, GTK_ALIGN_CENTER);
      gtk_widget_set_tooltip_text (button, buttons[i].tip);
      g_signal_connect (button, "clicked", buttons[i].clicked, bar);
      gtk_box_append (GTK_BOX (box), button);
    }
}

static Bar *
new_bar (TdPanels *self, const char *page, GtkWidget *box)
{
  Bar *bar = g_new0 (Bar, 1);
  g_set_weak_pointer (&bar->panels, self);
  bar->page = page;
  g_object_set_data_full (G_OBJECT (box), "bar", bar, bar_free);
  return bar;
}

static char *
dup_growth (const TdHolders *holders)
{
  TdRetained *newest = td_retained_new (holders->reader, -1);
  char *text = td_growth_headline (holders, newest);
  td_retained_free (newest);
  return text;
}

/* Where memory ran out goes before what grows. */
void
td__panels_update_held (TdPanels *self)
{
  if (!self->held_bar || !gtk_widget_get_mapped (gtk_widget_get_parent (self->held_bar)))
    return;
  td__panels_update_oom (self);
  Bar *bar = g_object_get_data (G_OBJECT (self->held_bar), "bar");
  TdHolders *holders = get_holders (self);
  TdTapeReader *reader = self->session ? td_session_get_reader (self->session) : NULL;
  gboolean ran_out = reader && td_tape_reader_n_ooms (reader) > 0;
  gtk_widget_set_visible (self->held_bar, holders || ran_out);
  if ((!holders && !ran_out) || (holders && self->says_newest))
    return;
  self->says_newest = TRUE;
  g_autofree char *growth = holders ? dup_growth (holders) : NULL;
  g_autofree char *oom = ran_out ? td_oom_headline (reader) : NULL;
  g_autofree char *text = g_strdup_printf ("%s%s%s", oom ? oom : "", oom && growth ? "\n" : "",
                                           growth ? growth : "");
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  gtk_widget_set_visible (bar->icon, oom || (holders && td_holders_n_growing (holders) > 0));
  gtk_accessible_update_property (GTK_ACCESSIBLE (bar->icon), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  oom ? "Memory ran out" : "Memory grows", -1);
  if (strcmp (gtk_label_get_text (bar->text), valid) == 0)
    return;
  gtk_label_set_text (bar->text, valid);
  gtk_widget_set_tooltip_text (GTK_WIDGET (bar->text), valid);
}

void
td_panels_look (TdPanels *self)
{
  td__panels_update_held (self);
}

GtkWidget *
td_panels_new_growth_bar (TdPanels *self)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 9);
  Bar *bar = new_bar (self, "growth", box);
  gtk_widget_add_css_class (box, "card");
  gtk_widget_add_css_class (box, "td-card");
  bar->icon = gtk_image_new_from_icon_name ("dialog-warning-symbolic");
  gtk_widget_add_css_class (bar->icon, "warning");
  gtk_accessible_update_property (GTK_ACCESSIBLE (bar->icon), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  "Memory grows", -1);
  bar->text = GTK_LABEL (gtk_label_new (NULL));
  gtk_label_set_wrap (bar->text, TRUE);
  gtk_label_set_wrap_mode (bar->text, PANGO_WRAP_WORD_CHAR);
  gtk_label_set_lines (bar->text, 5);
  gtk_label_set_ellipsize (bar->text, PANGO_ELLIPSIZE_END);
  gtk_label_set_xalign (bar->text, 0);
  gtk_widget_set_hexpand (GTK_WIDGET (bar->text), TRUE);
  gtk_widget_set_name (GTK_WIDGET (bar->text), "growth-sentence");
  gtk_box_append (GTK_BOX (box), bar->icon);
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (bar->text));
  add_buttons (box, bar);
  gtk_widget_set_visible (box, FALSE);
  g_set_weak_pointer (&self->held_bar, box);
  return box;
}

/* ---- heads of the cards ---- */

static void
by_chosen (GtkDropDown *list, GParamSpec *pspec, Bar *bar)
{
  TdHoldersBy by
      = gtk_drop_down_get_selected (list) == 1 ? TD_HOLDERS_BY_SITE : TD_HOLDERS_BY_HOLDER;
  if (!bar->panels || bar->panels->by == by)
    return;
  td__panels_forget_held (bar->panels);
  bar->panels->by = by;
  td__panels_update_held (bar->panels);
  invalidate (bar->panels);
}

GtkWidget *
td_panels_new_held_controls (TdPanels *self, const char *page)
{
  static const char *const choices[] = { "By holder", "By site", NULL };
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  Bar *bar = new_bar (self, page, box);
  if (is_growth (page))
    {
      GtkWidget *list = gtk_drop_down_new_from_strings (choices);
      gtk_widget_add_css_class (list, "td-small");
      gtk_widget_set_name (list, "growth-by");
      gtk_widget_set_tooltip_text (list, "What is put together");
      gtk_accessible_update_property (GTK_ACCESSIBLE (list), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                      "Growth by holder or by site", -1);
      g_signal_connect (list, "notify::selected", G_CALLBACK (by_chosen), bar);
      gtk_box_append (GTK_BOX (box), list);
    }
  else
    add_buttons (box, bar);
  return box;
}
