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
make_folders (char *path)
{
  for (char *at = path + 1;; at++)
    {
      char old = *at;

      if (old != '/' && old != '\0')
        continue;
      *at = '\0';
      if (mkdir (path, 0700) != 0 && errno != EEXIST)
        {
          fprintf (stderr, "tapedeck: %s: %s\n", path, strerror (errno));
          return false;
        }
      *at = old;
      if (old == '\0')
        return true;
    }
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
    snprintf (out, size, "/tmp/tapedeck-%ld/%s/%016" PRIx64, (long)getuid (), kind, hash);
  return make_folders (out);
}

bool
td_runtime_folder (char *out, unsigned long size)
{
  const char *runtime = getenv ("XDG_RUNTIME_DIR");
  struct stat s;

  if (runtime != NULL && runtime[0] == '/' && strlen (runtime) < 70)
    snprintf (out, size, "%s/tapedeck", runtime);
  else
    snprintf (out, size, "/tmp/tapedeck-%ld", (long)getuid ());
  if (!make_folders (out))
    return false;
  /* Somebody else's folder of that name in /tmp must not get our sockets. */
  if (lstat (out, &s) != 0 || !S_ISDIR (s.st_mode) || s.st_uid != getuid ())
    {
      fprintf (stderr, "tapedeck: %s belongs to another user\n", out);
      return false;
    }
  return true;
}
