/* Where control sockets lie, and what is cleared away there.
 *  SPDX-License-Identifier: MIT */
#include "runtime-folder.h"

#include "td-test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void
assert_folder (const char *runtime, const char *expected)
{
  char folder[4096];
  const char *why = NULL;
  struct stat s;

  if (runtime != NULL)
    setenv ("XDG_RUNTIME_DIR", runtime, 1);
  else
    unsetenv ("XDG_RUNTIME_DIR");
  assert_true (td__runtime_folder (folder, sizeof folder, &why));
  assert_string_equal (folder, expected);
  assert_int_equal (stat (folder, &s), 0);
  assert_int_equal (s.st_uid, getuid ());
  assert_int_equal (s.st_mode & 0777, 0700);
}

static void
runtime_folder__is_a_private_one_where_the_given_one_cannot_be_used (void **state)
{
  const char *ours = td_test_tmp ("ours"), *other = td_test_tmp ("other");
  const char *file = td_test_tmp ("file"), *tmp = td_test_tmp ("tmp");
  char private_folder[4200], below[4200], too_long[100];

  (void)state;
  setenv ("TAPEDECK_TMPDIR", tmp, 1);
  assert_non_null (tmp);
  snprintf (private_folder, sizeof private_folder, "%s/tapedeck-%ld", tmp, (long)getuid ());
  snprintf (below, sizeof below, "%s/tapedeck", ours);
  assert_int_equal (mkdir (ours, 0700), 0);
  if (strlen (ours) < 70)
    assert_folder (ours, below);
  assert_folder (NULL, private_folder);
  assert_folder ("", private_folder);
  assert_folder ("tmp", private_folder);
  assert_int_equal (mkdir (other, 0777), 0);
  assert_int_equal (getuid () == 0 ? chown (other, 65534, 65534) : chmod (other, 0500), 0);
  assert_folder (other, private_folder);
  fclose (fopen (file, "w"));
  assert_folder (file, private_folder);
  memset (too_long, 'x', sizeof too_long);
  memcpy (too_long, "/tmp/", 5);
  too_long[sizeof too_long - 1] = '\0';
  assert_folder (too_long, private_folder);
}

/* What lies there may be a trap: it is said, and not used. */
static void
temporary_folder__of_somebody_else_is_refused (void **state)
{
  char tmp[4096], private_folder[4200], folder[4096];
  const char *why = NULL;

  (void)state;
  snprintf (tmp, sizeof tmp, "%s", td_test_tmp ("tmp"));
  setenv ("TAPEDECK_TMPDIR", tmp, 1);
  snprintf (private_folder, sizeof private_folder, "%s/tapedeck-%ld", tmp, (long)getuid ());
  assert_int_equal (mkdir (tmp, 0700), 0);
  assert_int_equal (symlink (td_test_tmp (""), private_folder), 0);
  assert_false (td__temporary_folder (folder, sizeof folder, &why));
  assert_string_equal (folder, private_folder);
  assert_string_equal (why, "belongs to another user");
}

static int
listen_at (const char *path)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  const int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  assert_true (strlen (path) < sizeof address.sun_path);
  strcpy (address.sun_path, path);
  assert_int_equal (bind (fd, (const struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal (listen (fd, 1), 0);
  return fd;
}

/* The number of a process that is gone. */
static long
dead_process (void)
{
  const pid_t pid = fork ();

  if (pid == 0)
    _exit (0);
  assert_int_equal (waitpid (pid, NULL, 0), pid);
  return pid;
}

static const char *
named (long pid, const char *ending)
{
  char name[64];

  snprintf (name, sizeof name, "%ld.%s", pid, ending);
  return td_test_tmp (name);
}

static void
runtime_clear__removes_what_dead_runs_left_and_nothing_else (void **state)
{
  const long dead = dead_process (), elsewhere = dead_process (), alive = getpid ();
  char folder[4096];
  int answering;

  (void)state;
  snprintf (folder, sizeof folder, "%s", td_test_tmp ("x"));
  *strrchr (folder, '/') = '\0';
  close (listen_at (named (dead, "sock")));
  close (listen_at (named (alive, "sock")));
  answering = listen_at (named (elsewhere, "sock")); /* of another container, say */
  fclose (fopen (named (dead, "ring"), "w"));
  fclose (fopen (named (alive, "ring"), "w"));
  fclose (fopen (named (elsewhere, "ring"), "w"));
  fclose (fopen (named (dead, "txt"), "w"));
  assert_false (td__socket_answers (named (dead, "sock")));
  assert_true (td__socket_answers (named (elsewhere, "sock")));
  td__runtime_clear (folder);
  assert_int_not_equal (access (named (dead, "sock"), F_OK), 0);
  assert_int_not_equal (access (named (dead, "ring"), F_OK), 0);
  assert_int_equal (access (named (dead, "txt"), F_OK), 0);
  assert_int_equal (access (named (alive, "sock"), F_OK), 0);
  assert_int_equal (access (named (alive, "ring"), F_OK), 0);
  assert_int_equal (access (named (elsewhere, "sock"), F_OK), 0);
  assert_int_equal (access (named (elsewhere, "ring"), F_OK), 0);
  close (answering);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (runtime_folder__is_a_private_one_where_the_given_one_cannot_be_used),
    td_test (temporary_folder__of_somebody_else_is_refused),
    td_test (runtime_clear__removes_what_dead_runs_left_and_nothing_else),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
