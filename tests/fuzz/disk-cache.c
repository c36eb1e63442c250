/* Reads files of the CUDA module's disk cache that may be anything.  Built with libFuzzer it is
 * a fuzzer; with main () below it runs a good file cut short, and with bits and bytes changed,
 * of which half get their check sum made right again.
 *
 * SPDX-License-Identifier: MIT */
#include "disk-cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t n);

static long n_found;

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  uint8_t *copy = malloc (n + (n == 0)); /* of its own size: reading past it is seen */
  const void *value;
  size_t bytes;
  const char *wrong;

  if (copy == NULL)
    abort ();
  memcpy (copy, data, n);
  wrong = td_cuda_cache_parse (copy, n, "key", 3, &value, &bytes);
  if (value != NULL)
    {
      if (wrong != NULL || (const uint8_t *)value < copy + 27
          || (const uint8_t *)value + bytes != copy + n)
        abort ();
      n_found++;
    }
  free (copy);
  return 0;
}

#ifndef TD_LIBFUZZER

enum
{
  HEAD = 24,
  SIZE = HEAD + 3 + 40
};

static void
put (uint8_t *at, int n, uint64_t v)
{
  for (int i = 0; i < n; i++)
    at[i] = (uint8_t)(v >> 8 * i);
}

static void
seal (uint8_t *file, size_t n)
{
  if (n >= HEAD)
    put (file + 16, 8, td_cuda_cache_hash (TD_CACHE_HASH, file + HEAD, n - HEAD));
}

int
main (void)
{
  static const uint64_t sizes[]
      = { 0, 1, 3, 39, 41, 1 << 20, 64 << 20, 0x7FFFFFFF, 0xFFFFFFE5, 0xFFFFFFFF };
  uint8_t good[SIZE] = "TDCACHE1", bad[SIZE];
  uint32_t seed = 1;

  put (good + 8, 4, 3);
  put (good + 12, 4, 40);
  memcpy (good + HEAD, "key", 3);
  memset (good + HEAD + 3, 7, 40);
  seal (good, SIZE);
  LLVMFuzzerTestOneInput (good, SIZE);
  if (n_found != 1)
    {
      fputs ("a good file is not read\n", stderr);
      return 1;
    }
  for (size_t n = 0; n < SIZE; n++)
    LLVMFuzzerTestOneInput (good, n);
  for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
    for (size_t v = 0; v < sizeof sizes / sizeof sizes[0]; v++)
      {
        memcpy (bad, good, SIZE);
        put (bad + 8, 4, sizes[k]);
        put (bad + 12, 4, sizes[v]);
        LLVMFuzzerTestOneInput (bad, SIZE);
      }
  for (int i = 0; i < 200000; i++)
    {
      size_t n;

      memcpy (bad, good, SIZE);
      for (int k = 0; k < 1 + i % 4; k++)
        {
          seed = seed * 1664525u + 1013904223u;
          bad[(seed >> 8) % SIZE] = (uint8_t)(seed >> 20);
        }
      n = i % 8 == 0 ? (seed >> 12) % (SIZE + 1) : SIZE;
      if (i % 2 == 0)
        seal (bad, n);
      LLVMFuzzerTestOneInput (bad, n);
    }
  printf ("%ld were found\n", n_found);
  return 0;
}
#endif
