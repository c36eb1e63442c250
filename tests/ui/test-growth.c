/* Finding out why memory grows: a program that adds up its losses is recorded, and the Memory
 * page says which handle keeps what, by what way, and goes there.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <string.h>

#include "memory/td-holders.h"

static char *tape; /* recorded once for all tests */

static void
record (void)
{
  const char *program = td_test_program ("app/tapedeck");
  if (tape)
    return;
  g_autofree char *folder = g_strdup (td_test_build ("tests/ui/pictures"));
  g_mkdir_with_parents (folder, 0755);
  tape = g_build_filename (folder, "growth.tdtape", NULL);
  TdTestChild child = TD_TEST_RUN (program, "run", "-f", "--quiet", "--iterations", "40", "-o",
                                   tape, td_test_source ("tests/models/leaks.c"), "total");
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

static void
open_leak (void)
{
  record ();
  ui_test_resize (1440, 900);
  ui_test_open (tape);
  ui_test_do ("show-page", "memory");
  ui_test_settle ();
}

static char *
dump (const char *page)
{
  TdScene *scene = td_scene_view_get_scene (TD_SCENE_VIEW (ui_test_named (page)));
  assert_non_null (scene);
  return td_scene_dump (scene);
}

static gboolean
move (const char *page, int delta)
{
  gboolean taken = FALSE;
  g_signal_emit_by_name (ui_test_named (page), "moved", delta, &taken);
  ui_test_settle ();
  return taken;
}

static guint
line_of (const char *text)
{
  g_autofree char *source = td_test_read_file (td_test_source ("tests/models/leaks.c"), NULL);
  const char *at = strstr (source, text);
  guint line = 1;
  assert_non_null (at);
  for (const char *c = source; c < at; c++)
    line += *c == '\n';
  return line;
}

/* The same words as those of `tapedeck leaks`. */
static void
growth__sentence_at_the_top_names_handle_line_and_nodes (void **state)
{
  int last = -1;
  open_leak ();
  const char *text = gtk_label_get_text (GTK_LABEL (ui_test_named ("growth-sentence")));
  g_autofree char *held = g_strdup_printf ("held by handle `kept[0]` (leaks.c:%u) retains ",
                                           line_of ("kept[0] = td_retain (before"));
  assert_int_equal (sscanf (text, "After iteration %d: ", &last), 1);
  g_autofree char *nodes
      = g_strdup_printf (" through %d graph nodes of %d iterations; take the "
                         "number",
                         6 * last + 5, last + 1);
  assert_contains (text, held);
  assert_contains (text, nodes);
  assert_true (gtk_widget_get_mapped (ui_test_named ("growth-sentence")));
}

/* A program that ran out of memory and went on: where, who held it, what would help. */
static void
growth__sentence_says_first_where_memory_ran_out (void **state)
{
  g_autofree char *path = g_strdup (td_test_tmp ("oom.tdtape"));
  TdTestChild child
      = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "-f", "--quiet", "--mem-limit",
                     "12000000", "-o", path, td_test_source ("tests/models/grows.c"), "8000");
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  ui_test_resize (1440, 900);
  ui_test_open (path);
  ui_test_do ("show-page", "memory");
  ui_test_settle ();
  const char *text = gtk_label_get_text (GTK_LABEL (ui_test_named ("growth-sentence")));
  assert_true (
      g_str_has_prefix (text, "Memory ran out in iteration 4, event 1: forward relu at "));
  assert_contains (text, "wanted 8.19 MB on cpu; ");
  assert_contains (text, " of activation net/l1, made by linear at ");
  assert_contains (text, " Would help, as estimated: a batch of ");
  assert_true (gtk_widget_get_mapped (ui_test_named ("growth-sentence")));
}

static void
growth__rows_are_by_holder_or_by_site (void **state)
{
  open_leak ();
  g_autofree char *by_holder = dump ("growth");
  assert_contains (by_holder, "handle `kept[0]` (leaks.c:");
  assert_contains (by_holder, "⚠");
  gtk_drop_down_set_selected (GTK_DROP_DOWN (ui_test_named ("growth-by")), 1);
  ui_test_settle ();
  g_autofree char *by_site = dump ("growth");
  g_autofree char *relu
      = g_strdup_printf ("activation of relu (leaks.c:%u)", line_of ("td_relu ("));
  assert_contains (by_site, relu);
  gtk_drop_down_set_selected (GTK_DROP_DOWN (ui_test_named ("growth-by")), 0);
}

/* Down goes into the open row; the way is told from the handle to the array. */
static void
holders__are_walked_by_keys_and_lead_to_the_graph (void **state)
{
  open_leak ();
  g_autofree char *before = dump ("holders");
  assert_contains (before, "handle `kept[0]` (leaks.c:");
  assert_contains (before, "Retained");
  assert_true (move ("holders", 1));
  g_autofree char *after = dump ("holders");
  assert_string_not_equal (before, after);
  assert_contains (after, " → ");
  assert_true (move ("holders", 0)); /* Return */
  assert_string_equal (td_workspace_get_perspective (ui_test_workspace ()), "debug");
  guint n;
  assert_non_null (td_session_get_selection (ui_test_session (), &n));
  assert_int_equal (n, 1);
}

static gboolean
line_is_on_show (gpointer data)
{
  TdSourcePage *source = td_workspace_get_source (ui_test_workspace ());
  GtkTextView *view = GTK_TEXT_VIEW (ui_test_find_named (GTK_WIDGET (source), "GtkSourceView"));
  GdkRectangle shown;
  GtkTextIter line;
  int y, height;
  gtk_text_buffer_get_iter_at_line (gtk_text_view_get_buffer (view), &line,
                                    (int)td_source_page_get_line (source) - 1);
  gtk_text_view_get_line_yrange (view, &line, &y, &height);
  gtk_text_view_get_visible_rect (view, &shown);
  return shown.height > height && y >= shown.y && y + height <= shown.y + shown.height;
}

static void
growth__show_source_goes_to_the_line_that_took_hold (void **state)
{
  open_leak ();
  GtkWidget *bar = gtk_widget_get_parent (ui_test_named ("growth-sentence"));
  GtkWidget *button = ui_test_find_button (bar, "Show Source");
  assert_non_null (button);
  g_signal_emit_by_name (button, "clicked");
  ui_test_settle ();
  assert_string_equal (td_workspace_get_perspective (ui_test_workspace ()), "debug");
  assert_int_equal (td_source_page_get_line (td_workspace_get_source (ui_test_workspace ())),
                    line_of ("kept[0] = td_retain (before"));
  ui_test_wait ("that line on show", line_is_on_show, NULL);
}

/* At an early iteration the list is what was there then. */
static void
holders__are_those_of_the_playhead (void **state)
{
  open_leak ();
  ui_test_do ("go-to", "i=3&e=0");
  ui_test_settle ();
  g_autofree char *early = dump ("holders");
  assert_contains (early, "Holder, after iteration 3");
}

/* A low window scrolls the page; the deck stays inside. */
static void
memory_page__never_pushes_the_deck_out (void **state)
{
  open_leak ();
  ui_test_resize (1024, 600);
  GtkWidget *content = gtk_widget_get_first_child (GTK_WIDGET (ui_test_workspace ()));
  int minimum;
  gtk_widget_measure (content, GTK_ORIENTATION_VERTICAL, 1024, &minimum, NULL, NULL, NULL);
  assert_true (minimum <= 600 - 47);
  assert_int_equal (gtk_widget_get_width (content), 1024);
}

/* How often a text has this word. */
static guint
count_of (const char *text, const char *word)
{
  guint n = 0;
  for (const char *at = strstr (text, word); at; at = strstr (at + 1, word))
    n++;
  return n;
}

/* One band for each row, also where the page is low: then beside the rows. The chosen one has
 * two edges in the colour of the selection. */
static void
growth__is_a_stack_of_its_rows (void **state)
{
  open_leak ();
  g_autofree char *before = dump ("growth");
  assert_contains (before, "iteration 0");
  assert_true (count_of (before, "polygon") >= 4); /* kept[0] and three gradients, at least */
  const guint accents = count_of (before, "accent");
  assert_true (move ("growth", 1));
  g_autofree char *after = dump ("growth");
  assert_int_equal (count_of (after, "accent"), accents + 2);
  assert_int_equal (count_of (after, "polygon"), count_of (before, "polygon"));
}

static void
growth__is_drawn_in_both_themes (void **state)
{
  open_leak ();
  ui_test_set_dark (FALSE);
  ui_test_settle ();
  ui_test_save_picture ("growth-light.png");
  assert_true (ui_test_has_many_colours (8));
  ui_test_set_dark (TRUE);
  ui_test_settle ();
  ui_test_save_picture ("growth-dark.png");
  assert_true (ui_test_has_many_colours (8));
  ui_test_set_dark (FALSE);
}

/* A tape without such marks says so, and the page has no sentence. */
static void
growth__says_that_an_old_recording_does_not_tell (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("show-page", "memory");
  ui_test_settle ();
  g_autofree char *growth = dump ("growth");
  assert_contains (growth, "does not say what outlived its iteration");
  assert_false (gtk_widget_get_mapped (ui_test_named ("growth-sentence")));
}

/* The iteration that the sentence is about; -1: it says nothing yet. */
static int
told_iteration (void)
{
  int iteration = -1;
  GtkWidget *label = ui_test_session () ? ui_test_named ("growth-sentence") : NULL;
  if (label)
    sscanf (gtk_label_get_text (GTK_LABEL (label)), "After iteration %d: ", &iteration);
  return iteration;
}

static gboolean
tells_more_than (gpointer iteration)
{
  return told_iteration () > GPOINTER_TO_INT (iteration);
}

static gboolean
tells_less_than (gpointer iteration)
{
  return told_iteration () < GPOINTER_TO_INT (iteration);
}

/* The rows of Growth begin at the first mark of the range. */
static gboolean
is_of_the_range (gpointer unused)
{
  TdRange range = td_session_get_range (ui_test_session ());
  g_autoptr (TdHolders) holders = td_holders_new_in (td_session_get_reader (ui_test_session ()),
                                                     range, TD_HOLDERS_BY_HOLDER);
  g_autofree char *words
      = g_strdup_printf ("\"iteration %" G_GINT64_FORMAT "\"", holders->marks[0].iteration);
  g_autofree char *rows = dump ("growth");
  return strstr (rows, words) != NULL;
}

/* It runs, and has run long enough to have grown. */
static gboolean
can_pause (gpointer n)
{
  TdSession *session = ui_test_session ();
  return session && td_session_get_n_iterations (session) >= GPOINTER_TO_UINT (n)
         && g_action_group_get_action_enabled (G_ACTION_GROUP (ui_test_window ()), "pause");
}

static gboolean
is_paused (gpointer unused)
{
  g_autofree char *state = ui_test_state ("state");
  return g_str_equal (state, "paused");
}

/* The sentence is of the range, up to its last iteration. */
static void
growth__sentence_of_a_range_is_of_its_last_iteration (void **state)
{
  open_leak ();
  ui_test_wait ("a sentence", tells_more_than, GINT_TO_POINTER (-1));
  assert_true (told_iteration () > 24);
  ui_test_do ("range", "5..24");
  ui_test_wait ("one of the range", tells_less_than, GINT_TO_POINTER (25));
  int told = told_iteration (); /* who keeps what is not recorded of all of them */
  g_autofree char *nodes
      = g_strdup_printf (" through %d graph nodes of %d iterations", 6 * told + 5, told + 1);
  assert_in_range (told, 5, 24);
  assert_contains (gtk_label_get_text (GTK_LABEL (ui_test_named ("growth-sentence"))), nodes);
}

/* Of ranges that follow one another at once not every one need be read from the tape, for that
 * may take long; the last of them is. */
static void
growth__shows_the_last_range_of_many (void **state)
{
  open_leak ();
  for (gint64 i = 0; i < 200; i++)
    {
      g_autofree char *drawn = NULL;
      td_session_set_range (ui_test_session (), (TdRange){ i % 8, 20 });
      drawn = dump ("growth");
      assert_non_null (drawn);
    }
  ui_test_wait ("the last range", is_of_the_range, NULL);
}

/* While the program runs the sentence goes on with it.  It waits for the first one. */
static void
growth__follows_a_running_program (void **state)
{
  g_autoptr (GFile) file = g_file_new_for_path (td_test_source ("tests/models/leaks.c"));
  const char *args[] = { "total", "100000", NULL };
  g_auto (GStrv) environment = g_get_environ ();
  td_test_program ("app/tapedeck");
  td_window_set_launch (ui_test_window (), (const char *const *)environment, td_test_tmp (""));
  td_window_run (ui_test_window (), file, args);
  ui_test_wait ("a program that can be paused", can_pause, GUINT_TO_POINTER (200));
  ui_test_do ("pause", NULL);
  ui_test_wait ("a paused program", is_paused, NULL);
  ui_test_do ("show-page", "memory");
  ui_test_wait ("a sentence", tells_more_than, GINT_TO_POINTER (-1));
  ui_test_do ("play", NULL);
  ui_test_wait ("a later one", tells_more_than, GINT_TO_POINTER (told_iteration ()));
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (growth__sentence_at_the_top_names_handle_line_and_nodes),
    ui_test (growth__sentence_says_first_where_memory_ran_out),
    ui_test (growth__rows_are_by_holder_or_by_site),
    ui_test (holders__are_walked_by_keys_and_lead_to_the_graph),
    ui_test (growth__show_source_goes_to_the_line_that_took_hold),
    ui_test (holders__are_those_of_the_playhead),
    ui_test (memory_page__never_pushes_the_deck_out),
    ui_test (growth__is_a_stack_of_its_rows),
    ui_test (growth__is_drawn_in_both_themes),
    ui_test (growth__says_that_an_old_recording_does_not_tell),
    ui_test (growth__sentence_of_a_range_is_of_its_last_iteration),
    ui_test (growth__shows_the_last_range_of_many),
    ui_test (growth__follows_a_running_program),
  };

  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
