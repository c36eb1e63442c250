/* Reads a tape that may be anything: opens it, loads every iteration, dumps, checks, repairs.
 * Built with libFuzzer (-fsanitize=fuzzer) it is a fuzzer; with main () below it runs a corpus
 * that it makes itself out of a good tape: every truncation in steps, and bit flips, of which
 * half get their check sums made right again, so that what lies behind them is reached.
 * SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tape-private.h"
#include "td-tape-reader.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t n);

static char path[64], out[80];

static void
use (TdTapeReader *r)
{
  TdTapeSummaries s = td_tape_reader_summaries (r);
  FILE *sink = fopen ("/dev/null", "w");
  char error[256];

  for (uint32_t i = 0; i < s.n && i < 100; i++)
    {
      const TdTapeIteration *it
          = td_tape_iteration_load (r, s.rows[i].number, error, sizeof error);

      for (uint32_t k = 0; it != NULL && k < it->n_tensors; k++)
        {
          TdTapeTensorRecord record;
          char bytes[64];

          td_tape_tensor_read (r, &it->tensors[k], &record, bytes, 0, sizeof bytes);
        }
      td_tape_iteration_free (it);
    }
  td_tape_iteration_free (td_tape_reader_live (r));
  td_tape_dump (r, sink, true, 0, 100);
  td_tape_dump (r, sink, false, 0, 100);
  td_tape_info (r, sink, true);
  td_tape_info (r, sink, false);
  td_tape_reader_poll (r);
  fclose (sink);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  char error[256];
  TdTapeCheck check;
  TdTapeReader *r;
  FILE *f;

  if (path[0] == '\0')
    {
      snprintf (path, sizeof path, "/dev/shm/td-fuzz-%ld", (long)getpid ());
      snprintf (out, sizeof out, "%s.out", path);
    }
  f = fopen (path, "w");
  if (f == NULL || (n > 0 && fwrite (data, 1, n, f) != n))
    abort ();
  fclose (f);
  r = td_tape_reader_open (path, error, sizeof error);
  if (r != NULL)
    use (r);
  td_tape_reader_free (r);
  td_tape_check (path, &check);
  unlink (out);
  td_tape_repair (path, out, error, sizeof error);
  unlink (out);
  unlink (path);
  return 0;
}

#ifndef TD_LIBFUZZER

static uint32_t
next_random (uint32_t *seed)
{
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

/* Make the check sums of all segments and frames right, as far as they can be found. */
static void
seal (uint8_t *bytes, size_t n)
{
  TdTapeHeader *h = (TdTapeHeader *)bytes;

  h->crc = td__tape_crc (0, h, offsetof (TdTapeHeader, crc));
  for (size_t offset = TD_TAPE_TAIL_OFFSET; offset + sizeof (TdTapeSegment) <= n;)
    {
      TdTapeSegment *s = (TdTapeSegment *)(bytes + offset);
      size_t at = offset + sizeof *s, end = s->used < n - at ? at + s->used : n;

      s->crc = td__tape_crc (0, s, offsetof (TdTapeSegment, crc));
      while (at + sizeof (TdTapeFrame) <= end)
        {
          TdTapeFrame *f = (TdTapeFrame *)(bytes + at);

          if (f->len < sizeof *f || f->len > end - at)
            break;
          f->crc = 0;
          f->crc = td__tape_crc (0, f, f->len);
          at += TAPE_ALIGN (f->len);
        }
      if (s->capacity < 1024 || s->capacity % 1024 != 0 || s->capacity > n)
        break;
      offset += s->capacity;
    }
}

static uint8_t *
read_all (const char *name, size_t *n)
{
  FILE *f = fopen (name, "r");
  uint8_t *bytes = NULL;

  if (f == NULL || fseek (f, 0, SEEK_END) != 0)
    return NULL;
  *n = (size_t)ftell (f);
  rewind (f);
  bytes = malloc (*n + 8);
  if (bytes != NULL && fread (bytes, 1, *n, f) != *n)
    *n = 0;
  fclose (f);
  return bytes;
}

/* Places that are not zero: a flip in the empty end of a segment says nothing. */
static size_t
used_place (const uint8_t *bytes, size_t n, uint32_t *seed)
{
  size_t at = next_random (seed) % n;

  for (size_t k = 0; k < n && bytes[at] == 0; k++)
    at = (at + 1) % n;
  return (at + n - next_random (seed) % 4) % n;
}

int
main (int argc, char **argv)
{
  uint32_t seed = 1, rounds = argc > 2 ? (uint32_t)atoi (argv[2]) : 1500;
  size_t n;
  uint8_t *good = argc > 1 ? read_all (argv[1], &n) : NULL, *bad;

  if (good == NULL || n == 0 || (bad = malloc (n)) == NULL)
    {
      fprintf (stderr, "usage: tape-reader TAPE [ROUNDS]\n");
      return 2;
    }
  for (size_t cut = 0; cut < n; cut += 61)
    LLVMFuzzerTestOneInput (good, cut);
  for (uint32_t i = 0; i < rounds; i++)
    {
      memcpy (bad, good, n);
      for (uint32_t k = 0; k <= i % 4; k++)
        {
          size_t at = used_place (good, n, &seed);

          bad[at] = i % 8 < 4 ? bad[at] ^ (uint8_t)(1 << next_random (&seed) % 8)
                              : (uint8_t)next_random (&seed);
        }
      if (i % 2)
        seal (bad, n);
      LLVMFuzzerTestOneInput (bad, n);
    }
  printf ("%zu truncations, %u damaged tapes\n", (n + 60) / 61, rounds);
  free (bad);
  free (good);
  return 0;
}
#endif
