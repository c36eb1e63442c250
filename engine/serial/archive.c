/* Lists of values in memory, and the way they get into a file: whole, or not at all.
 *
 * SPDX-License-Identifier: MIT */
#include "archive.h"

#include "../links/object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool
td__archive_add (TdArchive *archive, const char *key, const TdValue *value, const char **why)
{
  TdEntry *e;
  void *copy = NULL;

  if (value->kind != TD_VALUE_NONE)
    {
      copy = malloc (value->bytes + 1);
      *why = "no memory to copy it";
      if (copy == NULL)
        return false;
      memcpy (copy, value->data, value->bytes);
    }
  archive->entries
      = td__xrealloc (archive->entries, (size_t)(archive->n + 1) * sizeof *archive->entries);
  e = &archive->entries[archive->n++];
  e->key = td__xstrdup (key);
  e->value = *value;
  e->value.data = copy;
  return true;
}

void
td__archive_free (TdArchive *archive)
{
  if (archive == NULL)
    return;
  for (int i = 0; i < archive->n; i++)
    {
      free (archive->entries[i].key);
      free (archive->entries[i].value.data);
    }
  free (archive->entries);
  free (archive);
}

/* errno as text, from any thread. */
static bool
fail_errno (char *why, size_t size)
{
  char text[200];
  int error = errno;

  /* NOLINTNEXTLINE(concurrency-mt-unsafe): strerrordesc_np would need glibc 2.32 */
  snprintf (text, sizeof text, "%s", strerror (error));
  snprintf (why, size, "%s", text);
  return false;
}

static bool
write_open (const TdArchive *archive, FILE *file, TdFileFormat format, bool compress, char *why,
            size_t size)
{
  bool ok = format == TD_FILE_NPZ ? td__npz_write (archive, file, compress, why, size)
                                  : td__safetensors_write (archive, file, why, size);

  if (ok && (fflush (file) != 0 || fsync (fileno (file)) != 0))
    ok = fail_errno (why, size);
  return ok;
}

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
td__archive_write (const TdArchive *archive, const char *path, TdFileFormat format,
                   bool compress, char *why, size_t size)
{
  char temp[4096];
  int n = snprintf (temp, sizeof temp, "%s.XXXXXX", path), fd = -1;
  FILE *file;
  bool ok;

  errno = ENAMETOOLONG;
  if (n > 0 && (size_t)n < sizeof temp)
    fd = mkostemp (temp, O_CLOEXEC);
  if (fd < 0)
    return fail_errno (why, size);
  fchmod (fd, 0644);
  file = fdopen (fd, "wb");
  if (file == NULL)
    {
      ok = fail_errno (why, size);
      close (fd);
    }
  else
    {
      ok = write_open (archive, file, format, compress, why, size);
      if (fclose (file) != 0 && ok)
        ok = fail_errno (why, size);
    }
  if (ok && rename (temp, path) != 0)
    ok = fail_errno (why, size);
  if (ok)
    sync_folder (path);
  else
    unlink (temp);
  return ok;
}

TdArchiveSource *
td__archive_open (const char *path, TdFileFormat format, const char **why)
{
  return format == TD_FILE_NPZ ? td__npz_source (path, why)
                               : td__safetensors_source (path, why);
}
