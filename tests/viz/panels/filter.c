/*
 * Filter expressions: what matches, and one line on what is not understood.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "graph/td-filter.h"
#include "lenet-tape.h"
#include "td-test.h"

typedef struct
{
  TdTapeReader *reader;
  TdIteration *iteration;
} Fixture;

static Fixture
open_lenet (void)
{
  LenetOptions o = LENET_DEFAULT;
  const char *path = td_test_tmp ("filter.tdtape");
  char error[160];
  Fixture f;

  o.nan_at = 6;
  lenet_tape_write (path, &o);
  f.reader = td_tape_reader_open (path, error, sizeof error);
  f.iteration = lenet_tape_load (f.reader, 6);
  return f;
}

static void
fixture_clear (Fixture *f)
{
  td_iteration_unref (f->iteration);
  td_tape_reader_free (f->reader);
}

static guint
count (Fixture *f, const char *text)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TdFilter) filter = td_filter_new (text, &error);

  if (!filter)
    fail_msg ("%s: %s", text, error->message);
  GArray *found = td_filter_apply (filter, f->iteration);
  guint n = found->len;
  g_array_unref (found);
  return n;
}

/* Counted by another loop over the tape. */
static guint
count_ops (Fixture *f, const char *op)
{
  guint n = 0;

  for (guint e = 0; e < td_iteration_get_n_events (f->iteration); e++)
    n += strcmp (td_iteration_get_op_name (f->iteration, e), op) == 0;
  return n;
}

static void
filter__finds_by_name_layer_place_and_phase (void **state)
{
  Fixture f = open_lenet ();
  guint n = td_iteration_get_n_events (f.iteration), relu = count_ops (&f, "relu");

  assert_int_equal (count (&f, ""), n);
  assert_int_equal (relu, 4);
  assert_int_equal (count (&f, "op == relu"), relu);
  assert_int_equal (count (&f, "op=relu"), relu);
  assert_int_equal (count (&f, "op relu"), relu);
  assert_int_equal (count (&f, "op != relu"), n - relu);
  assert_int_equal (count (&f, "phase == forward"), 13);
  /* a layer has what is inside it; part of a name is none */
  assert_int_equal (count (&f, "link == lenet/block1"),
                    count (&f, "link == lenet/block1 && phase == forward")
                        + count (&f, "link == lenet/block1 && phase != forward"));
  assert_true (count (&f, "link == lenet/block1") >= 3);
  assert_int_equal (count (&f, "link == lenet/bloc"), 0);
  assert_true (count (&f, "line == lenet.c:52") > 0);
  assert_int_equal (count (&f, "line == c:52"), 0);
  fixture_clear (&f);
}

static void
filter__finds_by_words_without_regard_to_case (void **state)
{
  Fixture f = open_lenet ();

  assert_int_equal (count (&f, "RELU"), count (&f, "relu"));
  assert_true (count (&f, "relu") > count (&f, "op == relu")); /* relu_grad too */
  assert_int_equal (count (&f, "relu block1"), count (&f, "relu && block1"));
  assert_int_equal (count (&f, "\"no such\""), 0);
  fixture_clear (&f);
}

static void
filter__compares_numbers (void **state)
{
  Fixture f = open_lenet ();
  guint n = td_iteration_get_n_events (f.iteration);

  assert_int_equal (count (&f, "bytes >= 0"), n);
  assert_int_equal (count (&f, "bytes > 1M") + count (&f, "bytes <= 1000K"), n);
  assert_true (count (&f, "bytes > 1M") > 0);
  assert_int_equal (count (&f, "ms < 0.05") + count (&f, "ms >= 0.05"), n);
  assert_int_equal (count (&f, "nan"), 1);
  assert_int_equal (count (&f, "error"), 0);
  /* ten gradients have statistics, which leave out what is not a number */
  assert_int_equal (count (&f, "norm(grad) >= 0"), 10);
  assert_int_equal (count (&f, "norm >= 0 && phase == forward"), 0);
  fixture_clear (&f);
}

static void
filter__binds_and_closer_than_or (void **state)
{
  Fixture f = open_lenet ();

  assert_int_equal (count (&f, "op == relu || op == linear"),
                    count_ops (&f, "relu") + count_ops (&f, "linear"));
  assert_int_equal (count (&f, "op == relu && op == linear || op == reshape"),
                    count_ops (&f, "reshape"));
  assert_int_equal (count (&f, "op == reshape || op == relu && op == linear"),
                    count_ops (&f, "reshape"));
  fixture_clear (&f);
}

static void
filter__says_in_one_line_what_it_does_not_understand (void **state)
{
  static const struct
  {
    const char *text, *part;
  } bad[] = { { "norm >", "missing after norm" },
              { "norm", "missing after norm" },
              { "bytes == much", "missing after bytes" },
              { "op >", "Only == and != go with op" },
              { "op ==", "missing after op" },
              { "speed > 3", "nothing to compare called speed" },
              { "relu &&", "missing after &&" },
              { "relu || ", "missing after ||" },
              { "&& relu", "missing before" },
              { "nan = 3", "What is meant by = 3" },
              { "relu & conv", "What is meant by & conv" } };

  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (GError) error = NULL;

      if (td_filter_new (bad[i].text, &error))
        fail_msg ("%s was understood", bad[i].text);
      assert_contains (error->message, bad[i].part);
      assert_null (strchr (error->message, '\n'));
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (filter__finds_by_name_layer_place_and_phase),
    td_test (filter__finds_by_words_without_regard_to_case),
    td_test (filter__compares_numbers),
    td_test (filter__binds_and_closer_than_or),
    td_test (filter__says_in_one_line_what_it_does_not_understand),
  };

  return cmocka_run_group_tests_name ("filter", tests, NULL, NULL);
}
