/* A list of which rows come little by little: in the end it is the other list, and what is
 * asked for is there before. SPDX-License-Identifier: MIT */
#include "td-test.h"
#include "widgets/td-gradual-list.h"
#include "widgets/td-index-list.h"

#define ROWS 1000u

typedef struct
{
  TdIndexList *list;
  GtkSingleSelection *selection;
  GListModel *rows; /* the gradual ones */
  guint n;          /* as its signals tell */
  guint most;       /* that came at once */
} Fixture;

static void
count (GListModel *rows, guint position, guint removed, guint added, Fixture *f)
{
  assert_true (position + removed <= f->n);
  f->n += added - removed;
  assert_int_equal (f->n, g_list_model_get_n_items (rows));
  if (f->n <= 200)
    f->most = MAX (f->most, added);
}

static void
nothing (void)
{
}

static Fixture
begin (guint n)
{
  Fixture f = { .list = td_index_list_new () };
  f.selection = td_index_list_new_selection (f.list, nothing, NULL);
  f.rows = gtk_single_selection_get_model (f.selection);
  td_index_list_reset (f.list, n);
  f.n = g_list_model_get_n_items (f.rows);
  return f;
}

static void
end (Fixture *f)
{
  g_object_unref (f->selection);
  g_object_unref (f->list);
}

static void
run_idle (void)
{
  while (g_main_context_iteration (NULL, FALSE))
    ;
}

static void
gradual__rows_come_a_few_in_a_turn (void **state)
{
  Fixture f = begin (ROWS);
  guint turns = 0;
  g_signal_connect (f.rows, "items-changed", G_CALLBACK (count), &f);
  assert_in_range (f.n, 1, 30); /* what a window shows at once */
  for (; g_main_context_iteration (NULL, FALSE); turns++)
    ;
  assert_int_equal (f.n, ROWS);
  assert_in_range (f.most, 1, 30);
  assert_in_range (turns, 10, 30); /* what GTK makes no widgets for comes at once */
  for (guint i = 0; i < ROWS; i += 111)
    {
      g_autoptr (TdIndexRow) row = g_list_model_get_item (f.rows, i);
      assert_int_equal (td_index_row_get (row), i);
    }
  assert_null (g_list_model_get_item (f.rows, ROWS));
  g_signal_handlers_disconnect_by_data (f.rows, &f);
  end (&f);
  (void)state;
}

static void
gradual__row_that_is_selected_is_there_at_once (void **state)
{
  static const guint positions[] = { 3, 50, 190, 600, ROWS - 1 };
  for (guint i = 0; i < G_N_ELEMENTS (positions); i++)
    {
      Fixture f = begin (ROWS);
      td_gradual_list_select (f.selection, positions[i]);
      assert_int_equal (gtk_single_selection_get_selected (f.selection), positions[i]);
      run_idle ();
      assert_int_equal (gtk_single_selection_get_selected (f.selection), positions[i]);
      assert_int_equal (g_list_model_get_n_items (f.rows), ROWS);
      td_gradual_list_select (f.selection, ROWS); /* there is none */
      assert_int_equal (gtk_single_selection_get_selected (f.selection),
                        GTK_INVALID_LIST_POSITION);
      end (&f);
    }
  (void)state;
}

/* A run grows by an iteration, a list is emptied and filled while rows are still to come. */
static void
gradual__list_that_changes_meanwhile_is_followed (void **state)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (16);
  for (guint round = 0; round < 200; round++)
    {
      guint n = g_rand_int_range (random, 0, 300);
      Fixture f = begin (n);
      g_signal_connect (f.rows, "items-changed", G_CALLBACK (count), &f);
      for (guint step = 0; step < 20; step++)
        {
          guint next = g_rand_int_range (random, 0, 300);
          td_index_list_resize (f.list, next, g_rand_int_range (random, 0, MIN (n, next) + 1));
          n = next;
          assert_true (f.n <= n);
          if (g_rand_boolean (random))
            g_main_context_iteration (NULL, FALSE);
          if (n && g_rand_boolean (random))
            td_gradual_list_select (f.selection, g_rand_int_range (random, 0, n));
        }
      run_idle ();
      assert_int_equal (f.n, n);
      g_signal_handlers_disconnect_by_data (f.rows, &f);
      end (&f);
    }
  (void)state;
}

static void
gradual__list_that_is_closed_adds_no_more (void **state)
{
  Fixture f = begin (ROWS);
  end (&f);
  run_idle ();
  (void)state;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (gradual__rows_come_a_few_in_a_turn),
    cmocka_unit_test (gradual__row_that_is_selected_is_there_at_once),
    cmocka_unit_test (gradual__list_that_changes_meanwhile_is_followed),
    cmocka_unit_test (gradual__list_that_is_closed_adds_no_more),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
