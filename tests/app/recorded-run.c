/* Runs that are recorded and looked at meanwhile: see recorded-run.h.
 *
 * SPDX-License-Identifier: MIT */
#include "recorded-run.h"

#include "td-test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const char *
run_tapedeck (void)
{
  return td_test_program ("app/tapedeck");
}

const char *
run_model (void)
{
  return td_test_build ("tests/app/model-train");
}

/* Start a program without waiting for it; what it prints goes to `out`. */
pid_t
run_start (const char *const *argv, const char *out)
{
  pid_t pid = fork ();

  if (pid == 0)
    {
      (void)!freopen (out, "w", stdout);
      dup2 (1, 2);
      execv (argv[0], (char *const *)(uintptr_t)argv);
      _exit (127);
    }
  assert_true (pid > 0);
  return pid;
}

/* What a recorded model waits for in the middle of its iterations. */
const char *
run_gate (void)
{
  return td_test_tmp ("gate");
}

void
run_open_gate (void)
{
  td_test_write_file (run_gate (), "", 0);
}

pid_t
run_gated (const char *tape, const char *out)
{
  const char *const argv[] = { run_tapedeck (), "run", "-o",        tape, run_model (),
                               RUN_ITERATIONS,  "0",   run_gate (), NULL };

  unlink (run_gate ());
  return run_start (argv, out);
}

int
run_status (pid_t pid)
{
  int status;

  assert_int_equal (waitpid (pid, &status, 0), pid);
  return WIFEXITED (status) ? WEXITSTATUS (status) : 128 + WTERMSIG (status);
}

typedef struct
{
  pid_t parent, child;
} Family;

static bool
has_child (void *data)
{
  Family *f = data;
  char path[64], *text;

  snprintf (path, sizeof path, "/proc/%d/task/%d/children", f->parent, f->parent);
  text = td_test_read_file (path, NULL);
  f->child = (pid_t)strtol (text, NULL, 10);
  free (text);
  return f->child > 0;
}

pid_t
run_child (pid_t pid)
{
  Family f = { .parent = pid };

  td_test_wait ("a child", has_child, &f);
  return f.child;
}

long
run_iterations (const char *tape)
{
  TdTestChild child = TD_TEST_RUN (run_tapedeck (), "info", "--json", tape);
  const char *at = strstr (child.out, "\"iterations\":");
  long n = at != NULL ? strtol (at + 13, NULL, 10) : -1;

  td_test_child_clear (&child);
  return n;
}

static bool
has_half (void *tape)
{
  return access (tape, F_OK) == 0 && run_iterations (tape) >= atoi (RUN_ITERATIONS) / 2;
}

/* Until all is on the tape that comes before the model waits. */
void
run_wait_for_half (const char *tape)
{
  td_test_wait ("half of the iterations", has_half, (void *)(uintptr_t)tape);
}

void
run_assert_check (const char *tape, int status, const char *says)
{
  TdTestChild child = TD_TEST_RUN (run_tapedeck (), "check", tape);

  assert_child_status (child, status);
  assert_contains (child.out, says);
  td_test_child_clear (&child);
}

void
run_assert_info (const char *tape, const char *says)
{
  TdTestChild child = TD_TEST_RUN (run_tapedeck (), "info", tape);

  assert_child_status (child, 0);
  assert_contains (child.out, says);
  td_test_child_clear (&child);
}

/* What the model prints when nobody looks on. */
const char *
run_plain_result (void)
{
  static char line[64];
  TdTestChild child = TD_TEST_RUN (run_model (), RUN_ITERATIONS);

  assert_child_status (child, 0);
  snprintf (line, sizeof line, "%s", child.out);
  td_test_child_clear (&child);
  return line;
}

void
run_assert_file_says (const char *path, const char *says)
{
  char *text = td_test_read_file (path, NULL);

  assert_contains (text, says);
  free (text);
}
