/* The example of several ranks, recorded and not.
 *
 * test-programs GROUP EXAMPLE WITH-RANKS MODULE TAPEDECK
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *example, *with_ranks, *module, *tapedeck;

/* Runs to its end, however long that takes: meson's limit is the one that counts. */
static __attribute__ ((format (printf, 1, 2))) TdTestChild
run_line (const char *format, ...)
{
  char line[12000];
  va_list args;

  va_start (args, format);
  vsnprintf (line, sizeof line, format, args);
  va_end (args);
  return TD_TEST_RUN ("sh", "-c", line);
}

static TdTestChild
train (int n_ranks, const char *recorder)
{
  return run_line ("exec %s %s %d %s %s", with_ranks, module, n_ranks, recorder, example);
}

/* What rank 0 prints in the end; *accuracy: its last number. */
static const char *
result (const TdTestChild *c, double *accuracy)
{
  const char *line = strstr (c->out, "ranks "), *last = strstr (c->out, "test accuracy ");

  assert_child_status (*c, 0);
  assert_non_null (line);
  assert_non_null (last);
  *accuracy = atof (last + strlen ("test accuracy "));
  return line;
}

/* folder: TAPEDECK_DATA, where "" stands for the built-in digits. */
static void
compare_accuracies (const char *folder)
{
  char recorder[4200];
  TdTestChild one = run_line ("TAPEDECK_DATA=%s exec %s", folder, example), four;
  double accuracy_of_one, accuracy_of_four;

  snprintf (recorder, sizeof recorder, "env TAPEDECK_DATA=%s", folder);
  four = train (4, recorder);
  result (&one, &accuracy_of_one);
  result (&four, &accuracy_of_four);
  print_message ("# 1 rank %.4f, 4 ranks %.4f\n", accuracy_of_one, accuracy_of_four);
  assert_true (accuracy_of_one >= 0.98);
  assert_true (accuracy_of_four >= accuracy_of_one - 0.01);
  td_test_child_clear (&one);
  td_test_child_clear (&four);
}

static void
lenet__by_four_ranks_is_as_accurate_as_by_one (void **state)
{
  (void)state;
  compare_accuracies ("");
}

static void
lenet__by_four_ranks_is_as_accurate_on_mnist (void **state)
{
  char folder[4096];

  (void)state;
  snprintf (folder, sizeof folder, "%s",
            td_test_shared ("data/mnist/train-images-idx3-ubyte.gz"));
  *strrchr (folder, '/') = '\0';
  compare_accuracies (folder);
}

static void
recorded_ranks__compute_the_same_to_the_last_digit (void **state)
{
  char recorder[2000];
  TdTestChild plain = train (2, ""), recorded;
  double accuracy;

  (void)state;
  snprintf (recorder, sizeof recorder, "%s run --quiet --level stats -o %s", tapedeck,
            td_test_tmp ("lenet.tdtape"));
  recorded = train (2, recorder);
  assert_string_equal (result (&plain, &accuracy), result (&recorded, &accuracy));
  td_test_child_clear (&plain);
  td_test_child_clear (&recorded);
}

static void
tapedeck_run__writes_a_tape_for_each_rank (void **state)
{
  char recorder[2000];
  TdTestChild c;

  (void)state;
  snprintf (recorder, sizeof recorder, "%s run --quiet --iterations 3 -o %s", tapedeck,
            td_test_tmp ("few.tdtape"));
  c = train (2, recorder);
  assert_child_status (c, 0);
  td_test_child_clear (&c);
  assert_int_not_equal (access (td_test_tmp ("few.tdtape"), F_OK), 0);
  for (int rank = 0; rank < 2; rank++)
    {
      char name[40], said[100];

      snprintf (name, sizeof name, "few-rank-%d.tdtape", rank);
      snprintf (said, sizeof said, "rank             %d of 2", rank);
      c = TD_TEST_RUN (tapedeck, "info", td_test_tmp (name));
      assert_child_status (c, 0);
      assert_non_null (strstr (c.out, said));
      td_test_child_clear (&c);
      c = TD_TEST_RUN (tapedeck, "check", td_test_tmp (name));
      assert_child_status (c, 0);
      td_test_child_clear (&c);
    }
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest run[] = {
    td_test (tapedeck_run__writes_a_tape_for_each_rank),
  };
  const struct CMUnitTest lenet[] = {
    td_test (lenet__by_four_ranks_is_as_accurate_as_by_one),
    td_test (recorded_ranks__compute_the_same_to_the_last_digit),
  };

  const struct CMUnitTest mnist[] = {
    td_test (lenet__by_four_ranks_is_as_accurate_on_mnist),
  };

  if (argc != 6)
    return 1;
  example = argv[2];
  with_ranks = argv[3];
  module = argv[4];
  tapedeck = argv[5];
  return strcmp (argv[1], "lenet") == 0   ? cmocka_run_group_tests (lenet, NULL, NULL)
         : strcmp (argv[1], "mnist") == 0 ? cmocka_run_group_tests (mnist, NULL, NULL)
                                          : cmocka_run_group_tests (run, NULL, NULL);
}
