/* What an allocation and its free cost in the allocator core, in CPU time: a thousand blocks
 * live, one of them, chosen at random, given back and another taken.  Addresses only, no memory
 * is touched.  Prints JSON objects; it has no peer. SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "compute/alloc/pool.h"

enum
{
  N_LIVE = 1000,
  N_STEPS = 200000,
  N_ROUNDS = 9
};

typedef struct
{
  uint16_t slot;
  uint32_t bytes;
} Step;

static Step steps[N_STEPS];

static double
cpu_ns (void)
{
  struct timespec t;

  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int
ascending (const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

/* Sizes spread evenly over powers of two, as those of arrays are: from `least` to `most`. */
static void
plan (double least, double most)
{
  uint64_t state = 88172645463325252u;

  for (int i = 0; i < N_STEPS; i++)
    {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      steps[i].slot = (uint16_t)(state % N_LIVE);
      steps[i].bytes = (uint32_t)(least * pow (most / least, (double)(state >> 11) * 0x1p-53));
    }
}

static int
measure (const char *workload, double least, double most)
{
  TdPool *pool = td__pool_new (&td__provider_fake, NULL);
  TdBlock *live[N_LIVE];
  double ns[N_ROUNDS];
  const char *wrong;

  plan (least, most);
  for (int i = 0; i < N_LIVE; i++)
    live[i] = td__pool_take (pool, steps[i].bytes, TD_MEM_ACTIVATION);
  for (int round = -1; round < N_ROUNDS; round++)
    {
      const double start = cpu_ns ();

      for (int i = 0; i < N_STEPS; i++)
        {
          td__pool_release (live[steps[i].slot]);
          live[steps[i].slot] = td__pool_take (pool, steps[i].bytes, TD_MEM_ACTIVATION);
        }
      if (round >= 0)
        ns[round] = (cpu_ns () - start) / N_STEPS;
    }
  wrong = td__pool_check (pool);
  td__pool_free (pool);
  if (wrong != NULL)
    {
      fprintf (stderr, "allocation: %s\n", wrong);
      return 1;
    }
  qsort (ns, N_ROUNDS, sizeof *ns, ascending);
  printf ("{\"workload\": \"%s\", \"threads\": 1, \"value\": %.4g, \"unit\": "
          "\"ns/allocation+free\", \"peer\": null, \"ratio\": null, \"goal\": 60}\n",
          workload, ns[N_ROUNDS / 2]);
  return 0;
}

int
main (void)
{
  return measure ("allocation_random", 64, 1 << 20) || measure ("allocation_64", 64, 64);
}
