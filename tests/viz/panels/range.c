/*
 * Ranges of iterations: what pictures over the run are narrowed to, and that what they then say
 * is a recount of the range.
 *
 * SPDX-License-Identifier: MIT
 */
#include <glib.h>
#include <math.h>
#include <string.h>

#include "gradient/td-gradient.h"
#include "lenet-tape.h"
#include "memory/td-memory.h"
#include "schedule/td-curve.h"
#include "td-session.h"
#include "td-test.h"

static const TdRange some = { 10, 25 }, all = { 0, 0 };

static TdTapeReader *
open_tape (const char *name)
{
  LenetOptions o = LENET_DEFAULT;
  const char *path = td_test_tmp (name);
  char error[160];

  lenet_tape_write (path, &o);
  return td_tape_reader_open (path, error, sizeof error);
}

static void
range__is_read_and_described (void **state)
{
  static const struct
  {
    const char *text, *words; /* NULL: it is no range */
  } cases[] = {
    { "10..40", "iterations 10 to 40" },
    { "7..7", "iteration 7" },
    { "", "all iterations" },
    { "0..9223372036854775806", "iterations 0 to 9223372036854775806" },
    { "40..10", NULL },
    { "10", NULL },
    { "10..", NULL },
    { "..10", NULL },
    { "-1..10", NULL },
    { "1..2x", NULL },
    { "1...2", NULL },
    { " 1..2", NULL },
    { "1..9223372036854775807", NULL },
    { "1..99999999999999999999", NULL },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      TdRange range;
      gboolean is_range = td_range_parse (cases[i].text, &range);
      g_autofree char *words = td_range_describe (range);

      assert_int_equal (is_range, cases[i].words != NULL);
      assert_string_equal (words, is_range ? cases[i].words : "all iterations");
    }
}

/* As `tapedeck cat` takes them. */
static void
range__is_read_as_a_pair (void **state)
{
  static const struct
  {
    const char *text;
    TdRange range; /* empty: it is none */
  } cases[] = { { "10:40", { 10, 41 } },
                { "7", { 7, 8 } },
                { ":3", { 0, 4 } },
                { "3:", { 3, G_MAXINT64 } },
                { ":", { 0, G_MAXINT64 } },
                { "", { 0, 0 } },
                { "40:10", { 0, 0 } },
                { "1:2:3", { 0, 0 } },
                { "-1:2", { 0, 0 } },
                { "1..2", { 0, 0 } },
                { "a:b", { 0, 0 } },
                { "1:x", { 0, 0 } },
                { "1:9223372036854775807", { 0, 0 } } };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      TdRange range;

      assert_int_equal (td_range_parse_pair (cases[i].text, &range),
                        !td_range_is_all (cases[i].range));
      assert_int_equal (range.first, cases[i].range.first);
      assert_int_equal (range.end, cases[i].range.end);
    }
}

static void
range__of_nothing_is_the_whole_run (void **state)
{
  assert_true (td_range_is_all (all));
  assert_true (td_range_has (all, 4711));
  assert_false (td_range_has (some, 9));
  assert_true (td_range_has (some, 10));
  assert_true (td_range_has (some, 24));
  assert_false (td_range_has (some, 25));
  assert_true (td_range_equal (all, (TdRange){ 7, 3 }));
  assert_false (td_range_equal (all, some));
  assert_false (td_range_equal (some, (TdRange){ 10, 26 }));
  assert_true (td_range_equal (some, (TdRange){ 10, 25 }));
}

/* A program that is started again counts anew. */
static void
range__finds_summaries_over_a_count_that_began_anew (void **state)
{
  TdTapeSummary rows[] = { { .number = 0 }, { .number = 1 }, { .number = 2 },
                           { .number = 0 }, { .number = 1 }, { .number = 5 } };
  const TdTapeSummaries summaries = { .n = G_N_ELEMENTS (rows), .rows = rows };
  guint from, to;

  td_range_find ((TdRange){ 1, 3 }, &summaries, &from, &to);
  assert_int_equal (from, 1);
  assert_int_equal (to, 5);
  td_range_find (all, &summaries, &from, &to);
  assert_int_equal (to - from, 6);
  td_range_find ((TdRange){ 6, 9 }, &summaries, &from, &to);
  assert_int_equal (to - from, 0);
}

/* ---- pictures ---- */

static void
range__of_memory_has_the_peaks_of_a_recount (void **state)
{
  TdTapeReader *reader = open_tape ("range-memory.tdtape");
  TdTapeSummaries s = td_tape_reader_summaries (reader);

  for (guint columns = 1; columns <= 100; columns += 11)
    {
      TdMemoryHistory *h = td_memory_history_new (reader, some, columns);
      guint64 highest = 0, shown = 0;

      for (guint i = 0; i < s.n; i++)
        if (td_range_has (some, (gint64)s.rows[i].number))
          highest = MAX (highest, s.rows[i].peak_bytes);
      for (guint i = 0; i < h->n; i++)
        {
          assert_true (td_range_has (some, h->iteration[i]));
          shown = MAX (shown, h->peak[i]);
        }
      assert_int_equal (h->n, MIN (columns, 15));
      assert_int_equal (h->first, 10);
      assert_int_equal (h->last, 24);
      assert_int_equal (shown, highest);
      td_memory_history_free (h);
    }
  td_tape_reader_free (reader);
}

static void
range__of_gradients_is_what_of_it_there_is (void **state)
{
  const TdGradientRange run = { .first = 0, .last = 39, .n = 64 };
  TdGradientRange narrow = td_gradient_range_narrow (run, some);

  assert_int_equal (narrow.first, 10);
  assert_int_equal (narrow.last, 24);
  narrow = td_gradient_range_narrow (run, (TdRange){ 30, 90 });
  assert_int_equal (narrow.first, 30);
  assert_int_equal (narrow.last, 39);
  narrow = td_gradient_range_narrow (run, all);
  assert_int_equal (narrow.last, 39);
  narrow = td_gradient_range_narrow (run, (TdRange){ 80, 90 });
  assert_int_equal (narrow.first, 0);
  assert_int_equal (narrow.n, 64);
}

/* The scale is that of the range: the loss of the beginning no longer flattens it. */
static void
range__of_curves_is_its_axis_and_its_scale (void **state)
{
  TdCurves *curves = td_curves_new ();
  TdPanelView view = { .width = 500, .height = 200, .iteration = 12, .event = -1, .head = -1 };

  for (gint64 i = 0; i < 40; i++)
    td_curves_append (curves, "loss", i, i < 5 ? 7000 : 0.5 - 0.01 * (double)i);
  g_autoptr (TdScene) whole = td_curves_scene (curves, &view);
  view.range = some;
  g_autoptr (TdScene) narrow = td_curves_scene (curves, &view);
  g_autofree char *whole_dump = td_scene_dump (whole), *dump = td_scene_dump (narrow);

  assert_float_equal (td_scene_axes (whole)->x1, 40, 0);
  assert_float_equal (td_scene_axes (narrow)->x0, 10, 0);
  assert_float_equal (td_scene_axes (narrow)->x1, 25, 0);
  assert_contains (whole_dump, "\"6000\"");
  assert_null (strstr (dump, "000\""));
  assert_contains (dump, "\"0.38\""); /* the value at the playhead */
  td_curves_free (curves);
}

/* Of values outside of the range nothing is said, not even that they are not finite. */
static void
range__of_curves_counts_what_is_not_finite_in_it (void **state)
{
  TdCurves *curves = td_curves_new ();
  TdPanelView view = { .width = 500, .height = 200, .iteration = 12, .event = -1, .head = -1 };

  for (gint64 i = 0; i < 40; i++)
    td_curves_append (curves, "loss", i, i == 3 || i == 20 ? NAN : 1.0);
  for (guint k = 0; k < 2; k++)
    {
      view.range = k == 0 ? all : some;
      g_autoptr (TdScene) scene = td_curves_scene (curves, &view);
      g_autofree char *dump = td_scene_dump (scene);
      assert_contains (dump, k == 0 ? "2 values are not finite" : "1 value is not finite");
    }
  td_curves_free (curves);
}

static void
range__is_seen_on_the_strip (void **state)
{
  TdTapeReader *reader = open_tape ("range-strip.tdtape");
  TdCurves *curves = td_curves_new ();
  TdPanelView view = { .width = 412, .height = 38, .iteration = 12, .event = -1, .head = -1 };
  g_autoptr (TdScene) whole = td_deck_scene_iterations (curves, reader, 0, 0, NULL, 0, &view);
  view.range = some;
  g_autoptr (TdScene) narrow = td_deck_scene_iterations (curves, reader, 0, 0, NULL, 0, &view);
  g_autofree char *dump = td_scene_dump (narrow);

  /* two veils, what is between them, two ends; 400 units are 40 iterations */
  assert_int_equal (td_scene_n_items (narrow), td_scene_n_items (whole) + 5);
  assert_contains (dump, "rect 106.0 2.0 150.0 ");
  assert_float_equal (td_scene_axes (narrow)->x1, td_scene_axes (whole)->x1, 0);
  td_curves_free (curves);
  td_tape_reader_free (reader);
}

/* ---- the session's ---- */

static guint n_changes;

static void
count_change (TdSession *session, gpointer data)
{
  n_changes++;
}

static void
assert_range (TdSession *session, gint64 first, gint64 end)
{
  TdRange range = td_session_get_range (session);

  assert_int_equal (range.first, first);
  assert_int_equal (range.end, end);
}

static void
range__of_a_session_lies_in_the_run (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  const char *path = td_test_tmp ("range-session.tdtape");

  lenet_tape_write (path, &o);
  g_autoptr (TdSession) session = td_session_open (path, NULL);
  n_changes = 0;
  g_signal_connect (session, "range-changed", G_CALLBACK (count_change), NULL);
  assert_range (session, 0, 0);
  td_session_set_range (session, some);
  assert_range (session, 10, 25);
  td_session_set_range (session, some); /* nothing new */
  assert_int_equal (n_changes, 1);
  td_session_set_range (session, (TdRange){ 30, G_MAXINT64 });
  assert_range (session, 30, 40);
  td_session_set_range (session, (TdRange){ 900, 1000 });
  assert_range (session, 39, 40);
  td_session_set_range (session, (TdRange){ 0, 40 }); /* all there is */
  assert_range (session, 0, 0);
  td_session_set_range (session, (TdRange){ 5, 5 });
  assert_range (session, 0, 0);
  assert_int_equal (n_changes, 4);
}

/* By place, for lists of iterations. */
static void
range__of_a_session_is_found_by_place (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  const char *path = td_test_tmp ("range-places.tdtape");
  guint from, to;

  lenet_tape_write (path, &o);
  g_autoptr (TdSession) session = td_session_open (path, NULL);
  assert_true (td_range_equal (td_session_get_run (session), (TdRange){ 0, 40 }));
  td_session_find_range (session, &from, &to);
  assert_int_equal (from, 0);
  assert_int_equal (to, td_session_get_n_iterations (session));
  td_session_set_range (session, some);
  td_session_find_range (session, &from, &to);
  assert_int_equal (td_session_get_iteration_number (session, from), 10);
  assert_int_equal (td_session_get_iteration_number (session, to - 1), 24);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (range__is_read_and_described),
    td_test (range__is_read_as_a_pair),
    td_test (range__of_nothing_is_the_whole_run),
    td_test (range__finds_summaries_over_a_count_that_began_anew),
    td_test (range__of_memory_has_the_peaks_of_a_recount),
    td_test (range__of_gradients_is_what_of_it_there_is),
    td_test (range__of_curves_is_its_axis_and_its_scale),
    td_test (range__of_curves_counts_what_is_not_finite_in_it),
    td_test (range__is_seen_on_the_strip),
    td_test (range__of_a_session_lies_in_the_run),
    td_test (range__of_a_session_is_found_by_place),
  };

  return cmocka_run_group_tests_name ("range", tests, NULL, NULL);
}
