/* GtkSourceView, read-only, over the sources stored in the recording. A line without stored
 * text says so; the file on disk is not guessed at. SPDX-License-Identifier: MIT */
#include "pages/td-source-page.h"

#include <glib/gi18n-lib.h>
#include <adwaita.h>
#include <gtksourceview/gtksource.h>
#include <string.h>

#include "schedule/td-statics-session.h"
#include "widgets/td-source-marks.h"

enum
{
  SCROLL_TICKS = 6
};

struct _TdSourcePage
{
  GtkWidget parent;
  GtkStack *stack;
  GtkLabel *missing;
  GtkLabel *path;
  GtkSourceView *view;
  GtkSourceBuffer *buffer;
  GtkTextTag *current, *hovered;
  TdSession *session;
  char *file;
  guint line;
  gboolean stays; /* the line was asked for: what comes to the recording does not change it */
  guint ticks;    /* still to come that bring the line into view */
  GtkSourceGutterRenderer *marks; /* of static functions */
  gint64 marked_iteration;        /* that they are of; -1: none is */
  guint marked_events;
  guint pointed; /* the line that the pointer is on; 0: none */
};

G_DEFINE_FINAL_TYPE (TdSourcePage, td_source_page, GTK_TYPE_WIDGET)

static void
apply_style (TdSourcePage *self)
{
  gtk_widget_queue_draw (GTK_WIDGET (self->marks));
  AdwStyleManager *style = adw_style_manager_get_default ();
  gboolean dark = adw_style_manager_get_dark (style);
  GtkSourceStyleScheme *scheme = gtk_source_style_scheme_manager_get_scheme (
      gtk_source_style_scheme_manager_get_default (), dark ? "Adwaita-dark" : "Adwaita");
  gtk_source_buffer_set_style_scheme (self->buffer, scheme);
  g_object_set (self->current, "paragraph-background",
                dark ? "rgba(120,174,237,0.22)" : "rgba(28,113,216,0.14)", NULL);
  g_object_set (self->hovered, "background",
                dark ? "rgba(120,174,237,0.22)" : "rgba(28,113,216,0.14)", NULL);
}

static gboolean
same_file (const char *stored, const char *wanted)
{
  if (strcmp (stored, wanted) == 0)
    return TRUE;
  g_autofree char *a = g_path_get_basename (stored);
  g_autofree char *b = g_path_get_basename (wanted);
  return strcmp (a, b) == 0;
}

static gboolean
load_file (TdSourcePage *self, const char *file)
{
  TdTapeReader *reader = td_session_get_reader (self->session);
  guint n = reader ? td_tape_reader_n_sources (reader) : 0;
  gint found = -1;
  for (guint i = 0; i < n; i++)
    {
      TdTapeSource source = td_tape_reader_source (reader, i);
      if (!source.path || !same_file (source.path, file))
        continue;
      if (found < 0 || strcmp (source.path, file) == 0) /* several may have its name */
        found = (gint)i;
    }
  if (found < 0)
    return FALSE;
  TdTapeSource source = td_tape_reader_source (reader, (guint)found);
  g_autofree char *text = g_utf8_make_valid (source.text, (gssize)source.bytes);
  gtk_text_buffer_set_text (GTK_TEXT_BUFFER (self->buffer), text, -1);
  return TRUE;
}

static gboolean
is_on_show (GtkTextView *view, const GtkTextIter *line)
{
  GdkRectangle shown;
  int y, height;
  gtk_text_view_get_line_yrange (view, line, &y, &height);
  gtk_text_view_get_visible_rect (view, &shown);
  return y >= shown.y && y + height <= shown.y + shown.height;
}

/* A page that comes on show has its height, and its lines theirs, only after some frames; what
 * scrolls before that scrolls anywhere. */
static gboolean
scroll_to_line (GtkWidget *widget, GdkFrameClock *clock, gpointer data)
{
  TdSourcePage *self = data;
  GtkTextView *view = GTK_TEXT_VIEW (widget);
  GtkTextBuffer *buffer = GTK_TEXT_BUFFER (self->buffer);
  GtkTextIter line;
  if (gtk_widget_get_height (widget) <= 1)
    return G_SOURCE_CONTINUE;
  gtk_text_buffer_get_iter_at_mark (buffer, &line, gtk_text_buffer_get_insert (buffer));
  if (!is_on_show (view, &line))
    gtk_text_view_scroll_to_mark (view, gtk_text_buffer_get_insert (buffer), 0.1, TRUE, 0, 0.5);
  return --self->ticks > 0;
}

static void
mark_line (TdSourcePage *self, guint line)
{
  GtkTextBuffer *buffer = GTK_TEXT_BUFFER (self->buffer);
  GtkTextIter start, end;
  gtk_text_buffer_get_bounds (buffer, &start, &end);
  gtk_text_buffer_remove_tag (buffer, self->current, &start, &end);
  gtk_source_buffer_remove_source_marks (self->buffer, &start, &end, "playhead");
  if (!line || !gtk_text_buffer_get_iter_at_line (buffer, &start, (int)line - 1))
    return;
  end = start;
  gtk_text_iter_forward_line (&end);
  gtk_text_buffer_apply_tag (buffer, self->current, &start, &end);
  gtk_source_buffer_create_source_mark (self->buffer, NULL, "playhead", &start);
  gtk_text_buffer_place_cursor (buffer, &start);
  if (self->ticks == 0)
    gtk_widget_add_tick_callback (GTK_WIDGET (self->view), scroll_to_line, self, NULL);
  self->ticks = SCROLL_TICKS;
}

/* ---- hovering ---- */

/* Line `line` of the file on show is that of this event. */
static gboolean
is_at (TdSourcePage *self, TdIteration *iteration, guint event, guint line)
{
  guint32 at = 0;
  const char *file = td_iteration_get_site (
      iteration, td_iteration_get_tape (iteration)->events[event].site, &at);
  return at == line && file && self->file && same_file (file, self->file);
}

/* The operation that a line stands for: the playhead's if it is of the line, else the first of
 * it; 0: none. */
static guint64
key_of_line (TdSourcePage *self, guint line)
{
  g_autoptr (TdIteration) iteration = td_session_get_current (self->session);
  guint n = iteration ? td_iteration_get_n_events (iteration) : 0;
  gint event = td_session_get_moment (self->session).event;
  if (event < 0 || (guint)event >= n || !is_at (self, iteration, (guint)event, line))
    event = -1;
  for (guint e = 0; e < n && event < 0; e++)
    if (is_at (self, iteration, e, line))
      event = (gint)e;
  return event >= 0 ? td_iteration_get_tape (iteration)->events[event].key : 0;
}

/* The line of what is hovered, here or elsewhere; 0: it has none in the file on show. */
static guint
find_hovered (TdSourcePage *self)
{
  guint64 key = self->session ? td_session_get_hover (self->session) : 0;
  g_autoptr (TdIteration) iteration = key ? td_session_get_current (self->session) : NULL;
  gint event = iteration ? td_iteration_find (iteration, key) : -1;
  guint32 line = 0;
  if (event < 0)
    return 0;
  td_iteration_get_site (iteration, td_iteration_get_tape (iteration)->events[event].site,
                         &line);
  return is_at (self, iteration, (guint)event, line) ? line : 0;
}

static void
show_hover (TdSourcePage *self)
{
  GtkTextBuffer *buffer = GTK_TEXT_BUFFER (self->buffer);
  GtkTextIter start, end;
  guint line = find_hovered (self);
  gtk_text_buffer_get_bounds (buffer, &start, &end);
  gtk_text_buffer_remove_tag (buffer, self->hovered, &start, &end);
  if (!line || !gtk_text_buffer_get_iter_at_line (buffer, &start, (int)line - 1))
    return;
  end = start;
  gtk_text_iter_forward_to_line_end (&end);
  gtk_text_buffer_apply_tag (buffer, self->hovered, &start, &end);
}

static void
point_at (TdSourcePage *self, guint line)
{
  if (self->pointed == line || !self->session)
    return;
  self->pointed = line;
  td_session_set_hover (self->session, line ? key_of_line (self, line) : 0);
}

static void
motion (GtkEventControllerMotion *controller, double x, double y, TdSourcePage *self)
{
  GtkTextView *view = GTK_TEXT_VIEW (self->view);
  GtkTextIter at;
  int bx, by, top, height;
  gtk_text_view_window_to_buffer_coords (view, GTK_TEXT_WINDOW_WIDGET, (int)x, (int)y, &bx,
                                         &by);
  gtk_text_view_get_line_at_y (view, &at, by, NULL);
  gtk_text_view_get_line_yrange (view, &at, &top, &height);
  gboolean below = by >= top + height; /* the last line */
  point_at (self, below ? 0 : (guint)gtk_text_iter_get_line (&at) + 1);
}

static void
left (GtkEventControllerMotion *controller, TdSourcePage *self)
{
  point_at (self, 0);
}

guint
td_source_page_get_hovered (TdSourcePage *self)
{
  GtkTextIter at;
  gtk_text_buffer_get_start_iter (GTK_TEXT_BUFFER (self->buffer), &at);
  if (!gtk_text_iter_starts_tag (&at, self->hovered)
      && !gtk_text_iter_forward_to_tag_toggle (&at, self->hovered))
    return 0;
  return (guint)gtk_text_iter_get_line (&at) + 1;
}

/* ---- marks of static functions ---- */

/* They are those of the moment: guards of the schedules that there were, and how often they
 * failed. Hidden, nothing is looked up. */
static void
show_marks (TdSourcePage *self, gboolean other_file)
{
  if (!self->session || !gtk_widget_get_mapped (GTK_WIDGET (self)))
    return;
  TdStatics *statics = td_session_get_statics (self->session);
  gint64 iteration = statics ? statics->iteration : -1;
  guint n_events = statics ? td_iteration_get_n_events (statics->it) : 0;
  if (iteration == self->marked_iteration && n_events == self->marked_events && !other_file)
    return;
  g_autoptr (GArray) rows = statics ? td_explain_list_lines (statics) : NULL;
  self->marked_iteration = iteration;
  self->marked_events = n_events;
  td_source_marks_set (self->marks, rows, self->file);
}

static void
mapped (TdSourcePage *self)
{
  show_marks (self, TRUE);
}

const char *
td_source_page_get_mark (TdSourcePage *self, guint line)
{
  return td_source_marks_get (self->marks, line);
}

/* ---- what is on show ---- */

static void
show_missing (TdSourcePage *self, const char *text)
{
  gtk_label_set_text (self->missing, text);
  gtk_stack_set_visible_child_name (self->stack, "missing");
}

/* The file is loaded. */
static void
show_line (TdSourcePage *self, const char *file, guint line)
{
  g_autofree char *copy = g_strdup (file);
  gboolean other = g_strcmp0 (self->file, file) != 0;
  g_free (self->file);
  self->file = g_steal_pointer (&copy);
  self->line = line;
  g_autofree char *text = g_strdup_printf ("%s:%u", file, line);
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  gtk_label_set_text (self->path, valid);
  gtk_stack_set_visible_child_name (self->stack, "source");
  mark_line (self, line);
  show_hover (self);
  show_marks (self, other);
}

static void
show_moment (TdSourcePage *self)
{
  TdMoment moment = td_session_get_moment (self->session);
  TdIteration *iteration = td_session_get_current (self->session);
  const TdTapeIteration *tape = iteration ? td_iteration_get_tape (iteration) : NULL;
  guint32 line = 0;
  const char *file = "";
  if (tape && moment.event >= 0 && (guint32)moment.event < tape->n_events)
    file = td_iteration_get_site (iteration, tape->events[moment.event].site, &line);
  if (!file || !*file)
    show_missing (self, "The playhead is on no line of the program");
  else
    {
      gboolean loaded = self->file && strcmp (self->file, file) == 0;
      if (!loaded && !load_file (self, file))
        {
          g_autofree char *text = g_strdup_printf (_ ("%s was not stored"), file);
          g_autofree char *valid = g_utf8_make_valid (text, -1);
          show_missing (self, valid);
        }
      else
        show_line (self, file, line);
    }
  g_clear_pointer (&iteration, td_iteration_unref);
}

static void
moment_changed (TdSourcePage *self)
{
  self->stays = FALSE;
  show_moment (self);
}

static void
iterations_changed (TdSourcePage *self)
{
  if (!self->stays)
    show_moment (self);
}

gboolean
td_source_page_show_line (TdSourcePage *self, const char *file, guint line)
{
  if (!self->session || !load_file (self, file))
    return FALSE;
  show_line (self, file, line);
  self->stays = TRUE;
  return TRUE;
}

void
td_source_page_set_session (TdSourcePage *self, TdSession *session)
{
  if (self->session)
    g_signal_handlers_disconnect_by_data (self->session, self);
  g_clear_pointer (&self->file, g_free);
  self->line = self->pointed = 0;
  self->stays = FALSE;
  self->marked_iteration = -1;
  if (self->marks)
    td_source_marks_set (self->marks, NULL, NULL);
  g_set_object (&self->session, session);
  if (!session)
    return;
  g_signal_connect_swapped (session, "moment-changed", G_CALLBACK (moment_changed), self);
  g_signal_connect_swapped (session, "iterations-changed", G_CALLBACK (iterations_changed),
                            self);
  g_signal_connect_swapped (session, "hover-changed", G_CALLBACK (show_hover), self);
  show_moment (self);
}

guint
td_source_page_get_line (TdSourcePage *self)
{
  return self->line;
}

const char *
td_source_page_get_file (TdSourcePage *self)
{
  return self->file ? self->file : "";
}

/* The columns of GtkSourceView 5.6 hold the view that they are in, and the lines that were
 * drawn last do, too: neither would ever be gone. */
static void
drop_view (TdSourcePage *self)
{
  g_autoptr (GtkSourceView) view = g_object_ref (self->view);
  GtkSourceGutter *gutter = gtk_source_view_get_gutter (view, GTK_TEXT_WINDOW_LEFT);
  GtkWidget *next;
  for (GtkWidget *column = gtk_widget_get_first_child (GTK_WIDGET (gutter)); column;
       column = next)
    {
      next = gtk_widget_get_next_sibling (column);
      gtk_source_gutter_remove (gutter, GTK_SOURCE_GUTTER_RENDERER (column));
    }
  gtk_widget_unparent (GTK_WIDGET (self->stack));
  g_object_run_dispose (G_OBJECT (view));
  self->stack = NULL;
  self->view = NULL;
  self->marks = NULL;
}

static void
td_source_page_dispose (GObject *object)
{
  TdSourcePage *self = TD_SOURCE_PAGE (object);
  td_source_page_set_session (self, NULL);
  if (self->stack)
    drop_view (self);
  g_clear_object (&self->buffer);
  G_OBJECT_CLASS (td_source_page_parent_class)->dispose (object);
}

static void
td_source_page_class_init (TdSourcePageClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_source_page_dispose;
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
}

static void
build_view (TdSourcePage *self)
{
  GtkSourceLanguage *c = gtk_source_language_manager_get_language (
      gtk_source_language_manager_get_default (), "c");
  self->buffer = gtk_source_buffer_new (NULL);
  gtk_source_buffer_set_language (self->buffer, c);
  self->current = gtk_text_buffer_create_tag (GTK_TEXT_BUFFER (self->buffer), NULL, NULL);
  self->hovered = gtk_text_buffer_create_tag (GTK_TEXT_BUFFER (self->buffer), NULL, NULL);
  self->view = GTK_SOURCE_VIEW (gtk_source_view_new_with_buffer (self->buffer));
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->view), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Source of the model"), -1);
  gtk_text_view_set_editable (GTK_TEXT_VIEW (self->view), FALSE);
  gtk_text_view_set_cursor_visible (GTK_TEXT_VIEW (self->view), FALSE);
  gtk_text_view_set_monospace (GTK_TEXT_VIEW (self->view), TRUE);
  gtk_source_view_set_show_line_numbers (self->view, TRUE);
  gtk_source_view_set_show_line_marks (self->view, TRUE);
  self->marks = td_source_marks_new (self->view);
  g_signal_connect (self, "map", G_CALLBACK (mapped), NULL);
  gtk_widget_add_css_class (GTK_WIDGET (self->view), "td-log");
  GtkEventController *pointer = gtk_event_controller_motion_new ();
  g_signal_connect (pointer, "enter", G_CALLBACK (motion), self);
  g_signal_connect (pointer, "motion", G_CALLBACK (motion), self);
  g_signal_connect (pointer, "leave", G_CALLBACK (left), self);
  gtk_widget_add_controller (GTK_WIDGET (self->view), pointer);
  GtkSourceMarkAttributes *mark = gtk_source_mark_attributes_new ();
  gtk_source_mark_attributes_set_icon_name (mark, "go-next-symbolic");
  gtk_source_view_set_mark_attributes (self->view, "playhead", mark, 0);
  g_object_unref (mark);
}

static void
td_source_page_init (TdSourcePage *self)
{
  build_view (self);
  GtkWidget *scroller = gtk_scrolled_window_new ();
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), GTK_WIDGET (self->view));
  gtk_widget_set_vexpand (scroller, TRUE);
  self->path = GTK_LABEL (gtk_label_new (NULL));
  gtk_label_set_xalign (self->path, 0);
  gtk_label_set_ellipsize (self->path, PANGO_ELLIPSIZE_START);
  gtk_widget_set_margin_start (GTK_WIDGET (self->path), 12);
  gtk_widget_add_css_class (GTK_WIDGET (self->path), "caption");
  gtk_widget_add_css_class (GTK_WIDGET (self->path), "dim-label");
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 3);
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (self->path));
  gtk_box_append (GTK_BOX (box), scroller);
  self->missing = GTK_LABEL (gtk_label_new (NULL));
  gtk_label_set_wrap (self->missing, TRUE);
  gtk_widget_add_css_class (GTK_WIDGET (self->missing), "dim-label");
  self->stack = GTK_STACK (gtk_stack_new ());
  gtk_stack_add_named (self->stack, GTK_WIDGET (self->missing), "missing");
  gtk_stack_add_named (self->stack, box, "source");
  gtk_widget_set_parent (GTK_WIDGET (self->stack), GTK_WIDGET (self));
  apply_style (self);
  g_signal_connect_object (adw_style_manager_get_default (), "notify::dark",
                           G_CALLBACK (apply_style), self, G_CONNECT_SWAPPED);
}

GtkWidget *
td_source_page_new (void)
{
  return g_object_new (TD_TYPE_SOURCE_PAGE, NULL);
}
