/* Folders of the user: see paths.h.
 *
 * SPDX-License-Identifier: MIT */
#include "paths.h"

#include "runtime-folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool
complain (const char *folder, const char *why)
{
  fprintf (stderr, "tapedeck: %s: %s\n", folder, why);
  return false;
}

bool
td_cache_folder (const char *kind, uint64_t hash, char *out, unsigned long size)
{
  const char *cache = getenv ("XDG_CACHE_HOME"), *home = getenv ("HOME"), *why;
  size_t n;

  if (cache != NULL && cache[0] == '/')
    snprintf (out, size, "%s/tapedeck/%s/%016" PRIx64, cache, kind, hash);
  else if (home != NULL && home[0] == '/')
    snprintf (out, size, "%s/.cache/tapedeck/%s/%016" PRIx64, home, kind, hash);
  else
    {
      if (!td__temporary_folder (out, size, &why))
        return complain (out, why);
      n = strlen (out);
      snprintf (out + n, size - n, "/%s/%016" PRIx64, kind, hash);
    }
  return td__make_folders (out) || complain (out, strerror (errno));
}

bool
td_runtime_folder (char *out, unsigned long size)
{
  const char *why;

  return td__runtime_folder (out, size, &why) || complain (out, why);
}
