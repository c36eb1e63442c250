/* Where memory ran out, on the Memory page: figures, a table of who held what, what would help,
 * the way from a row to the operation, and the report as text.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <string.h>

static char *tape; /* recorded once for all tests */

/* A program that runs out of memory and goes on. */
static void
record (const char *path, const char *limit, gboolean keeps)
{
  const char *const argv[] = { td_test_program ("app/tapedeck"),
                               "run",
                               "-f",
                               "--quiet",
                               "--mem-limit",
                               limit,
                               "-o",
                               path,
                               td_test_source ("tests/models/grows.c"),
                               "8000",
                               keeps ? "keep" : NULL,
                               NULL };
  TdTestChild child = td_test_run (argv, NULL, NULL);
  assert_child_status (child, 0);
  td_test_child_clear (&child);
}

/* All labels below a widget, a line each. */
static void
append_labels (GtkWidget *widget, GString *text)
{
  if (GTK_IS_LABEL (widget))
    g_string_append_printf (text, "%s\n", gtk_label_get_text (GTK_LABEL (widget)));
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child;
       child = gtk_widget_get_next_sibling (child))
    append_labels (child, text);
}

static char *
labels (const char *name)
{
  GString *text = g_string_new (NULL);
  append_labels (ui_test_named (name), text);
  return g_string_free (text, FALSE);
}

static void
open_page (const char *path)
{
  ui_test_resize (1440, 900);
  ui_test_open (path);
  ui_test_do ("show-page", "oom");
  ui_test_settle ();
}

static void
open_oom (void)
{
  if (!tape)
    {
      g_autofree char *folder = g_strdup (td_test_build ("tests/ui/pictures"));
      g_mkdir_with_parents (folder, 0755);
      tape = g_build_filename (folder, "oom.tdtape", NULL);
      record (tape, "12000000", TRUE);
    }
  open_page (tape);
}

static char *
dump (void)
{
  TdScene *scene = td_scene_view_get_scene (TD_SCENE_VIEW (ui_test_named ("oom")));
  assert_non_null (scene);
  return td_scene_dump (scene);
}

static gboolean
move (int delta)
{
  gboolean taken = FALSE;
  g_signal_emit_by_name (ui_test_named ("oom"), "moved", delta, &taken);
  ui_test_settle ();
  return taken;
}

static void
press (gint64 row)
{
  TdSceneView *view = TD_SCENE_VIEW (ui_test_named ("oom"));
  TdScene *scene = td_scene_view_get_scene (view);
  TdSceneHit hit;
  for (double y = 2; y < td_scene_height (scene); y += 2)
    if (td_scene_hit (scene, 200, y, 0, &hit) && hit.tag == TD_TAG_ROW && hit.data == row)
      {
        g_signal_emit_by_name (view, "pressed", &hit, 200.0, y);
        ui_test_settle ();
        return;
      }
  fail_msg ("the table has no row %d", (int)row);
}

static char *
selected_op (void)
{
  guint n;
  const guint64 *keys = td_session_get_selection (ui_test_session (), &n);
  g_autoptr (TdIteration) it = td_session_get_current (ui_test_session ());
  gint event = n > 0 && it ? td_iteration_find (it, keys[0]) : -1;
  return g_strdup (event >= 0 ? td_iteration_get_op_name (it, (guint)event) : "");
}

/* The figures are those of the tape. */
static void
oom_page__tells_what_was_asked_and_how_full_it_was (void **state)
{
  char bytes[TD_FORMAT_SIZE];
  open_oom ();
  assert_true (gtk_widget_get_mapped (ui_test_named ("oom-card")));
  const TdTapeOom *oom = td_tape_reader_oom (td_session_get_reader (ui_test_session ()), 0);
  assert_non_null (oom);
  const struct
  {
    const char *name;
    guint64 amount;
  } facts[] = { { "Limit", 12000000 },
                { "Reserved", oom->reserved_bytes },
                { "Allocated", oom->live_bytes },
                { "Largest free", oom->largest_free_bytes } };
  g_autofree char *text = labels ("oom-facts");
  assert_contains (text, "Asked\n8.19 MB for (8000, 256) float32\n");
  for (guint i = 0; i < G_N_ELEMENTS (facts); i++)
    {
      g_autofree char *line = g_strdup_printf ("%s\n%s\n", facts[i].name,
                                               td_format_bytes (bytes, facts[i].amount));
      if (facts[i].amount > 0)
        assert_contains (text, line);
      else
        assert_null (strstr (text, facts[i].name));
    }
  assert_contains (text, "Tried\nnothing: the limit counts what is live");
}

static void
oom_page__table_names_groups_and_who_keeps_them (void **state)
{
  open_oom ();
  TdTapeReader *reader = td_session_get_reader (ui_test_session ());
  const TdTapeOomHolder *h = td_tape_reader_oom_holders (reader, 0);
  char bytes[TD_FORMAT_SIZE];
  g_autofree char *text = dump ();
  assert_contains (text, "Kept by");
  assert_contains (text, "activation net/l1 (8000, 256)");
  assert_contains (text, "linear, grows.c:22");
  assert_contains (text, td_format_bytes (bytes, h[0].bytes));
  assert_contains (text, "parameter net/l2/W");
  assert_contains (text, "user handle, grows.c:50");
  assert_contains (text, "graph of user handle, grows.c:50");
  g_autofree char *csv = ui_test_dup_csv (ui_test_named ("oom"));
  assert_contains (csv, "held,arrays,bytes,largest_bytes,made_at,kept_at\n");
  assert_contains (csv, "\"activation net/l1 (8000, 256)\",");
  assert_contains (csv, "grows.c:22,");
}

/* What is estimated is said to be; the same remedies as those of `tapedeck info --oom`. */
static void
oom_page__says_what_would_help_as_estimates (void **state)
{
  TdTapeRemedy remedies[3];
  open_oom ();
  guint n = td_tape_oom_remedies (td_session_get_reader (ui_test_session ()), 0, remedies, 3);
  assert_in_range (n, 1, 3);
  g_autofree char *text = labels ("oom-remedies");
  assert_contains (text, "Would help, as estimated from what was recorded\n1. ");
  for (guint i = 0; i < n; i++)
    assert_contains (text, remedies[i].text);
}

static void
oom_page__row_leads_to_the_operation (void **state)
{
  open_oom ();
  TdTapeReader *reader = td_session_get_reader (ui_test_session ());
  const TdTapeOomHolder *h = td_tape_reader_oom_holders (reader, 0);
  press (0);
  g_autofree char *op = selected_op ();
  assert_string_equal (op, td_tape_reader_string (reader, h[0].op));
  assert_string_equal (td_workspace_get_perspective (ui_test_workspace ()), "memory");
  press (0); /* once more */
  assert_string_equal (td_workspace_get_perspective (ui_test_workspace ()), "debug");
}

static void
oom_page__is_walked_by_keys (void **state)
{
  open_oom ();
  g_autofree char *before = dump ();
  assert_true (move (1));
  g_autofree char *first = dump ();
  assert_true (move (1));
  g_autofree char *second = dump ();
  for (int i = 0; i < 4; i++)
    assert_true (move (1)); /* to a gradient: the words say by way of what it is kept */
  const char *words = gtk_label_get_text (GTK_LABEL (ui_test_named ("oom-chosen")));
  assert_contains (words, "262 kB of gradient net/l2/W in 1 array, ");
  assert_contains (words, ", by way of link attribute net/l2/W (");
  assert_contains (words, " -> its gradient");
  for (int i = 0; i < 4; i++)
    assert_true (move (-1));
  assert_true (move (-1));
  assert_string_not_equal (before, first);
  assert_string_not_equal (first, second);
  assert_true (move (0)); /* Return */
  assert_string_equal (td_workspace_get_perspective (ui_test_workspace ()), "debug");
}

static void
oom_page__source_is_where_somebody_took_hold (void **state)
{
  open_oom ();
  TdTapeReader *reader = td_session_get_reader (ui_test_session ());
  const TdTapeOom *oom = td_tape_reader_oom (reader, 0);
  const TdTapeOomHolder *h = td_tape_reader_oom_holders (reader, 0);
  char site[512];
  guint kept = 0;
  while (kept < oom->n_holders && h[kept].holder_site == 0)
    kept++;
  assert_true (kept < oom->n_holders); /* td_retain is called */
  for (guint i = 0; i <= kept; i++)
    assert_true (move (1));
  g_signal_emit_by_name (ui_test_find_button (ui_test_named ("oom-card"), "Show Source"),
                         "clicked");
  ui_test_settle ();
  td_tape_reader_site_text (reader, h[kept].holder_site, site, sizeof site);
  assert_int_equal (td_source_page_get_line (td_workspace_get_source (ui_test_workspace ())),
                    atoi (strrchr (site, ':') + 1));
}

static void
take_text (GObject *clipboard, GAsyncResult *result, gpointer text)
{
  *(char **)text = gdk_clipboard_read_text_finish (GDK_CLIPBOARD (clipboard), result, NULL);
}

static gboolean
is_taken (gpointer text)
{
  return *(char **)text != NULL;
}

/* Word for word what the command line says. */
static void
oom_page__copies_the_report_as_text (void **state)
{
  char *text = NULL;
  open_oom ();
  g_signal_emit_by_name (ui_test_find_button (ui_test_named ("oom-card"), "Copy"), "clicked");
  gdk_clipboard_read_text_async (gtk_widget_get_clipboard (GTK_WIDGET (ui_test_window ())),
                                 NULL, take_text, &text);
  ui_test_wait ("the clipboard", is_taken, &text);
  TdTestChild child = TD_TEST_RUN (td_test_program ("app/tapedeck"), "info", "--oom", tape);
  assert_child_status (child, 0);
  assert_string_equal (text, child.out);
  td_test_child_clear (&child);
  g_free (text);
}

/* The newest first; another can be chosen. */
static void
oom_page__each_time_can_be_chosen (void **state)
{
  g_autofree char *path = g_strdup (td_test_tmp ("often.tdtape"));
  record (path, "1200000", FALSE);
  open_page (path);
  TdTapeReader *reader = td_session_get_reader (ui_test_session ());
  guint n = td_tape_reader_n_ooms (reader);
  assert_true (n > 1);
  GtkDropDown *list = GTK_DROP_DOWN (ui_test_named ("oom-reports"));
  assert_int_equal (gtk_drop_down_get_selected (list), n - 1);
  for (guint i = n; i-- > 0;)
    {
      char bytes[TD_FORMAT_SIZE];
      gtk_drop_down_set_selected (list, i);
      ui_test_settle ();
      g_autofree char *facts = labels ("oom-facts");
      g_autofree char *asked = g_strdup_printf (
          "Asked\n%s", td_format_bytes (bytes, td_tape_reader_oom (reader, i)->asked_bytes));
      assert_contains (facts, asked);
    }
}

static void
oom_page__is_not_there_where_memory_sufficed (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("show-page", "memory");
  ui_test_settle ();
  assert_false (gtk_widget_get_mapped (ui_test_named ("oom-card")));
}

static void
oom_page__is_drawn_in_both_themes (void **state)
{
  open_oom ();
  assert_true (move (1));
  ui_test_set_dark (FALSE);
  ui_test_settle ();
  ui_test_save_picture ("oom-light.png");
  assert_true (ui_test_has_many_colours (8));
  ui_test_set_dark (TRUE);
  ui_test_settle ();
  ui_test_save_picture ("oom-dark.png");
  assert_true (ui_test_has_many_colours (8));
  ui_test_set_dark (FALSE);
  ui_test_resize (1024, 700);
  ui_test_settle ();
  ui_test_save_picture ("oom-narrow.png");
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (oom_page__tells_what_was_asked_and_how_full_it_was),
    ui_test (oom_page__table_names_groups_and_who_keeps_them),
    ui_test (oom_page__says_what_would_help_as_estimates),
    ui_test (oom_page__row_leads_to_the_operation),
    ui_test (oom_page__is_walked_by_keys),
    ui_test (oom_page__source_is_where_somebody_took_hold),
    ui_test (oom_page__copies_the_report_as_text),
    ui_test (oom_page__each_time_can_be_chosen),
    ui_test (oom_page__is_not_there_where_memory_sufficed),
    ui_test (oom_page__is_drawn_in_both_themes),
  };

  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
