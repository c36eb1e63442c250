/* Reads pickles that may be anything, whole and with the entries of its traces handed on, goes
 * through what comes out, and makes tapes of it.  Built with libFuzzer it
 * is a fuzzer; with main () below it takes good ones, cut short at every byte, and with bytes
 * changed.
 *
 * SPDX-License-Identifier: MIT */
#include "tape/tools/tape-pickle.h"
#include "td-tape-import.h"
#include "td-tape-reader.h"

#include "mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t n);

static long n_read, n_refused, n_tapes;

/* Values can be shared and contain themselves: `*left` is how many more are looked at. */
static void
walk (const TapePickle *p, TapeValue v, int depth, int *left)
{
  uint64_t number, n = 0;
  size_t length;
  const char *text = td__tape_value_text (p, v, &length);

  if (strlen (text) > length || (*left)-- <= 0 || depth > 20)
    return;
  td__tape_value_unsigned (p, v, &number);
  td__tape_value_float (p, v);
  walk (p, td__tape_member (p, v, td__tape_key (p, "segments")), depth + 1, left);
  walk (p, td__tape_member (p, v, td__tape_key (p, "frames")), depth + 1, left);
  for (TapeItems i = td__tape_items (p, v); td__tape_next (p, &i) && *left > 0; n++)
    walk (p, i.value, depth + 1, left);
  if (*left > 0 && td__tape_value_kind (v) == TAPE_VALUE_LIST
      && n != td__tape_value_length (p, v))
    abort ();
}

static bool
begin (void *user, TapePickle *p)
{
  return td__tape_value_make_text (p, "frames", 6) != 0;
}

static bool
take (void *user, const TapePickle *p, uint32_t device, TapeValue dict, char *error, size_t n)
{
  walk (p, dict, 0, user);
  return true;
}

static TapePickle *
read_it (int fd, const TapeEntries *entries)
{
  char error[256] = "";
  TapePickle *p;

  if (lseek (fd, 0, SEEK_SET) != 0)
    abort ();
  p = td__tape_pickle_read (fd, NULL, entries, error, sizeof error);
  if ((p == NULL) != (error[0] != '\0') || strchr (error, '\n') != NULL)
    abort ();
  return p;
}

/* What becomes a tape is one that its reader takes. */
static void
import (int fd)
{
  const char *folder = getenv ("TMPDIR");
  char from[64], to[256], error[512] = "";
  TdTapeReader *r;

  snprintf (from, sizeof from, "/proc/self/fd/%d", fd);
  snprintf (to, sizeof to, "%s/fuzz-pickle-%ld.tdtape", folder != NULL ? folder : "/tmp",
            (long)getpid ());
  if (td_tape_import_snapshot (from, to, false, NULL, error, sizeof error))
    {
      r = td_tape_reader_open (to, error, sizeof error);
      if (r == NULL || td_tape_reader_damage (r, error, sizeof error))
        abort ();
      td_tape_iteration_free (td_tape_iteration_load (r, 0, error, sizeof error));
      td_tape_reader_free (r);
      n_tapes++;
    }
  else if (error[0] == '\0' || strchr (error, '\n') != NULL)
    abort ();
  unlink (to);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  const int fd = memfd_create ("pickle", MFD_CLOEXEC);
  int left = 30000;
  TapePickle *p;

  if (fd < 0 || write (fd, data, n) != (ssize_t)n)
    abort ();
  p = read_it (fd, &(TapeEntries){ begin, take, &left });
  if (p != NULL)
    walk (p, p->root, 0, &left);
  td__tape_pickle_free (p);
  p = read_it (fd, NULL);
  left = 30000;
  if (p != NULL)
    walk (p, p->root, 0, &left);
  if ((n_read + n_refused) % 16 == 0)
    import (fd);
  close (fd);
  *(p != NULL ? &n_read : &n_refused) += 1;
  td__tape_pickle_free (p);
  return 0;
}

#ifndef TD_LIBFUZZER

static uint32_t
next_random (uint32_t *seed)
{
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

/* Opcodes are more likely than other bytes. */
static uint8_t
random_byte (uint32_t *seed)
{
  static const char codes[] = "\x80\x95.(012N\x88\x89JKM\x8a\x8bGX\x8c\x8dTU])}ltd\x85\x86\x87"
                              "aesuhjqr\x94";
  const uint32_t x = next_random (seed);

  return x % 3 == 0 ? (uint8_t)(x >> 8) : (uint8_t)codes[(x >> 4) % (sizeof codes - 1)];
}

static bool
run_file (const char *name, uint32_t rounds)
{
  uint8_t good[65536], *bad;
  uint32_t seed = 1;
  FILE *f = fopen (name, "rb");
  const size_t n = f != NULL ? fread (good, 1, sizeof good, f) : 0;
  const long before = n_read;

  if (f != NULL)
    fclose (f);
  if (n == 0 || n == sizeof good || (bad = malloc (n)) == NULL)
    return false;
  LLVMFuzzerTestOneInput (good, n);
  if (n_read != before + 1)
    return free (bad), false;
  for (size_t cut = 0; cut < n; cut++)
    LLVMFuzzerTestOneInput (good, cut);
  for (uint32_t i = 0; i < rounds; i++)
    {
      memcpy (bad, good, n);
      for (uint32_t k = 0; k <= i % 6; k++)
        bad[next_random (&seed) % n] = random_byte (&seed);
      LLVMFuzzerTestOneInput (bad, n);
    }
  free (bad);
  return true;
}

int
main (int argc, char **argv)
{
  for (int i = 1; i < argc; i++)
    if (!run_file (argv[i], (uint32_t)fuzz_rounds (500)))
      {
        fprintf (stderr, "%s: a good pickle expected\n", argv[i]);
        return 1;
      }
  printf ("%ld read, %ld refused, %ld tapes\n", n_read, n_refused, n_tapes);
  return argc > 1 && n_read > argc && n_refused > argc && n_tapes > argc ? 0 : 1;
}
#endif
