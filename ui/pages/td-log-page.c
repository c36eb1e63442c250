/* A text view that stays at its end while the end is in sight.
 * SPDX-License-Identifier: MIT */
#include "pages/td-log-page.h"

#include <glib/gi18n-lib.h>

#define MAX_LINES 10000
#define TRIM_LINES 1000

struct _TdLogPage
{
  GtkWidget parent;
  GtkWidget *scroller;
  GtkTextView *view;
  GtkTextTag *stderr_tag;
};

G_DEFINE_FINAL_TYPE (TdLogPage, td_log_page, GTK_TYPE_WIDGET)

void
td_log_page_append (TdLogPage *self, const char *line, gboolean is_stderr)
{
  GtkTextBuffer *buffer = gtk_text_view_get_buffer (self->view);
  GtkAdjustment *adjustment
      = gtk_scrolled_window_get_vadjustment (GTK_SCROLLED_WINDOW (self->scroller));
  gboolean at_end
      = gtk_adjustment_get_value (adjustment) + 4
        >= gtk_adjustment_get_upper (adjustment) - gtk_adjustment_get_page_size (adjustment);
  GtkTextIter end;
  gtk_text_buffer_get_end_iter (buffer, &end);
  gtk_text_buffer_insert_with_tags (buffer, &end, line, -1, is_stderr ? self->stderr_tag : NULL,
                                    NULL);
  gtk_text_buffer_insert (buffer, &end, "\n", 1);
  if (gtk_text_buffer_get_line_count (buffer) > MAX_LINES + TRIM_LINES)
    {
      GtkTextIter start, stop;
      gtk_text_buffer_get_start_iter (buffer, &start);
      gtk_text_buffer_get_iter_at_line (buffer, &stop, TRIM_LINES);
      gtk_text_buffer_delete (buffer, &start, &stop);
    }
  if (at_end)
    gtk_text_view_scroll_mark_onscreen (self->view, gtk_text_buffer_get_mark (buffer, "end"));
}

char *
td_log_page_dup_text (TdLogPage *self)
{
  GtkTextIter start, end;
  GtkTextBuffer *buffer = gtk_text_view_get_buffer (self->view);
  gtk_text_buffer_get_bounds (buffer, &start, &end);
  return gtk_text_buffer_get_text (buffer, &start, &end, FALSE);
}

static void
td_log_page_dispose (GObject *object)
{
  g_clear_pointer (&TD_LOG_PAGE (object)->scroller, gtk_widget_unparent);
  G_OBJECT_CLASS (td_log_page_parent_class)->dispose (object);
}

static void
td_log_page_class_init (TdLogPageClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = td_log_page_dispose;
  gtk_widget_class_set_layout_manager_type (GTK_WIDGET_CLASS (klass), GTK_TYPE_BIN_LAYOUT);
}

static void
td_log_page_init (TdLogPage *self)
{
  self->view = GTK_TEXT_VIEW (
      g_object_new (GTK_TYPE_TEXT_VIEW, "accessible-role", GTK_ACCESSIBLE_ROLE_LOG, NULL));
  gtk_text_view_set_editable (self->view, FALSE);
  gtk_text_view_set_monospace (self->view, TRUE);
  gtk_text_view_set_left_margin (self->view, 12);
  gtk_text_view_set_right_margin (self->view, 12);
  gtk_widget_add_css_class (GTK_WIDGET (self->view), "td-log");
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->view), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Output of the program"), -1);
  GtkTextBuffer *buffer = gtk_text_view_get_buffer (self->view);
  GtkTextIter end;
  gtk_text_buffer_get_end_iter (buffer, &end);
  gtk_text_buffer_create_mark (buffer, "end", &end, FALSE);
  self->stderr_tag = gtk_text_buffer_create_tag (buffer, NULL, "style", PANGO_STYLE_ITALIC,
                                                 "weight", PANGO_WEIGHT_BOLD, NULL);
  self->scroller = gtk_scrolled_window_new ();
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (self->scroller), GTK_WIDGET (self->view));
  gtk_widget_set_parent (self->scroller, GTK_WIDGET (self));
}

GtkWidget *
td_log_page_new (void)
{
  return g_object_new (TD_TYPE_LOG_PAGE, NULL);
}
