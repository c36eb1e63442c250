/*
 * A tape that has not all numbers, as that of a server of which some requests asked to be
 * recorded: what was not is not said to be thinned, and is not counted; what is said of each is
 * folded; and a NaN is found where it is.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-synthetic-tape.h"
#include "td-test.h"

static const guint64 numbers[] = { 1, 2, 4, 5, 7, 8 };

enum
{
  BAD = 2,
  N_NOTICES = 40
};

static const char *
write_tape (void)
{
  const char *path = td_test_tmp ("sparse.tdtape");
  char error[256];
  TdTapeWriterOptions options = { .size = sizeof options, .path = path };
  TdTapeWriter *w = td_tape_writer_new (&options, error, sizeof error);

  assert_non_null (w);
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    {
      TdSynthetic *s = td_synthetic_new (numbers[i]);
      guint h = td_synthetic_input (s, "x", TD_SHAPE (2, 4));

      TD_OP (s, "relu", 10, TD_SHAPE (2, 4), h);
      if (numbers[i] == BAD)
        td_synthetic_nan (s);
      g_autoptr (TdIteration) it = td_synthetic_finish (s);
      td_synthetic_write (w, it);
    }
  for (guint i = 0; i < N_NOTICES; i++)
    {
      g_autofree char *text = i % 10 == 9
                                  ? g_strdup_printf ("request %u took %u.5 ms", i, i)
                                  : g_strdup_printf ("request %u asked to be recorded", i);
      const TdTapeNotice notice = { .event = TD_TAPE_NONE,
                                    .kind = TD_TAPE_NOTICE_RECORDING,
                                    .text = td_tape_writer_string (w, text) };

      td_tape_writer_notice (w, &notice);
    }
  td_tape_writer_free (w);
  return path;
}

static TdTestChild
show (const char *tape, const char *view, const char *iteration, int status)
{
  const char *viz = td_test_program ("app/tapedeck-viz");
  TdTestChild c
      = iteration ? TD_TEST_RUN (viz, "show", tape, "--view", view, "--iteration", iteration)
                  : TD_TEST_RUN (viz, "show", tape, "--view", view);

  assert_child_status (c, status);
  return c;
}

static void
sparse__tape_says_what_was_not_recorded (void **state)
{
  const char *tape = write_tape ();
  TdTestChild c = show (tape, "memory", "3", 2);

  (void)state;
  assert_contains (c.err, "iteration 3 was not recorded: of 1 to 8 the tape has 6");
  td_test_child_clear (&c);
  c = show (tape, "memory", "0", 2);
  assert_contains (c.err, "no iteration 0: those of the tape are 1 to 8");
  td_test_child_clear (&c);
}

static void
sparse__tape_counts_what_is_there (void **state)
{
  TdTestChild c = show (write_tape (), "schedule", NULL, 0);

  (void)state;
  assert_contains (c.out, "6 equal iterations: ");
  assert_contains (c.out, "6 iterations, 1 graph; the newest 6 are equal");
  assert_null (strstr (c.out, "8 "));
  td_test_child_clear (&c);
}

static void
origin__is_of_the_newest_iteration_that_has_one (void **state)
{
  const char *tape = write_tape ();
  TdTestChild c = show (tape, "origin", NULL, 0);

  (void)state;
  assert_contains (c.out, "iteration 2");
  td_test_child_clear (&c);
  c = show (tape, "origin", "8", 2); /* that was asked for */
  assert_contains (c.err, "no NaN and no infinity is recorded in iteration 8");
  td_test_child_clear (&c);
}

static void
info__folds_what_is_said_of_many (void **state)
{
  TdTestChild c = TD_TEST_RUN (td_test_program ("app/tapedeck"), "info", write_tape ());
  guint n = 0;

  (void)state;
  assert_child_status (c, 0);
  for (const char *at = c.out; (at = strstr (at, "request ")); at++)
    n++;
  assert_int_equal (n, 4);
  assert_contains (c.out, "recording        request 0 asked to be recorded\n"
                          "                 and 35 more of that sort, the last:\n"
                          "                 request 38 asked to be recorded\n"
                          "                 request 9 took 9.5 ms\n"
                          "                 and 3 more of that sort, the last:\n"
                          "                 request 39 took 39.5 ms\n");
  td_test_child_clear (&c);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (sparse__tape_says_what_was_not_recorded),
    td_test (sparse__tape_counts_what_is_there),
    td_test (origin__is_of_the_newest_iteration_that_has_one),
    td_test (info__folds_what_is_said_of_many),
  };

  return cmocka_run_group_tests_name ("sparse", tests, NULL, NULL);
}
