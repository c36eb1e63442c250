/* What the fuzzers share: random numbers from a fixed seed, or that of TD_FUZZ_SEED, changes to
 * a good file, and how many rounds there are: few in a test run, TD_FUZZ_ROUNDS where it is
 * set. SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t fuzz_state = 88172645463325252u;

static inline uint32_t
fuzz_below (uint32_t n)
{
  fuzz_state ^= fuzz_state << 13;
  fuzz_state ^= fuzz_state >> 7;
  fuzz_state ^= fuzz_state << 17;
  return (uint32_t)(fuzz_state >> 32) % n;
}

static inline int
fuzz_rounds (int usual)
{
  const char *text = getenv ("TD_FUZZ_ROUNDS"), *seed = getenv ("TD_FUZZ_SEED");

  if (seed != NULL) /* 0 would stay 0 */
    fuzz_state = strtoull (seed, NULL, 10) * 0x9e3779b97f4a7c15u + 88172645463325252u;
  return text != NULL && atoi (text) > 0 ? atoi (text) : usual;
}

/* A number that a length or an offset should not be, over up to eight bytes. */
static inline void
fuzz_number (uint8_t *at, size_t room)
{
  static const uint64_t numbers[]
      = { 0,          1,           2,         0x7f,      0x80,       0xff,
          0x100,      0x7fff,      0xffff,    0x10000,   0x7fffffff, 0x80000000,
          0xffffffff, 0x100000000, INT64_MAX, UINT64_MAX };
  uint64_t number = numbers[fuzz_below (sizeof numbers / sizeof *numbers)];
  size_t bytes = (size_t)1 << fuzz_below (4);

  for (size_t i = 0; i < bytes && i < room; i++)
    at[i] = (uint8_t)(number >> 8 * i);
}

/* One change; the new length, at most `room`. */
static inline size_t
fuzz_change (uint8_t *bytes, size_t n, size_t room, bool same_length)
{
  size_t at = n > 0 ? fuzz_below ((uint32_t)n) : 0, run;

  if (n == 0)
    return 0;
  switch (fuzz_below (same_length ? 4 : 7))
    {
    case 0:
      bytes[at] ^= (uint8_t)(1u << fuzz_below (8));
      return n;
    case 1:
      bytes[at] = (uint8_t)fuzz_below (256);
      return n;
    case 2:
      fuzz_number (bytes + at, n - at);
      return n;
    case 3: /* a piece from elsewhere */
      run = fuzz_below (16) + 1;
      for (size_t i = 0, from = fuzz_below ((uint32_t)n); i < run && at + i < n; i++)
        bytes[at + i] = bytes[(from + i) % n];
      return n;
    case 4: /* cut off */
      return at;
    case 5: /* a piece is missing */
      run = 1 + fuzz_below (64) % (n - at);
      memmove (bytes + at, bytes + at + run, n - at - run);
      return n - run;
    default: /* a piece is there twice */
      run = 1 + fuzz_below (64) % (n - at);
      if (n + run > room)
        return n;
      memmove (bytes + at + run, bytes + at, n - at);
      return n + run;
    }
}

/* Make `bad` (of `room` bytes) out of `good`: up to five changes.  Returns its length. */
static inline size_t
fuzz_mutate (const uint8_t *good, size_t n, uint8_t *bad, size_t room, bool same_length)
{
  memcpy (bad, good, n);
  for (uint32_t k = 1 + fuzz_below (5); k > 0; k--)
    n = fuzz_change (bad, n, room, same_length);
  return n;
}

/* A whole file, at most `most` bytes; ends the program where that cannot be. */
static inline uint8_t *
fuzz_read (const char *name, size_t *n, size_t most)
{
  FILE *f = fopen (name, "rb");
  uint8_t *bytes = malloc (most);

  *n = f != NULL && bytes != NULL ? fread (bytes, 1, most, f) : 0;
  if (*n == 0 || *n == most)
    {
      fprintf (stderr, "%s: a good file of less than %zu bytes expected\n", name, most);
      exit (1);
    }
  fclose (f);
  return bytes;
}

static inline void
fuzz_write (const char *name, const void *bytes, size_t n)
{
  FILE *f = fopen (name, "wb");

  if (f == NULL || fwrite (bytes, 1, n, f) != n || fclose (f) != 0)
    abort ();
}
