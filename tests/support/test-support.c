/* The helpers themselves: a helper that cannot fail would make every test above it worthless.
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
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
  *strrchr (first_folder, '/') = '\0';
  assert_string_equal (getenv ("XDG_RUNTIME_DIR"), first_folder);
  assert_string_equal (getenv ("TAPEDECK_TMPDIR"), first_folder);
}

static void
folder__is_gone_after_its_test (void **state)
{
  (void)state;
  assert_true (first_folder[0] != '\0');
  assert_int_not_equal (access (first_folder, F_OK), 0);
  assert_string_not_equal (first_folder, getenv ("XDG_RUNTIME_DIR"));
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

static bool
is_met_the_third_time (void *n)
{
  return ++*(int *)n == 3;
}

static bool
is_never_met (void *unused)
{
  (void)unused;
  return false;
}

static void
wait__ends_when_what_is_awaited_comes (void **state)
{
  int n = 0;

  (void)state;
  td_test_wait ("the third time", is_met_the_third_time, &n);
  assert_int_equal (n, 3);
}

static void
wait_for_nothing (void **state)
{
  (void)state;
  td_test_wait ("nothing", is_never_met, NULL);
}

static const char *const no_patience[] = { "TD_TEST_PATIENCE_MS=20", NULL };

static void
wait__in_vain_fails_and_says_for_what (void **state)
{
  const char *const argv[] = { "/proc/self/exe", "wait", NULL };
  TdTestChild child = td_test_run (argv, NULL, no_patience);

  (void)state;
  assert_int_not_equal (child.status, 0);
  assert_contains (child.err, "waited in vain for nothing");
  td_test_child_clear (&child);
}

static void
shell__runs_a_line_and_ends_what_hangs (void **state)
{
  TdTestChild child = td_test_shell ("echo %s; exit %d", "out", 3);

  (void)state;
  assert_child_status (child, 3);
  assert_string_equal (child.out, "out\n");
  td_test_child_clear (&child);
  setenv ("TD_TEST_PATIENCE_MS", "1000", 1);
  child = td_test_shell ("exec sleep %d", 1000);
  unsetenv ("TD_TEST_PATIENCE_MS");
  assert_child_status (child, 124);
  td_test_child_clear (&child);
}

static void
connect__waits_for_who_listens_late (void **state)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  const char *path = td_test_tmp ("socket");
  int fd, seen, status;
  char byte = 0;
  pid_t pid;

  (void)state;
  assert_true (strlen (path) < sizeof address.sun_path);
  strcpy (address.sun_path, path);
  pid = fork ();
  if (pid == 0)
    {
      fd = socket (AF_UNIX, SOCK_STREAM, 0);
      usleep (20000); /* the first attempts are in vain */
      if (bind (fd, (const struct sockaddr *)&address, sizeof address) != 0
          || listen (fd, 1) != 0 || (seen = accept (fd, NULL, NULL)) < 0)
        _exit (1);
      _exit (write (seen, "x", 1) == 1 ? 0 : 1);
    }
  fd = td_test_connect (path);
  assert_int_equal (read (fd, &byte, 1), 1);
  assert_int_equal (byte, 'x');
  close (fd);
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
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
    td_test (wait__ends_when_what_is_awaited_comes),
    td_test (wait__in_vain_fails_and_says_for_what),
    td_test (shell__runs_a_line_and_ends_what_hangs),
    td_test (connect__waits_for_who_listens_late),
  };
  const struct CMUnitTest golden[] = { td_test (golden_of_other_text) };
  const struct CMUnitTest shared[] = { td_test (missing_shared_file) };
  const struct CMUnitTest wait[] = { td_test (wait_for_nothing) };

  if (argc > 1 && strcmp (argv[1], "golden") == 0)
    return cmocka_run_group_tests (golden, NULL, NULL);
  if (argc > 1 && strcmp (argv[1], "shared") == 0)
    return cmocka_run_group_tests (shared, NULL, NULL);
  if (argc > 1 && strcmp (argv[1], "wait") == 0)
    return cmocka_run_group_tests (wait, NULL, NULL);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
