/* The ring's file: one run at a time has it, and it may be cut short by anybody who can name
 * it.
 *
 * The lock is a record lock of fcntl: it belongs to this process and not to the model, which
 * inherits the descriptor, and the kernel takes it back however the process ends.  A file that
 * a dead run has left is nobody's.  SPDX-License-Identifier: MIT */
#include "ring.h"

#include "td-tape-writer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------------------- one run */

/* The run before may have removed the file between our open and our lock. */
static bool
is_still_named (const char *path, int fd)
{
  struct stat named, opened;

  return stat (path, &named) == 0 && fstat (fd, &opened) == 0 && named.st_ino == opened.st_ino
         && named.st_dev == opened.st_dev;
}

int
td_ring_lock (const char *path, char *error, size_t n)
{
  for (;;)
    {
      int fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

      if (fd < 0)
        snprintf (error, n, "cannot make the ring: %s", strerror (errno));
      else if (!td_tape_lock (fd))
        {
          snprintf (error, n, TD_TAPE_TAKEN);
          close (fd);
          fd = -1;
        }
      else if (!is_still_named (path, fd))
        {
          close (fd);
          continue;
        }
      return fd;
    }
}

bool
td_ring_is_locked (const char *path)
{
  struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
  int fd = open (path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  bool locked = fd >= 0 && fcntl (fd, F_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;

  if (fd >= 0)
    close (fd);
  return locked;
}

void
td_ring_unlock (const char *path, int fd)
{
  struct stat st;

  if (fstat (fd, &st) == 0 && st.st_size == 0)
    unlink (path);
  close (fd);
}

/* A file of our own in the place of one that a dead run has left: its model may still live, and
 * have it mapped. */
static int
replace_left_over (const char *path, int old)
{
  char beside[4300];
  int fd;

  snprintf (beside, sizeof beside, "%s.%ld", path, (long)getpid ());
  fd = open (beside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0 && (!td_tape_lock (fd) || rename (beside, path) != 0))
    {
      close (fd);
      unlink (beside);
      fd = -1;
    }
  close (old); /* and whoever waits for that one sees that it has no name any more */
  return fd;
}

TdRing *
td_ring_new_locked (const char *path, int fd, const TdRingOptions *options, char *error,
                    size_t n)
{
  struct stat st;
  TdRing *ring;

  if (fstat (fd, &st) != 0 || st.st_size != 0)
    fd = replace_left_over (path, fd);
  if (fd < 0)
    {
      snprintf (error, n, "cannot make the ring: %s", strerror (errno));
      return NULL;
    }
  ring = td_ring_new_fd (fd, options, error, n);
  if (ring == NULL)
    unlink (path);
  return ring;
}

TdRing *
td_ring_new_nameless (const TdRingOptions *options, char *error, size_t n)
{
  int fd = memfd_create ("tapedeck-ring", MFD_CLOEXEC);

  if (fd < 0)
    {
      snprintf (error, n, "cannot make the ring: %s", strerror (errno));
      return NULL;
    }
  return td_ring_new_fd (fd, options, error, n);
}

/* ---------------------------------------------------------------------------- cut short */

static TdRing *guarded;
static struct sigaction before;

/* A page of the ring is gone with the end of its file: go on with memory that nobody else sees.
 * All else that raises SIGBUS goes its way, as it would without us. */
static void
page_is_gone (int number, siginfo_t *info, void *unused)
{
  TdRing *ring = guarded;
  const char *at = info->si_addr, *start = ring != NULL ? (const char *)ring->shared : NULL;

  (void)unused;
  if (info->si_code > 0 && start != NULL && at >= start && at < start + ring->mapped
      && mmap (ring->shared, ring->mapped, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)
             != MAP_FAILED)
    {
      ring->dead = ring->cut = true;
      ring->limit = 0;
      return;
    }
  sigaction (SIGBUS, &before, NULL);
  if (info->si_code <= 0)
    raise (number);
}

void
td_ring_guard (TdRing *ring)
{
  struct sigaction action = { .sa_sigaction = page_is_gone, .sa_flags = SA_SIGINFO };

  guarded = ring;
  sigemptyset (&action.sa_mask);
  sigaction (SIGBUS, &action, &before);
}

void
td__ring_unguard (TdRing *ring)
{
  struct sigaction now;

  if (guarded != ring)
    return;
  guarded = NULL;
  if (sigaction (SIGBUS, NULL, &now) == 0 && now.sa_sigaction == page_is_gone)
    sigaction (SIGBUS, &before, NULL);
}

bool
td_ring_is_cut (TdRing *ring)
{
  struct stat st;

  if (!ring->cut && ring->fd >= 0 && fstat (ring->fd, &st) == 0
      && st.st_size < (off_t)ring->mapped)
    ring->cut = true;
  return ring->cut;
}

void
td_ring_abandon (TdRing *ring)
{
  atomic_store (&ring->shared->consumer_pid, TD_RING_NO_MORE);
}
