/* Writing a file beside its place.  SPDX-License-Identifier: MIT */
#include "replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The new name must be on the disk too; a file system that cannot do that is not an error. */
static void
sync_folder (const char *path)
{
  const char *slash = strrchr (path, '/');
  char folder[4096] = ".";
  int fd;

  if (slash != NULL)
    snprintf (folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
  fd = open (folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0)
    {
      fsync (fd);
      close (fd);
    }
}

bool
td__replace_begin (TdReplace *r, const char *path)
{
  int n = snprintf (r->temp, sizeof r->temp, "%s.XXXXXX", path), fd, error;

  r->path = path;
  errno = ENAMETOOLONG;
  if (n < 0 || (size_t)n >= sizeof r->temp || (fd = mkostemp (r->temp, O_CLOEXEC)) < 0)
    return false;
  fchmod (fd, 0644);
  r->file = fdopen (fd, "wb");
  if (r->file != NULL)
    return true;
  error = errno;
  close (fd);
  unlink (r->temp);
  errno = error;
  return false;
}

bool
td__replace_end (TdReplace *r, bool whole)
{
  bool ok = whole && fflush (r->file) == 0 && fsync (fileno (r->file)) == 0;
  int error = errno;

  if (fclose (r->file) != 0 && ok)
    {
      ok = false;
      error = errno;
    }
  if (ok && rename (r->temp, r->path) != 0)
    {
      ok = false;
      error = errno;
    }
  if (ok)
    sync_folder (r->path);
  else
    unlink (r->temp);
  errno = error;
  return ok;
}

bool
td__replace_file (const char *path, const void *data, size_t bytes)
{
  TdReplace r;

  return td__replace_begin (&r, path)
         && td__replace_end (&r, fwrite (data, 1, bytes, r.file) == bytes);
}
