/* The manual: F1 opens it where the page that has the keyboard is told of, every topic can be
 * read, its keys and links are there, and what is searched is found.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <string.h>

#include "app/td-manual-window.h"
#include "pages/td-lesson.h"
#include "settings/td-keys.h"
#include "settings/td-manual.h"

static GtkWindow *
manual (void)
{
  g_autoptr (GListModel) windows = g_object_ref (gtk_window_get_toplevels ());
  for (guint i = 0; i < g_list_model_get_n_items (windows); i++)
    {
      g_autoptr (GtkWindow) window = g_list_model_get_item (windows, i);
      if (g_strcmp0 (gtk_window_get_title (window), "Help") == 0)
        return window;
    }
  return NULL;
}

static void
press_f1 (void)
{
  g_action_group_activate_action (G_ACTION_GROUP (ui_test_app ()), "help", NULL);
  ui_test_settle ();
  assert_non_null (manual ());
  assert_true (gtk_widget_get_visible (GTK_WIDGET (manual ())));
}

typedef gboolean (*Matches) (GtkWidget *widget, const char *text);

/* The first widget of the manual that matches. Owner: the window. */
static GtkWidget *
find_in (GtkWidget *widget, Matches matches, const char *text)
{
  if (matches (widget, text))
    return widget;
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child;
       child = gtk_widget_get_next_sibling (child))
    {
      GtkWidget *found = find_in (child, matches, text);
      if (found)
        return found;
    }
  return NULL;
}

static GtkWidget *
find (Matches matches, const char *text)
{
  GtkWidget *found = find_in (GTK_WIDGET (manual ()), matches, text);
  assert_non_null (found);
  return found;
}

static gboolean
is_search (GtkWidget *widget, const char *text)
{
  return GTK_IS_SEARCH_ENTRY (widget);
}

static gboolean
has_link (GtkWidget *widget, const char *link)
{
  return GTK_IS_LABEL (widget) && strstr (gtk_label_get_label (GTK_LABEL (widget)), link);
}

static const char *
title (void)
{
  return gtk_label_get_text (GTK_LABEL (find (gtk_widget_has_css_class, "title-2")));
}

static void
f1__opens_the_topic_of_the_page_that_has_the_keyboard (void **state)
{
  press_f1 ();
  assert_string_equal (title (), "The First Minute");
  gtk_window_close (manual ());
  ui_test_open_sample (NULL);
  ui_test_resize (1440, 900);
  gtk_widget_grab_focus (
      GTK_WIDGET (td_graph_page_get_view (td_workspace_get_graph (ui_test_workspace ()))));
  press_f1 ();
  assert_string_equal (title (), "Stepping");
  gtk_window_close (manual ());
  ui_test_settle ();
  assert_false (gtk_widget_get_visible (GTK_WIDGET (manual ())));
  ui_test_do ("show-page", "memory");
  press_f1 ();
  assert_string_equal (title (), "Why Memory Grows");
  ui_test_save_picture ("manual-parent");
  gtk_window_close (manual ());
}

/* What stands between < and > of markup, one after the other. */
static char *
next_link (const char **at)
{
  static const char open[] = "<a href=\"";
  const char *begin = strstr (*at, open);
  if (!begin)
    return NULL;
  begin += strlen (open);
  const char *end = strchr (begin, '"');
  assert_non_null (end);
  *at = end;
  return g_strndup (begin, (gsize)(end - begin));
}

/* Where this was built without MPI there is no lesson of ranks, and the topic says so. */
static gboolean
has_lesson (const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TdLesson) lesson = td_lesson_find (name, &error);
  return lesson != NULL;
}

static gboolean
is_topic (const char *name)
{
  return g_strv_contains (td_manual_names (), name);
}

static int
check_links (const char *markup)
{
  int n = 0;
  char *link;
  while ((link = next_link (&markup)))
    {
      if (!(g_str_has_prefix (link, "lesson:") && has_lesson (link + 7))
          && !(g_str_has_prefix (link, "help:") && is_topic (link + 5)))
        fail_msg ("a link leads nowhere: %s", link);
      n++;
      g_free (link);
    }
  return n;
}

/* Keys are in bold; an action that has none would stand there by its name. */
static void
check_words (const TdManualTopic *topic, const TdManualBlock *block)
{
  g_autoptr (GError) error = NULL;
  if (strstr (block->markup, "win.") || strstr (block->markup, "app."))
    fail_msg ("%s: an action without a key in \"%s\"", topic->name, block->markup);
  if (block->kind == TD_MANUAL_COMMANDS)
    return;
  static const GMarkupParser parser;
  g_autoptr (GMarkupParseContext) context = g_markup_parse_context_new (&parser, 0, NULL, NULL);
  g_autofree char *whole = g_strdup_printf ("<p>%s</p>", block->markup);
  if (!g_markup_parse_context_parse (context, whole, -1, &error)
      || !g_markup_parse_context_end_parse (context, &error))
    fail_msg ("%s: %s: %s", topic->name, error->message, block->markup);
  assert_null (strpbrk (block->markup, "`{}"));
}

static void
manual__has_topics_whose_links_and_keys_are_there (void **state)
{
  const char *const *names = td_manual_names ();
  int n_links = 0, n_keys = 0;
  for (guint i = 0; names[i]; i++)
    {
      g_autoptr (TdManualTopic) topic = td_manual_read (names[i]);
      assert_true (topic->n_blocks >= 3);
      assert_true (g_utf8_strlen (topic->title, -1) > 4);
      for (guint k = 0; k < topic->n_blocks; k++)
        {
          check_words (topic, &topic->blocks[k]);
          n_links += check_links (topic->blocks[k].markup);
          n_keys += strstr (topic->blocks[k].markup, "<b>") != NULL;
        }
    }
  assert_true (n_links >= 8);
  assert_true (n_keys >= 10);
}

static GtkListBox *
topics (void)
{
  return GTK_LIST_BOX (find (gtk_widget_has_css_class, "navigation-sidebar"));
}

static int
n_found (void)
{
  int n = 0;
  GtkListBoxRow *row;
  for (int i = 0; (row = gtk_list_box_get_row_at_index (topics (), i)); i++)
    n += gtk_widget_get_child_visible (GTK_WIDGET (row));
  return n;
}

static void
manual__finds_words (void **state)
{
  press_f1 ();
  GtkEditable *search = GTK_EDITABLE (find (is_search, ""));
  const int all = n_found ();
  assert_true (all >= 9);
  gtk_editable_set_text (search, "bfloat16");
  ui_test_settle ();
  assert_int_equal (n_found (), 1);
  assert_string_equal (title (), "Leaving, at Any Time");
  gtk_editable_set_text (search, "no such words");
  ui_test_settle ();
  assert_int_equal (n_found (), 0);
  gtk_editable_set_text (search, "");
  ui_test_settle ();
  assert_int_equal (n_found (), all);
  gtk_window_close (manual ());
}

static gboolean
is_open (gpointer data)
{
  return td_window_is_empty (ui_test_window ()) == FALSE;
}

static void
manual__link_begins_a_lesson (void **state)
{
  gboolean handled = FALSE;
  press_f1 ();
  GtkWidget *label = find (has_link, "lesson:first-network");
  g_signal_emit_by_name (label, "activate-link", "lesson:first-network", &handled);
  assert_true (handled);
  ui_test_wait ("the lesson's recording", is_open, NULL);
  assert_false (gtk_widget_get_visible (GTK_WIDGET (manual ())));
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (f1__opens_the_topic_of_the_page_that_has_the_keyboard),
    ui_test (manual__has_topics_whose_links_and_keys_are_there),
    ui_test (manual__finds_words),
    ui_test (manual__link_begins_a_lesson),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
