/* A breakpoint on errors, where a device finds a bad label: the program stops after the
 * iteration, says at which event the error is, and goes on; asked to be exact it stops at the
 * event.
 *
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static TdTestChild
run (const char *condition, const char *how)
{
  char command[9000];

  snprintf (command, sizeof command,
            "TAPEDECK_CUDA_MODULE='%s' '%s' run --quiet --device cuda:0 %s -f -o '%s' '%s' %s",
            FAKE_CUDA_MODULE, td_test_program ("app/tapedeck"), condition,
            td_test_tmp ("a.tdtape"), BAD_LABEL, how);
  return TD_TEST_RUN ("sh", "-c", command);
}

/* Lines of `tapedeck cat` that have all of these words. */
static int
lines_with (const char *a, const char *b)
{
  TdTestChild child
      = TD_TEST_RUN (td_test_program ("app/tapedeck"), "cat", td_test_tmp ("a.tdtape"));
  int n = 0;

  assert_child_status (child, 0);
  for (char *line = strtok (child.out, "\n"); line != NULL; line = strtok (NULL, "\n"))
    n += strstr (line, a) != NULL && strstr (line, b) != NULL;
  td_test_child_clear (&child);
  return n;
}

static void
run__stops_after_the_iteration_and_names_the_event (void **state)
{
  for (int way = 0; way < 2; way++)
    {
      TdTestChild child = run ("--break error", way == 0 ? "" : "static");

      assert_child_status (child, 3);
      assert_contains (child.err, "bad-label.c:");
      assert_contains (child.err, "softmax_cross_entropy: 0 <= t[i] < 3 expected, got 9 at "
                                  "element 1 in iteration");
      assert_contains (child.err, "; stopped after the iteration, the error is at event ");
      td_test_child_clear (&child);
      assert_int_equal (lines_with ("softmax_cross_entropy", " FAILED : "), 1);
      assert_int_equal (lines_with ("  fault iteration", "found at the end of the iteration; "
                                                         "backward and update had run"),
                        1);
      /* Such a breakpoint keeps nothing out of CUDA graphs. */
      if (way == 1)
        assert_true (lines_with (" forward softmax_cross_entropy ", "in a CUDA graph") > 5);
    }
}

static void
run__stops_at_the_event_where_that_is_asked_for (void **state)
{
  for (int way = 0; way < 2; way++)
    {
      TdTestChild child = run ("--break 'exact error'", way == 0 ? "" : "static");

      assert_child_status (child, 3);
      assert_contains (child.err, "softmax_cross_entropy: 0 <= t[i] < 3 expected, got 9 at "
                                  "element 1: x (4, 3) f32, t (4) i32");
      assert_null (strstr (child.err, "the error is at event"));
      td_test_child_clear (&child);
      assert_int_equal (lines_with ("  fault iteration", ""), 0);
      /* One is told to be in a graph before it turns out that it cannot be. */
      assert_in_range (lines_with (" forward softmax_cross_entropy ", "in a CUDA graph"), 0, 1);
    }
}

/* --- with a client --- */

typedef struct
{
  pid_t pid;
  int fd;
  char buffer[65536];
  size_t used;
  char line[8192];
} Client;

static void
open_client (Client *c, const char *how)
{
  const char *path = td_test_tmp ("control");
  const char *const argv[] = { td_test_program ("app/tapedeck"),
                               "run",
                               "--quiet",
                               "--device",
                               "cuda:0",
                               "--stop",
                               "error",
                               "-f",
                               "-o",
                               td_test_tmp ("a.tdtape"),
                               "--control",
                               path,
                               BAD_LABEL,
                               how,
                               NULL };
  const char *out = td_test_tmp ("out");

  memset (c, 0, sizeof *c);
  unlink (path);
  c->pid = fork ();
  if (c->pid == 0)
    {
      (void)!freopen (out, "w", stdout);
      setenv ("TAPEDECK_CUDA_MODULE", FAKE_CUDA_MODULE, 1);
      execv (argv[0], (char *const *)(uintptr_t)argv);
      _exit (127);
    }
  c->fd = td_test_connect (path);
}

static void
say (Client *c, const char *command)
{
  assert_int_equal (write (c->fd, command, strlen (command)), strlen (command));
}

/* The next line with this word; "" when the run has ended. */
static const char *
await (Client *c, const char *word)
{
  for (;;)
    {
      char *end = memchr (c->buffer, '\n', c->used);
      struct pollfd p = { c->fd, POLLIN, 0 };
      ssize_t n;

      if (end != NULL)
        {
          const size_t length = (size_t)(end - c->buffer);

          assert_true (length < sizeof c->line);
          memcpy (c->line, c->buffer, length);
          c->line[length] = '\0';
          c->used -= length + 1;
          memmove (c->buffer, end + 1, c->used);
          if (strstr (c->line, word) != NULL)
            return c->line;
          continue;
        }
      assert_int_equal (poll (&p, 1, td_test_patience_ms ()), 1);
      n = read (c->fd, c->buffer + c->used, sizeof c->buffer - c->used);
      if (n <= 0)
        return "";
      c->used += (size_t)n;
    }
}

/* Both errors are stopped at, and between them the engine trains on: the second one is found as
 * the first was. */
static void
client__goes_on_after_each_error (void **state)
{
  for (int way = 0; way < 2; way++)
    {
      Client c;
      int status;
      char *out;

      open_client (&c, way == 0 ? "plain" : "static");
      for (int i = 0; i < 2; i++)
        {
          const char *line = await (&c, "\"event\":\"stopped\"");

          assert_contains (line, "stopped after the iteration, the error is at event ");
          assert_contains (line, "\"op\":\"softmax_cross_entropy\"");
          assert_contains (line, "\"failed\":{\"iteration\":");
          say (&c, "continue\n");
        }
      assert_contains (await (&c, "\"event\":\"exited\""), "\"status\":0");
      assert_int_equal (waitpid (c.pid, &status, 0), c.pid);
      assert_int_equal (status, 0);
      close (c.fd);
      out = td_test_read_file (td_test_tmp ("out"), NULL);
      assert_string_equal (out, "2 errors\n");
      free (out);
      assert_int_equal (lines_with ("softmax_cross_entropy", " FAILED : "), 2);
      if (way == 1)
        assert_true (lines_with (" forward softmax_cross_entropy ", "in a CUDA graph") > 8);
    }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (run__stops_after_the_iteration_and_names_the_event),
    td_test (run__stops_at_the_event_where_that_is_asked_for),
    td_test (client__goes_on_after_each_error),
  };

  return cmocka_run_group_tests_name ("breaks on errors that come late", tests, NULL, NULL);
}
