/* A list box: people write tens of notes and not thousands.
 * SPDX-License-Identifier: MIT */
#include "pages/td-notes-page.h"

#include <glib/gi18n-lib.h>

#include "tape/td-watch-history.h"
#include "widgets/td-hover-row.h"
#include "widgets/td-panel-view.h"
#include "widgets/td-scene-view.h"

#define HISTORY 40 /* iterations in a watch's curve */
#define READ_US 8000

struct _TdNotesPage
{
  GtkWidget parent;
  GtkWidget *scroller;
  GtkListBox *list;
  GtkLabel *empty;
  TdSession *session;
  TdNotebook *notebook;
  gboolean watches;
  TdWatchHistory *history; /* of the session's tape; NULL: nothing was drawn yet */
  guint reading;           /* idle source that goes on with it */
  gboolean dirty;          /* changed while it was not on show */
};

G_DEFINE_FINAL_TYPE (TdNotesPage, td_notes_page, GTK_TYPE_WIDGET)

typedef struct
{
  gint64 iteration;
  gint event;
  guint64 key;
} Target;

/* ---- parts of rows ---- */

static void
remove_clicked (GtkButton *button, TdNotesPage *self)
{
  const Target *target = g_object_get_data (G_OBJECT (button), "target");
  Target copy = *target; /* the row goes away */
  if (self->watches)
    td_notebook_toggle_watch (self->notebook, copy.key, "", NULL);
  else
    td_notebook_write (self->notebook, copy.iteration, copy.event, "", NULL);
}

static GtkWidget *
add_label (GtkWidget *box, const char *text, const char *style)
{
  GtkWidget *label = gtk_label_new (text);
  gtk_label_set_xalign (GTK_LABEL (label), 0);
  gtk_label_set_ellipsize (GTK_LABEL (label), PANGO_ELLIPSIZE_END);
  if (style)
    gtk_widget_add_css_class (label, style);
  gtk_box_append (GTK_BOX (box), label);
  return label;
}

/* ---- curves ---- */

typedef struct
{
  TdNotesPage *view;
  guint64 key;
} Curve;

static TdScene *
make_curve (gpointer data, double width, double height)
{
  Curve *curve = data;
  TdNotesPage *self = curve->view;
  if (!self->session || !self->history)
    return NULL;
  TdPanelView view = td_panel_view_new (self->session, width, height);
  return td_watch_history_scene (self->history, curve->key, HISTORY, &view);
}

static void
redraw_curves (TdNotesPage *self)
{
  GtkListBoxRow *row;
  for (int i = 0; (row = gtk_list_box_get_row_at_index (self->list, i)); i++)
    {
      GtkWidget *curve = g_object_get_data (G_OBJECT (row), "curve");
      if (curve)
        td_scene_view_invalidate (TD_SCENE_VIEW (curve));
    }
}

/* A few milliseconds at a time, so that a long tape stops nobody. */
static gboolean
read_history (gpointer data)
{
  TdNotesPage *self = data;
  guint n = td_notebook_get_n_watches (self->notebook);
  g_autofree guint64 *keys = g_new (guint64, MAX (n, 1));
  for (guint i = 0; i < n; i++)
    keys[i] = td_notebook_get_watch (self->notebook, i)->key;
  guint missing = td_watch_history_read (self->history, keys, n,
                                         td_session_get_moment (self->session).iteration,
                                         HISTORY, READ_US);
  redraw_curves (self);
  if (missing > 0)
    return G_SOURCE_CONTINUE;
  self->reading = 0;
  return G_SOURCE_REMOVE;
}

static void
begin_reading (TdNotesPage *self)
{
  TdTapeReader *reader = td_session_get_reader (self->session);
  if (!reader || td_notebook_get_n_watches (self->notebook) == 0)
    return;
  if (!self->history)
    self->history = td_watch_history_new (reader);
  if (!self->reading)
    self->reading = g_idle_add (read_history, self);
}

static GtkWidget *
new_curve (TdNotesPage *self, guint64 key)
{
  Curve *curve = g_new (Curve, 1);
  *curve = (Curve){ self, key };
  GtkWidget *view
      = td_scene_view_new (_ ("Norm over the iterations before"), make_curve, curve);
  g_object_set_data_full (G_OBJECT (view), "curve", curve, g_free);
  gtk_widget_set_size_request (view, 110, 30);
  gtk_widget_set_valign (view, GTK_ALIGN_CENTER);
  gtk_widget_set_focusable (view, FALSE);
  gtk_widget_set_can_target (view, FALSE);
  return view;
}

/* ---- rows ---- */

static void
add_row (TdNotesPage *self, const char *title, const char *text, Target target)
{
  GtkWidget *row = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 12);
  GtkWidget *words = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  gtk_widget_set_hexpand (words, TRUE);
  add_label (words, title, NULL);
  GtkWidget *second = add_label (words, text, "caption");
  gtk_widget_add_css_class (second, "dim-label");
  gtk_box_append (GTK_BOX (row), words);
  GtkWidget *curve = target.key ? new_curve (self, target.key) : NULL;
  if (curve)
    gtk_box_append (GTK_BOX (row), curve);
  GtkWidget *button = gtk_button_new_from_icon_name ("user-trash-symbolic");
  const char *name = self->watches ? "Watch no longer" : "Remove the note";
  gtk_widget_add_css_class (button, "flat");
  gtk_widget_set_valign (button, GTK_ALIGN_CENTER);
  gtk_widget_set_tooltip_text (button, name);
  gtk_accessible_update_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, name,
                                  -1);
  g_object_set_data_full (G_OBJECT (button), "target", g_memdup2 (&target, sizeof target),
                          g_free);
  g_signal_connect (button, "clicked", G_CALLBACK (remove_clicked), self);
  gtk_box_append (GTK_BOX (row), button);
  gtk_list_box_append (self->list, row);
  GtkWidget *parent = gtk_widget_get_parent (row);
  g_autofree char *label = g_strdup_printf ("%s, %s", title, text);
  gtk_accessible_update_property (GTK_ACCESSIBLE (parent), GTK_ACCESSIBLE_PROPERTY_LABEL, label,
                                  -1);
  g_object_set_data (G_OBJECT (parent), "curve", curve);
  g_object_set_data_full (G_OBJECT (parent), "target", g_memdup2 (&target, sizeof target),
                          g_free);
  g_object_set_data_full (G_OBJECT (parent), "text", g_strdup (label), g_free);
}

/* A note stands for its event while its iteration is on show. */
static guint64
key_of (const Target *target, TdIteration *now)
{
  gboolean here = now && target->iteration == td_iteration_get_number (now);
  if (target->key || !here || target->event < 0
      || (guint)target->event >= td_iteration_get_n_events (now))
    return target->key;
  return td_iteration_get_tape (now)->events[target->event].key;
}

static void
set_hover (TdNotesPage *self)
{
  g_autoptr (TdIteration) now = td_session_get_current (self->session);
  GtkListBoxRow *row;
  for (int i = 0; (row = gtk_list_box_get_row_at_index (self->list, i)); i++)
    td_hover_row_set (GTK_WIDGET (row), self->session,
                      key_of (g_object_get_data (G_OBJECT (row), "target"), now),
                      GTK_WIDGET (row));
}

static void
fill_notes (TdNotesPage *self)
{
  for (guint i = 0; i < td_notebook_get_n_notes (self->notebook); i++)
    {
      const TdNote *note = td_notebook_get_note (self->notebook, i);
      g_autofree char *where = g_strdup_printf ("Iteration %" G_GINT64_FORMAT ", event %d",
                                                note->iteration, note->event);
      add_row (self, note->text, where, (Target){ note->iteration, note->event, 0 });
    }
}

static void
fill_watches (TdNotesPage *self)
{
  g_autoptr (TdIteration) iteration = td_session_get_current (self->session);
  for (guint i = 0; i < td_notebook_get_n_watches (self->notebook); i++)
    {
      const TdWatch *watch = td_notebook_get_watch (self->notebook, i);
      g_autofree char *text
          = iteration ? td_watch_describe (iteration, watch->key) : g_strdup ("");
      add_row (self, watch->name, text, (Target){ -1, -1, watch->key });
    }
  begin_reading (self);
}

static void
fill (TdNotesPage *self)
{
  GtkListBoxRow *row;
  if (!gtk_widget_get_mapped (GTK_WIDGET (self)))
    {
      self->dirty = TRUE;
      return;
    }
  self->dirty = FALSE;
  while ((row = gtk_list_box_get_row_at_index (self->list, 0)))
    gtk_list_box_remove (self->list, GTK_WIDGET (row));
  if (!self->notebook || !self->session)
    return;
  if (self->watches)
    fill_watches (self);
  else
    fill_notes (self);
  set_hover (self);
}

static void
moment_changed (TdNotesPage *self)
{
  if (self->watches)
    fill (self);
  else if (!self->dirty) /* notes stay what they are */
    set_hover (self);
}

static void
row_activated (GtkListBox *list, GtkListBoxRow *row, TdNotesPage *self)
{
  const Target *target = g_object_get_data (G_OBJECT (row), "target");
  if (!self->session)
    return;
  if (self->watches)
    td_session_select (self->session, target->key);
  else
    td_session_set_moment (self->session, target->iteration, target->event);
}

TdScene *
td_notes_page_get_curve (TdNotesPage *self, guint i)
{
  GtkListBoxRow *row = gtk_list_box_get_row_at_index (self->list, (int)i);
  GtkWidget *curve = row ? g_object_get_data (G_OBJECT (row), "curve") : NULL;
  return curve ? td_scene_view_get_scene (TD_SCENE_VIEW (curve)) : NULL;
}

char *
td_notes_page_dup_row (TdNotesPage *self, guint i)
{
  GtkListBoxRow *row = gtk_list_box_get_row_at_index (self->list, (int)i);
  return row ? g_strdup (g_object_get_data (G_OBJECT (row), "text")) : NULL;
}

void
td_notes_page_set_notebook (TdNotesPage *self, TdSession *session, TdNotebook *notebook)
{
  if (self->session)
    g_signal_handlers_disconnect_by_data (self->session, self);
  if (self->notebook)
    g_signal_handlers_disconnect_by_data (self->notebook, self);
  g_clear_handle_id (&self->reading, g_source_remove);
  g_clear_pointer (&self->history, td_watch_history_free);
  g_set_object (&self->session, session);
  g_set_object (&self->notebook, notebook);
  if (session)
    g_signal_connect_swapped (session, "moment-changed", G_CALLBACK (moment_changed), self);
  if (notebook)
    g_signal_connect_swapped (notebook, "changed", G_CALLBACK (fill), self);
  fill (self);
}

/* ---- building ---- */

static void
td_notes_page_map (GtkWidget *widget)
{
  GTK_WIDGET_CLASS (td_notes_page_parent_class)->map (widget);
  if (TD_NOTES_PAGE (widget)->dirty)
    fill (TD_NOTES_PAGE (widget));
}

static void
td_notes_page_dispose (GObject *object)
{
  TdNotesPage *self = TD_NOTES_PAGE (object);
  td_notes_page_set_notebook (self, NULL, NULL);
  g_clear_pointer (&self->scroller, gtk_widget_unparent);
  G_OBJECT_CLASS (td_notes_page_parent_class)->dispose (object);
}

static void
td_notes_page_class_init (TdNotesPageClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_notes_page_dispose;
  GTK_WIDGET_CLASS (klass)->map = td_notes_page_map;
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
}

static void
td_notes_page_init (TdNotesPage *self)
{
  self->list = GTK_LIST_BOX (gtk_list_box_new ());
  gtk_list_box_set_selection_mode (self->list, GTK_SELECTION_NONE);
  gtk_widget_add_css_class (GTK_WIDGET (self->list), "td-notes");
  g_signal_connect (self->list, "row-activated", G_CALLBACK (row_activated), self);
  self->empty = GTK_LABEL (gtk_label_new (NULL));
  gtk_label_set_wrap (self->empty, TRUE);
  gtk_label_set_justify (self->empty, GTK_JUSTIFY_CENTER);
  gtk_widget_add_css_class (GTK_WIDGET (self->empty), "dim-label");
  gtk_list_box_set_placeholder (self->list, GTK_WIDGET (self->empty));
  self->scroller = gtk_scrolled_window_new ();
  gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (self->scroller), GTK_POLICY_NEVER,
                                  GTK_POLICY_AUTOMATIC);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (self->scroller), GTK_WIDGET (self->list));
  gtk_widget_set_parent (self->scroller, GTK_WIDGET (self));
}

GtkWidget *
td_notes_page_new (gboolean watches)
{
  TdNotesPage *self = g_object_new (TD_TYPE_NOTES_PAGE, NULL);
  const char *name = watches ? "Watched operations and variables" : "Notes";
  self->watches = watches;
  gtk_label_set_text (self->empty,
                      watches ? _ ("Nothing is watched. Ctrl+Shift+W watches the selection.")
                              : _ ("No notes yet. Ctrl+M writes one at the playhead."));
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->list), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  name, -1);
  return GTK_WIDGET (self);
}
