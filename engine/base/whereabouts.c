/* Where the ranks of a run are: see whereabouts.h.  SPDX-License-Identifier: MIT */
#include "whereabouts.h"

#include "runtime-folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A number of the environment; -1: none. */
static int
number_of (const char *name)
{
  const char *text = getenv (name);
  char *end;
  const long n = text != NULL ? strtol (text, &end, 10) : -1;

  return text != NULL && end != text && *end == '\0' && n >= 0 && n < INT_MAX ? (int)n : -1;
}

bool
td__where_rank (int *rank, int *n)
{
  *rank = number_of ("OMPI_COMM_WORLD_RANK");
  *n = number_of ("OMPI_COMM_WORLD_SIZE");
  return *n > 1 && *rank >= 0 && *rank < *n;
}

int64_t
td__where_now (void)
{
  struct timespec t;

  clock_gettime (CLOCK_REALTIME, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* What is the same for all processes of one mpirun on a machine, and for no other's; the first
 * two also on several machines. */
static const char *const run_names[]
    = { "PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri", "PMIX_SERVER_URI2", "PMIX_SERVER_URI21",
        "PMIX_SERVER_URI41" };

static uint64_t
hash_of_run (size_t n_names)
{
  uint64_t hash = 14695981039346656037u;

  for (size_t i = 0; i < n_names; i++)
    for (const char *text = getenv (run_names[i]); text != NULL && *text != '\0'; text++)
      hash = (hash ^ (unsigned char)*text) * 1099511628211u;
  return hash;
}

void
td__where_run (char *text, size_t size)
{
  snprintf (text, size, "%016" PRIx64, hash_of_run (2));
}

static bool
usual_path (char *path, size_t size)
{
  const uint64_t hash = hash_of_run (sizeof run_names / sizeof *run_names);
  char folder[4096];
  const char *why;
  if (!td__runtime_folder (folder, sizeof folder, &why))
    return false;
  snprintf (path, size, "%.4000s/%016" PRIx64 ".ranks", folder, hash);
  return true;
}

bool
td__where_open (TdWhere *w, int rank, int n, bool first)
{
  const char *given = getenv (TD_WHERE_VARIABLE);
  char path[4200];

  *w = (TdWhere){ .rank = rank, .n = n };
  if (given != NULL && *given != '\0')
    return td__where_open_at (w, given, rank, n, first);
  return usual_path (path, sizeof path) && td__where_open_at (w, path, rank, n, first);
}

/* Its blocks are taken at once: a page that a full disk has no room for would be a signal. */
static char *
map_pages (const char *path, size_t bytes)
{
  const int fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  void *pages = MAP_FAILED;
  struct stat st;

  if (fd < 0)
    return NULL;
  if (fstat (fd, &st) == 0 && S_ISREG (st.st_mode)
      && posix_fallocate (fd, 0, (off_t)bytes) == 0)
    pages = mmap (NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close (fd);
  return pages != MAP_FAILED ? pages : NULL;
}

static size_t
file_bytes (int n)
{
  return (size_t)n * TD_WHERE_PAGE + TD_WHERE_ALIKE;
}

bool
td__where_open_at (TdWhere *w, const char *path, int rank, int n, bool first)
{
  TdWherePage *page;

  *w = (TdWhere){ .rank = rank, .n = n };
  if ((size_t)snprintf (w->path, sizeof w->path, "%s", path) >= sizeof w->path)
    return false;
  if (gethostname (w->host, sizeof w->host - 1) != 0)
    w->host[0] = '\0';
  w->pages = map_pages (path, file_bytes (n));
  if (w->pages == NULL || rank < 0)
    return w->pages != NULL;
  page = td__where_page (w, rank);
  if (first)
    memset (page, 0, sizeof *page);
  page->abi = TD_WHERE_ABI;
  memcpy (page->host, w->host, sizeof page->host);
  return true;
}

void
td__where_close (TdWhere *w)
{
  if (w->pages != NULL)
    munmap (w->pages, file_bytes (w->n));
  w->pages = NULL;
}

TdWherePage *
td__where_page (const TdWhere *w, int rank)
{
  return (TdWherePage *)(void *)(w->pages + (size_t)rank * TD_WHERE_PAGE);
}

bool
td__where_stands (const TdWhere *w)
{
  for (int r = 0; w->pages != NULL && r < w->n; r++)
    if (atomic_load (&td__where_page (w, r)->stands)
        && !atomic_load (&td__where_page (w, r)->ended))
      return true;
  return false;
}

bool
td__where_is_here (const TdWhere *w, const TdWherePage *p)
{
  return strcmp (p->host, w->host) == 0;
}

/* Gone without a word, and nobody supervised it. */
static bool
has_vanished (const TdWhere *w, const TdWherePage *p)
{
  const int pid = atomic_load (&p->pid);

  return pid > 0 && td__where_is_here (w, p) && strcmp (p->call, "td_finish") != 0
         && kill (pid, 0) != 0 && errno == ESRCH;
}

/* Where mpirun has ended others: who ended by itself, and well, but not by td_finish, which all
 * ranks meet in. */
static int
find_left (const TdWhere *w)
{
  bool told = false;
  int left = -1;

  for (int r = 0; w->pages != NULL && r < w->n; r++)
    {
      const TdWherePage *p = td__where_page (w, r);

      told = told || atomic_load (&p->told);
      if (left < 0 && atomic_load (&p->ended) && !atomic_load (&p->told) && p->call[0] != '\0'
          && strcmp (p->call, "td_finish") != 0)
        left = r;
    }
  return told ? left : -1;
}

int
td__where_culprit (const TdWhere *w)
{
  for (int r = 0; w->pages != NULL && r < w->n; r++)
    {
      const TdWherePage *p = td__where_page (w, r);

      if (atomic_load (&p->told))
        continue;
      if (atomic_load (&p->ended) ? p->signal != 0 || p->status != 0 : has_vanished (w, p))
        return r;
    }
  return find_left (w);
}
