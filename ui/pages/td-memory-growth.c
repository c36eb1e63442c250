/* Why memory grows, on the Memory page: the sentence at its top, the rows of Growth and those
 * of Holders. A row is chosen by a click or by Up and Down; a second click or Return goes to
 * the operation in the graph, and Show Source to the line that took hold.
 * SPDX-License-Identifier: MIT */
#include "pages/td-memory-growth.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "memory/td-growth.h"
#include "memory/td-oom.h"
#include "settings/td-tip.h"

#define REFRESH_US 1000000 /* a running program's marks are read no more often */

/* When something was read from the tape, and how long that took. *Units*: microseconds. */
typedef struct
{
  gint64 at, cost; /* at 0: never */
} HeldTime;

struct _TdMemoryGrowth
{
  TdPage parent;
  TdHolders *holders;   /* of all marks */
  TdRetained *retained; /* of the playhead's iteration, or the last before it */
  TdHoldersBy by;
  TdRange range;         /* of iterations, that holders is of */
  guint held_n, refresh; /* iterations there were when holders was made; a timer */
  HeldTime holders_time, retained_time;
  gboolean says_newest;                /* the sentence is of what holders has */
  guint growth_cursor, holders_cursor; /* the chosen rows, plus 1; 0: none */
  GtkWidget *sentence;                 /* weak */
};

G_DEFINE_FINAL_TYPE (TdMemoryGrowth, td_memory_growth, TD_TYPE_PAGE)

static TdSession *
session_of (TdMemoryGrowth *self)
{
  return td_page_get_session (TD_PAGE (self));
}

/* ---- what is computed ---- */

static void
forget (TdMemoryGrowth *self)
{
  g_clear_pointer (&self->holders, td_holders_free);
  g_clear_pointer (&self->retained, td_retained_free);
  g_clear_handle_id (&self->refresh, g_source_remove);
  self->held_n = self->growth_cursor = self->holders_cursor = 0;
  self->holders_time = self->retained_time = (HeldTime){ 0 };
  self->says_newest = FALSE;
}

static void
forget_session (TdPage *page)
{
  forget (TD_MEMORY_GROWTH (page));
}

static void update_sentence (TdMemoryGrowth *self);

static gboolean
refresh (gpointer data)
{
  TdMemoryGrowth *self = data;
  self->refresh = 0;
  update_sentence (self);
  td_page_invalidate (TD_PAGE (self));
  return G_SOURCE_REMOVE;
}

/* The tape is read no more often than once in `least`, for at most a twentieth of the time, and
 * the last that came to it soon after. *Units*: microseconds. */
static gboolean
is_too_soon (TdMemoryGrowth *self, const HeldTime *last, gint64 least)
{
  gint64 wait = MAX (least, 20 * last->cost);
  if (last->at == 0 || g_get_monotonic_time () - last->at >= wait)
    return FALSE;
  if (!self->refresh)
    self->refresh = g_timeout_add ((guint)(wait / 1000) + 1, refresh, self);
  return TRUE;
}

static void
note_time (HeldTime *time, gint64 began)
{
  time->at = g_get_monotonic_time ();
  time->cost = time->at - began;
}

/* What the user narrows is shown at once, unless it takes long to read. */
static TdHolders *
get_holders (TdMemoryGrowth *self)
{
  TdTapeReader *reader = td_page_get_reader (TD_PAGE (self));
  gint64 began = g_get_monotonic_time ();
  if (!reader)
    return self->holders;
  guint n = td_session_get_n_iterations (session_of (self));
  TdRange range = td_session_get_range (session_of (self));
  gboolean same = td_range_equal (range, self->range);
  if ((same && self->holders_time.at > 0 && n == self->held_n)
      || is_too_soon (self, &self->holders_time, same ? REFRESH_US : 0))
    return self->holders;
  g_clear_pointer (&self->holders, td_holders_free);
  self->holders = td_holders_new_in (reader, range, self->by);
  self->range = range;
  self->growth_cursor = MIN (self->growth_cursor, self->holders ? self->holders->n_holders : 0);
  self->held_n = n;
  self->says_newest = FALSE;
  note_time (&self->holders_time, began);
  return self->holders;
}

/* Of the iteration of the playhead, or the newest before it that says so. */
static TdRetained *
get_retained (TdMemoryGrowth *self)
{
  TdTapeReader *reader = td_page_get_reader (TD_PAGE (self));
  gint64 last = reader ? td_session_get_moment (session_of (self)).iteration : -1;
  gint64 wanted = reader ? td_retained_find_iteration (reader, last) : -1;
  gint64 began = g_get_monotonic_time ();
  if (self->retained
      && (self->retained->iteration == wanted
          || (wanted >= 0 && td_session_get_follow (session_of (self))
              && is_too_soon (self, &self->retained_time, REFRESH_US))))
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
make_none (TdMemoryGrowth *self, const TdPanelView *view, const char *title, const char *text)
{
  if (session_of (self) && td_session_is_snapshot (session_of (self)))
    return td_panel_message (view, _ ("Not in a memory snapshot"),
                             _ ("It is one moment, and does not say who keeps a block."));
  return td_panel_message (view, title, text);
}

static TdScene *
make_growth (TdPage *page, const TdPanelView *view)
{
  TdMemoryGrowth *self = TD_MEMORY_GROWTH (page);
  TdHolders *holders = get_holders (self);
  TdPanelView own = *view;
  own.cursor = self->growth_cursor;
  return holders ? td_growth_rows_scene (holders, get_retained (self), &own)
                 : make_none (self, view, no_marks, "Growth is seen at ends of iterations.");
}

static TdScene *
make_holders (TdPage *page, const TdPanelView *view)
{
  TdMemoryGrowth *self = TD_MEMORY_GROWTH (page);
  TdRetained *retained = get_retained (self);
  TdPanelView own = *view;
  own.cursor = self->holders_cursor;
  return retained ? td_retained_scene (retained, &own)
                  : make_none (self, view, "Nobody is known to hold anything here",
                               "Who keeps what is recorded at the ends of some iterations.");
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
chosen_object (TdMemoryGrowth *self, const char *page)
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
show_in_graph (TdMemoryGrowth *self, const char *page, GtkWidget *widget)
{
  guint object = chosen_object (self, page);
  gint64 number;
  guint64 key;
  if (object == G_MAXUINT || !td_retained_locate (self->retained, object, &number, &key))
    return FALSE;
  TdIteration *iteration = td_session_load_iteration (session_of (self), number, NULL);
  gint event = iteration ? td_iteration_find (iteration, key) : -1;
  g_clear_pointer (&iteration, td_iteration_unref);
  td_session_set_moment (session_of (self), number, event);
  td_session_select (session_of (self), key);
  return gtk_widget_activate_action (widget, "win.show-page", "s", "debug");
}

/* Where the chosen handle took hold, else where the array was made. */
static void
show_source (TdMemoryGrowth *self, const char *page, GtkWidget *widget)
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

static TdPress
press_row (TdPage *page, const char *name, const TdSceneHit *hit, GtkWidget *view)
{
  TdMemoryGrowth *self = TD_MEMORY_GROWTH (page);
  guint *cursor = is_growth (name) ? &self->growth_cursor : &self->holders_cursor;
  if (!hit || hit->tag != TD_TAG_ROW || hit->data < 0)
    return TD_PRESS_TAKEN;
  guint line = (guint)hit->data + 1;
  if (*cursor == line)
    {
      show_in_graph (self, name, view);
      return TD_PRESS_TAKEN;
    }
  *cursor = line;
  td_page_invalidate (page);
  return TD_PRESS_TAKEN;
}

static char *
move_growth (TdMemoryGrowth *self, int delta)
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
move_holders (TdMemoryGrowth *self, int delta)
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

static char *
move_row (TdPage *page, const char *name, int delta, GtkWidget *view)
{
  TdMemoryGrowth *self = TD_MEMORY_GROWTH (page);
  char *words = is_growth (name) ? move_growth (self, delta) : move_holders (self, delta);
  if (words && delta == 0 && !show_in_graph (self, name, view))
    g_clear_pointer (&words, g_free);
  td_page_invalidate (page);
  return words;
}

static const TdPicture pictures[] = {
  { "growth", N_ ("Growth"), N_ ("What grows over the iterations"), make_growth, press_row,
    move_row, .named = TRUE },
  { "holders", N_ ("Holders"), N_ ("Who keeps what is there after the iteration"), make_holders,
    press_row, move_row, .named = TRUE },
};

static char *
dup_csv (TdPage *page, const char *name)
{
  TdMemoryGrowth *self = TD_MEMORY_GROWTH (page);
  TdHolders *holders = is_growth (name) ? get_holders (self) : NULL;
  TdRetained *retained = is_growth (name) ? NULL : get_retained (self);
  return holders    ? td_growth_print (holders, "csv")
         : retained ? td_retained_print (retained, "csv")
                    : NULL;
}

/* ---- the sentence ---- */

typedef struct
{
  TdMemoryGrowth *growth; /* weak */
  GtkWidget *icon;
  GtkLabel *text;
  const char *page; /* that its buttons are about */
} Bar;

static void
bar_free (gpointer data)
{
  Bar *bar = data;
  g_clear_weak_pointer (&bar->growth);
  g_free (bar);
}

static void
graph_clicked (GtkWidget *button, Bar *bar)
{
  if (bar->growth)
    show_in_graph (bar->growth, bar->page, button);
}

static void
source_clicked (GtkWidget *button, Bar *bar)
{
  if (bar->growth)
    show_source (bar->growth, bar->page, button);
}

static void
add_buttons (GtkWidget *box, Bar *bar)
{
  static const struct
  {
    const char *label, *tip;
    GCallback clicked;
  } buttons[] = { { N_ ("Show Source"), N_ ("Go to the line that took hold"),
                    G_CALLBACK (source_clicked) },
                  { N_ ("Show in Graph"), N_ ("Go to the operation that made it (Return)"),
                    G_CALLBACK (graph_clicked) } };
  for (guint i = 0; i < G_N_ELEMENTS (buttons); i++)
    {
      GtkWidget *button = gtk_button_new_with_label (_ (buttons[i].label));
      gtk_widget_add_css_class (button, "td-small");
      gtk_widget_set_valign (button, GTK_ALIGN_CENTER);
      gtk_widget_set_tooltip_text (button, _ (buttons[i].tip));
      g_signal_connect (button, "clicked", buttons[i].clicked, bar);
      gtk_box_append (GTK_BOX (box), button);
    }
}

static Bar *
new_bar (TdMemoryGrowth *self, const char *page, GtkWidget *box)
{
  Bar *bar = g_new0 (Bar, 1);
  g_set_weak_pointer (&bar->growth, self);
  bar->page = page;
  g_object_set_data_full (G_OBJECT (box), "bar", bar, bar_free);
  return bar;
}

/* Who keeps it is told of the last iteration that the marks are of, or of none. */
static char *
dup_growth (const TdHolders *holders)
{
  const TdHoldersMark *marks = holders->marks;
  TdRetained *newest = td_retained_new (holders->reader, marks[holders->n_marks - 1].iteration);
  if (newest && newest->iteration < marks[0].iteration)
    g_clear_pointer (&newest, td_retained_free);
  char *text = td_growth_headline (holders, newest);
  td_retained_free (newest);
  return text;
}

/* Where memory ran out goes before what grows. */
static void
update_sentence (TdMemoryGrowth *self)
{
  if (!self->sentence || !gtk_widget_get_mapped (gtk_widget_get_parent (self->sentence)))
    return;
  Bar *bar = g_object_get_data (G_OBJECT (self->sentence), "bar");
  TdHolders *holders = get_holders (self);
  TdTapeReader *reader = td_page_get_reader (TD_PAGE (self));
  gboolean ran_out = reader && td_tape_reader_n_ooms (reader) > 0;
  gtk_widget_set_visible (self->sentence, holders || ran_out);
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
                                  oom ? _ ("Memory ran out") : _ ("Memory grows"), -1);
  if (strcmp (gtk_label_get_text (bar->text), valid) == 0)
    return;
  gtk_label_set_text (bar->text, valid);
  td_tip_set (GTK_WIDGET (bar->text), valid);
}

/* ---- heads of the cards ---- */

static void
by_chosen (GtkDropDown *list, GParamSpec *pspec, Bar *bar)
{
  TdHoldersBy by
      = gtk_drop_down_get_selected (list) == 1 ? TD_HOLDERS_BY_SITE : TD_HOLDERS_BY_HOLDER;
  if (!bar->growth || bar->growth->by == by)
    return;
  forget (bar->growth);
  bar->growth->by = by;
  update_sentence (bar->growth);
  td_page_invalidate (TD_PAGE (bar->growth));
}

static void
add_controls (TdMemoryGrowth *self, const char *page, GtkWidget *box)
{
  Bar *bar = new_bar (self, page, box);
  if (is_growth (page))
    g_signal_connect (gtk_widget_get_first_child (box), "notify::selected",
                      G_CALLBACK (by_chosen), bar);
  else
    add_buttons (box, bar);
}

void
td_memory_growth_look (TdMemoryGrowth *self)
{
  update_sentence (self);
}

void
td_memory_growth_build (TdMemoryGrowth *self, GtkBuilder *builder)
{
  GtkWidget *box = GTK_WIDGET (gtk_builder_get_object (builder, "sentence"));
  Bar *bar = new_bar (self, "growth", box);
  bar->icon = GTK_WIDGET (gtk_builder_get_object (builder, "sentence-icon"));
  bar->text = GTK_LABEL (gtk_builder_get_object (builder, "growth-sentence"));
  add_buttons (box, bar);
  g_set_weak_pointer (&self->sentence, box);
  add_controls (self, "growth",
                GTK_WIDGET (gtk_builder_get_object (builder, "growth-controls")));
  add_controls (self, "holders",
                GTK_WIDGET (gtk_builder_get_object (builder, "holders-controls")));
}

/* ---- life ---- */

static void
moment_shown (TdPage *page)
{
  update_sentence (TD_MEMORY_GROWTH (page));
}

static void
td_memory_growth_finalize (GObject *object)
{
  g_clear_weak_pointer (&TD_MEMORY_GROWTH (object)->sentence);
  G_OBJECT_CLASS (td_memory_growth_parent_class)->finalize (object);
}

static void
td_memory_growth_class_init (TdMemoryGrowthClass *klass)
{
  TdPageClass *class = TD_PAGE_CLASS (klass);
  G_OBJECT_CLASS (klass)->finalize = td_memory_growth_finalize;
  class->name = "growth";
  class->title = N_ ("Growth");
  class->dup_csv = dup_csv;
  class->pictures = pictures;
  class->n_pictures = G_N_ELEMENTS (pictures);
  class->forget_session = forget_session;
  class->moment_shown = moment_shown;
}

static void
td_memory_growth_init (TdMemoryGrowth *self)
{
}

TdMemoryGrowth *
td_memory_growth_new (void)
{
  return g_object_new (TD_TYPE_MEMORY_GROWTH, NULL);
}
