/* Files of the disk cache: $TAPEDECK_CUDA_CACHE (a folder, or "off"), else
 * $XDG_CACHE_HOME/tapedeck/cuda, else ~/.cache/tapedeck/cuda.
 *
 * SPDX-License-Identifier: MIT */
#include "disk-cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "TDCACHE1"

enum
{
  HEAD = 24,
  MAX_KEY = 1 << 20,
  MAX_VALUE = 64 << 20,
  MAX_PATH = 4096
};

uint64_t
td_cuda_cache_hash (uint64_t hash, const void *bytes, size_t n)
{
  const unsigned char *b = bytes;

  for (size_t i = 0; i < n; i++)
    hash = (hash ^ b[i]) * 1099511628211u;
  return hash;
}

static uint64_t
number_at (const unsigned char *b, int n)
{
  uint64_t v = 0;

  while (n-- > 0)
    v = v << 8 | b[n];
  return v;
}

static void
number_put (unsigned char *b, int n, uint64_t v)
{
  for (int i = 0; i < n; i++)
    b[i] = (unsigned char)(v >> 8 * i);
}

const char *
td_cuda_cache_parse (const void *file, size_t bytes, const void *key, size_t key_bytes,
                     const void **value, size_t *value_bytes)
{
  const unsigned char *b = file;
  uint64_t n_key, n_value;

  *value = NULL;
  *value_bytes = 0;
  if (bytes < HEAD || memcmp (b, MAGIC, 8) != 0)
    return "it does not begin as such a file does";
  n_key = number_at (b + 8, 4);
  n_value = number_at (b + 12, 4);
  if (n_key > MAX_KEY || n_value > MAX_VALUE || HEAD + n_key + n_value != bytes)
    return "its sizes do not add up";
  if (td_cuda_cache_hash (TD_CACHE_HASH, b + HEAD, bytes - HEAD) != number_at (b + 16, 8))
    return "its checksum is wrong";
  if (n_key != key_bytes || memcmp (b + HEAD, key, key_bytes) != 0)
    return NULL;
  *value = b + HEAD + n_key;
  *value_bytes = (size_t)n_value;
  return NULL;
}

/* --- files --- */

/* FOLDER or FOLDER/rest, made if need be.  Returns false where there is to be none. */
static bool
folder_of (char *path, size_t room)
{
  const char *given = getenv ("TAPEDECK_CUDA_CACHE"), *base = getenv ("XDG_CACHE_HOME");
  const char *home = getenv ("HOME");
  int n;

  if (given != NULL && given[0] != '\0')
    n = strcmp (given, "off") == 0 ? -1 : snprintf (path, room, "%s", given);
  else if (base != NULL && base[0] == '/')
    n = snprintf (path, room, "%s/tapedeck/cuda", base);
  else if (home != NULL && home[0] == '/')
    n = snprintf (path, room, "%s/.cache/tapedeck/cuda", home);
  else
    return false;
  return n > 0 && (size_t)n < room;
}

static bool
path_of (char *path, size_t room, const char *kind, const void *key, size_t key_bytes)
{
  size_t n;

  if (!folder_of (path, room))
    return false;
  n = strlen (path);
  return (size_t)snprintf (
             path + n, room - n, "/%s-%016llx.tdcache", kind,
             (unsigned long long)td_cuda_cache_hash (TD_CACHE_HASH, key, key_bytes))
         < room - n;
}

static void
make_folders (char *path)
{
  for (char *slash = strchr (path + 1, '/'); slash != NULL; slash = strchr (slash + 1, '/'))
    {
      *slash = '\0';
      mkdir (path, 0700);
      *slash = '/';
    }
}

/* All of a file that is not too large to be one of ours; NULL: nothing to be had. */
static void *
contents (FILE *f, size_t *bytes)
{
  struct stat s;
  void *all;

  if (fstat (fileno (f), &s) != 0 || !S_ISREG (s.st_mode) || s.st_size < 0
      || s.st_size > HEAD + MAX_KEY + MAX_VALUE)
    return NULL;
  *bytes = (size_t)s.st_size;
  all = malloc (*bytes + 1);
  if (all != NULL && fread (all, 1, *bytes, f) != *bytes)
    {
      free (all);
      return NULL;
    }
  return all;
}

void *
td_cuda_cache_read (const char *kind, const void *key, size_t key_bytes, size_t *bytes)
{
  char path[MAX_PATH];
  const void *value = NULL;
  void *all, *copy = NULL;
  const char *wrong;
  size_t n;
  FILE *f;

  if (!path_of (path, sizeof path, kind, key, key_bytes))
    return NULL;
  f = fopen (path, "rbe");
  if (f == NULL)
    return NULL;
  all = contents (f, &n);
  fclose (f);
  if (all == NULL)
    return NULL;
  wrong = td_cuda_cache_parse (all, n, key, key_bytes, &value, bytes);
  if (wrong != NULL)
    fprintf (stderr, "tapedeck: %s is damaged (%s): made anew\n", path, wrong);
  if (value != NULL)
    {
      copy = malloc (*bytes + 1);
      if (copy != NULL)
        memcpy (copy, value, *bytes);
    }
  free (all);
  return copy;
}

void
td_cuda_cache_write (const char *kind, const void *key, size_t key_bytes, const void *value,
                     size_t bytes)
{
  unsigned char head[HEAD] = MAGIC;
  char path[MAX_PATH], temporary[MAX_PATH + 32];
  bool written;
  FILE *f;

  if (key_bytes > MAX_KEY || bytes > MAX_VALUE
      || !path_of (path, sizeof path, kind, key, key_bytes))
    return;
  make_folders (path);
  snprintf (temporary, sizeof temporary, "%s.%ld", path, (long)getpid ());
  f = fopen (temporary, "wbxe");
  if (f == NULL)
    return;
  number_put (head + 8, 4, key_bytes);
  number_put (head + 12, 4, bytes);
  number_put (
      head + 16, 8,
      td_cuda_cache_hash (td_cuda_cache_hash (TD_CACHE_HASH, key, key_bytes), value, bytes));
  written = fwrite (head, 1, HEAD, f) == HEAD && fwrite (key, 1, key_bytes, f) == key_bytes
            && fwrite (value, 1, bytes, f) == bytes;
  written &= fclose (f) == 0;
  if (!written || rename (temporary, path) != 0)
    unlink (temporary);
}
