/* The inspector's tensors: slices typed into the entry, the table, copies and files, on the
 * sample, of which conv2's gradient of W (16, 6, 5, 5) is recorded with values.
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <string.h>

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
  assert_string_equal (td_tensor_panel_get_said (panel ()),
                       "slice, character 5: index 6 is outside of axis 1, which has 6 elements."
                       " All of it is shown.");
  assert_int_equal (td_tensor_panel_get_shown (panel ())->n_total, 2400);
  ui_test_save_picture ("inspector-mistake.png");
  set_slice ("[0:0]");
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

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (slice__is_applied_to_picture_table_and_numbers),
    ui_test (slice__mistakes_are_said_and_all_is_shown),
    ui_test (slice__of_what_has_no_values_says_so),
  };
  ui_test_init (&argc, &argv);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
