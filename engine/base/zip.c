/* Reading and writing zip files (PKWARE APPNOTE 6.3, sections 4.3.7, 4.3.12 and 4.3.16).
 *
 * SPDX-License-Identifier: MIT */
#include "zip.h"

#include "host-memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef TD_WITH_ZLIB
#include <zlib.h>
#endif

enum
{
  LOCAL_BYTES = 30,
  CENTRAL_BYTES = 46,
  END_BYTES = 22,
  STORED = 0,
  DEFLATED = 8,
  DEFLATE_MOST = 1032,
  MEMBERS_MOST = 1 << 16
};

static uint32_t
get16 (const unsigned char *p)
{
  return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t
get32 (const unsigned char *p)
{
  return get16 (p) | get16 (p + 2) << 16;
}

static void
put (unsigned char *p, uint64_t value, int bytes)
{
  for (int i = 0; i < bytes; i++)
    p[i] = (unsigned char)(value >> (8 * i));
}

static uint32_t crc_table[256];

static void
make_crc_table (void)
{
  for (uint32_t i = 0; i < 256; i++)
    {
      uint32_t c = i;

      for (int k = 0; k < 8; k++)
        c = (c >> 1) ^ (c & 1 ? 0xedb88320u : 0);
      crc_table[i] = c;
    }
}

static uint32_t
crc_of (const void *data, size_t bytes)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT; /* snapshots are written by other threads */
  const unsigned char *p = data;
  uint32_t crc = 0xffffffffu;

  pthread_once (&once, make_crc_table);
  for (size_t i = 0; i < bytes; i++)
    crc = (crc >> 8) ^ crc_table[(crc ^ p[i]) & 0xff];
  return ~crc;
}

/* --- reading --- */

static bool
read_at (const TdZip *zip, void *data, uint64_t bytes, uint64_t offset)
{
  uint64_t done = 0;

  if (offset > zip->file_bytes || bytes > zip->file_bytes - offset)
    return false;
  while (done < bytes)
    {
      ssize_t k = pread (zip->fd, (char *)data + done, bytes - done, (off_t)(offset + done));

      if (k < 0 && errno == EINTR)
        continue;
      if (k <= 0)
        return false;
      done += (uint64_t)k;
    }
  return true;
}

/* The end record lies in the last 64 KiB, behind it only a comment. */
static bool
find_end (const TdZip *zip, unsigned char *end)
{
  uint64_t tail = zip->file_bytes < 65535 + END_BYTES ? zip->file_bytes : 65535 + END_BYTES;
  unsigned char *room = malloc (tail + 1);
  bool found = false;

  if (room != NULL && tail >= END_BYTES && read_at (zip, room, tail, zip->file_bytes - tail))
    for (uint64_t i = tail - END_BYTES + 1; i > 0 && !found; i--)
      if (get32 (room + i - 1) == 0x06054b50)
        {
          memcpy (end, room + i - 1, END_BYTES);
          found = true;
        }
  free (room);
  return found;
}

static bool
parse_member (const TdZip *zip, const unsigned char *p, uint64_t left, TdZipMember *m,
              uint64_t *used)
{
  uint64_t name_bytes;

  if (left < CENTRAL_BYTES || get32 (p) != 0x02014b50)
    return false;
  name_bytes = get16 (p + 28);
  *used = CENTRAL_BYTES + name_bytes + get16 (p + 30) + get16 (p + 32);
  if (*used > left || memchr (p + CENTRAL_BYTES, 0, name_bytes) != NULL)
    return false;
  m->method = (uint16_t)get16 (p + 10);
  m->crc = get32 (p + 16);
  m->packed_bytes = get32 (p + 20);
  m->bytes = get32 (p + 24);
  m->header_offset = get32 (p + 42);
  if (m->packed_bytes > zip->file_bytes || m->header_offset > zip->file_bytes)
    return false;
  m->name = strndup ((const char *)p + CENTRAL_BYTES, name_bytes);
  return m->name != NULL;
}

static bool
read_directory (TdZip *zip, const unsigned char *end, const char **why)
{
  uint64_t n = get16 (end + 10), bytes = get32 (end + 12), offset = get32 (end + 16), at = 0;
  unsigned char *directory;

  if (n == 0xffff || bytes == 0xffffffffu || offset == 0xffffffffu)
    {
      *why = "a zip64 file, which is not read here";
      return false;
    }
  *why = "its directory is damaged or cut off";
  if (offset > zip->file_bytes || bytes > zip->file_bytes - offset || n * CENTRAL_BYTES > bytes)
    return false;
  directory = malloc (bytes + 1);
  zip->members = calloc (n + 1, sizeof *zip->members);
  if (directory == NULL || zip->members == NULL || !read_at (zip, directory, bytes, offset))
    {
      free (directory);
      return false;
    }
  for (uint64_t i = 0; i < n; i++)
    {
      uint64_t used = 0;

      if (!parse_member (zip, directory + at, bytes - at, &zip->members[i], &used))
        break;
      zip->n_members++;
      at += used;
    }
  free (directory);
  return (uint64_t)zip->n_members == n;
}

TdZip *
td__zip_open (const char *path, const char **why)
{
  unsigned char end[END_BYTES];
  struct stat st;
  TdZip *zip = calloc (1, sizeof *zip);

  *why = "no memory for it";
  if (zip == NULL)
    return NULL;
  zip->fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (zip->fd < 0)
    *why
        = strerror (errno); /* NOLINT(concurrency-mt-unsafe): its text is a constant in glibc */
  else if (fstat (zip->fd, &st) != 0 || !S_ISREG (st.st_mode))
    *why = "not a regular file";
  else
    {
      zip->file_bytes = (uint64_t)st.st_size;
      *why = "not an npz file, or cut off: it has no zip directory at its end";
      if (find_end (zip, end) && read_directory (zip, end, why))
        return zip;
    }
  td__zip_close (zip);
  return NULL;
}

void
td__zip_close (TdZip *zip)
{
  if (zip == NULL)
    return;
  for (int i = 0; i < zip->n_members; i++)
    free (zip->members[i].name);
  free (zip->members);
  if (zip->fd >= 0)
    close (zip->fd);
  free (zip);
}

const TdZipMember *
td__zip_find (const TdZip *zip, const char *name)
{
  for (int i = 0; i < zip->n_members; i++)
    if (strcmp (zip->members[i].name, name) == 0)
      return &zip->members[i];
  return NULL;
}

/* Unpack all of it, into exactly the bytes that the directory promises. */
static bool
unpack (const TdZipMember *m, const unsigned char *packed, unsigned char *data)
{
#ifdef TD_WITH_ZLIB
  z_stream z = { .next_in = (unsigned char *)(uintptr_t)packed,
                 .avail_in = (unsigned)m->packed_bytes,
                 .next_out = data,
                 .avail_out = (unsigned)m->bytes };
  bool whole;

  if (inflateInit2 (&z, -15) != Z_OK)
    return false;
  whole = inflate (&z, Z_FINISH) == Z_STREAM_END && z.total_out == m->bytes;
  inflateEnd (&z);
  return whole;
#else
  (void)m, (void)packed, (void)data;
  return false;
#endif
}

static bool
method_ok (const TdZipMember *m, const char **why)
{
  if (m->method == STORED && m->packed_bytes == m->bytes)
    return true;
  *why = "it is packed by a method other than stored and deflated, or its sizes disagree";
  if (m->method != DEFLATED || m->bytes / DEFLATE_MOST > m->packed_bytes + 1)
    return false;
#ifdef TD_WITH_ZLIB
  return true;
#else
  *why = "it is deflated, and this build has no zlib";
  return false;
#endif
}

void *
td__zip_read (const TdZip *zip, const TdZipMember *m, const char **why)
{
  unsigned char head[LOCAL_BYTES], *packed, *data = NULL;
  uint64_t at;
  bool ok;

  if (!method_ok (m, why))
    return NULL;
  *why = "it is damaged or cut off";
  if (!read_at (zip, head, LOCAL_BYTES, m->header_offset) || get32 (head) != 0x04034b50)
    return NULL;
  at = m->header_offset + LOCAL_BYTES + get16 (head + 26) + get16 (head + 28);
  if (at > zip->file_bytes || m->packed_bytes > zip->file_bytes - at)
    return NULL;
  packed = malloc (m->packed_bytes + 1);
  ok = packed != NULL && read_at (zip, packed, m->packed_bytes, at);
  if (ok && m->method == STORED)
    {
      data = packed;
      packed = NULL;
    }
  else if (ok)
    {
      data = malloc (m->bytes + 1);
      ok = data != NULL && unpack (m, packed, data);
    }
  free (packed);
  if (ok && crc_of (data, m->bytes) == m->crc)
    return data;
  free (data);
  return NULL;
}

/* --- writing --- */

/* Local and central headers begin alike, from "version needed" to the extra field's length. */
static void
put_common (unsigned char *p, const TdZipMember *m)
{
  put (p, 20, 2);
  put (p + 2, 0, 2);
  put (p + 4, m->method, 2);
  put (p + 6, 0, 2);
  put (p + 8, 0x21, 2); /* 1980-01-01: the same bytes for the same weights */
  put (p + 10, m->crc, 4);
  put (p + 14, m->packed_bytes, 4);
  put (p + 18, m->bytes, 4);
  put (p + 22, strlen (m->name), 2);
  put (p + 24, 0, 2);
}

static void *
pack (const void *data, size_t bytes, bool compress, TdZipMember *m)
{
#ifdef TD_WITH_ZLIB
  size_t room = bytes + bytes / 1000 + 64;
  unsigned char *packed = compress ? malloc (room) : NULL;
  z_stream z = { .next_in = (unsigned char *)(uintptr_t)data,
                 .avail_in = (unsigned)bytes,
                 .next_out = packed,
                 .avail_out = (unsigned)room };

  if (packed != NULL && deflateInit2 (&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK)
    {
      bool whole = deflate (&z, Z_FINISH) == Z_STREAM_END;

      deflateEnd (&z);
      if (whole && z.total_out < bytes)
        {
          m->method = DEFLATED;
          m->packed_bytes = z.total_out;
          return packed;
        }
    }
  free (packed);
#else
  (void)data, (void)compress;
#endif
  m->method = STORED;
  m->packed_bytes = bytes;
  return NULL;
}

bool
td__zip_add (TdZipWriter *w, const char *name, const void *data, size_t bytes, bool compress,
             const char **why)
{
  TdZipMember m = { .bytes = bytes, .crc = crc_of (data, bytes) };
  unsigned char head[LOCAL_BYTES];
  void *packed;
  bool ok;

  *why = "its name is too long for an npz file";
  if (strlen (name) > 0xffff)
    return false;
  *why = "more than an npz file without zip64 can hold";
  if (bytes > 0xfffffff0u || w->bytes + bytes > 0xfffffff0u || w->n_members >= MEMBERS_MOST - 2)
    return false;
  m.name = td__xstrdup (name);
  m.header_offset = w->bytes;
  packed = pack (data, bytes, compress, &m);
  put (head, 0x04034b50, 4);
  put_common (head + 4, &m);
  *why = "cannot be written";
  ok = fwrite (head, sizeof head, 1, w->file) == 1 && fputs (name, w->file) >= 0
       && (m.packed_bytes == 0
           || fwrite (packed != NULL ? packed : data, m.packed_bytes, 1, w->file) == 1);
  free (packed);
  w->bytes += sizeof head + strlen (name) + m.packed_bytes;
  w->members = td__xrealloc (w->members, (size_t)(w->n_members + 1) * sizeof *w->members);
  w->members[w->n_members++] = m;
  return ok;
}

bool
td__zip_finish (TdZipWriter *w, const char **why)
{
  const uint64_t start = w->bytes;
  unsigned char end[END_BYTES] = { 0 };

  *why = "cannot be written";
  for (int i = 0; i < w->n_members; i++)
    {
      const TdZipMember *m = &w->members[i];
      unsigned char head[CENTRAL_BYTES] = { 0 };

      put (head, 0x02014b50, 4);
      put (head + 4, 20, 2);
      put_common (head + 6, m);
      put (head + 42, m->header_offset, 4);
      if (fwrite (head, sizeof head, 1, w->file) != 1 || fputs (m->name, w->file) < 0)
        return false;
      w->bytes += sizeof head + strlen (m->name);
    }
  *why = "more than an npz file without zip64 can hold";
  if (w->bytes > 0xfffffff0u)
    return false;
  *why = "cannot be written";
  put (end, 0x06054b50, 4);
  put (end + 8, (uint64_t)w->n_members, 2);
  put (end + 10, (uint64_t)w->n_members, 2);
  put (end + 12, w->bytes - start, 4);
  put (end + 16, start, 4);
  return fwrite (end, sizeof end, 1, w->file) == 1;
}

void
td__zip_writer_clear (TdZipWriter *w)
{
  for (int i = 0; i < w->n_members; i++)
    free (w->members[i].name);
  free (w->members);
}
