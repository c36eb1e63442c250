/* Reads dependency files of the compiler that may be anything, as `tapedeck run` does when it
 * asks whether a compiled model is still fresh.
 * SPDX-License-Identifier: MIT */
#include "mutate.h"

#include FUZZ_SOURCE /* app/compile.c: its reader is static */

static const char good[] = "/tmp/x y/model: /tmp/x\\ y/model.c \\\n /usr/include/stdio.h \\\n"
                           " a$$b.h c\\#d.h \\\n  last.h\n\nlast.h:\n";

int
main (void)
{
  char path[64];
  uint8_t *bad = malloc (2 * sizeof good);
  int rounds = fuzz_rounds (400);

  snprintf (path, sizeof path, "/dev/shm/td-fuzz-d-%ld", (long)getpid ());
  for (int i = 0; i < rounds && bad != NULL; i++)
    {
      size_t n
          = fuzz_mutate ((const uint8_t *)good, sizeof good - 1, bad, 2 * sizeof good, false);

      fuzz_write (path, bad, n);
      if (is_fresh ("/bin/sh", path) && memchr (bad, '.', n) != NULL
          && memchr (bad, ':', n) == NULL)
        abort (); /* nothing called so is there */
    }
  unlink (path);
  free (bad);
  printf ("%d dependency files\n", rounds);
  return 0;
}

/* What compile.c needs of its program. */
bool
td_own_folder (char *out, unsigned long size)
{
  snprintf (out, size, "/nowhere");
  return true;
}

bool
td_cache_folder (const char *kind, uint64_t hash, char *out, unsigned long size)
{
  snprintf (out, size, "/nowhere/%s/%llx", kind, (unsigned long long)hash);
  return false;
}
