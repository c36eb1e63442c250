/* The helpers themselves: a helper that cannot fail would make every test above it worthless.
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void
child__status_and_both_streams_are_captured (void **state)
{
  TdTestChild child = TD_TEST_RUN ("sh", "-c", "echo out; echo err >&2; exit 3");

  (void)state;
  assert_child_status (child, 3);
  assert_int_equal (child.signal, 0);
  assert_string_equal (child.out, "out\n");
  assert_string_equal (child.err, "err\n");
  td_test_child_clear (&child);
}

static void
child__death_by_signal_reads_as_in_a_shell (void **state)
{
  TdTestChild child = TD_TEST_RUN ("sh", "-c", "kill -9 $$");

  (void)state;
  assert_int_equal (child.signal, 9);
  assert_child_status (child, 137);
  td_test_child_clear (&child);
}

static void
child__input_and_environment_arrive (void **state)
{
  const char *const argv[] = { "sh", "-c", "cat; printf %s \"$TD_TEST_WORD\"", NULL };
  const char *const env[] = { "TD_TEST_WORD=deck", NULL };
  TdTestChild child = td_test_run (argv, "tape", env);

  (void)state;
  assert_child_status (child, 0);
  assert_string_equal (child.out, "tapedeck");
  td_test_child_clear (&child);
}

static void
child__missing_program_is_127 (void **state)
{
  TdTestChild child = TD_TEST_RUN ("./no-such-program");

  (void)state;
  assert_child_status (child, 127);
  assert_contains (child.err, "No such file");
  td_test_child_clear (&child);
}

static char first_folder[4096];

static void
folder__is_writable_and_belongs_to_one_test (void **state)
{
  const char *path = td_test_tmp ("a");
  size_t bytes;
  char *text;

  (void)state;
  td_test_write_file (path, "x\0y", 3);
  text = td_test_read_file (path, &bytes);
  assert_int_equal (bytes, 3);
  assert_memory_equal (text, "x\0y", 4);
  free (text);
  snprintf (first_folder, sizeof first_folder, "%s", path);
}

static void
folder__is_gone_after_its_test (void **state)
{
  (void)state;
  assert_true (first_folder[0] != '\0');
  assert_int_not_equal (access (first_folder, F_OK), 0);
  assert_string_not_equal (first_folder, td_test_tmp ("a"));
}

static void
golden__equal_text_passes (void **state)
{
  (void)state;
  td_test_golden ("support/two-lines.txt", "one\ntwo\n");
}

/* What must fail runs in a child of its own: this program again, with a word after it. */
static void
golden_of_other_text (void **state)
{
  (void)state;
  td_test_golden ("support/two-lines.txt", "one\ntwice\n");
}

static void
missing_shared_file (void **state)
{
  (void)state;
  td_test_shared ("no/such/file");
}

static void
golden__other_text_fails_with_its_line (void **state)
{
  TdTestChild child = TD_TEST_RUN ("/proc/self/exe", "golden");

  (void)state;
  if (getenv ("TD_UPDATE_GOLDEN") == NULL)
    {
      assert_int_not_equal (child.status, 0);
      assert_contains (child.err, "two-lines.txt:2: two");
      assert_contains (child.err, "two-lines.txt.actual:2: twice");
    }
  td_test_child_clear (&child);
}

static void
shared__missing_data_skips_by_name (void **state)
{
  TdTestChild child = TD_TEST_RUN ("/proc/self/exe", "shared");

  (void)state;
  assert_child_status (child, 0);
  assert_contains (child.err, "missing_shared_file");
  assert_contains (child.err, "SKIPPED");
  td_test_child_clear (&child);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    td_test (child__status_and_both_streams_are_captured),
    td_test (child__death_by_signal_reads_as_in_a_shell),
    td_test (child__input_and_environment_arrive),
    td_test (child__missing_program_is_127),
    td_test (folder__is_writable_and_belongs_to_one_test),
    td_test (folder__is_gone_after_its_test),
    td_test (golden__equal_text_passes),
    td_test (golden__other_text_fails_with_its_line),
    td_test (shared__missing_data_skips_by_name),
  };
  const struct CMUnitTest golden[] = { td_test (golden_of_other_text) };
  const struct CMUnitTest shared[] = { td_test (missing_shared_file) };

  if (argc > 1 && strcmp (argv[1], "golden") == 0)
    return cmocka_run_group_tests (golden, NULL, NULL);
  if (argc > 1 && strcmp (argv[1], "shared") == 0)
    return cmocka_run_group_tests (shared, NULL, NULL);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
