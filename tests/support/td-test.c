/* The helpers of td-test.h. State is one folder and one list of names handed out, both of the
 * test that runs now: CMocka runs tests one after another.
 * SPDX-License-Identifier: MIT */
#include "td-test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct Name Name;
struct Name
{
  Name *next;
  char text[];
};

static char *folder;
static Name *names;

static const char *
name_new (const char *a, const char *b)
{
  size_t n = strlen (a) + 1 + strlen (b) + 1;
  Name *name = malloc (sizeof *name + n);

  assert_non_null (name);
  snprintf (name->text, n, "%s/%s", a, b);
  name->next = names;
  names = name;
  return name->text;
}

static void
names_free (void)
{
  while (names != NULL)
    {
      Name *next = names->next;

      free (names);
      names = next;
    }
}

int
td_test_setup (void **state)
{
  const char *base = getenv ("TMPDIR");
  char path[4096];

  (void)state;
  snprintf (path, sizeof path, "%s/tapedeck-test-XXXXXX", base != NULL ? base : "/tmp");
  free (folder);
  folder = NULL;
  if (mkdtemp (path) == NULL)
    return -1;
  folder = strdup (path);
  setenv ("XDG_RUNTIME_DIR", path, 1);
  setenv ("TAPEDECK_TMPDIR", path, 1);
  return folder != NULL ? 0 : -1;
}

static int
remove_one (const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
  (void)st;
  (void)flag;
  (void)ftw;
  return remove (path) == 0 || errno == ENOENT ? 0 : errno;
}

int
td_test_teardown (void **state)
{
  int status = 0;

  (void)state;
  if (folder != NULL)
    do /* again where a program that ends has just made a file */
      status = nftw (folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    while (status == ENOTEMPTY);
  free (folder);
  folder = NULL;
  names_free ();
  return status;
}

const char *
td_test_tmp (const char *name)
{
  assert_non_null (folder); /* the test is registered with td_test () */
  return name_new (folder, name);
}

const char *
td_test_source (const char *name)
{
  return name_new (TD_TEST_SOURCE_ROOT, name);
}

const char *
td_test_build (const char *name)
{
  return name_new (TD_TEST_BUILD_ROOT, name);
}

bool
td_test_on_cpu (void)
{
  return getenv ("TD_TEST_DEVICE") == NULL;
}

void
td_test_needs_cpu (const char *why)
{
  if (td_test_on_cpu ())
    return;
  print_message ("not on %s: %s\n", getenv ("TD_TEST_DEVICE"), why);
  skip ();
}

static const char *
there_or_skip (const char *path)
{
  if (access (path, R_OK) == 0)
    return path;
  print_message ("needs %s\n", path);
  skip ();
  return NULL;
}

const char *
td_test_shared (const char *name)
{
  const char *root = getenv ("TAPEDECK_SHARED");

  return there_or_skip (root != NULL ? name_new (root, name)
                                     : name_new (TD_TEST_SOURCE_ROOT "/../shared", name));
}

const char *
td_test_program (const char *name)
{
  return there_or_skip (td_test_build (name));
}

char *
td_test_read_file (const char *path, size_t *bytes)
{
  FILE *f = fopen (path, "rb");
  size_t n = 0, room = 4096, got;
  char *data = malloc (room + 1);

  if (f == NULL)
    fail_msg ("%s: %s", path, strerror (errno));
  while (data != NULL && (got = fread (data + n, 1, room - n, f)) > 0)
    {
      n += got;
      if (n == room)
        {
          char *more = realloc (data, 2 * room + 1);

          room *= 2;
          if (more == NULL)
            free (data);
          data = more;
        }
    }
  fclose (f);
  assert_non_null (data);
  data[n] = '\0';
  if (bytes != NULL)
    *bytes = n;
  return data;
}

void
td_test_write_file (const char *path, const void *data, size_t bytes)
{
  FILE *f = fopen (path, "wb");
  bool written = f != NULL && fwrite (data, 1, bytes, f) == bytes;

  if (f != NULL && fclose (f) != 0)
    written = false;
  if (!written)
    fail_msg ("%s: %s", path, strerror (errno));
}

static void
make_parents (const char *path)
{
  char *copy = strdup (path);

  for (char *p = copy + 1; copy != NULL && *p != '\0'; p++)
    if (*p == '/')
      {
        *p = '\0';
        mkdir (copy, 0777);
        *p = '/';
      }
  free (copy);
}

uint64_t
td_test_number (const char *variable, uint64_t usual)
{
  const char *given = getenv (variable);

  return given != NULL ? strtoull (given, NULL, 10) : usual;
}

int
td_test_patience_ms (void)
{
  const char *given = getenv ("TD_TEST_PATIENCE_MS");

  return given != NULL ? atoi (given) : 120000;
}

static int64_t
now_ms (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void
td_test_wait (const char *what, bool (*met) (void *data), void *data)
{
  const int64_t end = now_ms () + td_test_patience_ms ();

  while (!met (data))
    {
      if (now_ms () > end)
        fail_msg ("waited in vain for %s", what);
      nanosleep (&(struct timespec){ 0, 5000000 }, NULL);
    }
}

typedef struct
{
  struct sockaddr_un address;
  int fd;
} Caller;

static bool
somebody_listens (void *data)
{
  Caller *c = data;

  return connect (c->fd, (const struct sockaddr *)&c->address, sizeof c->address) == 0;
}

int
td_test_connect (const char *path)
{
  Caller c = { { .sun_family = AF_UNIX }, socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) };

  assert_true (c.fd >= 0);
  assert_true (strlen (path) < sizeof c.address.sun_path);
  strcpy (c.address.sun_path, path);
  td_test_wait (path, somebody_listens, &c);
  return c.fd;
}

/* The line number of the first difference, and where that line begins. */
static size_t
first_difference (const char *a, size_t a_bytes, const char *b, size_t b_bytes, size_t *start)
{
  size_t line = 1, i = 0;

  *start = 0;
  for (; i < a_bytes && i < b_bytes && a[i] == b[i]; i++)
    if (a[i] == '\n')
      {
        line++;
        *start = i + 1;
      }
  return line;
}

static int
line_length (const char *text, size_t bytes, size_t start)
{
  const char *end = memchr (text + start, '\n', bytes - start);
  size_t n = end != NULL ? (size_t)(end - text) - start : bytes - start;

  return n < 200 ? (int)n : 200;
}

void
td_test_golden_bytes (const char *name, const void *data, size_t bytes)
{
  const char *path = name_new (TD_TEST_SOURCE_ROOT "/tests/golden", name);
  const char *update = getenv ("TD_UPDATE_GOLDEN");
  const char *now = data;
  size_t want_bytes, line, start;
  char *want;

  if (update != NULL && strcmp (update, "1") == 0)
    {
      make_parents (path);
      td_test_write_file (path, data, bytes);
      return;
    }
  want = td_test_read_file (path, &want_bytes);
  if (want_bytes != bytes || memcmp (want, data, bytes) != 0)
    {
      char actual[4096];

      snprintf (actual, sizeof actual, "%s/tests/golden/%s.actual", TD_TEST_BUILD_ROOT, name);
      make_parents (actual);
      td_test_write_file (actual, data, bytes);
      line = first_difference (want, want_bytes, now, bytes, &start);
      print_error ("golden  %s:%zu: %.*s\n", path, line, line_length (want, want_bytes, start),
                   want + start);
      print_error ("actual  %s:%zu: %.*s\n", actual, line, line_length (now, bytes, start),
                   now + start);
      free (want);
      fail_msg ("%s differs; TD_UPDATE_GOLDEN=1 accepts it", name);
    }
  free (want);
}

void
td_test_golden (const char *name, const char *text)
{
  td_test_golden_bytes (name, text, strlen (text));
}

/* Child output goes to files and not to pipes: no child ever waits for us to read. They lie in
 * no folder, so that a fixture without one can run a child as well. */
static int
scratch_fd (void)
{
  int fd = memfd_create ("child", MFD_CLOEXEC);

  assert_true (fd >= 0);
  return fd;
}

static char *
slurp_fd (int fd, size_t *bytes)
{
  off_t size = lseek (fd, 0, SEEK_END);
  char *text = malloc ((size_t)size + 1);
  size_t n = 0;

  assert_non_null (text);
  while (n < (size_t)size)
    {
      ssize_t got = pread (fd, text + n, (size_t)size - n, (off_t)n);

      assert_true (got > 0);
      n += (size_t)got;
    }
  text[n] = '\0';
  *bytes = n;
  close (fd);
  return text;
}

TdTestChild
td_test_run (const char *const *argv, const char *input, const char *const *env)
{
  TdTestChild child = { 0 };
  int in = scratch_fd (), out = scratch_fd (), err = scratch_fd (), wait_status = 0;
  pid_t pid;

  if (input != NULL)
    assert_int_equal (pwrite (in, input, strlen (input), 0), strlen (input));
  pid = fork ();
  assert_true (pid >= 0);
  if (pid == 0)
    {
      prctl (PR_SET_PDEATHSIG, SIGKILL);
      dup2 (in, 0);
      dup2 (out, 1);
      dup2 (err, 2);
      for (; env != NULL && *env != NULL; env++)
        putenv (strdup (*env));
      execvp (argv[0], (char *const *)(uintptr_t)argv);
      fprintf (stderr, "%s: %s\n", argv[0], strerror (errno));
      _exit (errno == ENOENT ? 127 : 126);
    }
  close (in);
  while (waitpid (pid, &wait_status, 0) < 0)
    assert_int_equal (errno, EINTR);
  child.signal = WIFSIGNALED (wait_status) ? WTERMSIG (wait_status) : 0;
  child.status = child.signal != 0 ? 128 + child.signal : WEXITSTATUS (wait_status);
  child.out = slurp_fd (out, &child.out_bytes);
  child.err = slurp_fd (err, &child.err_bytes);
  return child;
}

const char *
td_test_python (const char *module)
{
  const char *named = strcmp (module, "torch") == 0 ? "TD_TEST_TORCH" : "TD_TEST_PYTHON";
  const char *pythons[] = { getenv (named), "python3", "/usr/bin/python3" };
  char import[100];

  snprintf (import, sizeof import, "import %s", module);
  for (size_t i = 0; i < sizeof pythons / sizeof *pythons; i++)
    {
      const char *const argv[] = { pythons[i], "-c", import, NULL };
      TdTestChild child;
      int status;

      if (pythons[i] == NULL)
        continue;
      child = td_test_run (argv, NULL, NULL);
      status = child.status;
      td_test_child_clear (&child);
      if (status == 0)
        return pythons[i];
    }
  skip ();
  return NULL;
}

TdTestChild
td_test_shell (const char *format, ...)
{
  char command[16384], seconds[16];
  va_list args;
  int n;

  va_start (args, format);
  n = vsnprintf (command, sizeof command, format, args);
  va_end (args);
  assert_in_range (n, 0, sizeof command - 1);
  snprintf (seconds, sizeof seconds, "%d", td_test_patience_ms () / 1000);
  return TD_TEST_RUN ("timeout", "-k", "1", seconds, "/bin/sh", "-c", command);
}

void
td_test_child_clear (TdTestChild *child)
{
  free (child->out);
  free (child->err);
  *child = (TdTestChild){ 0 };
}

void
td__test_child_status (const TdTestChild *child, int status, const char *what, const char *file,
                       int line)
{
  if (child->status == status)
    return;
  print_error ("%s: status %d, expected %d\n--- stdout\n%s\n--- stderr\n%s\n", what,
               child->status, status, child->out, child->err);
  _fail (file, line);
}

void
td__test_contains (const char *haystack, const char *needle, bool wanted, const char *file,
                   int line)
{
  if ((strstr (haystack, needle) != NULL) == wanted)
    return;
  print_error ("expected %s\"%s\" in:\n%s\n", wanted ? "" : "no ", needle, haystack);
  _fail (file, line);
}
