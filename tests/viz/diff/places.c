/* A real program that goes another way at one place in each iteration (tests/models/places.c):
 * a comparison names that place and counts exactly what differs.
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "diff/td-diff.h"
#include "td-session.h"
#include "td-test.h"

#define N_PLACES 22

/* Two sides of a comparison, kept open. */
typedef struct
{
  TdSession *session[2];
  TdDiff *diff;
} Sides;

static void
record (const char *model, const char *tape)
{
  TdTestChild c = TD_TEST_RUN (td_test_program ("app/tapedeck"), "run", "--quiet", "-f",
                               "--level", "values", "-o", tape, model);

  assert_child_status (c, 0);
  td_test_child_clear (&c);
}

static Sides
compare (const char *tape_a, gint64 a, const char *tape_b, gint64 b)
{
  Sides s;
  const char *tapes[] = { tape_a, tape_b };
  const gint64 numbers[] = { a, b };
  g_autoptr (GError) error = NULL;
  TdIteration *it[2];

  for (int i = 0; i < 2; i++)
    {
      s.session[i] = td_session_open (tapes[i], &error);
      assert_non_null (s.session[i]);
      it[i] = td_session_load_iteration (s.session[i], numbers[i], &error);
      assert_non_null (it[i]);
    }
  s.diff = td_diff_new (it[0], it[1], td_session_get_reader (s.session[0]),
                        td_session_get_reader (s.session[1]));
  td_iteration_unref (it[0]);
  td_iteration_unref (it[1]);
  return s;
}

static void
sides_clear (Sides *s)
{
  td_diff_unref (s->diff);
  g_object_unref (s->session[0]);
  g_object_unref (s->session[1]);
}

static const TdDiffPair *
item_of (const TdDiff *d, guint i)
{
  assert_true (i < d->n_items);
  return &d->pairs[d->items[i]];
}

static const char *
recorded (void)
{
  const char *tape = td_test_tmp ("places.tdtape");

  record (td_test_source ("tests/models/places.c"), tape);
  return tape;
}

/* The line that has the mark "place N". */
static guint
marked_line (const char *source, guint place)
{
  g_autofree char *mark = g_strdup_printf ("/* place %u */", place);
  const char *at = strstr (source, mark);
  guint line = 1;

  assert_non_null (at);
  for (const char *p = source; p < at; p++)
    line += *p == '\n';
  return line;
}

static void
cause__is_found_at_each_place (void **state)
{
  const char *tape = recorded ();
  char *source = td_test_read_file (td_test_source ("tests/models/places.c"), NULL);

  for (guint k = 1; k <= N_PLACES; k++)
    {
      Sides s = compare (tape, 0, tape, k);
      g_autofree char *sentence = td_diff_sentence (s.diff);
      g_autofree char *place = g_strdup_printf (" at places.c:%u (", marked_line (source, k));
      gboolean is_loop = (k >= 9 && k <= 13);

      assert_int_equal (s.diff->cause.kind,
                        is_loop ? TD_DIFF_CAUSE_LOOP : TD_DIFF_CAUSE_BRANCH);
      assert_int_equal (s.diff->cause.line, marked_line (source, k));
      if (!is_loop)
        assert_contains (sentence, place);
      sides_clear (&s);
      /* and the other way round */
      s = compare (tape, k, tape, 0);
      assert_int_equal (s.diff->cause.line, marked_line (source, k));
      sides_clear (&s);
    }
  free (source);
}

static void
diff__of_places_counts_what_differs (void **state)
{
  static const struct
  {
    guint place, changed, removed, added;
  } rows[]
      = { { 1, 1, 0, 1 },  { 2, 0, 0, 1 },  { 3, 1, 0, 0 },  { 6, 0, 2, 0 },  { 7, 0, 0, 1 },
          { 9, 0, 0, 4 },  { 10, 0, 1, 0 }, { 11, 0, 0, 2 }, { 12, 0, 3, 0 }, { 13, 0, 0, 4 },
          { 14, 0, 1, 0 }, { 15, 0, 0, 1 }, { 16, 0, 0, 3 }, { 17, 0, 2, 0 }, { 18, 2, 0, 0 },
          { 20, 0, 0, 3 }, { 21, 0, 0, 1 }, { 22, 1, 0, 0 }, { 23, 1, 0, 0 }, { 24, 1, 0, 0 },
          { 25, 1, 0, 0 } };
  const char *tape = recorded ();

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      Sides s = compare (tape, 0, tape, rows[i].place);

      assert_int_equal (s.diff->n_kind[TD_DIFF_CHANGED], rows[i].changed);
      assert_int_equal (s.diff->n_kind[TD_DIFF_REMOVED], rows[i].removed);
      assert_int_equal (s.diff->n_kind[TD_DIFF_ADDED], rows[i].added);
      sides_clear (&s);
    }
}

static void
diff__says_in_what_a_call_differs (void **state)
{
  static const struct
  {
    guint place, aspect;
    const char *what;
  } rows[] = {
    { 22, TD_DIFF_LINK, "net/l0 → net/l1" },
    { 23, TD_DIFF_ATTRIBUTES, "slope=0.1 → 0.3" },
    { 24, TD_DIFF_INPUTS, "reads leaky_relu of places.c:" },
    { 25, TD_DIFF_ORDER, "runs as event 69 instead of 68" },
    { 26, TD_DIFF_SHAPE, "x (2, 4) float32 → (3, 4) float32" },
  };
  const char *tape = recorded ();

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      Sides s = compare (tape, 0, tape, rows[i].place);
      g_autofree char *what = td_diff_dup_what (s.diff, item_of (s.diff, 0));

      assert_int_equal (s.diff->n_items, 1);
      assert_int_equal (item_of (s.diff, 0)->kind, TD_DIFF_CHANGED);
      assert_true (item_of (s.diff, 0)->aspects & rows[i].aspect);
      assert_contains (what, rows[i].what);
      sides_clear (&s);
    }
}

static void
diff__of_values_tells_ulp_and_the_first_index (void **state)
{
  const char *tape = recorded ();
  Sides s = compare (tape, 0, tape, 27);
  guint n;
  const TdDiffNumbers *x;

  assert_int_equal (s.diff->n_items, 1);
  assert_true (td_diff_is_same_structure (s.diff));
  x = td_diff_get_numbers (s.diff, item_of (s.diff, 0), &n);
  assert_int_equal (n, 1);
  assert_true (x->has_values && x->differ && !x->bitwise);
  assert_int_equal (x->n, 4);
  assert_int_equal (x->n_differ, 1);
  assert_int_equal (x->max_ulp, 1);
  assert_true (x->max_abs == 0x1p-22);
  assert_int_equal (x->first, 2);
  assert_true (x->first_value[0] == 3 && x->first_value[1] == 0x1.800002p+1);
  g_autofree char *what = td_diff_dup_what (s.diff, item_of (s.diff, 0));
  assert_contains (what, "1 of 4 differ, by at most 2.38e-07 (1 ulp), first at (1, 0): 3 → ");
  sides_clear (&s);
  /* no number beside a number is as far away as can be */
  s = compare (tape, 0, tape, 28);
  x = td_diff_get_numbers (s.diff, item_of (s.diff, 0), &n);
  assert_int_equal (x->first, 1);
  assert_true (x->max_ulp == G_MAXUINT64);
  sides_clear (&s);
  s = compare (tape, 28, tape, 28);
  assert_true (td_diff_is_same (s.diff) && s.diff->has_values);
  sides_clear (&s);
}

static void
write_model (const char *path, const char *first_line, const char *line)
{
  g_autofree char *text = g_strdup_printf (
      "%s#include <tapedeck.h>\n"
      "int main (int argc, char **argv)\n"
      "{\n"
      "  td_init (&argc, &argv);\n"
      "  TD_ITERATIONS (i, 1)\n"
      "    {\n"
      "      TdVar *h = td_name (td_ones (TD_F32, TD_SHAPE (2, 3)), \"x\");\n"
      "      h = td_tanh (h);\n"
      "      h = td_tanh (h);\n"
      "%s"
      "      h = td_tanh (h);\n"
      "      td_backward (td_sum (td_variable (h, NULL)), 0);\n"
      "    }\n"
      "  return td_finish ();\n"
      "}\n",
      first_line, line);

  td_test_write_file (path, text, strlen (text));
}

static void
diff__of_an_edited_source_maps_its_lines (void **state)
{
  g_autofree char *a = g_strdup (td_test_tmp ("a")), *b = g_strdup (td_test_tmp ("b"));
  g_autofree char *model_a = g_build_filename (a, "m.c", NULL),
                  *model_b = g_build_filename (b, "m.c", NULL),
                  *tape_a = g_strconcat (a, ".tdtape", NULL),
                  *tape_b = g_strconcat (b, ".tdtape", NULL);

  assert_int_equal (g_mkdir_with_parents (a, 0700), 0);
  assert_int_equal (g_mkdir_with_parents (b, 0700), 0);
  write_model (model_a, "", "");
  write_model (model_b, "/* one line\n   and another */\n", "      h = td_relu (h);\n");
  record (model_a, tape_a);
  record (model_b, tape_b);
  Sides s = compare (tape_a, 0, tape_b, 0);
  g_autofree char *sentence = td_diff_sentence (s.diff);

  assert_int_equal (s.diff->n_items, 1);
  assert_int_equal (item_of (s.diff, 0)->kind, TD_DIFF_ADDED);
  assert_int_equal (item_of (s.diff, 0)->event[TD_DIFF_B], 2);
  assert_false (s.diff->same_program);
  assert_int_equal (s.diff->cause.kind, TD_DIFF_CAUSE_SOURCE);
  assert_contains (sentence, "B has another source at m.c:12: relu added at m.c:12; ");
  sides_clear (&s);
  /* two runs of one source are the same program, and the same numbers */
  s = compare (tape_a, 0, tape_a, 0);
  assert_true (s.diff->same_program && td_diff_is_same (s.diff));
  sides_clear (&s);
}

/* A function runs as code, and by its schedule while it is recorded: only the mode differs.
 */
static void
diff__of_code_and_its_schedule_is_none_element_by_element (void **state)
{
  const char *tape = td_test_tmp ("both.tdtape");

  record (td_test_source ("tests/models/both.c"), tape);
  Sides s = compare (tape, 1, tape, 4);
  assert_true (td_diff_is_same (s.diff));
  assert_true (s.diff->has_values);
  assert_int_equal (s.diff->totals[TD_DIFF_A].n_static, 0);
  assert_true (s.diff->totals[TD_DIFF_B].n_static > 0);
  for (guint i = 0; i < s.diff->n_pairs; i++)
    {
      guint n;
      const TdDiffNumbers *x = td_diff_get_numbers (s.diff, &s.diff->pairs[i], &n);

      assert_int_equal (s.diff->pairs[i].kind, TD_DIFF_SAME);
      for (guint k = 0; k < n; k++)
        assert_true (!x[k].has_values || x[k].bitwise);
    }
  sides_clear (&s);
}

/* ---- shapes in attributes ---- */

static const char *
reshaped (const char *shape)
{
  g_autofree char *text = g_strdup_printf (
      "#include <tapedeck.h>\n"
      "int main (int argc, char **argv)\n{\n"
      "  td_init (&argc, &argv);\n"
      "  TD_ITERATIONS (i, 2)\n"
      "    td_report (\"x\", td_item (td_sum (td_reshape (td_zeros (TD_F32, TD_SHAPE (8, 16)), "
      "TD_SHAPE (%s)))));\n"
      "  return td_finish ();\n}\n",
      shape);
  g_autofree char *name = g_strdup_printf ("%s.tdtape", shape);
  const char *source = td_test_tmp ("reshaped.c"), *tape = td_test_tmp (name);

  td_test_write_file (source, text, strlen (text));
  record (source, tape);
  return tape;
}

/* A value with blanks is one value: all of it is compared, and said. */
static void
diff__says_shapes_among_attributes_whole (void **state)
{
  static const struct
  {
    const char *shape, *says;
  } cases[] = { { "8, 4, -1", "shape=(8, 4, 4) → (8, 4, -1)" },
                { "4, 8, 4", "shape=(8, 4, 4) → (4, 8, 4)" },
                { "8, 2, 8", "shape=(8, 4, 4) → (8, 2, 8)" },
                { "8, 16", "shape=(8, 4, 4) → (8, 16)" } };
  g_autofree char *first = g_strdup (reshaped ("8, 4, 4"));

  (void)state;
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      Sides s = compare (first, 1, reshaped (cases[i].shape), 1);
      g_autofree char *what = NULL;

      assert_int_equal (s.diff->n_items, 1);
      assert_true (item_of (s.diff, 0)->aspects & TD_DIFF_ATTRIBUTES);
      what = td_diff_dup_what (s.diff, item_of (s.diff, 0));
      assert_contains (what, cases[i].says);
      sides_clear (&s);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (diff__says_shapes_among_attributes_whole),
    td_test (cause__is_found_at_each_place),
    td_test (diff__of_places_counts_what_differs),
    td_test (diff__says_in_what_a_call_differs),
    td_test (diff__of_values_tells_ulp_and_the_first_index),
    td_test (diff__of_an_edited_source_maps_its_lines),
    td_test (diff__of_code_and_its_schedule_is_none_element_by_element),
  };

  return cmocka_run_group_tests_name ("places", tests, NULL, NULL);
}
