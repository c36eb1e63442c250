/* The budget of several recordings: see runs-budget.h.
 *
 * Each says in its ring how large its tape may become, and takes of what all the others leave
 * only its part, under a lock: however they come one after the other, the sum stays.  Some is
 * left for the ring of a run that begins.
 *
 * SPDX-License-Identifier: MIT */
#include "runs-budget.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct
{
  uint64_t others;  /* what they have, or may have */
  uint64_t beside;  /* our ring and logs */
  uint32_t running; /* with us */
} Count;

static uint64_t
size_of (int folder, const char *name)
{
  struct stat st;

  return fstatat (folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG (st.st_mode)
             ? (uint64_t)st.st_size
             : 0;
}

/* What the run of this ring has said that its tape may have; 0: it is over. */
static uint64_t
limit_of (int folder, const char *path, const char *ring)
{
  uint64_t limit = 0;
  int fd = td_ring_is_locked (path) ? openat (folder, ring, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
                                    : -1;

  if (fd < 0)
    return 0;
  if (pread (fd, &limit, sizeof limit, offsetof (TdRingShared, limit)) != sizeof limit
      || limit == 0)
    limit = 1;
  close (fd);
  return limit;
}

/* One folder.  Of our own ring nothing is opened: to close it would unlock it. */
static void
count (Count *c, int runs, const char *runs_path, const char *name, const char *tape, bool ours)
{
  char ring[NAME_MAX + 8], path[PATH_MAX + 2 * NAME_MAX];
  const int folder = openat (runs, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  uint64_t beside, bytes, limit;

  if (folder < 0)
    return;
  snprintf (ring, sizeof ring, "%s.ring", tape);
  if ((size_t)snprintf (path, sizeof path, "%s/%s/%s", runs_path, name, ring) >= sizeof path)
    {
      close (folder);
      return;
    }
  bytes = size_of (folder, tape);
  beside = size_of (folder, ring) + size_of (folder, "stdout.log")
           + size_of (folder, "stderr.log");
  limit = ours ? 0 : limit_of (folder, path, ring);
  if (ours)
    c->beside = beside;
  else
    c->others += beside + (limit > bytes ? limit : bytes);
  c->running += ours || limit > 0;
  close (folder);
}

static bool
count_all (Count *c, int runs, const char *runs_path, const char *own, const char *tape)
{
  const int again = dup (runs);
  DIR *dir = again >= 0 ? fdopendir (again) : NULL;
  const struct dirent *entry;

  if (dir == NULL)
    {
      if (again >= 0)
        close (again);
      return false;
    }
  rewinddir (dir);
  while ((entry = readdir (dir)) != NULL)
    if (entry->d_name[0] != '.')
      count (c, runs, runs_path, entry->d_name, tape, strcmp (entry->d_name, own) == 0);
  closedir (dir);
  return true;
}

uint64_t
td_runs_budget_share (const char *tape, uint64_t budget, TdRing *ring, uint64_t bytes)
{
  char path[PATH_MAX], *name, *own;
  const uint64_t left = budget / 8 < ring->mapped ? budget / 8 : ring->mapped;
  uint64_t share = bytes > TD_RUNS_BUDGET_LEAST ? bytes : TD_RUNS_BUDGET_LEAST, taken;
  Count c = { 0 };
  int runs;

  if (realpath (tape, path) == NULL || (name = strrchr (path, '/')) == NULL || name == path)
    return share;
  *name++ = '\0';
  own = strrchr (path, '/');
  *own++ = '\0';
  runs = open (*path != '\0' ? path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (runs < 0)
    return share;
  if (flock (runs, LOCK_EX) == 0 && count_all (&c, runs, path, own, name))
    {
      taken = c.others + c.beside + left;
      if (taken < budget && budget - taken > share)
        share += (budget - taken - share) / (c.running > 0 ? c.running : 1);
      atomic_store (&ring->shared->limit, share);
    }
  close (runs); /* and unlocks it */
  return share;
}
