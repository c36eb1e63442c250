/* What the commands share: see command.h.
 *
 * SPDX-License-Identifier: MIT */
#include "command.h"

#include "replace.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool
td_own_folder (char *out, unsigned long size)
{
  ssize_t n = readlink ("/proc/self/exe", out, size - 1);
  char *slash;

  if (n <= 0)
    return false;
  out[n] = '\0';
  slash = strrchr (out, '/');
  if (slash == NULL)
    return false;
  *slash = '\0';
  return true;
}

bool
td_is_onnx (const char *name)
{
  const size_t n = strlen (name);

  return n > 5 && strcmp (name + n - 5, ".onnx") == 0;
}

bool
td_find_helper (const char *name, char *out, unsigned long size)
{
  static const char *const places[] = { "../libexec/tapedeck", ".", "../ui", "../viz" };
  char folder[4096];

  for (unsigned i = 0;
       i < sizeof places / sizeof *places && td_own_folder (folder, sizeof folder); i++)
    {
      snprintf (out, size, "%s/%s/%s", folder, places[i], name);
      if (access (out, X_OK) == 0)
        return true;
    }
  fprintf (stderr, "tapedeck: %s is not installed: this is a build without it\n", name);
  return false;
}

int
td_exec_helper (const char *name, char *const argv[])
{
  char path[4200];

  if (!td_find_helper (name, path, sizeof path))
    return TD_EXIT_NOT_FOUND;
  execv (path, argv);
  fprintf (stderr, "tapedeck: %s: %s\n", path, strerror (errno));
  return TD_EXIT_NOT_EXECUTABLE;
}

int
td_usage_error (const char *command, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  fputs ("tapedeck: ", stderr);
  vfprintf (stderr, format, args);
  va_end (args);
  if (command != NULL)
    fprintf (stderr, "\ntapedeck %s --help says more\n", command);
  else
    fputs ("\ntapedeck --help says more\n", stderr);
  return TD_EXIT_USAGE;
}

bool
td_same_file (const char *a, const char *b)
{
  struct stat one, other;

  return stat (a, &one) == 0 && stat (b, &other) == 0 && one.st_ino == other.st_ino
         && one.st_dev == other.st_dev;
}

bool
td_names_output (const char *option)
{
  return strcmp (option, "-o") == 0 || strcmp (option, "--repair") == 0;
}

/* Of TAPE:ITERATION, what diff takes, the tape. */
static bool
reads (const char *argument, const char *out)
{
  char path[4096];
  const char *colon = strrchr (argument, ':');

  if (colon == NULL || access (argument, F_OK) == 0
      || (size_t)(colon - argument) >= sizeof path)
    return td_same_file (argument, out);
  memcpy (path, argument, (size_t)(colon - argument));
  path[colon - argument] = '\0';
  return td_same_file (path, out);
}

/* A device, a pipe or a terminal may be both. */
int
td_refuse_own_input (int argc, char **argv)
{
  struct stat st;

  for (int o = 2; o < argc; o++)
    {
      if (!td_names_output (argv[o - 1]) || strcmp (argv[o], "-") == 0
          || stat (argv[o], &st) != 0 || !S_ISREG (st.st_mode))
        continue;
      for (int i = 1; i < argc; i++)
        if (i != o && !td_names_output (argv[i - 1]) && reads (argv[i], argv[o]))
          {
            fprintf (stderr, "tapedeck: %s: it is what is read, and is not written over\n",
                     argv[o]);
            return TD_EXIT_USAGE;
          }
    }
  return TD_EXIT_OK;
}

int
td_refuse_standard_output (const char *command, const char *option, const char *out)
{
  if (strcmp (out, "-") != 0)
    return TD_EXIT_OK;
  return td_usage_error (command, "%s -: a tape goes to a file (./- is one of that name)",
                         option);
}

/* What a caller may have left undone: with SIGCHLD ignored no child's status is ever known, and
 * a file opened as descriptor 1 would get the model's output. */
static void
repair_inheritance (void)
{
  int fd;

  signal (SIGCHLD, SIG_DFL);
  signal (SIGXFSZ, SIG_IGN); /* a file beyond the limit of sizes is a full disk */
  while ((fd = open ("/dev/null", O_RDWR)) >= 0 && fd <= 2)
    ;
  if (fd > 2)
    close (fd);
}

int
td_command_main (int argc, char **argv, int (*run) (int argc, char **argv))
{
  int status;

  repair_inheritance ();
  status = run (argc, argv);
  if (td__stdout_end ())
    return status;
  fprintf (stderr, "tapedeck: standard output: %s\n", strerror (errno));
  return TD_EXIT_USAGE;
}
