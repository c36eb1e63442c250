/* The start page. Lessons are read from their files; examples are the models that are found;
 * recordings come from the desktop's list of recent files and show a line of loss and one of
 * memory read from the tape.
 * SPDX-License-Identifier: MIT */
#include "pages/td-start-page.h"

#include <glib/gi18n-lib.h>

#include "live/td-runs.h"
#include "pages/td-recent-row.h"
#include "pages/td-lesson-picture.h"
#include "pages/td-lesson.h"
#include "settings/td-data.h"
#include "settings/td-settings.h"

#define MAX_RECENT 12

struct _TdStartPage
{
  AdwBin parent;
  GtkWidget *lessons_box, *examples_box, *recent_box;
  GtkFlowBox *lessons, *examples;
  GtkLabel *faults; /* lessons that cannot be read */
  GtkListBox *recent;
  GtkLabel *runs; /* what they take */
};

enum
{
  OPEN,
  N_SIGNALS
};
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE (TdStartPage, td_start_page, ADW_TYPE_BIN)

static const struct
{
  const char *file, *picture, *title, *text;
  const char *action; /* NULL: open the file */
} examples[] = {
  { "mlp.c", "network", N_ ("Digits"), N_ ("Two layers, as they are trained") },
  { "dynamic_graph.c", "branch", N_ ("Dynamic Branch"),
    N_ ("Relu or sigmoid: the graph is what ran") },
  { "lenet.c", "tiles", N_ ("Convolutions"),
    N_ ("LeNet-5: filters, pooling and their gradients") },
  { "char_lstm.c", "chain", N_ ("Through Time"),
    N_ ("An LSTM unrolled over the letters of a text") },
  { "static_graph.c", "pair", N_ ("Static vs Dynamic"),
    N_ ("Two graphs side by side, call by call"), "win.lesson-compare" },
  { "static_mlp.c", "schedule", N_ ("Static Graph"),
    N_ ("Traced once: its schedule, and what ran once") },
  /* There once a training on a GPU has been recorded. */
  { "on_a_gpu.tdtape", "network", N_ ("On a GPU"),
    N_ ("The first network as a GPU ran it: streams, copies") },
};

static void
open_path (TdStartPage *self, const char *path)
{
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_signal_emit (self, signals[OPEN], 0, file);
}

static void
example_clicked (GtkButton *button, TdStartPage *self)
{
  open_path (self, g_object_get_data (G_OBJECT (button), "path"));
}

/* Three cards stand side by side in a usual window, whatever they say. */
static GtkWidget *
new_label (const char *text, const char *style, int width)
{
  GtkWidget *label = gtk_label_new (text);
  gtk_label_set_xalign (GTK_LABEL (label), 0);
  gtk_label_set_wrap (GTK_LABEL (label), TRUE);
  gtk_label_set_max_width_chars (GTK_LABEL (label), width);
  gtk_label_set_width_chars (GTK_LABEL (label), width);
  gtk_widget_add_css_class (label, style);
  return label;
}

static GtkWidget *
new_card (const char *picture, const char *title, const char *words)
{
  GtkWidget *row = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 12);
  gtk_box_append (GTK_BOX (row), td_lesson_picture_new (picture));
  GtkWidget *column = gtk_box_new (GTK_ORIENTATION_VERTICAL, 3);
  gtk_widget_set_valign (column, GTK_ALIGN_CENTER);
  gtk_widget_set_hexpand (column, TRUE);
  gtk_box_append (GTK_BOX (column), new_label (title, "heading", 14));
  GtkWidget *text = new_label (words, "caption", 18);
  gtk_widget_add_css_class (text, "dim-label");
  gtk_box_append (GTK_BOX (column), text);
  gtk_box_append (GTK_BOX (row), column);

  GtkWidget *button = gtk_button_new ();
  gtk_button_set_child (GTK_BUTTON (button), row);
  gtk_widget_add_css_class (button, "card");
  gtk_widget_add_css_class (button, "td-lesson");
  gtk_accessible_update_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, title,
                                  GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, words, -1);
  return button;
}

static void
add_card (GtkFlowBox *box, GtkWidget *card)
{
  gtk_flow_box_append (box, card);
  gtk_widget_set_focusable (gtk_widget_get_last_child (GTK_WIDGET (box)), FALSE);
}

/* One that cannot be read is a line below the others. */
static void
add_lessons (TdStartPage *self)
{
  g_auto (GStrv) files = td_lesson_list_files ();
  g_autoptr (GString) faults = g_string_new (NULL);
  for (guint i = 0; files[i]; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (TdLesson) lesson = td_lesson_load (files[i], &error);
      if (!lesson)
        {
          g_string_append_printf (faults, "%s%s", faults->len ? "\n" : "", error->message);
          continue;
        }
      GtkWidget *card = new_card (lesson->picture, lesson->title, lesson->summary);
      gtk_widget_set_name (card, lesson->name);
      gtk_actionable_set_action_name (GTK_ACTIONABLE (card), "win.lesson");
      gtk_actionable_set_action_target (GTK_ACTIONABLE (card), "s", lesson->name);
      add_card (self->lessons, card);
    }
  gtk_label_set_text (self->faults, faults->str);
  gtk_widget_set_visible (GTK_WIDGET (self->faults), faults->len > 0);
  gtk_widget_set_visible (self->lessons_box, files[0] != NULL);
}

static void
add_examples (TdStartPage *self)
{
  for (guint i = 0; i < G_N_ELEMENTS (examples); i++)
    {
      char *path = td_data_find ("examples", examples[i].file);
      if (!path)
        continue;
      GtkWidget *card
          = new_card (examples[i].picture, _ (examples[i].title), _ (examples[i].text));
      g_object_set_data_full (G_OBJECT (card), "path", path, g_free);
      if (examples[i].action)
        gtk_actionable_set_action_name (GTK_ACTIONABLE (card), examples[i].action);
      else
        g_signal_connect (card, "clicked", G_CALLBACK (example_clicked), self);
      add_card (self->examples, card);
    }
  gtk_widget_set_visible (self->examples_box,
                          gtk_flow_box_get_child_at_index (self->examples, 0) != NULL);
}

/* A recording, or a folder of them that was opened here. */
static gboolean
is_recording (GtkRecentInfo *info, const char *path)
{
  return g_str_has_suffix (path, ".tdtape")
         || (g_str_equal (gtk_recent_info_get_mime_type (info), "inode/directory")
             && gtk_recent_info_has_application (info, "tapedeck"));
}

static int
by_age (gconstpointer a, gconstpointer b)
{
  return g_date_time_compare (gtk_recent_info_get_modified ((GtkRecentInfo *)b),
                              gtk_recent_info_get_modified ((GtkRecentInfo *)a));
}

static void
show_runs (TdStartPage *self)
{
  guint64 budget
      = td_settings_get () ? g_settings_get_uint64 (td_settings_get (), "runs-budget") : 0;
  guint64 bytes;
  guint n = td_runs_measure (&bytes);
  g_autofree char *size = g_format_size (bytes);
  g_autofree char *most = g_format_size (budget);
  g_autofree char *text
      = budget ? g_strdup_printf (ngettext ("%u run from the window: %s of %s",
                                            "%u runs from the window: %s of %s", n),
                                  n, size, most)
               : g_strdup_printf (
                   ngettext ("%u run from the window: %s", "%u runs from the window: %s", n), n,
                   size);
  gtk_label_set_text (self->runs, text);
  gtk_widget_set_visible (GTK_WIDGET (self->runs), n > 0);
}

void
td_start_page_refresh (TdStartPage *self)
{
  show_runs (self);
  GtkWidget *child;
  while ((child = GTK_WIDGET (gtk_list_box_get_row_at_index (self->recent, 0))))
    gtk_list_box_remove (self->recent, child);
  GList *items = gtk_recent_manager_get_items (gtk_recent_manager_get_default ());
  items = g_list_sort (items, by_age);
  int n = 0;
  for (GList *item = items; item && n < MAX_RECENT; item = item->next)
    {
      GtkRecentInfo *info = item->data;
      g_autofree char *path = g_filename_from_uri (gtk_recent_info_get_uri (info), NULL, NULL);
      if (!path || !is_recording (info, path) || !gtk_recent_info_exists (info))
        continue;
      gtk_list_box_append (self->recent,
                           td_recent_row_new (path, gtk_recent_info_get_modified (info)));
      n++;
    }
  g_list_free_full (items, (GDestroyNotify)gtk_recent_info_unref);
  gtk_widget_set_visible (self->recent_box, n > 0);
}

guint
td_start_page_get_n_recent (TdStartPage *self)
{
  guint n = 0;
  while (gtk_list_box_get_row_at_index (self->recent, (int)n))
    n++;
  return n;
}

static void
recent_activated (GtkListBox *list, GtkListBoxRow *row, TdStartPage *self)
{
  open_path (self, td_recent_row_get_path (GTK_WIDGET (row)));
}

static void
td_start_page_class_init (TdStartPageClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);
  gtk_widget_class_set_template_from_resource (
      widget_class, "/io/github/tapedeck/Tapedeck/pages/td-start-page.ui");
  gtk_widget_class_bind_template_child (widget_class, TdStartPage, lessons_box);
  gtk_widget_class_bind_template_child (widget_class, TdStartPage, lessons);
  gtk_widget_class_bind_template_child (widget_class, TdStartPage, faults);
  gtk_widget_class_bind_template_child (widget_class, TdStartPage, examples_box);
  gtk_widget_class_bind_template_child (widget_class, TdStartPage, examples);
  gtk_widget_class_bind_template_child (widget_class, TdStartPage, recent_box);
  gtk_widget_class_bind_template_child (widget_class, TdStartPage, recent);
  gtk_widget_class_bind_template_child (widget_class, TdStartPage, runs);
  gtk_widget_class_bind_template_callback (widget_class, recent_activated);
  signals[OPEN] = g_signal_new ("open", TD_TYPE_START_PAGE, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                NULL, G_TYPE_NONE, 1, G_TYPE_FILE);
}

static void
td_start_page_init (TdStartPage *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
  add_lessons (self);
  add_examples (self);
  g_signal_connect_object (gtk_recent_manager_get_default (), "changed",
                           G_CALLBACK (td_start_page_refresh), self, G_CONNECT_SWAPPED);
  td_start_page_refresh (self);
}

GtkWidget *
td_start_page_new (void)
{
  return g_object_new (TD_TYPE_START_PAGE, NULL);
}
