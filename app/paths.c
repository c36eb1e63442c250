/* Folders of the user: see paths.h.
 *
 * SPDX-License-Identifier: MIT */
#include "paths.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* mkdir -p with mode 0700 for what is new. */
static bool
make_folders (char *path, bool quiet)
{
  for (char *at = path + 1;; at++)
    {
      char old = *at;

      if (old != '/' && old != '\0')
        continue;
      *at = '\0';
      if (mkdir (path, 0700) != 0 && errno != EEXIST)
        {
          if (!quiet)
            fprintf (stderr, "tapedeck: %s: %s\n", path, strerror (errno));
          return false;
        }
      *at = old;
      if (old == '\0')
        return true;
    }
}

/* Somebody else's folder of that name in /tmp must get neither our sockets nor our programs. */
static bool
is_own_folder (const char *path, bool quiet)
{
  struct stat s;

  if (lstat (path, &s) == 0 && S_ISDIR (s.st_mode) && s.st_uid == getuid ())
    return true;
  if (!quiet)
    fprintf (stderr, "tapedeck: %s belongs to another user\n", path);
  return false;
}

/* A private folder for temporary files. */
static bool
temporary_folder (char *out, unsigned long size)
{
  snprintf (out, size, "/tmp/tapedeck-%ld", (long)getuid ());
  return make_folders (out, false) && is_own_folder (out, false);
}

bool
td_cache_folder (const char *kind, uint64_t hash, char *out, unsigned long size)
{
  const char *cache = getenv ("XDG_CACHE_HOME"), *home = getenv ("HOME");

  if (cache != NULL && cache[0] == '/')
    snprintf (out, size, "%s/tapedeck/%s/%016" PRIx64, cache, kind, hash);
  else if (home != NULL && home[0] == '/')
    snprintf (out, size, "%s/.cache/tapedeck/%s/%016" PRIx64, home, kind, hash);
  else
    {
      if (!temporary_folder (out, size))
        return false;
      snprintf (out, size, "/tmp/tapedeck-%ld/%s/%016" PRIx64, (long)getuid (), kind, hash);
    }
  return make_folders (out, false);
}

bool
td_runtime_folder (char *out, unsigned long size)
{
  const char *runtime = getenv ("XDG_RUNTIME_DIR");

  if (runtime != NULL && runtime[0] == '/' && strlen (runtime) < 70)
    {
      snprintf (out, size, "%s/tapedeck", runtime);
      if (make_folders (out, true) && is_own_folder (out, true) && access (out, W_OK) == 0)
        return true;
    }
  return temporary_folder (out, size); /* after su, and in containers, the other is not there */
}
