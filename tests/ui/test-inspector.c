/* The inspector's tensors: slices typed into the entry, the table, copies and files, on the
 * sample, of which conv2's gradient of W (16, 6, 5, 5) is recorded with values.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <stdio.h>
#include <string.h>

#include "scene/td-format.h"
#include "widgets/td-number-grid.h"

static TdInspector *
inspector (void)
{
  return td_workspace_get_inspector (ui_test_workspace ());
}

static TdTensorPanel *
panel (void)
{
  return td_inspector_get_panel (inspector ());
}

static void
open_gradient (void)
{
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=59&e=28");
  ui_test_do ("show-page", "value");
}

static void
set_slice (const char *text)
{
  td_tensor_panel_set_slice (panel (), text);
  ui_test_settle ();
}

static void
slice__is_applied_to_picture_table_and_numbers (void **state)
{
  open_gradient ();
  const TdTensor *all = td_inspector_get_tensor (inspector ());
  set_slice ("[3, :, 1:4, -1]");
  const TdTensor *shown = td_tensor_panel_get_shown (panel ());
  assert_int_equal (shown->ndim, 2);
  assert_int_equal (shown->dims[0], 6);
  assert_int_equal (shown->dims[1], 3);
  for (int c = 0; c < 6; c++)
    for (int y = 0; y < 3; y++)
      assert_true (shown->values[c * 3 + y]
                   == all->values[((3 * 6 + c) * 5 + (1 + y)) * 5 + 4]);
  assert_string_equal (td_tensor_panel_get_mistake (panel ()), "");
  assert_string_equal (td_tensor_panel_get_said (panel ()), "");
  /* the picture counts what is in the slice */
  TdSceneView *picture = TD_SCENE_VIEW (td_tensor_panel_get_picture (panel ()));
  g_autofree char *dump = td_scene_dump (td_scene_view_get_scene (picture));
  assert_contains (dump, "18 values");
  ui_test_save_picture ("inspector-slice.png");
  /* the table frames a cell, and says where in the variable that is */
  assert_true (td_tensor_panel_show_view (panel (), "table"));
  ui_test_settle ();
  TdNumberGrid *grid = TD_NUMBER_GRID (ui_test_find_named (GTK_WIDGET (panel ()), "numbers"));
  td_number_grid_go_to (grid, 5, 2);
  ui_test_settle ();
  assert_true (g_str_has_prefix (td_tensor_panel_get_read_out (panel ()), "[3, 5, 3, 4]  "));
  ui_test_save_picture ("inspector-table.png");
  ui_test_set_dark (TRUE);
  ui_test_save_picture ("inspector-table-dark.png");
  ui_test_set_dark (FALSE);
  set_slice ("");
  assert_int_equal (td_tensor_panel_get_shown (panel ())->n_total, 16 * 6 * 5 * 5);
  assert_false (td_tensor_panel_show_view (panel (), "none"));
}

static void
slice__mistakes_are_said_and_all_is_shown (void **state)
{
  open_gradient ();
  set_slice ("[0, 6]");
  assert_string_equal (td_tensor_panel_get_mistake (panel ()),
                       "slice, character 5: index 6 is outside of axis 1, which has 6 elements."
                       " All of it is shown.");
  assert_int_equal (td_tensor_panel_get_shown (panel ())->n_total, 2400);
  ui_test_save_picture ("inspector-mistake.png");
  set_slice ("[0:0]");
  assert_string_equal (td_tensor_panel_get_mistake (panel ()), "");
  assert_string_equal (td_tensor_panel_get_said (panel ()), "Nothing is in this slice.");
  assert_true (td_tensor_panel_show_view (panel (), "table"));
  ui_test_settle ();
  assert_string_equal (td_tensor_panel_get_read_out (panel ()), "");
  ui_test_do ("go-to", "i=59&e=2"); /* the slice stays, what it is taken of is another */
  set_slice ("[0]");
  assert_true (ui_test_has_many_colours (10));
}

static void
slice__of_what_has_no_values_says_so (void **state)
{
  ui_test_open_sample (NULL);
  ui_test_do ("go-to", "i=5&e=3");
  ui_test_do ("show-page", "value");
  ui_test_settle ();
  assert_string_equal (td_tensor_panel_get_said (panel ()),
                       "Values not recorded at this moment.");
  td_tensor_panel_show_view (panel (), "table");
  ui_test_settle ();
  const char *said = td_tensor_panel_get_read_out (panel ());
  assert_true (g_str_has_suffix (said, "— not recorded"));
  ui_test_save_picture ("inspector-missing.png");
}

static char *
read_file (const char *name, gsize *n)
{
  char *text;
  const char *path = td_test_tmp (name);
  if (!g_file_test (path, G_FILE_TEST_EXISTS) || !g_file_get_contents (path, &text, n, NULL))
    return NULL;
  return text;
}

static gboolean
file_is_there (gpointer path)
{
  return g_file_test (path, G_FILE_TEST_EXISTS);
}

/* All of the slice, of which the table has a few rows in sight. */
static void
values__are_saved_as_the_slice_that_is_shown (void **state)
{
  open_gradient ();
  td_tensor_panel_show_view (panel (), "table");
  set_slice ("[:, 1, ::-1, 2]");
  g_autofree char *npy_path = g_strdup (td_test_tmp ("values.npy"));
  g_autofree char *csv_path = g_strdup (td_test_tmp ("values.csv"));
  ui_test_do ("save-values", npy_path);
  ui_test_wait ("values.npy", file_is_there, npy_path);
  ui_test_do ("save-values", csv_path);
  ui_test_wait ("values.csv", file_is_there, csv_path);
  const TdTensor *all = td_inspector_get_tensor (inspector ());
  gsize n;
  g_autofree char *npy = read_file ("values.npy", &n);
  g_autofree char *csv = read_file ("values.csv", &n);
  assert_memory_equal (npy, "\x93NUMPY\x01\x00", 8);
  assert_contains (npy + 10, "'descr': '<f4', 'fortran_order': False, 'shape': (16, 5,), }");
  gsize header = 10 + (guint8)npy[8] + 256 * (gsize)(guint8)npy[9];
  g_auto (GStrv) lines = g_strsplit (csv, "\n", -1);
  assert_int_equal (g_strv_length (lines), 17); /* the last one is empty */
  for (int o = 0; o < 16; o++)
    {
      g_auto (GStrv) words = g_strsplit (lines[o], ",", -1);
      assert_int_equal (g_strv_length (words), 5);
      for (int y = 0; y < 5; y++)
        {
          double expected = all->values[((o * 6 + 1) * 5 + (4 - y)) * 5 + 2];
          float value;
          memcpy (&value, npy + header + 4 * (o * 5 + y), 4);
          assert_true ((double)value == expected);
          assert_true ((float)g_ascii_strtod (words[y], NULL) == (float)expected);
        }
    }
}

static void
text_read (GObject *clipboard, GAsyncResult *result, gpointer data)
{
  *(char **)data = gdk_clipboard_read_text_finish (GDK_CLIPBOARD (clipboard), result, NULL);
}

static gboolean
has_text (gpointer data)
{
  return *(char **)data != NULL;
}

static void
values__are_copied_as_text (void **state)
{
  char *text = NULL;
  open_gradient ();
  set_slice ("[3, 2, 1]");
  const TdTensor *shown = td_tensor_panel_get_shown (panel ());
  ui_test_do ("copy-values", NULL);
  gdk_clipboard_read_text_async (gtk_widget_get_clipboard (GTK_WIDGET (ui_test_window ())),
                                 NULL, text_read, &text);
  ui_test_wait ("the clipboard", has_text, &text);
  g_auto (GStrv) words = g_strsplit (text, ",", -1);
  assert_int_equal (g_strv_length (words), 5);
  for (int i = 0; i < 5; i++)
    assert_true ((float)g_ascii_strtod (words[i], NULL) == (float)shown->values[i]);
  g_free (text);
}

/* Nothing is written over or begun where a file cannot be what was asked for. */
static void
values__that_cannot_be_saved_say_why (void **state)
{
  open_gradient ();
  g_autofree char *path = g_strdup (td_test_tmp ("values.txt"));
  ui_test_do ("save-values", path);
  g_autofree char *said = g_strconcat (path, ": values are saved as .npy or .csv", NULL);
  ui_test_wait ("the reason", ui_test_has_info, said);
  assert_false (g_file_test (path, G_FILE_TEST_EXISTS));
  ui_test_do ("go-to", "i=5&e=3"); /* nothing is recorded there */
  g_autofree char *none = g_strdup (td_test_tmp ("none.csv"));
  ui_test_do ("save-values", none);
  ui_test_do ("copy-values", NULL);
  ui_test_settle ();
  assert_false (g_file_test (none, G_FILE_TEST_EXISTS));
}

static void
slice__has_a_key (void **state)
{
  open_gradient ();
  ui_test_do ("show-page", "op");
  ui_test_do ("slice", NULL);
  GtkWidget *focus = gtk_window_get_focus (GTK_WINDOW (ui_test_window ()));
  assert_non_null (focus);
  GtkWidget *entry = gtk_widget_get_ancestor (focus, GTK_TYPE_ENTRY);
  assert_string_equal (gtk_widget_get_name (entry), "slice");
  assert_true (gtk_widget_get_mapped (entry));
}

/* Values of the sample are kept in all iterations; iteration 57 is not the one before. */
static void
difference__is_to_the_iteration_that_was_chosen (void **state)
{
  open_gradient ();
  set_slice ("[:, 0]");
  g_autofree double *now
      = g_memdup2 (td_tensor_panel_get_shown (panel ())->values, 16 * 5 * 5 * sizeof (double));
  ui_test_do ("go-to", "i=57&e=28");
  g_autofree double *then
      = g_memdup2 (td_tensor_panel_get_shown (panel ())->values, 16 * 5 * 5 * sizeof (double));
  ui_test_do ("go-to", "i=59&e=28");
  td_tensor_panel_set_other (panel (), 57);
  ui_test_settle ();
  const TdTensor *shown = td_tensor_panel_get_shown (panel ());
  guint largest = 0;
  assert_int_equal (shown->n_values, 16 * 5 * 5);
  for (guint i = 0; i < 16 * 5 * 5; i++)
    {
      assert_true (shown->values[i] == now[i] - then[i]);
      if (ABS (shown->values[i]) > ABS (shown->values[largest]))
        largest = i;
    }
  g_autofree char *place
      = g_strdup_printf ("[%u, 0, %u, %u]", largest / 25, largest / 5 % 5, largest % 5);
  const char *said = td_tensor_panel_get_said (panel ());
  assert_true (g_str_has_prefix (said, "Less iteration 57: at most "));
  assert_contains (said, place);
  ui_test_save_picture ("inspector-difference.png");
  td_tensor_panel_set_other (panel (), 59);
  ui_test_settle ();
  assert_string_equal (td_tensor_panel_get_said (panel ()), "Equal to iteration 59.");
  td_tensor_panel_set_other (panel (), -1);
  ui_test_settle ();
  assert_memory_equal (td_tensor_panel_get_shown (panel ())->values, now,
                       16 * 5 * 5 * sizeof (double));
  /* turned on by hand it begins with the nearest earlier iteration that has values */
  GtkWidget *check = ui_test_find_named (GTK_WIDGET (panel ()), "difference");
  gtk_check_button_set_active (GTK_CHECK_BUTTON (check), TRUE);
  ui_test_settle ();
  assert_true (
      g_str_has_prefix (td_tensor_panel_get_said (panel ()), "Less iteration 58: at most "));
}

static void
difference__to_what_has_no_values_says_so (void **state)
{
  open_gradient ();
  td_tensor_panel_set_other (panel (), 5);
  ui_test_do ("go-to", "i=59&e=3");
  assert_string_equal (td_tensor_panel_get_said (panel ()),
                       "No difference to iteration 5: no values are recorded here. The values "
                       "themselves are shown.\nValues not recorded at this moment.");
}

static gboolean
reads_something (gpointer text)
{
  return td_tensor_panel_get_read_out (panel ())[0] != '\0';
}

/* The middle of every cell of the map reads out the element that is there. */
static void
map__reads_out_what_is_under_the_pointer (void **state)
{
  open_gradient ();
  set_slice ("[2:5, 1, :, 3]");
  TdSceneView *picture = TD_SCENE_VIEW (td_tensor_panel_get_picture (panel ()));
  const TdTensor *all = td_inspector_get_tensor (inspector ());
  TdScene *scene = td_scene_view_get_scene (picture);
  TdSceneHit hit;
  guint n_seen = 0;
  for (double y = 2; y < td_scene_height (scene); y += 3)
    for (double x = 2; x < td_scene_width (scene); x += 3)
      {
        if (!td_scene_hit (scene, x, y, 0, &hit) || hit.tag != TD_TAG_CELL)
          continue;
        g_signal_emit_by_name (picture, "hovered", &hit, x, y);
        assert_true (reads_something (NULL));
        int o, h;
        double value;
        const char *said = td_tensor_panel_get_read_out (panel ());
        assert_int_equal (sscanf (said, "[%d, 1, %d, 3]  ", &o, &h), 2);
        assert_int_equal (o, 2 + hit.row);
        assert_int_equal (h, hit.col);
        const char *number = strstr (said, "]  ") + 3;
        gboolean minus = g_str_has_prefix (number, "−");
        value = g_ascii_strtod (minus ? number + strlen ("−") : number, NULL);
        double expected = all->values[((o * 6 + 1) * 5 + h) * 5 + 3];
        assert_true ((float)(minus ? -value : value) == (float)expected
                     || ABS (expected) < 1e-3);
        n_seen++;
      }
  assert_in_range (n_seen, 100, 100000);
}

static void
map__click_leads_to_the_number (void **state)
{
  open_gradient ();
  set_slice ("[2:5, 1, :, 3]");
  TdSceneView *picture = TD_SCENE_VIEW (td_tensor_panel_get_picture (panel ()));
  TdScene *scene = td_scene_view_get_scene (picture);
  TdSceneHit hit = { .tag = TD_TAG_NONE };
  for (double y = 2; y < td_scene_height (scene) && hit.tag != TD_TAG_CELL; y += 3)
    for (double x = 2; x < td_scene_width (scene); x += 3)
      if (td_scene_hit (scene, x, y, 0, &hit) && hit.tag == TD_TAG_CELL && hit.col == 2)
        break;
  assert_int_equal (hit.tag, TD_TAG_CELL);
  g_autofree char *expected = g_strdup_printf ("[%d, 1, %d, 3]  ", 2 + hit.row, hit.col);
  g_signal_emit_by_name (picture, "pressed", &hit, 0.0, 0.0);
  ui_test_settle ();
  GtkWidget *grid = ui_test_find_named (GTK_WIDGET (panel ()), "numbers");
  assert_true (gtk_widget_get_mapped (grid));
  assert_true (g_str_has_prefix (td_tensor_panel_get_read_out (panel ()), expected));
}

static void
images__are_tiles_of_the_last_two_axes (void **state)
{
  open_gradient ();
  assert_true (td_tensor_panel_show_view (panel (), "images"));
  ui_test_settle ();
  TdSceneView *picture = TD_SCENE_VIEW (td_tensor_panel_get_picture (panel ()));
  TdScene *scene = td_scene_view_get_scene (picture);
  g_autoptr (GHashTable) tiles = g_hash_table_new (NULL, NULL);
  TdSceneHit hit;
  for (double y = 1; y < td_scene_height (scene); y += 2)
    for (double x = 1; x < td_scene_width (scene); x += 2)
      if (td_scene_hit (scene, x, y, 0, &hit) && hit.tag == TD_TAG_CELL)
        {
          guint64 element;
          TdTensorView how = TD_TENSOR_VIEW_DEFAULT;
          how.tiles = TRUE;
          assert_int_equal (
              td_tensor_find_hit (td_tensor_panel_get_shown (panel ()), &how, &hit, &element),
              1);
          assert_int_equal (element, hit.data * 25 + hit.row * 5 + hit.col);
          g_hash_table_add (tiles, GINT_TO_POINTER ((int)hit.data + 1));
        }
  ui_test_save_picture ("inspector-images.png");
  assert_int_equal (g_hash_table_size (tiles), 16 * 6); /* every filter of every channel */
  ui_test_save_picture ("inspector-images.png");
  ui_test_set_dark (TRUE);
  ui_test_save_picture ("inspector-images-dark.png");
  ui_test_set_dark (FALSE);
}

/* The strip of iterations has a line below those with values, one for each run of them. */
static void
values__of_which_iterations_are_recorded_is_on_the_strip (void **state)
{
  ui_test_open_sample (NULL);
  TdTapeSummaries s = td_tape_reader_summaries (td_session_get_reader (ui_test_session ()));
  guint n_runs = 0, n_with = 0, n_lines = 0;
  for (guint i = 0; i < s.n; i++)
    {
      gboolean has = (s.rows[i].flags & TD_TAPE_ITERATION_VALUES) != 0;
      n_with += has;
      n_runs += has && (i == 0 || !(s.rows[i - 1].flags & TD_TAPE_ITERATION_VALUES));
    }
  assert_in_range (n_with, 1, s.n - 1);
  ui_test_settle ();
  TdSceneView *strip = TD_SCENE_VIEW (ui_test_named ("iterations-strip"));
  g_autofree char *dump = td_scene_dump (td_scene_view_get_scene (strip));
  g_auto (GStrv) lines = g_strsplit (dump, "\n", -1);
  for (guint i = 0; lines[i]; i++)
    n_lines += g_str_has_prefix (lines[i], "rect ") && strstr (lines[i], "saved") != NULL;
  assert_int_equal (n_lines, n_runs);
}

/* ---- evaluating ---- */

static const char *
evaluate (const char *text)
{
  TdEvaluatePage *page = td_workspace_get_evaluate (ui_test_workspace ());
  td_evaluate_page_enter (page, text);
  return td_evaluate_page_get_answer (page);
}

static void
evaluate__answers_at_the_playhead (void **state)
{
  open_gradient ();
  ui_test_do ("evaluate", NULL);
  GtkWidget *focus = gtk_window_get_focus (GTK_WINDOW (ui_test_window ()));
  assert_ptr_equal (gtk_widget_get_ancestor (focus, GTK_TYPE_ENTRY),
                    ui_test_named ("expression"));
  const TdTensor *all = td_inspector_get_tensor (inspector ());
  double sum = 0;
  for (guint i = 0; i < 25; i++)
    sum += all->values[25 + i];
  char expected[TD_FORMAT_SIZE];
  td_format_digits (expected, sum, 12);
  assert_string_equal (evaluate ("sum (conv2/W.grad[0, 1])"), expected);
  assert_string_equal (evaluate ("#28[0, 1] - conv2/W.grad[0, 1]"),
                       "shape [5, 5], 0 to 0: 0, 0, 0, 0, 0, 0, …");
  assert_string_equal (evaluate ("conv2/W.grad ["), "character 14: the bracket is not closed");
  ui_test_settle ();
  ui_test_save_picture ("evaluate.png");
  ui_test_do ("go-to", "i=5&e=28"); /* no values there */
  assert_string_equal (evaluate ("sum (conv2/W.grad)"),
                       "character 6: values of conv2/W.grad are not recorded at this moment");
}

/* As keys do it: the controller of the line is asked. */
static void
press (guint keyval)
{
  GtkWidget *line = ui_test_named ("expression");
  g_autoptr (GListModel) all = gtk_widget_observe_controllers (line);
  for (guint i = 0; i < g_list_model_get_n_items (all); i++)
    {
      g_autoptr (GtkEventController) c = g_list_model_get_item (all, i);
      gboolean taken = FALSE;
      if (GTK_IS_EVENT_CONTROLLER_KEY (c)
          && gtk_event_controller_get_propagation_phase (c) == GTK_PHASE_CAPTURE)
        g_signal_emit_by_name (c, "key-pressed", keyval, 0, 0, &taken);
    }
}

static void
evaluate__history_is_gone_through_by_up_and_down (void **state)
{
  open_gradient ();
  ui_test_do ("evaluate", NULL);
  GtkEditable *line = GTK_EDITABLE (ui_test_named ("expression"));
  assert_string_equal (evaluate ("1 + 1"), "2");
  assert_string_equal (gtk_editable_get_text (line), "");
  assert_string_equal (evaluate ("2 + 2"), "4");
  assert_string_equal (evaluate ("2 + 2"), "4"); /* twice: once in the history */
  gtk_editable_set_text (line, "begun");
  press (GDK_KEY_Up);
  assert_string_equal (gtk_editable_get_text (line), "2 + 2");
  press (GDK_KEY_Up);
  assert_string_equal (gtk_editable_get_text (line), "1 + 1");
  press (GDK_KEY_Up);
  assert_string_equal (gtk_editable_get_text (line), "1 + 1");
  press (GDK_KEY_Down);
  press (GDK_KEY_Down);
  assert_string_equal (gtk_editable_get_text (line), "begun");
  evaluate ("1 +"); /* a mistake stays to be mended */
  assert_string_equal (gtk_editable_get_text (line), "1 +");
}

/* They are made when their page is shown, and then are those of what is looked at. */
static void
facts__of_a_page_that_is_shown_are_of_the_subject (void **state)
{
  static const char *const pages[] = { "op", "life", "links", "value", "op" };

  ui_test_open_sample (NULL);
  for (int event = 3; event <= 28; event += 5)
    for (guint i = 0; i < G_N_ELEMENTS (pages); i++)
      {
        g_autofree char *moment = g_strdup_printf ("i=59&e=%d", event - (i == 0));
        g_autofree char *fact = g_strdup_printf ("%d of ", event);
        ui_test_do ("go-to", moment); /* with the page before on show, and another moment */
        ui_test_do ("show-page", pages[i]);
        if (i == 0)
          {
            g_autofree char *before = g_strdup_printf ("%d of ", event - 1);
            assert_true (
                g_str_has_prefix (td_inspector_find_fact (inspector (), "Event"), before));
          }
        else if (g_str_equal (pages[i], "op"))
          assert_true (g_str_has_prefix (td_inspector_find_fact (inspector (), "Event"), fact));
        else if (g_str_equal (pages[i], "life"))
          assert_non_null (td_inspector_find_fact (inspector (), "Read by"));
      }
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (slice__is_applied_to_picture_table_and_numbers),
    ui_test (slice__mistakes_are_said_and_all_is_shown),
    ui_test (slice__of_what_has_no_values_says_so),
    ui_test (slice__has_a_key),
    ui_test (difference__is_to_the_iteration_that_was_chosen),
    ui_test (difference__to_what_has_no_values_says_so),
    ui_test (map__reads_out_what_is_under_the_pointer),
    ui_test (map__click_leads_to_the_number),
    ui_test (images__are_tiles_of_the_last_two_axes),
    ui_test (values__are_saved_as_the_slice_that_is_shown),
    ui_test (evaluate__answers_at_the_playhead),
    ui_test (evaluate__history_is_gone_through_by_up_and_down),
    ui_test (values__are_copied_as_text),
    ui_test (values__of_which_iterations_are_recorded_is_on_the_strip),
    ui_test (values__that_cannot_be_saved_say_why),
    ui_test (facts__of_a_page_that_is_shown_are_of_the_subject),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
