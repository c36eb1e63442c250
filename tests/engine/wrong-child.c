/* How a child process is run and listened to.
 *
 * SPDX-License-Identifier: MIT */
#include "wrong-child.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TdChild
td_child_of (int (*body) (int which), int which)
{
  static const int deadly[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
  TdChild c = { "", 0 };
  int ends[2], status;
  size_t n = 0;
  ssize_t got;
  pid_t pid;

  assert_int_equal (pipe (ends), 0);
  fflush (NULL);
  pid = fork ();
  assert_true (pid >= 0);
  if (pid == 0)
    {
      dup2 (ends[1], 2);
      close (ends[0]);
      close (ends[1]);
      for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        signal (deadly[i], SIG_DFL); /* CMocka's would go on with the next test */
      exit (body (which));
    }
  close (ends[1]);
  while (n < sizeof c.said - 1 && (got = read (ends[0], c.said + n, sizeof c.said - 1 - n)) > 0)
    n += (size_t)got;
  close (ends[0]);
  assert_int_equal (waitpid (pid, &status, 0), pid);
  c.status = WIFEXITED (status) ? WEXITSTATUS (status) : -WTERMSIG (status);
  return c;
}

int
td_count_of (const char *text, const char *word)
{
  int n = 0;

  for (const char *at = text; (at = strstr (at, word)) != NULL; at++)
    n++;
  return n;
}
