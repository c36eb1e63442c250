/* The writer's file: opened, locked and only then emptied; and whether somebody else has
 * changed it since.
 *
 * The lock is a record lock of fcntl, as the ring's: the kernel takes it back however the
 * process ends.  SPDX-License-Identifier: MIT */
#include "writer-private.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRITTEN_TO "somebody else wrote to the tape while it was recorded"

/* ------------------------------------------------------------------------ opening */

bool
td_tape_lock (int fd)
{
  struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

  /* File systems without locks say something else than these two: there a run is let in. */
  return fcntl (fd, F_SETLK, &whole) == 0 || (errno != EAGAIN && errno != EACCES);
}

/* Is it an older recording, or nothing yet?  What else there is was never meant to be written
 * over. */
static bool
is_tape (int fd)
{
  char magic[sizeof TD_TAPE_MAGIC];
  const ssize_t n = pread (fd, magic, sizeof magic - 1, 0);

  return n >= 0 && memcmp (magic, TD_TAPE_MAGIC, (size_t)n) == 0;
}

bool
td_tape_may_replace (const char *path, char *error, size_t n)
{
  const int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  bool may = fd < 0 || is_tape (fd);

  if (!may)
    snprintf (error, n, "%s", TD_TAPE_NO_TAPE);
  if (fd >= 0)
    close (fd);
  return may;
}

/* What another recorder writes is not touched. */
static bool
make_empty (int fd, char *error, size_t n)
{
  if (!td_tape_lock (fd))
    snprintf (error, n, "%s", TD_TAPE_TAKEN);
  else if (!is_tape (fd))
    snprintf (error, n, "%s", TD_TAPE_NO_TAPE);
  else if (ftruncate (fd, 0) != 0)
    snprintf (error, n, "%s", strerror (errno));
  else
    return true;
  return false;
}

/* What a recording shows is its owner's: others read it when they are let. */
int
td__tape_open (const char *path, bool overwrite, char *error, size_t n)
{
  const int flags = O_RDWR | O_CREAT | O_CLOEXEC | (overwrite ? 0 : O_EXCL);
  struct stat s;
  int fd;

  if (overwrite && stat (path, &s) == 0 && !S_ISREG (s.st_mode))
    {
      snprintf (error, n, "it is no file that could be written over");
      return -1;
    }
  fd = open (path, flags, 0600);
  if (fd < 0)
    snprintf (error, n, errno == EEXIST ? "exists; will not write over it" : "%s",
              strerror (errno));
  else if (!make_empty (fd, error, n))
    {
      close (fd);
      fd = -1;
    }
  return fd;
}

/* ------------------------------------------------------------------------ somebody else */

void
td__tape_wrote (TdTapeWriter *w, uint64_t offset, const void *bytes, size_t n)
{
  const uint8_t *b = bytes;
  TapeLast *last = &w->last;
  const uint64_t stop = offset + n, last_stop = last->offset + last->n;

  if (stop > w->end)
    w->end = stop;
  if (stop <= last->offset)
    return;
  if (stop < last_stop) /* written over from its start, or within */
    {
      const uint64_t from = offset > last->offset ? offset : last->offset;

      memcpy (last->bytes + (from - last->offset), b + (from - offset), stop - from);
      return;
    }
  while (n > 0 && b[n - 1] == 0)
    n--;
  if (n == 0) /* what lies before it is not known any more */
    {
      if (offset < last_stop)
        last->n = 0;
      return;
    }
  last->n = n < sizeof last->bytes ? (uint32_t)n : sizeof last->bytes;
  last->offset = offset + n - last->n;
  memcpy (last->bytes, b + n - last->n, last->n);
}

static bool
has (const TdTapeWriter *w, uint64_t offset, const void *bytes, size_t n)
{
  uint8_t there[sizeof (TdTapeHeader)];

  return n <= sizeof there && pread (w->fd, there, n, (off_t)offset) == (ssize_t)n
         && memcmp (there, bytes, n) == 0;
}

/* The name of the recording, the state that was written last, and the end of the file: who
 * replaces the file in place changes the first two, who cuts it the last one. */
static bool
is_as_written (const TdTapeWriter *w)
{
  uint8_t head[TD_TAPE_STATE_OFFSET + sizeof w->written];

  return pread (w->fd, head, sizeof head, 0) == (ssize_t)sizeof head
         && memcmp (head, &w->header, sizeof w->header) == 0
         && (w->written.n_changes == 0
             || memcmp (head + TD_TAPE_STATE_OFFSET, &w->written, sizeof w->written) == 0)
         && has (w, w->last.offset, w->last.bytes, w->last.n);
}

static void
lose (TdTapeWriter *w, const char *why)
{
  w->lost = true;
  if (!w->failed)
    snprintf (w->error, sizeof w->error, "%s", why);
  w->failed = true;
}

bool
td__tape_is_ours (TdTapeWriter *w)
{
  struct stat s;
  char text[100];

  if (w->lost || w->end == 0 || fstat (w->fd, &s) != 0)
    return !w->lost;
  if ((uint64_t)s.st_size < w->end)
    {
      snprintf (text, sizeof text, "the tape was cut to %lld bytes while it was recorded",
                (long long)s.st_size);
      lose (w, text);
    }
  else if (!is_as_written (w))
    lose (w, WRITTEN_TO);
  else if (s.st_nlink == 0 && !w->failed) /* who has it open still reads it */
    {
      w->failed = true;
      snprintf (w->error, sizeof w->error, "the tape was deleted while it was recorded");
    }
  return !w->lost;
}

/* A hole that was written on behind has heads of segments in it that are gone. */
void
td__tape_look_at_all (TdTapeWriter *w)
{
  if (!td__tape_is_ours (w))
    return;
  for (uint32_t i = 0; i < w->n_slots; i++)
    if (!has (w, w->slots[i].offset, &w->slots[i].head, offsetof (TdTapeSegment, crc)))
      {
        lose (w, WRITTEN_TO);
        return;
      }
}

bool
td_tape_writer_lost (TdTapeWriter *w)
{
  return !td__tape_is_ours (w);
}
