/* Reads pickles that may be anything, and goes through what comes out.  Built with libFuzzer it
 * is a fuzzer; with main () below it takes good ones, cut short at every byte, and with bytes
 * changed.
 *
 * SPDX-License-Identifier: MIT */
#include "tape/tools/tape-pickle.h"

#include "mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t n);

static long n_read, n_refused;

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

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  const int fd = memfd_create ("pickle", MFD_CLOEXEC);
  char error[256] = "";
  int left = 100000;
  TapePickle *p;

  if (fd < 0 || write (fd, data, n) != (ssize_t)n || lseek (fd, 0, SEEK_SET) != 0)
    abort ();
  p = td__tape_pickle_read (fd, NULL, error, sizeof error);
  close (fd);
  if ((p == NULL) != (error[0] != '\0') || strchr (error, '\n') != NULL)
    abort ();
  if (p != NULL)
    walk (p, p->root, 0, &left);
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
  printf ("%ld read, %ld refused\n", n_read, n_refused);
  return argc > 1 && n_read > argc && n_refused > argc ? 0 : 1;
}
#endif
