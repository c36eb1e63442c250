/* What the rows of the outline say, without a window.
 * SPDX-License-Identifier: MIT */
#include "pages/td-outline-model.h"
#include "td-synthetic-tape.h"
#include "td-test.h"

/* A model whose layers are one operation each, and one of three that share a large weight. */
static TdIteration *
shared_weight (void)
{
  TdSynthetic *s = td_synthetic_new (0);
  guint h = td_synthetic_input (s, "x", TD_SHAPE (2, 8)), W;

  td_synthetic_enter_link (s, "net", 1);
  td_synthetic_enter_link (s, "net/act1", 2);
  h = TD_OP (s, "tanh", 3, TD_SHAPE (2, 8), h);
  td_synthetic_leave (s);
  td_synthetic_enter_link (s, "net/tied", 4);
  W = td_synthetic_parameter (s, "net/tied/W", TD_SHAPE (1000, 8));
  for (guint i = 0; i < 3; i++)
    h = TD_OP (s, "linear", 5 + i, TD_SHAPE (2, 8), h, W);
  td_synthetic_leave (s);
  td_synthetic_leave (s);
  td_synthetic_backward (s, h);
  return td_synthetic_finish (s);
}

/* "name: bytes" of all rows below, layers' in front of what they have. */
static void
list_rows (GListModel *list, GString *out)
{
  for (guint i = 0; list && i < g_list_model_get_n_items (list); i++)
    {
      g_autoptr (TdOutlineRow) row = g_list_model_get_item (list, i);
      g_autofree char *name = td_outline_row_dup_name (row);
      g_autofree char *bytes = td_outline_row_dup_bytes (row);
      TdOutlineKind kind = td_outline_row_get_kind (row);
      if (kind != TD_OUTLINE_GROUP && kind != TD_OUTLINE_EVENT)
        continue;
      g_string_append_printf (out, "%s: %s\n", name, bytes);
      g_autoptr (GListModel) children
          = kind == TD_OUTLINE_GROUP ? td_outline_row_get_children (row) : NULL;
      list_rows (children, out);
    }
}

static char *
dup_rows (void)
{
  g_autoptr (TdIteration) iteration = shared_weight ();
  g_autoptr (TdOutlineModel) model = td_outline_model_new (iteration);
  g_autoptr (GListModel) roots = td_outline_model_get_roots (model);
  GString *out = g_string_new (NULL);
  list_rows (roots, out);
  return g_string_free (out, FALSE);
}

/* A parameter is there anyway: neither the layer nor its operations keep it. */
static void
outline__counts_what_is_kept_as_its_layer_does (void **state)
{
  g_autofree char *rows = dup_rows ();
  (void)state;
  assert_contains (rows, "tied: 256 B\nlinear: 64 B\nlinear: 64 B\nlinear: 128 B\n");
}

/* A layer of one operation has no row, and its name stands in that of the operation. */
static void
outline__names_layers_of_one_operation (void **state)
{
  g_autofree char *rows = dup_rows ();
  (void)state;
  assert_contains (rows, "tanh · act1: ");
  assert_null (strstr (rows, "· tied"));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (outline__counts_what_is_kept_as_its_layer_does),
    td_test (outline__names_layers_of_one_operation),
  };

  return cmocka_run_group_tests_name ("outline", tests, NULL, NULL);
}
