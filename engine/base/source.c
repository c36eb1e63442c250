/* Plain and gzip files.  gzip (RFC 1952) goes through zlib where that was found.
 *
 * SPDX-License-Identifier: MIT */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef TD_WITH_ZLIB
#include <zlib.h>
#endif

enum
{
  CHUNK = 1 << 16,
  DEFLATE_MOST = 1032 /* bytes out of one byte of deflate; zlib's technical notes */
};

struct TdSource
{
  int fd;
  uint64_t file_bytes;
  bool gzip, ended;
#ifdef TD_WITH_ZLIB
  z_stream z;
  bool z_open;
  unsigned char room[CHUNK];
#endif
};

static bool
is_gzip (int fd)
{
  unsigned char magic[2];

  return pread (fd, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
}

static TdSource *
open_checked (int fd, const char **why)
{
  struct stat st;
  TdSource *s;

  if (fstat (fd, &st) != 0 || !S_ISREG (st.st_mode))
    {
      *why = "not a regular file";
      return NULL;
    }
  s = calloc (1, sizeof *s);
  *why = "no memory to read it";
  if (s == NULL)
    return NULL;
  s->fd = fd;
  s->file_bytes = (uint64_t)st.st_size;
  s->gzip = is_gzip (fd);
#ifdef TD_WITH_ZLIB
  s->z_open = s->gzip && inflateInit2 (&s->z, 15 + 16) == Z_OK;
  if (s->gzip == s->z_open)
    return s;
#else
  *why = "gzip, and this build has no zlib";
  if (!s->gzip)
    return s;
#endif
  free (s);
  return NULL;
}

TdSource *
td__source_open (const char *path, const char **why)
{
  int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  TdSource *s;

  if (fd < 0)
    {
      *why = strerror (errno); /* NOLINT(concurrency-mt-unsafe): the engine's one thread */
      return NULL;
    }
  s = open_checked (fd, why);
  if (s == NULL)
    close (fd);
  return s;
}

void
td__source_close (TdSource *s)
{
  if (s == NULL)
    return;
#ifdef TD_WITH_ZLIB
  if (s->z_open)
    inflateEnd (&s->z);
#endif
  close (s->fd);
  free (s);
}

static int64_t
read_plain (int fd, void *bytes, size_t n, const char **why)
{
  size_t done = 0;

  while (done < n)
    {
      ssize_t k = read (fd, (char *)bytes + done, n - done);

      if (k < 0 && errno == EINTR)
        continue;
      if (k < 0)
        {
          *why = strerror (errno); /* NOLINT(concurrency-mt-unsafe) */
          return -1;
        }
      if (k == 0)
        break;
      done += (size_t)k;
    }
  return (int64_t)done;
}

#ifdef TD_WITH_ZLIB
static int64_t
read_gzip (TdSource *s, void *bytes, size_t n, const char **why)
{
  size_t done = 0;

  while (done < n && !s->ended)
    {
      size_t want = n - done > CHUNK ? CHUNK : n - done;
      int status;

      if (s->z.avail_in == 0)
        {
          int64_t k = read_plain (s->fd, s->room, sizeof s->room, why);

          if (k < 0)
            return -1;
          s->z.next_in = s->room;
          s->z.avail_in = (unsigned)k;
        }
      s->z.next_out = (unsigned char *)bytes + done;
      s->z.avail_out = (unsigned)want;
      status = inflate (&s->z, Z_NO_FLUSH);
      done += want - s->z.avail_out;
      s->ended = status == Z_STREAM_END;
      if (status == Z_BUF_ERROR && s->z.avail_in == 0)
        {
          *why = "its gzip stream is cut off";
          return -1;
        }
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
        {
          *why = "its gzip stream is damaged";
          return -1;
        }
    }
  return (int64_t)done;
}
#endif

int64_t
td__source_read (TdSource *s, void *bytes, size_t n, const char **why)
{
#ifdef TD_WITH_ZLIB
  if (s->gzip)
    return read_gzip (s, bytes, n, why);
#endif
  return read_plain (s->fd, bytes, n, why);
}

uint64_t
td__source_most (const TdSource *s)
{
  return s->gzip ? s->file_bytes * DEFLATE_MOST : s->file_bytes;
}

void
td__source_progress (const TdSource *s, uint64_t *done, uint64_t *all)
{
  const off_t at = lseek (s->fd, 0, SEEK_CUR);

  *done = at > 0 ? (uint64_t)at : 0;
  *all = s->file_bytes;
}

bool
td__source_is_gzip (const TdSource *s)
{
  return s->gzip;
}
