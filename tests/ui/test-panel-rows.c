/* Rows of the list of features that are about panels, in the window: numbers and histograms
 * without values, rules of gradients, the way of a NaN, gradients that are missing, memory at
 * its peak, lanes and gaps of time, and that a recording is thinned.
 *
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <glib/gstdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory/td-memory.h"
#include "pages/td-graph-page.h"
#include "settings/td-settings.h"

static char *
dump (const char *panel, const char *page)
{
  ui_test_settle ();
  return td_scene_dump (td_scene_view_get_scene (ui_test_panel_scene_view (panel, page)));
}

static guint
count_lines (const char *text, const char *a, const char *b)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  guint n = 0;
  for (char **line = lines; *line; line++)
    n += strstr (*line, a) && strstr (*line, b);
  return n;
}

/* ---- tensors ---- */

static TdTensorPanel *
tensor (void)
{
  return td_inspector_get_panel (td_workspace_get_inspector (ui_test_workspace ()));
}

static char *
dump_tensor (const char *moment)
{
  ui_test_do ("go-to", moment);
  ui_test_do ("show-page", "value");
  ui_test_settle ();
  return td_scene_dump (
      td_scene_view_get_scene (TD_SCENE_VIEW (td_tensor_panel_get_picture (tensor ()))));
}

/* With values the numbers are of them, else those that were recorded; either are said. */
static void
value__has_histogram_and_numbers_with_values_and_without (void **state)
{
  char text[TD_FORMAT_SIZE];
  ui_test_resize (1440, 1000);
  ui_test_open_sample (NULL);
  g_free (dump_tensor ("i=59&e=28")); /* and of a part of it, of which nothing was recorded */
  td_tensor_panel_set_slice (tensor (), "[3]");
  g_autofree char *values = dump_tensor ("i=59&e=28");
  const TdTensor *t = td_tensor_panel_get_shown (tensor ());
  double least = INFINITY, most = -INFINITY, square = 0;
  for (guint64 i = 0; i < t->n_values; i++)
    {
      least = MIN (least, t->values[i]);
      most = MAX (most, t->values[i]);
      square += t->values[i] * t->values[i];
    }
  const double numbers[] = { least, most, sqrt (square) };
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    assert_contains (values, td_format_honest (text, numbers[i], TD_HONEST_EXACT));
  assert_contains (values, "values\"");
  td_tensor_panel_set_slice (tensor (), "");
  g_autofree char *stats = dump_tensor ("i=5&e=28");
  t = td_tensor_panel_get_tensor (tensor ());
  assert_true (t->has_stats && !t->values);
  assert_contains (stats, td_format_honest (text, t->stats.min, TD_HONEST_EXACT));
  assert_contains (stats, td_format_honest (text, t->stats.l2, TD_HONEST_EXACT));
  assert_contains (stats, "magnitudes\"");
  static const char *const names[] = { "min", "max", "mean", "zero", "NaN", "±Inf" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree char *word = g_strdup_printf ("\"%s\"", names[i]);
      assert_contains (values, word);
      assert_contains (stats, word);
    }
  ui_test_save_picture ("value-stats.png");
}

/* ---- gradients ---- */

static void
record_findings (void)
{
  const char *tape = td_test_tmp ("findings.tdtape");
  TdTestChild child = TD_TEST_RUN (
      td_test_program ("app/tapedeck"), "run", "-f", "--quiet", "--level", "stats", "-o", tape,
      td_test_program ("tests/app/model-findings"), "0", "0", "1", "0");
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  ui_test_resize (1440, 900);
  ui_test_open (tape);
}

static void
findings__follow_the_rules_of_the_preferences (void **state)
{
  record_findings ();
  ui_test_do ("show-page", "gradients");
  g_autofree char *usual = dump ("gradients", "findings");
  assert_contains (usual, "Missing: 4 of 11 parameters");
  assert_contains (usual, "\"free/l/W\"");
  g_settings_set_string (td_settings_get (), "gradient-rules", "missing off, not-updated off");
  ui_test_do ("previous-iteration", NULL);
  g_autofree char *less = dump ("gradients", "findings");
  assert_contains (less, "Dead: 1 of 11 parameters");
  assert_not_contains (less, "Missing");
  assert_not_contains (less, "free/l/W");
  g_settings_reset (td_settings_get (), "gradient-rules");
  ui_test_do ("next-iteration", NULL);
  g_autofree char *again = dump ("gradients", "findings");
  assert_contains (again, "Missing: 4 of 11 parameters");
}

static void
missing__says_which_way_is_cut_and_what_was_not_used (void **state)
{
  record_findings ();
  ui_test_do ("show-page", "gradients");
  g_autofree char *text = dump ("gradients", "missing");
  assert_contains (text, "unused/W\"");
  assert_contains (text, "not used in the forward pass");
  assert_contains (text, "cut/W\"");
  assert_contains (text, "the path from the loss is cut");
  assert_not_contains (text, "\"used/W\"");
  assert_not_contains (text, "\"net/used/W\"");
  ui_test_save_picture ("missing-gradients.png");
}

/* All of the way from where it was born to where one was is selected, and drawn. */
static void
nan__its_way_is_drawn_in_the_graph (void **state)
{
  guint n;
  ui_test_resize (1440, 900);
  ui_test_open_sample (&(SampleOptions){ .n_iterations = SAMPLE_ITERATIONS, .nan_at = 30 });
  ui_test_do ("go-to", "i=30&e=30");
  ui_test_do ("expand-all", NULL);
  ui_test_do ("where-from", NULL);
  ui_test_wait_for_layout ();
  assert_int_equal (td_session_get_moment (ui_test_session ()).iteration, 30);
  assert_true (td_session_get_moment (ui_test_session ()).event < 30);
  td_session_get_selection (ui_test_session (), &n);
  assert_true (n > 2);
  TdGraphView *view = td_graph_page_get_view (td_workspace_get_graph (ui_test_workspace ()));
  g_autofree char *text = td_scene_dump (td_graph_view_get_scene (view));
  assert_in_range (count_lines (text, "[node ", "stroke=accent"), n - 1, n + 1);
  ui_test_save_picture ("nan-way.png");
}

/* ---- memory and time ---- */

/* The peak is marked; pressed it is where one is, and the legend says what was alive then. */
static void
memory__says_what_was_alive_at_the_peak (void **state)
{
  char bytes[TD_FORMAT_SIZE];
  TdSceneHit hit;
  gboolean found = FALSE;
  ui_test_resize (1440, 900);
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=59&e=3");
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  TdMemoryProfile *profile = td_memory_profile_new (it);
  TdSceneView *view = ui_test_panel_scene_view ("memory", "events");
  TdScene *scene = td_scene_view_get_scene (view);
  double x = 0, y = 0;
  for (y = 2; y < td_scene_height (scene) && !found; y += found ? 0 : 2)
    for (x = 2; x < td_scene_width (scene) && !found; x += found ? 0 : 2)
      found = td_scene_hit (scene, x, y, 0, &hit) && hit.tag == TD_TAG_EVENT;
  assert_true (found);
  assert_int_equal (hit.data, profile->peak_event);
  g_autofree char *words
      = g_strdup_printf ("peak %s", td_format_bytes (bytes, profile->peak_bytes));
  assert_contains (hit.tooltip, words);
  g_signal_emit_by_name (view, "pressed", &hit, x, y);
  ui_test_settle ();
  assert_in_range (td_session_get_moment (ui_test_session ()).event,
                   (gint)profile->peak_event - 1, profile->peak_event + 1);
  td_session_set_moment (ui_test_session (), 59, (gint)profile->peak_event);
  g_autofree char *text = dump ("memory", "events");
  for (guint c = 0; c < TD_TAPE_N_CATEGORIES; c++)
    if (profile->bytes[c][profile->peak_event] > 0)
      {
        td_format_bytes (bytes, profile->bytes[c][profile->peak_event]);
        assert_contains (text, td_category_label (c));
        assert_contains (text, bytes);
      }
  assert_true (count_lines (text, "polygon", "[category ") >= 3);
  ui_test_save_picture ("memory-peak.png");
  td_memory_profile_free (profile);
}

static void
timeline__has_lanes_of_the_host_and_names_gaps (void **state)
{
  static const char *const names[] = { "Forward", "Backward", "Update" };
  record_findings ();
  ui_test_do ("show-page", "schedule");
  TdSceneView *view = ui_test_panel_scene_view ("schedule", "timeline");
  g_autofree char *text = dump ("schedule", "timeline");
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree char *word = g_strdup_printf ("\"%s\"", names[i]);
      assert_contains (text, word);
    }
  TdScene *scene = td_scene_view_get_scene (view);
  TdSceneHit hit;
  guint n = 0;
  for (double y = 2; y < td_scene_height (scene); y += 4)
    for (double x = 80; x < td_scene_width (scene); x += 2)
      n += td_scene_hit (scene, x, y, 0, &hit) && hit.tag == TD_TAG_LANE && hit.tooltip
           && (strstr (hit.tooltip, "between operations") || strstr (hit.tooltip, "before "));
  assert_true (n > 0);
}

/* ---- what is saved ---- */

/* The chart that has the keyboard; without one nothing is written. */
static void
charts__are_saved_as_svg_pdf_and_png (void **state)
{
  static const struct
  {
    const char *page, *panel, *picture, *file, *begins;
  } rows[] = { { "debug", "memory", "events", "memory.svg", "<svg" },
               { "debug", "gradients", "heatmap", "gradients.pdf", "%PDF" },
               { "debug", "schedule", "timeline", "timeline.png", "\x89PNG" },
               { "curves", "curves", "curves", "curves.svg", "<svg" } };
  ui_test_resize (1440, 900);
  ui_test_open_sample (NULL);
  gtk_window_set_focus (GTK_WINDOW (ui_test_window ()), NULL);
  ui_test_do ("save-panel", td_test_tmp ("none.svg"));
  assert_false (g_file_test (td_test_tmp ("none.svg"), G_FILE_TEST_EXISTS));
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autofree char *text = NULL;
      ui_test_do ("show-page", rows[i].page);
      TdSceneView *view = ui_test_panel_scene_view (rows[i].panel, rows[i].picture);
      assert_true (gtk_widget_grab_focus (GTK_WIDGET (view)));
      ui_test_do ("save-panel", td_test_tmp (rows[i].file));
      assert_true (g_file_get_contents (td_test_tmp (rows[i].file), &text, NULL, NULL));
      assert_non_null (strstr (text, rows[i].begins));
    }
  g_autofree char *memory = NULL;
  assert_true (g_file_get_contents (td_test_tmp ("memory.svg"), &memory, NULL, NULL));
  assert_contains (memory, "Activations"); /* text stays text */
}

/* Write the table of what has the keyboard; its first line begins so, and it has `n` at least.
 */
static void
assert_table (const char *begins, guint n)
{
  g_autofree char *text = NULL;
  const char *path = td_test_tmp ("table.csv");
  g_unlink (path);
  ui_test_do ("save-panel", path);
  if (!g_file_get_contents (path, &text, NULL, NULL))
    fail_msg ("no table that begins with %s", begins);
  if (!g_str_has_prefix (text, begins))
    fail_msg ("expected %s, not %.100s", begins, text);
  if (count_lines (text, "", "") < n + 2) /* titles, and behind the last line end */
    fail_msg ("fewer than %u lines: %.300s", n, text);
}

static void
tables__of_pictures_are_saved_as_csv (void **state)
{
  static const struct
  {
    const char *page, *panel, *picture, *begins;
    guint n;
  } rows[] = { { "debug", "memory", "events", "event,", 10 },
               { "debug", "memory", "iterations", "iteration,peak_bytes", 10 },
               { "debug", "memory", "blocks", "address,", 2 },
               { "debug", "gradients", "heatmap", "parameter,", 2 },
               { "debug", "gradients", "newest", "parameter,", 2 },
               { "debug", "gradients", "findings", "rule,", 0 },
               { "debug", "gradients", "ridge", "parameter,", 2 },
               { "debug", "schedule", "order", "event,", 10 },
               { "debug", "schedule", "timeline", "event,", 10 },
               { "debug", "schedule", "flame", "", 5 },
               { "curves", "curves", "curves", "key,iteration,value", 10 } };
  ui_test_resize (1440, 900);
  ui_test_open_sample (NULL);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      ui_test_do ("show-page", rows[i].page);
      TdSceneView *view = ui_test_panel_scene_view (rows[i].panel, rows[i].picture);
      ui_test_settle ();
      assert_true (gtk_widget_grab_focus (GTK_WIDGET (view)));
      assert_table (rows[i].begins, rows[i].n);
    }
}

static gboolean
is_table (GtkWidget *widget)
{
  return GTK_IS_COLUMN_VIEW (widget);
}

static GtkWidget *
find_table (GtkWidget *widget)
{
  GtkWidget *found = is_table (widget) ? widget : NULL;
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child && !found;
       child = gtk_widget_get_next_sibling (child))
    found = find_table (child);
  return found;
}

static void
focus_table (GtkWidget *page)
{
  GtkWidget *table = find_table (page);
  assert_non_null (table);
  assert_true (gtk_widget_child_focus (table, GTK_DIR_TAB_FORWARD));
}

/* And where a menu has taken the keyboard, of what had it before. */
static void
tables__of_rows_are_saved_as_csv (void **state)
{
  ui_test_resize (1440, 900);
  ui_test_open_sample (NULL);
  ui_test_do ("show-page", "iterations");
  ui_test_settle ();
  focus_table (GTK_WIDGET (td_workspace_get_iterations (ui_test_workspace ())));
  assert_table ("It.,Findings,Peak,ms", SAMPLE_ITERATIONS);
  ui_test_do ("show-page", "outline");
  ui_test_settle ();
  focus_table (GTK_WIDGET (td_workspace_get_outline (ui_test_workspace ())));
  assert_table ("Depth,Event,Layer or operation,Saved,ms", 20);
  gtk_menu_button_popup (
      GTK_MENU_BUTTON (ui_test_find_named (GTK_WIDGET (ui_test_window ()), "main-menu")));
  ui_test_settle ();
  assert_table ("Depth,Event,Layer or operation,Saved,ms", 20);
  ui_test_do ("filter", NULL);
  ui_test_settle ();
  TdFilterPage *filter = td_workspace_get_filter (ui_test_workspace ());
  td_filter_page_set_text (filter, "phase == backward");
  ui_test_settle ();
  focus_table (GTK_WIDGET (filter));
  assert_table ("Event,Operation,Layer,Where,Time,Output", 5);
}

/* ---- the recording ---- */

/* Of a long run on a small budget: from where on it is whole stands beside the scrubber. */
static void
deck__says_from_where_on_a_thinned_recording_is_whole (void **state)
{
  const char *tape = td_test_tmp ("thin.tdtape");
  TdTestChild child
      = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "-f", "--quiet", "--level",
                     "stats", "--iterations", "3000", "--tape-budget", "400K", "-o", tape,
                     td_test_source ("tests/ui/models/train.c"), td_test_tmp ("p"));
  assert_child_status (child, 0);
  td_test_child_clear (&child);
  ui_test_open (tape);
  ui_test_settle ();
  const char *text = gtk_label_get_text (GTK_LABEL (ui_test_named ("deck-status")));
  const char *from = strstr (text, "whole from ");
  TdTapeThinning t = td_tape_reader_thinning (td_session_get_reader (ui_test_session ()));
  assert_true (t.n_whole < t.n_summaries);
  if (!from)
    fail_msg ("it says %s", text);
  assert_int_equal (atoll (from + strlen ("whole from ")), t.first_whole);
  ui_test_open_sample (NULL);
  ui_test_settle ();
  assert_null (
      strstr (gtk_label_get_text (GTK_LABEL (ui_test_named ("deck-status"))), "whole from"));
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (value__has_histogram_and_numbers_with_values_and_without),
    ui_test (findings__follow_the_rules_of_the_preferences),
    ui_test (missing__says_which_way_is_cut_and_what_was_not_used),
    ui_test (nan__its_way_is_drawn_in_the_graph),
    ui_test (memory__says_what_was_alive_at_the_peak),
    ui_test (timeline__has_lanes_of_the_host_and_names_gaps),
    ui_test (charts__are_saved_as_svg_pdf_and_png),
    ui_test (tables__of_pictures_are_saved_as_csv),
    ui_test (tables__of_rows_are_saved_as_csv),
    ui_test (deck__says_from_where_on_a_thinned_recording_is_whole),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests_name ("panel rows", tests, NULL, NULL);
}
