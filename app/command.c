/* What the commands share: see command.h.
 *
 * SPDX-License-Identifier: MIT */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int
td_exec_helper (const char *name, char *const argv[])
{
  static const char *const places[] = { "../libexec/tapedeck", ".", "../ui", "../viz" };
  char folder[4096], path[4200];

  if (!td_own_folder (folder, sizeof folder))
    return TD_EXIT_NOT_FOUND;
  for (unsigned i = 0; i < sizeof places / sizeof *places; i++)
    {
      snprintf (path, sizeof path, "%s/%s/%s", folder, places[i], name);
      if (access (path, X_OK) != 0)
        continue;
      execv (path, argv);
      fprintf (stderr, "tapedeck: %s: %s\n", path, strerror (errno));
      return TD_EXIT_NOT_EXECUTABLE;
    }
  fprintf (stderr, "tapedeck: %s is not installed: this is a build without it\n", name);
  return TD_EXIT_NOT_FOUND;
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

/* What a caller may have left undone: with SIGCHLD ignored no child's status is ever known, and
 * a file opened as descriptor 1 would get the model's output. */
void
td_repair_inheritance (void)
{
  int fd;

  signal (SIGCHLD, SIG_DFL);
  signal (SIGXFSZ, SIG_IGN); /* a file beyond the limit of sizes is a full disk */
  while ((fd = open ("/dev/null", O_RDWR)) >= 0 && fd <= 2)
    ;
  if (fd > 2)
    close (fd);
}
