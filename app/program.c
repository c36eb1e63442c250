/* Looking for a program as posix_spawnp does: see program.h.
 *
 * SPDX-License-Identifier: MIT */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum
{
  PATH_BYTES = 4096,
  FIRST_LINE = 256 /* as much as the kernel reads of it */
};

/* A script needs what its first line names. */
static int
script_trouble (const char *file)
{
  char line[FIRST_LINE + 1], *name;
  const int fd = open (file, O_RDONLY | O_CLOEXEC);
  const ssize_t n = fd >= 0 ? read (fd, line, FIRST_LINE) : 0;

  if (fd >= 0)
    close (fd);
  if (n < 3 || line[0] != '#' || line[1] != '!')
    return 0;
  line[n] = '\0';
  name = line + 2 + strspn (line + 2, " \t");
  name[strcspn (name, " \t\r\n")] = '\0';
  return *name == '\0' || access (name, X_OK) == 0 ? 0 : errno;
}

static int
file_trouble (const char *file)
{
  struct stat st;

  if (stat (file, &st) != 0)
    return errno;
  if (!S_ISREG (st.st_mode))
    return EACCES;
  return access (file, X_OK) == 0 ? script_trouble (file) : errno;
}

int
td_program_trouble (const char *name)
{
  const char *path = getenv ("PATH");
  char file[PATH_BYTES];
  int found = ENOENT;

  if (strchr (name, '/') != NULL)
    return file_trouble (name);
  if (path == NULL)
    path = "/bin:/usr/bin";
  for (const char *at = path; *name != '\0'; at++)
    {
      const size_t n = strcspn (at, ":");
      const int written = snprintf (file, sizeof file, "%.*s%s%s", (int)n, at, n > 0 ? "/" : "",
                                    name); /* an empty one is this folder */
      const int trouble
          = written >= 0 && (size_t)written < sizeof file ? file_trouble (file) : ENAMETOOLONG;

      if (trouble == 0)
        return 0;
      if (trouble == EACCES)
        found = EACCES; /* another may be executable; else this is why */
      at += n;
      if (*at == '\0')
        break;
    }
  return found;
}
