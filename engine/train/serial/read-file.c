/* Files that are read in one piece, or a piece of one.
 *
 * SPDX-License-Identifier: MIT */
#include "read-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *
system_says (void)
{
  return strerror (errno); /* NOLINT(concurrency-mt-unsafe) */
}

/* Open a regular file; -1: *why. */
static int
open_file (const char *path, uint64_t *bytes, const char **why)
{
  int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat s;

  if (fd < 0 || fstat (fd, &s) != 0)
    *why = system_says ();
  else if (!S_ISREG (s.st_mode))
    *why = "it is not a file";
  else
    {
      *bytes = (uint64_t)s.st_size;
      return fd;
    }
  if (fd >= 0)
    close (fd);
  return -1;
}

static void *
read_at (int fd, uint64_t offset, size_t bytes, const char **why)
{
  char *data = malloc (bytes + 1);
  size_t done = 0;

  if (data == NULL)
    *why = "no memory to read it";
  while (data != NULL && done < bytes)
    {
      ssize_t n = pread (fd, data + done, bytes - done, (off_t)(offset + done));

      if (n < 0 && errno == EINTR)
        continue;
      if (n <= 0)
        {
          *why = n < 0 ? system_says () : "it became shorter while it was read";
          free (data);
          data = NULL;
        }
      else
        done += (size_t)n;
    }
  return data;
}

void *
td__read_file (const char *path, size_t *bytes, const char **why)
{
  uint64_t all = 0;
  int fd = open_file (path, &all, why);
  void *data = fd >= 0 ? read_at (fd, 0, (size_t)all, why) : NULL;

  if (fd >= 0)
    close (fd);
  *bytes = data != NULL ? (size_t)all : 0;
  return data;
}

void *
td__read_file_part (const char *path, uint64_t offset, size_t bytes, const char **why)
{
  uint64_t all = 0;
  int fd = open_file (path, &all, why);
  void *data = NULL;

  if (fd >= 0 && (offset > all || bytes > all - offset))
    *why = "the file is shorter than that";
  else if (fd >= 0)
    data = read_at (fd, offset, bytes, why);
  if (fd >= 0)
    close (fd);
  return data;
}
