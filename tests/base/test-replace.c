/* How files are written.  The full disk is a limit of file sizes, the device a pipe in the
 * test's own folder.  SPDX-License-Identifier: MIT */
#include "replace.h"

#include "td-test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void
put_text (const char *path, const char *text)
{
  FILE *f = fopen (path, "w");

  assert_non_null (f);
  assert_true (fputs (text, f) >= 0);
  assert_int_equal (fclose (f), 0);
}

static void
assert_text (const char *path, const char *expected)
{
  size_t n;
  char *text = td_test_read_file (path, &n);

  assert_int_equal (n, strlen (expected));
  assert_memory_equal (text, expected, n);
  free (text);
}

static mode_t
type_of (const char *path)
{
  struct stat s;

  assert_int_equal (lstat (path, &s), 0);
  return s.st_mode & S_IFMT;
}

/* How many entries the test's folder has. */
static int
n_entries (void)
{
  char folder[4096];
  struct dirent *entry;
  DIR *dir;
  int n = 0;

  snprintf (folder, sizeof folder, "%s", td_test_tmp ("x"));
  *strrchr (folder, '/') = '\0';
  dir = opendir (folder);
  assert_non_null (dir);
  while ((entry = readdir (dir)) != NULL)
    n += entry->d_name[0] != '.';
  closedir (dir);
  return n;
}

static void
replace__makes_a_file_with_the_rights_of_the_umask_and_keeps_those_of_an_old_one (void **state)
{
  const char *path = td_test_tmp ("a");
  const mode_t old = umask (027);
  struct stat s;

  (void)state;
  assert_true (td__replace_file (path, "one", 3));
  umask (old);
  assert_text (path, "one");
  assert_int_equal (stat (path, &s), 0);
  assert_int_equal (s.st_mode & 0777, 0640);
  assert_int_equal (chmod (path, 0604), 0);
  assert_true (td__replace_file (path, "two", 3));
  assert_text (path, "two");
  assert_int_equal (stat (path, &s), 0);
  assert_int_equal (s.st_mode & 0777, 0604);
  assert_int_equal (n_entries (), 1);
}

static void
replace__that_fails_leaves_the_old_file_and_nothing_beside_it (void **state)
{
  const char *path = td_test_tmp ("a");
  struct rlimit old, small;
  char bytes[20000];
  TdReplace r;
  bool ok;

  (void)state;
  put_text (path, "old");
  assert_true (td__replace_begin (&r, path, 0666));
  fputs ("new", r.file);
  assert_false (td__replace_end (&r, false));
  assert_text (path, "old");
  memset (bytes, 'x', sizeof bytes);
  assert_int_equal (getrlimit (RLIMIT_FSIZE, &old), 0);
  small = old;
  small.rlim_cur = 5000;
  signal (SIGXFSZ, SIG_IGN);
  assert_int_equal (setrlimit (RLIMIT_FSIZE, &small), 0);
  ok = td__replace_file (path, bytes, sizeof bytes);
  small.rlim_cur = (rlim_t)errno;
  assert_int_equal (setrlimit (RLIMIT_FSIZE, &old), 0);
  assert_false (ok);
  assert_int_equal (small.rlim_cur, EFBIG);
  assert_text (path, "old");
  assert_int_equal (n_entries (), 1);
}

static void
replace__follows_links_and_keeps_them (void **state)
{
  const char *file = td_test_tmp ("file"), *link = td_test_tmp ("link"),
             *hanging = td_test_tmp ("hanging"), *loop = td_test_tmp ("loop");

  (void)state;
  put_text (file, "old");
  assert_int_equal (symlink ("file", link), 0);
  assert_true (td__replace_file (link, "new", 3));
  assert_int_equal (type_of (link), S_IFLNK);
  assert_int_equal (type_of (file), S_IFREG);
  assert_text (file, "new");
  assert_int_equal (symlink ("made", hanging), 0);
  assert_true (td__replace_file (hanging, "there", 5));
  assert_int_equal (type_of (hanging), S_IFLNK);
  assert_text (td_test_tmp ("made"), "there");
  assert_int_equal (symlink ("loop", loop), 0);
  assert_false (td__replace_file (loop, "x", 1));
  assert_int_equal (errno, ELOOP);
  assert_int_equal (n_entries (), 5);
}

static void
replace__writes_to_a_pipe_and_never_over_it (void **state)
{
  const char *pipe_path = td_test_tmp ("pipe"), *null = td_test_tmp ("null");
  char text[8] = "";
  int fd;

  (void)state;
  assert_int_equal (mkfifo (pipe_path, 0600), 0);
  fd = open (pipe_path, O_RDONLY | O_NONBLOCK);
  assert_true (fd >= 0);
  assert_true (td__replace_file (pipe_path, "hello", 5));
  assert_int_equal (read (fd, text, sizeof text), 5);
  assert_memory_equal (text, "hello", 5);
  close (fd);
  assert_int_equal (type_of (pipe_path), S_IFIFO);
  assert_int_equal (symlink ("/dev/null", null), 0);
  assert_true (td__replace_file (null, "hello", 5));
  assert_int_equal (type_of (null), S_IFLNK);
  assert_int_equal (type_of ("/dev/null"), S_IFCHR);
  assert_int_equal (n_entries (), 2);
}

static void
replace__refuses_what_cannot_be_written (void **state)
{
  const char *path = td_test_tmp ("socket"), *folder = td_test_tmp ("folder");
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  const int fd = socket (AF_UNIX, SOCK_STREAM, 0);

  (void)state;
  assert_int_equal (mkdir (folder, 0700), 0);
  assert_false (td__replace_file (folder, "x", 1));
  assert_int_equal (errno, EISDIR);
  assert_true (strlen (path) < sizeof address.sun_path);
  strcpy (address.sun_path, path);
  assert_int_equal (bind (fd, (const struct sockaddr *)&address, sizeof address), 0);
  assert_false (td__replace_file (path, "x", 1));
  assert_int_equal (type_of (path), S_IFSOCK);
  close (fd);
  assert_false (td__replace_file (td_test_tmp ("none/file"), "x", 1));
  assert_int_equal (errno, ENOENT);
  if (getuid () != 0)
    {
      path = td_test_tmp ("read-only");
      put_text (path, "old");
      assert_int_equal (chmod (path, 0400), 0);
      assert_false (td__replace_file (path, "x", 1));
      assert_int_equal (errno, EACCES);
    }
  assert_false (td__replace_file ("/dev/full", "x", 1));
  assert_int_equal (errno, ENOSPC);
  assert_int_equal (type_of ("/dev/full"), S_IFCHR);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (replace__makes_a_file_with_the_rights_of_the_umask_and_keeps_those_of_an_old_one),
    td_test (replace__that_fails_leaves_the_old_file_and_nothing_beside_it),
    td_test (replace__follows_links_and_keeps_them),
    td_test (replace__writes_to_a_pipe_and_never_over_it),
    td_test (replace__refuses_what_cannot_be_written),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
