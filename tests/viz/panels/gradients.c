/*
 * The columns of the gradients: linear in iterations over the whole run, each with one stored
 * iteration of it or empty.
 *
 * SPDX-License-Identifier: MIT
 */
#include <glib.h>
#include <math.h>
#include <string.h>

#include "gradient/td-gradient-private.h"
#include "lenet-tape.h"
#include "td-tape-writer.h"
#include "td-test.h"

static TdTapeReader *
open_tape (const LenetOptions *options)
{
  const char *path = td_test_tmp ("lenet.tdtape");
  char error[160];

  lenet_tape_write (path, options);
  TdTapeReader *reader = td_tape_reader_open (path, error, sizeof error);
  assert_non_null (reader);
  return reader;
}

static TdScene *
draw (TdGradientTable *g, TdTapeReader *reader, const TdGradientRange *range, gint64 at)
{
  TdPanelView v = { .width = 480, .height = 190, .iteration = at, .event = -1, .head = -1 };

  td_gradient_table_load (g, reader, range, at);
  return td_gradient_scene (g, NULL, range, &v);
}

/* What is under the pointer in the middle of a column. */
static TdSceneHit
hit_column (const TdScene *scene, guint column, guint n)
{
  const TdSceneAxes *axes = td_scene_axes (scene);
  TdSceneHit hit;

  assert_true (td_scene_hit (scene, axes->box.x + axes->box.width * (column + 0.5) / n,
                             axes->box.y + 5, 0, &hit));
  assert_int_equal (hit.tag, TD_TAG_CELL);
  assert_int_equal (hit.col, column);
  return hit;
}

/* In many steps, of which each may take no time, the table becomes what it is in one. */
static void
table__is_loaded_piece_by_piece (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  o.n_iterations = 300;
  o.values = FALSE;
  TdTapeReader *reader = open_tape (&o);
  TdGradientTable *once = td_gradient_table_new (reader),
                  *often = td_gradient_table_new (reader);
  TdGradientRange run = td_gradient_range_run (reader, 299);
  guint n = 1;

  td_gradient_table_load (once, reader, &run, 299);
  while (!td_gradient_table_load_until (often, reader, &run, 299, 0))
    n++;
  assert_in_range (n, 20, 40);
  g_autofree char *a = td_gradient_print (once, &run, 299, "csv");
  g_autofree char *b = td_gradient_print (often, &run, 299, "csv");
  assert_string_equal (a, b);
  td_gradient_table_free (once);
  td_gradient_table_free (often);
  td_tape_reader_free (reader);
}

/* ---- the axis ---- */

static void
axis__is_linear_in_iterations_over_the_whole_run (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  o.n_iterations = 1000;
  o.values = FALSE;
  TdTapeReader *reader = open_tape (&o);
  TdGradientTable *g = td_gradient_table_new (reader);
  TdGradientRange run = td_gradient_range_run (reader, 500);
  g_autoptr (TdScene) scene = draw (g, reader, &run, 500);
  const TdSceneAxes *axes = td_scene_axes (scene);

  assert_int_equal (run.first, 0);
  assert_int_equal (run.last, 999);
  /* 330 units have room for 47 columns: 32 of 32 iterations */
  assert_true (axes->x0 == 0 && axes->x1 == 1024);
  for (guint c = 0; c < 32; c++)
    {
      TdSceneHit hit = hit_column (scene, c, 32);
      gint64 under
          = (gint64)td_scene_axis_value (scene, axes->box.x + axes->box.width * (c + 0.5) / 32);

      assert_int_equal (under / 32, c);
      /* no findings: the newest of the column, of the last the newest that ran */
      assert_int_equal (hit.number, MIN (32 * c + 31, 999));
    }
  assert_string_equal (hit_column (scene, 3, 32).tooltip, "iteration 127, of 96 to 127");
  assert_string_equal (hit_column (scene, 31, 32).tooltip, "iteration 999, of 992 to 999");
  td_gradient_table_free (g);
  td_tape_reader_free (reader);
}

static void
column__shows_a_nan_before_an_infinity_before_the_newest (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  o.n_iterations = 1000;
  o.values = FALSE;
  o.nan_at = 333;
  o.inf_at = 321; /* in the same column */
  TdTapeReader *reader = open_tape (&o);
  TdGradientTable *g = td_gradient_table_new (reader);
  TdGradientRange run = td_gradient_range_run (reader, 999);
  g_autoptr (TdScene) scene = draw (g, reader, &run, 999);
  double norm;

  assert_int_equal (hit_column (scene, 10, 32).number, 333);
  assert_int_equal (td_gradient_table_norm (g, 8, 333, &norm), TD_CELL_NAN);
  g_autofree char *dump = td_scene_dump (scene);
  td_test_golden ("viz/gradients-run.scene", dump);
  td_gradient_table_free (g);
  td_tape_reader_free (reader);

  o.nan_at = -1;
  reader = open_tape (&o);
  g = td_gradient_table_new (reader);
  g_autoptr (TdScene) infinite = draw (g, reader, &run, 999);
  assert_int_equal (hit_column (infinite, 10, 32).number, 321);
  assert_int_equal (hit_column (infinite, 9, 32).number, 319);
  td_gradient_table_free (g);
  td_tape_reader_free (reader);
}

/* Looking at other iterations first changes nothing of what a column shows. */
static void
column__shows_the_same_whatever_was_looked_at_before (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  o.n_iterations = 300;
  o.values = FALSE;
  TdTapeReader *reader = open_tape (&o);
  TdGradientTable *g = td_gradient_table_new (reader), *fresh = td_gradient_table_new (reader);
  TdGradientRange run = td_gradient_range_run (reader, 299);

  for (gint64 at = 0; at < 300; at += 7)
    {
      TdGradientRange zoom = td_gradient_range_newest (reader, at, 10);
      td_scene_unref (draw (g, reader, &zoom, at));
    }
  g_autoptr (TdScene) a = draw (g, reader, &run, 299), b = draw (fresh, reader, &run, 299);
  g_autofree char *text_a = td_scene_dump (a), *text_b = td_scene_dump (b);
  assert_string_equal (text_a, text_b);
  td_gradient_table_free (fresh);
  td_gradient_table_free (g);
  td_tape_reader_free (reader);
}

static void
column__without_a_stored_iteration_stays_empty (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  o.n_iterations = 2000;
  o.values = FALSE;
  o.budget_bytes = 1500000;
  TdTapeReader *reader = open_tape (&o);
  TdTapeSummaries s = td_tape_reader_summaries (reader);
  TdGradientTable *g = td_gradient_table_new (reader);
  TdGradientRange run = td_gradient_range_run (reader, 1999);
  g_autoptr (TdScene) scene = draw (g, reader, &run, 1999);
  g_autofree char *dump = td_scene_dump (scene);
  const char *first_row = strchr (dump, '|') + 1;
  guint n_empty = 0;

  assert_int_equal (run.first, 0);
  assert_int_equal (run.last, 1999);
  for (guint c = 0; c < 32; c++) /* of 64 iterations */
    {
      TdSceneHit hit = hit_column (scene, c, 32);
      gint64 newest = -1;

      for (guint32 i = 0; i < s.n; i++)
        if (s.rows[i].number / 64 == c && td_tape_reader_stored (reader, i))
          newest = (gint64)s.rows[i].number;
      assert_int_equal (hit.number, newest);
      assert_int_equal (first_row[c] == ' ', newest < 0);
      n_empty += newest < 0;
      if (newest < 0)
        assert_non_null (strstr (hit.tooltip, "none is stored whole"));
    }
  assert_true (n_empty > 0 && n_empty < 31);
  g_autofree char *said = g_strdup_printf ("%u of 32 empty: not stored", n_empty);
  assert_contains (dump, said);
  td_gradient_table_free (g);
  td_tape_reader_free (reader);
}

/* Of one that runs the gradients are not there yet; they are when it has ended. */
static void
column__that_was_read_while_it_ran_is_read_again (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  TdTapeReader *reader = open_tape (&o);
  TdGradientTable *g = td_gradient_table_new (reader);
  TdGradientRange run = td_gradient_range_run (reader, 39);
  TdIteration *it = lenet_tape_load (reader, 39);
  TdTapeIteration *t = (TdTapeIteration *)td_iteration_get_tape (it);
  double norm;

  t->n_grads = 0;
  t->flags |= TD_TAPE_ITERATION_PARTIAL;
  assert_false (td_iteration_is_complete (it));
  td_gradient_table_add (g, it);
  assert_int_equal (td_gradient_table_norm (g, 0, 39, &norm), TD_CELL_MISSING);
  td_gradient_table_load (g, reader, &run, 39);
  assert_int_equal (td_gradient_table_norm (g, 0, 39, &norm), TD_CELL_VALUE);
  td_iteration_unref (it);
  td_gradient_table_free (g);
  td_tape_reader_free (reader);
}

static void
newest__are_a_column_each_up_to_the_playhead (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  o.n_iterations = 300;
  o.values = FALSE;
  TdTapeReader *reader = open_tape (&o);
  TdGradientTable *g = td_gradient_table_new (reader);
  TdGradientRange zoom = td_gradient_range_newest (reader, 250, 10);
  g_autoptr (TdScene) scene = draw (g, reader, &zoom, 250);

  for (guint c = 0; c < 10; c++)
    assert_int_equal (hit_column (scene, c, 10).number, 241 + c);
  assert_string_equal (hit_column (scene, 9, 10).tooltip, "iteration 250");
  TdGradientRange more = td_gradient_range_newest (reader, 5, 10);
  assert_int_equal (more.first, 0);
  assert_int_equal (more.last, 5);
  td_gradient_table_free (g);
  td_tape_reader_free (reader);
}

/* ---- text ---- */

static void
print__says_which_iterations_the_columns_are_of (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  o.n_iterations = 300;
  o.values = FALSE;
  TdTapeReader *reader = open_tape (&o);
  TdGradientTable *g = td_gradient_table_new (reader);
  TdGradientRange run = td_gradient_range_run (reader, 299);

  td_gradient_table_load (g, reader, &run, 299);
  g_autofree char *csv = td_gradient_print (g, &run, 299, "csv");
  g_autofree char *json = td_gradient_print (g, &run, 299, "json");
  g_autofree char *text = td_gradient_print (g, &run, 299, "text");
  /* 300 in at most 64 columns: 8 each */
  assert_true (g_str_has_prefix (csv, "parameter,7,15,23,"));
  assert_contains (csv, ",295,299\n");
  assert_contains (json, "\"iterations_per_column\": 8");
  assert_contains (json, "\"n_columns\": 38");
  assert_contains (json, "\"reason\": null");
  assert_contains (text, "each column is one of 8 iterations");
  td_gradient_table_free (g);
  td_tape_reader_free (reader);
}

/* The norms of each row in iteration 1, NAN where none is known. */
static guint
read_norms (const LenetOptions *o, double *norms, guint n, char **json)
{
  TdTapeReader *reader = open_tape (o);
  TdGradientTable *g = td_gradient_table_new (reader);
  TdGradientRange run = td_gradient_range_run (reader, 4);
  guint n_known = 0;

  td_gradient_table_load (g, reader, &run, 4);
  assert_int_equal (td_gradient_table_n_rows (g), n);
  for (guint row = 0; row < n; row++)
    if (td_gradient_table_norm (g, row, 1, &norms[row]) == TD_CELL_VALUE)
      n_known++;
    else
      norms[row] = NAN;
  *json = td_gradient_print (g, &run, 4, "json");
  td_gradient_table_free (g);
  td_tape_reader_free (reader);
  return n_known;
}

/* Numbers are those of the same program with an optimizer, as backward left them. */
static void
print__of_a_program_without_an_optimizer_has_the_norms_of_the_graph (void **state)
{
  enum
  {
    ROWS = 10
  };
  LenetOptions o = LENET_DEFAULT;
  double with[ROWS], without[ROWS];
  char *json;

  o.n_iterations = 5;
  assert_int_equal (read_norms (&o, with, ROWS, &json), ROWS);
  g_free (json);
  o.no_update = TRUE;
  const guint n_known = read_norms (&o, without, ROWS, &json);
  print_message ("%u of %d norms are known\n", n_known, ROWS);
  assert_true (n_known >= 5);
  for (guint row = 0; row < ROWS; row++)
    assert_true (isnan (without[row]) || without[row] == with[row]);
  assert_contains (json, "\"reason\": null");
  g_free (json);
}

/* ---- rows ---- */

/* The heights at which names of rows are, from above. */
static guint
list_names (const char *dump, double *y, guint max, guint *n_ticks)
{
  g_auto (GStrv) lines = g_strsplit (dump, "\n", -1);
  guint n = 0;

  *n_ticks = 0;
  for (guint i = 0; lines[i]; i++)
    {
      double x = 0, middle = 0;

      if (!strstr (lines[i], "[parameter "))
        continue;
      if (sscanf (lines[i], "text %lf %lf", &x, &middle) == 2)
        {
          if (x < 86 && n < max)
            y[n++] = middle;
        }
      else
        ++*n_ticks;
    }
  return n;
}

static void
assert_rows (const TdGradientTable *g, const TdGradientRange *run, double height, gint selected,
             guint *n_left_out)
{
  TdPanelView v = { .width = 480, .height = height, .iteration = 39, .event = -1, .head = -1 };
  guint64 key = selected >= 0 ? td_gradient_table_key (g, (guint)selected) : 0;
  guint n, n_ticks, n_rows;
  double y[64];

  v.selected = &key;
  v.n_selected = selected >= 0;
  g_autoptr (TdScene) scene = td_gradient_scene (g, NULL, run, &v);
  g_autofree char *dump = td_scene_dump (scene);

  n = list_names (dump, y, G_N_ELEMENTS (y), &n_ticks);
  n_rows = (guint)td_scene_axes (scene)->y1;
  assert_true (n >= 1);
  for (guint i = 1; i < n; i++)
    assert_true (y[i] - y[i - 1] >= 1.15 * td_text_pixels (TD_TEXT_CAPTION) - 0.1);
  assert_int_equal (n + n_ticks, n_rows);
  /* nothing is left out without a word, and what is selected has its name */
  *n_left_out = td_gradient_table_n_rows (g) - n_rows;
  if (*n_left_out > 0)
    {
      g_autofree char *said
          = g_strdup_printf ("%u of %u parameters", n_rows, td_gradient_table_n_rows (g));

      assert_contains (dump, said);
    }
  if (selected >= 0)
    assert_contains (dump, "12px align=1.0 max=72.0 bold");
}

static void
rows__have_names_that_never_touch (void **state)
{
  LenetOptions o = LENET_DEFAULT;
  TdTapeReader *reader = open_tape (&o);
  TdGradientTable *g = td_gradient_table_new (reader);
  TdGradientRange run = td_gradient_range_run (reader, 39);
  guint n_with_less = 0;

  td_gradient_table_load (g, reader, &run, 39);
  for (double height = 60; height < 300; height += 3)
    for (gint selected = -1; selected < (gint)td_gradient_table_n_rows (g); selected++)
      {
        guint n_left_out;

        assert_rows (g, &run, height, selected, &n_left_out);
        n_with_less += n_left_out > 0;
      }
  assert_true (n_with_less > 10);
  td_gradient_table_free (g);
  td_tape_reader_free (reader);
}

/* Blocks of one kind have the same names at their ends. */
static void
rows__have_names_that_tell_them_apart (void **state)
{
  static const char *const paths[][2] = { { "net/wte/W", "wte/W" },
                                          { "net/h0/ln/gamma", "h0/ln/gamma" },
                                          { "net/h1/ln/gamma", "h1/ln/gamma" },
                                          { "net/a/h0/up/W", "a/h0/up/W" },
                                          { "net/b/h0/up/W", "b/h0/up/W" },
                                          { "net/b/h1/up/W", "h1/up/W" },
                                          { "up/W", "up/W" },
                                          { "W", "W" } };
  const char *path = td_test_tmp ("names.tdtape");
  char error[160];
  TdTapeWriter *w = td_tape_writer_new (
      &(TdTapeWriterOptions){ .size = sizeof (TdTapeWriterOptions), .path = path }, error,
      sizeof error);

  assert_non_null (w);
  for (guint i = 0; i < G_N_ELEMENTS (paths); i++)
    td_tape_writer_parameter (
        w, &(TdTapeParameter){ .key = i + 1, .path = td_tape_writer_string (w, paths[i][0]) });
  td_tape_writer_free (w);
  TdTapeReader *reader = td_tape_reader_open (path, error, sizeof error);
  TdGradientTable *g = td_gradient_table_new (reader);
  g_autoptr (GPtrArray) names = td__gradient_name_rows (g);
  assert_int_equal (names->len, G_N_ELEMENTS (paths));
  for (guint i = 0; i < names->len; i++)
    assert_string_equal (names->pdata[i], paths[i][1]);
  td_gradient_table_free (g);
  td_tape_reader_free (reader);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (table__is_loaded_piece_by_piece),
    td_test (axis__is_linear_in_iterations_over_the_whole_run),
    td_test (column__shows_a_nan_before_an_infinity_before_the_newest),
    td_test (column__shows_the_same_whatever_was_looked_at_before),
    td_test (column__without_a_stored_iteration_stays_empty),
    td_test (column__that_was_read_while_it_ran_is_read_again),
    td_test (newest__are_a_column_each_up_to_the_playhead),
    td_test (print__says_which_iterations_the_columns_are_of),
    td_test (print__of_a_program_without_an_optimizer_has_the_norms_of_the_graph),
    td_test (rows__have_names_that_never_touch),
    td_test (rows__have_names_that_tell_them_apart),
  };
  return cmocka_run_group_tests_name ("gradients", tests, NULL, NULL);
}
