/* Writing a file beside its place.  SPDX-License-Identifier: MIT */
#include "replace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum
{
  MAX_LINKS = 40,       /* as the kernel follows */
  MAX_NAME_BYTES = 230, /* of the 255 of a name, what the temporary name keeps */
  MAX_TRIES = 100
};

static size_t
folder_bytes (const char *path)
{
  const char *slash = strrchr (path, '/');

  return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

static bool
copy_path (char *to, size_t size, const char *folder, size_t folder_n, const char *name)
{
  const int n = snprintf (to, size, "%.*s%s", (int)folder_n, folder, name);

  errno = ENAMETOOLONG;
  return n >= 0 && (size_t)n < size;
}

/* Make r->path the name of the file itself, which need not be there yet.  A name in /proc is
 * that of an open file, which has no other. */
static bool
follow_links (TdReplace *r)
{
  char target[4096], next[4096];

  for (int i = 0; i < MAX_LINKS; i++)
    {
      const ssize_t n = readlink (r->path, target, sizeof target - 1);

      if (n < 0 || strncmp (r->path, "/proc/", 6) == 0)
        return true;
      target[n] = '\0';
      if (!copy_path (next, sizeof next, r->path, target[0] == '/' ? 0 : folder_bytes (r->path),
                      target))
        return false;
      memcpy (r->path, next, sizeof next);
    }
  errno = ELOOP;
  return false;
}

/* Open a new file beside r->path. */
static int
open_beside (TdReplace *r, mode_t rights)
{
  const size_t folder_n = folder_bytes (r->path);
  int fd = -1;

  for (int i = 0; i < MAX_TRIES && fd < 0; i++)
    {
      unsigned number = 0;
      int n;

      if (getrandom (&number, sizeof number, 0) != (ssize_t)sizeof number)
        number = (unsigned)getpid () + (unsigned)i;
      n = snprintf (r->temp, sizeof r->temp, "%.*s%.*s.%06x", (int)folder_n, r->path,
                    MAX_NAME_BYTES, r->path + folder_n, number & 0xffffff);
      errno = ENAMETOOLONG;
      if (n < 0 || (size_t)n >= sizeof r->temp)
        return -1;
      fd = open (r->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, rights);
      if (fd < 0 && errno != EEXIST)
        return -1;
    }
  return fd;
}

/* Rights and owner are those of the file that is replaced; another's stay another's as far as
 * the system lets us. */
static bool
take_rights (int fd, const struct stat *old)
{
  struct stat now;

  if (fstat (fd, &now) == 0 && (now.st_uid != old->st_uid || now.st_gid != old->st_gid))
    (void)!fchown (fd, old->st_uid, old->st_gid);
  return fchmod (fd, old->st_mode & 0777) == 0;
}

/* A descriptor to write to: beside the place, or to what is there and is no file. */
static int
open_output (TdReplace *r, const char *path, mode_t rights)
{
  struct stat old;
  const bool is_there = stat (path, &old) == 0;
  int fd;

  r->temp[0] = '\0';
  if (!is_there && errno != ENOENT)
    return -1;
  if (is_there && (S_ISDIR (old.st_mode) || S_ISBLK (old.st_mode)))
    {
      errno = S_ISDIR (old.st_mode) ? EISDIR : EPERM;
      return -1;
    }
  if (!copy_path (r->path, sizeof r->path, "", 0, path) || !follow_links (r))
    return -1;
  if (is_there && (!S_ISREG (old.st_mode) || strncmp (r->path, "/proc/", 6) == 0))
    return open (path, O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
  if (is_there && access (path, W_OK) != 0)
    return -1;
  fd = open_beside (r, rights);
  if (fd < 0 || !is_there || take_rights (fd, &old))
    return fd;
  close (fd);
  unlink (r->temp);
  return -1;
}

bool
td__replace_begin (TdReplace *r, const char *path, mode_t rights)
{
  const int fd = open_output (r, path, rights);
  int error;

  if (fd < 0)
    return false;
  r->file = fdopen (fd, "wb");
  if (r->file != NULL)
    return true;
  error = errno;
  close (fd);
  if (r->temp[0] != '\0')
    unlink (r->temp);
  errno = error;
  return false;
}

/* The new name must be on the disk too; a file system that cannot do that is not an error. */
static void
sync_folder (const char *path)
{
  char folder[4096] = ".";
  int fd;

  if (folder_bytes (path) > 0)
    copy_path (folder, sizeof folder, path, folder_bytes (path), "");
  fd = open (folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0)
    {
      fsync (fd);
      close (fd);
    }
}

bool
td__replace_end (TdReplace *r, bool whole)
{
  const bool beside = r->temp[0] != '\0';
  bool ok = whole && ferror (r->file) == 0 && fflush (r->file) == 0
            && (!beside || fsync (fileno (r->file)) == 0);
  int error = errno;

  if (fclose (r->file) != 0 && ok)
    {
      ok = false;
      error = errno;
    }
  if (ok && beside && rename (r->temp, r->path) != 0)
    {
      ok = false;
      error = errno;
    }
  if (beside && ok)
    sync_folder (r->path);
  else if (beside)
    unlink (r->temp);
  errno = error;
  return ok;
}

bool
td__replace_file (const char *path, const void *data, size_t bytes)
{
  TdReplace r;

  return td__replace_begin (&r, path, 0666)
         && td__replace_end (&r, fwrite (data, 1, bytes, r.file) == bytes);
}

bool
td__stdout_end (void)
{
  const bool was_lost = ferror (stdout) != 0;

  if (fflush (stdout) != 0)
    return false;
  errno = EIO; /* which of the writes failed, and why, is not known any more */
  return !was_lost;
}
