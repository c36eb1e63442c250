/* A column of the gutter with one sign a line, as in the list that explains static functions:
 * it ran only while tracing before it is guarded, and a guard that failed before one that held.
 * SPDX-License-Identifier: MIT */
#include "widgets/td-source-marks.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "widgets/td-scene-view.h"

typedef enum
{
  MARK_GUARD,
  MARK_FAILED,
  MARK_ONCE
} Kind;

static const struct
{
  const char *glyph;
  TdRole role;
} looks[] = {
  [MARK_GUARD] = { "✓", TD_ROLE_ADDED },
  [MARK_FAILED] = { "✕", TD_ROLE_ERROR },
  [MARK_ONCE] = { "⚠", TD_ROLE_WARNING },
};

typedef struct
{
  Kind kind;
  char *text;
} Mark;

static void
mark_free (gpointer data)
{
  g_free (((Mark *)data)->text);
  g_free (data);
}

static GHashTable *
marks_of (gpointer self)
{
  return g_object_get_data (G_OBJECT (self), "marks");
}

static void
query_data (GtkSourceGutterRenderer *self, GtkSourceGutterLines *lines, guint line)
{
  const Mark *mark = g_hash_table_lookup (marks_of (self), GUINT_TO_POINTER (line + 1));
  g_autofree char *markup = NULL;
  if (mark)
    {
      TdColor c = td_scene_view_get_theme ()->color[looks[mark->kind].role];
      markup
          = g_strdup_printf ("<span foreground=\"#%02x%02x%02x\">%s</span>", (guint)(c.r * 255),
                             (guint)(c.g * 255), (guint)(c.b * 255), looks[mark->kind].glyph);
    }
  gtk_source_gutter_renderer_text_set_markup (GTK_SOURCE_GUTTER_RENDERER_TEXT (self),
                                              markup ? markup : "", -1);
}

static gboolean
query_tooltip (GtkWidget *widget, int x, int y, gboolean keyboard, GtkTooltip *tooltip,
               gpointer data)
{
  GtkTextView *view = GTK_TEXT_VIEW (
      gtk_source_gutter_renderer_get_view (GTK_SOURCE_GUTTER_RENDERER (widget)));
  GtkTextIter at;
  int by;
  gtk_text_view_window_to_buffer_coords (view, GTK_TEXT_WINDOW_LEFT, x, y, NULL, &by);
  gtk_text_view_get_line_at_y (view, &at, by, NULL);
  const char *text = td_source_marks_get (GTK_SOURCE_GUTTER_RENDERER (widget),
                                          (guint)gtk_text_iter_get_line (&at) + 1);
  gtk_tooltip_set_text (tooltip, text);
  return text != NULL;
}

GtkSourceGutterRenderer *
td_source_marks_new (GtkSourceView *view)
{
  GtkSourceGutterRenderer *self = gtk_source_gutter_renderer_text_new ();
  int width = 0;
  g_object_set_data_full (G_OBJECT (self), "marks",
                          g_hash_table_new_full (NULL, NULL, NULL, mark_free),
                          (GDestroyNotify)g_hash_table_unref);
  g_signal_connect (self, "query-data", G_CALLBACK (query_data), NULL);
  gtk_widget_set_has_tooltip (GTK_WIDGET (self), TRUE);
  g_signal_connect (self, "query-tooltip", G_CALLBACK (query_tooltip), NULL);
  gtk_source_gutter_insert (gtk_source_view_get_gutter (view, GTK_TEXT_WINDOW_LEFT), self, 0);
  gtk_source_gutter_renderer_text_measure (GTK_SOURCE_GUTTER_RENDERER_TEXT (self), "⚠", &width,
                                           NULL);
  gtk_widget_set_size_request (GTK_WIDGET (self), width + 6, -1);
  gtk_source_gutter_renderer_set_xpad (self, 3);
  gtk_widget_set_visible (GTK_WIDGET (self), FALSE);
  return self;
}

static gboolean
same_file (const char *a, const char *b)
{
  g_autofree char *x = g_path_get_basename (a);
  g_autofree char *y = g_path_get_basename (b);
  return strcmp (x, y) == 0;
}

static void
add_row (GHashTable *marks, const TdExplainRow *row)
{
  Mark *mark = g_hash_table_lookup (marks, GUINT_TO_POINTER (row->line));
  Kind kind = row->section == TD_EXPLAIN_ONCE ? MARK_ONCE
              : row->n_misses > 0             ? MARK_FAILED
                                              : MARK_GUARD;
  g_autofree char *what = g_utf8_make_valid (row->text ? row->text : row->title, -1);
  g_autofree char *text
      = row->section == TD_EXPLAIN_ONCE ? g_strdup_printf ("%s: %s", what, row->advice)
        : row->n_misses > 0 ? g_strdup_printf ("Guarded, failed %u %s: %s", row->n_misses,
                                               td_plural (row->n_misses, "time", "times"), what)
                            : g_strdup_printf (_ ("Guarded: %s"), what);
  if (!mark)
    {
      mark = g_new0 (Mark, 1);
      mark->kind = kind;
      g_hash_table_insert (marks, GUINT_TO_POINTER (row->line), mark);
    }
  char *longer = mark->text ? g_strdup_printf ("%s\n%s", mark->text, text) : g_strdup (text);
  g_free (mark->text);
  mark->text = longer;
  mark->kind = MAX (mark->kind, kind);
}

void
td_source_marks_set (GtkSourceGutterRenderer *self, const GArray *rows, const char *file)
{
  GHashTable *marks = marks_of (self);
  g_hash_table_remove_all (marks);
  for (guint i = 0; rows && file && i < rows->len; i++)
    {
      const TdExplainRow *row = &g_array_index (rows, TdExplainRow, i);
      if (row->line > 0 && same_file (row->file, file))
        add_row (marks, row);
    }
  gtk_widget_set_visible (GTK_WIDGET (self), g_hash_table_size (marks) > 0);
  gtk_widget_queue_draw (GTK_WIDGET (self));
}

const char *
td_source_marks_get (GtkSourceGutterRenderer *self, guint line)
{
  const Mark *mark = g_hash_table_lookup (marks_of (self), GUINT_TO_POINTER (line));
  return mark ? mark->text : NULL;
}
