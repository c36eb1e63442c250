/*
 * The model of the compare page: rows, marks, counterparts, totals, text; and marks in
 * pictures.
 *
 * SPDX-License-Identifier: MIT
 */
#include <glib.h>
#include <string.h>

#include "diff/td-kinds.h"
#include "lenet-tape.h"
#include "scene/td-graph-scene.h"
#include "td-test.h"

typedef struct
{
  TdTapeReader *reader;
  TdCompare *compare;
} Fixture;

static Fixture
compare_of (const LenetOptions *options, guint64 a, guint64 b)
{
  const char *path = td_test_tmp ("compare.tdtape");
  char error[160];
  Fixture f;

  lenet_tape_write (path, options);
  f.reader = td_tape_reader_open (path, error, sizeof error);
  g_autoptr (TdIteration) ia = lenet_tape_load (f.reader, a);
  g_autoptr (TdIteration) ib = lenet_tape_load (f.reader, b);
  f.compare = td_compare_new (ia, ib, f.reader, f.reader);
  return f;
}

static void
fixture_clear (Fixture *f)
{
  td_compare_free (f->compare);
  td_tape_reader_free (f->reader);
}

/* One relu more in iteration 20, event 12 of it. */
static Fixture
inserted_relu (void)
{
  LenetOptions o = LENET_DEFAULT;

  o.extra_relu_at = 20;
  return compare_of (&o, 19, 20);
}

/* The same where neither side has an iteration like it: times are those of the two. */
static Fixture
lone_relu (void)
{
  LenetOptions o = LENET_DEFAULT;

  o.n_iterations = 2;
  o.extra_relu_at = 1;
  return compare_of (&o, 0, 1);
}

static void
compare__shows_every_operation_of_both_sides_once (void **state)
{
  Fixture f = inserted_relu ();
  TdCompare *c = f.compare;
  guint n[TD_N_SIDES] = { 0, 0 };

  for (guint i = 0; i < c->n_rows; i++)
    for (int side = 0; side < TD_N_SIDES; side++)
      if (c->rows[i].event[side] >= 0)
        {
          assert_int_equal (td_compare_find_row (c, (TdSide)side, c->rows[i].event[side]), i);
          n[side]++;
        }
  for (int side = 0; side < TD_N_SIDES; side++)
    {
      assert_int_equal (n[side], td_iteration_get_n_events (c->of[side]));
      assert_int_equal (n[side], c->diff->totals[side].n_events);
    }
  fixture_clear (&f);
}

static void
compare__of_an_inserted_operation_marks_it_and_nothing_else (void **state)
{
  Fixture f = inserted_relu ();
  TdCompare *c = f.compare;
  guint n_marked = 0;

  assert_int_equal (c->n_structural, 1);
  for (guint i = 0; i < c->n_rows; i++)
    if (c->rows[i].mark != TD_MARK_NONE && c->rows[i].mark != TD_MARK_NUMBERS)
      {
        g_autofree char *name = td_compare_row_name (c, i),
                        *events = td_compare_row_events (c, i);

        assert_int_equal (c->rows[i].mark, TD_MARK_ADDED);
        assert_string_equal (name, "relu");
        assert_string_equal (events, "none → 12");
        n_marked++;
      }
  assert_int_equal (n_marked, 1);
  assert_int_equal (c->marks[TD_SIDE_B][12], TD_MARK_ADDED);
  assert_int_equal (td_compare_counterpart (c, TD_SIDE_B, 12), -1);
  assert_int_equal (td_compare_counterpart (c, TD_SIDE_B, 13), 12);
  assert_int_equal (td_compare_counterpart (c, TD_SIDE_A, 12), 13);
  assert_int_equal (td_compare_counterpart (c, TD_SIDE_A, 9999), -1);
  fixture_clear (&f);
}

static void
compare__names_both_operations_of_a_change (void **state)
{
  LenetOptions a = LENET_DEFAULT, b = LENET_DEFAULT;
  const char *path = td_test_tmp ("other.tdtape");
  char error[160];
  Fixture f = compare_of (&a, 0, 0);

  b.op_name = "average_pooling_2d";
  lenet_tape_write (path, &b);
  TdTapeReader *reader = td_tape_reader_open (path, error, sizeof error);
  g_autoptr (TdIteration) other = lenet_tape_load (reader, 0);
  g_autoptr (TdCompare) c = td_compare_new (f.compare->of[TD_SIDE_A], other, f.reader, reader);
  g_autofree char *name = td_compare_row_name (c, (guint)td_compare_find_row (c, TD_SIDE_A, 2));

  assert_string_equal (name, "max_pooling_2d → average_pooling_2d");
  assert_int_equal (c->marks[TD_SIDE_A][2], TD_MARK_CHANGED);
  assert_int_equal (c->marks[TD_SIDE_B][2], TD_MARK_CHANGED);
  g_clear_pointer (&c, td_compare_free);
  g_clear_pointer (&other, td_iteration_unref);
  td_tape_reader_free (reader);
  fixture_clear (&f);
}

/* The totals are a recount of the tape, whose iterations are each alone with their graph. */
static void
compare__totals_equal_a_recount (void **state)
{
  Fixture f = lone_relu ();

  for (int side = 0; side < TD_N_SIDES; side++)
    {
      const TdTapeIteration *t = td_iteration_get_tape (f.compare->of[side]);
      const TdDiffTotals *totals = &f.compare->diff->totals[side];
      guint64 ns = 0, row_ns = 0;
      guint n_forward = 0;

      for (guint e = 0; e < t->n_events; e++)
        {
          ns += t->event_duration_ns[e];
          n_forward += t->events[e].phase == TD_TAPE_PHASE_FORWARD;
        }
      for (guint i = 0; i < f.compare->n_rows; i++)
        row_ns += td_compare_row_ns (f.compare, i, (TdSide)side);
      assert_true (ns > 0);
      assert_int_equal (totals->op_ns, ns);
      assert_int_equal (row_ns, ns);
      assert_int_equal (totals->n_phase[TD_TAPE_PHASE_FORWARD], n_forward);
      assert_int_equal (totals->peak_bytes, t->peak_bytes);
    }
  fixture_clear (&f);
}

static void
compare__writes_changes_with_their_sign (void **state)
{
  char text[TD_FORMAT_SIZE];

  assert_string_equal (td_compare_format_ns (text, 100000, 29000), "−71.0 µs");
  assert_string_equal (td_compare_format_ns (text, 29000, 100000), "+71.0 µs");
  assert_string_equal (td_compare_format_bytes (text, 5, 5), "0");
  assert_string_equal (td_compare_format_bytes (text, 0, 64), "+64 B");
}

static void
compare__prints_the_differences_as_text_and_all_rows_as_csv (void **state)
{
  Fixture f = inserted_relu ();
  g_autofree char *text = td_compare_print (f.compare, "text", FALSE),
                  *csv = td_compare_print (f.compare, "csv", TRUE);
  g_auto (GStrv) lines = g_strsplit (csv, "\n", -1);

  assert_contains (text, "1 operation");
  assert_contains (text, "+ forward  none → 12");
  assert_int_equal (g_strv_length (lines), f.compare->n_rows + 2); /* head, and after the end */
  assert_contains (csv, "added,forward,relu,");
  fixture_clear (&f);
}

/* ---- dynamic and static ---- */

static const TdKindsRow *
find_aspect (const TdKinds *kinds, const char *aspect)
{
  for (guint i = 0; i < kinds->n_rows; i++)
    if (strcmp (kinds->rows[i].aspect, aspect) == 0)
      return &kinds->rows[i];
  fail_msg ("no aspect %s", aspect);
  return NULL;
}

static void
kinds__measure_what_the_recording_did (void **state)
{
  Fixture f = inserted_relu ();
  g_autoptr (TdKinds) kinds = td_kinds_new (f.compare, f.reader, f.reader);
  const TdKindsRow *row = find_aspect (kinds, "Flexibility");

  assert_string_equal (row->of_static, "Less flexible: needs a fixed structure");
  assert_string_equal (row->measured[TD_SIDE_A], "2 graphs in 40 iterations");
  row = find_aspect (kinds, "Execution");
  assert_string_equal (row->measured[TD_SIDE_B], "Another graph from iteration 20 on");
  row = find_aspect (kinds, "Definition");
  assert_string_equal (row->of_dynamic, "Built on the fly during each forward pass");
  assert_string_equal (row->measured[TD_SIDE_A], "45 operations, made while iteration 19 ran");
  assert_string_equal (row->measured[TD_SIDE_B], "46 operations, made while iteration 20 ran");
  row = find_aspect (kinds, "Advantages"); /* there and back */
  assert_string_equal (row->of_dynamic, "");
  assert_string_equal (row->measured[TD_SIDE_A], "Used: the graph changed 2 times");
  for (int side = 0; side < TD_N_SIDES; side++)
    {
      /* of either side the time of an iteration, and what each operation costs besides itself;
       * both as medians, which are recounted in times.c */
      const TdTapeIteration *it = td_iteration_get_tape (f.compare->of[side]);
      const TdDiffTotals *t = &f.compare->diff->totals[side];
      char all[TD_FORMAT_SIZE], each[TD_FORMAT_SIZE];
      guint64 in_operations = t->op_ns;

      row = find_aspect (kinds, "Disadvantages");
      g_autofree char *says = g_strdup_printf (" of %s an iteration passed outside operations",
                                               td_format_ns (all, t->ns));
      assert_contains (row->measured[side], says);
      g_autofree char *cost = g_strdup_printf (
          ", %s for each",
          td_format_ns (each,
                        (t->ns > in_operations ? t->ns - in_operations : 0) / it->n_events));
      assert_contains (row->measured[side], cost);
    }
  g_clear_pointer (&kinds, td_kinds_free);
  fixture_clear (&f);
}

/* ---- pictures ---- */

static char *
dump_of (TdIteration *iteration, const guint8 *marks, gint depth)
{
  TdVizGraph *graph = td_iteration_get_graph (iteration);
  g_autoptr (TdFold) fold = td_fold_new_depth (graph, depth);
  TdLayoutOptions options = { .orientation = TD_ORIENTATION_TB };
  TdVizView *visible = td_viz_view_new (graph, fold, TD_VIEW_ALL);
  g_autoptr (TdLayout) layout = td_layout_new_quick (visible, &options, NULL);
  TdPanelView view = { .event = 3,
                       .head = -1,
                       .whole = marks != NULL,
                       .marks = marks,
                       .n_marks = td_iteration_get_n_events (iteration) };
  g_autoptr (TdScene) scene = td_graph_scene_new (layout, &view, TD_HEAT_OFF);

  td_viz_view_unref (visible);
  return td_scene_dump (scene);
}

static guint
count_of (const char *text, const char *part)
{
  guint n = 0;

  for (const char *at = text; (at = strstr (at, part)); at += strlen (part))
    n++;
  return n;
}

static void
picture__of_a_marked_operation_has_sign_colour_and_line (void **state)
{
  Fixture f = inserted_relu ();
  TdIteration *b = f.compare->of[TD_SIDE_B];
  g_autofree char *plain = dump_of (b, NULL, -1),
                  *marked = dump_of (b, f.compare->marks[TD_SIDE_B], -1);
  /* the node and its pill are drawn in the colour of what was added */
  assert_int_equal (count_of (plain, "stroke=added"), 0);
  assert_int_equal (count_of (marked, "stroke=added"), 2);
  assert_int_equal (count_of (marked, "\"+\""), 1);
  /* seen whole, nothing is dashed though the playhead is at event 3 */
  assert_true (count_of (plain, "dashed") > 0);
  assert_int_equal (count_of (marked, "dashed"), 0);
  fixture_clear (&f);
}

static void
picture__of_a_folded_layer_counts_what_differs_in_it (void **state)
{
  Fixture f = inserted_relu ();
  TdIteration *b = f.compare->of[TD_SIDE_B];
  guint8 *marks = g_memdup2 (f.compare->marks[TD_SIDE_B], td_iteration_get_n_events (b));

  marks[0] = marks[1] = TD_MARK_REMOVED; /* both in block1 */
  g_autofree char *marked = dump_of (b, marks, 0);
  assert_int_equal (count_of (marked, "\"− 2\""), 1);
  g_free (marks);
  fixture_clear (&f);
}

static void
marks__differ_by_more_than_colour (void **state)
{
  for (int i = 1; i < TD_N_MARKS; i++)
    for (int j = i + 1; j < TD_N_MARKS; j++)
      assert_string_not_equal (td_mark_looks[i].glyph, td_mark_looks[j].glyph);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (compare__shows_every_operation_of_both_sides_once),
    td_test (compare__of_an_inserted_operation_marks_it_and_nothing_else),
    td_test (compare__names_both_operations_of_a_change),
    td_test (compare__totals_equal_a_recount),
    td_test (compare__writes_changes_with_their_sign),
    td_test (compare__prints_the_differences_as_text_and_all_rows_as_csv),
    td_test (kinds__measure_what_the_recording_did),
    td_test (picture__of_a_marked_operation_has_sign_colour_and_line),
    td_test (picture__of_a_folded_layer_counts_what_differs_in_it),
    td_test (marks__differ_by_more_than_colour),
  };

  return cmocka_run_group_tests_name ("compare", tests, NULL, NULL);
}
