/* The writer's file: opened, locked and only then emptied; and whether somebody else has
 * changed it since.
 *
 * The lock is a record lock of fcntl, as the ring's: the kernel takes it back however the
 * process ends.  SPDX-License-Identifier: MIT */
#include "writer-private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------------------ opening */

bool
td_tape_lock (int fd)
{
  struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

  /* File systems without locks say something else than these two: there a run is let in. */
  return fcntl (fd, F_SETLK, &whole) == 0 || (errno != EAGAIN && errno != EACCES);
}

/* Is it an older recording, or nothing yet?  What else there is was never meant to be written
 * over. */
static bool
is_tape (int fd)
{
  char magic[sizeof TD_TAPE_MAGIC];
  const ssize_t n = pread (fd, magic, sizeof magic - 1, 0);

  return n >= 0 && memcmp (magic, TD_TAPE_MAGIC, (size_t)n) == 0;
}

bool
td_tape_may_replace (const char *path, char *error, size_t n)
{
  const int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  bool may = fd < 0 || is_tape (fd);

  if (!may)
    snprintf (error, n, "%s", TD_TAPE_NO_TAPE);
  if (fd >= 0)
    close (fd);
  return may;
}

/* What another recorder writes is not touched. */
static bool
make_empty (int fd, char *error, size_t n)
{
  if (!td_tape_lock (fd))
    snprintf (error, n, "%s", TD_TAPE_TAKEN);
  else if (!is_tape (fd))
    snprintf (error, n, "%s", TD_TAPE_NO_TAPE);
  else if (ftruncate (fd, 0) != 0)
    snprintf (error, n, "%s", strerror (errno));
  else
    return true;
  return false;
}

/* What a recording shows is its owner's: others read it when they are let. */
int
td__tape_open (const char *path, bool overwrite, char *error, size_t n)
{
  const int flags = O_RDWR | O_CREAT | O_CLOEXEC | (overwrite ? 0 : O_EXCL);
  struct stat s;
  int fd;

  if (overwrite && stat (path, &s) == 0 && !S_ISREG (s.st_mode))
    {
      snprintf (error, n, "it is no file that could be written over");
      return -1;
    }
  fd = open (path, flags, 0600);
  if (fd < 0)
    snprintf (error, n, errno == EEXIST ? "exists; will not write over it" : "%s",
              strerror (errno));
  else if (!make_empty (fd, error, n))
    {
      close (fd);
      fd = -1;
    }
  return fd;
}
