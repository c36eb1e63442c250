/* Compiling a model: see compile.h.
 *
 * Flags come from where this executable lies: beside a build tree's engine/, or in a prefix.
 * SPDX-License-Identifier: MIT */
#include "compile.h"

#include "command.h"
#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A library with a sanitizer wants programs with it. */
#ifdef TD_SANITIZE
#define SANITIZER "-fsanitize=" TD_SANITIZE
#else
#define SANITIZER "-fno-omit-frame-pointer" /* profilers see the model's frames */
#endif

enum
{
  PATH_BYTES = 4096,
  MAX_ERRORS = 65536
};

/* A static library is in the model, with all that it needs itself. */
#ifdef TD_STATIC_LINK
#define LIBRARY "libtapedeck.a"
#define LINKED_WITH "-ltapedeck", TD_STATIC_LINK
#else
#define LIBRARY "libtapedeck.so"
#define LINKED_WITH "-ltapedeck", "-lm"
#endif

/* Where headers and libraries are. */
typedef struct
{
  char include[PATH_BYTES + 64], lib[PATH_BYTES + 64];
  char more[PATH_BYTES + 64]; /* what tapedeck.h includes */
} Places;

static bool
find_places (Places *p)
{
  char folder[PATH_BYTES], probe[PATH_BYTES + 128];

  if (!td_own_folder (folder, sizeof folder))
    return false;
  snprintf (probe, sizeof probe, "%s/../engine/" LIBRARY, folder);
  if (access (probe, R_OK) == 0) /* a build tree, which knows its source tree */
    {
      snprintf (p->lib, sizeof p->lib, "%s/../engine", folder);
      snprintf (p->include, sizeof p->include, "%s/engine", TD_SOURCE_ROOT);
      snprintf (p->more, sizeof p->more, "%s/engine/public", TD_SOURCE_ROOT);
      return true;
    }
  snprintf (p->include, sizeof p->include, "%s/" TD_INCLUDE_FROM_BIN, folder);
  strcpy (p->more, p->include);
  snprintf (p->lib, sizeof p->lib, "%s/" TD_LIB_FROM_BIN, folder);
  snprintf (probe, sizeof probe, "%s/tapedeck.h", p->include);
  if (access (probe, R_OK) == 0)
    return true;
  fprintf (stderr, "tapedeck: %s: the headers a model needs are not installed\n", probe);
  return false;
}

static uint64_t
hash_bytes (uint64_t h, const void *bytes, size_t n)
{
  const unsigned char *s = bytes;

  for (size_t i = 0; i < n; i++)
    h = (h ^ s[i]) * 1099511628211u;
  return h;
}

static uint64_t
hash_file (uint64_t h, const char *path)
{
  char room[65536];
  FILE *f = fopen (path, "rb");
  size_t n;

  while (f != NULL && (n = fread (room, 1, sizeof room, f)) > 0)
    h = hash_bytes (h, room, n);
  if (f != NULL)
    fclose (f);
  return h;
}

/* The defaults of options end with their last member (TD_OPTIONS_ of tapedeck.h): what comes
 * behind without a name is too much, of which compilers only warn. */
static bool
has_unnamed_option (const char *messages)
{
  const char *clang = strstr (messages, "[-Wexcess-initializers]");

  return clang != NULL
         || (strstr (messages, "excess elements in struct initializer") != NULL
             && strstr (messages, "(anonymous)") != NULL);
}

/* Show the compiler's messages, and say the first error's line once more as ours. */
static void
show_messages (const char *source, const char *text)
{
  const char *at = text, *line = NULL;

  fputs (text, stderr);
  for (; *at != '\0' && line == NULL; at = *at != '\0' ? at + 1 : at)
    {
      size_t n = strcspn (at, "\n");
      const char *found = memmem (at, n, "error: ", 7);

      found = found != NULL ? found : memmem (at, n, "excess elements", 15);
      if (found != NULL || memmem (at, n, "undefined reference", 19) != NULL)
        line = at;
      at += n;
      if (*at == '\0')
        break;
    }
  if (line != NULL)
    fprintf (stderr, "tapedeck: %s does not compile: %.*s\n", source, (int)strcspn (line, "\n"),
             line);
  else
    fprintf (stderr, "tapedeck: %s does not compile\n", source);
}

/* Run the compiler with its stderr in `text`.  Its exit status, or -1. */
static int
run_compiler (const char *const argv[], char *text, size_t size)
{
  char rest[4096];
  int pipe_fds[2], status;
  size_t used = 0;
  ssize_t n;
  pid_t pid;

  if (pipe2 (pipe_fds, O_CLOEXEC) != 0)
    return -1;
  pid = fork ();
  if (pid == 0)
    {
      dup2 (pipe_fds[1], 2);
      execvp (argv[0], (char *const *)(uintptr_t)argv);
      _exit (errno == ENOENT ? 127 : 126);
    }
  close (pipe_fds[1]);
  while (pid > 0
         && ((n = read (pipe_fds[0], text + used, size - 1 - used)) > 0
             || (n < 0 && errno == EINTR)))
    used += n > 0 ? (size_t)n : 0;
  while (pid > 0 && read (pipe_fds[0], rest, sizeof rest) > 0) /* or the compiler dies of it */
    ;
  text[used] = '\0';
  close (pipe_fds[0]);
  if (pid < 0)
    return -1;
  while (waitpid (pid, &status, 0) < 0)
    if (errno != EINTR)
      return -1;
  return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

/* The next file named in a dependency file of the compiler; false at its end. */
static bool
next_file (const char **at, char *path, size_t size)
{
  const char *s = *at;
  size_t used = 0;

  while (*s == ' ' || *s == '\n' || (*s == '\\' && s[1] == '\n'))
    s++;
  for (; *s != '\0' && *s != ' ' && *s != '\n' && used + 1 < size; s++)
    {
      if ((*s == '\\' && (s[1] == ' ' || s[1] == '#')) || (*s == '$' && s[1] == '$'))
        s++;
      path[used++] = *s;
    }
  path[used] = '\0';
  *at = s;
  return used > 0;
}

static bool
is_older (const struct stat *a, const struct stat *b)
{
  return a->st_mtim.tv_sec != b->st_mtim.tv_sec ? a->st_mtim.tv_sec < b->st_mtim.tv_sec
                                                : a->st_mtim.tv_nsec < b->st_mtim.tv_nsec;
}

/* Is the program there, and older than none of the files it was made of?  Its time is that of
 * the compiler's start. */
static bool
is_fresh (const char *program, const char *dependencies)
{
  static char text[MAX_ERRORS];
  char path[PATH_BYTES];
  const char *at;
  struct stat made, part;
  FILE *f;

  if (stat (program, &made) != 0 || access (program, X_OK) != 0
      || (f = fopen (dependencies, "re")) == NULL)
    return false;
  text[fread (text, 1, sizeof text - 1, f)] = '\0';
  fclose (f);
  at = strchr (text, ':');
  at = at != NULL ? at + 1 : text;
  while (next_file (&at, path, sizeof path))
    if (stat (path, &part) != 0 || !is_older (&part, &made))
      return false;
  return true;
}

bool
td_compile_model (const char *source, bool quiet, char *out, unsigned long size)
{
  Places p;
  char folder[PATH_BYTES], include[PATH_BYTES + 80], more[PATH_BYTES + 80],
      lib[PATH_BYTES + 80], rpath[PATH_BYTES + 80], temp[PATH_BYTES], parts[PATH_BYTES],
      made_of[PATH_BYTES], *text;
  const char *cc = getenv ("CC"), *base = strrchr (source, '/');
  uint64_t hash = 14695981039346656037u;
  struct timespec begin[2] = { { 0, UTIME_OMIT }, { 0, 0 } };
  int status;
  bool unnamed;

  base = base != NULL ? base + 1 : source;
  if (cc == NULL || *cc == '\0')
    cc = "cc";
  if (access (source, R_OK) != 0)
    {
      fprintf (stderr, "tapedeck: %s: %s\n", source, strerror (errno));
      return false;
    }
  if (!find_places (&p))
    return false;
  snprintf (include, sizeof include, "-I%s", p.include);
  snprintf (more, sizeof more, "-I%s", p.more);
  snprintf (lib, sizeof lib, "-L%s", p.lib);
  snprintf (rpath, sizeof rpath, "-Wl,-rpath,%s", p.lib);
  if (getcwd (temp, sizeof temp) != NULL) /* the same name there includes other headers */
    hash = hash_bytes (hash, temp, strlen (temp) + 1);
  hash = hash_bytes (hash_file (hash, source), source, strlen (source) + 1);
  hash = hash_bytes (hash_bytes (hash, p.include, strlen (p.include)), cc, strlen (cc));
  hash = hash_bytes (hash, p.lib, strlen (p.lib)); /* several builds of one source tree */
  snprintf (temp, sizeof temp, "%.4000s/tapedeck.h", p.include);
  hash = hash_file (hash, temp);
#ifdef TD_STATIC_LINK
  snprintf (temp, sizeof temp, "%.4000s/" LIBRARY, p.lib);
  hash = hash_file (hash, temp);
#endif
  if (!td_cache_folder ("build", hash, folder, sizeof folder))
    return false;
  snprintf (out, size, "%s/%.*s", folder, (int)strlen (base) - 2, base);
  snprintf (made_of, sizeof made_of, "%.3900s.d", out);
  if (is_fresh (out, made_of))
    return true;
  snprintf (temp, sizeof temp, "%.3900s.%ld", out, (long)getpid ());
  snprintf (parts, sizeof parts, "%.3900s.%ld.d", out, (long)getpid ());
  clock_gettime (CLOCK_REALTIME_COARSE, &begin[1]); /* the clock of file times */
  /* -g: the debugger and ASan see lines; -O1 costs 17 ms more than -O0 and saves loops over
   * data */
  const char *argv[]
      = { cc,      "-std=gnu11",
          "-g",    "-O1",
          "-Wall", SANITIZER,
          include, "-Werror=int-conversion", /* an option given without its name */
          more,    "-MMD",
          "-MF",   parts,
          source,  "-o",
          temp,    lib,
          rpath,   LINKED_WITH,
          NULL };
  text = malloc (MAX_ERRORS);
  if (text == NULL)
    return false;
  if (!quiet && isatty (2))
    fprintf (stderr, "tapedeck: compiling %s\n", source);
  status = run_compiler (argv, text, MAX_ERRORS);
  unnamed = status == 0 && has_unnamed_option (text);
  if (status == 127)
    fprintf (stderr,
             "tapedeck: no C compiler: %s is not installed (on Debian: apt install gcc)\n", cc);
  else if (status != 0 || unnamed)
    show_messages (source, text);
  else if (*text != '\0' && !quiet)
    fputs (text, stderr); /* warnings */
  free (text);
  if (status == 0 && !unnamed && utimensat (AT_FDCWD, temp, begin, 0) == 0
      && rename (parts, made_of) == 0 && rename (temp, out) == 0)
    return true;
  unlink (temp);
  unlink (parts);
  return false;
}
